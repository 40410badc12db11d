/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client: whoever writes into landing memory that was given back is found out. */
#include "client_side_lab.h"

#include <signal.h>
#include <sys/wait.h>

#include "mrcd_client_impl.h"

#define LARGE (1ULL << 20)
#define RING  (1ULL << 20)

static int setup_as(void **state, const char *mode)
{
	setenv("MRCD_POISON", mode, 1);
	return lab_setup(state);
}

static int setup_count(void **state)
{
	return setup_as(state, "count");
}

static int setup_hold(void **state)
{
	return setup_as(state, "count,hold");
}

static int setup_off(void **state)
{
	return setup_as(state, "off");
}

static int teardown(void **state)
{
	unsetenv("MRCD_POISON");
	return lab_teardown(state);
}

/* What a device does that was given this key: it looks at no book of ours. */
static void late_write(struct lab *lab, uint64_t offset)
{
	lab->worker.clients->clients[0]->landing.addr[offset] ^= 0xff;
}

static uint64_t late_writes(struct lab *lab)
{
	return lab->worker.clients->late_writes;
}

/* One large message comes and goes; answers where it lay. */
static uint64_t message_passes(struct lab *lab, struct prog *prog, const struct pipe_end *end,
			       uint64_t number, uint64_t len)
{
	uint64_t addr = lab_deliver_large(lab, end, number, len);
	struct mrc_cqe cqe = prog_expect(prog, MRC_CQE_ARRIVED);

	assert_int_equal(cqe.offset, addr);
	prog_verdict(prog, end, MRC_SQE_RELEASE, number);
	lab_turn(lab);
	lab_perform(lab, end->peer, act_msg(MRC_ACT_LANDING_FREE, end, number, addr, len));
	return addr;
}

static void late_write_into_a_buffer_is_found_before_it_is_granted_again(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t number = 0;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	addr = message_passes(lab, &prog, &end, number++, LARGE);
	assert_int_equal(prog.landing[addr + 5], mrcd_poison_byte(addr + 5));
	assert_int_equal(prog.landing[addr + LARGE - 1], mrcd_poison_byte(addr + LARGE - 1));
	/* Twice around with nobody late. */
	while (number < 12)
		message_passes(lab, &prog, &end, number++, LARGE);
	assert_int_equal(late_writes(lab), 0);
	late_write(lab, addr + 700001);
	while (number < 20)
		message_passes(lab, &prog, &end, number++, LARGE);
	assert_int_equal(late_writes(lab), 1);
	assert_int_equal(lab_number(lab, "x", "late_writes"), 1);
	prog_is_served(lab, &prog); /* it is not to blame */
	prog_leave(&prog);
}

/* Held by the client or by the engine, memory is somebody's and may be written. */
static void buffer_is_poisoned_only_when_both_are_done_with_it(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	addr = lab_deliver_large(lab, &end, 0, LARGE);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	assert_int_equal(prog.landing[addr], 0);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &end, 0, addr, LARGE));
	assert_int_equal(prog.landing[addr], mrcd_poison_byte(addr));

	addr = lab_deliver_large(lab, &end, 1, LARGE);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &end, 1, addr, LARGE));
	assert_int_equal(prog.landing[addr], 0);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 1);
	lab_turn(lab);
	assert_int_equal(prog.landing[addr], mrcd_poison_byte(addr));
	prog_leave(&prog);
}

static void late_write_is_found_when_the_client_goes(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	addr = message_passes(lab, &prog, &end, 0, LARGE);
	late_write(lab, addr + 8191);
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(late_writes(lab), 0);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "pid"), -1);
	assert_int_equal(late_writes(lab), 1);
}

static void late_write_into_the_ring_of_a_channel_that_is_over_is_found(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in open = {0};
	struct pipe_end end;
	struct prog prog;
	uint64_t ring;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_saw(&peer_b, MRC_EV_CH_OPEN, &open);
	ring = open.channel.ring_addr;
	lab_deliver_eager(lab, &end, 0, 100, 1000);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
	prog_expect(&prog, MRC_CQE_CLOSED);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	prog_is_served(lab, &prog);
	assert_int_equal(prog.landing[ring + 333], mrcd_poison_byte(ring + 333));
	late_write(lab, ring + 333);
	end = prog_open(lab, &prog, "b");
	peer_saw(&peer_b, MRC_EV_CH_OPEN, &open);
	assert_int_equal(open.channel.ring_addr, ring);
	assert_int_equal(late_writes(lab), 1);
	prog_leave(&prog);
}

/* ---- releases held back ---- */

/* Two of a window of eight are held back. */
static void late_write_into_a_ring_is_found_while_its_release_is_held_back(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct pipe_end end;
	struct prog prog;
	uint64_t ring;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_saw(&peer_b, MRC_EV_CH_OPEN, &ev);
	ring = ev.channel.ring_addr;
	for (uint64_t i = 0; i < 6; i++) {
		lab_deliver_eager(lab, &end, i, i * 100, 99);
		prog_expect(&prog, MRC_CQE_ARRIVED);
		prog_verdict(&prog, &end, MRC_SQE_RELEASE, i);
		prog_verdict(&prog, &end, MRC_SQE_RELEASE, i); /* counts once, now as ever */
		lab_turn(lab);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, &ev), i < 2 ? 0 : i - 1);
		if (i >= 2)
			assert_int_equal(ev.msg.number, i - 2);
		assert_int_equal(prog.landing[ring + i * 100 + 98],
				 mrcd_poison_byte(ring + i * 100 + 98));
	}
	assert_int_equal(late_writes(lab), 0);
	late_write(lab, ring + 4 * 100 + 98);
	late_write(lab, ring + 4 * 100 + 99); /* behind it: somebody else's */
	lab_deliver_eager(lab, &end, 6, 600, 0);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 6);
	lab_turn(lab);
	assert_int_equal(late_writes(lab), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 5);
	prog_leave(&prog);
}

static void releases_held_back_are_told_in_time(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t begun_ns;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	lab_deliver_eager(lab, &end, 0, 0, 99);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	begun_ns = lab_now_ns();
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	while (peer_saw(&peer_b, MRC_EV_RELEASE, NULL) == 0)
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	assert_true(lab_now_ns() - begun_ns >= MRCD_POISON_HOLD_NS);
	/* And at once when more than a quarter of the ring would be kept. */
	lab_deliver_eager(lab, &end, 1, 0, RING / 4 + 1);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 1);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 2);
	prog_leave(&prog);
}

static void releases_held_back_are_told_before_a_close_and_an_end(void **state)
{
	struct lab *lab = *state;
	struct pipe_end closed, left;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	closed = prog_open(lab, &prog, "b");
	left = prog_open(lab, &prog, "c");
	lab_deliver_eager(lab, &closed, 0, 0, 99);
	lab_deliver_eager(lab, &left, 0, 0, 99);
	prog_verdict(&prog, &closed, MRC_SQE_RELEASE, 0);
	prog_verdict(&prog, &left, MRC_SQE_RELEASE, 0);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = closed.id});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 1);
	assert_int_equal(peer_b.events[peer_b.event_count - 1].kind, MRC_EV_CH_CLOSE);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_RELEASE, NULL), 0);
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_RELEASE, NULL), 1);
	assert_int_equal(peer_c.events[peer_c.event_count - 1].kind, MRC_EV_CH_ABORT);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &closed));
	lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_FREE, &left));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "pid"), -1);
	assert_int_equal(late_writes(lab), 0);
}

static void channel_that_ends_keeps_nothing_held_back(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	lab_deliver_eager(lab, &end, 0, 0, 99);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	assert_int_equal(lab->worker.clients->poisoned_count, 1);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
	prog_expect(&prog, MRC_CQE_CLOSED);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	prog_is_served(lab, &prog);
	assert_int_equal(lab->worker.clients->poisoned_count, 0);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	prog_leave(&prog);
}

/* ---- the other modes ---- */

static void nothing_is_touched_when_it_is_off(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	json_t *object;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	addr = message_passes(lab, &prog, &end, 0, LARGE);
	assert_int_equal(prog.landing[addr], 0);
	assert_int_equal(message_passes(lab, &prog, &end, 1, LARGE), addr); /* while it is hot */
	object = lab_client_json(lab, "x");
	assert_null(json_object_get(object, "late_writes"));
	json_decref(object);
	prog_leave(&prog);
}

/* What a daemon that was killed leaves: its folder, and in there its socket. */
static void daemon_tidy(const char *dir)
{
	char socket[128];

	snprintf(socket, sizeof(socket), "%s/mrcd.sock", dir);
	assert_int_equal(unlink(socket), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void late_write_ends_the_daemon_where_it_is_told_to(void **state)
{
	void *lab_state;
	int status, told[2];
	char dir[sizeof(((struct lab *)0)->dir)];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct lab *lab;
		struct pipe_end end;
		struct prog prog;

		signal(SIGABRT, SIG_DFL);
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(1);
		setup_as(&lab_state, "abort");
		lab = lab_state;
		if (write(told[1], lab->dir, sizeof(dir)) != sizeof(dir))
			_exit(1);
		prog_attach(lab, &prog, "x");
		end = prog_open(lab, &prog, "b");
		late_write(lab, message_passes(lab, &prog, &end, 0, LARGE));
		for (uint64_t number = 1; number < 12; number++)
			message_passes(lab, &prog, &end, number, LARGE);
		_exit(0);
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_int_equal(read(told[0], dir, sizeof(dir)), sizeof(dir));
	daemon_tidy(dir);
	close(told[0]);
	close(told[1]);
}

#define poison_test(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		poison_test(late_write_into_a_buffer_is_found_before_it_is_granted_again,
			    setup_count),
		poison_test(buffer_is_poisoned_only_when_both_are_done_with_it, setup_count),
		poison_test(late_write_is_found_when_the_client_goes, setup_count),
		poison_test(late_write_into_the_ring_of_a_channel_that_is_over_is_found,
			    setup_count),
		poison_test(late_write_into_a_ring_is_found_while_its_release_is_held_back,
			    setup_hold),
		poison_test(releases_held_back_are_told_in_time, setup_hold),
		poison_test(releases_held_back_are_told_before_a_close_and_an_end, setup_hold),
		poison_test(channel_that_ends_keeps_nothing_held_back, setup_hold),
		poison_test(nothing_is_touched_when_it_is_off, setup_off),
		cmocka_unit_test(late_write_ends_the_daemon_where_it_is_told_to),
	};

	return cmocka_run_group_tests_name("client_poison", tests, NULL, NULL);
}
