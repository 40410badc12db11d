/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_exhaust - a short exchange, with one fault at its n-th event for every n, and with two
 *
 * The exchange: two hosts connect, a channel is opened, small and large messages
 * go both ways at each level, the channel is closed. All checkers watch; when
 * the fault is over all must come to its end.
 */
#ifndef SIM_EXHAUST_H
#define SIM_EXHAUST_H

/* argv[0] is "--exhaustive"; --help tells the rest. 0, 1 when a run failed, 2 usage. */
int sim_exhaust_main(int argc, char **argv);

#endif
