/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mrcctl_socket.h"

#define MRCCTL_TIMEOUT_S 10

const char *mrcctl_unreached_text(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "no daemon is there";
	case -EAGAIN:
		return "the daemon did not answer in time";
	case -EBADMSG:
		return "what answers there is not mrcd";
	case -ECONNRESET:
		return "the daemon closed the connection";
	default:
		return strerror(-error);
	}
}

static int mrcctl_unreached(const char *socket, int error)
{
	fprintf(stderr,
		"mrcctl: cannot reach mrcd at %s: %s\n"
		"mrcctl: another socket is named with --socket PATH, --runtime-dir DIR or "
		"$MRC_CONTROL\n",
		socket, mrcctl_unreached_text(error));
	return MRCCTL_EXIT_UNREACHED;
}

int mrcctl_ask(const char *socket, const json_t *question, json_t **result_out)
{
	json_t *answer;
	int r = mrcctl_socket_ask(socket, question, MRCCTL_TIMEOUT_S, &answer);

	if (r < 0)
		return mrcctl_unreached(socket, r);
	if (!json_is_true(json_object_get(answer, "ok"))) {
		const char *error = json_string_value(json_object_get(answer, "error"));

		fprintf(stderr, "mrcctl: %s\n", error != NULL ? error : "the daemon says no");
		json_decref(answer);
		return MRCCTL_EXIT_REFUSED;
	}
	*result_out = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return 0;
}
