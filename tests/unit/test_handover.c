/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_handover, mrcd_heritage: whole workers, and a thread that keeps
 * descriptors as a service manager does.
 */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_bundle.h"
#include "mrcd_client.h"
#include "mrcd_control.h"
#include "mrcd_handover.h"
#include "mrcd_heritage.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"

#define FDS_MAX 16

struct manager {
	char dir[64], path[108];
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex;
	char words[1024]; /* what it was told, one after the other */
	int fds[FDS_MAX]; /* what it keeps */
	uint32_t count;
	struct mrcd_conf conf;
};

/* Until the socket is shut down. What is not to be kept is closed, which answers BARRIER=1. */
static void *manager_run(void *context)
{
	struct manager *m = context;

	for (;;) {
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
		ssize_t len = recvmsg(m->fd, &msg, MSG_CMSG_CLOEXEC);
		struct cmsghdr *cmsg;
		int fds[FDS_MAX];
		size_t count = 0;

		if (len <= 0)
			return NULL;
		text[len] = '\0';
		cmsg = CMSG_FIRSTHDR(&msg);
		if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS) {
			count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
		}
		pthread_mutex_lock(&m->mutex);
		snprintf(m->words + strlen(m->words), sizeof(m->words) - strlen(m->words), "%s\n",
			 text);
		for (size_t i = 0; i < count; i++) {
			if (strstr(text, "FDSTORE=1") != NULL && m->count < FDS_MAX)
				m->fds[m->count++] = fds[i];
			else
				close(fds[i]);
		}
		pthread_mutex_unlock(&m->mutex);
	}
}

static bool manager_heard(struct manager *m, const char *word)
{
	bool is_there;

	pthread_mutex_lock(&m->mutex);
	is_there = strstr(m->words, word) != NULL;
	pthread_mutex_unlock(&m->mutex);
	return is_there;
}

/* It reads what it is told in a thread of its own: some time after it was said. */
static void manager_hears(struct manager *m, const char *word)
{
	for (int i = 0; i < 10000 && !manager_heard(m, word); i++)
		usleep(1000);
	assert_true(manager_heard(m, word));
}

/* How many it keeps; what is in fds[] can be used then. */
static uint32_t manager_kept(struct manager *m)
{
	uint32_t count;

	pthread_mutex_lock(&m->mutex);
	count = m->count;
	pthread_mutex_unlock(&m->mutex);
	return count;
}

static int setup(void **state)
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
	assert_int_equal(pthread_create(&m->thread, NULL, manager_run, m), 0);
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

static int teardown(void **state)
{
	struct manager *m = *state;
	char path[128];

	shutdown(m->fd, SHUT_RDWR);
	pthread_join(m->thread, NULL);
	close(m->fd);
	for (uint32_t i = 0; i < m->count; i++)
		close(m->fds[i]);
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

static struct mrcd_worker *worker_start(struct manager *m)
{
	struct mrcd_worker *worker;

	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_equal(mrcd_worker_start(worker, -1, NULL), 0);
	return worker;
}

static void on_done(void *context)
{
	++*(uint32_t *)context;
}

static void worker_leave(struct mrcd_worker *worker)
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

static ino_t inode_of(const struct manager *m, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void the_next_daemon_is_the_same_to_others(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	struct mrcd_heritage *heritage;
	uint64_t boot_id = worker->boot_id;
	ino_t clients = inode_of(m, "mrcd.sock"), control = inode_of(m, "control.sock");

	/* So that the two ends of the loop have met. */
	for (int i = 0; i < 20; i++)
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
	worker->rails[0].frames_sent = 123;
	worker->rails[0].carrier_losses = 7;
	worker->rails[0].flaps = 9;
	worker->rails[0].is_draining = true; /* mrcctl drain */
	worker->strangers = 5;
	worker_leave(worker);
	assert_true(manager_heard(m, "FDSTORE=1\nFDNAME=mrcd-state\nFDPOLL=0"));
	assert_int_equal(manager_kept(m), 1);
	assert_false(manager_heard(m, "FDSTOREREMOVE"));

	heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
	assert_non_null(heritage);
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_not_equal(worker->boot_id, boot_id);
	assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
	assert_int_equal(mrcd_worker_start(worker, -1, heritage), 0);
	mrcd_heritage_free(heritage);
	assert_int_equal(worker->boot_id, boot_id);
	assert_int_equal(worker->rails[0].frames_sent, 123);
	assert_int_equal(worker->rails[0].carrier_losses, 7);
	assert_int_equal(worker->rails[0].flaps, 9);
	assert_true(worker->rails[0].is_draining);
	assert_int_equal(worker->strangers, 5);
	assert_int_equal(inode_of(m, "mrcd.sock"), clients);
	assert_int_equal(inode_of(m, "control.sock"), control);
	/* Nobody can use it a second time, whatever the manager still has. */
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
	manager_hears(m, "FDSTOREREMOVE=1\nFDNAME=mrcd-state");
	mrcd_worker_free(worker);
}

static void a_file_that_says_otherwise_now_has_the_last_word(void **state)
{
	struct manager *m = *state;
	struct mrcd_heritage *heritage;
	struct mrcd_worker *worker;

	m->conf.rails[0].is_drained = true;
	worker = worker_start(m);
	assert_true(worker->rails[0].is_draining);
	worker_leave(worker);
	m->conf.rails[0].is_drained = false;
	heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
	assert_non_null(heritage);
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
	assert_false(worker->rails[0].is_draining);
	mrcd_heritage_free(heritage);
	mrcd_worker_free(worker);
}

static void another_host_takes_nothing(void **state)
{
	struct manager *m = *state;

	worker_leave(worker_start(m));
	snprintf(m->conf.host, sizeof(m->conf.host), "other");
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
}

static void a_part_of_it_is_nothing(void **state)
{
	struct manager *m = *state;
	struct mrcd_parcel *parcels;
	struct mrcd_bundle bundle;
	uint32_t count;

	worker_leave(worker_start(m));
	/* One parcel is lost on the way. */
	assert_int_equal(mrcd_bundle_take(m->fds, manager_kept(m), &parcels, &count), 0);
	assert_true(count > 1);
	mrcd_bundle_begin(&bundle);
	for (uint32_t i = 0; i < count; i++) {
		if (parcels[i].kind != MRCD_PARCEL_LISTEN)
			assert_int_equal(mrcd_bundle_put(&bundle, &parcels[i]), 0);
	}
	assert_null(mrcd_heritage_open(bundle.fds, bundle.count, &m->conf));
	mrcd_bundle_fini(&bundle);
	/* Or the state itself. */
	mrcd_bundle_begin(&bundle);
	for (uint32_t i = 0; i < count; i++) {
		if (parcels[i].kind != MRCD_PARCEL_IMAGE)
			assert_int_equal(mrcd_bundle_put(&bundle, &parcels[i]), 0);
	}
	assert_null(mrcd_heritage_open(bundle.fds, bundle.count, &m->conf));
	mrcd_bundle_fini(&bundle);
	mrcd_parcels_free(parcels, count);
	/* Nor is it something else by that name. */
	assert_null(mrcd_heritage_open(&m->fd, 1, &m->conf));
}

static void without_a_manager_nothing_is_left(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	char path[128];

	unsetenv("NOTIFY_SOCKET");
	assert_false(mrcd_handover_is_possible());
	mrcd_worker_free(worker);
	snprintf(path, sizeof(path), "%s/mrcd.sock", m->dir);
	assert_int_equal(access(path, F_OK), -1);
	/* One that cannot be reached is none, and the sockets go as they did. */
	worker = worker_start(m);
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	worker_leave(worker);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(manager_kept(m), 0);
}

#define handover_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		handover_test(the_next_daemon_is_the_same_to_others),
		handover_test(a_file_that_says_otherwise_now_has_the_last_word),
		handover_test(another_host_takes_nothing),
		handover_test(a_part_of_it_is_nothing),
		handover_test(without_a_manager_nothing_is_left),
	};

	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
