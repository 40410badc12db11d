/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealed links with somebody on the line, who reads, changes, repeats and leaves out what passes. */
#include <unistd.h>

#include "rail_tcp_lab.h"

#define OPEN    0U
#define SEALED  MRC_FEATURE_ENCRYPTION
#define PATTERN "a pattern that nobody else shall see"

/* Somebody on the line: he has both sockets, and moves what he likes. */
struct tap {
	int listen_fd, to_a, to_b;
	uint8_t heard[1U << 20]; /* of what a said, all of it */
	uint32_t heard_len;
	uint32_t said_len; /* and of that, passed on */
};

static void tap_fini(struct tap *tap)
{
	close(tap->listen_fd);
	close(tap->to_a);
	close(tap->to_b);
}

/* What has come on this socket, to the other; kept when a said it. */
static void pass(struct tap *tap, bool is_from_a)
{
	uint8_t bytes[65536];
	ssize_t n;

	for (;;) {
		n = recv(is_from_a ? tap->to_a : tap->to_b, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n <= 0)
			return;
		if (!is_from_a) {
			assert_int_equal(send(tap->to_a, bytes, (size_t)n, MSG_NOSIGNAL), n);
			continue;
		}
		assert_true(tap->heard_len + (uint32_t)n <= sizeof(tap->heard));
		memcpy(tap->heard + tap->heard_len, bytes, (size_t)n);
		tap->heard_len += (uint32_t)n;
	}
}

static void hear(struct fake *f, struct tap *tap)
{
	fake_settle(f);
	pass(tap, true);
	pass(tap, false);
	fake_settle(f);
	pass(tap, true);
}

/* Pass on what was heard, up to this much of it. */
static void say_up_to(struct fake *f, struct tap *tap, uint32_t end)
{
	while (tap->said_len < end) {
		ssize_t n = send(tap->to_b, tap->heard + tap->said_len, end - tap->said_len,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			tap->said_len += (uint32_t)n;
		fake_settle(f);
	}
}

/* Both ends are up and sealed, and he has heard all of it. */
static void tap_connect(struct fake *f, struct tap *tap, uint32_t features)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in own = {.sin_family = AF_INET};
	socklen_t own_len = sizeof(own);

	f->a->hello.features = f->b->hello.features = features;
	tap->heard_len = tap->said_len = 0;
	tap->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	own.sin_addr = to.sin_addr;
	assert_int_equal(bind(tap->listen_fd, (struct sockaddr *)&own, own_len), 0);
	assert_int_equal(listen(tap->listen_fd, 1), 0);
	assert_int_equal(getsockname(tap->listen_fd, (struct sockaddr *)&own, &own_len), 0);
	to.sin_port = htons(f->a->port);
	f->a->port = ntohs(own.sin_port);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_settle(f);
	tap->to_a = accept4(tap->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	tap->to_b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(tap->to_a >= 0 && tap->to_b >= 0);
	assert_int_equal(connect(tap->to_b, (struct sockaddr *)&to, sizeof(to)), 0);
	for (int i = 0; i < 1000 && !(f->a->link && f->b->link); i++) {
		hear(f, tap);
		say_up_to(f, tap, tap->heard_len);
	}
	assert_non_null(f->a->link);
	assert_non_null(f->b->link);
	assert_int_equal(f->a->link->is_sealed, features != OPEN);
	assert_int_equal(f->b->link->is_sealed, features != OPEN);
}

/* One frame of each kind with the pattern in it; where their records begin. */
static void post_patterns(struct fake *f, struct tap *tap, uint32_t begins[4])
{
	for (uint32_t i = 0; i < 3; i++) {
		struct mrc_act_post p =
			fake_control(f->a->link, MRC_WIRE_STATE, i, sizeof(PATTERN));

		begins[i] = tap->heard_len;
		if (i == 1)
			p = fake_frag(f->a->link, i, 0, 5000);
		else
			memcpy(p.body, PATTERN, sizeof(PATTERN));
		post(f->a, &p);
		flush(f->a);
		hear(f, tap);
		assert_true(tap->heard_len > begins[i]);
	}
	begins[3] = tap->heard_len;
}

static bool has_heard(const struct tap *tap, uint32_t from)
{
	return memmem(tap->heard + from, tap->heard_len - from, PATTERN, sizeof(PATTERN) - 1) !=
	       NULL;
}

static void who_listens_hears_nothing(void **state)
{
	static struct tap tap;

	for (uint32_t features = OPEN; features <= SEALED; features++) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		uint32_t begins[4];

		tap_connect(f, &tap, features);
		for (uint32_t at = 0; at + sizeof(PATTERN) < 5000; at += sizeof(PATTERN))
			memcpy(f->send + at, PATTERN, sizeof(PATTERN));
		post_patterns(f, &tap, begins);
		/* The listener himself works: he hears all of it when it is not sealed. */
		assert_int_equal(has_heard(&tap, begins[0]), features == OPEN);
		say_up_to(f, &tap, tap.heard_len);
		fake_until(f, f->b->frame_count == 3);
		assert_memory_equal(f->landing, f->send, 5000);
		assert_memory_equal(f->b->frames[0].body, PATTERN, sizeof(PATTERN));
		tap_fini(&tap);
		tear_down((void **)&f);
	}
}

/* Every bit of a record: the link ends, and no frame of it or after it is taken. */
static void who_changes_a_bit_ends_the_link(void **state)
{
	static struct tap tap;

	for (uint32_t bit = 0, bits = UINT32_MAX; bit < bits; bit += bit < 32 ? 1 : 37) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		uint32_t begins[4];

		tap_connect(f, &tap, SEALED);
		post_patterns(f, &tap, begins);
		bits = 8 * (begins[1] - begins[0]);
		tap.heard[begins[0] + bit / 8] ^= (uint8_t)(1U << bit % 8);
		say_up_to(f, &tap, tap.heard_len);
		/* A length that still is one makes it wait for more than there is: he has to say more. */
		for (int i = 0; i < 10 && !f->b->downs; i++) {
			assert_true(send(tap.to_b, tap.heard, MRCD_SEAL_RECORD_MAX, MSG_NOSIGNAL) >
				    0);
			fake_settle(f);
		}
		fake_until(f, f->b->downs == 1);
		assert_int_equal(f->b->reason, MRC_REASON_CORRUPT);
		assert_int_equal(f->b->frame_count, 0);
		tap_fini(&tap);
		tear_down((void **)&f);
	}
}

static void who_repeats_exchanges_or_leaves_out_ends_the_link(void **state)
{
	static const struct {
		const char *name;
		uint8_t order[4];
		uint32_t count, taken; /* of records said, of frames taken before the end */
	} rows[] = {
		{"again", {0, 0}, 2, 1},
		{"again, later", {0, 1, 0}, 3, 2},
		{"exchanged", {1, 0}, 2, 0},
		{"left out", {0, 2}, 2, 1},
	};
	static struct tap tap;

	for (size_t row = 0; row < MRC_ARRAY_LEN(rows); row++) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		uint32_t begins[4];

		tap_connect(f, &tap, SEALED);
		post_patterns(f, &tap, begins);
		say_up_to(f, &tap, begins[0]);
		for (uint32_t i = 0; i < rows[row].count; i++) {
			uint8_t which = rows[row].order[i];
			uint32_t len = begins[which + 1] - begins[which];

			assert_int_equal(send(tap.to_b, tap.heard + begins[which], len,
					      MSG_NOSIGNAL),
					 len);
		}
		fake_until(f, f->b->downs == 1);
		if (f->b->frame_count != rows[row].taken || f->b->reason != MRC_REASON_CORRUPT)
			fail_msg("%s: %u frames, %s", rows[row].name, f->b->frame_count, f->b->why);
		tap_fini(&tap);
		tear_down((void **)&f);
	}
}

/* He cuts the stream at any byte: what was whole before was taken, nothing of the rest. */
static void who_cuts_the_stream_gains_nothing(void **state)
{
	static struct tap tap;

	for (uint32_t cut = 0; cut < 130; cut += 13) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		uint32_t begins[4];

		tap_connect(f, &tap, SEALED);
		post_patterns(f, &tap, begins);
		say_up_to(f, &tap, begins[1] + cut);
		close(tap.to_b);
		tap.to_b = dup(tap.to_a);
		fake_until(f, f->b->downs == 1);
		assert_int_equal(f->b->reason, MRC_REASON_CLOSED);
		assert_int_equal(f->b->frame_count, 1);
		tap_fini(&tap);
		tear_down((void **)&f);
	}
}

/* One handshake's records are nothing in another's stream, and one direction's nothing in the other. */
static void records_of_another_stream_do_not_open(void **state)
{
	static struct tap tap, other;

	for (int is_reflected = 0; is_reflected < 2; is_reflected++) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		struct fake *g;
		uint32_t begins[4];

		tap_connect(f, &tap, SEALED);
		post_patterns(f, &tap, begins);
		if (is_reflected) {
			assert_true(send(tap.to_a, tap.heard + begins[0], begins[1] - begins[0],
					 MSG_NOSIGNAL) > 0);
			fake_until(f, f->a->downs == 1);
			assert_int_equal(f->a->reason, MRC_REASON_CORRUPT);
			assert_int_equal(f->a->frame_count, 0);
		}
		tap_fini(&tap);
		tear_down((void **)&f);
		if (is_reflected)
			continue;
		g = open_at("127.0.0.1", "127.0.0.1");
		tap_connect(g, &other, SEALED);
		assert_true(send(other.to_b, tap.heard + begins[0], begins[1] - begins[0],
				 MSG_NOSIGNAL) > 0);
		fake_until(g, g->b->downs == 1);
		assert_int_equal(g->b->reason, MRC_REASON_CORRUPT);
		tap_fini(&other);
		tear_down((void **)&g);
	}
}

/* A frame in the open where a record should be. */
static void what_is_not_sealed_is_not_taken(void **state)
{
	static struct tap open, tap;
	struct fake *f = open_at("127.0.0.1", "127.0.0.1");
	uint32_t begins[4];

	tap_connect(f, &open, OPEN);
	post_patterns(f, &open, begins);
	tap_fini(&open);
	tear_down((void **)&f);
	f = open_at("127.0.0.1", "127.0.0.1");
	tap_connect(f, &tap, SEALED);
	assert_true(send(tap.to_b, open.heard + begins[0], begins[1] - begins[0], MSG_NOSIGNAL) >
		    0);
	fake_until(f, f->b->downs == 1);
	assert_int_equal(f->b->frame_count, 0);
	tap_fini(&tap);
	tear_down((void **)&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_listens_hears_nothing),
		cmocka_unit_test(who_changes_a_bit_ends_the_link),
		cmocka_unit_test(who_repeats_exchanges_or_leaves_out_ends_the_link),
		cmocka_unit_test(who_cuts_the_stream_gains_nothing),
		cmocka_unit_test(records_of_another_stream_do_not_open),
		cmocka_unit_test(what_is_not_sealed_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
