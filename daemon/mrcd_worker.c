/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_about.h"
#include "mrcd_auth.h"
#include "mrcd_card.h"
#include "mrcd_carrier.h"
#include "mrcd_client.h"
#include "mrcd_control.h"
#include "mrcd_drain.h"
#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_health.h"
#include "mrcd_heritage.h"
#include "mrcd_http.h"
#include "mrcd_log.h"
#include "mrcd_lookout.h"
#include "mrcd_nic.h"
#include "mrcd_offload.h"
#include "mrcd_peer.h"
#include "mrcd_reading.h"
#include "mrcd_renewal.h"
#include "mrcd_trace.h"

/* libevent gives an event the middle one of the priorities unless told otherwise. */
#define MRCD_WORKER_PRIORITIES 3
/* Callbacks between two polls. */
#define MRCD_WORKER_CALLBACKS_MAX 64
/* So long is looked without a turn of the loop: timers and other descriptors wait for that. */
#define MRCD_WORKER_LOOK_NS (50 * MRC_US)

static const struct mrcd_conf_rail mrcd_worker_loop_conf = {.name = "loop"};

uint64_t mrcd_worker_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	worker->now_ns = mrcd_worker_clock_ns();
	return worker->now_ns;
}

/*
 * PRECISE_TIMER: a path is suspected after a millisecond, and libevent's usual
 * clock and epoll's timeout are no finer than that. NO_CACHE_TIME: a timer set
 * at the end of a long turn must not be counted from the turn's beginning. The
 * interval: callbacks that make each other active (the two ends of the loop)
 * would otherwise run for ever before the sockets are looked at again.
 */
static struct event_base *mrcd_worker_base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (config == NULL)
		return NULL;
	event_config_set_max_dispatch_interval(config, NULL, MRCD_WORKER_CALLBACKS_MAX, 0);
	event_config_set_flag(config,
			      EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NO_CACHE_TIME);
	base = event_base_new_with_config(config);
	event_config_free(config);
	if (base != NULL && event_base_priority_init(base, MRCD_WORKER_PRIORITIES) < 0) {
		event_base_free(base);
		return NULL;
	}
	return base;
}

/*
 * Look at the rings of clients and the sockets of links, which is where work
 * comes from, without a turn of the loop around it: that costs more than all of
 * this. False: enough for now; the loop has something to do, or it is time.
 */
static bool mrcd_worker_look(struct mrcd_worker *worker, uint64_t until_ns)
{
	mrcd_client_side_turn(worker->clients);
	mrcd_lookout_take(worker->lookout);
	mrcd_peer_pump_kicked(worker);
	return mrcd_worker_now(worker) < until_ns &&
	       event_base_get_num_events(worker->base, EVENT_BASE_COUNT_ACTIVE) == 0;
}

static void mrcd_worker_on_look(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_worker *worker = context;
	uint64_t until_ns = mrcd_worker_now(worker) + MRCD_WORKER_LOOK_NS;
	bool do_yield, is_enough = false;

	if (worker->clients == NULL)
		return;
	worker->is_in_look = true;
	while (!is_enough && mrc_look_on(&worker->look, worker->now_ns, &do_yield)) {
		if (do_yield)
			sched_yield(); /* whoever we wait for may need this processor */
		is_enough = !mrcd_worker_look(worker, until_ns);
	}
	worker->is_in_look = false;
	mrcd_peer_pump_kicked(worker);
	if (is_enough)
		mrcd_worker_look_soon(worker);
}

struct mrcd_rail *mrcd_worker_rail_add(struct mrcd_worker *worker,
				       const struct mrcd_conf_rail *conf)
{
	struct mrcd_rail *rail = worker->rails;

	while (rail < worker->rails + worker->rail_count && mrcd_rail_is_there(rail))
		rail++;
	if (rail == worker->rails + MRCD_RAILS_MAX)
		return NULL;
	*rail = (struct mrcd_rail){.worker = worker, .given = *conf};
	switch (conf->type) {
	case MRCD_RAIL_TCP:
		rail->ops = &mrcd_rail_tcp_ops;
		break;
	case MRCD_RAIL_AUTO:
		rail->ops = MRC_VERBS ? &mrcd_rail_verbs_ops : &mrcd_rail_tcp_ops;
		break;
	case MRCD_RAIL_VERBS:
		MRC_ASSERT(MRC_VERBS); /* or the configuration has an error */
		rail->ops = MRC_VERBS ? &mrcd_rail_verbs_ops : NULL;
		break;
	}
	rail->conf = &rail->given;
	rail->index = (uint32_t)(rail - worker->rails);
	rail->is_draining = conf->is_drained;
	rail->health.view = mrc_health_view_unjudged();
	rail->health.view.since_ns = worker->now_ns;
	worker->rail_count = MRC_MAX(worker->rail_count, rail->index + 1);
	return rail;
}

uint32_t mrcd_worker_rails(const struct mrcd_worker *worker)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < worker->rail_count; i++)
		count += mrcd_rail_is_there(&worker->rails[i]);
	return count;
}

int mrcd_worker_peers_reserve(struct mrcd_worker *worker, uint32_t count)
{
	struct mrcd_peer **peers = realloc(worker->peers, (worker->peer_count + count + 1) *
								  sizeof(struct mrcd_peer *));

	if (peers == NULL)
		return -ENOMEM;
	worker->peers = peers;
	return worker->clients != NULL
		       ? mrcd_client_side_peers_reserve(worker->clients, worker->peer_count + count)
		       : 0;
}

static int mrcd_worker_add_peers(struct mrcd_worker *worker)
{
	const struct mrcd_conf *conf = worker->conf;

	int r = mrcd_worker_peers_reserve(worker, conf->peer_count);

	for (uint32_t i = 0; i < conf->peer_count && r == 0; i++) {
		r = mrcd_peer_new(worker, &conf->peers[i], conf->peers[i].name, conf->host,
				  &worker->peers[i]);

		if (r < 0) {
			mrcd_err("peer %s: cannot be set up: %s", conf->peers[i].name,
				 strerror(-r));
			return r;
		}
		worker->peer_count++;
	}
	return r;
}

/* One conn whose two ends are both ours joins the clients of this host. */
static int mrcd_worker_add_loop(struct mrcd_worker *worker)
{
	struct mrcd_rail *rail = &worker->loop_rail;
	char names[2][MRC_NAME_MAX + 1];
	int r;

	rail->ops = &mrcd_rail_loop_ops;
	rail->conf = &mrcd_worker_loop_conf;
	rail->worker = worker;
	rail->index = MRCD_RAILS_MAX;
	rail->is_carrier_up = true;
	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "%.*s.%d", (int)MRC_NAME_MAX - 2,
			 worker->conf->host, i);
	for (int i = 0; i < 2; i++) {
		r = mrcd_peer_new(worker, NULL, names[1 - i], names[i], &worker->loop_ends[i]);
		if (r < 0) {
			mrcd_err("the connection to this host itself cannot be set up: %s",
				 strerror(-r));
			return r;
		}
	}
	return 0;
}

int mrcd_worker_new(const struct mrcd_conf *conf, struct mrcd_worker **worker_out)
{
	struct mrcd_worker *worker = calloc(1, sizeof(*worker));
	int r = -ENOMEM;

	if (worker == NULL)
		return -ENOMEM;
	MRC_ASSERT(conf->rail_count <= MRCD_RAILS_MAX);
	worker->conf = conf;
	LIST_INIT(&worker->regions);
	TAILQ_INIT(&worker->kicked);
	worker->start_ns = mrcd_worker_now(worker);
	while (worker->boot_id == 0)
		mrcd_auth_random(&worker->boot_id, sizeof(worker->boot_id));
	r = mrcd_event_log_new(&worker->events);
	if (r < 0)
		goto err_free_worker;
	r = -ENOMEM;
	worker->base = mrcd_worker_base_new();
	if (worker->base == NULL) {
		mrcd_err("cannot make an event loop");
		goto err_free_worker;
	}
	mrc_look_init(&worker->look, conf->spin_ns, worker->start_ns);
	worker->look_event = evtimer_new(worker->base, mrcd_worker_on_look, worker);
	if (worker->look_event == NULL)
		goto err_free_worker;
	r = mrcd_lookout_new(&worker->lookout);
	if (r < 0)
		goto err_free_worker;
	r = mrcd_traces_new(worker, &worker->traces);
	if (r == 0)
		r = mrcd_drill_new(worker, &worker->drill);
	if (r < 0)
		goto err_free_worker;
	for (uint32_t i = 0; i < conf->rail_count; i++) {
		struct mrcd_rail *rail = mrcd_worker_rail_add(worker, &conf->rails[i]);

		MRC_ASSERT(rail == &worker->rails[i]); /* which is how paths name it */
		rail->path_count = mrcd_conf_rail_paths(conf, rail->given.name);
	}
	r = mrcd_worker_add_peers(worker);
	if (r == 0)
		r = mrcd_worker_add_loop(worker);
	if (r < 0)
		goto err_free_worker;
	*worker_out = worker;
	return 0;

err_free_worker:
	mrcd_worker_free(worker);
	return r;
}

int mrcd_worker_rail_open(struct mrcd_rail *rail)
{
	int r = rail->ops->open(rail);

	if (r < 0) {
		mrcd_err(
			"rail %s (%s): cannot be opened: %s", rail->conf->name,
			rail->conf->interface[0] != '\0' ? rail->conf->interface : rail->conf->address,
			strerror(-r));
		return r;
	}
	rail->is_open = true;
	if (!rail->is_carrier_up && rail->nic.is_placed)
		mrcd_warn("rail %s (%s): no carrier; waiting for it", rail->conf->name,
			  rail->conf->interface);
	if (rail->is_draining)
		mrcd_notice("rail %s: starts drained, as configured", rail->conf->name);
	return 0;
}

void mrcd_worker_rail_close(struct mrcd_rail *rail)
{
	if (rail->is_open)
		rail->ops->close(rail);
	rail->is_open = false;
}

void mrcd_worker_rail_remove(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;

	mrcd_worker_rail_close(rail);
	*rail = (struct mrcd_rail){.worker = worker, .index = rail->index};
}

/* The client socket: the service manager's, or the one of the daemon before us, or a new one. */
static int mrcd_worker_open_clients(struct mrcd_worker *worker, int client_fd,
				    struct mrcd_heritage *heritage)
{
	char path[MRCD_SOCKET_PATH_BYTES];
	bool is_own = client_fd < 0 && heritage != NULL;
	int r;

	if (is_own) {
		mrcd_client_side_path(worker, path);
		client_fd = mrcd_heritage_listener(heritage, MRCD_PARCEL_LISTEN, path);
	}
	is_own = is_own && client_fd >= 0;
	r = mrcd_client_side_new(worker, client_fd, &worker->clients);
	if (r < 0)
		mrcd_err("cannot offer the client socket in %s: %s", worker->conf->runtime_dir,
			 strerror(-r));
	else if (is_own)
		mrcd_client_side_own(worker->clients);
	return r;
}

static int mrcd_worker_open_control(struct mrcd_worker *worker, struct mrcd_heritage *heritage)
{
	int fd = -1, r;

	if (heritage != NULL) {
		char path[MRCD_SOCKET_PATH_BYTES];

		snprintf(path, sizeof(path), "%s/control.sock", worker->conf->runtime_dir);
		fd = mrcd_heritage_listener(heritage, MRCD_PARCEL_CONTROL, path);
	}
	r = mrcd_control_new_at(worker, fd, &worker->control);
	if (r < 0) {
		mrcd_err("cannot offer the control socket in %s: %s", worker->conf->runtime_dir,
			 strerror(-r));
		if (fd >= 0)
			close(fd);
	}
	return r;
}

int mrcd_worker_start(struct mrcd_worker *worker, int client_fd, struct mrcd_heritage *heritage)
{
	int r;

	mrcd_drill_recover(worker->drill);
	r = mrcd_nics_new(worker, &worker->nics);
	if (r < 0) {
		mrcd_err("no threads to ask for interfaces on: %s", strerror(-r));
		goto err_close_fd;
	}
	/* Carriers first: rails want to know their interfaces. Clients last: a connect must not
	 * meet a half-built daemon, and what the daemon before us left is whole until then. */
	r = mrcd_carrier_new(worker, &worker->carrier);
	if (r < 0) {
		mrcd_err("cannot listen to carrier events of the kernel: %s", strerror(-r));
		goto err_close_fd;
	}
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		r = mrcd_worker_rail_open(&worker->rails[i]);
		if (r < 0)
			goto err_close_fd;
	}
	r = mrcd_about_new(worker, &worker->about);
	if (r < 0) {
		mrcd_err("cannot watch the clock: %s", strerror(-r));
		goto err_close_fd;
	}
	r = worker->loop_rail.ops->open(&worker->loop_rail);
	if (r < 0) {
		mrcd_err("the rail to this host itself cannot be opened: %s", strerror(-r));
		goto err_close_fd;
	}
	worker->is_loop_open = true;
	r = mrcd_health_new(worker, &worker->health);
	if (r < 0) {
		mrcd_err("cannot watch the health of rails: %s", strerror(-r));
		goto err_close_fd;
	}
	r = mrcd_cards_new(worker, "/sys", &worker->cards);
	if (r < 0) {
		mrcd_err("cannot read what network cards count: %s", strerror(-r));
		goto err_close_fd;
	}
	if (worker->conf->metrics.is_enabled)
		r = mrcd_http_new(worker, &worker->http);
	if (r < 0) {
		mrcd_err("metrics cannot be set up: %s", strerror(-r));
		goto err_close_fd;
	}
	r = mrcd_worker_open_clients(worker, client_fd, heritage);
	if (r == 0)
		r = mrcd_worker_open_control(worker, heritage);
	if (r == 0 && heritage != NULL)
		r = mrcd_heritage_apply_clients(heritage, worker);
	if (r < 0)
		return r;
	mrcd_worker_now(worker);
	for (int i = 0; i < 2; i++)
		mrcd_peer_start(worker->loop_ends[i]);
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_start(worker->peers[i]);
	return 0;

err_close_fd:
	if (client_fd >= 0)
		close(client_fd);
	return r;
}

/*
 * Peers stop first, so that nothing is pumped while the rest goes; the client
 * side may still name its channels to them. Links and handshakes point to
 * peers, so the rails close before the peers are freed. What the clients' end
 * asked rails to deregister they need not answer: a closed one has no memory.
 */
void mrcd_worker_free(struct mrcd_worker *worker)
{
	if (worker == NULL)
		return;
	mrcd_renewal_free(worker->renewal);
	worker->renewal = NULL;
	mrcd_drill_free(worker->drill);
	worker->drill = NULL;
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_stop(worker->peers[i]);
	for (int i = 0; i < 2; i++) {
		if (worker->loop_ends[i] != NULL)
			mrcd_peer_stop(worker->loop_ends[i]);
	}
	mrcd_health_free(worker->health);
	worker->health = NULL;
	mrcd_cards_stop(worker->cards);
	mrcd_http_free(worker->http);
	worker->http = NULL;
	mrcd_control_free(worker->control);
	worker->control = NULL;
	mrcd_traces_free(worker->traces);
	worker->traces = NULL;
	mrcd_client_side_free(worker->clients);
	worker->clients = NULL;
	mrcd_about_free(worker->about);
	worker->about = NULL;
	mrcd_carrier_free(worker->carrier);
	worker->carrier = NULL;
	for (uint32_t i = 0; i < worker->rail_count; i++)
		mrcd_worker_rail_close(&worker->rails[i]);
	if (worker->is_loop_open)
		worker->loop_rail.ops->close(&worker->loop_rail);
	mrcd_offload_free(worker->offload);
	mrcd_region_free_all(worker);
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_free(worker->peers[i]);
	for (int i = 0; i < 2; i++)
		mrcd_peer_free(worker->loop_ends[i]);
	free(worker->peers);
	mrcd_lookout_free(worker->lookout);
	/* Last: a driver, a card or a file that hangs holds up nothing but our end. */
	mrcd_readings_free(worker->readings);
	mrcd_cards_free(worker->cards);
	mrcd_nics_free(worker->nics);
	if (worker->look_event != NULL)
		event_free(worker->look_event);
	if (worker->base != NULL)
		event_base_free(worker->base);
	mrcd_event_log_free(worker->events);
	free(worker);
}

struct mrcd_peer *mrcd_worker_peer(struct mrcd_worker *worker, const char *name)
{
	if (strcmp(name, worker->conf->host) == 0 || strcmp(name, "localhost") == 0)
		return worker->loop_ends[0];
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		if (strcmp(name, mrcd_peer_name(worker->peers[i])) == 0 &&
		    !mrcd_peer_is_going(worker->peers[i]))
			return worker->peers[i];
	}
	return NULL;
}

struct mrcd_rail *mrcd_worker_rail(struct mrcd_worker *worker, const char *name)
{
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]) &&
		    strcmp(name, worker->rails[i].conf->name) == 0)
			return &worker->rails[i];
	}
	return NULL;
}

void mrcd_worker_summarize(const struct mrcd_worker *worker,
			   struct mrcd_worker_summary *summary_out)
{
	struct mrc_conn_info info;

	*summary_out = (struct mrcd_worker_summary){
		.rails = mrcd_worker_rails(worker),
		.peers = worker->peer_count,
		.is_draining = mrcd_drain_is_on(worker),
		.is_conf_former = worker->conf->is_former,
	};
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail))
			continue;
		summary_out->rails_up += rail->is_carrier_up && !rail->is_draining;
		summary_out->rails_degraded += rail->health.view.state == MRC_HEALTH_DEGRADED;
		summary_out->rails_failing += rail->health.view.state == MRC_HEALTH_FAILING;
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->peers[i]), &info);
		summary_out->peers_connected += info.paths_good > 0 && !info.is_peer_silent;
		summary_out->channels += info.channel_count;
	}
	mrc_conn_info(mrcd_peer_conn(worker->loop_ends[0]), &info);
	summary_out->channels += info.channel_count;
	if (worker->clients != NULL)
		summary_out->clients = mrcd_client_side_count(worker->clients);
}

const char *mrcd_worker_summary_text(const struct mrcd_worker_summary *s, char *text,
				     size_t text_bytes)
{
	char health[64] = "";

	if (s->rails_failing > 0 && s->rails_degraded > 0)
		snprintf(health, sizeof(health), " (%u failing, %u degraded)", s->rails_failing,
			 s->rails_degraded);
	else if (s->rails_failing > 0 || s->rails_degraded > 0)
		snprintf(health, sizeof(health), " (%u %s)", s->rails_failing + s->rails_degraded,
			 s->rails_failing > 0 ? "failing" : "degraded");
	snprintf(text, text_bytes,
		 "%s%u of %u rail%s up%s, %u of %u peer%s connected, %u client%s, %u channel%s%s",
		 s->is_draining ? "draining: " : "", s->rails_up, s->rails,
		 s->rails == 1 ? "" : "s", health, s->peers_connected, s->peers,
		 s->peers == 1 ? "" : "s", s->clients, s->clients == 1 ? "" : "s", s->channels,
		 s->channels == 1 ? "" : "s",
		 s->is_conf_former ? ", the configuration file has errors" : "");
	return text;
}
