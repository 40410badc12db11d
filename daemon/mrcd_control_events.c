/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_events - what befell, and how long clients stood still: commands of the control socket */
#include <stdio.h>

#include "mrcd_control_impl.h"
#include "mrcd_event_log.h"
#include "mrcd_peer.h"

/* A number from 0; absent is 0. False: it is something else. */
static bool take_number(const json_t *command, const char *key, uint64_t *number_out)
{
	const json_t *value = json_object_get(command, key);

	*number_out = 0;
	if (value == NULL)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*number_out = (uint64_t)json_integer_value(value);
	return true;
}

json_t *mrcd_control_events(struct mrcd_worker *worker, const json_t *command)
{
	char boot_id[24];
	uint64_t since;
	json_t *result;

	if (!take_number(command, "since", &since))
		return mrcd_control_error("\"since\" is to be a number from 0: \"next\" of the "
					  "last answer");
	result = mrcd_event_log_json(worker->events, since);
	snprintf(boot_id, sizeof(boot_id), "%016llx", (unsigned long long)worker->boot_id);
	json_object_set_new(result, "boot_id", json_string(boot_id));
	return mrcd_control_ok(result);
}

json_t *mrcd_control_stalls(struct mrcd_worker *worker, const json_t *command)
{
	uint64_t since_ns;

	if (!take_number(command, "since_ns", &since_ns))
		return mrcd_control_error("\"since_ns\" is to be a number from 0: \"now_ns\" of an "
					  "earlier answer");
	return mrcd_control_ok(json_pack("{s:I s:o}", "now_ns", (json_int_t)worker->now_ns, "peers",
					 mrcd_peer_stalls_json(worker, since_ns, UINT32_MAX)));
}
