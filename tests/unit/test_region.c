/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker with two rails that register memory and one that does not, and peers that take notes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <errno.h>

#include "mrcd_peer.h"
#include "mrcd_region.h"
#include "mrcd_worker.h"

#define RAILS    3
#define PLAIN    2 /* the rail that registers none */
#define PEERS    2
#define TOLD_MAX 32
#define FLOW     7

/* ---- peers ---- */

struct mrcd_peer {
	bool is_strange; /* has no channel of this flow */
	uint32_t told_count, pumps;
	struct {
		const struct mrcd_rail *rail;
		struct mrc_ev_key key;
	} told[TOLD_MAX];
};

bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key)
{
	if (peer->is_strange)
		return false;
	assert_true(peer->told_count < TOLD_MAX);
	peer->told[peer->told_count].rail = rail;
	peer->told[peer->told_count++].key = *key;
	return true;
}

void mrcd_peer_pump(struct mrcd_peer *peer)
{
	peer->pumps++;
}

/* ---- the stage ---- */

struct stage {
	struct mrcd_worker worker;
	struct mrcd_peer peers[PEERS];
	struct mrcd_peer *peer_list[PEERS];
	uint8_t memory[64];
	bool is_prompt[RAILS]; /* answers at once */
	int error[RAILS];      /* of the next region_add */
	uint32_t adds[RAILS], removes[RAILS];
};

static struct stage *stage; /* the kind has no other way to its test */

static void answer_add(struct mrcd_region *region, uint32_t rail, int error)
{
	struct mrcd_region_rail *at = &region->rails[rail];

	assert_int_equal(at->state, MRCD_REGION_ADDING);
	if (error == 0) {
		at->lkey = 100 + rail;
		at->rkey = 200 + rail;
		at->base = 0x1000ULL * (rail + 1);
		at->kind_data = stage;
	}
	mrcd_region_on_added(region, &stage->worker.rails[rail], error);
}

static void answer_remove(struct mrcd_region *region, uint32_t rail)
{
	assert_int_equal(region->rails[rail].state, MRCD_REGION_REMOVING);
	assert_ptr_equal(region->rails[rail].kind_data, stage); /* or it could not deregister */
	mrcd_region_on_removed(region, &stage->worker.rails[rail]);
}

static void rail_add(struct mrcd_rail *rail, struct mrcd_region *region)
{
	stage->adds[rail->index]++;
	assert_int_equal(region->rails[rail->index].state, MRCD_REGION_ADDING);
	assert_null(region->rails[rail->index].kind_data);
	if (stage->is_prompt[rail->index])
		answer_add(region, rail->index, stage->error[rail->index]);
}

static void rail_remove(struct mrcd_rail *rail, struct mrcd_region *region)
{
	stage->removes[rail->index]++;
	if (stage->is_prompt[rail->index])
		answer_remove(region, rail->index);
}

static const struct mrcd_rail_ops device_ops = {
	.kind = "device",
	.region_add = rail_add,
	.region_remove = rail_remove,
};
static const struct mrcd_rail_ops plain_ops = {.kind = "plain"};

static int setup(void **state)
{
	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->worker.rail_count = RAILS;
	for (uint32_t i = 0; i < RAILS; i++) {
		stage->worker.rails[i].index = i;
		stage->worker.rails[i].worker = &stage->worker;
		stage->worker.rails[i].ops = i == PLAIN ? &plain_ops : &device_ops;
	}
	for (uint32_t i = 0; i < PEERS; i++)
		stage->peer_list[i] = &stage->peers[i];
	stage->worker.peers = stage->peer_list;
	stage->worker.peer_count = PEERS;
	return 0;
}

static int teardown(void **state)
{
	bool is_empty = LIST_EMPTY(&stage->worker.regions);

	free(stage);
	assert_true(is_empty); /* what has ended is freed; the sanitizer sees that it is so once */
	return 0;
}

static struct mrcd_region *region_new(bool is_landing)
{
	struct mrcd_region *region = NULL;

	assert_int_equal(mrcd_region_new(&stage->worker, stage->memory, sizeof(stage->memory),
					 is_landing, FLOW, &region),
			 0);
	assert_ptr_equal(region->addr, stage->memory);
	assert_int_equal(region->len_bytes, sizeof(stage->memory));
	return region;
}

static void be_prompt(void)
{
	stage->is_prompt[0] = stage->is_prompt[1] = true;
}

/* The last thing this peer was told. */
static void expect_told(uint32_t peer, uint32_t count, uint32_t rail, bool is_valid)
{
	struct mrcd_peer *p = &stage->peers[peer];

	assert_int_equal(p->told_count, count);
	assert_ptr_equal(p->told[count - 1].rail, &stage->worker.rails[rail]);
	assert_int_equal(p->told[count - 1].key.flow, FLOW);
	assert_int_equal(p->told[count - 1].key.is_valid, is_valid);
	if (is_valid) {
		assert_int_equal(p->told[count - 1].key.rkey, 200 + rail);
		assert_int_equal(p->told[count - 1].key.base, 0x1000 * (rail + 1));
	}
}

static void expect_freed(void)
{
	assert_true(LIST_EMPTY(&stage->worker.regions));
}

/* ---- beginning ---- */

static void region_is_told_as_each_rail_has_it(void **state)
{
	struct mrcd_region *region = region_new(true);

	assert_int_equal(stage->adds[0], 1);
	assert_int_equal(stage->adds[1], 1);
	assert_int_equal(stage->peers[0].told_count, 0);
	answer_add(region, 1, 0);
	assert_int_equal(region->rails[1].state, MRCD_REGION_READY);
	for (uint32_t p = 0; p < PEERS; p++) {
		expect_told(p, 1, 1, true);
		assert_int_equal(stage->peers[p].pumps, 1);
	}
	answer_add(region, 0, 0);
	expect_told(1, 2, 0, true);
	be_prompt();
	mrcd_region_end(region);
}

static void region_takes_an_answer_from_within_the_question(void **state)
{
	struct mrcd_region *region;

	be_prompt();
	region = region_new(true);
	assert_int_equal(region->rails[0].state, MRCD_REGION_READY);
	assert_int_equal(region->rails[1].state, MRCD_REGION_READY);
	assert_int_equal(region->rails[PLAIN].state, MRCD_REGION_NONE);
	expect_told(0, 2, 1, true);
	mrcd_region_end(region);
	assert_int_equal(stage->removes[0], 1);
	assert_int_equal(stage->removes[1], 1);
	expect_freed();
}

static void region_that_is_only_sent_from_has_no_key_for_peers(void **state)
{
	struct mrcd_region *region;

	be_prompt();
	region = region_new(false);
	assert_int_equal(region->rails[0].state, MRCD_REGION_READY);
	mrcd_region_end(region);
	assert_int_equal(stage->peers[0].told_count, 0);
	assert_int_equal(stage->peers[0].pumps, 0);
}

static void region_pumps_only_peers_that_know_its_flow(void **state)
{
	struct mrcd_region *region;

	be_prompt();
	stage->peers[0].is_strange = true;
	region = region_new(true);
	assert_int_equal(stage->peers[0].pumps, 0);
	assert_int_equal(stage->peers[1].pumps, 2);
	mrcd_region_end(region);
	assert_int_equal(stage->peers[0].pumps, 0);
}

static void region_that_no_device_took_is_never_told(void **state)
{
	struct mrcd_region *region;

	be_prompt();
	stage->error[0] = stage->error[1] = -ENOMEM;
	region = region_new(true);
	assert_int_equal(region->rails[0].state, MRCD_REGION_FAILED);
	mrcd_region_tell_keys(region, &stage->peers[0]);
	assert_int_equal(stage->peers[0].told_count, 0);
	mrcd_region_end(region);
	assert_int_equal(stage->removes[0], 0);
	expect_freed();
}

static void region_tells_a_new_channel_what_is_ready(void **state)
{
	struct mrcd_region *region = region_new(true);

	answer_add(region, 0, -EIO);
	answer_add(region, 1, 0);
	mrcd_region_tell_keys(region, &stage->peers[1]);
	expect_told(1, 2, 1, true);
	assert_int_equal(stage->peers[1].pumps, 1); /* of the registration; the caller pumps */
	assert_int_equal(stage->peers[0].told_count, 1);
	be_prompt();
	mrcd_region_end(region);
}

/* ---- end ---- */

static void region_is_freed_by_the_last_answer(void **state)
{
	for (uint32_t first = 0; first < 2; first++) {
		struct mrcd_region *region = region_new(true);

		answer_add(region, 0, 0);
		answer_add(region, 1, 0);
		mrcd_region_end(region);
		expect_told(0, 4 * (first + 1), 1, false);
		assert_int_equal(stage->removes[0], first + 1);
		assert_int_equal(stage->removes[1], first + 1);
		answer_remove(region, first);
		assert_false(LIST_EMPTY(&stage->worker.regions));
		answer_remove(region, 1 - first);
		expect_freed();
	}
}

static void region_that_ends_with_one_prompt_and_one_slow_rail_waits(void **state)
{
	for (uint32_t prompt = 0; prompt < 2; prompt++) {
		struct mrcd_region *region = region_new(true);

		answer_add(region, 0, 0);
		answer_add(region, 1, 0);
		stage->is_prompt[prompt] = true;
		mrcd_region_end(region);
		stage->is_prompt[prompt] = false;
		answer_remove(region, 1 - prompt);
		expect_freed();
	}
}

static void region_that_ends_while_it_is_registered_is_removed_then(void **state)
{
	struct mrcd_region *region = region_new(true);

	mrcd_region_end(region);
	assert_int_equal(stage->removes[0], 0); /* first things first */
	answer_add(region, 0, 0);
	assert_int_equal(stage->removes[0], 1);
	answer_remove(region, 0);
	assert_false(LIST_EMPTY(&stage->worker.regions));
	answer_add(region, 1, -EFAULT);
	expect_freed();
	assert_int_equal(stage->removes[1], 0);
	assert_int_equal(stage->peers[0].told_count, 0); /* it never was anybody's to write to */
}

/* Else a slow device would be given what was mapped there next. */
static void memory_stays_until_no_rail_can_be_registering_it(void **state)
{
	const size_t bytes = 4096;
	uint8_t *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mrcd_region *region;
	unsigned char vec;

	assert_ptr_not_equal(memory, MAP_FAILED);
	memory[0] = 1;
	assert_int_equal(mrcd_region_new(&stage->worker, memory, bytes, true, FLOW, &region), 0);
	answer_add(region, 0, 0);
	mrcd_region_end_unmap(region);
	assert_int_equal(mincore(memory, bytes, &vec), 0); /* there */
	answer_remove(region, 0);
	assert_int_equal(mincore(memory, bytes, &vec), 0); /* the other rail has not answered */
	answer_add(region, 1, -EFAULT);
	expect_freed();
	assert_int_equal(mincore(memory, bytes, &vec), -1);
	assert_int_equal(errno, ENOMEM);
}

static void region_without_rails_ends_at_once(void **state)
{
	struct mrcd_region *region;

	stage->worker.rail_count = 0;
	region = region_new(true);
	mrcd_region_end(region);
	expect_freed();
	mrcd_region_end(NULL);
}

static void closed_rails_owe_no_answer(void **state)
{
	struct mrcd_region *region = region_new(true);

	answer_add(region, 0, 0);
	mrcd_region_end(region);
	region_new(false);
	assert_false(LIST_EMPTY(&stage->worker.regions));
	mrcd_region_free_all(&stage->worker);
}

/* ---- devices go and come ---- */

static void device_that_goes_takes_its_keys_with_it(void **state)
{
	struct mrcd_region *region = region_new(true);
	struct mrcd_region *other = region_new(false);

	answer_add(region, 0, 0);
	answer_add(region, 1, 0);
	answer_add(other, 0, 0);
	answer_add(other, 1, 0);
	mrcd_region_withdraw_all(&stage->worker.rails[0]);
	expect_told(0, 3, 0, false);
	assert_int_equal(stage->peers[0].pumps, 3);
	assert_int_equal(region->rails[0].state, MRCD_REGION_REMOVING);
	assert_int_equal(other->rails[0].state, MRCD_REGION_REMOVING);
	assert_int_equal(region->rails[1].state, MRCD_REGION_READY);
	assert_int_equal(stage->removes[0], 0); /* it knows */
	mrcd_region_tell_keys(region, &stage->peers[0]);
	expect_told(0, 4, 1, true);

	/* One ends while the device is going; it waits for that rail, too. */
	mrcd_region_end(region);
	assert_int_equal(stage->removes[0], 0);
	assert_int_equal(stage->removes[1], 1);
	answer_remove(region, 1);
	answer_remove(region, 0);
	answer_remove(other, 0);
	assert_int_equal(other->rails[0].state, MRCD_REGION_NONE);
	be_prompt();
	mrcd_region_end(other);
	expect_freed();
}

static void device_that_comes_is_offered_what_it_lacks(void **state)
{
	struct mrcd_region *none = region_new(true);
	struct mrcd_region *failed = region_new(true);
	struct mrcd_region *ready = region_new(true);
	struct mrcd_region *ending = region_new(true);
	struct mrcd_region *adding = region_new(true);
	struct mrcd_rail *rail = &stage->worker.rails[0];

	answer_add(none, 0, 0);
	mrcd_region_withdraw_all(rail);
	answer_remove(none, 0);
	answer_add(failed, 0, -ENODEV);
	answer_add(ready, 0, 0);
	answer_add(ending, 0, -ENODEV);
	mrcd_region_end(ending);
	assert_int_equal(stage->adds[0], 5);
	mrcd_region_offer_all(rail);
	assert_int_equal(stage->adds[0], 7);
	assert_int_equal(stage->adds[1], 5);
	assert_int_equal(none->rails[0].state, MRCD_REGION_ADDING);
	assert_int_equal(failed->rails[0].state, MRCD_REGION_ADDING);
	assert_int_equal(ready->rails[0].state, MRCD_REGION_READY);
	answer_add(failed, 0, 0);
	expect_told(0, 4, 0, true);
	mrcd_region_offer_all(&stage->worker.rails[PLAIN]);
	mrcd_region_free_all(&stage->worker);
	(void)adding;
}

static void device_that_goes_still_answers_what_it_was_registering(void **state)
{
	struct mrcd_region *region = region_new(true);

	mrcd_region_withdraw_all(&stage->worker.rails[0]);
	assert_int_equal(region->rails[0].state, MRCD_REGION_ADDING);
	mrcd_region_end(region);
	answer_add(region, 1, -EIO);
	assert_false(LIST_EMPTY(&stage->worker.regions));
	answer_add(region, 0, -ENODEV);
	expect_freed();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(region_is_told_as_each_rail_has_it),
		TEST(region_takes_an_answer_from_within_the_question),
		TEST(region_that_is_only_sent_from_has_no_key_for_peers),
		TEST(region_pumps_only_peers_that_know_its_flow),
		TEST(region_that_no_device_took_is_never_told),
		TEST(region_tells_a_new_channel_what_is_ready),
		TEST(region_is_freed_by_the_last_answer),
		TEST(region_that_ends_with_one_prompt_and_one_slow_rail_waits),
		TEST(region_that_ends_while_it_is_registered_is_removed_then),
		TEST(memory_stays_until_no_rail_can_be_registering_it),
		TEST(region_without_rails_ends_at_once),
		TEST(closed_rails_owe_no_answer),
		TEST(device_that_goes_takes_its_keys_with_it),
		TEST(device_that_comes_is_offered_what_it_lacks),
		TEST(device_that_goes_still_answers_what_it_was_registering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
