/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_control - ask the local daemon, without waiting: what its rails have sent
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
 * path: of the control socket, "none" for none. NULL: "control.sock" beside
 * socket_path; when that is NULL as well $MRC_CONTROL, else beside $MRC_SOCKET,
 * else /run/mrcd/control.sock. -ENOMEM.
 */
int perf_control_init(struct perf_control *control, const char *path, const char *socket_path);
void perf_control_fini(struct perf_control *control);

/*
 * Send one question, a line with its end, connecting first if need be; nothing
 * if one is still open. 0; a negative errno: no answer will come.
 */
int perf_control_send(struct perf_control *control, const char *line, size_t len_bytes);

/*
 * Take what has come of the answer. 1 with the line, without its end, good until
 * the next question; 0 nothing whole yet; a negative errno: the daemon hung up or
 * made no sense, the next question connects anew.
 */
int perf_control_line(struct perf_control *control, const char **line_out, size_t *len_bytes_out);

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
