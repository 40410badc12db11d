/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration that is read again: keys come into force, the rest waits, an error changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_auth.h"
#include "mrcd_log.h"
#include "mrcd_reload.h"

#define OLD "the old key, 22 bytes."
#define NEW "another and a new key."

struct stage {
	char dir[64];
	char file[96];
	struct mrcd_conf *conf;
};

static void file_write(const struct stage *stage, const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", stage->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* `top`: keys of the whole; `peer`: more keys of peer c. */
static void conf_write(const struct stage *stage, const char *top, const char *peer)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "host: a\n%s\n"
		 "rails: [{name: r0, address: 10.0.0.1}]\n"
		 "peers:\n"
		 "  - {name: b, paths: [{rail: r0, address: 10.0.0.2}]}\n"
		 "  - {name: c, paths: [{rail: r0, address: 10.0.0.3}]%s}\n",
		 top, peer);
	file_write(stage, "mrcd.yaml", text);
}

static void say(void *context, const char *line)
{
	fail_msg("%s", line);
}

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	mrcd_log_init(LOG_CRIT);
	strcpy(stage->dir, "/tmp/mrcd-test-XXXXXX");
	assert_non_null(mkdtemp(stage->dir));
	snprintf(stage->file, sizeof(stage->file), "%s/mrcd.yaml", stage->dir);
	file_write(stage, "old", OLD "\n");
	file_write(stage, "new", NEW "\n");
	conf_write(stage, "key-file: old", "");
	assert_int_equal(mrcd_conf_load(stage->file, say, NULL, &stage->conf), 0);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"mrcd.yaml", "old", "new"};
	struct stage *stage = *state;
	char path[160];

	for (size_t i = 0; i < MRC_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", stage->dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(stage->dir), 0);
	mrcd_conf_free(stage->conf);
	free(stage);
	return 0;
}

/* Whether a peer's keys are these, in this order. "" : none. */
static void keys_are(const struct mrcd_conf_peer *peer, const char *first, const char *second)
{
	const char *const want[] = {first, second};
	uint32_t count = (first[0] != '\0') + (second[0] != '\0');

	assert_int_equal(peer->key_count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(peer->keys[i].len_bytes, strlen(want[i]));
		assert_memory_equal(peer->keys[i].bytes, want[i], strlen(want[i]));
	}
}

static void keys_are_changed_in_three_steps(void **state)
{
	static const struct {
		const char *top, *first, *second, *file_first, *file_second;
	} steps[] = {
		{"key-file: [old, new]", OLD, NEW, "old", "new"},
		{"key-file: [new, old]", NEW, OLD, "new", "old"},
		{"key-file: new", NEW, "", "new", ""},
	};
	struct stage *stage = *state;
	struct mrcd_reload reload;

	for (size_t i = 0; i < MRC_ARRAY_LEN(steps); i++) {
		conf_write(stage, steps[i].top, "");
		assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
		assert_string_equal(reload.changed, "keys of 2 peers");
		assert_string_equal(reload.waiting, "");
		for (uint32_t p = 0; p < 2; p++) {
			keys_are(&stage->conf->peers[p], steps[i].first, steps[i].second);
			assert_string_equal(stage->conf->peers[p].keys[0].file,
					    steps[i].file_first);
			assert_string_equal(stage->conf->peers[p].keys[1].file,
					    steps[i].file_second);
		}
	}
	assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
	assert_string_equal(reload.changed, "");
}

static void another_key_in_the_same_file_is_another_key(void **state)
{
	struct stage *stage = *state;
	char id_before[MRCD_KEY_ID_BYTES];
	struct mrcd_reload reload;

	strcpy(id_before, stage->conf->peers[0].keys[0].id);
	file_write(stage, "old", NEW "\n");
	assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
	keys_are(&stage->conf->peers[0], NEW, "");
	assert_string_not_equal(stage->conf->peers[0].keys[0].id, id_before);
}

static void a_peer_can_be_given_a_key_of_its_own(void **state)
{
	struct stage *stage = *state;
	struct mrcd_reload reload;

	conf_write(stage, "key-file: old", ", key-file: new");
	assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
	assert_string_equal(reload.changed, "keys of 1 peer");
	keys_are(&stage->conf->peers[0], OLD, "");
	keys_are(&stage->conf->peers[1], NEW, "");
}

/* It goes with the next restart, but whoever has its key is let in no more. */
static void a_peer_that_is_taken_out_has_no_key(void **state)
{
	struct stage *stage = *state;
	struct mrcd_reload reload;

	file_write(stage, "mrcd.yaml",
		   "host: a\nkey-file: old\n"
		   "rails: [{name: r0, address: 10.0.0.1}]\n"
		   "peers: [{name: b, paths: [{rail: r0, address: 10.0.0.2}]}]\n");
	assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
	assert_string_equal(reload.changed, "keys of 1 peer");
	assert_string_equal(reload.waiting, "peers");
	keys_are(&stage->conf->peers[0], OLD, "");
	keys_are(&stage->conf->peers[1], "", "");
	assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
	assert_string_equal(reload.changed, "");
}

static void an_error_anywhere_changes_nothing(void **state)
{
	static const struct {
		const char *top, *why;
	} rows[] = {
		{"key-file: gone", "cannot be opened"},
		{"key-file: [new, gone]", "cannot be opened"},
		{"key-file: new\ncolour: blue", "unknown key"},
		{"key-file: new\nlog: {level: loud}", "is not a level"},
	};
	struct stage *stage = *state;
	struct mrcd_reload reload;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		conf_write(stage, rows[i].top, "");
		assert_int_equal(mrcd_reload(stage->conf, &reload), -EINVAL);
		assert_non_null(strstr(reload.error, rows[i].why));
		assert_string_equal(reload.changed, "");
		keys_are(&stage->conf->peers[0], OLD, "");
		keys_are(&stage->conf->peers[1], OLD, "");
	}
}

static void what_else_changed_waits_for_a_restart(void **state)
{
	static const struct {
		const char *top, *waiting;
	} rows[] = {
		{"key-file: old\nuser: root", "user"},
		{"key-file: old\nlisten-port: 7000", "listen-port, rails, peers"},
		{"key-file: old\nservices: []", "services"},
		{"key-file: old\nservices: [{name: \"*\", listen-users: [0]}]", "services"},
		{"key-file: old\nquotas: [{weight: 7}]", "quotas"},
		{"key-file: old\nclients: {sends-max: 7}", "clients"},
		{"key-file: old\ntimers: {spin: 1ms}", "limits and timers"},
	};
	struct stage *stage = *state;
	struct mrcd_reload reload;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		conf_write(stage, rows[i].top, "");
		assert_int_equal(mrcd_reload(stage->conf, &reload), 0);
		assert_string_equal(reload.waiting, rows[i].waiting);
		assert_string_equal(reload.changed, "");
	}
}

static void a_fingerprint_tells_keys_apart_and_nothing_else(void **state)
{
	struct mrcd_key key = {.len_bytes = 16}, other;

	memset(key.bytes, 'k', 16);
	mrcd_auth_key_id(&key);
	/* HMAC-SHA256, as `openssl mac` computes it. */
	assert_string_equal(key.id, "f965c6ecef12");
	other = key;
	other.bytes[15] ^= 1;
	mrcd_auth_key_id(&other);
	assert_string_not_equal(key.id, other.id);
	other = key;
	other.bytes[other.len_bytes++] = 'k'; /* but a 0 would be the same key to HMAC */
	mrcd_auth_key_id(&other);
	assert_string_not_equal(key.id, other.id);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(keys_are_changed_in_three_steps),
		TEST(another_key_in_the_same_file_is_another_key),
		TEST(a_peer_can_be_given_a_key_of_its_own),
		TEST(a_peer_that_is_taken_out_has_no_key),
		TEST(an_error_anywhere_changes_nothing),
		TEST(what_else_changed_waits_for_a_restart),
		cmocka_unit_test(a_fingerprint_tells_keys_apart_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
