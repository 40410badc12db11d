/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrcctl_ask.h"
#include "mrcctl_socket.h"
#include "mrcctl_table.h"

#define FOLLOW_NS 200000000L /* between two questions: sooner than anybody looks */

/* Who follows waits for a daemon that is away: it may be on its way back. */
static int ask_following(const char *socket, const json_t *question, json_t **result_out)
{
	json_t *answer;

	if (mrcctl_socket_ask(socket, question, 10, &answer) < 0)
		return -EAGAIN;
	*result_out = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return 0;
}

static int told(int r)
{
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		return -MRCCTL_EXIT_REFUSED;
	}
	if (r == -EBADMSG) {
		fprintf(stderr, "mrcctl: the daemon's answer to events is not understood\n");
		return -MRCCTL_EXIT_REFUSED;
	}
	return r;
}

int mrcctl_events(const char *socket, bool is_following, bool is_json)
{
	static const struct timespec pause = {.tv_nsec = FOLLOW_NS};
	struct mrcctl_events_place place = {0};
	bool has_colour = !is_json && mrcctl_table_wants_colour(stdout);
	bool is_heard = false;

	for (;;) {
		json_t *question = mrcctl_events_question(&place), *result = NULL;
		int r = is_heard ? ask_following(socket, question, &result)
				 : mrcctl_ask(socket, question, &result);

		json_decref(question);
		if (r > 0)
			return r; /* said why */
		if (r == 0) {
			is_heard = true;
			r = told(mrcctl_events_take(&place, result, is_json, has_colour, stdout));
			json_decref(result);
			if (r < 0)
				return -r;
			if (r > 0)
				continue;
		}
		if (!is_following)
			return EXIT_SUCCESS;
		nanosleep(&pause, NULL);
	}
}
