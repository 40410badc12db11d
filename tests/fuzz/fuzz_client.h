/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_client - the daemon's client side between programs that break every rule and real engines
 *
 *	fuzz_client.c        the input as a program: what the hostile clients do
 *	fuzz_client_world.c  the two engines of this host's own conn, joined in memory, and the clock
 *	fuzz_client_prog.c   a program that speaks the raw ABI; the honest one is made of the same
 *
 * What must hold: the daemon asserts nothing and reads or writes nothing of another client's; a
 * completion names memory of its own client only; an honest client that was there before the
 * input began exchanges a message with itself after it, and all is freed when all have gone.
 *
 * Units: ns of a virtual clock, bytes.  Ownership: struct world owns all.  Threads: one.
 */
#ifndef FUZZ_CLIENT_H
#define FUZZ_CLIENT_H

#include "fuzz.h"
#include "mrc/client.h"
#include "mrc/ring_abi.h"
#include "mrcd_client_impl.h"
#include "mrcd_stall.h"

#define WORLD_FRAMES_MAX 256U
#define PROGS_MAX        3U
#define SQES_MAX         16U /* remembered */
#define CHANNELS_SEEN    8U

/* A frame under way between the two ends. */
struct world_frame {
	struct mrc_wire_hdr hdr;
	uint64_t payload_addr, channel_cookie;
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
};

/* One end of the conn with ourselves; what the client side knows as a peer. */
struct mrcd_peer {
	struct mrc_conn *conn;
	struct mrcd_peer *other;
	struct world *world;
	struct mrcd_stall_meter stalls;
	bool is_pumping;
	uint64_t sent;
	struct world_frame frames[WORLD_FRAMES_MAX];
	uint32_t first, count;
};

struct world {
	char dir[64];
	struct mrcd_conf conf;
	struct mrcd_conf_service services[2];
	struct mrcd_worker worker;
	struct mrcd_peer ends[2];
	uint64_t now_ns;
};

/* A program on the other side of the socket. */
struct prog {
	int fd; /* -1: not attached */
	struct mrc_abi_welcome welcome;
	int fds[MRC_ABI_FD_COUNT];
	uint8_t *rings, *send, *landing; /* NULL: no welcome */
	struct mrc_ring_shm *shm;
	uint32_t sq_tail, cq_head;
	/* What its completions have told it. */
	uint32_t channels[CHANNELS_SEEN], channel_count;
	uint64_t number[CHANNELS_SEEN]; /* of the last arrival there */
	uint32_t listener;
	struct mrc_cqe last;
	uint32_t arrived, sent; /* how many so far */
};

/* ---- fuzz_client_world.c ---- */

void world_begin(struct world *w);
void world_end(struct world *w);
/* Trace one in `every` of the sends of all channels there are; 0: none. */
void world_trace(uint32_t every);
/* All that can be done now, without time passing but for what the turns themselves take. */
void world_turn(struct world *w);
void world_pass(struct world *w, uint64_t span_ns);

/* ---- fuzz_client_prog.c ---- */

/* Connect and send `len` bytes of `attach`; then take the welcome if there is one. */
void prog_attach(struct world *w, struct prog *p, const struct mrc_abi_attach *attach, size_t len);
void prog_leave(struct prog *p);
bool prog_is_attached(const struct prog *p);
void prog_packet(struct prog *p, const void *bytes, size_t len);
void prog_request(struct prog *p, uint32_t op, const char *target, uint32_t flags);
void prog_submit(struct prog *p, const struct mrc_sqe *sqe);
void prog_bell(struct prog *p);
/* Take one completion and learn from it; what it names is checked. False: there is none. */
bool prog_take(struct prog *p, struct mrc_cqe *cqe_out);

/* The honest one: attached, a channel to itself, one message exchanged. */
void honest_begin(struct world *w, struct prog *p);
/* Exchange one more. */
void honest_exchange(struct world *w, struct prog *p);

#endif
