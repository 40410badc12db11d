/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole engine, and a peer that passed the handshake and then says anything (fuzz_engine.h).
 *
 * The input: two bytes of shape, one of how far things are when it begins, then steps until it
 * ends: frames, what the host's clients do, what its rails and its clock do.
 */
#include <errno.h>

#include "fuzz_engine.h"

static void client_step(struct eng *e)
{
	static const uint64_t lens[] = {
		0,    1,    200,   ENG_EAGER_MAX,     ENG_EAGER_MAX + 1,
		2048, 9000, 30000, ENG_MSG_BYTES_MAX, ENG_MSG_BYTES_MAX + 1};
	struct eng_channel *ch = eng_channel_pick(e);
	uint32_t what = fuzz_below(&e->in, 17);
	struct mrc_event_in ev = {0};
	struct eng_arrival *a;

	if (what == 0 || ch == NULL) {
		eng_open(e, fuzz_flip(&e->in));
		return;
	}
	switch (what) {
	case 1:
		eng_accept(e, ch);
		return;
	case 2:
		ev.kind = MRC_EV_CH_REFUSE;
		ev.channel.id = ch->id;
		ev.channel.outcome = MRC_OUT_REFUSED;
		ev.channel.code = fuzz_u8(&e->in);
		if (eng_handle(e, &ev) == 0)
			ch->is_incoming = false;
		return;
	case 3:
		ev.kind = MRC_EV_CH_CLOSE;
		ev.channel.id = ch->id;
		eng_handle(e, &ev);
		return;
	case 4:
		/* A client that dies; what it held is nobody's any more. */
		if (!ch->has_client)
			return;
		ev.kind = MRC_EV_CH_ABORT;
		ev.channel.id = ch->id;
		if (eng_handle(e, &ev) == 0)
			ch->is_aborted = true;
		return;
	case 5:
	case 6:
	case 7:
	case 8:
		eng_send(e, ch, lens[fuzz_below(&e->in, MRC_ARRAY_LEN(lens))],
			 (enum mrc_lvl)(1 + fuzz_below(&e->in, 3)));
		return;
	case 9:
		eng_landing_answer(e, ch);
		return;
	case 16:
		ev.kind = MRC_EV_CANCEL;
		ev.msg.channel = ch->id;
		ev.msg.number = FUZZ_NEAR(&e->in, 0, ch->sends - 1, ch->sends - 2, ch->answered);
		ev.msg.outcome = MRC_OUT_TIMED_OUT;
		eng_handle(e, &ev);
		return;
	default:
		break;
	}
	ev.msg.channel = ch->id;
	ev.msg.number = FUZZ_NEAR(&e->in, ch->number_next - 1, ch->number_next - 2, 0,
				  ch->number_next - 3, ch->number_next);
	ev.msg.code = 5;
	ev.msg.text = "no room";
	ev.msg.text_len = (uint8_t)(ev.msg.number % 8); /* 0: none */
	ev.msg.visible_ns = e->now_ns - 1;
	ev.msg.verdict_ns = e->now_ns + ev.msg.number % 2; /* half of them cannot be */
	if (ev.msg.number >= ENG_NUMBERS_MAX || ch->is_aborted)
		return; /* the client side knows better than to ask that */
	a = &ch->arrivals[ev.msg.number];
	ev.kind = what == 10   ? MRC_EV_VISIBLE
		  : what == 11 ? MRC_EV_COMMIT
		  : what == 12 ? MRC_EV_REJECT
			       : MRC_EV_RELEASE;
	if (eng_handle(e, &ev) != 0)
		return;
	FUZZ_CHECK(a->is_delivered);
	if (ev.kind == MRC_EV_RELEASE) {
		FUZZ_CHECK(!a->is_released);
		a->is_released = true;
	}
}

static void rail_step(struct eng *e)
{
	uint8_t path = (uint8_t)fuzz_below(&e->in, e->path_count);
	struct mrc_event_in ev = {.path = {.index = path, .path_epoch = e->link_epoch[path]}};
	struct mrc_about about;

	switch (fuzz_below(&e->in, 14)) {
	case 0:
		eng_link_down(e, path, fuzz_flip(&e->in) ? MRC_REASON_ERROR : MRC_REASON_CLOSED);
		return;
	case 1:
		if (!e->is_connect_due[path])
			return;
		e->is_connect_due[path] = false;
		ev.kind = MRC_EV_PATH_FAILED;
		ev.path.reason = MRC_REASON_CONNECT;
		break;
	case 2:
	case 3:
		ev.kind = MRC_EV_CARRIER;
		ev.path.is_up = e->is_carrier_asked[path] ? fuzz_flip(&e->in) : path & 1;
		e->is_carrier_asked[path] = false;
		break;
	case 4:
		ev.kind = fuzz_flip(&e->in) ? MRC_EV_DENY : MRC_EV_ALLOW;
		break;
	case 5:
	case 6:
		if (!e->is_fence_due[path])
			return;
		ev.kind = MRC_EV_FENCED;
		ev.path.path_epoch = e->fence_epoch[path];
		e->is_fence_due[path] = false;
		if (e->link_epoch[path] == e->fence_epoch[path])
			e->is_linked[path] = false;
		break;
	case 7:
	case 8:
		if (!e->is_linked[path] || e->sent[path] == e->posted[path])
			return;
		e->sent[path] += 1 + fuzz_u8(&e->in) % (e->posted[path] - e->sent[path]);
		ev.kind = MRC_EV_SENT;
		ev.path.count = e->sent[path];
		break;
	case 12:
		ev = (struct mrc_event_in){.kind = MRC_EV_KEY,
					   .key = {.flow = 1 + fuzz_below(&e->in, 3),
						   .index = path,
						   .is_valid = fuzz_flip(&e->in),
						   .rkey = 5,
						   .base = 1ULL << 40}};
		break;
	case 13:
		memset(&about, 0, sizeof(about));
		about.mtu = fuzz_u8(&e->in);
		memset(about.rail, (int)about.mtu, fuzz_below(&e->in, sizeof(about.rail)));
		ev = (struct mrc_event_in){.kind = MRC_EV_ABOUT,
					   .about = {.index = path, .about = &about}};
		break;
	case 9:
		if (e->is_connect_due[path] || !mrc_conn_is_initiator(e->conn))
			eng_peer_connect(e, path, true);
		return;
	default:
		if (e->is_connect_due[path] || !mrc_conn_is_initiator(e->conn)) {
			eng_peer_connect(e, path, false);
			eng_peer_path_good(e, path);
		}
		return;
	}
	eng_handle(e, &ev);
}

static void time_step(struct eng *e)
{
	static const uint64_t spans[] = {
		0,           MRC_US,       100 * MRC_US, MRC_MS,         5 * MRC_MS,
		20 * MRC_MS, 200 * MRC_MS, MRC_S,        10 * MRC_S + 1, 3600 * MRC_S};
	uint64_t due_ns = mrc_conn_deadline_ns(e->conn);

	if (fuzz_flip(&e->in) && due_ns != MRC_NEVER)
		eng_tick(e, due_ns > e->now_ns ? due_ns - e->now_ns : 0);
	else
		eng_tick(e, spans[fuzz_below(&e->in, MRC_ARRAY_LEN(spans))]);
}

/* As far as the input says: paths in service, a channel each way. */
static void begin(struct eng *e)
{
	uint8_t how = fuzz_u8(&e->in);

	if (how & 1)
		return;
	eng_tick(e, MRC_MS);
	for (uint8_t i = 0; i < e->path_count; i++) {
		eng_peer_connect(e, i, false);
		eng_peer_path_good(e, i);
	}
	eng_peer_ack_all(e, 0);
	eng_pump(e);
	if (how & 2)
		return;
	eng_open(e, how >> 2 & 1);
	eng_pump(e);
	eng_peer_accept(e, 0, &e->channels[0]);
	eng_peer_open(e, 0, how >> 3 & 1);
	eng_pump(e);
	eng_peer_ack_all(e, 0);
	eng_pump(e);
}

static void look(struct eng *e)
{
	struct mrc_channel_info channel;
	struct mrc_conn_info info;
	uint32_t iter = 0, count = 0;

	mrc_conn_info(e->conn, &info);
	while (mrc_conn_channel_info(e->conn, &iter, &channel)) {
		FUZZ_CHECK(channel.state != NULL);
		count++;
	}
	FUZZ_CHECK(count == info.channel_count && count <= ENG_LIVE_MAX);
	FUZZ_CHECK(info.paths_good <= e->path_count);
	for (uint8_t i = 0; i < e->path_count; i++) {
		struct mrc_path_info path;

		mrc_conn_path_info(e->conn, i, &path);
		FUZZ_CHECK(path.frames_in_flight <= ENG_FRAMES_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Some hundred KiB, most of them channels that are cleared when they begin. */
	static struct eng eng;
	struct eng *e = &eng;

	memset(e, 0, offsetof(struct eng, channels));
	for (uint32_t i = 0; i < ENG_CHANNELS_MAX; i++)
		e->channels[i].id = 0;
	e->in = (struct fuzz_input){.at = data, .end = data + len};
	eng_new(e);
	begin(e);
	for (uint32_t i = 0; i < ENG_STEPS_MAX && !fuzz_is_over(&e->in); i++) {
		uint8_t what = fuzz_u8(&e->in);

		switch (what & 7) {
		case 0:
		case 1:
		case 2:
		case 3:
			eng_peer_frame(e);
			break;
		case 4:
		case 5:
			client_step(e);
			break;
		case 6:
			rail_step(e);
			break;
		default:
			time_step(e);
			break;
		}
		/* Several events may come before the actions are taken. */
		if (what >> 3 & 7)
			eng_pump(e);
		look(e);
	}
	eng_pump(e);
	eng_tick(e, MRC_S);
	eng_free(e);
	return 0;
}
