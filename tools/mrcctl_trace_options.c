/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_trace_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MRCCTL_TRACE_EVERY_MAX   1000000000U
#define MRCCTL_TRACE_SECONDS_MAX 86400U

void mrcctl_trace_options_init(struct mrcctl_trace_options *options)
{
	memset(options, 0, sizeof(*options));
	options->every = 100;
	options->count = 1000;
	options->seconds = 10;
}

/* Digits and nothing else. */
static bool mrcctl_trace_number(const char *text, uint64_t min, uint64_t max, uint64_t *number_out)
{
	uint64_t number;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || number < min || number > max)
		return false;
	*number_out = number;
	return true;
}

int mrcctl_trace_target_take(struct mrcctl_trace_options *options, const char *text,
			     char *error_out)
{
	const char *slash = strrchr(text, '/'), *channel = slash != NULL ? slash + 1 : text;
	size_t peer_len = slash != NULL ? (size_t)(slash - text) : 0;

	if ((slash != NULL && peer_len == 0) || peer_len >= sizeof(options->peer) ||
	    !mrcctl_trace_number(channel, 0, INT64_MAX, &options->channel)) {
		snprintf(error_out, MRCCTL_TRACE_ERROR_BYTES,
			 "trace '%.64s': allowed is CHANNEL or PEER/CHANNEL, the number as in "
			 "column ID of mrcctl channels",
			 text);
		return -EINVAL;
	}
	memcpy(options->peer, text, peer_len);
	options->peer[peer_len] = '\0';
	return 0;
}

int mrcctl_trace_option_take(struct mrcctl_trace_options *options, enum mrcctl_trace_option option,
			     const char *text, char *error_out)
{
	const struct {
		const char *name;
		uint64_t max, *number;
	} rows[] = {
		[MRCCTL_TRACE_EVERY] = {"every", MRCCTL_TRACE_EVERY_MAX, &options->every},
		[MRCCTL_TRACE_COUNT] = {"count", MRCCTL_TRACE_COUNT_MAX, &options->count},
		[MRCCTL_TRACE_SECONDS] = {"seconds", MRCCTL_TRACE_SECONDS_MAX, &options->seconds},
	};

	if (!mrcctl_trace_number(text, 1, rows[option].max, rows[option].number)) {
		snprintf(error_out, MRCCTL_TRACE_ERROR_BYTES,
			 "--%s '%.64s': allowed is 1 to %" PRIu64, rows[option].name, text,
			 rows[option].max);
		return -EINVAL;
	}
	options->is_count_given = options->is_count_given || option == MRCCTL_TRACE_COUNT;
	return 0;
}
