/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_about - what one end of a path tells the other about itself (frame ABOUT)
 *
 * For people who look for what is wrong (mrcctl doctor): the protocol depends on
 * none of it. Each end says it once a path epoch, on the path itself, and again
 * when something of it has changed. Texts are printable ASCII and short.
 *
 * Units:   bytes, bits per second, ns.  Ownership: none.  Threads: any.  I/O, time: none.
 */
#ifndef MRC_ABOUT_H
#define MRC_ABOUT_H

#include "mrc_wire.h"

#define MRC_ABOUT_MAC_BYTES 6U
#define MRC_ABOUT_TEXT_MAX  63U
#define MRC_ABOUT_TEXTS     6U
#define MRC_ABOUT_FIXED     28U /* bytes before the texts */
#define MRC_ABOUT_BYTES_MAX (MRC_ABOUT_FIXED + MRC_ABOUT_TEXTS * (1U + MRC_ABOUT_TEXT_MAX))

enum mrc_about_kind {
	MRC_ABOUT_TCP,
	MRC_ABOUT_ROCE,
	MRC_ABOUT_INFINIBAND,
	MRC_ABOUT_IWARP,
	MRC_ABOUT_KIND_COUNT
};

struct mrc_about {
	uint32_t mtu;              /* of the interface; 0: not known, here and below */
	uint64_t speed_bits_per_s; /* it runs at */
	int64_t wall_ns;           /* the host's time of day less its monotonic clock */
	uint8_t mac[MRC_ABOUT_MAC_BYTES];
	uint8_t kind; /* enum mrc_about_kind: of the rail's device */
	char rail[MRC_ABOUT_TEXT_MAX + 1];
	char version[MRC_ABOUT_TEXT_MAX + 1]; /* of mrcd */
	char kernel[MRC_ABOUT_TEXT_MAX + 1];
	char rdma_core[MRC_ABOUT_TEXT_MAX + 1];
	char driver[MRC_ABOUT_TEXT_MAX + 1];
	char firmware[MRC_ABOUT_TEXT_MAX + 1];
};

/* Writes at most MRC_ABOUT_BYTES_MAX. What is not printable in a text becomes '?'. */
void mrc_about_put(const struct mrc_about *about, struct mrc_cursor *c);

/* -EPROTO: too short or too long, a kind there is not, a text with other bytes. Then *about_out is unspecified. */
int mrc_about_take(struct mrc_cursor *c, struct mrc_about *about_out);

const char *mrc_about_kind_name(uint8_t kind);

#endif
