/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_verbs.h"

/* A region as a device knows it; region->rails[].kind_data. */
struct verbs_mr {
	struct mrcd_job job; /* first */
	struct mrcd_verbs *verbs;
	struct mrcd_verbs_device *device; /* in use by us */
	struct mrcd_region *region;
	struct ibv_mr *mr;
	int error;
	bool is_removing; /* as soon as no work request names it */
};

/* ---- registering ---- */

static void add_run(struct mrcd_job *job)
{
	struct verbs_mr *mr = (struct verbs_mr *)job;
	int access = mr->region->is_landing ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;

	errno = 0;
	mr->mr = ibv_reg_mr(mr->device->pd, mr->region->addr, mr->region->len_bytes, access);
	if (!mr->mr)
		mr->error = errno ? -errno : -EIO;
}

static void add_failed_log(const struct verbs_mr *mr)
{
	char text[MRCD_VERBS_REASON_BYTES];

	mrcd_verbs_register_explain(text, sizeof(text), -mr->error,
				    mr->region->is_landing ? "a landing arena" : "a send arena",
				    mr->region->len_bytes);
	mrcd_verbs_error(mr->verbs, "%s", text);
}

static void mr_free(struct verbs_mr *mr)
{
	mrcd_verbs_device_put(mr->device);
	free(mr);
}

/* A new device may have come while this region could not be offered to it. */
static void offer_again(struct mrcd_verbs *verbs, bool was_lost)
{
	/* Only after a loss: what a device did not take, it is not asked for again and again. */
	if (was_lost && verbs->device)
		mrcd_region_offer_all(verbs->rail);
}

static void remove_run(struct mrcd_job *job)
{
	struct verbs_mr *mr = (struct verbs_mr *)job;

	if (ibv_dereg_mr(mr->mr))
		mr->error = errno ? -errno : -EIO;
}

/* Registered too late, and deregistered. */
static void undone(struct mrcd_job *job)
{
	struct verbs_mr *mr = (struct verbs_mr *)job;
	struct mrcd_verbs *verbs = mr->verbs;
	struct mrcd_region *region = mr->region;

	mrcd_worker_now(verbs->rail->worker);
	mr_free(mr);
	mrcd_region_on_added(region, verbs->rail, -ENODEV);
	offer_again(verbs, true);
}

static void added(struct mrcd_job *job)
{
	struct verbs_mr *mr = (struct verbs_mr *)job;
	struct mrcd_rail *rail = mr->verbs->rail;
	struct mrcd_region *region = mr->region;
	struct mrcd_region_rail *at = &region->rails[rail->index];

	mrcd_worker_now(rail->worker);
	if (mr->mr && mr->device->is_lost) {
		mr->job = (struct mrcd_job){.run = remove_run, .done = undone, .is_slow = true};
		mrcd_offload_submit(rail->worker->offload, &mr->verbs->memory_lane, &mr->job);
		return;
	}
	if (!mr->mr) {
		struct mrcd_verbs *verbs = mr->verbs;
		bool was_lost = mr->device->is_lost;
		int error = mr->error;

		add_failed_log(mr);
		mr_free(mr);
		mrcd_region_on_added(region, rail, error);
		offer_again(verbs, was_lost);
		return;
	}
	at->kind_data = mr;
	at->lkey = mr->mr->lkey;
	at->rkey = mr->mr->rkey;
	at->base = (uint64_t)(uintptr_t)region->addr;
	at->wr_count = 0;
	mrcd_region_on_added(region, rail, 0);
}

void mrcd_verbs_region_add(struct mrcd_rail *rail, struct mrcd_region *region)
{
	struct mrcd_verbs *verbs = rail->kind_data;
	struct verbs_mr *mr;

	/* Closed, to be opened anew, or without a device. */
	if (!verbs || !verbs->device) {
		mrcd_region_on_added(region, rail, -ENODEV); /* offered again when there is one */
		return;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		mrcd_region_on_added(region, rail, -ENOMEM);
		return;
	}
	mr->verbs = verbs;
	mr->device = verbs->device;
	mr->device->use_count++;
	mr->region = region;
	mr->job = (struct mrcd_job){.run = add_run, .done = added, .is_slow = true};
	mrcd_offload_submit(rail->worker->offload, &verbs->memory_lane, &mr->job);
}

/* ---- deregistering ---- */

static void removed(struct mrcd_job *job)
{
	struct verbs_mr *mr = (struct verbs_mr *)job;
	struct mrcd_verbs *verbs = mr->verbs;
	struct mrcd_region *region = mr->region;
	bool was_lost = mr->device->is_lost;

	mrcd_worker_now(verbs->rail->worker);
	if (mr->error)
		mrcd_verbs_error(verbs, "an arena cannot be deregistered: %s",
				 strerror(-mr->error));
	region->rails[verbs->rail->index].kind_data = NULL;
	mr_free(mr);
	mrcd_region_on_removed(region, verbs->rail);
	offer_again(verbs, was_lost);
}

static void remove_if_idle(struct verbs_mr *mr)
{
	struct mrcd_rail *rail = mr->verbs->rail;

	if (!mr->is_removing || mr->region->rails[rail->index].wr_count)
		return;
	mr->job = (struct mrcd_job){.run = remove_run, .done = removed, .is_slow = true};
	mrcd_offload_submit(rail->worker->offload, &mr->verbs->memory_lane, &mr->job);
}

void mrcd_verbs_region_remove(struct mrcd_rail *rail, struct mrcd_region *region)
{
	struct verbs_mr *mr = region->rails[rail->index].kind_data;

	if (!mr) {
		mrcd_region_on_removed(region, rail);
		return;
	}
	if (mr->is_removing)
		return;
	mr->is_removing = true;
	remove_if_idle(mr);
}

void mrcd_verbs_region_put(struct mrcd_verbs *verbs, struct mrcd_region *region)
{
	struct mrcd_region_rail *at = &region->rails[verbs->rail->index];

	MRC_ASSERT(at->wr_count > 0);
	if (--at->wr_count == 0 && at->kind_data)
		remove_if_idle(at->kind_data);
}

void mrcd_verbs_region_drop_all(struct mrcd_verbs *verbs)
{
	struct mrcd_region *region, *next;

	for (region = LIST_FIRST(&verbs->rail->worker->regions); region; region = next) {
		next = LIST_NEXT(region, entry);
		if (region->rails[verbs->rail->index].kind_data)
			mrcd_verbs_region_remove(verbs->rail, region);
	}
}
