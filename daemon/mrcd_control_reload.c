/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_reload - the configuration read again, what would come of it, and how far it is */
#include "mrcd_control_impl.h"
#include "mrcd_reload.h"
#include "mrcd_renewal.h"

static json_t *reload_json(const struct mrcd_worker *worker, const struct mrcd_reload *reload,
			   bool is_trial)
{
	const struct mrcd_plan *plan = &reload->plan;

	return json_pack("{s:s s:b s:o s:{s:i s:i} s:o}", "file", worker->conf->file, "check",
			 (int)is_trial, "changes", mrcd_plan_json(plan), "unchanged", "rails",
			 (int)plan->rails_same, "peers", (int)plan->peers_same, "pending",
			 mrcd_renewal_json(worker));
}

json_t *mrcd_control_reload(struct mrcd_worker *worker, const json_t *command)
{
	bool is_trial = json_is_true(json_object_get(command, "check"));
	struct mrcd_reload reload;
	json_t *answer;

	if (json_is_true(json_object_get(command, "look")))
		return mrcd_control_ok(json_pack("{s:o}", "pending", mrcd_renewal_json(worker)));
	if (worker->read_again == NULL)
		return mrcd_control_error("this daemon has no configuration to read again");
	if (worker->read_again(worker->read_again_context, is_trial, &reload) < 0)
		answer = mrcd_control_error("nothing was changed: %s", reload.error);
	else
		answer = mrcd_control_ok(reload_json(worker, &reload, is_trial));
	mrcd_reload_fini(&reload);
	return answer;
}
