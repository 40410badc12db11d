/* SPDX-License-Identifier: BSD-2-Clause */
/* The embedder of the fuzzed engine: honest, and watching. */
#include <errno.h>

#include "fuzz_engine.h"

#define ALLOCS_LIVE_MAX 256
#define ACTIONS_MAX     20000U

static void *eng_alloc(void *context, size_t bytes)
{
	struct eng *e = context;

	e->allocs++;
	e->allocs_live++;
	FUZZ_CHECK(e->allocs_live < ALLOCS_LIVE_MAX);
	return calloc(1, bytes);
}

static void eng_alloc_free(void *context, void *memory)
{
	struct eng *e = context;

	e->allocs_live--;
	free(memory);
}

void eng_new(struct eng *e)
{
	uint8_t flags = fuzz_u8(&e->in), shape = fuzz_u8(&e->in);
	struct mrc_conn_config config = {
		.host = flags & 1 ? "a" : "b",
		.peer = flags & 1 ? "b" : "a",
		.boot_id = ENG_BOOT,
		.seed = 3,
		.features = MRC_FEATURE_ABOUT | MRC_FEATURE_HOST_DRAIN | MRC_FEATURE_DRILL,
		.limits = {.channels_max = ENG_LIVE_MAX,
			   .frames_in_flight_max = 64,
			   .holds_max = ENG_HOLDS_MAX,
			   .ranges_max = 16,
			   .eager_bytes_max = ENG_EAGER_MAX,
			   .frag_bytes_max = 4096,
			   .path_window_bytes_min = 8192,
			   .path_window_bytes_max = 65536},
		.alloc = {eng_alloc, eng_alloc_free, e},
	};

	e->path_count = (uint8_t)(1 + (flags >> 1 & 3));
	e->is_auto_sent = !(flags & 8);
	e->is_auto_fenced = !(flags & 16);
	e->is_auto_landing = !(flags & 32);
	e->is_auto_accept = !(flags & 64);
	e->direct_mask = shape & 15;
	e->window = 4U << (shape >> 4 & 3);
	e->ring_bytes = 4096U << (shape >> 6 & 1);
	e->now_ns = MRC_S;
	e->peer_boot_id = 100;
	e->hold_next = 1;
	e->landing_next = 1 << 20;
	config.path_count = e->path_count;
	FUZZ_CHECK(mrc_conn_new(&config, &e->conn) == 0);
}

void eng_free(struct eng *e)
{
	mrc_conn_free(e->conn);
	FUZZ_CHECK(e->allocs_live == 0);
}

uint64_t eng_cookie(const struct eng *e, const struct eng_channel *ch)
{
	return (uint64_t)(ch - e->channels) + 1;
}

static struct eng_channel *channel_of(struct eng *e, uint64_t cookie)
{
	FUZZ_CHECK(cookie >= 1 && cookie <= ENG_CHANNELS_MAX);
	FUZZ_CHECK(e->channels[cookie - 1].id != 0);
	return &e->channels[cookie - 1];
}

static struct eng_channel *channel_by_id(struct eng *e, uint32_t id)
{
	for (uint32_t i = 0; i < ENG_CHANNELS_MAX; i++) {
		if (e->channels[i].id == id)
			return &e->channels[i];
	}
	return NULL;
}

static struct eng_channel *channel_new(struct eng *e)
{
	for (uint32_t i = 0; i < ENG_CHANNELS_MAX; i++) {
		if (e->channels[i].id == 0)
			return &e->channels[i];
	}
	return NULL;
}

struct eng_channel *eng_channel_pick(struct eng *e)
{
	uint32_t count = 0;

	while (count < ENG_CHANNELS_MAX && e->channels[count].id)
		count++;
	return count ? &e->channels[fuzz_below(&e->in, count)] : NULL;
}

/* Channels and what they land in are set up by these, and bounded; nothing else takes memory. */
static bool begins_something(const struct mrc_event_in *ev)
{
	if (ev->kind == MRC_EV_ARRIVED)
		return ev->arrived.hdr->type == MRC_WIRE_OPEN ||
		       ev->arrived.hdr->type == MRC_WIRE_ACCEPT ||
		       ev->arrived.hdr->type == MRC_WIRE_KEYS;
	return ev->kind == MRC_EV_CH_OPEN || ev->kind == MRC_EV_CH_ACCEPT;
}

int eng_handle(struct eng *e, const struct mrc_event_in *ev)
{
	uint64_t allocs = e->allocs;
	bool may_allocate = begins_something(ev);
	int r = mrc_conn_handle(e->conn, ev, e->now_ns);

	FUZZ_CHECK(may_allocate || e->allocs == allocs);
	return r;
}

/* ---- memory ---- */

/* May these bytes be written now? */
static void landing_check(struct eng *e, uint64_t cookie, bool is_eager, uint64_t addr,
			  uint64_t len)
{
	struct eng_channel *ch = channel_of(e, cookie);

	FUZZ_CHECK(ch->has_client);
	FUZZ_CHECK(!ch->is_freed);
	if (!is_eager) {
		for (uint32_t i = 0; i < ENG_GRANTS_MAX; i++) {
			const struct eng_grant *g = &ch->grants[i];

			if (!g->is_live || addr < g->addr || addr - g->addr >= g->len)
				continue;
			FUZZ_CHECK(len <= g->len - (addr - g->addr));
			FUZZ_CHECK(!g->is_delivered);
			return;
		}
		FUZZ_CHECK(!"a write into memory that was not granted");
	}
	FUZZ_CHECK(addr <= ch->ring_bytes && len <= ch->ring_bytes - addr);
	for (uint32_t i = 0; i < ENG_NUMBERS_MAX; i++) {
		const struct eng_arrival *a = &ch->arrivals[i];

		if (a->is_delivered && a->is_eager && !a->is_released && a->len)
			FUZZ_CHECK(addr + len <= a->addr || a->addr + a->len <= addr);
	}
}

static struct eng_grant *grant_find(struct eng_channel *ch, uint64_t number)
{
	for (uint32_t i = 0; i < ENG_GRANTS_MAX; i++) {
		if (ch->grants[i].is_live && ch->grants[i].number == number)
			return &ch->grants[i];
	}
	return NULL;
}

void eng_landing_answer(struct eng *e, struct eng_channel *ch)
{
	struct mrc_event_in ev = {.kind = MRC_EV_LANDING,
				  .msg = {.channel = ch->id,
					  .number = ch->want.number,
					  .addr = e->landing_next}};
	uint32_t i = 0;

	while (i < ENG_GRANTS_MAX && ch->grants[i].is_live)
		i++;
	if (!ch->want.is_live || i == ENG_GRANTS_MAX)
		return; /* its arena is full */
	ch->want.is_live = false;
	/* Before the event: the engine may use it at once. */
	ch->grants[i] = (struct eng_grant){.is_live = true,
					   .number = ch->want.number,
					   .addr = e->landing_next,
					   .len = ch->want.len};
	e->landing_next += ch->want.len + 64;
	if (eng_handle(e, &ev) != 0)
		ch->grants[i].is_live = false;
}

/* ---- actions ---- */

static void on_post(struct eng *e, const struct mrc_act_post *post)
{
	uint8_t i = post->index;
	uint8_t raw[MRC_WIRE_HDR_BYTES];
	struct eng_posted reads = {0};
	struct mrc_wire_hdr hdr;

	FUZZ_CHECK(i < e->path_count);
	FUZZ_CHECK(post->body_len <= MRC_WIRE_CTL_BYTES_MAX);
	FUZZ_CHECK(post->hdr.type == MRC_WIRE_FRAG || post->hdr.type == MRC_WIRE_PROBE ||
		   post->hdr.body_len == post->body_len);
	/* What we say to others obeys the rules that we hold them to. */
	mrc_wire_encode(&post->hdr, fuzz_crc32c, raw);
	FUZZ_CHECK(mrc_wire_decode(raw, fuzz_crc32c, &hdr) == 0);
	if (hdr.type == MRC_WIRE_FRAG && hdr.body_len) {
		struct eng_channel *ch = channel_of(e, post->channel_cookie);
		uint64_t cookie = post->payload_addr >> ENG_SEND_SHIFT;
		uint64_t at = post->payload_addr & ((1U << ENG_SEND_SHIFT) - 1);

		FUZZ_CHECK(cookie < ch->sends && !ch->is_answered[cookie]);
		FUZZ_CHECK(at + hdr.body_len <= ch->send_len[cookie]);
		reads = (struct eng_posted){.cookie = post->channel_cookie, .msg = cookie};
	}
	if (!e->is_linked[i] || e->link_epoch[i] != post->path_epoch)
		return;
	if (hdr.flags & MRC_WIRE_F_DIRECT && !e->is_key_bent[i]) {
		uint64_t space = post->rkey - 101;

		FUZZ_CHECK(space < ENG_SPACES && e->keys[i][space]);
		FUZZ_CHECK(post->remote_addr >= (space + 1) << 32);
	}
	FUZZ_CHECK(e->posted[i] - e->sent[i] < ENG_FRAMES_MAX);
	e->queue[i][e->posted[i]++ % ENG_FRAMES_MAX] = reads;
	if (e->is_auto_sent) {
		struct mrc_event_in ev = {.kind = MRC_EV_SENT,
					  .path = {.index = i,
						   .path_epoch = post->path_epoch,
						   .count = e->posted[i]}};

		e->sent[i] = e->posted[i];
		eng_handle(e, &ev);
	}
}

static void fenced(struct eng *e, uint8_t i, uint32_t epoch)
{
	struct mrc_event_in ev = {.kind = MRC_EV_FENCED, .path = {.index = i, .path_epoch = epoch}};

	e->is_fence_due[i] = false;
	if (e->link_epoch[i] == epoch)
		e->is_linked[i] = false;
	eng_handle(e, &ev);
}

static void on_fence(struct eng *e, const struct mrc_act_path *act)
{
	FUZZ_CHECK(act->index < e->path_count);
	if (e->is_auto_fenced) {
		fenced(e, act->index, act->path_epoch);
		return;
	}
	e->is_fence_due[act->index] = true;
	e->fence_epoch[act->index] = act->path_epoch;
}

static void on_incoming(struct eng *e, const struct mrc_act_channel *act)
{
	struct eng_channel *ch = channel_new(e);

	FUZZ_CHECK(channel_by_id(e, act->id) == NULL);
	FUZZ_CHECK(memchr(act->service, 0, sizeof(act->service)) != NULL);
	if (ch == NULL) {
		struct mrc_event_in ev = {.kind = MRC_EV_CH_REFUSE,
					  .channel = {.id = act->id,
						      .outcome = MRC_OUT_NO_RESOURCES}};

		eng_handle(e, &ev);
		return;
	}
	*ch = (struct eng_channel){.id = act->id,
				   .is_incoming = true,
				   .is_unordered = act->is_unordered};
	if (e->is_auto_accept)
		eng_accept(e, ch);
}

void eng_accept(struct eng *e, struct eng_channel *ch)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ACCEPT,
				  .channel = {.id = ch->id,
					      .flow = 2,
					      .cookie = eng_cookie(e, ch),
					      .ring_addr = 4096 * eng_cookie(e, ch),
					      .ring_bytes = e->ring_bytes,
					      .msg_bytes_max = ENG_MSG_BYTES_MAX,
					      .window = e->window}};

	if (eng_handle(e, &ev) != 0)
		return;
	FUZZ_CHECK(ch->is_incoming && !ch->has_client);
	ch->is_incoming = false;
	ch->has_client = true;
	ch->ring_bytes = e->ring_bytes;
}

void eng_open(struct eng *e, bool is_unordered)
{
	struct eng_channel *ch = channel_new(e);
	uint32_t id = 0;
	struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN,
				  .channel = {.flow = 1,
					      .is_unordered = is_unordered,
					      .ring_bytes = e->ring_bytes,
					      .msg_bytes_max = ENG_MSG_BYTES_MAX,
					      .window = e->window,
					      .service = "svc",
					      .id_out = &id}};

	if (ch == NULL)
		return;
	ev.channel.cookie = eng_cookie(e, ch);
	ev.channel.ring_addr = 4096 * ev.channel.cookie;
	if (eng_handle(e, &ev) != 0)
		return;
	FUZZ_CHECK(id != 0 && channel_by_id(e, id) == NULL);
	*ch = (struct eng_channel){.id = id,
				   .has_client = true,
				   .is_opener = true,
				   .is_unordered = is_unordered,
				   .ring_bytes = e->ring_bytes};
}

void eng_send(struct eng *e, struct eng_channel *ch, uint64_t len, enum mrc_lvl level)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND,
				  .msg = {.channel = ch->id,
					  .level = level,
					  .cookie = ch->sends,
					  .addr = (uint64_t)ch->sends << ENG_SEND_SHIFT,
					  .len = len,
					  .is_traced = ch->sends % 2,
					  .fetched_ns = e->now_ns}};

	if (ch->sends == ENG_NUMBERS_MAX)
		return;
	ch->send_len[ch->sends] = len;
	if (eng_handle(e, &ev) == 0) {
		FUZZ_CHECK(ch->has_client && !ch->is_down);
		ch->sends++;
	}
}

static void on_channel(struct eng *e, const struct mrc_action *act)
{
	/* An incoming one that ends before it was accepted has no cookie yet. */
	struct eng_channel *ch = channel_by_id(e, act->channel.id);

	if (ch == NULL)
		return; /* refused above, for want of an entry */
	FUZZ_CHECK(!ch->is_freed);
	FUZZ_CHECK(!ch->has_client || act->channel.cookie == eng_cookie(e, ch));
	switch ((int)act->kind) {
	case MRC_ACT_CH_UP:
		FUZZ_CHECK(ch->has_client && !ch->is_up && !ch->is_down);
		ch->is_up = true;
		break;
	case MRC_ACT_CH_DOWN:
		FUZZ_CHECK(!ch->is_down);
		FUZZ_CHECK(ch->answered == ch->sends || ch->is_aborted);
		for (uint64_t i = 0; i < ch->sends; i++)
			FUZZ_CHECK(!ch->is_undecided[i] || ch->is_aborted);
		ch->is_down = true;
		ch->is_incoming = false;
		ch->want.is_live = false;
		break;
	case MRC_ACT_CH_FREE:
		FUZZ_CHECK(ch->answered == ch->sends || ch->is_aborted);
		ch->is_freed = true;
		ch->is_incoming = false;
		ch->want.is_live = false;
		for (uint32_t i = 0; i < ENG_GRANTS_MAX; i++)
			ch->grants[i].is_live = false;
		break;
	default: /* CH_ROOM */
		break;
	}
}

static void on_arrival(struct eng_channel *ch, const struct mrc_act_msg *act, bool is_gap)
{
	struct eng_arrival *a = &ch->arrivals[act->number % ENG_NUMBERS_MAX];

	FUZZ_CHECK(!ch->is_down && !ch->is_aborted);
	/* ENG_STEPS_MAX frames cannot get so far that the table comes round. */
	FUZZ_CHECK(act->number < ENG_NUMBERS_MAX);
	FUZZ_CHECK(!a->is_delivered && !a->is_gap);
	if (!ch->is_unordered) {
		FUZZ_CHECK(act->number == ch->number_next);
		ch->number_next = act->number + 1;
	}
	if (is_gap) {
		a->is_gap = true;
		return;
	}
	*a = (struct eng_arrival){.is_delivered = true,
				  .is_eager = act->is_eager,
				  .addr = act->addr,
				  .len = act->len};
	if (act->is_eager) {
		FUZZ_CHECK(act->addr <= ch->ring_bytes && act->len <= ch->ring_bytes - act->addr);
	} else {
		struct eng_grant *g = grant_find(ch, act->number);

		FUZZ_CHECK(g != NULL);
		FUZZ_CHECK(!g->is_delivered && g->addr == act->addr && g->len == act->len);
		g->is_delivered = true;
	}
}

static bool is_read(const struct eng *e, uint64_t cookie, uint64_t msg)
{
	for (uint8_t i = 0; i < e->path_count; i++) {
		for (uint64_t p = e->sent[i]; e->is_linked[i] && p < e->posted[i]; p++) {
			const struct eng_posted *posted = &e->queue[i][p % ENG_FRAMES_MAX];

			if (posted->cookie == cookie && posted->msg == msg)
				return true;
		}
	}
	return false;
}

static void on_traced(struct eng *e, const struct mrc_act_trace *trace)
{
	struct eng_channel *ch = channel_by_id(e, trace->channel);

	FUZZ_CHECK(ch != NULL && trace->number < ch->sends && trace->number % 2 == 1);
	FUZZ_CHECK(ch->is_answered[trace->number] && !ch->is_undecided[trace->number]);
	FUZZ_CHECK(!ch->is_traced[trace->number]);
	ch->is_traced[trace->number] = true;
}

static void on_message(struct eng *e, const struct mrc_action *act)
{
	const struct mrc_act_msg *m = &act->msg;
	struct eng_channel *ch = channel_of(e, m->channel_cookie);
	struct eng_grant *g;

	FUZZ_CHECK(ch->id == m->channel);
	FUZZ_CHECK(!ch->is_freed);
	switch ((int)act->kind) {
	case MRC_ACT_LANDING_WANT:
		FUZZ_CHECK(!ch->want.is_live && !ch->is_down);
		FUZZ_CHECK(m->len > 0 && m->len <= ENG_MSG_BYTES_MAX);
		ch->want.is_live = true;
		ch->want.number = m->number;
		ch->want.len = m->len;
		if (e->is_auto_landing)
			eng_landing_answer(e, ch);
		break;
	case MRC_ACT_LANDING_FREE:
		g = grant_find(ch, m->number);
		FUZZ_CHECK(g != NULL && g->addr == m->addr);
		g->is_live = false;
		break;
	case MRC_ACT_DELIVER:
		on_arrival(ch, m, false);
		break;
	case MRC_ACT_GAP:
		on_arrival(ch, m, true);
		break;
	case MRC_ACT_DONE:
		FUZZ_CHECK(m->cookie < ch->sends && !ch->is_answered[m->cookie]);
		FUZZ_CHECK(!ch->is_down);
		FUZZ_CHECK(m->outcome <= 0 && m->level <= MRC_LVL_COMMITTED);
		FUZZ_CHECK(!is_read(e, m->channel_cookie, m->cookie));
		ch->is_answered[m->cookie] = true;
		ch->is_undecided[m->cookie] = m->is_undecided;
		FUZZ_CHECK(!m->is_undecided || m->level >= MRC_LVL_PLACED);
		ch->answered++;
		break;
	case MRC_ACT_LATE:
		FUZZ_CHECK(m->cookie < ch->sends && ch->is_undecided[m->cookie]);
		FUZZ_CHECK(!ch->is_down && !m->is_undecided);
		FUZZ_CHECK(m->outcome <= 0 && m->level >= MRC_LVL_PLACED);
		ch->is_undecided[m->cookie] = false;
		break;
	default: { /* COPY */
		uint32_t i = 0;

		while (i < ENG_HOLDS_MAX && e->holds[i] != m->hold)
			i++;
		FUZZ_CHECK(m->hold && i < ENG_HOLDS_MAX);
		FUZZ_CHECK(m->hold_offset + m->len <= ENG_BODY_BYTES);
		landing_check(e, m->channel_cookie, m->is_eager, m->addr, m->len);
	} break;
	}
}

static void on_hold_free(struct eng *e, uint64_t hold)
{
	for (uint32_t i = 0; i < ENG_HOLDS_MAX; i++) {
		if (e->holds[i] == hold && hold) {
			e->holds[i] = 0;
			return;
		}
	}
	FUZZ_CHECK(!"a hold freed that the engine does not have");
}

static void perform(struct eng *e, const struct mrc_action *act)
{
	switch (act->kind) {
	case MRC_ACT_POST:
		on_post(e, &act->post);
		break;
	case MRC_ACT_CONNECT:
		FUZZ_CHECK(act->path.index < e->path_count);
		e->is_connect_due[act->path.index] = true;
		break;
	case MRC_ACT_FENCE:
		on_fence(e, &act->path);
		break;
	case MRC_ACT_CARRIER_ASK:
		FUZZ_CHECK(act->path.index < e->path_count);
		e->is_carrier_asked[act->path.index] = true;
		break;
	case MRC_ACT_STRIP:
		FUZZ_CHECK(act->path.index < e->path_count);
		memset(e->queue[act->path.index], 0, sizeof(e->queue[act->path.index]));
		break;
	case MRC_ACT_PATH_STATE:
	case MRC_ACT_CONN_RESET:
	case MRC_ACT_PEER_DRAIN:
	case MRC_ACT_PEER_DRILL:
		break;
	case MRC_ACT_CH_INCOMING:
		on_incoming(e, &act->channel);
		break;
	case MRC_ACT_CH_UP:
	case MRC_ACT_CH_DOWN:
	case MRC_ACT_CH_ROOM:
	case MRC_ACT_CH_FREE:
		on_channel(e, act);
		break;
	case MRC_ACT_LANDING_WANT:
	case MRC_ACT_LANDING_FREE:
	case MRC_ACT_DELIVER:
	case MRC_ACT_GAP:
	case MRC_ACT_DONE:
	case MRC_ACT_LATE:
	case MRC_ACT_COPY:
		on_message(e, act);
		break;
	case MRC_ACT_HOLD_FREE:
		on_hold_free(e, act->msg.hold);
		break;
	case MRC_ACT_TRACED:
		on_traced(e, &act->trace);
		break;
	default: /* a wish of a later engine */
		break;
	}
}

void eng_pump(struct eng *e)
{
	struct mrc_action act;
	uint64_t allocs = e->allocs;
	uint32_t turns = 0;

	while (mrc_conn_next_action(e->conn, &act, e->now_ns)) {
		FUZZ_CHECK(e->allocs == allocs);
		perform(e, &act);
		allocs = e->allocs; /* performing may accept a channel */
		FUZZ_CHECK(++turns < ACTIONS_MAX);
	}
}

void eng_tick(struct eng *e, uint64_t span_ns)
{
	const struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

	e->now_ns += span_ns;
	for (int i = 0; i < 3 && mrc_conn_deadline_ns(e->conn) <= e->now_ns; i++) {
		eng_handle(e, &ev);
		eng_pump(e);
	}
	FUZZ_CHECK(mrc_conn_deadline_ns(e->conn) > e->now_ns);
}

/* ---- paths ---- */

void eng_link_down(struct eng *e, uint8_t path, enum mrc_path_reason reason)
{
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_DOWN,
				  .path = {.index = path,
					   .path_epoch = e->link_epoch[path],
					   .reason = reason}};

	if (!e->is_linked[path])
		return;
	e->is_linked[path] = false;
	if (e->is_fence_due[path] && e->fence_epoch[path] == e->link_epoch[path])
		e->is_fence_due[path] = false;
	eng_handle(e, &ev);
}

/* Where would a stream of this fragment's payload go? False: some of it to scratch. */
static bool place(struct eng *e, const struct mrc_wire_hdr *hdr)
{
	struct mrc_place at;
	bool is_all = true;
	uint32_t done = 0;

	while (done < hdr->body_len) {
		uint32_t len = mrc_conn_place(e->conn, hdr, done, &at);

		FUZZ_CHECK(len > 0 && len <= hdr->body_len - done);
		if (at.is_scratch)
			is_all = false;
		else
			landing_check(e, at.channel_cookie, at.is_eager, at.addr, len);
		done += len;
	}
	/* Not for the answer, but it may be asked. */
	if (mrc_conn_place_whole(e->conn, hdr, &at) && is_all)
		landing_check(e, at.channel_cookie, at.is_eager, at.addr, hdr->body_len);
	return is_all;
}

int eng_arrive(struct eng *e, uint8_t path, const struct mrc_wire_hdr *hdr, const uint8_t *body,
	       bool is_body_good, bool is_placed)
{
	struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED,
				  .arrived = {.index = path,
					      .is_body_good = is_body_good,
					      .is_placed = is_placed,
					      .path_epoch = e->link_epoch[path],
					      .hdr = hdr,
					      .body = body}};
	int r;

	if (!e->is_linked[path])
		return 0;
	if (hdr->type == MRC_WIRE_FRAG) {
		ev.arrived.body = NULL;
		if (mrc_wire_has_body(hdr) && e->direct_mask >> path & 1) {
			/* A rail with direct placement receives it in memory of its own. */
			uint32_t i = 0;

			while (i < ENG_HOLDS_MAX && e->holds[i])
				i++;
			if (i == ENG_HOLDS_MAX)
				return 0; /* the rail waits for one */
			ev.arrived.hold = e->holds[i] = e->hold_next++;
		} else if (mrc_wire_has_body(hdr)) {
			ev.arrived.is_placed = place(e, hdr) && is_placed;
		}
	}
	r = eng_handle(e, &ev);
	FUZZ_CHECK(r == 0 || r == -EPROTO);
	if (r)
		eng_link_down(e, path, MRC_REASON_PROTOCOL);
	return r;
}
