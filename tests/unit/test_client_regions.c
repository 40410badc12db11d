/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's arenas as a rail with a device is offered them, from its attach to its last byte. */
#include "client_side_lab.h"

#define RKEY 0x77U

static uint32_t removes; /* what the rail was asked to deregister */
static bool is_answering;

static void rail_add(struct mrcd_rail *rail, struct mrcd_region *region)
{
	region->rails[rail->index].rkey = RKEY;
	region->rails[rail->index].base = (uintptr_t)region->addr;
	mrcd_region_on_added(region, rail, 0);
}

static void rail_remove(struct mrcd_rail *rail, struct mrcd_region *region)
{
	removes++;
	if (is_answering)
		mrcd_region_on_removed(region, rail);
}

static const struct mrcd_rail_ops device_ops = {
	.kind = "device",
	.region_add = rail_add,
	.region_remove = rail_remove,
};

static int setup(void **state)
{
	struct lab *lab;

	lab_setup(state);
	lab = *state;
	lab->worker.rail_count = 1;
	lab->worker.rails[0].ops = &device_ops;
	lab->worker.rails[0].worker = &lab->worker;
	removes = 0;
	is_answering = true;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;
	bool is_empty;

	mrcd_client_side_free(lab->worker.clients);
	lab->worker.clients = NULL;
	is_empty = LIST_EMPTY(&lab->worker.regions);
	mrcd_region_free_all(&lab->worker);
	lab_teardown(state);
	assert_true(is_empty || !is_answering);
	return 0;
}

static struct mrcd_region *region_of(struct lab *lab, bool is_landing)
{
	struct mrcd_region *region;

	LIST_FOREACH(region, &lab->worker.regions, entry)
	{
		if (region->is_landing == is_landing && !region->is_ending)
			return region;
	}
	return NULL;
}

static uint32_t region_count(struct lab *lab)
{
	struct mrcd_region *region;
	uint32_t count = 0;

	LIST_FOREACH(region, &lab->worker.regions, entry)
	count++;
	return count;
}

/* The engine was told the flow before its key. */
static void expect_key_after(const struct mrcd_peer *peer, enum mrc_event_kind kind)
{
	const struct mrc_event_in *ev;

	assert_true(peer->event_count >= 2);
	ev = &peer->events[peer->event_count - 2];
	assert_int_equal(ev[0].kind, kind);
	assert_int_equal(ev[1].kind, MRC_EV_KEY);
	assert_int_equal(ev[1].key.flow, ev[0].channel.flow);
	assert_int_equal(ev[1].key.rkey, RKEY);
	assert_true(ev[1].key.is_valid);
}

static void arenas_are_regions_from_the_attach_on(void **state)
{
	struct lab *lab = *state;
	struct mrcd_region *send, *landing;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	assert_int_equal(region_count(lab), 2);
	send = region_of(lab, false);
	landing = region_of(lab, true);
	assert_int_equal(send->len_bytes, prog.welcome.send_arena_bytes);
	assert_int_equal(landing->len_bytes, prog.welcome.landing_arena_bytes);
	assert_int_equal(send->rails[0].state, MRCD_REGION_READY);
	prog.send[5] = 'x';
	assert_int_equal(send->addr[5], 'x');
	landing->addr[5] = 'y';
	assert_int_equal(prog.landing[5], 'y');
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(removes, 2);
	assert_int_equal(region_count(lab), 0);
}

static void channel_that_is_opened_brings_the_keys(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_open(lab, &prog, "b");
	expect_key_after(&peer_b, MRC_EV_CH_OPEN);
	prog_open(lab, &prog, "c");
	expect_key_after(&peer_c, MRC_EV_CH_OPEN);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_KEY, NULL), 1);
	prog_leave(&prog);
}

static void channel_that_is_accepted_brings_the_keys(void **state)
{
	struct mrc_action act = {.kind = MRC_ACT_CH_INCOMING};
	struct lab *lab = *state;
	struct prog prog;
	uint32_t id;

	prog_attach(lab, &prog, "x");
	prog_request(&prog, MRC_ABI_REQ_LISTEN, "svc", 0, 1);
	lab_turn(lab);
	prog_expect(&prog, MRC_CQE_LISTENING);
	act.channel.id = 900;
	snprintf(act.channel.service, sizeof(act.channel.service), "svc");
	lab_perform(lab, &peer_b, act);
	id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	assert_int_equal(peer_saw(&peer_b, MRC_EV_KEY, NULL), 0);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = id});
	lab_turn(lab);
	expect_key_after(&peer_b, MRC_EV_CH_ACCEPT);
	prog_leave(&prog);
}

static void channel_that_the_engine_refused_brings_none(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	peer_b.answer_of[MRC_EV_CH_OPEN] = -ENOSPC;
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 1);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CONNECTED).status, MRC_STATUS_NO_RESOURCES);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_KEY, NULL), 0);
	prog_leave(&prog);
}

/* What a peer adds to `base`, and what tcp and COPY make of the same address, are one byte. */
static void addresses_count_from_the_first_byte_of_the_landing_region(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct mrcd_region *landing;
	struct pipe_end end[2];
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	landing = region_of(lab, true);
	for (int i = 0; i < 2; i++) {
		struct mrc_place place = {.is_eager = true};

		end[i] = prog_open(lab, &prog, "b");
		peer_saw(&peer_b, MRC_EV_CH_OPEN, &ev);
		place.channel_cookie = end[i].cookie;
		place.addr = 100;
		assert_ptr_equal(mrcd_landing_memory(&lab->worker, &place, 1),
				 landing->addr + ev.channel.ring_addr + 100);
		assert_true(ev.channel.ring_addr + ev.channel.ring_bytes <= landing->len_bytes);
		landing->addr[ev.channel.ring_addr + 100] = (uint8_t)(0xe0 + i);
		lab_deliver_eager(lab, &end[i], 0, 100, 1);
		assert_int_equal(prog.landing[prog_expect(&prog, MRC_CQE_ARRIVED).offset],
				 0xe0 + i);
	}
	addr = lab_deliver_large(lab, &end[1], 1, 50000);
	landing->addr[addr] = 0x1a;
	assert_int_equal(prog.landing[prog_expect(&prog, MRC_CQE_ARRIVED).offset], 0x1a);
	assert_ptr_equal(mrcd_landing_memory(&lab->worker,
					     &(struct mrc_place){.channel_cookie = end[1].cookie,
								 .addr = addr},
					     50000),
			 landing->addr + addr);
	prog_leave(&prog);
}

static void landing_region_of_a_dead_client_stays_until_nothing_can_land(void **state)
{
	struct lab *lab = *state;
	struct mrcd_region *landing;
	struct pipe_end b, c;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	landing = region_of(lab, true);
	assert_ptr_equal(mrcd_send_region(&lab->worker, b.cookie), region_of(lab, false));
	prog_leave(&prog);
	lab_turn(lab);
	assert_null(mrcd_send_region(&lab->worker, b.cookie));
	assert_int_equal(removes, 1); /* of the send arena, which went with the client */
	assert_int_equal(region_count(lab), 1);
	landing->addr[0] = 1; /* a write under way lands */
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &b));
	lab_turn(lab);
	assert_int_equal(removes, 1);
	landing->addr[landing->len_bytes - 1] = 1;
	lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_FREE, &c));
	lab_turn(lab);
	assert_int_equal(removes, 2);
	assert_int_equal(region_count(lab), 0);
}

/* What broke the rules is sent from no more, though it is taken apart only next turn. */
static void send_region_of_a_broken_client_is_not_named(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	/* It keeps more messages than there are records for. */
	for (uint64_t i = 0; mrcd_client_side_count(lab->worker.clients) > 0; i++) {
		assert_non_null(mrcd_send_region(&lab->worker, end.cookie));
		assert_true(i < 1000);
		lab_deliver_eager(lab, &end, i, 0, 1);
	}
	assert_non_null(region_of(lab, false));
	assert_null(mrcd_send_region(&lab->worker, end.cookie));
	lab_turn(lab);
	assert_null(region_of(lab, false));
	prog_leave(&prog);
}

/* The engine can know a channel that it has freed; its flow must not get another client's keys. */
static void next_client_of_the_slot_is_another_flow(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in first = {0}, second = {0};
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_saw(&peer_b, MRC_EV_CH_OPEN, &first);
	prog_leave(&prog);
	lab_turn(lab);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "channels"), -1);
	prog_attach(lab, &prog, "y");
	end = prog_open(lab, &prog, "b");
	peer_saw(&peer_b, MRC_EV_CH_OPEN, &second);
	assert_int_equal(first.channel.cookie >> 48, second.channel.cookie >> 48); /* the slot */
	assert_int_not_equal(first.channel.flow, second.channel.flow);
	assert_int_equal(mrcd_send_region(&lab->worker, end.cookie)->flow, second.channel.flow);
	assert_null(mrcd_send_region(&lab->worker, first.channel.cookie));
	prog_leave(&prog);
}

static void regions_of_the_last_clients_wait_for_the_rails_to_close(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	is_answering = false;
	prog_attach(lab, &prog, "x");
	prog_open(lab, &prog, "b");
	prog_leave(&prog);
	mrcd_client_side_free(lab->worker.clients);
	lab->worker.clients = NULL;
	assert_int_equal(removes, 2);
	assert_int_equal(region_count(lab), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(arenas_are_regions_from_the_attach_on),
		TEST(channel_that_is_opened_brings_the_keys),
		TEST(channel_that_is_accepted_brings_the_keys),
		TEST(channel_that_the_engine_refused_brings_none),
		TEST(addresses_count_from_the_first_byte_of_the_landing_region),
		TEST(landing_region_of_a_dead_client_stays_until_nothing_can_land),
		TEST(send_region_of_a_broken_client_is_not_named),
		TEST(next_client_of_the_slot_is_another_flow),
		TEST(regions_of_the_last_clients_wait_for_the_rails_to_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
