/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_recv - frames from the peer: every field is checked against what we know */
#include "mrc_conn_impl.h"

/* ---- holds: fragments in daemon memory (rails with direct placement) ---- */

static void hold_drop(struct mrc_conn *conn, struct mrc_hold *hold)
{
	hold->state = MRC_HOLD_DONE;
	conn->holds_ready++;
}

/* Is nothing of this writer's still to come? `index` is our path index. */
static bool writer_is_over(const struct mrc_conn *conn, uint8_t index, uint32_t epoch)
{
	return conn->paths[index].fenced_epoch >= epoch;
}

void mrc_conn_holds_fenced(struct mrc_conn *conn, uint8_t path_index)
{
	if (!conn->holds_used)
		return;
	for (uint32_t i = 0; i < conn->hold_count; i++) {
		struct mrc_hold *hold = &conn->holds[i];

		if (hold->state == MRC_HOLD_WAITING && hold->writer_index == path_index &&
		    writer_is_over(conn, path_index, hold->writer_epoch)) {
			hold->state = MRC_HOLD_READY;
			conn->holds_ready++;
		}
	}
}

static struct mrc_hold *hold_take(struct mrc_conn *conn)
{
	for (uint32_t i = 0; i < conn->hold_count; i++) {
		if (conn->holds[i].state == MRC_HOLD_NONE) {
			conn->holds_used++;
			return &conn->holds[i];
		}
	}
	abort(); /* the embedder has holds_max buffers and no more */
}

/* The frame it came with is not taken: give it back. */
static void hold_refuse(struct mrc_conn *conn, uint64_t id)
{
	struct mrc_hold *hold = hold_take(conn);

	*hold = (struct mrc_hold){.id = id};
	hold_drop(conn, hold);
}

/* ---- fragments ---- */

static bool is_needed(const struct mrc_channel *ch, const struct mrc_msg_in *msg)
{
	return ch->state != MRC_CH_ENDED && !msg->is_whole && !msg->is_void && !msg->is_delivered;
}

/* The message a FRAG is for, if it may still take bytes; learns its length and place. */
static int frag_message(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr,
			struct mrc_channel **ch_out, struct mrc_msg_in **msg_out)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	struct mrc_msg_in *msg;
	bool is_eager = hdr->flags & MRC_WIRE_F_EAGER;
	int r;

	*ch_out = ch;
	*msg_out = NULL;
	if (hdr->conn_epoch != conn->epoch)
		return 0; /* channel numbers begin anew with a conn epoch */
	if (!ch || !ch->has_client || ch->state == MRC_CH_ENDED)
		return 0; /* gone, or not ours to receive on: the bytes are not needed */
	/* Else a peer could have its payload pass unread where our client counts on checksums. */
	if (!(hdr->flags & MRC_WIRE_F_UNCHECKED) == ch->is_unchecked)
		return -EPROTO;
	if (!mrc_channel_in_settled(ch, &conn->ranges, hdr->arg))
		return -EPROTO;
	if (hdr->msg < ch->peer_settled)
		return 0;
	msg = mrc_channel_in(ch, hdr->msg);
	if (msg && msg->is_void)
		return 0; /* overtaken by its VOID: the ring may have moved on over its place */
	/*
	 * Asked for its place, a fragment is heard of before it has come, and it may never come:
	 * what waited for this number to be known (a landing buffer of the next) waits no more.
	 */
	if (msg && !msg->is_known)
		mrc_list_push_once(&conn->client_work, &ch->in_clients);
	r = mrc_channel_in_learn(ch, hdr->msg, hdr->msg_len, is_eager, hdr->addr);
	if (r)
		return r;
	msg = mrc_channel_in(ch, hdr->msg);
	if (!msg->is_granted)
		return -EPROTO; /* it has no buffer to write to */
	if (!is_eager && hdr->addr != msg->addr)
		return -EPROTO;
	if (is_needed(ch, msg))
		*msg_out = msg;
	return 0;
}

/* The path that may still write directly what this fragment is a copy of; NULL: none may. */
static const struct mrc_path *writer_of(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	const struct mrc_path *writer = NULL;

	if (hdr->flags & MRC_WIRE_F_COPY)
		writer = mrc_conn_path_by_id(conn, hdr->writer_path);
	return writer && !writer_is_over(conn, writer->index, hdr->writer_epoch) ? writer : NULL;
}

uint32_t mrc_conn_place(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, uint32_t done,
			struct mrc_place *place_out)
{
	struct mrc_channel *ch;
	struct mrc_msg_in *msg;
	uint64_t at = hdr->offset + done;
	uint64_t end = hdr->offset + hdr->body_len;
	uint64_t until = end;

	MRC_ASSERT(done <= hdr->body_len);
	*place_out = (struct mrc_place){.is_scratch = true};
	if (frag_message(conn, hdr, &ch, &msg) || !msg || writer_of(conn, hdr))
		return (uint32_t)(end - at);
	/* Bytes that are here were taken for good; another copy may not touch them. */
	if (mrc_range_set_has(&conn->ranges, &msg->here, at, end, &until))
		return (uint32_t)(until - at);
	place_out->is_scratch = false;
	place_out->is_eager = msg->is_eager;
	place_out->channel_cookie = ch->cookie;
	place_out->addr = (msg->is_eager ? msg->addr % ch->ring_bytes : msg->addr) + at;
	return (uint32_t)(until - at);
}

bool mrc_conn_place_whole(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr,
			  struct mrc_place *place_out)
{
	struct mrc_channel *ch;
	struct mrc_msg_in *msg;

	if (frag_message(conn, hdr, &ch, &msg) || !msg)
		return false;
	*place_out = (struct mrc_place){
		.is_eager = msg->is_eager,
		.channel_cookie = ch->cookie,
		.addr = (msg->is_eager ? msg->addr % ch->ring_bytes : msg->addr) + hdr->offset,
	};
	return true;
}

static void frag_flags(struct mrc_channel *ch, struct mrc_msg_in *msg,
		       const struct mrc_wire_hdr *hdr)
{
	if (hdr->flags & MRC_WIRE_F_TRACED)
		mrc_channel_in_trace(ch, msg);
	msg->wants_placed = msg->wants_placed || hdr->flags & MRC_WIRE_F_PLACED;
	msg->wants_visible = msg->wants_visible || hdr->flags & MRC_WIRE_F_VISIBLE;
}

/* Ask for what has landed and was thrown away. -ENOBUFS: it cannot even be remembered. */
static int frag_want(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t number, uint64_t start,
		     uint64_t end)
{
	return mrc_channel_in_want(ch, &conn->ranges, number, start, end,
				   MRC_RANGES_KEPT_WANTED(conn));
}

static int frag_here(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t number,
		     uint64_t offset, uint64_t len)
{
	int64_t added = mrc_channel_in_here(ch, &conn->ranges, number, offset, len);

	if (added < 0) /* no room to remember so many gaps: as if it had not come */
		return frag_want(conn, ch, number, offset, offset + len);
	if (added == 0 && len)
		conn->duplicates++;
	return 0;
}

/* A hold for this fragment: until its writer, if it has one, is fenced at our end (DESIGN 7.3). */
static void frag_hold(struct mrc_conn *conn, const struct mrc_channel *ch,
		      const struct mrc_wire_hdr *hdr, uint64_t id, uint8_t blame,
		      const struct mrc_path *writer)
{
	struct mrc_hold *hold = hold_take(conn);

	*hold = (struct mrc_hold){
		.state = writer ? MRC_HOLD_WAITING : MRC_HOLD_READY,
		.channel = ch->id,
		.id = id,
		.blame = blame,
		.msg = hdr->msg,
		.offset = hdr->offset,
		.len = hdr->body_len,
		.writer_epoch = hdr->writer_epoch,
	};
	if (!writer) {
		conn->holds_ready++;
		return;
	}
	hold->writer_index = writer->index;
	if (writer->epoch == hdr->writer_epoch && writer->is_connected)
		mrc_conn_path_leave(conn, &conn->paths[writer->index], MRC_REASON_PEER_FENCE, true);
}

/* Copies of one message come in order: what follows on a lost one is lost with it. */
static bool lost_extend(struct mrc_conn *conn, const struct mrc_channel *ch,
			const struct mrc_wire_hdr *hdr, uint8_t blame,
			const struct mrc_path *writer)
{
	if (!conn->holds_lost)
		return false;
	for (uint32_t i = 0; i < conn->hold_count; i++) {
		struct mrc_hold *hold = &conn->holds[i];

		if (hold->state != MRC_HOLD_WAITING || hold->id || hold->channel != ch->id ||
		    hold->msg != hdr->msg || hold->writer_index != writer->index ||
		    hold->writer_epoch != hdr->writer_epoch ||
		    hold->offset + hold->len != hdr->offset)
			continue;
		hold->len += hdr->body_len;
		hold->blame = blame ? blame : hold->blame;
		return true;
	}
	return false;
}

/* It landed damaged, or nowhere. What of it is still needed is asked for again. */
static int frag_lost(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_msg_in *msg,
		     const struct mrc_wire_hdr *hdr, struct mrc_path *path, bool is_blame)
{
	const struct mrc_path *writer = writer_of(conn, hdr);
	uint8_t blame = 0;
	uint64_t start;
	uint64_t end;

	/* The checksum of a copy that is not needed any more says nothing (DESIGN 7.12). */
	if (!mrc_range_set_gap(&conn->ranges, &msg->here, hdr->offset, hdr->offset + hdr->body_len,
			       &start, &end)) {
		conn->duplicates++;
		return 0;
	}
	if (is_blame) {
		blame = (uint8_t)(path->path_id + 1);
		mrc_conn_path_mistrust(conn, path);
	}
	if (writer) {
		if (lost_extend(conn, ch, hdr, blame, writer))
			return 0;
		if (conn->holds_lost >= MRC_HOLDS_LOST_MAX)
			return -ENOBUFS;
		conn->holds_lost++;
		frag_hold(conn, ch, hdr, 0, blame, writer);
		return 0;
	}
	msg->want_blame = blame ? blame : msg->want_blame;
	return frag_want(conn, ch, hdr->msg, start, hdr->offset + hdr->body_len);
}

static int on_frag(struct mrc_conn *conn, const struct mrc_ev_arrived *ev)
{
	const struct mrc_wire_hdr *hdr = ev->hdr;
	struct mrc_path *path = &conn->paths[ev->index];
	struct mrc_channel *ch;
	struct mrc_msg_in *msg;
	int r;

	if (hdr->flags & MRC_WIRE_F_DIRECT &&
	    (!path->is_direct || hdr->writer_path != path->path_id ||
	     hdr->writer_epoch != path->epoch))
		return -EPROTO; /* only the path itself can vouch for a direct write */
	r = frag_message(conn, hdr, &ch, &msg);
	if (r == 0 && hdr->flags & MRC_WIRE_F_COPY) {
		const struct mrc_path *writer = mrc_conn_path_by_id(conn, hdr->writer_path);

		/* Nobody of that name can have written; or he has gone, and nothing of him can land. */
		if (writer ? hdr->writer_epoch > writer->epoch : !conn->is_number_lost)
			r = -EPROTO;
	}
	if (r) {
		if (ev->hold)
			hold_refuse(conn, ev->hold);
		return r;
	}
	conn->active_ns = conn->now_ns;
	if (!msg) {
		conn->duplicates++;
		if (ev->hold)
			hold_refuse(conn, ev->hold);
		return 0;
	}
	frag_flags(ch, msg, hdr);
	if (ev->is_body_good && ev->hold) {
		frag_hold(conn, ch, hdr, ev->hold, false, writer_of(conn, hdr));
	} else if (ev->is_body_good && ev->is_placed) {
		r = frag_here(conn, ch, hdr->msg, hdr->offset, hdr->body_len);
	} else {
		if (ev->hold)
			hold_refuse(conn, ev->hold);
		r = frag_lost(conn, ch, msg, hdr, path, !ev->is_body_good);
	}
	/* Data on a channel we opened says that it was accepted (DESIGN 7.7); credit comes with ACCEPT. */
	mrc_conn_touch(conn, ch);
	return r;
}

/* ---- facts about channels ---- */

static int on_rts(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	struct mrc_msg_in *msg;
	int r;

	if (!ch || !ch->has_client || ch->state == MRC_CH_ENDED)
		return 0;
	if (!mrc_channel_in_settled(ch, &conn->ranges, hdr->arg))
		return -EPROTO;
	if (hdr->msg < ch->peer_settled)
		return 0;
	msg = mrc_channel_in(ch, hdr->msg);
	if (msg && msg->is_void)
		return 0;
	r = mrc_channel_in_learn(ch, hdr->msg, hdr->msg_len, false, 0);
	if (r)
		return r;
	msg = mrc_channel_in(ch, hdr->msg);
	if (msg->is_granted && is_needed(ch, msg)) {
		/* A second RTS gets the same CTS (DESIGN 7.9). */
		mrc_bits_set(&ch->cts_bits, (uint32_t)(hdr->msg & (ch->in_window - 1)));
		ch->facts |= MRC_FACT_CTS;
	}
	conn->active_ns = conn->now_ns;
	mrc_conn_touch(conn, ch);
	return 0;
}

static int on_cts(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	struct mrc_msg_out *msg;

	if (!ch || !ch->has_client)
		return 0;
	msg = mrc_channel_out(ch, hdr->msg);
	if (!msg)
		return hdr->msg < ch->settled ? 0 : -EPROTO;
	if (msg->is_eager || !msg->is_admitted)
		return -EPROTO;
	if (msg->is_granted)
		return msg->landing == hdr->addr ? 0 : -EPROTO;
	if (msg->is_final || msg->is_void_asked)
		return 0;
	msg->is_granted = true;
	msg->landing = hdr->addr;
	mrc_channel_ready_push(ch, (uint32_t)(hdr->msg & (ch->out_window - 1)));
	mrc_conn_touch(conn, ch);
	return 0;
}

static bool has_one_path(const struct mrc_conn *conn)
{
	uint8_t count = 0;

	for (uint8_t i = 0; i < conn->path_count; i++)
		count += !conn->paths[i].is_absent;
	return count == 1;
}

static int on_want(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	struct mrc_msg_out *msg;
	uint64_t start = hdr->offset;
	uint64_t end;

	if (!ch || !ch->has_client)
		return 0;
	msg = mrc_channel_out(ch, hdr->msg);
	if (!msg)
		return hdr->msg < ch->settled ? 0 : -EPROTO;
	/* offset and msg_len are the range's ends. */
	if (hdr->offset >= hdr->msg_len || hdr->msg_len > msg->len ||
	    hdr->offset >= msg->next_offset || hdr->arg > MRC_PATHS_MAX)
		return -EPROTO;
	if (msg->is_final || msg->level >= MRC_LVL_PLACED)
		return 0;
	/*
	 * Half of the resends is theirs that come off dead paths. There is room: of what
	 * is in flight each frame is asked for once. Else this one is not taken in.
	 */
	if (conn->resend_tail - conn->resend_head >= conn->resend_count / 2)
		return -ENOBUFS;
	/*
	 * Damaged on one path and then on another, again and again, is the client that
	 * changes the bytes while they are read (invariant 8). Of a single path that
	 * cannot be told. A large message may meet many damaged fragments.
	 */
	if (hdr->arg && (hdr->arg != msg->want_blame || has_one_path(conn)))
		msg->want_count++;
	if (hdr->arg)
		msg->want_blame = (uint8_t)hdr->arg;
	if (msg->want_count > MRC_WANTS_MAX + 4 * (uint64_t)msg->frag_count && !msg->is_void_asked)
		mrc_channel_out_void(ch, hdr->msg, MRC_OUT_BUFFER_CHANGED);
	end = MRC_MIN(hdr->msg_len, msg->next_offset);
	/* Just these bytes, as plain copies: the first one had landed, so there is no writer to fear. */
	conn->resends[conn->resend_tail & (conn->resend_count - 1)] = (struct mrc_resend){
		.channel = ch->id,
		.len = end - start,
		.msg = hdr->msg,
		.offset = start,
		.is_wanted = true,
		.blame = (uint8_t)hdr->arg,
	};
	conn->resend_tail++;
	mrc_conn_touch(conn, ch);
	return 0;
}

/* What came besides a verdict. -EPROTO: no note is like that. */
static int note_take(const struct mrc_wire_hdr *hdr, const uint8_t *body, struct mrc_note *note_out)
{
	uint8_t copy[MRC_MOMENTS_TOLD * 8 + MRC_TEXT_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .ok = true};

	*note_out = (struct mrc_note){0};
	if (hdr->body_len > sizeof(copy))
		return -EPROTO;
	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	c.end = copy + hdr->body_len;
	for (int i = MRC_MOMENT_PLACED; hdr->flags & MRC_WIRE_F_TRACED && i < MRC_MOMENT_COUNT; i++)
		note_out->ns[i] = mrc_get_u64(&c);
	if (!c.ok || c.end - c.at > MRC_TEXT_BYTES_MAX)
		return -EPROTO;
	note_out->text_len = (uint8_t)(c.end - c.at);
	mrc_get_bytes(&c, note_out->text, note_out->text_len);
	return 0;
}

/* The verdict's note, on the message's own; its text, unless a count had said the verdict. */
static void note_keep(struct mrc_channel *ch, struct mrc_msg_out *msg, const struct mrc_note *heard,
		      bool was_final)
{
	struct mrc_note *note;

	if (!msg->note && heard->text_len)
		msg->note = mrc_notes_take(&ch->out_notes);
	note = mrc_notes_at(&ch->out_notes, msg->note);
	if (!note)
		return; /* the peer says more than it agreed to: the verdict stands without */
	for (int i = MRC_MOMENT_PLACED; i < MRC_MOMENT_COUNT; i++)
		note->ns[i] = heard->ns[i];
	if (was_final)
		return;
	note->text_len = heard->text_len;
	memcpy(note->text, heard->text, heard->text_len);
}

static int on_level(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	uint8_t level = (uint8_t)hdr->arg;
	bool is_final = hdr->arg >> 8 & 1;
	int outcome = (int)(int8_t)(uint8_t)(hdr->arg >> 16);
	struct mrc_msg_out *msg;
	struct mrc_note note;
	bool was_final;

	if (!ch || !ch->has_client)
		return 0;
	if (level > MRC_LVL_COMMITTED || outcome > 0 || outcome < MRC_OUT_IN_USE)
		return -EPROTO;
	if (is_final ? outcome == MRC_OUT_OK && level != MRC_LVL_COMMITTED : outcome != 0)
		return -EPROTO; /* done, but not done */
	if (note_take(hdr, body, &note) || (hdr->body_len && !is_final) ||
	    (note.text_len && outcome != MRC_OUT_REJECTED))
		return -EPROTO;
	msg = mrc_channel_out(ch, hdr->msg);
	was_final = msg && msg->is_final;
	if (!mrc_channel_out_level(ch, hdr->msg, (enum mrc_lvl)level, outcome,
				   (uint32_t)(hdr->arg >> 32), is_final))
		return -EPROTO;
	if (msg && is_final && (!was_final || msg->is_traced) && !msg->is_trace_heard) {
		note_keep(ch, msg, &note, was_final);
		msg->is_trace_heard = true;
	}
	mrc_conn_touch(conn, ch);
	return 0;
}

static int on_state(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	int r;

	if (!ch)
		return 0;
	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	r = mrc_state_take(conn, ch, &c);
	if (r == 0 && ch->has_client)
		mrc_channel_admit(ch, conn->limits.eager_bytes_max);
	mrc_conn_touch(conn, ch);
	return r;
}

static int on_drained(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	struct mrc_channel *ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	struct mrc_drain drain;
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	int r;

	if (!ch)
		return 0;
	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	r = mrc_drain_take(conn, &c, &drain);
	if (r)
		return r;
	ch->drain = drain;
	ch->peer_drained = true;
	mrc_conn_touch(conn, ch);
	return 0;
}

/* ---- words about paths ---- */

static int breach(struct mrc_conn *conn, const char *what)
{
	conn->breach = what;
	return -EPROTO;
}

/* What an answer proves may convict a path that is late. */
static void judge_all(struct mrc_conn *conn)
{
	for (uint8_t i = 0; i < conn->path_count; i++)
		mrc_conn_path_judge(conn, &conn->paths[i]);
}

/* What the peer has taken in, when it said so: the body of ACK and PROBE_ACK. */
static int counts_take(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	uint64_t ctl_taken;
	uint8_t count;

	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	ctl_taken = mrc_get_u64(&c);
	count = mrc_get_u8(&c);
	if (!c.ok || count > MRC_PATHS_MAX)
		return breach(conn, "counts that end too soon");
	if (!mrc_ctl_acked(conn, ctl_taken))
		return breach(conn, "more control frames taken in than were made");
	for (uint8_t i = 0; i < count; i++) {
		uint16_t path_id = mrc_get_u16(&c);
		uint32_t epoch = mrc_get_u32(&c);
		uint64_t taken = mrc_get_u64(&c);
		struct mrc_path *path = mrc_conn_path_by_id(conn, path_id);

		if (!c.ok)
			return breach(conn, "counts that end too soon");
		if (!path || path->epoch != epoch || !path->is_connected)
			continue; /* of an epoch that is over */
		if (mrc_conn_path_acked(conn, path, taken))
			return breach(conn, "more frames of a path taken in than were sent");
	}
	return 0;
}

static int on_ack(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	int r = counts_take(conn, hdr, body);

	judge_all(conn);
	return r;
}

static int on_probe_ack(struct mrc_conn *conn, struct mrc_path *path,
			const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	/* First what it says of all paths: else its coming would speak against those that it names. */
	int r = hdr->body_len ? counts_take(conn, hdr, body) : 0;

	if (r)
		return r;
	mrc_conn_probe_answered(conn, path, hdr->msg, hdr->addr, hdr->offset);
	judge_all(conn);
	return 0;
}

static void on_fence(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	struct mrc_path *path =
		hdr->msg < MRC_PATHS_MAX ? mrc_conn_path_by_id(conn, (uint16_t)hdr->msg) : NULL;
	uint32_t epoch = (uint32_t)hdr->arg;

	if (!path || epoch > path->epoch)
		return;
	path->tell_fenced = true;
	path->fenced_tell_epoch = epoch;
	if (epoch < path->epoch) {
		path->fenced_tell_count = path->taken_prev;
		return;
	}
	path->fenced_tell_count = path->taken;
	if (path->is_connected && !path->do_fence)
		mrc_conn_path_leave(conn, path, MRC_REASON_PEER_FENCE, true);
	path->tell_fence = false; /* it knows */
}

static void on_fenced(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr)
{
	struct mrc_path *path =
		hdr->msg < MRC_PATHS_MAX ? mrc_conn_path_by_id(conn, (uint16_t)hdr->msg) : NULL;

	if (!path || path->epoch != (uint32_t)hdr->arg)
		return;
	path->tell_fence = false;
	if (path->is_on_trial && !path->is_connected && hdr->offset >= path->posted)
		mrc_path_acquit(path, &conn->limits, conn->now_ns);
}

static void on_probe(struct mrc_conn *conn, struct mrc_path *path, const struct mrc_wire_hdr *hdr)
{
	if (hdr->flags & MRC_WIRE_F_PROOF)
		return; /* it came whole: that was the question */
	path->do_proof = path->do_proof || hdr->flags & MRC_WIRE_F_PROVE;
	path->do_probe_ack = true;
	path->probe_ack_id = hdr->msg;
	path->probe_ack_arg = hdr->arg;
	path->probe_came_ns = mrc_conn_stamp(conn);
	mrc_conn_peer_ports(conn, path, (uint32_t)hdr->offset, hdr->addr);
}

static int on_path_open(struct mrc_path *path, const struct mrc_wire_hdr *hdr)
{
	uint32_t share = (uint32_t)(hdr->arg >> 32);

	if (share ? share < MRC_SHARE_MIN || !path->share_given : path->share_given != 0)
		return -EPROTO; /* queue pairs have shares at both ends */
	if (hdr->addr && (!share || hdr->addr < MRC_WIRE_CTL_BYTES_MAX))
		return -EPROTO;
	path->share = share;
	path->body_bytes_max = hdr->addr ? (uint32_t)MRC_MIN(hdr->addr, UINT32_MAX) : UINT32_MAX;
	return 0;
}

int mrc_conn_frame(struct mrc_conn *conn, const struct mrc_ev_arrived *ev)
{
	struct mrc_path *path = &conn->paths[ev->index];
	const struct mrc_wire_hdr *hdr = ev->hdr;
	bool is_epoch;
	int r = 0;

	conn->breach = "out of place, or a field out of range";
	/* Left over from a fenced epoch (DESIGN 7.3), or given up already: not taken in. */
	if (!path->is_connected || ev->path_epoch != path->epoch || path->do_fence) {
		if (ev->hold)
			hold_refuse(conn, ev->hold);
		return 0;
	}
	is_epoch = hdr->conn_epoch == conn->epoch && hdr->path_epoch == path->epoch;
	/* It can have heard of no more than we last said, so its share ends there (DESIGN 7.14). */
	if (!is_epoch ||
	    (path->share_given && path->taken - path->taken_said >= path->share_given)) {
		if (ev->hold)
			hold_refuse(conn, ev->hold);
		return breach(conn, is_epoch ? "beyond the share of receive entries"
					     : "another epoch than its path's");
	}
	/* No client can write there, so it is the path that damages (DESIGN 7.12). */
	if (!ev->is_body_good && hdr->type != MRC_WIRE_FRAG) {
		path->header_errors++;
		mrc_conn_path_leave(conn, path, MRC_REASON_CORRUPT, true);
		return 0;
	}
	path->taken++;
	/* Before it has used its share up. */
	if (path->share_given && path->taken - path->taken_told >= path->share_given / 2)
		conn->ack_now = true;
	path->frames_received++;
	path->heard_ns = conn->now_ns;
	if (hdr->type == MRC_WIRE_FRAG) {
		path->bytes_received += hdr->body_len;
		path->data_heard_ns = conn->now_ns;
	}
	if (hdr->type == MRC_WIRE_ACK) {
		if (hdr->arg & 1)
			conn->ack_due_ns = MRC_MIN(conn->ack_due_ns,
						   conn->now_ns + 2 * mrc_conn_ack_delay_ns(conn));
	} else {
		conn->ack_has_news = true;
		conn->ack_frames++;
		conn->ack_bytes += hdr->body_len;
		conn->ack_due_ns =
			MRC_MIN(conn->ack_due_ns, conn->now_ns + mrc_conn_ack_delay_ns(conn));
		if (conn->ack_bytes >= MRC_ACK_BYTES || conn->ack_frames >= MRC_ACK_FRAMES)
			conn->ack_now = true;
	}
	switch ((enum mrc_wire_type)hdr->type) {
	case MRC_WIRE_FRAG:
		r = on_frag(conn, ev);
		break;
	case MRC_WIRE_ACK:
		r = on_ack(conn, hdr, ev->body);
		break;
	case MRC_WIRE_STATE:
		r = on_state(conn, hdr, ev->body);
		break;
	case MRC_WIRE_RTS:
		r = on_rts(conn, hdr);
		break;
	case MRC_WIRE_CTS:
		r = on_cts(conn, hdr);
		break;
	case MRC_WIRE_WANT:
		r = on_want(conn, hdr);
		break;
	case MRC_WIRE_LEVEL:
		r = on_level(conn, hdr, ev->body);
		break;
	case MRC_WIRE_DRAINED:
		r = on_drained(conn, hdr, ev->body);
		break;
	case MRC_WIRE_OPEN:
	case MRC_WIRE_ACCEPT:
	case MRC_WIRE_REFUSE:
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
	case MRC_WIRE_VOID:
		r = mrc_ctl_take(conn, path, hdr, ev->body);
		break;
	case MRC_WIRE_PROBE:
		on_probe(conn, path, hdr);
		break;
	case MRC_WIRE_PROBE_ACK:
		r = on_probe_ack(conn, path, hdr, ev->body);
		break;
	case MRC_WIRE_PATH_FENCE:
		on_fence(conn, hdr);
		break;
	case MRC_WIRE_PATH_FENCED:
		on_fenced(conn, hdr);
		break;
	case MRC_WIRE_PATH_OPEN:
		r = on_path_open(path, hdr);
		break;
	case MRC_WIRE_KEYS:
		r = mrc_space_on_keys(conn, path, hdr);
		break;
	case MRC_WIRE_ABOUT:
		r = mrc_conn_about_take(conn, path, hdr, ev->body);
		break;
	case MRC_WIRE_NOP:
		break;
	case MRC_WIRE_HELLO:
	case MRC_WIRE_AUTH:
	case MRC_WIRE_READY:
	case MRC_WIRE_TYPE_END:
		r = -EPROTO;
		break;
	}
	if (r == -ENOBUFS) {
		/* We cannot keep what this frame needs: it is not taken in, and comes again elsewhere. */
		path->taken--;
		mrc_conn_path_leave(conn, path, MRC_REASON_ERROR, true);
		r = 0;
	}
	if (r) {
		conn->protocol_errors++;
		path->is_breach_counted = true;
	}
	if (!mrc_list_is_empty(&conn->drain_work))
		mrc_conn_drains(conn);
	return r;
}
