/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two daemons on the loopback interface, one of which reads its configuration again: all of it is in
 * force, or nothing has changed, and who is not concerned feels nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrc/ring_abi.h"
#include "mrcd_auth.h"
#include "mrcd_client.h"
#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_http.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_reload.h"
#include "mrcd_renewal.h"

#define OLD        "the old key, 22 bytes."
#define NEW        "another and a new key."
#define PATIENCE_S 20

enum { A, B };

static struct stage {
	char dir[64];
	char net[32]; /* of both hosts' addresses, which no other test has: "127.3.4" */
	struct mrcd_conf *confs[2];
	struct mrcd_worker *hosts[2];
} stage;

static void file_write(const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", stage.dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/*
 * The file of host a or b. `rails`: their numbers, "01"; rail n is at NET.n+1 of a and NET.n+101 of b.
 * `top` is put before; `more` into every rail's entry.
 */
static void conf_write_more(int host, const char *rails, const char *top, const char *more)
{
	char text[4096], entries[1024] = "", paths[1024] = "", name[32];
	int own = host == A ? 1 : 101, far = host == A ? 101 : 1;
	size_t at = 0, path_at = 0;

	for (const char *r = rails; *r; r++) {
		int n = *r - '0';

		at += (size_t)
			snprintf(entries + at, sizeof(entries) - at,
				 "  - {name: r%d, type: tcp, interface: lo, address: %s.%d%s}\n", n,
				 stage.net, own + n, more);
		path_at += (size_t)snprintf(paths + path_at, sizeof(paths) - path_at,
					    "%s{rail: r%d, address: %s.%d}",
					    path_at > 0 ? ", " : "", n, stage.net, far + n);
	}
	snprintf(
		text, sizeof(text),
		"host: %s\nruntime-dir: %s/%s\n%s\nrails:\n%speers:\n  - {name: %s, paths: [%s]}\n",
		host == A ? "a" : "b", stage.dir, host == A ? "a" : "b", top, entries,
		host == A ? "b" : "a", paths);
	snprintf(name, sizeof(name), "%s.yaml", host == A ? "a" : "b");
	file_write(name, text);
}

#define QUIET "metrics: {enabled: false}\nlog: {level: error}\nkey-file: old"

static void conf_write(int host, const char *rails, const char *top)
{
	conf_write_more(host, rails, top, "");
}

static void say(void *context, const char *line)
{
	fail_msg("%s", line);
}

/* ---- running both ---- */

static void turn(void)
{
	for (int h = 0; h < 2; h++) {
		if (stage.hosts[h] != NULL)
			event_base_loop(stage.hosts[h]->base, EVLOOP_NONBLOCK);
	}
	poll(NULL, 0, 1);
}

static struct mrcd_peer *peer_of(int host)
{
	return mrcd_worker_peer(stage.hosts[host], host == A ? "b" : "a");
}

/* The path of a over this rail; false: there is none. */
static bool path_of(const char *rail, struct mrc_path_info *info_out)
{
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(peer_of(A)), &info);
	for (uint8_t i = 0; i < info.path_count; i++) {
		const struct mrcd_rail *of = mrcd_peer_path_rail(peer_of(A), i);

		if (of == NULL || strcmp(of->given.name, rail) != 0)
			continue;
		mrc_conn_path_info(mrcd_peer_conn(peer_of(A)), i, info_out);
		return true;
	}
	return false;
}

static bool is_good(const char *rail)
{
	struct mrc_path_info info;

	return path_of(rail, &info) && info.state == MRC_PATH_GOOD;
}

/* b is never cut off. */
static bool one_is_good(void)
{
	assert_true(is_good("r0") || is_good("r1"));
	return true;
}

#define UNTIL(condition)                                                       \
	do {                                                                   \
		for (int i_ = 0; !(condition); i_++) {                         \
			if (i_ > PATIENCE_S * 1000)                            \
				fail_msg("waited in vain for %s", #condition); \
			turn();                                                \
		}                                                              \
	} while (0)

/* All that a reload has begun is done. */
static bool is_done(int host)
{
	json_t *pending = mrcd_renewal_json(stage.hosts[host]);
	bool is_it = json_array_size(pending) == 0;

	json_decref(pending);
	return is_it;
}

/* As the daemon does, but at once. */
static int read_again(int host, bool is_trial, struct mrcd_reload *out)
{
	struct mrcd_reading reading;

	mrcd_reading_now(stage.confs[host]->file, &reading);
	return mrcd_reload(stage.hosts[host], &stage.confs[host], &reading, is_trial, out);
}

/* "" : it must succeed; else it must fail, with this in what it says. */
static void reload(int host, const char *why)
{
	struct mrcd_conf *before = stage.confs[host];
	struct mrcd_reload out;
	int r;

	mrcd_worker_now(stage.hosts[host]);
	r = read_again(host, false, &out);
	if (r < 0 && strstr(out.error, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, out.error);
	assert_int_equal(r, why[0] != '\0' ? -EINVAL : 0);
	assert_ptr_equal(stage.hosts[host]->conf, stage.confs[host]);
	assert_true((stage.confs[host] == before) == (r < 0));
	mrcd_reload_fini(&out);
}

static void start(int host)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", stage.dir, host == A ? "a" : "b");
	mkdir(path, 0700);
	strcat(path, ".yaml");
	assert_int_equal(mrcd_conf_load(path, say, NULL, &stage.confs[host]), 0);
	assert_int_equal(mrcd_worker_new(stage.confs[host], &stage.hosts[host]), 0);
	assert_int_equal(mrcd_worker_start(stage.hosts[host], -1, NULL), 0);
}

static void start_both(const char *rails)
{
	conf_write(A, rails, QUIET);
	conf_write(B, rails, QUIET);
	start(A);
	start(B);
	for (const char *r = rails; *r; r++) {
		char name[] = {'r', *r, '\0'};

		UNTIL(is_good(name));
	}
}

static int setup(void **state)
{
	mrcd_log_init(LOG_CRIT);
	memset(&stage, 0, sizeof(stage));
	strcpy(stage.dir, "/tmp/mrcd-test-XXXXXX");
	assert_non_null(mkdtemp(stage.dir));
	snprintf(stage.net, sizeof(stage.net), "127.%d.%d", 1 + getpid() / 250 % 250,
		 getpid() % 250);
	file_write("old", OLD "\n");
	file_write("new", NEW "\n");
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"a.yaml", "b.yaml", "old", "new"};
	char path[160];

	for (int h = 0; h < 2; h++) {
		mrcd_worker_free(stage.hosts[h]);
		mrcd_conf_free(stage.confs[h]);
	}
	for (size_t i = 0; i < MRC_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", stage.dir, names[i]);
		unlink(path);
	}
	for (int h = 0; h < 2; h++) {
		snprintf(path, sizeof(path), "%s/%s", stage.dir, h == A ? "a" : "b");
		rmdir(path);
	}
	assert_int_equal(rmdir(stage.dir), 0);
	return 0;
}

/* ---- keys ---- */

/* Whether a's keys for b are these, in this order. "" : none. */
static void keys_are(const char *first, const char *second)
{
	const char *const want[] = {first, second};
	uint32_t count;
	const struct mrcd_key *keys = mrcd_peer_keys(peer_of(A), &count);

	assert_int_equal(count, (first[0] != '\0') + (second[0] != '\0'));
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(keys[i].len_bytes, strlen(want[i]));
		assert_memory_equal(keys[i].bytes, want[i], strlen(want[i]));
	}
}

static void keys_are_changed_in_three_steps(void **state)
{
	static const struct {
		const char *top, *first, *second;
	} steps[] = {
		{"metrics: {enabled: false}\nkey-file: [old, new]", OLD, NEW},
		{"metrics: {enabled: false}\nkey-file: [new, old]", NEW, OLD},
		{"metrics: {enabled: false}\nkey-file: new", NEW, ""},
	};

	conf_write(A, "0", QUIET);
	start(A);
	keys_are(OLD, "");
	for (size_t i = 0; i < MRC_ARRAY_LEN(steps); i++) {
		conf_write(A, "0", steps[i].top);
		reload(A, "");
		keys_are(steps[i].first, steps[i].second);
	}
	/* Another key in the same file is another key. */
	file_write("new", OLD "\n");
	reload(A, "");
	keys_are(OLD, "");
}

/* ---- nothing at all ---- */

static void an_error_anywhere_changes_nothing(void **state)
{
	struct sockaddr_in taken = {.sin_family = AF_INET, .sin_port = 0};
	socklen_t taken_len = sizeof(taken);
	char busy[160], text[256];
	const struct {
		const char *rails, *top, *more, *why;
	} rows[] = {
		{"01", "key-file: gone", "", "cannot be opened"},
		{"01", "key-file: old\ncolour: blue", "", "unknown key"},
		{"01", "key-file: old\nlog: {level: loud}", "", "is not a level"},
		{"01", "key-file: old\ntimers: {probe-interval: 1h}", "", "is above 10s"},
		{"01", "key-file: old\n\tx", "", "yaml"},
		{"01", busy, "", "metrics: cannot answer at 127.0.0.1 port"},
		{"02", "key-file: old", ", port: 0", "is below 1"},
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t epoch;
	struct mrc_path_info info;

	taken.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof(taken)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&taken, &taken_len), 0);
	snprintf(busy, sizeof(busy), "key-file: new\nmetrics: {port: %u}", ntohs(taken.sin_port));
	start_both("01");
	assert_true(path_of("r0", &info));
	epoch = info.epoch;
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		conf_write_more(A, rows[i].rails, rows[i].top, rows[i].more);
		reload(A, rows[i].why);
		keys_are(OLD, "");
		assert_int_equal(mrcd_worker_rails(stage.hosts[A]), 2);
	}
	/* Host waits for a restart, and until then this is us. */
	file_write("a.yaml", "host: z\nmetrics: {enabled: false}\nkey-file: new\n"
			     "rails: [{name: r0, type: tcp, address: 127.0.0.1}]\n"
			     "peers: [{name: a, paths: [{rail: r0, address: 127.0.0.9}]}]\n");
	reload(A, "peer a has the name this host goes by");
	/* A rail that cannot be had. */
	file_write("a.yaml", "host: a\nmetrics: {enabled: false}\nkey-file: new\n"
			     "rails: [{name: r9, type: tcp, interface: no-such-one}]\n");
	reload(A, "there is no network interface no-such-one");
	file_write("a.yaml", "host: a\nmetrics: {enabled: false}\nkey-file: new\n"
			     "rails: [{name: r9, type: tcp, address: 192.0.2.77}]\n");
	reload(A, "cannot listen at 192.0.2.77 port 7471");
	/* Its address is its interface's. */
	snprintf(text, sizeof(text),
		 "host: a\nmetrics: {enabled: false}\nkey-file: new\n"
		 "rails: [{name: r9, type: tcp, interface: lo, port: %u}]\n",
		 ntohs(taken.sin_port));
	file_write("a.yaml", text);
	snprintf(text, sizeof(text), "cannot listen at lo port %u: Address already in use",
		 ntohs(taken.sin_port));
	reload(A, text);
	close(fd);
	for (int i = 0; i < 20; i++)
		turn();
	assert_true(is_good("r0") && is_good("r1"));
	assert_true(path_of("r0", &info));
	assert_int_equal(info.epoch, epoch);
}

static void a_trial_says_what_would_be_and_does_nothing(void **state)
{
	struct mrcd_conf *before;
	struct mrcd_reload out;
	char text[256];

	conf_write(A, "01", QUIET);
	start(A);
	before = stage.confs[A];
	conf_write(A, "12", "metrics: {enabled: false}\nkey-file: new\nlog: {level: debug}");
	assert_int_equal(read_again(A, true, &out), 0);
	mrcd_plan_text(&out.plan, text, sizeof(text));
	assert_non_null(strstr(text, "added: rail r2"));
	assert_non_null(strstr(text, "removed: rail r0"));
	mrcd_reload_fini(&out);
	assert_ptr_equal(stage.confs[A], before);
	assert_non_null(mrcd_worker_rail(stage.hosts[A], "r0"));
	assert_null(mrcd_worker_rail(stage.hosts[A], "r2"));
	keys_are(OLD, "");
	/* What is refused is refused in a trial, too. */
	conf_write(A, "01", "key-file: gone");
	assert_int_equal(read_again(A, true, &out), -EINVAL);
	mrcd_reload_fini(&out);
}

/* ---- rails ---- */

static void rails_come_and_go_and_the_others_do_not_feel_it(void **state)
{
	struct mrc_path_info before, now;
	uint64_t frames;

	start_both("01");
	assert_true(path_of("r0", &before));
	for (int round = 0; round < 3; round++) {
		conf_write(A, "012", QUIET);
		conf_write(B, "012", QUIET);
		reload(B, "");
		reload(A, "");
		UNTIL(is_good("r2"));
		assert_int_equal(mrcd_worker_rails(stage.hosts[A]), 3);
		conf_write(A, "02", QUIET);
		reload(A, "");
		UNTIL(is_done(A));
		assert_null(mrcd_worker_rail(stage.hosts[A], "r1"));
		assert_false(path_of("r1", &now));
		conf_write(B, "02", QUIET);
		reload(B, "");
		UNTIL(is_done(B));
		conf_write(A, "01", QUIET);
		conf_write(B, "01", QUIET);
		reload(A, "");
		reload(B, "");
		UNTIL(is_done(A) && is_done(B) && is_good("r1"));
		assert_null(mrcd_worker_rail(stage.hosts[A], "r2"));
	}
	assert_true(path_of("r0", &now));
	assert_int_equal(now.epoch, before.epoch);
	assert_int_equal(now.bad_count, before.bad_count);
	assert_int_equal(now.good_count, before.good_count);
	assert_true(now.frames_sent > before.frames_sent);
	frames = now.frames_sent;
	UNTIL(path_of("r0", &now) && now.frames_sent > frames);
	/* Slots are used again: there are no more than there ever were at once. */
	assert_true(stage.hosts[A]->rail_count <= 4);
}

static void a_rail_with_other_keys_is_opened_anew_and_its_path_goes_on(void **state)
{
	struct mrc_path_info before[2], now[2];
	struct mrcd_rail *rail;

	start_both("01");
	assert_true(path_of("r0", &before[0]) && path_of("r1", &before[1]));
	conf_write_more(A, "01", QUIET, ", port: 7472");
	reload(A, "");
	UNTIL(one_is_good() && is_done(A) && is_good("r0") && is_good("r1"));
	rail = mrcd_worker_rail(stage.hosts[A], "r1");
	assert_int_equal(rail->conf->port, 7472);
	assert_true(path_of("r0", &now[0]) && path_of("r1", &now[1]));
	for (int i = 0; i < 2; i++) {
		/* One after the other, each in its place, and out of service by nobody's fault. */
		assert_int_equal(now[i].epoch, before[i].epoch + 1);
		assert_int_equal(now[i].bad_count, 1);
		assert_int_equal(now[i].suspicions, 0);
	}
}

static int cannot_open(struct mrcd_rail *rail)
{
	return -ENOMEM;
}

/* The file may be what keeps it closed, so another one is read meanwhile. */
static void a_rail_that_cannot_be_opened_anew_holds_up_no_reload(void **state)
{
	struct mrcd_rail_ops broken;
	const struct mrcd_rail_ops *whole;
	struct mrcd_rail *rail;
	char text[1024];

	start_both("01");
	rail = mrcd_worker_rail(stage.hosts[A], "r1");
	whole = rail->ops;
	broken = *whole;
	broken.open = cannot_open;
	rail->ops = &broken;
	snprintf(text, sizeof(text),
		 "host: a\nruntime-dir: %s/a\n" QUIET "\nrails:\n"
		 "  - {name: r0, type: tcp, interface: lo, address: %s.1}\n"
		 "  - {name: r1, type: tcp, interface: lo, address: %s.2, port: 7472}\n"
		 "peers:\n"
		 "  - {name: b, paths: [{rail: r0, address: %s.101}, {rail: r1, address: "
		 "%s.102}]}\n",
		 stage.dir, stage.net, stage.net, stage.net, stage.net);
	file_write("a.yaml", text);
	reload(A, "");
	UNTIL(rail->is_leaving && !rail->is_open);
	reload(A, ""); /* the same again takes nothing back */
	assert_int_equal(rail->fate, MRCD_RAIL_RENEW);
	conf_write(A, "0", QUIET);
	reload(A, "");
	UNTIL(is_done(A));
	assert_int_equal(mrcd_worker_rails(stage.hosts[A]), 1);
	assert_true(is_good("r0"));
	conf_write(A, "01", QUIET);
	reload(A, "");
	UNTIL(is_good("r0") && is_good("r1"));
}

/* Fewer paths by the next file, or not: who came beyond the shares waits for its own. */
static void a_rail_with_guests_is_opened_anew(void **state)
{
	struct mrc_path_info before, now;
	struct mrcd_rail *rail;

	start_both("01");
	rail = mrcd_worker_rail(stage.hosts[A], "r1");
	assert_true(path_of("r1", &before));
	reload(A, "");
	assert_true(path_of("r1", &now));
	assert_int_equal(now.epoch, before.epoch);
	rail->guest_count = 1;
	reload(A, "");
	rail->guest_count = 0;
	UNTIL(one_is_good() && is_done(A) && is_good("r0") && is_good("r1"));
	assert_true(path_of("r1", &now));
	assert_int_equal(now.epoch, before.epoch + 1);
}

static void a_rail_is_drained_and_given_back_in_place(void **state)
{
	struct mrc_path_info before, now;

	start_both("01");
	assert_true(path_of("r0", &before));
	conf_write_more(A, "01", QUIET, ", drained: true, speed: 1Gb/s");
	/* Both at once would cut b off, and that is what the operator has written: drained is no loss. */
	reload(A, "");
	assert_true(path_of("r0", &now));
	assert_int_equal(now.state, MRC_PATH_DENIED);
	assert_int_equal(mrcd_worker_rail(stage.hosts[A], "r0")->given.speed_bits_per_s,
			 1000000000ULL);
	/* mrcctl undrain, and then the file is read again: who spoke last is right. */
	mrcd_worker_rail(stage.hosts[A], "r0")->is_draining = false;
	mrcd_peer_deny_rail(peer_of(A), mrcd_worker_rail(stage.hosts[A], "r0")->index, false);
	reload(A, "");
	UNTIL(is_good("r0"));
	conf_write(A, "01", QUIET);
	reload(A, "");
	UNTIL(is_good("r1"));
}

static void the_last_good_path_is_not_taken(void **state)
{
	struct mrc_path_info info;

	start_both("01");
	mrcd_worker_rail(stage.hosts[A], "r1")->is_draining = true;
	mrcd_peer_deny_rail(peer_of(A), mrcd_worker_rail(stage.hosts[A], "r1")->index, true);
	conf_write(A, "1", QUIET);
	reload(A, "the last good path to peer b would go with rail r0");
	conf_write_more(A, "01", QUIET, ", port: 7472");
	reload(A, "rail r0 has to be opened anew and carries the last good path to peer b");
	assert_true(is_good("r0"));
	/* With another one added it goes when that is good, and not before: b does not know it yet. */
	conf_write(A, "2", QUIET);
	reload(A, "");
	for (int i = 0; i < 150; i++)
		turn();
	assert_true(is_good("r0"));
	assert_false(is_done(A));
	conf_write(B, "02", QUIET);
	reload(B, "");
	UNTIL(is_done(A));
	assert_true(is_good("r2"));
	assert_false(path_of("r0", &info));
}

/* Rails have 16 places, also while some of them are on their way out; what was begun is undone. */
static void what_finds_no_room_is_refused_and_undone(void **state)
{
	char text[4096];
	size_t at = 0;

	for (int pass = 0; pass < 3; pass++) {
		int first = pass == 0 ? 0 : 1, end = pass == 0 ? 15 : pass == 1 ? 17 : 16;

		at = (size_t)snprintf(text, sizeof(text),
				      "host: a\nruntime-dir: %s/a\n" QUIET "\nrails:\n", stage.dir);
		for (int n = first; n < end; n++)
			at += (size_t)snprintf(
				text + at, sizeof(text) - at,
				"  - {name: r%d, type: tcp, interface: lo, address: %s.%d}\n", n,
				stage.net, 1 + n);
		file_write("a.yaml", text);
		if (pass == 0)
			start(A);
		else
			reload(A, pass == 1 ? "rails[15] (r16): there is no room for it" : "");
		assert_int_equal(mrcd_worker_rails(stage.hosts[A]), 15);
		assert_true((mrcd_worker_rail(stage.hosts[A], "r0") == NULL) == (pass == 2));
		assert_true((mrcd_worker_rail(stage.hosts[A], "r15") != NULL) == (pass == 2));
	}
}

static json_t *drill(const char *command)
{
	json_t *question = json_loads(command, 0, NULL), *error = NULL;
	json_t *answer = mrcd_drill_ask(stage.hosts[A]->drill, question, &error);

	if (answer == NULL)
		fail_msg("%s", json_string_value(error));
	json_decref(question);
	return answer;
}

static void a_rail_in_a_drill_is_left_to_it(void **state)
{
	char command[160];
	json_int_t session;
	json_t *opened;

	start_both("01");
	mrcd_worker_now(stage.hosts[A]);
	opened = drill("{\"do\": \"open\"}");
	session = json_integer_value(json_object_get(opened, "session"));
	json_decref(opened);
	snprintf(command, sizeof(command),
		 "{\"do\": \"break\", \"session\": %lld, \"rail\": \"r1\", \"fault\": \"silence\", "
		 "\"duration_ns\": 60000000000}",
		 (long long)session);
	json_decref(drill(command));
	conf_write(A, "0", QUIET);
	reload(A, "rail r1 is in a drill");
	snprintf(command, sizeof(command), "{\"do\": \"close\", \"session\": %lld}",
		 (long long)session);
	json_decref(drill(command));
	reload(A, "");
	UNTIL(is_done(A));
	assert_null(mrcd_worker_rail(stage.hosts[A], "r1"));
}

/* The operator thinks again while a rail waits to go. */
static void what_waits_is_what_the_last_reload_says(void **state)
{
	struct mrc_path_info before, now;

	start_both("0");
	assert_true(path_of("r0", &before));
	conf_write(A, "2", QUIET);
	reload(A, "");
	turn();
	assert_false(is_done(A));
	conf_write(A, "0", QUIET);
	reload(A, "");
	UNTIL(is_done(A));
	assert_null(mrcd_worker_rail(stage.hosts[A], "r2"));
	assert_true(is_good("r0"));
	assert_true(path_of("r0", &now));
	assert_int_equal(now.epoch, before.epoch);
	assert_int_equal(now.bad_count, 0);
}

/* ---- peers ---- */

static void peers_come_and_go(void **state)
{
	struct mrc_event_in open = {
		.kind = MRC_EV_CH_OPEN,
		.channel = {.flow = 1,
			    .ring_bytes = 65536,
			    .msg_bytes_max = 65536,
			    .window = 16,
			    .service = "svc"},
	};
	struct mrc_path_info before, now;
	struct mrcd_peer *b;
	uint32_t id = 0;
	char text[1024];

	start_both("01");
	assert_true(path_of("r0", &before));
	snprintf(text, sizeof(text),
		 "host: a\nruntime-dir: %s/a\n" QUIET "\nrails:\n"
		 "  - {name: r0, type: tcp, interface: lo, address: %s.1}\n"
		 "  - {name: r1, type: tcp, interface: lo, address: %s.2}\n"
		 "peers:\n"
		 "  - {name: c, paths: [{rail: r0, address: %s.201}]}\n"
		 "  - {name: b, paths: [{rail: r1, address: %s.102}, {rail: r0, address: "
		 "%s.101}]}\n",
		 stage.dir, stage.net, stage.net, stage.net, stage.net, stage.net);
	file_write("a.yaml", text);
	reload(A, "");
	assert_int_equal(stage.hosts[A]->peer_count, 2);
	assert_non_null(mrcd_worker_peer(stage.hosts[A], "c"));
	/* With a channel open to it, it does not go. */
	b = peer_of(A);
	open.channel.id_out = &id;
	assert_int_equal(mrcd_peer_handle(b, &open), 0);
	snprintf(text, sizeof(text),
		 "host: a\nruntime-dir: %s/a\n" QUIET "\nrails:\n"
		 "  - {name: r0, type: tcp, interface: lo, address: %s.1}\n"
		 "  - {name: r1, type: tcp, interface: lo, address: %s.2}\n"
		 "peers: [{name: c, paths: [{rail: r0, address: %s.201}]}]\n",
		 stage.dir, stage.net, stage.net, stage.net);
	file_write("a.yaml", text);
	reload(A, "peer b is no longer listed and 1 channel is open to it");
	assert_true(path_of("r0", &now));
	assert_int_equal(now.epoch, before.epoch);
	assert_int_equal(now.bad_count, 0);
	conf_write(A, "01", QUIET);
	reload(A, "");
	UNTIL(is_done(A));
	assert_int_equal(stage.hosts[A]->peer_count, 1);
	assert_null(mrcd_worker_peer(stage.hosts[A], "c"));
	assert_true(is_good("r0"));
}

static void a_peer_that_went_can_come_back(void **state)
{
	char text[512];

	start_both("01");
	snprintf(text, sizeof(text),
		 "host: a\nruntime-dir: %s/a\n" QUIET "\n"
		 "rails: [{name: r0, type: tcp, interface: lo, address: %s.1}]\n",
		 stage.dir, stage.net);
	file_write("a.yaml", text);
	reload(A, "");
	UNTIL(is_done(A));
	assert_int_equal(stage.hosts[A]->peer_count, 0);
	assert_int_equal(mrcd_worker_rails(stage.hosts[A]), 1);
	conf_write(A, "01", QUIET);
	reload(A, "");
	UNTIL(is_good("r0") && is_good("r1"));
}

/* ---- all else ---- */

static void the_rest_is_in_force_and_what_waits_is_named(void **state)
{
	struct mrcd_reload out;
	char text[512];

	conf_write(A, "0", QUIET);
	start(A);
	conf_write(A, "0",
		   QUIET "\nuser: root\nservices: [{name: x}]\nquotas: [{weight: 7}]\n"
			 "clients: {sends-max: 7, clients-max: 9}\n"
			 "timers: {spin: 1ms, probe-interval: 30ms}\nlimits: {frag-max: 8KiB}");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_again(A, false, &out), 0);
		mrcd_plan_text(&out.plan, text, sizeof(text));
		assert_string_equal(strstr(text, "waits for a restart"),
				    "waits for a restart: key user, key clients.clients-max, key "
				    "limits.frag-max");
		assert_int_equal(out.plan.counts[MRCD_PLAN_CHANGED], i == 0 ? 4 : 0);
		mrcd_reload_fini(&out);
	}
	assert_string_equal(stage.confs[A]->user, "");
	assert_int_equal(stage.confs[A]->clients.sends_max, 7);
	assert_int_equal(stage.confs[A]->clients.clients_max, 256);
	assert_int_equal(stage.confs[A]->limits.frag_bytes_max, 128 * 1024);
	assert_int_equal(stage.confs[A]->quotas[0].weight, 7);
	assert_int_equal(stage.hosts[A]->look.span_ns, MRC_MS);
	assert_null(mrcd_conf_service(stage.hosts[A]->conf, "y"));
}

/* A program of this user that is attached to a and offers x; the kernel takes the user at connect(). */
static int offer_as(uid_t uid)
{
	struct mrc_abi_attach attach = {.magic = MRC_ABI_MAGIC,
					.version_max = MRC_ABI_VERSION,
					.name = "tea"};
	struct mrc_abi_request request = {.op = MRC_ABI_REQ_LISTEN, .target = "x"};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/a/mrcd.sock", stage.dir);
	assert_int_equal(chmod(stage.dir, 0711), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/a", stage.dir);
	assert_int_equal(chmod(addr.sun_path, 0711), 0);
	strcat(addr.sun_path, "/mrcd.sock");
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(send(fd, &attach, sizeof(attach), 0), sizeof(attach));
	assert_int_equal(send(fd, &request, sizeof(request), 0), sizeof(request));
	return fd;
}

static uint32_t offers(void)
{
	json_t *clients = mrcd_client_side_json(stage.hosts[A]->clients);
	json_int_t count =
		json_integer_value(json_object_get(json_array_get(clients, 0), "listeners"));

	json_decref(clients);
	return (uint32_t)count;
}

static void who_loses_rights_is_told_before(void **state)
{
	struct mrcd_reload out;
	char text[512], want[160];
	int fd;

	if (geteuid() != 0) {
		print_message("programs of other users take root\n");
		skip();
	}
	conf_write(A, "0", QUIET "\nservices: [{name: x, users: [4711]}]");
	start(A);
	fd = offer_as(4711);
	UNTIL(offers() == 1);
	conf_write(A, "0", QUIET "\nservices: [{name: x, users: [4712]}]");
	snprintf(want, sizeof(want),
		 "changed: service x; loses rights: program tea (pid %d, uid 4711)", (int)getpid());
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_again(A, i == 0, &out), 0);
		mrcd_plan_text(&out.plan, text, sizeof(text));
		assert_string_equal(text, want);
		assert_string_equal(out.plan.items[1].detail, "1 service, 0 channels");
		mrcd_reload_fini(&out);
		assert_int_equal(offers(), i == 0 ? 1 : 0);
	}
	close(fd);
}

static uint16_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void metrics_move_and_are_switched_on_and_off(void **state)
{
	uint16_t ports[] = {free_port(), free_port()};
	struct mrcd_http *http;
	char top[160];

	conf_write(A, "0", QUIET);
	start(A);
	assert_null(stage.hosts[A]->http);
	for (int i = 0; i < 2; i++) {
		snprintf(top, sizeof(top), "key-file: old\nmetrics: {port: %u}", ports[i]);
		conf_write(A, "0", top);
		reload(A, "");
		assert_int_equal(mrcd_http_port(stage.hosts[A]->http), ports[i]);
	}
	/* Nothing of it has changed: it is left alone. */
	http = stage.hosts[A]->http;
	reload(A, "");
	assert_ptr_equal(stage.hosts[A]->http, http);
	/* The same port at another address. */
	snprintf(top, sizeof(top), "key-file: old\nmetrics: {port: %u, address: %s.7}", ports[1],
		 stage.net);
	conf_write(A, "0", top);
	reload(A, "");
	assert_int_equal(mrcd_http_port(stage.hosts[A]->http), ports[1]);
	conf_write(A, "0", QUIET);
	reload(A, "");
	assert_null(stage.hosts[A]->http);
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
		TEST(an_error_anywhere_changes_nothing),
		TEST(a_trial_says_what_would_be_and_does_nothing),
		TEST(rails_come_and_go_and_the_others_do_not_feel_it),
		TEST(a_rail_with_other_keys_is_opened_anew_and_its_path_goes_on),
		TEST(a_rail_that_cannot_be_opened_anew_holds_up_no_reload),
		TEST(a_rail_with_guests_is_opened_anew),
		TEST(a_rail_is_drained_and_given_back_in_place),
		TEST(the_last_good_path_is_not_taken),
		TEST(what_finds_no_room_is_refused_and_undone),
		TEST(a_rail_in_a_drill_is_left_to_it),
		TEST(what_waits_is_what_the_last_reload_says),
		TEST(peers_come_and_go),
		TEST(a_peer_that_went_can_come_back),
		TEST(the_rest_is_in_force_and_what_waits_is_named),
		TEST(who_loses_rights_is_told_before),
		TEST(metrics_move_and_are_switched_on_and_off),
		cmocka_unit_test(a_fingerprint_tells_keys_apart_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
