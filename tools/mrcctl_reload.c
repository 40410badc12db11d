/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrcctl_ask.h"

#define LOOK_NS   50000000L
#define LOOKS_MAX 100 /* 5 s: longer waits only what waits for somebody else */

/* What goes takes a moment; `result` has what is left of it then. 0, or the exit status. */
static int wait_for_it(const char *socket, json_t *result)
{
	static const struct timespec pause = {.tv_nsec = LOOK_NS};
	json_t *question = json_pack("{s:s s:b}", "command", "reload", "look", 1);
	int r = 0;

	for (int i = 0; i < LOOKS_MAX && r == 0; i++) {
		json_t *look;

		if (json_array_size(json_object_get(result, "pending")) == 0)
			break;
		nanosleep(&pause, NULL);
		r = mrcctl_ask(socket, question, &look);
		if (r != 0)
			break;
		json_object_set(result, "pending", json_object_get(look, "pending"));
		json_decref(look);
	}
	json_decref(question);
	return r;
}

int mrcctl_reload(const char *socket, bool is_check, bool is_json)
{
	json_t *question = json_pack("{s:s s:b}", "command", "reload", "check", (int)is_check);
	json_t *result;
	int r = mrcctl_ask(socket, question, &result);

	json_decref(question);
	if (r != 0)
		return r;
	if (!is_check)
		r = wait_for_it(socket, result);
	if (is_json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		mrcctl_reload_show(result, stdout);
	}
	json_decref(result);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		return MRCCTL_EXIT_REFUSED;
	}
	return r;
}
