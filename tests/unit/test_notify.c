/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_notify: what is said is heard, and nobody waits for a manager that does not listen. */
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

#include "mrcd_notify.h"

#define WORDS_BYTES 64

struct manager {
	char path[108]; /* as in NOTIFY_SOCKET */
	int fd;
};

static int setup_at(void **state, bool is_abstract)
{
	struct manager *m = calloc(1, sizeof(*m));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t addr_bytes;

	snprintf(m->path, sizeof(m->path), "%smrc-notify-%d", is_abstract ? "@" : "/tmp/",
		 (int)getpid());
	memcpy(addr.sun_path, m->path, strlen(m->path));
	addr_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(m->path));
	if (is_abstract)
		addr.sun_path[0] = '\0';
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(m->fd, (struct sockaddr *)&addr, addr_bytes), 0);
	setenv("NOTIFY_SOCKET", m->path, 1);
	*state = m;
	return 0;
}

static int setup(void **state)
{
	return setup_at(state, false);
}

static int setup_abstract(void **state)
{
	return setup_at(state, true);
}

static int teardown(void **state)
{
	struct manager *m = *state;

	close(m->fd);
	if (m->path[0] == '/')
		unlink(m->path);
	unsetenv("NOTIFY_SOCKET");
	free(m);
	return 0;
}

/* The next message; *fd_out: the one descriptor that came with it, or -1. */
static void manager_hears(const struct manager *m, char words[WORDS_BYTES], int *fd_out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = words, .iov_len = WORDS_BYTES - 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(m->fd, &msg, 0);

	assert_true(len >= 0);
	words[len] = '\0';
	*fd_out = -1;
	if (CMSG_FIRSTHDR(&msg) != NULL)
		memcpy(fd_out, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*fd_out));
}

static void words_and_descriptors_are_heard(void **state)
{
	const struct manager *m = *state;
	char words[WORDS_BYTES];
	struct stat sent, got;
	int fd;

	assert_int_equal(mrcd_notify(0, "READY=1"), 1);
	manager_hears(m, words, &fd);
	assert_string_equal(words, "READY=1");
	assert_int_equal(fd, -1);
	assert_int_equal(mrcd_notify_fds(0, "FDSTORE=1", &m->fd, 1), 1);
	manager_hears(m, words, &fd);
	assert_string_equal(words, "FDSTORE=1");
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(fstat(m->fd, &sent), 0);
	assert_int_equal(got.st_ino, sent.st_ino);
	close(fd);
}

static void nobody_is_told_where_nobody_listens(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(mrcd_notify(MRC_S, "READY=1"), 0);
	assert_int_equal(mrcd_notify_barrier(MRC_S), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(mrcd_notify(MRC_S, "READY=1"), 0);
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	assert_int_equal(mrcd_notify(MRC_S, "READY=1"), -ENOENT);
	assert_int_equal(mrcd_notify_barrier(MRC_S), -ENOENT);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	assert_int_equal(mrcd_notify(MRC_S, "READY=1"), -EAFNOSUPPORT);
	unsetenv("NOTIFY_SOCKET");
}

static void a_manager_that_reads_nothing_is_not_waited_for(void **state)
{
	const struct manager *m = *state;
	uint32_t said = 0;
	char words[WORDS_BYTES];
	int r, fd;

	while ((r = mrcd_notify(0, "STATUS=busy")) > 0 && said < 100000)
		said++;
	assert_int_equal(r, -EAGAIN);
	assert_true(said > 0);
	assert_int_equal(mrcd_notify(10 * MRC_MS, "READY=1"), -EAGAIN);
	assert_int_equal(mrcd_notify_barrier(10 * MRC_MS), -ETIMEDOUT);
	/* It has room again: the next word is heard, and what was given up is not. */
	for (uint32_t i = 0; i < said; i++)
		manager_hears(m, words, &fd);
	assert_int_equal(mrcd_notify(0, "WATCHDOG=1"), 1);
	manager_hears(m, words, &fd);
	assert_string_equal(words, "WATCHDOG=1");
}

static void *answer_barrier(void *context)
{
	char words[WORDS_BYTES];
	int fd;

	do {
		manager_hears(context, words, &fd);
	} while (fd < 0);
	assert_string_equal(words, "BARRIER=1");
	close(fd);
	return NULL;
}

static void a_barrier_is_over_when_all_was_read(void **state)
{
	struct manager *m = *state;
	pthread_t thread;

	assert_int_equal(mrcd_notify(0, "STATUS=before"), 1);
	assert_int_equal(mrcd_notify_barrier(10 * MRC_MS), -ETIMEDOUT);
	/* What it has not been answered lies there still; the second one comes behind it. */
	assert_int_equal(pthread_create(&thread, NULL, answer_barrier, m), 0);
	pthread_join(thread, NULL);
	assert_int_equal(pthread_create(&thread, NULL, answer_barrier, m), 0);
	assert_int_equal(mrcd_notify_barrier(60 * MRC_S), 0);
	pthread_join(thread, NULL);
}

#define notify_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		notify_test(words_and_descriptors_are_heard),
		cmocka_unit_test_setup_teardown(words_and_descriptors_are_heard, setup_abstract,
						teardown),
		cmocka_unit_test(nobody_is_told_where_nobody_listens),
		notify_test(a_manager_that_reads_nothing_is_not_waited_for),
		notify_test(a_barrier_is_over_when_all_was_read),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
