/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc-sim - run the engine under faults drawn from a seed
 *
 *	mrc-sim --seed S          one run, again the same
 *	mrc-sim --seeds FROM-TO   many
 *	mrc-sim --minutes M       fresh seeds for that long
 *
 * A failing run prints its seed, the options drawn and the last of its trace.
 */
#include "sim_world.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Swarm testing: each run draws which kinds of trouble it has, and how much. */
static struct sim_options options_draw(uint64_t seed)
{
	struct mrc_rng rng = {.state = seed ^ 0x5eedULL};
	struct sim_options o = {.seed = seed};

	o.rails = 1 + (uint32_t)(mrc_rng_next(&rng) % 4);
	o.is_verbs = mrc_rng_next(&rng) % 2;
	o.is_unordered = mrc_rng_next(&rng) % 4 == 0;
	o.channels = 1 + (uint32_t)(mrc_rng_next(&rng) % 4);
	o.messages = 20 + (uint32_t)(mrc_rng_next(&rng) % 200);
	o.len_max = 64U << mrc_rng_next(&rng) % 11;
	o.delay_ns = 2000ULL << mrc_rng_next(&rng) % 7;
	o.rate = 100000000ULL << mrc_rng_next(&rng) % 5;
	o.window = 1U << (1 + mrc_rng_next(&rng) % 6);
	o.ring_bytes = 4096ULL << mrc_rng_next(&rng) % 4;
	o.arena_bytes = (uint64_t)o.len_max * (2 + mrc_rng_next(&rng) % 12);
	o.reject_permille = mrc_rng_next(&rng) % 3 ? 0 : 200;
	o.think_ns = 1000ULL << mrc_rng_next(&rng) % 12;
	o.faults = mrc_rng_next(&rng) % 5 == 0 ? 0 : (uint32_t)(mrc_rng_next(&rng) % 30);
	o.fault_kinds = (uint32_t)mrc_rng_next(&rng) & ((1U << SIM_FAULT_COUNT) - 1);
	if (o.fault_kinds == 0)
		o.fault_kinds = 1;
	return o;
}

static void options_print(const struct sim_options *o)
{
	printf("seed %llu: rails %u %s%s, channels %u, messages %u of up to %u bytes, window %u, "
	       "ring %llu, arena %llu,\n"
	       "  delay %.1f us, rate %.0f MB/s, think %.1f us, reject %u/1000, faults %u of",
	       (unsigned long long)o->seed, o->rails, o->is_verbs ? "verbs" : "tcp",
	       o->is_unordered ? " unordered" : "", o->channels, o->messages, o->len_max, o->window,
	       (unsigned long long)o->ring_bytes, (unsigned long long)o->arena_bytes,
	       (double)o->delay_ns / 1000, (double)o->rate / 1e6, (double)o->think_ns / 1000,
	       o->reject_permille, o->faults);
	for (uint32_t f = 0; f < SIM_FAULT_COUNT; f++) {
		if (o->fault_kinds >> f & 1)
			printf(" %s", sim_fault_name((enum sim_fault)f));
	}
	printf("\n");
}

static int run_seed(uint64_t seed, bool is_verbose, bool is_traced)
{
	struct sim_options o = options_draw(seed);
	struct sim_world *world;
	int r;

	o.is_traced = is_traced;
	world = sim_new(&o);
	r = sim_run(world);
	if (r || is_verbose) {
		options_print(&o);
		if (r) {
			sim_trace_print(world, stdout);
			printf("FAILED (again with: mrc-sim --seed %llu): %s\n",
			       (unsigned long long)seed, sim_failure(world));
		}
		sim_report(world, stdout);
	}
	sim_free(world);
	return r;
}

static void usage(FILE *out)
{
	fprintf(out, "usage: mrc-sim [--seed S [--trace] | --seeds FROM-TO | --minutes M]\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},    {"seeds", required_argument, NULL, 'r'},
		{"minutes", required_argument, NULL, 'm'}, {"trace", no_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
	};
	uint64_t from = 1;
	uint64_t to = 100;
	double minutes = 0;
	bool is_one = false;
	bool is_traced = false;
	uint64_t failed = 0;
	uint64_t count = 0;
	time_t end;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		char *dash;

		switch (c) {
		case 's':
			from = strtoull(optarg, NULL, 0);
			to = from;
			is_one = true;
			break;
		case 'r':
			from = strtoull(optarg, &dash, 0);
			if (*dash != '-') {
				fprintf(stderr, "mrc-sim: --seeds wants FROM-TO, e.g. 1-500\n");
				return 2;
			}
			to = strtoull(dash + 1, NULL, 0);
			break;
		case 'm':
			minutes = strtod(optarg, NULL);
			from = (uint64_t)time(NULL) * 1000003;
			to = UINT64_MAX - 1;
			break;
		case 't':
			is_traced = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	end = time(NULL) + (time_t)(minutes * 60);
	for (uint64_t seed = from; seed <= to && failed < 5; seed++) {
		if (minutes > 0 && time(NULL) >= end)
			break;
		failed += run_seed(seed, is_one, is_traced) != 0;
		count++;
	}
	printf("mrc-sim: %llu runs, %llu failed\n", (unsigned long long)count,
	       (unsigned long long)failed);
	return failed != 0;
}
