/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_session - by which interface of this host whoever runs us is logged in
 *
 * sshd says it in the environment (SSH_CONNECTION); sudo and the like take that
 * away, so it is looked for in our parents' as well, as far as we may read them.
 * Who came in another way, or through a terminal multiplexer that began
 * elsewhere, is not known about.
 *
 * Threads: one.  I/O: /proc, and the kernel's list of addresses.
 */
#ifndef MRCCTL_SESSION_H
#define MRCCTL_SESSION_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

#define MRCCTL_SESSION_TEXT_BYTES INET6_ADDRSTRLEN

/* This host's end of the ssh connection that process `pid` is in; `proc` is "/proc". False: none is known. */
bool mrcctl_session_find(const char *proc, pid_t pid, char address_out[MRCCTL_SESSION_TEXT_BYTES]);

/* Is that an address of this interface? Then it is in address_out. */
bool mrcctl_session_is_over(const char *proc, pid_t pid, const char *interface,
			    char address_out[MRCCTL_SESSION_TEXT_BYTES]);

#endif
