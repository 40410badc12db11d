/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_reaction.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "sim_world.h"

#define RAILS       4U
#define WARM_NS     (1 * MRC_MS) /* of traffic before anything may happen */
#define FAULT_NS    (1 * MRC_MS) /* it happens within */
#define AFTER_NS    (3 * MRC_MS) /* traffic goes on so long after the last moment for it */
#define UP_NS       MRC_S
#define HIT_NS      (10 * MRC_US) /* later by more than one round trip: the fault's doing */
#define AIM_P50_NS  (100 * MRC_US)
#define AIM_MAX_NS  (500 * MRC_US)
#define CHECKED_MAX 3

struct traffic {
	const char *name;
	uint64_t len;
	uint64_t interval_ns;
	uint32_t slots;
};

static const struct traffic traffics[] = {
	{"small", 256, 5 * MRC_US, 1024},
	{"large", 256 * 1024, 20 * MRC_US, 64},
};

struct settings {
	uint64_t runs, seed;
	const char *set;
	bool is_traced, is_aimed;
};

/* One run: messages at their times, and when each was delivered. */
struct stream {
	const struct traffic *traffic;
	uint32_t channel;
	uint64_t begin_ns;
	uint64_t count, sent;
};

struct samples {
	uint64_t *at;
	size_t count, cap;
};

static void samples_add(struct samples *s, uint64_t value)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 1024;
		s->at = realloc(s->at, s->cap * sizeof(*s->at));
		if (!s->at)
			abort();
	}
	s->at[s->count++] = value;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return (*x > *y) - (*x < *y);
}

static void samples_sort(struct samples *s)
{
	if (s->count)
		qsort(s->at, s->count, sizeof(*s->at), compare);
}

static uint64_t quantile(const struct samples *s, uint64_t permille)
{
	return s->count ? s->at[(s->count - 1) * permille / 1000] : 0;
}

/* What a deployment with such rails would say. */
static void options_fill(struct sim_options *o, const struct traffic *t)
{
	sim_options_default(o);
	o->rails = RAILS;
	o->verbs = (1U << RAILS) - 1;
	o->delay_ns = 4400;        /* and a quarter more at most: 10 us there and back */
	o->rate = 12500000000ULL;  /* 100 Gb/s */
	o->fence_ns = 20 * MRC_US; /* see README.md */
	o->suspect_floor_ns = 40 * MRC_US;
	o->suspect_ceiling_ns = 10 * MRC_MS;
	o->probe_interval_ns = 100 * MRC_US;
	o->frag_bytes = 32 * 1024;
	o->eager_bytes = 8 * 1024;
	o->direct_bytes = 512;
	o->ring_bytes = 1 << 20;
	o->window = 1024;
	o->window_bytes_min = 128 * 1024;
	o->window_bytes_max = 1 << 20;
	o->records = 1024;
	o->share = 512;
	o->len_max = t->len;
	o->slots = t->slots;
	o->arena_bytes = 16ULL << 20;
}

static void stream_send(struct sim_world *w, void *context)
{
	struct stream *s = context;

	sim_send(w, s->channel, 0, s->traffic->len, MRC_LVL_PLACED);
	if (++s->sent < s->count)
		sim_at(w, s->begin_ns + s->sent * s->traffic->interval_ns, stream_send, s);
}

static bool is_up(struct sim_world *w, void *context)
{
	(void)context;
	return sim_is_all_good(w);
}

static bool is_delivered(struct sim_world *w, void *context)
{
	const struct stream *s = context;
	struct sim_channel_status status;

	sim_channel_status(w, s->channel, 1, &status);
	return status.delivered == s->count;
}

/* What the engines knew of their paths when it happened: their timers come of it. */
static void paths_print(struct sim_world *w)
{
	for (uint32_t host = 0; host < 2; host++) {
		for (uint8_t r = 0; r < RAILS; r++) {
			struct mrc_path_info info;

			mrc_conn_path_info(sim_conn(w, host, 1 - host), r, &info);
			printf("host %c path %u: rtt %.1f us, least %.1f, rate %.1f MB/s, window "
			       "%llu "
			       "KiB, in flight %llu KiB, %u frames\n",
			       'a' + (int)host, r, (double)info.rtt_ns / 1000,
			       (double)info.rtt_ns_min / 1000, (double)info.rate_bytes_per_s / 1e6,
			       (unsigned long long)info.window_bytes >> 10,
			       (unsigned long long)info.bytes_in_flight >> 10,
			       info.frames_in_flight);
		}
	}
}

/*
 * delays_out[n]: from when message n was due to be sent until it was delivered.
 * The fault, if any, begins fault_ns after the warming up. False: a checker fired.
 */
static bool run(const struct sim_options *o, const struct traffic *t, bool is_faulted,
		uint64_t fault_ns, uint32_t rail, const struct settings *settings,
		uint64_t *delays_out, struct sim_counts *counts_out)
{
	struct sim_world *w = sim_new(o);
	struct stream s = {.traffic = t, .count = (WARM_NS + FAULT_NS + AFTER_NS) / t->interval_ns};
	struct sim_channel_spec spec = {.from_host = 0, .to_host = 1};
	struct sim_fault_spec fault = {.kind = SIM_SILENCE, .host = 1, .rail = rail};
	bool is_good;

	if (settings->is_traced)
		sim_trace_on(w, 100000);
	is_good = sim_run_until(w, is_up, NULL, UP_NS);
	if (is_good) {
		s.channel = sim_open(w, &spec);
		s.begin_ns = sim_now_ns(w) + MRC_MS;
		sim_at(w, s.begin_ns, stream_send, &s);
		is_good = sim_run_to(w, s.begin_ns + WARM_NS + fault_ns);
	}
	if (is_good && is_faulted) {
		if (settings->is_traced)
			paths_print(w);
		sim_fault_begin(w, &fault);
	}
	is_good = is_good && sim_run_until(w, is_delivered, &s, sim_now_ns(w) + UP_NS);
	for (uint64_t n = 0; n < s.count && is_good; n++) {
		struct sim_message_status m;

		sim_message_status(w, s.channel, 0, n, &m);
		delays_out[n] = m.delivered_ns - (s.begin_ns + n * t->interval_ns);
	}
	sim_counts(w, counts_out);
	if (settings->is_traced && is_faulted)
		sim_trace_print(w, stdout);
	if (!is_good)
		printf("%s, seed %llu: %s\n", t->name, (unsigned long long)o->seed,
		       sim_failure(w) ? sim_failure(w) : "not all was delivered");
	sim_free(w);
	return is_good;
}

static void row(const char *what, const struct samples *s)
{
	printf("  %-34s %7zu %8.1f %8.1f %8.1f %8.1f\n", what, s->count,
	       (double)quantile(s, 500) / 1000, (double)quantile(s, 900) / 1000,
	       (double)quantile(s, 990) / 1000, (double)quantile(s, 1000) / 1000);
}

static void histogram(const struct samples *s)
{
	static const uint64_t edges_us[] = {20,  30,  50,   70,   100,  150,   200,   300,
					    500, 700, 1000, 2000, 5000, 10000, 100000};
	size_t from = 0;

	for (size_t e = 0; e < MRC_ARRAY_LEN(edges_us) && from < s->count; e++) {
		size_t to = from;
		size_t width;

		while (to < s->count && s->at[to] < edges_us[e] * MRC_US)
			to++;
		width = (to - from) * 50 / s->count;
		if (to > from)
			printf("    below %6llu us %6zu %.*s\n", (unsigned long long)edges_us[e],
			       to - from, (int)width,
			       "##################################################");
		from = to;
	}
}

static int measure(const struct traffic *t, const struct settings *settings)
{
	uint64_t count = (WARM_NS + FAULT_NS + AFTER_NS) / t->interval_ns;
	uint64_t *plain = calloc(count, sizeof(*plain));
	uint64_t *faulted = calloc(count, sizeof(*faulted));
	struct samples usual = {0};
	struct samples hit = {0};
	struct samples worst = {0};
	struct sim_counts sum = {0};
	uint64_t untouched = 0;
	uint64_t failed = 0;
	uint64_t worst_seed = 0;
	uint64_t worst_ns = 0;
	int r = 0;

	if (!plain || !faulted)
		abort();
	for (uint64_t i = 0; i < settings->runs && failed < CHECKED_MAX; i++) {
		struct mrc_rng rng = {.state = settings->seed + i};
		uint64_t fault_ns = mrc_rng_next(&rng) % FAULT_NS;
		uint32_t rail = (uint32_t)(mrc_rng_next(&rng) % RAILS);
		struct sim_options o;
		struct sim_counts counts = {0};
		uint64_t max_ns = 0;
		char why[200];

		options_fill(&o, t);
		o.seed = settings->seed + i;
		if (settings->set && sim_options_set(&o, settings->set, why, sizeof(why))) {
			fprintf(stderr, "mrc-sim: --set: %s\n", why);
			exit(2);
		}
		if (!run(&o, t, false, fault_ns, rail, settings, plain, &counts) ||
		    !run(&o, t, true, fault_ns, rail, settings, faulted, &counts)) {
			failed++;
			continue;
		}
		sum.suspicions += counts.suspicions;
		sum.suspicions_false += counts.suspicions_false;
		for (uint64_t n = WARM_NS / 2 / t->interval_ns; n < count; n++) {
			uint64_t extra_ns = faulted[n] > plain[n] ? faulted[n] - plain[n] : 0;

			samples_add(&usual, plain[n]);
			max_ns = MRC_MAX(max_ns, extra_ns);
			if (extra_ns > HIT_NS)
				samples_add(&hit, extra_ns);
		}
		if (max_ns > worst_ns) {
			worst_ns = max_ns;
			worst_seed = o.seed;
		}
		if (max_ns > HIT_NS)
			samples_add(&worst, max_ns);
		else
			untouched++;
	}
	samples_sort(&usual);
	samples_sort(&hit);
	samples_sort(&worst);
	printf("%s messages: %llu bytes every %.0f us; suspicions %llu, false %llu; "
	       "%llu runs in which no message came late\n"
	       "  us                                   count      p50      p90      p99      max\n",
	       t->name, (unsigned long long)t->len, (double)t->interval_ns / 1000,
	       (unsigned long long)sum.suspicions, (unsigned long long)sum.suspicions_false,
	       (unsigned long long)untouched);
	row("delay without fault", &usual);
	row("extra delay, each message hit", &hit);
	row("extra delay, the worst of each run", &worst);
	histogram(&worst);
	printf("  the worst again: mrc-sim --reaction --only %s --runs 1 --seed %llu --trace\n",
	       t->name, (unsigned long long)worst_seed);
	if (settings->is_aimed &&
	    (quantile(&hit, 500) >= AIM_P50_NS || quantile(&worst, 1000) >= AIM_MAX_NS)) {
		printf("FAILED: the aim is a median below %llu us and a maximum below %llu us\n",
		       AIM_P50_NS / MRC_US, AIM_MAX_NS / MRC_US);
		r = 1;
	}
	free(plain);
	free(faulted);
	free(usual.at);
	free(hit.at);
	free(worst.at);
	return r || failed;
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: mrc-sim --reaction [--runs N] [--seed S] [--set NAME=VALUE,...] [--aim]\n"
		"               [--only small|large] [--trace]\n"
		"\n"
		"How much later a message comes when its path goes silent: 2 hosts, 4 rails, "
		"steady\n"
		"traffic, in each of N runs (200) one rail falls silent at a random moment.\n"
		"\n"
		"  --aim     exits 1 when the median is not below 100 us, or the maximum below "
		"500\n"
		"  --trace   print what happened in the faulted runs\n");
}

int sim_reaction_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"runs", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 's'},
		{"set", required_argument, NULL, 'o'},  {"only", required_argument, NULL, 'y'},
		{"aim", no_argument, NULL, 'a'},        {"trace", no_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
	};
	struct settings s = {.runs = 200, .seed = 1};
	const char *only = NULL;
	struct sim_options o;
	char why[200];
	int r = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			s.runs = strtoull(optarg, NULL, 10);
			break;
		case 's':
			s.seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			s.set = optarg;
			break;
		case 'y':
			only = optarg;
			break;
		case 'a':
			s.is_aimed = true;
			break;
		case 't':
			s.is_traced = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	options_fill(&o, &traffics[0]);
	if (optind < argc || s.runs == 0 ||
	    (s.set && sim_options_set(&o, s.set, why, sizeof(why)))) {
		usage(stderr);
		return 2;
	}
	printf("%llu runs from seed %llu: ", (unsigned long long)s.runs,
	       (unsigned long long)s.seed);
	sim_options_print(&o, NULL, stdout);
	printf("\n");
	for (size_t i = 0; i < MRC_ARRAY_LEN(traffics); i++) {
		if (!only || !strcmp(only, traffics[i].name))
			r |= measure(&traffics[i], &s);
	}
	return r;
}
