/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_run - the sending side: bw, rate, lat, stream and gap
 *
 * A run goes through phases: connect all channels and have the far side accept
 * their setup; send; wait for the last answers; ask the far side what arrived;
 * close. Channels are lanes (mrc_perf_lane.h). What was sent in one life of a
 * channel is a session: when a stream reconnects, the lane gets a new session
 * and the old one is asked about at the end, on whatever channel there is.
 *
 * Threads: one.
 */
#ifndef MRC_PERF_RUN_H
#define MRC_PERF_RUN_H

#include "mrc_perf_control.h"
#include "mrc_perf_gap.h"
#include "mrc_perf_lane.h"
#include "mrc_perf_loop.h"
#include "mrc_perf_report.h"
#include "mrc_perf_stall.h"

#define PERF_EXIT_OK      0
#define PERF_EXIT_DAMAGED 1
#define PERF_EXIT_USAGE   2
#define PERF_EXIT_NOBODY  3

enum perf_phase {
	PERF_PHASE_CONNECTING,
	PERF_PHASE_RUNNING,
	PERF_PHASE_DRAINING,
	PERF_PHASE_ASKING,
	PERF_PHASE_CLOSING,
	PERF_PHASE_ENDED,
};

enum perf_session_state {
	PERF_SESSION_LIVE,
	PERF_SESSION_ASKING,
	PERF_SESSION_ANSWERED,
	PERF_SESSION_UNANSWERED,
};

struct perf_session {
	uint64_t nonce;
	uint64_t sent;
	uint64_t answered_ok;
	uint64_t ok_next; /* highest number answered OK, plus 1 */
	enum perf_session_state state;
};

struct perf_run {
	const struct perf_options *options;
	FILE *text; /* borrowed */
	struct perf_loop loop;
	struct perf_control control;
	struct perf_gap *gap;      /* ours; NULL in other modes */
	struct mrc_client *client; /* NULL while the daemon is away */
	char arena_refused
		[160]; /* the daemon's words, if it did not give the send arena asked for */

	enum perf_phase phase;
	uint64_t phase_deadline_ns;
	int exit_code;  /* PERF_EXIT_NOBODY or _USAGE once the run cannot be */
	bool is_broken; /* a channel ended and is not to be made anew */

	struct perf_lane *lanes;
	uint32_t lane_next;   /* whose turn it is */
	uint32_t outstanding; /* sends of all lanes */
	bool is_ping_out;     /* lat: the one message is under way */
	struct perf_session *sessions;
	uint32_t session_count;
	uint32_t session_count_max;

	uint64_t attach_retry_ns;
	uint64_t attach_backoff_ns;

	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t stop_ns; /* when sending ended */
	uint64_t completed_last_ns;
	uint64_t sent_total;
	uint64_t pace_next_ns;
	uint64_t pace_step_ns;

	struct perf_stall stall;
	uint64_t tick_next_ns;
	uint64_t tick_last_ns;
	struct perf_point point;         /* of the interval under way */
	struct perf_point point_pending; /* ended, waiting for the rails */
	bool has_pending;
	uint64_t pending_deadline_ns;
	struct perf_result result;
};

/* Run, report on `text` (and JSON on stdout), answer the exit code. */
int perf_run(const struct perf_options *options, FILE *text);

/* For the lanes. */
bool perf_run_is_persistent(const struct perf_run *run);
/* A message completed at its level (lat: came back). */
void perf_run_completed(struct perf_run *run, uint64_t sent_ns, uint64_t now_ns);
/* A new session; answers its index, or -ENOMEM. */
int perf_run_session_new(struct perf_run *run, uint64_t nonce);
/* The far side's word on a session. */
void perf_run_session_answered(struct perf_run *run, const struct perf_answer *answer);
/* The run cannot be: say why, end with exit_code. */
void __attribute__((format(printf, 3, 4)))
perf_run_give_up(struct perf_run *run, int exit_code, const char *format, ...);

#endif
