/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "mrcd_client.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_timeval.h"

/* One channel that is traced. Owned by struct mrcd_traces. */
struct mrcd_trace {
	TAILQ_ENTRY(mrcd_trace) entry;
	struct mrcd_peer *peer; /* the worker's */
	uint32_t channel;       /* the engine's id */
	uint64_t cookie;        /* the client side's */
	char service[MRC_NAME_MAX + 1];
	uint32_t every;
	uint64_t until_ns;
	uint64_t untraced_before;   /* of the channel, when it began */
	uint64_t untraced;          /* since then */
	uint64_t first;             /* number of its first message: none is used twice */
	uint64_t next;              /* number of the next to finish */
	struct mrc_act_trace *kept; /* ours; by number & (MRCD_TRACE_KEPT - 1) */
};

struct mrcd_traces {
	struct mrcd_worker *worker; /* the owner */
	struct event *timer;        /* ours; ends those nobody asks for */
	TAILQ_HEAD(, mrcd_trace) traces;
	uint32_t count;
	struct mrc_histogram stages[MRCD_STAGE_COUNT];
	uint64_t next; /* above the numbers of all that has finished in traces that ended */
};

/* ---- life ---- */

static void trace_free(struct mrcd_traces *traces, struct mrcd_trace *trace)
{
	TAILQ_REMOVE(&traces->traces, trace, entry);
	traces->count--;
	traces->next = MRC_MAX(traces->next, trace->next);
	free(trace->kept);
	free(trace);
}

static void trace_end(struct mrcd_traces *traces, struct mrcd_trace *trace)
{
	if (traces->worker->clients != NULL)
		mrcd_client_side_trace(traces->worker->clients, trace->cookie, 0);
	mrcd_info("channel %u to %s: no longer traced", trace->channel,
		  mrcd_peer_name(trace->peer));
	trace_free(traces, trace);
}

void mrcd_traces_forget(struct mrcd_traces *traces, const struct mrcd_peer *peer)
{
	struct mrcd_trace *trace = TAILQ_FIRST(&traces->traces);

	while (trace != NULL) {
		struct mrcd_trace *next = TAILQ_NEXT(trace, entry);

		if (trace->peer == peer)
			trace_end(traces, trace);
		trace = next;
	}
}

/* Ends what is over; the timer is for the first that will be. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_traces *traces = context;
	uint64_t now_ns = mrcd_worker_now(traces->worker);
	uint64_t first_ns = MRC_NEVER;
	struct mrcd_trace *trace = TAILQ_FIRST(&traces->traces);

	while (trace != NULL) {
		struct mrcd_trace *next = TAILQ_NEXT(trace, entry);

		if (trace->until_ns <= now_ns)
			trace_end(traces, trace);
		else
			first_ns = MRC_MIN(first_ns, trace->until_ns);
		trace = next;
	}
	if (first_ns != MRC_NEVER) {
		struct timeval wait = mrcd_timeval_of(first_ns - now_ns);

		event_add(traces->timer, &wait);
	}
}

int mrcd_traces_new(struct mrcd_worker *worker, struct mrcd_traces **traces_out)
{
	struct mrcd_traces *traces = calloc(1, sizeof(*traces));

	if (traces == NULL)
		return -ENOMEM;
	traces->worker = worker;
	TAILQ_INIT(&traces->traces);
	traces->timer = evtimer_new(worker->base, on_timer, traces);
	if (traces->timer == NULL) {
		free(traces);
		return -ENOMEM;
	}
	*traces_out = traces;
	return 0;
}

void mrcd_traces_free(struct mrcd_traces *traces)
{
	struct mrcd_trace *trace;

	if (traces == NULL)
		return;
	while ((trace = TAILQ_FIRST(&traces->traces)) != NULL) {
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		trace_free(traces, trace); /* NOLINT(clang-analyzer-unix.Malloc) */
	}
	event_free(traces->timer);
	free(traces);
}

static struct mrcd_trace *trace_find(struct mrcd_traces *traces, const struct mrcd_peer *peer,
				     uint32_t channel)
{
	struct mrcd_trace *trace;

	TAILQ_FOREACH(trace, &traces->traces, entry)
	{
		if (trace->peer == peer && trace->channel == channel)
			return trace;
	}
	return NULL;
}

/* One that lasts, though its channel may have ended. */
static struct mrcd_trace *trace_named(struct mrcd_traces *traces, const char *peer,
				      uint32_t channel)
{
	struct mrcd_trace *trace;

	TAILQ_FOREACH(trace, &traces->traces, entry)
	{
		if (trace->channel == channel &&
		    (peer == NULL || strcmp(peer, mrcd_peer_name(trace->peer)) == 0))
			return trace;
	}
	return NULL;
}

/* ---- stages ---- */

static const struct {
	const char *name;
	enum mrc_moment from, to;
} stages[MRCD_STAGE_COUNT] = {
#define STAGE(id, name, from, to) {name, MRC_MOMENT_##from, MRC_MOMENT_##to},
	MRCD_STAGES(STAGE)
#undef STAGE
};

const char *mrcd_stage_name(enum mrcd_stage stage)
{
	return stages[stage].name;
}

const struct mrc_histogram *mrcd_trace_stage(const struct mrcd_traces *traces,
					     enum mrcd_stage stage)
{
	return &traces->stages[stage];
}

/* A message that failed has no end of its last stages. */
static void stages_record(struct mrcd_traces *traces, const struct mrc_act_trace *act)
{
	for (int i = 0; i < MRCD_STAGE_COUNT; i++) {
		uint64_t from_ns = act->moments_ns[stages[i].from];
		uint64_t to_ns = act->moments_ns[stages[i].to];

		if (from_ns != 0 && to_ns != 0)
			mrc_histogram_record(&traces->stages[i],
					     to_ns > from_ns ? to_ns - from_ns : 0);
	}
}

void mrcd_trace_add(struct mrcd_traces *traces, const struct mrcd_peer *peer,
		    const struct mrc_act_trace *act)
{
	struct mrcd_trace *trace = trace_find(traces, peer, act->channel);

	/* Between two programs of this host nothing is under way. */
	if (peer != traces->worker->loop_ends[0] && peer != traces->worker->loop_ends[1])
		stages_record(traces, act);
	/* Who does not say when it was submitted was taken for the stages, before somebody traced its channel. */
	if (trace != NULL && act->moments_ns[MRC_MOMENT_SUBMITTED] != 0)
		trace->kept[trace->next++ & (MRCD_TRACE_KEPT - 1)] = *act;
}

/* ---- the command ---- */

static json_t *error_text(json_t **error_out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static json_t *error_text(json_t **error_out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*error_out = json_vsprintf(format, args);
	va_end(args);
	if (*error_out == NULL)
		*error_out = json_string("a name in the command is not valid UTF-8");
	return NULL;
}

static bool channel_find(struct mrcd_peer *peer, uint32_t id, struct mrc_channel_info *out)
{
	uint32_t iter = 0;

	while (mrc_conn_channel_info(mrcd_peer_conn(peer), &iter, out)) {
		if (out->id == id)
			return true;
	}
	return false;
}

/* The peers that have a channel of this number; of the loop the opener's end alone. */
static uint32_t peers_of(struct mrcd_worker *worker, const char *name, uint32_t id,
			 struct mrcd_peer **peer_out, char *names, size_t names_bytes)
{
	struct mrc_channel_info info;
	uint32_t count = 0;
	size_t at = 0;

	names[0] = '\0';
	for (uint32_t i = 0; i < worker->peer_count + 2; i++) {
		bool is_loop = i >= worker->peer_count;
		struct mrcd_peer *peer =
			is_loop ? worker->loop_ends[i - worker->peer_count] : worker->peers[i];

		if (peer == NULL || (name != NULL && strcmp(name, mrcd_peer_name(peer)) != 0) ||
		    !channel_find(peer, id, &info) || (is_loop && !info.is_opener))
			continue;
		count++;
		*peer_out = peer;
		if (at < names_bytes)
			at += (size_t)snprintf(names + at, names_bytes - at, "%s%s/%u",
					       count > 1 ? ", " : "", mrcd_peer_name(peer), id);
	}
	return count;
}

static json_t *text_of(int outcome)
{
	/* As libmrc names them, without the prefix: the numbers are the same. */
	static const char *const names[] = {
		"OK",        "REJECTED", "UNKNOWN",        "PEER_DIED",
		"TIMED_OUT", "CLOSED",   "TOO_BIG",        "NO_SERVICE",
		"NO_PEER",   "REFUSED",  "NOT_ALLOWED",    "NO_RESOURCES",
		"DETACHED",  "INVALID",  "BUFFER_CHANGED", "IN_USE",
	};

	return json_string(outcome <= 0 && (size_t)-outcome < MRC_ARRAY_LEN(names) ? names[-outcome]
										   : "?");
}

static json_t *message_json(const struct mrc_act_trace *act, uint64_t seq)
{
	static const char *const moments[MRC_MOMENT_COUNT] = {
		[MRC_MOMENT_SUBMITTED] = "submitted_ns",   [MRC_MOMENT_FETCHED] = "fetched_ns",
		[MRC_MOMENT_FIRST_SENT] = "first_sent_ns", [MRC_MOMENT_LAST_SENT] = "last_sent_ns",
		[MRC_MOMENT_LOCAL] = "local_ns",           [MRC_MOMENT_PLACED] = "placed_ns",
		[MRC_MOMENT_VISIBLE] = "visible_ns",       [MRC_MOMENT_VERDICT] = "verdict_ns",
	};
	static const char *const levels[] = {
		[MRC_LVL_NONE] = "none",
		[MRC_LVL_PLACED] = "placed",
		[MRC_LVL_VISIBLE] = "visible",
		[MRC_LVL_COMMITTED] = "committed",
	};
	json_t *message =
		json_pack("{s:I s:I s:I s:I s:o s:s s:I s:I}", "seq", (json_int_t)seq, "number",
			  (json_int_t)act->number, "bytes", (json_int_t)act->len, "fragments",
			  (json_int_t)act->frag_count, "outcome", text_of(act->outcome), "level",
			  levels[act->level], "code", (json_int_t)act->code, "error_ns",
			  (json_int_t)act->error_ns);

	for (int i = 0; i < MRC_MOMENT_COUNT; i++) {
		if (act->moments_ns[i] != 0)
			json_object_set_new(message, moments[i],
					    json_integer((json_int_t)act->moments_ns[i]));
	}
	return message;
}

static json_t *clock_json(struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(peer), &info);
	if (!info.is_clock_known)
		return json_null();
	return json_pack("{s:I s:I s:I}", "offset_ns", (json_int_t)info.clock_offset_ns, "error_ns",
			 (json_int_t)info.clock_error_ns, "age_ns", (json_int_t)info.clock_age_ns);
}

static json_t *answer(const struct mrcd_trace *trace, int64_t since, bool is_ended)
{
	uint64_t kept = MRC_MIN(trace->next - trace->first, MRCD_TRACE_KEPT);
	uint64_t oldest = trace->next - kept;
	uint64_t from = since < 0 ? trace->next : MRC_MIN((uint64_t)since, trace->next);
	uint64_t missed =
		MRC_MAX(from, trace->first) < oldest ? oldest - MRC_MAX(from, trace->first) : 0;
	json_t *messages = json_array();
	uint64_t to;

	from = MRC_MAX(from, oldest);
	to = MRC_MIN(trace->next, from + MRCD_TRACE_TOLD_MAX);
	for (uint64_t seq = from; seq < to; seq++)
		json_array_append_new(messages,
				      message_json(&trace->kept[seq & (MRCD_TRACE_KEPT - 1)], seq));
	return json_pack("{s:s s:s s:I s:I s:b s:I s:I s:I s:o s:o}", "peer",
			 mrcd_peer_name(trace->peer), "service", trace->service, "channel",
			 (json_int_t)trace->channel, "every", (json_int_t)trace->every, "ended",
			 (int)is_ended, "next", (json_int_t)to, "missed", (json_int_t)missed,
			 "untraced", (json_int_t)trace->untraced, "clock", clock_json(trace->peer),
			 "messages", messages);
}

static struct mrcd_trace *trace_begin(struct mrcd_traces *traces, struct mrcd_peer *peer,
				      const struct mrc_channel_info *info)
{
	struct mrcd_trace *trace = calloc(1, sizeof(*trace));

	if (trace == NULL)
		return NULL;
	trace->kept = calloc(MRCD_TRACE_KEPT, sizeof(*trace->kept));
	if (trace->kept == NULL) {
		free(trace);
		return NULL;
	}
	trace->peer = peer;
	trace->channel = info->id;
	trace->cookie = info->cookie;
	trace->untraced_before = info->untraced;
	trace->first = trace->next = traces->next;
	snprintf(trace->service, sizeof(trace->service), "%s",
		 info->service != NULL ? info->service : "");
	TAILQ_INSERT_TAIL(&traces->traces, trace, entry);
	traces->count++;
	mrcd_info("channel %u to %s: traced", info->id, mrcd_peer_name(peer));
	return trace;
}

json_t *mrcd_trace_ask(struct mrcd_traces *traces, const json_t *command, json_t **error_out)
{
	struct mrcd_worker *worker = traces->worker;
	const json_t *id = json_object_get(command, "channel");
	const json_t *every = json_object_get(command, "every");
	const json_t *since = json_object_get(command, "since");
	const char *name = json_string_value(json_object_get(command, "peer"));
	struct mrc_channel_info info = {0};
	struct mrcd_peer *peer = NULL;
	struct mrcd_trace *trace;
	char names[512];
	uint32_t count;
	json_t *result;
	bool is_there;

	if (!json_is_integer(id) || json_integer_value(id) < 1 ||
	    json_integer_value(id) > UINT32_MAX)
		return error_text(error_out, "\"channel\" is wanted: a number, as column ID of "
					     "\"channels\" has it");
	if (!json_is_integer(every) || json_integer_value(every) < 0 ||
	    json_integer_value(every) > MRCD_TRACE_EVERY_MAX)
		return error_text(error_out,
				  "\"every\" is wanted: one message in so many is traced, 1 to %u; "
				  "0 ends it",
				  MRCD_TRACE_EVERY_MAX);
	if (since != NULL && !json_is_integer(since))
		return error_text(error_out, "\"since\" is to be a number: \"next\" of the last "
					     "answer; -1: from now on");
	count = peers_of(worker, name, (uint32_t)json_integer_value(id), &peer, names,
			 sizeof(names));
	if (count > 1)
		return error_text(error_out, "which \"peer\"? There are %s", names);
	/* One that has ended may have left something to be told. */
	trace = count == 1 ? trace_find(traces, peer, (uint32_t)json_integer_value(id))
			   : trace_named(traces, name, (uint32_t)json_integer_value(id));
	if (trace == NULL && count == 0)
		return error_text(error_out, "there is no channel %lld%s%s",
				  (long long)json_integer_value(id), name != NULL ? " to " : "",
				  name != NULL ? name : "");
	if (trace == NULL) {
		if (json_integer_value(every) == 0)
			return error_text(error_out, "channel %s is not traced", names);
		if (traces->count >= MRCD_TRACES_MAX)
			return error_text(error_out, "%u channels are traced, no more can be",
					  traces->count);
		channel_find(peer, (uint32_t)json_integer_value(id), &info);
		trace = trace_begin(traces, peer, &info);
		if (trace == NULL)
			return error_text(error_out, "the daemon is out of memory");
	}
	is_there = channel_find(trace->peer, trace->channel, &info) &&
		   strcmp(info.state, "ended") != 0;
	if (is_there) {
		trace->cookie = info.cookie; /* an incoming one has none before it is accepted */
		trace->untraced = info.untraced - trace->untraced_before;
	}
	/* Answers first: the end takes all with it. */
	if (json_integer_value(every) > 0)
		trace->every = (uint32_t)json_integer_value(every);
	result = answer(trace, since != NULL ? json_integer_value(since) : 0, !is_there);
	if (json_integer_value(every) == 0) {
		json_object_set_new(result, "every", json_integer(0));
		trace_end(traces, trace);
		return result;
	}
	if (is_there)
		trace->until_ns = worker->now_ns + MRCD_TRACE_LEASE_NS;
	if (is_there && worker->clients != NULL)
		mrcd_client_side_trace(worker->clients, trace->cookie, trace->every);
	on_timer(-1, 0, traces);
	return result;
}
