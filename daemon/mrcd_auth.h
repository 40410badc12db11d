/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_auth - proofs of the shared key (HMAC-SHA256 of OpenSSL), nonces, boot ids
 */
#ifndef MRCD_AUTH_H
#define MRCD_AUTH_H

#include "mrc_hello.h"
#include "mrcd_conf.h"

/* The role says what is proved, so no proof passes for another. */
enum mrcd_auth_role {
	MRCD_AUTH_RESPONDER = 'R',
	MRCD_AUTH_INITIATOR = 'I',
	MRCD_AUTH_READY = 'D',   /* the responder's, over its READY */
	MRCD_AUTH_CONNECT = 'C', /* not said: the token that opens a queue pair */
};

/* Fresh random bytes; aborts when the kernel has none. */
void mrcd_auth_random(void *out, size_t len_bytes);

/*
 * What people tell keys apart by: 12 hexadecimal digits, made with the key and not to be turned
 * back. Written to key->id.
 */
void mrcd_auth_key_id(struct mrcd_key *key);

/*
 * The proof: HMAC(key, role || initiator's HELLO body || responder's HELLO body || body).
 * `body` is that of AUTH or READY, and NULL in the responder's proof. -EIO: the library failed.
 */
int mrcd_auth_prove(const struct mrcd_key *key, enum mrcd_auth_role role,
		    const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		    const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		    const uint8_t body[MRC_AUTH_BODY_BYTES], uint8_t mac_out[MRC_HELLO_MAC_BYTES]);

/*
 * HKDF (RFC 5869) with SHA-256. A path's secret in one direction is made of the
 * key, both nonces and all that both ends have said and proved:
 *	HKDF(salt: initiator's nonce || responder's, as they are in the HELLOs, key,
 *	     info: "mrcd record " || direction || initiator's HELLO || responder's HELLO || AUTH)
 * -EIO: the library failed.
 */
#define MRCD_AUTH_SECRET_BYTES 32U
int mrcd_auth_secret(const struct mrcd_key *key, enum mrcd_auth_role from,
		     const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		     const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		     const uint8_t body[MRC_AUTH_BODY_BYTES],
		     uint8_t secret_out[MRCD_AUTH_SECRET_BYTES]);
/* The step of HKDF that makes one secret of another: `label` tells its purpose. */
int mrcd_auth_expand(const uint8_t secret[MRCD_AUTH_SECRET_BYTES], const char *label,
		     uint8_t out[MRCD_AUTH_SECRET_BYTES]);

/* Does `mac` prove any of these keys? Constant time. *key_index_out: which. */
bool mrcd_auth_check(const struct mrcd_key *keys, uint32_t key_count, enum mrcd_auth_role role,
		     const uint8_t hello_i[MRC_HELLO_BODY_BYTES],
		     const uint8_t hello_r[MRC_HELLO_BODY_BYTES],
		     const uint8_t body[MRC_AUTH_BODY_BYTES],
		     const uint8_t mac[MRC_HELLO_MAC_BYTES], uint32_t *key_index_out);

#endif
