/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <mrc/client.h>

#include "mrc_perf_verify.h"

#define NAME_LEN_MAX 63U
#define NS_PER_MS    UINT64_C(1000000)
#define NS_PER_S     UINT64_C(1000000000)

#define FOR_SERVE    (1U << PERF_MODE_SERVE)
#define FOR_BW       (1U << PERF_MODE_BW)
#define FOR_RATE     (1U << PERF_MODE_RATE)
#define FOR_LAT      (1U << PERF_MODE_LAT)
#define FOR_STREAM   (1U << PERF_MODE_STREAM)
#define FOR_GAP      (1U << PERF_MODE_GAP)
#define FOR_FLOOD    (FOR_BW | FOR_RATE | FOR_STREAM | FOR_GAP)
#define FOR_SENDER   (FOR_FLOOD | FOR_LAT)
#define FOR_ALL      (FOR_SENDER | FOR_SERVE)

/* name, argument (NULL: none), modes, help. The parser, --help and the check of modes come from here. */
#define PERF_OPTIONS(X)                                                                            \
	X(SERVICE, "service", "NAME", FOR_ALL, "the service to offer or to send to (perf)")        \
	X(SIZE, "size", "SIZE", FOR_SENDER, "of each message (bw, stream 1MiB; rate 64; lat 8)")   \
	X(IN_FLIGHT, "in-flight", "N", FOR_FLOOD, "messages under way per channel (16; rate 256)") \
	X(CHANNELS, "channels", "N", FOR_SENDER & ~FOR_GAP, "channels, served in turn (1)")        \
	X(LEVEL, "level", "LEVEL", FOR_SENDER & ~FOR_GAP, "placed, visible or committed (placed)") \
	X(DURATION, "duration", "TIME", FOR_SENDER,                                                \
	  "how long to send; 0: until interrupted (10s; with --count 0)")                          \
	X(COUNT, "count", "N", FOR_SENDER, "end after so many messages")                           \
	X(INTERVAL, "interval", "TIME", FOR_ALL, "between progress lines (1s; serve: none)")       \
	X(STALLS, "stalls", "TIME", FOR_SENDER, "tell when nothing completed for so long (never)") \
	X(PACE, "pace", "RATE", FOR_FLOOD, "send no faster than this")                             \
	X(VERIFY, "verify", NULL, FOR_SENDER, "check at the far side: once, in order, intact")     \
	X(UNORDERED, "unordered", NULL, FOR_SENDER, "channels that deliver in any order")          \
	X(INTEGRITY, "integrity", "on|off", FOR_SENDER, "off: no checksums of payload (on)")       \
	X(SEED, "seed", "N", FOR_SENDER, "of the pattern that --verify sends (1)")                 \
	X(ONCE, "once", NULL, FOR_STREAM | FOR_SERVE,                                              \
	  "end when a daemon dies, instead of going on")                                           \
	X(CONNECT_TIMEOUT, "connect-timeout", "TIME", FOR_SENDER,                                  \
	  "for the far side to answer (5s)")                                                       \
	X(DRAIN_TIMEOUT, "drain-timeout", "TIME", FOR_SENDER, "for the last answers (10s)")        \
	X(EVERY, "every", "N", FOR_GAP, "trace one message of so many (1)")                        \
	X(PICTURE, "picture", "FILE", FOR_GAP, "draw it, as .png or .svg, with gnuplot")           \
	X(SPIN, "spin", "TIME", FOR_ALL, "look for events this long before sleeping (0)")          \
	X(LANDING, "landing", "SIZE", FOR_ALL,                                                     \
	  "memory for arriving messages (the daemon's default)")                                   \
	X(JSON, "json", NULL, FOR_ALL, "one JSON object on stdout at the end, text on stderr")     \
	X(QUIET, "quiet", NULL, FOR_ALL, "no progress lines")                                      \
	X(SOCKET, "socket", "PATH", FOR_ALL,                                                       \
	  "the daemon's socket ($MRC_SOCKET, /run/mrcd/mrcd.sock)")                                \
	X(CONTROL, "control", "PATH", FOR_SENDER, "its control socket, or none (beside --socket)") \
	X(HELP, "help", NULL, FOR_ALL, "this text")                                                \
	X(VERSION, "version", NULL, FOR_ALL, "the version")

enum option_id {
#define X(id, name, argument, modes, help) OPTION_##id,
	PERF_OPTIONS(X)
#undef X
		OPTION_COUNT_OF
};

struct option_row {
	const char *name;
	const char *argument;
	unsigned modes;
	const char *help;
};

static const struct option_row option_rows[] = {
#define X(id, name, argument, modes, help) {name, argument, modes, help},
	PERF_OPTIONS(X)
#undef X
};

static const char *const mode_names[] = {
	[PERF_MODE_SERVE] = "serve", [PERF_MODE_BW] = "bw",         [PERF_MODE_RATE] = "rate",
	[PERF_MODE_LAT] = "lat",     [PERF_MODE_STREAM] = "stream", [PERF_MODE_GAP] = "gap",
};

#define MODE_COUNT (sizeof(mode_names) / sizeof(mode_names[0]))

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1},           {"B", 1},
	{"kB", 1000},      {"KB", 1000},
	{"MB", 1000000},   {"GB", NS_PER_S},
	{"K", 1ULL << 10}, {"KiB", 1ULL << 10},
	{"M", 1ULL << 20}, {"MiB", 1ULL << 20},
	{"G", 1ULL << 30}, {"GiB", 1ULL << 30},
	{NULL, 0},
};

static const struct unit duration_units[] = {
	{"ns", 1},       {"us", 1000},           {"ms", NS_PER_MS},
	{"s", NS_PER_S}, {"min", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
	{NULL, 0},
};

static const struct unit rate_units[] = {
	{"b/s", 1},           {"kb/s", 1000},          {"Kb/s", 1000}, {"Mb/s", 1000000},
	{"Gb/s", 1000000000}, {"Tb/s", 1000000000000}, {NULL, 0},
};

const char *perf_mode_name(enum perf_mode mode)
{
	return (size_t)mode < MODE_COUNT ? mode_names[mode] : "?";
}

/* DIGITS[.DIGITS]UNIT. A fraction must come out whole in the base unit. */
static int quantity_parse(const char *text, const struct unit *units, uint64_t *value_out)
{
	unsigned __int128 whole = 0, fraction = 0, scale = 1;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		whole = whole * 10 + (unsigned)(*at - '0');
		if (whole > UINT64_MAX)
			return -ERANGE;
	}
	if (at == text)
		return -EINVAL;
	if (*at == '.') {
		const char *first = ++at;

		for (; *at >= '0' && *at <= '9'; at++) {
			if (scale > 100000000000000ULL)
				return -EINVAL;
			fraction = fraction * 10 + (unsigned)(*at - '0');
			scale *= 10;
		}
		if (at == first)
			return -EINVAL;
	}
	for (; units->name; units++) {
		if (strcmp(at, units->name) != 0)
			continue;
		if ((fraction * units->factor) % scale != 0)
			return -EINVAL;
		whole = whole * units->factor + fraction * units->factor / scale;
		if (whole > UINT64_MAX)
			return -ERANGE;
		*value_out = (uint64_t)whole;
		return 0;
	}
	return -EINVAL;
}

int perf_size_parse(const char *text, uint64_t *bytes_out)
{
	return quantity_parse(text, size_units, bytes_out);
}

int perf_duration_parse(const char *text, uint64_t *ns_out)
{
	if (strcmp(text, "0") == 0) {
		*ns_out = 0;
		return 0;
	}
	return quantity_parse(text, duration_units, ns_out);
}

int perf_rate_parse(const char *text, uint64_t *bits_per_s_out)
{
	return quantity_parse(text, rate_units, bits_per_s_out);
}

static int __attribute__((format(printf, 2, 3))) fail(char *error_out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error_out, PERF_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int take_size(enum option_id id, const char *text, uint64_t min, uint64_t *out,
		     char *error_out)
{
	if (perf_size_parse(text, out) == 0 && *out >= min && *out <= PERF_SIZE_BYTES_MAX)
		return 0;
	return fail(error_out, "--%s '%s': allowed is %s to 1024GiB, as 64, 64KiB, 1MiB, 1MB",
		    option_rows[id].name, text, min ? "1MiB" : "0");
}

static int take_duration(enum option_id id, const char *text, uint64_t min, uint64_t max,
			 uint64_t *out, char *error_out)
{
	if (perf_duration_parse(text, out) == 0 && *out >= min && *out <= max)
		return 0;
	return fail(error_out,
		    "--%s '%s': allowed is %" PRIu64 "%s to %" PRIu64 "s, as 500ms, 10s, 2min",
		    option_rows[id].name, text, min % NS_PER_MS ? min / 1000 : min / NS_PER_MS,
		    min % NS_PER_MS ? "us" : "ms", max / NS_PER_S);
}

static int take_number(enum option_id id, const char *text, uint64_t min, uint64_t max,
		       uint64_t *out, char *error_out)
{
	static const struct unit plain[] = {{"", 1}, {NULL, 0}};

	if (!strchr(text, '.') && quantity_parse(text, plain, out) == 0 && *out >= min &&
	    *out <= max)
		return 0;
	return fail(error_out, "--%s '%s': allowed is %" PRIu64 " to %" PRIu64,
		    option_rows[id].name, text, min, max);
}

static int take_level(const char *text, int *level_out, char *error_out)
{
	if (strcmp(text, "placed") == 0)
		*level_out = MRC_LEVEL_PLACED;
	else if (strcmp(text, "visible") == 0)
		*level_out = MRC_LEVEL_VISIBLE;
	else if (strcmp(text, "committed") == 0)
		*level_out = MRC_LEVEL_COMMITTED;
	else
		return fail(error_out, "--level '%s': allowed is placed, visible or committed",
			    text);
	return 0;
}

static int take_path(enum option_id id, const char *text, const char **path_out, char *error_out)
{
	/* A socket address holds 107 bytes of path. */
	if (text[0] == '\0' || strlen(text) > 107)
		return fail(error_out, "--%s '%s': allowed is a path of 1 to 107 bytes",
			    option_rows[id].name, text);
	*path_out = text;
	return 0;
}

static int take_picture(const char *text, const char **picture_out, char *error_out)
{
	size_t len = strlen(text);

	/* The name goes through gnuplot, line by line. */
	if (len <= 4 || strpbrk(text, "\n\r") != NULL ||
	    (strcmp(text + len - 4, ".png") != 0 && strcmp(text + len - 4, ".svg") != 0))
		return fail(error_out,
			    "--picture '%s': allowed is a file name that ends in .png or .svg",
			    text);
	*picture_out = text;
	return 0;
}

/* The characters of names of hosts and services: mrcd.conf(5). */
static bool is_name(const char *text)
{
	size_t len =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return text[len] == '\0' && len > 0 && len <= NAME_LEN_MAX;
}

static int option_take(struct perf_options *options, enum option_id id, const char *text,
		       char *error_out)
{
	const uint64_t year_ns = 366ULL * 86400 * NS_PER_S;
	uint64_t number = 0;
	int r = 0;

	switch (id) {
	case OPTION_SERVICE:
		if (!is_name(text))
			return fail(
				error_out,
				"--service '%s': allowed is a name of 1 to %u of the characters "
				"a-z A-Z 0-9 . _ -",
				text, NAME_LEN_MAX);
		options->service = text;
		break;
	case OPTION_SIZE:
		return take_size(id, text, 0, &options->size_bytes, error_out);
	case OPTION_IN_FLIGHT:
		r = take_number(id, text, 1, PERF_VERIFY_WINDOW / 2, &number, error_out);
		options->in_flight = (uint32_t)number;
		break;
	case OPTION_CHANNELS:
		r = take_number(id, text, 1, 1024, &number, error_out);
		options->channels = (uint32_t)number;
		break;
	case OPTION_LEVEL:
		return take_level(text, &options->level, error_out);
	case OPTION_DURATION:
		return take_duration(id, text, 0, year_ns, &options->duration_ns, error_out);
	case OPTION_COUNT:
		return take_number(id, text, 1, (1ULL << 48) - 1, &options->count, error_out);
	case OPTION_INTERVAL:
		return take_duration(id, text, 10 * NS_PER_MS, 3600 * NS_PER_S,
				     &options->interval_ns, error_out);
	case OPTION_STALLS:
		return take_duration(id, text, NS_PER_MS / 10, 3600 * NS_PER_S, &options->stalls_ns,
				     error_out);
	case OPTION_PACE:
		if (perf_rate_parse(text, &options->pace_bits_per_s) != 0 ||
		    options->pace_bits_per_s < 1000 ||
		    options->pace_bits_per_s > 100000000000000ULL)
			return fail(error_out,
				    "--pace '%s': allowed is 1kb/s to 100Tb/s, as 500Mb/s, 1.5Gb/s",
				    text);
		break;
	case OPTION_VERIFY:
		options->is_verify = true;
		break;
	case OPTION_UNORDERED:
		options->is_unordered = true;
		break;
	case OPTION_INTEGRITY:
		options->is_unchecked = strcmp(text, "off") == 0;
		if (!options->is_unchecked && strcmp(text, "on") != 0)
			return fail(error_out, "--integrity '%s': allowed is on or off", text);
		break;
	case OPTION_SEED:
		return take_number(id, text, 0, UINT64_MAX, &options->seed, error_out);
	case OPTION_EVERY:
		return take_number(id, text, 1, 1000000000, &options->every, error_out);
	case OPTION_PICTURE:
		return take_picture(text, &options->picture, error_out);
	case OPTION_ONCE:
		options->is_once = true;
		break;
	case OPTION_CONNECT_TIMEOUT:
		return take_duration(id, text, 0, year_ns, &options->connect_timeout_ns, error_out);
	case OPTION_DRAIN_TIMEOUT:
		return take_duration(id, text, 0, year_ns, &options->drain_timeout_ns, error_out);
	case OPTION_SPIN:
		return take_duration(id, text, 0, NS_PER_S, &options->spin_ns, error_out);
	case OPTION_LANDING:
		return take_size(id, text, 1 << 20, &options->landing_bytes, error_out);
	case OPTION_JSON:
		options->is_json = true;
		break;
	case OPTION_QUIET:
		options->is_quiet = true;
		break;
	case OPTION_SOCKET:
		return take_path(id, text, &options->socket_path, error_out);
	case OPTION_CONTROL:
		return take_path(id, text, &options->control_path, error_out);
	case OPTION_HELP:
		options->is_help = true;
		break;
	case OPTION_VERSION:
		options->is_version = true;
		break;
	case OPTION_COUNT_OF:
		break;
	}
	return r;
}

/* What was not given depends on the mode. */
static void options_complete(struct perf_options *options, const bool *is_given)
{
	if (!is_given[OPTION_SIZE])
		options->size_bytes = options->mode == PERF_MODE_LAT    ? 8
				      : options->mode == PERF_MODE_RATE ? 64
									: 1 << 20;
	if (!is_given[OPTION_IN_FLIGHT])
		options->in_flight = options->mode == PERF_MODE_LAT    ? 1
				     : options->mode == PERF_MODE_RATE ? 256
								       : 16;
	/* All three moments are wanted, and that the messages were whole. */
	if (options->mode == PERF_MODE_GAP) {
		options->level = MRC_LEVEL_COMMITTED;
		options->is_verify = true;
	}
	if (!is_given[OPTION_DURATION])
		options->duration_ns = is_given[OPTION_COUNT] ? 0 : 10 * NS_PER_S;
	if (!is_given[OPTION_INTERVAL])
		options->interval_ns = options->mode == PERF_MODE_SERVE ? 0 : NS_PER_S;
}

static int target_take(struct perf_options *options, const char *text, bool has_service,
		       char *error_out)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char host[NAME_LEN_MAX + 1] = "";

	if (len <= NAME_LEN_MAX)
		snprintf(host, sizeof(host), "%.*s", (int)len, text);
	if (!is_name(host) || (slash && !is_name(slash + 1)))
		return fail(error_out,
			    "'%s': allowed is HOST or HOST/SERVICE, names of 1 to %u of the "
			    "characters a-z A-Z 0-9 . _ -",
			    text, NAME_LEN_MAX);
	if (slash && has_service)
		return fail(error_out, "the service is given twice: '%s' and --service", text);
	if (slash)
		options->service = slash + 1;
	snprintf(options->target, sizeof(options->target), "%s/%s", host, options->service);
	return 0;
}

static int mode_take(struct perf_options *options, const char *text, char *error_out)
{
	for (size_t i = 0; i < MODE_COUNT; i++)
		if (strcmp(text, mode_names[i]) == 0) {
			options->mode = (enum perf_mode)i;
			return 0;
		}
	return fail(error_out, "'%s': allowed is serve, bw, rate, lat, stream or gap", text);
}

int perf_options_parse(int argc, char **argv, struct perf_options *options_out, char *error_out)
{
	struct option longs[OPTION_COUNT_OF + 1] = {0};
	bool is_given[OPTION_COUNT_OF] = {0};
	struct perf_options options = {
		.service = "perf",
		.channels = 1,
		.level = MRC_LEVEL_PLACED,
		.connect_timeout_ns = 5 * NS_PER_S,
		.drain_timeout_ns = 10 * NS_PER_S,
		.seed = 1,
		.every = 1,
	};
	int found, r, operands;

	for (int i = 0; i < OPTION_COUNT_OF; i++)
		longs[i] =
			(struct option){option_rows[i].name,
					option_rows[i].argument ? required_argument : no_argument,
					NULL, 256 + i};
	optind = 0; /* glibc: begin anew, so that this can be called twice */
	opterr = 0;
	while ((found = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		int id = found == 'h' ? OPTION_HELP : found - 256;

		if (found == ':')
			return fail(error_out, "%s wants an argument", argv[optind - 1]);
		if (found == '?')
			return fail(error_out,
				    "%s: no such option, or more than one begins like this",
				    argv[optind - 1]);
		r = option_take(&options, (enum option_id)id, optarg, error_out);
		if (r != 0)
			return r;
		is_given[id] = true;
		if (options.is_help || options.is_version) {
			*options_out = options;
			return 0;
		}
	}
	operands = argc - optind;
	if (operands == 0)
		return fail(error_out, "a mode is missing: serve, bw, rate, lat, stream or gap");
	r = mode_take(&options, argv[optind], error_out);
	if (r != 0)
		return r;
	for (int i = 0; i < OPTION_COUNT_OF; i++)
		if (is_given[i] && !(option_rows[i].modes & (1U << options.mode)))
			return fail(error_out, "--%s has no meaning with %s", option_rows[i].name,
				    perf_mode_name(options.mode));
	if (options.mode == PERF_MODE_SERVE && operands != 1)
		return fail(error_out, "'%s': serve takes no host", argv[optind + 1]);
	if (options.mode != PERF_MODE_SERVE && operands != 2)
		return fail(error_out, "%s wants one HOST", perf_mode_name(options.mode));
	if (options.mode != PERF_MODE_SERVE) {
		r = target_take(&options, argv[optind + 1], is_given[OPTION_SERVICE], error_out);
		if (r != 0)
			return r;
	}
	if (options.pace_bits_per_s && is_given[OPTION_SIZE] && options.size_bytes == 0)
		return fail(error_out, "--pace with --size 0: empty messages have no rate");
	if (options.mode == PERF_MODE_GAP && options.control_path &&
	    strcmp(options.control_path, "none") == 0)
		return fail(error_out, "--control none with gap: the daemon has to be asked");
	options_complete(&options, is_given);
	*options_out = options;
	return 0;
}

void perf_options_help(FILE *out)
{
	fprintf(out,
		"usage: mrc-perf serve [OPTION...]\n"
		"       mrc-perf bw|rate|lat|stream|gap HOST[/SERVICE] [OPTION...]\n"
		"Measure messages between two programs on MRC daemons.\n\n"
		"  serve    offer the service and answer the other modes\n"
		"  bw       large messages, several in flight: goodput\n"
		"  rate     small messages, many in flight: messages per second\n"
		"  lat      one message there and back at a time: round trip\n"
		"  stream   like bw, and goes on through failures\n"
		"  gap      how long after the local completion a message was placed, visible,\n"
		"           committed; for root and the daemon's user\n\n");
	for (int i = 0; i < OPTION_COUNT_OF; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", option_rows[i].name,
			 option_rows[i].argument ? " " : "",
			 option_rows[i].argument ? option_rows[i].argument : "");
		fprintf(out, "  %-24s %s\n", left, option_rows[i].help);
	}
	fprintf(out,
		"\nSizes: 64, 64KiB, 1MiB, 1MB. Times: 500ms, 10s, 2min. Rates: 500Mb/s, 1.5Gb/s.\n"
		"Exit: 0 all well; 1 damage, or an outcome other than OK; 2 usage;\n"
		"      3 no daemon, or nobody there.\n");
}
