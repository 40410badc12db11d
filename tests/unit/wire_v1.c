/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire_v1.h"

/* Both versions are linked into one program. */
#define mrc_wire_encode        v1_wire_encode
#define mrc_wire_decode        v1_wire_decode
#define mrc_wire_has_body      v1_wire_has_body
#define mrc_wire_type_name     v1_wire_type_name
#define mrc_put_u8             v1_put_u8
#define mrc_put_u16            v1_put_u16
#define mrc_put_u32            v1_put_u32
#define mrc_put_u64            v1_put_u64
#define mrc_put_bytes          v1_put_bytes
#define mrc_get_u8             v1_get_u8
#define mrc_get_u16            v1_get_u16
#define mrc_get_u32            v1_get_u32
#define mrc_get_u64            v1_get_u64
#define mrc_get_bytes          v1_get_bytes
#define mrc_hello_encode       v1_hello_encode
#define mrc_hello_decode       v1_hello_decode
#define mrc_hello_conclude     v1_hello_conclude
#define mrc_hello_is_initiator v1_hello_is_initiator
#define mrc_auth_encode        v1_auth_encode
#define mrc_auth_decode        v1_auth_decode

/* NOLINTBEGIN(bugprone-suspicious-include): as it was */
#include "wire_v1/mrc_hello.c"
#include "wire_v1/mrc_wire.c"
/* NOLINTEND(bugprone-suspicious-include) */

void wire_v1_header_encode(const uint64_t fields[WIRE_V1_FIELDS], wire_v1_crc_fn crc32c,
			   uint8_t out[WIRE_V1_HDR_BYTES])
{
	struct mrc_wire_hdr hdr = {
		.type = (uint8_t)fields[WIRE_V1_TYPE],
		.flags = (uint16_t)fields[WIRE_V1_FLAGS],
		.conn_epoch = (uint32_t)fields[WIRE_V1_CONN_EPOCH],
		.path_epoch = (uint32_t)fields[WIRE_V1_PATH_EPOCH],
		.writer_path = (uint16_t)fields[WIRE_V1_WRITER_PATH],
		.writer_epoch = (uint32_t)fields[WIRE_V1_WRITER_EPOCH],
		.channel = (uint32_t)fields[WIRE_V1_CHANNEL],
		.body_len = (uint32_t)fields[WIRE_V1_BODY_LEN],
		.msg = fields[WIRE_V1_MSG],
		.offset = fields[WIRE_V1_OFFSET],
		.msg_len = fields[WIRE_V1_MSG_LEN],
		.addr = fields[WIRE_V1_ADDR],
		.arg = fields[WIRE_V1_ARG],
		.body_crc = (uint32_t)fields[WIRE_V1_BODY_CRC],
	};

	mrc_wire_encode(&hdr, crc32c, out);
}

int wire_v1_header_decode(const uint8_t in[WIRE_V1_HDR_BYTES], wire_v1_crc_fn crc32c,
			  uint64_t fields_out[WIRE_V1_FIELDS])
{
	struct mrc_wire_hdr hdr;
	int r = mrc_wire_decode(in, crc32c, &hdr);

	if (r)
		return r;
	fields_out[WIRE_V1_TYPE] = hdr.type;
	fields_out[WIRE_V1_FLAGS] = hdr.flags;
	fields_out[WIRE_V1_CONN_EPOCH] = hdr.conn_epoch;
	fields_out[WIRE_V1_PATH_EPOCH] = hdr.path_epoch;
	fields_out[WIRE_V1_WRITER_PATH] = hdr.writer_path;
	fields_out[WIRE_V1_WRITER_EPOCH] = hdr.writer_epoch;
	fields_out[WIRE_V1_CHANNEL] = hdr.channel;
	fields_out[WIRE_V1_BODY_LEN] = hdr.body_len;
	fields_out[WIRE_V1_MSG] = hdr.msg;
	fields_out[WIRE_V1_OFFSET] = hdr.offset;
	fields_out[WIRE_V1_MSG_LEN] = hdr.msg_len;
	fields_out[WIRE_V1_ADDR] = hdr.addr;
	fields_out[WIRE_V1_ARG] = hdr.arg;
	fields_out[WIRE_V1_BODY_CRC] = hdr.body_crc;
	return 0;
}

static struct mrc_hello hello_of(const struct wire_v1_hello *hello)
{
	struct mrc_hello of = {
		.boot_id = hello->boot_id,
		.peer_boot_id = hello->peer_boot_id,
		.conn_epoch = hello->conn_epoch,
		.conn_epoch_last = hello->conn_epoch_last,
		.path_epoch_last = hello->path_epoch_last,
		.path_id = hello->path_id,
		.is_direct_capable = hello->is_direct_capable,
	};

	memcpy(of.host, hello->host, sizeof(of.host));
	memcpy(of.to_host, hello->to_host, sizeof(of.to_host));
	memcpy(of.nonce, hello->nonce, sizeof(of.nonce));
	return of;
}

void wire_v1_hello_encode(const struct wire_v1_hello *hello, uint8_t out[WIRE_V1_HELLO_BYTES])
{
	struct mrc_hello of = hello_of(hello);

	mrc_hello_encode(&of, out);
}

int wire_v1_hello_decode(const uint8_t in[WIRE_V1_HELLO_BYTES], struct wire_v1_hello *hello_out)
{
	struct mrc_hello of;
	int r = mrc_hello_decode(in, &of);

	if (r)
		return r;
	*hello_out = (struct wire_v1_hello){
		.boot_id = of.boot_id,
		.peer_boot_id = of.peer_boot_id,
		.conn_epoch = of.conn_epoch,
		.conn_epoch_last = of.conn_epoch_last,
		.path_epoch_last = of.path_epoch_last,
		.path_id = of.path_id,
		.is_direct_capable = of.is_direct_capable,
	};
	memcpy(hello_out->host, of.host, sizeof(of.host));
	memcpy(hello_out->to_host, of.to_host, sizeof(of.to_host));
	memcpy(hello_out->nonce, of.nonce, sizeof(of.nonce));
	return 0;
}

void wire_v1_conclude(const struct wire_v1_hello *initiator, const struct wire_v1_hello *responder,
		      uint8_t auth_out[WIRE_V1_AUTH_BYTES])
{
	struct mrc_hello i = hello_of(initiator);
	struct mrc_hello r = hello_of(responder);
	struct mrc_auth auth;

	mrc_hello_conclude(&i, &r, &auth);
	mrc_auth_encode(&auth, auth_out);
}
