/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_words - the words of a line, numbers with units, names out of tables */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

bool sc_words_split(struct sc_words *words, const char *line)
{
	char *save = NULL;

	words->count = 0;
	words->at = 0;
	if (strlen(line) >= sizeof(words->buf))
		return false;
	snprintf(words->buf, sizeof(words->buf), "%s", line);
	for (char *word = strtok_r(words->buf, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		if (word[0] == '#')
			break;
		if (words->count == SC_WORDS_MAX)
			return false;
		words->w[words->count++] = word;
	}
	return true;
}

const char *sc_peek(const struct sc_words *words)
{
	return words->at < words->count ? words->w[words->at] : "";
}

const char *sc_take(struct sc_words *words)
{
	return words->at < words->count ? words->w[words->at++] : "";
}

bool sc_took(struct sc_words *words, const char *word)
{
	if (strcmp(sc_peek(words), word) != 0)
		return false;
	words->at++;
	return true;
}

static const struct sc_unit {
	enum sc_value of;
	const char *name;
	uint64_t factor;
} units[] = {
	{SC_TIME, "ns", 1},
	{SC_TIME, "us", MRC_US},
	{SC_TIME, "ms", MRC_MS},
	{SC_TIME, "s", MRC_S},
	{SC_BYTES, "B", 1},
	{SC_BYTES, "KiB", 1 << 10},
	{SC_BYTES, "MiB", 1 << 20},
	{SC_RATE, "mbps", 1000000 / 8},
	{SC_RATE, "gbps", 1000000000 / 8},
	{SC_SHARE, "%", 10},
	{SC_COUNT, "", 1},
};

const char *sc_unit_help(enum sc_value unit)
{
	switch (unit) {
	case SC_TIME:
		return "a whole number with ns, us, ms or s";
	case SC_BYTES:
		return "a whole number with B, KiB or MiB";
	case SC_RATE:
		return "a whole number with mbps or gbps";
	case SC_SHARE:
		return "a whole number with %";
	default:
		return "a whole number";
	}
}

bool sc_number(const char *word, enum sc_value unit, uint64_t *value_out)
{
	uint64_t value;
	char *end;

	if (!isdigit((unsigned char)word[0]))
		return false;
	errno = 0;
	value = strtoull(word, &end, 10);
	if (errno)
		return false;
	for (size_t i = 0; i < MRC_ARRAY_LEN(units); i++) {
		if (units[i].of != unit || strcmp(units[i].name, end) != 0)
			continue;
		return !__builtin_mul_overflow(value, units[i].factor, value_out);
	}
	return false;
}

void sc_number_print(enum sc_value unit, uint64_t value, char *out, size_t out_len)
{
	const struct sc_unit *best = NULL;

	for (size_t i = 0; i < MRC_ARRAY_LEN(units); i++) {
		if (units[i].of == unit && (!best || value >= units[i].factor))
			best = &units[i];
	}
	if (best->factor == 1 || value % best->factor == 0)
		snprintf(out, out_len, "%llu%s", (unsigned long long)(value / best->factor),
			 best->name);
	else
		snprintf(out, out_len, "%.3f%s", (double)value / (double)best->factor, best->name);
}

uint32_t sc_find(const char *const *names, uint32_t count, const char *word)
{
	for (uint32_t i = 0; i < count; i++) {
		if (names[i] && !strcmp(names[i], word))
			return i;
	}
	return SC_NONE;
}

void sc_list(const char *const *names, uint32_t count, char *out, size_t out_len)
{
	size_t len = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (names[i] && len < out_len)
			len += (size_t)snprintf(out + len, out_len - len, "%s%s", len ? ", " : "",
						names[i]);
	}
}
