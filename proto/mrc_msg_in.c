/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_msg_in - the receiving direction of a channel: places, ranges, levels, credit */
#include "mrc_channel.h"

#include <string.h>

static uint32_t slot_of(const struct mrc_channel *ch, uint64_t number)
{
	return (uint32_t)(number & (ch->in_window - 1));
}

/* The ring's free part grows over released messages, in the order of their numbers. */
static void ring_advance(struct mrc_channel *ch)
{
	uint64_t end = ch->peer_settled + ch->in_window;

	while (ch->release_next < end) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, ch->release_next)];

		if ((!msg->is_void && !msg->is_released) || msg->is_draining)
			break; /* its slot cannot be another message's yet */
		ch->release_next++;
	}
	while (ch->ring_release_next < end) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, ch->ring_release_next)];

		if (msg->is_known && !msg->is_eager) {
			ch->ring_release_next++;
			continue;
		}
		if ((!msg->is_released && !msg->is_void) || msg->is_draining)
			break;
		if (msg->is_known && msg->len)
			ch->ring_head = msg->addr + msg->len;
		ch->ring_release_next++;
	}
	/* A release tells its credit with the verdict; what passes void messages is told here. */
	if (ch->release_next + ch->in_window != ch->msg_limit_told ||
	    ch->ring_head + ch->ring_bytes != ch->ring_limit_told)
		ch->facts |= MRC_FACT_STATE_LAZY;
}

/* Move the counts over all that has reached their level; what a count says needs no LEVEL. */
static void counts_advance(struct mrc_channel *ch)
{
	uint64_t end = ch->peer_settled + ch->in_window;

	/* What the sender has settled it knows, heard or not: those slots are other messages' now. */
	ch->visible_next = MRC_MAX(ch->visible_next, ch->peer_settled);
	ch->final_next = MRC_MAX(ch->final_next, ch->peer_settled);
	while (ch->visible_next < end) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, ch->visible_next)];

		if (msg->level < MRC_LVL_VISIBLE && !msg->is_final)
			break;
		ch->visible_next++;
		ch->facts |= mrc_channel_news(ch, msg->wants_visible);
	}
	while (ch->final_next < end) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, ch->final_next)];

		/* The count means COMMITTED. A rejection must have been heard before it passes. */
		if (!msg->is_final || (msg->outcome != MRC_OUT_OK && !msg->is_final_told))
			break;
		ch->final_next++;
		ch->facts |= mrc_channel_news(ch, msg->wants_placed == msg->wants_visible);
	}
}

/*
 * Free the slots of what the sender has settled. One whose memory the client
 * still holds cannot be given to another message: `peer_settled` waits at it,
 * and the message credit (release_next + window) keeps the sender from needing it.
 */
static void settled_follow(struct mrc_channel *ch, struct mrc_range_pool *pool)
{
	bool was_unheard = false;

	ring_advance(ch);
	while (ch->peer_settled < ch->peer_settled_stated) {
		uint32_t slot = slot_of(ch, ch->peer_settled);
		struct mrc_msg_in *msg = &ch->in[slot];

		if (msg->is_delivered && !msg->is_void && !msg->is_released)
			break;
		if (msg->is_void && !msg->is_delivered)
			break; /* its GAP is still to be taken */
		if (mrc_bits_has(&ch->free_bits, slot) || msg->is_draining)
			break; /* its LANDING_FREE is still to be taken */
		was_unheard = was_unheard || (msg->outcome != MRC_OUT_OK && !msg->is_final_told);
		ch->void_count_in -= msg->is_void;
		mrc_range_set_clear(pool, &msg->here);
		mrc_range_set_clear(pool, &msg->wanted);
		mrc_notes_give(&ch->in_notes, msg->note);
		*msg = (struct mrc_msg_in){.here.head = MRC_RANGE_NONE,
					   .wanted.head = MRC_RANGE_NONE};
		mrc_bits_clear(&ch->ask_bits, slot);
		mrc_bits_clear(&ch->cts_bits, slot);
		mrc_bits_clear(&ch->want_bits, slot);
		mrc_bits_clear(&ch->level_bits, slot);
		ch->peer_settled++;
	}
	if (was_unheard) { /* settled is heard: the counts that waited for its LEVEL pass it now */
		counts_advance(ch);
		ch->facts |= MRC_FACT_STATE;
	}
}

bool mrc_channel_in_may_settle(const struct mrc_channel *ch, uint64_t settled)
{
	if (settled <= ch->peer_settled_stated)
		return true;
	if (settled - ch->peer_settled > ch->in_window)
		return false;
	/* It can only know what we made final. */
	for (uint64_t n = MRC_MAX(ch->peer_settled, ch->peer_settled_stated); n < settled; n++) {
		if (!ch->in[slot_of(ch, n)].is_final)
			return false;
	}
	return true;
}

bool mrc_channel_in_settled(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t settled)
{
	/* As nearly every fragment says: nothing new, and nothing old is still to be followed. */
	if (settled <= ch->peer_settled_stated && ch->peer_settled == ch->peer_settled_stated)
		return true;
	if (!mrc_channel_in_may_settle(ch, settled))
		return false;
	ch->peer_settled_stated = MRC_MAX(ch->peer_settled_stated, settled);
	settled_follow(ch, pool);
	return true;
}

/* May an eager message of `len` lie at `position`? Nothing a client may be reading is touched. */
static bool position_is_fine(struct mrc_channel *ch, uint64_t number, uint64_t position,
			     uint64_t len)
{
	uint64_t offset = position % ch->ring_bytes;

	if (len == 0)
		return true;
	if (position < ch->ring_head || len > ch->ring_bytes / 2)
		return false;
	if (position - ch->ring_head > ch->ring_bytes ||
	    position - ch->ring_head + len > ch->ring_bytes || len > ch->ring_bytes - offset)
		return false;
	/*
	 * Positions grow with the numbers: then no two messages share a byte, and
	 * none lies behind ring_head once that has moved on. The neighbours that are
	 * known say enough, for they were checked alike.
	 */
	for (uint64_t n = number; n-- > ch->peer_settled;) {
		const struct mrc_msg_in *other = &ch->in[slot_of(ch, n)];

		if (other->is_known && other->is_eager && other->len) {
			if (position < other->addr + other->len)
				return false;
			break;
		}
	}
	for (uint64_t n = number + 1; n < ch->known_end; n++) {
		const struct mrc_msg_in *other = &ch->in[slot_of(ch, n)];

		if (other->is_known && other->is_eager && other->len) {
			if (position + len > other->addr)
				return false;
			break;
		}
	}
	return true;
}

int mrc_channel_in_learn(struct mrc_channel *ch, uint64_t number, uint64_t len, bool is_eager,
			 uint64_t position)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg)
		return -EPROTO;
	if (msg->is_known) {
		if (msg->len != len || msg->is_eager != is_eager)
			return -EPROTO;
		if (is_eager && len && msg->addr != position)
			return -EPROTO;
		return 0;
	}
	if (len > ch->msg_bytes_max)
		return -EPROTO;
	if (is_eager && !position_is_fine(ch, number, position, len))
		return -EPROTO;
	if (!is_eager && len == 0)
		return -EPROTO;
	ch->is_heard = true;
	ch->known_end = MRC_MAX(ch->known_end, number + 1);
	msg->is_known = true;
	msg->is_eager = is_eager;
	msg->is_granted = is_eager;
	msg->len = len;
	msg->addr = is_eager ? position : 0;
	if (is_eager)
		return 0;
	if (!msg->is_void)
		mrc_bits_set(&ch->ask_bits, slot_of(ch, number));
	ring_advance(ch); /* it takes no place there: what was released behind it is free */
	return 0;
}

int64_t mrc_channel_in_here(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number,
			    uint64_t offset, uint64_t len)
{
	uint32_t slot = slot_of(ch, number);
	struct mrc_msg_in *msg = &ch->in[slot];
	bool is_all = len == msg->len && msg->here.bytes == 0;
	/* What comes in one piece is never remembered as a range. */
	int64_t added =
		is_all ? (int64_t)len : mrc_range_set_add(pool, &msg->here, offset, offset + len);

	if (added < 0)
		return added;
	if ((is_all || msg->here.bytes == msg->len) && !msg->is_whole) {
		msg->is_whole = true;
		/* One range says as much as none from here on: give the node back. */
		mrc_range_set_clear(pool, &msg->here);
		msg->here.bytes = msg->len;
		mrc_bits_set(&ch->deliver_bits, slot);
		mrc_bits_clear(&ch->want_bits, slot);
		mrc_range_set_clear(pool, &msg->wanted);
	}
	return added;
}

int mrc_channel_in_want(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number,
			uint64_t start, uint64_t end, uint32_t kept)
{
	uint32_t slot = slot_of(ch, number);
	struct mrc_msg_in *msg = &ch->in[slot];

	/* Just these bytes: what lies between two of them may have a writer still (DESIGN 7.3). */
	if (mrc_range_set_add_keeping(pool, &msg->wanted, start, end, kept) < 0)
		return -ENOBUFS;
	mrc_bits_set(&ch->want_bits, slot);
	ch->facts |= MRC_FACT_WANT;
	return 0;
}

void mrc_channel_in_tell(struct mrc_channel *ch, uint64_t number)
{
	mrc_bits_set(&ch->level_bits, slot_of(ch, number));
	ch->facts |= MRC_FACT_LEVEL;
}

void mrc_channel_in_reached(struct mrc_channel *ch, uint64_t number, enum mrc_lvl level)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg || msg->level >= level)
		return;
	msg->level = (uint8_t)level;
	counts_advance(ch);
	if ((level == MRC_LVL_PLACED && number >= ch->deliver_next && msg->wants_placed) ||
	    (level == MRC_LVL_VISIBLE && number >= ch->visible_next && msg->wants_visible))
		mrc_channel_in_tell(ch, number);
}

void mrc_channel_in_trace(struct mrc_channel *ch, struct mrc_msg_in *msg)
{
	if (msg->is_traced)
		return;
	msg->is_traced = true;
	if (!msg->note && mrc_notes_may_trace(&ch->in_notes))
		msg->note = mrc_notes_take(&ch->in_notes);
}

void mrc_channel_in_note(struct mrc_channel *ch, struct mrc_msg_in *msg,
			 const struct mrc_ev_msg *ev, uint8_t text_len, uint64_t now_ns)
{
	struct mrc_note *note;

	if (!msg->note && text_len)
		msg->note = mrc_notes_take(&ch->in_notes);
	note = mrc_notes_at(&ch->in_notes, msg->note);
	if (!note)
		return;
	if (msg->is_traced) {
		uint64_t *ns = note->ns;
		uint64_t visible_ns = ns[MRC_MOMENT_VISIBLE] ? ns[MRC_MOMENT_VISIBLE] : now_ns;

		if (ev->visible_ns >= ns[MRC_MOMENT_PLACED] && ev->visible_ns <= visible_ns)
			visible_ns = ev->visible_ns;
		ns[MRC_MOMENT_VISIBLE] = visible_ns;
		ns[MRC_MOMENT_VERDICT] = ev->verdict_ns >= visible_ns && ev->verdict_ns <= now_ns
						 ? ev->verdict_ns
						 : now_ns;
	}
	if (text_len) {
		note->text_len = (uint8_t)MRC_MIN(text_len, MRC_TEXT_BYTES_MAX);
		memcpy(note->text, ev->text, note->text_len);
	}
}

void mrc_channel_in_final(struct mrc_channel *ch, uint64_t number, int outcome, uint32_t code)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg || msg->is_final)
		return;
	msg->is_final = true;
	msg->outcome = outcome;
	msg->code = code;
	if (outcome == MRC_OUT_OK)
		msg->level = MRC_LVL_COMMITTED;
	counts_advance(ch);
	if (number >= ch->final_next || msg->is_traced)
		mrc_channel_in_tell(ch, number);
}

void mrc_channel_in_level_acked(struct mrc_channel *ch, uint64_t number)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg || !msg->is_final || mrc_bits_has(&ch->level_bits, slot_of(ch, number)))
		return; /* it has changed since: another LEVEL is to come */
	msg->is_final_told = true;
	/* Its slot may be held by the client for long; what was to be said has been heard. */
	mrc_notes_give(&ch->in_notes, msg->note);
	msg->note = 0;
	if (msg->is_void)
		ch->facts |= MRC_FACT_STATE; /* the counts may pass it now */
	counts_advance(ch);
}

void mrc_channel_in_stamp(struct mrc_channel *ch, struct mrc_msg_in *msg, enum mrc_moment moment,
			  uint64_t now_ns)
{
	struct mrc_note *note = mrc_notes_at(&ch->in_notes, msg->note);

	if (msg->is_traced && note)
		note->ns[moment] = now_ns;
}

bool mrc_channel_in_owes(const struct mrc_channel *ch)
{
	if (ch->level_unacked)
		return true;
	for (uint64_t n = MRC_MAX(ch->final_next, ch->peer_settled);
	     ch->facts & MRC_FACT_LEVEL && n < ch->end_known; n++) {
		if (mrc_bits_has(&ch->level_bits, slot_of(ch, n)))
			return true;
	}
	return false;
}

void mrc_channel_in_void(struct mrc_channel *ch, uint64_t number, bool is_draining)
{
	uint32_t slot = slot_of(ch, number);
	struct mrc_msg_in *msg = &ch->in[slot];

	ch->known_end = MRC_MAX(ch->known_end, number + 1);
	msg->is_void = true;
	ch->void_count_in++;
	ch->is_heard = true;
	if (is_draining) {
		msg->is_draining = true;
		ch->void_draining++;
	}
	mrc_bits_clear(&ch->ask_bits, slot);
	mrc_bits_clear(&ch->want_bits, slot);
	if (ch->is_unordered)
		mrc_bits_set(&ch->deliver_bits, slot);
	mrc_channel_in_final(ch, number, MRC_OUT_CLOSED, 0);
	ring_advance(ch);
}

void mrc_channel_in_drained(struct mrc_channel *ch, struct mrc_range_pool *pool)
{
	for (uint32_t slot = 0; slot < ch->in_window && ch->void_draining; slot++) {
		struct mrc_msg_in *msg = &ch->in[slot];

		if (!msg->is_draining)
			continue;
		msg->is_draining = false;
		ch->void_draining--;
		/* One whose GAP was not taken yet is freed with that. */
		if (msg->is_delivered && msg->is_granted && !msg->is_eager) {
			mrc_bits_set(&ch->free_bits, slot);
			ch->free_count++;
		}
	}
	settled_follow(ch, pool);
	ch->facts |= MRC_FACT_STATE; /* the ring's free part may have grown */
}

int mrc_channel_in_release(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg || !msg->is_delivered || msg->is_void)
		return number < ch->deliver_next ? -EALREADY : -EINVAL;
	if (msg->is_released)
		return -EALREADY;
	msg->is_released = true;
	ch->held_count--;
	ch->released_count++;
	if (!msg->is_eager) {
		mrc_bits_set(&ch->free_bits, slot_of(ch, number));
		ch->free_count++;
	}
	mrc_channel_in_reached(ch, number, MRC_LVL_VISIBLE);
	mrc_channel_in_final(ch, number, MRC_OUT_OK, 0);
	settled_follow(ch, pool);
	/* Credit is told with the final level, which the release brings; what nobody waits for may wait a little. */
	ch->facts |= MRC_FACT_STATE_LAZY;
	if (ch->ring_head + ch->ring_bytes - ch->ring_limit_told >= ch->ring_bytes / 4 ||
	    ch->release_next + ch->in_window - ch->msg_limit_told >= ch->in_window / 4)
		ch->facts |= MRC_FACT_STATE;
	return 0;
}

bool mrc_channel_in_ask(struct mrc_channel *ch, uint64_t *number_out)
{
	uint64_t end = ch->peer_settled + ch->in_window;

	if (ch->is_asking)
		return false;
	if (ch->is_unordered) {
		uint32_t slot =
			mrc_bits_first(&ch->ask_bits, slot_of(ch, ch->peer_settled), ch->in_window);

		if (slot == MRC_SLOT_NONE)
			return false;
		*number_out = mrc_channel_in_number(ch, slot);
		return true;
	}
	ch->ask_next = MRC_MAX(ch->ask_next, ch->peer_settled);
	while (ch->ask_next < end) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, ch->ask_next)];

		if (mrc_bits_has(&ch->ask_bits, slot_of(ch, ch->ask_next))) {
			*number_out = ch->ask_next;
			return true;
		}
		if (!msg->is_known && !msg->is_void)
			return false;
		ch->ask_next++;
	}
	return false;
}

bool mrc_channel_in_next(struct mrc_channel *ch, uint64_t *number_out)
{
	struct mrc_msg_in *msg;

	if (ch->deliver_next >= ch->peer_settled + ch->in_window && !ch->is_unordered)
		return false;
	if (ch->is_unordered) {
		uint32_t slot = mrc_bits_first(&ch->deliver_bits, slot_of(ch, ch->deliver_next),
					       ch->in_window);

		if (slot == MRC_SLOT_NONE)
			return false;
		*number_out = mrc_channel_in_number(ch, slot);
		return true;
	}
	msg = mrc_channel_in(ch, ch->deliver_next);
	if (!msg || !(msg->is_whole || msg->is_void))
		return false;
	*number_out = ch->deliver_next;
	return true;
}

uint64_t mrc_channel_in_heard(const struct mrc_channel *ch, uint64_t to)
{
	if (!ch->void_count_in)
		return to;
	for (uint64_t n = MRC_MAX(ch->final_next, ch->peer_settled); n < to; n++) {
		const struct mrc_msg_in *msg = &ch->in[slot_of(ch, n)];

		if (msg->is_void && !msg->is_final_told)
			return n;
	}
	return to;
}
