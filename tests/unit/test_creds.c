/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a local socket: as the kernel noted it at connect(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrcd_creds.h"

#define MANY 1000 /* more than are asked for at first */

static gid_t wanted[MANY];

/* In the child: become it, connect, and stay until the other end has looked. */
static void call(const struct sockaddr_un *address, socklen_t len, uint32_t count, int go_fd)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char byte;

	if (setgroups(count, wanted) < 0 || setegid(64322) < 0 || seteuid(64321) < 0 ||
	    connect(fd, (const struct sockaddr *)address, len) < 0)
		_exit(1);
	/* What it becomes later is another matter. */
	if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
		_exit(1);
	_exit(read(go_fd, &byte, 1) == 0 ? 0 : 1);
}

static void looks_like(uint32_t count)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(address);
	struct mrcd_creds creds;
	int go[2], listener = socket(AF_UNIX, SOCK_STREAM, 0), fd, status;
	pid_t child;

	/* A name that the kernel makes, which no directory's rights shut in. */
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(go[1]);
		call(&address, len, count, go[0]);
	}
	close(go[0]);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(mrcd_creds_of(fd, &creds), 0);
	assert_int_equal(creds.pid, child);
	assert_int_equal(creds.uid, 64321);
	assert_int_equal(creds.gid, 64322);
	assert_int_equal(creds.group_count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_true(mrcd_creds_has_group(&creds, wanted[i]));
	assert_true(mrcd_creds_has_group(&creds, 64322));
	assert_false(mrcd_creds_has_group(&creds, 64323));
	mrcd_creds_fini(&creds);
	close(go[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
	close(listener);
}

static void groups_are_those_of_the_process_that_connected(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: wants root, to become others\n");
		skip();
	}
	for (uint32_t i = 0; i < MANY; i++)
		wanted[i] = 70000 + i;
	looks_like(0);
	looks_like(1);
	looks_like(32);
	looks_like(33);
	looks_like(MANY);
}

static void what_is_no_local_socket_is_an_error(void **state)
{
	struct mrcd_creds creds;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_true(mrcd_creds_of(fds[0], &creds) < 0);
	mrcd_creds_fini(&creds);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_those_of_the_process_that_connected),
		cmocka_unit_test(what_is_no_local_socket_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
