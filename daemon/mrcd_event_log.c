/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_event_log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrc_conn.h"
#include "mrcd_span.h"

static_assert((MRCD_EVENTS_KEPT & (MRCD_EVENTS_KEPT - 1)) == 0, "a mask picks the place");

struct mrcd_event_log {
	uint64_t id;                              /* when it was made: no other has it */
	uint64_t count;                           /* of all there were: the last one's number */
	struct mrcd_event kept[MRCD_EVENTS_KEPT]; /* by number & (MRCD_EVENTS_KEPT - 1) */
};

static const char *const kind_names[MRCD_EVENT_KIND_COUNT] = {
#define NAME(id, name) [MRCD_EVENT_##id] = (name),
	MRCD_EVENT_KINDS(NAME)
#undef NAME
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

int mrcd_event_log_new(struct mrcd_event_log **log_out)
{
	struct mrcd_event_log *log = calloc(1, sizeof(*log));

	if (log == NULL)
		return -ENOMEM;
	log->id = clock_ns(CLOCK_MONOTONIC);
	*log_out = log;
	return 0;
}

void mrcd_event_log_free(struct mrcd_event_log *log)
{
	free(log);
}

void mrcd_event_log_add(struct mrcd_event_log *log, const struct mrcd_event *event)
{
	uint64_t seq = ++log->count;
	struct mrcd_event *kept = &log->kept[seq & (MRCD_EVENTS_KEPT - 1)];

	MRC_ASSERT(event->kind < MRCD_EVENT_KIND_COUNT);
	*kept = *event;
	kept->seq = seq;
	kept->at_ns = clock_ns(CLOCK_MONOTONIC);
	kept->wall_ns = clock_ns(CLOCK_REALTIME);
}

uint64_t mrcd_event_log_count(const struct mrcd_event_log *log)
{
	return log->count;
}

uint64_t mrcd_event_log_dropped(const struct mrcd_event_log *log)
{
	return log->count > MRCD_EVENTS_KEPT ? log->count - MRCD_EVENTS_KEPT : 0;
}

/* ---- for people ---- */

static void path_text(const struct mrcd_event *event, char *text, size_t text_bytes)
{
	char span[MRCD_SPAN_BYTES], how[96] = "", moved[48] = "";

	if (event->state == MRC_PATH_GOOD && event->away_ns > 0)
		snprintf(how, sizeof(how), ", after %s", mrcd_span_text(event->away_ns, span));
	else if (event->state != MRC_PATH_GOOD && event->late_ns > 0)
		snprintf(how, sizeof(how), ": %s, not answered for %s",
			 mrc_path_reason_name(event->reason), mrcd_span_text(event->late_ns, span));
	else if (event->state != MRC_PATH_GOOD)
		snprintf(how, sizeof(how), ": %s", mrc_path_reason_name(event->reason));
	if (event->moved_count > 0)
		snprintf(moved, sizeof(moved), ", %u fragment%s moved", event->moved_count,
			 event->moved_count == 1 ? "" : "s");
	snprintf(text, text_bytes, "rail %s to %s: %s, was %s%s%s, %u path%s good", event->rail,
		 event->peer, mrc_path_state_name(event->state),
		 mrc_path_state_name(event->state_old), how, moved, event->paths_good,
		 event->paths_good == 1 ? "" : "s");
}

const char *mrcd_event_text(const struct mrcd_event *event, char text[MRCD_EVENT_TEXT_BYTES])
{
	static const struct {
		const char *of, *what;
	} words[MRCD_EVENT_KIND_COUNT] = {
		[MRCD_EVENT_STARTED] = {"mrcd", "started"},
		[MRCD_EVENT_RELOADED] = {"mrcd", "configuration read again"},
		[MRCD_EVENT_RAIL_ADDED] = {"rail", "added"},
		[MRCD_EVENT_RAIL_REMOVED] = {"rail", "removed"},
		[MRCD_EVENT_RAIL_RENEWED] = {"rail", "closed and opened anew"},
		[MRCD_EVENT_PEER_REMOVED] = {"peer", "removed"},
		[MRCD_EVENT_PATH] = {"", ""},
		[MRCD_EVENT_CARRIER_LOST] = {"rail", "carrier lost"},
		[MRCD_EVENT_CARRIER_BACK] = {"rail", "carrier is back"},
		[MRCD_EVENT_DRAINED] = {"rail", "drained by the operator"},
		[MRCD_EVENT_UNDRAINED] = {"rail", "given back by the operator"},
		[MRCD_EVENT_DRILL_BEGIN] = {"rail", "a drill begins"},
		[MRCD_EVENT_DRILL_END] = {"rail", "a drill ends"},
		[MRCD_EVENT_HEALTH_GOOD] = {"rail", "good again"},
		[MRCD_EVENT_HEALTH_DEGRADED] = {"rail", "degraded"},
		[MRCD_EVENT_HEALTH_FAILING] = {"rail", "failing"},
		[MRCD_EVENT_PEER_CONNECTED] = {"peer", "connected"},
		[MRCD_EVENT_PEER_LOST] = {"peer", "no good path is left"},
		[MRCD_EVENT_PEER_SILENT] = {"peer", "silent on all paths"},
		[MRCD_EVENT_PEER_HEARD] = {"peer", "heard again"},
		[MRCD_EVENT_PEER_RESTARTED] = {"peer", "its daemon restarted or forgot us"},
		[MRCD_EVENT_HOST_DRAIN] = {"mrcd", "this host is being drained"},
		[MRCD_EVENT_HOST_UNDRAIN] = {"mrcd", "this host is no longer being drained"},
		[MRCD_EVENT_PEER_DRAIN] = {"peer", "is being drained"},
		[MRCD_EVENT_PEER_UNDRAIN] = {"peer", "is no longer being drained"},
	};
	const char *name = event->rail[0] != '\0' ? event->rail : event->peer;
	const char *to = event->rail[0] != '\0' ? event->peer : "";

	if (event->kind == MRCD_EVENT_PATH)
		path_text(event, text, MRCD_EVENT_TEXT_BYTES);
	else
		snprintf(text, MRCD_EVENT_TEXT_BYTES, "%s%s%s%s%s: %s%s%s", words[event->kind].of,
			 name[0] != '\0' ? " " : "", name, to[0] != '\0' ? " to " : "", to,
			 words[event->kind].what, event->note[0] != '\0' ? ", " : "", event->note);
	return text;
}

/* ---- for programs ---- */

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *event_json(const struct mrcd_event *event)
{
	char text[MRCD_EVENT_TEXT_BYTES];
	json_t *object =
		json_pack("{s:I s:I s:I s:s s:s}", "seq", (json_int_t)event->seq, "at_ns",
			  (json_int_t)event->at_ns, "wall_ns", (json_int_t)event->wall_ns, "kind",
			  kind_names[event->kind], "text", mrcd_event_text(event, text));

	if (event->rail[0] != '\0')
		json_object_set_new(object, "rail", json_string(event->rail));
	if (event->peer[0] != '\0')
		json_object_set_new(object, "peer", json_string(event->peer));
	if (event->note[0] != '\0')
		json_object_set_new(object, "note", json_string(event->note));
	if (event->kind != MRCD_EVENT_PATH)
		return object;
	set(object, "path", event->path_index);
	json_object_set_new(object, "state", json_string(mrc_path_state_name(event->state)));
	json_object_set_new(object, "state_old",
			    json_string(mrc_path_state_name(event->state_old)));
	json_object_set_new(object, "reason", json_string(mrc_path_reason_name(event->reason)));
	set(object, "epoch", event->path_epoch);
	set(object, "moved", event->moved_count);
	set(object, "paths_good", event->paths_good);
	set(object, "silent_ns", event->silent_ns);
	set(object, "late_ns", event->late_ns);
	set(object, "away_ns", event->away_ns);
	return object;
}

json_t *mrcd_event_log_json(const struct mrcd_event_log *log, uint64_t since)
{
	uint64_t dropped = mrcd_event_log_dropped(log), missed, next;
	json_t *events = json_array();

	if (since > log->count)
		since = 0;
	missed = dropped > since ? dropped - since : 0;
	next = since + missed;
	while (next < log->count && json_array_size(events) < MRCD_EVENTS_TOLD_MAX) {
		next++;
		json_array_append_new(events,
				      event_json(&log->kept[next & (MRCD_EVENTS_KEPT - 1)]));
	}
	return json_pack("{s:I s:o s:I s:I s:I s:I}", "log", (json_int_t)log->id, "events", events,
			 "next", (json_int_t)next, "missed", (json_int_t)missed, "count",
			 (json_int_t)log->count, "dropped", (json_int_t)dropped);
}
