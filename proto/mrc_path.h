/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_path - one path to the peer: what is in flight on it, how well it does
 *
 * Every frame of a path epoch has a position, counted from 0 by both ends
 * (DESIGN 7.1). The sender keeps a record per frame until the peer says it has
 * taken that many in; when the path dies, the records tell what has to be said
 * or sent again elsewhere. This file keeps records and estimates and judges
 * time; what follows from a judgement is mrc_conn_paths.c's affair.
 *
 * Units: bytes, ns.  Ownership: records are lent by the conn.  I/O, time: none.
 */
#ifndef MRC_PATH_H
#define MRC_PATH_H

#include "mrc_event.h"
#include "mrc_histogram.h"
#include "mrc_limits.h"
#include "mrc_rtt.h"

/* What a frame in flight was, so that it can be made anew. */
enum mrc_record_kind {
	MRC_REC_PLAIN, /* nothing depends on it: NOP */
	MRC_REC_PROBE,
	MRC_REC_PROBE_ACK,
	MRC_REC_ACK,
	MRC_REC_CTL,   /* msg: control number */
	MRC_REC_FRAG,  /* channel, msg, offset, len */
	MRC_REC_STATE, /* channel */
	MRC_REC_RTS,   /* channel, msg; so are the next three */
	MRC_REC_CTS,
	MRC_REC_WANT,
	MRC_REC_LEVEL,
	MRC_REC_DRAINED, /* channel */
	MRC_REC_FENCE,   /* channel: path index; msg: epoch */
	MRC_REC_FENCED,
	MRC_REC_ABOUT,
};

/* Who asks for room: each leaves the last places to those below it. */
enum mrc_room { MRC_ROOM_DATA, MRC_ROOM_CONTROL, MRC_ROOM_ACK };

/* A share of the peer's receive entries is at least so large; taken for granted until it is heard. */
#define MRC_SHARE_MIN 8U

#define MRC_ACK_DELAY_NS \
	(100 * MRC_US) /* at most; mrc_conn_ack_delay_ns() has it below the floor */
#define MRC_RATE_UNKNOWN (125ULL * 1000000) /* bytes per second, until the first sample */

struct mrc_record {
	uint8_t kind;        /* enum mrc_record_kind */
	bool is_eliciting;   /* the peer owes an acknowledgement */
	bool is_app_limited; /* the path had room left when it was sent */
	bool is_moved;       /* already sent again elsewhere */
	bool is_direct;      /* FRAG: this path epoch is the bytes' writer */
	bool is_copy;        /* FRAG: writer_* name another writer */
	uint8_t blame;       /* WANT: 1 + id of the path that damaged some of it; 0: none */
	bool is_final;       /* LEVEL: it said the verdict */
	bool is_owed;        /* LEVEL: counted in its channel's level_unacked */
	uint8_t writer_path; /* path id */
	uint32_t writer_epoch;
	uint32_t channel; /* this end's id */
	uint32_t len;
	uint64_t msg;
	uint64_t offset;
	uint64_t end; /* WANT: of the range asked for */
	uint64_t sent_ns;
	uint64_t queued;    /* bytes in flight when it was sent, its own included */
	uint64_t delivered; /* the rate's, when it was sent */
	uint64_t delivered_ns;
	uint64_t first_sent_ns; /* the rate's, when it was sent */
	uint64_t round_ns;      /* when its round trip's first frame was sent */
	uint64_t round_bytes;   /* that round trip's up to this one */
};

struct mrc_path {
	/* Identity and state. */
	uint8_t index;
	uint16_t path_id;  /* as the initiator numbers it; on the wire */
	bool is_known;     /* path_id was agreed on at least once */
	bool is_connected; /* a transport of `epoch` exists at our end */
	bool is_direct;    /* it can place by RDMA write */
	bool is_carrier_up;
	bool is_peer_port_up;
	bool is_denied;
	bool is_absent;     /* taken away: it stays denied, and its slot is free */
	bool is_connecting; /* an attempt is under way */
	enum mrc_path_state state;
	enum mrc_path_reason reason;
	uint32_t epoch;        /* of the transport, or of the last one */
	uint32_t epoch_last;   /* highest known to either end */
	uint32_t fenced_epoch; /* nothing of this or an older one can land at our end */
	uint8_t version;       /* of the protocol in this epoch, as both ends agreed; 0: none yet */
	uint32_t features;     /* and what else they agreed on */
	bool is_breach_counted; /* a frame of this epoch broke the protocol */
	uint64_t state_since_ns;

	/* Frames in flight: positions acked <= sent <= posted (sent may lag or lead acked). */
	struct mrc_record *records; /* lent; record_count is a power of two */
	uint32_t record_count;
	uint64_t posted; /* frames given to the rail in this epoch */
	uint64_t acked;  /* of them, taken in by the peer */
	uint64_t sent;   /* of them, no longer read by the rail */
	uint32_t share;  /* of the peer's receive entries: frames not acked; 0: no such bound */
	uint32_t share_given;      /* of ours to the peer */
	uint32_t body_bytes_max;   /* of a frame's body there; UINT32_MAX: no such bound */
	uint32_t body_bytes_given; /* of ours to the peer; 0: no such bound */
	uint64_t bytes_in_flight;
	uint64_t oldest_sent_ns;   /* of the oldest eliciting frame not acked; MRC_NEVER: none */
	uint64_t oldest_queued;    /* and its `queued` */
	uint64_t answered_sent_ns; /* when the newest acked eliciting frame was sent */
	uint64_t elicited_ns;      /* when the last eliciting frame was sent */
	uint64_t heard_ns;         /* when the last frame came by it */
	uint64_t data_heard_ns;    /* when the last fragment did */
	uint64_t first_sent_ns;    /* when what was acked last, or began after a pause, was sent */

	/* Frames received in this epoch, and what we told the peer of it. */
	uint64_t taken;
	uint64_t taken_told; /* in the last ACK */
	uint64_t taken_said; /* in the last ACK or PROBE_ACK: the peer can have heard of no more */
	uint64_t taken_prev; /* final count of the epoch before, for PATH_FENCED */

	/* Estimates. */
	struct mrc_rtt rtt;
	struct mrc_rate rate;
	struct mrc_queue queue; /* what its queue costs, beyond base_ns */
	uint64_t idle_ns;       /* what a frame alone has met lately, its own bytes aside */
	uint64_t idle_at_ns;    /* when that was */
	uint64_t rate_least;    /* and at least so fast lately: see least_sample() */
	bool is_rate_weak;      /* only from frames that did not fill it, or long not confirmed */
	uint64_t rate_confirmed_ns; /* when it was last got from a filled path */
	uint64_t round_first;       /* number of the record that began this round trip, */
	uint64_t round_ns;          /* when it was sent */
	uint64_t round_bytes;       /* and what was sent since, its own included */
	uint64_t rate_assumed;      /* while it has no rate of its own: the best of its siblings */
	bool is_evidence_late;      /* we stood still once since evidence_ns: it began anew then */
	bool is_on_trial;           /* suspected by time, and not yet known whether rightly */
	uint64_t trial_until_ns;    /* what answers later was silent, not late */
	uint64_t window_bytes;
	uint64_t full_ns;  /* when it was last kept full: what its rate says then is its own */
	uint64_t floor_ns; /* of the timer: doubled after a false suspicion */
	uint64_t floor_until_ns; /* then it falls back */

	/* Timers. */
	uint64_t evidence_ns; /* since when a sibling's answers speak against it; MRC_NEVER: not */
	uint64_t judge_ns;    /* look at oldest_sent_ns again; MRC_NEVER: nothing to judge */
	uint64_t revive_ns;   /* suspected: give the transport up then */
	uint64_t connect_ns;  /* start an attempt then (initiator) */
	uint64_t backoff_ns;
	uint64_t good_since_ns; /* carries data since; resets the backoff */

	/* Probes of ours. */
	uint64_t probe_id;           /* of the last one */
	uint64_t probe_count;        /* frames posted with it; answered: so many were taken in */
	uint32_t probe_port_version; /* and what it said of our ports */
	uint64_t probe_ns;           /* when it was sent; MRC_NEVER: none outstanding */
	uint64_t probe_due_ns;       /* send one then */
	uint32_t probes_good;        /* answered in a row since PROBING began */
	uint32_t prove_left;         /* so many more are to ask for a PROOF */
	bool is_convicted;           /* left as corrupting, and has not proved itself since */

	/*
	 * Flags of what is to be done or said; each stays set until it is. All paths are
	 * asked for each action: of the three groups, *_any is whether there is one at all.
	 */
	union {
		struct {
			bool do_fence;
			bool do_strip;
			bool do_connect;
			bool do_carrier_ask;
			bool do_state; /* tell the embedder of the new state */
		};
		uint64_t do_any;
	};
	union {
		struct {
			bool do_probe;
			bool do_path_open;
			bool do_keys;  /* some key is not told on this path */
			bool do_proof; /* before the answer */
			bool do_probe_ack;
			bool do_about; /* what this end of it is */
		};
		uint64_t say_any;
	};
	union {
		struct {
			bool tell_fence;  /* PATH_FENCE of `epoch` */
			bool tell_fenced; /* PATH_FENCED of fenced_tell_epoch */
		};
		uint64_t tell_any;
	};
	uint32_t fence_asked; /* epoch the embedder was asked to fence */
	enum mrc_path_state state_told;
	uint64_t probe_ack_id;
	uint64_t probe_ack_arg;
	uint64_t probe_stamp_ns; /* when our last probe was made, to compare clocks */
	uint64_t probe_came_ns;  /* when the peer's was taken in */
	uint32_t fenced_tell_epoch;
	uint64_t fenced_tell_count;
	uint32_t moved_count; /* of the last time it left service */
	uint64_t late_ns;     /* and how long its oldest frame had waited for an answer then */

	/* Counters. */
	uint64_t frames_sent, frames_received, bytes_sent, bytes_received;
	uint64_t frames_resent, suspicions, suspicions_false;
	uint64_t body_errors, header_errors, good_count, bad_count;
	struct mrc_histogram rtts; /* of all epochs */
};

void mrc_path_init(struct mrc_path *path, uint8_t index, struct mrc_record *records,
		   uint32_t record_count);

/* Begin a new epoch: nothing in flight, nothing known of its delay. */
void mrc_path_begin(struct mrc_path *path, uint32_t epoch, uint64_t window_bytes, uint64_t floor_ns,
		    uint64_t now_ns);

/*
 * May one more frame be posted? Data leaves the last few places to control
 * frames, and those the very last to an ACK; that takes it only with news about
 * this path. So each of two full ends can tell the other that it is not.
 */
bool mrc_path_has_room(const struct mrc_path *path, enum mrc_room room);

/* Make the next frame's record; the caller fills kind and names. `bytes` counts against the window. */
struct mrc_record *mrc_path_push(struct mrc_path *path, bool is_eliciting, uint32_t bytes,
				 uint64_t now_ns);

static inline struct mrc_record *mrc_path_record(struct mrc_path *path, uint64_t position)
{
	return &path->records[position & (path->record_count - 1)];
}

/*
 * The peer has taken in `count` frames: take the next record off, for the
 * caller to settle; NULL when all up to count are off. Call mrc_path_acked()
 * after the last one.
 */
struct mrc_record *mrc_path_pop(struct mrc_path *path, uint64_t count);
/* Estimates from what was popped since the last call; sets the window. */
void mrc_path_acked(struct mrc_path *path, const struct mrc_record *newest, uint64_t bytes,
		    const struct mrc_limits *limits, uint64_t now_ns);

/* Its rate is low and old: better none, so that it is tried again. */
void mrc_path_rate_age(struct mrc_path *path, uint64_t now_ns);

/* Suspected by time now, after `timeout_ns`. */
void mrc_path_suspect(struct mrc_path *path, uint64_t timeout_ns, uint64_t now_ns);

/* A suspicion by time was false: all had arrived. Be slower to suspect it for a while. */
void mrc_path_acquit(struct mrc_path *path, const struct mrc_limits *limits, uint64_t now_ns);

/* How long until `len` more bytes would arrive, by what is known. */
uint64_t mrc_path_eta_ns(const struct mrc_path *path, uint64_t len, uint64_t now_ns);
uint64_t mrc_path_timeout_ns(const struct mrc_path *path, const struct mrc_limits *limits);
/* Largest fragment it should carry now. */
uint32_t mrc_path_frag_bytes(const struct mrc_path *path, uint32_t frag_bytes_max);

#endif
