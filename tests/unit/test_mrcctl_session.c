/* SPDX-License-Identifier: BSD-2-Clause */
/* By which address somebody is logged in, from a /proc that is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mrcctl_session.h"

static char proc[] = "/tmp/mrcctl-session-XXXXXX";

static int set_up(void **state)
{
	strcpy(proc, "/tmp/mrcctl-session-XXXXXX");
	return mkdtemp(proc) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", proc);
	return system(command);
}

/* Texts with a 0 behind each; `last` need not have one. */
static void process(int pid, int parent, const char *first, const char *last)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "Name:\tx\nPid:\t%d\nPPid:\t%d\n", pid, parent);
	fclose(file);
	if (first == NULL)
		return; /* an environment that we may not read */
	snprintf(path, sizeof(path), "%s/%d/environ", proc, pid);
	file = fopen(path, "we");
	assert_non_null(file);
	fwrite(first, 1, strlen(first) + 1, file);
	fwrite(last, 1, strlen(last), file);
	fclose(file);
}

static void ones_own_environment_says_it(void **state)
{
	char address[MRCCTL_SESSION_TEXT_BYTES];

	process(9, 1, "HOME=/", "SSH_CONNECTION=10.0.0.9 55000 10.0.0.1 22");
	assert_true(mrcctl_session_find(proc, 9, address));
	assert_string_equal(address, "10.0.0.1");
}

static void a_parents_does_when_sudo_took_ours_away(void **state)
{
	char address[MRCCTL_SESSION_TEXT_BYTES];

	process(9, 8, "SUDO_USER=x", "NOT_SSH_CONNECTION=1 2 3 4");
	process(8, 7, NULL, NULL);
	process(7, 1, "SSH_CONNECTION=fe80::9%eth0 55000 fe80::1%eth0 22", "");
	assert_true(mrcctl_session_find(proc, 9, address));
	assert_string_equal(address, "fe80::1%eth0");
}

static void who_came_another_way_is_not_known_about(void **state)
{
	char address[MRCCTL_SESSION_TEXT_BYTES];

	process(9, 8, "SSH_CONNECTION=", "A=");
	process(8, 1, "SSH_CONNECTION=10.0.0.9 55000", "");
	process(1, 0, "", "");
	assert_false(mrcctl_session_find(proc, 9, address));
	assert_false(mrcctl_session_find(proc, 55, address));
	process(20, 20, "X=1", ""); /* no end of parents */
	assert_false(mrcctl_session_find(proc, 20, address));
}

static void a_session_is_over_the_interface_that_has_its_address(void **state)
{
	char address[MRCCTL_SESSION_TEXT_BYTES];

	/* What a process was started with is in /proc, and not what it set since. */
	process(9, 1, "SSH_CONNECTION=127.0.0.1 55000 127.0.0.1 22", "");
	assert_true(mrcctl_session_is_over(proc, 9, "lo", address));
	assert_string_equal(address, "127.0.0.1");
	assert_false(mrcctl_session_is_over(proc, 9, "none", address));
	process(8, 1, "SSH_CONNECTION=127.0.0.1 55000 127.0.0.11 22", "");
	assert_false(mrcctl_session_is_over(proc, 8, "lo", address));
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(ones_own_environment_says_it),
		claim(a_parents_does_when_sudo_took_ours_away),
		claim(who_came_another_way_is_not_known_about),
		claim(a_session_is_over_the_interface_that_has_its_address),
	};

	return cmocka_run_group_tests_name("mrcctl_session", tests, NULL, NULL);
}
