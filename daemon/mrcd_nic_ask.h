/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_nic_ask - questions about network interfaces that the kernel may take its time over
 *
 * Some go to a driver, and a driver may ask its card's firmware, which answers
 * when it likes. The kernel holds one lock meanwhile (rtnl), as it does while any
 * link goes down or up; and who lists interfaces or addresses waits for that
 * lock. A name that no interface has may even have it start a program (modprobe).
 *
 * Threads: any but a loop's: all of it blocks (mrcd_nic.h).
 */
#ifndef MRCD_NIC_ASK_H
#define MRCD_NIC_ASK_H

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "mrc_base.h"

/* Where a rail is: by its interface, else by its address, else by its RDMA device. */
struct mrcd_nic_place {
	/* The question. */
	char interface[IF_NAMESIZE];
	char address[64];
	char device[64];
	uint8_t device_port; /* 0: the first */
	/* The answer. */
	char name[IF_NAMESIZE];      /* of the interface; "": there is none now */
	unsigned ifindex;            /* 0: there is none now */
	struct sockaddr_storage own; /* that interface's first address, IPv4 before IPv6; no port */
	socklen_t own_len;           /* 0: it has none */
};

/* What an interface and its driver say. Numbers are 0 and texts "" where they do not. */
struct mrcd_nic_card {
	uint64_t speed_bits_per_s;
	uint32_t mtu;
	uint8_t mac[6]; /* of Ethernet */
	char driver[32], firmware[32];
};

/* All of them in one go. A negative errno: the kernel lists nothing; no answer was touched. */
int mrcd_nic_ask_places(struct mrcd_nic_place *places, uint32_t count);

void mrcd_nic_ask_card(const char *interface, struct mrcd_nic_card *card_out);

#endif
