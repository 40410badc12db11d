/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc-scenario - play scenario files; --help says how */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

#define TRACE_LINES     60
#define TRACE_LINES_MAX 200000
#define FILE_BYTES_MAX  (1 << 20)

static void usage(FILE *out)
{
	fprintf(out,
		"usage: mrc-scenario [--seed S] [--seeds COUNT] [--trace] [--check] [--quiet] "
		"FILE...\n"
		"\n"
		"Plays each file on the simulator, in virtual time. Exits 0 when all that they "
		"claim\n"
		"is true, 1 when something is not, 2 when a file or an argument is wrong.\n"
		"\n"
		"  --seed S       instead of the one the file names\n"
		"  --seeds COUNT  so many, counting up from it\n"
		"  --trace        print every event; of one that fails the last %d are printed "
		"anyway\n"
		"  --check        only parse\n"
		"  --quiet        say nothing of those that pass\n"
		"  -h, --help     this\n",
		TRACE_LINES);
}

struct settings {
	uint64_t seed;
	uint64_t seed_count;
	bool has_seed, is_traced, is_check, is_quiet;
};

static char *file_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t len;

	if (file) {
		text = malloc(FILE_BYTES_MAX);
		if (!text)
			abort();
		len = fread(text, 1, FILE_BYTES_MAX - 1, file);
		text[len] = 0;
		if (ferror(file) || !feof(file) || strlen(text) != len) {
			fprintf(stderr, "%s: no text file of less than %d bytes\n", path,
				FILE_BYTES_MAX);
			free(text);
			text = NULL;
		}
		fclose(file);
	} else {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	}
	return text;
}

static int play(const char *path, const struct settings *s)
{
	char *text = file_read(path);
	struct scenario *sc = text ? scenario_parse(path, text, stderr) : NULL;
	uint64_t seed;
	int r = 0;

	free(text);
	if (!sc)
		return 2;
	seed = s->has_seed ? s->seed : sc->options.seed;
	for (uint64_t i = 0; i < s->seed_count && !r && !s->is_check; i++) {
		r = scenario_run(sc, seed + i, s->is_traced ? TRACE_LINES_MAX : 0, s->is_traced,
				 s->is_traced ? stdout : NULL);
		if (r && !s->is_traced) /* again, to see why */
			scenario_run(sc, seed + i, TRACE_LINES, false, stdout);
	}
	if (!r && !s->is_quiet)
		printf("ok %s\n", path);
	fflush(stdout);
	scenario_free(sc);
	return r;
}

static bool number(const char *text, uint64_t *value_out)
{
	return sc_number(text, SC_COUNT, value_out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"trace", no_argument, NULL, 't'},
		{"check", no_argument, NULL, 'c'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct settings s = {.seed_count = 1};
	unsigned failed = 0;
	int worst = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
		case 'n':
			if (!number(optarg, c == 's' ? &s.seed : &s.seed_count)) {
				fprintf(stderr, "mrc-scenario: '%s' is not a number; see --help\n",
					optarg);
				return 2;
			}
			s.has_seed = s.has_seed || c == 's';
			break;
		case 't':
			s.is_traced = true;
			break;
		case 'c':
			s.is_check = true;
			break;
		case 'q':
			s.is_quiet = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			fprintf(stderr, "see mrc-scenario --help\n");
			return 2;
		}
	}
	if (optind == argc) {
		usage(stderr);
		return 2;
	}
	for (int i = optind; i < argc; i++) {
		int r = play(argv[i], &s);

		failed += r != 0;
		worst = MRC_MAX(worst, r);
	}
	printf("mrc-scenario: %d files, %u failed\n", argc - optind, failed);
	return worst;
}
