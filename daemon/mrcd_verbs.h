/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_verbs - what the files of the verbs kind of rail share
 *
 *	mrcd_rail_verbs.c     the rail: its device comes and goes, the operations
 *	mrcd_verbs_device.c   a device as one rail uses it: found, opened, its events
 *	mrcd_verbs_link.c     a queue pair: connected, up, fenced, put away
 *	mrcd_verbs_connect.c  the calls of a link that block, run off the loop
 *	mrcd_verbs_poll.c     completions: when to look, and when to sleep
 *	mrcd_verbs_recv.c     frames received
 *	mrcd_verbs_send.c     frames sent
 *	mrcd_verbs_region.c   clients' memory, registered
 *	mrcd_verbs_info.c     looking in, for mrcctl
 *
 * A rail with a device is a tcp rail whose connections become queue pairs
 * (struct mrcd_tcp_upgrade). The connection stays open beside its queue pair;
 * nothing travels on it, but its end says that the peer's process has ended,
 * which a queue pair never says.
 *
 * Truth. A completion says that memory is ours again and nothing else; what has
 * arrived is for the engine's acknowledgements to say. Completions with an error
 * say that the queue pair has ended, and no more (DESIGN 7.1).
 *
 * Fence. ERR; then what had been received is handed up; then RESET, whose
 * return is the barrier (where there is no RESET, as on iWARP, it is destroy).
 * Both may be refused: then they are tried again, and until one of them has
 * worked or the device is gone nobody is told of a fence.
 * The queue pair keeps its number for MRCD_VERBS_QUARANTINE_NS, so that a packet
 * of it that is still on the way meets no other (DESIGN 7.4).
 *
 * Threads: the worker's loop, but for the run() halves of jobs (mrcd_offload.h).
 */
#ifndef MRCD_VERBS_H
#define MRCD_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "mrcd_offload.h"
#include "mrcd_tcp.h"

#define MRCD_VERBS_TOKEN_BYTES   32U
#define MRCD_VERBS_QUARANTINE_NS MRC_S
#define MRCD_VERBS_LAST_NS       (5 * MRC_MS)
#define MRCD_VERBS_REJECTS_MAX   8U   /* under way; more wait in the kernel's backlog */
#define MRCD_VERBS_SLOTS         128U /* frames of one link that its queue pair has; power of two */
#define MRCD_VERBS_SLOT_BYTES    (MRC_WIRE_HDR_BYTES + MRC_WIRE_CTL_BYTES_MAX)
#define MRCD_VERBS_WRS           (2U * MRCD_VERBS_SLOTS) /* a write and a send each */
#define MRCD_VERBS_BOUNCES       8U
#define MRCD_VERBS_BATCH         32U  /* completions or receive entries handled in one go */
#define MRCD_VERBS_HOLDS_MAX     256U /* receive entries of one rail that the engine may keep */
#define MRCD_VERBS_SHARE_MIN     8U   /* as MRC_SHARE_MIN of the engine */
#define MRCD_VERBS_QPN_BUCKETS   256U /* power of two */
#define MRCD_VERBS_REASON_BYTES  160U

#define MRCD_VERBS_BOUNCE_NONE   UINT8_MAX
#define MRCD_VERBS_ENTRY_NONE    UINT32_MAX

struct mrcd_verbs;
struct mrcd_verbs_link;

/* ---- the device ---- */

enum mrcd_verbs_entry_state {
	MRCD_VERBS_ENTRY_POSTED, /* the device's */
	MRCD_VERBS_ENTRY_OURS,   /* its frame is being handed up, or waits for its link */
	MRCD_VERBS_ENTRY_HELD,   /* the engine's, until hold_free() */
};

/* One receive entry; its memory is at index * stride. */
struct mrcd_verbs_entry {
	uint32_t next;      /* OURS: in a link's early list */
	uint32_t len_bytes; /* received */
	uint8_t state;      /* enum mrcd_verbs_entry_state */
};

/* What may change of a port. */
struct mrcd_verbs_port {
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int gid_index; /* -1: not found */
};

/* A device as one rail uses it. Made and unmade off the loop; owned by its struct mrcd_verbs. */
struct mrcd_verbs_device {
	struct mrcd_verbs *verbs;
	struct mrcd_job job; /* opening, closing */
	int error;           /* of opening */
	char why[MRCD_VERBS_REASON_BYTES];

	/* What it was opened for. */
	struct sockaddr_storage own;
	socklen_t own_len;

	struct rdma_event_channel *channel; /* of the listener */
	struct rdma_cm_id *listener;
	uint16_t listen_port;
	struct ibv_context *context; /* librdmacm's; shared by all rails on the device */
	uint8_t port;
	struct ibv_device_attr attr;
	struct mrcd_verbs_port port_now;   /* as read last */
	struct mrcd_verbs_port port_fresh; /* the job's */
	struct mrcd_job refresh_job;
	bool is_refreshing, is_refresh_wanted;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;

	uint8_t *entry_memory; /* mmap()ed */
	uint64_t entry_memory_bytes;
	struct ibv_mr *entry_mr;
	struct mrcd_verbs_entry *entries;
	uint32_t entry_count;  /* all there are */
	uint32_t entry_stride; /* bytes */
	uint32_t entry_body_bytes;
	uint32_t posted_count;
	uint32_t held_count;
	uint32_t path_count; /* of the rail, when it was opened */
	uint32_t guests_max; /* entries are kept for so many more */
	uint32_t share;      /* of receive entries, for each path */

	uint8_t *
		bounce_memory; /* MRCD_VERBS_BOUNCES times MRC_FRAG_BYTES_MAX, and mrcd_padding() */
	struct ibv_mr *bounce_mr;
	uint32_t bounces_free; /* a bit for each */

	/* On the loop, while it is open. */
	struct event channel_event, comp_event;
	LIST_ENTRY(mrcd_verbs_device) entry; /* in its context's list (mrcd_verbs_device.c) */
	LIST_ENTRY(mrcd_verbs_device) rail_entry;
	uint32_t serial; /* of this opening; part of holds */
	bool is_watched;
	bool is_found;         /* there is one: opening failed later than that */
	bool is_lost;          /* the device says that it is going or broken */
	uint32_t reject_count; /* strangers being turned away */
	uint32_t use_count;    /* the rail, links, registered regions, holds; at 0 it is put away */
};

/* ---- the rail ---- */

struct mrcd_verbs_counters {
	uint64_t work_requests, doorbells, completions, receives;
	uint64_t writes, sends, inline_sends, bounces;
	uint64_t wr_bytes;       /* of all work requests */
	uint64_t payload_copied; /* bytes of payload that a processor of ours copied */
	uint64_t flushes, errors;
	uint64_t fences;
};

/* What a fault (mrcctl fault) has done to frames after they arrived. */
enum mrcd_verbs_damage {
	MRCD_VERBS_DAMAGE_NONE,
	MRCD_VERBS_DAMAGE_PAYLOAD,
	MRCD_VERBS_DAMAGE_HEADERS,
};

/* The verbs part of one rail. Owned by its rail, in kind_data. */
struct mrcd_verbs {
	struct mrcd_rail *rail;
	const struct mrcd_conf_rail
		*conf_given;        /* the rail's, but for the time between open and close */
	struct mrcd_conf_rail conf; /* the configuration's, with the interface found by device */
	struct mrcd_tcp *tcp;       /* ours; NULL while there is no interface to listen on */
	struct mrcd_tcp_upgrade upgrade;
	struct mrcd_verbs_device *device;       /* open, or NULL */
	struct mrcd_verbs_device *opening;      /* its job runs */
	LIST_HEAD(, mrcd_verbs_device) devices; /* open, and lost ones that are still in use */
	uint32_t device_serial;
	struct mrcd_lane device_lane;
	struct mrcd_lane memory_lane;
	struct event retry_event;
	uint64_t retry_ns;                 /* until it looks again for a device */
	char why[MRCD_VERBS_REASON_BYTES]; /* why there is no device; "": never looked */
	bool is_found;                     /* there is one, and it could not be opened: why */
	bool is_closing;
	struct event verdict_event; /* type auto: it has looked for long enough */

	bool has_last_event; /* its devices tell when a stopped queue pair has let go of its entries */
	uint32_t last_misses; /* so often they did not */

	LIST_HEAD(, mrcd_verbs_link) links; /* all, in any state */
	LIST_HEAD(, mrcd_verbs_link) busy;  /* with work requests not completed, or early entries */
	LIST_HEAD(, mrcd_verbs_link) touched; /* their peers are pumped at the end of the poll */
	LIST_HEAD(, mrcd_verbs_link) by_number[MRCD_VERBS_QPN_BUCKETS];
	uint32_t link_count;

	/* Polling. */
	struct event poll_event;
	bool is_armed; /* asleep: the next completion makes an event */
	uint64_t worked_ns;
	uint32_t spins;
	uint64_t turn_bytes; /* of payload checked or copied in this turn */

	struct mrcd_verbs_counters counters;
	enum mrcd_verbs_damage damage;
	uint64_t flip_turn, flips; /* frames that could be damaged, and those that were */
	char last_error[MRCD_VERBS_REASON_BYTES];
	struct mrcd_log_limit error_limit;
};

/* ---- a link ---- */

enum mrcd_verbs_link_state {
	MRCD_VERBS_LINK_AWAITING,   /* responder: the initiator's connect request is to come */
	MRCD_VERBS_LINK_PREPARING,  /* job: identifier, queue pair */
	MRCD_VERBS_LINK_CONNECTING, /* job: connect or accept, until it is established */
	MRCD_VERBS_LINK_WAITING,    /* for the fence of the path's older link */
	MRCD_VERBS_LINK_UP,
	MRCD_VERBS_LINK_STOPPING,   /* job: ERR */
	MRCD_VERBS_LINK_LAST,       /* in ERR: the device still has receive entries in its hands */
	MRCD_VERBS_LINK_RESETTING,  /* job: RESET, or destroy */
	MRCD_VERBS_LINK_STUCK,      /* neither worked: tried again when the timer ends */
	MRCD_VERBS_LINK_QUARANTINE, /* fenced; keeps its number */
	MRCD_VERBS_LINK_DESTROYING, /* job: the rest */
};

/* What a frame given to the queue pair still needs. */
struct mrcd_verbs_slot {
	struct mrcd_region *region; /* the client's, which is being read; NULL: none */
	uint32_t payload_len;       /* for the rail's counters */
	uint8_t wr_count;
	uint8_t bounce; /* MRCD_VERBS_BOUNCE_NONE: none */
};

struct mrcd_verbs_link {
	struct mrcd_link link; /* first: what the seam hands around is a pointer to it */
	struct mrcd_verbs *verbs;
	struct mrcd_verbs_device *device; /* outlives the link */
	LIST_ENTRY(mrcd_verbs_link) entry, busy_entry, touched_entry, number_entry;
	bool is_busy, is_touched, is_numbered;
	enum mrcd_verbs_link_state state;

	/* From the handshake. */
	struct mrc_auth auth;
	uint16_t path_id;
	uint64_t peer_boot_id;
	bool is_initiator;
	uint8_t token[MRCD_VERBS_TOKEN_BYTES];
	struct sockaddr_storage address; /* the peer's; initiator: with its device's port */
	socklen_t address_len;

	int fd; /* the connection beside it; -1: closed */
	struct event fd_event;
	struct event timer; /* AWAITING: give up; QUARANTINE: it is over; STUCK: again */

	/* Jobs: one at a time, in this lane. */
	struct mrcd_lane lane;
	struct mrcd_job job;
	int error; /* of the job */
	char why[MRCD_VERBS_REASON_BYTES];
	int cancel_fd;     /* eventfd; written to end a wait of the job */
	bool is_cancelled; /* the loop's: nobody wants it any more */
	bool is_failed;    /* it went down by itself: the peer's side is told so */
	enum mrc_path_reason reason;
	bool is_fence_asked;  /* the engine waits for FENCED */
	bool is_last_seen;    /* no receive entry is in the device's hands any more */
	int stop_error;       /* of the step to ERR: 0, or a negative errno */
	int stuck_error;      /* of RESET and destroy; not 0: the queue pair lives */
	uint32_t stuck_count; /* so often */
	uint64_t stuck_ns;    /* the job waits so long before it tries, where no loop runs */
	bool is_deaf;    /* a frame was refused or lost, or a drill: none after it is taken in */
	bool is_drilled; /* mrcd_verbs_drill.c: of what it has missed nothing can be made good */
	bool was_established; /* its number is known to the other end */
	bool is_doomed;       /* it failed while its job ran, for `doom` */
	char doom[MRCD_VERBS_REASON_BYTES];
	uint64_t deadline_ns;

	struct rdma_event_channel *channel; /* ours; NULL: none yet */
	struct rdma_cm_id *id;              /* ours */
	struct event channel_event;
	bool is_channel_watched;
	struct ibv_qp *qp; /* the id's */
	struct ibv_cq *send_cq;
	uint32_t number, peer_number;
	uint32_t inline_bytes;

	/* Sending. Frames are counted from the beginning of the epoch. */
	struct mrcd_outq outq;
	uint8_t *slot_memory;
	struct ibv_mr *slot_mr;
	struct mrcd_verbs_slot *slots;
	uint64_t frames_posted; /* given to the queue pair */
	uint64_t frames_done;   /* completed */
	uint32_t wrs_out;       /* of frames not completed */
	int post_error;
	struct event down_event; /* made active to report a failed post from outside the pump */

	/* Received before it was up; a chain of entries. */
	uint32_t early_first, early_last, early_count;

	uint64_t flushes, errors;
};

static inline struct mrcd_verbs_link *mrcd_verbs_link_of(struct mrcd_link *link)
{
	return (struct mrcd_verbs_link *)link;
}

/* ---- mrcd_verbs_device.c ---- */

/* Off the loop: find the device of device->own and open all that a rail needs. error, why. */
void mrcd_verbs_device_open(struct mrcd_verbs_device *device);
/* Off the loop, or on it when nothing else runs: unmake. What is not there is skipped. */
void mrcd_verbs_device_close(struct mrcd_verbs_device *device);
/* On the loop: watch its channels and asynchronous events. -ENOMEM. */
int mrcd_verbs_device_watch(struct mrcd_verbs_device *device);
void mrcd_verbs_device_unwatch(struct mrcd_verbs_device *device);
/* It does not work any more: the rail hears of it in its next poll. */
void mrcd_verbs_device_broken(struct mrcd_verbs_device *device);
/* Read the port's state, speed and addresses again. */
void mrcd_verbs_device_refresh(struct mrcd_verbs_device *device);
/* What it has locked for itself: receive entries and bounce buffers. */
uint64_t mrcd_verbs_device_locked_bytes(const struct mrcd_verbs_device *device);
/* Why `len_bytes` of memory could not be registered (error: an errno), and what cures it. */
void mrcd_verbs_register_explain(char *text, size_t text_bytes, int error, const char *what,
				 uint64_t len_bytes);
/* Hand up to MRCD_VERBS_BATCH entries to the device (again). On failure the device is_lost. */
void mrcd_verbs_entries_post(struct mrcd_verbs_device *device, const uint32_t *indexes,
			     uint32_t count);
static inline uint8_t *mrcd_verbs_entry_data(const struct mrcd_verbs_device *device, uint32_t index)
{
	return device->entry_memory + (size_t)index * device->entry_stride;
}

/* ---- mrcd_verbs_fault.c ---- */

/* mrcd_rail.h */
int mrcd_verbs_fault(struct mrcd_rail *rail, const char *what);
/* One bit in one of a few frames; the device's own checks are behind us. */
void mrcd_verbs_fault_flip(struct mrcd_verbs *verbs, uint8_t *bytes, uint32_t len_bytes);

/* ---- mrcd_verbs_drill.c ---- */

/* mrcd_rail.h */
int mrcd_verbs_drill(struct mrcd_rail *rail);

/* ---- mrcd_rail_verbs.c ---- */

/* A connect request came in: a link of ours, or a stranger. Takes the id. */
void mrcd_verbs_on_request(struct mrcd_verbs *verbs, struct rdma_cm_id *id, const void *token,
			   size_t token_len);
/* The device is broken or gone: close it and look for it again. */
void mrcd_verbs_device_lost(struct mrcd_verbs *verbs, const char *why);
/* One use of it less. */
void mrcd_verbs_device_put(struct mrcd_verbs_device *device);
/* Remember and log an error, not too often. */
void mrcd_verbs_error(struct mrcd_verbs *verbs, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- mrcd_verbs_link.c ---- */

extern const struct mrcd_link_ops mrcd_verbs_link_ops;

/* The handshake is done: make a link and begin to connect. The fd is ours. */
void mrcd_verbs_link_start(struct mrcd_verbs *verbs, int fd, const struct mrcd_handshake *hs,
			   const struct sockaddr_storage *address, socklen_t address_len);
/* Responder: the request that this link awaited. Takes the id. */
void mrcd_verbs_link_requested(struct mrcd_verbs_link *link, struct rdma_cm_id *id);
/* It failed: stop it, then tell the peer's side. At any depth but within its own jobs. */
void mrcd_verbs_link_down(struct mrcd_verbs_link *link, enum mrc_path_reason reason,
			  const char *why);
/* Its device goes: what it waits for by a timer it need not, or not on the loop. */
void mrcd_verbs_link_hurry(struct mrcd_verbs_link *link);
/* The device says that none of its receive entries is in the device's hands any more. */
void mrcd_verbs_link_last(struct mrcd_verbs_link *link);
/* Nobody wants it any more: stop and free it without a word. */
void mrcd_verbs_link_drop(struct mrcd_verbs_link *link);
struct mrcd_verbs_link *mrcd_verbs_link_by_number(const struct mrcd_verbs *verbs, uint32_t number);
bool mrcd_verbs_link_is_attempt(const struct mrcd_verbs_link *link);

/* ---- mrcd_verbs_connect.c: run() halves ---- */

/* Once, before any of them. */
void mrcd_verbs_alarm_init(void);

void mrcd_verbs_prepare_run(struct mrcd_job *job);
void mrcd_verbs_connect_run(struct mrcd_job *job);
/* stop_error */
void mrcd_verbs_stop_run(struct mrcd_job *job);
/* stuck_error: the queue pair may still do work. */
void mrcd_verbs_reset_run(struct mrcd_job *job);
/* stuck_error: nothing has been freed. */
void mrcd_verbs_destroy_run(struct mrcd_job *job);
/* Turn a stranger away; frees the id. Its own job. */
void mrcd_verbs_reject(struct mrcd_verbs *verbs, struct rdma_cm_id *id);

/* ---- mrcd_verbs_poll.c ---- */

/* There is or will be something to poll: look in this turn. */
void mrcd_verbs_poll_soon(struct mrcd_verbs *verbs);
void mrcd_verbs_on_poll(evutil_socket_t fd, short what, void *context);
void mrcd_verbs_on_comp(evutil_socket_t fd, short what, void *context);
/* Take in all that was received for now; before a queue pair is reset. */
void mrcd_verbs_poll_dry(struct mrcd_verbs *verbs);
void mrcd_verbs_link_set_busy(struct mrcd_verbs_link *link);
void mrcd_verbs_link_touch(struct mrcd_verbs_link *link);

/* ---- mrcd_verbs_recv.c ---- */

/* Up to `budget` receive completions. Answers how many there were. */
uint32_t mrcd_verbs_recv(struct mrcd_verbs *verbs, uint32_t budget);
/* Frames that came before the link was up. */
void mrcd_verbs_recv_early(struct mrcd_verbs_link *link);
void mrcd_verbs_early_drop(struct mrcd_verbs_link *link);
const uint8_t *mrcd_verbs_hold_data(struct mrcd_rail *rail, uint64_t hold, uint32_t *len_out);
void mrcd_verbs_hold_free(struct mrcd_rail *rail, uint64_t hold);

/* ---- mrcd_verbs_send.c ---- */

void mrcd_verbs_post(struct mrcd_link *link, const struct mrc_act_post *post);
void mrcd_verbs_flush(struct mrcd_link *link);
void mrcd_verbs_strip(struct mrcd_link *link);
/* Give the queue pair what waits, as far as it takes it and a turn allows. */
void mrcd_verbs_send(struct mrcd_verbs_link *link);
/* Up to `budget` send completions. Answers how many there were. */
uint32_t mrcd_verbs_send_complete(struct mrcd_verbs_link *link, uint32_t budget);
/* It is fenced: nothing reads memory for it any more, completed or not. */
void mrcd_verbs_send_abandon(struct mrcd_verbs_link *link);

/* ---- mrcd_verbs_region.c ---- */

void mrcd_verbs_region_add(struct mrcd_rail *rail, struct mrcd_region *region);
void mrcd_verbs_region_remove(struct mrcd_rail *rail, struct mrcd_region *region);
/* A work request no longer names it. */
void mrcd_verbs_region_put(struct mrcd_verbs *verbs, struct mrcd_region *region);
/* The device is lost and was withdrawn: deregister all, each when nothing names it any more. */
void mrcd_verbs_region_drop_all(struct mrcd_verbs *verbs);

/* ---- mrcd_verbs_info.c ---- */

void mrcd_verbs_describe(const struct mrcd_rail *rail, json_t *object);
void mrcd_verbs_device_name(const struct mrcd_rail *rail, char *device_out, size_t device_bytes,
			    unsigned *port_out);
void mrcd_verbs_link_describe(const struct mrcd_link *link, json_t *object);

#endif
