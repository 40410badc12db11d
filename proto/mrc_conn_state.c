/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_state - a conn as bytes, and back; mrc_channel_state.c has its channels */
#include "mrc_conn_state.h"

#include "mrc_conn_impl.h"

enum {
	TAG_CONN = 1,
	TAG_PATHS,
	TAG_SLOTS, /* how often each place for a channel was used: ids do not come twice */
	TAG_CHANNELS,
	TAG_CONTROL, /* control frames the peer has not taken */
	TAG_RESENDS, /* bytes of messages to be sent again */
	TAG_LOST,    /* bytes of copies that came and were not kept: to be asked for again */
	TAG_LAST = TAG_LOST
};

#define EPOCH_MAX (UINT32_MAX / 2) /* as in HELLO */
#define SLOTS_MAX (1U << MRC_HANDLE_SLOT_BITS)
#define CTL_MAX   (8 * SLOTS_MAX) /* of a conn with so many */

/* clang-format off */
#define CONN_NUMBERS(X) \
	X(keys_after) X(ctl_next) X(ctl_acked) X(ctl_taken) X(resets) X(messages_sent) \
	X(messages_delivered) X(messages_failed) X(duplicates) X(protocol_errors)
#define PATH_NUMBERS(X) \
	X(posted) X(taken) X(taken_prev) X(fenced_tell_count) X(frames_sent) X(frames_received) \
	X(bytes_sent) X(bytes_received) X(frames_resent) X(suspicions) X(suspicions_false) \
	X(body_errors) X(header_errors) X(good_count) X(bad_count)
/* clang-format on */

#define VISIT_CONN(name) mrc_state_u64(s, &conn->name);
#define VISIT_PATH(name) mrc_state_u64(s, &path->name);

/* ---- the conn itself ---- */

/* Whose state it is, and when it was written. */
static void identity_visit(struct mrc_state *s, struct mrc_conn *conn, uint64_t *at_ns)
{
	char host[MRC_NAME_MAX + 1];
	char peer[MRC_NAME_MAX + 1];
	uint64_t boot_id = conn->boot_id;

	memcpy(host, conn->host, sizeof(host));
	memcpy(peer, conn->peer, sizeof(peer));
	mrc_state_bytes(s, host, sizeof(host));
	mrc_state_bytes(s, peer, sizeof(peer));
	mrc_state_u64(s, &boot_id);
	mrc_state_u64(s, at_ns);
	if (memcmp(host, conn->host, sizeof(host)) != 0)
		mrc_state_fail(s, "it is another host's");
	if (memcmp(peer, conn->peer, sizeof(peer)) != 0)
		mrc_state_fail(s, "it is of a conn with another peer");
	if (boot_id != conn->boot_id)
		mrc_state_fail(s, "it is of another run of state");
}

static void clock_visit(struct mrc_state *s, struct mrc_clock *clock)
{
	uint64_t least = (uint64_t)clock->least_ns;
	uint64_t most = (uint64_t)clock->most_ns;

	mrc_state_bool(s, &clock->is_known);
	mrc_state_u64(s, &least);
	mrc_state_u64(s, &most);
	mrc_state_u64(s, &clock->at_ns);
	clock->least_ns = (int64_t)least;
	clock->most_ns = (int64_t)most;
	/* Each is a difference of two times; what is made of both must not overflow. */
	if (clock->least_ns > clock->most_ns || clock->least_ns < -(int64_t)MRC_STATE_NUMBER_MAX ||
	    clock->most_ns > (int64_t)MRC_STATE_NUMBER_MAX)
		mrc_state_fail(s, "a clock of the peer's that cannot be");
}

static void conn_visit(struct mrc_state *s, struct mrc_conn *conn)
{
	uint64_t at_ns = conn->now_ns;

	mrc_state_begin(s, TAG_CONN, TAG_LAST);
	identity_visit(s, conn, &at_ns);
	mrc_state_u64(s, &conn->peer_boot_id);
	mrc_state_u32(s, &conn->epoch);
	mrc_state_u32(s, &conn->epoch_last);
	mrc_state_u32(s, &conn->wire_next);
	mrc_state_u32(s, &conn->space_next);
	mrc_state_u32(s, &conn->slot_hint);
	mrc_state_u32(s, &conn->port_version);
	mrc_state_u32(s, &conn->ports_down);
	mrc_state_u32(s, &conn->peer_port_version);
	mrc_state_bool(s, &conn->is_direct_seen);
	CONN_NUMBERS(VISIT_CONN)
	clock_visit(s, &conn->clock);
	if (s->version >= 2)
		mrc_state_bool(s, &conn->is_peer_draining);
	mrc_state_end(s);
	if (at_ns > conn->now_ns)
		mrc_state_fail(s, "it was written later than now: before the machine was booted");
	if (conn->epoch > conn->epoch_last || conn->epoch_last > EPOCH_MAX ||
	    (conn->epoch && !conn->peer_boot_id) || (!conn->epoch && conn->ctl_next) ||
	    conn->wire_next > UINT32_MAX / 2)
		mrc_state_fail(s, "epochs that cannot be");
	if (conn->ctl_acked > conn->ctl_next || conn->ctl_next > MRC_STATE_NUMBER_MAX ||
	    conn->keys_after > conn->ctl_next || conn->ctl_taken > MRC_STATE_NUMBER_MAX)
		mrc_state_fail(s, "control numbers that contradict each other");
}

/* ---- paths ---- */

static bool path_is_fine(const struct mrc_conn *conn, const struct mrc_path *path, uint8_t reason)
{
	if (path->path_id >= MRC_PATHS_MAX || reason >= MRC_REASON_COUNT ||
	    path->epoch > path->epoch_last || path->epoch_last > EPOCH_MAX ||
	    path->fenced_tell_epoch > path->epoch || path->posted > MRC_STATE_NUMBER_MAX ||
	    path->taken > MRC_STATE_NUMBER_MAX)
		return false;
	if (conn->is_initiator && (!path->is_known || path->path_id != path->index))
		return false;
	for (uint8_t i = 0; i < path->index && path->is_known; i++) {
		if (conn->paths[i].is_known && conn->paths[i].path_id == path->path_id)
			return false;
	}
	return true;
}

static void rtts_visit(struct mrc_state *s, struct mrc_histogram *rtts)
{
	uint32_t bounds = MRC_HISTOGRAM_BOUNDS;
	uint64_t count = 0;

	mrc_state_u32(s, &bounds);
	if (bounds != MRC_HISTOGRAM_BOUNDS) {
		mrc_state_fail(s, "a histogram of other bounds");
		return;
	}
	mrc_state_u64(s, &rtts->count);
	mrc_state_u64(s, &rtts->sum_ns);
	mrc_state_u64(s, &rtts->max_ns);
	for (uint32_t i = 0; i <= MRC_HISTOGRAM_BOUNDS; i++) {
		mrc_state_u64(s, &rtts->buckets[i]);
		count += rtts->buckets[i];
	}
	if (count != rtts->count)
		mrc_state_fail(s, "a histogram that counts more or less than it holds");
}

static void path_visit(struct mrc_state *s, struct mrc_conn *conn, struct mrc_path *path)
{
	uint8_t reason = (uint8_t)path->reason;

	mrc_state_u16(s, &path->path_id);
	mrc_state_bool(s, &path->is_known);
	mrc_state_bool(s, &path->is_convicted);
	mrc_state_bool(s, &path->is_carrier_up);
	mrc_state_bool(s, &path->is_denied);
	mrc_state_u8(s, &reason);
	mrc_state_u32(s, &path->epoch);
	mrc_state_u32(s, &path->epoch_last);
	mrc_state_bool(s, &path->tell_fence);
	mrc_state_bool(s, &path->tell_fenced);
	mrc_state_u32(s, &path->fenced_tell_epoch);
	PATH_NUMBERS(VISIT_PATH)
	rtts_visit(s, &path->rtts);
	if (!s->is_reading)
		return;
	if (!path_is_fine(conn, path, reason)) {
		mrc_state_fail(s, "a path contradicts itself");
		return;
	}
	path->reason = (enum mrc_path_reason)reason;
	path->state_since_ns = conn->now_ns;
	if (path->is_denied) {
		path->state = MRC_PATH_DENIED;
		path->do_state = true;
		path->connect_ns = MRC_NEVER;
	}
	/* Its transport is gone: nothing of it is under way, and nothing can land. */
	path->acked = path->posted;
	path->sent = path->posted;
	path->fenced_epoch = path->epoch;
}

static void paths_visit(struct mrc_state *s, struct mrc_conn *conn)
{
	uint8_t count = conn->path_count;

	mrc_state_begin(s, TAG_PATHS, TAG_LAST);
	mrc_state_u8(s, &count);
	if (count > conn->path_count)
		mrc_state_fail(s, "it has more paths than there are now");
	for (uint8_t i = 0; i < count && !s->why; i++)
		path_visit(s, conn, &conn->paths[i]);
	mrc_state_end(s);
}

/* ---- channels ---- */

static int slots_visit(struct mrc_state *s, struct mrc_conn *conn)
{
	uint32_t count = conn->slot_count;
	int r = 0;

	while (count && !conn->slot_generations[count - 1])
		count--;
	mrc_state_begin(s, TAG_SLOTS, TAG_LAST);
	mrc_state_u32(s, &count);
	if (s->is_reading) {
		if (count > SLOTS_MAX || conn->slot_hint >= SLOTS_MAX)
			mrc_state_fail(s, "more channels than there can be");
		else
			r = mrc_conn_room_channels(conn, MRC_MAX(count, conn->slot_hint + 1));
		/* Those that are read are allowed, and what they lead to. */
		conn->limits.channels_max = conn->slot_count;
	}
	for (uint32_t i = 0; i < count && !s->why && r == 0; i++)
		mrc_state_u32(s, &conn->slot_generations[i]);
	mrc_state_end(s);
	return r;
}

static void channels_write(struct mrc_state *s, struct mrc_conn *conn)
{
	mrc_state_begin(s, TAG_CHANNELS, TAG_LAST);
	mrc_state_u32(s, &conn->channel_count);
	for (struct mrc_list *at = conn->all.next; at != &conn->all; at = at->next)
		mrc_channel_state_write(conn, mrc_list_entry(at, struct mrc_channel, in_all), s);
	mrc_state_end(s);
}

static int channels_read(struct mrc_state *s, struct mrc_conn *conn)
{
	uint32_t slot_hint = conn->slot_hint;
	uint32_t count = 0;
	int r = 0;

	mrc_state_begin(s, TAG_CHANNELS, TAG_LAST);
	mrc_state_u32(s, &count);
	while (count-- && !s->why && r == 0)
		r = mrc_channel_state_read(conn, s);
	mrc_state_end(s);
	conn->slot_hint = slot_hint;
	return r;
}

/* ---- control log ---- */

static bool entry_is_fine(const struct mrc_channel *ch, const struct mrc_ctl_entry *entry)
{
	switch ((enum mrc_wire_type)entry->type) {
	case MRC_WIRE_OPEN:
		return ch && ch->is_opener;
	case MRC_WIRE_ACCEPT:
		return ch && ch->has_client && !ch->is_opener;
	case MRC_WIRE_REFUSE:
		return ch ? !ch->is_opener : !entry->channel;
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
		return ch && ch->end_appended;
	case MRC_WIRE_VOID:
		return ch && ch->has_client;
	default:
		return false;
	}
}

static int control_visit(struct mrc_state *s, struct mrc_conn *conn)
{
	uint64_t used = conn->ctl_next - conn->ctl_acked;
	int r = 0;

	mrc_state_begin(s, TAG_CONTROL, TAG_LAST);
	if (s->is_reading && !s->why) {
		/* So that there is room for each channel's end, and for the beginnings and ends of others. */
		if (used > CTL_MAX || used > s->end - s->at)
			mrc_state_fail(s, "more control frames than there can be");
		else if (used > conn->ctl_count / 2 + 2 * (uint64_t)conn->channel_count)
			r = mrc_conn_room_ctl(conn, (uint32_t)used);
	}
	for (uint64_t n = conn->ctl_acked; n < conn->ctl_next && !s->why && r == 0; n++) {
		struct mrc_ctl_entry *entry = &conn->ctl[n & (conn->ctl_count - 1)];
		struct mrc_channel *ch;

		mrc_state_u8(s, &entry->type);
		mrc_state_u32(s, &entry->channel);
		mrc_state_u64(s, &entry->msg);
		if (!s->is_reading)
			continue;
		ch = mrc_conn_channel(conn, entry->channel);
		if (!entry_is_fine(ch, entry))
			mrc_state_fail(s, "a control frame of what is not there");
		else if (ch)
			ch->ctl_unacked++;
	}
	mrc_state_end(s);
	if (s->is_reading)
		conn->ctl_sent = conn->ctl_acked;
	return r;
}

/* ---- what is to be sent or asked for again ---- */

/* The message that it is of, if that still needs it. */
static const struct mrc_msg_out *resend_message(const struct mrc_conn *conn,
						const struct mrc_resend *resend)
{
	struct mrc_channel *ch = mrc_conn_channel(conn, resend->channel);
	const struct mrc_msg_out *msg = ch ? mrc_channel_out(ch, resend->msg) : NULL;

	if (!msg || msg->is_final || msg->is_void_asked || msg->level >= MRC_LVL_PLACED ||
	    ch->is_detached)
		return NULL;
	return msg;
}

static void resend_visit(struct mrc_state *s, struct mrc_conn *conn, struct mrc_resend *resend)
{
	const struct mrc_msg_out *msg;

	mrc_state_u32(s, &resend->channel);
	mrc_state_u64(s, &resend->msg);
	mrc_state_u64(s, &resend->offset);
	mrc_state_u64(s, &resend->len);
	mrc_state_bool(s, &resend->is_copy);
	mrc_state_bool(s, &resend->is_wanted);
	mrc_state_u8(s, &resend->blame);
	mrc_state_u8(s, &resend->writer_path);
	mrc_state_u32(s, &resend->writer_epoch);
	if (!s->is_reading)
		return;
	msg = resend_message(conn, resend);
	if (!msg || !msg->is_granted || resend->offset > msg->next_offset ||
	    resend->len > msg->next_offset - resend->offset || (!resend->len && msg->len) ||
	    resend->blame > MRC_PATHS_MAX || resend->writer_path >= MRC_PATHS_MAX)
		mrc_state_fail(s, "bytes to be sent again that are no message's");
}

static int resends_visit(struct mrc_state *s, struct mrc_conn *conn)
{
	uint32_t count = 0;
	int r = 0;

	for (uint64_t at = conn->resend_head; at < conn->resend_tail; at++)
		count +=
			resend_message(conn, &conn->resends[at & (conn->resend_count - 1)]) != NULL;
	mrc_state_begin(s, TAG_RESENDS, TAG_LAST);
	mrc_state_u32(s, &count);
	if (s->is_reading && count > s->end - s->at)
		mrc_state_fail(s, "it ends too soon");
	if (s->is_reading && !s->why) {
		r = mrc_conn_room_resends(conn, count);
		conn->resend_tail = count;
	}
	for (uint64_t at = conn->resend_head; at < conn->resend_tail && !s->why && r == 0; at++) {
		struct mrc_resend *resend = &conn->resends[at & (conn->resend_count - 1)];

		if (s->is_reading || resend_message(conn, resend))
			resend_visit(s, conn, resend);
	}
	mrc_state_end(s);
	return r;
}

/* The message that a hold is of, if that still needs its bytes. */
static const struct mrc_msg_in *hold_message(const struct mrc_conn *conn,
					     const struct mrc_hold *hold)
{
	struct mrc_channel *ch = mrc_conn_channel(conn, hold->channel);
	const struct mrc_msg_in *msg =
		ch && ch->state != MRC_CH_ENDED ? mrc_channel_in(ch, hold->msg) : NULL;

	return msg && msg->is_known && !msg->is_whole && !msg->is_void ? msg : NULL;
}

static void lost_visit(struct mrc_state *s, struct mrc_conn *conn, struct mrc_hold *hold)
{
	const struct mrc_msg_in *msg;

	mrc_state_u32(s, &hold->channel);
	mrc_state_u64(s, &hold->msg);
	mrc_state_u64(s, &hold->offset);
	mrc_state_u64(s, &hold->len);
	mrc_state_u8(s, &hold->blame);
	if (!s->is_reading)
		return;
	msg = hold_message(conn, hold);
	if (!msg || hold->offset > msg->len || hold->len > msg->len - hold->offset ||
	    hold->blame > MRC_PATHS_MAX)
		mrc_state_fail(s, "bytes that were lost and are no message's");
}

/*
 * A hold without a buffer here was lost when it came; one that has one and found no room for
 * its range is lost now, for the buffer does not travel. Both are asked for again.
 */
static void lost_write(struct mrc_state *s, struct mrc_conn *conn)
{
	uint32_t count = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1)
			mrc_state_u32(s, &count);
		for (uint32_t i = 0; i < conn->hold_count; i++) {
			struct mrc_hold *hold = &conn->holds[i];

			if (hold->state != MRC_HOLD_READY || !hold_message(conn, hold))
				continue;
			count += pass == 0;
			if (pass == 1)
				lost_visit(s, conn, hold);
		}
	}
}

static int lost_read(struct mrc_state *s, struct mrc_conn *conn)
{
	uint32_t count = 0;

	mrc_state_u32(s, &count);
	if (count > MRC_HOLDS_LOST_MAX && !s->why) {
		/* Those that had a buffer are in the way of the ones to come: there is room for both. */
		uint64_t hold_count = (uint64_t)conn->limits.holds_max + count;
		struct mrc_hold *holds;

		if (hold_count > UINT32_MAX || count > s->end - s->at) {
			mrc_state_fail(s, "it ends too soon");
			return 0;
		}
		holds = conn->alloc.alloc(conn->alloc.context, sizeof(*holds) * hold_count);
		if (!holds)
			return -ENOMEM;
		conn->alloc.free(conn->alloc.context, conn->holds);
		conn->holds = holds;
		conn->hold_count = (uint32_t)hold_count;
	}
	for (uint32_t i = 0; i < count && !s->why; i++) {
		conn->holds[i].state = MRC_HOLD_READY;
		lost_visit(s, conn, &conn->holds[i]);
	}
	conn->holds_used = count;
	conn->holds_ready = count;
	conn->holds_lost = count;
	return 0;
}

static int lost_visit_all(struct mrc_state *s, struct mrc_conn *conn)
{
	int r = 0;

	mrc_state_begin(s, TAG_LOST, TAG_LAST);
	if (s->is_reading)
		r = lost_read(s, conn);
	else
		lost_write(s, conn);
	mrc_state_end(s);
	return r;
}

/* ---- all of it ---- */

static bool is_quiet(const struct mrc_conn *conn)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		if (conn->paths[i].is_connected)
			return false;
	}
	for (struct mrc_list *at = conn->all.next; at != &conn->all; at = at->next) {
		if (mrc_conn_channel_has_work(mrc_list_entry(at, struct mrc_channel, in_all)))
			return false;
	}
	return !conn->do_reset && !conn->do_peer_drain &&
	       conn->peer_drilled == conn->peer_drilled_told;
}

int mrc_conn_export(struct mrc_conn *conn, mrc_crc32c_fn crc32c, void *out, size_t cap,
		    size_t *len_out)
{
	struct mrc_state s;

	if (!is_quiet(conn))
		return -EBUSY;
	mrc_state_write(&s, out, cap);
	conn_visit(&s, conn);
	paths_visit(&s, conn);
	slots_visit(&s, conn);
	channels_write(&s, conn);
	control_visit(&s, conn);
	resends_visit(&s, conn);
	lost_visit_all(&s, conn);
	return mrc_state_written(&s, crc32c, len_out);
}

static int read_all(struct mrc_state *s, struct mrc_conn *conn)
{
	int r;

	conn_visit(s, conn);
	paths_visit(s, conn);
	r = slots_visit(s, conn);
	if (r == 0)
		r = channels_read(s, conn);
	if (r == 0)
		r = control_visit(s, conn);
	if (r == 0)
		r = resends_visit(s, conn);
	if (r == 0)
		r = lost_visit_all(s, conn);
	if (r == 0)
		mrc_state_finish(s, TAG_LAST);
	return r;
}

int mrc_conn_import(const struct mrc_conn_config *config, mrc_crc32c_fn crc32c, const void *data,
		    size_t len, uint64_t now_ns, struct mrc_conn **conn_out, const char **why_out)
{
	struct mrc_conn *conn;
	uint32_t channels_max;
	struct mrc_state s;
	int r;

	r = mrc_state_read(&s, crc32c, data, len);
	*why_out = s.why;
	if (r)
		return r;
	r = mrc_conn_new(config, &conn);
	if (r)
		return r;
	conn->now_ns = now_ns;
	channels_max = conn->limits.channels_max;
	r = read_all(&s, conn);
	conn->limits.channels_max = channels_max;
	*why_out = s.why;
	if (r == 0 && s.why)
		r = -EPROTO;
	if (r) {
		mrc_conn_free(conn);
		return r;
	}
	conn->active_ns = now_ns;
	conn->is_number_lost = true; /* there may have been more paths, of which nothing can land */
	mrc_conn_ports_update(conn);
	conn->is_status_stale = true; /* whatever the run before said of drills is over */
	for (struct mrc_list *at = conn->all.next; at != &conn->all; at = at->next)
		mrc_conn_touch(conn, mrc_list_entry(at, struct mrc_channel, in_all));
	*conn_out = conn;
	return 0;
}
