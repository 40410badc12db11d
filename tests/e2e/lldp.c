/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lldp - speaks as a switch does, until it is ended
 *
 *	lldp MAC NAME INTERFACE...
 *
 * Sends an LLDP frame (IEEE 802.1AB) by each interface, several a second: a
 * chassis of that MAC, the interface as the port, and the switch's name.
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netpacket/packet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LLDP_TYPE          0x88cc
#define LLDP_MOMENT_NS     50000000
#define LLDP_FRAME_BYTES   256
#define LLDP_VALUE_MAX     64 /* of one TLV here */
#define LLDP_SUBTYPE_MAC   4  /* of a chassis */
#define LLDP_SUBTYPE_NAME  5  /* of a port: what the interface is called */
#define LLDP_SECONDS_VALID 120

enum { LLDP_END, LLDP_CHASSIS, LLDP_PORT, LLDP_TTL, LLDP_SYSTEM_NAME = 5 };

/* One TLV: 7 bits of type, 9 of length, an optional subtype (0: none), the value. Answers the bytes written. */
static size_t lldp_put(uint8_t *at, uint8_t type, uint8_t subtype, const void *value, size_t len)
{
	size_t head = 2;

	if (len > LLDP_VALUE_MAX)
		len = LLDP_VALUE_MAX;
	if (subtype != 0)
		at[head++] = subtype;
	if (len > 0)
		memcpy(at + head, value, len);
	at[0] = (uint8_t)(type << 1);
	at[1] = (uint8_t)(head - 2 + len);
	return head + len;
}

static size_t lldp_frame(uint8_t frame[LLDP_FRAME_BYTES], const struct ether_addr *mac,
			 const char *name, const char *interface)
{
	struct ether_header head = {
		.ether_dhost = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e},
		.ether_type = htons(LLDP_TYPE),
	};
	uint16_t valid = htons(LLDP_SECONDS_VALID);
	size_t len = sizeof(head);

	memset(frame, 0, LLDP_FRAME_BYTES);
	memcpy(head.ether_shost, mac, sizeof(head.ether_shost));
	memcpy(frame, &head, sizeof(head));
	len += lldp_put(frame + len, LLDP_CHASSIS, LLDP_SUBTYPE_MAC, mac, sizeof(*mac));
	len += lldp_put(frame + len, LLDP_PORT, LLDP_SUBTYPE_NAME, interface, strlen(interface));
	len += lldp_put(frame + len, LLDP_TTL, 0, &valid, sizeof(valid));
	len += lldp_put(frame + len, LLDP_SYSTEM_NAME, 0, name, strlen(name));
	len += lldp_put(frame + len, LLDP_END, 0, NULL, 0);
	return len > ETH_ZLEN ? len : ETH_ZLEN;
}

int main(int argc, char **argv)
{
	const struct timespec moment = {.tv_nsec = LLDP_MOMENT_NS};
	const struct ether_addr *mac = argc > 3 ? ether_aton(argv[1]) : NULL;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (mac == NULL || fd < 0) {
		fprintf(stderr, "usage: lldp MAC NAME INTERFACE..., as root\n");
		return EXIT_FAILURE;
	}
	for (;;) {
		for (int i = 3; i < argc; i++) {
			struct sockaddr_ll to = {
				.sll_family = AF_PACKET,
				.sll_ifindex = (int)if_nametoindex(argv[i]),
			};
			uint8_t frame[LLDP_FRAME_BYTES];
			size_t len = lldp_frame(frame, mac, argv[2], argv[i]);

			if (sendto(fd, frame, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
				perror(argv[i]);
		}
		nanosleep(&moment, NULL);
	}
}
