/* SPDX-License-Identifier: BSD-2-Clause */
/* Quotas on the client side: what a program may take, and what waits in the daemon until it may go. */
#include <grp.h>
#include <limits.h>

#include "client_side_lab.h"
#include "mrcd_client_impl.h"

/* One entry, which has this process. */
static void quota_set(struct lab *lab, struct mrcd_conf_quota *quota)
{
	quota->who.is_open = true;
	lab->conf.quotas = quota;
	lab->conf.quota_count = 1;
}

static void send_of(struct prog *prog, const struct pipe_end *end, uint64_t len)
{
	prog_submit(prog, (struct mrc_sqe){
				  .op = MRC_SQE_SEND,
				  .level = MRC_LEVEL_COMMITTED,
				  .channel = end->id,
				  .len_bytes = len,
			  });
}

/* The number-th SEND that a peer's engine was given. */
static struct mrc_event_in send_seen(const struct mrcd_peer *peer, uint32_t number)
{
	for (uint32_t i = 0; i < peer->event_count; i++)
		if (peer->events[i].kind == MRC_EV_SEND && number-- == 0)
			return peer->events[i];
	fail_msg("there is no such send");
	return (struct mrc_event_in){0};
}

/* The engine says that this one has ended. */
static void done(struct lab *lab, const struct pipe_end *end, const struct mrc_event_in *sent)
{
	struct mrc_action act = act_msg(MRC_ACT_DONE, end, 0, 0, 0);

	act.msg.cookie = sent->msg.cookie;
	act.msg.level = MRC_LVL_COMMITTED;
	lab_perform(lab, end->peer, act);
}

static void attach_gives_what_the_quota_says(void **state)
{
	struct mrcd_conf_quota quota = {
		.send_arena_bytes = 1 << 20,
		.landing_arena_bytes = 2 << 20,
		.channels_max = 3,
		.sends_max = 5,
	};
	struct lab *lab = *state;
	struct mrc_abi_attach attach = prog_attach_request("greedy");
	struct prog prog, greedy = {0};

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	assert_int_equal(prog.welcome.send_arena_bytes, 1 << 20);
	assert_int_equal(prog.welcome.landing_arena_bytes, 2 << 20);
	assert_int_equal(prog.welcome.channels_max, 3);
	assert_int_equal(prog.welcome.sends_max, 5);
	greedy.fd = prog_connect(lab);
	attach.send_arena_bytes = (1 << 20) + 1; /* less than clients.send-arena */
	assert_true(send(greedy.fd, &attach, sizeof(attach), 0) > 0);
	lab_turn(lab);
	assert_true(prog_welcomed(&greedy));
	assert_int_equal(greedy.welcome.status, -ENOMEM);
	close(greedy.fd);
	prog_leave(&prog);
}

static void a_user_has_so_many_clients(void **state)
{
	struct mrcd_conf_quota quota = {.clients_max = 2};
	struct lab *lab = *state;
	struct prog progs[2], third = {0};

	quota_set(lab, &quota);
	for (int i = 0; i < 2; i++)
		prog_attach(lab, &progs[i], "x");
	assert_non_null(strstr(prog_refused(lab, &third), "2 clients of user"));
	prog_leave(&progs[0]);
	lab_turn(lab);
	prog_attach(lab, &progs[0], "again");
	for (int i = 0; i < 2; i++)
		prog_leave(&progs[i]);
}

/* What is more is refused, and the answer has the number. */
static void a_program_has_so_many_channels(void **state)
{
	struct mrcd_conf_quota quota = {.channels_max = 2};
	struct lab *lab = *state;
	struct mrc_cqe cqe;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	prog_open(lab, &prog, "b");
	prog_open(lab, &prog, "c");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 9);
	lab_turn(lab);
	cqe = prog_expect(&prog, MRC_CQE_CONNECTED);
	assert_int_equal(cqe.status, MRC_STATUS_NO_RESOURCES);
	assert_int_equal(cqe.code, 2);
	/* Fewer than when it attached: nothing is taken back, and the number is the one of now. */
	quota.channels_max = 1;
	mrcd_client_side_configure(lab->worker.clients);
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 10);
	lab_turn(lab);
	cqe = prog_expect(&prog, MRC_CQE_CONNECTED);
	assert_int_equal(cqe.status, MRC_STATUS_NO_RESOURCES);
	assert_int_equal(cqe.code, 1);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

/* By the group it has as its own, and by one of the others it is in. */
static void a_group_s_quota_is_for_its_members(void **state)
{
	gid_t group = 4713, own = getegid(), were[NGROUPS_MAX];
	struct mrcd_conf_quota quota = {
		.channels_max = 3,
		.who = {.groups = &group, .group_count = 1},
	};
	struct prog member, also, other;
	struct lab *lab = *state;
	int were_count = getgroups(NGROUPS_MAX, were);

	if (geteuid() != 0) {
		print_message("programs of other groups take root\n");
		skip();
	}
	assert_true(were_count >= 0);
	lab->conf.quotas = &quota;
	lab->conf.quota_count = 1;
	prog_attach(lab, &other, "other");
	assert_int_equal(setegid(group), 0);
	prog_attach(lab, &member, "member");
	assert_int_equal(setegid(own), 0);
	assert_int_equal(setgroups(1, &group), 0);
	prog_attach(lab, &also, "also");
	assert_int_equal(setgroups((size_t)were_count, were), 0);
	assert_int_equal(other.welcome.channels_max, lab->conf.clients.channels_max);
	assert_int_equal(member.welcome.channels_max, 3);
	assert_int_equal(also.welcome.channels_max, 3);
	prog_leave(&also);
	prog_leave(&member);
	prog_leave(&other);
}

static void weight_goes_with_the_channel(void **state)
{
	struct mrcd_conf_quota quota = {.weight = 7};
	struct mrc_event_in open = {0};
	struct lab *lab = *state;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	prog_open(lab, &prog, "b");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &open), 1);
	assert_int_equal(open.channel.weight, 7);
	prog_leave(&prog);
}

/* Beyond the bound messages wait here, and go by turns of channels when others have ended. */
static void bytes_under_way_have_a_bound(void **state)
{
	struct mrcd_conf_quota quota = {.in_flight_bytes_max = 2000};
	struct lab *lab = *state;
	struct pipe_end ends[2];
	struct mrc_event_in sent;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 2; i++)
		ends[i] = prog_open(lab, &prog, "b");
	for (int i = 0; i < 2; i++)
		for (int n = 0; n < 4; n++)
			send_of(&prog, &ends[i], 1000);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	assert_int_equal(lab_number(lab, "x", "in_flight_bytes"), 2000);
	assert_int_equal(lab_number(lab, "x", "sends_outstanding"), 8);
	for (uint32_t n = 0; n < 8; n++) {
		sent = send_seen(&peer_b, n);
		done(lab, sent.msg.channel == ends[0].engine_id ? &ends[0] : &ends[1], &sent);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), MRC_MIN(n + 3, 8U));
		prog_expect(&prog, MRC_CQE_SENT);
	}
	/* The first channel had sent two when the second came; then each in turn. */
	for (uint32_t n = 2; n < 6; n++)
		assert_int_equal(send_seen(&peer_b, n).msg.channel, ends[n % 2].engine_id);
	assert_int_equal(lab_number(lab, "x", "in_flight_bytes"), 0);
	/* One that is larger than the bound goes when nothing else is under way. */
	send_of(&prog, &ends[0], 5000);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 9);
	prog_leave(&prog);
}

/* A small message of another channel does not go ahead of a large one that waits, for ever and ever. */
static void who_fits_does_not_pass_who_waits(void **state)
{
	static const uint64_t lens[] = {1000, 1500, 500};
	struct mrcd_conf_quota quota = {.in_flight_bytes_max = 2000};
	struct lab *lab = *state;
	struct pipe_end ends[3];
	struct mrc_event_in sent;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 3; i++)
		ends[i] = prog_open(lab, &prog, "b");
	for (int i = 0; i < 3; i++)
		send_of(&prog, &ends[i], lens[i]);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	sent = send_seen(&peer_b, 0);
	done(lab, &ends[0], &sent);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 3);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(send_seen(&peer_b, i).msg.channel, ends[i].engine_id);
	prog_leave(&prog);
}

static void other_clients_do_not_wait_for_it(void **state)
{
	struct mrcd_conf_quota quota = {.in_flight_bytes_max = 1000};
	struct lab *lab = *state;
	struct pipe_end ends[2];
	struct prog progs[2];

	quota_set(lab, &quota);
	for (int i = 0; i < 2; i++) {
		prog_attach(lab, &progs[i], "x");
		ends[i] = prog_open(lab, &progs[i], "b");
	}
	for (int n = 0; n < 3; n++)
		send_of(&progs[0], &ends[0], 1000);
	send_of(&progs[1], &ends[1], 1000);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	for (int i = 0; i < 2; i++)
		prog_leave(&progs[i]);
}

static void what_waits_goes_on_when_the_rate_allows_it(void **state)
{
	/* A message of 100 KB is 20 ms at 40 Mb/s; 10 ms may be ahead. */
	struct mrcd_conf_quota quota = {.rate_bits_per_s = 40000000};
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t begin_ns;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	begin_ns = lab_now_ns();
	for (int n = 0; n < 3; n++)
		send_of(&prog, &end, 100000);
	lab_turn(lab);
	while (peer_saw(&peer_b, MRC_EV_SEND, NULL) < 3)
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	/* Whatever the machine does, it is not earlier. */
	assert_true(lab_now_ns() - begin_ns >= 30 * MRC_MS);
	assert_true(lab_number(lab, "x", "in_flight_bytes") == 300000);
	prog_leave(&prog);
}

/* To look through all that wait costs more than one short message: it is not done for each of them. */
static void short_messages_that_wait_are_looked_at_together(void **state)
{
	/* With what each costs beside its bytes (80) one takes 0.2 ms; 10 ms of them may be ahead. */
	struct mrcd_conf_quota quota = {.rate_bits_per_s = 4000000};
	const uint32_t count = 64; /* as many as it may have */
	const struct mrcd_client *client;
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (uint32_t n = 0; n < count; n++)
		send_of(&prog, &end, 20);
	lab_turn(lab);
	client = lab->worker.clients->clients[0];
	assert_in_range(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1, count - 1);
	/* The next one may go when 0.2 ms at most are paid, and it is looked when a millisecond is over. */
	assert_true(client->deadline_ns >=
		    client->quota.paid_ns - MRCD_QUOTA_BURST_NS + 800 * MRC_US);
	while (peer_saw(&peer_b, MRC_EV_SEND, NULL) < count)
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	prog_leave(&prog);
}

/* A channel that ends while it waits, a message whose time is over while it waits, a client that dies. */
static void what_waits_can_end(void **state)
{
	struct mrcd_conf_quota quota = {.in_flight_bytes_max = 1000};
	struct lab *lab = *state;
	struct pipe_end ends[3];
	struct mrc_event_in sent;
	struct mrc_action down;
	struct prog prog;

	quota_set(lab, &quota);
	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 3; i++)
		ends[i] = prog_open(lab, &prog, "b");
	send_of(&prog, &ends[0], 1000);
	send_of(&prog, &ends[1], 1000);
	prog_submit(&prog, (struct mrc_sqe){
				   .op = MRC_SQE_SEND,
				   .level = MRC_LEVEL_COMMITTED,
				   .channel = ends[2].id,
				   .len_bytes = 1000,
				   .deadline_ns = lab_now_ns() + MRC_MS,
			   });
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	down = act_channel(MRC_ACT_CH_DOWN, &ends[1]);
	down.channel.outcome = MRC_OUT_CLOSED;
	lab_perform(lab, &peer_b, down);
	assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).channel, ends[1].id);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CLOSED).channel, ends[1].id);
	while (lab_number(lab, "x", "sends_outstanding") > 1)
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).status, MRC_STATUS_TIMED_OUT);
	/* The place is free again, for a channel that is still there. */
	send_of(&prog, &ends[2], 1000);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	sent = send_seen(&peer_b, 0);
	done(lab, &ends[0], &sent);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	assert_int_equal(send_seen(&peer_b, 1).msg.channel, ends[2].engine_id);
	send_of(&prog, &ends[0], 1000);
	lab_turn(lab);
	prog_leave(&prog);
	lab_turn(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(attach_gives_what_the_quota_says),
		lab_test(a_user_has_so_many_clients),
		lab_test(a_program_has_so_many_channels),
		lab_test(a_group_s_quota_is_for_its_members),
		lab_test(weight_goes_with_the_channel),
		lab_test(bytes_under_way_have_a_bound),
		lab_test(who_fits_does_not_pass_who_waits),
		lab_test(other_clients_do_not_wait_for_it),
		lab_test(what_waits_goes_on_when_the_rate_allows_it),
		lab_test(short_messages_that_wait_are_looked_at_together),
		lab_test(what_waits_can_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
