/* SPDX-License-Identifier: BSD-2-Clause */
/* libmrc: what became of sends whose deadline passed, and a daemon that tells it wrongly. */
#include "test_lib_fake.h"

struct sends {
	struct fake *f;
	struct mrc_channel *channel;
	struct mrc_sqe sqe; /* of the last */
};

static void sends_init(struct sends *s, struct fake *f)
{
	*s = (struct sends){.f = f, .channel = fake_channel(f, f->client, 40)};
}

static void send_one(struct sends *s)
{
	assert_int_equal(mrc_send(s->channel, NULL, 0, MRC_LEVEL_COMMITTED, 1, 77), 0);
	s->sqe = fake_expect(s->f, MRC_SQE_SEND);
}

static struct mrc_cqe timed_out(const struct sends *s, uint64_t number, enum mrc_level level)
{
	struct mrc_cqe cqe = fake_sent(&s->sqe, number, MRC_STATUS_TIMED_OUT, level);

	if (level >= MRC_LEVEL_PLACED)
		cqe.flags = MRC_CQE_FLAG_UNDECIDED;
	return cqe;
}

static struct mrc_cqe late(const struct sends *s, uint64_t number, int status, enum mrc_level level)
{
	struct mrc_cqe cqe = fake_sent(&s->sqe, number, status, level);

	cqe.type = MRC_CQE_LATE;
	return cqe;
}

/* What was posted is taken in, and no event is. */
static void take_in(const struct sends *s)
{
	struct mrc_msg *msg;

	assert_int_equal(mrc_recv(s->channel, 0, &msg), -ETIMEDOUT);
}

static void query_is(const struct sends *s, uint64_t number, int want, int status,
		     enum mrc_level level)
{
	struct mrc_event event = {0};
	int r = mrc_send_query(s->channel, number, 0, &event);

	if (r != want || event.status != status || event.level != level || event.number != number ||
	    event.channel != s->channel)
		fail_msg("message %llu: answer %d, status %d, level %d, number %llu",
			 (unsigned long long)number, r, event.status, event.level,
			 (unsigned long long)event.number);
	assert_int_equal(mrc_send_query(s->channel, number, 0, NULL), want);
}

static void a_query_tells_how_far_it_was_and_then_its_end(void **state)
{
	struct mrc_event event;
	struct mrc_cqe cqe;
	struct sends s;

	sends_init(&s, *state);
	send_one(&s);
	assert_int_equal(mrc_send_query(s.channel, 3, 0, &event), -ENOENT);
	fake_post(s.f, timed_out(&s, 3, MRC_LEVEL_PLACED));
	event = fake_event(s.f->client, MRC_EVENT_SENT);
	assert_int_equal(event.status, MRC_STATUS_TIMED_OUT);
	assert_int_equal(event.level, MRC_LEVEL_PLACED);
	assert_int_equal(event.user, 77);
	assert_int_equal(mrc_channel_sends_outstanding(s.channel), 0);
	query_is(&s, 3, -ETIMEDOUT, MRC_STATUS_TIMED_OUT, MRC_LEVEL_PLACED);
	assert_int_equal(mrc_send_query(s.channel, 3, 1000000, &event), -ETIMEDOUT);

	cqe = late(&s, 3, MRC_STATUS_REJECTED, MRC_LEVEL_VISIBLE);
	cqe.code = 9;
	fake_post(s.f, cqe);
	assert_int_equal(mrc_send_query(s.channel, 3, MRC_WAIT_FOREVER, &event), 0);
	assert_int_equal(event.type, MRC_EVENT_SENT);
	assert_int_equal(event.code, 9);
	query_is(&s, 3, 0, MRC_STATUS_REJECTED, MRC_LEVEL_VISIBLE);
	/* One that was answered in time is not remembered. */
	send_one(&s);
	fake_post(s.f, fake_sent(&s.sqe, 4, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	fake_event(s.f->client, MRC_EVENT_SENT);
	assert_int_equal(mrc_send_query(s.channel, 4, 0, &event), -ENOENT);
	/* Its end is known before its answer was taken, and both are told. */
	send_one(&s);
	fake_post(s.f, timed_out(&s, 5, MRC_LEVEL_VISIBLE));
	fake_post(s.f, late(&s, 5, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	take_in(&s);
	query_is(&s, 5, 0, MRC_STATUS_OK, MRC_LEVEL_COMMITTED);
	assert_int_equal(fake_event(s.f->client, MRC_EVENT_SENT).status, MRC_STATUS_TIMED_OUT);
}

static void one_that_was_not_delivered_never_will_be(void **state)
{
	struct mrc_event event;
	struct sends s;

	sends_init(&s, *state);
	send_one(&s);
	fake_post(s.f, timed_out(&s, 3, MRC_LEVEL_NONE));
	fake_event(s.f->client, MRC_EVENT_SENT);
	query_is(&s, 3, 0, MRC_STATUS_TIMED_OUT, MRC_LEVEL_NONE);
	/* One that never got a number cannot be asked for. */
	send_one(&s);
	fake_post(s.f, timed_out(&s, MRC_ABI_NUMBER_NONE, MRC_LEVEL_NONE));
	fake_event(s.f->client, MRC_EVENT_SENT);
	assert_int_equal(mrc_send_query(s.channel, MRC_ABI_NUMBER_NONE, 0, &event), -ENOENT);
}

static void so_many_are_kept_and_the_oldest_is_forgotten(void **state)
{
	struct mrc_event event;
	struct sends s, first;

	sends_init(&s, *state);
	send_one(&s);
	first = s;
	fake_post(s.f, timed_out(&s, 0, MRC_LEVEL_PLACED));
	fake_event(s.f->client, MRC_EVENT_SENT);
	for (uint64_t number = 1; number <= 64; number++) {
		assert_int_equal(mrc_send_query(s.channel, 0, 0, &event), -ETIMEDOUT);
		send_one(&s);
		fake_post(s.f, timed_out(&s, number, MRC_LEVEL_NONE));
		fake_event(s.f->client, MRC_EVENT_SENT);
	}
	assert_int_equal(mrc_send_query(s.channel, 0, 0, &event), -ENOENT);
	query_is(&s, 1, 0, MRC_STATUS_TIMED_OUT, MRC_LEVEL_NONE);
	/* Its end is of no use to anybody, and no harm. */
	fake_post(s.f, late(&first, 0, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	assert_int_equal(mrc_poll(s.f->client, &event, 1), 0);
	assert_int_equal(mrc_send_query(s.channel, 0, 0, &event), -ENOENT);
}

/* Its slot among the sends is the daemon's until the end is told. */
static void an_undecided_send_counts_among_those_outstanding(void **state)
{
	struct mrc_event event;
	uint64_t number = 0;
	struct sends s;

	sends_init(&s, *state);
	for (;;) {
		int r = mrc_send(s.channel, NULL, 0, MRC_LEVEL_COMMITTED, 1, 77);

		if (r == -EAGAIN)
			break;
		assert_int_equal(r, 0);
		s.sqe = fake_expect(s.f, MRC_SQE_SEND);
		fake_post(s.f, timed_out(&s, number++, MRC_LEVEL_PLACED));
		fake_event(s.f->client, MRC_EVENT_SENT);
	}
	assert_int_equal(number, s.f->sends_max);
	assert_int_equal(mrc_send_wait(s.channel, NULL, 0, MRC_LEVEL_PLACED, 1000000, &event),
			 -ETIMEDOUT);
	fake_post(s.f, late(&s, number - 1, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	assert_int_equal(mrc_poll(s.f->client, &event, 1), 0);
	send_one(&s);
	assert_int_equal(mrc_send(s.channel, NULL, 0, MRC_LEVEL_COMMITTED, 1, 77), -EAGAIN);
}

/* What the program can do itself it does not wait for. */
static void a_send_that_waits_for_room_says_when_answers_are_to_be_taken(void **state)
{
	struct mrc_event event;
	uint64_t number = 0;
	struct sends s;

	sends_init(&s, *state);
	for (; number < s.f->sends_max; number++) {
		send_one(&s);
		if (number == 0)
			fake_post(s.f, timed_out(&s, number, MRC_LEVEL_PLACED));
		else
			fake_post(s.f,
				  fake_sent(&s.sqe, number, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
	}
	assert_int_equal(mrc_send_wait(s.channel, NULL, 0, MRC_LEVEL_PLACED, MRC_WAIT_FOREVER,
				       &event),
			 -EAGAIN);
}

static void the_end_of_a_channel_is_the_end_of_what_was_undecided(void **state)
{
	struct mrc_event event;
	struct sends s;

	sends_init(&s, *state);
	send_one(&s);
	fake_post(s.f, timed_out(&s, 3, MRC_LEVEL_VISIBLE));
	fake_event(s.f->client, MRC_EVENT_SENT);
	fake_post(s.f, late(&s, 3, MRC_STATUS_PEER_DIED, MRC_LEVEL_VISIBLE));
	fake_post(s.f, (struct mrc_cqe){.type = MRC_CQE_CLOSED,
					.channel = 40,
					.status = MRC_STATUS_PEER_DIED});
	fake_event(s.f->client, MRC_EVENT_CLOSED);
	query_is(&s, 3, 0, MRC_STATUS_PEER_DIED, MRC_LEVEL_VISIBLE);
	mrc_channel_free(s.channel);
	/* A channel that is freed first leaves nothing, whether its answer was taken or not. */
	for (int is_taken = 0; is_taken < 2; is_taken++) {
		s.channel = fake_channel(s.f, s.f->client, 41 + (uint32_t)is_taken);
		send_one(&s);
		fake_post(s.f, timed_out(&s, 0, MRC_LEVEL_PLACED));
		if (is_taken)
			fake_event(s.f->client, MRC_EVENT_SENT);
		else
			take_in(&s);
		mrc_channel_free(s.channel);
		fake_expect(s.f, MRC_SQE_CLOSE);
		fake_post(s.f, late(&s, 0, MRC_STATUS_OK, MRC_LEVEL_COMMITTED));
		assert_int_equal(mrc_poll(s.f->client, &event, 1), 0);
	}
}

static void the_end_of_the_daemon_is_too(void **state)
{
	struct mrc_event event;
	struct sends s;

	sends_init(&s, *state);
	send_one(&s);
	fake_post(s.f, timed_out(&s, 3, MRC_LEVEL_VISIBLE));
	fake_event(s.f->client, MRC_EVENT_SENT);
	fake_die(s.f);
	assert_int_equal(mrc_send_query(s.channel, 3, MRC_WAIT_FOREVER, &event), 0);
	assert_int_equal(event.status, MRC_STATUS_DETACHED);
	assert_int_equal(event.level, MRC_LEVEL_VISIBLE);
}

static void ends_that_cannot_be_are_a_breach(void **state)
{
	const struct {
		const char *name;
		uint64_t number;
		int status;
		enum mrc_level level;
		uint16_t flags;
		bool is_late, is_sent_first;
	} rows[] = {
		{"LATE of nothing", 3, 0, MRC_LEVEL_COMMITTED, 0, true, false},
		{"LATE of another number", 4, 0, MRC_LEVEL_COMMITTED, 0, true, true},
		{"LATE, less far than before", 3, 0, MRC_LEVEL_PLACED, 0, true, true},
		{"LATE, further than there is", 3, 0, (enum mrc_level)4, 0, true, true},
		{"LATE with a positive status", 3, 1, MRC_LEVEL_COMMITTED, 0, true, true},
		{"LATE and well, less far than asked", 3, 0, MRC_LEVEL_VISIBLE, 0, true, true},
		{"SENT again", 3, 0, MRC_LEVEL_COMMITTED, 0, false, true},
		{"undecided, though not delivered", 3, MRC_STATUS_TIMED_OUT, MRC_LEVEL_NONE,
		 MRC_CQE_FLAG_UNDECIDED, false, false},
		{"undecided, though done", 3, MRC_STATUS_OK, MRC_LEVEL_COMMITTED,
		 MRC_CQE_FLAG_UNDECIDED, false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake *f = *state;
		struct mrc_event events[8];
		bool is_detached = false;
		struct mrc_cqe cqe;
		struct sends s;
		int count;

		if (i > 0)
			assert_int_equal(fake_attach(f, &f->client), 0);
		sends_init(&s, f);
		send_one(&s);
		if (rows[i].is_sent_first)
			fake_post(f, timed_out(&s, 3, MRC_LEVEL_VISIBLE));
		cqe = rows[i].is_late
			      ? late(&s, rows[i].number, rows[i].status, rows[i].level)
			      : fake_sent(&s.sqe, rows[i].number, rows[i].status, rows[i].level);
		cqe.flags = rows[i].flags;
		fake_post(f, cqe);
		count = mrc_poll(f->client, events, 8);
		for (int e = 0; e < count; e++)
			is_detached = is_detached || events[e].type == MRC_EVENT_DETACHED;
		if (!is_detached || !strstr(mrc_last_error(f->client), "broke the ring protocol"))
			fail_msg("%s: \"%s\"", rows[i].name, mrc_last_error(f->client));
		mrc_detach(f->client);
		f->client = NULL;
	}
}

static void too_many_to_keep_are_refused_at_attach(void **state)
{
	const struct mrc_attach_options options = {.outcomes_kept = MRC_OUTCOMES_KEPT_MAX + 1};
	struct mrc_client *client;

	(void)state;
	assert_int_equal(mrc_attach(&options, &client), -EINVAL);
	assert_non_null(strstr(mrc_last_error(NULL), "allowed: 1 to 65536"));
}

#define claim(f) cmocka_unit_test_setup_teardown(f, fake_setup_attached, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(a_query_tells_how_far_it_was_and_then_its_end),
		claim(one_that_was_not_delivered_never_will_be),
		claim(so_many_are_kept_and_the_oldest_is_forgotten),
		claim(an_undecided_send_counts_among_those_outstanding),
		claim(a_send_that_waits_for_room_says_when_answers_are_to_be_taken),
		claim(the_end_of_a_channel_is_the_end_of_what_was_undecided),
		claim(the_end_of_the_daemon_is_too),
		claim(ends_that_cannot_be_are_a_breach),
		cmocka_unit_test(too_many_to_keep_are_refused_at_attach),
	};

	return cmocka_run_group_tests_name("lib_outcome", tests, NULL, NULL);
}
