/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "mrcctl_ask.h"
#include "mrcctl_table.h"
#include "mrcctl_trace_perfetto.h"
#include "mrcctl_trace_show.h"

#define MRCCTL_S_NS 1000000000U

struct mrcctl_gathering {
	const char *socket;
	const struct mrcctl_trace_options *options;
	struct mrc_trace trace;
	int signal_fd;
	bool is_interrupted;
	bool has_progress; /* stderr is a terminal: a line there is overwritten */
};

static uint64_t mrcctl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * MRCCTL_S_NS + (uint64_t)ts.tv_nsec;
}

/* SIGINT and SIGTERM become something to read: what has been turned on is always turned off again. */
static int mrcctl_signals_catch(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* From here on they end us as usual: whoever waits for output that nobody reads wants to. */
static void mrcctl_signals_let(int signal_fd)
{
	struct signalfd_siginfo info;
	sigset_t set;

	while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		; /* one that came is dealt with */
	close(signal_fd);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* 0 all is read; 1 there is more; else minus the exit status. */
static int mrcctl_gathering_ask(struct mrcctl_gathering *gathering, uint64_t every)
{
	const struct mrcctl_trace_options *options = gathering->options;
	json_t *question = mrc_trace_question(&gathering->trace,
					      options->peer[0] != '\0' ? options->peer : NULL,
					      options->channel, every);
	json_t *result;
	int r;

	if (question == NULL) {
		fprintf(stderr, "mrcctl: the peer's name is not valid UTF-8\n");
		return -MRCCTL_EXIT_USAGE;
	}
	r = mrcctl_ask(gathering->socket, question, &result);
	json_decref(question);
	if (r != 0)
		return -r;
	r = every > 0 ? mrc_trace_take(&gathering->trace, result) : 0;
	json_decref(result);
	if (r < 0) {
		fprintf(stderr, "mrcctl: the daemon's answer to trace is not understood%s%s\n",
			r == -ENOMEM ? ": " : "", r == -ENOMEM ? strerror(ENOMEM) : "");
		return -MRCCTL_EXIT_REFUSED;
	}
	return r;
}

static void mrcctl_gathering_progress(const struct mrcctl_gathering *gathering, uint64_t left_ns)
{
	if (gathering->has_progress)
		fprintf(stderr, "\r%zu of %" PRIu64 " messages, %" PRIu64 " s left \033[K",
			gathering->trace.count, gathering->options->count,
			(left_ns + MRCCTL_S_NS - 1) / MRCCTL_S_NS);
}

static void mrcctl_gathering_sleep(struct mrcctl_gathering *gathering, uint64_t left_ns)
{
	struct pollfd fd = {.fd = gathering->signal_fd, .events = POLLIN};
	uint64_t sleep_ns = left_ns < MRC_TRACE_ASK_NS ? left_ns : MRC_TRACE_ASK_NS;
	struct timespec timeout = {.tv_nsec = (long)sleep_ns};

	gathering->is_interrupted = ppoll(&fd, 1, &timeout, NULL) > 0;
}

/* Until there are enough, time is up, the channel has ended, or somebody says so. 0, or the exit status. */
static int mrcctl_gathering_run(struct mrcctl_gathering *gathering)
{
	uint64_t end_ns = mrcctl_now_ns() + gathering->options->seconds * MRCCTL_S_NS, now_ns;
	int r;

	for (;;) {
		r = mrcctl_gathering_ask(gathering, gathering->options->every);
		now_ns = mrcctl_now_ns();
		if (r < 0)
			return -r;
		if (gathering->trace.count >= gathering->options->count || now_ns >= end_ns ||
		    gathering->is_interrupted || (r == 0 && gathering->trace.is_ended))
			return 0;
		mrcctl_gathering_progress(gathering, end_ns - now_ns);
		mrcctl_gathering_sleep(gathering, r > 0 ? 0 : end_ns - now_ns);
	}
}

static size_t mrcctl_terminal_width(void)
{
	struct winsize size;

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 0)
		return size.ws_col;
	return MRCCTL_TRACE_WIDTH;
}

static void mrcctl_trace_show(const struct mrcctl_trace_options *options,
			      const struct mrc_trace *trace)
{
	bool has_colour = mrcctl_table_wants_colour(stdout);

	printf("channel %" PRIu64 " to %s/%s: %zu message%s, 1 in %" PRIu64 "\n", trace->channel,
	       trace->peer, trace->service, trace->count, trace->count == 1 ? "" : "s",
	       trace->every);
	if (trace->count == 0)
		printf("none was sent and ended in this time\n");
	putchar('\n');
	mrcctl_trace_show_bars(trace,
			       options->is_count_given ? MRCCTL_TRACE_COUNT_MAX : MRCCTL_TRACE_BARS,
			       mrcctl_terminal_width(), stdout, has_colour);
	if (trace->count > 0)
		putchar('\n');
	mrcctl_trace_show_table(trace, stdout, has_colour);
}

static int mrcctl_trace_write_perfetto(const struct mrc_trace *trace, FILE *out, const char *name)
{
	char host[MRC_TRACE_NAME_BYTES] = "this host";
	int r;

	gethostname(host, sizeof(host) - 1);
	r = mrcctl_trace_perfetto(trace, host, out);
	if (out != stdout && fclose(out) != 0 && r == 0)
		r = -errno;
	if (r < 0)
		fprintf(stderr, "mrcctl: cannot write %s: %s\n", name, strerror(-r));
	return r < 0 ? MRCCTL_EXIT_REFUSED : 0;
}

static int mrcctl_trace_write_json(const struct mrc_trace *trace)
{
	json_t *json = mrcctl_trace_json(trace);

	if (json == NULL) {
		fprintf(stderr, "mrcctl: %s\n", strerror(ENOMEM));
		return MRCCTL_EXIT_REFUSED;
	}
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
	return 0;
}

/* What was asked for of what was gathered. `perfetto` is given away; NULL: none. */
static int mrcctl_trace_write(const struct mrcctl_trace_options *options,
			      const struct mrc_trace *trace, FILE *perfetto, bool is_json)
{
	bool is_on_stdout = perfetto == stdout;
	int r = 0;

	if (perfetto != NULL)
		r = mrcctl_trace_write_perfetto(trace, perfetto, options->perfetto);
	if (r == 0 && is_json)
		r = mrcctl_trace_write_json(trace);
	else if (r == 0 && !is_on_stdout)
		mrcctl_trace_show(options, trace);
	if (r == 0 && fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		r = MRCCTL_EXIT_REFUSED;
	}
	return r;
}

int mrcctl_trace(const char *socket, const struct mrcctl_trace_options *options, bool is_json)
{
	struct mrcctl_gathering gathering = {.socket = socket,
					     .options = options,
					     .has_progress = isatty(STDERR_FILENO)};
	FILE *perfetto = NULL;
	int r, written;

	/* Before the time is spent on gathering. */
	if (options->perfetto != NULL) {
		perfetto = strcmp(options->perfetto, "-") == 0 ? stdout
							       : fopen(options->perfetto, "we");
		if (perfetto == NULL) {
			fprintf(stderr, "mrcctl: cannot write %s: %s\n", options->perfetto,
				strerror(errno));
			return MRCCTL_EXIT_REFUSED;
		}
	}
	mrc_trace_init(&gathering.trace, options->count);
	gathering.signal_fd = mrcctl_signals_catch();
	r = mrcctl_gathering_run(&gathering);
	if (gathering.has_progress)
		fprintf(stderr, "\r\033[K");
	if (r == 0)
		r = -mrcctl_gathering_ask(&gathering, 0);
	mrcctl_signals_let(gathering.signal_fd);
	/* A daemon that ends leaves what was gathered; the exit status tells. */
	if (r == 0 || gathering.trace.count > 0) {
		written = mrcctl_trace_write(options, &gathering.trace, perfetto, is_json);
		r = r != 0 ? r : written;
	} else if (perfetto != NULL && perfetto != stdout) {
		fclose(perfetto);
	}
	mrc_trace_fini(&gathering.trace);
	return r;
}
