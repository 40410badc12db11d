/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_privilege - a daemon that root has started goes on as somebody with less to say
 *
 * Under systemd the unit does this (User=, AmbientCapabilities=); here it is
 * done for who starts mrcd by hand or from a script. What is kept is what rails
 * want while they run: CAP_NET_RAW binds sockets to an interface, CAP_IPC_LOCK
 * registers memory with a NIC. Nothing can be had back.
 *
 * Threads: before the first thread is started; capabilities belong to a thread.
 */
#ifndef MRCD_PRIVILEGE_H
#define MRCD_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

#define MRCD_USER "mrcd" /* of sysusers.d */

struct mrcd_privilege_user {
	char name[64];
	uid_t uid;
	gid_t gid;
};

/*
 * Who the daemon is to be: the user called `name`, or, when that is "", mrcd.
 * 0; -ENOENT: there is no such user. Other errors are of the user database.
 */
int mrcd_privilege_find(const char *name, struct mrcd_privilege_user *user_out);

/*
 * Become that user, with its groups, without all other capabilities, and with
 * no_new_privs. On error nothing may be relied on: the caller ends. To be called
 * by root alone; a user with uid 0 keeps root's name and loses the rest.
 */
int mrcd_privilege_drop(const struct mrcd_privilege_user *user);

#endif
