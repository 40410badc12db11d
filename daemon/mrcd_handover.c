/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrcd_bundle.h"
#include "mrcd_client.h"
#include "mrcd_control.h"
#include "mrcd_image.h"
#include "mrcd_log.h"
#include "mrcd_notify.h"
#include "mrcd_peer.h"
#include "mrcd_timeval.h"

#define LOOK_AGAIN_NS (1 * MRC_MS) /* while paths are being fenced */
#define WORD_NS       (1 * MRC_S)  /* for the manager to have room for a message */
#define BARRIER_NS    (5 * MRC_S)  /* and to have taken it */

/* The peers, as an image numbers them: the loop's two ends, then the configuration's order. */
static struct mrcd_peer **peers_of(const struct mrcd_worker *worker, uint32_t *count_out)
{
	struct mrcd_peer **peers = calloc(worker->peer_count + 2, sizeof(struct mrcd_peer *));

	if (peers == NULL)
		return NULL;
	peers[0] = worker->loop_ends[0];
	peers[1] = worker->loop_ends[1];
	for (uint32_t i = 0; i < worker->peer_count; i++)
		peers[2 + i] = worker->peers[i];
	*count_out = worker->peer_count + 2;
	return peers;
}

struct mrcd_handover {
	struct mrcd_worker *worker; /* not ours */
	mrcd_handover_done_fn done;
	void *context;
	struct event *timer;      /* ours */
	struct mrcd_peer **peers; /* ours; the array */
	uint32_t peer_count;
	uint64_t begin_ns;
};

bool mrcd_handover_is_possible(void)
{
	return getenv("NOTIFY_SOCKET") != NULL;
}

uint32_t mrcd_handover_room(void)
{
	const char *text = getenv("FDSTORE");
	unsigned long count = text != NULL ? strtoul(text, NULL, 10) : 0;

	return count > 0 && count < MRCD_BUNDLES_MAX ? (uint32_t)count : MRCD_BUNDLES_MAX;
}

/* For a daemon that finds the file full of errors. Without it that one takes nothing over, no more. */
static void store_conf(const struct mrcd_conf *conf)
{
	int fd = mrcd_conf_copy(conf), r = fd;

	if (fd >= 0)
		r = mrcd_notify_fds(WORD_NS,
				    "FDSTORE=1\nFDNAME=" MRCD_HANDOVER_CONF_NAME "\nFDPOLL=0", &fd,
				    1);
	if (r < 0 && r != -ENODATA)
		mrcd_warn("no copy of the configuration is left to the next daemon: %s",
			  strerror(-r));
	if (fd >= 0)
		close(fd);
}

/* Sockets that hang up meanwhile are the next daemon's to find: FDPOLL=0. */
int mrcd_handover_store(struct mrcd_bundle *bundle, const struct mrcd_conf *conf)
{
	int r = mrcd_notify_fds(WORD_NS, "FDSTORE=1\nFDNAME=" MRCD_HANDOVER_NAME "\nFDPOLL=0",
				bundle->fds, bundle->count);

	if (r > 0 && conf != NULL && bundle->count < mrcd_handover_room())
		store_conf(conf);
	/* It knows whose messages those were only as long as we are there. */
	if (r > 0)
		r = mrcd_notify_barrier(BARRIER_NS);
	else if (r == 0)
		r = -ENOTCONN;
	else if (r == -EAGAIN)
		r = -ETIMEDOUT;
	/* It may still read it, while we end or when a proxy passes it on. */
	if (r < 0) {
		mrcd_bundle_take_back(bundle);
		mrcd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" MRCD_HANDOVER_CONF_NAME);
	}
	return r;
}

/* Until nobody has anything to say. True: no link is left either. */
static bool settle(struct mrcd_handover *handover)
{
	bool is_settled;

	do {
		is_settled = true;
		for (uint32_t i = 0; i < handover->peer_count; i++)
			is_settled &= mrcd_peer_settle(handover->peers[i]);
	} while (mrcd_client_side_settle(handover->worker->clients));
	return is_settled;
}

static void save_rails(const struct mrcd_worker *worker, struct mrcd_image_out *out)
{
	mrcd_image_put(out, mrcd_worker_rails(worker));
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail))
			continue;
		mrcd_image_put_name(out, rail->conf->name);
		mrcd_image_put(out, rail->given.is_drained);
		mrcd_image_put(out, rail->is_draining);
		mrcd_image_put(out, rail->frames_sent);
		mrcd_image_put(out, rail->frames_received);
		mrcd_image_put(out, rail->bytes_sent);
		mrcd_image_put(out, rail->bytes_received);
		mrcd_image_put(out, rail->carrier_losses);
		mrcd_image_put(out, rail->flaps);
		mrcd_image_put(out, rail->flapped_ns);
		mrcd_image_put(out, rail->strangers);
	}
}

static int save_peers(const struct mrcd_handover *handover, struct mrcd_image_out *out)
{
	mrcd_image_put(out, handover->peer_count);
	for (uint32_t i = 0; i < handover->peer_count; i++) {
		int r;

		mrcd_image_put_name(out, i < 2 ? "" : mrcd_peer_name(handover->peers[i]));
		for (uint8_t p = 0; p < MRC_PATHS_MAX; p++)
			mrcd_image_put(out, mrcd_peer_path_mark(handover->peers[i], p));
		r = mrcd_peer_save(handover->peers[i], out);
		if (r < 0) {
			mrcd_err("the state of peer %s cannot be written: %s",
				 mrcd_peer_name(handover->peers[i]), strerror(-r));
			return r;
		}
	}
	return 0;
}

/* All of it in one memfd, into the bundle. */
static int save(const struct mrcd_handover *handover, struct mrcd_bundle *bundle)
{
	const struct mrcd_worker *worker = handover->worker;
	struct mrcd_parcel parcel = {.kind = MRCD_PARCEL_IMAGE, .fd_count = 1};
	struct mrcd_image_out out;
	int r;

	mrcd_image_begin(&out);
	mrcd_image_put_name(&out, worker->conf->host);
	mrcd_image_put(&out, worker->boot_id);
	mrcd_image_put(&out, handover->begin_ns);
	mrcd_image_put(&out, bundle->parcel_count + 1);
	mrcd_image_put(&out, worker->strangers);
	mrcd_image_put(&out, worker->drain_since_ns);
	save_rails(worker, &out);
	r = save_peers(handover, &out);
	if (r == 0) {
		mrcd_client_side_save(worker->clients, handover->peers, handover->peer_count, &out);
		r = mrcd_image_seal(&out, &parcel.fds[0]);
	}
	mrcd_image_fini(&out);
	if (r < 0)
		return r;
	r = mrcd_bundle_put(bundle, &parcel);
	close(parcel.fds[0]);
	return r;
}

static int pack(struct mrcd_handover *handover, struct mrcd_bundle *bundle)
{
	struct mrcd_worker *worker = handover->worker;
	const struct mrcd_parcel control = {
		.kind = MRCD_PARCEL_CONTROL,
		.fd_count = 1,
		.fds = {mrcd_control_fd(worker->control)},
	};
	int r;

	/* Without it the last program may be one too many; better than to leave none. */
	mrcd_bundle_keep_spare(bundle);
	r = mrcd_bundle_put(bundle, &control);
	if (r == 0)
		r = mrcd_client_side_pack(worker->clients, bundle);
	mrcd_bundle_use_spare(bundle);
	if (r < 0)
		return r;
	/* Clients that could not be packed end, and their peers are to hear of it. */
	settle(handover);
	return save(handover, bundle);
}

static void finish(struct mrcd_handover *handover)
{
	struct mrcd_worker *worker = handover->worker;
	uint32_t before = mrcd_client_side_count(worker->clients), count;
	struct mrcd_bundle bundle;
	int r;

	mrcd_bundle_begin(&bundle, mrcd_handover_room());
	r = pack(handover, &bundle);
	count = mrcd_client_side_count(worker->clients);
	if (r == 0)
		r = mrcd_handover_store(&bundle, count > 0 ? worker->conf : NULL);
	if (r == 0) {
		mrcd_client_side_leave(worker->clients);
		mrcd_control_leave(worker->control);
		mrcd_notice("left to the next daemon: %u program%s, after %llu us", count,
			    count == 1 ? "" : "s",
			    (mrcd_worker_now(worker) - handover->begin_ns) / MRC_US);
		if (count < before)
			mrcd_warn("not left to it: %u that could not be passed on, and have ended",
				  before - count);
	} else {
		mrcd_err(
			"nothing is left to the next daemon, programs are told that this one ends: "
			"%s",
			r == -ETIMEDOUT ? "the service manager does not take it" : strerror(-r));
	}
	mrcd_bundle_fini(&bundle);
	handover->done(handover->context);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	const struct timeval again = mrcd_timeval_of(LOOK_AGAIN_NS);
	struct mrcd_handover *handover = context;
	uint64_t now_ns = mrcd_worker_now(handover->worker);

	if (settle(handover)) {
		finish(handover);
	} else if (now_ns - handover->begin_ns < MRCD_HANDOVER_PATIENCE_NS) {
		event_add(handover->timer, &again);
	} else {
		mrcd_err("a path is not fenced after %llu ms: nothing is left to the next daemon",
			 MRCD_HANDOVER_PATIENCE_NS / MRC_MS);
		handover->done(handover->context);
	}
}

int mrcd_handover_begin(struct mrcd_worker *worker, mrcd_handover_done_fn done, void *context,
			struct mrcd_handover **handover_out)
{
	struct mrcd_handover *handover = calloc(1, sizeof(*handover));

	if (handover == NULL)
		return -ENOMEM;
	handover->worker = worker;
	handover->done = done;
	handover->context = context;
	handover->begin_ns = mrcd_worker_now(worker);
	handover->timer = evtimer_new(worker->base, on_timer, handover);
	handover->peers = peers_of(worker, &handover->peer_count);
	if (handover->timer == NULL || handover->peers == NULL) {
		mrcd_handover_free(handover);
		return -ENOMEM;
	}
	*handover_out = handover;
	mrcd_control_pause(worker->control);
	mrcd_client_side_pause(worker->clients);
	for (uint32_t i = 0; i < handover->peer_count; i++)
		mrcd_peer_quiesce(handover->peers[i]);
	on_timer(-1, 0, handover);
	return 0;
}

void mrcd_handover_free(struct mrcd_handover *handover)
{
	if (handover == NULL)
		return;
	if (handover->timer != NULL)
		event_free(handover->timer);
	free(handover->peers);
	free(handover);
}
