/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_interface - take a network interface down and up again, and never leave it down
 *
 * While it is down because of us, a file in the runtime directory says so: the
 * daemon that starts next after a crash takes it up.
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

/*
 * May we, and would all of it come back? 0; or a negative errno with what is in
 * the way, for people, in why_out. -EPERM: no CAP_NET_ADMIN. -ENODEV: there is
 * no such interface. -EBUSY: the kernel would forget something (a route that is
 * not its own, an IPv6 address) that does not come back by itself.
 */
int mrcd_interface_check(const char *interface, char why_out[MRCD_INTERFACE_WHY_BYTES]);

/* Note it down in `dir`, then take it down. On error it is up and nothing is noted. */
int mrcd_interface_down(const char *dir, const char *interface);
/* Take it up, then forget the note. On error the note stays. */
int mrcd_interface_up(const char *dir, const char *interface);

/*
 * At the start: take up what a daemon that was killed has left down. 0: nothing
 * was. 1: done, its name is in interface_out. A negative errno: it could not be,
 * or the note makes no sense; it is forgotten unless waiting could mend it.
 */
int mrcd_interface_recover(const char *dir, char interface_out[16]);

#endif
