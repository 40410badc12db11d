/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rogue - a client that speaks the ring ABI itself and breaks its rules
 *
 *	rogue SOCKET attach             attach packets of every wrong kind; none may be taken
 *	rogue SOCKET requests TARGET    requests that make no sense, on the socket
 *	rogue SOCKET entries TARGET     a channel, then garbage in submission entries; may end detached
 *	rogue SOCKET tails TARGET       a channel, then head and tail positions that cannot be
 *	rogue SOCKET scribble TARGET    changes its buffers while they are sent, for ever
 *	rogue SOCKET punch TARGET       takes memory out of its arenas while it is sent
 *	rogue SOCKET flood TARGET       well-behaved: sends as fast as it is let, for ever
 *	rogue SOCKET deaf SERVICE       takes channels and messages, and never reads a completion again
 *	rogue SOCKET hold SERVICE       takes messages and never gives their memory back
 *
 * Exit: 0 as it should be, 1 not, 3 nobody to attach to.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <mrc/client.h>
#include <mrc/ring_abi.h>

#define PATIENCE_MS   20000
#define MESSAGE_BYTES (256U << 10)
#define FLOOD_DEPTH   16U

/* One attachment; everything is the caller's process's, nothing is freed before exit. */
struct rogue {
	int fd;
	int fds[MRC_ABI_FD_COUNT];
	struct mrc_abi_welcome welcome;
	struct mrc_ring_shm *shm;
	struct mrc_sqe *sq;
	struct mrc_cqe *cq;
	uint8_t *arena;
	uint32_t sq_tail, cq_head;
	uint64_t answered; /* SENT completions */
};

static const char *socket_path;
static uint64_t rng_state = 0x5eed;

static void fail(const char *what)
{
	fprintf(stderr, "rogue: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static int dial(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		fprintf(stderr, "rogue: %s: %s\n", socket_path, strerror(errno));
		exit(3);
	}
	return fd;
}

static bool is_gone(int fd, int patience_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint8_t junk[1024];

	while (poll(&p, 1, patience_ms) > 0) {
		if (recv(fd, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

static void attach(struct rogue *r)
{
	struct mrc_abi_attach hello = {.magic = MRC_ABI_MAGIC,
				       .version_min = 1,
				       .version_max = MRC_ABI_VERSION,
				       .name = "rogue"};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(r->fds))];
	} control;
	struct iovec iov = {.iov_base = &r->welcome, .iov_len = sizeof(r->welcome)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	uint8_t *rings;

	memset(r, 0, sizeof(*r));
	r->fd = dial();
	if (send(r->fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
	    recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(r->welcome))
		fail("attach");
	c = CMSG_FIRSTHDR(&msg);
	if (r->welcome.status != 0 || !c || c->cmsg_len != CMSG_LEN(sizeof(r->fds)))
		fail(r->welcome.text);
	memcpy(r->fds, CMSG_DATA(c), sizeof(r->fds));
	rings = mmap(NULL, r->welcome.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		     r->fds[MRC_ABI_FD_RINGS], 0);
	r->arena = mmap(NULL, r->welcome.send_arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			r->fds[MRC_ABI_FD_SEND_ARENA], 0);
	if (rings == MAP_FAILED || r->arena == MAP_FAILED)
		fail("mmap");
	if (mmap(NULL, r->welcome.landing_arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		 r->fds[MRC_ABI_FD_LANDING_ARENA], 0) != MAP_FAILED) {
		errno = 0;
		fail("the landing arena can be mapped for writing");
	}
	r->shm = (struct mrc_ring_shm *)(void *)rings;
	r->sq = (struct mrc_sqe *)(void *)(rings + r->shm->sq_offset);
	r->cq = (struct mrc_cqe *)(void *)(rings + r->shm->cq_offset);
}

static void bell(struct rogue *r)
{
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (write(r->fds[MRC_ABI_FD_DAEMON_BELL], &one, sizeof(one)) < 0)
		return;
}

static void submit(struct rogue *r, const struct mrc_sqe *sqe)
{
	r->sq[r->sq_tail & (r->welcome.sq_entry_count - 1)] = *sqe;
	__atomic_store_n(&r->shm->sq_tail, ++r->sq_tail, __ATOMIC_RELEASE);
	bell(r);
}

/* False when the daemon has ended the attachment. */
static bool try_request(struct rogue *r, uint32_t op, const char *name)
{
	struct mrc_abi_request q = {.op = op};

	snprintf(q.target, sizeof(q.target), "%s", name);
	return send(r->fd, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q);
}

static void request(struct rogue *r, uint32_t op, const char *name)
{
	if (!try_request(r, op, name))
		fail("request");
}

/* Wait for the next completion; false when the daemon has ended the attachment or says nothing. */
static bool complete(struct rogue *r, struct mrc_cqe *cqe_out, int patience_ms)
{
	struct pollfd p[2] = {{.fd = r->fd, .events = POLLIN},
			      {.fd = r->fds[MRC_ABI_FD_CLIENT_BELL], .events = POLLIN}};
	uint64_t count;

	for (;;) {
		if (__atomic_load_n(&r->shm->cq_tail, __ATOMIC_ACQUIRE) != r->cq_head) {
			*cqe_out = r->cq[r->cq_head & (r->welcome.cq_entry_count - 1)];
			__atomic_store_n(&r->shm->cq_head, ++r->cq_head, __ATOMIC_RELEASE);
			if (cqe_out->flags & MRC_CQE_FLAG_TELL_VISIBLE)
				bell(r);
			return true;
		}
		__atomic_store_n(&r->shm->client_sleeping, 1, __ATOMIC_SEQ_CST);
		atomic_thread_fence(memory_order_seq_cst);
		if (__atomic_load_n(&r->shm->cq_tail, __ATOMIC_ACQUIRE) == r->cq_head) {
			if (poll(p, 2, patience_ms) <= 0 || p[0].revents)
				return false;
			if (read(p[1].fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
				fail("bell");
		}
		__atomic_store_n(&r->shm->client_sleeping, 0, __ATOMIC_SEQ_CST);
	}
}

static struct mrc_cqe complete_of(struct rogue *r, uint8_t type)
{
	struct mrc_cqe cqe;

	do {
		if (!complete(r, &cqe, PATIENCE_MS))
			fail("no completion");
	} while (cqe.type != type);
	if (cqe.status != 0) {
		fprintf(stderr, "rogue: completion type %u has status %d\n", type, cqe.status);
		exit(1);
	}
	return cqe;
}

static uint32_t open_channel(struct rogue *r, const char *target)
{
	attach(r);
	request(r, MRC_ABI_REQ_CONNECT, target);
	return complete_of(r, MRC_CQE_CONNECTED).channel;
}

/* ---- breaking rules ---- */

static int attach_wrongly(void)
{
	struct mrc_abi_attach good = {.magic = MRC_ABI_MAGIC,
				      .version_min = 1,
				      .version_max = MRC_ABI_VERSION};
	static const struct {
		const char *name;
		uint32_t magic, version_min, version_max;
		uint64_t send_arena_bytes, landing_arena_bytes;
		size_t len;
	} cases[] = {
		{"magic", 0, 1, 1, 0, 0, sizeof(good)},
		{"newer", MRC_ABI_MAGIC, 1000, 2000, 0, 0, sizeof(good)},
		{"backwards", MRC_ABI_MAGIC, 5, 1, 0, 0, sizeof(good)},
		{"huge send arena", MRC_ABI_MAGIC, 1, 1, UINT64_MAX, 0, sizeof(good)},
		{"huge landing arena", MRC_ABI_MAGIC, 1, 1, 0, UINT64_MAX - 4095, sizeof(good)},
		{"short", MRC_ABI_MAGIC, 1, 1, 0, 0, 7},
		{"shorter by one", MRC_ABI_MAGIC, 1, 1, 0, 0, sizeof(good) - 1},
	};
	struct mrc_abi_welcome welcome;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mrc_abi_attach hello = good;
		ssize_t n;
		int fd = dial();

		hello.magic = cases[i].magic;
		hello.version_min = cases[i].version_min;
		hello.version_max = cases[i].version_max;
		hello.send_arena_bytes = cases[i].send_arena_bytes;
		hello.landing_arena_bytes = cases[i].landing_arena_bytes;
		if (send(fd, &hello, cases[i].len, MSG_NOSIGNAL) < 0)
			fail(cases[i].name);
		n = recv(fd, &welcome, sizeof(welcome), 0);
		if (n == sizeof(welcome) && welcome.status == 0) {
			errno = 0;
			fail(cases[i].name);
		}
		if (!is_gone(fd, PATIENCE_MS)) {
			errno = 0;
			fail("refused, and yet not closed");
		}
		close(fd);
	}
	return 0;
}

static int requests_wrong(const char *target)
{
	struct mrc_abi_request q;
	struct rogue r;

	for (unsigned i = 0; i < 60; i++) {
		attach(&r);
		getrandom(&q, sizeof(q), 0);
		if (i % 3 == 0)
			q.op = MRC_ABI_REQ_CONNECT; /* a target without end */
		if (i % 3 == 1)
			q = (struct mrc_abi_request){.op = MRC_ABI_REQ_CONNECT, .flags = ~0U};
		if (i % 6 == 2)
			snprintf(q.target, sizeof(q.target), "%s", target);
		if (i % 6 == 5)
			q = (struct mrc_abi_request){.op = MRC_ABI_REQ_LISTEN, .target = "a/b/c//"};
		if (send(r.fd, &q, i % 7 == 6 ? 3 : sizeof(q), MSG_NOSIGNAL) < 0 && errno != EPIPE)
			fail("request");
		/* Whether it is answered with INVALID or ended: both are right, and it costs others nothing. */
		is_gone(r.fd, 20);
		close(r.fd);
	}
	return 0;
}

static int entries_wrong(const char *target)
{
	for (unsigned round = 0; round < 40; round++) {
		struct rogue r;
		uint32_t channel = open_channel(&r, target);
		struct mrc_cqe cqe;

		for (unsigned i = 0; i < 300 && !is_gone(r.fd, 0); i++) {
			struct mrc_sqe sqe;

			for (size_t w = 0; w < sizeof(sqe) / 8; w++)
				((uint64_t *)(void *)&sqe)[w] = rng();
			if (rng() % 2)
				sqe.op = (uint8_t)(rng() % 10);
			if (rng() % 2)
				sqe.channel = channel;
			if (rng() % 2)
				sqe.flags = 0;
			if (rng() % 2)
				sqe.level = (uint8_t)(rng() % 5);
			if (rng() % 3 == 0)
				sqe.offset = r.welcome.send_arena_bytes - rng() % 3;
			if (rng() % 3 == 0)
				sqe.len_bytes = rng() % 3 ? rng() % 4096 : UINT64_MAX - sqe.offset;
			submit(&r, &sqe);
			while (complete(&r, &cqe, 0))
				;
		}
		close(r.fd);
	}
	return 0;
}

static int tails_wrong(const char *target)
{
	static const uint32_t steps[] = {0x7fffffff, 0x80000000, 0xffffffff, 100000};

	for (size_t i = 0; i < 2 * sizeof(steps) / sizeof(steps[0]); i++) {
		uint32_t step = steps[i / 2];
		struct rogue r;

		open_channel(&r, target);
		if (i % 2)
			__atomic_store_n(&r.shm->cq_head, r.cq_head + step, __ATOMIC_RELEASE);
		else
			__atomic_store_n(&r.shm->sq_tail, r.sq_tail + step, __ATOMIC_RELEASE);
		bell(&r);
		/* A wrong cq_head harms only its owner, who sees no more completions: to be ended for it is
		 * the daemon's right, not its duty. */
		if (i % 2) {
			if (try_request(&r, MRC_ABI_REQ_CONNECT, target))
				is_gone(r.fd, 200);
		} else if (!is_gone(r.fd, PATIENCE_MS)) {
			errno = 0;
			fail("a sq_tail that cannot be is accepted");
		}
		close(r.fd);
	}
	return 0;
}

/* ---- sending, well or badly ---- */

static void send_one(struct rogue *r, uint32_t channel, uint64_t slot)
{
	struct mrc_sqe sqe = {.op = MRC_SQE_SEND,
			      .level = MRC_LEVEL_PLACED,
			      .channel = channel,
			      .user_data = slot,
			      .offset = slot * MESSAGE_BYTES,
			      .len_bytes = MESSAGE_BYTES};

	submit(r, &sqe);
}

enum behaviour { FLOOD, SCRIBBLE, PUNCH };

static int flood(const char *target, enum behaviour behaviour)
{
	struct rogue r;
	uint32_t channel = open_channel(&r, target);
	struct mrc_cqe cqe;

	for (uint64_t slot = 0; slot < FLOOD_DEPTH; slot++)
		send_one(&r, channel, slot);
	for (uint64_t count = 0;; count++) {
		uint64_t slot = rng() % FLOOD_DEPTH;

		if (behaviour == SCRIBBLE) {
			for (unsigned i = 0; i < 2000; i++)
				r.arena[rng() % (FLOOD_DEPTH * MESSAGE_BYTES)] = (uint8_t)rng();
		} else if (behaviour == PUNCH) {
			fallocate(r.fds[MRC_ABI_FD_SEND_ARENA],
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)(slot * MESSAGE_BYTES), MESSAGE_BYTES);
			if (ftruncate(r.fds[MRC_ABI_FD_SEND_ARENA], 4096) == 0 ||
			    ftruncate(r.fds[MRC_ABI_FD_RINGS], 4096) == 0) {
				errno = 0;
				fail("memory shared with the daemon could be made smaller");
			}
		}
		if (!complete(&r, &cqe, behaviour == FLOOD ? PATIENCE_MS : 1)) {
			if (is_gone(r.fd, 0))
				return behaviour == FLOOD;
			continue;
		}
		if (cqe.type == MRC_CQE_CLOSED)
			return behaviour == FLOOD && cqe.status != 0;
		if (cqe.type == MRC_CQE_SENT)
			send_one(&r, channel, cqe.user_data);
	}
}

/* ---- receiving badly ---- */

static int take(const char *service, bool is_deaf)
{
	struct rogue r;
	struct mrc_cqe cqe;

	attach(&r);
	request(&r, MRC_ABI_REQ_LISTEN, service);
	complete_of(&r, MRC_CQE_LISTENING);
	for (;;) {
		struct mrc_sqe accept = {.op = MRC_SQE_ACCEPT};

		if (!complete(&r, &cqe, -1))
			return 0; /* ended by the daemon: its right */
		if (cqe.type != MRC_CQE_INCOMING)
			continue;
		accept.channel = cqe.channel;
		submit(&r, &accept);
		puts("accepted");
		fflush(stdout);
		if (is_deaf) {
			for (;;)
				pause();
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	const char *target = argc > 3 ? argv[3] : "";

	socket_path = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "attach"))
		return attach_wrongly();
	if (!strcmp(mode, "requests"))
		return requests_wrong(target);
	if (!strcmp(mode, "entries"))
		return entries_wrong(target);
	if (!strcmp(mode, "tails"))
		return tails_wrong(target);
	if (!strcmp(mode, "flood"))
		return flood(target, FLOOD);
	if (!strcmp(mode, "scribble"))
		return flood(target, SCRIBBLE);
	if (!strcmp(mode, "punch"))
		return flood(target, PUNCH);
	if (!strcmp(mode, "deaf") || !strcmp(mode, "hold"))
		return take(target, !strcmp(mode, "deaf"));
	fprintf(stderr, "usage: rogue SOCKET "
			"attach|requests|entries|tails|scribble|punch|flood|deaf|hold [TARGET]\n");
	return 2;
}
