/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_list - intrusive, circular, doubly linked lists
 *
 * A node that is in no list points at itself, so taking it out twice is harmless.
 */
#ifndef MRC_LIST_H
#define MRC_LIST_H

#include "mrc_base.h"

struct mrc_list {
	struct mrc_list *next;
	struct mrc_list *prev;
};

#define mrc_list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline void mrc_list_init(struct mrc_list *node)
{
	node->next = node;
	node->prev = node;
}

static inline bool mrc_list_is_empty(const struct mrc_list *list)
{
	return list->next == list;
}

static inline void mrc_list_remove(struct mrc_list *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
	mrc_list_init(node);
}

/* At the tail; a node already in a list (this one or another) is moved. */
static inline void mrc_list_push(struct mrc_list *list, struct mrc_list *node)
{
	mrc_list_remove(node);
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

/* Like push, but a node that is in a list keeps its place. */
static inline void mrc_list_push_once(struct mrc_list *list, struct mrc_list *node)
{
	if (mrc_list_is_empty(node))
		mrc_list_push(list, node);
}

#endif
