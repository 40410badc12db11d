/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file read off the loop: in order, each once, whatever is asked meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "mrcd_log.h"
#include "mrcd_reading.h"
#include "mrcd_worker.h"

static struct {
	struct mrcd_worker worker;
	char file[64];
	char hosts[8][MRC_NAME_MAX + 1]; /* of what was read, in that order; "": it had errors */
	uint32_t count;
	char error[512];
} stage;

static void file_write(const char *text)
{
	FILE *file = fopen(stage.file, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	memset(&stage, 0, sizeof(stage));
	mrcd_log_init(LOG_CRIT);
	strcpy(stage.file, "/tmp/mrcd-test-XXXXXX");
	close(mkstemp(stage.file));
	stage.worker.base = event_base_new();
	assert_non_null(stage.worker.base);
	return 0;
}

static int teardown(void **state)
{
	mrcd_readings_free(stage.worker.readings);
	event_base_free(stage.worker.base);
	unlink(stage.file);
	return 0;
}

static void on_read(void *context, struct mrcd_reading *reading)
{
	assert_int_equal(context == NULL, false);
	assert_true((reading->r == 0) == (reading->conf != NULL));
	if (reading->conf != NULL)
		strcpy(stage.hosts[stage.count], reading->conf->host);
	stage.count++;
	memcpy(stage.error, reading->error, sizeof(stage.error));
	mrcd_conf_free(reading->conf);
	/* What the next one reads is what this one has left. */
	file_write(stage.count == 1 ? "host: second\n" : "host: [\n");
}

static void ask(uint32_t times)
{
	while (times-- > 0)
		assert_int_equal(mrcd_reading_ask(&stage.worker, stage.file, on_read, &stage), 0);
}

static void files_are_read_one_after_the_other(void **state)
{
	file_write("host: first\n");
	ask(3);
	assert_int_equal(stage.count, 0); /* never from within the call */
	while (stage.count < 3)
		event_base_loop(stage.worker.base, EVLOOP_ONCE);
	assert_string_equal(stage.hosts[0], "first");
	assert_string_equal(stage.hosts[1], "second");
	assert_string_equal(stage.hosts[2], "");
	assert_non_null(strstr(stage.error, stage.file));
}

static void who_waits_at_the_end_is_called(void **state)
{
	file_write("host: first\n");
	ask(2);
	mrcd_readings_free(stage.worker.readings);
	stage.worker.readings = NULL;
	assert_int_equal(stage.count, 2);
}

static void what_cannot_be_read_is_told(void **state)
{
	struct mrcd_reading reading;

	mrcd_reading_now("/nonexistent/mrcd.yaml", &reading);
	assert_int_equal(reading.r, -ENOENT);
	assert_null(reading.conf);
	assert_non_null(strstr(reading.error, "/nonexistent/mrcd.yaml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_read_one_after_the_other, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_waits_at_the_end_is_called, setup, teardown),
		cmocka_unit_test(what_cannot_be_read_is_told),
	};

	mrcd_log_init(LOG_CRIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
