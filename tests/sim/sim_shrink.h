/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_shrink - the smallest run that fails as a given one does
 *
 * Fewer hosts, rails, faults and kinds of them, pipes, messages, and so on, as
 * long as the same checker fires. Stops after a minute.
 */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim_options.h"

/* Prints what it found as a command line. */
void sim_shrink(const struct sim_options *options, FILE *out);

#endif
