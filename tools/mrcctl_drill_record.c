/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill_record.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MS             1000000ULL
#define S              1000000000ULL

#define WINDOW_NS      (100 * MS) /* over which it is judged whether a rate is reached */
#define AFTER_NS       S          /* at least so long it is looked at after the end */
#define AFTER_RATE_NS  (500 * MS) /* the rate afterwards is that of the last so much */
#define STALL_NS_MAX   S          /* more than that is no failover */
#define SHORT_NS       (500 * MS) /* less may be over before any timer of either end has run out */
#define FULL_PERCENT   90U
#define SHARE_PERCENT  50U
#define AFTER_PERCENT  80U
#define OTHERS_PERCENT 70U

void mrcctl_drill_record_init(struct mrcctl_drill_record *record)
{
	memset(record, 0, sizeof(*record));
}

void mrcctl_drill_record_fini(struct mrcctl_drill_record *record)
{
	free(record->samples);
	free(record->events);
	memset(record, 0, sizeof(*record));
}

/* ---- taking ---- */

static uint64_t mrcctl_drill_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *mrcctl_drill_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

uint32_t mrcctl_drill_record_rail(const struct mrcctl_drill_record *record, const char *name)
{
	for (uint32_t i = 0; i < record->rail_count; i++) {
		if (strcmp(record->rails[i], name) == 0)
			return i;
	}
	return UINT32_MAX;
}

/* Room for one more; the items are `bytes` each. */
static int mrcctl_drill_grow(void **items, size_t count, size_t *max, size_t bytes)
{
	size_t more = *max == 0 ? 256 : *max * 2;
	void *grown;

	if (count < *max)
		return 0;
	grown = reallocarray(*items, more, bytes);
	if (grown == NULL)
		return -ENOMEM;
	*items = grown;
	*max = more;
	return 0;
}

static int mrcctl_drill_take_sample(struct mrcctl_drill_record *record, const json_t *state)
{
	struct mrcctl_drill_sample *sample;
	json_t *rail;
	size_t i;

	if (mrcctl_drill_grow((void **)&record->samples, record->sample_count, &record->samples_max,
			      sizeof(*record->samples)) < 0)
		return -ENOMEM;
	sample = &record->samples[record->sample_count++];
	memset(sample, 0, sizeof(*sample));
	sample->t_ns = mrcctl_drill_number(state, "now_ns");
	sample->resent = mrcctl_drill_number(state, "resent");
	sample->failed = mrcctl_drill_number(state, "failed");
	sample->stall_ns = mrcctl_drill_number(state, "stall_ns");
	sample->cut = (uint32_t)json_array_size(json_object_get(state, "cut"));
	json_array_foreach(json_object_get(state, "rails"), i, rail)
	{
		const char *name = mrcctl_drill_text(rail, "name");
		uint32_t index = mrcctl_drill_record_rail(record, name);

		if (index == UINT32_MAX) {
			if (record->rail_count == MRCCTL_DRILL_RAILS_MAX)
				continue;
			index = record->rail_count++;
			snprintf(record->rails[index], MRCCTL_DRILL_NAME_BYTES, "%s", name);
		}
		sample->rails[index].bytes = mrcctl_drill_number(rail, "bytes_sent") +
					     mrcctl_drill_number(rail, "bytes_received");
		sample->rails[index].paths = (uint32_t)mrcctl_drill_number(rail, "paths");
		sample->rails[index].paths_good = (uint32_t)mrcctl_drill_number(rail, "paths_good");
		sample->rails[index].has_carrier = json_is_true(json_object_get(rail, "carrier"));
	}
	return 0;
}

static int mrcctl_drill_take_event(struct mrcctl_drill_record *record, const json_t *json)
{
	struct mrcctl_drill_event *event;

	if (mrcctl_drill_grow((void **)&record->events, record->event_count, &record->events_max,
			      sizeof(*record->events)) < 0)
		return -ENOMEM;
	event = &record->events[record->event_count++];
	memset(event, 0, sizeof(*event));
	event->t_ns = mrcctl_drill_number(json, "at_ns");
	event->quiet_ns = mrcctl_drill_number(json, "silent_ns");
	event->moved = mrcctl_drill_number(json, "moved");
	event->was_good = strcasecmp(mrcctl_drill_text(json, "state_old"), "good") == 0;
	event->is_good = strcasecmp(mrcctl_drill_text(json, "state"), "good") == 0;
	snprintf(event->rail, sizeof(event->rail), "%s", mrcctl_drill_text(json, "rail"));
	snprintf(event->peer, sizeof(event->peer), "%s", mrcctl_drill_text(json, "peer"));
	snprintf(event->reason, sizeof(event->reason), "%s", mrcctl_drill_text(json, "reason"));
	return 0;
}

int mrcctl_drill_record_take(struct mrcctl_drill_record *record, const json_t *state)
{
	const json_t *log = json_object_get(state, "log");
	json_t *event;
	size_t i;
	int r;

	if (!json_is_integer(json_object_get(state, "now_ns")) ||
	    !json_is_array(json_object_get(state, "rails")))
		return -EBADMSG;
	r = mrcctl_drill_take_sample(record, state);
	json_array_foreach(json_object_get(log, "events"), i, event)
	{
		if (r == 0 && strcmp(mrcctl_drill_text(event, "kind"), "path") == 0)
			r = mrcctl_drill_take_event(record, event);
	}
	record->session = mrcctl_drill_number(state, "session");
	record->events_missed += mrcctl_drill_number(log, "missed");
	record->began_ns = mrcctl_drill_number(state, "began_ns");
	record->ended_ns = mrcctl_drill_number(state, "ended_ns");
	record->limit_bytes_per_s = mrcctl_drill_number(state, "limit_bytes_per_s");
	record->is_idle = strcmp(mrcctl_drill_text(state, "state"), "idle") == 0;
	snprintf(record->over, sizeof(record->over), "%s", mrcctl_drill_text(state, "over"));
	snprintf(record->error, sizeof(record->error), "%s", mrcctl_drill_text(state, "error"));
	record->is_ending = strcmp(mrcctl_drill_text(state, "state"), "ending") == 0;
	record->is_link = json_is_true(json_object_get(state, "link"));
	snprintf(record->interface, sizeof(record->interface), "%s",
		 mrcctl_drill_text(state, "interface"));
	return r;
}

void mrcctl_drill_record_forget(struct mrcctl_drill_record *record, uint64_t before_ns)
{
	size_t gone = 0;

	while (gone + 1 < record->sample_count && record->samples[gone + 1].t_ns < before_ns)
		gone++;
	record->sample_count -= gone;
	if (gone > 0)
		memmove(record->samples, record->samples + gone,
			record->sample_count * sizeof(*record->samples));
}

/* ---- rates ---- */

static uint64_t mrcctl_drill_bytes(const struct mrcctl_drill_record *record,
				   const struct mrcctl_drill_sample *sample, uint32_t rail)
{
	uint64_t bytes = 0;

	if (rail != UINT32_MAX)
		return sample->rails[rail].bytes;
	for (uint32_t i = 0; i < record->rail_count; i++)
		bytes += sample->rails[i].bytes;
	return bytes;
}

/* The index of the first sample at this moment or later; sample_count: there is none. */
static size_t mrcctl_drill_sample_at(const struct mrcctl_drill_record *record, uint64_t t_ns)
{
	size_t low = 0, high = record->sample_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (record->samples[middle].t_ns < t_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t mrcctl_drill_rate(const struct mrcctl_drill_record *record, uint32_t rail,
			   uint64_t from_ns, uint64_t to_ns)
{
	size_t from = mrcctl_drill_sample_at(record, from_ns);
	size_t to = mrcctl_drill_sample_at(record, to_ns + 1);
	const struct mrcctl_drill_sample *first = &record->samples[from], *last;
	uint64_t a, b;

	if (to < from + 2)
		return 0;
	last = &record->samples[to - 1];
	a = mrcctl_drill_bytes(record, first, rail);
	b = mrcctl_drill_bytes(record, last, rail);
	/* A counter that went back is a daemon that was started again. */
	return b < a ? 0
		     : (uint64_t)((double)(b - a) * (double)S / (double)(last->t_ns - first->t_ns));
}

bool mrcctl_drill_is_whole(const struct mrcctl_drill_record *record, uint32_t rail)
{
	const struct mrcctl_drill_sample *last;

	if (record->sample_count == 0)
		return false;
	last = &record->samples[record->sample_count - 1];
	for (uint32_t i = 0; i < record->rail_count; i++) {
		if ((rail == UINT32_MAX || rail == i) &&
		    last->rails[i].paths_good < last->rails[i].paths)
			return false;
	}
	return true;
}

/* How long after `from_ns` until a window's rate is at least this; or unknown. */
static uint64_t mrcctl_drill_reached(const struct mrcctl_drill_record *record, uint32_t rail,
				     uint64_t from_ns, uint64_t rate)
{
	for (size_t i = mrcctl_drill_sample_at(record, from_ns + WINDOW_NS);
	     i < record->sample_count; i++) {
		uint64_t t_ns = record->samples[i].t_ns;

		if (mrcctl_drill_rate(record, rail, t_ns - WINDOW_NS, t_ns) >= rate)
			return t_ns - from_ns;
	}
	return MRCCTL_DRILL_UNKNOWN;
}

static void mrcctl_drill_phase_make(const struct mrcctl_drill_record *record, uint32_t rail,
				    uint64_t from_ns, uint64_t to_ns,
				    struct mrcctl_drill_phase *phase)
{
	phase->rate = mrcctl_drill_rate(record, UINT32_MAX, from_ns, to_ns);
	phase->rail_rate = mrcctl_drill_rate(record, rail, from_ns, to_ns);
	phase->stall_ns = 0;
	for (size_t i = 0; i < record->sample_count; i++) {
		const struct mrcctl_drill_sample *sample = &record->samples[i];

		if (sample->t_ns > from_ns && sample->t_ns <= to_ns &&
		    sample->stall_ns > phase->stall_ns)
			phase->stall_ns = sample->stall_ns;
	}
}

/* ---- what befell the paths ---- */

static struct mrcctl_drill_path *mrcctl_drill_path_of(struct mrcctl_drill_result *result,
						      const char *peer)
{
	for (uint32_t i = 0; i < result->path_count; i++) {
		if (strcmp(result->paths[i].peer, peer) == 0)
			return &result->paths[i];
	}
	return NULL;
}

static void mrcctl_drill_paths_make(const struct mrcctl_drill_record *record,
				    struct mrcctl_drill_result *result)
{
	for (size_t i = 0; i < record->event_count; i++) {
		const struct mrcctl_drill_event *event = &record->events[i];
		struct mrcctl_drill_path *path = mrcctl_drill_path_of(result, event->peer);

		if (event->t_ns < result->began_ns || strcmp(event->rail, result->rail) != 0)
			continue;
		if (event->is_good && path != NULL) {
			path->back_ns =
				event->t_ns > result->ended_ns ? event->t_ns - result->ended_ns : 0;
		} else if (event->was_good && path != NULL) {
			path->back_ns = MRCCTL_DRILL_UNKNOWN;
			path->moved += event->moved;
			path->times++;
		} else if (event->was_good && result->path_count < MRCCTL_DRILL_PATHS_MAX) {
			path = &result->paths[result->path_count++];
			memcpy(path->peer, event->peer, sizeof(path->peer));
			memcpy(path->reason, event->reason, sizeof(path->reason));
			path->left_ns = event->t_ns - result->began_ns;
			path->quiet_ns = event->quiet_ns;
			path->moved = event->moved;
			path->times = 1;
			path->back_ns = MRCCTL_DRILL_UNKNOWN;
		}
	}
}

/* ---- what is wrong ---- */

void mrcctl_drill_problem(struct mrcctl_drill_result *result, const char *format, ...)
{
	va_list args;

	if (result->problem_count == MRCCTL_DRILL_PROBLEMS_MAX)
		return;
	va_start(args, format);
	vsnprintf(result->problems[result->problem_count++], sizeof(result->problems[0]), format,
		  args);
	va_end(args);
}

static void mrcctl_drill_finding(struct mrcctl_drill_result *result, const char *text)
{
	if (result->finding_count < MRCCTL_DRILL_FINDINGS_MAX)
		snprintf(result->findings[result->finding_count++], sizeof(result->findings[0]),
			 "%s", text);
}

static bool mrcctl_drill_is_short(const struct mrcctl_drill_result *result)
{
	return !result->is_watch && result->ended_ns - result->began_ns < SHORT_NS;
}

static uint64_t mrcctl_drill_percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 100 : (uint64_t)((double)part * 100 / (double)whole);
}

/* Was a path of it in service for all of the time between? */
static bool mrcctl_drill_stayed(const struct mrcctl_drill_record *record, uint32_t rail,
				uint64_t from_ns, uint64_t to_ns)
{
	bool is_any = false;

	for (size_t i = 0; i < record->sample_count; i++) {
		const struct mrcctl_drill_sample *sample = &record->samples[i];

		if (sample->t_ns <= from_ns || sample->t_ns >= to_ns)
			continue;
		if (sample->rails[rail].paths_good == 0)
			return false;
		is_any = true;
	}
	return is_any;
}

static bool mrcctl_drill_was_cut(const struct mrcctl_drill_record *record, uint64_t from_ns)
{
	uint32_t before = UINT32_MAX;

	for (size_t i = 0; i < record->sample_count; i++) {
		const struct mrcctl_drill_sample *sample = &record->samples[i];

		if (sample->t_ns <= from_ns)
			before = sample->cut;
		else if (sample->cut > before)
			return true;
	}
	return false;
}

static void mrcctl_drill_judge_paths(const struct mrcctl_drill_record *record, uint32_t rail,
				     struct mrcctl_drill_result *result)
{
	bool is_taken = result->is_watch || result->fault != MRCCTL_DRILL_SLOW;
	/* The daemon's own engine is told of it, and has to act at once. */
	bool is_told = result->fault == MRCCTL_DRILL_DOWN && !result->is_link;
	uint32_t away = 0;

	if (mrcctl_drill_is_short(result) && !is_told) {
		if (is_taken && result->path_count == 0)
			mrcctl_drill_finding(result,
					     "not found out, which less than 500 ms need not be");
	} else if (is_taken &&
		   (result->path_count == 0 ||
		    /* A cable that is watched may come and go faster than samples are taken. */
		    (!result->is_watch &&
		     mrcctl_drill_stayed(record, rail, result->began_ns, result->ended_ns))))
		mrcctl_drill_problem(result,
				     "not found out: a path stayed in service all the time");
	for (uint32_t i = 0; i < result->path_count; i++)
		away += result->paths[i].back_ns == MRCCTL_DRILL_UNKNOWN;
	if (away > 0 || !mrcctl_drill_is_whole(record, rail))
		mrcctl_drill_problem(result, "not all of its paths are in service again");
	if (mrcctl_drill_was_cut(record, result->began_ns))
		mrcctl_drill_problem(result, "a peer could not be reached meanwhile");
}

static void mrcctl_drill_judge_others(const struct mrcctl_drill_record *record,
				      struct mrcctl_drill_result *result)
{
	uint64_t others = result->before.rate - result->before.rail_rate;
	uint64_t others_during = result->during.rate - result->during.rail_rate;
	uint64_t percent = mrcctl_drill_percent(others_during, others);

	if (record->is_several || percent >= OTHERS_PERCENT)
		return;
	if (mrcctl_drill_is_short(result))
		mrcctl_drill_finding(result, "what the other rails carry meanwhile cannot be told "
					     "from less than 500 ms");
	else
		mrcctl_drill_problem(result,
				     "the other rails carried %llu %% of what they did before",
				     (unsigned long long)percent);
}

static void mrcctl_drill_judge_rates(const struct mrcctl_drill_record *record,
				     struct mrcctl_drill_result *result)
{
	if (!result->is_measured)
		return;
	if (result->during.stall_ns > STALL_NS_MAX || result->after.stall_ns > STALL_NS_MAX)
		mrcctl_drill_problem(result, "programs stood still for more than a second");
	mrcctl_drill_judge_others(record, result);
	if (mrcctl_drill_percent(result->after.rate, result->before.rate) < AFTER_PERCENT)
		mrcctl_drill_problem(result, "%llu %% of the rate before is back",
				     (unsigned long long)mrcctl_drill_percent(result->after.rate,
									      result->before.rate));
}

/* ---- all of it ---- */

static void mrcctl_drill_times_make(const struct mrcctl_drill_record *record, uint32_t rail,
				    uint64_t first_ns, struct mrcctl_drill_result *result)
{
	uint64_t from_ns = result->ended_ns;

	mrcctl_drill_phase_make(record, rail, first_ns, result->began_ns, &result->before);
	result->is_measured = result->before.rate >= MRCCTL_DRILL_RATE_MIN;
	result->full_ns = result->share_ns = MRCCTL_DRILL_UNKNOWN;
	if (!result->is_measured)
		return;
	result->full_ns = mrcctl_drill_reached(record, UINT32_MAX, from_ns,
					       result->before.rate / 100 * FULL_PERCENT);
	if (result->before.rail_rate > 0)
		result->share_ns =
			mrcctl_drill_reached(record, rail, from_ns,
					     result->before.rail_rate / 100 * SHARE_PERCENT);
}

void mrcctl_drill_result_make(const struct mrcctl_drill_record *record,
			      const struct mrcctl_drill_options *options, const char *rail_name,
			      uint64_t first_ns, struct mrcctl_drill_result *result_out)
{
	const struct mrcctl_drill_sample *last = &record->samples[record->sample_count - 1];
	uint32_t rail = mrcctl_drill_record_rail(record, rail_name);
	const struct mrcctl_drill_sample *first = last;

	memset(result_out, 0, sizeof(*result_out));
	snprintf(result_out->rail, sizeof(result_out->rail), "%s", rail_name);
	result_out->is_link = options->is_link;
	result_out->is_watch = options->is_watch;
	result_out->fault = options->fault;
	result_out->times = options->times;
	result_out->duration_ns = options->duration_ns;
	result_out->limit_bytes_per_s = record->limit_bytes_per_s;
	result_out->first_ns = first_ns;
	result_out->began_ns = record->began_ns;
	result_out->ended_ns = record->ended_ns != 0 ? record->ended_ns : last->t_ns;
	result_out->last_ns = last->t_ns;
	for (size_t i = record->sample_count; i > 0 && record->samples[i - 1].t_ns >= first_ns; i--)
		first = &record->samples[i - 1];
	result_out->resent = last->resent - first->resent;
	result_out->failed = last->failed - first->failed;

	mrcctl_drill_times_make(record, rail, first_ns, result_out);
	mrcctl_drill_phase_make(record, rail, result_out->began_ns, result_out->ended_ns,
				&result_out->during);
	mrcctl_drill_phase_make(record, rail, result_out->ended_ns, last->t_ns, &result_out->after);
	result_out->after.rate =
		mrcctl_drill_rate(record, UINT32_MAX, last->t_ns - AFTER_RATE_NS, last->t_ns);
	result_out->after.rail_rate =
		mrcctl_drill_rate(record, rail, last->t_ns - AFTER_RATE_NS, last->t_ns);
	mrcctl_drill_paths_make(record, result_out);

	if (result_out->failed > 0)
		mrcctl_drill_problem(result_out, "%llu message%s failed",
				     (unsigned long long)result_out->failed,
				     result_out->failed == 1 ? "" : "s");
	/* Who interrupts does not wait for what comes of it. */
	if (options->is_watch || strcmp(record->over, "its asker said so") != 0) {
		mrcctl_drill_judge_paths(record, rail, result_out);
		mrcctl_drill_judge_rates(record, result_out);
	}
	if (record->events_missed > 0)
		mrcctl_drill_problem(result_out, "more happened than could be told");
	if (!options->is_watch && strcmp(record->over, "its time is over") != 0)
		mrcctl_drill_problem(result_out, "it ended early: %s",
				     record->over[0] != '\0' ? record->over : "unknown why");
}

bool mrcctl_drill_is_over(const struct mrcctl_drill_record *record, const char *rail_name,
			  uint64_t first_ns)
{
	const struct mrcctl_drill_sample *last = &record->samples[record->sample_count - 1];
	uint32_t rail = mrcctl_drill_record_rail(record, rail_name);
	struct mrcctl_drill_result result = {.began_ns = record->began_ns,
					     .ended_ns = record->ended_ns};

	if (record->ended_ns == 0 || last->t_ns < record->ended_ns + AFTER_NS ||
	    !mrcctl_drill_is_whole(record, rail))
		return false;
	mrcctl_drill_times_make(record, rail, first_ns, &result);
	if (!result.is_measured)
		return true;
	/* And so long at full rate that the rate afterwards is one of a rail that is back. */
	result.after.rate =
		mrcctl_drill_rate(record, UINT32_MAX, last->t_ns - AFTER_RATE_NS, last->t_ns);
	return mrcctl_drill_percent(result.after.rate, result.before.rate) >= AFTER_PERCENT &&
	       result.full_ns != MRCCTL_DRILL_UNKNOWN &&
	       last->t_ns >= result.ended_ns + result.full_ns + AFTER_RATE_NS &&
	       (result.before.rail_rate == 0 || result.share_ns != MRCCTL_DRILL_UNKNOWN);
}
