/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_reaction - how much later a message comes when its path goes silent
 *
 * Two hosts, four rails that place by RDMA write, 10 us of round trip and timers
 * for hardware rails. Steady traffic, and at a random moment one rail passes
 * nothing any more and nobody is told. Each message's delay is held against
 * that of the same message in the same run without the fault.
 */
#ifndef SIM_REACTION_H
#define SIM_REACTION_H

/* argv[0] is "--reaction"; --help tells the rest. 0, 1 when a run failed or missed its aim, 2 usage. */
int sim_reaction_main(int argc, char **argv);

#endif
