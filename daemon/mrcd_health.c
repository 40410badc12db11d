/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mrcd_event_log.h"
#include "mrcd_peer_impl.h"
#include "mrcd_timeval.h"

#define MRCD_HEALTH_VOTE_PART \
	16U /* a path with less than this part of the busiest's says nothing */
#define MRCD_HEALTH_BETTER_NS  (5 * MRC_S) /* who votes may change: a better state has to last */
#define MRCD_HEALTH_VOTERS_MAX 1024U

struct mrcd_health {
	struct mrcd_worker *worker; /* the owner */
	struct event *timer;        /* ours */
};

/* ---- words ---- */

/* "1.2%", "340 of a million" */
static const char *mrcd_health_part(uint64_t ppm, char text[32])
{
	if (ppm >= 10000)
		snprintf(text, 32, "%llu.%llu%%", (unsigned long long)(ppm / 10000),
			 (unsigned long long)(ppm / 1000 % 10));
	else
		snprintf(text, 32, "%llu of a million", (unsigned long long)ppm);
	return text;
}

static void mrcd_health_cause(const struct mrc_health_view *view, enum mrc_health_cause cause,
			      char *text, size_t text_bytes)
{
	char part[32];

	switch (cause) {
	case MRC_CAUSE_DAMAGE:
		snprintf(text, text_bytes, "%s frames come damaged",
			 mrcd_health_part(view->damage_ppm, part));
		break;
	case MRC_CAUSE_CARD:
		snprintf(text, text_bytes, "%s packets come damaged to the card",
			 mrcd_health_part(view->card_ppm, part));
		break;
	case MRC_CAUSE_LOSS:
		snprintf(text, text_bytes, "%s segments are sent again",
			 mrcd_health_part(view->loss_ppm, part));
		break;
	case MRC_CAUSE_STALLS:
		snprintf(text, text_bytes, "stood still %u time%s in a minute", view->stalls,
			 view->stalls == 1 ? "" : "s");
		break;
	case MRC_CAUSE_FLAPS:
		snprintf(text, text_bytes, "left service %u time%s within two hours", view->flaps,
			 view->flaps == 1 ? "" : "s");
		break;
	case MRC_CAUSE_DELAY:
		snprintf(text, text_bytes, "answers after %llu us, usually after %llu",
			 (unsigned long long)(view->delay_ns / MRC_US),
			 (unsigned long long)(view->usual_ns / MRC_US));
		break;
	case MRC_CAUSE_RATE:
		snprintf(text, text_bytes, "delivers %u%% of what its siblings do",
			 view->rate_part);
		break;
	default:
		text[0] = '\0';
	}
}

const char *mrcd_health_why(const struct mrc_health_view *view, char *text, size_t text_bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (int cause = 0; cause < MRC_CAUSE_COUNT && at < text_bytes; cause++) {
		char one[80];

		if (view->costs[cause] == 0)
			continue;
		mrcd_health_cause(view, (enum mrc_health_cause)cause, one, sizeof(one));
		at += (size_t)snprintf(text + at, text_bytes - at, "%s%s", at > 0 ? ", " : "", one);
	}
	if (view->eta_ns != MRC_NEVER && at < text_bytes)
		snprintf(text + at, text_bytes - at, "%s%s grows and is fatal in about %llu s",
			 at > 0 ? ", " : "", mrc_health_cause_name(view->cause),
			 (unsigned long long)(view->eta_ns / MRC_S));
	/* A better state is believed only when it has lasted; out of service it cannot. */
	if (text[0] == '\0' && view->state != MRC_HEALTH_GOOD)
		snprintf(text, text_bytes,
			 "nothing any more; good again when it stays so in service");
	return text;
}

/* `peer` NULL: the rail as a whole. */
static void mrcd_health_event(const struct mrcd_rail *rail, const struct mrcd_peer *peer,
			      const struct mrc_health_view *view, const char *why)
{
	static const enum mrcd_event_kind kinds[MRC_HEALTH_STATE_COUNT] = {
		[MRC_HEALTH_GOOD] = MRCD_EVENT_HEALTH_GOOD,
		[MRC_HEALTH_DEGRADED] = MRCD_EVENT_HEALTH_DEGRADED,
		[MRC_HEALTH_FAILING] = MRCD_EVENT_HEALTH_FAILING,
	};
	struct mrcd_event event = {.kind = kinds[view->state]};

	snprintf(event.rail, sizeof(event.rail), "%s", rail->conf->name);
	if (peer != NULL)
		snprintf(event.peer, sizeof(event.peer), "%s", peer->name);
	snprintf(event.note, sizeof(event.note), "health %u of 100%s%.120s", view->score,
		 why[0] != '\0' ? ": " : "", why);
	mrcd_event_log_add(rail->worker->events, &event);
}

/* ---- samples ---- */

static void mrcd_health_sample(struct mrcd_peer *peer, uint8_t index,
			       struct mrc_health_sample *sample)
{
	const struct mrcd_peer_path *path = &peer->paths[index];
	const struct mrcd_link *link = path->link;

	*sample = (struct mrc_health_sample){0};
	mrc_conn_path_info(peer->conn, index, &sample->info);
	if (path->rail == NULL)
		return;
	*sample = (struct mrc_health_sample){
		.info = sample->info,
		.cuts = path->cuts,
		.carrier_losses = path->rail->carrier_losses,
		.speed = mrcd_nic_speed(path->rail),
	};
	sample->is_excused = mrcd_peer_path_is_excused(peer, index);
	mrcd_card_judged(&path->rail->card, &sample->card);
	if (link != NULL && link->ops->resends != NULL &&
	    link->ops->resends(link, &sample->segments, &sample->segments_lost))
		sample->transport = link->path_epoch;
}

/* ---- rails ---- */

static bool mrcd_health_is_better(const struct mrc_health_view *a, const struct mrc_health_view *b)
{
	return a->state != b->state ? a->state < b->state : a->score > b->score;
}

/* The views of the paths over this rail that carried something, the worst first. */
static uint32_t mrcd_health_voters(const struct mrcd_rail *rail, const struct mrc_health_view **out)
{
	struct mrcd_worker *worker = rail->worker;
	uint64_t units_max = 0;
	uint32_t count = 0;

	for (int is_vote = 0; is_vote < 2; is_vote++) {
		for (uint32_t p = 0; p < worker->peer_count; p++) {
			const struct mrcd_peer *peer = worker->peers[p];

			for (uint8_t i = 0; i < peer->path_count; i++) {
				const struct mrc_health_view *view = &peer->health.paths[i].view;
				uint32_t at = count;

				if (peer->paths[i].rail != rail)
					continue;
				units_max = MRC_MAX(units_max, view->units);
				if (!is_vote || view->units < units_max / MRCD_HEALTH_VOTE_PART ||
				    count == MRCD_HEALTH_VOTERS_MAX)
					continue;
				for (; at > 0 && mrcd_health_is_better(out[at - 1], view); at--)
					out[at] = out[at - 1];
				out[at] = view;
				count++;
			}
		}
	}
	return count;
}

static void mrcd_health_log_rail(const struct mrcd_rail *rail, enum mrc_health_state old,
				 uint64_t lasted_ns)
{
	const struct mrcd_rail_health *health = &rail->health;
	const struct mrc_health_view *view = &health->view;
	char why[400];

	mrcd_health_why(view, why, sizeof(why));
	mrcd_health_event(rail, NULL, view, why);
	if (view->state == MRC_HEALTH_GOOD)
		mrcd_notice("rail %s (%s): good again, was %s for %llu s; health %u of 100",
			    rail->conf->name, rail->conf->interface, mrc_health_state_name(old),
			    (unsigned long long)(lasted_ns / MRC_S), view->score);
	else
		mrcd_warn("rail %s (%s): %s, was %s; health %u of 100: %s (%u of %u paths)",
			  rail->conf->name, rail->conf->interface,
			  mrc_health_state_name(view->state), mrc_health_state_name(old),
			  view->score, why, health->paths_worse, health->paths_judged);
}

static void mrcd_health_judge_rail(struct mrcd_rail *rail, uint64_t now_ns)
{
	const struct mrc_health_view *voters[MRCD_HEALTH_VOTERS_MAX];
	struct mrcd_rail_health *health = &rail->health;
	enum mrc_health_state old = health->view.state;
	uint64_t since_ns = health->view.since_ns;
	uint32_t count = mrcd_health_voters(rail, voters);
	enum mrc_health_state state;

	health->paths_judged = count;
	health->paths_worse = 0;
	for (uint32_t i = 0; i < count; i++)
		health->paths_worse += voters[i]->state != MRC_HEALTH_GOOD;
	if (count == 0) {
		health->view = mrc_health_view_unjudged();
		health->view.since_ns = since_ns;
		return;
	}
	health->view = *voters[count / 2];
	state = health->view.state;
	health->better_ns = state < old && health->better_ns == 0 ? now_ns : health->better_ns;
	if (state >= old)
		health->better_ns = 0;
	if (state == old ||
	    (state < old && count > 1 && now_ns - health->better_ns < MRCD_HEALTH_BETTER_NS)) {
		health->view.state = old;
		health->view.since_ns = since_ns;
		return;
	}
	health->better_ns = 0;
	health->view.since_ns = now_ns;
	mrcd_health_log_rail(rail, old, now_ns - since_ns);
}

/* ---- paths ---- */

/* Where one path is all there is over a rail, what is said of the rail says it. */
static void mrcd_health_log_path(const struct mrcd_peer *peer, uint8_t index)
{
	const struct mrc_health_view *view = &peer->health.paths[index].view;
	const char *rail;
	char why[400];

	if (peer->worker->peer_count < 2)
		return;
	rail = peer->paths[index].rail->conf->name;
	mrcd_health_why(view, why, sizeof(why));
	mrcd_health_event(peer->paths[index].rail, peer, view, why);
	if (view->state == MRC_HEALTH_GOOD)
		mrcd_notice("rail %s to %s: good again; health %u of 100", rail, peer->name,
			    view->score);
	else
		mrcd_notice("rail %s to %s: %s; health %u of 100: %s", rail, peer->name,
			    mrc_health_state_name(view->state), view->score, why);
}

static void mrcd_health_judge_peer(struct mrcd_peer *peer, uint64_t now_ns)
{
	struct mrc_health_sample samples[MRC_PATHS_MAX];
	uint32_t changed;

	for (uint8_t i = 0; i < peer->path_count; i++)
		mrcd_health_sample(peer, i, &samples[i]);
	changed = mrc_health_judge(&peer->health, samples, now_ns);
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if ((changed >> i & 1) != 0 && peer->paths[i].rail != NULL)
			mrcd_health_log_path(peer, i);
	}
}

void mrcd_health_judge(struct mrcd_worker *worker, uint64_t now_ns)
{
	for (uint32_t p = 0; p < worker->peer_count; p++)
		mrcd_health_judge_peer(worker->peers[p], now_ns);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			mrcd_health_judge_rail(&worker->rails[i], now_ns);
	}
}

/* ---- the timer ---- */

static void mrcd_health_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_health *health = context;

	mrcd_health_judge(health->worker, mrcd_worker_now(health->worker));
}

int mrcd_health_new(struct mrcd_worker *worker, struct mrcd_health **health_out)
{
	struct mrcd_health *health = calloc(1, sizeof(*health));
	struct timeval period = mrcd_timeval_of(MRC_HEALTH_PERIOD_NS);

	if (health == NULL)
		return -ENOMEM;
	health->worker = worker;
	health->timer = event_new(worker->base, -1, EV_PERSIST, mrcd_health_on_timer, health);
	if (health->timer == NULL || event_add(health->timer, &period) < 0) {
		mrcd_health_free(health);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < worker->rail_count; i++)
		worker->rails[i].health.view.since_ns = worker->start_ns;
	*health_out = health;
	return 0;
}

void mrcd_health_free(struct mrcd_health *health)
{
	if (health == NULL)
		return;
	if (health->timer != NULL)
		event_free(health->timer);
	free(health);
}

/* ---- for people and programs ---- */

static void mrcd_health_set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

void mrcd_health_describe_path(const struct mrc_health_view *view, uint64_t now_ns, json_t *object)
{
	char why[400];
	json_t *health = json_pack("{s:i s:s s:s s:s}", "score", (int)view->score, "state",
				   mrc_health_state_name(view->state), "cause",
				   mrc_health_cause_name(view->cause), "why",
				   mrcd_health_why(view, why, sizeof(why)));

	if (health == NULL)
		return;
	mrcd_health_set(health, "age_ns", now_ns > view->since_ns ? now_ns - view->since_ns : 0);
	mrcd_health_set(health, "damage_ppm", view->damage_ppm);
	mrcd_health_set(health, "card_ppm", view->card_ppm);
	mrcd_health_set(health, "loss_ppm", view->loss_ppm);
	mrcd_health_set(health, "stalls", view->stalls);
	mrcd_health_set(health, "flaps", view->flaps);
	mrcd_health_set(health, "delay_ns", view->delay_ns);
	mrcd_health_set(health, "delay_ns_usual", view->usual_ns);
	mrcd_health_set(health, "rate_percent", view->rate_part);
	json_object_set_new(health, "fatal_in_ns",
			    view->eta_ns == MRC_NEVER ? json_null()
						      : json_integer((json_int_t)view->eta_ns));
	json_object_set_new(object, "health", health);
}

void mrcd_health_describe_rail(const struct mrcd_rail *rail, json_t *object)
{
	json_t *health;

	mrcd_health_describe_path(&rail->health.view, rail->worker->now_ns, object);
	health = json_object_get(object, "health");
	mrcd_health_set(health, "paths_judged", rail->health.paths_judged);
	mrcd_health_set(health, "paths_worse", rail->health.paths_worse);
}
