/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_drain - the whole host is drained, or given back: commands of the control socket */
#include "mrcd_control_impl.h"
#include "mrcd_drain.h"

json_t *mrcd_control_host(struct mrcd_worker *worker, const json_t *command, bool is_draining)
{
	if (!json_is_true(json_object_get(command, "host")) ||
	    json_object_get(command, "rail") != NULL)
		return mrcd_control_error("a \"rail\" is wanted, or \"host\": true for all of this "
					  "host, and not both");
	mrcd_drain_set(worker, is_draining);
	return mrcd_control_ok(mrcd_drain_json(worker));
}

json_t *mrcd_control_draining(struct mrcd_worker *worker, const json_t *command)
{
	return mrcd_control_ok(mrcd_drain_json(worker));
}
