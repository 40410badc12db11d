/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl_events_show - how far who follows has come, and events as lines */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "mrcctl_events.h"
#include "mrcctl_field.h"

#define S_NS UINT64_C(1000000000)

json_t *mrcctl_events_question(const struct mrcctl_events_place *place)
{
	return json_pack("{s:s s:I}", "command", "events", "since", (json_int_t)place->since);
}

/* ---- following ---- */

static bool event_is_whole(const json_t *event)
{
	return json_is_integer(json_object_get(event, "wall_ns")) &&
	       json_is_string(json_object_get(event, "kind")) &&
	       json_is_string(json_object_get(event, "text"));
}

int mrcctl_events_advance(struct mrcctl_events_place *place, const json_t *result,
			  struct mrcctl_events_news *news_out)
{
	const json_t *events = json_object_get(result, "events"), *event;
	const json_t *next = json_object_get(result, "next");
	const json_t *count = json_object_get(result, "count");
	const char *boot_id = mrcctl_text(result, "boot_id");
	uint64_t log = mrcctl_number(result, "log");
	size_t i;

	if (!json_is_array(events) || !json_is_integer(next) || !json_is_integer(count) ||
	    boot_id[0] == '\0' || strlen(boot_id) >= sizeof(place->boot_id))
		return -EBADMSG;
	json_array_foreach(events, i, event)
	{
		if (!event_is_whole(event))
			return -EBADMSG;
	}
	*news_out = (struct mrcctl_events_news){0};
	if (place->boot_id[0] != '\0' &&
	    (strcmp(place->boot_id, boot_id) != 0 || place->log != log)) {
		*place = (struct mrcctl_events_place){0};
		return 1;
	}
	snprintf(place->boot_id, sizeof(place->boot_id), "%s", boot_id);
	place->log = log;
	place->since = (uint64_t)json_integer_value(next);
	news_out->events = events;
	news_out->missed = mrcctl_number(result, "missed");
	return place->since < (uint64_t)json_integer_value(count);
}

/* ---- words ---- */

const char *mrcctl_events_missed_text(uint64_t missed, char text[MRCCTL_EVENTS_MISSED_BYTES])
{
	snprintf(text, MRCCTL_EVENTS_MISSED_BYTES, "%" PRIu64 " older event%s no longer kept",
		 missed, missed == 1 ? " is" : "s are");
	return text;
}

enum mrcctl_mood mrcctl_events_mood(const json_t *event)
{
	static const struct {
		const char *kind;
		enum mrcctl_mood mood;
	} moods[] = {
		{"carrier-lost", MRCCTL_BAD},      {"carrier-back", MRCCTL_WELL},
		{"peer-lost", MRCCTL_BAD},         {"peer-connected", MRCCTL_WELL},
		{"peer-silent", MRCCTL_BAD},       {"peer-heard", MRCCTL_WELL},
		{"peer-restarted", MRCCTL_BAD},    {"health-good", MRCCTL_WELL},
		{"health-degraded", MRCCTL_WORRY}, {"health-failing", MRCCTL_BAD},
		{"drained", MRCCTL_WORRY},         {"undrained", MRCCTL_WORRY},
	};
	const char *kind = mrcctl_text(event, "kind"), *state = mrcctl_text(event, "state");

	if (strcmp(kind, "path") == 0 && state[0] != '\0')
		return strcmp(state, "GOOD") == 0     ? MRCCTL_WELL
		       : strcmp(state, "DENIED") == 0 ? MRCCTL_PLAIN
						      : MRCCTL_BAD;
	for (size_t i = 0; i < sizeof(moods) / sizeof(moods[0]); i++) {
		if (strcmp(kind, moods[i].kind) == 0)
			return moods[i].mood;
	}
	return MRCCTL_PLAIN;
}

/* ---- printing ---- */

static void put(enum mrcctl_mood mood, bool has_colour, const char *text, FILE *out)
{
	const char *code = has_colour ? mrcctl_table_mood_code(mood) : "";

	fprintf(out, "%s%s%s", code, text, code[0] != '\0' ? "\033[0m" : "");
}

static void event_print(const json_t *event, bool is_json, bool has_colour, FILE *out)
{
	uint64_t wall_ns = mrcctl_number(event, "wall_ns");
	char date[64], when[96];
	struct tm tm;
	time_t seconds;

	if (is_json) {
		json_dumpf(event, out, JSON_COMPACT);
		fputc('\n', out);
		return;
	}
	seconds = (time_t)(wall_ns / S_NS);
	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(when, sizeof(when), "%s.%03" PRIu64 "  ", date, wall_ns % S_NS / 1000000);
	put(MRCCTL_FAINT, has_colour, when, out);
	put(mrcctl_events_mood(event), has_colour, mrcctl_text(event, "text"), out);
	fputc('\n', out);
}

/* What is lost is said where it would stand. */
static void missed_print(uint64_t missed, bool is_json, bool has_colour, FILE *out)
{
	char text[MRCCTL_EVENTS_MISSED_BYTES];

	if (is_json) {
		fprintf(out, "{\"missed\":%" PRIu64 "}\n", missed);
		return;
	}
	put(MRCCTL_FAINT, has_colour, mrcctl_events_missed_text(missed, text), out);
	fputc('\n', out);
}

int mrcctl_events_take(struct mrcctl_events_place *place, const json_t *result, bool is_json,
		       bool has_colour, FILE *out)
{
	struct mrcctl_events_news news;
	int r = mrcctl_events_advance(place, result, &news);
	const json_t *event;
	size_t i;

	if (r < 0)
		return r;
	if (news.missed > 0)
		missed_print(news.missed, is_json, has_colour, out);
	json_array_foreach(news.events, i, event) event_print(event, is_json, has_colour, out);
	return r;
}
