/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_conf_address.h"
#include "mrcd_conf_load.h"

/* One rule between two numbers: `a` is at least `factor` times `b`. */
struct rule {
	enum mrcd_conf_section a_section;
	const char *a;
	enum mrcd_conf_section b_section;
	const char *b;
	uint64_t factor;
};

static const struct rule rules[] = {
	/* Half of the ring may still be held by the program when the next message wants in. */
	{MRCD_SECTION_CLIENTS, "landing-ring", MRCD_SECTION_LIMITS, "eager-max", 2},
	{MRCD_SECTION_CLIENTS, "landing-arena", MRCD_SECTION_CLIENTS, "landing-ring", 1},
	/* Else the window would never take the largest fragment. */
	{MRCD_SECTION_LIMITS, "path-window-min", MRCD_SECTION_LIMITS, "frag-max", 1},
	{MRCD_SECTION_LIMITS, "path-window-max", MRCD_SECTION_LIMITS, "path-window-min", 1},
	{MRCD_SECTION_TIMERS, "suspect-ceiling", MRCD_SECTION_TIMERS, "suspect-floor", 1},
	{MRCD_SECTION_TIMERS, "peer-silent", MRCD_SECTION_TIMERS, "suspect-ceiling", 1},
	{MRCD_SECTION_TIMERS, "backoff-max", MRCD_SECTION_TIMERS, "backoff-min", 1},
};

static uint64_t value_of(const struct mrcd_conf *conf, const struct mrcd_conf_key *key)
{
	const char *at = (const char *)conf + key->offset;
	uint64_t v64;
	uint32_t v32;

	if (key->size_bytes == sizeof(v32)) {
		__builtin_memcpy(&v32, at, sizeof(v32));
		return v32;
	}
	MRC_ASSERT(key->size_bytes == sizeof(v64));
	__builtin_memcpy(&v64, at, sizeof(v64));
	return v64;
}

void mrcd_conf_check_limits(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *clients,
			    const struct mrcd_conf_fields *limits,
			    const struct mrcd_conf_fields *timers)
{
	const struct mrcd_conf_fields *fields_of[MRCD_SECTION_COUNT] = {
		[MRCD_SECTION_CLIENTS] = clients,
		[MRCD_SECTION_LIMITS] = limits,
		[MRCD_SECTION_TIMERS] = timers,
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rules); i++) {
		const struct rule *rule = &rules[i];
		const struct mrcd_conf_key *a = mrcd_conf_key_find(rule->a_section, rule->a);
		const struct mrcd_conf_key *b = mrcd_conf_key_find(rule->b_section, rule->b);
		char a_text[MRCD_UNIT_TEXT_BYTES], b_text[MRCD_UNIT_TEXT_BYTES];
		char bound[MRCD_UNIT_TEXT_BYTES];
		uint64_t a_value, b_value;
		enum mrcd_unit unit;

		MRC_ASSERT(a && b && mrcd_conf_kind_unit(a->kind, &unit));
		a_value = value_of(ld->conf, a);
		b_value = value_of(ld->conf, b);
		if (a_value >= b_value * rule->factor)
			continue;
		mrcd_unit_format(unit, a_value, a_text);
		mrcd_unit_format(unit, b_value, b_text);
		/* Blame what was written, not the default that it does not go with. */
		if (mrcd_conf_fields_given(fields_of[a->section], a->section, a->name))
			mrcd_conf_wrong(ld,
					mrcd_conf_fields_line(fields_of[a->section], a->section,
							      a->name),
					mrcd_conf_section_written(a->section), a->name,
					"%s is less than %s%s.%s (%s); allowed: at least %s",
					a_text, rule->factor == 2 ? "twice " : "",
					mrcd_conf_section_written(b->section), b->name, b_text,
					mrcd_unit_format(unit, b_value * rule->factor, bound));
		else
			mrcd_conf_wrong(ld,
					mrcd_conf_fields_line(fields_of[b->section], b->section,
							      b->name),
					mrcd_conf_section_written(b->section), b->name,
					"%s is more than %s%s.%s (%s); allowed: at most %s", b_text,
					rule->factor == 2 ? "half of " : "",
					mrcd_conf_section_written(a->section), a->name, a_text,
					mrcd_unit_format(unit, a_value / rule->factor, bound));
	}
}

void mrcd_conf_check_metrics(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *metrics)
{
	const struct mrcd_conf_metrics *conf = &ld->conf->metrics;

	if (!conf->is_enabled || conf->is_public || mrcd_address_is_loopback(conf->address))
		return;
	mrcd_conf_wrong(ld, mrcd_conf_fields_line(metrics, MRCD_SECTION_METRICS, "address"),
			"metrics", "address",
			"'%s' can be reached from other hosts, who would be shown all names of "
			"rails and peers; allowed: 127.0.0.1, ::1, or any with public: true",
			conf->address);
}
