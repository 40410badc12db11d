/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_conn_impl.h"

static void *take_memory(struct mrc_conn *conn, size_t bytes)
{
	return conn->alloc.alloc(conn->alloc.context, bytes);
}

static void give_memory(struct mrc_conn *conn, void *memory)
{
	if (memory)
		conn->alloc.free(conn->alloc.context, memory);
}

static bool name_copy(char out[MRC_NAME_MAX + 1], const char *name)
{
	size_t len = 0;

	while (name[len] && len <= MRC_NAME_MAX)
		len++;
	if (len == 0 || len > MRC_NAME_MAX)
		return false;
	memset(out, 0, MRC_NAME_MAX + 1);
	memcpy(out, name, len);
	return true;
}

int mrc_conn_new(const struct mrc_conn_config *config, struct mrc_conn **conn_out)
{
	struct mrc_limits limits = config->limits;
	struct mrc_conn *conn;

	uint8_t paths_max = MRC_MAX(config->paths_max, config->path_count);

	mrc_limits_complete(&limits);
	if (config->path_count == 0 || paths_max > MRC_PATHS_MAX || config->boot_id == 0)
		return -EINVAL;
	/* Each frame under way may leave a gap: with fewer ranges, nothing might ever fit together. */
	limits.ranges_max = MRC_MAX(limits.ranges_max, paths_max * limits.frames_in_flight_max / 2);
	conn = config->alloc.alloc(config->alloc.context, sizeof(*conn));
	if (!conn)
		return -ENOMEM;
	conn->alloc = config->alloc;
	conn->limits = limits;
	if (!name_copy(conn->host, config->host) || !name_copy(conn->peer, config->peer)) {
		mrc_conn_free(conn);
		return -EINVAL;
	}
	conn->is_initiator = mrc_hello_is_initiator(conn->host, conn->peer);
	conn->boot_id = config->boot_id;
	conn->features = config->features;
	conn->rng.state = config->seed;
	conn->path_count = config->path_count;
	conn->paths_max = paths_max;
	conn->stamp = config->stamp;
	conn->stamp_context = config->stamp_context;
	conn->has_one_clock = config->has_one_clock;
	conn->clock.is_known = config->has_one_clock;
	conn->silent_since_ns = MRC_NEVER;
	conn->ack_due_ns = MRC_NEVER;
	conn->lazy_due_ns = MRC_NEVER;
	mrc_list_init(&conn->all);
	mrc_list_init(&conn->client_work);
	mrc_list_init(&conn->fact_work);
	mrc_list_init(&conn->lazy_work);
	mrc_list_init(&conn->drain_work);
	mrc_list_init(&conn->turns);
	mrc_list_init(&conn->unused_spaces);

	conn->records =
		take_memory(conn, sizeof(*conn->records) * limits.frames_in_flight_max * paths_max);
	conn->abouts = take_memory(conn, sizeof(*conn->abouts) * paths_max);
	conn->hold_count = limits.holds_max + MRC_HOLDS_LOST_MAX;
	conn->holds = take_memory(conn, sizeof(*conn->holds) * conn->hold_count);
	conn->range_nodes = take_memory(conn, sizeof(*conn->range_nodes) * limits.ranges_max);
	if (!conn->records || !conn->abouts || !conn->holds || !conn->range_nodes ||
	    mrc_conn_room_channels(conn, limits.channels_max) ||
	    mrc_conn_room_resends(conn, 2 * paths_max * limits.frames_in_flight_max)) {
		mrc_conn_free(conn);
		return -ENOMEM;
	}
	mrc_range_pool_init(&conn->ranges, conn->range_nodes, limits.ranges_max);
	conn->ranges.kept = MRC_RANGES_KEPT_HERE(conn);
	for (uint8_t i = 0; i < conn->path_count; i++) {
		mrc_conn_path_place(conn, i);
		conn->rail_of[i] = config->rail_of[i];
	}
	mrc_conn_ports_update(conn);
	*conn_out = conn;
	return 0;
}

void mrc_conn_free(struct mrc_conn *conn)
{
	if (!conn)
		return;
	if (conn->slots) {
		while (!mrc_list_is_empty(&conn->all))
			mrc_conn_channel_free(conn, mrc_list_entry(conn->all.next,
								   struct mrc_channel, in_all));
	}
	if (conn->space_buckets)
		mrc_space_forget_all(conn);
	MRC_ASSERT(!conn->flows); /* each went with its last channel */
	give_memory(conn, conn->range_nodes);
	give_memory(conn, conn->holds);
	give_memory(conn, conn->resends);
	give_memory(conn, conn->ctl);
	give_memory(conn, conn->space_buckets);
	give_memory(conn, conn->buckets);
	give_memory(conn, conn->slot_generations);
	give_memory(conn, conn->slots);
	give_memory(conn, conn->abouts);
	give_memory(conn, conn->records);
	give_memory(conn, conn);
}

/* ---- handshake ---- */

void mrc_conn_hello(const struct mrc_conn *conn, uint8_t path_index, struct mrc_hello *hello_out)
{
	const struct mrc_path *path = &conn->paths[path_index];

	MRC_ASSERT(path_index < conn->path_count);
	memset(hello_out, 0, sizeof(*hello_out));
	memcpy(hello_out->host, conn->host, sizeof(conn->host));
	memcpy(hello_out->to_host, conn->peer, sizeof(conn->peer));
	hello_out->boot_id = conn->boot_id;
	hello_out->peer_boot_id = conn->peer_boot_id;
	hello_out->conn_epoch = conn->epoch;
	hello_out->conn_epoch_last = conn->epoch_last;
	hello_out->path_epoch_last = path->epoch_last;
	hello_out->path_id = conn->is_initiator ? path_index : path->path_id;
	hello_out->version_min = MRC_HELLO_VERSION_MIN;
	hello_out->version_max = MRC_HELLO_VERSION_MAX;
	hello_out->features = conn->features;
}

int mrc_conn_join(const struct mrc_conn *conn, uint8_t path_index, const struct mrc_auth *auth,
		  uint64_t peer_boot_id)
{
	MRC_ASSERT(path_index < conn->path_count);
	if (auth->version == 0)
		return -EPROTONOSUPPORT;
	/*
	 * The HELLOs are a moment old. Another path may meanwhile have begun the
	 * same new conn epoch (join it), or a later one (these are stale).
	 */
	if (auth->path_epoch <= conn->paths[path_index].epoch)
		return -ESTALE;
	if (auth->conn_epoch == conn->epoch)
		return peer_boot_id == conn->peer_boot_id ? 0 : -ESTALE;
	/*
	 * A conn epoch that began after our HELLO is not ended by what the other end
	 * concluded from that: it would take messages with it that nothing has befallen.
	 */
	if (conn->epoch != (conn->is_initiator ? auth->held_by_initiator : auth->held_by_responder))
		return -ESTALE;
	return auth->conn_epoch > conn->epoch_last ? 0 : -ESTALE;
}

bool mrc_conn_is_initiator(const struct mrc_conn *conn)
{
	return conn->is_initiator;
}

/* ---- channels ---- */

struct mrc_channel *mrc_conn_channel(const struct mrc_conn *conn, uint32_t id)
{
	uint32_t slot = id & ((1U << MRC_HANDLE_SLOT_BITS) - 1);
	struct mrc_channel *ch;

	if (slot >= conn->slot_count)
		return NULL;
	ch = conn->slots[slot];
	return ch && ch->id == id ? ch : NULL;
}

static uint32_t bucket_of(const struct mrc_conn *conn, uint32_t wire_id)
{
	return (wire_id * 2654435761U >> 7) & (conn->bucket_count - 1);
}

struct mrc_channel *mrc_conn_channel_by_wire(const struct mrc_conn *conn, uint32_t wire_id)
{
	struct mrc_channel *ch = conn->buckets[bucket_of(conn, wire_id)];

	while (ch && ch->wire_id != wire_id)
		ch = ch->next_in_bucket;
	return ch;
}

static void bucket_add(struct mrc_conn *conn, struct mrc_channel *ch)
{
	struct mrc_channel **bucket = &conn->buckets[bucket_of(conn, ch->wire_id)];

	ch->next_in_bucket = *bucket;
	*bucket = ch;
}

void mrc_conn_channel_unname(struct mrc_conn *conn, struct mrc_channel *ch)
{
	struct mrc_channel **at = &conn->buckets[bucket_of(conn, ch->wire_id)];

	while (*at && *at != ch)
		at = &(*at)->next_in_bucket;
	if (*at)
		*at = ch->next_in_bucket;
	ch->next_in_bucket = NULL;
}

int mrc_conn_channel_new(struct mrc_conn *conn, uint32_t wire_id, bool is_opener,
			 struct mrc_channel **ch_out)
{
	struct mrc_channel *ch;
	uint32_t slot = conn->slot_hint;

	/* There may be slots for more: of channels that are there since more were allowed. */
	if (conn->channel_count >= conn->limits.channels_max)
		return -ENOSPC;
	while (conn->slots[slot])
		slot = (slot + 1) % conn->slot_count;
	ch = take_memory(conn, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	conn->slot_hint = (slot + 1) % conn->slot_count;
	/* An id is never 0, also when slot 0's generation comes round. */
	if ((++conn->slot_generations[slot] << MRC_HANDLE_SLOT_BITS) == 0)
		conn->slot_generations[slot]++;
	conn->slots[slot] = ch;
	conn->channel_count++;
	ch->id = conn->slot_generations[slot] << MRC_HANDLE_SLOT_BITS | slot;
	ch->wire_id = wire_id;
	ch->is_opener = is_opener;
	ch->state = is_opener ? MRC_CH_OPENING : MRC_CH_INCOMING;
	ch->ready_head = MRC_SLOT_NONE;
	ch->ready_tail = MRC_SLOT_NONE;
	mrc_list_init(&ch->in_all);
	mrc_list_init(&ch->in_clients);
	mrc_list_init(&ch->in_facts);
	mrc_list_init(&ch->in_lazy);
	mrc_list_init(&ch->in_drain);
	mrc_list_init(&ch->in_flow);
	mrc_list_push(&conn->all, &ch->in_all);
	bucket_add(conn, ch);
	*ch_out = ch;
	return 0;
}

static struct mrc_flow *flow_get(struct mrc_conn *conn, uint32_t id)
{
	struct mrc_flow *flow = conn->flows;

	while (flow && flow->id != id)
		flow = flow->next;
	if (!flow) {
		flow = take_memory(conn, sizeof(*flow));
		if (!flow)
			return NULL;
		flow->id = id;
		flow->space = ++conn->space_next;
		mrc_list_init(&flow->in_turns);
		mrc_list_init(&flow->channels);
		flow->next = conn->flows;
		conn->flows = flow;
	}
	flow->channel_count++;
	return flow;
}

static void flow_put(struct mrc_conn *conn, struct mrc_flow *flow)
{
	struct mrc_flow **at = &conn->flows;

	if (--flow->channel_count)
		return;
	while (*at != flow)
		at = &(*at)->next;
	*at = flow->next;
	mrc_list_remove(&flow->in_turns);
	give_memory(conn, flow);
}

int mrc_conn_channel_equip(struct mrc_conn *conn, struct mrc_channel *ch,
			   const struct mrc_ev_channel *ev)
{
	if (ev->window < 1 || ev->window > MRC_WINDOW_MAX || (ev->window & (ev->window - 1)) ||
	    ev->ring_bytes == 0)
		return -EINVAL;
	ch->out = take_memory(conn, sizeof(*ch->out) * ev->window);
	ch->in = take_memory(conn, sizeof(*ch->in) * ev->window);
	ch->notes = take_memory(conn, sizeof(*ch->notes) * 2 * MRC_NOTES);
	ch->flow = flow_get(conn, ev->flow);
	if (!ch->out || !ch->in || !ch->notes || !ch->flow)
		return -ENOMEM; /* what was taken is freed with the channel */
	ch->flow->weight = ev->weight ? ev->weight : MRC_WEIGHT_DEFAULT;
	mrc_notes_init(&ch->out_notes, ch->notes);
	mrc_notes_init(&ch->in_notes, ch->notes + MRC_NOTES);
	for (uint32_t i = 0; i < ev->window; i++) {
		mrc_range_set_init(&ch->in[i].here);
		mrc_range_set_init(&ch->in[i].wanted);
	}
	ch->out_window = ev->window;
	ch->in_window = ev->window;
	ch->ring_addr = ev->ring_addr;
	ch->ring_bytes = ev->ring_bytes;
	ch->ring_limit_told = ev->ring_bytes; /* OPEN and ACCEPT say so */
	ch->msg_limit_told = ev->window;
	ch->msg_bytes_max = ev->msg_bytes_max;
	ch->end_known = MRC_NEVER;
	ch->cookie = ev->cookie;
	ch->has_client = true;
	return 0;
}

void mrc_conn_channel_free(struct mrc_conn *conn, struct mrc_channel *ch)
{
	uint32_t slot = ch->id & ((1U << MRC_HANDLE_SLOT_BITS) - 1);

	mrc_conn_channel_unname(conn, ch);
	mrc_list_remove(&ch->in_all);
	mrc_list_remove(&ch->in_clients);
	mrc_list_remove(&ch->in_facts);
	mrc_list_remove(&ch->in_lazy);
	mrc_list_remove(&ch->in_drain);
	mrc_list_remove(&ch->in_flow);
	if (ch->in) {
		for (uint32_t i = 0; i < ch->in_window; i++) {
			mrc_range_set_clear(&conn->ranges, &ch->in[i].here);
			mrc_range_set_clear(&conn->ranges, &ch->in[i].wanted);
		}
	}
	mrc_space_leave(conn, ch->peer_space);
	if (ch->flow) {
		if (mrc_list_is_empty(&ch->flow->channels))
			mrc_list_remove(&ch->flow->in_turns);
		flow_put(conn, ch->flow);
	}
	give_memory(conn, ch->out);
	give_memory(conn, ch->in);
	give_memory(conn, ch->notes);
	MRC_ASSERT(conn->slots[slot] == ch);
	conn->slots[slot] = NULL;
	conn->channel_count--;
	give_memory(conn, ch);
}

/* It mirrors channel_client_action() of mrc_conn_clients.c exactly. */
bool mrc_conn_channel_has_work(struct mrc_channel *ch)
{
	uint64_t number;

	if (ch->do_incoming || ch->do_up || ch->do_free || ch->do_room || ch->free_count)
		return true;
	if (ch->done_count && mrc_channel_done_slot(ch) != MRC_SLOT_NONE)
		return true;
	if (ch->do_down && ch->done_count == 0)
		return true;
	if (mrc_channel_can_settle(ch) || mrc_conn_channel_is_over(ch))
		return true;
	if (!ch->has_client || ch->is_aborted || ch->state == MRC_CH_ENDED)
		return false;
	return mrc_channel_in_next(ch, &number) || mrc_channel_in_ask(ch, &number);
}

static void end_append_if_ready(struct mrc_conn *conn, struct mrc_channel *ch)
{
	if (ch->state == MRC_CH_CLOSING && ch->settled == ch->send_next)
		ch->end_wanted = true;
	if (!ch->end_wanted || ch->end_appended || ch->is_detached)
		return;
	/* A commit before the end counts: what only a LEVEL says must have arrived first. */
	ch->end_known = MRC_MIN(ch->end_known, ch->known_end);
	if (mrc_channel_in_owes(ch))
		return;
	ch->end_appended = true;
	mrc_ctl_append(conn, ch->end_is_reset ? MRC_WIRE_RESET : MRC_WIRE_CLOSE, ch, 0);
}

/* Can nothing of the peer's land in this channel's memory any more? (DESIGN 7.6) */
static bool is_drained(struct mrc_conn *conn, struct mrc_channel *ch)
{
	/*
	 * No path could write so far, and what may come up is told no key before the peer
	 * has heard of this end: else it would write to memory that is somebody else's now.
	 */
	if (!ch->is_detached && !conn->is_direct_seen && (ch->end_appended || ch->peer_drained)) {
		if (!ch->peer_drained)
			conn->keys_after = conn->ctl_next;
		return true;
	}
	if (!ch->is_detached && !ch->peer_drained)
		return false;
	return mrc_drain_is_over(conn, &ch->drain);
}

/* Memory of void messages, which their sender may still have been writing. */
static void void_advance(struct mrc_conn *conn, struct mrc_channel *ch)
{
	if (ch->state == MRC_CH_ENDED)
		return; /* it drains whole */
	if (!mrc_drain_is_over(conn, &ch->void_drain)) {
		mrc_list_push_once(&conn->drain_work, &ch->in_drain);
		return;
	}
	mrc_list_remove(&ch->in_drain);
	mrc_channel_in_drained(ch, &conn->ranges);
}

/* An ended channel goes in steps: down, buffers free, ring free, forgotten. */
static void end_advance(struct mrc_conn *conn, struct mrc_channel *ch)
{
	end_append_if_ready(conn, ch);
	if (ch->state != MRC_CH_ENDED)
		return;
	if (!ch->is_down_told && !ch->is_aborted)
		return;
	if (!ch->is_freed && ch->has_client) {
		if (!is_drained(conn, ch)) {
			mrc_list_push_once(&conn->drain_work, &ch->in_drain);
			return;
		}
		mrc_list_remove(&ch->in_drain);
		if (!ch->is_aborted && ch->held_count)
			return; /* the client still reads them */
		if (ch->done_count || ch->free_count)
			return;
		for (uint64_t n = ch->settled; n < ch->send_next; n++) {
			if (ch->out[n & (ch->out_window - 1)].frames_out)
				return;
		}
		for (uint32_t i = 0; ch->in && i < ch->in_window; i++) {
			struct mrc_msg_in *msg = &ch->in[i];

			if (msg->is_granted && !msg->is_eager && !msg->is_landing_freed &&
			    !mrc_bits_has(&ch->free_bits, i)) {
				mrc_bits_set(&ch->free_bits, i);
				ch->free_count++;
			}
		}
		if (ch->free_count)
			return;
		ch->do_free = true;
	}
}

bool mrc_conn_channel_is_over(const struct mrc_channel *ch)
{
	if (ch->state != MRC_CH_ENDED || !ch->is_down_told || (ch->has_client && !ch->is_freed))
		return false;
	if (ch->is_detached)
		return true;
	return ch->ctl_unacked == 0 && ch->peer_drained && (!ch->drained_owed || ch->drained_acked);
}

/* Behind all who have spent as much or less; who has just spent finds his place from the end. */
static void flow_place(struct mrc_conn *conn, struct mrc_flow *flow)
{
	struct mrc_list *at;

	mrc_list_remove(&flow->in_turns);
	at = conn->turns.prev;
	while (at != &conn->turns &&
	       mrc_list_entry(at, struct mrc_flow, in_turns)->spent > flow->spent)
		at = at->prev;
	mrc_list_push(at->next, &flow->in_turns);
}

static void channel_place(struct mrc_channel *ch)
{
	struct mrc_list *channels = &ch->flow->channels;
	struct mrc_list *at;

	mrc_list_remove(&ch->in_flow);
	at = channels->prev;
	while (at != channels && mrc_list_entry(at, struct mrc_channel, in_flow)->spent > ch->spent)
		at = at->prev;
	mrc_list_push(at->next, &ch->in_flow);
}

static void turns_join(struct mrc_conn *conn, struct mrc_channel *ch)
{
	struct mrc_flow *flow = ch->flow;

	if (mrc_list_is_empty(&ch->in_flow)) {
		ch->spent = MRC_MAX(ch->spent, flow->channels_spent);
		channel_place(ch);
	}
	if (mrc_list_is_empty(&flow->in_turns)) {
		flow->spent = MRC_MAX(flow->spent, conn->turns_spent);
		flow_place(conn, flow);
	}
}

void mrc_conn_turn_spend(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t bytes)
{
	ch->flow->channels_spent = ch->spent;
	ch->spent += bytes;
	channel_place(ch);
	conn->turns_spent = ch->flow->spent;
	/* Rounded up, so that nothing is for nothing. */
	ch->flow->spent += (bytes * MRC_WEIGHT_DEFAULT + ch->flow->weight - 1) / ch->flow->weight;
	flow_place(conn, ch->flow);
}

void mrc_conn_touch(struct mrc_conn *conn, struct mrc_channel *ch)
{
	uint32_t facts;

	while (ch->void_count && !ch->is_detached && mrc_ctl_has_room(conn)) {
		uint32_t slot = mrc_bits_first(&ch->void_bits, 0, ch->out_window);

		mrc_bits_clear(&ch->void_bits, slot);
		ch->void_count--;
		mrc_ctl_append(conn, MRC_WIRE_VOID, ch, mrc_channel_out_number(ch, slot));
	}
	if (ch->void_draining)
		void_advance(conn, ch);
	if (ch->end_wanted || ch->state == MRC_CH_CLOSING || ch->state == MRC_CH_ENDED)
		end_advance(conn, ch);
	if (mrc_list_is_empty(&ch->in_clients) && mrc_conn_channel_has_work(ch))
		mrc_list_push(&conn->client_work, &ch->in_clients);
	if (ch->is_detached)
		return;
	facts = ch->facts & ~(uint32_t)MRC_FACT_STATE_LAZY;
	if (mrc_conn_wants_full(conn))
		facts &= ~(uint32_t)MRC_FACT_WANT;
	if (facts) {
		mrc_list_push_once(&conn->fact_work, &ch->in_facts);
	} else if (ch->facts & MRC_FACT_STATE_LAZY) {
		mrc_list_push_once(&conn->lazy_work, &ch->in_lazy);
		conn->lazy_due_ns =
			MRC_MIN(conn->lazy_due_ns, conn->now_ns + mrc_conn_ack_delay_ns(conn));
	}
	if (ch->ready_head != MRC_SLOT_NONE && ch->flow)
		turns_join(conn, ch);
}

void mrc_conn_channel_end(struct mrc_conn *conn, struct mrc_channel *ch, int outcome, uint32_t code)
{
	if (ch->state == MRC_CH_ENDED)
		return;
	ch->state = MRC_CH_ENDED;
	ch->end_outcome = outcome;
	ch->end_code = code;
	if (conn->epoch == 0)
		ch->is_detached = true; /* the peer was never met: it need not hear of it */
	if (ch->out)
		mrc_channel_out_fail_all(ch, outcome == MRC_OUT_OK ? MRC_OUT_CLOSED : outcome,
					 code);
	/* What is left are words that end things and the verdicts given before. */
	ch->facts &= MRC_FACT_LEVEL | MRC_FACT_STATE | MRC_FACT_DRAINED;
	ch->do_room = false;
	if (ch->do_incoming) { /* nobody has heard of it here */
		ch->do_incoming = false;
		ch->is_down_told = true;
	} else if (!ch->is_aborted)
		ch->do_down = true;
	else if (ch->done_count) {
		/* Nobody is left to be answered. */
		MRC_ASSERT(ch->out);
		ch->done_bits = (struct mrc_bits){0};
		ch->done_count = 0;
		for (uint64_t n = ch->settled; n < ch->send_next; n++)
			ch->out[n & (ch->out_window - 1)].is_answered = true;
	}
}

/* What the old epoch's paths may still write is over only when each of them is fenced (DESIGN 7.4). */
static void detached_drain(struct mrc_conn *conn, struct mrc_channel *ch)
{
	ch->drain.count = 0;
	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (!path->is_connected || !path->is_direct)
			continue;
		ch->drain.paths[ch->drain.count].index = i;
		ch->drain.paths[ch->drain.count].epoch = path->epoch;
		ch->drain.paths[ch->drain.count++].posted = MRC_NEVER;
	}
}

void mrc_conn_reset(struct mrc_conn *conn, uint32_t epoch, uint64_t peer_boot_id)
{
	struct mrc_list *at;
	struct mrc_list *next;

	if (conn->epoch) {
		conn->resets++;
		conn->do_reset = true;
	}
	conn->epoch = epoch;
	conn->epoch_last = MRC_MAX(conn->epoch_last, epoch);
	conn->peer_boot_id = peer_boot_id;
	conn->peer_port_version = 0;
	conn->is_number_lost = false;
	mrc_conn_about_forget(conn);
	mrc_conn_host_forget(conn);
	conn->clock.is_known =
		conn->has_one_clock; /* another machine may answer to that name now */
	for (uint32_t i = 0; i < conn->hold_count; i++) {
		if (conn->holds[i].state != MRC_HOLD_NONE &&
		    conn->holds[i].state != MRC_HOLD_DONE) {
			/* One that is READY was counted when it became so. */
			conn->holds_ready += conn->holds[i].state == MRC_HOLD_WAITING;
			conn->holds[i].state = MRC_HOLD_DONE;
		}
	}
	/* Every path of the old epoch is given up, and with it what it may still write. */
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];

		if (path->is_connected)
			mrc_conn_path_leave(conn, path, MRC_REASON_NEW_CONN, true);
		path->tell_fence = false;
		path->tell_fenced = false;
	}
	MRC_ASSERT(conn->wants_out == 0);
	for (at = conn->all.next; at != &conn->all; at = at->next)
		mrc_list_entry(at, struct mrc_channel, in_all)->peer_space = NULL;
	mrc_space_forget_all(conn);
	/* After the paths: what they said and marked belongs to the old epoch's logs. */
	conn->keys_after = 0;
	conn->ctl_next = 0;
	conn->ctl_sent = 0;
	conn->ctl_acked = 0;
	conn->ctl_taken = 0;
	conn->resend_head = 0;
	conn->resend_tail = 0;
	conn->frags_out = 0;
	for (at = conn->all.next; at != &conn->all; at = next) {
		struct mrc_channel *ch = mrc_list_entry(at, struct mrc_channel, in_all);

		next = at->next;
		ch->ctl_unacked = 0;
		ch->level_unacked = 0;
		if (ch->is_detached)
			continue;
		if (ch->state == MRC_CH_OPENING && !ch->is_heard) {
			/* Never accepted, so nothing was sent on it: it opens anew. */
			ch->facts = 0;
			ch->ring_limit = 0;
			ch->msg_limit = 0;
			mrc_ctl_append(conn, MRC_WIRE_OPEN, ch, 0);
			continue;
		}
		mrc_conn_channel_end(conn, ch, MRC_OUT_UNKNOWN, 0);
		ch->is_detached = true;
		detached_drain(conn, ch);
		ch->facts = 0;
		mrc_conn_channel_unname(conn, ch);
		mrc_list_remove(&ch->in_facts);
		mrc_list_remove(&ch->in_lazy);
		mrc_conn_touch(conn, ch);
	}
}

/* ---- what clients ask for ---- */

static int on_open(struct mrc_conn *conn, const struct mrc_ev_channel *ev)
{
	struct mrc_channel *ch;
	int r;

	if (conn->wire_next >= UINT32_MAX / 2)
		return -ENOSPC;
	r = mrc_conn_channel_new(conn, conn->wire_next << 1 | !conn->is_initiator, true, &ch);
	if (r)
		return r;
	r = mrc_conn_channel_equip(conn, ch, ev);
	if (r == 0 && !name_copy(ch->service, ev->service))
		r = -EINVAL;
	if (r) {
		mrc_conn_channel_free(conn, ch);
		return r;
	}
	conn->wire_next++;
	ch->is_unordered = ev->is_unordered;
	ch->is_unchecked = ev->is_unchecked;
	if (conn->epoch)
		mrc_ctl_append(conn, MRC_WIRE_OPEN, ch, 0);
	*ev->id_out = ch->id;
	return 0;
}

static int on_accept(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_channel *ev)
{
	int r;

	if (ch->state != MRC_CH_INCOMING || ch->has_client)
		return -ENOENT;
	r = mrc_conn_channel_equip(conn, ch, ev);
	if (r)
		return r;
	ch->state = MRC_CH_OPEN;
	ch->is_established = true;
	ch->do_up = true;
	mrc_ctl_append(conn, MRC_WIRE_ACCEPT, ch, 0);
	return 0;
}

static int on_refuse(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_channel *ev)
{
	if (ch->state != MRC_CH_INCOMING)
		return -ENOENT;
	ch->state = MRC_CH_ENDED;
	ch->end_outcome = ev->outcome;
	ch->end_code = ev->code;
	ch->do_incoming = false;
	ch->is_down_told = true; /* the embedder said so itself */
	ch->end_appended = true;
	ch->peer_drained = true; /* the peer never had anything to send to */
	mrc_ctl_append(conn, MRC_WIRE_REFUSE, ch, 0);
	return 0;
}

static int on_close(struct mrc_conn *conn, struct mrc_channel *ch)
{
	if (ch->state == MRC_CH_OPENING) {
		/* Whether the peer hears of it or not: it opens, and ends at once. */
		mrc_conn_channel_end(conn, ch, MRC_OUT_OK, 0);
		ch->end_wanted = true;
		ch->end_is_reset = true;
		return 0;
	}
	if (ch->state != MRC_CH_OPEN)
		return ch->state == MRC_CH_CLOSING || ch->state == MRC_CH_ENDED ? 0 : -ENOENT;
	ch->state = MRC_CH_CLOSING;
	return 0;
}

static int on_abort(struct mrc_conn *conn, struct mrc_channel *ch)
{
	if (!ch->has_client)
		return -ENOENT;
	ch->is_aborted = true;
	ch->held_count = 0;
	if (ch->state != MRC_CH_ENDED) {
		mrc_conn_channel_end(conn, ch, MRC_OUT_PEER_DIED, 0);
		ch->end_wanted = true;
		ch->end_is_reset = true;
	} else {
		ch->do_down = false;
		ch->done_bits = (struct mrc_bits){0};
		ch->done_count = 0;
	}
	ch->is_down_told = true;
	return 0;
}

static int on_send(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_msg *ev)
{
	uint64_t number;
	int r;

	if (ch->state != MRC_CH_OPEN && ch->state != MRC_CH_OPENING)
		return -ENOENT;
	if (ev->level < MRC_LVL_PLACED || ev->level > MRC_LVL_COMMITTED)
		return -EINVAL;
	r = mrc_channel_send(ch, ev, &number);
	if (r) {
		ch->is_room_wanted = ch->is_room_wanted || r == -ENOSPC;
		return r;
	}
	if (ev->number_out)
		*ev->number_out = number;
	if (ch->asked_ns) {
		/* What comes later than news may wait is no answer: they went before it. */
		if (conn->now_ns - ch->asked_ns < mrc_conn_ack_delay_ns(conn))
			ch->answers++;
		else
			ch->answers = 0;
		ch->is_answering = ch->answers >= MRC_ANSWERS_MIN;
		ch->asked_ns = 0;
	}
	conn->messages_sent++;
	ch->sent_bytes += ev->len;
	conn->active_ns = conn->now_ns;
	mrc_channel_admit(ch, conn->limits.eager_bytes_max);
	return 0;
}

static int on_cancel(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_msg *ev)
{
	const struct mrc_msg_out *msg = mrc_channel_out(ch, ev->number);

	if (ev->outcome >= MRC_OUT_OK || ev->outcome < MRC_OUT_IN_USE)
		return -EINVAL;
	if (!msg)
		return ev->number < ch->settled ? -EALREADY : -EINVAL;
	if (msg->is_final || msg->outcome_late || msg->level >= msg->level_wanted)
		return -EALREADY;
	mrc_channel_out_give_up(ch, ev->number, ev->outcome);
	/* It needs no credit for its bytes any more, and those behind it may have waited for that. */
	mrc_channel_admit(ch, conn->limits.eager_bytes_max);
	return 0;
}

static int on_landing(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_msg *ev)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, ev->number);

	(void)conn;
	if (ch->is_asking && ch->asking == ev->number)
		ch->is_asking = false; /* answered, whether it is needed still or not */
	if (ch->state == MRC_CH_ENDED || !msg || !msg->is_asked || msg->is_granted || msg->is_void)
		return -ENOENT;
	msg->is_granted = true;
	msg->addr = ev->addr;
	mrc_bits_set(&ch->cts_bits, (uint32_t)(ev->number & (ch->in_window - 1)));
	ch->facts |= MRC_FACT_CTS;
	return 0;
}

/* The client's library took the arrival of this message. */
static int visible(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t number)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, number);

	if (!msg)
		return ch->has_client && number < ch->peer_settled ? -EALREADY : -EINVAL;
	if (!msg->is_delivered || msg->is_void)
		return -EINVAL;
	if (msg->is_traced && msg->level < MRC_LVL_VISIBLE)
		mrc_channel_in_stamp(ch, msg, MRC_MOMENT_VISIBLE, mrc_conn_stamp(conn));
	mrc_channel_in_reached(ch, number, MRC_LVL_VISIBLE);
	return 0;
}

/* Of several the last one's answer counts: what one of them has come to already is not the others' affair. */
static int on_visible(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_msg *ev)
{
	int r = 0;

	for (uint32_t i = 0; i <= ev->more; i++)
		r = visible(conn, ch, ev->number + i);
	return r;
}

static int on_release(struct mrc_conn *conn, struct mrc_channel *ch, const struct mrc_ev_msg *ev)
{
	int r = 0;

	for (uint32_t i = 0; i <= ev->more; i++) {
		struct mrc_msg_in *msg = mrc_channel_in(ch, ev->number + i);

		if (msg && msg->is_traced && !msg->is_final && msg->is_delivered)
			mrc_channel_in_note(ch, msg, ev, 0, mrc_conn_stamp(conn));
		r = mrc_channel_in_release(ch, &conn->ranges, ev->number + i);
	}
	return r;
}

/* COMMIT, COMMIT_ASK, REJECT of a message that was delivered to our client. */
static int on_verdict(struct mrc_conn *conn, struct mrc_channel *ch, enum mrc_event_kind kind,
		      const struct mrc_ev_msg *ev)
{
	struct mrc_msg_in *msg = mrc_channel_in(ch, ev->number);
	uint8_t text_len;

	if (!msg)
		return ch->has_client && ev->number < ch->peer_settled ? -EALREADY : -EINVAL;
	if (!msg->is_delivered || msg->is_void)
		return -EINVAL;
	if (msg->is_final || msg->is_released)
		return -EALREADY;
	if (kind == MRC_EV_COMMIT_ASK)
		return ch->state == MRC_CH_ENDED ? -ENOENT : 0;
	text_len = kind == MRC_EV_REJECT ? ev->text_len : 0;
	if (msg->is_traced || text_len)
		mrc_channel_in_note(ch, msg, ev, text_len, mrc_conn_stamp(conn));
	mrc_channel_in_reached(ch, ev->number, MRC_LVL_VISIBLE);
	if (kind == MRC_EV_COMMIT)
		mrc_channel_in_final(ch, ev->number, MRC_OUT_OK, 0);
	else
		mrc_channel_in_final(ch, ev->number, MRC_OUT_REJECTED, ev->code);
	return 0;
}

static int on_channel_event(struct mrc_conn *conn, const struct mrc_event_in *ev)
{
	bool is_msg = ev->kind >= MRC_EV_SEND;
	struct mrc_channel *ch = mrc_conn_channel(conn, is_msg ? ev->msg.channel : ev->channel.id);
	int r;

	if (!ch)
		return -ENOENT;
	if (ev->kind == MRC_EV_CH_ACCEPT)
		r = on_accept(conn, ch, &ev->channel);
	else if (ev->kind == MRC_EV_CH_REFUSE)
		r = on_refuse(conn, ch, &ev->channel);
	else if (ev->kind == MRC_EV_CH_CLOSE)
		r = on_close(conn, ch);
	else if (ev->kind == MRC_EV_CH_ABORT)
		r = on_abort(conn, ch);
	else if (ev->kind == MRC_EV_SEND)
		r = on_send(conn, ch, &ev->msg);
	else if (ev->kind == MRC_EV_CANCEL)
		r = on_cancel(conn, ch, &ev->msg);
	else if (ev->kind == MRC_EV_LANDING)
		r = on_landing(conn, ch, &ev->msg);
	else if (ev->kind == MRC_EV_VISIBLE)
		r = on_visible(conn, ch, &ev->msg);
	else if (ev->kind == MRC_EV_RELEASE)
		r = on_release(conn, ch, &ev->msg);
	else
		r = on_verdict(conn, ch, ev->kind, &ev->msg);
	if (ev->kind != MRC_EV_COMMIT_ASK)
		mrc_conn_touch(conn, ch);
	return r;
}

int mrc_conn_handle(struct mrc_conn *conn, const struct mrc_event_in *ev, uint64_t now_ns)
{
	conn->now_ns = MRC_MAX(conn->now_ns, now_ns);
	switch (ev->kind) {
	case MRC_EV_PATH_UP:
	case MRC_EV_PATH_DOWN:
	case MRC_EV_PATH_FAILED:
	case MRC_EV_CARRIER:
	case MRC_EV_DENY:
	case MRC_EV_ALLOW:
	case MRC_EV_SENT:
	case MRC_EV_FENCED:
		if (ev->path.index >= conn->path_count)
			return -EINVAL;
		return mrc_conn_path_event(conn, ev);
	case MRC_EV_KEY:
		return mrc_space_key(conn, &ev->key);
	case MRC_EV_ABOUT:
		return mrc_conn_about_event(conn, &ev->about);
	case MRC_EV_HOST_DRAIN:
		return mrc_conn_host_event(conn, &ev->host);
	case MRC_EV_DRILL:
		if (ev->path.index >= conn->path_count)
			return -EINVAL;
		return mrc_conn_host_drill(conn, ev->path.index, ev->path.is_up);
	case MRC_EV_ARRIVED:
		if (ev->arrived.index >= conn->path_count)
			return -EINVAL;
		return mrc_conn_frame(conn, &ev->arrived);
	case MRC_EV_CH_OPEN:
		return on_open(conn, &ev->channel);
	case MRC_EV_CH_ACCEPT:
	case MRC_EV_CH_REFUSE:
	case MRC_EV_CH_CLOSE:
	case MRC_EV_CH_ABORT:
	case MRC_EV_SEND:
	case MRC_EV_CANCEL:
	case MRC_EV_LANDING:
	case MRC_EV_VISIBLE:
	case MRC_EV_COMMIT:
	case MRC_EV_COMMIT_ASK:
	case MRC_EV_REJECT:
	case MRC_EV_RELEASE:
		return on_channel_event(conn, ev);
	case MRC_EV_TIMER:
		mrc_conn_tick(conn);
		return 0;
	}
	return -EINVAL;
}
