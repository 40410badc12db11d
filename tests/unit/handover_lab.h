/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover_lab - whole workers, a program that is attached, and somebody who
 * keeps descriptors as a service manager does. For one test program each.
 */
#ifndef HANDOVER_LAB_H
#define HANDOVER_LAB_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc/ring_abi.h"
#include "mrcd_bundle.h"
#include "mrcd_client.h"
#include "mrcd_handover.h"
#include "mrcd_heritage.h"
#include "mrcd_log.h"
#include "mrcd_notify.h"
#include "mrcd_worker.h"

#define FDS_MAX 16

struct manager {
	char dir[64], path[108];
	int fd;
	bool is_running; /* a thread hears; else manager_hear() has to be called */
	bool is_deaf;    /* it takes what it is given, and never says so */
	pthread_t thread;
	pthread_mutex_t mutex;
	char words[1024]; /* what it was told, one after the other */
	int fds[FDS_MAX]; /* what it keeps */
	uint32_t count;
	int deaf_fd; /* what a barrier waits for */
	struct mrcd_conf conf;
};

/* The manager that is nobody's thread, for who waits for it in this process. */
static struct manager *manager_here;
/* Nobody is waited for: what was said lies there until it is heard, whatever becomes of us. */
static bool manager_hears_later;

/* One message. False: there is none. What is not to be kept is closed, which answers BARRIER=1. */
static inline bool manager_hear(struct manager *m, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	char text[512];
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(m->fd, &msg, MSG_CMSG_CLOEXEC | flags);
	struct cmsghdr *cmsg;
	int fds[FDS_MAX];
	size_t count = 0;

	if (len <= 0)
		return false;
	text[len] = '\0';
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS) {
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
	}
	pthread_mutex_lock(&m->mutex);
	if (strlen(m->words) + strlen(text) + 2 <= sizeof(m->words)) {
		strcat(m->words, text);
		strcat(m->words, "\n");
	}
	for (size_t i = 0; i < count; i++) {
		if (strstr(text, "FDSTORE=1") != NULL && m->count < FDS_MAX)
			m->fds[m->count++] = fds[i];
		else if (m->is_deaf && m->deaf_fd < 0)
			m->deaf_fd = fds[i];
		else
			close(fds[i]);
	}
	pthread_mutex_unlock(&m->mutex);
	return true;
}

/* Until the socket is shut down. */
static inline void *manager_run(void *context)
{
	while (manager_hear(context, 0))
		;
	return NULL;
}

static inline void manager_start(struct manager *m)
{
	assert_int_equal(pthread_create(&m->thread, NULL, manager_run, m), 0);
	m->is_running = true;
}

/* As if it had been restarted: it keeps nothing, and has heard nothing. */
static inline void manager_forget(struct manager *m)
{
	pthread_mutex_lock(&m->mutex);
	for (uint32_t i = 0; i < m->count; i++)
		close(m->fds[i]);
	m->count = 0;
	m->words[0] = '\0';
	pthread_mutex_unlock(&m->mutex);
}

int __real_mrcd_notify_barrier(uint64_t patience_ns);
int __wrap_mrcd_notify_barrier(uint64_t patience_ns);
int __wrap_mrcd_notify_barrier(uint64_t patience_ns)
{
	if (manager_hears_later)
		return 0;
	/* Of one that never answers no more is to be learnt in five seconds. */
	if (manager_here == NULL)
		return __real_mrcd_notify_barrier(MRC_MIN(patience_ns, 500 * MRC_MS));
	while (manager_hear(manager_here, MSG_DONTWAIT))
		;
	return 0;
}

static inline bool manager_heard(struct manager *m, const char *word)
{
	bool is_there;

	pthread_mutex_lock(&m->mutex);
	is_there = strstr(m->words, word) != NULL;
	pthread_mutex_unlock(&m->mutex);
	return is_there;
}

/* It reads what it is told in a thread of its own: some time after it was said. */
static inline void manager_hears(struct manager *m, const char *word)
{
	for (int i = 0; i < 10000 && !manager_heard(m, word); i++)
		usleep(1000);
	assert_true(manager_heard(m, word));
}

/* How many it keeps; what is in fds[] can be used then. */
static inline uint32_t manager_kept(struct manager *m)
{
	uint32_t count;

	pthread_mutex_lock(&m->mutex);
	count = m->count;
	pthread_mutex_unlock(&m->mutex);
	return count;
}

static inline int setup_alone(void **state)
{
	struct manager *m = calloc(1, sizeof(*m));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct mrcd_conf_rail *rail = &m->conf.rails[0];

	mrcd_log_init(LOG_CRIT);
	snprintf(m->dir, sizeof(m->dir), "/tmp/mrc-handover-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	snprintf(m->path, sizeof(m->path), "%s/notify", m->dir);
	memcpy(addr.sun_path, m->path, sizeof(addr.sun_path));
	pthread_mutex_init(&m->mutex, NULL);
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(m->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	m->deaf_fd = -1;
	setenv("NOTIFY_SOCKET", m->path, 1);

	snprintf(m->conf.host, sizeof(m->conf.host), "a");
	snprintf(m->conf.runtime_dir, sizeof(m->conf.runtime_dir), "%s", m->dir);
	m->conf.handshake_timeout_ns = MRC_S;
	m->conf.handshakes_max = 4;
	snprintf(rail->name, sizeof(rail->name), "r0");
	snprintf(rail->address, sizeof(rail->address), "127.0.0.1");
	m->conf.rail_count = 1;
	m->conf.clients = (struct mrcd_conf_client_limits){
		.clients_max = 4,
		.channels_max = 4,
		.listeners_max = 2,
		.sends_max = 8,
		.window_messages = 8,
		.landing_ring_bytes = 1U << 20,
		.send_arena_bytes = 1U << 20,
		.landing_arena_bytes = 1U << 20,
	};
	*state = m;
	return 0;
}

static inline int setup(void **state)
{
	setup_alone(state);
	manager_start(*state);
	return 0;
}

static inline int teardown(void **state)
{
	struct manager *m = *state;
	char path[128];

	if (m->is_running) {
		shutdown(m->fd, SHUT_RDWR);
		pthread_join(m->thread, NULL);
	}
	manager_here = NULL;
	close(m->fd);
	manager_forget(m);
	if (m->deaf_fd >= 0)
		close(m->deaf_fd);
	pthread_mutex_destroy(&m->mutex);
	unsetenv("NOTIFY_SOCKET");
	unlink(m->path);
	/* What the next daemon was to listen at, where there was none. */
	snprintf(path, sizeof(path), "%s/mrcd.sock", m->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/control.sock", m->dir);
	unlink(path);
	assert_int_equal(rmdir(m->dir), 0);
	free(m);
	return 0;
}

static inline struct mrcd_worker *worker_start(struct manager *m)
{
	struct mrcd_worker *worker;

	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_equal(mrcd_worker_start(worker, -1, NULL), 0);
	return worker;
}

static inline void on_done(void *context)
{
	++*(uint32_t *)context;
}

static inline void worker_leave(struct mrcd_worker *worker)
{
	struct mrcd_handover *handover;
	uint32_t done = 0;

	assert_true(mrcd_handover_is_possible());
	assert_int_equal(mrcd_handover_begin(worker, on_done, &done, &handover), 0);
	while (done == 0)
		event_base_loop(worker->base, EVLOOP_ONCE);
	mrcd_handover_free(handover);
	mrcd_worker_free(worker);
	assert_int_equal(done, 1);
}

/* ---- a program ---- */

struct prog {
	int fd;
	int fds[MRC_ABI_FD_COUNT];
	struct mrc_ring_shm *shm;
	uint64_t ring_bytes;
};

/* It has connected and said who it is; nobody need have heard that. */
static inline void prog_ask(const struct manager *m, struct prog *prog, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct mrc_abi_attach attach = {
		.magic = MRC_ABI_MAGIC,
		.version_min = 1,
		.version_max = MRC_ABI_VERSION,
	};

	snprintf(attach.name, sizeof(attach.name), "%s", name);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/mrcd.sock", m->dir);
	prog->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(prog->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(prog->fd, &attach, sizeof(attach), 0), sizeof(attach));
}

/* False: no answer yet. */
static inline bool prog_hear(struct prog *prog, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(prog->fds))];
	} control;
	struct mrc_abi_welcome welcome = {0};
	struct iovec iov = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(prog->fd, &msg, MSG_CMSG_CLOEXEC | flags);
	void *rings;

	if (len < 0)
		return false;
	assert_int_equal(len, sizeof(welcome));
	assert_int_equal(welcome.status, 0);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(prog->fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(prog->fds));
	prog->ring_bytes = welcome.ring_bytes;
	rings = mmap(NULL, prog->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		     prog->fds[MRC_ABI_FD_RINGS], 0);
	assert_true(rings != MAP_FAILED);
	prog->shm = rings;
	return true;
}

static inline void prog_attach(const struct manager *m, struct mrcd_worker *worker,
			       struct prog *prog, const char *name)
{
	prog_ask(m, prog, name);
	while (!prog_hear(prog, MSG_DONTWAIT))
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
}

static inline void prog_leave(struct prog *prog)
{
	munmap(prog->shm, prog->ring_bytes);
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		close(prog->fds[i]);
	close(prog->fd);
}

/* Does it see the end of its attachment, at the place where it cannot miss it? */
static inline bool prog_is_ended(const struct prog *prog)
{
	char byte;

	return recv(prog->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static inline uint32_t prog_state(const struct prog *prog)
{
	return __atomic_load_n(&prog->shm->state, __ATOMIC_ACQUIRE);
}

static inline void prog_submit(const struct prog *prog, struct mrc_sqe sqe)
{
	struct mrc_sqe *sq =
		(struct mrc_sqe *)(void *)((uint8_t *)prog->shm + prog->shm->sq_offset);
	uint32_t tail = prog->shm->sq_tail;
	uint64_t one = 1;

	sq[tail & (prog->shm->sq_entry_count - 1)] = sqe;
	__atomic_store_n(&prog->shm->sq_tail, tail + 1, __ATOMIC_RELEASE);
	assert_int_equal(write(prog->fds[MRC_ABI_FD_DAEMON_BELL], &one, sizeof(one)), sizeof(one));
}

/* The next completion; false: there is none. */
static inline bool prog_take(const struct prog *prog, struct mrc_cqe *cqe_out)
{
	const struct mrc_cqe *cq =
		(struct mrc_cqe *)(void *)((uint8_t *)prog->shm + prog->shm->cq_offset);
	uint32_t head = prog->shm->cq_head;

	if (__atomic_load_n(&prog->shm->cq_tail, __ATOMIC_ACQUIRE) == head)
		return false;
	*cqe_out = cq[head & (prog->shm->cq_entry_count - 1)];
	__atomic_store_n(&prog->shm->cq_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/* It says something, and this daemon hears it. */
static inline bool prog_is_served(const struct prog *prog, struct mrcd_worker *worker)
{
	uint32_t tail = prog->shm->sq_tail + 1;

	prog_submit(prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	for (int i = 0; i < 1000 && __atomic_load_n(&prog->shm->sq_head, __ATOMIC_ACQUIRE) != tail;
	     i++)
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
	return __atomic_load_n(&prog->shm->sq_head, __ATOMIC_ACQUIRE) == tail;
}

#endif
