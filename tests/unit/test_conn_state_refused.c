/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_state: what was damaged, forged, contradicts itself or does not fit is not taken over. */
#include "conn_state_lab.h"

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

static void memory_that_is_short_is_said(void **state)
{
	struct mrc_conn_config config;
	struct scene s;

	scene_begin(&s, true);
	leave(&s.p.hosts[1]);
	config = config_of(&s.p.hosts[1]);
	assert_true(starve(&s.p.hosts[1], &config) > 12);
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

#define CONN_BAD    "epochs that cannot be"
#define CONTROL_BAD "control numbers that contradict each other"
#define PATH_BAD    "a path contradicts itself"
#define STATE_BAD   "a channel's state contradicts itself"
#define NUMBERS_BAD "a channel's numbers contradict each other"
#define OUT_BAD     "a message to be sent contradicts itself"
#define IN_BAD      "a message that comes in contradicts itself"
#define SPACE_BAD   "landing memory of a number that cannot be"
#define ID_BAD      "a channel of an id that cannot be"
#define SLOTS_BAD   "more channels than there can be"

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
	X(0, SLOTS_BAD, p->conn->slot_hint = 1U << 14)                                        \
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
	X(0, ID_BAD, p->ch->id |= 1U << 10)                                                   \
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

/* ---- bounds ---- */

static void notes_have_their_bounds(void **state)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct mrc_channel *ch;
	struct lab_host *b;
	struct scene s;
	const char *why;

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_damage_is_noticed),
		cmocka_unit_test(a_forged_image_breaks_nothing),
		cmocka_unit_test(memory_that_is_short_is_said),
		cmocka_unit_test(a_section_that_is_not_known_is_skipped_if_it_may),
		cmocka_unit_test(another_version_is_not_read),
		cmocka_unit_test(whose_state_it_is_must_fit),
		cmocka_unit_test(what_contradicts_itself_is_refused),
		cmocka_unit_test(notes_have_their_bounds),
	};

	return cmocka_run_group_tests_name("conn_state_refused", tests, NULL, NULL);
}
