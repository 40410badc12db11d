/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_lab - two hosts whose rails have RDMA devices (verbs_fake.h), for tests of the rails
 *
 * Hosts "a" and "b" live in one worker. Path p goes from rail 2p, a's, to rail
 * 2p + 1, b's. Peers keep what they were told and decide nothing; this file is
 * the engine and the client side. Included by one source only of a test, since
 * it defines the functions that kinds of rails call.
 */
#ifndef VERBS_LAB_H
#define VERBS_LAB_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_crc.h"
#include "mrcd_peer.h"
#include "mrcd_verbs.h"
#include "mrcd_worker.h"
#include "verbs_fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define LAB_PATHS        2
#define LAB_FRAMES_MAX   8192
#define LAB_MEMORY_BYTES (8U * 1024U * 1024U)
#define LAB_GUARD_S      20 /* a condition that has not come by then will not */
#define LAB_FLOW         3

struct mrc_conn {
	struct mrcd_peer *peer; /* the lab's, one to one */
};

struct lab_frame {
	struct mrc_wire_hdr hdr;
	uint8_t body[64]; /* its beginning */
	bool is_body_good, is_placed;
	uint64_t hold;
};

struct lab_path {
	struct mrcd_rail *rail;
	char address[64];
	uint16_t port;
	struct mrcd_link *link; /* NULL: none, or ended */
	struct mrcd_link *fencing;
	struct mrc_auth auth;
	bool is_direct, is_guest;
	uint32_t ups, busies, downs, fences, failures;
	enum mrc_path_reason reason;
	char why[128];
	uint64_t sent;
	uint32_t frame_count;
	struct lab_frame *frames; /* LAB_FRAMES_MAX */
};

struct mrcd_peer {
	struct mrc_conn conn;
	struct mrc_hello hello;
	struct mrcd_key key;
	struct lab_path paths[LAB_PATHS];
	uint32_t pumps;
	bool is_up_refused;     /* epochs have moved on */
	bool is_protocol_error; /* the next frame is one */
	void (*on_pump)(struct mrcd_peer *peer);
};

struct lab_key {
	bool is_valid;
	uint32_t rkey;
	uint64_t base;
};

struct lab {
	struct mrcd_conf conf;
	struct mrcd_conf_peer conf_peers[2];
	struct mrcd_worker worker;
	struct mrcd_peer *ends[2];
	struct mrcd_peer *a; /* on host a, about b: the initiator */
	struct mrcd_peer *b; /* on host b, about a */
	uint8_t *send, *landing;
	struct mrcd_region *send_region, *landing_region;
	struct lab_key keys[2 * LAB_PATHS]; /* of the landing region, by rail */
	bool is_client_gone;
	bool is_all_scratch; /* a copy whose writer is not fenced: nothing may be placed yet */
};

static struct lab *lab; /* of the running test: the engine's functions have no other way to it */

static const char *const lab_addresses[] = {"127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2"};

/* ---- the engine ---- */

void mrc_conn_hello(const struct mrc_conn *conn, uint8_t path_index, struct mrc_hello *hello_out)
{
	*hello_out = conn->peer->hello;
	hello_out->path_id = path_index;
	hello_out->path_epoch_last = conn->peer->paths[path_index].auth.path_epoch;
}

int mrc_conn_join(const struct mrc_conn *conn, uint8_t path_index, const struct mrc_auth *auth,
		  uint64_t peer_boot_id)
{
	return 0;
}

bool mrc_conn_is_initiator(const struct mrc_conn *conn)
{
	return mrc_hello_is_initiator(conn->peer->hello.host, conn->peer->hello.to_host);
}

uint32_t mrc_conn_place(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, uint32_t done,
			struct mrc_place *place_out)
{
	*place_out = (struct mrc_place){
		.is_scratch = lab->is_all_scratch,
		.addr = hdr->addr + done,
		.channel_cookie = hdr->channel,
	};
	return hdr->body_len - done;
}

bool mrc_conn_place_whole(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr,
			  struct mrc_place *place_out)
{
	*place_out = (struct mrc_place){.addr = hdr->addr, .channel_cookie = hdr->channel};
	return !lab->is_all_scratch;
}

/* ---- clients' memory ---- */

const void *mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie, uint64_t addr,
			     uint64_t len)
{
	assert_true(addr + len <= LAB_MEMORY_BYTES);
	return lab->is_client_gone ? NULL : lab->send + addr;
}

struct mrcd_region *mrcd_send_region(struct mrcd_worker *worker, uint64_t channel_cookie)
{
	return lab->is_client_gone ? NULL : lab->send_region;
}

void *mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place, uint64_t len)
{
	assert_false(place->is_scratch);
	assert_true(place->addr + len <= LAB_MEMORY_BYTES);
	return lab->landing + place->addr;
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
	for (uint8_t p = 0; p < LAB_PATHS; p++) {
		if (rail != lab->b->paths[p].rail ||
		    strcmp(hello->host, lab->b->hello.to_host) != 0)
			continue;
		*path_index_out = p;
		return lab->b;
	}
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
	*port_out = peer->paths[path_index].port;
	return peer->paths[path_index].address;
}

bool mrcd_peer_path_is_guest(const struct mrcd_peer *peer, uint8_t path_index)
{
	return peer->paths[path_index].is_guest;
}

static uint32_t lab_guests_out; /* so often */

void mrcd_rail_guests_out(struct mrcd_rail *rail)
{
	lab_guests_out++;
}

uint8_t mrcd_peer_path_count(const struct mrcd_peer *peer)
{
	return LAB_PATHS;
}

struct mrcd_link *mrcd_peer_path_link(const struct mrcd_peer *peer, uint8_t path_index)
{
	return path_index < LAB_PATHS ? peer->paths[path_index].link : NULL;
}

const char *mrcd_peer_name(const struct mrcd_peer *peer)
{
	return peer->hello.to_host;
}

const struct mrcd_key *mrcd_peer_keys(const struct mrcd_peer *peer, uint32_t *count_out)
{
	*count_out = 1;
	return &peer->key;
}

bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key)
{
	assert_int_equal(key->flow, LAB_FLOW);
	lab->keys[rail->index] =
		(struct lab_key){.is_valid = key->is_valid, .rkey = key->rkey, .base = key->base};
	return false;
}

static struct lab_path *lab_path_of(const struct mrcd_link *link)
{
	return &link->peer->paths[link->path_index];
}

/* Of a queue pair of which nothing can land any more. */
static void lab_check_fenced(const struct mrcd_link *link)
{
	enum ibv_qp_state state;

	if (link->ops != &mrcd_verbs_link_ops)
		return;
	state = verbs_fake_qp_state(((const struct mrcd_verbs_link *)link)->number);
	assert_true(state == IBV_QPS_RESET || state == IBV_QPS_UNKNOWN);
}

int mrcd_link_on_up(struct mrcd_link *link, const struct mrc_auth *auth, uint16_t path_id,
		    uint64_t peer_boot_id, bool is_direct_capable)
{
	struct mrcd_peer *peer = link->peer;
	struct lab_path *path = lab_path_of(link);

	assert_int_equal(path_id, link->path_index);
	assert_ptr_equal(path->rail, link->rail);
	if (peer->is_up_refused || auth->path_epoch <= path->auth.path_epoch)
		return -ESTALE;
	if (path->link) {
		path->fencing = path->link;
		path->link = NULL;
		path->fencing->ops->fence(path->fencing);
	}
	if (path->fencing) {
		path->busies++;
		return -EBUSY;
	}
	path->ups++;
	path->link = link;
	path->auth = *auth;
	path->is_direct = is_direct_capable;
	path->sent = 0;
	peer->hello.conn_epoch = peer->hello.conn_epoch_last = auth->conn_epoch;
	peer->hello.peer_boot_id = peer_boot_id;
	return 0;
}

void mrcd_peer_on_connect_failed(struct mrcd_peer *peer, uint8_t path_index, const char *why)
{
	struct lab_path *path = &peer->paths[path_index];

	path->failures++;
	snprintf(path->why, sizeof(path->why), "%s", why);
}

int mrcd_link_on_frame(struct mrcd_link *link, const struct mrc_wire_hdr *hdr, const uint8_t *body,
		       bool is_body_good, bool is_placed, uint64_t hold)
{
	struct mrcd_peer *peer = link->peer;
	struct lab_path *path = lab_path_of(link);
	struct lab_frame *frame = &path->frames[path->frame_count % LAB_FRAMES_MAX];

	assert_ptr_equal(link, path->link);
	path->frame_count++;
	*frame = (struct lab_frame){.hdr = *hdr,
				    .is_body_good = is_body_good,
				    .is_placed = is_placed,
				    .hold = hold};
	if (mrc_wire_has_body(hdr))
		memcpy(frame->body, body, MRC_MIN(hdr->body_len, sizeof(frame->body)));
	return peer->is_protocol_error ? -EPROTO : 0;
}

void mrcd_link_on_sent(struct mrcd_link *link, uint64_t count)
{
	struct lab_path *path = lab_path_of(link);

	assert_ptr_equal(link, path->link);
	assert_true(count > path->sent);
	path->sent = count;
}

void mrcd_link_on_down(struct mrcd_link *link, enum mrc_path_reason reason, const char *why)
{
	struct lab_path *path = lab_path_of(link);

	assert_ptr_equal(link, path->link);
	lab_check_fenced(link);
	path->link = NULL;
	path->downs++;
	path->reason = reason;
	snprintf(path->why, sizeof(path->why), "%s", why);
}

void mrcd_link_on_fenced(struct mrcd_link *link)
{
	struct lab_path *path = lab_path_of(link);

	assert_ptr_equal(link, path->fencing);
	lab_check_fenced(link);
	path->fencing = NULL;
	path->fences++;
}

void mrcd_peer_pump(struct mrcd_peer *peer)
{
	peer->pumps++;
	if (peer->on_pump)
		peer->on_pump(peer);
}

void mrcd_rail_on_interface(struct mrcd_rail *rail)
{
}

void mrcd_rail_on_carrier(struct mrcd_rail *rail, bool is_up)
{
	rail->is_carrier_up = is_up;
}

/* ---- set up ---- */

/* Rails that find work in every turn would keep the loop from returning. */
static inline void lab_on_tick(evutil_socket_t fd, short what, void *context)
{
	event_base_loopbreak(lab->worker.base);
}

/*
 * Runs the loop until `condition`, however long the machine takes for it. The
 * tick is for conditions that other threads bring about; it makes nobody look
 * for completions.
 */
#define lab_until(condition)                                                               \
	do {                                                                               \
		const struct timeval lab_tick_span = {.tv_usec = 2000};                    \
		uint64_t lab_end_ns = mrcd_worker_now(&lab->worker) + LAB_GUARD_S * MRC_S; \
		struct event *lab_tick =                                                   \
			event_new(lab->worker.base, -1, EV_PERSIST, lab_on_tick, NULL);    \
                                                                                           \
		event_add(lab_tick, &lab_tick_span);                                       \
		while (!(condition)) {                                                     \
			event_base_loop(lab->worker.base, EVLOOP_ONCE);                    \
			if (mrcd_worker_now(&lab->worker) > lab_end_ns)                    \
				fail_msg("never came: %s", #condition);                    \
		}                                                                          \
		event_free(lab_tick);                                                      \
	} while (0)

/* Everything that is due now. */
static inline void lab_settle(void)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(lab->worker.base, EVLOOP_NONBLOCK);
}

static inline struct mrcd_verbs *lab_verbs(uint32_t rail)
{
	return lab->worker.rails[rail].kind_data;
}

static inline struct mrcd_verbs_link *lab_link(const struct mrcd_peer *peer, uint8_t path)
{
	return mrcd_verbs_link_of(peer->paths[path].link);
}

static struct mrcd_peer *lab_peer(const char *own, const char *other, uint64_t boot_id)
{
	struct mrcd_peer *peer = calloc(1, sizeof(*peer));

	assert_non_null(peer);
	peer->conn.peer = peer;
	snprintf(peer->hello.host, sizeof(peer->hello.host), "%s", own);
	snprintf(peer->hello.to_host, sizeof(peer->hello.to_host), "%s", other);
	peer->hello.boot_id = boot_id;
	peer->hello.version_min = MRC_HELLO_VERSION_MIN;
	peer->hello.version_max = MRC_HELLO_VERSION_MAX;
	peer->key.len_bytes = 16;
	memset(peer->key.bytes, 'k', 16);
	for (int p = 0; p < LAB_PATHS; p++) {
		peer->paths[p].frames = calloc(LAB_FRAMES_MAX, sizeof(struct lab_frame));
		assert_non_null(peer->paths[p].frames);
	}
	return peer;
}

/*
 * Hosts, memory and rails of type verbs, not open. Host a's rails are the two
 * ports of one device; host b has a device for each.
 */
static struct lab *lab_new(void)
{
	lab = calloc(1, sizeof(*lab));
	assert_non_null(lab);
	verbs_fake_begin();
	verbs_fake_port("fake0", 1, lab_addresses[0], IBV_TRANSPORT_IB);
	verbs_fake_port("fake0", 2, lab_addresses[2], IBV_TRANSPORT_IB);
	verbs_fake_port("fake1", 1, lab_addresses[1], IBV_TRANSPORT_IB);
	verbs_fake_port("fake2", 1, lab_addresses[3], IBV_TRANSPORT_IB);
	lab->send = calloc(1, LAB_MEMORY_BYTES);
	lab->landing = calloc(1, LAB_MEMORY_BYTES);
	assert_non_null(lab->send);
	assert_non_null(lab->landing);
	for (uint32_t i = 0; i < LAB_MEMORY_BYTES; i++)
		lab->send[i] = (uint8_t)(1 + i % 251);
	lab->conf.handshake_timeout_ns = 10 * MRC_S;
	lab->conf.handshakes_max = 8;
	lab->conf.spin_ns = 50 * MRC_US;
	lab->conf.peers = lab->conf_peers;
	lab->conf.peer_count = 1;
	lab->conf_peers[0].path_count = LAB_PATHS;
	lab->worker.conf = &lab->conf;
	lab->worker.base = event_base_new();
	assert_non_null(lab->worker.base);
	LIST_INIT(&lab->worker.regions);
	lab->ends[0] = lab->a = lab_peer("a", "b", 0xaaaa);
	lab->ends[1] = lab->b = lab_peer("b", "a", 0xbbbb);
	lab->worker.peers = lab->ends;
	lab->worker.peer_count = 2;
	lab->worker.rail_count = 2 * LAB_PATHS;
	for (uint32_t i = 0; i < 2 * LAB_PATHS; i++) {
		struct mrcd_conf_rail *conf = &lab->conf.rails[i];
		struct mrcd_rail *rail = &lab->worker.rails[i];

		snprintf(conf->name, sizeof(conf->name), "r%u", i);
		snprintf(conf->address, sizeof(conf->address), "%s", lab_addresses[i]);
		conf->type = MRCD_RAIL_VERBS;
		conf->ack_timeout = 14;
		conf->retry_count = 6;
		conf->receive_entries = 64;
		conf->receive_entry_bytes = 16384;
		*rail = (struct mrcd_rail){.conf = conf,
					   .ops = &mrcd_rail_verbs_ops,
					   .worker = &lab->worker,
					   .index = i,
					   .is_carrier_up = true};
		lab->ends[i % 2]->paths[i / 2].rail = rail;
		snprintf(lab->a->paths[i / 2].address, 64, "%s", lab_addresses[i / 2 * 2 + 1]);
		lab->conf_peers[0].paths[i / 2].rail_index = i;
	}
	lab->conf.rail_count = 2 * LAB_PATHS;
	mrcd_log_set_level(LOG_CRIT);
	mrcd_worker_now(&lab->worker);
	return lab;
}

static inline void lab_port_learn(uint32_t path)
{
	const struct mrcd_verbs *verbs = lab_verbs(2 * path + 1);
	struct sockaddr_in address = {0};
	socklen_t len = sizeof(address);

	assert_int_equal(getsockname(verbs->tcp->listen_fd, (struct sockaddr *)&address, &len), 0);
	lab->a->paths[path].port = ntohs(address.sin_port);
}

static inline void lab_open(void)
{
	for (uint32_t i = 0; i < 2 * LAB_PATHS; i++)
		assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[i]), 0);
	for (uint32_t p = 0; p < LAB_PATHS; p++)
		lab_port_learn(p);
}

static inline bool lab_has_devices(void)
{
	for (uint32_t i = 0; i < 2 * LAB_PATHS; i++) {
		if (!lab_verbs(i)->device)
			return false;
	}
	return true;
}

static inline void lab_connect(uint8_t path)
{
	mrcd_rail_verbs_ops.connect(lab->a->paths[path].rail, lab->a, path);
}

static inline void lab_up(uint8_t path)
{
	struct lab_path *a = &lab->a->paths[path], *b = &lab->b->paths[path];
	uint32_t ups_a = a->ups, ups_b = b->ups, failures = a->failures;

	lab_connect(path);
	lab_until((a->ups > ups_a && b->ups > ups_b) || a->failures > failures);
	if (a->failures > failures)
		fail_msg("path %u did not come up: %s", path, a->why);
}

static inline void lab_regions_offer(void)
{
	assert_int_equal(mrcd_region_new(&lab->worker, lab->send, LAB_MEMORY_BYTES, false, LAB_FLOW,
					 &lab->send_region),
			 0);
	assert_int_equal(mrcd_region_new(&lab->worker, lab->landing, LAB_MEMORY_BYTES, true,
					 LAB_FLOW, &lab->landing_region),
			 0);
}

static inline bool lab_region_is(const struct mrcd_region *region, enum mrcd_region_state state)
{
	for (uint32_t i = 0; i < 2 * LAB_PATHS; i++) {
		if (region->rails[i].state != state)
			return false;
	}
	return true;
}

static inline void lab_regions(void)
{
	lab_regions_offer();
	lab_until(lab_region_is(lab->send_region, MRCD_REGION_READY) &&
		  lab_region_is(lab->landing_region, MRCD_REGION_READY));
}

/* All of it ends as the daemon does it, with whatever is under way; nothing may be left. */
static void lab_free(void)
{
	const char *violation;

	/* As peers do: a rail that closes leaves links of type tcp to them. */
	for (int i = 0; i < 2 * LAB_PATHS; i++) {
		struct lab_path *path = &lab->ends[i % 2]->paths[i / 2];

		if (!path->link || path->link->ops == &mrcd_verbs_link_ops)
			continue;
		path->fencing = path->link;
		path->link = NULL;
		path->fencing->ops->fence(path->fencing);
	}
	for (uint32_t i = 0; i < 2 * LAB_PATHS; i++)
		mrcd_rail_verbs_ops.close(&lab->worker.rails[i]);
	mrcd_offload_free(lab->worker.offload);
	mrcd_region_free_all(&lab->worker);
	for (int i = 0; i < 2; i++) {
		for (int p = 0; p < LAB_PATHS; p++) {
			assert_null(lab->ends[i]->paths[p].link);
			assert_null(lab->ends[i]->paths[p].fencing);
			free(lab->ends[i]->paths[p].frames);
		}
		free(lab->ends[i]);
	}
	event_base_free(lab->worker.base);
	free(lab->send);
	free(lab->landing);
	free(lab);
	lab = NULL;
	violation = verbs_fake_end();
	if (violation)
		fail_msg("the device says: %s", violation);
	assert_int_equal(verbs_fake_left(), 0);
}

/* ---- frames ---- */

static inline struct mrc_act_post lab_frag(const struct mrcd_link *link, uint64_t msg,
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

static inline struct mrc_act_post lab_direct(const struct mrcd_link *link, uint64_t msg,
					     uint64_t addr, uint32_t len)
{
	const struct lab_key *key = &lab->keys[link->rail->index ^ 1];
	struct mrc_act_post post = lab_frag(link, msg, addr, len);

	assert_true(key->is_valid);
	post.hdr.flags |= MRC_WIRE_F_DIRECT;
	post.rkey = key->rkey;
	post.remote_addr = key->base + addr;
	return post;
}

static inline struct mrc_act_post lab_control(const struct mrcd_link *link, enum mrc_wire_type type,
					      uint64_t msg, uint16_t body_len)
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

static inline void lab_post(struct mrcd_link *link, struct mrc_act_post post)
{
	link->ops->post(link, &post);
}

static inline void lab_flush(struct mrcd_link *link)
{
	link->ops->flush(link);
}

#endif
