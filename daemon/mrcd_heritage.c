/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_heritage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcd_client.h"
#include "mrcd_drain.h"
#include "mrcd_fds.h"
#include "mrcd_handover.h"
#include "mrcd_image.h"
#include "mrcd_log.h"
#include "mrcd_notify.h"
#include "mrcd_peer.h"

#define PEERS_MAX (MRCD_PEERS_MAX + 2) /* the loop's two ends as well */
#define WORD_NS   (1 * MRC_S)          /* for the manager to have room for a message */

/* An engine's state, in the image. */
struct heir {
	char name[MRC_NAME_MAX + 1];   /* "": the loop's two ends, by number */
	uint32_t marks[MRC_PATHS_MAX]; /* of its paths; 0: no more of them */
	const uint8_t *state;
	size_t state_bytes;
};

struct mrcd_heritage {
	struct mrcd_image_in in;     /* ours; after open, at the rails */
	struct mrcd_parcel *parcels; /* ours */
	uint32_t parcel_count;
	bool is_spent; /* it did not fit, or something was taken: nobody else can use it */
	uint64_t boot_id;
	uint64_t begin_ns; /* when the daemon before us stopped */
	uint64_t strangers;
	uint64_t drain_since_ns;
	struct heir *heirs;       /* ours; heir_count */
	struct mrcd_peer **peers; /* ours; the same numbers. NULL: it is no more */
	uint32_t heir_count;
};

static int heritage_read(struct mrcd_heritage *heritage, const struct mrcd_conf *conf,
			 char why[MRCD_IMAGE_WHY_BYTES])
{
	struct mrcd_image_in *in = &heritage->in;
	char host[MRC_NAME_MAX + 1];
	uint64_t parcel_count;

	mrcd_image_take_name(in, host);
	heritage->boot_id = mrcd_image_take(in);
	heritage->begin_ns = mrcd_image_take(in);
	parcel_count = mrcd_image_take(in);
	heritage->strangers = mrcd_image_take(in);
	if (in->version >= 2)
		heritage->drain_since_ns = mrcd_image_take(in);
	if (in->is_failed || heritage->boot_id == 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "the state is not complete");
		return -EPROTO;
	}
	if (strcmp(host, conf->host) != 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "the state is of host %s, and this is %s", host,
			 conf->host);
		return -EPROTO;
	}
	if (parcel_count != heritage->parcel_count) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES,
			 "of %" PRIu64 " parcels of descriptors %u are there", parcel_count,
			 heritage->parcel_count);
		return -EPROTO;
	}
	return 0;
}

/* Each of these ends alone; here is why. */
static void tell_lost(struct mrcd_heritage *heritage, const struct mrcd_conf *conf)
{
	uint32_t lost = 0, programs = 0;
	struct rlimit limit = {0};

	for (uint32_t i = 0; i < heritage->parcel_count; i++) {
		const struct mrcd_parcel *parcel = &heritage->parcels[i];

		/* It is closed: who else took it over would have less than there was. */
		heritage->is_spent |= parcel->is_lost;
		if (parcel->kind != MRCD_PARCEL_CLIENT)
			continue;
		programs++;
		lost += parcel->is_lost;
	}
	if (lost == 0)
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	mrcd_warn("%u of %u programs cannot be taken over and end: this daemon may have %llu "
		  "descriptors (LimitNOFILE=), keeps up to %u for itself, and a program has %u",
		  lost, programs, (unsigned long long)limit.rlim_cur, mrcd_fds_own(conf),
		  MRCD_PARCEL_FDS_MAX);
}

static int heritage_unpack(struct mrcd_heritage *heritage, const int *fds, uint32_t count,
			   const struct mrcd_conf *conf, char why[MRCD_IMAGE_WHY_BYTES])
{
	struct mrcd_parcel *image;
	uint32_t at = 0;
	int r;

	r = mrcd_bundle_take(fds, count, mrcd_fds_end(conf), &heritage->parcels,
			     &heritage->parcel_count);
	if (r < 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "the descriptors cannot be taken: %s",
			 strerror(-r));
		return r;
	}
	tell_lost(heritage, conf);
	image = mrcd_parcel_next(heritage->parcels, heritage->parcel_count, MRCD_PARCEL_IMAGE, &at);
	if (image == NULL) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES,
			 heritage->parcel_count == 0 ? "it was taken before, or taken back"
						     : "there is no state with the descriptors");
		return -ENOENT;
	}
	r = mrcd_image_open(&heritage->in, image->fds[0], why);
	if (r < 0)
		return r;
	return heritage_read(heritage, conf, why);
}

struct mrcd_heritage *mrcd_heritage_open(const int *fds, uint32_t count,
					 const struct mrcd_conf *conf)
{
	struct mrcd_heritage *heritage = calloc(1, sizeof(*heritage));
	char why[MRCD_IMAGE_WHY_BYTES] = "out of memory";

	/* Before it is used, so that nobody can use it twice. */
	mrcd_notify(WORD_NS, "FDSTOREREMOVE=1\nFDNAME=" MRCD_HANDOVER_NAME);
	mrcd_notify(WORD_NS, "FDSTOREREMOVE=1\nFDNAME=" MRCD_HANDOVER_CONF_NAME);
	if (heritage != NULL && heritage_unpack(heritage, fds, count, conf, why) == 0)
		return heritage;
	mrcd_warn("what the daemon before left cannot be used, starting with nothing: %s", why);
	mrcd_heritage_free(heritage);
	return NULL;
}

bool mrcd_heritage_give_back(struct mrcd_heritage *heritage, const struct mrcd_conf *conf)
{
	uint64_t now_ns = mrcd_worker_clock_ns();
	struct mrcd_bundle bundle;
	uint32_t at = 0;
	int r = 0;

	if (heritage->is_spent || heritage->begin_ns > now_ns ||
	    now_ns - heritage->begin_ns > MRCD_HERITAGE_PATIENCE_NS)
		return false;
	mrcd_bundle_begin(&bundle, mrcd_handover_room());
	mrcd_bundle_keep_spare(&bundle);
	for (uint32_t i = 0; i < heritage->parcel_count && r == 0; i++)
		r = mrcd_bundle_put(&bundle, &heritage->parcels[i]);
	mrcd_bundle_use_spare(&bundle);
	if (mrcd_parcel_next(heritage->parcels, heritage->parcel_count, MRCD_PARCEL_CLIENT, &at) ==
	    NULL)
		conf = NULL;
	if (r == 0)
		r = mrcd_handover_store(&bundle, conf);
	mrcd_bundle_fini(&bundle);
	if (r < 0)
		mrcd_warn("what the daemon before left cannot be given back: %s", strerror(-r));
	return r == 0;
}

void mrcd_heritage_free(struct mrcd_heritage *heritage)
{
	if (heritage == NULL)
		return;
	mrcd_image_close(&heritage->in);
	mrcd_parcels_free(heritage->parcels, heritage->parcel_count);
	free(heritage->heirs);
	free(heritage->peers);
	free(heritage);
}

static void restore_rail(struct mrcd_image_in *in, struct mrcd_worker *worker)
{
	char name[MRC_NAME_MAX + 1];
	struct mrcd_rail *rail, gone = {0};
	bool was_conf_drained, was_draining;

	mrcd_image_take_name(in, name);
	rail = mrcd_worker_rail(worker, name);
	if (rail == NULL)
		rail = &gone;
	was_conf_drained = mrcd_image_take_bool(in);
	was_draining = mrcd_image_take_bool(in);
	/* What the operator said last: mrcctl, or a file that says something else now. */
	if (rail->conf != NULL && rail->given.is_drained == was_conf_drained)
		rail->is_draining = was_draining;
	rail->frames_sent = mrcd_image_take(in);
	rail->frames_received = mrcd_image_take(in);
	rail->bytes_sent = mrcd_image_take(in);
	rail->bytes_received = mrcd_image_take(in);
	rail->carrier_losses = mrcd_image_take(in);
	rail->flaps = mrcd_image_take(in);
	rail->flapped_ns = mrcd_image_take(in);
	rail->strangers = mrcd_image_take(in);
}

static int read_heirs(struct mrcd_heritage *heritage)
{
	struct mrcd_image_in *in = &heritage->in;

	heritage->heir_count = (uint32_t)mrcd_image_take_max(in, PEERS_MAX);
	if (heritage->heir_count < 2)
		return -EPROTO;
	heritage->heirs = calloc(heritage->heir_count, sizeof(*heritage->heirs));
	heritage->peers = calloc(heritage->heir_count, sizeof(struct mrcd_peer *));
	if (heritage->heirs == NULL || heritage->peers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < heritage->heir_count; i++) {
		struct heir *heir = &heritage->heirs[i];

		mrcd_image_take_name(in, heir->name);
		for (uint8_t p = 0; p < MRC_PATHS_MAX; p++)
			heir->marks[p] = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
		heir->state = mrcd_image_take_blob(in, &heir->state_bytes);
	}
	return in->is_failed ? -EPROTO : 0;
}

/* NULL: no daemon before us knew this peer. */
static struct heir *heir_of(struct mrcd_heritage *heritage, struct mrcd_worker *worker,
			    struct mrcd_peer *peer)
{
	MRC_ASSERT(heritage->heirs != NULL);
	for (uint32_t i = 0; i < heritage->heir_count; i++) {
		bool is_it =
			i < 2 ? peer == worker->loop_ends[i]
			      : peer != worker->loop_ends[0] && peer != worker->loop_ends[1] &&
					strcmp(heritage->heirs[i].name, mrcd_peer_name(peer)) == 0;

		if (!is_it)
			continue;
		heritage->peers[i] = peer;
		return &heritage->heirs[i];
	}
	return NULL;
}

static int restore_peer(struct mrcd_heritage *heritage, struct mrcd_worker *worker,
			struct mrcd_peer *peer)
{
	const struct heir *heir = heir_of(heritage, worker, peer);
	const char *why = "";
	int r;

	/* One that is new begins with nothing, under our boot id. */
	r = mrcd_peer_restore(peer, heir != NULL ? heir->marks : NULL,
			      heir != NULL ? heir->state : NULL,
			      heir != NULL ? heir->state_bytes : 0, &why);
	if (r < 0)
		mrcd_warn("peer %s: the state that the daemon before left does not fit: %s%s%s",
			  mrcd_peer_name(peer), strerror(-r), why[0] != '\0' ? ": " : "", why);
	return r;
}

static int apply_engines(struct mrcd_heritage *heritage, struct mrcd_worker *worker)
{
	struct mrcd_image_in *in = &heritage->in;
	uint64_t rail_count;
	int r;

	worker->boot_id = heritage->boot_id;
	worker->strangers = heritage->strangers;
	worker->drain_since_ns = heritage->drain_since_ns;
	rail_count = mrcd_image_take_max(in, MRCD_RAILS_MAX);
	for (uint64_t i = 0; i < rail_count; i++)
		restore_rail(in, worker);
	r = read_heirs(heritage);
	if (r < 0) {
		mrcd_warn("the state that the daemon before left is not complete: %s",
			  strerror(-r));
		return r;
	}
	for (int i = 0; i < 2 && r == 0; i++)
		r = restore_peer(heritage, worker, worker->loop_ends[i]);
	for (uint32_t i = 0; i < worker->peer_count && r == 0; i++)
		r = restore_peer(heritage, worker, worker->peers[i]);
	return r;
}

int mrcd_heritage_apply(struct mrcd_heritage *heritage, struct mrcd_worker *worker)
{
	int r = apply_engines(heritage, worker);

	heritage->is_spent |= r < 0;
	return r;
}

int mrcd_heritage_listener(struct mrcd_heritage *heritage, enum mrcd_parcel_kind kind,
			   const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t addr_bytes = sizeof(addr);
	struct mrcd_parcel *parcel;
	uint32_t at = 0;
	int fd;

	parcel = mrcd_parcel_next(heritage->parcels, heritage->parcel_count, kind, &at);
	if (parcel == NULL || parcel->fds[0] < 0 ||
	    getsockname(parcel->fds[0], (struct sockaddr *)&addr, &addr_bytes) < 0 ||
	    addr.sun_family != AF_UNIX || strncmp(addr.sun_path, path, sizeof(addr.sun_path)) != 0)
		return -1;
	/* Somebody has tidied up meanwhile: nobody could find it any more. */
	if (access(path, F_OK) < 0)
		return -1;
	fd = parcel->fds[0];
	parcel->fds[0] = -1;
	heritage->is_spent = true;
	return fd;
}

int mrcd_heritage_apply_clients(struct mrcd_heritage *heritage, struct mrcd_worker *worker)
{
	char why[MRCD_IMAGE_WHY_BYTES] = "";
	uint32_t count;
	int r;

	heritage->is_spent = true;
	r = mrcd_client_side_restore(worker->clients, heritage->peers, heritage->heir_count,
				     &heritage->in, heritage->parcels, heritage->parcel_count, why);
	if (r < 0) {
		mrcd_warn("the programs of the daemon before cannot be taken over: %s",
			  why[0] != '\0' ? why : strerror(-r));
		return r;
	}
	mrcd_client_side_resume(worker->clients);
	mrcd_client_side_hold_to_rules(worker->clients);
	count = mrcd_client_side_count(worker->clients);
	mrcd_notice("going on where the daemon before stopped, %llu ms ago: %u program%s",
		    (mrcd_worker_now(worker) - heritage->begin_ns) / MRC_MS, count,
		    count == 1 ? "" : "s");
	if (mrcd_drain_is_on(worker))
		mrcd_notice("this host is still being drained: mrcctl undrain --host ends it");
	return 0;
}
