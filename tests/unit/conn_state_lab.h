/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn_state_lab - a conn with a bit of everything, left and taken over, for the tests of that
 *
 * On top of engine_lab.h, and included by one source only: there is one image, which leave()
 * writes and take() reads.
 */
#ifndef CONN_STATE_LAB_H
#define CONN_STATE_LAB_H

#include "engine_lab.h"
#include "mrc_conn_state.h"

#define IMAGE_MAX (1U << 20)

static uint8_t image[IMAGE_MAX];
static size_t image_len;

/* ---- leaving and taking over ---- */

static inline void quiesce(struct lab_host *h)
{
	for (uint8_t i = 0; i < h->conn->path_count; i++)
		lab_path(h, MRC_EV_PATH_DOWN, i, MRC_REASON_CLOSED);
	lab_pump(h);
}

static inline void leave(struct lab_host *h)
{
	quiesce(h);
	assert_int_equal(mrc_conn_export(h->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
}

static inline struct mrc_conn_config config_of(struct lab_host *h)
{
	struct mrc_conn_config config = {
		.host = h->conn->host,
		.peer = h->conn->peer,
		.boot_id = h->conn->boot_id,
		.seed = 8,
		.path_count = h->conn->path_count,
		.limits = {.channels_max = 8, .frames_in_flight_max = 256},
		.alloc = {lab_alloc_take, lab_alloc_give, &h->memory},
	};

	return config;
}

/* The image, in a conn of its own; its memory is `h`'s. */
static inline int take(struct lab_host *h, const struct mrc_conn_config *config,
		       struct mrc_conn **conn_out, const char **why_out)
{
	*conn_out = NULL;
	*why_out = NULL;
	return mrc_conn_import(config, lab_crc32c, image, image_len, h->now_ns, conn_out, why_out);
}

static inline void take_over(struct lab_host *h)
{
	struct mrc_conn_config config = config_of(h);
	struct mrc_conn *conn;
	const char *why;
	int r = take(h, &config, &conn, &why);

	if (r)
		fail_msg("import answered %d: %s", r, why);
	mrc_conn_free(h->conn);
	h->conn = conn;
	for (uint8_t i = 0; h->pair && i < h->pair->path_count; i++) {
		if (h->pair->is_direct)
			lab_key(h, i, true, 200U + i, 0);
	}
}

static inline void reseal(void)
{
	uint32_t crc =
		lab_crc32c(0, image + MRC_STATE_HEADER_BYTES, image_len - MRC_STATE_HEADER_BYTES);
	uint64_t len = image_len;

	memcpy(image + 8, &len, 8);
	memcpy(image + 16, &crc, 4);
}

/* ---- a conn with a bit of everything ---- */

struct scene {
	struct lab_pair p;
	uint32_t ids[2];
};

static inline void say(struct scene *s, uint64_t len, uint64_t cookie, bool is_traced)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND,
				  .msg = {.channel = s->ids[0],
					  .level = MRC_LVL_COMMITTED,
					  .cookie = cookie,
					  .len = len,
					  .deadline_ns = cookie,
					  .is_traced = is_traced,
					  .submitted_ns = 1,
					  .fetched_ns = 2}};

	assert_int_equal(lab_handle(&s->p.hosts[0], &ev), 0);
}

/*
 * From a to b: messages held, rejected with a text that is not heard, cancelled, under
 * way in pieces on two rails of which one fell silent, waiting for a buffer; another
 * channel that was opened and not answered, and one that is closing.
 */
static inline void scene_begin(struct scene *s, bool is_direct)
{
	struct mrc_event_in reject = {
		.kind = MRC_EV_REJECT,
		.msg = {.code = 9, .text = "because", .text_len = 7},
	};
	struct lab_host *a = &s->p.hosts[0];
	struct lab_host *b = &s->p.hosts[1];
	uint32_t other;

	lab_pair_init(&s->p, 2, NULL);
	a->window = 64;
	b->window = 64;
	s->p.is_direct = is_direct;
	lab_timer(a);
	lab_pair_run(&s->p, 20 * MRC_MS);
	lab_pair_channel(&s->p, false, s->ids);
	b->releases = false;
	b->accepts = false;
	assert_int_equal(lab_open_at(a, "late", true, &other), 0);
	for (uint64_t i = 0; i < 3; i++)
		say(s, 1000 + i, i, i == 1);
	say(s, 100000, 3, true);
	lab_pair_run(&s->p, 2 * MRC_MS);
	reject.msg.channel = s->ids[1];
	assert_int_equal(lab_handle(b, &reject), 0);
	s->p.is_silent[0][0] = true; /* of what follows the half is heard */
	say(s, 600000, 4, false);
	say(s, 20000, 5, true);
	say(s, 0, 6, false);
	lab_pair_run(&s->p, 3 * LAB_DELAY_NS);
	b->lands = false;
	say(s, 300000, 7, false);
	lab_cancel(a, s->ids[0], 5, MRC_OUT_TIMED_OUT);
	lab_carrier(a, 1, false);
	lab_pair_run(&s->p, 2 * LAB_DELAY_NS);
}

static inline void scene_end(struct scene *s)
{
	lab_pair_fini(&s->p);
}

/* All comes to its end as if nothing had happened. */
static inline void scene_finish(struct scene *s)
{
	static const int outcomes[] = {MRC_OUT_REJECTED, 0, 0, 0, 0, 1, 0, 0};
	struct lab_host *a = &s->p.hosts[0];
	struct lab_host *b = &s->p.hosts[1];

	s->p.is_silent[0][0] = false;
	lab_carrier(a, 1, true);
	b->lands = true;
	b->releases = true;
	for (uint64_t n = 0; n < 8; n++)
		lab_msg(b, MRC_EV_RELEASE, s->ids[1], n, 0);
	lab_pair_run(&s->p, 3 * MRC_S);
	for (uint64_t n = 0; n < 8; n++) {
		uint32_t answers = 0;
		int outcome = 1;

		for (uint32_t i = 0; i < a->log_count; i++)
			answers += a->log[i].kind == MRC_ACT_DONE && a->log[i].msg.cookie == n;
		if (answers != 1)
			fail_msg("message %llu is answered %u times", (unsigned long long)n,
				 answers);
		assert_true(lab_done(a, n, &outcome));
		if (outcomes[n] <= 0)
			assert_int_equal(outcome, outcomes[n]);
	}
	for (uint32_t i = 0; i < a->log_count; i++) {
		if (a->log[i].kind == MRC_ACT_DONE && a->log[i].msg.cookie == 0)
			assert_memory_equal(a->log[i].msg.text, "because", 7);
	}
	for (uint64_t n = 0; n < 8; n++) {
		uint32_t came = 0;

		for (uint32_t i = 0; i < b->log_count; i++)
			came += (b->log[i].kind == MRC_ACT_DELIVER ||
				 b->log[i].kind == MRC_ACT_GAP) &&
				b->log[i].msg.number == n;
		assert_int_equal(came, 1);
	}
	assert_int_equal(lab_info(a).resets + lab_info(b).resets, 0);
	assert_int_equal(lab_info(a).protocol_errors + lab_info(b).protocol_errors, 0);
	assert_int_equal(a->conn->boot_id, LAB_BOOT_A);
}

/* ---- what else tests do with one ---- */

/* Each allocation of an import fails in turn; how many there are. Keys of the peer's can be done without. */
static inline uint32_t starve(struct lab_host *h, const struct mrc_conn_config *config)
{
	uint32_t failed = 0;

	for (;;) {
		int64_t live = h->memory.live;
		uint64_t fail_at = h->memory.taken + 1 + failed;
		struct mrc_conn *conn;
		const char *why;
		int r;

		h->memory.fail_at = fail_at;
		r = take(h, config, &conn, &why);
		h->memory.fail_at = 0;
		mrc_conn_free(conn);
		assert_int_equal(h->memory.live, live);
		if (h->memory.taken < fail_at) {
			assert_int_equal(r, 0);
			return failed;
		}
		assert_true(r == -ENOMEM || r == 0);
		failed++;
	}
}

/* What a test may change of a scene before it is left. */
struct part {
	struct mrc_conn *conn;
	struct mrc_channel *ch;
	struct mrc_msg_out *out; /* 4 of a: partly sent */
	struct mrc_msg_in *in;   /* 4 of b: partly here */
};

static inline void ctl_add(struct mrc_conn *conn, enum mrc_wire_type type, uint32_t channel)
{
	conn->ctl[conn->ctl_next++ & (conn->ctl_count - 1)] =
		(struct mrc_ctl_entry){.type = (uint8_t)type, .channel = channel};
}

static inline void lost_add(const struct part *p, uint64_t len)
{
	for (uint32_t i = 0; i < p->conn->hold_count; i++) {
		if (p->conn->holds[i].state != MRC_HOLD_NONE)
			continue;
		p->conn->holds[i] = (struct mrc_hold){.state = MRC_HOLD_READY,
						      .channel = p->ch->id,
						      .id = 1000 + i,
						      .msg = 4,
						      .len = len};
		p->conn->holds_used++;
		p->conn->holds_ready++;
		return;
	}
}

#endif
