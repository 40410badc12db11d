/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_lib - what every part of libmrc uses: assertions, exports, lists, time
 *
 * Lists are doubly linked rings with a head of their own; an entry lives in its
 * owner, so that nothing is allocated to queue it. An entry that points at
 * itself is in no list.
 *
 * Threads: none of its own.
 */
#ifndef MRC_LIB_H
#define MRC_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* For what is ours to get right; on in release builds too. */
#define MRC_ASSERT(cond)                          \
	do {                                      \
		if (__builtin_expect(!(cond), 0)) \
			abort();                  \
	} while (0)

/* Put before the definition of what libmrc.map exports. */
#define MRC_API          __attribute__((visibility("default")))

#define MRC_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MRC_CONTAINER_OF(member_ptr, type, member) \
	((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

struct mrc_list {
	struct mrc_list *prev;
	struct mrc_list *next;
};

static inline void mrc_list_init(struct mrc_list *node)
{
	node->prev = node;
	node->next = node;
}

static inline bool mrc_list_is_empty(const struct mrc_list *head)
{
	return head->next == head;
}

/* Of an entry: whether it is in a list. */
static inline bool mrc_list_is_linked(const struct mrc_list *node)
{
	return node->next != node;
}

static inline void mrc_list_append(struct mrc_list *head, struct mrc_list *node)
{
	MRC_ASSERT(!mrc_list_is_linked(node));
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Fine for an entry that is in no list. */
static inline void mrc_list_remove(struct mrc_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	mrc_list_init(node);
}

static inline uint64_t mrc_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

#endif
