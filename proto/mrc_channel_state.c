/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_channel_state - one channel of a conn as bytes, and back
 *
 * Only facts travel. What follows from them is made anew: counts, lists, the
 * bits that say what is to be done next. Of a path's death the engine has made
 * facts of all that was in flight, so nothing is lost with it.
 */
#include "mrc_conn_impl.h"

/* clang-format off */
/* Flags by their place: new ones go to the end. */
#define CHANNEL_FLAGS(X) \
	X(is_opener) X(is_unordered) X(is_unchecked) X(has_client) X(is_established) X(is_aborted) \
	X(is_heard) X(is_detached) X(is_room_wanted) X(is_down_told) X(is_freed) X(end_wanted) \
	X(end_is_reset) X(end_appended) X(drained_owed) X(drained_acked) X(peer_drained)
#define OUT_FLAGS(X) \
	X(has_deadline) X(is_eager) X(is_admitted) X(is_granted) X(is_empty_sent) X(is_final) \
	X(is_answered) X(is_void_asked) X(is_late) X(is_traced) X(is_trace_heard)
#define IN_FLAGS(X) \
	X(is_traced) X(is_known) X(is_eager) X(is_asked) X(is_granted) X(is_landing_freed) \
	X(is_whole) X(is_delivered) X(is_released) X(is_final) X(is_final_told) X(is_void) \
	X(wants_placed) X(wants_visible) X(is_draining)

#define CHANNEL_NUMBERS(X) \
	X(cookie) X(peer_ring_addr) X(peer_ring_bytes) X(peer_msg_bytes_max) X(sent_bytes) \
	X(delivered_bytes) X(delivered_count) X(released_count) X(untraced)
#define OUT_NUMBERS(X) \
	X(settled) X(admit_next) X(send_next) X(delivered_known) X(visible_known) X(final_known) \
	X(ring_next) X(ring_limit) X(msg_limit)
#define IN_NUMBERS(X) \
	X(peer_settled) X(peer_settled_stated) X(deliver_next) X(visible_next) X(final_next) \
	X(release_next) X(ring_release_next) X(ring_head) X(ring_limit_told) X(msg_limit_told) \
	X(known_end) X(end_known)
/* clang-format on */

#define FLAG_GET(name) bits |= (uint32_t)of->name << at++;
#define FLAG_SET(name) of->name = bits >> at++ & 1;
/* A function that visits the flags of a struct. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type */
#define FLAGS_VISIT(function, type, FLAGS)                  \
	static void function(struct mrc_state *s, type *of) \
	{                                                   \
		uint32_t bits = 0;                          \
		uint32_t at = 0;                            \
                                                            \
		FLAGS(FLAG_GET)                             \
		mrc_state_bits(s, &bits, at);               \
		at = 0;                                     \
		FLAGS(FLAG_SET)                             \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

FLAGS_VISIT(channel_flags, struct mrc_channel, CHANNEL_FLAGS)
FLAGS_VISIT(out_flags, struct mrc_msg_out, OUT_FLAGS)
FLAGS_VISIT(in_flags, struct mrc_msg_in, IN_FLAGS)

#define VISIT_U64(name) mrc_state_u64(s, &ch->name);

/* ---- notes and ranges ---- */

/* Its index in `*note`, or 0; read, one is taken for it. */
static void note_visit(struct mrc_state *s, struct mrc_notes *notes, uint8_t *note)
{
	bool has_note = *note != 0;
	struct mrc_note *at;

	mrc_state_bool(s, &has_note);
	if (!has_note)
		return;
	if (s->is_reading)
		*note = mrc_notes_take(notes);
	at = mrc_notes_at(notes, *note);
	if (!at) {
		mrc_state_fail(s, "more notes than a channel has room for");
		return;
	}
	for (int i = 0; i < MRC_MOMENT_COUNT; i++)
		mrc_state_u64(s, &at->ns[i]);
	mrc_state_u8(s, &at->text_len);
	if (at->text_len > MRC_TEXT_BYTES_MAX) {
		mrc_state_fail(s, "a text that is too long");
		at->text_len = 0;
	}
	mrc_state_bytes(s, at->text, at->text_len);
}

static void ranges_write(struct mrc_conn *conn, struct mrc_state *s,
			 const struct mrc_range_set *set)
{
	struct mrc_range_node *nodes = conn->ranges.nodes;
	uint32_t count = 0;

	for (uint32_t at = set->head; at != MRC_RANGE_NONE; at = nodes[at].next)
		count++;
	mrc_state_u32(s, &count);
	for (uint32_t at = set->head; at != MRC_RANGE_NONE; at = nodes[at].next) {
		mrc_state_u64(s, &nodes[at].start);
		mrc_state_u64(s, &nodes[at].end);
	}
}

/* Sorted, apart from each other, within [0, len). */
static int ranges_read(struct mrc_conn *conn, struct mrc_state *s, struct mrc_range_set *set,
		       uint64_t len)
{
	uint64_t past = 0; /* 1 + the end of the last one */
	uint32_t count = 0;
	int r = 0;

	mrc_state_u32(s, &count);
	while (count-- && !s->why && r == 0) {
		uint64_t start = 0;
		uint64_t end = 0;

		mrc_state_u64(s, &start);
		mrc_state_u64(s, &end);
		if (start < past || start >= end || end > len) {
			mrc_state_fail(s, "ranges of bytes that cannot be");
			break;
		}
		r = mrc_conn_room_range(conn);
		if (r == 0)
			mrc_range_set_add_keeping(&conn->ranges, set, start, end, 0);
		past = end + 1;
	}
	return r;
}

static int ranges_visit(struct mrc_conn *conn, struct mrc_state *s, struct mrc_range_set *set,
			uint64_t len)
{
	if (s->is_reading)
		return ranges_read(conn, s, set, len);
	ranges_write(conn, s, set);
	return 0;
}

/* ---- messages ---- */

static void slot_bits(struct mrc_state *s, struct mrc_bits *bits, uint32_t slot)
{
	bool is_set = mrc_bits_has(bits, slot);

	mrc_state_bool(s, &is_set);
	if (is_set)
		mrc_bits_set(bits, slot);
}

static bool is_outcome(int outcome)
{
	return outcome <= MRC_OUT_OK && outcome >= MRC_OUT_LAST;
}

static bool out_is_fine(const struct mrc_channel *ch, const struct mrc_msg_out *msg,
			uint64_t number)
{
	if (msg->is_admitted != (number < ch->admit_next) || msg->len > MRC_STATE_NUMBER_MAX ||
	    msg->next_offset > msg->len || msg->want_blame > MRC_PATHS_MAX)
		return false;
	if (msg->level > MRC_LVL_COMMITTED || msg->level_wanted < MRC_LVL_PLACED ||
	    msg->level_wanted > MRC_LVL_COMMITTED || !is_outcome(msg->outcome) ||
	    !is_outcome(msg->outcome_void) || !is_outcome(msg->outcome_late))
		return false;
	if ((msg->is_granted && !msg->is_admitted) || (msg->is_eager && !msg->is_granted) ||
	    (msg->next_offset && !msg->is_granted) || (msg->is_late && !msg->is_answered) ||
	    (msg->is_traced && !msg->note))
		return false;
	return !msg->is_eager ||
	       (msg->landing <= ch->ring_next && msg->len <= ch->ring_next - msg->landing);
}

static void out_visit(struct mrc_state *s, struct mrc_channel *ch, uint64_t number)
{
	uint32_t slot = (uint32_t)(number & (ch->out_window - 1));
	struct mrc_msg_out *msg = &ch->out[slot];
	uint8_t note = msg->is_traced ? msg->note : 0; /* a text was given with the answer */

	mrc_state_u64(s, &msg->addr);
	mrc_state_u64(s, &msg->len);
	mrc_state_u64(s, &msg->cookie);
	mrc_state_u64(s, &msg->landing);
	mrc_state_u64(s, &msg->next_offset);
	mrc_state_u32(s, &msg->frag_count);
	mrc_state_u32(s, &msg->want_count);
	mrc_state_u32(s, &msg->code);
	mrc_state_i32(s, &msg->outcome);
	mrc_state_i32(s, &msg->outcome_void);
	mrc_state_i32(s, &msg->outcome_late);
	mrc_state_u8(s, &msg->level);
	mrc_state_u8(s, &msg->level_wanted);
	mrc_state_u8(s, &msg->want_blame);
	out_flags(s, msg);
	slot_bits(s, &ch->rts_bits, slot);
	slot_bits(s, &ch->void_bits, slot);
	note_visit(s, &ch->out_notes, &note);
	if (!s->is_reading)
		return;
	msg->note = note;
	msg->next_ready = MRC_SLOT_NONE;
	if (!out_is_fine(ch, msg, number) ||
	    (mrc_bits_has(&ch->void_bits, slot) && !(msg->is_admitted && msg->is_void_asked)) ||
	    (mrc_bits_has(&ch->rts_bits, slot) && !msg->is_admitted)) {
		mrc_state_fail(s, "a message to be sent contradicts itself");
		return;
	}
	ch->void_count += mrc_bits_has(&ch->void_bits, slot);
	if (mrc_msg_out_has_more(msg))
		mrc_channel_ready_push(ch, slot);
}

static bool in_is_fine(const struct mrc_channel *ch, const struct mrc_msg_in *msg)
{
	if (msg->len > ch->msg_bytes_max || msg->level > MRC_LVL_COMMITTED ||
	    msg->want_blame > MRC_PATHS_MAX || !is_outcome(msg->outcome) ||
	    !(msg->is_known || msg->is_void))
		return false;
	if ((msg->is_granted && !msg->is_known) || (msg->is_eager && !msg->is_granted) ||
	    (msg->is_asked && (!msg->is_known || msg->is_eager)) ||
	    (msg->is_landing_freed && (!msg->is_granted || msg->is_eager)))
		return false;
	if ((msg->is_whole && !msg->is_granted) ||
	    (msg->is_delivered && !msg->is_whole && !msg->is_void) ||
	    (msg->is_released && (!msg->is_delivered || msg->is_void)) ||
	    (msg->is_final_told && !msg->is_final) || (msg->is_void && !msg->is_final) ||
	    (msg->is_draining && !msg->is_void))
		return false;
	return !msg->is_eager || (msg->len <= ch->ring_bytes &&
				  msg->addr % ch->ring_bytes <= ch->ring_bytes - msg->len);
}

/* What follows from it: what is to be done, and the counts. */
static void in_derive(struct mrc_channel *ch, struct mrc_msg_in *msg, uint32_t slot)
{
	if (msg->is_whole)
		msg->here.bytes = msg->len;
	if (msg->wanted.head != MRC_RANGE_NONE)
		mrc_bits_set(&ch->want_bits, slot);
	/* A LANDING_WANT without an answer is given again. */
	if (msg->is_known && !msg->is_granted && !msg->is_void && ch->state != MRC_CH_ENDED) {
		msg->is_asked = false;
		mrc_bits_set(&ch->ask_bits, slot);
	}
	if (!msg->is_delivered && (msg->is_whole || (msg->is_void && ch->is_unordered)))
		mrc_bits_set(&ch->deliver_bits, slot);
	ch->void_count_in += msg->is_void;
	ch->void_draining += msg->is_draining;
	ch->held_count +=
		msg->is_delivered && !msg->is_void && !msg->is_released && !ch->is_aborted;
}

static int in_visit(struct mrc_conn *conn, struct mrc_state *s, struct mrc_channel *ch,
		    uint64_t number)
{
	int r = 0;
	uint32_t slot = (uint32_t)(number & (ch->in_window - 1));
	struct mrc_msg_in *msg = &ch->in[slot];

	mrc_state_u64(s, &msg->len);
	mrc_state_u64(s, &msg->addr);
	mrc_state_u32(s, &msg->code);
	mrc_state_i32(s, &msg->outcome);
	mrc_state_u8(s, &msg->level);
	mrc_state_u8(s, &msg->want_blame);
	in_flags(s, msg);
	slot_bits(s, &ch->cts_bits, slot);
	slot_bits(s, &ch->level_bits, slot);
	note_visit(s, &ch->in_notes, &msg->note);
	if (s->is_reading && !in_is_fine(ch, msg)) {
		mrc_state_fail(s, "a message that comes in contradicts itself");
		return 0;
	}
	/* One range says as much as none of a whole message, and a void one needs no more. */
	if (!msg->is_whole && !msg->is_void) {
		r = ranges_visit(conn, s, &msg->here, msg->len);
		if (r == 0)
			r = ranges_visit(conn, s, &msg->wanted, msg->len);
	}
	if (s->is_reading)
		in_derive(ch, msg, slot);
	return r;
}

/* ---- channels ---- */

/* What makes a channel: read before there is one. */
struct origin {
	uint32_t id, wire_id, window, flow, weight, space, peer_space;
	uint64_t ring_addr, ring_bytes, msg_bytes_max;
	bool is_named; /* not in the image: another channel has its number on the wire */
};

static void origin_visit(struct mrc_state *s, struct origin *origin)
{
	mrc_state_u32(s, &origin->id);
	mrc_state_u32(s, &origin->wire_id);
	mrc_state_u32(s, &origin->window); /* 0: it has no client, and the rest is 0 */
	mrc_state_u32(s, &origin->flow);
	mrc_state_u32(s, &origin->weight);
	mrc_state_u32(s, &origin->space);
	mrc_state_u32(s, &origin->peer_space);
	mrc_state_u64(s, &origin->ring_addr);
	mrc_state_u64(s, &origin->ring_bytes);
	mrc_state_u64(s, &origin->msg_bytes_max);
}

static void body_visit(struct mrc_state *s, struct mrc_channel *ch)
{
	uint8_t state = (uint8_t)ch->state;

	mrc_state_u8(s, &state);
	if (state > MRC_CH_ENDED)
		mrc_state_fail(s, "a channel in no state");
	else
		ch->state = (enum mrc_channel_state)state;
	channel_flags(s, ch);
	mrc_state_bytes(s, ch->service, sizeof(ch->service));
	mrc_state_i32(s, &ch->end_outcome);
	mrc_state_u32(s, &ch->end_code);
	mrc_state_u32(s, &ch->peer_window);
	mrc_state_bits(s, &ch->facts, MRC_FACT_BITS);
	CHANNEL_NUMBERS(VISIT_U64)
	OUT_NUMBERS(VISIT_U64)
	IN_NUMBERS(VISIT_U64)
}

static bool is_in_use(const struct mrc_msg_in *msg)
{
	return msg->is_known || msg->is_void;
}

void mrc_channel_state_write(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_state *s)
{
	struct origin origin = {
		.id = ch->id,
		.wire_id = ch->wire_id,
		.window = ch->in_window,
		.flow = ch->flow ? ch->flow->id : 0,
		.weight = ch->flow ? ch->flow->weight : 0,
		.space = ch->flow ? ch->flow->space : 0,
		.peer_space = ch->peer_space ? ch->peer_space->id : 0,
		.ring_addr = ch->ring_addr,
		.ring_bytes = ch->ring_bytes,
		.msg_bytes_max = ch->msg_bytes_max,
	};
	uint32_t count = 0;

	origin_visit(s, &origin);
	body_visit(s, ch);
	for (uint64_t n = ch->settled; n < ch->send_next; n++)
		out_visit(s, ch, n);
	for (uint32_t slot = 0; slot < ch->in_window; slot++)
		count += is_in_use(&ch->in[slot]);
	mrc_state_u32(s, &count);
	for (uint32_t slot = 0; slot < ch->in_window; slot++) {
		uint64_t n = mrc_channel_in_number(ch, slot);

		if (!is_in_use(&ch->in[slot]))
			continue;
		mrc_state_u64(s, &n);
		in_visit(conn, s, ch, n);
	}
}

/* A client's channels share its flow, and two flows have not the same space. */
static bool space_is_fine(const struct mrc_conn *conn, const struct mrc_channel *ch, uint32_t space)
{
	if (space == 0 || space > conn->space_next)
		return false;
	for (const struct mrc_flow *flow = conn->flows; flow; flow = flow->next) {
		if (flow != ch->flow && flow->space == space)
			return false;
	}
	return ch->flow->channel_count == 1 || ch->flow->space == space;
}

/* The channel's memory and its places in the conn; filled by body_visit(). -EPROTO with state->why, -ENOMEM. */
static int make(struct mrc_conn *conn, struct mrc_state *s, struct origin *origin,
		struct mrc_channel **ch_out)
{
	uint32_t slot = origin->id & ((1U << MRC_HANDLE_SLOT_BITS) - 1);
	uint32_t space_next = conn->space_next;
	const struct mrc_ev_channel ev = {
		.flow = origin->flow,
		.weight = origin->weight,
		.window = origin->window,
		.ring_addr = origin->ring_addr,
		.ring_bytes = origin->ring_bytes,
		.msg_bytes_max = origin->msg_bytes_max,
	};
	int r;

	if (slot >= conn->slot_count || conn->slots[slot] ||
	    origin->id >> MRC_HANDLE_SLOT_BITS == 0 ||
	    origin->id != (conn->slot_generations[slot] << MRC_HANDLE_SLOT_BITS | slot)) {
		mrc_state_fail(s, "a channel of an id that cannot be");
		return -EPROTO;
	}
	origin->is_named = mrc_conn_channel_by_wire(conn, origin->wire_id) != NULL;
	conn->slot_hint = slot;
	conn->slot_generations[slot]--; /* it counts on by one, to what it was */
	r = mrc_conn_channel_new(conn, origin->wire_id, false, ch_out);
	if (r)
		return r;
	if (origin->window == 0)
		return 0;
	r = mrc_conn_channel_equip(conn, *ch_out, &ev);
	conn->space_next = space_next;
	if (r == -EINVAL || origin->ring_bytes > MRC_STATE_NUMBER_MAX) {
		mrc_state_fail(s, "a channel's window or ring that cannot be");
		return -EPROTO;
	}
	if (r)
		return r;
	if (!space_is_fine(conn, *ch_out, origin->space)) {
		mrc_state_fail(s, "landing memory of a number that cannot be");
		return -EPROTO;
	}
	(*ch_out)->flow->space = origin->space;
	return 0;
}

/* State and flags as they come about. */
static bool state_is_fine(const struct mrc_conn *conn, const struct mrc_channel *ch,
			  const struct origin *origin)
{
	bool has_client = origin->window != 0;
	bool is_ours = (ch->wire_id & 1) == !conn->is_initiator;

	if (ch->has_client != has_client || ch->is_opener != is_ours ||
	    (ch->is_opener && (!has_client || ch->wire_id >> 1 >= conn->wire_next)))
		return false;
	if ((ch->is_aborted && !has_client) || (ch->is_freed && !has_client) ||
	    (ch->is_detached && ch->state != MRC_CH_ENDED) ||
	    (origin->is_named && !ch->is_detached))
		return false;
	if (ch->service[0] == 0 || ch->service[MRC_NAME_MAX] != 0)
		return false;
	if (!has_client && ch->facts & ~(MRC_FACT_STATE | MRC_FACT_STATE_LAZY | MRC_FACT_DRAINED))
		return false; /* it has no messages to say anything of */
	if (ch->is_established && (ch->peer_ring_bytes == 0 || ch->peer_window == 0 || !has_client))
		return false;
	if (ch->peer_ring_bytes > MRC_STATE_NUMBER_MAX || ch->peer_window > MRC_WINDOW_MAX)
		return false;
	switch (ch->state) {
	case MRC_CH_OPENING:
		return ch->is_opener && !ch->is_established;
	case MRC_CH_INCOMING:
		return !has_client;
	case MRC_CH_ENDED:
		return ch->is_down_told;
	default:
		return ch->is_established;
	}
}

static bool numbers_are_fine(const struct mrc_channel *ch)
{
	uint64_t in_end = ch->peer_settled + ch->in_window;

#define IS_TOO_LARGE(name) ch->name > MRC_STATE_NUMBER_MAX ||
	if (OUT_NUMBERS(IS_TOO_LARGE) ch->peer_settled > MRC_STATE_NUMBER_MAX ||
	    ch->ring_head > MRC_STATE_NUMBER_MAX)
		return false;
#undef IS_TOO_LARGE
	if (ch->settled > ch->admit_next || ch->admit_next > ch->send_next ||
	    ch->send_next - ch->settled > ch->out_window || ch->ring_next > ch->ring_limit ||
	    (ch->admit_next > ch->settled && !ch->is_established))
		return false;
	if (ch->delivered_known > ch->admit_next || ch->visible_known > ch->admit_next ||
	    ch->final_known > ch->admit_next)
		return false;
	if (ch->peer_settled_stated < ch->peer_settled || ch->peer_settled_stated > in_end ||
	    ch->deliver_next < ch->peer_settled || ch->deliver_next > in_end ||
	    ch->release_next < ch->peer_settled || ch->release_next > in_end ||
	    ch->ring_release_next < ch->peer_settled || ch->ring_release_next > in_end)
		return false;
	if (ch->visible_next > in_end || ch->final_next > in_end || ch->known_end > in_end ||
	    (ch->end_known != MRC_NEVER && ch->end_known > ch->known_end))
		return false;
	return ch->ring_limit_told <= ch->ring_head + ch->ring_bytes &&
	       ch->msg_limit_told <= ch->release_next + ch->in_window;
}

static int messages_read(struct mrc_conn *conn, struct mrc_state *s, struct mrc_channel *ch)
{
	uint32_t count = 0;
	int r = 0;

	for (uint64_t n = ch->settled; n < ch->send_next && !s->why; n++)
		out_visit(s, ch, n);
	mrc_state_u32(s, &count);
	while (count-- && !s->why && r == 0) {
		struct mrc_msg_in *msg;
		uint64_t n = 0;

		mrc_state_u64(s, &n);
		msg = mrc_channel_in(ch, n);
		if (!msg || is_in_use(msg) || n >= ch->known_end)
			mrc_state_fail(s, "a message that comes in, of a number that cannot be");
		else
			r = in_visit(conn, s, ch, n);
	}
	return r;
}

int mrc_channel_state_read(struct mrc_conn *conn, struct mrc_state *s)
{
	struct origin origin = {0};
	struct mrc_channel *ch = NULL;
	int r;

	origin_visit(s, &origin);
	if (s->why)
		return 0;
	r = make(conn, s, &origin, &ch);
	if (r)
		return r == -EPROTO ? 0 : r; /* state->why says it */
	body_visit(s, ch);
	if (!s->why && !state_is_fine(conn, ch, &origin))
		mrc_state_fail(s, "a channel's state contradicts itself");
	if (!s->why && !numbers_are_fine(ch))
		mrc_state_fail(s, "a channel's numbers contradict each other");
	if (s->why)
		return 0;
	ch->ask_next = ch->peer_settled;
	if (ch->is_detached)
		mrc_conn_channel_unname(conn, ch);
	else if (origin.peer_space)
		ch->peer_space = mrc_space_join(conn, origin.peer_space);
	return messages_read(conn, s, ch);
}
