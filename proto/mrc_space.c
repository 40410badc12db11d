/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_space - landing memory, and the keys for writing it directly (DESIGN 7.15)
 *
 * A client's landing memory is one space, with a number on the wire that is not
 * used twice in a conn epoch. Its key for a path is told on that path itself and
 * holds in that path epoch only: so a key never outlives its queue pair, nothing
 * has to be told again when a path dies, and nothing can be written directly on
 * a path epoch that did not come up at the owner's end.
 */
#include "mrc_conn_impl.h"

int mrc_space_key(struct mrc_conn *conn, const struct mrc_ev_key *ev)
{
	struct mrc_flow *flow = conn->flows;
	struct mrc_key *key;

	if (ev->index >= conn->path_count)
		return -EINVAL;
	while (flow && flow->id != ev->flow)
		flow = flow->next;
	if (!flow)
		return -ENOENT;
	key = &flow->keys[ev->index];
	if (key->is_given && key->is_valid == ev->is_valid && key->rkey == ev->rkey &&
	    key->base == ev->base)
		return 0;
	*key = (struct mrc_key){.is_given = true,
				.is_valid = ev->is_valid,
				.rkey = ev->rkey,
				.base = ev->base};
	conn->paths[ev->index].do_keys = true;
	return 0;
}

bool mrc_space_key_frame(struct mrc_conn *conn, struct mrc_path *path, struct mrc_wire_hdr *hdr)
{
	for (struct mrc_flow *flow = conn->flows; flow; flow = flow->next) {
		struct mrc_key *key = &flow->keys[path->index];

		if (!key->is_given || key->epoch == path->epoch)
			continue;
		key->epoch = path->epoch;
		hdr->msg = flow->space;
		hdr->addr = key->base;
		hdr->arg = key->rkey | (uint64_t)key->is_valid << 32;
		return true;
	}
	path->do_keys = false;
	return false;
}

static struct mrc_space **bucket_of(const struct mrc_conn *conn, uint32_t id)
{
	return &conn->space_buckets[id & (conn->bucket_count - 1)];
}

static void space_free(struct mrc_conn *conn, struct mrc_space *space)
{
	struct mrc_space **at = bucket_of(conn, space->id);

	while (*at != space)
		at = &(*at)->next;
	*at = space->next;
	mrc_list_remove(&space->in_unused);
	conn->space_count--;
	conn->alloc.free(conn->alloc.context, space);
}

/* The space with this number; it is made when there is room or one that nothing leads to. */
static struct mrc_space *space_get(struct mrc_conn *conn, uint32_t id)
{
	struct mrc_space *space = *bucket_of(conn, id);

	while (space && space->id != id)
		space = space->next;
	if (space)
		return space;
	if (conn->space_count >= conn->limits.channels_max) {
		if (mrc_list_is_empty(&conn->unused_spaces))
			return NULL;
		space_free(conn,
			   mrc_list_entry(conn->unused_spaces.next, struct mrc_space, in_unused));
	}
	space = conn->alloc.alloc(conn->alloc.context, sizeof(*space));
	if (!space)
		return NULL;
	space->id = id;
	space->next = *bucket_of(conn, id);
	*bucket_of(conn, id) = space;
	mrc_list_init(&space->in_unused);
	mrc_list_push(&conn->unused_spaces, &space->in_unused);
	conn->space_count++;
	return space;
}

int mrc_space_on_keys(struct mrc_conn *conn, struct mrc_path *path, const struct mrc_wire_hdr *hdr)
{
	struct mrc_space *space;

	if (hdr->msg == 0 || hdr->msg > UINT32_MAX || hdr->arg >> 33)
		return -EPROTO;
	if (!path->is_direct)
		return 0;
	space = space_get(conn, (uint32_t)hdr->msg);
	if (space)
		space->keys[path->index] = (struct mrc_key){
			.epoch = path->epoch,
			.is_valid = hdr->arg >> 32 & 1,
			.rkey = (uint32_t)hdr->arg,
			.base = hdr->addr,
		};
	return 0;
}

struct mrc_space *mrc_space_join(struct mrc_conn *conn, uint32_t id)
{
	struct mrc_space *space = space_get(conn, id);

	if (space) {
		mrc_list_remove(&space->in_unused);
		space->channel_count++;
	}
	return space;
}

void mrc_space_leave(struct mrc_conn *conn, struct mrc_space *space)
{
	if (space && --space->channel_count == 0)
		mrc_list_push(&conn->unused_spaces, &space->in_unused);
}

void mrc_space_forget_all(struct mrc_conn *conn)
{
	for (uint32_t i = 0; i < conn->bucket_count; i++) {
		while (conn->space_buckets[i])
			space_free(conn, conn->space_buckets[i]);
	}
}

const struct mrc_key *mrc_space_key_for(const struct mrc_channel *ch, const struct mrc_path *path)
{
	const struct mrc_key *key;

	if (!path->is_direct || !ch->peer_space)
		return NULL;
	key = &ch->peer_space->keys[path->index];
	return key->is_valid && key->epoch == path->epoch ? key : NULL;
}
