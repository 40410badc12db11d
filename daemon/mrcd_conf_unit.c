/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_conf_unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mrc_base.h"

#define DIGITS_MAX 20U /* of UINT64_MAX */

/* Of each unit from the largest down, which is how mrcd_unit_format() looks for the shortest. */
static const struct suffix {
	enum mrcd_unit unit;
	const char *text;
	uint64_t factor;
} suffixes[] = {
	{MRCD_UNIT_COUNT, "", 1},
	{MRCD_UNIT_DURATION, "h", 3600 * MRC_S},
	{MRCD_UNIT_DURATION, "min", 60 * MRC_S},
	{MRCD_UNIT_DURATION, "s", MRC_S},
	{MRCD_UNIT_DURATION, "ms", MRC_MS},
	{MRCD_UNIT_DURATION, "us", MRC_US},
	{MRCD_UNIT_DURATION, "ns", 1},
	{MRCD_UNIT_SIZE, "TiB", 1ULL << 40},
	{MRCD_UNIT_SIZE, "GiB", 1ULL << 30},
	{MRCD_UNIT_SIZE, "MiB", 1ULL << 20},
	{MRCD_UNIT_SIZE, "KiB", 1ULL << 10},
	{MRCD_UNIT_SIZE, "B", 1},
	{MRCD_UNIT_RATE, "Tb/s", 1000000000000ULL},
	{MRCD_UNIT_RATE, "Gb/s", 1000000000ULL},
	{MRCD_UNIT_RATE, "Mb/s", 1000000ULL},
	{MRCD_UNIT_RATE, "kb/s", 1000ULL},
	{MRCD_UNIT_RATE, "bit/s", 1},
};

static const struct {
	const char *name;
	const char *allowed;
} texts[] = {
	[MRCD_UNIT_COUNT] = {"number", "a whole number"},
	[MRCD_UNIT_DURATION] = {"duration", "a number with ns, us, ms, s, min, h, e.g. 10ms"},
	[MRCD_UNIT_SIZE] = {"size", "a number with B, KiB, MiB, GiB, TiB, e.g. 64KiB"},
	[MRCD_UNIT_RATE] = {"rate", "a number with bit/s, kb/s, Mb/s, Gb/s, Tb/s, e.g. 100Gb/s"},
};

/* Appends digits to *number; answers how many there were. */
static size_t digits_take(const char **at, unsigned __int128 *number)
{
	size_t count = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (++count <= DIGITS_MAX)
			*number = *number * 10 + (unsigned)(**at - '0');
	}
	return count;
}

int mrcd_unit_parse(enum mrcd_unit unit, const char *text, uint64_t *value_out)
{
	unsigned __int128 number = 0, scale = 1;
	size_t whole_count, fraction_count = 0;
	const char *at = text;

	whole_count = digits_take(&at, &number);
	if (whole_count == 0 || (whole_count > 1 && text[0] == '0'))
		return -EINVAL; /* 010 is eight to YAML 1.1 and ten to people: to us it is nothing */
	if (whole_count > DIGITS_MAX || number > UINT64_MAX)
		return -ERANGE;
	if (*at == '.' && unit != MRCD_UNIT_COUNT) {
		at++;
		/* 2^64 with six more digits, times the hour's factor, stays below 2^128. */
		fraction_count = digits_take(&at, &number);
		if (fraction_count == 0)
			return -EINVAL;
		if (fraction_count > 6)
			return -EDOM;
		for (size_t i = 0; i < fraction_count; i++)
			scale *= 10;
	}
	if (number == 0 && *at == 0) {
		*value_out = 0;
		return 0;
	}
	if (unit != MRCD_UNIT_COUNT)
		while (*at == ' ')
			at++;
	for (size_t i = 0; i < MRC_ARRAY_LEN(suffixes); i++) {
		unsigned __int128 value;

		if (suffixes[i].unit != unit || strcmp(suffixes[i].text, at) != 0)
			continue;
		value = number * suffixes[i].factor;
		if (value % scale != 0)
			return -EDOM;
		if (value / scale > UINT64_MAX)
			return -ERANGE;
		*value_out = (uint64_t)(value / scale);
		return 0;
	}
	return -EINVAL;
}

const char *mrcd_unit_format(enum mrcd_unit unit, uint64_t value, char out[MRCD_UNIT_TEXT_BYTES])
{
	const struct suffix *best = NULL;

	for (size_t i = 0; i < MRC_ARRAY_LEN(suffixes) && !best; i++)
		if (suffixes[i].unit == unit && value % suffixes[i].factor == 0)
			best = &suffixes[i];
	MRC_ASSERT(best); /* each unit ends with a factor of 1 */
	snprintf(out, MRCD_UNIT_TEXT_BYTES, "%" PRIu64 "%s", value / best->factor,
		 value ? best->text : "");
	return out;
}

const char *mrcd_unit_name(enum mrcd_unit unit)
{
	return texts[unit].name;
}

const char *mrcd_unit_allowed(enum mrcd_unit unit)
{
	return texts[unit].allowed;
}
