/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking calls, and the one descriptor: nothing sleeps through what concerns it. */
#include <signal.h>
#include <sys/time.h>

#include "test_lib_fake.h"

/* What the daemon does in a thread while the test is blocked. */
struct act {
	struct fake *f;
	void (*run)(struct fake *f);
	pthread_t thread;
};

static void *act_main(void *context)
{
	struct act *act = context;

	fake_wait_sleeping(act->f);
	act->run(act->f);
	return NULL;
}

static void act_start(struct act *act, struct fake *f, void (*run)(struct fake *))
{
	act->f = f;
	act->run = run;
	assert_int_equal(pthread_create(&act->thread, NULL, act_main, act), 0);
}

static void act_join(struct act *act)
{
	pthread_join(act->thread, NULL);
}

/* ---- blocking calls ---- */

static void run_answer_listen(struct fake *f)
{
	uint64_t user_data = fake_request(f, MRC_ABI_REQ_LISTEN).user_data;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
				      .user_data = user_data,
				      .channel = 5});
}

static void run_refuse_listen(struct fake *f)
{
	uint64_t user_data = fake_request(f, MRC_ABI_REQ_LISTEN).user_data;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
				      .user_data = user_data,
				      .status = MRC_STATUS_NOT_ALLOWED});
}

static void run_incoming_and_up(struct fake *f)
{
	struct mrc_sqe sqe;

	/* The first ends before it is taken; the second comes up, with a message already. */
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING, .channel = 1, .number = 5});
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 1});
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING, .channel = 2, .number = 5});
	do {
		while (!fake_take(f, &sqe))
			usleep(100);
	} while (sqe.channel != 2);
	assert_int_equal(sqe.op, MRC_SQE_ACCEPT);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED, .channel = 2, .len_bytes = 100});
	fake_post(f, fake_arrival(f, 2, 0, 0, "first"));
}

static void run_close(struct fake *f)
{
	struct mrc_sqe sqe;

	while (!fake_take(f, &sqe) || sqe.op != MRC_SQE_CLOSE)
		usleep(100);
	/* What arrives now is read by nobody; the channel ends when it was given back. */
	fake_post(f, fake_arrival(f, 2, 1, 0, "unread"));
	while (!fake_take(f, &sqe) || sqe.op != MRC_SQE_REJECT)
		usleep(100);
	assert_int_equal(sqe.code, MRC_CODE_NOT_READ);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED,
				      .channel = 2,
				      .status = MRC_STATUS_PEER_DIED});
}

static void blocking_server_listens_accepts_receives_and_closes(void **state)
{
	struct fake *f = *state;
	struct mrc_listener *listener;
	struct mrc_channel *channel;
	struct mrc_msg *msg;
	struct act act;
	int status = 1;

	act_start(&act, f, run_refuse_listen);
	assert_int_equal(mrc_listen(f->client, "svc", FAKE_LONG_NS, &listener, &status), 0);
	act_join(&act);
	assert_int_equal(status, MRC_STATUS_NOT_ALLOWED);
	assert_null(listener);
	act_start(&act, f, run_answer_listen);
	assert_int_equal(mrc_listen(f->client, "svc", FAKE_LONG_NS, &listener, &status), 0);
	act_join(&act);
	assert_int_equal(status, MRC_STATUS_OK);

	assert_int_equal(mrc_accept(listener, 1000, &channel), -ETIMEDOUT);
	act_start(&act, f, run_incoming_and_up);
	assert_int_equal(mrc_accept(listener, FAKE_LONG_NS, &channel), 0);
	assert_int_equal(mrc_recv(channel, FAKE_LONG_NS, &msg), 0);
	act_join(&act);
	assert_memory_equal(mrc_msg_data(msg), "first", 5);
	assert_int_equal(mrc_recv(channel, 0, &msg), -ETIMEDOUT);
	act_start(&act, f, run_close);
	assert_int_equal(mrc_close_wait(channel, FAKE_LONG_NS, &status), 0);
	act_join(&act);
	assert_int_equal(status, MRC_STATUS_PEER_DIED);
	mrc_listener_close(listener);
}

static void run_connect(struct fake *f)
{
	uint64_t user_data = fake_request(f, MRC_ABI_REQ_CONNECT).user_data;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
				      .user_data = user_data,
				      .channel = 3,
				      .len_bytes = 100});
}

static void run_no_service(struct fake *f)
{
	uint64_t user_data = fake_request(f, MRC_ABI_REQ_CONNECT).user_data;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
				      .user_data = user_data,
				      .status = MRC_STATUS_NO_SERVICE});
}

static void run_answer_send(struct fake *f)
{
	struct mrc_sqe sqe = fake_expect(f, MRC_SQE_SEND);
	struct mrc_cqe cqe = fake_sent(&sqe, 4, MRC_STATUS_REJECTED, MRC_LEVEL_VISIBLE);

	cqe.code = 6;
	fake_post(f, cqe);
}

static void blocking_client_connects_and_sends(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_event event;
	struct mrc_sqe sqe;
	struct act act;
	void *buf;
	int status;

	act_start(&act, f, run_no_service);
	assert_int_equal(mrc_connect(f->client, "a/b", 0, FAKE_LONG_NS, &channel, &status), 0);
	act_join(&act);
	assert_int_equal(status, MRC_STATUS_NO_SERVICE);
	assert_null(channel);
	act_start(&act, f, run_no_service);
	assert_int_equal(mrc_connect(f->client, "a/b", 0, FAKE_LONG_NS, &channel, NULL),
			 -ECONNREFUSED);
	act_join(&act);
	act_start(&act, f, run_connect);
	assert_int_equal(mrc_connect(f->client, "a/b", 0, FAKE_LONG_NS, &channel, &status), 0);
	act_join(&act);
	assert_int_equal(status, MRC_STATUS_OK);

	act_start(&act, f, run_answer_send);
	assert_int_equal(mrc_send_wait(channel, NULL, 0, MRC_LEVEL_COMMITTED, FAKE_LONG_NS, &event),
			 0);
	act_join(&act);
	assert_int_equal(event.status, MRC_STATUS_REJECTED);
	assert_int_equal(event.level, MRC_LEVEL_VISIBLE);
	assert_int_equal(event.code, 6);
	assert_int_equal(event.number, 4);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 0);

	/* One that takes too long is answered later, by its buffer's address. */
	assert_int_equal(mrc_buf_alloc(f->client, 10, &buf), 0);
	assert_int_equal(mrc_send_wait(channel, buf, 10, MRC_LEVEL_PLACED, 1000, &event),
			 -ETIMEDOUT);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 1);
	sqe = fake_expect(f, MRC_SQE_SEND);
	fake_post(f, fake_sent(&sqe, 5, MRC_STATUS_OK, MRC_LEVEL_PLACED));
	event = fake_event(f->client, MRC_EVENT_SENT);
	assert_true(event.user == (uintptr_t)buf);
}

static void blocking_receive_keeps_what_is_not_its_own(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *one = fake_channel(f, f->client, 1);
	struct mrc_channel *two = fake_channel(f, f->client, 2);
	struct mrc_event events[8];
	struct mrc_msg *msg;

	fake_post(f, fake_arrival(f, 1, 0, 0, "a"));
	fake_post(f, fake_arrival(f, 1, 1, 1, "b"));
	fake_post(f, fake_arrival(f, 2, 0, 2, "c"));
	fake_post(f, fake_arrival(f, 1, 2, 3, "d"));
	assert_int_equal(mrc_recv(two, 0, &msg), 0);
	assert_memory_equal(mrc_msg_data(msg), "c", 1);
	/* It took in what it had to pass, and no more. */
	assert_int_equal(fake_load(&f->shm->cq_head), f->cq_tail - 1);
	assert_int_equal(mrc_recv(one, 0, &msg), 0);
	assert_memory_equal(mrc_msg_data(msg), "a", 1);
	assert_int_equal(mrc_poll(f->client, events, 8), 2);
	assert_int_equal(events[0].number, 1);
	assert_int_equal(events[1].number, 2);
	/* The end of a channel comes after its messages, and stays for mrc_poll(). */
	fake_post(f, fake_arrival(f, 1, 3, 3, "e"));
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 1});
	assert_int_equal(mrc_recv(two, 0, &msg), -ETIMEDOUT);
	assert_int_equal(mrc_recv(one, 0, &msg), 0);
	assert_int_equal(mrc_recv(one, FAKE_LONG_NS, &msg), -EPIPE);
	assert_ptr_equal(fake_event(f->client, MRC_EVENT_CLOSED).channel, one);
}

static void death_wakes_every_blocking_call(void **state)
{
	enum { RECV, SEND, WAIT, CONNECT, LISTEN, ACCEPT, CLOSE, CALLS };
	struct fake *f = *state;

	for (int call = 0; call < CALLS; call++) {
		struct mrc_listener *listener;
		struct mrc_channel *channel;
		struct mrc_event event;
		struct mrc_msg *msg;
		struct act act;
		int status = 1;
		int r = 0;

		assert_int_equal(fake_attach(f, &f->client), 0);
		listener = fake_listener(f, f->client, 5);
		channel = fake_channel(f, f->client, 1);
		act_start(&act, f, fake_die);
		switch (call) {
		case RECV:
			r = mrc_recv(channel, MRC_WAIT_FOREVER, &msg);
			assert_int_equal(r, -ECONNRESET);
			break;
		case SEND:
			r = mrc_send_wait(channel, NULL, 0, MRC_LEVEL_PLACED, MRC_WAIT_FOREVER,
					  &event);
			assert_int_equal(r, 0);
			assert_int_equal(event.status, MRC_STATUS_DETACHED);
			assert_int_equal(event.level, MRC_LEVEL_NONE);
			break;
		case WAIT:
			assert_int_equal(mrc_wait(f->client, MRC_WAIT_FOREVER), 1);
			break;
		case CONNECT:
			r = mrc_connect(f->client, "a/b", 0, MRC_WAIT_FOREVER, &channel, &status);
			assert_int_equal(r, 0);
			assert_int_equal(status, MRC_STATUS_DETACHED);
			break;
		case LISTEN:
			r = mrc_listen(f->client, "b", MRC_WAIT_FOREVER, &listener, &status);
			assert_int_equal(r, 0);
			assert_int_equal(status, MRC_STATUS_DETACHED);
			break;
		case ACCEPT:
			r = mrc_accept(listener, MRC_WAIT_FOREVER, &channel);
			assert_int_equal(r, -ECONNRESET);
			break;
		case CLOSE:
			assert_int_equal(mrc_close_wait(channel, MRC_WAIT_FOREVER, &status), 0);
			assert_int_equal(status, MRC_STATUS_DETACHED);
			break;
		default:
			break;
		}
		act_join(&act);
		mrc_detach(f->client);
		f->client = NULL;
		fake_unmake(f);
	}
}

static void on_signal(int number)
{
}

static pthread_t main_thread;

static void run_signal(struct fake *f)
{
	/* Between arming and sleeping it would be lost: once more, until the call has returned. */
	while (fake_load(&f->shm->client_sleeping)) {
		pthread_kill(main_thread, SIGUSR1);
		usleep(1000);
	}
}

static void signal_ends_a_blocking_call(void **state)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_msg *msg;
	struct act act;

	main_thread = pthread_self();
	sigaction(SIGUSR1, &action, NULL);
	act_start(&act, f, run_signal);
	assert_int_equal(mrc_recv(channel, FAKE_LONG_NS, &msg), -EINTR);
	act_join(&act);
}

/* Room comes late, and no bell tells of it; the answer comes when the third send is in the ring. */
static void run_room(struct fake *f)
{
	struct mrc_sqe sqe;

	assert_true(fake_take(f, &sqe));
	assert_true(fake_take(f, &sqe));
	while (!fake_take(f, &sqe))
		usleep(100);
	fake_post(f, fake_sent(&sqe, 2, MRC_STATUS_OK, MRC_LEVEL_PLACED));
}

static void blocking_send_waits_for_room_in_the_ring(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_event event;
	struct act act;

	fake_unmake(f);
	mrc_detach(f->client);
	f->sq_entry_count = 2;
	assert_int_equal(fake_attach(f, &f->client), 0);
	channel = fake_channel(f, f->client, 1);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_int_equal(mrc_send_wait(channel, NULL, 0, MRC_LEVEL_PLACED, 0, &event), -ETIMEDOUT);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 2);
	act_start(&act, f, run_room);
	assert_int_equal(mrc_send_wait(channel, NULL, 0, MRC_LEVEL_PLACED, FAKE_LONG_NS, &event),
			 0);
	act_join(&act);
	assert_int_equal(event.number, 2);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 2);
}

/* ---- the descriptor ---- */

static void descriptor_is_readable_while_there_are_events(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_event events[4];
	struct mrc_msg *msg;

	/* Something was there before the program asked for the descriptor. */
	fake_post(f, fake_arrival(f, 1, 0, 0, "a"));
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 1);
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(fake_load(&f->shm->client_sleeping), 1);

	/* Level triggered, and whatever was left behind counts. */
	for (uint64_t i = 1; i <= 3; i++)
		fake_post(f, fake_arrival(f, 1, i, 0, "a"));
	assert_true(fake_fd_is_readable(f->client));
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 2), 2);
	assert_true(fake_fd_is_readable(f->client));
	/* Sending and releasing in between changes nothing about it. */
	mrc_msg_release(events[0].msg);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	mrc_msg_release(events[1].msg);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 1), 1);
	assert_int_equal(mrc_poll(f->client, events, 1), 0);
	assert_false(fake_fd_is_readable(f->client));

	/* What a blocking call has parked. */
	fake_channel(f, f->client, 2);
	assert_false(fake_fd_is_readable(f->client));
	fake_post(f, fake_arrival(f, 2, 0, 0, "b"));
	fake_post(f, fake_arrival(f, 1, 4, 0, "c"));
	assert_int_equal(mrc_recv(channel, 0, &msg), 0);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 1);
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_wait(f->client, 0), 0);
	fake_post(f, fake_arrival(f, 2, 1, 0, "d"));
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_wait(f->client, 0), 1);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 1);

	/* A bell that comes when its entry was taken already: once for nothing, no more. */
	__atomic_store_n(&f->shm->client_sleeping, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(mrc_poll(f->client, events, 4), 0);
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(eventfd_write(f->fds[MRC_ABI_FD_CLIENT_BELL], 1), 0);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 0);
	assert_false(fake_fd_is_readable(f->client));

	/* One that nothing tells of is found by the second poll that finds nothing else. */
	fake_post(f, fake_arrival(f, 2, 2, 0, "e"));
	assert_int_equal(mrc_poll(f->client, events, 4), 1);
	assert_int_equal(eventfd_write(f->fds[MRC_ABI_FD_CLIENT_BELL], 1), 0);
	assert_int_equal(mrc_poll(f->client, events, 4), 0);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 0);
	assert_false(fake_fd_is_readable(f->client));

	/* The end. */
	fake_die(f);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 2), 2); /* the send, channel 1 */
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), 2); /* channel 2, detached */
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, events, 4), -ECONNRESET);
}

static void descriptor_calls_again_for_what_found_no_room(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_event event;

	fake_unmake(f);
	mrc_detach(f->client);
	f->sq_entry_count = 2;
	assert_int_equal(fake_attach(f, &f->client), 0);
	channel = fake_channel(f, f->client, 1);
	mrc_client_fd(f->client);
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -EAGAIN);
	assert_true(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_true(fake_fd_is_readable(f->client));
	fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(mrc_poll(f->client, &event, 1), 0); /* there is room: try again */
	assert_false(fake_fd_is_readable(f->client));
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_int_equal(mrc_close(channel), 0); /* must wait for room */
	assert_true(fake_fd_is_readable(f->client));
	fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_false(fake_fd_is_readable(f->client));
	fake_expect(f, MRC_SQE_SEND);
	fake_expect(f, MRC_SQE_CLOSE);
}

static void client_without_descriptor_is_armed_only_while_it_sleeps(void **state)
{
	struct fake *f = *state;
	struct mrc_event event;

	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(fake_load(&f->shm->client_sleeping), 0);
	assert_int_equal(mrc_wait(f->client, 1000), 0);
	assert_int_equal(fake_load(&f->shm->client_sleeping), 0);
}

#define MESSAGES 20000U

/* Arrivals at random moments; the receiver sleeps on the descriptor alone, with odd batch sizes. */
static void run_stream(struct fake *f)
{
	struct mrc_sqe sqe;
	uint64_t seed = 0x5eed;
	uint32_t sent = 0;
	uint32_t released = 0;

	while (released < MESSAGES) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		for (uint32_t n = (uint32_t)(seed >> 40) % 5; n > 0; n--)
			if (sent < MESSAGES && sent - released < 48 &&
			    sent + 1 - fake_load(&f->shm->cq_head) < 48)
				fake_post(f, (struct mrc_cqe){.type = MRC_CQE_ARRIVED,
							      .channel = 1,
							      .number = sent++});
		while (fake_take(f, &sqe))
			released += sqe.op == MRC_SQE_RELEASE;
		if (seed >> 60 == 0)
			usleep(1);
		else
			sched_yield();
	}
}

static void descriptor_misses_no_wake_up(void **state)
{
	struct fake *f = *state;
	struct mrc_event events[7];
	struct act act;
	uint64_t number = 0;

	fake_channel(f, f->client, 1);
	mrc_client_fd(f->client);
	assert_int_equal(mrc_poll(f->client, events, 1), 0);
	act_start(&act, f, run_stream);
	while (number < MESSAGES) {
		struct pollfd pfd = {.fd = mrc_client_fd(f->client), .events = POLLIN};
		int count;

		assert_int_equal(poll(&pfd, 1, 20000), 1); /* a missed one would stay here */
		count = mrc_poll(f->client, events, 1 + (int)(number % 7));
		assert_true(count >= 0);
		for (int i = 0; i < count; i++) {
			assert_int_equal(events[i].type, MRC_EVENT_RECEIVED);
			assert_int_equal(events[i].number, number++);
			mrc_msg_release(events[i].msg);
		}
	}
	/* The last releases may still wait for room. */
	while (fake_fd_is_readable(f->client))
		assert_int_equal(mrc_poll(f->client, events, 1), 0);
	act_join(&act);
}

static void blocking_receive_misses_no_wake_up(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_msg *msg;
	struct act act;

	channel = fake_channel(f, f->client, 1);
	act_start(&act, f, run_stream);
	for (uint64_t number = 0; number < MESSAGES; number++) {
		assert_int_equal(mrc_recv(channel, FAKE_LONG_NS, &msg), 0);
		assert_int_equal(mrc_msg_number(msg), number);
		mrc_msg_release(msg);
	}
	assert_int_equal(mrc_recv(channel, 1000, &msg), -ETIMEDOUT);
	act_join(&act);
}

#define ATTACHED(test) cmocka_unit_test_setup_teardown(test, fake_setup_attached, fake_teardown)
#define FRESH(test)    cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)

/* The daemon takes a batch of two and answers `status`, after something that is not the batch's. */
static void answer_batch(struct fake *f, int status)
{
	struct mrc_sqe first = fake_expect(f, MRC_SQE_COMMIT);
	struct mrc_sqe last = fake_expect(f, MRC_SQE_COMMIT);

	assert_int_equal(first.channel, 1);
	assert_int_equal(first.flags, MRC_SQE_FLAG_BATCH);
	assert_int_equal(last.channel, 2);
	assert_int_equal(last.flags, MRC_SQE_FLAG_BATCH | MRC_SQE_FLAG_BATCH_END);
	fake_post(f, fake_arrival(f, 1, 100, 0, "b"));
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_BATCH,
				      .user_data = last.user_data,
				      .status = status});
}

static void run_commit_batch(struct fake *f)
{
	answer_batch(f, MRC_STATUS_OK);
}

static void run_reject_batch(struct fake *f)
{
	answer_batch(f, MRC_STATUS_CLOSED);
}

static void run_die(struct fake *f)
{
	fake_expect(f, MRC_SQE_COMMIT);
	fake_die(f);
}

static void batch_waits_for_the_daemons_word(void **state)
{
	static const struct {
		void (*run)(struct fake *f);
		int want;
	} rows[] = {{run_commit_batch, 0}, {run_reject_batch, -ECANCELED}, {run_die, -ECONNRESET}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake *f = *state;
		struct mrc_msg *msgs[2];
		struct act act;

		fake_channel(f, f->client, 1);
		fake_channel(f, f->client, 2);
		for (uint32_t m = 0; m < 2; m++) {
			fake_post(f, fake_arrival(f, m + 1, 0, 0, "a"));
			msgs[m] = fake_event(f->client, MRC_EVENT_RECEIVED).msg;
		}
		act_start(&act, f, rows[i].run);
		assert_int_equal(mrc_msg_commit_batch(msgs, 2), rows[i].want);
		act_join(&act);
		assert_int_equal(mrc_msg_commit(msgs[0]), -EALREADY);
		if (rows[i].want != -ECONNRESET) /* what was not the batch's was kept */
			assert_int_equal(fake_event(f->client, MRC_EVENT_RECEIVED).number, 100);
		mrc_msg_release(msgs[0]);
		mrc_msg_release(msgs[1]);
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(fake_setup_attached(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACHED(blocking_server_listens_accepts_receives_and_closes),
		ATTACHED(blocking_client_connects_and_sends),
		ATTACHED(blocking_receive_keeps_what_is_not_its_own),
		FRESH(death_wakes_every_blocking_call),
		ATTACHED(signal_ends_a_blocking_call),
		ATTACHED(blocking_send_waits_for_room_in_the_ring),
		ATTACHED(batch_waits_for_the_daemons_word),
		ATTACHED(descriptor_is_readable_while_there_are_events),
		ATTACHED(descriptor_calls_again_for_what_found_no_room),
		ATTACHED(client_without_descriptor_is_armed_only_while_it_sleeps),
		ATTACHED(descriptor_misses_no_wake_up),
		ATTACHED(blocking_receive_misses_no_wake_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
