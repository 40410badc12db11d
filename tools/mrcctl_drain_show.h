/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drain_show - how far the drain of a host is, for people
 *
 * `drain` is the daemon's answer to "draining", `channels` the one to "channels".
 *
 * Ownership: all is lent.  Threads: one.  I/O: prints to `out`.
 */
#ifndef MRCCTL_DRAIN_SHOW_H
#define MRCCTL_DRAIN_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define MRCCTL_DRAIN_TEXT_BYTES 200

/* "2 channels open, 17 messages (1.2 MiB) in flight, 3 programs attached". Answers `text`. */
const char *mrcctl_drain_text(const json_t *drain, char text[MRCCTL_DRAIN_TEXT_BYTES]);

/* What is still open, one line for each end of a channel that a program here has. */
void mrcctl_show_left(const json_t *channels, FILE *out, bool has_colour);

#endif
