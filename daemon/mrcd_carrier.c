/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_carrier.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_nic.h"

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

/*
 * Any socket does for these ioctls, also one of netlink. Both are answered at once
 * whatever drivers do: they take no lock that a driver is called under. The name is
 * that of the index, since for one that no interface has the kernel may run modprobe.
 */
static bool ask(const struct mrcd_carrier *carrier, const struct mrcd_rail *rail)
{
	struct ifreq ifr = {.ifr_ifindex = (int)rail->ifindex};

	if (rail->drill == MRCD_DRILL_DOWN || !rail->ifindex)
		return false;
	if (ioctl(carrier->fd, SIOCGIFNAME, &ifr) < 0)
		return false;
	if (rail->conf->interface[0] && strcmp(ifr.ifr_name, rail->conf->interface) != 0)
		return false; /* it has another name now */
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
void mrcd_carrier_look(struct mrcd_carrier *carrier)
{
	struct mrcd_worker *worker = carrier->worker;

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			tell(&worker->rails[i], ask(carrier, &worker->rails[i]));
	}
	ask_again_arm(carrier);
}

/* Its interface or address came, went or moved, or might have. */
static void on_place(void *context, struct mrcd_rail *rail, bool is_changed)
{
	struct mrcd_carrier *carrier = context;

	if (is_changed && rail->ops->refresh)
		rail->ops->refresh(rail);
	tell(rail, ask(carrier, rail));
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
		mrcd_nic_ask(rail);
	}
}

/* The name it speaks of; "": none. Not const: the macros of rtnetlink cast it away. */
static const char *name_of(struct nlmsghdr *nlh)
{
	unsigned left = IFLA_PAYLOAD(nlh);

	for (struct rtattr *at = IFLA_RTA(NLMSG_DATA(nlh)); RTA_OK(at, left);
	     at = RTA_NEXT(at, left))
		if (at->rta_type == IFLA_IFNAME && RTA_PAYLOAD(at) <= IF_NAMESIZE)
			return RTA_DATA(at);
	return "";
}

/* May some rail's interface be another than we know? Most messages say no such thing. */
static bool does_move(const struct mrcd_carrier *carrier, struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	const struct mrcd_worker *worker = carrier->worker;
	const char *name;

	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) || ifi->ifi_family != AF_UNSPEC)
		return false;
	name = name_of(nlh);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];
		bool is_known = rail->ifindex == (unsigned)ifi->ifi_index;
		bool is_named =
			mrcd_rail_is_there(rail) && strcmp(rail->conf->interface, name) == 0;

		if (!mrcd_rail_is_there(rail))
			continue;
		if (nlh->nlmsg_type == RTM_DELLINK ? is_known
		    : rail->conf->interface[0]     ? is_named != is_known
						   : is_known || !rail->ifindex)
			return true;
	}
	return false;
}

/* What a message may have changed. */
struct changes {
	bool is_place, is_address;
};

static void on_message(struct mrcd_carrier *carrier, struct nlmsghdr *nlh, struct changes *changes)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		on_link_message(carrier, nlh);
		changes->is_place = changes->is_place || does_move(carrier, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		changes->is_address = true;
		break;
	default:
		break;
	}
}

static void on_netlink(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_carrier *carrier = context;
	struct changes changes = {0};
	bool is_changed = false;

	mrcd_worker_now(carrier->worker);
	for (int i = 0; i < READS_PER_TURN; i++) {
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, carrier->message, sizeof(carrier->message), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_len);
		struct nlmsghdr *nlh = (struct nlmsghdr *)carrier->message;

		if (n < 0 && errno == ENOBUFS) {
			is_changed = changes.is_address = true; /* what was lost can be anything */
			continue;
		}
		if (n <= 0)
			break;
		if (from.nl_pid != 0)
			continue; /* not the kernel */
		is_changed = true;
		for (unsigned left = (unsigned)n; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left))
			on_message(carrier, nlh, &changes);
	}
	if (is_changed)
		mrcd_carrier_look(carrier);
	if (changes.is_place || changes.is_address)
		mrcd_nics_look(carrier->worker->nics, changes.is_address);
}

static void on_ask_again(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_carrier *carrier = context;

	mrcd_worker_now(carrier->worker);
	mrcd_carrier_look(carrier);
	mrcd_nics_look(carrier->worker->nics, false);
}

void mrcd_carrier_add(struct mrcd_rail *rail)
{
	struct mrcd_carrier *carrier = rail->worker->carrier;

	if (!carrier)
		return;
	/* Where it was before it was renewed may be another place than now. */
	rail->ifindex = 0;
	rail->nic = (struct mrcd_nic){0};
	rail->is_carrier_up = false;
	mrcd_nics_look(carrier->worker->nics, false);
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
	mrcd_nics_begin(worker->nics, on_place, carrier);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			worker->rails[i].is_carrier_up = ask(carrier, &worker->rails[i]);
	}
	ask_again_arm(carrier);
	*carrier_out = carrier;
	return 0;
}

void mrcd_carrier_free(struct mrcd_carrier *carrier)
{
	if (!carrier)
		return;
	mrcd_nics_stop(carrier->worker->nics);
	event_del(&carrier->event);
	event_del(&carrier->ask_event);
	close(carrier->fd);
	free(carrier);
}
