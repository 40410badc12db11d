/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon that is broken, or has gone. */
#include <poll.h>

#include "test_lib_fake.h"

/* Set up alike for every case: channel 1 open with send 0 under way, 2 incoming, listener 5. */
static void breach_ends_the_attachment_with_a_reason(void **state)
{
	enum { SEND_WRONG_CHANNEL = 1, SEND_TWICE, SEND_STATUS, SEND_LEVEL, SEND_LOW };
	static const struct {
		const char *name;
		struct mrc_cqe cqe;
		int send; /* the cqe answers the send, wrong in this way */
		const char *text;
	} cases[] = {
		{"type 0", {.type = 0}, 0, "unknown type 0"},
		{"type 200", {.type = 200}, 0, "unknown type 200"},
		{"listening unasked", {.type = MRC_CQE_LISTENING, .user_data = 99}, 0, "LISTENING"},
		{"connected unasked", {.type = MRC_CQE_CONNECTED, .user_data = 99}, 0, "CONNECTED"},
		{"accepted unasked", {.type = MRC_CQE_CONNECTED, .channel = 2}, 0, "CONNECTED"},
		{"accepted nothing", {.type = MRC_CQE_CONNECTED, .channel = 77}, 0, "CONNECTED"},
		{"incoming with a used id",
		 {.type = MRC_CQE_INCOMING, .channel = 1, .number = 5},
		 0,
		 "channel 1 exists"},
		{"arrival outside",
		 {.type = MRC_CQE_ARRIVED,
		  .channel = 1,
		  .offset = FAKE_LANDING_BYTES,
		  .len_bytes = 1},
		 0,
		 "outside the landing arena"},
		{"arrival that wraps",
		 {.type = MRC_CQE_ARRIVED, .channel = 1, .offset = UINT64_MAX - 3, .len_bytes = 8},
		 0,
		 "outside the landing arena"},
		{"arrival without end",
		 {.type = MRC_CQE_ARRIVED, .channel = 1, .len_bytes = UINT64_MAX},
		 0,
		 "outside the landing arena"},
		{"arrival for no channel", {.type = MRC_CQE_ARRIVED, .channel = 3}, 0, "channel 3"},
		{"arrival before accept", {.type = MRC_CQE_ARRIVED, .channel = 2}, 0, "not open"},
		{"arrival again",
		 {.type = MRC_CQE_ARRIVED, .channel = 1, .number = 4},
		 0,
		 "out of order"},
		{"gap for no channel", {.type = MRC_CQE_GAP, .channel = 3}, 0, "channel 3"},
		{"closed with success and more",
		 {.type = MRC_CQE_CLOSED, .channel = 2, .status = 1},
		 0,
		 "status 1"},
		{"sent, but what",
		 {.type = MRC_CQE_SENT, .user_data = 12345},
		 0,
		 "no send of ours"},
		{"sent, beyond the table",
		 {.type = MRC_CQE_SENT, .user_data = UINT64_MAX},
		 0,
		 "no send of ours"},
		{"sent on another channel", {0}, SEND_WRONG_CHANNEL, "no send of ours"},
		{"sent twice", {0}, SEND_TWICE, "no send of ours"},
		{"sent with a positive status", {0}, SEND_STATUS, "status 3"},
		{"sent to a level there is not", {0}, SEND_LEVEL, "level 4"},
		{"sent, but not as far as asked", {0}, SEND_LOW, "level 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake *f = *state;
		struct mrc_channel *channel;
		struct mrc_event events[16];
		struct mrc_cqe cqe = cases[i].cqe;
		struct mrc_sqe sqe;
		bool is_detached = false;
		int sent_count = 0;
		int closed_count = 0;
		int count;

		assert_int_equal(fake_attach(f, &f->client), 0);
		fake_listener(f, f->client, 5);
		channel = fake_channel(f, f->client, 1);
		fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING, .channel = 2, .number = 5});
		fake_event(f->client, MRC_EVENT_INCOMING);
		fake_post(f, fake_arrival(f, 1, 4, 0, "x"));
		fake_event(f->client, MRC_EVENT_RECEIVED);
		assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_VISIBLE, 0, 0), 0);
		sqe = fake_expect(f, MRC_SQE_SEND);
		if (cases[i].send) {
			cqe = fake_sent(&sqe, 0, MRC_STATUS_OK, MRC_LEVEL_VISIBLE);
			cqe.channel += cases[i].send == SEND_WRONG_CHANNEL;
			cqe.status = cases[i].send == SEND_STATUS ? 3 : 0;
			cqe.level = cases[i].send == SEND_LEVEL ? 4
				    : cases[i].send == SEND_LOW ? MRC_LEVEL_PLACED
								: cqe.level;
			if (cases[i].send == SEND_TWICE)
				fake_post(f, cqe);
		}
		fake_post(f, cqe);
		count = mrc_poll(f->client, events, 16);
		for (int e = 0; e < count; e++) {
			sent_count += events[e].type == MRC_EVENT_SENT;
			closed_count += events[e].type == MRC_EVENT_CLOSED;
			is_detached = events[e].type == MRC_EVENT_DETACHED;
		}
		if (!is_detached || sent_count != 1 || closed_count != 2 ||
		    !strstr(mrc_last_error(f->client), "broke the ring protocol") ||
		    !strstr(mrc_last_error(f->client), cases[i].text))
			fail_msg("%s: %d events, %d sent, %d closed, \"%s\"", cases[i].name, count,
				 sent_count, closed_count, mrc_last_error(f->client));
		assert_int_equal(mrc_poll(f->client, events, 16), -ECONNRESET);
		/* The daemon notices as well. */
		assert_int_equal(recv(f->conn_fd, events, sizeof(events), 0), 0);
		mrc_detach(f->client);
		f->client = NULL;
		fake_unmake(f);
	}
}

static void breach_by_too_many_of_anything_is_noticed(void **state)
{
	struct fake *f = *state;
	struct mrc_event event = {0};
	int r;

	/* Channels. */
	assert_int_equal(fake_attach(f, &f->client), 0);
	fake_listener(f, f->client, 5);
	for (uint32_t i = 0; i <= f->channels_max; i++)
		fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING, .channel = i, .number = 5});
	while ((r = mrc_poll(f->client, &event, 1)) == 1)
		;
	assert_int_equal(r, -ECONNRESET);
	assert_non_null(strstr(mrc_last_error(f->client), "more than 8 channels"));
	mrc_detach(f->client);
	fake_unmake(f);

	/* Messages never released: the daemon has no credit left to give. */
	assert_int_equal(fake_attach(f, &f->client), 0);
	fake_channel(f, f->client, 1);
	event = (struct mrc_event){0};
	for (uint64_t i = 0; i < 5000 && event.type != MRC_EVENT_DETACHED; i++) {
		fake_post(f, fake_arrival(f, 1, i, 0, "x"));
		while (mrc_poll(f->client, &event, 1) == 1 && event.type != MRC_EVENT_DETACHED)
			;
	}
	assert_non_null(strstr(mrc_last_error(f->client), "not released"));
	mrc_detach(f->client);
	fake_unmake(f);

	/* Entries. */
	assert_int_equal(fake_attach(f, &f->client), 0);
	f->shm->cq_tail = f->cq_entry_count + 1;
	fake_event(f->client, MRC_EVENT_DETACHED);
	assert_non_null(strstr(mrc_last_error(f->client), "impossible tail"));
	mrc_detach(f->client);
	fake_unmake(f);

	assert_int_equal(fake_attach(f, &f->client), 0);
	{
		struct mrc_channel *channel = fake_channel(f, f->client, 1);

		f->shm->sq_head = 1000;
		assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -ECONNRESET);
		fake_event(f->client, MRC_EVENT_CLOSED);
		fake_event(f->client, MRC_EVENT_DETACHED);
		assert_non_null(strstr(mrc_last_error(f->client), "impossible head"));
	}
	mrc_detach(f->client);
	f->client = NULL;
	fake_unmake(f);
}

/* The table's slot is used again at once; the old answer must not be taken for the new send's. */
static void breach_by_an_old_answer_is_told_from_the_next_sends(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_sqe sqe;

	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	sqe = fake_expect(f, MRC_SQE_SEND);
	fake_post(f, fake_sent(&sqe, 0, MRC_STATUS_OK, MRC_LEVEL_PLACED));
	fake_event(f->client, MRC_EVENT_SENT);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	fake_post(f, fake_sent(&sqe, 0, MRC_STATUS_OK, MRC_LEVEL_PLACED));
	assert_int_equal(fake_event(f->client, MRC_EVENT_SENT).status, MRC_STATUS_DETACHED);
	assert_non_null(strstr(mrc_last_error(f->client), "no send of ours"));
}

/* Whatever bytes are in the ring: no crash, and an end. */
static void breach_by_random_entries_never_crashes(void **state)
{
	struct fake *f = *state;
	uint64_t seed = 0x5eed;

	for (int run = 0; run < 200; run++) {
		struct mrc_event event = {0};

		assert_int_equal(fake_attach(f, &f->client), 0);
		fake_listener(f, f->client, 1);
		fake_channel(f, f->client, 1);
		for (int i = 0; i < 64; i++) {
			struct mrc_cqe cqe;
			uint64_t words[8];

			for (int w = 0; w < 8; w++) {
				seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
				words[w] = seed >> 16;
			}
			memcpy(&cqe, words, sizeof(cqe));
			/* Mostly plausible, so that it gets far. */
			cqe.type = (uint8_t)(1 + words[0] % 7);
			cqe.channel %= 4;
			cqe.number = words[2] % 3 ? (uint64_t)i : 1;
			cqe.user_data = words[1] % 4;
			cqe.len_bytes = words[4] % 1000;
			cqe.offset = words[3] % 1000;
			cqe.status = -(int32_t)(words[5] % 3);
			fake_post(f, cqe);
			while (mrc_poll(f->client, &event, 1) == 1) {
				if (event.type == MRC_EVENT_RECEIVED && words[6] % 2)
					mrc_msg_release(event.msg);
				if (event.type == MRC_EVENT_INCOMING && words[6] % 3)
					mrc_accept_incoming(event.channel);
				if (event.type == MRC_EVENT_CLOSED && words[6] % 2)
					mrc_channel_free(event.channel);
			}
			if (event.type == MRC_EVENT_DETACHED)
				break;
		}
		mrc_detach(f->client);
		f->client = NULL;
		fake_unmake(f);
	}
}

/* ---- the daemon has gone ---- */

static void death_answers_everything_once_after_what_was_delivered(void **state)
{
	static const enum mrc_event_type want[] = {
		MRC_EVENT_RECEIVED, MRC_EVENT_SENT,      MRC_EVENT_SENT,     MRC_EVENT_LISTENING,
		MRC_EVENT_CLOSED,   MRC_EVENT_CONNECTED, MRC_EVENT_DETACHED,
	};
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_channel *connecting;
	struct mrc_listener *listener;
	struct mrc_event events[16];
	struct mrc_msg *msg;
	void *buf;

	assert_int_equal(mrc_connect_start(f->client, "a/b", 0, 31, &connecting), 0);
	assert_int_equal(mrc_listen_start(f->client, "svc", 32, &listener), 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 21), 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 22), 0);
	/* Published before the end: delivered, whatever happens to the daemon afterwards. */
	fake_post(f, fake_arrival(f, 1, 0, 128, "last words"));
	fake_die(f);
	assert_int_equal(mrc_wait(f->client, FAKE_LONG_NS), 1);
	assert_int_equal(mrc_poll(f->client, events, 1), 1);
	assert_int_equal(events[0].type, MRC_EVENT_RECEIVED);
	msg = events[0].msg;
	assert_int_equal(mrc_wait(f->client, FAKE_LONG_NS), 1);
	assert_int_equal(mrc_poll(f->client, events + 1, 15), 6);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(events[i].type, want[i]);
		if (i > 0 && i < 6)
			assert_int_equal(events[i].status, MRC_STATUS_DETACHED);
	}
	assert_int_equal(events[1].user, 21);
	assert_int_equal(events[2].user, 22);
	assert_int_equal(events[3].user, 32);
	assert_ptr_equal(events[4].channel, channel);
	assert_int_equal(events[5].user, 31);
	assert_int_equal(mrc_poll(f->client, events, 16), -ECONNRESET);
	assert_int_equal(mrc_wait(f->client, FAKE_LONG_NS), -ECONNRESET);
	assert_string_equal(mrc_last_error(f->client), "the daemon has ended");

	/* All calls answer, and what was received is still there. */
	assert_memory_equal(mrc_msg_data(msg), "last words", 10);
	assert_int_equal(mrc_msg_commit(msg), -ECONNRESET);
	mrc_msg_release(msg);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -ECONNRESET);
	assert_int_equal(mrc_recv(channel, FAKE_LONG_NS, &msg), -ECONNRESET);
	assert_int_equal(mrc_connect_start(f->client, "a/b", 0, 0, &connecting), -ECONNRESET);
	assert_int_equal(mrc_listen_start(f->client, "svc", 0, &listener), -ECONNRESET);
	assert_int_equal(mrc_accept(events[3].listener, FAKE_LONG_NS, &connecting), -ECONNRESET);
	assert_int_equal(mrc_buf_alloc(f->client, 10, &buf), 0);
	mrc_buf_free(f->client, buf);
	mrc_channel_free(channel);
	mrc_listener_close(events[3].listener);

	/* And again with the next daemon. */
	mrc_detach(f->client);
	fake_unmake(f);
	assert_int_equal(fake_attach(f, &f->client), 0);
	fake_channel(f, f->client, 1);
}

static void death_is_found_by_a_program_that_only_polls(void **state)
{
	struct fake *f = *state;
	struct mrc_event event = {0};

	fake_die(f);
	while (mrc_poll(f->client, &event, 1) == 0)
		;
	assert_int_equal(event.type, MRC_EVENT_DETACHED);
}

static void state_gone_ends_the_attachment_without_the_socket(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);

	fake_post(f, fake_arrival(f, 1, 0, 0, "x"));
	__atomic_store_n(&f->shm->state, MRC_RING_STATE_GONE, __ATOMIC_RELEASE);
	fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_ptr_equal(fake_event(f->client, MRC_EVENT_CLOSED).channel, channel);
	fake_event(f->client, MRC_EVENT_DETACHED);
	assert_non_null(strstr(mrc_last_error(f->client), "ended this attachment"));
}

static void daemon_that_speaks_on_the_socket_is_broken(void **state)
{
	struct fake *f = *state;

	assert_int_equal(send(f->conn_fd, "?", 1, 0), 1);
	assert_int_equal(mrc_wait(f->client, FAKE_LONG_NS), 1);
	fake_event(f->client, MRC_EVENT_DETACHED);
	assert_non_null(strstr(mrc_last_error(f->client), "spoke on the socket"));
}

#define FRESH(test)    cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)
#define ATTACHED(test) cmocka_unit_test_setup_teardown(test, fake_setup_attached, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(breach_ends_the_attachment_with_a_reason),
		FRESH(breach_by_too_many_of_anything_is_noticed),
		ATTACHED(breach_by_an_old_answer_is_told_from_the_next_sends),
		FRESH(breach_by_random_entries_never_crashes),
		ATTACHED(death_answers_everything_once_after_what_was_delivered),
		ATTACHED(death_is_found_by_a_program_that_only_polls),
		ATTACHED(state_gone_ends_the_attachment_without_the_socket),
		ATTACHED(daemon_that_speaks_on_the_socket_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
