/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "mrcd_auth.h"

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Key and first nonce are made of the secret, and so is the next secret. */
static int key_make(struct mrcd_seal *seal)
{
	uint8_t key[MRCD_SEAL_SECRET_BYTES], iv[MRCD_SEAL_SECRET_BYTES];
	int r = -EIO;

	if (mrcd_auth_expand(seal->secret, "mrcd key", key) == 0 &&
	    mrcd_auth_expand(seal->secret, "mrcd iv", iv) == 0 &&
	    EVP_CipherInit_ex(seal->cipher, NULL, NULL, key, NULL, seal->is_sealing) == 1) {
		memcpy(seal->iv, iv, sizeof(seal->iv));
		r = 0;
	}
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(iv, sizeof(iv));
	return r;
}

int mrcd_seal_init(struct mrcd_seal *seal, const uint8_t secret[MRCD_SEAL_SECRET_BYTES],
		   bool is_sealing)
{
	memset(seal, 0, sizeof(*seal));
	seal->is_sealing = is_sealing;
	seal->records_max = MRCD_SEAL_RECORDS_MAX;
	memcpy(seal->secret, secret, sizeof(seal->secret));
	seal->cipher = EVP_CIPHER_CTX_new();
	if (!seal->cipher ||
	    EVP_CipherInit_ex(seal->cipher, EVP_aes_256_gcm(), NULL, NULL, NULL, is_sealing) != 1)
		return -EIO;
	return key_make(seal);
}

void mrcd_seal_fini(struct mrcd_seal *seal)
{
	EVP_CIPHER_CTX_free(seal->cipher);
	OPENSSL_cleanse(seal, sizeof(*seal));
}

/* The nonce of the next record, and the length in front of it as what is authenticated besides. */
static int record_begin(struct mrcd_seal *seal, const uint8_t hdr[MRCD_SEAL_HDR_BYTES])
{
	uint8_t nonce[MRCD_SEAL_IV_BYTES], next[MRCD_SEAL_SECRET_BYTES];
	int len;

	if (seal->count > 0 && seal->count % seal->records_max == 0) {
		if (mrcd_auth_expand(seal->secret, "mrcd next", next) < 0)
			return -EIO;
		memcpy(seal->secret, next, sizeof(seal->secret));
		OPENSSL_cleanse(next, sizeof(next));
		if (key_make(seal) < 0)
			return -EIO;
	}
	memcpy(nonce, seal->iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[MRCD_SEAL_IV_BYTES - 1 - i] ^= (uint8_t)(seal->count >> 8 * i);
	/* Whatever becomes of this record, its nonce is used. */
	seal->count++;
	if (EVP_CipherInit_ex(seal->cipher, NULL, NULL, NULL, nonce, seal->is_sealing) != 1 ||
	    EVP_CipherUpdate(seal->cipher, NULL, &len, hdr, MRCD_SEAL_HDR_BYTES) != 1)
		return -EIO;
	return 0;
}

int mrcd_seal_begin(struct mrcd_seal *seal, uint8_t *record, uint32_t len)
{
	MRC_ASSERT(len >= 1 && len <= MRCD_SEAL_PLAIN_MAX);
	for (uint32_t i = 0; i < MRCD_SEAL_HDR_BYTES; i++)
		record[i] = (uint8_t)(len >> 8 * i);
	seal->at = record + MRCD_SEAL_HDR_BYTES;
	return record_begin(seal, record);
}

int mrcd_seal_add(struct mrcd_seal *seal, const void *part, uint32_t len)
{
	int out_len = 0;

	if (EVP_CipherUpdate(seal->cipher, seal->at, &out_len, part, (int)len) != 1)
		return -EIO;
	MRC_ASSERT(out_len == (int)len);
	seal->at += len;
	return 0;
}

int mrcd_seal_end(struct mrcd_seal *seal, const uint8_t *record)
{
	int out_len = 0;

	MRC_ASSERT((uint32_t)(seal->at - record) == MRCD_SEAL_HDR_BYTES + get_u32(record));
	if (EVP_CipherFinal_ex(seal->cipher, seal->at, &out_len) != 1 ||
	    EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_GET_TAG, MRCD_SEAL_TAG_BYTES,
				seal->at) != 1)
		return -EIO;
	seal->at += MRCD_SEAL_TAG_BYTES;
	return (int)(seal->at - record);
}

int mrcd_seal_record_len(const uint8_t hdr[MRCD_SEAL_HDR_BYTES])
{
	uint32_t len = get_u32(hdr);

	if (len < 1 || len > MRCD_SEAL_PLAIN_MAX)
		return -EPROTO;
	return (int)(MRCD_SEAL_HDR_BYTES + len + MRCD_SEAL_TAG_BYTES);
}

int mrcd_seal_open(struct mrcd_seal *seal, const uint8_t *record, uint32_t record_len,
		   uint8_t *plain)
{
	const uint8_t *text = record + MRCD_SEAL_HDR_BYTES;
	int len = (int)(record_len - MRCD_SEAL_HDR_BYTES - MRCD_SEAL_TAG_BYTES);
	uint8_t tag[MRCD_SEAL_TAG_BYTES];
	int out_len = 0;

	MRC_ASSERT(mrcd_seal_record_len(record) == (int)record_len);
	memcpy(tag, text + len, sizeof(tag));
	if (record_begin(seal, record) < 0 ||
	    EVP_CipherUpdate(seal->cipher, plain, &out_len, text, len) != 1 ||
	    EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) != 1 ||
	    EVP_CipherFinal_ex(seal->cipher, plain + len, &out_len) != 1)
		return -EBADMSG;
	return len;
}
