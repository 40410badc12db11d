/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of rails' interfaces while the kernel and its drivers take their time: they are played here. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_log.h"
#include "mrcd_worker.h"

#define GUARD_S 20
#define RAILS   3U

/* The kernel, as the threads that ask meet it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool do_places_hang, does_card_hang; /* whoever asks from now on waits until it ends */
	uint32_t places_asked, cards_asked, cards_of[RAILS];
	int places_error;
	unsigned ifindexes[RAILS];
	uint64_t speeds[RAILS];
} kernel = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct scene {
	struct mrcd_conf conf;
	struct mrcd_worker worker;
	uint32_t places[RAILS], changes[RAILS], words[RAILS];
	bool is_late;
} * scene; /* of the running test */

uint64_t mrcd_worker_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * MRC_S + (uint64_t)ts.tv_nsec;
}

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	worker->now_ns = mrcd_worker_clock_ns();
	return worker->now_ns;
}

void mrcd_rail_on_interface(struct mrcd_rail *rail)
{
	scene->words[rail->index]++;
}

static uint32_t rail_of(const char *interface)
{
	assert_true(strncmp(interface, "if", 2) == 0);
	return (uint32_t)(interface[2] - '0');
}

int __wrap_mrcd_nic_ask_places(struct mrcd_nic_place *places, uint32_t count);
int __wrap_mrcd_nic_ask_places(struct mrcd_nic_place *places, uint32_t count)
{
	int r;

	pthread_mutex_lock(&kernel.lock);
	kernel.places_asked++;
	pthread_cond_broadcast(&kernel.changed);
	while (kernel.do_places_hang)
		pthread_cond_wait(&kernel.changed, &kernel.lock);
	for (uint32_t i = 0; i < count && kernel.places_error == 0; i++) {
		struct mrcd_nic_place *place = &places[i];

		place->ifindex = kernel.ifindexes[rail_of(place->interface)];
		snprintf(place->name, sizeof(place->name), "%s",
			 place->ifindex ? place->interface : "");
		place->own_len = 0;
	}
	r = kernel.places_error;
	pthread_mutex_unlock(&kernel.lock);
	return r;
}

void __wrap_mrcd_nic_ask_card(const char *interface, struct mrcd_nic_card *card_out);
void __wrap_mrcd_nic_ask_card(const char *interface, struct mrcd_nic_card *card_out)
{
	uint32_t rail = rail_of(interface);

	pthread_mutex_lock(&kernel.lock);
	kernel.cards_asked++;
	kernel.cards_of[rail]++;
	pthread_cond_broadcast(&kernel.changed);
	while (kernel.does_card_hang)
		pthread_cond_wait(&kernel.changed, &kernel.lock);
	memset(card_out, 0, sizeof(*card_out));
	card_out->speed_bits_per_s = kernel.speeds[rail];
	strcpy(card_out->driver, "played");
	pthread_mutex_unlock(&kernel.lock);
}

static void kernel_set(bool *what, bool value)
{
	pthread_mutex_lock(&kernel.lock);
	*what = value;
	pthread_cond_broadcast(&kernel.changed);
	pthread_mutex_unlock(&kernel.lock);
}

static uint32_t kernel_count(const uint32_t *what)
{
	uint32_t count;

	pthread_mutex_lock(&kernel.lock);
	count = *what;
	pthread_mutex_unlock(&kernel.lock);
	return count;
}

static void kernel_await(const uint32_t *what, uint32_t count)
{
	pthread_mutex_lock(&kernel.lock);
	while (*what < count)
		pthread_cond_wait(&kernel.changed, &kernel.lock);
	pthread_mutex_unlock(&kernel.lock);
}

static void on_place(void *context, struct mrcd_rail *rail, bool is_changed)
{
	assert_ptr_equal(context, scene);
	scene->places[rail->index]++;
	scene->changes[rail->index] += is_changed;
}

static void on_guard(evutil_socket_t fd, short what, void *context)
{
	scene->is_late = true;
}

#define until(condition)                                                               \
	do {                                                                           \
		const struct timeval guard_span = {.tv_sec = GUARD_S};                 \
		struct event *guard = evtimer_new(scene->worker.base, on_guard, NULL); \
                                                                                       \
		event_add(guard, &guard_span);                                         \
		while (!(condition)) {                                                 \
			event_base_loop(scene->worker.base, EVLOOP_ONCE);              \
			if (scene->is_late)                                            \
				fail_msg("never came: %s", #condition);                \
		}                                                                      \
		event_free(guard);                                                     \
	} while (0)

static const struct mrcd_rail_ops ops = {.kind = "played"};

static struct mrcd_rail *rail_at(uint32_t i)
{
	return &scene->worker.rails[i];
}

static bool is_answered(void)
{
	for (uint32_t i = 0; i < RAILS; i++) {
		if (rail_at(i)->nic.answered_ns == 0)
			return false;
	}
	return true;
}

static int set_up(void **state)
{
	struct mrcd_worker *worker;

	scene = calloc(1, sizeof(*scene));
	assert_non_null(scene);
	mrcd_log_init(LOG_CRIT);
	worker = &scene->worker;
	worker->conf = &scene->conf;
	worker->base = event_base_new();
	worker->rail_count = RAILS;
	mrcd_worker_now(worker);
	kernel.places_asked = kernel.cards_asked = 0;
	kernel.places_error = 0;
	memset(kernel.cards_of, 0, sizeof(kernel.cards_of));
	for (uint32_t i = 0; i < RAILS; i++) {
		snprintf(scene->conf.rails[i].name, sizeof(scene->conf.rails[i].name), "r%u", i);
		snprintf(scene->conf.rails[i].interface, sizeof(scene->conf.rails[i].interface),
			 "if%u", i);
		kernel.ifindexes[i] = i + 1;
		kernel.speeds[i] = (i + 1) * 1000;
		*rail_at(i) = (struct mrcd_rail){.ops = &ops,
						 .conf = &scene->conf.rails[i],
						 .worker = worker,
						 .index = i};
	}
	assert_int_equal(mrcd_nics_new(worker, &worker->nics), 0);
	return 0;
}

static int tear_down(void **state)
{
	kernel_set(&kernel.do_places_hang, false);
	kernel_set(&kernel.does_card_hang, false);
	mrcd_nics_free(scene->worker.nics);
	event_base_free(scene->worker.base);
	free(scene);
	scene = NULL;
	return 0;
}

static void begin(void)
{
	mrcd_nics_begin(scene->worker.nics, on_place, scene);
	until(is_answered());
}

static void rails_know_their_place_at_once_and_their_card_soon(void **state)
{
	kernel_set(&kernel.does_card_hang, true);
	mrcd_nics_begin(scene->worker.nics, on_place, scene);
	for (uint32_t i = 0; i < RAILS; i++) {
		assert_int_equal(rail_at(i)->ifindex, i + 1);
		assert_string_equal(rail_at(i)->nic.name, scene->conf.rails[i].interface);
		assert_int_equal(scene->places[i], 0); /* nobody is told of the first one */
		assert_int_equal(rail_at(i)->nic.answered_ns, 0);
	}
	kernel_set(&kernel.does_card_hang, false);
	until(is_answered());
	for (uint32_t i = 0; i < RAILS; i++) {
		assert_int_equal(mrcd_nic_speed(rail_at(i)), (i + 1) * 1000);
		assert_int_equal(scene->words[i], 1);
	}
	rail_at(1)->given.speed_bits_per_s = 7;
	assert_int_equal(mrcd_nic_speed(rail_at(1)), 7); /* what is configured goes before */
}

/* The loop turns, whoever reads has what was known, and rails are looked for. */
static void a_driver_that_hangs_holds_up_nothing(void **state)
{
	char name[IF_NAMESIZE];

	begin();
	kernel_set(&kernel.does_card_hang, true);
	kernel.speeds[0] = 5;
	mrcd_nic_ask(rail_at(0));
	mrcd_nic_ask(rail_at(1));
	kernel_await(&kernel.cards_asked, RAILS + 1);
	for (uint32_t i = 1; i <= 3; i++) {
		mrcd_nics_look(scene->worker.nics, false);
		until(scene->places[2] == i);
		assert_int_equal(mrcd_nic_speed(rail_at(0)), 1000);
	}
	assert_true(mrcd_nic_unanswered_ns(rail_at(0)) > 0);
	assert_int_equal(mrcd_nic_unanswered_ns(rail_at(1)), 0); /* it was not even asked */
	/* A rail that is elsewhere now has not been kept waiting by that one. */
	memcpy(name, rail_at(0)->nic.name, sizeof(name));
	strcpy(rail_at(0)->nic.name, "other0");
	assert_int_equal(mrcd_nic_unanswered_ns(rail_at(0)), 0);
	memcpy(rail_at(0)->nic.name, name, sizeof(name));
	assert_int_equal(kernel_count(&kernel.cards_asked), RAILS + 1);
	assert_int_equal(scene->words[0], 1);
	kernel_set(&kernel.does_card_hang, false);
	until(mrcd_nic_speed(rail_at(0)) == 5 && kernel_count(&kernel.cards_asked) == RAILS + 2);
	assert_int_equal(scene->words[0], 2);
	assert_int_equal(mrcd_nic_unanswered_ns(rail_at(0)), 0);
}

static void a_kernel_that_lists_nothing_holds_up_nothing(void **state)
{
	begin();
	kernel_set(&kernel.do_places_hang, true);
	for (int i = 0; i < 10; i++)
		mrcd_nics_look(scene->worker.nics, i == 5);
	mrcd_nic_ask(rail_at(0));
	until(kernel_count(&kernel.cards_asked) == RAILS + 1); /* cards are asked meanwhile */
	kernel_set(&kernel.do_places_hang, false);
	/* All that were wanted while one was out are one more; what any of them was for is not lost. */
	until(scene->places[0] == 2);
	assert_int_equal(scene->changes[0], 1);
	assert_int_equal(kernel_count(&kernel.places_asked), 3);
}

static void what_is_old_is_asked_again_by_who_reads_it(void **state)
{
	begin();
	mrcd_nic_speed(rail_at(0));
	assert_int_equal(mrcd_nic_unanswered_ns(rail_at(0)), 0);
	assert_int_equal(kernel_count(&kernel.cards_of[0]), 1);
	rail_at(0)->nic.answered_ns -= MRCD_NIC_OLD_NS + 1;
	kernel.speeds[0] = 9;
	assert_int_equal(mrcd_nic_speed(rail_at(0)), 1000);
	mrcd_nic_speed(rail_at(0)); /* it is being asked already */
	until(mrcd_nic_speed(rail_at(0)) == 9);
	assert_int_equal(kernel_count(&kernel.cards_of[0]), 2);
	assert_int_equal(scene->words[0], 2);
}

static void what_is_the_same_is_no_news(void **state)
{
	begin();
	mrcd_nic_ask(rail_at(1));
	until(kernel_count(&kernel.cards_of[1]) == 2 && rail_at(1)->nic.answered_ns != 0);
	mrcd_nic_ask(rail_at(2)); /* ends after it */
	until(kernel_count(&kernel.cards_of[2]) == 2);
	assert_int_equal(scene->words[1], 1);
}

static void a_rail_that_moves_is_told_and_asked_and_one_that_goes_is_forgotten(void **state)
{
	begin();
	kernel.ifindexes[0] = 77;
	kernel.ifindexes[1] = 0;
	mrcd_nics_look(scene->worker.nics, false);
	until(scene->places[2] == 1);
	assert_int_equal(rail_at(0)->ifindex, 77);
	assert_int_equal(rail_at(1)->ifindex, 0);
	assert_string_equal(rail_at(1)->nic.name, "");
	assert_int_equal(rail_at(1)->nic.card.speed_bits_per_s, 0);
	assert_int_equal(scene->changes[0], 1);
	assert_int_equal(scene->changes[1], 1);
	assert_int_equal(scene->changes[2], 0);
	until(kernel_count(&kernel.cards_of[0]) == 2);
	assert_int_equal(kernel_count(&kernel.cards_of[1]), 1);
	mrcd_nics_look(scene->worker.nics, true); /* an address may be anybody's */
	until(scene->changes[2] == 1);
}

static void an_answer_to_another_question_is_not_taken(void **state)
{
	begin();
	kernel_set(&kernel.do_places_hang, true);
	kernel.ifindexes[0] = 50;
	mrcd_nics_look(scene->worker.nics, false);
	kernel_await(&kernel.places_asked, 2);
	strcpy(scene->conf.rails[0].interface, "if1");
	kernel_set(&kernel.do_places_hang, false);
	until(scene->places[1] == 1);
	assert_int_equal(scene->places[0], 0);
	assert_int_equal(rail_at(0)->ifindex, 1);
	until(scene->places[0] == 1); /* and it is looked for anew by itself */
	assert_int_equal(rail_at(0)->ifindex, 2);
}

static void an_error_changes_nothing(void **state)
{
	begin();
	kernel.places_error = -ENOMEM;
	mrcd_nics_look(scene->worker.nics, true);
	until(kernel_count(&kernel.places_asked) == 2);
	mrcd_nic_ask(rail_at(2)); /* what ended before it has been seen */
	until(kernel_count(&kernel.cards_of[2]) == 2);
	assert_int_equal(rail_at(0)->ifindex, 1);
	kernel.places_error = 0;
	mrcd_nics_look(scene->worker.nics, false);
	until(scene->places[0] == 1);
	assert_int_equal(scene->changes[0], 1); /* what the failed one was for */
}

static void who_stops_hears_no_more(void **state)
{
	begin();
	mrcd_nics_stop(scene->worker.nics);
	kernel.ifindexes[0] = 4;
	mrcd_nics_look(scene->worker.nics, true);
	until(rail_at(0)->ifindex == 4);
	assert_int_equal(scene->places[0], 0);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(rails_know_their_place_at_once_and_their_card_soon),
		claim(a_driver_that_hangs_holds_up_nothing),
		claim(a_kernel_that_lists_nothing_holds_up_nothing),
		claim(what_is_old_is_asked_again_by_who_reads_it),
		claim(what_is_the_same_is_no_news),
		claim(a_rail_that_moves_is_told_and_asked_and_one_that_goes_is_forgotten),
		claim(an_answer_to_another_question_is_not_taken),
		claim(an_error_changes_nothing),
		claim(who_stops_hears_no_more),
	};

	return cmocka_run_group_tests_name("nic", tests, NULL, NULL);
}
