/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_rtnl.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES (32U * 1024U)

/* The answer to a request: what NLMSG_ERROR says, or 0 at the end of a dump. */
static int answer_take(int fd, mrcd_rtnl_fn look, void *context)
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

int mrcd_rtnl_ask(struct mrcd_rtnl_request *request, mrcd_rtnl_fn look, void *context)
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

struct rtattr *mrcd_rtnl_attribute(struct rtattr *first, unsigned left, unsigned type,
				   unsigned bytes)
{
	for (struct rtattr *at = first; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if ((at->rta_type & NLA_TYPE_MASK) == type && RTA_PAYLOAD(at) >= bytes)
			return at;
	}
	return NULL;
}
