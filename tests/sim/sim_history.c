/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_S          ((double)MRC_HEALTH_PERIOD_NS / 1e9)
#define NOISE_S           5.0
#define SEGMENTS_OF_FRAME 20.0 /* a fragment's, more or less */
#define FRAMES_AT_REST    2.0  /* probes */
#define RTT_NS            100e3
#define RATE_BYTES_PER_S  12.5e9
#define BUSY_FRAMES       500.0 /* a rail that carries so many is kept full */
#define NEVER_S           1e300

/* ---- draws ---- */

double history_uniform(struct mrc_rng *rng)
{
	return (double)(mrc_rng_next(rng) >> 11) * 0x1p-53;
}

double history_between(struct mrc_rng *rng, double low, double high)
{
	return low * pow(high / low, history_uniform(rng));
}

double history_waiting(struct mrc_rng *rng, double mean)
{
	return -mean * log(1 - history_uniform(rng));
}

double history_normal(struct mrc_rng *rng)
{
	double radius = sqrt(-2 * log(1 - history_uniform(rng)));

	return radius * cos(2 * 3.14159265358979323846 * history_uniform(rng));
}

uint64_t history_count(struct mrc_rng *rng, double mean)
{
	double least = exp(-mean), product = 1;
	uint64_t count = 0;

	if (mean <= 0)
		return 0;
	if (mean > 50) {
		double about = floor(mean + sqrt(mean) * history_normal(rng) + 0.5);

		return about > 0 ? (uint64_t)about : 0;
	}
	while ((product *= 1 - history_uniform(rng)) > least)
		count++;
	return count;
}

/* ---- making one ---- */

void history_init(struct history *h, int rail_count, double lasts_s)
{
	memset(h, 0, sizeof(*h));
	h->rail_count = rail_count;
	h->lasts_s = lasts_s;
}

void history_add(struct history *h, double at_s, int rail, enum history_what what, double value,
		 double over_s)
{
	int at = h->change_count;

	if (at == HISTORY_CHANGES_MAX)
		return; /* a drawn one with more tells no more */
	for (; at > 0 && h->changes[at - 1].at_s > at_s; at--)
		h->changes[at] = h->changes[at - 1];
	h->changes[at] = (struct history_change){at_s, rail, what, value, over_s};
	h->change_count++;
}

/* ---- reading one ---- */

static const char *const what_names[HISTORY_WHAT_COUNT] = {
#define X(name) [HISTORY_##name] = #name,
	HISTORY_SETTINGS(X) HISTORY_HAPPENINGS(X)
#undef X
};

/* "1h10min", "90s", "250ms" */
static bool span_of(const char *text, double *s_out)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = {{"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}, {"d", 86400}};
	bool is_any = false;

	*s_out = 0;
	while (text && *text) {
		char *end;
		double value = strtod(text, &end);
		size_t i = 0;

		if (end == text || value < 0)
			return false;
		while (i < MRC_ARRAY_LEN(units) &&
		       strncmp(end, units[i].unit, strlen(units[i].unit)) != 0)
			i++;
		if (i == MRC_ARRAY_LEN(units))
			return false;
		*s_out += value * units[i].s;
		text = end + strlen(units[i].unit);
		is_any = true;
	}
	return is_any;
}

struct words {
	char *at[12];
	int count;
};

static bool word_is(const struct words *w, int i, const char *text)
{
	return i < w->count && strcmp(w->at[i], text) == 0;
}

static const char *word(const struct words *w, int i)
{
	return i < w->count ? w->at[i] : NULL;
}

static bool number_of(const char *text, double *value_out)
{
	char *end;

	if (!text)
		return false;
	*value_out = strtod(text, &end);
	return end != text && *end == '\0' && *value_out >= 0;
}

/* "all", "rail 1"; *i goes past it. */
static bool rail_of(const struct history *h, const struct words *w, int *i, int *rail_out)
{
	double number;

	if (word_is(w, *i, "all")) {
		*rail_out = -1;
		*i += 1;
		return true;
	}
	if (!word_is(w, *i, "rail") || !number_of(word(w, *i + 1), &number) ||
	    number >= h->rail_count)
		return false;
	*rail_out = (int)number;
	*i += 2;
	return true;
}

static bool read_at(struct history *h, const struct words *w)
{
	double at_s, value = 0, over_s = 0;
	int i = 2, what = 0, rail;

	if (!span_of(word(w, 1), &at_s) || !rail_of(h, w, &i, &rail) || i >= w->count)
		return false;
	while (what < HISTORY_WHAT_COUNT && strcmp(what_names[what], w->at[i]) != 0)
		what++;
	if (what == HISTORY_WHAT_COUNT || (what == HISTORY_paused && rail >= 0))
		return false;
	i++;
	if (what < HISTORY_SETTING_COUNT) {
		if (!number_of(word(w, i++), &value))
			return false;
		if (word_is(w, i, "over")) {
			if (!span_of(word(w, i + 1), &over_s))
				return false;
			i += 2;
		}
	} else if (what != HISTORY_dead && !span_of(word(w, i++), &value)) {
		return false;
	}
	history_add(h, at_s, rail, (enum history_what)what, value, over_s);
	return i == w->count;
}

/* want RAIL never STATE | RAIL STATE at end | RAIL STATE [after SPAN] before SPAN | RAIL turns at most N */
static bool read_want(struct history *h, const struct words *w, int line)
{
	struct history_want *want = &h->wants[h->want_count];
	int i = 1, state = 0;
	double number;

	if (h->want_count == HISTORY_WANTS_MAX)
		return false;
	*want = (struct history_want){.line = line, .rail = -1, .rail_not = -1, .turns_max = -1};
	if (word_is(w, i, "others")) {
		if (h->want_count == 0)
			return false;
		want->rail_not = want[-1].rail;
		i++;
	} else if (!rail_of(h, w, &i, &want->rail)) {
		return false;
	}
	if (word_is(w, i, "turns") && word_is(w, i + 1, "at") && word_is(w, i + 2, "most")) {
		if (!number_of(word(w, i + 3), &number))
			return false;
		want->turns_max = (int)number;
		h->want_count++;
		return i + 4 == w->count;
	}
	if (word_is(w, i, "never")) {
		want->is_never = true;
		i++;
	}
	while (i < w->count && state < MRC_HEALTH_STATE_COUNT &&
	       strcmp(w->at[i], mrc_health_state_name((enum mrc_health_state)state)) != 0)
		state++;
	if (i >= w->count || state == MRC_HEALTH_STATE_COUNT)
		return false;
	want->state = (enum mrc_health_state)state;
	i++;
	if (word_is(w, i, "at") && word_is(w, i + 1, "end")) {
		want->is_at_end = true;
		i += 2;
	} else if (!want->is_never) {
		if (word_is(w, i, "after")) {
			if (!span_of(word(w, i + 1), &want->from_s))
				return false;
			i += 2;
		}
		if (!word_is(w, i, "before") || !span_of(word(w, i + 1), &want->before_s))
			return false;
		i += 2;
	}
	h->want_count++;
	return i == w->count;
}

bool history_read(const char *file, struct history *h, char why[256])
{
	FILE *in = fopen(file, "re");
	char text[512];
	int line = 0;
	bool is_good = in != NULL;

	history_init(h, 4, 0);
	snprintf(why, 256, "%s: cannot be opened", file);
	while (is_good && fgets(text, sizeof(text), in)) {
		struct words w = {.count = 0};
		char *rest = NULL;
		double number;

		line++;
		text[strcspn(text, "#\n")] = '\0';
		for (char *at = strtok_r(text, " \t", &rest); at && w.count < 12;
		     at = strtok_r(NULL, " \t", &rest))
			w.at[w.count++] = at;
		if (w.count == 0)
			continue;
		if (word_is(&w, 0, "rails")) {
			is_good = w.count == 2 && number_of(w.at[1], &number) && number >= 1 &&
				  number <= HISTORY_RAILS_MAX;
			h->rail_count = is_good ? (int)number : 1;
		} else if (word_is(&w, 0, "lasts")) {
			is_good = w.count == 2 && span_of(w.at[1], &h->lasts_s);
		} else if (word_is(&w, 0, "at")) {
			is_good = read_at(h, &w);
		} else {
			is_good = word_is(&w, 0, "want") && read_want(h, &w, line);
		}
		snprintf(why, 256, "%s:%d: cannot be read", file, line);
	}
	if (in)
		fclose(in);
	if (is_good && (h->lasts_s <= 0 || h->want_count == 0)) {
		snprintf(why, 256, "%s: says not how long it lasts, or wants nothing", file);
		return false;
	}
	return is_good;
}

/* ---- running one ---- */

struct setting {
	double from, to, begin_s, end_s;
};

struct rail {
	struct setting settings[HISTORY_SETTING_COUNT];
	double noise_factor;
	double up_s; /* out of service until then */
	bool is_dead;
	struct mrc_health_sample sample;
};

struct run {
	struct history *h;
	struct mrc_rng rng;
	struct rail rails[HISTORY_RAILS_MAX];
	struct mrc_health health;
	struct mrc_health_path paths[HISTORY_RAILS_MAX];
	double now_s, paused_s;
	struct history_outcome *out;
	FILE *trace;
};

/* Grows as a power, from what is hardly anything when it was nothing. */
static double setting_value(const struct setting *s, double now_s)
{
	double from = s->from > 0 ? s->from : s->to / 1e4;

	if (now_s >= s->end_s)
		return s->to;
	if (from <= 0 || s->to <= 0)
		return s->from;
	return from * pow(s->to / from, (now_s - s->begin_s) / (s->end_s - s->begin_s));
}

static double value(const struct run *run, const struct rail *rail, enum history_what what)
{
	return setting_value(&rail->settings[what], run->now_s);
}

static void rail_out(struct run *run, int index, enum mrc_path_reason reason, double span_s)
{
	struct rail *rail = &run->rails[index];
	struct mrc_path_info *info = &rail->sample.info;
	struct history_rail *out = &run->out->rails[index];
	enum mrc_health_state state = run->paths[index].view.state;

	if (info->state == MRC_PATH_GOOD) {
		info->bad_count++;
		info->suspicions += reason == MRC_REASON_SILENT;
		out->outs++;
		out->outs_told += state >= MRC_HEALTH_FAILING;
		out->outs_seen += state >= MRC_HEALTH_DEGRADED;
	}
	rail->sample.carrier_losses += reason == MRC_REASON_CARRIER;
	info->state = MRC_PATH_CONNECTING;
	info->reason = reason;
	rail->up_s = fmax(rail->up_s, run->now_s + span_s);
}

static void change_apply(struct run *run, const struct history_change *c, int index)
{
	struct rail *rail = &run->rails[index];

	if (rail->is_dead)
		return;
	switch (c->what) {
	case HISTORY_down:
		rail_out(run, index, MRC_REASON_CARRIER, c->value);
		return;
	case HISTORY_silent:
		rail_out(run, index, MRC_REASON_SILENT, c->value);
		return;
	case HISTORY_paused:
		run->paused_s = run->now_s + c->value;
		return;
	case HISTORY_dead:
		rail_out(run, index, MRC_REASON_CARRIER, NEVER_S);
		rail->is_dead = true;
		run->out->rails[index].dead_s = run->now_s;
		return;
	default:
		rail->settings[c->what] = (struct setting){
			.from = value(run, rail, c->what),
			.to = c->value,
			.begin_s = run->now_s,
			.end_s = run->now_s + c->over_s,
		};
	}
}

/* What the counters of a period would say. */
static void rail_period(struct run *run, struct rail *rail)
{
	struct mrc_health_sample *s = &rail->sample;
	double frames = fmax(value(run, rail, HISTORY_frames), FRAMES_AT_REST);
	double rate = value(run, rail, HISTORY_rate) / 100;
	double queue_ns = value(run, rail, HISTORY_queue) * 1e3;
	double segments = frames * SEGMENTS_OF_FRAME;
	bool is_busy = frames >= BUSY_FRAMES;
	double jitter = 1 + 0.4 * history_uniform(&run->rng);

	if (s->info.state != MRC_PATH_GOOD && run->now_s >= rail->up_s) {
		s->info.state = MRC_PATH_GOOD;
		s->info.good_count++;
		s->transport++;
	}
	if (s->info.state != MRC_PATH_GOOD)
		return;
	s->info.frames_received +=
		(uint64_t)(frames * rate * PERIOD_S + history_uniform(&run->rng));
	s->info.body_errors +=
		history_count(&run->rng, frames * rate * PERIOD_S * rail->noise_factor *
						 value(run, rail, HISTORY_damage) * 1e-6);
	s->segments += (uint64_t)(segments * rate * PERIOD_S + history_uniform(&run->rng));
	s->segments_lost +=
		history_count(&run->rng, segments * rate * PERIOD_S * rail->noise_factor *
						 value(run, rail, HISTORY_loss) * 1e-6);
	s->info.suspicions +=
		history_count(&run->rng, value(run, rail, HISTORY_stalls) / 60 * PERIOD_S);
	s->info.is_filled = is_busy;
	s->info.rate_bytes_per_s = (uint64_t)(RATE_BYTES_PER_S * rate);
	s->info.window_bytes = (uint64_t)((double)s->info.rate_bytes_per_s * 3e-3);
	s->info.rtt_ns = (uint64_t)(RTT_NS * jitter + queue_ns + (is_busy ? 3e6 : 0));
	s->info.rtt_ns_min = (uint64_t)(RTT_NS + queue_ns / 2);
}

static void run_period(struct run *run)
{
	struct mrc_health_sample samples[HISTORY_RAILS_MAX];
	uint32_t changed;

	for (int i = 0; i < run->h->rail_count; i++) {
		rail_period(run, &run->rails[i]);
		samples[i] = run->rails[i].sample;
	}
	if (run->now_s < run->paused_s)
		return;
	changed = mrc_health_judge(&run->health, samples, (uint64_t)((run->now_s + 1) * 1e9));
	for (int i = 0; i < run->h->rail_count; i++) {
		const struct mrc_health_view *view = &run->paths[i].view;
		struct history_rail *out = &run->out->rails[i];

		if (!(changed >> i & 1))
			continue;
		if (out->turn_count < HISTORY_TURNS_MAX)
			out->turns[out->turn_count] =
				(struct history_turn){run->now_s, view->state, view->cause};
		out->turn_count++;
		if (run->trace)
			fprintf(run->trace,
				"%10.1f s rail %d: %-8s %3u for %-6s damage %llu ppm, loss %llu "
				"ppm, "
				"stalls %u, flaps %u, delay %.1f ms, rate %u%%, eta %.0f s\n",
				run->now_s, i, mrc_health_state_name(view->state), view->score,
				mrc_health_cause_name(view->cause),
				(unsigned long long)view->damage_ppm,
				(unsigned long long)view->loss_ppm, view->stalls, view->flaps,
				(double)view->delay_ns / 1e6, view->rate_part,
				view->eta_ns == MRC_NEVER ? -1 : (double)view->eta_ns / 1e9);
	}
}

void history_run(struct history *h, uint64_t seed, struct history_outcome *out, FILE *trace)
{
	static const double begin[HISTORY_SETTING_COUNT] = {
		[HISTORY_frames] = 2000, [HISTORY_rate] = 100};
	struct run run = {.h = h, .rng = {.state = seed}, .out = out, .trace = trace};
	int next = 0;

	memset(out, 0, sizeof(*out));
	mrc_health_init(&run.health, run.paths, (uint8_t)h->rail_count);
	for (int i = 0; i < h->rail_count; i++) {
		struct rail *rail = &run.rails[i];

		out->rails[i].dead_s = -1;
		rail->noise_factor = 1;
		for (int k = 0; k < HISTORY_SETTING_COUNT; k++)
			rail->settings[k] = (struct setting){begin[k], begin[k], 0, 0};
		rail->sample.info.state = MRC_PATH_GOOD;
		rail->sample.transport = 1;
	}
	for (uint64_t period = 0; run.now_s < h->lasts_s; period++) {
		run.now_s = (double)period * PERIOD_S;
		for (; next < h->change_count && h->changes[next].at_s <= run.now_s; next++) {
			const struct history_change *c = &h->changes[next];

			for (int i = 0; i < h->rail_count; i++) {
				if (c->rail < 0 || c->rail == i)
					change_apply(&run, c, i);
			}
		}
		if (period % (uint64_t)(NOISE_S / PERIOD_S) == 0) {
			for (int i = 0; i < h->rail_count; i++) {
				double noise = value(&run, &run.rails[i], HISTORY_noise) / 100;

				run.rails[i].noise_factor =
					noise > 0 ? exp(noise * history_normal(&run.rng) -
							noise * noise / 2)
						  : 1;
			}
		}
		run_period(&run);
	}
	out->judged_s = run.now_s;
}

/* ---- looking at what came of it ---- */

static int kept(const struct history_rail *rail)
{
	return MRC_MIN(rail->turn_count, HISTORY_TURNS_MAX);
}

double history_since(const struct history_rail *rail, enum mrc_health_state state, double at_s)
{
	double since_s = -1;

	for (int i = 0; i < kept(rail); i++) {
		if (rail->turns[i].at_s >= at_s)
			break;
		if (rail->turns[i].state < state)
			since_s = -1;
		else if (since_s < 0)
			since_s = rail->turns[i].at_s;
	}
	return since_s;
}

int history_times(const struct history_rail *rail, enum mrc_health_state state)
{
	enum mrc_health_state was = MRC_HEALTH_GOOD;
	int times = 0;

	for (int i = 0; i < kept(rail); i++) {
		times += was < state && rail->turns[i].state >= state;
		was = rail->turns[i].state;
	}
	return times;
}

static bool want_holds(const struct history_want *want, const struct history_rail *rail)
{
	if (want->turns_max >= 0)
		return rail->turn_count <= want->turns_max;
	if (want->is_never)
		return history_times(rail, want->state) == 0;
	if (want->is_at_end)
		return (kept(rail) ? rail->turns[kept(rail) - 1].state : MRC_HEALTH_GOOD) ==
		       want->state;
	for (int i = 0; i < kept(rail); i++) {
		if (rail->turns[i].state >= want->state)
			return rail->turns[i].at_s >= want->from_s &&
			       rail->turns[i].at_s < want->before_s;
	}
	return false;
}

int history_check(const struct history *h, const char *file, const struct history_outcome *out,
		  FILE *to)
{
	int wrong = 0;

	for (int k = 0; k < h->want_count; k++) {
		const struct history_want *want = &h->wants[k];
		bool holds = true;

		for (int i = 0; i < h->rail_count; i++) {
			if ((want->rail >= 0 && want->rail != i) || want->rail_not == i ||
			    want_holds(want, &out->rails[i]))
				continue;
			fprintf(to, "FAILED %s:%d: does not hold for rail %d\n", file, want->line,
				i);
			holds = false;
		}
		wrong += !holds;
	}
	return wrong;
}
