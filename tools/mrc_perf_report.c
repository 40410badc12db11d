/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_report.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const char *const outcome_names[PERF_OUTCOME_COUNT] = {
	"OK",       "REJECTED",   "UNKNOWN",        "PEER_DIED", "TIMED_OUT",   "CLOSED",
	"TOO_BIG",  "NO_SERVICE", "NO_PEER",        "REFUSED",   "NOT_ALLOWED", "NO_RESOURCES",
	"DETACHED", "INVALID",    "BUFFER_CHANGED", "IN_USE",    "DRAINING",    "UNANSWERED",
};

static const char *const level_names[] = {"none", "placed", "visible", "committed"};

const char *perf_outcome_name(uint32_t outcome)
{
	return outcome < PERF_OUTCOME_COUNT ? outcome_names[outcome] : "?";
}

uint32_t perf_outcome_of_status(int status)
{
	/* A status that a later libmrc has and we have not: what became of the message we cannot say. */
	if (status > 0 || status <= -(int)PERF_OUTCOME_UNANSWERED)
		return (uint32_t)-MRC_STATUS_UNKNOWN;
	return (uint32_t)-status;
}

uint64_t perf_result_unknown(const struct perf_result *result)
{
	return result->outcomes[-MRC_STATUS_UNKNOWN] + result->outcomes[-MRC_STATUS_DETACHED] +
	       result->outcomes[-MRC_STATUS_PEER_DIED] + result->outcomes[PERF_OUTCOME_UNANSWERED];
}

bool perf_result_is_clean(const struct perf_result *result)
{
	for (uint32_t i = 1; i < PERF_OUTCOME_COUNT; i++)
		if (result->outcomes[i] != 0)
			return false;
	if (result->options->is_verify && result->counts.unchecked != 0)
		return false;
	return result->messages > 0 && perf_counts_are_clean(&result->counts);
}

static double per_s(uint64_t amount, uint64_t span_ns)
{
	return span_ns ? (double)amount * 1e9 / (double)span_ns : 0;
}

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *latency_json(const struct perf_histogram *latency, uint64_t divisor)
{
	json_t *json = json_object();

	json_object_set_new(json, "count", integer(latency->count));
	json_object_set_new(json, "min", integer(latency->count ? latency->min / divisor : 0));
	json_object_set_new(json, "mean", integer(perf_histogram_mean(latency) / divisor));
	json_object_set_new(json, "p50",
			    integer(perf_histogram_quantile(latency, 500000) / divisor));
	json_object_set_new(json, "p90",
			    integer(perf_histogram_quantile(latency, 900000) / divisor));
	json_object_set_new(json, "p99",
			    integer(perf_histogram_quantile(latency, 990000) / divisor));
	json_object_set_new(json, "p999",
			    integer(perf_histogram_quantile(latency, 999000) / divisor));
	json_object_set_new(json, "max", integer(latency->max / divisor));
	return json;
}

static json_t *point_json(const struct perf_series *series, const struct perf_point *point)
{
	json_t *json = json_object(), *rails = json_object();

	json_object_set_new(json, "t_ns", integer(point->t_ns));
	json_object_set_new(json, "span_ns", integer(point->span_ns));
	json_object_set_new(json, "bytes", integer(point->bytes));
	json_object_set_new(json, "messages", integer(point->messages));
	json_object_set_new(json, "stall_ns_max", integer(point->stall_ns_max));
	for (uint32_t i = 0; point->has_rails && i < series->rail_count; i++)
		if (point->is_rail[i])
			json_object_set_new(rails, series->rail_names[i],
					    integer(point->rail_bytes[i]));
	json_object_set_new(json, "rails", rails);
	return json;
}

static json_t *stalls_json(const struct perf_result *result)
{
	json_t *list = json_array(), *json;

	for (uint32_t i = 0; result->stall && i < result->stall->note_count; i++) {
		const struct perf_stall_note *note = &result->stall->notes[i];

		json = json_object();
		/* Microseconds: ns since 1970 are more than the 53 bits that most programs read. */
		json_object_set_new(json, "unix_us", integer(note->wall_ns / 1000));
		json_object_set_new(json, "t_ns", integer(note->start_ns - result->start_ns));
		json_object_set_new(json, "span_ns", integer(note->span_ns));
		json_array_append_new(list, json);
	}
	return list;
}

json_t *perf_result_json(const struct perf_result *result)
{
	const struct perf_options *options = result->options;
	json_t *json = json_object(), *part;

	json_object_set_new(json, "mode", json_string(perf_mode_name(options->mode)));
	json_object_set_new(json, "target", json_string(options->target));
	json_object_set_new(json, "size_bytes", integer(options->size_bytes));
	json_object_set_new(json, "level", json_string(level_names[options->level & 3]));
	json_object_set_new(json, "unordered", json_boolean(options->is_unordered));
	json_object_set_new(json, "integrity", json_string(options->is_unchecked ? "off" : "on"));
	json_object_set_new(json, "in_flight", integer(result->in_flight));
	json_object_set_new(json, "channels", integer(options->channels));
	json_object_set_new(json, "start_unix_us", integer(result->start_wall_ns / 1000));
	json_object_set_new(json, "duration_ns", integer(result->duration_ns));
	json_object_set_new(json, "messages", integer(result->messages));
	json_object_set_new(json, "bytes", integer(result->bytes));
	json_object_set_new(json, "rate_bytes_per_s",
			    json_real(per_s(result->bytes, result->duration_ns)));
	json_object_set_new(json, "rate_messages_per_s",
			    json_real(per_s(result->messages, result->duration_ns)));
	json_object_set_new(json, "latency_ns", latency_json(&result->latency, 1));
	if (options->mode == PERF_MODE_LAT)
		json_object_set_new(json, "latency_half_ns", latency_json(&result->latency, 2));
	json_object_set_new(json, "stall_ns_max", integer(result->stall_ns_max));
	json_object_set_new(json, "stall_at_ns", integer(result->stall_at_ns));
	json_object_set_new(json, "stalls", stalls_json(result));
	json_object_set_new(json, "stalls_dropped",
			    integer(result->stall ? result->stall->notes_dropped : 0));
	json_object_set_new(json, "arrival_gap_ns_max", integer(result->arrival_gap_ns_max));
	part = json_object();
	json_object_set_new(part, "checked", integer(result->counts.checked));
	json_object_set_new(part, "unchecked", integer(result->counts.unchecked));
	json_object_set_new(part, "lost", integer(result->counts.lost));
	json_object_set_new(part, "duplicated", integer(result->counts.duplicated));
	json_object_set_new(part, "reordered", integer(result->counts.reordered));
	json_object_set_new(part, "corrupted", integer(result->counts.corrupted));
	json_object_set_new(json, "verify", part);
	part = json_object();
	for (uint32_t i = 0; i < PERF_OUTCOME_COUNT; i++)
		if (i == 0 || result->outcomes[i] != 0)
			json_object_set_new(part, outcome_names[i], integer(result->outcomes[i]));
	json_object_set_new(json, "outcomes", part);
	json_object_set_new(json, "unknown", integer(perf_result_unknown(result)));
	json_object_set_new(json, "reconnects", integer(result->reconnects));
	part = json_array();
	for (uint32_t i = 0; i < result->series.point_count; i++)
		json_array_append_new(part, point_json(&result->series, &result->series.points[i]));
	json_object_set_new(json, "series", part);
	return json;
}

const char *perf_text_span(char *text, uint64_t ns)
{
	if (ns < 10000)
		snprintf(text, PERF_TEXT_BYTES, "%" PRIu64 " ns", ns);
	else if (ns < 10000000)
		snprintf(text, PERF_TEXT_BYTES, "%.1f us", (double)ns / 1e3);
	else if (ns < 10000000000ULL)
		snprintf(text, PERF_TEXT_BYTES, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(text, PERF_TEXT_BYTES, "%.2f s", (double)ns / 1e9);
	return text;
}

const char *perf_text_wall(char *text, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	size_t len;

	localtime_r(&seconds, &tm);
	len = strftime(text, PERF_TEXT_BYTES, "%H:%M:%S", &tm);
	snprintf(text + len, PERF_TEXT_BYTES - len, ".%06u",
		 (unsigned)(wall_ns % 1000000000 / 1000));
	return text;
}

const char *perf_text_size(char *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	unsigned unit = 0;

	while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, PERF_TEXT_BYTES, "%" PRIu64 " %s", bytes, units[unit]);
	return text;
}

void perf_report_point(FILE *out, const struct perf_result *result, uint32_t point_index)
{
	const struct perf_series *series = &result->series;
	const struct perf_point *point = &series->points[point_index];
	char gap[PERF_TEXT_BYTES];

	if (point_index % 20 == 0) {
		fprintf(out, "%9s %9s %10s %11s", "time", "Gb/s", "messages", "longest gap");
		for (uint32_t i = 0; i < series->rail_count; i++)
			fprintf(out, " %8.8s", series->rail_names[i]);
		fputc('\n', out);
	}
	fprintf(out, "%7.2f s %9.3f %10" PRIu64 " %11s", (double)point->t_ns / 1e9,
		per_s(point->bytes, point->span_ns) * 8 / 1e9, point->messages,
		perf_text_span(gap, point->stall_ns_max));
	for (uint32_t i = 0; point->has_rails && i < series->rail_count; i++)
		if (point->is_rail[i])
			fprintf(out, " %8.3f",
				per_s(point->rail_bytes[i], point->span_ns) * 8 / 1e9);
		else
			fprintf(out, " %8s", "-");
	fputc('\n', out);
	fflush(out);
}

void perf_report_drain(FILE *out, const struct mrc_event *event)
{
	fprintf(out, "mrc-perf: %s host is %sbeing drained\n",
		event->channel != NULL ? "the peer's" : "this",
		event->status == MRC_STATUS_DRAINING ? "" : "no longer ");
}

void perf_report_stall(FILE *out, const struct perf_stall_note *note)
{
	char wall[PERF_TEXT_BYTES], span[PERF_TEXT_BYTES];

	fprintf(out, "mrc-perf: nothing completed for %s from %s on\n",
		perf_text_span(span, note->span_ns), perf_text_wall(wall, note->wall_ns));
	fflush(out);
}

static void report_quantiles(FILE *out, const char *name, const struct perf_histogram *latency,
			     uint64_t divisor)
{
	static const struct {
		const char *name;
		uint32_t ppm;
	} rows[] = {{"p50", 500000},
		    {"p90", 900000},
		    {"p99", 990000},
		    {"p99.9", 999000},
		    {"max", 1000000}};
	char text[PERF_TEXT_BYTES];

	fprintf(out, "  %-12s", name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(out, "%s%s %s", i ? ", " : "", rows[i].name,
			perf_text_span(text,
				       perf_histogram_quantile(latency, rows[i].ppm) / divisor));
	fputc('\n', out);
}

void perf_report_result(FILE *out, const struct perf_result *result)
{
	const struct perf_options *options = result->options;
	const struct perf_counts *counts = &result->counts;
	char text[PERF_TEXT_BYTES];
	bool is_first = true;

	fprintf(out, "%s to %s: %s messages, %u in flight on each of %u channel%s, %s%s%s\n",
		perf_mode_name(options->mode), options->target,
		perf_text_size(text, options->size_bytes), result->in_flight, options->channels,
		options->channels == 1 ? "" : "s", level_names[options->level & 3],
		options->is_unordered ? ", unordered" : "",
		options->is_unchecked ? ", integrity off" : "");
	fprintf(out, "  %-12s%" PRIu64 " in %.3f s\n",
		options->mode == PERF_MODE_LAT ? "round trips" : "messages", result->messages,
		(double)result->duration_ns / 1e9);
	fprintf(out, "  %-12s%.3f Gb/s, %.0f messages/s\n", "rate",
		per_s(result->bytes, result->duration_ns) * 8 / 1e9,
		per_s(result->messages, result->duration_ns));
	if (options->mode == PERF_MODE_LAT) {
		report_quantiles(out, "round trip", &result->latency, 1);
		report_quantiles(out, "half", &result->latency, 2);
	} else {
		report_quantiles(out, "completion", &result->latency, 1);
	}
	fprintf(out, "  %-12s%s", "stall", perf_text_span(text, result->stall_ns_max));
	fprintf(out, ", %.3f s after the start\n", (double)result->stall_at_ns / 1e9);
	fprintf(out, "  %-12s", "outcomes");
	for (uint32_t i = 0; i < PERF_OUTCOME_COUNT; i++)
		if (i == 0 || result->outcomes[i] != 0) {
			fprintf(out, "%s%s %" PRIu64, is_first ? "" : ", ", outcome_names[i],
				result->outcomes[i]);
			is_first = false;
		}
	fprintf(out, "\n  %-12s%" PRIu64 " (not lost: they may have arrived or not)\n", "unknown",
		perf_result_unknown(result));
	if (result->reconnects)
		fprintf(out, "  %-12s%" PRIu64 "\n", "reconnects", result->reconnects);
	if (counts->unchecked)
		fprintf(out, "  %-12s%" PRIu64 " (the far side could not be asked about them)\n",
			"unchecked", counts->unchecked);
	fprintf(out,
		"  %-12s%" PRIu64 " checked: lost %" PRIu64 ", duplicated %" PRIu64
		", reordered %" PRIu64 ", corrupted %" PRIu64 "%s\n",
		"verify", counts->checked, counts->lost, counts->duplicated, counts->reordered,
		counts->corrupted, options->is_verify ? "" : " (without --verify: counted only)");
	fflush(out);
}
