/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_probe - what has to be asked of the running kernel and of the wire
 *
 *	mrcctl_doctor_probe.c       addresses, routes, what a card could do
 *	mrcctl_doctor_probe_ping.c  does a packet as long as the MTU get through?
 *	mrcctl_doctor_mad.c         what both ends of an InfiniBand link could do
 *	mrcctl_doctor_probe_arp.c   who answers on which rail, and which switch is there
 *
 * Sends a few small packets and some of the MTU's size on each rail, and takes
 * about half a second. What may not be asked (it takes CAP_NET_RAW, that is
 * root) stays unknown, with the reason beside it.
 *
 * Threads: one.  I/O: sockets, netlink.
 */
#ifndef MRCCTL_DOCTOR_PROBE_H
#define MRCCTL_DOCTOR_PROBE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "mrcctl_doctor_facts.h"

/* All but LLDP. */
void doctor_probe(struct doctor_facts *facts);

union doctor_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
/* A numeric address, of IPv6 also with %INTERFACE; false: it is none. */
bool doctor_address_parse(const char *text, union doctor_address *address_out, socklen_t *len_out);

uint64_t doctor_clock_ns(void);

/*
 * Which priorities may be paused (PFC as IEEE 802.1Q has it, what `dcb pfc show`
 * prints), of the kernel's answer to DCB_CMD_IEEE_GET: a mask, or DOCTOR_UNKNOWN.
 */
int64_t doctor_pfc_priorities(void *answer, size_t answer_bytes);

void doctor_probe_pings(struct doctor_facts *facts);
void doctor_probe_arps(struct doctor_facts *facts);

/*
 * Switches and hosts announce themselves by LLDP, most of them twice a minute.
 * Between _open and _close it is listened for, on all rails.
 */
struct doctor_lldp {
	int fds[DOCTOR_RAILS_MAX]; /* -1: not there */
};
void doctor_lldp_open(struct doctor_lldp *lldp, struct doctor_facts *facts);
void doctor_lldp_close(struct doctor_lldp *lldp, struct doctor_facts *facts);
/*
 * Who sent this frame (from its Ethernet header on): "02:00:00:00:00:01 sw1", the
 * chassis and its name, printable. False: it is no LLDP frame that says so. (IEEE 802.1AB, 8.5)
 */
bool doctor_lldp_chassis(const uint8_t *frame, size_t frame_bytes, char text[DOCTOR_TEXT_BYTES]);

#endif
