/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_about - what this daemon tells of itself, its host and its rails: to mrcctl doctor, and to peers
 *
 * Threads: the worker's loop.  I/O: a few quick questions to the kernel; reads no file.
 */
#ifndef MRCD_ABOUT_H
#define MRCD_ABOUT_H

#include <jansson.h>

#include "mrcd_rail.h"

/* The control command "about": a new reference; NULL: no memory. */
json_t *mrcd_about_json(struct mrcd_worker *worker);

#endif
