/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire_v1 - how a daemon of wire version 1 speaks and hears, for tests of one version back
 *
 * wire_v1/ holds the codec as it was when version 1 was the only one, byte for
 * byte, and is not to be changed. What it says passes here as bytes and numbers,
 * so that today's structs may differ from those of that time.
 */
#ifndef WIRE_V1_H
#define WIRE_V1_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WIRE_V1_HDR_BYTES   80U
#define WIRE_V1_HELLO_BYTES 208U
#define WIRE_V1_AUTH_BYTES  16U

/* A header's fields in the order of the wire, `version` and `reserved` left out: X(enumerator, member, type) */
#define WIRE_V1_HDR_FIELDS(X)                   \
	X(TYPE, type, uint8_t)                  \
	X(FLAGS, flags, uint16_t)               \
	X(CONN_EPOCH, conn_epoch, uint32_t)     \
	X(PATH_EPOCH, path_epoch, uint32_t)     \
	X(WRITER_PATH, writer_path, uint16_t)   \
	X(WRITER_EPOCH, writer_epoch, uint32_t) \
	X(CHANNEL, channel, uint32_t)           \
	X(BODY_LEN, body_len, uint32_t)         \
	X(MSG, msg, uint64_t)                   \
	X(OFFSET, offset, uint64_t)             \
	X(MSG_LEN, msg_len, uint64_t)           \
	X(ADDR, addr, uint64_t)                 \
	X(ARG, arg, uint64_t)                   \
	X(BODY_CRC, body_crc, uint32_t)

enum {
#define FIELD(id, member, type) WIRE_V1_##id,
	WIRE_V1_HDR_FIELDS(FIELD)
#undef FIELD
		WIRE_V1_FIELDS
};

/* For initializers: of an array, in the order of the enumerators, and of either time's header. */
#define WIRE_V1_FIELD_OF_HDR(id, member, type) hdr->member,
#define WIRE_V1_HDR_OF_FIELD(id, member, type) .member = (type)fields[WIRE_V1_##id],

typedef uint32_t (*wire_v1_crc_fn)(uint32_t crc, const void *data, size_t len);

void wire_v1_header_encode(const uint64_t fields[WIRE_V1_FIELDS], wire_v1_crc_fn crc32c,
			   uint8_t out[WIRE_V1_HDR_BYTES]);
/* The answer of its decoder; fields_out is set when that is 0. */
int wire_v1_header_decode(const uint8_t in[WIRE_V1_HDR_BYTES], wire_v1_crc_fn crc32c,
			  uint64_t fields_out[WIRE_V1_FIELDS]);

struct wire_v1_hello {
	char host[64], to_host[64];
	uint64_t boot_id, peer_boot_id;
	uint32_t conn_epoch, conn_epoch_last, path_epoch_last;
	uint16_t path_id, is_direct_capable;
	uint8_t nonce[32];
};

/* From one hello to another, of whatever time: what both have. */
#define WIRE_V1_HELLO_COPY(to, from)                                           \
	do {                                                                   \
		memcpy((to)->host, (from)->host, sizeof((to)->host));          \
		memcpy((to)->to_host, (from)->to_host, sizeof((to)->to_host)); \
		memcpy((to)->nonce, (from)->nonce, sizeof((to)->nonce));       \
		(to)->boot_id = (from)->boot_id;                               \
		(to)->peer_boot_id = (from)->peer_boot_id;                     \
		(to)->conn_epoch = (from)->conn_epoch;                         \
		(to)->conn_epoch_last = (from)->conn_epoch_last;               \
		(to)->path_epoch_last = (from)->path_epoch_last;               \
		(to)->path_id = (from)->path_id;                               \
		(to)->is_direct_capable = (from)->is_direct_capable;           \
	} while (0)

void wire_v1_hello_encode(const struct wire_v1_hello *hello, uint8_t out[WIRE_V1_HELLO_BYTES]);
int wire_v1_hello_decode(const uint8_t in[WIRE_V1_HELLO_BYTES], struct wire_v1_hello *hello_out);
/* What it concludes, and says in AUTH when it is the initiator. */
void wire_v1_conclude(const struct wire_v1_hello *initiator, const struct wire_v1_hello *responder,
		      uint8_t auth_out[WIRE_V1_AUTH_BYTES]);

#endif
