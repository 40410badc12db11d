/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *text, *key;
	bool is_theirs;
} mrc_trace_moments[] = {
#define X(id, name, text, key, is_theirs) {name, text, key, is_theirs},
	MRC_TRACE_MOMENTS(X)
#undef X
};

void mrc_trace_init(struct mrc_trace *trace, size_t count_max)
{
	memset(trace, 0, sizeof(*trace));
	trace->count_max = count_max;
	trace->next = MRC_TRACE_FROM_NOW_ON;
}

void mrc_trace_fini(struct mrc_trace *trace)
{
	free(trace->messages);
	free(trace->spans);
	trace->messages = NULL;
	trace->spans = NULL;
	trace->count = trace->count_room = 0;
}

json_t *mrc_trace_question(const struct mrc_trace *trace, const char *peer, uint64_t channel,
			   uint64_t every)
{
	/* s*: left out when NULL */
	return json_pack("{s:s s:I s:s* s:I s:I}", "command", "trace", "channel",
			 (json_int_t)channel, "peer", peer, "every", (json_int_t)every, "since",
			 (json_int_t)trace->next);
}

/* ---- reading answers ---- */

/* An absent number is 0; one that is there and is none, or is below 0, is not such an answer. */
static int mrc_trace_number(const json_t *object, const char *key, uint64_t *number_out)
{
	const json_t *value = json_object_get(object, key);

	*number_out = 0;
	if (value == NULL)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -EBADMSG;
	*number_out = (uint64_t)json_integer_value(value);
	return 0;
}

static void mrc_trace_text(const json_t *object, const char *key, char *text, size_t size)
{
	const char *value = json_string_value(json_object_get(object, key));

	snprintf(text, size, "%s", value != NULL ? value : "");
}

static int mrc_trace_message_take(struct mrc_trace_message *message, const json_t *json)
{
	memset(message, 0, sizeof(*message));
	if (!json_is_integer(json_object_get(json, "seq")) ||
	    !json_is_string(json_object_get(json, "outcome")) ||
	    mrc_trace_number(json, "seq", &message->seq) < 0 ||
	    mrc_trace_number(json, "number", &message->number) < 0 ||
	    mrc_trace_number(json, "bytes", &message->bytes) < 0 ||
	    mrc_trace_number(json, "fragments", &message->fragments) < 0 ||
	    mrc_trace_number(json, "code", &message->code) < 0 ||
	    mrc_trace_number(json, "error_ns", &message->error_ns) < 0)
		return -EBADMSG;
	mrc_trace_text(json, "outcome", message->outcome, sizeof(message->outcome));
	mrc_trace_text(json, "level", message->level, sizeof(message->level));
	for (unsigned i = 0; i < MRC_TRACE_MOMENT_COUNT; i++) {
		const json_t *at = json_object_get(json, mrc_trace_moments[i].key);

		if (at == NULL || json_is_null(at))
			continue;
		if (!json_is_integer(at))
			return -EBADMSG;
		/* A moment of the other host may lie before our clock's 0. */
		message->at_ns[i] = json_integer_value(at);
		message->known |= 1U << i;
	}
	return 0;
}

static int mrc_trace_clock_take(struct mrc_trace_clock *clock, const json_t *json)
{
	memset(clock, 0, sizeof(*clock));
	if (json == NULL || json_is_null(json))
		return 0;
	if (!json_is_integer(json_object_get(json, "offset_ns")) ||
	    !json_is_integer(json_object_get(json, "error_ns")) ||
	    mrc_trace_number(json, "error_ns", &clock->error_ns) < 0 ||
	    mrc_trace_number(json, "age_ns", &clock->age_ns) < 0)
		return -EBADMSG;
	clock->offset_ns = json_integer_value(json_object_get(json, "offset_ns"));
	clock->is_known = true;
	return 0;
}

static int mrc_trace_grow(struct mrc_trace *trace)
{
	size_t room = trace->count_room == 0 ? 256 : trace->count_room * 2;
	struct mrc_trace_message *messages;
	int64_t *spans;

	messages = reallocarray(trace->messages, room, sizeof(*messages));
	if (messages == NULL)
		return -ENOMEM;
	trace->messages = messages;
	spans = reallocarray(trace->spans, room, sizeof(*spans));
	if (spans == NULL)
		return -ENOMEM;
	trace->spans = spans;
	trace->count_room = room;
	return 0;
}

int mrc_trace_take(struct mrc_trace *trace, const json_t *result)
{
	const json_t *messages = json_object_get(result, "messages"), *json;
	const json_t *next = json_object_get(result, "next");
	uint64_t missed, untraced;
	size_t i;

	if (!json_is_array(messages) || !json_is_integer(next) || json_integer_value(next) < 0 ||
	    mrc_trace_number(result, "channel", &trace->channel) < 0 ||
	    mrc_trace_number(result, "every", &trace->every) < 0 ||
	    mrc_trace_number(result, "missed", &missed) < 0 ||
	    mrc_trace_number(result, "untraced", &untraced) < 0 ||
	    mrc_trace_clock_take(&trace->clock, json_object_get(result, "clock")) < 0)
		return -EBADMSG;
	mrc_trace_text(result, "peer", trace->peer, sizeof(trace->peer));
	mrc_trace_text(result, "service", trace->service, sizeof(trace->service));
	json_array_foreach(messages, i, json)
	{
		struct mrc_trace_message message;

		if (mrc_trace_message_take(&message, json) < 0)
			return -EBADMSG;
		if (trace->count == trace->count_max) {
			trace->left_out++;
			continue;
		}
		if (trace->count == trace->count_room && mrc_trace_grow(trace) < 0)
			return -ENOMEM;
		trace->messages[trace->count++] = message;
	}
	/* Missed is said of each answer anew; untraced is a counter of the channel, which may have begun before us. */
	trace->missed += missed;
	if (trace->next == MRC_TRACE_FROM_NOW_ON)
		trace->untraced_before = untraced;
	if (untraced < trace->untraced_before)
		trace->untraced_before = 0;
	trace->untraced = untraced - trace->untraced_before;
	trace->next = json_integer_value(next);
	trace->is_ended = json_is_true(json_object_get(result, "ended"));
	return json_array_size(messages) >= MRC_TRACE_ANSWER_MAX;
}

/* ---- moments and spans ---- */

const char *mrc_trace_moment_name(enum mrc_trace_moment moment)
{
	return moment < MRC_TRACE_MOMENT_COUNT ? mrc_trace_moments[moment].name : "?";
}

const char *mrc_trace_moment_text(enum mrc_trace_moment moment)
{
	return moment < MRC_TRACE_MOMENT_COUNT ? mrc_trace_moments[moment].text : "?";
}

bool mrc_trace_knows(const struct mrc_trace_message *message, enum mrc_trace_moment moment)
{
	return (message->known & (1U << moment)) != 0;
}

bool mrc_trace_crosses(enum mrc_trace_moment from, enum mrc_trace_moment to)
{
	return mrc_trace_moments[from].is_theirs != mrc_trace_moments[to].is_theirs;
}

bool mrc_trace_span(const struct mrc_trace_message *message, enum mrc_trace_moment from,
		    enum mrc_trace_moment to, int64_t *span_ns_out)
{
	if (!mrc_trace_knows(message, from) || !mrc_trace_knows(message, to))
		return false;
	if (to == MRC_TRACE_VERDICT && strcmp(message->outcome, "REJECTED") == 0)
		return false;
	/* What the daemon sent may be anything: wrap rather than overflow. */
	*span_ns_out = (int64_t)((uint64_t)message->at_ns[to] - (uint64_t)message->at_ns[from]);
	return true;
}

static int mrc_trace_span_compare(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

size_t mrc_trace_spans(const struct mrc_trace *trace, enum mrc_trace_moment from,
		       enum mrc_trace_moment to, const int64_t **spans_out)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->count; i++)
		count += mrc_trace_span(&trace->messages[i], from, to, &trace->spans[count]);
	if (count > 0)
		qsort(trace->spans, count, sizeof(*trace->spans), mrc_trace_span_compare);
	*spans_out = trace->spans;
	return count;
}

static int64_t mrc_trace_rank(const int64_t *spans, size_t count, unsigned per_mille)
{
	size_t rank = (count * per_mille + 999) / 1000;

	return spans[rank > 0 ? rank - 1 : 0];
}

void mrc_trace_quantiles(const struct mrc_trace *trace, enum mrc_trace_moment from,
			 enum mrc_trace_moment to, struct mrc_trace_quantiles *quantiles_out)
{
	struct mrc_trace_quantiles quantiles = {0};
	const int64_t *spans;
	int64_t span_ns;

	quantiles.count = mrc_trace_spans(trace, from, to, &spans);
	if (quantiles.count > 0) {
		quantiles.min_ns = spans[0];
		quantiles.p50_ns = mrc_trace_rank(spans, quantiles.count, 500);
		quantiles.p90_ns = mrc_trace_rank(spans, quantiles.count, 900);
		quantiles.p99_ns = mrc_trace_rank(spans, quantiles.count, 990);
		quantiles.p999_ns = mrc_trace_rank(spans, quantiles.count, 999);
		quantiles.max_ns = spans[quantiles.count - 1];
	}
	for (size_t i = 0; i < trace->count; i++) {
		const struct mrc_trace_message *message = &trace->messages[i];

		if (!mrc_trace_span(message, from, to, &span_ns))
			continue;
		quantiles.after_count += span_ns > 0;
		if (!mrc_trace_crosses(from, to))
			continue;
		quantiles.unsure_count += (span_ns < 0 ? 0 - (uint64_t)span_ns
						       : (uint64_t)span_ns) <= message->error_ns;
		if (message->error_ns > quantiles.error_ns)
			quantiles.error_ns = message->error_ns;
	}
	*quantiles_out = quantiles;
}

/* ---- JSON ---- */

json_t *mrc_trace_message_json(const struct mrc_trace_message *message)
{
	json_t *json = json_pack("{s:I s:I s:I s:I s:s s:s s:I}", "seq", (json_int_t)message->seq,
				 "number", (json_int_t)message->number, "bytes",
				 (json_int_t)message->bytes, "fragments",
				 (json_int_t)message->fragments, "outcome", message->outcome,
				 "level", message->level, "code", (json_int_t)message->code);

	for (unsigned i = 0; i < MRC_TRACE_MOMENT_COUNT; i++)
		if (mrc_trace_knows(message, (enum mrc_trace_moment)i))
			json_object_set_new(json, mrc_trace_moments[i].key,
					    json_integer(message->at_ns[i]));
	json_object_set_new(json, "error_ns", json_integer((json_int_t)message->error_ns));
	return json;
}

json_t *mrc_trace_clock_json(const struct mrc_trace_clock *clock)
{
	if (!clock->is_known)
		return json_null();
	return json_pack("{s:I s:I s:I}", "offset_ns", (json_int_t)clock->offset_ns, "error_ns",
			 (json_int_t)clock->error_ns, "age_ns", (json_int_t)clock->age_ns);
}
