/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_range.h"

#include <string.h>

void mrc_range_pool_init(struct mrc_range_pool *pool, struct mrc_range_node *nodes,
			 uint32_t node_count)
{
	pool->nodes = nodes;
	pool->node_count = node_count;
	pool->used_count = 0;
	pool->free_head = MRC_RANGE_NONE;
	pool->free_count = node_count;
	pool->kept = 0;
}

void mrc_range_pool_move(struct mrc_range_pool *pool, struct mrc_range_node *nodes,
			 uint32_t node_count)
{
	MRC_ASSERT(node_count > pool->node_count);
	memcpy(nodes, pool->nodes, sizeof(*nodes) * pool->used_count);
	pool->free_count += node_count - pool->node_count;
	pool->nodes = nodes;
	pool->node_count = node_count;
}

/* There is one: free_count says so. */
static uint32_t node_take(struct mrc_range_pool *pool)
{
	uint32_t index = pool->free_head;

	pool->free_count--;
	if (index == MRC_RANGE_NONE) {
		MRC_ASSERT(pool->used_count < pool->node_count);
		return pool->used_count++;
	}
	pool->free_head = pool->nodes[index].next;
	return index;
}

static void node_free(struct mrc_range_pool *pool, uint32_t index)
{
	pool->nodes[index].next = pool->free_head;
	pool->free_head = index;
	pool->free_count++;
}

void mrc_range_set_init(struct mrc_range_set *set)
{
	set->head = MRC_RANGE_NONE;
	set->bytes = 0;
}

void mrc_range_set_clear(struct mrc_range_pool *pool, struct mrc_range_set *set)
{
	while (set->head != MRC_RANGE_NONE) {
		uint32_t next = pool->nodes[set->head].next;

		node_free(pool, set->head);
		set->head = next;
	}
	set->bytes = 0;
}

int64_t mrc_range_set_add(struct mrc_range_pool *pool, struct mrc_range_set *set, uint64_t start,
			  uint64_t end)
{
	return mrc_range_set_add_keeping(pool, set, start, end, pool->kept);
}

int64_t mrc_range_set_add_keeping(struct mrc_range_pool *pool, struct mrc_range_set *set,
				  uint64_t start, uint64_t end, uint32_t kept)
{
	struct mrc_range_node *nodes = pool->nodes;
	uint32_t *link = &set->head;
	uint64_t bytes_old = set->bytes;
	uint32_t at;

	MRC_ASSERT(start <= end);
	if (start == end)
		return 0;
	/* The first node that touches or follows [start, end). */
	while (*link != MRC_RANGE_NONE && nodes[*link].end < start)
		link = &nodes[*link].next;
	at = *link;
	if (at == MRC_RANGE_NONE || nodes[at].start > end) {
		uint32_t fresh;

		if (pool->free_count <= kept)
			return -ENOBUFS;
		fresh = node_take(pool);
		nodes[fresh] = (struct mrc_range_node){.start = start, .end = end, .next = at};
		*link = fresh;
		set->bytes += end - start;
		return (int64_t)(end - start);
	}
	set->bytes -= nodes[at].end - nodes[at].start;
	nodes[at].start = MRC_MIN(nodes[at].start, start);
	nodes[at].end = MRC_MAX(nodes[at].end, end);
	/* Swallow the followers it now reaches. */
	while (nodes[at].next != MRC_RANGE_NONE && nodes[nodes[at].next].start <= nodes[at].end) {
		uint32_t next = nodes[at].next;

		set->bytes -= nodes[next].end - nodes[next].start;
		nodes[at].end = MRC_MAX(nodes[at].end, nodes[next].end);
		nodes[at].next = nodes[next].next;
		node_free(pool, next);
	}
	set->bytes += nodes[at].end - nodes[at].start;
	return (int64_t)(set->bytes - bytes_old);
}

bool mrc_range_set_pop(struct mrc_range_pool *pool, struct mrc_range_set *set, uint64_t *start_out,
		       uint64_t *end_out)
{
	uint32_t at = set->head;

	if (at == MRC_RANGE_NONE)
		return false;
	*start_out = pool->nodes[at].start;
	*end_out = pool->nodes[at].end;
	set->head = pool->nodes[at].next;
	set->bytes -= pool->nodes[at].end - pool->nodes[at].start;
	node_free(pool, at);
	return true;
}

bool mrc_range_set_has(const struct mrc_range_pool *pool, const struct mrc_range_set *set,
		       uint64_t at, uint64_t end, uint64_t *until_out)
{
	for (uint32_t i = set->head; i != MRC_RANGE_NONE; i = pool->nodes[i].next) {
		const struct mrc_range_node *node = &pool->nodes[i];

		if (node->end <= at)
			continue;
		if (node->start <= at) {
			*until_out = MRC_MIN(end, node->end);
			return true;
		}
		*until_out = MRC_MIN(end, node->start);
		return false;
	}
	*until_out = end;
	return false;
}

bool mrc_range_set_gap(const struct mrc_range_pool *pool, const struct mrc_range_set *set,
		       uint64_t from, uint64_t end, uint64_t *start_out, uint64_t *end_out)
{
	uint64_t until = from;

	while (from < end && mrc_range_set_has(pool, set, from, end, &until))
		from = until;
	if (from >= end)
		return false;
	*start_out = from;
	*end_out = until;
	return true;
}
