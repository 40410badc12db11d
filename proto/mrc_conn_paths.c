/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_paths - the life of a conn's paths (DESIGN 8): up, judged, given up, fenced, back again */
#include "mrc_conn_impl.h"

#define PROBE_TIMEOUT_NS_MIN (50 * MRC_MS)
#define IDLE_NS              MRC_S /* no message under way so long: probe less often */
#define IDLE_PROBE_FACTOR    25U
#define PROVE_ON_DAMAGE      4U /* proofs asked for when data came damaged */
#define PROVE_TO_RETURN      8U /* and of a path that left as corrupting, before it carries data again */

static uint64_t jittered(struct mrc_conn *conn, uint64_t span_ns)
{
	return span_ns / 2 + mrc_rng_next(&conn->rng) % (span_ns / 2 + 1);
}

struct mrc_path *mrc_conn_path_by_id(struct mrc_conn *conn, uint16_t path_id)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		if (conn->paths[i].is_known && conn->paths[i].path_id == path_id)
			return &conn->paths[i];
	}
	return NULL;
}

void mrc_conn_path_set(struct mrc_conn *conn, struct mrc_path *path, enum mrc_path_state state,
		       enum mrc_path_reason reason)
{
	if (path->state == state)
		return;
	if (state == MRC_PATH_GOOD) {
		path->good_count++;
		path->good_since_ns = conn->now_ns;
	}
	if (path->state == MRC_PATH_GOOD)
		path->bad_count++;
	path->state = state;
	path->state_since_ns = conn->now_ns;
	if (reason != MRC_REASON_NONE)
		path->reason = reason;
	path->do_state = true;
}

void mrc_conn_ports_update(struct mrc_conn *conn)
{
	uint32_t down = 0;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (path->is_known && (!path->is_carrier_up || path->is_denied))
			down |= 1U << path->path_id;
	}
	if (down == conn->ports_down && conn->port_version)
		return;
	conn->ports_down = down;
	mrc_conn_ports_tell(conn);
}

void mrc_conn_ports_tell(struct mrc_conn *conn)
{
	conn->port_version++;
	/* Tell it at once on whatever is left: the peer may not see our end of the cable. */
	for (uint8_t i = 0; i < conn->path_count; i++) {
		if (conn->paths[i].state == MRC_PATH_GOOD)
			conn->paths[i].do_probe = true;
	}
}

void mrc_conn_peer_ports(struct mrc_conn *conn, const struct mrc_path *by, uint32_t version,
			 uint64_t status)
{
	if (version <= conn->peer_port_version)
		return;
	conn->peer_port_version = version;
	mrc_conn_host_take(conn, by, status);
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];

		if (!path->is_known)
			continue;
		path->is_peer_port_up = !(status >> path->path_id & 1);
		if (!path->is_peer_port_up &&
		    (path->state == MRC_PATH_GOOD || path->state == MRC_PATH_PROBING))
			mrc_conn_path_leave(conn, path, MRC_REASON_PEER_PORT, true);
	}
}

static void connect_later(struct mrc_conn *conn, struct mrc_path *path)
{
	path->is_connecting = false;
	if (!conn->is_initiator || path->is_denied) {
		path->connect_ns = MRC_NEVER;
		return;
	}
	path->connect_ns = conn->now_ns + jittered(conn, path->backoff_ns);
	path->backoff_ns = MRC_MIN(path->backoff_ns * 2, conn->limits.backoff_max_ns);
}

/* The rail reads nothing more of what was posted before `position`. */
void mrc_conn_path_sent(struct mrc_conn *conn, struct mrc_path *path, uint64_t position)
{
	while (path->sent < position) {
		struct mrc_record *record = mrc_path_record(path, path->sent++);
		struct mrc_channel *ch;
		struct mrc_msg_out *msg;

		if (record->kind != MRC_REC_FRAG)
			continue;
		ch = mrc_conn_channel(conn, record->channel);
		msg = ch ? mrc_channel_out(ch, record->msg) : NULL;
		if (!msg)
			continue;
		MRC_ASSERT(msg->frames_out > 0);
		if (--msg->frames_out > 0)
			continue;
		if (msg->is_traced && !mrc_msg_out_has_more(msg))
			mrc_notes_at(&ch->out_notes, msg->note)->ns[MRC_MOMENT_LOCAL] =
				mrc_conn_stamp(conn);
		if (msg->is_final || ch->state == MRC_CH_ENDED ||
		    mrc_channel_out_is_due(ch, record->msg))
			mrc_conn_touch(conn, ch);
	}
}

/* One WANT less is on its way: when that was the bound, those that waited for it go on. */
static void want_over(struct mrc_conn *conn)
{
	bool was_full = mrc_conn_wants_full(conn);
	struct mrc_list *at;

	conn->wants_out--;
	if (!was_full)
		return;
	for (at = conn->all.next; at != &conn->all; at = at->next) {
		struct mrc_channel *ch = mrc_list_entry(at, struct mrc_channel, in_all);

		if (ch->facts & MRC_FACT_WANT && !ch->is_detached)
			mrc_list_push_once(&conn->fact_work, &ch->in_facts);
	}
}

static void resend_push(struct mrc_conn *conn, const struct mrc_path *path,
			const struct mrc_record *record)
{
	struct mrc_resend *head = &conn->resends[conn->resend_head & (conn->resend_count - 1)];

	if (conn->resend_tail - conn->resend_head == conn->resend_count) {
		/* It was cut off the head, alone (resend_may_post()). */
		MRC_ASSERT(head->channel == record->channel && head->msg == record->msg &&
			   head->offset == record->offset + record->len);
		head->offset -= record->len;
		head->len += record->len;
		return;
	}
	conn->resends[conn->resend_tail++ & (conn->resend_count - 1)] = (struct mrc_resend){
		.channel = record->channel,
		.len = record->len,
		.msg = record->msg,
		.offset = record->offset,
		.is_copy = record->is_direct || record->is_copy,
		.writer_path = record->is_direct ? (uint8_t)path->path_id : record->writer_path,
		.writer_epoch = record->is_direct ? path->epoch : record->writer_epoch,
	};
}

/* What the frame carried is to be made anew: mark the fact, or queue the fragment. */
static void record_again(struct mrc_conn *conn, struct mrc_path *path, struct mrc_record *record)
{
	struct mrc_channel *ch;
	struct mrc_msg_out *out;
	struct mrc_msg_in *in;
	uint32_t slot;

	if (record->is_moved)
		return; /* said again when the path was suspected */
	record->is_moved = true;
	if (record->kind == MRC_REC_WANT)
		want_over(conn);
	if (record->kind == MRC_REC_FRAG)
		conn->frags_out--;
	switch ((enum mrc_record_kind)record->kind) {
	case MRC_REC_PLAIN:
	case MRC_REC_PROBE:
		return;
	case MRC_REC_PROBE_ACK:
		/* The path lives on, if the suspicion is false, and the peer waits for its answer. */
		path->do_probe_ack = !path->do_fence;
		return;
	case MRC_REC_ABOUT:
		path->do_about = !path->do_fence; /* it may have gone by as a NOP */
		return;
	case MRC_REC_ACK:
		conn->ack_now = true;
		conn->ack_has_news = true;
		return;
	case MRC_REC_CTL:
		if (record->msg < conn->ctl_sent && record->msg >= conn->ctl_acked)
			conn->ctl_sent = conn->ctl_acked;
		return;
	case MRC_REC_FENCE:
		if (conn->paths[record->channel].epoch == record->msg &&
		    !conn->paths[record->channel].is_connected)
			conn->paths[record->channel].tell_fence = true;
		return;
	case MRC_REC_FENCED:
		conn->paths[record->channel].tell_fenced = true;
		return;
	default:
		break;
	}
	ch = mrc_conn_channel(conn, record->channel);
	if (!ch || ch->is_detached)
		return;
	if (record->kind == MRC_REC_FRAG || record->kind == MRC_REC_RTS) {
		out = mrc_channel_out(ch, record->msg);
		if (!out || out->is_final || out->level >= MRC_LVL_PLACED)
			return;
		if (record->kind == MRC_REC_RTS) {
			if (!out->is_granted) {
				slot = (uint32_t)(record->msg & (ch->out_window - 1));
				mrc_bits_set(&ch->rts_bits, slot);
				ch->facts |= MRC_FACT_RTS;
			}
		} else {
			resend_push(conn, path, record);
			path->frames_resent++;
			path->moved_count++;
		}
		mrc_conn_touch(conn, ch);
		return;
	}
	in = mrc_channel_in(ch, record->msg);
	slot = ch->in_window ? (uint32_t)(record->msg & (ch->in_window - 1)) : 0;
	if (record->kind == MRC_REC_STATE) {
		ch->facts |= MRC_FACT_STATE;
	} else if (record->kind == MRC_REC_DRAINED) {
		if (ch->drained_owed && !ch->drained_acked)
			ch->facts |= MRC_FACT_DRAINED;
	} else if (record->kind == MRC_REC_LEVEL) {
		MRC_ASSERT(ch->level_unacked >= record->is_owed);
		ch->level_unacked -= record->is_owed;
		if (in && (in->is_known || in->is_void)) {
			mrc_bits_set(&ch->level_bits, slot);
			ch->facts |= MRC_FACT_LEVEL;
		}
	} else if (in && record->kind == MRC_REC_CTS && in->is_granted && !in->is_whole) {
		mrc_bits_set(&ch->cts_bits, slot);
		ch->facts |= MRC_FACT_CTS;
	} else if (in && record->kind == MRC_REC_WANT && in->is_granted && !in->is_whole &&
		   !in->is_void) {
		int r = mrc_channel_in_want(ch, &conn->ranges, record->msg, record->offset,
					    record->end, 0);

		MRC_ASSERT(r == 0); /* no more are out than the nodes that are kept for this */
		in->want_blame = in->want_blame ? in->want_blame : record->blame;
	}
	mrc_conn_touch(conn, ch);
}

/* The peer took this frame in. */
static void record_acked(struct mrc_conn *conn, struct mrc_record *record)
{
	struct mrc_channel *ch;

	/*
	 * Said again elsewhere since. What was taken in here may have been a NOP in its
	 * place (MRC_ACT_STRIP): only the later one's acknowledgement says that it was heard.
	 */
	if (record->is_moved)
		return;
	switch ((enum mrc_record_kind)record->kind) {
	case MRC_REC_FRAG:
		conn->frags_out--;
		return;
	case MRC_REC_CTL:
		/* Taken in, yet not taken: it came out of turn and was dropped. */
		if (record->msg >= conn->ctl_acked && record->msg < conn->ctl_sent &&
		    record->sent_ns >= conn->ctl_back_ns) {
			conn->ctl_sent = conn->ctl_acked;
			conn->ctl_back_ns = conn->now_ns; /* those sent before say no more */
		}
		return;
	case MRC_REC_WANT:
		want_over(conn);
		return;
	case MRC_REC_LEVEL:
	case MRC_REC_DRAINED:
		ch = mrc_conn_channel(conn, record->channel);
		if (!ch)
			return;
		if (record->kind == MRC_REC_DRAINED) {
			ch->drained_acked = true;
		} else {
			MRC_ASSERT(ch->level_unacked >= record->is_owed);
			ch->level_unacked -= record->is_owed;
			/* An earlier word about it, by another path, is not the verdict. */
			if (record->is_final)
				mrc_channel_in_level_acked(ch, record->msg);
		}
		mrc_conn_touch(conn, ch);
		return;
	default:
		return;
	}
}

/* A path whose rate is not known is taken for as good as the best: else it would never be tried. */
static void rates_compare(struct mrc_conn *conn)
{
	uint64_t best = MRC_RATE_UNKNOWN;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		if (conn->paths[i].state == MRC_PATH_GOOD)
			best = MRC_MAX(best, MRC_MAX(conn->paths[i].rate.best,
						     conn->paths[i].rate_least));
	}
	for (uint8_t i = 0; i < conn->path_count; i++)
		conn->paths[i].rate_assumed = best;
}

int mrc_conn_path_acked(struct mrc_conn *conn, struct mrc_path *path, uint64_t count)
{
	struct mrc_record *newest = NULL; /* its place is not another frame's before we return */
	struct mrc_record *record;
	uint64_t bytes = 0;

	if (count > path->posted)
		return -EPROTO; /* it cannot have what was never sent */
	if (count <= path->acked)
		return 0;
	while ((record = mrc_path_pop(path, count))) {
		/*
		 * A probe's padding says little of the rate under load, and what was moved
		 * elsewhere went by as a NOP.
		 */
		if (record->kind == MRC_REC_FRAG && !record->is_moved)
			bytes += record->len;
		if (record->is_eliciting)
			newest = record;
		if (record->is_moved && newest)
			newest->queued = 0;
		record_acked(conn, record);
	}
	mrc_path_acked(path, newest, bytes, &conn->limits, conn->now_ns);
	rates_compare(conn);
	path->evidence_ns = MRC_NEVER;
	path->judge_ns = path->oldest_sent_ns;
	if (path->judge_ns != MRC_NEVER)
		path->judge_ns += mrc_path_timeout_ns(path, &conn->limits) / 2;
	conn->silent_since_ns = MRC_NEVER;
	if (path->state == MRC_PATH_ASSUMED_BAD && path->is_connected && !path->do_fence &&
	    path->acked == path->posted) {
		/*
		 * All had arrived: the suspicion was false if that was a matter of patience. What a
		 * rail says again once it is mended is no reason to be slower the next time it fails.
		 */
		path->is_on_trial = false;
		if (conn->now_ns <= path->trial_until_ns)
			mrc_path_acquit(path, &conn->limits, conn->now_ns);
		path->revive_ns = MRC_NEVER;
		path->probes_good = 0;
		path->do_probe = true;
		mrc_conn_path_set(conn, path, MRC_PATH_PROBING, MRC_REASON_NONE);
	}
	return 0;
}

static bool has_good_sibling(const struct mrc_conn *conn, const struct mrc_path *path)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		if (&conn->paths[i] != path && conn->paths[i].state == MRC_PATH_GOOD)
			return true;
	}
	return false;
}

void mrc_conn_path_leave(struct mrc_conn *conn, struct mrc_path *path, enum mrc_path_reason reason,
			 bool is_closing)
{
	bool was_serving = path->state == MRC_PATH_GOOD || path->state == MRC_PATH_PROBING;

	if (!path->is_connected)
		return;
	/* The last one, and the peer was there a moment ago: it is not waited for long. */
	if (path->state == MRC_PATH_GOOD && !has_good_sibling(conn, path))
		path->backoff_ns = conn->limits.backoff_min_ns;
	if (was_serving) {
		path->moved_count = 0;
		path->late_ns =
			path->oldest_sent_ns == MRC_NEVER ? 0 : conn->now_ns - path->oldest_sent_ns;
	}
	/* A rail that writes directly is stopped before anything is sent again (DESIGN 7.3). */
	is_closing = is_closing || path->is_direct;
	path->probe_ns = MRC_NEVER;
	path->probe_due_ns = MRC_NEVER;
	path->do_probe = false;
	path->do_proof = false;
	path->do_probe_ack = false;
	path->do_path_open = false;
	path->judge_ns = MRC_NEVER;
	path->prove_left = 0;
	path->is_convicted = path->is_convicted || reason == MRC_REASON_CORRUPT;
	if (is_closing) {
		path->do_fence = true;
		path->do_strip = false;
		path->revive_ns = MRC_NEVER;
		path->tell_fence = reason != MRC_REASON_NEW_CONN;
	} else {
		path->do_strip = true;
		path->revive_ns = conn->now_ns + conn->limits.revive_ns;
	}
	if (!path->is_denied)
		mrc_conn_path_set(conn, path, MRC_PATH_ASSUMED_BAD, reason);
	for (uint64_t at = path->acked; at < path->posted; at++)
		record_again(conn, path, mrc_path_record(path, at));
}

/* A path took something in or is fenced: channels that wait to be drained may go on. */
void mrc_conn_drains(struct mrc_conn *conn)
{
	struct mrc_list *at = conn->drain_work.next;

	while (at != &conn->drain_work) {
		struct mrc_channel *ch = mrc_list_entry(at, struct mrc_channel, in_drain);

		at = at->next;
		mrc_conn_touch(conn, ch);
	}
}

/* Its transport is gone at our end: nothing can land, nothing is read. */
static void path_gone(struct mrc_conn *conn, struct mrc_path *path)
{
	mrc_conn_path_sent(conn, path, path->posted);
	path->is_connected = false;
	path->do_fence = false;
	path->do_strip = false;
	path->revive_ns = MRC_NEVER;
	path->bytes_in_flight = 0;
	path->acked = path->posted;
	path->oldest_sent_ns = MRC_NEVER;
	path->fenced_epoch = MRC_MAX(path->fenced_epoch, path->epoch);
	if (path->state != MRC_PATH_DENIED)
		mrc_conn_path_set(conn, path, MRC_PATH_CONNECTING, MRC_REASON_NONE);
	connect_later(conn, path);
	mrc_conn_holds_fenced(conn, path->index);
	mrc_conn_drains(conn);
}

/*
 * Another path of ours had this number: the peer has taken it away and given the number on. No
 * epoch begins under it before nothing of the old ones can land here (DESIGN 7.4). 0, or
 * -EBUSY: that is under way; -EINVAL: an epoch that the number has had.
 */
static int number_take(struct mrc_conn *conn, struct mrc_path *path, const struct mrc_ev_path *ev)
{
	struct mrc_path *other = mrc_conn_path_by_id(conn, ev->path_id);

	if (!other || other == path || ev->conn_epoch != conn->epoch)
		return 0;
	if (ev->path_epoch <= other->epoch) {
		/* The peer knew nothing of that epoch: our next HELLO says it, or it comes again. */
		path->epoch_last = MRC_MAX(path->epoch_last, other->epoch);
		return -EINVAL;
	}
	if (!other->is_connected)
		return 0;
	if (!other->do_fence)
		mrc_conn_path_leave(conn, other, MRC_REASON_CLOSED, true);
	other->tell_fence = false; /* the peer has no such path any more */
	return -EBUSY;
}

static int on_up(struct mrc_conn *conn, struct mrc_path *path, const struct mrc_ev_path *ev)
{
	bool is_same_conn = ev->conn_epoch == conn->epoch;
	bool is_first = true;
	int r;

	for (uint8_t i = 0; i < conn->path_count; i++)
		is_first = is_first && !conn->paths[i].is_connected;
	if (ev->path_epoch <= path->epoch || ev->path_id >= MRC_PATHS_MAX ||
	    (ev->receive_share && ev->receive_share < MRC_SHARE_MIN) ||
	    (ev->receive_bytes && ev->receive_bytes < MRC_WIRE_CTL_BYTES_MAX))
		return -EINVAL;
	r = number_take(conn, path, ev);
	if (r)
		return r;
	if (path->is_connected) { /* the embedder has fenced the older one */
		mrc_conn_path_leave(conn, path, MRC_REASON_CLOSED, true);
		path_gone(conn, path);
	}
	if (ev->conn_epoch != conn->epoch) {
		if (ev->conn_epoch < conn->epoch)
			return -EINVAL;
		mrc_conn_reset(conn, ev->conn_epoch, ev->peer_boot_id);
	}
	if (!path->is_known || path->path_id != ev->path_id) {
		/* The initiator numbers them, and may have been started anew with other ones. */
		for (uint8_t i = 0; i < conn->path_count; i++) {
			struct mrc_path *other = &conn->paths[i];

			if (other == path || !other->is_known || other->path_id != ev->path_id)
				continue;
			if (other->is_connected)
				mrc_conn_path_leave(conn, other, MRC_REASON_CLOSED, true);
			else if (is_same_conn)
				path->fenced_epoch = MRC_MAX(path->fenced_epoch, other->epoch);
			other->is_known = false;
			other->tell_fence = false;
			other->tell_fenced = false;
			conn->is_number_lost = conn->is_number_lost || is_same_conn;
		}
		conn->is_number_lost = conn->is_number_lost || (is_same_conn && path->is_known);
		path->path_id = ev->path_id;
		path->is_known = true;
		path->tell_fenced = false;
		mrc_conn_ports_update(conn);
	}
	path->is_direct = ev->is_direct_capable;
	conn->is_direct_seen = conn->is_direct_seen || path->is_direct;
	path->fenced_epoch = MRC_MAX(path->fenced_epoch, path->epoch);
	mrc_path_begin(path, ev->path_epoch, conn->limits.path_window_bytes_min,
		       conn->limits.suspect_floor_ns, conn->now_ns);
	path->version = MRC_MAX(ev->version, 1);
	path->features = ev->features;
	mrc_conn_host_path_up(conn, path);
	path->share_given = ev->receive_share;
	path->share = ev->receive_share ? MRC_SHARE_MIN : 0;
	/* Until its PATH_OPEN says more, the peer takes what every queue pair does. */
	path->body_bytes_given = ev->receive_bytes;
	path->body_bytes_max = ev->receive_share ? MRC_WIRE_CTL_BYTES_MAX : UINT32_MAX;
	path->do_keys = path->is_direct;
	path->connect_ns = MRC_NEVER;
	path->good_since_ns = 0;
	if (!path->is_carrier_up) {
		/* The handshake went over it: the event was missed, and the peer shall not hear that it is down. */
		path->is_carrier_up = true;
		mrc_conn_ports_update(conn);
	}
	mrc_conn_holds_fenced(conn, path->index);
	if (path->is_denied) {
		mrc_conn_path_leave(conn, path, MRC_REASON_OPERATOR, true);
		return 0;
	}
	/* The peer is there again: the other paths need not sit out their backoff. */
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *other = &conn->paths[i];

		if (other->connect_ns != MRC_NEVER && other->is_carrier_up && is_first)
			other->connect_ns =
				MRC_MIN(other->connect_ns,
					conn->now_ns + jittered(conn, conn->limits.backoff_min_ns));
	}
	mrc_conn_path_set(conn, path, MRC_PATH_PROBING, MRC_REASON_NONE);
	path->do_path_open = true;
	mrc_conn_about_begin(conn, path);
	path->do_probe = true;
	path->prove_left = path->is_convicted && has_good_sibling(conn, path) ? PROVE_TO_RETURN : 0;
	return 0;
}

static void on_carrier(struct mrc_conn *conn, struct mrc_path *path, bool is_up)
{
	bool was_up = path->is_carrier_up;

	path->is_carrier_up = is_up;
	if (was_up != is_up)
		mrc_conn_ports_update(conn);
	if (!is_up) {
		if (path->is_connected && !path->do_fence)
			mrc_conn_path_leave(conn, path, MRC_REASON_CARRIER, true);
		return;
	}
	/* A hint to try soon. Not trusted alone either way: attempts go on without it. */
	if (!path->is_connected && !path->is_connecting && conn->is_initiator && !path->is_denied)
		path->connect_ns = MRC_MIN(path->connect_ns,
					   conn->now_ns + jittered(conn, MRC_MIN(path->backoff_ns,
										 200 * MRC_MS)));
}

int mrc_conn_path_event(struct mrc_conn *conn, const struct mrc_event_in *ev)
{
	struct mrc_path *path = &conn->paths[ev->path.index];
	bool is_current = ev->path.path_epoch == path->epoch && path->is_connected;

	switch (ev->kind) {
	case MRC_EV_PATH_UP:
		return on_up(conn, path, &ev->path);
	case MRC_EV_PATH_DOWN:
		if (!is_current)
			return 0; /* of an epoch before: dropped */
		if (ev->path.reason == MRC_REASON_CORRUPT)
			path->header_errors++;
		if (ev->path.reason == MRC_REASON_PROTOCOL && !path->is_breach_counted)
			conn->protocol_errors++;
		mrc_conn_path_leave(conn, path, ev->path.reason, true);
		path_gone(conn, path);
		return 0;
	case MRC_EV_FENCED:
		if (!is_current)
			return 0;
		/* Also when we did not ask for it: the peer has opened a newer epoch, maybe. */
		if (!path->do_fence)
			mrc_conn_path_leave(conn, path, MRC_REASON_CLOSED, true);
		path_gone(conn, path);
		return 0;
	case MRC_EV_PATH_FAILED:
		if (path->is_connecting) {
			uint64_t backoff_ns = path->backoff_ns;

			if (path->reason == MRC_REASON_NONE)
				path->reason = MRC_REASON_CONNECT;
			connect_later(conn, path);
			/* Nothing was tried, and the carrier's return begins it at once. */
			if (ev->path.reason == MRC_REASON_CARRIER)
				path->backoff_ns = backoff_ns;
		}
		return 0;
	case MRC_EV_CARRIER:
		on_carrier(conn, path, ev->path.is_up);
		return 0;
	case MRC_EV_SENT:
		if (is_current && ev->path.count <= path->posted)
			mrc_conn_path_sent(conn, path, ev->path.count);
		return 0;
	case MRC_EV_DENY:
		if (path->is_denied)
			return 0;
		path->is_denied = true;
		mrc_conn_ports_update(conn);
		if (path->is_connected)
			mrc_conn_path_leave(conn, path, MRC_REASON_OPERATOR, true);
		mrc_conn_path_set(conn, path, MRC_PATH_DENIED, MRC_REASON_OPERATOR);
		path->connect_ns = MRC_NEVER;
		return 0;
	default: /* ALLOW */
		if (!path->is_denied)
			return 0;
		path->is_denied = false;
		mrc_conn_ports_update(conn);
		path->backoff_ns = conn->limits.backoff_min_ns;
		if (path->state == MRC_PATH_DENIED)
			mrc_conn_path_set(conn, path, MRC_PATH_CONNECTING, MRC_REASON_NONE);
		if (path->is_connected && !path->do_fence)
			mrc_conn_path_leave(conn, path, MRC_REASON_OPERATOR, true);
		else if (!path->is_connected && !path->is_connecting)
			connect_later(conn, path); /* an attempt under way will say how it ended */
		return 0;
	}
}

/* ---- judging by time ---- */

/* Has a sibling answered something sent later than `sent_ns` by half the timeout? (DESIGN 8) */
static bool sibling_answered(struct mrc_conn *conn, const struct mrc_path *path, uint64_t after_ns)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *other = &conn->paths[i];

		if (other != path && other->is_connected && !other->do_fence &&
		    other->answered_sent_ns > after_ns)
			return true;
	}
	return false;
}

void mrc_conn_path_judge(struct mrc_conn *conn, struct mrc_path *path)
{
	uint64_t timeout_ns = mrc_path_timeout_ns(path, &conn->limits);
	uint64_t late_ns;

	if (path->oldest_sent_ns == MRC_NEVER || !path->is_connected || path->do_fence ||
	    (path->state != MRC_PATH_GOOD && path->state != MRC_PATH_PROBING))
		return;
	late_ns = conn->now_ns - path->oldest_sent_ns;
	if (late_ns >= timeout_ns &&
	    sibling_answered(conn, path, path->oldest_sent_ns + timeout_ns / 2)) {
		/*
		 * The sibling's answer may have overtaken this path's by a turn of
		 * either host: one word more is waited for.
		 */
		if (path->evidence_ns == MRC_NEVER) {
			path->evidence_ns = conn->now_ns;
			path->is_evidence_late = false;
		}
		/* We stood still: what came meanwhile has not been read. Once: a host that is
		 * always late has to find its dead paths too. */
		if (conn->now_ns - path->evidence_ns > timeout_ns / 2 && !path->is_evidence_late) {
			path->evidence_ns = conn->now_ns;
			path->is_evidence_late = true;
		}
		if (conn->now_ns - path->evidence_ns < timeout_ns / 4) {
			path->judge_ns = path->evidence_ns + timeout_ns / 4;
			return;
		}
		mrc_path_suspect(path, timeout_ns, conn->now_ns);
		mrc_conn_path_leave(conn, path, MRC_REASON_SILENT, false);
		return;
	}
	if (late_ns >= timeout_ns / 2) {
		/* Ask the siblings something, so that there is evidence when the time is up. */
		for (uint8_t i = 0; i < conn->path_count; i++) {
			struct mrc_path *other = &conn->paths[i];

			if (other == path || other->state != MRC_PATH_GOOD)
				continue;
			if (other->elicited_ns <= path->oldest_sent_ns + timeout_ns / 2)
				other->do_probe = true;
		}
		if (late_ns >= timeout_ns)
			path->do_carrier_ask = true;
		/* The longer nobody answers, the less often it is asked. */
		path->judge_ns = conn->now_ns + MRC_MAX(timeout_ns / 2, late_ns / 8) + 1;
		if (late_ns < timeout_ns)
			path->judge_ns = path->oldest_sent_ns + timeout_ns;
		return;
	}
	path->judge_ns = path->oldest_sent_ns + timeout_ns / 2;
}

void mrc_conn_probe_answered(struct mrc_conn *conn, struct mrc_path *path, uint64_t id,
			     uint64_t came_ns, uint64_t answered_ns)
{
	/* An answered probe outweighs what PORT_STATUS said (DESIGN 7.16). */
	path->is_peer_port_up = true;
	if (id != path->probe_id || path->probe_ns == MRC_NEVER)
		return;
	path->probe_ns = MRC_NEVER;
	conn->port_version_told = MRC_MAX(conn->port_version_told, path->probe_port_version);
	if (!conn->has_one_clock)
		mrc_clock_sample(&conn->clock, path->probe_stamp_ns, came_ns, answered_ns,
				 mrc_conn_stamp(conn));
	/*
	 * The path is in order, so the answer acknowledges what was before the probe.
	 * It comes by this path itself, and so also when the ACKs go by a dead one.
	 */
	mrc_conn_path_acked(conn, path, path->probe_count);
	mrc_path_rate_age(path, conn->now_ns);
	if (!has_good_sibling(conn, path))
		path->prove_left = 0;
	if (path->prove_left)
		path->do_probe = true;
	if (path->state != MRC_PATH_PROBING)
		return;
	path->probes_good++;
	if (path->probes_good >= conn->limits.probe_count && path->prove_left == 0) {
		path->is_convicted = false;
		mrc_conn_path_set(conn, path, MRC_PATH_GOOD, MRC_REASON_NONE);
		path->probe_due_ns = conn->now_ns + conn->limits.probe_interval_ns;
	} else {
		path->do_probe = true;
	}
}

/*
 * Something that a client can write came damaged by `path`: it may be the path
 * or the client. What the peer sends from its daemon's memory tells (DESIGN 7.12).
 */
void mrc_conn_path_mistrust(const struct mrc_conn *conn, struct mrc_path *path)
{
	path->body_errors++;
	if (path->state != MRC_PATH_GOOD || path->prove_left || !has_good_sibling(conn, path))
		return; /* the last one is not taken out for what is asked for again anyway */
	path->prove_left = PROVE_ON_DAMAGE;
	path->do_probe = true;
}

static bool all_silent(const struct mrc_conn *conn)
{
	bool is_any = false;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (!path->is_connected || path->do_fence || path->state == MRC_PATH_ASSUMED_BAD)
			continue;
		is_any = true;
		if (path->oldest_sent_ns == MRC_NEVER ||
		    conn->now_ns - path->oldest_sent_ns < mrc_path_timeout_ns(path, &conn->limits))
			return false;
	}
	return is_any;
}

static void tick_path(struct mrc_conn *conn, struct mrc_path *path)
{
	const struct mrc_limits *limits = &conn->limits;
	uint64_t now_ns = conn->now_ns;

	if (path->judge_ns <= now_ns) {
		path->judge_ns = MRC_NEVER;
		mrc_conn_path_judge(conn, path);
	}
	if (path->revive_ns <= now_ns) {
		path->revive_ns = MRC_NEVER;
		if (path->is_connected && path->state == MRC_PATH_ASSUMED_BAD && !path->do_fence) {
			path->do_fence = true;
			path->tell_fence = true;
		}
	}
	if (path->state == MRC_PATH_PROBING && path->is_connected && path->probe_ns != MRC_NEVER) {
		uint64_t timeout_ns =
			MRC_MAX(PROBE_TIMEOUT_NS_MIN, 4 * mrc_path_timeout_ns(path, limits));

		if (now_ns - path->probe_ns >= timeout_ns)
			mrc_conn_path_leave(conn, path, MRC_REASON_PROBE, true);
	}
	if (path->state == MRC_PATH_GOOD) {
		if (path->probe_due_ns <= now_ns) {
			uint64_t interval_ns = limits->probe_interval_ns;

			if (now_ns - conn->active_ns > IDLE_NS)
				interval_ns *= IDLE_PROBE_FACTOR;
			if (now_ns - path->elicited_ns >= interval_ns) {
				path->do_probe = true;
				path->probe_due_ns = now_ns + interval_ns;
			} else {
				path->probe_due_ns = path->elicited_ns + interval_ns;
			}
		}
		if (path->good_since_ns && now_ns - path->good_since_ns >= limits->hold_good_ns) {
			path->backoff_ns = limits->backoff_min_ns;
			path->good_since_ns = 0;
		}
	}
	if (path->connect_ns <= now_ns) {
		path->connect_ns = MRC_NEVER;
		if (!path->is_connected && !path->is_denied && !path->is_connecting) {
			path->is_connecting = true;
			path->do_connect = true;
		}
	}
}

void mrc_conn_tick(struct mrc_conn *conn)
{
	for (uint8_t i = 0; i < conn->path_count; i++)
		tick_path(conn, &conn->paths[i]);
	if (all_silent(conn)) {
		if (conn->silent_since_ns == MRC_NEVER)
			conn->silent_since_ns = conn->now_ns;
		if (conn->now_ns - conn->silent_since_ns >= conn->limits.peer_silent_ns) {
			conn->silent_since_ns = MRC_NEVER;
			for (uint8_t i = 0; i < conn->path_count; i++) {
				if (conn->paths[i].is_connected)
					mrc_conn_path_leave(conn, &conn->paths[i],
							    MRC_REASON_SILENT, true);
			}
		}
	} else {
		conn->silent_since_ns = MRC_NEVER;
	}
	if (conn->ack_due_ns <= conn->now_ns) {
		conn->ack_due_ns = MRC_NEVER;
		conn->ack_now = true;
	}
	if (conn->lazy_due_ns <= conn->now_ns) {
		conn->lazy_due_ns = MRC_NEVER;
		while (!mrc_list_is_empty(&conn->lazy_work)) {
			struct mrc_channel *ch =
				mrc_list_entry(conn->lazy_work.next, struct mrc_channel, in_lazy);

			mrc_list_remove(&ch->in_lazy);
			if (!(ch->facts & MRC_FACT_STATE_LAZY))
				continue; /* told since */
			ch->facts |= MRC_FACT_STATE;
			mrc_conn_touch(conn, ch);
		}
	}
}

uint64_t mrc_conn_deadline_ns(const struct mrc_conn *conn)
{
	uint64_t at_ns = MRC_MIN(conn->ack_due_ns, conn->lazy_due_ns);

	if (conn->silent_since_ns != MRC_NEVER)
		at_ns = MRC_MIN(at_ns, conn->silent_since_ns + conn->limits.peer_silent_ns);
	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		at_ns = MRC_MIN(at_ns, path->judge_ns);
		at_ns = MRC_MIN(at_ns, path->revive_ns);
		at_ns = MRC_MIN(at_ns, path->connect_ns);
		if (path->state == MRC_PATH_GOOD) {
			at_ns = MRC_MIN(at_ns, path->probe_due_ns);
			if (path->good_since_ns)
				at_ns = MRC_MIN(at_ns,
						path->good_since_ns + conn->limits.hold_good_ns);
		}
		if (path->state == MRC_PATH_PROBING && path->probe_ns != MRC_NEVER)
			at_ns = MRC_MIN(at_ns,
					path->probe_ns +
						MRC_MAX(PROBE_TIMEOUT_NS_MIN,
							4 * mrc_path_timeout_ns(path,
										&conn->limits)));
	}
	return at_ns;
}

struct mrc_path *mrc_conn_path_for_control(struct mrc_conn *conn, enum mrc_room room)
{
	struct mrc_path *best = NULL;
	struct mrc_path *crowded = NULL;
	struct mrc_path *along = NULL;
	struct mrc_path *fallback = NULL;

	for (uint8_t n = 0; n < conn->path_count; n++) {
		uint8_t i = (uint8_t)((conn->along_index + n) % conn->path_count);
		struct mrc_path *path = &conn->paths[i];
		uint64_t timeout_ns;

		if (path->state != MRC_PATH_GOOD || !mrc_path_has_room(path, room))
			continue;
		/* One that owes us an answer for long may be dying: words go elsewhere, or where we hear something. */
		timeout_ns = mrc_path_timeout_ns(path, &conn->limits);
		if (path->oldest_sent_ns != MRC_NEVER &&
		    conn->now_ns - path->oldest_sent_ns > timeout_ns / 2) {
			if (!fallback || path->heard_ns > fallback->heard_ns)
				fallback = path;
			continue;
		}
		/* The quickest path's receive entries are for its data too. */
		if (path->share && path->posted - path->acked > path->share / 2) {
			if (!crowded || path->rtt.smoothed_ns < crowded->rtt.smoothed_ns)
				crowded = path;
			continue;
		}
		/* Where others have just been posted, unless it would stand in a queue there. */
		if (n == 0 && conn->has_along && path->bytes_in_flight <= MRC_ALONG_BYTES_MAX)
			along = path;
		if (!best || path->rtt.smoothed_ns < best->rtt.smoothed_ns)
			best = path;
	}
	if (along && along->rtt.smoothed_ns <= best->rtt.smoothed_ns + MRC_ALONG_NS)
		return along;
	if (!best)
		best = crowded;
	return best ? best : fallback;
}
