/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_cost - two engines and next to nothing between them, to count the instructions of each
 *
 * Host a sends messages to host b over paths that lose nothing. Once all is warm
 * the calls into the engines go through functions whose names say whose they
 * are: cost_sender_handle, cost_sender_next, cost_receiver_handle,
 * cost_receiver_next. tests/sim/cost has callgrind count what happens below them.
 */
#ifndef SIM_COST_H
#define SIM_COST_H

/* argv[0] is "--cost"; --help tells the rest. 0, 1 when not all was delivered, 2 usage. */
int sim_cost_main(int argc, char **argv);

#endif
