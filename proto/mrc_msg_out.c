/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_msg_out - the sending direction of a channel: admission, readiness, answers, settling */
#include "mrc_channel.h"

static void trace_begin(struct mrc_channel *ch, struct mrc_msg_out *msg,
			const struct mrc_ev_msg *send)
{
	struct mrc_note *note;

	if (mrc_notes_may_trace(&ch->out_notes))
		msg->note = mrc_notes_take(&ch->out_notes);
	note = mrc_notes_at(&ch->out_notes, msg->note);
	if (!note) {
		ch->untraced++;
		return;
	}
	msg->is_traced = true;
	/* A client's clock is ours; what cannot be is not a time. */
	note->ns[MRC_MOMENT_SUBMITTED] =
		send->submitted_ns <= send->fetched_ns ? send->submitted_ns : 0;
	note->ns[MRC_MOMENT_FETCHED] = send->fetched_ns;
}

int mrc_channel_send(struct mrc_channel *ch, const struct mrc_ev_msg *send, uint64_t *number_out)
{
	struct mrc_msg_out *msg;

	/* Before the peer has accepted its limit is not known; it is judged at admission then. */
	if (ch->is_established && send->len > ch->peer_msg_bytes_max)
		return -EMSGSIZE;
	if (ch->send_next - ch->settled >= ch->out_window)
		return -ENOSPC;
	msg = &ch->out[ch->send_next & (ch->out_window - 1)];
	*msg = (struct mrc_msg_out){
		.addr = send->addr,
		.len = send->len,
		.cookie = send->cookie,
		.level_wanted = (uint8_t)send->level,
		.has_deadline = send->deadline_ns != 0,
		.next_ready = MRC_SLOT_NONE,
	};
	if (send->is_traced)
		trace_begin(ch, msg, send);
	*number_out = ch->send_next++;
	return 0;
}

/* Ring space for an eager message; it never crosses the end of the ring (DESIGN 7.8). */
static bool ring_take(struct mrc_channel *ch, struct mrc_msg_out *msg)
{
	uint64_t position = ch->ring_next;
	uint64_t offset = position % ch->peer_ring_bytes;

	if (msg->len > ch->peer_ring_bytes - offset)
		position += ch->peer_ring_bytes - offset;
	if (position + msg->len > ch->ring_limit)
		return false;
	msg->landing = position;
	ch->ring_next = position + msg->len;
	return true;
}

static void void_push(struct mrc_channel *ch, uint32_t slot)
{
	mrc_bits_set(&ch->void_bits, slot);
	ch->void_count++;
}

void mrc_channel_admit(struct mrc_channel *ch, uint32_t eager_bytes_max)
{
	if (!ch->is_established || (ch->state != MRC_CH_OPEN && ch->state != MRC_CH_CLOSING))
		return;
	while (ch->admit_next < ch->send_next) {
		uint32_t slot = (uint32_t)(ch->admit_next & (ch->out_window - 1));
		struct mrc_msg_out *msg = &ch->out[slot];

		if (ch->admit_next - ch->settled >= ch->peer_window ||
		    ch->admit_next >= ch->msg_limit)
			return;
		if (msg->len > ch->peer_msg_bytes_max && !msg->is_void_asked) {
			msg->is_void_asked = true; /* sent before the limit was known */
			msg->outcome_void = MRC_OUT_TOO_BIG;
		}
		if (msg->is_void_asked) {
			void_push(ch, slot); /* its number must still be used up */
		} else if (msg->len <=
			   MRC_MIN((uint64_t)eager_bytes_max, ch->peer_ring_bytes / 2)) {
			if (!ring_take(ch, msg))
				return;
			msg->is_eager = true;
			msg->is_granted = true;
			mrc_channel_ready_push(ch, slot);
		} else {
			mrc_bits_set(&ch->rts_bits, slot);
			ch->facts |= MRC_FACT_RTS;
		}
		msg->is_admitted = true;
		ch->admit_next++;
	}
}

void mrc_channel_ready_push(struct mrc_channel *ch, uint32_t slot)
{
	struct mrc_msg_out *msg = &ch->out[slot];

	if (msg->is_ready)
		return;
	msg->is_ready = true;
	msg->next_ready = MRC_SLOT_NONE;
	if (ch->ready_tail == MRC_SLOT_NONE)
		ch->ready_head = slot;
	else
		ch->out[ch->ready_tail].next_ready = slot;
	ch->ready_tail = slot;
}

uint32_t mrc_channel_ready_pop(struct mrc_channel *ch)
{
	uint32_t slot = ch->ready_head;

	MRC_ASSERT(slot != MRC_SLOT_NONE);
	ch->out[slot].is_ready = false;
	ch->ready_head = ch->out[slot].next_ready;
	if (ch->ready_head == MRC_SLOT_NONE)
		ch->ready_tail = MRC_SLOT_NONE;
	return slot;
}

bool mrc_msg_out_has_more(const struct mrc_msg_out *msg)
{
	if (!msg->is_granted || msg->is_final || msg->is_void_asked || msg->level >= MRC_LVL_PLACED)
		return false;
	return msg->len == 0 ? !msg->is_empty_sent : msg->next_offset < msg->len;
}

/* Does its client wait for nothing more? */
static bool is_far_enough(const struct mrc_msg_out *msg)
{
	if (msg->is_final || msg->level >= msg->level_wanted)
		return true;
	/* Given up: delivered, or never to be sent at all; what lies between the receiver decides. */
	return !msg->is_answered && msg->outcome_late &&
	       (msg->level >= MRC_LVL_PLACED || !msg->is_admitted);
}

void mrc_channel_out_answer(struct mrc_channel *ch, uint64_t number)
{
	uint32_t slot = (uint32_t)(number & (ch->out_window - 1));
	const struct mrc_msg_out *msg = &ch->out[slot];

	if (mrc_bits_has(&ch->done_bits, slot) || (msg->is_answered && !msg->is_late) ||
	    !is_far_enough(msg))
		return;
	mrc_bits_set(&ch->done_bits, slot);
	ch->done_count++;
}

bool mrc_channel_out_is_due(const struct mrc_channel *ch, uint64_t number)
{
	return mrc_bits_has(&ch->done_bits, (uint32_t)(number & (ch->out_window - 1)));
}

void mrc_channel_out_give_up(struct mrc_channel *ch, uint64_t number, int outcome)
{
	struct mrc_msg_out *msg = mrc_channel_out(ch, number);

	msg->outcome_late = outcome;
	if (msg->level < MRC_LVL_PLACED)
		mrc_channel_out_void(ch, number, outcome);
	mrc_channel_out_answer(ch, number);
}

bool mrc_channel_out_level(struct mrc_channel *ch, uint64_t number, enum mrc_lvl level, int outcome,
			   uint32_t code, bool is_final)
{
	struct mrc_msg_out *msg = mrc_channel_out(ch, number);

	if (!msg)
		return number < ch->settled; /* settled before: a late word about it */
	if (!msg->is_admitted)
		return false;
	/* The first final verdict stands (DESIGN 7.10). */
	if (msg->is_final)
		return true;
	if (level >= MRC_LVL_PLACED &&
	    (msg->next_offset < msg->len || (msg->len == 0 && !msg->is_empty_sent)))
		return false; /* it cannot have what was never sent */
	msg->level = MRC_MAX(msg->level, (uint8_t)level);
	if (is_final) {
		msg->is_final = true;
		msg->outcome = outcome == MRC_OUT_CLOSED && msg->is_void_asked &&
					       msg->level < MRC_LVL_PLACED
				       ? msg->outcome_void
				       : outcome;
		msg->code = code;
	}
	mrc_channel_out_answer(ch, number);
	return true;
}

/* Raise one count to `to`, giving each message passed its level; those before `from` have more already. */
static bool count_to(struct mrc_channel *ch, uint64_t *known, uint64_t from, uint64_t to,
		     enum mrc_lvl level)
{
	if (to > ch->admit_next)
		return false;
	from = MRC_MAX(from, *known);
	for (uint64_t n = MRC_MAX(from, ch->settled); n < to; n++) {
		struct mrc_msg_out *msg = mrc_channel_out(ch, n);

		/* A void message counts as passed in every count; its own LEVEL said so before. */
		if (msg->is_final && msg->level < MRC_LVL_PLACED)
			continue;
		if (!mrc_channel_out_level(ch, n, level, MRC_OUT_OK, 0, level == MRC_LVL_COMMITTED))
			return false;
	}
	*known = MRC_MAX(*known, to);
	return true;
}

bool mrc_channel_out_counts(struct mrc_channel *ch, uint64_t delivered, uint64_t visible,
			    uint64_t final)
{
	return count_to(ch, &ch->final_known, 0, final, MRC_LVL_COMMITTED) &&
	       count_to(ch, &ch->visible_known, final, visible, MRC_LVL_VISIBLE) &&
	       count_to(ch, &ch->delivered_known, MRC_MAX(final, visible), delivered,
			MRC_LVL_PLACED);
}

uint32_t mrc_channel_done_slot(const struct mrc_channel *ch)
{
	uint32_t from = (uint32_t)(ch->settled & (ch->out_window - 1));

	for (uint32_t i = 0; i < ch->out_window; i++) {
		uint32_t slot = mrc_bits_first(&ch->done_bits, (from + i) & (ch->out_window - 1),
					       ch->out_window);

		if (slot == MRC_SLOT_NONE)
			return slot;
		if (ch->out[slot].frames_out == 0)
			return slot;
		i += (slot - (from + i)) & (ch->out_window - 1);
	}
	return MRC_SLOT_NONE;
}

bool mrc_channel_can_settle(const struct mrc_channel *ch)
{
	const struct mrc_msg_out *msg;

	/* After the end it stands still: the peer was told of no verdict on the rest. */
	if (ch->state == MRC_CH_ENDED || ch->settled >= ch->send_next)
		return false;
	msg = &ch->out[ch->settled & (ch->out_window - 1)];
	return msg->is_final && msg->is_answered && !msg->is_late && !msg->is_ready &&
	       !msg->frames_out && (!msg->is_traced || msg->is_trace_heard);
}

void mrc_channel_out_void(struct mrc_channel *ch, uint64_t number, int outcome)
{
	uint32_t slot = (uint32_t)(number & (ch->out_window - 1));
	struct mrc_msg_out *msg = &ch->out[slot];

	if (msg->is_void_asked || msg->is_final)
		return;
	msg->is_void_asked = true;
	msg->outcome_void = outcome;
	mrc_bits_clear(&ch->rts_bits, slot);
	if (msg->is_admitted) /* else its turn has not come: its number may be beyond the window */
		void_push(ch, slot);
}

bool mrc_channel_is_trace_due(const struct mrc_channel *ch)
{
	return ch->settled < ch->send_next &&
	       ch->out[ch->settled & (ch->out_window - 1)].is_traced && mrc_channel_can_settle(ch);
}

bool mrc_channel_settle(struct mrc_channel *ch)
{
	uint64_t settled_old = ch->settled;

	while (mrc_channel_can_settle(ch)) {
		uint32_t slot = (uint32_t)(ch->settled & (ch->out_window - 1));

		if (ch->out[slot].is_traced)
			break;
		ch->settled++;
		mrc_notes_give(&ch->out_notes, ch->out[slot].note);
		ch->out[slot].note = 0;
		/* The slot is another message's now: nothing of this one may still be said. */
		mrc_bits_clear(&ch->rts_bits, slot);
		if (mrc_bits_has(&ch->void_bits, slot)) {
			mrc_bits_clear(&ch->void_bits, slot);
			ch->void_count--;
		}
	}
	ch->admit_next = MRC_MAX(ch->admit_next, ch->settled);
	return ch->settled != settled_old;
}

void mrc_channel_out_fail_all(struct mrc_channel *ch, int outcome, uint32_t code)
{
	for (uint64_t n = ch->settled; n < ch->send_next; n++) {
		struct mrc_msg_out *msg = &ch->out[n & (ch->out_window - 1)];

		if (msg->is_final)
			continue;
		/* One that has reached what its client waits for has not failed. */
		msg->is_final = true;
		msg->outcome = msg->level >= msg->level_wanted ? MRC_OUT_OK : outcome;
		msg->code = code;
		mrc_channel_out_answer(ch, n);
	}
	/* Nothing of them is sent or asked for any more. */
	while (ch->ready_head != MRC_SLOT_NONE)
		mrc_channel_ready_pop(ch);
	ch->rts_bits = (struct mrc_bits){0};
	ch->void_bits = (struct mrc_bits){0};
	ch->void_count = 0;
}
