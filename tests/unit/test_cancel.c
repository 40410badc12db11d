/* SPDX-License-Identifier: BSD-2-Clause */
/* CANCEL: a message is given up wherever it is, the receiver decides, and the others go on. */
#include "engine_lab.h"

enum { A, B, OTHERS = 100 };

struct fixture {
	struct lab_pair p;
	uint32_t ids[2];
};

static void fixture_init(struct fixture *f)
{
	lab_pair_up(&f->p, 2, NULL);
	lab_pair_channel(&f->p, false, f->ids);
}

static void send_one(struct fixture *f, uint64_t len, uint64_t cookie)
{
	assert_int_equal(lab_send(&f->p.hosts[A], f->ids[A], len, MRC_LVL_COMMITTED, cookie), 0);
}

static void send_with_deadline(struct fixture *f, enum mrc_lvl level, uint64_t cookie)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};

	/* Any: the engine only wants to know whether there is one. */
	ev.msg = (struct mrc_ev_msg){.channel = f->ids[A],
				     .level = level,
				     .cookie = cookie,
				     .len = 10,
				     .deadline_ns = 1};
	assert_int_equal(lab_handle(&f->p.hosts[A], &ev), 0);
}

static int cancel(struct fixture *f, uint64_t number)
{
	return lab_cancel(&f->p.hosts[A], f->ids[A], number, MRC_OUT_TIMED_OUT);
}

/* Message `number` is a gap there and not delivered; all `others` sent after it are. */
static void only_this_was_skipped(struct fixture *f, uint64_t number, uint32_t others)
{
	const struct lab_host *b = &f->p.hosts[B];

	assert_int_equal(lab_count(b, MRC_ACT_GAP, 0), 1);
	assert_int_equal(lab_find(b, MRC_ACT_GAP, 0, 0)->msg.number, number);
	assert_int_equal(lab_count(b, MRC_ACT_DELIVER, 0), others);
	for (uint32_t i = 0; i < others; i++)
		assert_int_not_equal(lab_find(b, MRC_ACT_DELIVER, 0, i)->msg.number, number);
}

static void one_that_was_never_admitted_is_skipped(void **state)
{
	struct fixture f;

	lab_pair_up(&f.p, 2, NULL);
	f.p.hosts[B].accepts = false;
	assert_int_equal(lab_open_at(&f.p.hosts[A], "svc", false, &f.ids[A]), 0);
	for (uint64_t i = 0; i < 3; i++)
		send_one(&f, 40000 * i, i);
	lab_pair_run(&f.p, MRC_MS);
	for (uint64_t i = 1; i < 3; i++)
		assert_int_equal(cancel(&f, i), 0);
	lab_pump(&f.p.hosts[A]);
	/* Nothing of them was sent, so they are answered now; their numbers are used up later. */
	for (uint64_t i = 1; i < 3; i++) {
		lab_done_is(&f.p.hosts[A], i, MRC_OUT_TIMED_OUT);
		assert_false(lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, (uint32_t)i - 1)
				     ->msg.is_undecided);
	}
	lab_pair_run(&f.p, 5 * MRC_MS);
	send_one(&f, 10, OTHERS);
	assert_int_equal(lab_accept(&f.p.hosts[B],
				    lab_find(&f.p.hosts[B], MRC_ACT_CH_INCOMING, 0, 0)->channel.id),
			 0);
	lab_pair_run(&f.p, 10 * MRC_MS);
	lab_done_is(&f.p.hosts[A], 0, MRC_OUT_OK);
	lab_done_is(&f.p.hosts[A], 1, MRC_OUT_TIMED_OUT);
	lab_done_is(&f.p.hosts[A], 2, MRC_OUT_TIMED_OUT);
	lab_done_is(&f.p.hosts[A], OTHERS, MRC_OUT_OK);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 2);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_GAP, 0), 2);
	lab_pair_fini(&f.p);
}

/* It waits for the ring, and those behind it wait for it. */
static void one_that_waits_for_ring_space_gives_way(void **state)
{
	struct fixture f;
	int outcome;

	fixture_init(&f);
	f.p.hosts[B].releases = false;
	for (uint64_t i = 0; i < 3; i++)
		send_one(&f, 30000, i); /* the ring takes two of these */
	send_one(&f, 10, OTHERS);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 2);
	assert_int_equal(cancel(&f, 2), 0);
	lab_pump(&f.p.hosts[A]);
	lab_done_is(&f.p.hosts[A], 2, MRC_OUT_TIMED_OUT);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_false(lab_done(&f.p.hosts[A], OTHERS, &outcome));
	only_this_was_skipped(&f, 2, 3);
	/* And the ring goes on over it. */
	for (uint64_t i = 0; i < 4; i++) {
		if (i != 2)
			assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	}
	f.p.hosts[B].releases = true;
	for (uint64_t i = 0; i < 10; i++) {
		send_one(&f, 30000, OTHERS + 1 + i);
		lab_pair_run(&f.p, 5 * MRC_MS);
	}
	for (uint64_t i = 0; i <= 10; i++)
		lab_done_is(&f.p.hosts[A], OTHERS + i, MRC_OUT_OK);
	lab_pair_fini(&f.p);
}

static void one_that_waits_for_a_buffer_gives_way(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[B].lands = false;
	send_one(&f, 100000, 0);
	send_one(&f, 10, OTHERS);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_LANDING_WANT, 0), 1);
	assert_int_equal(cancel(&f, 0), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
	lab_done_is(&f.p.hosts[A], OTHERS, MRC_OUT_OK);
	only_this_was_skipped(&f, 0, 1);
	/* The answer comes late: it is told so, and the next one is asked for. */
	assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_LANDING, f.ids[B], 0, 4096), -ENOENT);
	f.p.hosts[B].lands = true;
	send_one(&f, 100000, OTHERS + 1);
	lab_pair_run(&f.p, 5 * MRC_MS);
	lab_done_is(&f.p.hosts[A], OTHERS + 1, MRC_OUT_OK);
	lab_pair_fini(&f.p);
}

static void one_that_is_half_sent_is_given_up_and_its_buffer_freed(void **state)
{
	/* So that it does not go out whole at once. */
	const struct mrc_limits limits = {.path_window_bytes_max = 512 << 10};

	for (int is_direct = 0; is_direct < 2; is_direct++) {
		struct mrc_msg_out *msg;
		struct fixture f;

		lab_pair_init(&f.p, 2, &limits);
		f.p.is_direct = is_direct;
		lab_timer(&f.p.hosts[A]);
		lab_pair_run(&f.p, 20 * MRC_MS);
		lab_pair_channel(&f.p, false, f.ids);
		send_one(&f, LAB_MSG_MAX, 0); /* more than both windows take */
		send_one(&f, 10, OTHERS);
		msg = mrc_channel_out(mrc_conn_channel(f.p.hosts[A].conn, f.ids[A]), 0);
		while (msg->next_offset < 1 << 20)
			lab_pair_run(&f.p, 10 * MRC_US);
		assert_true(msg->next_offset < LAB_MSG_MAX);
		assert_int_equal(cancel(&f, 0), 0);
		lab_pair_run(&f.p, 10 * MRC_MS);
		lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
		lab_done_is(&f.p.hosts[A], OTHERS, MRC_OUT_OK);
		only_this_was_skipped(&f, 0, 1);
		assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_LANDING_FREE, 0), 1);
		assert_int_equal(f.p.hosts[B].holds, 0);
		lab_pair_fini(&f.p);
	}
}

/* All of it is out: whether it is whole before the VOID comes is the receiver's to see. */
static void one_that_is_all_sent_is_answered_with_what_became_of_it(void **state)
{
	for (int is_lost = 0; is_lost < 2; is_lost++) {
		struct fixture f;

		fixture_init(&f);
		send_one(&f, 10, 0);
		lab_pair_pump(&f.p);
		assert_non_null(lab_posted(&f.p.hosts[A], MRC_WIRE_FRAG, 0, 0));
		if (is_lost) { /* with its path */
			uint8_t path = lab_posted(&f.p.hosts[A], MRC_WIRE_FRAG, 0, 0)->index;

			lab_wire_drop(&f.p, path);
			assert_int_equal(cancel(&f, 0), 0);
			lab_path(&f.p.hosts[A], MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR);
			lab_path(&f.p.hosts[B], MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR);
		} else {
			assert_int_equal(cancel(&f, 0), 0);
		}
		send_one(&f, 10, OTHERS);
		lab_pair_run(&f.p, 20 * MRC_MS);
		lab_done_is(&f.p.hosts[A], 0, is_lost ? MRC_OUT_TIMED_OUT : MRC_OUT_OK);
		lab_done_is(&f.p.hosts[A], OTHERS, MRC_OUT_OK);
		if (is_lost)
			only_this_was_skipped(&f, 0, 1);
		else
			assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 2);
		lab_pair_fini(&f.p);
	}
}

/* Its sender waits no longer, and hears how far it is; the receiver's verdict comes when it comes. */
static void one_that_was_delivered_is_answered_now_and_ends_later(void **state)
{
	const struct {
		enum mrc_event_kind kind;
		bool is_known; /* that it was delivered, when it is given up */
		int want;
	} rows[] = {
		{MRC_EV_COMMIT, true, MRC_OUT_OK},
		{MRC_EV_REJECT, true, MRC_OUT_REJECTED},
		{MRC_EV_COMMIT, false, MRC_OUT_OK},
		{MRC_EV_REJECT, false, MRC_OUT_REJECTED},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrc_action *late, *done;
		struct fixture f;

		fixture_init(&f);
		f.p.hosts[B].releases = false;
		send_one(&f, 10, 0);
		if (rows[i].is_known)
			lab_pair_run(&f.p, 5 * MRC_MS);
		else
			lab_pair_pump(&f.p);
		assert_int_equal(cancel(&f, 0), 0);
		lab_pair_run(&f.p, 5 * MRC_MS);
		lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
		done = lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, 0);
		assert_in_range(done->msg.level, MRC_LVL_PLACED, MRC_LVL_VISIBLE);
		assert_true(done->msg.is_undecided);
		assert_null(lab_find(&f.p.hosts[B], MRC_ACT_GAP, 0, 0));
		assert_null(lab_find(&f.p.hosts[A], MRC_ACT_LATE, 0, 0));
		assert_int_equal(lab_msg(&f.p.hosts[B], rows[i].kind, f.ids[B], 0, 7), 0);
		lab_pair_run(&f.p, 5 * MRC_MS);
		assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_DONE, 0), 1);
		assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_LATE, 0), 1);
		late = lab_find(&f.p.hosts[A], MRC_ACT_LATE, 0, 0);
		assert_int_equal(late->msg.number, 0);
		assert_int_equal(late->msg.cookie, 0);
		assert_int_equal(late->msg.outcome, rows[i].want);
		assert_false(late->msg.is_undecided);
		assert_int_equal(late->msg.level,
				 rows[i].want ? MRC_LVL_VISIBLE : MRC_LVL_COMMITTED);
		lab_pair_fini(&f.p);
	}
}

/* A copy of it waits for its socket: it is answered as soon as nothing reads it, verdict or not. */
static void one_that_is_read_still_is_answered_when_it_is_not(void **state)
{
	const struct mrc_act_post *post;
	struct mrc_event_in ev = {.kind = MRC_EV_SENT};
	struct fixture f;
	int outcome;

	fixture_init(&f);
	f.p.hosts[B].releases = false;
	f.p.hosts[A].finishes = false;
	send_one(&f, 10, 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	post = lab_posted(&f.p.hosts[A], MRC_WIRE_FRAG, 0, 0);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 1);
	assert_int_equal(cancel(&f, 0), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_false(lab_done(&f.p.hosts[A], 0, &outcome));
	ev.path.index = post->index;
	ev.path.path_epoch = post->path_epoch;
	ev.path.count = f.p.hosts[A].posted[post->index];
	assert_int_equal(lab_handle(&f.p.hosts[A], &ev), 0);
	lab_pump(&f.p.hosts[A]);
	lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
	lab_pair_fini(&f.p);
}

/* No count passes one that was delivered ahead of others: it is told of when it is asked for. */
static void one_delivered_ahead_of_others_is_told_of(void **state)
{
	const struct mrc_action *done;
	struct fixture f;

	lab_pair_up(&f.p, 2, NULL);
	lab_pair_channel(&f.p, true, f.ids);
	f.p.hosts[B].releases = false;
	f.p.hosts[B].lands = false;
	send_one(&f, 100000, 0);
	send_with_deadline(&f, MRC_LVL_VISIBLE, 1);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 1);
	assert_int_equal(cancel(&f, 1), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	lab_done_is(&f.p.hosts[A], 1, MRC_OUT_TIMED_OUT);
	done = lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, 0);
	assert_true(done->msg.is_undecided);
	assert_int_equal(done->msg.level, MRC_LVL_PLACED);
	/* And it ends where its sender wanted it, not at the verdict. */
	assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_VISIBLE, f.ids[B], 1, 0), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	done = lab_find(&f.p.hosts[A], MRC_ACT_LATE, 0, 0);
	assert_non_null(done);
	assert_int_equal(done->msg.outcome, MRC_OUT_OK);
	assert_int_equal(done->msg.level, MRC_LVL_VISIBLE);
	lab_pair_fini(&f.p);
}

/* Whole there, and waiting for one before it: it is said at once when it is delivered with that. */
static void one_that_is_whole_is_told_of_when_it_is_delivered(void **state)
{
	const struct mrc_channel *ch;
	struct fixture f;
	int outcome;

	fixture_init(&f);
	f.p.hosts[B].releases = false;
	f.p.hosts[B].lands = false;
	send_one(&f, 100000, 0);
	send_with_deadline(&f, MRC_LVL_VISIBLE, 1);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(cancel(&f, 1), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_null(lab_find(&f.p.hosts[B], MRC_ACT_GAP, 0, 0));
	assert_false(lab_done(&f.p.hosts[A], 1, &outcome));
	ch = mrc_conn_channel(f.p.hosts[B].conn, f.ids[B]);
	assert_true(ch->in[1].wants_placed);
	assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_LANDING, f.ids[B], 0, 4096), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 2);
	lab_done_is(&f.p.hosts[A], 1, MRC_OUT_TIMED_OUT);
	lab_pair_fini(&f.p);
}

/* However the channel ends, the end of a message comes before that of its channel. */
static void the_end_of_a_channel_decides_what_was_undecided(void **state)
{
	for (int is_death = 0; is_death < 2; is_death++) {
		const struct mrc_action *late;
		struct mrc_event_in ev = {.kind = MRC_EV_CH_ABORT};
		struct fixture f;

		fixture_init(&f);
		f.p.hosts[B].releases = false;
		send_one(&f, 10, 0);
		lab_pair_run(&f.p, 5 * MRC_MS);
		assert_int_equal(cancel(&f, 0), 0);
		lab_pair_run(&f.p, 5 * MRC_MS);
		lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
		if (is_death) {
			ev.channel.id = f.ids[B];
			assert_int_equal(lab_handle(&f.p.hosts[B], &ev), 0);
		} else {
			assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], 0, 0), 0);
			ev.kind = MRC_EV_CH_CLOSE;
			ev.channel.id = f.ids[A];
			assert_int_equal(lab_handle(&f.p.hosts[A], &ev), 0);
		}
		lab_pair_run(&f.p, 20 * MRC_MS);
		late = lab_find(&f.p.hosts[A], MRC_ACT_LATE, 0, 0);
		assert_non_null(late);
		assert_int_equal(late->msg.outcome, is_death ? MRC_OUT_PEER_DIED : MRC_OUT_OK);
		assert_true(late < lab_find(&f.p.hosts[A], MRC_ACT_CH_DOWN, 0, 0));
		lab_pair_fini(&f.p);
	}
}

/* With a deadline each level is told at once, for it may be asked for; the commit is no later for it. */
static void with_a_deadline_each_level_is_told_at_once(void **state)
{
	for (int has_deadline = 0; has_deadline < 2; has_deadline++) {
		const uint16_t both = MRC_WIRE_F_PLACED | MRC_WIRE_F_VISIBLE;
		struct mrc_event_in ev = {.kind = MRC_EV_SEND};
		struct fixture f;

		fixture_init(&f);
		f.p.hosts[B].releases = false;
		ev.msg = (struct mrc_ev_msg){.channel = f.ids[A],
					     .level = MRC_LVL_COMMITTED,
					     .len = 10,
					     .deadline_ns = (uint64_t)has_deadline};
		assert_int_equal(lab_handle(&f.p.hosts[A], &ev), 0);
		lab_pair_run(&f.p, MRC_MS);
		assert_int_equal(lab_posted(&f.p.hosts[A], MRC_WIRE_FRAG, 0, 0)->hdr.flags & both,
				 has_deadline ? both : 0);
		assert_int_equal(
			lab_find(&f.p.hosts[B], MRC_ACT_DELIVER, 0, 0)->msg.is_visible_wanted,
			has_deadline);
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_COMMIT, f.ids[B], 0, 0), 0);
		assert_true(mrc_conn_channel(f.p.hosts[B].conn, f.ids[B])->facts & MRC_FACT_STATE);
		lab_pair_run(&f.p, 5 * MRC_MS);
		lab_done_is(&f.p.hosts[A], 0, MRC_OUT_OK);
		lab_pair_fini(&f.p);
	}
}

static void a_cancel_out_of_range_or_too_late_is_refused(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[B].releases = false;
	send_one(&f, 10, 0);
	send_one(&f, 10, 1);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A] + 77, 0, MRC_OUT_TIMED_OUT), -ENOENT);
	assert_int_equal(cancel(&f, 2), -EINVAL);
	assert_int_equal(cancel(&f, UINT64_MAX), -EINVAL);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], 0, MRC_OUT_OK), -EINVAL);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], 0, 1), -EINVAL);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], 0, MRC_OUT_IN_USE - 1), -EINVAL);
	/* None of these did anything. */
	lab_pair_run(&f.p, 5 * MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0), 2);
	/* Twice. */
	assert_int_equal(cancel(&f, 0), 0);
	assert_int_equal(cancel(&f, 0), -EALREADY);
	/* When its level was reached, and when it is long settled. */
	assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_PLACED, 2), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	lab_done_is(&f.p.hosts[A], 2, MRC_OUT_OK);
	assert_int_equal(cancel(&f, 2), -EALREADY);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
	lab_done_is(&f.p.hosts[A], 1, MRC_OUT_OK);
	assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_LATE, 0), 1);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(cancel(&f, i), -EALREADY);
	lab_pair_fini(&f.p);
}

/* Any outcome its caller asks for is what the message ends with. */
static void the_outcome_asked_for_is_the_one_given(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[B].lands = false;
	for (int outcome = MRC_OUT_REJECTED; outcome >= MRC_OUT_IN_USE; outcome--)
		send_one(&f, 100000, (uint64_t)-outcome);
	lab_pair_run(&f.p, 5 * MRC_MS);
	for (int outcome = MRC_OUT_REJECTED; outcome >= MRC_OUT_IN_USE; outcome--)
		assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], (uint64_t)(-outcome - 1),
					    outcome),
				 0);
	lab_pair_run(&f.p, 20 * MRC_MS);
	for (int outcome = MRC_OUT_REJECTED; outcome >= MRC_OUT_IN_USE; outcome--)
		lab_done_is(&f.p.hosts[A], (uint64_t)-outcome, outcome);
	lab_pair_fini(&f.p);
}

/* A path keeps its order while it lives: one that lost something speaks again only as a new epoch. */
static void heal(struct lab_pair *p)
{
	for (uint8_t i = 0; i < p->path_count; i++) {
		if (p->hosts[A].conn->paths[i].is_connected ||
		    p->hosts[B].conn->paths[i].is_connected)
			continue;
		p->is_silent[i][A] = p->is_silent[i][B] = false;
	}
}

/*
 * Messages of all kinds, cancelled at any moment, while paths fall silent and
 * come back: each is answered once, and honest engines never refuse each other.
 */
static void whatever_is_cancelled_all_are_answered(void **state)
{
	const uint64_t lens[] = {0, 10, 5000, 30000, 100000, 1 << 20};
	uint32_t cancelled = 0, skipped = 0, undecided = 0, late = 0;

	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct mrc_rng rng = {.state = seed};
		struct fixture f;
		uint64_t sent = 0, done = 0;
		bool is_unordered = seed % 4 == 0;

		lab_pair_init(&f.p, 3, NULL);
		f.p.is_direct = seed % 2;
		lab_timer(&f.p.hosts[A]);
		lab_pair_run(&f.p, 20 * MRC_MS);
		lab_pair_channel(&f.p, is_unordered, f.ids);
		for (uint32_t step = 0; step < 120; step++) {
			uint64_t what = mrc_rng_next(&rng);
			uint8_t path;

			if (lab_send(&f.p.hosts[A], f.ids[A], lens[what % 6],
				     (enum mrc_lvl)(1 + what / 6 % 3), sent) == 0)
				sent++;
			if (what / 64 % 2 && sent)
				cancelled +=
					lab_cancel(&f.p.hosts[A], f.ids[A],
						   sent - 1 - MRC_MIN(what / 128 % 5, sent - 1),
						   MRC_OUT_TIMED_OUT) == 0;
			path = (uint8_t)(1 + what / 65536 % 2); /* path 0 stays */
			if (what / 1024 % 16 == 0)
				f.p.is_silent[path][A] = f.p.is_silent[path][B] = true;
			heal(&f.p);
			lab_pair_run(&f.p, what / (1 << 20) % 400 * MRC_US);
		}
		lab_pair_run(&f.p, 5 * MRC_S);
		heal(&f.p);
		lab_pair_run(&f.p, 5 * MRC_S);
		done = lab_count(&f.p.hosts[A], MRC_ACT_DONE, 0);
		if (done != sent)
			fail_msg("seed %u: %llu of %llu answered", seed, (unsigned long long)done,
				 (unsigned long long)sent);
		for (uint32_t i = 0; i < done; i++) {
			const struct mrc_action *act = lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, i);

			undecided += act->msg.is_undecided;
		}
		late += lab_count(&f.p.hosts[A], MRC_ACT_LATE, 0);
		assert_int_equal(late, undecided);
		skipped += lab_count(&f.p.hosts[B], MRC_ACT_GAP, 0);
		assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_GAP, 0) +
					 lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0),
				 sent);
		/* Every buffer that was given came back, and so did every hold. */
		assert_int_equal(lab_count(&f.p.hosts[B], MRC_ACT_LANDING_WANT, 0) -
					 lab_count(&f.p.hosts[B], MRC_ACT_LANDING_FREE, 0),
				 0);
		assert_int_equal(f.p.hosts[B].holds, 0);
		lab_pair_fini(&f.p);
	}
	assert_true(cancelled > 400);
	assert_true(skipped > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_never_admitted_is_skipped),
		cmocka_unit_test(one_that_waits_for_ring_space_gives_way),
		cmocka_unit_test(one_that_waits_for_a_buffer_gives_way),
		cmocka_unit_test(one_that_is_half_sent_is_given_up_and_its_buffer_freed),
		cmocka_unit_test(one_that_is_all_sent_is_answered_with_what_became_of_it),
		cmocka_unit_test(one_that_was_delivered_is_answered_now_and_ends_later),
		cmocka_unit_test(one_that_is_read_still_is_answered_when_it_is_not),
		cmocka_unit_test(one_delivered_ahead_of_others_is_told_of),
		cmocka_unit_test(one_that_is_whole_is_told_of_when_it_is_delivered),
		cmocka_unit_test(the_end_of_a_channel_decides_what_was_undecided),
		cmocka_unit_test(with_a_deadline_each_level_is_told_at_once),
		cmocka_unit_test(a_cancel_out_of_range_or_too_late_is_refused),
		cmocka_unit_test(the_outcome_asked_for_is_the_one_given),
		cmocka_unit_test(whatever_is_cancelled_all_are_answered),
	};

	return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
