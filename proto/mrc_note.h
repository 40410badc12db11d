/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_note - what is said of a few messages besides their verdict: when, and why not
 *
 * The seven moments of a traced message (DESIGN 5), and the text of a rejection.
 * Few messages have either, so each direction of a channel has a small pool of
 * notes. A receiver without a free one tells the verdict alone; a sender traces
 * another message instead.
 *
 * mrc_clock: how far the peer's clock is from ours, by the four times of each probe
 * and its answer (RFC 5905, section 8), and how wrong that can be: the true offset
 * lies within +-error, for no frame arrives before it was sent.
 *
 * Units: nanoseconds.  Ownership: the channel's, the conn's.  I/O, time: none.
 */
#ifndef MRC_NOTE_H
#define MRC_NOTE_H

#include "mrc_base.h"

#define MRC_NOTES          32 /* of one direction of a channel, at a time */
#define MRC_NOTES_TRACED   24 /* of them may be for moments while others may need a text */
#define MRC_TEXT_BYTES_MAX 64 /* of a rejection's text; not 0-terminated, any bytes */
/*
 * Two clocks are taken to part from each other by no more than that: what quartz does
 * (50 ppm each), and as much again for a time service that corrects them gently. One
 * that slews faster makes the error look smaller than it is until the next probes.
 */
#define MRC_CLOCK_DRIFT_PPM 200U
#define MRC_CLOCK_AGE_NS    (100 * MRC_MS) /* while messages are traced it is compared so often */

/* In the order in which they come when nothing goes wrong. */
enum mrc_moment {
	MRC_MOMENT_SUBMITTED,  /* T0: the client pushed it; its own word */
	MRC_MOMENT_FETCHED,    /* T1: the daemon took it from the ring */
	MRC_MOMENT_FIRST_SENT, /* T2: a path was given its first fragment */
	MRC_MOMENT_LAST_SENT,  /* T2: and its last one, for the first time */
	MRC_MOMENT_LOCAL,      /* T4: our rails read none of its memory any more */
	MRC_MOMENT_PLACED,     /* T3: published to the receiver's client */
	MRC_MOMENT_VISIBLE,    /* T5: that client took it from its ring */
	MRC_MOMENT_VERDICT,    /* T6: and said yes or no */
	MRC_MOMENT_COUNT,
};
#define MRC_MOMENTS_TOLD \
	(MRC_MOMENT_COUNT - MRC_MOMENT_PLACED) /* by the receiver: the last so many */

struct mrc_note {
	uint64_t ns[MRC_MOMENT_COUNT]; /* 0: not known */
	char text[MRC_TEXT_BYTES_MAX];
	uint8_t text_len;
	uint8_t next; /* free list: 1 + index, 0 ends it */
};

struct mrc_notes {
	struct mrc_note *notes; /* MRC_NOTES of them, lent */
	uint8_t free;           /* 1 + index of the first, 0: none */
	uint8_t used;
};

/* All are free. */
void mrc_notes_init(struct mrc_notes *notes, struct mrc_note *memory);
/* A blank one: 1 + its index, which is what a message keeps; 0: none is free. */
uint8_t mrc_notes_take(struct mrc_notes *notes);
/* So few are used that one more may be for moments alone: who looks takes no text away. */
bool mrc_notes_may_trace(const struct mrc_notes *notes);
/* 0 is fine. */
void mrc_notes_give(struct mrc_notes *notes, uint8_t note);
/* NULL for 0. */
struct mrc_note *mrc_notes_at(const struct mrc_notes *notes, uint8_t note);

struct mrc_clock {
	bool is_known;
	int64_t least_ns, most_ns; /* the peer's clock minus ours, at at_ns */
	uint64_t at_ns;
};

/*
 * A probe was sent at `sent`, came to the peer at `came`, was answered there at
 * `answered` (both by its clock), and the answer came here at `heard`. What
 * that leaves possible of what was known is kept. Times that cannot be say nothing.
 */
void mrc_clock_sample(struct mrc_clock *clock, uint64_t sent, uint64_t came, uint64_t answered,
		      uint64_t heard);
int64_t mrc_clock_offset_ns(const struct mrc_clock *clock);
/* How wrong that can be at a time of ours; it grows with the distance from the last probe. */
uint64_t mrc_clock_error_ns(const struct mrc_clock *clock, uint64_t at_ns);
/* A time of the peer's clock by ours; 0 stays 0 (not known), and so it is while no clock is known.
 * One from before our clock began is 1. */
uint64_t mrc_clock_here(const struct mrc_clock *clock, uint64_t there_ns);

#endif
