/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_health.h"

#define ONE         65536U
#define BILLION     1000000000U
#define UNIT        256U
#define FLAP        (1U << 24)
#define PERIODS(s)  ((s)*4U)
#define FADE_SHIFT  8U  /* 64 s */
#define FLAPS_SHIFT 15U /* 2 h 16 min */
#define DELAY_SHIFT 3U  /* 2 s */

/*
 * What the score costs. An error ratio above 1e-6 is a fault to a switch that
 * looks for one for minutes (the link CRC detection of SONiC's device health
 * service); here 1e-4 of all frames makes DEGRADED at once and 1e-6 shows. Lost
 * segments say less, for queues lose too: 1% is what a stream no longer bears.
 */
#define SCORE_BAD  65U /* DEGRADED at this, */
#define SCORE_WELL 80U /* and no longer at this */
#define COST_BAD   (100U - SCORE_BAD)

struct step {
	uint64_t at;
	uint32_t cost;
};
static const struct step damage_steps[] = {{0, 0},          {1, 10},    {10, 20},
					   {100, COST_BAD}, {1000, 50}, {10000, 70}};
static const struct step loss_steps[] = {{0, 0}, {1000, 15}, {10000, COST_BAD}, {50000, 60}};
static const struct step stall_steps[] = {{0, 0}, {3, 15}, {10, COST_BAD}, {60, 50}};
static const struct step flap_steps[] = {
	{0, 0}, {FLAP / 4, 10}, {FLAP / 4 * 3, 15}, {FLAP / 4 * 6, COST_BAD}, {FLAP / 4 * 10, 60}};
static const struct step delay_steps[] = {{0, 0}, {4, COST_BAD}, {16, 50}};
static const struct step slow_steps[] = {{0, 0}, {4, COST_BAD}, {16, 50}}; /* the best / its own */

/* So many within two hours: it leaves service again and again, and will again. */
#define FLAPS_FAILING (FLAP / 4 * 10)
#define ERRORS_MIN    3U /* fewer prove nothing */
/*
 * A rate is refuted when so many errors should have come in so long and did not
 * (exp(-8)); a trend when more did not in longer, for errors come in bunches.
 */
#define CLEAN_EXPECTED      8U
#define CLEAN_PERIODS       PERIODS(2)
#define CLEAN_TREND         32U
#define CLEAN_TREND_PERIODS PERIODS(30)
/* A suspected path that is back sooner has stalled, not failed; those that leave within it left together. */
#define ALONE_NS       MRC_S
#define DELAY_NS_MIN   (2 * MRC_MS)
#define LATE_PERIODS   PERIODS(3)
#define SLOW_PERIODS   PERIODS(1)
#define WORSE_PERIODS  PERIODS(2)
#define BETTER_PERIODS PERIODS(10) /* four times as long after each relapse, */
#define RELAPSES_MAX   4U
#define RELAPSE_NS     (1800 * MRC_S) /* that is, worse again so soon after it was good */

/*
 * The trend. At 3% of frames a path is of no use: a proof of eight long frames
 * fails one time in four, and a stream stands still for its timeouts. A rise is
 * believed over four windows of 16 s and more, and foretells no more than eight
 * times what it was seen over.
 */
#define FATAL_PPB      30000000U
#define TREND_LEVEL    2U
#define TREND_WINDOWS  32U
#define DAMAGE_PPB_MIN 30000U
#define LOSS_PPB_MIN   300000U
#define NO_QUEUE_NS    (20 * MRC_US)
#define TREND_PERIODS  3U
#define LITTLE_SHIFT   4U /* less than a sixteenth of what was carried before */
#define OPEN_PERIODS   PERIODS(4)

/* ---- numbers ---- */

static uint64_t sqrt_of(uint64_t v)
{
	uint64_t root = 0;

	for (uint64_t bit = 1ULL << 31; bit; bit >>= 1) {
		if ((root | bit) * (root | bit) <= v)
			root |= bit;
	}
	return root;
}

/* Binary logarithm in 1/16, of 1 and up: straight lines between the powers. */
static uint32_t log_of(uint64_t v)
{
	uint32_t power = 63U - (uint32_t)__builtin_clzll(v | 1);
	uint64_t rest = power >= 4 ? (v >> (power - 4)) & 15 : (v << (4 - power)) & 15;

	return power * 16 + (uint32_t)rest;
}

static uint64_t part_of(uint64_t errors, uint64_t units, uint64_t whole)
{
	return units ? (uint64_t)((unsigned __int128)errors * whole / units) : 0;
}

static uint64_t ppm_of(uint64_t errors, uint64_t units)
{
	return part_of(errors, units, 1000000);
}

/* In parts of a thousand million: a port may bring as many frames between two errors. */
static uint64_t ppb_of(uint64_t errors, uint64_t units)
{
	return part_of(errors, units, BILLION);
}

static uint32_t cost_of(const struct step *steps, size_t count, uint64_t value)
{
	while (value < steps[count - 1].at)
		count--;
	return steps[count - 1].cost;
}
#define COST(steps, value) cost_of(steps, MRC_ARRAY_LEN(steps), value)

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* ---- one kind of error ---- */

static uint64_t ratio_ppm(const struct mrc_health_ratio *ratio)
{
	if (ratio->errors < (uint64_t)ERRORS_MIN * ONE)
		return 0;
	return ppm_of(ratio->errors / UNIT, ratio->units);
}

/* Have so many units, over so long, come without an error that such a rate is refuted? */
static bool ratio_refutes(const struct mrc_health_ratio *ratio, uint64_t ppb, uint32_t expected,
			  uint32_t periods)
{
	return ratio->clean_periods >= periods &&
	       (unsigned __int128)ratio->clean * ppb >= (unsigned __int128)expected * BILLION;
}

/* What so many periods have brought. */
static void ratio_take(struct mrc_health_ratio *ratio, uint64_t errors, uint64_t units,
		       uint32_t periods)
{
	bool is_little = units * UNIT < (ratio->units >> (FADE_SHIFT + LITTLE_SHIFT)) * periods;

	/* Nothing fades while hardly anything is carried: that nothing is seen then proves nothing. */
	if (!is_little) {
		ratio->errors -= (ratio->errors >> FADE_SHIFT) * periods;
		ratio->units -= (ratio->units >> FADE_SHIFT) * periods;
	}
	ratio->errors += errors * ONE;
	ratio->units += MRC_MAX(units, errors) * UNIT;
	ratio->clean = errors ? 0 : ratio->clean + units;
	ratio->clean_periods = errors ? 0 : ratio->clean_periods + (is_little ? 0 : periods);
	if (ratio->errors >= ONE && ratio_refutes(ratio, ppb_of(ratio->errors / UNIT, ratio->units),
						  CLEAN_EXPECTED, CLEAN_PERIODS))
		ratio->errors = 0;
}

/*
 * How far the count of a window of `parts` times 4 s may be off by chance: what
 * its parts differ, and at least what a count always varies. Errors come in
 * bunches, so the latter alone would see trends where there are none.
 */
static uint64_t window_deviation(const struct mrc_health_window *w, uint64_t parts)
{
	uint64_t even = (uint64_t)w->errors * w->errors / parts;

	return sqrt_of(MRC_MAX(w->errors, grown(w->squares, even) * parts / (parts - 1)));
}

/* Of which the true rate is hardly above, or below. */
static uint64_t window_ppb_most(const struct mrc_health_window *w, uint64_t parts)
{
	return ppb_of(w->errors + 3 + 2 * window_deviation(w, parts), w->units);
}

static uint64_t window_ppb_least(const struct mrc_health_window *w, uint64_t parts)
{
	return ppb_of(grown(w->errors, 2 * window_deviation(w, parts)), w->units);
}

static bool window_exceeds(const struct mrc_health_window *w,
			   const struct mrc_health_window *before)
{
	uint64_t ppb = ppb_of(before->errors, before->units);

	return w->periods_bad >= TREND_PERIODS && before->errors &&
	       ppb_of(w->errors, w->units) >= ppb + ppb / 8;
}

/*
 * How long until it is fatal, if it goes on as from window 3 to window 0. Each has
 * more than the one before, and the oldest has some: what begins at once and then
 * stays is no trend.
 */
static uint64_t trend_eta_ns(const struct mrc_health_window closed[4], uint64_t parts,
			     uint64_t ppb_min)
{
	uint64_t ppb = ppb_of(closed[0].errors, closed[0].units);
	uint64_t before = ppb_of(closed[3].errors, closed[3].units);
	uint64_t window_ns = parts * OPEN_PERIODS * MRC_HEALTH_PERIOD_NS;
	uint64_t eta_ns;

	if (ppb < ppb_min || !window_exceeds(&closed[0], &closed[1]) ||
	    !window_exceeds(&closed[1], &closed[2]) || !window_exceeds(&closed[2], &closed[3]) ||
	    window_ppb_least(&closed[0], parts) < window_ppb_most(&closed[3], parts))
		return MRC_NEVER;
	if (ppb >= FATAL_PPB)
		return 0;
	eta_ns = 3 * window_ns * (log_of(FATAL_PPB) - log_of(ppb)) /
		 MRC_MAX(log_of(ppb) - log_of(before), 1);
	return eta_ns <= TREND_WINDOWS * window_ns ? eta_ns : MRC_NEVER;
}

static void trend_found(struct mrc_health_trend *trend, const struct mrc_health_window *last,
			uint64_t eta_ns, uint64_t window_ns, uint64_t now_ns)
{
	if (eta_ns == MRC_NEVER)
		return;
	trend->fatal_ns = MRC_MIN(trend->fatal_ns, now_ns + eta_ns);
	trend->ppb = MRC_MAX(trend->ppb, ppb_of(last->errors, last->units));
	trend->until_ns = MRC_MAX(trend->until_ns, trend->fatal_ns + 4 * window_ns);
}

static void trend_close(struct mrc_health_trend *trend, struct mrc_health_window window,
			uint64_t ppb_min, uint64_t now_ns)
{
	uint64_t window_ns = OPEN_PERIODS * MRC_HEALTH_PERIOD_NS;

	for (uint32_t i = 0; i < MRC_HEALTH_LEVELS; i++, window_ns *= 2) {
		struct mrc_health_window *closed = trend->closed[i];

		/* One that carried little says little: it goes with the next, or is left out. */
		if (closed[0].units < window.units >> LITTLE_SHIFT) {
			closed[0] = window;
		} else if (window.units >= closed[0].units >> LITTLE_SHIFT) {
			for (uint32_t k = 3; k > 0; k--)
				closed[k] = closed[k - 1];
			closed[0] = window;
		}
		if (i >= TREND_LEVEL)
			trend_found(trend, &closed[0], trend_eta_ns(closed, 1ULL << i, ppb_min),
				    window_ns, now_ns);
		trend->half_bits ^= 1U << i;
		if (trend->half_bits >> i & 1) {
			trend->half[i] = window;
			return;
		}
		window.units += trend->half[i].units;
		window.errors += trend->half[i].errors;
		window.squares += trend->half[i].squares;
		window.periods_bad += trend->half[i].periods_bad;
	}
}

/* `ratio` has taken the same. A rate below ppb_min is no trend yet. */
static void trend_take(struct mrc_health_trend *trend, const struct mrc_health_ratio *ratio,
		       uint64_t errors, uint64_t units, uint32_t periods, uint64_t ppb_min,
		       uint64_t now_ns)
{
	/* It did not come true, or what came since speaks against it. */
	if (trend->fatal_ns != MRC_NEVER &&
	    (now_ns >= trend->until_ns ||
	     ratio_refutes(ratio, trend->ppb, CLEAN_TREND, CLEAN_TREND_PERIODS))) {
		trend->survived_ppb = MRC_MAX(trend->survived_ppb, trend->ppb);
		trend->fatal_ns = MRC_NEVER;
		trend->until_ns = 0;
		trend->ppb = 0;
	}
	/* Back to where it was before, and lived: no news. */
	ppb_min = MRC_MAX(ppb_min, trend->survived_ppb + trend->survived_ppb / 4);
	trend->open.units += MRC_MAX(units, errors);
	trend->open.errors += (uint32_t)MRC_MIN(errors, 1000000);
	trend->open.periods_bad += errors != 0;
	trend->open_periods += periods;
	if (trend->open_periods < OPEN_PERIODS)
		return;
	trend->open.squares = (uint64_t)trend->open.errors * trend->open.errors;
	trend_close(trend, trend->open, ppb_min, now_ns);
	trend->open = (struct mrc_health_window){0};
	trend->open_periods = 0;
}

/* ---- one path ---- */

struct mrc_health_view mrc_health_view_unjudged(void)
{
	return (struct mrc_health_view){.score = 100, .eta_ns = MRC_NEVER, .rate_part = 100};
}

static void path_forget(struct mrc_health_path *path)
{
	*path = (struct mrc_health_path){.view = mrc_health_view_unjudged()};
	path->damage_trend.fatal_ns = MRC_NEVER;
	path->card_trend.fatal_ns = MRC_NEVER;
	path->loss_trend.fatal_ns = MRC_NEVER;
}

/* Is it to blame that it is out of service, by what is known now? */
static bool out_is_own(const struct mrc_health_path *path, const struct mrc_health_sample *s,
		       uint64_t now_ns)
{
	if (s->carrier_losses > path->out_carrier_losses)
		return true;
	switch (s->info.reason) {
	case MRC_REASON_CARRIER:
	case MRC_REASON_ERROR:
	case MRC_REASON_PROBE:
	case MRC_REASON_CORRUPT:
	case MRC_REASON_PEER_FENCE:
		return true;
	case MRC_REASON_SILENT:
		return now_ns - path->out_ns >= ALONE_NS;
	default: /* the peer's port is the peer's to judge; the rest was somebody's wish */
		return false;
	}
}

/* Was a sibling in service all the time? Else it is the host or the peer that is out. */
static bool out_is_alone(const struct mrc_health *health, uint8_t index)
{
	const struct mrc_health_path *path = &health->paths[index];

	for (uint8_t i = 0; i < health->path_count; i++) {
		const struct mrc_health_path *other = &health->paths[i];

		if (i != index && other->is_serving && other->serving_ns < path->out_ns)
			return true;
	}
	return false;
}

static void path_take_outs(struct mrc_health *health, const struct mrc_health_sample *s,
			   uint8_t index, uint64_t now_ns)
{
	struct mrc_health_path *path = &health->paths[index];

	if (s->info.bad_count > path->last.info.bad_count) {
		path->is_out = true;
		path->is_out_counted = false;
		path->out_ns = now_ns;
		path->out_carrier_losses = path->last.carrier_losses;
	}
	if (!path->is_out)
		return;
	/* Those that go together do not go at once. */
	if (!path->is_out_counted && (path->is_serving || now_ns - path->out_ns >= ALONE_NS) &&
	    out_is_alone(health, index) && out_is_own(path, s, now_ns)) {
		path->is_out_counted = true;
		path->flaps += FLAP;
	}
	path->is_out = !path->is_serving;
}

static void path_take_delay(struct mrc_health_path *path, const struct mrc_path_info *info)
{
	uint64_t queued = info->is_filled ? MRC_MAX(info->window_bytes, info->bytes_in_flight)
					  : info->bytes_in_flight;
	uint64_t own_ns = 0, delay_ns;

	if (info->rtt_ns == 0)
		return;
	if (info->rate_bytes_per_s)
		own_ns = (uint64_t)((unsigned __int128)queued * MRC_S / info->rate_bytes_per_s);
	delay_ns = info->rtt_ns - MRC_MIN(own_ns, info->rtt_ns - 1);
	if (path->usual_ns == 0)
		path->delay_ns = path->usual_ns = delay_ns;
	path->delay_ns += delay_ns / (1U << DELAY_SHIFT);
	path->delay_ns -= path->delay_ns >> DELAY_SHIFT;
	path->usual_ns = MRC_MIN(path->usual_ns, path->delay_ns);
	if (info->rtt_ns_min)
		path->usual_ns = MRC_MIN(path->usual_ns, info->rtt_ns_min);
}

static uint64_t delay_excess_ns(const struct mrc_health_path *path)
{
	return grown(path->delay_ns, path->usual_ns);
}

/* It is judged on as it was before, from what it counts now. */
static void path_excuse(struct mrc_health_path *path)
{
	path->is_out = false;
	path->is_card_whole = false;
	path->late_periods = 0;
	path->slow_periods = 0;
	path->worse_periods = 0;
}

/* What a link brings while it goes or comes is not held against it: flaps are. */
static bool card_is_fresh(const struct mrc_health_path *path, const struct mrc_health_sample *s)
{
	return path->is_card_whole && s->card.reading != path->last.card.reading;
}

static void path_take_card(struct mrc_health_path *path, const struct mrc_health_sample *s)
{
	const struct mrc_health_card *now = &s->card, *old = &path->last.card;
	uint64_t damaged = grown(now->damaged, old->damaged);

	path->card_periods = MRC_MIN(path->card_periods + 1, OPEN_PERIODS);
	if (!card_is_fresh(path, s))
		return;
	ratio_take(&path->card, damaged, grown(now->received, old->received) + damaged,
		   path->card_periods);
	if (!s->transport && now->sent)
		ratio_take(&path->loss, grown(now->resent, old->resent),
			   grown(now->sent, old->sent), path->card_periods);
}

/* What has come since the last sample, into memory; what it means is judged when all paths have theirs. */
static void path_take(struct mrc_health_path *path, const struct mrc_health_sample *s)
{
	const struct mrc_path_info *now = &s->info, *old = &path->last.info;
	uint64_t damaged =
		grown(now->body_errors + now->header_errors, old->body_errors + old->header_errors);
	uint64_t suspicions = grown(now->suspicions, old->suspicions);

	damaged = grown(damaged, grown(s->cuts, path->last.cuts));
	if (path->is_serving || damaged)
		ratio_take(&path->damage, damaged,
			   grown(now->frames_received, old->frames_received), 1);
	if (s->transport && s->transport == path->last.transport)
		ratio_take(&path->loss, grown(s->segments_lost, path->last.segments_lost),
			   grown(s->segments, path->last.segments), 1);
	path_take_card(path, s);
	path->stalls += suspicions * ONE;
	if (!path->is_serving)
		return;
	path->stalls -= path->stalls >> FADE_SHIFT;
	path->flaps -= path->flaps >> FLAPS_SHIFT;
	path_take_delay(path, now);
}

/* ---- siblings ---- */

enum measure { MEASURE_DAMAGE, MEASURE_CARD, MEASURE_LOSS, MEASURE_STALLS, MEASURE_DELAY };

static uint64_t measure_of(const struct mrc_health_path *path, enum measure measure)
{
	switch (measure) {
	case MEASURE_DAMAGE:
		return ratio_ppm(&path->damage);
	case MEASURE_CARD:
		return ratio_ppm(&path->card);
	case MEASURE_LOSS:
		return ratio_ppm(&path->loss);
	case MEASURE_STALLS:
		return path->stalls;
	default:
		return delay_excess_ns(path);
	}
}

/* Of the siblings in service, the middle one; of an even number the worse of the two. */
static uint64_t siblings_middle(const struct mrc_health *health, uint8_t index,
				enum measure measure)
{
	uint64_t sorted[MRC_PATHS_MAX];
	uint32_t count = 0;

	for (uint8_t i = 0; i < health->path_count; i++) {
		uint64_t value = measure_of(&health->paths[i], measure);
		uint32_t at = count;

		if (i == index || !health->paths[i].is_serving)
			continue;
		for (; at > 0 && sorted[at - 1] > value; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = value;
		count++;
	}
	return count ? sorted[count / 2] : 0;
}

static bool has_serving_sibling(const struct mrc_health *health, uint8_t index)
{
	for (uint8_t i = 0; i < health->path_count; i++) {
		if (i != index && health->paths[i].is_serving)
			return true;
	}
	return false;
}

/* What it has beyond four times what the middle one of its siblings has. */
static uint64_t own_part(const struct mrc_health *health, uint8_t index, enum measure measure)
{
	return grown(measure_of(&health->paths[index], measure),
		     4 * siblings_middle(health, index, measure));
}

/*
 * Its rate in percent of what the middle one of its siblings delivers, of an even number the slower
 * of the two: one estimate may be of a burst. In relation to the nominal ones where both say theirs.
 */
static uint32_t rate_part(const struct mrc_health *health, const struct mrc_health_sample *samples,
			  uint8_t index)
{
	const struct mrc_health_sample *own = &samples[index];
	uint32_t sorted[MRC_PATHS_MAX], count = 0; /* the one of the fastest sibling first */

	if (!own->info.is_filled || own->info.rate_bytes_per_s == 0)
		return 100;
	for (uint8_t i = 0; i < health->path_count; i++) {
		unsigned __int128 mine = own->info.rate_bytes_per_s;
		unsigned __int128 theirs = samples[i].info.rate_bytes_per_s;
		uint32_t part, at = count;

		if (i == index || !health->paths[i].is_serving || theirs == 0)
			continue;
		if (own->speed && samples[i].speed) {
			mine *= samples[i].speed;
			theirs *= own->speed;
		}
		part = (uint32_t)MRC_MIN(mine * 100 / theirs, (unsigned __int128)100);
		for (; at > 0 && sorted[at - 1] > part; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = part;
		count++;
	}
	return count ? sorted[count / 2] : 100;
}

/* ---- judgement ---- */

static void cost_add(struct mrc_health_view *view, uint32_t *most, enum mrc_health_cause cause,
		     uint32_t cost)
{
	view->costs[cause] = cost;
	view->score -= MRC_MIN(cost, view->score);
	if (cost <= *most)
		return;
	*most = cost;
	view->cause = cause;
}

static void path_score(struct mrc_health *health, const struct mrc_health_sample *samples,
		       uint8_t index)
{
	struct mrc_health_path *path = &health->paths[index];
	struct mrc_health_view *view = &path->view;
	bool has_reference = has_serving_sibling(health, index);
	uint64_t excess_ns = delay_excess_ns(path);
	uint64_t usual_ns = MRC_MAX(path->usual_ns, 1);
	bool is_late = has_reference && excess_ns >= DELAY_NS_MIN &&
		       path->delay_ns / 4 >= usual_ns && own_part(health, index, MEASURE_DELAY);
	uint32_t most = 0;

	view->score = 100;
	view->cause = MRC_CAUSE_NONE;
	view->damage_ppm = ratio_ppm(&path->damage);
	view->card_ppm = ratio_ppm(&path->card);
	view->loss_ppm = ratio_ppm(&path->loss);
	view->stalls = (uint32_t)((path->stalls + ONE / 2) / ONE);
	view->flaps = (uint32_t)((path->flaps + FLAP / 2) / FLAP);
	view->delay_ns = path->delay_ns;
	view->usual_ns = path->usual_ns;
	/* What a card counts is of all paths over it, and says nothing of how much this one carries. */
	view->units =
		(path->damage.units + (samples[index].transport ? path->loss.units : 0)) / UNIT;
	view->rate_part = path->is_serving ? rate_part(health, samples, index) : 100;
	if (path->is_serving) {
		path->late_periods = is_late ? path->late_periods + 1 : 0;
		path->slow_periods = view->rate_part < 25 ? path->slow_periods + 1 : 0;
	}

	for (int i = 0; i < MRC_CAUSE_COUNT; i++)
		view->costs[i] = 0;
	cost_add(view, &most, MRC_CAUSE_FLAPS, COST(flap_steps, path->flaps));
	cost_add(view, &most, MRC_CAUSE_DAMAGE,
		 COST(damage_steps, own_part(health, index, MEASURE_DAMAGE)));
	cost_add(view, &most, MRC_CAUSE_CARD,
		 COST(damage_steps, own_part(health, index, MEASURE_CARD)));
	if (has_reference) {
		cost_add(view, &most, MRC_CAUSE_LOSS,
			 COST(loss_steps, own_part(health, index, MEASURE_LOSS)));
		cost_add(view, &most, MRC_CAUSE_STALLS,
			 COST(stall_steps, own_part(health, index, MEASURE_STALLS) / ONE));
	}
	if (path->late_periods >= LATE_PERIODS)
		cost_add(view, &most, MRC_CAUSE_DELAY,
			 COST(delay_steps, path->delay_ns / usual_ns));
	if (path->slow_periods >= SLOW_PERIODS)
		cost_add(view, &most, MRC_CAUSE_RATE,
			 COST(slow_steps, 100 / MRC_MAX(view->rate_part, 1U)));
}

/* No queue loses what comes damaged; what is sent again because it was lost may be one's doing. */
static void path_trends_card(struct mrc_health *health, const struct mrc_health_sample *s,
			     uint8_t index, bool is_queueing, uint64_t now_ns)
{
	struct mrc_health_path *path = &health->paths[index];
	const struct mrc_health_card *now = &s->card, *old = &path->last.card;
	uint64_t damaged = grown(now->damaged, old->damaged);
	uint64_t resent = is_queueing ? 0 : grown(now->resent, old->resent);

	trend_take(&path->card_trend, &path->card,
		   own_part(health, index, MEASURE_CARD) ? damaged : 0,
		   grown(now->received, old->received) + damaged, path->card_periods,
		   DAMAGE_PPB_MIN, now_ns);
	if (!s->transport && now->sent)
		trend_take(&path->loss_trend, &path->loss, resent, grown(now->sent, old->sent),
			   path->card_periods, LOSS_PPB_MIN, now_ns);
}

/* Errors that nobody else has, and no queue explains, go into the trends. */
static void path_trends(struct mrc_health *health, const struct mrc_health_sample *s, uint8_t index,
			uint64_t now_ns)
{
	struct mrc_health_path *path = &health->paths[index];
	const struct mrc_health_sample *last = &path->last;
	uint64_t damaged = grown(s->info.body_errors + s->info.header_errors,
				 last->info.body_errors + last->info.header_errors);
	uint64_t lost = 0, segments = 0;
	/* Or others lose as much: it is not the path's. */
	bool is_queueing = !has_serving_sibling(health, index) ||
			   !own_part(health, index, MEASURE_LOSS) ||
			   delay_excess_ns(path) > path->usual_ns / 2 + NO_QUEUE_NS;

	damaged = grown(damaged, grown(s->cuts, last->cuts));
	if (!own_part(health, index, MEASURE_DAMAGE))
		damaged = 0;
	trend_take(&path->damage_trend, &path->damage, damaged,
		   grown(s->info.frames_received, last->info.frames_received), 1, DAMAGE_PPB_MIN,
		   now_ns);
	if (s->transport && s->transport == last->transport) {
		lost = grown(s->segments_lost, last->segments_lost);
		segments = grown(s->segments, last->segments);
	}
	if (s->transport || !s->card.sent)
		trend_take(&path->loss_trend, &path->loss, is_queueing ? 0 : lost, segments, 1,
			   LOSS_PPB_MIN, now_ns);
	if (card_is_fresh(path, s))
		path_trends_card(health, s, index, is_queueing, now_ns);
}

static enum mrc_health_state path_target(struct mrc_health_path *path, uint64_t now_ns)
{
	struct mrc_health_view *view = &path->view;
	const struct {
		uint64_t fatal_ns;
		enum mrc_health_cause cause;
	} trends[] = {
		{path->damage_trend.fatal_ns, MRC_CAUSE_DAMAGE},
		{path->card_trend.fatal_ns, MRC_CAUSE_CARD},
		{path->loss_trend.fatal_ns, MRC_CAUSE_LOSS},
	};
	uint64_t fatal_ns = MRC_NEVER;

	for (uint32_t i = 0; i < MRC_ARRAY_LEN(trends); i++) {
		if (trends[i].fatal_ns >= fatal_ns)
			continue;
		fatal_ns = trends[i].fatal_ns;
		view->cause = trends[i].cause;
	}
	view->eta_ns = fatal_ns == MRC_NEVER ? MRC_NEVER : grown(fatal_ns, now_ns);
	if (fatal_ns != MRC_NEVER)
		return MRC_HEALTH_FAILING;
	if (path->flaps >= FLAPS_FAILING) {
		view->cause = MRC_CAUSE_FLAPS;
		return MRC_HEALTH_FAILING;
	}
	if (view->score <= SCORE_BAD)
		return MRC_HEALTH_DEGRADED;
	if (view->score >= SCORE_WELL)
		return MRC_HEALTH_GOOD;
	return MRC_MIN(view->state, MRC_HEALTH_DEGRADED);
}

/* True when it has changed. */
static bool path_state(struct mrc_health_path *path, uint64_t now_ns)
{
	struct mrc_health_view *view = &path->view;
	enum mrc_health_state target = path_target(path, now_ns);

	if (view->state == MRC_HEALTH_GOOD && now_ns - view->since_ns >= RELAPSE_NS)
		path->relapses = 0;
	path->worse_periods = target > view->state ? path->worse_periods + 1 : 0;
	if (target >= view->state || target != path->better)
		path->better_periods = 0;
	else if (path->is_serving) /* out of service nothing can become better */
		path->better_periods++;
	path->better = target;
	if (path->worse_periods < WORSE_PERIODS &&
	    path->better_periods < BETTER_PERIODS
					   << (target == MRC_HEALTH_GOOD ? 2 * path->relapses : 0))
		return false;
	if (view->state == MRC_HEALTH_GOOD) {
		if (path->was_worse && now_ns - view->since_ns < RELAPSE_NS)
			path->relapses = MRC_MIN(path->relapses + 1, RELAPSES_MAX);
		path->was_worse = true;
	}
	path->worse_periods = 0;
	path->better_periods = 0;
	view->state = target;
	view->since_ns = now_ns;
	return true;
}

void mrc_health_init(struct mrc_health *health, struct mrc_health_path *paths, uint8_t path_count)
{
	MRC_ASSERT(path_count <= MRC_PATHS_MAX);
	*health = (struct mrc_health){.paths = paths, .path_count = path_count};
	for (uint8_t i = 0; i < path_count; i++)
		path_forget(&paths[i]);
}

void mrc_health_put(struct mrc_health *health, struct mrc_health_path *paths, uint8_t index)
{
	MRC_ASSERT(index <= health->path_count && index < MRC_PATHS_MAX);
	health->paths = paths;
	path_forget(&paths[index]);
	health->path_count = MRC_MAX(health->path_count, (uint8_t)(index + 1));
}

uint32_t mrc_health_judge(struct mrc_health *health, const struct mrc_health_sample *samples,
			  uint64_t now_ns)
{
	bool is_late =
		health->judged_ns == 0 || now_ns - health->judged_ns > 2 * MRC_HEALTH_PERIOD_NS;
	uint32_t changed = 0;

	health->judged_ns = now_ns;
	for (uint8_t i = 0; i < health->path_count; i++) {
		struct mrc_health_path *path = &health->paths[i];
		enum mrc_health_state state = path->view.state;

		if (samples[i].info.state == MRC_PATH_DENIED) {
			path_forget(path);
			path->view.since_ns = state == MRC_HEALTH_GOOD ? 0 : now_ns;
			changed |= (uint32_t)(state != MRC_HEALTH_GOOD) << i;
		}
		if (!path->is_serving || samples[i].info.bad_count > path->last.info.bad_count)
			path->serving_ns = now_ns;
		path->is_serving = samples[i].info.state == MRC_PATH_GOOD;
		path->is_card_whole =
			path->is_card_whole && path->is_serving && path->serving_ns != now_ns;
		if (samples[i].is_excused)
			path_excuse(path);
		else if (path->is_known && !is_late)
			path_take(path, &samples[i]);
	}
	for (uint8_t i = 0; i < health->path_count; i++) {
		struct mrc_health_path *path = &health->paths[i];

		if (path->is_known && !is_late && !samples[i].is_excused) {
			path_take_outs(health, &samples[i], i, now_ns);
			path_score(health, samples, i);
			path_trends(health, &samples[i], i, now_ns);
			changed |= (uint32_t)path_state(path, now_ns) << i;
		}
	}
	for (uint8_t i = 0; i < health->path_count; i++) {
		struct mrc_health_path *path = &health->paths[i];

		if (samples[i].card.reading != path->last.card.reading) {
			path->card_periods = 0;
			path->is_card_whole = path->is_serving;
		}
		path->last = samples[i];
		path->is_known = true;
	}
	return changed;
}

const char *mrc_health_state_name(enum mrc_health_state state)
{
	static const char *const names[MRC_HEALTH_STATE_COUNT] = {
		[MRC_HEALTH_GOOD] = "good",
		[MRC_HEALTH_DEGRADED] = "degraded",
		[MRC_HEALTH_FAILING] = "failing",
	};

	return (unsigned)state < MRC_HEALTH_STATE_COUNT ? names[state] : "?";
}

const char *mrc_health_cause_name(enum mrc_health_cause cause)
{
	static const char *const names[MRC_CAUSE_COUNT] = {
		[MRC_CAUSE_NONE] = "none",   [MRC_CAUSE_DAMAGE] = "damage",
		[MRC_CAUSE_LOSS] = "loss",   [MRC_CAUSE_STALLS] = "stalls",
		[MRC_CAUSE_CARD] = "card",   [MRC_CAUSE_FLAPS] = "flaps",
		[MRC_CAUSE_DELAY] = "delay", [MRC_CAUSE_RATE] = "rate",
	};

	return (unsigned)cause < MRC_CAUSE_COUNT ? names[cause] : "?";
}
