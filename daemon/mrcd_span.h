/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_span - how long something took, as people read it
 *
 * Threads: any.
 */
#ifndef MRCD_SPAN_H
#define MRCD_SPAN_H

#include <stdint.h>

#define MRCD_SPAN_BYTES 24

/* "3.1 ms": two digits are enough for people. Answers `text`. */
const char *mrcd_span_text(uint64_t ns, char text[MRCD_SPAN_BYTES]);

#endif
