/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_limits: zeros become the documented defaults, and all bounds work together. */
#include "engine_lab.h"

static void zeros_become_the_documented_defaults(void **state)
{
	struct mrc_limits l = {0};

	mrc_limits_complete(&l);
	assert_int_equal(l.channels_max, 1024);
	assert_int_equal(l.frames_in_flight_max, 1024);
	assert_int_equal(l.holds_max, 64);
	assert_int_equal(l.ranges_max, 4096);
	assert_int_equal(l.eager_bytes_max, 32 * 1024);
	assert_int_equal(l.frag_bytes_max, 128 * 1024);
	assert_int_equal(l.path_window_bytes_min, 256 * 1024);
	assert_int_equal(l.path_window_bytes_max, 4 * 1024 * 1024);
	assert_int_equal(l.suspect_floor_ns, MRC_MS);
	assert_int_equal(l.suspect_ceiling_ns, 200 * MRC_MS);
	assert_int_equal(l.probe_interval_ns, 20 * MRC_MS);
	assert_int_equal(l.probe_count, 3);
	assert_true(l.peer_silent_ns == 10 * MRC_S);
	assert_int_equal(l.backoff_min_ns, 5 * MRC_MS);
	assert_int_equal(l.backoff_max_ns, MRC_S);
	assert_int_equal(l.revive_ns, 500 * MRC_MS);
	assert_int_equal(l.hold_good_ns, MRC_S);
}

static void what_was_given_stays(void **state)
{
	struct mrc_limits l = {.channels_max = 3, .frames_in_flight_max = 128, .probe_count = 1},
			  again;

	mrc_limits_complete(&l);
	assert_int_equal(l.channels_max, 3);
	assert_int_equal(l.frames_in_flight_max, 128);
	assert_int_equal(l.probe_count, 1);
	again = l;
	mrc_limits_complete(&again);
	assert_memory_equal(&again, &l, sizeof(l));
}

static void bounds_are_forced_to_work_together(void **state)
{
	const struct {
		const char *name;
		struct mrc_limits in;
		size_t at;
		size_t size;
		uint64_t want;
	} rows[] = {
#define ROW(name, field, value, ...)              \
	{name,                                    \
	 {__VA_ARGS__},                           \
	 offsetof(struct mrc_limits, field),      \
	 sizeof(((struct mrc_limits *)0)->field), \
	 value}
		ROW("too many channels", channels_max, 16384, .channels_max = 1000000),
		ROW("frames: a power of two", frames_in_flight_max, 256,
		    .frames_in_flight_max = 129),
		ROW("frames: not fewer than control needs", frames_in_flight_max, 64,
		    .frames_in_flight_max = 1),
		ROW("frames: a bound", frames_in_flight_max, 1U << 20,
		    .frames_in_flight_max = UINT32_MAX),
		ROW("fragments: not above what decoding lets pass", frag_bytes_max,
		    MRC_FRAG_BYTES_MAX, .frag_bytes_max = MRC_FRAG_BYTES_MAX + 1),
		ROW("fragments: not tiny", frag_bytes_max, 1024, .frag_bytes_max = 1),
		ROW("a window holds two fragments", path_window_bytes_min, 2 * 4096,
		    .frag_bytes_max = 4096, .path_window_bytes_min = 1),
		ROW("largest window not below the least", path_window_bytes_max, 1 << 20,
		    .path_window_bytes_min = 1 << 20, .path_window_bytes_max = 1),
		ROW("ceiling not below the floor", suspect_ceiling_ns, MRC_S,
		    .suspect_floor_ns = MRC_S, .suspect_ceiling_ns = 1),
		ROW("largest backoff not below the first", backoff_max_ns, 2 * MRC_S,
		    .backoff_min_ns = 2 * MRC_S),
#undef ROW
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_limits l = rows[i].in;
		uint64_t got = 0;

		mrc_limits_complete(&l);
		if (rows[i].size == sizeof(uint32_t)) {
			uint32_t v;

			memcpy(&v, (const char *)&l + rows[i].at, sizeof(v));
			got = v;
		} else {
			memcpy(&got, (const char *)&l + rows[i].at, sizeof(got));
		}
		if (got != rows[i].want)
			fail_msg("%s: %llu, want %llu", rows[i].name, (unsigned long long)got,
				 (unsigned long long)rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeros_become_the_documented_defaults),
		cmocka_unit_test(what_was_given_stays),
		cmocka_unit_test(bounds_are_forced_to_work_together),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
