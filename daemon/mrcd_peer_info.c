/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_peer_info - a peer, its paths and channels as JSON (mrcd_control.h has the keys) */
#include "mrcd_peer_impl.h"

#include <stdio.h>
#include <string.h>

#include "mrcd_about.h"
#include "mrcd_client.h"
#include "mrcd_health.h"

static const char *mrcd_peer_state_name(const struct mrc_conn_info *info)
{
	if (info->is_peer_silent)
		return "silent";
	return info->paths_good > 0 ? "connected" : "connecting";
}

json_t *mrcd_peer_json(const struct mrcd_peer *peer)
{
	struct mrc_conn_info info;
	char boot_id[24];

	mrc_conn_info(peer->conn, &info);
	snprintf(boot_id, sizeof(boot_id), "%016llx", (unsigned long long)info.peer_boot_id);
	return json_pack("{s:s s:s s:b s:I s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I}", "name",
			 peer->name, "state", mrcd_peer_state_name(&info), "draining",
			 (int)info.is_peer_draining, "epoch", (json_int_t)info.epoch, "boot_id",
			 boot_id, "paths", (json_int_t)info.paths_listed, "paths_good",
			 (json_int_t)info.paths_good, "channels", (json_int_t)info.channel_count,
			 "resets", (json_int_t)info.resets, "messages_sent",
			 (json_int_t)info.messages_sent, "messages_delivered",
			 (json_int_t)info.messages_delivered, "messages_failed",
			 (json_int_t)info.messages_failed, "duplicates",
			 (json_int_t)info.duplicates, "protocol_errors",
			 (json_int_t)info.protocol_errors);
}

static void mrcd_peer_set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

const struct mrc_health_view *mrcd_peer_path_health(const struct mrcd_peer *peer,
						    uint8_t path_index)
{
	MRC_ASSERT(path_index < peer->path_count);
	return &peer->health.paths[path_index].view;
}

void mrcd_peer_add_rtts(const struct mrcd_peer *peer, const struct mrcd_rail *rail,
			struct mrc_histogram *sum)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail == rail)
			mrc_histogram_add(sum, mrc_conn_path_rtts(peer->conn, i));
	}
}

/* ---- stalls ---- */

static void on_waiting(void *context, struct mrcd_peer *peer, uint64_t since_ns)
{
	peer->waiting_since_ns = MRC_MIN(peer->waiting_since_ns, since_ns);
}

json_t *mrcd_peer_stalls_json(struct mrcd_worker *worker, uint64_t since_ns, uint32_t peers_max)
{
	json_t *peers = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		worker->peers[i]->waiting_since_ns = worker->now_ns;
	if (worker->clients != NULL)
		mrcd_client_side_each_waiting(worker->clients, on_waiting, NULL);
	for (uint32_t i = 0; i < MRC_MIN(worker->peer_count, peers_max); i++) {
		const struct mrcd_peer *peer = worker->peers[i];
		const struct mrc_histogram *gaps = &peer->stalls.gaps;
		json_t *object = json_pack("{s:s}", "name", peer->name);

		mrcd_peer_set(object, "count", gaps->count);
		mrcd_peer_set(object, "p50_ns", mrc_histogram_quantile_ns(gaps, 500000));
		mrcd_peer_set(object, "p99_ns", mrc_histogram_quantile_ns(gaps, 990000));
		mrcd_peer_set(object, "p999_ns", mrc_histogram_quantile_ns(gaps, 999000));
		mrcd_peer_set(object, "max_ns", gaps->max_ns);
		mrcd_peer_set(object, "longest_ns", mrcd_stall_longest_ns(&peer->stalls, since_ns));
		mrcd_peer_set(object, "waiting_ns", worker->now_ns - peer->waiting_since_ns);
		json_array_append_new(peers, object);
	}
	return peers;
}

static json_t *mrcd_peer_path_json(const struct mrcd_peer *peer, uint8_t index)
{
	uint64_t now_ns = peer->worker->now_ns;
	const struct mrc_about *about = mrc_conn_path_about(peer->conn, index);
	const struct mrcd_link *link = peer->paths[index].link;
	const struct mrc_health_view *health = &peer->health.paths[index].view;
	struct mrc_path_info info;
	char address[300];
	uint16_t port;
	const char *host = mrcd_peer_path_address(peer, index, &port);
	json_t *path;

	mrc_conn_path_info(peer->conn, index, &info);
	snprintf(address, sizeof(address), strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
		 port);
	path = json_pack("{s:s s:i s:s s:s s:s s:s s:b s:b s:b}", "peer", peer->name, "index",
			 (int)index, "rail", peer->paths[index].rail->conf->name, "address",
			 address, "state", mrc_path_state_name(info.state), "reason",
			 mrc_path_reason_name(info.reason), "connected", (int)info.is_connected,
			 "carrier", (int)info.is_carrier_up, "degraded",
			 (int)(health->state != MRC_HEALTH_GOOD));
	if (path == NULL)
		return NULL;
	if (mrcd_peer_path_drill(peer, index) != NULL)
		json_object_set_new(path, "drill", json_string(mrcd_peer_path_drill(peer, index)));
	mrcd_peer_set(path, "epoch", info.epoch);
	mrcd_peer_set(path, "wire_version", info.version);
	mrcd_peer_set(path, "wire_features", info.features);
	mrcd_peer_set(path, "rtt_ns", info.rtt_ns);
	mrcd_peer_set(path, "rtt_ns_min", info.rtt_ns_min);
	mrcd_peer_set(path, "rate_bytes_per_s", info.rate_bytes_per_s);
	mrcd_peer_set(path, "window_bytes", info.window_bytes);
	mrcd_peer_set(path, "bytes_in_flight", info.bytes_in_flight);
	mrcd_peer_set(path, "frames_in_flight", info.frames_in_flight);
	mrcd_peer_set(path, "frames_sent", info.frames_sent);
	mrcd_peer_set(path, "frames_received", info.frames_received);
	mrcd_peer_set(path, "bytes_sent", info.bytes_sent);
	mrcd_peer_set(path, "bytes_received", info.bytes_received);
	mrcd_peer_set(path, "frames_resent", info.frames_resent);
	mrcd_peer_set(path, "suspicions", info.suspicions);
	mrcd_peer_set(path, "suspicions_false", info.suspicions_false);
	mrcd_peer_set(path, "body_errors", info.body_errors);
	mrcd_peer_set(path, "header_errors", info.header_errors);
	mrcd_peer_set(path, "good_count", info.good_count);
	mrcd_peer_set(path, "bad_count", info.bad_count);
	mrcd_peer_set(path, "flaps", peer->paths[index].flaps);
	if (peer->paths[index].flaps > 0)
		mrcd_peer_set(path, "flap_age_ns", now_ns - peer->paths[index].flapped_ns);
	/* Of a path that has been in one state from the start: since then, not since the machine's. */
	mrcd_peer_set(path, "state_age_ns",
		      now_ns - MRC_MAX(info.state_since_ns, peer->worker->start_ns));
	mrcd_health_describe_path(health, now_ns, path);
	if (about != NULL)
		json_object_set_new(path, "about", mrcd_about_peer_json(about));
	if (link != NULL) {
		json_object_set_new(path, "link", json_string(link->ops->kind));
		json_object_set_new(path, "encrypted", json_boolean(link->is_sealed));
		if (link->key_id[0] != '\0')
			json_object_set_new(path, "key", json_string(link->key_id));
		if (link->ops->describe != NULL)
			link->ops->describe(link, path);
	}
	return path;
}

json_t *mrcd_peer_paths_json(const struct mrcd_peer *peer)
{
	json_t *paths = json_array();

	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != NULL)
			json_array_append_new(paths, mrcd_peer_path_json(peer, i));
	}
	return paths;
}

static uint32_t mrcd_peer_key_paths(const struct mrcd_peer *peer, const char *id)
{
	uint32_t count = 0;

	for (uint8_t i = 0; i < peer->path_count; i++)
		count +=
			peer->paths[i].link != NULL && strcmp(peer->paths[i].link->key_id, id) == 0;
	return count;
}

static void mrcd_peer_key_add(const struct mrcd_peer *peer, json_t *keys, const char *use,
			      const char *id, const char *file)
{
	json_array_append_new(keys, json_pack("{s:s s:s s:s s:s s:i s:i}", "peer", peer->name,
					      "key", id, "use", use, "file", file, "paths",
					      (int)mrcd_peer_key_paths(peer, id), "paths_of",
					      (int)mrcd_peer_paths_listed(peer)));
}

json_t *mrcd_peer_keys_json(const struct mrcd_peer *peer)
{
	json_t *keys = json_array();
	uint32_t key_count;
	const struct mrcd_key *conf = mrcd_peer_keys(peer, &key_count);

	for (uint32_t i = 0; i < key_count; i++)
		mrcd_peer_key_add(peer, keys, i == 0 ? "proved first" : "accepted", conf[i].id,
				  conf[i].file);
	/* A path lives on with the key it was opened with, also when that has left the configuration. */
	for (uint8_t i = 0; i < peer->path_count; i++) {
		const struct mrcd_link *link = peer->paths[i].link;
		bool is_listed = link == NULL || link->key_id[0] == '\0';
		const json_t *key;
		size_t k;

		json_array_foreach(keys, k, key) if (!is_listed) is_listed =
			strcmp(json_string_value(json_object_get(key, "key")), link->key_id) == 0;
		if (!is_listed)
			mrcd_peer_key_add(peer, keys, "removed", link->key_id, "");
	}
	return keys;
}

json_t *mrcd_peer_channels_json(const struct mrcd_peer *peer)
{
	json_t *channels = json_array();
	struct mrc_channel_info info;
	uint32_t iter = 0;

	while (mrc_conn_channel_info(peer->conn, &iter, &info)) {
		json_t *channel =
			json_pack("{s:s s:I s:s s:s s:b s:s s:b}", "peer", peer->name, "id",
				  (json_int_t)info.id, "service",
				  info.service != NULL ? info.service : "", "state", info.state,
				  "unordered", (int)info.is_unordered, "integrity",
				  info.is_unchecked ? "off" : "on", "opener", (int)info.is_opener);

		if (channel == NULL)
			continue;
		mrcd_peer_set(channel, "sent", info.sent);
		mrcd_peer_set(channel, "settled", info.sent_settled);
		mrcd_peer_set(channel, "delivered", info.delivered);
		mrcd_peer_set(channel, "released", info.released);
		mrcd_peer_set(channel, "bytes_sent", info.bytes_sent);
		mrcd_peer_set(channel, "bytes_delivered", info.bytes_delivered);
		mrcd_peer_set(channel, "sends_queued", info.sends_queued);
		if (peer->worker->clients != NULL)
			mrcd_client_side_describe(peer->worker->clients, info.cookie, channel);
		json_array_append_new(channels, channel);
	}
	return channels;
}
