/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_interface_loss - what the kernel forgets when a link goes down, and does not know when it is up again
 *
 * What comes back by itself is no loss: the kernel's own routes and link-local
 * addresses, IPv4 addresses, what router advertisements make, and IPv6
 * addresses where the sysctl keep_addr_on_down is set. What somebody made by
 * hand or by a program is one: routes (also as one of several ways, and by
 * nexthop objects), other IPv6 addresses, permanent and proxy neighbours; and so
 * is all of a VLAN above, which goes down with its link.
 *
 * Threads: any but a loop's (mrcd_rtnl.h).
 */
#ifndef MRCD_INTERFACE_LOSS_H
#define MRCD_INTERFACE_LOSS_H

#include <stddef.h>

/* The first loss, for people, in text_out; "": there is none. A negative errno: the kernel does not tell. */
int mrcd_interface_loss(const char *interface, unsigned ifindex, char *text_out, size_t text_bytes);

#endif
