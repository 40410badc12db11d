/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lib_fake - a daemon for libmrc's tests, played by the test itself
 *
 * It listens in a directory of its own, does the attach handshake in a thread
 * (mrc_attach() waits for it), and is then moved by hand from the test: take a
 * submission, post a completion, die. What the handshake answers can be bent.
 *
 * Threads: the fake's own positions may be used by one thread at a time.
 */
#ifndef TEST_LIB_FAKE_H
#define TEST_LIB_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc/client.h"
#include "mrc/ring_abi.h"

#define FAKE_SEND_BYTES    (256U * 1024U)
#define FAKE_LANDING_BYTES (256U * 1024U)
#define FAKE_SQ_OFFSET     4096U
#define FAKE_LONG_NS       (20 * 1000000000LL) /* nothing here takes so long, unless it hangs */

struct fake {
	char dir[32];
	char path[64];
	int listen_fd;
	int conn_fd;
	int fds[MRC_ABI_FD_COUNT];
	pthread_t thread;
	struct mrc_abi_attach attach; /* what the client sent */
	struct mrc_client *client;    /* of a test that has one */

	/* Set before fake_attach(). */
	uint32_t sq_entry_count;
	uint32_t cq_entry_count;
	uint32_t sends_max;
	uint32_t channels_max;
	bool is_unsealed;
	bool is_mute; /* closes without a welcome */
	int fds_less; /* pass so many fewer */
	void (*bend)(struct mrc_abi_welcome *welcome, struct mrc_ring_shm *shm);

	struct mrc_ring_shm *shm;
	struct mrc_sqe *sqes;
	struct mrc_cqe *cqes;
	char *sq_texts, *cq_texts;
	uint8_t *send_arena;
	uint8_t *landing_arena;
	uint64_t ring_bytes;
	uint32_t sq_head;
	uint32_t cq_tail;
};

static inline int fake_memfd(const char *name, uint64_t bytes, bool is_sealed)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (is_sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
				 0);
	return fd;
}

static inline void *fake_map(int fd, uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static inline void fake_init(struct fake *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memset(f, 0, sizeof(*f));
	f->conn_fd = -1;
	f->sq_entry_count = 64;
	f->cq_entry_count = 64;
	f->sends_max = 32;
	f->channels_max = 8;
	strcpy(f->dir, "/tmp/mrc-fake-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/mrcd.sock", f->dir);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(f->listen_fd >= 0);
	memcpy(addr.sun_path, f->path, strlen(f->path) + 1);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f->listen_fd, 4), 0);
}

/* A new state of the daemon: rings, arenas, bells. */
static inline void fake_make(struct fake *f)
{
	uint32_t cq_offset = FAKE_SQ_OFFSET + f->sq_entry_count * 64;
	uint32_t sq_texts = cq_offset + f->cq_entry_count * 64;
	uint32_t cq_texts = sq_texts + f->sq_entry_count * 64;

	f->ring_bytes = cq_texts + (uint64_t)f->cq_entry_count * 64;
	f->fds[MRC_ABI_FD_RINGS] = fake_memfd("rings", f->ring_bytes, !f->is_unsealed);
	f->fds[MRC_ABI_FD_SEND_ARENA] = fake_memfd("send", FAKE_SEND_BYTES, true);
	f->fds[MRC_ABI_FD_LANDING_ARENA] = fake_memfd("landing", FAKE_LANDING_BYTES, true);
	f->fds[MRC_ABI_FD_DAEMON_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->fds[MRC_ABI_FD_CLIENT_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->shm = fake_map(f->fds[MRC_ABI_FD_RINGS], f->ring_bytes);
	f->send_arena = fake_map(f->fds[MRC_ABI_FD_SEND_ARENA], FAKE_SEND_BYTES);
	f->landing_arena = fake_map(f->fds[MRC_ABI_FD_LANDING_ARENA], FAKE_LANDING_BYTES);
	f->sqes = (struct mrc_sqe *)(void *)((char *)f->shm + FAKE_SQ_OFFSET);
	f->cqes = (struct mrc_cqe *)(void *)((char *)f->shm + cq_offset);
	f->sq_texts = (char *)f->shm + sq_texts;
	f->cq_texts = (char *)f->shm + cq_texts;
	f->sq_head = 0;
	f->cq_tail = 0;
	*f->shm = (struct mrc_ring_shm){
		.magic = MRC_ABI_MAGIC,
		.version = MRC_ABI_VERSION,
		.generation = 1,
		.sq_entry_count = f->sq_entry_count,
		.cq_entry_count = f->cq_entry_count,
		.sq_offset = FAKE_SQ_OFFSET,
		.cq_offset = cq_offset,
		.sq_text_offset = sq_texts,
		.cq_text_offset = cq_texts,
		.state = MRC_RING_STATE_RUNNING,
	};
}

static inline void *fake_handshake(void *context)
{
	struct fake *f = context;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(f->fds))];
	} control;
	struct mrc_abi_welcome welcome = {
		.magic = MRC_ABI_MAGIC,
		.version = MRC_ABI_VERSION,
		.generation = 1,
		.send_arena_bytes = FAKE_SEND_BYTES,
		.landing_arena_bytes = FAKE_LANDING_BYTES,
		.ring_bytes = f->ring_bytes,
		.message_bytes_max = FAKE_LANDING_BYTES,
		.sq_entry_count = f->sq_entry_count,
		.cq_entry_count = f->cq_entry_count,
		.channels_max = f->channels_max,
		.sends_max = f->sends_max,
		.host = "here",
	};
	struct iovec iov = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	f->conn_fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (f->conn_fd < 0 ||
	    recv(f->conn_fd, &f->attach, sizeof(f->attach), 0) != sizeof(f->attach))
		return NULL;
	if (f->is_mute) {
		close(f->conn_fd);
		f->conn_fd = -1;
		return NULL;
	}
	if (f->bend)
		f->bend(&welcome, f->shm);
	if (welcome.status == 0) {
		size_t bytes = sizeof(int) * (size_t)(MRC_ABI_FD_COUNT - f->fds_less);
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), f->fds, bytes);
	}
	sendmsg(f->conn_fd, &msg, MSG_NOSIGNAL);
	return NULL;
}

static inline int fake_attach(struct fake *f, struct mrc_client **client_out)
{
	struct mrc_attach_options options = {.socket_path = f->path, .name = "test"};
	int r;

	fake_make(f);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_handshake, f), 0);
	r = mrc_attach(&options, client_out);
	pthread_join(f->thread, NULL);
	return r;
}

/* The daemon's process ends: its descriptors close, its memory stays with the client. */
static inline void fake_die(struct fake *f)
{
	if (f->conn_fd >= 0)
		close(f->conn_fd);
	f->conn_fd = -1;
}

/* Forget the memory and bells of one attachment. */
static inline void fake_unmake(struct fake *f)
{
	fake_die(f);
	if (!f->shm)
		return;
	munmap(f->shm, f->ring_bytes);
	munmap(f->send_arena, FAKE_SEND_BYTES);
	munmap(f->landing_arena, FAKE_LANDING_BYTES);
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		close(f->fds[i]);
	f->shm = NULL;
}

static inline void fake_fini(struct fake *f)
{
	fake_unmake(f);
	close(f->listen_fd);
	unlink(f->path);
	rmdir(f->dir);
}

/* ---- for cmocka: a fresh daemon, or one with a client attached ---- */

static inline int fake_setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_init(f);
	*state = f;
	return 0;
}

static inline int fake_setup_attached(void **state)
{
	struct fake *f;

	fake_setup(state);
	f = *state;
	assert_int_equal(fake_attach(f, &f->client), 0);
	return 0;
}

static inline int fake_teardown(void **state)
{
	struct fake *f = *state;

	fake_die(f);
	mrc_detach(f->client);
	fake_fini(f);
	free(f);
	return 0;
}

static inline uint32_t fake_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* Publish a completion, as ring_abi.h says a producer does. */
static inline void fake_post(struct fake *f, struct mrc_cqe cqe)
{
	f->cqes[f->cq_tail & (f->cq_entry_count - 1)] = cqe;
	f->cq_tail++;
	/* Sequentially consistent in place of the fence, which the thread sanitizer does not know. */
	__atomic_exchange_n(&f->shm->cq_tail, f->cq_tail, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&f->shm->client_sleeping, 0, __ATOMIC_SEQ_CST))
		assert_int_equal(eventfd_write(f->fds[MRC_ABI_FD_CLIENT_BELL], 1), 0);
}

/* The same with a text, whose length the entry names. */
static inline void fake_post_text(struct fake *f, struct mrc_cqe cqe, const char *text)
{
	memcpy(f->cq_texts + (size_t)(f->cq_tail & (f->cq_entry_count - 1)) * 64, text,
	       cqe.text_len);
	fake_post(f, cqe);
}

/* The text of the submission that was taken last. */
static inline const char *fake_text(const struct fake *f)
{
	return f->sq_texts + (size_t)((f->sq_head - 1) & (f->sq_entry_count - 1)) * 64;
}

/* Take one submission; false: there is none. */
static inline bool fake_take(struct fake *f, struct mrc_sqe *sqe_out)
{
	if (fake_load(&f->shm->sq_tail) == f->sq_head)
		return false;
	*sqe_out = f->sqes[f->sq_head & (f->sq_entry_count - 1)];
	f->sq_head++;
	__atomic_store_n(&f->shm->sq_head, f->sq_head, __ATOMIC_RELEASE);
	return true;
}

/* Take one submission, which must be this. */
static inline struct mrc_sqe fake_expect(struct fake *f, uint8_t op)
{
	struct mrc_sqe sqe = {0};

	assert_true(fake_take(f, &sqe));
	assert_int_equal(sqe.op, op);
	return sqe;
}

static inline struct mrc_abi_request fake_request(struct fake *f, uint32_t op)
{
	struct mrc_abi_request request = {0};

	assert_int_equal(recv(f->conn_fd, &request, sizeof(request), 0), sizeof(request));
	assert_int_equal(request.op, op);
	return request;
}

static inline bool fake_is_rung(struct fake *f)
{
	eventfd_t count;

	return eventfd_read(f->fds[MRC_ABI_FD_DAEMON_BELL], &count) == 0;
}

/* Wait until the client has armed itself, which it does before sleeping. */
static inline void fake_wait_sleeping(struct fake *f)
{
	while (!fake_load(&f->shm->client_sleeping))
		usleep(100);
}

/* Take exactly one event, of this type. */
static inline struct mrc_event fake_event(struct mrc_client *client, enum mrc_event_type type)
{
	struct mrc_event event = {0};

	assert_int_equal(mrc_poll(client, &event, 1), 1);
	assert_int_equal(event.type, type);
	return event;
}

static inline struct mrc_channel *fake_channel(struct fake *f, struct mrc_client *client,
					       uint32_t id)
{
	struct mrc_abi_request request;
	struct mrc_channel *channel = NULL;
	struct mrc_event event;

	assert_int_equal(mrc_connect_start(client, "there/svc", 0, 7, &channel), 0);
	request = fake_request(f, MRC_ABI_REQ_CONNECT);
	assert_string_equal(request.target, "there/svc");
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CONNECTED,
				      .user_data = request.user_data,
				      .channel = id,
				      .len_bytes = 128 * 1024});
	event = fake_event(client, MRC_EVENT_CONNECTED);
	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.status, MRC_STATUS_OK);
	assert_int_equal(event.user, 7);
	return channel;
}

static inline struct mrc_listener *fake_listener(struct fake *f, struct mrc_client *client,
						 uint32_t id)
{
	struct mrc_abi_request request;
	struct mrc_listener *listener = NULL;
	struct mrc_event event;

	assert_int_equal(mrc_listen_start(client, "svc", 9, &listener), 0);
	request = fake_request(f, MRC_ABI_REQ_LISTEN);
	assert_string_equal(request.target, "svc");
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
				      .user_data = request.user_data,
				      .channel = id});
	event = fake_event(client, MRC_EVENT_LISTENING);
	assert_ptr_equal(event.listener, listener);
	assert_int_equal(event.status, MRC_STATUS_OK);
	assert_int_equal(event.user, 9);
	return listener;
}

static inline struct mrc_cqe fake_arrival(struct fake *f, uint32_t channel, uint64_t number,
					  uint64_t offset, const char *text)
{
	memcpy(f->landing_arena + offset, text, strlen(text));
	return (struct mrc_cqe){.type = MRC_CQE_ARRIVED,
				.channel = channel,
				.number = number,
				.offset = offset,
				.len_bytes = strlen(text)};
}

static inline struct mrc_cqe fake_sent(const struct mrc_sqe *sqe, uint64_t number, int status,
				       uint8_t level)
{
	return (struct mrc_cqe){.type = MRC_CQE_SENT,
				.channel = sqe->channel,
				.user_data = sqe->user_data,
				.number = number,
				.status = status,
				.level = level};
}

static inline bool fake_fd_is_readable(struct mrc_client *client)
{
	struct pollfd pfd = {.fd = mrc_client_fd(client), .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

#endif
