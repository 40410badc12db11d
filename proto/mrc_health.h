/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_health - how well each path of a conn does, and whether one is about to leave service
 *
 * Four times a second the counters that the engine and the transport keep
 * anyway are compared with those before. What they say becomes evidence:
 *
 *	damage  frames that came with a wrong checksum
 *	card    packets that the network card dropped, for they came damaged
 *	loss    what the transport below, or in the card, had to send again
 *	stalls  suspicions: it stood still while a sibling answered
 *	flaps   it left service by itself, and not by anybody's order
 *	delay   it answers much later than it used to, its own queue aside
 *	rate    it is kept full, and delivers a small part of what siblings do
 *
 * Each costs points; what is left of 100 is the score. A path is DEGRADED when
 * its score stays low, and FAILING when the trend says that it will leave
 * service: flaps that repeat, or errors whose rate grows so that it will soon
 * be one at which nothing gets through. What congestion can cause (loss with a
 * queue, stalls, delay, rate) makes nothing FAILING: congestion is not failure.
 *
 * Siblings are the reference: a path is charged with what it has beyond four
 * times what the middle one of them has; the rest is the host's or the fabric's
 * trouble. Nothing is charged that was counted while this host stood still.
 *
 * What is held against a path is taken back when it is refuted: so many frames
 * came whole that the old rate would have damaged eight of them. Time out of
 * service heals nothing; being drained does, for then somebody has seen to it.
 * What a path does while it is excused, as in a drill, is no evidence either way.
 *
 * Units:     ns, bytes, counts; ppm: parts of a million.
 * Ownership: paths are lent by the caller.
 * I/O, time: none; now_ns is an argument.
 */
#ifndef MRC_HEALTH_H
#define MRC_HEALTH_H

#include "mrc_conn.h"

#define MRC_HEALTH_PERIOD_NS (250 * MRC_MS)

enum mrc_health_state {
	MRC_HEALTH_GOOD,
	MRC_HEALTH_DEGRADED,
	MRC_HEALTH_FAILING,
	MRC_HEALTH_STATE_COUNT
};

enum mrc_health_cause {
	MRC_CAUSE_NONE,
	MRC_CAUSE_DAMAGE,
	MRC_CAUSE_CARD,
	MRC_CAUSE_LOSS,
	MRC_CAUSE_STALLS,
	MRC_CAUSE_FLAPS,
	MRC_CAUSE_DELAY,
	MRC_CAUSE_RATE,
	MRC_CAUSE_COUNT
};

/*
 * What the card counts that a path goes by, in packets, of all paths over it. It is
 * read less often than we judge.
 */
struct mrc_health_card {
	uint64_t reading;           /* another one when it was read again; 0: nothing is known */
	uint64_t received, damaged; /* the damaged ones are none of the received */
	uint64_t sent, resent;      /* by a transport of the card's; 0: it tells none */
};

/* What is known of a path at one moment. Counters only grow, from any beginning. */
struct mrc_health_sample {
	struct mrc_path_info info;
	struct mrc_health_card card;
	uint64_t cuts;          /* of info.body_errors: cut short by their sender, no damage */
	uint64_t transport;     /* names the one that segments are counted of; 0: it tells none */
	uint64_t segments;      /* it has sent, those sent again included */
	uint64_t segments_lost; /* it has sent again */
	uint64_t carrier_losses;
	uint64_t speed;  /* nominal, in any unit; 0: not known */
	bool is_excused; /* it fails on purpose: what it shows is held against nothing, nor for it */
};

/* Errors among so many units, fading: what is older than a minute counts little. */
struct mrc_health_ratio {
	uint64_t errors;        /* in 1/65536 */
	uint64_t units;         /* in 1/256 */
	uint64_t clean;         /* units since the last error, */
	uint32_t clean_periods; /* and periods that carried something */
};

struct mrc_health_window {
	uint64_t units;
	uint64_t squares; /* of the errors of each 4 s of it: how much they vary by themselves */
	uint32_t errors;
	uint32_t periods_bad; /* with an error in them: one burst is no trend */
};

/*
 * The same over windows of 4 s, 8 s, ... 2 h 16 min, the last four of each, so
 * that a rise is seen whatever its pace is.
 */
#define MRC_HEALTH_LEVELS 12U
struct mrc_health_trend {
	struct mrc_health_window open; /* grows to 4 s */
	uint32_t open_periods;
	uint32_t half_bits;                                    /* which halves are there */
	struct mrc_health_window half[MRC_HEALTH_LEVELS];      /* the first half of the next */
	struct mrc_health_window closed[MRC_HEALTH_LEVELS][4]; /* the newest first */
	uint64_t fatal_ns;     /* it will be, if it goes on so; MRC_NEVER: no such trend */
	uint64_t until_ns;     /* that is believed */
	uint64_t ppb;          /* of errors, when it was last found */
	uint64_t survived_ppb; /* so many were, and what was foretold of them did not come */
};

/* What there is against one path, for people. */
struct mrc_health_view {
	uint32_t score; /* 0 to 100 */
	enum mrc_health_state state;
	enum mrc_health_cause cause;     /* what costs most; of FAILING: what foretells it */
	uint64_t since_ns;               /* in this state; 0: since it is judged */
	uint32_t costs[MRC_CAUSE_COUNT]; /* points, by cause */
	uint64_t damage_ppm;
	uint64_t card_ppm;
	uint64_t loss_ppm;
	uint32_t stalls;    /* of the last minute or so */
	uint32_t flaps;     /* of the last two hours in service or so */
	uint64_t delay_ns;  /* beyond its own queue; 0: not known */
	uint64_t usual_ns;  /* the least that was */
	uint32_t rate_part; /* of the middle sibling's, in percent; 100: as good, or not judged */
	uint64_t eta_ns;    /* FAILING by errors: so long until it leaves service; or MRC_NEVER */
	uint64_t units;     /* frames and segments that the judgement rests on */
};

/* One path. Lent to a struct mrc_health. */
struct mrc_health_path {
	struct mrc_health_view view;
	bool is_known;               /* `last` is set */
	bool is_serving;             /* as the last sample says */
	bool is_out;                 /* left service, and */
	bool is_out_counted;         /* that was held against it; */
	uint64_t serving_ns;         /* in service since then */
	uint64_t out_ns;             /* when; and */
	uint64_t out_carrier_losses; /* how many there were before */
	struct mrc_health_sample last;
	uint32_t card_periods; /* since its card was read, and */
	bool is_card_whole;    /* it was in service then and ever since */
	struct mrc_health_ratio damage, card, loss;
	struct mrc_health_trend damage_trend, card_trend, loss_trend;
	uint64_t stalls;   /* fading, in 1/65536 */
	uint64_t flaps;    /* fading, in 1/2^24 */
	uint64_t delay_ns; /* smoothed */
	uint64_t usual_ns;
	uint32_t late_periods; /* in a row */
	uint32_t slow_periods;
	uint32_t worse_periods, better_periods; /* in a row: another state would be right, */
	enum mrc_health_state better;           /* of the better ones this */
	uint32_t relapses; /* each makes the proof wanted of a recovery longer */
	bool was_worse;
};

/* All paths of one conn. */
struct mrc_health {
	struct mrc_health_path *paths; /* lent; path_count entries */
	uint8_t path_count;
	uint64_t judged_ns; /* 0: never */
};

/* Of what nothing has been seen: nothing is against it. */
struct mrc_health_view mrc_health_view_unjudged(void);

void mrc_health_init(struct mrc_health *health, struct mrc_health_path *paths, uint8_t path_count);

/* A path more, or another one in this place, of which nothing is known; `paths` has room for it. */
void mrc_health_put(struct mrc_health *health, struct mrc_health_path *paths, uint8_t index);

/*
 * Judge all paths by a sample of each; to be called every MRC_HEALTH_PERIOD_NS.
 * One that comes much later only begins anew: what was counted meanwhile may be
 * this host's doing. Answers which paths have changed state, by bits.
 */
uint32_t mrc_health_judge(struct mrc_health *health, const struct mrc_health_sample *samples,
			  uint64_t now_ns);

const char *mrc_health_state_name(enum mrc_health_state state);
const char *mrc_health_cause_name(enum mrc_health_cause cause);

#endif
