/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_wake - how a client sleeps, and its one pollable descriptor
 *
 * Three things wake a client: the bell (a pipe the daemon rings while
 * client_sleeping is set), the end of the socket (the daemon has gone), and the
 * kick (an eventfd of our own, for what the library already holds).
 *
 * A program that asked for mrc_client_fd() sleeps where we cannot see it. So
 * from then on, whenever no call of the library is running, one of two is true:
 *
 *   armed   client_sleeping is set and the completion ring was found empty
 *           after the fence: whatever comes rings the bell, which is in the
 *           epoll set;
 *   kicked  the kick is readable, because there is something for mrc_poll()
 *           already: parked events, entries in the ring, submissions that
 *           wait for room.
 *
 * Hence no rule for the program: the descriptor is readable, level triggered,
 * as long as mrc_poll() has something to say, whatever number of events it took
 * before, and blocking calls may come between. A late bell can make it readable
 * for nothing, once. A poll that finds nothing does not look why the descriptor is
 * readable before the next one finds nothing either: mostly it is not, and the
 * program is about to sleep.
 *
 * A program that never asked for the descriptor is armed only while it sleeps
 * in mrc_wait() or in a blocking call, so that a busy one costs the daemon no
 * system calls.
 *
 * Before sleeping in the library we look again, for $MRC_SPIN_US (50) and as
 * long as that pays (mrc_look.h).
 *
 * Threads: one caller at a time.
 */
#ifndef MRC_WAKE_H
#define MRC_WAKE_H

#include "mrc_look.h"
#include "mrc_ring.h"

enum mrc_wake_reason {
	MRC_WAKE_TIMEOUT,
	MRC_WAKE_BELL, /* or there is something in the ring anyway */
	MRC_WAKE_SIGNAL,
	MRC_WAKE_SOCKET, /* the socket has something to say; it should not, but for its end */
};

struct mrc_wake {
	int epoll_fd;
	int bell_fd;
	int kick_fd;
	int socket_fd; /* lent */
	struct mrc_look look;
	bool is_fd_used; /* mrc_client_fd() was asked for */
	bool is_armed;
	bool is_kicked;
	bool is_bell_due; /* it has rung, and was not read */
};

/* Takes over bell_fd (also on error). A negative errno: no descriptors, no memory. */
int mrc_wake_new(int bell_fd, int socket_fd, struct mrc_wake **wake_out);
void mrc_wake_free(struct mrc_wake *wake);

/* The one descriptor; from now on it must tell the truth. */
int mrc_wake_fd(struct mrc_wake *wake);

/* Look at the ring for the adaptive while; true: there is something. */
bool mrc_wake_spin(struct mrc_wake *wake, struct mrc_ring *ring, uint64_t deadline_ns);

/* Arm, look once more, sleep until the deadline (UINT64_MAX: none), disarm. */
enum mrc_wake_reason mrc_wake_sleep(struct mrc_wake *wake, struct mrc_ring *ring,
				    uint64_t deadline_ns);

/* For a program that uses the descriptor, before a poll: no more bells, and read what rang. */
void mrc_wake_enter(struct mrc_wake *wake, struct mrc_ring *ring);
/*
 * The poll found nothing, and so did the one before: why is the descriptor readable, if it is?
 * True: look at the socket.
 */
bool mrc_wake_ask(struct mrc_wake *wake);
/* And after every call: `has_work` says that the library holds something already. */
void mrc_wake_leave(struct mrc_wake *wake, struct mrc_ring *ring, bool has_work);

/* The socket has ended: it must not keep the descriptor readable. */
void mrc_wake_drop_socket(struct mrc_wake *wake);

#endif
