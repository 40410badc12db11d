/* SPDX-License-Identifier: BSD-2-Clause */
/* Rails judged by their paths, and the words and numbers that people get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "mrcd_event_log.h"
#include "mrcd_health.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"

#define PEERS 3

/* Three peers, each with a path over each of two rails; nothing is open, and views are set by hand. */
struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peers[PEERS];
	struct mrcd_worker *worker;
	uint64_t now_ns;
};

static int setup(void **state)
{
	static const char *const names[PEERS] = {"b", "c", "d"};
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "a");
	strcpy(conf->runtime_dir, "/nowhere");
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	conf->rails[0].speed_bits_per_s = 1000000000;
	conf->peers = stage->peers;
	conf->peer_count = PEERS;
	for (int p = 0; p < PEERS; p++) {
		strcpy(stage->peers[p].name, names[p]);
		stage->peers[p].path_count = 2;
		for (uint32_t i = 0; i < 2; i++) {
			stage->peers[p].paths[i].rail_index = i;
			strcpy(stage->peers[p].paths[i].address, "10.0.0.2");
		}
	}
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	stage->now_ns = stage->worker->now_ns;
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

static struct mrc_health_view *view(struct stage *stage, int peer, int path)
{
	return &stage->worker->peers[peer]->health_paths[path].view;
}

/* What the path over r0 to that peer is, with so much carried. */
static void is_now(struct stage *stage, int peer, enum mrc_health_state state, uint32_t score,
		   uint64_t units)
{
	view(stage, peer, 0)->state = state;
	view(stage, peer, 0)->score = score;
	view(stage, peer, 0)->units = units;
}

/* Each judgement comes late, so the views stay as they were set. */
static const struct mrcd_rail_health *judged(struct stage *stage)
{
	stage->now_ns += 2 * MRC_S;
	stage->worker->now_ns = stage->now_ns;
	mrcd_health_judge(stage->worker, stage->now_ns);
	return &stage->worker->rails[0].health;
}

static const char *summary(struct stage *stage, char text[160])
{
	struct mrcd_worker_summary s;

	mrcd_worker_summarize(stage->worker, &s);
	return mrcd_worker_summary_text(&s, text, 160);
}

static void a_peer_s_fault_is_not_the_rail_s(void **state)
{
	struct stage *stage = *state;
	const struct mrcd_rail_health *health;

	is_now(stage, 0, MRC_HEALTH_GOOD, 100, 1000);
	is_now(stage, 1, MRC_HEALTH_FAILING, 10, 1000);
	is_now(stage, 2, MRC_HEALTH_GOOD, 95, 1000);
	health = judged(stage);
	assert_int_equal(health->view.state, MRC_HEALTH_GOOD);
	assert_int_equal(health->view.score, 95);
	assert_int_equal(health->paths_judged, 3);
	assert_int_equal(health->paths_worse, 1);
}

static void a_fault_in_most_paths_is_the_rail_s(void **state)
{
	struct stage *stage = *state;
	const struct mrcd_rail_health *health;
	char text[160];

	is_now(stage, 0, MRC_HEALTH_GOOD, 100, 1000);
	is_now(stage, 1, MRC_HEALTH_FAILING, 10, 1000);
	is_now(stage, 2, MRC_HEALTH_DEGRADED, 50, 1000);
	health = judged(stage);
	assert_int_equal(health->view.state, MRC_HEALTH_DEGRADED);
	assert_int_equal(health->view.score, 50);
	assert_true(health->view.since_ns == stage->now_ns);
	assert_int_equal(stage->worker->rails[1].health.view.state, MRC_HEALTH_GOOD);
	assert_non_null(strstr(summary(stage, text), "of 2 rails up (1 degraded), 0 of 3 peers"));

	is_now(stage, 0, MRC_HEALTH_FAILING, 20, 1000);
	health = judged(stage);
	assert_int_equal(health->view.state, MRC_HEALTH_FAILING);
	assert_non_null(strstr(summary(stage, text), "up (1 failing),"));
	view(stage, 0, 1)->state = MRC_HEALTH_DEGRADED;
	view(stage, 1, 1)->state = MRC_HEALTH_DEGRADED;
	judged(stage);
	assert_non_null(strstr(summary(stage, text), "up (1 failing, 1 degraded),"));
}

static void of_an_even_number_the_better_half_decides(void **state)
{
	struct stage *stage = *state;

	is_now(stage, 0, MRC_HEALTH_DEGRADED, 30, 1000);
	is_now(stage, 1, MRC_HEALTH_GOOD, 90, 1000);
	is_now(stage, 2, MRC_HEALTH_GOOD, 100, 10); /* hardly used: no word */
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_GOOD);
	assert_int_equal(judged(stage)->paths_judged, 2);
	is_now(stage, 1, MRC_HEALTH_GOOD, 90, 10);
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_DEGRADED);
	assert_int_equal(judged(stage)->paths_judged, 1);
}

static void a_better_state_has_to_last_where_several_have_a_word(void **state)
{
	struct stage *stage = *state;

	for (int p = 0; p < PEERS; p++)
		is_now(stage, p, MRC_HEALTH_DEGRADED, 30, 1000);
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_DEGRADED);
	is_now(stage, 0, MRC_HEALTH_GOOD, 90, 1000);
	is_now(stage, 1, MRC_HEALTH_GOOD, 90, 1000);
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_DEGRADED);
	is_now(stage, 1, MRC_HEALTH_DEGRADED, 30, 1000);
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_DEGRADED);
	is_now(stage, 1, MRC_HEALTH_GOOD, 90, 1000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(judged(stage)->view.state, MRC_HEALTH_DEGRADED);
	assert_int_equal(judged(stage)->view.state, MRC_HEALTH_GOOD);
}

static void what_a_rail_s_card_counts_is_put_to_each_path_over_it(void **state)
{
	struct stage *stage = *state;
	struct mrcd_card *card = &stage->worker->rails[0].card;

	card->reading = 3;
	card->counts[MRCD_CARD_RX_CRC] = 12;
	judged(stage);
	for (int peer = 0; peer < PEERS; peer++) {
		const struct mrc_health_path *paths = stage->worker->peers[peer]->health_paths;

		assert_int_equal(paths[0].last.card.reading, 3);
		assert_int_equal(paths[0].last.card.damaged, 12);
		assert_int_equal(paths[1].last.card.reading, 0);
	}
}

static void why_is_said_with_its_numbers(void **state)
{
	static const struct {
		enum mrc_health_cause cause;
		struct mrc_health_view view;
		const char *want;
	} cases[] = {
		{MRC_CAUSE_NONE, {.eta_ns = MRC_NEVER}, ""},
		{MRC_CAUSE_NONE,
		 {.state = MRC_HEALTH_DEGRADED, .eta_ns = MRC_NEVER},
		 "nothing any more; good again when it stays so in service"},
		{MRC_CAUSE_DAMAGE,
		 {.damage_ppm = 23456, .eta_ns = MRC_NEVER},
		 "2.3% frames come damaged"},
		{MRC_CAUSE_DAMAGE,
		 {.damage_ppm = 340, .eta_ns = 90 * MRC_S, .cause = MRC_CAUSE_DAMAGE},
		 "340 of a million frames come damaged, damage grows and is fatal in about 90 s"},
		{MRC_CAUSE_CARD,
		 {.card_ppm = 12, .eta_ns = MRC_NEVER},
		 "12 of a million packets come damaged to the card"},
		{MRC_CAUSE_LOSS,
		 {.loss_ppm = 10000, .eta_ns = MRC_NEVER},
		 "1.0% segments are sent again"},
		{MRC_CAUSE_STALLS,
		 {.stalls = 12, .eta_ns = MRC_NEVER},
		 "stood still 12 times in a minute"},
		{MRC_CAUSE_STALLS,
		 {.stalls = 1, .eta_ns = MRC_NEVER},
		 "stood still 1 time in a minute"},
		{MRC_CAUSE_FLAPS,
		 {.flaps = 1, .eta_ns = MRC_NEVER},
		 "left service 1 time within two hours"},
		{MRC_CAUSE_DELAY,
		 {.delay_ns = 9000000, .usual_ns = 200000, .eta_ns = MRC_NEVER},
		 "answers after 9000 us, usually after 200"},
		{MRC_CAUSE_RATE,
		 {.rate_part = 12, .eta_ns = MRC_NEVER},
		 "delivers 12% of what its siblings do"},
	};
	char text[400];

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_health_view v = cases[i].view;

		v.costs[cases[i].cause] = cases[i].cause != MRC_CAUSE_NONE;
		assert_string_equal(mrcd_health_why(&v, text, sizeof(text)), cases[i].want);
	}
}

/* Before the first judgement, 250 ms after a start, as after one that found nobody to judge. */
static void what_was_never_judged_is_good(void **state)
{
	static const char *const differ[] = {"age_ns", "paths_judged"};
	struct stage *stage = *state;
	json_t *object = json_object(), *first;

	mrcd_health_describe_rail(&stage->worker->rails[1], object);
	first = json_copy(json_object_get(object, "health"));
	assert_int_equal(json_integer_value(json_object_get(first, "score")), 100);
	assert_string_equal(json_string_value(json_object_get(first, "why")), "");
	assert_true(json_is_null(json_object_get(first, "fatal_in_ns")));
	judged(stage);
	mrcd_health_describe_rail(&stage->worker->rails[1], object);
	for (size_t i = 0; i < MRC_ARRAY_LEN(differ); i++) {
		json_object_del(first, differ[i]);
		json_object_del(json_object_get(object, "health"), differ[i]);
	}
	assert_true(json_equal(first, json_object_get(object, "health")));
	json_decref(first);
	json_decref(object);
}

static void the_numbers_are_in_the_object(void **state)
{
	struct stage *stage = *state;
	json_t *object = json_object();
	const json_t *health;

	is_now(stage, 0, MRC_HEALTH_FAILING, 10, 1000);
	view(stage, 0, 0)->eta_ns = 5 * MRC_S;
	view(stage, 0, 0)->damage_ppm = 777;
	view(stage, 0, 0)->cause = MRC_CAUSE_DAMAGE;
	judged(stage);
	stage->worker->now_ns += 3 * MRC_S;
	mrcd_health_describe_rail(&stage->worker->rails[0], object);
	health = json_object_get(object, "health");
	assert_string_equal(json_string_value(json_object_get(health, "state")), "failing");
	assert_string_equal(json_string_value(json_object_get(health, "cause")), "damage");
	assert_int_equal(json_integer_value(json_object_get(health, "score")), 10);
	assert_int_equal(json_integer_value(json_object_get(health, "damage_ppm")), 777);
	assert_int_equal(json_integer_value(json_object_get(health, "age_ns")), 3 * MRC_S);
	assert_int_equal(json_integer_value(json_object_get(health, "fatal_in_ns")), 5 * MRC_S);
	assert_int_equal(json_integer_value(json_object_get(health, "paths_judged")), 1);
	json_decref(object);
	object = json_object();
	mrcd_health_describe_rail(&stage->worker->rails[1], object);
	health = json_object_get(object, "health");
	assert_true(json_is_null(json_object_get(health, "fatal_in_ns")));
	assert_int_equal(json_integer_value(json_object_get(health, "score")), 100);
	json_decref(object);
}

static void each_change_of_a_rail_is_an_event(void **state)
{
	struct stage *stage = *state;
	uint64_t before = mrcd_event_log_count(stage->worker->events);
	const json_t *events;
	json_t *told;

	is_now(stage, 0, MRC_HEALTH_DEGRADED, 50, 1000);
	view(stage, 0, 0)->damage_ppm = 20000;
	view(stage, 0, 0)->costs[MRC_CAUSE_DAMAGE] = 50;
	view(stage, 0, 0)->eta_ns = MRC_NEVER;
	judged(stage);
	judged(stage);
	told = mrcd_event_log_json(stage->worker->events, before);
	events = json_object_get(told, "events");
	assert_int_equal(json_array_size(events), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "kind")),
			    "health-degraded");
	assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "text")),
			    "rail r0: degraded, health 50 of 100: 2.0% frames come damaged");
	json_decref(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_peer_s_fault_is_not_the_rail_s, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fault_in_most_paths_is_the_rail_s, setup,
						teardown),
		cmocka_unit_test_setup_teardown(of_an_even_number_the_better_half_decides, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_better_state_has_to_last_where_several_have_a_word, setup, teardown),
		cmocka_unit_test_setup_teardown(each_change_of_a_rail_is_an_event, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_a_rail_s_card_counts_is_put_to_each_path_over_it, setup, teardown),
		cmocka_unit_test(why_is_said_with_its_numbers),
		cmocka_unit_test_setup_teardown(what_was_never_judged_is_good, setup, teardown),
		cmocka_unit_test_setup_teardown(the_numbers_are_in_the_object, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
