/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_seal - one direction of a stream as records that nobody else can read or change
 *
 *	record:  length of the plaintext, 32 bits, little-endian   4 bytes
 *	         ciphertext                                        1 to 16384
 *	         tag                                               16
 *
 * AES-256-GCM. The length is authenticated with the text. The nonce is the
 * number of the record, which is not sent: a record that is missing, doubled,
 * out of its place or from another path, epoch, direction or host does not open.
 * After so many records the key is replaced by one made of it, at both ends
 * without a word: no key seals more than is safe, and an old one is not kept.
 *
 * Of a record nothing may be used before it has opened.
 *
 * Ownership: embedded. Threads: one at a time. I/O, time: none.
 */
#ifndef MRCD_SEAL_H
#define MRCD_SEAL_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

#define MRCD_SEAL_SECRET_BYTES 32U
#define MRCD_SEAL_IV_BYTES     12U
#define MRCD_SEAL_HDR_BYTES    4U
#define MRCD_SEAL_TAG_BYTES    16U
#define MRCD_SEAL_PLAIN_MAX    16384U
#define MRCD_SEAL_RECORD_MAX   (MRCD_SEAL_HDR_BYTES + MRCD_SEAL_PLAIN_MAX + MRCD_SEAL_TAG_BYTES)
/* 16 GiB: 2^30 blocks, far below the 2^48 or so where GCM begins to tell anything. */
#define MRCD_SEAL_RECORDS_MAX (1U << 20)

struct mrcd_seal {
	EVP_CIPHER_CTX *cipher; /* ours */
	bool is_sealing;
	uint8_t secret[MRCD_SEAL_SECRET_BYTES]; /* the next key is made of it */
	uint8_t iv[MRCD_SEAL_IV_BYTES];
	uint64_t count;       /* records so far */
	uint32_t records_max; /* by one key: MRCD_SEAL_RECORDS_MAX, less in tests */
	uint8_t *at;          /* between begin and end: where the record goes on */
};

/* The secret is copied. -EIO: libcrypto failed. mrcd_seal_fini() in any case. */
int mrcd_seal_init(struct mrcd_seal *seal, const uint8_t secret[MRCD_SEAL_SECRET_BYTES],
		   bool is_sealing);
/* Wipes it. One that is all zeros is fine. */
void mrcd_seal_fini(struct mrcd_seal *seal);

/*
 * Seal a record of `len` bytes (1 to MRCD_SEAL_PLAIN_MAX) into `record`, from
 * parts: begin, then `add` until all of it is there, then `end`, which answers
 * how long the record is. -EIO: libcrypto failed; nothing of it may be sent.
 */
int mrcd_seal_begin(struct mrcd_seal *seal, uint8_t *record, uint32_t len);
int mrcd_seal_add(struct mrcd_seal *seal, const void *part, uint32_t len);
int mrcd_seal_end(struct mrcd_seal *seal, const uint8_t *record);

/*
 * The length of the record that begins with these bytes, all in all.
 * -EPROTO: there is no record of such a length.
 */
int mrcd_seal_record_len(const uint8_t hdr[MRCD_SEAL_HDR_BYTES]);

/*
 * Open a whole record. Answers the length of the plaintext, now in `plain`.
 * -EBADMSG: it is not the one that was sealed here and next; the stream is over.
 */
int mrcd_seal_open(struct mrcd_seal *seal, const uint8_t *record, uint32_t record_len,
		   uint8_t *plain);

#endif
