/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_handshake.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mrcd_crc.h"
#include "mrcd_worker.h"

#define HELLO_I_BODY_BYTES MRC_HELLO_BODY_BYTES
#define HELLO_R_BODY_BYTES (MRC_HELLO_BODY_BYTES + MRC_HELLO_MAC_BYTES)
#define AUTH_BODY_BYTES    (MRC_AUTH_BODY_BYTES + MRC_HELLO_MAC_BYTES)
#define READY_SAID_BYTES   16U /* without its proof */
#define READY_BODY_BYTES   (READY_SAID_BYTES + MRC_HELLO_MAC_BYTES)
#define MAGIC_BYTES        4U

static_assert(READY_SAID_BYTES == MRC_AUTH_BODY_BYTES, "a proof is over a body of this length");

/* ---- what we say ---- */

/* One frame into `out`; its body lies behind the header already. */
static void frame_say(struct mrcd_handshake *hs, enum mrc_wire_type type, uint32_t body_len)
{
	struct mrc_wire_hdr hdr = {.type = (uint8_t)type, .body_len = body_len};

	hdr.body_crc = mrcd_crc32c(0, hs->out + MRC_WIRE_HDR_BYTES, body_len);
	mrc_wire_encode(&hdr, mrcd_crc32c, hs->out);
	hs->out_len = MRC_WIRE_HDR_BYTES + body_len;
}

static void ours_make(struct mrcd_handshake *hs)
{
	mrc_conn_hello(mrcd_peer_conn(hs->peer), hs->path_index, &hs->ours);
	/* What is written directly passes by all records. */
	if (mrc_hello_requires_encryption(&hs->ours))
		hs->is_direct_capable = false;
	hs->ours.is_direct_capable = hs->is_direct_capable;
	mrcd_auth_random(hs->ours.nonce, sizeof(hs->ours.nonce));
}

void mrcd_handshake_begin(struct mrcd_handshake *hs, struct mrcd_rail *rail, struct mrcd_peer *peer,
			  uint8_t path_index, const char *source,
			  const struct mrcd_handshake_device *device)
{
	memset(hs, 0, sizeof(*hs));
	hs->rail = rail;
	hs->peer = peer;
	hs->path_index = path_index;
	hs->is_initiator = true;
	hs->is_direct_required = device && device->is_required;
	hs->is_direct_capable = device && device->is_usable;
	snprintf(hs->source, sizeof(hs->source), "%s", source);

	ours_make(hs);
	mrc_hello_encode(&hs->ours, hs->hello_i);
	memcpy(hs->out + MRC_WIRE_HDR_BYTES, hs->hello_i, sizeof(hs->hello_i));
	frame_say(hs, MRC_WIRE_HELLO, HELLO_I_BODY_BYTES);
}

void mrcd_handshake_await(struct mrcd_handshake *hs, struct mrcd_rail *rail, const char *source,
			  const struct mrcd_handshake_device *device)
{
	memset(hs, 0, sizeof(*hs));
	hs->rail = rail;
	hs->is_direct_required = device && device->is_required;
	hs->is_direct_capable = device && device->is_usable && device->port != 0;
	hs->device_port = hs->is_direct_capable ? device->port : 0;
	snprintf(hs->source, sizeof(hs->source), "%s", source);
}

/* ---- what we hear ---- */

static int refuse(struct mrcd_handshake *hs, enum mrcd_refusal refusal, const char *why)
{
	hs->state = MRCD_HANDSHAKE_REFUSED;
	hs->refusal = refusal;
	hs->why = why;
	hs->out_len = 0;
	return -EACCES;
}

/* The one kind of frame that may come now. */
static enum mrc_wire_type type_want(const struct mrcd_handshake *hs)
{
	if (hs->state == MRCD_HANDSHAKE_HELLO)
		return MRC_WIRE_HELLO;
	return hs->state == MRCD_HANDSHAKE_AUTH ? MRC_WIRE_AUTH : MRC_WIRE_READY;
}

static uint32_t body_len_want(const struct mrcd_handshake *hs)
{
	if (hs->state == MRCD_HANDSHAKE_AUTH)
		return AUTH_BODY_BYTES;
	if (hs->state == MRCD_HANDSHAKE_READY)
		return READY_BODY_BYTES;
	return hs->is_initiator ? HELLO_R_BODY_BYTES : HELLO_I_BODY_BYTES;
}

uint32_t mrcd_handshake_want(const struct mrcd_handshake *hs)
{
	if (hs->state == MRCD_HANDSHAKE_DONE || hs->state == MRCD_HANDSHAKE_REFUSED)
		return 0;
	/* The length of each frame is known beforehand, so nothing a stranger says sets it. */
	if (hs->in_len < MRC_WIRE_HDR_BYTES)
		return MRC_WIRE_HDR_BYTES - hs->in_len;
	return MRC_WIRE_HDR_BYTES + body_len_want(hs) - hs->in_len;
}

static int header_check(struct mrcd_handshake *hs, struct mrc_wire_hdr *hdr)
{
	int r = mrc_wire_decode(hs->in, mrcd_crc32c, hdr);

	if (r == -EBADMSG)
		return refuse(hs, MRCD_REFUSAL_MAGIC, "does not speak this protocol version");
	if (r == -EILSEQ)
		return refuse(hs, MRCD_REFUSAL_DAMAGED, "header checksum wrong");
	if (r < 0)
		return refuse(hs, MRCD_REFUSAL_FIELD, "header field out of range");
	if (hdr->type != type_want(hs))
		return refuse(hs, MRCD_REFUSAL_FIELD, "another frame than the handshake's next");
	if (hdr->body_len != body_len_want(hs))
		return refuse(hs, MRCD_REFUSAL_FIELD, "length of a handshake frame is wrong");
	if (hdr->flags || hdr->conn_epoch || hdr->path_epoch || hdr->writer_path ||
	    hdr->writer_epoch || hdr->channel || hdr->msg || hdr->offset || hdr->msg_len ||
	    hdr->addr || hdr->arg)
		return refuse(hs, MRCD_REFUSAL_FIELD, "header field set that must be 0");
	return 0;
}

/* What a HELLO must say beside ours. */
static int pair_check(struct mrcd_handshake *hs)
{
	const struct mrc_hello *ours = &hs->ours, *theirs = &hs->theirs;

	if (!strcmp(theirs->host, ours->host) || theirs->boot_id == ours->boot_id ||
	    !memcmp(theirs->nonce, ours->nonce, MRC_HELLO_FRESH_BYTES))
		return refuse(hs, MRCD_REFUSAL_SELF, "claims to be this host itself");
	if (strcmp(theirs->to_host, ours->host) != 0)
		return refuse(hs, MRCD_REFUSAL_NAME, "wants to speak to another host than this");
	if (strcmp(theirs->host, ours->to_host) != 0)
		return refuse(hs, MRCD_REFUSAL_NAME, "is another host than expected here");
	return 0;
}

static const struct mrcd_key *keys_of(struct mrcd_handshake *hs, uint32_t *count_out)
{
	const struct mrcd_key *keys = mrcd_peer_keys(hs->peer, count_out);

	return *count_out ? keys : NULL;
}

static int conclude(struct mrcd_handshake *hs)
{
	const struct mrc_hello *i = hs->is_initiator ? &hs->ours : &hs->theirs;
	const struct mrc_hello *r = hs->is_initiator ? &hs->theirs : &hs->ours;

	mrc_hello_conclude(i, r, &hs->auth);
	hs->is_direct_capable = hs->is_direct_capable && hs->theirs.is_direct_capable &&
				!mrc_hello_requires_encryption(&hs->theirs);
	if (hs->auth.version == 0)
		return refuse(hs, MRCD_REFUSAL_MAGIC,
			      "has no protocol version in common with this host");
	return 0;
}

/* Judged before our proof is said, as device_check(). */
static int encryption_check(struct mrcd_handshake *hs)
{
	bool is_direct = hs->is_direct_capable && hs->theirs.is_direct_capable;
	bool is_required_here = mrc_hello_requires_encryption(&hs->ours);
	bool is_required = is_required_here || mrc_hello_requires_encryption(&hs->theirs);

	if (mrc_hello_encryption(&hs->ours, &hs->theirs, is_direct, &hs->is_sealed) < 0)
		return refuse(hs, MRCD_REFUSAL_OPEN,
			      is_required_here ? MRCD_WHY_OPEN_THERE : MRCD_WHY_OPEN_HERE);
	if (is_required && hs->is_direct_required)
		return refuse(hs, MRCD_REFUSAL_OPEN, MRCD_WHY_OPEN_VERBS);
	return 0;
}

/* The secrets of both directions, from what was said and proved with `key`. `body`: of AUTH. */
static int secrets_make(struct mrcd_handshake *hs, const struct mrcd_key *key, const uint8_t *body)
{
	if (!hs->is_sealed)
		return 0;
	if (mrcd_auth_secret(key, MRCD_AUTH_INITIATOR, hs->hello_i, hs->hello_r, body,
			     hs->is_initiator ? hs->secret_out : hs->secret_in) < 0 ||
	    mrcd_auth_secret(key, MRCD_AUTH_RESPONDER, hs->hello_i, hs->hello_r, body,
			     hs->is_initiator ? hs->secret_in : hs->secret_out) < 0)
		return refuse(hs, MRCD_REFUSAL_STALE, "the secrets could not be computed");
	return 0;
}

/* Judged before our proof is said, so that the other end does not take up a path that is none. */
static int device_check(struct mrcd_handshake *hs)
{
	if (!hs->is_direct_required)
		return 0;
	if (!hs->is_direct_capable)
		return refuse(hs, MRCD_REFUSAL_DEVICE, MRCD_WHY_NO_DEVICE_HERE);
	if (!hs->theirs.is_direct_capable)
		return refuse(hs, MRCD_REFUSAL_DEVICE, MRCD_WHY_NO_DEVICE_THERE);
	return 0;
}

static void ready_encode(uint16_t port, uint8_t out[READY_SAID_BYTES])
{
	struct mrc_cursor c = {.at = out, .end = out + READY_SAID_BYTES, .ok = true};

	memset(out, 0, READY_SAID_BYTES);
	mrc_put_u16(&c, port);
}

/* The port; 0: it is not as it should be. */
static uint16_t ready_decode(const uint8_t in[READY_SAID_BYTES])
{
	uint16_t port = (uint16_t)(in[0] | in[1] << 8);
	uint8_t again[READY_SAID_BYTES];

	ready_encode(port, again);
	return memcmp(in, again, sizeof(again)) ? 0 : port;
}

/* Responder: the initiator's HELLO is whole. */
static int hello_i_take(struct mrcd_handshake *hs, const uint8_t *body)
{
	uint8_t *out = hs->out + MRC_WIRE_HDR_BYTES;
	const struct mrcd_key *keys;
	uint32_t key_count = 0;
	const char *why = "unknown host";
	int r;

	if (mrc_hello_decode(body, &hs->theirs) < 0)
		return refuse(hs, MRCD_REFUSAL_FIELD, "HELLO field out of range");
	hs->peer = mrcd_peer_match(hs->rail, &hs->theirs, hs->source, &hs->path_index, &why);
	if (!hs->peer)
		return refuse(hs, MRCD_REFUSAL_NAME, why);
	ours_make(hs);
	/* Paths are numbered by their initiator. */
	hs->ours.path_id = hs->theirs.path_id;
	r = pair_check(hs);
	if (r == 0)
		r = encryption_check(hs);
	if (r == 0)
		r = device_check(hs);
	if (r < 0)
		return r;
	if (!mrc_hello_is_initiator(hs->theirs.host, hs->ours.host))
		return refuse(hs, MRCD_REFUSAL_NAME, "it is this host's part to connect");
	keys = keys_of(hs, &key_count);
	if (!keys)
		return refuse(hs, MRCD_REFUSAL_KEY, "there is no key for this host");

	memcpy(hs->hello_i, body, sizeof(hs->hello_i));
	mrc_hello_encode(&hs->ours, hs->hello_r);
	memcpy(out, hs->hello_r, sizeof(hs->hello_r));
	r = mrcd_auth_prove(&keys[0], MRCD_AUTH_RESPONDER, hs->hello_i, hs->hello_r, NULL,
			    out + sizeof(hs->hello_r));
	if (r < 0)
		return refuse(hs, MRCD_REFUSAL_STALE, "the proof could not be computed");
	frame_say(hs, MRC_WIRE_HELLO, HELLO_R_BODY_BYTES);
	hs->state = MRCD_HANDSHAKE_AUTH;
	return conclude(hs);
}

/* Initiator: the responder's HELLO and proof are whole. */
static int hello_r_take(struct mrcd_handshake *hs, const uint8_t *body)
{
	uint8_t *out = hs->out + MRC_WIRE_HDR_BYTES;
	const struct mrcd_key *keys;
	uint32_t key_count = 0, key_index;
	int r;

	if (mrc_hello_decode(body, &hs->theirs) < 0)
		return refuse(hs, MRCD_REFUSAL_FIELD, "HELLO field out of range");
	r = pair_check(hs);
	if (r < 0)
		return r;
	if (hs->theirs.path_id != hs->ours.path_id)
		return refuse(hs, MRCD_REFUSAL_FIELD, "answers for another path");
	keys = keys_of(hs, &key_count);
	if (!keys)
		return refuse(hs, MRCD_REFUSAL_KEY, "there is no key for this host");
	memcpy(hs->hello_r, body, sizeof(hs->hello_r));
	if (!mrcd_auth_check(keys, key_count, MRCD_AUTH_RESPONDER, hs->hello_i, hs->hello_r, NULL,
			     body + sizeof(hs->hello_r), &key_index))
		return refuse(hs, MRCD_REFUSAL_KEY, "has another key than ours");
	r = encryption_check(hs);
	if (r == 0)
		r = device_check(hs);
	if (r < 0)
		return r;

	r = conclude(hs);
	if (r < 0)
		return r;
	/* Better to find out now than after the other end has taken the path up. */
	if (mrc_conn_join(mrcd_peer_conn(hs->peer), hs->path_index, &hs->auth, hs->theirs.boot_id) <
	    0)
		return refuse(hs, MRCD_REFUSAL_STALE, "epochs have moved on");
	mrc_auth_encode(&hs->auth, out);
	/* The key it proved is the one it has, which matters while keys are being changed. */
	r = mrcd_auth_prove(&keys[key_index], MRCD_AUTH_INITIATOR, hs->hello_i, hs->hello_r, out,
			    out + MRC_AUTH_BODY_BYTES);
	if (r < 0)
		return refuse(hs, MRCD_REFUSAL_STALE, "the proof could not be computed");
	if (secrets_make(hs, &keys[key_index], out) < 0)
		return -EACCES;
	frame_say(hs, MRC_WIRE_AUTH, AUTH_BODY_BYTES);
	memcpy(hs->key_id, keys[key_index].id, sizeof(hs->key_id));
	hs->state = hs->is_direct_capable ? MRCD_HANDSHAKE_READY : MRCD_HANDSHAKE_DONE;
	return 0;
}

/* Responder, both ends capable: say where to connect, with the key that was just proved. */
static int ready_say(struct mrcd_handshake *hs, const struct mrcd_key *key)
{
	uint8_t *out = hs->out + MRC_WIRE_HDR_BYTES;

	ready_encode(hs->device_port, out);
	if (mrcd_auth_prove(key, MRCD_AUTH_READY, hs->hello_i, hs->hello_r, out,
			    out + READY_SAID_BYTES) < 0 ||
	    mrcd_auth_prove(key, MRCD_AUTH_CONNECT, hs->hello_i, hs->hello_r, out,
			    hs->device_token) < 0)
		return refuse(hs, MRCD_REFUSAL_STALE, "the proof could not be computed");
	frame_say(hs, MRC_WIRE_READY, READY_BODY_BYTES);
	return 0;
}

/* Responder: the initiator's proof is whole. */
static int auth_take(struct mrcd_handshake *hs, const uint8_t *body)
{
	const struct mrcd_key *keys;
	uint32_t key_count = 0, key_index;
	struct mrc_auth auth;

	keys = keys_of(hs, &key_count);
	if (!keys || !mrcd_auth_check(keys, key_count, MRCD_AUTH_INITIATOR, hs->hello_i,
				      hs->hello_r, body, body + MRC_AUTH_BODY_BYTES, &key_index))
		return refuse(hs, MRCD_REFUSAL_KEY, "has another key than ours");
	if (mrc_auth_decode(body, &auth) < 0 || auth.conn_epoch != hs->auth.conn_epoch ||
	    auth.path_epoch != hs->auth.path_epoch)
		return refuse(hs, MRCD_REFUSAL_EPOCHS, "concludes other epochs than this host");
	if (secrets_make(hs, &keys[key_index], body) < 0)
		return -EACCES;
	if (hs->is_direct_capable && ready_say(hs, &keys[key_index]) < 0)
		return -EACCES;
	memcpy(hs->key_id, keys[key_index].id, sizeof(hs->key_id));
	hs->state = MRCD_HANDSHAKE_DONE;
	return 0;
}

/* Initiator: where to connect is known. */
static int ready_take(struct mrcd_handshake *hs, const uint8_t *body)
{
	const struct mrcd_key *keys;
	uint32_t key_count = 0, key_index;

	keys = keys_of(hs, &key_count);
	if (!keys || !mrcd_auth_check(keys, key_count, MRCD_AUTH_READY, hs->hello_i, hs->hello_r,
				      body, body + READY_SAID_BYTES, &key_index))
		return refuse(hs, MRCD_REFUSAL_KEY, "has another key than ours");
	hs->device_port = ready_decode(body);
	if (!hs->device_port)
		return refuse(hs, MRCD_REFUSAL_FIELD, "READY field out of range");
	if (mrcd_auth_prove(&keys[key_index], MRCD_AUTH_CONNECT, hs->hello_i, hs->hello_r, body,
			    hs->device_token) < 0)
		return refuse(hs, MRCD_REFUSAL_STALE, "the proof could not be computed");
	hs->state = MRCD_HANDSHAKE_DONE;
	return 0;
}

int mrcd_handshake_take(struct mrcd_handshake *hs, const void *data, uint32_t len_bytes)
{
	const uint8_t *body = hs->in + MRC_WIRE_HDR_BYTES;
	struct mrc_wire_hdr hdr;
	int r;

	MRC_ASSERT(len_bytes <= mrcd_handshake_want(hs));
	memcpy(hs->in + hs->in_len, data, len_bytes);
	hs->in_len += len_bytes;

	if (hs->in_len < MRC_WIRE_HDR_BYTES) {
		uint8_t magic[MAGIC_BYTES];
		struct mrc_cursor c = {.at = magic, .end = magic + sizeof(magic), .ok = true};

		/* Who asks for a web page says less than a header and then waits. */
		mrc_put_u32(&c, MRC_WIRE_MAGIC);
		if (memcmp(hs->in, magic, MRC_MIN(hs->in_len, MAGIC_BYTES)) != 0)
			return refuse(hs, MRCD_REFUSAL_MAGIC, "does not speak this protocol");
		return 0;
	}
	r = header_check(hs, &hdr);
	if (r < 0)
		return r;
	if (hs->in_len < MRC_WIRE_HDR_BYTES + hdr.body_len)
		return 0;
	if (mrcd_crc32c(0, body, hdr.body_len) != hdr.body_crc)
		return refuse(hs, MRCD_REFUSAL_DAMAGED, "handshake checksum wrong");
	hs->in_len = 0;

	if (hs->state == MRCD_HANDSHAKE_AUTH)
		return auth_take(hs, body);
	if (hs->state == MRCD_HANDSHAKE_READY)
		return ready_take(hs, body);
	return hs->is_initiator ? hello_r_take(hs, body) : hello_i_take(hs, body);
}

/* ---- strangers ---- */

void mrcd_strangers_init(struct mrcd_strangers *strangers)
{
	for (uint32_t i = 0; i < MRCD_REFUSAL_COUNT; i++)
		strangers->limits[i] = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 1);
}

void mrcd_strangers_note(struct mrcd_strangers *strangers, struct mrcd_rail *rail,
			 enum mrcd_refusal refusal, const char *source, const char *why)
{
	struct mrcd_log_limit *limit = &strangers->limits[refusal];
	uint64_t suppressed;

	if (refusal == MRCD_REFUSAL_STALE)
		return;
	rail->strangers++;
	rail->worker->strangers++;
	if (!mrcd_log_allowed(limit, rail->worker->now_ns, &suppressed))
		return;
	if (suppressed)
		mrcd_warn("rail %s: refused %s: %s (and %llu more like it)", rail->conf->name,
			  source, why, (unsigned long long)suppressed);
	else
		mrcd_warn("rail %s: refused %s: %s", rail->conf->name, source, why);
}
