/* SPDX-License-Identifier: BSD-2-Clause */
/* A tcp rail that fails on purpose, and is as before when that is over. */
#include "rail_tcp_lab.h"

static void suffer(struct mrcd_rail *rail, enum mrcd_drill_fault fault, uint64_t bytes_per_s)
{
	mrcd_worker_now(rail->worker);
	rail->drill = fault;
	rail->drill_bytes_per_s = bytes_per_s;
	assert_int_equal(rail->ops->drill(rail), 0);
}

static void say(struct mrcd_peer *from, uint64_t number)
{
	struct mrc_act_post control = fake_control(from->link, MRC_WIRE_STATE, number, 20);

	post(from, &control);
	flush(from);
}

static void silence_stops_both_ways_and_tells_nobody(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	say(f->b, 1); /* on its way when it begins */
	suffer(f->a->rail, MRCD_DRILL_SILENCE, 0);
	say(f->a, 1);
	say(f->b, 2);
	fake_settle(f);
	assert_int_equal(f->a->frame_count, 0);
	assert_int_equal(f->b->frame_count, 0);
	assert_int_equal(f->a->sent, 0);
	assert_int_equal(f->a->downs + f->b->downs, 0);
	/* Nobody gave it up: it goes on where it stood. */
	suffer(f->a->rail, MRCD_DRILL_NONE, 0);
	say(f->a, 2);
	fake_until(f, f->a->frame_count == 2 && f->b->frame_count == 2);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(f->a->frames[i].hdr.msg, i + 1);
		assert_int_equal(f->b->frames[i].hdr.msg, i + 1);
	}
}

static void silence_in_the_middle_of_a_fragment_damages_nothing(void **state)
{
	struct fake *f = *state;
	const uint32_t count = 40;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 3);
	connect_both(f);
	shrink_sending(f->a);
	for (uint32_t i = 0; i < count; i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, i, i * 60000ULL, 60000);

		post(f->a, &frag);
	}
	flush(f->a);
	fake_until(f, f->b->frame_count > 0);
	suffer(f->a->rail, MRCD_DRILL_SILENCE, 0);
	fake_settle(f);
	assert_true(f->b->frame_count < count);
	suffer(f->a->rail, MRCD_DRILL_NONE, 0);
	fake_until(f, f->b->frame_count == count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(f->b->frames[i].hdr.msg, i);
		assert_true(f->b->frames[i].is_body_good);
	}
}

static void nobody_gets_in_or_out_of_a_rail_that_is_cut(void **state)
{
	struct fake *f = *state;

	f->conf.rails[1].port = f->a->port; /* where it listens anew, too */
	suffer(f->b->rail, MRCD_DRILL_DOWN, 0);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	for (int i = 0; i < 30; i++) /* a handshake takes one or two of them */
		fake_settle(f);
	assert_int_equal(f->a->ups + f->b->ups, 0);
	/* Whom the kernel took in meanwhile is sent away, and is no stranger. */
	suffer(f->b->rail, MRCD_DRILL_NONE, 0);
	fake_until(f, f->a->failures == 1);
	assert_int_equal(f->b->rail->strangers, 0);

	suffer(f->a->rail, MRCD_DRILL_SILENCE, 0);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->failures == 2);
	assert_string_equal(f->a->why, "no answer");
	suffer(f->a->rail, MRCD_DRILL_NONE, 0);
	connect_both(f);
	assert_int_equal(f->b->ups, 1);
}

static void an_attempt_under_way_fails_when_a_drill_begins(void **state)
{
	struct fake *f = *state;

	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	suffer(f->a->rail, MRCD_DRILL_DOWN, 0);
	fake_until(f, f->a->failures == 1);
	assert_string_equal(f->a->why, "cut by a drill");
	assert_int_equal(f->a->ups, 0);
	suffer(f->a->rail, MRCD_DRILL_NONE, 0);
	connect_both(f);
}

/* An upper bound only, which holds on a slow machine as well. */
static void slow_sends_no_more_than_it_may(void **state)
{
	const uint64_t rate = 2000000;
	struct fake *f = *state;
	uint64_t began_ns;

	connect_both(f);
	began_ns = mrcd_worker_now(&f->worker);
	suffer(f->a->rail, MRCD_DRILL_SLOW, rate);
	for (uint64_t i = 0; i < 8; i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, i, i * 100000, 100000);

		post(f->a, &frag);
	}
	flush(f->a);
	fake_until(f, f->b->frame_count >= 3);
	assert_in_range(f->a->rail->bytes_sent, 300000,
			(mrcd_worker_now(&f->worker) - began_ns) * rate / MRC_S);
	assert_true(f->b->frame_count < 8);
	suffer(f->a->rail, MRCD_DRILL_NONE, 0);
	fake_until(f, f->b->frame_count == 8);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(f->b->frames[i].is_body_good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(silence_stops_both_ways_and_tells_nobody),
		claim(silence_in_the_middle_of_a_fragment_damages_nothing),
		claim(nobody_gets_in_or_out_of_a_rail_that_is_cut),
		claim(an_attempt_under_way_fails_when_a_drill_begins),
		claim(slow_sends_no_more_than_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
