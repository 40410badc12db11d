/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc-sim - run the engine under faults drawn from a seed; --help says how */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_cost.h"
#include "sim_exhaust.h"
#include "sim_health.h"
#include "sim_reaction.h"
#include "sim_scale.h"
#include "sim_shrink.h"
#include "sim_world.h"

#define FAILURES_MAX    5
#define TRACE_LINES     400
#define TRACE_LINES_MAX 200000

struct settings {
	uint64_t from, to;
	double minutes;
	const char *set;
	bool is_one, is_traced, is_shrinking, is_replay;
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: mrc-sim [--seed S | --seeds FROM-TO | --minutes M] [--set NAME=VALUE,...]\n"
		"               [--trace] [--shrink] [--replay]\n"
		"       mrc-sim --exhaustive | --health | --reaction | --scale HOSTS | --cost; "
		"each has "
		"its own --help\n"
		"\n"
		"Runs engines against each other under faults drawn from a seed, in virtual time, "
		"and\n"
		"checks the invariants at every step. Exits 0 when all runs passed, 1 when one "
		"failed,\n"
		"2 when an argument is wrong.\n"
		"\n"
		"  --seed S         one run, the same each time; says what happened\n"
		"  --seeds FROM-TO  those, quietly (1-100 when nothing is said)\n"
		"  --minutes M      fresh seeds for M minutes\n"
		"  --set ...        use these options instead of those drawn\n"
		"  --trace          print the trace of the one run; one that fails prints its last "
		"part anyway\n"
		"  --shrink         of a run that fails: look for the smallest that still does\n"
		"  --replay         run each seed twice and compare the hashes of their traces\n"
		"  -h, --help       this\n");
	sim_options_help(out);
}

/* One run; on failure all that is needed to see why, by doing it again with the trace on. */
static int run_once(const struct sim_options *o, const struct settings *s, struct sim_counts *sum)
{
	struct sim_world *world = sim_new(o);
	struct sim_counts counts;
	struct sim_options drawn;
	uint64_t hash;
	int r;

	if (s->is_traced)
		sim_trace_on(world, TRACE_LINES_MAX);
	r = sim_run(world);
	hash = sim_hash(world);
	sim_counts(world, &counts);
#define X(name) sum->name += counts.name;
	SIM_COUNTS(X)
#undef X
	if (s->is_replay || (r && !s->is_traced)) {
		sim_free(world);
		world = sim_new(o);
		if (r)
			sim_trace_on(world, TRACE_LINES);
		if (sim_run(world) != r || sim_hash(world) != hash) {
			printf("FAILED: seed %llu does not replay: %016llx, then %016llx\n",
			       (unsigned long long)o->seed, (unsigned long long)hash,
			       (unsigned long long)sim_hash(world));
			r = 1;
		}
	}
	if (r || s->is_one) {
		printf("seed %llu: ", (unsigned long long)o->seed);
		sim_options_print(o, NULL, stdout);
		printf("\n");
		if (r || s->is_traced)
			sim_trace_print(world, stdout);
		sim_report(world, stdout);
	}
	if (sim_failure(world)) {
		sim_options_draw(o->seed, &drawn);
		printf("FAILED %s\n", sim_failure(world));
		printf("again with: mrc-sim --seed %llu", (unsigned long long)o->seed);
		if (s->set) {
			printf(" --set ");
			sim_options_print(o, &drawn, stdout);
		}
		printf("\n");
	}
	sim_free(world);
	if (r && s->is_shrinking)
		sim_shrink(o, stdout);
	fflush(stdout);
	return r;
}

static bool parse_u64(const char *text, const char **end_out, uint64_t *value_out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value_out = strtoull(text, &end, 0);
	*end_out = end;
	return errno == 0;
}

static int bad(const char *what, const char *text)
{
	fprintf(stderr, "mrc-sim: %s: '%s'; see --help\n", what, text);
	return 2;
}

static int parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'},
		{"minutes", required_argument, NULL, 'm'},
		{"set", required_argument, NULL, 'o'},
		{"trace", no_argument, NULL, 't'},
		{"shrink", no_argument, NULL, 'k'},
		{"replay", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *end;
	char *number_end;
	int ways = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			if (!parse_u64(optarg, &end, &s->from) || *end)
				return bad("--seed wants a number", optarg);
			s->to = s->from;
			s->is_one = true;
			ways++;
			break;
		case 'r':
			if (!parse_u64(optarg, &end, &s->from) || *end != '-' ||
			    !parse_u64(end + 1, &end, &s->to) || *end || s->to < s->from ||
			    s->to == UINT64_MAX)
				return bad("--seeds wants FROM-TO, as in 1-500", optarg);
			ways++;
			break;
		case 'm':
			s->minutes = strtod(optarg, &number_end);
			if (number_end == optarg || *number_end || !(s->minutes > 0) ||
			    s->minutes > 1e6)
				return bad("--minutes wants a number above 0", optarg);
			s->from = (uint64_t)time(NULL) * 1000003;
			s->to = UINT64_MAX - 1;
			ways++;
			break;
		case 'o':
			s->set = optarg;
			break;
		case 't':
			s->is_traced = true;
			break;
		case 'k':
			s->is_shrinking = true;
			break;
		case 'p':
			s->is_replay = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			fprintf(stderr, "see mrc-sim --help\n");
			return 2;
		}
	}
	if (optind < argc)
		return bad("what is this", argv[optind]);
	if (ways > 1)
		return bad("only one of these, please", "--seed, --seeds, --minutes");
	return 0;
}

/* Runs of another kind, each with arguments of its own. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} drivers[] = {
	{"--cost", sim_cost_main},     {"--exhaustive", sim_exhaust_main},
	{"--health", sim_health_main}, {"--reaction", sim_reaction_main},
	{"--scale", sim_scale_main},
};

int main(int argc, char **argv)
{
	struct settings s = {.from = 1, .to = 100};
	struct sim_counts sum = {0};
	struct timespec begin;
	struct timespec now;
	bool is_terminal = isatty(STDERR_FILENO);
	uint64_t failed = 0;
	uint64_t count = 0;
	double told = 0;
	int r;

	for (size_t i = 0; argc > 1 && i < MRC_ARRAY_LEN(drivers); i++) {
		if (!strcmp(argv[1], drivers[i].name))
			return drivers[i].run(argc - 1, argv + 1);
	}
	r = parse(argc, argv, &s);
	if (r)
		return r;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t seed = s.from; seed <= s.to && failed < FAILURES_MAX; seed++) {
		struct sim_options o;
		char why[256];
		double seconds;

		clock_gettime(CLOCK_MONOTONIC, &now);
		seconds = (double)(now.tv_sec - begin.tv_sec) +
			  (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
		if (s.minutes > 0 && seconds >= s.minutes * 60)
			break;
		if (is_terminal && !s.is_one && seconds >= told + 1) {
			told = seconds;
			fprintf(stderr, "\r%.0f s, seed %llu, %llu runs, %llu failed ", seconds,
				(unsigned long long)seed, (unsigned long long)count,
				(unsigned long long)failed);
		}
		sim_options_draw(seed, &o);
		if (s.set && sim_options_set(&o, s.set, why, sizeof(why)))
			return bad("--set", why);
		failed += run_once(&o, &s, &sum) != 0;
		count++;
	}
	if (told > 0)
		fprintf(stderr, "\r%60s\r", "");
	if (!s.is_one) {
		printf("in all:");
#define X(name) printf(" " #name " %llu", (unsigned long long)sum.name);
		SIM_COUNTS(X)
#undef X
		printf("\n");
	}
	printf("mrc-sim: %llu runs, %llu failed\n", (unsigned long long)count,
	       (unsigned long long)failed);
	return failed != 0;
}
