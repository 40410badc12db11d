/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_keys - which keys are valid, and which are used */
#include "mrcd_control_impl.h"
#include "mrcd_peer.h"

json_t *mrcd_control_keys(struct mrcd_worker *worker, const json_t *command)
{
	json_t *keys = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_control_extend(keys, mrcd_peer_keys_json(worker->peers[i]));
	return mrcd_control_ok(keys);
}
