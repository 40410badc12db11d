/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_range - which bytes of a message are here: a sorted set of disjoint ranges
 *
 * Nodes come from one pool per conn, so that the sum of all gaps is bounded.
 * Fragments come nearly in order, so a set has few nodes and a walk is short.
 *
 * Units: bytes, [start, end).  Ownership: a set's nodes are the pool's.
 * Threads: one.  I/O, time: none.
 */
#ifndef MRC_RANGE_H
#define MRC_RANGE_H

#include "mrc_base.h"

#define MRC_RANGE_NONE UINT32_MAX

struct mrc_range_node {
	uint64_t start;
	uint64_t end;
	uint32_t next; /* in the set, or in the free list; of no meaning before it was first used */
};

struct mrc_range_pool {
	struct mrc_range_node *nodes; /* lent */
	uint32_t node_count;
	uint32_t used_count; /* those from here on were never used, and are not touched before */
	uint32_t free_head;  /* of those that came back */
	uint32_t free_count; /* of both */
	uint32_t kept;       /* so many of them mrc_range_set_add() does not take; 0 at first */
};

struct mrc_range_set {
	uint32_t head;
	uint64_t bytes; /* covered */
};

void mrc_range_pool_init(struct mrc_range_pool *pool, struct mrc_range_node *nodes,
			 uint32_t node_count);
/* All sets as they are, in more memory: what was lent before is the caller's again. */
void mrc_range_pool_move(struct mrc_range_pool *pool, struct mrc_range_node *nodes,
			 uint32_t node_count);

void mrc_range_set_init(struct mrc_range_set *set);
/* Gives all nodes back; the set is empty afterwards. */
void mrc_range_set_clear(struct mrc_range_pool *pool, struct mrc_range_set *set);

/*
 * Add [start, end). Answers the number of bytes that were new (0: all were
 * here before). -ENOBUFS: a node is needed and not more than the pool's `kept`
 * are left; nothing changed.
 */
int64_t mrc_range_set_add(struct mrc_range_pool *pool, struct mrc_range_set *set, uint64_t start,
			  uint64_t end);
/* The same with a bound of its own. */
int64_t mrc_range_set_add_keeping(struct mrc_range_pool *pool, struct mrc_range_set *set,
				  uint64_t start, uint64_t end, uint32_t kept);

/* Take the first range off the set; false when it is empty. */
bool mrc_range_set_pop(struct mrc_range_pool *pool, struct mrc_range_set *set, uint64_t *start_out,
		       uint64_t *end_out);

/* From `at`: is it here (true), and up to where (at most `end`) does that answer hold? */
bool mrc_range_set_has(const struct mrc_range_pool *pool, const struct mrc_range_set *set,
		       uint64_t at, uint64_t end, uint64_t *until_out);

/* The first gap in [from, end): false when there is none. */
bool mrc_range_set_gap(const struct mrc_range_pool *pool, const struct mrc_range_set *set,
		       uint64_t from, uint64_t end, uint64_t *start_out, uint64_t *end_out);

#endif
