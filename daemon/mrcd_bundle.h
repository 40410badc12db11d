/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_bundle - descriptors on their way to the next daemon, packed into a few sockets
 *
 * A service manager keeps descriptors for us, but it compares each new one with
 * all it has, and passes all their names in one string of the environment: fit
 * for a few, not for seven of each of a thousand programs. What lies unread in
 * the queue of a socket stays open as long as that queue. So descriptors are
 * put there in parcels, and only the reading ends are given to the manager.
 *
 * What is taken out is gone from there: state that one daemon has taken cannot
 * be given to a second one, however the first ends.
 *
 * Ownership: a put descriptor stays the caller's; a taken one becomes his.
 * Threads:   one at a time.
 */
#ifndef MRCD_BUNDLE_H
#define MRCD_BUNDLE_H

#include "mrc_base.h"

#define MRCD_BUNDLES_MAX    64U /* sockets; each takes some 250 parcels with the kernel's defaults */
#define MRCD_PARCEL_FDS_MAX 7U

enum mrcd_parcel_kind {
	MRCD_PARCEL_IMAGE,   /* the state: a memfd */
	MRCD_PARCEL_LISTEN,  /* where programs attach; absent when the manager holds it */
	MRCD_PARCEL_CONTROL, /* where mrcctl asks */
	MRCD_PARCEL_PENDING, /* somebody who has connected and not said who he is */
	MRCD_PARCEL_CLIENT,  /* all of client `index` */
	MRCD_PARCEL_KIND_COUNT,
};

struct mrcd_parcel {
	uint32_t kind; /* enum mrcd_parcel_kind */
	uint32_t index;
	uint32_t fd_count;
	int fds[MRCD_PARCEL_FDS_MAX]; /* -1: none, or taken */
	/* Taken, and closed for want of room: all that is known is how long the files were. */
	bool is_lost;
	uint64_t fd_bytes[MRCD_PARCEL_FDS_MAX];
};

/* ---- packing ---- */

struct mrcd_bundle {
	int fds[MRCD_BUNDLES_MAX]; /* ours: the reading ends */
	uint32_t count, count_max;
	int write_fd;     /* ours: of the last one; -1: none */
	int spare_fds[2]; /* ours: see mrcd_bundle_keep_spare(); -1: none */
	uint32_t parcel_count;
};

/* Of so many sockets at most, and MRCD_BUNDLES_MAX. */
void mrcd_bundle_begin(struct mrcd_bundle *bundle, uint32_t count_max);
/*
 * The kernel counts the descriptors that lie in sockets, user by user, and refuses more than
 * RLIMIT_NOFILE (not root's). Have it count so many more that what is put between these two
 * leaves room for the last parcel and for handing the sockets themselves over. Negative errno:
 * there is no such room, and nothing else has changed.
 */
int mrcd_bundle_keep_spare(struct mrcd_bundle *bundle);
void mrcd_bundle_use_spare(struct mrcd_bundle *bundle);
/*
 * -ENOSPC: so many do not fit, but an image does, after them. -ETOOMANYREFS: of this user's no
 * more descriptors can be on their way, whosever they are. Other negative errno as the kernel
 * says. Nothing was put then.
 */
int mrcd_bundle_put(struct mrcd_bundle *bundle, const struct mrcd_parcel *parcel);
/* Empty it, wherever its sockets have gone since: whoever has them finds nothing. */
void mrcd_bundle_take_back(struct mrcd_bundle *bundle);
void mrcd_bundle_fini(struct mrcd_bundle *bundle);

/* ---- unpacking ---- */

/*
 * Empties all of these sockets, which stay the caller's. *parcels_out is the caller's. A program's
 * parcel that gets a descriptor from fd_end on (mrcd_fds.h) is lost. -ENOMEM, -EPROTO.
 */
int mrcd_bundle_take(const int *fds, uint32_t count, uint64_t fd_end,
		     struct mrcd_parcel **parcels_out, uint32_t *parcel_count_out);
/* The next one of this kind from *at on (0 to begin), NULL: no more. */
struct mrcd_parcel *mrcd_parcel_next(struct mrcd_parcel *parcels, uint32_t parcel_count,
				     enum mrcd_parcel_kind kind, uint32_t *at);
/* Closes what was not taken. NULL is fine. */
void mrcd_parcels_free(struct mrcd_parcel *parcels, uint32_t parcel_count);

#endif
