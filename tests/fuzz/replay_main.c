/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a fuzz target over files, and over all files of directories, without a fuzzer. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	size_t len = 0, room = 0;

	if (file == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	do {
		if (len == room) {
			uint8_t *more;

			room = room ? room * 2 : 4096;
			more = realloc(bytes, room);
			FUZZ_CHECK(more != NULL);
			bytes = more;
		}
		len += fread(bytes + len, 1, room - len, file);
	} while (len == room);
	fclose(file);
	bytes = realloc(bytes, len ? len : 1); /* its end is the input's end */
	FUZZ_CHECK(bytes != NULL);
	/* Unbuffered, so that the last line names the input that ended us. */
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("%s (%zu bytes)\n", path, len);
	LLVMFuzzerTestOneInput(bytes, len);
	free(bytes);
	return 0;
}

/* Answers how many files were run; negative: one could not be read. */
static int replay(const char *path)
{
	struct dirent **names;
	struct stat st;
	int count, done = 0;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return replay_file(path) < 0 ? -1 : 1;
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char file[4096];
		bool is_hidden = names[i]->d_name[0] == '.';

		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		free(names[i]);
		if (is_hidden || done < 0)
			continue;
		done = replay_file(file) < 0 ? -1 : done + 1;
	}
	if (count < 0)
		return -1;
	free(names);
	return done;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int done = replay(argv[i]);

		if (done < 0)
			return EXIT_FAILURE;
		total += done;
	}
	printf("%d inputs\n", total);
	/* A corpus that has moved must not pass for one that holds. */
	return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
