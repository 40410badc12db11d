/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of a peer have places: a restart with another file finds those that are left in theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "mrcd_conf_load.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"
#include "mrcd_worker.h"

static void say(void *context, const char *line)
{
	fail_msg("%s", line);
}

static const char *own_host = "a"; /* it calls on b; "c" is called on */

/* Its configuration; `rails`: numbers of rails, in the order in which b's paths are listed. */
static struct mrcd_conf *conf_of(const char *rails)
{
	char text[4096];
	struct mrcd_conf *conf;
	FILE *key = fopen("mrcd-test-key", "w");
	size_t at;

	assert_non_null(key);
	fputs("a key of 16 bytes and more", key);
	fclose(key);
	assert_int_equal(chmod("mrcd-test-key", 0600), 0);
	at = (size_t)snprintf(text, sizeof(text),
			      "host: %s\nruntime-dir: /nonexistent\nkey-file: mrcd-test-key\n"
			      "rails:\n",
			      own_host);
	/* Rails are listed as they are named; it is the order of paths that counts. */
	for (int n = 0; n < 16; n++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "  - {name: r%d, type: tcp, address: 10.%d.0.1}\n", n, n);
	at += (size_t)snprintf(text + at, sizeof(text) - at, "peers:\n  - name: b\n    paths:\n");
	for (; *rails; rails++) {
		int n = *rails <= '9' ? *rails - '0' : *rails - 'a' + 10;

		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "      - {rail: r%d, address: 10.%d.0.2}\n", n, n);
	}
	assert_int_equal(mrcd_conf_load_text("mrcd.yaml", text, at, say, NULL, &conf), 0);
	remove("mrcd-test-key");
	return conf;
}

/* What a daemon with these paths leaves, and one with those makes of it: the rails of its slots, "-" for none. */
static void goes_on(const char *before, const char *after, const char *want)
{
	struct mrcd_conf *confs[2] = {conf_of(before), conf_of(after)};
	struct mrcd_worker *workers[2];
	uint32_t marks[MRC_PATHS_MAX];
	struct mrc_conn_info info;
	struct mrcd_image_out out;
	const char *why = "";
	struct mrcd_peer *peer;
	char got[MRC_PATHS_MAX + 1] = "";

	for (int i = 0; i < 2; i++)
		assert_int_equal(mrcd_worker_new(confs[i], &workers[i]), 0);
	peer = workers[0]->peers[0];
	mrcd_peer_quiesce(peer);
	assert_true(mrcd_peer_settle(peer));
	mrcd_image_begin(&out);
	assert_int_equal(mrcd_peer_save(peer, &out), 0);
	for (uint8_t i = 0; i < MRC_PATHS_MAX; i++)
		marks[i] = mrcd_peer_path_mark(peer, i);
	peer = workers[1]->peers[0];
	workers[1]->boot_id = workers[0]->boot_id;
	mrcd_worker_now(workers[1]);
	assert_int_equal(mrcd_peer_restore(peer, marks, out.bytes + MRCD_IMAGE_HEADER_BYTES + 8,
					   out.len_bytes - MRCD_IMAGE_HEADER_BYTES - 8, &why),
			 0);
	mrc_conn_info(mrcd_peer_conn(peer), &info);
	for (uint8_t i = 0; i < info.path_count; i++) {
		const struct mrcd_rail *rail = mrcd_peer_path_rail(peer, i);
		struct mrc_path_info path;
		uint16_t port;

		got[i] = '-';
		mrc_conn_path_info(mrcd_peer_conn(peer), i, &path);
		assert_true(path.is_absent == (rail == NULL));
		if (rail == NULL)
			continue;
		got[i] = (char)(rail->index < 10 ? '0' + rail->index : 'a' + rail->index - 10);
		/* What else is known of the path has gone with it. */
		assert_int_equal(atoi(mrcd_peer_path_address(peer, i, &port) + 3), rail->index);
		assert_true(path.state == MRC_PATH_CONNECTING);
	}
	assert_string_equal(got, want);
	assert_int_equal(info.paths_listed, strlen(after));
	mrcd_image_fini(&out);
	for (int i = 0; i < 2; i++) {
		mrcd_worker_free(workers[i]);
		mrcd_conf_free(confs[i]);
	}
}

static void paths_go_on_in_their_places(void **state)
{
	static const struct {
		const char *before, *after, *want;
	} rows[] = {
		{"012", "012", "012"},
		{"012", "210", "012"},   /* another order is the same */
		{"012", "02", "0-2"},    /* one less leaves its place */
		{"012", "0123", "0123"}, /* one more gets the next */
		{"012", "3012", "0123"}, /* wherever it is listed */
		{"012", "23", "--23"},   /* a place that is free is not given on yet */
		{"012", "3", "---3"},    /* not one is left */
		{"0123456789abcdef", "0", "0---------------"},
		{"0123456789abcde", "f0", "0--------------f"},
		{"0123456789abcdef", "0123456789abcdef", "0123456789abcdef"},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		print_message("%s, then %s\n", rows[i].before, rows[i].after);
		goes_on(rows[i].before, rows[i].after, rows[i].want);
	}
}

/* And while it runs: the place of the same path, a fresh one, then any that is free. */
static void a_path_gets_its_own_place_back_then_a_fresh_one(void **state)
{
	struct mrcd_conf *conf = conf_of("012");
	struct mrcd_worker *worker;
	struct mrcd_conf_path path = {.port = 7471};
	struct mrcd_peer *peer;
	struct mrc_conn_info info;

	assert_int_equal(mrcd_worker_new(conf, &worker), 0);
	peer = worker->peers[0];
	assert_int_equal(mrcd_peer_reserve(peer, MRC_PATHS_MAX), -ENOSPC);
	assert_int_equal(mrcd_peer_reserve(peer, MRC_PATHS_MAX - 3), 0);
	mrcd_peer_path_doom(peer, 1, true);
	assert_int_equal(mrcd_peer_paths_going(peer), 1);
	assert_true(mrcd_peer_tend(peer)); /* it was not good: nobody needs it */
	assert_null(mrcd_peer_path_rail(peer, 1));
	/* Another path does not get that place, ... */
	strcpy(path.address, "10.3.0.2");
	mrcd_peer_path_add(peer, &path, &worker->rails[3]);
	assert_ptr_equal(mrcd_peer_path_rail(peer, 3), &worker->rails[3]);
	assert_null(mrcd_peer_path_rail(peer, 1));
	/* ... the one that had it does, ... */
	strcpy(path.address, "10.1.0.2");
	mrcd_peer_path_add(peer, &path, &worker->rails[1]);
	assert_ptr_equal(mrcd_peer_path_rail(peer, 1), &worker->rails[1]);
	mrcd_peer_path_doom(peer, 1, true);
	assert_true(mrcd_peer_tend(peer));
	for (uint32_t i = 4; i < MRC_PATHS_MAX; i++) {
		snprintf(path.address, sizeof(path.address), "10.%u.0.2", i);
		mrcd_peer_path_add(peer, &path, &worker->rails[i]);
	}
	/* ... and when there is no other, somebody else. */
	assert_int_equal(mrcd_peer_reserve(peer, 2), -ENOSPC);
	assert_int_equal(mrcd_peer_reserve(peer, 1), 0);
	strcpy(path.address, "10.0.0.99");
	mrcd_peer_path_add(peer, &path, &worker->rails[0]);
	assert_ptr_equal(mrcd_peer_path_rail(peer, 1), &worker->rails[0]);
	mrc_conn_info(mrcd_peer_conn(peer), &info);
	assert_int_equal(info.paths_listed, MRC_PATHS_MAX);
	mrcd_worker_free(worker);
	mrcd_conf_free(conf);
}

/* ---- rails that were shared out ---- */

static uint32_t connects;

static uint32_t one_share(const struct mrcd_rail *rail)
{
	return 1;
}

static bool has_carrier(struct mrcd_rail *rail)
{
	return true;
}

static void note_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	connects++;
}

/* All that is due: timers of attempts are. */
static void attempts_run(struct mrcd_worker *worker, uint32_t count)
{
	while (connects < count)
		assert_int_equal(event_base_loop(worker->base, EVLOOP_ONCE), 0);
	assert_int_equal(connects, count);
}

/* Is the path of this address taken for one that comes in? */
static bool is_let_in(struct mrcd_worker *worker, struct mrcd_rail *rail, const char *address)
{
	struct mrc_hello hello = {.path_id = 3};
	const char *why = NULL;
	uint8_t index;

	strcpy(hello.host, "b");
	strcpy(hello.to_host, own_host);
	return mrcd_peer_match(rail, &hello, address, &index, &why) != NULL;
}

/* Until it is opened anew: so many get the least there is, and more do not connect. */
static void guests_come(bool do_call)
{
	struct mrcd_conf *conf = conf_of("0");
	struct mrcd_conf_path path = {.port = 7471};
	struct mrcd_rail_ops ops;
	struct mrcd_worker *worker;
	struct mrcd_rail *rail;
	struct mrcd_peer *peer;

	connects = 0;
	assert_int_equal(mrcd_worker_new(conf, &worker), 0);
	mrcd_worker_now(worker);
	rail = &worker->rails[0];
	ops = *rail->ops;
	ops.shares = one_share;
	ops.has_carrier = has_carrier;
	ops.connect = note_connect;
	rail->ops = &ops;
	rail->is_carrier_up = true;
	peer = worker->peers[0];
	mrcd_peer_start(peer);
	assert_false(mrcd_peer_path_is_guest(peer, 0));
	attempts_run(worker, do_call ? 1 : 0);
	rail->path_count = 3;
	rail->guests_max = MRCD_RAIL_GUESTS_MAX;
	rail->guest_count = MRCD_RAIL_GUESTS_MAX - 1; /* those of other peers */
	assert_int_equal(mrcd_peer_reserve(peer, 2), 0);
	strcpy(path.address, "10.0.0.3");
	mrcd_peer_path_add(peer, &path, rail);
	strcpy(path.address, "10.0.0.4");
	mrcd_peer_path_add(peer, &path, rail);
	mrcd_peer_pump(peer);
	assert_int_equal(rail->guest_count, MRCD_RAIL_GUESTS_MAX + 1);
	attempts_run(worker, do_call ? 2 : 0);
	assert_true(mrcd_peer_path_is_guest(peer, 1) && mrcd_peer_path_is_guest(peer, 2));
	assert_true(is_let_in(worker, rail, "10.0.0.2") != do_call);
	assert_true(is_let_in(worker, rail, "10.0.0.3") != do_call);
	assert_false(is_let_in(worker, rail, "10.0.0.4"));
	/* What is another's by its number is not taken for one that has a name. */
	strcpy(peer->conf->paths[0].address, "localhost");
	assert_false(is_let_in(worker, rail, "10.0.0.4"));
	assert_true(is_let_in(worker, rail, "10.0.0.9") != do_call);
	strcpy(peer->conf->paths[0].address, "10.0.0.2");
	/* One that goes leaves nothing behind; that the other waits for the rail is as it was. */
	mrcd_peer_path_doom(peer, 1, true);
	assert_true(mrcd_peer_tend(peer));
	assert_int_equal(rail->guest_count, MRCD_RAIL_GUESTS_MAX);
	assert_false(is_let_in(worker, rail, "10.0.0.4"));
	/* It is opened anew, with a share for each. */
	mrcd_peer_leave_rail(peer, rail, true);
	mrcd_peer_leave_rail(peer, rail, false);
	assert_int_equal(rail->guest_count, MRCD_RAIL_GUESTS_MAX - 1);
	assert_false(mrcd_peer_path_is_guest(peer, 2));
	assert_true(is_let_in(worker, rail, "10.0.0.4") != do_call);
	/* Or its device comes back, which has divided anew. */
	rail->guest_count = 0;
	strcpy(path.address, "10.0.0.5");
	assert_int_equal(mrcd_peer_reserve(peer, 1), 0);
	mrcd_peer_path_add(peer, &path, rail);
	assert_int_equal(rail->guest_count, 1);
	mrcd_rail_guests_out(rail);
	assert_int_equal(rail->guest_count, 0);
	rail->guest_count = MRCD_RAIL_GUESTS_MAX - 1;
	/* A peer that goes takes its own with it. */
	strcpy(path.address, "10.0.0.3");
	assert_int_equal(mrcd_peer_reserve(peer, 1), 0);
	mrcd_peer_path_add(peer, &path, rail);
	assert_int_equal(rail->guest_count, MRCD_RAIL_GUESTS_MAX);
	worker->peer_count = 0;
	mrcd_peer_free(peer);
	assert_int_equal(rail->guest_count, MRCD_RAIL_GUESTS_MAX - 1);
	/* And one that is new has no share either. */
	assert_int_equal(mrcd_peer_new(worker, &conf->peers[0], "b", own_host, &peer), 0);
	mrcd_peer_start(peer);
	assert_true(mrcd_peer_path_is_guest(peer, 0));
	mrcd_peer_free(peer);
	mrcd_worker_free(worker);
	mrcd_conf_free(conf);
}

static void a_rail_that_was_shared_out_has_room_for_a_few_guests(void **state)
{
	guests_come(true);
	own_host = "c";
	guests_come(false);
	own_host = "a";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_go_on_in_their_places),
		cmocka_unit_test(a_path_gets_its_own_place_back_then_a_fresh_one),
		cmocka_unit_test(a_rail_that_was_shared_out_has_room_for_a_few_guests),
	};

	mrcd_log_init(LOG_CRIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
