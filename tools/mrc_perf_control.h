/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_control - ask the local daemon what its rails have sent, without waiting
 *
 * A daemon that is not there, or gives another answer, is no error of the
 * measurement: the interval then has no rails.
 *
 * Ownership: the fd and the buffer are the control's.
 * Threads:   one caller at a time.
 * I/O:       a non-blocking Unix stream socket.
 */
#ifndef MRC_PERF_CONTROL_H
#define MRC_PERF_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "mrc_perf_series.h"

struct perf_control {
	char path[108]; /* empty: never ask */
	int fd;         /* -1: not connected */
	bool is_waiting;
	char *buffer;
	size_t len_bytes;
};

/*
 * path: of the control socket, "none" for none, NULL for "control.sock" beside
 * socket_path (NULL: $MRC_SOCKET, else /run/mrcd/mrcd.sock). -ENOMEM.
 */
int perf_control_init(struct perf_control *control, const char *path, const char *socket_path);
void perf_control_fini(struct perf_control *control);

/* Ask for the rails, connecting first if need be. 0; a negative errno: no answer will come. */
int perf_control_ask(struct perf_control *control);

/*
 * Take what has come. 1 with *rails_out; 0 nothing whole yet; a negative errno:
 * the daemon hung up or made no sense, the next question connects anew.
 */
int perf_control_read(struct perf_control *control, struct perf_rails *rails_out);

/* The answer to `rails` in text. -EPROTO. */
int perf_rails_parse(const char *text, size_t len_bytes, struct perf_rails *rails_out);

#endif
