/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_lock - the runtime directory, and the file in it that says whose it is
 *
 * Two daemons in one directory would take each other's sockets away. The lock
 * goes with the process, however it ends; the number in the file is for people.
 *
 * Threads: any.  I/O: the file system.
 */
#ifndef MRCD_LOCK_H
#define MRCD_LOCK_H

#include "mrcd_privilege.h"

/*
 * Make the directory if there is none, and lock it; 0: *fd_out holds the lock and is the caller's.
 * Both are given to `user` (NULL: nobody), a directory only when it was made. Logged:
 *
 * -EBUSY  another daemon has it
 * -EPERM  the lock file is no file of its own: a link, or another name of something else
 * others  as the file system says
 */
int mrcd_lock_take(const char *runtime_dir, const struct mrcd_privilege_user *user, int *fd_out);

#endif
