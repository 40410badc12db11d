/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl - look into a running mrcd and take rails out of service
 *
 * Exit status: 0 done, 1 the daemon says no, 2 usage, 3 the daemon cannot be reached.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_show.h"
#include "mrcctl_socket.h"
#include "mrcctl_table.h"

#define MRCCTL_SOCKET    "/run/mrcd/control.sock"
#define MRCCTL_TIMEOUT_S 10

enum { MRCCTL_EXIT_REFUSED = 1, MRCCTL_EXIT_USAGE = 2, MRCCTL_EXIT_UNREACHED = 3 };

struct mrcctl_command {
	const char *name;
	enum { MRCCTL_ALONE, MRCCTL_RAIL, MRCCTL_WHAT_RAIL } takes;
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
	{"drain", MRCCTL_RAIL, mrcctl_show_drain,
	 "take RAIL out of service; traffic moves away first"},
	{"undrain", MRCCTL_RAIL, mrcctl_show_drain, "give RAIL back"},
	{"drill", MRCCTL_WHAT_RAIL, mrcctl_show_drill, "tests of mrcd: break something of RAIL"},
};

struct mrcctl_options {
	char socket[4096];
	bool is_json;
	bool is_forced;
};

static void mrcctl_usage(FILE *out)
{
	static const char *const arguments[] = {"", "RAIL", "WHAT RAIL"};

	fprintf(out, "Usage: mrcctl [OPTION]... COMMAND [WHAT] [RAIL]\n\nCommands:\n");
	for (size_t i = 0; i < sizeof(mrcctl_commands) / sizeof(mrcctl_commands[0]); i++)
		fprintf(out, "  %-8s%-10s %s\n", mrcctl_commands[i].name,
			arguments[mrcctl_commands[i].takes], mrcctl_commands[i].help);
	fprintf(out, "\nOptions:\n"
		     "      --json             print the daemon's answer as JSON\n"
		     "      --force            drain: also the last good path to a peer\n"
		     "      --socket PATH      the daemon's control socket; default $MRC_CONTROL,\n"
		     "                         else " MRCCTL_SOCKET "\n"
		     "      --runtime-dir DIR  the daemon's runtime-dir: DIR/control.sock\n"
		     "      --version          print the version\n"
		     "  -h, --help             print this\n"
		     "\n"
		     "Exit status: 0 done, 1 the daemon says no, 2 usage, 3 no daemon reached.\n");
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

static int mrcctl_unreached(const char *socket, int error)
{
	const char *why = strerror(-error);

	if (error == -ENOENT || error == -ECONNREFUSED)
		why = "no daemon is there";
	else if (error == -EAGAIN)
		why = "the daemon did not answer in time";
	else if (error == -EBADMSG)
		why = "what answers there is not mrcd";
	else if (error == -ECONNRESET)
		why = "the daemon closed the connection";
	fprintf(stderr,
		"mrcctl: cannot reach mrcd at %s: %s\n"
		"mrcctl: another socket is named with --socket PATH, --runtime-dir DIR or "
		"$MRC_CONTROL\n",
		socket, why);
	return MRCCTL_EXIT_UNREACHED;
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
	json_t *question = json_pack("{s:s}", "command", command->name), *answer;
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
	r = mrcctl_socket_ask(options->socket, question, MRCCTL_TIMEOUT_S, &answer);
	json_decref(question);
	if (r < 0)
		return mrcctl_unreached(options->socket, r);
	if (!json_is_true(json_object_get(answer, "ok"))) {
		const char *error = json_string_value(json_object_get(answer, "error"));

		fprintf(stderr, "mrcctl: %s\n", error != NULL ? error : "the daemon says no");
		json_decref(answer);
		return MRCCTL_EXIT_REFUSED;
	}
	if (options->is_json) {
		json_dumpf(json_object_get(answer, "result"), stdout,
			   JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	} else {
		command->show(json_object_get(answer, "result"), stdout,
			      mrcctl_table_wants_colour(stdout));
	}
	json_decref(answer);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		return MRCCTL_EXIT_REFUSED;
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	enum { OPT_SOCKET = 256, OPT_RUNTIME_DIR, OPT_JSON, OPT_FORCE, OPT_VERSION };
	static const struct option long_options[] = {
		{"socket", required_argument, NULL, OPT_SOCKET},
		{"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
		{"json", no_argument, NULL, OPT_JSON},
		{"force", no_argument, NULL, OPT_FORCE},
		{"version", no_argument, NULL, OPT_VERSION},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *from_environment = getenv("MRC_CONTROL");
	struct mrcctl_options options = {0};
	const struct mrcctl_command *command;
	int option, wanted;

	snprintf(options.socket, sizeof(options.socket), "%s",
		 from_environment != NULL && from_environment[0] != '\0' ? from_environment
									 : MRCCTL_SOCKET);
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
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
	wanted = 1 + (int)command->takes;
	if (command->takes == MRCCTL_WHAT_RAIL && optind + 1 >= argc)
		return mrcctl_usage_error("%s: which one?", command->name);
	if (optind + wanted > argc)
		return mrcctl_usage_error("%s: which rail?", command->name);
	if (optind + wanted < argc)
		return mrcctl_usage_error("unexpected argument \"%s\"", argv[argc - 1]);
	if (options.is_forced && strcmp(command->name, "drain") != 0)
		return mrcctl_usage_error("--force goes with drain, not with %s", command->name);
	return mrcctl_run(&options, command,
			  command->takes == MRCCTL_WHAT_RAIL ? argv[optind + 1] : NULL,
			  command->takes != MRCCTL_ALONE ? argv[optind + wanted - 1] : NULL);
}
