/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "mrcctl_doctor_mad.h"

#define DOCTOR_LINK_WORDS_MAX 127 /* of ethtool's masks: as the kernel counts them, in an int8 */

uint64_t doctor_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

bool doctor_address_parse(const char *text, union doctor_address *address_out, socklen_t *len_out)
{
	char host[INET6_ADDRSTRLEN];

	memset(address_out, 0, sizeof(*address_out));
	if (inet_pton(AF_INET, text, &address_out->v4.sin_addr) == 1) {
		address_out->v4.sin_family = AF_INET;
		*len_out = sizeof(address_out->v4);
		return true;
	}
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(text, "%"), text);
	if (inet_pton(AF_INET6, host, &address_out->v6.sin6_addr) == 1) {
		address_out->v6.sin6_family = AF_INET6;
		if (text[strlen(host)] == '%')
			address_out->v6.sin6_scope_id = if_nametoindex(text + strlen(host) + 1);
		*len_out = sizeof(address_out->v6);
		return true;
	}
	return false;
}

/* ---- addresses ---- */

static int64_t doctor_prefix_of(const struct sockaddr *mask)
{
	const uint8_t *bytes;
	size_t count;
	int64_t bits = 0;

	if (mask == NULL)
		return DOCTOR_UNKNOWN;
	if (mask->sa_family == AF_INET) {
		bytes = (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)
				->sin_addr;
		count = 4;
	} else {
		bytes = (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)mask)
				->sin6_addr;
		count = 16;
	}
	for (size_t i = 0; i < count; i++)
		bits += __builtin_popcount(bytes[i]);
	return bits;
}

static bool doctor_is_address(const struct ifaddrs *ifa, const union doctor_address *address)
{
	const union doctor_address *other =
		(const union doctor_address *)(const void *)ifa->ifa_addr;

	if (ifa->ifa_addr == NULL || ifa->ifa_addr->sa_family != address->any.sa_family)
		return false;
	if (address->any.sa_family == AF_INET)
		return other->v4.sin_addr.s_addr == address->v4.sin_addr.s_addr;
	return memcmp(&other->v6.sin6_addr, &address->v6.sin6_addr, sizeof(other->v6.sin6_addr)) ==
	       0;
}

static void doctor_probe_addresses(struct doctor_facts *facts)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return;
	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];
		union doctor_address address;
		socklen_t len;

		rail->address_is_here = 0;
		if (!doctor_address_parse(rail->address, &address, &len))
			continue;
		for (const struct ifaddrs *ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
			if (!doctor_is_address(ifa, &address))
				continue;
			if (strcmp(ifa->ifa_name, rail->interface) != 0)
				continue;
			rail->address_is_here = 1;
			rail->prefix_bits = doctor_prefix_of(ifa->ifa_netmask);
		}
	}
	freeifaddrs(list);
}

/* ---- routes ---- */

struct doctor_route_ask {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attributes[128];
};

static void doctor_attribute_add(struct nlmsghdr *head, uint16_t type, const void *data, size_t len)
{
	struct rtattr *attribute =
		(struct rtattr *)(void *)((char *)head + NLMSG_ALIGN(head->nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(attribute), data, len);
	head->nlmsg_len = (uint32_t)(NLMSG_ALIGN(head->nlmsg_len) + RTA_ALIGN(attribute->rta_len));
}

/* Sends one request and reads its answer. How long that is, or a negative errno: also the kernel's own. */
static ssize_t doctor_netlink_ask(int fd, const struct nlmsghdr *head, void *answer,
				  size_t answer_bytes)
{
	struct nlmsghdr *got = answer; /* not const: the macros cast it away */
	ssize_t len;

	if (send(fd, head, head->nlmsg_len, 0) < 0)
		return -errno;
	len = recv(fd, answer, answer_bytes, 0);
	if (len < 0)
		return -errno;
	if (!NLMSG_OK(got, (size_t)len))
		return -EBADMSG;
	if (got->nlmsg_type == NLMSG_ERROR)
		return got->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))
			       ? ((struct nlmsgerr *)NLMSG_DATA(got))->error
			       : -EBADMSG;
	return len;
}

static const void *doctor_address_bytes(const union doctor_address *address, size_t *len_out)
{
	*len_out = address->any.sa_family == AF_INET ? 4 : 16;
	return address->any.sa_family == AF_INET ? (const void *)&address->v4.sin_addr
						 : (const void *)&address->v6.sin6_addr;
}

/*
 * Where would a packet to `to` from `from` leave? Or, with `in_index`, would one
 * that came in there be taken? 0, the interface in *index_out; or a negative errno.
 */
static int doctor_route_ask(int fd, const union doctor_address *to,
			    const union doctor_address *from, uint32_t in_index,
			    uint32_t *index_out)
{
	struct doctor_route_ask ask = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			 .nlmsg_type = RTM_GETROUTE,
			 .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = (uint8_t)to->any.sa_family},
	};
	uint8_t answer[4096] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *got = (struct nlmsghdr *)answer;
	struct rtattr *attribute;
	size_t len;
	const void *bytes = doctor_address_bytes(to, &len);
	ssize_t count;
	int left;

	ask.route.rtm_dst_len = ask.route.rtm_src_len = (uint8_t)(len * 8);
	doctor_attribute_add(&ask.head, RTA_DST, bytes, len);
	bytes = doctor_address_bytes(from, &len);
	doctor_attribute_add(&ask.head, RTA_SRC, bytes, len);
	if (in_index != 0)
		doctor_attribute_add(&ask.head, RTA_IIF, &in_index, sizeof(in_index));
	count = doctor_netlink_ask(fd, &ask.head, answer, sizeof(answer));
	if (count < 0)
		return (int)count;
	if (got->nlmsg_type != RTM_NEWROUTE || got->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return -EBADMSG;
	*index_out = 0;
	left = (int)RTM_PAYLOAD(got);
	for (attribute = RTM_RTA(NLMSG_DATA(got)); RTA_OK(attribute, left);
	     attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == RTA_OIF && RTA_PAYLOAD(attribute) >= sizeof(uint32_t))
			memcpy(index_out, RTA_DATA(attribute), sizeof(*index_out));
	}
	return 0;
}

static void doctor_probe_route(int fd, struct doctor_path *path, const struct doctor_rail *rail)
{
	union doctor_address to, from;
	socklen_t len;
	uint32_t index = 0;
	int r;

	if (!doctor_address_parse(path->address, &to, &len))
		return;
	path->family = to.any.sa_family;
	/* A link-local address is on the interface that it names, and has no route. */
	if (to.any.sa_family == AF_INET6 && to.v6.sin6_scope_id != 0) {
		path->route_asked = DOCTOR_YES;
		if (if_indextoname(to.v6.sin6_scope_id, path->route_interface) == NULL)
			path->route_error = ENODEV;
		return;
	}
	if (!doctor_address_parse(rail->address, &from, &len) ||
	    from.any.sa_family != to.any.sa_family || rail->address_is_here != 1)
		return;
	r = doctor_route_ask(fd, &to, &from, 0, &index);
	path->route_asked = DOCTOR_YES;
	if (r < 0)
		path->route_error = -r;
	else if (if_indextoname(index, path->route_interface) == NULL)
		path->route_error = ENODEV;
	/* As if the peer's packet had come in by this rail. EXDEV is rp_filter's no; kernels since
	 * 6.13 say EINVAL to whatever they would drop. */
	if (to.any.sa_family != AF_INET || rail->ifindex <= 0)
		return;
	r = doctor_route_ask(fd, &from, &to, (uint32_t)rail->ifindex, &index);
	if (r == 0 || r == -EXDEV || r == -EINVAL)
		path->is_let_in = r == 0 ? DOCTOR_YES : DOCTOR_NO;
}

static void doctor_probe_routes(struct doctor_facts *facts)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return;
	for (size_t i = 0; i < facts->path_count; i++)
		doctor_probe_route(fd, &facts->paths[i], &facts->rails[facts->paths[i].rail]);
	close(fd);
}

/* ---- what a card could do, and how it keeps from losing packets ---- */

/* Modes of a link that are common, and their speed. The kernel has more; those are not looked at. */
static const struct {
	uint32_t bit;
	uint32_t mbits;
} doctor_modes[] = {
	{ETHTOOL_LINK_MODE_1000baseT_Full_BIT, 1000},
	{ETHTOOL_LINK_MODE_1000baseKX_Full_BIT, 1000},
	{ETHTOOL_LINK_MODE_10000baseT_Full_BIT, 10000},
	{ETHTOOL_LINK_MODE_10000baseKR_Full_BIT, 10000},
	{ETHTOOL_LINK_MODE_10000baseCR_Full_BIT, 10000},
	{ETHTOOL_LINK_MODE_10000baseSR_Full_BIT, 10000},
	{ETHTOOL_LINK_MODE_25000baseCR_Full_BIT, 25000},
	{ETHTOOL_LINK_MODE_25000baseKR_Full_BIT, 25000},
	{ETHTOOL_LINK_MODE_25000baseSR_Full_BIT, 25000},
	{ETHTOOL_LINK_MODE_40000baseKR4_Full_BIT, 40000},
	{ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT, 40000},
	{ETHTOOL_LINK_MODE_40000baseSR4_Full_BIT, 40000},
	{ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT, 50000},
	{ETHTOOL_LINK_MODE_50000baseCR_Full_BIT, 50000},
	{ETHTOOL_LINK_MODE_100000baseKR4_Full_BIT, 100000},
	{ETHTOOL_LINK_MODE_100000baseSR4_Full_BIT, 100000},
	{ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT, 100000},
	{ETHTOOL_LINK_MODE_100000baseCR2_Full_BIT, 100000},
	{ETHTOOL_LINK_MODE_200000baseKR4_Full_BIT, 200000},
	{ETHTOOL_LINK_MODE_200000baseSR4_Full_BIT, 200000},
	{ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT, 200000},
	{ETHTOOL_LINK_MODE_400000baseKR8_Full_BIT, 400000},
	{ETHTOOL_LINK_MODE_400000baseCR8_Full_BIT, 400000},
	{ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT, 400000},
};

static int doctor_ethtool(int fd, const char *interface, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	return ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

static void doctor_probe_modes(int fd, struct doctor_rail *rail)
{
	union {
		struct ethtool_link_settings settings;
		uint32_t words[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) +
			       3 * DOCTOR_LINK_WORDS_MAX];
	} ask = {.settings = {.cmd = ETHTOOL_GLINKSETTINGS}};
	const uint32_t *supported =
		ask.words + sizeof(struct ethtool_link_settings) / sizeof(uint32_t);
	int words;

	/* The first answer says how long the masks are, as a negative number. */
	if (doctor_ethtool(fd, rail->interface, &ask) < 0 ||
	    ask.settings.link_mode_masks_nwords >= 0)
		return;
	words = -ask.settings.link_mode_masks_nwords;
	memset(&ask, 0, sizeof(ask));
	ask.settings.cmd = ETHTOOL_GLINKSETTINGS;
	ask.settings.link_mode_masks_nwords = (int8_t)words;
	if (doctor_ethtool(fd, rail->interface, &ask) < 0 ||
	    ask.settings.link_mode_masks_nwords != words)
		return;
	for (size_t i = 0; i < sizeof(doctor_modes) / sizeof(doctor_modes[0]); i++) {
		uint32_t bit = doctor_modes[i].bit;
		int64_t speed = (int64_t)doctor_modes[i].mbits * 1000000;

		if (bit / 32 < (uint32_t)words && supported[bit / 32] >> bit % 32 & 1 &&
		    speed > rail->speed_max_bits_per_s)
			rail->speed_max_bits_per_s = speed;
	}
}

static void doctor_probe_pause(int fd, struct doctor_rail *rail)
{
	struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};

	if (doctor_ethtool(fd, rail->interface, &pause) == 0)
		rail->has_pause = pause.rx_pause && pause.tx_pause;
}

struct doctor_dcb_ask {
	struct nlmsghdr head;
	struct dcbmsg dcb;
	uint8_t attributes[64];
};

/* The attribute of a type among those in [at, at + left), or NULL. */
static struct rtattr *doctor_attribute_find(void *at, int left, uint16_t type)
{
	struct rtattr *attribute = at;

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if ((attribute->rta_type & ~NLA_F_NESTED) == type)
			return attribute;
	}
	return NULL;
}

int64_t doctor_pfc_priorities(void *answer, size_t answer_bytes)
{
	struct nlmsghdr *got = answer; /* not const: the macros cast it away */
	struct rtattr *ieee, *pfc;
	struct ieee_pfc value;

	if (!NLMSG_OK(got, answer_bytes) || got->nlmsg_len < NLMSG_LENGTH(sizeof(struct dcbmsg)))
		return DOCTOR_UNKNOWN;
	ieee = doctor_attribute_find((char *)NLMSG_DATA(got) + NLMSG_ALIGN(sizeof(struct dcbmsg)),
				     (int)NLMSG_PAYLOAD(got, sizeof(struct dcbmsg)), DCB_ATTR_IEEE);
	if (ieee == NULL)
		return DOCTOR_UNKNOWN;
	pfc = doctor_attribute_find(RTA_DATA(ieee), (int)RTA_PAYLOAD(ieee), DCB_ATTR_IEEE_PFC);
	if (pfc == NULL || RTA_PAYLOAD(pfc) < sizeof(value))
		return DOCTOR_UNKNOWN;
	memcpy(&value, RTA_DATA(pfc), sizeof(value));
	return value.pfc_en;
}

static void doctor_probe_pfc(int fd, struct doctor_rail *rail)
{
	struct doctor_dcb_ask ask = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct dcbmsg)),
			 .nlmsg_type = RTM_GETDCB,
			 .nlmsg_flags = NLM_F_REQUEST},
		.dcb = {.dcb_family = AF_UNSPEC, .cmd = DCB_CMD_IEEE_GET},
	};
	uint8_t answer[8192] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	ssize_t len;

	doctor_attribute_add(&ask.head, DCB_ATTR_IFNAME, rail->interface,
			     strlen(rail->interface) + 1);
	len = doctor_netlink_ask(fd, &ask.head, answer, sizeof(answer));
	if (len > 0)
		rail->pfc_priorities = doctor_pfc_priorities(answer, (size_t)len);
}

static void doctor_probe_cards(struct doctor_facts *facts)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];

		if (!rail->is_read)
			continue;
		if (fd >= 0 && !doctor_is_driver_silent(rail)) {
			doctor_probe_modes(fd, rail);
			doctor_probe_pause(fd, rail);
		}
		if (netlink >= 0)
			doctor_probe_pfc(netlink, rail);
	}
	if (fd >= 0)
		close(fd);
	if (netlink >= 0)
		close(netlink);
}

void doctor_probe(struct doctor_facts *facts)
{
	doctor_probe_addresses(facts);
	doctor_probe_routes(facts);
	doctor_probe_cards(facts);
	doctor_probe_links(facts);
	doctor_probe_pings(facts);
	doctor_probe_arps(facts);
}
