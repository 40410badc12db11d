/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_tcp_sock.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LISTEN_BACKLOG      128
#define NOTSENT_LOWAT_BYTES (128 * 1024)

static bool is_link_local(const struct sockaddr *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;

	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
}

/* A socket that uses this rail's interface and no other, as far as we may say so. */
static int socket_make(const struct mrcd_conf_rail *conf, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (!conf->interface[0])
		return fd;
	r = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, conf->interface,
		       (socklen_t)strlen(conf->interface));
	/* Without CAP_NET_RAW old kernels refuse; the rail's address then has to do. */
	if (r < 0 && errno != EPERM) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

int mrcd_tcp_listen(const struct mrcd_conf_rail *conf, const struct sockaddr_storage *own,
		    socklen_t own_len)
{
	const int one = 1;
	int fd = socket_make(conf, own->ss_family);
	int r;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (own->ss_family == AF_INET) {
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one));
	}
	if (bind(fd, (const struct sockaddr *)own, own_len) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

int mrcd_tcp_connect(const struct mrcd_conf_rail *conf, const struct sockaddr_storage *own,
		     socklen_t own_len, const struct sockaddr_storage *to, socklen_t to_len)
{
	struct sockaddr_storage from = *own, dest = *to;
	const int one = 1;
	int fd, r;

	if (own->ss_family != to->ss_family)
		return -EAFNOSUPPORT;
	if (from.ss_family == AF_INET) {
		((struct sockaddr_in *)&from)->sin_port = 0;
	} else {
		struct sockaddr_in6 *dest6 = (struct sockaddr_in6 *)&dest;

		((struct sockaddr_in6 *)&from)->sin6_port = 0;
		/* "fe80::2" means on this rail. */
		if (!dest6->sin6_scope_id && is_link_local((const struct sockaddr *)dest6))
			dest6->sin6_scope_id = if_nametoindex(conf->interface);
	}

	fd = socket_make(conf, to->ss_family);
	if (fd < 0)
		return fd;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&from, own_len) < 0)
		goto err_close;
	if (connect(fd, (const struct sockaddr *)&dest, to_len) < 0 && errno != EINPROGRESS)
		goto err_close;
	return fd;

err_close:
	r = -errno;
	close(fd);
	return r;
}

void mrcd_tcp_tune(int fd, unsigned user_timeout_ms)
{
	const int one = 1, lowat = NOTSENT_LOWAT_BYTES;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* What the kernel holds unsent on a dying path is what must be sent again elsewhere. */
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
}

void mrcd_tcp_abort(int fd)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	/* A FIN would queue behind everything the dead path never took, for minutes. The reset goes
	 * out now and frees that memory; acknowledgements lost with it are repeated elsewhere,
	 * counts only grow. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

void mrcd_tcp_hush(int fd)
{
	/* From there it has no way to the peer. Without CAP_NET_RAW it is refused, and only slower. */
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof("lo"));
}

void mrcd_tcp_address_text(const struct sockaddr_storage *address, socklen_t len,
			   char text[MRCD_ADDRESS_TEXT_BYTES])
{
	if (getnameinfo((const struct sockaddr *)address, len, text, MRCD_ADDRESS_TEXT_BYTES, NULL,
			0, NI_NUMERICHOST) != 0)
		snprintf(text, MRCD_ADDRESS_TEXT_BYTES, "?");
}
