/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_perf_gap_report.h"
#include "mrc_perf_run_gap.h"

#define EVENTS_MAX        64
#define RAILS_WAIT_NS     (200 * PERF_MS) /* for the control socket to answer */
#define CLOSE_WAIT_NS     (1 * PERF_S)
#define AGAIN_WAIT_NS     (1 * PERF_MS)  /* after -EAGAIN with nothing outstanding */
#define PACE_BURST_NS     (10 * PERF_MS) /* what a paced sender may catch up */
#define ATTACH_MIN_NS     (20 * PERF_MS)
#define ATTACH_MAX_NS     (500 * PERF_MS)
#define ECHO_SLOTS_MAX    64U
#define ECHO_SLOTS_BYTES  (4ULL << 20)
#define ARENA_SLACK_BYTES (1ULL << 20)

bool perf_run_is_persistent(const struct perf_run *run)
{
	return run->options->mode == PERF_MODE_STREAM && !run->options->is_once;
}

void perf_run_give_up(struct perf_run *run, int exit_code, const char *format, ...)
{
	va_list arguments;

	if (run->exit_code != 0)
		return; /* the first reason is the reason */
	run->exit_code = exit_code;
	run->phase = PERF_PHASE_ENDED;
	fputs("mrc-perf: ", run->text);
	va_start(arguments, format);
	vfprintf(run->text, format, arguments);
	va_end(arguments);
	fputc('\n', run->text);
}

/* A gap that is worth a note has ended, if it was one. */
static void run_note(const struct perf_run *run, struct perf_stall_note *note, uint64_t now_ns)
{
	if (!note)
		return;
	note->wall_ns = perf_wall_ns() - (now_ns - note->start_ns);
	if (!run->options->is_quiet)
		perf_report_stall(run->text, note);
}

void perf_run_completed(struct perf_run *run, uint64_t sent_ns, uint64_t now_ns)
{
	run->result.messages++;
	run->result.bytes += run->options->size_bytes;
	run->point.messages++;
	run->point.bytes += run->options->size_bytes;
	perf_histogram_record(&run->result.latency, now_ns - sent_ns);
	run_note(run, perf_stall_completed(&run->stall, now_ns), now_ns);
	run->completed_last_ns = now_ns;
}

/* ---- sessions ---- */

int perf_run_session_new(struct perf_run *run, uint64_t nonce)
{
	if (run->session_count == run->session_count_max) {
		uint32_t count_max = run->session_count_max ? run->session_count_max * 2 : 64;
		struct perf_session *sessions;

		if (count_max > INT32_MAX)
			return -ENOMEM;
		sessions = realloc(run->sessions, count_max * sizeof(*sessions));
		if (!sessions)
			return -ENOMEM;
		run->sessions = sessions;
		run->session_count_max = count_max;
	}
	run->sessions[run->session_count] = (struct perf_session){.nonce = nonce};
	return (int)run->session_count++;
}

void perf_run_session_answered(struct perf_run *run, const struct perf_answer *answer)
{
	struct perf_session *session = NULL;
	struct perf_counts counts = {0};
	uint64_t unsure;

	for (uint32_t i = 0; i < run->session_count; i++)
		if (run->sessions[i].nonce == answer->nonce)
			session = &run->sessions[i];
	if (!session || session->state != PERF_SESSION_ASKING)
		return;
	session->state = answer->is_known ? PERF_SESSION_ANSWERED : PERF_SESSION_UNANSWERED;
	if (!answer->is_known)
		return;
	/* In order: whatever came before a message answered OK has come. Unordered: nothing follows. */
	unsure = run->options->is_unordered ? session->sent - session->answered_ok : 0;
	counts.checked = answer->checked;
	counts.duplicated = answer->duplicated;
	counts.reordered = answer->reordered;
	counts.corrupted = answer->corrupted;
	counts.lost =
		perf_verify_lost(answer->number_next, answer->skipped, answer->unplaced,
				 run->options->is_unordered ? session->sent : session->ok_next,
				 unsure);
	perf_counts_add(&run->result.counts, &counts);
	if (answer->gap_ns_max > run->result.arrival_gap_ns_max)
		run->result.arrival_gap_ns_max = answer->gap_ns_max;
}

/* Give each lane that is free a session to ask about; true when there is none left. */
static bool run_ask(struct perf_run *run)
{
	bool is_done = true;
	uint32_t lane = 0;

	for (uint32_t i = 0; i < run->session_count; i++) {
		struct perf_session *session = &run->sessions[i];

		if (session->sent == 0)
			session->state = PERF_SESSION_ANSWERED;
		if (session->state == PERF_SESSION_ASKING)
			is_done = false;
		if (session->state != PERF_SESSION_LIVE)
			continue;
		is_done = false;
		while (lane < run->options->channels && perf_lane_ask(&run->lanes[lane], i) != 0)
			lane++;
	}
	return is_done;
}

/* Whether anybody is there who could be asked, or will be. */
static bool run_can_ask(const struct perf_run *run)
{
	for (uint32_t i = 0; i < run->options->channels; i++)
		if (run->lanes[i].state != PERF_LANE_ENDED)
			return true;
	return false;
}

/* ---- attachment ---- */

static uint32_t slots_per_lane(const struct perf_options *options)
{
	uint64_t slots;

	if (options->mode != PERF_MODE_LAT)
		return options->in_flight;
	/* An echo may be here before our own send is answered: it must not wait for a buffer. */
	slots = ECHO_SLOTS_BYTES / (options->size_bytes ? options->size_bytes : 1);
	return slots < 2 ? 2 : slots > ECHO_SLOTS_MAX ? ECHO_SLOTS_MAX : (uint32_t)slots;
}

static int run_buffers(struct perf_run *run)
{
	const struct perf_options *options = run->options;
	uint32_t lane, slots;
	int r = 0;

	for (lane = 0; lane < options->channels; lane++) {
		r = perf_lane_attached(&run->lanes[lane]);
		if (r < 0)
			return r;
	}
	/* In turn, so that a small arena is shared evenly. */
	for (slots = 0; slots < slots_per_lane(options); slots++) {
		for (lane = 0; lane < options->channels; lane++) {
			r = perf_lane_slot_add(&run->lanes[lane]);
			if (r < 0)
				break;
		}
		if (r < 0)
			break;
	}
	if (slots == 0)
		return r;
	run->result.in_flight = options->mode == PERF_MODE_LAT ? 1 : slots;
	if (slots < slots_per_lane(options) && options->mode != PERF_MODE_LAT)
		fprintf(run->text,
			"mrc-perf: the send arena takes %u messages per channel, not %u%s%s\n",
			slots, options->in_flight, run->arena_refused[0] != '\0' ? ": " : "",
			run->arena_refused);
	return 0;
}

/* For all channels. What no 64 bits hold no daemon has. */
static uint64_t run_arena_bytes(const struct perf_options *options)
{
	uint64_t region_bytes = perf_source_region_bytes((size_t)options->size_bytes) + 4096;
	unsigned __int128 bytes = (unsigned __int128)slots_per_lane(options) * region_bytes + 4096;

	bytes = bytes * options->channels + ARENA_SLACK_BYTES;
	return bytes > INT64_MAX ? INT64_MAX : (uint64_t)bytes;
}

static int run_attach(struct perf_run *run)
{
	const struct perf_options *options = run->options;
	struct mrc_attach_options attach = {
		.socket_path = options->socket_path,
		.name = "mrc-perf",
		.send_arena_bytes = run_arena_bytes(options),
		.landing_arena_bytes = options->landing_bytes,
	};
	int r = mrc_attach(&attach, &run->client);

	run->arena_refused[0] = '\0';
	/* The daemon may have a limit on arenas: then what it gives by itself has to do. */
	if (r < 0 && r != -ENOENT && r != -ECONNREFUSED && r != -EPROTONOSUPPORT) {
		snprintf(run->arena_refused, sizeof(run->arena_refused), "%s",
			 mrc_last_error(NULL));
		attach.send_arena_bytes = 0;
		r = mrc_attach(&attach, &run->client);
	}
	if (r < 0) {
		run->client = NULL;
		return r;
	}
	r = run_buffers(run);
	if (r < 0)
		perf_run_give_up(
			run, PERF_EXIT_USAGE,
			"--size %llu: the send arena has no room for one message per channel%s%s",
			(unsigned long long)options->size_bytes,
			run->arena_refused[0] != '\0' ? ": " : "", run->arena_refused);
	return 0;
}

static void run_detached(struct perf_run *run, uint64_t now_ns)
{
	for (uint32_t i = 0; i < run->options->channels; i++)
		perf_lane_detached(&run->lanes[i], now_ns);
	/* Before detaching: the reason is the client's to tell. */
	if (run->phase < PERF_PHASE_CLOSING)
		fprintf(run->text, "mrc-perf: detached: %s%s\n", mrc_last_error(run->client),
			perf_run_is_persistent(run) ? "; attaching again" : "");
	mrc_detach(run->client);
	run->client = NULL;
	run->attach_backoff_ns = ATTACH_MIN_NS;
	run->attach_retry_ns = now_ns + ATTACH_MIN_NS;
	if (!perf_run_is_persistent(run) || run->phase >= PERF_PHASE_CLOSING)
		run->is_broken = true;
}

/* After the first time: try now and then. */
static void run_attach_again(struct perf_run *run, uint64_t now_ns)
{
	if (run->client || !perf_run_is_persistent(run) || now_ns < run->attach_retry_ns)
		return;
	if (run_attach(run) == 0)
		return;
	run->attach_retry_ns = now_ns + run->attach_backoff_ns;
	if (run->attach_backoff_ns < ATTACH_MAX_NS)
		run->attach_backoff_ns *= 2;
}

/* ---- intervals ---- */

static void run_point_add(struct perf_run *run, const struct perf_rails *rails)
{
	run->has_pending = false;
	if (perf_series_add(&run->result.series, &run->point_pending, rails) < 0 ||
	    run->options->is_quiet)
		return;
	perf_report_point(run->text, &run->result, run->result.series.point_count - 1);
}

/* The interval ends: its own numbers are known now, its rails when the daemon has answered. */
static void run_tick(struct perf_run *run, uint64_t now_ns)
{
	if (run->has_pending)
		run_point_add(run, NULL);
	run->point.t_ns = now_ns - run->start_ns;
	run->point.span_ns = now_ns - run->tick_last_ns;
	run->point.stall_ns_max = perf_stall_interval(&run->stall, now_ns);
	run->point_pending = run->point;
	run->point = (struct perf_point){0};
	run->tick_last_ns = now_ns;
	run->has_pending = true;
	run->pending_deadline_ns = now_ns + RAILS_WAIT_NS;
	while (run->tick_next_ns <= now_ns)
		run->tick_next_ns += run->options->interval_ns;
	if (perf_control_ask(&run->control) < 0)
		run_point_add(run, NULL);
}

static void run_rails(struct perf_run *run)
{
	struct perf_rails rails;
	int r = perf_control_read(&run->control, &rails);

	if (r == 0)
		return;
	if (run->has_pending)
		run_point_add(run, r > 0 ? &rails : NULL);
	else if (r > 0 && !run->result.series.has_last)
		perf_series_baseline(&run->result.series, &rails);
}

/* ---- phases ---- */

static bool run_lanes_are_ready(const struct perf_run *run)
{
	for (uint32_t i = 0; i < run->options->channels; i++)
		if (run->lanes[i].state != PERF_LANE_READY)
			return false;
	return true;
}

/* Why there are not as many channels as were asked for: the first that has a reason. */
static const char *run_why_down(const struct perf_run *run, char text[PERF_LANE_WHY_BYTES])
{
	for (uint32_t i = 0; i < run->options->channels; i++) {
		const struct perf_lane *lane = &run->lanes[i];

		if (lane->state != PERF_LANE_READY && lane->status_last != MRC_STATUS_OK)
			return perf_lane_why(lane, text);
	}
	return "no answer";
}

static void run_begin(struct perf_run *run, uint64_t now_ns)
{
	run->phase = PERF_PHASE_RUNNING;
	run->result.start_wall_ns = perf_wall_ns() - (perf_now_ns() - now_ns);
	run->start_ns = run->completed_last_ns = run->tick_last_ns = run->pace_next_ns = now_ns;
	run->end_ns = run->options->duration_ns ? now_ns + run->options->duration_ns : UINT64_MAX;
	run->tick_next_ns = now_ns + run->options->interval_ns;
}

static bool run_is_all_sent(const struct perf_run *run)
{
	return run->options->count && run->sent_total >= run->options->count;
}

/* Send what may be sent now. Answers when to look again if no event comes first. */
static uint64_t run_send(struct perf_run *run, uint64_t now_ns)
{
	const struct perf_options *options = run->options;
	uint32_t idle = 0; /* lanes in a row that had nothing to do */
	bool was_refused = false;

	while (idle < options->channels && !run_is_all_sent(run)) {
		struct perf_lane *lane = &run->lanes[run->lane_next];
		int r;

		if (options->mode == PERF_MODE_LAT && run->is_ping_out)
			break;
		if (run->pace_step_ns && now_ns < run->pace_next_ns) {
			if (run->outstanding == 0)
				run_note(run, perf_stall_pause(&run->stall, now_ns), now_ns);
			return run->pace_next_ns;
		}
		run->lane_next = (run->lane_next + 1) % options->channels;
		r = perf_lane_send(lane, now_ns);
		if (r < 0) {
			/* A closed channel says so by an event as well. */
			was_refused |= lane->slot_free_count > 0;
			idle++;
			continue;
		}
		idle = 0;
		perf_stall_resume(&run->stall, now_ns);
		run->is_ping_out = options->mode == PERF_MODE_LAT;
		if (run->pace_step_ns) {
			run->pace_next_ns += run->pace_step_ns;
			if (run->pace_next_ns + PACE_BURST_NS < now_ns)
				run->pace_next_ns = now_ns - PACE_BURST_NS;
		}
	}
	/* Refused with nothing under way: no event will wake us. */
	return was_refused && run->outstanding == 0 ? now_ns + AGAIN_WAIT_NS : UINT64_MAX;
}

static void run_stop(struct perf_run *run, uint64_t now_ns)
{
	run->phase = PERF_PHASE_DRAINING;
	run->stop_ns = now_ns;
	run->phase_deadline_ns = now_ns + run->options->drain_timeout_ns;
	/* A stall that is going on at the end counts up to here, and on if answers are still due. */
	perf_stall_look(&run->stall, now_ns);
}

static void run_drained(struct perf_run *run, uint64_t now_ns)
{
	/* The last answers belong to the last interval. */
	if (run->point.messages > 0 || now_ns - run->tick_last_ns > run->options->interval_ns / 10)
		run_tick(run, now_ns);
	perf_stall_look(&run->stall, now_ns);
	run_note(run, perf_stall_pause(&run->stall, now_ns), now_ns);
	run->phase = PERF_PHASE_ASKING;
	run->phase_deadline_ns = now_ns + run->options->drain_timeout_ns;
}

static void run_close(struct perf_run *run, uint64_t now_ns)
{
	run->phase = PERF_PHASE_CLOSING;
	run->phase_deadline_ns = now_ns + CLOSE_WAIT_NS;
	for (uint32_t i = 0; i < run->options->channels; i++)
		perf_lane_close(&run->lanes[i]);
}

/* Move on as far as the phases allow; answers the next time something is due. */
static uint64_t run_step(struct perf_run *run, uint64_t now_ns)
{
	char why[PERF_LANE_WHY_BYTES];
	uint64_t due_ns = UINT64_MAX;
	bool is_late;

	run_attach_again(run, now_ns);
	for (uint32_t i = 0;
	     run->client && i < run->options->channels && run->phase < PERF_PHASE_CLOSING; i++) {
		perf_lane_open(&run->lanes[i], now_ns);
		if (run->lanes[i].state == PERF_LANE_DOWN && run->lanes[i].retry_ns < due_ns)
			due_ns = run->lanes[i].retry_ns;
	}
	if (!run->client && run->attach_retry_ns < due_ns && perf_run_is_persistent(run))
		due_ns = run->attach_retry_ns;
	if (run->has_pending && now_ns >= run->pending_deadline_ns)
		run_point_add(run, NULL);
	if (run->has_pending && run->pending_deadline_ns < due_ns)
		due_ns = run->pending_deadline_ns;

	if (run->phase == PERF_PHASE_CONNECTING && run_lanes_are_ready(run) &&
	    perf_run_gap_is_on(run, now_ns))
		run_begin(run, now_ns);
	if (run->gap && run->phase != PERF_PHASE_CONNECTING)
		perf_gap_step(run->gap, now_ns);
	if (run->gap && perf_gap_due_ns(run->gap) < due_ns)
		due_ns = perf_gap_due_ns(run->gap);

	if (run->phase == PERF_PHASE_CONNECTING) {
		if (run->loop.signal_count > 0 || run->is_broken)
			perf_run_give_up(run, PERF_EXIT_NOBODY, "ended before %s was connected",
					 run->options->target);
		else if (now_ns >= run->phase_deadline_ns && run_lanes_are_ready(run))
			perf_run_give_up(run, PERF_EXIT_NOBODY,
					 "the daemon's control socket %s did not answer in time",
					 run->gap->control.path);
		else if (now_ns >= run->phase_deadline_ns)
			perf_run_give_up(run, PERF_EXIT_NOBODY,
					 "%s: no connection within the time given: %s",
					 run->options->target, run_why_down(run, why));
		else
			return due_ns < run->phase_deadline_ns ? due_ns : run->phase_deadline_ns;
	}
	if (run->phase == PERF_PHASE_RUNNING) {
		uint64_t send_ns;

		if (now_ns >= run->tick_next_ns)
			run_tick(run, now_ns);
		if (now_ns >= run->end_ns || run_is_all_sent(run) || run->is_broken ||
		    run->loop.signal_count > 0) {
			run_stop(run, now_ns);
		} else {
			send_ns = run_send(run, now_ns);
			due_ns = send_ns < due_ns ? send_ns : due_ns;
			due_ns = run->tick_next_ns < due_ns ? run->tick_next_ns : due_ns;
			/* With all sent, end by the next turn rather than by a timer. */
			if (run_is_all_sent(run))
				return now_ns;
			return run->end_ns < due_ns ? run->end_ns : due_ns;
		}
	}
	is_late = now_ns >= run->phase_deadline_ns || run->loop.signal_count > 1;
	if (run->phase == PERF_PHASE_DRAINING) {
		if (now_ns >= run->tick_next_ns)
			run_tick(run, now_ns);
		if ((run->outstanding == 0 && !run->is_ping_out) || is_late)
			run_drained(run, now_ns);
		else
			due_ns = run->tick_next_ns < due_ns ? run->tick_next_ns : due_ns;
	}
	if (run->phase == PERF_PHASE_ASKING) {
		bool is_done = run_ask(run);

		is_done = perf_run_gap_has_ended(run, now_ns) && is_done;
		if (run->gap && perf_gap_due_ns(run->gap) < due_ns)
			due_ns = perf_gap_due_ns(run->gap);
		if (is_done || now_ns >= run->phase_deadline_ns || run->loop.signal_count > 1 ||
		    !run_can_ask(run))
			run_close(run, now_ns);
	}
	if (run->phase == PERF_PHASE_CLOSING &&
	    ((!run_can_ask(run) && !run->has_pending) || now_ns >= run->phase_deadline_ns ||
	     run->loop.signal_count > 1 || !run->client))
		run->phase = PERF_PHASE_ENDED;
	return due_ns < run->phase_deadline_ns ? due_ns : run->phase_deadline_ns;
}

static void run_turn(struct perf_run *run, uint64_t deadline_ns)
{
	struct mrc_event events[EVENTS_MAX];
	bool control_ready, is_detached = false;
	uint64_t now_ns;
	int count;

	count = perf_loop_turn(&run->loop, run->client, run->control.fd,
			       run->gap ? run->gap->control.fd : -1, deadline_ns, events,
			       EVENTS_MAX, &control_ready);
	now_ns = perf_now_ns();
	for (int i = 0; i < count; i++) {
		if (events[i].type == MRC_EVENT_DETACHED)
			is_detached = true;
		else if (events[i].channel && mrc_channel_context(events[i].channel))
			perf_lane_handle(mrc_channel_context(events[i].channel), &events[i],
					 now_ns);
		else if (events[i].type == MRC_EVENT_DRAIN)
			perf_report_drain(run->text, &events[i]);
	}
	if (is_detached || count < 0)
		run_detached(run, now_ns);
	for (uint32_t i = 0; i < run->options->channels; i++)
		perf_lane_sweep(&run->lanes[i]);
	if (control_ready)
		run_rails(run);
}

static void run_conclude(struct perf_run *run)
{
	struct perf_result *result = &run->result;
	uint64_t end_ns = run->completed_last_ns;

	if (run->has_pending)
		run_point_add(run, NULL);
	result->outcomes[PERF_OUTCOME_UNANSWERED] += run->outstanding;
	/* Ended in the middle of an outage: that time belongs to the run. */
	if (result->outcomes[PERF_OUTCOME_UNANSWERED] > 0 || run->is_broken ||
	    perf_result_unknown(result) > 0)
		end_ns = end_ns > run->stop_ns ? end_ns : run->stop_ns;
	result->start_ns = run->start_ns;
	result->duration_ns = end_ns - run->start_ns;
	result->stall_ns_max = run->stall.max_ns;
	if (run->stall.max_ns > 0)
		result->stall_at_ns = run->stall.max_start_ns - run->start_ns;
	for (uint32_t i = 0; i < run->session_count; i++)
		if (run->sessions[i].state != PERF_SESSION_ANSWERED)
			result->counts.unchecked += run->sessions[i].sent;
}

static int run_init(struct perf_run *run, const struct perf_options *options, FILE *text)
{
	int r;

	run->options = options;
	run->text = text;
	run->result.options = options;
	perf_histogram_init(&run->result.latency);
	perf_series_init(&run->result.series);
	perf_stall_init(&run->stall, options->stalls_ns);
	run->result.stall = &run->stall;
	if (options->pace_bits_per_s)
		run->pace_step_ns = (uint64_t)((unsigned __int128)options->size_bytes * 8 * PERF_S /
					       options->pace_bits_per_s);
	r = perf_loop_init(&run->loop, options->spin_ns);
	if (r == 0)
		r = perf_control_init(&run->control, options->control_path, options->socket_path);
	if (r < 0)
		return r;
	if (options->mode == PERF_MODE_GAP) {
		run->gap = calloc(1, sizeof(*run->gap));
		r = run->gap ? perf_gap_init(run->gap, options) : -ENOMEM;
		if (r < 0)
			return r;
	}
	run->lanes = calloc(options->channels, sizeof(*run->lanes));
	if (!run->lanes)
		return -ENOMEM;
	for (uint32_t i = 0; i < options->channels; i++) {
		r = perf_lane_init(&run->lanes[i], run, i, slots_per_lane(options));
		if (r < 0)
			return r;
	}
	return 0;
}

static void run_fini(struct perf_run *run)
{
	mrc_detach(run->client);
	for (uint32_t i = 0; run->lanes && i < run->options->channels; i++)
		perf_lane_fini(&run->lanes[i]);
	free(run->lanes);
	free(run->sessions);
	perf_series_fini(&run->result.series);
	perf_control_fini(&run->control);
	if (run->gap)
		perf_gap_fini(run->gap);
	free(run->gap);
	perf_loop_fini(&run->loop);
}

static int run_report(struct perf_run *run)
{
	int exit_code = PERF_EXIT_OK;

	perf_report_result(run->text, &run->result);
	if (run->gap)
		exit_code = perf_run_gap_report(run);
	if (run->options->is_json) {
		json_t *json = perf_result_json(&run->result);

		if (json && run->gap)
			json_object_set_new(json, "gap", perf_gap_json(&run->gap->trace));
		if (!json || json_dumpf(json, stdout, JSON_REAL_PRECISION(12)) != 0 ||
		    putchar('\n') == EOF || fflush(stdout) != 0) {
			fprintf(run->text, "mrc-perf: the JSON could not be written\n");
			json_decref(json);
			return PERF_EXIT_DAMAGED;
		}
		json_decref(json);
	}
	return perf_result_is_clean(&run->result) ? exit_code : PERF_EXIT_DAMAGED;
}

int perf_run(const struct perf_options *options, FILE *text)
{
	struct perf_run *run = calloc(1, sizeof(*run));
	char error[PERF_ERROR_BYTES];
	int r, exit_code = PERF_EXIT_NOBODY;

	/* Before the time is spent on measuring. */
	if (options->picture && perf_gap_draw_check(options->picture, error) < 0) {
		fprintf(text, "mrc-perf: %s\n", error);
		free(run);
		return PERF_EXIT_USAGE;
	}
	r = run ? run_init(run, options, text) : -ENOMEM;
	if (r < 0) {
		fprintf(text, "mrc-perf: cannot start: %s\n", strerror(-r));
		goto out;
	}
	r = run_attach(run);
	if (r < 0) {
		fprintf(text, "mrc-perf: cannot attach to the daemon: %s\n", mrc_last_error(NULL));
		goto out;
	}
	run->phase_deadline_ns = perf_now_ns() + options->connect_timeout_ns;
	perf_control_ask(&run->control);
	while (run->phase != PERF_PHASE_ENDED) {
		uint64_t due_ns = run_step(run, perf_now_ns());

		if (run->phase != PERF_PHASE_ENDED)
			run_turn(run, due_ns);
	}
	exit_code = run->exit_code;
	if (exit_code == 0) {
		run_conclude(run);
		exit_code = run_report(run);
	}
out:
	if (run)
		run_fini(run);
	free(run);
	return exit_code;
}
