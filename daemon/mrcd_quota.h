/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_quota - how much of one client's messages may be under way, and how fast they go
 *
 * A message goes when it fits, or when nothing else is under way, so that one
 * larger than the bound still goes. The rate is kept on average: who has been
 * still may send for MRCD_QUOTA_BURST_NS at once, and a message is never cut, so
 * after a long one the next waits until it is paid for.
 *
 * Units:     bytes, nanoseconds of the worker's clock.
 * Ownership: embedded in its client.
 * Threads:   the worker's loop.  I/O, time: none.
 */
#ifndef MRCD_QUOTA_H
#define MRCD_QUOTA_H

#include "mrcd_conf.h"

#define MRCD_QUOTA_BURST_NS (10 * MRC_MS)
/* What a message costs besides its bytes: nobody gets by the rate with empty ones. */
#define MRCD_QUOTA_OVERHEAD_BYTES 80U

struct mrcd_quota {
	struct mrcd_conf_quota max; /* complete; its list of users is the configuration's */
	uint64_t in_flight_bytes;   /* handed over and not yet answered */
	uint64_t paid_ns;           /* until when the rate is used up */
	uint64_t waits;             /* how often a message had to wait, for mrcctl */
};

/* May a message of this length go now? If not, *when_out: at the earliest; MRC_NEVER: when others have ended. */
bool mrcd_quota_admits(const struct mrcd_quota *quota, uint64_t len_bytes, uint64_t now_ns,
		       uint64_t *when_out);
/* It goes. */
void mrcd_quota_take(struct mrcd_quota *quota, uint64_t len_bytes, uint64_t now_ns);
/* It has ended. */
void mrcd_quota_give(struct mrcd_quota *quota, uint64_t len_bytes);

#endif
