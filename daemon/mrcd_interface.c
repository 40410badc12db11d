/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrc_base.h"

#define ANSWER_BYTES (32U * 1024U)
#define NOTE         "drill.link"
#define PATH_BYTES   160U

/* ---- rtnetlink ---- */

struct request {
	struct nlmsghdr nlh;
	union {
		struct ifinfomsg link;
		struct rtmsg route;
		struct ifaddrmsg address;
	} body;
};

/* Looks at one message of a dump; false: enough. */
typedef bool (*look_fn)(struct nlmsghdr *nlh, void *context);

/* The answer to a request: what NLMSG_ERROR says, or 0 at the end of a dump. */
static int answer_take(int fd, look_fn look, void *context)
{
	static const int done = 1;
	union {
		struct nlmsghdr nlh;
		uint8_t bytes[ANSWER_BYTES];
	} in;
	int r = done;

	while (r == done) {
		ssize_t n = recv(fd, &in, sizeof(in), 0);
		unsigned left = n > 0 ? (unsigned)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		for (struct nlmsghdr *nlh = &in.nlh; r == done && NLMSG_OK(nlh, left);
		     nlh = NLMSG_NEXT(nlh, left)) {
			if (nlh->nlmsg_type == NLMSG_ERROR)
				r = ((const struct nlmsgerr *)NLMSG_DATA(nlh))->error;
			else if (nlh->nlmsg_type == NLMSG_DONE || (look && !look(nlh, context)))
				r = 0;
		}
	}
	return r;
}

static int ask(struct request *request, look_fn look, void *context)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;

	if (fd < 0)
		return -errno;
	r = send(fd, request, request->nlh.nlmsg_len, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = answer_take(fd, look, context);
	close(fd);
	return r;
}

/* `change` and `flags` of IFF_UP; with 0 and 0 nothing is changed, and still only who may is not refused. */
static int link_set(unsigned ifindex, unsigned change, unsigned flags)
{
	struct request request = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(request.body.link)),
			.nlmsg_type = RTM_SETLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.body.link = {.ifi_family = AF_UNSPEC,
			      .ifi_index = (int)ifindex,
			      .ifi_change = change,
			      .ifi_flags = flags},
	};

	return ask(&request, NULL, NULL);
}

/* ---- what would not come back ---- */

struct loss {
	unsigned ifindex;
	char text[INET6_ADDRSTRLEN + 8]; /* ""; else what would be lost */
};

/* Not const: the macros of rtnetlink cast it away. */
static const void *attribute(struct rtattr *first, unsigned left, unsigned type)
{
	for (struct rtattr *at = first; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if (at->rta_type == type)
			return RTA_DATA(at);
	return NULL;
}

static bool look_at_route(struct nlmsghdr *nlh, void *context)
{
	struct rtmsg *route = NLMSG_DATA(nlh);
	unsigned left = RTM_PAYLOAD(nlh);
	const unsigned *out = attribute(RTM_RTA(route), left, RTA_OIF);
	const void *to = attribute(RTM_RTA(route), left, RTA_DST);
	struct loss *loss = context;
	char address[INET6_ADDRSTRLEN];

	/* The kernel makes its own again, and those of router advertisements follow. */
	if (nlh->nlmsg_type != RTM_NEWROUTE || !out || *out != loss->ifindex ||
	    route->rtm_protocol == RTPROT_KERNEL || route->rtm_protocol == RTPROT_RA)
		return true;
	if (to && inet_ntop(route->rtm_family, to, address, sizeof(address)))
		snprintf(loss->text, sizeof(loss->text), "%s/%u", address, route->rtm_dst_len);
	else
		snprintf(loss->text, sizeof(loss->text), "default");
	return false;
}

static bool look_at_address(struct nlmsghdr *nlh, void *context)
{
	struct ifaddrmsg *ifa = NLMSG_DATA(nlh);
	const void *address = attribute(IFA_RTA(ifa), IFA_PAYLOAD(nlh), IFA_ADDRESS);
	struct loss *loss = context;

	if (nlh->nlmsg_type != RTM_NEWADDR || ifa->ifa_index != loss->ifindex || !address ||
	    ifa->ifa_scope >= RT_SCOPE_LINK || !(ifa->ifa_flags & IFA_F_PERMANENT))
		return true;
	inet_ntop(AF_INET6, address, loss->text, sizeof(loss->text));
	return false;
}

static bool keeps_addresses(const char *interface)
{
	char path[PATH_BYTES], digit = '0';
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/keep_addr_on_down", interface);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, &digit, 1) != 1)
		digit = '0';
	close(fd);
	return digit != '0' && digit != '-';
}

static int losses_find(const char *interface, unsigned ifindex, char *why)
{
	struct request routes = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(routes.body.route)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.body.route = {.rtm_family = AF_UNSPEC},
	};
	struct request addresses = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(addresses.body.address)),
			.nlmsg_type = RTM_GETADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.body.address = {.ifa_family = AF_INET6},
	};
	struct loss loss = {.ifindex = ifindex};
	int r = ask(&routes, look_at_route, &loss);

	if (r < 0)
		return r;
	if (loss.text[0] != '\0') {
		snprintf(why, MRCD_INTERFACE_WHY_BYTES,
			 "the kernel would forget the route to %s by %s", loss.text, interface);
		return -EBUSY;
	}
	r = keeps_addresses(interface) ? 0 : ask(&addresses, look_at_address, &loss);
	if (r < 0)
		return r;
	if (loss.text[0] != '\0') {
		snprintf(why, MRCD_INTERFACE_WHY_BYTES,
			 "the kernel would forget the address %s of %s "
			 "(sysctl net.ipv6.conf.%s.keep_addr_on_down=1 keeps it)",
			 loss.text, interface, interface);
		return -EBUSY;
	}
	return 0;
}

int mrcd_interface_check(const char *interface, char why_out[MRCD_INTERFACE_WHY_BYTES])
{
	unsigned ifindex = if_nametoindex(interface);
	int r = ifindex ? link_set(ifindex, 0, 0) : -ENODEV;

	if (r == 0) {
		r = losses_find(interface, ifindex, why_out);
		if (r == 0 || r == -EBUSY)
			return r;
	}
	if (r == -EPERM)
		snprintf(why_out, MRCD_INTERFACE_WHY_BYTES,
			 "the daemon has no CAP_NET_ADMIN, so it may take no link down");
	else
		snprintf(why_out, MRCD_INTERFACE_WHY_BYTES, "%s: %s", interface, strerror(-r));
	return r;
}

/* ---- the note ---- */

static int note_write(const char *dir, const char *interface)
{
	char path[PATH_BYTES];
	int fd, r = 0;

	snprintf(path, sizeof(path), "%s/" NOTE, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n", interface) < 0)
		r = -errno;
	close(fd);
	return r;
}

static void note_forget(const char *dir)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/" NOTE, dir);
	unlink(path);
}

/* 0: there is none. */
static int note_read(const char *dir, char interface_out[16])
{
	char path[PATH_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/" NOTE, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(fd, interface_out, 15);
	close(fd);
	if (n <= 1)
		return -EBADMSG;
	interface_out[n] = '\0';
	interface_out[strcspn(interface_out, "\n")] = '\0';
	return 1;
}

/* ---- down and up ---- */

int mrcd_interface_down(const char *dir, const char *interface)
{
	unsigned ifindex = if_nametoindex(interface);
	int r;

	if (!ifindex)
		return -ENODEV;
	/* First: killed between the two we leave a note too many, which does no harm. */
	r = note_write(dir, interface);
	if (r == 0)
		r = link_set(ifindex, IFF_UP, 0);
	if (r < 0)
		note_forget(dir);
	return r;
}

int mrcd_interface_up(const char *dir, const char *interface)
{
	unsigned ifindex = if_nametoindex(interface);
	int r = ifindex ? link_set(ifindex, IFF_UP, IFF_UP) : -ENODEV;

	/* One that is gone has nothing to be given back. */
	if (r == 0 || r == -ENODEV)
		note_forget(dir);
	return r;
}

int mrcd_interface_recover(const char *dir, char interface_out[16])
{
	int r = note_read(dir, interface_out);

	if (r == -EBADMSG)
		note_forget(dir);
	if (r <= 0)
		return r;
	r = mrcd_interface_up(dir, interface_out);
	return r < 0 ? r : 1;
}
