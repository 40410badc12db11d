/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario - a situation told in a file: what happens, and what must be true then
 *
 * A file is parsed whole before anything runs; README.md is its grammar. It is
 * then played on the simulator, whose checkers watch every step. Time 0 is when
 * all paths are GOOD at both ends, unless the file says `cold`.
 *
 * Units:     ns of virtual time, bytes, permille of shares.
 * Ownership: a scenario owns all it points to; scenario_free() frees it.
 * Threads:   one at a time; two scenarios share nothing.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "sim_world.h"

#define SC_NONE         UINT32_MAX
#define SC_HOSTS_MAX    8U
#define SC_CHANNELS_MAX 16U
#define SC_MESSAGES_MAX 2048U /* of a channel and sender: m1 to m2048 */
#define SC_LABELS_MAX   16U
#define SC_EVENTS_MAX   96U
#define SC_CLAIMS_MAX   96U
#define SC_CONDS_MAX    4U /* joined by `and` */

/* What can be asked of a rail at one host, as mrc_conn_path_info() has it. X(name, field, kind of value) */
#define SC_RAIL_METRICS(X)                           \
	X(suspicions, suspicions, COUNT)             \
	X(suspicions_false, suspicions_false, COUNT) \
	X(resent, frames_resent, COUNT)              \
	X(bytes_sent, bytes_sent, BYTES)             \
	X(bytes_received, bytes_received, BYTES)     \
	X(frames_sent, frames_sent, COUNT)           \
	X(frames_received, frames_received, COUNT)   \
	X(frames_in_flight, frames_in_flight, COUNT) \
	X(in_flight, bytes_in_flight, BYTES)         \
	X(window, window_bytes, BYTES)               \
	X(rate, rate_bytes_per_s, RATE)              \
	X(rtt, rtt_ns, TIME)                         \
	X(times_good, good_count, COUNT)             \
	X(times_bad, bad_count, COUNT)               \
	X(body_errors, body_errors, COUNT)           \
	X(header_errors, header_errors, COUNT)       \
	X(filled, is_filled, COUNT)                  \
	X(epoch, epoch, COUNT)
/* Of a host's conn. X(name, field) */
#define SC_CONN_METRICS(X)                  \
	X(resets, resets)                   \
	X(conn_epoch, epoch)                \
	X(paths_good, paths_good)           \
	X(peer_silent, is_peer_silent)      \
	X(channels, channel_count)          \
	X(duplicates, duplicates)           \
	X(messages_failed, messages_failed) \
	X(protocol_errors, protocol_errors)
/* Of one end of a channel, as sim_channel_status() has it. X(name) */
#define SC_CHANNEL_METRICS(X) X(sent) X(answered) X(answered_ok) X(delivered) X(released)

enum sc_value { SC_COUNT, SC_BYTES, SC_RATE, SC_TIME, SC_SHARE };

enum sc_op { SC_EQ, SC_NE, SC_LT, SC_LE, SC_GT, SC_GE };

enum sc_cond_kind {
	SC_RAIL_STATE,  /* `state`; or not one of them when the path is not there */
	SC_RAIL_REASON, /* why it last left service */
	SC_RAIL_METRIC, /* metric; moved, degraded, failing and share come after those of the table */
	SC_CONN_METRIC,    /* memory comes after those of the table */
	SC_CHANNEL_STATE,  /* enum sc_channel_state */
	SC_CHANNEL_METRIC, /* stall and latency come after those of the table */
	SC_MESSAGES,       /* all of them: enum sc_message_state */
	SC_WORLD_METRIC,   /* struct sim_counts */
	SC_CLEAN,
	SC_ALL_GOOD,
};
enum sc_channel_state { SC_CH_UP, SC_CH_DOWN, SC_CH_FREED };
enum sc_message_state {
	SC_MSG_SENT, /* the subject sends it; so ANSWERED */
	SC_MSG_ANSWERED,
	SC_MSG_DELIVERED, /* the subject receives it; so all that follow */
	SC_MSG_VISIBLE,
	SC_MSG_COMMITTED,
	SC_MSG_REJECTED,
	SC_MSG_RELEASED,
	SC_MSG_GAP,
	SC_MSG_STATE_COUNT
};

struct sc_cond {
	enum sc_cond_kind kind;
	bool is_negated;
	uint32_t host, peer, rail, channel;
	uint32_t msg_from, msg_to; /* names: m1 is 1 */
	uint32_t msg_so_far;       /* in a run: all before it are so, and that does not change */
	uint32_t what;             /* state, reason or metric, by kind */
	bool has_outcome;
	int outcome;
	enum sc_op op;
	enum sc_value unit;
	uint64_t value;
	uint32_t since;               /* label; SC_NONE: from the beginning */
	uint64_t base[MRC_PATHS_MAX]; /* set when that label is reached */
};

struct sc_clause {
	struct sc_cond conds[SC_CONDS_MAX];
	uint32_t count;
};

enum sc_action_kind {
	SC_OPEN,
	SC_SEND,
	SC_CANCEL,
	SC_CLOSE,
	SC_CLIENT_STALL,
	SC_CLIENT_RESUME,
	SC_CLIENT_DIE,
	SC_CLIENT_MANNER,
	SC_FAULT,  /* begins, and ends after `span_ns` if that is not 0 */
	SC_FLAP,   /* unplugged and plugged in turns of `amount` ns */
	SC_HEAL,   /* all faults of the rail at this host */
	SC_RESUME, /* the host */
	SC_START,
	SC_DENY,
	SC_ALLOW,
	SC_NOTHING, /* for its label */
};

struct sc_action {
	enum sc_action_kind kind;
	uint32_t host, peer, rail, client, channel;
	struct sim_channel_spec spec; /* OPEN */
	uint32_t msg_from, msg_to;    /* SEND, CANCEL */
	uint64_t len;                 /* SEND */
	enum mrc_lvl level;           /* SEND */
	uint64_t every_ns;            /* SEND: between two */
	bool is_given_up;             /* SEND: each is, `give_up_ns` after it was said */
	uint64_t give_up_ns;
	enum sim_manner manner;
	struct sim_fault_spec fault;
	uint64_t amount;
	uint64_t span_ns;
};

struct sc_event {
	uint32_t line;
	bool is_when;
	uint64_t at_ns; /* `at`: of the scenario's time; `when`: after its clause holds */
	struct sc_clause when;
	struct sc_action action;
	uint32_t label; /* SC_NONE */
};

enum sc_claim_kind { SC_WITHIN, SC_ALWAYS, SC_NEVER, SC_AT_END };

struct sc_claim {
	uint32_t line;
	enum sc_claim_kind kind;
	uint64_t within_ns;
	uint32_t from, until; /* labels; SC_NONE: from the beginning, to the end */
	struct sc_clause clause;
};

struct sc_channel {
	char name[16];
	uint32_t from, to;
	uint64_t len_max;
	bool is_sent[2][SC_MESSAGES_MAX + 1]; /* by opener 0, service 1: which names are taken */
};

struct scenario {
	char path[256];
	struct sim_options options;
	bool is_cold;
	uint64_t end_ns; /* 0: when all has happened that is to */
	struct sc_channel channels[SC_CHANNELS_MAX];
	uint32_t channel_count;
	char labels[SC_LABELS_MAX][24];
	uint32_t label_count;
	struct sc_event events[SC_EVENTS_MAX];
	uint32_t event_count;
	struct sc_claim claims[SC_CLAIMS_MAX];
	uint32_t claim_count;
	char **lines; /* as written, for messages; lines[0] is line 1 */
	uint32_t line_count;
};

/*
 * Parse `text`; `path` is for messages. NULL when there were errors: each is
 * told in one line, "path:line: what was wrong; what is allowed".
 */
struct scenario *scenario_parse(const char *path, const char *text, FILE *errors);
void scenario_free(struct scenario *sc);

/*
 * Play it with this seed. 0 when every claim held and no checker fired; else 1
 * and the reason in one line to `out` (NULL: nothing is told). trace_lines: of the
 * last events, kept and printed when it fails (or in any case when is_traced).
 */
int scenario_run(struct scenario *sc, uint64_t seed, uint32_t trace_lines, bool is_traced,
		 FILE *out);

/* ---- shared by its files ---- */

/* scenario_words.c: one line's words, units, and names out of tables. */
#define SC_WORDS_MAX 40

struct sc_words {
	char *w[SC_WORDS_MAX];
	uint32_t count, at;
	char buf[512];
};
/* False: too long, or too many words. */
bool sc_words_split(struct sc_words *words, const char *line);
/* The next word, or "" at the end; sc_take() also steps over it. */
const char *sc_peek(const struct sc_words *words);
const char *sc_take(struct sc_words *words);
/* Take it if it is this one. */
bool sc_took(struct sc_words *words, const char *word);
bool sc_number(const char *word, enum sc_value unit, uint64_t *value_out);
const char *sc_unit_help(enum sc_value unit);
void sc_number_print(enum sc_value unit, uint64_t value, char *out, size_t out_len);
/* Index of the name, or SC_NONE. */
uint32_t sc_find(const char *const *names, uint32_t count, const char *word);
/* "a, b, c" into out. */
void sc_list(const char *const *names, uint32_t count, char *out, size_t out_len);

#endif
