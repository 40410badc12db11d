/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_keys - which keys are valid, which are used, and how others come into force */
#include "mrcd_control_impl.h"
#include "mrcd_peer.h"
#include "mrcd_reload.h"

json_t *mrcd_control_keys(struct mrcd_worker *worker, const json_t *command)
{
	json_t *keys = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_control_extend(keys, mrcd_peer_keys_json(worker->peers[i]));
	return mrcd_control_ok(keys);
}

json_t *mrcd_control_reload(struct mrcd_worker *worker, const json_t *command)
{
	struct mrcd_reload reload;

	if (worker->read_again == NULL)
		return mrcd_control_error("this daemon has no configuration to read again");
	if (worker->read_again(worker->read_again_context, &reload) < 0)
		return mrcd_control_error("nothing was changed: %s", reload.error);
	return mrcd_control_ok(json_pack("{s:s s:s s:s}", "file", worker->conf->file, "changed",
					 reload.changed, "waiting", reload.waiting));
}
