/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_buf.h"

#include <errno.h>

#define NIL 0U /* node 0 is not used */

/*
 * A treap: ordered by offset, a heap by `rank`, which is drawn when the node is
 * made. Depth is logarithmic whatever the program does.
 */
struct node {
	uint64_t offset;
	uint64_t len_bytes;
	uint64_t free_bytes_max; /* largest free segment in this subtree */
	uint32_t left;
	uint32_t right;
	uint32_t prev; /* neighbours in the arena */
	uint32_t next; /* doubles as the chain of unused nodes */
	uint32_t rank;
	bool is_free;
};

struct mrc_bufs {
	struct node *nodes; /* ours; node_count entries */
	uint32_t node_count;
	uint32_t node_fresh;  /* first never used: pages are touched only when needed */
	uint32_t node_unused; /* chain of those given back */
	uint32_t root;
	uint32_t first; /* lowest segment */
	uint32_t buf_count;
	uint32_t bufs_max;
	uint64_t arena_bytes;
	uint64_t rank_state;
};

static uint32_t rank_draw(struct mrc_bufs *bufs)
{
	uint64_t z = (bufs->rank_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (uint32_t)(z >> 32);
}

static uint32_t node_get(struct mrc_bufs *bufs)
{
	uint32_t index = bufs->node_unused;

	if (index != NIL)
		bufs->node_unused = bufs->nodes[index].next;
	else
		index = bufs->node_fresh++;
	/* Two nodes a buffer and one more always suffice: between two free segments is a used one. */
	MRC_ASSERT(index < bufs->node_count);
	bufs->nodes[index] = (struct node){.rank = rank_draw(bufs)};
	return index;
}

static void node_put(struct mrc_bufs *bufs, uint32_t index)
{
	bufs->nodes[index].next = bufs->node_unused;
	bufs->node_unused = index;
}

/* Work out again what this node knows of its subtree. */
static void node_pull(struct mrc_bufs *bufs, uint32_t index)
{
	struct node *n = &bufs->nodes[index];
	uint64_t max = n->is_free ? n->len_bytes : 0;

	/* Node 0 stays zero, so a missing child adds nothing. */
	if (bufs->nodes[n->left].free_bytes_max > max)
		max = bufs->nodes[n->left].free_bytes_max;
	if (bufs->nodes[n->right].free_bytes_max > max)
		max = bufs->nodes[n->right].free_bytes_max;
	n->free_bytes_max = max;
}

static uint32_t rotate_right(struct mrc_bufs *bufs, uint32_t index)
{
	uint32_t up = bufs->nodes[index].left;

	bufs->nodes[index].left = bufs->nodes[up].right;
	bufs->nodes[up].right = index;
	node_pull(bufs, index);
	node_pull(bufs, up);
	return up;
}

static uint32_t rotate_left(struct mrc_bufs *bufs, uint32_t index)
{
	uint32_t up = bufs->nodes[index].right;

	bufs->nodes[index].right = bufs->nodes[up].left;
	bufs->nodes[up].left = index;
	node_pull(bufs, index);
	node_pull(bufs, up);
	return up;
}

static uint32_t tree_insert(struct mrc_bufs *bufs, uint32_t at, uint32_t index)
{
	struct node *n;

	if (at == NIL) {
		node_pull(bufs, index);
		return index;
	}
	n = &bufs->nodes[at];
	MRC_ASSERT(n->offset != bufs->nodes[index].offset);
	if (bufs->nodes[index].offset < n->offset) {
		n->left = tree_insert(bufs, n->left, index);
		if (bufs->nodes[n->left].rank > n->rank)
			return rotate_right(bufs, at);
	} else {
		n->right = tree_insert(bufs, n->right, index);
		if (bufs->nodes[n->right].rank > n->rank)
			return rotate_left(bufs, at);
	}
	node_pull(bufs, at);
	return at;
}

/* Join two trees, all of `left` before all of `right`. */
static uint32_t tree_join(struct mrc_bufs *bufs, uint32_t left, uint32_t right)
{
	if (left == NIL)
		return right;
	if (right == NIL)
		return left;
	if (bufs->nodes[left].rank > bufs->nodes[right].rank) {
		bufs->nodes[left].right = tree_join(bufs, bufs->nodes[left].right, right);
		node_pull(bufs, left);
		return left;
	}
	bufs->nodes[right].left = tree_join(bufs, left, bufs->nodes[right].left);
	node_pull(bufs, right);
	return right;
}

static uint32_t tree_remove(struct mrc_bufs *bufs, uint32_t at, uint32_t index)
{
	struct node *n = &bufs->nodes[at];

	MRC_ASSERT(at != NIL);
	if (at == index)
		return tree_join(bufs, n->left, n->right);
	if (bufs->nodes[index].offset < n->offset)
		n->left = tree_remove(bufs, n->left, index);
	else
		n->right = tree_remove(bufs, n->right, index);
	node_pull(bufs, at);
	return at;
}

/* A node's length or state has changed: tell all above it. */
static void tree_refresh(struct mrc_bufs *bufs, uint32_t at, uint32_t index)
{
	struct node *n = &bufs->nodes[at];

	MRC_ASSERT(at != NIL);
	if (at != index)
		tree_refresh(bufs, bufs->nodes[index].offset < n->offset ? n->left : n->right,
			     index);
	node_pull(bufs, at);
}

/* The free segment with the lowest offset that has len_bytes; NIL: none. */
static uint32_t tree_first_fit(const struct mrc_bufs *bufs, uint64_t len_bytes)
{
	uint32_t at = bufs->root;

	if (bufs->nodes[at].free_bytes_max < len_bytes)
		return NIL;
	for (;;) {
		const struct node *n = &bufs->nodes[at];

		if (bufs->nodes[n->left].free_bytes_max >= len_bytes)
			at = n->left;
		else if (n->is_free && n->len_bytes >= len_bytes)
			return at;
		else
			at = n->right;
		MRC_ASSERT(at != NIL);
	}
}

static uint32_t tree_find(const struct mrc_bufs *bufs, uint64_t offset)
{
	uint32_t at = bufs->root;

	while (at != NIL && bufs->nodes[at].offset != offset)
		at = offset < bufs->nodes[at].offset ? bufs->nodes[at].left : bufs->nodes[at].right;
	return at;
}

int mrc_bufs_new(uint64_t arena_bytes, uint32_t bufs_max, struct mrc_bufs **bufs_out)
{
	struct mrc_bufs *bufs;
	struct node *n;

	arena_bytes -= arena_bytes % MRC_BUF_ALIGN_BYTES;
	if (arena_bytes == 0 || bufs_max == 0 || bufs_max > UINT32_MAX / 4)
		return -EINVAL;
	bufs = calloc(1, sizeof(*bufs));
	if (!bufs)
		return -ENOMEM;
	bufs->node_count = 2 * bufs_max + 2;
	bufs->nodes = calloc(bufs->node_count, sizeof(*bufs->nodes));
	if (!bufs->nodes) {
		free(bufs);
		return -ENOMEM;
	}
	bufs->node_fresh = 1;
	bufs->bufs_max = bufs_max;
	bufs->arena_bytes = arena_bytes;
	bufs->first = node_get(bufs);
	n = &bufs->nodes[bufs->first];
	n->len_bytes = arena_bytes;
	n->is_free = true;
	bufs->root = tree_insert(bufs, NIL, bufs->first);
	*bufs_out = bufs;
	return 0;
}

void mrc_bufs_free(struct mrc_bufs *bufs)
{
	if (!bufs)
		return;
	free(bufs->nodes);
	free(bufs);
}

int mrc_bufs_take(struct mrc_bufs *bufs, uint64_t len_bytes, uint64_t *offset_out)
{
	uint32_t index;
	struct node *n;

	if (len_bytes > bufs->arena_bytes)
		return -EMSGSIZE;
	if (len_bytes == 0)
		len_bytes = 1;
	len_bytes = (len_bytes + MRC_BUF_ALIGN_BYTES - 1) & ~(uint64_t)(MRC_BUF_ALIGN_BYTES - 1);
	if (bufs->buf_count == bufs->bufs_max)
		return -ENOMEM;
	index = tree_first_fit(bufs, len_bytes);
	if (index == NIL)
		return -ENOMEM;

	n = &bufs->nodes[index];
	MRC_ASSERT(n->is_free && n->len_bytes >= len_bytes);
	n->is_free = false;
	if (n->len_bytes > len_bytes) {
		uint32_t rest = node_get(bufs);
		struct node *r = &bufs->nodes[rest];

		r->offset = n->offset + len_bytes;
		r->len_bytes = n->len_bytes - len_bytes;
		r->is_free = true;
		r->prev = index;
		r->next = n->next;
		if (n->next != NIL)
			bufs->nodes[n->next].prev = rest;
		n->next = rest;
		n->len_bytes = len_bytes;
		tree_refresh(bufs, bufs->root, index);
		bufs->root = tree_insert(bufs, bufs->root, rest);
	} else {
		tree_refresh(bufs, bufs->root, index);
	}
	bufs->buf_count++;
	*offset_out = n->offset;
	return 0;
}

/* Make the free `index` and the free segment after it one. */
static void swallow_next(struct mrc_bufs *bufs, uint32_t index)
{
	struct node *n = &bufs->nodes[index];
	uint32_t gone = n->next;

	bufs->root = tree_remove(bufs, bufs->root, gone);
	n->len_bytes += bufs->nodes[gone].len_bytes;
	n->next = bufs->nodes[gone].next;
	if (n->next != NIL)
		bufs->nodes[n->next].prev = index;
	node_put(bufs, gone);
}

int mrc_bufs_give(struct mrc_bufs *bufs, uint64_t offset)
{
	uint32_t index = tree_find(bufs, offset);
	struct node *n = &bufs->nodes[index];

	if (index == NIL || n->is_free)
		return -EINVAL;
	MRC_ASSERT(bufs->buf_count > 0);
	bufs->buf_count--;
	n->is_free = true;
	if (n->next != NIL && bufs->nodes[n->next].is_free)
		swallow_next(bufs, index);
	if (n->prev != NIL && bufs->nodes[n->prev].is_free) {
		index = n->prev;
		swallow_next(bufs, index);
	}
	tree_refresh(bufs, bufs->root, index);
	return 0;
}

uint32_t mrc_bufs_count(const struct mrc_bufs *bufs)
{
	return bufs->buf_count;
}

uint64_t mrc_bufs_largest(const struct mrc_bufs *bufs)
{
	return bufs->nodes[bufs->root].free_bytes_max;
}

/* Counts the nodes below `at`; UINT32_MAX when something is wrong there. */
static uint32_t tree_check(const struct mrc_bufs *bufs, uint32_t at, uint64_t low, uint64_t high)
{
	const struct node *n = &bufs->nodes[at];
	uint32_t left;
	uint32_t right;
	uint64_t max;

	if (at == NIL)
		return 0;
	left = tree_check(bufs, n->left, low, n->offset);
	right = tree_check(bufs, n->right, n->offset + 1, high);
	max = n->is_free ? n->len_bytes : 0;
	if (bufs->nodes[n->left].free_bytes_max > max)
		max = bufs->nodes[n->left].free_bytes_max;
	if (bufs->nodes[n->right].free_bytes_max > max)
		max = bufs->nodes[n->right].free_bytes_max;
	if (left == UINT32_MAX || right == UINT32_MAX || n->offset < low || n->offset >= high ||
	    n->free_bytes_max != max || (n->left != NIL && bufs->nodes[n->left].rank > n->rank) ||
	    (n->right != NIL && bufs->nodes[n->right].rank > n->rank))
		return UINT32_MAX;
	return left + right + 1;
}

bool mrc_bufs_check(const struct mrc_bufs *bufs)
{
	uint32_t node_count = 0;
	uint32_t buf_count = 0;
	uint64_t offset = 0;
	uint32_t prev = NIL;

	for (uint32_t at = bufs->first; at != NIL; at = bufs->nodes[at].next) {
		const struct node *n = &bufs->nodes[at];

		if (n->offset != offset || n->prev != prev || n->len_bytes == 0)
			return false;
		if (n->is_free && prev != NIL && bufs->nodes[prev].is_free)
			return false; /* two free neighbours: not coalesced */
		buf_count += !n->is_free;
		offset += n->len_bytes;
		prev = at;
		node_count++;
	}
	return offset == bufs->arena_bytes && buf_count == bufs->buf_count &&
	       tree_check(bufs, bufs->root, 0, UINT64_MAX) == node_count;
}
