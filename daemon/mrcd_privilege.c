/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT (1ULL << CAP_NET_RAW | 1ULL << CAP_IPC_LOCK)

int mrcd_privilege_find(const char *name, struct mrcd_privilege_user *user_out)
{
	const char *wanted = name[0] != '\0' ? name : MRCD_USER;
	const struct passwd *found;

	errno = 0;
	found = getpwnam(wanted);
	if (found == NULL)
		/* ENOENT, ESRCH and others all mean that nobody is called so (getpwnam(3)). */
		return errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM
			       ? -errno
			       : -ENOENT;
	*user_out = (struct mrcd_privilege_user){.uid = found->pw_uid, .gid = found->pw_gid};
	snprintf(user_out->name, sizeof(user_out->name), "%s", wanted);
	return 0;
}

static int capabilities_get(uint64_t *permitted_out)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*permitted_out = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

static int capabilities_set(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	data[0].permitted = data[0].effective = (uint32_t)kept;
	data[1].permitted = data[1].effective = (uint32_t)(kept >> 32);
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* What no program that we might be made to start could have, either. */
static int bounding_set_cut(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if ((KEPT >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

int mrcd_privilege_drop(const struct mrcd_privilege_user *user)
{
	uint64_t had = 0;
	int r = capabilities_get(&had);

	/* Where a container does not allow this, no_new_privs has to do. */
	if (r == 0 && (had >> CAP_SETPCAP & 1) != 0)
		r = bounding_set_cut();
	if (r < 0)
		return r;
	/* Else the kernel takes all capabilities away with the uid. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || initgroups(user->name, user->gid) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return -errno;
	/* A container may not have given us all of them: nobody can keep what he has not. */
	r = capabilities_set(had & KEPT);
	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}
