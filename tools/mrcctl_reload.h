/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_reload - have the daemon read its configuration again, or say what would come of it
 *
 * Threads: one.  I/O: the control socket, stdout, stderr.
 */
#ifndef MRCCTL_RELOAD_H
#define MRCCTL_RELOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * is_check: change nothing. Waits a few seconds for what goes to have gone, and says what has not.
 * Answers the exit status.
 */
int mrcctl_reload(const char *socket, bool is_check, bool is_json);
/* What the daemon answered, for people. */
void mrcctl_reload_show(const json_t *result, FILE *out);

#endif
