/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_scale.h"

int sim_scale_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}
