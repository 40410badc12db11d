/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From one daemon to the next: a client side is saved, freed, and another one
 * goes on with the same programs, which keep their memory and their sockets.
 */
#include "client_handover_lab.h"

#include <sys/resource.h>
#include <sys/syscall.h>

/* As if c had been taken out of the configuration. */
static struct mrcd_peer *const peers_less[] = {&loop_end, &peer_b, NULL};

static void lab_go_on(struct lab *lab, struct left *left)
{
	char why[MRCD_IMAGE_WHY_BYTES] = "";

	if (lab_try(lab, left, peers_now, why) != 0)
		fail_msg("not taken over: %s", why);
	left_free(left);
	mrcd_client_side_resume(lab->worker.clients);
	lab_turn(lab);
}

static void lab_restart(struct lab *lab)
{
	struct left left;

	lab_leave(lab, &left);
	lab_go_on(lab, &left);
}

/* ---- what goes on ---- */

static void a_program_does_not_notice(void **state)
{
	struct lab *lab = *state;
	struct prog prog, more;

	prog_attach(lab, &prog, "one");
	for (int i = 0; i < 3; i++) {
		lab_restart(lab);
		assert_false(prog_is_ended(&prog));
		assert_int_equal(prog.shm->state, MRC_RING_STATE_RUNNING);
		assert_int_equal(mrcd_client_side_count(lab->worker.clients), 1);
		assert_int_equal(lab_number(lab, "one", "pid"), getpid());
		prog_is_served(lab, &prog);
		prog_expect_nothing(&prog);
	}
	/* And others can attach where they always could. */
	prog_attach(lab, &more, "two");
	prog_is_served(lab, &more);
	prog_leave(&more);
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 0);
}

static void while_no_daemon_is_there_rings_say_so(void **state)
{
	struct lab *lab = *state;
	struct left left;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	lab_leave(lab, &left);
	assert_int_equal(prog.shm->state, MRC_RING_STATE_PAUSED);
	assert_false(prog_is_ended(&prog));
	lab_go_on(lab, &left);
	assert_int_equal(prog.shm->state, MRC_RING_STATE_RUNNING);
	prog_leave(&prog);
}

/* In the ring when the old daemon stopped, put there between the two, asked for on the socket. */
static void what_is_said_meanwhile_is_heard_once(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev;
	struct pipe_end end;
	struct left left;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	prog_send(&prog, &end, 1);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	prog_send(&prog, &end, 2); /* not read any more */
	lab_leave(lab, &left);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	prog_send(&prog, &end, 3);
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 99);
	lab_go_on(lab, &left);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 3);
	assert_int_equal(ev.msg.channel, end.engine_id);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CONNECTED).user_data, 99);
	prog_expect_nothing(&prog);
	lab_restart(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 3);
	prog_leave(&prog);
}

static struct mrc_action act_done(const struct pipe_end *end, const struct mrc_event_in *send,
				  int outcome, bool is_undecided)
{
	struct mrc_action act = act_msg(MRC_ACT_DONE, end, 0, 0, 0);

	act.msg.cookie = send->msg.cookie;
	act.msg.outcome = outcome;
	act.msg.level = outcome == MRC_OUT_OK ? MRC_LVL_COMMITTED : MRC_LVL_PLACED;
	act.msg.is_undecided = is_undecided;
	return act;
}

/* The engine has some, some wait for it, one is answered and not decided. */
static void sends_are_answered_by_the_next_daemon(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in sends[3] = {0};
	struct mrc_action act;
	struct pipe_end end;
	struct prog prog;
	struct mrc_cqe cqe;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 2;
	for (uint64_t i = 1; i <= 4; i++)
		prog_send(&prog, &end, i);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	for (uint32_t i = 0, n = 0; i < peer_b.event_count; i++) {
		if (peer_b.events[i].kind == MRC_EV_SEND)
			sends[n++] = peer_b.events[i];
	}
	lab_perform(lab, &peer_b, act_done(&end, &sends[0], MRC_OUT_TIMED_OUT, true));
	cqe = prog_expect(&prog, MRC_CQE_SENT);
	assert_int_equal(cqe.flags, MRC_CQE_FLAG_UNDECIDED);
	lab_restart(lab);

	/* Still full: nothing was told twice. Room: the two that waited, in their order. */
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	peer_b.credit = 10;
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, &end));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 4);
	act = act_done(&end, &sends[0], MRC_OUT_OK, false);
	act.kind = MRC_ACT_LATE;
	lab_perform(lab, &peer_b, act);
	cqe = prog_expect(&prog, MRC_CQE_LATE);
	assert_int_equal(cqe.user_data, 1);
	lab_perform(lab, &peer_b, act_done(&end, &sends[1], MRC_OUT_OK, false));
	assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).user_data, 2);
	for (uint64_t user_data = 3; user_data <= 4; user_data++) {
		struct mrc_event_in send = peer_b.events[peer_b.event_count - 5 + user_data];

		assert_int_equal(send.kind, MRC_EV_SEND);
		lab_perform(lab, &peer_b, act_done(&end, &send, MRC_OUT_OK, false));
		assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).user_data, user_data);
	}
	assert_int_equal(lab_number(lab, "one", "sends_outstanding"), 0);
	prog_leave(&prog);
}

static void a_deadline_passes_in_the_next_daemon(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct left left;
	struct prog prog;
	struct mrc_cqe cqe;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 0;
	prog_submit(&prog, (struct mrc_sqe){
				   .op = MRC_SQE_SEND,
				   .level = MRC_LEVEL_COMMITTED,
				   .channel = end.id,
				   .user_data = 7,
				   .len_bytes = 10,
				   .deadline_ns = lab_now_ns() + 2 * MRC_MS,
			   });
	lab_turn(lab);
	lab_leave(lab, &left);
	lab_go_on(lab, &left);
	while (!prog_take(&prog, &cqe))
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	assert_int_equal(cqe.type, MRC_CQE_SENT);
	assert_int_equal(cqe.user_data, 7);
	assert_int_equal(cqe.status, MRC_STATUS_TIMED_OUT);
	prog_leave(&prog);
}

/* A message that is under way, one that is held, one given back that the engine has not done with. */
static void landing_memory_stays_who_it_was_given_to(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct mrcd_client *client;
	struct pipe_end end;
	struct prog prog;
	uint64_t used, held, other;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	held = lab_deliver_large(lab, &end, 0, 100000);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	lab_deliver_large(lab, &end, 1, 50000);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 1);
	lab_deliver_eager(lab, &end, 2, 4096, 300);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	lab_turn(lab);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &end, 3, 0, 70000));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_LANDING, &ev), 3);
	used = (uint64_t)lab_number(lab, "one", "landing_used_bytes");
	lab_restart(lab);

	assert_int_equal(lab_number(lab, "one", "landing_used_bytes"), used);
	/* Where the engine puts the fragments of the one under way. */
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_DELIVER, &end, 3, ev.msg.addr, 70000));
	assert_int_equal(prog_expect(&prog, MRC_CQE_ARRIVED).offset, ev.msg.addr);
	/* A new one gets memory that nobody has. */
	other = lab_deliver_large(lab, &end, 4, 60000);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	assert_true(other >= held + 100000 || held >= other + 60000);
	assert_true(other >= ev.msg.addr + 70000 || ev.msg.addr >= other + 60000);
	for (uint64_t number = 0; number <= 4; number++) {
		if (number != 1)
			prog_verdict(&prog, &end, MRC_SQE_RELEASE, number);
	}
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 5);
	for (uint64_t number = 0; number <= 4; number++) {
		if (number != 2)
			lab_perform(lab, &peer_b,
				    act_msg(MRC_ACT_LANDING_FREE, &end, number, 0, 0));
	}
	client = lab->worker.clients->clients[0];
	assert_int_equal(mrcd_arena_used_bytes(client->buffer_arena), 0);
	assert_int_equal(mrcd_arena_used_bytes(client->ring_arena), end.ring_bytes);
	prog_leave(&prog);
}

/* Arrivals that the program had not taken become visible when it takes them. */
static void completions_not_read_are_read_from_the_next_daemon(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	lab_deliver_eager(lab, &end, 0, 0, 10);
	lab_deliver_eager(lab, &end, 1, 4096, 10);
	lab_restart(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, NULL), 0);
	assert_int_equal(prog_expect(&prog, MRC_CQE_ARRIVED).number, 0);
	assert_int_equal(prog_expect(&prog, MRC_CQE_ARRIVED).number, 1);
	prog_expect_nothing(&prog);
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, &ev), 2);
	assert_int_equal(ev.msg.number, 1);
	prog_leave(&prog);
}

/* What programs were told of drains they are not told again; what they were not is told. */
static void drains_go_on(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct left left;
	struct prog prog;
	struct mrc_cqe cqe;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	lab->worker.drain_since_ns = 1;
	peer_b.is_draining = true;
	mrcd_client_side_drain(lab->worker.clients);
	mrcd_client_side_peer_drain(lab->worker.clients, &peer_b);
	assert_int_equal(prog_expect(&prog, MRC_CQE_DRAIN).channel, 0); /* that one is read */
	lab_leave(lab, &left);
	lab_go_on(lab, &left);
	/* What was told is not told again, and while it is not read nothing is. */
	peer_b.is_draining = false;
	mrcd_client_side_drain(lab->worker.clients);
	mrcd_client_side_peer_drain(lab->worker.clients, &peer_b);
	cqe = prog_expect(&prog, MRC_CQE_DRAIN);
	assert_int_equal(cqe.channel, end.id);
	assert_int_equal(cqe.status, MRC_STATUS_DRAINING);
	prog_expect_nothing(&prog);
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_DRAIN).status, MRC_STATUS_OK);
	prog_bell(&prog);
	lab_turn(lab);
	lab_restart(lab);
	lab->worker.drain_since_ns = 0;
	mrcd_client_side_drain(lab->worker.clients);
	mrcd_client_side_peer_drain(lab->worker.clients, &peer_b);
	cqe = prog_expect(&prog, MRC_CQE_DRAIN);
	assert_int_equal(cqe.channel, 0);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

static void services_and_incoming_channels_go_on(void **state)
{
	struct lab *lab = *state;
	struct mrc_action incoming = {.kind = MRC_ACT_CH_INCOMING};
	struct mrc_event_in ev;
	struct prog prog, rival;
	struct mrc_cqe cqe;
	uint32_t listener;

	prog_attach(lab, &prog, "one");
	prog_request(&prog, MRC_ABI_REQ_LISTEN, "tea", 0, 5);
	lab_turn(lab);
	listener = prog_expect(&prog, MRC_CQE_LISTENING).channel;
	incoming.channel.id = 77;
	snprintf(incoming.channel.service, sizeof(incoming.channel.service), "tea");
	lab_perform(lab, &peer_c, incoming);
	lab_restart(lab);

	cqe = prog_expect(&prog, MRC_CQE_INCOMING);
	assert_int_equal(cqe.number, listener);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = cqe.channel});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ACCEPT, &ev), 1);
	assert_int_equal(ev.channel.id, 77);
	/* The name is taken, and the next caller is announced under an id that was never another's. */
	prog_attach(lab, &rival, "two");
	prog_request(&rival, MRC_ABI_REQ_LISTEN, "tea", 0, 6);
	lab_turn(lab);
	assert_int_equal(prog_expect(&rival, MRC_CQE_LISTENING).status, MRC_STATUS_IN_USE);
	incoming.channel.id = 78;
	lab_perform(lab, &peer_c, incoming);
	assert_int_not_equal(prog_expect(&prog, MRC_CQE_INCOMING).channel, cqe.channel);
	/* One that ends before it was answered is found by its engine's number. */
	lab_restart(lab);
	incoming.kind = MRC_ACT_CH_DOWN;
	lab_perform(lab, &peer_c, incoming);
	prog_expect(&prog, MRC_CQE_CLOSED);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_UNLISTEN, .channel = listener});
	lab_turn(lab);
	assert_false(prog_is_ended(&prog));
	prog_leave(&rival);
	prog_leave(&prog);
}

static void ids_are_not_used_again(void **state)
{
	struct lab *lab = *state;
	struct pipe_end first, second;
	struct mrc_action down;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	first = prog_open(lab, &prog, "b");
	down = act_channel(MRC_ACT_CH_DOWN, &first);
	lab_perform(lab, &peer_b, down);
	prog_expect(&prog, MRC_CQE_CLOSED);
	prog_bell(&prog);
	lab_turn(lab);
	lab_restart(lab);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &first));
	assert_int_equal(lab_number(lab, "one", "channels"), 0);
	lab_restart(lab);
	second = prog_open(lab, &prog, "b");
	assert_int_not_equal(second.id, first.id);
	assert_int_not_equal((uint32_t)second.cookie, (uint32_t)first.cookie);
	/* The slot of a client that has gone has another name for the next one, too. */
	prog_leave(&prog);
	lab_turn(lab);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &second));
	lab_turn(lab);
	lab_restart(lab);
	prog_attach(lab, &prog, "two");
	first = prog_open(lab, &prog, "b");
	assert_int_equal(first.cookie >> 48, second.cookie >> 48);
	assert_int_not_equal(first.cookie >> 32, second.cookie >> 32);
	prog_leave(&prog);
}

static void a_batch_begun_is_ended_in_the_next_daemon(void **state)
{
	struct lab *lab = *state;
	struct mrc_sqe commit = {.op = MRC_SQE_COMMIT, .flags = MRC_SQE_FLAG_BATCH};
	struct pipe_end end;
	struct prog prog;
	struct mrc_cqe cqe;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	for (uint64_t number = 0; number < 3; number++) {
		lab_deliver_eager(lab, &end, number, 4096 * number, 10);
		prog_expect(&prog, MRC_CQE_ARRIVED);
	}
	commit.channel = end.id;
	for (commit.number = 0; commit.number < 2; commit.number++)
		prog_submit(&prog, commit);
	lab_turn(lab);
	lab_restart(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 0);
	commit.flags |= MRC_SQE_FLAG_BATCH_END;
	commit.user_data = 88;
	prog_submit(&prog, commit);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 3);
	cqe = prog_expect(&prog, MRC_CQE_BATCH);
	assert_int_equal(cqe.user_data, 88);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	prog_leave(&prog);
}

/* ---- who goes, and who does wrong ---- */

static void a_program_that_goes_meanwhile_is_missed(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev;
	struct pipe_end end;
	struct left left;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	lab_leave(lab, &left);
	prog_send(&prog, &end, 1); /* its last word counts */
	prog_leave(&prog);
	lab_go_on(lab, &left);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, &ev), 1);
	assert_int_equal(ev.channel.id, end.engine_id);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	lab_turn(lab);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 0);
	assert_int_equal(lab_number(lab, "one", "pid"), -1);
}

static void a_program_that_breaks_the_rules_meanwhile_is_ended(void **state)
{
	struct lab *lab = *state;
	struct prog good, bad;
	struct left left;

	prog_attach(lab, &good, "good");
	prog_attach(lab, &bad, "bad");
	lab_leave(lab, &left);
	__atomic_store_n(&bad.shm->sq_tail, 1U << 20, __ATOMIC_RELEASE);
	__atomic_store_n(&bad.shm->sq_head, 12345, __ATOMIC_RELEASE); /* ours to know */
	memset(bad.shm, 0xff, 24);
	lab_go_on(lab, &left);
	assert_true(prog_is_ended(&bad));
	assert_false(prog_is_ended(&good));
	prog_is_served(lab, &good);
	prog_leave(&bad);
	prog_leave(&good);
}

/* Who was ended and waits for the engine is not handed over; the engine speaks to nobody then. */
static void a_dead_program_is_left_behind(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 1);
	lab_restart(lab);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &end, 0, 0, 100));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	assert_int_equal(lab_number(lab, "one", "pid"), -1);
	prog_attach(lab, &prog, "two");
	prog_is_served(lab, &prog);
	prog_leave(&prog);
}

static void who_is_about_to_attach_is_served(void **state)
{
	struct lab *lab = *state;
	struct mrc_abi_attach attach = prog_attach_request("late");
	struct prog prog = {.fd = prog_connect(lab)};
	struct left left;

	lab_turn(lab); /* accepted, and nothing said */
	lab_leave(lab, &left);
	assert_int_equal(send(prog.fd, &attach, sizeof(attach), 0), sizeof(attach));
	lab_go_on(lab, &left);
	assert_true(prog_welcomed(&prog));
	assert_int_equal(prog.welcome.status, 0);
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		close(prog.fds[i]);
	close(prog.fd);
}

/* ---- what does not fit ---- */

static void bounds_of_the_configuration_do_not_touch_who_is_attached(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct left left;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	end = prog_open(lab, &prog, "b");
	lab_leave(lab, &left);
	lab->conf.clients.channels_max = 2;
	lab->conf.clients.sends_max = 4;
	lab->conf.clients.window_messages = 2;
	lab->conf.clients.listeners_max = 1;
	lab->conf.clients.landing_arena_bytes = 1U << 20;
	lab_go_on(lab, &left);
	for (uint64_t i = 0; i < 60; i++)
		prog_send(&prog, &end, i);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 60);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

/* A file that allows fewer shuts nobody out who is in, and nobody in until there are as few. */
static void who_is_attached_stays_when_fewer_are_allowed(void **state)
{
	struct lab *lab = *state;
	struct prog progs[3], late;
	struct left left;

	for (int p = 0; p < 3; p++)
		prog_attach(lab, &progs[p], "one");
	lab_leave(lab, &left);
	lab->conf.clients.clients_max = 2;
	lab_go_on(lab, &left);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 3);
	for (int still = 3; still >= 2; still--) {
		assert_false(prog_is_ended(&progs[still - 1]));
		assert_non_null(strstr(prog_refused(lab, &late), "clients are attached"));
		prog_leave(&progs[still - 1]);
		lab_turn(lab);
	}
	prog_attach(lab, &late, "late");
	/* And what is left goes on once more. */
	lab_leave(lab, &left);
	lab_go_on(lab, &left);
	assert_false(prog_is_ended(&progs[0]));
	assert_false(prog_is_ended(&late));
	prog_leave(&progs[0]);
	prog_leave(&late);
	lab->conf.clients.clients_max = 8;
}

static void what_is_not_whole_is_not_taken(void **state)
{
	struct lab *lab = *state;
	char why[MRCD_IMAGE_WHY_BYTES] = "";
	struct prog progs[2];
	struct left left;

	prog_attach(lab, &progs[0], "one");
	prog_attach(lab, &progs[1], "two");
	prog_open(lab, &progs[1], "c");
	lab_leave(lab, &left);
	for (uint32_t p = 0; p < left.parcel_count; p++) {
		if (left.parcels[p].kind == MRCD_PARCEL_CLIENT && left.parcels[p].index == 1)
			left.parcels[p].kind = MRCD_PARCEL_PENDING;
	}
	assert_true(lab_try(lab, &left, peers_now, why) < 0);
	assert_non_null(strstr(why, "descriptors of program 1"));
	/* All of it is given up, and every program learns that it is over. */
	mrcd_client_side_free(lab->worker.clients);
	mrcd_region_free_all(&lab->worker);
	left_free(&left);
	for (int p = 0; p < 2; p++) {
		char byte;

		assert_int_equal(recv(progs[p].fd, &byte, 1, MSG_DONTWAIT), 0);
		prog_leave(&progs[p]);
	}
	lab_start(lab);
}

/* ---- who ends alone ---- */

/* It has much, and nothing of it stays: what it had can be given to others. */
static void prog_has_ended_alone(struct lab *lab, struct prog *prog, const struct pipe_end *end,
				 bool is_state_told)
{
	struct mrc_event_in ev;
	char byte;

	assert_int_equal(recv(prog->fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(prog->shm->state,
			 is_state_told ? MRC_RING_STATE_GONE : MRC_RING_STATE_PAUSED);
	assert_int_equal(peer_saw(end->peer, MRC_EV_CH_ABORT, &ev), 1);
	assert_int_equal(ev.channel.id, end->engine_id);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 1);
	lab_perform(lab, end->peer, act_channel(MRC_ACT_CH_FREE, end));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "bad", "pid"), -1);
	prog_leave(prog);
}

/* A descriptor that can be read only: there are other reasons, and this one can be had anywhere. */
static void make_read_only(int *fd)
{
	char path[40];
	int read_only;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read_only >= 0);
	close(*fd);
	*fd = read_only;
}

/* As mrcd_bundle_take() leaves one that had no room. */
static void make_lost(struct mrcd_parcel *parcel)
{
	struct stat st;

	parcel->is_lost = true;
	for (uint32_t i = 0; i < parcel->fd_count; i++) {
		assert_int_equal(fstat(parcel->fds[i], &st), 0);
		parcel->fd_bytes[i] = (uint64_t)st.st_size;
		close(parcel->fds[i]);
		parcel->fds[i] = -1;
	}
}

static void one_whose_memory_cannot_be_had_ends_alone(void **state)
{
	static const struct {
		enum mrcd_client_fd fd;
		bool is_state_told;
	} cases[] = {
		{MRCD_CLIENT_FD_RINGS, false},
		{MRCD_CLIENT_FD_SEND_ARENA, true},
		{MRCD_CLIENT_FD_LANDING, true},
		{MRCD_CLIENT_FD_COUNT, false}, /* not one of them */
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct pipe_end bad_end, good_end;
		struct prog bad, good;
		struct left left;

		peer_b.event_count = peer_c.event_count = 0;
		prog_attach(lab, &bad, "bad");
		prog_attach(lab, &good, "good");
		bad_end = prog_open(lab, &bad, "b");
		good_end = prog_open(lab, &good, "c");
		prog_request(&bad, MRC_ABI_REQ_LISTEN, "tea", 0, 5);
		peer_b.credit = 1;
		prog_send(&bad, &bad_end, 1);
		prog_send(&bad, &bad_end, 2);
		lab_turn(lab);
		lab_deliver_large(lab, &bad_end, 0, 5000);
		lab_deliver_eager(lab, &bad_end, 1, 0, 10);
		lab_leave(lab, &left);
		peer_b.credit = UINT32_MAX;
		for (uint32_t p = 0; p < left.parcel_count; p++) {
			struct mrcd_parcel *parcel = &left.parcels[p];

			if (parcel->kind != MRCD_PARCEL_CLIENT || parcel->index != 0)
				continue;
			if (cases[i].fd == MRCD_CLIENT_FD_COUNT)
				make_lost(parcel);
			else
				make_read_only(&parcel->fds[cases[i].fd]);
		}
		lab_go_on(lab, &left);
		prog_has_ended_alone(lab, &bad, &bad_end, cases[i].is_state_told);
		prog_is_served(lab, &good);
		prog_send(&good, &good_end, 3);
		prog_request(&good, MRC_ABI_REQ_LISTEN, "tea", 0, 5);
		lab_turn(lab);
		assert_int_equal(peer_saw(&peer_c, MRC_EV_SEND, NULL), 1);
		assert_int_equal(prog_expect(&good, MRC_CQE_LISTENING).status, MRC_STATUS_OK);
		prog_leave(&good);
		lab_turn(lab);
		lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_FREE, &good_end));
		lab_turn(lab);
	}
}

/* A peer is taken out of the configuration: who had a channel to it has to attach again. */
static void one_that_speaks_to_a_peer_that_is_no_more_ends_alone(void **state)
{
	struct lab *lab = *state;
	char why[MRCD_IMAGE_WHY_BYTES] = "";
	struct pipe_end gone, end;
	struct prog bad, good;
	struct left left;

	prog_attach(lab, &good, "good");
	prog_attach(lab, &bad, "bad");
	gone = prog_open(lab, &bad, "c");
	end = prog_open(lab, &bad, "b");
	lab_deliver_large(lab, &gone, 0, 5000);
	prog_send(&bad, &gone, 1);
	lab_turn(lab);
	lab_leave(lab, &left);
	assert_int_equal(lab_try(lab, &left, peers_less, why), 0);
	left_free(&left);
	mrcd_client_side_resume(lab->worker.clients);
	lab_turn(lab);
	/* What it had with others is ended in order. */
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ABORT, NULL), 0);
	prog_has_ended_alone(lab, &bad, &end, true);
	prog_is_served(lab, &good);
	prog_leave(&good);
}

/* Of a user who is not root the kernel lets only so many descriptors be on their way. */
static void those_beyond_what_can_be_passed_end_alone(void **state)
{
	const uid_t nobody = 64321; /* whose account is his alone */
	struct lab *lab = *state;
	struct rlimit limit, less;
	struct prog progs[8];
	uint32_t went_on = 0;
	struct left left;

	if (geteuid() != 0) {
		print_message("an account of its own takes root\n");
		skip();
	}
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(progs); i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%u", i);
		prog_attach(lab, &progs[i], name);
	}
	/* Room for the socket and some programs, beside what is kept free for the end. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	less = (struct rlimit){.rlim_cur = 128 + 30, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	assert_int_equal(syscall(SYS_setresuid, nobody, nobody, 0), 0);
	lab_leave(lab, &left);
	assert_int_equal(syscall(SYS_setresuid, 0, 0, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	lab_go_on(lab, &left);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(progs); i++) {
		if (!prog_is_ended(&progs[i])) {
			prog_is_served(lab, &progs[i]);
			assert_int_equal(went_on, i); /* the first so many */
			went_on++;
		}
		prog_leave(&progs[i]);
	}
	assert_true(went_on >= 3);
	assert_true(went_on < MRC_ARRAY_LEN(progs));
}

/* More than is read is no more right than less. */
static void an_image_that_goes_on_is_refused(void **state)
{
	uint8_t bytes[LEFT_BYTES_MAX] = {0};
	char why[MRCD_IMAGE_WHY_BYTES] = "";
	struct lab *lab = *state;
	struct left left;
	struct prog prog;
	size_t len;

	prog_busy(lab, &prog);
	lab_leave(lab, &left);
	len = left_read(&left, bytes);
	left_write(&left, bytes, len + 8);
	assert_int_equal(lab_try(lab, &left, peers_now, why), -EPROTO);
	assert_string_equal(why, "the state has another length than it should");
	left_free(&left);
	prog_leave(&prog);
}

/* One with everything in it, cut at every field, and each field one too large. */
static void an_image_that_is_wrong_anywhere_is_refused_or_sound(void **state)
{
	struct lab *lab = *state;
	uint32_t refused = 0;
	struct prog prog;
	size_t len_bytes = 1;

	for (size_t at = 0; at < 2 * len_bytes; at += 8) {
		char why[MRCD_IMAGE_WHY_BYTES] = "";
		uint8_t bytes[LEFT_BYTES_MAX];
		struct left left;
		size_t len, field;

		prog_busy(lab, &prog);
		lab_leave(lab, &left);
		peer_b.credit = UINT32_MAX;
		len = len_bytes = left_read(&left, bytes);
		field = at % len_bytes / 8 * 8;
		if (at < len_bytes)
			len = field;
		else
			bytes[field]++;
		left_write(&left, bytes, len);
		if (lab_try(lab, &left, peers_now, why) < 0) {
			refused++;
			assert_true(why[0] != '\0');
		} else {
			assert_true(at >= len_bytes); /* cut, it is always found */
			mrcd_client_side_resume(lab->worker.clients);
			lab_turn(lab);
		}
		left_free(&left);
		prog_leave(&prog);
		mrcd_client_side_free(lab->worker.clients);
		mrcd_region_free_all(&lab->worker);
		lab_start(lab);
	}
	assert_true(refused > len_bytes / 8 + 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(a_program_does_not_notice),
		lab_test(while_no_daemon_is_there_rings_say_so),
		lab_test(what_is_said_meanwhile_is_heard_once),
		lab_test(sends_are_answered_by_the_next_daemon),
		lab_test(a_deadline_passes_in_the_next_daemon),
		lab_test(landing_memory_stays_who_it_was_given_to),
		lab_test(completions_not_read_are_read_from_the_next_daemon),
		lab_test(drains_go_on),
		lab_test(services_and_incoming_channels_go_on),
		lab_test(ids_are_not_used_again),
		lab_test(a_batch_begun_is_ended_in_the_next_daemon),
		lab_test(a_program_that_goes_meanwhile_is_missed),
		lab_test(a_program_that_breaks_the_rules_meanwhile_is_ended),
		lab_test(a_dead_program_is_left_behind),
		lab_test(who_is_about_to_attach_is_served),
		lab_test(bounds_of_the_configuration_do_not_touch_who_is_attached),
		lab_test(who_is_attached_stays_when_fewer_are_allowed),
		lab_test(what_is_not_whole_is_not_taken),
		lab_test(one_whose_memory_cannot_be_had_ends_alone),
		lab_test(one_that_speaks_to_a_peer_that_is_no_more_ends_alone),
		lab_test(those_beyond_what_can_be_passed_end_alone),
		lab_test(an_image_that_goes_on_is_refused),
		lab_test(an_image_that_is_wrong_anywhere_is_refused_or_sound),
	};

	return cmocka_run_group_tests_name("client_handover", tests, NULL, NULL);
}
