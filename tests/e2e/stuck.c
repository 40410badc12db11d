/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver that hangs, and a link that does not come up, for a daemon that has
 * this loaded before the C library (LD_PRELOAD).
 *
 * While the file $STUCK.hang exists, whoever asks a driver, or has the kernel
 * list interfaces or addresses, is not answered; $STUCK.hung says that somebody
 * waits. While $STUCK.down exists no link can be taken up.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 256

static const char *file_named(const char *what, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s.%s", getenv("STUCK"), what);
	return path;
}

static void hang(void)
{
	const struct timespec moment = {.tv_nsec = 5000000};
	char path[PATH_BYTES];
	int fd;

	while (access(file_named("hang", path), F_OK) == 0) {
		fd = open(file_named("hung", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		nanosleep(&moment, NULL);
	}
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	if (request == SIOCETHTOOL || request == SIOCGIFHWADDR)
		hang();
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **list)
{
	int (*real)(struct ifaddrs **) =
		(int (*)(struct ifaddrs **))(uintptr_t)dlsym(RTLD_NEXT, "getifaddrs");

	hang();
	return real(list);
}

__attribute__((visibility("default"))) unsigned int if_nametoindex(const char *name)
{
	unsigned (*real)(const char *) =
		(unsigned (*)(const char *))(uintptr_t)dlsym(RTLD_NEXT, "if_nametoindex");

	hang();
	return real(name);
}

static bool is_link_up(const void *bytes, size_t len)
{
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg ifi;
	} message;

	if (len < sizeof(message))
		return false;
	memcpy(&message, bytes, sizeof(message));
	return message.nlh.nlmsg_type == RTM_SETLINK && message.nlh.nlmsg_len == len &&
	       message.ifi.ifi_change & message.ifi.ifi_flags & IFF_UP;
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t len,
						    int flags)
{
	char path[PATH_BYTES];

	if (is_link_up(bytes, len) && access(file_named("down", path), F_OK) == 0) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}
