/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_control - the control socket that mrcctl and mrc-perf talk to
 *
 * <runtime-dir>/control.sock, SOCK_STREAM. One JSON object per line each way:
 *	{"command": "rails"}            -> {"ok": true, "result": ...}
 *	{"command": "drain", "rail": "r0"}  -> {"ok": true, "result": {...}}
 *	anything wrong                  -> {"ok": false, "error": "text for people"}
 * Reading commands are for everybody who can open the socket; commands that
 * change something need root or the daemon's own uid (SO_PEERCRED).
 */
#ifndef MRCD_CONTROL_H
#define MRCD_CONTROL_H

#include "mrcd_worker.h"

struct mrcd_control;

int mrcd_control_new(struct mrcd_worker *worker, struct mrcd_control **control_out);
void mrcd_control_free(struct mrcd_control *control);

#endif
