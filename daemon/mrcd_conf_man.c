/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_man - makes mrcd.conf(5): stdin to stdout, with the keys of a
 * section in place of each line "@KEYS:SECTION@". Runs at build time only.
 */
#include <stdlib.h>
#include <string.h>

#include "mrcd_conf_keys.h"

static int section_find(const char *written, enum mrcd_conf_section *section_out)
{
	for (uint32_t i = 0; i < MRCD_SECTION_COUNT; i++) {
		if (strcmp(mrcd_conf_section_written((enum mrcd_conf_section)i), written) == 0) {
			*section_out = (enum mrcd_conf_section)i;
			return 0;
		}
	}
	return -1;
}

int main(void)
{
	char line[1024], written[64];
	uint32_t sections_done = 0;

	while (fgets(line, sizeof(line), stdin)) {
		enum mrcd_conf_section section;

		if (strncmp(line, "@KEYS:", 6) != 0) {
			fputs(line, stdout);
			continue;
		}
		snprintf(written, sizeof(written), "%.*s", (int)strcspn(line + 6, "@"), line + 6);
		if (section_find(written, &section)) {
			fprintf(stderr, "the template names a section '%s', which there is not\n",
				written);
			return EXIT_FAILURE;
		}
		mrcd_conf_keys_write_mdoc(stdout, section);
		sections_done |= 1U << section;
	}
	if (sections_done != (1U << MRCD_SECTION_COUNT) - 1) {
		fputs("the template leaves a section of keys out\n", stderr);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
