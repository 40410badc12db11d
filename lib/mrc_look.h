/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_look - how long to look for work before sleeping
 *
 * To wake a sleeping process costs the one that wakes it a system call, and the
 * message some 10 to 150 us; to look in vain costs a processor that somebody
 * else may need. So after some work one looks on for a while, giving the
 * processor away in between (never holding it: with two of them the other side
 * needs the one we would hold).
 *
 * Whether it pays is counted: each time that something is found earns a credit,
 * each time that nothing is found costs one, and without any we sleep at once.
 * Then it is tried again after a pause, which doubles until it costs half a percent, but
 * only while work comes so often that it could be found. A trial looks for
 * longer: four processes that all sleep answer each other later than each of
 * them would look, and none of them would ever see that it pays. After a long
 * rest it is taken for granted again, for all begin at the same time then.
 *
 * The daemon and the library both wait like this.
 *
 * Units: ns.  Threads: one caller at a time.  I/O, time: none.
 */
#ifndef MRC_LOOK_H
#define MRC_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct mrc_look {
	uint64_t span_ns;   /* of a look; 0: never */
	uint64_t worked_ns; /* when there was work last */
	uint64_t asleep_ns; /* since when we do not look */
	uint64_t pause_ns;  /* of the next pause */
	uint64_t try_ns;    /* without credit: not before */
	uint32_t credit;
	bool is_looking;
	bool has_worked; /* since mrc_look_on() */
};

void mrc_look_init(struct mrc_look *look, uint64_t span_ns, uint64_t now_ns);

/* There was work. True: begin to look, that is, to call mrc_look_on() each turn. */
bool mrc_look_work(struct mrc_look *look, uint64_t now_ns);

/* At the end of a turn. False: enough, sleep. *do_yield: there was nothing, give the processor away. */
bool mrc_look_on(struct mrc_look *look, uint64_t now_ns, bool *do_yield);

/* Found, and not looked on for now: whoever calls does something else first. */
void mrc_look_end(struct mrc_look *look, uint64_t now_ns);

#endif
