/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_ring - libmrc's ends of the two rings: producer of submissions, consumer of completions
 *
 * The layout and the sleeping protocol are in mrc/ring_abi.h. The daemon writes
 * its words and entries whenever it likes, and may be broken: positions that
 * are ours are kept here and only published there, what is the daemon's is read
 * once, checked and then used from the copy.
 *
 * Units:     positions are free-running 32-bit counters of entries.
 * Ownership: the memory is lent until the ring is no longer used.
 * Threads:   one caller at a time; the daemon is the other side.
 * I/O:       mrc_ring_bell() writes to a bell: an eventfd, or a pipe on the client's side.
 */
#ifndef MRC_RING_H
#define MRC_RING_H

#include "mrc/ring_abi.h"
#include "mrc_lib.h"

#define MRC_RING_ENTRIES_MAX (1U << 20) /* of one ring; more is taken for nonsense */

struct mrc_ring {
	struct mrc_ring_shm *shm; /* lent */
	struct mrc_sqe *sqes;     /* in the same memory */
	const struct mrc_cqe *cqes;
	char *sq_texts; /* in the same memory */
	const char *cq_texts;
	uint32_t sq_entry_count; /* powers of two */
	uint32_t cq_entry_count;
	uint32_t sq_tail;           /* ours; the shared word follows at once */
	uint32_t cq_head;           /* ours; first entry not yet taken */
	uint32_t cq_head_published; /* the shared word */
	bool is_tell_wanted;        /* an entry taken since the last publish asked for the bell */
};

/*
 * Look at `ring_bytes` of mapped ring memory and take the counts the welcome
 * named. -EPROTO: what the header says and what was agreed differ, or the
 * rings do not fit; nothing is changed.
 */
int mrc_ring_init(struct mrc_ring *ring, void *memory, uint64_t ring_bytes, uint32_t sq_entry_count,
		  uint32_t cq_entry_count);

/*
 * Add a submission, with a text of sqe->text_len bytes, and publish it; the caller
 * rings the bell if mrc_ring_daemon_sleeps().
 * -EAGAIN   the ring is full; nothing changed
 * -EBADMSG  the daemon's head is impossible
 */
int mrc_ring_submit(struct mrc_ring *ring, const struct mrc_sqe *sqe, const char *text);

/* Whether a submission would find room; false as well for an impossible head. */
bool mrc_ring_has_room(const struct mrc_ring *ring);

/*
 * Take the next completion into *cqe_out, and its text, if it has one. 1: taken;
 * 0: there is none. -EBADMSG: the daemon's tail, or a text's length, is impossible.
 */
int mrc_ring_take(struct mrc_ring *ring, struct mrc_cqe *cqe_out,
		  char text_out[MRC_REASON_BYTES_MAX]);

/* The daemon wants to know when sends are submitted. */
static inline bool mrc_ring_is_tracing(const struct mrc_ring *ring)
{
	return __builtin_expect(__atomic_load_n(&ring->shm->is_tracing, __ATOMIC_RELAXED) != 0, 0);
}

/* Whether there is something to take, be it nonsense. */
bool mrc_ring_is_filled(const struct mrc_ring *ring);

/* Tell the daemon what was taken. True: an entry wants its bell rung, if the daemon sleeps. */
bool mrc_ring_publish(struct mrc_ring *ring);

/* After a submission, or a publish that answered true: whether the daemon needs its bell. */
bool mrc_ring_daemon_sleeps(const struct mrc_ring *ring);

/*
 * Say that we are about to sleep. True: the ring is empty and whatever comes
 * now rings our bell. False: something has come already.
 */
bool mrc_ring_arm(struct mrc_ring *ring);
/* We are awake: no bells, please. True: one has rung since we armed, or will in a moment. */
bool mrc_ring_disarm(struct mrc_ring *ring);

/* enum mrc_ring_state, as the daemon says. */
uint32_t mrc_ring_state(const struct mrc_ring *ring);

/* Ring or silence a bell (eventfd or pipe) that does not block; whether it had rung. */
void mrc_ring_bell(int fd);
bool mrc_ring_bell_read(int fd);

#endif
