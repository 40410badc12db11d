/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that fail on purpose: what is not held against them, for how long, and who hears of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_event_log.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"

/* A peer with a path over each of two rails; nothing is open, and time goes by hand. */
struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer conf_peer;
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
	conf->peers = &stage->conf_peer;
	conf->peer_count = 1;
	strcpy(stage->conf_peer.name, "b");
	stage->conf_peer.path_count = 2;
	for (uint32_t i = 0; i < 2; i++) {
		stage->conf_peer.paths[i].rail_index = i;
		strcpy(stage->conf_peer.paths[i].address, "10.0.0.2");
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
	stage->worker->now_ns += ns;
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
	mrcd_peer_tell_drill(stage->peer, rail, true);
	assert_string_equal(mrcd_peer_path_drill(stage->peer, 1), "here");
	assert_null(mrcd_peer_path_drill(stage->peer, 0));
	later(stage, 10 * MRC_S);
	leaves(stage);
	mrcd_rail_note_carrier(rail, false);
	rail->is_drilled = false;
	mrcd_peer_tell_drill(stage->peer, rail, false);
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

	assert_null(mrcd_rail_drill_name(rail));
	mrcd_peer_on_drill(stage->peer, 2);
	assert_string_equal(mrcd_peer_path_drill(stage->peer, 1), "peer");
	assert_string_equal(mrcd_rail_drill_name(rail), "peer");
	assert_null(mrcd_rail_drill_name(&stage->worker->rails[0]));
	assert_false(mrcd_rail_is_excused(&stage->worker->rails[0]));
	later(stage, 60 * MRC_S);
	leaves(stage);
	mrcd_rail_note_carrier(rail, false);
	mrcd_peer_on_drill(stage->peer, 0);
	assert_null(mrcd_peer_path_drill(stage->peer, 1));
	assert_true(mrcd_peer_path_is_excused(stage->peer, 1));
	leaves(stage);
	assert_int_equal(flaps(stage), 0);
	assert_int_equal(rail->carrier_losses, 0);
	later(stage, 30 * MRC_S);
	assert_false(mrcd_peer_path_is_excused(stage->peer, 1));
}

/* It says so for ever, or again and again that it goes on: a path has no excuse for good. */
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
		cmocka_unit_test_setup_teardown(a_peer_is_believed_as_long_as_a_drill_can_last,
						setup, teardown),
		cmocka_unit_test_setup_teardown(both_are_events, setup, teardown),
	};

	return cmocka_run_group_tests_name("peer_drill", tests, NULL, NULL);
}
