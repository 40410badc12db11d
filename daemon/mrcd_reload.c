/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_reload.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_carrier.h"
#include "mrcd_client.h"
#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_http.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_renewal.h"
#include "mrcd_tcp_sock.h"

/* One reload from begin to end. On the stack of mrcd_reload(). */
struct reloading {
	struct mrcd_worker *worker;
	struct mrcd_conf *running; /* ours: what is in force, with the rails and peers there are */
	struct mrcd_peer **there;  /* ours; by its index: the peer */
	struct mrcd_conf *fresh;   /* ours until it is in force */
	const struct mrcd_reading *reading; /* where its rails are */
	struct mrcd_reload *out;
	/* By the fresh configuration's index: */
	struct mrcd_rail *rails[MRCD_RAILS_MAX];   /* where it is or is to be */
	struct mrcd_peer **peers;                  /* ours; likewise; NULL: the peer is new */
	enum mrcd_rail_fate fates[MRCD_RAILS_MAX]; /* by the worker's index */
	struct mrcd_peer **peers_new; /* ours; peers_new_count, made but not the worker's */
	uint32_t peers_new_count;
	struct mrcd_http *http; /* ours until it is in force; NULL: none, or the one there is */
};

static void complain(void *context, const char *line)
{
	struct mrcd_reload *out = context;

	mrcd_err("%s", line);
	if (out->error[0] == '\0')
		snprintf(out->error, sizeof(out->error), "%s", line);
}

static int refuse(const struct reloading *rl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int refuse(const struct reloading *rl, const char *format, ...)
{
	char text[400], line[480];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%.64s: %s", rl->fresh->file, text);
	complain(rl->out, line);
	return -EINVAL;
}

/* ---- what runs ---- */

/* As the configuration that is in force would have to be, for what there is: a reload before may not be done. */
static int running_make(struct reloading *rl)
{
	const struct mrcd_worker *worker = rl->worker;
	struct mrcd_conf *running = malloc(sizeof(*running));
	uint32_t to[MRCD_RAILS_MAX] = {0};

	if (running == NULL)
		return -ENOMEM;
	rl->running = running;
	*running = *worker->conf; /* services and quotas stay its own */
	running->peers = calloc(worker->peer_count + 1, sizeof(*running->peers));
	rl->there = calloc(worker->peer_count + 1, sizeof(struct mrcd_peer *));
	if (running->peers == NULL || rl->there == NULL)
		return -ENOMEM;
	running->rail_count = 0;
	running->peer_count = 0;
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail))
			continue;
		to[i] = running->rail_count;
		running->rails[running->rail_count++] = rail->given;
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		struct mrcd_conf_peer *peer = &running->peers[running->peer_count];

		if (mrcd_peer_is_going(worker->peers[i]))
			continue;
		mrcd_peer_listed(worker->peers[i], peer);
		for (uint8_t p = 0; p < peer->path_count; p++)
			peer->paths[p].rail_index = to[peer->paths[p].rail_index];
		rl->there[running->peer_count++] = worker->peers[i];
	}
	return 0;
}

static void running_free(struct mrcd_conf *running)
{
	if (running == NULL)
		return;
	free(running->peers);
	free(running);
}

/* ---- what is to become of what there is ---- */

static int fates_find(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;

	for (uint32_t i = 0; i < worker->rail_count; i++)
		rl->fates[i] = MRCD_RAIL_GOES;
	for (uint32_t i = 0; i < rl->fresh->rail_count; i++) {
		const struct mrcd_conf_rail *conf = &rl->fresh->rails[i];
		struct mrcd_rail *rail = mrcd_worker_rail(worker, conf->name);
		uint32_t shares;
		bool is_more;

		rl->rails[i] = rail;
		if (rail == NULL)
			continue;
		/* Not what the last file said: what that asked for may still wait. */
		shares = rail->ops->shares != NULL ? rail->ops->shares(rail) : 0;
		is_more = shares > 0 && mrcd_conf_rail_paths(rl->fresh, conf->name) > shares;
		rl->fates[rail->index] =
			rl->out->plan.rails[i] == MRCD_PLAN_ANEW || is_more || rail->guest_count > 0
				? MRCD_RAIL_RENEW
				: MRCD_RAIL_STAYS;
	}
	rl->peers = calloc(rl->fresh->peer_count + 1, sizeof(struct mrcd_peer *));
	rl->peers_new = calloc(rl->fresh->peer_count + 1, sizeof(struct mrcd_peer *));
	if (rl->peers == NULL || rl->peers_new == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < rl->fresh->peer_count; i++) {
		if (rl->out->plan.peers[i] != MRCD_PLAN_ADDED)
			rl->peers[i] = rl->there[rl->out->plan.peers_were[i]];
	}
	return 0;
}

/* Is the path in this slot still listed? */
static bool is_listed(const struct reloading *rl, uint32_t fresh_index, uint8_t slot)
{
	const struct mrcd_conf_peer *conf = &rl->fresh->peers[fresh_index];
	struct mrcd_peer *peer = rl->peers[fresh_index];

	for (uint8_t n = 0; n < conf->path_count; n++) {
		const struct mrcd_rail *rail = rl->rails[conf->paths[n].rail_index];

		if (rail != NULL && mrcd_peer_path_find(peer, rail, &conf->paths[n]) == slot)
			return true;
	}
	return false;
}

/* How many of its paths there are not yet. */
static uint8_t paths_new(const struct reloading *rl, uint32_t fresh_index)
{
	const struct mrcd_conf_peer *conf = &rl->fresh->peers[fresh_index];
	uint8_t count = 0;

	for (uint8_t n = 0; n < conf->path_count; n++) {
		const struct mrcd_rail *rail = rl->rails[conf->paths[n].rail_index];

		count += rail == NULL ||
			 mrcd_peer_path_find(rl->peers[fresh_index], rail, &conf->paths[n]) < 0;
	}
	return count;
}

/* Good paths that stay, over a rail other than `besides`; *first_out: the rail of one that goes. */
static uint32_t good_staying(const struct reloading *rl, uint32_t fresh_index,
			     const struct mrcd_rail *besides, const struct mrcd_rail **first_out)
{
	struct mrcd_peer *peer = rl->peers[fresh_index];
	struct mrc_conn_info info;
	uint32_t count = 0;

	*first_out = NULL;
	mrc_conn_info(mrcd_peer_conn(peer), &info);
	for (uint8_t i = 0; i < info.path_count; i++) {
		const struct mrcd_rail *rail = mrcd_peer_path_rail(peer, i);
		struct mrc_path_info path;

		mrc_conn_path_info(mrcd_peer_conn(peer), i, &path);
		if (rail == NULL || path.state != MRC_PATH_GOOD)
			continue;
		if (rail == besides || !is_listed(rl, fresh_index, i))
			*first_out = rail;
		else
			count++;
	}
	return count;
}

/* Nobody is to be cut off, not even for the time that a rail takes to be opened anew. */
static int peer_check(const struct reloading *rl, uint32_t fresh_index)
{
	const char *name = rl->fresh->peers[fresh_index].name;
	const struct mrcd_rail *rail;

	if (paths_new(rl, fresh_index) > 0)
		return 0; /* it goes when they are good */
	if (good_staying(rl, fresh_index, NULL, &rail) == 0 && rail != NULL)
		return refuse(rl,
			      "the last good path to peer %s would go with rail %s or its entry; "
			      "allowed: when another path is good, or is added by the same reload",
			      name, rail->given.name);
	for (uint32_t i = 0; i < rl->worker->rail_count; i++) {
		const struct mrcd_rail *renewed = &rl->worker->rails[i];

		if (!mrcd_rail_is_there(renewed) || rl->fates[i] != MRCD_RAIL_RENEW)
			continue;
		if (good_staying(rl, fresh_index, renewed, &rail) == 0 && rail == renewed)
			return refuse(
				rl,
				"rail %s has to be opened anew and carries the last good path "
				"to peer %s; allowed: when another path is good, or a restart",
				renewed->given.name, name);
	}
	return 0;
}

/* The file was checked against its own host's name, which may wait for a restart. */
static int names_check(const struct reloading *rl)
{
	for (uint32_t i = 0; i < rl->fresh->peer_count; i++) {
		if (strcmp(rl->fresh->peers[i].name, rl->running->host) == 0)
			return refuse(rl,
				      "peer %s has the name this host goes by; allowed: a restart, "
				      "where host is another too",
				      rl->running->host);
	}
	return 0;
}

static int peers_check(const struct reloading *rl)
{
	struct mrc_conn_info info;
	int r = 0;

	for (uint32_t i = 0; i < rl->fresh->peer_count && r == 0; i++) {
		if (rl->peers[i] != NULL)
			r = peer_check(rl, i);
	}
	for (uint32_t i = 0; i < rl->running->peer_count && r == 0; i++) {
		const char *name = rl->running->peers[i].name, *holder;
		struct mrcd_peer *peer;
		pid_t pid;

		if (!rl->out->plan.is_peer_gone[i])
			continue;
		peer = rl->there[i];
		mrc_conn_info(mrcd_peer_conn(peer), &info);
		holder = rl->worker->clients != NULL
				 ? mrcd_client_side_holder(rl->worker->clients, peer, &pid)
				 : NULL;
		if (info.channel_count > 0)
			r = refuse(
				rl,
				"peer %s is no longer listed and %u channel%s open to it; allowed: "
				"when they are closed, or a restart",
				name, info.channel_count,
				info.channel_count == 1 ? " is" : "s are");
		else if (holder != NULL)
			r = refuse(
				rl,
				"peer %s is no longer listed and program %s (pid %d) has not read "
				"the end of a channel to it; allowed: when it has, or a restart",
				name, holder, (int)pid);
	}
	return r;
}

/* A drill measures what happens to its rail: that shall be the drill's doing. */
static int rails_check(const struct reloading *rl)
{
	for (uint32_t i = 0; i < rl->worker->rail_count; i++) {
		const struct mrcd_rail *rail = &rl->worker->rails[i];

		if (mrcd_rail_is_there(rail) && rl->fates[i] != MRCD_RAIL_STAYS &&
		    mrcd_drill_has(rl->worker->drill, rail))
			return refuse(rl, "rail %s is in a drill; allowed: when that has ended",
				      rail->given.name);
	}
	return 0;
}

/* ---- can what is new be had? ---- */

/* Does a rail that is to close listen there? Then it is only in the way until it has. */
static bool is_to_be_left(const struct reloading *rl, uint16_t port)
{
	for (uint32_t i = 0; i < rl->worker->rail_count; i++) {
		if (mrcd_rail_is_there(&rl->worker->rails[i]) && rl->fates[i] != MRCD_RAIL_STAYS &&
		    rl->worker->rails[i].given.port == port)
			return true;
	}
	return false;
}

static int address_check(const struct reloading *rl, uint32_t index)
{
	const struct mrcd_conf_rail *conf = &rl->fresh->rails[index];
	struct mrcd_conf_rail probe = *conf;
	struct sockaddr_storage own;
	socklen_t own_len = 0;
	const int on = 1;
	int fd, r;

	if (is_to_be_left(rl, conf->port))
		probe.port = 0;
	if (conf->address[0] == '\0' && rl->reading->places_error < 0)
		return refuse(rl,
			      "rails[%u] (%s): the kernel does not list addresses: %s; allowed: an "
			      "address, or when it does",
			      index, conf->name, strerror(-rl->reading->places_error));
	r = mrcd_nic_address_there(&probe, &rl->reading->places[index], &own, &own_len);
	if (r < 0)
		return refuse(rl,
			      "rails[%u] (%s).interface: %s has no address; allowed: an interface "
			      "with one, or address",
			      index, conf->name, conf->interface);
	/* Unlike the rail's own socket, which waits for its address to come. */
	fd = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (conf->interface[0] != '\0')
		(void)!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, conf->interface,
				  (socklen_t)strlen(conf->interface));
	r = bind(fd, (const struct sockaddr *)&own, own_len) < 0 || listen(fd, 1) < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return refuse(
			rl,
			"rails[%u] (%s): cannot listen at %s port %u: %s; allowed: an address "
			"of this host and a port that is free there",
			index, conf->name,
			conf->address[0] != '\0' ? conf->address : conf->interface, conf->port,
			strerror(-r));
	return 0;
}

static int rail_check(const struct reloading *rl, uint32_t index)
{
	const struct mrcd_conf_rail *conf = &rl->fresh->rails[index];
	char path[128];

	if (conf->device[0] != '\0') {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s", conf->device);
		if (access(path, F_OK) < 0)
			return refuse(rl,
				      "rails[%u] (%s).device: there is no RDMA device %s; allowed: "
				      "one that rdma link shows",
				      index, conf->name, conf->device);
	}
	if (conf->interface[0] != '\0' && if_nametoindex(conf->interface) == 0)
		return refuse(
			rl,
			"rails[%u] (%s).interface: there is no network interface %s; allowed: "
			"one that ip link shows",
			index, conf->name, conf->interface);
	if (conf->interface[0] == '\0' && conf->address[0] == '\0')
		return 0; /* the device says where it is */
	return address_check(rl, index);
}

static int listener_check(const struct reloading *rl)
{
	const struct mrcd_conf_metrics *old = &rl->running->metrics, *conf = &rl->fresh->metrics;
	int fd;

	if (!rl->out->plan.is_listener_moved || !conf->is_enabled ||
	    (old->is_enabled && old->port == conf->port))
		return 0; /* nothing to open, or what is in the way is ours */
	fd = mrcd_http_listen(conf);
	if (fd < 0)
		return refuse(
			rl,
			"metrics: cannot answer at %s port %u: %s; allowed: an address of this "
			"host and a port that is free there",
			conf->address, conf->port, strerror(-fd));
	close(fd);
	return 0;
}

static int system_check(const struct reloading *rl)
{
	int r = listener_check(rl);

	for (uint32_t i = 0; i < rl->fresh->rail_count && r == 0; i++) {
		enum mrcd_plan_action action = rl->out->plan.rails[i];

		if (action == MRCD_PLAN_ADDED || action == MRCD_PLAN_ANEW)
			r = rail_check(rl, i);
	}
	return r;
}

/* ---- having it: all that can fail, and can be undone ---- */

static int rails_prepare(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;
	int r;

	for (uint32_t i = 0; i < rl->fresh->rail_count; i++) {
		const struct mrcd_conf_rail *conf = &rl->fresh->rails[i];
		struct mrcd_rail *rail;

		if (rl->out->plan.rails[i] != MRCD_PLAN_ADDED)
			continue;
		rail = mrcd_worker_rail_add(worker, conf);
		if (rail == NULL)
			return refuse(
				rl,
				"rails[%u] (%s): there is no room for it before others are gone; "
				"allowed: %u at once, so remove first and add by another reload",
				i, conf->name, MRCD_RAILS_MAX);
		rl->rails[i] = rail;
		rl->fates[rail->index] = MRCD_RAIL_STAYS;
		rail->path_count = mrcd_conf_rail_paths(rl->fresh, conf->name);
		mrcd_carrier_add(rail);
		r = mrcd_worker_rail_open(rail);
		if (r < 0)
			return refuse(rl, "rails[%u] (%s): cannot be opened: %s", i, conf->name,
				      strerror(-r));
	}
	return 0;
}

static int peer_prepare(struct reloading *rl, uint32_t index)
{
	struct mrcd_conf_peer conf = rl->fresh->peers[index];
	int r;

	for (uint8_t n = 0; n < conf.path_count; n++)
		conf.paths[n].rail_index = rl->rails[conf.paths[n].rail_index]->index;
	r = mrcd_peer_new(rl->worker, &conf, conf.name, rl->worker->conf->host,
			  &rl->peers_new[rl->peers_new_count]);
	if (r < 0)
		return refuse(rl, "peers[%u] (%s): cannot be set up: %s", index, conf.name,
			      strerror(-r));
	rl->peers_new_count++;
	return 0;
}

static int peers_prepare(struct reloading *rl)
{
	int r = 0;

	for (uint32_t i = 0; i < rl->fresh->peer_count && r == 0; i++) {
		uint8_t count;

		if (rl->peers[i] == NULL) {
			r = peer_prepare(rl, i);
			continue;
		}
		count = paths_new(rl, i);
		r = mrcd_peer_reserve(rl->peers[i], count);
		if (r == -ENOSPC)
			r = refuse(
				rl,
				"peers[%u] (%s): there is no room for %u more paths before others "
				"are gone; allowed: %d at once, so remove first and add by "
				"another reload",
				i, rl->fresh->peers[i].name, count, MRC_PATHS_MAX);
	}
	return r < 0 ? r : mrcd_worker_peers_reserve(rl->worker, rl->peers_new_count);
}

static int prepare(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;
	int r = rails_prepare(rl);

	if (r == 0)
		r = peers_prepare(rl);
	if (r == 0 && worker->renewal == NULL)
		r = mrcd_renewal_new(worker, &worker->renewal);
	if (r == 0 && rl->out->plan.is_listener_moved && rl->fresh->metrics.is_enabled)
		r = mrcd_http_make(worker, &rl->http);
	return r;
}

static void undo(struct reloading *rl)
{
	mrcd_http_free(rl->http);
	rl->http = NULL;
	for (uint32_t i = 0; i < rl->peers_new_count; i++)
		mrcd_peer_free(rl->peers_new[i]);
	rl->peers_new_count = 0;
	for (uint32_t i = 0; i < rl->fresh->rail_count; i++) {
		if (rl->out->plan.rails[i] == MRCD_PLAN_ADDED && rl->rails[i] != NULL)
			mrcd_worker_rail_remove(rl->rails[i]);
	}
}

/* ---- doing it: nothing here fails ---- */

static void rail_change(struct mrcd_rail *rail, const struct mrcd_conf_rail *conf)
{
	struct mrcd_worker *worker = rail->worker;

	rail->given.speed_bits_per_s = conf->speed_bits_per_s;
	if (rail->given.is_drained == conf->is_drained)
		return;
	rail->given.is_drained = conf->is_drained;
	if (rail->is_draining == conf->is_drained)
		return;
	rail->is_draining = conf->is_drained;
	mrcd_rail_note_drain(rail, rail->is_draining);
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_deny_rail(worker->peers[i], rail->index, rail->is_draining);
}

static void rails_apply(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];

		/* One that is being closed already goes on to be opened as the file says now. */
		if (mrcd_rail_is_there(rail) &&
		    (!rail->is_leaving || rl->fates[i] != MRCD_RAIL_STAYS))
			rail->fate = rl->fates[i];
	}
	for (uint32_t i = 0; i < rl->fresh->rail_count; i++) {
		struct mrcd_rail *rail = rl->rails[i];

		MRC_ASSERT(rail != NULL); /* it was there, or rails_prepare() has added it */
		rail->path_count = mrcd_conf_rail_paths(rl->fresh, rail->given.name);
		rail->next = rl->fresh->rails[i];
		if (rl->out->plan.rails[i] == MRCD_PLAN_CHANGED)
			rail_change(rail, &rl->fresh->rails[i]);
		if (rl->out->plan.rails[i] == MRCD_PLAN_ADDED) {
			struct mrcd_event event = {.kind = MRCD_EVENT_RAIL_ADDED};

			snprintf(event.rail, sizeof(event.rail), "%s", rail->given.name);
			mrcd_event_log_add(worker->events, &event);
			mrcd_notice("rail %s: added", rail->given.name);
		}
	}
}

static void peer_apply(struct reloading *rl, uint32_t index)
{
	const struct mrcd_conf_peer *conf = &rl->fresh->peers[index];
	struct mrcd_peer *peer = rl->peers[index];
	struct mrc_conn_info info;

	mrcd_peer_set_keys(peer, conf->keys, conf->key_count);
	mrc_conn_info(mrcd_peer_conn(peer), &info);
	for (uint8_t i = 0; i < info.path_count; i++) {
		if (mrcd_peer_path_rail(peer, i) != NULL)
			mrcd_peer_path_doom(peer, i, !is_listed(rl, index, i));
	}
	for (uint8_t n = 0; n < conf->path_count; n++) {
		struct mrcd_rail *rail = rl->rails[conf->paths[n].rail_index];

		if (mrcd_peer_path_find(peer, rail, &conf->paths[n]) < 0)
			mrcd_peer_path_add(peer, &conf->paths[n], rail);
	}
	if (rl->out->plan.is_timers_changed)
		mrcd_peer_set_timers(peer);
	mrcd_peer_pump(peer);
}

static void peers_apply(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;

	for (uint32_t i = 0; i < rl->fresh->peer_count; i++) {
		if (rl->peers[i] != NULL)
			peer_apply(rl, i);
	}
	for (uint32_t i = 0; i < rl->running->peer_count; i++) {
		if (rl->out->plan.is_peer_gone[i])
			mrcd_peer_doom(rl->there[i]);
	}
	for (uint32_t i = 0; i < rl->peers_new_count; i++) {
		worker->peers[worker->peer_count++] = rl->peers_new[i];
		mrcd_peer_start(rl->peers_new[i]);
	}
	rl->peers_new_count = 0;
	for (int i = 0; i < 2 && rl->out->plan.is_timers_changed; i++)
		mrcd_peer_set_timers(worker->loop_ends[i]);
}

/* What the loop of the worker itself has from the configuration. */
static void worker_apply(struct reloading *rl)
{
	struct mrcd_worker *worker = rl->worker;

	worker->look.span_ns = worker->conf->spin_ns;
	mrcd_log_set_level(worker->conf->log_level);
	mrcd_client_side_configure(worker->clients);
	if (!rl->out->plan.is_listener_moved)
		return;
	mrcd_http_free(worker->http);
	worker->http = rl->http;
	rl->http = NULL;
	if (worker->http != NULL)
		mrcd_http_start(worker->http);
}

static void apply(struct reloading *rl, struct mrcd_conf **conf)
{
	struct mrcd_worker *worker = rl->worker;
	struct mrcd_conf *old = *conf;

	mrcd_plan_hold_back(&rl->out->plan, rl->running, rl->fresh);
	*conf = rl->fresh;
	worker->conf = rl->fresh;
	rails_apply(rl);
	peers_apply(rl);
	worker_apply(rl);
	rl->fresh = NULL;
	mrcd_conf_free(old);
	mrcd_renewal_go_on(worker->renewal);
}

static void log_plan(const char *file, const struct mrcd_reload *out)
{
	const struct mrcd_plan *plan = &out->plan;

	for (uint32_t i = 0; i < plan->item_count; i++) {
		const struct mrcd_plan_item *item = &plan->items[i];

		mrcd_info("reload: %s%s%s %s%s%s%s", item->what, item->name[0] != '\0' ? " " : "",
			  item->name, mrcd_plan_action_name(item->action),
			  item->detail[0] != '\0' ? " (" : "", item->detail,
			  item->detail[0] != '\0' ? ")" : "");
	}
	if (plan->is_log_changed)
		mrcd_notice("%s: read again, the log level is in force", file);
	if (plan->counts[MRCD_PLAN_WAITS] > 0)
		mrcd_warn("%s: read again and in force, but for what waits for a restart: "
			  "%u key%s",
			  file, plan->counts[MRCD_PLAN_WAITS],
			  plan->counts[MRCD_PLAN_WAITS] == 1 ? "" : "s");
	else
		mrcd_notice("%s: read again, all of it is in force", file);
}

/* ---- the whole ---- */

static int on_loss(void *context, const struct mrcd_client_loss *loss)
{
	struct reloading *rl = context;
	char name[2 * MRC_NAME_MAX], detail[96];

	snprintf(name, sizeof(name), "%s (pid %d, uid %d)", loss->client, (int)loss->pid,
		 (int)loss->uid);
	snprintf(detail, sizeof(detail), "%u service%s, %u channel%s", loss->services,
		 loss->services == 1 ? "" : "s", loss->channels, loss->channels == 1 ? "" : "s");
	return mrcd_plan_add(&rl->out->plan, MRCD_PLAN_LOSES, "program", detail, name);
}

static int reload_with(struct reloading *rl, struct mrcd_conf **conf, bool is_trial)
{
	int r = running_make(rl);

	if (r == 0)
		r = mrcd_plan_make(rl->running, rl->fresh, &rl->out->plan);
	if (r == 0)
		r = names_check(rl);
	if (r == 0)
		r = fates_find(rl);
	if (r == 0)
		r = rails_check(rl);
	if (r == 0)
		r = peers_check(rl);
	if (r == 0)
		r = system_check(rl);
	if (r == 0 && rl->worker->clients != NULL)
		r = mrcd_client_side_each_loss(rl->worker->clients, rl->fresh, on_loss, rl);
	if (r != 0 || is_trial)
		return r;
	r = prepare(rl);
	if (r != 0)
		undo(rl);
	else
		apply(rl, conf);
	return r;
}

int mrcd_reload(struct mrcd_worker *worker, struct mrcd_conf **conf, struct mrcd_reading *reading,
		bool is_trial, struct mrcd_reload *reload_out)
{
	struct reloading rl = {
		.worker = worker,
		.fresh = reading->conf,
		.reading = reading,
		.out = reload_out,
	};
	char file[sizeof((*conf)->file)];
	int r = reading->r;

	reading->conf = NULL;
	*reload_out = (struct mrcd_reload){0};
	snprintf(file, sizeof(file), "%s", (*conf)->file);
	snprintf(reload_out->error, sizeof(reload_out->error), "%s", reading->error);
	if (r == 0 && mrcd_renewal_is_moving(worker)) {
		r = -EBUSY;
		snprintf(reload_out->error, sizeof(reload_out->error),
			 "what the reload before has taken away is still being closed; try again");
		mrcd_err("%s", reload_out->error);
	} else if (r == 0) {
		r = reload_with(&rl, conf, is_trial);
	}
	if (r < 0 && reload_out->error[0] == '\0')
		snprintf(reload_out->error, sizeof(reload_out->error), "%s", strerror(-r));
	if (r < 0 && !is_trial)
		mrcd_err("%s: has errors, nothing was changed", file);
	else if (r == 0 && !is_trial)
		log_plan(file, reload_out);
	running_free(rl.running);
	mrcd_conf_free(rl.fresh);
	free(rl.there);
	free(rl.peers);
	free(rl.peers_new);
	return r < 0 && r != -EBUSY ? -EINVAL : r;
}

void mrcd_reload_fini(struct mrcd_reload *reload)
{
	mrcd_plan_fini(&reload->plan);
}
