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
