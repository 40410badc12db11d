/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_memfd - memory to share with one client: a sealed memfd and our mapping of it
 *
 * On wish it is made of huge pages, which a device needs fewer entries for and
 * a processor fewer look-ups. The kernel sets such pages aside when they are
 * mapped, so that either all that is needed is there or ordinary pages are
 * taken: a wish that cannot be had is never a failure.
 *
 * Units:     bytes.
 * Ownership: the descriptor is the caller's to close, the mapping to unmap.
 * Threads:   any.
 */
#ifndef MRCD_MEMFD_H
#define MRCD_MEMFD_H

#include "mrc_base.h"

/* What the configuration says for "huge pages of whatever size this machine prefers". */
#define MRCD_HUGE_PAGES_ANY   1ULL
#define MRCD_MEMFD_TEXT_BYTES 256

struct mrcd_memfd {
	int fd;
	uint8_t *addr;
	uint64_t len_bytes;  /* as asked for, rounded up to whole pages */
	uint64_t page_bytes; /* what it is made of: 4096, or a size of huge page */
};

/*
 * Make one of at least len_bytes. huge_page_bytes: 0, MRCD_HUGE_PAGES_ANY, or a
 * size. `why` gets "" or, when huge pages were wished for and not had, why not
 * and what would help, also for another memfd of also_bytes that lacks them too. Negative errno: there is no memory of any kind.
 */
int mrcd_memfd_new(const char *name, uint64_t len_bytes, uint64_t huge_page_bytes,
		   uint64_t also_bytes, struct mrcd_memfd *memfd_out,
		   char why[MRCD_MEMFD_TEXT_BYTES]);

#endif
