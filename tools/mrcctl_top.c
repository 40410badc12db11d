/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_top.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "mrcctl_ask.h"
#include "mrcctl_canvas.h"
#include "mrcctl_events.h"
#include "mrcctl_feed.h"
#include "mrcctl_screen.h"
#include "mrcctl_top_log.h"
#include "mrcctl_top_view.h"

#define MRCCTL_S_NS       1000000000ULL
#define MRCCTL_MS_NS      1000000ULL
#define MRCCTL_TROUBLE_NS (3 * MRCCTL_S_NS) /* an answer that is so late is missed */

/* Everything that top knows while it is on a terminal. */
struct mrcctl_top {
	const struct mrcctl_top_options *options;
	struct mrcctl_screen screen;
	struct mrcctl_feed feed;
	struct mrcctl_events_place place; /* in the daemon's ring of events */
	bool is_asking_events;            /* else for a snapshot */
	struct mrcctl_top_log log;
	struct mrcctl_top_view view;
	char trouble[160];
	bool is_utf8, has_colour, is_ending;
	uint64_t next_ns;  /* the next look */
	uint64_t asked_ns; /* the question that is not answered yet */
};

static uint64_t mrcctl_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * MRCCTL_S_NS + (uint64_t)ts.tv_nsec;
}

int mrcctl_top_interval_parse(const char *text, uint64_t *interval_ns_out)
{
	char *end;
	double number;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	number = strtod(text, &end);
	if (end != text + strspn(text, "0123456789."))
		return -EINVAL; /* 1e9, 0x10 */
	if (strcmp(end, "ms") == 0)
		number *= (double)MRCCTL_MS_NS;
	else if (*end == '\0' || strcmp(end, "s") == 0)
		number *= (double)MRCCTL_S_NS;
	else
		return -EINVAL;
	if (!(number >= (double)MRCCTL_TOP_INTERVAL_NS_MIN &&
	      number <= (double)MRCCTL_TOP_INTERVAL_NS_MAX))
		return -EINVAL;
	*interval_ns_out = (uint64_t)number;
	return 0;
}

/* ---- without a terminal ---- */

/* 0, or the exit status. */
static int mrcctl_top_ask(const char *socket, struct mrcctl_snapshot *snapshot_out)
{
	json_t *question = mrcctl_snapshot_question(), *result;
	int r;

	if (question == NULL)
		abort();
	r = mrcctl_ask(socket, question, &result);
	json_decref(question);
	if (r != 0)
		return r;
	r = mrcctl_snapshot_take(result, snapshot_out);
	json_decref(result);
	if (r < 0) {
		fprintf(stderr, "mrcctl: the daemon's answer is not understood\n");
		return MRCCTL_EXIT_REFUSED;
	}
	return 0;
}

static void mrcctl_top_sleep(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / MRCCTL_S_NS),
				.tv_nsec = (long)(ns % MRCCTL_S_NS)};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static int mrcctl_top_flush(void)
{
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
	return MRCCTL_EXIT_REFUSED;
}

static int mrcctl_top_json(const char *socket, const struct mrcctl_top_options *options)
{
	for (;;) {
		struct mrcctl_snapshot snapshot;
		json_t *json;
		int r = mrcctl_top_ask(socket, &snapshot);

		if (r != 0)
			return r;
		json = mrcctl_snapshot_json(&snapshot);
		mrcctl_snapshot_fini(&snapshot);
		if (json == NULL)
			abort();
		json_dumpf(json, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(json);
		r = mrcctl_top_flush();
		if (r != 0 || options->is_once)
			return r;
		mrcctl_top_sleep(options->interval_ns);
	}
}

/* As wide as the terminal it goes to; else 80, or what $COLUMNS says. */
static size_t mrcctl_top_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	width = columns != NULL ? strtol(columns, NULL, 10) : 0;
	return width > 0 && width <= (long)MRCCTL_CANVAS_COLUMNS_MAX ? (size_t)width : 80;
}

static void mrcctl_top_print(const struct mrcctl_top_view *view, bool is_utf8)
{
	struct mrcctl_canvas *canvas =
		mrcctl_canvas_new(mrcctl_top_view_rows(view), mrcctl_top_width(), is_utf8);

	if (canvas == NULL)
		abort();
	mrcctl_top_view_draw(view, canvas);
	for (size_t i = 0; i < mrcctl_canvas_rows(canvas); i++) {
		char *text = mrcctl_canvas_row_text(canvas, i);

		puts(text);
		free(text);
	}
	mrcctl_canvas_free(canvas);
}

static int mrcctl_top_once(const char *socket, const struct mrcctl_top_options *options,
			   bool is_utf8)
{
	struct mrcctl_top_view view = {.interval_ns = options->interval_ns};
	int r = mrcctl_top_ask(socket, &view.before);

	if (r != 0)
		return r;
	mrcctl_top_sleep(options->interval_ns);
	r = mrcctl_top_ask(socket, &view.after);
	if (r == 0) {
		view.at = time(NULL);
		mrcctl_top_print(&view, is_utf8);
		mrcctl_snapshot_fini(&view.after);
		r = mrcctl_top_flush();
	}
	mrcctl_snapshot_fini(&view.before);
	return r;
}

/* ---- on a terminal ---- */

static void mrcctl_top_draw(struct mrcctl_top *top)
{
	struct mrcctl_canvas *canvas;
	size_t rows, columns, frame_bytes;
	char *frame;

	mrcctl_screen_size(&top->screen, &rows, &columns);
	canvas = mrcctl_canvas_new(rows, columns, top->is_utf8);
	if (canvas == NULL)
		abort();
	top->view.trouble = top->trouble[0] != '\0' ? top->trouble : NULL;
	mrcctl_top_view_draw(&top->view, canvas);
	frame = mrcctl_canvas_frame(canvas, top->has_colour, &frame_bytes);
	mrcctl_canvas_free(canvas);
	mrcctl_screen_draw(&top->screen, frame, frame_bytes);
}

/* Said once, when it begins. */
static void mrcctl_top_trouble(struct mrcctl_top *top, const char *why)
{
	char since[16];
	time_t now = time(NULL);
	struct tm tm;

	if (top->trouble[0] != '\0')
		return;
	localtime_r(&now, &tm);
	strftime(since, sizeof(since), "%H:%M:%S", &tm);
	snprintf(top->trouble, sizeof(top->trouble), "No answer since %s: %s; trying again", since,
		 why);
	mrcctl_top_log_add(&top->log, now, MRCCTL_BAD, "mrcd: %s", why);
	mrcctl_top_draw(top);
}

/* As mrcctl_feed_ask(). */
static int mrcctl_top_question(struct mrcctl_top *top, bool is_of_events)
{
	json_t *question =
		is_of_events ? mrcctl_events_question(&top->place) : mrcctl_snapshot_question();
	int r;

	if (question == NULL)
		abort();
	r = mrcctl_feed_ask(&top->feed, question);
	json_decref(question);
	if (r == 0)
		top->is_asking_events = is_of_events;
	return r;
}

/* What befell is asked for behind each snapshot, so that the page is drawn with both. */
static void mrcctl_top_ask_events(struct mrcctl_top *top)
{
	int r = mrcctl_top_question(top, true);

	if (r < 0)
		mrcctl_top_trouble(top, mrcctl_unreached_text(r));
}

static void mrcctl_top_take_events(struct mrcctl_top *top, const json_t *result)
{
	struct mrcctl_events_news news;
	int r = mrcctl_events_advance(&top->place, result, &news);

	if (r < 0) {
		mrcctl_top_trouble(top, "its answer to events is not understood");
		return;
	}
	mrcctl_top_log_take(&top->log, &news);
	if (r > 0)
		mrcctl_top_ask_events(top);
	else
		mrcctl_top_draw(top);
}

static void mrcctl_top_take_snapshot(struct mrcctl_top *top, const json_t *result)
{
	struct mrcctl_snapshot snapshot;
	time_t now = time(NULL);

	if (mrcctl_snapshot_take(result, &snapshot) < 0) {
		mrcctl_top_trouble(top, "its answer is not understood");
		return;
	}
	if (top->trouble[0] != '\0')
		mrcctl_top_log_add(&top->log, now, MRCCTL_WELL, "mrcd answers again");
	top->trouble[0] = '\0';
	mrcctl_snapshot_fini(&top->view.before);
	top->view.before = top->view.after;
	top->view.after = snapshot;
	top->view.at = now;
	mrcctl_top_ask_events(top);
}

/* The daemon has answered, or is not there. */
static void mrcctl_top_on_feed(struct mrcctl_top *top)
{
	json_t *answer;
	int r = mrcctl_feed_turn(&top->feed, &answer);

	if (r > 0) {
		const json_t *result = json_object_get(answer, "result");

		if (top->is_asking_events)
			mrcctl_top_take_events(top, result);
		else
			mrcctl_top_take_snapshot(top, result);
		json_decref(answer);
	} else if (r < 0 && !top->view.is_paused) {
		mrcctl_top_trouble(top, mrcctl_unreached_text(r));
	}
}

/* It is time for the next look. */
static void mrcctl_top_on_time(struct mrcctl_top *top, uint64_t now_ns)
{
	int r = mrcctl_top_question(top, false);

	top->next_ns = now_ns + top->options->interval_ns;
	if (r == 0)
		top->asked_ns = now_ns;
	else if (r != -EALREADY)
		mrcctl_top_trouble(top, mrcctl_unreached_text(r));
	else if (now_ns - top->asked_ns > MRCCTL_TROUBLE_NS)
		mrcctl_top_trouble(top, mrcctl_unreached_text(-EAGAIN));
}

static void mrcctl_top_on_key(struct mrcctl_top *top, int key)
{
	if (key < 0 || key == 'q' || key == 'Q') {
		top->is_ending = true;
		return;
	}
	if (top->view.shows_help) {
		top->view.shows_help = false;
	} else if (key == 'h' || key == '?') {
		top->view.shows_help = true;
	} else if (key == 's') {
		top->view.sort = (top->view.sort + 1) % MRCCTL_TOP_SORTS;
	} else if (key == 'p' || key == ' ') {
		top->view.is_paused = !top->view.is_paused;
		top->next_ns = 0; /* going on, it looks at once */
	}
	mrcctl_top_draw(top);
}

static void mrcctl_top_on_signal(struct mrcctl_top *top)
{
	switch (mrcctl_screen_signal(&top->screen)) {
	case MRCCTL_SIGNAL_END:
		top->is_ending = true;
		break;
	case MRCCTL_SIGNAL_REDRAW:
		mrcctl_top_draw(top);
		break;
	case MRCCTL_SIGNAL_NONE:
		break;
	}
}

static int mrcctl_top_wait_ms(const struct mrcctl_top *top, uint64_t now_ns)
{
	if (top->view.is_paused)
		return -1;
	return top->next_ns <= now_ns
		       ? 0
		       : (int)((top->next_ns - now_ns + MRCCTL_MS_NS - 1) / MRCCTL_MS_NS);
}

static void mrcctl_top_turn(struct mrcctl_top *top)
{
	struct pollfd fds[] = {
		{.fd = top->screen.signal_fd, .events = POLLIN},
		{.fd = top->screen.fd, .events = mrcctl_screen_events(&top->screen)},
		{.fd = mrcctl_feed_fd(&top->feed), .events = mrcctl_feed_events(&top->feed)},
	};
	uint64_t now_ns = mrcctl_clock_ns();
	int key;

	if (poll(fds, 3, mrcctl_top_wait_ms(top, now_ns)) < 0)
		return;
	now_ns = mrcctl_clock_ns();
	if ((fds[0].revents & POLLIN) != 0)
		mrcctl_top_on_signal(top);
	if ((fds[1].revents & POLLOUT) != 0)
		mrcctl_screen_flush(&top->screen);
	if ((fds[1].revents & ~POLLOUT) != 0) {
		while (!top->is_ending && (key = mrcctl_screen_key(&top->screen)) != 0)
			mrcctl_top_on_key(top, key);
	}
	if (fds[2].revents != 0)
		mrcctl_top_on_feed(top);
	if (!top->view.is_paused && top->next_ns <= now_ns)
		mrcctl_top_on_time(top, now_ns);
}

static int mrcctl_top_watch(const char *socket, const struct mrcctl_top_options *options,
			    bool is_utf8)
{
	struct mrcctl_top *top = calloc(1, sizeof(*top));
	int r;

	if (top == NULL)
		abort();
	mrcctl_feed_init(&top->feed, socket);
	top->options = options;
	top->is_utf8 = is_utf8;
	top->has_colour = mrcctl_table_wants_colour(stdout);
	top->view.log = &top->log;
	top->view.interval_ns = options->interval_ns;
	/* A daemon that is not there at the start, or another program's socket: said as by all commands. */
	r = mrcctl_top_ask(socket, &top->view.after);
	if (r != 0)
		goto out_free_feed;
	r = mrcctl_screen_open(&top->screen);
	if (r < 0) {
		fprintf(stderr, "mrcctl: the terminal cannot be opened: %s\n", strerror(-r));
		r = MRCCTL_EXIT_REFUSED;
		goto out_free_snapshot;
	}
	top->view.at = time(NULL);
	top->asked_ns = mrcctl_clock_ns();
	top->next_ns = top->asked_ns + options->interval_ns;
	mrcctl_top_draw(top);
	mrcctl_top_ask_events(top); /* also what befell before we came */
	while (!top->is_ending)
		mrcctl_top_turn(top);
	mrcctl_screen_close(&top->screen);

out_free_snapshot:
	mrcctl_snapshot_fini(&top->view.before);
	mrcctl_snapshot_fini(&top->view.after);
out_free_feed:
	mrcctl_feed_fini(&top->feed);
	free(top);
	return r;
}

static bool mrcctl_top_can_draw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' &&
	       strcmp(term, "dumb") != 0;
}

int mrcctl_top(const char *socket, const struct mrcctl_top_options *options)
{
	bool is_utf8;

	setlocale(LC_CTYPE, "");
	is_utf8 = !options->is_ascii && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (options->is_json)
		return mrcctl_top_json(socket, options);
	if (options->is_once)
		return mrcctl_top_once(socket, options, is_utf8);
	if (!mrcctl_top_can_draw()) {
		fprintf(stderr,
			"mrcctl: top draws on a terminal, and this is none (TERM is \"%s\")\n"
			"mrcctl: --once prints one page, --json a snapshot a line\n",
			getenv("TERM") != NULL ? getenv("TERM") : "");
		return MRCCTL_EXIT_USAGE;
	}
	return mrcctl_top_watch(socket, options, is_utf8);
}
