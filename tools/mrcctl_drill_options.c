/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_NS_MIN 50000000ULL
#define DURATION_NS_MAX 600000000000ULL
#define PACE_MIN        1000ULL
#define PACE_MAX        100000000000000ULL
#define TIMES_MIN       2U
#define TIMES_MAX       1000U

const char *mrcctl_drill_fault_name(enum mrcctl_drill_fault fault)
{
	static const char *const names[] = {"down", "silence", "slow"};

	return names[fault];
}

void mrcctl_drill_options_init(struct mrcctl_drill_options *options)
{
	memset(options, 0, sizeof(*options));
	options->fault = MRCCTL_DRILL_DOWN;
	options->duration_ns = 2000000000ULL;
	options->times = 10;
}

/* Digits, at most 18 of them; *end_out: what follows. */
static bool mrcctl_drill_digits(const char *text, uint64_t *number_out, const char **end_out)
{
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > 18)
		return false;
	*number_out = strtoull(text, NULL, 10);
	*end_out = text + len;
	return true;
}

struct mrcctl_drill_unit {
	const char *name;
	uint64_t factor;
};

/* "1.5s": digits, a point and up to three digits more if wanted, a unit; from min to max of what the units count. */
static int mrcctl_drill_quantity(const char *text, const struct mrcctl_drill_unit *unit,
				 uint64_t min, uint64_t max, uint64_t *number_out)
{
	uint64_t whole, part = 0, scale = 1;
	const char *at, *point;

	if (!mrcctl_drill_digits(text, &whole, &at))
		return -EINVAL;
	point = at;
	if (*at == '.') {
		if (!mrcctl_drill_digits(point + 1, &part, &at) || at - point > 4)
			return -EINVAL;
		for (const char *digit = point + 1; digit < at; digit++)
			scale *= 10;
	}
	while (unit->name != NULL && strcmp(at, unit->name) != 0)
		unit++;
	if (unit->name == NULL || whole > max / unit->factor)
		return -EINVAL;
	*number_out = whole * unit->factor + part * unit->factor / scale;
	return *number_out < min || *number_out > max ? -EINVAL : 0;
}

/* "2s", "1.5s", "500ms", "1min" */
static int mrcctl_drill_duration(const char *text, uint64_t *ns_out)
{
	static const struct mrcctl_drill_unit units[] = {{"ms", 1000000ULL},
							 {"s", 1000000000ULL},
							 {"min", 60000000000ULL},
							 {NULL, 0}};

	return mrcctl_drill_quantity(text, units, DURATION_NS_MIN, DURATION_NS_MAX, ns_out);
}

/* As mrc-perf takes it, which will send the stream. */
static int mrcctl_drill_pace(const char *text)
{
	static const struct mrcctl_drill_unit units[] = {
		{"b/s", 1},           {"kb/s", 1000},          {"Kb/s", 1000}, {"Mb/s", 1000000},
		{"Gb/s", 1000000000}, {"Tb/s", 1000000000000}, {NULL, 0}};
	uint64_t bits_per_s;

	return mrcctl_drill_quantity(text, units, PACE_MIN, PACE_MAX, &bits_per_s);
}

/* "10x" or "10x,5s" */
static int mrcctl_drill_slowness(const char *text, uint64_t *times_out, uint64_t *ns_out)
{
	const char *at;

	if (!mrcctl_drill_digits(text, times_out, &at) || *at != 'x' || *times_out < TIMES_MIN ||
	    *times_out > TIMES_MAX)
		return -EINVAL;
	if (at[1] == '\0')
		return 0;
	return at[1] == ',' ? mrcctl_drill_duration(at + 2, ns_out) : -EINVAL;
}

static int mrcctl_drill_fault_take(struct mrcctl_drill_options *options,
				   enum mrcctl_drill_fault fault, const char *text, char *error_out)
{
	int r = fault == MRCCTL_DRILL_SLOW
			? mrcctl_drill_slowness(text, &options->times, &options->duration_ns)
			: mrcctl_drill_duration(text, &options->duration_ns);

	if (options->is_fault_given)
		snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES,
			 "one of --down, --silence and --slow, not two");
	else if (r < 0 && fault == MRCCTL_DRILL_SLOW)
		snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES,
			 "--slow '%.64s': allowed is 10x or 10x,5s: 2 to 1000 times, 50ms to 10min",
			 text);
	else if (r < 0)
		snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES,
			 "--%s '%.64s': allowed is 50ms to 10min", mrcctl_drill_fault_name(fault),
			 text);
	if (r < 0 || options->is_fault_given)
		return -EINVAL;
	options->is_fault_given = true;
	options->fault = fault;
	return 0;
}

int mrcctl_drill_option_take(struct mrcctl_drill_options *options, enum mrcctl_drill_option option,
			     const char *text, char *error_out)
{
	size_t len;

	switch (option) {
	case MRCCTL_DRILL_OPTION_DOWN:
		return mrcctl_drill_fault_take(options, MRCCTL_DRILL_DOWN, text, error_out);
	case MRCCTL_DRILL_OPTION_SILENCE:
		return mrcctl_drill_fault_take(options, MRCCTL_DRILL_SILENCE, text, error_out);
	case MRCCTL_DRILL_OPTION_SLOW:
		return mrcctl_drill_fault_take(options, MRCCTL_DRILL_SLOW, text, error_out);
	case MRCCTL_DRILL_OPTION_LINK:
		options->is_link = true;
		break;
	case MRCCTL_DRILL_OPTION_ALL:
		options->is_all = true;
		break;
	case MRCCTL_DRILL_OPTION_WATCH:
		options->is_watch = true;
		break;
	case MRCCTL_DRILL_OPTION_SERVE:
		options->is_serve = true;
		break;
	case MRCCTL_DRILL_OPTION_STREAM:
		options->stream = text;
		break;
	case MRCCTL_DRILL_OPTION_PACE:
		/* Else each peer would be asked, and refusing it would pass for an answer. */
		if (mrcctl_drill_pace(text) < 0) {
			snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES,
				 "--pace '%.64s': allowed is 1kb/s to 100Tb/s, as 500Mb/s, 1.5Gb/s",
				 text);
			return -EINVAL;
		}
		options->pace = text;
		break;
	case MRCCTL_DRILL_OPTION_YES:
		options->is_yes = true;
		break;
	case MRCCTL_DRILL_OPTION_PICTURE:
		len = strlen(text);
		if (len < 5 || strcmp(text + len - 4, ".svg") != 0) {
			snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES,
				 "--picture '%.64s': allowed is a file whose name ends in .svg",
				 text);
			return -EINVAL;
		}
		options->picture = text;
		break;
	}
	return 0;
}

int mrcctl_drill_options_check(struct mrcctl_drill_options *options, const char *rail,
			       char *error_out)
{
	const char *what = NULL;
	int ways = (rail != NULL) + options->is_all + options->is_watch + options->is_serve;

	options->rail = rail;
	if (ways == 0)
		what = "drill: which rail? (or --all-in-turn, --watch, --serve)";
	else if (ways > 1)
		what = "drill: one rail, or --all-in-turn, or --watch, or --serve";
	else if (options->is_link && options->fault != MRCCTL_DRILL_DOWN)
		what = "--link takes the link down: it goes with --down only";
	else if ((options->is_watch || options->is_serve) &&
		 (options->is_fault_given || options->is_link))
		what = "--watch and --serve break nothing: no --down, --silence, --slow, --link";
	else if (options->is_serve && (options->stream != NULL || options->picture != NULL))
		what = "--serve is the other end of a stream: no --stream, no --picture";
	else if (options->pace != NULL && options->stream != NULL &&
		 strcmp(options->stream, "none") == 0)
		what = "--pace is that of the test stream, and --stream none wants none";
	if (what == NULL)
		return 0;
	snprintf(error_out, MRCCTL_DRILL_ERROR_BYTES, "%s", what);
	return -EINVAL;
}
