/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_show - the daemon's answers as tables for people
 *
 * A value that an older or newer daemon does not send is shown as empty or 0.
 *
 * Threads: one.  I/O: prints to `out`.
 */
#ifndef MRCCTL_SHOW_H
#define MRCCTL_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One function for each command; `result` is lent. */
void mrcctl_show_status(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_rails(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_peers(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_paths(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_channels(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_clients(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_drain(const json_t *result, FILE *out, bool has_colour);
void mrcctl_show_fault(const json_t *result, FILE *out, bool has_colour);

#endif
