/* SPDX-License-Identifier: BSD-2-Clause */
/* Root is given up, and nothing brings it back. What drops it is a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrcd_privilege.h"

#define KEPT "0000000000006000" /* CAP_NET_RAW and CAP_IPC_LOCK */

static bool status_says(const char *key, const char *value)
{
	FILE *file = fopen("/proc/thread-self/status", "r");
	char line[256], want[64];
	bool is_said = false;

	snprintf(want, sizeof(want), "%s:\t%s\n", key, value);
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		is_said |= strcmp(line, want) == 0;
	if (file != NULL)
		fclose(file);
	return is_said;
}

static bool capabilities_suffice(void)
{
	const uint64_t wanted = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP |
				1U << CAP_NET_RAW | 1U << CAP_IPC_LOCK;
	FILE *file = fopen("/proc/thread-self/status", "r");
	unsigned long long had = 0;
	char line[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "CapEff:", 7) == 0)
			had = strtoull(line + 7, NULL, 16);
	if (file != NULL)
		fclose(file);
	return geteuid() == 0 && (had & wanted) == wanted;
}

/* In a child: 0, or the number of the first line that does not hold. */
static int look_at_what_is_left(const char *name)
{
#define HOLDS(condition)                        \
	do {                                    \
		if (!(condition))               \
			return __LINE__ & 0x7f; \
	} while (0)
	struct mrcd_privilege_user user;
	gid_t groups[2];
	int fd;

	HOLDS(mrcd_privilege_find(name, &user) == 0);
	HOLDS(mrcd_privilege_drop(&user) == 0);
	HOLDS(getuid() == user.uid && geteuid() == user.uid && getgid() == user.gid);
	HOLDS(getgroups(2, groups) == 1 && groups[0] == user.gid);
	HOLDS(status_says("CapEff", KEPT) && status_says("CapPrm", KEPT));
	HOLDS(status_says("CapBnd", KEPT) && status_says("CapInh", "0000000000000000"));
	HOLDS(status_says("NoNewPrivs", "1"));
	/* No way back, and nothing of root's. */
	HOLDS(setuid(0) < 0 && errno == EPERM);
	HOLDS(open("/etc/shadow", O_RDONLY) < 0 && errno == EACCES);
	/* What rails want. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	HOLDS(fd >= 0);
	HOLDS(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof("lo")) == 0);
	return 0;
}

static void root_is_given_up_for_good(void **state)
{
	pid_t pid;
	int status;

	pid = fork();
	if (pid == 0)
		_exit(look_at_what_is_left("nobody"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != 0)
		fail_msg("line %d (or 128 more) does not hold", WEXITSTATUS(status));
}

static void a_user_that_is_not_there_is_told(void **state)
{
	struct mrcd_privilege_user user;

	assert_int_equal(mrcd_privilege_find("no-such-user-here", &user), -ENOENT);
	assert_int_equal(mrcd_privilege_find("root", &user), 0);
	assert_int_equal(user.uid, 0);
	assert_string_equal(user.name, "root");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_is_given_up_for_good),
		cmocka_unit_test(a_user_that_is_not_there_is_told),
	};

	if (!capabilities_suffice()) {
		puts("skipped: giving root up takes root, with CAP_SETUID, CAP_SETGID, "
		     "CAP_SETPCAP, "
		     "CAP_NET_RAW and CAP_IPC_LOCK");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
