/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void mrcd_auth_random(void *out, size_t len_bytes)
{
	uint8_t *at = out;

	while (len_bytes > 0) {
		ssize_t got = getrandom(at, len_bytes, 0);

		if (got < 0 && errno == EINTR)
			continue;
		MRC_ASSERT(got > 0); /* a guessable nonce would be worse than no daemon */
		at += got;
		len_bytes -= (size_t)got;
	}
}

void mrcd_auth_key_id(struct mrcd_key *key)
{
	static const unsigned char words[] = "mrcd key fingerprint";
	uint8_t mac[MRC_HELLO_MAC_BYTES];
	size_t mac_len = 0;

	if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key->bytes, key->len_bytes, words,
		       sizeof(words) - 1, mac, sizeof(mac), &mac_len))
		memset(mac, 0, sizeof(mac)); /* proofs will fail as well, and say so */
	for (size_t i = 0; i < (MRCD_KEY_ID_BYTES - 1) / 2; i++)
		snprintf(key->id + 2 * i, 3, "%02x", mac[i]);
}

int mrcd_auth_prove(const struct mrcd_key *key, enum mrcd_auth_role role,
		    const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		    const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		    const uint8_t body[MRC_AUTH_BODY_BYTES], uint8_t mac_out[MRC_HELLO_MAC_BYTES])
{
	/* All parts have a fixed length, so no two different handshakes give the same bytes. */
	uint8_t said[1 + 2 * MRC_HELLO_BODY_BYTES + MRC_AUTH_BODY_BYTES];
	size_t len = 0, mac_len = 0;

	MRC_ASSERT(key->len_bytes >= MRCD_KEY_BYTES_MIN && key->len_bytes <= MRCD_KEY_BYTES_MAX);
	said[len++] = (uint8_t)role;
	memcpy(said + len, hello_i, MRC_HELLO_BODY_BYTES);
	len += MRC_HELLO_BODY_BYTES;
	memcpy(said + len, hello_r, MRC_HELLO_BODY_BYTES);
	len += MRC_HELLO_BODY_BYTES;
	if (body) {
		memcpy(said + len, body, MRC_AUTH_BODY_BYTES);
		len += MRC_AUTH_BODY_BYTES;
	}
	MRC_ASSERT(len <= sizeof(said));
	if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key->bytes, key->len_bytes, said, len,
		       mac_out, MRC_HELLO_MAC_BYTES, &mac_len))
		return -EIO;
	MRC_ASSERT(mac_len == MRC_HELLO_MAC_BYTES);
	return 0;
}

bool mrcd_auth_check(const struct mrcd_key *keys, uint32_t key_count, enum mrcd_auth_role role,
		     const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		     const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		     const uint8_t body[MRC_AUTH_BODY_BYTES],
		     const uint8_t mac[MRC_HELLO_MAC_BYTES], uint32_t *key_index_out)
{
	uint8_t want[MRC_HELLO_MAC_BYTES];
	bool is_proved = false;

	/* Every key is tried, also after a match: the time taken tells nothing about which one it was. */
	for (uint32_t i = 0; i < key_count; i++) {
		if (mrcd_auth_prove(&keys[i], role, hello_i, hello_r, body, want))
			continue;
		if (CRYPTO_memcmp(want, mac, sizeof(want)) == 0 && !is_proved) {
			is_proved = true;
			*key_index_out = i;
		}
	}
	OPENSSL_cleanse(want, sizeof(want));
	return is_proved;
}

static int hmac(const uint8_t *key, size_t key_len, const uint8_t *data, size_t len,
		uint8_t out[MRCD_AUTH_SECRET_BYTES])
{
	size_t out_len = 0;

	if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, key_len, data, len, out,
		       MRCD_AUTH_SECRET_BYTES, &out_len))
		return -EIO;
	MRC_ASSERT(out_len == MRCD_AUTH_SECRET_BYTES);
	return 0;
}

/* HKDF-Expand for as much as one hash gives: HMAC(secret, info || 1). The last byte of `info` is room for the 1. */
static int expand(const uint8_t secret[MRCD_AUTH_SECRET_BYTES], uint8_t *info, size_t info_len,
		  uint8_t out[MRCD_AUTH_SECRET_BYTES])
{
	info[info_len - 1] = 1;
	return hmac(secret, MRCD_AUTH_SECRET_BYTES, info, info_len, out);
}

int mrcd_auth_expand(const uint8_t secret[MRCD_AUTH_SECRET_BYTES], const char *label,
		     uint8_t out[MRCD_AUTH_SECRET_BYTES])
{
	uint8_t info[32];
	size_t len = strlen(label);

	MRC_ASSERT(len < sizeof(info));
	memcpy(info, label, len + 1); /* its 0 makes place for the 1 */
	return expand(secret, info, len + 1, out);
}

int mrcd_auth_secret(const struct mrcd_key *key, enum mrcd_auth_role from,
		     const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		     const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		     const uint8_t body[MRC_AUTH_BODY_BYTES],
		     uint8_t secret_out[MRCD_AUTH_SECRET_BYTES])
{
	static const uint8_t label[] = {'m', 'r', 'c', 'd', ' ', 'r', 'e', 'c', 'o', 'r', 'd', ' '};
	uint8_t info[sizeof(label) + 1 + 2 * MRC_HELLO_BODY_BYTES + MRC_AUTH_BODY_BYTES + 1];
	uint8_t salt[2 * MRC_HELLO_NONCE_BYTES], prk[MRCD_AUTH_SECRET_BYTES];
	uint8_t *at = info;
	int r;

	MRC_ASSERT(from == MRCD_AUTH_INITIATOR || from == MRCD_AUTH_RESPONDER);
	memcpy(salt, hello_i + MRC_HELLO_NONCE_AT, MRC_HELLO_NONCE_BYTES);
	memcpy(salt + MRC_HELLO_NONCE_BYTES, hello_r + MRC_HELLO_NONCE_AT, MRC_HELLO_NONCE_BYTES);
	memcpy(at, label, sizeof(label));
	at += sizeof(label);
	*at++ = (uint8_t)from;
	memcpy(at, hello_i, MRC_HELLO_BODY_BYTES);
	at += MRC_HELLO_BODY_BYTES;
	memcpy(at, hello_r, MRC_HELLO_BODY_BYTES);
	at += MRC_HELLO_BODY_BYTES;
	memcpy(at, body, MRC_AUTH_BODY_BYTES);
	r = hmac(salt, sizeof(salt), key->bytes, key->len_bytes, prk);
	if (r == 0)
		r = expand(prk, info, sizeof(info), secret_out);
	OPENSSL_cleanse(prk, sizeof(prk));
	return r;
}
