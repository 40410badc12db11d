/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_v1 - a daemon that speaks and hears as those of wire version 1 did
 *
 * All that goes to a peer or comes from one passes the codec of that time
 * (tests/unit/wire_v1.h): headers and HELLOs of today that it cannot say stop this
 * daemon, and what it does not know it refuses, as an old daemon does. The linker
 * puts these in the place of today's codec (--wrap).
 */
#include <string.h>

#include "mrc_hello.h"
#include "wire_v1.h"

void __wrap_mrc_wire_encode(const struct mrc_wire_hdr *hdr, mrc_crc32c_fn crc32c,
			    uint8_t out[MRC_WIRE_HDR_BYTES]);
int __wrap_mrc_wire_decode(const uint8_t in[MRC_WIRE_HDR_BYTES], mrc_crc32c_fn crc32c,
			   struct mrc_wire_hdr *hdr_out);
void __wrap_mrc_hello_encode(const struct mrc_hello *hello, uint8_t out[MRC_HELLO_BODY_BYTES]);
int __wrap_mrc_hello_decode(const uint8_t in[MRC_HELLO_BODY_BYTES], struct mrc_hello *hello_out);

int __wrap_mrc_wire_decode(const uint8_t in[MRC_WIRE_HDR_BYTES], mrc_crc32c_fn crc32c,
			   struct mrc_wire_hdr *hdr_out)
{
	uint64_t fields[WIRE_V1_FIELDS];
	int r = wire_v1_header_decode(in, crc32c, fields);

	if (r < 0)
		return r;
	*hdr_out = (struct mrc_wire_hdr){
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
	return 0;
}

void __wrap_mrc_wire_encode(const struct mrc_wire_hdr *hdr, mrc_crc32c_fn crc32c,
			    uint8_t out[MRC_WIRE_HDR_BYTES])
{
	const uint64_t fields[WIRE_V1_FIELDS] = {
		[WIRE_V1_TYPE] = hdr->type,
		[WIRE_V1_FLAGS] = hdr->flags,
		[WIRE_V1_CONN_EPOCH] = hdr->conn_epoch,
		[WIRE_V1_PATH_EPOCH] = hdr->path_epoch,
		[WIRE_V1_WRITER_PATH] = hdr->writer_path,
		[WIRE_V1_WRITER_EPOCH] = hdr->writer_epoch,
		[WIRE_V1_CHANNEL] = hdr->channel,
		[WIRE_V1_BODY_LEN] = hdr->body_len,
		[WIRE_V1_MSG] = hdr->msg,
		[WIRE_V1_OFFSET] = hdr->offset,
		[WIRE_V1_MSG_LEN] = hdr->msg_len,
		[WIRE_V1_ADDR] = hdr->addr,
		[WIRE_V1_ARG] = hdr->arg,
		[WIRE_V1_BODY_CRC] = hdr->body_crc,
	};
	uint64_t heard[WIRE_V1_FIELDS];

	wire_v1_header_encode(fields, crc32c, out);
	/* It says nothing that one of its kind would not take. */
	MRC_ASSERT(wire_v1_header_decode(out, crc32c, heard) == 0);
}

void __wrap_mrc_hello_encode(const struct mrc_hello *hello, uint8_t out[MRC_HELLO_BODY_BYTES])
{
	struct wire_v1_hello old = {
		.boot_id = hello->boot_id,
		.peer_boot_id = hello->peer_boot_id,
		.conn_epoch = hello->conn_epoch,
		.conn_epoch_last = hello->conn_epoch_last,
		.path_epoch_last = hello->path_epoch_last,
		.path_id = hello->path_id,
		.is_direct_capable = hello->is_direct_capable,
	};

	memcpy(old.host, hello->host, sizeof(old.host));
	memcpy(old.to_host, hello->to_host, sizeof(old.to_host));
	memcpy(old.nonce, hello->nonce, sizeof(old.nonce));
	wire_v1_hello_encode(&old, out);
}

int __wrap_mrc_hello_decode(const uint8_t in[MRC_HELLO_BODY_BYTES], struct mrc_hello *hello_out)
{
	struct wire_v1_hello old;
	int r = wire_v1_hello_decode(in, &old);

	if (r < 0)
		return r;
	/* It knows of no versions: whatever it spoke to, it spoke version 1. */
	*hello_out = (struct mrc_hello){
		.boot_id = old.boot_id,
		.peer_boot_id = old.peer_boot_id,
		.conn_epoch = old.conn_epoch,
		.conn_epoch_last = old.conn_epoch_last,
		.path_epoch_last = old.path_epoch_last,
		.path_id = old.path_id,
		.is_direct_capable = old.is_direct_capable,
		.version_min = 1,
		.version_max = 1,
	};
	memcpy(hello_out->host, old.host, sizeof(old.host));
	memcpy(hello_out->to_host, old.to_host, sizeof(old.to_host));
	memcpy(hello_out->nonce, old.nonce, sizeof(old.nonce));
	return 0;
}
