/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_auth: proofs hold for exactly what was said, by exactly who said it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_auth.h"

struct said {
	struct mrcd_key keys[2];
	uint8_t hello_i[MRC_HELLO_BODY_BYTES];
	uint8_t hello_r[MRC_HELLO_BODY_BYTES];
	uint8_t auth[MRC_AUTH_BODY_BYTES];
};

static void said_init(struct said *said)
{
	memset(said, 0, sizeof(*said));
	for (int k = 0; k < 2; k++) {
		memset(said->keys[k].bytes, 'k' + k, 32);
		said->keys[k].len_bytes = 32;
	}
	memset(said->hello_i, 0x11, sizeof(said->hello_i));
	memset(said->hello_r, 0x22, sizeof(said->hello_r));
	memset(said->auth, 0x33, sizeof(said->auth));
}

/* Computed with another implementation (Python's hmac module). */
static void auth_proof_is_hmac_sha256_over_role_and_bodies(void **state)
{
	static const uint8_t want_i[MRC_HELLO_MAC_BYTES] = {
		0x3c, 0x90, 0xf2, 0x7d, 0x52, 0xd6, 0x03, 0xe2, 0x81, 0x34, 0xc5,
		0xcd, 0x2f, 0x4c, 0x82, 0x53, 0x67, 0xb8, 0x1f, 0xe8, 0x58, 0x33,
		0x4f, 0xb2, 0x49, 0x02, 0xe1, 0x6f, 0x92, 0xce, 0x79, 0x24,
	};
	static const uint8_t want_r[MRC_HELLO_MAC_BYTES] = {
		0xc3, 0xa5, 0xf6, 0xb7, 0xee, 0x0d, 0xf5, 0xa4, 0x59, 0xf7, 0x9e,
		0xc2, 0x7a, 0x29, 0x66, 0x21, 0x82, 0x53, 0xbf, 0x6f, 0xe3, 0xf5,
		0x89, 0xc9, 0x7c, 0xef, 0x1b, 0x06, 0xf1, 0x7e, 0xd2, 0x82,
	};
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	struct said s;

	said_init(&s);
	assert_int_equal(mrcd_auth_prove(&s.keys[0], MRCD_AUTH_INITIATOR, s.hello_i, s.hello_r,
					 s.auth, mac),
			 0);
	assert_memory_equal(mac, want_i, sizeof(mac));
	assert_int_equal(mrcd_auth_prove(&s.keys[0], MRCD_AUTH_RESPONDER, s.hello_i, s.hello_r,
					 NULL, mac),
			 0);
	assert_memory_equal(mac, want_r, sizeof(mac));
}

static bool check(const struct said *s, uint32_t key_count, enum mrcd_auth_role role,
		  const uint8_t *mac, uint32_t *index)
{
	return mrcd_auth_check(s->keys, key_count, role, s->hello_i, s->hello_r,
			       role == MRCD_AUTH_INITIATOR ? s->auth : NULL, mac, index);
}

static void auth_check_says_which_key_proved(void **state)
{
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	struct said s;

	said_init(&s);
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t index = 99;

		assert_int_equal(mrcd_auth_prove(&s.keys[k], MRCD_AUTH_INITIATOR, s.hello_i,
						 s.hello_r, s.auth, mac),
				 0);
		assert_true(check(&s, 2, MRCD_AUTH_INITIATOR, mac, &index));
		assert_int_equal(index, k);
	}
	/* The last proof was the second key's: with the first alone, or none, it is no proof. */
	uint32_t index = 99;

	assert_false(check(&s, 1, MRCD_AUTH_INITIATOR, mac, &index));
	assert_false(check(&s, 0, MRCD_AUTH_INITIATOR, mac, &index));
	assert_int_equal(index, 99);
}

/* How often libcrypto was asked to compare without a hint of how much is alike. */
static uint32_t compare_count;

int __real_CRYPTO_memcmp(const void *a, const void *b, size_t len);
int __wrap_CRYPTO_memcmp(const void *a, const void *b, size_t len);

int __wrap_CRYPTO_memcmp(const void *a, const void *b, size_t len)
{
	assert_int_equal(len, MRC_HELLO_MAC_BYTES);
	compare_count++;
	return __real_CRYPTO_memcmp(a, b, len);
}

/* The first key's, the second's, nobody's: as much is done for each, so its time tells nothing. */
static void auth_check_does_the_same_for_every_proof(void **state)
{
	uint8_t mac[MRC_HELLO_MAC_BYTES] = {0};
	struct said s;

	said_init(&s);
	for (uint32_t k = 0; k < 3; k++) {
		uint32_t index;

		if (k < 2)
			assert_int_equal(mrcd_auth_prove(&s.keys[k], MRCD_AUTH_INITIATOR, s.hello_i,
							 s.hello_r, s.auth, mac),
					 0);
		else
			mac[0] ^= 1;
		compare_count = 0;
		assert_int_equal(check(&s, 2, MRCD_AUTH_INITIATOR, mac, &index), k < 2);
		assert_int_equal(compare_count, 2);
	}
}

static void auth_check_refuses_a_changed_bit_anywhere(void **state)
{
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	uint32_t index;
	struct said s;
	struct {
		const char *name;
		uint8_t *bytes;
		size_t len;
	} parts[] = {
		{"initiator's hello", s.hello_i, sizeof(s.hello_i)},
		{"responder's hello", s.hello_r, sizeof(s.hello_r)},
		{"auth", s.auth, sizeof(s.auth)},
		{"proof", mac, sizeof(mac)},
		{"key", s.keys[0].bytes, 32},
	};

	said_init(&s);
	assert_int_equal(mrcd_auth_prove(&s.keys[0], MRCD_AUTH_INITIATOR, s.hello_i, s.hello_r,
					 s.auth, mac),
			 0);
	for (size_t p = 0; p < MRC_ARRAY_LEN(parts); p++) {
		for (size_t bit = 0; bit < parts[p].len * 8; bit++) {
			parts[p].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (check(&s, 1, MRCD_AUTH_INITIATOR, mac, &index))
				fail_msg("%s: bit %zu is not covered", parts[p].name, bit);
			parts[p].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	assert_true(check(&s, 1, MRCD_AUTH_INITIATOR, mac, &index));
}

static void auth_proof_cannot_be_reflected(void **state)
{
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	uint32_t index;
	struct said s;

	said_init(&s);
	memcpy(s.hello_i, s.hello_r, sizeof(s.hello_i)); /* an echo of the responder's own */
	assert_int_equal(mrcd_auth_prove(&s.keys[0], MRCD_AUTH_RESPONDER, s.hello_i, s.hello_r,
					 NULL, mac),
			 0);
	assert_false(mrcd_auth_check(s.keys, 1, MRCD_AUTH_INITIATOR, s.hello_i, s.hello_r, NULL,
				     mac, &index));
	assert_false(check(&s, 1, MRCD_AUTH_INITIATOR, mac, &index));
}

static void auth_takes_keys_of_the_least_and_the_greatest_length(void **state)
{
	static const uint32_t lens[] = {MRCD_KEY_BYTES_MIN, 64, 65, MRCD_KEY_BYTES_MAX};
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	uint32_t index;
	struct said s;

	for (size_t i = 0; i < MRC_ARRAY_LEN(lens); i++) {
		said_init(&s);
		memset(s.keys[0].bytes, 'x', sizeof(s.keys[0].bytes));
		s.keys[0].len_bytes = lens[i];
		assert_int_equal(mrcd_auth_prove(&s.keys[0], MRCD_AUTH_RESPONDER, s.hello_i,
						 s.hello_r, NULL, mac),
				 0);
		assert_true(check(&s, 1, MRCD_AUTH_RESPONDER, mac, &index));
		s.keys[0].bytes[lens[i] - 1] ^= 1; /* the last byte counts */
		assert_false(check(&s, 1, MRCD_AUTH_RESPONDER, mac, &index));
	}
}

static void auth_random_fills_all_and_differs(void **state)
{
	uint8_t a[600] = {0}, b[600] = {0};
	size_t tail_zeros = 0;

	mrcd_auth_random(a,
			 sizeof(a)); /* above the 256 bytes the kernel gives without interruption */
	mrcd_auth_random(b, sizeof(b));
	assert_memory_not_equal(a, b, 32);
	assert_memory_not_equal(a + 560, b + 560, 32);
	for (size_t i = 568; i < sizeof(a); i++)
		tail_zeros += a[i] == 0;
	assert_true(tail_zeros < 32);
	mrcd_auth_random(a, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auth_proof_is_hmac_sha256_over_role_and_bodies),
		cmocka_unit_test(auth_check_says_which_key_proved),
		cmocka_unit_test(auth_check_does_the_same_for_every_proof),
		cmocka_unit_test(auth_check_refuses_a_changed_bit_anywhere),
		cmocka_unit_test(auth_proof_cannot_be_reflected),
		cmocka_unit_test(auth_takes_keys_of_the_least_and_the_greatest_length),
		cmocka_unit_test(auth_random_fills_all_and_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
