/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_health - mrc-sim --health: how many failures mrc_health foretells, and how many that never come */
#ifndef SIM_HEALTH_H
#define SIM_HEALTH_H

int sim_health_main(int argc, char **argv);

#endif
