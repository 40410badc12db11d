/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "rail_fake.h"

/* Two hands to shake, joined by memory. */
struct pair {
	struct mrcd_handshake i, r;
};

static int set_up(void **state)
{
	*state = fake_new(NULL, "", "");
	return 0;
}

static int tear_down(void **state)
{
	fake_free(*state);
	return 0;
}

static void pair_begin(struct fake *f, struct pair *pair)
{
	mrcd_handshake_begin(&pair->i, f->a->rail, f->a, 3, "10.0.0.2", false);
	mrcd_handshake_await(&pair->r, f->b->rail, "10.0.0.1", false);
}

/* Move what `from` has to say to `to`, `step` bytes at a time. */
static int say(struct mrcd_handshake *from, struct mrcd_handshake *to, uint32_t step)
{
	uint32_t at = 0, len = from->out_len;
	int r = 0;

	from->out_len = 0;
	while (at < len && r == 0) {
		uint32_t part = MRC_MIN(MRC_MIN(step, len - at), mrcd_handshake_want(to));

		assert_true(part > 0);
		r = mrcd_handshake_take(to, from->out + at, part);
		at += part;
	}
	return r;
}

static void both_ends_come_to_the_same_epochs(void **state)
{
	static const uint32_t steps[] = {1, 7, 80, 1000};
	struct fake *f = *state;

	for (size_t s = 0; s < MRC_ARRAY_LEN(steps); s++) {
		struct pair pair;

		f->a->hello.path_epoch_last = 41;
		f->b->hello.conn_epoch_last = 8;
		pair_begin(f, &pair);
		assert_int_equal(say(&pair.i, &pair.r, steps[s]), 0);
		assert_false(mrcd_handshake_is_done(&pair.r));
		assert_int_equal(say(&pair.r, &pair.i, steps[s]), 0);
		assert_true(mrcd_handshake_is_done(&pair.i));
		assert_int_equal(say(&pair.i, &pair.r, steps[s]), 0);
		assert_true(mrcd_handshake_is_done(&pair.r));
		assert_int_equal(mrcd_handshake_want(&pair.r), 0);

		assert_int_equal(pair.i.auth.conn_epoch, 9);
		assert_int_equal(pair.r.auth.conn_epoch, 9);
		assert_int_equal(pair.i.auth.path_epoch, 42);
		assert_int_equal(pair.r.auth.path_epoch, 42);
		assert_ptr_equal(pair.r.peer, f->b);
		assert_int_equal(pair.r.ours.path_id, 3);
		assert_int_equal(pair.i.theirs.boot_id, 0xbbbb);
		assert_int_equal(pair.r.theirs.boot_id, 0xaaaa);
	}
}

static void direct_placement_takes_two(void **state)
{
	for (int mask = 0; mask < 4; mask++) {
		struct fake *f = *state;
		struct pair pair;

		mrcd_handshake_begin(&pair.i, f->a->rail, f->a, 0, "b", mask & 1);
		mrcd_handshake_await(&pair.r, f->b->rail, "a", mask & 2);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(pair.i.is_direct_capable, mask == 3);
		assert_int_equal(pair.r.is_direct_capable, mask == 3);
	}
}

static void another_key_is_refused_by_whoever_sees_it_first(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	f->b->keys[0].bytes[15] ^= 1;
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_KEY);
	assert_int_equal(pair.i.out_len, 0);
}

static void an_initiator_without_the_key_is_refused(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	f->b->keys[0].bytes[0] ^= 1; /* as if its proof had been made with another */
	assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
	assert_int_equal(pair.r.refusal, MRCD_REFUSAL_KEY);
}

static void a_host_without_keys_lets_nobody_in(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	f->b->key_count = 0;
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
	assert_int_equal(pair.r.refusal, MRCD_REFUSAL_KEY);
}

static void keys_can_be_changed_one_host_at_a_time(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	/* b proves the new key already, a still the old one; both know both. */
	f->a->key_count = f->b->key_count = 2;
	f->a->keys[1].len_bytes = f->b->keys[1].len_bytes = 16;
	memset(f->a->keys[1].bytes, 'n', 16);
	memset(f->b->keys[1].bytes, 'k', 16);
	memset(f->b->keys[0].bytes, 'n', 16);
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_true(mrcd_handshake_is_done(&pair.r));
}

static void a_host_with_the_new_key_alone_gets_its_proof_with_that(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	f->a->key_count = 2;
	f->a->keys[1].len_bytes = 16;
	memset(f->a->keys[1].bytes, 'n', 16);
	memset(f->b->keys[0].bytes, 'n', 16);
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_true(mrcd_handshake_is_done(&pair.r));
}

/* Every bit of every frame, one at a time: nothing that was changed on its way is taken. */
static void no_bit_can_be_flipped(void **state)
{
	struct fake *f = *state;

	for (int frame = 0; frame < 3; frame++) {
		for (uint32_t bit = 0;; bit++) {
			struct mrcd_handshake *from, *to;
			struct pair pair;

			pair_begin(f, &pair);
			if (frame > 0)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			if (frame > 1)
				assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
			from = frame == 1 ? &pair.r : &pair.i;
			to = frame == 1 ? &pair.i : &pair.r;
			if (bit == from->out_len * 8)
				break;
			from->out[bit / 8] ^= (uint8_t)(1U << (bit % 8));
			assert_int_equal(say(from, to, 1000), -EACCES);
			assert_int_equal(to->state, MRCD_HANDSHAKE_REFUSED);
			assert_non_null(to->why);
			assert_int_equal(mrcd_handshake_want(to), 0);
		}
	}
}

/* The same with checksums that fit, as somebody would send who knows the protocol. */
static void reseal(struct mrcd_handshake *from, uint32_t hdr_byte, uint32_t hdr_bit)
{
	uint32_t crc = mrcd_crc32c(0, from->out + 80, from->out_len - 80);

	memcpy(from->out + 72, &crc, 4);
	if (hdr_bit)
		from->out[hdr_byte] ^= (uint8_t)hdr_bit;
	crc = mrcd_crc32c(0, from->out, 76);
	memcpy(from->out + 76, &crc, 4);
}

static void no_bit_can_be_forged(void **state)
{
	struct fake *f = *state;

	for (int frame = 0; frame < 3; frame++) {
		for (uint32_t bit = 0;; bit++) {
			struct mrcd_handshake *from, *to;
			struct pair pair;
			int r;

			pair_begin(f, &pair);
			if (frame > 0)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			if (frame > 1)
				assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
			from = frame == 1 ? &pair.r : &pair.i;
			to = frame == 1 ? &pair.i : &pair.r;
			if (bit == from->out_len * 8)
				break;
			if (bit / 8 < 80)
				reseal(from, bit / 8, 1U << (bit % 8));
			else {
				from->out[bit / 8] ^= (uint8_t)(1U << (bit % 8));
				reseal(from, 0, 0);
			}
			r = say(from, to, 1000);
			/* A HELLO may say other epochs or another nonce and is believed until its
			 * proof comes, which is over other words then. */
			if (r == 0 && frame == 0) {
				if (say(to, from, 1000) == 0)
					r = say(from, to, 1000);
				else
					r = -EACCES;
			}
			if (bit / 8 >= 76 && bit / 8 < 80)
				continue; /* the checksum itself: resealed */
			if (bit / 8 >= 72 && bit / 8 < 76) {
				assert_int_equal(r, -EACCES);
				continue;
			}
			assert_int_equal(r, -EACCES);
			assert_false(mrcd_handshake_is_done(&pair.r));
		}
	}
}

static void who_has_the_key_must_still_conclude_as_we_do(void **state)
{
	static const struct mrc_auth wrong[] = {{.conn_epoch = 2, .path_epoch = 1},
						{.conn_epoch = 1, .path_epoch = 2}};
	struct fake *f = *state;

	for (size_t w = 0; w < MRC_ARRAY_LEN(wrong); w++) {
		struct pair pair;
		uint8_t *body = pair.i.out + MRC_WIRE_HDR_BYTES;

		pair_begin(f, &pair);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		mrc_auth_encode(&wrong[w], body);
		assert_int_equal(mrcd_auth_prove(&f->a->keys[0], MRCD_AUTH_INITIATOR,
						 pair.i.hello_i, pair.i.hello_r, body,
						 body + MRC_AUTH_BODY_BYTES),
				 0);
		reseal(&pair.i, 0, 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
		assert_int_equal(pair.r.refusal, MRCD_REFUSAL_EPOCHS);
	}
}

struct stranger {
	const char *name;
	void (*spoil)(struct mrc_hello *hello);
	enum mrcd_refusal want;
};

static void is_other_host(struct mrc_hello *hello)
{
	strcpy(hello->host, "c");
}

static void is_self(struct mrc_hello *hello)
{
	strcpy(hello->host, "b");
}

static void wants_other_host(struct mrc_hello *hello)
{
	strcpy(hello->to_host, "c");
}

static void has_no_boot_id(struct mrc_hello *hello)
{
	hello->boot_id = 0;
}

static void has_our_boot_id(struct mrc_hello *hello)
{
	hello->boot_id = 0xbbbb;
}

static void has_path_out_of_range(struct mrc_hello *hello)
{
	hello->path_id = MRC_PATHS_MAX;
}

static void has_last_epoch(struct mrc_hello *hello)
{
	hello->conn_epoch_last = UINT32_MAX;
}

static void has_last_path_epoch(struct mrc_hello *hello)
{
	hello->path_epoch_last = UINT32_MAX;
}

static void holds_more_than_it_had(struct mrc_hello *hello)
{
	hello->conn_epoch = 5;
	hello->conn_epoch_last = 4;
}

static void is_very_capable(struct mrc_hello *hello)
{
	hello->is_direct_capable = 2;
}

static void has_bad_name(struct mrc_hello *hello)
{
	strcpy(hello->host, "a/b");
}

static void has_no_name(struct mrc_hello *hello)
{
	memset(hello->host, 0, sizeof(hello->host));
}

static void has_endless_name(struct mrc_hello *hello)
{
	memset(hello->to_host, 'b', sizeof(hello->to_host));
}

static void strangers_are_refused_for_what_they_are(void **state)
{
	static const struct stranger strangers[] = {
		{"another host", is_other_host, MRCD_REFUSAL_NAME},
		{"for another host", wants_other_host, MRCD_REFUSAL_NAME},
		{"our own name", is_self, MRCD_REFUSAL_NAME},
		{"no boot id", has_no_boot_id, MRCD_REFUSAL_FIELD},
		{"our boot id", has_our_boot_id, MRCD_REFUSAL_SELF},
		{"path out of range", has_path_out_of_range, MRCD_REFUSAL_FIELD},
		{"last conn epoch", has_last_epoch, MRCD_REFUSAL_FIELD},
		{"last path epoch", has_last_path_epoch, MRCD_REFUSAL_FIELD},
		{"epoch above its highest", holds_more_than_it_had, MRCD_REFUSAL_FIELD},
		{"flag out of range", is_very_capable, MRCD_REFUSAL_FIELD},
		{"name of wrong letters", has_bad_name, MRCD_REFUSAL_FIELD},
		{"no name", has_no_name, MRCD_REFUSAL_FIELD},
		{"name without end", has_endless_name, MRCD_REFUSAL_FIELD},
	};
	struct fake *f = *state;

	for (size_t s = 0; s < MRC_ARRAY_LEN(strangers); s++) {
		struct pair pair;
		struct mrc_hello hello;

		pair_begin(f, &pair);
		hello = pair.i.ours;
		strangers[s].spoil(&hello);
		mrc_hello_encode(&hello, pair.i.out + MRC_WIRE_HDR_BYTES);
		reseal(&pair.i, 0, 0);
		print_message("%s\n", strangers[s].name);
		assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
		assert_int_equal(pair.r.refusal, strangers[s].want);
		assert_int_equal(pair.r.out_len, 0);
	}
}

static void our_own_words_coming_back_are_refused(void **state)
{
	struct fake *f = *state;
	struct mrcd_handshake other;
	struct pair pair;

	/* As an initiator's HELLO: too short to be an answer. */
	pair_begin(f, &pair);
	other = pair.i;
	assert_int_equal(say(&other, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_FIELD);

	/* As an answer, with any proof. */
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	memcpy(pair.r.out + MRC_WIRE_HDR_BYTES, pair.i.hello_i, sizeof(pair.i.hello_i));
	reseal(&pair.r, 0, 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_SELF);

	/* An answer of another handshake: its proof is over another nonce. */
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	other = pair.r;
	pair_begin(f, &pair);
	assert_int_equal(say(&other, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_KEY);
}

static void who_should_wait_for_us_may_not_connect(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	/* a answers for a moment as if it were to be called by b. */
	pair_begin(f, &pair);
	strcpy(f->b->hello.host, "a");
	strcpy(f->b->hello.to_host, "b");
	f->b->hello.boot_id = 0xcccc;
	strcpy(pair.i.ours.host, "b");
	strcpy(pair.i.ours.to_host, "a");
	mrc_hello_encode(&pair.i.ours, pair.i.out + MRC_WIRE_HDR_BYTES);
	reseal(&pair.i, 0, 0);
	assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
	assert_int_equal(pair.r.refusal, MRCD_REFUSAL_NAME);
}

static void a_web_browser_is_known_by_its_first_bytes(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\n";
	struct fake *f = *state;
	struct pair pair;

	for (uint32_t len = 1; len < sizeof(get); len++) {
		pair_begin(f, &pair);
		assert_int_equal(mrcd_handshake_take(&pair.r, get, len), -EACCES);
		assert_int_equal(pair.r.refusal, MRCD_REFUSAL_MAGIC);
	}
}

static void stale_epochs_are_found_before_the_proof_is_sent(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	f->a->is_stale = true;
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_STALE);
	assert_int_equal(pair.i.out_len, 0);
}

static void strangers_are_counted_always_and_logged_once(void **state)
{
	struct fake *f = *state;
	struct mrcd_strangers strangers;
	struct mrcd_rail *rail = f->b->rail;

	mrcd_strangers_init(&strangers);
	mrcd_worker_now(&f->worker);
	for (int i = 0; i < 5; i++)
		mrcd_strangers_note(&strangers, rail, MRCD_REFUSAL_KEY, "10.0.0.9", "no key");
	assert_int_equal(rail->strangers, 5);
	assert_int_equal(f->worker.strangers, 5);
	assert_int_equal(strangers.limits[MRCD_REFUSAL_KEY].suppressed, 4);
	assert_int_equal(strangers.limits[MRCD_REFUSAL_NAME].suppressed, 0);
	mrcd_strangers_note(&strangers, rail, MRCD_REFUSAL_STALE, "10.0.0.9", "moved on");
	assert_int_equal(rail->strangers, 5);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(both_ends_come_to_the_same_epochs),
		claim(direct_placement_takes_two),
		claim(another_key_is_refused_by_whoever_sees_it_first),
		claim(an_initiator_without_the_key_is_refused),
		claim(a_host_without_keys_lets_nobody_in),
		claim(keys_can_be_changed_one_host_at_a_time),
		claim(a_host_with_the_new_key_alone_gets_its_proof_with_that),
		claim(no_bit_can_be_flipped),
		claim(no_bit_can_be_forged),
		claim(who_has_the_key_must_still_conclude_as_we_do),
		claim(strangers_are_refused_for_what_they_are),
		claim(our_own_words_coming_back_are_refused),
		claim(who_should_wait_for_us_may_not_connect),
		claim(a_web_browser_is_known_by_its_first_bytes),
		claim(stale_epochs_are_found_before_the_proof_is_sent),
		claim(strangers_are_counted_always_and_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
