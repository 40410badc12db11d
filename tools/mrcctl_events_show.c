/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl_events_show - events as lines */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "mrcctl_events.h"

#define S_NS UINT64_C(1000000000)

enum colour { PLAIN, GOOD, BAD, FAINT };

static void put(enum colour colour, bool has_colour, const char *text, FILE *out)
{
	static const char *const codes[] = {[GOOD] = "32", [BAD] = "31", [FAINT] = "2"};

	if (has_colour && colour != PLAIN)
		fprintf(out, "\033[%sm%s\033[0m", codes[colour], text);
	else
		fputs(text, out);
}

static enum colour colour_of(const json_t *event)
{
	static const char *const bad[] = {"carrier-lost",   "peer-lost",       "peer-silent",
					  "peer-restarted", "health-degraded", "health-failing"};
	static const char *const good[] = {"carrier-back", "peer-connected", "peer-heard",
					   "health-good"};
	const char *kind = json_string_value(json_object_get(event, "kind"));
	const char *state = json_string_value(json_object_get(event, "state"));

	if (strcmp(kind, "path") == 0 && state != NULL)
		return strcmp(state, "GOOD") == 0     ? GOOD
		       : strcmp(state, "DENIED") == 0 ? PLAIN
						      : BAD;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (strcmp(kind, bad[i]) == 0)
			return BAD;
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (strcmp(kind, good[i]) == 0)
			return GOOD;
	}
	return PLAIN;
}

static int event_print(const json_t *event, bool is_json, bool has_colour, FILE *out)
{
	const json_t *wall = json_object_get(event, "wall_ns");
	const char *text = json_string_value(json_object_get(event, "text"));
	uint64_t wall_ns;
	char date[64], when[96];
	struct tm tm;
	time_t seconds;

	if (!json_is_integer(wall) || text == NULL ||
	    json_string_value(json_object_get(event, "kind")) == NULL)
		return -EBADMSG;
	if (is_json) {
		json_dumpf(event, out, JSON_COMPACT);
		fputc('\n', out);
		return 0;
	}
	wall_ns = (uint64_t)json_integer_value(wall);
	seconds = (time_t)(wall_ns / S_NS);
	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(when, sizeof(when), "%s.%03" PRIu64 "  ", date, wall_ns % S_NS / 1000000);
	put(FAINT, has_colour, when, out);
	put(colour_of(event), has_colour, text, out);
	fputc('\n', out);
	return 0;
}

/* What is lost is said where it would stand. */
static void missed_print(uint64_t missed, bool is_json, bool has_colour, FILE *out)
{
	char text[96];

	if (is_json) {
		fprintf(out, "{\"missed\":%" PRIu64 "}\n", missed);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64 " older event%s no longer kept\n", missed,
		 missed == 1 ? " is" : "s are");
	put(FAINT, has_colour, text, out);
}

int mrcctl_events_take(struct mrcctl_events_place *place, const json_t *result, bool is_json,
		       bool has_colour, FILE *out)
{
	const json_t *events = json_object_get(result, "events"), *event;
	const json_t *next = json_object_get(result, "next"),
		     *count = json_object_get(result, "count");
	const char *boot_id = json_string_value(json_object_get(result, "boot_id"));
	uint64_t missed = (uint64_t)json_integer_value(json_object_get(result, "missed"));
	size_t index;

	if (!json_is_array(events) || !json_is_integer(next) || !json_is_integer(count) ||
	    boot_id == NULL || strlen(boot_id) >= sizeof(place->boot_id))
		return -EBADMSG;
	if (place->boot_id[0] != '\0' && strcmp(place->boot_id, boot_id) != 0) {
		place->since = 0;
		place->boot_id[0] = '\0';
		return 1;
	}
	snprintf(place->boot_id, sizeof(place->boot_id), "%s", boot_id);
	if (missed > 0)
		missed_print(missed, is_json, has_colour, out);
	json_array_foreach(events, index, event)
	{
		if (event_print(event, is_json, has_colour, out) < 0)
			return -EBADMSG;
	}
	place->since = (uint64_t)json_integer_value(next);
	return place->since < (uint64_t)json_integer_value(count);
}
