/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_show.h"

#include <stdlib.h>
#include <string.h>

#define DOCTOR_TEXT_COLUMNS 78 /* of lines, behind their indent */
#define DOCTOR_INDENT       6
#define DOCTOR_ID_INDENT    18 /* the longest id, and a space */

bool doctor_is_healthy(const struct doctor_report *report)
{
	return doctor_report_count(report, DOCTOR_ERROR) == 0 &&
	       doctor_report_count(report, DOCTOR_WARNING) == 0;
}

/* Checks of which something could not be done. */
static size_t doctor_unchecked_checks(const struct doctor_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		for (size_t n = 0; n < report->unchecked_count; n++) {
			if (report->unchecked[n].check != &doctor_checks[i])
				continue;
			count++;
			break;
		}
	}
	return count;
}

/* "why   It carries nothing, and with each ..." over as many lines as it takes. */
static void doctor_show_text(const char *label, int indent, const char *text, FILE *out)
{
	int column = 0;

	fprintf(out, "  %-*s", indent, label);
	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (column > 0 && column + 1 + len > DOCTOR_TEXT_COLUMNS - indent) {
			fprintf(out, "\n  %*s", indent, "");
			column = 0;
		}
		column += fprintf(out, "%s%.*s", column > 0 ? " " : "", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static const char *doctor_colour(enum doctor_severity severity, bool has_colour)
{
	static const char *const codes[] = {"\033[2m", "\033[33m", "\033[31m"};

	return has_colour ? codes[severity] : "";
}

static void doctor_show_finding(const struct doctor_finding *finding, bool has_colour, FILE *out)
{
	const struct doctor_check *check = finding->check;

	fprintf(out, "%s%s%s %s: %s [%s]\n", doctor_colour(check->severity, has_colour),
		doctor_severity_name(check->severity), has_colour ? "\033[0m" : "",
		finding->subject, check->title, check->id);
	doctor_show_text("seen", DOCTOR_INDENT, finding->seen, out);
	doctor_show_text("why", DOCTOR_INDENT, check->why, out);
	doctor_show_text("do", DOCTOR_INDENT, check->what_to_do, out);
	/* Never broken over lines: it is to be copied. */
	if (finding->command[0] != '\0')
		fprintf(out, "  %*s%s\n", DOCTOR_INDENT, "", finding->command);
	fputc('\n', out);
}

static const char *doctor_plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void doctor_show_summary(const struct doctor_facts *facts,
				const struct doctor_report *report, bool is_verbose, FILE *out)
{
	size_t errors = doctor_report_count(report, DOCTOR_ERROR);
	size_t warnings = doctor_report_count(report, DOCTOR_WARNING);
	size_t notes = doctor_report_count(report, DOCTOR_NOTE);
	size_t unchecked = doctor_unchecked_checks(report);

	if (doctor_is_healthy(report))
		fprintf(out, "healthy: %d checks of %zu rail%s and %zu peer%s", DOCTOR_CHECK_COUNT,
			facts->rail_count, doctor_plural(facts->rail_count), facts->peer_count,
			doctor_plural(facts->peer_count));
	else
		fprintf(out, "%zu error%s, %zu warning%s", errors, doctor_plural(errors), warnings,
			doctor_plural(warnings));
	if (notes > 0)
		fprintf(out, ", %zu note%s", notes, doctor_plural(notes));
	if (unchecked > 0)
		fprintf(out, "; %zu could not be done, or not for all%s", unchecked,
			is_verbose ? "" : " (-v lists them)");
	fputc('\n', out);
}

static bool doctor_is_alike(const struct doctor_finding *a, const struct doctor_finding *b)
{
	return a->check == b->check && strcmp(a->seen, b->seen) == 0;
}

/* What could not be done for one reason is told once, with all that it could not be done for. */
static void doctor_show_unchecked(const struct doctor_report *report, FILE *out)
{
	const struct doctor_finding *all = report->unchecked;

	if (report->unchecked_count > 0)
		fprintf(out, "not checked:\n");
	for (size_t i = 0; i < report->unchecked_count; i++) {
		char *text = NULL;
		size_t text_bytes = 0, first = 0;
		FILE *line;

		while (!doctor_is_alike(&all[first], &all[i]))
			first++;
		if (first < i)
			continue;
		line = open_memstream(&text, &text_bytes);
		if (line == NULL)
			abort();
		for (size_t n = i; n < report->unchecked_count; n++) {
			if (doctor_is_alike(&all[n], &all[i]))
				fprintf(line, "%s%s", n > i ? ", " : "", all[n].subject);
		}
		fprintf(line, ": %s", all[i].seen);
		if (fclose(line) != 0)
			abort();
		doctor_show_text(all[i].check->id, DOCTOR_ID_INDENT, text, out);
		free(text);
	}
	if (report->unchecked_count > 0)
		fputc('\n', out);
}

void doctor_show(const struct doctor_facts *facts, const struct doctor_report *report,
		 bool is_verbose, bool has_colour, FILE *out)
{
	for (int severity = DOCTOR_ERROR; severity >= DOCTOR_NOTE; severity--) {
		for (size_t i = 0; i < report->finding_count; i++) {
			if (report->findings[i].check->severity == (enum doctor_severity)severity)
				doctor_show_finding(&report->findings[i], has_colour, out);
		}
	}
	if (is_verbose)
		doctor_show_unchecked(report, out);
	doctor_show_summary(facts, report, is_verbose, out);
}

static json_t *doctor_finding_json(const struct doctor_finding *finding)
{
	const struct doctor_check *check = finding->check;

	return json_pack("{s:s s:s s:s s:s s:s s:s s:s s:s}", "id", check->id, "severity",
			 doctor_severity_name(check->severity), "subject", finding->subject,
			 "title", check->title, "seen", finding->seen, "why", check->why, "do",
			 check->what_to_do, "command", finding->command);
}

json_t *doctor_json(const struct doctor_facts *facts, const struct doctor_report *report)
{
	json_t *findings = json_array(), *unchecked = json_array();

	for (int severity = DOCTOR_ERROR; severity >= DOCTOR_NOTE; severity--) {
		for (size_t i = 0; i < report->finding_count; i++) {
			if (report->findings[i].check->severity == (enum doctor_severity)severity)
				json_array_append_new(findings,
						      doctor_finding_json(&report->findings[i]));
		}
	}
	for (size_t i = 0; i < report->unchecked_count; i++) {
		const struct doctor_finding *finding = &report->unchecked[i];

		json_array_append_new(unchecked,
				      json_pack("{s:s s:s s:s}", "id", finding->check->id,
						"subject", finding->subject, "why", finding->seen));
	}
	return json_pack("{s:b s:i s:i s:i s:i s:f s:o s:o}", "healthy", doctor_is_healthy(report),
			 "checks", DOCTOR_CHECK_COUNT, "errors",
			 (int)doctor_report_count(report, DOCTOR_ERROR), "warnings",
			 (int)doctor_report_count(report, DOCTOR_WARNING), "notes",
			 (int)doctor_report_count(report, DOCTOR_NOTE), "seconds", facts->seconds,
			 "findings", findings, "not_checked", unchecked);
}
