/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_crc.h"

#include <isa-l/crc.h>

/* ISA-L counts in int. A multiple of 64 keeps all but the first piece as aligned as it was. */
#define PIECE_BYTES_MAX ((size_t)1 << 30)

uint32_t mrcd_crc32c(uint32_t crc, const void *data, size_t len)
{
	/* ISA-L's prototype is not const, but it only reads. */
	union {
		const void *in;
		unsigned char *isal;
	} at = {.in = data};
	uint32_t sum = ~crc;

	while (len > 0) {
		size_t piece = MRC_MIN(len, PIECE_BYTES_MAX);

		sum = crc32_iscsi(at.isal, (int)piece, sum);
		at.isal += piece;
		len -= piece;
	}
	return ~sum;
}
