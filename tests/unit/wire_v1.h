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

#define WIRE_V1_HDR_BYTES   80U
#define WIRE_V1_HELLO_BYTES 208U
#define WIRE_V1_AUTH_BYTES  16U

/* A header's fields in the order of the wire, `version` and `reserved` left out. */
enum {
	WIRE_V1_TYPE,
	WIRE_V1_FLAGS,
	WIRE_V1_CONN_EPOCH,
	WIRE_V1_PATH_EPOCH,
	WIRE_V1_WRITER_PATH,
	WIRE_V1_WRITER_EPOCH,
	WIRE_V1_CHANNEL,
	WIRE_V1_BODY_LEN,
	WIRE_V1_MSG,
	WIRE_V1_OFFSET,
	WIRE_V1_MSG_LEN,
	WIRE_V1_ADDR,
	WIRE_V1_ARG,
	WIRE_V1_BODY_CRC,
	WIRE_V1_FIELDS
};

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

void wire_v1_hello_encode(const struct wire_v1_hello *hello, uint8_t out[WIRE_V1_HELLO_BYTES]);
int wire_v1_hello_decode(const uint8_t in[WIRE_V1_HELLO_BYTES], struct wire_v1_hello *hello_out);
/* What it concludes, and says in AUTH when it is the initiator. */
void wire_v1_conclude(const struct wire_v1_hello *initiator, const struct wire_v1_hello *responder,
		      uint8_t auth_out[WIRE_V1_AUTH_BYTES]);

#endif
