/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with real engines and one rail with a device of this file's make: it
 * writes payload straight into memory it has a key for, and receives the rest
 * into buffers of its own. This file is the client side as well: the calls to
 * mrcd_client_side_perform() and mrcd_landing_memory() are wrapped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "mrcd_client.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"
#include "mrcd_worker.h"

#define FRAMES_MAX    1024
#define LINKS_MAX     64
#define BUFFERS       64
#define BUFFER_BYTES  (256U * 1024U)
#define LANDING_BYTES (1U << 20)
#define RING_OFFSET   (LANDING_BYTES / 2)
#define RING_BYTES    (LANDING_BYTES / 4)
#define GRANT_OFFSET  12288U
#define SMALL_BYTES   5000U
#define LARGE_BYTES   300000U
#define FLOW          3
#define COOKIE        0xc00c1eULL
#define PATIENCE_S    20

struct dev_frame {
	struct mrc_wire_hdr hdr;
	uint8_t ctl[MRC_WIRE_CTL_BYTES_MAX];
	uint8_t *payload; /* of a FRAG that was not written directly */
	bool is_direct;
};

struct dev_link {
	struct mrcd_link link; /* first */
	struct dev_link *other;
	bool is_dead;
	struct dev_frame frames[FRAMES_MAX];
	uint32_t count;
	uint64_t sent;
};

struct stage {
	struct mrcd_conf confs[2];
	struct mrcd_conf_peer peers[2];
	struct mrcd_worker *hosts[2];
	struct dev_link *links[2]; /* by host; the newest */
	struct dev_link *all_links[LINKS_MAX];
	uint32_t link_count;
	/* Host b's buffers. */
	uint8_t *buffers[BUFFERS];
	uint32_t lens[BUFFERS]; /* 0: free */
	uint32_t holds, copies_from, hold_frees;
	/* Host b's client, and what host a's sends. */
	uint8_t *landing, *send;
	struct mrcd_region *region;
	uint32_t rkey;
	bool is_dead; /* the client */
	uint32_t channels[2];
	bool is_up;
	/* The last of these. */
	struct mrc_act_msg delivered;
	uint32_t deliveries, directs;
	uint32_t share_told;
	uint32_t keys; /* KEYS that have arrived */
};

static struct stage *stage;

/* ---- the client side ---- */

void __wrap_mrcd_client_side_perform(struct mrcd_client_side *clients, struct mrcd_peer *peer,
				     const struct mrc_action *act);
void *__wrap_mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place,
				 uint64_t len);

void *__wrap_mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place,
				 uint64_t len)
{
	assert_ptr_equal(worker, stage->hosts[1]);
	assert_false(place->is_scratch);
	assert_int_equal(place->channel_cookie, COOKIE);
	assert_true(place->addr + len <= (place->is_eager ? RING_BYTES : RING_OFFSET));
	if (stage->is_dead)
		return NULL;
	return stage->landing + (place->is_eager ? RING_OFFSET : 0) + place->addr;
}

static void fill_channel(struct mrc_event_in *ev, uint64_t cookie)
{
	ev->channel.flow = FLOW;
	ev->channel.cookie = cookie;
	ev->channel.ring_addr = RING_OFFSET;
	ev->channel.ring_bytes = RING_BYTES;
	ev->channel.msg_bytes_max = RING_OFFSET;
	ev->channel.window = 16;
}

void __wrap_mrcd_client_side_perform(struct mrcd_client_side *clients, struct mrcd_peer *peer,
				     const struct mrc_action *act)
{
	bool is_far = peer == stage->hosts[1]->peers[0];
	struct mrc_event_in ev = {0};

	switch ((int)act->kind) {
	case MRC_ACT_CH_INCOMING:
		ev.kind = MRC_EV_CH_ACCEPT;
		ev.channel.id = stage->channels[1] = act->channel.id;
		fill_channel(&ev, COOKIE);
		assert_int_equal(mrcd_peer_handle(peer, &ev), 0);
		if (stage->region != NULL)
			mrcd_region_tell_keys(stage->region, peer);
		break;
	case MRC_ACT_CH_UP:
		stage->is_up |= !is_far;
		break;
	case MRC_ACT_LANDING_WANT:
		assert_true(is_far);
		ev.kind = MRC_EV_LANDING;
		ev.msg.channel = act->msg.channel;
		ev.msg.number = act->msg.number;
		ev.msg.addr = GRANT_OFFSET;
		ev.msg.len = act->msg.len;
		assert_int_equal(mrcd_peer_handle(peer, &ev), 0);
		break;
	case MRC_ACT_DELIVER:
		stage->delivered = act->msg;
		stage->deliveries++;
		break;
	case MRC_ACT_COPY:
	case MRC_ACT_HOLD_FREE:
		fail_msg("that is the peer's to do");
		break;
	default:
		break;
	}
}

/* ---- the device ---- */

static const struct mrcd_link_ops dev_link_ops;

static void dev_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_peer *far_peer = stage->hosts[1]->peers[0];
	struct dev_link *links[2];
	struct mrc_hello hellos[2];
	struct mrc_auth auth;

	mrc_conn_hello(mrcd_peer_conn(peer), path_index, &hellos[0]);
	mrc_conn_hello(mrcd_peer_conn(far_peer), path_index, &hellos[1]);
	mrc_hello_conclude(&hellos[0], &hellos[1], &auth);
	for (int h = 0; h < 2; h++) {
		links[h] = calloc(1, sizeof(*links[h]));
		assert_non_null(links[h]);
		assert_true(stage->link_count < LINKS_MAX);
		stage->all_links[stage->link_count++] = links[h];
	}
	for (int h = 1; h >= 0; h--) {
		links[h]->other = links[1 - h];
		links[h]->link = (struct mrcd_link){
			.ops = &dev_link_ops,
			.rail = &stage->hosts[h]->rails[0],
			.peer = stage->hosts[h]->peers[0],
			.receive_share = 40,
			.receive_bytes = BUFFER_BYTES,
		};
		stage->links[h] = links[h];
		mrcd_worker_now(stage->hosts[h]);
		assert_int_equal(mrcd_link_on_up(&links[h]->link, &auth, hellos[0].path_id,
						 hellos[1 - h].boot_id, true),
				 0);
	}
}

static void dev_post(struct mrcd_link *base, const struct mrc_act_post *post)
{
	struct dev_link *link = (struct dev_link *)base;
	struct dev_frame *frame = &link->frames[link->count++];
	const uint8_t *payload = stage->send + post->payload_addr;
	uint8_t *remote = (uint8_t *)(uintptr_t)post->remote_addr; /* NOLINT: that is RDMA */

	assert_false(link->is_dead);
	assert_true(link->count < FRAMES_MAX);
	*frame = (struct dev_frame){.hdr = post->hdr};
	memcpy(frame->ctl, post->body, post->body_len);
	if (post->hdr.type == MRC_WIRE_PATH_OPEN && base->peer == stage->hosts[0]->peers[0])
		stage->share_told = (uint32_t)(post->hdr.arg >> 32);
	if (post->hdr.type != MRC_WIRE_FRAG)
		return;
	if ((post->hdr.flags & MRC_WIRE_F_DIRECT) != 0) {
		assert_int_equal(post->rkey, stage->rkey);
		assert_true(remote >= stage->landing);
		assert_true(remote + post->hdr.body_len <= stage->landing + LANDING_BYTES);
		memcpy(remote, payload, post->hdr.body_len);
		frame->is_direct = true;
		stage->directs++;
		return;
	}
	frame->payload = malloc(MRC_MAX(post->hdr.body_len, 1U));
	assert_non_null(frame->payload);
	memcpy(frame->payload, payload, post->hdr.body_len);
}

static void dev_flush(struct mrcd_link *link)
{
}

static void dev_fence(struct mrcd_link *base)
{
	struct dev_link *link = (struct dev_link *)base;

	link->is_dead = true;
	mrcd_link_on_fenced(base);
}

static const struct mrcd_link_ops dev_link_ops = {
	.kind = "device",
	.post = dev_post,
	.flush = dev_flush,
	.strip = dev_flush,
	.fence = dev_fence,
};

static bool dev_has_carrier(struct mrcd_rail *rail)
{
	return true;
}

static void dev_region_add(struct mrcd_rail *rail, struct mrcd_region *region)
{
	region->rails[rail->index].rkey = stage->rkey;
	region->rails[rail->index].base = (uintptr_t)region->addr;
	mrcd_region_on_added(region, rail, 0);
}

static void dev_region_remove(struct mrcd_rail *rail, struct mrcd_region *region)
{
	mrcd_region_on_removed(region, rail);
}

static uint64_t dev_hold(const struct mrcd_rail *rail, const struct dev_frame *frame)
{
	uint32_t slot = 0;

	while (stage->lens[slot] != 0)
		assert_true(++slot < BUFFERS);
	memcpy(stage->buffers[slot], frame->payload, frame->hdr.body_len);
	stage->lens[slot] = frame->hdr.body_len;
	stage->holds++;
	return (uint64_t)(slot + 1) << 8 | rail->index;
}

static uint32_t dev_slot(const struct mrcd_rail *rail, uint64_t hold)
{
	assert_ptr_equal(rail, &stage->hosts[1]->rails[0]);
	assert_int_equal(hold & 0xff, rail->index);
	assert_true(hold >> 8 >= 1 && hold >> 8 <= BUFFERS);
	assert_true(stage->lens[(hold >> 8) - 1] > 0);
	return (uint32_t)(hold >> 8) - 1;
}

static const uint8_t *dev_hold_data(struct mrcd_rail *rail, uint64_t hold, uint32_t *len_out)
{
	uint32_t slot = dev_slot(rail, hold);

	stage->copies_from++;
	*len_out = stage->lens[slot];
	return stage->buffers[slot];
}

static void dev_hold_free(struct mrcd_rail *rail, uint64_t hold)
{
	uint32_t slot = dev_slot(rail, hold);

	memset(stage->buffers[slot], 0xee, BUFFER_BYTES);
	stage->lens[slot] = 0;
	stage->hold_frees++;
}

static const struct mrcd_rail_ops dev_ops = {
	.kind = "device",
	.connect = dev_connect,
	.has_carrier = dev_has_carrier,
	.region_add = dev_region_add,
	.region_remove = dev_region_remove,
	.hold_data = dev_hold_data,
	.hold_free = dev_hold_free,
};

static void dev_deliver(struct dev_link *from)
{
	struct dev_link *to = from != NULL ? from->other : NULL;
	uint32_t count;

	if (from == NULL || from->is_dead)
		return;
	if (to->is_dead) {
		from->is_dead = true;
		mrcd_worker_now(from->link.rail->worker);
		mrcd_link_on_down(&from->link, MRC_REASON_CLOSED, "the other end is gone");
		return;
	}
	count = from->count;
	if (count == 0)
		return;
	mrcd_worker_now(to->link.rail->worker);
	for (uint32_t i = 0; i < count; i++) {
		struct dev_frame *frame = &from->frames[i];
		uint64_t hold = 0;

		if (frame->payload != NULL && frame->hdr.body_len > 0)
			hold = dev_hold(to->link.rail, frame);
		assert_int_equal(mrcd_link_on_frame(&to->link, &frame->hdr, frame->ctl, true,
						    frame->is_direct, hold),
				 0);
		stage->keys += frame->hdr.type == MRC_WIRE_KEYS;
		free(frame->payload);
		frame->payload = NULL;
	}
	/* Nothing is posted while frames are handed over: that is the pump's, below. */
	from->count = 0;
	from->sent += count;
	mrcd_peer_pump(to->link.peer);
	mrcd_worker_now(from->link.rail->worker);
	mrcd_link_on_sent(&from->link, from->sent);
	mrcd_peer_pump(from->link.peer);
}

/* ---- the stage ---- */

static int setup(void **state)
{
	static const char *const names[2] = {"a", "b"};

	mrcd_log_init(LOG_CRIT);
	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->rkey = 0x4b;
	stage->landing = calloc(1, LANDING_BYTES);
	stage->send = malloc(LANDING_BYTES);
	assert_non_null(stage->landing);
	assert_non_null(stage->send);
	for (uint32_t i = 0; i < LANDING_BYTES; i++)
		stage->send[i] = (uint8_t)(1 + i % 251);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		stage->buffers[i] = malloc(BUFFER_BYTES);
		assert_non_null(stage->buffers[i]);
	}
	for (int h = 0; h < 2; h++) {
		struct mrcd_conf *conf = &stage->confs[h];

		strcpy(conf->host, names[h]);
		strcpy(conf->runtime_dir, "/nonexistent");
		strcpy(conf->rails[0].name, "r0");
		conf->rail_count = 1;
		/* What is tested here does not hang on how slow the machine is. */
		conf->limits.suspect_floor_ns = conf->limits.suspect_ceiling_ns = 10 * MRC_S;
		conf->peers = &stage->peers[h];
		conf->peer_count = 1;
		strcpy(stage->peers[h].name, names[1 - h]);
		stage->peers[h].path_count = 1;
		assert_int_equal(mrcd_worker_new(conf, &stage->hosts[h]), 0);
		stage->hosts[h]->rails[0].ops = &dev_ops;
		stage->hosts[h]->rails[0].is_carrier_up = true;
	}
	return 0;
}

static int teardown(void **state)
{
	uint32_t held = stage->holds - stage->hold_frees;

	mrcd_region_end(stage->region);
	assert_true(LIST_EMPTY(&stage->hosts[1]->regions));
	for (int h = 0; h < 2; h++)
		mrcd_worker_free(stage->hosts[h]);
	for (uint32_t i = 0; i < stage->link_count; i++) {
		for (uint32_t f = 0; f < stage->all_links[i]->count; f++)
			free(stage->all_links[i]->frames[f].payload);
		free(stage->all_links[i]);
	}
	for (uint32_t i = 0; i < BUFFERS; i++)
		free(stage->buffers[i]);
	free(stage->landing);
	free(stage->send);
	free(stage);
	assert_int_equal(held, 0);
	return 0;
}

static struct mrcd_peer *peer_of(int host)
{
	return stage->hosts[host]->peers[0];
}

static void turn(void)
{
	for (int h = 0; h < 2; h++)
		event_base_loop(stage->hosts[h]->base, EVLOOP_NONBLOCK);
	for (int h = 0; h < 2; h++)
		dev_deliver(stage->links[h]);
}

#define run_until(condition)                                            \
	do {                                                            \
		struct timespec begin_, now_;                           \
                                                                        \
		clock_gettime(CLOCK_MONOTONIC, &begin_);                \
		while (!(condition)) {                                  \
			turn();                                         \
			poll(NULL, 0, 1);                               \
			clock_gettime(CLOCK_MONOTONIC, &now_);          \
			if (now_.tv_sec - begin_.tv_sec > PATIENCE_S)   \
				fail_msg("never came: %s", #condition); \
		}                                                       \
	} while (0)

static bool is_settled(void)
{
	return stage->links[0]->count == 0 && stage->links[1]->count == 0 &&
	       stage->holds == stage->hold_frees;
}

static void register_landing(void)
{
	mrcd_worker_now(stage->hosts[1]);
	assert_int_equal(mrcd_region_new(stage->hosts[1], stage->landing, LANDING_BYTES, true, FLOW,
					 &stage->region),
			 0);
}

/* The conn, and a channel from a to b. */
static void begin(void)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN};
	struct mrc_path_info info;

	for (int h = 1; h >= 0; h--) {
		mrcd_worker_now(stage->hosts[h]);
		mrcd_peer_start(peer_of(h));
	}
	do {
		turn();
		poll(NULL, 0, 1);
		mrc_conn_path_info(mrcd_peer_conn(peer_of(0)), 0, &info);
	} while (info.state != MRC_PATH_GOOD);
	fill_channel(&ev, 1);
	ev.channel.service = "svc";
	ev.channel.id_out = &stage->channels[0];
	mrcd_worker_now(stage->hosts[0]);
	assert_int_equal(mrcd_peer_handle(peer_of(0), &ev), 0);
	mrcd_peer_pump(peer_of(0));
	run_until(stage->is_up && stage->channels[1] != 0);
	run_until(is_settled());
}

static void send_msg(uint64_t addr, uint64_t len)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_SEND,
		.msg = {.channel = stage->channels[0],
			.level = MRC_LVL_PLACED,
			.addr = addr,
			.len = len},
	};

	mrcd_worker_now(stage->hosts[0]);
	assert_int_equal(mrcd_peer_handle(peer_of(0), &ev), 0);
	mrcd_peer_pump(peer_of(0));
}

/* Host a has posted a fragment, among other things perhaps; it has not crossed yet. */
static struct dev_frame *run_until_posted(void)
{
	for (;;) {
		struct dev_link *link = stage->links[0];

		for (uint32_t i = 0; i < link->count; i++) {
			if (link->frames[i].hdr.type == MRC_WIRE_FRAG)
				return &link->frames[i];
		}
		event_base_loop(stage->hosts[0]->base, EVLOOP_NONBLOCK);
	}
}

/* It was delivered, whole, where DELIVER says it is. */
static void expect_bytes(uint32_t deliveries, uint64_t from, uint64_t len, bool is_eager)
{
	uint64_t at = stage->delivered.addr + (is_eager ? RING_OFFSET : 0);

	assert_int_equal(stage->deliveries, deliveries);
	assert_int_equal(stage->delivered.len, len);
	assert_int_equal(stage->delivered.is_eager, is_eager);
	assert_memory_equal(stage->landing + at, stage->send + from, len);
	/* And not a byte beyond. */
	assert_int_equal(stage->landing[at + len], 0);
	assert_true(is_eager || stage->landing[at - 1] == 0);
}

/* ---- tests ---- */

static void payload_without_a_key_is_held_and_copied(void **state)
{
	begin();
	assert_int_equal(stage->share_told, 40);
	send_msg(100, SMALL_BYTES);
	run_until(stage->deliveries == 1);
	expect_bytes(1, 100, SMALL_BYTES, true);
	assert_true(stage->copies_from > 0);
	send_msg(7000, LARGE_BYTES);
	run_until(stage->deliveries == 2);
	assert_int_equal(stage->delivered.addr, GRANT_OFFSET);
	expect_bytes(2, 7000, LARGE_BYTES, false);
	run_until(is_settled());
	assert_int_equal(stage->directs, 0);
	assert_true(stage->holds >= 3);
}

/* Only what is missing is copied: what is here was checked, and the hold may differ from it. */
static void hold_that_is_half_needed_is_copied_by_half(void **state)
{
	const uint32_t here = 3000, from = 2000;
	struct dev_link *link;
	struct dev_frame frame;
	struct mrc_wire_hdr hdr;
	uint8_t *place;

	begin();
	send_msg(100, SMALL_BYTES);
	frame = *run_until_posted();
	stage->links[0]->count = 0; /* it alone crosses, as the test likes it */
	link = stage->links[1];
	place = stage->landing + RING_OFFSET + frame.hdr.addr;
	memcpy(place, frame.payload, here);
	hdr = frame.hdr;
	hdr.body_len = here;
	mrcd_worker_now(stage->hosts[1]);
	assert_int_equal(mrcd_link_on_frame(&link->link, &hdr, NULL, true, true, 0), 0);
	/* The rest comes in a hold that begins before it. */
	memmove(frame.payload, frame.payload + from, SMALL_BYTES - from);
	memset(frame.payload, 0xbd, here - from);
	frame.hdr.offset = from;
	frame.hdr.body_len = SMALL_BYTES - from;
	assert_int_equal(mrcd_link_on_frame(&link->link, &frame.hdr, NULL, true, false,
					    dev_hold(link->link.rail, &frame)),
			 0);
	mrcd_peer_pump(peer_of(1));
	event_base_loop(stage->hosts[1]->base, EVLOOP_NONBLOCK);
	expect_bytes(1, 100, SMALL_BYTES, true);
	assert_int_equal(stage->hold_frees, 1);
	free(frame.payload);
}

/* One that was cut short by its sender ends in zeros; it is no damage for the path's health. */
static void fragment_that_ends_in_zeros_counts_as_cut_short(void **state)
{
	const struct mrcd_peer_path *path;
	struct mrc_path_info info;
	struct dev_link *link;
	struct dev_frame frame;
	uint8_t *place;

	begin();
	send_msg(100, SMALL_BYTES);
	frame = *run_until_posted();
	stage->links[0]->count = 0;
	link = stage->links[1];
	path = &peer_of(1)->paths[0];
	place = stage->landing + RING_OFFSET + frame.hdr.addr;
	mrcd_worker_now(stage->hosts[1]);
	memset(place, 0xbd, SMALL_BYTES);
	assert_int_equal(mrcd_link_on_frame(&link->link, &frame.hdr, NULL, false, true, 0), 0);
	assert_int_equal(path->cuts, 0);
	memset(place + SMALL_BYTES / 2, 0, SMALL_BYTES - SMALL_BYTES / 2);
	assert_int_equal(mrcd_link_on_frame(&link->link, &frame.hdr, NULL, false, true, 0), 0);
	assert_int_equal(path->cuts, 1);
	place[SMALL_BYTES - 16] = 1; /* fifteen zeros do not tell */
	assert_int_equal(mrcd_link_on_frame(&link->link, &frame.hdr, NULL, false, true, 0), 0);
	assert_int_equal(path->cuts, 1);
	mrc_conn_path_info(mrcd_peer_conn(peer_of(1)), 0, &info);
	assert_int_equal(info.body_errors, 3);
	stage->is_dead = true;
	assert_int_equal(mrcd_link_on_frame(&link->link, &frame.hdr, NULL, false, true, 0), 0);
	assert_int_equal(path->cuts, 1);
	free(frame.payload);
}

/* So `base` is the first byte of the whole landing memory, for rings and for buffers. */
static void payload_with_a_key_is_written_where_it_belongs(void **state)
{
	register_landing();
	begin();
	send_msg(100, SMALL_BYTES);
	run_until(stage->deliveries == 1);
	expect_bytes(1, 100, SMALL_BYTES, true);
	assert_true(stage->directs > 0);
	send_msg(300, SMALL_BYTES); /* not at the ring's beginning */
	run_until(stage->deliveries == 2);
	expect_bytes(2, 300, SMALL_BYTES, true);
	send_msg(7000, LARGE_BYTES);
	run_until(stage->deliveries == 3);
	assert_int_equal(stage->delivered.addr, GRANT_OFFSET);
	expect_bytes(3, 7000, LARGE_BYTES, false);
	assert_int_equal(stage->holds, 0);
}

static void key_that_comes_later_is_used_from_then_on(void **state)
{
	uint32_t count;

	begin();
	send_msg(100, SMALL_BYTES);
	run_until(stage->deliveries == 1);
	run_until(is_settled());
	assert_int_equal(stage->directs, 0);
	event_base_loop(stage->hosts[1]->base, EVLOOP_NONBLOCK); /* what is still to be said */
	count = stage->links[1]->count;
	register_landing();
	/* Told at the end of this turn, without another event. */
	event_base_loop(stage->hosts[1]->base, EVLOOP_NONBLOCK);
	assert_true(stage->links[1]->count > count);
	assert_int_equal(stage->links[1]->frames[count].hdr.type, MRC_WIRE_KEYS);
	run_until(stage->keys == 1);
	send_msg(300, SMALL_BYTES);
	run_until(stage->deliveries == 2);
	expect_bytes(2, 300, SMALL_BYTES, true);
	assert_int_equal(stage->directs, 1);
}

static void key_that_was_withdrawn_is_used_no_more(void **state)
{
	struct mrcd_rail *rail;

	register_landing();
	begin();
	send_msg(100, SMALL_BYTES);
	run_until(stage->deliveries == 1);
	assert_int_equal(stage->directs, 1);
	rail = &stage->hosts[1]->rails[0];
	mrcd_worker_now(stage->hosts[1]);
	mrcd_region_withdraw_all(rail);
	run_until(stage->keys == 2);
	send_msg(300, SMALL_BYTES);
	run_until(stage->deliveries == 2);
	assert_int_equal(stage->directs, 1);
	expect_bytes(2, 300, SMALL_BYTES, true);
	mrcd_region_on_removed(stage->region, rail);
	/* Its next device has another name for it. */
	stage->rkey = 0x99;
	mrcd_region_offer_all(rail);
	run_until(stage->keys == 3);
	send_msg(500, SMALL_BYTES);
	run_until(stage->deliveries == 3);
	assert_int_equal(stage->directs, 2);
	expect_bytes(3, 500, SMALL_BYTES, true);
	run_until(is_settled());
}

static void hold_of_a_dead_client_is_freed_and_copied_nowhere(void **state)
{
	begin();
	stage->is_dead = true;
	send_msg(100, SMALL_BYTES);
	run_until(stage->holds > 0 && stage->holds == stage->hold_frees);
	for (uint32_t i = 0; i < LANDING_BYTES; i++)
		assert_int_equal(stage->landing[i], 0);
}

static void hold_of_an_ended_channel_is_freed(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ABORT};

	begin();
	send_msg(100, SMALL_BYTES);
	run_until_posted();
	ev.channel.id = stage->channels[1];
	mrcd_worker_now(stage->hosts[1]);
	assert_int_equal(mrcd_peer_handle(peer_of(1), &ev), 0);
	mrcd_peer_pump(peer_of(1));
	run_until(stage->holds > 0 && stage->holds == stage->hold_frees);
	assert_int_equal(stage->deliveries, 0);
	assert_int_equal(stage->landing[RING_OFFSET], 0);
}

/* The engine does not hear of frames of a link that is no longer the path's. */
static void hold_of_a_link_that_is_fenced_is_freed(void **state)
{
	begin();
	send_msg(100, SMALL_BYTES);
	run_until_posted();
	mrcd_peer_stop(peer_of(1));
	assert_true(stage->links[1]->is_dead);
	stage->links[1]->is_dead = false;
	dev_deliver(stage->links[0]);
	stage->links[1]->is_dead = true;
	assert_true(stage->holds > 0);
	assert_int_equal(stage->holds, stage->hold_frees);
	assert_int_equal(stage->copies_from, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(payload_without_a_key_is_held_and_copied),
		TEST(hold_that_is_half_needed_is_copied_by_half),
		TEST(fragment_that_ends_in_zeros_counts_as_cut_short),
		TEST(payload_with_a_key_is_written_where_it_belongs),
		TEST(key_that_comes_later_is_used_from_then_on),
		TEST(key_that_was_withdrawn_is_used_no_more),
		TEST(hold_of_a_dead_client_is_freed_and_copied_nowhere),
		TEST(hold_of_an_ended_channel_is_freed),
		TEST(hold_of_a_link_that_is_fenced_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
