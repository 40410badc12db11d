/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that fail on purpose: what is not held against them, for how long, and who hears of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_conn_impl.h"
#include "mrcd_event_log.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"

#define PEERS 2

/* Two peers with a path over each of two rails; nothing is open, and time goes by hand. */
struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer conf_peers[PEERS];
	struct mrcd_worker *worker;
	struct mrcd_peer *peer;
};

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "a");
	strcpy(conf->runtime_dir, "/nowhere");
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	conf->peers = stage->conf_peers;
	conf->peer_count = PEERS;
	for (uint32_t p = 0; p < PEERS; p++) {
		strcpy(stage->conf_peers[p].name, p == 0 ? "b" : "c");
		stage->conf_peers[p].path_count = 2;
		for (uint32_t i = 0; i < 2; i++) {
			stage->conf_peers[p].paths[i].rail_index = i;
			strcpy(stage->conf_peers[p].paths[i].address, "10.0.0.2");
		}
	}
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	stage->peer = stage->worker->peers[0];
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	mrcd_worker_free(stage->worker);
	free(stage);
	return 0;
}

static void later(struct stage *stage, uint64_t ns)
{
	/* As the timer of its health looks, if not as often. */
	for (uint64_t left = ns; left > 0; left -= MRC_MIN(left, MRC_S)) {
		stage->worker->now_ns += MRC_MIN(left, MRC_S);
		for (uint32_t p = 0; p < PEERS; p++)
			mrcd_peer_path_is_excused(stage->worker->peers[p], 1);
	}
}

/* Path 1 leaves service, by what the engine says. */
static void leaves(struct stage *stage)
{
	const struct mrc_act_path act = {
		.index = 1,
		.state = MRC_PATH_ASSUMED_BAD,
		.state_old = MRC_PATH_GOOD,
		.reason = MRC_REASON_SILENT,
	};

	mrcd_peer_note_path(stage->peer, &act);
}

static uint64_t flaps(const struct stage *stage)
{
	assert_int_equal(stage->peer->paths[1].flaps, stage->worker->rails[1].flaps);
	return stage->worker->rails[1].flaps;
}

static void flaps_of_a_drill_are_not_counted(void **state)
{
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];

	leaves(stage);
	assert_int_equal(flaps(stage), 1);
	rail->is_drilled = true;
	for (uint32_t p = 0; p < PEERS; p++)
		mrcd_peer_tell_drill(stage->worker->peers[p], rail, true);
	assert_string_equal(mrcd_peer_path_drill(stage->peer, 1), "here");
	assert_null(mrcd_peer_path_drill(stage->peer, 0));
	later(stage, 10 * MRC_S);
	leaves(stage);
	mrcd_rail_note_carrier(rail, false);
	rail->is_drilled = false;
	for (uint32_t p = 0; p < PEERS; p++)
		mrcd_peer_tell_drill(stage->worker->peers[p], rail, false);
	assert_null(mrcd_peer_path_drill(stage->peer, 1));
	leaves(stage); /* what it leaves behind */
	mrcd_rail_note_carrier(rail, false);
	assert_int_equal(flaps(stage), 1);
	assert_int_equal(rail->carrier_losses, 0);
	/* It does not come back: that is no drill any more. */
	later(stage, 29 * MRC_S);
	leaves(stage);
	assert_int_equal(flaps(stage), 1);
	later(stage, MRC_S);
	leaves(stage);
	mrcd_rail_note_carrier(rail, false);
	assert_int_equal(flaps(stage), 2);
	assert_int_equal(rail->carrier_losses, 1);
}

static void a_drill_of_the_peer_s_is_one(void **state)
{
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];

	mrcd_peer_on_drill(stage->peer, 2);
	assert_string_equal(mrcd_peer_path_drill(stage->peer, 1), "peer");
	assert_null(mrcd_peer_path_drill(stage->peer, 0));
	later(stage, 60 * MRC_S);
	leaves(stage);
	mrcd_peer_on_drill(stage->peer, 0);
	assert_null(mrcd_peer_path_drill(stage->peer, 1));
	assert_true(mrcd_peer_path_is_excused(stage->peer, 1));
	leaves(stage);
	assert_int_equal(flaps(stage), 0);
	later(stage, 30 * MRC_S);
	assert_false(mrcd_peer_path_is_excused(stage->peer, 1));
	assert_int_equal(rail->carrier_losses, 0);
}

/* One peer does not speak for a rail that others use as well. */
static void a_rail_is_in_a_drill_of_all_its_peers(void **state)
{
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];

	assert_null(mrcd_rail_drill_name(rail));
	mrcd_peer_on_drill(stage->worker->peers[0], 2);
	assert_null(mrcd_rail_drill_name(rail));
	mrcd_rail_note_carrier(rail, false);
	assert_int_equal(rail->carrier_losses, 1);
	mrcd_peer_on_drill(stage->worker->peers[1], 3);
	assert_string_equal(mrcd_rail_drill_name(rail), "peer");
	assert_null(mrcd_rail_drill_name(&stage->worker->rails[0]));
	mrcd_rail_note_carrier(rail, false);
	assert_int_equal(rail->carrier_losses, 1);
	assert_false(mrcd_rail_is_excused(&stage->worker->rails[0]));
}

/* It says so for ever: a path has no excuse for good. */
static void a_peer_is_believed_as_long_as_a_drill_can_last(void **state)
{
	struct stage *stage = *state;

	mrcd_peer_on_drill(stage->peer, 3);
	for (int i = 0; i < 11; i++) {
		later(stage, 59 * MRC_S);
		mrcd_peer_on_drill(stage->peer, i & 1 ? 2 : 3);
		leaves(stage);
	}
	assert_int_equal(flaps(stage), 0);
	later(stage, 12 * MRC_S);
	assert_null(mrcd_peer_path_drill(stage->peer, 1));
	later(stage, 30 * MRC_S);
	leaves(stage);
	assert_int_equal(flaps(stage), 1);
	/* What it has spent comes back slowly. */
	mrcd_peer_on_drill(stage->peer, 0);
	later(stage, 800 * MRC_S);
	mrcd_peer_on_drill(stage->peer, 2);
	later(stage, 69 * MRC_S);
	assert_non_null(mrcd_peer_path_drill(stage->peer, 1));
	later(stage, 4 * MRC_S);
	assert_null(mrcd_peer_path_drill(stage->peer, 1));
}

/* Nor by saying so again and again, for however short a time. */
static void a_peer_that_drills_all_day_hides_a_fifth_of_it(void **state)
{
	static const uint64_t spans_ns[] = {59 * MRC_S, MRC_MS};

	for (size_t n = 0; n < MRC_ARRAY_LEN(spans_ns); n++) {
		struct stage *stage = *state;
		uint64_t before = flaps(stage);

		for (int i = 0; i < 1000; i++) {
			mrcd_peer_on_drill(stage->peer, 2);
			later(stage, spans_ns[n]);
			leaves(stage);
			mrcd_peer_on_drill(stage->peer, 0);
			later(stage, 29 * MRC_S);
			leaves(stage);
		}
		assert_true(flaps(stage) - before > 1600); /* of 2000 */
		later(stage, 24 * 3600 * MRC_S);
	}
}

/* A reload puts it over a rail that is in our drill already. */
static void a_path_that_begins_in_a_drill_is_told_as_such(void **state)
{
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];

	rail->is_drilled = true;
	mrcd_peer_path_begin(stage->peer, 0);
	mrcd_peer_path_begin(stage->peer, 1);
	assert_int_equal(stage->peer->conn->drilled, 2);
	rail->is_drilled = false;
	mrcd_peer_path_begin(stage->peer, 1);
	assert_int_equal(stage->peer->conn->drilled, 0);
}

static void both_are_events(void **state)
{
	struct stage *stage = *state;
	char words[MRCD_EVENT_TEXT_BYTES];
	json_t *log, *events, *event;
	static const char *const said[] = {
		"rail r1 to b: a drill begins, the peer's",
		"rail r1 to b: a drill ends, the peer's",
	};

	mrcd_peer_on_drill(stage->peer, 2);
	mrcd_peer_on_drill(stage->peer, 2);
	mrcd_peer_on_drill(stage->peer, 0);
	log = mrcd_event_log_json(stage->worker->events, 0);
	events = json_object_get(log, "events");
	assert_int_equal(json_array_size(events), MRC_ARRAY_LEN(said));
	for (size_t i = 0; i < MRC_ARRAY_LEN(said); i++) {
		event = json_array_get(events, i);
		snprintf(words, sizeof(words), "%s",
			 json_string_value(json_object_get(event, "text")));
		assert_string_equal(words, said[i]);
	}
	json_decref(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flaps_of_a_drill_are_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drill_of_the_peer_s_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rail_is_in_a_drill_of_all_its_peers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_drills_all_day_hides_a_fifth_of_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_is_believed_as_long_as_a_drill_can_last,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_path_that_begins_in_a_drill_is_told_as_such,
						setup, teardown),
		cmocka_unit_test_setup_teardown(both_are_events, setup, teardown),
	};

	return cmocka_run_group_tests_name("peer_drill", tests, NULL, NULL);
}
