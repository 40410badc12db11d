/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_log: one whole line per call, levels, the journal's form, the limit. */
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc_base.h"
#include "mrcd_log.h"

/* stderr goes into a file of memory while a test runs; cmocka's own words come after. */
struct catch
{
	int stderr_before;
	int fd;
};

static void catch_begin(struct catch *c)
{
	char path[64];
	int appending;

	c->fd = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(c->fd >= 0);
	c->stderr_before = dup(STDERR_FILENO);
	/* Appending, as a shell's >> and a pipe do: a memfd's own offset is not safe between threads. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->fd);
	appending = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(appending >= 0);
	assert_int_equal(dup2(appending, STDERR_FILENO), STDERR_FILENO);
	close(appending);
}

/* What was written, malloc'ed. */
static char *catch_end(struct catch *c)
{
	struct stat st;
	char *text;

	assert_int_equal(dup2(c->stderr_before, STDERR_FILENO), STDERR_FILENO);
	close(c->stderr_before);
	assert_int_equal(fstat(c->fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(c->fd, text, (size_t)st.st_size, 0), st.st_size);
	close(c->fd);
	return text;
}

static void log_line_has_time_level_and_text(void **state)
{
	struct catch c;
	unsigned y, mo, d, h, mi, s, ms;
	int end = 0;
	char *text;

	unsetenv("JOURNAL_STREAM");
	catch_begin(&c);
	mrcd_log_init(LOG_INFO);
	mrcd_warn("rail %d is down", 2);
	text = catch_end(&c);
	assert_int_equal(sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ%n", &y, &mo, &d, &h, &mi, &s,
				&ms, &end),
			 7);
	assert_string_equal(text + end, " mrcd warning: rail 2 is down\n");
	free(text);
}

static void log_keeps_back_what_is_above_the_level(void **state)
{
	struct catch c;
	char *text;

	catch_begin(&c);
	mrcd_log_init(LOG_NOTICE);
	mrcd_info("one");
	mrcd_notice("two");
	mrcd_log_set_level(LOG_DEBUG);
	mrcd_debug("three");
	mrcd_log_set_level(LOG_ERR);
	mrcd_warn("four");
	mrcd_err("five");
	text = catch_end(&c);
	assert_null(strstr(text, "one"));
	assert_non_null(strstr(text, "notice: two"));
	assert_non_null(strstr(text, "debug: three"));
	assert_null(strstr(text, "four"));
	assert_non_null(strstr(text, "error: five"));
	free(text);
}

static void log_gives_the_journal_priorities_only_when_stderr_is_it(void **state)
{
	char stream[64];
	struct stat st;
	struct catch c;
	char *text;

	catch_begin(&c);
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	mrcd_log_init(LOG_INFO);
	mrcd_err("bad");
	mrcd_info("good");
	/* The same variable, but stderr was redirected since. */
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	mrcd_log_init(LOG_INFO);
	mrcd_info("elsewhere");
	setenv("JOURNAL_STREAM", "nonsense", 1);
	mrcd_log_init(LOG_INFO);
	mrcd_info("odd");
	unsetenv("JOURNAL_STREAM");
	mrcd_log_init(LOG_INFO);
	text = catch_end(&c);
	assert_memory_equal(text, "<3>bad\n<6>good\n", 15);
	assert_non_null(strstr(text, "mrcd info: elsewhere\n"));
	assert_non_null(strstr(text, "mrcd info: odd\n"));
	free(text);
}

static void log_line_cannot_be_split_by_what_it_quotes(void **state)
{
	struct catch c;
	char *text;

	catch_begin(&c);
	mrcd_err("host 'a\n<0>forged\r\t\x1b[31m\x7f'");
	text = catch_end(&c);
	assert_non_null(strstr(text, "host 'a?<0>forged???[31m?'\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
}

static void log_line_too_long_is_cut_and_says_so(void **state)
{
	char big[5000];
	struct catch c;
	char *text;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	catch_begin(&c);
	mrcd_err("%s", big);
	text = catch_end(&c);
	assert_int_equal(strlen(text), 1024);
	assert_string_equal(text + 1024 - 5, "x...\n");
	free(text);
}

static void log_keeps_errno_and_knows_percent_m(void **state)
{
	struct catch c;
	char *text;

	catch_begin(&c);
	errno = ENOENT;
	mrcd_err("open: %m");
	assert_int_equal(errno, ENOENT);
	text = catch_end(&c);
	assert_non_null(strstr(text, "open: No such file or directory\n"));
	free(text);
}

static void log_without_a_stderr_does_no_harm(void **state)
{
	int before = dup(STDERR_FILENO);

	close(STDERR_FILENO);
	errno = 0;
	mrcd_err("nobody reads this");
	assert_int_equal(errno, 0);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
}

/* A pipe in packet mode gives back one write(2) per read(2). */
static void log_line_is_one_write(void **state)
{
	int before = dup(STDERR_FILENO), fds[2];
	char line[2048];
	ssize_t len;

	assert_int_equal(pipe2(fds, O_DIRECT | O_CLOEXEC), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	mrcd_err("first");
	mrcd_err("second");
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	close(fds[1]);
	len = read(fds[0], line, sizeof(line) - 1);
	assert_true(len > 0);
	line[len] = 0;
	assert_non_null(strstr(line, "error: first\n"));
	len = read(fds[0], line, sizeof(line) - 1);
	assert_true(len > 0);
	line[len] = 0;
	assert_non_null(strstr(line, "error: second\n"));
	assert_int_equal(read(fds[0], line, sizeof(line)), 0);
	close(fds[0]);
}

#define THREADS 4
#define LINES   200

static void *thread_main(void *arg)
{
	for (int i = 0; i < LINES; i++)
		mrcd_err("%s", (const char *)arg);
	return NULL;
}

static void log_lines_of_threads_do_not_mix(void **state)
{
	static char texts[THREADS][301];
	pthread_t threads[THREADS];
	int lines = 0;
	struct catch c;
	char *text, *line, *save = NULL;

	catch_begin(&c);
	for (int t = 0; t < THREADS; t++) {
		memset(texts[t], 'a' + t, sizeof(texts[t]) - 1);
		assert_int_equal(pthread_create(&threads[t], NULL, thread_main, texts[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	text = catch_end(&c);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *said = strstr(line, "error: ");

		assert_non_null(said);
		said += strlen("error: ");
		assert_true(said[0] >= 'a' && said[0] < 'a' + THREADS);
		assert_string_equal(said, texts[said[0] - 'a']);
		lines++;
	}
	assert_int_equal(lines, THREADS * LINES);
	free(text);
}

static void log_limit_holds_back_and_counts(void **state)
{
	struct mrcd_log_limit limit = MRCD_LOG_LIMIT_INIT(10, 2);
	static const struct {
		uint64_t now_ns;
		bool is_allowed;
		uint64_t suppressed;
	} rows[] = {
		{100, true, 0},  {101, true, 0}, {102, false, 0}, {109, false, 0},
		{110, true, 2},  {110, true, 0}, {119, false, 0}, {120, true, 1},
		{1000, true, 0}, {1, true, 0}, /* a clock that went back opens a window, too */
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint64_t suppressed = 0;

		if (mrcd_log_allowed(&limit, rows[i].now_ns, &suppressed) != rows[i].is_allowed ||
		    suppressed != rows[i].suppressed)
			fail_msg("row %zu: suppressed %llu", i, (unsigned long long)suppressed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_line_has_time_level_and_text),
		cmocka_unit_test(log_keeps_back_what_is_above_the_level),
		cmocka_unit_test(log_gives_the_journal_priorities_only_when_stderr_is_it),
		cmocka_unit_test(log_line_cannot_be_split_by_what_it_quotes),
		cmocka_unit_test(log_line_too_long_is_cut_and_says_so),
		cmocka_unit_test(log_keeps_errno_and_knows_percent_m),
		cmocka_unit_test(log_without_a_stderr_does_no_harm),
		cmocka_unit_test(log_line_is_one_write),
		cmocka_unit_test(log_lines_of_threads_do_not_mix),
		cmocka_unit_test(log_limit_holds_back_and_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
