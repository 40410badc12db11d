/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_trace_perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MRCCTL_NUMBER_BYTES 32

struct mrcctl_stage {
	const char *name, *key; /* key: of its length in args, where it is no slice */
	int pid;
	enum mrc_trace_moment from, to;
};

static const struct mrcctl_stage mrcctl_stages[] = {
	{"in the ring", "in_the_ring_ns", MRCCTL_TRACE_PID_SENDER, MRC_TRACE_SUBMITTED,
	 MRC_TRACE_FETCHED},
	{"waiting for a path", "waiting_ns", MRCCTL_TRACE_PID_SENDER, MRC_TRACE_FETCHED,
	 MRC_TRACE_FIRST_SENT},
	{"being sent", "being_sent_ns", MRCCTL_TRACE_PID_SENDER, MRC_TRACE_FIRST_SENT,
	 MRC_TRACE_LAST_SENT},
	{"under way", "under_way_ns", MRCCTL_TRACE_PID_SENDER, MRC_TRACE_LAST_SENT,
	 MRC_TRACE_PLACED},
	{"placed", "placed_to_visible_ns", MRCCTL_TRACE_PID_RECEIVER, MRC_TRACE_PLACED,
	 MRC_TRACE_VISIBLE},
	{"visible", "visible_to_committed_ns", MRCCTL_TRACE_PID_RECEIVER, MRC_TRACE_VISIBLE,
	 MRC_TRACE_VERDICT},
};

#define MRCCTL_STAGE_COUNT (sizeof(mrcctl_stages) / sizeof(mrcctl_stages[0]))

/* One message in one process. */
struct mrcctl_span {
	const struct mrc_trace_message *message; /* the trace's */
	int64_t start_ns, end_ns;
	size_t lane;
};

struct mrcctl_perfetto {
	FILE *out;
	int64_t base_ns;
	bool is_first; /* no comma yet */
	int error;
};

/* Owns the event. `times`: members that stand before the others, each with its comma. */
static void mrcctl_perfetto_put(struct mrcctl_perfetto *perfetto, const char *times, json_t *event)
{
	char *text = json_dumps(event, JSON_COMPACT);

	if (perfetto->error == 0 && text == NULL)
		perfetto->error = -ENOMEM;
	if (perfetto->error == 0) {
		/* behind the brace that opens the text */
		fprintf(perfetto->out, "%s{%s%s", perfetto->is_first ? "\n" : ",\n", times,
			text + 1);
		perfetto->is_first = false;
	}
	free(text);
	json_decref(event);
}

/*
 * us, in steps of 1/4096, which is near enough to tell every ns. Viewers add and subtract them as
 * doubles, and some take a slice that ends a rounding later than the next one begins for one that
 * crosses it. Sums of binary fractions are exact.
 */
static double mrcctl_perfetto_us(const struct mrcctl_perfetto *perfetto, int64_t at_ns)
{
	return rint((double)(at_ns - perfetto->base_ns) * (4096 / 1e3)) / 4096;
}

/* As few digits as bring the same number back. */
static const char *mrcctl_perfetto_number(double number, char text[MRCCTL_NUMBER_BYTES])
{
	snprintf(text, MRCCTL_NUMBER_BYTES, "%.15g", number);
	if (strtod(text, NULL) != number)
		snprintf(text, MRCCTL_NUMBER_BYTES, "%.17g", number);
	return text;
}

static void mrcctl_perfetto_meta(struct mrcctl_perfetto *perfetto, const char *name, int pid,
				 size_t tid, const char *key, json_t *value)
{
	mrcctl_perfetto_put(perfetto, "",
			    json_pack("{s:s s:s s:i s:I s:{s:o}}", "name", name, "ph", "M", "pid",
				      pid, "tid", (json_int_t)tid, "args", key, value));
}

/* `args` is given away; NULL: none. */
static void mrcctl_perfetto_slice(struct mrcctl_perfetto *perfetto, const char *name, int pid,
				  size_t lane, int64_t start_ns, int64_t end_ns, json_t *args)
{
	char ts[MRCCTL_NUMBER_BYTES], dur[MRCCTL_NUMBER_BYTES], times[3 * MRCCTL_NUMBER_BYTES];
	double ts_us = mrcctl_perfetto_us(perfetto, start_ns);
	double end_us = mrcctl_perfetto_us(perfetto, end_ns);

	snprintf(times, sizeof(times), "\"ts\":%s,\"dur\":%s,", mrcctl_perfetto_number(ts_us, ts),
		 mrcctl_perfetto_number(end_us - ts_us, dur));
	mrcctl_perfetto_put(perfetto, times,
			    json_pack("{s:s s:s s:s s:i s:I s:o*}", "name", name, "cat", "message",
				      "ph", "X", "pid", pid, "tid", (json_int_t)lane + 1, "args",
				      args));
}

static json_t *mrcctl_perfetto_args(const struct mrc_trace_message *message)
{
	json_t *args =
		json_pack("{s:I s:I s:I s:s s:s s:I s:I}", "number", (json_int_t)message->number,
			  "bytes", (json_int_t)message->bytes, "fragments",
			  (json_int_t)message->fragments, "outcome", message->outcome, "level",
			  message->level, "code", (json_int_t)message->code, "error_ns",
			  (json_int_t)message->error_ns);

	for (size_t i = 0; i < MRCCTL_STAGE_COUNT; i++) {
		const struct mrcctl_stage *stage = &mrcctl_stages[i];

		if (!mrc_trace_knows(message, stage->from) || !mrc_trace_knows(message, stage->to))
			continue;
		if (message->at_ns[stage->to] < message->at_ns[stage->from])
			json_object_set_new(args, stage->key,
					    json_integer(message->at_ns[stage->to] -
							 message->at_ns[stage->from]));
	}
	return args;
}

static void mrcctl_perfetto_message(struct mrcctl_perfetto *perfetto,
				    const struct mrcctl_span *span, int pid)
{
	const struct mrc_trace_message *message = span->message;
	char name[64], ts[MRCCTL_NUMBER_BYTES], times[2 * MRCCTL_NUMBER_BYTES];

	snprintf(name, sizeof(name), "message %" PRIu64, message->number);
	mrcctl_perfetto_slice(perfetto, name, pid, span->lane, span->start_ns, span->end_ns,
			      mrcctl_perfetto_args(message));
	for (size_t i = 0; i < MRCCTL_STAGE_COUNT; i++) {
		const struct mrcctl_stage *stage = &mrcctl_stages[i];

		if (stage->pid == pid && mrc_trace_knows(message, stage->from) &&
		    mrc_trace_knows(message, stage->to) &&
		    message->at_ns[stage->to] >= message->at_ns[stage->from])
			mrcctl_perfetto_slice(perfetto, stage->name, pid, span->lane,
					      message->at_ns[stage->from],
					      message->at_ns[stage->to], NULL);
	}
	if (pid != MRCCTL_TRACE_PID_SENDER || !mrc_trace_knows(message, MRC_TRACE_LOCAL))
		return;
	snprintf(times, sizeof(times), "\"ts\":%s,",
		 mrcctl_perfetto_number(mrcctl_perfetto_us(perfetto,
							   message->at_ns[MRC_TRACE_LOCAL]),
					ts));
	mrcctl_perfetto_put(perfetto, times,
			    json_pack("{s:s s:s s:s s:s s:i s:I s:{s:I}}", "name",
				      "local completion", "cat", "message", "ph", "i", "s", "t",
				      "pid", pid, "tid", (json_int_t)span->lane + 1, "args",
				      "number", (json_int_t)message->number));
}

/* ---- lanes ---- */

static bool mrcctl_span_is_of(enum mrc_trace_moment moment, int pid)
{
	/* The sender's lane has the whole message in it, the receiver's what happens there. */
	return pid == MRCCTL_TRACE_PID_SENDER || moment >= MRC_TRACE_PLACED;
}

static size_t mrcctl_spans_make(const struct mrc_trace *trace, int pid, struct mrcctl_span *spans)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->count; i++) {
		const struct mrc_trace_message *message = &trace->messages[i];
		struct mrcctl_span span = {.message = message};
		bool is_any = false;

		for (unsigned m = 0; m < MRC_TRACE_MOMENT_COUNT; m++) {
			int64_t at_ns = message->at_ns[m];

			if (!mrc_trace_knows(message, (enum mrc_trace_moment)m) ||
			    !mrcctl_span_is_of((enum mrc_trace_moment)m, pid))
				continue;
			if (!is_any || at_ns < span.start_ns)
				span.start_ns = at_ns;
			if (!is_any || at_ns > span.end_ns)
				span.end_ns = at_ns;
			is_any = true;
		}
		if (is_any)
			spans[count++] = span;
	}
	return count;
}

static int mrcctl_span_compare(const void *left, const void *right)
{
	const struct mrcctl_span *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->message->seq < b->message->seq ? -1 : a->message->seq > b->message->seq;
}

/* Each message takes the first lane that is free again. Answers how many there are; `ends` has count entries. */
static size_t mrcctl_spans_lay(struct mrcctl_span *spans, size_t count, int64_t *ends)
{
	size_t lane_count = 0;

	for (size_t i = 0; i < count; i++) {
		size_t lane = 0;

		while (lane < lane_count && ends[lane] > spans[i].start_ns)
			lane++;
		spans[i].lane = lane;
		ends[lane] = spans[i].end_ns;
		lane_count = lane == lane_count ? lane_count + 1 : lane_count;
	}
	return lane_count;
}

static void mrcctl_perfetto_process(struct mrcctl_perfetto *perfetto, const char *name, int pid,
				    const struct mrcctl_span *spans, size_t count,
				    size_t lane_count)
{
	char lane_name[32];

	mrcctl_perfetto_meta(perfetto, "process_name", pid, 0, "name", json_string(name));
	mrcctl_perfetto_meta(perfetto, "process_sort_index", pid, 0, "sort_index",
			     json_integer(pid));
	for (size_t i = 0; i < lane_count; i++) {
		snprintf(lane_name, sizeof(lane_name), "lane %zu", i + 1);
		mrcctl_perfetto_meta(perfetto, "thread_name", pid, i + 1, "name",
				     json_string(lane_name));
		mrcctl_perfetto_meta(perfetto, "thread_sort_index", pid, i + 1, "sort_index",
				     json_integer((json_int_t)i));
	}
	for (size_t i = 0; i < count; i++)
		mrcctl_perfetto_message(perfetto, &spans[i], pid);
}

int mrcctl_trace_perfetto(const struct mrc_trace *trace, const char *host, FILE *out)
{
	struct mrcctl_perfetto perfetto = {.out = out, .is_first = true};
	struct mrcctl_span *spans = calloc(trace->count + 1, sizeof(*spans));
	int64_t *ends = calloc(trace->count + 1, sizeof(*ends));
	char name[2 * MRC_TRACE_NAME_BYTES + 32];
	json_t *other;

	if (spans == NULL || ends == NULL) {
		free(spans);
		free(ends);
		return -ENOMEM;
	}
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
	for (int pid = MRCCTL_TRACE_PID_SENDER; pid <= MRCCTL_TRACE_PID_RECEIVER; pid++) {
		size_t count = mrcctl_spans_make(trace, pid, spans), lane_count;

		qsort(spans, count, sizeof(*spans), mrcctl_span_compare);
		/* The sender's spans hold every moment there is: the first of them is the base. */
		if (pid == MRCCTL_TRACE_PID_SENDER && count > 0)
			perfetto.base_ns = spans[0].start_ns;
		lane_count = mrcctl_spans_lay(spans, count, ends);
		if (pid == MRCCTL_TRACE_PID_SENDER)
			snprintf(name, sizeof(name), "%.63s, sending", host);
		else
			snprintf(name, sizeof(name), "%.63s, receiving %.63s", trace->peer,
				 trace->service);
		mrcctl_perfetto_process(&perfetto, name, pid, spans, count, lane_count);
	}
	free(spans);
	free(ends);
	other = json_pack("{s:s s:s s:I s:I s:I s:s s:I s:o}", "peer", trace->peer, "service",
			  trace->service, "channel", (json_int_t)trace->channel, "every",
			  (json_int_t)trace->every, "base_ns", (json_int_t)perfetto.base_ns,
			  "base_clock", "CLOCK_MONOTONIC of the sending host", "missed",
			  (json_int_t)trace->missed, "clock", mrc_trace_clock_json(&trace->clock));
	fputs("\n],\"otherData\":", out);
	if (perfetto.error == 0 && (other == NULL || json_dumpf(other, out, JSON_COMPACT) < 0))
		perfetto.error = other == NULL ? -ENOMEM : -EIO;
	json_decref(other);
	fputs("}\n", out);
	if (perfetto.error == 0 && (fflush(out) != 0 || ferror(out)))
		perfetto.error = -EIO;
	return perfetto.error;
}
