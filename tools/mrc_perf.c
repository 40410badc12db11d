/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc-perf - measure messages between two programs on MRC daemons (mrc-perf(1))
 */
#include <stdio.h>

#include "mrc_perf_options.h"
#include "mrc_perf_run.h"
#include "mrc_perf_server.h"

int main(int argc, char **argv)
{
	struct perf_options options;
	char error[PERF_ERROR_BYTES];
	FILE *text;

	if (perf_options_parse(argc, argv, &options, error) < 0) {
		fprintf(stderr, "mrc-perf: %s\nTry 'mrc-perf --help'.\n", error);
		return PERF_EXIT_USAGE;
	}
	if (options.is_help) {
		perf_options_help(stdout);
		return PERF_EXIT_OK;
	}
	if (options.is_version) {
		printf("mrc-perf %s\n", MRC_VERSION);
		return PERF_EXIT_OK;
	}
	/* stdout is for the one JSON object, if there is to be one. */
	text = options.is_json ? stderr : stdout;
	setvbuf(text, NULL, _IOLBF, 0);
	return options.mode == PERF_MODE_SERVE ? perf_server(&options, text)
					       : perf_run(&options, text);
}
