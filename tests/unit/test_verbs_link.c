/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair's life: connected, up, fenced, put away. */
#include <poll.h>

#include "verbs_lab.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int set_up(void **state)
{
	lab_new();
	lab_open();
	lab_until(lab_has_devices());
	return 0;
}

static int tear_down(void **state)
{
	lab_free();
	return 0;
}

/* All devices gone and come as iWARP, which has no RESET. */
static void become_iwarp(void **state)
{
	lab_free();
	lab_new();
	verbs_fake_end();
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "siw%d", i);
		verbs_fake_port(name, 1, lab_addresses[i], IBV_TRANSPORT_IWARP);
		verbs_fake_inline_max(name, 64);
	}
	lab_open();
	lab_until(lab_has_devices());
}

/* One control frame each way. */
static void talk(uint8_t path)
{
	struct mrcd_link *a = lab->a->paths[path].link, *b = lab->b->paths[path].link;
	uint32_t frames_a = lab->a->paths[path].frame_count;
	uint32_t frames_b = lab->b->paths[path].frame_count;

	lab_post(a, lab_control(a, MRC_WIRE_STATE, 5, 20));
	lab_post(b, lab_control(b, MRC_WIRE_STATE, 6, 20));
	lab_flush(a);
	lab_flush(b);
	lab_until(lab->a->paths[path].frame_count == frames_a + 1 &&
		  lab->b->paths[path].frame_count == frames_b + 1);
}

static void fence(struct mrcd_peer *peer, uint8_t path)
{
	struct lab_path *at = &peer->paths[path];

	at->fencing = at->link;
	at->link = NULL;
	at->fencing->ops->fence(at->fencing);
}

static bool is_all_posted(uint32_t rail)
{
	const struct mrcd_verbs_device *device = lab_verbs(rail)->device;

	return device->posted_count == device->entry_count &&
	       verbs_fake_srq_posted(device->srq) == (int)device->entry_count;
}

/* ---- connecting ---- */

static void two_hosts_with_devices_get_a_queue_pair(void **state)
{
	lab_up(0);
	assert_true(lab->a->paths[0].is_direct);
	assert_true(lab->b->paths[0].is_direct);
	assert_int_equal(verbs_fake_counts().qps, 2);
	assert_int_equal(lab_link(lab->a, 0)->peer_number, lab_link(lab->b, 0)->number);
	assert_int_equal(lab_link(lab->b, 0)->peer_number, lab_link(lab->a, 0)->number);
	assert_true(lab->a->paths[0].link->receive_share >= MRCD_VERBS_SHARE_MIN);
	lab_up(1);
	talk(0);
	talk(1);
}

static void iwarp_works_as_well(void **state)
{
	become_iwarp(state);
	lab_up(0);
	assert_int_equal(lab_link(lab->a, 0)->inline_bytes, 0);
	talk(0);
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1 && lab->b->paths[0].downs == 1);
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_TO_RESET), 0);
	assert_int_equal(verbs_fake_counts().qps, 0);
	lab_up(0);
	talk(0);
}

static void inline_is_what_the_device_has(void **state)
{
	verbs_fake_inline_max("fake0", 128);
	verbs_fake_inline_max("fake1", 64);
	lab_up(0);
	assert_int_equal(lab_link(lab->a, 0)->inline_bytes, 128);
	assert_int_equal(lab_link(lab->b, 0)->inline_bytes, 0);
	talk(0);
}

static void a_second_attempt_beside_the_first_is_ignored(void **state)
{
	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab->conf.handshake_timeout_ns = 300 * MRC_MS;
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 1);
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	/* One that was not ignored would be as long in ending as the first. */
	lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count &&
		  !mrcd_offload_pending(lab->worker.offload));
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_CONNECT), 1);
	assert_int_equal(lab->a->paths[0].failures, 1);
}

static void a_request_that_nobody_answers_ends_by_our_own_timer(void **state)
{
	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab->conf.handshake_timeout_ns = 500 * MRC_MS;
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	/* Whose timer was first: ours, or that of the other end, which awaits it. */
	assert_true(!strcmp(lab->a->paths[0].why, "connecting: no answer") ||
		    !strcmp(lab->a->paths[0].why, "closed by the other end"));
	/* And the other end, which awaits it. */
	lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count);
	assert_int_equal(verbs_fake_counts().qps, 0);
	verbs_fake_answer(VERBS_FAKE_ANSWERED);
	lab->conf.handshake_timeout_ns = 10 * MRC_S;
	lab_up(0);
}

static void a_connect_that_blocks_is_ended_and_holds_up_nobody(void **state)
{
	verbs_fake_answer(VERBS_FAKE_BLOCKING);
	lab->conf.handshake_timeout_ns = 500 * MRC_MS;
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 1);
	verbs_fake_answer(VERBS_FAKE_ANSWERED);
	lab->conf.handshake_timeout_ns = 10 * MRC_S;
	lab_up(1);
	talk(1);
	lab_until(lab->a->paths[0].failures == 1);
	assert_true(!strcmp(lab->a->paths[0].why, "connecting: Interrupted system call") ||
		    !strcmp(lab->a->paths[0].why, "closed by the other end"));
}

static void a_rejected_request_is_a_failed_attempt(void **state)
{
	verbs_fake_answer(VERBS_FAKE_REJECTED);
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	assert_string_equal(lab->a->paths[0].why, "connecting: refused by the other end");
	assert_int_equal(lab->a->paths[0].ups, 0);
}

/* The other end's connection closes, which is how the initiator hears of it. */
static void an_accept_that_fails_ends_the_attempt_at_both_ends(void **state)
{
	verbs_fake_fail(VERBS_FAKE_ACCEPT, 0, 1, EINVAL);
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count);
	lab_up(0);
}

static void every_step_may_fail_and_is_told(void **state)
{
	static const enum verbs_fake_call calls[] = {
		VERBS_FAKE_CREATE_CHANNEL, VERBS_FAKE_CREATE_ID, VERBS_FAKE_RESOLVE_ADDR,
		VERBS_FAKE_RESOLVE_ROUTE,  VERBS_FAKE_REG_MR,    VERBS_FAKE_CREATE_CQ,
		VERBS_FAKE_CREATE_QP,      VERBS_FAKE_CONNECT,
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(calls); i++) {
		uint32_t failures = lab->a->paths[0].failures;

		verbs_fake_fail(calls[i], 0, -1, ENOBUFS);
		lab_connect(0);
		lab_until(lab->a->paths[0].failures == failures + 1);
		assert_non_null(strstr(lab->a->paths[0].why, strerror(ENOBUFS)));
		verbs_fake_fail(calls[i], 0, 0, 0);
		lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count);
	}
	lab_up(0);
}

static void epochs_that_moved_on_end_the_attempt(void **state)
{
	lab->a->is_up_refused = true;
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	assert_string_equal(lab->a->paths[0].why, "epochs have moved on");
	lab->a->is_up_refused = false;
	lab->a->paths[0].auth.path_epoch = lab->b->paths[0].auth.path_epoch;
	lab_up(0);
}

static void a_forgotten_peer_hears_nothing_of_its_attempts(void **state)
{
	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 1);
	mrcd_rail_verbs_ops.forget(lab->a->paths[0].rail, lab->a);
	lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count);
	assert_int_equal(lab->a->paths[0].failures, 0);
}

/* The end of the connection beside it comes in just when the queue pair is established. */
static void a_link_whose_connection_ended_while_it_came_up_is_not_taken_up(void **state)
{
	struct mrcd_verbs_link *link;

	verbs_fake_hold_established(true); /* b's job goes on waiting */
	verbs_fake_gate(VERBS_FAKE_ACCEPT, true);
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_ACCEPT) == 1);
	link = LIST_FIRST(&lab_verbs(0)->links);
	assert_int_equal(link->state, MRCD_VERBS_LINK_CONNECTING);
	/* From here on nobody looks at the loop, and a's job comes to its end. */
	verbs_fake_gate(VERBS_FAKE_ACCEPT, false);
	while (verbs_fake_calls(VERBS_FAKE_SET_TIMER) == 0)
		poll(NULL, 0, 1);
	poll(NULL, 0, 20); /* its last call; should it be late, the answer is the same */
	mrcd_verbs_link_down(link, MRC_REASON_CLOSED, "closed by the other end");
	lab_until(lab->a->paths[0].failures == 1);
	assert_int_equal(lab->a->paths[0].ups, 0);
	assert_string_equal(lab->a->paths[0].why, "closed by the other end");
}

/* ---- strangers ---- */

static struct mrcd_verbs_link *awaiting(void)
{
	struct mrcd_verbs_link *link;

	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 1);
	link = LIST_FIRST(&lab_verbs(1)->links);
	assert_non_null(link);
	assert_int_equal(link->state, MRCD_VERBS_LINK_AWAITING);
	return link;
}

static void whoever_lacks_the_token_gets_no_queue_pair(void **state)
{
	struct mrcd_verbs_link *link = awaiting();
	int qps = verbs_fake_counts().qps;
	uint8_t token[MRCD_VERBS_TOKEN_BYTES] = {0};

	link->token[sizeof(token) - 1] |= 1; /* private data comes padded with zeros */
	verbs_fake_stranger(lab_addresses[1], NULL, 0);
	lab_until(verbs_fake_stranger_answer());
	assert_int_equal(verbs_fake_stranger_answer(), -1);
	for (uint32_t i = 0; i < sizeof(token); i++) {
		memcpy(token, link->token, sizeof(token));
		token[i] ^= (uint8_t)(1U << (i % 8));
		verbs_fake_stranger(lab_addresses[1], token, sizeof(token));
		lab_until(verbs_fake_stranger_answer());
		assert_int_equal(verbs_fake_stranger_answer(), -1);
	}
	/* Its beginning is not it. */
	verbs_fake_stranger(lab_addresses[1], link->token, sizeof(token) - 1);
	lab_until(verbs_fake_stranger_answer());
	assert_int_equal(verbs_fake_stranger_answer(), -1);
	/* At another rail it is worth nothing. */
	verbs_fake_stranger(lab_addresses[3], link->token, sizeof(token));
	lab_until(verbs_fake_stranger_answer());
	assert_int_equal(verbs_fake_stranger_answer(), -1);

	assert_int_equal(lab->worker.rails[1].strangers, 34);
	assert_int_equal(lab->worker.rails[3].strangers, 1);
	assert_int_equal(lab->worker.strangers, 35);
	assert_int_equal(verbs_fake_counts().qps, qps);
	assert_int_equal(link->state, MRCD_VERBS_LINK_AWAITING);

	/* And whoever has it is let in, once. */
	memcpy(token, link->token, sizeof(token));
	verbs_fake_stranger(lab_addresses[1], token, sizeof(token));
	lab_until(verbs_fake_stranger_answer());
	assert_int_equal(verbs_fake_stranger_answer(), 1);
	verbs_fake_stranger(lab_addresses[1], token, sizeof(token));
	lab_until(verbs_fake_stranger_answer());
	assert_int_equal(verbs_fake_stranger_answer(), -1);
}

static void strangers_in_the_door_do_not_hold_up_the_end(void **state)
{
	for (int i = 0; i < 20; i++)
		verbs_fake_stranger(lab_addresses[1], "knock", 5);
	lab_settle();
	for (int i = 0; i < 20; i++)
		verbs_fake_stranger(lab_addresses[3], "knock", 5);
}

/* ---- before it is up ---- */

static void frames_before_established_wait_for_it(void **state)
{
	struct mrcd_link *a;

	verbs_fake_hold_established(true);
	lab_connect(0);
	lab_until(lab->a->paths[0].ups == 1);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 5; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a);
	lab_until(lab_verbs(1)->counters.receives == 5);
	assert_int_equal(lab->b->paths[0].frame_count, 0);
	verbs_fake_hold_established(false);
	lab_until(lab->b->paths[0].frame_count == 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(lab->b->paths[0].frames[i].hdr.msg, i);
	talk(0);
	assert_true(is_all_posted(1));
}

static void frames_of_a_link_that_never_comes_up_give_their_entries_back(void **state)
{
	struct mrcd_link *a;

	verbs_fake_hold_established(true);
	lab->b->is_up_refused = true;
	lab_connect(0);
	lab_until(lab->a->paths[0].ups == 1);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 5; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a);
	lab_until(lab_verbs(1)->counters.receives == 5);
	assert_false(is_all_posted(1));
	verbs_fake_hold_established(false);
	lab_until(!lab_verbs(1)->link_count && lab->a->paths[0].downs == 1);
	assert_int_equal(lab->b->paths[0].frame_count, 0);
	assert_true(is_all_posted(1));
}

static void who_sends_more_than_its_share_before_it_is_up_is_turned_away(void **state)
{
	struct mrcd_link *a;

	verbs_fake_hold_established(true);
	lab->conf.handshake_timeout_ns = 100 * MRC_S; /* it is not that which ends it */
	lab_connect(0);
	lab_until(lab->a->paths[0].ups == 1);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < MRCD_VERBS_SHARE_MIN + 1; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a);
	lab_until(!lab_verbs(1)->link_count && lab->a->paths[0].downs == 1);
	assert_int_equal(lab->b->paths[0].ups, 0);
	assert_true(is_all_posted(1));
}

/* The last word of the connection manager is lost, but data has come: the device says so. */
static void data_stands_for_a_lost_last_word(void **state)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_COMM_EST};

	verbs_fake_hold_established(true);
	lab_connect(0);
	lab_until(lab->a->paths[0].ups == 1);
	event.element.qp = LIST_FIRST(&lab_verbs(1)->links)->qp;
	verbs_fake_async(lab_addresses[1], &event);
	lab_until(lab->b->paths[0].ups == 1);
	talk(0);
}

/* ---- the end ---- */

static void what_had_come_before_a_failure_is_handed_up(void **state)
{
	struct mrcd_link *a;

	lab_up(0);
	talk(0);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 5; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a); /* they lie in b's completion queue now */
	mrcd_verbs_link_down(lab_link(lab->b, 0), MRC_REASON_ERROR, "the test's");
	assert_int_equal(lab->b->paths[0].downs, 0);
	lab_until(lab->b->paths[0].downs == 1);
	assert_int_equal(lab->b->paths[0].frame_count, 6);
	assert_string_equal(lab->b->paths[0].why, "the test's");
	/* RESET would have taken them off the queue, with their entries. */
	assert_true(is_all_posted(1));
}

static void more_than_one_turn_takes_is_handed_up_before_reset_as_well(void **state)
{
	struct mrcd_verbs_device *device;
	struct mrcd_verbs_link *b;
	uint8_t frame[MRC_WIRE_HDR_BYTES];
	struct mrc_act_post post;
	uint32_t count;

	lab_free();
	lab_new();
	lab->conf.rails[1].receive_entries = 6000;
	lab_open();
	lab_until(lab_has_devices());
	lab_up(0);
	b = lab_link(lab->b, 0);
	device = lab_verbs(1)->device;
	count = device->entry_count;
	post = lab_control(lab->a->paths[0].link, MRC_WIRE_STATE, 1, 0);
	mrc_wire_encode(&post.hdr, mrcd_crc32c, frame);
	for (uint32_t i = 0; i < count; i++)
		verbs_fake_receive(device->srq, device->recv_cq, b->number, frame, sizeof(frame),
				   IBV_WC_SUCCESS);
	mrcd_verbs_link_down(b, MRC_REASON_ERROR, "the test's");
	lab_until(lab->b->paths[0].downs == 1);
	assert_int_equal(lab->b->paths[0].frame_count, count);
	assert_true(is_all_posted(1));
}

static void what_comes_after_the_engine_asked_for_the_fence_is_not(void **state)
{
	struct mrcd_link *a;

	lab_up(0);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 5; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a);
	fence(lab->b, 0);
	lab_until(lab->b->paths[0].fences == 1);
	assert_int_equal(lab->b->paths[0].frame_count, 0);
	assert_true(is_all_posted(1));
}

static void a_fence_holds_when_reset_has_returned_and_not_before(void **state)
{
	uint32_t number;

	lab_up(0);
	lab_up(1);
	number = lab_link(lab->a, 0)->number;
	verbs_fake_gate(VERBS_FAKE_TO_ERR, true);
	fence(lab->a, 0);
	lab_until(verbs_fake_calls(VERBS_FAKE_TO_ERR) >= 1);
	talk(1);
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_TO_RESET), 0);
	verbs_fake_gate(VERBS_FAKE_TO_RESET, true);
	verbs_fake_gate(VERBS_FAKE_TO_ERR, false);
	lab_until(verbs_fake_calls(VERBS_FAKE_TO_RESET) >= 1);
	talk(1);
	assert_int_equal(verbs_fake_qp_state(number), IBV_QPS_ERR);
	assert_int_equal(lab->a->paths[0].fences, 0);
	verbs_fake_gate(VERBS_FAKE_TO_RESET, false);
	lab_until(lab->a->paths[0].fences == 1);
	/* And keeps its number for a while. */
	assert_int_equal(verbs_fake_qp_state(number), IBV_QPS_RESET);
	assert_int_equal(mrcd_verbs_link_by_number(lab_verbs(0), number)->state,
			 MRCD_VERBS_LINK_QUARANTINE);
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_DESTROY_QP), 0);
	lab_until(verbs_fake_qp_state(number) == IBV_QPS_UNKNOWN);
	lab_until(!lab_verbs(0)->link_count);
}

/* Soft devices do not tell when they have let go of the receive entries: that is found out. */
static void a_device_without_a_last_event_is_waited_for_a_few_times_only(void **state)
{
	verbs_fake_last_event(false);
	for (uint32_t i = 1; i <= 6; i++) {
		lab_up(0);
		fence(lab->a, 0);
		lab_until(lab->a->paths[0].fences == i && lab->b->paths[0].downs == i);
		assert_int_equal(lab_verbs(0)->last_misses, MRC_MIN(i, 4U));
	}
	assert_int_equal(lab_verbs(2)->last_misses, 0);
}

static void a_reset_that_is_refused_becomes_a_destroy(void **state)
{
	lab_up(0);
	lab_up(1);
	verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EINVAL);
	verbs_fake_gate(VERBS_FAKE_DESTROY_QP, true);
	fence(lab->a, 0);
	lab_until(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 1);
	talk(1); /* a slow one is no other's trouble */
	assert_int_equal(lab->a->paths[0].fences, 0);
	verbs_fake_gate(VERBS_FAKE_DESTROY_QP, false);
	lab_until(lab->a->paths[0].fences == 1);
}

/* Of a queue pair that lives, nobody is told that it is fenced: its number, in any state but RESET. */
static bool is_alive(uint32_t number)
{
	enum ibv_qp_state state = verbs_fake_qp_state(number);

	return state != IBV_QPS_RESET && state != IBV_QPS_UNKNOWN;
}

static void a_fence_is_not_claimed_while_the_queue_pair_cannot_be_destroyed(void **state)
{
	uint32_t number;

	for (int is_iwarp = 0; is_iwarp < 2; is_iwarp++) {
		if (is_iwarp)
			become_iwarp(state);
		lab_up(0);
		lab_up(1);
		number = lab_link(lab->b, 0)->number;
		verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EINVAL);
		verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, -1, EBUSY);
		fence(lab->b, 0);
		lab_until(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 4);
		talk(1);
		assert_true(is_alive(number));
		assert_int_equal(lab->b->paths[0].fences, 0);
		/* Nor that it went down, and nothing takes its place. */
		lab_until(mrcd_verbs_link_by_number(lab_verbs(1), number)->state ==
			  MRCD_VERBS_LINK_STUCK);
		assert_non_null(strstr(lab_verbs(1)->last_error, "can be neither reset nor"));
		verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, 0, 0);
		lab_until(lab->b->paths[0].fences == 1);
		assert_false(is_alive(number));
		verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, 0, 0);
		lab_until(lab->a->paths[0].downs == 1);
		lab_up(0);
		talk(0);
	}
}

/* The same where it went down by itself: its path is told when nothing can land any more. */
static void a_failed_link_is_down_when_its_queue_pair_is_gone(void **state)
{
	uint32_t number;

	lab_up(0);
	number = lab_link(lab->b, 0)->number;
	verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EINVAL);
	verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, 3, EAGAIN);
	verbs_fake_qp_fail(number, IBV_WC_RETRY_EXC_ERR);
	mrcd_verbs_link_down(lab_link(lab->b, 0), MRC_REASON_ERROR, "the test's");
	lab_until(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 1);
	assert_int_equal(lab->b->paths[0].downs, 0);
	lab_until(lab->b->paths[0].downs == 1);
	assert_false(is_alive(number));
	assert_string_equal(lab->b->paths[0].why, "the test's");
	assert_true(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 4);
}

/* Then the kernel has destroyed it, and says that there is nothing to destroy. */
static void a_queue_pair_of_a_device_that_is_gone_is_gone(void **state)
{
	static const int errors[] = {EIO, ENODEV};

	verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EIO);
	for (size_t i = 0; i < MRC_ARRAY_LEN(errors); i++) {
		lab_up(0);
		verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, -1, errors[i]);
		fence(lab->a, 0);
		lab_until(lab->a->paths[0].fences == i + 1 && lab->b->paths[0].downs == i + 1);
		assert_int_equal(lab_verbs(0)->last_error[0], '\0');
	}
}

/* It still receives, so there is no last entry to wait for; RESET stops it as well. */
static void a_queue_pair_that_does_not_go_to_err_is_reset_at_once(void **state)
{
	uint32_t number;

	verbs_fake_last_event(false);
	lab_up(0);
	number = lab_link(lab->a, 0)->number;
	verbs_fake_fail(VERBS_FAKE_TO_ERR, 0, 1, ENOMEM);
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1);
	assert_int_equal(verbs_fake_qp_state(number), IBV_QPS_RESET);
	assert_int_equal(lab_verbs(0)->last_misses, 0);
	assert_non_null(strstr(lab_verbs(0)->last_error, "does not stop: "));
}

static void a_queue_pair_is_put_away_as_soon_as_the_device_lets_go_of_it(void **state)
{
	uint32_t number;

	lab_up(0);
	number = lab_link(lab->a, 0)->number;
	verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, 2, EBUSY);
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1);
	lab_until(verbs_fake_qp_state(number) == IBV_QPS_UNKNOWN);
	assert_true(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 3);
	lab_until(!lab_verbs(0)->link_count && !lab_verbs(1)->link_count);
}

static void a_rail_that_closes_asks_for_a_while_and_claims_nothing(void **state)
{
	lab_up(0);
	verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EINVAL);
	verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, 6, EBUSY);
	fence(lab->a, 0);
	lab_until(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 2);
	for (int i = 0; i < 4; i++)
		mrcd_rail_verbs_ops.close(&lab->worker.rails[i]);
	assert_int_equal(lab->a->paths[0].fences, 1);
	assert_int_equal(verbs_fake_counts().qps, 0);

	tear_down(state);
	set_up(state);
	lab_up(0);
	lab_up(1); /* this one it is just told to put away */
	fence(lab->a, 1);
	lab_until(lab->a->paths[1].fences == 1);
	verbs_fake_fail(VERBS_FAKE_TO_RESET, 0, -1, EINVAL);
	verbs_fake_fail(VERBS_FAKE_DESTROY_QP, 0, -1, EBUSY);
	fence(lab->a, 0);
	lab_until(verbs_fake_calls(VERBS_FAKE_DESTROY_QP) >= 2);
	for (int i = 0; i < 4; i++)
		mrcd_rail_verbs_ops.close(&lab->worker.rails[i]);
	assert_int_equal(lab->a->paths[0].fences, 0);
	assert_true(verbs_fake_counts().qps > 0);
	assert_true(lab->b->paths[0].link || lab->b->paths[0].fencing ||
		    lab->b->paths[0].downs == 0);
	verbs_fake_exit();
	lab->a->paths[0].fencing = NULL;
	lab->b->paths[0].link = NULL;
	lab->b->paths[1].link = NULL;
}

/* The kernel would say goodbye where nothing may be said. */
static void what_is_fenced_stays_until_its_rail_has_a_carrier(void **state)
{
	struct mrcd_rail *rail = lab->a->paths[0].rail;
	uint32_t numbers[2];
	int ids;

	lab_up(0);
	lab_up(1);
	numbers[0] = lab_link(lab->a, 0)->number;
	numbers[1] = lab_link(lab->a, 1)->number;
	ids = verbs_fake_counts().ids;
	rail->is_carrier_up = false;
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1);
	/* The other one's is over later. */
	fence(lab->a, 1);
	lab_until(verbs_fake_qp_state(numbers[1]) == IBV_QPS_UNKNOWN);
	lab_until(verbs_fake_counts().ids == ids - 3);
	assert_int_equal(verbs_fake_qp_state(numbers[0]), IBV_QPS_RESET);
	rail->is_carrier_up = true;
	lab_until(verbs_fake_qp_state(numbers[0]) == IBV_QPS_UNKNOWN);
	lab_up(0);
	/* And a rail that closes has no time. */
	rail->is_carrier_up = false;
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 2);
}

static void work_requests_that_reset_loses_are_accounted_for(void **state)
{
	struct mrcd_region_rail *at;
	struct mrcd_link *a;

	lab_regions();
	at = &lab->send_region->rails[0];
	lab_up(0);
	a = lab->a->paths[0].link;
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 10; i++)
		lab_post(a, lab_direct(a, i, i * 5000U, 5000));
	lab_flush(a);
	assert_int_equal(at->wr_count, 10);
	/* Nothing is flushed, as where the device has lost them. */
	verbs_fake_fail(VERBS_FAKE_TO_ERR, 0, 1, EINVAL);
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1);
	assert_int_equal(at->wr_count, 0);
	assert_int_equal(lab->a->paths[0].sent, 0); /* nobody was told that they went out */
	mrcd_region_end(lab->send_region);
	lab_until(!LIST_NEXT(LIST_FIRST(&lab->worker.regions), entry));
	lab->send_region = NULL;
}

static void a_new_link_takes_the_place_of_the_old_one_when_that_is_fenced(void **state)
{
	uint32_t number;

	lab_up(0);
	number = lab_link(lab->b, 0)->number;
	verbs_fake_gate(VERBS_FAKE_TO_RESET, true);
	lab_connect(0);
	lab_until(lab->a->paths[0].busies == 1 && lab->b->paths[0].busies == 1);
	lab_up(1); /* while nothing else can be fenced */
	talk(1);
	assert_int_equal(lab->a->paths[0].ups, 1);
	verbs_fake_gate(VERBS_FAKE_TO_RESET, false);
	lab_until(lab->a->paths[0].ups == 2 && lab->b->paths[0].ups == 2);
	assert_int_equal(lab->a->paths[0].fences, 1);
	assert_int_equal(lab->b->paths[0].fences, 1);
	assert_int_equal(lab->a->paths[0].downs + lab->b->paths[0].downs, 0);
	assert_int_equal(verbs_fake_qp_state(number), IBV_QPS_RESET);
	assert_int_not_equal(lab_link(lab->b, 0)->number, number);
	talk(0);
}

static void a_late_completion_of_a_fenced_epoch_finds_nobody(void **state)
{
	struct mrcd_verbs_device *device = lab_verbs(1)->device;
	uint32_t numbers[2] = {0, 0xdead}, downs;
	struct mrc_act_post post;
	uint8_t frame[MRC_WIRE_HDR_BYTES];

	lab_up(0);
	numbers[0] = lab_link(lab->b, 0)->number;
	post = lab_control(lab->a->paths[0].link, MRC_WIRE_STATE, 1, 0);
	mrc_wire_encode(&post.hdr, mrcd_crc32c, frame);
	lab_up(0);
	downs = lab->b->paths[0].downs; /* the old one, when its connection's end was quicker */
	for (int i = 0; i < 2; i++) {
		verbs_fake_receive(device->srq, device->recv_cq, numbers[i], frame, sizeof(frame),
				   IBV_WC_SUCCESS);
		verbs_fake_receive(device->srq, device->recv_cq, numbers[i], frame, sizeof(frame),
				   IBV_WC_WR_FLUSH_ERR);
	}
	lab_until(lab_verbs(1)->counters.receives == 4);
	assert_int_equal(lab->b->paths[0].frame_count, 0);
	assert_int_equal(lab->b->paths[0].downs, downs);
	talk(0);
	assert_true(is_all_posted(1));
}

static void errors_of_the_queue_pair_end_the_link(void **state)
{
	struct mrcd_link *a;

	lab_up(0);
	verbs_fake_hold_work(true);
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 5; i++)
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 20));
	lab_flush(a);
	verbs_fake_qp_fail(lab_link(lab->a, 0)->number, IBV_WC_RETRY_EXC_ERR);
	lab_until(lab->a->paths[0].downs == 1);
	assert_int_equal(lab->a->paths[0].reason, MRC_REASON_ERROR);
	assert_string_equal(lab->a->paths[0].why, "retries exceeded");
	assert_int_equal(lab->a->paths[0].sent, 0); /* flushed is not sent */
	assert_int_equal(lab_verbs(0)->counters.errors, 1);
	assert_int_equal(lab_verbs(0)->counters.flushes, 4);
	lab_until(lab->b->paths[0].downs == 1);
	assert_string_equal(lab->b->paths[0].why, "closed by the other end");
}

/* mrcctl fault: the same, brought about from outside. */
static void a_queue_pair_in_err_is_noticed_by_what_is_sent_next(void **state)
{
	struct mrcd_rail *rail = lab->a->paths[0].rail;
	struct mrcd_link *a;

	lab_up(0);
	lab_up(1);
	assert_int_equal(rail->ops->fault(rail, "no-such"), -EINVAL);
	assert_int_equal(rail->ops->fault(rail, "qp-error"), 1);
	assert_int_equal(verbs_fake_qp_state(lab_link(lab->a, 0)->number), IBV_QPS_ERR);
	lab_settle();
	assert_int_equal(lab->a->paths[0].downs, 0);
	a = lab->a->paths[0].link;
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 1, 20));
	lab_flush(a);
	lab_until(lab->a->paths[0].downs == 1 && lab->b->paths[0].downs == 1);
	assert_string_equal(lab->a->paths[0].why, "flushed");
	assert_int_equal(lab->a->paths[0].sent, 0);
	assert_int_equal(rail->ops->fault(rail, "qp-error"), 0);
	lab_up(0);
	talk(0);
	talk(1);
}

/* A drill: nothing gets through and nobody is told, until it is over or somebody has given it up. */
static void a_silent_rail_takes_in_and_sends_nothing(void **state)
{
	struct mrcd_rail *rail = lab->a->paths[0].rail;
	uint32_t heard_a, heard_b;
	struct mrcd_link *a, *b;

	lab_up(0);
	talk(0);
	heard_a = lab->a->paths[0].frame_count;
	heard_b = lab->b->paths[0].frame_count;
	rail->drill = MRCD_DRILL_SLOW;
	assert_int_equal(rail->ops->drill(rail), -ENOTSUP);
	rail->drill = MRCD_DRILL_SILENCE;
	assert_int_equal(rail->ops->drill(rail), 0);
	a = lab->a->paths[0].link;
	b = lab->b->paths[0].link;
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 90, 20));
	lab_flush(a);
	lab_post(b, lab_control(b, MRC_WIRE_STATE, 91, 20));
	lab_flush(b);
	lab_settle();
	assert_int_equal(lab->a->paths[0].frame_count, heard_a);
	assert_int_equal(lab->b->paths[0].frame_count, heard_b);
	assert_int_equal(lab->a->paths[0].downs + lab->b->paths[0].downs, 0);
	rail->drill = MRCD_DRILL_NONE;
	assert_int_equal(rail->ops->drill(rail), 0);
	lab_until(lab->a->paths[0].downs == 1 && lab->b->paths[0].downs == 1);
	assert_int_equal(lab->a->paths[0].reason, MRC_REASON_SILENT);
	lab_up(0);
	talk(0);
}

static void a_post_that_is_refused_ends_the_link(void **state)
{
	struct mrcd_link *a;

	lab_up(0);
	verbs_fake_fail(VERBS_FAKE_POST_SEND, 0, 1, ENOMEM);
	a = lab->a->paths[0].link;
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 1, 20));
	lab_flush(a);
	assert_int_equal(lab->a->paths[0].downs, 0); /* not from inside the call */
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 2, 20));
	lab_flush(a);
	lab_until(lab->a->paths[0].downs == 1);
	assert_non_null(strstr(lab->a->paths[0].why, "post: "));
	assert_int_equal(lab->b->paths[0].frame_count, 0);
}

static void a_disconnection_ends_the_link_at_both_ends(void **state)
{
	lab_up(0);
	verbs_fake_disconnect(lab_link(lab->a, 0)->number);
	lab_until(lab->a->paths[0].downs == 1 && lab->b->paths[0].downs == 1);
	assert_string_equal(lab->a->paths[0].why, "disconnected");
	/* Again, and of an epoch that has gone: nobody cares. */
	lab_up(0);
	assert_int_equal(lab->a->paths[0].downs, 1);
}

static void who_hears_that_the_other_process_has_ended_ends_the_link(void **state)
{
	lab_up(0);
	shutdown(lab_link(lab->b, 0)->fd, SHUT_RDWR);
	lab_until(lab->a->paths[0].downs == 1);
	assert_int_equal(lab->a->paths[0].reason, MRC_REASON_CLOSED);
}

static void a_link_that_fails_while_it_is_fenced_is_fenced(void **state)
{
	lab_up(0);
	verbs_fake_gate(VERBS_FAKE_TO_ERR, true);
	mrcd_verbs_link_down(lab_link(lab->a, 0), MRC_REASON_ERROR, "the test's");
	lab_until(verbs_fake_calls(VERBS_FAKE_TO_ERR) >= 1);
	fence(lab->a, 0);
	verbs_fake_gate(VERBS_FAKE_TO_ERR, false);
	lab_until(lab->a->paths[0].fences == 1);
	lab_settle();
	assert_int_equal(lab->a->paths[0].downs, 0);
}

static void a_rail_closes_within_the_quarantine(void **state)
{
	lab_up(0);
	fence(lab->a, 0);
	lab_until(lab->a->paths[0].fences == 1 && lab->b->paths[0].downs == 1);
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_DESTROY_QP), 0);
}

static void a_rail_closes_while_it_connects(void **state)
{
	for (int i = 0; i < 40; i++) {
		lab_connect(0);
		lab_connect(1);
		for (int turn = 0; turn < i; turn++)
			event_base_loop(lab->worker.base, EVLOOP_NONBLOCK);
		tear_down(state);
		set_up(state);
	}
}

static void a_rail_that_was_closed_opens_again(void **state)
{
	for (int i = 0; i < 4; i++)
		mrcd_rail_verbs_ops.close(&lab->worker.rails[i]);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(lab->worker.rails[i].conf, &lab->conf.rails[i]);
	lab_open();
	lab_until(lab_has_devices());
	lab_up(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(two_hosts_with_devices_get_a_queue_pair),
		TEST(iwarp_works_as_well),
		TEST(inline_is_what_the_device_has),
		TEST(a_second_attempt_beside_the_first_is_ignored),
		TEST(a_request_that_nobody_answers_ends_by_our_own_timer),
		TEST(a_connect_that_blocks_is_ended_and_holds_up_nobody),
		TEST(a_rejected_request_is_a_failed_attempt),
		TEST(an_accept_that_fails_ends_the_attempt_at_both_ends),
		TEST(every_step_may_fail_and_is_told),
		TEST(epochs_that_moved_on_end_the_attempt),
		TEST(a_forgotten_peer_hears_nothing_of_its_attempts),
		TEST(a_link_whose_connection_ended_while_it_came_up_is_not_taken_up),
		TEST(whoever_lacks_the_token_gets_no_queue_pair),
		TEST(strangers_in_the_door_do_not_hold_up_the_end),
		TEST(frames_before_established_wait_for_it),
		TEST(frames_of_a_link_that_never_comes_up_give_their_entries_back),
		TEST(who_sends_more_than_its_share_before_it_is_up_is_turned_away),
		TEST(data_stands_for_a_lost_last_word),
		TEST(what_had_come_before_a_failure_is_handed_up),
		TEST(more_than_one_turn_takes_is_handed_up_before_reset_as_well),
		TEST(what_comes_after_the_engine_asked_for_the_fence_is_not),
		TEST(a_fence_holds_when_reset_has_returned_and_not_before),
		TEST(a_device_without_a_last_event_is_waited_for_a_few_times_only),
		TEST(a_reset_that_is_refused_becomes_a_destroy),
		TEST(a_fence_is_not_claimed_while_the_queue_pair_cannot_be_destroyed),
		TEST(a_failed_link_is_down_when_its_queue_pair_is_gone),
		TEST(a_queue_pair_of_a_device_that_is_gone_is_gone),
		TEST(a_queue_pair_that_does_not_go_to_err_is_reset_at_once),
		TEST(a_queue_pair_is_put_away_as_soon_as_the_device_lets_go_of_it),
		TEST(a_rail_that_closes_asks_for_a_while_and_claims_nothing),
		TEST(what_is_fenced_stays_until_its_rail_has_a_carrier),
		TEST(work_requests_that_reset_loses_are_accounted_for),
		TEST(a_new_link_takes_the_place_of_the_old_one_when_that_is_fenced),
		TEST(a_late_completion_of_a_fenced_epoch_finds_nobody),
		TEST(errors_of_the_queue_pair_end_the_link),
		TEST(a_queue_pair_in_err_is_noticed_by_what_is_sent_next),
		TEST(a_silent_rail_takes_in_and_sends_nothing),
		TEST(a_post_that_is_refused_ends_the_link),
		TEST(a_disconnection_ends_the_link_at_both_ends),
		TEST(who_hears_that_the_other_process_has_ended_ends_the_link),
		TEST(a_link_that_fails_while_it_is_fenced_is_fenced),
		TEST(a_rail_closes_within_the_quarantine),
		TEST(a_rail_closes_while_it_connects),
		TEST(a_rail_that_was_closed_opens_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
