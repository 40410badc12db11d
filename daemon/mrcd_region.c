/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_region.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mrcd_peer.h"
#include "mrcd_worker.h"

static struct mrcd_region_rail *region_rail(struct mrcd_region *region,
					    const struct mrcd_rail *rail)
{
	MRC_ASSERT(rail->index < MRCD_RAILS_MAX);
	return &region->rails[rail->index];
}

/* Only rails that want regions are ever named here. */
static void region_offer(struct mrcd_region *region, struct mrcd_rail *rail)
{
	struct mrcd_region_rail *at = region_rail(region, rail);

	if (rail->ops->region_add == NULL || region->is_ending ||
	    (at->state != MRCD_REGION_NONE && at->state != MRCD_REGION_FAILED))
		return;
	*at = (struct mrcd_region_rail){.state = MRCD_REGION_ADDING};
	rail->ops->region_add(rail, region);
}

/* The key of its landing memory on this rail, to one peer. Does not pump. */
static bool region_tell(const struct mrcd_region *region, const struct mrcd_rail *rail,
			struct mrcd_peer *peer, bool is_valid)
{
	const struct mrcd_region_rail *at = &region->rails[rail->index];
	const struct mrc_ev_key key = {
		.flow = region->flow,
		.is_valid = is_valid,
		.rkey = at->rkey,
		.base = at->base,
	};

	return mrcd_peer_tell_key(peer, rail, &key);
}

/* And to all of them; who has something to send by it is pumped. */
static void region_tell_all(const struct mrcd_region *region, const struct mrcd_rail *rail,
			    bool is_valid)
{
	struct mrcd_worker *worker = region->worker;

	if (!region->is_landing)
		return;
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		if (region_tell(region, rail, worker->peers[i], is_valid))
			mrcd_peer_pump(worker->peers[i]);
	}
}

static void region_free(struct mrcd_region *region)
{
	LIST_REMOVE(region, entry);
	if (region->is_unmapped_at_end)
		munmap(region->addr, region->len_bytes);
	free(region);
}

/* No rail has it, or is to answer about it. */
static bool region_is_over(const struct mrcd_region *region)
{
	if (!region->is_ending)
		return false;
	for (uint32_t i = 0; i < MRCD_RAILS_MAX; i++) {
		if (region->rails[i].state != MRCD_REGION_NONE &&
		    region->rails[i].state != MRCD_REGION_FAILED)
			return false;
	}
	return true;
}

int mrcd_region_new(struct mrcd_worker *worker, void *addr, uint64_t len_bytes, bool is_landing,
		    uint32_t flow, struct mrcd_region **region_out)
{
	struct mrcd_region *region = calloc(1, sizeof(*region));

	if (region == NULL)
		return -ENOMEM;
	region->worker = worker;
	region->addr = addr;
	region->len_bytes = len_bytes;
	region->is_landing = is_landing;
	region->flow = flow;
	LIST_INSERT_HEAD(&worker->regions, region, entry);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			region_offer(region, &worker->rails[i]);
	}
	*region_out = region;
	return 0;
}

void mrcd_region_end(struct mrcd_region *region)
{
	struct mrcd_worker *worker;
	uint32_t asked = 0;

	if (region == NULL)
		return;
	MRC_ASSERT(!region->is_ending);
	worker = region->worker;
	region->is_ending = true;
	/* First the books, then the calls: the last of them may free the region. */
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (region->rails[i].state != MRCD_REGION_READY)
			continue;
		region_tell_all(region, &worker->rails[i], false);
		region->rails[i].state = MRCD_REGION_REMOVING;
		asked |= 1U << i;
	}
	if (region_is_over(region)) {
		region_free(region);
		return;
	}
	for (uint32_t i = 0; asked != 0; i++, asked >>= 1) {
		if ((asked & 1) != 0)
			worker->rails[i].ops->region_remove(&worker->rails[i], region);
	}
}

void mrcd_region_end_unmap(struct mrcd_region *region)
{
	region->is_unmapped_at_end = true;
	mrcd_region_end(region);
}

void mrcd_region_free_all(struct mrcd_worker *worker)
{
	struct mrcd_region *region;

	while ((region = LIST_FIRST(&worker->regions)) != NULL)
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		region_free(region); /* NOLINT(clang-analyzer-unix.Malloc) */
}

void mrcd_region_tell_keys(const struct mrcd_region *region, struct mrcd_peer *peer)
{
	const struct mrcd_worker *worker = region->worker;

	MRC_ASSERT(region->is_landing);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (region->rails[i].state == MRCD_REGION_READY)
			region_tell(region, &worker->rails[i], peer, true);
	}
}

/* ---- from a kind of rail ---- */

void mrcd_region_offer_all(struct mrcd_rail *rail)
{
	struct mrcd_region *region;

	LIST_FOREACH(region, &rail->worker->regions, entry)
	region_offer(region, rail);
}

void mrcd_region_on_added(struct mrcd_region *region, struct mrcd_rail *rail, int error)
{
	struct mrcd_region_rail *at = region_rail(region, rail);

	MRC_ASSERT(at->state == MRCD_REGION_ADDING);
	if (error != 0) {
		at->state = MRCD_REGION_FAILED;
		if (region_is_over(region))
			region_free(region);
		return;
	}
	if (region->is_ending) {
		at->state = MRCD_REGION_REMOVING;
		rail->ops->region_remove(rail, region);
		return;
	}
	at->state = MRCD_REGION_READY;
	region_tell_all(region, rail, true);
}

void mrcd_region_on_removed(struct mrcd_region *region, struct mrcd_rail *rail)
{
	struct mrcd_region_rail *at = region_rail(region, rail);

	MRC_ASSERT(at->state == MRCD_REGION_REMOVING);
	MRC_ASSERT(at->wr_count == 0);
	*at = (struct mrcd_region_rail){.state = MRCD_REGION_NONE};
	if (region_is_over(region))
		region_free(region);
}

void mrcd_region_withdraw_all(struct mrcd_rail *rail)
{
	struct mrcd_region *region;

	LIST_FOREACH(region, &rail->worker->regions, entry)
	{
		struct mrcd_region_rail *at = region_rail(region, rail);

		if (at->state != MRCD_REGION_READY)
			continue;
		region_tell_all(region, rail, false);
		at->state = MRCD_REGION_REMOVING;
	}
}
