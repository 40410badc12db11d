/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_buf - who has which part of the send arena
 *
 * Takes the lowest place that is large enough, so that a program with few
 * buffers under way keeps using the same, cached, memory. All segments of the
 * arena, free and used, are nodes of one tree ordered by offset; every node
 * knows the largest free segment below it. So taking, finding and giving back
 * cost the logarithm of the number of segments. The nodes lie outside the
 * arena: a stray write into a buffer cannot break the allocator.
 *
 * Units:     bytes; offsets into the arena.
 * Ownership: the arena's memory is not touched at all.
 * Threads:   one caller at a time.
 * I/O, time: none. Memory is taken in mrc_bufs_new() only.
 */
#ifndef MRC_BUF_H
#define MRC_BUF_H

#include "mrc_lib.h"

#define MRC_BUF_ALIGN_BYTES 64U
#define MRC_BUFS_MAX        65536U /* buffers at once */

struct mrc_bufs;

/* For an arena of this size; what is behind the last whole 64 bytes is not used. -EINVAL, -ENOMEM. */
int mrc_bufs_new(uint64_t arena_bytes, uint32_t bufs_max, struct mrc_bufs **bufs_out);
void mrc_bufs_free(struct mrc_bufs *bufs);

/*
 * Take len_bytes (0 counts as 1). On error nothing has changed.
 * -EMSGSIZE  larger than the arena
 * -ENOMEM    no contiguous space now, or bufs_max buffers are out
 */
int mrc_bufs_take(struct mrc_bufs *bufs, uint64_t len_bytes, uint64_t *offset_out);

/* Give back what mrc_bufs_take() answered. -EINVAL: no buffer begins there. */
int mrc_bufs_give(struct mrc_bufs *bufs, uint64_t offset);

/* How many are out; the largest that could be taken now. */
uint32_t mrc_bufs_count(const struct mrc_bufs *bufs);
uint64_t mrc_bufs_largest(const struct mrc_bufs *bufs);

/* For tests: walk everything; true when order, sums, coalescing and the tree are right. */
bool mrc_bufs_check(const struct mrc_bufs *bufs);

#endif
