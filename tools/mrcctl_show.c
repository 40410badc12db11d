/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_show.h"

#include <stdlib.h>
#include <string.h>

#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define MRCCTL_COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *mrcctl_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static uint64_t mrcctl_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool mrcctl_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

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

static void mrcctl_add_rail(struct mrcctl_table *table, const json_t *rail)
{
	bool is_drained = mrcctl_flag(rail, "drained"), has_carrier = mrcctl_flag(rail, "carrier");

	mrcctl_add_text(table, rail, "name");
	mrcctl_add_text(table, rail, "type");
	mrcctl_add_text(table, rail, "interface");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s:%llu", mrcctl_text(rail, "address"),
			 (unsigned long long)mrcctl_number(rail, "port"));
	mrcctl_table_add(table,
			 !has_carrier ? MRCCTL_BAD
			 : is_drained ? MRCCTL_WORRY
				      : MRCCTL_WELL,
			 "%s",
			 !has_carrier ? "no carrier"
			 : is_drained ? "drained"
				      : "up");
	mrcctl_add_share(table, mrcctl_number(rail, "paths_good"), mrcctl_number(rail, "paths"));
	mrcctl_add_rate(table, rail, "speed_bits_per_s", 1);
	mrcctl_add_bytes(table, rail, "bytes_sent");
	mrcctl_add_bytes(table, rail, "bytes_received");
	mrcctl_add_trouble(table, rail, "carrier_losses");
	mrcctl_add_trouble(table, rail, "strangers");
}

void mrcctl_show_rails(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"RAIL", MRCCTL_LEFT},       {"TYPE", MRCCTL_LEFT},
		{"INTERFACE", MRCCTL_LEFT},  {"ADDRESS", MRCCTL_LEFT},
		{"STATE", MRCCTL_LEFT},      {"GOOD PATHS", MRCCTL_RIGHT},
		{"SPEED", MRCCTL_RIGHT},     {"SENT", MRCCTL_RIGHT},
		{"RECEIVED", MRCCTL_RIGHT},  {"CARRIER LOST", MRCCTL_RIGHT},
		{"STRANGERS", MRCCTL_RIGHT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_rail, out, has_colour);
}

static void mrcctl_add_peer(struct mrcctl_table *table, const json_t *peer)
{
	const char *state = mrcctl_text(peer, "state");

	mrcctl_add_text(table, peer, "name");
	mrcctl_table_add(table, strcmp(state, "connected") == 0 ? MRCCTL_WELL : MRCCTL_BAD, "%s",
			 state);
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
	bool is_good = strcasecmp(state, "good") == 0, is_degraded = mrcctl_flag(path, "degraded");

	mrcctl_add_text(table, path, "peer");
	mrcctl_add_text(table, path, "rail");
	mrcctl_add_text(table, path, "address");
	mrcctl_table_add(table,
			 !is_good      ? MRCCTL_BAD
			 : is_degraded ? MRCCTL_WORRY
				       : MRCCTL_WELL,
			 "%s%s", state, is_good && is_degraded ? ", degraded" : "");
	mrcctl_add_span(table, path, "state_age_ns");
	mrcctl_add_span(table, path, "rtt_ns");
	mrcctl_add_rate(table, path, "rate_bytes_per_s", 8);
	mrcctl_add_bytes(table, path, "bytes_in_flight");
	mrcctl_add_bytes(table, path, "window_bytes");
	mrcctl_add_bytes(table, path, "bytes_sent");
	mrcctl_add_bytes(table, path, "bytes_received");
	mrcctl_add_trouble(table, path, "frames_resent");
	mrcctl_add_trouble(table, path, "bad_count");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s", strcasecmp(reason, "none") == 0 ? "" : reason);
}

void mrcctl_show_paths(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PEER", MRCCTL_LEFT},      {"RAIL", MRCCTL_LEFT},        {"ADDRESS", MRCCTL_LEFT},
		{"STATE", MRCCTL_LEFT},     {"FOR", MRCCTL_RIGHT},        {"RTT", MRCCTL_RIGHT},
		{"RATE", MRCCTL_RIGHT},     {"IN FLIGHT", MRCCTL_RIGHT},  {"WINDOW", MRCCTL_RIGHT},
		{"SENT", MRCCTL_RIGHT},     {"RECEIVED", MRCCTL_RIGHT},   {"MOVED", MRCCTL_RIGHT},
		{"FAILURES", MRCCTL_RIGHT}, {"LAST REASON", MRCCTL_LEFT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_path, out, has_colour);
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
		{"PEER", MRCCTL_LEFT},        {"SERVICE", MRCCTL_LEFT},
		{"ID", MRCCTL_RIGHT},         {"CLIENT", MRCCTL_LEFT},
		{"PID", MRCCTL_RIGHT},        {"STATE", MRCCTL_LEFT},
		{"OPENED", MRCCTL_LEFT},      {"SENT", MRCCTL_RIGHT},
		{"SETTLED", MRCCTL_RIGHT},    {"QUEUED", MRCCTL_RIGHT},
		{"BYTES SENT", MRCCTL_RIGHT}, {"DELIVERED", MRCCTL_RIGHT},
		{"RELEASED", MRCCTL_RIGHT},   {"BYTES DELIVERED", MRCCTL_RIGHT},
	};

	mrcctl_show_table(columns, MRCCTL_COUNT(columns), result, mrcctl_add_channel, out,
			  has_colour);
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
		{"LANDING USED", MRCCTL_RIGHT}, {"SUBMITTED", MRCCTL_RIGHT},
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

	if (table == NULL)
		abort();
	fprintf(out, "%s: %s\n", mrcctl_text(result, "host"), mrcctl_text(result, "summary"));
	mrcctl_table_add(table, MRCCTL_FAINT, "version");
	mrcctl_add_text(table, result, "version");
	mrcctl_table_add(table, MRCCTL_FAINT, "running for");
	mrcctl_table_add(table, MRCCTL_PLAIN, "%s, process %llu",
			 mrcctl_unit_span(mrcctl_number(result, "uptime_ns"), text),
			 (unsigned long long)mrcctl_number(result, "pid"));
	mrcctl_table_add(table, MRCCTL_FAINT, "rails up");
	mrcctl_add_share(table, mrcctl_number(result, "rails_up"), mrcctl_number(result, "rails"));
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
