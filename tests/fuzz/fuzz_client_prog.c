/* SPDX-License-Identifier: BSD-2-Clause */
/* A program as the daemon sees one: a socket, a ring page, and what it has learnt. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz_client.h"

static const char honest_text[] = "what one client does is no other's business";

static void *prog_map(int fd, uint64_t len_bytes, int prot)
{
	void *addr = mmap(NULL, len_bytes, prot, MAP_SHARED, fd, 0);

	FUZZ_CHECK(addr != MAP_FAILED);
	return addr;
}

static void welcome_take(struct prog *p)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MRC_ABI_FD_COUNT)];
	} control;
	struct iovec iov = {.iov_base = &p->welcome, .iov_len = sizeof(p->welcome)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(p->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	if (len <= 0)
		return; /* nothing was said, or the daemon hung up */
	FUZZ_CHECK(len == sizeof(p->welcome) && p->welcome.magic == MRC_ABI_MAGIC);
	FUZZ_CHECK(memchr(p->welcome.text, 0, sizeof(p->welcome.text)) != NULL);
	if (p->welcome.status != 0) {
		FUZZ_CHECK(cmsg == NULL && p->welcome.text[0] != 0);
		return;
	}
	FUZZ_CHECK(cmsg && cmsg->cmsg_len == CMSG_LEN(sizeof(int) * MRC_ABI_FD_COUNT));
	memcpy(p->fds, CMSG_DATA(cmsg), sizeof(p->fds));
	p->rings =
		prog_map(p->fds[MRC_ABI_FD_RINGS], p->welcome.ring_bytes, PROT_READ | PROT_WRITE);
	p->send = prog_map(p->fds[MRC_ABI_FD_SEND_ARENA], p->welcome.send_arena_bytes,
			   PROT_READ | PROT_WRITE);
	p->landing = prog_map(p->fds[MRC_ABI_FD_LANDING_ARENA], p->welcome.landing_arena_bytes,
			      PROT_READ);
	p->shm = (struct mrc_ring_shm *)(void *)p->rings;
}

void prog_attach(struct world *w, struct prog *p, const struct mrc_abi_attach *attach, size_t len)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memset(p, 0, sizeof(*p));
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(p->fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/mrcd.sock", w->dir);
	FUZZ_CHECK(connect(p->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	prog_packet(p, attach, len);
	world_turn(w);
	welcome_take(p);
}

bool prog_is_attached(const struct prog *p)
{
	return p->rings != NULL;
}

void prog_leave(struct prog *p)
{
	if (p->rings) {
		munmap(p->rings, p->welcome.ring_bytes);
		munmap(p->send, p->welcome.send_arena_bytes);
		munmap(p->landing, p->welcome.landing_arena_bytes);
		for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
			close(p->fds[i]);
	}
	if (p->fd >= 0)
		close(p->fd);
	memset(p, 0, sizeof(*p));
	p->fd = -1;
}

void prog_packet(struct prog *p, const void *bytes, size_t len)
{
	/* The daemon may have hung up, or reads no more. */
	(void)!send(p->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void prog_request(struct prog *p, uint32_t op, const char *target, uint32_t flags)
{
	struct mrc_abi_request request = {.op = op, .flags = flags, .user_data = 77};

	snprintf(request.target, sizeof(request.target), "%s", target);
	prog_packet(p, &request, sizeof(request));
}

void prog_bell(struct prog *p)
{
	uint64_t one = 1;

	(void)!write(p->fds[MRC_ABI_FD_DAEMON_BELL], &one, sizeof(one));
}

void prog_submit(struct prog *p, const struct mrc_sqe *sqe)
{
	struct mrc_sqe *sq = (struct mrc_sqe *)(void *)(p->rings + 4096);
	uint32_t mask = p->welcome.sq_entry_count - 1;

	/* It keeps no rule and looks at no head; the ring's place and size are as the daemon said. */
	sq[p->sq_tail & mask] = *sqe;
	__atomic_store_n(&p->shm->sq_tail, ++p->sq_tail, __ATOMIC_SEQ_CST);
	prog_bell(p);
}

/* ---- what completions say ---- */

static int channel_at(const struct prog *p, uint32_t id)
{
	for (uint32_t i = 0; i < MRC_MIN(p->channel_count, CHANNELS_SEEN); i++) {
		if (p->channels[i] == id)
			return (int)i;
	}
	return -1;
}

static void channel_learn(struct prog *p, uint32_t id)
{
	uint32_t i = p->channel_count++ % CHANNELS_SEEN;

	p->channels[i] = id;
	p->number[i] = 0;
}

bool prog_take(struct prog *p, struct mrc_cqe *cqe_out)
{
	const struct mrc_cqe *cq;
	uint64_t cq_offset = 4096 + (uint64_t)p->welcome.sq_entry_count * 64;
	uint32_t tail = __atomic_load_n(&p->shm->cq_tail, __ATOMIC_ACQUIRE);
	int i;

	if (tail == p->cq_head || tail - p->cq_head > p->welcome.cq_entry_count)
		return false; /* or it has written there itself */
	cq = (const struct mrc_cqe *)(const void *)(p->rings + cq_offset);
	*cqe_out = cq[p->cq_head++ & (p->welcome.cq_entry_count - 1)];
	p->last = *cqe_out;
	__atomic_store_n(&p->shm->cq_head, p->cq_head, __ATOMIC_SEQ_CST);
	switch (cqe_out->type) {
	case MRC_CQE_LISTENING:
		if (cqe_out->status == 0)
			p->listener = cqe_out->channel;
		break;
	case MRC_CQE_INCOMING:
	case MRC_CQE_CONNECTED:
		if (cqe_out->status == 0 && channel_at(p, cqe_out->channel) < 0)
			channel_learn(p, cqe_out->channel);
		break;
	case MRC_CQE_ARRIVED:
		i = channel_at(p, cqe_out->channel);
		if (i >= 0)
			p->number[i] = cqe_out->number;
		p->arrived++;
		break;
	case MRC_CQE_SENT:
		p->sent++;
		break;
	default:
		break;
	}
	return true;
}

/* ---- the honest one ---- */

static struct mrc_cqe honest_expect(struct world *w, struct prog *p, enum mrc_cqe_type type)
{
	struct mrc_cqe cqe = {0};

	for (int i = 0; i < 100; i++) {
		while (prog_take(p, &cqe)) {
			FUZZ_CHECK(cqe.status <= 0);
			if (cqe.type == type)
				return cqe;
			/* Others may call; nobody is let in. */
			if (cqe.type == MRC_CQE_INCOMING) {
				const struct mrc_sqe refuse = {.op = MRC_SQE_REFUSE,
							       .channel = cqe.channel};

				prog_submit(p, &refuse);
			}
		}
		world_pass(w, MRC_MS);
	}
	FUZZ_CHECK(!"the honest client is served");
	return cqe;
}

void honest_exchange(struct world *w, struct prog *p)
{
	struct mrc_sqe sqe = {.op = MRC_SQE_SEND,
			      .level = MRC_LEVEL_COMMITTED,
			      .channel = p->channels[0],
			      .user_data = 5,
			      .len_bytes = sizeof(honest_text)};
	struct mrc_cqe cqe;

	memcpy(p->send, honest_text, sizeof(honest_text));
	prog_submit(p, &sqe);
	cqe = honest_expect(w, p, MRC_CQE_ARRIVED);
	FUZZ_CHECK(cqe.channel == p->channels[1] && cqe.len_bytes == sizeof(honest_text));
	FUZZ_CHECK(cqe.offset + cqe.len_bytes <= p->welcome.landing_arena_bytes);
	FUZZ_CHECK(!memcmp(p->landing + cqe.offset, honest_text, sizeof(honest_text)));
	sqe = (struct mrc_sqe){.op = MRC_SQE_RELEASE, .channel = cqe.channel, .number = cqe.number};
	prog_submit(p, &sqe);
	cqe = honest_expect(w, p, MRC_CQE_SENT);
	FUZZ_CHECK(cqe.user_data == 5 && cqe.status == 0 && cqe.level == MRC_LEVEL_COMMITTED);
}

void honest_begin(struct world *w, struct prog *p)
{
	const struct mrc_abi_attach attach = {.magic = MRC_ABI_MAGIC,
					      .version_min = 1,
					      .version_max = MRC_ABI_VERSION,
					      .name = "honest"};
	struct mrc_sqe sqe = {.op = MRC_SQE_ACCEPT};
	struct mrc_cqe cqe;
	uint32_t incoming = 0, connected = 0;
	uint32_t answers = 0;

	prog_attach(w, p, &attach, sizeof(attach));
	FUZZ_CHECK(prog_is_attached(p));
	prog_request(p, MRC_ABI_REQ_LISTEN, "honest", 0);
	honest_expect(w, p, MRC_CQE_LISTENING);
	prog_request(p, MRC_ABI_REQ_CONNECT, "a/honest", 0);
	for (int i = 0; i < 100 && answers < 3; i++) {
		while (prog_take(p, &cqe)) {
			FUZZ_CHECK(cqe.status == 0);
			answers++;
			if (cqe.type == MRC_CQE_INCOMING) {
				incoming = sqe.channel = cqe.channel;
				prog_submit(p, &sqe);
			} else if (cqe.channel != incoming || answers == 1) {
				connected = cqe.channel;
			}
		}
		world_pass(w, MRC_MS);
	}
	FUZZ_CHECK(answers == 3 && connected != incoming);
	p->channels[0] = connected;
	p->channels[1] = incoming;
	honest_exchange(w, p);
}
