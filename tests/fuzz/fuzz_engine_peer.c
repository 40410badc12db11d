/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer of the fuzzed engine: it looks into it, says what would be right, and bends it. */
#include <errno.h>

#include "fuzz_engine.h"

/* A frame being made. */
struct draft {
	struct mrc_wire_hdr hdr;
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c;
	bool is_body_bad, is_unplaced;
};

static uint32_t wire_id(const struct eng *e, const struct eng_channel *ch)
{
	const struct mrc_channel *inside = ch ? mrc_conn_channel(e->conn, ch->id) : NULL;

	return inside ? inside->wire_id : 77;
}

static void path_opens(struct eng *e, uint8_t path);

/* ---- handshake ---- */

void eng_peer_connect(struct eng *e, uint8_t path, bool is_bent)
{
	struct mrc_hello own,
		peer = {.path_id = path,
			.version_min = MRC_HELLO_VERSION_MIN,
			.version_max = MRC_HELLO_VERSION_MAX,
			.features = MRC_FEATURE_ABOUT | MRC_FEATURE_HOST_DRAIN | MRC_FEATURE_DRILL};
	struct mrc_auth auth;
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_UP, .path = {.index = path}};
	bool is_initiator = mrc_conn_is_initiator(e->conn);

	mrc_conn_hello(e->conn, path, &own);
	if (is_bent && fuzz_flip(&e->in))
		e->peer_boot_id++; /* it has restarted */
	peer.boot_id = e->peer_boot_id;
	peer.peer_boot_id = own.peer_boot_id == peer.boot_id ? own.boot_id : 0;
	peer.conn_epoch = own.peer_boot_id == peer.boot_id ? own.conn_epoch : 0;
	peer.conn_epoch_last = own.conn_epoch_last;
	peer.path_epoch_last = own.path_epoch_last;
	if (is_bent) {
		peer.conn_epoch_last += fuzz_below(&e->in, 4);
		peer.path_epoch_last += fuzz_below(&e->in, 4);
	}
	if (is_initiator)
		mrc_hello_conclude(&own, &peer, &auth);
	else
		mrc_hello_conclude(&peer, &own, &auth);
	e->is_connect_due[path] = false;
	if (mrc_conn_join(e->conn, path, &auth, peer.boot_id) != 0) {
		ev.kind = MRC_EV_PATH_FAILED;
		ev.path.reason = MRC_REASON_CONNECT;
		if (is_initiator)
			eng_handle(e, &ev);
		return;
	}
	/* What was there before is closed first. */
	if (e->is_linked[path]) {
		struct mrc_event_in fenced = {.kind = MRC_EV_FENCED,
					      .path = {.index = path,
						       .path_epoch = e->link_epoch[path]}};

		e->is_linked[path] = false;
		e->is_fence_due[path] = false;
		eng_handle(e, &fenced);
		eng_pump(e);
	}
	ev.path.conn_epoch = auth.conn_epoch;
	ev.path.path_epoch = auth.path_epoch;
	ev.path.path_id = path;
	ev.path.peer_boot_id = peer.boot_id;
	ev.path.is_direct_capable = e->direct_mask >> path & 1;
	ev.path.receive_share = ev.path.is_direct_capable ? ENG_SHARE : 0;
	ev.path.version = auth.version;
	ev.path.features = auth.features;
	e->posted[path] = e->sent[path] = 0;
	e->is_linked[path] = true;
	e->link_epoch[path] = auth.path_epoch;
	memset(e->keys[path], 0, sizeof(e->keys[path]));
	if (eng_handle(e, &ev) != 0)
		e->is_linked[path] = false;
	else if (!is_bent)
		path_opens(e, path);
}

/* ---- right frames ---- */

/* Ends come home through the codec, as on a rail. */
static void say(struct eng *e, uint8_t path, struct draft *d)
{
	uint8_t raw[MRC_WIRE_HDR_BYTES], *body = NULL;
	struct mrc_wire_hdr hdr;

	if (d->hdr.type != MRC_WIRE_FRAG && d->hdr.type != MRC_WIRE_PROBE) {
		d->hdr.body_len = (uint32_t)(d->c.at - d->body);
		body = fuzz_copy(d->body, d->hdr.body_len);
	}
	mrc_wire_encode(&d->hdr, fuzz_crc32c, raw);
	if (mrc_wire_decode(raw, fuzz_crc32c, &hdr) == 0)
		eng_arrive(e, path, &hdr, body, !d->is_body_bad, !d->is_unplaced);
	else
		eng_link_down(e, path, MRC_REASON_PROTOCOL);
	free(body);
}

static void draft_begin(const struct eng *e, uint8_t path, enum mrc_wire_type type, struct draft *d)
{
	memset(d, 0, sizeof(*d));
	d->hdr = (struct mrc_wire_hdr){
		.type = (uint8_t)type,
		.conn_epoch = e->conn->epoch,
		.path_epoch = e->link_epoch[path],
	};
	d->c = (struct mrc_cursor){.at = d->body, .end = d->body + sizeof(d->body), .ok = true};
}

static void put_half(struct eng *e, struct draft *d)
{
	mrc_put_u64(&d->c, 8192);
	mrc_put_u64(&d->c, ENG_MSG_BYTES_MAX);
	mrc_put_u32(&d->c, e->window);
	mrc_put_u32(&d->c, 1 + fuzz_below(&e->in, ENG_SPACES));
	mrc_put_u64(&d->c, 65536);
}

static void put_drain(struct eng *e, struct draft *d)
{
	mrc_put_u8(&d->c, e->path_count);
	for (uint8_t i = 0; i < e->path_count; i++) {
		mrc_put_u16(&d->c, e->conn->paths[i].path_id);
		mrc_put_u32(&d->c, e->conn->paths[i].epoch);
		mrc_put_u64(&d->c, e->conn->paths[i].taken);
	}
}

static void draft_about(struct eng *e, struct draft *d)
{
	struct mrc_about about = {.mtu = fuzz_u8(&e->in),
				  .kind = (uint8_t)fuzz_below(&e->in, MRC_ABOUT_KIND_COUNT)};

	memset(about.kernel, 'k', fuzz_below(&e->in, MRC_ABOUT_TEXT_MAX + 1));
	mrc_about_put(&about, &d->c);
}

static void put_state(const struct mrc_channel *ch, struct draft *d)
{
	mrc_put_u64(&d->c, ch ? ch->send_next : 0);
	mrc_put_u64(&d->c, ch ? ch->send_next : 0);
	mrc_put_u64(&d->c, ch ? ch->send_next : 0);
	mrc_put_u64(&d->c, ch ? ch->final_next : 0);
	mrc_put_u64(&d->c, ch ? ch->ring_next + ch->peer_ring_bytes : 0);
	mrc_put_u64(&d->c, ch ? ch->settled + ch->peer_window : 0);
}

static void put_ack(struct eng *e, struct draft *d)
{
	mrc_put_u64(&d->c, e->conn->ctl_sent);
	mrc_put_u8(&d->c, e->path_count);
	for (uint8_t i = 0; i < e->path_count; i++) {
		mrc_put_u16(&d->c, e->conn->paths[i].path_id);
		mrc_put_u32(&d->c, e->conn->paths[i].epoch);
		mrc_put_u64(&d->c, e->conn->paths[i].posted);
	}
}

void eng_peer_ack_all(struct eng *e, uint8_t path)
{
	struct draft d;

	draft_begin(e, path, MRC_WIRE_ACK, &d);
	put_ack(e, &d);
	say(e, path, &d);
}

void eng_peer_path_good(struct eng *e, uint8_t path)
{
	for (int i = 0; i < 6 && e->is_linked[path]; i++) {
		struct draft d;

		eng_pump(e);
		if (e->conn->paths[path].state == MRC_PATH_GOOD)
			break;
		e->now_ns += 10 * MRC_US;
		draft_begin(e, path, MRC_WIRE_PROBE_ACK, &d);
		d.hdr.msg = e->conn->paths[path].probe_id;
		say(e, path, &d);
	}
	eng_pump(e);
}

/* What the peer's rail is, first of all; and how its landing memory is written, where it may be. */
static void path_opens(struct eng *e, uint8_t path)
{
	bool is_direct = e->direct_mask >> path & 1;
	struct draft d;

	draft_begin(e, path, MRC_WIRE_PATH_OPEN, &d);
	d.hdr.arg = is_direct ? 1 | (uint64_t)ENG_SHARE << 32 : 0;
	say(e, path, &d);
	for (uint32_t space = 1; is_direct && space <= ENG_SPACES; space++)
		eng_peer_keys(e, path, space, true);
}

void eng_peer_keys(struct eng *e, uint8_t path, uint32_t space, bool is_valid)
{
	struct draft d;

	draft_begin(e, path, MRC_WIRE_KEYS, &d);
	d.hdr.msg = space;
	d.hdr.addr = (uint64_t)space << 32;
	d.hdr.arg = (100 + space) | (uint64_t)is_valid << 32;
	if (e->is_linked[path])
		e->keys[path][space - 1] =
			true; /* and it may go on by it until it has heard otherwise */
	say(e, path, &d);
}

static void draft_open(struct eng *e, bool is_unordered, struct draft *d)
{
	char service[MRC_NAME_MAX + 1] = "svc";
	uint32_t id = mrc_conn_is_initiator(e->conn) ? 1 : 0;

	while (mrc_conn_channel_by_wire(e->conn, id))
		id += 2;
	d->hdr.msg = e->conn->ctl_taken;
	d->hdr.channel = id;
	d->hdr.flags = is_unordered ? MRC_WIRE_F_UNORDERED : 0;
	put_half(e, d);
	mrc_put_bytes(&d->c, service, sizeof(service));
}

void eng_peer_open(struct eng *e, uint8_t path, bool is_unordered)
{
	struct draft d;

	draft_begin(e, path, MRC_WIRE_OPEN, &d);
	draft_open(e, is_unordered, &d);
	say(e, path, &d);
}

void eng_peer_accept(struct eng *e, uint8_t path, struct eng_channel *ch)
{
	struct draft d;

	draft_begin(e, path, MRC_WIRE_ACCEPT, &d);
	d.hdr.msg = e->conn->ctl_taken;
	d.hdr.channel = wire_id(e, ch);
	put_half(e, &d);
	say(e, path, &d);
}

/* ---- messages of the peer's ---- */

/* A message not yet begun: small into the ring, or a question. */
static void draft_begins(struct eng *e, struct eng_channel *ch, struct draft *d)
{
	static const uint64_t lens[] = {0,    1,   64,   300, ENG_EAGER_MAX, 2048,
					4096, 100, 5000, 128, 20000,         ENG_MSG_BYTES_MAX};
	uint64_t len = lens[fuzz_below(&e->in, MRC_ARRAY_LEN(lens))];

	d->hdr.msg = ch->peer_next++;
	d->hdr.msg_len = len;
	if (d->hdr.type == MRC_WIRE_RTS || len > ch->ring_bytes / 2) {
		d->hdr.type = MRC_WIRE_RTS;
		return;
	}
	if (ch->peer_ring_next % ch->ring_bytes + len > ch->ring_bytes)
		ch->peer_ring_next += ch->ring_bytes - ch->peer_ring_next % ch->ring_bytes;
	d->hdr.addr = ch->peer_ring_next;
	ch->peer_ring_next += len;
	d->hdr.flags = MRC_WIRE_F_EAGER;
	d->hdr.body_len = (uint32_t)len;
	if (len > 1 && fuzz_flip(&e->in))
		d->hdr.body_len = (uint32_t)len / 2; /* the rest comes later */
}

/* More of one that is known and not whole; false: there is none. */
static bool draft_continues(struct eng *e, struct mrc_channel *inside, struct draft *d)
{
	uint32_t from = fuzz_u8(&e->in);

	for (uint32_t i = 0; i < inside->in_window; i++) {
		uint64_t number = inside->peer_settled + (from + i) % inside->in_window;
		const struct mrc_msg_in *msg = mrc_channel_in(inside, number);
		uint64_t start = 0, end = 0;

		if (!msg->is_known || !msg->is_granted || msg->is_whole || msg->len == 0)
			continue;
		if (!mrc_range_set_gap(&e->conn->ranges, &msg->here, 0, msg->len, &start, &end))
			continue;
		d->hdr.msg = number;
		d->hdr.msg_len = msg->len;
		d->hdr.addr = msg->addr;
		d->hdr.flags = msg->is_eager ? MRC_WIRE_F_EAGER : 0;
		d->hdr.offset = start;
		if (fuzz_below(&e->in, 4) == 0) /* leave a gap */
			d->hdr.offset += (end - start) / 2;
		d->hdr.body_len = (uint32_t)(end - d->hdr.offset);
		if (fuzz_below(&e->in, 4) == 0)
			d->hdr.body_len = (d->hdr.body_len + 1) / 2;
		return true;
	}
	return false;
}

static void draft_frag(struct eng *e, uint8_t path, struct eng_channel *ch, struct draft *d)
{
	struct mrc_channel *inside = ch ? mrc_conn_channel(e->conn, ch->id) : NULL;
	uint32_t how;

	if (!inside || !ch->has_client || ch->ring_bytes == 0)
		return;
	d->hdr.arg = MRC_MIN(inside->final_next, inside->peer_settled_stated);
	if (fuzz_flip(&e->in))
		d->hdr.arg = inside->final_next;
	if (d->hdr.type == MRC_WIRE_RTS || fuzz_flip(&e->in) || !draft_continues(e, inside, d))
		draft_begins(e, ch, d);
	if (d->hdr.type != MRC_WIRE_FRAG)
		return;
	how = fuzz_u8(&e->in);
	if (how & 1)
		d->hdr.flags |= MRC_WIRE_F_PLACED;
	if (how & 2)
		d->hdr.flags |= MRC_WIRE_F_VISIBLE;
	if (how % 5 == 0)
		d->hdr.flags |= MRC_WIRE_F_TRACED;
	d->is_body_bad = (how & 0x1c) == 0x1c;
	d->is_unplaced = (how & 0xe0) == 0xe0;
	if (e->direct_mask >> path & 1 && d->hdr.body_len) {
		uint8_t writer = (uint8_t)fuzz_below(&e->in, e->path_count);

		switch (fuzz_below(&e->in, 3)) {
		case 0: /* rides in the frame */
			break;
		case 1:
			d->hdr.flags |= MRC_WIRE_F_DIRECT;
			writer = path;
			/* fall through */
		default:
			if (!(d->hdr.flags & MRC_WIRE_F_DIRECT))
				d->hdr.flags |= MRC_WIRE_F_COPY;
			d->hdr.writer_path = e->conn->paths[writer].path_id;
			d->hdr.writer_epoch = e->conn->paths[writer].epoch;
			break;
		}
	}
}

/* ---- facts about ours ---- */

/* One of our messages in flight, by the input's choice. */
static struct mrc_msg_out *out_pick(struct eng *e, struct mrc_channel *inside, struct draft *d)
{
	uint64_t span = inside ? inside->send_next - inside->settled : 0;

	if (span == 0)
		return NULL;
	d->hdr.msg = inside->settled + fuzz_u8(&e->in) % span;
	return mrc_channel_out(inside, d->hdr.msg);
}

static void draft_fact(struct eng *e, struct eng_channel *ch, struct draft *d)
{
	struct mrc_channel *inside = ch ? mrc_conn_channel(e->conn, ch->id) : NULL;
	struct mrc_msg_out *out;
	uint8_t how;

	if (inside && inside->out == NULL)
		inside = NULL;
	switch (d->hdr.type) {
	case MRC_WIRE_CTS:
		out = out_pick(e, inside, d);
		d->hdr.msg_len = out ? out->len : 0;
		d->hdr.addr = out && out->is_granted ? out->landing : 4096;
		break;
	case MRC_WIRE_WANT:
		out = out_pick(e, inside, d);
		d->hdr.msg_len = out ? out->next_offset : 1;
		d->hdr.arg = fuzz_flip(&e->in);
		break;
	case MRC_WIRE_LEVEL:
		out_pick(e, inside, d);
		how = fuzz_u8(&e->in);
		d->hdr.arg = how & 3;
		if (how & 4)
			d->hdr.arg = 3 | 1 << 8; /* committed */
		if (how & 8)
			d->hdr.arg = 1 | 1 << 8 | 0xffULL << 16 | 5ULL << 32; /* rejected */
		if (how & 16)
			d->hdr.arg = 1 << 8 | 0xfbULL << 16; /* void */
		if (how & 32) {
			d->hdr.flags |= MRC_WIRE_F_TRACED;
			for (int i = 0; i < MRC_MOMENTS_TOLD; i++)
				mrc_put_u64(&d->c, fuzz_uint(&e->in, 8));
		}
		for (uint32_t len = how & 64 ? fuzz_u8(&e->in) % 66U : 0; len; len--)
			mrc_put_u8(&d->c, fuzz_u8(&e->in));
		break;
	default: /* STATE */
		put_state(inside, d);
		break;
	}
}

/* One that is known, or the next, which then has a place in the ring or had none. */
static void draft_void(struct eng *e, struct eng_channel *ch, struct mrc_channel *inside,
		       struct draft *d)
{
	const struct mrc_msg_in *msg;

	if (!inside || !inside->in_window)
		return;
	d->hdr.arg = MRC_MIN(inside->final_next, inside->peer_settled_stated);
	if (fuzz_flip(&e->in)) {
		struct draft other = {.hdr = {.type = MRC_WIRE_FRAG}};

		draft_begins(e, ch, &other);
		d->hdr.offset = other.hdr.msg;
		if (other.hdr.type == MRC_WIRE_FRAG && other.hdr.msg_len) {
			d->hdr.msg_len = other.hdr.msg_len;
			d->hdr.addr = other.hdr.addr;
		}
		return;
	}
	d->hdr.offset = inside->peer_settled + fuzz_below(&e->in, inside->in_window);
	msg = mrc_channel_in(inside, d->hdr.offset);
	if (msg->is_known && msg->is_eager && msg->len) {
		d->hdr.msg_len = msg->len;
		d->hdr.addr = msg->addr;
	}
}

static void draft_ctl(struct eng *e, struct eng_channel *ch, struct draft *d)
{
	struct mrc_channel *inside = ch ? mrc_conn_channel(e->conn, ch->id) : NULL;

	d->hdr.msg = e->conn->ctl_taken;
	switch (d->hdr.type) {
	case MRC_WIRE_OPEN:
		draft_open(e, fuzz_flip(&e->in), d);
		break;
	case MRC_WIRE_ACCEPT:
		put_half(e, d);
		break;
	case MRC_WIRE_REFUSE:
		d->hdr.arg = (uint32_t)MRC_OUT_REFUSED | 9ULL << 32;
		break;
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
		d->hdr.arg = d->hdr.type == MRC_WIRE_RESET
				     ? (uint32_t) - (int)fuzz_below(&e->in, 16)
				     : 0;
		d->hdr.offset = inside ? inside->deliver_next : 0;
		put_state(inside, d);
		put_drain(e, d);
		break;
	default: /* VOID */
		draft_void(e, ch, inside, d);
		put_drain(e, d);
		break;
	}
}

static void draft_path(struct eng *e, struct draft *d)
{
	const struct mrc_path *other = &e->conn->paths[fuzz_below(&e->in, e->path_count)];

	switch (d->hdr.type) {
	case MRC_WIRE_PROBE:
		d->hdr.msg = fuzz_u8(&e->in);
		d->hdr.arg = fuzz_u8(&e->in);
		d->hdr.offset = e->conn->peer_port_version + fuzz_below(&e->in, 3);
		d->hdr.addr = fuzz_u8(&e->in);
		break;
	case MRC_WIRE_PROBE_ACK:
		d->hdr.msg = other->probe_id;
		d->hdr.addr = FUZZ_NEAR(&e->in, e->now_ns, 0, 1, UINT64_MAX);
		d->hdr.offset = FUZZ_NEAR(&e->in, d->hdr.addr, 0, d->hdr.addr + 1000, UINT64_MAX);
		break;
	default: /* PATH_FENCE, PATH_FENCED */
		d->hdr.msg = other->path_id;
		d->hdr.arg = other->epoch;
		d->hdr.offset = other->taken;
		break;
	}
}

/* Turn one thing of it a little, or into anything. */
static void bend(struct eng *e, struct draft *d)
{
	struct mrc_wire_hdr *h = &d->hdr;
	size_t body_len = (size_t)(d->c.at - d->body);
	uint32_t at;

	switch (fuzz_below(&e->in, 14)) {
	case 0:
		h->msg = FUZZ_NEAR(&e->in, h->msg, 0, h->msg + e->window);
		break;
	case 1:
		h->offset = FUZZ_NEAR(&e->in, h->offset, 0, h->msg_len, UINT64_MAX);
		break;
	case 2:
		h->msg_len = FUZZ_NEAR(&e->in, h->msg_len, 0, ENG_EAGER_MAX, e->ring_bytes / 2,
				       ENG_MSG_BYTES_MAX);
		break;
	case 3:
		h->addr = FUZZ_NEAR(&e->in, h->addr, 0, e->ring_bytes, h->addr + e->ring_bytes,
				    UINT64_MAX);
		break;
	case 4:
		h->arg = FUZZ_NEAR(&e->in, h->arg, 0, h->msg, h->arg + e->window);
		break;
	case 5:
		h->body_len =
			(uint32_t)FUZZ_NEAR(&e->in, h->body_len, 0, h->msg_len, MRC_FRAG_BYTES_MAX);
		break;
	case 6:
		h->flags ^= (uint16_t)(1U << fuzz_below(&e->in, 11));
		break;
	case 7:
		h->channel = (uint32_t)FUZZ_NEAR(&e->in, h->channel, 0, 1, h->channel + 2);
		break;
	case 8:
		h->writer_path = (uint16_t)fuzz_u8(&e->in);
		break;
	case 9:
		h->writer_epoch = (uint32_t)FUZZ_NEAR(&e->in, h->writer_epoch, 0, h->path_epoch);
		break;
	case 10:
		h->conn_epoch = (uint32_t)FUZZ_NEAR(&e->in, h->conn_epoch, 0);
		break;
	case 11:
		h->path_epoch = (uint32_t)FUZZ_NEAR(&e->in, h->path_epoch, 0);
		break;
	case 12:
		d->c.at = d->body + (body_len ? fuzz_below(&e->in, 255) % body_len : 0);
		break;
	default:
		if (body_len == 0)
			break;
		/* One number of the body, 8 bytes from somewhere on. */
		at = fuzz_below(&e->in, 255) % (uint32_t)body_len;
		for (uint32_t i = 0; i < 8 && at + i < body_len; i++) {
			uint8_t v = fuzz_u8(&e->in);

			d->body[at + i] = i ? (uint8_t)(d->body[at + i] ^ (v & 1 ? v : 0))
					    : (uint8_t)(d->body[at] + v);
		}
		break;
	}
}

void eng_peer_frame(struct eng *e)
{
	static const uint8_t types[] = {MRC_WIRE_FRAG,       MRC_WIRE_ABOUT,      MRC_WIRE_FRAG,
					MRC_WIRE_FRAG,       MRC_WIRE_FRAG,       MRC_WIRE_FRAG,
					MRC_WIRE_RTS,        MRC_WIRE_RTS,        MRC_WIRE_ACK,
					MRC_WIRE_ACK,        MRC_WIRE_ACK,        MRC_WIRE_STATE,
					MRC_WIRE_STATE,      MRC_WIRE_LEVEL,      MRC_WIRE_LEVEL,
					MRC_WIRE_CTS,        MRC_WIRE_CTS,        MRC_WIRE_WANT,
					MRC_WIRE_VOID,       MRC_WIRE_VOID,       MRC_WIRE_OPEN,
					MRC_WIRE_ACCEPT,     MRC_WIRE_REFUSE,     MRC_WIRE_CLOSE,
					MRC_WIRE_RESET,      MRC_WIRE_DRAINED,    MRC_WIRE_PROBE,
					MRC_WIRE_PROBE_ACK,  MRC_WIRE_PATH_OPEN,  MRC_WIRE_KEYS,
					MRC_WIRE_NOP,        MRC_WIRE_HELLO,      MRC_WIRE_AUTH,
					MRC_WIRE_PATH_FENCE, MRC_WIRE_PATH_FENCED};
	enum mrc_wire_type type =
		(enum mrc_wire_type)types[fuzz_below(&e->in, MRC_ARRAY_LEN(types))];
	uint8_t path = (uint8_t)fuzz_below(&e->in, e->path_count);
	struct eng_channel *ch = eng_channel_pick(e);
	uint32_t bends = fuzz_u8(&e->in);
	struct draft d;

	draft_begin(e, path, type, &d);
	d.hdr.channel = wire_id(e, ch);
	switch (type) {
	case MRC_WIRE_FRAG:
	case MRC_WIRE_RTS:
		draft_frag(e, path, ch, &d);
		break;
	case MRC_WIRE_CTS:
	case MRC_WIRE_WANT:
	case MRC_WIRE_LEVEL:
	case MRC_WIRE_STATE:
		draft_fact(e, ch, &d);
		break;
	case MRC_WIRE_ACK:
		d.hdr.arg = fuzz_flip(&e->in);
		put_ack(e, &d);
		break;
	case MRC_WIRE_DRAINED:
		put_drain(e, &d);
		break;
	case MRC_WIRE_OPEN:
	case MRC_WIRE_ACCEPT:
	case MRC_WIRE_REFUSE:
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
	case MRC_WIRE_VOID:
		draft_ctl(e, ch, &d);
		break;
	case MRC_WIRE_PROBE:
	case MRC_WIRE_PROBE_ACK:
	case MRC_WIRE_PATH_FENCE:
	case MRC_WIRE_PATH_FENCED:
		draft_path(e, &d);
		break;
	case MRC_WIRE_KEYS:
		d.hdr.msg = 1 + fuzz_below(&e->in, ENG_SPACES);
		d.hdr.addr = d.hdr.msg << 32;
		d.hdr.arg = (100 + d.hdr.msg) | (uint64_t)fuzz_flip(&e->in) << 32;
		if (e->is_linked[path])
			e->keys[path][d.hdr.msg - 1] = true;
		break;
	case MRC_WIRE_ABOUT:
		draft_about(e, &d);
		break;
	case MRC_WIRE_PATH_OPEN:
		d.hdr.arg = fuzz_flip(&e->in) | (uint64_t)fuzz_below(&e->in, 32) << 32;
		break;
	default:
		break;
	}
	/* Two of three are left right: a path that is closed at once shows little. */
	if (bends % 3 == 0)
		bend(e, &d);
	if (bends % 9 == 0)
		bend(e, &d);
	if (type == MRC_WIRE_KEYS)
		e->is_key_bent[path] = e->is_key_bent[path] || bends % 3 == 0;
	say(e, path, &d);
}
