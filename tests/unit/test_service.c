/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_service: how names look, and who offers them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_service.h"

#define N63 "123456789012345678901234567890123456789012345678901234567890123"

static void name_is_judged_by_its_bytes(void **state)
{
	static const struct {
		const char *name;
		bool want;
	} cases[] = {
		{"a", true},      {"A.b_c-9", true}, {N63, true},    {"", false},
		{N63 "4", false}, {"a b", false},    {"a/b", false}, {"\xc3\xa4", false},
		{"a\n", false},   {"*", false},
	};
	char unended[4] = {'a', 'b', 'c', 'd'};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++)
		if (mrcd_name_is_valid(cases[i].name, strlen(cases[i].name) + 1) != cases[i].want)
			fail_msg("'%s' was judged wrongly", cases[i].name);
	assert_false(mrcd_name_is_valid(unended, sizeof(unended)));
}

static void target_is_taken_apart_or_refused(void **state)
{
	static const struct {
		const char *target, *host, *service; /* host NULL: refused */
	} cases[] = {
		{"b/perf", "b", "perf"},
		{N63 "/" N63, N63, N63},
		{"b.example/x-1", "b.example", "x-1"},
		{"", NULL, NULL},
		{"b", NULL, NULL},
		{"/perf", NULL, NULL},
		{"b/", NULL, NULL},
		{"/", NULL, NULL},
		{"b/c/d", NULL, NULL},
		{"b//d", NULL, NULL},
		{N63 "4/x", NULL, NULL},
		{"x/" N63 "4", NULL, NULL},
		{"a b/x", NULL, NULL},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		char target[136] = {0}, host[MRC_NAME_MAX + 1] = "?",
		     service[MRC_NAME_MAX + 1] = "?";
		int r;

		snprintf(target, sizeof(target), "%s", cases[i].target);
		r = mrcd_target_parse(target, sizeof(target), host, service);
		if (r != (cases[i].host == NULL ? -EINVAL : 0))
			fail_msg("'%s' answers %d", target, r);
		assert_string_equal(host, r == 0 ? cases[i].host : "?");
		assert_string_equal(service, r == 0 ? cases[i].service : "?");
	}
}

static void target_without_end_is_refused(void **state)
{
	char target[8] = {'b', '/', 'p', 'p', 'p', 'p', 'p', 'p'};
	char host[MRC_NAME_MAX + 1], service[MRC_NAME_MAX + 1];

	assert_int_equal(mrcd_target_parse(target, sizeof(target), host, service), -EINVAL);
}

/* More names than buckets, so that some share one. */
static void services_are_found_until_removed(void **state)
{
	enum { COUNT = 600 };
	static struct mrcd_service offered[COUNT];
	struct mrcd_services services = {0};
	struct mrcd_service again = {0};

	for (int i = 0; i < COUNT; i++) {
		snprintf(offered[i].name, sizeof(offered[i].name), "s%d", i);
		assert_int_equal(mrcd_services_add(&services, &offered[i]), 0);
	}
	snprintf(again.name, sizeof(again.name), "s7");
	assert_int_equal(mrcd_services_add(&services, &again), -EEXIST);
	assert_int_equal(services.count, COUNT);
	for (int i = 0; i < COUNT; i += 2)
		mrcd_services_remove(&services, &offered[i]);
	for (int i = 0; i < COUNT; i++)
		assert_ptr_equal(mrcd_services_find(&services, offered[i].name),
				 i % 2 == 0 ? NULL : &offered[i]);
	assert_null(mrcd_services_find(&services, "none"));
	mrcd_services_remove(&services, &offered[7]);
	assert_int_equal(mrcd_services_add(&services, &again), 0);
	assert_ptr_equal(mrcd_services_find(&services, "s7"), &again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_is_judged_by_its_bytes),
		cmocka_unit_test(target_is_taken_apart_or_refused),
		cmocka_unit_test(target_without_end_is_refused),
		cmocka_unit_test(services_are_found_until_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
