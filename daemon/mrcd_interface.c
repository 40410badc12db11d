/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_interface.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_interface_loss.h"
#include "mrcd_rtnl.h"

#define NOTE       "drill.link"
#define PATH_BYTES 160U
#define NOTE_BYTES 32U

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

/*
 * What it is called now; by its name where no index is known. -ENODEV: it is not
 * here, and one that has its name now is another one.
 */
static int link_find(struct mrcd_interface *link)
{
	char name[IF_NAMESIZE];

	if (link->ifindex == 0)
		link->ifindex = if_nametoindex(link->name);
	if (link->ifindex == 0 || !if_indextoname(link->ifindex, name))
		return -ENODEV;
	memcpy(link->name, name, sizeof(link->name));
	return 0;
}

bool mrcd_interface_is_same(const struct mrcd_interface *a, const struct mrcd_interface *b)
{
	return a->ifindex != 0 && b->ifindex != 0 ? a->ifindex == b->ifindex
						  : strcmp(a->name, b->name) == 0;
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

/* The name first, and alone in its line: there earlier versions look, and look for no more. */
static int note_write(const char *dir, const struct mrcd_interface *link)
{
	char path[PATH_BYTES];
	int fd, r = 0;

	snprintf(path, sizeof(path), "%s/" NOTE, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n%u\n", link->name, link->ifindex) < 0)
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

int mrcd_interface_owed(const char *dir, struct mrcd_interface *link_out)
{
	char path[PATH_BYTES], note[NOTE_BYTES];
	size_t name_len;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/" NOTE, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(fd, note, sizeof(note) - 1);
	close(fd);
	if (n <= 1)
		return n < 0 ? -EIO : 0; /* killed before it was written: nothing was done */
	note[n] = '\0';
	name_len = strcspn(note, "\n");
	*link_out = (struct mrcd_interface){
		.ifindex = (unsigned)strtoul(note + name_len, NULL, 10),
	};
	snprintf(link_out->name, sizeof(link_out->name), "%.*s", (int)name_len, note);
	link_find(link_out);
	return 1;
}

/* ---- down and up ---- */

int mrcd_interface_down(const char *dir, struct mrcd_interface *link,
			char why_out[MRCD_INTERFACE_WHY_BYTES])
{
	struct mrcd_interface owed = {.ifindex = 0};
	int r;

	link->ifindex = if_nametoindex(link->name);
	if (!link->ifindex)
		return -ENODEV;
	/* There is room for one: that of a link which is still down shall not be lost. */
	if (mrcd_interface_owed(dir, &owed) == 1 && !mrcd_interface_is_same(&owed, link)) {
		snprintf(why_out, MRCD_INTERFACE_WHY_BYTES,
			 "%s, which an earlier drill took down, is not up again yet "
			 "(ip link set %s up)",
			 owed.name, owed.name);
		return -EBUSY;
	}
	/* First: killed between the two we leave a note too many, which does no harm. */
	r = note_write(dir, link);
	if (r < 0) {
		note_forget(dir);
		return r;
	}
	r = link_set(link->ifindex, IFF_UP, 0);
	/* An answer that was lost is no proof that nothing was done. */
	if (r < 0)
		mrcd_interface_up(dir, link);
	return r;
}

int mrcd_interface_up(const char *dir, struct mrcd_interface *link)
{
	int r = link_find(link);

	/* Somebody else's hand will do, and this needs no right to anything. */
	if (r == 0 && !is_up(link->name))
		r = link_set(link->ifindex, IFF_UP, IFF_UP);
	/* One that is gone has nothing to be given back. */
	if (r == 0 || r == -ENODEV)
		note_forget(dir);
	return r;
}
