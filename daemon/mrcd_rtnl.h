/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_rtnl - one question to rtnetlink, or one wish, and its answer
 *
 * Threads: any but a loop's: the kernel answers when it can take its lock.
 */
#ifndef MRCD_RTNL_H
#define MRCD_RTNL_H

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>

struct mrcd_rtnl_request {
	struct nlmsghdr nlh;
	union {
		struct ifinfomsg link;
		struct rtmsg route;
		struct ifaddrmsg address;
		struct ndmsg neighbour;
		struct nhmsg nexthop;
	} body;
};

/* A wish that is answered with yes or no; or a dump, if `flags` has NLM_F_DUMP. */
#define MRCD_RTNL_REQUEST(type, flags, member)                                         \
	{                                                                              \
		.nlh = {.nlmsg_len = NLMSG_LENGTH(                                     \
				sizeof(((struct mrcd_rtnl_request *)0)->body.member)), \
			.nlmsg_type = (type),                                          \
			.nlmsg_flags = NLM_F_REQUEST | (flags)},                       \
	}

/* Looks at one message of a dump; false: enough. Not const: the macros of rtnetlink cast it away. */
typedef bool (*mrcd_rtnl_fn)(struct nlmsghdr *nlh, void *context);

/* 0: done, or looked through. A negative errno: what the kernel says, or that it cannot be asked. */
int mrcd_rtnl_ask(struct mrcd_rtnl_request *request, mrcd_rtnl_fn look, void *context);

/* The first attribute of this type, if it has `bytes` or more; NULL: there is none. */
struct rtattr *mrcd_rtnl_attribute(struct rtattr *first, unsigned left, unsigned type,
				   unsigned bytes);

#endif
