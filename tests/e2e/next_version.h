/* SPDX-License-Identifier: BSD-2-Clause */
/* next_version - what a daemon knows that is one version on: see next_abi.h; and of the wire and of what a restart leaves */
#ifndef NEXT_VERSION_H
#define NEXT_VERSION_H

#include "next_abi.h"

#include "mrc_hello.h"
#include "mrc_state.h"
#include "mrcd_image.h"

enum {
	NEXT_WIRE = MRC_HELLO_VERSION_MAX + 1,
	NEXT_STATE = MRC_STATE_VERSION + 1,
	NEXT_IMAGE = MRCD_IMAGE_VERSION + 1,
};

#undef MRC_HELLO_VERSION_MIN
#undef MRC_HELLO_VERSION_MAX
#define MRC_HELLO_VERSION_MAX ((uint8_t)NEXT_WIRE)
#define MRC_HELLO_VERSION_MIN ((uint8_t)(NEXT_WIRE - 1))

#undef MRC_STATE_VERSION
#define MRC_STATE_VERSION ((uint16_t)NEXT_STATE)

#undef MRCD_IMAGE_VERSION
#undef MRCD_IMAGE_VERSION_OLDEST
#define MRCD_IMAGE_VERSION        ((uint32_t)NEXT_IMAGE)
#define MRCD_IMAGE_VERSION_OLDEST (MRCD_IMAGE_VERSION - 1U)

#undef MRC_VERSION
#define MRC_VERSION "99.0.0"

#endif
