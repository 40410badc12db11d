/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said besides a verdict: the text of a rejection, the seven moments, and by whose clock. */
#include "engine_lab.h"

enum { A, B };

struct fixture {
	struct lab_pair p;
	uint32_t ids[2];
	uint64_t offset_ns; /* of b's stamps from a's */
};

static void fixture_init(struct fixture *f)
{
	lab_pair_up(&f->p, 2, NULL);
	lab_pair_channel(&f->p, false, f->ids);
	f->p.hosts[B].releases = false;
}

/* More messages at once than there are notes. */
static void fixture_init_window(struct fixture *f, uint32_t window)
{
	lab_pair_init(&f->p, 2, NULL);
	f->p.hosts[A].window = f->p.hosts[B].window = window;
	lab_timer(&f->p.hosts[A]);
	lab_pair_run(&f->p, 20 * MRC_MS);
	lab_pair_channel(&f->p, false, f->ids);
	f->p.hosts[B].releases = false;
}

static int send_traced(struct fixture *f, uint64_t len, enum mrc_lvl level, uint64_t cookie)
{
	struct lab_host *a = &f->p.hosts[A];
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};

	ev.msg = (struct mrc_ev_msg){.channel = f->ids[A],
				     .level = level,
				     .cookie = cookie,
				     .len = len,
				     .is_traced = true,
				     .submitted_ns = a->now_ns - 5 * MRC_US,
				     .fetched_ns = a->now_ns};
	return lab_handle(a, &ev);
}

static int judge(struct fixture *f, enum mrc_event_kind kind, uint64_t number, const char *text,
		 uint8_t text_len, uint64_t visible_ns, uint64_t verdict_ns)
{
	struct mrc_event_in ev = {.kind = kind};

	ev.msg = (struct mrc_ev_msg){.channel = f->ids[B],
				     .number = number,
				     .code = (uint32_t)number + 50,
				     .text = text,
				     .text_len = text_len,
				     .visible_ns = visible_ns,
				     .verdict_ns = verdict_ns};
	return lab_handle(&f->p.hosts[B], &ev);
}

static const struct mrc_act_trace *traced(const struct fixture *f, uint32_t nth)
{
	const struct mrc_action *act = lab_find(&f->p.hosts[A], MRC_ACT_TRACED, 0, nth);

	return act ? &act->trace : NULL;
}

/* ---- texts ---- */

static void text_of_a_rejection_reaches_its_sender(void **state)
{
	static const uint8_t lens[] = {0, 1, 63, MRC_TEXT_BYTES_MAX};
	char text[MRC_TEXT_BYTES_MAX];
	struct fixture f;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(200 + i);
	fixture_init(&f);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(lens); i++) {
		const struct mrc_act_msg *done;

		assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, i), 0);
		lab_pair_run(&f.p, MRC_MS);
		assert_int_equal(judge(&f, MRC_EV_REJECT, i, text, lens[i], 0, 0), 0);
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
		lab_pair_run(&f.p, MRC_MS);
		done = &lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, i)->msg;
		assert_int_equal(done->outcome, MRC_OUT_REJECTED);
		assert_int_equal(done->code, i + 50);
		assert_int_equal(done->text_len, lens[i]);
		assert_memory_equal(done->text, text, lens[i]);
	}
	assert_null(traced(&f, 0));
	lab_pair_fini(&f.p);
}

static void text_comes_with_the_late_word_too(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	struct fixture f;
	const struct mrc_act_msg *late;

	fixture_init(&f);
	ev.msg = (struct mrc_ev_msg){.channel = f.ids[A],
				     .level = MRC_LVL_COMMITTED,
				     .len = 10,
				     .deadline_ns = 1};
	assert_int_equal(lab_handle(&f.p.hosts[A], &ev), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], 0, MRC_OUT_TIMED_OUT), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, 0)->msg.text_len, 0);
	assert_int_equal(judge(&f, MRC_EV_REJECT, 0, "no", 2, 0, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	late = &lab_find(&f.p.hosts[A], MRC_ACT_LATE, 0, 0)->msg;
	assert_int_equal(late->outcome, MRC_OUT_REJECTED);
	assert_int_equal(late->text_len, 2);
	assert_memory_equal(late->text, "no", 2);
	lab_pair_fini(&f.p);
}

/* A note is used until its message is settled; a rejection without one has its code still. */
static void codes_arrive_when_the_notes_are_used_up(void **state)
{
	struct fixture f;
	uint32_t texts = 0;

	fixture_init_window(&f, 64);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 40; i++)
			assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED,
						  round * 40 + i),
					 0);
		lab_pair_run(&f.p, 2 * MRC_MS);
		for (uint64_t i = 0; i < 40; i++) {
			uint64_t number = round * 40 + i;

			assert_int_equal(judge(&f, MRC_EV_REJECT, number, "why", 3, 0, 0), 0);
			assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], number,
						 0),
					 0);
		}
		lab_pair_run(&f.p, 5 * MRC_MS);
	}
	for (uint32_t i = 0; i < 80; i++) {
		const struct mrc_act_msg *done = &lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, i)->msg;

		assert_int_equal(done->outcome, MRC_OUT_REJECTED);
		assert_int_equal(done->code, done->number + 50);
		texts += done->text_len == 3;
	}
	/* All notes were used in both rounds, so they came back in between. */
	assert_int_equal(texts, 2 * MRC_NOTES);
	lab_pair_fini(&f.p);
}

/* The client keeps the first one's buffer, and with it the window's beginning. */
static void texts_are_free_when_they_were_heard(void **state)
{
	struct fixture f;
	uint32_t texts = 0;

	fixture_init_window(&f, 64);
	for (uint64_t i = 0; i < 60; i++) {
		assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, i), 0);
		lab_pair_run(&f.p, MRC_MS);
		if (i == 0) {
			assert_int_equal(judge(&f, MRC_EV_COMMIT, i, NULL, 0, 0, 0), 0);
			continue;
		}
		assert_int_equal(judge(&f, MRC_EV_REJECT, i, "why", 3, 0, 0), 0);
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
		lab_pair_run(&f.p, MRC_MS);
	}
	for (uint32_t i = 0; i < 60; i++)
		texts += lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, i)->msg.text_len == 3;
	assert_int_equal(texts, 59);
	lab_pair_fini(&f.p);
}

/* Who looks changes nothing for those that are not looked at. */
static void tracing_leaves_room_for_texts(void **state)
{
	struct fixture f;

	fixture_init_window(&f, 64);
	for (uint64_t i = 0; i < 50; i++)
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(judge(&f, MRC_EV_REJECT, 49, "why", 3, 0, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, 0)->msg.text_len, 3);
	lab_pair_fini(&f.p);
}

/* ---- moments ---- */

static uint64_t stamp_later(void *context)
{
	const struct fixture *f = context;

	return f->p.now_ns + f->offset_ns;
}

static void moments_of_a_message_are_told_when_it_has_settled(void **state)
{
	struct fixture f;
	struct lab_host *b = &f.p.hosts[B];
	const struct mrc_act_trace *trace;
	uint64_t sent_ns, placed_ns, visible_ns, verdict_ns;

	fixture_init(&f);
	/* Another machine's clock: an hour ahead, and the probes must find out. */
	f.offset_ns = 3600 * MRC_S;
	b->conn->stamp = stamp_later;
	b->conn->stamp_context = &f;
	f.p.hosts[A].conn->clock.is_known = false;
	lab_pair_run(&f.p, 3 * MRC_S);
	assert_true(lab_info(&f.p.hosts[A]).is_clock_known);

	sent_ns = f.p.now_ns;
	assert_int_equal(send_traced(&f, 100, MRC_LVL_COMMITTED, 7), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_true(lab_find(b, MRC_ACT_DELIVER, 0, 0)->msg.is_traced);
	placed_ns = sent_ns + LAB_DELAY_NS;
	visible_ns = placed_ns + 300 * MRC_US;
	verdict_ns = placed_ns + 700 * MRC_US;
	assert_null(traced(&f, 0));
	assert_int_equal(judge(&f, MRC_EV_COMMIT, 0, NULL, 0, visible_ns + f.offset_ns,
			       verdict_ns + f.offset_ns),
			 0);
	assert_int_equal(lab_msg(b, MRC_EV_RELEASE, f.ids[B], 0, 0), 0);
	lab_pair_run(&f.p, MRC_MS);

	trace = traced(&f, 0);
	assert_non_null(trace);
	assert_int_equal(trace->number, 0);
	assert_int_equal(trace->len, 100);
	assert_int_equal(trace->frag_count, 1);
	assert_int_equal(trace->outcome, MRC_OUT_OK);
	assert_int_equal(trace->level, MRC_LVL_COMMITTED);
	assert_int_equal(trace->moments_ns[MRC_MOMENT_SUBMITTED], sent_ns - 5 * MRC_US);
	assert_int_equal(trace->moments_ns[MRC_MOMENT_FETCHED], sent_ns);
	assert_int_equal(trace->moments_ns[MRC_MOMENT_FIRST_SENT], sent_ns);
	assert_int_equal(trace->moments_ns[MRC_MOMENT_LAST_SENT], sent_ns);
	assert_int_equal(trace->moments_ns[MRC_MOMENT_LOCAL], sent_ns);
	assert_in_range(trace->moments_ns[MRC_MOMENT_PLACED], placed_ns - trace->error_ns,
			placed_ns + trace->error_ns);
	assert_in_range(trace->moments_ns[MRC_MOMENT_VISIBLE], visible_ns - trace->error_ns,
			visible_ns + trace->error_ns);
	assert_in_range(trace->moments_ns[MRC_MOMENT_VERDICT], verdict_ns - trace->error_ns,
			verdict_ns + trace->error_ns);
	/* Half a round trip, and what the clocks may have drifted since. */
	assert_in_range(trace->error_ns, LAB_DELAY_NS, 200 * LAB_DELAY_NS);
	assert_null(traced(&f, 1));
	lab_pair_fini(&f.p);
}

/* It waits for less, and is answered long before all its moments are known. */
static void moments_come_after_the_answer(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(send_traced(&f, 100, MRC_LVL_PLACED, 7), 0);
	assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, 8), 0);
	lab_pair_run(&f.p, MRC_MS);
	lab_done_is(&f.p.hosts[A], 7, MRC_OUT_OK);
	assert_null(traced(&f, 0));
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	lab_done_is(&f.p.hosts[A], 8, MRC_OUT_OK);
	assert_non_null(traced(&f, 0));
	assert_int_equal(traced(&f, 0)->level, MRC_LVL_COMMITTED);
	assert_null(traced(&f, 1));
	assert_int_equal(f.p.hosts[A].conn->channel_count, 1);
	lab_pair_fini(&f.p);
}

static void moments_of_a_rejection_come_with_its_text(void **state)
{
	struct fixture f;
	const struct mrc_act_trace *trace;

	fixture_init(&f);
	assert_int_equal(send_traced(&f, 40000, MRC_LVL_COMMITTED, 7), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(judge(&f, MRC_EV_REJECT, 0, "because", 7, 0, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_memory_equal(lab_find(&f.p.hosts[A], MRC_ACT_DONE, 0, 0)->msg.text, "because", 7);
	trace = traced(&f, 0);
	assert_int_equal(trace->outcome, MRC_OUT_REJECTED);
	assert_int_equal(trace->code, 50);
	for (int i = 0; i < MRC_MOMENT_COUNT; i++)
		assert_int_not_equal(trace->moments_ns[i], 0);
	lab_pair_fini(&f.p);
}

static void first_and_last_fragment_are_told_apart(void **state)
{
	struct fixture f;
	const struct mrc_act_trace *trace;

	fixture_init(&f);
	f.p.hosts[B].releases = true;
	assert_int_equal(send_traced(&f, 4 << 20, MRC_LVL_COMMITTED, 7), 0);
	lab_pair_run(&f.p, 50 * MRC_MS);
	trace = traced(&f, 0);
	assert_non_null(trace);
	assert_true(trace->frag_count > 8);
	assert_true(trace->moments_ns[MRC_MOMENT_FETCHED] <
		    trace->moments_ns[MRC_MOMENT_FIRST_SENT]); /* it asked for a place first */
	assert_true(trace->moments_ns[MRC_MOMENT_FIRST_SENT] <
		    trace->moments_ns[MRC_MOMENT_LAST_SENT]);
	lab_pair_fini(&f.p);
}

/* A client's clock is ours, and its word is believed only where it can be true. */
static void moments_that_cannot_be_are_the_daemons_own(void **state)
{
	static const struct {
		const char *name;
		int64_t visible, verdict; /* from when it was judged; placed 1 ms before that */
		int64_t want_visible, want_verdict;
	} rows[] = {
		{"as they are", -500000, -200000, -500000, -200000},
		{"not said", INT64_MIN, INT64_MIN, 0, 0},
		{"seen before it was there", -1100000, -200000, 0, 0},
		{"seen after it was judged", 100, 200, 0, 0},
		{"judged in the future", -500000, 100, -500000, 0},
		{"judged before it was seen", -500000, -600000, -500000, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		const struct mrc_act_trace *trace;
		uint64_t now_ns;

		fixture_init(&f);
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, 1), 0);
		lab_pair_run(&f.p, LAB_DELAY_NS + MRC_MS);
		now_ns = f.p.now_ns;
		assert_int_equal(
			judge(&f, MRC_EV_COMMIT, 0, NULL, 0,
			      rows[i].visible == INT64_MIN ? 0 : now_ns + (uint64_t)rows[i].visible,
			      rows[i].verdict == INT64_MIN ? 0
							   : now_ns + (uint64_t)rows[i].verdict),
			0);
		lab_pair_run(&f.p, MRC_MS);
		trace = traced(&f, 0);
		if (trace->moments_ns[MRC_MOMENT_VISIBLE] !=
			    now_ns + (uint64_t)rows[i].want_visible ||
		    trace->moments_ns[MRC_MOMENT_VERDICT] !=
			    now_ns + (uint64_t)rows[i].want_verdict)
			fail_msg("%s", rows[i].name);
		lab_pair_fini(&f.p);
	}
}

static void what_a_client_says_of_its_own_sends_is_no_later_than_we_took_them(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[B].releases = true;
	ev.msg = (struct mrc_ev_msg){.channel = f.ids[A],
				     .level = MRC_LVL_COMMITTED,
				     .is_traced = true,
				     .submitted_ns = f.p.now_ns + 1,
				     .fetched_ns = f.p.now_ns};
	assert_int_equal(lab_handle(&f.p.hosts[A], &ev), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(traced(&f, 0)->moments_ns[MRC_MOMENT_SUBMITTED], 0);
	assert_int_equal(traced(&f, 0)->frag_count, 1); /* its one frame, of no bytes */
	lab_pair_fini(&f.p);
}

static void more_than_there_are_notes_are_counted(void **state)
{
	struct fixture f;
	struct mrc_channel_info info;
	uint32_t iter = 0;

	fixture_init_window(&f, 64);
	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, i), 0);
	assert_true(mrc_conn_channel_info(f.p.hosts[A].conn, &iter, &info));
	assert_int_equal(info.untraced, 40 - MRC_NOTES_TRACED);
	lab_pair_run(&f.p, MRC_MS);
	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_DONE, 0), 40);
	assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_TRACED, 0), MRC_NOTES_TRACED);
	/* All are free again. */
	for (uint64_t i = 0; i < MRC_NOTES_TRACED; i++)
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, 40 + i), 0);
	iter = 0;
	assert_true(mrc_conn_channel_info(f.p.hosts[A].conn, &iter, &info));
	assert_int_equal(info.untraced, 40 - MRC_NOTES_TRACED);
	lab_pair_fini(&f.p);
}

/* A path dies with the verdicts on it: they are said again, moments and all. */
static void moments_survive_the_loss_of_a_path(void **state)
{
	struct fixture f;
	uint8_t path;

	fixture_init(&f);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(send_traced(&f, 100, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&f.p, MRC_MS);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	lab_pair_pump(&f.p);
	path = lab_posted(&f.p.hosts[B], MRC_WIRE_LEVEL, 0, 0)->index;
	lab_wire_drop(&f.p, path);
	assert_int_equal(lab_carrier(&f.p.hosts[B], path, false), 0);
	lab_pair_run(&f.p, 100 * MRC_MS);
	for (uint64_t i = 0; i < 8; i++) {
		lab_done_is(&f.p.hosts[A], i, MRC_OUT_OK);
		assert_non_null(traced(&f, (uint32_t)i));
		assert_int_not_equal(traced(&f, (uint32_t)i)->moments_ns[MRC_MOMENT_VERDICT], 0);
	}
	assert_null(traced(&f, 8));
	lab_pair_fini(&f.p);
}

/* One in a row that is traced does not make its neighbours' verdicts frames of their own. */
static void counts_go_on_past_a_traced_message(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, 0), 0);
	for (uint64_t i = 1; i < 10; i++)
		assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&f.p, MRC_MS);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_posted_count(&f.p.hosts[B], MRC_WIRE_LEVEL, 0), 1);
	for (uint64_t i = 0; i < 10; i++)
		lab_done_is(&f.p.hosts[A], i, MRC_OUT_OK);
	assert_non_null(traced(&f, 0));
	lab_pair_fini(&f.p);
}

static void an_unordered_message_is_traced_like_any(void **state)
{
	struct fixture f;

	lab_pair_up(&f.p, 2, NULL);
	lab_pair_channel(&f.p, true, f.ids);
	f.p.hosts[B].releases = false;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&f.p, MRC_MS);
	for (uint64_t i = 3; i-- > 0;) {
		assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
		lab_pair_run(&f.p, MRC_MS);
		lab_done_is(&f.p.hosts[A], i, MRC_OUT_OK);
		/* Told in the order of their numbers, for so they settle. */
		assert_int_equal(lab_count(&f.p.hosts[A], MRC_ACT_TRACED, 0), i ? 0 : 3);
	}
	lab_pair_fini(&f.p);
}

/* Given up before it came, and taken back: there is an end to be told, without a verdict. */
static void a_message_given_up_is_told_too(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[B].lands = false;
	assert_int_equal(send_traced(&f, 1 << 20, MRC_LVL_COMMITTED, 0), 0);
	lab_pair_run(&f.p, MRC_MS);
	assert_int_equal(lab_cancel(&f.p.hosts[A], f.ids[A], 0, MRC_OUT_TIMED_OUT), 0);
	lab_pair_run(&f.p, MRC_MS);
	lab_done_is(&f.p.hosts[A], 0, MRC_OUT_TIMED_OUT);
	assert_int_equal(traced(&f, 0)->outcome, MRC_OUT_TIMED_OUT);
	assert_int_equal(traced(&f, 0)->moments_ns[MRC_MOMENT_FIRST_SENT], 0);
	assert_int_equal(traced(&f, 0)->moments_ns[MRC_MOMENT_PLACED], 0);
	lab_pair_fini(&f.p);
}

static void what_is_traced_holds_up_no_end(void **state)
{
	for (int side = 0; side < 2; side++) {
		struct fixture f;

		fixture_init(&f);
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, i), 0);
		lab_pair_run(&f.p, MRC_MS);
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], i, 0), 0);
		assert_int_equal(lab_channel(&f.p.hosts[side], MRC_EV_CH_CLOSE, f.ids[side]), 0);
		lab_pair_run(&f.p, 2 * MRC_MS);
		for (uint64_t i = 0; i < 4; i++)
			lab_done_is(&f.p.hosts[A], i, MRC_OUT_OK);
		for (int h = 0; h < 2; h++)
			assert_int_equal(lab_info(&f.p.hosts[h]).channel_count, 0);
		lab_pair_fini(&f.p);
	}
}

/* Who turns down what keeps coming closes all the same: what came before the end was wanted is heard. */
static void a_stream_of_rejections_holds_up_no_end(void **state)
{
	struct fixture f;
	uint32_t delivered = 0;
	uint64_t closed_at = 0;

	fixture_init(&f);
	for (uint32_t step = 0; step < 400; step++) {
		if (lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, step) == -ENOENT)
			break; /* it has heard of the end */
		lab_pair_run(&f.p, 3 * MRC_US);
		while (delivered < lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0)) {
			judge(&f, MRC_EV_REJECT, delivered, "no", 2, 0, 0);
			lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], delivered++, 0);
		}
		if (step == 40) {
			closed_at = delivered;
			assert_int_equal(lab_channel(&f.p.hosts[B], MRC_EV_CH_CLOSE, f.ids[B]), 0);
		}
	}
	assert_non_null(lab_posted(&f.p.hosts[B], MRC_WIRE_CLOSE, 0, 0));
	assert_true(closed_at > 3);
	for (uint64_t i = 0; i < closed_at; i++)
		lab_done_is(&f.p.hosts[A], i, MRC_OUT_REJECTED);
	lab_pair_run(&f.p, MRC_MS);
	while (delivered < lab_count(&f.p.hosts[B], MRC_ACT_DELIVER, 0))
		lab_msg(&f.p.hosts[B], MRC_EV_RELEASE, f.ids[B], delivered++, 0);
	lab_pair_run(&f.p, 5 * MRC_MS);
	for (int h = 0; h < 2; h++)
		assert_int_equal(lab_info(&f.p.hosts[h]).channel_count, 0);
	lab_pair_fini(&f.p);
}

/* Nothing is silent, so nothing would be probed. */
static void clocks_are_compared_while_the_paths_are_busy(void **state)
{
	struct fixture f;

	lab_pair_up(&f.p, 1, NULL);
	lab_pair_channel(&f.p, false, f.ids);
	for (uint32_t ms = 0; ms < 1000; ms++) {
		assert_int_equal(send_traced(&f, 100, MRC_LVL_COMMITTED, ms), 0);
		lab_pair_run(&f.p, MRC_MS);
	}
	assert_true(lab_info(&f.p.hosts[A]).clock_age_ns < 200 * MRC_MS);
	lab_pair_fini(&f.p);
}

static void one_clock_needs_no_comparing(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.p.hosts[A].conn->has_one_clock = true; /* as its config would have said */
	f.p.hosts[A].conn->clock = (struct mrc_clock){.is_known = true};
	f.p.hosts[B].releases = true;
	assert_int_equal(send_traced(&f, 100, MRC_LVL_COMMITTED, 0), 0);
	lab_pair_run(&f.p, MRC_S);
	assert_int_equal(traced(&f, 0)->error_ns, 0);
	assert_int_equal(traced(&f, 0)->moments_ns[MRC_MOMENT_PLACED],
			 traced(&f, 0)->moments_ns[MRC_MOMENT_FETCHED] + LAB_DELAY_NS);
	assert_int_equal(lab_info(&f.p.hosts[A]).clock_offset_ns, 0);
	assert_int_equal(lab_info(&f.p.hosts[A]).clock_error_ns, 0);
	lab_pair_fini(&f.p);
}

/* ---- what a peer may say ---- */

static int feed_level(struct fixture *f, uint16_t flags, const uint8_t *body, uint32_t body_len)
{
	struct lab_host *a = &f->p.hosts[A];

	return lab_feed(a, 0,
			(struct mrc_wire_hdr){
				.type = MRC_WIRE_LEVEL,
				.flags = flags,
				.channel = mrc_conn_channel(a->conn, f->ids[A])->wire_id,
				.body_len = body_len,
				.arg = MRC_LVL_COMMITTED | 1U << 8,
			},
			body);
}

/* The count answers; the moments come when they come, or the word that there are none. */
static void count_may_come_before_the_moments(void **state)
{
	for (int has_moments = 0; has_moments < 2; has_moments++) {
		struct fixture f;
		struct lab_host *a = &f.p.hosts[A];
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_STATE, .body_len = 48};
		uint8_t body[48];
		struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
		const struct mrc_channel *ch;

		fixture_init(&f);
		ch = mrc_conn_channel(a->conn, f.ids[A]);
		hdr.channel = ch->wire_id;
		assert_int_equal(send_traced(&f, 10, MRC_LVL_COMMITTED, 0), 0);
		lab_pump(a);
		for (int i = 0; i < 3; i++)
			mrc_put_u64(&c, 1);
		mrc_put_u64(&c, 0);
		mrc_put_u64(&c, ch->ring_limit);
		mrc_put_u64(&c, ch->msg_limit);
		assert_int_equal(lab_feed(a, 0, hdr, body), 0);
		lab_pump(a);
		lab_done_is(a, 0, MRC_OUT_OK);
		assert_null(traced(&f, 0));
		assert_int_equal(ch->settled, 0);
		c = (struct mrc_cursor){.at = body, .end = body + sizeof(body), .ok = true};
		for (uint64_t i = 0; i < MRC_MOMENTS_TOLD; i++)
			mrc_put_u64(&c, a->now_ns);
		assert_int_equal(feed_level(&f, has_moments ? MRC_WIRE_F_TRACED : 0, body,
					    has_moments ? 24 : 0),
				 0);
		lab_pump(a);
		assert_non_null(traced(&f, 0));
		assert_int_equal(ch->settled, 1);
		assert_int_equal(traced(&f, 0)->moments_ns[MRC_MOMENT_VERDICT] != 0, has_moments);
		assert_int_equal(feed_level(&f, MRC_WIRE_F_TRACED, body, 24), 0); /* once more */
		lab_pump(a);
		assert_null(traced(&f, 1));
		lab_pair_fini(&f.p);
	}
}

static void notes_that_cannot_be_break_the_protocol(void **state)
{
	static const struct {
		const char *name;
		uint16_t flags;
		uint32_t body_len;
		bool is_final;
		int outcome;
		int want;
	} rows[] = {
		{"a text", 0, 5, true, MRC_OUT_REJECTED, 0},
		{"the longest text", 0, 64, true, MRC_OUT_REJECTED, 0},
		{"moments", MRC_WIRE_F_TRACED, 24, true, MRC_OUT_OK, 0},
		{"moments of one that is not traced, and a text", MRC_WIRE_F_TRACED, 88, true,
		 MRC_OUT_REJECTED, 0},
		{"too long a text", 0, 65, true, MRC_OUT_REJECTED, -EPROTO},
		{"too long a text behind moments", MRC_WIRE_F_TRACED, 89, true, MRC_OUT_REJECTED,
		 -EPROTO},
		{"moments cut off", MRC_WIRE_F_TRACED, 23, true, MRC_OUT_OK, -EPROTO},
		{"no moments", MRC_WIRE_F_TRACED, 0, true, MRC_OUT_OK, -EPROTO},
		{"a text for a commit", 0, 1, true, MRC_OUT_OK, -EPROTO},
		{"a text before the verdict", 0, 1, false, MRC_OUT_OK, -EPROTO},
		{"moments before the verdict", MRC_WIRE_F_TRACED, 24, false, MRC_OUT_OK, -EPROTO},
		{"as long as a body gets", 0, MRC_WIRE_CTL_BYTES_MAX, true, MRC_OUT_REJECTED,
		 -EPROTO},
	};
	static const uint8_t body[MRC_WIRE_CTL_BYTES_MAX];

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		struct mrc_wire_hdr hdr = {
			.type = MRC_WIRE_LEVEL,
			.flags = rows[i].flags,
			.body_len = rows[i].body_len,
			.arg = (rows[i].outcome == MRC_OUT_OK ? MRC_LVL_COMMITTED
							      : MRC_LVL_VISIBLE) |
			       (uint64_t)rows[i].is_final << 8 |
			       (uint64_t)(uint8_t)(int8_t)rows[i].outcome << 16,
		};
		int r;

		fixture_init(&f);
		if (!rows[i].is_final)
			hdr.arg = MRC_LVL_VISIBLE;
		hdr.channel = mrc_conn_channel(f.p.hosts[A].conn, f.ids[A])->wire_id;
		assert_int_equal(lab_send(&f.p.hosts[A], f.ids[A], 10, MRC_LVL_COMMITTED, 1), 0);
		lab_pump(&f.p.hosts[A]);
		r = lab_feed(&f.p.hosts[A], 0, hdr, body);
		if (r != rows[i].want)
			fail_msg("%s: %d", rows[i].name, r);
		lab_pair_fini(&f.p);
	}
}

/* ---- clocks ---- */

static void clock_is_as_right_as_all_probes_together(void **state)
{
	struct mrc_clock clock = {0};

	/* Nothing can be said. */
	mrc_clock_sample(&clock, 100, 0, 0, 200);
	mrc_clock_sample(&clock, 100, 5000, 4999, 200);    /* answered before it came */
	mrc_clock_sample(&clock, 200, 5000, 5001, 100);    /* heard before it was sent */
	mrc_clock_sample(&clock, 100, 5000, 5101, 200);    /* held longer than it was away */
	mrc_clock_sample(&clock, 100, 1, UINT64_MAX, 200); /* nonsense */
	assert_false(clock.is_known);
	assert_int_equal(mrc_clock_here(&clock, 77), 0);

	/* 1,000 out, 40 held, 3,000 back; the peer is 1,000,000 ahead. */
	mrc_clock_sample(&clock, 10000, 1011000, 1011040, 14040);
	assert_true(clock.is_known);
	assert_int_equal(clock.most_ns, 1001000);
	assert_int_equal(clock.least_ns, 997000);
	assert_int_equal(mrc_clock_offset_ns(&clock), 999000);
	assert_int_equal(mrc_clock_error_ns(&clock, 14040), 2001);
	/* A worse one takes nothing away; in 10 us there is a drift of 2 ns. */
	mrc_clock_sample(&clock, 20000, 1029000, 1029000, 24040 + 8000);
	assert_int_equal(clock.most_ns, 1001000 + 3);
	assert_int_equal(clock.least_ns, 997000 - 3);
	/* One that is better on the way back alone betters that side. */
	mrc_clock_sample(&clock, 50000, 1055000, 1055000, 55200);
	assert_int_equal(clock.most_ns, 1001000 + 3 + 4);
	assert_int_equal(clock.least_ns, 999800);
	assert_int_equal(mrc_clock_here(&clock, 1060000), 1060000 - mrc_clock_offset_ns(&clock));
	assert_int_equal(mrc_clock_here(&clock, 0), 0);
	assert_int_equal(mrc_clock_here(&clock, 999), 1); /* before our clock began */
	assert_true(mrc_clock_here(&clock, UINT64_MAX) < 1ULL << 62);

	/* With time it gets worse, until the next probe. */
	assert_int_equal(mrc_clock_error_ns(&clock, 55200 + MRC_S), 603 + 1 + 200000);
	assert_int_equal(mrc_clock_error_ns(&clock, 55200), 604);
	assert_int_equal(mrc_clock_error_ns(&clock, 0), 604 + 11); /* and so it was before */
	/* What cannot be together: somebody has set a clock, and the newest word counts. */
	mrc_clock_sample(&clock, 60000, 5060500, 5060500, 61000);
	assert_int_equal(mrc_clock_offset_ns(&clock), 5000000);
	assert_int_equal(mrc_clock_error_ns(&clock, 61000), 501);

	/* A peer behind us, and times at the ends of what there is. */
	clock.is_known = false;
	mrc_clock_sample(&clock, 5000000, 1000000, 1000000, 5000100);
	assert_int_equal(mrc_clock_offset_ns(&clock), -4000050);
	assert_int_equal(mrc_clock_here(&clock, 1000000), 5000050);
	clock.is_known = false;
	mrc_clock_sample(&clock, 0, UINT64_MAX, UINT64_MAX, 10);
	mrc_clock_sample(&clock, 0, (1ULL << 61) + 1, (1ULL << 61) + 1, 10);
	assert_false(clock.is_known);
	mrc_clock_sample(&clock, 0, 1ULL << 61, 1ULL << 61, 10);
	mrc_clock_sample(&clock, (1ULL << 61) - 10, 1, 1, 1ULL << 61);
	assert_true(mrc_clock_error_ns(&clock, UINT64_MAX) > 0);
}

/* Not a client's clock, nor the time of the turn: the probe's own. */
static void clock_of_the_peer_is_forgotten_with_its_epoch(void **state)
{
	struct fixture f;

	fixture_init(&f);
	lab_pair_run(&f.p, MRC_S);
	assert_true(lab_info(&f.p.hosts[A]).is_clock_known);
	assert_in_range(lab_info(&f.p.hosts[A]).clock_error_ns, 1, MRC_MS);
	mrc_conn_reset(f.p.hosts[A].conn, 99, 1234);
	assert_false(lab_info(&f.p.hosts[A]).is_clock_known);
	lab_pump(&f.p.hosts[A]);
	lab_pair_fini(&f.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_a_rejection_reaches_its_sender),
		cmocka_unit_test(text_comes_with_the_late_word_too),
		cmocka_unit_test(codes_arrive_when_the_notes_are_used_up),
		cmocka_unit_test(texts_are_free_when_they_were_heard),
		cmocka_unit_test(tracing_leaves_room_for_texts),
		cmocka_unit_test(moments_of_a_message_are_told_when_it_has_settled),
		cmocka_unit_test(moments_come_after_the_answer),
		cmocka_unit_test(moments_of_a_rejection_come_with_its_text),
		cmocka_unit_test(first_and_last_fragment_are_told_apart),
		cmocka_unit_test(moments_that_cannot_be_are_the_daemons_own),
		cmocka_unit_test(what_a_client_says_of_its_own_sends_is_no_later_than_we_took_them),
		cmocka_unit_test(more_than_there_are_notes_are_counted),
		cmocka_unit_test(moments_survive_the_loss_of_a_path),
		cmocka_unit_test(counts_go_on_past_a_traced_message),
		cmocka_unit_test(an_unordered_message_is_traced_like_any),
		cmocka_unit_test(a_message_given_up_is_told_too),
		cmocka_unit_test(what_is_traced_holds_up_no_end),
		cmocka_unit_test(a_stream_of_rejections_holds_up_no_end),
		cmocka_unit_test(clocks_are_compared_while_the_paths_are_busy),
		cmocka_unit_test(one_clock_needs_no_comparing),
		cmocka_unit_test(count_may_come_before_the_moments),
		cmocka_unit_test(notes_that_cannot_be_break_the_protocol),
		cmocka_unit_test(clock_is_as_right_as_all_probes_together),
		cmocka_unit_test(clock_of_the_peer_is_forgotten_with_its_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
