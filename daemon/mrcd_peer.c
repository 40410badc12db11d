/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_peer_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_about.h"
#include "mrcd_auth.h"
#include "mrcd_client.h"
#include "mrcd_drain.h"
#include "mrcd_timeval.h"

/* A timer this much behind its time was held up: poll the rails once more before judging by it. */
#define MRCD_PEER_LATE_NS MRC_MS
/* So often in a row; a loop that is always behind must still come to judge. */
#define MRCD_PEER_LATE_TURNS_MAX 3U
/* A deadline that is past after its event was handled would be our engine's mistake: it shall not
 * become a busy loop. */
#define MRCD_PEER_TIMER_NS_MIN (20 * MRC_US)
/* Zeros at the end of a fragment that tell that it was cut short: no other end is so long. */
#define MRCD_PEER_CUT_BYTES 16U
/* Of a hold: the index of its rail. */
#define MRCD_HOLD_RAIL_MASK 0xffU

/* ---- the timer ---- */

static void mrcd_peer_arm_at(struct mrcd_peer *peer, uint64_t at_ns)
{
	uint64_t now_ns = peer->worker->now_ns;
	struct timeval span = mrcd_timeval_of(at_ns > now_ns ? at_ns - now_ns : 0);

	peer->armed_ns = at_ns;
	event_add(peer->timer, &span);
}

/*
 * Deadlines mostly move away with every frame. An armed timer is left alone
 * then: it fires once for nothing and is set anew, which is cheaper than a
 * system call per turn.
 */
static void mrcd_peer_arm(struct mrcd_peer *peer)
{
	uint64_t deadline_ns = mrc_conn_deadline_ns(peer->conn);

	if (peer->is_quiet || deadline_ns == MRC_NEVER || deadline_ns >= peer->armed_ns)
		return;
	mrcd_peer_arm_at(peer, MRC_MAX(deadline_ns, peer->worker->now_ns + MRCD_PEER_TIMER_NS_MIN));
}

/*
 * When the loop was held up or the host paused, answers of the peer may lie
 * unread in our sockets, and a path would be blamed for our own sleep. So a
 * late timer is set again for at once: the loop then polls all rails, handles
 * what they have, and comes back here.
 */
static void mrcd_peer_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_peer *peer = context;
	uint64_t now_ns = mrcd_worker_now(peer->worker);
	uint64_t armed_ns = peer->armed_ns;
	struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

	peer->armed_ns = MRC_NEVER;
	if (peer->is_stopped)
		return;
	if (now_ns >= mrc_conn_deadline_ns(peer->conn)) {
		if (now_ns > armed_ns + MRCD_PEER_LATE_NS &&
		    peer->late_turns < MRCD_PEER_LATE_TURNS_MAX) {
			peer->late_turns++;
			mrcd_peer_arm_at(peer, now_ns);
			return;
		}
		mrcd_peer_handle(peer, &ev);
	}
	peer->late_turns = 0;
	mrcd_peer_pump_now(peer);
}

static void mrcd_peer_on_kick(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_peer *peer = context;

	mrcd_worker_now(peer->worker);
	mrcd_peer_pump_now(peer);
}

/* ---- life ---- */

void mrcd_peer_init_path(struct mrcd_peer *peer, uint8_t index, struct mrcd_rail *rail)
{
	struct mrcd_peer_path *path = &peer->paths[index];

	*path = (struct mrcd_peer_path){.rail = rail};
	if (peer->conf != NULL)
		path->mark = mrcd_peer_mark_of(rail, &peer->conf->paths[index]);
	path->state_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 8);
	path->damage_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 2);
	path->connect_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 1);
}

int mrcd_peer_new(struct mrcd_worker *worker, const struct mrcd_conf_peer *conf, const char *name,
		  const char *own_name, struct mrcd_peer **peer_out)
{
	struct mrcd_peer *peer = calloc(1, sizeof(*peer));
	struct mrc_conn_config config;
	int r;

	if (peer == NULL)
		return -ENOMEM;
	peer->worker = worker;
	peer->armed_ns = MRC_NEVER;
	peer->drain_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 6);
	peer->drill_limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 64);
	snprintf(peer->engine_name, sizeof(peer->engine_name), "%s", name);
	snprintf(peer->engine_own_name, sizeof(peer->engine_own_name), "%s", own_name);
	/* The two ends of the loop are one host to everybody but their engines. */
	snprintf(peer->name, sizeof(peer->name), "%s", conf != NULL ? name : worker->conf->host);
	r = -ENOMEM;
	if (conf != NULL) {
		MRC_ASSERT(conf->path_count <= MRC_PATHS_MAX);
		peer->conf = malloc(sizeof(*peer->conf));
		if (peer->conf == NULL)
			goto err_free_peer;
		*peer->conf = *conf;
		peer->path_count = conf->path_count;
		for (uint8_t i = 0; i < conf->path_count; i++) {
			MRC_ASSERT(conf->paths[i].rail_index < worker->rail_count);
			mrcd_peer_init_path(peer, i, &worker->rails[conf->paths[i].rail_index]);
		}
	} else {
		peer->path_count = 1;
		mrcd_peer_init_path(peer, 0, &worker->loop_rail);
	}

	peer->timer = evtimer_new(worker->base, mrcd_peer_on_timer, peer);
	peer->kick = event_new(worker->base, -1, 0, mrcd_peer_on_kick, peer);
	if (peer->timer == NULL || peer->kick == NULL)
		goto err_free_peer;
	peer->health_paths = calloc(peer->path_count, sizeof(*peer->health_paths));
	if (peer->health_paths == NULL)
		goto err_free_peer;
	mrc_health_init(&peer->health, peer->health_paths, peer->path_count);
	mrcd_peer_configure(peer, &config);
	peer->holds_max = config.limits.holds_max;
	r = mrc_conn_new(&config, &peer->conn);
	if (r < 0)
		goto err_free_peer;
	*peer_out = peer;
	return 0;

err_free_peer:
	mrcd_peer_free(peer);
	return r;
}

/* Tell the engine how its rail is. */
void mrcd_peer_path_begin(struct mrcd_peer *peer, uint8_t index)
{
	const struct mrcd_rail *rail = peer->paths[index].rail;
	struct mrc_event_in ev = {
		.kind = MRC_EV_CARRIER,
		.path = {.index = index, .is_up = rail->is_carrier_up},
	};

	mrcd_peer_handle(peer, &ev);
	/* Both are said: a state that was restored may have it from another configuration. */
	ev.kind = rail->is_draining ? MRC_EV_DENY : MRC_EV_ALLOW;
	mrcd_peer_handle(peer, &ev);
	ev.kind = MRC_EV_DRILL;
	ev.path.is_up = rail->is_drilled;
	mrcd_peer_handle(peer, &ev);
}

bool mrcd_peer_is_draining(const struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(peer->conn, &info);
	return info.is_peer_draining;
}

void mrcd_peer_tell_drain(struct mrcd_peer *peer)
{
	const struct mrc_event_in ev = {
		.kind = MRC_EV_HOST_DRAIN,
		.host = {.is_draining = mrcd_drain_is_on(peer->worker)},
	};

	mrcd_peer_handle(peer, &ev);
	mrcd_peer_pump(peer);
}

void mrcd_peer_start(struct mrcd_peer *peer)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail == NULL) {
			mrcd_peer_answer(peer, MRC_EV_DENY, i, 0);
			continue;
		}
		mrcd_peer_guest_in(&peer->paths[i]);
		mrcd_peer_path_begin(peer, i);
	}
	if (peer->conf != NULL)
		mrcd_peer_tell_drain(peer); /* a drain goes on from the daemon before */
	mrcd_peer_pump_now(peer);
}

/* The link is no longer the path's; its kind frees it, now or when the fence holds. */
void mrcd_peer_fence_link(struct mrcd_peer_path *path)
{
	struct mrcd_link *link = path->link;

	path->link = NULL;
	path->fencing_epoch = link->path_epoch;
	link->is_dirty = false;
	link->ops->fence(link);
}

void mrcd_peer_stop(struct mrcd_peer *peer)
{
	if (peer->is_stopped)
		return;
	peer->is_stopped = true;
	if (peer->is_kicked)
		TAILQ_REMOVE(&peer->worker->kicked, peer, kicked_entry);
	peer->is_kicked = false;
	if (peer->timer != NULL)
		event_del(peer->timer);
	if (peer->kick != NULL)
		event_del(peer->kick);
	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrcd_rail *rail = peer->paths[i].rail;

		if (peer->paths[i].link != NULL)
			mrcd_peer_fence_link(&peer->paths[i]);
		if (rail != NULL && rail->kind_data != NULL && rail->ops->forget != NULL)
			rail->ops->forget(rail, peer);
	}
}

void mrcd_peer_free(struct mrcd_peer *peer)
{
	if (peer == NULL)
		return;
	mrcd_peer_stop(peer);
	for (uint8_t i = 0; i < peer->path_count; i++)
		mrcd_peer_guest_out(&peer->paths[i]);
	mrc_conn_free(peer->conn);
	free(peer->health_paths);
	if (peer->timer != NULL)
		event_free(peer->timer);
	if (peer->kick != NULL)
		event_free(peer->kick);
	if (peer->conf != NULL)
		OPENSSL_cleanse(peer->conf->keys, sizeof(peer->conf->keys));
	free(peer->conf);
	free(peer);
}

int mrcd_peer_handle(struct mrcd_peer *peer, const struct mrc_event_in *ev)
{
	return mrc_conn_handle(peer->conn, ev, peer->worker->now_ns);
}

/* ---- the pump ---- */

void mrcd_peer_answer(struct mrcd_peer *peer, enum mrc_event_kind kind, uint8_t index,
		      uint32_t path_epoch)
{
	struct mrc_event_in ev = {
		.kind = kind,
		.path = {.index = index, .path_epoch = path_epoch},
	};

	mrcd_peer_handle(peer, &ev);
}

static void mrcd_peer_post(struct mrcd_peer *peer, const struct mrc_act_post *post)
{
	struct mrcd_link *link = peer->paths[post->index].link;

	/* The link may have died under an earlier frame of this turn; its PATH_DOWN is with the
	 * engine, which sends elsewhere what was not acknowledged. */
	if (link == NULL || link->path_epoch != post->path_epoch)
		return;
	link->is_dirty = true;
	link->ops->post(link, post);
}

static void mrcd_peer_fence(struct mrcd_peer *peer, const struct mrc_act_path *act)
{
	struct mrcd_peer_path *path = &peer->paths[act->index];

	if (path->link != NULL && path->link->path_epoch == act->path_epoch) {
		path->link->is_mute = act->reason == MRC_REASON_CARRIER ||
				      act->reason == MRC_REASON_PEER_PORT ||
				      act->reason == MRC_REASON_PEER_FENCE;
		mrcd_peer_fence_link(path);
	} else if (path->fencing_epoch != act->path_epoch) {
		mrcd_peer_answer(peer, MRC_EV_FENCED, act->index, act->path_epoch); /* long gone */
	}
}

static void mrcd_peer_strip(struct mrcd_peer *peer, uint8_t index, uint32_t path_epoch)
{
	struct mrcd_link *link = peer->paths[index].link;

	if (link != NULL && link->path_epoch == path_epoch)
		link->ops->strip(link);
}

static void mrcd_peer_ask_carrier(struct mrcd_peer *peer, uint8_t index)
{
	struct mrcd_rail *rail = peer->paths[index].rail;
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER, .path = {.index = index}};
	bool is_up;

	if (rail == NULL)
		return;
	is_up = rail->ops->has_carrier(rail);
	ev.path.is_up = is_up;
	if (is_up != rail->is_carrier_up)
		mrcd_rail_on_carrier(rail, is_up); /* tells this peer as well */
	else
		mrcd_peer_handle(peer, &ev);
}

/*
 * An attempt begun without carrier would sit out TCP's timers when the cable is
 * back. It is asked each time, so an event that was missed costs one backoff.
 */
static void mrcd_peer_connect(struct mrcd_peer *peer, uint8_t index)
{
	struct mrcd_rail *rail = peer->paths[index].rail;
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_FAILED,
		.path = {.index = index, .reason = MRC_REASON_CARRIER},
	};

	if (peer->is_quiet)
		return; /* the next daemon connects */
	if (rail != NULL && !rail->is_leaving && !peer->paths[index].is_waiting &&
	    rail->ops->has_carrier(rail))
		rail->ops->connect(rail, peer, index);
	else
		mrcd_peer_handle(peer, &ev);
}

/* The rail that holds these bytes. Its path they came by may be down since. */
static struct mrcd_rail *mrcd_peer_hold_rail(const struct mrcd_peer *peer, uint64_t hold)
{
	uint32_t index = hold & MRCD_HOLD_RAIL_MASK;

	MRC_ASSERT(index < peer->worker->rail_count);
	return &peer->worker->rails[index];
}

/* addr is what mrc_conn_place() would say: of an eager message, relative to its landing ring. */
static void mrcd_peer_copy(struct mrcd_peer *peer, const struct mrc_act_msg *act)
{
	const struct mrc_place place = {
		.is_eager = act->is_eager,
		.channel_cookie = act->channel_cookie,
		.addr = act->addr,
	};
	struct mrcd_rail *rail = mrcd_peer_hold_rail(peer, act->hold);
	uint32_t len = 0;
	const uint8_t *data = rail->ops->hold_data(rail, act->hold, &len);
	uint8_t *memory = mrcd_landing_memory(peer->worker, &place, act->len);

	/* The engine knows the hold by the fragment that came with it. */
	MRC_ASSERT(act->hold_offset <= len);
	MRC_ASSERT(act->len <= len - act->hold_offset);
	/* NULL: its client has died since, so nobody will read these bytes; the hold is freed as ever. */
	if (memory != NULL)
		memcpy(memory, data + act->hold_offset, act->len);
}

static void mrcd_peer_free_hold(struct mrcd_peer *peer, uint64_t hold)
{
	struct mrcd_rail *rail = mrcd_peer_hold_rail(peer, hold);

	MRC_ASSERT(rail->hold_count > 0);
	rail->hold_count--;
	rail->ops->hold_free(rail, hold);
}

static void mrcd_peer_perform(struct mrcd_peer *peer, const struct mrc_action *act)
{
	switch (act->kind) {
	case MRC_ACT_POST:
		mrcd_peer_post(peer, &act->post);
		break;
	case MRC_ACT_CONNECT:
		mrcd_peer_connect(peer, act->path.index);
		break;
	case MRC_ACT_FENCE:
		mrcd_peer_fence(peer, &act->path);
		break;
	case MRC_ACT_STRIP:
		mrcd_peer_strip(peer, act->path.index, act->path.path_epoch);
		break;
	case MRC_ACT_CARRIER_ASK:
		mrcd_peer_ask_carrier(peer, act->path.index);
		break;
	case MRC_ACT_PATH_STATE:
		if (!peer->is_quiet) /* that all go when we end is no news */
			mrcd_peer_note_path(peer, &act->path);
		break;
	case MRC_ACT_CONN_RESET:
		mrcd_peer_note_reset(peer);
		break;
	case MRC_ACT_PEER_DRAIN:
		mrcd_peer_note_drain(peer, act->host.is_draining);
		if (peer->worker->clients != NULL)
			mrcd_client_side_peer_drain(peer->worker->clients, peer);
		break;
	case MRC_ACT_PEER_DRILL:
		mrcd_peer_on_drill(peer, act->host.paths_drilled);
		break;
	case MRC_ACT_COPY:
		mrcd_peer_copy(peer, &act->msg);
		break;
	case MRC_ACT_HOLD_FREE:
		MRC_ASSERT(peer->hold_count > 0);
		peer->hold_count--;
		mrcd_peer_free_hold(peer, act->msg.hold);
		break;
	case MRC_ACT_CH_INCOMING:
	case MRC_ACT_CH_UP:
	case MRC_ACT_CH_DOWN:
	case MRC_ACT_CH_ROOM:
	case MRC_ACT_CH_FREE:
	case MRC_ACT_LANDING_WANT:
	case MRC_ACT_LANDING_FREE:
	case MRC_ACT_DELIVER:
	case MRC_ACT_GAP:
	case MRC_ACT_DONE:
	case MRC_ACT_LATE:
	case MRC_ACT_TRACED:
		mrcd_client_side_perform(peer->worker->clients, peer, act);
		break;
	}
}

/* A link may die in its flush; whatever happens there, the next one is looked up anew. */
static void mrcd_peer_flush(struct mrcd_peer *peer)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrcd_link *link = peer->paths[i].link;

		if (link == NULL || !link->is_dirty)
			continue;
		link->is_dirty = false;
		link->ops->flush(link);
	}
}

void mrcd_peer_pump_now(struct mrcd_peer *peer)
{
	struct mrc_action act;

	if (peer->is_stopped)
		return;
	/* Performing an action can lead back here (a link dies in its flush, the loop rail hands
	 * frames over at once). The outer call then goes round once more. */
	if (peer->is_pumping) {
		peer->is_pump_wanted = true;
		return;
	}
	peer->is_pumping = true;
	do {
		peer->is_pump_wanted = false;
		while (mrc_conn_next_action(peer->conn, &act, peer->worker->now_ns))
			mrcd_peer_perform(peer, &act);
		mrcd_peer_flush(peer);
	} while (peer->is_pump_wanted);
	if (peer->worker->clients != NULL)
		mrcd_client_side_flush(peer->worker->clients);
	peer->is_pumping = false;
	mrcd_peer_note_reach(peer);
	mrcd_peer_arm(peer);
}

/*
 * Not at once, but when all that the last poll found was handled: rails that
 * became readable together are answered together. That is one ACK and not one
 * for each rail; and after a pause of this host no path's answer leaves ahead
 * of its siblings', which would make them look dead to the peer.
 */
void mrcd_peer_pump(struct mrcd_peer *peer)
{
	if (peer->is_stopped)
		return;
	if (peer->is_pumping) {
		peer->is_pump_wanted = true;
	} else if (!peer->worker->is_in_look) {
		event_active(peer->kick, 0, 0);
	} else if (!peer->is_kicked) {
		peer->is_kicked = true;
		TAILQ_INSERT_TAIL(&peer->worker->kicked, peer, kicked_entry);
	}
}

void mrcd_peer_pump_kicked(struct mrcd_worker *worker)
{
	struct mrcd_peer *last = TAILQ_LAST(&worker->kicked, mrcd_peer_list), *peer = NULL;

	while (last != NULL && peer != last && (peer = TAILQ_FIRST(&worker->kicked)) != NULL) {
		TAILQ_REMOVE(&worker->kicked, peer, kicked_entry);
		peer->is_kicked = false;
		mrcd_peer_pump_now(peer);
	}
}

/* ---- calls from a kind of rail ---- */

/* Are these two texts the same numeric address? *is_numeric_out: is the first one numeric at all? */
static bool mrcd_peer_same_address(const char *a, const char *b, bool *is_numeric_out)
{
	struct in6_addr a6, b6;
	struct in_addr a4, b4;

	*is_numeric_out = true;
	if (inet_pton(AF_INET, a, &a4) == 1)
		return inet_pton(AF_INET, b, &b4) == 1 && a4.s_addr == b4.s_addr;
	if (inet_pton(AF_INET6, a, &a6) == 1)
		return inet_pton(AF_INET6, b, &b6) == 1 && memcmp(&a6, &b6, sizeof(a6)) == 0;
	*is_numeric_out = false;
	return strcmp(a, b) == 0;
}

/*
 * Which of this peer's paths comes in over `rail` from `source`? Addresses
 * decide, since the two hosts may list their paths in different orders; the
 * initiator's number helps only among paths that look alike. A path whose
 * address is a name matches when no numeric one does, also none that may not
 * come up now: what is that one's is nobody else's.
 */
static int mrcd_peer_match_path(const struct mrcd_peer *peer, const struct mrcd_rail *rail,
				const char *source, uint16_t path_id, uint8_t *index_out,
				const char **why_out)
{
	int numeric = -1, numeric_count = 0, named = -1, named_count = 0;
	bool is_numeric, is_rail_listed = false, is_cut = false;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != rail || rail->is_leaving)
			continue;
		if (peer->paths[i].is_cut) {
			is_cut = mrcd_peer_same_address(peer->conf->paths[i].address, source,
							&is_numeric) ||
				 is_cut;
			continue;
		}
		is_rail_listed = true;
		if (mrcd_peer_same_address(peer->conf->paths[i].address, source, &is_numeric)) {
			numeric_count++;
			if (numeric < 0 || i == path_id)
				numeric = i;
		} else if (!is_numeric) {
			named_count++;
			if (named < 0 || i == path_id)
				named = i;
		}
	}
	if (numeric < 0 && is_cut) {
		*why_out = "the path of this host is being taken away";
		return -ENOENT;
	}
	if (numeric < 0) {
		numeric = named;
		numeric_count = named_count;
	}
	if (numeric < 0) {
		*why_out = is_rail_listed ? "no path of this host and rail has that address"
					  : "no path of this host is listed for this rail";
		return -ENOENT;
	}
	if (numeric_count > 1 && numeric != path_id) {
		*why_out = "several paths of this host look alike and the two hosts list them in "
			   "different orders";
		return -ENOENT;
	}
	if (peer->paths[numeric].is_waiting) {
		*why_out = "the rail has nothing left for this path until it is opened anew";
		return -ENOENT;
	}
	*index_out = (uint8_t)numeric;
	return 0;
}

struct mrcd_peer *mrcd_peer_match(struct mrcd_rail *rail, const struct mrc_hello *hello,
				  const char *source, uint8_t *path_index_out, const char **why_out)
{
	struct mrcd_worker *worker = rail->worker;

	if (strcmp(hello->to_host, worker->conf->host) != 0) {
		*why_out = "looking for another host";
		return NULL;
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		struct mrcd_peer *peer = worker->peers[i];

		if (strcmp(peer->name, hello->host) != 0 || peer->is_going)
			continue;
		if (mrc_conn_is_initiator(peer->conn)) {
			*why_out = "between these two hosts this one opens the connections";
			return NULL;
		}
		if (mrcd_peer_match_path(peer, rail, source, hello->path_id, path_index_out,
					 why_out) < 0)
			return NULL;
		return peer;
	}
	*why_out = "unknown host";
	return NULL;
}

struct mrc_conn *mrcd_peer_conn(struct mrcd_peer *peer)
{
	return peer->conn;
}

uint8_t mrcd_peer_path_count(const struct mrcd_peer *peer)
{
	return peer->path_count;
}

struct mrcd_link *mrcd_peer_path_link(const struct mrcd_peer *peer, uint8_t path_index)
{
	return path_index < peer->path_count ? peer->paths[path_index].link : NULL;
}

const char *mrcd_peer_path_address(const struct mrcd_peer *peer, uint8_t path_index,
				   uint16_t *port_out)
{
	MRC_ASSERT(path_index < peer->path_count);
	if (peer->conf == NULL) {
		*port_out = 0;
		return "";
	}
	*port_out = peer->conf->paths[path_index].port;
	return peer->conf->paths[path_index].address;
}

struct mrcd_stall_meter *mrcd_peer_stalls(struct mrcd_peer *peer)
{
	return &peer->stalls;
}

const char *mrcd_peer_name(const struct mrcd_peer *peer)
{
	return peer->name;
}

const struct mrcd_key *mrcd_peer_keys(const struct mrcd_peer *peer, uint32_t *count_out)
{
	*count_out = peer->conf != NULL ? peer->conf->key_count : 0;
	return peer->conf != NULL ? peer->conf->keys : NULL;
}

int mrcd_link_on_up(struct mrcd_link *link, const struct mrc_auth *auth, uint16_t path_id,
		    uint64_t peer_boot_id, bool is_direct_capable)
{
	struct mrcd_peer *peer = link->peer;
	struct mrcd_peer_path *path = &peer->paths[link->path_index];
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_UP,
		.path = {.index = link->path_index,
			 .is_direct_capable = is_direct_capable,
			 .path_epoch = auth->path_epoch,
			 .conn_epoch = auth->conn_epoch,
			 .path_id = path_id,
			 .peer_boot_id = peer_boot_id,
			 .receive_share = link->receive_share,
			 .receive_bytes = link->receive_bytes,
			 .version = auth->version,
			 .features = auth->features},
	};
	int r;

	MRC_ASSERT(link->path_index < peer->path_count);
	MRC_ASSERT(path->rail == link->rail);
	if (peer->is_stopped || peer->is_quiet)
		return -ESTALE;
	r = mrc_conn_join(peer->conn, link->path_index, auth, peer_boot_id);
	if (r < 0)
		return r;
	if (path->link != NULL)
		mrcd_peer_fence_link(path);
	/* The engine takes the older epoch for fenced from here on, so it has to be. */
	if (path->fencing_epoch != 0)
		return -EBUSY;
	link->conn_epoch = auth->conn_epoch;
	link->path_epoch = auth->path_epoch;
	link->is_dirty = false;
	r = mrcd_peer_handle(peer, &ev);
	mrcd_peer_pump(peer);
	if (r < 0)
		return -ESTALE;
	if (peer->conf != NULL)
		mrcd_about_tell(peer, link->path_index, path->rail);
	path->link = link;
	path->heard_ns = peer->worker->now_ns;
	return 0;
}

void mrcd_peer_on_connect_failed(struct mrcd_peer *peer, uint8_t path_index, const char *why)
{
	struct mrcd_peer_path *path = &peer->paths[path_index];
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_FAILED,
		.path = {.index = path_index, .reason = MRC_REASON_CONNECT},
	};
	uint64_t suppressed;
	uint16_t port;
	const char *address = mrcd_peer_path_address(peer, path_index, &port);

	if (peer->is_stopped)
		return;
	if (mrcd_log_allowed(&path->connect_limit, peer->worker->now_ns, &suppressed)) {
		if (suppressed > 0)
			mrcd_info("rail %s to %s: cannot connect to %s port %u: %s; %llu attempts "
				  "since this was last said, trying on",
				  path->rail->conf->name, peer->name, address, port, why,
				  (unsigned long long)suppressed + 1);
		else
			mrcd_info("rail %s to %s: cannot connect to %s port %u: %s; trying on",
				  path->rail->conf->name, peer->name, address, port, why);
	}
	mrcd_peer_handle(peer, &ev);
	mrcd_peer_pump(peer);
}

static void mrcd_peer_log_damage(const struct mrcd_peer *peer, struct mrcd_peer_path *path,
				 const struct mrc_wire_hdr *hdr)
{
	uint64_t suppressed;

	if (hdr->type != MRC_WIRE_FRAG ||
	    !mrcd_log_allowed(&path->damage_limit, peer->worker->now_ns, &suppressed))
		return;
	mrcd_warn("rail %s to %s: %llu fragment%s came damaged since the last such line, the last "
		  "of channel %u, message %llu, offset %llu",
		  path->rail->conf->name, peer->name, (unsigned long long)suppressed + 1,
		  suppressed == 0 ? "" : "s", hdr->channel, (unsigned long long)hdr->msg,
		  (unsigned long long)hdr->offset);
}

/*
 * Its checksum is wrong. One that was half written when its bytes could no longer
 * be read is finished with zeros (MRC_ACT_STRIP): its path was suspected, or its
 * client is gone, and nothing was damaged. Clients' zeros look the same, so this
 * is asked for the path's health only.
 */
static bool mrcd_peer_is_cut(const struct mrcd_peer *peer, const struct mrc_wire_hdr *hdr)
{
	static const uint8_t zeros[MRCD_PEER_CUT_BYTES];
	struct mrc_place place;
	const uint8_t *memory;

	if (hdr->type != MRC_WIRE_FRAG || hdr->body_len < sizeof(zeros) ||
	    !mrc_conn_place_whole(peer->conn, hdr, &place))
		return false;
	memory = mrcd_landing_memory(peer->worker, &place, hdr->body_len);
	return memory != NULL &&
	       memcmp(memory + hdr->body_len - sizeof(zeros), zeros, sizeof(zeros)) == 0;
}

int mrcd_link_on_frame(struct mrcd_link *link, const struct mrc_wire_hdr *hdr, const uint8_t *body,
		       bool is_body_good, bool is_placed, uint64_t hold)
{
	struct mrcd_peer *peer = link->peer;
	struct mrcd_peer_path *path = &peer->paths[link->path_index];
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.index = link->path_index,
			    .is_body_good = is_body_good,
			    .is_placed = is_placed,
			    .path_epoch = link->path_epoch,
			    .hdr = hdr,
			    .body = body,
			    .hold = hold},
	};

	link->rail->hold_count += hold != 0;
	/* Of a link being fenced nothing is taken in any more; the engine will not hear of the hold. */
	if (path->link != link) {
		if (hold != 0)
			mrcd_peer_free_hold(peer, hold);
		return 0;
	}
	if (hdr->type != MRC_WIRE_PROBE && hdr->type != MRC_WIRE_PROBE_ACK)
		mrcd_worker_worked(peer->worker);
	/* One more than the engine was promised counts as thrown away: it asks for it again. */
	if (hold != 0 && peer->hold_count >= peer->holds_max) {
		mrcd_peer_free_hold(peer, hold);
		ev.arrived.hold = 0;
	}
	peer->hold_count += ev.arrived.hold != 0;
	path->heard_ns = peer->worker->now_ns;
	if (!is_body_good) {
		path->cuts += mrcd_peer_is_cut(peer, hdr);
		mrcd_peer_log_damage(peer, path, hdr);
	}
	if (peer->is_pumping)
		peer->is_pump_wanted = true;
	if (mrcd_peer_handle(peer, &ev) != -EPROTO)
		return 0;
	mrcd_warn("rail %s to %s: %s frame breaks the protocol: %s (channel %u, message %llu, "
		  "offset %llu, argument %llu, %u bytes)",
		  path->rail->conf->name, peer->name, mrc_wire_type_name(hdr->type),
		  mrc_conn_breach(peer->conn), hdr->channel, (unsigned long long)hdr->msg,
		  (unsigned long long)hdr->offset, (unsigned long long)hdr->arg, hdr->body_len);
	return -EPROTO;
}

void mrcd_link_on_sent(struct mrcd_link *link, uint64_t count)
{
	struct mrcd_peer *peer = link->peer;
	struct mrc_event_in ev = {
		.kind = MRC_EV_SENT,
		.path = {.index = link->path_index, .path_epoch = link->path_epoch, .count = count},
	};

	if (peer->is_pumping)
		peer->is_pump_wanted = true;
	mrcd_peer_handle(peer, &ev);
}

void mrcd_link_on_down(struct mrcd_link *link, enum mrc_path_reason reason, const char *why)
{
	struct mrcd_peer *peer = link->peer;
	struct mrcd_peer_path *path = &peer->paths[link->path_index];
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_DOWN,
		.path = {.index = link->path_index,
			 .path_epoch = link->path_epoch,
			 .reason = reason},
	};

	if (path->link == link)
		path->link = NULL;
	if (path->fencing_epoch == link->path_epoch)
		path->fencing_epoch = 0;
	if (peer->conf != NULL)
		mrcd_debug("rail %s to %s: link of epoch %u is down: %s", path->rail->conf->name,
			   peer->name, link->path_epoch, why);
	/* The engine never calls out, so it can be told in the middle of a pump; and from here on
	 * no pointer to the link is left with us. */
	mrcd_peer_handle(peer, &ev);
	mrcd_peer_pump(peer);
}

void mrcd_link_on_fenced(struct mrcd_link *link)
{
	struct mrcd_peer *peer = link->peer;
	struct mrcd_peer_path *path = &peer->paths[link->path_index];

	if (path->link == link)
		path->link = NULL;
	if (path->fencing_epoch == link->path_epoch)
		path->fencing_epoch = 0;
	mrcd_peer_answer(peer, MRC_EV_FENCED, link->path_index, link->path_epoch);
	mrcd_peer_pump(peer);
}

/* ---- rails ---- */

void mrcd_rail_on_interface(struct mrcd_rail *rail)
{
	mrcd_about_tell_all(rail);
}

void mrcd_rail_on_carrier(struct mrcd_rail *rail, bool is_up)
{
	struct mrcd_worker *worker = rail->worker;
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER, .path = {.is_up = is_up}};

	if (rail->is_carrier_up != is_up) {
		rail->is_carrier_up = is_up;
		mrcd_rail_note_carrier(rail, is_up);
	}
	for (uint32_t p = 0; p < worker->peer_count; p++) {
		for (uint8_t i = 0; i < worker->peers[p]->path_count; i++) {
			if (worker->peers[p]->paths[i].rail != rail)
				continue;
			ev.path.index = i;
			mrcd_peer_handle(worker->peers[p], &ev);
		}
		mrcd_peer_pump(worker->peers[p]);
	}
}

bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key)
{
	struct mrc_event_in ev = {.kind = MRC_EV_KEY, .key = *key};
	bool is_told = false;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != rail)
			continue;
		ev.key.index = i;
		is_told |= mrcd_peer_handle(peer, &ev) >= 0;
	}
	return is_told;
}

void mrcd_peer_deny_rail(struct mrcd_peer *peer, uint32_t rail_index, bool is_denied)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail == &peer->worker->rails[rail_index] &&
		    !peer->paths[i].is_cut && !peer->paths[i].rail->is_leaving)
			mrcd_peer_answer(peer, is_denied ? MRC_EV_DENY : MRC_EV_ALLOW, i, 0);
	}
	mrcd_peer_pump(peer);
}

struct mrcd_rail *mrcd_peer_path_rail(const struct mrcd_peer *peer, uint8_t path_index)
{
	MRC_ASSERT(path_index < peer->path_count);
	return peer->paths[path_index].rail;
}

uint32_t mrcd_peer_rail_paths(const struct mrcd_peer *peer, uint32_t rail_index, uint32_t *good_out)
{
	struct mrc_path_info info;
	uint32_t count = 0, good = 0;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != &peer->worker->rails[rail_index])
			continue;
		count++;
		mrc_conn_path_info(peer->conn, i, &info);
		if (info.state == MRC_PATH_GOOD)
			good++;
	}
	*good_out = good;
	return count;
}

bool mrcd_peer_needs_rail(const struct mrcd_peer *peer, uint32_t rail_index)
{
	uint32_t good;

	mrcd_peer_rail_paths(peer, rail_index, &good);
	return good > 0 && good == mrcd_peer_paths_good(peer);
}
