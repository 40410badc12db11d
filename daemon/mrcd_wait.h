/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_wait - how long a loop looks for work before it sleeps
 *
 * To wake a sleeping process costs the one that wakes it a system call and the
 * message some 10 to 150 us; to look in vain costs a processor that somebody
 * else may need. So after some work a loop looks on for a while, giving the
 * processor away in between (never holding it: with two of them, the other side
 * needs the one we would hold). How long adapts, up to `look_ns_max`: it grows
 * when work comes while we look or soon after we slept, and shrinks, down to
 * not at all, when we slept for long. libmrc does the same (lib/mrc_wake.h).
 *
 * Units: ns.  Threads: the loop's.  I/O, time: none.
 */
#ifndef MRCD_WAIT_H
#define MRCD_WAIT_H

#include "mrc_base.h"

struct mrcd_wait {
	uint64_t look_ns_max;      /* 0: never */
	uint64_t look_ns;          /* now */
	uint64_t worked_ns;        /* when there was work last */
	uint64_t asleep_ns;        /* since when we do not look */
	uint64_t crowded_until_ns; /* do not look before */
	bool is_looking;
	bool has_worked; /* since mrcd_wait_look() */
};

void mrcd_wait_init(struct mrcd_wait *wait, uint64_t look_ns_max, uint64_t now_ns);

/* There was work. True: begin to look, that is, to call mrcd_wait_look() each turn. */
bool mrcd_wait_work(struct mrcd_wait *wait, uint64_t now_ns);

/* At the end of a turn. False: enough, sleep. *do_yield: there was nothing, give the processor away. */
bool mrcd_wait_look(struct mrcd_wait *wait, uint64_t now_ns, bool *do_yield);

/*
 * The processor was given away and is ours again. False: for so long that
 * others need it, and who yields waits behind them all; sleep instead, to be
 * woken before them.
 */
bool mrcd_wait_yielded(struct mrcd_wait *wait, uint64_t before_ns, uint64_t now_ns);

#endif
