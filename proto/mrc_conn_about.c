/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_about - what each end tells about itself, on each path
 *
 * A fact like others: kept as state, said on the path it speaks of when that
 * begins and when it changes, and said again when the frame may have been lost.
 * Only where both ends have agreed on MRC_FEATURE_ABOUT.
 */
#include "mrc_conn_impl.h"

static bool may_tell(const struct mrc_conn *conn, const struct mrc_path *path)
{
	return conn->abouts[path->index].is_given && path->is_connected &&
	       path->features & MRC_FEATURE_ABOUT;
}

/* As the peer would read them. */
static bool is_same(const struct mrc_about *a, const struct mrc_about *b)
{
	uint8_t bytes[2][MRC_ABOUT_BYTES_MAX] = {{0}};
	struct mrc_cursor c = {.at = bytes[0], .end = bytes[1], .ok = true};

	mrc_about_put(a, &c);
	c = (struct mrc_cursor){.at = bytes[1], .end = bytes[1] + sizeof(bytes[1]), .ok = true};
	mrc_about_put(b, &c);
	return !memcmp(bytes[0], bytes[1], sizeof(bytes[0]));
}

int mrc_conn_about_event(struct mrc_conn *conn, const struct mrc_ev_about *ev)
{
	if (ev->index >= conn->path_count)
		return -EINVAL;
	if (conn->abouts[ev->index].is_given && is_same(&conn->abouts[ev->index].own, ev->about))
		return 0;
	conn->abouts[ev->index].own = *ev->about;
	conn->abouts[ev->index].is_given = true;
	conn->paths[ev->index].do_about = may_tell(conn, &conn->paths[ev->index]);
	return 0;
}

void mrc_conn_about_begin(const struct mrc_conn *conn, struct mrc_path *path)
{
	path->do_about = may_tell(conn, path);
}

void mrc_conn_about_put(const struct mrc_conn *conn, const struct mrc_path *path,
			struct mrc_cursor *c)
{
	mrc_about_put(&conn->abouts[path->index].own, c);
}

int mrc_conn_about_take(struct mrc_conn *conn, const struct mrc_path *path,
			const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	struct mrc_about about;

	if (!(path->features & MRC_FEATURE_ABOUT))
		return -EPROTO;
	if (hdr->body_len)
		memcpy(copy, body, hdr->body_len);
	if (mrc_about_take(&c, &about))
		return -EPROTO;
	conn->abouts[path->index].theirs = about;
	conn->abouts[path->index].is_heard = true;
	return 0;
}

void mrc_conn_about_forget(struct mrc_conn *conn)
{
	for (uint8_t i = 0; i < conn->path_count; i++)
		conn->abouts[i].is_heard = false;
}

const struct mrc_about *mrc_conn_path_about(const struct mrc_conn *conn, uint8_t path_index)
{
	MRC_ASSERT(path_index < conn->path_count);
	return conn->abouts[path_index].is_heard ? &conn->abouts[path_index].theirs : NULL;
}
