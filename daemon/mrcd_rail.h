/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_rail - the seam between the daemon and its kinds of rails
 *
 * A rail is one local NIC port. A link is the transport of one path during one
 * path epoch: a TCP connection, a queue pair. The path (mrc_conn.h) lives as
 * long as the peer is configured; its links come and go.
 *
 * A kind of rail implements struct mrcd_rail_ops and calls the mrcd_link_on_*
 * functions (mrcd_peer.c) with what happened. It knows frames and bytes and
 * decides nothing about the protocol.
 *
 * Threads: all of it on the loop of the worker that owns the peer.
 */
#ifndef MRCD_RAIL_H
#define MRCD_RAIL_H

#include <jansson.h>

#include "mrc_conn.h"
#include "mrc_health.h"
#include "mrcd_card.h"
#include "mrcd_conf.h"
#include "mrcd_nic.h"
#include "mrcd_region.h"

struct mrcd_worker;
struct mrcd_peer;
struct mrcd_rail;
struct mrcd_link;

/* What a drill has a rail suffer. */
enum mrcd_drill_fault {
	MRCD_DRILL_NONE,
	MRCD_DRILL_DOWN,    /* as if the carrier were lost: nothing passes, and this host knows */
	MRCD_DRILL_SILENCE, /* nothing passes either way, and nobody is told */
	MRCD_DRILL_SLOW,    /* sends drill_bytes_per_s at most */
};

/* What can be done with a link; a rail may have links of two kinds. */
struct mrcd_link_ops {
	const char *kind; /* "tcp", "verbs", "loop" */

	/*
	 * Queue one frame. Payload is read from the client's send arena (see
	 * mrcd_worker_send_memory()) no later than flush; body_crc is computed
	 * and the header encoded here. Queue room is bounded by the engine's
	 * window; running out of it is a bug (MRC_ASSERT).
	 */
	void (*post)(struct mrcd_link *link, const struct mrc_act_post *post);
	/* End of a turn: send what is queued, as far as the transport takes it. */
	void (*flush)(struct mrcd_link *link);
	/* MRC_ACT_STRIP: after the return no client memory is read by this link. */
	void (*strip)(struct mrcd_link *link);
	/*
	 * MRC_ACT_FENCE: stop it. When nothing can land any more, call
	 * mrcd_link_on_fenced() (at once for tcp); the link is then freed by
	 * the kind and must not be used again.
	 */
	void (*fence)(struct mrcd_link *link);
	/* Adds what people want to see of it to a path's object (mrcctl). NULL: nothing. */
	void (*describe)(const struct mrcd_link *link, json_t *object);
	/*
	 * What the transport below has sent since the link is up, in its own units, and of
	 * that sent again. Asked a few times a second. False, or NULL: it does not say.
	 */
	bool (*resends)(const struct mrcd_link *link, uint64_t *sent_out, uint64_t *resent_out);
};

struct mrcd_rail_ops {
	const char *kind; /* "tcp", "verbs", "loop" */

	/*
	 * Begin to listen. The rail may have no carrier and no address yet: that
	 * is not an error, the kind tries again by itself. A negative errno is
	 * for what no waiting mends (bad option); it is logged by the caller.
	 */
	int (*open)(struct mrcd_rail *rail);
	void (*close)(struct mrcd_rail *rail);
	/*
	 * The rail is to close while others run on; it has no link, attempt or hold any more.
	 * Begin what takes time. True: close() will wait for nothing; else it is asked again,
	 * and nothing else is asked of the rail. NULL: close() never waits.
	 */
	bool (*leave)(struct mrcd_rail *rail);

	/*
	 * Among how many paths it has divided something: with more of them it must be opened
	 * anew. 0: among none. NULL: never.
	 */
	uint32_t (*shares)(const struct mrcd_rail *rail);

	/*
	 * Start connecting path `path_index` of `peer` over this rail. Ends in
	 * mrcd_link_on_up() or mrcd_peer_on_connect_failed(), the latter also
	 * after the handshake timeout. Never blocks. At most one attempt per
	 * path at a time: a second call while one is under way is ignored.
	 */
	void (*connect)(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index);

	/* Is there a carrier now? Asked when a path is suspected. */
	bool (*has_carrier)(struct mrcd_rail *rail);
	/*
	 * Its interface or address came, went or changed (from rtnetlink): listen
	 * where the rail is now. NULL: the kind does not care.
	 */
	void (*refresh)(struct mrcd_rail *rail);
	/*
	 * The kernel spoke of its interface (rtnetlink): MTU or speed may be others,
	 * or nothing at all. NULL: the kind does not care.
	 */
	void (*link_changed)(struct mrcd_rail *rail);
	/*
	 * Drop attempts and handshakes under way with `peer`, without a call back;
	 * to be called before a peer, or a path of it, goes while the rail stays open.
	 * NULL: the kind has none.
	 */
	void (*forget)(struct mrcd_rail *rail, struct mrcd_peer *peer);

	/*
	 * A client's memory (mrcd_region.h); NULL: the kind registers none.
	 * region_add is answered by mrcd_region_on_added(), region_remove by
	 * mrcd_region_on_removed(); neither blocks, both may answer at once.
	 */
	void (*region_add)(struct mrcd_rail *rail, struct mrcd_region *region);
	void (*region_remove)(struct mrcd_rail *rail, struct mrcd_region *region);

	/*
	 * Fragments the kind received into memory of its own and handed up with
	 * a hold (mrcd_link_on_frame()): its bytes, and the end of it. The low
	 * 8 bits of a hold are rail->index, so that the peer finds the rail.
	 * NULL: the kind holds nothing.
	 */
	const uint8_t *(*hold_data)(struct mrcd_rail *rail, uint64_t hold, uint32_t *len_out);
	void (*hold_free)(struct mrcd_rail *rail, uint64_t hold);
	/*
	 * Break something on purpose, for tests of the daemon (mrcctl fault): "qp-error"
	 * puts the queue pairs that are up into ERR, and tells nobody; "damage-payload"
	 * and "damage-headers" flip a bit in some of the frames that arrive from now on,
	 * "damage-none" ends it. Answers how many things broke, of damage how many bits
	 * so far; -EINVAL: no such fault. NULL: there is none.
	 */
	int (*fault)(struct mrcd_rail *rail, const char *what);
	/*
	 * A drill (mrcd_drill.h): from now on suffer rail->drill, until it is
	 * MRCD_DRILL_NONE again; what a link does on the way of data shall not ask
	 * for it. The carrier is not the kind's: whoever asks has_carrier() is told.
	 * -ENOTSUP: the kind cannot; nothing has changed. NONE is never refused.
	 */
	int (*drill)(struct mrcd_rail *rail);
	/* Adds what people want to see of it to a rail's object (mrcctl). NULL: nothing. */
	void (*describe)(const struct mrcd_rail *rail, json_t *object);
	/* Its RDMA device and port, as sysfs calls them; unchanged: there is none now. NULL: never. */
	void (*device)(const struct mrcd_rail *rail, char *device_out, size_t device_bytes,
		       unsigned *port_out);
};

/* How well a rail does, by the paths over it (mrcd_health.h). */
struct mrcd_rail_health {
	struct mrc_health_view
		view;          /* of the path that stands for it; state and since: the rail's */
	uint32_t paths_judged; /* carried enough for a word */
	uint32_t paths_worse;  /* of them, not good */
	uint64_t better_ns;    /* since when it would be in a better state; 0: it would not */
};

/* What is to become of a rail that runs (mrcd_reload.h). */
enum mrcd_rail_fate {
	MRCD_RAIL_STAYS,
	MRCD_RAIL_GOES,  /* once no peer needs it, its paths go, and it */
	MRCD_RAIL_RENEW, /* once no peer needs it, it is closed, and opened as `next` says */
};

/*
 * So many paths beyond those that a rail has shared itself out among may come up over it before it
 * is opened anew: each with the least there is. Kinds keep as much for them, where they can.
 */
#define MRCD_RAIL_GUESTS_MAX 16U

/* One NIC port. Owned by struct mrcd_worker, in rails[]; loop thread only. */
struct mrcd_rail {
	const struct mrcd_rail_ops *ops; /* NULL: there is no rail in this slot */
	struct mrcd_conf_rail given;     /* as the configuration has it */
	const struct mrcd_conf_rail
		*conf;              /* `given`, or while it is open what its kind made of it */
	struct mrcd_worker *worker; /* the owner */
	uint32_t index;
	uint32_t path_count;  /* by the configuration */
	uint32_t guest_count; /* paths that have no share of it until it is opened anew */
	uint32_t
		guests_max; /* so many have something all the same; the kind's to say, with shares */
	unsigned ifindex;   /* 0: unknown now */
	struct mrcd_nic nic;
	bool is_carrier_up; /* by the last event or question */
	bool is_draining;   /* mrcctl drain */
	bool is_open;       /* ops->open() was called, and close() was not */
	enum mrcd_rail_fate fate;
	bool is_leaving;            /* and that is under way: its paths are denied */
	struct mrcd_conf_rail next; /* RENEW */
	uint64_t open_ns;           /* RENEW, and it could not be opened: not before */
	uint32_t hold_count;        /* of its memory that engines hold now */
	bool is_drilled; /* it is in a drill, or about to be: that what befalls it is wanted */
	enum mrcd_drill_fault drill;
	uint64_t drill_bytes_per_s; /* SLOW */
	void *kind_data;            /* the kind's own */
	/* Counters, for mrcctl and metrics; never reset. */
	uint64_t frames_sent, frames_received;
	uint64_t bytes_sent, bytes_received; /* payload */
	uint64_t carrier_losses;
	uint64_t flaps;      /* paths over it that left service, but not by the operator */
	uint64_t flapped_ns; /* when the last one did */
	uint64_t strangers;  /* connections refused before or in the handshake */
	struct mrcd_rail_health health;
	struct mrcd_card card; /* what its card counts, as read last */
};

static inline bool mrcd_rail_is_there(const struct mrcd_rail *rail)
{
	return rail->ops != NULL;
}

/* What every kind's link begins with. Owned by the kind. */
struct mrcd_link {
	const struct mrcd_link_ops *ops;
	struct mrcd_rail *rail; /* outlives the link */
	struct mrcd_peer *peer; /* outlives the link */
	uint8_t path_index;
	bool is_dirty;          /* the peer's: has frames to flush this turn */
	bool is_mute;           /* set before fence: the peer knows, or no port is up to hear it */
	uint32_t receive_share; /* set before mrcd_link_on_up(): see MRC_EV_PATH_UP; 0: no bound */
	uint32_t receive_bytes; /* so many bytes of body one receive entry takes; 0: no bound */
	uint32_t conn_epoch;
	uint32_t path_epoch;
	char key_id[MRCD_KEY_ID_BYTES]; /* of the key it was opened with; "": none is needed */
	bool is_sealed;                 /* all that it carries is encrypted and authenticated */
};

/* ---- calls from a kind of rail, implemented in mrcd_peer.c ---- */

/*
 * Who may be at the other end of a handshake that came in on `rail` from
 * `source` (text of the address, for matching when several paths share the
 * rail)? Answers the peer and path, or NULL with the reason in *why_out
 * ("unknown host", ...), a static string.
 */
struct mrcd_peer *mrcd_peer_match(struct mrcd_rail *rail, const struct mrc_hello *hello,
				  const char *source, uint8_t *path_index_out,
				  const char **why_out);

/* The conn, for mrc_conn_hello() and mrc_conn_join(). */
struct mrc_conn *mrcd_peer_conn(struct mrcd_peer *peer);
/* The address and port this path connects to ("10.0.0.2", 7471). */
const char *mrcd_peer_path_address(const struct mrcd_peer *peer, uint8_t path_index,
				   uint16_t *port_out);
/* Paths have the indices below it. */
uint8_t mrcd_peer_path_count(const struct mrcd_peer *peer);
/* It came after the rail had been shared out, and gets the least (MRCD_RAIL_GUESTS_MAX). */
bool mrcd_peer_path_is_guest(const struct mrcd_peer *peer, uint8_t path_index);
/* The rail is shared out anew, among as many paths as are listed: nobody is its guest any more. */
void mrcd_rail_guests_out(struct mrcd_rail *rail);
/* The link of this path, of whatever kind; NULL between epochs. */
struct mrcd_link *mrcd_peer_path_link(const struct mrcd_peer *peer, uint8_t path_index);
const char *mrcd_peer_name(const struct mrcd_peer *peer);
/* The shared keys valid with this peer; the first one is used to prove, all are accepted. */
const struct mrcd_key *mrcd_peer_keys(const struct mrcd_peer *peer, uint32_t *count_out);

/*
 * Handshake done and proved. `link` becomes the path's; an older link of the
 * path is fenced first (through ops->fence). The link may carry frames from
 * now on. is_direct_capable: both ends can do RDMA writes.
 * -ESTALE: epochs have moved on; the kind closes the link.
 * -EBUSY: the older link's fence is under way; try again when it holds, or close it.
 */
int mrcd_link_on_up(struct mrcd_link *link, const struct mrc_auth *auth, uint16_t path_id,
		    uint64_t peer_boot_id, bool is_direct_capable);
void mrcd_peer_on_connect_failed(struct mrcd_peer *peer, uint8_t path_index, const char *why);

/*
 * One frame, complete: `is_body_good` is the verdict on its checksum,
 * `is_placed` that a FRAG's payload lies where mrc_conn_place() said. Does not
 * pump: after a batch of frames the kind calls mrcd_peer_pump().
 * -EPROTO: the peer broke the protocol; the kind calls mrcd_link_on_down().
 */
int mrcd_link_on_frame(struct mrcd_link *link, const struct mrc_wire_hdr *hdr, const uint8_t *body,
		       bool is_body_good, bool is_placed, uint64_t hold);

/* The first `count` frames posted on this link are no longer read from memory. Does not pump. */
void mrcd_link_on_sent(struct mrcd_link *link, uint64_t count);

/*
 * The transport has failed or was closed by the peer. The kind has already
 * closed it (nothing can land) and frees the link after the return. Pumps.
 */
void mrcd_link_on_down(struct mrcd_link *link, enum mrc_path_reason reason, const char *why);
void mrcd_link_on_fenced(struct mrcd_link *link);

/* Take the engine's actions, flush dirty links, arm the timer: at the end of this turn, once. */
void mrcd_peer_pump(struct mrcd_peer *peer);

/* What is known of the rail's interface is another, and peers are to be told. Pumps. */
void mrcd_rail_on_interface(struct mrcd_rail *rail);

/* Carrier of the rail changed (from rtnetlink) or was found so (has_carrier). Tells every peer. */
void mrcd_rail_on_carrier(struct mrcd_rail *rail, bool is_up);

/* ---- memory of clients, for rails; implemented in mrcd_client.c ---- */

/* The bytes a FRAG is sent from: NULL when that client has gone (send zeros). */
const void *mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie, uint64_t addr,
			     uint64_t len);
/* The region those bytes are in: NULL when that client has gone, or has none. */
struct mrcd_region *mrcd_send_region(struct mrcd_worker *worker, uint64_t channel_cookie);
/* The bytes a place names: NULL for scratch or when that client has gone. */
void *mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place, uint64_t len);

extern const struct mrcd_rail_ops mrcd_rail_tcp_ops;
extern const struct mrcd_rail_ops
	mrcd_rail_verbs_ops; /* types verbs and auto; when MRC_VERBS is built */
extern const struct mrcd_rail_ops mrcd_rail_loop_ops;

#endif
