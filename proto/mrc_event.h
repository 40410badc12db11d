/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_event - what the engine is told and what it asks for
 *
 * Events are facts, given to mrc_conn_handle(). Actions are wishes, taken from
 * mrc_conn_next_action() until it has none. Neither holds a pointer into the
 * engine; payload is named by address, paths by index, channels by an id of
 * this end's own (never 0; on the wire a channel has another number).
 *
 * `cookie` values are the embedder's own and come back untouched.
 */
#ifndef MRC_EVENT_H
#define MRC_EVENT_H

#include "mrc_about.h"
#include "mrc_note.h"
#include "mrc_wire.h"

/* Same numbers as enum mrc_level and enum mrc_status of mrc/client.h; a test compares them. */
enum mrc_lvl { MRC_LVL_NONE, MRC_LVL_PLACED, MRC_LVL_VISIBLE, MRC_LVL_COMMITTED };

enum mrc_outcome {
	MRC_OUT_OK = 0,
	MRC_OUT_REJECTED = -1,
	MRC_OUT_UNKNOWN = -2,
	MRC_OUT_PEER_DIED = -3,
	MRC_OUT_TIMED_OUT = -4,
	MRC_OUT_CLOSED = -5,
	MRC_OUT_TOO_BIG = -6,
	MRC_OUT_NO_SERVICE = -7,
	MRC_OUT_NO_PEER = -8,
	MRC_OUT_REFUSED = -9,
	MRC_OUT_NOT_ALLOWED = -10,
	MRC_OUT_NO_RESOURCES = -11,
	MRC_OUT_DETACHED = -12,
	MRC_OUT_INVALID = -13,
	MRC_OUT_BUFFER_CHANGED = -14,
	MRC_OUT_IN_USE = -15,
	MRC_OUT_DRAINING = -16, /* REFUSE: to a peer that does not know it, NO_RESOURCES */
	MRC_OUT_LAST = MRC_OUT_DRAINING
};

/* Why a path went down; shown to operators. */
enum mrc_path_reason {
	MRC_REASON_NONE,
	MRC_REASON_SILENT,     /* our timer, with a sibling's evidence */
	MRC_REASON_CARRIER,    /* local carrier lost */
	MRC_REASON_PEER_PORT,  /* the peer says its port is down */
	MRC_REASON_ERROR,      /* socket or queue pair error */
	MRC_REASON_CLOSED,     /* the peer closed it */
	MRC_REASON_PEER_FENCE, /* the peer gave this epoch up */
	MRC_REASON_CORRUPT,    /* a header failed its checksum */
	MRC_REASON_PROTOCOL,   /* the peer broke the protocol */
	MRC_REASON_CONNECT,    /* connecting failed or took too long */
	MRC_REASON_OPERATOR,   /* drained */
	MRC_REASON_PROBE,      /* probes were not answered */
	MRC_REASON_NEW_CONN,   /* a new conn epoch began */
	MRC_REASON_COUNT
};

enum mrc_path_state {
	MRC_PATH_CONNECTING,
	MRC_PATH_PROBING,
	MRC_PATH_GOOD,
	MRC_PATH_ASSUMED_BAD,
	MRC_PATH_DENIED,
	MRC_PATH_STATE_COUNT
};

/* ---- events ---- */

enum mrc_event_kind {
	/* Paths. */
	MRC_EV_PATH_UP,     /* handshake done on path.index: conn_epoch, path_epoch, peer_boot_id */
	MRC_EV_PATH_DOWN,   /* the transport of (index, path_epoch) is gone, and so fenced here */
	MRC_EV_PATH_FAILED, /* an attempt to connect did not work: index, reason */
	MRC_EV_CARRIER,     /* path.index: is_up */
	MRC_EV_DENY,        /* path.index: operator drains it */
	MRC_EV_ALLOW,
	MRC_EV_SENT, /* (index, path_epoch): the rail is finished with `count` frames since its epoch began */
	MRC_EV_FENCED, /* (index, path_epoch): nothing of this epoch can land any more */
	MRC_EV_KEY, /* a client's landing memory was made known to a rail's device, or is no more */
	MRC_EV_ABOUT, /* what our end of a path is to tell about itself; again when it has changed */
	MRC_EV_HOST_DRAIN, /* this host is being drained, or no longer: the peer is to know */
	MRC_EV_DRILL,   /* path.index: is_up: it is to fail on purpose, or no longer; so is that */
	MRC_EV_ARRIVED, /* a frame, see struct mrc_ev_arrived */
	/* Clients of this host. */
	MRC_EV_CH_OPEN,   /* open a channel to the peer's service */
	MRC_EV_CH_ACCEPT, /* take an incoming channel */
	MRC_EV_CH_REFUSE, /* turn it away: outcome, code */
	MRC_EV_CH_CLOSE,  /* no more sends */
	MRC_EV_CH_ABORT,  /* the client has died: forget it, tell the peer */
	MRC_EV_SEND,      /* a message */
	MRC_EV_CANCEL,    /* give (channel, number) up: outcome, if it was not delivered and the
			   * receiver lets it; else DONE comes as soon as delivery is known */
	MRC_EV_LANDING,   /* answers MRC_ACT_LANDING_WANT: addr */
	MRC_EV_VISIBLE, /* the client took the arrival of (channel, msg), and of `more` after it */
	MRC_EV_COMMIT,
	MRC_EV_REJECT,     /* code */
	MRC_EV_COMMIT_ASK, /* changes nothing: what a COMMIT would answer now */
	MRC_EV_RELEASE, /* the client gave the buffer of (channel, msg) back, and of `more` after it */
	MRC_EV_TIMER, /* time has passed */
};

struct mrc_ev_path {
	uint8_t index;
	bool is_up;             /* CARRIER */
	bool is_direct_capable; /* PATH_UP: this path can place by RDMA write, both ends agree */
	enum mrc_path_reason reason;
	uint32_t path_epoch;
	uint32_t conn_epoch;
	uint16_t path_id; /* PATH_UP: as the initiator numbers it */
	uint64_t peer_boot_id;
	uint32_t receive_share; /* PATH_UP: receive entries this path has here; 0: no such bound */
	uint32_t receive_bytes; /* PATH_UP: of body that each of them takes; 0: no such bound */
	uint8_t version;        /* PATH_UP: of the protocol, as both ends agreed; 0: 1 */
	uint32_t features;      /* PATH_UP: and what else both can do */
	uint64_t count;         /* SENT */
};

/*
 * Landing memory that a peer may write directly. Given for a flow that has a
 * channel, when the rail of path `index` has registered it; without it the
 * peer's fragments come as SENDs (DESIGN 7.15).
 */
struct mrc_ev_key {
	uint32_t flow;
	uint8_t index;
	bool is_valid; /* false: do not write there any more */
	uint32_t rkey;
	uint64_t base; /* what the device calls the first byte of it */
};

struct mrc_ev_about {
	uint8_t index;
	const struct mrc_about *about; /* copied; told again when something of it differs */
};

struct mrc_ev_host {
	bool is_draining;
};

struct mrc_ev_arrived {
	uint8_t index;
	bool is_body_good; /* its checksum was right, or there is none */
	bool is_placed; /* FRAG: payload is where mrc_conn_place() said, or was written directly */
	uint32_t path_epoch;
	const struct mrc_wire_hdr *hdr;
	const uint8_t *body; /* control frames: body_len bytes, valid during the call */
	uint64_t hold;       /* FRAG received into daemon memory: names it; 0: none.
				  * Comes back in COPY and HOLD_FREE. */
};

struct mrc_ev_channel {
	uint32_t id;        /* all but CH_OPEN */
	uint32_t flow;      /* CH_OPEN, CH_ACCEPT: which client, for fair turns */
	uint32_t weight;    /* and its share of them; 0: MRC_WEIGHT_DEFAULT */
	bool is_unordered;  /* CH_OPEN */
	bool is_unchecked;  /* CH_OPEN: no checksums of payload */
	int outcome;        /* CH_REFUSE */
	uint32_t code;      /* CH_REFUSE */
	uint64_t cookie;    /* CH_OPEN, CH_ACCEPT */
	uint64_t ring_addr; /* its landing ring's place in its landing memory: CH_OPEN, CH_ACCEPT */
	uint64_t ring_bytes;    /* and size */
	uint64_t msg_bytes_max; /* largest message the client's landing arena takes */
	uint32_t window;        /* messages the client's rings have room for; power of two */
	const char *service;    /* CH_OPEN; copied */
	uint32_t *id_out;       /* CH_OPEN: the new channel's id */
};

struct mrc_ev_msg {
	uint32_t channel;
	uint64_t number;    /* all but SEND */
	uint32_t more;      /* VISIBLE, RELEASE: so many numbers that follow are meant as well */
	enum mrc_lvl level; /* SEND: what the client waits for */
	uint32_t code;      /* REJECT */
	int outcome;        /* CANCEL: what DONE is to say, if it is given up */
	uint64_t cookie;    /* SEND */
	uint64_t addr; /* SEND: offset in the client's send arena; LANDING: in its landing arena */
	uint64_t len;  /* SEND */
	uint64_t deadline_ns; /* SEND; 0: none */
	uint64_t *number_out; /* SEND: the message's number; NULL: not asked for */
	const char *text;     /* REJECT: for people, copied; NULL: none */
	uint8_t text_len;     /* at most MRC_TEXT_BYTES_MAX */
	/* The message's moments are to be told by TRACED: SEND, and by whom it was received. */
	bool is_traced;        /* SEND */
	uint64_t submitted_ns; /* SEND, traced: as the client says; 0: it does not */
	uint64_t fetched_ns;   /* SEND, traced */
	uint64_t visible_ns;   /* COMMIT, REJECT, RELEASE: when the client says it took it; or 0 */
	uint64_t verdict_ns;   /* COMMIT, REJECT, RELEASE: likewise, when it was said */
};

struct mrc_event_in {
	enum mrc_event_kind kind;
	union {
		struct mrc_ev_path path;
		struct mrc_ev_key key;
		struct mrc_ev_about about;
		struct mrc_ev_host host;
		struct mrc_ev_arrived arrived;
		struct mrc_ev_channel channel;
		struct mrc_ev_msg msg;
	};
};

/* ---- actions ---- */

enum mrc_action_kind {
	MRC_ACT_POST,        /* send a frame on a path, see struct mrc_act_post */
	MRC_ACT_CONNECT,     /* path.index: start a connection attempt (initiator only) */
	MRC_ACT_FENCE,       /* (index, path_epoch): close or error it; answer MRC_EV_FENCED */
	MRC_ACT_STRIP,       /* (index, path_epoch): what is queued may no longer be read: frames
				* not begun become NOPs, one half written is finished with zeros */
	MRC_ACT_CARRIER_ASK, /* path.index: is the carrier there? answer MRC_EV_CARRIER */
	MRC_ACT_PATH_STATE,  /* path.index went to `state` for `reason`: for logs and counters */
	MRC_ACT_CH_INCOMING, /* the peer opens channel id to `service`: answer ACCEPT or REFUSE */
	MRC_ACT_CH_UP,       /* our CH_OPEN (or CH_ACCEPT) took effect: msg_bytes_max of the peer */
	MRC_ACT_CH_DOWN,     /* the channel ended: outcome, code. No SEND on it is unanswered */
	MRC_ACT_CH_ROOM,     /* a SEND that was answered -ENOSPC may be tried again */
	MRC_ACT_CH_FREE,     /* nothing can land in its landing ring any more: free it, forget id */
	MRC_ACT_LANDING_WANT, /* (channel, number, len): a landing buffer; answer when there is one */
	MRC_ACT_LANDING_FREE, /* (channel, number, addr, len): nothing can write there any more */
	MRC_ACT_DELIVER,      /* (channel, number, addr, len): publish the arrival */
	MRC_ACT_GAP,          /* (channel, number): tell the client this one will not come */
	MRC_ACT_DONE,         /* (channel, number, cookie): outcome, level, code of a SEND */
	MRC_ACT_LATE,         /* as DONE, once more: what became of one whose DONE was undecided */
	MRC_ACT_TRACED,     /* (channel, number): the moments of a message that has come to its end,
				* after its DONE and LATE. Those of a channel that ended are not told */
	MRC_ACT_COPY,       /* hold -> landing memory of (channel, number) at addr, len */
	MRC_ACT_HOLD_FREE,  /* hold is no longer needed */
	MRC_ACT_CONN_RESET, /* a new conn epoch: the peer's daemon restarted or lost the conn */
	MRC_ACT_PEER_DRAIN, /* the peer's host is being drained, or no longer */
	MRC_ACT_PEER_DRILL, /* other paths than before are in a drill of the peer's: these */
};

struct mrc_act_post {
	uint8_t index;
	uint32_t path_epoch;
	struct mrc_wire_hdr hdr; /* the rail fills body_crc of a FRAG, then encodes */
	uint64_t payload_addr;   /* FRAG: offset in the send arena of `channel_cookie`'s client */
	uint64_t channel_cookie; /* FRAG */
	uint64_t remote_addr;    /* FRAG with DIRECT: where the payload is written, by this key */
	uint32_t rkey;
	uint32_t pad_len;  /* PROBE: this many bytes of padding follow as body */
	uint16_t body_len; /* control frames */
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
};

struct mrc_act_path {
	uint8_t index;
	enum mrc_path_state state;
	enum mrc_path_state state_old;
	enum mrc_path_reason reason;
	uint32_t path_epoch;
	uint32_t moved_count; /* PATH_STATE to ASSUMED_BAD: fragments to be sent again */
	uint64_t late_ns;     /* and for how long its oldest frame had not been answered; 0: none */
};

struct mrc_act_channel {
	uint32_t id;
	bool is_unordered;
	bool is_unchecked;
	int outcome;
	uint32_t code;
	uint64_t cookie;
	uint64_t msg_bytes_max;
	char service[MRC_NAME_MAX + 1];
};

struct mrc_act_msg {
	uint32_t channel;
	uint64_t channel_cookie;
	uint64_t number;
	uint64_t cookie; /* DONE, LATE */
	uint64_t addr;
	uint64_t len;
	uint64_t hold;
	uint64_t hold_offset; /* COPY: from there in the hold */
	int outcome;
	uint32_t code;
	enum mrc_lvl level;
	bool is_eager; /* DELIVER: addr is a ring position (offset already reduced), not a buffer */
	bool is_visible_wanted; /* DELIVER */
	bool is_undecided; /* DONE: delivered, but given up before it got further: LATE follows */
	bool is_traced;    /* DELIVER: the sender wants to know when */
	uint8_t text_len;  /* DONE, LATE: of the receiver's text */
	char text[MRC_TEXT_BYTES_MAX]; /* last: unset beyond text_len */
};

struct mrc_act_trace {
	uint32_t channel;
	uint64_t channel_cookie;
	uint64_t number;
	uint64_t len;
	uint32_t frag_count; /* first copies */
	int outcome;
	enum mrc_lvl level;
	uint32_t code;
	uint64_t moments_ns[MRC_MOMENT_COUNT]; /* by our clock; 0: not known */
	uint64_t error_ns;                     /* of the last MRC_MOMENTS_TOLD of them */
};

struct mrc_act_host {
	bool is_draining;
	uint32_t paths_drilled; /* bits by index */
};

struct mrc_action {
	enum mrc_action_kind kind;
	union {
		struct mrc_act_post post;
		struct mrc_act_path path;
		struct mrc_act_channel channel;
		struct mrc_act_msg msg;
		struct mrc_act_trace trace;
		struct mrc_act_host host;
	};
};

#endif
