/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_path.h"

#define RECORDS_FOR_CONTROL 32U          /* data may not take the last ones */
#define WINDOW_DEPTH_NS     (3 * MRC_MS) /* beyond the round trip: bears late turns of either host */
#define RATE_AGE_NS         (5 * MRC_S)  /* so old a low rate is forgotten */
#define RATE_AGE_WEAK_NS    MRC_S
#define WEAK_FACTOR         8U
#define RATE_BYTES_MIN      4096U          /* fewer say nothing about a path they did not fill */
#define QUEUE_AGE_NS        (100 * MRC_MS) /* so long without a word, a queue is not what it was */
#define IDLE_AGE_NS         (100 * MRC_MS) /* and so is the delay of an idle path */
#define FLOOR_HOLD_NS       (5 * MRC_S) /* how long a floor stays doubled after a false suspicion */
#define LATE_TIMEOUTS       8 /* a suspected path that answers within so many more was only late */
#define FRAG_NS             (2 * MRC_MS) /* DESIGN 8: nothing waits longer behind one fragment */
#define FRAG_BYTES_MIN      16384U
#define FRAG_GRAIN          4096U

void mrc_path_init(struct mrc_path *path, uint8_t index, struct mrc_record *records,
		   uint32_t record_count)
{
	*path = (struct mrc_path){
		.index = index,
		.records = records,
		.record_count = record_count,
		.is_carrier_up = true,
		.is_peer_port_up = true,
		.state = MRC_PATH_CONNECTING,
		.state_told = MRC_PATH_CONNECTING,
		.oldest_sent_ns = MRC_NEVER,
		.judge_ns = MRC_NEVER,
		.revive_ns = MRC_NEVER,
		.probe_ns = MRC_NEVER,
		.probe_due_ns = MRC_NEVER,
		.rate_assumed = MRC_RATE_UNKNOWN,
	};
	mrc_rtt_init(&path->rtt);
}

void mrc_path_begin(struct mrc_path *path, uint32_t epoch, uint64_t window_bytes, uint64_t floor_ns,
		    uint64_t now_ns)
{
	MRC_ASSERT(epoch > path->epoch);
	path->taken_prev = path->taken;
	path->epoch = epoch;
	path->epoch_last = MRC_MAX(path->epoch_last, epoch);
	path->is_connected = true;
	path->is_connecting = false;
	path->is_peer_port_up = true;
	path->posted = 0;
	path->acked = 0;
	path->sent = 0;
	path->taken = 0;
	path->taken_told = 0;
	path->taken_said = 0;
	path->bytes_in_flight = 0;
	path->oldest_sent_ns = MRC_NEVER;
	path->answered_sent_ns = 0;
	path->elicited_ns = now_ns;
	path->heard_ns = now_ns;
	path->first_sent_ns = now_ns;
	path->evidence_ns = MRC_NEVER;
	path->judge_ns = MRC_NEVER;
	path->revive_ns = MRC_NEVER;
	path->probe_ns = MRC_NEVER;
	path->probe_due_ns = MRC_NEVER;
	path->probes_good = 0;
	path->window_bytes = window_bytes;
	path->floor_ns = MRC_MAX(path->floor_ns, floor_ns);
	path->do_fence = false;
	path->do_strip = false;
	path->do_probe_ack = false;
	path->tell_fence = false;
	path->is_breach_counted = false;
	path->is_on_trial = false;
	mrc_rtt_init(&path->rtt);
	mrc_rate_init(&path->rate);
	mrc_queue_init(&path->queue);
	path->idle_ns = 0;
	path->idle_at_ns = 0;
	path->is_rate_weak = false;
	path->rate_confirmed_ns = now_ns;
	path->rate_least = 0;
	path->rate.delivered_ns = now_ns;
}

static bool has_place(uint64_t used, uint64_t count, uint64_t kept_of_data, enum mrc_room room,
		      bool has_news)
{
	if (room == MRC_ROOM_ACK)
		return used + 1 < count || (used < count && has_news);
	return used + (room == MRC_ROOM_DATA ? kept_of_data : 1) < count;
}

bool mrc_path_has_room(const struct mrc_path *path, enum mrc_room room)
{
	uint64_t low = MRC_MIN(path->acked, path->sent); /* a record serves both */
	bool has_news = path->taken > path->taken_told;

	if (!has_place(path->posted - low, path->record_count, RECORDS_FOR_CONTROL, room, has_news))
		return false;
	return path->share == 0 ||
	       has_place(path->posted - path->acked, path->share,
			 MRC_MIN(RECORDS_FOR_CONTROL, path->share / 4 + 1), room, has_news);
}

struct mrc_record *mrc_path_push(struct mrc_path *path, bool is_eliciting, uint32_t bytes,
				 uint64_t now_ns)
{
	struct mrc_record *record = mrc_path_record(path, path->posted);

	MRC_ASSERT(path->posted - MRC_MIN(path->acked, path->sent) < path->record_count);
	MRC_ASSERT(path->share == 0 || path->posted - path->acked < path->share);
	if (path->bytes_in_flight == 0) { /* a pause must not count as slowness */
		path->rate.delivered_ns = now_ns;
		path->first_sent_ns = now_ns;
		if (now_ns - path->queue.at_ns >= QUEUE_AGE_NS)
			mrc_queue_init(&path->queue);
	}
	if (path->bytes_in_flight == 0 || path->acked > path->round_first) {
		path->round_first = path->posted;
		path->round_ns = now_ns;
		path->round_bytes = 0;
	}
	path->round_bytes += bytes;
	*record = (struct mrc_record){
		.is_eliciting = is_eliciting,
		.len = bytes,
		.sent_ns = now_ns,
		.queued = path->bytes_in_flight + bytes,
		.delivered = path->rate.delivered_bytes,
		.delivered_ns = path->rate.delivered_ns,
		.first_sent_ns = path->first_sent_ns,
		.round_ns = path->round_ns,
		.round_bytes = path->round_bytes,
	};
	path->posted++;
	path->bytes_in_flight += bytes;
	/* Small frames fill it by their number. */
	record->is_app_limited = path->bytes_in_flight + bytes < path->window_bytes &&
				 mrc_path_has_room(path, MRC_ROOM_DATA);
	if (!record->is_app_limited)
		path->full_ns = now_ns;
	path->frames_sent++;
	path->bytes_sent += bytes;
	if (is_eliciting) {
		path->elicited_ns = now_ns;
		if (path->oldest_sent_ns == MRC_NEVER) {
			path->oldest_sent_ns = now_ns;
			path->oldest_queued = record->queued;
		}
	}
	return record;
}

struct mrc_record *mrc_path_pop(struct mrc_path *path, uint64_t count)
{
	struct mrc_record *record;

	MRC_ASSERT(count <= path->posted);
	if (path->acked >= count)
		return NULL;
	record = mrc_path_record(path, path->acked++);
	MRC_ASSERT(path->bytes_in_flight >= record->len);
	path->bytes_in_flight -= record->len;
	return record;
}

/*
 * What was under way when a frame was sent, its own bytes included, has arrived
 * within its delay. So a rail that is never filled has a rate too, and its timer
 * does not take its queue for what an unknown rail would need for it.
 */
static void least_sample(struct mrc_path *path, const struct mrc_record *newest, uint64_t now_ns)
{
	uint64_t delay_ns = MRC_MAX(now_ns - newest->sent_ns, 1);
	uint64_t least = mrc_mul_div(newest->queued, MRC_S, delay_ns);

	path->rate_least = MRC_MAX(least, path->rate_least / 8 * 7);
}

static uint64_t rate_known(const struct mrc_path *path)
{
	return MRC_MAX(path->rate.best, path->rate_least);
}

static void window_set(struct mrc_path *path, const struct mrc_limits *limits)
{
	uint64_t span_ns = WINDOW_DEPTH_NS;
	uint64_t window;

	if (rate_known(path) == 0)
		return;
	if (path->rtt.min_ns != MRC_NEVER)
		span_ns += path->rtt.min_ns;
	window = mrc_mul_div(rate_known(path), span_ns, MRC_S);
	window = MRC_MAX(window, limits->path_window_bytes_min);
	path->window_bytes = MRC_MIN(window, limits->path_window_bytes_max);
}

/*
 * What a path that was not kept full says: all bytes of a round trip's frames but
 * those that are in the least delay already took what passed, beyond that delay,
 * since the first was sent. So nothing is ever made faster than it is, and what
 * an unhurried sender sends much slower: a weak word.
 */
static void round_sample(struct mrc_path *path, const struct mrc_record *newest, uint64_t bytes,
			 uint64_t now_ns)
{
	uint64_t then_ns = newest->round_ns + path->rtt.min_ns;
	uint64_t delivered = path->rate.delivered_bytes + bytes;
	uint64_t counted = newest->round_bytes - MRC_MIN(newest->round_bytes, path->rtt.min_bytes);

	if (counted < RATE_BYTES_MIN)
		then_ns = now_ns;
	mrc_rate_sample(&path->rate, bytes, delivered - MRC_MIN(counted, delivered),
			MRC_MIN(then_ns, now_ns), true, now_ns);
}

static void rate_sample(struct mrc_path *path, const struct mrc_record *newest, uint64_t bytes,
			uint64_t now_ns)
{
	uint64_t sending_ns = newest->sent_ns - newest->first_sent_ns;
	bool was_unknown = path->rate.best == 0;

	path->first_sent_ns = newest->sent_ns;
	if (newest->is_app_limited) {
		round_sample(path, newest, bytes, now_ns);
		if (was_unknown || now_ns - path->rate_confirmed_ns >= RATE_AGE_WEAK_NS)
			path->is_rate_weak = path->rate.best != 0;
		return;
	}
	/*
	 * Answers that were held up and come together make the time they took look
	 * short; faster than it was sent, nothing was delivered. (The delivery rate
	 * estimate of draft-cheng-iccrg-delivery-rate-estimation.)
	 */
	mrc_rate_sample(&path->rate, bytes, newest->delivered,
			MRC_MIN(newest->delivered_ns, now_ns - sending_ns), false, now_ns);
	path->is_rate_weak = false;
	path->rate_confirmed_ns = now_ns;
}

void mrc_path_rate_age(struct mrc_path *path, uint64_t now_ns)
{
	uint64_t age_ns = path->is_rate_weak ? RATE_AGE_WEAK_NS : RATE_AGE_NS;

	if (path->rate.best >= path->rate_assumed || path->bytes_in_flight ||
	    now_ns - path->rate.delivered_ns < age_ns)
		return;
	path->rate.best = 0;
	path->rate.window_best = 0;
	path->rate.window_start_ns = 0;
	path->is_rate_weak = false;
}

void mrc_path_suspect(struct mrc_path *path, uint64_t timeout_ns, uint64_t now_ns)
{
	path->suspicions++;
	path->is_on_trial = true;
	path->trial_until_ns = now_ns + LATE_TIMEOUTS * timeout_ns;
	path->do_carrier_ask = true;
}

void mrc_path_acquit(struct mrc_path *path, const struct mrc_limits *limits, uint64_t now_ns)
{
	path->is_on_trial = false;
	path->suspicions_false++;
	path->floor_ns = MRC_MIN(path->floor_ns * 2, limits->suspect_ceiling_ns);
	path->floor_until_ns = now_ns + FLOOR_HOLD_NS;
}

static uint64_t path_rate(const struct mrc_path *path);

/* What a frame meets on this path with nothing in flight before it. */
static uint64_t base_ns(const struct mrc_path *path, uint64_t now_ns)
{
	uint64_t min_ns = path->rtt.min_ns == MRC_NEVER ? 0 : path->rtt.min_ns;

	return now_ns - path->idle_at_ns < IDLE_AGE_NS ? MRC_MAX(min_ns, path->idle_ns) : min_ns;
}

static void queue_sample(struct mrc_path *path, const struct mrc_record *newest, uint64_t now_ns)
{
	uint64_t delay_ns = now_ns - newest->sent_ns;
	uint64_t base = base_ns(path, now_ns);

	/* What was moved elsewhere waited for nobody: its lateness is the suspicion's affair. */
	if (newest->is_moved || newest->queued < newest->len)
		return;
	if (newest->queued > newest->len) {
		/* What many small frames wait for is a processor, and it is no shorter elsewhere. */
		if (newest->len < MRC_QUEUE_BYTES_MIN)
			return;
		mrc_queue_sample(&path->queue, newest->queued, delay_ns - MRC_MIN(base, delay_ns),
				 now_ns);
		return;
	}
	delay_ns -= MRC_MIN(delay_ns, (uint64_t)newest->len * MRC_S / path_rate(path));
	if (now_ns - path->idle_at_ns >= IDLE_AGE_NS)
		path->idle_ns = delay_ns;
	else
		path->idle_ns = (7 * path->idle_ns + delay_ns) / 8;
	path->idle_at_ns = now_ns;
}

void mrc_path_acked(struct mrc_path *path, const struct mrc_record *newest, uint64_t bytes,
		    const struct mrc_limits *limits, uint64_t now_ns)
{
	uint64_t at = path->acked;

	if (newest) {
		path->answered_sent_ns = MRC_MAX(path->answered_sent_ns, newest->sent_ns);
		mrc_rtt_sample(&path->rtt, now_ns - newest->sent_ns, newest->len, now_ns);
		mrc_histogram_record(&path->rtts, now_ns - newest->sent_ns);
		least_sample(path, newest, now_ns);
		queue_sample(path, newest, now_ns);
		if (bytes) {
			rate_sample(path, newest, bytes, now_ns);
			window_set(path, limits);
		}
	}
	while (at < path->posted && !mrc_path_record(path, at)->is_eliciting)
		at++;
	path->oldest_sent_ns = at < path->posted ? mrc_path_record(path, at)->sent_ns : MRC_NEVER;
	path->oldest_queued = at < path->posted ? mrc_path_record(path, at)->queued : 0;
	if (path->floor_ns > limits->suspect_floor_ns && now_ns >= path->floor_until_ns)
		path->floor_ns = limits->suspect_floor_ns;
}

/* What to count on: a rate got from little is not believed to be far below its siblings'. */
static uint64_t path_rate(const struct mrc_path *path)
{
	if (path->rate.best == 0)
		return path->rate_assumed;
	return path->is_rate_weak ? MRC_MAX(rate_known(path), path->rate_assumed / WEAK_FACTOR)
				  : path->rate.best;
}

/* How much longer than an idle path it takes when so many bytes are in flight. */
static uint64_t queue_ns(const struct mrc_path *path, uint64_t bytes, uint64_t rate)
{
	return MRC_MAX(mrc_mul_div(bytes, MRC_S, rate), mrc_queue_ns(&path->queue, bytes));
}

uint64_t mrc_path_eta_ns(const struct mrc_path *path, uint64_t len, uint64_t now_ns)
{
	return base_ns(path, now_ns) + queue_ns(path, path->bytes_in_flight + len, path_rate(path));
}

uint64_t mrc_path_timeout_ns(const struct mrc_path *path, const struct mrc_limits *limits)
{
	uint64_t rate =
		MRC_MAX(path->rate.best ? path->rate.best : MRC_RATE_UNKNOWN, path->rate_least);
	uint64_t ceiling_ns = MRC_MAX(limits->suspect_ceiling_ns, path->floor_ns);
	uint64_t timeout_ns =
		mrc_rtt_timeout_ns(&path->rtt, path->floor_ns, limits->suspect_ceiling_ns);
	uint64_t own_ns;

	if (path->rtt.min_ns == MRC_NEVER)
		return timeout_ns;
	/* What was before it on the path has to go first: our own queue is no silence. */
	own_ns = queue_ns(path, path->oldest_queued, rate);
	own_ns += own_ns / 2;
	/* The peer's data comes by it too: the answer has as long a queue to stand in there. */
	if (path->data_heard_ns >= path->oldest_sent_ns)
		own_ns *= 2;
	own_ns += path->rtt.min_ns;
	return MRC_MAX(timeout_ns, MRC_MIN(own_ns, ceiling_ns));
}

uint32_t mrc_path_frag_bytes(const struct mrc_path *path, uint32_t frag_bytes_max)
{
	uint64_t bytes;

	if (path->rate.best == 0)
		return MRC_MIN(frag_bytes_max, 2 * FRAG_BYTES_MIN);
	bytes = mrc_mul_div(rate_known(path), FRAG_NS, MRC_S);
	bytes = bytes / FRAG_GRAIN * FRAG_GRAIN;
	bytes = MRC_MAX(bytes, FRAG_BYTES_MIN);
	return (uint32_t)MRC_MIN(bytes, frag_bytes_max);
}
