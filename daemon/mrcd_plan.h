/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_plan - what is different between the configuration that runs and one just read
 *
 * Section by section, and what comes of each difference: a name is the identity of a rail, peer or
 * service; mrcd_conf_keys.h says for every key whether a reload takes it and how. A rail of which
 * a key differs that its sockets depend on is closed and opened anew; a path is another one when
 * its rail, address or port is.
 *
 * Ownership: a plan owns its items and tables; it points into neither configuration.
 * Threads:   any, one at a time.  I/O, time: none.
 */
#ifndef MRCD_PLAN_H
#define MRCD_PLAN_H

#include <jansson.h>

#include "mrcd_conf.h"

enum mrcd_plan_action {
	MRCD_PLAN_SAME,
	MRCD_PLAN_ADDED,
	MRCD_PLAN_REMOVED,
	MRCD_PLAN_CHANGED, /* in place */
	MRCD_PLAN_ANEW,    /* closed and opened again */
	MRCD_PLAN_WAITS,   /* for a restart: what runs stays as it is */
	MRCD_PLAN_LOSES,   /* a program, by rules that are stricter */
	MRCD_PLAN_ACTIONS,
};

/* One difference, for people. */
struct mrcd_plan_item {
	enum mrcd_plan_action action;
	const char
		*what; /* "rail", "peer", "path", "service", "quotas", "key", "program"; static */
	/* The rail, peer, service; "b over r1 to 10.0.0.2:7471"; "limits.frag-max". "": there is one only. */
	char name[2 * MRC_NAME_MAX + 280];
	char detail[160]; /* the keys of it that differ, or "20ms, was 10ms"; "" */
};

struct mrcd_plan {
	struct mrcd_plan_item *items; /* ours; item_count of item_room */
	uint32_t item_count, item_room;
	uint32_t counts[MRCD_PLAN_ACTIONS];          /* of items */
	enum mrcd_plan_action rails[MRCD_RAILS_MAX]; /* of the fresh one, by its index */
	bool is_rail_gone[MRCD_RAILS_MAX];           /* of the one that runs */
	enum mrcd_plan_action *peers; /* ours; of the fresh one: SAME, ADDED or CHANGED */
	uint32_t *peers_were;         /* ours; which of the one that runs, where not ADDED */
	bool *is_peer_gone;           /* ours; of the one that runs */
	uint32_t keys_changed;        /* peers with other keys */
	uint32_t rails_same, peers_same;
	bool is_listener_moved; /* that of metrics: whether there is one, or where */
	bool is_log_changed, is_timers_changed;
};

/* Compare. -ENOMEM; *plan_out is the caller's to fini in either case. */
int mrcd_plan_make(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
		   struct mrcd_plan *plan_out);
/* What comes of it besides, which the two do not say by themselves: one item more. -ENOMEM. */
int mrcd_plan_add(struct mrcd_plan *plan, enum mrcd_plan_action action, const char *what,
		  const char *detail, const char *name);
void mrcd_plan_fini(struct mrcd_plan *plan);

/*
 * Put into `fresh` what runs, wherever another value waits for a restart: then it is what is in
 * force once the rest was taken.
 */
void mrcd_plan_hold_back(const struct mrcd_plan *plan, const struct mrcd_conf *running,
			 struct mrcd_conf *fresh);

/* Do they join the same rail, by its name, with the same address and port? */
bool mrcd_plan_path_is(const char *rail, const struct mrcd_conf_path *path,
		       const struct mrcd_conf *fresh, const struct mrcd_conf_path *fresh_path);

/* "added", "removed", "changed", "opened anew", "waits for a restart", "loses rights". */
const char *mrcd_plan_action_name(enum mrcd_plan_action action);
/* [{"action": "added", "what": "rail", "name": "r3", "detail": ""}, ...]; a new reference, or NULL. */
json_t *mrcd_plan_json(const struct mrcd_plan *plan);
/* "added: rail r3; waits for a restart: key host", cut off where it gets too long. Answers `text`. */
const char *mrcd_plan_text(const struct mrcd_plan *plan, char *text, size_t text_bytes);

#endif
