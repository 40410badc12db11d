/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * It looks inside the world (sim_impl.h) for one thing: which event comes next,
 * for a fault is to fall just before it, and a ghost is to land just before the
 * event that fences its path.
 */
#include "sim_exhaust.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

#define STRIKES_MAX  2U
#define FAILURES_MAX 5U
#define EVENTS_LIMIT 100000U      /* an exchange that has not ended by then never will */
#define ENDED_NS     (15 * MRC_S) /* all is over so long after the last fault ended */
#define SILENCE_NS   (3 * MRC_MS)
#define PAUSE_NS     (10 * MRC_MS)
#define RESTART_NS   MRC_MS
#define GHOST_NS     MRC_S /* held for ever, unless what fences it comes */
#define TRACE_LINES  300
#define TURNS        20 /* kinds of faults for each pair of events, of some 500 */
#define TURNS_LARGE  50

/*
 * What befalls the exchange. X(ID, name, of each host, of each rail, all is well afterwards)
 *
 * body, header and ghost happen to what is on the wire: at the other events they
 * are left out. `header` of a rail is that of the frame that arrives next.
 */
#define KINDS(X)                                       \
	X(RESET_ONE, "reset-one", true, true, true)    \
	X(RESET_BOTH, "reset-both", false, true, true) \
	X(SILENCE, "silence", true, true, true)        \
	X(BODY, "body", false, false, true)            \
	X(HEADER, "header", false, false, true)        \
	X(GHOST, "ghost", true, true, true)            \
	X(CLIENT, "client-death", true, false, false)  \
	X(RESTART, "restart", true, false, false)      \
	X(PAUSE, "pause", true, false, true)           \
	X(HANDOVER, "handover", true, false, true)

enum kind {
#define X(id, name, hosts, rails, mild) K_##id,
	KINDS(X)
#undef X
		K_COUNT
};

static const struct {
	const char *name;
	bool is_of_host, is_of_rail, is_mild;
} kinds[K_COUNT] = {
#define X(id, name, hosts, rails, mild) {name, hosts, rails, mild},
	KINDS(X)
#undef X
};

struct strike {
	enum kind kind;
	uint32_t host, rail;
	uint32_t at; /* before this event, counted from 0 */
};

struct exchange {
	bool is_verbs, is_short;
	uint32_t rails;
	uint64_t seed;
};

enum stage { CONNECTING, TALKING, ENDING, ENDED };

struct run {
	struct sim_world *world;
	const struct exchange *exchange;
	enum stage stage;
	uint32_t channel;
	uint64_t sent[2];
	uint32_t held[STRIKES_MAX], held_count; /* faults that end by themselves */
	uint64_t quiet_ns;                      /* the last of them has ended then */
	bool is_ghost;                          /* frames of this transport are held back: */
	uint32_t ghost_side, ghost_rail;
	uint64_t ghost_serial;
};

/* ---- the exchange ---- */

static void options_fill(const struct exchange *x, struct sim_options *o)
{
	sim_options_default(o);
	o->seed = x->seed;
	o->rails = x->rails;
	o->verbs = x->is_verbs ? (1U << x->rails) - 1 : 0;
	o->len_max = 2500;
	o->slots = 8;
	o->window = 8;
	o->ring_bytes = 4096;
	o->arena_bytes = 20000;
	o->frag_bytes = 1024;
	o->eager_bytes = 512;
	o->records = 64;
	o->channels_max = 4;
}

static void say(struct run *run, uint32_t host, uint64_t len, enum mrc_lvl level)
{
	sim_send(run->world, run->channel, host, len, level);
	run->sent[host]++;
}

static void talk(struct run *run)
{
	const struct sim_channel_spec spec = {.from_host = 0, .to_host = 1};

	run->channel = sim_open(run->world, &spec);
	if (run->channel == SIM_NONE) {
		sim_fail_script(run->world, "the channel is not opened");
		return;
	}
	if (run->exchange->is_short) {
		say(run, 0, 300, MRC_LVL_COMMITTED);
		say(run, 0, 1500, MRC_LVL_PLACED);
		return;
	}
	for (uint32_t host = 0; host < 2; host++) {
		say(run, host, 0, MRC_LVL_COMMITTED);
		say(run, host, 300, MRC_LVL_PLACED);
		say(run, host, 2500, MRC_LVL_VISIBLE);
		say(run, host, 40, MRC_LVL_VISIBLE);
		say(run, host, 1800, MRC_LVL_PLACED);
		say(run, host, 1500, MRC_LVL_COMMITTED);
	}
}

/* Both ends have said and heard all; or one is no more, and the other learns it. */
static bool is_said(const struct run *run)
{
	struct sim_channel_status s[2];

	for (uint32_t host = 0; host < 2; host++) {
		sim_channel_status(run->world, run->channel, host, &s[host]);
		if (s[host].is_down || s[host].is_freed)
			return true;
	}
	for (uint32_t host = 0; host < 2; host++) {
		if (s[host].answered < run->sent[host] || s[1 - host].released < run->sent[host])
			return false;
	}
	return true;
}

/* Nothing happened that may cost a message: then none was lost. */
static void all_well(struct run *run)
{
	struct sim_channel_status s;

	for (uint32_t host = 0; host < 2; host++) {
		sim_channel_status(run->world, run->channel, host, &s);
		if (s.answered_ok != run->sent[host])
			sim_fail_script(run->world, "a message failed for the sake of a path");
		if (s.outcome != MRC_OUT_OK)
			sim_fail_script(run->world,
					"the channel ended badly for the sake of a path");
	}
}

static bool is_held_up(const struct run *run)
{
	const struct host *h = &run->world->hosts[0];

	return h->paused || h->down;
}

static void go_on(struct run *run, bool is_mild)
{
	struct sim_world *w = run->world;

	if (run->stage == CONNECTING && !is_held_up(run) && sim_is_all_good(w)) {
		run->stage = TALKING;
		talk(run);
	} else if (run->stage == TALKING && !is_held_up(run) && is_said(run)) {
		run->stage = ENDING;
		sim_close(w, run->channel, 0);
	} else if (run->stage == ENDING && sim_is_clean(w, NULL, 0) && sim_is_all_good(w) &&
		   w->now_ns >= run->quiet_ns) {
		run->stage = ENDED;
		if (is_mild)
			all_well(run);
	}
}

/* ---- the faults ---- */

static void hold_over(struct sim_world *w, void *context)
{
	struct run *run = context;

	/* In the order they began: each kind holds equally long, and only two can. */
	for (uint32_t i = 0; i < run->held_count; i++) {
		if (run->held[i]) {
			uint32_t handle = run->held[i];

			run->held[i] = 0;
			sim_fault_end(w, handle);
			return;
		}
	}
}

static void hold(struct run *run, const struct sim_fault_spec *spec, uint64_t span_ns)
{
	struct sim_world *w = run->world;

	run->held[run->held_count++] = sim_fault_begin(w, spec);
	run->quiet_ns = MRC_MAX(run->quiet_ns, w->now_ns + span_ns);
	sim_at(w, w->now_ns + span_ns, hold_over, run);
}

/* The frame that the next event brings; NULL: it brings none. */
static const struct frame *next_arrival(const struct sim_world *w)
{
	const struct timer *t = &w->heap[0];
	const struct frame *f;

	if (!w->heap_count || t->kind != T_ARRIVE)
		return NULL;
	f = w->pairs[t->a].paths[t->b].ends[t->c].out.air_head;
	return f && f->arrive_ns <= t->at_ns && !sim_is_blocked(w, t->a, t->b, t->c) ? f : NULL;
}

/* Its next frame is damaged on the wire. */
static bool damage(struct run *run, enum sim_fault kind)
{
	struct sim_world *w = run->world;
	const struct frame *f = next_arrival(w);
	struct sim_fault_spec spec = {.kind = kind, .peer = 1, .amount = 1000};
	uint32_t handle;

	if (!f || (kind == SIM_CORRUPT_BODY && !f->payload))
		return false;
	spec.rail = f->path;
	handle = sim_fault_begin(w, &spec);
	sim_step(w);
	sim_fault_end(w, handle);
	return true;
}

static bool is_direct_in_air(const struct sim_world *w, uint32_t side, uint32_t rail)
{
	const struct end *end = &w->pairs[0].paths[rail].ends[side];

	if (!end->is_up || end->out.is_dead)
		return false;
	for (const struct frame *f = end->out.air_head; f; f = f->next) {
		if (f->hdr.type == MRC_WIRE_FRAG && f->hdr.flags & MRC_WIRE_F_DIRECT)
			return true;
	}
	return false;
}

/* The sender gives the path up, and what is on the wire stays there until the last moment. */
static bool ghost(struct run *run, const struct strike *strike)
{
	struct sim_world *w = run->world;
	struct wire *wire = &w->pairs[0].paths[strike->rail].ends[strike->host].out;
	const struct sim_fault_spec spec = {.kind = SIM_RESET,
					    .host = strike->host,
					    .rail = strike->rail,
					    .peer = 1 - strike->host};

	if (run->is_ghost || !is_direct_in_air(w, strike->host, strike->rail))
		return false;
	run->is_ghost = true;
	run->ghost_side = strike->host;
	run->ghost_rail = strike->rail;
	run->ghost_serial = w->pairs[0].paths[strike->rail].ends[strike->host].serial;
	/* The silence keeps them out of what is sent while its sender gives up. */
	for (struct frame *f = wire->air_head; f; f = f->next) {
		f->is_loose = true;
		f->arrive_ns = w->now_ns + GHOST_NS;
	}
	sim_fault_begin(w, &spec);
	for (struct frame *f = wire->air_head; f; f = f->next)
		f->arrive_ns = w->now_ns + GHOST_NS;
	sim_timer_add(w, w->now_ns + GHOST_NS, T_ARRIVE, 0, strike->rail, strike->host, 0);
	return true;
}

/* Is the next event the one after which it cannot land any more? */
static bool is_last_moment(const struct run *run)
{
	const struct timer *t = &run->world->heap[0];
	uint32_t side = 1 - run->ghost_side;

	if (!run->world->heap_count || t->a != 0 || t->b != run->ghost_rail)
		return false;
	switch (t->kind) {
	case T_FENCED:
	case T_BROKEN:
		return t->c == side;
	case T_ANSWER:
		return side == 0;
	case T_AUTH:
		return side == 1;
	default:
		return false;
	}
}

static void ghost_lands(struct run *run)
{
	struct sim_world *w = run->world;
	struct wire *wire = &w->pairs[0].paths[run->ghost_rail].ends[run->ghost_side].out;

	run->is_ghost = false;
	for (struct frame *f = wire->air_head; f; f = f->next) {
		f->arrive_ns = w->now_ns;
		if (f->serial != run->ghost_serial) {
			f->arrive_ns += w->o.delay_ns;
			sim_timer_add(w, f->arrive_ns, T_ARRIVE, 0, run->ghost_rail,
				      run->ghost_side, 0);
		}
	}
	sim_arrive(w, 0, run->ghost_rail, run->ghost_side);
}

/* False: it cannot happen at this event. */
static bool strike_do(struct run *run, const struct strike *strike)
{
	struct sim_fault_spec spec = {.host = strike->host,
				      .rail = strike->rail,
				      .peer = 1 - strike->host};

	switch (strike->kind) {
	case K_RESET_ONE:
	case K_RESET_BOTH:
		spec.kind = SIM_RESET;
		spec.is_both = strike->kind == K_RESET_BOTH;
		sim_fault_begin(run->world, &spec);
		return true;
	case K_SILENCE:
		spec.kind = SIM_SILENCE;
		hold(run, &spec, SILENCE_NS);
		return true;
	case K_BODY:
		return damage(run, SIM_CORRUPT_BODY);
	case K_HEADER:
		return damage(run, SIM_CORRUPT_HDR);
	case K_GHOST:
		return ghost(run, strike);
	case K_CLIENT:
		spec.kind = SIM_CLIENT_DEATH;
		sim_fault_begin(run->world, &spec);
		return true;
	case K_RESTART:
		spec.kind = SIM_RESTART;
		hold(run, &spec, RESTART_NS);
		return true;
	case K_PAUSE:
		spec.kind = SIM_PAUSE;
		hold(run, &spec, PAUSE_NS);
		return true;
	case K_HANDOVER:
		spec.kind = SIM_HANDOVER;
		hold(run, &spec, RESTART_NS);
		return true;
	default:
		return false;
	}
}

/* ---- one run ---- */

struct tally {
	uint64_t runs, failed;
	struct sim_counts counts;
};

enum verdict { PASSED, FAILED, NOT_POSSIBLE };

/* What can happen at each event of the run that nothing befalls. */
struct plan {
	uint32_t events; /* of the exchange, to its end */
	uint32_t talk;   /* the first one with the channel */
	struct {
		bool is_arrival, has_body;
		uint32_t ghosts; /* bit side * MRC_PATHS_MAX + rail */
	} * at;
};

static void plan_note(struct plan *plan, const struct sim_world *w, uint32_t rails)
{
	const struct frame *f = next_arrival(w);
	uint32_t ghosts = 0;

	for (uint32_t i = 0; i < 2 * rails; i++) {
		if (is_direct_in_air(w, i / rails, i % rails))
			ghosts |= 1U << (i / rails * MRC_PATHS_MAX + i % rails);
	}
	plan->at[plan->events].is_arrival = f;
	plan->at[plan->events].has_body = f && f->payload;
	plan->at[plan->events].ghosts = ghosts;
}

static enum verdict run_once(const struct exchange *x, const struct strike *strikes, uint32_t count,
			     bool is_traced, struct plan *plan, struct tally *tally,
			     char failure[320])
{
	struct sim_counts counts;
	struct run run = {.exchange = x, .channel = SIM_NONE};
	enum verdict verdict = PASSED;
	bool is_mild = true;
	uint32_t next = 0;
	struct sim_options o;
	uint64_t by_ns = 0;

	options_fill(x, &o);
	run.world = sim_new(&o);
	if (is_traced)
		sim_trace_on(run.world, TRACE_LINES);
	for (uint32_t i = 0; i < count; i++)
		is_mild = is_mild && kinds[strikes[i].kind].is_mild;
	for (uint32_t n = 0; run.stage != ENDED && !sim_failure(run.world); n++) {
		while (next < count && strikes[next].at == n) {
			if (!strike_do(&run, &strikes[next++])) {
				verdict = NOT_POSSIBLE;
				break;
			}
		}
		if (verdict == NOT_POSSIBLE)
			break;
		if (run.is_ghost && is_last_moment(&run))
			ghost_lands(&run);
		if (plan) {
			plan_note(plan, run.world, x->rails);
			plan->events = n + 1;
			if (run.stage == CONNECTING)
				plan->talk = n;
		}
		if (!sim_step(run.world))
			break;
		go_on(&run, is_mild);
		if (next == count && !by_ns)
			by_ns = MRC_MAX(run.quiet_ns, run.world->now_ns) + ENDED_NS;
		if ((by_ns && run.world->now_ns > by_ns) || n >= EVENTS_LIMIT) {
			char why[160] = "";

			sim_is_clean(run.world, why, sizeof(why));
			sim_fail(run.world, "progress", "the exchange does not end; stage %d; %s",
				 run.stage, why);
		}
	}
	if (next < count) /* it ended before */
		verdict = NOT_POSSIBLE;
	if (sim_failure(run.world)) {
		verdict = FAILED;
		snprintf(failure, 320, "%s", sim_failure(run.world));
	}
	sim_counts(run.world, &counts);
#define X(name) tally->counts.name += counts.name;
	SIM_COUNTS(X)
#undef X
	tally->runs += verdict != NOT_POSSIBLE;
	tally->failed += verdict == FAILED;
	if (is_traced) {
		sim_trace_print(run.world, stdout);
		sim_report(run.world, stdout);
	}
	sim_free(run.world);
	return verdict;
}

/* ---- all of them ---- */

static void case_print(const struct exchange *x, const struct strike *strikes, uint32_t count)
{
	printf("%s/%u/%s/%llu", x->is_verbs ? "verbs" : "tcp", x->rails,
	       x->is_short ? "short" : "full", (unsigned long long)x->seed);
	for (uint32_t i = 0; i < count; i++)
		printf("%c%s.%c%u@%u", i ? '+' : ':', kinds[strikes[i].kind].name,
		       'a' + (int)strikes[i].host, strikes[i].rail, strikes[i].at);
}

static void one(struct tally *tally, const struct exchange *x, const struct strike *strikes,
		uint32_t count)
{
	char failure[320] = "";
	enum verdict verdict;

	if (tally->failed >= FAILURES_MAX)
		return;
	verdict = run_once(x, strikes, count, false, NULL, tally, failure);
	if (verdict != FAILED)
		return;
	printf("FAILED %s\nagain with: mrc-sim --exhaustive --case ", failure);
	case_print(x, strikes, count);
	printf("\n");
	fflush(stdout);
}

static bool is_possible(const struct plan *plan, const struct strike *s)
{
	switch (s->kind) {
	case K_BODY:
		return plan->at[s->at].has_body;
	case K_HEADER:
		return plan->at[s->at].is_arrival;
	case K_GHOST:
		return plan->at[s->at].ghosts >> (s->host * MRC_PATHS_MAX + s->rail) & 1;
	default:
		return true;
	}
}

/* All places of the kind, one after the other; false: that was the last. */
static bool place_next(const struct exchange *x, struct strike *s)
{
	if (kinds[s->kind].is_of_rail && ++s->rail < x->rails)
		return true;
	s->rail = 0;
	if (kinds[s->kind].is_of_host && ++s->host < 2)
		return true;
	s->host = 0;
	return false;
}

static void plan_make(const struct exchange *x, struct tally *tally, struct plan *plan)
{
	char failure[320] = "";

	*plan = (struct plan){.at = calloc(EVENTS_LIMIT + 1, sizeof(*plan->at))};
	if (!plan->at)
		abort();
	if (run_once(x, NULL, 0, false, plan, tally, failure) == FAILED) {
		printf("FAILED %s\nagain with: mrc-sim --exhaustive --case ", failure);
		case_print(x, NULL, 0);
		printf("\n");
	}
}

/* Each kind at each place before each event. */
static void singles(const struct exchange *x, struct tally *tally)
{
	uint64_t before = tally->runs;
	struct plan plan;

	plan_make(x, tally, &plan);
	for (uint32_t n = 0; n < plan.events && tally->failed < FAILURES_MAX; n++) {
		for (uint32_t k = 0; k < K_COUNT; k++) {
			struct strike s = {.kind = (enum kind)k, .at = n};

			do {
				if (is_possible(&plan, &s))
					one(tally, x, &s, 1);
			} while (place_next(x, &s));
		}
	}
	printf("%-5s %u rails, seed %llu, one fault at each of %u events: %llu runs\n",
	       x->is_verbs ? "verbs" : "tcp", x->rails, (unsigned long long)x->seed, plan.events,
	       (unsigned long long)(tally->runs - before));
	fflush(stdout);
	free(plan.at);
}

/*
 * Every pair of events once the channel is there. `turns` pairs of kinds and
 * places for each, another part of all there are for each next pair of events;
 * 0: all.
 */
static void pairs(const struct exchange *x, uint32_t turns, struct tally *tally)
{
	uint64_t before = tally->runs;
	struct strike all[K_COUNT * 2 * MRC_PATHS_MAX];
	uint32_t count = 0;
	uint64_t turn = 0;
	struct plan plan;

	plan_make(x, tally, &plan);
	for (uint32_t k = 0; k < K_COUNT; k++) {
		struct strike s = {.kind = (enum kind)k};

		do
			all[count++] = s;
		while (place_next(x, &s));
	}
	turns = turns ? turns : count * count;
	for (uint32_t n = plan.talk; n < plan.events; n++) {
		for (uint32_t m = n + 1; m < plan.events; m++) {
			for (uint32_t i = 0; i < turns && tally->failed < FAILURES_MAX; i++) {
				struct strike s[2] = {all[turn % count], all[turn / count % count]};

				turn++;
				s[0].at = n;
				s[1].at = m;
				if (is_possible(&plan, &s[0]))
					one(tally, x, s, 2);
			}
		}
	}
	printf("%-5s %u rails, seed %llu, two faults, at each pair of %u events: %llu runs\n",
	       x->is_verbs ? "verbs" : "tcp", x->rails, (unsigned long long)x->seed,
	       plan.events - plan.talk, (unsigned long long)(tally->runs - before));
	fflush(stdout);
	free(plan.at);
}

/* ---- command ---- */

static bool case_parse(const char *text, struct exchange *x, struct strike *strikes,
		       uint32_t *count_out)
{
	char kind_of_rail[8];
	char shape[8];
	unsigned long long seed;
	int len = 0;

	if (sscanf(text, "%7[^/]/%u/%7[^/]/%llu%n", kind_of_rail, &x->rails, shape, &seed, &len) !=
	    4)
		return false;
	x->is_verbs = strcmp(kind_of_rail, "verbs") == 0;
	x->is_short = strcmp(shape, "short") == 0;
	x->seed = seed;
	if (x->rails < 1 || x->rails > MRC_PATHS_MAX ||
	    (!x->is_verbs && strcmp(kind_of_rail, "tcp") != 0) ||
	    (!x->is_short && strcmp(shape, "full") != 0))
		return false;
	*count_out = 0;
	for (text += len; *text; text += len) {
		struct strike *s = &strikes[*count_out];
		char name[32];
		char host;

		if (*count_out == STRIKES_MAX || sscanf(text, "%*1[:+]%31[^.].%c%u@%u%n", name,
							&host, &s->rail, &s->at, &len) != 4)
			return false;
		s->host = (uint32_t)(host - 'a');
		s->kind = K_COUNT;
		for (uint32_t k = 0; k < K_COUNT; k++) {
			if (!strcmp(kinds[k].name, name))
				s->kind = (enum kind)k;
		}
		if (s->kind == K_COUNT || s->host > 1 || s->rail >= x->rails ||
		    (*count_out && s->at < s[-1].at))
			return false;
		(*count_out)++;
	}
	return true;
}

static int one_case(const char *text)
{
	struct strike strikes[STRIKES_MAX];
	char failure[320] = "";
	struct exchange x = {0};
	struct tally tally = {0};
	enum verdict verdict;
	uint32_t count;

	if (!case_parse(text, &x, strikes, &count)) {
		fprintf(stderr, "mrc-sim: --case %s: not a case; copy what a failure printed\n",
			text);
		return 2;
	}
	verdict = run_once(&x, strikes, count, true, NULL, &tally, failure);
	if (verdict == FAILED)
		printf("FAILED %s\n", failure);
	if (verdict == NOT_POSSIBLE)
		printf("at this event it cannot happen, or the exchange is over before\n");
	return verdict == FAILED;
}

static void usage(FILE *out)
{
	fprintf(out, "usage: mrc-sim --exhaustive [--large [--seeds N] | --short | --case CASE]\n"
		     "\n"
		     "A short exchange of two hosts, with one fault before its n-th event for "
		     "every n, each\n"
		     "kind at each place, and with two faults for every pair of events. Exits 1 "
		     "when a run\n"
		     "failed; each failure prints the command that runs just that one.\n"
		     "\n"
		     "  --large     1 to 3 rails of both kinds, more kinds of pairs, N seeds (3)\n"
		     "  --short     the short exchange only: for slow builds\n"
		     "  --case ...  that one, with its trace\n"
		     "\n"
		     "faults:");
	for (uint32_t k = 0; k < K_COUNT; k++)
		fprintf(out, " %s", kinds[k].name);
	fprintf(out, "\n");
}

int sim_exhaust_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"large", no_argument, NULL, 'l'},       {"short", no_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'}, {"case", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
	};
	struct tally tally = {0};
	bool is_large = false;
	bool is_short = false;
	uint64_t seeds = 3;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			is_large = true;
			break;
		case 's':
			is_short = true;
			break;
		case 'n':
			seeds = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			return one_case(optarg);
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc || seeds == 0) {
		usage(stderr);
		return 2;
	}
	for (uint64_t seed = 1; seed <= (is_large ? seeds : 1); seed++) {
		for (uint32_t i = 0; i < 6; i++) {
			struct exchange x = {.is_verbs = i % 2 == 0,
					     .rails = 1 + i / 2,
					     .is_short = is_short,
					     .seed = seed};

			singles(&x, &tally);
			x.is_short = true;
			if (is_large)
				pairs(&x, x.rails == 2 ? 0 : TURNS_LARGE, &tally);
			else
				pairs(&x, is_short ? 1 : TURNS, &tally);
		}
	}
	printf("in all:");
#define X(name) printf(" " #name " %llu", (unsigned long long)tally.counts.name);
	SIM_COUNTS(X)
#undef X
	printf("\nmrc-sim: %llu exchanges, %llu failed\n", (unsigned long long)tally.runs,
	       (unsigned long long)tally.failed);
	return tally.failed != 0;
}
