/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_complete.h"

#include <stdlib.h>
#include <string.h>

#include "mrcctl_command.h"
#include "mrcctl_field.h"
#include "mrcctl_socket.h"

#define MRCCTL_COMPLETE_WAIT_S 1

/* A command line that is being typed. */
struct mrcctl_typed {
	const char *current;                  /* the word that is completed; "": not begun */
	const struct mrcctl_option *value_of; /* it is the value of that one; NULL: no */
	const struct mrcctl_command *command; /* NULL: none yet */
	int arguments;                        /* of the command, before the current word */
	bool is_of_host;                      /* --host: no rail follows */
	char socket[4096];
	FILE *out;
};

/* "--name" or "--name=..."; NULL: it is no option, or an unknown one. */
static const struct mrcctl_option *mrcctl_option_of(const char *word)
{
	size_t len = strcspn(word, "=");

	if (len < 3 || strncmp(word, "--", 2) != 0)
		return NULL;
	for (size_t i = 0; i < MRCCTL_OPTIONS_COUNT; i++) {
		const struct mrcctl_option *option = &mrcctl_options[i];

		if (strlen(option->name) == len - 2 &&
		    strncmp(option->name, word + 2, len - 2) == 0)
			return option;
	}
	return NULL;
}

/* Which socket is meant. */
static void mrcctl_typed_value(struct mrcctl_typed *typed, const struct mrcctl_option *option,
			       const char *value)
{
	if (option == &mrcctl_options[MRCCTL_OPTION_SOCKET])
		snprintf(typed->socket, sizeof(typed->socket), "%s", value);
	else if (option == &mrcctl_options[MRCCTL_OPTION_RUNTIME_DIR])
		snprintf(typed->socket, sizeof(typed->socket), "%s/control.sock", value);
}

/* One that stands before the current one. */
static void mrcctl_typed_word(struct mrcctl_typed *typed, const char *word)
{
	const struct mrcctl_option *option = mrcctl_option_of(word);
	const char *equals = strchr(word, '=');

	if (typed->value_of != NULL) {
		if (strcmp(word, "=") == 0)
			return; /* bash has cut --option=value */
		mrcctl_typed_value(typed, typed->value_of, word);
		typed->value_of = NULL;
	} else if (option != NULL && option->argument != NULL) {
		if (equals != NULL)
			mrcctl_typed_value(typed, option, equals + 1);
		else
			typed->value_of = option;
	} else if (option == &mrcctl_options[MRCCTL_OPTION_HOST]) {
		typed->is_of_host = true;
	} else if (word[0] != '-' && typed->command == NULL) {
		typed->command = mrcctl_command_find(word);
	} else if (word[0] != '-') {
		typed->arguments++;
	}
}

/* `prefix` and `text` together, if that is how the current word goes on. */
static void mrcctl_offer(const struct mrcctl_typed *typed, const char *prefix, const char *text,
			 const char *meaning)
{
	char candidate[200];

	snprintf(candidate, sizeof(candidate), "%s%s", prefix, text);
	if (strncmp(candidate, typed->current, strlen(typed->current)) == 0)
		fprintf(typed->out, "%s%s%s\n", candidate, meaning[0] != '\0' ? "\t" : "", meaning);
}

static void mrcctl_offer_options(const struct mrcctl_typed *typed)
{
	for (size_t i = 0; i < MRCCTL_OPTIONS_COUNT; i++) {
		const struct mrcctl_option *option = &mrcctl_options[i];

		if (typed->command == NULL || mrcctl_option_goes_with(option, typed->command->name))
			mrcctl_offer(typed, "--", option->name, option->help);
	}
}

static void mrcctl_offer_commands(const struct mrcctl_typed *typed)
{
	for (size_t i = 0; i < mrcctl_command_count; i++) {
		if (mrcctl_commands[i].help != NULL)
			mrcctl_offer(typed, "", mrcctl_commands[i].name, mrcctl_commands[i].help);
	}
}

static void mrcctl_offer_rail(const struct mrcctl_typed *typed, const json_t *rail)
{
	mrcctl_offer(typed, "", mrcctl_text(rail, "name"), mrcctl_text(rail, "interface"));
}

static void mrcctl_offer_peer(const struct mrcctl_typed *typed, const json_t *peer)
{
	mrcctl_offer(typed, "", mrcctl_text(peer, "name"), mrcctl_text(peer, "state"));
}

static void mrcctl_offer_channel(const struct mrcctl_typed *typed, const json_t *channel)
{
	char number[24];

	snprintf(number, sizeof(number), "/%llu", (unsigned long long)mrcctl_number(channel, "id"));
	mrcctl_offer(typed, mrcctl_text(channel, "peer"), number, mrcctl_text(channel, "service"));
}

/* What the daemon has of such, one after the other. */
static void mrcctl_offer_asked(const struct mrcctl_typed *typed, const char *command,
			       void (*offer)(const struct mrcctl_typed *, const json_t *))
{
	json_t *question = json_pack("{s:s}", "command", command), *answer, *row;
	size_t i;
	int r = mrcctl_socket_ask(typed->socket, question, MRCCTL_COMPLETE_WAIT_S, &answer);

	json_decref(question);
	if (r < 0)
		return;
	json_array_foreach(json_object_get(answer, "result"), i, row) offer(typed, row);
	json_decref(answer);
}

static void mrcctl_offer_value(const struct mrcctl_typed *typed)
{
	const char *argument = typed->value_of->argument;

	if (strcmp(argument, "FILE") == 0 || strcmp(argument, "PATH") == 0)
		fprintf(typed->out, ":file\n");
	else if (strcmp(argument, "DIR") == 0)
		fprintf(typed->out, ":directory\n");
	else if (strcmp(argument, "PEER") == 0)
		mrcctl_offer_asked(typed, "peers", mrcctl_offer_peer);
}

static void mrcctl_offer_arguments(const struct mrcctl_typed *typed)
{
	switch (typed->command->takes) {
	case MRCCTL_ALONE:
		break;
	case MRCCTL_RAIL:
	case MRCCTL_MAYBE_RAIL:
		if (typed->arguments == 0 && !typed->is_of_host)
			mrcctl_offer_asked(typed, "rails", mrcctl_offer_rail);
		break;
	case MRCCTL_WHAT_RAIL:
		if (typed->arguments == 1)
			mrcctl_offer_asked(typed, "rails", mrcctl_offer_rail);
		break;
	case MRCCTL_CHANNEL:
		if (typed->arguments == 0)
			mrcctl_offer_asked(typed, "channels", mrcctl_offer_channel);
		break;
	}
}

int mrcctl_complete(const char *socket, int argc, char **argv, FILE *out)
{
	struct mrcctl_typed typed = {.current = "", .out = out};
	int index =
		argc > 0 ? atoi(argv[0]) : 0; /* NOLINT(cert-err34-c): what is no number is none */

	if (argc < 2 || index < 1)
		return MRCCTL_EXIT_USAGE;
	snprintf(typed.socket, sizeof(typed.socket), "%s", socket);
	for (int i = 1; i < index && i + 1 < argc; i++)
		mrcctl_typed_word(&typed, argv[i + 1]);
	if (index + 1 < argc)
		typed.current = argv[index + 1];
	if (strcmp(typed.current, "=") == 0)
		typed.current = "";
	if (typed.value_of != NULL)
		mrcctl_offer_value(&typed);
	else if (typed.current[0] == '-')
		mrcctl_offer_options(&typed);
	else if (typed.command == NULL)
		mrcctl_offer_commands(&typed);
	else
		mrcctl_offer_arguments(&typed);
	return EXIT_SUCCESS;
}
