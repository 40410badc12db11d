/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_control_reload - the configuration read again, what would come of it, and how far it is */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Somebody waits for what comes of it. Owns itself. */
struct asked {
	struct mrcd_worker *worker;
	struct mrcd_control_later *later;
	bool is_trial;
};

static void on_reloaded(void *context, int r, const struct mrcd_reload *reload)
{
	struct asked *asked = context;

	mrcd_control_say_later(asked->later,
			       r < 0 ? mrcd_control_error("nothing was changed: %s", reload->error)
				     : mrcd_control_ok(reload_json(asked->worker, reload,
								   asked->is_trial)));
	free(asked);
}

json_t *mrcd_control_reload(struct mrcd_worker *worker, const json_t *command)
{
	struct asked *asked;
	int r;

	if (json_is_true(json_object_get(command, "look")))
		return mrcd_control_ok(json_pack("{s:o}", "pending", mrcd_renewal_json(worker)));
	if (worker->read_again == NULL)
		return mrcd_control_error("this daemon has no configuration to read again");
	asked = malloc(sizeof(*asked));
	if (asked == NULL)
		return NULL;
	*asked = (struct asked){
		.worker = worker,
		.later = mrcd_control_later(worker),
		.is_trial = json_is_true(json_object_get(command, "check")),
	};
	if (asked->later == NULL) {
		free(asked);
		return mrcd_control_error("reload is not asked together with others");
	}
	r = worker->read_again(worker->read_again_context, asked->is_trial, on_reloaded, asked);
	if (r == 0)
		return NULL; /* on_reloaded() */
	mrcd_control_now(asked->later);
	free(asked);
	return mrcd_control_error("nothing was changed: %s",
				  r == -EBUSY    ? "the daemon is ending"
				  : r == -EAGAIN ? "the file is being read for many others; try "
						   "again"
						 : strerror(-r));
}
