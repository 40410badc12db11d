/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * next_abi - what a program or daemon knows of the ABI that is one version on
 *
 * Put before a source (-include): the header is read here first, so the numbers below
 * are what the source finds. The form itself stays as it is, which is what a version is
 * that only adds something.
 */
#ifndef NEXT_ABI_H
#define NEXT_ABI_H

#include <mrc/ring_abi.h>

enum { NEXT_ABI = MRC_ABI_VERSION + 1 };

/* The oldest is one back. */
#undef MRC_ABI_VERSION
#undef MRC_ABI_VERSION_OLDEST
#define MRC_ABI_VERSION        ((uint32_t)NEXT_ABI)
#define MRC_ABI_VERSION_OLDEST (MRC_ABI_VERSION - 1U)

#endif
