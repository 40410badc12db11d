/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl drain --host: how long to wait, and what is said of what is left. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcctl_drain_options.h"
#include "mrcctl_drain_show.h"

static void a_time_is_a_whole_number_with_a_unit(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t ns;
	} cases[] = {
		{"0s", 0, 0},
		{"500ms", 0, 500000000},
		{"60s", 0, 60000000000},
		{"10min", 0, 600000000000},
		{"168h", 0, MRCCTL_DRAIN_WAIT_NS_MAX},
		{"169h", -EINVAL, 0},
		{"999999999h", -EINVAL, 0},
		{"9999999999ms", -EINVAL, 0},
		{"60", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"1.5s", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
		{"1d", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 7;
		int r = mrcctl_drain_wait_take(cases[i].text, &ns);

		if (r != cases[i].r || ns != (r == 0 ? cases[i].ns : 7))
			fail_msg("%s: %d, %llu ns", cases[i].text, r, (unsigned long long)ns);
	}
}

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static void what_is_left_is_counted_in_words(void **state)
{
	json_t *some = parse("{\"channels\":2,\"messages\":1,\"bytes\":1048576,\"programs\":3}");
	json_t *none = parse("{\"channels\":0,\"messages\":0,\"bytes\":0,\"programs\":1}");
	char text[MRCCTL_DRAIN_TEXT_BYTES];

	assert_string_equal(mrcctl_drain_text(some, text),
			    "2 channels open, 1 message (1 MiB) in flight, 3 programs attached");
	assert_string_equal(mrcctl_drain_text(none, text),
			    "0 channels open, 0 messages (0 B) in flight, 1 program attached");
	json_decref(some);
	json_decref(none);
}

static void who_is_left_is_named(void **state)
{
	json_t *channels = parse("[{\"client\":\"trainer\",\"pid\":4711,\"service\":\"grads\","
				 "\"peer\":\"b\",\"state\":\"open\",\"sent\":12,\"settled\":9},"
				 "{\"service\":\"old\",\"peer\":\"c\",\"state\":\"ended\"}]");
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	mrcctl_show_left(channels, out, false);
	fclose(out);
	assert_string_equal(text, "PROGRAM   PID  SERVICE  PEER  STATE  UNANSWERED\n"
				  "trainer  4711  grads    b     open            3\n"
				  "(ended)     -  old      c     ended           0\n");
	free(text);
	json_decref(channels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_a_whole_number_with_a_unit),
		cmocka_unit_test(what_is_left_is_counted_in_words),
		cmocka_unit_test(who_is_left_is_named),
	};

	return cmocka_run_group_tests_name("mrcctl_drain", tests, NULL, NULL);
}
