/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrcd_carrier.h"
#include "mrcd_log.h"
#include "mrcd_tcp.h"
#include "mrcd_timeval.h"

#define LISTEN_RETRY_NS  MRC_S
#define ACCEPT_RETRY_NS  (100 * MRC_MS)
#define ACCEPTS_PER_TURN 16

/* ---- listening ---- */

static void on_accept(evutil_socket_t fd, short what, void *context)
{
	const struct timeval pause = mrcd_timeval_of(ACCEPT_RETRY_NS);
	struct mrcd_tcp *tcp = context;

	mrcd_worker_now(tcp->rail->worker);
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		int conn_fd = accept4(fd, (struct sockaddr *)&from, &from_len,
				      SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (conn_fd >= 0) {
			mrcd_tcp_attempt_inbound(tcp, conn_fd, &from, from_len);
			continue;
		}
		if (errno == EAGAIN)
			return;
		/* Out of descriptors or memory: the caller stays in the backlog and the event would
		 * come again at once, for nothing. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			mrcd_warn("rail %s: cannot accept: %s, pausing", tcp->rail->conf->name,
				  strerror(errno));
			event_del(&tcp->listen_event);
			event_add(&tcp->retry_event, &pause);
			return;
		}
		/* Anything else befell that one connection only (accept(2), "Error handling"). */
	}
}

static void accept_watch(struct mrcd_tcp *tcp)
{
	if (!tcp->is_cut)
		event_add(&tcp->listen_event, NULL);
}

static void listen_close(struct mrcd_tcp *tcp)
{
	if (tcp->listen_fd < 0)
		return;
	event_del(&tcp->listen_event);
	close(tcp->listen_fd);
	tcp->listen_fd = -1;
}

/* Is what we listen on still what the rail is now? */
static bool listen_is_current(const struct mrcd_tcp *tcp, const struct sockaddr_storage *own,
			      socklen_t own_len, unsigned ifindex)
{
	return tcp->listen_fd >= 0 && tcp->listen_ifindex == ifindex && tcp->own_len == own_len &&
	       !memcmp(&tcp->own, own, own_len);
}

/*
 * Listen, or listen anew where the rail is now. Waiting mends a missing
 * interface or address and a port in use; it is tried again until it works.
 */
static void listen_try(struct mrcd_tcp *tcp)
{
	const struct timeval again = mrcd_timeval_of(LISTEN_RETRY_NS);
	const struct mrcd_conf_rail *conf = tcp->rail->conf;
	unsigned ifindex = conf->interface[0] ? tcp->rail->ifindex : 0;
	struct sockaddr_storage own;
	socklen_t own_len = 0;
	int fd, r;

	r = mrcd_nic_own_address(tcp->rail, &own, &own_len);
	if (r < 0)
		goto err_retry;
	if (listen_is_current(tcp, &own, own_len, ifindex))
		return;
	/* One socket on the port at a time: the old one is of an interface that is gone. */
	listen_close(tcp);
	fd = mrcd_tcp_listen(conf, &own, own_len);
	if (fd < 0) {
		r = fd;
		goto err_retry;
	}

	tcp->listen_fd = fd;
	tcp->listen_ifindex = ifindex;
	tcp->own = own;
	tcp->own_len = own_len;
	tcp->listen_error = 0;
	event_assign(&tcp->listen_event, tcp->rail->worker->base, fd, EV_READ | EV_PERSIST,
		     on_accept, tcp);
	accept_watch(tcp);
	event_del(&tcp->retry_event);
	return;

err_retry:
	/* -EAGAIN: where it is will be known in a moment. */
	if (r != tcp->listen_error && r != -EAGAIN)
		mrcd_warn("rail %s: cannot listen on %s%s%s port %u: %s; trying again every second",
			  conf->name, conf->interface,
			  conf->interface[0] && conf->address[0] ? " " : "", conf->address,
			  conf->port, strerror(-r));
	tcp->listen_error = r;
	event_add(&tcp->retry_event, &again);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp *tcp = context;

	if (tcp->listen_fd >= 0)
		accept_watch(tcp);
	listen_try(tcp);
}

void mrcd_tcp_listen_watch(struct mrcd_tcp *tcp)
{
	if (tcp->is_cut && tcp->listen_fd >= 0) {
		event_del(&tcp->listen_event);
		return;
	}
	/* Whoever waits in the backlog has waited too long; the kernel sends him away, and he calls again. */
	listen_close(tcp);
	listen_try(tcp);
}

/* ---- life ---- */

static void on_reap(evutil_socket_t fd, short what, void *context)
{
	mrcd_tcp_reap(context);
}

int mrcd_tcp_new(struct mrcd_rail *rail, const struct mrcd_tcp_upgrade *upgrade,
		 struct mrcd_tcp **tcp_out)
{
	struct sockaddr_storage address;
	socklen_t address_len;
	struct mrcd_tcp *tcp;
	int r;

	if (!rail->conf->address[0] && !rail->conf->interface[0])
		return -EINVAL;
	if (rail->conf->address[0] &&
	    mrcd_resolve_numeric(rail->conf->address, rail->conf->port, &address, &address_len) < 0)
		return -EINVAL;

	tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return -ENOMEM;
	tcp->rail = rail;
	tcp->upgrade = upgrade;
	tcp->listen_fd = -1;
	TAILQ_INIT(&tcp->inbound);
	for (uint32_t i = 0; i < MRCD_TCP_BUCKETS; i++)
		TAILQ_INIT(&tcp->outbound[i]);
	LIST_INIT(&tcp->links);
	LIST_INIT(&tcp->dead);
	mrcd_strangers_init(&tcp->strangers);
	tcp->staging = malloc(MRCD_TCP_CARRY_BYTES + MRCD_TCP_STAGING_BYTES);
	tcp->scratch = malloc(MRCD_TCP_STAGING_BYTES);
	r = -ENOMEM;
	if (!tcp->staging || !tcp->scratch)
		goto err_free;
	r = mrcd_resolver_new(rail->worker->base, &tcp->resolver);
	if (r < 0)
		goto err_free;
	event_assign(&tcp->retry_event, rail->worker->base, -1, 0, on_retry, tcp);
	event_assign(&tcp->reap_event, rail->worker->base, -1, 0, on_reap, tcp);
	mrcd_tcp_drill_init(tcp);
	listen_try(tcp);
	*tcp_out = tcp;
	return 0;

err_free:
	free(tcp->staging);
	free(tcp->scratch);
	free(tcp);
	return r;
}

void mrcd_tcp_free(struct mrcd_tcp *tcp)
{
	if (!tcp)
		return;
	listen_close(tcp);
	event_del(&tcp->retry_event);
	event_del(&tcp->reap_event);
	mrcd_tcp_drill_fini(tcp);
	mrcd_tcp_attempts_drop(tcp, NULL);
	mrcd_resolver_free(tcp->resolver);
	tcp->resolver = NULL;
	tcp->is_closed = true;
	mrcd_tcp_reap(tcp);
}

void mrcd_tcp_refresh(struct mrcd_tcp *tcp)
{
	listen_try(tcp);
}

/* ---- the rail that is nothing else ---- */

static int tcp_open(struct mrcd_rail *rail)
{
	struct mrcd_tcp *tcp;
	int r = mrcd_tcp_new(rail, NULL, &tcp);

	if (r < 0)
		return r;
	rail->kind_data = tcp;
	return 0;
}

static void tcp_close(struct mrcd_rail *rail)
{
	mrcd_tcp_free(rail->kind_data);
	rail->kind_data = NULL;
}

static void tcp_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	mrcd_tcp_attempt_outbound(rail->kind_data, peer, path_index);
}

static void tcp_refresh(struct mrcd_rail *rail)
{
	if (rail->kind_data)
		mrcd_tcp_refresh(rail->kind_data);
}

static void tcp_forget(struct mrcd_rail *rail, struct mrcd_peer *peer)
{
	if (rail->kind_data)
		mrcd_tcp_attempts_drop(rail->kind_data, peer);
}

static int tcp_drill(struct mrcd_rail *rail)
{
	return mrcd_tcp_drill(rail->kind_data);
}

const struct mrcd_rail_ops mrcd_rail_tcp_ops = {
	.kind = "tcp",
	.open = tcp_open,
	.close = tcp_close,
	.connect = tcp_connect,
	.has_carrier = mrcd_carrier_ask,
	.refresh = tcp_refresh,
	.forget = tcp_forget,
	.drill = tcp_drill,
};
