/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_impl - what the files of the simulator share
 *
 *	sim_world.c   virtual time, faults, the run
 *	sim_client.c  virtual clients, and what they hold the engines to
 *	sim_link.c    rails, frames, and the engines' actions
 */
#ifndef SIM_IMPL_H
#define SIM_IMPL_H

#include "sim_world.h"

#define SCRIBBLE   0xEE
#define POISON     0xDD
#define HEAL_NS    (20 * MRC_S) /* after the faults stop, all must be finished by then */
#define EVENTS_MAX (50U * 1000 * 1000)

/* ---- virtual time ---- */

enum timer_kind {
	T_FRAME_OUT,
	T_ARRIVE,
	T_ENGINE,
	T_FENCED,
	T_CONNECT,
	T_CLIENT_SEND,
	T_THINK,
	T_FAULT,
	T_FAULT_END,
	T_CARRIER
};

struct timer {
	uint64_t at_ns;
	uint64_t order;
	enum timer_kind kind;
	uint32_t a, b, c;
	uint64_t d;
};

/* ---- wires ---- */

struct frame {
	struct frame *next;
	struct mrc_act_post post;
	uint8_t *payload; /* snapshot, taken when it leaves */
	bool is_nop;
	uint64_t arrive_ns;
};

struct wire {                                  /* one direction of one link */
	struct frame *queue_head, *queue_tail; /* posted, not yet left */
	struct frame *air_head, *air_tail;     /* left, not yet arrived */
	bool is_busy;                          /* a T_FRAME_OUT is armed */
	uint64_t sent;                         /* frames that left */
	bool is_dead;                          /* its sender gave up: nothing more leaves */
};

struct end { /* one host's end of one path */
	bool is_up;
	uint32_t epoch, conn_epoch;
	struct wire out;
};

struct rail_state {
	bool is_carrier[SIM_HOSTS];
	bool is_silent[SIM_HOSTS]; /* frames from this host do not arrive */
	uint32_t slow;             /* factor */
	uint32_t corrupt_body_permille, corrupt_hdr_permille;
};

struct path {
	struct end ends[SIM_HOSTS];
	struct rail_state rail;
	uint32_t faults_active;
};

/* ---- clients ---- */

struct msg { /* as the sender knows it, with what truly happened to it */
	uint64_t len;
	uint64_t addr;
	enum mrc_lvl want;
	bool is_sent, is_answered, is_delivered, is_visible, is_committed, is_rejected, is_released;
	uint32_t code;
	uint64_t landing; /* where it was delivered, at the receiver */
	bool is_eager;
};

struct chan_end {
	uint32_t id;
	bool is_live; /* it has a half here */
	bool is_connected, is_down, is_freed, is_closing;
	uint8_t *send, *landing; /* arenas: ring first, then buffers */
	uint64_t send_next;      /* index of the next message to send */
	uint64_t answered;
	uint64_t landing_next; /* bump allocator over the buffers, see landing_take() */
	struct {
		uint64_t addr, len;
	} grants[64];
	struct {
		uint64_t number, len;
	} wants[64];
	uint32_t want_count;
	struct msg *msgs;  /* sent by this end */
	uint64_t expected; /* next number to be delivered here */
	uint64_t delivered;
};

struct chan {
	struct chan_end ends[SIM_HOSTS];
};

struct hold {
	uint64_t id;
	uint8_t *data;
};

struct host {
	struct mrc_conn *conn;
	uint64_t timer_ns; /* armed */
	uint64_t paused_until_ns;
	struct hold holds[64];
	uint64_t hold_next;
	bool is_pumping;
};

struct sim_world {
	struct sim_options o;
	struct mrc_rng rng;
	uint64_t now_ns;
	struct timer *heap;
	uint32_t heap_count, heap_cap;
	uint64_t order_next;
	struct host hosts[SIM_HOSTS];
	struct path *paths;
	struct chan chans[SIM_CHANNELS_MAX];
	uint32_t faults_left, faults_open;
	uint64_t heal_by_ns;
	uint64_t events, frames, ghosts, copies, resets;
	char failure[256];
	char trace[SIM_TRACE_LINES][160];
	uint64_t trace_count;
};

/* ---- sim_world.c ---- */

void sim_trace(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_fail(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t sim_draw(struct sim_world *w, uint64_t below);
void sim_timer_add(struct sim_world *w, uint64_t at_ns, enum timer_kind kind, uint32_t a,
		   uint32_t b, uint32_t c, uint64_t d);
uint8_t sim_byte_of(uint32_t chan, uint32_t host, uint64_t number, uint64_t at);
int sim_handle(struct sim_world *w, uint32_t host, const struct mrc_event_in *ev);
struct chan_end *sim_chan_by_cookie(struct sim_world *w, uint32_t host, uint64_t cookie);

/* ---- sim_client.c ---- */

void sim_client_equip(struct sim_world *w, struct chan_end *ce);
struct mrc_ev_channel sim_half(struct sim_world *w, uint32_t chan);
void sim_client_send(struct sim_world *w, uint32_t host, uint32_t chan);
void sim_client_delivered(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am);
void sim_client_thinks(struct sim_world *w, uint32_t host, uint32_t chan, uint64_t number);
void sim_client_done(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am);
void sim_landing_answer(struct sim_world *w, uint32_t host, struct chan_end *ce);

/* ---- sim_link.c ---- */

void sim_queue_drop(struct frame **head, struct frame **tail);
bool sim_is_blocked(const struct sim_world *w, uint32_t path, uint32_t from);
void sim_frame_out(struct sim_world *w, uint32_t path, uint32_t host, uint32_t epoch);
void sim_link_down(struct sim_world *w, uint32_t path, uint32_t host, enum mrc_path_reason reason);
void sim_arrive(struct sim_world *w, uint32_t path, uint32_t from, uint32_t epoch);
void sim_connect_path(struct sim_world *w, uint32_t path);
void sim_pump(struct sim_world *w, uint32_t host);

#endif
