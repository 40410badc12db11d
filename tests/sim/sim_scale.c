/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_scale.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "mrc_conn_impl.h" /* what its parts are, for the table of memory; nothing else */
#include "sim_world.h"

#define RAILS         4U
#define CLIENTS       8U
#define POLL_NS       MRC_MS
#define FAULT_GAP_NS  (500 * MRC_US)
#define FAULT_SPAN_NS (20 * MRC_MS)
#define UP_NS         (30 * MRC_S)
#define HEAL_NS       (60 * MRC_S)

struct talk { /* of one pair of hosts */
	uint32_t channel, from, to;
	bool is_closed;
};

struct scale {
	struct sim_options options;
	uint64_t messages; /* of each end of each channel */
	uint64_t faults;
	struct mrc_rng rng;
	struct talk *talks; /* one for each pair of hosts */
	uint32_t talk_count, open_count;
	uint32_t held[64]; /* faults under way, oldest first */
	uint32_t held_count, held_next;
	uint64_t faults_left;
};

/* ---- memory ---- */

struct asked {
	size_t bytes[64];
	uint32_t count;
};

static void *asked_alloc(void *context, size_t bytes)
{
	struct asked *asked = context;

	if (asked->count < MRC_ARRAY_LEN(asked->bytes))
		asked->bytes[asked->count++] = bytes;
	return calloc(1, bytes);
}

static void asked_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

static size_t power_of_two_from(size_t v)
{
	size_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/* What the conn asked for is told apart by size: it goes wrong where two are alike, and says so. */
static void part(struct asked *asked, const char *name, size_t each, size_t count, uint32_t paths)
{
	size_t bytes = each * count;

	for (uint32_t i = 0; i < asked->count; i++) {
		if (asked->bytes[i] != bytes)
			continue;
		asked->bytes[i] = 0;
		printf("  %-34s %9zu  %6zu of %3zu bytes", name, bytes, count, each);
		if (paths)
			printf(", %zu per path", bytes / paths);
		printf("\n");
		return;
	}
	printf("  %-34s         ?  not asked for: the table is older than the engine\n", name);
}

static void memory_table(const char *title, const struct mrc_limits *given, uint8_t paths,
			 uint32_t window)
{
	struct asked asked = {0};
	struct mrc_limits limits = *given;
	struct mrc_conn_config config = {
		.host = "a",
		.peer = "b",
		.boot_id = 1,
		.path_count = paths,
		.limits = limits,
		.alloc = {asked_alloc, asked_free, &asked},
	};
	uint32_t id;
	struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN,
				  .channel = {.flow = 1,
					      .ring_bytes = 65536,
					      .msg_bytes_max = 1 << 20,
					      .window = window,
					      .service = "s",
					      .id_out = &id}};
	struct mrc_conn *conn;
	size_t frames;
	size_t total = 0;
	size_t other = 0;

	mrc_limits_complete(&limits);
	frames = limits.frames_in_flight_max;
	if (mrc_conn_new(&config, &conn))
		abort();
	for (uint32_t i = 0; i < asked.count; i++)
		total += asked.bytes[i];
	printf("memory of one conn, %s: %u paths, %zu frames each, %u channels, %u holds\n", title,
	       paths, frames, limits.channels_max, limits.holds_max);
	part(&asked, "the conn, with room for 16 paths", sizeof(struct mrc_conn), 1, 0);
	printf("    of it paths                      %9zu  %6u of %3zu bytes\n",
	       sizeof(struct mrc_path) * MRC_PATHS_MAX, MRC_PATHS_MAX, sizeof(struct mrc_path));
	part(&asked, "records of frames in flight", sizeof(struct mrc_record), frames * paths,
	     paths);
	part(&asked, "resends", sizeof(struct mrc_resend), power_of_two_from(2 * paths * frames),
	     paths);
	part(&asked, "range nodes", sizeof(struct mrc_range_node),
	     MRC_MAX(limits.ranges_max, paths * frames / 2), paths);
	part(&asked, "control log", sizeof(struct mrc_ctl_entry),
	     power_of_two_from(8 * (size_t)limits.channels_max), 0);
	part(&asked, "holds", sizeof(struct mrc_hold),
	     (size_t)limits.holds_max + MRC_HOLDS_LOST_MAX, 0);
	part(&asked, "channel slots", sizeof(void *), limits.channels_max, 0);
	part(&asked, "channel generations", sizeof(uint32_t), limits.channels_max, 0);
	part(&asked, "channel buckets", sizeof(void *), power_of_two_from(limits.channels_max), 0);
	part(&asked, "landing memory buckets", sizeof(void *),
	     power_of_two_from(limits.channels_max), 0);
	for (uint32_t i = 0; i < asked.count; i++)
		other += asked.bytes[i];
	if (other)
		printf("  %-34s %9zu\n", "other", other);
	printf("  %-34s %9zu\n", "in all", total);
	asked = (struct asked){0};
	if (mrc_conn_handle(conn, &ev, 0))
		abort();
	total = 0;
	for (uint32_t i = 0; i < asked.count; i++)
		total += asked.bytes[i];
	printf("one end of a channel with a window of %u\n", window);
	part(&asked, "the channel", sizeof(struct mrc_channel), 1, 0);
	part(&asked, "messages out", sizeof(struct mrc_msg_out), window, 0);
	part(&asked, "messages in", sizeof(struct mrc_msg_in), window, 0);
	part(&asked, "its client (once each)", sizeof(struct mrc_flow), 1, 0);
	printf("  %-34s %9zu  and %zu for each client of the peer it leads to\n", "in all", total,
	       sizeof(struct mrc_space));
	mrc_conn_free(conn);
}

/* ---- the run ---- */

static void options_fill(struct sim_options *o, uint64_t hosts)
{
	sim_options_default(o);
	o->hosts = hosts;
	o->rails = RAILS;
	o->verbs = (1U << RAILS) - 1;
	o->rate = 12500000000ULL;
	o->clients = CLIENTS;
	o->think_ns = 3 * MRC_MS; /* so that it lasts while rails fail */
	o->len_max = 3000;
	o->slots = 2;
	o->window = 4;
	o->ring_bytes = 1024;
	o->arena_bytes = hosts / CLIENTS * 4096 + 4096;
	o->frag_bytes = 1024;
	o->eager_bytes = 256;
	o->records = 64;
	o->share = 32;
	o->holds = 8;
	o->ranges = 16;
	o->channels_max = 4;
	o->window_bytes_min = 16 * 1024;
	o->window_bytes_max = 64 * 1024;
	/* As many conns share each port: their bursts are no silence. */
	o->suspect_floor_ns = 5 * MRC_MS;
}

static void channels_open(struct scale *s, struct sim_world *w)
{
	uint32_t hosts = (uint32_t)s->options.hosts;

	for (uint32_t a = 0; a < hosts; a++) {
		for (uint32_t b = a + 1; b < hosts; b++) {
			/* Half of them the other way round. */
			bool is_turned = (a + b) & 1;
			struct sim_channel_spec spec = {
				.from_host = is_turned ? b : a,
				.from_client = (a + b) % CLIENTS,
				.to_host = is_turned ? a : b,
				.to_client = 0,
			};
			uint32_t channel = sim_open(w, &spec);

			if (channel == SIM_NONE) {
				sim_fail_script(w, "a channel is not opened");
				return;
			}
			s->talks[s->talk_count++] = (struct talk){.channel = channel,
								  .from = spec.from_host,
								  .to = spec.to_host};
			for (uint64_t m = 0; m < s->messages; m++) {
				uint64_t len = m & 1 ? 1500 + (a * 131 + b * 17 + m * 7) % 1500
						     : (a + b + m) % 250;

				sim_send(w, channel, a, len, (enum mrc_lvl)(1 + m % 3));
				sim_send(w, channel, b, len, (enum mrc_lvl)(1 + (m + 1) % 3));
			}
		}
	}
	s->open_count = s->talk_count;
}

/* One rail after the other: a fault begins, and the oldest ends when there are many. */
static void fault_next(struct sim_world *w, void *context)
{
	static const enum sim_fault kinds[] = {SIM_CARRIER_BOTH,    SIM_CARRIER_ONE, SIM_SILENCE,
					       SIM_SILENCE_ONE_WAY, SIM_RESET,       SIM_SLOW};
	struct scale *s = context;
	uint32_t hosts = (uint32_t)s->options.hosts;
	struct sim_fault_spec spec = {0};
	uint32_t handle;

	if (s->held_count == MRC_MIN(MRC_ARRAY_LEN(s->held), FAULT_SPAN_NS / FAULT_GAP_NS) ||
	    (!s->faults_left && s->held_count)) {
		sim_fault_end(w, s->held[s->held_next++ % MRC_ARRAY_LEN(s->held)]);
		s->held_count--;
	}
	if (s->faults_left) {
		s->faults_left--;
		spec.kind = kinds[mrc_rng_next(&s->rng) % MRC_ARRAY_LEN(kinds)];
		spec.host = (uint32_t)(mrc_rng_next(&s->rng) % hosts);
		spec.peer =
			(uint32_t)((spec.host + 1 + mrc_rng_next(&s->rng) % (hosts - 1)) % hosts);
		spec.rail = (uint32_t)(mrc_rng_next(&s->rng) % RAILS);
		spec.is_inward = mrc_rng_next(&s->rng) & 1;
		handle = sim_fault_begin(w, &spec);
		if (handle)
			s->held[(s->held_next + s->held_count++) % MRC_ARRAY_LEN(s->held)] = handle;
	}
	if (s->faults_left || s->held_count)
		sim_at(w, sim_now_ns(w) + FAULT_GAP_NS, fault_next, s);
}

static void channels_close(struct scale *s, struct sim_world *w)
{
	for (uint32_t i = 0; i < s->talk_count; i++) {
		struct talk *talk = &s->talks[i];
		struct sim_channel_status from;
		struct sim_channel_status to;

		if (talk->is_closed)
			continue;
		sim_channel_status(w, talk->channel, talk->from, &from);
		sim_channel_status(w, talk->channel, talk->to, &to);
		if (from.is_down || to.is_down)
			sim_fail_script(w, "a channel ended for the sake of a path");
		if (from.answered_ok < s->messages || to.answered_ok < s->messages ||
		    from.released < s->messages || to.released < s->messages)
			continue;
		sim_close(w, talk->channel, talk->from);
		talk->is_closed = true;
		s->open_count--;
	}
}

static void engines_print(struct sim_world *w, uint32_t hosts)
{
	uint64_t total = 0;
	uint64_t most = 0;

	for (uint32_t a = 0; a < hosts; a++) {
		for (uint32_t b = 0; b < hosts; b++) {
			if (a == b)
				continue;
			total += sim_conn_bytes(w, a, b);
			most = MRC_MAX(most, sim_conn_bytes(w, a, b));
		}
	}
	printf("  %u conns with a channel each: %.1f MiB, %llu bytes per conn (at most %llu), "
	       "%llu per path\n",
	       hosts * (hosts - 1), (double)total / (1 << 20),
	       (unsigned long long)(total / (hosts * (hosts - 1))), (unsigned long long)most,
	       (unsigned long long)(total / (hosts * (hosts - 1)) / RAILS));
}

static bool run(struct scale *s)
{
	uint32_t hosts = (uint32_t)s->options.hosts;
	struct sim_world *w = sim_new(&s->options);
	struct sim_counts counts;
	struct rusage usage;
	uint64_t by_ns = UP_NS;
	bool is_good = true;

	s->talks = calloc((size_t)hosts * (hosts - 1) / 2, sizeof(*s->talks));
	if (!s->talks)
		abort();
	while (is_good && !sim_is_all_good(w) && sim_now_ns(w) < by_ns)
		is_good = sim_run_to(w, sim_now_ns(w) + POLL_NS);
	printf("  all paths are in service at %.1f ms\n", (double)sim_now_ns(w) / MRC_MS);
	fflush(stdout);
	if (is_good) {
		s->faults_left = s->faults;
		sim_at(w, sim_now_ns(w), fault_next, s);
		channels_open(s, w);
		engines_print(w, hosts);
		fflush(stdout);
	}
	by_ns = sim_now_ns(w) + s->faults * FAULT_GAP_NS + HEAL_NS;
	while (is_good && s->open_count && sim_now_ns(w) < by_ns) {
		is_good = sim_run_to(w, sim_now_ns(w) + POLL_NS);
		channels_close(s, w);
	}
	printf("  all is said and heard at %.1f ms\n", (double)sim_now_ns(w) / MRC_MS);
	fflush(stdout);
	while (is_good && sim_now_ns(w) < by_ns &&
	       (s->faults_left || s->held_count || !sim_is_clean(w, NULL, 0) ||
		!sim_is_all_good(w)))
		is_good = sim_run_to(w, sim_now_ns(w) + 20 * POLL_NS);
	printf("  all is freed, and all paths are in service again, at %.1f ms\n  ",
	       (double)sim_now_ns(w) / MRC_MS);
	sim_counts(w, &counts);
#define X(name) printf(" " #name " %llu", (unsigned long long)counts.name);
	SIM_COUNTS(X)
#undef X
	getrusage(RUSAGE_SELF, &usage);
	printf("\n  %.1f s of processor time, %.1f MiB resident at most, simulator and all\n",
	       (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
	       (double)usage.ru_maxrss / 1024);
	if (is_good && sim_now_ns(w) >= by_ns)
		sim_fail_script(w, "it does not come to its end");
	if (sim_failure(w))
		printf("FAILED %s\n", sim_failure(w));
	is_good = !sim_failure(w);
	sim_free(w);
	free(s->talks);
	return is_good;
}

/* ---- command ---- */

static void usage_print(FILE *out)
{
	fprintf(out,
		"usage: mrc-sim --scale HOSTS [--messages N] [--faults N] [--seed S] [--set ...]\n"
		"\n"
		"HOSTS hosts (2 to 256), 4 rails, a conn and a channel for each pair of them, N "
		"(4)\n"
		"messages each way while N (60) rails fail; and what the engine asks of memory, "
		"by\n"
		"parts. 256 hosts take some minutes and some GiB. Exits 1 when a checker fired.\n");
}

int sim_scale_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"messages", required_argument, NULL, 'm'},
		{"faults", required_argument, NULL, 'f'},
		{"seed", required_argument, NULL, 's'},
		{"set", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct scale s = {.messages = 8, .faults = 60};
	struct mrc_limits limits = {0};
	const char *set = NULL;
	uint64_t seed = 1;
	uint64_t hosts;
	char why[200];
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			s.messages = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			s.faults = strtoull(optarg, NULL, 10);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			set = optarg;
			break;
		case 'h':
			usage_print(stdout);
			return 0;
		default:
			usage_print(stderr);
			return 2;
		}
	}
	hosts = optind == argc - 1 ? strtoull(argv[optind], NULL, 10) : 0;
	if (hosts < 2 || hosts > 256) {
		usage_print(stderr);
		return 2;
	}
	options_fill(&s.options, hosts);
	s.options.seed = seed;
	if (set && sim_options_set(&s.options, set, why, sizeof(why))) {
		fprintf(stderr, "mrc-sim: --set: %s\n", why);
		return 2;
	}
	s.rng.state = seed;
	memory_table("limits by default", &limits, RAILS, 256);
	limits = (struct mrc_limits){
		.channels_max = (uint32_t)s.options.channels_max,
		.frames_in_flight_max = (uint32_t)s.options.records,
		.holds_max = (uint32_t)s.options.holds,
		.ranges_max = (uint32_t)s.options.ranges,
	};
	memory_table("limits of the run", &limits, RAILS, (uint32_t)s.options.window);
	printf("%llu hosts, all to all: ", (unsigned long long)hosts);
	sim_options_print(&s.options, NULL, stdout);
	printf("\n");
	return !run(&s);
}
