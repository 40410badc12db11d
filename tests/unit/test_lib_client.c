/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching, channels, messages: against a daemon played by the test. */
#include "test_lib_fake.h"

/* ---- attaching ---- */

static void bend_refuse(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->status = -EACCES;
	strcpy(w->text, "user 1000 may not attach\n");
}

static void bend_version(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->version = MRC_ABI_VERSION + 1;
}

static void bend_no_version(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->status = -EPROTONOSUPPORT;
	memset(w->text, 'x', sizeof(w->text)); /* not terminated */
}

static void bend_magic(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->magic = 0;
}

static void bend_status(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->status = 5;
}

static void bend_arena(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->send_arena_bytes = FAKE_SEND_BYTES + 1;
}

static void bend_landing(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->landing_arena_bytes = 0;
}

static void bend_rings(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->ring_bytes = UINT64_MAX;
}

static void bend_offset(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	shm->cq_offset = 1U << 30;
}

static void bend_sends(struct mrc_abi_welcome *w, struct mrc_ring_shm *shm)
{
	w->sends_max = UINT32_MAX;
}

static void attach_to_a_bad_daemon_fails_with_a_text(void **state)
{
	static const struct {
		const char *name;
		void (*bend)(struct mrc_abi_welcome *, struct mrc_ring_shm *);
		bool is_mute;
		bool is_unsealed;
		int fds_less;
		int want;
		const char *text;
	} cases[] = {
		{"refused", bend_refuse, false, false, 0, -EACCES, "user 1000 may not attach?"},
		{"version", bend_version, false, false, 0, -EPROTONOSUPPORT, "ABI version 3"},
		{"no version", bend_no_version, false, false, 0, -EPROTONOSUPPORT, "xxx"},
		{"magic", bend_magic, false, false, 0, -EPROTO, "does not speak"},
		{"positive status", bend_status, false, false, 0, -EPROTO, "refused"},
		{"mute", NULL, true, false, 0, -ECONNRESET, "without an answer"},
		{"descriptors", NULL, false, false, 1, -EPROTO, "4 descriptors"},
		{"not sealed", NULL, false, true, 0, -EPROTO, "rings is not sealed"},
		{"arena", bend_arena, false, false, 0, -EPROTO, "send arena is not as large"},
		{"landing", bend_landing, false, false, 0, -EPROTO, "landing arena"},
		{"rings", bend_rings, false, false, 0, -EPROTO, "rings is not as large"},
		{"offset", bend_offset, false, false, 0, -EPROTO, "not as its welcome says"},
		{"sends", bend_sends, false, false, 0, -EPROTO, "makes no sense"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake *f = *state;
		struct mrc_client *client = NULL;
		int r;

		f->bend = cases[i].bend;
		f->is_mute = cases[i].is_mute;
		f->is_unsealed = cases[i].is_unsealed;
		f->fds_less = cases[i].fds_less;
		r = fake_attach(f, &client);
		if (r != cases[i].want || client || !strstr(mrc_last_error(NULL), cases[i].text))
			fail_msg("%s: %d, %s", cases[i].name, r, mrc_last_error(NULL));
		fake_unmake(f);
	}
}

static void attach_without_a_daemon_says_where_it_looked(void **state)
{
	struct mrc_attach_options options = {.socket_path = "/nonexistent/mrcd.sock"};
	struct mrc_client *client = NULL;
	char path[200];

	assert_int_equal(mrc_attach(&options, &client), -ENOENT);
	assert_non_null(strstr(mrc_last_error(NULL), "/nonexistent/mrcd.sock"));
	setenv("MRC_SOCKET", "/nonexistent/other.sock", 1);
	assert_int_equal(mrc_attach(NULL, &client), -ENOENT);
	assert_non_null(strstr(mrc_last_error(NULL), "/nonexistent/other.sock"));
	unsetenv("MRC_SOCKET");
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	options.socket_path = path;
	assert_int_equal(mrc_attach(&options, &client), -ENAMETOOLONG);
	mrc_detach(NULL);
}

static void attach_tells_its_name_and_learns_the_hosts(void **state)
{
	struct fake *f = *state;

	assert_int_equal(f->attach.magic, MRC_ABI_MAGIC);
	assert_int_equal(f->attach.version_min, MRC_ABI_VERSION_OLDEST);
	assert_int_equal(f->attach.version_max, MRC_ABI_VERSION);
	assert_string_equal(f->attach.name, "test");
	assert_string_equal(mrc_client_host(f->client), "here");
	assert_int_equal(mrc_client_message_bytes_max(f->client), FAKE_LANDING_BYTES);
	assert_string_equal(mrc_last_error(f->client), "");
}

/* ---- names ---- */

static void names_that_are_none_are_refused_before_the_daemon_sees_them(void **state)
{
	static const char long_name[] =
		"0123456789012345678901234567890123456789012345678901234567890123";
	static const struct {
		const char *target;
		int want;
	} cases[] = {
		{"host/svc", 0},    {"host", -EINVAL},      {"/svc", -EINVAL}, {"host/", -EINVAL},
		{"a/b/c", -EINVAL}, {"ho st/svc", -EINVAL}, {"", -EINVAL},     {NULL, -EINVAL},
	};
	struct fake *f = *state;
	struct mrc_listener *listener;
	struct mrc_channel *channel;
	char target[160];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mrc_connect_start(f->client, cases[i].target, 0, 0, &channel),
				 cases[i].want);
	snprintf(target, sizeof(target), "h/%s", long_name);
	assert_int_equal(mrc_connect_start(f->client, target, 0, 0, &channel), -EINVAL);
	assert_int_equal(mrc_connect_start(f->client, "h/s", 4, 0, &channel), -EINVAL);
	assert_int_equal(mrc_listen_start(f->client, long_name, 0, &listener), -EINVAL);
	assert_int_equal(mrc_listen_start(f->client, "", 0, &listener), -EINVAL);
	assert_int_equal(mrc_listen_start(f->client, long_name + 1, 0, &listener), 0);
	fake_request(f, MRC_ABI_REQ_CONNECT);
	assert_string_equal(fake_request(f, MRC_ABI_REQ_LISTEN).target, long_name + 1);
}

/* ---- a whole life ---- */

static void channel_carries_messages_both_ways(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 40);
	struct mrc_event event;
	struct mrc_sqe sqe;
	void *buf;

	assert_ptr_equal(mrc_channel_client(channel), f->client);
	assert_false(mrc_channel_is_unordered(channel));
	assert_false(mrc_channel_is_unchecked(channel));
	assert_int_equal(mrc_channel_message_bytes_max(channel), 128 * 1024);

	/* Out. */
	assert_int_equal(mrc_buf_alloc(f->client, 5, &buf), 0);
	memcpy(buf, "hello", 5);
	assert_int_equal(mrc_send(channel, buf, 5, MRC_LEVEL_VISIBLE, 123, 77), 0);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 1);
	sqe = fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(sqe.channel, 40);
	assert_int_equal(sqe.level, MRC_LEVEL_VISIBLE);
	assert_int_equal(sqe.deadline_ns, 123);
	assert_int_equal(sqe.len_bytes, 5);
	assert_memory_equal(f->send_arena + sqe.offset, "hello", 5);
	fake_post(f, fake_sent(&sqe, 0, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	event = fake_event(f->client, MRC_EVENT_SENT);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.status, MRC_STATUS_OK);
	assert_int_equal(event.level, MRC_LEVEL_COMMITTED);
	assert_int_equal(event.user, 77);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 0);
	mrc_buf_free(f->client, buf);

	/* In. */
	fake_post(f, fake_arrival(f, 40, 0, 64, "welcome"));
	event = fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_ptr_equal(event.channel, channel);
	assert_ptr_equal(mrc_msg_channel(event.msg), channel);
	assert_int_equal(mrc_msg_number(event.msg), 0);
	assert_int_equal(mrc_msg_len_bytes(event.msg), 7);
	assert_memory_equal(mrc_msg_data(event.msg), "welcome", 7);
	assert_false(fake_take(f, &sqe));
	mrc_msg_release(event.msg);
	sqe = fake_expect(f, MRC_SQE_RELEASE);
	assert_int_equal(sqe.channel, 40);
	assert_int_equal(sqe.number, 0);

	/* And the end. */
	assert_int_equal(mrc_close(channel), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_CLOSE).channel, 40);
	assert_int_equal(mrc_close(channel), 0);
	assert_false(fake_take(f, &sqe));
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -EPIPE);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 40, .code = 3});
	event = fake_event(f->client, MRC_EVENT_CLOSED);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.code, 3);
	mrc_channel_free(channel);
}

/* A SEND may be on its way while the daemon says CLOSED: its answer comes first, then the end. */
static void send_that_crosses_with_the_end_is_answered_before_it(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 40);
	struct mrc_event event;
	struct mrc_sqe sqe;
	void *buf;

	assert_int_equal(mrc_buf_alloc(f->client, 64, &buf), 0);
	assert_int_equal(mrc_send(channel, buf, 64, MRC_LEVEL_PLACED, 0, 77), 0);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 40});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(mrc_send(channel, buf, 64, MRC_LEVEL_PLACED, 0, 78), -EPIPE);
	sqe = fake_expect(f, MRC_SQE_SEND);
	fake_post(f, fake_sent(&sqe, 0, MRC_STATUS_CLOSED, MRC_LEVEL_NONE));
	event = fake_event(f->client, MRC_EVENT_SENT);
	assert_int_equal(event.user, 77);
	assert_int_equal(event.status, MRC_STATUS_CLOSED);
	event = fake_event(f->client, MRC_EVENT_CLOSED);
	assert_ptr_equal(event.channel, channel);
	mrc_channel_free(channel);
}

static void service_takes_and_refuses_channels(void **state)
{
	struct fake *f = *state;
	struct mrc_listener *listener = fake_listener(f, f->client, 5);
	struct mrc_channel *channel;
	struct mrc_event event;
	struct mrc_sqe sqe;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING,
				      .channel = 1,
				      .number = 5,
				      .flags = MRC_CQE_FLAG_UNORDERED});
	event = fake_event(f->client, MRC_EVENT_INCOMING);
	assert_ptr_equal(event.listener, listener);
	channel = event.channel;
	assert_true(mrc_channel_is_unordered(channel));
	assert_false(mrc_channel_is_unchecked(channel));
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -ENOTCONN);
	assert_int_equal(mrc_accept_incoming(channel), 0);
	assert_int_equal(mrc_accept_incoming(channel), -EINVAL);
	assert_int_equal(fake_expect(f, MRC_SQE_ACCEPT).channel, 1);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED, .channel = 1, .len_bytes = 10});
	event = fake_event(f->client, MRC_EVENT_CONNECTED);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.user, 0);
	assert_int_equal(mrc_channel_message_bytes_max(channel), 10);

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING,
				      .channel = 2,
				      .number = 5,
				      .flags = MRC_CQE_FLAG_UNCHECKED});
	event = fake_event(f->client, MRC_EVENT_INCOMING);
	assert_false(mrc_channel_is_unordered(event.channel));
	assert_true(mrc_channel_is_unchecked(event.channel));
	assert_int_equal(mrc_refuse_incoming(event.channel, 99), 0);
	sqe = fake_expect(f, MRC_SQE_REFUSE);
	assert_int_equal(sqe.channel, 2);
	assert_int_equal(sqe.code, 99);

	/* An unordered channel's numbers come as they like. */
	fake_post(f, fake_arrival(f, 1, 9, 0, "x"));
	fake_post(f, fake_arrival(f, 1, 4, 1, "y"));
	mrc_msg_release(fake_event(f->client, MRC_EVENT_RECEIVED).msg);
	mrc_msg_release(fake_event(f->client, MRC_EVENT_RECEIVED).msg);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 9);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 4);

	mrc_listener_close(listener);
	sqe = fake_expect(f, MRC_SQE_UNLISTEN);
	assert_int_equal(sqe.channel, 5);
	/* One that was on its way meets nobody, and is told so. */
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_INCOMING, .channel = 3, .number = 5});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_REFUSE).channel, 3);
	/* The refused one ended by itself at the same time: no harm. */
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 3});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(mrc_close(channel), 0);
}

static void request_that_failed_says_why_and_leaves_nothing(void **state)
{
	struct fake *f = *state;
	struct mrc_listener *listener;
	struct mrc_channel *channel;
	struct mrc_abi_request request;
	struct mrc_event event;

	assert_int_equal(mrc_connect_start(f->client, "a/b", 4, 1, &channel), -EINVAL);
	assert_int_equal(mrc_connect_start(f->client, "a/b",
					   MRC_CHANNEL_UNORDERED | MRC_CHANNEL_UNCHECKED, 1,
					   &channel),
			 0);
	request = fake_request(f, MRC_ABI_REQ_CONNECT);
	assert_int_equal(request.flags, MRC_ABI_CHANNEL_UNORDERED | MRC_ABI_CHANNEL_UNCHECKED);
	event.user = request.user_data;
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
				      .user_data = event.user,
				      .status = MRC_STATUS_REFUSED,
				      .code = 42});
	event = fake_event(f->client, MRC_EVENT_CONNECTED);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.status, MRC_STATUS_REFUSED);
	assert_int_equal(event.code, 42);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -EPIPE);
	assert_int_equal(mrc_close(channel), 0);
	mrc_channel_free(channel);

	assert_int_equal(mrc_listen_start(f->client, "svc", 1, &listener), 0);
	event.user = fake_request(f, MRC_ABI_REQ_LISTEN).user_data;
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
				      .user_data = event.user,
				      .status = MRC_STATUS_IN_USE});
	event = fake_event(f->client, MRC_EVENT_LISTENING);
	assert_int_equal(event.status, MRC_STATUS_IN_USE);
	mrc_listener_close(listener);
	assert_int_equal(fake_load(&f->shm->sq_tail), 0);
}

/* ---- sending ---- */

static void send_with_bad_arguments_changes_nothing(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	char elsewhere[8];
	char *arena;
	void *buf;

	assert_int_equal(mrc_buf_alloc(f->client, FAKE_SEND_BYTES, &buf), 0);
	arena = buf;
	const struct {
		const char *name;
		const void *data;
		size_t len_bytes;
		int level;
		int want;
	} cases[] = {
		{"level 0", arena, 1, MRC_LEVEL_NONE, -EINVAL},
		{"level 4", arena, 1, 4, -EINVAL},
		{"not of the arena", elsewhere, 1, MRC_LEVEL_PLACED, -EINVAL},
		{"before it", arena - 1, 2, MRC_LEVEL_PLACED, -EINVAL},
		{"over its end", arena + FAKE_SEND_BYTES - 1, 2, MRC_LEVEL_PLACED, -EINVAL},
		{"behind it", arena + FAKE_SEND_BYTES, 1, MRC_LEVEL_PLACED, -EINVAL},
		{"larger than the peer takes", arena, 128 * 1024 + 1, MRC_LEVEL_PLACED, -EMSGSIZE},
		{"larger than anything", arena, SIZE_MAX, MRC_LEVEL_PLACED, -EMSGSIZE},
		{"the last byte", arena + FAKE_SEND_BYTES - 1, 1, MRC_LEVEL_PLACED, 0},
		{"the largest", arena, 128 * 1024, MRC_LEVEL_COMMITTED, 0},
		{"no bytes", NULL, 0, MRC_LEVEL_PLACED, 0},
	};
	uint32_t count = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = mrc_send(channel, cases[i].data, cases[i].len_bytes,
				 (enum mrc_level)cases[i].level, 0, 0);

		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].name, r);
		count += r == 0;
		assert_int_equal(fake_load(&f->shm->sq_tail), count);
		assert_int_equal(mrc_channel_sends_outstanding(channel), count);
	}
}

static void send_table_and_ring_have_bounds(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_event event;
	struct mrc_sqe sqe;
	uint32_t sent = 0;

	fake_unmake(f);
	mrc_detach(f->client);
	f->sq_entry_count = 4;
	f->sends_max = 6;
	assert_int_equal(fake_attach(f, &f->client), 0);
	channel = fake_channel(f, f->client, 1);
	while (mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, sent) == 0)
		sent++;
	assert_int_equal(sent, 4); /* the ring is full */
	/* Nothing rings for room; so a waiting client looks by itself. */
	assert_int_equal(mrc_wait(f->client, 0), 0);
	sqe = fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(mrc_wait(f->client, FAKE_LONG_NS), 1);
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, sent++), 0);
	fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, sent++), 0);
	fake_expect(f, MRC_SQE_SEND);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, sent), -EAGAIN);
	assert_int_equal(mrc_channel_sends_outstanding(channel), 6); /* and now the table */
	fake_post(f, fake_sent(&sqe, 0, MRC_STATUS_OK, MRC_LEVEL_PLACED));
	assert_int_equal(fake_event(f->client, MRC_EVENT_SENT).user, 0);
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, sent), 0);
}

static void daemon_is_rung_when_it_sleeps_and_only_then(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_event event;
	struct mrc_cqe cqe;

	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_false(fake_is_rung(f));
	f->shm->daemon_sleeping = 1;
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_true(fake_is_rung(f));

	/* An arrival nobody waits to see is taken quietly, another is told. */
	fake_post(f, fake_arrival(f, 1, 0, 0, "a"));
	fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_int_equal(fake_load(&f->shm->cq_head), f->cq_tail);
	assert_false(fake_is_rung(f));
	cqe = fake_arrival(f, 1, 1, 0, "b");
	cqe.flags = MRC_CQE_FLAG_TELL_VISIBLE;
	fake_post(f, cqe);
	assert_int_equal(mrc_wait(f->client, 0), 1);
	assert_int_equal(fake_load(&f->shm->cq_head), f->cq_tail - 1); /* waiting takes nothing */
	event = fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_int_equal(fake_load(&f->shm->cq_head), f->cq_tail);
	assert_true(fake_is_rung(f));
	mrc_msg_release(event.msg);
	assert_true(fake_is_rung(f));
}

/* ---- received messages ---- */

static void message_gets_one_verdict(void **state)
{
	struct fake *f = *state;
	struct mrc_event event;
	char text[MRC_REJECT_TEXT_MAX + 2];
	struct mrc_sqe sqe;

	fake_channel(f, f->client, 1);
	fake_post(f, fake_arrival(f, 1, 0, 0, "a"));
	event = fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_int_equal(mrc_msg_commit(event.msg), 0);
	assert_int_equal(mrc_msg_commit(event.msg), -EALREADY);
	assert_int_equal(mrc_msg_reject(event.msg, 1, NULL), -EALREADY);
	assert_memory_equal(mrc_msg_data(event.msg), "a", 1);
	mrc_msg_release(event.msg);
	assert_int_equal(fake_expect(f, MRC_SQE_COMMIT).number, 0);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 0);

	fake_post(f, fake_arrival(f, 1, 3, 0, "b")); /* numbers may jump */
	event = fake_event(f->client, MRC_EVENT_RECEIVED);
	memset(text, 'x', sizeof(text));
	text[MRC_REJECT_TEXT_MAX + 1] = 0;
	assert_int_equal(mrc_msg_reject(event.msg, 17, text), -EMSGSIZE);
	text[MRC_REJECT_TEXT_MAX] = 0;
	assert_int_equal(mrc_msg_reject(event.msg, 17, text), 0);
	assert_int_equal(mrc_msg_commit(event.msg), -EALREADY);
	mrc_msg_release(event.msg);
	sqe = fake_expect(f, MRC_SQE_REJECT);
	assert_int_equal(sqe.number, 3);
	assert_int_equal(sqe.code, 17);
	assert_int_equal(sqe.text_len, MRC_REJECT_TEXT_MAX);
	assert_memory_equal(fake_text(f), text, MRC_REJECT_TEXT_MAX);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 3);
	mrc_msg_release(NULL);
}

static void text_of_a_rejection_comes_with_the_answer(void **state)
{
	struct fake *f = *state;
	struct mrc_cqe cqe = {.type = MRC_CQE_SENT,
			      .channel = 1,
			      .status = MRC_STATUS_REJECTED,
			      .code = 5,
			      .text_len = MRC_REJECT_TEXT_MAX};
	char text[MRC_REJECT_TEXT_MAX];
	struct mrc_channel *channel;
	struct mrc_event event;
	void *buf;

	memset(text, 't', sizeof(text));
	channel = fake_channel(f, f->client, 1);
	assert_int_equal(mrc_buf_alloc(f->client, 8, &buf), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mrc_send(channel, buf, 8, MRC_LEVEL_COMMITTED, 0, 0), 0);
		cqe.user_data = fake_expect(f, MRC_SQE_SEND).user_data;
		/* The second gives none, and what the first left in its place is not it. */
		cqe.text_len = i == 1 ? 0 : i == 2 ? 3 : MRC_REJECT_TEXT_MAX;
		fake_post_text(f, cqe, text);
		event = fake_event(f->client, MRC_EVENT_SENT);
		assert_int_equal(event.code, 5);
		assert_int_equal(strlen(event.text), cqe.text_len);
		assert_memory_equal(event.text, text, cqe.text_len);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void moments_are_told_to_who_asks(void **state)
{
	struct fake *f = *state;
	struct mrc_cqe arrival;
	struct mrc_channel *channel;
	struct mrc_event event;
	struct mrc_sqe sqe;
	uint64_t before_ns;
	void *buf;

	channel = fake_channel(f, f->client, 1);
	assert_int_equal(mrc_buf_alloc(f->client, 8, &buf), 0);
	assert_int_equal(mrc_send(channel, buf, 8, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_SEND).stamp_ns, 0);
	f->shm->is_tracing = 1;
	before_ns = now_ns();
	assert_int_equal(mrc_send(channel, buf, 8, MRC_LEVEL_PLACED, 0, 0), 0);
	assert_in_range(fake_expect(f, MRC_SQE_SEND).stamp_ns, before_ns, now_ns());

	for (int i = 0; i < 4; i++) {
		bool is_traced = i % 2;

		before_ns = now_ns();
		arrival = fake_arrival(f, 1, (uint64_t)i, 0, "a");
		arrival.flags = is_traced ? MRC_CQE_FLAG_TRACED : 0;
		fake_post(f, arrival);
		event = fake_event(f->client, MRC_EVENT_RECEIVED);
		if (i >= 2)
			assert_int_equal(mrc_msg_commit(event.msg), 0);
		mrc_msg_release(event.msg);
		sqe = fake_expect(f, i >= 2 ? MRC_SQE_COMMIT : MRC_SQE_RELEASE);
		if (i >= 2)
			fake_expect(f, MRC_SQE_RELEASE);
		if (!is_traced) {
			assert_int_equal(sqe.visible_ns, 0);
			assert_int_equal(sqe.stamp_ns, 0);
			continue;
		}
		assert_in_range(sqe.visible_ns, before_ns, sqe.stamp_ns);
		assert_in_range(sqe.stamp_ns, sqe.visible_ns, now_ns());
	}
}

static void batch_that_cannot_be_says_nothing(void **state)
{
	struct fake *f = *state;
	struct mrc_msg *msgs[3];
	struct mrc_sqe sqe;

	fake_channel(f, f->client, 1);
	for (uint32_t m = 0; m < 2; m++) {
		fake_post(f, fake_arrival(f, 1, m, 0, "a"));
		msgs[m] = fake_event(f->client, MRC_EVENT_RECEIVED).msg;
	}
	msgs[2] = msgs[0];
	assert_int_equal(mrc_msg_commit_batch(NULL, 1), -EINVAL);
	assert_int_equal(mrc_msg_commit_batch(msgs, 0), -EINVAL);
	assert_int_equal(mrc_msg_commit_batch(msgs, 3), -EALREADY);
	assert_false(fake_take(f, &sqe));
	/* And has taken no verdict from them. */
	assert_int_equal(mrc_msg_reject(msgs[1], 4, NULL), 0);
	fake_expect(f, MRC_SQE_REJECT);
	assert_int_equal(mrc_msg_commit_batch(msgs, 2), -EALREADY);
	assert_int_equal(mrc_msg_commit(msgs[0]), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_COMMIT).flags, 0);
}

static void releases_wait_for_room_and_keep_their_order(void **state)
{
	struct fake *f = *state;
	struct mrc_msg *msgs[10];
	struct mrc_event event;
	struct mrc_channel *channel;

	fake_unmake(f);
	mrc_detach(f->client);
	f->sq_entry_count = 4;
	assert_int_equal(fake_attach(f, &f->client), 0);
	channel = fake_channel(f, f->client, 1);
	for (uint64_t i = 0; i < 10; i++) {
		fake_post(f, fake_arrival(f, 1, i, 0, "a"));
		msgs[i] = fake_event(f->client, MRC_EVENT_RECEIVED).msg;
	}
	for (uint64_t i = 0; i < 10; i++) {
		if (i == 6)
			assert_int_equal(mrc_msg_reject(msgs[i], 1, NULL), 0);
		mrc_msg_release(msgs[i]);
	}
	/* A send must not pass them. */
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), -EAGAIN);
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(mrc_poll(f->client, &event, 1), 0);
		if (i == 6) {
			assert_int_equal(fake_expect(f, MRC_SQE_REJECT).number, i);
			assert_int_equal(mrc_poll(f->client, &event, 1), 0);
		}
		assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, i);
	}
	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
}

static void gap_is_an_event_and_a_blocking_receive_passes_it(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_channel *other;
	struct mrc_event event;
	struct mrc_msg *msg;

	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_GAP, .channel = 1, .number = 0});
	event = fake_event(f->client, MRC_EVENT_GAP);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.number, 0);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_GAP, .channel = 1, .number = 1});
	fake_post(f, fake_arrival(f, 1, 2, 0, "a"));
	assert_int_equal(mrc_recv(channel, 0, &msg), 0);
	assert_int_equal(mrc_msg_number(msg), 2);
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);

	/* However many there are that nobody takes, messages still find room. */
	other = fake_channel(f, f->client, 2);
	for (uint64_t i = 0; i < 2000; i++) {
		fake_post(f, (struct mrc_cqe){.type = MRC_CQE_GAP, .channel = 1, .number = 3 + i});
		if (i % 32 == 31)
			assert_int_equal(mrc_recv(other, 0, &msg), -ETIMEDOUT);
	}
	fake_post(f, fake_arrival(f, 2, 0, 0, "b"));
	assert_int_equal(mrc_recv(other, 0, &msg), 0);
	assert_string_equal(mrc_last_error(f->client), "");
}

static void channel_freed_in_mid_life_is_finished_by_the_library(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 1);
	struct mrc_sqe send;
	struct mrc_sqe sqe;
	struct mrc_event event;

	assert_int_equal(mrc_send(channel, NULL, 0, MRC_LEVEL_PLACED, 0, 0), 0);
	send = fake_expect(f, MRC_SQE_SEND);
	fake_post(f, fake_arrival(f, 1, 0, 0, "held"));
	fake_post(f, fake_arrival(f, 1, 1, 64, "parked"));
	fake_event(f->client, MRC_EVENT_RECEIVED);
	/* A blocking receive of another channel parks what passes. */
	{
		struct mrc_channel *other;
		struct mrc_msg *msg;

		assert_int_equal(mrc_connect_start(f->client, "a/b", 0, 0, &other), 0);
		fake_request(f, MRC_ABI_REQ_CONNECT);
		assert_int_equal(mrc_recv(other, 0, &msg), -ETIMEDOUT);
	}
	mrc_channel_free(channel);
	/* What the program had is released; what it never saw is not accepted in its name. */
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 0);
	sqe = fake_expect(f, MRC_SQE_REJECT);
	assert_int_equal(sqe.number, 1);
	assert_int_equal(sqe.code, MRC_CODE_NOT_READ);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 1);
	fake_expect(f, MRC_SQE_CLOSE);
	/* Later entries are dealt with, and the program hears nothing. */
	fake_post(f, fake_arrival(f, 1, 2, 0, "late"));
	fake_post(f, fake_sent(&send, 0, MRC_STATUS_OK, MRC_LEVEL_PLACED));
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 1});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_REJECT).number, 2);
	assert_int_equal(fake_expect(f, MRC_SQE_RELEASE).number, 2);
	/* The id may be used again. */
	fake_channel(f, f->client, 1);
}

static void channel_freed_while_connecting_is_closed_when_it_comes_up(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel;
	struct mrc_event event;
	uint64_t user_data;

	assert_int_equal(mrc_connect_start(f->client, "a/b", 0, 0, &channel), 0);
	user_data = fake_request(f, MRC_ABI_REQ_CONNECT).user_data;
	mrc_channel_free(channel);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
				      .user_data = user_data,
				      .channel = 6});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
	assert_int_equal(fake_expect(f, MRC_SQE_CLOSE).channel, 6);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 6});
	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
}

static void commit_before_detach_reaches_the_ring(void **state)
{
	struct fake *f = *state;
	struct mrc_event event;

	fake_channel(f, f->client, 1);
	fake_post(f, fake_arrival(f, 1, 0, 0, "a"));
	fake_post(f, fake_arrival(f, 1, 1, 0, "b"));
	event = fake_event(f->client, MRC_EVENT_RECEIVED);
	assert_int_equal(mrc_msg_commit(event.msg), 0);
	fake_event(f->client, MRC_EVENT_RECEIVED);
	mrc_detach(f->client);
	f->client = NULL;
	assert_int_equal(fake_expect(f, MRC_SQE_COMMIT).number, 0);
	/* The other was neither accepted nor given back: its sender learns that we ended. */
	assert_int_equal(fake_load(&f->shm->sq_tail), 1);
}

static void buffer_that_is_none_is_left_alone(void **state)
{
	struct fake *f = *state;
	void *buf;

	assert_int_equal(mrc_buf_alloc(f->client, FAKE_SEND_BYTES + 1, &buf), -EMSGSIZE);
	assert_int_equal(mrc_buf_alloc(f->client, FAKE_SEND_BYTES, &buf), 0);
	mrc_buf_free(f->client, NULL);
	assert_string_equal(mrc_last_error(f->client), "");
	mrc_buf_free(f->client, (char *)buf + 64);
	assert_non_null(strstr(mrc_last_error(f->client), "no buffer"));
	mrc_buf_free(f->client, buf);
	assert_int_equal(mrc_buf_alloc(f->client, FAKE_SEND_BYTES, &buf), 0);
}

static void texts_cover_all_statuses_and_levels(void **state)
{
	for (int status = MRC_STATUS_DRAINING; status <= 0; status++) {
		assert_string_not_equal(mrc_status_name(status), "?");
		assert_true(strlen(mrc_status_text(status)) > 3);
	}
	assert_string_equal(mrc_status_name(MRC_STATUS_PEER_DIED), "PEER_DIED");
	assert_string_equal(mrc_status_name(1), "?");
	assert_string_equal(mrc_level_name(MRC_LEVEL_COMMITTED), "committed");
	assert_string_equal(mrc_level_name((enum mrc_level)9), "?");
	assert_non_null(strstr(mrc_error_text(-ECONNRESET), "daemon has gone"));
	assert_non_null(mrc_error_text(-EIO));
	assert_non_null(mrc_error_text(-99999));
	assert_non_null(mrc_error_text(5));
}

#define FRESH(test)    cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)
#define ATTACHED(test) cmocka_unit_test_setup_teardown(test, fake_setup_attached, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(attach_to_a_bad_daemon_fails_with_a_text),
		FRESH(attach_without_a_daemon_says_where_it_looked),
		ATTACHED(attach_tells_its_name_and_learns_the_hosts),
		ATTACHED(names_that_are_none_are_refused_before_the_daemon_sees_them),
		ATTACHED(channel_carries_messages_both_ways),
		ATTACHED(send_that_crosses_with_the_end_is_answered_before_it),
		ATTACHED(service_takes_and_refuses_channels),
		ATTACHED(request_that_failed_says_why_and_leaves_nothing),
		ATTACHED(send_with_bad_arguments_changes_nothing),
		ATTACHED(send_table_and_ring_have_bounds),
		ATTACHED(daemon_is_rung_when_it_sleeps_and_only_then),
		ATTACHED(message_gets_one_verdict),
		ATTACHED(batch_that_cannot_be_says_nothing),
		ATTACHED(text_of_a_rejection_comes_with_the_answer),
		ATTACHED(moments_are_told_to_who_asks),
		ATTACHED(releases_wait_for_room_and_keep_their_order),
		ATTACHED(gap_is_an_event_and_a_blocking_receive_passes_it),
		ATTACHED(channel_freed_in_mid_life_is_finished_by_the_library),
		ATTACHED(channel_freed_while_connecting_is_closed_when_it_comes_up),
		ATTACHED(commit_before_detach_reaches_the_ring),
		ATTACHED(buffer_that_is_none_is_left_alone),
		cmocka_unit_test(texts_cover_all_statuses_and_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
