/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_creds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define GROUPS_FIRST 32U /* most have fewer; the kernel says how many there are */

static int groups_of(int fd, struct mrcd_creds *creds)
{
	socklen_t bytes = GROUPS_FIRST * sizeof(*creds->groups);
	int r = ERANGE;

	while (r == ERANGE) {
		gid_t *groups = realloc(creds->groups, bytes);

		if (groups == NULL)
			return -ENOMEM;
		creds->groups = groups;
		r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0 ? errno : 0;
	}
	if (r == ENOPROTOOPT)
		return 0;
	creds->group_count = r == 0 ? (uint32_t)(bytes / sizeof(*creds->groups)) : 0;
	return -r;
}

int mrcd_creds_of(int fd, struct mrcd_creds *creds_out)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	*creds_out = (struct mrcd_creds){0};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return -errno;
	creds_out->pid = cred.pid;
	creds_out->uid = cred.uid;
	creds_out->gid = cred.gid;
	return groups_of(fd, creds_out);
}

bool mrcd_creds_has_group(const struct mrcd_creds *creds, gid_t gid)
{
	if (creds->gid == gid)
		return true;
	for (uint32_t i = 0; i < creds->group_count; i++) {
		if (creds->groups[i] == gid)
			return true;
	}
	return false;
}

void mrcd_creds_fini(struct mrcd_creds *creds)
{
	free(creds->groups);
	*creds = (struct mrcd_creds){0};
}
