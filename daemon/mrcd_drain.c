/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_drain.h"

#include "mrcd_client.h"
#include "mrcd_event_log.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"

/* With both ends of the loop: what one of them has still to hear of counts as well. */
static uint64_t channels_left(const struct mrcd_worker *worker)
{
	struct mrc_conn_info info;
	uint64_t count = 0;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->peers[i]), &info);
		count += info.channel_count;
	}
	for (int i = 0; i < 2; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->loop_ends[i]), &info);
		count += info.channel_count;
	}
	return count;
}

void mrcd_drain_set(struct mrcd_worker *worker, bool is_on)
{
	uint64_t left = channels_left(worker);
	struct mrcd_event event = {.kind = is_on ? MRCD_EVENT_HOST_DRAIN : MRCD_EVENT_HOST_UNDRAIN};

	if (mrcd_drain_is_on(worker) == is_on)
		return;
	worker->drain_since_ns = is_on ? worker->now_ns : 0;
	if (is_on)
		mrcd_notice("this host is being drained: no new channels and services; "
			    "%llu channel%s open",
			    (unsigned long long)left, left == 1 ? " is" : "s are");
	else
		mrcd_notice("this host is no longer being drained");
	mrcd_event_log_add(worker->events, &event);
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_tell_drain(worker->peers[i]);
	if (worker->clients != NULL)
		mrcd_client_side_drain(worker->clients);
}

json_t *mrcd_drain_json(const struct mrcd_worker *worker)
{
	uint64_t channels = channels_left(worker), messages = 0, bytes = 0;
	bool is_on = mrcd_drain_is_on(worker);
	uint32_t programs = 0;

	if (worker->clients != NULL) {
		programs = mrcd_client_side_count(worker->clients);
		mrcd_client_side_in_flight(worker->clients, &messages, &bytes);
	}
	return json_pack("{s:s s:b s:b s:I s:I s:I s:I s:I}", "host", worker->conf->host,
			 "draining", (int)is_on, "drained", (int)(is_on && channels == 0), "for_ns",
			 (json_int_t)mrcd_drain_age_ns(worker), "programs", (json_int_t)programs,
			 "channels", (json_int_t)channels, "messages", (json_int_t)messages,
			 "bytes", (json_int_t)bytes);
}
