/* SPDX-License-Identifier: BSD-2-Clause */
/* How well paths do: what counts against one, what does not, what foretells its end, and what takes it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_health.h"

#define PATHS   4
#define FRAMES  1000 /* a period */
#define PACKETS 5000 /* a period, of a card */
#define PERIODS 4    /* a second */

/* Four paths that do well; tests change what a period brings. */
struct world {
	struct mrc_health health;
	struct mrc_health_path paths[PATHS];
	struct mrc_health_sample samples[PATHS];
	uint64_t damaged[PATHS], lost[PATHS], stalls[PATHS]; /* a period */
	uint64_t card_damaged[PATHS], card_resent[PATHS];    /* a second; cards are read so often */
	uint64_t periods;
	uint64_t now_ns;
	uint32_t changes[PATHS];
	enum mrc_health_state worst[PATHS];
};

/* Its card counts also while the path is out of service. */
static void card_read(struct world *w, int i)
{
	struct mrc_health_card *card = &w->samples[i].card;

	card->reading++;
	card->received += PERIODS * PACKETS;
	card->damaged += w->card_damaged[i];
	if (w->samples[i].transport != 0)
		return;
	card->sent += PERIODS * PACKETS;
	card->resent += w->card_resent[i];
}

static void period(struct world *w)
{
	uint32_t changed;

	w->now_ns += MRC_HEALTH_PERIOD_NS;
	w->periods++;
	for (int i = 0; i < PATHS; i++) {
		struct mrc_health_sample *s = &w->samples[i];

		if (s->info.state != MRC_PATH_GOOD)
			continue;
		s->info.frames_received += FRAMES;
		s->info.body_errors += w->damaged[i];
		s->segments += 10 * FRAMES;
		s->segments_lost += w->lost[i];
		s->info.suspicions += w->stalls[i];
	}
	for (int i = 0; i < PATHS && w->periods % PERIODS == 0; i++)
		card_read(w, i);
	changed = mrc_health_judge(&w->health, w->samples, w->now_ns);
	for (int i = 0; i < PATHS; i++) {
		w->changes[i] += changed >> i & 1;
		w->worst[i] = MRC_MAX(w->worst[i], w->paths[i].view.state);
	}
}

static void seconds(struct world *w, int count)
{
	for (int i = 0; i < count * PERIODS; i++)
		period(w);
}

static void world_init(struct world *w, uint8_t path_count)
{
	memset(w, 0, sizeof(*w));
	w->now_ns = 1000 * MRC_S;
	mrc_health_init(&w->health, w->paths, path_count);
	for (int i = 0; i < PATHS; i++) {
		struct mrc_path_info *info = &w->samples[i].info;

		info->state = MRC_PATH_GOOD;
		info->rtt_ns = 200 * MRC_US;
		info->rtt_ns_min = 150 * MRC_US;
		info->rate_bytes_per_s = 1000000000;
		w->samples[i].transport = 1;
	}
	seconds(w, 5);
}

static const struct mrc_health_view *view(const struct world *w, int i)
{
	return &w->paths[i].view;
}

static void is_in(const struct world *w, int i, enum mrc_health_state state)
{
	if (view(w, i)->state != state)
		fail_msg("path %d is %s with %u for %s, and should be %s", i,
			 mrc_health_state_name(view(w, i)->state), view(w, i)->score,
			 mrc_health_cause_name(view(w, i)->cause), mrc_health_state_name(state));
}

static void siblings_are_good(const struct world *w, int but)
{
	for (int i = 0; i < PATHS; i++) {
		if (i == but)
			continue;
		assert_int_equal(w->worst[i], MRC_HEALTH_GOOD);
		assert_int_equal(w->changes[i], 0);
	}
}

static void out(struct world *w, int i, enum mrc_path_reason reason)
{
	w->samples[i].info.state = MRC_PATH_CONNECTING;
	w->samples[i].info.reason = reason;
	w->samples[i].info.bad_count++;
}

static void back(struct world *w, int i)
{
	w->samples[i].info.state = MRC_PATH_GOOD;
	w->samples[i].transport++;
	w->samples[i].segments = 0;
	w->samples[i].segments_lost = 0;
}

/* ---- one path's own ---- */

static void a_path_that_does_well_has_all_points(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	seconds(&w, 60);
	assert_int_equal(view(&w, 0)->score, 100);
	assert_int_equal(view(&w, 0)->cause, MRC_CAUSE_NONE);
	assert_true(view(&w, 0)->eta_ns == MRC_NEVER);
	siblings_are_good(&w, -1);
}

/* Each alone is enough, says so with its number, and is gone when it ends. */
static void each_kind_of_trouble_degrades_the_path_that_has_it(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.damaged[1] = 1;
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_DAMAGE);
	assert_in_range(view(&w, 1)->damage_ppm, 500, 1500);
	siblings_are_good(&w, 1);

	world_init(&w, PATHS);
	w.lost[1] = 200; /* 2% */
	seconds(&w, 60);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_LOSS);
	assert_in_range(view(&w, 1)->loss_ppm, 15000, 25000);
	siblings_are_good(&w, 1);

	world_init(&w, PATHS);
	w.stalls[1] = 1;
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_STALLS);
	assert_true(view(&w, 1)->stalls >= 30);
	siblings_are_good(&w, 1);

	world_init(&w, PATHS);
	w.samples[1].info.rtt_ns = 20 * MRC_MS;
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_DELAY);
	assert_in_range(view(&w, 1)->delay_ns, 15 * MRC_MS, 20 * MRC_MS);
	assert_int_equal(view(&w, 1)->usual_ns, 150 * MRC_US);
	siblings_are_good(&w, 1);
	w.samples[1].info.rtt_ns = 200 * MRC_US;
	seconds(&w, 20);
	is_in(&w, 1, MRC_HEALTH_GOOD);

	world_init(&w, PATHS);
	w.samples[1].info.is_filled = true;
	w.samples[1].info.rate_bytes_per_s = 100000000;
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_RATE);
	assert_int_equal(view(&w, 1)->rate_part, 10);
	siblings_are_good(&w, 1);
	w.samples[1].info.is_filled = false; /* it was hardly used: its rate says nothing */
	seconds(&w, 20);
	is_in(&w, 1, MRC_HEALTH_GOOD);
}

/* In a drill everything goes wrong with it at once. */
static void worst_is_brought(struct world *w, int i)
{
	w->damaged[i] = 100;
	w->lost[i] = 3000;
	w->stalls[i] = 2;
	w->card_damaged[i] = 500;
	w->samples[i].info.rtt_ns = 50 * MRC_MS;
	w->samples[i].info.is_filled = true;
	w->samples[i].info.rate_bytes_per_s = 1000000;
}

static void what_a_path_does_while_it_is_excused_is_no_evidence(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	/* It left just before anybody was told of the drill. */
	out(&w, 1, MRC_REASON_SILENT);
	period(&w);
	w.samples[1].is_excused = true;
	for (int round = 0; round < 10; round++) {
		worst_is_brought(&w, 1);
		seconds(&w, 3);
		out(&w, 1, MRC_REASON_SILENT);
		seconds(&w, 2);
		back(&w, 1);
		out(&w, 1, MRC_REASON_CARRIER); /* and back before anybody looked */
		back(&w, 1);
	}
	memset(w.damaged, 0, sizeof(w.damaged));
	memset(w.lost, 0, sizeof(w.lost));
	memset(w.stalls, 0, sizeof(w.stalls));
	memset(w.card_damaged, 0, sizeof(w.card_damaged));
	w.samples[1].info.rtt_ns = 200 * MRC_US;
	w.samples[1].info.rate_bytes_per_s = 1000000000;
	seconds(&w, 2);
	/* Its card was last read in the drill. */
	while (w.periods % PERIODS != 1)
		period(&w);
	w.card_damaged[1] = 5000;
	w.samples[1].is_excused = false;
	seconds(&w, 1);
	assert_int_equal(view(&w, 1)->card_ppm, 0);
	w.card_damaged[1] = 0;
	seconds(&w, 30);
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->score, 100);
	assert_int_equal(view(&w, 1)->flaps, 0);
	assert_int_equal(view(&w, 1)->damage_ppm, 0);
	assert_int_equal(view(&w, 1)->card_ppm, 0);

	/* Nor does it heal: what was found before stays. */
	world_init(&w, PATHS);
	w.damaged[1] = 1;
	seconds(&w, 30);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	w.damaged[1] = 0;
	w.samples[1].is_excused = true;
	seconds(&w, 600);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_DAMAGE);
	w.samples[1].is_excused = false;
	worst_is_brought(&w, 1);
	seconds(&w, 10);
	assert_true(view(&w, 1)->score < 20);
}

/* What the card drops as damaged TCP sends again, and no frame of ours is ever seen damaged. */
static void what_a_card_finds_damaged_counts_against_its_paths(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.card_damaged[1] = 20; /* 1000 of a million */
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_CARD);
	assert_in_range(view(&w, 1)->card_ppm, 700, 1300);
	assert_int_equal(view(&w, 1)->damage_ppm, 0);
	siblings_are_good(&w, 1);
	w.card_damaged[1] = 0;
	seconds(&w, 120);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	assert_int_equal(view(&w, 1)->card_ppm, 0);

	/* As many at all of them are not its own. */
	world_init(&w, PATHS);
	for (int i = 0; i < PATHS; i++)
		w.card_damaged[i] = 20;
	seconds(&w, 30);
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->score, 100);
}

static void a_card_is_read_less_often_and_no_less_is_seen(void **state)
{
	struct world w;

	/* A minute counts whatever the number of readings in it is. */
	world_init(&w, PATHS);
	w.card_damaged[1] = 20;
	seconds(&w, 300);
	w.damaged[2] = 1;
	seconds(&w, 300);
	assert_in_range(w.paths[1].card.units / 256, 64 * PERIODS * PACKETS * 9 / 10,
			64 * PERIODS * PACKETS * 11 / 10);
	assert_in_range(w.paths[1].card.errors / 65536, 64 * 20 * 9 / 10, 64 * 20 * 11 / 10);
	assert_in_range(w.paths[2].damage.units / 256, 64 * PERIODS * FRAMES * 9 / 10,
			64 * PERIODS * FRAMES * 11 / 10);
}

/* A plug that is being pushed in brings damage, and is no bad cable for it. */
static void what_comes_while_a_link_comes_up_is_not_held_against_it(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	seconds(&w, 60);
	out(&w, 1, MRC_REASON_CARRIER);
	w.card_damaged[1] = 5000;
	seconds(&w, 5);
	back(&w, 1);
	period(&w);
	w.card_damaged[1] = 0;
	w.samples[1].card.damaged += 5000; /* also between the last reading and its being back */
	seconds(&w, 10);
	assert_int_equal(view(&w, 1)->card_ppm, 0);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	/* Nor when it only stops to serve, just before the card is read. */
	seconds(&w, 1);
	while (w.periods % PERIODS != PERIODS - 1)
		period(&w);
	w.samples[1].info.state = MRC_PATH_PROBING;
	w.card_damaged[1] = 5000;
	period(&w);
	assert_int_equal(view(&w, 1)->card_ppm, 0);
	w.card_damaged[1] = 0;
	w.samples[1].info.state = MRC_PATH_GOOD;
	seconds(&w, 10);
	w.card_damaged[1] = 200; /* now it is in service */
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_CARD);
}

/* Queue pairs: the transport is in the card, and says what it sent again for all of them. */
static void what_a_card_sends_again_is_loss(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < PATHS; i++)
		w.samples[i].transport = 0;
	seconds(&w, 5);
	assert_int_equal(view(&w, 1)->units, w.paths[1].damage.units / 256);
	w.card_resent[1] = 400; /* 2% */
	seconds(&w, 60);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_LOSS);
	assert_in_range(view(&w, 1)->loss_ppm, 15000, 25000);
	siblings_are_good(&w, 1);
	w.card_resent[1] = 0;
	seconds(&w, 600);
	is_in(&w, 1, MRC_HEALTH_GOOD);
}

static void a_card_s_errors_that_grow_foretell_the_end(void **state)
{
	struct world w;
	uint64_t seconds_until = 0;

	/* Twice as many every 20 seconds. */
	world_init(&w, PATHS);
	for (uint32_t i = 0; i < 180 && view(&w, 1)->state != MRC_HEALTH_FAILING; i++) {
		w.card_damaged[1] = 1ULL << i / 20;
		seconds(&w, 1);
		seconds_until = i;
	}
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_CARD);
	assert_true(view(&w, 1)->eta_ns != MRC_NEVER);
	assert_in_range(seconds_until, 40, 170);
	siblings_are_good(&w, 1);

	/* The same, of what is sent again where no queue is. */
	world_init(&w, PATHS);
	for (int i = 0; i < PATHS; i++)
		w.samples[i].transport = 0;
	for (uint32_t i = 0; i < 240 && view(&w, 1)->state != MRC_HEALTH_FAILING; i++) {
		w.card_resent[1] = 1ULL << i / 20;
		seconds(&w, 1);
	}
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_LOSS);
}

static void a_rail_made_slow_is_measured_by_what_it_should_carry(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < PATHS; i++)
		w.samples[i].speed = 10000;
	w.samples[1].speed = 1000;
	w.samples[1].info.is_filled = true;
	w.samples[1].info.rate_bytes_per_s = 100000000;
	seconds(&w, 10);
	siblings_are_good(&w, -1);
	w.samples[1].info.rate_bytes_per_s = 20000000;
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->rate_part, 20);
}

/* A bucket that was full makes a burst, and the rate that was seen in it may stay for a while. */
static void the_burst_of_one_sibling_makes_no_other_slow(void **state)
{
	struct world w;

	world_init(&w, 3);
	w.samples[0].info.is_filled = w.samples[1].info.is_filled = true;
	w.samples[2].info.rate_bytes_per_s = 7000000000;
	seconds(&w, 20);
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->rate_part, 100);
	/* Two of them are no chance. */
	w.samples[0].info.rate_bytes_per_s = 7000000000;
	seconds(&w, 20);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(view(&w, 1)->rate_part, 14);
}

static void its_own_queue_makes_no_path_late(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.samples[1].info.is_filled = true;
	w.samples[1].info.window_bytes = 20000000; /* 20 ms at its rate */
	w.samples[1].info.rtt_ns = 20 * MRC_MS;
	seconds(&w, 20);
	siblings_are_good(&w, -1);
	w.samples[1].info.window_bytes = 1000000;
	seconds(&w, 20);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
}

static void two_errors_prove_nothing(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.damaged[1] = 2;
	period(&w);
	w.damaged[1] = 0;
	seconds(&w, 60);
	siblings_are_good(&w, -1);
}

static void a_fragment_cut_short_is_no_damage(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < 100; i++) {
		w.samples[1].info.body_errors += 5;
		w.samples[1].cuts += 5;
		period(&w);
	}
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->score, 100);
}

static void frames_that_come_whole_refute_what_was(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.damaged[1] = 100; /* one of ten */
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	w.damaged[1] = 0;
	seconds(&w, 1);
	assert_true(view(&w, 1)->damage_ppm > 50000);
	seconds(&w, 1);
	/* 8,000 came whole: 500 errors were to be expected. */
	assert_int_equal(view(&w, 1)->damage_ppm, 0);
	seconds(&w, 9);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	seconds(&w, 2);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	assert_int_equal(w.changes[1], 2);
}

static void a_state_that_comes_and_goes_does_not_flicker(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < 200; i++) { /* 5 s bad, 12 s well: an hour nearly */
		w.damaged[1] = 20;
		seconds(&w, 5);
		w.damaged[1] = 0;
		seconds(&w, 12);
	}
	/* Each relapse doubles what is wanted: 10 s let it go, 20 s do not. */
	assert_in_range(w.changes[1], 1, 5);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	seconds(&w, 700);
	is_in(&w, 1, MRC_HEALTH_GOOD);
}

/* ---- the host's and the fabric's ---- */

static void what_all_paths_suffer_counts_against_none(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < PATHS; i++) {
		w.damaged[i] = 20; /* a program that changes what it sends */
		w.lost[i] = 500;
		w.stalls[i] = 1;
		w.samples[i].info.rtt_ns = (20 + (uint64_t)i) * MRC_MS;
		w.samples[i].info.rate_bytes_per_s = 1000000;
		w.samples[i].info.is_filled = true;
	}
	seconds(&w, 60);
	siblings_are_good(&w, -1);
	w.damaged[1] = 400; /* and one much more of it */
	seconds(&w, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	siblings_are_good(&w, 1);
}

static void what_was_counted_while_the_host_stood_still_is_not_held_against_a_path(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int i = 0; i < 20; i++) {
		w.now_ns += 3 * MRC_S;
		w.damaged[1] = 1000;
		w.stalls[1] = 50;
		period(&w);
		w.damaged[1] = 0;
		w.stalls[1] = 0;
		seconds(&w, 1);
	}
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->score, 100);
}

static void a_path_alone_is_judged_by_damage_and_flaps_only(void **state)
{
	struct world w;

	world_init(&w, 1);
	w.lost[0] = 1000;
	w.stalls[0] = 5;
	w.samples[0].info.rtt_ns = 100 * MRC_MS;
	w.samples[0].info.is_filled = true;
	w.samples[0].info.rate_bytes_per_s = 1;
	seconds(&w, 60);
	is_in(&w, 0, MRC_HEALTH_GOOD);
	w.damaged[0] = 10;
	seconds(&w, 10);
	is_in(&w, 0, MRC_HEALTH_DEGRADED);
}

/* ---- leaving service ---- */

static void flap(struct world *w, int i, enum mrc_path_reason reason, int out_s)
{
	out(w, i, reason);
	seconds(w, out_s);
	back(w, i);
	seconds(w, 20);
}

static void one_flap_shows_two_degrade_and_three_foretell_the_next(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	flap(&w, 1, MRC_REASON_ERROR, 2);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	assert_int_equal(view(&w, 1)->score, 85);
	assert_int_equal(view(&w, 1)->flaps, 1);
	flap(&w, 1, MRC_REASON_PROBE, 2);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	flap(&w, 1, MRC_REASON_PEER_FENCE, 2);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_FLAPS);
	assert_int_equal(view(&w, 1)->flaps, 3);
	siblings_are_good(&w, 1);
	seconds(&w, 2 * 3600);
	is_in(&w, 1, MRC_HEALTH_GOOD);
}

static void what_was_somebody_s_wish_is_no_flap(void **state)
{
	static const enum mrc_path_reason reasons[] = {MRC_REASON_PEER_PORT, MRC_REASON_NEW_CONN,
						       MRC_REASON_CLOSED, MRC_REASON_OPERATOR};
	struct world w;

	world_init(&w, PATHS);
	for (size_t i = 0; i < MRC_ARRAY_LEN(reasons); i++)
		flap(&w, 1, reasons[i], 5);
	siblings_are_good(&w, -1);
	assert_int_equal(view(&w, 1)->flaps, 0);
	/* The peer's word came before the kernel's: our own carrier went as well. */
	out(&w, 1, MRC_REASON_PEER_PORT);
	period(&w);
	assert_int_equal(view(&w, 1)->flaps, 0);
	w.samples[1].carrier_losses++;
	seconds(&w, 3);
	assert_int_equal(view(&w, 1)->flaps, 1);
}

static void all_out_at_once_is_the_host_or_the_peer(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int n = 0; n < 5; n++) {
		for (int i = 0; i < PATHS; i++) {
			out(&w, i, MRC_REASON_CARRIER);
			w.samples[i].carrier_losses++;
		}
		seconds(&w, 12);
		for (int i = 0; i < PATHS; i++)
			back(&w, i);
		seconds(&w, 10);
	}
	siblings_are_good(&w, -1);
	for (int i = 0; i < PATHS; i++)
		assert_int_equal(view(&w, i)->flaps, 0);
}

static void a_suspicion_taken_back_at_once_is_a_stall(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int n = 0; n < 2; n++) {
		out(&w, 1, MRC_REASON_SILENT);
		w.samples[1].info.suspicions++;
		period(&w);
		back(&w, 1);
		seconds(&w, 1);
	}
	assert_int_equal(view(&w, 1)->flaps, 0);
	assert_int_equal(view(&w, 1)->stalls, 2);
	out(&w, 1, MRC_REASON_SILENT);
	seconds(&w, 2);
	assert_int_equal(view(&w, 1)->flaps, 1);
}

static void time_out_of_service_heals_nothing(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int n = 0; n < 3; n++)
		flap(&w, 1, MRC_REASON_ERROR, 2);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	out(&w, 1, MRC_REASON_ERROR);
	seconds(&w, 5 * 3600);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_int_equal(view(&w, 1)->flaps, 4);
}

static void a_drained_path_begins_anew(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int n = 0; n < 3; n++)
		flap(&w, 1, MRC_REASON_ERROR, 2);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	out(&w, 1, MRC_REASON_OPERATOR);
	w.samples[1].info.state = MRC_PATH_DENIED;
	w.changes[1] = 0;
	seconds(&w, 1);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	assert_int_equal(w.changes[1], 1);
	back(&w, 1);
	seconds(&w, 1);
	assert_int_equal(view(&w, 1)->score, 100);
	assert_int_equal(view(&w, 1)->flaps, 0);
}

static void between_the_two_marks_a_path_stays_what_it_is(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	flap(&w, 1, MRC_REASON_ERROR, 2);
	w.stalls[1] = 8;
	period(&w);
	w.stalls[1] = 0;
	seconds(&w, 15);
	assert_int_equal(view(&w, 1)->score, 70);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	w.damaged[1] = 20;
	seconds(&w, 5);
	w.damaged[1] = 0;
	seconds(&w, 15);
	assert_int_equal(view(&w, 1)->score, 70);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	seconds(&w, 60); /* the stalls are long past */
	is_in(&w, 1, MRC_HEALTH_GOOD);
}

static void a_path_that_never_answered_is_not_late(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	w.samples[1].info.rtt_ns = 0;
	w.samples[1].info.rtt_ns_min = 0;
	mrc_health_init(&w.health, w.paths, PATHS);
	seconds(&w, 30);
	siblings_are_good(&w, -1);
	assert_true(view(&w, 1)->delay_ns == 0);
}

/* ---- trends ---- */

/* `errors` grows from `least` by a half every `step_s`, on path 1, until the path fails or it is `most`. */
static void grow(struct world *w, uint64_t *errors, double least, double most, int step_s)
{
	double now = least, owed = 0;

	while (now < most && view(w, 1)->state != MRC_HEALTH_FAILING) {
		for (int i = 0; i < step_s * PERIODS; i++) {
			owed += now;
			*errors = (uint64_t)owed;
			owed -= (double)*errors;
			period(w);
		}
		now *= 1.5;
	}
}

static void damage_that_grows_foretells_the_end_at_any_pace(void **state)
{
	static const int steps_s[] = {10, 120};

	for (size_t i = 0; i < MRC_ARRAY_LEN(steps_s); i++) {
		struct world w;

		world_init(&w, PATHS);
		grow(&w, &w.damaged[1], 0.001, 30, steps_s[i]);
		is_in(&w, 1, MRC_HEALTH_FAILING);
		assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_DAMAGE);
		assert_true(view(&w, 1)->eta_ns != MRC_NEVER && view(&w, 1)->eta_ns > 0);
		siblings_are_good(&w, 1);
		/* It is mended: so the trend is over too. */
		w.damaged[1] = 0;
		seconds(&w, 300);
		is_in(&w, 1, MRC_HEALTH_GOOD);
	}
}

static void a_rate_that_was_survived_foretells_nothing_more(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	grow(&w, &w.damaged[1], 0.1, 2, 20);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	seconds(&w, 3600); /* and there it stays */
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	w.worst[1] = MRC_HEALTH_GOOD;
	grow(&w, &w.damaged[1], 0.05, 0.5, 20);
	seconds(&w, 600);
	assert_int_equal(w.worst[1], MRC_HEALTH_DEGRADED);
	grow(&w, &w.damaged[1], 1, 30, 20);
	is_in(&w, 1, MRC_HEALTH_FAILING);
}

static void at_the_fatal_rate_nothing_is_left_to_wait_for(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (uint64_t damaged = 1; damaged < 1000; damaged *= 3) {
		w.damaged[1] = damaged;
		seconds(&w, 32);
	}
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_true(view(&w, 1)->eta_ns == 0);
}

static void damage_that_stays_the_same_foretells_nothing(void **state)
{
	struct world w;
	struct mrc_rng rng = {.state = 7};

	world_init(&w, PATHS);
	for (int i = 0; i < 6 * 3600 * PERIODS; i++) {
		w.damaged[1] = mrc_rng_next(&rng) % 4 == 0;
		period(&w);
	}
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(w.worst[1], MRC_HEALTH_DEGRADED);
}

static void a_burst_is_no_trend(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	for (int n = 0; n < 50; n++) {
		w.damaged[1] = 50 * (uint64_t)(n + 1);
		period(&w);
		w.damaged[1] = 0;
		seconds(&w, 100);
	}
	assert_int_not_equal(w.worst[1], MRC_HEALTH_FAILING);
}

static void loss_that_grows_foretells_the_end_unless_a_queue_explains_it(void **state)
{
	struct world w;

	world_init(&w, PATHS);
	grow(&w, &w.lost[1], 0.01, 300, 10);
	is_in(&w, 1, MRC_HEALTH_FAILING);
	assert_int_equal(view(&w, 1)->cause, MRC_CAUSE_LOSS);

	world_init(&w, PATHS);
	w.samples[1].info.rtt_ns = 5 * MRC_MS;
	seconds(&w, 20);
	grow(&w, &w.lost[1], 0.01, 1000, 10);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	assert_int_equal(w.worst[1], MRC_HEALTH_DEGRADED);
}

/* Paths come and go with the configuration, and what judges them moves to where there is room. */
static void a_path_that_takes_another_s_place_has_nothing_against_it(void **state)
{
	struct mrc_health_path more[PATHS];
	struct world w;

	world_init(&w, PATHS - 1);
	w.stalls[0] = w.damaged[1] = 1;
	seconds(&w, 10);
	is_in(&w, 0, MRC_HEALTH_DEGRADED);
	is_in(&w, 1, MRC_HEALTH_DEGRADED);
	w.damaged[1] = 0;
	mrc_health_put(&w.health, w.paths, 1);
	is_in(&w, 1, MRC_HEALTH_GOOD);
	assert_int_equal(view(&w, 1)->score, 100);
	is_in(&w, 0, MRC_HEALTH_DEGRADED);
	assert_int_equal(w.health.path_count, PATHS - 1);

	/* One more, which is judged as the others are. */
	memcpy(more, w.paths, sizeof(more));
	mrc_health_put(&w.health, more, PATHS - 1);
	assert_int_equal(w.health.path_count, PATHS);
	w.damaged[PATHS - 1] = 1;
	seconds(&w, 10);
	assert_int_equal(more[PATHS - 1].view.state, MRC_HEALTH_DEGRADED);
	assert_int_equal(more[1].view.state, MRC_HEALTH_GOOD);
	assert_int_equal(more[0].view.state, MRC_HEALTH_DEGRADED);
}

static void every_state_and_cause_has_a_word_of_its_own(void **state)
{
	for (int i = 0; i < MRC_HEALTH_STATE_COUNT; i++)
		assert_string_not_equal(mrc_health_state_name((enum mrc_health_state)i), "?");
	for (int i = 0; i < MRC_CAUSE_COUNT; i++)
		assert_string_not_equal(mrc_health_cause_name((enum mrc_health_cause)i), "?");
	assert_string_equal(mrc_health_state_name(MRC_HEALTH_STATE_COUNT), "?");
	assert_string_equal(mrc_health_cause_name(MRC_CAUSE_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_does_well_has_all_points),
		cmocka_unit_test(each_kind_of_trouble_degrades_the_path_that_has_it),
		cmocka_unit_test(what_a_path_does_while_it_is_excused_is_no_evidence),
		cmocka_unit_test(what_a_card_finds_damaged_counts_against_its_paths),
		cmocka_unit_test(a_card_is_read_less_often_and_no_less_is_seen),
		cmocka_unit_test(what_comes_while_a_link_comes_up_is_not_held_against_it),
		cmocka_unit_test(what_a_card_sends_again_is_loss),
		cmocka_unit_test(a_card_s_errors_that_grow_foretell_the_end),
		cmocka_unit_test(a_rail_made_slow_is_measured_by_what_it_should_carry),
		cmocka_unit_test(the_burst_of_one_sibling_makes_no_other_slow),
		cmocka_unit_test(its_own_queue_makes_no_path_late),
		cmocka_unit_test(two_errors_prove_nothing),
		cmocka_unit_test(a_fragment_cut_short_is_no_damage),
		cmocka_unit_test(frames_that_come_whole_refute_what_was),
		cmocka_unit_test(a_state_that_comes_and_goes_does_not_flicker),
		cmocka_unit_test(what_all_paths_suffer_counts_against_none),
		cmocka_unit_test(
			what_was_counted_while_the_host_stood_still_is_not_held_against_a_path),
		cmocka_unit_test(a_path_alone_is_judged_by_damage_and_flaps_only),
		cmocka_unit_test(one_flap_shows_two_degrade_and_three_foretell_the_next),
		cmocka_unit_test(what_was_somebody_s_wish_is_no_flap),
		cmocka_unit_test(all_out_at_once_is_the_host_or_the_peer),
		cmocka_unit_test(a_suspicion_taken_back_at_once_is_a_stall),
		cmocka_unit_test(time_out_of_service_heals_nothing),
		cmocka_unit_test(a_drained_path_begins_anew),
		cmocka_unit_test(between_the_two_marks_a_path_stays_what_it_is),
		cmocka_unit_test(a_path_that_never_answered_is_not_late),
		cmocka_unit_test(damage_that_grows_foretells_the_end_at_any_pace),
		cmocka_unit_test(a_rate_that_was_survived_foretells_nothing_more),
		cmocka_unit_test(at_the_fatal_rate_nothing_is_left_to_wait_for),
		cmocka_unit_test(damage_that_stays_the_same_foretells_nothing),
		cmocka_unit_test(a_burst_is_no_trend),
		cmocka_unit_test(loss_that_grows_foretells_the_end_unless_a_queue_explains_it),
		cmocka_unit_test(a_path_that_takes_another_s_place_has_nothing_against_it),
		cmocka_unit_test(every_state_and_cause_has_a_word_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
