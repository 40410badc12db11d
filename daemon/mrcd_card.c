/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_card.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrcd_offload.h"
#include "mrcd_timeval.h"
#include "mrcd_worker.h"

#define PATH_BYTES       512
#define THREADS          2 /* a card that hangs has one */
#define THREADS_RESERVED 0

/* ---- one card ---- */

enum below { INTERFACE, PORT };

static const struct counter {
	const char *name;
	enum below below;
	const char *file;
} counters[MRCD_CARD_COUNTERS] = {
#define COUNTER(id, name, below, file) [MRCD_CARD_##id] = {name, below, file},
	MRCD_CARD_PACKETS(COUNTER) MRCD_CARD_ERRORS(COUNTER)
#undef COUNTER
};

static_assert(MRCD_CARD_COUNTERS <= 32, "a bit for each is known_bits");

const char *mrcd_card_counter_name(enum mrcd_card_counter counter)
{
	return counters[counter].name;
}

bool mrcd_card_knows(const struct mrcd_card *card, enum mrcd_card_counter counter)
{
	return card->known_bits >> counter & 1;
}

/* A number from 0 in a file of its own; some drivers say -1, or an error, for what their card does not count. */
static bool number_read(const char *dir, const char *file, uint64_t *number_out)
{
	char path[PATH_BYTES], text[32], *end;
	unsigned long long number;
	ssize_t len;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0 || text[0] < '0' || text[0] > '9')
		return false;
	text[len] = '\0';
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || (*end != '\n' && *end != '\0'))
		return false;
	*number_out = number;
	return true;
}

/* "" for `dir`: there is no such place. */
static void below_read(struct mrcd_card *card, enum below below, const char *dir)
{
	for (uint32_t i = 0; i < MRCD_CARD_COUNTERS && dir[0] != '\0'; i++) {
		if (counters[i].below == below &&
		    number_read(dir, counters[i].file, &card->counts[i]))
			card->known_bits |= 1U << i;
	}
}

void mrcd_card_read(const char *root, const struct mrcd_card_place *place, struct mrcd_card *card)
{
	char interface[PATH_BYTES - 64] = "", port[PATH_BYTES - 64] = "";
	uint64_t ifindex;

	*card = (struct mrcd_card){.reading = card->reading};
	if (place->interface[0] != '\0')
		snprintf(interface, sizeof(interface), "%s/class/net/%s", root, place->interface);
	if (interface[0] != '\0' &&
	    (!number_read(interface, "ifindex", &ifindex) || ifindex != place->ifindex))
		interface[0] = '\0';
	if (place->device[0] != '\0')
		snprintf(port, sizeof(port), "%s/class/infiniband/%s/ports/%u", root, place->device,
			 place->port);
	below_read(card, INTERFACE, interface);
	below_read(card, PORT, port);
}

/*
 * Frames that the interface and the port both count are the same ones: the more of
 * the two. A packet of RoCE whose own checksum is wrong came in a good frame.
 */
void mrcd_card_judged(const struct mrcd_card *card, struct mrc_health_card *judged_out)
{
	const uint64_t *counts = card->counts;

	*judged_out = (struct mrc_health_card){
		.reading = card->reading,
		.received = counts[MRCD_CARD_RX_PACKETS] + MRC_MAX(counts[MRCD_CARD_PORT_RECEIVED],
								   counts[MRCD_CARD_RXE_RECEIVED]),
		.damaged = MRC_MAX(counts[MRCD_CARD_RX_CRC] + counts[MRCD_CARD_RX_FRAME],
				   counts[MRCD_CARD_PORT_RCV]) +
			   counts[MRCD_CARD_ICRC],
		.sent = MRC_MAX(counts[MRCD_CARD_PORT_SENT], counts[MRCD_CARD_RXE_SENT]),
		.resent = counts[MRCD_CARD_PACKET_SEQ] + counts[MRCD_CARD_IMPLIED_NAK] +
			  counts[MRCD_CARD_ACK_TIMEOUT] + counts[MRCD_CARD_RXE_SEQ] +
			  counts[MRCD_CARD_RXE_RETRY],
	};
}

void mrcd_card_describe(const struct mrcd_card *card, json_t *object)
{
	struct mrc_health_card judged;
	json_t *errors = json_object();

	mrcd_card_judged(card, &judged);
	for (uint32_t i = MRCD_CARD_ERRORS_FIRST; i < MRCD_CARD_COUNTERS; i++) {
		if (mrcd_card_knows(card, (enum mrcd_card_counter)i))
			json_object_set_new(errors, counters[i].name,
					    json_integer((json_int_t)card->counts[i]));
	}
	if (json_object_size(errors) > 0) {
		json_object_set(object, "card", errors);
		json_object_set_new(object, "card_damaged",
				    json_integer((json_int_t)judged.damaged));
		json_object_set_new(object, "card_resent", json_integer((json_int_t)judged.resent));
	}
	json_decref(errors);
}

/* ---- all of them ---- */

/* The reading of one rail's card. */
struct card_job {
	struct mrcd_job job;
	struct mrcd_lane lane;
	struct mrcd_cards *cards;
	bool is_running; /* the thread's; else the loop's */
	char rail[MRC_NAME_MAX + 1];
	struct mrcd_card_place place;
	struct mrcd_card card;
};

struct mrcd_cards {
	struct mrcd_worker *worker; /* the owner */
	struct mrcd_offload *offload;
	struct event *timer;
	uint64_t readings;
	char root[PATH_BYTES / 2];
	struct card_job jobs[MRCD_RAILS_MAX];
};

static void card_job_run(struct mrcd_job *job)
{
	struct card_job *card_job = (struct card_job *)job;

	mrcd_card_read(card_job->cards->root, &card_job->place, &card_job->card);
}

static void place_find(struct mrcd_rail *rail, struct mrcd_card_place *place)
{
	*place = (struct mrcd_card_place){.ifindex = rail->ifindex};
	if (rail->conf->interface[0] != '\0')
		snprintf(place->interface, sizeof(place->interface), "%s", rail->conf->interface);
	else if (rail->ifindex != 0 && if_indextoname(rail->ifindex, place->interface) == NULL)
		place->interface[0] = '\0';
	if (rail->ops->device != NULL)
		rail->ops->device(rail, place->device, sizeof(place->device), &place->port);
}

/* Is the rail where it was when it was read? A reload may have given its name to another card. */
static bool place_is_of(const struct mrcd_card_place *place, struct mrcd_rail *rail)
{
	struct mrcd_card_place now;

	place_find(rail, &now);
	return strcmp(now.interface, place->interface) == 0 && now.ifindex == place->ifindex &&
	       strcmp(now.device, place->device) == 0 && now.port == place->port;
}

static void card_job_done(struct mrcd_job *job)
{
	struct card_job *card_job = (struct card_job *)job;
	struct mrcd_cards *cards = card_job->cards;
	struct mrcd_rail *rail;

	card_job->is_running = false;
	if (cards->timer == NULL)
		return;
	rail = mrcd_worker_rail(cards->worker, card_job->rail);
	if (rail == NULL || card_job->card.known_bits == 0 || !place_is_of(&card_job->place, rail))
		return;
	card_job->card.reading = ++cards->readings;
	rail->card = card_job->card;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_cards *cards = context;

	for (uint32_t i = 0; i < cards->worker->rail_count; i++) {
		struct mrcd_rail *rail = &cards->worker->rails[i];
		struct card_job *job = &cards->jobs[i];

		if (job->is_running || !mrcd_rail_is_there(rail))
			continue;
		place_find(rail, &job->place);
		snprintf(job->rail, sizeof(job->rail), "%s", rail->conf->name);
		job->is_running = true;
		mrcd_offload_submit(cards->offload, &job->lane, &job->job);
	}
}

int mrcd_cards_new(struct mrcd_worker *worker, const char *root, struct mrcd_cards **cards_out)
{
	struct mrcd_cards *cards = calloc(1, sizeof(*cards));
	struct timeval period = mrcd_timeval_of(MRCD_CARD_PERIOD_NS);
	int r;

	if (cards == NULL)
		return -ENOMEM;
	cards->worker = worker;
	snprintf(cards->root, sizeof(cards->root), "%s", root);
	for (uint32_t i = 0; i < MRCD_RAILS_MAX; i++) {
		cards->jobs[i].job = (struct mrcd_job){.run = card_job_run, .done = card_job_done};
		cards->jobs[i].cards = cards;
		mrcd_lane_init(&cards->jobs[i].lane);
	}
	r = mrcd_offload_new(worker->base, THREADS, THREADS_RESERVED, &cards->offload);
	if (r < 0)
		goto err_free;
	cards->timer = event_new(worker->base, -1, EV_PERSIST, on_timer, cards);
	if (cards->timer == NULL || event_add(cards->timer, &period) < 0) {
		r = -ENOMEM;
		goto err_free;
	}
	on_timer(-1, 0, cards);
	*cards_out = cards;
	return 0;

err_free:
	mrcd_cards_free(cards);
	return r;
}

void mrcd_cards_stop(struct mrcd_cards *cards)
{
	if (cards == NULL || cards->timer == NULL)
		return;
	event_free(cards->timer);
	cards->timer = NULL;
}

void mrcd_cards_free(struct mrcd_cards *cards)
{
	if (cards == NULL)
		return;
	mrcd_cards_stop(cards);
	mrcd_offload_free(cards->offload);
	free(cards);
}
