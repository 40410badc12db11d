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
	struct mrc_wire_hdr hdr = {WIRE_V1_HDR_FIELDS(WIRE_V1_HDR_OF_FIELD)};

	mrc_wire_encode(&hdr, crc32c, out);
}

int wire_v1_header_decode(const uint8_t in[WIRE_V1_HDR_BYTES], wire_v1_crc_fn crc32c,
			  uint64_t fields_out[WIRE_V1_FIELDS])
{
	struct mrc_wire_hdr heard = {0}, *hdr = &heard;
	int r = mrc_wire_decode(in, crc32c, hdr);
	const uint64_t fields[WIRE_V1_FIELDS] = {WIRE_V1_HDR_FIELDS(WIRE_V1_FIELD_OF_HDR)};

	if (r == 0)
		memcpy(fields_out, fields, sizeof(fields));
	return r;
}

static struct mrc_hello hello_of(const struct wire_v1_hello *hello)
{
	struct mrc_hello of = {0};

	WIRE_V1_HELLO_COPY(&of, hello);
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
	WIRE_V1_HELLO_COPY(hello_out, &of);
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
