/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "mrcctl_ask.h"
#include "mrcctl_drill_picture.h"
#include "mrcctl_drill_report.h"
#include "mrcctl_drill_stream.h"
#include "mrcctl_field.h"
#include "mrcctl_session.h"
#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define MS              1000000ULL
#define S               1000000000ULL

#define POLL_MS         25
#define LEASE_NS        (2 * S)
#define LOOK_NS         (500 * MS) /* what flows without us is measured for so long */
#define STREAM_NS       (4 * S)    /* our own stream has to flow by then */
#define WARM_NS         S          /* and is at its rate so much later */
#define BEFORE_NS       S
#define WHOLE_NS        (3 * S)  /* so long a path that has just left service may take to be back */
#define SETTLE_NS       (15 * S) /* the rail has to be back by then */
#define WATCH_KEPT_NS   (3 * S)
#define RESULTS_MAX     MRCCTL_DRILL_RAILS_MAX
#define INTERFACE_BYTES 32

/* Among answers that are exit statuses: it did not begin, and the drill can do without. */
#define MRCCTL_DRILL_NO_STREAM (-1)

struct mrcctl_drill {
	const char *socket;
	const struct mrcctl_drill_options *options;
	struct mrcctl_drill_record record;
	struct mrcctl_drill_stream stream;
	struct mrcctl_drill_verdict verdict;
	bool has_verdict;
	struct mrcctl_drill_result *results; /* ours; RESULTS_MAX */
	size_t result_count;
	uint64_t session; /* 0: none is open */
	int signal_fd;
	uint32_t interrupts;
	uint32_t rails_left; /* of all in turn: those that were not drilled */
	bool is_left;        /* a link is still down, and we wait no longer */
	bool has_progress;   /* stderr is a terminal: a line there is overwritten */
};

/* ---- words ---- */

static void mrcctl_drill_progress(const struct mrcctl_drill *drill, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void mrcctl_drill_progress(const struct mrcctl_drill *drill, const char *format, ...)
{
	va_list args;

	if (!drill->has_progress)
		return;
	fputc('\r', stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\033[K", stderr);
}

static void mrcctl_drill_progress_clear(const struct mrcctl_drill *drill)
{
	if (drill->has_progress)
		fputs("\r\033[K", stderr);
}

static unsigned long long mrcctl_drill_seconds(uint64_t ns)
{
	return (ns + S - 1) / S;
}

/* ---- asking ---- */

/* Steals `question`. 0, or the exit status. */
static int mrcctl_drill_ask(struct mrcctl_drill *drill, json_t *question)
{
	json_t *state;
	int r;

	if (question == NULL) {
		fprintf(stderr, "mrcctl: a name is not valid UTF-8\n");
		return MRCCTL_EXIT_USAGE;
	}
	r = mrcctl_ask(drill->socket, question, &state);
	json_decref(question);
	if (r != 0)
		return r;
	r = mrcctl_drill_record_take(&drill->record, state);
	json_decref(state);
	if (r == 0)
		return 0;
	fprintf(stderr, "mrcctl: the daemon's answer to drill is not understood%s%s\n",
		r == -ENOMEM ? ": " : "", r == -ENOMEM ? strerror(ENOMEM) : "");
	return MRCCTL_EXIT_REFUSED;
}

static int mrcctl_drill_do(struct mrcctl_drill *drill, const char *what)
{
	return mrcctl_drill_ask(drill, json_pack("{s:s s:s s:I}", "command", "drill", "do", what,
						 "session", (json_int_t)drill->session));
}

static uint64_t mrcctl_drill_now(const struct mrcctl_drill *drill)
{
	return drill->record.samples[drill->record.sample_count - 1].t_ns;
}

/* The next sample. 0, or the exit status. */
static int mrcctl_drill_step(struct mrcctl_drill *drill)
{
	struct pollfd fd = {.fd = drill->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&fd, 1, POLL_MS) > 0 && read(drill->signal_fd, &info, sizeof(info)) > 0)
		drill->interrupts++;
	return mrcctl_drill_do(drill, "renew");
}

/* Samples for so long, or until somebody interrupts. */
static int mrcctl_drill_look(struct mrcctl_drill *drill, uint64_t span_ns, const char *what)
{
	uint64_t end_ns = mrcctl_drill_now(drill) + span_ns;
	int r = 0;

	while (r == 0 && mrcctl_drill_now(drill) < end_ns && drill->interrupts == 0) {
		mrcctl_drill_progress(drill, "%s: %llu s left", what,
				      mrcctl_drill_seconds(end_ns - mrcctl_drill_now(drill)));
		r = mrcctl_drill_step(drill);
	}
	return r;
}

/* ---- signals ---- */

static int mrcctl_drill_signals_catch(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- before it begins ---- */

/* Is there such a rail (NULL: any)? "" is the interface of one that has none. 0, or the exit status. */
static int mrcctl_drill_rail_find(const char *socket, const char *rail,
				  char interface_out[INTERFACE_BYTES])
{
	json_t *question = json_pack("{s:s}", "command", "rails"), *rails, *item;
	bool is_there = rail == NULL;
	size_t i;
	int r = mrcctl_ask(socket, question, &rails);

	json_decref(question);
	if (r != 0)
		return r;
	interface_out[0] = '\0';
	json_array_foreach(rails, i, item)
	{
		if (rail == NULL || strcmp(mrcctl_text(item, "name"), rail) != 0)
			continue;
		is_there = true;
		snprintf(interface_out, INTERFACE_BYTES, "%s", mrcctl_text(item, "interface"));
	}
	json_decref(rails);
	if (!is_there)
		fprintf(stderr, "mrcctl: there is no rail \"%s\"\n", rail);
	return is_there ? 0 : MRCCTL_EXIT_REFUSED;
}

static void mrcctl_drill_say_plan(const struct mrcctl_drill_options *options)
{
	char span[MRCCTL_UNIT_BYTES];

	if (options->is_all)
		fprintf(stderr, "Each rail of this host, one after the other, ");
	else
		fprintf(stderr, "Rail %s of this host ", options->rail);
	mrcctl_unit_span(options->duration_ns, span);
	if (options->fault == MRCCTL_DRILL_SLOW)
		fprintf(stderr, "will send at 1/%" PRIu64 " of its rate for %s.\n", options->times,
			span);
	else if (options->fault == MRCCTL_DRILL_SILENCE)
		fprintf(stderr, "will drop all it sends and gets for %s, and tell nobody.\n", span);
	else if (options->is_link)
		fprintf(stderr,
			"will have its link really taken down for %s: nothing else passes "
			"there either.\n",
			span);
	else
		fprintf(stderr, "will be as if it had no carrier for %s.\n", span);
	fprintf(stderr, "What it carries moves to other rails; afterwards it is given back.\n");
}

/* 0: go on. */
static int mrcctl_drill_confirm(const struct mrcctl_drill_options *options)
{
	char answer[16];

	if (options->is_yes)
		return 0;
	if (!isatty(STDIN_FILENO)) {
		fprintf(stderr, "mrcctl: a drill takes a rail out of service for a while, and here "
				"is no terminal to ask on: say --yes\n");
		return MRCCTL_EXIT_REFUSED;
	}
	mrcctl_drill_say_plan(options);
	fprintf(stderr, "Go on? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	fprintf(stderr, "mrcctl: nothing was done\n");
	return MRCCTL_EXIT_REFUSED;
}

static int mrcctl_drill_open(struct mrcctl_drill *drill)
{
	int r = mrcctl_drill_ask(drill, json_pack("{s:s s:s s:I}", "command", "drill", "do", "open",
						  "lease_ns", (json_int_t)LEASE_NS));

	if (r == 0)
		drill->session = drill->record.session;
	return r;
}

/* ---- what flows ---- */

static bool mrcctl_drill_flows(const struct mrcctl_drill *drill)
{
	uint64_t now_ns = mrcctl_drill_now(drill);

	return mrcctl_drill_rate(&drill->record, UINT32_MAX, now_ns - LOOK_NS, now_ns) >=
	       MRCCTL_DRILL_RATE_MIN;
}

/* Begin a stream to this peer and wait until it flows. NO_STREAM: it does not, and text says why; else as mrcctl_drill_look(). */
static int mrcctl_drill_stream_try(struct mrcctl_drill *drill, const char *peer, char *text,
				   size_t text_bytes)
{
	uint64_t end_ns = mrcctl_drill_now(drill) + STREAM_NS;
	int r = mrcctl_drill_stream_start(&drill->stream, drill->socket, peer,
					  drill->options->pace);
	bool does_flow = false;

	snprintf(text, text_bytes, "%s", r < 0 ? strerror(-r) : "it does not flow");
	if (r < 0) {
		mrcctl_drill_stream_fini(&drill->stream);
		return MRCCTL_DRILL_NO_STREAM;
	}
	while (r == 0 && !does_flow && drill->interrupts == 0 && mrcctl_drill_now(drill) < end_ns &&
	       !mrcctl_drill_stream_has_ended(&drill->stream, text, text_bytes)) {
		mrcctl_drill_progress(drill, "a test stream to %s begins", peer);
		r = mrcctl_drill_step(drill);
		does_flow = mrcctl_drill_flows(drill);
	}
	if (r == 0 && does_flow)
		return mrcctl_drill_look(drill, WARM_NS, "the test stream warms up");
	mrcctl_drill_stream_fini(&drill->stream);
	return r == 0 && drill->interrupts == 0 ? MRCCTL_DRILL_NO_STREAM : r;
}

/* The peers, one after the other, until one has somebody who takes a stream. */
static int mrcctl_drill_stream_find(struct mrcctl_drill *drill)
{
	json_t *question = json_pack("{s:s}", "command", "peers"), *peers, *peer;
	char text[256] = "";
	size_t i;
	int r = mrcctl_ask(drill->socket, question, &peers), found = MRCCTL_DRILL_NO_STREAM;

	json_decref(question);
	if (r != 0)
		return r;
	json_array_foreach(peers, i, peer)
	{
		const char *name = json_string_value(json_object_get(peer, "name"));

		if (found == MRCCTL_DRILL_NO_STREAM && name != NULL)
			found = mrcctl_drill_stream_try(drill, name, text, sizeof(text));
	}
	json_decref(peers);
	mrcctl_drill_progress_clear(drill);
	if (found != MRCCTL_DRILL_NO_STREAM)
		return found;
	fprintf(stderr,
		"mrcctl: little flows, and no peer takes a test stream: rates and stalls are not "
		"measured (run mrcctl drill --serve there)%s%s\n",
		text[0] != '\0' ? "; " : "", text);
	return 0;
}

static int mrcctl_drill_stream_settle(struct mrcctl_drill *drill)
{
	const struct mrcctl_drill_options *options = drill->options;
	char text[256];
	int r;

	if (options->stream != NULL && strcmp(options->stream, "none") == 0)
		return mrcctl_drill_look(drill, LOOK_NS, "looking at what flows");
	if (options->stream != NULL) {
		r = mrcctl_drill_stream_try(drill, options->stream, text, sizeof(text));
		if (r != MRCCTL_DRILL_NO_STREAM)
			return r;
		mrcctl_drill_progress_clear(drill);
		fprintf(stderr, "mrcctl: no test stream to %s: %s\n", options->stream, text);
		return MRCCTL_EXIT_REFUSED;
	}
	r = mrcctl_drill_look(drill, LOOK_NS, "looking at what flows");
	if (r != 0 || mrcctl_drill_flows(drill) || drill->interrupts > 0)
		return r;
	return mrcctl_drill_stream_find(drill);
}

/* ---- one rail ---- */

/* The link by which whoever asks came in is not to be taken from under him. 0, or the exit status. */
static int mrcctl_drill_spare_session(const struct mrcctl_drill *drill, const char *rail)
{
	char address[MRCCTL_SESSION_TEXT_BYTES], interface[INTERFACE_BYTES];
	int r = mrcctl_drill_rail_find(drill->socket, rail, interface);

	if (r != 0 || !mrcctl_session_is_over("/proc", getpid(), interface, address))
		return r;
	mrcctl_drill_progress_clear(drill);
	fprintf(stderr,
		"mrcctl: rail %s: you came in by ssh over %s (%s), and would stand still with its "
		"link: come another way, or say --force\n",
		rail, interface, address);
	return MRCCTL_EXIT_REFUSED;
}

static int mrcctl_drill_break(struct mrcctl_drill *drill, const char *rail)
{
	const struct mrcctl_drill_options *options = drill->options;

	mrcctl_drill_progress_clear(drill);
	return mrcctl_drill_ask(drill,
				json_pack("{s:s s:s s:I s:s s:s s:I s:I s:b s:b}", "command",
					  "drill", "do", "break", "session",
					  (json_int_t)drill->session, "rail", rail, "fault",
					  mrcctl_drill_fault_name(options->fault), "duration_ns",
					  (json_int_t)options->duration_ns, "times",
					  (json_int_t)options->times, "link", (int)options->is_link,
					  "force", (int)options->is_forced));
}

/* A link that does not come up: say how things stand, and leave the rest to the daemon. */
static int mrcctl_drill_leave(struct mrcctl_drill *drill, const char *rail)
{
	const struct mrcctl_drill_record *record = &drill->record;

	drill->is_left = true;
	mrcctl_drill_progress_clear(drill);
	fprintf(stderr,
		"mrcctl: rail %s: %s is not up again%s%s. The daemon goes on trying, every second, "
		"and so does the one that follows it. By hand: ip link set %s up\n",
		rail, record->interface, record->error[0] != '\0' ? ": " : "", record->error,
		record->interface);
	return MRCCTL_EXIT_REFUSED;
}

/* Until the fault is over. */
static int mrcctl_drill_suffer(struct mrcctl_drill *drill, const char *rail)
{
	const struct mrcctl_drill_record *record = &drill->record;
	uint64_t mended_ns = 0;
	int r = 0;

	while (r == 0 && !record->is_idle) {
		uint64_t end_ns = record->began_ns + drill->options->duration_ns;
		uint64_t now_ns = mrcctl_drill_now(drill);

		if (record->is_link && mended_ns == 0 && record->is_ending)
			mended_ns = now_ns;
		if (record->is_link && mended_ns != 0 &&
		    (drill->interrupts > 1 || now_ns > mended_ns + SETTLE_NS))
			return mrcctl_drill_leave(drill, rail);
		if (record->is_link && mended_ns != 0)
			mrcctl_drill_progress(drill, "rail %s: %s comes up%s%s", rail,
					      record->interface,
					      record->error[0] != '\0' ? ": " : "", record->error);
		else
			mrcctl_drill_progress(drill, "rail %s: %s, %llu s left", rail,
					      mrcctl_drill_fault_name(drill->options->fault),
					      mrcctl_drill_seconds(end_ns > now_ns ? end_ns - now_ns
										   : 0));
		r = mrcctl_drill_step(drill);
		if (r == 0 && drill->interrupts > 0 && mended_ns == 0) {
			mended_ns = mrcctl_drill_now(drill);
			r = mrcctl_drill_do(drill, "mend");
		}
	}
	if (r == 0 && drill->record.error[0] != '\0') {
		mrcctl_drill_progress_clear(drill);
		fprintf(stderr, "mrcctl: rail %s: %s\n", rail, drill->record.error);
		return MRCCTL_EXIT_REFUSED;
	}
	return r;
}

/* What left service a moment ago, as after the drill before, is no reason to refuse this one. */
static int mrcctl_drill_await_whole(struct mrcctl_drill *drill)
{
	uint64_t end_ns = mrcctl_drill_now(drill) + WHOLE_NS;
	int r = 0;

	while (r == 0 && drill->interrupts == 0 && mrcctl_drill_now(drill) < end_ns &&
	       !mrcctl_drill_is_whole(&drill->record, UINT32_MAX))
		r = mrcctl_drill_step(drill);
	return r;
}

static int mrcctl_drill_rail(struct mrcctl_drill *drill, const char *rail)
{
	uint64_t first_ns = mrcctl_drill_now(drill);
	char what[96];
	int r;

	snprintf(what, sizeof(what), "rail %.60s: before", rail);
	r = drill->options->is_link && !drill->options->is_forced
		    ? mrcctl_drill_spare_session(drill, rail)
		    : 0;
	if (r == 0)
		r = mrcctl_drill_look(drill, BEFORE_NS, what);
	if (r == 0 && !drill->options->is_forced)
		r = mrcctl_drill_await_whole(drill);
	if (r != 0 || drill->interrupts > 0)
		return r;
	r = mrcctl_drill_break(drill, rail);
	if (r == 0)
		r = mrcctl_drill_suffer(drill, rail);
	while (r == 0 && drill->interrupts == 0 &&
	       !mrcctl_drill_is_over(&drill->record, rail, first_ns) &&
	       mrcctl_drill_now(drill) < drill->record.ended_ns + SETTLE_NS) {
		mrcctl_drill_progress(drill, "rail %s: after", rail);
		r = mrcctl_drill_step(drill);
	}
	if (r == 0)
		mrcctl_drill_result_make(&drill->record, drill->options, rail, first_ns,
					 &drill->results[drill->result_count++]);
	return r;
}

/* A rail that the daemon spares, as the last that leads to some peer, is passed over; what ails the host ends it. */
static int mrcctl_drill_all(struct mrcctl_drill *drill)
{
	uint32_t rail_count = drill->record.rail_count;
	int r = 0, refused = 0;

	for (uint32_t i = 0; i < rail_count && r == 0 && drill->interrupts == 0; i++) {
		r = mrcctl_drill_rail(drill, drill->record.rails[i]);
		if (r != MRCCTL_EXIT_REFUSED || drill->is_left ||
		    !mrcctl_drill_is_whole(&drill->record, UINT32_MAX))
			continue;
		refused = r;
		r = 0;
	}
	drill->rails_left = rail_count - (uint32_t)drill->result_count;
	return r != 0 ? r : refused;
}

/* ---- somebody else breaks it ---- */

/* A rail that somebody took away while we watch. */
struct mrcctl_drill_away {
	char rail[MRCCTL_DRILL_NAME_BYTES];
	uint64_t began_ns, ended_ns; /* 0: it has not been mended */
};

struct mrcctl_drill_watch {
	struct mrcctl_drill_away away[RESULTS_MAX];
	size_t count, events_seen;
};

/* When it was mended last: its carrier came back, or, if it never went, its paths did. 0: not yet. */
static uint64_t mrcctl_drill_watch_mended(const struct mrcctl_drill_record *record,
					  const struct mrcctl_drill_away *away)
{
	uint32_t index = mrcctl_drill_record_rail(record, away->rail);
	bool was_lost = false, is_lost = false;
	uint64_t back_ns = 0;

	for (size_t i = 0; i < record->sample_count; i++) {
		const struct mrcctl_drill_sample *sample = &record->samples[i];

		if (sample->t_ns < away->began_ns)
			continue;
		if (is_lost && sample->rails[index].has_carrier)
			back_ns = sample->t_ns;
		is_lost = !sample->rails[index].has_carrier;
		was_lost = was_lost || is_lost;
	}
	if (is_lost || !mrcctl_drill_is_whole(record, index))
		return 0;
	for (size_t i = 0; i < record->event_count && !was_lost; i++) {
		if (record->events[i].is_good && strcmp(record->events[i].rail, away->rail) == 0)
			back_ns = record->events[i].t_ns;
	}
	return back_ns;
}

/* Take in what befell since the last time, and say it. */
static void mrcctl_drill_watch_take(struct mrcctl_drill *drill, struct mrcctl_drill_watch *watch)
{
	const struct mrcctl_drill_record *record = &drill->record;

	for (; watch->events_seen < record->event_count; watch->events_seen++) {
		const struct mrcctl_drill_event *event = &record->events[watch->events_seen];
		bool is_known = false;

		if (event->was_good == event->is_good)
			continue;
		for (size_t i = 0; i < watch->count; i++)
			is_known = is_known || strcmp(watch->away[i].rail, event->rail) == 0;
		if (!is_known && !event->is_good && watch->count < RESULTS_MAX) {
			struct mrcctl_drill_away *away = &watch->away[watch->count++];

			memcpy(away->rail, event->rail, sizeof(away->rail));
			away->began_ns =
				event->t_ns -
				(strcmp(event->reason, "silent") == 0 ? event->quiet_ns : 0);
			away->ended_ns = 0;
			is_known = true;
		}
		if (!is_known)
			continue;
		mrcctl_drill_progress_clear(drill);
		if (event->is_good)
			fprintf(stderr, "rail %s to %s is back\n", event->rail, event->peer);
		else
			fprintf(stderr,
				"rail %s to %s left service (%s), %" PRIu64 " fragment%s moved\n",
				event->rail, event->peer, event->reason, event->moved,
				event->moved == 1 ? "" : "s");
	}
}

/* Make the record that of one rail, as if it alone had been drilled. */
static void mrcctl_drill_watch_turn_to(struct mrcctl_drill_record *record,
				       const struct mrcctl_drill_away *away)
{
	record->began_ns = away->began_ns;
	record->ended_ns = away->ended_ns;
}

/* Is there nothing more to see: all rails that went are back and do what they did, or long ought to? */
static bool mrcctl_drill_watch_is_over(struct mrcctl_drill *drill, struct mrcctl_drill_watch *watch,
				       uint64_t first_ns)
{
	struct mrcctl_drill_record *record = &drill->record;
	const char *away_now = NULL;
	uint64_t now_ns = mrcctl_drill_now(drill), since_ns = now_ns;
	bool is_over = true;

	for (size_t i = 0; i < watch->count; i++) {
		struct mrcctl_drill_away *away = &watch->away[i];

		away->ended_ns = mrcctl_drill_watch_mended(record, away);
		mrcctl_drill_watch_turn_to(record, away);
		if (away->ended_ns == 0) {
			away_now = away->rail;
			since_ns = away->began_ns;
		}
		is_over = is_over && away->ended_ns != 0 &&
			  (mrcctl_drill_is_over(record, away->rail, first_ns) ||
			   now_ns > away->ended_ns + SETTLE_NS);
	}
	if (away_now != NULL)
		mrcctl_drill_progress(drill, "rail %s went %llu s ago", away_now,
				      mrcctl_drill_seconds(now_ns - since_ns));
	else
		mrcctl_drill_progress(drill, "all is back; looking whether it stays so");
	return is_over;
}

static int mrcctl_drill_watch(struct mrcctl_drill *drill)
{
	struct mrcctl_drill_record *record = &drill->record;
	struct mrcctl_drill_watch watch = {.events_seen = record->event_count};
	uint64_t first_ns;
	int r = 0;

	if (!mrcctl_drill_is_whole(record, UINT32_MAX))
		fprintf(stderr, "mrcctl: not all paths are in service now (mrcctl paths)\n");
	fprintf(stderr, "watching: take a rail away and put it back; Ctrl-C ends\n");
	while (r == 0 && drill->interrupts == 0 && watch.count == 0) {
		mrcctl_drill_record_forget(record, mrcctl_drill_now(drill) - WATCH_KEPT_NS);
		mrcctl_drill_progress(drill, "all is well");
		r = mrcctl_drill_step(drill);
		mrcctl_drill_watch_take(drill, &watch);
	}
	first_ns = record->samples[0].t_ns;
	while (r == 0 && watch.count > 0 && drill->interrupts == 0 &&
	       !mrcctl_drill_watch_is_over(drill, &watch, first_ns)) {
		r = mrcctl_drill_step(drill);
		mrcctl_drill_watch_take(drill, &watch);
	}
	record->is_several = watch.count > 1;
	for (size_t i = 0; r == 0 && i < watch.count; i++) {
		watch.away[i].ended_ns = mrcctl_drill_watch_mended(record, &watch.away[i]);
		mrcctl_drill_watch_turn_to(record, &watch.away[i]);
		mrcctl_drill_result_make(record, drill->options, watch.away[i].rail, first_ns,
					 &drill->results[drill->result_count++]);
	}
	return r;
}

/* ---- what came of it ---- */

static void mrcctl_drill_stream_judge(struct mrcctl_drill *drill)
{
	const struct mrcctl_drill_verdict *v = &drill->verdict;
	struct mrcctl_drill_result *last;

	if (drill->stream.out == NULL)
		return;
	/* It ends when all that it sent has been answered; who interrupts twice does not wait for that. */
	if (drill->interrupts > 1)
		mrcctl_drill_stream_abort(&drill->stream);
	drill->has_verdict = mrcctl_drill_stream_stop(&drill->stream, &drill->verdict) == 0;
	if (drill->result_count == 0)
		return;
	last = &drill->results[drill->result_count - 1];
	if (!drill->has_verdict) {
		mrcctl_drill_problem(last, "the test stream did not say what it saw");
		return;
	}
	for (size_t i = 0; i < drill->result_count; i++)
		mrcctl_drill_stream_stalls(&drill->stream, &drill->results[i]);
	if (v->lost + v->duplicated + v->reordered + v->corrupted > 0)
		mrcctl_drill_problem(last,
				     "of the test stream %" PRIu64 " were lost, %" PRIu64
				     " duplicated, %" PRIu64 " reordered, %" PRIu64 " corrupted",
				     v->lost, v->duplicated, v->reordered, v->corrupted);
	if (v->bad_outcomes + v->unchecked > 0)
		mrcctl_drill_problem(last,
				     "of the test stream %" PRIu64 " failed, %" PRIu64
				     " could not be checked",
				     v->bad_outcomes, v->unchecked);
}

/* Before anything is broken: what cannot be written is said then. Nothing that is there is lost until it is drawn. */
static FILE *mrcctl_drill_picture_open(const char *name, bool *is_ours_out)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *picture;

	*is_ours_out = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(name, O_WRONLY | O_CLOEXEC);
	picture = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (picture == NULL)
		fprintf(stderr, "mrcctl: cannot write %s: %s\n", name, strerror(errno));
	if (picture == NULL && fd >= 0)
		close(fd);
	return picture;
}

static int mrcctl_drill_write(struct mrcctl_drill *drill, FILE *picture, bool is_json)
{
	struct mrcctl_drill_report report = {
		.results = drill->results,
		.result_count = drill->result_count,
		.rails_left = drill->rails_left,
		.stream = drill->stream.peer,
		.verdict = drill->has_verdict ? &drill->verdict : NULL,
	};
	json_t *json;
	int r = 0;

	for (size_t i = 0; i < drill->result_count; i++)
		drill->results[i].began_unix_us =
			(drill->results[i].began_ns + (uint64_t)mrcctl_drill_wall_offset_ns()) /
			1000;
	/* What cannot be cut, as a pipe, has nothing in it. */
	if (picture != NULL && ftruncate(fileno(picture), 0) < 0 && errno != EINVAL)
		r = -errno;
	else if (picture != NULL)
		r = mrcctl_drill_picture(&drill->record, drill->results, drill->result_count,
					 picture);
	if (r < 0)
		fprintf(stderr, "mrcctl: cannot write %s: %s\n", drill->options->picture,
			strerror(-r));
	if (is_json) {
		json = mrcctl_drill_report_json(&report, &drill->record);
		if (json != NULL)
			json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(json);
	} else {
		mrcctl_drill_report_text(&report, stdout, mrcctl_table_wants_colour(stdout));
	}
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		r = -errno;
	}
	return r == 0 && mrcctl_drill_report_is_passed(&report) ? 0 : MRCCTL_EXIT_REFUSED;
}

static int mrcctl_drill_run(struct mrcctl_drill *drill)
{
	const struct mrcctl_drill_options *options = drill->options;
	int r = mrcctl_drill_stream_settle(drill);

	if (r != 0 || drill->interrupts > 0)
		return r;
	if (options->is_watch)
		return mrcctl_drill_watch(drill);
	return options->is_all ? mrcctl_drill_all(drill) : mrcctl_drill_rail(drill, options->rail);
}

int mrcctl_drill(const char *socket, const struct mrcctl_drill_options *options, bool is_json)
{
	struct mrcctl_drill drill = {.socket = socket,
				     .options = options,
				     .has_progress = isatty(STDERR_FILENO)};
	char interface[INTERFACE_BYTES];
	FILE *picture = NULL;
	bool is_ours = false; /* the picture's file is new */
	int r = 0, written;

	if (options->is_serve) {
		r = mrcctl_drill_serve(socket);
		fprintf(stderr, "mrcctl: mrc-perf cannot be run: %s\n", strerror(-r));
		return MRCCTL_EXIT_REFUSED;
	}
	if (!options->is_watch)
		r = mrcctl_drill_rail_find(socket, options->rail, interface);
	if (r == 0 && !options->is_watch)
		r = mrcctl_drill_confirm(options);
	if (r != 0)
		return r;
	if (options->picture != NULL) {
		picture = mrcctl_drill_picture_open(options->picture, &is_ours);
		if (picture == NULL)
			return MRCCTL_EXIT_REFUSED;
	}
	drill.results = calloc(RESULTS_MAX, sizeof(*drill.results));
	if (drill.results == NULL)
		abort();
	mrcctl_drill_record_init(&drill.record);
	drill.signal_fd = mrcctl_drill_signals_catch();
	r = mrcctl_drill_open(&drill);
	if (r == 0) {
		r = mrcctl_drill_run(&drill);
		mrcctl_drill_progress_clear(&drill);
		if (r != MRCCTL_EXIT_UNREACHED)
			mrcctl_drill_do(&drill, "close");
	}
	mrcctl_drill_stream_judge(&drill);
	if (drill.interrupts > 0 && options->is_watch)
		fprintf(stderr, "mrcctl: interrupted; %s\n",
			drill.result_count > 0 ? "this is what was seen by then"
					       : "no rail went meanwhile");
	else if (drill.interrupts > 0 && !drill.is_left)
		fprintf(stderr, "mrcctl: interrupted; the daemon gives the rail back\n");
	if (drill.result_count > 0) {
		written = mrcctl_drill_write(&drill, picture, is_json);
		r = r != 0 ? r : written;
	} else if (r == 0) {
		r = MRCCTL_EXIT_REFUSED;
	}
	if (picture != NULL && fclose(picture) != 0 && r == 0) {
		fprintf(stderr, "mrcctl: cannot write %s: %s\n", options->picture, strerror(errno));
		r = MRCCTL_EXIT_REFUSED;
	}
	if (is_ours && drill.result_count == 0)
		unlink(options->picture);
	mrcctl_drill_stream_fini(&drill.stream);
	mrcctl_drill_record_fini(&drill.record);
	free(drill.results);
	close(drill.signal_fd);
	return r;
}
