/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl doctor's judgement: a host of which everything is known and well gives no
 * finding and leaves nothing unchecked; each check is provoked by one thing that is
 * wrong there, and says so when what it judges by is not known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <net/if_arp.h>
#include <sys/socket.h>

#include "doctor_lab.h"
#include "mrcctl_doctor_daemon.h"
#include "mrcctl_doctor_judge.h"
#include "mrcctl_doctor_probe.h"
#include "mrcctl_doctor_show.h"

static const struct doctor_finding *find(const struct doctor_report *report, const char *id)
{
	for (size_t i = 0; i < report->finding_count; i++) {
		if (strcmp(report->findings[i].check->id, id) == 0)
			return &report->findings[i];
	}
	return NULL;
}

static void says(const char *id, const char *what, const char *text, const char *want)
{
	if (want != NULL && strstr(text, want) == NULL)
		fail_msg("%s: %s is \"%s\", without \"%s\"", id, what, text, want);
}

static void a_healthy_host_gives_no_finding_and_leaves_nothing_unchecked(void **state)
{
	struct doctor_facts facts;
	struct doctor_report report;

	healthy(&facts);
	doctor_judge(&facts, &report);
	for (size_t i = 0; i < report.finding_count; i++)
		fail_msg("found: %s: %s: %s", report.findings[i].check->id,
			 report.findings[i].subject, report.findings[i].seen);
	for (size_t i = 0; i < report.unchecked_count; i++)
		fail_msg("unchecked: %s: %s: %s", report.unchecked[i].check->id,
			 report.unchecked[i].subject, report.unchecked[i].seen);
	assert_true(doctor_is_healthy(&report));
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
}

static void infiniband_may_be_healthy_too(void **state)
{
	struct doctor_facts facts;
	struct doctor_report report;

	healthy(&facts);
	infiniband(&facts);
	doctor_judge(&facts, &report);
	assert_int_equal(report.finding_count, 0);
	assert_int_equal(report.unchecked_count, 0);
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
}

static void each_thing_that_is_wrong_is_found_and_named(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct doctor_finding *finding;
		struct doctor_report report;
		struct doctor_facts facts;

		healthy(&facts);
		cases[i].wrong(&facts);
		doctor_judge(&facts, &report);
		finding = find(&report, cases[i].id);
		if (finding == NULL)
			fail_msg("case %zu: %s is not found", i, cases[i].id);
		says(cases[i].id, "the subject", finding->subject, cases[i].subject);
		says(cases[i].id, "what was seen", finding->seen, cases[i].seen);
		says(cases[i].id, "the command", finding->command, cases[i].command);
		/* One thing is wrong: it is told once, and not as several. */
		for (size_t n = 0; n < report.finding_count; n++) {
			if (strcmp(report.findings[n].check->id, cases[i].id) != 0 &&
			    report.findings[n].check->severity != DOCTOR_NOTE)
				fail_msg("case %zu: %s comes with %s: %s", i, cases[i].id,
					 report.findings[n].check->id, report.findings[n].seen);
		}
		assert_int_equal(doctor_is_healthy(&report),
				 finding->check->severity == DOCTOR_NOTE);
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
	}
}

static void every_check_is_provoked_by_some_case(void **state)
{
	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		size_t n = 0;

		while (n < COUNT(cases) && strcmp(cases[n].id, doctor_checks[i].id) != 0)
			n++;
		if (n == COUNT(cases))
			fail_msg("no case provokes %s", doctor_checks[i].id);
		for (n = 0; n < i; n++)
			assert_string_not_equal(doctor_checks[n].id, doctor_checks[i].id);
	}
}

/* ---- the table in tests/README.md ---- */

#define TABLE_BEGIN "## What mrcctl doctor finds"

/* All of a file below tests/. The caller's. */
static char *file_read(const char *name)
{
	char path[512], *text;
	FILE *file;
	long len;

	snprintf(path, sizeof(path), MRC_SOURCE_DIR "/tests/%s", name);
	file = fopen(path, "re");
	if (file == NULL)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	len = ftell(file);
	assert_true(len > 0);
	rewind(file);
	text = malloc((size_t)len + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)len, file), len);
	text[len] = '\0';
	fclose(file);
	return text;
}

static bool is_check(const char *id)
{
	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		if (strcmp(doctor_checks[i].id, id) == 0)
			return true;
	}
	return false;
}

/* Each row names a file and the checks it provokes, in backticks; and what it names stands in that file. */
static void each_check_has_the_test_that_provokes_it_in_the_table(void **state)
{
	bool is_listed[DOCTOR_CHECK_COUNT] = {false};
	char *readme = file_read("README.md"), *end, *row, *rest = NULL;
	char *table = strstr(readme, TABLE_BEGIN);

	assert_non_null(table);
	table += strlen(TABLE_BEGIN);
	end = strstr(table, "\n## ");
	if (end != NULL)
		*end = '\0';
	for (row = strtok_r(table, "\n", &rest); row != NULL; row = strtok_r(NULL, "\n", &rest)) {
		char *word, *words = NULL, *test = NULL;

		if (strncmp(row, "| `", 3) != 0)
			continue;
		/* What stands between backticks is every second word. */
		(void)strtok_r(row, "`", &words);
		for (size_t n = 0; (word = strtok_r(NULL, "`", &words)) != NULL; n++) {
			if (n == 0) {
				test = file_read(word);
			} else if (n % 2 == 0) {
				if (!is_check(word) || strstr(test, word) == NULL)
					fail_msg("%s is %s", word,
						 is_check(word)
							 ? "not in the test that the table names"
							 : "no check of doctor's");
				for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++)
					is_listed[i] = is_listed[i] ||
						       strcmp(doctor_checks[i].id, word) == 0;
			}
		}
		free(test);
	}
	free(readme);
	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		if (!is_listed[i])
			fail_msg("tests/README.md names no test that provokes %s",
				 doctor_checks[i].id);
	}
}

/* Of a host about which nothing could be read nothing may be called healthy in silence. */
static void what_is_not_known_is_said_to_be_unchecked(void **state)
{
	static const char *const silent[] = {
		/* known from the daemon, or only of what the daemon says is there */
		"rail-carrier",      "driver-silent", "path-down",     "rail-drained",
		"rail-drill",        "peer-down",     "path-degraded", "peer-drained",
		"rail-type",         "shared-card",   "ipoib",         "rdma-missing",
		"rdma-gid",          "rdma-port",     "rdma-width",    "pci-link",
		"subnet-manager",    "roce-lossless", "roce-dscp",     "memlock",
		"version-rdma-core",
	};
	struct doctor_facts facts;
	struct doctor_report report;

	doctor_facts_init(&facts);
	for (int i = 0; i < 2; i++) {
		struct doctor_rail *rail = doctor_facts_rail_add(&facts);

		snprintf(rail->name, sizeof(rail->name), "r%d", i);
		rail->has_carrier = true;
	}
	strcpy(doctor_facts_peer_add(&facts)->name, "b");
	for (size_t i = 0; i < 2; i++) {
		struct doctor_path *path = doctor_facts_path_add(&facts);

		path->rail = i;
		strcpy(path->state, "GOOD");
		strcpy(path->address, "10.0.0.2");
		path->family = AF_INET;
	}
	doctor_judge(&facts, &report);
	assert_int_equal(report.finding_count, 0);
	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		bool is_said = false, may_be_silent = false;

		for (size_t n = 0; n < report.unchecked_count; n++)
			is_said = is_said || report.unchecked[n].check == &doctor_checks[i];
		for (size_t n = 0; n < COUNT(silent); n++)
			may_be_silent =
				may_be_silent || strcmp(silent[n], doctor_checks[i].id) == 0;
		if (is_said == may_be_silent)
			fail_msg("%s is %s", doctor_checks[i].id,
				 is_said ? "said to be unchecked" : "silent");
	}
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
}

static void devices_of_which_nothing_can_be_read_are_said_to_be_unchecked(void **state)
{
	static const char *const wanted[] = {"rdma-gid",       "rdma-port",     "rdma-width",
					     "subnet-manager", "roce-lossless", "roce-dscp",
					     "memlock",        "pci-link"};
	struct doctor_facts facts;
	struct doctor_report report;

	healthy(&facts);
	for (int i = 0; i < 2; i++) {
		struct doctor_rdma *rdma = &facts.rails[i].rdma;

		rdma->state[0] = rdma->rate[0] = rdma->gid_type[0] = rdma->gid_interface[0] = '\0';
		rdma->lid = rdma->sm_lid = rdma->tos = DOCTOR_UNKNOWN;
		facts.rails[i].pfc_priorities = DOCTOR_UNKNOWN;
		facts.rails[i].pci_width = DOCTOR_UNKNOWN;
	}
	strcpy(facts.rails[1].rdma.link_layer, "InfiniBand");
	strcpy(facts.rails[1].rdma.state, "4: ACTIVE");
	facts.may_lock = DOCTOR_UNKNOWN;
	doctor_judge(&facts, &report);
	for (size_t i = 0; i < COUNT(wanted); i++) {
		size_t n = 0;

		while (n < report.unchecked_count &&
		       strcmp(report.unchecked[n].check->id, wanted[i]) != 0)
			n++;
		if (n == report.unchecked_count)
			fail_msg("%s is silent", wanted[i]);
	}
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
}

/* ---- what is meant is not found ---- */

WRONG(speeds_are_configured)
{
	slower_rail(f);
	f->rails[0].speed_configured_bits_per_s = 200000000000;
	f->rails[1].speed_configured_bits_per_s = 100000000000;
}
WRONG(tcp_is_configured)
{
	strcpy(f->rails[0].type, "tcp");
	strcpy(f->paths[0].link, "tcp");
}
WRONG(capability_instead_of_limit)
{
	little_memlock(f);
	f->may_lock = 1;
}
WRONG(tcp_locks_nothing)
{
	little_memlock(f);
	for (int i = 0; i < 2; i++) {
		strcpy(f->rails[i].type, "tcp");
		strcpy(f->paths[i].link, "tcp");
		f->rails[i].rdma.device[0] = '\0';
	}
}
WRONG(loopback_is_not_open)
{
	open_port(f);
	f->ports[0].is_loopback = true;
}
WRONG(drift_within_its_error)
{
	drifting(f);
	f->peers[0].clock_error_ns[0] = f->peers[0].clock_error_ns[1] = 1000000;
}
WRONG(one_subnet_but_strict)
{
	one_subnet(f);
	f->rails[0].arp_ignore = f->rails[1].arp_ignore = 1;
}
WRONG(other_driver_other_firmware)
{
	other_firmware(f);
	strcpy(f->paths[1].about.driver, "bnxt_en");
}
WRONG(split_cable)
{
	infiniband(f);
	for (int i = 0; i < 2; i++)
		strcpy(f->rails[i].rdma.rate, "100 Gb/sec (2X HDR)");
}
WRONG(enough_huge_pages)
{
	few_huge_pages(f);
	f->huge_pages_free = 256;
}

static void what_is_meant_or_harmless_is_no_finding(void **state)
{
	static void (*const harmless[])(struct doctor_facts * f) = {
		speeds_are_configured, tcp_is_configured,           capability_instead_of_limit,
		tcp_locks_nothing,     loopback_is_not_open,        drift_within_its_error,
		one_subnet_but_strict, other_driver_other_firmware, split_cable,
		enough_huge_pages,
	};

	for (size_t i = 0; i < COUNT(harmless); i++) {
		struct doctor_facts facts;
		struct doctor_report report;

		healthy(&facts);
		harmless[i](&facts);
		doctor_judge(&facts, &report);
		if (report.finding_count > 0)
			fail_msg("case %zu: found %s: %s", i, report.findings[0].check->id,
				 report.findings[0].seen);
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
	}
}

/* ---- shown ---- */

static void shown_is(const struct doctor_facts *facts, bool is_verbose, const char *want)
{
	struct doctor_report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	doctor_judge(facts, &report);
	doctor_show(facts, &report, is_verbose, false, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
	doctor_report_fini(&report);
}

static void healthy_is_one_line(void **state)
{
	struct doctor_facts facts;
	char want[300];

	healthy(&facts);
	snprintf(want, sizeof(want), "healthy: %d checks of 2 rails and 1 peer\n",
		 DOCTOR_CHECK_COUNT);
	shown_is(&facts, false, want);
	facts.rails[1].numa_node = DOCTOR_UNKNOWN;
	snprintf(want, sizeof(want),
		 "healthy: %d checks of 2 rails and 1 peer; 1 could not be done, or not for all "
		 "(-v lists them)\n",
		 DOCTOR_CHECK_COUNT);
	shown_is(&facts, false, want);
	/* What is not known of both for one reason is said once. */
	facts.rails[0].numa_node = DOCTOR_UNKNOWN;
	facts.seconds = 0;
	snprintf(want, sizeof(want),
		 "not checked:\n"
		 "  rail-numa         rail r0 (eth0), rail r1 (eth1): the kernel knows no NUMA\n"
		 "                    node of its interface\n"
		 "  errors-rising     all counters: they were read once only\n"
		 "\n"
		 "healthy: %d checks of 2 rails and 1 peer; 2 could not be done, or not for all\n",
		 DOCTOR_CHECK_COUNT);
	shown_is(&facts, true, want);
	doctor_facts_fini(&facts);
}

static void a_finding_says_what_was_seen_why_it_matters_and_what_to_do(void **state)
{
	struct doctor_facts facts;

	healthy(&facts);
	no_carrier(&facts);
	drained(&facts);
	strcpy(facts.rails[0].interface, "eth\033[2J"); /* a driver's name may be anything */
	facts.rails[0].rdma.gid_interface[0] = '\0';
	facts.rails[0].has_carrier = false;
	shown_is(
		&facts, false,
		"error rail r0 (eth?[2J): a rail has no carrier [rail-carrier]\n"
		"  seen  no carrier\n"
		"  why   It carries nothing, and with each rail that is down fewer are left for\n"
		"        the next failure.\n"
		"  do    Look at the cable, the transceiver and the port at the other end; mrcctl\n"
		"        drain tells the daemon that it is meant.\n"
		"        ip -s link show dev eth?[2J\n"
		"\n"
		"note rail r1 (eth1): a rail is drained [rail-drained]\n"
		"  seen  drained\n"
		"  why   An operator took it out of service, and it stays out until somebody\n"
		"        gives it back.\n"
		"  do    Give it back when the work on it is done.\n"
		"        mrcctl undrain r1\n"
		"\n"
		"1 error, 0 warnings, 1 note\n");
	doctor_facts_fini(&facts);
}

static void the_object_has_all_of_it(void **state)
{
	struct doctor_facts facts;
	struct doctor_report report;
	json_t *json, *finding;

	healthy(&facts);
	no_carrier(&facts);
	facts.seconds = 0;
	strcpy(facts.rails[1].interface, "eth\xff");
	facts.rails[1].rdma.gid_interface[0] = '\0';
	doctor_judge(&facts, &report);
	json = doctor_json(&facts, &report);
	assert_non_null(json);
	assert_true(json_is_false(json_object_get(json, "healthy")));
	assert_int_equal(json_integer_value(json_object_get(json, "errors")), 1);
	assert_int_equal(json_array_size(json_object_get(json, "findings")), 1);
	finding = json_array_get(json_object_get(json, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "id")), "rail-carrier");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "error");
	assert_string_equal(json_string_value(json_object_get(finding, "subject")),
			    "rail r1 (eth?)");
	assert_int_equal(json_array_size(json_object_get(json, "not_checked")), 1);
	json_decref(json);
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_host_gives_no_finding_and_leaves_nothing_unchecked),
		cmocka_unit_test(infiniband_may_be_healthy_too),
		cmocka_unit_test(each_thing_that_is_wrong_is_found_and_named),
		cmocka_unit_test(every_check_is_provoked_by_some_case),
		cmocka_unit_test(each_check_has_the_test_that_provokes_it_in_the_table),
		cmocka_unit_test(what_is_not_known_is_said_to_be_unchecked),
		cmocka_unit_test(devices_of_which_nothing_can_be_read_are_said_to_be_unchecked),
		cmocka_unit_test(what_is_meant_or_harmless_is_no_finding),
		cmocka_unit_test(healthy_is_one_line),
		cmocka_unit_test(a_finding_says_what_was_seen_why_it_matters_and_what_to_do),
		cmocka_unit_test(the_object_has_all_of_it),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
