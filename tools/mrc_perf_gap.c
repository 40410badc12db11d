/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_gap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GAP_ASK_NS    50000000ULL /* the daemon keeps a few messages only; it forgets us after 5 s */
#define GAP_ANSWER_NS 10000000000ULL
#define GAP_LOOKS     3U /* at the end: a local completion may come after the verdict */

int perf_gap_init(struct perf_gap *gap, const struct perf_options *options)
{
	memset(gap, 0, sizeof(*gap));
	gap->service = options->service;
	gap->every = options->every;
	gap->size_bytes = options->size_bytes;
	gap->pid = getpid();
	mrc_trace_init(&gap->trace, PERF_GAP_MESSAGES_MAX);
	return perf_control_init(&gap->control, options->control_path, options->socket_path);
}

void perf_gap_fini(struct perf_gap *gap)
{
	mrc_trace_fini(&gap->trace);
	perf_control_fini(&gap->control);
}

static void __attribute__((format(printf, 2, 3)))
gap_fail(struct perf_gap *gap, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(gap->error, sizeof(gap->error), format, arguments);
	va_end(arguments);
	gap->state = PERF_GAP_FAILED;
}

void perf_gap_begin(struct perf_gap *gap, uint64_t now_ns)
{
	if (gap->state != PERF_GAP_IDLE)
		return;
	gap->state = PERF_GAP_FINDING;
	gap->ask_ns = now_ns;
}

void perf_gap_end(struct perf_gap *gap, uint64_t now_ns)
{
	if (gap->state == PERF_GAP_IDLE)
		gap->state = PERF_GAP_ENDED;
	if (gap->state != PERF_GAP_FINDING && gap->state != PERF_GAP_STARTING &&
	    gap->state != PERF_GAP_ON)
		return;
	gap->state = gap->state == PERF_GAP_FINDING ? PERF_GAP_ENDED : PERF_GAP_ENDING;
	gap->looks_left = GAP_LOOKS;
	gap->ask_ns = now_ns;
}

static bool gap_is_talking(const struct perf_gap *gap)
{
	return gap->state != PERF_GAP_IDLE && gap->state != PERF_GAP_ENDED &&
	       gap->state != PERF_GAP_FAILED;
}

uint64_t perf_gap_due_ns(const struct perf_gap *gap)
{
	if (!gap_is_talking(gap))
		return UINT64_MAX;
	return gap->control.is_waiting ? gap->deadline_ns : gap->ask_ns;
}

static void gap_ask(struct perf_gap *gap, uint64_t now_ns)
{
	json_t *question =
		gap->state == PERF_GAP_FINDING
			? json_pack("{s:s}", "command", "channels")
			: mrc_trace_question(&gap->trace, gap->peer, gap->channel,
					     gap->state == PERF_GAP_STOPPING ? 0 : gap->every);
	char *line = question ? json_dumps(question, JSON_COMPACT) : NULL;
	size_t len_bytes;
	int r = -ENOMEM;

	json_decref(question);
	if (line) {
		len_bytes = strlen(line);
		line[len_bytes++] = '\n'; /* in place of the 0 */
		r = perf_control_send(&gap->control, line, len_bytes);
		free(line);
	}
	if (r < 0)
		gap_fail(gap, "the daemon's control socket %s cannot be asked: %s",
			 gap->control.path, strerror(-r));
	gap->deadline_ns = now_ns + GAP_ANSWER_NS;
}

/* Our end of our channel: the other end of a channel within this host has another pid. */
static void gap_find(struct perf_gap *gap, const json_t *channels, uint64_t now_ns)
{
	json_t *channel;
	size_t i;

	json_array_foreach(channels, i, channel)
	{
		const char *service = json_string_value(json_object_get(channel, "service"));
		const char *peer = json_string_value(json_object_get(channel, "peer"));

		if (json_integer_value(json_object_get(channel, "pid")) != gap->pid || !peer ||
		    !service || strcmp(service, gap->service) != 0)
			continue;
		snprintf(gap->peer, sizeof(gap->peer), "%s", peer);
		gap->channel = (uint64_t)json_integer_value(json_object_get(channel, "id"));
		gap->state = PERF_GAP_STARTING;
		gap->ask_ns = now_ns;
		return;
	}
	gap_fail(gap,
		 "the daemon at %s shows no channel of ours (pid %lld, service %s): is it the "
		 "one we are attached to?",
		 gap->control.path, (long long)gap->pid, gap->service);
}

/* Of the messages from `from` on, those that carry no data: how the run ends is said in one. */
static void gap_drop_others(struct perf_gap *gap, size_t from)
{
	size_t kept = from;

	for (size_t i = from; i < gap->trace.count; i++) {
		if (gap->trace.messages[i].bytes == gap->size_bytes)
			gap->trace.messages[kept++] = gap->trace.messages[i];
	}
	gap->trace.count = kept;
}

static void gap_take(struct perf_gap *gap, const json_t *result, uint64_t now_ns)
{
	size_t count = gap->trace.count;
	int r = mrc_trace_take(&gap->trace, result);

	gap_drop_others(gap, count);
	if (r < 0) {
		gap_fail(gap, "the daemon's answer to trace is not understood");
		return;
	}
	gap->ask_ns = r > 0 ? now_ns : now_ns + GAP_ASK_NS;
	if (gap->state == PERF_GAP_STARTING)
		gap->state = PERF_GAP_ON;
	if (gap->state == PERF_GAP_ENDING && r == 0 && --gap->looks_left == 0) {
		gap->state = PERF_GAP_STOPPING;
		gap->ask_ns = now_ns;
	}
}

static void gap_answered(struct perf_gap *gap, const char *line, size_t len_bytes, uint64_t now_ns)
{
	json_t *answer = json_loadb(line, len_bytes, 0, NULL);
	const json_t *result = json_object_get(answer, "result");
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!json_is_true(json_object_get(answer, "ok")))
		/* The daemon's own words: that only root may, or that it cannot. */
		gap_fail(gap, "the daemon does not trace for us: %s",
			 error ? error : "it does not say why");
	else if (gap->state == PERF_GAP_FINDING)
		gap_find(gap, result, now_ns);
	else if (gap->state == PERF_GAP_STOPPING)
		gap->state = PERF_GAP_ENDED;
	else if (gap_is_talking(gap))
		gap_take(gap, result, now_ns);
	json_decref(answer);
}

void perf_gap_step(struct perf_gap *gap, uint64_t now_ns)
{
	const char *line;
	size_t len_bytes;
	int r;

	while (gap_is_talking(gap)) {
		if (!gap->control.is_waiting) {
			if (now_ns < gap->ask_ns)
				return;
			gap_ask(gap, now_ns);
			continue;
		}
		r = perf_control_line(&gap->control, &line, &len_bytes);
		if (r > 0)
			gap_answered(gap, line, len_bytes, now_ns);
		else if (r < 0)
			gap_fail(gap, "the daemon's control socket %s: %s", gap->control.path,
				 strerror(-r));
		else if (now_ns >= gap->deadline_ns)
			gap_fail(gap, "the daemon's control socket %s did not answer in time",
				 gap->control.path);
		else
			return;
	}
}
