/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_creds - who is at the other end of a local socket
 *
 * As the kernel noted it when that end called connect() (unix(7), SO_PEERCRED and SO_PEERGROUPS):
 * effective user and group, and the supplementary groups it had. No database of users is asked,
 * which may be a server far away, and a descriptor that goes to the next daemon still tells.
 *
 * Threads: any.
 */
#ifndef MRCD_CREDS_H
#define MRCD_CREDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mrcd_creds {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* owned; the supplementary ones */
	uint32_t group_count;
};

/*
 * To be freed by mrcd_creds_fini(), also after an error, which is a negative errno: -ENOMEM, or
 * what getsockopt() says. A kernel before 4.13 does not know the groups: none, then.
 */
int mrcd_creds_of(int fd, struct mrcd_creds *creds_out);
/* Its own group or a supplementary one. */
bool mrcd_creds_has_group(const struct mrcd_creds *creds, gid_t gid);
void mrcd_creds_fini(struct mrcd_creds *creds);

#endif
