/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_service - the names that clients of this host offer, and how names look
 *
 * Ownership: a struct mrcd_service is embedded in its owner (a client's
 *            listener), which removes it before it goes.
 * Threads:   one at a time (the worker's loop).
 */
#ifndef MRCD_SERVICE_H
#define MRCD_SERVICE_H

#include "mrc_base.h"

#define MRCD_SERVICE_BUCKETS 256U

struct mrcd_service {
	char name[MRC_NAME_MAX + 1];
	void *owner;               /* whose it is; the caller's own */
	struct mrcd_service *next; /* in its bucket */
};

struct mrcd_services {
	struct mrcd_service *buckets[MRCD_SERVICE_BUCKETS];
	uint32_t count;
};

/* 1 to MRC_NAME_MAX of [A-Za-z0-9._-], and a 0 within size_bytes. */
bool mrcd_name_is_valid(const char *name, size_t size_bytes);

/*
 * Take "host/service" apart. -EINVAL: no 0 within size_bytes, not exactly one
 * slash, or a part that is no valid name; nothing is written then.
 */
int mrcd_target_parse(const char *target, size_t size_bytes, char host_out[MRC_NAME_MAX + 1],
		      char service_out[MRC_NAME_MAX + 1]);

/* Offer service->name, which is valid. -EEXIST: somebody does already. */
int mrcd_services_add(struct mrcd_services *services, struct mrcd_service *service);
/* Must have been added. */
void mrcd_services_remove(struct mrcd_services *services, struct mrcd_service *service);
/* Who offers it; NULL: nobody. */
struct mrcd_service *mrcd_services_find(const struct mrcd_services *services, const char *name);

#endif
