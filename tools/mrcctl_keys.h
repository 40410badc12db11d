/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_keys - the keys shared with peers, for people
 *
 * Threads: one.  I/O: prints to `out`.
 */
#ifndef MRCCTL_KEYS_H
#define MRCCTL_KEYS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* `result` is lent. */
void mrcctl_show_keys(const json_t *result, FILE *out, bool has_colour);

#endif
