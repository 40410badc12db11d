/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_trace - what the daemon tells of traced messages, and percentiles of it
 *
 * One struct mrc_trace gathers the answers to the control command "trace" for
 * one channel: messages with their moments, and what is known of the clocks.
 * mrcctl trace and mrc-perf gap ask by their own means and share this.
 *
 * Three moments are the receiver's, translated to our clock by the daemon: each
 * is right to +-error_ns of its message. A span between the two hosts may
 * therefore come out below 0, and stays so: nothing here clamps.
 *
 * Units:     ns on CLOCK_MONOTONIC of the sending host; spans are signed.
 * Ownership: the trace's memory is its own until mrc_trace_fini(); json is lent.
 * Threads:   one.  I/O, time: none.
 */
#ifndef MRC_TRACE_H
#define MRC_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRC_TRACE_NAME_BYTES  64U
#define MRC_TRACE_ANSWER_MAX  64U /* messages in one answer; so many: there may be more */
#define MRC_TRACE_ASK_NS      200000000U
#define MRC_TRACE_FROM_NOW_ON (-1) /* `since` of the first question */

/* The moments in the order in which they should be: id, name in our JSON, name for people, key of the daemon, receiver's. */
#define MRC_TRACE_MOMENTS(X)                                                \
	X(SUBMITTED, "submitted", "submitted", "submitted_ns", false)       \
	X(FETCHED, "fetched", "fetched", "fetched_ns", false)               \
	X(FIRST_SENT, "first_sent", "first sent", "first_sent_ns", false)   \
	X(LAST_SENT, "last_sent", "last sent", "last_sent_ns", false)       \
	X(LOCAL, "local_completion", "local completion", "local_ns", false) \
	X(PLACED, "placed", "placed", "placed_ns", true)                    \
	X(VISIBLE, "visible", "visible", "visible_ns", true)                \
	X(VERDICT, "committed", "committed", "verdict_ns", true)

enum mrc_trace_moment {
#define X(id, name, text, key, is_theirs) MRC_TRACE_##id,
	MRC_TRACE_MOMENTS(X)
#undef X
		MRC_TRACE_MOMENT_COUNT
};

struct mrc_trace_message {
	uint64_t seq;    /* of what was traced on this channel */
	uint64_t number; /* of the message on its channel */
	uint64_t bytes;
	uint64_t fragments;
	uint64_t code;     /* the receiving program's, with a rejection */
	uint64_t error_ns; /* of the receiver's moments */
	char outcome[24];  /* "OK", or why not */
	char level[16];    /* how far it is known to have got */
	unsigned known;    /* 1 << moment */
	int64_t at_ns[MRC_TRACE_MOMENT_COUNT];
};

struct mrc_trace_clock {
	bool is_known;
	int64_t offset_ns;
	uint64_t error_ns;
	uint64_t age_ns;
};

struct mrc_trace {
	char peer[MRC_TRACE_NAME_BYTES];
	char service[MRC_TRACE_NAME_BYTES];
	uint64_t channel;
	uint64_t every;
	int64_t next;      /* where the next question goes on */
	uint64_t missed;   /* fell out of the daemon's buffer before we asked */
	uint64_t untraced; /* since the first answer: too many were traced at once */
	uint64_t untraced_before;
	uint64_t left_out; /* came, and were more than count_max */
	bool is_ended;     /* the channel is no more: the last answer that is not full is all */
	struct mrc_trace_clock clock;
	struct mrc_trace_message *messages;
	int64_t *spans; /* scratch of the percentiles, as long as messages */
	size_t count, count_room, count_max;
};

/* Keep at most count_max messages: the first ones. Nothing is allocated yet. */
void mrc_trace_init(struct mrc_trace *trace, size_t count_max);
void mrc_trace_fini(struct mrc_trace *trace);

/*
 * The question that goes on where the last answer ended; `peer` may be NULL.
 * every 0 ends tracing. A new reference; NULL without memory, or when peer is
 * no UTF-8.
 */
json_t *mrc_trace_question(const struct mrc_trace *trace, const char *peer, uint64_t channel,
			   uint64_t every);

/*
 * Take in an answer's "result". 1: it was full, ask again at once; 0: that was all.
 * -EBADMSG: not such an answer; -ENOMEM. Messages before the fault have been taken.
 */
int mrc_trace_take(struct mrc_trace *trace, const json_t *result);

/* ---- moments and spans ---- */

const char *mrc_trace_moment_name(enum mrc_trace_moment moment); /* "first_sent" */
const char *mrc_trace_moment_text(enum mrc_trace_moment moment); /* "first sent" */
bool mrc_trace_knows(const struct mrc_trace_message *message, enum mrc_trace_moment moment);

/* Does the span go from one host's clock to the other's, so that their error is in it? */
bool mrc_trace_crosses(enum mrc_trace_moment from, enum mrc_trace_moment to);

/*
 * The span of one message, false when one end is not known. A rejected message
 * has a verdict and is not committed: it has no span that ends there.
 */
bool mrc_trace_span(const struct mrc_trace_message *message, enum mrc_trace_moment from,
		    enum mrc_trace_moment to, int64_t *span_ns_out);

struct mrc_trace_quantiles {
	size_t count; /* with both ends known; the rest is 0 when this is */
	int64_t min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
	size_t after_count;  /* `to` came later than `from` */
	size_t unsure_count; /* the clocks' error is as large as the span, or larger */
	uint64_t error_ns;   /* the largest of these messages; 0 within one host */
};

/* Exact, by nearest rank: the smallest value that so many of all values do not exceed. */
void mrc_trace_quantiles(const struct mrc_trace *trace, enum mrc_trace_moment from,
			 enum mrc_trace_moment to, struct mrc_trace_quantiles *quantiles_out);

/* All spans of that kind in ascending order; answers how many. Good until the next call with this trace. */
size_t mrc_trace_spans(const struct mrc_trace *trace, enum mrc_trace_moment from,
		       enum mrc_trace_moment to, const int64_t **spans_out);

/* The message as the daemon has sent it, as far as we know it; NULL without memory. */
json_t *mrc_trace_message_json(const struct mrc_trace_message *message);
/* null while the clock is not known */
json_t *mrc_trace_clock_json(const struct mrc_trace_clock *clock);

#endif
