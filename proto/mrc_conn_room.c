/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_room - the tables of a conn: as large as its limits ask, or as what was left to it needs
 *
 * Limits that are lower than they were bound what is new. What is there stays (DECISIONS 80), so
 * the tables of a conn that is taken over are made anew, larger, before anything is in them. Only
 * ranges come while others are there: their pool grows.
 */
#include <string.h>

#include "mrc_conn_impl.h"

static uint32_t power_of_two_from(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/* Of zeros, in place of what was there. */
static bool table_take(struct mrc_conn *conn, void *table, size_t bytes)
{
	void *fresh, *old;

	memcpy(&old, table, sizeof(old));
	if (old)
		conn->alloc.free(conn->alloc.context, old);
	fresh = conn->alloc.alloc(conn->alloc.context, bytes);
	memcpy(table, &fresh, sizeof(fresh));
	return fresh != NULL;
}

int mrc_conn_room_channels(struct mrc_conn *conn, uint32_t count)
{
	const uint32_t bucket_count = power_of_two_from(count);

	if (count <= conn->slot_count)
		return 0;
	MRC_ASSERT(conn->channel_count == 0);
	MRC_ASSERT(conn->space_count == 0);
	if (!table_take(conn, &conn->slots, sizeof(struct mrc_channel *) * count) ||
	    !table_take(conn, &conn->slot_generations, sizeof(uint32_t) * count) ||
	    !table_take(conn, &conn->buckets, sizeof(struct mrc_channel *) * bucket_count) ||
	    !table_take(conn, &conn->space_buckets, sizeof(struct mrc_space *) * bucket_count))
		return -ENOMEM;
	conn->slot_count = count;
	conn->bucket_count = bucket_count;
	return mrc_conn_room_ctl(conn, 4 * count);
}

int mrc_conn_room_ctl(struct mrc_conn *conn, uint32_t count)
{
	MRC_ASSERT(conn->ctl_sent == 0);
	conn->ctl_count = power_of_two_from(2 * count);
	return table_take(conn, &conn->ctl, sizeof(*conn->ctl) * conn->ctl_count) ? 0 : -ENOMEM;
}

int mrc_conn_room_resends(struct mrc_conn *conn, uint32_t count)
{
	if (count <= conn->resend_count)
		return 0;
	MRC_ASSERT(conn->resend_head == conn->resend_tail);
	conn->resend_count = power_of_two_from(count);
	return table_take(conn, &conn->resends, sizeof(*conn->resends) * conn->resend_count)
		       ? 0
		       : -ENOMEM;
}

int mrc_conn_room_range(struct mrc_conn *conn)
{
	uint32_t count = 2 * conn->ranges.node_count;
	struct mrc_range_node *nodes;

	if (conn->ranges.free_count > 0)
		return 0;
	nodes = conn->alloc.alloc(conn->alloc.context, sizeof(*nodes) * count);
	if (!nodes)
		return -ENOMEM;
	mrc_range_pool_move(&conn->ranges, nodes, count);
	conn->alloc.free(conn->alloc.context, conn->range_nodes);
	conn->range_nodes = nodes;
	return 0;
}
