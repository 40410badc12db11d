/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_metrics_table - every metric: its name, type, what it is of, unit, value and help
 *
 * X(id, type, scope, unit, name, value, help)
 *
 * Names and units are as Prometheus wants them: seconds and bytes, counters end
 * in _total. The value is an expression of `at` (struct metric_at in
 * mrcd_metrics.c); NOT_KNOWN leaves the series out. Of a histogram it is a
 * pointer to one. Counters of the daemon begin at 0 with it.
 *
 * Scopes, and their labels:
 *	DAEMON
 *	RAIL   rail
 *	PEER   peer
 *	PATH   peer, rail, path (the number of it in the peer's list)
 *	STAGE  stage
 *	BUILD, RAIL_INFO, PATH_STATE: words as labels, the value is 0 or 1
 *	RAIL_CARD  rail, error (as the kernel calls it)
 */
#ifndef MRCD_METRICS_TABLE_H
#define MRCD_METRICS_TABLE_H

/* clang-format off */
#define MRCD_METRICS(X) \
	X(BUILD_INFO, GAUGE, BUILD, COUNT, "mrcd_build_info", 1, \
	  "The daemon's version and the rails it was built with.") \
	X(PROCESS_START_TIME_SECONDS, GAUGE, DAEMON, NS, "process_start_time_seconds", at->start_wall_ns, \
	  "When the process started, since the epoch.") \
	X(PROCESS_CPU_SECONDS_TOTAL, COUNTER, DAEMON, NS, "process_cpu_seconds_total", cpu_ns(), \
	  "Processor time of all threads, in user and system mode.") \
	X(PROCESS_RESIDENT_MEMORY_BYTES, GAUGE, DAEMON, COUNT, "process_resident_memory_bytes", resident_bytes(), \
	  "Resident memory, clients' arenas included as far as they are mapped.") \
	X(DRAINING, GAUGE, DAEMON, COUNT, "mrcd_draining", at->summary->is_draining, \
	  "Whether this host is being drained: it takes no new channels and services.") \
	X(CLIENTS, GAUGE, DAEMON, COUNT, "mrcd_clients", at->summary->clients, \
	  "Programs that are attached.") \
	X(CHANNELS, GAUGE, DAEMON, COUNT, "mrcd_channels", at->summary->channels, \
	  "Channels of this host's programs; one with both ends here counts once.") \
	X(RAILS, GAUGE, DAEMON, COUNT, "mrcd_rails", at->summary->rails, \
	  "Rails in the configuration.") \
	X(RAILS_UP, GAUGE, DAEMON, COUNT, "mrcd_rails_up", at->summary->rails_up, \
	  "Rails with a carrier that are not drained.") \
	X(PEERS, GAUGE, DAEMON, COUNT, "mrcd_peers", at->summary->peers, \
	  "Peers in the configuration.") \
	X(PEERS_CONNECTED, GAUGE, DAEMON, COUNT, "mrcd_peers_connected", at->summary->peers_connected, \
	  "Peers with a good path that are not silent.") \
	X(STRANGERS_TOTAL, COUNTER, DAEMON, COUNT, "mrcd_strangers_total", at->worker->strangers, \
	  "Connections to rails that were refused before or in the handshake.") \
	X(EVENTS_TOTAL, COUNTER, DAEMON, COUNT, "mrcd_events_total", mrcd_event_log_count(at->worker->events), \
	  "Events of paths, rails and peers.") \
	X(EVENTS_DROPPED_TOTAL, COUNTER, DAEMON, COUNT, "mrcd_events_dropped_total", mrcd_event_log_dropped(at->worker->events), \
	  "Events that are no longer kept in the ring that mrcctl events shows.") \
	X(HTTP_REQUESTS_TOTAL, COUNTER, DAEMON, COUNT, "mrcd_http_requests_total", \
	  at->worker->http ? mrcd_http_requests(at->worker->http) : 0, \
	  "Requests to this server that were answered.") \
	X(HTTP_REFUSALS_TOTAL, COUNTER, DAEMON, COUNT, "mrcd_http_refusals_total", \
	  at->worker->http ? mrcd_http_refusals(at->worker->http) : 0, \
	  "Requests and connections to this server that were turned away.") \
	X(STAGE_SECONDS, HISTOGRAM, STAGE, NS, "mrcd_stage_seconds", mrcd_trace_stage(at->worker->traces, at->stage), \
	  "How long messages to peers take, stage by stage, of those that were traced: a sample of at most 100 a second.") \
	\
	X(RAIL_INFO, GAUGE, RAIL_INFO, COUNT, "mrcd_rail_info", 1, \
	  "The rail's type, interface and address.") \
	X(RAIL_CARRIER, GAUGE, RAIL, COUNT, "mrcd_rail_carrier", at->rail->is_carrier_up, \
	  "Whether the rail's interface has a carrier.") \
	X(RAIL_DRAINED, GAUGE, RAIL, COUNT, "mrcd_rail_drained", at->rail->is_draining, \
	  "Whether the operator took the rail out of service.") \
	X(RAIL_DRILLED, GAUGE, RAIL, COUNT, "mrcd_rail_drilled", mrcd_rail_drill_name(at->rail) != NULL, \
	  "Whether the rail, or a path over it, is in a drill, here or of a peer's.") \
	X(RAIL_SPEED_BYTES_PER_SECOND, GAUGE, RAIL, COUNT, "mrcd_rail_speed_bytes_per_second", rail_speed(at->rail), \
	  "What the rail should carry, by the configuration or the interface.") \
	X(RAIL_PATHS, GAUGE, RAIL, COUNT, "mrcd_rail_paths", rail_paths(at, false), \
	  "Paths over the rail.") \
	X(RAIL_PATHS_GOOD, GAUGE, RAIL, COUNT, "mrcd_rail_paths_good", rail_paths(at, true), \
	  "Paths over the rail that are in service.") \
	X(RAIL_SENT_BYTES_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_sent_bytes_total", at->rail->bytes_sent, \
	  "Payload sent by the rail, resent fragments included.") \
	X(RAIL_RECEIVED_BYTES_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_received_bytes_total", at->rail->bytes_received, \
	  "Payload received by the rail.") \
	X(RAIL_SENT_FRAMES_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_sent_frames_total", at->rail->frames_sent, \
	  "Frames sent by the rail, probes and acknowledgements included.") \
	X(RAIL_RECEIVED_FRAMES_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_received_frames_total", at->rail->frames_received, \
	  "Frames received by the rail.") \
	X(RAIL_CARRIER_LOSSES_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_carrier_losses_total", at->rail->carrier_losses, \
	  "How often the rail lost its carrier, but not in a drill.") \
	X(RAIL_FLAPS_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_flaps_total", at->rail->flaps, \
	  "How often a path over the rail left service, but not by the operator, nor in a drill.") \
	X(RAIL_CARD_ERRORS_TOTAL, COUNTER, RAIL_CARD, COUNT, "mrcd_rail_card_errors_total", card_count(at), \
	  "What the rail's network card counts as errors, since its driver was loaded; which of them is the kernel's word.") \
	X(RAIL_STRANGERS_TOTAL, COUNTER, RAIL, COUNT, "mrcd_rail_strangers_total", at->rail->strangers, \
	  "Connections to the rail that were refused before or in the handshake.") \
	X(RAIL_HEALTH_SCORE, GAUGE, RAIL, COUNT, "mrcd_rail_health_score", at->rail->health.view.score, \
	  "How well the rail does, by the paths over it: 100 is well. See mrcd(8).") \
	X(RAIL_DEGRADED, GAUGE, RAIL, COUNT, "mrcd_rail_degraded", at->rail->health.view.state != MRC_HEALTH_GOOD, \
	  "Whether the rail is degraded or failing.") \
	X(RAIL_FAILING, GAUGE, RAIL, COUNT, "mrcd_rail_failing", at->rail->health.view.state == MRC_HEALTH_FAILING, \
	  "Whether the rail will leave service before long, as its trend says.") \
	X(RAIL_RTT_SECONDS, HISTOGRAM, RAIL, NS, "mrcd_rail_rtt_seconds", rail_rtts(at), \
	  "Round trips of frames by the rail: from a frame's post to its acknowledgement.") \
	\
	X(PEER_CONNECTED, GAUGE, PEER, COUNT, "mrcd_peer_connected", at->conn.paths_good > 0 && !at->conn.is_peer_silent, \
	  "Whether a path to the peer is good.") \
	X(PEER_SILENT, GAUGE, PEER, COUNT, "mrcd_peer_silent", at->conn.is_peer_silent, \
	  "Whether the peer is silent on all paths at once.") \
	X(PEER_DRAINING, GAUGE, PEER, COUNT, "mrcd_peer_draining", at->conn.is_peer_draining, \
	  "Whether the peer's host is being drained, as it says.") \
	X(PEER_PATHS, GAUGE, PEER, COUNT, "mrcd_peer_paths", at->conn.paths_listed, \
	  "Paths to the peer.") \
	X(PEER_PATHS_GOOD, GAUGE, PEER, COUNT, "mrcd_peer_paths_good", at->conn.paths_good, \
	  "Paths to the peer that are in service.") \
	X(PEER_CHANNELS, GAUGE, PEER, COUNT, "mrcd_peer_channels", at->conn.channel_count, \
	  "Channels to the peer.") \
	X(PEER_RESTARTS_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_restarts_total", at->conn.resets, \
	  "How often the peer's daemon came back without the state of the connection.") \
	X(PEER_SENT_MESSAGES_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_sent_messages_total", at->conn.messages_sent, \
	  "Messages sent to the peer.") \
	X(PEER_DELIVERED_MESSAGES_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_delivered_messages_total", at->conn.messages_delivered, \
	  "Messages of the peer that were delivered here.") \
	X(PEER_FAILED_MESSAGES_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_failed_messages_total", at->conn.messages_failed, \
	  "Messages to the peer that ended with another outcome than OK.") \
	X(PEER_DUPLICATE_FRAGMENTS_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_duplicate_fragments_total", at->conn.duplicates, \
	  "Fragments of the peer that were here already: the price of resending.") \
	X(PEER_PROTOCOL_ERRORS_TOTAL, COUNTER, PEER, COUNT, "mrcd_peer_protocol_errors_total", at->conn.protocol_errors, \
	  "Frames of the peer that broke the protocol.") \
	X(PEER_CLOCK_OFFSET_SECONDS, GAUGE, PEER, NS, "mrcd_peer_clock_offset_seconds", \
	  at->conn.is_clock_known ? at->conn.clock_offset_ns : NOT_KNOWN, \
	  "The peer's monotonic clock less ours.") \
	X(PEER_STALL_SECONDS, HISTOGRAM, PEER, NS, "mrcd_peer_stall_seconds", &mrcd_peer_stalls(at->peer)->gaps, \
	  "How long the sender of a channel to the peer waited from one answer to the next.") \
	\
	X(PATH_STATE, GAUGE, PATH_STATE, COUNT, "mrcd_path_state", (int)at->path.state == at->state, \
	  "The path's state: 1 for the one it is in. It carries data in state good.") \
	X(PATH_HEALTH_SCORE, GAUGE, PATH, COUNT, "mrcd_path_health_score", at->health->score, \
	  "How well the path does: 100 is well. See mrcd(8).") \
	X(PATH_DEGRADED, GAUGE, PATH, COUNT, "mrcd_path_degraded", at->health->state != MRC_HEALTH_GOOD, \
	  "Whether the path is degraded or failing.") \
	X(PATH_FAILING, GAUGE, PATH, COUNT, "mrcd_path_failing", at->health->state == MRC_HEALTH_FAILING, \
	  "Whether the path will leave service before long, as its trend says.") \
	X(PATH_STATE_AGE_SECONDS, GAUGE, PATH, NS, "mrcd_path_state_age_seconds", at->worker->now_ns - MRC_MAX(at->path.state_since_ns, at->worker->start_ns), \
	  "For how long the path has been in its state.") \
	X(PATH_RTT_SECONDS, GAUGE, PATH, NS, "mrcd_path_rtt_seconds", at->path.rtt_ns > 0 ? at->path.rtt_ns : NOT_KNOWN, \
	  "The path's round trip, smoothed.") \
	X(PATH_RATE_BYTES_PER_SECOND, GAUGE, PATH, COUNT, "mrcd_path_rate_bytes_per_second", \
	  at->path.rate_bytes_per_s > 0 ? at->path.rate_bytes_per_s : NOT_KNOWN, \
	  "What the path is known to deliver.") \
	X(PATH_WINDOW_BYTES, GAUGE, PATH, COUNT, "mrcd_path_window_bytes", at->path.window_bytes, \
	  "How much the path may have under way.") \
	X(PATH_INFLIGHT_BYTES, GAUGE, PATH, COUNT, "mrcd_path_inflight_bytes", at->path.bytes_in_flight, \
	  "How much it has under way.") \
	X(PATH_SENT_BYTES_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_sent_bytes_total", at->path.bytes_sent, \
	  "Payload sent by the path, resent fragments included.") \
	X(PATH_RECEIVED_BYTES_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_received_bytes_total", at->path.bytes_received, \
	  "Payload received by the path.") \
	X(PATH_SENT_FRAMES_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_sent_frames_total", at->path.frames_sent, \
	  "Frames sent by the path.") \
	X(PATH_RECEIVED_FRAMES_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_received_frames_total", at->path.frames_received, \
	  "Frames received by the path.") \
	X(PATH_MOVED_FRAGMENTS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_moved_fragments_total", at->path.frames_resent, \
	  "Fragments taken off the path and sent by another.") \
	X(PATH_SUSPICIONS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_suspicions_total", at->path.suspicions, \
	  "How often the path was suspected because it did not answer in time.") \
	X(PATH_FALSE_SUSPICIONS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_false_suspicions_total", at->path.suspicions_false, \
	  "Suspicions that proved false: all had arrived.") \
	X(PATH_CORRUPT_PAYLOADS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_corrupt_payloads_total", at->path.body_errors, \
	  "Frames by the path whose payload failed its checksum.") \
	X(PATH_CORRUPT_HEADERS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_corrupt_headers_total", at->path.header_errors, \
	  "Frames by the path whose header failed its checksum.") \
	X(PATH_ENTRIES_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_entries_total", at->path.good_count, \
	  "How often the path came into service.") \
	X(PATH_EXITS_TOTAL, COUNTER, PATH, COUNT, "mrcd_path_exits_total", at->path.bad_count, \
	  "How often the path left service, the operator's drains included.")
/* clang-format on */

#endif
