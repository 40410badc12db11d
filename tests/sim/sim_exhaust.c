/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_exhaust.h"

int sim_exhaust_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}
