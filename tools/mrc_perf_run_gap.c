/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_run_gap.h"

#include "mrc_perf_gap_report.h"
#include "mrcctl_table.h"

bool perf_run_gap_is_on(struct perf_run *run, uint64_t now_ns)
{
	if (!run->gap)
		return true;
	perf_gap_begin(run->gap, now_ns);
	perf_gap_step(run->gap, now_ns);
	if (run->gap->state == PERF_GAP_FAILED)
		perf_run_give_up(run, PERF_EXIT_NOBODY, "%s", run->gap->error);
	return run->gap->state == PERF_GAP_ON;
}

bool perf_run_gap_has_ended(struct perf_run *run, uint64_t now_ns)
{
	if (!run->gap)
		return true;
	perf_gap_end(run->gap, now_ns);
	perf_gap_step(run->gap, now_ns);
	return run->gap->state == PERF_GAP_ENDED || run->gap->state == PERF_GAP_FAILED;
}

int perf_run_gap_report(struct perf_run *run)
{
	const struct perf_gap *gap = run->gap;
	char error[PERF_ERROR_BYTES];
	int exit_code = PERF_EXIT_OK;

	perf_gap_report(run->text, &gap->trace, mrcctl_table_wants_colour(run->text));
	if (gap->state == PERF_GAP_FAILED) {
		fprintf(run->text, "mrc-perf: not all was traced: %s\n", gap->error);
		exit_code = PERF_EXIT_DAMAGED;
	} else if (gap->trace.count == 0) {
		fprintf(run->text, "mrc-perf: no message was traced\n");
		exit_code = PERF_EXIT_DAMAGED;
	}
	if (run->options->picture && perf_gap_draw(&gap->trace, run->options->picture, error) < 0) {
		fprintf(run->text, "mrc-perf: %s\n", error);
		exit_code = PERF_EXIT_DAMAGED;
	}
	return exit_code;
}
