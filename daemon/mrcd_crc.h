/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_crc - CRC32C of payload and headers, by ISA-L
 *
 * Threads: any.  I/O, time: none.
 */
#ifndef MRCD_CRC_H
#define MRCD_CRC_H

#include "mrc_base.h"

/*
 * An mrc_crc32c_fn. Begin with 0; feed the answer back in to continue:
 * mrcd_crc32c(mrcd_crc32c(0, a, la), b, lb) is the checksum of a followed by b.
 * mrcd_crc32c(0, "123456789", 9) == 0xe3069283 (RFC 3720, B.4).
 */
uint32_t mrcd_crc32c(uint32_t crc, const void *data, size_t len);

#endif
