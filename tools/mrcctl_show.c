/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_show.h"

#include <stdlib.h>
#include <string.h>

#include "mrcctl_field.h"
#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define MRCCTL_COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define MRCCTL_WEIGHT_USUAL 100 /* of a client's turns, where no quota says another */

/* ---- cells ---- */

static void mrcctl_add_text(struct mrcctl_table *table, const json_t *object, const char *key)
{
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrcctl_text(object, key));
}

static void mrcctl_add_count(struct mrcctl_table *table, const json_t *object, const char *key)
{
	char text[MRCCTL_UNIT_BYTES + 8];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 mrcctl_unit_count(mrcctl_number(object, key), text));
}

/* A counter of trouble: draws the eye when it is not 0. */
static void mrcctl_add_trouble(struct mrcctl_table *table, const json_t *object, const char *key)
{
	uint64_t count = mrcctl_number(object, key);
	char text[MRCCTL_UNIT_BYTES + 8];

	mrcctl_table_add(table, count > 0 ? MRCCTL_WORRY : MRCCTL_PLAIN, "%s",
			 mrcctl_unit_count(count, text));
}

static void mrcctl_add_bytes(struct mrcctl_table *table, const json_t *object, const char *key)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 mrcctl_unit_bytes(mrcctl_number(object, key), text));
}

static void mrcctl_add_span(struct mrcctl_table *table, const json_t *object, const char *key)
{
	uint64_t ns = mrcctl_number(object, key);
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s", ns == 0 ? "-" : mrcctl_unit_span(ns, text));
}

/* `unit_bits`: how many bits the value counts in one. */
static void mrcctl_add_rate(struct mrcctl_table *table, const json_t *object, const char *key,
			    unsigned unit_bits)
{
	uint64_t rate = mrcctl_number(object, key);
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 rate == 0 ? "-" : mrcctl_unit_bits_per_s(rate * unit_bits, text));
}

/* "3/4": all is well, some is worth a look, none is bad. */
static void mrcctl_add_share(struct mrcctl_table *table, uint64_t part, uint64_t whole)
{
	enum mrcctl_mood mood = part == whole ? MRCCTL_WELL : part > 0 ? MRCCTL_WORRY : MRCCTL_BAD;

	mrcctl_table_add(table, whole == 0 ? MRCCTL_PLAIN : mood, "%llu/%llu",
			 (unsigned long long)part, (unsigned long long)whole);
}

/* ---- health (of rails and paths) ---- */

static bool mrcctl_is_well(const json_t *health)
{
	const char *state = mrcctl_text(health, "state");

	return state[0] == '\0' || strcmp(state, "good") == 0;
}

static enum mrcctl_mood mrcctl_health_mood(const json_t *health)
{
	return mrcctl_is_well(health)                                 ? MRCCTL_WELL
	       : strcmp(mrcctl_text(health, "state"), "failing") == 0 ? MRCCTL_BAD
								      : MRCCTL_WORRY;
}

/* "87"; a column without any is not printed. */
static void mrcctl_add_score(struct mrcctl_table *table, const json_t *health)
{
	if (health == NULL)
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", "");
	else
		mrcctl_table_add(table, mrcctl_health_mood(health), "%llu",
				 (unsigned long long)mrcctl_number(health, "score"));
}

/* "degraded for 12 s: 1.2% frames come damaged"; of a good one what there is against it. */
static void mrcctl_add_why(struct mrcctl_table *table, const json_t *health)
{
	char text[MRCCTL_UNIT_BYTES];

	if (mrcctl_is_well(health))
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrcctl_text(health, "why"));
	else
		mrcctl_table_add(table, mrcctl_health_mood(health), "%s for %s: %s",
				 mrcctl_text(health, "state"),
				 mrcctl_unit_span(mrcctl_number(health, "age_ns"), text),
				 mrcctl_text(health, "why"));
}

/* ---- tables ---- */

/* `add` fills one row. */
static void mrcctl_show_table(const struct mrcctl_column *columns, size_t column_count,
			      const json_t *rows,
			      void (*add)(struct mrcctl_table *, const json_t *), FILE *out,
			      bool has_colour)
{
	struct mrcctl_table *table = mrcctl_table_new(columns, column_count);
	size_t i;
	json_t *row;

	if (table == NULL)
		abort();
	json_array_foreach(rows, i, row) add(table, row);
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}

/* ---- what rails and paths with an RDMA device have besides ---- */

/* "17", or "-" when it is not known. */
static void mrcctl_add_number(struct mrcctl_table *table, const json_t *object, const char *key)
{
	uint64_t number = mrcctl_number(object, key);

	if (number == 0)
		mrcctl_table_add(table, MRCCTL_PLAIN, "-");
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "%llu", (unsigned long long)number);
}

/*
 * "ACTIVE", "RTS": the one word for all being well; any other is bad. libibverbs
 * says PORT_ in front of a port's, and the heading says that as well.
 */
static void mrcctl_add_state(struct mrcctl_table *table, const json_t *object, const char *key,
			     const char *well)
{
	const char *state = mrcctl_text(object, key);

	if (strncmp(state, "PORT_", 5) == 0)
		state += 5;
	mrcctl_table_add(table, strcasecmp(state, well) == 0 ? MRCCTL_WELL : MRCCTL_BAD, "%s",
			 state);
}

/* "fe80::1 [3]"; a device without GIDs, as iWARP's may be, has no index. */
static void mrcctl_add_gid(struct mrcctl_table *table, const json_t *verbs)
{
	const char *gid = mrcctl_text(verbs, "gid");

	if (gid[0] == '\0' || strcmp(gid, "::") == 0)
		mrcctl_table_add(table, MRCCTL_BAD, "none");
	else if (json_object_get(verbs, "gid_index") == NULL)
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", gid);
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s [%llu]", gid,
				 (unsigned long long)mrcctl_number(verbs, "gid_index"));
}

/* "4x", as people know the width of a port. */
static void mrcctl_add_lanes(struct mrcctl_table *table, uint64_t lanes)
{
	if (lanes == 0)
		mrcctl_table_add(table, MRCCTL_PLAIN, "-");
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "%llux", (unsigned long long)lanes);
}

static void mrcctl_add_verbs_rail(struct mrcctl_table *table, const json_t *rail)
{
	const json_t *verbs = json_object_get(rail, "verbs");
	uint64_t entries = mrcctl_number(verbs, "receive_entries");
	uint64_t posted = mrcctl_number(verbs, "receive_posted");
	/* Why it has no device now; then there is nothing else to tell. */
	const char *missing = mrcctl_text(verbs, "missing");

	mrcctl_add_text(table, rail, "name");
	if (json_object_get(verbs, "device") == NULL) {
		mrcctl_table_add(table, MRCCTL_BAD, "none");
		for (int i = 0; i < 7; i++)
			mrcctl_table_add(table, MRCCTL_PLAIN, "%s", "");
	} else {
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s/%llu", mrcctl_text(verbs, "device"),
				 (unsigned long long)mrcctl_number(verbs, "device_port"));
		mrcctl_add_text(table, verbs, "link_layer");
		mrcctl_add_state(table, verbs, "port_state", "active");
		mrcctl_add_number(table, verbs, "active_mtu");
		mrcctl_add_rate(table, verbs, "speed_bits_per_s", 1);
		mrcctl_add_lanes(table, mrcctl_number(verbs, "width"));
		mrcctl_add_gid(table, verbs);
		/* Some are always on their way to be posted again; none at all stops every path. */
		mrcctl_table_add(table, entries > 0 && posted == 0 ? MRCCTL_BAD : MRCCTL_PLAIN,
				 "%llu/%llu", (unsigned long long)posted,
				 (unsigned long long)entries);
	}
	mrcctl_add_trouble(table, verbs, "flushes");
	mrcctl_add_trouble(table, verbs, "errors");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 missing[0] != '\0' ? missing : mrcctl_text(verbs, "last_error"));
}

static void mrcctl_add_verbs_path(struct mrcctl_table *table, const json_t *path)
{
	const json_t *verbs = json_object_get(path, "verbs");

	mrcctl_add_text(table, path, "peer");
	mrcctl_add_text(table, path, "rail");
	mrcctl_add_text(table, path, "address");
	mrcctl_add_number(table, verbs, "qp_number");
	mrcctl_add_number(table, verbs, "peer_qp_number");
	mrcctl_add_state(table, verbs, "qp_state", "rts");
	mrcctl_add_number(table, verbs, "send_depth");
	mrcctl_add_bytes(table, verbs, "inline_bytes");
	mrcctl_add_trouble(table, verbs, "flushes");
	mrcctl_add_trouble(table, verbs, "errors");
	mrcctl_add_text(table, verbs, "last_error");
}

/* A second table of those rows that have an object "verbs"; nothing when none has. */
static void mrcctl_show_verbs(const struct mrcctl_column *columns, size_t column_count,
			      const json_t *rows,
			      void (*add)(struct mrcctl_table *, const json_t *), FILE *out,
			      bool has_colour)
{
	json_t *with = json_array();
	json_t *row;
	size_t i;

	if (with == NULL)
		abort();
	json_array_foreach(rows, i, row)
	{
		if (json_is_object(json_object_get(row, "verbs")) && json_array_append(with, row))
			abort();
	}
	if (json_array_size(with) > 0) {
		fputc('\n', out);
		mrcctl_show_table(columns, column_count, with, add, out, has_colour);
	}
	json_decref(with);
}

/* ---- the tables of each command ---- */

static void mrcctl_add_rail(struct mrcctl_table *table, const json_t *rail)
{
	bool is_drained = mrcctl_flag(rail, "drained"), has_carrier = mrcctl_flag(rail, "carrier");
	const json_t *health = json_object_get(rail, "health");
	const char *drill = mrcctl_text(rail, "drill");

	mrcctl_add_text(table, rail, "name");
	mrcctl_add_text(table, rail, "type");
	mrcctl_add_text(table, rail, "interface");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s:%llu", mrcctl_text(rail, "address"),
			 (unsigned long long)mrcctl_number(rail, "port"));
	if (drill[0] != '\0')
		mrcctl_table_add(table, MRCCTL_WORRY, "drill: %s", drill);
	else
		mrcctl_table_add(table,
				 !has_carrier ? MRCCTL_BAD
				 : is_drained ? MRCCTL_WORRY
					      : MRCCTL_WELL,
				 "%s",
				 !has_carrier ? "no carrier"
				 : is_drained ? "drained"
					      : "up");
	mrcctl_add_score(table, health);
	mrcctl_add_share(table, mrcctl_number(rail, "paths_good"), mrcctl_number(rail, "paths"));
	mrcctl_add_rate(table, rail, "speed_bits_per_s", 1);
	mrcctl_add_bytes(table, rail, "bytes_sent");
	mrcctl_add_bytes(table, rail, "bytes_received");
	mrcctl_add_trouble(table, rail, "carrier_losses");
	if (json_object_get(rail, "card") != NULL)
		mrcctl_add_trouble(table, rail, "card_damaged");
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", "");
	mrcctl_add_trouble(table, rail, "strangers");
	mrcctl_add_why(table, health);
}

void mrcctl_show_rails(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"RAIL", MRCCTL_LEFT},          {"TYPE", MRCCTL_LEFT},
		{"INTERFACE", MRCCTL_LEFT},     {"ADDRESS", MRCCTL_LEFT},
		{"STATE", MRCCTL_LEFT},         {"HEALTH", MRCCTL_RIGHT},
		{"GOOD PATHS", MRCCTL_RIGHT},   {"SPEED", MRCCTL_RIGHT},
		{"SENT", MRCCTL_RIGHT},         {"RECEIVED", MRCCTL_RIGHT},
		{"CARRIER LOST", MRCCTL_RIGHT}, {"CARD ERRORS", MRCCTL_RIGHT},
		{"STRANGERS", MRCCTL_RIGHT},    {"TROUBLE", MRCCTL_LEFT},
	};

	static const struct mrcctl_column verbs_columns[] = {
		{"RAIL", MRCCTL_LEFT},       {"DEVICE", MRCCTL_LEFT},
		{"LINK LAYER", MRCCTL_LEFT}, {"PORT", MRCCTL_LEFT},
		{"MTU", MRCCTL_RIGHT},       {"SPEED", MRCCTL_RIGHT},
		{"WIDTH", MRCCTL_RIGHT},     {"GID [INDEX]", MRCCTL_LEFT},
		{"RECEIVES", MRCCTL_RIGHT},  {"FLUSHES", MRCCTL_RIGHT},
		{"ERRORS", MRCCTL_RIGHT},    {"LAST ERROR", MRCCTL_LEFT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_rail, out, has_colour);
	mrcctl_show_verbs(verbs_columns, MRCCTL_COUNT(verbs_columns), result, mrcctl_add_verbs_rail,
			  out, has_colour);
}

static void mrcctl_add_peer(struct mrcctl_table *table, const json_t *peer)
{
	const char *state = mrcctl_text(peer, "state");
	bool is_draining = mrcctl_flag(peer, "draining");

	mrcctl_add_text(table, peer, "name");
	mrcctl_table_add(table,
			 strcmp(state, "connected") != 0 ? MRCCTL_BAD
			 : is_draining                   ? MRCCTL_WORRY
							 : MRCCTL_WELL,
			 "%s%s", state, is_draining ? ", draining" : "");
	mrcctl_add_share(table, mrcctl_number(peer, "paths_good"), mrcctl_number(peer, "paths"));
	mrcctl_add_count(table, peer, "channels");
	mrcctl_add_count(table, peer, "messages_sent");
	mrcctl_add_count(table, peer, "messages_delivered");
	mrcctl_add_trouble(table, peer, "messages_failed");
	mrcctl_add_trouble(table, peer, "resets");
	mrcctl_add_trouble(table, peer, "protocol_errors");
}

void mrcctl_show_peers(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PEER", MRCCTL_LEFT},        {"STATE", MRCCTL_LEFT},
		{"GOOD PATHS", MRCCTL_RIGHT}, {"CHANNELS", MRCCTL_RIGHT},
		{"SENT", MRCCTL_RIGHT},       {"DELIVERED", MRCCTL_RIGHT},
		{"FAILED", MRCCTL_RIGHT},     {"RESTARTS", MRCCTL_RIGHT},
		{"VIOLATIONS", MRCCTL_RIGHT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_peer, out, has_colour);
}

static void mrcctl_add_path(struct mrcctl_table *table, const json_t *path)
{
	const char *state = mrcctl_text(path, "state"), *reason = mrcctl_text(path, "reason");
	const json_t *health = json_object_get(path, "health");
	bool is_good = strcasecmp(state, "good") == 0;

	mrcctl_add_text(table, path, "peer");
	mrcctl_add_text(table, path, "rail");
	mrcctl_add_text(table, path, "address");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s%s", mrcctl_text(path, "link"),
			 mrcctl_flag(path, "encrypted") ? ", encrypted" : "");
	if (mrcctl_text(path, "drill")[0] != '\0')
		mrcctl_table_add(table, MRCCTL_WORRY, "%s, drill", state);
	else
		mrcctl_table_add(table, is_good ? MRCCTL_WELL : MRCCTL_BAD, "%s", state);
	mrcctl_add_span(table, path, "state_age_ns");
	mrcctl_add_score(table, health);
	mrcctl_add_span(table, path, "rtt_ns");
	mrcctl_add_rate(table, path, "rate_bytes_per_s", 8);
	mrcctl_add_bytes(table, path, "bytes_in_flight");
	mrcctl_add_bytes(table, path, "window_bytes");
	mrcctl_add_bytes(table, path, "bytes_sent");
	mrcctl_add_bytes(table, path, "bytes_received");
	mrcctl_add_trouble(table, path, "frames_resent");
	mrcctl_add_trouble(table, path, "bad_count");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s", strcasecmp(reason, "none") == 0 ? "" : reason);
	mrcctl_add_why(table, health);
}

void mrcctl_show_paths(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PEER", MRCCTL_LEFT},        {"RAIL", MRCCTL_LEFT},    {"ADDRESS", MRCCTL_LEFT},
		{"LINK", MRCCTL_LEFT},        {"STATE", MRCCTL_LEFT},   {"FOR", MRCCTL_RIGHT},
		{"HEALTH", MRCCTL_RIGHT},     {"RTT", MRCCTL_RIGHT},    {"RATE", MRCCTL_RIGHT},
		{"IN FLIGHT", MRCCTL_RIGHT},  {"WINDOW", MRCCTL_RIGHT}, {"SENT", MRCCTL_RIGHT},
		{"RECEIVED", MRCCTL_RIGHT},   {"MOVED", MRCCTL_RIGHT},  {"FAILURES", MRCCTL_RIGHT},
		{"LAST REASON", MRCCTL_LEFT}, {"TROUBLE", MRCCTL_LEFT},
	};

	static const struct mrcctl_column verbs_columns[] = {
		{"PEER", MRCCTL_LEFT},    {"RAIL", MRCCTL_LEFT},       {"ADDRESS", MRCCTL_LEFT},
		{"QP", MRCCTL_RIGHT},     {"PEER'S QP", MRCCTL_RIGHT}, {"QP STATE", MRCCTL_LEFT},
		{"DEPTH", MRCCTL_RIGHT},  {"INLINE", MRCCTL_RIGHT},    {"FLUSHES", MRCCTL_RIGHT},
		{"ERRORS", MRCCTL_RIGHT}, {"LAST ERROR", MRCCTL_LEFT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_path, out, has_colour);
	mrcctl_show_verbs(verbs_columns, MRCCTL_COUNT(verbs_columns), result, mrcctl_add_verbs_path,
			  out, has_colour);
}

static void mrcctl_add_channel(struct mrcctl_table *table, const json_t *channel)
{
	mrcctl_add_text(table, channel, "peer");
	mrcctl_add_text(table, channel, "service");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%llu",
			 (unsigned long long)mrcctl_number(channel, "id"));
	mrcctl_add_text(table, channel, "client");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%llu",
			 (unsigned long long)mrcctl_number(channel, "pid"));
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s%s", mrcctl_text(channel, "state"),
			 mrcctl_flag(channel, "unordered") ? ", unordered" : "");
	if (strcmp(mrcctl_text(channel, "integrity"), "off") == 0)
		mrcctl_table_add(table, MRCCTL_WORRY, "off");
	else
		mrcctl_add_text(table, channel, "integrity");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 mrcctl_flag(channel, "opener") ? "here" : "there");
	mrcctl_add_count(table, channel, "sent");
	mrcctl_add_count(table, channel, "settled");
	mrcctl_add_count(table, channel, "sends_queued");
	mrcctl_add_bytes(table, channel, "bytes_sent");
	mrcctl_add_count(table, channel, "delivered");
	mrcctl_add_count(table, channel, "released");
	mrcctl_add_bytes(table, channel, "bytes_delivered");
}

void mrcctl_show_channels(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PEER", MRCCTL_LEFT},
		{"SERVICE", MRCCTL_LEFT},
		{"ID", MRCCTL_RIGHT},
		{"CLIENT", MRCCTL_LEFT},
		{"PID", MRCCTL_RIGHT},
		{"STATE", MRCCTL_LEFT},
		{"INTEGRITY", MRCCTL_LEFT},
		{"OPENED", MRCCTL_LEFT},
		{"SENT", MRCCTL_RIGHT},
		{"SETTLED", MRCCTL_RIGHT},
		{"QUEUED", MRCCTL_RIGHT},
		{"BYTES SENT", MRCCTL_RIGHT},
		{"DELIVERED", MRCCTL_RIGHT},
		{"RELEASED", MRCCTL_RIGHT},
		{"BYTES DELIVERED", MRCCTL_RIGHT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_channel, out,
			  has_colour);
}

/* What its quota bounds is shown where it bounds anything: "3 MiB of 16 MiB", a weight that is not the usual one. */
static void mrcctl_add_quota(struct mrcctl_table *table, const json_t *client)
{
	const json_t *quota = json_object_get(client, "quota");
	uint64_t bound = mrcctl_number(quota, "in_flight_bytes_max");
	uint64_t weight = mrcctl_number(quota, "weight");
	uint64_t rate = mrcctl_number(quota, "rate_bits_per_s");
	uint64_t waits = mrcctl_number(quota, "waits");
	char used_text[MRCCTL_UNIT_BYTES], bound_text[MRCCTL_UNIT_BYTES];
	char text[MRCCTL_UNIT_BYTES + 8];

	mrcctl_unit_bytes(mrcctl_number(client, "in_flight_bytes"), used_text);
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s%s%s", used_text, bound > 0 ? " of " : "",
			 bound > 0 ? mrcctl_unit_bytes(bound, bound_text) : "");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 rate > 0 ? mrcctl_unit_bits_per_s(rate, text) : "");
	if (weight == 0 || weight == MRCCTL_WEIGHT_USUAL)
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", "");
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "%llu", (unsigned long long)weight);
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 waits > 0 ? mrcctl_unit_count(waits, text) : "");
}

static void mrcctl_add_client(struct mrcctl_table *table, const json_t *client)
{
	mrcctl_add_text(table, client, "name");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%llu",
			 (unsigned long long)mrcctl_number(client, "pid"));
	mrcctl_table_add(table, MRCCTL_PLAIN, "%llu",
			 (unsigned long long)mrcctl_number(client, "uid"));
	mrcctl_add_count(table, client, "channels");
	mrcctl_add_count(table, client, "listeners");
	mrcctl_add_count(table, client, "sends_outstanding");
	mrcctl_add_bytes(table, client, "send_arena_bytes");
	mrcctl_add_bytes(table, client, "landing_arena_bytes");
	mrcctl_add_bytes(table, client, "landing_used_bytes");
	mrcctl_add_quota(table, client);
	mrcctl_add_count(table, client, "submissions");
	mrcctl_add_count(table, client, "completions");
}

void mrcctl_show_clients(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"CLIENT", MRCCTL_LEFT},        {"PID", MRCCTL_RIGHT},
		{"UID", MRCCTL_RIGHT},          {"CHANNELS", MRCCTL_RIGHT},
		{"SERVICES", MRCCTL_RIGHT},     {"SENDING", MRCCTL_RIGHT},
		{"SEND ARENA", MRCCTL_RIGHT},   {"LANDING ARENA", MRCCTL_RIGHT},
		{"LANDING USED", MRCCTL_RIGHT}, {"IN FLIGHT", MRCCTL_RIGHT},
		{"RATE", MRCCTL_RIGHT},         {"WEIGHT", MRCCTL_RIGHT},
		{"HELD BACK", MRCCTL_RIGHT},    {"SUBMITTED", MRCCTL_RIGHT},
		{"COMPLETED", MRCCTL_RIGHT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_client, out,
			  has_colour);
}

void mrcctl_show_status(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {{"", MRCCTL_LEFT}, {"", MRCCTL_LEFT}};
	struct mrcctl_table *table = mrcctl_table_new(columns, MRCCTL_COUNT(columns));
	char text[MRCCTL_UNIT_BYTES + 8];
	uint64_t strangers = mrcctl_number(result, "strangers");
	uint64_t degraded = mrcctl_number(result, "rails_degraded");
	uint64_t failing = mrcctl_number(result, "rails_failing");

	if (table == NULL)
		abort();
	fprintf(out, "%s: %s\n", mrcctl_text(result, "host"), mrcctl_text(result, "summary"));
	mrcctl_table_add(table, MRCCTL_FAINT, "version");
	mrcctl_add_text(table, result, "version");
	mrcctl_table_add(table, MRCCTL_FAINT, "running for");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s, process %llu",
			 mrcctl_unit_span(mrcctl_number(result, "uptime_ns"), text),
			 (unsigned long long)mrcctl_number(result, "pid"));
	if (mrcctl_flag(result, "draining")) {
		mrcctl_table_add(table, MRCCTL_FAINT, "draining");
		mrcctl_table_add(table, MRCCTL_WORRY,
				 "takes no new channels; mrcctl undrain --host ends it");
	}
	if (mrcctl_flag(result, "configuration_former")) {
		mrcctl_table_add(table, MRCCTL_FAINT, "configuration");
		mrcctl_table_add(table, MRCCTL_WORRY,
				 "from before: the file has errors; mend it, then mrcctl reload");
	}
	mrcctl_table_add(table, MRCCTL_FAINT, "rails up");
	mrcctl_add_share(table, mrcctl_number(result, "rails_up"), mrcctl_number(result, "rails"));
	mrcctl_table_add(table, MRCCTL_FAINT, "their health");
	if (failing + degraded == 0)
		mrcctl_table_add(table, MRCCTL_WELL, "good");
	else
		mrcctl_table_add(table, failing > 0 ? MRCCTL_BAD : MRCCTL_WORRY,
				 "%llu degraded, %llu failing", (unsigned long long)degraded,
				 (unsigned long long)failing);
	mrcctl_table_add(table, MRCCTL_FAINT, "peers connected");
	mrcctl_add_share(table, mrcctl_number(result, "peers_connected"),
			 mrcctl_number(result, "peers"));
	mrcctl_table_add(table, MRCCTL_FAINT, "clients");
	mrcctl_add_count(table, result, "clients");
	mrcctl_table_add(table, MRCCTL_FAINT, "channels");
	mrcctl_add_count(table, result, "channels");
	mrcctl_table_add(table, MRCCTL_FAINT, "strangers refused");
	mrcctl_table_add(table, strangers > 0 ? MRCCTL_WORRY : MRCCTL_PLAIN, "%s",
			 mrcctl_unit_count(strangers, text));
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}

void mrcctl_show_drain(const json_t *result, FILE *out, bool has_colour)
{
	uint64_t paths = mrcctl_number(result, "paths");

	fprintf(out, "rail %s: %s, %llu path%s\n", mrcctl_text(result, "rail"),
		mrcctl_flag(result, "drained") ? "drained, carries nothing more"
					       : "given back, comes into service when its probes "
						 "are answered",
		(unsigned long long)paths, paths == 1 ? "" : "s");
}

void mrcctl_show_fault(const json_t *result, FILE *out, bool has_colour)
{
	fprintf(out, "rail %s: %s, %llu broken\n", mrcctl_text(result, "rail"),
		mrcctl_text(result, "fault"), (unsigned long long)mrcctl_number(result, "broken"));
}
