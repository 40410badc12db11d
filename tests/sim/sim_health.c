/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_health.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_history.h"

#define RAILS   4
#define HOUR    3600.0
#define DAY     86400.0
#define LIVES   (8 * HOUR) /* of one that does not end by itself */
#define RUN_MAX 1000

/* ---- what befalls a host anyway ---- */

/* Programs work and rest, alike on all rails. */
static void draw_traffic(struct history *h, struct mrc_rng *rng)
{
	double at_s = 0;

	while (at_s < h->lasts_s) {
		bool is_busy = history_uniform(rng) < 0.7;

		history_add(h, at_s, -1, HISTORY_frames,
			    is_busy ? history_between(rng, 200, 20000) : 0, 0);
		at_s += history_between(rng, 10, is_busy ? 3000 : 600);
	}
}

/* The host stands still now and then; a frame comes damaged once in days; small bursts overrun queues. */
static void draw_daily(struct history *h, struct mrc_rng *rng)
{
	for (double at_s = history_waiting(rng, HOUR); at_s < h->lasts_s;
	     at_s += history_waiting(rng, HOUR))
		history_add(h, at_s, -1, HISTORY_paused, history_between(rng, 0.1, 5), 0);
	for (double at_s = history_waiting(rng, 2 * DAY); at_s < h->lasts_s;
	     at_s += history_waiting(rng, 2 * DAY)) {
		int rail = (int)(history_uniform(rng) * RAILS);

		history_add(h, at_s, rail, HISTORY_damage, 200, 0);
		history_add(h, at_s + 0.5, rail, HISTORY_damage, 0, 0);
	}
	for (double at_s = history_waiting(rng, 600); at_s < h->lasts_s;
	     at_s += history_waiting(rng, 600)) {
		int rail = history_uniform(rng) < 0.5 ? -1 : (int)(history_uniform(rng) * RAILS);
		double span_s = history_between(rng, 0.25, 2);

		history_add(h, at_s, rail, HISTORY_loss, history_between(rng, 100, 20000), 0);
		history_add(h, at_s + span_s, rail, HISTORY_loss, 0, 0);
	}
}

/* Queues fill, overflow and drain: of all rails (-1), or of one plane. What is lost is lost by a full queue. */
static void draw_congestion(struct history *h, struct mrc_rng *rng, int rail, double every_s)
{
	for (double at_s = history_waiting(rng, every_s); at_s < h->lasts_s;
	     at_s += history_waiting(rng, every_s)) {
		static const enum history_what whats[] = {HISTORY_queue, HISTORY_loss,
							  HISTORY_stalls};
		double full_s = at_s + history_between(rng, 1, 60);
		double over_s = history_between(rng, 1, 300);
		double end_s = full_s + over_s + history_between(rng, 5, 1800);

		history_add(h, at_s, rail, HISTORY_queue, history_between(rng, 200, 20000),
			    full_s - at_s);
		history_add(h, full_s, rail, HISTORY_noise, rail < 0 ? 50 : 100, 0);
		history_add(h, full_s, rail, HISTORY_loss, history_between(rng, 100, 30000),
			    over_s);
		history_add(h, full_s, rail, HISTORY_stalls, history_between(rng, 1, 120), over_s);
		for (size_t k = 0; k < MRC_ARRAY_LEN(whats); k++)
			history_add(h, end_s, rail, whats[k], 0, 0);
		at_s = end_s;
	}
}

/* ---- kinds of history: rail 0 is the one with a fault ---- */

static void draw_healthy(struct history *h, struct mrc_rng *rng)
{
	history_init(h, RAILS, LIVES);
}

static void draw_congested(struct history *h, struct mrc_rng *rng)
{
	history_init(h, RAILS, LIVES);
	draw_congestion(h, rng, -1, HOUR);
}

static void draw_plane(struct history *h, struct mrc_rng *rng)
{
	history_init(h, RAILS, LIVES);
	draw_congestion(h, rng, 0, HOUR);
}

/*
 * A module or a connector that gets worse: errors double in 10 s to an hour,
 * until the link cannot be held.
 */
static void draw_decay_of(struct history *h, struct mrc_rng *rng, enum history_what what)
{
	double double_s = history_between(rng, 10, HOUR);
	double last_ppm = history_between(rng, 3000, 100000);
	double begin_s = history_between(rng, 60, HOUR);
	double grows_s = double_s * log2(last_ppm / 0.1);

	history_init(h, RAILS, begin_s + grows_s + 10);
	history_add(h, begin_s, 0, HISTORY_noise, history_uniform(rng) * 100, 0);
	history_add(h, begin_s, 0, what, 0.1, 0);
	history_add(h, begin_s, 0, what, last_ppm, grows_s);
	history_add(h, begin_s + grows_s, 0, HISTORY_dead, 0, 0);
}

static void draw_decay(struct history *h, struct mrc_rng *rng)
{
	draw_decay_of(h, rng, HISTORY_damage);
}

/* The same where a card drops what is damaged, and TCP sends it again. */
static void draw_decay_lost(struct history *h, struct mrc_rng *rng)
{
	draw_decay_of(h, rng, HISTORY_loss);
}

/* It gets worse by steps, as when somebody moves a cable now and then. */
static void draw_steps(struct history *h, struct mrc_rng *rng)
{
	double at_s = history_between(rng, 60, HOUR), ppm = history_between(rng, 0.5, 20);

	history_init(h, RAILS, 2 * DAY);
	while (ppm < 30000) {
		history_add(h, at_s, 0, HISTORY_damage, ppm, 0);
		ppm *= history_between(rng, 1.5, 10);
		at_s += history_between(rng, 60, HOUR);
	}
	history_add(h, at_s, 0, HISTORY_dead, 0, 0);
	h->lasts_s = at_s + 10;
}

/* It flaps ever more often, and does not come back. */
static void draw_flaps_to_death(struct history *h, struct mrc_rng *rng)
{
	double gap_s = history_between(rng, 600, 2 * HOUR), at_s = gap_s;
	double factor = history_between(rng, 0.4, 0.9);

	history_init(h, RAILS, 2 * DAY);
	for (; gap_s > 20; gap_s *= factor) {
		history_add(h, at_s, 0, HISTORY_down, history_between(rng, 0.3, 15), 0);
		at_s += gap_s * (0.5 + history_uniform(rng));
	}
	history_add(h, at_s, 0, HISTORY_dead, 0, 0);
	h->lasts_s = at_s + 10;
}

/* It flaps for a day, now more and now less, and lives. */
static void draw_flapping(struct history *h, struct mrc_rng *rng)
{
	double mean_s = history_between(rng, 300, 3 * HOUR);

	history_init(h, RAILS, LIVES);
	for (double at_s = history_waiting(rng, mean_s); at_s < h->lasts_s;
	     at_s += history_waiting(rng, mean_s))
		history_add(h, at_s, 0, HISTORY_down, history_between(rng, 0.3, 15), 0);
}

/*
 * Corruption as most of it is: stable for long, whatever the load (Zhuo et al.,
 * Understanding and Mitigating Packet Corruption in Data Center Networks,
 * SIGCOMM 2017).
 */
static void draw_noisy(struct history *h, struct mrc_rng *rng)
{
	history_init(h, RAILS, LIVES);
	history_add(h, 0, 0, HISTORY_damage, history_between(rng, 1, 5000), 0);
	history_add(h, 0, 0, HISTORY_noise, history_uniform(rng) * 100, 0);
}

/* Somebody touches a cable: bursts, and whole in between. */
static void draw_bursts(struct history *h, struct mrc_rng *rng)
{
	history_init(h, RAILS, LIVES);
	for (double at_s = history_waiting(rng, 2 * HOUR); at_s < h->lasts_s;
	     at_s += history_waiting(rng, 2 * HOUR)) {
		history_add(h, at_s, 0, HISTORY_damage, history_between(rng, 100, 50000), 0);
		history_add(h, at_s + history_between(rng, 0.5, 20), 0, HISTORY_damage, 0, 0);
	}
}

/*
 * Forward error correction hides a link's decay until its margin is used up;
 * within seconds nothing gets through ("cliff effect", NVSentinel's design of a
 * NIC health monitor, link counter detection, 2.3.1).
 */
static void draw_cliff(struct history *h, struct mrc_rng *rng)
{
	double at_s = history_between(rng, 60, 6 * HOUR), over_s = history_between(rng, 1, 120);

	history_init(h, RAILS, at_s + over_s + 10);
	history_add(h, at_s, 0, HISTORY_damage, 200000, over_s);
	history_add(h, at_s + over_s, 0, HISTORY_dead, 0, 0);
}

static void draw_sudden(struct history *h, struct mrc_rng *rng)
{
	double at_s = history_between(rng, 60, 6 * HOUR);

	history_init(h, RAILS, at_s + 10);
	history_add(h, at_s, 0, HISTORY_dead, 0, 0);
}

/*
 * What a kind is held to with --aim: parts of failures, alarms by rail-day. They
 * leave room for other seeds; the table in README.md has what it reaches.
 */
struct aim {
	double foretold;     /* at least: of failures, FAILING when they came */
	double lead_s;       /* at least: by so much, the median */
	double seen;         /* at least: DEGRADED or FAILING when they came */
	double failing_max;  /* at most: FAILING, of rails that live */
	double degraded_max; /* at most: DEGRADED, of rails without a fault */
	double shown;        /* at least: of rails with a fault that live, DEGRADED at all */
};

static const struct kind {
	const char *name;
	void (*draw)(struct history *h, struct mrc_rng *rng);
	bool is_faulty; /* rail 0 has a fault; else what is said of it is false too */
	bool may_fail;  /* FAILING is right for rail 0, though it lives */
	struct aim aim;
} kinds[] = {
	{"healthy", draw_healthy, false, false, {.foretold = 0}},
	{"congested, all rails", draw_congested, false, false, {.degraded_max = 0.5}},
	{"congested, one rail", draw_plane, true, false, {.shown = 0.9}},
	{"noisy, stable", draw_noisy, true, false, {.failing_max = 1, .shown = 0.5}},
	{"bursts", draw_bursts, true, false, {.failing_max = 0.2, .shown = 0.5}},
	{"flapping, lives", draw_flapping, true, true, {.seen = 0.6, .shown = 0.4}},
	{"damage grows", draw_decay, true, true, {.foretold = 0.75, .lead_s = 120, .seen = 0.75}},
	{"loss grows", draw_decay_lost, true, true, {.foretold = 0.3, .lead_s = 30, .seen = 0.3}},
	{"damage by steps", draw_steps, true, true, {.foretold = 0.3, .lead_s = 60, .seen = 0.9}},
	{"flaps, then dies",
	 draw_flaps_to_death,
	 true,
	 true,
	 {.foretold = 0.9, .lead_s = 120, .seen = 0.9}},
	{"cliff", draw_cliff, true, true, {.foretold = 0}},
	{"sudden", draw_sudden, true, true, {.foretold = 0}},
};

/* ---- counting ---- */

struct tally {
	double rail_days; /* of rails without a fault, and of rail 0 where FAILING would be false */
	double lives_days;  /* of rail 0, where it lives */
	int false_degraded; /* of rails without a fault */
	int false_failing;  /* of those, and of rail 0 where it should not */
	int turns;          /* changes of state, all rails */
	double all_days;
	int failures, foretold, seen;
	double failing_leads[RUN_MAX], degraded_leads[RUN_MAX];
	int failing_count, degraded_count;
	int outs, outs_told, outs_seen; /* of rail 0, where it lives */
	int lived, shown;
};

static void tally_rail(struct tally *t, const struct kind *kind, const struct history_rail *rail,
		       int index, double days)
{
	bool is_well = index > 0 || !kind->is_faulty;

	t->all_days += days;
	t->turns += rail->turn_count;
	if (is_well || !kind->may_fail) {
		t->rail_days += days;
		t->false_failing += history_times(rail, MRC_HEALTH_FAILING);
	}
	if (is_well) {
		t->false_degraded += history_times(rail, MRC_HEALTH_DEGRADED);
		return;
	}
	if (rail->dead_s >= 0) {
		double failing_s = history_since(rail, MRC_HEALTH_FAILING, rail->dead_s);
		double degraded_s = history_since(rail, MRC_HEALTH_DEGRADED, rail->dead_s);

		t->failures++;
		if (failing_s >= 0)
			t->failing_leads[t->failing_count++] = rail->dead_s - failing_s;
		if (degraded_s >= 0)
			t->degraded_leads[t->degraded_count++] = rail->dead_s - degraded_s;
		return;
	}
	t->lived++;
	t->shown += rail->turn_count > 0;
	t->outs += rail->outs;
	t->outs_told += rail->outs_told;
	t->outs_seen += rail->outs_seen;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int count, double part)
{
	qsort(values, (size_t)count, sizeof(*values), by_size);
	return count ? values[(int)((count - 1) * part + 0.5)] : 0;
}

static const char *span_text(double s, char text[16])
{
	if (s < 120)
		snprintf(text, 16, "%.0f s", s);
	else if (s < 2 * HOUR)
		snprintf(text, 16, "%.0f min", s / 60);
	else
		snprintf(text, 16, "%.1f h", s / HOUR);
	return text;
}

static void leads_print(double *leads, int count, int of)
{
	char text[3][16], all[64] = "";

	if (count)
		snprintf(all, sizeof(all), "%s [%s, %s]",
			 span_text(quantile(leads, count, 0.5), text[0]),
			 span_text(quantile(leads, count, 0.25), text[1]),
			 span_text(quantile(leads, count, 0.75), text[2]));
	printf(" %3d of %-3d %-26s |", count, of, all);
}

static void row_print(const struct kind *kind, struct tally *t)
{
	printf("| %-20s | %6.1f |", kind->name, t->all_days);
	if (t->failures) {
		leads_print(t->failing_leads, t->failing_count, t->failures);
		leads_print(t->degraded_leads, t->degraded_count, t->failures);
	} else if (t->outs) {
		printf(" %3d of %-3d %-26s |", t->outs_told, t->outs, "times out");
		printf(" %3d of %-3d %-26s |", t->outs_seen, t->outs, "times out");
	} else {
		printf(" %37s | %37s |", "", "");
	}
	printf(" %8.3f | %8.3f | %6.2f |\n",
	       t->rail_days > 0 ? t->false_degraded / t->rail_days : 0,
	       t->rail_days > 0 ? t->false_failing / t->rail_days : 0, t->turns / t->all_days);
}

static int aim_check(const struct kind *kind, struct tally *t)
{
	const struct aim *aim = &kind->aim;
	const struct {
		const char *what;
		double is, least, most;
	} checks[] = {
		{"failures foretold", t->failures ? (double)t->failing_count / t->failures : 1,
		 aim->foretold, 2},
		{"their median lead",
		 t->failing_count ? quantile(t->failing_leads, t->failing_count, 0.5) : 1e9,
		 aim->lead_s, 2e9},
		{"failures of degraded rails",
		 t->failures ? (double)t->degraded_count / t->failures : 1,
		 t->failures ? aim->seen : 0, 2},
		{"times out of degraded rails", t->outs ? (double)t->outs_seen / t->outs : 1,
		 t->outs ? aim->seen : 0, 2},
		{"false failing a rail-day", t->rail_days > 0 ? t->false_failing / t->rail_days : 0,
		 0, aim->failing_max},
		{"false degraded a rail-day",
		 t->rail_days > 0 ? t->false_degraded / t->rail_days : 0, 0, aim->degraded_max},
		{"faults shown", t->lived ? (double)t->shown / t->lived : 1, aim->shown, 2},
	};
	int wrong = 0;

	for (size_t i = 0; i < MRC_ARRAY_LEN(checks); i++) {
		if (checks[i].is >= checks[i].least && checks[i].is <= checks[i].most)
			continue;
		printf("FAILED %s: %s: %.3f, wanted: %g to %g\n", kind->name, checks[i].what,
		       checks[i].is, checks[i].least, checks[i].most);
		wrong++;
	}
	return wrong;
}

/* ---- running ---- */

struct settings {
	uint64_t seed;
	int runs;
	const char *kind;
	bool is_aimed, is_traced;
};

static void draw(const struct kind *kind, uint64_t seed, struct history *h)
{
	struct mrc_rng rng = {.state = seed};

	kind->draw(h, &rng);
	draw_traffic(h, &rng);
	draw_daily(h, &rng);
}

static int run_kind(const struct kind *kind, const struct settings *s, struct tally *t)
{
	struct history *h = malloc(sizeof(*h));
	struct history_outcome *out = malloc(sizeof(*out));

	if (!h || !out)
		abort();
	for (int run = 0; run < s->runs; run++) {
		uint64_t seed = s->seed * 1000003 + (uint64_t)run * 101 + (uint64_t)(kind - kinds);

		draw(kind, seed, h);
		if (s->is_traced)
			printf("%s, run %d\n", kind->name, run);
		history_run(h, seed, out, s->is_traced ? stdout : NULL);
		for (int i = 0; i < RAILS; i++)
			tally_rail(t, kind, &out->rails[i], i, out->judged_s / DAY);
	}
	free(h);
	free(out);
	row_print(kind, t);
	return s->is_aimed ? aim_check(kind, t) : 0;
}

static int run_file(const char *file, const struct settings *s)
{
	struct history *h = malloc(sizeof(*h));
	struct history_outcome *out = malloc(sizeof(*out));
	char why[256];
	int wrong = 1;

	if (!h || !out)
		abort();
	if (history_read(file, h, why)) {
		history_run(h, s->seed, out, s->is_traced ? stdout : NULL);
		wrong = history_check(h, file, out, stdout);
		printf("%s: %d of %d wants hold\n", file, h->want_count - wrong, h->want_count);
	} else {
		printf("FAILED %s\n", why);
	}
	free(h);
	free(out);
	return wrong;
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: mrc-sim --health [--runs N] [--seed S] [--kind NAME] [--aim] [--trace]\n"
		"       mrc-sim --health [--seed S] [--trace] FILE...\n"
		"\n"
		"Draws histories of faults, judges the counters they leave by mrc_health, and "
		"prints\n"
		"how many failures were foretold how long before, and what was said for nothing.\n"
		"With files: runs those, and says which of their wants do not hold.\n"
		"\n"
		"  --runs N     of each kind (20)\n"
		"  --seed S     another world (1)\n"
		"  --kind NAME  only those whose name begins so\n"
		"  --aim        fail when a kind does not reach what it is held to\n"
		"  --trace      print each change of a rail's state\n");
}

int sim_health_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"runs", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"kind", required_argument, NULL, 'k'},
		{"aim", no_argument, NULL, 'a'},
		{"trace", no_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct settings s = {.seed = 1, .runs = 20};
	int wrong = 0, c;
	char *end;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			s.runs = (int)strtol(optarg, &end, 10);
			if (*end || s.runs < 1 || s.runs > RUN_MAX) {
				fprintf(stderr, "mrc-sim: --runs wants 1 to %d\n", RUN_MAX);
				return 2;
			}
			break;
		case 's':
			s.seed = strtoull(optarg, &end, 0);
			if (*end || end == optarg) {
				fprintf(stderr, "mrc-sim: --seed wants a number\n");
				return 2;
			}
			break;
		case 'k':
			s.kind = optarg;
			break;
		case 'a':
			s.is_aimed = true;
			break;
		case 't':
			s.is_traced = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		wrong += run_file(argv[i], &s);
	if (optind < argc)
		return wrong != 0;
	printf("| %-20s | %6s | %-37s | %-37s | %8s | %8s | %6s |\n", "kind", "r-days",
	       "failing before, by [quartiles]", "degraded before", "false d.", "false f.",
	       "turns");
	printf("|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < MRC_ARRAY_LEN(kinds); i++) {
		struct tally *t = calloc(1, sizeof(*t));

		if (!t)
			abort();
		if (!s.kind || strncmp(kinds[i].name, s.kind, strlen(s.kind)) == 0)
			wrong += run_kind(&kinds[i], &s, t);
		fflush(stdout);
		free(t);
	}
	return wrong != 0;
}
