/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_probe_arp - who answers on which rail, and which switch is there
 *
 * On each rail each address of each peer is asked for by ARP, not only the one
 * that should be there: so a cable in the wrong port, a network that two rails
 * share and an interface that answers for others (RFC 826 does not forbid it)
 * are told from each other. All questions of a round go out together.
 */
#include "mrcctl_doctor_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOCTOR_ARP_ROUNDS   3
#define DOCTOR_ARP_ROUND_NS (100 * 1000000ULL)
#define DOCTOR_ARP_PEERS    64 /* of which so many are asked for */
#define DOCTOR_LLDP_TYPE    0x88cc

/* A socket for Ethernet frames of one type on this rail; a negative errno. */
static int doctor_packet_socket(const struct doctor_rail *rail, uint16_t type)
{
	struct sockaddr_ll own = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(type),
		.sll_ifindex = (int)rail->ifindex,
	};
	/* Of no type until it is bound: else it would hear of other interfaces. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* ---- ARP ---- */

struct doctor_arp_frame {
	struct ether_header ethernet;
	struct ether_arp arp;
} __attribute__((packed));

static void doctor_arp_ask(int fd, const struct doctor_rail *rail, struct in_addr own,
			   struct in_addr wanted)
{
	struct doctor_arp_frame frame = {
		.ethernet = {.ether_type = htons(ETHERTYPE_ARP)},
		.arp = {.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
				   .ar_pro = htons(ETHERTYPE_IP),
				   .ar_hln = ETH_ALEN,
				   .ar_pln = 4,
				   .ar_op = htons(ARPOP_REQUEST)}},
	};

	memset(frame.ethernet.ether_dhost, 0xff, ETH_ALEN);
	memcpy(frame.ethernet.ether_shost, rail->mac.bytes, ETH_ALEN);
	memcpy(frame.arp.arp_sha, rail->mac.bytes, ETH_ALEN);
	memcpy(frame.arp.arp_spa, &own, 4);
	memcpy(frame.arp.arp_tpa, &wanted, 4);
	/* A full queue is a question less; it is asked again. */
	(void)send(fd, &frame, sizeof(frame), MSG_DONTWAIT);
}

static void doctor_arp_take(struct doctor_facts *facts, size_t rail,
			    const struct doctor_arp_frame *frame)
{
	struct in_addr sender, wanted;

	if (frame->ethernet.ether_type != htons(ETHERTYPE_ARP) ||
	    frame->arp.ea_hdr.ar_op != htons(ARPOP_REPLY) || frame->arp.ea_hdr.ar_hln != ETH_ALEN ||
	    frame->arp.ea_hdr.ar_pln != 4)
		return;
	memcpy(&sender, frame->arp.arp_spa, 4);
	for (size_t i = 0; i < facts->path_count; i++) {
		struct doctor_path *path = &facts->paths[i];

		if (path->arp[rail] == DOCTOR_NOT_ASKED ||
		    inet_pton(AF_INET, path->address, &wanted) != 1 ||
		    wanted.s_addr != sender.s_addr)
			continue;
		path->arp[rail] = DOCTOR_YES;
		path->arp_mac[rail].is_known = true;
		memcpy(path->arp_mac[rail].bytes, frame->arp.arp_sha, ETH_ALEN);
	}
}

/* What stands in the way of asking on this rail; "" when nothing does, with the socket in *fd_out. */
static const char *doctor_arp_open(const struct doctor_rail *rail, struct in_addr *own_out,
				   int *fd_out)
{
	*fd_out = -1;
	if (!rail->has_carrier || !rail->is_read)
		return "its interface cannot be used";
	if (rail->hardware != ARPHRD_ETHER || !rail->mac.is_known)
		return "its interface is not Ethernet";
	if (inet_pton(AF_INET, rail->address, own_out) != 1)
		return "its address is not of IPv4";
	*fd_out = doctor_packet_socket(rail, ETHERTYPE_ARP);
	if (*fd_out < 0)
		return *fd_out == -EPERM ? "only root may ask who is at the other end of a cable"
					 : "its interface lets nobody ask who is at the other end";
	return "";
}

static void doctor_arp_round(struct doctor_facts *facts, struct pollfd *waits,
			     const struct in_addr *own)
{
	uint64_t end_ns = doctor_clock_ns() + DOCTOR_ARP_ROUND_NS, now_ns;

	for (size_t rail = 0; rail < facts->rail_count; rail++) {
		for (size_t i = 0; i < facts->path_count && waits[rail].fd >= 0; i++) {
			struct doctor_path *path = &facts->paths[i];
			struct in_addr wanted;

			if (path->peer >= DOCTOR_ARP_PEERS || path->arp[rail] == DOCTOR_YES ||
			    inet_pton(AF_INET, path->address, &wanted) != 1)
				continue;
			path->arp[rail] = DOCTOR_NO;
			doctor_arp_ask(waits[rail].fd, &facts->rails[rail], own[rail], wanted);
		}
	}
	while ((now_ns = doctor_clock_ns()) < end_ns) {
		if (poll(waits, facts->rail_count, (int)((end_ns - now_ns) / 1000000U) + 1) <= 0)
			continue;
		for (size_t rail = 0; rail < facts->rail_count; rail++) {
			struct doctor_arp_frame frame;

			if ((waits[rail].revents & POLLIN) != 0 &&
			    recv(waits[rail].fd, &frame, sizeof(frame), MSG_DONTWAIT) ==
				    (ssize_t)sizeof(frame))
				doctor_arp_take(facts, rail, &frame);
		}
	}
}

void doctor_probe_arps(struct doctor_facts *facts)
{
	struct pollfd waits[DOCTOR_RAILS_MAX];
	struct in_addr own[DOCTOR_RAILS_MAX];
	bool is_any = false;

	for (size_t rail = 0; rail < facts->rail_count; rail++) {
		const char *why = doctor_arp_open(&facts->rails[rail], &own[rail], &waits[rail].fd);

		waits[rail].events = POLLIN;
		is_any = is_any || waits[rail].fd >= 0;
		for (size_t i = 0; i < facts->path_count; i++) {
			struct doctor_path *path = &facts->paths[i];

			if (path->rail != rail)
				continue;
			if (why[0] == '\0' && path->peer >= DOCTOR_ARP_PEERS)
				why = "there are too many peers to ask for all";
			doctor_text_set(path->arp_why, sizeof(path->arp_why), why);
		}
	}
	for (int round = 0; round < DOCTOR_ARP_ROUNDS && is_any; round++)
		doctor_arp_round(facts, waits, own);
	for (size_t rail = 0; rail < facts->rail_count; rail++) {
		if (waits[rail].fd >= 0)
			close(waits[rail].fd);
	}
}

/* ---- LLDP ---- */

void doctor_lldp_open(struct doctor_lldp *lldp, struct doctor_facts *facts)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];
		struct packet_mreq group = {
			.mr_ifindex = (int)rail->ifindex,
			.mr_type = PACKET_MR_MULTICAST,
			.mr_alen = ETH_ALEN,
			.mr_address = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e},
		};

		lldp->fds[i] = -1;
		if (!rail->is_read || rail->hardware != ARPHRD_ETHER) {
			doctor_text_set(rail->lldp_why, sizeof(rail->lldp_why),
					"its interface is not Ethernet");
			continue;
		}
		lldp->fds[i] = doctor_packet_socket(rail, DOCTOR_LLDP_TYPE);
		if (lldp->fds[i] < 0) {
			snprintf(rail->lldp_why, sizeof(rail->lldp_why), "may not listen: %s",
				 strerror(-lldp->fds[i]));
			continue;
		}
		/* Where the group cannot be joined, an agent on this host may have joined it. */
		(void)setsockopt(lldp->fds[i], SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group,
				 sizeof(group));
	}
}

bool doctor_lldp_chassis(const uint8_t *frame, size_t frame_bytes, char text[DOCTOR_TEXT_BYTES])
{
	size_t at = 14, chars = 0;
	bool has_chassis = false;

	text[0] = '\0';
	if (frame_bytes < at || frame[12] != DOCTOR_LLDP_TYPE >> 8 ||
	    frame[13] != (DOCTOR_LLDP_TYPE & 0xff))
		return false;
	while (at + 2 <= frame_bytes) {
		unsigned type = frame[at] >> 1;
		size_t len = (size_t)(frame[at] & 1) << 8 | frame[at + 1];
		const uint8_t *value = frame + at + 2;

		if (type == 0 || len > frame_bytes - at - 2)
			break;
		if (type == 1 && len >= 2) { /* chassis: a subtype, then its id; 4 is a MAC */
			for (size_t i = 1; i < len && chars + 4 < DOCTOR_TEXT_BYTES; i++)
				chars += (size_t)snprintf(text + chars, DOCTOR_TEXT_BYTES - chars,
							  value[0] == 4 ? "%s%02x" : "%s%c",
							  value[0] == 4 && i > 1 ? ":" : "",
							  value[0] == 4 || (value[i] > 0x20 &&
									    value[i] < 0x7f)
								  ? value[i]
								  : '?');
			has_chassis = true;
		} else if (type == 5 && has_chassis && chars + 2 < DOCTOR_TEXT_BYTES) { /* name */
			text[chars++] = ' ';
			for (size_t i = 0; i < len && chars + 1 < DOCTOR_TEXT_BYTES; i++)
				text[chars++] =
					value[i] > 0x20 && value[i] < 0x7f ? (char)value[i] : '?';
			text[chars] = '\0';
		}
		at += 2 + len;
	}
	return has_chassis;
}

static void doctor_lldp_take(struct doctor_rail *rail, const uint8_t *frame, size_t frame_bytes)
{
	char text[DOCTOR_TEXT_BYTES];

	if (!doctor_lldp_chassis(frame, frame_bytes, text))
		return;
	for (size_t i = 0; i < rail->chassis_count; i++) {
		if (strcmp(rail->chassis[i], text) == 0)
			return;
	}
	if (rail->chassis_count < DOCTOR_CHASSIS_MAX)
		doctor_text_set(rail->chassis[rail->chassis_count++], DOCTOR_TEXT_BYTES, text);
}

void doctor_lldp_close(struct doctor_lldp *lldp, struct doctor_facts *facts)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];
		uint8_t frame[1600];
		ssize_t count;

		if (lldp->fds[i] < 0)
			continue;
		while ((count = recv(lldp->fds[i], frame, sizeof(frame), MSG_DONTWAIT)) > 0)
			doctor_lldp_take(rail, frame, (size_t)count);
		close(lldp->fds[i]);
		if (rail->chassis_count == 0)
			doctor_text_set(rail->lldp_why, sizeof(rail->lldp_why),
					"none was heard; switches speak twice a minute, so try "
					"--seconds 31");
	}
}
