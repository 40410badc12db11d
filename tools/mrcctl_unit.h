/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_unit - numbers as people read them: "9.41 Gb/s", "128 KiB", "1.5 ms"
 *
 * Three significant digits; what is a whole number below a thousand of its
 * unit stays one. Rates are decimal, sizes binary, as is the custom.
 *
 * Ownership: text goes to the caller's buffer, which is answered.
 * Threads:   any.  I/O, time: none.
 */
#ifndef MRCCTL_UNIT_H
#define MRCCTL_UNIT_H

#include <stdint.h>

#define MRCCTL_UNIT_BYTES 32

const char *mrcctl_unit_bytes(uint64_t bytes, char text[MRCCTL_UNIT_BYTES]);
const char *mrcctl_unit_bits_per_s(uint64_t bits_per_s, char text[MRCCTL_UNIT_BYTES]);
/* Spans below a minute as one number with a unit, longer ones as "2h 05m". */
const char *mrcctl_unit_span(uint64_t ns, char text[MRCCTL_UNIT_BYTES]);
/* The same of a span that may be below 0: "-2 us". */
const char *mrcctl_unit_span_signed(int64_t ns, char text[MRCCTL_UNIT_BYTES]);
/* A count with its thousands apart: "1 234 567". */
const char *mrcctl_unit_count(uint64_t count, char text[MRCCTL_UNIT_BYTES + 8]);

/* Parts of a million as a percentage, in at most five cells: "0%", "<.01%", "0.12%", "1.2%", "12%". */
const char *mrcctl_unit_part(uint64_t ppm, char text[MRCCTL_UNIT_BYTES]);

#endif
