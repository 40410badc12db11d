/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_tcp_info - what the kernel says of a connection; alone, for linux/tcp.h does not go with netinet/tcp.h */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

#include "mrcd_tcp_sock.h"

bool mrcd_tcp_resends(int fd, uint64_t *sent_out, uint64_t *resent_out)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    len < offsetof(struct tcp_info, tcpi_segs_out) + sizeof(info.tcpi_segs_out))
		return false;
	*sent_out = info.tcpi_segs_out;
	*resent_out = info.tcpi_total_retrans;
	return true;
}
