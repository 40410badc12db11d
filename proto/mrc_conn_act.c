/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_act - what to do next
 *
 * Actions are made from state, most urgent first: paths, then clients, then
 * frames: control before data, an acknowledgement last so that it speaks of
 * all that was taken in. A fragment goes to the path on which it will arrive
 * first ("earliest completion first"); a path with a full window takes none.
 */
#include "mrc_conn_impl.h"

/* ---- frames ---- */

/* Begin a frame on `path`: its record, and the header's fixed part. */
static struct mrc_record *post_begin(struct mrc_conn *conn, struct mrc_path *path,
				     struct mrc_action *act, enum mrc_wire_type type,
				     enum mrc_record_kind kind, uint32_t bytes)
{
	bool is_eliciting = type != MRC_WIRE_ACK || conn->ack_has_news;
	struct mrc_record *record = mrc_path_push(path, is_eliciting, bytes, conn->now_ns);
	struct mrc_act_post *post = &act->post;

	record->kind = (uint8_t)kind;
	act->kind = MRC_ACT_POST;
	/* Not the whole union: a control body is 1 KiB that most frames do not have. */
	memset(post, 0, offsetof(struct mrc_act_post, body));
	post->index = path->index;
	post->path_epoch = path->epoch;
	post->hdr.type = (uint8_t)type;
	post->hdr.conn_epoch = conn->epoch;
	post->hdr.path_epoch = path->epoch;
	conn->is_posting = true;
	conn->has_along = true;
	conn->along_index = path->index;
	if (path->judge_ns == MRC_NEVER && path->oldest_sent_ns != MRC_NEVER)
		path->judge_ns =
			path->oldest_sent_ns + mrc_path_timeout_ns(path, &conn->limits) / 2;
	return record;
}

static void post_end(struct mrc_act_post *post, const struct mrc_cursor *c)
{
	MRC_ASSERT(c->ok);
	post->body_len = (uint16_t)(c->at - post->body);
	post->hdr.body_len = post->body_len;
}

static struct mrc_cursor body_cursor(struct mrc_act_post *post)
{
	return (struct mrc_cursor){.at = post->body,
				   .end = post->body + sizeof(post->body),
				   .ok = true};
}

/* What we have taken in, of all paths: the body of ACK and PROBE_ACK. */
static void counts_body(struct mrc_conn *conn, struct mrc_act_post *post)
{
	struct mrc_cursor c = body_cursor(post);
	uint8_t count = 0;

	for (uint8_t i = 0; i < conn->path_count; i++)
		count += conn->paths[i].is_connected && conn->paths[i].is_known;
	mrc_put_u64(&c, conn->ctl_taken);
	mrc_put_u8(&c, count);
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *about = &conn->paths[i];

		about->taken_said = about->taken;
		if (!about->is_connected || !about->is_known)
			continue;
		mrc_put_u16(&c, about->path_id);
		mrc_put_u32(&c, about->epoch);
		mrc_put_u64(&c, about->taken);
	}
	post_end(post, &c);
}

/*
 * A probe, `is_long` as long as a frame gets. The padding is daemon memory: no
 * client can have changed it on its way (DESIGN 7.12).
 */
static void probe_begin(struct mrc_conn *conn, struct mrc_path *path, struct mrc_action *act,
			enum mrc_record_kind kind, bool is_long)
{
	uint32_t pad = is_long ? MRC_MIN(conn->limits.frag_bytes_max, path->body_bytes_max) : 0;

	post_begin(conn, path, act, MRC_WIRE_PROBE, kind, pad);
	path->bytes_sent -= pad; /* padding is no payload */
	act->post.pad_len = pad;
	act->post.hdr.body_len = pad;
}

static bool path_frame(struct mrc_conn *conn, struct mrc_action *act)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];
		bool can_talk = path->say_any && path->is_connected && !path->do_fence &&
				(path->state == MRC_PATH_GOOD || path->state == MRC_PATH_PROBING) &&
				mrc_path_has_room(path, MRC_ROOM_CONTROL);

		if (!can_talk)
			continue;
		if (path->do_path_open) {
			path->do_path_open = false;
			post_begin(conn, path, act, MRC_WIRE_PATH_OPEN, MRC_REC_PLAIN, 0);
			act->post.hdr.arg = path->is_direct | (uint64_t)path->share_given << 32;
			act->post.hdr.addr = path->body_bytes_given;
			return true;
		}
		if (path->do_keys && path->is_direct && conn->ctl_acked >= conn->keys_after) {
			struct mrc_wire_hdr keys = {0};

			if (mrc_space_key_frame(conn, path, &keys)) {
				post_begin(conn, path, act, MRC_WIRE_KEYS, MRC_REC_PLAIN, 0);
				act->post.hdr.msg = keys.msg;
				act->post.hdr.addr = keys.addr;
				act->post.hdr.arg = keys.arg;
				return true;
			}
		}
		if (path->do_proof) {
			path->do_proof = false;
			probe_begin(conn, path, act, MRC_REC_PLAIN, true);
			act->post.hdr.flags = MRC_WIRE_F_PROOF;
			return true;
		}
		if (path->do_probe_ack) {
			path->do_probe_ack = false;
			post_begin(conn, path, act, MRC_WIRE_PROBE_ACK, MRC_REC_PROBE_ACK, 0);
			act->post.hdr.msg = path->probe_ack_id;
			act->post.hdr.arg = path->probe_ack_arg;
			act->post.hdr.addr = path->probe_came_ns;
			act->post.hdr.offset = mrc_conn_stamp(conn);
			counts_body(conn, &act->post);
			return true;
		}
		if (path->do_probe) {
			/* The last one before GOOD is as long as a frame gets: an MTU black hole passes small ones. */
			bool is_long = path->state == MRC_PATH_PROBING &&
				       (path->prove_left ||
					path->probes_good + 1 >= conn->limits.probe_count);

			path->do_probe = false;
			path->probe_ns = conn->now_ns;
			path->probe_id++;
			probe_begin(conn, path, act, MRC_REC_PROBE, is_long);
			path->probe_count = path->posted;
			path->probe_port_version = conn->port_version;
			path->probe_stamp_ns = mrc_conn_stamp(conn);
			if (path->prove_left) {
				path->prove_left--;
				act->post.hdr.flags = MRC_WIRE_F_PROVE;
			}
			act->post.hdr.msg = path->probe_id;
			act->post.hdr.arg = conn->now_ns;
			act->post.hdr.offset = conn->port_version;
			act->post.hdr.addr = mrc_conn_host_status(conn, path);
			return true;
		}
		if (path->do_about) {
			struct mrc_cursor c;

			path->do_about = false;
			post_begin(conn, path, act, MRC_WIRE_ABOUT, MRC_REC_ABOUT, 0);
			c = body_cursor(&act->post);
			mrc_conn_about_put(conn, path, &c);
			post_end(&act->post, &c);
			return true;
		}
	}
	return false;
}

/* What has to go by a path of its own takes nothing along: it may be the slowest, or dead. */
static bool next_path_frame(struct mrc_conn *conn, struct mrc_action *act)
{
	uint8_t along_index = conn->along_index;
	bool has_along = conn->has_along;

	if (!path_frame(conn, act))
		return false;
	conn->along_index = along_index;
	conn->has_along = has_along;
	return true;
}

static bool next_fence_frame(struct mrc_conn *conn, struct mrc_action *act)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *about = &conn->paths[i];
		struct mrc_path *path;
		struct mrc_record *record;

		if (!about->tell_any)
			continue;
		/* Said only once it is true: our own end is fenced. */
		if (about->do_fence || about->is_connected) {
			if (about->tell_fence || about->fenced_tell_epoch == about->epoch)
				continue;
		}
		path = mrc_conn_path_for_control(conn, MRC_ROOM_CONTROL);
		if (!path)
			return false;
		if (about->tell_fenced) {
			about->tell_fenced = false;
			record = post_begin(conn, path, act, MRC_WIRE_PATH_FENCED, MRC_REC_FENCED,
					    0);
			act->post.hdr.arg = about->fenced_tell_epoch;
			act->post.hdr.offset = about->fenced_tell_count;
		} else {
			about->tell_fence = false;
			record = post_begin(conn, path, act, MRC_WIRE_PATH_FENCE, MRC_REC_FENCE, 0);
			act->post.hdr.arg = about->epoch;
			record->msg = about->epoch;
		}
		record->channel = i;
		act->post.hdr.msg = about->path_id;
		return true;
	}
	return false;
}

static bool next_ctl_frame(struct mrc_conn *conn, struct mrc_action *act)
{
	struct mrc_path *path;
	struct mrc_record *record;

	if (conn->ctl_sent >= conn->ctl_next)
		return false;
	/* In order costs nothing on one path; when it goes, all unheard goes again on another. */
	path = &conn->paths[conn->ctl_path];
	if (path->state != MRC_PATH_GOOD) {
		path = mrc_conn_path_for_control(conn, MRC_ROOM_CONTROL);
		if (!path)
			return false;
		conn->ctl_path = path->index;
		conn->ctl_sent = conn->ctl_acked;
	}
	if (!mrc_path_has_room(path, MRC_ROOM_CONTROL))
		return false;
	record = post_begin(conn, path, act, MRC_WIRE_NOP, MRC_REC_CTL, 0);
	record->msg = conn->ctl_sent;
	mrc_ctl_frame(conn, &act->post);
	act->post.hdr.body_len = act->post.body_len;
	return true;
}

static bool fact_rts(struct mrc_conn *conn, struct mrc_path *path, struct mrc_channel *ch,
		     struct mrc_action *act)
{
	uint32_t slot =
		mrc_bits_first(&ch->rts_bits, (uint32_t)(ch->settled & (ch->out_window - 1)),
			       ch->out_window);
	struct mrc_record *record;
	struct mrc_msg_out *msg;

	if (slot == MRC_SLOT_NONE) {
		ch->facts &= ~(uint32_t)MRC_FACT_RTS;
		return false;
	}
	msg = &ch->out[slot];
	mrc_bits_clear(&ch->rts_bits, slot);
	record = post_begin(conn, path, act, MRC_WIRE_RTS, MRC_REC_RTS, 0);
	record->channel = ch->id;
	record->msg = mrc_channel_out_number(ch, slot);
	act->post.hdr.channel = ch->wire_id;
	act->post.hdr.msg = record->msg;
	act->post.hdr.msg_len = msg->len;
	act->post.hdr.arg = ch->settled;
	return true;
}

/* What is said besides a verdict: the moments if they are wanted, then the text. */
static void level_body(const struct mrc_note *note, bool is_traced, struct mrc_act_post *post)
{
	struct mrc_cursor c = body_cursor(post);

	if (is_traced) {
		post->hdr.flags |= MRC_WIRE_F_TRACED;
		for (int i = MRC_MOMENT_PLACED; i < MRC_MOMENT_COUNT; i++)
			mrc_put_u64(&c, note->ns[i]);
	}
	mrc_put_bytes(&c, note->text, note->text_len);
	post_end(post, &c);
}

/* CTS, WANT or LEVEL: one message of the receiving side. */
static bool fact_in(struct mrc_conn *conn, struct mrc_path *path, struct mrc_channel *ch,
		    struct mrc_bits *bits, uint32_t fact, struct mrc_action *act)
{
	uint32_t slot = mrc_bits_first(bits, (uint32_t)(ch->peer_settled & (ch->in_window - 1)),
				       ch->in_window);
	struct mrc_record *record;
	struct mrc_msg_in *msg;
	struct mrc_wire_hdr *hdr = &act->post.hdr;

	if (slot == MRC_SLOT_NONE) {
		ch->facts &= ~fact;
		return false;
	}
	msg = &ch->in[slot];
	if (fact == MRC_FACT_WANT && mrc_conn_wants_full(conn))
		return false; /* when one is acknowledged it goes on */
	if (fact != MRC_FACT_WANT)
		mrc_bits_clear(bits, slot);
	if (fact == MRC_FACT_CTS) {
		record = post_begin(conn, path, act, MRC_WIRE_CTS, MRC_REC_CTS, 0);
		hdr->addr = msg->addr;
		hdr->msg_len = msg->len;
	} else if (fact == MRC_FACT_WANT) {
		bool is_any;

		record = post_begin(conn, path, act, MRC_WIRE_WANT, MRC_REC_WANT, 0);
		is_any = mrc_range_set_pop(&conn->ranges, &msg->wanted, &record->offset,
					   &record->end);
		MRC_ASSERT(is_any);
		if (msg->wanted.head == MRC_RANGE_NONE)
			mrc_bits_clear(bits, slot);
		hdr->offset = record->offset;
		hdr->msg_len = record->end;
		hdr->arg = msg->want_blame; /* else it only found no room here */
		record->blame = msg->want_blame;
		msg->want_blame = 0;
		conn->wants_out++;
	} else {
		record = post_begin(conn, path, act, MRC_WIRE_LEVEL, MRC_REC_LEVEL, 0);
		hdr->arg = msg->level | (uint64_t)msg->is_final << 8 |
			   (uint64_t)(uint8_t)(int8_t)msg->outcome << 16 |
			   (uint64_t)msg->code << 32;
		record->is_final = msg->is_final;
		if (msg->note && msg->is_final)
			level_body(mrc_notes_at(&ch->in_notes, msg->note), msg->is_traced,
				   &act->post);
	}
	record->channel = ch->id;
	record->msg = mrc_channel_in_number(ch, slot);
	if (fact == MRC_FACT_LEVEL && record->msg >= ch->final_next &&
	    record->msg < ch->end_known) {
		record->is_owed = true;
		ch->level_unacked++;
	}
	hdr->channel = ch->wire_id;
	hdr->msg = record->msg;
	return true;
}

static bool channel_fact(struct mrc_conn *conn, struct mrc_path *path, struct mrc_channel *ch,
			 struct mrc_action *act)
{
	struct mrc_cursor c;
	struct mrc_record *record;

	if (ch->facts & MRC_FACT_CTS && fact_in(conn, path, ch, &ch->cts_bits, MRC_FACT_CTS, act))
		return true;
	if (ch->facts & MRC_FACT_LEVEL &&
	    fact_in(conn, path, ch, &ch->level_bits, MRC_FACT_LEVEL, act))
		return true;
	if (ch->facts & MRC_FACT_WANT &&
	    fact_in(conn, path, ch, &ch->want_bits, MRC_FACT_WANT, act))
		return true;
	if (ch->facts & MRC_FACT_RTS && fact_rts(conn, path, ch, act))
		return true;
	if (ch->facts & MRC_FACT_STATE) {
		ch->facts &= ~(uint32_t)(MRC_FACT_STATE | MRC_FACT_STATE_LAZY);
		mrc_list_remove(&ch->in_lazy);
		if (mrc_list_is_empty(&conn->lazy_work))
			conn->lazy_due_ns = MRC_NEVER;
		record = post_begin(conn, path, act, MRC_WIRE_STATE, MRC_REC_STATE, 0);
		record->channel = ch->id;
		act->post.hdr.channel = ch->wire_id;
		c = body_cursor(&act->post);
		mrc_state_put(conn, ch, &c);
		post_end(&act->post, &c);
		return true;
	}
	if (ch->facts & MRC_FACT_DRAINED) {
		ch->facts &= ~(uint32_t)MRC_FACT_DRAINED;
		record = post_begin(conn, path, act, MRC_WIRE_DRAINED, MRC_REC_DRAINED, 0);
		record->channel = ch->id;
		act->post.hdr.channel = ch->wire_id;
		c = body_cursor(&act->post);
		mrc_drain_put(conn, &c);
		post_end(&act->post, &c);
		return true;
	}
	return false;
}

static bool next_fact_frame(struct mrc_conn *conn, struct mrc_action *act)
{
	while (!mrc_list_is_empty(&conn->fact_work)) {
		struct mrc_channel *ch =
			mrc_list_entry(conn->fact_work.next, struct mrc_channel, in_facts);
		struct mrc_path *path = mrc_conn_path_for_control(conn, MRC_ROOM_CONTROL);

		if (!path)
			return false;
		if (channel_fact(conn, path, ch, act)) {
			mrc_list_push(&conn->fact_work, &ch->in_facts); /* to the tail: turns */
			return true;
		}
		mrc_list_remove(&ch->in_facts);
		mrc_conn_touch(conn, ch); /* an end may have waited for its last LEVEL */
	}
	return false;
}

/* ---- data ---- */

/* What one path damaged goes by another, if there is one in service. */
static const struct mrc_path *path_to_avoid(const struct mrc_conn *conn, uint8_t blame)
{
	const struct mrc_path *blamed = NULL;
	bool has_other = false;

	if (!blame)
		return NULL;
	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		if (path->is_known && path->path_id + 1 == blame)
			blamed = path;
		else if (path->state == MRC_PATH_GOOD && !path->do_fence)
			has_other = true;
	}
	return has_other ? blamed : NULL;
}

/* May `len` bytes take the path that was posted to last, where they arrive hardly later than at best? */
static bool is_along(const struct mrc_conn *conn, const struct mrc_path *avoided, uint64_t len,
		     uint64_t best_ns)
{
	const struct mrc_path *along = &conn->paths[conn->along_index];

	return conn->has_along && along->state == MRC_PATH_GOOD && !along->do_fence &&
	       along != avoided &&
	       along->bytes_in_flight <= MRC_MIN(along->window_bytes, MRC_ALONG_BYTES_MAX) &&
	       mrc_path_has_room(along, MRC_ROOM_DATA) &&
	       mrc_path_eta_ns(along, len, conn->now_ns) <= best_ns + MRC_ALONG_NS;
}

/*
 * The path but `avoided` on which `len` bytes arrive first; few of them go along
 * with others. When that path is full, the best of the others takes them only if
 * they still arrive sooner there than behind all that is waiting: the tail of a
 * message does not go to a slow rail.
 */
static struct mrc_path *path_for_data(struct mrc_conn *conn, uint64_t len, uint64_t backlog,
				      const struct mrc_path *avoided)
{
	struct mrc_path *best = NULL;
	struct mrc_path *open = NULL;
	uint64_t best_ns = MRC_NEVER;
	uint64_t open_ns = MRC_NEVER;

	/* So soon there that it goes along whatever the others would take: they need not be asked. */
	if (len <= MRC_ALONG_LEN_MAX && is_along(conn, avoided, len, 0))
		return &conn->paths[conn->along_index];
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];
		uint64_t eta_ns;

		if (path->state != MRC_PATH_GOOD || path->do_fence || path == avoided)
			continue;
		eta_ns = mrc_path_eta_ns(
			path, MRC_MIN(len, mrc_path_frag_bytes(path, conn->limits.frag_bytes_max)),
			conn->now_ns);
		if (eta_ns < best_ns) {
			best = path;
			best_ns = eta_ns;
		}
		if (path->bytes_in_flight < path->window_bytes &&
		    mrc_path_has_room(path, MRC_ROOM_DATA) && eta_ns < open_ns) {
			open = path;
			open_ns = eta_ns;
		}
	}
	if (best && len <= MRC_ALONG_LEN_MAX && is_along(conn, avoided, len, best_ns))
		return &conn->paths[conn->along_index];
	if (!open || open == best)
		return open;
	if (backlog == MRC_NEVER / 4)
		return open;
	return open_ns <= mrc_path_eta_ns(best, backlog + len, conn->now_ns) ? open : NULL;
}

/* A busy path is not probed for itself; while messages are traced its answers tell the time. */
static void clock_refresh(struct mrc_conn *conn, struct mrc_path *path)
{
	uint64_t asked_ns = MRC_MAX(conn->clock.at_ns, conn->clock_asked_ns);

	if (conn->has_one_clock || path->probe_ns != MRC_NEVER || path->state != MRC_PATH_GOOD ||
	    conn->now_ns <= asked_ns + MRC_CLOCK_AGE_NS)
		return;
	path->do_probe = true;
	conn->clock_asked_ns = conn->now_ns;
}

static void frag_post(struct mrc_conn *conn, struct mrc_path *path, struct mrc_channel *ch,
		      struct mrc_msg_out *msg, uint64_t number, uint64_t offset, uint32_t len,
		      const struct mrc_resend *resend, struct mrc_action *act)
{
	struct mrc_record *record = post_begin(conn, path, act, MRC_WIRE_FRAG, MRC_REC_FRAG, len);
	struct mrc_wire_hdr *hdr = &act->post.hdr;
	/* What is never written directly has no writer: its copies need no fence (DESIGN 7.3). */
	bool may_direct = !resend && len > 0 &&
			  (len >= conn->limits.direct_bytes_min || len > path->body_bytes_max);
	const struct mrc_key *key = may_direct ? mrc_space_key_for(ch, path) : NULL;

	record->channel = ch->id;
	record->msg = number;
	record->offset = offset;
	hdr->channel = ch->wire_id;
	hdr->msg = number;
	hdr->msg_len = msg->len;
	hdr->offset = offset;
	hdr->addr = msg->landing;
	hdr->arg = ch->settled;
	hdr->body_len = len;
	if (msg->is_eager)
		hdr->flags |= MRC_WIRE_F_EAGER;
	if (ch->is_unchecked)
		hdr->flags |= MRC_WIRE_F_UNCHECKED;
	if (msg->is_traced) {
		uint64_t *ns = mrc_notes_at(&ch->out_notes, msg->note)->ns;

		hdr->flags |= MRC_WIRE_F_TRACED;
		clock_refresh(conn, path);
		if (!resend)
			ns[MRC_MOMENT_LAST_SENT] = mrc_conn_stamp(conn);
		if (!ns[MRC_MOMENT_FIRST_SENT])
			ns[MRC_MOMENT_FIRST_SENT] = ns[MRC_MOMENT_LAST_SENT];
	}
	if (msg->level_wanted == MRC_LVL_COMMITTED && msg->has_deadline)
		hdr->flags |= MRC_WIRE_F_PLACED | MRC_WIRE_F_VISIBLE;
	if (msg->level_wanted == MRC_LVL_PLACED)
		hdr->flags |= MRC_WIRE_F_PLACED;
	if (msg->level_wanted == MRC_LVL_VISIBLE)
		hdr->flags |= MRC_WIRE_F_VISIBLE;
	if (resend && resend->is_copy) {
		record->is_copy = true;
		record->writer_path = resend->writer_path;
		record->writer_epoch = resend->writer_epoch;
		hdr->flags |= MRC_WIRE_F_COPY;
		hdr->writer_path = resend->writer_path;
		hdr->writer_epoch = resend->writer_epoch;
	} else if (key) {
		record->is_direct = true;
		act->post.rkey = key->rkey;
		act->post.remote_addr = key->base + offset + msg->landing;
		if (msg->is_eager)
			act->post.remote_addr = key->base + offset + ch->peer_ring_addr +
						msg->landing % ch->peer_ring_bytes;
		hdr->flags |= MRC_WIRE_F_DIRECT;
		hdr->writer_path = path->path_id;
		hdr->writer_epoch = path->epoch;
	}
	/* What may wait a little goes along with the answer. */
	if (ch->is_answering && ch->facts & MRC_FACT_STATE_LAZY) {
		ch->is_answering = false;
		ch->facts |= MRC_FACT_STATE;
		mrc_list_push_once(&conn->fact_work, &ch->in_facts);
	}
	act->post.payload_addr = msg->addr + offset;
	act->post.channel_cookie = ch->cookie;
	msg->frames_out++;
	msg->frag_count += !resend;
	conn->frags_out++;
}

/*
 * If all paths die now, each fragment in flight comes back and wants an entry.
 * One that is cut off an entry without ending it would be one too many when all
 * are taken: then it has to be the only one, and goes back to where it was cut
 * off (resend_push()).
 */
static bool resend_may_post(const struct mrc_conn *conn, bool is_last)
{
	uint64_t owed = conn->resend_tail - conn->resend_head + conn->frags_out;

	if (is_last)
		return owed <= conn->resend_count;
	return owed < conn->resend_count || conn->frags_out == 0;
}

static bool next_resend(struct mrc_conn *conn, struct mrc_action *act)
{
	while (conn->resend_head < conn->resend_tail) {
		struct mrc_resend *resend =
			&conn->resends[conn->resend_head & (conn->resend_count - 1)];
		struct mrc_channel *ch = mrc_conn_channel(conn, resend->channel);
		struct mrc_msg_out *msg = ch ? mrc_channel_out(ch, resend->msg) : NULL;
		struct mrc_path *path;
		uint32_t len;

		if (!msg || msg->is_final || msg->is_void_asked || msg->level >= MRC_LVL_PLACED ||
		    ch->is_detached) {
			conn->resend_head++;
			continue;
		}
		/*
		 * Any open path: while one waits here no new data may be posted, or the
		 * ring would not be bounded by the records of all paths.
		 */
		path = path_for_data(conn, resend->len, MRC_NEVER / 4,
				     path_to_avoid(conn, resend->blame));
		if (!path)
			return false;
		len = (uint32_t)MRC_MIN(resend->len,
					MRC_MIN(conn->limits.frag_bytes_max, path->body_bytes_max));
		if (!resend_may_post(conn, len == resend->len))
			return false;
		frag_post(conn, path, ch, msg, resend->msg, resend->offset, len, resend, act);
		path->frames_resent += resend->is_wanted;
		resend->offset += len;
		resend->len -= len;
		if (resend->len == 0)
			conn->resend_head++;
		return true;
	}
	return false;
}

/* Nothing stands behind this message: then where its last bytes go decides when it is whole. */
static bool is_tail(const struct mrc_conn *conn, const struct mrc_channel *ch,
		    const struct mrc_msg_out *msg)
{
	return msg->next_ready == MRC_SLOT_NONE &&
	       ch->flow->channels.next == ch->flow->channels.prev &&
	       conn->turns.next == conn->turns.prev;
}

/* One fragment of the channel whose turn it is. False: no path takes one now. */
static bool channel_data(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_action *act,
			 bool *is_idle_out)
{
	*is_idle_out = false;
	while (ch->ready_head != MRC_SLOT_NONE) {
		uint32_t slot = ch->ready_head;
		struct mrc_msg_out *msg = &ch->out[slot];
		uint64_t number = mrc_channel_out_number(ch, slot);
		struct mrc_path *path;
		uint64_t left;
		uint32_t len;

		if (!mrc_msg_out_has_more(msg)) {
			mrc_channel_ready_pop(ch);
			if (msg->is_final)
				mrc_conn_touch(conn, ch);
			continue;
		}
		left = msg->len - msg->next_offset;
		/* What stands behind it in this channel: enough to see whether this is a tail. */
		path = path_for_data(conn, left, is_tail(conn, ch, msg) ? left : MRC_NEVER / 4,
				     NULL);
		if (!path)
			return false;
		len = (uint32_t)MRC_MIN(left,
					mrc_path_frag_bytes(path, conn->limits.frag_bytes_max));
		if (len > path->body_bytes_max && !mrc_space_key_for(ch, path))
			len = path->body_bytes_max;
		frag_post(conn, path, ch, msg, number, msg->next_offset, len, NULL, act);
		msg->next_offset += len;
		msg->is_empty_sent = true;
		if (!mrc_msg_out_has_more(msg))
			mrc_channel_ready_pop(ch);
		return true;
	}
	*is_idle_out = true;
	return false;
}

static bool next_data(struct mrc_conn *conn, struct mrc_action *act)
{
	/* One that waits for room in its ring waits for what is in flight: more of that would fill it. */
	if (conn->resend_head < conn->resend_tail)
		return false;
	while (!mrc_list_is_empty(&conn->turns)) {
		struct mrc_flow *flow = mrc_list_entry(conn->turns.next, struct mrc_flow, in_turns);
		struct mrc_channel *ch;
		bool is_idle;

		if (mrc_list_is_empty(&flow->channels)) {
			mrc_list_remove(&flow->in_turns);
			continue;
		}
		ch = mrc_list_entry(flow->channels.next, struct mrc_channel, in_flow);
		if (channel_data(conn, ch, act, &is_idle)) {
			mrc_conn_turn_spend(conn, ch, act->post.hdr.body_len + MRC_WIRE_HDR_BYTES);
			if (ch->ready_head == MRC_SLOT_NONE)
				mrc_list_remove(&ch->in_flow);
			if (mrc_list_is_empty(&flow->channels))
				mrc_list_remove(&flow->in_turns);
			return true;
		}
		if (!is_idle)
			return false;
		mrc_list_remove(&ch->in_flow);
	}
	return false;
}

static bool next_ack(struct mrc_conn *conn, struct mrc_action *act)
{
	struct mrc_path *path;
	struct mrc_record *record;

	if (!conn->ack_now && !(conn->is_posting && conn->ack_due_ns != MRC_NEVER))
		return false;
	path = mrc_conn_path_for_control(conn, MRC_ROOM_ACK);
	if (!path) {
		/* None in service yet: the path being probed carries its own acknowledgement. */
		for (uint8_t i = 0; i < conn->path_count && !path; i++) {
			if (conn->paths[i].state == MRC_PATH_PROBING && !conn->paths[i].do_fence &&
			    conn->paths[i].is_connected &&
			    mrc_path_has_room(&conn->paths[i], MRC_ROOM_ACK))
				path = &conn->paths[i];
		}
	}
	if (!path)
		return false;
	/* With others it costs nothing on a stream; on a queue pair it takes a receive entry of the
	 * peer's: there it goes along only when it is half due, and wakes nobody for itself. */
	if (!conn->ack_now && path->share &&
	    conn->ack_due_ns > conn->now_ns + mrc_conn_ack_delay_ns(conn) / 2)
		return false;
	record = post_begin(conn, path, act, MRC_WIRE_ACK, MRC_REC_ACK, 0);
	act->post.hdr.arg = record->is_eliciting;
	counts_body(conn, &act->post);
	for (uint8_t i = 0; i < conn->path_count; i++)
		conn->paths[i].taken_told = conn->paths[i].taken;
	conn->ack_now = false;
	conn->ack_has_news = false;
	conn->ack_due_ns = MRC_NEVER;
	conn->ack_frames = 0;
	conn->ack_bytes = 0;
	return true;
}

/* ---- paths ---- */

static bool next_path_action(struct mrc_conn *conn, struct mrc_action *act)
{
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];

		if (!path->do_any)
			continue;
		act->path = (struct mrc_act_path){.index = i,
						  .path_epoch = path->epoch,
						  .reason = path->reason};
		/* Before the fence, whose answer may take it on to the next state at once. */
		if (path->do_state) {
			path->do_state = false;
			if (path->state_told != path->state) {
				act->kind = MRC_ACT_PATH_STATE;
				act->path.state_old = path->state_told;
				act->path.state = path->state;
				act->path.moved_count = path->moved_count;
				act->path.late_ns = path->late_ns;
				path->state_told = path->state;
				return true;
			}
		}
		if (path->do_fence && path->is_connected && path->fence_asked != path->epoch) {
			path->fence_asked = path->epoch;
			act->kind = MRC_ACT_FENCE;
			return true;
		}
		if (path->do_strip) {
			path->do_strip = false;
			act->kind = MRC_ACT_STRIP;
			mrc_conn_path_sent(conn, path, path->posted);
			return true;
		}
		if (path->do_carrier_ask) {
			path->do_carrier_ask = false;
			act->kind = MRC_ACT_CARRIER_ASK;
			return true;
		}
		if (path->do_connect) {
			path->do_connect = false;
			act->kind = MRC_ACT_CONNECT;
			return true;
		}
	}
	return false;
}

/* Has any path a flag set? Mostly none has, and this is asked for each action. */
static bool paths_want_something(const struct mrc_conn *conn)
{
	uint64_t any = 0;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		any |= path->do_any | path->say_any | path->tell_any;
	}
	return any != 0;
}

bool mrc_conn_next_action(struct mrc_conn *conn, struct mrc_action *act_out, uint64_t now_ns)
{
	bool is_path_due;

	conn->now_ns = MRC_MAX(conn->now_ns, now_ns);
	/* What comes between this and their frames sets none of them. */
	is_path_due = paths_want_something(conn);
	if (is_path_due && next_path_action(conn, act_out))
		return true;
	if (conn->do_reset) {
		conn->do_reset = false;
		act_out->kind = MRC_ACT_CONN_RESET;
		return true;
	}
	if (mrc_conn_next_host(conn, act_out))
		return true;
	if (conn->holds_ready && mrc_conn_next_hold(conn, act_out))
		return true;
	if (mrc_conn_next_client(conn, act_out))
		return true;
	if (conn->epoch) {
		if (is_path_due &&
		    (next_path_frame(conn, act_out) || next_fence_frame(conn, act_out)))
			return true;
		if (next_ctl_frame(conn, act_out) || next_fact_frame(conn, act_out) ||
		    next_resend(conn, act_out) || next_data(conn, act_out) ||
		    next_ack(conn, act_out))
			return true;
	}
	conn->is_posting = false;
	conn->has_along = false;
	return false;
}
