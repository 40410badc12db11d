/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_range: the set against a bitmap that does the same the slow way. */
#include "engine_lab.h"

enum { BYTES = 96, NODES = 12 };

struct model {
	bool here[BYTES];
	uint32_t count;
};

/* Nodes the model's set would need. */
static uint32_t model_ranges(const struct model *m)
{
	uint32_t ranges = 0;

	for (int i = 0; i < BYTES; i++)
		ranges += m->here[i] && (i == 0 || !m->here[i - 1]);
	return ranges;
}

static int64_t model_add(struct model *m, uint64_t start, uint64_t end)
{
	uint32_t before = m->count;

	for (uint64_t i = start; i < end; i++) {
		m->count += !m->here[i];
		m->here[i] = true;
	}
	return m->count - before;
}

static void compare(const struct mrc_range_pool *pool, const struct mrc_range_set *set,
		    const struct model *m)
{
	assert_int_equal(set->bytes, m->count);
	assert_int_equal(pool->node_count - pool->free_count, model_ranges(m));
	for (uint64_t at = 0; at < BYTES; at++) {
		uint64_t end = at + 1 + (at * 7) % (BYTES - at), until, want = at;
		uint64_t gap_start, gap_end, i = at;
		bool has = mrc_range_set_has(pool, set, at, end, &until);

		assert_int_equal(has, m->here[at]);
		while (want < end && m->here[want] == m->here[at])
			want++;
		assert_int_equal(until, want);

		while (i < end && m->here[i])
			i++;
		if (!mrc_range_set_gap(pool, set, at, end, &gap_start, &gap_end)) {
			assert_int_equal(i, end);
			continue;
		}
		assert_int_equal(gap_start, i);
		while (i < end && !m->here[i])
			i++;
		assert_int_equal(gap_end, i);
	}
}

static void a_set_does_what_a_bitmap_does(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed3};
	struct mrc_range_node nodes[NODES];
	struct mrc_range_pool pool;
	struct mrc_range_set set;
	uint32_t full = 0;

	mrc_range_pool_init(&pool, nodes, NODES);
	for (uint32_t run = 0; run < 500; run++) {
		struct model m = {0};

		mrc_range_set_init(&set);
		for (uint32_t step = 0; step < 60; step++) {
			uint64_t start = mrc_rng_next(&rng) % BYTES;
			uint64_t end = start + mrc_rng_next(&rng) % MRC_MIN(6, BYTES - start + 1);
			struct model after = m;
			int64_t want = model_add(&after, start, end);
			int64_t got = mrc_range_set_add(&pool, &set, start, end);

			if (model_ranges(&after) > NODES) {
				assert_int_equal(got, -ENOBUFS);
				full++;
			} else {
				assert_int_equal(got, want);
				m = after;
			}
			compare(&pool, &set, &m);
		}
		mrc_range_set_clear(&pool, &set);
		assert_int_equal(pool.free_count, NODES);
		assert_int_equal(set.bytes, 0);
	}
	assert_true(full > 0); /* the pool was small enough to matter */
}

static void sets_share_one_pool_and_its_end(void **state)
{
	struct mrc_range_node nodes[3];
	struct mrc_range_pool pool;
	struct mrc_range_set a, b;

	mrc_range_pool_init(&pool, nodes, 3);
	mrc_range_set_init(&a);
	mrc_range_set_init(&b);
	assert_int_equal(mrc_range_set_add(&pool, &a, 0, 1), 1);
	assert_int_equal(mrc_range_set_add(&pool, &b, 0, 1), 1);
	assert_int_equal(mrc_range_set_add(&pool, &a, 10, 11), 1);
	assert_int_equal(mrc_range_set_add(&pool, &b, 10, 11), -ENOBUFS);
	assert_int_equal(b.bytes, 1); /* nothing changed */
	/* What touches a range needs no node. */
	assert_int_equal(mrc_range_set_add(&pool, &b, 1, 2), 1);
	/* Closing the gap gives one back. */
	assert_int_equal(mrc_range_set_add(&pool, &a, 1, 10), 9);
	assert_int_equal(mrc_range_set_add(&pool, &b, 10, 11), 1);
	assert_int_equal(pool.free_count, 0);
}

static void a_pool_of_none_refuses(void **state)
{
	struct mrc_range_pool pool;
	struct mrc_range_set set;
	uint64_t start, end;

	mrc_range_pool_init(&pool, NULL, 0);
	mrc_range_set_init(&set);
	assert_int_equal(mrc_range_set_add(&pool, &set, 0, 1), -ENOBUFS);
	assert_int_equal(mrc_range_set_add(&pool, &set, 5, 5), 0); /* nothing to remember */
	assert_true(mrc_range_set_gap(&pool, &set, 3, 9, &start, &end));
	assert_int_equal(start, 3);
	assert_int_equal(end, 9);
	assert_false(mrc_range_set_gap(&pool, &set, 9, 9, &start, &end));
}

static void numbers_near_the_end_of_64_bits_work(void **state)
{
	struct mrc_range_node nodes[4];
	struct mrc_range_pool pool;
	struct mrc_range_set set;
	uint64_t until;

	mrc_range_pool_init(&pool, nodes, 4);
	mrc_range_set_init(&set);
	assert_int_equal(mrc_range_set_add(&pool, &set, UINT64_MAX - 10, UINT64_MAX), 10);
	assert_int_equal(mrc_range_set_add(&pool, &set, UINT64_MAX - 20, UINT64_MAX - 5), 10);
	assert_true(mrc_range_set_has(&pool, &set, UINT64_MAX - 1, UINT64_MAX, &until));
	assert_true(until == UINT64_MAX);
}

static void popping_takes_the_first_range_and_gives_its_node_back(void **state)
{
	struct mrc_range_node nodes[3];
	struct mrc_range_pool pool;
	struct mrc_range_set set;
	uint64_t start = 77, end = 88;

	mrc_range_pool_init(&pool, nodes, 3);
	mrc_range_set_init(&set);
	assert_false(mrc_range_set_pop(&pool, &set, &start, &end));
	assert_int_equal(mrc_range_set_add(&pool, &set, 40, 50), 10);
	assert_int_equal(mrc_range_set_add(&pool, &set, 10, 15), 5);
	assert_int_equal(mrc_range_set_add(&pool, &set, 20, 27), 7);
	assert_int_equal(mrc_range_set_add(&pool, &set, 60, 61), -ENOBUFS);
	assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
	assert_int_equal(start, 10);
	assert_int_equal(end, 15);
	assert_int_equal(set.bytes, 17);
	assert_int_equal(pool.free_count, 1);
	/* The node is there for another. */
	assert_int_equal(mrc_range_set_add(&pool, &set, 60, 61), 1);
	assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
	assert_int_equal(start, 20);
	assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
	assert_int_equal(start, 40);
	assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
	assert_int_equal(start, 60);
	assert_int_equal(set.bytes, 0);
	assert_int_equal(pool.free_count, 3);
	assert_false(mrc_range_set_pop(&pool, &set, &start, &end));
}

/* A conn has thousands, which is most of its memory; most conns never need a hundredth of them. */
static void nodes_are_not_touched_before_they_are_needed(void **state)
{
	struct mrc_range_node nodes[4], untouched[4];
	struct mrc_range_pool pool;
	struct mrc_range_set set;
	uint64_t start, end;

	memset(nodes, 0xa5, sizeof(nodes));
	memset(untouched, 0xa5, sizeof(untouched));
	mrc_range_pool_init(&pool, nodes, 4);
	assert_memory_equal(nodes, untouched, sizeof(nodes));
	mrc_range_set_init(&set);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(mrc_range_set_add(&pool, &set, 10 * i, 10 * i + 1), 1);
		assert_int_equal(mrc_range_set_add(&pool, &set, 10 * i + 2, 10 * i + 3), 1);
		assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
		assert_true(mrc_range_set_pop(&pool, &set, &start, &end));
	}
	assert_memory_equal(&nodes[2], &untouched[2], 2 * sizeof(nodes[0]));
	assert_int_equal(pool.free_count, 4);
}

/* The last nodes are kept for one kind of need; what needs none is always remembered. */
static void kept_nodes_are_refused_and_merging_goes_on(void **state)
{
	struct mrc_range_node nodes[4];
	struct mrc_range_pool pool;
	struct mrc_range_set set;

	mrc_range_pool_init(&pool, nodes, 4);
	mrc_range_set_init(&set);
	pool.kept = 2;
	assert_int_equal(mrc_range_set_add(&pool, &set, 0, 5), 5);
	assert_int_equal(mrc_range_set_add(&pool, &set, 10, 15), 5);
	assert_int_equal(mrc_range_set_add(&pool, &set, 20, 25), -ENOBUFS);
	assert_int_equal(pool.free_count, 2);
	assert_int_equal(set.bytes, 10);
	assert_int_equal(mrc_range_set_add(&pool, &set, 15, 18), 3);
	/* With a bound of its own it may go further, to that bound. */
	assert_int_equal(mrc_range_set_add_keeping(&pool, &set, 20, 25, 1), 5);
	assert_int_equal(mrc_range_set_add_keeping(&pool, &set, 30, 35, 1), -ENOBUFS);
	assert_int_equal(mrc_range_set_add_keeping(&pool, &set, 30, 35, 0), 5);
	assert_int_equal(mrc_range_set_add_keeping(&pool, &set, 40, 45, 0), -ENOBUFS);
	/* All are out: closing the gaps needs none and gives three back. */
	assert_int_equal(mrc_range_set_add(&pool, &set, 0, 35), 12);
	assert_int_equal(pool.free_count, 3);
	assert_int_equal(set.bytes, 35);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_does_what_a_bitmap_does),
		cmocka_unit_test(sets_share_one_pool_and_its_end),
		cmocka_unit_test(a_pool_of_none_refuses),
		cmocka_unit_test(popping_takes_the_first_range_and_gives_its_node_back),
		cmocka_unit_test(kept_nodes_are_refused_and_merging_goes_on),
		cmocka_unit_test(nodes_are_not_touched_before_they_are_needed),
		cmocka_unit_test(numbers_near_the_end_of_64_bits_work),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
