/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mrcd_offload.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define THREADS  3
#define RESERVED 1
#define GUARD_S  60 /* what hangs until then is wrong */

struct stage {
	struct event_base *base;
	struct mrcd_offload *offload;
};

/* A job that keeps a diary. */
struct entry {
	struct mrcd_job job;
	struct diary *diary;
	uint32_t number;
	uint32_t done_before; /* how many were done when it ran */
	bool is_on_loop;      /* run() was called on the loop's thread */
	bool is_done;
	sem_t *waits_for, *tells; /* NULL: nothing */
};

struct diary {
	pthread_t loop;
	atomic_uint running, running_max, runs;
	uint32_t done_count;
	uint32_t done_order[16];
	bool is_done_elsewhere; /* done() was called off the loop's thread */
};

static int set_up(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	assert_non_null(stage);
	stage->base = event_base_new();
	assert_non_null(stage->base);
	assert_int_equal(mrcd_offload_new(stage->base, THREADS, RESERVED, &stage->offload), 0);
	*state = stage;
	alarm(GUARD_S);
	return 0;
}

static int tear_down(void **state)
{
	struct stage *stage = *state;

	mrcd_offload_free(stage->offload);
	event_base_free(stage->base);
	free(stage);
	alarm(0);
	return 0;
}

static void entry_run(struct mrcd_job *job)
{
	struct entry *entry = (struct entry *)job;
	struct diary *diary = entry->diary;
	unsigned now = atomic_fetch_add(&diary->running, 1) + 1;
	unsigned max = atomic_load(&diary->running_max);

	while (now > max && !atomic_compare_exchange_weak(&diary->running_max, &max, now))
		;
	entry->is_on_loop = pthread_equal(pthread_self(), diary->loop);
	if (entry->tells)
		sem_post(entry->tells);
	if (entry->waits_for)
		sem_wait(entry->waits_for);
	atomic_fetch_sub(&diary->running, 1);
	atomic_fetch_add(&diary->runs, 1);
}

/* Reads what done() writes: right only where the two cannot be under way at once. */
static void entry_run_in_order(struct mrcd_job *job)
{
	struct entry *entry = (struct entry *)job;

	entry->done_before = entry->diary->done_count;
	entry_run(job);
}

static void entry_done(struct mrcd_job *job)
{
	struct entry *entry = (struct entry *)job;
	struct diary *diary = entry->diary;

	diary->is_done_elsewhere |= !pthread_equal(pthread_self(), diary->loop);
	diary->done_order[diary->done_count++] = entry->number;
	entry->is_done = true;
}

static struct entry entry_of(struct diary *diary, uint32_t number)
{
	return (struct entry){
		.job = {.run = entry_run, .done = entry_done},
		.diary = diary,
		.number = number,
	};
}

static void loop_until_idle(struct stage *stage)
{
	while (mrcd_offload_pending(stage->offload))
		event_base_loop(stage->base, EVLOOP_ONCE);
}

static void a_lane_keeps_its_order(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};
	struct mrcd_lane lane;
	struct entry entries[8];

	mrcd_lane_init(&lane);
	assert_true(mrcd_lane_is_idle(&lane));
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(entries); i++) {
		entries[i] = entry_of(&diary, i);
		entries[i].job.run = entry_run_in_order;
		entries[i].job.is_slow = i & 1;
		mrcd_offload_submit(stage->offload, &lane, &entries[i].job);
		assert_false(mrcd_lane_is_idle(&lane));
		assert_int_equal(mrcd_offload_pending(stage->offload), i + 1);
		assert_int_equal(diary.done_count, 0); /* not inside the call */
	}
	loop_until_idle(stage);
	assert_true(mrcd_lane_is_idle(&lane));
	assert_int_equal(diary.running_max, 1);
	assert_int_equal(diary.done_count, MRC_ARRAY_LEN(entries));
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(entries); i++) {
		assert_int_equal(diary.done_order[i], i);
		assert_int_equal(entries[i].done_before, i);
		assert_false(entries[i].is_on_loop);
	}
	assert_false(diary.is_done_elsewhere);
}

/* Each waits until the other runs. */
static void lanes_do_not_wait_for_each_other(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};
	struct mrcd_lane lanes[2];
	struct entry entries[2];
	sem_t sems[2];

	for (uint32_t i = 0; i < 2; i++)
		sem_init(&sems[i], 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		mrcd_lane_init(&lanes[i]);
		entries[i] = entry_of(&diary, i);
		entries[i].tells = &sems[i];
		entries[i].waits_for = &sems[1 - i];
		mrcd_offload_submit(stage->offload, &lanes[i], &entries[i].job);
	}
	loop_until_idle(stage);
	assert_int_equal(diary.done_count, 2);
	assert_int_equal(diary.running_max, 2);
	for (uint32_t i = 0; i < 2; i++)
		sem_destroy(&sems[i]);
}

static void slow_jobs_leave_a_thread_for_the_others(void **state)
{
	struct stage *stage = *state;
	struct diary slow = {.loop = pthread_self()}, quick = {.loop = pthread_self()};
	struct mrcd_lane lanes[6];
	struct entry entries[6];
	sem_t gate, begun;

	sem_init(&gate, 0, 0);
	sem_init(&begun, 0, 0);
	for (uint32_t i = 0; i < 6; i++)
		mrcd_lane_init(&lanes[i]);
	for (uint32_t i = 0; i < 5; i++) {
		entries[i] = entry_of(&slow, i);
		entries[i].job.is_slow = true;
		entries[i].waits_for = &gate;
		entries[i].tells = &begun;
		mrcd_offload_submit(stage->offload, &lanes[i], &entries[i].job);
	}
	for (uint32_t i = 0; i < THREADS - RESERVED; i++)
		sem_wait(&begun);
	/* They hang. This one goes by them all. */
	entries[5] = entry_of(&quick, 5);
	mrcd_offload_submit(stage->offload, &lanes[5], &entries[5].job);
	while (!entries[5].is_done)
		event_base_loop(stage->base, EVLOOP_ONCE);
	assert_int_equal(slow.done_count, 0);
	for (uint32_t i = 0; i < 5; i++)
		sem_post(&gate);
	loop_until_idle(stage);
	assert_int_equal(slow.done_count, 5);
	assert_int_equal(slow.running_max, THREADS - RESERVED);
	sem_destroy(&gate);
	sem_destroy(&begun);
}

struct owner {
	struct entry entry; /* first */
	struct mrcd_lane lane;
};

static void owner_done(struct mrcd_job *job)
{
	struct owner *owner = (struct owner *)job;

	entry_done(job);
	if (mrcd_lane_is_idle(&owner->lane))
		free(owner);
}

static void done_may_free_the_job_and_its_lane(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};

	for (uint32_t i = 0; i < 8; i++) {
		struct owner *owner = malloc(sizeof(*owner));

		assert_non_null(owner);
		owner->entry = entry_of(&diary, i);
		owner->entry.job.done = owner_done;
		mrcd_lane_init(&owner->lane);
		mrcd_offload_submit(stage->offload, &owner->lane, &owner->entry.job);
	}
	loop_until_idle(stage);
	assert_int_equal(diary.done_count, 8);
}

struct again {
	struct entry entry; /* first */
	struct mrcd_offload *offload;
	struct mrcd_lane lane;
	uint32_t rounds;
};

static void again_done(struct mrcd_job *job)
{
	struct again *again = (struct again *)job;

	entry_done(job);
	if (--again->rounds)
		mrcd_offload_submit(again->offload, &again->lane, job);
}

static void done_may_give_the_next_job(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};
	struct again again = {.offload = stage->offload, .rounds = 5};
	struct entry second = entry_of(&diary, 1);

	again.entry = entry_of(&diary, 0);
	again.entry.job.done = again_done;
	mrcd_lane_init(&again.lane);
	mrcd_offload_submit(stage->offload, &again.lane, &again.entry.job);
	/* What waits in the lane goes before what done() gives. */
	mrcd_offload_submit(stage->offload, &again.lane, &second.job);
	mrcd_offload_drain(stage->offload);
	assert_int_equal(diary.done_count, 6);
	assert_int_equal(diary.done_order[0], 0);
	assert_int_equal(diary.done_order[1], 1);
	assert_int_equal(diary.done_order[2], 0);
	assert_int_equal(diary.running_max, 1);
}

static void drain_waits_for_all_and_needs_no_loop(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};
	struct mrcd_lane lanes[2];
	struct entry entries[6];
	sem_t sem;

	mrcd_offload_drain(stage->offload); /* of nothing */
	sem_init(&sem, 0, 0);
	for (uint32_t i = 0; i < 2; i++)
		mrcd_lane_init(&lanes[i]);
	for (uint32_t i = 0; i < 6; i++) {
		entries[i] = entry_of(&diary, i);
		/* The first one waits for the last of the other lane. */
		entries[i].waits_for = i == 0 ? &sem : NULL;
		entries[i].tells = i == 5 ? &sem : NULL;
		mrcd_offload_submit(stage->offload, &lanes[i & 1], &entries[i].job);
	}
	mrcd_offload_drain(stage->offload);
	assert_int_equal(mrcd_offload_pending(stage->offload), 0);
	assert_int_equal(diary.done_count, 6);
	assert_false(diary.is_done_elsewhere);
	/* The loop finds nothing left, and the pool works on. */
	event_base_loop(stage->base, EVLOOP_NONBLOCK);
	assert_int_equal(diary.done_count, 6);
	mrcd_offload_submit(stage->offload, &lanes[0], &entries[1].job);
	loop_until_idle(stage);
	assert_int_equal(diary.done_count, 7);
	sem_destroy(&sem);
}

static void free_waits_for_all(void **state)
{
	struct stage *stage = *state;
	struct diary diary = {.loop = pthread_self()};
	struct mrcd_lane lanes[2];
	struct entry entries[2];
	sem_t sem;

	sem_init(&sem, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		mrcd_lane_init(&lanes[i]);
		entries[i] = entry_of(&diary, i);
		entries[i].job.is_slow = true;
		entries[i].waits_for = i ? NULL : &sem;
		entries[i].tells = i ? &sem : NULL;
		mrcd_offload_submit(stage->offload, &lanes[i], &entries[i].job);
	}
	mrcd_offload_free(stage->offload);
	stage->offload = NULL;
	assert_int_equal(diary.runs, 2);
	assert_int_equal(diary.done_count, 2);
	mrcd_offload_free(NULL);
	sem_destroy(&sem);
}

#define MANY_LANES 5
#define MANY_JOBS  2000

struct many {
	struct mrcd_job job;
	uint32_t number;
	uint32_t *last; /* of the lane; written by run() and done() in turn */
	bool is_wrong;
};

static void many_run(struct mrcd_job *job)
{
	struct many *many = (struct many *)job;

	many->is_wrong = *many->last != many->number * 2;
	*many->last += 1;
}

static void many_done(struct mrcd_job *job)
{
	struct many *many = (struct many *)job;

	many->is_wrong |= *many->last != many->number * 2 + 1;
	*many->last += 1;
}

static void no_job_is_lost_or_out_of_turn_among_many(void **state)
{
	static struct many jobs[MANY_LANES][MANY_JOBS];
	struct stage *stage = *state;
	struct mrcd_lane lanes[MANY_LANES];
	uint32_t last[MANY_LANES] = {0};

	for (uint32_t i = 0; i < MANY_LANES; i++)
		mrcd_lane_init(&lanes[i]);
	for (uint32_t j = 0; j < MANY_JOBS; j++) {
		for (uint32_t i = 0; i < MANY_LANES; i++) {
			jobs[i][j] = (struct many){
				.job = {.run = many_run, .done = many_done, .is_slow = i & 1},
				.number = j,
				.last = &last[i],
			};
			mrcd_offload_submit(stage->offload, &lanes[i], &jobs[i][j].job);
		}
		if (j % 64 == 0)
			event_base_loop(stage->base, EVLOOP_NONBLOCK);
	}
	loop_until_idle(stage);
	for (uint32_t i = 0; i < MANY_LANES; i++) {
		assert_int_equal(last[i], 2 * MANY_JOBS);
		for (uint32_t j = 0; j < MANY_JOBS; j++)
			assert_false(jobs[i][j].is_wrong);
	}
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(a_lane_keeps_its_order),
		claim(lanes_do_not_wait_for_each_other),
		claim(slow_jobs_leave_a_thread_for_the_others),
		claim(done_may_free_the_job_and_its_lane),
		claim(done_may_give_the_next_job),
		claim(drain_waits_for_all_and_needs_no_loop),
		claim(free_waits_for_all),
		claim(no_job_is_lost_or_out_of_turn_among_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
