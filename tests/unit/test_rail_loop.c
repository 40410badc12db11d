/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "rail_fake.h"

static int set_up(void **state)
{
	struct fake *f = fake_new(&mrcd_rail_loop_ops, "", "");
	struct mrcd_rail *rail = &f->worker.loop_rail;

	rail->ops = &mrcd_rail_loop_ops;
	rail->worker = &f->worker;
	rail->conf = &f->conf_loop;
	f->a->rail = f->b->rail = rail;
	f->worker.loop_ends[0] = f->a;
	f->worker.loop_ends[1] = f->b;
	assert_int_equal(mrcd_rail_loop_ops.open(rail), 0);
	assert_true(rail->is_carrier_up);
	assert_true(mrcd_rail_loop_ops.has_carrier(rail));
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fake *f = *state;

	if (f->a->link)
		f->a->link->ops->fence(f->a->link);
	if (f->b->link)
		f->b->link->ops->fence(f->b->link);
	mrcd_rail_loop_ops.close(&f->worker.loop_rail);
	fake_free(f);
	return 0;
}

static void connect_both(struct fake *f)
{
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	fake_until(f, f->a->link && f->b->link);
}

static void post(struct mrcd_peer *peer, struct mrc_act_post p)
{
	peer->link->ops->post(peer->link, &p);
}

static void flush(struct mrcd_peer *peer)
{
	peer->link->ops->flush(peer->link);
}

static void both_ends_come_up_together_and_later(void **state)
{
	struct fake *f = *state;

	f->b->hello.path_epoch_last = 6;
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	assert_null(f->a->link); /* never from inside the call */
	fake_settle(f);
	assert_int_equal(f->a->ups, 1);
	assert_int_equal(f->b->ups, 1);
	assert_int_equal(f->a->auth.path_epoch, 7);
	assert_int_equal(f->b->auth.path_epoch, 7);
	assert_int_equal(f->a->peer_boot_id, 0xbbbb);
	assert_int_equal(f->b->peer_boot_id, 0xaaaa);
}

static void frames_arrive_in_order_and_later(void **state)
{
	struct fake *f = *state;
	const uint32_t count = 300;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 1);
	connect_both(f);
	f->place_step = 777;
	for (uint32_t i = 0; i < count; i++) {
		if (i % 2)
			post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, i, 20));
		else
			post(f->a, fake_frag(f->a->link, i, i * 10000ULL, i == 4 ? 0 : 10000));
	}
	flush(f->a);
	assert_int_equal(f->b->frame_count, 0);
	fake_until(f, f->b->frame_count == count && f->a->sent == count);
	for (uint32_t i = 0; i < count; i++) {
		const struct fake_frame *frame = &f->b->frames[i];

		assert_int_equal(frame->hdr.msg, i);
		assert_true(frame->is_body_good);
		if (i % 2)
			assert_int_equal(frame->body[19], i & 0xff);
		else
			assert_true(frame->is_placed);
		if (i % 2 == 0 && i != 4)
			assert_memory_equal(f->send + i * 10000, f->landing + i * 10000, 10000);
	}
	assert_true(f->a->pumps > 0 && f->b->pumps > 0);
	assert_int_equal(f->worker.loop_rail.frames_sent, count);
}

static void both_directions_carry(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, 1, 20));
	post(f->b, fake_control(f->b->link, MRC_WIRE_STATE, 2, 20));
	flush(f->a);
	flush(f->b);
	fake_until(f, f->a->frame_count == 1 && f->b->frame_count == 1);
	assert_int_equal(f->a->frames[0].hdr.msg, 2);
	assert_int_equal(f->b->frames[0].hdr.msg, 1);
}

static void what_goes_to_scratch_is_not_placed(void **state)
{
	static const uint32_t froms[] = {0, 1, 4999, 5000};
	struct fake *f = *state;

	fake_pattern(f->send, 5000, 3);
	connect_both(f);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(froms); i++) {
		memset(f->landing, 0xcc, 5001);
		f->scratch_from = froms[i];
		post(f->a, fake_frag(f->a->link, i, 0, 5000));
		flush(f->a);
		fake_until(f, f->b->frame_count == i + 1);
		assert_int_equal(f->b->frames[i].is_placed, froms[i] == 5000);
		assert_memory_equal(f->landing, f->send, froms[i]);
		assert_int_equal(f->landing[froms[i]], 0xcc);
	}
}

static void strip_and_a_dead_client_leave_nops(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	post(f->a, fake_frag(f->a->link, 1, 0, 5000));
	post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, 2, 20));
	f->a->link->ops->strip(f->a->link);
	flush(f->a);
	fake_until(f, f->b->frame_count == 2);
	assert_int_equal(f->send_asked, 0);
	assert_int_equal(f->b->frames[0].hdr.type, MRC_WIRE_NOP);
	assert_int_equal(f->b->frames[0].hdr.body_len, 0);
	assert_int_equal(f->b->frames[0].hdr.path_epoch, f->b->auth.path_epoch);
	assert_int_equal(f->b->frames[1].hdr.type, MRC_WIRE_STATE);

	f->is_client_gone = true;
	post(f->a, fake_frag(f->a->link, 3, 0, 5000));
	flush(f->a);
	fake_until(f, f->b->frame_count == 3);
	assert_int_equal(f->b->frames[2].hdr.type, MRC_WIRE_NOP);
	assert_int_equal(f->a->sent, 3);
}

static void a_fence_is_answered_and_the_other_end_hears_of_it(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, 1, 20));
	flush(f->a);
	f->a->link->ops->fence(f->a->link);
	assert_int_equal(f->a->fences, 1);
	assert_int_equal(f->b->downs, 0); /* not from inside the call */
	fake_until(f, f->b->downs == 1);
	assert_int_equal(f->b->reason, MRC_REASON_CLOSED);
	assert_int_equal(f->b->frame_count, 0);
	assert_int_equal(f->a->downs, 0);
	connect_both(f);
	assert_int_equal(f->a->auth.path_epoch, 2);
}

static void a_new_pair_fences_the_old_one(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	fake_until(f, f->b->ups == 2);
	fake_settle(f);
	assert_int_equal(f->a->fences, 1);
	assert_int_equal(f->b->fences, 1);
	assert_int_equal(f->a->downs + f->b->downs, 0);
	assert_non_null(f->a->link);
	assert_non_null(f->b->link);
}

static void a_frame_the_engine_condemns_ends_both_links(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	f->b->is_protocol_error = true;
	post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, 1, 20));
	post(f->a, fake_control(f->a->link, MRC_WIRE_STATE, 2, 20));
	flush(f->a);
	fake_until(f, f->a->downs == 1 && f->b->downs == 1);
	assert_int_equal(f->b->reason, MRC_REASON_PROTOCOL);
	assert_int_equal(f->b->frame_count, 1);
}

static void an_end_that_is_stale_fails_the_attempt(void **state)
{
	struct fake *f = *state;

	f->a->is_up_refused = true;
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	fake_until(f, f->a->failures == 1);
	assert_int_equal(f->b->ups, 0);
	f->a->is_up_refused = false;
	f->b->is_up_refused = true;
	mrcd_rail_loop_ops.connect(&f->worker.loop_rail, f->a, 0);
	fake_until(f, f->a->downs == 1);
	f->b->is_up_refused = false;
	connect_both(f);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(both_ends_come_up_together_and_later),
		claim(frames_arrive_in_order_and_later),
		claim(both_directions_carry),
		claim(what_goes_to_scratch_is_not_placed),
		claim(strip_and_a_dead_client_leave_nops),
		claim(a_fence_is_answered_and_the_other_end_hears_of_it),
		claim(a_new_pair_fences_the_old_one),
		claim(a_frame_the_engine_condemns_ends_both_links),
		claim(an_end_that_is_stale_fails_the_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
