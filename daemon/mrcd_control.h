/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_control - the control socket that mrcctl and mrc-perf talk to
 *
 * <runtime-dir>/control.sock, SOCK_STREAM. One JSON object per line each way:
 *	{"command": "rails"}            -> {"ok": true, "result": ...}
 *	{"command": "drain", "rail": "r0"}  -> {"ok": true, "result": {...}}
 *	{"command": "drain", "host": true}  -> the same of the whole host (mrcd_drain.h)
 *	anything wrong                  -> {"ok": false, "error": "text for people"}
 * Reading commands are for everybody who can open the socket; commands that
 * change something need root or the daemon's own uid (SO_PEERCRED).
 *
 * Bounds: so many connections, of which one user has a share, and root and the
 * daemon's own user have theirs apart, so that nobody else can keep them out; when
 * other users have all of theirs, who has most of them loses the one that was
 * silent longest to who has fewer. A line has a longest length; a connection whose
 * answer is not read is asked nothing more and dropped after a while, as is
 * one that says nothing for long.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CONTROL_H
#define MRCD_CONTROL_H

#include <jansson.h>

#include "mrcd_worker.h"

#define MRCD_CONTROL_LINE_BYTES_MAX 4096U /* of a command, newline included */
#define MRCD_CONTROL_OWNERS_MAX     32U   /* connections of root and the daemon's own user */
#define MRCD_CONTROL_OTHERS_MAX     32U   /* of all others */
#define MRCD_CONTROL_SHARE_MAX      8U    /* of one of those */
#define MRCD_CONTROL_SEVERAL_MAX    16U   /* questions in one */
#define MRCD_CONTROL_WRITE_S        5     /* an answer not read for so long: dropped */
#define MRCD_CONTROL_IDLE_S         300   /* nothing asked for so long: dropped */

struct mrcd_control;

/* Listen. Negative errno when the socket cannot be made. */
int mrcd_control_new(struct mrcd_worker *worker, struct mrcd_control **control_out);
/* The same with a socket that listens there already, ours on success; -1: none. */
int mrcd_control_new_at(struct mrcd_worker *worker, int fd, struct mrcd_control **control_out);
void mrcd_control_free(struct mrcd_control *control);

/* Where it listens, for the next daemon; accept nobody more; and leave the file there when it is freed. */
int mrcd_control_fd(const struct mrcd_control *control);
void mrcd_control_pause(struct mrcd_control *control);
void mrcd_control_leave(struct mrcd_control *control);

/*
 * What a line is answered; new reference. NULL: memory is short, or, to the one whose line it is
 * on a connection, the answer comes later (reload).
 * may_change: the asker may use commands that change something.
 */
json_t *mrcd_control_answer(struct mrcd_worker *worker, const char *line, size_t line_bytes,
			    bool may_change);

#endif
