/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_handover - a daemon that ends and leaves its state to the next one, as `systemctl restart` does
 *
 * Its clients live on. While no daemon is there, nothing happens at the host:
 * what arrives is lost with the transports, what clients do waits. Then the next
 * one goes on where this one stopped, and nobody may notice but by the time it took.
 */
#include <stdlib.h>
#include <string.h>

#include "mrc_conn_state.h"
#include "sim_impl.h"

#define TROUBLE_NS (3 * MRC_S)

/* What operators see; none of it goes back. */
struct seen {
	struct mrc_conn_info conn;
	struct mrc_path_info paths[MRC_PATHS_MAX];
	struct mrc_histogram rtts[MRC_PATHS_MAX];
};

static void look(const struct sim_world *w, const struct mrc_conn *conn, struct seen *seen_out)
{
	mrc_conn_info(conn, &seen_out->conn);
	for (uint8_t r = 0; r < w->o.rails; r++) {
		mrc_conn_path_info(conn, r, &seen_out->paths[r]);
		seen_out->rtts[r] = *mrc_conn_path_rtts(conn, r);
	}
}

static void check_seen(struct sim_world *w, uint32_t host, const struct seen *was,
		       const struct seen *is)
{
	const char *what = NULL;

#define SAME(field)                            \
	if (was->conn.field != is->conn.field) \
		what = #field;
	SAME(epoch)
	SAME(peer_boot_id)
	SAME(channel_count)
	SAME(resets)
	SAME(messages_sent)
	SAME(messages_delivered)
	SAME(messages_failed)
	SAME(duplicates)
	SAME(protocol_errors)
#undef SAME
#define SAME(field)                                    \
	if (was->paths[r].field != is->paths[r].field) \
		what = #field;
	for (uint32_t r = 0; r < w->o.rails; r++) {
		SAME(epoch)
		SAME(frames_sent)
		SAME(frames_received)
		SAME(bytes_sent)
		SAME(bytes_received)
		SAME(frames_resent)
		SAME(suspicions)
		SAME(suspicions_false)
		SAME(body_errors)
		SAME(header_errors)
		SAME(good_count)
		SAME(bad_count)
		if (memcmp(&was->rtts[r], &is->rtts[r], sizeof(was->rtts[r])) != 0)
			what = "round trips";
	}
#undef SAME
	if (what)
		sim_fail(w, "state", "host %s: %s is another after the handover",
			 w->hosts[host].name, what);
}

/* ---- bytes ---- */

static void image_take(struct sim_world *w, uint32_t pair, uint32_t side, struct image *image)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	const char *host = w->hosts[w->pairs[pair].hosts[side]].name;
	size_t len = 0;
	int r = mrc_conn_export(pe->conn, sim_crc32c, NULL, 0, &len);

	if (r == -ENOBUFS) {
		image->data = malloc(len);
		if (!image->data)
			abort();
		r = mrc_conn_export(pe->conn, sim_crc32c, image->data, len, &image->len);
	}
	if (r || image->len != len)
		sim_fail(w, "state", "host %s: the export answered %d, %zu bytes of %zu", host, r,
			 image->len, len);
}

static void image_free(struct image *image)
{
	free(image->data);
	*image = (struct image){0};
}

static void image_give(struct sim_world *w, uint32_t pair, uint32_t side, struct image *image)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	uint32_t host = w->pairs[pair].hosts[side];
	struct mrc_conn_config config;
	const char *why = NULL;
	int r;

	sim_engine_config(w, pair, side, &config);
	pe->may_alloc = true;
	r = mrc_conn_import(&config, sim_crc32c, image->data, image->len, sim_clock(w, host),
			    &pe->conn, &why);
	pe->may_alloc = false;
	if (r)
		sim_fail(w, "state", "host %s: the import answered %d: %s", w->hosts[host].name, r,
			 why ? why : "");
	image_free(image);
}

/* A process that takes the state over and hands it on at once: it is the same then. */
static void pass_on(struct sim_world *w, uint32_t pair, uint32_t side, struct image *image)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	uint32_t host = w->pairs[pair].hosts[side];
	struct image first = *image;
	struct image again = {0};
	size_t len = 0;

	*image = (struct image){.data = malloc(first.len), .len = first.len};
	if (!image->data)
		abort();
	memcpy(image->data, first.data, first.len);
	image_give(w, pair, side, image);
	if (w->failure[0]) {
		image_free(&first);
		return;
	}
	if (mrc_conn_export(pe->conn, sim_crc32c, NULL, 0, &len) == -EBUSY) {
		sim_pump(w, pair, side); /* buffers are wanted anew, and here they may be given */
		image_free(&first);
		sim_wants_drop(w, pair, side);
		image_take(w, pair, side, image);
		return;
	}
	image_take(w, pair, side, &again);
	if (!w->failure[0] &&
	    (again.len != first.len || memcmp(again.data, first.data, first.len) != 0))
		sim_fail(w, "state", "host %s: what is taken over is not what was left",
			 w->hosts[host].name);
	image_free(&first);
	*image = again;
}

/* ---- hosts ---- */

/* The LANDING_WANTs without an answer: they are given again. */
void sim_wants_drop(struct sim_world *w, uint32_t pair, uint32_t side)
{
	const struct pair *pr = &w->pairs[pair];

	for (uint32_t k = 0; k < pr->chan_count; k++) {
		struct chan *c = w->chans[pr->chans[k]];

		if (c->ends[side].client)
			sim_client_unwant(c->ends[side].client, c->index, side);
	}
}

/* Every transport is closed and every action performed. */
static void quiesce(struct sim_world *w, uint32_t pair, uint32_t side)
{
	struct pair *pr = &w->pairs[pair];

	for (uint32_t r = 0; r < w->o.rails; r++) {
		struct path *p = &pr->paths[r];
		bool was_up = p->ends[side].is_up;

		sim_path_down(w, pair, r, side, MRC_REASON_CLOSED);
		if (was_up && !p->is_verbs)
			sim_path_gone_later(w, pair, r, 1 - side, p->ends[side].serial);
	}
	sim_pump(w, pair, side);
	for (uint32_t r = 0; r < w->o.rails && side == 0; r++)
		pr->paths[r].attempt.is_running = false;
}

void sim_host_leave(struct sim_world *w, uint32_t host)
{
	struct host *h = &w->hosts[host];

	w->counts.handovers++;
	h->trouble_until_ns = MRC_NEVER;
	sim_trace(w, "host %s: its daemon leaves its state", h->name);
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] == host)
				quiesce(w, i, side);
		}
	}
	for (uint32_t i = 0; i < w->pair_count && !w->failure[0]; i++) {
		struct pair *pr = &w->pairs[i];
		uint32_t side = pr->hosts[1] == host;
		struct pair_end *pe = &pr->ends[side];
		struct image image = {0};
		struct seen was;
		struct seen is;

		if (pr->hosts[side] != host || !pe->conn)
			continue;
		sim_pump(w, i,
			 side); /* another conn's clients may have freed what this one's want */
		sim_wants_drop(w, i, side);
		look(w, pe->conn, &was);
		image_take(w, i, side, &image);
		for (uint64_t again = sim_draw(w, 3); again && !w->failure[0]; again--) {
			sim_engine_end(w, pe);
			sim_engine_holds(w, pe);
			pass_on(w, i, side, &image);
			if (!w->failure[0]) {
				look(w, pe->conn, &is);
				check_seen(w, host, &was, &is);
			}
		}
		sim_engine_end(w, pe);
		pe->image = image;
	}
	h->process++;
	h->paused++;
	h->paused_ns = w->now_ns;
}

/* What the embedder knows and the image does not say, or what has changed since. */
static void catch_up(struct sim_world *w, uint32_t pair, uint32_t side)
{
	struct pair *pr = &w->pairs[pair];
	uint32_t host = pr->hosts[side];

	for (uint32_t r = 0; r < w->o.rails; r++) {
		const struct port *port = sim_port(w, host, r);
		struct mrc_event_in ev = {.kind = MRC_EV_CARRIER,
					  .path = {.index = (uint8_t)r, .is_up = port->is_carrier}};

		sim_tell(w, pair, side, &ev);
		ev.kind = port->is_denied ? MRC_EV_DENY : MRC_EV_ALLOW;
		sim_tell(w, pair, side, &ev);
	}
	for (uint32_t k = 0; k < pr->chan_count; k++) {
		struct chan *c = w->chans[pr->chans[k]];
		struct chan_end *ce = &c->ends[side];
		struct mrc_event_in ev = {.channel = {.id = ce->id}};

		if (!ce->client || ce->is_freed || ce->is_gone)
			continue;
		sim_keys_tell(w, pair, side, ce->client);
		ev.kind = ce->is_aborted ? MRC_EV_CH_ABORT : MRC_EV_CH_CLOSE;
		if (ce->is_aborted || (ce->is_closing && !ce->is_down))
			sim_tell(w, pair, side, &ev);
		if (ce->is_unfed)
			sim_timer_add(w, w->now_ns, T_SEND, c->index, side, 0, 0);
		ce->is_unfed = false;
	}
}

void sim_host_take_over(struct sim_world *w, uint32_t host)
{
	struct host *h = &w->hosts[host];

	sim_trace(w, "host %s: a daemon takes the state over", h->name);
	h->trouble_until_ns = w->now_ns + TROUBLE_NS;
	for (uint32_t i = 0; i < w->pair_count && !w->failure[0]; i++) {
		struct pair *pr = &w->pairs[i];
		uint32_t side = pr->hosts[1] == host;
		struct pair_end *pe = &pr->ends[side];

		if (pr->hosts[side] != host || !pe->image.data)
			continue; /* the daemon that held it has ended for good meanwhile */
		sim_engine_holds(w, pe);
		image_give(w, i, side, &pe->image);
		if (!w->failure[0])
			catch_up(w, i, side);
	}
}

void sim_host_forget(struct sim_world *w, uint32_t pair, uint32_t side)
{
	image_free(&w->pairs[pair].ends[side].image);
}
