/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_snapshot - what a daemon says of itself at one moment, and rates between two
 *
 * One question fetches all of it, so that everything is of the same turn of the
 * daemon's loop. Things of two snapshots are the same by what names them: a rail
 * by its name, a path by peer and index, a channel by peer, number and opener.
 *
 * Units:     times in ns on the daemon's clock, rates per second.
 * Ownership: a snapshot holds references; rows are lent by the one they are of.
 * Threads:   one.  I/O, time: none.
 */
#ifndef MRCCTL_SNAPSHOT_H
#define MRCCTL_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrcctl_snapshot {
	json_t *status;                           /* an object */
	json_t *rails, *peers, *paths, *channels; /* arrays */
};

/* The question whose answer's result is a snapshot. NULL: no memory. */
json_t *mrcctl_snapshot_question(void);

/*
 * -EBADMSG: the result is no snapshot. *snapshot_out is set only on success, and
 * is to be given to mrcctl_snapshot_fini().
 */
int mrcctl_snapshot_take(const json_t *result, struct mrcctl_snapshot *snapshot_out);
/* One that is all 0 is taken as well, and is what it leaves. */
void mrcctl_snapshot_fini(struct mrcctl_snapshot *snapshot);

/* As one object with a key for each part; new reference. NULL: no memory. */
json_t *mrcctl_snapshot_json(const struct mrcctl_snapshot *snapshot);

/* Of the same run of the same daemon, the second no earlier than the first: counts can be compared. */
bool mrcctl_snapshot_follows(const struct mrcctl_snapshot *before,
			     const struct mrcctl_snapshot *after);

/* 0 when there is none before, or `after` does not follow it. */
uint64_t mrcctl_snapshot_elapsed_ns(const struct mrcctl_snapshot *before,
				    const struct mrcctl_snapshot *after);

/*
 * The row of `rows` (of the earlier snapshot) that is the same thing as `row`; NULL:
 * there was none. Lists keep their order, mostly: *hint is where the last search
 * ended, and makes a walk over a whole list cheap. It begins with 0.
 */
const json_t *mrcctl_rail_same(const json_t *rows, const json_t *row, size_t *hint);
const json_t *mrcctl_peer_same(const json_t *rows, const json_t *row, size_t *hint);
const json_t *mrcctl_path_same(const json_t *rows, const json_t *row, size_t *hint);
const json_t *mrcctl_channel_same(const json_t *rows, const json_t *row, size_t *hint);

/* By how much a count has grown; 0 when `before` is NULL, or the count fell. */
uint64_t mrcctl_grown(const json_t *before, const json_t *after, const char *key);

/* `grown` in `elapsed_ns` as a rate; 0 when no time went by. */
uint64_t mrcctl_per_second(uint64_t grown, uint64_t elapsed_ns);

#endif
