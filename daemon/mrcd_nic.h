/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_nic - what is known of rails' interfaces: asked off the loop, kept, and read from there
 *
 * No question about an interface is quick for certain (mrcd_nic_ask.h), so the
 * loop asks none but for the carrier (mrcd_carrier.h). Two kinds of looks are
 * made on threads of our own, each one at a time:
 *	where  the interface of each rail, its index, its address. Whoever hears
 *	       that one came, went or moved wants it.
 *	what   a rail's speed, MTU, driver. Wanted when the kernel speaks of its
 *	       interface, and by whoever reads what is older than MRCD_NIC_OLD_NS.
 * A driver that does not answer holds up looks, and nothing else: what was known
 * stays, with its age. It is logged when it owes an answer for long.
 *
 * Ownership: the worker's; what is known of a rail is in the rail.
 * Threads:   the worker's loop.
 */
#ifndef MRCD_NIC_H
#define MRCD_NIC_H

#include "mrcd_nic_ask.h"

#define MRCD_NIC_OLD_NS (10 * MRC_S)

struct mrcd_conf;
struct mrcd_conf_rail;
struct mrcd_nics;
struct mrcd_rail;
struct mrcd_worker;

/* In each rail. Written at the end of looks. */
struct mrcd_nic {
	char name[IF_NAMESIZE];      /* of the interface it is on; "": none now */
	struct sockaddr_storage own; /* that interface's address */
	socklen_t own_len;           /* 0: none now */
	bool is_placed;              /* it was looked for, and this is what was found */
	struct mrcd_nic_card card;
	uint64_t answered_ns; /* when its driver did last; 0: it has not yet */
};

/* A rail was looked for; is_changed: where it is, or any address of this host may be another. */
typedef void (*mrcd_nic_place_fn)(void *context, struct mrcd_rail *rail, bool is_changed);

/* -ENOMEM, -EAGAIN (no thread), or what eventfd() says. Nothing is asked yet. */
int mrcd_nics_new(struct mrcd_worker *worker, struct mrcd_nics **nics_out);
/* Waits for questions that are out: last of all. NULL is fine. */
void mrcd_nics_free(struct mrcd_nics *nics);

/*
 * The first look at where rails are, made here: rails that open want to know, and
 * no loop runs yet. Each later one ends in on_place(), for each rail.
 */
void mrcd_nics_begin(struct mrcd_nics *nics, mrcd_nic_place_fn on_place, void *context);
/* Nobody is told any more. */
void mrcd_nics_stop(struct mrcd_nics *nics);
/* Look again where rails are; is_address: an address came or went. */
void mrcd_nics_look(struct mrcd_nics *nics, bool is_address);

/*
 * Ask for the rail's card again; when it is another, mrcd_rail_on_interface().
 * Without worker->nics: nothing.
 */
void mrcd_nic_ask(const struct mrcd_rail *rail);
/* The same, if what is known is old. To be called by whoever reads it. */
void mrcd_nic_ask_if_old(const struct mrcd_rail *rail);
/* For how long its driver has owed an answer; 0: it does not. */
uint64_t mrcd_nic_unanswered_ns(const struct mrcd_rail *rail);

/* What the rail runs at, in bits per second: as configured, else as its driver said; 0: unknown. */
uint64_t mrcd_nic_speed(const struct mrcd_rail *rail);

/*
 * The rail's own address with the port it listens on: the configured one, or its
 * interface's. -EADDRNOTAVAIL: that has none now. -EAGAIN: it is being looked for
 * the first time, and ops->refresh() follows. -EINVAL: the configured one is no
 * address.
 */
int mrcd_nic_own_address(const struct mrcd_rail *rail, struct sockaddr_storage *address_out,
			 socklen_t *len_out);

/*
 * Where the rails of a file would be, by its index: places_out has room for all. Asks
 * the kernel and waits for it, so not on the loop. -ENOMEM, or what getifaddrs() says.
 */
int mrcd_nic_find_places(const struct mrcd_conf *conf, struct mrcd_nic_place *places_out);
/* As mrcd_nic_own_address(), of a rail that would be there. */
int mrcd_nic_address_there(const struct mrcd_conf_rail *conf, const struct mrcd_nic_place *place,
			   struct sockaddr_storage *address_out, socklen_t *len_out);

#endif
