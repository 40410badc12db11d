/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <net/if.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_carrier.h"
#include "mrcd_timeval.h"
#include "mrcd_verbs.h"

#define RETRY_NS MRC_S
/* Doubled up to these: a device that is there costs more to try, and is not healed by time. */
#define RETRY_NS_MAX       (4 * MRC_S)
#define RETRY_NS_MAX_FOUND (32 * MRC_S)
/* Threads of a daemon for calls that block, and how many of them a slow one leaves free. */
#define THREADS          8
#define THREADS_RESERVED 3

/* Longer than a device takes to open; then tcp will do. */
#define VERDICT_NS (5 * MRC_S)

static const struct timeval verdict_span = {.tv_sec = (time_t)(VERDICT_NS / MRC_S)};
static const struct timeval retry_span = {.tv_sec = (time_t)(RETRY_NS / MRC_S)};

/* Opening a device has failed. */
static void retry_later(struct mrcd_verbs *verbs, bool is_found)
{
	const struct timeval span = mrcd_timeval_of(verbs->retry_ns);

	event_add(&verbs->retry_event, &span);
	verbs->retry_ns =
		MRC_MIN(2 * verbs->retry_ns, is_found ? RETRY_NS_MAX_FOUND : RETRY_NS_MAX);
}

void mrcd_verbs_error(struct mrcd_verbs *verbs, const char *format, ...)
{
	uint64_t suppressed;
	va_list args;

	va_start(args, format);
	vsnprintf(verbs->last_error, sizeof(verbs->last_error), format, args);
	va_end(args);
	if (!mrcd_log_allowed(&verbs->error_limit, verbs->rail->worker->now_ns, &suppressed))
		return;
	if (suppressed)
		mrcd_warn("rail %s: %s (and %llu more errors of its device)", verbs->conf.name,
			  verbs->last_error, (unsigned long long)suppressed);
	else
		mrcd_warn("rail %s: %s", verbs->conf.name, verbs->last_error);
}

/* ---- the device ---- */

static void device_closed(struct mrcd_job *job)
{
	free(job);
}

struct close_job {
	struct mrcd_job job; /* first */
	struct mrcd_verbs_device *device;
};

static void device_close_run(struct mrcd_job *job)
{
	mrcd_verbs_device_close(((struct close_job *)job)->device);
}

/* No link uses it and nobody watches it any more. */
static void device_put_away(struct mrcd_verbs *verbs, struct mrcd_verbs_device *device)
{
	struct close_job *close_job = calloc(1, sizeof(*close_job));

	if (!close_job) {
		mrcd_verbs_device_close(device);
		return;
	}
	close_job->device = device;
	close_job->job.run = device_close_run;
	close_job->job.done = device_closed;
	close_job->job.is_slow = true;
	mrcd_offload_submit(verbs->rail->worker->offload, &verbs->device_lane, &close_job->job);
}

static void device_open_run(struct mrcd_job *job)
{
	mrcd_verbs_device_open(
		(struct mrcd_verbs_device *)(void *)((char *)job -
						     offsetof(struct mrcd_verbs_device, job)));
}

/*
 * Type auto takes tcp where there is no device, and a path stays what it came up
 * as. So while it is not known whether there is one (the rail has just begun, or
 * its device was lost a moment ago) tcp will not do.
 */
static void looking_begin(struct mrcd_verbs *verbs)
{
	verbs->upgrade.is_required = true;
	if (verbs->conf.type == MRCD_RAIL_AUTO)
		event_add(&verbs->verdict_event, &verdict_span);
}

/* Whether there is one is known, or nobody shall wait for it any more. */
static void looking_end(struct mrcd_verbs *verbs)
{
	struct mrcd_rail *rail = verbs->rail;

	if (verbs->conf.type != MRCD_RAIL_AUTO || !verbs->upgrade.is_required)
		return;
	verbs->upgrade.is_required = false;
	event_del(&verbs->verdict_event);
	/* Paths that waited for it need not sit out their backoff. */
	if (rail->is_carrier_up && !verbs->device)
		mrcd_rail_on_carrier(rail, true);
}

static void on_verdict(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs *verbs = context;

	mrcd_worker_now(verbs->rail->worker);
	looking_end(verbs);
}

static void device_opened(struct mrcd_job *job)
{
	struct mrcd_verbs_device *device =
		(struct mrcd_verbs_device *)(void *)((char *)job -
						     offsetof(struct mrcd_verbs_device, job));
	struct mrcd_verbs *verbs = device->verbs;
	struct mrcd_rail *rail = verbs->rail;

	verbs->opening = NULL;
	mrcd_worker_now(rail->worker);
	if (!verbs->is_closing && !device->error)
		device->error = mrcd_verbs_device_watch(device);
	if (verbs->is_closing || device->error) {
		/* On a host without devices auto is tcp, and that is no news. */
		if (!verbs->is_closing && strcmp(verbs->why, device->why) != 0) {
			snprintf(verbs->why, sizeof(verbs->why), "%s", device->why);
			if (rail->conf->type == MRCD_RAIL_AUTO)
				mrcd_info("rail %s (%s): %s; tcp is used", rail->conf->name,
					  verbs->conf.interface, device->why);
			else
				mrcd_warn("rail %s (%s): %s; trying again", rail->conf->name,
					  verbs->conf.interface, device->why);
		}
		if (!verbs->is_closing) {
			verbs->is_found = device->is_found;
			retry_later(verbs, device->is_found);
			looking_end(verbs);
		}
		mrcd_verbs_device_close(device);
		return;
	}
	verbs->why[0] = '\0';
	verbs->is_found = false;
	verbs->retry_ns = RETRY_NS;
	verbs->device = device;
	device->use_count = 1; /* ours */
	device->serial = ++verbs->device_serial;
	rail->guests_max = device->guests_max;
	if (rail->path_count <= device->path_count)
		mrcd_rail_guests_out(rail);
	LIST_INSERT_HEAD(&verbs->devices, device, rail_entry);
	mrcd_notice("rail %s: RDMA device %s port %u, %u receive entries, %u for each path",
		    rail->conf->name, ibv_get_device_name(device->context->device), device->port,
		    device->entry_count, device->share);
	looking_end(verbs);
	mrcd_region_offer_all(rail);
	mrcd_verbs_poll_soon(verbs);
	/* Paths that found no device need not sit out their backoff. */
	if (rail->is_carrier_up)
		mrcd_rail_on_carrier(rail, true);
}

static void device_look(struct mrcd_verbs *verbs)
{
	struct mrcd_verbs_device *device;

	if (verbs->device || verbs->opening || verbs->is_closing)
		return;
	device = calloc(1, sizeof(*device));
	if (device)
		device->own_len = sizeof(device->own);
	if (!device || mrcd_nic_own_address(verbs->rail, &device->own, &device->own_len) < 0) {
		free(device);
		event_add(&verbs->retry_event, &retry_span);
		return;
	}
	device->verbs = verbs;
	device->path_count = verbs->rail->path_count;
	device->job.run = device_open_run;
	device->job.done = device_opened;
	device->job.is_slow = true;
	verbs->opening = device;
	mrcd_offload_submit(verbs->rail->worker->offload, &verbs->device_lane, &device->job);
}

/* Its links end; the engine is told of those that were up. */
static void links_end(struct mrcd_verbs *verbs, const struct mrcd_verbs_device *device)
{
	struct mrcd_verbs_link *link, *next;

	for (link = LIST_FIRST(&verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link->device != device && !verbs->is_closing)
			continue;
		mrcd_verbs_link_hurry(link);
		if (verbs->is_closing && mrcd_verbs_link_is_attempt(link))
			mrcd_verbs_link_drop(link);
		else
			mrcd_verbs_link_down(link, MRC_REASON_ERROR, "the device has gone");
	}
}

/*
 * A rail that closes waits for the worker's jobs, and rails close one after the
 * other, all of them: an attempt on any would be waited for until its deadline.
 */
static void attempts_end(struct mrcd_worker *worker)
{
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];
		struct mrcd_verbs *verbs =
			rail->ops == &mrcd_rail_verbs_ops ? rail->kind_data : NULL;
		struct mrcd_verbs_link *link, *next;

		for (link = verbs ? LIST_FIRST(&verbs->links) : NULL; link; link = next) {
			next = LIST_NEXT(link, entry);
			if (mrcd_verbs_link_is_attempt(link))
				mrcd_verbs_link_down(link, MRC_REASON_CLOSED, "closing");
		}
	}
}

void mrcd_verbs_device_put(struct mrcd_verbs_device *device)
{
	MRC_ASSERT(device->use_count > 0);
	if (--device->use_count)
		return;
	LIST_REMOVE(device, rail_entry);
	device_put_away(device->verbs, device);
}

void mrcd_verbs_device_lost(struct mrcd_verbs *verbs, const char *why)
{
	struct mrcd_verbs_device *device = verbs->device;

	if (!device)
		return;
	if (!verbs->is_closing)
		mrcd_warn("rail %s: device %s: %s", verbs->conf.name,
			  ibv_get_device_name(device->context->device), why);
	snprintf(verbs->why, sizeof(verbs->why), "%s", why);
	verbs->device = NULL;
	device->is_lost = true;
	mrcd_verbs_device_unwatch(device);
	mrcd_region_withdraw_all(verbs->rail);
	mrcd_verbs_region_drop_all(verbs);
	links_end(verbs, device);
	mrcd_verbs_device_put(device);
	if (verbs->is_closing)
		return;
	looking_begin(verbs);
	event_add(&verbs->retry_event, &retry_span);
}

/* ---- listening ---- */

static bool upgrade_is_capable(void *context)
{
	const struct mrcd_verbs *verbs = context;

	return verbs->device != NULL;
}

static uint16_t upgrade_port(void *context)
{
	const struct mrcd_verbs *verbs = context;

	return verbs->device ? verbs->device->listen_port : 0;
}

static void upgrade_start(void *context, int fd, const struct mrcd_handshake *hs,
			  const struct sockaddr_storage *address, socklen_t address_len)
{
	mrcd_verbs_link_start(context, fd, hs, address, address_len);
}

void mrcd_verbs_on_request(struct mrcd_verbs *verbs, struct rdma_cm_id *id, const void *token,
			   size_t token_len)
{
	struct mrcd_verbs_link *link, *found = NULL;

	/* All are looked at, so the time it takes says nothing. */
	LIST_FOREACH(link, &verbs->links, entry)
	{
		if (link->state == MRCD_VERBS_LINK_AWAITING && token_len == sizeof(link->token) &&
		    CRYPTO_memcmp(link->token, token, token_len) == 0)
			found = link;
	}
	if (found && !found->is_cancelled) {
		mrcd_verbs_link_requested(found, id);
		return;
	}
	verbs->rail->strangers++;
	verbs->rail->worker->strangers++;
	mrcd_verbs_error(verbs, "refused a queue pair: its token is nobody's");
	mrcd_verbs_reject(verbs, id);
}

/* A device that is named without an interface or address: it is that of the device. */
static int interface_find(struct mrcd_verbs *verbs)
{
	struct mrcd_conf_rail *conf = &verbs->conf;

	if (conf->interface[0] || conf->address[0])
		return 0;
	if (!verbs->rail->nic.name[0])
		return -ENODEV;
	memcpy(conf->interface, verbs->rail->nic.name, sizeof(conf->interface));
	return 0;
}

static int listen_try(struct mrcd_verbs *verbs)
{
	int r;

	if (verbs->tcp)
		return 0;
	r = interface_find(verbs);
	if (r < 0) {
		if (!verbs->why[0])
			mrcd_warn("rail %s: there is no device %s with a network interface; "
				  "looking again every second",
				  verbs->conf.name, verbs->conf.device);
		snprintf(verbs->why, sizeof(verbs->why), "there is no device %s",
			 verbs->conf.device);
		event_add(&verbs->retry_event, &retry_span);
		return 0;
	}
	r = mrcd_tcp_new(verbs->rail, &verbs->upgrade, &verbs->tcp);
	if (r < 0)
		return r;
	device_look(verbs);
	return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs *verbs = context;

	mrcd_worker_now(verbs->rail->worker);
	if (!verbs->tcp && verbs->rail->worker->nics)
		mrcd_nics_look(verbs->rail->worker->nics, false);
	if (listen_try(verbs) < 0)
		event_add(&verbs->retry_event, &retry_span);
	else if (verbs->tcp)
		device_look(verbs);
}

/* ---- the operations ---- */

static int verbs_open(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;
	struct mrcd_verbs *verbs;
	int r = 0;

	mrcd_verbs_alarm_init();
	if (!worker->offload)
		r = mrcd_offload_new(worker->base, THREADS, THREADS_RESERVED, &worker->offload);
	if (r < 0)
		return r;
	verbs = calloc(1, sizeof(*verbs));
	if (!verbs)
		return -ENOMEM;
	verbs->rail = rail;
	verbs->conf = *rail->conf;
	verbs->conf_given = rail->conf;
	verbs->retry_ns = RETRY_NS;
	rail->conf = &verbs->conf;
	verbs->upgrade = (struct mrcd_tcp_upgrade){
		.is_capable = upgrade_is_capable,
		.port = upgrade_port,
		.start = upgrade_start,
		.context = verbs,
	};
	mrcd_lane_init(&verbs->device_lane);
	mrcd_lane_init(&verbs->memory_lane);
	LIST_INIT(&verbs->devices);
	LIST_INIT(&verbs->links);
	LIST_INIT(&verbs->busy);
	LIST_INIT(&verbs->touched);
	for (uint32_t i = 0; i < MRCD_VERBS_QPN_BUCKETS; i++)
		LIST_INIT(&verbs->by_number[i]);
	verbs->error_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 4);
	event_assign(&verbs->retry_event, worker->base, -1, 0, on_retry, verbs);
	event_assign(&verbs->poll_event, worker->base, -1, 0, mrcd_verbs_on_poll, verbs);
	event_assign(&verbs->verdict_event, worker->base, -1, 0, on_verdict, verbs);
	looking_begin(verbs);
	rail->kind_data = verbs;
	r = listen_try(verbs);
	if (r < 0) {
		event_del(&verbs->verdict_event);
		rail->conf = verbs->conf_given;
		rail->kind_data = NULL;
		free(verbs);
	}
	return r;
}

static void closing_begin(struct mrcd_verbs *verbs)
{
	verbs->is_closing = true;
	event_del(&verbs->retry_event);
	event_del(&verbs->verdict_event);
	mrcd_tcp_free(verbs->tcp);
	verbs->tcp = NULL;
}

/* Nothing is to be waited for any more. */
static bool closing_is_over(const struct mrcd_verbs *verbs)
{
	return verbs->is_closing && !verbs->opening && LIST_EMPTY(&verbs->links) &&
	       LIST_EMPTY(&verbs->devices) && mrcd_lane_is_idle(&verbs->device_lane) &&
	       mrcd_lane_is_idle(&verbs->memory_lane);
}

static bool verbs_leave(struct mrcd_rail *rail)
{
	struct mrcd_verbs *verbs = rail->kind_data;

	if (!verbs)
		return true;
	if (!verbs->is_closing) {
		closing_begin(verbs);
		mrcd_verbs_device_lost(verbs, "closing");
		links_end(verbs, NULL); /* also those of devices that were lost before */
	}
	return closing_is_over(verbs);
}

static uint32_t verbs_shares(const struct mrcd_rail *rail)
{
	const struct mrcd_verbs *verbs = rail->kind_data;
	const struct mrcd_verbs_device *device = NULL;

	if (verbs)
		device = verbs->device ? verbs->device : verbs->opening;
	return device ? MRC_MAX(device->path_count, 1U) : 0;
}

/* All that is under way on any rail, for the daemon ends. */
static void closing_wait(struct mrcd_verbs *verbs)
{
	struct mrcd_worker *worker = verbs->rail->worker;

	attempts_end(worker);
	mrcd_offload_drain(worker->offload); /* it may be opening */
	mrcd_verbs_device_lost(verbs, "closing");
	links_end(verbs, NULL); /* also those of devices that were lost before */
	while (!LIST_EMPTY(&verbs->links) || mrcd_offload_pending(worker->offload))
		mrcd_offload_drain(worker->offload);
}

static void verbs_close(struct mrcd_rail *rail)
{
	struct mrcd_verbs *verbs = rail->kind_data;

	if (!verbs)
		return;
	if (!closing_is_over(verbs)) {
		closing_begin(verbs);
		closing_wait(verbs);
	}
	/* Still held by engines that will not run any more. */
	while (!LIST_EMPTY(&verbs->devices)) {
		struct mrcd_verbs_device *device = LIST_FIRST(&verbs->devices);

		LIST_REMOVE(device, rail_entry);
		mrcd_verbs_device_close(device);
	}
	event_del(&verbs->poll_event);
	rail->conf = verbs->conf_given;
	rail->kind_data = NULL;
	free(verbs);
}

static void verbs_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_verbs *verbs = rail->kind_data;
	struct mrcd_verbs_link *link;

	LIST_FOREACH(link, &verbs->links, entry)
	{
		if (mrcd_verbs_link_is_attempt(link) && link->link.peer == peer &&
		    link->link.path_index == path_index)
			return;
	}
	if (verbs->tcp && (verbs->device || !verbs->upgrade.is_required))
		mrcd_tcp_attempt_outbound(verbs->tcp, peer, path_index);
	else
		mrcd_peer_on_connect_failed(peer, path_index,
					    verbs->why[0] ? verbs->why : "no RDMA device yet");
}

/* Is what it was opened for still what the rail is? */
static void verbs_refresh(struct mrcd_rail *rail)
{
	struct mrcd_verbs *verbs = rail->kind_data;
	struct sockaddr_storage own = {0};
	socklen_t own_len = sizeof(own);
	bool is_same;

	if (!verbs || verbs->is_closing)
		return;
	if (!verbs->tcp) {
		if (listen_try(verbs) < 0)
			event_add(&verbs->retry_event, &retry_span);
		return;
	}
	mrcd_tcp_refresh(verbs->tcp);
	if (!verbs->device) {
		verbs->retry_ns = RETRY_NS;
		device_look(verbs);
		return;
	}
	if (mrcd_nic_own_address(rail, &own, &own_len) < 0)
		return; /* gone for now; its queue pairs say so by themselves */
	is_same = own_len == verbs->device->own_len && !memcmp(&own, &verbs->device->own, own_len);
	if (is_same)
		mrcd_verbs_device_refresh(verbs->device);
	else
		mrcd_verbs_device_lost(verbs, "the rail has another address now");
}

static void verbs_link_changed(struct mrcd_rail *rail)
{
	struct mrcd_verbs *verbs = rail->kind_data;

	if (verbs && verbs->device)
		mrcd_verbs_device_refresh(verbs->device);
}

static void verbs_forget(struct mrcd_rail *rail, struct mrcd_peer *peer)
{
	struct mrcd_verbs *verbs = rail->kind_data;
	struct mrcd_verbs_link *link, *next;

	if (!verbs)
		return;
	if (verbs->tcp)
		mrcd_tcp_attempts_drop(verbs->tcp, peer);
	for (link = LIST_FIRST(&verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link->link.peer == peer && mrcd_verbs_link_is_attempt(link))
			mrcd_verbs_link_drop(link);
	}
}

const struct mrcd_rail_ops mrcd_rail_verbs_ops = {
	.kind = "verbs",
	.open = verbs_open,
	.close = verbs_close,
	.leave = verbs_leave,
	.shares = verbs_shares,
	.connect = verbs_connect,
	.has_carrier = mrcd_carrier_ask,
	.refresh = verbs_refresh,
	.link_changed = verbs_link_changed,
	.forget = verbs_forget,
	.region_add = mrcd_verbs_region_add,
	.region_remove = mrcd_verbs_region_remove,
	.hold_data = mrcd_verbs_hold_data,
	.hold_free = mrcd_verbs_hold_free,
	.fault = mrcd_verbs_fault,
	.drill = mrcd_verbs_drill,
	.describe = mrcd_verbs_describe,
	.device = mrcd_verbs_device_name,
};
