/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mrcd_log.h"

static bool rails_equal(const struct mrcd_conf *a, const struct mrcd_conf *b)
{
	if (a->rail_count != b->rail_count)
		return false;
	for (uint32_t i = 0; i < a->rail_count; i++) {
		const struct mrcd_conf_rail *x = &a->rails[i], *y = &b->rails[i];

		if (strcmp(x->name, y->name) != 0 || x->type != y->type ||
		    strcmp(x->interface, y->interface) != 0 ||
		    strcmp(x->address, y->address) != 0 || x->port != y->port ||
		    x->speed_bits_per_s != y->speed_bits_per_s || x->is_drained != y->is_drained ||
		    strcmp(x->device, y->device) != 0 || x->device_port != y->device_port ||
		    x->ack_timeout != y->ack_timeout || x->retry_count != y->retry_count ||
		    x->receive_entries != y->receive_entries ||
		    x->receive_entry_bytes != y->receive_entry_bytes)
			return false;
	}
	return true;
}

static bool peer_equal(const struct mrcd_conf_peer *a, const struct mrcd_conf_peer *b)
{
	if (strcmp(a->name, b->name) != 0 || a->path_count != b->path_count ||
	    a->encryption != b->encryption)
		return false;
	for (uint8_t i = 0; i < a->path_count; i++) {
		if (a->paths[i].rail_index != b->paths[i].rail_index ||
		    strcmp(a->paths[i].address, b->paths[i].address) != 0 ||
		    a->paths[i].port != b->paths[i].port)
			return false;
	}
	return true;
}

static bool peers_equal(const struct mrcd_conf *a, const struct mrcd_conf *b)
{
	if (a->peer_count != b->peer_count)
		return false;
	for (uint32_t i = 0; i < a->peer_count; i++) {
		if (!peer_equal(&a->peers[i], &b->peers[i]))
			return false;
	}
	return true;
}

static bool who_equal(const struct mrcd_conf_who *a, const struct mrcd_conf_who *b)
{
	return a->is_open == b->is_open && a->user_count == b->user_count &&
	       a->group_count == b->group_count &&
	       (a->user_count == 0 ||
		memcmp(a->users, b->users, a->user_count * sizeof(*a->users)) == 0) &&
	       (a->group_count == 0 ||
		memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)) == 0);
}

static bool services_equal(const struct mrcd_conf *a, const struct mrcd_conf *b)
{
	if (a->service_count != b->service_count)
		return false;
	for (uint32_t i = 0; i < a->service_count; i++) {
		const struct mrcd_conf_service *x = &a->services[i], *y = &b->services[i];

		if (strcmp(x->name, y->name) != 0 || !who_equal(&x->any, &y->any) ||
		    !who_equal(&x->of[MRCD_USE_LISTEN], &y->of[MRCD_USE_LISTEN]) ||
		    !who_equal(&x->of[MRCD_USE_CONNECT], &y->of[MRCD_USE_CONNECT]))
			return false;
	}
	return true;
}

static bool quotas_equal(const struct mrcd_conf *a, const struct mrcd_conf *b)
{
	if (a->quota_count != b->quota_count)
		return false;
	for (uint32_t i = 0; i < a->quota_count; i++) {
		const struct mrcd_conf_quota *x = &a->quotas[i], *y = &b->quotas[i];

		if (!who_equal(&x->who, &y->who) || x->clients_max != y->clients_max ||
		    x->channels_max != y->channels_max || x->sends_max != y->sends_max ||
		    x->send_arena_bytes != y->send_arena_bytes ||
		    x->landing_arena_bytes != y->landing_arena_bytes ||
		    x->in_flight_bytes_max != y->in_flight_bytes_max ||
		    x->rate_bits_per_s != y->rate_bits_per_s || x->weight != y->weight)
			return false;
	}
	return true;
}

/* Field by field: the struct has bytes between its fields that mean nothing. */
static bool client_limits_equal(const struct mrcd_conf_client_limits *a,
				const struct mrcd_conf_client_limits *b)
{
	return a->clients_max == b->clients_max && a->channels_max == b->channels_max &&
	       a->listeners_max == b->listeners_max && a->sends_max == b->sends_max &&
	       a->window_messages == b->window_messages &&
	       a->landing_ring_bytes == b->landing_ring_bytes &&
	       a->send_arena_bytes == b->send_arena_bytes &&
	       a->landing_arena_bytes == b->landing_arena_bytes;
}

static bool metrics_equal(const struct mrcd_conf_metrics *a, const struct mrcd_conf_metrics *b)
{
	return a->is_enabled == b->is_enabled && a->is_public == b->is_public &&
	       strcmp(a->address, b->address) == 0 && a->port == b->port &&
	       strcmp(a->name, b->name) == 0;
}

/* Which parts of the file wait for a restart; "" for none. */
static void restart_parts(const struct mrcd_conf *a, const struct mrcd_conf *b, char *text,
			  size_t text_bytes)
{
	const struct {
		const char *part;
		bool is_equal;
	} parts[] = {
		{"host", strcmp(a->host, b->host) == 0},
		{"user", strcmp(a->user, b->user) == 0},
		{"runtime-dir", strcmp(a->runtime_dir, b->runtime_dir) == 0},
		{"listen-port", a->listen_port == b->listen_port},
		{"workers", a->worker_count == b->worker_count},
		{"rails", rails_equal(a, b)},
		{"peers", peers_equal(a, b)},
		{"services", services_equal(a, b)},
		{"quotas", quotas_equal(a, b)},
		{"clients", client_limits_equal(&a->clients, &b->clients)},
		{"metrics", metrics_equal(&a->metrics, &b->metrics)},
		{"limits and timers", memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0 &&
					      a->handshake_timeout_ns == b->handshake_timeout_ns &&
					      a->handshakes_max == b->handshakes_max &&
					      a->spin_ns == b->spin_ns},
	};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < MRC_ARRAY_LEN(parts) && at < text_bytes; i++) {
		if (!parts[i].is_equal)
			at += (size_t)snprintf(text + at, text_bytes - at, "%s%s",
					       at > 0 ? ", " : "", parts[i].part);
	}
}

static void on_error(void *context, const char *line)
{
	struct mrcd_reload *reload = context;

	mrcd_err("%s", line);
	if (reload->error[0] == '\0')
		snprintf(reload->error, sizeof(reload->error), "%s", line);
}

static void changed_add(struct mrcd_reload *reload, const char *what)
{
	size_t at = strlen(reload->changed);

	snprintf(reload->changed + at, sizeof(reload->changed) - at, "%s%s", at > 0 ? ", " : "",
		 what);
}

int mrcd_reload(struct mrcd_conf *conf, struct mrcd_reload *reload_out)
{
	struct mrcd_conf *fresh;
	uint32_t peers_with_keys;
	char keys[48];

	*reload_out = (struct mrcd_reload){0};
	if (mrcd_conf_load(conf->file, on_error, reload_out, &fresh) < 0) {
		mrcd_err("%s: has errors, nothing was changed", conf->file);
		return -EINVAL;
	}
	if (fresh->log_level != conf->log_level) {
		conf->log_level = fresh->log_level;
		mrcd_log_set_level(fresh->log_level);
		changed_add(reload_out, "log");
		mrcd_notice("%s: read again, the log level is in force", conf->file);
	}
	peers_with_keys = mrcd_conf_take_keys(conf, fresh);
	if (peers_with_keys > 0) {
		snprintf(keys, sizeof(keys), "keys of %u peer%s", peers_with_keys,
			 peers_with_keys == 1 ? "" : "s");
		changed_add(reload_out, keys);
		mrcd_notice("%s: read again, other %s are in force for paths that open from now on",
			    conf->file, keys);
	}
	restart_parts(conf, fresh, reload_out->waiting, sizeof(reload_out->waiting));
	if (reload_out->waiting[0] != '\0')
		mrcd_warn("%s: read again; what changed in %s waits for a restart", conf->file,
			  reload_out->waiting);
	else
		mrcd_notice("%s: read again, nothing waits for a restart", conf->file);
	mrcd_conf_free(fresh);
	return 0;
}
