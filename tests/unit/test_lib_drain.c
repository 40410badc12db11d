/* SPDX-License-Identifier: BSD-2-Clause */
/* libmrc: this host, or a channel's peer, is being drained. */
#include "test_lib_fake.h"

static void post(struct fake *f, uint32_t channel, int status)
{
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_DRAIN, .channel = channel, .status = status});
}

static void event_is(struct fake *f, const struct mrc_channel *channel, int status)
{
	struct mrc_event event = fake_event(f->client, MRC_EVENT_DRAIN);

	assert_ptr_equal(event.channel, channel);
	assert_int_equal(event.status, status);
}

static void nothing_comes(struct fake *f)
{
	struct mrc_event event;

	assert_int_equal(mrc_poll(f->client, &event, 1), 0);
}

static void each_change_is_an_event(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 40);

	assert_false(mrc_client_is_draining(f->client));
	post(f, 0, MRC_STATUS_DRAINING);
	event_is(f, NULL, MRC_STATUS_DRAINING);
	assert_true(mrc_client_is_draining(f->client));
	assert_false(mrc_channel_is_draining(channel));
	post(f, 40, MRC_STATUS_DRAINING);
	event_is(f, channel, MRC_STATUS_DRAINING);
	assert_true(mrc_channel_is_draining(channel));
	/* A daemon that took over may say again what was said. */
	post(f, 0, MRC_STATUS_DRAINING);
	post(f, 40, MRC_STATUS_DRAINING);
	nothing_comes(f);
	post(f, 0, MRC_STATUS_OK);
	post(f, 40, MRC_STATUS_OK);
	event_is(f, NULL, MRC_STATUS_OK);
	event_is(f, channel, MRC_STATUS_OK);
	assert_false(mrc_client_is_draining(f->client));
	assert_false(mrc_channel_is_draining(channel));
}

/* A program that only makes blocking calls takes no events, and sees it all the same. */
static void blocking_calls_take_it_in_and_keep_what_is_true_last(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 40);
	struct mrc_msg *msg;

	post(f, 0, MRC_STATUS_DRAINING);
	post(f, 40, MRC_STATUS_DRAINING);
	assert_int_equal(mrc_recv(channel, 0, &msg), -ETIMEDOUT);
	assert_true(mrc_client_is_draining(f->client));
	assert_true(mrc_channel_is_draining(channel));
	post(f, 0, MRC_STATUS_OK); /* there and back: nothing to tell */
	assert_int_equal(mrc_recv(channel, 0, &msg), -ETIMEDOUT);
	assert_false(mrc_client_is_draining(f->client));
	event_is(f, channel, MRC_STATUS_DRAINING);
	nothing_comes(f);
}

static void of_a_channel_that_was_freed_nothing_is_told(void **state)
{
	struct fake *f = *state;
	struct mrc_channel *channel = fake_channel(f, f->client, 40);
	struct mrc_msg *msg;

	post(f, 40, MRC_STATUS_DRAINING);
	assert_int_equal(mrc_recv(channel, 0, &msg), -ETIMEDOUT);
	mrc_channel_free(channel); /* with an event that was not taken */
	nothing_comes(f);
	post(f, 40, MRC_STATUS_OK);
	post(f, 40, MRC_STATUS_DRAINING);
	nothing_comes(f);
	fake_post(f, (struct mrc_cqe){.type = MRC_CQE_CLOSED, .channel = 40});
	nothing_comes(f);
}

static void a_daemon_that_says_it_wrongly_is_not_believed(void **state)
{
	static const struct mrc_cqe cases[] = {
		{.type = MRC_CQE_DRAIN, .channel = 9, .status = MRC_STATUS_DRAINING},
		{.type = MRC_CQE_DRAIN, .status = MRC_STATUS_IN_USE},
		{.type = MRC_CQE_DRAIN, .status = 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake *f = *state;

		if (i > 0)
			assert_int_equal(fake_attach(f, &f->client), 0);
		fake_post(f, cases[i]);
		fake_event(f->client, MRC_EVENT_DETACHED);
		assert_non_null(strstr(mrc_last_error(f->client), "DRAIN"));
		mrc_detach(f->client);
		f->client = NULL;
		fake_unmake(f);
	}
}

#define ATTACHED(test) cmocka_unit_test_setup_teardown(test, fake_setup_attached, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACHED(each_change_is_an_event),
		ATTACHED(blocking_calls_take_it_in_and_keep_what_is_true_last),
		ATTACHED(of_a_channel_that_was_freed_nothing_is_told),
		ATTACHED(a_daemon_that_says_it_wrongly_is_not_believed),
	};

	return cmocka_run_group_tests_name("lib_drain", tests, NULL, NULL);
}
