/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl - look into a running mrcd and take rails out of service
 *
 * Exit status: 0 done, 1 the daemon says no or doctor found something, 2 usage, 3 the daemon cannot be reached.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_ask.h"
#include "mrcctl_doctor.h"
#include "mrcctl_events.h"
#include "mrcctl_keys.h"
#include "mrcctl_show.h"
#include "mrcctl_table.h"
#include "mrcctl_trace.h"

struct mrcctl_command {
	const char *name;
	enum {
		MRCCTL_ALONE,
		MRCCTL_RAIL,
		MRCCTL_WHAT_RAIL,
		MRCCTL_CHANNEL,
		MRCCTL_EVENTS,
		MRCCTL_DOCTOR
	} takes;
	/* NULL: trace, events, doctor */
	void (*show)(const json_t *result, FILE *out, bool has_colour);
	const char *help;
};

static const struct mrcctl_command mrcctl_commands[] = {
	{"status", MRCCTL_ALONE, mrcctl_show_status, "how the daemon is, in a few lines"},
	{"rails", MRCCTL_ALONE, mrcctl_show_rails,
	 "this host's rails: carrier, traffic, strangers"},
	{"peers", MRCCTL_ALONE, mrcctl_show_peers, "the peer hosts: paths, channels, messages"},
	{"paths", MRCCTL_ALONE, mrcctl_show_paths, "each path: state, delay, rate, failures"},
	{"channels", MRCCTL_ALONE, mrcctl_show_channels, "each channel of this host's programs"},
	{"clients", MRCCTL_ALONE, mrcctl_show_clients, "the programs attached to the daemon"},
	{"keys", MRCCTL_ALONE, mrcctl_show_keys,
	 "the keys shared with peers, and who lives by them"},
	{"reload", MRCCTL_ALONE, mrcctl_show_reload, "read the configuration again"},
	{"events", MRCCTL_EVENTS, NULL, "what befell paths, rails and peers"},
	{"drain", MRCCTL_RAIL, mrcctl_show_drain,
	 "take RAIL out of service; traffic moves away first"},
	{"undrain", MRCCTL_RAIL, mrcctl_show_drain, "give RAIL back"},
	{"doctor", MRCCTL_DOCTOR, NULL, "what degrades in silence, why it matters, what to do"},
	{"trace", MRCCTL_CHANNEL, NULL, "how long messages to a peer take, stage by stage"},
	{"drill", MRCCTL_WHAT_RAIL, mrcctl_show_drill, "tests of mrcd: break something of RAIL"},
};

struct mrcctl_options {
	char socket[4096];
	bool is_json;
	bool is_forced;
	bool is_following;
	struct mrcctl_trace_options trace;
	const char *trace_option; /* one that goes with trace and was given; NULL: none */
	const char *seconds; /* --seconds as given: trace and doctor read it; NULL: not given */
	bool is_verbose;
};

static void mrcctl_usage(FILE *out)
{
	static const char *const arguments[] = {"", "RAIL", "WHAT RAIL", "[PEER/]CHANNEL", "", ""};

	fprintf(out, "Usage: mrcctl [OPTION]... COMMAND [WHAT] [RAIL|CHANNEL]\n\nCommands:\n");
	for (size_t i = 0; i < sizeof(mrcctl_commands) / sizeof(mrcctl_commands[0]); i++)
		fprintf(out, "  %-8s%-15s %s\n", mrcctl_commands[i].name,
			arguments[mrcctl_commands[i].takes], mrcctl_commands[i].help);
	fprintf(out,
		"\nOptions:\n"
		"      --json             print the daemon's answer as JSON\n"
		"      --force            drain: also the last good path to a peer\n"
		"      --follow           events: go on with what befalls from now on\n"
		"      --every N          trace: one message of so many (100)\n"
		"      --count N          trace: end after so many (1000), show a bar for each\n"
		"      --seconds N        trace: end after so long (10)\n"
		"                         doctor: read counters so long apart (2)\n"
		"  -v, --verbose          doctor: also what could not be checked, and why\n"
		"      --perfetto FILE    trace: write it for ui.perfetto.dev; - for stdout\n"
		"      --socket PATH      the daemon's control socket; default $MRC_CONTROL,\n"
		"                         else " MRCCTL_SOCKET "\n"
		"      --runtime-dir DIR  the daemon's runtime-dir: DIR/control.sock\n"
		"      --version          print the version\n"
		"  -h, --help             print this\n"
		"\n"
		"Exit status: 0 done, 1 the daemon says no or doctor found something, 2 usage, 3 "
		"no daemon reached.\n");
}

static int mrcctl_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int mrcctl_usage_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "mrcctl: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n\n");
	mrcctl_usage(stderr);
	return MRCCTL_EXIT_USAGE;
}

static const struct mrcctl_command *mrcctl_command_find(const char *name)
{
	for (size_t i = 0; i < sizeof(mrcctl_commands) / sizeof(mrcctl_commands[0]); i++) {
		if (strcmp(mrcctl_commands[i].name, name) == 0)
			return &mrcctl_commands[i];
	}
	return NULL;
}

static int mrcctl_run(const struct mrcctl_options *options, const struct mrcctl_command *command,
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
	if (options->is_forced)
		json_object_set_new(question, "force", json_true());
	r = mrcctl_ask(options->socket, question, &result);
	json_decref(question);
	if (r != 0)
		return r;
	if (options->is_json) {
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

static int mrcctl_run_doctor(const struct mrcctl_options *options)
{
	struct mrcctl_doctor_options doctor = {
		.seconds = MRCCTL_DOCTOR_SECONDS,
		.is_verbose = options->is_verbose,
		.is_json = options->is_json,
	};

	if (options->seconds != NULL &&
	    !mrcctl_doctor_seconds_take(options->seconds, &doctor.seconds))
		return mrcctl_usage_error("--seconds: a whole number from 0 to %d is wanted",
					  MRCCTL_DOCTOR_SECONDS_MAX);
	return mrcctl_doctor(options->socket, &doctor);
}

enum {
	OPT_SOCKET = 256,
	OPT_RUNTIME_DIR,
	OPT_JSON,
	OPT_FORCE,
	OPT_FOLLOW,
	OPT_VERSION,
	OPT_EVERY,
	OPT_COUNT,
	OPT_SECONDS,
	OPT_PERFETTO,
};

/* An option of trace. 0, or the exit status. */
static int mrcctl_trace_option(struct mrcctl_options *options, int option, const char *text)
{
	char error[MRCCTL_TRACE_ERROR_BYTES];
	int r = 0;

	switch (option) {
	case OPT_EVERY:
		options->trace_option = "--every";
		r = mrcctl_trace_option_take(&options->trace, MRCCTL_TRACE_EVERY, text, error);
		break;
	case OPT_COUNT:
		options->trace_option = "--count";
		r = mrcctl_trace_option_take(&options->trace, MRCCTL_TRACE_COUNT, text, error);
		break;
	case OPT_PERFETTO:
		options->trace_option = "--perfetto";
		options->trace.perfetto = text;
		break;
	default:
		break;
	}
	return r < 0 ? mrcctl_usage_error("%s", error) : 0;
}

/* What goes with what. 0, or the exit status. */
static int mrcctl_check(const struct mrcctl_options *options, const struct mrcctl_command *command,
			int argc, char **argv)
{
	static const int wanted[] = {1, 2, 3, 2, 1, 1};
	int given = argc - optind;

	if (command->takes == MRCCTL_WHAT_RAIL && given < 2)
		return mrcctl_usage_error("%s: which one?", command->name);
	if (given < wanted[command->takes])
		return mrcctl_usage_error("%s: which %s?", command->name,
					  command->takes == MRCCTL_CHANNEL ? "channel" : "rail");
	if (given > wanted[command->takes])
		return mrcctl_usage_error("unexpected argument \"%s\"", argv[argc - 1]);
	if (options->is_forced && strcmp(command->name, "drain") != 0)
		return mrcctl_usage_error("--force goes with drain, not with %s", command->name);
	if (options->is_following && command->takes != MRCCTL_EVENTS)
		return mrcctl_usage_error("--follow goes with events, not with %s", command->name);
	if (options->is_verbose && command->takes != MRCCTL_DOCTOR)
		return mrcctl_usage_error("-v goes with doctor, not with %s", command->name);
	if (options->seconds != NULL && command->takes != MRCCTL_CHANNEL &&
	    command->takes != MRCCTL_DOCTOR)
		return mrcctl_usage_error("--seconds goes with trace and doctor, not with %s",
					  command->name);
	if (options->trace_option != NULL && command->takes != MRCCTL_CHANNEL)
		return mrcctl_usage_error("%s goes with trace, not with %s", options->trace_option,
					  command->name);
	if (options->is_json && options->trace.perfetto != NULL &&
	    strcmp(options->trace.perfetto, "-") == 0)
		return mrcctl_usage_error("--json and --perfetto - both want the standard output");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"socket", required_argument, NULL, OPT_SOCKET},
		{"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
		{"json", no_argument, NULL, OPT_JSON},
		{"force", no_argument, NULL, OPT_FORCE},
		{"follow", no_argument, NULL, OPT_FOLLOW},
		{"every", required_argument, NULL, OPT_EVERY},
		{"count", required_argument, NULL, OPT_COUNT},
		{"seconds", required_argument, NULL, OPT_SECONDS},
		{"perfetto", required_argument, NULL, OPT_PERFETTO},
		{"version", no_argument, NULL, OPT_VERSION},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *from_environment = getenv("MRC_CONTROL");
	struct mrcctl_options options = {0};
	const struct mrcctl_command *command;
	char error[MRCCTL_TRACE_ERROR_BYTES];
	int option, r;

	mrcctl_trace_options_init(&options.trace);
	snprintf(options.socket, sizeof(options.socket), "%s",
		 from_environment != NULL && from_environment[0] != '\0' ? from_environment
									 : MRCCTL_SOCKET);
	while ((option = getopt_long(argc, argv, "hv", long_options, NULL)) != -1) {
		switch (option) {
		case OPT_SOCKET:
			snprintf(options.socket, sizeof(options.socket), "%s", optarg);
			break;
		case OPT_RUNTIME_DIR:
			snprintf(options.socket, sizeof(options.socket), "%s/control.sock", optarg);
			break;
		case OPT_JSON:
			options.is_json = true;
			break;
		case OPT_FORCE:
			options.is_forced = true;
			break;
		case OPT_FOLLOW:
			options.is_following = true;
			break;
		case OPT_SECONDS:
			options.seconds = optarg;
			break;
		case 'v':
			options.is_verbose = true;
			break;
		case OPT_EVERY:
		case OPT_COUNT:
		case OPT_PERFETTO:
			r = mrcctl_trace_option(&options, option, optarg);
			if (r != 0)
				return r;
			break;
		case OPT_VERSION:
			printf("mrcctl %s\n", MRC_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			mrcctl_usage(stdout);
			return EXIT_SUCCESS;
		default:
			mrcctl_usage(stderr);
			return MRCCTL_EXIT_USAGE;
		}
	}
	if (optind >= argc)
		return mrcctl_usage_error("a command is missing");
	command = mrcctl_command_find(argv[optind]);
	if (command == NULL)
		return mrcctl_usage_error("there is no command \"%s\"", argv[optind]);
	r = mrcctl_check(&options, command, argc, argv);
	if (r != 0)
		return r;
	if (command->takes == MRCCTL_DOCTOR)
		return mrcctl_run_doctor(&options);
	if (command->takes == MRCCTL_CHANNEL) {
		if (options.seconds != NULL &&
		    mrcctl_trace_option_take(&options.trace, MRCCTL_TRACE_SECONDS, options.seconds,
					     error) < 0)
			return mrcctl_usage_error("%s", error);
		if (mrcctl_trace_target_take(&options.trace, argv[optind + 1], error) < 0)
			return mrcctl_usage_error("%s", error);
		return mrcctl_trace(options.socket, &options.trace, options.is_json);
	}
	if (command->takes == MRCCTL_EVENTS)
		return mrcctl_events(options.socket, options.is_following, options.is_json);
	return mrcctl_run(&options, command,
			  command->takes == MRCCTL_WHAT_RAIL ? argv[optind + 1] : NULL,
			  command->takes != MRCCTL_ALONE ? argv[argc - 1] : NULL);
}
