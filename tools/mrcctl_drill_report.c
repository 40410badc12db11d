/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill_report.h"

#include <inttypes.h>
#include <string.h>

#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

bool mrcctl_drill_report_is_passed(const struct mrcctl_drill_report *report)
{
	for (size_t i = 0; i < report->result_count; i++) {
		if (report->results[i].problem_count > 0)
			return false;
	}
	return report->result_count > 0 && report->rails_left == 0;
}

/* ---- text ---- */

/* "silence for 2 s" */
static void mrcctl_drill_print_what(const struct mrcctl_drill_result *result, FILE *out)
{
	char span[MRCCTL_UNIT_BYTES], rate[MRCCTL_UNIT_BYTES];

	fprintf(out, "rail %s: ", result->rail);
	if (result->is_watch) {
		fprintf(out, "went and came back by other hands, away for %s\n",
			mrcctl_unit_span(result->ended_ns - result->began_ns, span));
		return;
	}
	mrcctl_unit_span(result->ended_ns - result->began_ns, span);
	if (result->fault == MRCCTL_DRILL_SLOW)
		fprintf(out, "%" PRIu64 " times slower, %s, for %s\n", result->times,
			mrcctl_unit_bits_per_s(result->limit_bytes_per_s * 8, rate), span);
	else
		fprintf(out, "%s%s for %s\n", result->is_link ? "link " : "",
			mrcctl_drill_fault_name(result->fault), span);
}

static void mrcctl_drill_add_rate(struct mrcctl_table *table,
				  const struct mrcctl_drill_result *result, uint64_t rate)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 result->is_measured ? mrcctl_unit_bits_per_s(rate * 8, text) : "-");
}

static const char *mrcctl_drill_span(uint64_t ns, char text[MRCCTL_UNIT_BYTES])
{
	return ns == MRCCTL_DRILL_UNKNOWN ? "-" : mrcctl_unit_span(ns, text);
}

static void mrcctl_drill_add_span(struct mrcctl_table *table,
				  const struct mrcctl_drill_result *result, uint64_t ns)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 result->is_measured ? mrcctl_drill_span(ns, text) : "-");
}

static void mrcctl_drill_print_phases(const struct mrcctl_drill_result *result, FILE *out,
				      bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"", MRCCTL_LEFT},
		{"BEFORE", MRCCTL_RIGHT},
		{"DURING", MRCCTL_RIGHT},
		{"AFTER", MRCCTL_RIGHT},
	};
	const struct mrcctl_drill_phase *phases[] = {&result->before, &result->during,
						     &result->after};
	struct mrcctl_table *table = mrcctl_table_new(columns, COUNT(columns));

	if (table == NULL)
		return;
	mrcctl_table_add(table, MRCCTL_PLAIN, "all rails");
	for (size_t i = 0; i < COUNT(phases); i++)
		mrcctl_drill_add_rate(table, result, phases[i]->rate);
	mrcctl_table_add(table, MRCCTL_PLAIN, "rail %s", result->rail);
	for (size_t i = 0; i < COUNT(phases); i++)
		mrcctl_drill_add_rate(table, result, phases[i]->rail_rate);
	mrcctl_table_add(table, MRCCTL_PLAIN, "longest stall");
	for (size_t i = 0; i < COUNT(phases); i++)
		mrcctl_drill_add_span(table, result, phases[i]->stall_ns);
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}

static void mrcctl_drill_print_paths(const struct mrcctl_drill_result *result, FILE *out)
{
	char span[MRCCTL_UNIT_BYTES], quiet[MRCCTL_UNIT_BYTES];

	for (uint32_t i = 0; i < result->path_count; i++) {
		const struct mrcctl_drill_path *path = &result->paths[i];

		fprintf(out, "path to %s: ", path->peer);
		if (result->is_watch)
			fprintf(out, "found out when it had said nothing for %s",
				mrcctl_unit_span(path->quiet_ns, quiet));
		else
			fprintf(out, "found out after %s", mrcctl_unit_span(path->left_ns, span));
		fprintf(out, " (%s), ", path->reason);
		if (path->times > 1)
			fprintf(out, "left service %" PRIu32 " times, ", path->times);
		fprintf(out, "%" PRIu64 " fragment%s moved, ", path->moved,
			path->moved == 1 ? "" : "s");
		if (path->back_ns == MRCCTL_DRILL_UNKNOWN)
			fprintf(out, "not back\n");
		else if (path->back_ns == 0)
			fprintf(out, "back at the end\n");
		else
			fprintf(out, "back %s after the end\n",
				mrcctl_unit_span(path->back_ns, span));
	}
}

static void mrcctl_drill_print_result(const struct mrcctl_drill_result *result, FILE *out,
				      bool has_colour)
{
	char span[MRCCTL_UNIT_BYTES], share[MRCCTL_UNIT_BYTES];

	mrcctl_drill_print_what(result, out);
	mrcctl_drill_print_phases(result, out, has_colour);
	mrcctl_drill_print_paths(result, out);
	if (result->is_measured)
		fprintf(out, "full rate %s%s, the rail at its share %s%s\n",
			result->full_ns == MRCCTL_DRILL_UNKNOWN ? "not seen again" : "again after ",
			result->full_ns == MRCCTL_DRILL_UNKNOWN
				? ""
				: mrcctl_unit_span(result->full_ns, span),
			result->share_ns == MRCCTL_DRILL_UNKNOWN ? "not" : "after ",
			result->share_ns == MRCCTL_DRILL_UNKNOWN
				? ""
				: mrcctl_unit_span(result->share_ns, share));
	else
		fprintf(out, "rates and stalls were not measured: too little flowed\n");
	fprintf(out, "%" PRIu64 " fragment%s sent again by another path\n", result->resent,
		result->resent == 1 ? "" : "s");
}

static void mrcctl_drill_print_table(const struct mrcctl_drill_report *report, FILE *out,
				     bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"RAIL", MRCCTL_LEFT},    {"FOUND OUT", MRCCTL_RIGHT},  {"BY", MRCCTL_LEFT},
		{"STALL", MRCCTL_RIGHT},  {"BACK AFTER", MRCCTL_RIGHT}, {"FULL RATE", MRCCTL_RIGHT},
		{"RESENT", MRCCTL_RIGHT}, {"VERDICT", MRCCTL_LEFT},
	};
	struct mrcctl_table *table = mrcctl_table_new(columns, COUNT(columns));
	char text[MRCCTL_UNIT_BYTES];

	if (table == NULL)
		return;
	for (size_t i = 0; i < report->result_count; i++) {
		const struct mrcctl_drill_result *result = &report->results[i];
		const struct mrcctl_drill_path *path =
			result->path_count > 0 ? result->paths : NULL;
		bool is_passed = result->problem_count == 0;

		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", result->rail);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 path != NULL ? mrcctl_unit_span(result->is_watch ? path->quiet_ns
										  : path->left_ns,
								 text)
					      : "-");
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", path != NULL ? path->reason : "-");
		mrcctl_drill_add_span(table, result, result->during.stall_ns);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 path == NULL         ? "-"
				 : path->back_ns == 0 ? "at once"
						      : mrcctl_drill_span(path->back_ns, text));
		mrcctl_drill_add_span(table, result, result->full_ns);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%" PRIu64, result->resent);
		mrcctl_table_add(table, is_passed ? MRCCTL_WELL : MRCCTL_BAD, "%s",
				 is_passed ? "pass" : result->problems[0]);
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}

static void mrcctl_drill_print_verdict(const struct mrcctl_drill_report *report, FILE *out)
{
	const struct mrcctl_drill_verdict *v = report->verdict;

	if (v != NULL)
		fprintf(out,
			"test stream to %s: %" PRIu64 " messages, lost %" PRIu64
			", duplicated %" PRIu64 ", reordered %" PRIu64 ", corrupted %" PRIu64 "\n",
			report->stream, v->messages, v->lost, v->duplicated, v->reordered,
			v->corrupted);
	else
		fprintf(out, "live traffic: 0 messages failed; only a test stream (--stream PEER) "
			     "knows of lost and duplicated ones\n");
}

static const char *mrcctl_drill_colour(bool is_passed, bool has_colour)
{
	if (!has_colour)
		return "";
	return is_passed ? "\033[32m" : "\033[31m";
}

void mrcctl_drill_report_text(const struct mrcctl_drill_report *report, FILE *out, bool has_colour)
{
	bool is_passed = mrcctl_drill_report_is_passed(report);
	const char *lead = is_passed ? ", but" : "";
	uint64_t failed = 0;

	for (size_t i = 0; i < report->result_count; i++) {
		mrcctl_drill_print_result(&report->results[i], out, has_colour);
		failed += report->results[i].failed;
		if (report->result_count > 1)
			fputc('\n', out);
	}
	if (report->result_count > 1)
		mrcctl_drill_print_table(report, out, has_colour);
	if (failed == 0)
		mrcctl_drill_print_verdict(report, out);
	fprintf(out, "%s%s%s", mrcctl_drill_colour(is_passed, has_colour),
		is_passed ? "PASS" : "FAIL", has_colour ? "\033[0m" : "");
	if (report->rails_left > 0) {
		fprintf(out, " %zu of %zu rails not drilled", report->rails_left,
			report->rails_left + report->result_count);
		lead = ";";
	}
	for (size_t i = 0; i < report->result_count; i++) {
		const struct mrcctl_drill_result *result = &report->results[i];

		for (uint32_t p = 0; p < result->problem_count; p++, lead = ";")
			fprintf(out, "%s rail %s: %s", lead, result->rail, result->problems[p]);
		for (uint32_t f = 0; f < result->finding_count; f++, lead = ";")
			fprintf(out, "%s rail %s: %s", lead, result->rail, result->findings[f]);
	}
	fputc('\n', out);
}

/* ---- JSON ---- */

static json_t *mrcctl_drill_integer(uint64_t value)
{
	return value == MRCCTL_DRILL_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *mrcctl_drill_phase_json(const struct mrcctl_drill_result *result,
				       const struct mrcctl_drill_phase *phase)
{
	return json_pack("{s:I s:I s:o}", "bytes_per_s", (json_int_t)phase->rate,
			 "rail_bytes_per_s", (json_int_t)phase->rail_rate, "stall_ns_max",
			 mrcctl_drill_integer(result->is_measured ? phase->stall_ns
								  : MRCCTL_DRILL_UNKNOWN));
}

static json_t *mrcctl_drill_result_json(const struct mrcctl_drill_result *result)
{
	json_t *paths = json_array(), *problems = json_array(), *findings = json_array();
	json_t *json;

	for (uint32_t i = 0; i < result->path_count; i++) {
		const struct mrcctl_drill_path *path = &result->paths[i];

		json_array_append_new(paths,
				      json_pack("{s:s s:o s:s s:I s:i s:I s:o}", "peer", path->peer,
						"detected_ns",
						mrcctl_drill_integer(result->is_watch
									     ? MRCCTL_DRILL_UNKNOWN
									     : path->left_ns),
						"reason", path->reason, "quiet_ns",
						(json_int_t)path->quiet_ns, "times_left",
						(int)path->times, "fragments_moved",
						(json_int_t)path->moved, "back_ns",
						mrcctl_drill_integer(path->back_ns)));
	}
	for (uint32_t i = 0; i < result->problem_count; i++)
		json_array_append_new(problems, json_string(result->problems[i]));
	for (uint32_t i = 0; i < result->finding_count; i++)
		json_array_append_new(findings, json_string(result->findings[i]));
	json = json_pack(
		"{s:s s:s s:b s:b s:I s:I s:I s:I s:I s:b s:o s:o s:o s:o s:o s:o s:I s:I s:o s:o}",
		"rail", result->rail, "fault",
		result->is_watch ? "watched" : mrcctl_drill_fault_name(result->fault), "link",
		(int)result->is_link, "passed", (int)(result->problem_count == 0), "began_ns",
		(json_int_t)result->began_ns, "ended_ns", (json_int_t)result->ended_ns,
		"began_unix_us", (json_int_t)result->began_unix_us, "duration_ns",
		(json_int_t)(result->ended_ns - result->began_ns), "limit_bytes_per_s",
		(json_int_t)result->limit_bytes_per_s, "measured", (int)result->is_measured,
		"before", mrcctl_drill_phase_json(result, &result->before), "during",
		mrcctl_drill_phase_json(result, &result->during), "after",
		mrcctl_drill_phase_json(result, &result->after), "paths", paths, "full_rate_ns",
		mrcctl_drill_integer(result->full_ns), "share_ns",
		mrcctl_drill_integer(result->share_ns), "fragments_resent",
		(json_int_t)result->resent, "messages_failed", (json_int_t)result->failed,
		"problems", problems, "findings", findings);
	return json;
}

static json_t *mrcctl_drill_series_json(const struct mrcctl_drill_record *record)
{
	json_t *series = json_array();

	for (size_t i = 1; i < record->sample_count; i++) {
		const struct mrcctl_drill_sample *a = &record->samples[i - 1];
		const struct mrcctl_drill_sample *b = &record->samples[i];
		json_t *rails = json_object();

		for (uint32_t r = 0; r < record->rail_count; r++)
			json_object_set_new(rails, record->rails[r],
					    json_integer(b->rails[r].bytes >= a->rails[r].bytes
								 ? (json_int_t)(b->rails[r].bytes -
										a->rails[r].bytes)
								 : 0));
		json_array_append_new(series, json_pack("{s:I s:I s:I s:o}", "t_ns",
							(json_int_t)b->t_ns, "span_ns",
							(json_int_t)(b->t_ns - a->t_ns), "stall_ns",
							(json_int_t)b->stall_ns, "bytes", rails));
	}
	return series;
}

json_t *mrcctl_drill_report_json(const struct mrcctl_drill_report *report,
				 const struct mrcctl_drill_record *record)
{
	const struct mrcctl_drill_verdict *v = report->verdict;
	json_t *drills = json_array(), *stream = json_null();

	for (size_t i = 0; i < report->result_count; i++)
		json_array_append_new(drills, mrcctl_drill_result_json(&report->results[i]));
	if (v != NULL)
		stream = json_pack("{s:s s:I s:I s:I s:I s:I}", "peer", report->stream, "messages",
				   (json_int_t)v->messages, "lost", (json_int_t)v->lost,
				   "duplicated", (json_int_t)v->duplicated, "reordered",
				   (json_int_t)v->reordered, "corrupted", (json_int_t)v->corrupted);
	return json_pack("{s:b s:o s:I s:o s:o}", "passed",
			 (int)mrcctl_drill_report_is_passed(report), "drills", drills, "rails_left",
			 (json_int_t)report->rails_left, "stream", stream, "series",
			 mrcctl_drill_series_json(record));
}
