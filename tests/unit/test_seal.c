/* SPDX-License-Identifier: BSD-2-Clause */
/* Records: what they are, bit for bit, and that nothing but the next one opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "mrcd_auth.h"
#include "mrcd_seal.h"

static const char plain[] = "attack at dawn";
#define PLAIN_LEN  14U
#define RECORD_LEN (MRCD_SEAL_HDR_BYTES + PLAIN_LEN + MRCD_SEAL_TAG_BYTES)

struct ends {
	struct mrcd_seal out, in;
};

static void ends_init(struct ends *ends)
{
	uint8_t secret[MRCD_SEAL_SECRET_BYTES];

	for (uint32_t i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)i;
	assert_int_equal(mrcd_seal_init(&ends->out, secret, true), 0);
	assert_int_equal(mrcd_seal_init(&ends->in, secret, false), 0);
}

static void ends_fini(struct ends *ends)
{
	mrcd_seal_fini(&ends->out);
	mrcd_seal_fini(&ends->in);
}

static uint32_t seal_text(struct mrcd_seal *seal, const void *text, uint32_t len, uint8_t *record)
{
	int r;

	assert_int_equal(mrcd_seal_begin(seal, record, len), 0);
	assert_int_equal(mrcd_seal_add(seal, text, len), 0);
	r = mrcd_seal_end(seal, record);
	assert_int_equal(r, MRCD_SEAL_HDR_BYTES + len + MRCD_SEAL_TAG_BYTES);
	assert_int_equal(mrcd_seal_record_len(record), r);
	return (uint32_t)r;
}

static void is_hex(const uint8_t *bytes, uint32_t len, const char *want)
{
	char text[256];

	assert_true(2 * len < sizeof(text));
	for (uint32_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, want);
}

/* All of these were computed with another implementation (Python's cryptography module). */
static void records_are_aes_256_gcm_by_keys_of_hkdf(void **state)
{
	uint8_t record[RECORD_LEN];
	struct ends ends;

	ends_init(&ends);
	ends.out.records_max = 2;
	seal_text(&ends.out, plain, PLAIN_LEN, record);
	is_hex(record, RECORD_LEN,
	       "0e000000f110fced817072bfb731607231507c8fddc455cec519b2d907d595e648c3");
	seal_text(&ends.out, plain, PLAIN_LEN, record);
	is_hex(record, RECORD_LEN,
	       "0e0000002dc0d8bd22bc4a407d2cc758e2a58fb8aa400b9be8585850e80fcaab1cf8");
	/* By the next key; the numbers go on. */
	seal_text(&ends.out, plain, PLAIN_LEN, record);
	is_hex(record, RECORD_LEN,
	       "0e000000b00178459f1cd31aee5a50e160ae1da5930464dfa3904ffc187813e4b36a");
	ends_fini(&ends);
}

static void secrets_are_made_of_all_that_was_said(void **state)
{
	struct mrcd_key key = {.len_bytes = 16};
	uint8_t said[3][MRC_HELLO_BODY_BYTES], secret[2][MRCD_AUTH_SECRET_BYTES];

	memset(key.bytes, 'k', 16);
	for (uint32_t i = 0; i < MRC_HELLO_BODY_BYTES; i++) {
		said[0][i] = (uint8_t)i;
		said[1][i] = (uint8_t)(MRC_HELLO_BODY_BYTES - 1 - i);
		said[2][i] = (uint8_t)(100 + i);
	}
	assert_int_equal(mrcd_auth_secret(&key, MRCD_AUTH_INITIATOR, said[0], said[1], said[2],
					  secret[0]),
			 0);
	is_hex(secret[0], 32, "b32eb98ac934e796318508c5bea2deb02d0f2025824fdcc388611f3cb8d31d34");
	assert_int_equal(mrcd_auth_secret(&key, MRCD_AUTH_RESPONDER, said[0], said[1], said[2],
					  secret[0]),
			 0);
	is_hex(secret[0], 32, "12099f6945d93a4bc7315926233039092baf1b3c33f4ec2bc26b0eb0a3c1151c");
	/* One bit of any of them, or of the key, makes another. */
	for (uint32_t part = 0; part <= 3; part++) {
		uint8_t *bit = part < 3 ? &said[part][7] : &key.bytes[7];

		*bit ^= 1;
		assert_int_equal(mrcd_auth_secret(&key, MRCD_AUTH_RESPONDER, said[0], said[1],
						  said[2], secret[1]),
				 0);
		*bit ^= 1;
		assert_memory_not_equal(secret[0], secret[1], sizeof(secret[0]));
	}
}

static void what_was_sealed_in_parts_opens_as_a_whole(void **state)
{
	static const uint32_t lens[] = {
		1, 15, 16, 17, 1000, MRCD_SEAL_PLAIN_MAX - 1, MRCD_SEAL_PLAIN_MAX};
	static uint8_t text[MRCD_SEAL_PLAIN_MAX], back[MRCD_SEAL_PLAIN_MAX],
		record[MRCD_SEAL_RECORD_MAX];
	struct mrc_rng rng = {.state = 7};
	struct ends ends;

	ends_init(&ends);
	ends.out.records_max = ends.in.records_max = 3;
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)mrc_rng_next(&rng);
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t len = lens[round % MRC_ARRAY_LEN(lens)], at = 0;
		int r;

		assert_int_equal(mrcd_seal_begin(&ends.out, record, len), 0);
		while (at < len) {
			uint32_t part = (uint32_t)(mrc_rng_next(&rng) % (len - at + 1));

			assert_int_equal(mrcd_seal_add(&ends.out, text + at, part), 0);
			at += part;
		}
		r = mrcd_seal_end(&ends.out, record);
		assert_int_equal(mrcd_seal_open(&ends.in, record, (uint32_t)r, back), len);
		assert_memory_equal(back, text, len);
	}
	ends_fini(&ends);
}

static void no_bit_of_a_record_can_be_changed(void **state)
{
	uint8_t record[RECORD_LEN], back[PLAIN_LEN];

	for (uint32_t bit = 0; bit < 8 * RECORD_LEN; bit++) {
		struct ends ends;
		int len;

		ends_init(&ends);
		seal_text(&ends.out, plain, PLAIN_LEN, record);
		record[bit / 8] ^= (uint8_t)(1U << bit % 8);
		len = mrcd_seal_record_len(record);
		/* Another length asks for other bytes; where it still fits, it does not open. */
		if (len == (int)RECORD_LEN)
			assert_int_equal(mrcd_seal_open(&ends.in, record, RECORD_LEN, back),
					 -EBADMSG);
		else if (len > 0 && len < (int)RECORD_LEN)
			assert_int_equal(mrcd_seal_open(&ends.in, record, (uint32_t)len, back),
					 -EBADMSG);
		else
			assert_true(bit / 8 < MRCD_SEAL_HDR_BYTES);
		ends_fini(&ends);
	}
}

/* Said again, left out, exchanged, sent back, of another path: each has its own number and key. */
static void only_the_next_record_of_this_stream_opens(void **state)
{
	uint8_t records[3][RECORD_LEN], back[PLAIN_LEN];
	struct ends ends, other;
	uint8_t secret[MRCD_SEAL_SECRET_BYTES] = {9};

	for (int attack = 0; attack < 5; attack++) {
		ends_init(&ends);
		for (int i = 0; i < 3; i++)
			seal_text(&ends.out, plain, PLAIN_LEN, records[i]);
		assert_int_equal(mrcd_seal_open(&ends.in, records[0], RECORD_LEN, back), PLAIN_LEN);
		assert_memory_equal(back, plain, PLAIN_LEN);
		switch (attack) {
		case 0: /* nothing wrong */
			assert_int_equal(mrcd_seal_open(&ends.in, records[1], RECORD_LEN, back),
					 PLAIN_LEN);
			break;
		case 1: /* again */
			assert_int_equal(mrcd_seal_open(&ends.in, records[0], RECORD_LEN, back),
					 -EBADMSG);
			break;
		case 2: /* one is missing */
			assert_int_equal(mrcd_seal_open(&ends.in, records[2], RECORD_LEN, back),
					 -EBADMSG);
			break;
		case 3: /* what we said ourselves comes back: other secrets for the two directions */
		case 4: /* of another path */
			secret[0] = (uint8_t)attack;
			assert_int_equal(mrcd_seal_init(&other.out, secret, true), 0);
			seal_text(&other.out, plain, PLAIN_LEN, records[1]);
			seal_text(&other.out, plain, PLAIN_LEN, records[1]);
			assert_int_equal(mrcd_seal_open(&ends.in, records[1], RECORD_LEN, back),
					 -EBADMSG);
			mrcd_seal_fini(&other.out);
			break;
		}
		ends_fini(&ends);
	}
}

static void a_length_nobody_sends_is_refused(void **state)
{
	static const struct {
		uint8_t hdr[MRCD_SEAL_HDR_BYTES];
		int want;
	} rows[] = {
		{{0, 0, 0, 0}, -EPROTO},
		{{1, 0, 0, 0}, 21},
		{{0, 0x40, 0, 0}, 16404},
		{{1, 0x40, 0, 0}, -EPROTO},
		{{1, 0, 1, 0}, -EPROTO},
		{{1, 0, 0, 0x80}, -EPROTO},
		{{0xff, 0xff, 0xff, 0xff}, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++)
		assert_int_equal(mrcd_seal_record_len(rows[i].hdr), rows[i].want);
}

static void nothing_is_left_when_it_is_over(void **state)
{
	static const struct mrcd_seal none;
	struct ends ends;

	ends_init(&ends);
	ends_fini(&ends);
	assert_memory_equal(&ends.out, &none, sizeof(none));
	mrcd_seal_fini(&ends.out); /* a second time does nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_aes_256_gcm_by_keys_of_hkdf),
		cmocka_unit_test(secrets_are_made_of_all_that_was_said),
		cmocka_unit_test(what_was_sealed_in_parts_opens_as_a_whole),
		cmocka_unit_test(no_bit_of_a_record_can_be_changed),
		cmocka_unit_test(only_the_next_record_of_this_stream_opens),
		cmocka_unit_test(a_length_nobody_sends_is_refused),
		cmocka_unit_test(nothing_is_left_when_it_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
