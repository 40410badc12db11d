/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_socket - the daemon's control socket: one question and its answer
 *
 * Units:   timeout_s in seconds.  Ownership: said below.  Threads: one.
 */
#ifndef MRCCTL_SOCKET_H
#define MRCCTL_SOCKET_H

#include <jansson.h>

#define MRCCTL_ANSWER_BYTES_MAX (64U * 1024U * 1024U)

/*
 * A descriptor, the caller's. timeout_s is for connecting and for each read and write;
 * 0: nothing waits, and -EAGAIN says that the daemon takes no connection now. Other
 * errors as below.
 */
int mrcctl_socket_connect(const char *path, int timeout_s);

/*
 * Send `command` as one line, wait for one line. The answer is the caller's.
 *
 * -ENOENT, -ECONNREFUSED, -EACCES ...  nobody to talk to
 * -ENAMETOOLONG  the path does not fit into a socket address
 * -EAGAIN        no answer within timeout_s
 * -ECONNRESET    closed before the answer was complete
 * -EBADMSG       what came is no JSON object with "ok", or too long
 */
int mrcctl_socket_ask(const char *path, const json_t *command, int timeout_s, json_t **answer_out);

#endif
