/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_impl - what the files of the simulator share
 *
 *	sim_world.c    virtual time, the run
 *	sim_info.c     what a run says of itself
 *	sim_script.c   what a script does with channels, and sees of them
 *	sim_fault.c    ports, and the faults that hold on them
 *	sim_link.c     wires, frames, what lands where
 *	sim_connect.c  paths that come up (handshake) and go down
 *	sim_host.c     engines and the pump: events in, actions out; daemons that restart
 *	sim_handover.c daemons that leave their state to the next one
 *	sim_client.c   client processes, their landing memory, what they do with a message
 *	sim_channel.c  channels: opened, used and ended by clients
 *	sim_key.c      keys of landing memory, given and withdrawn
 *	sim_check.c    the checkers, one section per invariant
 *
 * Of a pair of hosts, `side` 0 is the initiator and 1 the responder.
 */
#ifndef SIM_IMPL_H
#define SIM_IMPL_H

#include "sim_world.h"

#define SCRIBBLE   0xEE /* send memory that is its client's again */
#define POISON     0xDD /* landing memory that is nobody's */
#define EVENTS_MAX (100U * 1000 * 1000)

/* ---- virtual time ---- */

enum timer_kind {
	T_FRAME_OUT,
	T_ARRIVE,
	T_SENT,
	T_BROKEN,
	T_ERROR,
	T_TRIED,
	T_ENGINE,
	T_TURN,
	T_FENCED,
	T_HELLO,
	T_ANSWER,
	T_AUTH,
	T_SEND,
	T_THINK,
	T_CANCEL,
	T_KEY,
	T_INCOMING,
	T_PIPE,
	T_FAULT,
	T_FAULT_END,
	T_FLAP,
	T_CARRIER,
	T_CALL,
	T_PROOF,
	T_KIND_COUNT
};

struct timer {
	uint64_t at_ns;
	uint64_t order;
	enum timer_kind kind;
	uint32_t a, b, c;
	uint64_t d;
};

/* ---- channels ---- */

struct span { /* bytes of a message that one path epoch writes directly */
	uint64_t start, end;
	uint16_t path_id;
	uint32_t path_epoch;
	uint64_t serial;
};

struct msg { /* as the sender knows it, with what truly happened to it */
	uint64_t len;
	uint64_t addr; /* in the send memory */
	enum mrc_lvl want;
	bool is_sent, is_answered, is_delivered, is_visible, is_committed, is_rejected, is_released;
	bool is_gap, is_eager;
	bool is_cancelled;
	bool is_undecided; /* answered, and its end is still to be told */
	int outcome;
	enum mrc_lvl level;
	uint32_t code;
	uint64_t landing;   /* where it was delivered, at the receiver */
	uint32_t reads_out; /* frames of it the rails may still read */
	struct span *spans;
	uint32_t span_count, span_cap;
	uint64_t sent_ns, delivered_ns, visible_ns, judged_ns, answered_ns;
};

struct client;
struct frame;

struct chan_end {
	uint32_t id;           /* the engine's; 0: this end has not begun */
	struct client *client; /* holds a reference until freed */
	bool is_waiting;       /* INCOMING, and not answered yet */
	bool is_up, is_down, is_freed, is_closing, is_aborted;
	bool is_gone;  /* its daemon ended */
	bool is_unfed; /* it wanted to send, and no daemon was there */
	int outcome;
	uint32_t down_code;
	uint64_t window, ring_bytes, msg_bytes_max;
	uint8_t *send, *ring;
	uint64_t slot_bytes, slot_count;
	struct msg *msgs; /* sent by this end, or to be */
	uint64_t msg_cap;
	uint64_t planned;   /* messages that msgs[] describes */
	uint64_t send_next; /* the engine has those before it */
	uint64_t answered, answered_ok;
	uint64_t undecided; /* of those answered */
	/* As a receiver. */
	uint64_t expected; /* next number to be delivered, ordered channels */
	uint64_t delivered_end;
	uint64_t unreleased; /* all before it are released or gaps */
	uint64_t delivered, released;
	struct frame *direct; /* writes under way to its memory */
	/* Credit the peer has heard of. */
	uint64_t ring_limit_heard, msg_limit_heard;
};

struct pipe;

struct chan {
	uint32_t index;
	uint32_t pair;
	struct pipe *pipe; /* NULL: a script's */
	uint32_t opener;   /* side */
	uint32_t to_client;
	bool is_unordered;
	bool is_unchecked;
	bool is_early;        /* its opener sends before the answer */
	uint32_t closer;      /* side that closes */
	uint64_t close_after; /* of its messages: close though not all is said */
	bool is_closed_early;
	bool is_dead[2]; /* the client at this side died */
	int refused;     /* outcome, and code */
	uint32_t refused_code;
	uint64_t restarts;            /* of the pair when it was opened */
	uint32_t wire_id, conn_epoch; /* of its last OPEN, */
	uint32_t wire_boots[2];       /* and which runs of the daemons that was between */
	uint64_t think_ns;
	struct chan_end ends[2]; /* by side */
};

/* Two clients with so much to say to each other; they open channels until it is said. */
struct pipe {
	uint32_t index;
	uint32_t host[2], client[2]; /* opener, service */
	bool is_unordered;
	bool is_unchecked;
	uint32_t chan; /* SIM_NONE: none */
	uint64_t left[2];
	bool is_proof; /* of the last phase: large messages, no thinking */
	bool is_armed; /* a T_PIPE is */
};

struct grant {
	uint32_t chan, side;
	uint64_t number, addr, len;
};

struct client {
	uint32_t host, index;
	uint32_t serial; /* no two processes have the same; the engine's flow */
	struct {
		uint32_t generation;
		bool is_wanted, is_valid; /* the rail's device is to know, or knows, its memory */
	} keys[MRC_PATHS_MAX];
	bool is_dead, is_stalled;
	enum sim_manner manner;
	uint32_t refs; /* channel ends that use its memory, and its host */
	uint8_t *arena;
	uint64_t arena_bytes;
	struct grant *grants, *wants;
	uint32_t grant_count, grant_cap, want_count, want_cap;
};

/* ---- wires ---- */

struct frame {
	struct frame *next;
	struct frame *direct_next, **direct_at; /* in its target's list */
	struct chan *chan;                      /* FRAG: whose */
	uint32_t path, side;                    /* side: that sent it */
	uint64_t start, end; /* FRAG: landing bytes, ring positions or arena offsets */
	uint64_t payload_addr;
	uint32_t rkey;
	uint8_t *payload; /* as it left */
	bool is_nop, is_zeroed, is_reading;
	bool is_loose; /* its queue pair is dead, and it is beyond what holds others up */
	uint64_t post_ns, arrive_ns;
	uint64_t serial;
	uint32_t path_epoch;
	struct mrc_wire_hdr hdr;
	uint16_t body_len;
	uint8_t body[];
};

struct wire {                                  /* one direction of one path */
	struct frame *queue_head, *queue_tail; /* posted, not yet left */
	struct frame *air_head, *air_tail;     /* left, not yet arrived */
	uint32_t frame_count;                  /* posted and not landed */
	bool is_busy;                          /* a T_FRAME_OUT is armed */
	bool is_dead;                          /* its sender gave up: nothing more leaves */
	bool is_sent_armed;
	bool was_blocked;  /* what is in the air is read again when it gets through */
	bool is_refused;   /* a write had no right: the other end takes nothing more */
	bool is_failing;   /* a T_ERROR is armed */
	uint64_t stuck_ns; /* since when nothing gets through or is answered; 0: it does */
	uint64_t posted;
	uint64_t done; /* frames the rail no longer reads */
};

struct key_heard {
	uint32_t rkey;
	bool is_valid;
};

struct end { /* one host's end of one path */
	bool is_up;
	uint32_t epoch;
	uint64_t serial;        /* of the transport, the same at both ends */
	uint32_t share;         /* of the other end's receive entries; 0: no bound */
	uint32_t entry_bytes;   /* of body that each takes; 0: no bound */
	struct key_heard *keys; /* of the other host's clients, on this transport */
	uint32_t key_count, key_cap;
	struct wire out;
};

struct attempt {
	bool is_running;
	uint64_t serial;
	uint64_t until_ns;
	uint32_t processes[2];   /* by side, as are the shares */
	uint32_t shares[2];      /* receive entries */
	uint32_t entry_bytes[2]; /* of body that each takes */
	struct mrc_hello hellos[2];
	struct mrc_auth auth;
};

struct path {
	bool is_verbs;
	struct end ends[2];
	struct attempt attempt;
};

struct port {
	bool is_carrier, is_carrier_told;
	bool is_out_silent, is_in_silent, is_full;
	bool is_off;          /* the interface is set down: its queue pairs fail at once */
	bool is_denied;       /* by the operator */
	uint32_t denials;     /* faults that drain it */
	uint32_t withdrawals; /* faults that took its device from the clients' memory */
	uint64_t slow, delay_factor;
	uint64_t corrupt_body_permille, corrupt_hdr_permille, corrupt_ctl_permille;
	uint64_t free_at_ns;       /* the wire has sent all before */
	uint64_t paid_until_ns;    /* what it sent would have taken so long at its rate */
	uint64_t queued_until_ns;  /* frames have lately waited long for it */
	uint64_t trouble_until_ns; /* a fault holds or held lately: it may be suspected */
	uint64_t slow_until_ns;    /* a fault that makes it slow does or did */
};

/* ---- hosts ---- */

struct hold {
	uint64_t id;
	uint8_t *data;
	uint32_t len;
};

struct image { /* of a conn, while no daemon is there */
	uint8_t *data;
	size_t len;
};

struct pair_end {
	struct sim_world *world; /* for the allocator */
	struct image image;
	struct mrc_conn *conn;
	uint64_t timer_ns; /* armed; world time */
	bool is_turn_due;
	struct hold *holds;
	uint64_t hold_next;
	uint32_t holds_used;
	bool is_pumping;
	bool may_alloc;
	uint64_t alloc_count, alloc_bytes, alloc_count_base;
	uint64_t space_count; /* of them, what it remembers of the peer's landing memories */
	uint32_t ctl_epoch;   /* control frames heard: of this conn epoch, */
	uint64_t ctl_next;    /* all before this number */
	uint64_t good_bytes[MRC_PATHS_MAX]; /* sent when the proof began */
	uint64_t good_suspicions[MRC_PATHS_MAX];
	uint64_t heard_ns; /* when the peer was last heard; its own clock */
};

struct pair {
	uint32_t hosts[2];
	struct pair_end ends[2];
	struct path *paths;
	uint64_t restarts; /* of either daemon */
	bool is_met;       /* both ends held a conn epoch at once: before, one may begin again */
	uint32_t *chans;   /* all that were ever opened */
	uint32_t chan_count, chan_cap;
};

struct host {
	char name[8];
	uint32_t boot;    /* runs of its state: how often it was started with nothing */
	uint32_t process; /* how often it was started at all */
	uint32_t down;    /* faults that hold it down */
	uint32_t paused;
	uint64_t paused_ns; /* since when */
	bool is_fast;
	uint64_t offset_ns; /* its clock began elsewhere */
	uint64_t trouble_until_ns;
	struct port *ports;
	struct client **clients;
	struct timer *deferred; /* what would have happened while it was paused */
	uint32_t deferred_count, deferred_cap;
};

struct active_fault {
	uint32_t handle; /* 0: free */
	struct sim_fault_spec spec;
	bool is_off;     /* FLAP: carrier is down now */
	bool is_left[2]; /* HANDOVER: host's daemon, and peer's, have left their state */
};

struct sim_world {
	struct sim_options o;
	struct mrc_rng rng;
	uint64_t now_ns;
	struct timer *heap;
	uint32_t heap_count, heap_cap;
	uint64_t order_next;
	struct host *hosts;
	uint32_t *pair_of; /* [host * hosts + peer] */
	struct pair *pairs;
	uint32_t pair_count;
	struct chan **chans;
	uint32_t chan_count, chan_cap;
	uint32_t ends_open; /* channel ends that are not freed */
	struct pipe **pipes;
	uint32_t pipe_count, pipe_cap;
	struct active_fault *active;
	uint32_t active_cap, active_count, handle_next;
	uint64_t faults_left;
	uint64_t serial_next;
	uint32_t client_next;
	uint64_t heal_by_ns;
	bool is_settling, is_proving; /* the last phases of a run */
	uint64_t proof_bytes; /* of the load that proves; each is larger than the one before */
	struct {
		sim_call_fn call;
		void *context;
	} * calls;
	uint32_t call_count, call_cap;
	sim_path_fn path_watch;
	void *path_watch_context;
	struct sim_counts counts;
	uint64_t hash;
	bool is_traced;
	char failure[320];
	char (*trace)[200];
	uint32_t trace_lines;
	uint64_t trace_count;
};

/* ---- sim_world.c, sim_info.c ---- */

/* Grow *array (of elements of this size) to hold `count`; new bytes are 0. */
void sim_grow(void *array, uint32_t *cap, uint32_t count, size_t size);
void sim_trace(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first failure stands. `check` names the checker. */
void sim_fail(struct sim_world *w, const char *check, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t sim_draw(struct sim_world *w, uint64_t below);
bool sim_chance(struct sim_world *w, uint64_t permille);
void sim_timer_add(struct sim_world *w, uint64_t at_ns, enum timer_kind kind, uint32_t a,
		   uint32_t b, uint32_t c, uint64_t d);
uint8_t sim_byte_of(uint32_t chan, uint32_t side, uint64_t number, uint64_t at);

static inline struct port *sim_port(struct sim_world *w, uint32_t host, uint32_t rail)
{
	return &w->hosts[host].ports[rail];
}

static inline bool sim_is_running(const struct sim_world *w, uint32_t host)
{
	return !w->hosts[host].down;
}

/* ---- sim_connect.c ---- */

/* What this process of its daemon speaks: it may be another program than the one before. */
uint8_t sim_host_version(const struct sim_world *w, uint32_t host, uint32_t process);
uint32_t sim_host_features(const struct sim_world *w, uint32_t host, uint32_t process);
/* What side `side` of this path says its MTU is (frame ABOUT): no other says the same. */
uint32_t sim_about_mtu(uint32_t pair, uint32_t path, uint32_t side);

/* ---- sim_fault.c ---- */

void sim_fault_draw(struct sim_world *w);
/* The operator's word is kept where the daemon's state is not: a new one hears it at once. */
void sim_denials_tell(struct sim_world *w, uint32_t host);
void sim_flap_turn(struct sim_world *w, uint32_t handle, uint64_t period_ns);
void sim_carrier_tell(struct sim_world *w, uint32_t host, uint32_t rail);

/* ---- sim_link.c ---- */

void sim_post(struct sim_world *w, uint32_t pair, uint32_t side, const struct mrc_act_post *post);
void sim_queue_drop(struct sim_world *w, struct wire *wire, bool is_air);
/* Do frames from this side get through? */
bool sim_is_blocked(const struct sim_world *w, uint32_t pair, uint32_t path, uint32_t from);
void sim_wire_kick(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side);
void sim_wire_strip(struct sim_world *w, struct wire *wire);
void sim_wire_kill(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side);
/* Nothing got through just now, or no answer to it: when that lasts, the queue pair breaks. */
void sim_wire_stuck(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side);
void sim_tried(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side, uint64_t since_ns);
/* What has left or is being sent by a port whose interface is set down fails. */
void sim_port_off(struct sim_world *w, uint32_t host, uint32_t rail);
void sim_wire_refuse(struct sim_world *w, struct wire *wire, uint64_t serial);
void sim_frame_out(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		   uint64_t serial);
void sim_arrive(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t from);
void sim_sent(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side, uint64_t serial);

/* ---- sim_connect.c ---- */

void sim_connect(struct sim_world *w, uint32_t pair, uint32_t path);
void sim_hello(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial);
void sim_answer(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial);
void sim_auth(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial);
/* This end's transport is gone, and its engine told. */
void sim_path_down(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		   enum mrc_path_reason reason);
void sim_path_fenced(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		     uint64_t serial);
void sim_path_broken(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		     uint64_t serial);
/* This end's queue pair fails by itself. */
void sim_path_error(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		    uint64_t serial);
/* The other end will find out that this one is gone, by what the rail has for that. */
void sim_path_gone_later(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t told,
			 uint64_t serial);
/* Nothing of this end's transport is left, and nobody is told. */
void sim_path_cut(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side);

/* ---- sim_host.c ---- */

int sim_tell(struct sim_world *w, uint32_t pair, uint32_t side, const struct mrc_event_in *ev);
void sim_pump(struct sim_world *w, uint32_t pair, uint32_t side);
void sim_engine_timer(struct sim_world *w, uint32_t pair, uint32_t side, uint64_t armed_ns);
uint64_t sim_clock(const struct sim_world *w, uint32_t host);
/* When a sibling must have been asked, at the earliest, for its answer to speak against this path. */
uint64_t sim_path_asked_ns(const struct sim_world *w, uint32_t pair, uint32_t side, uint8_t path);
void sim_engine_config(struct sim_world *w, uint32_t pair, uint32_t side,
		       struct mrc_conn_config *config_out);
/* Memory for its holds. */
void sim_engine_holds(struct sim_world *w, struct pair_end *pe);
void sim_engine_end(struct sim_world *w, struct pair_end *pe);
void sim_host_start(struct sim_world *w, uint32_t host);
void sim_host_stop(struct sim_world *w, uint32_t host);
void sim_pair_free(struct sim_world *w, struct pair *pair);

/* ---- sim_handover.c ---- */

/* Not of one that is paused. Until another takes over it is paused. */
void sim_host_leave(struct sim_world *w, uint32_t host);
/* The host has to be resumed then. */
void sim_host_take_over(struct sim_world *w, uint32_t host);
/* The daemon that held this state ends with it. */
void sim_host_forget(struct sim_world *w, uint32_t pair, uint32_t side);
void sim_wants_drop(struct sim_world *w, uint32_t pair, uint32_t side);

/* ---- sim_client.c ---- */

struct client *sim_client_new(struct sim_world *w, uint32_t host, uint32_t index,
			      uint64_t arena_bytes);
void sim_client_put(struct client *client);
struct client *sim_client(struct sim_world *w, uint32_t host, uint32_t index);
void sim_client_want(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number,
		     uint64_t len);
void sim_client_grants(struct sim_world *w, struct client *client);
void sim_client_unwant(struct client *client, uint32_t chan, uint32_t side);
struct grant *sim_client_grant(struct client *client, uint32_t chan, uint32_t side,
			       uint64_t number);
void sim_client_landing_free(struct sim_world *w, struct chan *c, uint32_t side,
			     const struct mrc_act_msg *am);
void sim_client_delivered(struct sim_world *w, struct chan *c, uint32_t side,
			  const struct mrc_act_msg *am);
void sim_client_gap(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number);
/* What goes with a rejection of this code. */
void sim_reject_text(uint32_t code, char text[MRC_TEXT_BYTES_MAX], uint8_t *len_out);
void sim_client_thinks(struct sim_world *w, uint32_t chan, uint32_t side, uint64_t number);
/* Its landing memory as its engine knows it: the arena from 0, then the rings of its channels. */
uint64_t sim_ring_addr(const struct chan *c);
/* Where the message's bytes lie at its receiver. */
uint8_t *sim_landing(struct chan_end *ce, bool is_ring, uint64_t offset);

/* ---- sim_channel.c ---- */

struct chan *sim_channel_new(struct sim_world *w, struct pipe *pipe,
			     const struct sim_channel_spec *spec);
bool sim_channel_open(struct sim_world *w, struct chan *c, const struct sim_channel_spec *spec);
void sim_channel_close(struct sim_world *w, struct chan *c, uint32_t side);
struct chan *sim_channel_of(struct sim_world *w, uint64_t cookie);
struct msg *sim_msg(struct chan_end *ce, uint64_t number);
void sim_pipe_new(struct sim_world *w, uint32_t from, uint32_t from_client, uint32_t to,
		  uint32_t to_client, uint64_t messages, bool is_proof);
void sim_pipe_open(struct sim_world *w, uint32_t pipe);
void sim_pipe_kick(struct sim_world *w, struct pipe *pipe);
void sim_channel_feed(struct sim_world *w, struct chan *c, uint32_t side);
void sim_channel_cancel(struct sim_world *w, uint32_t chan, uint32_t side, uint64_t number);
void sim_channel_answer(struct sim_world *w, uint32_t chan, uint32_t side, uint32_t id);
void sim_channel_incoming(struct sim_world *w, uint32_t pair, uint32_t side,
			  const struct mrc_act_channel *ac);
void sim_channel_up(struct sim_world *w, struct chan *c, uint32_t side);
void sim_channel_down(struct sim_world *w, uint32_t pair, uint32_t side,
		      const struct mrc_act_channel *ac);
void sim_channel_free(struct sim_world *w, struct chan *c, uint32_t side);
/* DONE, or LATE. */
void sim_channel_done(struct sim_world *w, struct chan *c, uint32_t side,
		      const struct mrc_act_msg *am, bool is_late);
void sim_channel_close_if_done(struct sim_world *w, struct chan *c);
/* The client of this end died, or its daemon ended. */
void sim_channel_abort(struct sim_world *w, struct chan *c, uint32_t side);
void sim_channel_gone(struct sim_world *w, struct chan *c, uint32_t side);
void sim_end_free(struct chan_end *ce);

/* ---- sim_key.c ---- */

void sim_key_given(struct sim_world *w, uint32_t chan, uint32_t side, uint32_t rail);
/* This engine is new, and is told all keys of the client's memory. */
void sim_keys_tell(struct sim_world *w, uint32_t pair, uint32_t side, const struct client *client);
void sim_key_withdraw(struct sim_world *w, uint32_t host, uint32_t rail, bool is_withdrawn);
/* Does the device take this key now? */
bool sim_key_is_valid(const struct client *client, uint32_t rail, uint32_t rkey);
void sim_key_heard(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t to,
		   const struct mrc_wire_hdr *hdr);
void sim_check_key(struct sim_world *w, const struct chan *c, uint32_t to,
		   const struct mrc_act_post *post);

/* ---- sim_check.c ---- */

void sim_check_post(struct sim_world *w, uint32_t pair, uint32_t side,
		    const struct mrc_act_post *post);
void sim_check_heard(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t to,
		     const struct mrc_wire_hdr *hdr, const uint8_t *body);
/* Bytes are about to be written to landing memory. `by` is the frame that does, NULL: a copy. */
bool sim_check_write(struct sim_world *w, struct chan *c, uint32_t side, bool is_ring,
		     uint64_t offset, uint64_t len, uint64_t number);
/* Can a direct write still hit these bytes (ring offsets or arena offsets)? */
bool sim_check_quiet(struct sim_world *w, struct chan *c, uint32_t side, bool is_ring,
		     uint64_t offset, uint64_t len, const char *what);
void sim_check_deliver(struct sim_world *w, struct chan *c, uint32_t side,
		       const struct mrc_act_msg *am);
void sim_check_done(struct sim_world *w, struct chan *c, uint32_t side,
		    const struct mrc_act_msg *am, bool is_late);
void sim_check_traced(struct sim_world *w, struct chan *c, uint32_t side,
		      const struct mrc_act_trace *trace);
/* May a send or a channel end so? */
bool sim_check_outcome(struct sim_world *w, const struct chan *c, uint32_t side, int outcome);
void sim_check_path(struct sim_world *w, uint32_t pair, uint32_t side,
		    const struct mrc_act_path *ap);
#define SIM_SHARE_WHY_BYTES 160
/* Has each healed rail carried its share since the load began? False: not this one. */
bool sim_is_share_fair(struct sim_world *w, char why[SIM_SHARE_WHY_BYTES]);
void sim_check_clean(struct sim_world *w);

#endif
