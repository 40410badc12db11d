/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_poison - find writes that reach landing memory after it was given back
 *
 * A device, a peer or a resend that writes where it may write no more does its
 * harm unseen: the memory is somebody else's by then. So what is given back is
 * filled with a pattern made of its place, and looked at before it is given out
 * again. Ours to call, for tests and for the hunt: see mrcd_poison_mode_read().
 *
 * Cost: runs of up to 1 MiB are filled and read whole. Of longer ones the first
 * 512 KiB, the last 64 KiB and every sixteenth page between: a stray fragment
 * of 64 KiB or more cannot miss those, a smaller one may.
 *
 * Units:     bytes; offsets count from the start of the landing arena.
 * Ownership: the memory is lent until mrcd_poison_free().
 * Threads:   one at a time (the worker's loop).
 */
#ifndef MRCD_POISON_H
#define MRCD_POISON_H

#include "mrc_base.h"

struct mrcd_poison_mode {
	bool is_on;
	bool is_fatal; /* a late write ends the daemon; else it is logged and counted */
	bool is_held; /* small messages stay poisoned for a while before their ring space is used again */
};

/*
 * What the environment variable MRCD_POISON asks for: words of `off`, `count`,
 * `abort` and `hold`, with commas between. NULL: off, but abort in debug
 * builds. -EINVAL: another word; nothing has changed then.
 */
int mrcd_poison_mode_read(const char *text, struct mrcd_poison_mode *mode_out);

struct mrcd_poison;

/* For memory at `addr`, of whole pages of 4096 bytes. -ENOMEM. */
int mrcd_poison_new(uint8_t *addr, uint64_t len_bytes, struct mrcd_poison **poison_out);
void mrcd_poison_free(struct mrcd_poison *poison); /* NULL is fine */

/* The pages of this run were given back. */
void mrcd_poison_fill(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes);
/*
 * The pages of this run are wanted again; whichever were filled are forgotten.
 * False: something has written there, first at *at_out.
 */
bool mrcd_poison_take(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes,
		      uint64_t *at_out);
/* The same for some bytes, of which no record is kept. */
void mrcd_poison_fill_bytes(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes);
bool mrcd_poison_holds_bytes(const struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes,
			     uint64_t *at_out);
/* What lies at this place while it is poisoned. */
uint8_t mrcd_poison_byte(uint64_t offset);

#endif
