/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_feed - one question to the daemon after another, over one connection
 *
 * Nothing waits in here: the caller polls mrcctl_feed_fd() for mrcctl_feed_events(),
 * and so can go on drawing while a daemon hangs. A connection that is lost is made
 * again when the next question is asked.
 *
 * Ownership: a feed owns its connection.  Threads: one.  I/O: the control socket.
 */
#ifndef MRCCTL_FEED_H
#define MRCCTL_FEED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mrcctl_feed {
	const char *path; /* the caller's */
	char *question;   /* ours; one line; NULL: nothing was asked yet */
	size_t question_bytes;
	int fd; /* -1: none */
	bool is_asking;
	size_t asked_bytes; /* of the question that have left */
	char *answer;       /* ours */
	size_t answer_bytes, answer_room;
};

/* `path` must outlive the feed. */
void mrcctl_feed_init(struct mrcctl_feed *feed, const char *path);
void mrcctl_feed_fini(struct mrcctl_feed *feed);

/* For poll(): -1 and 0 when there is nothing to wait for. */
int mrcctl_feed_fd(const struct mrcctl_feed *feed);
short mrcctl_feed_events(const struct mrcctl_feed *feed);

/*
 * Ask. 0; -EALREADY: an answer is still waited for, and this question was not
 * asked; -ENOMEM; or why there is no connection, as mrcctl_socket_connect() says it.
 */
int mrcctl_feed_ask(struct mrcctl_feed *feed, const json_t *question);

/*
 * Go on; for when poll() says so. 1: *answer_out is an answer, the caller's; 0: not
 * yet. An error (-ECONNRESET, -EBADMSG, -ENOMEM) has ended the connection.
 */
int mrcctl_feed_turn(struct mrcctl_feed *feed, json_t **answer_out);

#endif
