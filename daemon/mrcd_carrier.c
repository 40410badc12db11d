/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_carrier.h"

#include <assert.h>
#include <errno.h>
#include <event2/event_struct.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_log.h"
#include "mrcd_resolve.h"

#ifndef IFF_LOWER_UP
#define IFF_LOWER_UP 0x10000 /* linux/if.h, which does not go together with net/if.h */
#endif

#define MESSAGE_BYTES  (32U * 1024U)
#define READS_PER_TURN 16
/* How long a rail may stay away because an event was missed. */
#define ASK_AGAIN_MS 250

struct mrcd_carrier {
	struct mrcd_worker *worker; /* the owner */
	int fd;
	struct event event;
	struct event ask_event; /* armed while a rail is down */
	uint8_t message[MESSAGE_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* ---- asking ---- */

uint64_t mrcd_carrier_speed(const char *interface)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq ifr = {.ifr_data = (void *)&cmd};
	uint32_t mbits;
	int fd, r;

	if (interface[0] == '\0')
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	r = ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	mbits = ethtool_cmd_speed(&cmd);
	return r < 0 || mbits == (uint32_t)SPEED_UNKNOWN ? 0 : mbits * 1000000ULL;
}

static bool is_same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(const void *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && !memcmp(&a6->sin6_addr, &b6->sin6_addr, 16);
}

/* The index of the interface that has this address; 0: none. */
static unsigned ifindex_by_address(const char *text)
{
	struct sockaddr_storage address;
	struct ifaddrs *list;
	socklen_t address_len;
	unsigned ifindex = 0;

	if (mrcd_resolve_numeric(text, 0, &address, &address_len) < 0 || getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *ifa = list; ifa && !ifindex; ifa = ifa->ifa_next) {
		if (is_same_address(ifa->ifa_addr, &address))
			ifindex = if_nametoindex(ifa->ifa_name);
	}
	freeifaddrs(list);
	return ifindex;
}

static unsigned ifindex_of(const struct mrcd_rail *rail)
{
	if (rail->conf->interface[0])
		return if_nametoindex(rail->conf->interface);
	return ifindex_by_address(rail->conf->address);
}

/* Any socket does for this ioctl, also one of netlink. */
static bool ask(const struct mrcd_carrier *carrier, const struct mrcd_rail *rail)
{
	struct ifreq ifr = {0};

	if (rail->drill == MRCD_DRILL_DOWN)
		return false;
	static_assert(sizeof(ifr.ifr_name) == sizeof(rail->conf->interface), "names of one size");
	if (rail->conf->interface[0])
		memcpy(ifr.ifr_name, rail->conf->interface, sizeof(ifr.ifr_name));
	else if (!rail->ifindex || !if_indextoname(rail->ifindex, ifr.ifr_name))
		return false;
	if (ioctl(carrier->fd, SIOCGIFFLAGS, &ifr) < 0)
		return false;
	return ifr.ifr_flags & IFF_UP && ifr.ifr_flags & IFF_RUNNING;
}

bool mrcd_carrier_ask(struct mrcd_rail *rail)
{
	const struct mrcd_carrier *carrier = rail->worker->carrier;

	return carrier ? ask(carrier, rail) : rail->is_carrier_up;
}

/* ---- telling ---- */

static void tell(struct mrcd_rail *rail, bool is_up)
{
	if (rail->is_carrier_up != is_up)
		mrcd_rail_on_carrier(rail, is_up); /* keeps is_carrier_up */
}

static void ask_again_arm(struct mrcd_carrier *carrier)
{
	const struct timeval again = {.tv_usec = ASK_AGAIN_MS * 1000};
	struct mrcd_worker *worker = carrier->worker;
	bool is_any_down = false;

	for (uint32_t i = 0; i < worker->rail_count; i++)
		is_any_down = is_any_down || (mrcd_rail_is_there(&worker->rails[i]) &&
					      !worker->rails[i].is_carrier_up);
	if (is_any_down)
		event_add(&carrier->ask_event, &again);
	else
		event_del(&carrier->ask_event);
}

/* Compare every rail with what the kernel says now. */
static void rails_update(struct mrcd_carrier *carrier, bool is_address_changed)
{
	struct mrcd_worker *worker = carrier->worker;

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];
		unsigned ifindex;
		bool is_moved;

		if (!mrcd_rail_is_there(rail))
			continue;
		ifindex = ifindex_of(rail);
		is_moved = ifindex != rail->ifindex;
		rail->ifindex = ifindex;
		if ((is_moved || is_address_changed) && rail->ops->refresh)
			rail->ops->refresh(rail);
		tell(rail, ask(carrier, rail));
	}
	ask_again_arm(carrier);
}

/* ---- listening ---- */

/*
 * A link that went down and up again before we got here is up when asked. The
 * message still says that it was down, and so do we: its rail lost what was on
 * the wire, and its losses are counted.
 */
static void on_link_message(struct mrcd_carrier *carrier, struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	const unsigned wanted = IFF_UP | IFF_RUNNING | IFF_LOWER_UP;
	struct mrcd_worker *worker = carrier->worker;

	/* A bridge speaks of its ports with the same types: leaving one is no loss of carrier. */
	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) || ifi->ifi_family != AF_UNSPEC)
		return;
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail) || rail->ifindex != (unsigned)ifi->ifi_index)
			continue;
		if (rail->ops->link_changed)
			rail->ops->link_changed(rail);
		if (nlh->nlmsg_type != RTM_NEWLINK || (ifi->ifi_flags & wanted) != wanted)
			tell(rail, false);
		/* Last: it asks the driver, which may hold us up when the card is ill. */
		mrcd_rail_on_interface(rail);
	}
}

static void on_message(struct mrcd_carrier *carrier, struct nlmsghdr *nlh, bool *is_address_changed)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		on_link_message(carrier, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		*is_address_changed = true;
		break;
	default:
		break;
	}
}

static void on_netlink(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_carrier *carrier = context;
	bool is_address_changed = false, is_changed = false;

	mrcd_worker_now(carrier->worker);
	for (int i = 0; i < READS_PER_TURN; i++) {
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, carrier->message, sizeof(carrier->message), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_len);
		struct nlmsghdr *nlh = (struct nlmsghdr *)carrier->message;

		if (n < 0 && errno == ENOBUFS) {
			is_changed = is_address_changed = true; /* what was lost can be anything */
			continue;
		}
		if (n <= 0)
			break;
		if (from.nl_pid != 0)
			continue; /* not the kernel */
		is_changed = true;
		for (unsigned left = (unsigned)n; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left))
			on_message(carrier, nlh, &is_address_changed);
	}
	if (is_changed)
		rails_update(carrier, is_address_changed);
}

void mrcd_carrier_look(struct mrcd_carrier *carrier)
{
	rails_update(carrier, false);
}

static void on_ask_again(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_carrier *carrier = context;

	mrcd_worker_now(carrier->worker);
	mrcd_carrier_look(carrier);
}

static void rail_take(const struct mrcd_carrier *carrier, struct mrcd_rail *rail)
{
	rail->ifindex = ifindex_of(rail);
	rail->is_carrier_up = ask(carrier, rail);
}

void mrcd_carrier_add(struct mrcd_rail *rail)
{
	struct mrcd_carrier *carrier = rail->worker->carrier;

	if (!carrier)
		return;
	rail_take(carrier, rail);
	ask_again_arm(carrier);
}

int mrcd_carrier_new(struct mrcd_worker *worker, struct mrcd_carrier **carrier_out)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	struct mrcd_carrier *carrier = calloc(1, sizeof(*carrier));
	int r;

	if (!carrier)
		return -ENOMEM;
	carrier->worker = worker;
	carrier->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (carrier->fd < 0 ||
	    bind(carrier->fd, (const struct sockaddr *)&groups, sizeof(groups)) < 0) {
		r = -errno;
		if (carrier->fd >= 0)
			close(carrier->fd);
		free(carrier);
		return r;
	}
	event_assign(&carrier->event, worker->base, carrier->fd, EV_READ | EV_PERSIST, on_netlink,
		     carrier);
	event_add(&carrier->event, NULL);
	event_assign(&carrier->ask_event, worker->base, -1, 0, on_ask_again, carrier);

	/* Asked after we listen, so that no change falls between. */
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			rail_take(carrier, &worker->rails[i]);
	}
	ask_again_arm(carrier);
	*carrier_out = carrier;
	return 0;
}

void mrcd_carrier_free(struct mrcd_carrier *carrier)
{
	if (!carrier)
		return;
	event_del(&carrier->event);
	event_del(&carrier->ask_event);
	close(carrier->fd);
	free(carrier);
}
