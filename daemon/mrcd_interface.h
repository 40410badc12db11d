/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_interface - take a network interface down and up again, and never leave it down
 *
 * While it is down because of us, a file in the runtime directory says so: the
 * daemon that starts next after a crash takes it up. It is remembered by its
 * index, for it may be renamed meanwhile.
 *
 * Threads: down and up block (a driver takes milliseconds to a second) and are
 *          made for a thread off the loop; one call at a time.
 * I/O:     rtnetlink, and that file.
 */
#ifndef MRCD_INTERFACE_H
#define MRCD_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>

#define MRCD_INTERFACE_WHY_BYTES 256U

struct mrcd_interface {
	char name[16];    /* what it was called when we looked last */
	unsigned ifindex; /* 0: only its name is known */
};

bool mrcd_interface_is_same(const struct mrcd_interface *a, const struct mrcd_interface *b);

/*
 * May we, and would all of it come back? 0; or a negative errno with what is in
 * the way, for people, in why_out. -EPERM: no CAP_NET_ADMIN. -ENODEV: there is
 * no such interface. -ENETDOWN: it is down as it is. -EBUSY: the kernel would forget something that does not
 * come back by itself (mrcd_interface_loss.h).
 */
int mrcd_interface_check(const char *interface, char why_out[MRCD_INTERFACE_WHY_BYTES]);

/*
 * Note it down in `dir`, then take it down: by its name, and its index is found.
 * On error it was taken up again, or left alone, and nothing is noted; or that
 * failed as well, and the note stays (mrcd_interface_owed()). -EBUSY: one that
 * was noted before is not up again; why_out says which.
 */
int mrcd_interface_down(const char *dir, struct mrcd_interface *link,
			char why_out[MRCD_INTERFACE_WHY_BYTES]);
/*
 * Take it up unless somebody else has, then forget the note; its name is looked
 * up anew. On error the note stays, but for -ENODEV: it has gone from here.
 */
int mrcd_interface_up(const char *dir, struct mrcd_interface *link);

/*
 * 1: a link is noted that we took down and have not taken up again. 0: none. A
 * negative errno: the note cannot be read.
 */
int mrcd_interface_owed(const char *dir, struct mrcd_interface *link_out);

#endif
