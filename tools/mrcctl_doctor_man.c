/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_man - makes mrcctl-doctor(1): stdin to stdout, with the checks of
 * one severity in place of each line "@CHECKS:SEVERITY@". Runs at build time only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_doctor_checks.h"

/* mdoc: each sentence begins a line. */
static void doctor_man_text(const char *text)
{
	for (; *text != '\0'; text++) {
		if (text[0] == '.' && text[1] == ' ' && text[2] >= 'A' && text[2] <= 'Z') {
			fputs(".\n", stdout);
			text++;
		} else if (*text == '\\') {
			fputs("\\e", stdout);
		} else {
			putchar(*text);
		}
	}
	putchar('\n');
}

static bool doctor_man_checks(const char *severity)
{
	bool has_any = false;

	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		const struct doctor_check *check = &doctor_checks[i];

		if (strcmp(doctor_severity_name(check->severity), severity) != 0)
			continue;
		has_any = true;
		printf(".It Sy %s\n", check->id);
		putchar(check->title[0] >= 'a' && check->title[0] <= 'z'
				? (char)(check->title[0] - 'a' + 'A')
				: check->title[0]);
		printf("%s.\n", check->title + 1);
		doctor_man_text(check->why);
		doctor_man_text(check->what_to_do);
	}
	return has_any;
}

int main(void)
{
	char line[1024], severity[32];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strncmp(line, "@CHECKS:", 8) != 0) {
			fputs(line, stdout);
			continue;
		}
		snprintf(severity, sizeof(severity), "%.*s", (int)strcspn(line + 8, "@"), line + 8);
		if (!doctor_man_checks(severity)) {
			fprintf(stderr, "the template names '%s', of which there are no checks\n",
				severity);
			return EXIT_FAILURE;
		}
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
