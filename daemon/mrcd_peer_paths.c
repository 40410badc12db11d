/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_peer_paths - other paths than a peer began with: added, taken away, put where they were */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_crc.h"
#include "mrcd_peer_impl.h"

/* ---- which is which ---- */

uint32_t mrcd_peer_mark_of(const struct mrcd_rail *rail, const struct mrcd_conf_path *path)
{
	const char *name = rail->given.name;
	uint32_t mark;

	mark = mrcd_crc32c(0, name, (uint32_t)strlen(name) + 1);
	mark = mrcd_crc32c(mark, path->address, (uint32_t)strlen(path->address) + 1);
	mark = mrcd_crc32c(mark, &path->port, sizeof(path->port));
	return MRC_MAX(mark, MRCD_PATH_MARK_ABSENT + 1);
}

uint32_t mrcd_peer_path_mark(const struct mrcd_peer *peer, uint8_t path_index)
{
	if (peer->conf == NULL || path_index >= peer->path_count)
		return 0;
	return peer->paths[path_index].rail != NULL ? peer->paths[path_index].mark
						    : MRCD_PATH_MARK_ABSENT;
}

int mrcd_peer_path_find(const struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrcd_conf_path *conf)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		const struct mrcd_conf_path *path = &peer->conf->paths[i];

		if (peer->paths[i].rail == rail && path->port == conf->port &&
		    strcmp(path->address, conf->address) == 0)
			return i;
	}
	return -ENOENT;
}

void mrcd_peer_listed(const struct mrcd_peer *peer, struct mrcd_conf_peer *conf_out)
{
	*conf_out = *peer->conf;
	conf_out->path_count = 0;
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != NULL && !peer->paths[i].is_going)
			conf_out->paths[conf_out->path_count++] = peer->conf->paths[i];
	}
}

/* ---- guests ---- */

void mrcd_peer_guest_in(struct mrcd_peer_path *path)
{
	struct mrcd_rail *rail = path->rail;
	uint32_t shares = rail->ops->shares != NULL ? rail->ops->shares(rail) : 0;

	if (path->is_guest || shares == 0 || rail->path_count <= shares)
		return;
	path->is_guest = true;
	path->is_waiting = rail->guest_count >= rail->guests_max;
	rail->guest_count++;
}

void mrcd_peer_guest_out(struct mrcd_peer_path *path)
{
	if (!path->is_guest)
		return;
	MRC_ASSERT(path->rail->guest_count > 0);
	path->rail->guest_count--;
	path->is_guest = path->is_waiting = false;
}

void mrcd_rail_guests_out(struct mrcd_rail *rail)
{
	for (uint32_t i = 0; rail->guest_count > 0 && i < rail->worker->peer_count; i++) {
		struct mrcd_peer *peer = rail->worker->peers[i];

		for (uint8_t p = 0; p < peer->path_count; p++) {
			if (peer->paths[p].rail == rail)
				mrcd_peer_guest_out(&peer->paths[p]);
		}
	}
}

bool mrcd_peer_path_is_guest(const struct mrcd_peer *peer, uint8_t path_index)
{
	MRC_ASSERT(path_index < peer->path_count);
	return peer->paths[path_index].is_guest;
}

/* ---- added ---- */

int mrcd_peer_reserve(struct mrcd_peer *peer, uint8_t count)
{
	uint32_t room = MRC_PATHS_MAX - peer->path_count, slots = peer->path_count + count;
	struct mrc_health_path *paths;

	for (uint8_t i = 0; i < peer->path_count; i++)
		room += peer->paths[i].rail == NULL;
	if (count > room)
		return -ENOSPC;
	slots = MRC_MIN(slots, (uint32_t)MRC_PATHS_MAX);
	paths = realloc(peer->health_paths, slots * sizeof(*paths));
	if (paths == NULL)
		return -ENOMEM;
	peer->health_paths = paths;
	peer->health.paths = paths;
	return 0;
}

/* The one that such a path had before; else one that nobody had, so that numbers are not given on. */
static uint8_t slot_for(const struct mrcd_peer *peer, uint32_t mark)
{
	uint8_t slot = peer->path_count;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != NULL)
			continue;
		if (peer->paths[i].mark == mark)
			return i;
		if (slot == MRC_PATHS_MAX)
			slot = i;
	}
	MRC_ASSERT(slot < MRC_PATHS_MAX); /* mrcd_peer_reserve() has said so */
	return slot;
}

static void tell_keys(struct mrcd_peer *peer)
{
	const struct mrcd_region *region;

	LIST_FOREACH(region, &peer->worker->regions, entry)
	{
		if (region->is_landing && !region->is_ending)
			mrcd_region_tell_keys(region, peer);
	}
}

void mrcd_peer_path_add(struct mrcd_peer *peer, const struct mrcd_conf_path *conf,
			struct mrcd_rail *rail)
{
	uint8_t index = slot_for(peer, mrcd_peer_mark_of(rail, conf));
	int r;

	peer->conf->paths[index] = *conf;
	peer->conf->paths[index].rail_index = rail->index;
	mrcd_peer_init_path(peer, index, rail);
	peer->path_count = MRC_MAX(peer->path_count, (uint8_t)(index + 1));
	peer->conf->path_count = peer->path_count;
	mrc_health_put(&peer->health, peer->health_paths, index);
	r = mrc_conn_path_add(peer->conn, index, peer->worker->now_ns);
	MRC_ASSERT(r == 0);
	mrcd_peer_guest_in(&peer->paths[index]);
	mrcd_peer_path_begin(peer, index);
	tell_keys(peer);
}

/* ---- changed ---- */

void mrcd_peer_set_keys(struct mrcd_peer *peer, const struct mrcd_key *keys, uint32_t key_count)
{
	MRC_ASSERT(key_count <= MRCD_KEYS_MAX);
	/* Those that are no longer wanted are not left behind. */
	OPENSSL_cleanse(peer->conf->keys, sizeof(peer->conf->keys));
	memcpy(peer->conf->keys, keys, key_count * sizeof(*keys));
	peer->conf->key_count = key_count;
}

void mrcd_peer_set_timers(struct mrcd_peer *peer)
{
	struct mrc_limits limits = peer->worker->conf->limits;

	mrc_limits_complete(&limits);
	mrc_conn_set_timers(peer->conn, &limits);
	mrcd_peer_pump(peer);
}

/* ---- taken away ---- */

void mrcd_peer_path_doom(struct mrcd_peer *peer, uint8_t index, bool is_going)
{
	struct mrcd_peer_path *path = &peer->paths[index];

	path->is_going = is_going || path->is_cut;
}

static enum mrc_path_state state_of(const struct mrcd_peer *peer, uint8_t index)
{
	struct mrc_path_info info;

	mrc_conn_path_info(peer->conn, index, &info);
	return info.state;
}

bool mrcd_peer_has_else(const struct mrcd_peer *peer, const struct mrcd_rail *rail)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		const struct mrcd_peer_path *path = &peer->paths[i];

		if (path->rail != NULL && path->rail != rail && !path->is_going &&
		    !path->rail->is_leaving && state_of(peer, i) == MRC_PATH_GOOD)
			return true;
	}
	return false;
}

/* Attempts are dropped for all of the peer's paths over the rail; those that stay try again. */
static void attempts_end(struct mrcd_peer *peer, struct mrcd_rail *rail)
{
	if (rail->ops->forget != NULL && rail->kind_data != NULL)
		rail->ops->forget(rail, peer);
	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrc_event_in ev = {
			.kind = MRC_EV_PATH_FAILED,
			.path = {.index = i, .reason = MRC_REASON_CONNECT},
		};

		if (peer->paths[i].rail == rail)
			mrcd_peer_handle(peer, &ev);
	}
}

static bool path_is_over(const struct mrcd_peer *peer, uint8_t index)
{
	struct mrc_path_info info;

	mrc_conn_path_info(peer->conn, index, &info);
	return peer->paths[index].link == NULL && peer->paths[index].fencing_epoch == 0 &&
	       !info.is_connected;
}

static void path_end(struct mrcd_peer *peer, uint8_t index)
{
	struct mrcd_peer_path *path = &peer->paths[index];
	uint32_t mark = path->mark;
	int r;

	attempts_end(peer, path->rail);
	r = mrc_conn_path_remove(peer->conn, index);
	MRC_ASSERT(r == 0);
	mrcd_peer_guest_out(path);
	*path = (struct mrcd_peer_path){.mark = mark};
}

bool mrcd_peer_tend(struct mrcd_peer *peer)
{
	bool is_done = true;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrcd_peer_path *path = &peer->paths[i];

		if (path->rail == NULL || !path->is_going || path->is_cut)
			continue;
		if (state_of(peer, i) == MRC_PATH_GOOD && !mrcd_peer_has_else(peer, NULL))
			continue;
		path->is_cut = true;
		mrcd_peer_answer(peer, MRC_EV_DENY, i, 0);
	}
	mrcd_peer_pump_now(peer);
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].is_cut && path_is_over(peer, i))
			path_end(peer, i);
		is_done = is_done && !peer->paths[i].is_going;
	}
	return is_done;
}

void mrcd_peer_leave_rail(struct mrcd_peer *peer, struct mrcd_rail *rail, bool is_leaving)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].rail != rail || peer->paths[i].is_cut)
			continue;
		if (is_leaving) {
			mrcd_peer_answer(peer, MRC_EV_DENY, i, 0);
			continue;
		}
		mrcd_peer_guest_out(&peer->paths[i]);
		mrcd_peer_path_begin(peer, i);
	}
	mrcd_peer_pump_now(peer);
}

bool mrcd_peer_has_left(struct mrcd_peer *peer, struct mrcd_rail *rail)
{
	bool has_left = true;

	mrcd_peer_pump_now(peer);
	attempts_end(peer, rail);
	for (uint8_t i = 0; i < peer->path_count; i++)
		has_left = has_left && (peer->paths[i].rail != rail || path_is_over(peer, i));
	return has_left;
}

void mrcd_peer_doom(struct mrcd_peer *peer)
{
	peer->is_going = true;
	for (uint8_t i = 0; i < peer->path_count; i++)
		peer->paths[i].is_going = peer->paths[i].rail != NULL;
	mrcd_peer_quiesce(peer);
}

bool mrcd_peer_is_going(const struct mrcd_peer *peer)
{
	return peer->is_going;
}

uint32_t mrcd_peer_paths_going(const struct mrcd_peer *peer)
{
	uint32_t count = 0;

	for (uint8_t i = 0; i < peer->path_count; i++)
		count += peer->paths[i].is_going;
	return count;
}

bool mrcd_peer_is_cutting(const struct mrcd_peer *peer)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].is_cut)
			return true;
	}
	return peer->is_going;
}

bool mrcd_peer_is_over(struct mrcd_peer *peer)
{
	return mrcd_peer_settle(peer) && peer->hold_count == 0;
}

/* ---- as they were before a restart ---- */

/* The place of the path with this mark among those not yet placed; -1: there is none. */
static int marked(const struct mrcd_peer *peer, const bool is_placed[MRC_PATHS_MAX], uint32_t mark)
{
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (!is_placed[i] && peer->paths[i].mark == mark)
			return i;
	}
	return -1;
}

int mrcd_peer_arrange(struct mrcd_peer *peer, const uint32_t marks[MRC_PATHS_MAX])
{
	struct mrc_health_path *health_paths;
	bool is_placed[MRC_PATHS_MAX] = {false};
	int from[MRC_PATHS_MAX]; /* for each slot: which of the paths as listed; -1: none */
	struct mrcd_conf_path listed[MRC_PATHS_MAX];
	uint8_t slots = 0;

	if (peer->conf == NULL)
		return 0;
	while (slots < MRC_PATHS_MAX && marks[slots] != 0) {
		from[slots] = marked(peer, is_placed, marks[slots]);
		if (from[slots] >= 0)
			is_placed[from[slots]] = true;
		slots++;
	}
	for (uint8_t i = 0; i < peer->path_count; i++) {
		uint8_t at = slots;

		if (is_placed[i])
			continue;
		for (uint8_t n = 0; at == MRC_PATHS_MAX && n < MRC_PATHS_MAX; n++)
			at = from[n] < 0 ? n : at;
		MRC_ASSERT(at < MRC_PATHS_MAX); /* it has no more than so many */
		from[at] = i;
		slots = MRC_MAX(slots, (uint8_t)(at + 1));
	}
	health_paths = realloc(peer->health_paths, MRC_MAX(slots, 1U) * sizeof(*health_paths));
	if (health_paths == NULL)
		return -ENOMEM;
	peer->health_paths = health_paths;
	mrc_health_init(&peer->health, health_paths, slots);
	memcpy(listed, peer->conf->paths, sizeof(listed));
	memset(peer->paths, 0, sizeof(peer->paths));
	for (uint8_t i = 0; i < slots; i++) {
		if (from[i] < 0) {
			peer->paths[i].mark = marks[i];
			continue;
		}
		peer->conf->paths[i] = listed[from[i]];
		mrcd_peer_init_path(peer, i, &peer->worker->rails[listed[from[i]].rail_index]);
	}
	peer->path_count = slots;
	peer->conf->path_count = slots;
	return 0;
}

void mrcd_peer_path_replace(struct mrcd_peer *peer, uint8_t index)
{
	int r;

	mrcd_peer_answer(peer, MRC_EV_DENY, index, 0);
	r = mrc_conn_path_remove(peer->conn, index);
	MRC_ASSERT(r == 0);
	if (peer->paths[index].rail == NULL)
		return;
	r = mrc_conn_path_add(peer->conn, index, peer->worker->now_ns);
	MRC_ASSERT(r == 0);
}
