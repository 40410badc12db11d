/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "mrcd_conf_load.h"

static void quota_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
		       const char *prefix, struct mrcd_conf_quota *quota)
{
	const struct mrcd_conf_client_limits *clients = &ld->conf->clients;
	char needed[MRCD_UNIT_TEXT_BYTES], given[MRCD_UNIT_TEXT_BYTES];
	struct mrcd_conf_fields fields;

	mrcd_conf_fields_load(ld, node, node->line, MRCD_SECTION_QUOTA, prefix, quota, &fields);
	mrcd_conf_who_load(ld, &fields, MRCD_SECTION_QUOTA, prefix, "users", "groups", &quota->who);
	if (quota->landing_arena_bytes && quota->landing_arena_bytes < clients->landing_ring_bytes)
		mrcd_conf_wrong(
			ld, mrcd_conf_fields_line(&fields, MRCD_SECTION_QUOTA, "landing-arena"),
			prefix, "landing-arena",
			"%s is less than clients.landing-ring (%s); allowed: at least as much",
			mrcd_unit_format(MRCD_UNIT_SIZE, quota->landing_arena_bytes, given),
			mrcd_unit_format(MRCD_UNIT_SIZE, clients->landing_ring_bytes, needed));
	/* Nobody would ever come to what is written below an entry for everybody. */
	for (uint32_t i = 0; i < ld->conf->quota_count; i++) {
		if (!ld->conf->quotas[i].who.is_open)
			continue;
		mrcd_conf_wrong(ld, fields.line, prefix, NULL,
				"comes after quotas[%u], which is for everybody; allowed: that one "
				"as the last",
				i);
		break;
	}
}

void mrcd_conf_quotas_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top)
{
	struct mrcd_conf *conf = ld->conf;
	const struct mrcd_conf_node *node;
	uint32_t count;

	node = mrcd_conf_fields_list(ld, top, MRCD_SECTION_TOP, "", "quotas", &count);
	conf->quotas = calloc(MRC_MAX(count, 1U), sizeof(*conf->quotas));
	if (!conf->quotas) {
		ld->is_out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++, node = node->next) {
		char prefix[MRCD_CONF_PREFIX_BYTES];

		snprintf(prefix, sizeof(prefix), "quotas[%u]", i);
		quota_load(ld, node, prefix, &conf->quotas[i]);
		conf->quota_count = i + 1;
	}
}

/* ---- asking ---- */

#define OR(value, otherwise) ((value) ? (value) : (otherwise))

void mrcd_conf_quota(const struct mrcd_conf *conf, const struct mrcd_creds *creds,
		     struct mrcd_conf_quota *quota_out)
{
	const struct mrcd_conf_client_limits *clients = &conf->clients;
	struct mrcd_conf_quota *quota = quota_out;

	*quota = (struct mrcd_conf_quota){.who.is_open = true};
	for (uint32_t i = 0; i < conf->quota_count; i++) {
		if (!mrcd_conf_who_has(&conf->quotas[i].who, creds))
			continue;
		*quota = conf->quotas[i];
		break;
	}
	quota->clients_max = OR(quota->clients_max, clients->clients_max);
	quota->channels_max = OR(quota->channels_max, clients->channels_max);
	quota->sends_max = OR(quota->sends_max, clients->sends_max);
	quota->send_arena_bytes = OR(quota->send_arena_bytes, clients->send_arena_bytes);
	quota->landing_arena_bytes = OR(quota->landing_arena_bytes, clients->landing_arena_bytes);
	quota->weight = OR(quota->weight, MRC_WEIGHT_DEFAULT);
}
