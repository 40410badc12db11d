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

/* Digits, at most nine of them; *end_out: what follows. */
static bool mrcctl_drill_digits(const char *text, uint64_t *number_out, const char **end_out)
{
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > 9)
		return false;
	*number_out = strtoull(text, NULL, 10);
	*end_out = text + len;
	return true;
}

/* "2s", "1.5s", "500ms", "1min" */
static int mrcctl_drill_duration(const char *text, uint64_t *ns_out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ms", 1000000ULL}, {"s", 1000000000ULL}, {"min", 60000000000ULL}};
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
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(at, units[i].name) != 0)
			continue;
		*ns_out = whole * units[i].ns + part * (units[i].ns / scale);
		return *ns_out < DURATION_NS_MIN || *ns_out > DURATION_NS_MAX ? -EINVAL : 0;
	}
	return -EINVAL;
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
