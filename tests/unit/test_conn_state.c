/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_state: what is taken over is what was left, and nothing else is taken over. */
#include "engine_lab.h"
#include "mrc_conn_state.h"

#define IMAGE_MAX (1U << 20)

static uint8_t image[IMAGE_MAX];
static size_t image_len;

/* ---- leaving and taking over ---- */

static void quiesce(struct lab_host *h)
{
	for (uint8_t i = 0; i < h->conn->path_count; i++)
		lab_path(h, MRC_EV_PATH_DOWN, i, MRC_REASON_CLOSED);
	lab_pump(h);
}

static void leave(struct lab_host *h)
{
	quiesce(h);
	assert_int_equal(mrc_conn_export(h->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
}

static struct mrc_conn_config config_of(struct lab_host *h)
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
static int take(struct lab_host *h, const struct mrc_conn_config *config,
		struct mrc_conn **conn_out, const char **why_out)
{
	*conn_out = NULL;
	*why_out = NULL;
	return mrc_conn_import(config, lab_crc32c, image, image_len, h->now_ns, conn_out, why_out);
}

static void take_over(struct lab_host *h)
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

static void reseal(void)
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

static void say(struct scene *s, uint64_t len, uint64_t cookie, bool is_traced)
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
static void scene_begin(struct scene *s, bool is_direct)
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

static void scene_end(struct scene *s)
{
	lab_pair_fini(&s->p);
}

/* All comes to its end as if nothing had happened. */
static void scene_finish(struct scene *s)
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

static void a_conn_goes_on_where_it_stopped(void **state)
{
	/* Which ends, and how often. */
	static const uint32_t who[] = {1, 2, 3, 1, 2, 3};

	for (uint32_t k = 0; k < 2 * MRC_ARRAY_LEN(who); k++) {
		struct scene s;

		scene_begin(&s, k & 1);
		for (uint32_t times = 0; times < 1 + k / 6; times++) {
			for (uint32_t h = 0; h < 2; h++) {
				if (!(who[k / 2] >> h & 1))
					continue;
				leave(&s.p.hosts[h]);
				/* The other end finds out by its sockets. */
				quiesce(&s.p.hosts[!h]);
				take_over(&s.p.hosts[h]);
			}
			lab_pair_run(&s.p, 50 * MRC_US);
		}
		scene_finish(&s);
		scene_end(&s);
	}
}

static void what_is_taken_over_is_what_was_left(void **state)
{
	static uint8_t again[IMAGE_MAX];

	for (uint32_t k = 0; k < 4; k++) {
		struct mrc_path_info path[2];
		struct mrc_conn_info info[2];
		struct lab_host *h;
		struct scene s;
		size_t len;

		scene_begin(&s, k & 1);
		h = &s.p.hosts[k / 2];
		h->lands = true; /* a buffer that is still wanted is wanted anew */
		while (k / 2 == 1 && h->conn->all.next &&
		       mrc_conn_channel(h->conn, s.ids[1])->is_asking)
			lab_msg(h, MRC_EV_LANDING, s.ids[1],
				mrc_conn_channel(h->conn, s.ids[1])->asking, h->landing_next++);
		leave(h);
		info[0] = lab_info(h);
		path[0] = lab_path_info(h, 1);
		take_over(h);
		/* take_over() has given keys, which do not travel. */
		assert_int_equal(mrc_conn_export(h->conn, lab_crc32c, again, sizeof(again), &len),
				 0);
		assert_int_equal(len, image_len);
		assert_memory_equal(again, image, len);
		info[1] = lab_info(h);
		path[1] = lab_path_info(h, 1);
#define SAME(what, field) assert_true((what)[0].field == (what)[1].field)
		SAME(info, epoch);
		SAME(info, peer_boot_id);
		SAME(info, channel_count);
		SAME(info, messages_sent);
		SAME(info, messages_delivered);
		SAME(info, messages_failed);
		SAME(path, state);
		SAME(path, reason);
		SAME(path, epoch);
		SAME(path, is_carrier_up);
		SAME(path, frames_sent);
		SAME(path, bytes_received);
		SAME(path, frames_resent);
		SAME(path, good_count);
		SAME(path, bad_count);
#undef SAME
		scene_end(&s);
	}
}

static void only_a_quiet_conn_is_left(void **state)
{
	struct mrc_action act;
	struct lab_host *b;
	struct scene s;
	size_t len;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &len), -EBUSY);
	quiesce(b);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, NULL, 0, &len), -ENOBUFS);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len - 1, &image_len),
			 -ENOBUFS);
	assert_int_equal(image_len, len);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len, &image_len), 0);
	/* An action that nobody has taken. */
	lab_channel(b, MRC_EV_CH_CLOSE, s.ids[1]);
	lab_msg(b, MRC_EV_RELEASE, s.ids[1], 3, 0);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len, &image_len), -EBUSY);
	while (mrc_conn_next_action(b->conn, &act, b->now_ns))
		;
	b->conn->do_reset = true;
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &len), -EBUSY);
	scene_end(&s);
}

/*
 * A fragment was heard of when its rail asked where it goes, and then the path died: 9 asks for
 * its landing buffer, now that 8 is known to need none, and an export has to wait for that.
 */
static void what_a_place_tells_is_acted_on(void **state)
{
	struct mrc_place place;
	struct lab_host *b;
	struct scene s;
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER,
				   .msg = 8,
				   .msg_len = 10,
				   .body_len = 10};
	struct mrc_wire_hdr rts = {.type = MRC_WIRE_RTS, .msg = 9, .msg_len = 50000};
	struct mrc_channel *ch;
	uint32_t from;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	b->lands = true;
	quiesce(&s.p.hosts[0]);
	quiesce(b);
	s.p.is_silent[0][0] = false;
	lab_carrier(&s.p.hosts[0], 1, true);
	for (uint64_t n = 0; n < 8; n++) /* 7 was asked for while nobody answered */
		lab_msg(b, MRC_EV_LANDING, s.ids[1], n, b->landing_next + (n << 20));
	lab_pair_run(&s.p, 3 * MRC_S);
	b->pair = NULL;
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_int_equal(ch->deliver_next, 8);
	rts.channel = hdr.channel = ch->wire_id;
	hdr.addr = mrc_channel_in(ch, 5)->addr + 20000;
	hdr.conn_epoch = b->conn->epoch;
	assert_int_equal(lab_feed(b, 0, rts, NULL), 0);
	lab_pump(b);
	from = b->log_count;
	assert_int_equal(mrc_conn_place(b->conn, &hdr, 0, &place), 10);
	leave(b);
	assert_non_null(lab_find(b, MRC_ACT_LANDING_WANT, from, 0));
	b->pair = &s.p;
	scene_end(&s);
}

/* ---- what is refused ---- */

static void every_damage_is_noticed(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;
	size_t len;

	scene_begin(&s, true);
	b = &s.p.hosts[1];
	leave(b);
	config = config_of(b);
	len = image_len;
	for (image_len = 0; image_len < len; image_len++) {
		assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
		assert_non_null(why);
		assert_null(conn);
	}
	for (size_t bit = 0; bit < 8 * len; bit++) {
		image[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
		assert_non_null(why);
		image[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	assert_int_equal(take(b, &config, &conn, &why), 0);
	mrc_conn_free(conn);
	scene_end(&s);
}

/* A few events: whatever was taken for a state, the engine goes on with it. */
static void go_on(struct lab_host *h)
{
	for (uint8_t i = 0; i < h->conn->path_count; i++)
		lab_path_up(h, i, h->conn->epoch ? h->conn->epoch : 1,
			    h->conn->paths[i].epoch_last + 1, h->conn->peer_boot_id, i & 1);
	for (uint32_t turn = 0; turn < 4; turn++) {
		struct mrc_action act;
		uint32_t count = 0;

		while (count++ < 2000 && mrc_conn_next_action(h->conn, &act, h->now_ns))
			;
		h->now_ns = MRC_MIN(mrc_conn_deadline_ns(h->conn), h->now_ns + MRC_S);
		lab_timer(h);
	}
	quiesce(h);
}

/* With a checksum that fits it gets as far as it can: refused, or taken and lived with. */
static void a_forged_image_breaks_nothing(void **state)
{
	static uint8_t good[IMAGE_MAX];
	struct mrc_rng rng = {.state = 0x5eed62};
	uint32_t taken = 0;

	for (uint32_t k = 0; k < 4; k++) {
		struct mrc_conn_config config;
		struct lab_host *h;
		struct scene s;
		size_t len;

		scene_begin(&s, k & 1);
		h = &s.p.hosts[k / 2];
		h->pair = NULL;
		h->accepts = h->lands = h->releases = h->finishes = h->fences = false;
		leave(h);
		config = config_of(h);
		len = image_len;
		memcpy(good, image, len);
		for (uint32_t round = 0; round < 4000; round++) {
			struct mrc_conn *own = h->conn;
			uint64_t now_ns = h->now_ns;
			struct mrc_conn *conn;
			const char *why;
			size_t at = MRC_STATE_HEADER_BYTES;

			memcpy(image, good, len);
			image_len = len;
			for (uint64_t i = 0; i <= mrc_rng_next(&rng) % 3; i++) {
				at += mrc_rng_next(&rng) % (len - at);
				image[at] = mrc_rng_next(&rng) & 1
						    ? (uint8_t)(image[at] ^ 1)
						    : (uint8_t)(mrc_rng_next(&rng) >>
								mrc_rng_next(&rng) % 9);
			}
			reseal();
			if (take(h, &config, &conn, &why)) {
				assert_null(conn);
				continue;
			}
			taken++;
			h->conn = conn;
			h->log_count = 0;
			go_on(h);
			mrc_conn_free(conn);
			h->conn = own;
			h->now_ns = now_ns;
		}
		h->pair = &s.p;
		scene_end(&s);
	}
	assert_true(taken > 1000); /* most numbers may be any */
}

/* Each allocation of an import fails in turn; how many there are. Keys of the peer's can be done without. */
static uint32_t starve(struct lab_host *h)
{
	struct mrc_conn_config config = config_of(h);
	uint32_t failed = 0;

	for (;;) {
		int64_t live = h->memory.live;
		uint64_t fail_at = h->memory.taken + 1 + failed;
		struct mrc_conn *conn;
		const char *why;
		int r;

		h->memory.fail_at = fail_at;
		r = take(h, &config, &conn, &why);
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

static void memory_that_is_short_is_said(void **state)
{
	struct scene s;

	scene_begin(&s, true);
	leave(&s.p.hosts[1]);
	assert_true(starve(&s.p.hosts[1]) > 12);
	scene_end(&s);
}

static void a_section_that_is_not_known_is_skipped_if_it_may(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;
	size_t len;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	leave(b);
	config = config_of(b);
	len = image_len;
	for (uint32_t k = 0; k < 6; k++) {
		/* tag, may be skipped, bytes; before all others, or behind them */
		uint8_t section[12 + 5] = {0x63, 0, k % 3 != 1, 0, 5};
		size_t at = k / 3 ? MRC_STATE_HEADER_BYTES : len;
		int r;

		if (k % 3 == 2)
			section[2] = 2; /* and something besides */
		memmove(image + at + sizeof(section), image + at, len - at);
		memcpy(image + at, section, sizeof(section));
		image_len = len + sizeof(section);
		reseal();
		r = take(b, &config, &conn, &why);
		assert_int_equal(r, k % 3 ? -EPROTO : 0);
		if (r == 0)
			mrc_conn_free(conn);
		memmove(image + at, image + at + sizeof(section), len - at);
	}
	image_len = len;
	/* A field more, or fewer, in a section that is known. */
	image[MRC_STATE_HEADER_BYTES + 4]--;
	reseal();
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	image[MRC_STATE_HEADER_BYTES + 4] += 2;
	reseal();
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "a section goes on where it should end");
	scene_end(&s);
}

static void another_version_is_not_read(void **state)
{
	static const uint8_t versions[] = {0, MRC_STATE_VERSION + 1, 255};
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	leave(b);
	config = config_of(b);
	for (size_t i = 0; i < sizeof(versions); i++) {
		image[4] = versions[i];
		assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
		assert_string_equal(why, "it is of a version that is not read here");
	}
	image[4] = MRC_STATE_VERSION;
	image[6] = 1;
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "a field that must be 0 is not");
	scene_end(&s);
}

static void whose_state_it_is_must_fit(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	leave(b);
	config = config_of(b);
	config.host = "bb";
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "it is another host's");
	config = config_of(b);
	config.peer = "aa";
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "it is of a conn with another peer");
	config = config_of(b);
	config.boot_id++;
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "it is of another run of state");
	config = config_of(b);
	config.path_count = 0;
	assert_int_equal(take(b, &config, &conn, &why), -EINVAL);
	config = config_of(b);
	b->now_ns--;
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "it was written later than now: before the machine was booted");
	b->now_ns++;
	/* More rails than before, and larger limits, are fine. */
	config.path_count = 3;
	config.limits.channels_max = 16;
	assert_int_equal(take(b, &config, &conn, &why), 0);
	mrc_conn_free(conn);
	config.path_count = 1;
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "it has more paths than there are now");
	scene_end(&s);
}

/* ---- what contradicts itself ---- */

struct part {
	struct mrc_conn *conn;
	struct mrc_channel *ch;
	struct mrc_msg_out *out; /* 4 of a: partly sent */
	struct mrc_msg_in *in;   /* 4 of b: partly here */
};

#define CONN_BAD    "epochs that cannot be"
#define CONTROL_BAD "control numbers that contradict each other"
#define PATH_BAD    "a path contradicts itself"
#define STATE_BAD   "a channel's state contradicts itself"
#define NUMBERS_BAD "a channel's numbers contradict each other"
#define OUT_BAD     "a message to be sent contradicts itself"
#define IN_BAD      "a message that comes in contradicts itself"
#define SPACE_BAD   "landing memory of a number that cannot be"
#define ID_BAD      "a channel of an id that cannot be"
#define SLOTS_BAD   "more channels than the limits allow"

/* clang-format off */
#define SPOILS(X)                                                                             \
	X(0, CONN_BAD, p->conn->epoch = p->conn->epoch_last + 1)                              \
	X(0, CONN_BAD, p->conn->epoch_last = UINT32_MAX)                                      \
	X(0, CONN_BAD, p->conn->peer_boot_id = 0)                                             \
	X(0, CONN_BAD, p->conn->epoch = 0)                                                    \
	X(0, CONN_BAD, p->conn->wire_next = UINT32_MAX)                                       \
	X(0, "a clock of the peer's that cannot be", p->conn->clock.least_ns = INT64_MAX)     \
	X(0, CONTROL_BAD, p->conn->ctl_acked = p->conn->ctl_next + 1)                         \
	X(0, CONTROL_BAD, p->conn->keys_after = p->conn->ctl_next + 1)                        \
	X(0, SLOTS_BAD, p->conn->slot_hint = 99)                                              \
	X(1, PATH_BAD, p->conn->paths[1].path_id = MRC_PATHS_MAX)                             \
	X(1, PATH_BAD, p->conn->paths[1].path_id = 0)                                         \
	X(1, PATH_BAD, p->conn->paths[0].epoch = 99)                                          \
	X(1, PATH_BAD, p->conn->paths[0].reason = MRC_REASON_COUNT)                           \
	X(0, "a histogram that counts more or less than it holds", p->conn->paths[1].rtts.count++) \
	X(0, PATH_BAD, p->conn->paths[1].path_id = 2)                                         \
	X(0, STATE_BAD, p->ch->state = MRC_CH_OPENING)                                        \
	X(0, STATE_BAD, p->ch->state = MRC_CH_INCOMING)                                       \
	X(0, STATE_BAD, p->ch->state = MRC_CH_ENDED)                                          \
	X(0, "a channel in no state", p->ch->state = (enum mrc_channel_state)5)               \
	X(0, STATE_BAD, p->ch->is_opener = false)                                             \
	X(0, STATE_BAD, p->ch->is_detached = true)                                            \
	X(0, STATE_BAD, p->ch->is_established = false)                                        \
	X(0, STATE_BAD, p->ch->wire_id += 64)                                                 \
	X(0, STATE_BAD, p->ch->peer_window = 0)                                               \
	X(0, STATE_BAD, p->ch->peer_ring_bytes = UINT64_MAX)                                  \
	X(0, STATE_BAD, p->ch->service[0] = 0)                                                \
	X(0, "a flag without meaning is set", p->ch->facts = 1U << 31)                        \
	X(0, NUMBERS_BAD, p->ch->settled = p->ch->admit_next + 1)                             \
	X(0, NUMBERS_BAD, p->ch->ring_limit = 0)                                              \
	X(0, NUMBERS_BAD, p->ch->ring_limit = UINT64_MAX)                                     \
	X(0, NUMBERS_BAD, p->ch->final_known = p->ch->admit_next + 1)                         \
	X(1, NUMBERS_BAD, p->ch->peer_settled_stated = 99)                                    \
	X(1, NUMBERS_BAD, p->ch->visible_next = 99)                                           \
	X(1, NUMBERS_BAD, p->ch->ring_limit_told = 1U << 30)                                  \
	X(0, SPACE_BAD, p->ch->flow->space = 0)                                               \
	X(0, SPACE_BAD, p->ch->flow->space = p->conn->space_next + 1)                         \
	X(0, ID_BAD, p->conn->slot_generations[p->ch->id & 7]++)                              \
	X(0, ID_BAD, p->ch->id &= 7)                                                          \
	X(0, SLOTS_BAD, p->ch->id |= 1U << 10)                                                \
	X(0, "a channel's window or ring that cannot be", p->ch->ring_bytes = 0)              \
	X(0, "a channel's window or ring that cannot be", p->ch->ring_bytes = UINT64_MAX)     \
	X(0, OUT_BAD, p->out->next_offset = p->out->len + 1)                                  \
	X(0, OUT_BAD, p->out->level_wanted = 0)                                               \
	X(0, OUT_BAD, p->out->outcome = 1)                                                    \
	X(0, OUT_BAD, p->out->is_granted = false)                                             \
	X(0, OUT_BAD, (p->out->is_eager = true, p->out->landing = 1U << 30))                  \
	X(0, OUT_BAD, mrc_bits_set(&p->ch->void_bits, 4))                                     \
	X(1, IN_BAD, p->in->len = LAB_MSG_MAX + 1)                                            \
	X(1, IN_BAD, p->in->is_final_told = true)                                               \
	X(1, IN_BAD, p->in->want_blame = MRC_PATHS_MAX + 1)                     \
	X(1, IN_BAD, (p->in->is_eager = true, p->in->is_asked = false))                       \
	X(1, "ranges of bytes that cannot be", p->in->len = 1)                                \
	X(1, "a message that comes in, of a number that cannot be", p->ch->known_end = 1)     \
	X(1, "a text that is too long", mrc_notes_at(&p->ch->in_notes, 1)->text_len = 65)     \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_VOID, 77))     \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_NOP, 0))       \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_OPEN, 0))      \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_REFUSE, 1))    \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_CLOSE, p->ch->id)) \
	X(0, "a control frame of what is not there", ctl_add(p->conn, MRC_WIRE_ACCEPT, p->ch->id)) \
	X(0, "bytes to be sent again that are no message's", p->conn->resends[p->conn->resend_head].len = 1U << 30) \
	X(1, "bytes that were lost and are no message's", lost_add(p, 600001))
/* clang-format on */

static void ctl_add(struct mrc_conn *conn, enum mrc_wire_type type, uint32_t channel)
{
	conn->ctl[conn->ctl_next++ & (conn->ctl_count - 1)] =
		(struct mrc_ctl_entry){.type = (uint8_t)type, .channel = channel};
}

static void lost_add(const struct part *p, uint64_t len)
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

/* Spoils something of host 0 or 1 (only `host`'s, else nothing); what its import has to say, NULL: no such case. */
static const char *spoil(uint32_t n, const struct part *p, uint32_t host, uint32_t *host_out)
{
	struct row {
		uint32_t host;
		const char *want;
	};
	static const struct row rows[] = {
#define X(host, want, statement) {host, want},
		SPOILS(X)
#undef X
	};
	uint32_t at = 0;

	if (n >= MRC_ARRAY_LEN(rows))
		return NULL;
	*host_out = rows[n].host;
	if (rows[n].host != host)
		return rows[n].want;
#define X(host, want, statement) \
	if (at++ == n) {         \
		statement;       \
	}
	SPOILS(X)
#undef X
	return rows[n].want;
}

static void what_contradicts_itself_is_refused(void **state)
{
	for (uint32_t n = 0;; n++) {
		struct part none = {0};
		struct part p = {0};
		struct mrc_conn_config config;
		struct mrc_conn *conn, conn_was;
		struct mrc_channel ch_was;
		struct mrc_flow flow_was;
		uint32_t generation_was;
		struct lab_host *h;
		uint32_t host = 0;
		struct scene s;
		const char *want = spoil(n, &none, UINT32_MAX, &host);
		const char *why;
		int r;

		if (!want)
			break;
		scene_begin(&s, false);
		h = &s.p.hosts[host];
		quiesce(h);
		p.conn = h->conn;
		p.ch = mrc_conn_channel(h->conn, s.ids[host]);
		p.out = mrc_channel_out(p.ch, 4);
		p.in = mrc_channel_in(p.ch, 4);
		config = config_of(h);
		/* The engine itself is not to go on with what is spoilt. */
		conn_was = *p.conn;
		ch_was = *p.ch;
		flow_was = *p.ch->flow;
		generation_was = p.conn->slot_generations[p.ch->id & 7];
		spoil(n, &p, host, &host);
		r = mrc_conn_export(h->conn, lab_crc32c, image, sizeof(image), &image_len);
		if (r)
			fail_msg("case %u: the export answered %d", n, r);
		r = take(h, &config, &conn, &why);
		if (r != -EPROTO || strcmp(why, want) != 0)
			fail_msg("case %u: answer %d, '%s', want '%s'", n, r, why ? why : "", want);
		*p.conn = conn_was;
		*p.ch = ch_was;
		*p.ch->flow = flow_was;
		p.conn->slot_generations[p.ch->id & 7] = generation_was;
		scene_end(&s);
	}
}

/* ---- limits, and what is asked for again ---- */

static void limits_that_are_too_small_are_said(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *a;
	struct scene s;
	const char *why;

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	leave(a);
	config = config_of(a);
	config.limits.channels_max = 1;
	assert_int_equal(take(a, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "more channels than the limits allow");
	/* More fragments to be sent again than all paths have records. */
	config = config_of(a);
	config.path_count = 2;
	config.limits.frames_in_flight_max = 64;
	a->conn->resend_tail = a->conn->resend_head + 300;
	for (uint32_t i = 1; i < 300; i++)
		a->conn->resends[(a->conn->resend_head + i) & (a->conn->resend_count - 1)] =
			a->conn->resends[a->conn->resend_head];
	assert_int_equal(mrc_conn_export(a->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	assert_int_equal(take(a, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "more fragments to be sent again than the limits allow");
	/* More control frames than there is room for. */
	a->conn->resend_tail = a->conn->resend_head;
	for (uint32_t i = 0; i < 40; i++)
		ctl_add(a->conn, MRC_WIRE_VOID, s.ids[0]);
	assert_int_equal(mrc_conn_export(a->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	assert_int_equal(take(a, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "more control frames than the limits allow");
	a->conn->ctl_next -= 40;
	scene_end(&s);
}

static void ranges_and_notes_have_their_bounds(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct mrc_channel *ch;
	struct lab_host *b;
	struct scene s;
	const char *why;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	for (uint64_t at = 0; at < 1500; at++)
		mrc_range_set_add_keeping(&b->conn->ranges, &mrc_channel_in(ch, 4)->wanted, 3 * at,
					  3 * at + 1, 0);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	config = config_of(b);
	config.limits.ranges_max = 16; /* and as many as its frames need */
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "more ranges than the limits allow");
	config.limits.ranges_max = 4096;
	assert_int_equal(take(b, &config, &conn, &why), 0);
	mrc_conn_free(conn);
	scene_end(&s);

	/* A text for each of more messages than have room for one. */
	scene_begin(&s, false);
	b = &s.p.hosts[1];
	s.p.is_silent[0][0] = false;
	b->lands = true;
	for (uint64_t i = 8; i < 48; i++)
		say(&s, 10, i, false);
	lab_pair_run(&s.p, 100 * MRC_MS);
	quiesce(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	for (uint64_t n = 8; n < 48; n++)
		mrc_channel_in(ch, n)->note = 1;
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	for (uint64_t n = 8; n < 48; n++)
		mrc_channel_in(ch, n)->note = 0;
	config = config_of(b);
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	assert_string_equal(why, "more notes than a channel has room for");
	scene_end(&s);
}

/*
 * Copies that wait in daemon memory for room to be remembered do not travel: their bytes are
 * asked for again, however many they are, and there is room for as many new ones.
 */
static void what_was_held_is_asked_for_again(void **state)
{
	struct mrc_conn_config config;
	struct part p = {0};
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;
	uint32_t from;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	p.conn = b->conn;
	p.ch = mrc_conn_channel(b->conn, s.ids[1]);
	quiesce(&s.p.hosts[0]);
	for (uint32_t i = 0; i < MRC_HOLDS_LOST_MAX + 20; i++)
		lost_add(&p, 600000);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	assert_true(starve(b) > 12);
	config = config_of(b);
	assert_int_equal(take(b, &config, &conn, &why), 0);
	assert_int_equal(conn->holds_lost, MRC_HOLDS_LOST_MAX + 20);
	assert_int_equal(conn->hold_count, conn->limits.holds_max + MRC_HOLDS_LOST_MAX + 20);
	mrc_conn_free(b->conn);
	b->conn = conn;
	from = b->log_count;
	b->lands = true;
	lab_pair_run(&s.p, 100 * MRC_MS);
	assert_true(lab_posted_count(b, MRC_WIRE_WANT, from) > 0);
	assert_int_equal(b->conn->holds_used, 0);
	assert_null(lab_find(b, MRC_ACT_HOLD_FREE, from, 0)); /* no buffer is known any more */
	/* A count that promises more than there is. */
	image[image_len - 29 * (MRC_HOLDS_LOST_MAX + 20) - 1] = 0x7f;
	reseal();
	config = config_of(b);
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	scene_finish(&s);
	scene_end(&s);
}

/* An ended channel's memory is freed when its peer has stopped: until then no slot of it is another's. */
static void what_waits_to_be_drained_waits_on(void **state)
{
	struct mrc_channel *ch;
	struct mrc_msg_in *msg;
	struct lab_host *b;
	struct scene s;

	scene_begin(&s, true);
	b = &s.p.hosts[1];
	assert_int_equal(lab_channel(b, MRC_EV_CH_ABORT, s.ids[1]), 0);
	quiesce(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	msg = mrc_channel_in(ch, 4);
	assert_true(msg->is_granted && !msg->is_landing_freed);
	msg->is_void = msg->is_final = msg->is_draining = true;
	msg->outcome = MRC_OUT_CLOSED;
	leave(b);
	take_over(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_true(mrc_channel_in(ch, 4)->is_draining);
	assert_int_equal(ch->void_draining, 1);
	scene_end(&s);
}

/* Of a conn epoch that is over: the client holds messages still, and the peer knows nothing of it. */
static void a_channel_of_an_epoch_that_is_over_is_kept(void **state)
{
	struct mrc_channel *ch;
	struct lab_host *b;
	struct scene s;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	b->pair = NULL;
	quiesce(b);
	assert_int_equal(lab_path_up(b, 0, b->conn->epoch + 1, b->conn->paths[0].epoch_last + 1,
				     LAB_BOOT_A + 1, false),
			 0);
	lab_pump(b);
	assert_true(mrc_conn_channel(b->conn, s.ids[1])->is_detached);
	leave(b);
	take_over(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_true(ch->is_detached && ch->held_count > 0);
	assert_null(mrc_conn_channel_by_wire(b->conn, ch->wire_id));
	for (uint64_t n = 0; n < 4; n++)
		lab_msg(b, MRC_EV_RELEASE, s.ids[1], n, 0);
	lab_pump(b);
	assert_null(mrc_conn_channel(b->conn, s.ids[1]));
	b->pair = &s.p;
	scene_end(&s);
}

/* ---- versions ---- */

#define GOLDEN MRC_SOURCE_DIR "/tests/fuzz/corpus/state/version-1"

/*
 * An image of version 1, as it was when that was made: whoever changes the form without a new
 * number finds out here. `test_conn_state FILE` writes one.
 */
static void version_1_is_read_as_it_was(void **state)
{
	static uint8_t golden[IMAGE_MAX];
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;
	FILE *file = fopen(GOLDEN, "rb");

	assert_non_null(file);
	image_len = fread(image, 1, sizeof(image), file);
	fclose(file);
	memcpy(golden, image, image_len);
	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	config = config_of(b);
	if (take(b, &config, &conn, &why))
		fail_msg("%s: %s", GOLDEN, why);
	mrc_conn_free(b->conn);
	b->conn = conn;
	leave(b);
	assert_memory_equal(image + MRC_STATE_HEADER_BYTES, golden + MRC_STATE_HEADER_BYTES,
			    image_len - MRC_STATE_HEADER_BYTES);
	scene_finish(&s);
	scene_end(&s);
}

static int golden_write(const char *name)
{
	FILE *file = fopen(name, "wb");
	struct scene s;

	if (!file)
		return 1;
	scene_begin(&s, false);
	leave(&s.p.hosts[1]);
	fwrite(image, 1, image_len, file);
	scene_end(&s);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conn_goes_on_where_it_stopped),
		cmocka_unit_test(what_is_taken_over_is_what_was_left),
		cmocka_unit_test(only_a_quiet_conn_is_left),
		cmocka_unit_test(what_a_place_tells_is_acted_on),
		cmocka_unit_test(every_damage_is_noticed),
		cmocka_unit_test(a_forged_image_breaks_nothing),
		cmocka_unit_test(memory_that_is_short_is_said),
		cmocka_unit_test(a_section_that_is_not_known_is_skipped_if_it_may),
		cmocka_unit_test(another_version_is_not_read),
		cmocka_unit_test(whose_state_it_is_must_fit),
		cmocka_unit_test(what_contradicts_itself_is_refused),
		cmocka_unit_test(limits_that_are_too_small_are_said),
		cmocka_unit_test(ranges_and_notes_have_their_bounds),
		cmocka_unit_test(what_was_held_is_asked_for_again),
		cmocka_unit_test(what_waits_to_be_drained_waits_on),
		cmocka_unit_test(a_channel_of_an_epoch_that_is_over_is_kept),
		cmocka_unit_test(version_1_is_read_as_it_was),
	};

	if (argc > 1)
		return golden_write(argv[1]);
	return cmocka_run_group_tests_name("conn_state", tests, NULL, NULL);
}
