/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_arena - who has which part of a landing arena
 *
 * Hands out runs of whole pages, always the lowest that fit, so that memory
 * given back is used again while it is hot (but see mrcd_arena_rotate()). It keeps the books only and never
 * touches the memory itself. Nothing is allocated after mrcd_arena_new().
 *
 * Giving back what was not taken, or not in the same piece, is our own mistake
 * (MRC_ASSERT): callers keep their own record of what they hold.
 *
 * Units:   bytes; offsets count from the start of the client's arena.
 * Threads: one at a time (the worker's loop).
 */
#ifndef MRCD_ARENA_H
#define MRCD_ARENA_H

#include "mrc_base.h"

#define MRCD_ARENA_PAGE_BYTES 4096U

struct mrcd_arena;

/*
 * Keep the books of [start, start + len) of an arena; both are multiples of the page.
 * -EINVAL: they are not, or len is 0, or above 2^43. -ENOMEM.
 */
int mrcd_arena_new(uint64_t start_offset, uint64_t len_bytes, struct mrcd_arena **arena_out);
void mrcd_arena_free(struct mrcd_arena *arena);

/*
 * Take len bytes (0 counts as 1), rounded up to whole pages.
 * -ENOMEM: no contiguous room now. -EMSGSIZE: more than there will ever be.
 */
int mrcd_arena_take(struct mrcd_arena *arena, uint64_t len_bytes, uint64_t *offset_out);
/* Give back what was taken at this offset with this length. */
void mrcd_arena_give(struct mrcd_arena *arena, uint64_t offset, uint64_t len_bytes);

/*
 * Take exactly these bytes, in a piece that mrcd_arena_give() gives back: for books that are
 * opened anew over memory that is in use. -EINVAL: they lie beyond it, or begin within a page.
 * -EEXIST: some of it is taken.
 */
int mrcd_arena_claim(struct mrcd_arena *arena, uint64_t offset, uint64_t len_bytes);

/*
 * Use memory given back as late as may be, instead of at once: take what lies
 * behind the last run taken, and begin anew beyond span_bytes. For the hunt for
 * late writes (mrcd_poison.h).
 */
void mrcd_arena_rotate(struct mrcd_arena *arena, uint64_t span_bytes);

/* Whole pages taken, and all there are. */
uint64_t mrcd_arena_used_bytes(const struct mrcd_arena *arena);
uint64_t mrcd_arena_size_bytes(const struct mrcd_arena *arena);

#endif
