/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rail_fake - what a kind of rail has above it, for its tests: peers, an engine, memory
 *
 * Two hosts, "a" and "b", live in one worker: rails[0] is a's and rails[1] is
 * b's. Peers keep what they were told, and nothing else. Included by one
 * source only, since it defines the functions that kinds of rails call.
 */
#ifndef RAIL_FAKE_H
#define RAIL_FAKE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrcd_crc.h"
#include "mrcd_handshake.h"
#include "mrcd_rail.h"
#include "mrcd_worker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FAKE_FRAMES_MAX   4096
#define FAKE_MEMORY_BYTES (4U * 1024U * 1024U)
#define FAKE_GUARD_S      20 /* a condition that has not come by then will not */

struct mrc_conn {
	struct mrcd_peer *peer; /* the fake's, one to one */
};

struct fake_frame {
	struct mrc_wire_hdr hdr;
	uint8_t body[128]; /* its beginning */
	bool is_body_good, is_placed;
};

struct mrcd_peer {
	struct mrc_conn conn;
	struct mrcd_worker *worker;
	struct mrcd_rail *rail;
	struct mrc_hello hello;
	struct mrcd_key keys[2];
	uint32_t key_count;
	char address[64];
	uint16_t port;
	bool is_stale; /* mrc_conn_join() refuses */
	bool is_up_refused;
	bool is_protocol_error; /* the next frame is one */
	/* What happened. */
	struct mrcd_link *link;   /* NULL: none, or ended */
	struct mrcd_link *second; /* of another path; the test's */
	struct mrc_auth auth;
	uint16_t path_id;
	uint64_t peer_boot_id;
	uint32_t ups, downs, fences, failures, pumps;
	enum mrc_path_reason reason;
	char why[128];
	uint64_t sent;
	uint32_t frame_count;
	struct fake_frame *frames; /* FAKE_FRAMES_MAX */
};

struct fake {
	struct mrcd_conf conf;
	struct mrcd_conf_rail conf_loop;
	struct mrcd_worker worker;
	struct mrcd_peer *a; /* on host a, about b: the initiator */
	struct mrcd_peer *b; /* on host b, about a */
	uint8_t *send, *landing;
	bool is_client_gone;
	uint64_t send_asked; /* how often its memory was asked for */
	/* mrc_conn_place(): bytes of a fragment from here on go to scratch. */
	uint32_t scratch_from;
	bool is_whole_gone;
	uint32_t place_step; /* the longest answer */
	bool is_late;
};

static struct fake *fake; /* of the running test: the engine's functions have no other way to it */

/* ---- the engine ---- */

void mrc_conn_hello(const struct mrc_conn *conn, uint8_t path_index, struct mrc_hello *hello_out)
{
	*hello_out = conn->peer->hello;
	hello_out->path_id = path_index;
}

int mrc_conn_join(const struct mrc_conn *conn, uint8_t path_index, const struct mrc_auth *auth,
		  uint64_t peer_boot_id)
{
	return conn->peer->is_stale ? -ESTALE : 0;
}

bool mrc_conn_is_initiator(const struct mrc_conn *conn)
{
	return mrc_hello_is_initiator(conn->peer->hello.host, conn->peer->hello.to_host);
}

uint32_t mrc_conn_place(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, uint32_t done,
			struct mrc_place *place_out)
{
	uint32_t len = hdr->body_len - done;

	*place_out = (struct mrc_place){
		.is_scratch = done >= fake->scratch_from,
		.addr = hdr->addr + done,
		.channel_cookie = hdr->channel,
	};
	if (!place_out->is_scratch)
		len = MRC_MIN(len, fake->scratch_from - done);
	return MRC_MIN(len, fake->place_step);
}

bool mrc_conn_place_whole(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr,
			  struct mrc_place *place_out)
{
	*place_out = (struct mrc_place){.addr = hdr->addr, .channel_cookie = hdr->channel};
	return !fake->is_whole_gone;
}

/* ---- clients' memory ---- */

const void *mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie, uint64_t addr,
			     uint64_t len)
{
	fake->send_asked++;
	assert_true(addr + len <= FAKE_MEMORY_BYTES);
	return fake->is_client_gone ? NULL : fake->send + addr;
}

void *mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place, uint64_t len)
{
	assert_false(place->is_scratch);
	assert_true(place->addr + len <= FAKE_MEMORY_BYTES);
	return fake->landing + place->addr;
}

/* ---- the worker and its peers ---- */

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	worker->now_ns = (uint64_t)ts.tv_sec * MRC_S + (uint64_t)ts.tv_nsec;
	return worker->now_ns;
}

struct mrcd_peer *mrcd_peer_match(struct mrcd_rail *rail, const struct mrc_hello *hello,
				  const char *source, uint8_t *path_index_out, const char **why_out)
{
	struct mrcd_peer *peer = fake->b;

	*path_index_out = 0;
	if (rail == peer->rail && !strcmp(hello->host, peer->hello.to_host))
		return peer;
	*why_out = "unknown host";
	return NULL;
}

struct mrc_conn *mrcd_peer_conn(struct mrcd_peer *peer)
{
	return &peer->conn;
}

const char *mrcd_peer_path_address(const struct mrcd_peer *peer, uint8_t path_index,
				   uint16_t *port_out)
{
	*port_out = peer->port;
	return peer->address;
}

uint8_t mrcd_peer_path_count(const struct mrcd_peer *peer)
{
	return 2;
}

struct mrcd_link *mrcd_peer_path_link(const struct mrcd_peer *peer, uint8_t path_index)
{
	return path_index == 0 ? peer->link : path_index == 1 ? peer->second : NULL;
}

const char *mrcd_peer_name(const struct mrcd_peer *peer)
{
	return peer->hello.to_host;
}

const struct mrcd_key *mrcd_peer_keys(const struct mrcd_peer *peer, uint32_t *count_out)
{
	*count_out = peer->key_count;
	return peer->keys;
}

int mrcd_link_on_up(struct mrcd_link *link, const struct mrc_auth *auth, uint16_t path_id,
		    uint64_t peer_boot_id, bool is_direct_capable)
{
	struct mrcd_peer *peer = link->peer;

	assert_false(is_direct_capable);
	if (peer->is_up_refused)
		return -ESTALE;
	if (peer->link)
		peer->link->ops->fence(peer->link);
	peer->ups++;
	peer->link = link;
	peer->auth = *auth;
	peer->path_id = path_id;
	peer->peer_boot_id = peer_boot_id;
	peer->hello.conn_epoch = peer->hello.conn_epoch_last = auth->conn_epoch;
	peer->hello.path_epoch_last = auth->path_epoch;
	peer->hello.peer_boot_id = peer_boot_id;
	return 0;
}

void mrcd_peer_on_connect_failed(struct mrcd_peer *peer, uint8_t path_index, const char *why)
{
	peer->failures++;
	snprintf(peer->why, sizeof(peer->why), "%s", why);
}

int mrcd_link_on_frame(struct mrcd_link *link, const struct mrc_wire_hdr *hdr, const uint8_t *body,
		       bool is_body_good, bool is_placed, uint64_t hold)
{
	struct mrcd_peer *peer = link->peer;
	struct fake_frame *frame = &peer->frames[peer->frame_count % FAKE_FRAMES_MAX];

	assert_ptr_equal(link, peer->link);
	peer->frame_count++;
	frame->hdr = *hdr;
	frame->is_body_good = is_body_good;
	frame->is_placed = is_placed;
	memset(frame->body, 0, sizeof(frame->body));
	if (body)
		memcpy(frame->body, body, MRC_MIN(hdr->body_len, sizeof(frame->body)));
	return peer->is_protocol_error ? -EPROTO : 0;
}

void mrcd_link_on_sent(struct mrcd_link *link, uint64_t count)
{
	assert_true(count >= link->peer->sent);
	link->peer->sent = count;
}

void mrcd_link_on_down(struct mrcd_link *link, enum mrc_path_reason reason, const char *why)
{
	struct mrcd_peer *peer = link->peer;

	assert_ptr_equal(link, peer->link);
	peer->link = NULL;
	peer->downs++;
	peer->reason = reason;
	snprintf(peer->why, sizeof(peer->why), "%s", why);
}

void mrcd_link_on_fenced(struct mrcd_link *link)
{
	link->peer->fences++;
	if (link->peer->link == link)
		link->peer->link = NULL;
}

void mrcd_peer_pump(struct mrcd_peer *peer)
{
	peer->pumps++;
}

void mrcd_rail_on_interface(struct mrcd_rail *rail)
{
}

void mrcd_rail_on_carrier(struct mrcd_rail *rail, bool is_up)
{
	rail->is_carrier_up = is_up;
}

/* ---- set up ---- */

static struct mrcd_peer *fake_peer(struct fake *f, struct mrcd_rail *rail, const char *own,
				   const char *other, uint64_t boot_id)
{
	struct mrcd_peer *peer = calloc(1, sizeof(*peer));

	assert_non_null(peer);
	peer->frames = calloc(FAKE_FRAMES_MAX, sizeof(*peer->frames));
	assert_non_null(peer->frames);
	peer->conn.peer = peer;
	peer->worker = &f->worker;
	peer->rail = rail;
	snprintf(peer->hello.host, sizeof(peer->hello.host), "%s", own);
	snprintf(peer->hello.to_host, sizeof(peer->hello.to_host), "%s", other);
	peer->hello.boot_id = boot_id;
	peer->hello.version_min = MRC_HELLO_VERSION_MIN;
	peer->hello.version_max = MRC_HELLO_VERSION_MAX;
	peer->key_count = 1;
	peer->keys[0].len_bytes = 16;
	memset(peer->keys[0].bytes, 'k', 16);
	return peer;
}

static void fake_peer_free(struct mrcd_peer *peer)
{
	free(peer->frames);
	free(peer);
}

static void fake_rail(struct fake *f, uint32_t index, const char *name, const char *address,
		      const struct mrcd_rail_ops *ops)
{
	struct mrcd_conf_rail *conf = &f->conf.rails[index];
	struct mrcd_rail *rail = &f->worker.rails[index];

	snprintf(conf->name, sizeof(conf->name), "%s", name);
	snprintf(conf->address, sizeof(conf->address), "%s", address);
	rail->conf = conf;
	rail->ops = ops;
	rail->worker = &f->worker;
	rail->index = index;
}

/* Rails of `ops` at the two addresses, not open yet. */
static struct fake *fake_new(const struct mrcd_rail_ops *ops, const char *address_a,
			     const char *address_b)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake = f;
	f->send = calloc(1, FAKE_MEMORY_BYTES);
	f->landing = calloc(1, FAKE_MEMORY_BYTES);
	assert_non_null(f->send);
	assert_non_null(f->landing);
	f->scratch_from = UINT32_MAX;
	f->place_step = UINT32_MAX;
	f->conf.handshake_timeout_ns = 10 * MRC_S;
	f->conf.handshakes_max = 8;
	f->worker.conf = &f->conf;
	f->worker.base = event_base_new();
	assert_non_null(f->worker.base);
	f->worker.rail_count = 2;
	fake_rail(f, 0, "ra", address_a, ops);
	fake_rail(f, 1, "rb", address_b, ops);
	f->a = fake_peer(f, &f->worker.rails[0], "a", "b", 0xaaaa);
	f->b = fake_peer(f, &f->worker.rails[1], "b", "a", 0xbbbb);
	mrcd_log_set_level(LOG_CRIT);
	return f;
}

static void fake_free(struct fake *f)
{
	fake_peer_free(f->a);
	fake_peer_free(f->b);
	event_base_free(f->worker.base);
	free(f->send);
	free(f->landing);
	free(f);
	fake = NULL;
}

static inline void fake_on_guard(evutil_socket_t fd, short what, void *context)
{
	((struct fake *)context)->is_late = true;
}

/* Runs the loop until `condition`, however long the machine takes for it. */
#define fake_until(f, condition)                                                            \
	do {                                                                                \
		const struct timeval fake_guard_span = {.tv_sec = FAKE_GUARD_S};            \
		struct event *fake_guard = evtimer_new((f)->worker.base, fake_on_guard, f); \
                                                                                            \
		event_add(fake_guard, &fake_guard_span);                                    \
		while (!(condition)) {                                                      \
			event_base_loop((f)->worker.base, EVLOOP_ONCE);                     \
			if ((f)->is_late)                                                   \
				fail_msg("never came: %s", #condition);                     \
		}                                                                           \
		event_free(fake_guard);                                                     \
	} while (0)

/* Everything that is due now. */
static inline void fake_settle(struct fake *f)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(f->worker.base, EVLOOP_NONBLOCK);
}

/* ---- frames ---- */

static inline struct mrc_act_post fake_frag(const struct mrcd_link *link, uint64_t msg,
					    uint64_t addr, uint32_t len)
{
	return (struct mrc_act_post){
		.hdr = {.type = MRC_WIRE_FRAG,
			.conn_epoch = link->conn_epoch,
			.path_epoch = link->path_epoch,
			.channel = 7,
			.msg = msg,
			.msg_len = len,
			.addr = addr,
			.body_len = len},
		.payload_addr = addr,
		.channel_cookie = 7,
	};
}

static inline struct mrc_act_post fake_control(const struct mrcd_link *link,
					       enum mrc_wire_type type, uint64_t msg,
					       uint16_t body_len)
{
	struct mrc_act_post post = {
		.hdr = {.type = (uint8_t)type,
			.conn_epoch = link->conn_epoch,
			.path_epoch = link->path_epoch,
			.msg = msg},
		.body_len = body_len,
	};

	memset(post.body, (int)(msg & 0xff), body_len);
	return post;
}

static inline void fake_pattern(uint8_t *memory, size_t len, uint64_t seed)
{
	struct mrc_rng rng = {.state = seed};

	for (size_t i = 0; i < len; i++)
		memory[i] = (uint8_t)mrc_rng_next(&rng);
}

#endif
