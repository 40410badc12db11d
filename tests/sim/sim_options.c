/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_base.h"

#define ALL_FAULTS ((1ULL << SIM_FAULT_COUNT) - 1)

static const struct {
	const char *name;
	const char *help;
	size_t at;
} fields[] = {
#define X(name, help) {#name, help, offsetof(struct sim_options, name)},
	SIM_OPTIONS(X)
#undef X
};

static const struct {
	const char *name;
	const char *help;
} faults[SIM_FAULT_COUNT] = {
#define X(id, name, help) {name, help},
	SIM_FAULTS(X)
#undef X
};

const char *sim_fault_name(enum sim_fault fault)
{
	return (unsigned)fault < SIM_FAULT_COUNT ? faults[fault].name : "?";
}

enum sim_fault sim_fault_find(const char *name)
{
	for (uint32_t f = 0; f < SIM_FAULT_COUNT; f++) {
		if (!strcmp(faults[f].name, name))
			return (enum sim_fault)f;
	}
	return SIM_FAULT_COUNT;
}

void sim_options_default(struct sim_options *options_out)
{
	*options_out = (struct sim_options){
		.hosts = 2,
		.rails = 2,
		.delay_ns = 5 * MRC_US,
		.rate = 1000000000,
		.clients = 1,
		.len_max = 1 << 20,
		.slots = 8,
		.window = 64,
		.ring_bytes = 64 * 1024,
		.arena_bytes = 8 << 20,
		.frag_bytes = 4096,
		.eager_bytes = 1024,
		.share = 64,
		.qp_timeout = 14,
		.qp_retry = 6,
		.beside = 1,
		.fence_ns = 500 * MRC_US,
		.records = 256,
		.holds = 64,
		.ranges = 4096,
		.channels_max = 16,
		.window_bytes_min = 16 * 1024,
		.window_bytes_max = 256 * 1024,
		.suspect_floor_ns = MRC_MS,
		.suspect_ceiling_ns = 200 * MRC_MS,
		.probe_interval_ns = 20 * MRC_MS,
		.heal_ns = 30 * MRC_S,
	};
}

void sim_options_draw(uint64_t seed, struct sim_options *options_out)
{
	struct mrc_rng rng = {.state = seed ^ 0x5eedULL};
	struct sim_options o;
	uint64_t tiny;

#define DRAW(n) (mrc_rng_next(&rng) % (n))
	sim_options_default(&o);
	o.seed = seed;
	o.hosts = DRAW(10) < 7 ? 2 : DRAW(2) ? 3 : 4;
	o.rails = 1 + DRAW(4);
	o.verbs = DRAW(3) == 0 ? 0 : DRAW(3) ? (1ULL << o.rails) - 1 : DRAW(1ULL << o.rails);
	o.unequal = DRAW(4) == 0;
	o.delay_ns = 2000ULL << DRAW(7);
	o.rate = 100000000ULL << DRAW(5);
	o.fast_host = DRAW(5) ? 0 : 1 + DRAW(o.hosts);
	o.clients = 1 + DRAW(3);
	o.pipes = 1 + DRAW(2 * o.hosts);
	o.messages = (20 + DRAW(200)) * 2 / o.hosts;
	o.len_max = 64ULL << DRAW(11);
	o.slots = 2 + DRAW(12);
	tiny = DRAW(8); /* now and then the tightest there is */
	o.window = tiny == 0 ? 1 + DRAW(2) : 1ULL << (1 + DRAW(6));
	o.ring_bytes = tiny == 1 ? 64 + DRAW(200) : 4096ULL << DRAW(4);
	o.arena_bytes = tiny == 2 ? o.len_max : o.len_max * (1 + DRAW(12));
	o.think_ns = 1000ULL << DRAW(12);
	o.unordered_permille = DRAW(4) ? 0 : DRAW(1001);
	o.reject_permille = DRAW(3) ? 0 : DRAW(400);
	o.refuse_permille = DRAW(4) ? 0 : DRAW(500);
	o.early_permille = DRAW(2) ? 0 : DRAW(1001);
	o.cancel_permille = DRAW(3) ? 0 : DRAW(300);
	o.key_ns = DRAW(2) ? 0 : (20 * MRC_US) << DRAW(8);
	o.close_permille = DRAW(3) ? 0 : DRAW(600);
	o.frag_bytes = DRAW(4) ? 4096 : 1024ULL << DRAW(4);
	o.holds = DRAW(4) ? 64 : 1 + DRAW(8);
	o.ranges = DRAW(6) ? 4096 : 16 + DRAW(64);
	o.fence_slow_permille = DRAW(2) ? 0 : 250;
	o.share = DRAW(3) ? 64 : 8 + DRAW(24);
	o.records = DRAW(4) ? 256 : 64;
	o.channels_max = 2 * o.pipes + 4;
	o.faults = DRAW(6) == 0 ? 0 : DRAW(30);
	/* Each kind is in with one chance in two, or only one, or all. */
	o.fault_kinds = DRAW(ALL_FAULTS + 1);
	if (DRAW(4) == 0)
		o.fault_kinds = 1ULL << DRAW(SIM_FAULT_COUNT);
	if (DRAW(8) == 0)
		o.fault_kinds = ALL_FAULTS;
	if (o.fault_kinds == 0)
		o.fault_kinds = 1;
	o.fault_gap_ns = (500 * MRC_US) << DRAW(6);
	o.fault_span_ns = (2 * MRC_MS) << DRAW(9);
	o.carrier_missed_permille = DRAW(2) ? 125 : 0;
	o.window_bytes_max = (64 * 1024ULL) << DRAW(3);
	o.proof_bytes = 4 * o.window_bytes_max;
	if (DRAW(4) == 0) {
		/* A storm: queue pairs that die one after the other, full of writes. */
		o.verbs = (1ULL << o.rails) - 1;
		o.delay_ns = 16000ULL << DRAW(4);
		o.len_max = 4096ULL << DRAW(5);
		o.arena_bytes = o.len_max * (4 + DRAW(12));
		o.think_ns = 1000ULL << DRAW(7);
		o.messages *= 3;
		o.key_ns = 0;
		o.faults = 20 + DRAW(40);
		o.fault_kinds = 1ULL << SIM_SILENCE | 1ULL << SIM_SILENCE_ONE_WAY |
				1ULL << SIM_RESET | 1ULL << SIM_AMBIGUOUS | 1ULL << SIM_RTT_JUMP |
				(o.fault_kinds & (1ULL << SIM_CLIENT_DEATH | 1ULL << SIM_PAUSE |
						  1ULL << SIM_CORRUPT_BODY | 1ULL << SIM_HANDOVER));
		o.fault_gap_ns = (500 * MRC_US) << DRAW(3);
		o.fault_span_ns = (2 * MRC_MS) << DRAW(4);
	}
	if (DRAW(6) == 0) {
		/* Many words: short lives of channels, and answers that are lost with their paths. */
		o.messages = 40 + DRAW(40);
		o.close_permille = 700;
		o.close_after = 1 + DRAW(8);
		o.cancel_permille = DRAW(2) ? 300 : 0;
		o.early_permille = DRAW(1001);
		o.think_ns = 1000ULL << DRAW(8);
		o.pipes = 2 * o.hosts + DRAW(2 * o.hosts);
		o.channels_max = 2 * o.pipes + 4;
		o.faults = 20 + DRAW(40);
		o.fault_kinds |= 1ULL << SIM_AMBIGUOUS | 1ULL << SIM_RESET;
		o.fault_gap_ns = (500 * MRC_US) << DRAW(3);
		o.fault_span_ns = (2 * MRC_MS) << DRAW(4);
	}
	o.direct_bytes = DRAW(3) ? 0 : 64ULL << DRAW(6);
	switch (DRAW(4)) {
	case 0: /* its own timers are as quick as ours */
		o.qp_timeout = 8;
		o.qp_retry = 2;
		break;
	case 1:
		o.qp_retry = 7;
		break;
	default:
		break;
	}
	o.beside = DRAW(4) != 0;
	o.turn_ns = DRAW(3) ? 0 : 1000ULL << DRAW(6);
	o.unchecked_permille = DRAW(4) ? 0 : DRAW(1001);
	o.bucket_bytes = DRAW(6) ? 0 : 16384ULL << DRAW(6);
	o.old_host = DRAW(4) ? 0 : 1 + DRAW(o.hosts);
	if (DRAW(6) == 0) {
		/* Daemons that hand over again and again, with large messages half way. */
		o.fault_kinds =
			1ULL << SIM_HANDOVER |
			(DRAW(2) ? o.fault_kinds : 1ULL << SIM_SILENCE | 1ULL << SIM_CLIENT_DEATH);
		o.len_max = 16384ULL << DRAW(3);
		o.arena_bytes = o.len_max * (4 + DRAW(12));
		o.faults = 20 + DRAW(40);
		o.fault_gap_ns = MRC_MS << DRAW(4);
		o.fault_span_ns = (2 * MRC_MS) << DRAW(4);
	}
#undef DRAW
	*options_out = o;
}

static uint64_t *field_at(struct sim_options *o, size_t i)
{
	return (uint64_t *)(void *)((char *)o + fields[i].at);
}

static int kinds_parse(const char *text, uint64_t *kinds_out)
{
	char copy[512];
	uint64_t kinds = 0;
	char *save;

	if (!strcmp(text, "none") || !strcmp(text, "all")) {
		*kinds_out = text[0] == 'a' ? ALL_FAULTS : 0;
		return 0;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *name = strtok_r(copy, "+", &save); name; name = strtok_r(NULL, "+", &save)) {
		enum sim_fault fault = sim_fault_find(name);

		if (fault == SIM_FAULT_COUNT)
			return -EINVAL;
		kinds |= 1ULL << fault;
	}
	*kinds_out = kinds;
	return 0;
}

static const char *reason_bad(const struct sim_options *o)
{
	if (o->hosts < 2 || o->hosts > 1024)
		return "hosts must be 2 to 1024";
	if (o->rails < 1 || o->rails > MRC_PATHS_MAX)
		return "rails must be 1 to 16";
	if (o->window < 1 || o->window > 1024 || o->window & (o->window - 1))
		return "window must be a power of two up to 1024";
	if (o->rate == 0 || o->clients == 0 || o->slots == 0 || o->ring_bytes == 0)
		return "rate, clients, slots and ring_bytes must not be 0";
	if (o->arena_bytes < o->len_max)
		return "arena_bytes must not be below len_max";
	return NULL;
}

int sim_options_set(struct sim_options *options, const char *text, char *why, size_t why_len)
{
	char copy[4096];
	const char *bad;
	char *save;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *pair = strtok_r(copy, ", \n", &save); pair;
	     pair = strtok_r(NULL, ", \n", &save)) {
		char *value = strchr(pair, '=');
		char *end;
		size_t i = 0;

		if (value)
			*value++ = 0;
		while (i < MRC_ARRAY_LEN(fields) && strcmp(fields[i].name, pair) != 0)
			i++;
		if (!value || i == MRC_ARRAY_LEN(fields)) {
			snprintf(why, why_len, "'%s' is not an option, or has no value", pair);
			return -EINVAL;
		}
		if (!strcmp(pair, "fault_kinds")) {
			if (kinds_parse(value, &options->fault_kinds)) {
				snprintf(why, why_len, "'%s' has an unknown kind of fault", value);
				return -EINVAL;
			}
			continue;
		}
		errno = 0;
		*field_at(options, i) = strtoull(value, &end, 0);
		if (errno || end == value || *end || *value == '-') {
			snprintf(why, why_len, "'%s' is not a number, for %s", value, pair);
			return -EINVAL;
		}
	}
	bad = reason_bad(options);
	if (bad) {
		snprintf(why, why_len, "%s", bad);
		return -EINVAL;
	}
	return 0;
}

void sim_options_print(const struct sim_options *options, const struct sim_options *base, FILE *out)
{
	struct sim_options o = *options;
	struct sim_options b = base ? *base : o;
	const char *comma = "";

	for (size_t i = 0; i < MRC_ARRAY_LEN(fields); i++) {
		const char *plus = "";

		if (base && *field_at(&o, i) == *field_at(&b, i))
			continue;
		fprintf(out, "%s%s=", comma, fields[i].name);
		comma = ",";
		if (strcmp(fields[i].name, "fault_kinds") != 0) {
			fprintf(out, "%llu", (unsigned long long)*field_at(&o, i));
			continue;
		}
		if (o.fault_kinds == 0 || o.fault_kinds == ALL_FAULTS)
			fprintf(out, "%s", o.fault_kinds ? "all" : "none");
		for (uint32_t f = 0; f < SIM_FAULT_COUNT && o.fault_kinds != ALL_FAULTS; f++) {
			if (o.fault_kinds >> f & 1) {
				fprintf(out, "%s%s", plus, faults[f].name);
				plus = "+";
			}
		}
	}
}

void sim_options_help(FILE *out)
{
	fprintf(out, "\noptions (--set name=value,name=value):\n");
	for (size_t i = 0; i < MRC_ARRAY_LEN(fields); i++)
		fprintf(out, "  %-24s %s\n", fields[i].name, fields[i].help);
	fprintf(out, "\nfaults (--set fault_kinds=name+name):\n");
	for (uint32_t f = 0; f < SIM_FAULT_COUNT; f++)
		fprintf(out, "  %-24s %s\n", faults[f].name, faults[f].help);
}
