/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_state - a conn as bytes, so that another process goes on with it (DESIGN 7.13)
 *
 * What travels is the state of a quiesced conn: no path has a transport any
 * more, so nothing can land and nothing is in flight. What the peer has not
 * acknowledged is in the state, to be said or sent again. The process that takes
 * it over keeps the boot id and the conn epoch and opens all paths anew, with
 * path epochs above all that were; the peer sees its paths go and come back.
 *
 * To quiesce: take no more from clients and start no connection
 * (MRC_ACT_CONNECT is not performed), close every transport and say
 * MRC_EV_PATH_DOWN or MRC_EV_FENCED for it, take and perform all other actions
 * until there is none, then export at once.
 *
 * As before for the embedder: ids of channels and flows, numbers of messages,
 * cookies, addresses in send and landing memory. What it was told it is not told
 * again: a CH_INCOMING without an answer still waits for it, a SEND that was
 * answered -ENOSPC still gets its CH_ROOM. But:
 *   - a LANDING_WANT without an answer is given again: forget the old one
 *   - no hold is known any more: what is left in their buffers is asked for again
 *   - keys and what an end tells about itself (MRC_EV_KEY, MRC_EV_ABOUT) have to be told again,
 *     that this host is being drained (MRC_EV_HOST_DRAIN), and of each path how it is now:
 *     CARRIER, and DENY or ALLOW
 *   - of a client that died meanwhile: MRC_EV_CH_ABORT for its channels, after the import
 *
 * Units:     nanoseconds of CLOCK_MONOTONIC as they are: an image is for the same
 *            machine, until it is booted again.
 * Threads:   one at a time.  I/O, time: none.
 */
#ifndef MRC_CONN_STATE_H
#define MRC_CONN_STATE_H

#include "mrc_conn.h"

/*
 * Write the state to `out`. The conn is good for mrc_conn_free() only, afterwards.
 *
 * -EBUSY    not quiesced: a path is connected, or an action is still to be taken
 * -ENOBUFS  `cap` is too little: *len_out says how much is enough. `out` may be NULL when it is 0
 */
int mrc_conn_export(struct mrc_conn *conn, mrc_crc32c_fn crc32c, void *out, size_t cap,
		    size_t *len_out);

/*
 * The conn that was exported. `config` is as for mrc_conn_new(): host, peer and boot_id
 * have to be those of the image, path n the same as before; new paths come behind those.
 * Limits may be others, and lower than what is there: that stays, and they bound what is
 * new. All paths begin CONNECTING or DENIED.
 *
 * -EPROTO  *why_out (a static string) says what is wrong: damaged, of another version, boot or
 *          host, or not consistent. Begin with mrc_conn_new(), with
 *          the same boot id or another: the peer finds that its conn epoch is held no more.
 * -EINVAL, -ENOMEM  as mrc_conn_new()
 */
int mrc_conn_import(const struct mrc_conn_config *config, mrc_crc32c_fn crc32c, const void *data,
		    size_t len, uint64_t now_ns, struct mrc_conn **conn_out, const char **why_out);

#endif
