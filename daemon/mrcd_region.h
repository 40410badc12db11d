/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_region - a client's arena as rails with devices see it
 *
 * A device reads and writes only memory that was registered with it, which
 * takes a while and may fail. So a region is offered to every rail that wants
 * regions (ops->region_add), and is used there once the rail has answered with
 * its keys. Before that, and where it failed, payload goes through the rail's
 * own buffers, and the peer is given no key (DESIGN 7.5, 7.15).
 *
 * What the engine calls an address: an offset in the client's arena, counted
 * from its first byte, for landing rings (ring_addr of CH_OPEN and CH_ACCEPT,
 * which lie in the upper half) and for granted buffers (addr of LANDING) alike.
 * The sender adds the `base` of the path's key to it and, in a landing ring,
 * the position reduced to the ring's size:
 *
 *	remote_addr = base + ring_addr + position % ring_bytes + offset    eager
 *	remote_addr = base + addr + offset                                 granted
 *
 * So one region is one whole landing arena, and `base` is what its device calls
 * the arena's first byte: the mapping's address as ibv_reg_mr() takes it, or
 * whatever was given as iova. Addresses of POST (payload_addr) count from the
 * first byte of the send arena, which is a region of its own.
 *
 * A flow is one life of one client: its number is never a later client's, since
 * an engine may know a channel, and with it the keys given for its flow, for a
 * while after it has said that nothing can land there any more.
 *
 * The end: mrcd_region_end() forgets the client; each rail deregisters when
 * none of its work requests names the memory any more (ops->region_remove,
 * answered by mrcd_region_on_removed()), and the last answer frees the region.
 * A rail that is still registering is let finish first. A rail does not touch
 * `addr` itself, but registering and pinning do: so the mapping stays until the
 * last answer (mrcd_region_end_unmap()), or what is mapped there next would be
 * given to a device.
 *
 * The end of a rail: when ops->close() returns, the rail names no region any
 * more; what it still had to answer, it has answered or never will. The worker
 * closes all rails and then frees what regions are left (mrcd_region_free_all()).
 *
 * Units:     bytes.
 * Ownership: a region belongs to itself between new and its last rail's answer;
 *            the client keeps a pointer until it calls mrcd_region_end().
 * Threads:   the worker's loop.
 */
#ifndef MRCD_REGION_H
#define MRCD_REGION_H

#include <sys/queue.h>

#include "mrcd_conf.h"

struct mrcd_rail;
struct mrcd_worker;
struct mrcd_peer;

enum mrcd_region_state {
	MRCD_REGION_NONE,     /* the rail has not been asked, or does not register */
	MRCD_REGION_ADDING,   /* asked; its answer is to come */
	MRCD_REGION_READY,    /* registered: the keys hold */
	MRCD_REGION_FAILED,   /* the device did not take it */
	MRCD_REGION_REMOVING, /* to be deregistered; its answer is to come */
};

/* What one rail knows of a region. */
struct mrcd_region_rail {
	enum mrcd_region_state state;
	uint32_t lkey, rkey;
	uint64_t base;     /* what the device calls the first byte */
	void *kind_data;   /* the kind's own: its memory region */
	uint32_t wr_count; /* the kind's own: work requests that name it and are not completed */
};

struct mrcd_region {
	LIST_ENTRY(mrcd_region) entry; /* in worker->regions */
	struct mrcd_worker *worker;
	uint8_t *addr;
	uint64_t len_bytes;
	uint32_t flow;   /* the engine's name for the client */
	bool is_landing; /* peers write there; else it is only read */
	bool is_ending;  /* the client has let go of it */
	bool is_unmapped_at_end;
	struct mrcd_region_rail rails[MRCD_RAILS_MAX]; /* by rail->index */
};
LIST_HEAD(mrcd_region_list, mrcd_region);

/* Offer it to the rails. Their answers may come before this returns. -ENOMEM. */
int mrcd_region_new(struct mrcd_worker *worker, void *addr, uint64_t len_bytes, bool is_landing,
		    uint32_t flow, struct mrcd_region **region_out);
/* The client is done with it, and the engine as well; its keys are told to be invalid. NULL is fine. */
void mrcd_region_end(struct mrcd_region *region);
/* The same, and its memory, which was mmap()ed, is unmapped when the last rail has answered. */
void mrcd_region_end_unmap(struct mrcd_region *region);
/* All rails are closed: free what is left. */
void mrcd_region_free_all(struct mrcd_worker *worker);

/*
 * A channel of this client with `peer` has begun: tell the engine the keys of
 * all paths whose rail has registered the region. Does not pump.
 */
void mrcd_region_tell_keys(const struct mrcd_region *region, struct mrcd_peer *peer);

/* ---- from a kind of rail ---- */

/* A device came: offer the rail all regions that it does not have, those that failed too. */
void mrcd_region_offer_all(struct mrcd_rail *rail);
/*
 * The answer to region_add, also when the device went meanwhile. error 0:
 * rails[rail->index] has keys, base and kind_data now. Otherwise the kind has
 * logged why. May free the region.
 */
void mrcd_region_on_added(struct mrcd_region *region, struct mrcd_rail *rail, int error);
/* The answer to region_remove, or after withdraw_all; wr_count is 0. May free the region. */
void mrcd_region_on_removed(struct mrcd_region *region, struct mrcd_rail *rail);
/*
 * The device is going: its keys are told to be invalid. What was READY is
 * REMOVING now, without region_remove being called: the rail deregisters by
 * itself and answers for each with mrcd_region_on_removed(). What is ADDING or
 * REMOVING already is answered as ever. Once all is answered the rail may come
 * with a device again (mrcd_region_offer_all()).
 */
void mrcd_region_withdraw_all(struct mrcd_rail *rail);

#endif
