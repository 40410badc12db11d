/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_daemon.h"

#include <stdio.h>
#include <string.h>

static const char *doctor_json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static void doctor_json_copy(const json_t *object, const char *key, char *text, size_t text_bytes)
{
	doctor_text_set(text, text_bytes, doctor_json_text(object, key));
}
#define DOCTOR_COPY(object, key, field) doctor_json_copy(object, key, field, sizeof(field))

/* Any whole number; DOCTOR_UNKNOWN when it is missing. */
static int64_t doctor_json_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value) : DOCTOR_UNKNOWN;
}

static bool doctor_json_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static int64_t doctor_json_flag_or_unknown(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) : DOCTOR_UNKNOWN;
}

/* "02:00:00:00:00:01" */
static void doctor_mac_take(const char *text, struct doctor_mac *mac)
{
	unsigned b[DOCTOR_MAC_BYTES];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &end) != DOCTOR_MAC_BYTES ||
	    text[end] != '\0')
		return;
	for (int i = 0; i < DOCTOR_MAC_BYTES; i++)
		mac->bytes[i] = (uint8_t)b[i];
	mac->is_known = true;
}

static int64_t doctor_at_least_0(int64_t number)
{
	return number > 0 ? number : 0;
}

/* ---- this host ---- */

static void doctor_host_read(struct doctor_facts *facts, const json_t *about)
{
	DOCTOR_COPY(about, "host", facts->host);
	DOCTOR_COPY(about, "version", facts->version);
	DOCTOR_COPY(about, "kernel", facts->kernel);
	DOCTOR_COPY(about, "rdma_core", facts->rdma_core);
	facts->pid = doctor_json_number(about, "pid");
	facts->draining_ns = doctor_json_number(about, "draining_ns");
	facts->is_conf_former = doctor_json_flag_or_unknown(about, "configuration_former");
	facts->memlock_bytes = doctor_json_number(about, "memlock_bytes");
	facts->may_lock = doctor_json_flag_or_unknown(about, "may_lock");
	facts->may_bind = doctor_json_flag_or_unknown(about, "may_bind");
	facts->huge_page_bytes = doctor_json_number(about, "huge_page_bytes");
	facts->is_any_huge_page = doctor_json_flag(about, "huge_pages_any");
	facts->arena_bytes = doctor_json_number(about, "arena_bytes");
	facts->memlock_need_bytes = 0;
}

static void doctor_rail_read(struct doctor_facts *facts, const json_t *object)
{
	struct doctor_rail *rail = doctor_facts_rail_add(facts);
	const json_t *verbs = json_object_get(object, "verbs");
	const char *device = doctor_json_text(verbs, "device");

	if (rail == NULL)
		return;
	DOCTOR_COPY(object, "name", rail->name);
	DOCTOR_COPY(object, "interface", rail->interface);
	DOCTOR_COPY(object, "address", rail->address);
	DOCTOR_COPY(object, "type", rail->type);
	rail->port = doctor_json_number(object, "port");
	rail->has_carrier = doctor_json_flag(object, "carrier");
	rail->is_drained = doctor_json_flag(object, "drained");
	DOCTOR_COPY(object, "drill", rail->drill);
	rail->driver_silent_ns = doctor_json_number(object, "driver_silent_ns");
	doctor_counter_note(rail->counters, DOCTOR_COUNTERS_MAX, &rail->counter_count,
			    "carrier losses",
			    (uint64_t)doctor_json_number(object, "carrier_losses"), false);
	if (!json_is_object(verbs))
		return;
	DOCTOR_COPY(verbs, "missing", rail->rdma.missing);
	rail->rdma.is_found = doctor_json_flag(verbs, "found");
	rail->rdma.locked_bytes = doctor_json_number(verbs, "locked_bytes");
	if (device[0] == '\0')
		return;
	doctor_text_set(rail->rdma.device, sizeof(rail->rdma.device), device);
	DOCTOR_COPY(verbs, "gid", rail->rdma.gid);
	rail->rdma.gid_index = doctor_json_number(verbs, "gid_index");
	rail->rdma.port = (int)doctor_json_number(verbs, "device_port");
	/* Soft devices have no files to tell by; iWARP is neither of the two. */
	DOCTOR_COPY(verbs, "link_layer", rail->rdma.link_layer);
	if (strcmp(rail->rdma.link_layer, "RoCE") == 0)
		doctor_text_set(rail->rdma.link_layer, sizeof(rail->rdma.link_layer), "Ethernet");
}

/* What the configuration says of a rail, and where it really is. */
static void doctor_rail_about(struct doctor_facts *facts, const json_t *object)
{
	size_t index = doctor_facts_rail_find(facts, doctor_json_text(object, "name"));
	struct doctor_rail *rail;

	if (index == SIZE_MAX)
		return;
	rail = &facts->rails[index];
	DOCTOR_COPY(object, "type", rail->type);
	DOCTOR_COPY(object, "interface", rail->interface);
	DOCTOR_COPY(object, "address", rail->address);
	DOCTOR_COPY(object, "driver", rail->driver);
	DOCTOR_COPY(object, "firmware", rail->firmware);
	rail->speed_configured_bits_per_s =
		doctor_json_number(object, "speed_configured_bits_per_s");
	rail->receive_bytes = doctor_json_number(object, "receive_bytes");
	/* The kernel counts the same memory once for each device that it is registered with. */
	if (doctor_has_device(rail))
		facts->memlock_need_bytes +=
			doctor_at_least_0(facts->arena_bytes) +
			doctor_at_least_0(rail->rdma.locked_bytes != DOCTOR_UNKNOWN
						  ? rail->rdma.locked_bytes
						  : rail->receive_bytes);
}

/* ---- peers ---- */

static void doctor_path_count(struct doctor_path *path, const json_t *object, bool is_second)
{
	static const struct {
		const char *key, *name;
	} counters[] = {
		{"bad_count", "times out of service"},
		{"frames_resent", "frames sent again"},
		{"body_errors", "damaged fragments"},
		{"header_errors", "damaged headers"},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		int64_t value = doctor_json_number(object, counters[i].key);

		if (value != DOCTOR_UNKNOWN)
			doctor_counter_note(path->counters,
					    sizeof(path->counters) / sizeof(path->counters[0]),
					    &path->counter_count, counters[i].name, (uint64_t)value,
					    is_second);
	}
}

/* "[fe80::1]:7471" and "10.0.0.2:7471" without the port. */
static void doctor_address_take(const char *from, char *text, size_t text_bytes)
{
	const char *colon = strrchr(from, ':');
	size_t len = colon != NULL ? (size_t)(colon - from) : strlen(from);

	if (from[0] == '[' && len >= 2) {
		from++;
		len -= 2;
	}
	snprintf(text, text_bytes, "%.*s", (int)len, from);
}

static void doctor_path_read(struct doctor_facts *facts, const json_t *object)
{
	size_t peer = doctor_facts_peer_find(facts, doctor_json_text(object, "peer"));
	size_t rail = doctor_facts_rail_find(facts, doctor_json_text(object, "rail"));
	struct doctor_path *path;
	const json_t *about = json_object_get(object, "about");
	const json_t *health = json_object_get(object, "health");

	if (peer == SIZE_MAX || rail == SIZE_MAX)
		return;
	path = doctor_facts_path_add(facts);
	path->peer = peer;
	path->rail = rail;
	doctor_address_take(doctor_json_text(object, "address"), path->address,
			    sizeof(path->address));
	DOCTOR_COPY(object, "state", path->state);
	DOCTOR_COPY(object, "reason", path->reason);
	DOCTOR_COPY(object, "link", path->link);
	DOCTOR_COPY(health, "state", path->health);
	DOCTOR_COPY(health, "why", path->health_why);
	path->is_connected = doctor_json_flag(object, "connected");
	path->is_drilled = doctor_json_text(object, "drill")[0] != '\0';
	path->state_age_ns = (uint64_t)json_integer_value(json_object_get(object, "state_age_ns"));
	doctor_path_count(path, object, false);
	if (!json_is_object(about))
		return;
	path->about.is_known = true;
	DOCTOR_COPY(about, "rail", path->about.rail);
	DOCTOR_COPY(about, "kind", path->about.kind);
	DOCTOR_COPY(about, "version", path->about.version);
	DOCTOR_COPY(about, "kernel", path->about.kernel);
	DOCTOR_COPY(about, "rdma_core", path->about.rdma_core);
	DOCTOR_COPY(about, "driver", path->about.driver);
	DOCTOR_COPY(about, "firmware", path->about.firmware);
	path->about.mtu = doctor_json_number(about, "mtu");
	path->about.speed_bits_per_s = doctor_json_number(about, "speed_bits_per_s");
	doctor_mac_take(doctor_json_text(about, "mac"), &path->about.mac);
}

static void doctor_peer_read(struct doctor_facts *facts, const json_t *object)
{
	struct doctor_peer *peer = doctor_facts_peer_add(facts);

	DOCTOR_COPY(object, "name", peer->name);
	DOCTOR_COPY(object, "state", peer->state);
	peer->is_met = doctor_json_number(object, "epoch") > 0;
	peer->is_draining = doctor_json_flag(object, "draining");
}

/* Of `about`: the clocks, which are compared twice. */
static void doctor_clock_read(struct doctor_facts *facts, const json_t *object, int reading)
{
	size_t index = doctor_facts_peer_find(facts, doctor_json_text(object, "name"));
	const json_t *clock = json_object_get(object, "clock");
	const json_t *wall = json_object_get(object, "wall_apart_ns");
	struct doctor_peer *peer;
	int64_t at_ns;

	if (index == SIZE_MAX)
		return;
	peer = &facts->peers[index];
	if (json_is_integer(wall)) {
		peer->has_wall = DOCTOR_YES;
		peer->wall_apart_ns = (int64_t)json_integer_value(wall);
	}
	at_ns = doctor_json_number(clock, "at_ns");
	if (at_ns <= 0 || (reading == 1 && peer->clock_apart_ns == 0))
		return;
	peer->clock_offset_ns[reading] =
		(int64_t)json_integer_value(json_object_get(clock, "offset_ns"));
	peer->clock_error_ns[reading] =
		(uint64_t)json_integer_value(json_object_get(clock, "error_ns"));
	if (reading == 0) {
		peer->clock_apart_ns = (uint64_t)at_ns;
	} else {
		peer->has_clock =
			(uint64_t)at_ns > peer->clock_apart_ns ? DOCTOR_YES : DOCTOR_NOT_ASKED;
		peer->clock_apart_ns = (uint64_t)at_ns - peer->clock_apart_ns;
	}
}

void doctor_daemon_read(struct doctor_facts *facts, const struct doctor_answers *answers)
{
	const json_t *object;
	size_t i;

	doctor_host_read(facts, answers->about);
	json_array_foreach(answers->rails, i, object) doctor_rail_read(facts, object);
	json_array_foreach(json_object_get(answers->about, "rails"), i, object)
		doctor_rail_about(facts, object);
	json_array_foreach(answers->peers, i, object) doctor_peer_read(facts, object);
	json_array_foreach(json_object_get(answers->about, "peers"), i, object)
		doctor_clock_read(facts, object, 0);
	json_array_foreach(answers->paths, i, object) doctor_path_read(facts, object);
}

void doctor_daemon_read_again(struct doctor_facts *facts, const struct doctor_answers *answers)
{
	const json_t *object;
	size_t i;

	json_array_foreach(answers->rails, i, object)
	{
		size_t index = doctor_facts_rail_find(facts, doctor_json_text(object, "name"));
		struct doctor_rail *rail;

		if (index == SIZE_MAX)
			continue;
		rail = &facts->rails[index];
		doctor_counter_note(rail->counters, DOCTOR_COUNTERS_MAX, &rail->counter_count,
				    "carrier losses",
				    (uint64_t)doctor_json_number(object, "carrier_losses"), true);
	}
	json_array_foreach(json_object_get(answers->about, "peers"), i, object)
		doctor_clock_read(facts, object, 1);
	json_array_foreach(answers->paths, i, object)
	{
		const char *peer = doctor_json_text(object, "peer");
		const char *rail = doctor_json_text(object, "rail");
		char address[64];

		doctor_address_take(doctor_json_text(object, "address"), address, sizeof(address));
		for (size_t n = 0; n < facts->path_count; n++) {
			struct doctor_path *path = &facts->paths[n];

			if (strcmp(facts->peers[path->peer].name, peer) == 0 &&
			    strcmp(facts->rails[path->rail].name, rail) == 0 &&
			    strcmp(path->address, address) == 0)
				doctor_path_count(path, object, true);
		}
	}
}
