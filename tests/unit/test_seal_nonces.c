/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No key of a record ever meets a nonce twice: not when paths come and go, not when a daemon comes
 * back with the state of the one before, which has the same names, boot ids and epochs to say, and
 * not when a key is replaced. libcrypto is asked through a wrapper that writes down what it is given.
 */
#include "rail_tcp_lab.h"

#include "mrcd_seal.h"

#define USES_MAX     8192U
#define CONTEXTS_MAX 64U

struct use {
	uint8_t key[32];
	uint8_t nonce[MRCD_SEAL_IV_BYTES];
};

static struct {
	struct use uses[USES_MAX];
	uint32_t count;
	/* The key that a context was given last. */
	struct {
		const EVP_CIPHER_CTX *context;
		uint8_t key[32];
	} contexts[CONTEXTS_MAX];
	uint32_t context_count;
} seen;

static void key_note(const EVP_CIPHER_CTX *context, const uint8_t *key)
{
	uint32_t i = 0;

	while (i < seen.context_count && seen.contexts[i].context != context)
		i++;
	assert_true(i < CONTEXTS_MAX);
	seen.contexts[i].context = context;
	memcpy(seen.contexts[i].key, key, sizeof(seen.contexts[i].key));
	seen.context_count = MRC_MAX(seen.context_count, i + 1);
}

static void nonce_note(const EVP_CIPHER_CTX *context, const uint8_t *nonce)
{
	struct use *use = &seen.uses[seen.count++];

	assert_true(seen.count < USES_MAX);
	for (uint32_t i = 0; i < seen.context_count; i++) {
		if (seen.contexts[i].context != context)
			continue;
		memcpy(use->key, seen.contexts[i].key, sizeof(use->key));
		memcpy(use->nonce, nonce, sizeof(use->nonce));
		return;
	}
	fail_msg("a nonce without a key");
}

int __real_EVP_CipherInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine,
			     const unsigned char *key, const unsigned char *nonce, int is_sealing);
int __wrap_EVP_CipherInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine,
			     const unsigned char *key, const unsigned char *nonce, int is_sealing);

/* The opening end has the same keys and nonces, as it should. */
int __wrap_EVP_CipherInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine,
			     const unsigned char *key, const unsigned char *nonce, int is_sealing)
{
	if (key && is_sealing)
		key_note(context, key);
	if (nonce && is_sealing)
		nonce_note(context, nonce);
	return __real_EVP_CipherInit_ex(context, cipher, engine, key, nonce, is_sealing);
}

static int use_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct use));
}

/* No two of them are the same; how many keys there were. */
static uint32_t uses_check(void)
{
	uint32_t keys = seen.count > 0;

	qsort(seen.uses, seen.count, sizeof(seen.uses[0]), use_compare);
	for (uint32_t i = 1; i < seen.count; i++) {
		const struct use *one = &seen.uses[i - 1], *next = &seen.uses[i];

		if (use_compare(one, next) == 0)
			fail_msg("a key met a nonce twice");
		keys += memcmp(one->key, next->key, sizeof(one->key)) != 0;
	}
	return keys;
}

static int forget(void **state)
{
	memset(&seen, 0, sizeof(seen));
	return 0;
}

static void talk(struct fake *f)
{
	for (uint64_t i = 0; i < 20; i++) {
		struct mrc_act_post there =
			fake_control(f->a->link, MRC_WIRE_STATE, i, (uint16_t)(10 * i));
		struct mrc_act_post back = fake_control(f->b->link, MRC_WIRE_STATE, i, 7);

		post(f->a, &there);
		post(f->b, &back);
		flush(f->a);
		flush(f->b);
	}
	fake_until(f, f->a->frame_count == 20 && f->b->frame_count == 20);
}

static void hang_up(struct fake *f)
{
	f->a->link->ops->fence(f->a->link);
	fake_until(f, f->b->link == NULL);
	f->a->frame_count = f->b->frame_count = 0;
	f->a->sent = f->b->sent = 0;
}

/*
 * All that both ends say of themselves is the same each time, as it may be to who lost his books;
 * what differs are the nonces of the handshake, which either end draws anew.
 */
static void each_connection_has_keys_of_its_own(void **state)
{
	static const uint32_t lives = 3, connections = 4;

	for (uint32_t life = 0; life < lives; life++) {
		struct fake *f = open_at("127.0.0.1", "127.0.0.1");
		const struct mrc_hello hello_a = f->a->hello, hello_b = f->b->hello;

		for (uint32_t i = 0; i < connections; i++) {
			f->a->hello = hello_a;
			f->b->hello = hello_b;
			f->a->hello.features = f->b->hello.features = MRC_FEATURE_ENCRYPTION;
			connect_both(f);
			assert_true(f->a->link->is_sealed && f->b->link->is_sealed);
			talk(f);
			hang_up(f);
		}
		tear_down((void **)&f);
	}
	/* For each direction one, so neither is the other's. */
	assert_true(seen.count >= 2 * lives * connections);
	assert_int_equal(uses_check(), 2 * lives * connections);
}

static void seal_one(struct mrcd_seal *seal, bool is_finished)
{
	uint8_t record[MRCD_SEAL_HDR_BYTES + 5 + MRCD_SEAL_TAG_BYTES];

	assert_int_equal(mrcd_seal_begin(seal, record, 5), 0);
	if (!is_finished)
		return;
	assert_int_equal(mrcd_seal_add(seal, "hello", 5), 0);
	assert_true(mrcd_seal_end(seal, record) > 0);
}

/* Also when what was begun was never finished: what had been sealed of it may have been seen. */
static void a_key_that_is_replaced_does_not_come_back(void **state)
{
	static const uint8_t secret[MRCD_SEAL_SECRET_BYTES] = {7};
	struct mrcd_seal seal;

	assert_int_equal(mrcd_seal_init(&seal, secret, true), 0);
	seal.records_max = 3;
	for (uint32_t i = 0; i < 300; i++)
		seal_one(&seal, i % 5 != 4);
	mrcd_seal_fini(&seal);
	assert_int_equal(seen.count, 300);
	assert_int_equal(uses_check(), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_connection_has_keys_of_its_own, forget),
		cmocka_unit_test_setup(a_key_that_is_replaced_does_not_come_back, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
