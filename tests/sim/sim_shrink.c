/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_shrink.h"

#include <string.h>
#include <time.h>

#include "sim_world.h"

#define SECONDS_MAX 60

struct shrink {
	struct sim_options best;
	struct sim_counts counts;
	char check[64]; /* the checker that fired */
	uint64_t tries;
	time_t until;
};

static void check_name(const char *failure, char out[64])
{
	size_t len = failure ? strcspn(failure, ":") : 0;

	if (len > 63)
		len = 63;
	memset(out, 0, 64);
	if (failure)
		memcpy(out, failure, len);
}

/* Runs it: the checker's name, empty when none fired. */
static void fails_how(const struct sim_options *o, char out[64], struct sim_counts *counts_out)
{
	struct sim_world *world = sim_new(o);

	sim_run(world);
	check_name(sim_failure(world), out);
	sim_counts(world, counts_out);
	sim_free(world);
}

/* Keep it when it fails alike. */
static bool try(struct shrink *s, const struct sim_options *o)
{
	char why[128];
	char check[64];
	struct sim_counts counts;
	struct sim_options copy = *o;

	if (!memcmp(o, &s->best, sizeof(*o)) || time(NULL) >= s->until)
		return false;
	if (sim_options_set(&copy, "", why, sizeof(why)))
		return false; /* out of bounds */
	s->tries++;
	fails_how(o, check, &counts);
	if (strcmp(check, s->check) != 0)
		return false;
	s->best = *o;
	s->counts = counts;
	return true;
}

static bool try_field(struct shrink *s, uint64_t *field, uint64_t value, struct sim_options *o)
{
	uint64_t old = *field;

	if (value >= old)
		return false;
	*field = value;
	if (try(s, o))
		return true;
	*field = old;
	return false;
}

/* As small as it gets: its least value, else by halves, else one less. */
static bool shrink_field(struct shrink *s, size_t offset, uint64_t least)
{
	struct sim_options o = s->best;
	uint64_t *field = (uint64_t *)(void *)((char *)&o + offset);
	bool is_smaller = try_field(s, field, least, &o);

	while (*field > least && try_field(s, field, least + (*field - least) / 2, &o))
		is_smaller = true;
	while (*field > least && *field - least < 32 && try_field(s, field, *field - 1, &o))
		is_smaller = true;
	return is_smaller;
}

static bool shrink_kinds(struct shrink *s)
{
	bool is_smaller = false;

	for (uint32_t f = 0; f < SIM_FAULT_COUNT; f++) {
		struct sim_options o = s->best;

		if (o.fault_kinds & ~(1ULL << f) && o.fault_kinds >> f & 1) {
			o.fault_kinds &= ~(1ULL << f);
			is_smaller = try(s, &o) || is_smaller;
		}
	}
	return is_smaller;
}

/* Other draws may fail with less: a few seeds of the same options. */
static bool shrink_seed(struct shrink *s)
{
	uint64_t events = s->counts.events;
	uint64_t seed = s->best.seed;

	for (uint64_t i = 1; i <= 16; i++) {
		struct sim_options o = s->best;
		struct shrink old = *s;

		o.seed = seed + i * 1000003;
		if (try(s, &o) && s->counts.events >= events) {
			old.tries = s->tries;
			*s = old;
		}
		events = s->counts.events < events ? s->counts.events : events;
	}
	return s->best.seed != seed;
}

void sim_shrink(const struct sim_options *options, FILE *out)
{
	static const struct {
		size_t offset;
		uint64_t least;
	} order[] = {
#define FIELD(name, least) {offsetof(struct sim_options, name), least}
		FIELD(hosts, 2),
		FIELD(proof_bytes, 0),
		FIELD(faults, 0),
		FIELD(pipes, 1),
		FIELD(rails, 1),
		FIELD(messages, 1),
		FIELD(clients, 1),
		FIELD(fast_host, 0),
		FIELD(old_host, 0),
		FIELD(unequal, 0),
		FIELD(bucket_bytes, 0),
		FIELD(unordered_permille, 0),
		FIELD(unchecked_permille, 0),
		FIELD(reject_permille, 0),
		FIELD(refuse_permille, 0),
		FIELD(early_permille, 0),
		FIELD(close_permille, 0),
		FIELD(carrier_missed_permille, 0),
		FIELD(verbs, 0),
		FIELD(len_max, 64),
		FIELD(window, 1),
		FIELD(slots, 1),
		FIELD(think_ns, 0),
		FIELD(fault_span_ns, 1000),
#undef FIELD
	};
	struct shrink s = {.best = *options, .until = time(NULL) + SECONDS_MAX};
	struct sim_options drawn;
	bool is_smaller = true;

	fails_how(options, s.check, &s.counts);
	if (!s.check[0])
		return;
	while (is_smaller && time(NULL) < s.until) {
		is_smaller = shrink_kinds(&s);
		for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
			is_smaller =
				shrink_field(&s, order[i].offset, order[i].least) || is_smaller;
		is_smaller = shrink_seed(&s) || is_smaller;
	}
	sim_options_draw(s.best.seed, &drawn);
	fprintf(out,
		"smallest of %llu tries that fails so (%s, %llu events):\n  mrc-sim --seed %llu "
		"--set ",
		(unsigned long long)s.tries, s.check, (unsigned long long)s.counts.events,
		(unsigned long long)s.best.seed);
	sim_options_print(&s.best, &drawn, out);
	fprintf(out, "\n");
}
