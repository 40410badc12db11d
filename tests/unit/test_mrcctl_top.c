/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of mrcctl top, made of two snapshots and of the daemon's events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <locale.h>

#include "mrcctl_top_view.h"

#define NOON 43200 /* of the first day; the clock is UTC here */

/* A host with so many of each; all is well. */
struct world {
	size_t rails, peers, channels;
	uint64_t boot_id, pid, uptime_ns;
	uint64_t bytes; /* sent by each rail, path and channel; half as many received */
	uint64_t messages;
};

static json_t *not_null(json_t *json)
{
	assert_non_null(json);
	return json;
}

static json_t *make_answer(json_t *result)
{
	return not_null(json_pack("{s:b s:o}", "ok", 1, "result", not_null(result)));
}

static json_t *make_status(const struct world *world)
{
	char boot_id[24], summary[80];

	snprintf(boot_id, sizeof(boot_id), "%016llx", (unsigned long long)world->boot_id);
	snprintf(summary, sizeof(summary), "%zu of %zu rails up, %zu of %zu peers connected",
		 world->rails, world->rails, world->peers, world->peers);
	return json_pack("{s:s s:s s:s s:I s:I s:b s:I s:I s:I s:I s:I s:I s:I s:I s:s}", "host",
			 "a", "version", "0.1.0", "boot_id", boot_id, "pid", (json_int_t)world->pid,
			 "uptime_ns", (json_int_t)world->uptime_ns, "draining", 0, "rails",
			 (json_int_t)world->rails, "rails_up", (json_int_t)world->rails,
			 "rails_degraded", (json_int_t)0, "rails_failing", (json_int_t)0, "peers",
			 (json_int_t)world->peers, "peers_connected", (json_int_t)world->peers,
			 "clients", (json_int_t)1, "channels", (json_int_t)world->channels,
			 "summary", summary);
}

static json_t *make_rails(const struct world *world)
{
	json_t *rails = json_array();
	char name[24];

	for (size_t i = 0; i < world->rails; i++) {
		snprintf(name, sizeof(name), "r%zu", i);
		json_array_append_new(
			rails,
			not_null(json_pack("{s:s s:s s:b s:b s:I s:I s:I s:I s:I s:I}", "name",
					   name, "interface", "enp1s0", "carrier", 1, "drained", 0,
					   "speed_bits_per_s", (json_int_t)1000000000, "bytes_sent",
					   (json_int_t)world->bytes, "bytes_received",
					   (json_int_t)(world->bytes / 2), "carrier_losses",
					   (json_int_t)0, "paths", (json_int_t)world->peers,
					   "paths_good", (json_int_t)world->peers)));
	}
	return rails;
}

static json_t *make_peers(const struct world *world)
{
	json_t *peers = json_array();
	char name[24];

	for (size_t i = 0; i < world->peers; i++) {
		snprintf(name, sizeof(name), "b%zu", i);
		json_array_append_new(
			peers,
			not_null(json_pack("{s:s s:s s:I s:I s:I s:I s:I s:I s:I}", "name", name,
					   "state", "connected", "paths", (json_int_t)world->rails,
					   "paths_good", (json_int_t)world->rails, "channels",
					   (json_int_t)world->channels, "messages_sent",
					   (json_int_t)world->messages, "messages_delivered",
					   (json_int_t)0, "messages_failed", (json_int_t)0,
					   "resets", (json_int_t)0)));
	}
	return peers;
}

static json_t *make_paths(const struct world *world)
{
	json_t *paths = json_array();
	char peer[24], rail[24];

	for (size_t p = 0; p < world->peers; p++) {
		for (size_t r = 0; r < world->rails; r++) {
			snprintf(peer, sizeof(peer), "b%zu", p);
			snprintf(rail, sizeof(rail), "r%zu", r);
			json_array_append_new(
				paths,
				not_null(json_pack("{s:s s:I s:s s:s s:s s:b s:I s:I s:I s:I s:I "
						   "s:I s:I s:{s:s s:I}}",
						   "peer", peer, "index", (json_int_t)r, "rail",
						   rail, "state", "GOOD", "reason", "none",
						   "degraded", 0, "rtt_ns", (json_int_t)52000,
						   "bytes_sent", (json_int_t)world->bytes,
						   "bytes_received", (json_int_t)(world->bytes / 2),
						   "frames_resent", (json_int_t)0, "body_errors",
						   (json_int_t)0, "header_errors", (json_int_t)0,
						   "bad_count", (json_int_t)0, "health", "cause",
						   "none", "loss_ppm", (json_int_t)0)));
		}
	}
	return paths;
}

/* Channel i is i + 1 times as busy as the first, and the busier the less it queues. */
static json_t *make_channels(const struct world *world)
{
	json_t *channels = json_array();

	for (size_t i = 0; i < world->channels; i++)
		json_array_append_new(
			channels,
			not_null(json_pack("{s:s s:I s:s s:s s:I s:s s:b s:I s:I s:I s:I s:I}",
					   "peer", "b0", "id", (json_int_t)i * 2 + 1, "service",
					   "perf", "client", "stream", "pid", (json_int_t)4711,
					   "state", "open", "opener", 1, "bytes_sent",
					   (json_int_t)world->bytes * (json_int_t)(i + 1),
					   "bytes_delivered", (json_int_t)0, "sent",
					   (json_int_t)world->messages * (json_int_t)(i + 1),
					   "delivered", (json_int_t)0, "sends_queued",
					   (json_int_t)(world->channels - i))));
	return channels;
}

static struct mrcctl_snapshot snapshot(const struct world *world)
{
	json_t *result = not_null(json_array());
	struct mrcctl_snapshot taken;

	json_array_append_new(result, make_answer(make_status(world)));
	json_array_append_new(result, make_answer(make_rails(world)));
	json_array_append_new(result, make_answer(make_peers(world)));
	json_array_append_new(result, make_answer(make_paths(world)));
	json_array_append_new(result, make_answer(make_channels(world)));
	assert_int_equal(mrcctl_snapshot_take(result, &taken), 0);
	json_decref(result);
	return taken;
}

/* Changes one field of one row. */
static void set(json_t *rows, size_t row, const char *key, json_t *value)
{
	json_t *object = json_array_get(rows, row);

	assert_non_null(json_object_get(object, key)); /* it is spelled as the daemon spells it */
	assert_int_equal(json_object_set_new(object, key, not_null(value)), 0);
}

/* Two snapshots a second apart, in which each rail sent 100 Mb/s and received half of that. */
static struct mrcctl_top_view a_second(const struct world *world, struct mrcctl_top_log *log)
{
	struct world after = *world;
	struct mrcctl_top_view view = {.log = log, .at = NOON, .interval_ns = 1000000000};

	after.uptime_ns += 1000000000;
	after.bytes += 12500000;
	after.messages += 100;
	view.before = snapshot(world);
	view.after = snapshot(&after);
	return view;
}

static void end(struct mrcctl_top_view *view)
{
	mrcctl_snapshot_fini(&view->before);
	mrcctl_snapshot_fini(&view->after);
}

static const struct world usual = {
	.rails = 4, .peers = 1, .channels = 1, .boot_id = 7, .pid = 99, .uptime_ns = 61000000000};

/* The whole page as text. */
static char *page(const struct mrcctl_top_view *view, size_t rows, size_t columns, bool is_utf8)
{
	struct mrcctl_canvas *canvas = mrcctl_canvas_new(rows, columns, is_utf8);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(canvas);
	assert_non_null(out);
	mrcctl_top_view_draw(view, canvas);
	for (size_t i = 0; i < mrcctl_canvas_rows(canvas); i++) {
		char *row = mrcctl_canvas_row_text(canvas, i);

		fprintf(out, "%s\n", row);
		free(row);
	}
	assert_int_equal(fclose(out), 0);
	mrcctl_canvas_free(canvas);
	return text;
}

static void shows(const struct mrcctl_top_view *view, size_t rows, size_t columns, const char *want)
{
	char *text = page(view, rows, columns, false);

	if (strstr(text, want) == NULL)
		fail_msg("%zu by %zu does not show \"%s\":\n%s", columns, rows, want, text);
	free(text);
}

static void shows_not(const struct mrcctl_top_view *view, size_t rows, size_t columns,
		      const char *bad)
{
	char *text = page(view, rows, columns, false);

	if (strstr(text, bad) != NULL)
		fail_msg("%zu by %zu shows \"%s\":\n%s", columns, rows, bad, text);
	free(text);
}

static void a_page_of_80_by_24_has_all_parts(void **state)
{
	struct mrcctl_top_log *log = calloc(1, sizeof(*log));
	struct mrcctl_top_view view = a_second(&usual, log);
	char *text;

	mrcctl_top_log_add(log, NOON - 60, MRCCTL_BAD, "rail r1: carrier lost");
	text = page(&view, 24, 80, false);
	/* clang-format off */
	assert_string_equal(text,
		" a: 4 of 4 rails up, 1 of 1 peers connected                            12:00:00\n"
		" out 400 Mb/s  in 200 Mb/s  sent 100/s  delivered 0/s     mrcd 0.1.0, up 1m 02s\n"
		"RAIL  STATE             OUT         IN      RTT   LOSS  DAMAGED  FAILED  PATHS\n"
		"r0    up           100 Mb/s    50 Mb/s    52 us     0%        0       0    1/1\n"
		"r1    up           100 Mb/s    50 Mb/s    52 us     0%        0       0    1/1\n"
		"r2    up           100 Mb/s    50 Mb/s    52 us     0%        0       0    1/1\n"
		"r3    up           100 Mb/s    50 Mb/s    52 us     0%        0       0    1/1\n"
		"PEER  STATE             OUT         IN    MSG/S  CHANNELS  PATHS      RTT  LOST\n"
		"b0    connected    400 Mb/s   200 Mb/s      100         1    4/4    52 us     0\n"
		"CHANNEL  SERVICE     PROGRAM        OUT         IN    MSG/S  QUEUED      PID\n"
		"b0/1     perf        stream    100 Mb/s      0 b/s      100       1     4711\n"
		"TIME      EVENT\n"
		"11:59:00  rail r1: carrier lost\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		" q quit  s sort: rate  p pause  h help                                every 1 s\n");
	/* clang-format on */
	free(text);
	end(&view);
	free(log);
}

static void rails_and_peers_in_trouble_are_never_cut_off(void **state)
{
	struct world world = usual;
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view;

	world.rails = 16;
	world.peers = 64;
	view = a_second(&world, &log);
	set(view.after.rails, 13, "carrier", json_false());
	set(view.after.peers, 50, "state", json_string("silent"));
	set(view.after.peers, 50, "paths_good", json_integer(0));
	shows(&view, 24, 80, "\nRAIL 9/16  ");
	shows(&view, 24, 80, "\nr13        no carrier  ");
	shows(&view, 24, 80, "\nPEER 5/64  ");
	shows(&view, 24, 80, "\nb50        silent ");
	/* Where there is room, nothing is cut, and all keep the order of the configuration. */
	shows(&view, 200, 80, "\nRAIL  STATE");
	shows(&view, 200, 80, "\nPEER  STATE");
	shows(&view, 200, 80, "\nr13   no carrier");
	shows(&view, 200, 80, "\nb49  ");
	end(&view);
}

static void channels_are_sorted_as_asked(void **state)
{
	static const char *const first[MRCCTL_TOP_SORTS] = {
		[MRCCTL_TOP_RATE] = "\nb0/9     perf",
		[MRCCTL_TOP_MESSAGES] = "\nb0/9     perf",
		[MRCCTL_TOP_QUEUED] = "\nb0/1     perf",
		[MRCCTL_TOP_NAME] = "\nb0/1     perf",
	};
	static const char *const names[MRCCTL_TOP_SORTS] = {
		[MRCCTL_TOP_RATE] = "sort: rate ",
		[MRCCTL_TOP_MESSAGES] = "sort: messages ",
		[MRCCTL_TOP_QUEUED] = "sort: queued ",
		[MRCCTL_TOP_NAME] = "sort: name ",
	};
	struct world world = usual;
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view;

	world.channels = 5;
	view = a_second(&world, &log);
	for (int i = 0; i < MRCCTL_TOP_SORTS; i++) {
		char *text, *heading;

		view.sort = (enum mrcctl_top_sort)i;
		text = page(&view, 30, 80, false);
		heading = strstr(text, "\nCHANNEL");
		assert_non_null(heading);
		heading = strchr(heading + 1, '\n');
		if (strncmp(heading, first[i], strlen(first[i])) != 0)
			fail_msg("sorted by %d:\n%s", i, text);
		assert_non_null(strstr(text, names[i]));
		free(text);
	}
	/* One of equal rate stays behind those before it. */
	view.sort = MRCCTL_TOP_RATE;
	mrcctl_snapshot_fini(&view.before);
	shows(&view, 30, 80, "PID\nb0/1 ");
	end(&view);
}

static void rates_are_known_only_between_two_looks_at_one_daemon(void **state)
{
	static const char *const not_rated = "r0    up                  -          -";
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log), first = view, later = view;
	struct world again = usual;

	shows(&view, 24, 80, "out 400 Mb/s  in 200 Mb/s  sent 100/s  delivered 0/s  ");
	shows(&view, 24, 80, "r0    up           100 Mb/s    50 Mb/s");
	/* none before */
	memset(&first.before, 0, sizeof(first.before));
	shows_not(&first, 24, 80, "Mb/s");
	shows(&first, 24, 80, not_rated);
	/* another run of the daemon, whose counts began anew */
	again.pid++;
	again.bytes = 1;
	later.after = snapshot(&again);
	shows_not(&later, 24, 80, "Mb/s");
	shows(&later, 24, 80, not_rated);
	mrcctl_snapshot_fini(&later.after);
	/* the same run, and a clock that stands still */
	later.after = view.before;
	shows(&later, 24, 80, not_rated);
	end(&view);
}

static void a_page_of_any_size_keeps_to_it(void **state)
{
	static const size_t columns[] = {1, 2, 3, 5, 8, 13, 20, 40, 79, 80, 81, 132, 250};
	struct world world = usual;
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view;

	world.rails = 16;
	world.peers = 20;
	world.channels = 300;
	view = a_second(&world, &log);
	for (int i = 0; i < 300; i++)
		mrcctl_top_log_add(&log, NOON + i, MRCCTL_PLAIN, "line %d of the log, a long one",
				   i);
	for (size_t rows = 1; rows < 70; rows += rows < 12 ? 1 : 7) {
		for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
			size_t row_count = 0;
			char *text, *at, *newline;

			view.shows_help = rows % 2 == 0 && c % 2 == 0;
			text = page(&view, rows, columns[c], false);
			for (at = text; (newline = strchr(at, '\n')) != NULL; at = newline + 1) {
				assert_true((size_t)(newline - at) <= columns[c]);
				row_count++;
			}
			assert_int_equal(row_count, rows);
			free(text);
		}
	}
	end(&view);
}

static void a_wide_page_shows_more_and_a_narrow_one_what_matters(void **state)
{
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);
	char *text;

	shows(&view, 24, 140, "  INTERFACE\n");
	shows(&view, 24, 140, " 1 Gb/s  #             enp1s0\n");
	shows_not(&view, 24, 80, "INTERFACE");
	shows(&view, 24, 40, "\nRAIL  STATE             OUT         IN\n");
	/* A tenth of 12 cells: one, and a bit more where there are such characters. */
	text = page(&view, 24, 140, true);
	assert_non_null(strstr(text, " \u2588\u258f "));
	free(text);
	end(&view);
}

static void no_name_drives_the_terminal(void **state)
{
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);
	char *text;

	set(view.after.channels, 0, "client",
	    json_string("\033[2Jx\xc2\x9b"
			"1m\xe2\x80\xae"));
	set(view.after.peers, 0, "name", json_string("b\r\n\033c"));
	mrcctl_top_log_add(&log, NOON, MRCCTL_BAD, "peer %s: silent", "\033]0;x\a");
	text = page(&view, 24, 80, true);
	for (const char *at = text; *at != '\0'; at++)
		assert_true((unsigned char)*at >= ' ' || *at == '\n');
	assert_null(strstr(text, "\xc2\x9b"));
	assert_non_null(strstr(text, "?[2Jx?1m?"));
	assert_non_null(strstr(text, "peer ?]0;x?: silent"));
	free(text);
	end(&view);
}

static void what_is_up_with_rails_and_paths_is_said(void **state)
{
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);
	struct mrcctl_canvas *canvas = mrcctl_canvas_new(24, 90, false);
	size_t len;
	char *frame;

	set(view.after.rails, 0, "drained", json_true());
	set(view.after.rails, 1, "paths_good", json_integer(0));
	set(view.after.paths, 2, "degraded", json_true());
	set(view.after.paths, 3, "frames_resent", json_integer(1234));
	set(view.after.paths, 3, "body_errors", json_integer(5));
	set(view.after.paths, 3, "header_errors", json_integer(1));
	set(view.after.paths, 1, "state", json_string("ASSUMED_BAD"));
	shows(&view, 24, 80, "\nr0    drained ");
	shows(&view, 24, 80,
	      "\nr1    no path      100 Mb/s    50 Mb/s        -     0%        0       0    "
	      "0/1\n");
	shows(&view, 24, 80, "\nr2    degraded ");
	shows(&view, 24, 80,
	      "\nr3    up           100 Mb/s    50 Mb/s    52 us     0%        6       0    "
	      "1/1\n");
	shows(&view, 24, 90, "    52 us     0%  1 234        6       0    1/1\n");
	/* A count draws the eye when it grew in between, and only then. */
	mrcctl_top_view_draw(&view, canvas);
	frame = mrcctl_canvas_frame(canvas, true, &len);
	assert_non_null(memmem(frame, len, "\033[33m1 234", 10));
	free(frame);
	mrcctl_canvas_free(canvas);
	canvas = mrcctl_canvas_new(24, 90, false);
	set(view.before.paths, 3, "frames_resent", json_integer(1234));
	mrcctl_top_view_draw(&view, canvas);
	frame = mrcctl_canvas_frame(canvas, true, &len);
	assert_null(memmem(frame, len, "\033[33m1 234", 10));
	free(frame);
	mrcctl_canvas_free(canvas);
	end(&view);
}

static void the_loss_of_a_rail_is_that_of_its_worst_path(void **state)
{
	static const struct {
		uint64_t ppm;
		const char *want;
	} cases[] = {
		{0, "    52 us     0%  "},       {1, "    52 us  <.01%  "},
		{99, "    52 us  <.01%  "},      {100, "    52 us  0.01%  "},
		{9999, "    52 us  0.99%  "},    {10000, "    52 us   1.0%  "},
		{99999, "    52 us   9.9%  "},   {100000, "    52 us    10%  "},
		{1000000, "    52 us   100%  "},
	};
	struct world world = usual;
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view;
	struct mrcctl_canvas *canvas = mrcctl_canvas_new(24, 80, false);
	size_t len;
	char *frame;

	world.rails = 1;
	world.peers = 3;
	view = a_second(&world, &log);
	set(view.after.paths, 2, "health",
	    json_pack("{s:s s:I}", "cause", "none", "loss_ppm", (json_int_t)1));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(view.after.paths, 1, "health",
		    json_pack("{s:s s:I}", "cause", i > 6 ? "loss" : "none", "loss_ppm",
			      (json_int_t)cases[i].ppm));
		shows(&view, 24, 80, i == 0 ? cases[1].want : cases[i].want);
	}
	/* It draws the eye where it is held against a path. */
	mrcctl_top_view_draw(&view, canvas);
	frame = mrcctl_canvas_frame(canvas, true, &len);
	assert_non_null(memmem(frame, len, "\033[33m100%", 9));
	free(frame);
	mrcctl_canvas_free(canvas);
	end(&view);
}

static void the_first_line_fits_whatever_there_is_to_say(void **state)
{
	struct world world = usual;
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view;
	json_t *status;

	world.rails = 16;
	world.peers = 64;
	world.channels = 300;
	view = a_second(&world, &log);
	status = view.after.status;
	json_object_set_new(status, "draining", json_true());
	json_object_set_new(status, "rails_failing", json_integer(1));
	json_object_set_new(status, "rails_degraded", json_integer(2));
	json_object_set_new(status, "clients", json_integer(12));
	json_object_set_new(status, "summary",
			    json_string("draining: 16 of 16 rails up (1 failing, 2 degraded), 64 "
					"of 64 peers connected, 12 clients, 300 channels"));
	shows(&view, 24, 132,
	      " a: draining: 16 of 16 rails up (1 failing, 2 degraded), 64 of 64 peers connected, "
	      "12 clients, 300 channels");
	shows(&view, 24, 100,
	      " a, draining: rails 16/16, 1 failing, 2 degraded, peers 64/64, clients 12, "
	      "channels 300    12:00:00\n");
	shows(&view, 24, 80,
	      " a, draining: rails 16/16, 1 failing, 2 degraded, peers 64/64          12:00:00\n");
	shows(&view, 24, 40, " a, draining: rails 16/16      12:00:00\n");
	end(&view);
}

static void help_pause_and_trouble_are_shown(void **state)
{
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);

	shows(&view, 24, 80, "\n q quit  s sort: rate  p pause  h help ");
	shows(&view, 24, 80, " every 1 s\n");
	view.is_paused = true;
	shows(&view, 24, 80, " p go on ");
	shows(&view, 24, 80, " PAUSED\n");
	view.trouble = "No answer since 12:00:00: gone";
	shows(&view, 24, 80, "\n No answer since 12:00:00: gone\n");
	shows_not(&view, 24, 80, "mrcd 0.1.0");
	view.shows_help = true;
	shows(&view, 24, 80, "\n OUT, IN  payload");
	shows_not(&view, 24, 80, "\nRAIL ");
	end(&view);
}

static void a_single_frame_has_all_lists_whole_and_no_keys(void **state)
{
	struct world world = usual;
	struct mrcctl_top_view view;

	world.rails = 16;
	world.peers = 40;
	world.channels = 100;
	view = a_second(&world, NULL);
	assert_int_equal(mrcctl_top_view_rows(&view), 2 + 17 + 41 + 101 + 3);
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nRAIL  STATE");
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nPEER  STATE");
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nCHANNEL  SERVICE");
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nr15 ");
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nb39 ");
	shows(&view, mrcctl_top_view_rows(&view), 80, "\nb0/1 ");
	shows_not(&view, mrcctl_top_view_rows(&view), 80, "q quit");
	shows_not(&view, mrcctl_top_view_rows(&view), 80, "TIME");
	end(&view);
}

/* ---- events ---- */

static bool has_line(const struct mrcctl_top_log *log, const char *want)
{
	for (size_t i = 0; i < mrcctl_top_log_kept(log); i++) {
		if (strcmp(mrcctl_top_log_line(log, i)->text, want) == 0)
			return true;
	}
	return false;
}

/* An answer of the daemon to the command events. */
static int take(struct mrcctl_top_log *log, struct mrcctl_events_place *place, const char *answer)
{
	json_t *result = not_null(json_loads(answer, 0, NULL));
	struct mrcctl_events_news news = {0};
	int r = mrcctl_events_advance(place, result, &news);

	mrcctl_top_log_take(log, &news);
	json_decref(result);
	return r;
}

/* A cable that flapped between two looks: no list of the daemon shows it, its ring does. */
static void what_came_and_went_between_two_looks_is_told(void **state)
{
	static const char answer[] =
		"{\"log\":7,\"boot_id\":\"aa\",\"next\":3,\"count\":3,\"missed\":0,\"events\":["
		"{\"wall_ns\":43100000000000,\"kind\":\"carrier-lost\",\"text\":\"rail r1: carrier "
		"lost\"},"
		"{\"wall_ns\":43100500000000,\"kind\":\"carrier-back\",\"text\":\"rail r1: carrier "
		"is back\"},"
		"{\"wall_ns\":43101000000000,\"kind\":\"path\",\"state\":\"GOOD\","
		"\"text\":\"rail r1 to b0: GOOD, was PROBING\"}]}";
	struct mrcctl_events_place place = {0};
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);

	assert_int_equal(take(&log, &place, answer), 0);
	shows(&view, 24, 80,
	      "\n11:58:20  rail r1: carrier lost\n"
	      "11:58:20  rail r1: carrier is back\n"
	      "11:58:21  rail r1 to b0: GOOD, was PROBING\n");
	assert_int_equal(mrcctl_top_log_line(&log, 2)->mood, MRCCTL_BAD);
	assert_int_equal(mrcctl_top_log_line(&log, 1)->mood, MRCCTL_WELL);
	assert_int_equal(mrcctl_top_log_line(&log, 0)->mood, MRCCTL_WELL);
	assert_int_equal(place.since, 3);
	end(&view);
}

static void what_the_ring_no_longer_has_is_counted(void **state)
{
	static const char answer[] =
		"{\"log\":7,\"boot_id\":\"aa\",\"next\":9,\"count\":9,\"missed\":4,\"events\":["
		"{\"wall_ns\":43100000000000,\"kind\":\"drained\",\"text\":\"rail r1: drained\"}]}";
	struct mrcctl_events_place place = {.since = 4, .boot_id = "aa", .log = 7};
	struct mrcctl_top_log log = {0};
	struct mrcctl_top_view view = a_second(&usual, &log);

	assert_int_equal(take(&log, &place, answer), 0);
	shows(&view, 24, 80,
	      "\n11:58:20  4 older events are no longer kept\n"
	      "11:58:20  rail r1: drained\n");
	end(&view);
}

static void the_log_keeps_the_newest(void **state)
{
	struct mrcctl_top_log *log = calloc(1, sizeof(*log));

	assert_int_equal(mrcctl_top_log_kept(log), 0);
	for (unsigned i = 0; i < MRCCTL_TOP_LOG_LINES + 3; i++)
		mrcctl_top_log_add(log, NOON, MRCCTL_PLAIN, "%u", i);
	assert_int_equal(mrcctl_top_log_kept(log), MRCCTL_TOP_LOG_LINES);
	assert_true(has_line(log, "258"));
	assert_string_equal(mrcctl_top_log_line(log, 0)->text, "258");
	assert_false(has_line(log, "2"));
	assert_true(has_line(log, "3"));
	free(log);
}

/* ---- snapshots ---- */

static void what_is_no_snapshot_is_refused(void **state)
{
	static const char *const results[] = {
		"null",
		"{}",
		"[]",
		"[{\"ok\":true,\"result\":{}}]",
		"[{\"ok\":true,\"result\":{}},{\"ok\":true,\"result\":[]},{\"ok\":true,\"result\":["
		"]},"
		"{\"ok\":true,\"result\":[]},{\"ok\":false,\"error\":\"no\"}]",
		"[{\"ok\":true,\"result\":[]},{\"ok\":true,\"result\":[]},{\"ok\":true,\"result\":["
		"]},"
		"{\"ok\":true,\"result\":[]},{\"ok\":true,\"result\":[]}]",
		"[null,null,null,null,null]",
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		json_t *result = not_null(json_loads(results[i], JSON_DECODE_ANY, NULL));
		struct mrcctl_snapshot taken = {0};

		assert_int_equal(mrcctl_snapshot_take(result, &taken), -EBADMSG);
		assert_null(taken.status);
		json_decref(result);
	}
}

static void a_rate_of_anything_in_any_time_is_right(void **state)
{
	static const struct {
		uint64_t grown, elapsed_ns, want;
	} cases[] = {
		{0, 0, 0},
		{7, 0, 0},
		{7, 1000000000, 7},
		{7, 2000000000, 3},
		{1, 1, 1000000000},
		{UINT64_MAX, 1000000000, UINT64_MAX},
		{50000000000000, 500000000, 100000000000000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mrcctl_per_second(cases[i].grown, cases[i].elapsed_ns),
				 cases[i].want);
}

static void a_thing_is_found_wherever_the_search_begins(void **state)
{
	struct world world = usual;
	struct mrcctl_snapshot before, after;
	size_t hint = 0;

	world.channels = 5;
	before = snapshot(&world);
	after = snapshot(&world);
	for (size_t i = 5; i-- > 0;) /* backwards, so that no hint is of use */
		assert_ptr_equal(mrcctl_channel_same(before.channels,
						     json_array_get(after.channels, i), &hint),
				 json_array_get(before.channels, i));
	/* The other end of a channel of the same number is another thing. */
	set(after.channels, 2, "opener", json_false());
	assert_null(mrcctl_channel_same(before.channels, json_array_get(after.channels, 2), &hint));
	hint = 77;
	assert_ptr_equal(mrcctl_rail_same(before.rails, json_array_get(after.rails, 3), &hint),
			 json_array_get(before.rails, 3));
	mrcctl_snapshot_fini(&before);
	mrcctl_snapshot_fini(&after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_of_80_by_24_has_all_parts),
		cmocka_unit_test(rails_and_peers_in_trouble_are_never_cut_off),
		cmocka_unit_test(channels_are_sorted_as_asked),
		cmocka_unit_test(rates_are_known_only_between_two_looks_at_one_daemon),
		cmocka_unit_test(a_page_of_any_size_keeps_to_it),
		cmocka_unit_test(a_wide_page_shows_more_and_a_narrow_one_what_matters),
		cmocka_unit_test(no_name_drives_the_terminal),
		cmocka_unit_test(what_is_up_with_rails_and_paths_is_said),
		cmocka_unit_test(the_loss_of_a_rail_is_that_of_its_worst_path),
		cmocka_unit_test(the_first_line_fits_whatever_there_is_to_say),
		cmocka_unit_test(help_pause_and_trouble_are_shown),
		cmocka_unit_test(a_single_frame_has_all_lists_whole_and_no_keys),
		cmocka_unit_test(what_came_and_went_between_two_looks_is_told),
		cmocka_unit_test(what_the_ring_no_longer_has_is_counted),
		cmocka_unit_test(the_log_keeps_the_newest),
		cmocka_unit_test(what_is_no_snapshot_is_refused),
		cmocka_unit_test(a_rate_of_anything_in_any_time_is_right),
		cmocka_unit_test(a_thing_is_found_wherever_the_search_begins),
	};

	setenv("TZ", "UTC", 1);
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
		printf("skipped: the C library has no locale C.UTF-8\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
