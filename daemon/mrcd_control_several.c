/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_control_several - several questions in one, answered at one moment
 *
 *	{"command": "several", "commands": ["status", {"command": "paths"}, ...]}
 *	-> {"ok": true, "result": [{"ok": true, "result": ...}, ...]}
 *
 * One answer for each, in order; one that is refused does not keep the others from being answered.
 */
#include "mrcd_control_impl.h"

#include <string.h>

/* "paths" and {"command": "paths"} are the same question. NULL: none at all. */
static const char *mrcd_control_name_of(const json_t *wanted)
{
	return json_string_value(json_is_string(wanted) ? wanted
							: json_object_get(wanted, "command"));
}

/* All answers are held at the same time: sixteen of the longest would be too much of a big host. */
static bool mrcd_control_was_asked(const json_t *commands, size_t before)
{
	const char *name = mrcd_control_name_of(json_array_get(commands, before));

	for (size_t i = 0; name != NULL && i < before; i++) {
		const char *other = mrcd_control_name_of(json_array_get(commands, i));

		if (other != NULL && strcmp(name, other) == 0)
			return true;
	}
	return false;
}

static json_t *mrcd_control_one_of_several(struct mrcd_worker *worker, json_t *wanted)
{
	const char *name = json_string_value(wanted);
	json_t *command = name != NULL ? json_pack("{s:s}", "command", name) : json_incref(wanted);
	json_t *answer;

	name = json_string_value(json_object_get(command, "command"));
	if (name != NULL && strcmp(name, "several") == 0)
		answer = mrcd_control_error("several has no place within itself");
	else
		answer = mrcd_control_dispatch(worker, command, false);
	json_decref(command);
	return answer;
}

json_t *mrcd_control_several(struct mrcd_worker *worker, const json_t *command)
{
	const json_t *commands = json_object_get(command, "commands");
	json_t *answers, *wanted;
	size_t i;

	if (!json_is_array(commands) || json_array_size(commands) > MRCD_CONTROL_SEVERAL_MAX)
		return mrcd_control_error("several wants \"commands\", an array of at most %u",
					  MRCD_CONTROL_SEVERAL_MAX);
	answers = json_array();
	json_array_foreach(commands, i, wanted)
	{
		json_t *answer = mrcd_control_was_asked(commands, i)
					 ? mrcd_control_error("several answers each command once")
					 : mrcd_control_one_of_several(worker, wanted);

		/* Its place is kept for one that found no memory. */
		json_array_append_new(answers, answer != NULL ? answer : json_null());
	}
	return mrcd_control_ok(answers);
}
