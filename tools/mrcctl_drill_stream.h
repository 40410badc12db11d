/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill_stream - a verified stream of mrc-perf beside a drill
 *
 * mrc-perf is the one that lies beside this program, else that of $PATH. It ends
 * with us, also when we are killed.
 *
 * Units:   ns on CLOCK_MONOTONIC.
 * Threads: one.  I/O: a child process, two temporary files.
 */
#ifndef MRCCTL_DRILL_STREAM_H
#define MRCCTL_DRILL_STREAM_H

#include <stdio.h>
#include <sys/types.h>

#include "mrcctl_drill_record.h"

struct mrcctl_drill_stream {
	pid_t pid; /* 0: none runs */
	char peer[MRCCTL_DRILL_NAME_BYTES];
	FILE *out, *err; /* ours */
	json_t *result;  /* ours; what it said at its end */
};

/* Become mrc-perf serve on the daemon whose control socket this is. Answers a negative errno. */
int mrcctl_drill_serve(const char *control);

/* pace: as mrc-perf takes it; NULL: none. A negative errno: it could not be run. */
int mrcctl_drill_stream_start(struct mrcctl_drill_stream *stream, const char *control,
			      const char *peer, const char *pace);
/* Has it ended by itself? Then what it said is in text. */
bool mrcctl_drill_stream_has_ended(struct mrcctl_drill_stream *stream, char *text,
				   size_t text_bytes);
/* End it and take its result. -EBADMSG: it has none. */
int mrcctl_drill_stream_stop(struct mrcctl_drill_stream *stream,
			     struct mrcctl_drill_verdict *verdict_out);
/* End it at once, without a result. */
void mrcctl_drill_stream_abort(struct mrcctl_drill_stream *stream);
/* After the stop: the longest stalls of the drill as the stream saw them. */
void mrcctl_drill_stream_stalls(const struct mrcctl_drill_stream *stream,
				struct mrcctl_drill_result *result);
/* What to add to CLOCK_MONOTONIC for the time since 1970, which mrc-perf names. */
int64_t mrcctl_drill_wall_offset_ns(void);
void mrcctl_drill_stream_fini(struct mrcctl_drill_stream *stream);

#endif
