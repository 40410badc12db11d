/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mrc_perf_run.h"

#define BACKOFF_MIN_NS (20 * PERF_MS)
#define BACKOFF_MAX_NS (500 * PERF_MS)

/* `user` of sends that are not data; data has the slot's index. */
#define USER_SETUP UINT64_MAX
#define USER_ASK   (UINT64_MAX - 1)

int perf_lane_init(struct perf_lane *lane, struct perf_run *run, uint32_t index,
		   uint32_t slot_count_max)
{
	memset(lane, 0, sizeof(*lane));
	lane->run = run;
	lane->index = index;
	lane->slot_count_max = slot_count_max;
	lane->asking_index = -1;
	lane->backoff_ns = BACKOFF_MIN_NS;
	lane->slots = calloc(slot_count_max, sizeof(*lane->slots));
	lane->slots_free = calloc(slot_count_max, sizeof(*lane->slots_free));
	return lane->slots && lane->slots_free ? 0 : -ENOMEM;
}

void perf_lane_fini(struct perf_lane *lane)
{
	free(lane->slots);
	free(lane->slots_free);
}

int perf_lane_attached(struct perf_lane *lane)
{
	lane->slot_count = 0;
	lane->slot_free_count = 0;
	lane->is_filled = false;
	return mrc_buf_alloc(lane->run->client, PERF_WIRE_BYTES, &lane->control_buf);
}

int perf_lane_slot_add(struct perf_lane *lane)
{
	size_t region_bytes = perf_source_region_bytes(lane->run->options->size_bytes);
	void *region;
	int r;

	/* An empty message wants an address in the arena all the same. */
	r = mrc_buf_alloc(lane->run->client, region_bytes ? region_bytes : 1, &region);
	if (r < 0)
		return r;
	lane->slots[lane->slot_count++].region = region;
	return 0;
}

/* All buffers are free again, with the pattern of this life of the channel. */
static void lane_fill(struct perf_lane *lane, uint64_t nonce)
{
	const struct perf_options *options = lane->run->options;

	perf_pattern_init(&lane->pattern, options->seed, nonce);
	lane->slot_free_count = 0;
	for (uint32_t i = 0; i < lane->slot_count; i++) {
		/* Without --verify the payload is touched once, so that no page fault is measured. */
		if (options->is_verify || !lane->is_filled)
			perf_source_init(&lane->slots[i].source, &lane->pattern, i,
					 lane->slots[i].region, options->size_bytes);
		lane->slots_free[lane->slot_free_count++] = lane->slot_count - 1 - i;
	}
	lane->is_filled = true;
}

/* What libmrc itself would not do: these numbers are not those of statuses. */
static int status_of_error(int error)
{
	switch (error) {
	case -ECONNRESET:
		return MRC_STATUS_DETACHED;
	case -EPIPE:
	case -ENOTCONN:
		return MRC_STATUS_CLOSED;
	default:
		return MRC_STATUS_NO_RESOURCES;
	}
}

const char *perf_lane_why(const struct perf_lane *lane, char text[PERF_LANE_WHY_BYTES])
{
	if (lane->status_last == MRC_STATUS_OK)
		return "no answer";
	if (lane->status_last != MRC_STATUS_NO_RESOURCES)
		return mrc_status_text(lane->status_last);
	if (lane->code_last == 0)
		return "no room for another channel: memory, or a limit of the program or the "
		       "daemon there";
	snprintf(text, PERF_LANE_WHY_BYTES,
		 "this program may have %u channels: channels-max of its quota or of clients, or "
		 "what its landing arena has room for",
		 lane->code_last);
	return text;
}

/* The channel is gone or never came to be. */
static void lane_down(struct perf_lane *lane, int status, uint64_t now_ns)
{
	struct perf_run *run = lane->run;

	/* Nothing more will be said about these: not OK, not lost, not known. */
	run->result.outcomes[PERF_OUTCOME_UNANSWERED] += lane->outstanding;
	run->outstanding -= lane->outstanding;
	lane->outstanding = 0;
	if (run->options->mode == PERF_MODE_LAT)
		run->is_ping_out = false;
	if (lane->asking_index >= 0 &&
	    run->sessions[lane->asking_index].state == PERF_SESSION_ASKING)
		run->sessions[lane->asking_index].state = PERF_SESSION_LIVE;
	lane->asking_index = -1;
	lane->is_control_busy = false;
	lane->channel_doomed = lane->channel;
	lane->channel = NULL;
	lane->status_last = status;
	lane->code_last = 0;
	if (lane->state == PERF_LANE_CLOSING || lane->state == PERF_LANE_ENDED) {
		lane->state = PERF_LANE_ENDED;
		return;
	}
	/* Before the run began we try for as long as the user allows; later only a stream goes on. */
	if (run->phase != PERF_PHASE_CONNECTING && !perf_run_is_persistent(run)) {
		if (run->phase == PERF_PHASE_RUNNING && !run->is_broken)
			fprintf(run->text, "mrc-perf: the channel ended: %s\n",
				mrc_status_text(status));
		run->is_broken = true;
		lane->state = PERF_LANE_ENDED;
		return;
	}
	if (run->phase == PERF_PHASE_RUNNING && lane->state == PERF_LANE_READY)
		fprintf(run->text, "mrc-perf: the channel ended (%s), connecting again\n",
			mrc_status_text(status));
	lane->state = PERF_LANE_DOWN;
	lane->retry_ns = now_ns + lane->backoff_ns;
	lane->backoff_ns =
		lane->backoff_ns * 2 < BACKOFF_MAX_NS ? lane->backoff_ns * 2 : BACKOFF_MAX_NS;
}

void perf_lane_detached(struct perf_lane *lane, uint64_t now_ns)
{
	if (lane->state != PERF_LANE_DOWN && lane->state != PERF_LANE_ENDED)
		lane_down(lane, MRC_STATUS_DETACHED, now_ns);
	lane->slot_count = 0;
	lane->slot_free_count = 0;
	lane->control_buf = NULL;
	lane->channel_doomed = NULL;
}

void perf_lane_sweep(struct perf_lane *lane)
{
	mrc_channel_free(lane->channel_doomed);
	lane->channel_doomed = NULL;
}

void perf_lane_open(struct perf_lane *lane, uint64_t now_ns)
{
	struct perf_run *run = lane->run;
	unsigned flags = (run->options->is_unordered ? MRC_CHANNEL_UNORDERED : 0) |
			 (run->options->is_unchecked ? MRC_CHANNEL_UNCHECKED : 0);
	int r;

	if (lane->state != PERF_LANE_DOWN || now_ns < lane->retry_ns || lane->slot_count == 0)
		return;
	r = mrc_connect_start(run->client, run->options->target, flags, lane->index,
			      &lane->channel);
	if (r == -EINVAL) {
		perf_run_give_up(run, PERF_EXIT_USAGE, "'%s' cannot be connected to: %s",
				 run->options->target, mrc_error_text(r));
		return;
	}
	if (r < 0) {
		lane->channel = NULL;
		lane_down(lane, status_of_error(r), now_ns);
		return;
	}
	mrc_channel_set_context(lane->channel, lane);
	lane->state = PERF_LANE_CONNECTING;
}

/* Could waiting help? A service may still be starting; a host that is not configured stays so, and
 * one that is being drained goes away. */
static bool status_is_passing(int status)
{
	return status != MRC_STATUS_NO_PEER && status != MRC_STATUS_NOT_ALLOWED &&
	       status != MRC_STATUS_REFUSED && status != MRC_STATUS_INVALID &&
	       status != MRC_STATUS_DRAINING;
}

static void lane_connected(struct perf_lane *lane, const struct mrc_event *event, uint64_t now_ns)
{
	struct perf_run *run = lane->run;
	const struct perf_options *options = run->options;
	struct perf_setup setup = {
		.seed = options->seed,
		.size_bytes = options->size_bytes,
		/* A gap is a stream whose channel is watched: also servers that know of no gap take it. */
		.mode = options->mode == PERF_MODE_GAP ? PERF_MODE_STREAM : options->mode,
		.flags = (options->is_verify ? PERF_FLAG_VERIFY : 0) |
			 (options->is_unordered ? PERF_FLAG_UNORDERED : 0) |
			 (options->mode == PERF_MODE_LAT ? PERF_FLAG_ECHO : 0),
	};
	char why[PERF_LANE_WHY_BYTES];
	bool is_hopeless;
	int r;

	if (event->status != MRC_STATUS_OK) {
		/* More channels than we may have at all: waiting does not help. */
		is_hopeless = !status_is_passing(event->status) ||
			      (event->status == MRC_STATUS_NO_RESOURCES && event->code != 0 &&
			       event->code < options->channels);
		lane_down(lane, event->status, now_ns);
		lane->code_last = event->code;
		if (run->phase == PERF_PHASE_CONNECTING && is_hopeless)
			perf_run_give_up(run, PERF_EXIT_NOBODY, "%s: %s", options->target,
					 perf_lane_why(lane, why));
		return;
	}
	if (options->size_bytes > mrc_channel_message_bytes_max(lane->channel)) {
		perf_run_give_up(run, PERF_EXIT_USAGE,
				 "--size %llu: %s takes messages of at most %llu bytes",
				 (unsigned long long)options->size_bytes, options->target,
				 (unsigned long long)mrc_channel_message_bytes_max(lane->channel));
		return;
	}
	if (getrandom(&setup.nonce, sizeof(setup.nonce), 0) != (ssize_t)sizeof(setup.nonce))
		setup.nonce = perf_mix64(now_ns + lane->index);
	r = perf_run_session_new(run, setup.nonce);
	if (r < 0) {
		perf_run_give_up(run, PERF_EXIT_NOBODY, "no memory for another session");
		return;
	}
	lane->session_index = (uint32_t)r;
	lane->number_next = 0;
	lane_fill(lane, setup.nonce);
	perf_setup_encode(&setup, lane->control_buf);
	/* Committed: the far side has read it and said yes before the first data message leaves. */
	r = mrc_send(lane->channel, lane->control_buf, PERF_WIRE_BYTES, MRC_LEVEL_COMMITTED, 0,
		     USER_SETUP);
	if (r < 0) {
		lane_down(lane, status_of_error(r), now_ns);
		return;
	}
	lane->is_control_busy = true;
	lane->state = PERF_LANE_SETTING_UP;
}

static void lane_setup_answered(struct perf_lane *lane, const struct mrc_event *event,
				uint64_t now_ns)
{
	struct perf_run *run = lane->run;

	lane->is_control_busy = false;
	if (lane->state != PERF_LANE_SETTING_UP)
		return;
	if (event->status == MRC_STATUS_REJECTED) {
		perf_run_give_up(run, PERF_EXIT_NOBODY, "%s said no: %s", run->options->target,
				 perf_code_text(event->code));
		return;
	}
	if (event->status != MRC_STATUS_OK) {
		lane_down(lane, event->status, now_ns);
		return;
	}
	lane->state = PERF_LANE_READY;
	lane->backoff_ns = BACKOFF_MIN_NS;
	if (run->phase == PERF_PHASE_RUNNING) {
		run->result.reconnects++;
		fprintf(run->text, "mrc-perf: connected again\n");
	}
}

static void lane_data_answered(struct perf_lane *lane, const struct mrc_event *event,
			       uint64_t now_ns)
{
	struct perf_run *run = lane->run;
	struct perf_session *session = &run->sessions[lane->session_index];
	struct perf_slot *slot = &lane->slots[event->user];

	run->result.outcomes[perf_outcome_of_status(event->status)]++;
	lane->outstanding--;
	run->outstanding--;
	lane->slots_free[lane->slot_free_count++] = (uint32_t)event->user;
	if (event->status != MRC_STATUS_OK)
		return;
	session->answered_ok++;
	if (slot->number >= session->ok_next)
		session->ok_next = slot->number + 1;
	if (run->options->mode != PERF_MODE_LAT)
		perf_run_completed(run, slot->sent_ns, now_ns);
}

/* An echo, or the answer to a question. */
static void lane_received(struct perf_lane *lane, const struct mrc_event *event, uint64_t now_ns)
{
	struct perf_run *run = lane->run;
	const void *data = mrc_msg_data(event->msg);
	size_t len_bytes = mrc_msg_len_bytes(event->msg);
	struct perf_answer answer;
	struct perf_look look;

	if (perf_wire_kind(data, len_bytes) == PERF_WIRE_ANSWER) {
		if (perf_answer_decode(data, len_bytes, &answer) == 0) {
			perf_run_session_answered(run, &answer);
			lane->asking_index = -1;
		}
	} else if (run->options->mode == PERF_MODE_LAT && run->is_ping_out) {
		if (run->options->is_verify) {
			perf_message_look(&lane->pattern, data, len_bytes, run->options->size_bytes,
					  lane->number_next - 1, &look);
			/* One at a time: it is the last one sent, or it is wrong. */
			run->result.counts.checked++;
			if (!look.is_intact)
				run->result.counts.corrupted++;
			else if (look.has_number && look.number != lane->number_next - 1)
				run->result.counts.duplicated++;
		}
		run->is_ping_out = false;
		perf_run_completed(run, lane->sent_last_ns, now_ns);
	}
	mrc_msg_release(event->msg);
}

void perf_lane_handle(struct perf_lane *lane, const struct mrc_event *event, uint64_t now_ns)
{
	if (event->channel != lane->channel) {
		mrc_msg_release(event->type == MRC_EVENT_RECEIVED ? event->msg : NULL);
		return;
	}
	switch (event->type) {
	case MRC_EVENT_CONNECTED:
		lane_connected(lane, event, now_ns);
		break;
	case MRC_EVENT_SENT:
		if (event->user == USER_SETUP)
			lane_setup_answered(lane, event, now_ns);
		else if (event->user == USER_ASK)
			lane->is_control_busy = false;
		else
			lane_data_answered(lane, event, now_ns);
		break;
	case MRC_EVENT_RECEIVED:
		lane_received(lane, event, now_ns);
		break;
	case MRC_EVENT_CLOSED:
		lane_down(lane, event->status, now_ns);
		break;
	case MRC_EVENT_DRAIN:
		if (lane->index == 0)
			perf_report_drain(lane->run->text, event);
		break;
	case MRC_EVENT_LISTENING:
	case MRC_EVENT_INCOMING:
	case MRC_EVENT_GAP:
	case MRC_EVENT_DETACHED:
		break;
	}
}

int perf_lane_send(struct perf_lane *lane, uint64_t now_ns)
{
	struct perf_run *run = lane->run;
	const struct perf_options *options = run->options;
	struct perf_slot *slot;
	const void *message;
	uint32_t slot_index;
	int r;

	if (lane->state != PERF_LANE_READY || lane->slot_free_count == 0)
		return -EAGAIN;
	slot_index = lane->slots_free[lane->slot_free_count - 1];
	slot = &lane->slots[slot_index];
	message = options->is_verify
			  ? perf_source_message(&slot->source, &lane->pattern, lane->number_next)
			  : slot->region;
	r = mrc_send(lane->channel, message, options->size_bytes, (enum mrc_level)options->level, 0,
		     slot_index);
	if (r < 0)
		return r;
	lane->slot_free_count--;
	slot->sent_ns = lane->sent_last_ns = now_ns;
	slot->number = lane->number_next++;
	run->sessions[lane->session_index].sent++;
	lane->outstanding++;
	run->outstanding++;
	run->sent_total++;
	return 0;
}

int perf_lane_ask(struct perf_lane *lane, uint32_t session_index)
{
	struct perf_session *session = &lane->run->sessions[session_index];
	struct perf_ask ask = {.nonce = session->nonce};
	int r;

	if (lane->state != PERF_LANE_READY || lane->is_control_busy || lane->asking_index >= 0)
		return -EAGAIN;
	perf_ask_encode(&ask, lane->control_buf);
	r = mrc_send(lane->channel, lane->control_buf, PERF_WIRE_BYTES, MRC_LEVEL_PLACED, 0,
		     USER_ASK);
	if (r < 0)
		return r;
	lane->is_control_busy = true;
	lane->asking_index = (int32_t)session_index;
	session->state = PERF_SESSION_ASKING;
	return 0;
}

void perf_lane_close(struct perf_lane *lane)
{
	if (lane->channel && lane->state != PERF_LANE_CLOSING && mrc_close(lane->channel) == 0)
		lane->state = PERF_LANE_CLOSING;
	else if (lane->state != PERF_LANE_CLOSING)
		lane->state = PERF_LANE_ENDED;
}
