/* SPDX-License-Identifier: BSD-2-Clause */
/* What the command line of mrc-perf means, and what it says of a wrong one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <mrc/client.h>

#include "mrc_perf_options.h"

#define WORDS_MAX 10
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

static int parse(const char *const *words, struct perf_options *options, char *error)
{
	char storage[WORDS_MAX + 1][128], *argv[WORDS_MAX + 2] = {0};
	int argc = 0;

	argv[argc++] = strcpy(storage[WORDS_MAX], "mrc-perf");
	for (int i = 0; i < WORDS_MAX && words[i]; i++)
		argv[argc++] = strcpy(storage[i], words[i]);
	error[0] = '\0';
	return perf_options_parse(argc, argv, options, error);
}

static void options_have_the_defaults_of_their_mode(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		enum perf_mode mode;
		uint64_t size_bytes;
		uint32_t in_flight;
		uint64_t duration_ns;
		uint64_t interval_ns;
	} rows[] = {
		{{"serve"}, PERF_MODE_SERVE, 1 << 20, 16, 10000000000, 0},
		{{"bw", "b"}, PERF_MODE_BW, 1 << 20, 16, 10000000000, 1000000000},
		{{"rate", "b"}, PERF_MODE_RATE, 64, 256, 10000000000, 1000000000},
		{{"lat", "b"}, PERF_MODE_LAT, 8, 1, 10000000000, 1000000000},
		{{"stream", "b"}, PERF_MODE_STREAM, 1 << 20, 16, 10000000000, 1000000000},
		{{"bw", "b", "--count", "5"}, PERF_MODE_BW, 1 << 20, 16, 0, 1000000000},
		{{"bw", "b", "--count", "5", "--duration", "1s"},
		 PERF_MODE_BW,
		 1 << 20,
		 16,
		 1000000000,
		 1000000000},
		{{"--interval", "500ms", "serve"},
		 PERF_MODE_SERVE,
		 1 << 20,
		 16,
		 10000000000,
		 500000000},
	};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(parse(rows[i].words, &options, error), 0);
		assert_int_equal(options.mode, rows[i].mode);
		assert_int_equal(options.size_bytes, rows[i].size_bytes);
		assert_int_equal(options.in_flight, rows[i].in_flight);
		assert_int_equal(options.duration_ns, rows[i].duration_ns);
		assert_int_equal(options.interval_ns, rows[i].interval_ns);
		assert_int_equal(options.channels, 1);
		assert_int_equal(options.level, MRC_LEVEL_PLACED);
	}
}

static void options_name_their_target(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		const char *target;
	} rows[] = {
		{{"bw", "b"}, "b/perf"},
		{{"bw", "b/other"}, "b/other"},
		{{"bw", "b", "--service", "x"}, "b/x"},
		{{"--service=x", "bw", "localhost"}, "localhost/x"},
	};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(parse(rows[i].words, &options, error), 0);
		assert_string_equal(options.target, rows[i].target);
	}
}

static void options_set_what_they_say(void **state)
{
	static const char *const words[WORDS_MAX] = {"stream",         "b",      "--verify",
						     "--unordered",    "--json", "--level=visible",
						     "--pace=1.5Gb/s", "--once"};
	static const char *const more[WORDS_MAX] = {"bw",
						    "b",
						    "--size=64KiB",
						    "--in-flight=7",
						    "--channels=3",
						    "--socket=/x/s",
						    "--control=none",
						    "--quiet",
						    "--integrity=off"};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	assert_int_equal(parse(words, &options, error), 0);
	assert_true(options.is_verify);
	assert_true(options.is_unordered);
	assert_true(options.is_json);
	assert_true(options.is_once);
	assert_int_equal(options.level, MRC_LEVEL_VISIBLE);
	assert_int_equal(options.pace_bits_per_s, 1500000000);
	assert_int_equal(parse(more, &options, error), 0);
	assert_false(options.is_unordered);
	assert_true(options.is_unchecked);
	assert_int_equal(options.size_bytes, 65536);
	assert_int_equal(options.in_flight, 7);
	assert_int_equal(options.channels, 3);
	assert_string_equal(options.socket_path, "/x/s");
	assert_string_equal(options.control_path, "none");
	assert_true(options.is_quiet);
	assert_false(options.is_verify);
}

static void options_of_gap_ask_for_all_moments(void **state)
{
	static const char *const words[WORDS_MAX] = {"gap", "b"};
	static const char *const more[WORDS_MAX] = {"gap",         "b",
						    "--every=5",   "--picture=gap.svg",
						    "--count=9",   "--verify",
						    "--pace=1Mb/s"};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	assert_int_equal(parse(words, &options, error), 0);
	assert_int_equal(options.mode, PERF_MODE_GAP);
	assert_int_equal(options.level, MRC_LEVEL_COMMITTED);
	assert_true(options.is_verify);
	assert_int_equal(options.size_bytes, 1 << 20);
	assert_int_equal(options.in_flight, 16);
	assert_int_equal(options.every, 1);
	assert_null(options.picture);
	assert_int_equal(parse(more, &options, error), 0);
	assert_int_equal(options.every, 5);
	assert_string_equal(options.picture, "gap.svg");
	assert_int_equal(options.count, 9);
}

static void options_say_what_is_allowed(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		const char *error; /* part of it */
	} rows[] = {
		{{NULL}, "a mode is missing"},
		{{"fast", "b"}, "serve, bw, rate, lat, stream or gap"},
		{{"bw"}, "bw wants one HOST"},
		{{"bw", "b", "c"}, "bw wants one HOST"},
		{{"serve", "b"}, "serve takes no host"},
		{{"bw", ""}, "HOST or HOST/SERVICE"},
		{{"bw", "/perf"}, "HOST or HOST/SERVICE"},
		{{"bw", "b/"}, "HOST or HOST/SERVICE"},
		{{"bw", "b/c/d"}, "HOST or HOST/SERVICE"},
		{{"bw", "b/c", "--service", "d"}, "twice"},
		{{"bw", "b", "--service", "d/e"}, "'d/e': allowed is a name of 1 to 63"},
		{{"serve", "--service", "a b"}, "'a b': allowed is a name of 1 to 63"},
		{{"serve", "--service", ""}, "'': allowed is a name of 1 to 63"},
		{{"serve", "--service", "t\xc3\xa9"}, "a-z A-Z 0-9 . _ -"},
		{{"bw", "a b"}, "HOST or HOST/SERVICE"},
		{{"bw", "b/tea time"}, "HOST or HOST/SERVICE"},
		{{"bw", "b:7471"}, "HOST or HOST/SERVICE"},
		{{"bw", "b", "--size"}, "--size wants an argument"},
		{{"bw", "b", "--size", "big"}, "64KiB"},
		{{"bw", "b", "--size", "-1"}, "64KiB"},
		{{"bw", "b", "--size", "1.5"}, "64KiB"},
		{{"bw", "b", "--size", "2048GiB"}, "1024GiB"},
		{{"bw", "b", "--duration", "10"}, "500ms"},
		{{"bw", "b", "--duration", "10 s"}, "500ms"},
		{{"bw", "b", "--interval", "1ms"}, "10ms to 3600s"},
		{{"bw", "b", "--stalls", "99us"}, "100us to 3600s"},
		{{"serve", "--stalls", "5ms"}, "no meaning with serve"},
		{{"bw", "b", "--level", "done"}, "placed, visible or committed"},
		{{"bw", "b", "--integrity", "none"}, "--integrity 'none': allowed is on or off"},
		{{"serve", "--integrity", "off"}, "--integrity"},
		{{"bw", "b", "--in-flight", "0"}, "1 to 32768"},
		{{"bw", "b", "--in-flight", "32769"}, "1 to 32768"},
		{{"bw", "b", "--channels", "1025"}, "1 to 1024"},
		{{"bw", "b", "--count", "0"}, "allowed is 1"},
		{{"bw", "b", "--count", "18446744073709551616"}, "allowed is 1"},
		{{"bw", "b", "--pace", "1GB/s"}, "500Mb/s"},
		{{"bw", "b", "--pace", "999b/s"}, "1kb/s"},
		{{"rate", "b", "--pace", "1Gb/s", "--size", "0"}, "no rate"},
		{{"lat", "b", "--in-flight", "4"}, "--in-flight has no meaning with lat"},
		{{"lat", "b", "--pace", "1Gb/s"}, "--pace has no meaning with lat"},
		{{"bw", "b", "--once"}, "--once has no meaning with bw"},
		{{"serve", "--verify"}, "--verify has no meaning with serve"},
		{{"bw", "b", "--nonsense"}, "no such option"},
		{{"bw", "b", "--socket", ""}, "1 to 107"},
		{{"gap"}, "gap wants one HOST"},
		{{"gap", "b", "--level", "placed"}, "--level has no meaning with gap"},
		{{"gap", "b", "--channels", "2"}, "--channels has no meaning with gap"},
		{{"gap", "b", "--control", "none"}, "the daemon has to be asked"},
		{{"gap", "b", "--every", "0"}, "1 to 1000000000"},
		{{"gap", "b", "--picture", "gap.pdf"}, ".png or .svg"},
		{{"gap", "b", "--picture", ".svg"}, ".png or .svg"},
		{{"gap", "b", "--picture", "a\nb.svg"}, ".png or .svg"},
		{{"stream", "b", "--picture", "gap.png"}, "--picture has no meaning with stream"},
		{{"stream", "b", "--every", "5"}, "--every has no meaning with stream"},
	};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(parse(rows[i].words, &options, error), -EINVAL);
		if (!strstr(error, rows[i].error))
			fail_msg("row %zu: '%s' does not say '%s'", i, error, rows[i].error);
	}
}

static void options_help_wins_over_what_follows(void **state)
{
	static const char *const help[WORDS_MAX] = {"--help", "--nonsense"};
	static const char *const version[WORDS_MAX] = {"bw", "--version"};
	struct perf_options options;
	char error[PERF_ERROR_BYTES];

	assert_int_equal(parse(help, &options, error), 0);
	assert_true(options.is_help);
	assert_int_equal(parse(version, &options, error), 0);
	assert_true(options.is_version);
}

static void quantities_have_units(void **state)
{
	static const struct {
		int (*parse)(const char *text, uint64_t *out);
		const char *text;
		int want;
		uint64_t value;
	} rows[] = {
		{perf_size_parse, "0", 0, 0},
		{perf_size_parse, "64", 0, 64},
		{perf_size_parse, "64B", 0, 64},
		{perf_size_parse, "64KiB", 0, 65536},
		{perf_size_parse, "64K", 0, 65536},
		{perf_size_parse, "64kB", 0, 64000},
		{perf_size_parse, "1.5MiB", 0, 1572864},
		{perf_size_parse, "1GiB", 0, 1 << 30},
		{perf_size_parse, "18446744073709551615", 0, UINT64_MAX},
		{perf_size_parse, "18446744073709551616", -ERANGE, 0},
		{perf_size_parse, "17179869184GiB", -ERANGE, 0},
		{perf_size_parse, "0.3", -EINVAL, 0},
		{perf_size_parse, "1.", -EINVAL, 0},
		{perf_size_parse, ".5KiB", -EINVAL, 0},
		{perf_size_parse, "", -EINVAL, 0},
		{perf_size_parse, "64 KiB", -EINVAL, 0},
		{perf_size_parse, "64kib", -EINVAL, 0},
		{perf_duration_parse, "0", 0, 0},
		{perf_duration_parse, "10", -EINVAL, 0},
		{perf_duration_parse, "10s", 0, 10000000000},
		{perf_duration_parse, "500ms", 0, 500000000},
		{perf_duration_parse, "0.5s", 0, 500000000},
		{perf_duration_parse, "50us", 0, 50000},
		{perf_duration_parse, "7ns", 0, 7},
		{perf_duration_parse, "0.5ns", -EINVAL, 0},
		{perf_duration_parse, "2min", 0, 120000000000},
		{perf_duration_parse, "1h", 0, 3600000000000},
		{perf_rate_parse, "1Gb/s", 0, 1000000000},
		{perf_rate_parse, "0.25Gb/s", 0, 250000000},
		{perf_rate_parse, "500Mb/s", 0, 500000000},
		{perf_rate_parse, "1Gbps", -EINVAL, 0},
		{perf_rate_parse, "1", -EINVAL, 0},
	};
	uint64_t value;

	for (size_t i = 0; i < COUNT(rows); i++) {
		value = 0;
		if (rows[i].parse(rows[i].text, &value) != rows[i].want || value != rows[i].value)
			fail_msg("'%s' came out as %llu", rows[i].text, (unsigned long long)value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_have_the_defaults_of_their_mode),
		cmocka_unit_test(options_name_their_target),
		cmocka_unit_test(options_set_what_they_say),
		cmocka_unit_test(options_of_gap_ask_for_all_moments),
		cmocka_unit_test(options_say_what_is_allowed),
		cmocka_unit_test(options_help_wins_over_what_follows),
		cmocka_unit_test(quantities_have_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
