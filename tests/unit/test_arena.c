/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_arena: lowest first, whole pages, and never the same page twice. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_arena.h"

#define PAGE  ((uint64_t)MRCD_ARENA_PAGE_BYTES)
#define START (16 * PAGE)

static struct mrcd_arena *arena_new(uint64_t pages)
{
	struct mrcd_arena *arena;

	assert_int_equal(mrcd_arena_new(START, pages * PAGE, &arena), 0);
	return arena;
}

static uint64_t take(struct mrcd_arena *arena, uint64_t len_bytes)
{
	uint64_t offset = UINT64_MAX;

	assert_int_equal(mrcd_arena_take(arena, len_bytes, &offset), 0);
	return offset;
}

static void arena_refuses_odd_sizes(void **state)
{
	static const struct {
		const char *name;
		uint64_t start, len;
	} cases[] = {
		{"empty", 0, 0},
		{"odd length", 0, PAGE + 1},
		{"odd start", 1, PAGE},
		{"too large", 0, (1ULL << 43) + PAGE},
	};
	struct mrcd_arena *arena = NULL;

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++)
		if (mrcd_arena_new(cases[i].start, cases[i].len, &arena) != -EINVAL)
			fail_msg("%s was taken", cases[i].name);
	mrcd_arena_free(NULL);
}

static void arena_rounds_up_to_pages(void **state)
{
	static const struct {
		uint64_t len_bytes, pages;
	} cases[] = {{0, 1}, {1, 1}, {PAGE, 1}, {PAGE + 1, 2}, {70 * PAGE, 70}, {100 * PAGE, 100}};
	struct mrcd_arena *arena = arena_new(100);

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		uint64_t offset = take(arena, cases[i].len_bytes);

		assert_int_equal(offset, START);
		assert_int_equal(mrcd_arena_used_bytes(arena), cases[i].pages * PAGE);
		mrcd_arena_give(arena, offset, cases[i].len_bytes);
		assert_int_equal(mrcd_arena_used_bytes(arena), 0);
	}
	mrcd_arena_free(arena);
}

static void arena_takes_the_lowest_that_fits(void **state)
{
	struct mrcd_arena *arena = arena_new(10);
	uint64_t a = take(arena, 2 * PAGE), b = take(arena, 3 * PAGE), c = take(arena, 2 * PAGE);

	assert_int_equal(a, START);
	assert_int_equal(b, START + 2 * PAGE);
	assert_int_equal(c, START + 5 * PAGE);
	mrcd_arena_give(arena, a, 2 * PAGE);
	assert_int_equal(take(arena, 3 * PAGE), START + 7 * PAGE);
	assert_int_equal(take(arena, PAGE), START);
	assert_int_equal(take(arena, PAGE), START + PAGE);
	mrcd_arena_give(arena, b, 3 * PAGE);
	assert_int_equal(take(arena, 3 * PAGE), b);
	mrcd_arena_free(arena);
}

static void arena_tells_full_from_never(void **state)
{
	struct mrcd_arena *arena = arena_new(4);
	uint64_t offset = 77;
	uint64_t a = take(arena, PAGE), b = take(arena, PAGE);

	assert_int_equal(mrcd_arena_take(arena, 5 * PAGE, &offset), -EMSGSIZE);
	assert_int_equal(mrcd_arena_take(arena, UINT64_MAX, &offset), -EMSGSIZE);
	assert_int_equal(mrcd_arena_take(arena, 3 * PAGE, &offset), -ENOMEM);
	mrcd_arena_give(arena, a, PAGE);
	/* Three are free, but not together. */
	assert_int_equal(mrcd_arena_take(arena, 3 * PAGE, &offset), -ENOMEM);
	assert_int_equal(offset, 77);
	mrcd_arena_give(arena, b, PAGE);
	assert_int_equal(take(arena, 4 * PAGE), START);
	assert_int_equal(mrcd_arena_used_bytes(arena), mrcd_arena_size_bytes(arena));
	mrcd_arena_free(arena);
}

/* In a child, with abort() expected. */
static void give_must_abort(struct mrcd_arena *arena, uint64_t offset, uint64_t len_bytes,
			    const char *name)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = {0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		mrcd_arena_give(arena, offset, len_bytes);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		fail_msg("%s went unnoticed", name);
}

static void arena_asserts_wrong_gives(void **state)
{
	struct mrcd_arena *arena = arena_new(70);
	uint64_t a = take(arena, 2 * PAGE), b = take(arena, 2 * PAGE), c = take(arena, 2 * PAGE);
	const struct {
		const char *name;
		uint64_t offset, len_bytes;
	} cases[] = {
		{"never taken", START + 6 * PAGE, PAGE},
		{"given before", b, 2 * PAGE},
		{"below the arena", 0, PAGE},
		{"beyond the arena", START + 70 * PAGE, PAGE},
		{"off the page", a + 1, PAGE},
		{"from the middle", a + PAGE, PAGE},
		{"too little", a, PAGE},
		{"too much", a, 3 * PAGE},
		{"past the end", c, 68 * PAGE},
	};

	mrcd_arena_give(arena, b, 2 * PAGE);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++)
		give_must_abort(arena, cases[i].offset, cases[i].len_bytes, cases[i].name);
	assert_int_equal(take(arena, 2 * PAGE), b);
	give_must_abort(arena, a, 4 * PAGE, "two pieces as one");
	mrcd_arena_free(arena);
}

static void arena_that_rotates_uses_again_what_was_given_back_longest_ago(void **state)
{
	struct mrcd_arena *arena = arena_new(10);
	uint64_t first, last;

	(void)state;
	mrcd_arena_rotate(arena, 8 * PAGE);
	/* Around the first eight pages, in pieces of three: at 0, 3, 6, 0, ... */
	for (uint32_t i = 0; i < 7; i++) {
		first = take(arena, 3 * PAGE);
		assert_int_equal(first, START + i % 3 * 3 * PAGE);
		mrcd_arena_give(arena, first, 3 * PAGE);
	}
	/* What does not fit behind the last is looked for everywhere. */
	last = take(arena, 8 * PAGE);
	assert_int_equal(last, START);
	first = take(arena, 2 * PAGE);
	assert_int_equal(first, START + 8 * PAGE);
	assert_int_equal(mrcd_arena_take(arena, PAGE, &first), -ENOMEM);
	mrcd_arena_give(arena, last, 8 * PAGE);
	assert_int_equal(take(arena, 8 * PAGE), START);
	mrcd_arena_free(arena);
}

/* Against a byte a page: random takes and gives, for sizes around the words of the bitmap. */
static void arena_agrees_with_a_plain_model(void **state)
{
	static const uint32_t sizes[] = {1, 63, 64, 65, 127, 128, 200};
	struct mrc_rng rng = {.state = 0x5eed11};

	for (size_t s = 0; s < MRC_ARRAY_LEN(sizes); s++) {
		uint32_t page_count = sizes[s];
		struct mrcd_arena *arena = arena_new(page_count);
		uint8_t model[200] = {0};
		struct {
			uint32_t at, count;
		} held[200];
		uint32_t held_count = 0, used = 0;

		for (uint32_t step = 0; step < 20000; step++) {
			uint64_t offset = 0;

			if (held_count > 0 && mrc_rng_next(&rng) % 2 == 0) {
				uint32_t pick = (uint32_t)(mrc_rng_next(&rng) % held_count);
				uint32_t at = held[pick].at, count = held[pick].count;

				mrcd_arena_give(arena, START + at * PAGE, count * PAGE);
				memset(model + at, 0, count);
				used -= count;
				held[pick] = held[--held_count];
			} else {
				uint32_t bound = mrc_rng_next(&rng) % 8 == 0 ? page_count : 9;
				uint32_t count = 1 + (uint32_t)(mrc_rng_next(&rng) % bound);
				uint32_t at = 0, run = 0;
				int want = count > page_count ? -EMSGSIZE : -ENOMEM;

				for (uint32_t i = 0; i < page_count && want == -ENOMEM; i++) {
					run = model[i] ? 0 : run + 1;
					if (run == count) {
						at = i + 1 - count;
						want = 0;
					}
				}
				if (mrcd_arena_take(arena, count * PAGE, &offset) != want)
					fail_msg("size %u step %u: not %d", page_count, step, want);
				if (want != 0)
					continue;
				assert_int_equal(offset, START + at * PAGE);
				memset(model + at, 1, count);
				used += count;
				held[held_count].at = at;
				held[held_count++].count = count;
			}
			assert_int_equal(mrcd_arena_used_bytes(arena), used * PAGE);
		}
		mrcd_arena_free(arena);
	}
}

static void arena_claims_what_is_free_and_gives_it_back(void **state)
{
	static const struct {
		const char *name;
		uint64_t offset, len_bytes;
		int want;
	} cases[] = {
		{"a run", 65536 + 8192, 3 * 4096, 0},
		{"the same", 65536 + 8192, 3 * 4096, -EEXIST},
		{"over its end", 65536 + 4 * 4096, 2 * 4096, -EEXIST},
		{"over its begin", 65536 + 4096, 4097, -EEXIST},
		{"behind it", 65536 + 5 * 4096, 1, 0},
		{"before it, no bytes", 65536, 0, 0},
		{"all that is left", 65536 + 6 * 4096, 2 * 4096, 0},
		{"beyond the end", 65536 + 7 * 4096, 2 * 4096, -EINVAL},
		{"outside", 65536 + 8 * 4096, 1, -EINVAL},
		{"below", 0, 4096, -EINVAL},
		{"within a page", 65536 + 4096 + 1, 1, -EINVAL},
	};
	struct mrcd_arena *arena;
	uint64_t offset;

	(void)state;
	assert_int_equal(mrcd_arena_new(65536, 8 * 4096, &arena), 0);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		int r = mrcd_arena_claim(arena, cases[i].offset, cases[i].len_bytes);

		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].name, r);
	}
	assert_int_equal(mrcd_arena_used_bytes(arena), 7 * 4096);
	assert_int_equal(mrcd_arena_take(arena, 4096, &offset), 0);
	assert_int_equal(offset, 65536 + 4096);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		if (cases[i].want == 0)
			mrcd_arena_give(arena, cases[i].offset, cases[i].len_bytes);
	}
	assert_int_equal(mrcd_arena_used_bytes(arena), 4096);
	mrcd_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_refuses_odd_sizes),
		cmocka_unit_test(arena_rounds_up_to_pages),
		cmocka_unit_test(arena_takes_the_lowest_that_fits),
		cmocka_unit_test(arena_tells_full_from_never),
		cmocka_unit_test(arena_asserts_wrong_gives),
		cmocka_unit_test(arena_that_rotates_uses_again_what_was_given_back_longest_ago),
		cmocka_unit_test(arena_agrees_with_a_plain_model),
		cmocka_unit_test(arena_claims_what_is_free_and_gives_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
