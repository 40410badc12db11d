/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmrc between a program that keeps to the rules and a daemon that does not: what it is told
 * when it attaches, the completion ring, the words of the ring page, the socket.
 *
 * Whatever comes, the program gets no event that cannot be: each send is answered once, each
 * thing is asked for and then answered, memory that is shown to it is there, and after DETACHED
 * nothing is open. All is one thread: the daemon answers the handshake when the library begins to
 * wait for that.
 */
#include "../unit/test_lib_fake.h"
#include "fuzz.h"
#include "mrc_client.h"

#define CHANNELS_MAX  16U
#define LISTENERS_MAX 4U
#define MSGS_MAX      32U
#define SENDS_MAX     256U
#define STEPS_MAX     400U

enum send_state { SEND_NONE, SEND_OPEN, SEND_ANSWERED, SEND_FORGOTTEN };

struct program {
	struct fuzz_input in;
	struct fake fake;
	struct mrc_client *client;
	struct mrc_channel *channels[CHANNELS_MAX];
	bool is_ended[CHANNELS_MAX]; /* CLOSED, or a CONNECTED that failed */
	struct mrc_listener *listeners[LISTENERS_MAX];
	struct mrc_msg *msgs[MSGS_MAX];
	uint8_t send_state[SENDS_MAX]; /* by user */
	uint8_t send_channel[SENDS_MAX];
	uint8_t send_level[SENDS_MAX];
	uint64_t number_next[CHANNELS_MAX]; /* of what was received, if ordered */
	uint32_t sends;
	uint32_t waits[CHANNELS_MAX]; /* mrc_send_wait() that timed out, by channel: open */
	void *buf;
	bool is_handshake_due;
	bool is_detached;
	/* What the daemon could answer. */
	uint64_t users[8]; /* of requests */
	struct mrc_sqe sqes[8];
	uint32_t user_count, sqe_count;
	uint32_t ids;        /* of channels and listeners */
	uint64_t number[16]; /* of the next arrival, by channel */
};

static struct program *program; /* the one that runs: some of what is called has no context */

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (program->is_handshake_due) {
		program->is_handshake_due = false;
		fake_handshake(&program->fake);
	}
	return __real_recvmsg(fd, msg, flags);
}

static int attach(struct program *p)
{
	struct mrc_attach_options options = {.socket_path = p->fake.path, .name = "fuzz"};
	int r;

	fake_make(&p->fake);
	p->is_handshake_due = true;
	r = mrc_attach(&options, &p->client);
	p->is_handshake_due = false;
	return r;
}

/* ---- the program ---- */

static int channel_index(const struct program *p, const struct mrc_channel *channel)
{
	for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
		if (p->channels[i] == channel)
			return (int)i;
	}
	return -1;
}

static bool channel_keep(struct program *p, struct mrc_channel *channel)
{
	int i = channel_index(p, NULL);

	if (i < 0)
		return false;
	p->channels[i] = channel;
	p->is_ended[i] = false;
	p->number_next[i] = 0;
	return true;
}

/* It is freed: its sends are never answered, its messages gone. */
static void channel_forget(struct program *p, int i)
{
	for (uint32_t m = 0; m < MSGS_MAX; m++) {
		if (p->msgs[m] && mrc_msg_channel(p->msgs[m]) == p->channels[i])
			p->msgs[m] = NULL;
	}
	for (uint32_t s = 0; s < p->sends; s++) {
		if (p->send_channel[s] == i && p->send_state[s] == SEND_OPEN)
			p->send_state[s] = SEND_FORGOTTEN;
	}
	p->waits[i] = 0;
	p->channels[i] = NULL;
}

static void channel_free(struct program *p, int i)
{
	struct mrc_channel *channel = p->channels[i];

	channel_forget(p, i);
	mrc_channel_free(channel);
}

static void msg_keep(struct program *p, struct mrc_msg *msg)
{
	const uint8_t *data = mrc_msg_data(msg);
	size_t len = mrc_msg_len_bytes(msg);
	int i = channel_index(p, mrc_msg_channel(msg));
	uint32_t sum = 0;

	if (i >= 0 && !mrc_channel_is_unordered(p->channels[i])) {
		FUZZ_CHECK(mrc_msg_number(msg) >= p->number_next[i]);
		p->number_next[i] = mrc_msg_number(msg) + 1;
	}
	/* Behind it something else may be mapped: reading tells nothing. */
	FUZZ_CHECK(len <= FAKE_LANDING_BYTES);
	FUZZ_CHECK(data >= (const uint8_t *)p->client->landing_arena.bytes &&
		   data + len <=
			   (const uint8_t *)p->client->landing_arena.bytes + FAKE_LANDING_BYTES);
	for (size_t at = 0; at < len; at++) /* there, and readable to its end */
		sum += data[at];
	FUZZ_CHECK(sum <= len * 255);
	for (uint32_t m = 0; m < MSGS_MAX; m++) {
		if (p->msgs[m] == NULL) {
			p->msgs[m] = msg;
			return;
		}
	}
	mrc_msg_release(msg);
}

static void event_take(struct program *p, const struct mrc_event *event)
{
	int i = event->channel ? channel_index(p, event->channel) : -1;

	FUZZ_CHECK(!p->is_detached);
	FUZZ_CHECK(event->status <= 0 && event->level <= MRC_LEVEL_COMMITTED);
	switch (event->type) {
	case MRC_EVENT_LISTENING:
		FUZZ_CHECK(event->listener != NULL);
		break;
	case MRC_EVENT_INCOMING:
		FUZZ_CHECK(event->listener != NULL && event->channel != NULL && i < 0);
		if (!channel_keep(p, event->channel))
			mrc_refuse_incoming(event->channel, 1);
		break;
	case MRC_EVENT_CONNECTED:
		FUZZ_CHECK(i >= 0 && !p->is_ended[i]);
		p->is_ended[i] = event->status != MRC_STATUS_OK;
		break;
	case MRC_EVENT_SENT:
		FUZZ_CHECK(i >= 0);
		if (p->buf && event->user == (uintptr_t)p->buf) { /* of an mrc_send_wait() */
			FUZZ_CHECK(p->waits[i] > 0);
			p->waits[i]--;
			break;
		}
		FUZZ_CHECK(event->user < p->sends && p->send_state[event->user] == SEND_OPEN);
		FUZZ_CHECK(p->send_channel[event->user] == i);
		FUZZ_CHECK(event->status != MRC_STATUS_OK ||
			   (event->level >= MRC_LEVEL_PLACED &&
			    event->level >= p->send_level[event->user]));
		p->send_state[event->user] = SEND_ANSWERED;
		break;
	case MRC_EVENT_RECEIVED:
		FUZZ_CHECK(i >= 0 && event->msg != NULL);
		FUZZ_CHECK(mrc_msg_channel(event->msg) == event->channel);
		msg_keep(p, event->msg);
		break;
	case MRC_EVENT_CLOSED:
		FUZZ_CHECK(i >= 0 && !p->is_ended[i]);
		p->is_ended[i] = true;
		break;
	case MRC_EVENT_GAP:
		FUZZ_CHECK(i >= 0);
		break;
	case MRC_EVENT_DETACHED:
		p->is_detached = true;
		for (uint32_t s = 0; s < p->sends; s++)
			FUZZ_CHECK(p->send_state[s] != SEND_OPEN);
		for (uint32_t c = 0; c < CHANNELS_MAX; c++)
			FUZZ_CHECK(p->waits[c] == 0);
		break;
	case MRC_EVENT_DRAIN:
		FUZZ_CHECK(event->status == MRC_STATUS_DRAINING || event->status == MRC_STATUS_OK);
		break;
	default:
		FUZZ_CHECK(!"an event of no type");
	}
}

static void poll_all(struct program *p, int events_max)
{
	struct mrc_event events[8];
	int count = mrc_poll(p->client, events, events_max);

	FUZZ_CHECK(count >= 0 || (count == -ECONNRESET && p->is_detached));
	FUZZ_CHECK(count <= events_max);
	for (int i = 0; i < count; i++)
		event_take(p, &events[i]);
}

static void send_step(struct program *p, int i)
{
	static const size_t lens[] = {0, 1, 64, 4096, 1 << 20};
	size_t len = lens[fuzz_below(&p->in, sizeof(lens) / sizeof(lens[0]))];
	enum mrc_level level = (enum mrc_level)fuzz_below(&p->in, 5);
	int r;

	if (p->sends == SENDS_MAX)
		return;
	if (p->buf == NULL && mrc_buf_alloc(p->client, 8192, &p->buf) != 0)
		p->buf = NULL;
	r = mrc_send(p->channels[i], len ? p->buf : NULL, len, level, 0, p->sends);
	if (r != 0)
		return;
	FUZZ_CHECK(mrc_channel_sends_outstanding(p->channels[i]) > 0);
	p->send_state[p->sends] = SEND_OPEN;
	p->send_channel[p->sends] = (uint8_t)i;
	p->send_level[p->sends] = (uint8_t)level;
	p->sends++;
}

/* What the library counts is what the program waits for. */
static void outstanding_check(const struct program *p, int i)
{
	uint32_t open = p->waits[i];

	for (uint32_t s = 0; s < p->sends; s++)
		open += p->send_channel[s] == i && p->send_state[s] == SEND_OPEN;
	FUZZ_CHECK(mrc_channel_sends_outstanding(p->channels[i]) == open);
}

/* Timed out, as nobody answers meanwhile, unless what it waits for is there already. */
static void send_wait_step(struct program *p, int i)
{
	struct mrc_event event;
	uint32_t before = mrc_channel_sends_outstanding(p->channels[i]);
	int r;

	if (p->buf == NULL && mrc_buf_alloc(p->client, 8192, &p->buf) != 0)
		p->buf = NULL;
	if (p->buf == NULL)
		return;
	r = mrc_send_wait(p->channels[i], p->buf, fuzz_u8(&p->in), MRC_LEVEL_VISIBLE, 0, &event);
	if (r == 0)
		FUZZ_CHECK(event.type == MRC_EVENT_SENT && event.channel == p->channels[i]);
	else
		p->waits[i] += mrc_channel_sends_outstanding(p->channels[i]) > before;
}

/* Calls that wait, with no time to. */
static void blocking_step(struct program *p)
{
	struct mrc_listener **listener = &p->listeners[fuzz_below(&p->in, LISTENERS_MAX)];
	struct mrc_channel *channel = NULL;
	int status = 1;
	int r;

	if (fuzz_flip(&p->in)) {
		r = mrc_connect(p->client, "there/svc", fuzz_flip(&p->in), 0, &channel, &status);
		FUZZ_CHECK((r == 0 && status == MRC_STATUS_OK) == (channel != NULL));
		if (channel && !channel_keep(p, channel))
			mrc_channel_free(channel);
	} else if (*listener == NULL) {
		r = mrc_listen(p->client, "svc3", 0, listener, &status);
		FUZZ_CHECK((r == 0 && status == MRC_STATUS_OK) == (*listener != NULL));
	}
}

static void channel_look(const struct program *p, struct mrc_channel *channel)
{
	int here;

	FUZZ_CHECK(mrc_channel_client(channel) == p->client);
	mrc_channel_set_context(channel, &here);
	FUZZ_CHECK(mrc_channel_context(channel) == &here);
	mrc_channel_is_unordered(channel);
	mrc_channel_message_bytes_max(channel);
}

static void channel_step(struct program *p, uint32_t what, int i)
{
	struct mrc_channel *channel = p->channels[i];
	struct mrc_msg *msg = NULL;
	int status;

	if (channel == NULL)
		return;
	outstanding_check(p, i);
	switch (what) {
	case 0:
		mrc_accept_incoming(channel);
		break;
	case 1:
		if (mrc_refuse_incoming(channel, 7) == 0)
			channel_forget(p, i);
		break;
	case 2:
	case 3:
	case 4:
		send_step(p, i);
		break;
	case 5:
		mrc_close(channel);
		break;
	case 6:
		channel_free(p, i);
		break;
	case 7:
		if (mrc_recv(channel, 0, &msg) == 0)
			msg_keep(p, msg);
		break;
	case 8:
		send_wait_step(p, i);
		break;
	case 9:
		channel_look(p, channel);
		break;
	default: {
		/* It frees the channel when it is over, or not. What was sent is not reported then. */
		int r = mrc_close_wait(channel, 0, &status);

		if (r == 0 || r == -ECONNRESET)
			channel_forget(p, i);
	} break;
	}
}

static void msg_step(struct program *p)
{
	uint32_t i = fuzz_below(&p->in, MSGS_MAX);

	for (uint32_t tries = 0; tries < MSGS_MAX && p->msgs[i] == NULL; tries++)
		i = (i + 1) % MSGS_MAX;
	if (p->msgs[i] == NULL)
		return;
	switch (fuzz_below(&p->in, 4)) {
	case 0:
		mrc_msg_commit(p->msgs[i]);
		break;
	case 1:
		mrc_msg_reject(p->msgs[i], 3, fuzz_flip(&p->in) ? "no" : NULL);
		break;
	default:
		mrc_msg_release(p->msgs[i]);
		p->msgs[i] = NULL;
		break;
	}
}

static void program_step(struct program *p)
{
	uint32_t what = fuzz_below(&p->in, 14);
	struct mrc_listener **listener = &p->listeners[fuzz_below(&p->in, LISTENERS_MAX)];
	struct mrc_channel *channel;
	int at; /* read in turn: compilers differ in which argument they read first */

	switch (what) {
	case 0:
	case 1:
		poll_all(p, 8);
		break;
	case 2:
		poll_all(p, 1);
		break;
	case 3:
		if (mrc_connect_start(p->client, "there/svc", fuzz_flip(&p->in), 1, &channel) ==
			    0 &&
		    !channel_keep(p, channel))
			mrc_channel_free(channel);
		break;
	case 4:
		if (*listener == NULL && mrc_listen_start(p->client, "svc", 2, listener) != 0)
			*listener = NULL;
		break;
	case 5:
		if (*listener == NULL)
			break;
		if (fuzz_flip(&p->in)) {
			mrc_listener_close(*listener);
			*listener = NULL;
		} else if (mrc_accept(*listener, 0, &channel) == 0 && !channel_keep(p, channel)) {
			mrc_channel_free(channel);
		}
		break;
	case 6:
		mrc_wait(p->client, 0);
		break;
	case 12:
		blocking_step(p);
		break;
	case 7:
	case 8:
		msg_step(p);
		break;
	default:
		at = (int)fuzz_below(&p->in, CHANNELS_MAX);
		channel_step(p, fuzz_below(&p->in, 11), at);
		break;
	}
}

/* ---- the daemon ---- */

/* Called in the handshake. */
static void bend(struct mrc_abi_welcome *welcome, struct mrc_ring_shm *shm)
{
	struct fuzz_input *in = &program->in;

	for (uint32_t n = fuzz_below(in, 4); n; n--) {
		switch (fuzz_below(in, 20)) {
		case 0:
			welcome->magic ^= fuzz_u8(in);
			break;
		case 1:
			welcome->version = fuzz_u8(in);
			break;
		case 2:
			welcome->status = -(int32_t)fuzz_u8(in);
			memset(welcome->text, 'x', sizeof(welcome->text));
			break;
		case 3:
			welcome->send_arena_bytes =
				FUZZ_NEAR(in, FAKE_SEND_BYTES, 0, UINT64_MAX, 4096);
			break;
		case 4:
			welcome->landing_arena_bytes =
				FUZZ_NEAR(in, FAKE_LANDING_BYTES, 0, UINT64_MAX, 4096);
			break;
		case 5:
			welcome->ring_bytes =
				FUZZ_NEAR(in, welcome->ring_bytes, 0, 4096, UINT64_MAX);
			break;
		case 6:
			welcome->message_bytes_max = FUZZ_NEAR(in, 0, UINT64_MAX, 1 << 20);
			break;
		case 7:
			welcome->sq_entry_count = shm->sq_entry_count =
				(uint32_t)FUZZ_NEAR(in, 64, 0, 1, 128, 1U << 31);
			break;
		case 8:
			welcome->cq_entry_count = shm->cq_entry_count =
				(uint32_t)FUZZ_NEAR(in, 64, 0, 1, 128, 1U << 31);
			break;
		case 9:
			welcome->channels_max = (uint32_t)FUZZ_NEAR(in, 0, 1, UINT32_MAX, 65536);
			break;
		case 10:
			welcome->sends_max = (uint32_t)FUZZ_NEAR(in, 0, 1, UINT32_MAX, 65536);
			break;
		case 11:
			memset(welcome->host, 'h', sizeof(welcome->host));
			break;
		case 12:
			shm->magic ^= fuzz_u8(in);
			break;
		case 13:
			shm->version = fuzz_u8(in);
			break;
		case 14:
			shm->sq_offset = (uint32_t)FUZZ_NEAR(in, shm->sq_offset, 0, shm->cq_offset,
							     UINT32_MAX);
			break;
		case 15:
			shm->cq_offset =
				(uint32_t)FUZZ_NEAR(in, shm->cq_offset, 0, 4096, UINT32_MAX);
			break;
		case 16:
			shm->sq_text_offset = (uint32_t)FUZZ_NEAR(in, shm->sq_text_offset, 0,
								  shm->cq_offset, UINT32_MAX);
			break;
		case 17:
			shm->cq_text_offset =
				(uint32_t)FUZZ_NEAR(in, shm->cq_text_offset, 0, 4096, UINT32_MAX);
			break;
		case 18:
			shm->state = fuzz_u8(in);
			break;
		default:
			shm->generation ^= fuzz_u8(in);
			break;
		}
	}
}

/* Take what the program has asked, to be able to answer it. */
static void daemon_takes(struct program *p)
{
	struct mrc_abi_request request;
	struct mrc_sqe sqe;

	while (p->fake.conn_fd >= 0 &&
	       recv(p->fake.conn_fd, &request, sizeof(request), MSG_DONTWAIT) == sizeof(request)) {
		FUZZ_CHECK(memchr(request.target, 0, sizeof(request.target)) != NULL);
		p->users[p->user_count++ % 8] = request.user_data;
	}
	/* Bounded: the ring page may say anything by now. */
	for (uint32_t i = 0; i < p->fake.sq_entry_count && fake_take(&p->fake, &sqe); i++) {
		FUZZ_CHECK(sqe.op <= MRC_SQE_UNLISTEN);
		if (sqe.op == MRC_SQE_SEND)
			p->sqes[p->sqe_count++ % 8] = sqe;
	}
}

static struct mrc_cqe cqe_draft(struct program *p)
{
	struct mrc_cqe cqe = {.type = (uint8_t)(1 + fuzz_below(&p->in, MRC_CQE_UNLISTENED)),
			      .channel = fuzz_below(&p->in, 8)};
	const struct mrc_sqe *sqe = &p->sqes[fuzz_below(&p->in, 8)];
	uint64_t user = p->users[fuzz_below(&p->in, 8)];
	bool is_good = !fuzz_flip(&p->in);

	switch (cqe.type) {
	case MRC_CQE_LISTENING:
		cqe.user_data = user;
		cqe.status = is_good ? 0 : MRC_STATUS_IN_USE;
		cqe.channel = 1;
		break;
	case MRC_CQE_INCOMING:
		cqe.number = 1;
		cqe.channel = p->ids++ % 8;
		break;
	case MRC_CQE_CONNECTED:
		cqe.user_data = is_good ? user : 0;
		if (fuzz_flip(&p->in))
			cqe.channel = p->ids++ % 8;
		cqe.len_bytes = 65536;
		cqe.status = fuzz_below(&p->in, 4) ? 0 : MRC_STATUS_NO_SERVICE;
		break;
	case MRC_CQE_SENT:
		cqe.channel = sqe->channel;
		cqe.user_data = sqe->user_data;
		cqe.level = sqe->level;
		cqe.status = is_good ? 0 : MRC_STATUS_CLOSED;
		if (!is_good && fuzz_flip(&p->in)) {
			cqe.status = MRC_STATUS_REJECTED;
			cqe.text_len = (uint32_t)FUZZ_NEAR(&p->in, MRC_REASON_BYTES_MAX, 0, 7);
		}
		break;
	case MRC_CQE_ARRIVED:
		cqe.number = p->number[cqe.channel]++;
		cqe.offset = fuzz_u8(&p->in) * 64U;
		cqe.len_bytes = fuzz_u8(&p->in);
		cqe.flags = (uint16_t)(fuzz_below(&p->in, 2) |
				       (fuzz_below(&p->in, 4) ? 0 : MRC_CQE_FLAG_TRACED));
		break;
	case MRC_CQE_GAP:
		cqe.number = p->number[cqe.channel]++;
		break;
	case MRC_CQE_DRAIN:
		cqe.status = is_good ? MRC_STATUS_DRAINING : MRC_STATUS_OK;
		break;
	case MRC_CQE_UNLISTENED:
		cqe.channel = 1;
		cqe.status = MRC_STATUS_NOT_ALLOWED;
		break;
	default:
		cqe.status = is_good ? 0 : MRC_STATUS_PEER_DIED;
		break;
	}
	return cqe;
}

static void cqe_bend(struct program *p, struct mrc_cqe *cqe)
{
	struct fuzz_input *in = &p->in;

	switch (fuzz_below(in, 10)) {
	case 0:
		cqe->type = fuzz_u8(in);
		break;
	case 1:
		cqe->level = fuzz_u8(in);
		break;
	case 2:
		cqe->flags = (uint16_t)fuzz_uint(in, 2);
		break;
	case 3:
		cqe->channel = (uint32_t)FUZZ_NEAR(in, cqe->channel, 0, UINT32_MAX);
		break;
	case 4:
		cqe->user_data = FUZZ_NEAR(in, cqe->user_data, 0, UINT64_MAX);
		break;
	case 5:
		cqe->number = FUZZ_NEAR(in, cqe->number, 0, UINT64_MAX);
		break;
	case 6:
		cqe->offset = FUZZ_NEAR(in, cqe->offset, FAKE_LANDING_BYTES,
					FAKE_LANDING_BYTES - cqe->len_bytes, UINT64_MAX);
		break;
	case 7:
		cqe->len_bytes = FUZZ_NEAR(in, cqe->len_bytes, FAKE_LANDING_BYTES,
					   FAKE_LANDING_BYTES - cqe->offset, UINT64_MAX);
		break;
	case 8:
		cqe->status = (int32_t)fuzz_uint(in, 1) - 128;
		break;
	default:
		cqe->code = (uint32_t)fuzz_uint(in, 4);
		break;
	}
}

static void daemon_step(struct program *p)
{
	struct fake *f = &p->fake;
	uint32_t what = fuzz_below(&p->in, 16);
	struct mrc_cqe cqe;
	uint32_t word;

	switch (what) {
	case 0:
		word = (uint32_t)FUZZ_NEAR(&p->in, f->cq_tail, f->cq_tail + f->cq_entry_count, 0);
		__atomic_store_n(&f->shm->cq_tail, word, __ATOMIC_RELEASE);
		break;
	case 1:
		word = (uint32_t)FUZZ_NEAR(&p->in, f->sq_head, f->shm->sq_tail, 0);
		__atomic_store_n(&f->shm->sq_head, word, __ATOMIC_RELEASE);
		break;
	case 2:
		word = fuzz_below(&p->in, 5);
		__atomic_store_n(&f->shm->state, word, __ATOMIC_RELEASE);
		break;
	case 3:
		/* What is set once may be set again, and what the client writes overwritten. */
		word = fuzz_u8(&p->in) % (sizeof(*f->shm) / 4);
		((uint32_t *)(void *)f->shm)[word] = (uint32_t)fuzz_uint(&p->in, 4);
		break;
	case 4:
		if (fuzz_flip(&p->in))
			fake_die(f);
		else if (f->conn_fd >= 0 && fuzz_flip(&p->in))
			(void)!send(f->conn_fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 5:
		(void)!eventfd_write(f->fds[MRC_ABI_FD_CLIENT_BELL], 1 + fuzz_u8(&p->in));
		break;
	case 6:
	case 7:
	case 8:
		daemon_takes(p);
		break;
	default:
		cqe = cqe_draft(p);
		if (fuzz_below(&p->in, 6) == 0)
			cqe_bend(p, &cqe);
		fake_post(f, cqe);
		break;
	}
}

/* ---- ---- */

static void begin(struct program *p)
{
	struct mrc_channel *channel;

	mrc_listen_start(p->client, "svc", 2, &p->listeners[0]);
	daemon_takes(p);
	fake_post(&p->fake, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
					     .user_data = p->users[0],
					     .channel = 1});
	if (mrc_connect_start(p->client, "there/svc", 0, 1, &channel) == 0)
		channel_keep(p, channel);
	daemon_takes(p);
	fake_post(&p->fake, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
					     .user_data = p->users[1],
					     .channel = 1,
					     .len_bytes = 65536});
	poll_all(p, 8);
	p->ids = 2;
}

static void run(struct program *p)
{
	for (uint32_t i = 0; i < STEPS_MAX && !fuzz_is_over(&p->in); i++) {
		if (fuzz_below(&p->in, 5) < 3)
			daemon_step(p);
		else
			program_step(p);
	}
	/* The daemon goes, and everything is answered. */
	fake_die(&p->fake);
	for (uint32_t i = 0; i < 10000 && !p->is_detached; i++) {
		mrc_wait(p->client, FAKE_LONG_NS);
		poll_all(p, 8);
	}
	FUZZ_CHECK(p->is_detached);
}

static void fake_end(void)
{
	fake_fini(&program->fake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct program only;
	struct program *p = &only;
	struct fake fake = p->fake;
	uint8_t flags;

	if (program == NULL) { /* its socket serves all inputs */
		fake_init(&fake);
		program = p;
		atexit(fake_end);
	}
	memset(p, 0, sizeof(*p));
	p->fake = fake;
	p->in = (struct fuzz_input){.at = data, .end = data + len};
	flags = fuzz_u8(&p->in);
	p->fake.sq_entry_count = 4U << (flags >> 2 & 3);
	p->fake.cq_entry_count = 8U << (flags >> 4 & 3);
	p->fake.sends_max = 4;
	p->fake.channels_max = 6;
	p->fake.bend = flags & 1 ? bend : NULL;
	p->fake.is_mute = flags == 0xff;
	p->fake.is_unsealed = flags == 0xfd;
	p->fake.fds_less = flags == 0xfb ? 1 : 0;
	if (attach(p) == 0) {
		if (flags & 2)
			begin(p);
		run(p);
		if (p->buf)
			mrc_buf_free(p->client, p->buf);
		mrc_detach(p->client);
	} else {
		FUZZ_CHECK(mrc_last_error(NULL)[0] != 0);
	}
	fake_unmake(&p->fake);
	return 0;
}
