/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree_lab - trees of files as the kernel shows them, for tests (doctor/README.md)
 *
 * Made below a directory of their own, which is then taken for the root.
 */
#ifndef TREE_LAB_H
#define TREE_LAB_H

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void make_directories(char *path)
{
	for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			fail_msg("%s: %s", path, strerror(errno));
		*at = '/';
	}
}

static inline void file_set(const char *root, const char *name, const char *value)
{
	char path[3 * PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_directories(path);
	file = fopen(path, "w");
	if (file == NULL)
		fail_msg("%s: %s", path, strerror(errno));
	fprintf(file, "%s\n", value);
	fclose(file);
}

static inline void link_set(const char *root, const char *name, const char *target)
{
	char path[3 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_directories(path);
	if (symlink(target, path) < 0)
		fail_msg("%s: %s", path, strerror(errno));
}

/* One line of a tree, as README.md has them. `prefix` is kept from line to line. */
static inline void line_make(const char *root, char *line, char prefix[PATH_MAX])
{
	char name[2 * PATH_MAX], *at;

	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '#' || line[0] == '\0')
		return;
	if (line[0] == '@') {
		snprintf(prefix, PATH_MAX, "%s", line[1] == ' ' ? line + 2 : "");
		return;
	}
	at = strstr(line, " -> ");
	if (at != NULL) {
		*at = '\0';
		snprintf(name, sizeof(name), "%s%s", prefix, line);
		link_set(root, name, at + 4);
		return;
	}
	at = strstr(line, " = ");
	assert_non_null(at);
	*at = '\0';
	snprintf(name, sizeof(name), "%s%s", prefix, line);
	file_set(root, name, at + 3);
}

static inline void tree_make(const char *tree, char root[64])
{
	char path[PATH_MAX], line[1024], prefix[PATH_MAX] = "";
	FILE *file;

	strcpy(root, "/tmp/mrcctl-test-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/tests/unit/doctor/%s", MRC_SOURCE_DIR, tree);
	file = fopen(path, "r");
	if (file == NULL)
		fail_msg("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
		line_make(root, line, prefix);
	fclose(file);
}

static inline int remove_one(const char *path, const struct stat *status, int type,
			     struct FTW *walk)
{
	return remove(path);
}

static inline void tree_remove(const char *root)
{
	assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
