/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl - look into a running mrcd and take rails, or the host, out of service
 *
 * Exit status: 0 done, 1 the daemon says no, doctor found something or a
 * drill failed, 2 usage, 3 the daemon cannot be reached, 4 the host is not
 * drained yet.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_ask.h"
#include "mrcctl_command.h"
#include "mrcctl_complete.h"
#include "mrcctl_doctor.h"
#include "mrcctl_drain.h"
#include "mrcctl_drill.h"
#include "mrcctl_events.h"
#include "mrcctl_keys.h"
#include "mrcctl_reload.h"
#include "mrcctl_show.h"
#include "mrcctl_table.h"
#include "mrcctl_top.h"
#include "mrcctl_trace.h"

const struct mrcctl_command mrcctl_commands[] = {
	{"status", MRCCTL_ALONE, mrcctl_show_status, "how the daemon is, in a few lines"},
	{"rails", MRCCTL_ALONE, mrcctl_show_rails,
	 "this host's rails: carrier, traffic, strangers"},
	{"peers", MRCCTL_ALONE, mrcctl_show_peers, "the peer hosts: paths, channels, messages"},
	{"paths", MRCCTL_ALONE, mrcctl_show_paths, "each path: state, delay, rate, failures"},
	{"channels", MRCCTL_ALONE, mrcctl_show_channels, "each channel of this host's programs"},
	{"clients", MRCCTL_ALONE, mrcctl_show_clients, "the programs attached to the daemon"},
	{"keys", MRCCTL_ALONE, mrcctl_show_keys,
	 "the keys shared with peers, and who lives by them"},
	{"reload", MRCCTL_ALONE, NULL, "read the configuration again"},
	{"events", MRCCTL_ALONE, NULL, "what befell paths, rails and peers"},
	{"top", MRCCTL_ALONE, NULL, "all of that and what happens, live on the terminal"},
	{"drain", MRCCTL_RAIL, mrcctl_show_drain,
	 "take RAIL or the host out of service; traffic moves away first"},
	{"undrain", MRCCTL_RAIL, mrcctl_show_drain, "give RAIL or the host back"},
	{"doctor", MRCCTL_ALONE, NULL, "what degrades in silence, why it matters, what to do"},
	{"trace", MRCCTL_CHANNEL, NULL, "how long messages to a peer take, stage by stage"},
	{"drill", MRCCTL_MAYBE_RAIL, NULL, "have RAIL fail for a while, and say what came of it"},
	{"fault", MRCCTL_WHAT_RAIL, mrcctl_show_fault, NULL},
};

const size_t mrcctl_command_count = sizeof(mrcctl_commands) / sizeof(mrcctl_commands[0]);

const struct mrcctl_option mrcctl_options[MRCCTL_OPTIONS_COUNT] = {
#define X(id, name, argument, commands, help) {name, argument, commands, help},
	MRCCTL_OPTIONS(X)
#undef X
};

/* What was asked for on the command line. */
struct mrcctl_asked {
	char socket[4096];
	bool is_given[MRCCTL_OPTIONS_COUNT];
	const char *texts[MRCCTL_OPTIONS_COUNT]; /* as given; NULL: none */
	const char *seconds; /* as given: trace and doctor read it; NULL: not given */
	struct mrcctl_trace_options trace;
	struct mrcctl_top_options top;
	struct mrcctl_drain_options drain;
};

static void mrcctl_usage(FILE *out)
{
	static const char *const arguments[] = {"", "RAIL | --host", "WHAT RAIL", "[PEER/]CHANNEL",
						"[RAIL]"};
	static const char *const shorts[MRCCTL_OPTIONS_COUNT] = {
		[MRCCTL_OPTION_HELP] = "-h,", [MRCCTL_OPTION_VERBOSE] = "-v,"};
	char text[40];

	fprintf(out, "Usage: mrcctl [OPTION]... COMMAND [WHAT] [RAIL|CHANNEL]\n\nCommands:\n");
	for (size_t i = 0; i < mrcctl_command_count; i++) {
		if (mrcctl_commands[i].help != NULL)
			fprintf(out, "  %-8s%-15s %s\n", mrcctl_commands[i].name,
				arguments[mrcctl_commands[i].takes], mrcctl_commands[i].help);
	}
	fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < MRCCTL_OPTIONS_COUNT; i++) {
		const struct mrcctl_option *option = &mrcctl_options[i];

		snprintf(text, sizeof(text), "--%s%s%s", option->name,
			 option->argument != NULL ? " " : "",
			 option->argument != NULL ? option->argument : "");
		fprintf(out, "  %-3s %-18s %s%s%s\n", shorts[i] != NULL ? shorts[i] : "", text,
			option->commands != NULL ? option->commands : "",
			option->commands != NULL ? ": " : "", option->help);
	}
	fprintf(out,
		"\nExit status: 0 done, 1 the daemon says no, doctor found something or a\n"
		"drill failed, 2 usage, 3 no daemon reached, 4 the host is not drained yet.\n");
}

/* The whole usage would push what is wrong off the screen. */
static int mrcctl_usage_hint(void)
{
	fprintf(stderr, "(mrcctl --help lists commands and options)\n");
	return MRCCTL_EXIT_USAGE;
}

static int mrcctl_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int mrcctl_usage_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "mrcctl: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return mrcctl_usage_hint();
}

const struct mrcctl_command *mrcctl_command_find(const char *name)
{
	for (size_t i = 0; i < mrcctl_command_count; i++) {
		if (strcmp(mrcctl_commands[i].name, name) == 0)
			return &mrcctl_commands[i];
	}
	return NULL;
}

bool mrcctl_option_goes_with(const struct mrcctl_option *option, const char *command)
{
	size_t len = strlen(command);

	for (const char *at = option->commands; at != NULL; at = strchr(at, '|')) {
		at += at[0] == '|' ? 1 : 0;
		if (strncmp(at, command, len) == 0 && (at[len] == '|' || at[len] == '\0'))
			return true;
	}
	return option->commands == NULL;
}

static int mrcctl_run(const struct mrcctl_asked *asked, const struct mrcctl_command *command,
		      const char *what, const char *rail)
{
	json_t *question = json_pack("{s:s}", "command", command->name), *result;
	int r;

	if (rail != NULL && json_object_set_new(question, "rail", json_string(rail)) < 0) {
		json_decref(question);
		fprintf(stderr, "mrcctl: the rail's name is not valid UTF-8\n");
		return MRCCTL_EXIT_USAGE;
	}
	if (what != NULL)
		json_object_set_new(question, "what", json_string(what));
	if (asked->is_given[MRCCTL_OPTION_FORCE])
		json_object_set_new(question, "force", json_true());
	r = mrcctl_ask(asked->socket, question, &result);
	json_decref(question);
	if (r != 0)
		return r;
	if (asked->is_given[MRCCTL_OPTION_JSON]) {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	} else {
		command->show(result, stdout, mrcctl_table_wants_colour(stdout));
	}
	json_decref(result);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		return MRCCTL_EXIT_REFUSED;
	}
	return EXIT_SUCCESS;
}

/* What an option says, but for those that end the program. 0, or the exit status. */
static int mrcctl_option_take(struct mrcctl_asked *asked, enum mrcctl_option_id id,
			      const char *text)
{
	char error[MRCCTL_TRACE_ERROR_BYTES];
	int r = 0;

	asked->is_given[id] = true;
	asked->texts[id] = text;
	switch (id) {
	case MRCCTL_OPTION_EVERY:
		r = mrcctl_trace_option_take(&asked->trace, MRCCTL_TRACE_EVERY, text, error);
		break;
	case MRCCTL_OPTION_COUNT:
		r = mrcctl_trace_option_take(&asked->trace, MRCCTL_TRACE_COUNT, text, error);
		break;
	case MRCCTL_OPTION_SECONDS:
		asked->seconds = text;
		break;
	case MRCCTL_OPTION_PERFETTO:
		asked->trace.perfetto = text;
		break;
	case MRCCTL_OPTION_INTERVAL:
		r = mrcctl_top_interval_parse(text, &asked->top.interval_ns);
		snprintf(error, sizeof(error), "--interval '%.64s': allowed is 100ms to 3600s",
			 text);
		break;
	case MRCCTL_OPTION_WAIT:
		r = mrcctl_drain_wait_take(text, &asked->drain.wait_ns);
		snprintf(error, sizeof(error),
			 "--wait '%.64s': allowed is 0s to a week, in ms, s, min or h", text);
		break;
	case MRCCTL_OPTION_SOCKET:
		snprintf(asked->socket, sizeof(asked->socket), "%s", text);
		break;
	case MRCCTL_OPTION_RUNTIME_DIR:
		snprintf(asked->socket, sizeof(asked->socket), "%s/control.sock", text);
		break;
	default:
		break; /* that it is given is all there is to it */
	}
	return r < 0 ? mrcctl_usage_error("%s", error) : 0;
}

/* The whole host instead of a rail. */
static bool mrcctl_is_of_host(const struct mrcctl_asked *asked,
			      const struct mrcctl_command *command)
{
	return command->takes == MRCCTL_RAIL && asked->is_given[MRCCTL_OPTION_HOST];
}

static int mrcctl_check_drain(const struct mrcctl_asked *asked, bool is_of_host)
{
	if (is_of_host && asked->is_given[MRCCTL_OPTION_FORCE])
		return mrcctl_usage_error("--force is for rails, not for --host");
	if (!is_of_host && asked->is_given[MRCCTL_OPTION_WAIT])
		return mrcctl_usage_error("--wait is for --host, not for rails");
	return 0;
}

/* What goes with what. 0, or the exit status. */
static int mrcctl_check(const struct mrcctl_asked *asked, const struct mrcctl_command *command,
			int argc, char **argv)
{
	static const int wanted[] = {1, 2, 3, 2, 2};
	bool is_of_host = mrcctl_is_of_host(asked, command);
	int given = argc - optind + (is_of_host ? 1 : 0); /* which is in the place of a rail */

	if (command->takes == MRCCTL_WHAT_RAIL && given < 2)
		return mrcctl_usage_error("%s: which one?", command->name);
	if (given < wanted[command->takes] && command->takes != MRCCTL_MAYBE_RAIL)
		return mrcctl_usage_error("%s: which %s?", command->name,
					  command->takes == MRCCTL_CHANNEL ? "channel" : "rail");
	if (given > wanted[command->takes])
		return mrcctl_usage_error("unexpected argument \"%s\"", argv[argc - 1]);
	for (size_t i = 0; i < MRCCTL_OPTIONS_COUNT; i++) {
		const struct mrcctl_option *option = &mrcctl_options[i];

		if (asked->is_given[i] && !mrcctl_option_goes_with(option, command->name))
			return mrcctl_usage_error("--%s goes with %s, not with %s", option->name,
						  option->commands, command->name);
	}
	if (asked->is_given[MRCCTL_OPTION_JSON] && asked->trace.perfetto != NULL &&
	    strcmp(asked->trace.perfetto, "-") == 0)
		return mrcctl_usage_error("--json and --perfetto - both want the standard output");
	return mrcctl_check_drain(asked, is_of_host);
}

static int mrcctl_run_doctor(const struct mrcctl_asked *asked)
{
	struct mrcctl_doctor_options doctor = {
		.seconds = MRCCTL_DOCTOR_SECONDS,
		.is_verbose = asked->is_given[MRCCTL_OPTION_VERBOSE],
		.is_json = asked->is_given[MRCCTL_OPTION_JSON],
	};

	if (asked->seconds != NULL && !mrcctl_doctor_seconds_take(asked->seconds, &doctor.seconds))
		return mrcctl_usage_error("--seconds: a whole number from 0 to %d is wanted",
					  MRCCTL_DOCTOR_SECONDS_MAX);
	return mrcctl_doctor(asked->socket, &doctor);
}

static int mrcctl_run_drill(const struct mrcctl_asked *asked, const char *rail)
{
	struct mrcctl_drill_options drill;
	char error[MRCCTL_DRILL_ERROR_BYTES];
	int r = 0;

	static_assert(MRCCTL_OPTION_PICTURE - MRCCTL_OPTION_DOWN == MRCCTL_DRILL_OPTION_PICTURE,
		      "those of drill, in its order");
	mrcctl_drill_options_init(&drill);
	drill.is_forced = asked->is_given[MRCCTL_OPTION_FORCE];
	for (int id = MRCCTL_OPTION_DOWN; r == 0 && id <= MRCCTL_OPTION_PICTURE; id++) {
		if (asked->is_given[id])
			r = mrcctl_drill_option_take(&drill,
						     (enum mrcctl_drill_option)(id -
										MRCCTL_OPTION_DOWN),
						     asked->texts[id], error);
	}
	if (r == 0)
		r = mrcctl_drill_options_check(&drill, rail, error);
	if (r < 0)
		return mrcctl_usage_error("%s", error);
	return mrcctl_drill(asked->socket, &drill, asked->is_given[MRCCTL_OPTION_JSON]);
}

static int mrcctl_command_run(struct mrcctl_asked *asked, const struct mrcctl_command *command,
			      int argc, char **argv)
{
	char error[MRCCTL_TRACE_ERROR_BYTES];

	if (command->takes == MRCCTL_CHANNEL) {
		if ((asked->seconds != NULL &&
		     mrcctl_trace_option_take(&asked->trace, MRCCTL_TRACE_SECONDS, asked->seconds,
					      error) < 0) ||
		    mrcctl_trace_target_take(&asked->trace, argv[optind + 1], error) < 0)
			return mrcctl_usage_error("%s", error);
		return mrcctl_trace(asked->socket, &asked->trace,
				    asked->is_given[MRCCTL_OPTION_JSON]);
	}
	if (mrcctl_is_of_host(asked, command)) {
		asked->drain.is_json = asked->is_given[MRCCTL_OPTION_JSON];
		return strcmp(command->name, "drain") == 0
			       ? mrcctl_drain_host(asked->socket, &asked->drain)
			       : mrcctl_undrain_host(asked->socket, asked->drain.is_json);
	}
	if (strcmp(command->name, "top") == 0) {
		asked->top.is_json = asked->is_given[MRCCTL_OPTION_JSON];
		asked->top.is_once = asked->is_given[MRCCTL_OPTION_ONCE];
		asked->top.is_ascii = asked->is_given[MRCCTL_OPTION_ASCII];
		return mrcctl_top(asked->socket, &asked->top);
	}
	if (strcmp(command->name, "reload") == 0)
		return mrcctl_reload(asked->socket, asked->is_given[MRCCTL_OPTION_CHECK],
				     asked->is_given[MRCCTL_OPTION_JSON]);
	if (strcmp(command->name, "doctor") == 0)
		return mrcctl_run_doctor(asked);
	if (command->takes == MRCCTL_MAYBE_RAIL)
		return mrcctl_run_drill(asked, argc - optind > 1 ? argv[optind + 1] : NULL);
	if (strcmp(command->name, "events") == 0)
		return mrcctl_events(asked->socket, asked->is_given[MRCCTL_OPTION_FOLLOW],
				     asked->is_given[MRCCTL_OPTION_JSON]);
	return mrcctl_run(asked, command,
			  command->takes == MRCCTL_WHAT_RAIL ? argv[optind + 1] : NULL,
			  command->takes != MRCCTL_ALONE ? argv[argc - 1] : NULL);
}

int main(int argc, char **argv)
{
	enum { VALUE_FIRST = 256 };
	struct option long_options[MRCCTL_OPTIONS_COUNT + 1] = {0};
	const char *from_environment = getenv("MRC_CONTROL");
	struct mrcctl_asked asked = {
		.top.interval_ns = MRCCTL_TOP_INTERVAL_NS,
		.drain.wait_ns = MRCCTL_DRAIN_FOR_EVER,
	};
	const struct mrcctl_command *command;
	int value, r;

	mrcctl_trace_options_init(&asked.trace);
	snprintf(asked.socket, sizeof(asked.socket), "%s",
		 from_environment != NULL && from_environment[0] != '\0' ? from_environment
									 : MRCCTL_SOCKET);
	if (argc > 1 && strcmp(argv[1], "--complete") == 0)
		return mrcctl_complete(asked.socket, argc - 2, argv + 2, stdout);
	for (int i = 0; i < MRCCTL_OPTIONS_COUNT; i++)
		long_options[i] = (struct option){
			.name = mrcctl_options[i].name,
			.has_arg = mrcctl_options[i].argument != NULL ? required_argument
								      : no_argument,
			.val = VALUE_FIRST + i,
		};
	while ((value = getopt_long(argc, argv, "hv", long_options, NULL)) != -1) {
		if (value == 'v')
			value = VALUE_FIRST + MRCCTL_OPTION_VERBOSE;
		if (value == VALUE_FIRST + MRCCTL_OPTION_VERSION) {
			printf("mrcctl %s\n", MRC_VERSION);
			return EXIT_SUCCESS;
		}
		if (value == 'h' || value == VALUE_FIRST + MRCCTL_OPTION_HELP) {
			mrcctl_usage(stdout);
			return EXIT_SUCCESS;
		}
		if (value < VALUE_FIRST)
			return mrcctl_usage_hint();
		r = mrcctl_option_take(&asked, (enum mrcctl_option_id)(value - VALUE_FIRST),
				       optarg);
		if (r != 0)
			return r;
	}
	if (optind >= argc) {
		mrcctl_usage(stderr);
		return MRCCTL_EXIT_USAGE;
	}
	command = mrcctl_command_find(argv[optind]);
	if (command == NULL)
		return mrcctl_usage_error("there is no command \"%s\"", argv[optind]);
	r = mrcctl_check(&asked, command, argc, argv);
	if (r != 0)
		return r;
	return mrcctl_command_run(&asked, command, argc, argv);
}
