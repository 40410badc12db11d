/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_resolve - addresses of peers: numeric at once, names by libevent's DNS
 *
 * Names are looked up in /etc/hosts and by the servers of /etc/resolv.conf,
 * without blocking the loop. Both files are read anew after a lookup failed,
 * so a host that came up before its network finds its servers later.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_RESOLVE_H
#define MRCD_RESOLVE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct mrcd_resolver;
struct mrcd_resolve; /* one question under way */

/* Called once, never from inside mrcd_resolve_name(). `why` is NULL when there is an address. */
typedef void (*mrcd_resolve_fn)(void *context, const struct sockaddr_storage *address,
				socklen_t address_len, const char *why);

int mrcd_resolver_new(struct event_base *base, struct mrcd_resolver **resolver_out);
/* Cancels what is under way, without calling back. NULL is fine. */
void mrcd_resolver_free(struct mrcd_resolver *resolver);

/*
 * Ask for the first address of `name`. family AF_UNSPEC takes any.
 * -ENOMEM; otherwise *question_out is valid until the call back or the cancel.
 */
int mrcd_resolve_name(struct mrcd_resolver *resolver, const char *name, uint16_t port, int family,
		      mrcd_resolve_fn on_done, void *context, struct mrcd_resolve **question_out);
void mrcd_resolve_cancel(struct mrcd_resolve *question);

/* A numeric address, "10.0.0.1", "fd00::1" or "fe80::1%eth0". -EINVAL: it is none. */
int mrcd_resolve_numeric(const char *text, uint16_t port, struct sockaddr_storage *address_out,
			 socklen_t *len_out);

#endif
