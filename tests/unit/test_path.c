/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_path: records in order, room, windows, and what a path is judged by. */
#include "engine_lab.h"

enum { RECORDS = 64 };

struct fixture {
	struct mrc_record records[RECORDS];
	struct mrc_path path;
	struct mrc_limits limits;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	mrc_limits_complete(&f->limits);
	mrc_path_init(&f->path, 2, f->records, RECORDS);
	mrc_path_begin(&f->path, 1, f->limits.path_window_bytes_min, f->limits.suspect_floor_ns,
		       MRC_S);
}

static void records_leave_in_the_order_they_came(void **state)
{
	struct fixture f;
	uint64_t pushed = 0, popped = 0;
	struct mrc_rng rng = {.state = 0x5eed4};

	fixture_init(&f);
	for (uint32_t round = 0; round < 2000; round++) {
		struct mrc_record *record;
		uint64_t count;

		while (mrc_path_has_room(&f.path, MRC_ROOM_CONTROL) && mrc_rng_next(&rng) % 8) {
			record = mrc_path_push(&f.path, true, 10, MRC_S + round);
			record->msg = pushed++;
			assert_int_equal(f.path.posted, pushed);
		}
		MRC_ASSERT(popped <= pushed);
		count = popped + mrc_rng_next(&rng) % (pushed - popped + 1);
		f.path.sent = pushed;
		while ((record = mrc_path_pop(&f.path, count)))
			assert_int_equal(record->msg, popped++);
		assert_int_equal(popped, count);
		assert_int_equal(f.path.acked, count);
		assert_int_equal(f.path.bytes_in_flight, 10 * (pushed - popped));
		/* A count heard before takes nothing off. */
		assert_null(mrc_path_pop(&f.path, count ? count - 1 : 0));
	}
	assert_true(pushed > 10 * RECORDS);
}

/* How many frames may be posted one after the other, each taking one place. */
static uint32_t fill(struct fixture *f, enum mrc_room room)
{
	uint32_t count = 0;

	while (mrc_path_has_room(&f->path, room)) {
		mrc_path_push(&f->path, true, 0, MRC_S);
		count++;
	}
	return count;
}

static void each_leaves_the_last_places_to_those_below_it(void **state)
{
	const struct {
		const char *name;
		uint32_t share;
		uint32_t data, control, news; /* places each may take, one after the other */
	} rows[] = {
		{"records alone", 0, RECORDS - 32, 31, 1},
		{"the least share", MRC_SHARE_MIN, MRC_SHARE_MIN - 3, 2, 1},
		{"a share of 16", 16, 11, 4, 1},
		{"a share above the records", 4 * RECORDS, RECORDS - 32, 31, 1},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		f.path.share = rows[i].share;
		if (fill(&f, MRC_ROOM_DATA) != rows[i].data)
			fail_msg("%s: data", rows[i].name);
		if (fill(&f, MRC_ROOM_CONTROL) != rows[i].control)
			fail_msg("%s: control", rows[i].name);
		/* An ACK without news of this path has no better right to the last place. */
		assert_int_equal(fill(&f, MRC_ROOM_ACK), 0);
		f.path.taken = 1;
		if (fill(&f, MRC_ROOM_ACK) != rows[i].news)
			fail_msg("%s: an ACK with news", rows[i].name);
		f.path.taken_told = 1;
		assert_false(mrc_path_has_room(&f.path, MRC_ROOM_ACK));
	}
}

/* An ACK without news takes what control may take, the place before the last. */
static void an_ack_without_news_leaves_the_last_place(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.path.share = MRC_SHARE_MIN;
	assert_int_equal(fill(&f, MRC_ROOM_ACK), MRC_SHARE_MIN - 1);
	/* What the peer took in frees a place of the share, though the rail still reads it. */
	while (mrc_path_pop(&f.path, 2))
		;
	assert_int_equal(f.path.sent, 0);
	assert_int_equal(fill(&f, MRC_ROOM_ACK), 2);
}

/* A record serves the acknowledgement and the rail's own completion. */
static void a_record_is_free_when_it_is_acked_and_no_longer_read(void **state)
{
	struct fixture f;

	fixture_init(&f);
	while (mrc_path_has_room(&f.path, MRC_ROOM_CONTROL))
		mrc_path_push(&f.path, true, 0, MRC_S);
	while (mrc_path_pop(&f.path, 10))
		;
	assert_false(mrc_path_has_room(&f.path, MRC_ROOM_CONTROL)); /* the rail still reads them */
	f.path.sent = 4;
	assert_true(mrc_path_has_room(&f.path, MRC_ROOM_CONTROL));
	for (int i = 0; i < 4; i++)
		mrc_path_push(&f.path, true, 0, MRC_S);
	assert_false(mrc_path_has_room(&f.path, MRC_ROOM_CONTROL));
	f.path.sent = f.path.posted; /* and now acknowledgements are what it waits for */
	for (int i = 0; i < 6; i++)
		mrc_path_push(&f.path, true, 0, MRC_S);
	assert_false(mrc_path_has_room(&f.path, MRC_ROOM_CONTROL));
}

static void only_what_elicits_an_answer_is_waited_for(void **state)
{
	struct fixture f;
	struct mrc_record newest;

	fixture_init(&f);
	mrc_path_push(&f.path, false, 0, MRC_S + 1);
	assert_true(f.path.oldest_sent_ns == MRC_NEVER);
	mrc_path_push(&f.path, true, 0, MRC_S + 2);
	mrc_path_push(&f.path, false, 0, MRC_S + 3);
	mrc_path_push(&f.path, true, 0, MRC_S + 4);
	assert_true(f.path.oldest_sent_ns == MRC_S + 2);
	assert_true(f.path.elicited_ns == MRC_S + 4);

	mrc_path_pop(&f.path, 1);
	mrc_path_acked(&f.path, NULL, 0, &f.limits, MRC_S + 100);
	assert_true(f.path.oldest_sent_ns == MRC_S + 2);
	assert_int_equal(f.path.rtt.smoothed_ns, 0); /* no sample from what owes no answer */
	newest = *mrc_path_pop(&f.path, 2);
	mrc_path_acked(&f.path, &newest, 0, &f.limits, MRC_S + 100);
	assert_true(f.path.oldest_sent_ns == MRC_S + 4);
	assert_true(f.path.answered_sent_ns == MRC_S + 2);
	assert_int_equal(f.path.rtt.smoothed_ns, 98);
	while (mrc_path_pop(&f.path, 4))
		;
	mrc_path_acked(&f.path, &newest, 0, &f.limits, MRC_S + 100);
	assert_true(f.path.oldest_sent_ns == MRC_NEVER);
}

static void an_epoch_begins_with_nothing_in_flight_and_nothing_known(void **state)
{
	struct fixture f;
	struct mrc_record newest;

	fixture_init(&f);
	mrc_path_push(&f.path, true, 50000, MRC_S);
	mrc_path_push(&f.path, true, 50000, MRC_S);
	newest = *mrc_path_pop(&f.path, 1);
	mrc_path_acked(&f.path, &newest, 50000, &f.limits, MRC_S + MRC_MS);
	f.path.taken = 17;
	f.path.tell_fence = f.path.do_fence = f.path.do_strip = true;
	mrc_path_begin(&f.path, 4, 1234, f.limits.suspect_floor_ns, 2 * MRC_S);
	assert_int_equal(f.path.epoch, 4);
	assert_int_equal(f.path.epoch_last, 4);
	assert_int_equal(f.path.posted + f.path.acked + f.path.sent + f.path.taken, 0);
	assert_int_equal(f.path.taken_prev, 17); /* the peer may still ask */
	assert_int_equal(f.path.bytes_in_flight, 0);
	assert_true(f.path.oldest_sent_ns == MRC_NEVER);
	assert_int_equal(f.path.rtt.smoothed_ns, 0);
	assert_int_equal(f.path.rate.best, 0);
	assert_int_equal(f.path.window_bytes, 1234);
	assert_true(f.path.is_connected);
	assert_false(f.path.tell_fence || f.path.do_fence || f.path.do_strip);
}

/* Send and have acknowledged `bytes` in `span_ns`, the window full. */
static void measure(struct fixture *f, uint32_t bytes, uint64_t span_ns, uint64_t now_ns)
{
	struct mrc_record newest;

	f->path.window_bytes = 1;
	mrc_path_push(&f->path, true, bytes, now_ns);
	f->path.sent = f->path.posted;
	newest = *mrc_path_pop(&f->path, f->path.posted);
	mrc_path_acked(&f->path, &newest, bytes, &f->limits, now_ns + span_ns);
}

static void the_window_is_rate_times_delay_and_some_within_bounds(void **state)
{
	const struct {
		const char *name;
		uint32_t bytes;
		uint64_t span_ns, want;
	} rows[] = {
		/* 1 GB/s, 1 ms round trip: 3 ms more than that. */
		{"between the bounds", 1000000, MRC_MS, 4000000},
		{"least", 1000, MRC_MS, 256 * 1024},
		{"largest", 10000000, MRC_MS, 4 * 1024 * 1024},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		measure(&f, rows[i].bytes, rows[i].span_ns, MRC_S);
		if (f.path.window_bytes != rows[i].want)
			fail_msg("%s: window %llu, want %llu", rows[i].name,
				 (unsigned long long)f.path.window_bytes,
				 (unsigned long long)rows[i].want);
	}
}

static void a_fragment_takes_two_milliseconds_at_most(void **state)
{
	const struct {
		uint32_t bytes; /* in a millisecond */
		uint32_t want;
	} rows[] = {
		{1000, 16384},         /* never tiny */
		{20000, 36864},        /* 40000, in pages */
		{1000000, 128 * 1024}, /* never above the limit */
	};
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(mrc_path_frag_bytes(&f.path, 128 * 1024), 32768); /* not known yet */
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		fixture_init(&f);
		measure(&f, rows[i].bytes, MRC_MS, MRC_S);
		assert_int_equal(mrc_path_frag_bytes(&f.path, 128 * 1024), rows[i].want);
	}
}

static void arrival_is_expected_later_behind_more_bytes(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure(&f, 1000000, MRC_MS, MRC_S); /* 1 GB/s */
	assert_int_equal(mrc_path_eta_ns(&f.path, 0, 2 * MRC_S), MRC_MS);
	assert_int_equal(mrc_path_eta_ns(&f.path, 1000000, 2 * MRC_S), 2 * MRC_MS);
	mrc_path_push(&f.path, true, 2000000, 2 * MRC_S);
	assert_int_equal(mrc_path_eta_ns(&f.path, 1000000, 2 * MRC_S), 4 * MRC_MS);
}

/* So many frames are sent at once, and each is acknowledged after as long as it takes at `rate`. */
static void burst(struct fixture *f, uint32_t count, uint32_t bytes, uint64_t rate,
		  uint64_t *now_ns)
{
	struct mrc_record newest;

	for (uint32_t i = 0; i < count; i++)
		mrc_path_push(&f->path, true, bytes, *now_ns);
	f->path.sent = f->path.posted;
	for (uint32_t i = 0; i < count; i++) {
		*now_ns += (uint64_t)bytes * MRC_S / rate;
		newest = *mrc_path_pop(&f->path, f->path.acked + 1);
		mrc_path_acked(&f->path, &newest, bytes, &f->limits, *now_ns);
	}
}

/* A rail behind a token bucket: its best is far above what it does once the bucket is empty. */
static void arrival_is_expected_by_what_a_queue_has_cost(void **state)
{
	struct fixture f;
	uint64_t now_ns = MRC_S, eta_ns;

	fixture_init(&f);
	f.path.window_bytes = 1;
	burst(&f, 4, 32768, 10000000000ULL, &now_ns);
	assert_true(f.path.rate.best > 2000000000ULL);
	for (int i = 0; i < 8; i++)
		burst(&f, 8, 32768, 125000000, &now_ns);
	assert_true(f.path.rate.best > 2000000000ULL);
	eta_ns = mrc_path_eta_ns(&f.path, 262144, now_ns);
	assert_in_range(eta_ns, 1800 * MRC_US, 2500 * MRC_US); /* 2.1 ms at 1 Gb/s */
	/* After a pause the bucket is full again, for all that is known. */
	now_ns += MRC_S / 2;
	mrc_path_push(&f.path, true, 100, now_ns);
	assert_true(mrc_path_eta_ns(&f.path, 262144, now_ns) < eta_ns / 2);
}

/* It was suspected, its frames went elsewhere, and then it answers after all. */
static void what_was_moved_says_nothing_of_an_idle_path(void **state)
{
	struct mrc_record newest;
	struct fixture f;

	fixture_init(&f);
	mrc_path_push(&f.path, true, 50000, MRC_S)->is_moved = true;
	f.path.sent = f.path.posted;
	newest = *mrc_path_pop(&f.path, 1);
	newest.queued = 0; /* as the conn says it */
	mrc_path_acked(&f.path, &newest, 0, &f.limits, MRC_S + 200 * MRC_MS);
	assert_int_equal(f.path.idle_ns, 0);
	assert_int_equal(mrc_queue_ns(&f.path.queue, 100000), 0);
}

/* What many small frames wait for is a processor. */
static void small_frames_say_nothing_of_a_queue(void **state)
{
	struct fixture f;
	uint64_t now_ns = MRC_S;

	fixture_init(&f);
	for (int i = 0; i < 8; i++)
		burst(&f, 30, 1000, 1000000, &now_ns);
	assert_int_equal(mrc_queue_ns(&f.path.queue, 100000), 0);
}

static void a_frame_alone_is_expected_after_what_such_have_met(void **state)
{
	struct fixture f;
	uint64_t now_ns = MRC_S;

	fixture_init(&f);
	burst(&f, 1, 100, 10000000, &now_ns); /* 10 us, the least */
	for (int i = 0; i < 100; i++) {
		now_ns += MRC_MS;
		burst(&f, 1, 100, 1000000, &now_ns); /* 100 us */
	}
	assert_in_range(mrc_path_eta_ns(&f.path, 100, now_ns), 90 * MRC_US, 110 * MRC_US);
	/* That was long ago. */
	assert_true(mrc_path_eta_ns(&f.path, 100, now_ns + MRC_S) < 20 * MRC_US);
}

static void a_doubled_floor_falls_back_when_its_time_is_over(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.path.floor_ns = 8 * MRC_MS;
	f.path.floor_until_ns = 3 * MRC_S;
	measure(&f, 0, 10 * MRC_US, 2 * MRC_S);
	assert_int_equal(mrc_path_timeout_ns(&f.path, &f.limits), 8 * MRC_MS);
	measure(&f, 0, 10 * MRC_US, 3 * MRC_S);
	assert_int_equal(mrc_path_timeout_ns(&f.path, &f.limits), f.limits.suspect_floor_ns);
}

static void a_pause_does_not_count_as_slowness(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure(&f, 1000000, MRC_MS, MRC_S);
	assert_int_equal(f.path.rate.best, 1000000000);
	/* Ten idle seconds, then full again at the same speed; the old sample has aged out. */
	measure(&f, 1000000, MRC_MS, 11 * MRC_S);
	measure(&f, 1000000, MRC_MS, 12 * MRC_S);
	assert_int_equal(f.path.rate.best, 1000000000);
}

/* ---- rates got from little, queues, and what they are used for ---- */

/* Send `bytes` that leave the window open, and have them acknowledged. */
static void measure_little(struct fixture *f, uint32_t bytes, uint64_t span_ns, uint64_t now_ns)
{
	struct mrc_record newest;

	f->path.window_bytes = UINT32_MAX;
	mrc_path_push(&f->path, true, bytes, now_ns);
	f->path.sent = f->path.posted;
	newest = *mrc_path_pop(&f->path, f->path.posted);
	mrc_path_acked(&f->path, &newest, bytes, &f->limits, now_ns + span_ns);
}

static void a_paths_own_queue_is_no_silence(void **state)
{
	const struct {
		const char *name;
		uint64_t rate; /* 0: not known */
		uint32_t before, oldest,
			behind; /* bytes in flight: the oldest that owes an answer */
		uint64_t want_ns;
	} rows[] = {
		{"little is within the floor", 0, 0, 1000, 0, MRC_MS},
		/* Half as much again as it takes, and the round trip. */
		{"by the rate that is taken for granted", 0, 900000, 100000, 0,
		 12 * MRC_MS + 10 * MRC_US},
		{"by the rate that is known", 1000000000, 9000000, 1000000, 0,
		 15 * MRC_MS + 10 * MRC_US},
		{"what is behind it does not count", 0, 0, 1000, 10000000, MRC_MS},
		{"the ceiling holds", 0, 100000000, 1000, 0, 200 * MRC_MS},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		uint64_t got_ns;

		fixture_init(&f);
		/* Quick answers, so that the delay alone says little. */
		for (int n = 0; n < 40; n++)
			measure(&f, 0, 10 * MRC_US, MRC_S);
		f.path.rate.best = rows[i].rate;
		mrc_path_push(&f.path, false, rows[i].before, 2 * MRC_S);
		mrc_path_push(&f.path, true, rows[i].oldest, 2 * MRC_S);
		mrc_path_push(&f.path, true, rows[i].behind, 2 * MRC_S);
		got_ns = mrc_path_timeout_ns(&f.path, &f.limits);
		if (got_ns != rows[i].want_ns)
			fail_msg("%s: %llu ns", rows[i].name, (unsigned long long)got_ns);
	}
}

static void the_queue_is_that_of_the_oldest_frame_left(void **state)
{
	struct fixture f;
	struct mrc_record newest;

	fixture_init(&f);
	for (int n = 0; n < 40; n++)
		measure(&f, 0, 10 * MRC_US, MRC_S);
	mrc_path_push(&f.path, true, 1000, 2 * MRC_S);
	mrc_path_push(&f.path, true, 1000000, 2 * MRC_S);
	assert_int_equal(f.path.oldest_queued, 1000);
	newest = *mrc_path_pop(&f.path, f.path.acked + 1);
	mrc_path_acked(&f.path, &newest, 0, &f.limits, 2 * MRC_S + 10 * MRC_US);
	assert_int_equal(f.path.oldest_queued, 1001000);
	mrc_path_pop(&f.path, f.path.acked + 1);
	mrc_path_acked(&f.path, NULL, 0, &f.limits, 2 * MRC_S + 10 * MRC_US);
	assert_int_equal(f.path.oldest_queued, 0);
	assert_int_equal(mrc_path_timeout_ns(&f.path, &f.limits), MRC_MS);
}

/* The answer stands behind the peer's data as our frame stood behind ours. */
static void data_that_comes_by_it_makes_the_queue_count_twice(void **state)
{
	struct fixture f;
	uint64_t alone_ns, rtt_ns;

	fixture_init(&f);
	for (int n = 0; n < 40; n++)
		measure(&f, 0, 10 * MRC_US, MRC_S);
	f.path.rate.best = 1000000000;
	mrc_path_push(&f.path, true, 2000000, 2 * MRC_S);
	rtt_ns = f.path.rtt.min_ns;
	f.path.data_heard_ns = 2 * MRC_S - 1; /* before it was sent: says nothing of the answer */
	alone_ns = mrc_path_timeout_ns(&f.path, &f.limits);
	assert_int_equal(alone_ns, 3 * MRC_MS + rtt_ns);
	f.path.data_heard_ns = 2 * MRC_S;
	assert_int_equal(mrc_path_timeout_ns(&f.path, &f.limits), 6 * MRC_MS + rtt_ns);
}

static void what_did_not_fill_it_gives_a_weak_rate_or_none(void **state)
{
	const struct {
		const char *name;
		uint32_t bytes;
		uint64_t span_ns;
		uint64_t want; /* bytes per second */
	} rows[] = {
		/* The round trip of 10 us is not its bytes' time. */
		{"slow without doubt", 100000, 2 * MRC_MS + 10 * MRC_US, 50000000},
		{"all of it may be delay", 100000, 19 * MRC_US, 0},
		{"too few bytes", 4095, 2 * MRC_MS, 0},
		{"just enough", 4096, MRC_MS + 10 * MRC_US, 4096000},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		measure(&f, 0, 10 * MRC_US, MRC_S);
		measure_little(&f, rows[i].bytes, rows[i].span_ns, 2 * MRC_S);
		if (f.path.rate.best != rows[i].want)
			fail_msg("%s: %llu bytes per second", rows[i].name,
				 (unsigned long long)f.path.rate.best);
		assert_int_equal(f.path.is_rate_weak, rows[i].want != 0);
		/* The word of a full window is not weak, and outweighs what comes after it. */
		measure(&f, 1000000, MRC_MS, 3 * MRC_S);
		assert_false(f.path.is_rate_weak);
		measure_little(&f, 100000, 5 * MRC_MS, 3 * MRC_S + 100 * MRC_MS);
		assert_false(f.path.is_rate_weak);
		assert_int_equal(f.path.rate.best, 1000000000);
	}
}

/*
 * A sender that answers each acknowledgement with a frame keeps as many on their
 * way, and none of them waits: what was before a frame does not count for it.
 */
static void a_path_that_is_never_empty_is_not_made_faster_than_it_is(void **state)
{
	const uint64_t gap_ns = 100 * MRC_US, delay_ns = MRC_MS;
	const uint32_t len = 10000; /* so 100 MB/s */
	struct fixture f;
	uint64_t now_ns = MRC_S;

	fixture_init(&f);
	f.path.window_bytes = UINT32_MAX;
	measure(&f, 0, delay_ns - gap_ns, now_ns);
	f.path.window_bytes = UINT32_MAX;
	for (uint64_t n = 0; n < 200; n++, now_ns += gap_ns) {
		mrc_path_push(&f.path, true, len, now_ns);
		f.path.sent = f.path.posted;
		if (n >= delay_ns / gap_ns) {
			struct mrc_record newest = *mrc_path_pop(&f.path, f.path.acked + 1);

			assert_int_equal(newest.sent_ns, now_ns - delay_ns);
			mrc_path_acked(&f.path, &newest, len, &f.limits, now_ns);
			f.path.window_bytes = UINT32_MAX;
		}
		assert_in_range(f.path.rate.best, 0, 100000000);
	}
	assert_in_range(f.path.rate.best, 80000000, 100000000);
	assert_true(f.path.is_rate_weak);
}

/* And neither does what was before the least delay's own bytes, which are in that delay. */
static void the_least_delays_own_bytes_are_not_counted_again(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure_little(&f, 8192, MRC_MS, MRC_S);
	measure_little(&f, 8192 + 4095, MRC_MS + 20 * MRC_US, 2 * MRC_S);
	assert_int_equal(f.path.rate.best, 0);
	measure_little(&f, 8192 + 5000, MRC_MS + 50 * MRC_US, 3 * MRC_S);
	assert_int_equal(f.path.rate.best, 100000000);
}

static void a_rate_that_was_not_confirmed_for_long_is_weak(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure(&f, 1000000, MRC_MS, 2 * MRC_S);
	measure_little(&f, 8192, 10 * MRC_MS, 2 * MRC_S + 990 * MRC_MS);
	assert_false(f.path.is_rate_weak);
	measure_little(&f, 8192, 10 * MRC_MS, 3 * MRC_S);
	assert_true(f.path.is_rate_weak);
	measure(&f, 1000000, MRC_MS, 4 * MRC_S);
	assert_false(f.path.is_rate_weak);
}

/* Else it would carry nothing, and never be tried again. */
static void a_weak_rate_is_not_believed_to_be_far_below_the_siblings(void **state)
{
	const struct {
		const char *name;
		uint64_t best;
		bool is_weak;
		uint64_t least, assumed;
		uint64_t want_ns; /* for a megabyte */
	} rows[] = {
		{"none: the siblings'", 0, false, 0, 1000000000, MRC_MS},
		{"weak, and it carried more lately", 1000000, true, 2000000000, 8000000000,
		 MRC_MS / 2},
		{"weak and low", 1000000, true, 0, 8000000000, MRC_MS},
		{"weak, but not so low", 2000000000, true, 0, 8000000000, MRC_MS / 2},
		{"its own, however low", 1000000, false, 0, 8000000000, MRC_S},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		uint64_t got_ns;

		fixture_init(&f);
		f.path.rate.best = rows[i].best;
		f.path.is_rate_weak = rows[i].is_weak;
		f.path.rate_least = rows[i].least;
		f.path.rate_assumed = rows[i].assumed;
		got_ns = mrc_path_eta_ns(&f.path, 1000000, 2 * MRC_S);
		if (got_ns != rows[i].want_ns)
			fail_msg("%s: %llu ns", rows[i].name, (unsigned long long)got_ns);
	}
}

static void a_low_rate_that_is_old_is_forgotten(void **state)
{
	const struct {
		const char *name;
		uint64_t best;
		bool is_weak;
		bool is_busy;
		uint64_t age_ns;
		bool is_forgotten;
	} rows[] = {
		{"not yet", 1000, false, false, 5 * MRC_S - 1, false},
		{"low and old", 1000, false, false, 5 * MRC_S, true},
		{"a weak one sooner", 1000, true, false, MRC_S, true},
		{"but not at once", 1000, true, false, MRC_S - 1, false},
		{"as good as its siblings", 500000000, false, false, 60 * MRC_S, false},
		{"it is being measured", 1000, false, true, 60 * MRC_S, false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		f.path.rate_assumed = 500000000;
		if (rows[i].is_busy)
			mrc_path_push(&f.path, true, 1, MRC_S);
		f.path.rate.best = f.path.rate.window_best = rows[i].best;
		f.path.is_rate_weak = rows[i].is_weak;
		f.path.rate.delivered_ns = MRC_S;
		mrc_path_rate_age(&f.path, MRC_S + rows[i].age_ns);
		if ((f.path.rate.best == 0) != rows[i].is_forgotten)
			fail_msg("%s: %llu bytes per second", rows[i].name,
				 (unsigned long long)f.path.rate.best);
		assert_int_equal(f.path.is_rate_weak, rows[i].is_weak && !rows[i].is_forgotten);
	}
}

/* A rail that is never filled: what was under way has arrived within its delay. */
static void what_was_under_way_and_arrived_is_a_rate_at_least(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure_little(&f, 100000, 20 * MRC_US, MRC_S);
	assert_int_equal(f.path.rate.best, 0); /* too short a time to say more */
	assert_true(f.path.rate_least == 5000000000);
	/* So its timer does not wait for what a slow rail would need: 1 ms, and half, and the delay. */
	assert_int_equal(f.path.window_bytes, f.limits.path_window_bytes_max);
	mrc_path_push(&f.path, true, 5000000, 2 * MRC_S);
	assert_int_equal(mrc_path_timeout_ns(&f.path, &f.limits), 1500 * MRC_US + 20 * MRC_US);
}

static void the_least_rate_fades_and_ends_with_its_epoch(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure_little(&f, 80000, 10 * MRC_US, MRC_S);
	assert_true(f.path.rate_least == 8000000000);
	measure_little(&f, 1000, 10 * MRC_US, 2 * MRC_S); /* a small one says little */
	assert_true(f.path.rate_least == 7000000000);
	measure_little(&f, 90000, 10 * MRC_US, 3 * MRC_S);
	assert_true(f.path.rate_least == 9000000000);
	mrc_path_begin(&f.path, 2, 1234, f.limits.suspect_floor_ns, 4 * MRC_S);
	assert_int_equal(f.path.rate_least, 0);
}

/* One byte in ten seconds is no rate at all. */
static void nothing_known_leaves_the_window_as_it_was(void **state)
{
	struct fixture f;

	fixture_init(&f);
	measure_little(&f, 1, 10 * MRC_S, MRC_S);
	assert_int_equal(f.path.rate.best, 0);
	assert_int_equal(f.path.rate_least, 0);
	assert_int_equal(f.path.window_bytes, UINT32_MAX);
}

/* Answers that are held up and come together do not make the path faster than it was fed. */
static void nothing_was_delivered_faster_than_it_was_sent(void **state)
{
	const uint32_t len = 100000;
	struct fixture f;
	struct mrc_record newest = {0};
	struct mrc_record *record;

	fixture_init(&f);
	/* One a millisecond; the first is acknowledged just before the last is sent, ... */
	for (uint64_t ms = 0; ms < 3; ms++) {
		if (ms == 2) {
			newest = *mrc_path_pop(&f.path, 1);
			mrc_path_acked(&f.path, &newest, len, &f.limits, MRC_S + 2 * MRC_MS);
		}
		f.path.window_bytes = 1;
		mrc_path_push(&f.path, true, len, MRC_S + ms * MRC_MS);
	}
	assert_int_equal(f.path.rate.best, 50000000);
	/* ... and the rest in a moment: two of them in the two milliseconds since the first was sent. */
	while ((record = mrc_path_pop(&f.path, 3)))
		newest = *record;
	mrc_path_acked(&f.path, &newest, 2 * len, &f.limits, MRC_S + 2 * MRC_MS + 20 * MRC_US);
	assert_int_equal(f.path.rate.best, 100000000);
}

static void a_false_suspicion_doubles_the_floor_up_to_the_ceiling(void **state)
{
	struct fixture f;
	uint64_t want_ns;

	fixture_init(&f);
	want_ns = f.limits.suspect_floor_ns;
	for (uint32_t i = 1; i <= 10; i++) {
		f.path.is_on_trial = true;
		mrc_path_acquit(&f.path, &f.limits, MRC_S);
		want_ns = MRC_MIN(2 * want_ns, f.limits.suspect_ceiling_ns);
		assert_int_equal(f.path.floor_ns, want_ns);
		assert_int_equal(f.path.suspicions_false, i);
		assert_false(f.path.is_on_trial);
		assert_true(f.path.floor_until_ns > MRC_S);
	}
	assert_int_equal(f.path.floor_ns, f.limits.suspect_ceiling_ns);
}

/* Else the rate of a path that small frames keep full would be taken for what its sender had to say. */
static void a_path_is_full_by_its_bytes_or_by_its_frames(void **state)
{
	const struct {
		const char *name;
		uint32_t share, bytes; /* of each frame */
		uint32_t first;        /* that finds it full, from 0 */
	} rows[] = {
		{"by its records", 0, 0, RECORDS - 32 - 1},
		{"by its share", 16, 0, 10},
		{"small ones, by its share", 16, 100, 10},
		{"by its bytes", 0, 65536, 2}, /* of 262144: one more as long fills it */
		{"by its bytes, before its share", 16, 65536, 2},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		f.path.share = rows[i].share;
		f.path.full_ns = 1;
		for (uint32_t n = 0; n <= rows[i].first; n++) {
			const struct mrc_record *record =
				mrc_path_push(&f.path, true, rows[i].bytes, MRC_S + n);

			if (record->is_app_limited != (n < rows[i].first))
				fail_msg("%s: frame %u", rows[i].name, n);
			assert_int_equal(f.path.full_ns, n < rows[i].first ? 1 : MRC_S + n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_leave_in_the_order_they_came),
		cmocka_unit_test(each_leaves_the_last_places_to_those_below_it),
		cmocka_unit_test(an_ack_without_news_leaves_the_last_place),
		cmocka_unit_test(a_record_is_free_when_it_is_acked_and_no_longer_read),
		cmocka_unit_test(only_what_elicits_an_answer_is_waited_for),
		cmocka_unit_test(an_epoch_begins_with_nothing_in_flight_and_nothing_known),
		cmocka_unit_test(the_window_is_rate_times_delay_and_some_within_bounds),
		cmocka_unit_test(a_fragment_takes_two_milliseconds_at_most),
		cmocka_unit_test(arrival_is_expected_later_behind_more_bytes),
		cmocka_unit_test(arrival_is_expected_by_what_a_queue_has_cost),
		cmocka_unit_test(what_was_moved_says_nothing_of_an_idle_path),
		cmocka_unit_test(small_frames_say_nothing_of_a_queue),
		cmocka_unit_test(a_frame_alone_is_expected_after_what_such_have_met),
		cmocka_unit_test(a_doubled_floor_falls_back_when_its_time_is_over),
		cmocka_unit_test(a_pause_does_not_count_as_slowness),
		cmocka_unit_test(a_paths_own_queue_is_no_silence),
		cmocka_unit_test(the_queue_is_that_of_the_oldest_frame_left),
		cmocka_unit_test(what_did_not_fill_it_gives_a_weak_rate_or_none),
		cmocka_unit_test(a_path_that_is_never_empty_is_not_made_faster_than_it_is),
		cmocka_unit_test(the_least_delays_own_bytes_are_not_counted_again),
		cmocka_unit_test(a_rate_that_was_not_confirmed_for_long_is_weak),
		cmocka_unit_test(a_weak_rate_is_not_believed_to_be_far_below_the_siblings),
		cmocka_unit_test(a_low_rate_that_is_old_is_forgotten),
		cmocka_unit_test(what_was_under_way_and_arrived_is_a_rate_at_least),
		cmocka_unit_test(the_least_rate_fades_and_ends_with_its_epoch),
		cmocka_unit_test(nothing_known_leaves_the_window_as_it_was),
		cmocka_unit_test(nothing_was_delivered_faster_than_it_was_sent),
		cmocka_unit_test(data_that_comes_by_it_makes_the_queue_count_twice),
		cmocka_unit_test(a_false_suspicion_doubles_the_floor_up_to_the_ceiling),
		cmocka_unit_test(a_path_is_full_by_its_bytes_or_by_its_frames),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
