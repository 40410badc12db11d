/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrcd_tcp.h"
#include "mrcd_timeval.h"

/* Long after our own timers have given a path up; only against sockets nobody watches. */
#define USER_TIMEOUT_MS 60000U

/* One connection attempt, in or out. Owned by its rail's list. */
struct mrcd_tcp_attempt {
	TAILQ_ENTRY(mrcd_tcp_attempt) entry;
	struct mrcd_tcp *tcp;
	struct mrcd_peer *peer; /* outbound; whom it is for */
	uint8_t path_index;
	bool is_inbound;
	bool is_connecting;            /* the handshake has not begun */
	int fd;                        /* -1: none yet */
	struct mrcd_resolve *question; /* while the name is looked up */
	struct event read_event, write_event;
	struct event timer;
	const char *failure; /* found inside connect(): reported by `timer`, which is due at once */
	struct sockaddr_storage address; /* the other's */
	socklen_t address_len;
	char source[MRCD_ADDRESS_TEXT_BYTES]; /* as text */
	struct mrcd_handshake hs;
};

/*
 * The kernel sends a lost SYN again after 1 s, then 3 s. A rail that was silent
 * shall come back sooner: the attempt is given up and the next one asks afresh.
 */
#define ANSWER_TIMEOUT_NS (300 * MRC_MS)

static void timer_set(struct mrcd_tcp_attempt *attempt, uint64_t ns_max)
{
	uint64_t ns = MRC_MIN(attempt->tcp->rail->worker->conf->handshake_timeout_ns, ns_max);
	const struct timeval timeout = mrcd_timeval_of(ns);

	event_add(&attempt->timer, &timeout);
}

/* Where a peer's attempts are. Peers lie at regular distances, so their addresses are mixed well. */
static uint32_t bucket_of(const struct mrcd_peer *peer)
{
	struct mrc_rng rng = {.state = (uintptr_t)peer};

	return (uint32_t)(mrc_rng_next(&rng) % MRCD_TCP_BUCKETS);
}

static void attempt_free(struct mrcd_tcp_attempt *attempt)
{
	struct mrcd_tcp *tcp = attempt->tcp;

	if (attempt->is_inbound) {
		TAILQ_REMOVE(&tcp->inbound, attempt, entry);
		tcp->inbound_count--;
	} else {
		TAILQ_REMOVE(&tcp->outbound[bucket_of(attempt->peer)], attempt, entry);
	}
	if (attempt->question)
		mrcd_resolve_cancel(attempt->question);
	event_del(&attempt->timer);
	if (attempt->fd >= 0) {
		event_del(&attempt->read_event);
		event_del(&attempt->write_event);
		close(attempt->fd);
	}
	OPENSSL_cleanse(&attempt->hs, sizeof(attempt->hs));
	free(attempt);
}

/* It has failed: who asked for it hears of it. `attempt` is gone afterwards. */
static void attempt_fail(struct mrcd_tcp_attempt *attempt, const char *why)
{
	struct mrcd_peer *peer = attempt->is_inbound ? NULL : attempt->peer;
	uint8_t path_index = attempt->path_index;

	attempt_free(attempt);
	if (peer)
		mrcd_peer_on_connect_failed(peer, path_index, why);
}

static void attempt_refuse(struct mrcd_tcp_attempt *attempt, enum mrcd_refusal refusal,
			   const char *why)
{
	/* Who does not answer our own call is no stranger, only out of reach. */
	if (attempt->is_inbound ||
	    (refusal != MRCD_REFUSAL_TIMEOUT && refusal != MRCD_REFUSAL_CLOSED))
		mrcd_strangers_note(&attempt->tcp->strangers, attempt->tcp->rail, refusal,
				    attempt->source, why);
	attempt_fail(attempt, why);
}

/* What the rail has of a device now. False: it is no rail for one. */
static bool device_ask(const struct mrcd_tcp *tcp, struct mrcd_handshake_device *device_out)
{
	const struct mrcd_tcp_upgrade *upgrade = tcp->upgrade;

	if (!upgrade)
		return false;
	*device_out = (struct mrcd_handshake_device){
		.is_required = upgrade->is_required,
		.is_usable = upgrade->is_capable(upgrade->context),
	};
	if (device_out->is_usable)
		device_out->port = upgrade->port(upgrade->context);
	return true;
}

/* Both ends can do better than this connection. The attempt goes first: it may end in the call. */
static void attempt_upgrade(struct mrcd_tcp_attempt *attempt)
{
	const struct mrcd_tcp_upgrade *upgrade = attempt->tcp->upgrade;
	const struct sockaddr_storage address = attempt->address;
	const struct mrcd_handshake hs = attempt->hs;
	socklen_t address_len = attempt->address_len;
	int fd = attempt->fd;

	attempt->fd = -1;
	attempt_free(attempt);
	upgrade->start(upgrade->context, fd, &hs, &address, address_len);
}

/* The handshake is done and all of it is sent: a link begins. */
static void attempt_promote(struct mrcd_tcp_attempt *attempt)
{
	struct mrcd_handshake *hs = &attempt->hs;
	struct mrcd_tcp_link *link;
	int r;

	event_del(&attempt->read_event);
	event_del(&attempt->write_event);
	if (hs->is_direct_capable) {
		attempt_upgrade(attempt);
		return;
	}
	r = mrcd_tcp_link_new(attempt->tcp, attempt->fd, hs->peer, hs->path_index, &hs->auth,
			      &link);
	if (r < 0) {
		attempt_fail(attempt, strerror(-r));
		return;
	}
	attempt->fd = -1;
	if (hs->is_sealed && mrcd_tcp_seal_new(link, hs->secret_out, hs->secret_in) < 0) {
		mrcd_tcp_link_close(link);
		attempt_fail(attempt, "there is no memory to encrypt with");
		return;
	}
	memcpy(link->link.key_id, hs->key_id, sizeof(link->link.key_id));
	/* A path has one initiator, so the number it goes by is the same in both HELLOs. */
	r = mrcd_link_on_up(&link->link, &hs->auth, hs->ours.path_id, hs->theirs.boot_id,
			    hs->is_direct_capable);
	if (r < 0) {
		mrcd_tcp_link_close(link);
		attempt_fail(attempt, "epochs have moved on");
		return;
	}
	mrcd_tcp_link_start(link);
	attempt_free(attempt);
}

/* False: the attempt is gone. */
static bool attempt_send(struct mrcd_tcp_attempt *attempt)
{
	struct mrcd_handshake *hs = &attempt->hs;
	ssize_t n;

	if (!hs->out_len)
		return true;
	n = send(attempt->fd, hs->out, hs->out_len, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		attempt_refuse(attempt, MRCD_REFUSAL_CLOSED, strerror(errno));
		return false;
	}
	if (n > 0) {
		hs->out_len -= (uint32_t)n;
		memmove(hs->out, hs->out + n, hs->out_len);
	}
	if (hs->out_len)
		event_add(&attempt->write_event, NULL);
	return true;
}

static const char *closed_why(const struct mrcd_tcp_attempt *attempt)
{
	if (!attempt->is_inbound)
		return "closed the connection in the handshake";
	if (attempt->hs.state == MRCD_HANDSHAKE_AUTH)
		return "closed the connection without a proof: has it another key?";
	return "closed the connection in the handshake";
}

static const char *timeout_why(const struct mrcd_tcp_attempt *attempt)
{
	if (attempt->question)
		return "no answer to the name lookup";
	if (attempt->is_connecting)
		return "no answer";
	return "did not finish the handshake in time";
}

static void on_read(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp_attempt *attempt = context;
	struct mrcd_handshake *hs = &attempt->hs;
	uint8_t bytes[MRCD_HANDSHAKE_BYTES_MAX];
	uint32_t want;

	if (attempt->failure)
		return; /* the timer tells */
	mrcd_worker_now(attempt->tcp->rail->worker);
	while ((want = mrcd_handshake_want(hs)) > 0) {
		ssize_t n = recv(fd, bytes, want, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			attempt_refuse(attempt, MRCD_REFUSAL_CLOSED,
				       n < 0 ? strerror(errno) : closed_why(attempt));
			return;
		}
		if (mrcd_handshake_take(hs, bytes, (uint32_t)n) < 0) {
			attempt_refuse(attempt, hs->refusal, hs->why);
			return;
		}
		if (!attempt_send(attempt))
			return;
	}
	/* What follows belongs to the link. */
	event_del(&attempt->read_event);
	if (mrcd_handshake_is_done(hs) && !hs->out_len)
		attempt_promote(attempt);
}

static void on_write(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp_attempt *attempt = context;
	struct mrcd_handshake_device device;
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer);
	int error = 0;
	socklen_t error_len = sizeof(error);

	if (attempt->failure)
		return; /* the timer tells */
	mrcd_worker_now(attempt->tcp->rail->worker);
	if (attempt->is_connecting) {
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
		if (error) {
			attempt_fail(attempt, strerror(error));
			return;
		}
		attempt->is_connecting = false;
		/* A link-local one has its interface now. */
		if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0) {
			attempt->address = peer;
			attempt->address_len = peer_len;
		}
		timer_set(attempt, MRC_NEVER);
		mrcd_tcp_tune(fd, USER_TIMEOUT_MS);
		mrcd_handshake_begin(&attempt->hs, attempt->tcp->rail, attempt->peer,
				     attempt->path_index, attempt->source,
				     device_ask(attempt->tcp, &device) ? &device : NULL);
		event_add(&attempt->read_event, NULL);
	}
	if (!attempt_send(attempt))
		return;
	if (mrcd_handshake_is_done(&attempt->hs) && !attempt->hs.out_len)
		attempt_promote(attempt);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp_attempt *attempt = context;

	mrcd_worker_now(attempt->tcp->rail->worker);
	if (attempt->failure)
		attempt_fail(attempt, attempt->failure);
	else
		attempt_refuse(attempt, MRCD_REFUSAL_TIMEOUT, timeout_why(attempt));
}

static struct mrcd_tcp_attempt *attempt_new(struct mrcd_tcp *tcp)
{
	struct mrcd_tcp_attempt *attempt = calloc(1, sizeof(*attempt));

	if (!attempt)
		return NULL;
	attempt->tcp = tcp;
	attempt->fd = -1;
	event_assign(&attempt->timer, tcp->rail->worker->base, -1, 0, on_timer, attempt);
	timer_set(attempt, MRC_NEVER);
	return attempt;
}

static void attempt_watch(struct mrcd_tcp_attempt *attempt, int fd)
{
	struct event_base *base = attempt->tcp->rail->worker->base;

	attempt->fd = fd;
	event_assign(&attempt->read_event, base, fd, EV_READ | EV_PERSIST, on_read, attempt);
	event_assign(&attempt->write_event, base, fd, EV_WRITE, on_write, attempt);
}

/* ---- in ---- */

/*
 * Who gives way when there are too many: the oldest, for a real peer is done within a round trip.
 * But one address with more than half of them pushes out none but its own.
 */
static struct mrcd_tcp_attempt *attempt_in_the_way(const struct mrcd_tcp *tcp)
{
	struct mrcd_tcp_attempt *attempt, *oldest = NULL;
	const char *most = "";
	uint32_t votes = 0, count = 0;

	/* Whoever has more than half outlives all others in this. */
	TAILQ_FOREACH(attempt, &tcp->inbound, entry)
	{
		if (votes == 0)
			most = attempt->source;
		votes = strcmp(attempt->source, most) == 0 ? votes + 1 : votes - 1;
	}
	TAILQ_FOREACH(attempt, &tcp->inbound, entry)
	{
		if (strcmp(attempt->source, most) != 0)
			continue;
		if (count++ == 0)
			oldest = attempt;
	}
	return count > tcp->inbound_count / 2 ? oldest : TAILQ_FIRST(&tcp->inbound);
}

void mrcd_tcp_attempt_inbound(struct mrcd_tcp *tcp, int fd, const struct sockaddr_storage *from,
			      socklen_t from_len)
{
	uint32_t max = MRC_MAX(tcp->rail->worker->conf->handshakes_max, 1U);
	struct mrcd_handshake_device device;
	struct mrcd_tcp_attempt *attempt;

	while (tcp->inbound_count >= max)
		attempt_refuse(attempt_in_the_way(tcp), MRCD_REFUSAL_CROWDED,
			       "too many unfinished handshakes, this was the first to go");
	attempt = attempt_new(tcp);
	if (!attempt) {
		close(fd);
		return;
	}
	attempt->is_inbound = true;
	TAILQ_INSERT_TAIL(&tcp->inbound, attempt, entry);
	tcp->inbound_count++;
	attempt->address = *from;
	attempt->address_len = from_len;
	mrcd_tcp_address_text(from, from_len, attempt->source);
	mrcd_tcp_tune(fd, USER_TIMEOUT_MS);
	attempt_watch(attempt, fd);
	mrcd_handshake_await(&attempt->hs, tcp->rail, attempt->source,
			     device_ask(tcp, &device) ? &device : NULL);
	event_add(&attempt->read_event, NULL);
}

/* ---- out ---- */

static void attempt_connect(struct mrcd_tcp_attempt *attempt, const struct sockaddr_storage *to,
			    socklen_t to_len)
{
	const struct mrcd_conf_rail *conf = attempt->tcp->rail->conf;
	struct mrcd_handshake_device device;
	struct sockaddr_storage own;
	socklen_t own_len;
	int fd;

	attempt->address = *to;
	attempt->address_len = to_len;
	mrcd_tcp_address_text(to, to_len, attempt->source);
	/* The other end need not hear of it. */
	if (device_ask(attempt->tcp, &device) && device.is_required && !device.is_usable) {
		attempt->failure = MRCD_WHY_NO_DEVICE_HERE;
		event_active(&attempt->timer, EV_TIMEOUT, 0);
		return;
	}
	if (attempt->tcp->is_cut) {
		attempt->is_connecting = true;
		timer_set(attempt, ANSWER_TIMEOUT_NS);
		return;
	}
	fd = mrcd_nic_own_address(attempt->tcp->rail, &own, &own_len);
	if (fd == 0)
		fd = mrcd_tcp_connect(conf, &own, own_len, to, to_len);
	if (fd < 0) {
		attempt->failure = strerror(-fd);
		event_active(&attempt->timer, EV_TIMEOUT, 0);
		return;
	}
	attempt->is_connecting = true;
	timer_set(attempt, ANSWER_TIMEOUT_NS);
	attempt_watch(attempt, fd);
	event_add(&attempt->write_event, NULL);
}

static void on_resolved(void *context, const struct sockaddr_storage *address,
			socklen_t address_len, const char *why)
{
	struct mrcd_tcp_attempt *attempt = context;

	mrcd_worker_now(attempt->tcp->rail->worker);
	attempt->question = NULL;
	if (why)
		attempt_fail(attempt, why);
	else
		attempt_connect(attempt, address, address_len);
}

bool mrcd_tcp_attempt_exists(const struct mrcd_tcp *tcp, const struct mrcd_peer *peer,
			     uint8_t path_index)
{
	const struct mrcd_tcp_attempt *attempt;

	TAILQ_FOREACH(attempt, &tcp->outbound[bucket_of(peer)], entry)
	{
		if (attempt->peer == peer && attempt->path_index == path_index)
			return true;
	}
	return false;
}

void mrcd_tcp_attempt_outbound(struct mrcd_tcp *tcp, struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_tcp_attempt *attempt;
	struct sockaddr_storage to, own;
	socklen_t to_len, own_len;
	const char *address;
	uint16_t port;
	int family;

	if (mrcd_tcp_attempt_exists(tcp, peer, path_index))
		return;
	attempt = attempt_new(tcp);
	if (!attempt) {
		mrcd_peer_on_connect_failed(peer, path_index, strerror(ENOMEM));
		return;
	}
	attempt->peer = peer;
	attempt->path_index = path_index;
	TAILQ_INSERT_TAIL(&tcp->outbound[bucket_of(peer)], attempt, entry);

	address = mrcd_peer_path_address(peer, path_index, &port);
	if (mrcd_resolve_numeric(address, port, &to, &to_len) == 0) {
		attempt_connect(attempt, &to, to_len);
		return;
	}
	family = mrcd_nic_own_address(tcp->rail, &own, &own_len) == 0 ? own.ss_family : AF_UNSPEC;
	if (mrcd_resolve_name(tcp->resolver, address, port, family, on_resolved, attempt,
			      &attempt->question) < 0) {
		attempt->failure = strerror(ENOMEM);
		event_active(&attempt->timer, EV_TIMEOUT, 0);
	}
}

/* Its owner is told when the loop comes to it, not in here. */
static void bucket_fail(struct mrcd_tcp_bucket *bucket, const char *why)
{
	struct mrcd_tcp_attempt *attempt;

	TAILQ_FOREACH(attempt, bucket, entry)
	{
		if (attempt->question) {
			mrcd_resolve_cancel(attempt->question);
			attempt->question = NULL;
		}
		attempt->failure = why;
		event_active(&attempt->timer, EV_TIMEOUT, 0);
	}
}

void mrcd_tcp_attempts_fail(struct mrcd_tcp *tcp, const char *why)
{
	while (!TAILQ_EMPTY(&tcp->inbound))
		attempt_free(TAILQ_FIRST(&tcp->inbound));
	for (uint32_t i = 0; i < MRCD_TCP_BUCKETS; i++)
		bucket_fail(&tcp->outbound[i], why);
}

static void bucket_drop(struct mrcd_tcp_bucket *bucket, const struct mrcd_peer *peer)
{
	struct mrcd_tcp_attempt *attempt, *next;

	for (attempt = TAILQ_FIRST(bucket); attempt; attempt = next) {
		next = TAILQ_NEXT(attempt, entry);
		if (!peer || attempt->peer == peer)
			attempt_free(attempt);
	}
}

void mrcd_tcp_attempts_drop(struct mrcd_tcp *tcp, const struct mrcd_peer *peer)
{
	struct mrcd_tcp_attempt *attempt, *next;

	if (peer)
		bucket_drop(&tcp->outbound[bucket_of(peer)], peer);
	for (uint32_t i = 0; i < MRCD_TCP_BUCKETS && !peer; i++)
		bucket_drop(&tcp->outbound[i], NULL);
	for (attempt = TAILQ_FIRST(&tcp->inbound); attempt; attempt = next) {
		next = TAILQ_NEXT(attempt, entry);
		if (!peer || attempt->hs.peer == peer)
			attempt_free(attempt);
	}
}
