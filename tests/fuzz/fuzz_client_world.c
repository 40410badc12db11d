/* SPDX-License-Identifier: BSD-2-Clause */
/* What is below the client side: two engines that keep to the rules, and a clock. */
#include <errno.h>
#include <unistd.h>

#include "fuzz_client.h"
#include "mrcd_trace.h"

#define TURNS 4

static struct world *world; /* the one there is: the client side's calls lead here */

/* ---- engines ---- */

static void *world_alloc(void *context, size_t bytes)
{
	return calloc(1, bytes);
}

static void world_free(void *context, void *memory)
{
	free(memory);
}

static void end_new(struct world *w, int i)
{
	struct mrcd_peer *end = &w->ends[i];
	struct mrc_conn_config config = {
		.host = i ? "a2" : "a1",
		.peer = i ? "a1" : "a2",
		.boot_id = 10U + (uint64_t)i,
		.seed = 1,
		.path_count = 1,
		.limits = w->conf.limits,
		.alloc = {.alloc = world_alloc, .free = world_free},
	};
	struct mrc_event_in up = {.kind = MRC_EV_PATH_UP,
				  .path = {.conn_epoch = 1,
					   .path_epoch = 1,
					   .peer_boot_id = 11U - (uint64_t)i}};

	end->world = w;
	end->other = &w->ends[!i];
	FUZZ_CHECK(mrc_conn_new(&config, &end->conn) == 0);
	FUZZ_CHECK(mrc_conn_handle(end->conn, &up, w->now_ns) == 0);
}

int mrcd_peer_handle(struct mrcd_peer *peer, const struct mrc_event_in *ev)
{
	return mrc_conn_handle(peer->conn, ev, peer->world->now_ns);
}

bool mrcd_peer_is_draining(const struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(peer->conn, &info);
	return info.is_peer_draining;
}

struct mrcd_stall_meter *mrcd_peer_stalls(struct mrcd_peer *peer)
{
	return &peer->stalls;
}

/* There are no rails, so nobody has a key to tell. */
bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key)
{
	FUZZ_CHECK(false);
	return false;
}

static void post(struct mrcd_peer *peer, const struct mrc_act_post *act)
{
	struct world_frame *frame;

	FUZZ_CHECK(peer->count < WORLD_FRAMES_MAX);
	frame = &peer->frames[(peer->first + peer->count++) % WORLD_FRAMES_MAX];
	frame->hdr = act->hdr;
	frame->payload_addr = act->payload_addr;
	frame->channel_cookie = act->channel_cookie;
	memcpy(frame->body, act->body, act->body_len);
}

void mrcd_peer_pump(struct mrcd_peer *peer)
{
	struct mrc_action act;
	uint32_t turns = 0;

	if (peer->is_pumping)
		return;
	peer->is_pumping = true;
	while (mrc_conn_next_action(peer->conn, &act, peer->world->now_ns)) {
		FUZZ_CHECK(++turns < 100000);
		if (act.kind == MRC_ACT_POST)
			post(peer, &act.post);
		else
			mrcd_client_side_perform(peer->world->worker.clients, peer, &act);
	}
	mrcd_client_side_flush(peer->world->worker.clients);
	peer->is_pumping = false;
}

struct mrcd_peer *mrcd_worker_peer(struct mrcd_worker *worker, const char *name)
{
	return strcmp(name, "a") == 0 ? &world->ends[0] : NULL;
}

uint64_t mrcd_worker_clock_ns(void)
{
	return world->now_ns;
}

void mrcd_trace_add(struct mrcd_traces *traces, const struct mrcd_peer *peer,
		    const struct mrc_act_trace *act)
{
	(void)traces;
	(void)peer;
	FUZZ_CHECK(act->channel_cookie != 0);
}

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	return worker->now_ns = world->now_ns;
}

void world_trace(uint32_t every)
{
	struct mrcd_client_side *side = world->worker.clients;

	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		for (uint32_t c = 0; client != NULL && c < client->channels_max; c++) {
			if (client->channels[c].state != MRCD_CHANNEL_FREE)
				mrcd_channel_trace(client, &client->channels[c], every);
		}
	}
}

/* ---- frames ---- */

/* Are these bytes within what the client of this place may be given? */
static void landing_check(struct world *w, const struct mrc_place *place, const uint8_t *memory,
			  uint64_t len)
{
	struct mrcd_client *client;
	struct mrcd_channel *channel =
		mrcd_client_side_channel(w->worker.clients, place->channel_cookie, &client);

	FUZZ_CHECK(channel != NULL);
	FUZZ_CHECK(memory >= client->landing.addr);
	FUZZ_CHECK((uint64_t)(memory - client->landing.addr) + len <= client->landing.len_bytes);
	if (place->is_eager)
		FUZZ_CHECK((uint64_t)(memory - client->landing.addr) >= channel->ring_offset &&
			   (uint64_t)(memory - client->landing.addr) + len <=
				   channel->ring_offset + channel->ring_bytes);
}

static bool payload_copy(struct world *w, struct mrcd_peer *to, const struct world_frame *frame)
{
	const uint8_t *payload = mrcd_send_memory(&w->worker, frame->channel_cookie,
						  frame->payload_addr, frame->hdr.body_len);
	bool is_all = true;
	uint32_t done = 0;

	while (done < frame->hdr.body_len) {
		struct mrc_place place;
		uint32_t len = mrc_conn_place(to->conn, &frame->hdr, done, &place);
		uint8_t *memory = NULL;

		FUZZ_CHECK(len > 0 && len <= frame->hdr.body_len - done);
		if (!place.is_scratch)
			memory = mrcd_landing_memory(&w->worker, &place, len);
		if (memory) {
			landing_check(w, &place, memory, len);
			memcpy(memory, payload + done, len);
		} else {
			is_all = false;
		}
		done += len;
	}
	return is_all;
}

static void frame_hand_over(struct world *w, struct mrcd_peer *from)
{
	struct world_frame *frame = &from->frames[from->first];
	struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED,
				  .arrived = {.is_body_good = true,
					      .path_epoch = 1,
					      .hdr = &frame->hdr,
					      .body = frame->body}};
	struct mrc_event_in sent = {.kind = MRC_EV_SENT, .path = {.path_epoch = 1}};

	if (frame->hdr.type == MRC_WIRE_FRAG && frame->hdr.body_len &&
	    !mrcd_send_memory(&w->worker, frame->channel_cookie, frame->payload_addr,
			      frame->hdr.body_len)) {
		struct mrcd_client *client = NULL;

		/* Only with its client can it have gone: where it lies was judged when it came. */
		FUZZ_CHECK(!mrcd_client_side_channel(w->worker.clients, frame->channel_cookie,
						     &client) ||
			   client->is_dead);
		frame->hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_NOP,
						   .conn_epoch = frame->hdr.conn_epoch,
						   .path_epoch = frame->hdr.path_epoch};
	}
	ev.arrived.is_placed =
		frame->hdr.type == MRC_WIRE_FRAG && payload_copy(w, from->other, frame);
	/* Both engines are ours: no client can make one break the protocol. */
	FUZZ_CHECK(mrcd_peer_handle(from->other, &ev) == 0);
	from->first = (from->first + 1) % WORLD_FRAMES_MAX;
	from->count--;
	sent.path.count = ++from->sent;
	mrcd_peer_handle(from, &sent);
}

static void frames_move(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		for (uint32_t n = w->ends[i].count; n; n--)
			frame_hand_over(w, &w->ends[i]);
	}
	for (int i = 0; i < 2; i++)
		mrcd_peer_pump(&w->ends[i]);
}

void world_turn(struct world *w)
{
	const struct mrc_event_in timer = {.kind = MRC_EV_TIMER};

	for (int i = 0; i < TURNS; i++) {
		w->now_ns += 50 * MRC_US;
		w->worker.now_ns = w->now_ns;
		event_base_loop(w->worker.base, EVLOOP_NONBLOCK);
		frames_move(w);
		for (int e = 0; e < 2; e++) {
			if (mrc_conn_deadline_ns(w->ends[e].conn) > w->now_ns)
				continue;
			mrcd_peer_handle(&w->ends[e], &timer);
			mrcd_peer_pump(&w->ends[e]);
		}
	}
}

void world_pass(struct world *w, uint64_t span_ns)
{
	w->now_ns += span_ns;
	world_turn(w);
}

/* ---- the daemon around it ---- */

void world_begin(struct world *w)
{
	struct mrcd_conf *conf = &w->conf;

	memset(w, 0, offsetof(struct world, ends));
	for (int i = 0; i < 2; i++)
		memset(&w->ends[i], 0, offsetof(struct mrcd_peer, frames)),
			w->ends[i].first = w->ends[i].count = 0;
	world = w;
	w->now_ns = MRC_S;
	mrcd_log_init(LOG_CRIT);
	strcpy(w->dir, "/tmp/mrc-fuzz-client-XXXXXX");
	FUZZ_CHECK(mkdtemp(w->dir) != NULL);
	strcpy(conf->host, "a");
	snprintf(conf->runtime_dir, sizeof(conf->runtime_dir), "%s", w->dir);
	conf->handshake_timeout_ns = 10 * MRC_S;
	conf->handshakes_max = 4;
	strcpy(w->services[0].name, "*");
	w->services[0].any.is_open = true;
	strcpy(w->services[1].name, "svc2");
	w->services[1].any.is_open = true;
	for (int i = 0; i < 2; i++)
		for (int use = 0; use < MRCD_USES; use++)
			w->services[i].of[use].is_open = true;
	conf->services = w->services;
	conf->service_count = 2;
	conf->clients = (struct mrcd_conf_client_limits){
		.clients_max = PROGS_MAX + 1,
		.channels_max = 6,
		.listeners_max = 3,
		.sends_max = 8,
		.window_messages = 4,
		.landing_ring_bytes = 8192,
		.send_arena_bytes = 65536,
		.landing_arena_bytes = 262144,
	};
	conf->limits = (struct mrc_limits){
		.channels_max = 16,
		.frames_in_flight_max = 64,
		.ranges_max = 64,
		.eager_bytes_max = 1024,
		.frag_bytes_max = 4096,
	};
	w->worker.conf = conf;
	w->worker.boot_id = 0xb007;
	w->worker.now_ns = w->now_ns;
	w->worker.base = event_base_new();
	FUZZ_CHECK(w->worker.base != NULL);
	for (int i = 0; i < 2; i++)
		end_new(w, i);
	w->worker.loop_ends[0] = &w->ends[0];
	w->worker.loop_ends[1] = &w->ends[1];
	FUZZ_CHECK(mrcd_client_side_new(&w->worker, -1, &w->worker.clients) == 0);
	for (int i = 0; i < 2; i++)
		mrcd_peer_pump(&w->ends[i]);
	world_turn(w);
}

void world_end(struct world *w)
{
	for (int i = 0; i < 100 && mrcd_client_side_count(w->worker.clients); i++)
		world_pass(w, 10 * MRC_MS);
	/* All programs have gone: so has all that was theirs, their memory too. */
	FUZZ_CHECK(mrcd_client_side_count(w->worker.clients) == 0);
	FUZZ_CHECK(w->worker.clients->client_count == 0);
	mrcd_client_side_free(w->worker.clients);
	w->worker.clients = NULL;
	for (int i = 0; i < 2; i++)
		mrc_conn_free(w->ends[i].conn);
	event_base_free(w->worker.base);
	FUZZ_CHECK(rmdir(w->dir) == 0);
}
