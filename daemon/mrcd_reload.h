/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_reload - the configuration read again while the daemon runs
 *
 * Either the whole file is right and can be had - key files, interfaces and addresses of rails
 * that are new, the port of metrics - and all of it is in force but what mrcd_conf_keys.h says
 * waits for a restart; or nothing has changed. Nor is it taken when it would cut off a peer: when
 * the last good path to one goes and none is added, or channels are open to a peer that goes.
 *
 * What is added runs when the call returns. What goes, goes by mrcd_renewal.h, while the rest runs
 * on and when nobody is cut off by it.
 *
 * Threads: the worker's loop; the file is read on another (mrcd_reading.h).  I/O: opens sockets,
 *          logs.
 */
#ifndef MRCD_RELOAD_H
#define MRCD_RELOAD_H

#include "mrcd_plan.h"
#include "mrcd_reading.h"
#include "mrcd_worker.h"

/* What came of it. */
struct mrcd_reload {
	struct mrcd_plan plan; /* ours */
	char error[512];       /* after an error: the first complaint */
};

/*
 * Of what was read, or could not be, from (*conf)->file. On success *conf is that one, the
 * worker's too, and the old one is freed. is_trial: only look what would happen. Logged.
 * -EINVAL: nothing was changed. -EBUSY: likewise; rails or paths of the reload before are being
 * closed. reading->conf is taken and *reload_out the caller's to fini in any case.
 */
int mrcd_reload(struct mrcd_worker *worker, struct mrcd_conf **conf, struct mrcd_reading *reading,
		bool is_trial, struct mrcd_reload *reload_out);
void mrcd_reload_fini(struct mrcd_reload *reload);

#endif
