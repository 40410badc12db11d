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
	mrcd_handshake_begin(&pair->i, f->a->rail, f->a, 3, "10.0.0.2", NULL);
	mrcd_handshake_await(&pair->r, f->b->rail, "10.0.0.1", NULL);
}

static const struct mrcd_handshake_device device = {.is_usable = true, .port = 0x1234};

static void pair_begin_direct(struct fake *f, struct pair *pair)
{
	mrcd_handshake_begin(&pair->i, f->a->rail, f->a, 3, "10.0.0.2", &device);
	mrcd_handshake_await(&pair->r, f->b->rail, "10.0.0.1", &device);
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

/* Checksums that fit, as somebody would send who knows the protocol; maybe a bit of the header flipped. */
static void reseal(struct mrcd_handshake *from, uint32_t hdr_byte, uint32_t hdr_bit)
{
	uint32_t crc = mrcd_crc32c(0, from->out + 80, from->out_len - 80);

	memcpy(from->out + 72, &crc, 4);
	if (hdr_bit)
		from->out[hdr_byte] ^= (uint8_t)hdr_bit;
	crc = mrcd_crc32c(0, from->out, 76);
	memcpy(from->out + 76, &crc, 4);
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

static void both_ends_come_to_the_same_version_and_features(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	f->a->hello.features = 0x800000e0;
	f->b->hello.features = 0x80000070;
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(pair.i.auth.version, 2);
	assert_int_equal(pair.r.auth.version, 2);
	assert_int_equal(pair.i.auth.features, 0x80000060);
	assert_int_equal(pair.r.auth.features, 0x80000060);
}

static void without_a_version_in_common_nobody_is_let_in(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	/* The responder sees it first and says nothing more; so does an initiator that is answered all the same. */
	f->a->hello.version_min = f->a->hello.version_max = MRC_HELLO_VERSION_MAX + 1;
	pair_begin(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
	assert_int_equal(pair.r.refusal, MRCD_REFUSAL_MAGIC);
	assert_int_equal(pair.r.out_len, 0);

	f->a->hello.version_max = MRC_HELLO_VERSION_MAX + 1;
	f->a->hello.version_min = MRC_HELLO_VERSION_MIN;
	pair_begin(f, &pair);
	pair.i.ours.version_min = MRC_HELLO_VERSION_MAX + 1;
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_MAGIC);
	assert_int_equal(pair.i.out_len, 0);
}

/* Who takes the mark out of both HELLOs would have two new daemons speak as old ones. */
static void nobody_between_them_can_make_them_old(void **state)
{
	struct fake *f = *state;

	for (int which = 0; which < 2; which++) {
		struct pair pair;

		pair_begin(f, &pair);
		if (which == 0) {
			memset(pair.i.out + MRC_WIRE_HDR_BYTES + 176, 0x55, 16);
			reseal(&pair.i, 0, 0);
		}
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		if (which == 1) {
			memset(pair.r.out + MRC_WIRE_HDR_BYTES + 176, 0x55, 16);
			reseal(&pair.r, 0, 0);
		}
		assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
		assert_int_equal(pair.i.refusal, MRCD_REFUSAL_KEY);
	}
}

static void direct_placement_takes_two(void **state)
{
	for (int mask = 0; mask < 4; mask++) {
		struct fake *f = *state;
		struct pair pair;

		mrcd_handshake_begin(&pair.i, f->a->rail, f->a, 0, "b", mask & 1 ? &device : NULL);
		mrcd_handshake_await(&pair.r, f->b->rail, "a", mask & 2 ? &device : NULL);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(pair.i.is_direct_capable, mask == 3);
		assert_int_equal(pair.r.is_direct_capable, mask == 3);
		assert_true(mrcd_handshake_is_done(&pair.r));
		assert_int_equal(mrcd_handshake_is_done(&pair.i), mask != 3);
		/* READY is said between two that are capable, and to nobody else. */
		assert_int_equal(pair.r.out_len > 0, mask == 3);
		if (mask == 3)
			assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_true(mrcd_handshake_is_done(&pair.i));
		assert_int_equal(pair.i.device_port, mask == 3 ? 0x1234 : 0);
	}
}

static void run_direct(struct fake *f, struct pair *pair, uint32_t step)
{
	pair_begin_direct(f, pair);
	assert_int_equal(say(&pair->i, &pair->r, step), 0);
	assert_int_equal(say(&pair->r, &pair->i, step), 0);
	assert_int_equal(pair->i.state, MRCD_HANDSHAKE_READY);
	assert_int_equal(say(&pair->i, &pair->r, step), 0);
	assert_true(mrcd_handshake_is_done(&pair->r));
	assert_int_equal(mrcd_handshake_want(&pair->r), 0);
	assert_int_equal(say(&pair->r, &pair->i, step), 0);
	assert_true(mrcd_handshake_is_done(&pair->i));
	assert_int_equal(mrcd_handshake_want(&pair->i), 0);
	assert_int_equal(pair->i.out_len, 0);
}

static void a_handshake_has_a_token_of_its_own(void **state)
{
	static const uint32_t steps[] = {1, 7, 80, 1000};
	static const uint8_t none[MRCD_DEVICE_TOKEN_BYTES];
	uint8_t last[MRCD_DEVICE_TOKEN_BYTES] = {0}, mac[MRC_HELLO_MAC_BYTES];
	struct fake *f = *state;

	for (size_t s = 0; s < MRC_ARRAY_LEN(steps); s++) {
		/* What was said, and proves the key: none of it opens a queue pair. */
		static const enum mrcd_auth_role roles[] = {MRCD_AUTH_READY, MRCD_AUTH_INITIATOR,
							    MRCD_AUTH_RESPONDER};
		uint8_t ready[MRC_AUTH_BODY_BYTES] = {0x34, 0x12};
		struct pair pair;

		run_direct(f, &pair, steps[s]);
		assert_int_equal(pair.i.device_port, 0x1234);
		assert_int_equal(pair.r.device_port, 0x1234);
		assert_memory_equal(pair.i.device_token, pair.r.device_token, sizeof(last));
		assert_memory_not_equal(pair.i.device_token, none, sizeof(last));
		assert_memory_not_equal(pair.i.device_token, last, sizeof(last));
		memcpy(last, pair.i.device_token, sizeof(last));
		for (size_t r = 0; r < MRC_ARRAY_LEN(roles); r++) {
			assert_int_equal(mrcd_auth_prove(&f->a->keys[0], roles[r], pair.i.hello_i,
							 pair.i.hello_r, ready, mac),
					 0);
			assert_memory_not_equal(last, mac, sizeof(mac));
		}
		assert_int_equal(mrcd_auth_prove(&f->a->keys[0], MRCD_AUTH_CONNECT, pair.i.hello_i,
						 pair.i.hello_r, ready, mac),
				 0);
		assert_memory_equal(last, mac, sizeof(mac));
	}
}

static void tokens_agree_while_keys_are_changed(void **state)
{
	struct fake *f = *state;
	struct pair pair;

	/* a has both keys and proves the old one first; b has the new one alone. */
	f->a->key_count = 2;
	f->a->keys[1].len_bytes = 16;
	memset(f->a->keys[1].bytes, 'n', 16);
	memset(f->b->keys[0].bytes, 'n', 16);
	run_direct(f, &pair, 1000);
	assert_memory_equal(pair.i.device_token, pair.r.device_token, MRCD_DEVICE_TOKEN_BYTES);

	/* b is given another first key while it waits for the proof. */
	f->a->key_count = 1;
	memset(f->b->keys[0].bytes, 'k', 16);
	pair_begin_direct(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	f->b->key_count = 2;
	f->b->keys[1] = f->b->keys[0];
	memset(f->b->keys[0].bytes, 'n', 16);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_true(mrcd_handshake_is_done(&pair.i));
	assert_memory_equal(pair.i.device_token, pair.r.device_token, MRCD_DEVICE_TOKEN_BYTES);
}

static void a_device_without_a_port_is_none(void **state)
{
	static const struct mrcd_handshake_device mute = {.is_usable = true};
	struct fake *f = *state;
	struct pair pair;

	mrcd_handshake_begin(&pair.i, f->a->rail, f->a, 3, "10.0.0.2", &device);
	mrcd_handshake_await(&pair.r, f->b->rail, "10.0.0.1", &mute);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(pair.r.ours.is_direct_capable, 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_true(mrcd_handshake_is_done(&pair.i));
	assert_false(pair.i.is_direct_capable);
}

/* What both come to, from what each wants and has; sealed with the same secrets, the other way round. */
static void encryption_takes_two_or_is_refused(void **state)
{
	static const struct {
		uint32_t i, r;  /* what each end offers */
		bool is_device; /* at both ends */
		bool is_refused, is_sealed, is_direct;
	} rows[] = {
#define OFF       0
#define PREFERRED MRC_FEATURE_ENCRYPTION
#define REQUIRED  (MRC_FEATURE_ENCRYPTION | MRC_FEATURE_ENCRYPTION_REQUIRED)
		{OFF, OFF, false, false, false, false},
		{OFF, PREFERRED, false, false, false, false},
		{PREFERRED, OFF, false, false, false, false},
		{OFF, REQUIRED, false, true, false, false},
		{REQUIRED, OFF, false, true, false, false},
		{PREFERRED, PREFERRED, false, false, true, false},
		{PREFERRED, REQUIRED, false, false, true, false},
		{REQUIRED, PREFERRED, false, false, true, false},
		{REQUIRED, REQUIRED, false, false, true, false},
		{OFF, OFF, true, false, false, true},
		{PREFERRED, PREFERRED, true, false, false, true},
		{OFF, PREFERRED, true, false, false, true},
		{PREFERRED, REQUIRED, true, false, true, false},
		{REQUIRED, PREFERRED, true, false, true, false},
		{REQUIRED, OFF, true, true, false, false},
	};
	static const uint8_t none[MRCD_AUTH_SECRET_BYTES];
	struct fake *f = *state;

	for (size_t row = 0; row < MRC_ARRAY_LEN(rows); row++) {
		struct pair pair;

		f->a->hello.features = rows[row].i;
		f->b->hello.features = rows[row].r;
		if (rows[row].is_device)
			pair_begin_direct(f, &pair);
		else
			pair_begin(f, &pair);
		if (rows[row].is_refused) {
			assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
			assert_int_equal(pair.r.refusal, MRCD_REFUSAL_OPEN);
			continue;
		}
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		if (rows[row].is_direct)
			assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_true(mrcd_handshake_is_done(&pair.i) && mrcd_handshake_is_done(&pair.r));
		assert_int_equal(pair.i.is_sealed, rows[row].is_sealed);
		assert_int_equal(pair.r.is_sealed, rows[row].is_sealed);
		assert_int_equal(pair.i.is_direct_capable, rows[row].is_direct);
		assert_int_equal(pair.r.is_direct_capable, rows[row].is_direct);
		assert_memory_equal(pair.i.secret_out, pair.r.secret_in, sizeof(none));
		assert_memory_equal(pair.i.secret_in, pair.r.secret_out, sizeof(none));
		if (rows[row].is_sealed) {
			assert_memory_not_equal(pair.i.secret_out, none, sizeof(none));
			assert_memory_not_equal(pair.i.secret_out, pair.i.secret_in, sizeof(none));
		}
	}
}

/* Somebody on the way makes one end believe that the other wants none: the proofs are over what was said. */
static void encryption_cannot_be_talked_down(void **state)
{
	struct fake *f = *state;

	f->a->hello.features = f->b->hello.features = PREFERRED;
	for (int frame = 0; frame < 2; frame++) {
		struct mrcd_handshake *from;
		struct mrc_hello hello;
		struct pair pair;

		pair_begin(f, &pair);
		if (frame > 0)
			assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		from = frame ? &pair.r : &pair.i;
		assert_int_equal(mrc_hello_decode(from->out + MRC_WIRE_HDR_BYTES, &hello), 0);
		assert_int_equal(hello.features, PREFERRED);
		hello.features = OFF;
		mrc_hello_encode(&hello, from->out + MRC_WIRE_HDR_BYTES);
		reseal(from, 0, 0);
		if (frame == 0)
			assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
		assert_int_equal(pair.i.refusal, MRCD_REFUSAL_KEY);
		assert_false(pair.i.is_sealed && mrcd_handshake_is_done(&pair.i));
	}
}

/* A daemon of version 1 knows nothing of it: in the open, or not at all. */
static void who_is_too_old_to_encrypt_is_refused_where_it_is_required(void **state)
{
	struct fake *f = *state;

	f->b->hello.version_min = f->b->hello.version_max = 1;
	for (int is_required = 0; is_required < 2; is_required++) {
		struct pair pair;

		f->a->hello.features = is_required ? REQUIRED : PREFERRED;
		pair_begin(f, &pair);
		assert_int_equal(say(&pair.i, &pair.r, 1000), is_required ? -EACCES : 0);
		if (is_required)
			continue;
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_false(pair.i.is_sealed);
	}
}

/* A rail that is to have a device at both ends cannot do what is required. */
static void a_rail_of_devices_cannot_encrypt(void **state)
{
	static const struct mrcd_handshake_device verbs = {.is_required = true,
							   .is_usable = true,
							   .port = 0x1234};
	struct fake *f = *state;

	for (int at_a = 0; at_a < 2; at_a++) {
		struct pair pair;

		f->a->hello.features = at_a ? REQUIRED : PREFERRED;
		f->b->hello.features = at_a ? PREFERRED : REQUIRED;
		mrcd_handshake_begin(&pair.i, f->a->rail, f->a, 3, "10.0.0.2", &verbs);
		mrcd_handshake_await(&pair.r, f->b->rail, "10.0.0.1", &verbs);
		assert_int_equal(say(&pair.i, &pair.r, 1000), -EACCES);
		assert_int_equal(pair.r.refusal, MRCD_REFUSAL_OPEN);
		assert_string_equal(pair.r.why, MRCD_WHY_OPEN_VERBS);
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

	for (int frame = 0; frame < 4; frame++) {
		for (uint32_t bit = 0;; bit++) {
			struct mrcd_handshake *from, *to;
			struct pair pair;

			pair_begin_direct(f, &pair);
			if (frame > 0)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			if (frame > 1)
				assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
			if (frame > 2)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			from = frame & 1 ? &pair.r : &pair.i;
			to = frame & 1 ? &pair.i : &pair.r;
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

/* The same with checksums that fit. */
static void no_bit_can_be_forged(void **state)
{
	struct fake *f = *state;

	for (int frame = 0; frame < 4; frame++) {
		for (uint32_t bit = 0;; bit++) {
			struct mrcd_handshake *from, *to;
			struct pair pair;
			int r;

			pair_begin_direct(f, &pair);
			if (frame > 0)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			if (frame > 1)
				assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
			if (frame > 2)
				assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
			from = frame & 1 ? &pair.r : &pair.i;
			to = frame & 1 ? &pair.i : &pair.r;
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
			assert_false(mrcd_handshake_is_done(to));
		}
	}
}

/* READY, forged by somebody who knows the protocol and, but for `mac`, the key. */
struct ready {
	const char *name;
	enum mrc_wire_type type;
	uint32_t body_len; /* 0: as it should be */
	uint8_t said[MRC_AUTH_BODY_BYTES];
	enum mrcd_auth_role role;
	bool is_other_key;
	enum mrcd_refusal want; /* NONE: it is taken */
};

static void a_ready_is_taken_only_as_it_should_be(void **state)
{
#define READY(what, ...)                                                                   \
	{                                                                                  \
		.name = what, .type = MRC_WIRE_READY, .role = MRCD_AUTH_READY, __VA_ARGS__ \
	}
	static const struct ready rows[] = {
		READY("as it should be", .said = {1}),
		READY("highest port", .said = {0xff, 0xff}),
		READY("port 0", .want = MRCD_REFUSAL_FIELD),
		READY("first reserved byte", .said = {1, 0, 1}, .want = MRCD_REFUSAL_FIELD),
		READY("last reserved byte", .said = {1, [15] = 0x80}, .want = MRCD_REFUSAL_FIELD),
		READY("another key", .said = {1}, .is_other_key = true, .want = MRCD_REFUSAL_KEY),
		READY("longer", .said = {1}, .body_len = 49, .want = MRCD_REFUSAL_FIELD),
		READY("shorter", .said = {1}, .body_len = 47, .want = MRCD_REFUSAL_FIELD),
		{"the initiator's proof",
		 MRC_WIRE_READY,
		 0,
		 {1},
		 MRCD_AUTH_INITIATOR,
		 false,
		 MRCD_REFUSAL_KEY},
		{"the responder's proof",
		 MRC_WIRE_READY,
		 0,
		 {1},
		 MRCD_AUTH_RESPONDER,
		 false,
		 MRCD_REFUSAL_KEY},
		{"the token said",
		 MRC_WIRE_READY,
		 0,
		 {1},
		 MRCD_AUTH_CONNECT,
		 false,
		 MRCD_REFUSAL_KEY},
		{"called AUTH", MRC_WIRE_AUTH, 0, {1}, MRCD_AUTH_READY, false, MRCD_REFUSAL_FIELD},
		{"called HELLO",
		 MRC_WIRE_HELLO,
		 0,
		 {1},
		 MRCD_AUTH_READY,
		 false,
		 MRCD_REFUSAL_FIELD},
	};
#undef READY
	struct fake *f = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct ready *row = &rows[i];
		struct mrc_wire_hdr hdr = {.type = (uint8_t)row->type, .body_len = 48};
		struct mrcd_key key = f->a->keys[0];
		struct pair pair;
		uint8_t *body = pair.r.out + MRC_WIRE_HDR_BYTES;

		print_message("%s\n", row->name);
		pair_begin_direct(f, &pair);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(pair.r.out_len, MRC_WIRE_HDR_BYTES + 48);
		key.bytes[0] ^= row->is_other_key;
		memcpy(body, row->said, sizeof(row->said));
		assert_int_equal(mrcd_auth_prove(&key, row->role, pair.r.hello_i, pair.r.hello_r,
						 body, body + sizeof(row->said)),
				 0);
		if (row->body_len)
			hdr.body_len = row->body_len;
		hdr.body_crc = mrcd_crc32c(0, body, hdr.body_len);
		mrc_wire_encode(&hdr, mrcd_crc32c, pair.r.out);
		assert_int_equal(say(&pair.r, &pair.i, 1000), row->want ? -EACCES : 0);
		assert_int_equal(pair.i.refusal, row->want);
		assert_int_equal(mrcd_handshake_is_done(&pair.i), !row->want);
		if (!row->want)
			assert_int_equal(pair.i.device_port, row->said[0] | row->said[1] << 8);
	}
}

/* Out of turn: before the proof, or from the wrong end. */
static void a_ready_is_no_other_frame(void **state)
{
	struct fake *f = *state;
	struct mrcd_handshake ready;
	struct pair pair;

	pair_begin_direct(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	ready = pair.r;

	pair_begin_direct(f, &pair);
	pair.r = ready;
	assert_int_equal(say(&pair.r, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_FIELD);

	pair_begin_direct(f, &pair);
	assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
	assert_int_equal(say(&ready, &pair.r, 1000), -EACCES);
	assert_int_equal(pair.r.refusal, MRCD_REFUSAL_FIELD);
}

/* The READY of another handshake between the same two: its proof is over other nonces. */
static void a_ready_cannot_be_played_back(void **state)
{
	struct fake *f = *state;
	struct mrcd_handshake ready;
	struct pair pair;

	for (int round = 0; round < 2; round++) {
		pair_begin_direct(f, &pair);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		assert_int_equal(say(&pair.r, &pair.i, 1000), 0);
		assert_int_equal(say(&pair.i, &pair.r, 1000), 0);
		if (round == 0)
			ready = pair.r;
	}
	assert_int_equal(say(&ready, &pair.i, 1000), -EACCES);
	assert_int_equal(pair.i.refusal, MRCD_REFUSAL_KEY);
}

static void who_must_have_devices_takes_nothing_else(void **state)
{
	static const struct mrcd_handshake_device must = {true, true, 7}, broken = {true, false, 0},
						  mute = {true, true, 0};
	const struct {
		const struct mrcd_handshake_device *i, *r;
		const char *why_i, *why_r; /* who refuses, NULL: not that end */
	} rows[] = {
		{&must, &must, NULL, NULL},
		{&must, &device, NULL, NULL},
		{&must, NULL, MRCD_WHY_NO_DEVICE_THERE, NULL},
		{&broken, &device, MRCD_WHY_NO_DEVICE_HERE, NULL},
		{&device, &must, NULL, NULL},
		{NULL, &must, NULL, MRCD_WHY_NO_DEVICE_THERE},
		{&device, &broken, NULL, MRCD_WHY_NO_DEVICE_HERE},
		{&device, &mute, NULL, MRCD_WHY_NO_DEVICE_HERE},
	};
	struct fake *f = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct pair pair;
		int r;

		mrcd_handshake_begin(&pair.i, f->a->rail, f->a, 3, "b", rows[i].i);
		mrcd_handshake_await(&pair.r, f->b->rail, "a", rows[i].r);
		r = say(&pair.i, &pair.r, 1000);
		if (rows[i].why_r) {
			assert_int_equal(r, -EACCES);
			assert_int_equal(pair.r.refusal, MRCD_REFUSAL_DEVICE);
			assert_string_equal(pair.r.why, rows[i].why_r);
			assert_int_equal(pair.r.out_len, 0);
			continue;
		}
		assert_int_equal(r, 0);
		r = say(&pair.r, &pair.i, 1000);
		if (rows[i].why_i) {
			assert_int_equal(r, -EACCES);
			assert_int_equal(pair.i.refusal, MRCD_REFUSAL_DEVICE);
			assert_string_equal(pair.i.why, rows[i].why_i);
			assert_int_equal(pair.i.out_len, 0);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(pair.i.state, MRCD_HANDSHAKE_READY);
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
		claim(both_ends_come_to_the_same_version_and_features),
		claim(without_a_version_in_common_nobody_is_let_in),
		claim(nobody_between_them_can_make_them_old),
		claim(direct_placement_takes_two),
		claim(a_handshake_has_a_token_of_its_own),
		claim(tokens_agree_while_keys_are_changed),
		claim(a_device_without_a_port_is_none),
		claim(encryption_takes_two_or_is_refused),
		claim(encryption_cannot_be_talked_down),
		claim(who_is_too_old_to_encrypt_is_refused_where_it_is_required),
		claim(a_rail_of_devices_cannot_encrypt),
		claim(another_key_is_refused_by_whoever_sees_it_first),
		claim(an_initiator_without_the_key_is_refused),
		claim(a_host_without_keys_lets_nobody_in),
		claim(keys_can_be_changed_one_host_at_a_time),
		claim(a_host_with_the_new_key_alone_gets_its_proof_with_that),
		claim(no_bit_can_be_flipped),
		claim(no_bit_can_be_forged),
		claim(a_ready_is_taken_only_as_it_should_be),
		claim(a_ready_is_no_other_frame),
		claim(a_ready_cannot_be_played_back),
		claim(who_must_have_devices_takes_nothing_else),
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
