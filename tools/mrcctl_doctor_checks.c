/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct doctor_check doctor_checks[DOCTOR_CHECK_COUNT] = {
#define CHECK(id, severity, judge, title, why, what_to_do) \
	{id, DOCTOR_##severity, judge, title, why, what_to_do},
	DOCTOR_CHECKS(CHECK)
#undef CHECK
};

static void doctor_make_printable(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			*text = '?';
	}
}

static void doctor_add(struct doctor_finding **list, size_t *count,
		       const struct doctor_check *check, const char *subject, const char *command,
		       const char *format, va_list args) __attribute__((format(printf, 6, 0)));
static void doctor_add(struct doctor_finding **list, size_t *count,
		       const struct doctor_check *check, const char *subject, const char *command,
		       const char *format, va_list args)
{
	struct doctor_finding *more = reallocarray(*list, *count + 1, sizeof(*more));
	struct doctor_finding *finding;

	if (more == NULL)
		abort();
	*list = more;
	finding = &more[(*count)++];
	*finding = (struct doctor_finding){.check = check};
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	vsnprintf(finding->seen, sizeof(finding->seen), format, args);
	if (command != NULL)
		snprintf(finding->command, sizeof(finding->command), "%s", command);
	doctor_make_printable(finding->subject);
	doctor_make_printable(finding->seen);
	doctor_make_printable(finding->command);
}

void doctor_found(struct doctor_report *report, const char *subject, const char *command,
		  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	doctor_add(&report->findings, &report->finding_count, report->check, subject, command,
		   format, args);
	va_end(args);
}

void doctor_unchecked(struct doctor_report *report, const char *subject, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	doctor_add(&report->unchecked, &report->unchecked_count, report->check, subject, NULL,
		   format, args);
	va_end(args);
}

void doctor_judge(const struct doctor_facts *facts, struct doctor_report *report_out)
{
	*report_out = (struct doctor_report){0};
	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		report_out->check = &doctor_checks[i];
		doctor_checks[i].judge(facts, report_out);
	}
	report_out->check = NULL;
}

void doctor_report_fini(struct doctor_report *report)
{
	free(report->findings);
	free(report->unchecked);
	*report = (struct doctor_report){0};
}

size_t doctor_report_count(const struct doctor_report *report, enum doctor_severity severity)
{
	size_t count = 0;

	for (size_t i = 0; i < report->finding_count; i++)
		count += report->findings[i].check->severity == severity;
	return count;
}

const char *doctor_severity_name(enum doctor_severity severity)
{
	static const char *const names[] = {"note", "warning", "error"};

	return names[severity];
}
