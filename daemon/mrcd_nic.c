/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_nic.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_log.h"
#include "mrcd_offload.h"
#include "mrcd_resolve.h"
#include "mrcd_worker.h"

/* One for each kind of look: where a rail is shall not wait for a driver that hangs. */
#define THREADS          2U
#define THREADS_RESERVED 1U
/* A driver that takes longer is worth a word. */
#define SILENT_NS (5 * MRC_S)

struct place_job {
	struct mrcd_job job; /* first */
	struct mrcd_nic_place places[MRCD_RAILS_MAX];
	uint32_t count;
	int error;
	bool is_address;
};

struct card_job {
	struct mrcd_job job; /* first */
	uint32_t index;      /* of the rail */
	char name[IF_NAMESIZE];
	struct mrcd_nic_card card;
};

struct mrcd_nics {
	struct mrcd_worker *worker;   /* the owner */
	struct mrcd_offload *offload; /* ours */
	mrcd_nic_place_fn on_place;   /* NULL: nobody wants to know */
	void *on_place_context;
	bool is_ending;

	struct mrcd_lane place_lane;
	struct place_job place_job;
	bool is_placing, is_place_wanted,
		is_address_wanted; /* wanted: anew, as soon as this one ends */

	struct mrcd_lane card_lane;
	struct card_job card_job;
	bool is_asking, is_silence_said;
	uint64_t asking_ns; /* since when */
	bool is_card_wanted[MRCD_RAILS_MAX];
};

/* ---- where ---- */

static struct mrcd_nics *nics_of_place(struct mrcd_job *job)
{
	return (struct mrcd_nics *)(void *)((char *)job - offsetof(struct mrcd_nics, place_job));
}

static void place_question(const struct mrcd_conf_rail *conf, struct mrcd_nic_place *place)
{
	static_assert(sizeof(place->interface) == sizeof(conf->interface), "names of one size");
	static_assert(sizeof(place->address) == sizeof(conf->address), "addresses of one size");
	static_assert(sizeof(place->device) == sizeof(conf->device), "names of one size");
	memcpy(place->interface, conf->interface, sizeof(place->interface));
	memcpy(place->address, conf->address, sizeof(place->address));
	memcpy(place->device, conf->device, sizeof(place->device));
	place->device_port = conf->device_port;
}

static bool is_of(const struct mrcd_nic_place *place, const struct mrcd_conf_rail *conf)
{
	return strcmp(place->interface, conf->interface) == 0 &&
	       strcmp(place->address, conf->address) == 0 &&
	       strcmp(place->device, conf->device) == 0 && place->device_port == conf->device_port;
}

static void place_questions(struct mrcd_nics *nics)
{
	struct place_job *job = &nics->place_job;

	job->count = nics->worker->rail_count;
	for (uint32_t i = 0; i < job->count; i++) {
		const struct mrcd_rail *rail = &nics->worker->rails[i];

		memset(&job->places[i], 0, sizeof(job->places[i]));
		if (mrcd_rail_is_there(rail))
			place_question(rail->conf, &job->places[i]);
	}
}

static void place_run(struct mrcd_job *base)
{
	struct place_job *job = (struct place_job *)base;

	job->error = mrcd_nic_ask_places(job->places, job->count);
}

static void place_take(struct mrcd_nics *nics, struct mrcd_rail *rail,
		       const struct mrcd_nic_place *place, bool is_address)
{
	bool is_moved = rail->ifindex != place->ifindex || !rail->nic.is_placed;

	rail->ifindex = place->ifindex;
	if (strcmp(rail->nic.name, place->name) != 0) {
		/* Nothing is known of that one. */
		memset(&rail->nic.card, 0, sizeof(rail->nic.card));
		rail->nic.answered_ns = 0;
	}
	memcpy(rail->nic.name, place->name, sizeof(rail->nic.name));
	rail->nic.is_placed = true;
	rail->nic.own = place->own;
	rail->nic.own_len = place->own_len;
	if (is_moved)
		mrcd_nic_ask(rail);
	if (nics->on_place)
		nics->on_place(nics->on_place_context, rail, is_moved || is_address);
}

static void place_done(struct mrcd_job *base)
{
	struct mrcd_nics *nics = nics_of_place(base);
	struct place_job *job = &nics->place_job;
	struct mrcd_worker *worker = nics->worker;
	bool is_again = nics->is_place_wanted;

	nics->is_placing = nics->is_place_wanted = false;
	if (nics->is_ending)
		return;
	mrcd_worker_now(worker);
	for (uint32_t i = 0; i < job->count && job->error == 0; i++) {
		struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail))
			continue;
		/* Its configuration may name another place by now. */
		if (is_of(&job->places[i], rail->conf))
			place_take(nics, rail, &job->places[i], job->is_address);
		else
			is_again = true;
	}
	/* Memory, or a descriptor: whoever wanted to know wants it still. */
	if (job->error < 0)
		nics->is_address_wanted |= job->is_address;
	if (is_again)
		mrcd_nics_look(nics, false);
}

void mrcd_nics_look(struct mrcd_nics *nics, bool is_address)
{
	struct place_job *job = &nics->place_job;

	nics->is_address_wanted |= is_address;
	nics->is_place_wanted = nics->is_placing;
	if (nics->is_placing)
		return;
	nics->is_placing = true;
	job->is_address = nics->is_address_wanted;
	nics->is_address_wanted = false;
	place_questions(nics);
	job->job = (struct mrcd_job){.run = place_run, .done = place_done};
	mrcd_offload_submit(nics->offload, &nics->place_lane, &job->job);
}

/* ---- what ---- */

static struct mrcd_nics *nics_of_card(struct mrcd_job *job)
{
	return (struct mrcd_nics *)(void *)((char *)job - offsetof(struct mrcd_nics, card_job));
}

static void card_run(struct mrcd_job *base)
{
	struct card_job *job = (struct card_job *)base;

	mrcd_nic_ask_card(job->name, &job->card);
}

static bool is_same_card(const struct mrcd_nic_card *a, const struct mrcd_nic_card *b)
{
	return a->speed_bits_per_s == b->speed_bits_per_s && a->mtu == b->mtu &&
	       memcmp(a->mac, b->mac, sizeof(a->mac)) == 0 && strcmp(a->driver, b->driver) == 0 &&
	       strcmp(a->firmware, b->firmware) == 0;
}

static void card_next(struct mrcd_nics *nics);

static void card_done(struct mrcd_job *base)
{
	struct mrcd_nics *nics = nics_of_card(base);
	struct card_job *job = &nics->card_job;
	struct mrcd_worker *worker = nics->worker;
	struct mrcd_rail *rail = &worker->rails[job->index];
	bool is_other;

	nics->is_asking = false;
	if (nics->is_ending)
		return;
	mrcd_worker_now(worker);
	if (nics->is_silence_said)
		mrcd_notice("%s: its driver answers again, after %llu s", job->name,
			    (unsigned long long)((worker->now_ns - nics->asking_ns) / MRC_S));
	nics->is_silence_said = false;
	/* Of the interface the rail was on when it was asked, which may have gone. */
	if (mrcd_rail_is_there(rail) && strcmp(rail->nic.name, job->name) == 0) {
		is_other = !is_same_card(&rail->nic.card, &job->card);
		rail->nic.card = job->card;
		rail->nic.answered_ns = worker->now_ns;
		if (is_other)
			mrcd_rail_on_interface(rail);
	}
	card_next(nics);
}

/* Ask for the next rail in turn of those that want it. */
static void card_next(struct mrcd_nics *nics)
{
	struct mrcd_worker *worker = nics->worker;
	struct card_job *job = &nics->card_job;

	for (uint32_t n = 1; n <= worker->rail_count && !nics->is_asking; n++) {
		uint32_t index = (job->index + n) % worker->rail_count;
		const struct mrcd_rail *rail = &worker->rails[index];

		if (!nics->is_card_wanted[index])
			continue;
		nics->is_card_wanted[index] = false;
		if (!mrcd_rail_is_there(rail) || rail->nic.name[0] == '\0')
			continue;
		job->index = index;
		memcpy(job->name, rail->nic.name, sizeof(job->name));
		job->job = (struct mrcd_job){.run = card_run, .done = card_done, .is_slow = true};
		nics->is_asking = true;
		nics->asking_ns = worker->now_ns;
		mrcd_offload_submit(nics->offload, &nics->card_lane, &job->job);
	}
}

void mrcd_nic_ask(const struct mrcd_rail *rail)
{
	struct mrcd_nics *nics = rail->worker->nics;

	if (!nics || rail->index >= rail->worker->rail_count)
		return;
	nics->is_card_wanted[rail->index] = true;
	card_next(nics);
}

/* Its driver is being asked; not that of another interface, which it or its slot had before. */
static bool is_asked(const struct mrcd_rail *rail)
{
	const struct mrcd_nics *nics = rail->worker->nics;

	return nics && nics->is_asking && nics->card_job.index == rail->index &&
	       strcmp(nics->card_job.name, rail->nic.name) == 0;
}

uint64_t mrcd_nic_unanswered_ns(const struct mrcd_rail *rail)
{
	return is_asked(rail) ? rail->worker->now_ns - rail->worker->nics->asking_ns : 0;
}

void mrcd_nic_ask_if_old(const struct mrcd_rail *rail)
{
	uint64_t unanswered_ns = mrcd_nic_unanswered_ns(rail);

	if (unanswered_ns > SILENT_NS && !rail->worker->nics->is_silence_said) {
		rail->worker->nics->is_silence_said = true;
		mrcd_warn("rail %s (%s): its driver has not answered for %llu s; what is said of "
			  "speeds and cards is as old as that",
			  rail->conf->name, rail->nic.name,
			  (unsigned long long)(unanswered_ns / MRC_S));
	}
	if (!is_asked(rail) && rail->worker->now_ns - rail->nic.answered_ns > MRCD_NIC_OLD_NS)
		mrcd_nic_ask(rail);
}

/* ---- reading ---- */

uint64_t mrcd_nic_speed(const struct mrcd_rail *rail)
{
	if (rail->given.speed_bits_per_s != 0)
		return rail->given.speed_bits_per_s;
	mrcd_nic_ask_if_old(rail);
	return rail->nic.card.speed_bits_per_s;
}

static void port_set(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

int mrcd_nic_own_address(const struct mrcd_rail *rail, struct sockaddr_storage *address_out,
			 socklen_t *len_out)
{
	const struct mrcd_conf_rail *conf = rail->conf;

	if (conf->address[0])
		return mrcd_resolve_numeric(conf->address, conf->port, address_out, len_out);
	if (rail->nic.own_len == 0)
		return rail->nic.is_placed ? -EADDRNOTAVAIL : -EAGAIN;
	*address_out = rail->nic.own;
	*len_out = rail->nic.own_len;
	port_set(address_out, conf->port);
	return 0;
}

int mrcd_nic_find_places(const struct mrcd_conf *conf, struct mrcd_nic_place *places_out)
{
	for (uint32_t i = 0; i < conf->rail_count; i++) {
		places_out[i] = (struct mrcd_nic_place){0};
		place_question(&conf->rails[i], &places_out[i]);
	}
	return mrcd_nic_ask_places(places_out, conf->rail_count);
}

int mrcd_nic_address_there(const struct mrcd_conf_rail *conf, const struct mrcd_nic_place *place,
			   struct sockaddr_storage *address_out, socklen_t *len_out)
{
	if (conf->address[0])
		return mrcd_resolve_numeric(conf->address, conf->port, address_out, len_out);
	if (place->own_len == 0)
		return -EADDRNOTAVAIL;
	*address_out = place->own;
	*len_out = place->own_len;
	port_set(address_out, conf->port);
	return 0;
}

/* ---- life ---- */

int mrcd_nics_new(struct mrcd_worker *worker, struct mrcd_nics **nics_out)
{
	struct mrcd_nics *nics = calloc(1, sizeof(*nics));
	int r;

	if (!nics)
		return -ENOMEM;
	nics->worker = worker;
	mrcd_lane_init(&nics->place_lane);
	mrcd_lane_init(&nics->card_lane);
	r = mrcd_offload_new(worker->base, THREADS, THREADS_RESERVED, &nics->offload);
	if (r < 0) {
		free(nics);
		return r;
	}
	*nics_out = nics;
	return 0;
}

void mrcd_nics_begin(struct mrcd_nics *nics, mrcd_nic_place_fn on_place, void *context)
{
	struct place_job *job = &nics->place_job;

	MRC_ASSERT(!nics->is_placing);
	place_questions(nics);
	place_run(&job->job);
	for (uint32_t i = 0; i < job->count && job->error == 0; i++) {
		if (mrcd_rail_is_there(&nics->worker->rails[i]))
			place_take(nics, &nics->worker->rails[i], &job->places[i], false);
	}
	nics->on_place = on_place;
	nics->on_place_context = context;
}

void mrcd_nics_stop(struct mrcd_nics *nics)
{
	nics->on_place = NULL;
}

void mrcd_nics_free(struct mrcd_nics *nics)
{
	if (!nics)
		return;
	nics->is_ending = true;
	mrcd_offload_free(nics->offload);
	free(nics);
}
