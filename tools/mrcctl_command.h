/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_command - the commands and options of mrcctl
 *
 * Two tables, from which come what is parsed, the usage, and what a shell completes.
 * Their texts and the manual page are compared by a test.
 */
#ifndef MRCCTL_COMMAND_H
#define MRCCTL_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "mrcctl_ask.h"

struct mrcctl_command {
	const char *name;
	enum {
		MRCCTL_ALONE,
		MRCCTL_RAIL,
		MRCCTL_WHAT_RAIL,
		MRCCTL_CHANNEL,
		MRCCTL_MAYBE_RAIL
	} takes;
	/* NULL: it has a function of its own */
	void (*show)(const json_t *result, FILE *out, bool has_colour);
	const char *help; /* NULL: it is for tests, and not offered */
};

/*
 * id, name, what it takes (NULL: nothing; FILE, PATH, DIR and PEER are completed as such),
 * the commands it goes with (NULL: all; else names with | between), help
 */
#define MRCCTL_OPTIONS(X)                                                                        \
	X(JSON, "json", NULL, NULL, "print the daemon's answer as JSON")                         \
	X(FORCE, "force", NULL, "drain|drill", "also the last good path to a peer")              \
	X(CHECK, "check", NULL, "reload", "only say what it would change")                       \
	X(HOST, "host", NULL, "drain|undrain", "the whole host, before maintenance")             \
	X(WAIT, "wait", "TIME", "drain", "a host: at most so long (until nothing is left)")      \
	X(FOLLOW, "follow", NULL, "events", "go on with what befalls from now on")               \
	X(EVERY, "every", "N", "trace", "one message of so many (100)")                          \
	X(COUNT, "count", "N", "trace", "end after so many (1000), show a bar for each")         \
	X(SECONDS, "seconds", "N", "trace|doctor", "for so long (10; doctor 2)")                 \
	X(PERFETTO, "perfetto", "FILE", "trace", "write it for ui.perfetto.dev; - for stdout")   \
	X(VERBOSE, "verbose", NULL, "doctor", "also what could not be checked, and why")         \
	X(INTERVAL, "interval", "TIME", "top", "between two looks (1s)")                         \
	X(ONCE, "once", NULL, "top", "print one page, and end")                                  \
	X(ASCII, "ascii", NULL, "top", "no characters but ASCII")                                \
	X(DOWN, "down", "TIME", "drill", "as if the carrier were lost (2s)")                     \
	X(SILENCE, "silence", "TIME", "drill", "drop all, and tell nobody")                      \
	X(SLOW, "slow", "Nx[,TIME]", "drill", "send at one of N parts of the rate")              \
	X(LINK, "link", NULL, "drill", "take the link really down")                              \
	X(ALL_IN_TURN, "all-in-turn", NULL, "drill", "each rail, one after the other")           \
	X(WATCH, "watch", NULL, "drill", "measure while somebody pulls a cable")                 \
	X(SERVE, "serve", NULL, "drill", "take test streams of other hosts")                     \
	X(STREAM, "stream", "PEER", "drill", "with a test stream to PEER; none: without")        \
	X(PACE, "pace", "RATE", "drill", "of the test stream")                                   \
	X(YES, "yes", NULL, "drill", "do not ask")                                               \
	X(PICTURE, "picture", "FILE", "drill", "draw it, as SVG")                                \
	X(SOCKET, "socket", "PATH", NULL,                                                        \
	  "the daemon's control socket ($MRC_CONTROL, " MRCCTL_SOCKET ")")                       \
	X(RUNTIME_DIR, "runtime-dir", "DIR", NULL, "the daemon's runtime-dir: DIR/control.sock") \
	X(VERSION, "version", NULL, NULL, "print the version")                                   \
	X(HELP, "help", NULL, NULL, "print this")

enum mrcctl_option_id {
#define X(id, name, argument, commands, help) MRCCTL_OPTION_##id,
	MRCCTL_OPTIONS(X)
#undef X
		MRCCTL_OPTIONS_COUNT
};

struct mrcctl_option {
	const char *name, *argument, *commands, *help;
};

extern const struct mrcctl_command mrcctl_commands[];
extern const size_t mrcctl_command_count;
extern const struct mrcctl_option mrcctl_options[MRCCTL_OPTIONS_COUNT];

const struct mrcctl_command *mrcctl_command_find(const char *name);
bool mrcctl_option_goes_with(const struct mrcctl_option *option, const char *command);

#endif
