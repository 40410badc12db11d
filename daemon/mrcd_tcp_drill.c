/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_tcp_drill - a tcp rail that fails on purpose (mrcd_drill.h)
 *
 * Links get other operations for so long, so that those of a healthy rail need
 * not ask. Bytes of a stream cannot be left out: where nothing shall pass, the
 * sockets are left alone, neither read nor written. What was under way is stuck
 * in them as it would be in a cable that drops everything, and either moves on
 * when the drill is over, or went down with a link that was fenced meanwhile.
 * The kernel alone still acknowledges what it has room for, which no path looks
 * at.
 */
#include "mrcd_tcp.h"
#include "mrcd_timeval.h"

#define SLOW_TICK_NS  MRC_MS
#define SLOW_BURST_NS (4 * MRC_MS) /* a late timer is made good for so far */

static void cut_flush(struct mrcd_link *base)
{
}

static const struct mrcd_link_ops cut_ops = {
	.kind = "tcp",
	.post = mrcd_tcp_post,
	.flush = cut_flush,
	.strip = mrcd_tcp_strip,
	.fence = mrcd_tcp_fence,
	.resends = mrcd_tcp_link_resends,
};

/* ---- slow: a token bucket for all of the rail ---- */

static void slow_arm(struct mrcd_tcp *tcp)
{
	const struct timeval tick = mrcd_timeval_of(SLOW_TICK_NS);

	event_add(&tcp->slow_event, &tick);
}

static void slow_fill(struct mrcd_tcp *tcp)
{
	const struct mrcd_rail *rail = tcp->rail;
	uint64_t span_ns = MRC_MIN(rail->worker->now_ns - tcp->slow_ns, SLOW_BURST_NS);
	uint64_t bytes = rail->drill_bytes_per_s * span_ns / MRC_S;

	/* What does not make a byte yet stays for the next time. */
	if (!bytes)
		return;
	tcp->slow_ns = rail->worker->now_ns;
	tcp->slow_bytes =
		MRC_MIN(tcp->slow_bytes + bytes, rail->drill_bytes_per_s * SLOW_BURST_NS / MRC_S);
}

static void slow_flush(struct mrcd_link *base)
{
	struct mrcd_tcp_link *link = mrcd_tcp_link_of(base);

	slow_fill(link->tcp);
	if (link->tcp->slow_bytes)
		link->tcp->slow_bytes -= mrcd_tcp_link_write_part(link, link->tcp->slow_bytes);
}

/* The sockets' own events would send as much as they take; this is in their place. */
static void on_slow_tick(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp *tcp = context;
	struct mrcd_tcp_link *link;
	uint64_t share, waiting = 0;

	mrcd_worker_now(tcp->rail->worker);
	slow_fill(tcp);
	LIST_FOREACH(link, &tcp->links, entry)
	{
		waiting += mrcd_tcp_link_is_waiting(link);
	}
	share = waiting ? MRC_MAX(tcp->slow_bytes / waiting, 1ULL) : 0;
	LIST_FOREACH(link, &tcp->links, entry)
	{
		if (!mrcd_tcp_link_is_waiting(link) || !tcp->slow_bytes)
			continue;
		tcp->slow_bytes -= mrcd_tcp_link_write_part(link, MRC_MIN(share, tcp->slow_bytes));
		mrcd_peer_pump(link->link.peer);
	}
	slow_arm(tcp);
}

static const struct mrcd_link_ops slow_ops = {
	.kind = "tcp",
	.post = mrcd_tcp_post,
	.flush = slow_flush,
	.strip = mrcd_tcp_strip,
	.fence = mrcd_tcp_fence,
	.resends = mrcd_tcp_link_resends,
};

/* ---- the rail ---- */

/* From now on the links are served by `ops`, and by their sockets' events or not. */
static void links_serve(struct mrcd_tcp *tcp, const struct mrcd_link_ops *ops)
{
	bool is_cut = ops == &cut_ops, was_cut = tcp->link_ops == &cut_ops;
	bool is_slow = ops == &slow_ops;
	struct mrcd_tcp_link *link;

	tcp->link_ops = ops;
	LIST_FOREACH(link, &tcp->links, entry)
	{
		link->link.ops = ops;
		if (is_cut != was_cut)
			mrcd_tcp_link_listen(link, !is_cut);
		if (is_cut || is_slow)
			event_del(&link->write_event);
		else if (mrcd_tcp_link_is_waiting(link))
			event_add(&link->write_event, NULL);
	}
}

void mrcd_tcp_drill_init(struct mrcd_tcp *tcp)
{
	tcp->link_ops = &mrcd_tcp_link_ops;
	event_assign(&tcp->slow_event, tcp->rail->worker->base, -1, 0, on_slow_tick, tcp);
}

void mrcd_tcp_drill_fini(struct mrcd_tcp *tcp)
{
	event_del(&tcp->slow_event);
}

int mrcd_tcp_drill(struct mrcd_tcp *tcp)
{
	enum mrcd_drill_fault fault = tcp->rail->drill;
	bool was_cut = tcp->is_cut;

	tcp->is_cut = fault == MRCD_DRILL_DOWN || fault == MRCD_DRILL_SILENCE;
	if (tcp->is_cut)
		mrcd_tcp_attempts_fail(tcp, "cut by a drill");
	if (tcp->is_cut != was_cut)
		mrcd_tcp_listen_watch(tcp);
	if (fault == MRCD_DRILL_SLOW) {
		tcp->slow_bytes = 0;
		tcp->slow_ns = tcp->rail->worker->now_ns;
		slow_arm(tcp);
	} else {
		event_del(&tcp->slow_event);
	}
	links_serve(tcp, fault == MRCD_DRILL_SLOW ? &slow_ops
			 : tcp->is_cut            ? &cut_ops
						  : &mrcd_tcp_link_ops);
	return 0;
}
