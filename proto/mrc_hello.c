/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_hello.h"

#include <string.h>

/*
 * Begins the second half of the nonce of who says its versions. A version 1 host draws
 * these ten bytes once in 2^80 handshakes. (TLS 1.3 marks downgrades in a random value
 * for the same reason: RFC 8446, section 4.1.3.)
 */
static const uint8_t version_mark[10] = {'M', 'R', 'C', 'v', 'e', 'r', 's', 'i', 'o', 'n'};

static void versions_put(const struct mrc_hello *hello, struct mrc_cursor *c)
{
	mrc_put_bytes(c, version_mark, sizeof(version_mark));
	mrc_put_u8(c, hello->version_min);
	mrc_put_u8(c, hello->version_max);
	mrc_put_u32(c, hello->features);
}

static int versions_take(struct mrc_hello *hello)
{
	struct mrc_cursor c = {.at = hello->nonce + MRC_HELLO_FRESH_BYTES,
			       .end = hello->nonce + MRC_HELLO_NONCE_BYTES,
			       .ok = true};

	hello->version_min = 1;
	hello->version_max = 1;
	hello->features = 0;
	if (memcmp(c.at, version_mark, sizeof(version_mark)) != 0)
		return 0;
	c.at += sizeof(version_mark);
	hello->version_min = mrc_get_u8(&c);
	hello->version_max = mrc_get_u8(&c);
	hello->features = mrc_get_u32(&c);
	return hello->version_min == 0 || hello->version_min > hello->version_max ? -EPROTO : 0;
}

void mrc_hello_encode(const struct mrc_hello *hello, uint8_t out[MRC_HELLO_BODY_BYTES])
{
	struct mrc_cursor c = {.at = out, .end = out + MRC_HELLO_BODY_BYTES, .ok = true};

	memset(out, 0, MRC_HELLO_BODY_BYTES);
	mrc_put_bytes(&c, hello->host, sizeof(hello->host));
	mrc_put_bytes(&c, hello->to_host, sizeof(hello->to_host));
	mrc_put_u64(&c, hello->boot_id);
	mrc_put_u64(&c, hello->peer_boot_id);
	mrc_put_u32(&c, hello->conn_epoch);
	mrc_put_u32(&c, hello->conn_epoch_last);
	mrc_put_u32(&c, hello->path_epoch_last);
	mrc_put_u16(&c, hello->path_id);
	mrc_put_u16(&c, hello->is_direct_capable);
	if (hello->version_max > 1) {
		mrc_put_bytes(&c, hello->nonce, MRC_HELLO_FRESH_BYTES);
		versions_put(hello, &c);
	} else {
		mrc_put_bytes(&c, hello->nonce, sizeof(hello->nonce));
	}
	MRC_ASSERT(c.ok);
}

/* A name is 1 to MRC_NAME_MAX of [A-Za-z0-9._-], and zeros to the end of its field. */
static bool is_name(const char name[MRC_NAME_MAX + 1])
{
	size_t len = 0;

	while (len <= MRC_NAME_MAX && name[len]) {
		char ch = name[len];
		bool is_fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			       (ch >= '0' && ch <= '9') || ch == '.' || ch == '_' || ch == '-';

		if (!is_fine)
			return false;
		len++;
	}
	if (len == 0 || len > MRC_NAME_MAX)
		return false;
	for (size_t i = len; i <= MRC_NAME_MAX; i++) {
		if (name[i])
			return false;
	}
	return true;
}

int mrc_hello_decode(const uint8_t in[MRC_HELLO_BODY_BYTES], struct mrc_hello *hello_out)
{
	uint8_t copy[MRC_HELLO_BODY_BYTES];
	struct mrc_cursor c = {.at = copy, .end = copy + sizeof(copy), .ok = true};

	memcpy(copy, in, sizeof(copy));
	mrc_get_bytes(&c, hello_out->host, sizeof(hello_out->host));
	mrc_get_bytes(&c, hello_out->to_host, sizeof(hello_out->to_host));
	hello_out->boot_id = mrc_get_u64(&c);
	hello_out->peer_boot_id = mrc_get_u64(&c);
	hello_out->conn_epoch = mrc_get_u32(&c);
	hello_out->conn_epoch_last = mrc_get_u32(&c);
	hello_out->path_epoch_last = mrc_get_u32(&c);
	hello_out->path_id = mrc_get_u16(&c);
	hello_out->is_direct_capable = mrc_get_u16(&c);
	mrc_get_bytes(&c, hello_out->nonce, sizeof(hello_out->nonce));
	MRC_ASSERT(c.ok);
	while (c.at < c.end) {
		if (mrc_get_u8(&c))
			return -EPROTO;
	}
	if (!is_name(hello_out->host) || !is_name(hello_out->to_host))
		return -EPROTO;
	if (hello_out->boot_id == 0 || hello_out->path_id >= MRC_PATHS_MAX ||
	    hello_out->is_direct_capable > 1)
		return -EPROTO;
	/* Epochs only grow; one near the end is a lie or a bug, and must not make ours wrap. */
	if (hello_out->conn_epoch > hello_out->conn_epoch_last ||
	    hello_out->conn_epoch_last >= UINT32_MAX / 2 ||
	    hello_out->path_epoch_last >= UINT32_MAX / 2)
		return -EPROTO;
	return versions_take(hello_out);
}

void mrc_auth_encode(const struct mrc_auth *auth, uint8_t out[MRC_AUTH_BODY_BYTES])
{
	struct mrc_cursor c = {.at = out, .end = out + MRC_AUTH_BODY_BYTES, .ok = true};

	memset(out, 0, MRC_AUTH_BODY_BYTES);
	mrc_put_u32(&c, auth->conn_epoch);
	mrc_put_u32(&c, auth->path_epoch);
	MRC_ASSERT(c.ok);
}

int mrc_auth_decode(const uint8_t in[MRC_AUTH_BODY_BYTES], struct mrc_auth *auth_out)
{
	uint8_t copy[MRC_AUTH_BODY_BYTES];
	struct mrc_cursor c = {.at = copy, .end = copy + sizeof(copy), .ok = true};

	memcpy(copy, in, sizeof(copy));
	*auth_out = (struct mrc_auth){0};
	auth_out->conn_epoch = mrc_get_u32(&c);
	auth_out->path_epoch = mrc_get_u32(&c);
	while (c.at < c.end) {
		if (mrc_get_u8(&c))
			return -EPROTO;
	}
	if (auth_out->conn_epoch == 0 || auth_out->path_epoch == 0)
		return -EPROTO;
	return 0;
}

/* The latest version that both know, and what both offer. */
static void versions_conclude(const struct mrc_hello *a, const struct mrc_hello *b,
			      struct mrc_auth *auth_out)
{
	uint8_t version = MRC_MIN(a->version_max, b->version_max);

	if (version < MRC_MAX(a->version_min, b->version_min))
		version = 0;
	auth_out->version = version;
	auth_out->features = version >= 2 ? a->features & b->features : 0;
}

void mrc_hello_conclude(const struct mrc_hello *initiator, const struct mrc_hello *responder,
			struct mrc_auth *auth_out)
{
	bool is_held = initiator->conn_epoch != 0 &&
		       initiator->conn_epoch == responder->conn_epoch &&
		       initiator->peer_boot_id == responder->boot_id &&
		       responder->peer_boot_id == initiator->boot_id;

	/* DESIGN 7.13: if either end no longer holds the conn, a new epoch begins. */
	if (is_held)
		auth_out->conn_epoch = initiator->conn_epoch;
	else
		auth_out->conn_epoch =
			MRC_MAX(initiator->conn_epoch_last, responder->conn_epoch_last) + 1;
	auth_out->path_epoch = MRC_MAX(initiator->path_epoch_last, responder->path_epoch_last) + 1;
	auth_out->held_by_initiator = initiator->conn_epoch;
	auth_out->held_by_responder = responder->conn_epoch;
	versions_conclude(initiator, responder, auth_out);
}

int mrc_hello_encryption(const struct mrc_hello *a, const struct mrc_hello *b, bool is_direct,
			 bool *is_sealed_out)
{
	bool is_wanted = (a->features & b->features & MRC_FEATURE_ENCRYPTION) != 0;
	bool is_required = mrc_hello_requires_encryption(a) || mrc_hello_requires_encryption(b);

	if (is_required && !is_wanted)
		return -EACCES;
	*is_sealed_out = is_wanted && (is_required || !is_direct);
	return 0;
}

bool mrc_hello_is_initiator(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (uint8_t)*a < (uint8_t)*b;
}
