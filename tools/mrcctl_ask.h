/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_ask - one question to the daemon; what goes wrong is said on stderr
 *
 * Threads: one.  I/O: the control socket, and stderr.
 */
#ifndef MRCCTL_ASK_H
#define MRCCTL_ASK_H

#include <jansson.h>

#define MRCCTL_SOCKET "/run/mrcd/control.sock"

/* The exit status of mrcctl. */
enum {
	MRCCTL_EXIT_REFUSED = 1,
	MRCCTL_EXIT_USAGE = 2,
	MRCCTL_EXIT_UNREACHED = 3,
	MRCCTL_EXIT_LEFT = 4, /* the host is not drained yet */
};

/*
 * Answers 0 with the "result" of the answer, which is the caller's; or, when the
 * reason has been printed, MRCCTL_EXIT_REFUSED or MRCCTL_EXIT_UNREACHED.
 */
int mrcctl_ask(const char *socket, const json_t *question, json_t **result_out);

/* Why the daemon cannot be reached, for people; `error` as of mrcctl_socket.h. */
const char *mrcctl_unreached_text(int error);

#endif
