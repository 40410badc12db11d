/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client_side_lab - the daemon's client side between two stand-ins
 *
 * Above it a program that speaks the raw ABI (struct prog), below it peers that
 * note every event and do what a test tells them (struct mrcd_peer). Nothing
 * sleeps: lab_turn() runs the loop until what was asked has been done.
 */
#ifndef CLIENT_SIDE_LAB_H
#define CLIENT_SIDE_LAB_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc/client.h"
#include "mrc/ring_abi.h"
#include "mrcd_client.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_stall.h"
#include "mrcd_trace.h"

#define EVENTS_MAX 4096

/* ---- peers that only take notes ---- */

struct mrcd_peer {
	struct mrc_event_in events[EVENTS_MAX];
	uint32_t event_count;
	uint32_t event_calls; /* an event may be about several messages: here they are one each */
	uint32_t pump_count;
	uint32_t id_next;
	uint32_t credit;                /* SENDs taken before -ENOSPC */
	uint64_t number_next;           /* of SENDs, all channels */
	int answer_of[32];              /* by kind of event; 0: taken */
	char service[MRC_NAME_MAX + 1]; /* of the last CH_OPEN */
	char text[MRC_TEXT_BYTES_MAX];  /* of the last REJECT that had one */
	struct mrcd_stall_meter stalls;
	bool is_draining;
};

static struct mrcd_peer peer_b, peer_c, loop_end;

int mrcd_peer_handle(struct mrcd_peer *peer, const struct mrc_event_in *ev)
{
	assert_true(peer->event_count < EVENTS_MAX);
	if (peer->answer_of[ev->kind] < 0)
		return peer->answer_of[ev->kind];
	if (ev->kind == MRC_EV_SEND) {
		if (peer->credit == 0)
			return -ENOSPC;
		peer->credit--;
		*ev->msg.number_out = peer->number_next++;
	}
	if (ev->kind == MRC_EV_CH_OPEN) {
		*ev->channel.id_out = ++peer->id_next;
		snprintf(peer->service, sizeof(peer->service), "%s", ev->channel.service);
	}
	if (ev->kind == MRC_EV_REJECT && ev->msg.text_len > 0)
		memcpy(peer->text, ev->msg.text, ev->msg.text_len); /* lent for the call */
	peer->event_calls++;
	for (uint32_t i = 0; i <= (ev->kind >= MRC_EV_SEND ? ev->msg.more : 0); i++) {
		peer->events[peer->event_count] = *ev;
		if (ev->kind >= MRC_EV_SEND)
			peer->events[peer->event_count].msg.number += i;
		peer->event_count++;
	}
	return 0;
}

/* Noted like an event: what matters is that the engine knew the flow before. */
bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key)
{
	const struct mrc_event_in ev = {.kind = MRC_EV_KEY, .key = *key};

	(void)rail;
	return mrcd_peer_handle(peer, &ev) >= 0;
}

struct mrcd_stall_meter *mrcd_peer_stalls(struct mrcd_peer *peer)
{
	return &peer->stalls;
}

bool mrcd_peer_is_draining(const struct mrcd_peer *peer)
{
	return peer->is_draining;
}

void mrcd_peer_pump(struct mrcd_peer *peer)
{
	peer->pump_count++;
}

struct mrcd_peer *mrcd_worker_peer(struct mrcd_worker *worker, const char *name)
{
	(void)worker;
	return strcmp(name, "b") == 0   ? &peer_b
	       : strcmp(name, "c") == 0 ? &peer_c
	       : strcmp(name, "a") == 0 ? &loop_end
					: NULL;
}

static inline uint64_t lab_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

uint64_t mrcd_worker_clock_ns(void)
{
	return lab_now_ns();
}

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	return worker->now_ns = lab_now_ns();
}

/* What was told of the last message that has settled. */
static struct mrc_act_trace lab_traced;

void mrcd_trace_add(struct mrcd_traces *traces, const struct mrcd_peer *peer,
		    const struct mrc_act_trace *act)
{
	(void)traces;
	(void)peer;
	lab_traced = *act;
}

/* How many events of this kind the peer has seen; the last one in *last_out (may be NULL). */
static inline uint32_t peer_saw(const struct mrcd_peer *peer, enum mrc_event_kind kind,
				struct mrc_event_in *last_out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < peer->event_count; i++)
		if (peer->events[i].kind == kind) {
			count++;
			if (last_out != NULL)
				*last_out = peer->events[i];
		}
	return count;
}

/* ---- the daemon around it ---- */

struct lab {
	char dir[64];
	struct mrcd_conf conf;
	struct mrcd_conf_service services[2];
	uid_t secret_user;
	gid_t secret_group;
	struct mrcd_worker worker;
};

static inline void lab_begin(struct lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	memset(&peer_b, 0, sizeof(peer_b));
	memset(&peer_c, 0, sizeof(peer_c));
	memset(&loop_end, 0, sizeof(loop_end));
	peer_b.credit = peer_c.credit = loop_end.credit = UINT32_MAX;
	peer_c.id_next = 500;
	mrcd_log_init(LOG_ERR); /* what clients do wrong is a warning, and here is plenty of it */
	snprintf(lab->dir, sizeof(lab->dir), "/tmp/mrc-client-side-XXXXXX");
	assert_non_null(mkdtemp(lab->dir));
	assert_int_equal(chmod(lab->dir, 0755), 0);
	snprintf(lab->conf.host, sizeof(lab->conf.host), "a");
	snprintf(lab->conf.runtime_dir, sizeof(lab->conf.runtime_dir), "%s", lab->dir);
	lab->conf.handshake_timeout_ns = 10 * MRC_S;
	lab->conf.handshakes_max = 4;
	lab->secret_user = 4711;
	lab->secret_group = 4713;
	snprintf(lab->services[0].name, sizeof(lab->services[0].name), "*");
	lab->services[0].any.is_open = true;
	snprintf(lab->services[1].name, sizeof(lab->services[1].name), "secret");
	lab->services[1].any.users = &lab->secret_user;
	lab->services[1].any.user_count = 1;
	lab->services[1].any.groups = &lab->secret_group;
	lab->services[1].any.group_count = 1;
	for (int i = 0; i < 2; i++)
		for (int use = 0; use < MRCD_USES; use++)
			lab->services[i].of[use].is_open = true;
	lab->conf.services = lab->services;
	lab->conf.service_count = 2;
	lab->conf.clients = (struct mrcd_conf_client_limits){
		.clients_max = 8,
		.channels_max = 16,
		.listeners_max = 4,
		.sends_max = 64,
		.window_messages = 8,
		.landing_ring_bytes = 1U << 20,
		.send_arena_bytes = 4U << 20,
		.landing_arena_bytes = 8U << 20,
	};
	lab->conf.limits.eager_bytes_max = 32U << 10;
	lab->worker.conf = &lab->conf;
	lab->worker.boot_id = 0xb007;
	lab->worker.base = event_base_new();
	assert_non_null(lab->worker.base);
	mrcd_worker_now(&lab->worker);
}

static inline void lab_start(struct lab *lab)
{
	assert_int_equal(mrcd_client_side_new(&lab->worker, -1, &lab->worker.clients), 0);
}

static inline void lab_end(struct lab *lab)
{
	mrcd_client_side_free(lab->worker.clients);
	event_base_free(lab->worker.base);
	assert_int_equal(rmdir(lab->dir), 0); /* its socket is gone too */
}

/* Everything that can be done now; local sockets and pipes deliver at once. */
static inline void lab_turn(struct lab *lab)
{
	for (int i = 0; i < 12; i++)
		event_base_loop(lab->worker.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static inline void lab_perform(struct lab *lab, struct mrcd_peer *peer, struct mrc_action act)
{
	mrcd_client_side_perform(lab->worker.clients, peer, &act);
	mrcd_client_side_flush(lab->worker.clients);
}

/* The object of this client in what mrcctl is shown; NULL: gone. */
static inline json_t *lab_client_json(struct lab *lab, const char *name)
{
	json_t *array = mrcd_client_side_json(lab->worker.clients);
	json_t *found = NULL;
	json_t *object;
	size_t i;

	json_array_foreach(array, i,
			   object) if (strcmp(json_string_value(json_object_get(object, "name")),
					      name) == 0) found = json_incref(object);
	json_decref(array);
	return found;
}

static inline long long lab_number(struct lab *lab, const char *name, const char *key)
{
	json_t *object = lab_client_json(lab, name);
	long long value = object != NULL ? json_integer_value(json_object_get(object, key)) : -1;

	json_decref(object);
	return value;
}

/* ---- a program ---- */

struct prog {
	int fd;
	struct mrc_abi_welcome welcome;
	int fds[MRC_ABI_FD_COUNT];
	uint8_t *rings, *send, *landing;
	struct mrc_ring_shm *shm;
	uint32_t sq_tail, cq_head;
};

static inline int prog_connect(const struct lab *lab)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/mrcd.sock", lab->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* The newest ABI that programs speak. */
static uint32_t prog_version_max = MRC_ABI_VERSION;

static inline struct mrc_abi_attach prog_attach_request(const char *name)
{
	struct mrc_abi_attach attach = {
		.magic = MRC_ABI_MAGIC,
		.version_min = 1,
		.version_max = prog_version_max,
	};

	snprintf(attach.name, sizeof(attach.name), "%s", name);
	return attach;
}

/* The welcome and its descriptors; false: the daemon hung up without one. */
static inline bool prog_welcomed(struct prog *prog)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MRC_ABI_FD_COUNT)];
	} control;
	struct iovec iov = {.iov_base = &prog->welcome, .iov_len = sizeof(prog->welcome)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t len = recvmsg(prog->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (len == 0)
		return false;
	assert_int_equal(len, sizeof(prog->welcome));
	assert_int_equal(prog->welcome.magic, MRC_ABI_MAGIC);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (prog->welcome.status != 0) {
		assert_null(cmsg);
		return true;
	}
	assert_non_null(cmsg);
	assert_int_equal(cmsg->cmsg_len, CMSG_LEN(sizeof(int) * MRC_ABI_FD_COUNT));
	memcpy(prog->fds, CMSG_DATA(cmsg), sizeof(prog->fds));
	return true;
}

static inline void *prog_map(int fd, uint64_t len_bytes, int prot)
{
	void *addr = mmap(NULL, len_bytes, prot, MAP_SHARED, fd, 0);

	assert_true(addr != MAP_FAILED);
	return addr;
}

/* A credential is the one of the moment of connect(). Another uid than one's own takes root. */
static inline void prog_attach_as(struct lab *lab, struct prog *prog, const char *name, uid_t uid)
{
	struct mrc_abi_attach attach = prog_attach_request(name);
	uid_t own = geteuid();

	memset(prog, 0, sizeof(*prog));
	assert_int_equal(seteuid(uid), 0);
	prog->fd = prog_connect(lab);
	assert_int_equal(seteuid(own), 0);
	assert_int_equal(send(prog->fd, &attach, sizeof(attach), 0), sizeof(attach));
	lab_turn(lab);
	assert_true(prog_welcomed(prog));
	assert_int_equal(prog->welcome.status, 0);
	prog->rings = prog_map(prog->fds[MRC_ABI_FD_RINGS], prog->welcome.ring_bytes,
			       PROT_READ | PROT_WRITE);
	prog->send = prog_map(prog->fds[MRC_ABI_FD_SEND_ARENA], prog->welcome.send_arena_bytes,
			      PROT_READ | PROT_WRITE);
	prog->landing = prog_map(prog->fds[MRC_ABI_FD_LANDING_ARENA],
				 prog->welcome.landing_arena_bytes, PROT_READ);
	prog->shm = (struct mrc_ring_shm *)(void *)prog->rings;
}

/* One that is turned away with -EMFILE: what it is told. Leaves again. */
static inline const char *prog_refused(struct lab *lab, struct prog *prog)
{
	struct mrc_abi_attach attach = prog_attach_request("one too many");

	prog->fd = prog_connect(lab);
	assert_true(send(prog->fd, &attach, sizeof(attach), 0) > 0);
	lab_turn(lab);
	assert_true(prog_welcomed(prog));
	assert_int_equal(prog->welcome.status, -EMFILE);
	close(prog->fd);
	return prog->welcome.text;
}

static inline void prog_attach(struct lab *lab, struct prog *prog, const char *name)
{
	prog_attach_as(lab, prog, name, geteuid());
}

static inline void prog_leave(struct prog *prog)
{
	munmap(prog->rings, prog->welcome.ring_bytes);
	munmap(prog->send, prog->welcome.send_arena_bytes);
	munmap(prog->landing, prog->welcome.landing_arena_bytes);
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		close(prog->fds[i]);
	if (prog->fd >= 0)
		close(prog->fd);
	prog->fd = -1;
}

static inline void prog_bell(struct prog *prog)
{
	uint64_t one = 1;

	assert_int_equal(write(prog->fds[MRC_ABI_FD_DAEMON_BELL], &one, sizeof(one)), sizeof(one));
}

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
/* The thread sanitizer does not model fences; this one only decides about a bell. */
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* As libmrc does it: the entry, the tail, a fence, the bell if the daemon sleeps. */
static inline void prog_submit(struct prog *prog, struct mrc_sqe sqe)
{
	struct mrc_sqe *sq = (struct mrc_sqe *)(void *)(prog->rings + prog->shm->sq_offset);

	sq[prog->sq_tail & (prog->shm->sq_entry_count - 1)] = sqe;
	__atomic_store_n(&prog->shm->sq_tail, ++prog->sq_tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&prog->shm->daemon_sleeping, __ATOMIC_RELAXED) != 0)
		prog_bell(prog);
}

static inline void prog_request(struct prog *prog, uint32_t op, const char *target, uint32_t flags,
				uint64_t user_data)
{
	struct mrc_abi_request request = {.op = op, .flags = flags, .user_data = user_data};

	snprintf(request.target, sizeof(request.target), "%s", target);
	assert_int_equal(send(prog->fd, &request, sizeof(request), 0), sizeof(request));
}

/* The next completion, without telling the daemon that it was taken. */
static inline bool prog_peek(struct prog *prog, struct mrc_cqe *cqe_out)
{
	const struct mrc_cqe *cq = (struct mrc_cqe *)(void *)(prog->rings + prog->shm->cq_offset);

	if (__atomic_load_n(&prog->shm->cq_tail, __ATOMIC_ACQUIRE) == prog->cq_head)
		return false;
	*cqe_out = cq[prog->cq_head++ & (prog->shm->cq_entry_count - 1)];
	return true;
}

static inline bool prog_take(struct prog *prog, struct mrc_cqe *cqe_out)
{
	if (!prog_peek(prog, cqe_out))
		return false;
	__atomic_store_n(&prog->shm->cq_head, prog->cq_head, __ATOMIC_RELEASE);
	return true;
}

/* Takes the next completion, which must be of this type. */
static inline struct mrc_cqe prog_expect(struct prog *prog, enum mrc_cqe_type type)
{
	struct mrc_cqe cqe = {0};

	if (!prog_take(prog, &cqe))
		fail_msg("no completion; one of type %d was expected", (int)type);
	assert_int_equal(cqe.type, type);
	return cqe;
}

static inline void prog_expect_nothing(struct prog *prog)
{
	struct mrc_cqe cqe;

	if (prog_peek(prog, &cqe))
		fail_msg("a completion of type %u, status %d", cqe.type, cqe.status);
}

/* Has the daemon ended this attachment, in the ring and on the socket? */
static inline bool prog_is_ended(const struct prog *prog)
{
	char byte;
	bool is_gone = __atomic_load_n(&prog->shm->state, __ATOMIC_ACQUIRE) == MRC_RING_STATE_GONE;

	assert_int_equal(recv(prog->fd, &byte, 1, MSG_DONTWAIT) == 0, is_gone);
	return is_gone;
}

/* A NOP and a request go through: this client is served. */
static inline void prog_is_served(struct lab *lab, struct prog *prog)
{
	uint32_t head = prog->shm->sq_head;

	prog_submit(prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	prog_request(prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 99);
	lab_turn(lab);
	assert_int_equal(prog->shm->sq_head, head + 1);
	assert_int_equal(prog_expect(prog, MRC_CQE_CONNECTED).status, MRC_STATUS_NO_PEER);
}

/* ---- channels ---- */

struct pipe_end {
	struct mrcd_peer *peer;
	uint32_t id; /* the client's */
	uint32_t engine_id;
	uint64_t cookie;
	uint64_t ring_bytes;
};

static inline struct mrc_action act_channel(enum mrc_action_kind kind, const struct pipe_end *end)
{
	struct mrc_action act = {.kind = kind};

	act.channel.id = end->engine_id;
	act.channel.cookie = end->cookie;
	return act;
}

static inline struct mrc_action act_msg(enum mrc_action_kind kind, const struct pipe_end *end,
					uint64_t number, uint64_t addr, uint64_t len)
{
	struct mrc_action act = {.kind = kind};

	act.msg.channel = end->engine_id;
	act.msg.channel_cookie = end->cookie;
	act.msg.number = number;
	act.msg.addr = addr;
	act.msg.len = len;
	return act;
}

/* Connect to host/x and let the engine say yes. */
static inline struct pipe_end prog_open(struct lab *lab, struct prog *prog, const char *host)
{
	struct pipe_end end = {.peer = mrcd_worker_peer(&lab->worker, host)};
	struct mrc_event_in open = {0};
	struct mrc_action up;
	char target[80];
	struct mrc_cqe cqe;

	snprintf(target, sizeof(target), "%s/x", host);
	prog_request(prog, MRC_ABI_REQ_CONNECT, target, 0, 1000);
	lab_turn(lab);
	assert_true(peer_saw(end.peer, MRC_EV_CH_OPEN, &open) > 0);
	end.engine_id = end.peer->id_next;
	end.cookie = open.channel.cookie;
	end.ring_bytes = open.channel.ring_bytes;
	prog_expect_nothing(prog);
	up = act_channel(MRC_ACT_CH_UP, &end);
	up.channel.msg_bytes_max = 12345;
	lab_perform(lab, end.peer, up);
	cqe = prog_expect(prog, MRC_CQE_CONNECTED);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	assert_int_equal(cqe.user_data, 1000);
	assert_int_equal(cqe.len_bytes, 12345);
	end.id = cqe.channel;
	return end;
}

static inline void prog_send(struct prog *prog, const struct pipe_end *end, uint64_t user_data)
{
	prog_submit(prog, (struct mrc_sqe){
				  .op = MRC_SQE_SEND,
				  .level = MRC_LEVEL_COMMITTED,
				  .channel = end->id,
				  .user_data = user_data,
				  .offset = 64,
				  .len_bytes = 100,
			  });
}

/* Let the engine want a buffer and deliver into it; answers its address. */
static inline uint64_t lab_deliver_large(struct lab *lab, const struct pipe_end *end,
					 uint64_t number, uint64_t len)
{
	struct mrc_event_in landing = {0};

	lab_perform(lab, end->peer, act_msg(MRC_ACT_LANDING_WANT, end, number, 0, len));
	assert_true(peer_saw(end->peer, MRC_EV_LANDING, &landing) > 0);
	assert_int_equal(landing.msg.number, number);
	assert_int_equal(landing.msg.channel, end->engine_id);
	lab_perform(lab, end->peer, act_msg(MRC_ACT_DELIVER, end, number, landing.msg.addr, len));
	return landing.msg.addr;
}

static inline void lab_deliver_eager(struct lab *lab, const struct pipe_end *end, uint64_t number,
				     uint64_t addr, uint64_t len)
{
	struct mrc_action act = act_msg(MRC_ACT_DELIVER, end, number, addr, len);

	act.msg.is_eager = true;
	lab_perform(lab, end->peer, act);
}

static inline void prog_verdict(struct prog *prog, const struct pipe_end *end, enum mrc_sqe_op op,
				uint64_t number)
{
	prog_submit(prog, (struct mrc_sqe){
				  .op = (uint8_t)op,
				  .channel = end->id,
				  .number = number,
				  .code = 42,
			  });
}

/* A group's fixture: one lab, started with its defaults. */
static inline int lab_setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	lab_begin(lab);
	lab_start(lab);
	*state = lab;
	return 0;
}

static inline int lab_teardown(void **state)
{
	lab_end(*state);
	free(*state);
	return 0;
}

#define lab_test(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)

#endif
