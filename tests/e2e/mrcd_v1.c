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
	*hdr_out = (struct mrc_wire_hdr){WIRE_V1_HDR_FIELDS(WIRE_V1_HDR_OF_FIELD)};
	return 0;
}

void __wrap_mrc_wire_encode(const struct mrc_wire_hdr *hdr, mrc_crc32c_fn crc32c,
			    uint8_t out[MRC_WIRE_HDR_BYTES])
{
	const uint64_t fields[WIRE_V1_FIELDS] = {WIRE_V1_HDR_FIELDS(WIRE_V1_FIELD_OF_HDR)};
	uint64_t heard[WIRE_V1_FIELDS];

	wire_v1_header_encode(fields, crc32c, out);
	/* It says nothing that one of its kind would not take. */
	MRC_ASSERT(wire_v1_header_decode(out, crc32c, heard) == 0);
}

void __wrap_mrc_hello_encode(const struct mrc_hello *hello, uint8_t out[MRC_HELLO_BODY_BYTES])
{
	struct wire_v1_hello old;

	WIRE_V1_HELLO_COPY(&old, hello);
	wire_v1_hello_encode(&old, out);
}

int __wrap_mrc_hello_decode(const uint8_t in[MRC_HELLO_BODY_BYTES], struct mrc_hello *hello_out)
{
	struct wire_v1_hello old;
	int r = wire_v1_hello_decode(in, &old);

	if (r < 0)
		return r;
	/* It knows of no versions: whatever it spoke to, it spoke version 1. */
	*hello_out = (struct mrc_hello){.version_min = 1, .version_max = 1};
	WIRE_V1_HELLO_COPY(hello_out, &old);
	return 0;
}
