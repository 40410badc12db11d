/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_probe_ping - does a packet as long as the MTU get to the peer and back?
 *
 * Two pings on each path, bound to its rail: a short one, which says whether the
 * peer answers at all, and one that fills the MTU, with don't-fragment and
 * without heeding what the kernel has learned of the way (IP_PMTUDISC_PROBE).
 */
#include "mrcctl_doctor_probe.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCTOR_PING_TRIES      3
#define DOCTOR_PING_TIMEOUT_NS (150 * 1000000ULL)
#define DOCTOR_PING_SMALL      64
#define DOCTOR_PING_MAX        65535
#define DOCTOR_IPV4_HEADER     20
#define DOCTOR_IPV6_HEADER     40

/* Of ICMP and ICMPv6 alike: type, code, checksum, id, sequence. */
struct doctor_echo {
	uint8_t type, code;
	uint16_t checksum;
	uint16_t id, sequence;
	uint64_t token; /* ours, to know the answer by */
};

static uint16_t doctor_checksum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (len % 2 == 1)
		sum += (uint32_t)bytes[len - 1] << 8;
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* A link-local one is bound on its interface only. */
static bool doctor_own_address(const struct doctor_rail *rail, union doctor_address *own_out,
			       socklen_t *len_out)
{
	if (!doctor_address_parse(rail->address, own_out, len_out))
		return false;
	if (own_out->any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&own_out->v6.sin6_addr))
		own_out->v6.sin6_scope_id = (uint32_t)rail->ifindex;
	return true;
}

/* A socket for pings on this rail: raw, or what ping_group_range allows. Negative errno. */
static int doctor_ping_socket(int family, const struct doctor_rail *rail)
{
	int protocol = family == AF_INET ? IPPROTO_ICMP : (int)IPPROTO_ICMPV6;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);
	int probe = IP_PMTUDISC_PROBE, yes = 1, r;
	union doctor_address own;
	socklen_t len;

	if (fd < 0)
		fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	if (family == AF_INET)
		r = setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	else
		r = setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe)) < 0 ||
				    setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &yes, sizeof(yes)) <
					    0
			    ? -1
			    : 0;
	if (r < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, rail->interface,
		       (socklen_t)strlen(rail->interface) + 1) < 0 ||
	    !doctor_own_address(rail, &own, &len) || bind(fd, &own.any, len) < 0) {
		r = errno != 0 ? -errno : -EINVAL;
		close(fd);
		return r;
	}
	return fd;
}

/* Is this the answer to `token`? Raw sockets of IPv4 bring the IP header along. */
static bool doctor_is_echo(const uint8_t *bytes, size_t len, int family, uint64_t token)
{
	struct doctor_echo echo;
	size_t skip = 0;

	if (family == AF_INET && len > 0 && bytes[0] >> 4 == 4)
		skip = (size_t)(bytes[0] & 0xf) * 4;
	if (len < skip + sizeof(echo))
		return false;
	memcpy(&echo, bytes + skip, sizeof(echo));
	return echo.type == (family == AF_INET ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) &&
	       echo.token == token;
}

/* One ping of `packet_bytes` in all, and again when it is not answered. */
static enum doctor_answer doctor_ping(int fd, const union doctor_address *to, socklen_t to_len,
				      size_t packet_bytes, uint8_t *buffer)
{
	int family = to->any.sa_family;
	size_t header = family == AF_INET ? DOCTOR_IPV4_HEADER : DOCTOR_IPV6_HEADER;
	size_t len = packet_bytes - header;

	for (int try = 0; try < DOCTOR_PING_TRIES; try++) {
		struct doctor_echo echo = {
			.type = family == AF_INET ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
			.id = htons((uint16_t)getpid()),
			.sequence = htons((uint16_t)(try + 1)),
			.token = doctor_clock_ns(),
		};
		uint64_t end_ns = echo.token + DOCTOR_PING_TIMEOUT_NS;

		memset(buffer, 0, len);
		memcpy(buffer, &echo, sizeof(echo));
		if (family == AF_INET) {
			echo.checksum = doctor_checksum(buffer, len);
			memcpy(buffer, &echo, sizeof(echo));
		}
		if (sendto(fd, buffer, len, 0, &to->any, to_len) < 0)
			return DOCTOR_NO;
		for (;;) {
			struct pollfd wait = {.fd = fd, .events = POLLIN};
			uint64_t now_ns = doctor_clock_ns();
			ssize_t count;

			if (now_ns >= end_ns ||
			    poll(&wait, 1, (int)((end_ns - now_ns) / 1000000U) + 1) <= 0)
				break;
			count = recv(fd, buffer, DOCTOR_PING_MAX, MSG_DONTWAIT);
			if (count > 0 && doctor_is_echo(buffer, (size_t)count, family, echo.token))
				return DOCTOR_YES;
		}
	}
	return DOCTOR_NO;
}

static void doctor_probe_ping(struct doctor_path *path, const struct doctor_rail *rail,
			      uint8_t *buffer)
{
	union doctor_address to;
	const char *why = "";
	socklen_t len;
	int fd;

	if (!rail->has_carrier || !rail->is_read || rail->mtu < 576 || rail->mtu > DOCTOR_PING_MAX)
		why = "its interface cannot be used";
	else if (!doctor_address_parse(path->address, &to, &len))
		why = "the peer's address is a name";
	else if (rail->address_is_here != 1)
		why = "its address is not there";
	doctor_text_set(path->probe_why, sizeof(path->probe_why), why);
	if (why[0] != '\0')
		return;
	fd = doctor_ping_socket(to.any.sa_family, rail);
	if (fd < 0) {
		snprintf(path->probe_why, sizeof(path->probe_why), "no pings may be sent: %s",
			 strerror(-fd));
		return;
	}
	path->probe_mtu = rail->mtu;
	path->answers_small = doctor_ping(fd, &to, len, DOCTOR_PING_SMALL, buffer);
	if (path->answers_small == DOCTOR_YES)
		path->answers_full = doctor_ping(fd, &to, len, (size_t)rail->mtu, buffer);
	close(fd);
}

void doctor_probe_pings(struct doctor_facts *facts)
{
	uint8_t *buffer = malloc(DOCTOR_PING_MAX);

	if (buffer == NULL)
		abort();
	for (size_t i = 0; i < facts->path_count; i++)
		doctor_probe_ping(&facts->paths[i], &facts->rails[facts->paths[i].rail], buffer);
	free(buffer);
}
