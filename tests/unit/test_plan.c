/* SPDX-License-Identifier: BSD-2-Clause */
/* What is different between two configurations, and what comes of each difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_conf_keys.h"
#include "mrcd_conf_load.h"
#include "mrcd_plan.h"

static char dir[] = "/tmp/mrcd-test-XXXXXX";

#define TOP "host: a\nkey-file: old\n"
#define RAILS                                 \
	"rails:\n"                            \
	"  - {name: r0, address: 10.0.0.1}\n" \
	"  - {name: r1, address: 10.1.0.1}\n"
#define PEERS                                                                                    \
	"peers:\n"                                                                               \
	"  - {name: b, paths: [{rail: r0, address: 10.0.0.2}, {rail: r1, address: 10.1.0.2}]}\n" \
	"  - {name: c, paths: [{rail: r0, address: 10.0.0.3}]}\n"

static void say(void *context, const char *line)
{
	fail_msg("%s", line);
}

static struct mrcd_conf *conf_of(const char *text)
{
	struct mrcd_conf *conf;
	char file[64];

	snprintf(file, sizeof(file), "%s/mrcd.yaml", dir);
	assert_int_equal(mrcd_conf_load_text(file, text, strlen(text), say, NULL, &conf), 0);
	return conf;
}

/* "added: rail r3; ..." of going from one text to another. */
static void plan_is(const char *old_text, const char *new_text, const char *want)
{
	struct mrcd_conf *old = conf_of(old_text), *fresh = conf_of(new_text);
	struct mrcd_plan plan;
	char text[1024];

	assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
	assert_string_equal(mrcd_plan_text(&plan, text, sizeof(text)), want);
	mrcd_plan_fini(&plan);
	mrcd_conf_free(old);
	mrcd_conf_free(fresh);
}

static int setup(void **state)
{
	static const char *const names[] = {"old", "new"};
	char file[64];

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < MRC_ARRAY_LEN(names); i++) {
		FILE *key;

		snprintf(file, sizeof(file), "%s/%s", dir, names[i]);
		key = fopen(file, "w");
		assert_non_null(key);
		fprintf(key, "a key that is called %s.\n", names[i]);
		fclose(key);
		assert_int_equal(chmod(file, 0600), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	char file[64];

	snprintf(file, sizeof(file), "%s/old", dir);
	unlink(file);
	snprintf(file, sizeof(file), "%s/new", dir);
	unlink(file);
	return rmdir(dir);
}

static void what_is_different_is_told_by_name(void **state)
{
	static const struct {
		const char *name, *old_text, *new_text, *want;
	} rows[] = {
		{"nothing", TOP RAILS PEERS, TOP RAILS PEERS, ""},
		{"comments and order", TOP RAILS PEERS,
		 "# new\n" TOP
		 "rails: [{name: r1, address: 10.1.0.1}, {name: r0, address: 10.0.0.1}]\n" PEERS,
		 ""},
		{"a rail more, and a path over it", TOP RAILS PEERS,
		 TOP RAILS "  - {name: r2, address: 10.2.0.1}\n" PEERS
			   "  - {name: d, paths: [{rail: r2, address: 10.2.0.4}]}\n",
		 "added: rail r2, peer d"},
		{"a rail less", TOP RAILS PEERS,
		 TOP "rails: [{name: r0, address: 10.0.0.1}]\n"
		     "peers:\n"
		     "  - {name: b, paths: [{rail: r0, address: 10.0.0.2}]}\n"
		     "  - {name: c, paths: [{rail: r0, address: 10.0.0.3}]}\n",
		 "removed: rail r1, path b over r1 to 10.1.0.2:7471"},
		{"a rail in place", TOP RAILS PEERS,
		 TOP "rails:\n"
		     "  - {name: r0, address: 10.0.0.1, speed: 1Gb/s, drained: true}\n"
		     "  - {name: r1, address: 10.1.0.1}\n" PEERS,
		 "changed: rail r0"},
		{"a rail anew", TOP RAILS PEERS,
		 TOP "rails:\n"
		     "  - {name: r0, address: 10.0.0.1, speed: 1Gb/s, port: 7000}\n"
		     "  - {name: r1, address: 10.1.0.1}\n" PEERS,
		 "opened anew: rail r0"},
		{"a port of the device", TOP "rails: [{name: r0, device: x}]\n",
		 TOP "rails: [{name: r0, device: x/2}]\n", MRC_VERBS ? "opened anew: rail r0" : ""},
		{"the port of all", TOP RAILS PEERS, TOP "listen-port: 7000\n" RAILS PEERS,
		 "added: path b over r0 to 10.0.0.2:7000, path b over r1 to 10.1.0.2:7000, "
		 "path c over r0 to 10.0.0.3:7000; "
		 "removed: path b over r0 to 10.0.0.2:7471, path b over r1 to 10.1.0.2:7471, "
		 "path c over r0 to 10.0.0.3:7471; "
		 "changed: key listen-port; opened anew: rail r0, rail r1"},
		{"another address of a peer", TOP RAILS PEERS,
		 TOP RAILS "peers:\n"
			   "  - {name: c, paths: [{rail: r0, address: 10.0.0.9}]}\n"
			   "  - {name: b, paths: [{rail: r1, address: 10.1.0.2}, {rail: r0, "
			   "address: 10.0.0.2}]}\n",
		 "added: path c over r0 to 10.0.0.9:7471; "
		 "removed: path c over r0 to 10.0.0.3:7471"},
		{"another version of IP",
		 TOP "rails: [{name: r0, interface: x}]\n"
		     "peers: [{name: c, paths: [{rail: r0, address: 10.0.0.3}]}]\n",
		 TOP "rails: [{name: r0, interface: x}]\n"
		     "peers: [{name: c, paths: [{rail: r0, address: \"fd00::3\"}]}]\n",
		 "added: path c over r0 to [fd00::3]:7471; "
		 "removed: path c over r0 to 10.0.0.3:7471"},
		{"a peer less", TOP RAILS PEERS,
		 TOP RAILS "peers: [{name: c, paths: [{rail: r0, address: 10.0.0.3}]}]\n",
		 "removed: peer b"},
		{"keys of all", TOP RAILS PEERS, "host: a\nkey-file: new\n" RAILS PEERS,
		 "changed: peer b, peer c"},
		{"encryption of all", TOP RAILS PEERS, TOP "encryption: preferred\n" RAILS PEERS,
		 "waits for a restart: peer b, peer c, key encryption"},
		{"services", TOP "services: [{name: x}, {name: y, users: [0]}, {name: z}]\n",
		 TOP "services: [{name: y, users: [1]}, {name: z}, {name: w}]\n",
		 "added: service w; removed: service x; changed: service y"},
		{"a right to listen alone", TOP "services: [{name: y, users: [0]}]\n",
		 TOP "services: [{name: y, users: [0], listen-users: [1]}]\n",
		 "changed: service y"},
		{"quotas", TOP "quotas: [{users: [0], weight: 7}, {users: [1], weight: 8}]\n",
		 TOP "quotas: [{users: [1], weight: 8}, {users: [0], weight: 7}]\n",
		 "changed: quotas"},
		{"a quota more", TOP "quotas: [{users: [0], weight: 7}]\n",
		 TOP "quotas: [{users: [0], weight: 7}, {weight: 8}]\n", "changed: quotas"},
		{"several", TOP RAILS PEERS,
		 TOP "user: root\nlimits: {frag-max: 8KiB}\ntimers: {probe-interval: 30ms}\n"
		     "log: {level: debug}\n" RAILS PEERS,
		 "changed: key timers.probe-interval, key log.level; "
		 "waits for a restart: key user, key limits.frag-max"},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		print_message("%s\n", rows[i].name);
		plan_is(rows[i].old_text, rows[i].new_text, rows[i].want);
	}
}

static void a_change_says_from_what_to_what(void **state)
{
	struct mrcd_conf *old = conf_of(TOP RAILS PEERS);
	struct mrcd_conf *fresh =
		conf_of("host: z\nkey-file: old\ntimers: {probe-interval: 30ms}\nmetrics: "
			"{enabled: false}\n"
			"rails: [{name: r0, address: 10.0.0.1, speed: 1Gb/s, drained: true}, "
			"{name: r1, address: 10.1.0.1}]\n" PEERS);
	static const struct {
		const char *action, *what, *name, *detail;
	} want[] = {
		{"changed", "rail", "r0", "speed, drained"},
		{"waits for a restart", "key", "host", "\"z\", was \"a\""},
		{"changed", "key", "timers.probe-interval", "30ms, was 20ms"},
		{"changed", "key", "metrics.enabled", "false, was true"},
	};
	struct mrcd_plan plan;
	json_t *items;

	assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
	items = mrcd_plan_json(&plan);
	assert_int_equal(json_array_size(items), MRC_ARRAY_LEN(want));
	for (size_t i = 0; i < MRC_ARRAY_LEN(want); i++) {
		const char *action, *what, *name, *detail;

		assert_int_equal(json_unpack(json_array_get(items, i), "{s:s s:s s:s s:s !}",
					     "action", &action, "what", &what, "name", &name,
					     "detail", &detail),
				 0);
		assert_string_equal(action, want[i].action);
		assert_string_equal(what, want[i].what);
		assert_string_equal(name, want[i].name);
		assert_string_equal(detail, want[i].detail);
	}
	json_decref(items);
	assert_true(plan.is_listener_moved);
	assert_false(plan.is_log_changed);
	assert_int_equal(plan.rails_same, 1);
	assert_int_equal(plan.peers_same, 2);
	mrcd_plan_fini(&plan);
	mrcd_conf_free(old);
	mrcd_conf_free(fresh);
}

/* The table says of each key whether a reload takes it: no key is forgotten, and each is as it says. */
static void every_key_is_taken_or_waits_as_the_table_says(void **state)
{
	struct mrcd_conf *old = conf_of(TOP RAILS);
	uint32_t count = 0;

	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		bool is_rail = key->section == MRCD_SECTION_RAIL && strcmp(key->name, "name") != 0;
		struct mrcd_conf *fresh = conf_of(TOP RAILS);
		enum mrcd_plan_action want = MRCD_PLAN_CHANGED;
		struct mrcd_plan plan;
		uint8_t *field;

		if (key->taken == MRCD_TAKEN_RESTART)
			want = MRCD_PLAN_WAITS;
		else if (is_rail && key->taken == MRCD_TAKEN_ANEW)
			want = MRCD_PLAN_ANEW;
		field = (uint8_t *)(is_rail ? (void *)&fresh->rails[0] : (void *)fresh) +
			key->offset;
		if (key->size_bytes == 0 ||
		    (!is_rail &&
		     (key->section == MRCD_SECTION_RAIL || key->section == MRCD_SECTION_PEER ||
		      key->section == MRCD_SECTION_PATH || key->section == MRCD_SECTION_SERVICE ||
		      key->section == MRCD_SECTION_QUOTA))) {
			mrcd_conf_free(fresh);
			continue;
		}
		field[0] ^= 1;
		assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
		if (plan.item_count != 1 || plan.items[0].action != want)
			fail_msg("%s.%s: %u differences, the first %s",
				 mrcd_conf_section_written(key->section), key->name,
				 plan.item_count,
				 plan.item_count > 0 ? mrcd_plan_action_name(plan.items[0].action)
						     : "none");
		/* What waits is as it was, so that the next reload says so again. */
		mrcd_plan_hold_back(&plan, old, fresh);
		mrcd_plan_fini(&plan);
		assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
		assert_int_equal(plan.item_count, want == MRCD_PLAN_WAITS ? 0 : 1);
		mrcd_plan_fini(&plan);
		mrcd_conf_free(fresh);
		count++;
	}
	assert_true(count > 50);
	mrcd_conf_free(old);
}

static void encryption_of_a_peer_that_is_there_is_held_back(void **state)
{
	struct mrcd_conf *old = conf_of(TOP RAILS PEERS);
	struct mrcd_conf *fresh =
		conf_of(TOP "encryption: preferred\n" RAILS PEERS
			    "  - {name: d, paths: [{rail: r0, address: 10.0.0.4}]}\n");
	struct mrcd_conf_peer first = fresh->peers[0];
	struct mrcd_plan plan;

	/* They need not be in the same order: c, b, d. */
	fresh->peers[0] = fresh->peers[1];
	fresh->peers[1] = first;
	old->peers[1].encryption = MRCD_ENCRYPTION_REQUIRED;
	assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
	mrcd_plan_hold_back(&plan, old, fresh);
	mrcd_plan_fini(&plan);
	assert_int_equal(fresh->encryption, MRCD_ENCRYPTION_OFF);
	assert_int_equal(fresh->peers[0].encryption, MRCD_ENCRYPTION_REQUIRED);
	assert_int_equal(fresh->peers[1].encryption, MRCD_ENCRYPTION_OFF);
	assert_int_equal(fresh->peers[2].encryption, MRCD_ENCRYPTION_PREFERRED);
	mrcd_conf_free(old);
	mrcd_conf_free(fresh);
}

static void a_long_plan_is_cut_off_and_not_run_over(void **state)
{
	struct mrcd_conf *old = conf_of(TOP RAILS), *fresh = conf_of(TOP RAILS PEERS);
	struct mrcd_plan plan;
	char text[16];

	assert_int_equal(mrcd_plan_make(old, fresh, &plan), 0);
	for (size_t size = 1; size <= sizeof(text); size++) {
		memset(text, '!', sizeof(text));
		assert_int_equal(strlen(mrcd_plan_text(&plan, text, size)), size - 1);
		assert_true(size == sizeof(text) || text[size] == '!');
	}
	mrcd_plan_fini(&plan);
	mrcd_conf_free(old);
	mrcd_conf_free(fresh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_different_is_told_by_name),
		cmocka_unit_test(a_change_says_from_what_to_what),
		cmocka_unit_test(every_key_is_taken_or_waits_as_the_table_says),
		cmocka_unit_test(encryption_of_a_peer_that_is_there_is_held_back),
		cmocka_unit_test(a_long_plan_is_cut_off_and_not_run_over),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
