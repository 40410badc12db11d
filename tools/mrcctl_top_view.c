/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_top_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_field.h"
#include "mrcctl_top_list.h"
#include "mrcctl_unit.h"

#define MRCCTL_COUNT(a)    (sizeof(a) / sizeof((a)[0]))
#define MRCCTL_ROOMY       28U /* lines below the first two */
#define MRCCTL_BAR_CELLS   12U
#define MRCCTL_TIME_BYTES  16
#define MRCCTL_NOTE_BYTES  48
#define MRCCTL_TITLE_BYTES 300

/* ---- what is shown of a rail, a peer or a channel ---- */

/* A count since the daemon's start, and by how much it grew in between. */
struct mrcctl_top_count {
	uint64_t total, grown;
};

struct mrcctl_top_row {
	const json_t *row;
	size_t index;                           /* in the daemon's list */
	uint64_t out_bits_per_s, in_bits_per_s; /* 0 when there is no snapshot before */
	uint64_t messages_per_s;
	uint64_t rtt_ns;   /* the longest of its good paths; 0: none */
	uint64_t loss_ppm; /* the worst of its paths */
	bool is_lossy;     /* and it is held against one of them */
	struct mrcctl_top_count moved, damaged, failed;
	bool is_degraded; /* one of its good paths is, or is failing */
	bool is_failing;
	unsigned trouble; /* 0: none; the more the worse */
};

static void mrcctl_count_add(struct mrcctl_top_count *count, const json_t *was, const json_t *row,
			     const char *key)
{
	count->total += mrcctl_number(row, key);
	count->grown += mrcctl_grown(was, row, key);
}

static uint64_t mrcctl_bits_per_s(const json_t *was, const json_t *row, const char *key,
				  uint64_t elapsed_ns)
{
	return mrcctl_per_second(mrcctl_grown(was, row, key) * 8, elapsed_ns);
}

/* As the daemon judges it: of what was sent in the last minute or so, what the layer below had to send again. */
static void mrcctl_row_add_loss(struct mrcctl_top_row *row, const json_t *path)
{
	const json_t *health = json_object_get(path, "health");
	uint64_t loss_ppm = mrcctl_number(health, "loss_ppm");

	row->loss_ppm = loss_ppm > row->loss_ppm ? loss_ppm : row->loss_ppm;
	row->is_lossy = row->is_lossy || strcmp(mrcctl_text(health, "cause"), "loss") == 0;
}

/* The paths whose `key` (rail or peer) is this one's name. */
static void mrcctl_row_add_paths(struct mrcctl_top_row *row, const struct mrcctl_top_view *view,
				 const char *key)
{
	uint64_t elapsed_ns = mrcctl_snapshot_elapsed_ns(&view->before, &view->after);
	const char *name = mrcctl_text(row->row, "name");
	bool is_peer = strcmp(key, "peer") == 0;
	size_t i, hint = 0;
	const json_t *path;

	json_array_foreach(view->after.paths, i, path)
	{
		const json_t *was;

		if (strcmp(mrcctl_text(path, key), name) != 0)
			continue;
		was = elapsed_ns > 0 ? mrcctl_path_same(view->before.paths, path, &hint) : NULL;
		mrcctl_count_add(&row->moved, was, path, "frames_resent");
		mrcctl_count_add(&row->damaged, was, path, "body_errors");
		mrcctl_count_add(&row->damaged, was, path, "header_errors");
		mrcctl_count_add(&row->failed, was, path, "bad_count");
		mrcctl_row_add_loss(row, path);
		if (is_peer) {
			row->out_bits_per_s +=
				mrcctl_bits_per_s(was, path, "bytes_sent", elapsed_ns);
			row->in_bits_per_s +=
				mrcctl_bits_per_s(was, path, "bytes_received", elapsed_ns);
		}
		if (strcasecmp(mrcctl_text(path, "state"), "good") == 0) {
			uint64_t rtt_ns = mrcctl_number(path, "rtt_ns");

			row->rtt_ns = rtt_ns > row->rtt_ns ? rtt_ns : row->rtt_ns;
			row->is_degraded = row->is_degraded || mrcctl_flag(path, "degraded");
			row->is_failing =
				row->is_failing ||
				strcmp(mrcctl_text(json_object_get(path, "health"), "state"),
				       "failing") == 0;
		}
	}
}

/* How the paths of a rail or peer stand, from none at all to all well. */
static unsigned mrcctl_row_trouble(const struct mrcctl_top_row *row)
{
	uint64_t paths = mrcctl_number(row->row, "paths");
	uint64_t good = mrcctl_number(row->row, "paths_good");

	if (paths > 0 && good == 0)
		return 3;
	if (good < paths)
		return 2;
	return row->is_degraded ? 1 : 0;
}

static struct mrcctl_top_row *mrcctl_rows_new(const json_t *list)
{
	struct mrcctl_top_row *rows = calloc(json_array_size(list) + 1, sizeof(*rows));

	if (rows == NULL)
		abort();
	for (size_t i = 0; i < json_array_size(list); i++) {
		rows[i].row = json_array_get(list, i);
		rows[i].index = i;
	}
	return rows;
}

static struct mrcctl_top_row *mrcctl_rail_rows(const struct mrcctl_top_view *view)
{
	uint64_t elapsed_ns = mrcctl_snapshot_elapsed_ns(&view->before, &view->after);
	struct mrcctl_top_row *rows = mrcctl_rows_new(view->after.rails);
	size_t hint = 0;

	for (size_t i = 0; i < json_array_size(view->after.rails); i++) {
		struct mrcctl_top_row *row = &rows[i];
		const json_t *was = elapsed_ns > 0
					    ? mrcctl_rail_same(view->before.rails, row->row, &hint)
					    : NULL;

		mrcctl_row_add_paths(row, view, "rail");
		row->out_bits_per_s = mrcctl_bits_per_s(was, row->row, "bytes_sent", elapsed_ns);
		row->in_bits_per_s = mrcctl_bits_per_s(was, row->row, "bytes_received", elapsed_ns);
		row->trouble = mrcctl_flag(row->row, "carrier") ? mrcctl_row_trouble(row) : 4;
	}
	return rows;
}

static struct mrcctl_top_row *mrcctl_peer_rows(const struct mrcctl_top_view *view)
{
	uint64_t elapsed_ns = mrcctl_snapshot_elapsed_ns(&view->before, &view->after);
	struct mrcctl_top_row *rows = mrcctl_rows_new(view->after.peers);
	size_t hint = 0;

	for (size_t i = 0; i < json_array_size(view->after.peers); i++) {
		struct mrcctl_top_row *row = &rows[i];
		const json_t *was = elapsed_ns > 0
					    ? mrcctl_peer_same(view->before.peers, row->row, &hint)
					    : NULL;

		mrcctl_row_add_paths(row, view, "peer");
		row->messages_per_s =
			mrcctl_per_second(mrcctl_grown(was, row->row, "messages_sent") +
						  mrcctl_grown(was, row->row, "messages_delivered"),
					  elapsed_ns);
		row->trouble = mrcctl_row_trouble(row);
	}
	return rows;
}

static struct mrcctl_top_row *mrcctl_channel_rows(const struct mrcctl_top_view *view)
{
	uint64_t elapsed_ns = mrcctl_snapshot_elapsed_ns(&view->before, &view->after);
	struct mrcctl_top_row *rows = mrcctl_rows_new(view->after.channels);
	size_t hint = 0;

	for (size_t i = 0; i < json_array_size(view->after.channels); i++) {
		struct mrcctl_top_row *row = &rows[i];
		const json_t *was =
			elapsed_ns > 0 ? mrcctl_channel_same(view->before.channels, row->row, &hint)
				       : NULL;

		row->out_bits_per_s = mrcctl_bits_per_s(was, row->row, "bytes_sent", elapsed_ns);
		row->in_bits_per_s =
			mrcctl_bits_per_s(was, row->row, "bytes_delivered", elapsed_ns);
		row->messages_per_s =
			mrcctl_per_second(mrcctl_grown(was, row->row, "sent") +
						  mrcctl_grown(was, row->row, "delivered"),
					  elapsed_ns);
	}
	return rows;
}

/* ---- which of them are shown, and in which order ---- */

static int mrcctl_more_first(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b ? 1 : 0;
}

static int mrcctl_by_index(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;

	return -mrcctl_more_first(x->index, y->index);
}

static int mrcctl_by_rate(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;
	int order = mrcctl_more_first(x->out_bits_per_s + x->in_bits_per_s,
				      y->out_bits_per_s + y->in_bits_per_s);

	return order != 0 ? order : mrcctl_by_index(a, b);
}

static int mrcctl_by_trouble(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;
	int order = mrcctl_more_first(x->trouble, y->trouble);

	return order != 0 ? order : mrcctl_by_rate(a, b);
}

static int mrcctl_by_messages(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;
	int order = mrcctl_more_first(x->messages_per_s, y->messages_per_s);

	return order != 0 ? order : mrcctl_by_rate(a, b);
}

static int mrcctl_by_queued(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;
	int order = mrcctl_more_first(mrcctl_number(x->row, "sends_queued"),
				      mrcctl_number(y->row, "sends_queued"));

	return order != 0 ? order : mrcctl_by_rate(a, b);
}

static int mrcctl_by_name(const void *a, const void *b)
{
	const struct mrcctl_top_row *x = a, *y = b;
	int order = strcmp(mrcctl_text(x->row, "peer"), mrcctl_text(y->row, "peer"));

	if (order == 0)
		order = -mrcctl_more_first(mrcctl_number(x->row, "id"),
					   mrcctl_number(y->row, "id"));
	return order != 0 ? order : mrcctl_by_index(a, b);
}

static const struct mrcctl_top_order {
	const char *name;
	int (*compare)(const void *, const void *);
} mrcctl_top_orders[MRCCTL_TOP_SORTS] = {
	[MRCCTL_TOP_RATE] = {"rate", mrcctl_by_rate},
	[MRCCTL_TOP_MESSAGES] = {"messages", mrcctl_by_messages},
	[MRCCTL_TOP_QUEUED] = {"queued", mrcctl_by_queued},
	[MRCCTL_TOP_NAME] = {"name", mrcctl_by_name},
};

/* The worst `shown` of them, in the order of the configuration: so they stay where they are. */
static void mrcctl_rows_pick(struct mrcctl_top_row *rows, size_t count, size_t shown)
{
	if (shown >= count)
		return;
	qsort(rows, count, sizeof(*rows), mrcctl_by_trouble);
	qsort(rows, shown, sizeof(*rows), mrcctl_by_index);
}

/* ---- cells ---- */

static void mrcctl_cell_rate(struct mrcctl_top_list *list, const struct mrcctl_top_view *view,
			     uint64_t bits_per_s)
{
	char text[MRCCTL_UNIT_BYTES];

	if (mrcctl_snapshot_elapsed_ns(&view->before, &view->after) == 0)
		mrcctl_top_list_add(list, MRCCTL_FAINT, "-");
	else
		mrcctl_top_list_add(list, bits_per_s > 0 ? MRCCTL_PLAIN : MRCCTL_FAINT, "%s",
				    mrcctl_unit_bits_per_s(bits_per_s, text));
}

/* Draws the eye while it grows. */
static void mrcctl_cell_count(struct mrcctl_top_list *list, struct mrcctl_top_count count)
{
	char text[MRCCTL_UNIT_BYTES + 8];

	mrcctl_top_list_add(list, count.grown > 0 ? MRCCTL_WORRY : MRCCTL_PLAIN, "%s",
			    mrcctl_unit_count(count.total, text));
}

static void mrcctl_cell_plain_count(struct mrcctl_top_list *list, uint64_t count)
{
	mrcctl_cell_count(list, (struct mrcctl_top_count){.total = count});
}

static void mrcctl_cell_rtt(struct mrcctl_top_list *list, uint64_t rtt_ns)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s",
			    rtt_ns == 0 ? "-" : mrcctl_unit_span(rtt_ns, text));
}

static void mrcctl_cell_loss(struct mrcctl_top_list *list, const struct mrcctl_top_row *row)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_top_list_add(list, row->is_lossy ? MRCCTL_WORRY : MRCCTL_PLAIN, "%s",
			    mrcctl_unit_part(row->loss_ppm, text));
}

static void mrcctl_cell_paths(struct mrcctl_top_list *list, const json_t *row)
{
	uint64_t paths = mrcctl_number(row, "paths"), good = mrcctl_number(row, "paths_good");

	mrcctl_top_list_add(list,
			    good == paths ? MRCCTL_PLAIN
			    : good > 0    ? MRCCTL_WORRY
					  : MRCCTL_BAD,
			    "%" PRIu64 "/%" PRIu64, good, paths);
}

/* How much of `whole` it is, as a bar of so many cells. */
static void mrcctl_cell_bar(struct mrcctl_top_list *list, bool is_utf8, uint64_t part,
			    uint64_t whole)
{
	static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
					      "\u258c", "\u258b", "\u258a", "\u2589"};
	char text[MRCCTL_BAR_CELLS * 3 + 1];
	uint64_t steps;
	size_t at = 0;

	if (part > whole)
		part = whole;
	steps = whole == 0 ? 0 : (uint64_t)((unsigned __int128)part * MRCCTL_BAR_CELLS * 8 / whole);
	text[0] = '\0';
	for (; steps >= 8; steps -= 8)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s",
				       is_utf8 ? "\u2588" : "#");
	if (is_utf8)
		snprintf(text + at, sizeof(text) - at, "%s", eighths[steps]);
	mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", text);
}

static void mrcctl_cell_rail_state(struct mrcctl_top_list *list, const struct mrcctl_top_row *row)
{
	if (mrcctl_text(row->row, "drill")[0] != '\0')
		mrcctl_top_list_add(list, MRCCTL_WORRY, "drill");
	else if (!mrcctl_flag(row->row, "carrier"))
		mrcctl_top_list_add(list, MRCCTL_BAD, "no carrier");
	else if (mrcctl_flag(row->row, "drained"))
		mrcctl_top_list_add(list, MRCCTL_WORRY, "drained");
	else if (row->trouble == 3)
		mrcctl_top_list_add(list, MRCCTL_BAD, "no path");
	else if (row->is_failing)
		mrcctl_top_list_add(list, MRCCTL_BAD, "failing");
	else if (row->is_degraded)
		mrcctl_top_list_add(list, MRCCTL_WORRY, "degraded");
	else
		mrcctl_top_list_add(list, MRCCTL_WELL, "up");
}

/* ---- the parts of the page; each is given its first row and how many it has, headings included ---- */

/* Behind the first heading of a list that is cut. */
static const char *mrcctl_note(size_t shown, size_t count, char text[MRCCTL_NOTE_BYTES])
{
	text[0] = '\0';
	if (shown < count)
		snprintf(text, MRCCTL_NOTE_BYTES, " %zu/%zu", shown, count);
	return text;
}

static void mrcctl_draw_rails(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
			      size_t at, size_t row_count)
{
	static const struct mrcctl_top_column columns[] = {
		{"RAIL", MRCCTL_LEFT, 0, 4, 16},      {"STATE", MRCCTL_LEFT, 0, 10, 0},
		{"OUT", MRCCTL_RIGHT, 0, 9, 0},       {"IN", MRCCTL_RIGHT, 0, 9, 0},
		{"RTT", MRCCTL_RIGHT, 1, 7, 0},       {"LOSS", MRCCTL_RIGHT, 1, 5, 0},
		{"MOVED", MRCCTL_RIGHT, 4, 5, 0},     {"DAMAGED", MRCCTL_RIGHT, 3, 7, 0},
		{"FAILED", MRCCTL_RIGHT, 2, 6, 0},    {"PATHS", MRCCTL_RIGHT, 1, 5, 0},
		{"SPEED", MRCCTL_RIGHT, 6, 8, 0},     {"", MRCCTL_LEFT, 5, MRCCTL_BAR_CELLS, 0},
		{"INTERFACE", MRCCTL_LEFT, 7, 9, 16},
	};
	size_t count = json_array_size(view->after.rails), shown = row_count - 1;
	struct mrcctl_top_list *list = mrcctl_top_list_new(columns, MRCCTL_COUNT(columns));
	struct mrcctl_top_row *rows = mrcctl_rail_rows(view);
	uint64_t fastest = 0;
	char note[MRCCTL_NOTE_BYTES], text[MRCCTL_UNIT_BYTES];

	mrcctl_rows_pick(rows, count, shown);
	shown = shown < count ? shown : count;
	for (size_t i = 0; i < shown; i++) {
		fastest = rows[i].out_bits_per_s > fastest ? rows[i].out_bits_per_s : fastest;
		fastest = rows[i].in_bits_per_s > fastest ? rows[i].in_bits_per_s : fastest;
	}
	for (size_t i = 0; i < shown; i++) {
		const struct mrcctl_top_row *row = &rows[i];
		uint64_t speed = mrcctl_number(row->row, "speed_bits_per_s");
		uint64_t busier = row->out_bits_per_s > row->in_bits_per_s ? row->out_bits_per_s
									   : row->in_bits_per_s;

		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "name"));
		mrcctl_cell_rail_state(list, row);
		mrcctl_cell_rate(list, view, row->out_bits_per_s);
		mrcctl_cell_rate(list, view, row->in_bits_per_s);
		mrcctl_cell_rtt(list, row->rtt_ns);
		mrcctl_cell_loss(list, row);
		mrcctl_cell_count(list, row->moved);
		mrcctl_cell_count(list, row->damaged);
		mrcctl_cell_count(list, row->failed);
		mrcctl_cell_paths(list, row->row);
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s",
				    speed == 0 ? "-" : mrcctl_unit_bits_per_s(speed, text));
		/* Of what it could carry; where that is not known, beside its siblings. */
		mrcctl_cell_bar(list, mrcctl_canvas_is_utf8(canvas), busier,
				speed > 0 ? speed : fastest);
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "interface"));
	}
	mrcctl_top_list_draw(list, canvas, at, mrcctl_note(shown, count, note));
	mrcctl_top_list_free(list);
	free(rows);
}

static void mrcctl_draw_peers(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
			      size_t at, size_t row_count)
{
	static const struct mrcctl_top_column columns[] = {
		{"PEER", MRCCTL_LEFT, 0, 4, 24},     {"STATE", MRCCTL_LEFT, 0, 10, 0},
		{"OUT", MRCCTL_RIGHT, 0, 9, 0},      {"IN", MRCCTL_RIGHT, 0, 9, 0},
		{"MSG/S", MRCCTL_RIGHT, 1, 7, 0},    {"CHANNELS", MRCCTL_RIGHT, 3, 8, 0},
		{"PATHS", MRCCTL_RIGHT, 1, 5, 0},    {"RTT", MRCCTL_RIGHT, 4, 7, 0},
		{"MOVED", MRCCTL_RIGHT, 5, 5, 0},    {"LOST", MRCCTL_RIGHT, 2, 4, 0},
		{"RESTARTS", MRCCTL_RIGHT, 6, 8, 0},
	};
	size_t count = json_array_size(view->after.peers), shown = row_count - 1;
	struct mrcctl_top_list *list = mrcctl_top_list_new(columns, MRCCTL_COUNT(columns));
	struct mrcctl_top_row *rows = mrcctl_peer_rows(view);
	char note[MRCCTL_NOTE_BYTES];

	mrcctl_rows_pick(rows, count, shown);
	shown = shown < count ? shown : count;
	for (size_t i = 0; i < shown; i++) {
		const struct mrcctl_top_row *row = &rows[i];
		const char *state = mrcctl_text(row->row, "state");

		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "name"));
		mrcctl_top_list_add(list,
				    strcmp(state, "connected") == 0 ? MRCCTL_WELL : MRCCTL_BAD,
				    "%s", state);
		mrcctl_cell_rate(list, view, row->out_bits_per_s);
		mrcctl_cell_rate(list, view, row->in_bits_per_s);
		mrcctl_cell_plain_count(list, row->messages_per_s);
		mrcctl_cell_plain_count(list, mrcctl_number(row->row, "channels"));
		mrcctl_cell_paths(list, row->row);
		mrcctl_cell_rtt(list, row->rtt_ns);
		mrcctl_cell_count(list, row->moved);
		mrcctl_cell_plain_count(list, mrcctl_number(row->row, "messages_failed"));
		mrcctl_cell_plain_count(list, mrcctl_number(row->row, "resets"));
	}
	mrcctl_top_list_draw(list, canvas, at, mrcctl_note(shown, count, note));
	mrcctl_top_list_free(list);
	free(rows);
}

static void mrcctl_draw_channels(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
				 size_t at, size_t row_count)
{
	static const struct mrcctl_top_column columns[] = {
		{"CHANNEL", MRCCTL_LEFT, 0, 7, 24}, {"SERVICE", MRCCTL_LEFT, 2, 10, 20},
		{"PROGRAM", MRCCTL_LEFT, 1, 7, 20}, {"OUT", MRCCTL_RIGHT, 0, 9, 0},
		{"IN", MRCCTL_RIGHT, 0, 9, 0},      {"MSG/S", MRCCTL_RIGHT, 1, 7, 0},
		{"QUEUED", MRCCTL_RIGHT, 3, 6, 0},  {"PID", MRCCTL_RIGHT, 4, 7, 0},
		{"STATE", MRCCTL_LEFT, 5, 6, 0},
	};
	size_t count = json_array_size(view->after.channels), shown = row_count - 1;
	struct mrcctl_top_list *list = mrcctl_top_list_new(columns, MRCCTL_COUNT(columns));
	struct mrcctl_top_row *rows = mrcctl_channel_rows(view);
	char note[MRCCTL_NOTE_BYTES];

	qsort(rows, count, sizeof(*rows), mrcctl_top_orders[view->sort].compare);
	shown = shown < count ? shown : count;
	for (size_t i = 0; i < shown; i++) {
		const struct mrcctl_top_row *row = &rows[i];

		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s/%" PRIu64,
				    mrcctl_text(row->row, "peer"), mrcctl_number(row->row, "id"));
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "service"));
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "client"));
		mrcctl_cell_rate(list, view, row->out_bits_per_s);
		mrcctl_cell_rate(list, view, row->in_bits_per_s);
		mrcctl_cell_plain_count(list, row->messages_per_s);
		mrcctl_cell_plain_count(list, mrcctl_number(row->row, "sends_queued"));
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%" PRIu64, mrcctl_number(row->row, "pid"));
		mrcctl_top_list_add(list, MRCCTL_PLAIN, "%s", mrcctl_text(row->row, "state"));
	}
	mrcctl_top_list_draw(list, canvas, at, mrcctl_note(shown, count, note));
	mrcctl_top_list_free(list);
	free(rows);
}

static const char *mrcctl_clock_text(time_t at, char text[MRCCTL_TIME_BYTES])
{
	struct tm tm;

	localtime_r(&at, &tm);
	strftime(text, MRCCTL_TIME_BYTES, "%H:%M:%S", &tm);
	return text;
}

static void mrcctl_draw_log(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
			    size_t at, size_t row_count)
{
	size_t kept = mrcctl_top_log_kept(view->log), columns = mrcctl_canvas_columns(canvas);
	size_t shown = row_count - 1 < kept ? row_count - 1 : kept;
	char text[MRCCTL_TIME_BYTES];

	mrcctl_canvas_put(canvas, at, 0, 8, MRCCTL_LEFT, MRCCTL_FAINT, "TIME");
	mrcctl_canvas_put(canvas, at, 10, columns, MRCCTL_LEFT, MRCCTL_FAINT,
			  kept > 0 ? "EVENT" : "EVENT  none yet");
	for (size_t i = 0; i < shown; i++) {
		const struct mrcctl_top_log_line *line = mrcctl_top_log_line(view->log, i);
		size_t row = at + shown - i;

		mrcctl_canvas_put(canvas, row, 0, 8, MRCCTL_LEFT, MRCCTL_FAINT,
				  mrcctl_clock_text(line->at, text));
		mrcctl_canvas_put(canvas, row, 10, columns, MRCCTL_LEFT, line->mood, line->text);
	}
}

/* `right` stands at the end of the row if `taken` cells at its beginning leave it room. */
static void mrcctl_draw_right(struct mrcctl_canvas *canvas, size_t row, size_t taken,
			      const char *right)
{
	size_t columns = mrcctl_canvas_columns(canvas);

	if (taken + 2 + mrcctl_canvas_width(canvas, right) <= columns)
		mrcctl_canvas_put(canvas, row, 0, columns, MRCCTL_RIGHT, MRCCTL_PLAIN, right);
}

/* The daemon's own words; where they are too long for so many cells the same in figures, without the last ones. */
static void mrcctl_title_text(const json_t *status, const struct mrcctl_canvas *canvas,
			      size_t cells, char *text, size_t text_bytes)
{
	uint64_t degraded = mrcctl_number(status, "rails_degraded");
	uint64_t failing = mrcctl_number(status, "rails_failing");
	char health[64] = "";

	snprintf(text, text_bytes, " %s: %s", mrcctl_text(status, "host"),
		 mrcctl_text(status, "summary"));
	if (mrcctl_canvas_width(canvas, text) <= cells)
		return;
	if (failing > 0)
		snprintf(health, sizeof(health), ", %" PRIu64 " failing", failing);
	if (degraded > 0)
		snprintf(health + strlen(health), sizeof(health) - strlen(health),
			 ", %" PRIu64 " degraded", degraded);
	snprintf(text, text_bytes,
		 " %s%s: rails %" PRIu64 "/%" PRIu64 "%s, peers %" PRIu64 "/%" PRIu64
		 ", clients %" PRIu64 ", channels %" PRIu64,
		 mrcctl_text(status, "host"), mrcctl_flag(status, "draining") ? ", draining" : "",
		 mrcctl_number(status, "rails_up"), mrcctl_number(status, "rails"), health,
		 mrcctl_number(status, "peers_connected"), mrcctl_number(status, "peers"),
		 mrcctl_number(status, "clients"), mrcctl_number(status, "channels"));
	for (char *comma = strrchr(text, ',');
	     comma != NULL && mrcctl_canvas_width(canvas, text) > cells; comma = strrchr(text, ','))
		*comma = '\0';
}

static void mrcctl_draw_title(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas)
{
	char text[MRCCTL_TITLE_BYTES], right[MRCCTL_TIME_BYTES + 1], clock[MRCCTL_TIME_BYTES];
	size_t columns = mrcctl_canvas_columns(canvas), taken;

	snprintf(right, sizeof(right), "%s ", mrcctl_clock_text(view->at, clock));
	taken = mrcctl_canvas_width(canvas, right) + 2;
	mrcctl_title_text(view->after.status, canvas, columns > taken ? columns - taken : 0, text,
			  sizeof(text));
	taken = mrcctl_canvas_put(canvas, 0, 0, columns, MRCCTL_LEFT, MRCCTL_PLAIN, text);
	mrcctl_draw_right(canvas, 0, taken, right);
	mrcctl_canvas_reverse(canvas, 0);
}

/* What all rails and all peers do together. */
static void mrcctl_totals_text(const struct mrcctl_top_view *view, char *text, size_t text_bytes)
{
	uint64_t elapsed_ns = mrcctl_snapshot_elapsed_ns(&view->before, &view->after);
	uint64_t out = 0, in = 0, sent = 0, delivered = 0;
	char out_text[MRCCTL_UNIT_BYTES], in_text[MRCCTL_UNIT_BYTES];
	size_t i, hint = 0;
	const json_t *row;

	text[0] = '\0';
	if (elapsed_ns == 0)
		return;
	json_array_foreach(view->after.rails, i, row)
	{
		const json_t *was = mrcctl_rail_same(view->before.rails, row, &hint);

		out += mrcctl_bits_per_s(was, row, "bytes_sent", elapsed_ns);
		in += mrcctl_bits_per_s(was, row, "bytes_received", elapsed_ns);
	}
	hint = 0;
	json_array_foreach(view->after.peers, i, row)
	{
		const json_t *was = mrcctl_peer_same(view->before.peers, row, &hint);

		sent += mrcctl_grown(was, row, "messages_sent");
		delivered += mrcctl_grown(was, row, "messages_delivered");
	}
	snprintf(text, text_bytes, " out %s  in %s  sent %" PRIu64 "/s  delivered %" PRIu64 "/s",
		 mrcctl_unit_bits_per_s(out, out_text), mrcctl_unit_bits_per_s(in, in_text),
		 mrcctl_per_second(sent, elapsed_ns), mrcctl_per_second(delivered, elapsed_ns));
}

static void mrcctl_draw_totals(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas)
{
	const json_t *status = view->after.status;
	char text[300], uptime[MRCCTL_UNIT_BYTES];
	size_t taken;

	mrcctl_totals_text(view, text, sizeof(text));
	taken = mrcctl_canvas_put(canvas, 1, 0, mrcctl_canvas_columns(canvas), MRCCTL_LEFT,
				  MRCCTL_PLAIN, text);
	snprintf(text, sizeof(text), "mrcd %s, up %s ", mrcctl_text(status, "version"),
		 mrcctl_unit_span(mrcctl_number(status, "uptime_ns"), uptime));
	mrcctl_draw_right(canvas, 1, taken, text);
}

static void mrcctl_draw_footer(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
			       size_t row)
{
	char text[120], interval[MRCCTL_UNIT_BYTES];
	size_t taken;

	snprintf(text, sizeof(text), " q quit  s sort: %s  p %s  h help",
		 mrcctl_top_orders[view->sort].name, view->is_paused ? "go on" : "pause");
	taken = mrcctl_canvas_put(canvas, row, 0, mrcctl_canvas_columns(canvas), MRCCTL_LEFT,
				  MRCCTL_PLAIN, text);
	snprintf(text, sizeof(text), view->is_paused ? "PAUSED " : "every %s ",
		 mrcctl_unit_span(view->interval_ns, interval));
	mrcctl_draw_right(canvas, row, taken, text);
	mrcctl_canvas_reverse(canvas, row);
}

static void mrcctl_draw_help(struct mrcctl_canvas *canvas, size_t at, size_t row_count)
{
	static const char *const lines[] = {
		"q        end",
		"s        sort channels by rate, messages, queued sends, or name",
		"p space  stop looking, and go on",
		"h ?      this text; any key ends it",
		"",
		"OUT, IN  payload since the last look",
		"RTT      the longest round trip of the good paths",
		"LOSS     what TCP or the card had to send again lately, of the worst path",
		"MOVED    fragments taken off a path and sent on another",
		"DAMAGED  fragments and headers that came damaged",
		"FAILED   how often a path left service",
		"LOST     messages to a peer that failed",
		"QUEUED   sends that wait in the daemon",
		"",
		"Counts are since the daemon was started, and yellow while they grow. The bar",
		"is the busier direction beside the rail's speed. Of rails and peers for which",
		"there is no room, those in trouble are shown first.",
	};

	for (size_t i = 0; i < MRCCTL_COUNT(lines) && i < row_count; i++)
		mrcctl_canvas_put(canvas, at + i, 1, mrcctl_canvas_columns(canvas), MRCCTL_LEFT,
				  MRCCTL_PLAIN, lines[i]);
}

/* ---- the page ---- */

typedef void (*mrcctl_draw_fn)(const struct mrcctl_top_view *, struct mrcctl_canvas *, size_t,
			       size_t);

static size_t mrcctl_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t mrcctl_most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* A list with its heading, or nothing at all. */
static size_t mrcctl_lines_of(size_t count, size_t lines_max)
{
	size_t lines = mrcctl_least(count + 1, lines_max);

	return lines < 2 ? 0 : lines;
}

/*
 * Rails first, at most half of the lines; events a third of what is left; peers a third of the rest, or
 * what channels do not take; then channels. What nobody wants is for more events. A single frame has
 * room for all.
 */
static void mrcctl_lines_share(const struct mrcctl_top_view *view, size_t left, size_t lines[4])
{
	size_t rails = json_array_size(view->after.rails);
	size_t peers = json_array_size(view->after.peers);
	size_t channels = json_array_size(view->after.channels);
	size_t peers_max;

	lines[0] = mrcctl_lines_of(rails, view->log == NULL
						  ? left
						  : mrcctl_most(left / 2, mrcctl_least(left, 3)));
	left -= lines[0];
	lines[3] = view->log == NULL ? 0 : left >= 9 ? left / 3 : left >= 6 ? 3 : 0;
	left -= lines[3];
	peers_max = mrcctl_most(left / 3, mrcctl_least(left, 2));
	if (left > channels + 1)
		peers_max = mrcctl_most(peers_max, left - channels - 1);
	lines[1] = mrcctl_lines_of(peers, peers_max);
	left -= lines[1];
	lines[2] = mrcctl_lines_of(channels, left);
	left -= lines[2];
	if (view->log != NULL && lines[3] + left >= 2)
		lines[3] += left;
}

static void mrcctl_draw_body(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas,
			     size_t at, size_t row_count)
{
	static const mrcctl_draw_fn draw[] = {mrcctl_draw_rails, mrcctl_draw_peers,
					      mrcctl_draw_channels, mrcctl_draw_log};
	size_t blank = row_count >= MRCCTL_ROOMY ? 1 : 0; /* between two lists */
	size_t lines[MRCCTL_COUNT(draw)];

	mrcctl_lines_share(view, row_count - 3 * blank, lines);
	for (size_t i = 0; i < MRCCTL_COUNT(draw); i++) {
		if (lines[i] > 0)
			draw[i](view, canvas, at, lines[i]);
		at += lines[i] + (lines[i] > 0 ? blank : 0);
	}
}

size_t mrcctl_top_view_rows(const struct mrcctl_top_view *view)
{
	const json_t *lists[] = {view->after.rails, view->after.peers, view->after.channels};
	size_t rows = 2;

	for (size_t i = 0; i < MRCCTL_COUNT(lists); i++)
		rows += json_array_size(lists[i]) > 0 ? json_array_size(lists[i]) + 1 : 0;
	/* As the body has it: one blank line in front of each further list. */
	return rows - 2 < MRCCTL_ROOMY ? rows : rows + 3;
}

void mrcctl_top_view_draw(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas)
{
	size_t rows = mrcctl_canvas_rows(canvas), body;
	bool has_keys = view->log != NULL && rows > 3;

	mrcctl_draw_title(view, canvas);
	if (view->trouble != NULL)
		mrcctl_canvas_put(canvas, 1, 1, mrcctl_canvas_columns(canvas), MRCCTL_LEFT,
				  MRCCTL_BAD, view->trouble);
	else
		mrcctl_draw_totals(view, canvas);
	body = rows < 2 ? 0 : rows - 2 - (has_keys ? 1 : 0);
	if (view->shows_help)
		mrcctl_draw_help(canvas, 2, body);
	else
		mrcctl_draw_body(view, canvas, 2, body);
	if (has_keys)
		mrcctl_draw_footer(view, canvas, rows - 1);
}
