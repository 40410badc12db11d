/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_run_gap - what a run does more in mode gap; in others it has no part
 *
 * Threads: one.
 */
#ifndef MRC_PERF_RUN_GAP_H
#define MRC_PERF_RUN_GAP_H

#include "mrc_perf_run.h"

/*
 * All channels are open: is ours traced? The first message waits for it, else a
 * short run has none of it. Gives the run up when it will not be.
 */
bool perf_run_gap_is_on(struct perf_run *run, uint64_t now_ns);

/* Everything is answered: has the daemon told the rest? The channel stays until then. */
bool perf_run_gap_has_ended(struct perf_run *run, uint64_t now_ns);

/* Table and picture. 0, or the exit status for what is not as it was asked for. */
int perf_run_gap_report(struct perf_run *run);

#endif
