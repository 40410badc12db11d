/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_status.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_control_impl.h"
#include "mrcd_event_log.h"
#include "mrcd_health.h"
#include "mrcd_peer.h"

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

static json_t *rail_json(struct mrcd_worker *worker, const struct mrcd_rail *rail)
{
	uint32_t paths = 0, paths_good = 0, good;
	json_t *object = json_pack("{s:s s:s s:s s:b s:b}", "name", rail->conf->name, "type",
				   rail->ops->kind, "interface", rail->conf->interface, "carrier",
				   (int)rail->is_carrier_up, "drained", (int)rail->is_draining);

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		paths += mrcd_peer_rail_paths(worker->peers[i], rail->index, &good);
		paths_good += good;
	}
	set(object, "speed_bits_per_s", mrcd_control_rail_speed(rail));
	set(object, "bytes_sent", rail->bytes_sent);
	set(object, "bytes_received", rail->bytes_received);
	set(object, "paths", paths);
	set(object, "paths_good", paths_good);
	set(object, "flaps", rail->flaps);
	if (mrcd_rail_drill_name(rail) != NULL)
		json_object_set_new(object, "drill", json_string(mrcd_rail_drill_name(rail)));
	if (rail->health.view.state != MRC_HEALTH_GOOD) {
		char why[256];

		json_object_set_new(object, "health",
				    json_string(mrc_health_state_name(rail->health.view.state)));
		json_object_set_new(object, "why",
				    json_string(
					    mrcd_health_why(&rail->health.view, why, sizeof(why))));
	}
	return object;
}

static json_t *path_json(const struct mrcd_worker *worker, struct mrcd_peer *peer, uint8_t index)
{
	struct mrc_path_info info;
	json_t *object;

	mrc_conn_path_info(mrcd_peer_conn(peer), index, &info);
	object = json_pack("{s:s s:s s:s s:s s:b}", "peer", mrcd_peer_name(peer), "rail",
			   mrcd_peer_path_rail(peer, index)->conf->name, "state",
			   mrc_path_state_name(info.state), "reason",
			   mrc_path_reason_name(info.reason), "degraded",
			   (int)(mrcd_peer_path_health(peer, index)->state != MRC_HEALTH_GOOD));
	set(object, "state_age_ns",
	    worker->now_ns - MRC_MAX(info.state_since_ns, worker->start_ns));
	set(object, "rtt_ns", info.rtt_ns);
	set(object, "rate_bytes_per_s", info.rate_bytes_per_s);
	set(object, "moved", info.frames_resent);
	set(object, "exits", info.bad_count);
	set(object, "corrupt", info.body_errors + info.header_errors);
	return object;
}

/* Those that are out of order and then the others, as far as there is room. Answers how many are left out. */
static uint32_t put_peers(struct mrcd_worker *worker, json_t *peers, json_t *paths)
{
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < worker->peer_count; i++) {
			struct mrcd_peer *peer = worker->peers[i];
			struct mrc_conn_info info;

			mrc_conn_info(mrcd_peer_conn(peer), &info);
			if ((info.paths_good == info.paths_listed) != (pass == 1))
				continue;
			if (json_array_size(peers) >= MRCD_STATUS_PEERS_MAX ||
			    json_array_size(paths) + info.paths_listed > MRCD_STATUS_PATHS_MAX)
				continue;
			json_array_append_new(peers, mrcd_peer_json(peer));
			for (uint8_t p = 0; p < info.path_count; p++) {
				if (mrcd_peer_path_rail(peer, p) != NULL)
					json_array_append_new(paths, path_json(worker, peer, p));
			}
		}
	}
	return worker->peer_count - (uint32_t)json_array_size(peers);
}

json_t *mrcd_status_json(struct mrcd_worker *worker, uint64_t since)
{
	json_t *rails = json_array(), *peers = json_array(), *paths = json_array(), *status;
	uint64_t stall_since_ns = worker->now_ns - MRC_MIN(worker->now_ns, MRCD_STATUS_STALL_NS);
	struct mrcd_worker_summary summary;
	char boot_id[24], text[160];
	uint32_t left_out;

	mrcd_worker_summarize(worker, &summary);
	mrcd_worker_summary_text(&summary, text, sizeof(text));
	snprintf(boot_id, sizeof(boot_id), "%016llx", (unsigned long long)worker->boot_id);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			json_array_append_new(rails, rail_json(worker, &worker->rails[i]));
	}
	left_out = put_peers(worker, peers, paths);
	status = json_pack("{s:s s:s s:s s:s s:i s:o s:o s:o s:o s:o}", "host", worker->conf->host,
			   "version", MRC_VERSION, "boot_id", boot_id, "summary", text, "pid",
			   (int)getpid(), "rails", rails, "peers", peers, "paths", paths, "stalls",
			   mrcd_peer_stalls_json(worker, stall_since_ns, MRCD_STATUS_PEERS_MAX),
			   "events", mrcd_event_log_json(worker->events, since));
	json_object_set_new(status, "draining", json_boolean(summary.is_draining));
	set(status, "peers_left_out", left_out);
	set(status, "clients", summary.clients);
	set(status, "channels", summary.channels);
	set(status, "strangers", worker->strangers);
	set(status, "now_ns", worker->now_ns);
	set(status, "wall_ns", wall_ns());
	set(status, "uptime_ns", worker->now_ns - worker->start_ns);
	return status;
}
