/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill_record - what the daemon said during a drill, and what that comes to
 *
 * The daemon's states are taken one after the other (mrcd_drill.h); figures are
 * computed afterwards, by the daemon's clock.
 *
 * Units:     ns on CLOCK_MONOTONIC of this host, bytes, bytes a second.
 * Ownership: a record has its samples and events; a result is plain data.
 * Threads:   one caller at a time.  I/O, time: none.
 */
#ifndef MRCCTL_DRILL_RECORD_H
#define MRCCTL_DRILL_RECORD_H

#include <jansson.h>

#include "mrcctl_drill_options.h"

#define MRCCTL_DRILL_RAILS_MAX    32U
#define MRCCTL_DRILL_NAME_BYTES   64U
#define MRCCTL_DRILL_PATHS_MAX    64U
#define MRCCTL_DRILL_PROBLEMS_MAX 8U
#define MRCCTL_DRILL_FINDINGS_MAX 2U
#define MRCCTL_DRILL_TEXT_BYTES   160U
#define MRCCTL_DRILL_UNKNOWN      UINT64_MAX

/* The counters at one moment. */
struct mrcctl_drill_sample {
	uint64_t t_ns;
	uint64_t resent, failed;
	uint64_t stall_ns; /* the longest that ended since the sample before, or went on */
	uint32_t cut;      /* peers that cannot be reached */
	struct {
		uint64_t bytes; /* sent and received */
		uint32_t paths, paths_good;
		bool has_carrier;
	} rails[MRCCTL_DRILL_RAILS_MAX];
};

/* A path changed its state. */
struct mrcctl_drill_event {
	uint64_t t_ns;
	uint64_t quiet_ns; /* nothing had come by it for so long */
	uint64_t moved;    /* fragments */
	bool was_good, is_good;
	char rail[MRCCTL_DRILL_NAME_BYTES], peer[MRCCTL_DRILL_NAME_BYTES];
	char reason[32];
};

struct mrcctl_drill_record {
	uint32_t rail_count;
	char rails[MRCCTL_DRILL_RAILS_MAX][MRCCTL_DRILL_NAME_BYTES];
	struct mrcctl_drill_sample *samples; /* ours */
	size_t sample_count, samples_max;
	struct mrcctl_drill_event *events; /* ours */
	size_t event_count, events_max;
	uint64_t events_missed;
	/* Of the last state. */
	uint64_t session, began_ns, ended_ns, limit_bytes_per_s;
	bool is_idle, is_ending;
	bool is_several; /* the caller's to say: other rails were away meanwhile, too */
	bool is_link;    /* a link is really taken down: this one */
	char interface[32];
	char over[96], error[256];
};

void mrcctl_drill_record_init(struct mrcctl_drill_record *record);
void mrcctl_drill_record_fini(struct mrcctl_drill_record *record);
/* -EBADMSG: that is no state of a drill; -ENOMEM. */
int mrcctl_drill_record_take(struct mrcctl_drill_record *record, const json_t *state);
/* Forget samples before this moment, all but one. */
void mrcctl_drill_record_forget(struct mrcctl_drill_record *record, uint64_t before_ns);

/* The index of this rail; UINT32_MAX: there is none. */
uint32_t mrcctl_drill_record_rail(const struct mrcctl_drill_record *record, const char *name);
/* What a rail (UINT32_MAX: all) carried from one moment to another, as far as samples tell. */
uint64_t mrcctl_drill_rate(const struct mrcctl_drill_record *record, uint32_t rail,
			   uint64_t from_ns, uint64_t to_ns);
/* Are all paths (of this rail, UINT32_MAX: of all) in service, as of the last sample? */
bool mrcctl_drill_is_whole(const struct mrcctl_drill_record *record, uint32_t rail);

/* What befell one path. */
struct mrcctl_drill_path {
	char peer[MRCCTL_DRILL_NAME_BYTES];
	char reason[32];
	uint64_t left_ns; /* after the fault began */
	uint64_t quiet_ns, moved;
	uint32_t times;   /* it left service; quiet_ns is of the first one, moved of all */
	uint64_t back_ns; /* after it ended; MRCCTL_DRILL_UNKNOWN: it is not back */
};

/* What the test stream saw, from outside the daemon. */
struct mrcctl_drill_verdict {
	uint64_t messages, lost, duplicated, reordered, corrupted, unchecked, bad_outcomes;
};

struct mrcctl_drill_phase {
	uint64_t rate, rail_rate; /* of all rails, of the one */
	uint64_t stall_ns;        /* MRCCTL_DRILL_UNKNOWN: nothing flowed */
};

struct mrcctl_drill_result {
	char rail[MRCCTL_DRILL_NAME_BYTES];
	bool is_link, is_watch;
	enum mrcctl_drill_fault fault;
	uint64_t times, limit_bytes_per_s;
	uint64_t duration_ns; /* as asked for */
	uint64_t first_ns, began_ns, ended_ns, last_ns;
	uint64_t began_unix_us; /* the caller's to fill in: by the clock on the wall */
	struct mrcctl_drill_phase before, during, after;
	bool is_measured; /* enough flowed for rates and stalls to mean something */
	struct mrcctl_drill_path paths[MRCCTL_DRILL_PATHS_MAX];
	uint32_t path_count;
	uint64_t resent, failed;
	uint64_t full_ns;  /* after the end until all rails carried what they did; or unknown */
	uint64_t share_ns; /* the same of the rail */
	uint32_t problem_count;
	char problems[MRCCTL_DRILL_PROBLEMS_MAX][MRCCTL_DRILL_TEXT_BYTES];
	/* What so short a fault does not prove: to be known, and no problem. */
	uint32_t finding_count;
	char findings[MRCCTL_DRILL_FINDINGS_MAX][MRCCTL_DRILL_TEXT_BYTES];
};

/* So much must flow for a measurement. */
#define MRCCTL_DRILL_RATE_MIN 1000000U

/*
 * What came of the fault that the record's last state tells of: from first_ns,
 * when the measuring before it began, to the last sample.
 */
void mrcctl_drill_result_make(const struct mrcctl_drill_record *record,
			      const struct mrcctl_drill_options *options, const char *rail,
			      uint64_t first_ns, struct mrcctl_drill_result *result_out);

/* Is it back, and does it carry what it did, by the last sample? */
bool mrcctl_drill_is_over(const struct mrcctl_drill_record *record, const char *rail,
			  uint64_t first_ns);

/* Append to what is wrong; the first is what counts. */
void mrcctl_drill_problem(struct mrcctl_drill_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
