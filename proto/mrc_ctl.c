/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_ctl - the control log: frames that create or end things (DESIGN 7.2)
 *
 * Each carries a number of the conn and is taken once, in order; one that comes
 * out of order is dropped and sent again. The log keeps what each entry is
 * about and not its bytes: the frame is made from the channel when it is sent,
 * so it says what is true then.
 */
#include "mrc_conn_impl.h"

static uint64_t ctl_used(const struct mrc_conn *conn)
{
	return conn->ctl_next - conn->ctl_acked;
}

static void append(struct mrc_conn *conn, enum mrc_wire_type type, uint32_t channel, uint64_t msg)
{
	/* Sized for every channel's beginning and end; what a peer can cause stops at half. */
	MRC_ASSERT(ctl_used(conn) < conn->ctl_count);
	conn->ctl[conn->ctl_next & (conn->ctl_count - 1)] = (struct mrc_ctl_entry){
		.type = (uint8_t)type,
		.channel = channel,
		.msg = msg,
	};
	conn->ctl_next++;
}

void mrc_ctl_append(struct mrc_conn *conn, enum mrc_wire_type type, struct mrc_channel *ch,
		    uint64_t msg)
{
	append(conn, type, ch->id, msg);
	ch->ctl_unacked++;
}

bool mrc_ctl_has_room(const struct mrc_conn *conn)
{
	return ctl_used(conn) < conn->ctl_count / 2;
}

bool mrc_ctl_acked(struct mrc_conn *conn, uint64_t taken)
{
	/* After going back over a dead path's frames, ctl_sent may lag behind what had arrived. */
	if (taken > conn->ctl_next)
		return false;
	while (conn->ctl_acked < taken) {
		struct mrc_ctl_entry *entry = &conn->ctl[conn->ctl_acked & (conn->ctl_count - 1)];
		struct mrc_channel *ch = mrc_conn_channel(conn, entry->channel);

		conn->ctl_acked++;
		if (!ch)
			continue;
		MRC_ASSERT(ch->ctl_unacked > 0);
		ch->ctl_unacked--;
		if (entry->type == MRC_WIRE_CLOSE && ch->state == MRC_CH_CLOSING)
			mrc_conn_channel_end(conn, ch, MRC_OUT_OK, 0);
		mrc_conn_touch(conn, ch);
	}
	conn->ctl_sent = MRC_MAX(conn->ctl_sent, conn->ctl_acked);
	return true;
}

void mrc_state_put(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_cursor *c)
{
	(void)conn;
	mrc_put_u64(c, mrc_channel_in_heard(ch, ch->deliver_next));
	mrc_put_u64(c, mrc_channel_in_heard(ch, ch->visible_next));
	mrc_put_u64(c, ch->final_next);
	mrc_put_u64(c, ch->settled);
	mrc_put_u64(c, ch->ring_head + ch->ring_bytes);
	mrc_put_u64(c, ch->release_next + ch->in_window);
	ch->ring_limit_told = ch->ring_head + ch->ring_bytes;
	ch->msg_limit_told = ch->release_next + ch->in_window;
}

int mrc_state_take(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_cursor *c)
{
	uint64_t delivered = mrc_get_u64(c);
	uint64_t visible = mrc_get_u64(c);
	uint64_t final = mrc_get_u64(c);
	uint64_t settled = mrc_get_u64(c);
	uint64_t ring_limit = mrc_get_u64(c);
	uint64_t msg_limit = mrc_get_u64(c);

	if (!c->ok)
		return -EPROTO;
	if (!ch->has_client)
		return 0;
	/* Judged whole before any of it counts. */
	if (!mrc_channel_in_may_settle(ch, settled))
		return -EPROTO;
	/* Also what was said too early counts later: no more than a conn's state may have. */
	if (ring_limit > MRC_STATE_NUMBER_MAX || msg_limit > MRC_STATE_NUMBER_MAX)
		return -EPROTO;
	if (ch->is_established && (ring_limit > ch->ring_next + ch->peer_ring_bytes ||
				   msg_limit > ch->send_next + ch->peer_window))
		return -EPROTO;
	if (!mrc_channel_out_counts(ch, delivered, visible, final))
		return -EPROTO;
	mrc_channel_in_settled(ch, &conn->ranges, settled);
	ch->ring_limit = MRC_MAX(ch->ring_limit, ring_limit);
	ch->msg_limit = MRC_MAX(ch->msg_limit, msg_limit);
	return 0;
}

/* What each path had been given when the channel's last frame was: it may be taken for drained then. */
void mrc_drain_put(const struct mrc_conn *conn, struct mrc_cursor *c)
{
	uint8_t count = 0;

	for (uint8_t i = 0; i < conn->path_count; i++)
		count += conn->paths[i].is_known && conn->paths[i].epoch != 0;
	mrc_put_u8(c, count);
	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (!path->is_known || path->epoch == 0)
			continue;
		mrc_put_u16(c, path->path_id);
		mrc_put_u32(c, path->epoch);
		mrc_put_u64(c, path->posted);
	}
}

int mrc_drain_take(struct mrc_conn *conn, struct mrc_cursor *c, struct mrc_drain *drain_out)
{
	uint8_t count = mrc_get_u8(c);

	if (count > MRC_PATHS_MAX)
		return -EPROTO;
	drain_out->count = 0;
	for (uint8_t i = 0; i < count; i++) {
		const struct mrc_path *path = mrc_conn_path_by_id(conn, mrc_get_u16(c));
		uint32_t epoch = mrc_get_u32(c);
		uint64_t posted = mrc_get_u64(c);

		if (!path)
			continue; /* it never came up here, see mrc_drain_is_over() */
		drain_out->paths[drain_out->count].index = path->index;
		drain_out->paths[drain_out->count].epoch = epoch;
		drain_out->paths[drain_out->count++].posted = posted;
	}
	return c->ok ? 0 : -EPROTO;
}

bool mrc_drain_is_over(const struct mrc_conn *conn, const struct mrc_drain *drain)
{
	for (uint8_t i = 0; i < drain->count; i++) {
		const struct mrc_path *path = &conn->paths[drain->paths[i].index];

		/*
		 * An older epoch was fenced when this one came up; of an epoch that has
		 * not come up here nobody has a key to anything (mrc_space.c).
		 */
		if (path->epoch != drain->paths[i].epoch ||
		    path->fenced_epoch >= drain->paths[i].epoch)
			continue;
		if (path->taken < drain->paths[i].posted)
			return false;
	}
	return true;
}

static void half_put(const struct mrc_channel *ch, struct mrc_cursor *c)
{
	mrc_put_u64(c, ch->ring_bytes);
	mrc_put_u64(c, ch->msg_bytes_max);
	mrc_put_u32(c, ch->in_window);
	mrc_put_u32(c, ch->flow->space);
	mrc_put_u64(c, ch->ring_addr);
}

static int half_take(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_cursor *c)
{
	uint64_t ring_bytes = mrc_get_u64(c);
	uint64_t msg_bytes_max = mrc_get_u64(c);
	uint32_t window = mrc_get_u32(c);
	uint32_t space = mrc_get_u32(c);
	uint64_t ring_addr = mrc_get_u64(c);

	if (!c->ok || ring_bytes == 0 || ring_bytes > MRC_STATE_NUMBER_MAX / 2 || window == 0 ||
	    window > MRC_WINDOW_MAX || space == 0 || ring_addr > UINT64_MAX / 4)
		return -EPROTO;
	if (!ch->peer_space)
		ch->peer_space = mrc_space_join(conn, space);
	ch->peer_ring_addr = ring_addr;
	ch->peer_ring_bytes = ring_bytes;
	ch->peer_msg_bytes_max = msg_bytes_max;
	ch->peer_window = window;
	ch->ring_limit = MRC_MAX(ch->ring_limit, ring_bytes);
	ch->msg_limit = MRC_MAX(ch->msg_limit, window);
	return 0;
}

/* An eager message has taken a piece of the peer's ring, whether any of it is ever sent or not. */
static void void_place_put(struct mrc_channel *ch, uint64_t number, struct mrc_wire_hdr *hdr)
{
	const struct mrc_msg_out *msg = mrc_channel_out(ch, number);

	if (!msg || !msg->is_eager)
		return;
	hdr->addr = msg->landing;
	hdr->msg_len = msg->len;
}

void mrc_ctl_frame(struct mrc_conn *conn, struct mrc_act_post *post)
{
	struct mrc_ctl_entry *entry = &conn->ctl[conn->ctl_sent & (conn->ctl_count - 1)];
	struct mrc_channel *ch = mrc_conn_channel(conn, entry->channel);
	struct mrc_cursor c = {.at = post->body,
			       .end = post->body + sizeof(post->body),
			       .ok = true};

	MRC_ASSERT(conn->ctl_sent < conn->ctl_next);
	post->hdr.msg = conn->ctl_sent++;
	post->hdr.type = entry->type;
	if (!ch) { /* an OPEN there was no room for; else a channel stays until these are taken */
		MRC_ASSERT(entry->type == MRC_WIRE_REFUSE);
		post->hdr.channel = (uint32_t)entry->msg;
		post->hdr.arg = (uint32_t)MRC_OUT_NO_RESOURCES;
		return;
	}
	post->hdr.channel = ch->wire_id;
	switch ((enum mrc_wire_type)entry->type) {
	case MRC_WIRE_OPEN:
		half_put(ch, &c);
		mrc_put_bytes(&c, ch->service, sizeof(ch->service));
		if (ch->is_unordered)
			post->hdr.flags |= MRC_WIRE_F_UNORDERED;
		if (ch->is_unchecked)
			post->hdr.flags |= MRC_WIRE_F_UNCHECKED;
		break;
	case MRC_WIRE_ACCEPT:
		half_put(ch, &c);
		break;
	case MRC_WIRE_REFUSE:
		post->hdr.arg = (uint32_t)mrc_conn_host_outcome(&conn->paths[post->index],
								ch->end_outcome) |
				(uint64_t)ch->end_code << 32;
		break;
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
		post->hdr.arg = (uint32_t)ch->end_outcome | (uint64_t)ch->end_code << 32;
		post->hdr.offset = ch->send_next;
		mrc_state_put(conn, ch, &c);
		mrc_drain_put(conn, &c);
		break;
	default: /* VOID: nothing of the message is posted after this */
		post->hdr.offset = entry->msg;
		post->hdr.arg = ch->settled;
		void_place_put(ch, entry->msg, &post->hdr);
		mrc_drain_put(conn, &c);
		break;
	}
	MRC_ASSERT(c.ok);
	post->body_len = (uint16_t)(c.at - post->body);
}

/* The peer's word for why; only outcomes that can be its fault or choice pass. */
static int outcome_of(const struct mrc_path *path, const struct mrc_wire_hdr *hdr)
{
	int outcome = (int32_t)(uint32_t)hdr->arg;

	if (outcome == MRC_OUT_DRAINING && !mrc_conn_host_may_say(path, hdr->type))
		return MRC_OUT_INVALID;
	return outcome <= MRC_OUT_OK && outcome >= MRC_OUT_LAST ? outcome : MRC_OUT_INVALID;
}

static int take_open(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, struct mrc_cursor *c)
{
	struct mrc_channel *ch;
	int r;

	/* Numbers of channels the peer opens have its parity, and never come twice. */
	if ((hdr->channel & 1) == !conn->is_initiator ||
	    mrc_conn_channel_by_wire(conn, hdr->channel))
		return -EPROTO;
	if (ctl_used(conn) >= conn->ctl_count / 2)
		return -EAGAIN; /* too much unheard of ours already: it is sent again */
	r = mrc_conn_channel_new(conn, hdr->channel, false, &ch);
	if (r) {
		/* No room: the opener learns it by a REFUSE that has no channel behind it. */
		append(conn, MRC_WIRE_REFUSE, 0, hdr->channel);
		return 0;
	}
	if (half_take(conn, ch, c)) {
		mrc_conn_channel_free(conn, ch);
		return -EPROTO;
	}
	mrc_get_bytes(c, ch->service, sizeof(ch->service));
	ch->is_unordered = hdr->flags & MRC_WIRE_F_UNORDERED;
	ch->is_unchecked = hdr->flags & MRC_WIRE_F_UNCHECKED;
	if (!c->ok || ch->service[MRC_NAME_MAX] != 0 || ch->service[0] == 0) {
		mrc_conn_channel_free(conn, ch);
		return -EPROTO;
	}
	ch->do_incoming = true;
	mrc_conn_touch(conn, ch);
	return 0;
}

static int take_end(struct mrc_conn *conn, const struct mrc_path *path, struct mrc_channel *ch,
		    const struct mrc_wire_hdr *hdr, struct mrc_cursor *c)
{
	struct mrc_drain drain;
	int r = mrc_state_take(conn, ch, c);

	if (r == 0)
		r = mrc_drain_take(conn, c, &drain);
	if (r)
		return r;
	ch->drain = drain;
	ch->peer_drained = true;
	/* The last number is named: a CLOSE says that all up to it were delivered here. */
	if (hdr->type == MRC_WIRE_CLOSE && ch->has_client && hdr->offset != ch->deliver_next)
		return -EPROTO;
	mrc_conn_channel_end(conn, ch,
			     hdr->type == MRC_WIRE_CLOSE ? MRC_OUT_OK : outcome_of(path, hdr),
			     (uint32_t)(hdr->arg >> 32));
	if (!ch->end_appended) {
		ch->end_wanted = false;
		ch->end_appended = true; /* its end needs no second word */
		ch->drained_owed = true;
		ch->facts |= MRC_FACT_DRAINED;
	}
	return 0;
}

static int take_void(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_wire_hdr *hdr,
		     struct mrc_cursor *c)
{
	uint64_t number = hdr->offset;
	struct mrc_msg_in *msg;
	struct mrc_drain drain;

	if (mrc_drain_take(conn, c, &drain))
		return -EPROTO;
	if (!ch->has_client || ch->state == MRC_CH_ENDED)
		return 0;
	if (!mrc_channel_in_settled(ch, &conn->ranges, hdr->arg))
		return -EPROTO;
	msg = mrc_channel_in(ch, number);
	if (!msg)
		return number < ch->peer_settled ? 0 : -EPROTO;
	if (hdr->msg_len && mrc_channel_in_learn(ch, number, hdr->msg_len, true, hdr->addr))
		return -EPROTO;
	/* The receiver alone decides: what was delivered stays so, and how far it is is the answer (DESIGN 7.10). */
	if (msg->is_delivered && !msg->is_final && !msg->is_void)
		mrc_channel_in_tell(ch, number);
	if (msg->is_whole && !msg->is_delivered)
		msg->wants_placed = true; /* said as soon as it is */
	if (msg->is_delivered || msg->is_whole || msg->is_void)
		return 0;
	/* Its client is told at once; its memory is free when nothing can land there (DESIGN 7.10). */
	ch->void_drain = drain;
	mrc_channel_in_void(ch, number,
			    conn->is_direct_seen && (msg->is_granted || !msg->is_known) &&
				    !mrc_drain_is_over(conn, &drain));
	return 0;
}

int mrc_ctl_take(struct mrc_conn *conn, const struct mrc_path *path, const struct mrc_wire_hdr *hdr,
		 const uint8_t *body)
{
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	struct mrc_channel *ch;
	int r = 0;

	if (hdr->msg != conn->ctl_taken)
		return 0; /* seen before, or ahead of one that is still to come */
	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	if (hdr->type == MRC_WIRE_OPEN) {
		r = take_open(conn, hdr, &c);
		if (r == -EPROTO)
			return r;
		if (r)
			return 0; /* not taken: it is sent again until there is room */
		conn->ctl_taken++;
		return 0;
	}
	ch = mrc_conn_channel_by_wire(conn, hdr->channel);
	if (!ch) {
		conn->ctl_taken++;
		return 0; /* forgotten here: nothing more can follow from it */
	}
	switch ((enum mrc_wire_type)hdr->type) {
	case MRC_WIRE_ACCEPT:
		if (!ch->is_opener)
			return -EPROTO;
		r = half_take(conn, ch, &c);
		if (r)
			return r;
		ch->is_established = true;
		if (ch->state == MRC_CH_OPENING) {
			ch->state = MRC_CH_OPEN;
			ch->do_up = true;
			mrc_channel_admit(ch, conn->limits.eager_bytes_max);
		}
		break;
	case MRC_WIRE_REFUSE:
		if (!ch->is_opener || ch->is_established)
			return -EPROTO;
		ch->peer_drained = true;
		mrc_conn_channel_end(conn, ch,
				     outcome_of(path, hdr) ? outcome_of(path, hdr)
							   : MRC_OUT_REFUSED,
				     (uint32_t)(hdr->arg >> 32));
		ch->end_wanted = false;
		break;
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
		r = take_end(conn, path, ch, hdr, &c);
		break;
	default:
		r = take_void(conn, ch, hdr, &c);
		break;
	}
	if (r == 0)
		conn->ctl_taken++;
	mrc_conn_touch(conn, ch);
	return r;
}
