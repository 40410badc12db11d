/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_peer_impl - what the files of a peer share
 *
 *	mrcd_peer.c        its life, the pump, the calls from kinds of rails
 *	mrcd_peer_paths.c  other paths than it began with, while it runs
 *	mrcd_peer_state.c  what its engine begins with: nothing, or what the daemon before us left
 *	mrcd_peer_note.c   what befalls it: log, events, counters
 *	mrcd_peer_drill.c  what is not held against it: drills, ours and the peer's
 *	mrcd_peer_info.c   looking in, for the control socket
 *	mrcd_health.c      how well its paths do
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_PEER_IMPL_H
#define MRCD_PEER_IMPL_H

#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_stall.h"

/* One path as the edge sees it. Owned by its peer, in paths[]. */
struct mrcd_peer_path {
	struct mrcd_rail *rail; /* the worker's; NULL: it was taken away, and the slot is free */
	struct mrcd_link *link; /* the kind's; NULL between epochs */
	uint32_t mark;          /* see mrcd_peer_path_mark(); kept when it was taken away */
	bool is_going;          /* it is no longer listed: once the peer can spare it, it goes */
	bool is_cut;            /* and that is under way: it is denied */
	bool is_guest;          /* its rail has no share for it until that is opened anew */
	bool is_waiting;        /* nor is there room for one more guest: it does not connect */
	uint32_t fencing_epoch; /* its link is being fenced and has not answered yet; 0: none */
	uint64_t heard_ns;      /* when the last frame came */
	uint64_t left_ns;       /* when it left service; 0: never was, or is in it */
	uint64_t flaps;        /* how often it left service, but not by the operator; never reset */
	uint64_t flapped_ns;   /* when it last did */
	uint64_t cuts;         /* fragments that came cut short by their sender */
	bool is_peer_drill;    /* the peer says that it has it fail on purpose */
	uint64_t excuse_ns;    /* believed since then; 0: it is not, or need not be */
	uint64_t excused_ns;   /* so long it was, before that */
	uint64_t unexcused_ns; /* when it last was not */
	uint64_t drill_ns;     /* a drill of it was last on; 0: all of that is over */
	struct mrcd_log_limit state_limit;
	struct mrcd_log_limit connect_limit;
	struct mrcd_log_limit damage_limit;
};

/* One peer host, or an end of the loop. Owned by struct mrcd_worker. */
struct mrcd_peer {
	struct mrcd_worker *worker;         /* the owner */
	struct mrcd_conf_peer *conf;        /* ours, its paths by slot; NULL: an end of the loop */
	char name[MRC_NAME_MAX + 1];        /* as shown to people */
	char engine_name[MRC_NAME_MAX + 1]; /* as its engine calls it */
	char engine_own_name[MRC_NAME_MAX + 1]; /* and us */
	struct mrc_conn *conn;                  /* ours */
	struct mrcd_peer_path paths[MRC_PATHS_MAX];
	uint8_t path_count;
	struct mrc_health health;             /* ours */
	struct mrc_health_path *health_paths; /* ours; path_count of them, lent to it */
	struct event *timer;                  /* ours; the engine's deadline */
	struct event *kick;                   /* ours; pump later in this turn */
	TAILQ_ENTRY(mrcd_peer) kicked_entry;  /* while is_kicked: pump at the end of this look */
	bool is_kicked;
	uint64_t armed_ns;   /* when `timer` will fire; MRC_NEVER: it will not */
	uint32_t late_turns; /* polled once more so often for the deadline that is due */
	uint32_t hold_count; /* holds the engine has */
	uint32_t holds_max;  /* what it was promised: limits.holds_max */
	bool is_pumping;
	bool is_pump_wanted;
	bool is_stopped;
	bool is_going; /* is to be freed: quiet, and nobody's peer any more */
	bool is_quiet; /* has no links any more, and makes none: see mrcd_peer_quiesce() */
	/* As last noted, to note when they change. */
	bool is_connected; /* some path is good */
	bool is_silent;
	uint64_t silent_since_ns; /* 0: it is not; noted when it lasts */
	struct mrcd_log_limit drain_limit, drill_limit;
	struct mrcd_stall_meter stalls;
	uint64_t waiting_since_ns; /* of the client that waits longest; found anew by who asks */
};

/* ---- mrcd_peer_note.c ---- */

uint8_t mrcd_peer_paths_good(const struct mrcd_peer *peer);
uint8_t mrcd_peer_paths_listed(const struct mrcd_peer *peer);
/* MRC_ACT_PATH_STATE, and MRC_ACT_CONN_RESET. */
void mrcd_peer_note_path(struct mrcd_peer *peer, const struct mrc_act_path *act);
void mrcd_peer_note_reset(struct mrcd_peer *peer);
/* MRC_ACT_PEER_DRAIN. */
void mrcd_peer_note_drain(struct mrcd_peer *peer, bool is_draining);
/* Whether it can be reached may be another answer than before. */
void mrcd_peer_note_reach(struct mrcd_peer *peer);
void mrcd_rail_note_carrier(struct mrcd_rail *rail, bool is_up);

/* ---- mrcd_peer_drill.c ---- */

/* Whose drill the path is in: "here", "peer"; NULL: nobody's. */
const char *mrcd_peer_path_drill(const struct mrcd_peer *peer, uint8_t index);
/* Nothing that befalls it now is held against it. */
bool mrcd_peer_path_is_excused(struct mrcd_peer *peer, uint8_t index);
/* MRC_ACT_PEER_DRILL. */
void mrcd_peer_on_drill(struct mrcd_peer *peer, uint32_t paths);

/* ---- mrcd_peer_paths.c ---- */

/* A path begins over a rail that may have been shared out already; and leaves it, or has a share. */
void mrcd_peer_guest_in(struct mrcd_peer_path *path);
void mrcd_peer_guest_out(struct mrcd_peer_path *path);

/* ---- mrcd_peer.c ---- */

void mrcd_peer_pump_now(struct mrcd_peer *peer);
/* An event of a path that has nothing but its epoch. Does not pump. */
void mrcd_peer_answer(struct mrcd_peer *peer, enum mrc_event_kind kind, uint8_t index,
		      uint32_t path_epoch);
void mrcd_peer_path_begin(struct mrcd_peer *peer, uint8_t index);
/* The link is no longer the path's; its kind frees it, now or when the fence holds. */
void mrcd_peer_fence_link(struct mrcd_peer_path *path);

/* Of what the configuration says of this path, over this rail. */
uint32_t mrcd_peer_mark_of(const struct mrcd_rail *rail, const struct mrcd_conf_path *path);
/* Its paths go to the slots that had these marks, others where there is room. -ENOMEM. */
int mrcd_peer_arrange(struct mrcd_peer *peer, const uint32_t marks[MRC_PATHS_MAX]);
/* What its engine has in this slot is not what is there now: a new path, or none. */
void mrcd_peer_path_replace(struct mrcd_peer *peer, uint8_t index);
void mrcd_peer_init_path(struct mrcd_peer *peer, uint8_t index, struct mrcd_rail *rail);

/* ---- mrcd_peer_state.c ---- */

/* What its engine is made with. Points into the peer. */
void mrcd_peer_configure(const struct mrcd_peer *peer, struct mrc_conn_config *config_out);

#endif
