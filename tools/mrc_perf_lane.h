/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_lane - one channel of a run, its send buffers and its lives
 *
 * Ownership: a lane owns its channel and slots; send memory belongs to the
 *            attachment and is gone with it (perf_lane_detached).
 * Threads:   one.
 */
#ifndef MRC_PERF_LANE_H
#define MRC_PERF_LANE_H

#include <mrc/client.h>

#include "mrc_perf_pattern.h"
#include "mrc_perf_verify.h"
#include "mrc_perf_wire.h"

struct perf_run;

enum perf_lane_state {
	PERF_LANE_DOWN, /* until retry_ns */
	PERF_LANE_CONNECTING,
	PERF_LANE_SETTING_UP, /* the far side has to accept our setup message */
	PERF_LANE_READY,
	PERF_LANE_CLOSING,
	PERF_LANE_ENDED, /* for good */
};

/* One send buffer. */
struct perf_slot {
	void *region;
	struct perf_source source;
	uint64_t sent_ns;
	uint64_t number;
};

struct perf_lane {
	struct perf_run *run;
	uint32_t index;
	enum perf_lane_state state;
	struct mrc_channel *channel; /* NULL while down */
	/* Given up in this turn. Events of it may still be in our hands: freed by perf_lane_sweep(). */
	struct mrc_channel *channel_doomed;
	struct perf_slot *slots;
	uint32_t slot_count;
	uint32_t slot_count_max;
	uint32_t *slots_free; /* a stack: the last one back is the warmest */
	uint32_t slot_free_count;
	uint32_t outstanding;
	void *control_buf; /* PERF_WIRE_BYTES, for setup and questions */
	bool is_control_busy;
	bool is_filled; /* the payload has been touched */
	uint32_t session_index;
	int32_t asking_index; /* session asked about, or -1 */
	uint64_t number_next;
	uint64_t sent_last_ns;
	uint64_t retry_ns;
	uint64_t backoff_ns;
	int status_last;    /* why it is down: enum mrc_status */
	uint32_t code_last; /* and the code that came with it */
	struct perf_pattern pattern;
};

int perf_lane_init(struct perf_lane *lane, struct perf_run *run, uint32_t index,
		   uint32_t slot_count_max);
void perf_lane_fini(struct perf_lane *lane);

/* A new attachment: take control_buf from it. 0 or what mrc_buf_alloc() says. */
int perf_lane_attached(struct perf_lane *lane);
/* And one slot more of it. */
int perf_lane_slot_add(struct perf_lane *lane);
/* The attachment is about to end: channel and buffers go with it. */
void perf_lane_detached(struct perf_lane *lane, uint64_t now_ns);

/* Why it is down, for people; never NULL. `text` is for where words have to be put together. */
#define PERF_LANE_WHY_BYTES 160
const char *perf_lane_why(const struct perf_lane *lane, char text[PERF_LANE_WHY_BYTES]);

/* All events of this turn are dealt with. */
void perf_lane_sweep(struct perf_lane *lane);

/* Open the channel, if it is down and it is time. */
void perf_lane_open(struct perf_lane *lane, uint64_t now_ns);
void perf_lane_handle(struct perf_lane *lane, const struct mrc_event *event, uint64_t now_ns);

/* Send the next message. 0; -EAGAIN: not now; another negative errno: not on this channel. */
int perf_lane_send(struct perf_lane *lane, uint64_t now_ns);
/* Ask the far side about a session. The same answers. */
int perf_lane_ask(struct perf_lane *lane, uint32_t session_index);
void perf_lane_close(struct perf_lane *lane);

#endif
