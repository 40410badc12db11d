/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_info - looking in, for mrcctl, metrics and tests */
#include "mrc_conn_impl.h"

#define FILLED_NS (2 * MRC_S) /* so long after it was kept full its rate says what it can */

void mrc_conn_info(const struct mrc_conn *conn, struct mrc_conn_info *info_out)
{
	*info_out = (struct mrc_conn_info){
		.epoch = conn->epoch,
		.peer_boot_id = conn->peer_boot_id,
		.path_count = conn->path_count,
		.channel_count = conn->channel_count,
		.is_peer_silent = conn->silent_since_ns != MRC_NEVER,
		.is_peer_draining = conn->is_peer_draining,
		.is_status_told = conn->port_version_told == conn->port_version,
		.resets = conn->resets,
		.messages_sent = conn->messages_sent,
		.messages_delivered = conn->messages_delivered,
		.messages_failed = conn->messages_failed,
		.duplicates = conn->duplicates,
		.protocol_errors = conn->protocol_errors,
		.is_clock_known = conn->clock.is_known,
	};
	if (conn->clock.is_known && !conn->has_one_clock) {
		info_out->clock_offset_ns = mrc_clock_offset_ns(&conn->clock);
		info_out->clock_error_ns = mrc_clock_error_ns(&conn->clock, conn->now_ns);
		info_out->clock_age_ns = conn->now_ns - MRC_MIN(conn->clock.at_ns, conn->now_ns);
	}
	for (uint8_t i = 0; i < conn->path_count; i++) {
		info_out->paths_good += conn->paths[i].state == MRC_PATH_GOOD;
		info_out->paths_listed += !conn->paths[i].is_absent;
	}
}

const char *mrc_conn_breach(const struct mrc_conn *conn)
{
	return conn->breach ? conn->breach : "";
}

void mrc_conn_path_info(const struct mrc_conn *conn, uint8_t path_index,
			struct mrc_path_info *info_out)
{
	const struct mrc_path *path = &conn->paths[path_index];

	MRC_ASSERT(path_index < conn->path_count);
	*info_out = (struct mrc_path_info){
		.state = path->state,
		.reason = path->reason,
		.is_absent = path->is_absent,
		.is_connecting = path->is_connecting,
		.is_connected = path->is_connected,
		.is_carrier_up = path->is_carrier_up,
		.is_filled = path->state == MRC_PATH_GOOD && path->full_ns != 0 &&
			     conn->now_ns - path->full_ns <= FILLED_NS,
		.epoch = path->epoch,
		.version = path->version,
		.features = path->features,
		.frames_in_flight = (uint32_t)(path->posted - path->acked),
		.bytes_in_flight = path->bytes_in_flight,
		.window_bytes = path->window_bytes,
		.rate_bytes_per_s = path->rate.best,
		.rtt_ns = path->rtt.smoothed_ns,
		.rtt_ns_min = path->rtt.min_ns == MRC_NEVER ? 0 : path->rtt.min_ns,
		.frames_sent = path->frames_sent,
		.frames_received = path->frames_received,
		.bytes_sent = path->bytes_sent,
		.bytes_received = path->bytes_received,
		.frames_resent = path->frames_resent,
		.suspicions = path->suspicions,
		.suspicions_false = path->suspicions_false,
		.body_errors = path->body_errors,
		.header_errors = path->header_errors,
		.good_count = path->good_count,
		.bad_count = path->bad_count,
		.state_since_ns = path->state_since_ns,
	};
}

bool mrc_conn_has_feature(const struct mrc_conn *conn, uint32_t feature)
{
	bool is_any = false;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (!path->is_connected)
			continue;
		if ((path->features & feature) != feature)
			return false;
		is_any = true;
	}
	return is_any;
}

const struct mrc_histogram *mrc_conn_path_rtts(const struct mrc_conn *conn, uint8_t path_index)
{
	MRC_ASSERT(path_index < conn->path_count);
	return &conn->paths[path_index].rtts;
}

bool mrc_conn_channel_info(const struct mrc_conn *conn, uint32_t *iter,
			   struct mrc_channel_info *info_out)
{
	static const char *const state_names[] = {
		[MRC_CH_OPENING] = "opening", [MRC_CH_INCOMING] = "incoming",
		[MRC_CH_OPEN] = "open",       [MRC_CH_CLOSING] = "closing",
		[MRC_CH_ENDED] = "ended",
	};
	const struct mrc_channel *ch;

	while (*iter < conn->slot_count && !conn->slots[*iter])
		(*iter)++;
	if (*iter >= conn->slot_count)
		return false;
	ch = conn->slots[(*iter)++];
	*info_out = (struct mrc_channel_info){
		.id = ch->id,
		.cookie = ch->cookie,
		.state = state_names[ch->state],
		.service = ch->service,
		.is_unordered = ch->is_unordered,
		.is_unchecked = ch->is_unchecked,
		.untraced = ch->untraced,
		.is_opener = ch->is_opener,
		.sent = ch->send_next,
		.sent_settled = ch->settled,
		.delivered = ch->delivered_count,
		.released = ch->released_count,
		.bytes_sent = ch->sent_bytes,
		.bytes_delivered = ch->delivered_bytes,
		.sends_queued = (uint32_t)(ch->send_next - ch->admit_next),
	};
	return true;
}

const char *mrc_path_state_name(enum mrc_path_state state)
{
	static const char *const names[MRC_PATH_STATE_COUNT] = {
		[MRC_PATH_CONNECTING] = "CONNECTING",
		[MRC_PATH_PROBING] = "PROBING",
		[MRC_PATH_GOOD] = "GOOD",
		[MRC_PATH_ASSUMED_BAD] = "ASSUMED_BAD",
		[MRC_PATH_DENIED] = "DENIED",
	};

	return (unsigned)state < MRC_PATH_STATE_COUNT ? names[state] : "?";
}

const char *mrc_path_reason_name(enum mrc_path_reason reason)
{
	static const char *const names[MRC_REASON_COUNT] = {
		[MRC_REASON_NONE] = "none",
		[MRC_REASON_SILENT] = "silent",
		[MRC_REASON_CARRIER] = "carrier",
		[MRC_REASON_PEER_PORT] = "peer-port",
		[MRC_REASON_ERROR] = "error",
		[MRC_REASON_CLOSED] = "closed",
		[MRC_REASON_PEER_FENCE] = "peer-fence",
		[MRC_REASON_CORRUPT] = "corrupting",
		[MRC_REASON_PROTOCOL] = "protocol",
		[MRC_REASON_CONNECT] = "connect",
		[MRC_REASON_OPERATOR] = "operator",
		[MRC_REASON_PROBE] = "probe",
		[MRC_REASON_NEW_CONN] = "new-conn",
	};

	return (unsigned)reason < MRC_REASON_COUNT ? names[reason] : "?";
}
