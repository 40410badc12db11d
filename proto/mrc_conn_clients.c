/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_clients - what is next for the clients: deliveries, answers, memory, ends */
#include "mrc_conn_impl.h"

static void message_action(const struct mrc_channel *ch, uint64_t number, enum mrc_action_kind kind,
			   struct mrc_action *act)
{
	act->kind = kind;
	memset(&act->msg, 0, offsetof(struct mrc_act_msg, text));
	act->msg.channel = ch->id;
	act->msg.channel_cookie = ch->cookie;
	act->msg.number = number;
}

static void channel_action(const struct mrc_channel *ch, enum mrc_action_kind kind,
			   struct mrc_action *act)
{
	act->kind = kind;
	act->channel = (struct mrc_act_channel){
		.id = ch->id,
		.cookie = ch->cookie,
		.is_unordered = ch->is_unordered,
		.is_unchecked = ch->is_unchecked,
		.outcome = ch->end_outcome,
		.code = ch->end_code,
		.msg_bytes_max = ch->peer_msg_bytes_max,
	};
	memcpy(act->channel.service, ch->service, sizeof(ch->service));
}

static void deliver(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t number,
		    struct mrc_action *act)
{
	uint32_t slot = (uint32_t)(number & (ch->in_window - 1));
	struct mrc_msg_in *msg = &ch->in[slot];

	message_action(ch, number, msg->is_void ? MRC_ACT_GAP : MRC_ACT_DELIVER, act);
	mrc_bits_clear(&ch->deliver_bits, slot);
	msg->is_delivered = true;
	if (!msg->is_void) {
		act->msg.addr = msg->is_eager ? msg->addr % ch->ring_bytes : msg->addr;
		act->msg.len = msg->len;
		act->msg.is_eager = msg->is_eager;
		act->msg.is_visible_wanted = msg->wants_visible;
		act->msg.is_traced = msg->is_traced;
		if (msg->is_traced)
			mrc_channel_in_stamp(ch, msg, MRC_MOMENT_PLACED, mrc_conn_stamp(conn));
		ch->held_count++;
		ch->delivered_count++;
		ch->delivered_bytes += msg->len;
		conn->messages_delivered++;
	} else if (msg->is_granted && !msg->is_eager && !msg->is_draining) {
		mrc_bits_set(&ch->free_bits, slot);
		ch->free_count++;
	}
	/* Publishing is the only moment of delivery; from here on it is placed (DESIGN 7.11). */
	while (ch->deliver_next < ch->peer_settled + ch->in_window &&
	       ch->in[ch->deliver_next & (ch->in_window - 1)].is_delivered)
		ch->deliver_next++;
	if (!msg->is_void) {
		if (ch->asked_ns)
			ch->answers = 0;
		ch->asked_ns = conn->now_ns;
	}
	ch->facts |= mrc_channel_news(ch, msg->wants_placed);
	if (!msg->is_void)
		mrc_channel_in_reached(ch, number, MRC_LVL_PLACED);
}

static int done_outcome(const struct mrc_msg_out *msg)
{
	if (msg->is_final && msg->outcome)
		return msg->outcome;
	if (msg->level >= msg->level_wanted)
		return MRC_OUT_OK;
	/* Its client waits no longer (DESIGN 7.10). */
	return msg->is_final ? msg->outcome : msg->outcome_late;
}

static void done(struct mrc_conn *conn, struct mrc_channel *ch, uint32_t slot,
		 struct mrc_action *act)
{
	struct mrc_msg_out *msg = &ch->out[slot];

	message_action(ch, mrc_channel_out_number(ch, slot),
		       msg->is_late ? MRC_ACT_LATE : MRC_ACT_DONE, act);
	act->msg.cookie = msg->cookie;
	act->msg.level = (enum mrc_lvl)msg->level;
	act->msg.code = msg->code;
	act->msg.outcome = done_outcome(msg);
	if (msg->note && act->msg.outcome == MRC_OUT_REJECTED) {
		const struct mrc_note *note = mrc_notes_at(&ch->out_notes, msg->note);

		act->msg.text_len = note->text_len;
		memcpy(act->msg.text, note->text, note->text_len);
	}
	mrc_bits_clear(&ch->done_bits, slot);
	ch->done_count--;
	msg->is_late =
		!msg->is_final && msg->level >= MRC_LVL_PLACED && msg->level < msg->level_wanted;
	act->msg.is_undecided = msg->is_late;
	if (act->msg.outcome && !msg->is_late)
		conn->messages_failed++;
	msg->is_answered = true;
	conn->active_ns = conn->now_ns;
}

/* The moments of the message that settles next. */
static void traced(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_action *act)
{
	struct mrc_msg_out *msg = &ch->out[ch->settled & (ch->out_window - 1)];
	const uint64_t *ns = mrc_notes_at(&ch->out_notes, msg->note)->ns;

	act->kind = MRC_ACT_TRACED;
	act->trace = (struct mrc_act_trace){
		.channel = ch->id,
		.channel_cookie = ch->cookie,
		.number = ch->settled,
		.len = msg->len,
		.frag_count = msg->frag_count,
		.outcome = msg->outcome,
		.level = (enum mrc_lvl)msg->level,
		.code = msg->code,
	};
	for (int i = 0; i < MRC_MOMENT_COUNT; i++) {
		uint64_t here_ns = ns[i];

		if (i >= MRC_MOMENT_PLACED && !conn->has_one_clock) {
			here_ns = mrc_clock_here(&conn->clock, ns[i]);
			if (here_ns)
				act->trace.error_ns =
					MRC_MAX(act->trace.error_ns,
						mrc_clock_error_ns(&conn->clock, here_ns));
		}
		act->trace.moments_ns[i] = here_ns;
	}
	msg->is_traced = false;
}

static bool channel_client_action(struct mrc_conn *conn, struct mrc_channel *ch,
				  struct mrc_action *act)
{
	uint64_t number;
	uint32_t slot;

	if (ch->do_incoming) {
		ch->do_incoming = false;
		channel_action(ch, MRC_ACT_CH_INCOMING, act);
		return true;
	}
	if (ch->do_up) {
		ch->do_up = false;
		channel_action(ch, MRC_ACT_CH_UP, act);
		return true;
	}
	if (ch->done_count) {
		slot = mrc_channel_done_slot(ch);
		if (slot != MRC_SLOT_NONE) {
			done(conn, ch, slot, act);
			return true;
		}
	}
	/* Settling follows answering; with a free slot a refused SEND may be tried again. */
	if (ch->out && mrc_channel_settle(ch)) {
		ch->facts |= MRC_FACT_STATE_LAZY;
		mrc_channel_admit(ch, conn->limits.eager_bytes_max);
		if (ch->is_room_wanted && (ch->state == MRC_CH_OPEN || ch->state == MRC_CH_OPENING))
			ch->do_room = true;
	}
	if (ch->out && mrc_channel_is_trace_due(ch)) {
		traced(conn, ch, act);
		return true;
	}
	if (ch->free_count) {
		slot = mrc_bits_first(&ch->free_bits, 0, ch->in_window);
		MRC_ASSERT(slot != MRC_SLOT_NONE);
		message_action(ch, mrc_channel_in_number(ch, slot), MRC_ACT_LANDING_FREE, act);
		act->msg.addr = ch->in[slot].addr;
		act->msg.len = ch->in[slot].len;
		ch->in[slot].is_landing_freed = true;
		mrc_bits_clear(&ch->free_bits, slot);
		ch->free_count--;
		return true;
	}
	if (ch->has_client && !ch->is_aborted && ch->state != MRC_CH_ENDED) {
		if (mrc_channel_in_next(ch, &number)) {
			deliver(conn, ch, number, act);
			return true;
		}
		if (mrc_channel_in_ask(ch, &number)) {
			slot = (uint32_t)(number & (ch->in_window - 1));
			mrc_bits_clear(&ch->ask_bits, slot);
			ch->in[slot].is_asked = true;
			ch->is_asking = true;
			ch->asking = number;
			message_action(ch, number, MRC_ACT_LANDING_WANT, act);
			act->msg.len = ch->in[slot].len;
			return true;
		}
	}
	if (ch->do_room) {
		ch->do_room = false;
		ch->is_room_wanted = false;
		channel_action(ch, MRC_ACT_CH_ROOM, act);
		return true;
	}
	if (ch->do_down && ch->done_count == 0) {
		ch->do_down = false;
		ch->is_down_told = true;
		channel_action(ch, MRC_ACT_CH_DOWN, act);
		return true;
	}
	if (ch->do_free) {
		ch->do_free = false;
		ch->is_freed = true;
		channel_action(ch, MRC_ACT_CH_FREE, act);
		return true;
	}
	return false;
}

bool mrc_conn_next_client(struct mrc_conn *conn, struct mrc_action *act)
{
	while (!mrc_list_is_empty(&conn->client_work)) {
		struct mrc_channel *ch =
			mrc_list_entry(conn->client_work.next, struct mrc_channel, in_clients);
		uint32_t facts = ch->facts;

		if (channel_client_action(conn, ch, act)) {
			mrc_list_push(&conn->client_work, &ch->in_clients);
			if (ch->facts != facts)
				mrc_conn_touch(conn, ch);
			return true;
		}
		mrc_list_remove(&ch->in_clients);
		if (mrc_conn_channel_is_over(ch)) {
			mrc_conn_channel_free(conn, ch);
			continue;
		}
		mrc_conn_touch(conn, ch); /* puts it back only when there is an action now */
	}
	return false;
}

bool mrc_conn_next_hold(struct mrc_conn *conn, struct mrc_action *act)
{
	for (uint32_t i = 0; i < conn->hold_count; i++) {
		struct mrc_hold *hold = &conn->holds[i];
		struct mrc_channel *ch;
		struct mrc_msg_in *msg;
		uint64_t start;
		uint64_t end;

		if (hold->state == MRC_HOLD_NONE || hold->state == MRC_HOLD_WAITING)
			continue;
		if (hold->state == MRC_HOLD_DONE) {
			hold->state = MRC_HOLD_NONE;
			conn->holds_ready--;
			conn->holds_used--;
			if (!hold->id) {
				conn->holds_lost--;
				continue;
			}
			act->kind = MRC_ACT_HOLD_FREE;
			act->msg = (struct mrc_act_msg){.hold = hold->id};
			return true;
		}
		hold->state = MRC_HOLD_DONE; /* stays counted as ready until it is freed */
		ch = mrc_conn_channel(conn, hold->channel);
		msg = ch && ch->state != MRC_CH_ENDED ? mrc_channel_in(ch, hold->msg) : NULL;
		if (!msg || msg->is_whole || msg->is_void || msg->is_delivered ||
		    !mrc_range_set_gap(&conn->ranges, &msg->here, hold->offset,
				       hold->offset + hold->len, &start, &end)) {
			conn->duplicates++;
			return mrc_conn_next_hold(conn, act);
		}
		if (!hold->id) {
			msg->want_blame = hold->blame ? hold->blame : msg->want_blame;
			if (mrc_channel_in_want(ch, &conn->ranges, hold->msg, start,
						hold->offset + hold->len,
						MRC_RANGES_KEPT_WANTED(conn)))
				hold->state = MRC_HOLD_READY; /* when there is room */
			mrc_conn_touch(conn, ch);
			if (hold->state == MRC_HOLD_READY)
				continue;
			return mrc_conn_next_hold(conn, act);
		}
		if (mrc_channel_in_here(ch, &conn->ranges, hold->msg, start, end - start) < 0) {
			/* No room to remember it by: it comes again, or waits for room. */
			if (mrc_channel_in_want(ch, &conn->ranges, hold->msg, start,
						hold->offset + hold->len,
						MRC_RANGES_KEPT_WANTED(conn)))
				hold->state = MRC_HOLD_READY;
			mrc_conn_touch(conn, ch);
			if (hold->state == MRC_HOLD_READY)
				continue;
			return mrc_conn_next_hold(conn, act);
		}
		/* Only what is missing is copied: bytes that are here were checked. */
		if (end < hold->offset + hold->len)
			hold->state = MRC_HOLD_READY;
		message_action(ch, hold->msg, MRC_ACT_COPY, act);
		act->msg.hold = hold->id;
		act->msg.hold_offset = start - hold->offset;
		act->msg.is_eager = msg->is_eager;
		act->msg.addr = (msg->is_eager ? msg->addr % ch->ring_bytes : msg->addr) + start;
		act->msg.len = end - start;
		mrc_conn_touch(conn, ch);
		return true;
	}
	return false;
}
