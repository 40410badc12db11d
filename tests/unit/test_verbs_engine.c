/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with real engines over two rails with devices (verbs_fake.h): what a
 * queue pair's failure does to messages. The client side is this file's: the
 * calls from the daemon to it are wrapped.
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
#include <time.h>

#include "mrcd_client.h"
#include "mrcd_log.h"
#include "mrcd_peer_impl.h"
#include "mrcd_renewal.h"
#include "mrcd_verbs.h"
#include "mrcd_worker.h"
#include "verbs_fake.h"

#define RAILS        2
#define WINDOW       16U
#define LARGE_BYTES  300000U
#define SLOT_BYTES   (320U * 1024U) /* of landing memory, for a message above the ring's */
#define RING_OFFSET  ((uint64_t)WINDOW * SLOT_BYTES)
#define RING_BYTES   (256U * 1024U)
#define ARENA_BYTES  (RING_OFFSET + RING_BYTES)
#define MESSAGES_MAX (1U << 22) /* more than any machine sends while the queue pairs fail */
#define FLOW         3
#define COOKIE       0xc00c1eULL
#define PATIENCE_S   60

static const uint64_t lens[] = {8, 700, LARGE_BYTES, 5000, 70000};
static const char *const addresses[2][RAILS] = {{"127.0.1.1", "127.0.2.1"},
						{"127.0.1.2", "127.0.2.2"}};

struct stage {
	struct mrcd_conf confs[2];
	struct mrcd_conf_peer peers[2];
	struct mrcd_worker *hosts[2];
	uint8_t *send, *landing; /* ARENA_BYTES each; a's and b's */
	struct mrcd_region *send_region, *landing_region;
	uint32_t channels[2];
	bool is_up;
	uint64_t sent, delivered, done;
	bool is_done[MESSAGES_MAX];
	uint64_t numbers; /* of the next to be delivered: each once, and in order */
};

static struct stage *stage;

static struct mrcd_peer *peer_of(int host)
{
	return stage->hosts[host]->peers[0];
}

/* What message `number` is made of. */
static uint64_t len_of(uint64_t number)
{
	return lens[number % MRC_ARRAY_LEN(lens)];
}

static uint64_t offset_of(uint64_t number)
{
	return number * 7919 % (ARENA_BYTES - LARGE_BYTES);
}

/* ---- the client side ---- */

void __wrap_mrcd_client_side_perform(struct mrcd_client_side *clients, struct mrcd_peer *peer,
				     const struct mrc_action *act);
void *__wrap_mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place,
				 uint64_t len);
const void *__wrap_mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie,
				    uint64_t addr, uint64_t len);
struct mrcd_region *__wrap_mrcd_send_region(struct mrcd_worker *worker, uint64_t channel_cookie);

void *__wrap_mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place,
				 uint64_t len)
{
	assert_ptr_equal(worker, stage->hosts[1]);
	assert_true(place->addr + len <= (place->is_eager ? RING_BYTES : RING_OFFSET));
	return stage->landing + (place->is_eager ? RING_OFFSET : 0) + place->addr;
}

const void *__wrap_mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie,
				    uint64_t addr, uint64_t len)
{
	assert_ptr_equal(worker, stage->hosts[0]);
	assert_true(addr + len <= ARENA_BYTES);
	return stage->send + addr;
}

struct mrcd_region *__wrap_mrcd_send_region(struct mrcd_worker *worker, uint64_t channel_cookie)
{
	return stage->send_region;
}

static void fill_channel(struct mrc_event_in *ev)
{
	ev->channel.flow = FLOW;
	ev->channel.cookie = COOKIE;
	ev->channel.ring_addr = RING_OFFSET;
	ev->channel.ring_bytes = RING_BYTES;
	ev->channel.msg_bytes_max = SLOT_BYTES;
	ev->channel.window = WINDOW;
}

/* Its bytes are all there now, and are not looked at again: the buffer goes back with a mess in it. */
static void delivered(struct mrcd_peer *peer, const struct mrc_act_msg *msg)
{
	uint8_t *at = stage->landing + (msg->is_eager ? RING_OFFSET : 0) + msg->addr;
	struct mrc_event_in ev = {
		.kind = MRC_EV_RELEASE,
		.msg = {.channel = msg->channel, .number = msg->number},
	};

	assert_int_equal(msg->number, stage->numbers);
	stage->numbers++;
	assert_int_equal(msg->len, len_of(stage->delivered));
	assert_memory_equal(at, stage->send + offset_of(stage->delivered), msg->len);
	memset(at, 0xee, msg->len);
	stage->delivered++;
	assert_int_equal(mrcd_peer_handle(peer, &ev), 0);
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
		fill_channel(&ev);
		assert_int_equal(mrcd_peer_handle(peer, &ev), 0);
		mrcd_region_tell_keys(stage->landing_region, peer);
		break;
	case MRC_ACT_CH_UP:
		stage->is_up |= !is_far;
		break;
	case MRC_ACT_LANDING_WANT:
		assert_true(is_far);
		ev.kind = MRC_EV_LANDING;
		ev.msg.channel = act->msg.channel;
		ev.msg.number = act->msg.number;
		ev.msg.addr = act->msg.number % WINDOW * SLOT_BYTES;
		ev.msg.len = act->msg.len;
		assert_int_equal(mrcd_peer_handle(peer, &ev), 0);
		break;
	case MRC_ACT_DELIVER:
		delivered(peer, &act->msg);
		break;
	case MRC_ACT_DONE:
		assert_false(is_far);
		assert_int_equal(act->msg.outcome, 0);
		/* Once each; what says so may have come by the other path first. */
		assert_true(act->msg.cookie < stage->sent);
		assert_false(stage->is_done[act->msg.cookie]);
		stage->is_done[act->msg.cookie] = true;
		stage->done++;
		break;
	case MRC_ACT_CH_DOWN:
	case MRC_ACT_GAP:
	case MRC_ACT_CONN_RESET:
		fail_msg("the conn has lost something");
		break;
	default:
		break;
	}
}

/* ---- the stage ---- */

static struct mrcd_verbs *verbs_of(int host, uint32_t rail)
{
	return stage->hosts[host]->rails[rail].kind_data;
}

static void host_make(int h)
{
	static const char *const names[2] = {"a", "b"};
	struct mrcd_conf *conf = &stage->confs[h];

	strcpy(conf->host, names[h]);
	strcpy(conf->runtime_dir, "/nonexistent");
	conf->handshake_timeout_ns = 10 * MRC_S;
	conf->handshakes_max = 8;
	conf->spin_ns = 50 * MRC_US;
	conf->rail_count = RAILS;
	/* What is tested here does not hang on how slow the machine is: only errors end a path. */
	conf->limits.suspect_floor_ns = conf->limits.suspect_ceiling_ns = 100 * MRC_S;
	conf->peers = &stage->peers[h];
	conf->peer_count = 1;
	strcpy(stage->peers[h].name, names[1 - h]);
	stage->peers[h].key_count = 1;
	stage->peers[h].keys[0].len_bytes = 16;
	memset(stage->peers[h].keys[0].bytes, 'k', 16);
	stage->peers[h].path_count = RAILS;
	for (uint32_t r = 0; r < RAILS; r++) {
		struct mrcd_conf_rail *rail = &conf->rails[r];
		struct mrcd_conf_path *path = &stage->peers[h].paths[r];

		snprintf(rail->name, sizeof(rail->name), "r%u", r);
		snprintf(rail->address, sizeof(rail->address), "%s", addresses[h][r]);
		rail->type = MRCD_RAIL_VERBS;
		rail->ack_timeout = 14;
		rail->retry_count = 6;
		rail->receive_entries = 128;
		rail->receive_entry_bytes = 16384;
		path->rail_index = r;
		snprintf(path->address, sizeof(path->address), "%s", addresses[1 - h][r]);
	}
	assert_int_equal(mrcd_worker_new(conf, &stage->hosts[h]), 0);
}

static int set_up(void **state)
{
	uint32_t random = 1;

	mrcd_log_init(LOG_CRIT);
	verbs_fake_begin();
	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->send = malloc(ARENA_BYTES);
	stage->landing = calloc(1, ARENA_BYTES);
	assert_non_null(stage->send);
	assert_non_null(stage->landing);
	for (uint64_t i = 0; i < ARENA_BYTES; i++) {
		random = random * 1664525 + 1013904223;
		stage->send[i] = (uint8_t)(random >> 24);
	}
	for (int h = 0; h < 2; h++) {
		for (uint8_t r = 0; r < RAILS; r++)
			verbs_fake_port(h ? "fake1" : "fake0", r + 1, addresses[h][r],
					IBV_TRANSPORT_IB);
		host_make(h);
	}
	return 0;
}

static int tear_down(void **state)
{
	const char *violation;

	for (int h = 0; h < 2; h++)
		mrcd_worker_free(stage->hosts[h]);
	free(stage->send);
	free(stage->landing);
	free(stage);
	violation = verbs_fake_end();
	if (violation)
		fail_msg("the device says: %s", violation);
	assert_int_equal(verbs_fake_left(), 0);
	return 0;
}

/* False: its channel has no room now, since an older message is not answered yet. */
static bool send_next(void)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_SEND,
		.msg = {.channel = stage->channels[0],
			.level = MRC_LVL_PLACED,
			.cookie = stage->sent,
			.addr = offset_of(stage->sent),
			.len = len_of(stage->sent)},
	};

	int r;

	assert_true(stage->sent < MESSAGES_MAX);
	r = mrcd_peer_handle(peer_of(0), &ev);
	if (r == -ENOSPC)
		return false;
	assert_int_equal(r, 0);
	stage->sent++;
	return true;
}

/* One turn of both loops; a's client keeps half of its window full, up to `messages`. */
static void turn(uint64_t messages)
{
	mrcd_worker_now(stage->hosts[0]);
	while (stage->sent < messages && stage->sent - stage->done < WINDOW / 2 && send_next())
		;
	mrcd_peer_pump(peer_of(0));
	for (int h = 0; h < 2; h++)
		event_base_loop(stage->hosts[h]->base, EVLOOP_NONBLOCK);
}

#define run_until(messages, condition)                                  \
	do {                                                            \
		struct timespec begin_, now_;                           \
                                                                        \
		clock_gettime(CLOCK_MONOTONIC, &begin_);                \
		while (!(condition)) {                                  \
			turn(messages);                                 \
			clock_gettime(CLOCK_MONOTONIC, &now_);          \
			if (now_.tv_sec - begin_.tv_sec > PATIENCE_S)   \
				fail_msg("never came: %s", #condition); \
		}                                                       \
	} while (0)

static struct mrc_path_info info_of(int host, uint8_t path)
{
	struct mrc_path_info info;

	mrc_conn_path_info(mrcd_peer_conn(peer_of(host)), path, &info);
	return info;
}

static bool is_whole(void)
{
	for (int h = 0; h < 2; h++) {
		for (uint8_t p = 0; p < RAILS; p++) {
			if (info_of(h, p).state != MRC_PATH_GOOD)
				return false;
		}
	}
	return true;
}

static bool has_devices(void)
{
	for (int h = 0; h < 2; h++) {
		for (uint32_t r = 0; r < RAILS; r++) {
			if (!verbs_of(h, r)->device)
				return false;
		}
	}
	return true;
}

static bool is_registered(const struct mrcd_region *region)
{
	for (uint32_t r = 0; r < RAILS; r++) {
		if (region->rails[r].state != MRCD_REGION_READY)
			return false;
	}
	return true;
}

/* Where b listens on this rail. */
static void port_learn(uint32_t rail)
{
	struct sockaddr_in address = {0};
	socklen_t len = sizeof(address);

	assert_int_equal(getsockname(verbs_of(1, rail)->tcp->listen_fd, (struct sockaddr *)&address,
				     &len),
			 0);
	stage->hosts[0]->peers[0]->conf->paths[rail].port = ntohs(address.sin_port);
}

/* Rails, devices, memory, the conn, and a channel from a to b. */
static void begin(void)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN};

	for (int h = 1; h >= 0; h--) {
		struct mrcd_worker *host = stage->hosts[h];

		for (uint32_t r = 0; r < RAILS; r++) {
			host->rails[r].is_carrier_up = true;
			assert_int_equal(host->rails[r].ops->open(&host->rails[r]), 0);
			host->rails[r].is_open = true;
		}
	}
	for (uint32_t r = 0; r < RAILS; r++)
		port_learn(r);
	assert_int_equal(mrcd_region_new(stage->hosts[0], stage->send, ARENA_BYTES, false, FLOW,
					 &stage->send_region),
			 0);
	assert_int_equal(mrcd_region_new(stage->hosts[1], stage->landing, ARENA_BYTES, true, FLOW,
					 &stage->landing_region),
			 0);
	run_until(0, has_devices());
	run_until(0, is_registered(stage->send_region) && is_registered(stage->landing_region));
	for (int h = 1; h >= 0; h--) {
		mrcd_worker_now(stage->hosts[h]);
		mrcd_peer_start(peer_of(h));
	}
	run_until(0, is_whole());
	fill_channel(&ev);
	ev.channel.service = "svc";
	ev.channel.id_out = &stage->channels[0];
	mrcd_worker_now(stage->hosts[0]);
	assert_int_equal(mrcd_peer_handle(peer_of(0), &ev), 0);
	run_until(0, stage->is_up && stage->channels[1] != 0);
}

/* The queue pair of a path that is up; 0: none. */
static uint32_t number_of(int host, uint32_t rail)
{
	struct mrcd_verbs_link *link;

	LIST_FOREACH(link, &verbs_of(host, rail)->links, entry)
	{
		if (link->state == MRCD_VERBS_LINK_UP)
			return link->number;
	}
	return 0;
}

/* ---- tests ---- */

static void messages_go_by_both_rails_straight_to_where_they_belong(void **state)
{
	const uint64_t messages = 1000;

	begin();
	run_until(messages, stage->done == messages);
	assert_int_equal(stage->delivered, messages);
	for (uint8_t p = 0; p < RAILS; p++) {
		assert_true(verbs_of(0, p)->counters.writes > 0);
		assert_int_equal(info_of(0, p).frames_resent, 0);
		assert_int_equal(info_of(0, p).bad_count, 0);
		assert_int_equal(verbs_of(0, p)->counters.bounces, 0);
	}
}

/*
 * Again and again one of the four queue pairs fails, with this much of what was
 * posted carried out. Its path is fenced at both ends, what it had is sent by
 * the other, it is built anew, and every message is delivered once, in order.
 */
static void queue_pairs_that_fail_lose_and_double_nothing(void **state)
{
	uint64_t resent = 0;

	begin();
	for (uint32_t round = 0; round < 24; round++) {
		uint32_t host = round % 2, rail = round / 2 % RAILS, number;
		uint64_t epochs[2] = {info_of(0, (uint8_t)rail).epoch,
				      info_of(1, (uint8_t)rail).epoch};
		uint64_t messages = stage->sent + WINDOW * 4, delivered_before = stage->delivered;

		run_until(messages, stage->delivered >= delivered_before + WINDOW);
		verbs_fake_hold_work(true);
		for (int i = 0; i < 20; i++)
			turn(messages);
		verbs_fake_work((int)round * 3);
		number = number_of((int)host, rail);
		assert_int_not_equal(number, 0);
		verbs_fake_qp_fail(number, IBV_WC_RETRY_EXC_ERR);
		/* Where nothing was posted it is found out by what is posted next. */
		verbs_fake_hold_work(false);
		run_until(UINT64_MAX, info_of(0, (uint8_t)rail).epoch > epochs[0] &&
					      info_of(1, (uint8_t)rail).epoch > epochs[1] &&
					      is_whole());
		run_until(stage->sent, stage->done == stage->sent);
		assert_int_equal(stage->delivered, stage->sent);
		assert_int_not_equal(number_of((int)host, rail), number);
	}
	for (uint8_t p = 0; p < RAILS; p++) {
		resent += info_of(0, p).frames_resent;
		assert_true(verbs_of(0, p)->counters.fences >= 12);
		assert_true(verbs_of(1, p)->counters.fences >= 12);
	}
	assert_true(resent > 0);
}

static void renewal_begin(int host)
{
	struct mrcd_worker *worker = stage->hosts[host];

	mrcd_worker_now(worker);
	if (worker->renewal == NULL)
		assert_int_equal(mrcd_renewal_new(worker, &worker->renewal), 0);
	mrcd_renewal_go_on(worker->renewal);
}

/* Its device is closed and opened while the other one writes into the same memory. */
static void a_rail_is_opened_anew_under_messages_and_loses_none(void **state)
{
	begin();
	for (int h = 0; h < 2; h++) {
		struct mrcd_rail *rail = &stage->hosts[h]->rails[0];
		uint32_t epoch = info_of(0, 1).epoch;
		uint64_t delivered_before = stage->delivered;

		run_until(UINT64_MAX, stage->delivered >= delivered_before + WINDOW);
		rail->next = rail->given;
		rail->next.ack_timeout = 15;
		rail->fate = MRCD_RAIL_RENEW;
		renewal_begin(h);
		assert_int_not_equal(rail->fate, MRCD_RAIL_STAYS); /* it takes more than a moment */
		run_until(UINT64_MAX, rail->fate == MRCD_RAIL_STAYS);
		if (h == 1)
			port_learn(0);
		run_until(UINT64_MAX, has_devices() && is_whole());
		run_until(UINT64_MAX, is_registered(stage->send_region) &&
					      is_registered(stage->landing_region));
		assert_int_equal(verbs_of(h, 0)->conf.ack_timeout, 15);
		run_until(UINT64_MAX, verbs_of(0, 0)->counters.writes > 0);
		assert_int_equal(info_of(0, 1).epoch, epoch);
		assert_int_equal(info_of(0, 1).bad_count, 0);
	}
	run_until(stage->sent, stage->done == stage->sent);
	assert_int_equal(stage->delivered, stage->sent);
}

static void a_rail_goes_under_messages_and_takes_none_along(void **state)
{
	struct mrcd_rail *rail;

	begin();
	rail = &stage->hosts[0]->rails[0];
	run_until(UINT64_MAX, stage->delivered >= WINDOW);
	mrcd_peer_path_doom(peer_of(0), 0, true);
	rail->fate = MRCD_RAIL_GOES;
	/* An engine has some of its memory yet. */
	rail->hold_count++;
	renewal_begin(0);
	run_until(UINT64_MAX, mrcd_peer_path_rail(peer_of(0), 0) == NULL);
	for (int i = 0; i < 100; i++)
		turn(UINT64_MAX);
	assert_non_null(verbs_of(0, 0)->device);
	rail->hold_count--;
	/* What the device takes its time for is not waited for on the loop. */
	assert_false(rail->ops->leave(rail));
	run_until(UINT64_MAX, !mrcd_rail_is_there(rail));
	assert_int_equal(stage->send_region->rails[0].state, MRCD_REGION_NONE);
	assert_int_equal(stage->send_region->rails[1].state, MRCD_REGION_READY);
	run_until(UINT64_MAX, stage->delivered >= 4 * WINDOW);
	run_until(stage->sent, stage->done == stage->sent);
	assert_int_equal(stage->delivered, stage->sent);
	assert_int_equal(info_of(0, 1).bad_count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			messages_go_by_both_rails_straight_to_where_they_belong, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queue_pairs_that_fail_lose_and_double_nothing,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rail_is_opened_anew_under_messages_and_loses_none,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rail_goes_under_messages_and_takes_none_along,
						set_up, tear_down),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
