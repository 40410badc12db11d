/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_interface.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_interface_loss.h"
#include "mrcd_rtnl.h"

#define NOTE       "drill.link"
#define PATH_BYTES 160U

/* ---- the kernel ---- */

/* `change` and `flags` of IFF_UP; with 0 and 0 nothing is changed, and still only who may is not refused. */
static int link_set(unsigned ifindex, unsigned change, unsigned flags)
{
	struct mrcd_rtnl_request request = MRCD_RTNL_REQUEST(RTM_SETLINK, NLM_F_ACK, link);

	request.body.link = (struct ifinfomsg){.ifi_family = AF_UNSPEC,
					       .ifi_index = (int)ifindex,
					       .ifi_change = change,
					       .ifi_flags = flags};
	return mrcd_rtnl_ask(&request, NULL, NULL);
}

/* Has nobody taken it down? False too where the kernel does not say. */
static bool is_up(const char *interface)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_known;

	if (fd < 0)
		return false;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	is_known = ioctl(fd, SIOCGIFFLAGS, &ifr) == 0;
	close(fd);
	return is_known && ifr.ifr_flags & IFF_UP;
}

int mrcd_interface_check(const char *interface, char why_out[MRCD_INTERFACE_WHY_BYTES])
{
	unsigned ifindex = if_nametoindex(interface);
	int r = ifindex ? link_set(ifindex, 0, 0) : -ENODEV;

	if (r == 0 && !is_up(interface)) {
		snprintf(why_out, MRCD_INTERFACE_WHY_BYTES, "%s is down already", interface);
		return -ENETDOWN; /* and shall stay so */
	}
	if (r == 0)
		r = mrcd_interface_loss(interface, ifindex, why_out, MRCD_INTERFACE_WHY_BYTES);
	if (r == 0)
		return why_out[0] != '\0' ? -EBUSY : 0;
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

int mrcd_interface_owed(const char *dir, char interface_out[16])
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
		return n < 0 ? -EIO : 0; /* killed before it was written: nothing was done */
	interface_out[n] = '\0';
	interface_out[strcspn(interface_out, "\n")] = '\0';
	return 1;
}

/* ---- down and up ---- */

int mrcd_interface_down(const char *dir, const char *interface,
			char why_out[MRCD_INTERFACE_WHY_BYTES])
{
	unsigned ifindex = if_nametoindex(interface);
	char owed[16];
	int r;

	if (!ifindex)
		return -ENODEV;
	/* There is room for one name: that of a link which is still down shall not be lost. */
	if (mrcd_interface_owed(dir, owed) == 1 && strcmp(owed, interface) != 0) {
		snprintf(why_out, MRCD_INTERFACE_WHY_BYTES,
			 "%s, which an earlier drill took down, is not up again yet "
			 "(ip link set %s up)",
			 owed, owed);
		return -EBUSY;
	}
	/* First: killed between the two we leave a note too many, which does no harm. */
	r = note_write(dir, interface);
	if (r < 0) {
		note_forget(dir);
		return r;
	}
	r = link_set(ifindex, IFF_UP, 0);
	/* An answer that was lost is no proof that nothing was done. */
	if (r < 0)
		mrcd_interface_up(dir, interface);
	return r;
}

int mrcd_interface_up(const char *dir, const char *interface)
{
	unsigned ifindex = if_nametoindex(interface);
	int r = ifindex ? 0 : -ENODEV;

	/* Somebody else's hand will do, and this needs no right to anything. */
	if (r == 0 && !is_up(interface))
		r = link_set(ifindex, IFF_UP, IFF_UP);
	/* One that is gone has nothing to be given back. */
	if (r == 0 || r == -ENODEV)
		note_forget(dir);
	return r;
}
