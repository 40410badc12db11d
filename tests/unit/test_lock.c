/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_lock: one daemon to a directory, and a lock file that is a file of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc_base.h"
#include "mrcd_lock.h"
#include "mrcd_log.h"

struct place {
	char above[32], dir[48], file[64], other[64];
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	mrcd_log_init(LOG_CRIT);
	snprintf(place->above, sizeof(place->above), "/tmp/mrc-lock-XXXXXX");
	assert_non_null(mkdtemp(place->above));
	snprintf(place->dir, sizeof(place->dir), "%s/run", place->above);
	snprintf(place->file, sizeof(place->file), "%s/mrcd.lock", place->dir);
	snprintf(place->other, sizeof(place->other), "%s/precious", place->above);
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	unlink(place->file);
	unlink(place->other);
	rmdir(place->dir);
	assert_int_equal(rmdir(place->above), 0);
	free(place);
	return 0;
}

/* What a file holds. */
static const char *words_of(const char *path, char words[64])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	assert_true(fd >= 0);
	len = read(fd, words, 63);
	assert_true(len >= 0);
	words[len] = '\0';
	close(fd);
	return words;
}

static void write_words(const char *path, const char *words)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, words, strlen(words)), strlen(words));
	close(fd);
}

static void the_second_one_is_refused_until_the_first_has_gone(void **state)
{
	const struct place *place = *state;
	char words[64], want[64];
	int fd = -1, second = -1;

	assert_int_equal(mrcd_lock_take(place->dir, NULL, &fd), 0);
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	assert_string_equal(words_of(place->file, words), want);
	assert_int_equal(mrcd_lock_take(place->dir, NULL, &second), -EBUSY);
	assert_int_equal(second, -1);
	/* The number in the file is not touched by who is refused. */
	assert_string_equal(words_of(place->file, words), want);
	close(fd);
	assert_int_equal(mrcd_lock_take(place->dir, NULL, &fd), 0);
	close(fd);
}

/* Whoever owns the directory could have the daemon write its number into a file that is root's. */
static void another_name_of_something_is_not_written(void **state)
{
	static int (*const makes[])(const char *from, const char *to) = {link, symlink};
	const struct place *place = *state;
	char words[64];
	struct stat st;
	int fd = -1;

	assert_int_equal(mkdir(place->dir, 0755), 0);
	write_words(place->other, "precious");
	for (size_t i = 0; i < MRC_ARRAY_LEN(makes); i++) {
		assert_int_equal(makes[i](place->other, place->file), 0);
		assert_int_equal(mrcd_lock_take(place->dir, NULL, &fd), -EPERM);
		assert_int_equal(fd, -1);
		assert_string_equal(words_of(place->other, words), "precious");
		assert_int_equal(unlink(place->file), 0);
	}
	assert_int_equal(mkfifo(place->file, 0600), 0);
	assert_int_equal(mrcd_lock_take(place->dir, NULL, &fd), -EPERM);
	assert_int_equal(unlink(place->file), 0);
	/* Nor is it somebody else's file now. */
	assert_int_equal(stat(place->other, &st), 0);
	assert_int_equal(st.st_uid, getuid());
	assert_int_equal(mrcd_lock_take(place->dir, NULL, &fd), 0);
	close(fd);
}

static void a_directory_that_cannot_be_made_is_said(void **state)
{
	const struct place *place = *state;
	int fd = -1;

	write_words(place->other, "");
	assert_int_equal(mrcd_lock_take("/nonexistent/run", NULL, &fd), -ENOENT);
	assert_int_equal(mrcd_lock_take(place->other, NULL, &fd), -ENOTDIR);
	assert_int_equal(fd, -1);
}

static void it_is_given_to_who_the_daemon_becomes(void **state)
{
	const struct mrcd_privilege_user user = {.name = "somebody", .uid = 64321, .gid = 64322};
	const struct place *place = *state;
	struct stat st;
	int fd = -1;

	if (geteuid() != 0) {
		print_message("only root can give files away\n");
		skip();
	}
	assert_int_equal(mrcd_lock_take(place->dir, &user, &fd), 0);
	assert_int_equal(stat(place->dir, &st), 0);
	assert_int_equal(st.st_uid, 64321);
	assert_int_equal(stat(place->file, &st), 0);
	assert_int_equal(st.st_gid, 64322);
	close(fd);
	/* One that was there has its owner already. */
	assert_int_equal(chown(place->dir, 0, 0), 0);
	assert_int_equal(mrcd_lock_take(place->dir, &user, &fd), 0);
	assert_int_equal(stat(place->dir, &st), 0);
	assert_int_equal(st.st_uid, 0);
	close(fd);
}

#define lock_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		lock_test(the_second_one_is_refused_until_the_first_has_gone),
		lock_test(another_name_of_something_is_not_written),
		lock_test(a_directory_that_cannot_be_made_is_said),
		lock_test(it_is_given_to_who_the_daemon_becomes),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
