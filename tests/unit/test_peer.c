/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with real engines, each with two rails of a kind that lives in
 * this file: frames cross when the test says so, and links die where it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_auth.h"
#include "mrcd_drain.h"
#include "mrcd_event_log.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_worker.h"

#define RAILS       2
#define FRAMES_MAX  1024
#define LINKS_MAX   256
#define LATE_TRIALS 8
#define PATIENCE_S  20 /* until a test that waits for something says it does not come */

struct wire_frame {
	struct mrc_wire_hdr hdr;
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
};

struct wire_link {
	struct mrcd_link link;   /* first */
	struct wire_link *other; /* NULL: gone */
	bool is_dead;            /* must not be used any more; freed at the end */
	struct wire_frame *frames;
	uint32_t count;
	uint64_t sent;
};

struct wire {
	struct mrcd_conf confs[2];
	struct mrcd_conf_peer peers[2];
	struct mrcd_worker *hosts[2];
	struct wire_link *links[LINKS_MAX];
	uint32_t link_count;
	/* What happened. */
	uint32_t connects, fences, mute_fences, posts, flushes;
	/* What shall happen. */
	bool is_refusing;
	bool is_dropping;   /* frames are lost */
	bool is_untold;     /* an end does not see that the other has closed */
	bool is_fence_slow; /* a fence holds when the test says so */
	int dies_in_flush;  /* the next flush of this rail of host a kills its link */
	bool is_carrier_asked_down[RAILS];
	char order[64]; /* what ran when, for the test of the late timer */
};

/* The kind has no other way to its test. */
static struct wire *wire;

/* ---- the kind of rail ---- */

static const struct mrcd_link_ops wire_link_ops;

static void wire_close_link(struct wire_link *link)
{
	link->is_dead = true;
	link->count = 0;
	if (link->other)
		link->other->other = NULL;
}

static struct wire_link *wire_link_new(struct mrcd_rail *rail, struct mrcd_peer *peer,
				       uint8_t path_index)
{
	struct wire_link *link = calloc(1, sizeof(*link));

	assert_non_null(link);
	assert_true(wire->link_count < LINKS_MAX);
	link->frames = calloc(FRAMES_MAX, sizeof(*link->frames));
	assert_non_null(link->frames);
	link->link = (struct mrcd_link){
		.ops = &wire_link_ops,
		.rail = rail,
		.peer = peer,
		.path_index = path_index,
	};
	wire->links[wire->link_count++] = link;
	return link;
}

static void wire_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_worker *far = wire->hosts[1];
	struct mrcd_peer *far_peer = far->peers[0];
	struct wire_link *near_link, *far_link;
	struct mrc_hello hello_i, hello_r;
	struct mrc_auth auth;

	wire->connects++;
	assert_ptr_equal(rail->worker, wire->hosts[0]);
	if (wire->is_refusing) {
		mrcd_peer_on_connect_failed(peer, path_index, "refused by the test");
		return;
	}
	mrc_conn_hello(mrcd_peer_conn(peer), path_index, &hello_i);
	mrc_conn_hello(mrcd_peer_conn(far_peer), path_index, &hello_r);
	mrc_hello_conclude(&hello_i, &hello_r, &auth);
	near_link = wire_link_new(rail, peer, path_index);
	far_link = wire_link_new(&far->rails[rail->index], far_peer, path_index);
	near_link->other = far_link;
	far_link->other = near_link;
	mrcd_worker_now(far);
	assert_int_equal(mrcd_link_on_up(&far_link->link, &auth, hello_i.path_id, hello_i.boot_id,
					 false),
			 0);
	assert_int_equal(mrcd_link_on_up(&near_link->link, &auth, hello_i.path_id, hello_r.boot_id,
					 false),
			 0);
	assert_int_equal(near_link->link.path_epoch, auth.path_epoch);
	assert_int_equal(near_link->link.conn_epoch, auth.conn_epoch);
}

static void wire_post(struct mrcd_link *base, const struct mrc_act_post *post)
{
	struct wire_link *link = (struct wire_link *)base;

	wire->posts++;
	assert_false(link->is_dead);
	assert_int_equal(post->path_epoch, base->path_epoch);
	assert_true(link->count < FRAMES_MAX);
	link->frames[link->count].hdr = post->hdr;
	memcpy(link->frames[link->count].body, post->body, post->body_len);
	link->count++;
	if (base->rail->worker == wire->hosts[0])
		strncat(wire->order, "p", sizeof(wire->order) - strlen(wire->order) - 1);
}

static void wire_flush(struct mrcd_link *base)
{
	struct wire_link *link = (struct wire_link *)base;

	wire->flushes++;
	assert_false(link->is_dead);
	if (base->rail == &wire->hosts[0]->rails[0] && wire->dies_in_flush > 0) {
		wire->dies_in_flush--;
		wire_close_link(link);
		mrcd_link_on_down(base, MRC_REASON_ERROR, "killed in its flush by the test");
	}
}

static void wire_strip(struct mrcd_link *base)
{
	assert_false(((struct wire_link *)base)->is_dead);
}

static void wire_fence(struct mrcd_link *base)
{
	struct wire_link *link = (struct wire_link *)base;

	wire->fences++;
	wire->mute_fences += base->is_mute;
	assert_false(link->is_dead);
	if (wire->is_fence_slow)
		return;
	wire_close_link(link);
	mrcd_link_on_fenced(base);
}

/* The fence of this rail of host a holds now. */
static void wire_fence_holds(uint32_t rail_index)
{
	for (uint32_t i = 0; i < wire->link_count; i++) {
		struct wire_link *link = wire->links[i];

		if (link->is_dead || link->link.rail != &wire->hosts[0]->rails[rail_index])
			continue;
		wire_close_link(link);
		mrcd_link_on_fenced(&link->link);
	}
}

static void wire_describe(const struct mrcd_link *link, json_t *object)
{
	json_object_set_new(object, "wire", json_integer(link->path_index));
}

static const struct mrcd_link_ops wire_link_ops = {
	.kind = "wire",
	.post = wire_post,
	.flush = wire_flush,
	.strip = wire_strip,
	.fence = wire_fence,
	.describe = wire_describe,
};

static bool wire_has_carrier(struct mrcd_rail *rail)
{
	return !wire->is_carrier_asked_down[rail->index];
}

static const struct mrcd_rail_ops wire_ops = {
	.kind = "wire",
	.connect = wire_connect,
	.has_carrier = wire_has_carrier,
};

/* What was posted arrives; who lost its other end is told. */
static void wire_deliver(void)
{
	for (uint32_t i = 0; i < wire->link_count; i++) {
		struct wire_link *from = wire->links[i], *to = from->other;
		struct mrcd_peer *sender = from->link.peer, *receiver;
		uint32_t count = from->count;

		if (from->is_dead || (to == NULL && wire->is_untold))
			continue;
		if (to == NULL) {
			wire_close_link(from);
			mrcd_worker_now(from->link.rail->worker);
			mrcd_link_on_down(&from->link, MRC_REASON_CLOSED, "the other end is gone");
			continue;
		}
		if (count == 0)
			continue;
		receiver = to->link.peer;
		mrcd_worker_now(to->link.rail->worker);
		for (uint32_t f = 0; f < count && !wire->is_dropping; f++)
			assert_int_equal(mrcd_link_on_frame(&to->link, &from->frames[f].hdr,
							    from->frames[f].body, true, true, 0),
					 0);
		from->count = 0;
		from->sent += count;
		mrcd_worker_now(from->link.rail->worker);
		mrcd_link_on_sent(&from->link, from->sent);
		mrcd_peer_pump(receiver);
		mrcd_peer_pump(sender);
	}
}

/* ---- the stage ---- */

static int setup(void **state)
{
	static const char *const names[2] = {"a", "b"};

	mrcd_log_init(LOG_CRIT);
	wire = calloc(1, sizeof(*wire));
	assert_non_null(wire);
	for (int h = 0; h < 2; h++) {
		struct mrcd_conf *conf = &wire->confs[h];
		struct mrcd_conf_peer *peer = &wire->peers[h];

		strcpy(conf->host, names[h]);
		strcpy(conf->runtime_dir, "/nonexistent");
		conf->rail_count = RAILS;
		conf->peers = peer;
		conf->peer_count = 1;
		strcpy(peer->name, names[1 - h]);
		peer->path_count = RAILS;
		for (uint32_t i = 0; i < RAILS; i++) {
			snprintf(conf->rails[i].name, sizeof(conf->rails[i].name), "r%u", i);
			peer->paths[i].rail_index = i;
			snprintf(peer->paths[i].address, sizeof(peer->paths[i].address),
				 "10.0.%u.%d", i, 2 - h);
			peer->paths[i].port = 7471;
		}
		assert_int_equal(mrcd_worker_new(conf, &wire->hosts[h]), 0);
		for (uint32_t i = 0; i < RAILS; i++) {
			wire->hosts[h]->rails[i].ops = &wire_ops;
			wire->hosts[h]->rails[i].is_carrier_up = true;
		}
	}
	return 0;
}

static int teardown(void **state)
{
	for (int h = 0; h < 2; h++)
		mrcd_worker_free(wire->hosts[h]);
	for (uint32_t i = 0; i < wire->link_count; i++) {
		/* Freeing a peer fences its links. */
		assert_true(wire->links[i]->is_dead);
		free(wire->links[i]->frames);
		free(wire->links[i]);
	}
	free(wire);
	return 0;
}

static void start(void)
{
	for (int h = 1; h >= 0; h--) {
		mrcd_worker_now(wire->hosts[h]);
		mrcd_peer_start(wire->hosts[h]->peers[0]);
	}
}

static struct mrcd_peer *near_peer(void)
{
	return wire->hosts[0]->peers[0];
}

static struct mrc_conn_info info_of(int host)
{
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(wire->hosts[host]->peers[0]), &info);
	return info;
}

static struct mrc_path_info path_of(uint8_t index)
{
	struct mrc_path_info info;

	mrc_conn_path_info(mrcd_peer_conn(near_peer()), index, &info);
	return info;
}

static void turn(void)
{
	for (int h = 0; h < 2; h++)
		event_base_loop(wire->hosts[h]->base, EVLOOP_NONBLOCK);
	wire_deliver();
}

/* Both hosts have so many good paths to each other; fails when that takes very long. */
static void run_until_good(uint8_t near_good, uint8_t far_good)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (info_of(0).paths_good != near_good || info_of(1).paths_good != far_good) {
		turn();
		poll(NULL, 0, 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > PATIENCE_S)
			fail_msg("good paths are %u and %u, not %u and %u", info_of(0).paths_good,
				 info_of(1).paths_good, near_good, far_good);
	}
}

/* ---- coming up, going down ---- */

static void peer_comes_into_service_on_every_path(void **state)
{
	start();
	run_until_good(RAILS, RAILS);
	assert_int_equal(wire->connects, RAILS);
	assert_int_equal(info_of(0).epoch, info_of(1).epoch);
}

static void peer_survives_link_that_dies_in_its_flush(void **state)
{
	struct mrc_action act;
	uint32_t epoch;

	start();
	run_until_good(RAILS, RAILS);
	epoch = path_of(0).epoch;
	wire->dies_in_flush = 1;
	while (wire->dies_in_flush > 0) /* an idle path is probed soon */
		event_base_loop(wire->hosts[0]->base, EVLOOP_NONBLOCK);
	/* What followed from its death was done in the same pump. */
	assert_false(
		mrc_conn_next_action(mrcd_peer_conn(near_peer()), &act, wire->hosts[0]->now_ns));
	assert_int_not_equal(path_of(0).state, MRC_PATH_GOOD);
	assert_int_equal(path_of(1).state, MRC_PATH_GOOD);
	run_until_good(RAILS, RAILS);
	assert_true(path_of(0).epoch > epoch);
}

/* The engine may give a new link words at once: it dies in the pump its connect runs in. */
static void peer_survives_link_that_dies_while_it_comes_up(void **state)
{
	wire->dies_in_flush = 3;
	start();
	run_until_good(RAILS, RAILS);
	assert_int_equal(wire->dies_in_flush, 0);
	assert_true(wire->connects >= RAILS + 3);
}

static void peer_tries_on_when_connecting_fails_inside_the_pump(void **state)
{
	wire->is_refusing = true;
	start();
	while (wire->connects < 3 * RAILS)
		turn();
	assert_int_equal(info_of(0).paths_good, 0);
	wire->is_refusing = false;
	run_until_good(RAILS, RAILS);
}

static void peer_fences_older_link_when_a_newer_one_comes_up(void **state)
{
	uint32_t fences, epoch;

	start();
	run_until_good(RAILS, RAILS);
	fences = wire->fences;
	epoch = path_of(0).epoch;
	mrcd_worker_now(wire->hosts[0]);
	wire_connect(&wire->hosts[0]->rails[0], near_peer(), 0);
	assert_true(wire->fences >= fences + 1);
	run_until_good(RAILS, RAILS);
	assert_true(path_of(0).epoch > epoch);
}

static void peer_takes_no_link_with_epochs_of_the_past(void **state)
{
	struct mrc_auth auth;
	struct wire_link *link;

	start();
	run_until_good(RAILS, RAILS);
	auth.conn_epoch = info_of(0).epoch;
	auth.path_epoch = path_of(0).epoch;
	link = wire_link_new(&wire->hosts[0]->rails[0], near_peer(), 0);
	assert_int_equal(mrcd_link_on_up(&link->link, &auth, 0, info_of(0).peer_boot_id, false),
			 -ESTALE);
	link->is_dead = true;
	assert_int_equal(path_of(0).state, MRC_PATH_GOOD);
}

static void peer_drops_frames_of_a_link_it_no_longer_has(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_TYPE_END};
	struct wire_link *link;

	start();
	run_until_good(RAILS, RAILS);
	link = wire_link_new(&wire->hosts[0]->rails[0], near_peer(), 0);
	link->link.path_epoch = path_of(0).epoch; /* or the engine would drop it, not the peer */
	link->is_dead = true;
	assert_int_equal(mrcd_link_on_frame(&link->link, &hdr, NULL, true, false, 0), 0);
	assert_int_equal(info_of(0).protocol_errors, 0);
}

static void peer_takes_up_nothing_new_once_stopped(void **state)
{
	struct mrc_auth auth;
	struct wire_link *link;
	uint32_t posts;

	start();
	run_until_good(RAILS, RAILS);
	auth.conn_epoch = info_of(0).epoch;
	auth.path_epoch = path_of(0).epoch + 1;
	mrcd_peer_stop(near_peer());
	posts = wire->posts;
	mrcd_peer_pump(near_peer());
	event_base_loop(wire->hosts[0]->base, EVLOOP_NONBLOCK);
	assert_int_equal(wire->posts, posts);
	link = wire_link_new(&wire->hosts[0]->rails[0], near_peer(), 0);
	link->is_dead = true;
	assert_int_equal(mrcd_link_on_up(&link->link, &auth, 0, info_of(0).peer_boot_id, false),
			 -ESTALE);
}

/* ---- carrier, drain ---- */

static void rail_carrier_loss_takes_its_paths_out_and_is_counted_once(void **state)
{
	struct mrcd_rail *rail;

	start();
	run_until_good(RAILS, RAILS);
	rail = &wire->hosts[0]->rails[1];
	wire->is_carrier_asked_down[1] = true;
	mrcd_worker_now(wire->hosts[0]);
	mrcd_rail_on_carrier(rail, false);
	mrcd_rail_on_carrier(rail, false);
	assert_int_equal(rail->carrier_losses, 1);
	assert_false(rail->is_carrier_up);
	assert_int_not_equal(path_of(1).state, MRC_PATH_GOOD);
	assert_int_equal(path_of(0).state, MRC_PATH_GOOD);
	wire->is_carrier_asked_down[1] = false;
	mrcd_rail_on_carrier(rail, true);
	run_until_good(RAILS, RAILS);
	assert_int_equal(rail->carrier_losses, 1);
}

/* The kinds of all events of the near host since `since`, with commas; paths as "rail:state". */
static const char *events_since(uint64_t since, char text[512])
{
	json_t *answer = mrcd_event_log_json(wire->hosts[0]->events, since), *event;
	size_t index, at = 0;

	text[0] = '\0';
	json_array_foreach(json_object_get(answer, "events"), index, event)
	{
		const char *kind = json_string_value(json_object_get(event, "kind"));
		const char *rail = json_string_value(json_object_get(event, "rail"));
		const char *state = json_string_value(json_object_get(event, "state"));

		/* A machine with much else to do pauses, and then all paths are late. */
		if (strcmp(kind, "peer-silent") == 0 || strcmp(kind, "peer-heard") == 0)
			continue;
		at += (size_t)snprintf(text + at, 512 - at, "%s%s%s%s", at > 0 ? ", " : "",
				       state != NULL ? rail : kind, state != NULL ? ":" : "",
				       state != NULL ? state : "");
	}
	json_decref(answer);
	return text;
}

static void event_log_has_what_befell_and_flaps_stay_counted(void **state)
{
	struct mrcd_event_log *log;
	struct mrcd_rail *rail;
	char text[512];
	uint64_t seen;
	json_t *paths, *path;

	start();
	log = wire->hosts[0]->events;
	run_until_good(RAILS, RAILS);
	turn();
	/* Which path is first, and whether they come in one turn, is open. */
	events_since(0, text);
	assert_int_equal(mrcd_event_log_count(log), 3);
	assert_non_null(strstr(text, "r0:GOOD"));
	assert_non_null(strstr(text, "r1:GOOD"));
	assert_non_null(strstr(text, "peer-connected"));
	seen = mrcd_event_log_count(log);
	rail = &wire->hosts[0]->rails[1];
	for (int flap = 1; flap <= 3; flap++) {
		wire->is_carrier_asked_down[1] = true;
		mrcd_worker_now(wire->hosts[0]);
		mrcd_rail_on_carrier(rail, false);
		mrcd_rail_on_carrier(rail, false); /* no second event */
		run_until_good(RAILS - 1, RAILS - 1);
		wire->is_carrier_asked_down[1] = false;
		mrcd_rail_on_carrier(rail, true);
		run_until_good(RAILS, RAILS);
		turn();
		assert_string_equal(events_since(seen, text),
				    "carrier-lost, r1:ASSUMED_BAD, carrier-back, r1:GOOD");
		seen = mrcd_event_log_count(log);
		assert_int_equal(rail->flaps, flap);
	}
	/* What the operator does is no flap. */
	mrcd_worker_now(wire->hosts[0]);
	mrcd_rail_note_drain(rail, true);
	mrcd_peer_deny_rail(near_peer(), 1, true);
	run_until_good(RAILS - 1, RAILS - 1);
	turn();
	assert_string_equal(events_since(seen, text), "drained, r1:DENIED");
	assert_int_equal(rail->flaps, 3);
	paths = mrcd_peer_paths_json(near_peer());
	path = json_array_get(paths, 1);
	assert_int_equal(json_integer_value(json_object_get(path, "flaps")), 3);
	assert_true(json_is_integer(json_object_get(path, "flap_age_ns")));
	assert_null(json_object_get(json_array_get(paths, 0), "flap_age_ns"));
	json_decref(paths);
}

/* The kind of the near host's last event. */
static bool is_last_event(const char *kind)
{
	uint64_t count = mrcd_event_log_count(wire->hosts[0]->events);
	json_t *answer = mrcd_event_log_json(wire->hosts[0]->events, count - 1);
	json_t *event = json_array_get(json_object_get(answer, "events"), 0);
	bool is_it = strcmp(json_string_value(json_object_get(event, "kind")), kind) == 0;

	json_decref(answer);
	return is_it;
}

static void run_until_event(const char *kind)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!is_last_event(kind)) {
		turn();
		poll(NULL, 0, 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > PATIENCE_S)
			fail_msg("no %s", kind);
	}
}

static void silence_is_an_event_when_it_lasts(void **state)
{
	uint64_t silent_ns;

	start();
	run_until_good(RAILS, RAILS);
	turn();
	wire->is_dropping = true;
	while (!info_of(0).is_peer_silent)
		turn();
	silent_ns = wire->hosts[0]->now_ns;
	assert_false(is_last_event("peer-silent"));
	run_until_event("peer-silent");
	assert_true(wire->hosts[0]->now_ns - silent_ns >= 90 * MRC_MS); /* noted a turn before */
}

/* Its own rail may know nothing of it yet: what is said into it makes trouble only. */
static void a_link_is_mute_when_either_port_is_down(void **state)
{
	start();
	run_until_good(RAILS, RAILS);
	wire->is_untold = true;
	wire->is_carrier_asked_down[1] = true;
	mrcd_worker_now(wire->hosts[0]);
	mrcd_rail_on_carrier(&wire->hosts[0]->rails[1], false);
	run_until_good(RAILS - 1, RAILS - 1);
	turn(); /* what the pump put off */
	assert_true(wire->hosts[1]->rails[1].is_carrier_up);
	assert_int_equal(wire->mute_fences, 2);
}

static void a_link_that_is_drained_tells_it_the_peer(void **state)
{
	start();
	run_until_good(RAILS, RAILS);
	wire->is_untold = true;
	mrcd_worker_now(wire->hosts[0]);
	mrcd_peer_deny_rail(near_peer(), 1, true);
	run_until_good(RAILS - 1, RAILS - 1);
	turn(); /* what the pump put off */
	assert_int_equal(wire->fences, 2);
	assert_int_equal(wire->mute_fences, 1); /* the far one: who closed first knows */
}

/* An attempt begun then would sit out TCP's timers when the cable is back. */
static void peer_begins_no_attempt_without_carrier(void **state)
{
	wire->is_carrier_asked_down[1] = true;
	start();
	run_until_good(RAILS - 1, RAILS - 1);
	assert_int_equal(wire->connects, RAILS - 1);
	/* No event says that it is up: each attempt asks anew. */
	wire->is_carrier_asked_down[1] = false;
	run_until_good(RAILS, RAILS);
}

static void peer_drains_a_rail_and_gives_it_back(void **state)
{
	uint32_t good;

	start();
	run_until_good(RAILS, RAILS);
	assert_false(mrcd_peer_needs_rail(near_peer(), 0));
	mrcd_worker_now(wire->hosts[0]);
	mrcd_peer_deny_rail(near_peer(), 0, true);
	assert_int_equal(path_of(0).state, MRC_PATH_DENIED);
	assert_true(mrcd_peer_needs_rail(near_peer(), 1));
	assert_false(mrcd_peer_needs_rail(near_peer(), 0));
	assert_int_equal(mrcd_peer_rail_paths(near_peer(), 0, &good), 1);
	assert_int_equal(good, 0);
	mrcd_peer_deny_rail(near_peer(), 0, false);
	run_until_good(RAILS, RAILS);
}

static void peer_starts_drained_rails_denied(void **state)
{
	wire->hosts[0]->rails[0].is_draining = true;
	start();
	while (path_of(1).state != MRC_PATH_GOOD)
		turn();
	assert_int_equal(path_of(0).state, MRC_PATH_DENIED);
}

/* ---- the late timer ---- */

struct stall {
	int bell;
	struct event *event;
};

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

static void spin_until(uint64_t until_ns)
{
	while (clock_ns() < until_ns)
		;
}

/* The loop is held up; meanwhile something arrives that the poll before did not see. */
static void on_stall(evutil_socket_t fd, short what, void *context)
{
	struct stall *stall = context;
	uint64_t one = 1;

	strcat(wire->order, "s");
	spin_until(clock_ns() + 5 * MRC_MS);
	assert_int_equal(write(stall->bell, &one, sizeof(one)), sizeof(one));
}

static void on_bell(evutil_socket_t fd, short what, void *context)
{
	uint64_t value;

	assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
	strcat(wire->order, "r");
}

/* DESIGN 8: after any late turn all rails are polled before any timer is judged. */
static void late_timer_polls_once_more_before_it_judges(void **state)
{
	struct event_base *base;
	struct event *bell_event;
	struct stall stall;
	int probes = 0;

	start();
	run_until_good(RAILS, RAILS);
	base = wire->hosts[0]->base;
	stall.bell = eventfd(0, EFD_NONBLOCK);
	bell_event = event_new(base, stall.bell, EV_READ | EV_PERSIST, on_bell, NULL);
	stall.event = event_new(base, -1, 0, on_stall, &stall);
	event_add(bell_event, NULL);

	/* Not every deadline of the engine ends in a frame; those of idle paths' probes do. */
	for (int i = 0; i < LATE_TRIALS; i++) {
		uint64_t deadline_ns;

		do {
			turn();
			deadline_ns = mrc_conn_deadline_ns(mrcd_peer_conn(near_peer()));
		} while (deadline_ns < clock_ns() + MRC_MS);
		/* The timer is due together with the callback that stalls, and stands behind it. */
		spin_until(deadline_ns + 100 * MRC_US);
		wire->order[0] = '\0';
		event_active(stall.event, 0, 0);
		while (strchr(wire->order, 'r') == NULL)
			event_base_loop(base, EVLOOP_NONBLOCK);
		event_base_loop(base, EVLOOP_NONBLOCK);
		probes += strchr(wire->order, 'p') != NULL;
		if (strncmp(wire->order, "sr", 2) != 0)
			fail_msg("ran in the order \"%s\": s is the stall, r the read, p a post of "
				 "the engine",
				 wire->order);
	}
	assert_true(probes > 0);
	event_free(bell_event);
	event_free(stall.event);
	close(stall.bell);
}

/* ---- who is it? ---- */

static void peer_match_finds_path_by_rail_and_address(void **state)
{
	static const struct {
		const char *name, *host, *to_host, *source;
		uint32_t rail;
		uint16_t path_id;
		int want; /* path index, or -1 */
		const char *why;
	} cases[] = {
		{"as listed", "a", "b", "10.0.0.1", 0, 0, 0, NULL},
		{"the other rail", "a", "b", "10.0.1.1", 1, 1, 1, NULL},
		{"the initiator's numbers differ", "a", "b", "10.0.1.1", 1, 0, 1, NULL},
		{"address of another rail", "a", "b", "10.0.1.1", 0, 0, -1, "address"},
		{"nobody's address", "a", "b", "10.9.9.9", 0, 0, -1, "address"},
		{"no number", "a", "b", "10.0.0.1.", 0, 0, -1, "address"},
		{"unknown host", "c", "b", "10.0.0.1", 0, 0, -1, "unknown host"},
		{"for somebody else", "a", "c", "10.0.0.1", 0, 0, -1, "another host"},
	};
	struct mrcd_worker *far = wire->hosts[1];

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_hello hello = {.path_id = cases[i].path_id};
		const char *why = "no reason given";
		uint8_t index = 99;
		struct mrcd_peer *peer;

		strcpy(hello.host, cases[i].host);
		strcpy(hello.to_host, cases[i].to_host);
		peer = mrcd_peer_match(&far->rails[cases[i].rail], &hello, cases[i].source, &index,
				       &why);
		if ((peer != NULL) != (cases[i].want >= 0))
			fail_msg("case \"%s\": %s", cases[i].name, why);
		if (peer != NULL)
			assert_int_equal(index, cases[i].want);
		else if (cases[i].why == NULL || strstr(why, cases[i].why) == NULL)
			fail_msg("case \"%s\": %s", cases[i].name, why);
	}
}

static void peer_match_refuses_the_side_that_must_wait(void **state)
{
	struct mrc_hello hello = {.host = "b", .to_host = "a"};
	const char *why = NULL;
	uint8_t index;

	assert_null(mrcd_peer_match(&wire->hosts[0]->rails[0], &hello, "10.0.0.2", &index, &why));
	assert_non_null(strstr(why, "this one opens"));
}

static void peer_match_tells_paths_apart_that_look_alike_by_their_number(void **state)
{
	struct mrc_hello hello = {.host = "a", .to_host = "b", .path_id = 1};
	struct mrcd_worker *far = wire->hosts[1];
	const char *why = NULL;
	uint8_t index;

	/* Two paths from one address to one rail. */
	wire->peers[1].paths[1] = wire->peers[1].paths[0];
	mrcd_peer_free(far->peers[0]);
	assert_int_equal(mrcd_peer_new(far, &wire->peers[1], "a", "b", &far->peers[0]), 0);
	assert_ptr_equal(mrcd_peer_match(&far->rails[0], &hello, "10.0.0.1", &index, &why),
			 far->peers[0]);
	assert_int_equal(index, 1);
	hello.path_id = 7;
	assert_null(mrcd_peer_match(&far->rails[0], &hello, "10.0.0.1", &index, &why));
	assert_non_null(strstr(why, "look alike"));
}

static void peer_match_takes_a_named_address_when_no_number_fits(void **state)
{
	struct mrc_hello hello = {.host = "a", .to_host = "b"};
	const char *why = NULL;
	struct mrcd_worker *far = wire->hosts[1];
	uint8_t index;

	strcpy(wire->peers[1].paths[0].address, "a-rail0.example");
	mrcd_peer_free(far->peers[0]);
	assert_int_equal(mrcd_peer_new(far, &wire->peers[1], "a", "b", &far->peers[0]), 0);
	assert_non_null(
		mrcd_peer_match(&wire->hosts[1]->rails[0], &hello, "192.0.2.7", &index, &why));
	assert_int_equal(index, 0);
}

/* ---- looking in ---- */

static void peer_json_has_the_promised_keys(void **state)
{
	json_t *peer, *paths, *path;

	start();
	run_until_good(RAILS, RAILS);
	peer = mrcd_peer_json(near_peer());
	assert_string_equal(json_string_value(json_object_get(peer, "name")), "b");
	assert_string_equal(json_string_value(json_object_get(peer, "state")), "connected");
	assert_int_equal(json_integer_value(json_object_get(peer, "paths_good")), RAILS);
	assert_true(json_is_false(json_object_get(peer, "draining")));
	assert_int_equal(json_object_size(peer), 14);
	paths = mrcd_peer_paths_json(near_peer());
	assert_int_equal(json_array_size(paths), RAILS);
	path = json_array_get(paths, 1);
	assert_string_equal(json_string_value(json_object_get(path, "rail")), "r1");
	assert_string_equal(json_string_value(json_object_get(path, "address")), "10.0.1.2:7471");
	assert_true(json_is_true(json_object_get(path, "connected")));
	assert_string_equal(json_string_value(json_object_get(path, "link")), "wire");
	assert_int_equal(json_integer_value(json_object_get(path, "wire")), 1);
	assert_int_equal(json_integer_value(json_object_get(path, "wire_version")),
			 MRC_HELLO_VERSION_MAX);
	assert_true(json_is_false(json_object_get(path, "encrypted")));
	assert_non_null(json_object_get(path, "about")); /* the two ends are told of each other */
	assert_int_equal(json_object_size(path), 36);
	json_decref(paths);
	json_decref(peer);
}

static void peer_hears_that_the_other_host_is_drained(void **state)
{
	start();
	run_until_good(RAILS, RAILS);
	for (int is_on = 1; is_on >= 0; is_on--) {
		mrcd_worker_now(wire->hosts[1]);
		mrcd_drain_set(wire->hosts[1], is_on);
		while (mrcd_peer_is_draining(near_peer()) != is_on) {
			turn();
			poll(NULL, 0, 1);
		}
		run_until_event(is_on ? "peer-drain" : "peer-undrain");
		assert_false(mrcd_peer_is_draining(wire->hosts[1]->peers[0]));
	}
}

/* As when host a's daemon is started again: another worker goes on with what the first one left. */
static void peer_goes_on_in_the_next_daemon(void **state)
{
	struct mrcd_image_out out;
	struct mrcd_worker *next;
	const char *why = "";
	uint32_t epoch, path_epoch, marks[MRC_PATHS_MAX] = {0};
	uint64_t resets;

	start();
	run_until_good(RAILS, RAILS);
	epoch = info_of(0).epoch;
	path_epoch = path_of(0).epoch;
	resets = info_of(1).resets;

	wire->is_fence_slow = true;
	mrcd_worker_now(wire->hosts[0]);
	mrcd_peer_quiesce(near_peer());
	assert_int_equal(wire->fences, RAILS);
	mrcd_image_begin(&out);
	assert_false(mrcd_peer_settle(near_peer()));
	assert_int_equal(mrcd_peer_save(near_peer(), &out), -EBUSY);
	wire_fence_holds(0);
	assert_false(mrcd_peer_settle(near_peer()));
	wire_fence_holds(1);
	assert_true(mrcd_peer_settle(near_peer()));
	wire->is_fence_slow = false;
	/* Out of service as the file had it then; the next daemon's file has it no more. */
	mrcd_peer_deny_rail(near_peer(), 1, true);
	/* However long it takes from here, no path is opened, and none is let in. */
	wire->connects = 0;
	for (int i = 0; i < 30; i++) {
		turn();
		poll(NULL, 0, 1);
		assert_true(mrcd_peer_settle(near_peer()));
	}
	assert_int_equal(wire->connects, 0);
	assert_int_equal(mrcd_peer_save(near_peer(), &out), 0);

	assert_int_equal(mrcd_worker_new(&wire->confs[0], &next), 0);
	/* Its paths are told from each other, and are what they were. */
	for (uint8_t i = 0; i < RAILS; i++) {
		marks[i] = mrcd_peer_path_mark(near_peer(), i);
		assert_int_not_equal(marks[i], 0);
		assert_int_equal(mrcd_peer_path_mark(near_peer(), i),
				 mrcd_peer_path_mark(next->peers[0], i));
	}
	assert_int_not_equal(mrcd_peer_path_mark(near_peer(), 0),
			     mrcd_peer_path_mark(near_peer(), 1));
	assert_int_equal(mrcd_peer_path_mark(near_peer(), RAILS), 0);
	/* Of another run of state it is not taken. */
	assert_int_equal(mrcd_peer_restore(next->peers[0], marks,
					   out.bytes + MRCD_IMAGE_HEADER_BYTES + 8,
					   out.len_bytes - MRCD_IMAGE_HEADER_BYTES - 8, &why),
			 -EPROTO);
	assert_true(why[0] != '\0');
	next->boot_id = wire->hosts[0]->boot_id;
	mrcd_worker_now(next);
	assert_int_equal(mrcd_peer_restore(next->peers[0], marks,
					   out.bytes + MRCD_IMAGE_HEADER_BYTES + 8,
					   out.len_bytes - MRCD_IMAGE_HEADER_BYTES - 8, &why),
			 0);
	mrcd_image_fini(&out);
	mrcd_worker_free(wire->hosts[0]);
	wire->hosts[0] = next;
	for (uint32_t i = 0; i < RAILS; i++) {
		next->rails[i].ops = &wire_ops;
		next->rails[i].is_carrier_up = true;
	}
	mrcd_peer_start(next->peers[0]);
	run_until_good(RAILS, RAILS);
	assert_int_equal(info_of(0).epoch, epoch);
	assert_true(path_of(0).epoch > path_epoch);
	assert_int_equal(info_of(1).resets, resets);
	/* One that nobody left anything for begins anew under the same boot id. */
	assert_int_equal(mrcd_peer_restore(wire->hosts[0]->loop_ends[0], NULL, NULL, 0, &why), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(peer_match_finds_path_by_rail_and_address),
		TEST(peer_match_refuses_the_side_that_must_wait),
		TEST(peer_match_tells_paths_apart_that_look_alike_by_their_number),
		TEST(peer_match_takes_a_named_address_when_no_number_fits),
		TEST(peer_comes_into_service_on_every_path),
		TEST(peer_survives_link_that_dies_in_its_flush),
		TEST(peer_survives_link_that_dies_while_it_comes_up),
		TEST(peer_tries_on_when_connecting_fails_inside_the_pump),
		TEST(peer_fences_older_link_when_a_newer_one_comes_up),
		TEST(peer_takes_no_link_with_epochs_of_the_past),
		TEST(peer_drops_frames_of_a_link_it_no_longer_has),
		TEST(peer_takes_up_nothing_new_once_stopped),
		TEST(rail_carrier_loss_takes_its_paths_out_and_is_counted_once),
		TEST(event_log_has_what_befell_and_flaps_stay_counted),
		TEST(silence_is_an_event_when_it_lasts),
		TEST(a_link_is_mute_when_either_port_is_down),
		TEST(a_link_that_is_drained_tells_it_the_peer),
		TEST(peer_begins_no_attempt_without_carrier),
		TEST(peer_drains_a_rail_and_gives_it_back),
		TEST(peer_starts_drained_rails_denied),
		TEST(late_timer_polls_once_more_before_it_judges),
		TEST(peer_json_has_the_promised_keys),
		TEST(peer_hears_that_the_other_host_is_drained),
		TEST(peer_goes_on_in_the_next_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
