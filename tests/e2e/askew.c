/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another host, for a daemon that has this loaded before the C library
 * (LD_PRELOAD): its time of day is an hour ahead, its clocks run one part in a
 * hundred too fast, its kernel is another one, and so is its cards' firmware.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define AHEAD_S  3600
#define TOO_FAST 100 /* by one part of so many */
#define OUR_OWN  __attribute__((visibility("default")))

/* How much a clock has gained since this was first asked. */
static long long gained_ns(void)
{
	static long long begin_ns;
	struct timespec now;
	long long at_ns;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	at_ns = now.tv_sec * NS_PER_S + now.tv_nsec;
	if (begin_ns == 0)
		begin_ns = at_ns;
	return (at_ns - begin_ns) / TOO_FAST;
}

OUR_OWN int clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);
	long long ns;

	if (r < 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return r;
	ns = time->tv_nsec + gained_ns();
	time->tv_sec += ns / NS_PER_S + (clock == CLOCK_REALTIME ? AHEAD_S : 0);
	time->tv_nsec = ns % NS_PER_S;
	return 0;
}

OUR_OWN int uname(struct utsname *name)
{
	int r = (int)syscall(SYS_uname, name);

	if (r == 0)
		strcpy(name->release, "7.99.0-elsewhere");
	return r;
}

OUR_OWN int ioctl(int fd, unsigned long request, ...)
{
	struct ethtool_drvinfo *driver;
	const struct ifreq *ifr;
	va_list args;
	void *argument;
	int r;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	r = (int)syscall(SYS_ioctl, fd, request, argument);
	if (r < 0 || request != SIOCETHTOOL)
		return r;
	ifr = argument;
	driver = (struct ethtool_drvinfo *)(void *)ifr->ifr_data;
	if (driver->cmd == ETHTOOL_GDRVINFO)
		strcpy(driver->fw_version, "9.9.9");
	return r;
}
