/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_trace_show.h"

#include <inttypes.h>
#include <string.h>

#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define MRCCTL_GAP_COLUMNS 2U /* between two columns of a table */

const struct mrcctl_trace_row mrcctl_trace_rows[MRCCTL_TRACE_ROW_COUNT] = {
	{MRC_TRACE_SUBMITTED, MRC_TRACE_FETCHED},    {MRC_TRACE_FETCHED, MRC_TRACE_FIRST_SENT},
	{MRC_TRACE_FIRST_SENT, MRC_TRACE_LAST_SENT}, {MRC_TRACE_LAST_SENT, MRC_TRACE_LOCAL},
	{MRC_TRACE_LAST_SENT, MRC_TRACE_PLACED},     {MRC_TRACE_PLACED, MRC_TRACE_VISIBLE},
	{MRC_TRACE_VISIBLE, MRC_TRACE_VERDICT},      {MRC_TRACE_SUBMITTED, MRC_TRACE_VERDICT},
	{MRC_TRACE_LOCAL, MRC_TRACE_PLACED},         {MRC_TRACE_LOCAL, MRC_TRACE_VISIBLE},
	{MRC_TRACE_LOCAL, MRC_TRACE_VERDICT},
};

/* What a message is in from a moment on, until the next one. 0: nothing begins there. */
static const char mrcctl_trace_letters[MRC_TRACE_MOMENT_COUNT] = {
	[MRC_TRACE_SUBMITTED] = 'r', [MRC_TRACE_FETCHED] = 'w', [MRC_TRACE_FIRST_SENT] = 's',
	[MRC_TRACE_LAST_SENT] = 't', [MRC_TRACE_PLACED] = 'p',  [MRC_TRACE_VISIBLE] = 'v',
};
#define MRCCTL_TRACE_LEGEND                                                           \
	"r in the ring, w waiting for a path, s being sent, t under way, p placed,\n" \
	"v visible, L local completion\n"

/* ---- bars ---- */

/* From the first known moment to the last one; the local completion is on the side and ends nothing. */
static bool mrcctl_trace_ends(const struct mrc_trace_message *message, int64_t *start_out,
			      int64_t *end_out)
{
	bool is_any = false;

	for (unsigned i = 0; i < MRC_TRACE_MOMENT_COUNT; i++) {
		if (i == MRC_TRACE_LOCAL || !mrc_trace_knows(message, (enum mrc_trace_moment)i))
			continue;
		if (!is_any)
			*start_out = *end_out = message->at_ns[i];
		is_any = true;
		if (message->at_ns[i] > *end_out)
			*end_out = message->at_ns[i];
	}
	return is_any;
}

static char mrcctl_trace_letter(const struct mrc_trace_message *message, int64_t at_ns)
{
	char letter = ' ';

	for (unsigned i = 0; i < MRC_TRACE_MOMENT_COUNT; i++)
		if (mrcctl_trace_letters[i] != 0 &&
		    mrc_trace_knows(message, (enum mrc_trace_moment)i) &&
		    message->at_ns[i] <= at_ns)
			letter = mrcctl_trace_letters[i];
	return letter;
}

void mrcctl_trace_bar(const struct mrc_trace_message *message, int64_t scale_ns, size_t width,
		      char *bar_out)
{
	double column_ns = (double)scale_ns / (double)width;
	int64_t start_ns, end_ns;
	size_t used = 0;

	bar_out[0] = '\0';
	if (!mrcctl_trace_ends(message, &start_ns, &end_ns))
		return;
	for (size_t i = 0; i < width; i++) {
		int64_t middle_ns = start_ns + (int64_t)(((double)i + 0.5) * column_ns);

		bar_out[i] = ' ';
		if (middle_ns < end_ns)
			bar_out[i] = mrcctl_trace_letter(message, middle_ns);
		else if (i == 0) /* however short a message is, it has a column */
			bar_out[i] = mrcctl_trace_letter(message, start_ns);
		if (bar_out[i] != ' ')
			used = i + 1;
	}
	if (mrc_trace_knows(message, MRC_TRACE_LOCAL)) {
		double column = (double)(message->at_ns[MRC_TRACE_LOCAL] - start_ns) / column_ns;
		size_t at = column <= 0                     ? 0
			    : column >= (double)(width - 1) ? width - 1
							    : (size_t)column;

		bar_out[at] = 'L';
		used = at + 1 > used ? at + 1 : used;
	}
	bar_out[used] = '\0';
}

static int64_t mrcctl_trace_total(const struct mrc_trace_message *message)
{
	int64_t start_ns, end_ns;

	return mrcctl_trace_ends(message, &start_ns, &end_ns) ? end_ns - start_ns : 0;
}

/* Why the bar ends where it does, if that is not at the whole way. */
static void mrcctl_trace_remark(const struct mrc_trace_message *message, char *text, size_t size)
{
	text[0] = '\0';
	if (strcmp(message->outcome, "REJECTED") == 0)
		snprintf(text, size, "REJECTED %" PRIu64, message->code);
	else if (strcmp(message->outcome, "OK") != 0)
		snprintf(text, size, "%s", message->outcome);
	else if (!mrc_trace_knows(message, MRC_TRACE_VERDICT))
		snprintf(text, size, "to %s",
			 mrc_trace_knows(message, MRC_TRACE_VISIBLE)  ? "visible"
			 : mrc_trace_knows(message, MRC_TRACE_PLACED) ? "placed"
								      : "the last one sent");
}

struct mrcctl_trace_cells {
	char number[MRCCTL_UNIT_BYTES], size[MRCCTL_UNIT_BYTES], total[MRCCTL_UNIT_BYTES];
	char remark[MRCCTL_UNIT_BYTES + 16];
};

static void mrcctl_trace_cells(const struct mrc_trace_message *message,
			       struct mrcctl_trace_cells *cells)
{
	snprintf(cells->number, sizeof(cells->number), "%" PRIu64, message->number);
	mrcctl_unit_bytes(message->bytes, cells->size);
	mrcctl_unit_span_signed(mrcctl_trace_total(message), cells->total);
	mrcctl_trace_remark(message, cells->remark, sizeof(cells->remark));
}

static size_t mrcctl_trace_widest(size_t width, const char *text)
{
	return strlen(text) > width ? strlen(text) : width;
}

/* What is left of the line for the bar. */
static size_t mrcctl_trace_bar_width(const struct mrc_trace *trace, size_t first, size_t width)
{
	size_t number = strlen("NUMBER"), size = strlen("SIZE"), total = strlen("TOTAL"),
	       remark = 0;
	struct mrcctl_trace_cells cells;
	size_t others;

	for (size_t i = first; i < trace->count; i++) {
		mrcctl_trace_cells(&trace->messages[i], &cells);
		number = mrcctl_trace_widest(number, cells.number);
		size = mrcctl_trace_widest(size, cells.size);
		total = mrcctl_trace_widest(total, cells.total);
		remark = mrcctl_trace_widest(remark, cells.remark);
	}
	others = number + size + total + remark + (remark > 0 ? 4 : 3) * MRCCTL_GAP_COLUMNS;
	if (width < others + MRCCTL_TRACE_BAR_MIN)
		return MRCCTL_TRACE_BAR_MIN;
	return width - others < MRCCTL_TRACE_BAR_MAX ? width - others : MRCCTL_TRACE_BAR_MAX;
}

void mrcctl_trace_show_bars(const struct mrc_trace *trace, size_t bars_max, size_t width, FILE *out,
			    bool has_colour)
{
	char heading[MRCCTL_TRACE_BAR_MAX + 1], bar[MRCCTL_TRACE_BAR_MAX + 1];
	struct mrcctl_column columns[] = {{"NUMBER", MRCCTL_RIGHT},
					  {"SIZE", MRCCTL_RIGHT},
					  {heading, MRCCTL_LEFT},
					  {"TOTAL", MRCCTL_RIGHT},
					  {"", MRCCTL_LEFT}};
	struct mrcctl_table *table =
		mrcctl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t first = trace->count > bars_max ? trace->count - bars_max : 0;
	size_t bar_width = mrcctl_trace_bar_width(trace, first, width);
	char scale_text[MRCCTL_UNIT_BYTES];
	struct mrcctl_trace_cells cells;
	int64_t scale_ns = 1;

	if (table == NULL || first == trace->count) {
		mrcctl_table_free(table);
		return;
	}
	for (size_t i = first; i < trace->count; i++) {
		int64_t total_ns = mrcctl_trace_total(&trace->messages[i]);

		scale_ns = total_ns > scale_ns ? total_ns : scale_ns;
	}
	snprintf(heading, sizeof(heading), "0%*s", (int)bar_width - 1,
		 mrcctl_unit_span((uint64_t)scale_ns, scale_text));
	for (size_t i = first; i < trace->count; i++) {
		mrcctl_trace_cells(&trace->messages[i], &cells);
		mrcctl_trace_bar(&trace->messages[i], scale_ns, bar_width, bar);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", cells.number);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", cells.size);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", bar);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", cells.total);
		mrcctl_table_add(table,
				 strcmp(trace->messages[i].outcome, "OK") == 0 ? MRCCTL_FAINT
									       : MRCCTL_WORRY,
				 "%s", cells.remark);
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
	fputs(MRCCTL_TRACE_LEGEND, out);
	if (first > 0)
		fprintf(out, "the last %zu of %zu messages\n", trace->count - first, trace->count);
}

/* ---- percentiles ---- */

/* More than half of the spans are no larger than the clocks' error: whichever came first, nobody knows. */
static bool mrcctl_trace_is_unsure(const struct mrc_trace_quantiles *quantiles)
{
	return quantiles->unsure_count * 2 > quantiles->count;
}

static void mrcctl_trace_add_span(struct mrcctl_table *table, size_t count, int64_t span_ns)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 count == 0 ? "-" : mrcctl_unit_span_signed(span_ns, text));
}

static void mrcctl_trace_show_clock(const struct mrc_trace *trace, FILE *out)
{
	char offset[MRCCTL_UNIT_BYTES], error[MRCCTL_UNIT_BYTES], age[MRCCTL_UNIT_BYTES];

	if (!trace->clock.is_known) {
		fprintf(out,
			"clock of %s: not known; when a message was placed, visible and committed "
			"is left out\n",
			trace->peer);
		return;
	}
	fprintf(out, "clock of %s: offset %s, right to +-%s, measured %s ago\n", trace->peer,
		mrcctl_unit_span_signed(trace->clock.offset_ns, offset),
		mrcctl_unit_span(trace->clock.error_ns, error),
		mrcctl_unit_span(trace->clock.age_ns, age));
}

void mrcctl_trace_show_notes(const struct mrc_trace *trace, bool is_unsure, FILE *out)
{
	char text[MRCCTL_UNIT_BYTES + 8];
	uint64_t rejected = 0;

	mrcctl_trace_show_clock(trace, out);
	if (is_unsure)
		fprintf(out, "* most of these are smaller than that error: they may be 0, and what "
			     "is below 0 is not\n");
	for (size_t i = 0; i < trace->count; i++)
		rejected += strcmp(trace->messages[i].outcome, "REJECTED") == 0;
	if (rejected > 0)
		fprintf(out, "rejected: %s messages, which are in no row that ends in committed\n",
			mrcctl_unit_count(rejected, text));
	if (trace->missed > 0)
		fprintf(out,
			"missed: %s messages that the daemon could not keep until they were read; "
			"a larger --every helps\n",
			mrcctl_unit_count(trace->missed, text));
	if (trace->untraced > 0)
		fprintf(out,
			"untraced: %s messages, because too many were traced at once; a larger "
			"--every helps\n",
			mrcctl_unit_count(trace->untraced, text));
}

void mrcctl_trace_show_table(const struct mrc_trace *trace, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"FROM", MRCCTL_LEFT},   {"TO", MRCCTL_LEFT},   {"COUNT", MRCCTL_RIGHT},
		{"P50", MRCCTL_RIGHT},   {"P90", MRCCTL_RIGHT}, {"P99", MRCCTL_RIGHT},
		{"P99.9", MRCCTL_RIGHT}, {"MAX", MRCCTL_RIGHT}, {"", MRCCTL_LEFT},
	};
	struct mrcctl_table *table =
		mrcctl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	char text[MRCCTL_UNIT_BYTES + 8];
	bool is_any_unsure = false;

	if (table == NULL)
		return;
	for (size_t i = 0; i < MRCCTL_TRACE_ROW_COUNT; i++) {
		const struct mrcctl_trace_row *row = &mrcctl_trace_rows[i];
		struct mrc_trace_quantiles quantiles;

		mrc_trace_quantiles(trace, row->from, row->to, &quantiles);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrc_trace_moment_text(row->from));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrc_trace_moment_text(row->to));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 mrcctl_unit_count(quantiles.count, text));
		mrcctl_trace_add_span(table, quantiles.count, quantiles.p50_ns);
		mrcctl_trace_add_span(table, quantiles.count, quantiles.p90_ns);
		mrcctl_trace_add_span(table, quantiles.count, quantiles.p99_ns);
		mrcctl_trace_add_span(table, quantiles.count, quantiles.p999_ns);
		mrcctl_trace_add_span(table, quantiles.count, quantiles.max_ns);
		mrcctl_table_add(table, MRCCTL_WORRY, "%s",
				 mrcctl_trace_is_unsure(&quantiles) ? "*" : "");
		is_any_unsure = is_any_unsure || mrcctl_trace_is_unsure(&quantiles);
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
	mrcctl_trace_show_notes(trace, is_any_unsure, out);
}

/* ---- JSON ---- */

static json_t *mrcctl_trace_row_json(const struct mrc_trace *trace,
				     const struct mrcctl_trace_row *row)
{
	struct mrc_trace_quantiles quantiles;
	json_t *json;

	mrc_trace_quantiles(trace, row->from, row->to, &quantiles);
	json = json_pack("{s:s s:s s:I s:I}", "from", mrc_trace_moment_name(row->from), "to",
			 mrc_trace_moment_name(row->to), "count", (json_int_t)quantiles.count,
			 "error_ns", (json_int_t)quantiles.error_ns);
	if (quantiles.count == 0)
		return json;
	json_object_set_new(json, "min_ns", json_integer(quantiles.min_ns));
	json_object_set_new(json, "p50_ns", json_integer(quantiles.p50_ns));
	json_object_set_new(json, "p90_ns", json_integer(quantiles.p90_ns));
	json_object_set_new(json, "p99_ns", json_integer(quantiles.p99_ns));
	json_object_set_new(json, "p999_ns", json_integer(quantiles.p999_ns));
	json_object_set_new(json, "max_ns", json_integer(quantiles.max_ns));
	return json;
}

json_t *mrcctl_trace_json(const struct mrc_trace *trace)
{
	json_t *messages = json_array(), *percentiles = json_array();

	for (size_t i = 0; i < trace->count; i++)
		json_array_append_new(messages, mrc_trace_message_json(&trace->messages[i]));
	for (size_t i = 0; i < MRCCTL_TRACE_ROW_COUNT; i++)
		json_array_append_new(percentiles,
				      mrcctl_trace_row_json(trace, &mrcctl_trace_rows[i]));
	return json_pack("{s:s s:s s:I s:I s:o s:I s:I s:o s:o}", "peer", trace->peer, "service",
			 trace->service, "channel", (json_int_t)trace->channel, "every",
			 (json_int_t)trace->every, "clock", mrc_trace_clock_json(&trace->clock),
			 "missed", (json_int_t)trace->missed, "untraced",
			 (json_int_t)trace->untraced, "messages", messages, "percentiles",
			 percentiles);
}
