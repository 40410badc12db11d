/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_interface_loss.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mrc_base.h"
#include "mrcd_rtnl.h"

#define PATH_BYTES 160U

struct loss {
	const char *interface;
	unsigned ifindex;
	bool are_addresses_kept; /* IPv6, permanent ones */
	bool is_maker_told;      /* this kernel says by whom an address was made */
	char *text;              /* the caller's; "": nothing was found yet */
	size_t text_bytes;
};

/* Found: answers false, which ends a dump. */
static bool lost(struct loss *loss, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool lost(struct loss *loss, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(loss->text, loss->text_bytes, format, args);
	va_end(args);
	return false;
}

static uint32_t number_of(struct rtattr *at, uint32_t otherwise)
{
	uint32_t number;

	if (!at)
		return otherwise;
	memcpy(&number, RTA_DATA(at), sizeof(number));
	return number;
}

static const char *address_text(int family, struct rtattr *at, char text[INET6_ADDRSTRLEN])
{
	unsigned bytes = family == AF_INET ? 4 : family == AF_INET6 ? 16 : UINT16_MAX;

	if (!at || RTA_PAYLOAD(at) < bytes ||
	    !inet_ntop(family, RTA_DATA(at), text, INET6_ADDRSTRLEN))
		snprintf(text, INET6_ADDRSTRLEN, "?");
	return text;
}

/* ---- routes ---- */

static bool is_way(struct rtattr *ways, unsigned ifindex)
{
	struct rtnexthop *way = RTA_DATA(ways);
	int left = (int)RTA_PAYLOAD(ways);

	for (; RTNH_OK(way, left); left -= (int)RTNH_ALIGN(way->rtnh_len), way = RTNH_NEXT(way)) {
		if ((unsigned)way->rtnh_ifindex == ifindex)
			return true;
	}
	return false;
}

static bool look_at_route(struct nlmsghdr *nlh, void *context)
{
	struct rtmsg *route = NLMSG_DATA(nlh);
	struct rtattr *first = RTM_RTA(route);
	unsigned left = (unsigned)RTM_PAYLOAD(nlh), table;
	struct rtattr *ways =
		mrcd_rtnl_attribute(first, left, RTA_MULTIPATH, sizeof(struct rtnexthop));
	struct rtattr *out = mrcd_rtnl_attribute(first, left, RTA_OIF, sizeof(uint32_t));
	struct rtattr *to = mrcd_rtnl_attribute(first, left, RTA_DST, 0);
	char address[INET6_ADDRSTRLEN], at[32] = "", prefix[INET6_ADDRSTRLEN + 8] = "default";
	struct loss *loss = context;

	if (nlh->nlmsg_type != RTM_NEWROUTE ||
	    (number_of(out, 0) != loss->ifindex && !(ways && is_way(ways, loss->ifindex))))
		return true;
	/* The kernel makes its own again, and those of router advertisements and redirects follow. */
	if (route->rtm_protocol == RTPROT_KERNEL || route->rtm_protocol == RTPROT_RA ||
	    route->rtm_protocol == RTPROT_REDIRECT)
		return true;
	if (to)
		snprintf(prefix, sizeof(prefix), "%s/%u",
			 address_text(route->rtm_family, to, address), route->rtm_dst_len);
	table = number_of(mrcd_rtnl_attribute(first, left, RTA_TABLE, sizeof(uint32_t)),
			  route->rtm_table);
	if (table != RT_TABLE_MAIN)
		snprintf(at, sizeof(at), " in table %u", table);
	return lost(loss, "the kernel would forget the route to %s%s by %s", prefix, at,
		    loss->interface);
}

static bool look_at_nexthop(struct nlmsghdr *nlh, void *context)
{
	struct nhmsg *nexthop = NLMSG_DATA(nlh);
	struct rtattr *first = (struct rtattr *)((char *)nexthop + NLMSG_ALIGN(sizeof(*nexthop)));
	unsigned left = (unsigned)NLMSG_PAYLOAD(nlh, sizeof(*nexthop));
	struct rtattr *out = mrcd_rtnl_attribute(first, left, NHA_OIF, sizeof(uint32_t));
	struct rtattr *id = mrcd_rtnl_attribute(first, left, NHA_ID, sizeof(uint32_t));
	struct loss *loss = context;

	if (nlh->nlmsg_type != RTM_NEWNEXTHOP || number_of(out, 0) != loss->ifindex)
		return true;
	return lost(loss, "the kernel would forget the nexthop object %u by %s", number_of(id, 0),
		    loss->interface);
}

/* ---- addresses ---- */

/* A number of a sysctl of IPv6; 0: there is none. */
static int ipv6_sysctl(const char *interface, const char *name)
{
	char path[PATH_BYTES], text[16] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", interface, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && text[0] == '-' ? -1 : n > 0 && text[0] != '0';
}

/* As the kernel has it: what all interfaces have goes before what this one has (addrconf_ifdown()). */
static bool keeps_addresses(const char *interface)
{
	int all = ipv6_sysctl("all", "keep_addr_on_down");

	return (all != 0 ? all : ipv6_sysctl(interface, "keep_addr_on_down")) > 0;
}

static bool look_for_makers(struct nlmsghdr *nlh, void *context)
{
	struct ifaddrmsg *ifa = NLMSG_DATA(nlh);
	struct loss *loss = context;

	loss->is_maker_told = nlh->nlmsg_type == RTM_NEWADDR &&
			      mrcd_rtnl_attribute(IFA_RTA(ifa), (unsigned)IFA_PAYLOAD(nlh),
						  IFA_PROTO, sizeof(uint8_t));
	return !loss->is_maker_told;
}

static bool look_at_address(struct nlmsghdr *nlh, void *context)
{
	struct ifaddrmsg *ifa = NLMSG_DATA(nlh);
	struct rtattr *first = IFA_RTA(ifa);
	unsigned left = (unsigned)IFA_PAYLOAD(nlh);
	struct rtattr *local = mrcd_rtnl_attribute(first, left, IFA_LOCAL, 16);
	struct rtattr *address = mrcd_rtnl_attribute(first, left, IFA_ADDRESS, 16);
	struct rtattr *maker = mrcd_rtnl_attribute(first, left, IFA_PROTO, sizeof(uint8_t));
	uint32_t flags = number_of(mrcd_rtnl_attribute(first, left, IFA_FLAGS, sizeof(uint32_t)),
				   ifa->ifa_flags);
	bool is_local = ifa->ifa_scope >= RT_SCOPE_LINK, is_permanent = flags & IFA_F_PERMANENT;
	struct loss *loss = context;
	char text[INET6_ADDRSTRLEN];

	if (nlh->nlmsg_type != RTM_NEWADDR || ifa->ifa_index != loss->ifindex)
		return true;
	/* The kernel's own, and those it makes when a router advertises. */
	if ((maker && *(const uint8_t *)RTA_DATA(maker) != IFAPROT_UNSPEC) ||
	    flags & IFA_F_TEMPORARY)
		return true;
	/* Where it does not say whose they are: those of these kinds mostly are. */
	if (!loss->is_maker_told && (is_local || !is_permanent))
		return true;
	if (is_permanent && !is_local && loss->are_addresses_kept)
		return true;
	address_text(AF_INET6, local ? local : address, text);
	if (is_local || !is_permanent)
		return lost(loss, "the kernel would forget the address %s of %s", text,
			    loss->interface);
	return lost(loss,
		    "the kernel would forget the address %s of %s "
		    "(sysctl net.ipv6.conf.%s.keep_addr_on_down=1 keeps it)",
		    text, loss->interface, loss->interface);
}

/* ---- neighbours ---- */

static bool look_at_neighbour(struct nlmsghdr *nlh, void *context)
{
	struct ndmsg *neighbour = NLMSG_DATA(nlh);
	struct rtattr *first =
		(struct rtattr *)((char *)neighbour + NLMSG_ALIGN(sizeof(*neighbour)));
	unsigned left = (unsigned)NLMSG_PAYLOAD(nlh, sizeof(*neighbour));
	bool is_proxy = neighbour->ndm_flags & NTF_PROXY;
	struct loss *loss = context;
	char text[INET6_ADDRSTRLEN];

	if (nlh->nlmsg_type != RTM_NEWNEIGH || (unsigned)neighbour->ndm_ifindex != loss->ifindex ||
	    (neighbour->ndm_family != AF_INET && neighbour->ndm_family != AF_INET6) ||
	    (!is_proxy && !(neighbour->ndm_state & NUD_PERMANENT)))
		return true;
	return lost(loss, "the kernel would forget the %s neighbour %s of %s",
		    is_proxy ? "proxy" : "permanent",
		    address_text(neighbour->ndm_family,
				 mrcd_rtnl_attribute(first, left, NDA_DST, 0), text),
		    loss->interface);
}

/* ---- what is above ---- */

static bool is_vlan(struct rtattr *info)
{
	struct rtattr *kind =
		info ? mrcd_rtnl_attribute(RTA_DATA(info), (unsigned)RTA_PAYLOAD(info),
					   IFLA_INFO_KIND, sizeof("vlan"))
		     : NULL;

	return kind && memcmp(RTA_DATA(kind), "vlan", sizeof("vlan")) == 0;
}

static bool look_at_link(struct nlmsghdr *nlh, void *context)
{
	struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	struct rtattr *first = IFLA_RTA(ifi);
	unsigned left = (unsigned)IFLA_PAYLOAD(nlh);
	struct rtattr *below = mrcd_rtnl_attribute(first, left, IFLA_LINK, sizeof(uint32_t));
	struct rtattr *name = mrcd_rtnl_attribute(first, left, IFLA_IFNAME, 2);
	struct loss *loss = context;

	if (nlh->nlmsg_type != RTM_NEWLINK || number_of(below, 0) != loss->ifindex ||
	    !(ifi->ifi_flags & IFF_UP) || !name ||
	    mrcd_rtnl_attribute(first, left, IFLA_LINK_NETNSID, 0) ||
	    !is_vlan(mrcd_rtnl_attribute(first, left, IFLA_LINKINFO, 0)))
		return true;
	return lost(loss, "the VLAN %.15s is on %s and would go down with it",
		    (const char *)RTA_DATA(name), loss->interface);
}

/* ---- all of it ---- */

int mrcd_interface_loss(const char *interface, unsigned ifindex, char *text_out, size_t text_bytes)
{
	struct mrcd_rtnl_request routes = MRCD_RTNL_REQUEST(RTM_GETROUTE, NLM_F_DUMP, route);
	struct mrcd_rtnl_request nexthops = MRCD_RTNL_REQUEST(RTM_GETNEXTHOP, NLM_F_DUMP, nexthop);
	struct mrcd_rtnl_request addresses = MRCD_RTNL_REQUEST(RTM_GETADDR, NLM_F_DUMP, address);
	struct mrcd_rtnl_request neighbours =
		MRCD_RTNL_REQUEST(RTM_GETNEIGH, NLM_F_DUMP, neighbour);
	struct mrcd_rtnl_request proxies = MRCD_RTNL_REQUEST(RTM_GETNEIGH, NLM_F_DUMP, neighbour);
	struct mrcd_rtnl_request links = MRCD_RTNL_REQUEST(RTM_GETLINK, NLM_F_DUMP, link);
	const struct {
		struct mrcd_rtnl_request *request;
		mrcd_rtnl_fn look;
	} looks[] = {
		{&routes, look_at_route},         {&nexthops, look_at_nexthop},
		{&addresses, look_for_makers},    {&addresses, look_at_address},
		{&neighbours, look_at_neighbour}, {&proxies, look_at_neighbour},
		{&links, look_at_link},
	};
	struct loss loss = {
		.interface = interface,
		.ifindex = ifindex,
		.are_addresses_kept = keeps_addresses(interface),
		.text = text_out,
		.text_bytes = text_bytes,
	};

	addresses.body.address.ifa_family = AF_INET6;
	proxies.body.neighbour.ndm_flags = NTF_PROXY;
	text_out[0] = '\0';
	for (size_t i = 0; i < MRC_ARRAY_LEN(looks) && text_out[0] == '\0'; i++) {
		int r = mrcd_rtnl_ask(looks[i].request, looks[i].look, &loss);

		/* A kernel without these objects has none. */
		if (r < 0 && !(looks[i].request == &nexthops && r == -EOPNOTSUPP))
			return r;
	}
	return 0;
}
