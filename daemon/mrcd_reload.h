/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_reload - the configuration read again while the daemon runs
 *
 * Either the whole file is right, key files included, and what can change
 * without a restart has changed; or nothing has.
 *
 * Threads: the worker's loop.  I/O: reads files, logs.
 */
#ifndef MRCD_RELOAD_H
#define MRCD_RELOAD_H

#include "mrcd_conf.h"

struct mrcd_reload {
	char changed
		[96]; /* what is in force now that was not: "log, keys of 2 peers"; "" nothing */
	char waiting[160]; /* what waits for a restart; "" nothing */
	char error[512];   /* after -EINVAL: the first complaint */
};

/* Read conf->file again and take over into `conf` what can be. -EINVAL: nothing was changed. Logged. */
int mrcd_reload(struct mrcd_conf *conf, struct mrcd_reload *reload_out);

#endif
