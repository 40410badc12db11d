/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_arena - see mrcd_arena.h
 *
 * Two bits a page: `used`, and `first` where a taken run begins. The second
 * lets a wrong give be told from a right one. Bits past the end are set in
 * both, so that no search needs a bound check and every run ends at one.
 */
#include "mrcd_arena.h"

#include <errno.h>
#include <stdlib.h>

#define WORD_BITS 64U

struct mrcd_arena {
	uint64_t start_offset;
	uint32_t page_count;
	uint32_t used_count;
	uint32_t word_count;
	uint32_t hint;   /* no page below it is free */
	uint32_t span;   /* 0: always the lowest; else how far to rotate */
	uint32_t next;   /* rotating: behind the last run taken */
	uint64_t *used;  /* ours; word_count words */
	uint64_t *first; /* ours; word_count words */
};

static bool bit_is_set(const uint64_t *bits, uint32_t at)
{
	return bits[at / WORD_BITS] >> (at % WORD_BITS) & 1;
}

/* Set or clear [at, at + count). */
static void bits_write(uint64_t *bits, uint32_t at, uint32_t count, bool value)
{
	while (count > 0) {
		uint32_t shift = at % WORD_BITS;
		uint32_t len = MRC_MIN(count, WORD_BITS - shift);
		uint64_t mask = (len == WORD_BITS ? UINT64_MAX : (1ULL << len) - 1) << shift;

		if (value)
			bits[at / WORD_BITS] |= mask;
		else
			bits[at / WORD_BITS] &= ~mask;
		at += len;
		count -= len;
	}
}

/* The first page from `at` on whose `used` bit has this value; page_count when there is none. */
static uint32_t page_find(const struct mrcd_arena *arena, uint32_t at, bool is_used)
{
	uint32_t word = at / WORD_BITS;
	uint64_t flip = is_used ? 0 : UINT64_MAX;
	uint64_t bits;

	if (at >= arena->page_count)
		return arena->page_count;
	bits = (arena->used[word] ^ flip) & (UINT64_MAX << (at % WORD_BITS));
	while (bits == 0) {
		if (++word == arena->word_count)
			return arena->page_count;
		bits = arena->used[word] ^ flip;
	}
	at = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
	return MRC_MIN(at, arena->page_count);
}

static uint64_t pages_of(uint64_t len_bytes)
{
	if (len_bytes == 0)
		return 1;
	return len_bytes / MRCD_ARENA_PAGE_BYTES + (len_bytes % MRCD_ARENA_PAGE_BYTES != 0);
}

int mrcd_arena_new(uint64_t start_offset, uint64_t len_bytes, struct mrcd_arena **arena_out)
{
	struct mrcd_arena *arena;
	uint32_t spare;

	if (len_bytes == 0 || len_bytes > 1ULL << 43 || len_bytes % MRCD_ARENA_PAGE_BYTES != 0 ||
	    start_offset % MRCD_ARENA_PAGE_BYTES != 0)
		return -EINVAL;
	arena = calloc(1, sizeof(*arena));
	if (arena == NULL)
		return -ENOMEM;
	arena->start_offset = start_offset;
	arena->page_count = (uint32_t)(len_bytes / MRCD_ARENA_PAGE_BYTES);
	arena->word_count = arena->page_count / WORD_BITS + 1; /* at least one bit past the end */
	arena->used = calloc(arena->word_count, sizeof(*arena->used));
	arena->first = calloc(arena->word_count, sizeof(*arena->first));
	if (arena->used == NULL || arena->first == NULL) {
		mrcd_arena_free(arena);
		return -ENOMEM;
	}
	spare = arena->word_count * WORD_BITS - arena->page_count;
	bits_write(arena->used, arena->page_count, spare, true);
	bits_write(arena->first, arena->page_count, spare, true);
	*arena_out = arena;
	return 0;
}

void mrcd_arena_free(struct mrcd_arena *arena)
{
	if (arena == NULL)
		return;
	free(arena->used);
	free(arena->first);
	free(arena);
}

/* The lowest run of free pages from `begin` on. */
static bool run_take(struct mrcd_arena *arena, uint32_t begin, uint32_t count, uint64_t *offset_out)
{
	begin = page_find(arena, begin, false);
	while (arena->page_count - begin >= count) {
		uint32_t end = page_find(arena, begin, true);

		if (end - begin >= count) {
			bits_write(arena->used, begin, count, true);
			bits_write(arena->first, begin, 1, true);
			arena->used_count += count;
			if (begin == arena->hint)
				arena->hint = begin + count;
			if (arena->span > 0)
				arena->next = begin + count < arena->span ? begin + count : 0;
			*offset_out = arena->start_offset + (uint64_t)begin * MRCD_ARENA_PAGE_BYTES;
			return true;
		}
		begin = page_find(arena, end, false);
	}
	return false;
}

int mrcd_arena_take(struct mrcd_arena *arena, uint64_t len_bytes, uint64_t *offset_out)
{
	uint64_t wanted = pages_of(len_bytes);
	uint32_t count;
	uint32_t begin;

	if (wanted > arena->page_count)
		return -EMSGSIZE;
	count = (uint32_t)wanted;
	if (count > arena->page_count - arena->used_count)
		return -ENOMEM;
	begin = page_find(arena, arena->hint, false);
	arena->hint = begin;
	if (arena->next > begin && run_take(arena, arena->next, count, offset_out))
		return 0;
	return run_take(arena, begin, count, offset_out) ? 0 : -ENOMEM;
}

int mrcd_arena_claim(struct mrcd_arena *arena, uint64_t offset, uint64_t len_bytes)
{
	uint64_t wanted = pages_of(len_bytes);
	uint64_t begin = (offset - arena->start_offset) / MRCD_ARENA_PAGE_BYTES;
	uint32_t at, count;

	if (offset < arena->start_offset || offset % MRCD_ARENA_PAGE_BYTES != 0 ||
	    begin >= arena->page_count || wanted > arena->page_count - begin)
		return -EINVAL;
	at = (uint32_t)begin;
	count = (uint32_t)wanted;
	if (bit_is_set(arena->used, at) || page_find(arena, at, true) < at + count)
		return -EEXIST;
	bits_write(arena->used, at, count, true);
	bits_write(arena->first, at, 1, true);
	arena->used_count += count;
	return 0;
}

void mrcd_arena_rotate(struct mrcd_arena *arena, uint64_t span_bytes)
{
	arena->span = (uint32_t)MRC_MIN(pages_of(span_bytes), (uint64_t)arena->page_count);
}

void mrcd_arena_give(struct mrcd_arena *arena, uint64_t offset, uint64_t len_bytes)
{
	uint64_t wanted = pages_of(len_bytes);
	uint64_t at = (offset - arena->start_offset) / MRCD_ARENA_PAGE_BYTES;
	uint32_t begin;
	uint32_t count;

	MRC_ASSERT(offset >= arena->start_offset);
	MRC_ASSERT((offset - arena->start_offset) % MRCD_ARENA_PAGE_BYTES == 0);
	MRC_ASSERT(at < arena->page_count);
	MRC_ASSERT(wanted <= arena->page_count - at);
	begin = (uint32_t)at;
	count = (uint32_t)wanted;
	/* A run taken as one piece begins here, is all in use, and ends where we say. */
	MRC_ASSERT(bit_is_set(arena->used, begin));
	MRC_ASSERT(bit_is_set(arena->first, begin));
	MRC_ASSERT(page_find(arena, begin, false) >= begin + count);
	for (uint32_t i = begin + 1; i < begin + count; i++)
		MRC_ASSERT(!bit_is_set(arena->first, i));
	MRC_ASSERT(bit_is_set(arena->first, begin + count) ||
		   !bit_is_set(arena->used, begin + count));

	bits_write(arena->used, begin, count, false);
	bits_write(arena->first, begin, 1, false);
	MRC_ASSERT(arena->used_count >= count);
	arena->used_count -= count;
	arena->hint = MRC_MIN(arena->hint, begin);
}

uint64_t mrcd_arena_used_bytes(const struct mrcd_arena *arena)
{
	return (uint64_t)arena->used_count * MRCD_ARENA_PAGE_BYTES;
}

uint64_t mrcd_arena_size_bytes(const struct mrcd_arena *arena)
{
	return (uint64_t)arena->page_count * MRCD_ARENA_PAGE_BYTES;
}
