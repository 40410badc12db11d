/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_address - addresses and DNS names, as text; nothing is resolved
 *
 * Threads: any.  I/O, time: none.
 */
#ifndef MRCD_CONF_ADDRESS_H
#define MRCD_CONF_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * AF_INET, AF_INET6, or AF_UNSPEC when `text` is no numeric address. IPv6 may
 * have a zone behind it (fe80::1%eth0).
 */
int mrcd_address_family(const char *text);
/* The one way to write a numeric address. -EINVAL: not numeric. -ENAMETOOLONG. */
int mrcd_address_canonical(const char *text, char *out, size_t size);
/* Can it be one host's: not the unspecified address, a multicast group or a broadcast? */
bool mrcd_address_is_host(const char *text);
/* Is it a numeric address that reaches this machine and no other? */
bool mrcd_address_is_loopback(const char *text);
/* Has `text` the form of a DNS name? The last label is not a number, so that 10.0.0.300 is none. */
bool mrcd_address_is_dns_name(const char *text);

#endif
