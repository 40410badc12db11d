/* SPDX-License-Identifier: BSD-2-Clause */
/* libmrc: the right to offer a service was taken away. */
#include "test_lib_fake.h"

static void post(struct fake *f, uint32_t listener, int status)
{
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_UNLISTENED,
				      .channel = listener,
				      .status = status});
}

static void nothing_comes(struct fake *f)
{
	struct mrc_event event;

	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
}

static void its_end_is_an_event(void **state)
{
	struct fake *f = *state;
	struct mrc_listener *listener = fake_listener(f, f->client, 3);
	struct mrc_event event;
	struct mrc_sqe sqe;

	post(f, 3, MRC_STATUS_NOT_ALLOWED);
	event = fake_event(f->client, MRC_EVENT_LISTENING);
	assert_ptr_equal(event.listener, listener);
	assert_int_equal(event.status, MRC_STATUS_NOT_ALLOWED);
	nothing_comes(f);
	/* To close it is no word to the daemon, which has closed it. */
	mrc_listener_close(listener);
	assert_false(fake_take(f, &sqe));
}

/* A program that only makes blocking calls learns it from the one that waits. */
static void who_waits_for_channels_is_told(void **state)
{
	struct fake *f = *state;
	struct mrc_listener *listener = fake_listener(f, f->client, 3);
	struct mrc_channel *channel;

	assert_int_equal(mrc_accept(listener, 0, &channel), -ETIMEDOUT);
	post(f, 3, MRC_STATUS_NOT_ALLOWED);
	assert_int_equal(mrc_accept(listener, 0, &channel), -ENOTCONN);
	mrc_listener_close(listener);
	nothing_comes(f);
}

/* That it began and that it is over is one event when both have come before the program looks. */
static void an_end_before_the_beginning_was_seen_is_all_there_is(void **state)
{
	struct fake *f = *state;
	struct mrc_abi_request request;
	struct mrc_listener *listener;
	struct mrc_channel *channel;

	assert_int_equal(mrc_listen_start(f->client, "svc", 9, &listener), 0);
	request = fake_request(f, MRC_ABI_REQ_LISTEN);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_LISTENING,
				      .user_data = request.user_data,
				      .channel = 3});
	assert_int_equal(mrc_accept(listener, 0, &channel), -ETIMEDOUT);
	post(f, 3, MRC_STATUS_NOT_ALLOWED);
	assert_int_equal(mrc_accept(listener, 0, &channel), -ENOTCONN);
	assert_int_equal(fake_event(f->client, MRC_EVENT_LISTENING).status, MRC_STATUS_NOT_ALLOWED);
	nothing_comes(f);
	mrc_listener_close(listener);
}

static void of_a_listener_that_was_closed_nothing_is_told(void **state)
{
	struct fake *f = *state;

	mrc_listener_close(fake_listener(f, f->client, 3));
	assert_int_equal(fake_expect(f, MRC_SQE_UNLISTEN).channel, 3);
	post(f, 3, MRC_STATUS_NOT_ALLOWED);
	nothing_comes(f);
	post(f, 99, MRC_STATUS_NOT_ALLOWED);
	nothing_comes(f);
}

static void a_daemon_that_says_it_wrongly_is_not_believed(void **state)
{
	struct fake *f = *state;

	fake_listener(f, f->client, 3);
	post(f, 3, MRC_STATUS_OK);
	fake_event(f->client, MRC_EVENT_DETACHED);
	assert_non_null(strstr(mrc_last_error(f->client), "UNLISTENED"));
}

#define ATTACHED(test) cmocka_unit_test_setup_teardown(test, fake_setup_attached, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACHED(its_end_is_an_event),
		ATTACHED(who_waits_for_channels_is_told),
		ATTACHED(an_end_before_the_beginning_was_seen_is_all_there_is),
		ATTACHED(of_a_listener_that_was_closed_nothing_is_told),
		ATTACHED(a_daemon_that_says_it_wrongly_is_not_believed),
	};

	return cmocka_run_group_tests_name("lib_unlistened", tests, NULL, NULL);
}
