/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_unit.h"

#include <inttypes.h>
#include <stdio.h>

/* Three significant digits of value/unit, cut and not rounded: 999.9 must not read as 1000. */
static void mrcctl_unit_format(uint64_t value, uint64_t unit, const char *name, char *text)
{
	uint64_t whole = value / unit, rest = value % unit;

	if (rest == 0 || whole >= 100)
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 " %s", whole, name);
	else if (whole >= 10)
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 ".%" PRIu64 " %s", whole,
			 rest / (unit / 10 > 0 ? unit / 10 : 1) % 10, name);
	else
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 ".%02" PRIu64 " %s", whole,
			 rest * 100 / unit % 100, name);
}

const char *mrcctl_unit_bytes(uint64_t bytes, char text[MRCCTL_UNIT_BYTES])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	unsigned step = 0;

	while (step < 5 && bytes >> (10 * (step + 1)) > 0)
		step++;
	mrcctl_unit_format(bytes, 1ULL << (10 * step), names[step], text);
	return text;
}

const char *mrcctl_unit_bits_per_s(uint64_t bits_per_s, char text[MRCCTL_UNIT_BYTES])
{
	static const char *const names[] = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"};
	uint64_t unit = 1;
	unsigned step = 0;

	while (step < 4 && bits_per_s / unit >= 1000) {
		unit *= 1000;
		step++;
	}
	mrcctl_unit_format(bits_per_s, unit, names[step], text);
	return text;
}

const char *mrcctl_unit_span(uint64_t ns, char text[MRCCTL_UNIT_BYTES])
{
	uint64_t s = ns / 1000000000U;

	if (ns < 1000U)
		mrcctl_unit_format(ns, 1, "ns", text);
	else if (ns < 1000000U)
		mrcctl_unit_format(ns, 1000U, "us", text);
	else if (ns < 1000000000U)
		mrcctl_unit_format(ns, 1000000U, "ms", text);
	else if (s < 60)
		mrcctl_unit_format(ns, 1000000000U, "s", text);
	else if (s < 3600)
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 "m %02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 "h %02" PRIu64 "m", s / 3600,
			 s % 3600 / 60);
	else
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 "d %02" PRIu64 "h", s / 86400,
			 s % 86400 / 3600);
	return text;
}

const char *mrcctl_unit_span_signed(int64_t ns, char text[MRCCTL_UNIT_BYTES])
{
	char unsigned_text[MRCCTL_UNIT_BYTES];
	uint64_t size_ns = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	snprintf(text, MRCCTL_UNIT_BYTES, "%s%.*s", ns < 0 ? "-" : "", MRCCTL_UNIT_BYTES - 2,
		 mrcctl_unit_span(size_ns, unsigned_text));
	return text;
}

const char *mrcctl_unit_count(uint64_t count, char text[MRCCTL_UNIT_BYTES + 8])
{
	char digits[24];
	int digit_count = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	int at = 0;

	for (int i = 0; i < digit_count; i++) {
		if (i > 0 && (digit_count - i) % 3 == 0)
			text[at++] = ' ';
		text[at++] = digits[i];
	}
	text[at] = '\0';
	return text;
}

const char *mrcctl_unit_part(uint64_t ppm, char text[MRCCTL_UNIT_BYTES])
{
	if (ppm > 0 && ppm < 100)
		snprintf(text, MRCCTL_UNIT_BYTES, "<.01%%");
	else if (ppm > 0 && ppm < 10000)
		snprintf(text, MRCCTL_UNIT_BYTES, "0.%02" PRIu64 "%%", ppm / 100);
	else if (ppm > 0 && ppm < 100000)
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 ".%" PRIu64 "%%", ppm / 10000,
			 ppm / 1000 % 10);
	else
		snprintf(text, MRCCTL_UNIT_BYTES, "%" PRIu64 "%%", ppm / 10000);
	return text;
}
