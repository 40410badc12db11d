/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_unit - numbers as people write them: 10ms, 64KiB, 2.5Gb/s
 *
 * Units:     answers are nanoseconds, bytes, bits per second, or plain counts.
 * Threads:   any.  I/O, time: none.
 */
#ifndef MRCD_CONF_UNIT_H
#define MRCD_CONF_UNIT_H

#include <stddef.h>
#include <stdint.h>

enum mrcd_unit { MRCD_UNIT_COUNT, MRCD_UNIT_DURATION, MRCD_UNIT_SIZE, MRCD_UNIT_RATE };

/*
 * Decimal digits, perhaps a fraction, perhaps spaces, then a unit; only 0 may
 * go without one. Counts have neither fraction nor unit.
 * -EINVAL  not of that form
 * -ERANGE  above UINT64_MAX
 * -EDOM    finer than one nanosecond, byte or bit, or more than six digits of fraction
 */
int mrcd_unit_parse(enum mrcd_unit unit, const char *text, uint64_t *value_out);

/* The shortest exact way to write `value`; mrcd_unit_parse() takes it back. */
#define MRCD_UNIT_TEXT_BYTES 32
const char *mrcd_unit_format(enum mrcd_unit unit, uint64_t value, char out[MRCD_UNIT_TEXT_BYTES]);

/* "duration"; and what is allowed: "a number with ns, us, ms, s, min, h, e.g. 10ms". Static. */
const char *mrcd_unit_name(enum mrcd_unit unit);
const char *mrcd_unit_allowed(enum mrcd_unit unit);

#endif
