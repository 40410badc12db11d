/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_scale - many hosts that all talk to each other while rails fail; what a conn costs
 *
 * The run: every pair of hosts has a conn over four rails and a channel with
 * messages both ways. Printed: what the engine asked of its allocator, by parts,
 * per conn, path and channel.
 */
#ifndef SIM_SCALE_H
#define SIM_SCALE_H

/* argv[0] is "--scale", argv[1] the number of hosts; --help tells the rest. 0, 1 failed, 2 usage. */
int sim_scale_main(int argc, char **argv);

#endif
