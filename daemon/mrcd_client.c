/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client - the clients' socket, the turn, a client's beginning and end (mrcd_client_impl.h) */
#include "mrcd_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcd_client_impl.h"
#include "mrcd_fds.h"
#include "mrcd_log.h"
#include "mrcd_sigbus.h"
#include "mrcd_timeval.h"

#define SPINS_WATCHED   4U  /* so long an idle client is looked at: a trial of mrc_look.h is 3 */
#define ACCEPTS_MAX     16U /* new connections in one turn */
#define ACCEPT_RETRY_NS (100 * MRC_MS)

/* The C library wants its control buffer aligned as a cmsghdr. */
union fd_cmsg {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MRC_ABI_FD_COUNT)];
};

/* ---- looking clients and channels up ---- */

uint64_t mrcd_client_cookie(const struct mrcd_client *client, const struct mrcd_channel *channel)
{
	return (uint64_t)client->index << 48 | (uint64_t)(client->generation & 0xffff) << 32 |
	       channel->id;
}

struct mrcd_channel *mrcd_client_side_channel(const struct mrcd_client_side *side, uint64_t cookie,
					      struct mrcd_client **client_out)
{
	uint64_t index = cookie >> 48;
	uint32_t id = (uint32_t)cookie;
	struct mrcd_client *client;
	struct mrcd_channel *channel;
	uint32_t slot;

	*client_out = NULL;
	if (id == 0 || index >= side->slot_count)
		return NULL;
	client = side->clients[index];
	if (client == NULL || (client->generation & 0xffff) != (cookie >> 32 & 0xffff))
		return NULL;
	slot = id & ((1U << client->channel_bits) - 1);
	if (slot >= client->channels_max)
		return NULL;
	channel = &client->channels[slot];
	if (channel->id != id)
		return NULL;
	*client_out = client;
	return channel;
}

const void *mrcd_send_memory(struct mrcd_worker *worker, uint64_t channel_cookie, uint64_t addr,
			     uint64_t len)
{
	struct mrcd_client *client;

	if (worker->clients == NULL ||
	    mrcd_client_side_channel(worker->clients, channel_cookie, &client) == NULL ||
	    client->is_dead)
		return NULL;
	if (addr > client->send_arena.len_bytes || len > client->send_arena.len_bytes - addr)
		return NULL;
	return client->send_arena.addr + addr;
}

struct mrcd_region *mrcd_send_region(struct mrcd_worker *worker, uint64_t channel_cookie)
{
	struct mrcd_client *client;

	if (worker->clients == NULL ||
	    mrcd_client_side_channel(worker->clients, channel_cookie, &client) == NULL ||
	    client->is_dead)
		return NULL;
	return client->send_region;
}

void *mrcd_landing_memory(struct mrcd_worker *worker, const struct mrc_place *place, uint64_t len)
{
	struct mrcd_client *client;
	struct mrcd_channel *channel;
	uint64_t start = 0;
	uint64_t end;

	if (place->is_scratch || worker->clients == NULL)
		return NULL;
	channel = mrcd_client_side_channel(worker->clients, place->channel_cookie, &client);
	if (channel == NULL || client->is_dead)
		return NULL;
	end = mrcd_arena_size_bytes(client->buffer_arena);
	if (place->is_eager) {
		start = channel->ring_offset;
		end = channel->ring_bytes;
	}
	if (place->addr > end || len > end - place->addr)
		return NULL;
	return client->landing.addr + start + place->addr;
}

/* ---- telling the engine ---- */

void mrcd_client_side_schedule(struct mrcd_client_side *side)
{
	struct timeval now = {0};

	/* Paused, nothing is read; what must be done all the same, mrcd_client_side_settle() does. */
	if (side->is_turn_due || side->is_paused)
		return;
	side->is_turn_due = true;
	/* By the timer: made active from its own callback it would run again before any I/O. */
	event_add(side->turn_event, &now);
}

int mrcd_client_side_tell(struct mrcd_client_side *side, struct mrcd_peer *peer,
			  const struct mrc_event_in *ev)
{
	int r = mrcd_peer_handle(peer, ev);

	if (peer == side->performing)
		return r;
	for (uint32_t i = 0; i < side->touched_count; i++)
		if (side->touched[i] == peer)
			return r;
	MRC_ASSERT(side->touched_count < side->touched_max);
	side->touched[side->touched_count++] = peer;
	mrcd_client_side_schedule(side);
	return r;
}

void mrcd_client_side_flush(struct mrcd_client_side *side)
{
	struct mrcd_client *client;

	while ((client = TAILQ_FIRST(&side->bells)) != NULL) {
		TAILQ_REMOVE(&side->bells, client, bell_entry);
		client->is_bell_due = false;
		mrcd_client_ring_bell(client);
	}
}

void mrcd_client_side_arm(struct mrcd_client_side *side, uint64_t deadline_ns)
{
	struct timeval wait;

	if (deadline_ns >= side->deadline_ns)
		return;
	side->deadline_ns = deadline_ns;
	wait = mrcd_timeval_of(
		deadline_ns > side->worker->now_ns ? deadline_ns - side->worker->now_ns : 0);
	event_add(side->deadline_event, &wait);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;
	uint64_t now_ns = mrcd_worker_now(side->worker);
	uint64_t first_ns = MRC_NEVER;

	side->deadline_ns = MRC_NEVER;
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];
		uint64_t next_ns;

		if (client == NULL || client->is_dead)
			continue;
		next_ns = client->deadline_ns;
		if (next_ns <= now_ns)
			mrcd_client_expire(client, now_ns, &next_ns);
		first_ns = MRC_MIN(first_ns, next_ns);
	}
	mrcd_client_side_arm(side, first_ns);
	mrcd_client_side_flush(side);
}

/* ---- a client's end ---- */

static void dead_later(struct mrcd_client *client)
{
	if (client->is_dead_due)
		return;
	client->is_dead_due = true;
	TAILQ_INSERT_TAIL(&client->side->dead, client, dead_entry);
	mrcd_client_side_schedule(client->side);
}

static void client_mark_dead(struct mrcd_client *client)
{
	client->is_dead = true;
	client->side->client_alive_count--;
	dead_later(client);
}

void mrcd_client_break(struct mrcd_client *client, const char *format, ...)
{
	struct mrcd_client_side *side = client->side;
	uint64_t held_back;
	char why[160], more[MRCD_LOG_HELD_BACK_BYTES];
	va_list args;

	if (client->is_dead)
		return;
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (mrcd_log_allowed(&side->log_broken, side->worker->now_ns, &held_back))
		mrcd_warn("client %s (pid %d): %s; ended%s", client->name, (int)client->creds.pid,
			  why, mrcd_log_held_back(held_back, more));
	client_mark_dead(client);
}

void mrcd_client_reap_later(struct mrcd_client *client)
{
	dead_later(client);
}

static void client_unlist(struct mrcd_client *client)
{
	struct mrcd_client_side *side = client->side;

	if (client->is_active)
		TAILQ_REMOVE(&side->active, client, active_entry);
	if (client->is_bell_due)
		TAILQ_REMOVE(&side->bells, client, bell_entry);
	client->is_active = client->is_bell_due = false;
}

/* Take dead clients apart; free those of which the engine has freed all. */
static void dead_bury(struct mrcd_client_side *side)
{
	struct mrcd_client *client;

	while ((client = TAILQ_FIRST(&side->dead)) != NULL) {
		if (!client->is_apart) {
			client->is_apart = true;
			mrcd_client_abort_channels(client);
			client_unlist(client);
			mrcd_client_close(client);
		}
		/* Last, so that what abort_channels() freed is not listed twice. */
		TAILQ_REMOVE(&side->dead, client, dead_entry);
		client->is_dead_due = false;
		if (client->channel_count > 0)
			continue;
		mrcd_info("client %s (pid %d): gone, all of its memory is free", client->name,
			  (int)client->creds.pid);
		side->clients[client->index] = NULL;
		side->client_count--;
		mrcd_client_free(client);
	}
}

bool mrcd_client_side_settle(struct mrcd_client_side *side)
{
	bool is_any = !TAILQ_EMPTY(&side->dead) || side->touched_count > 0;

	MRC_ASSERT(side->is_paused);
	dead_bury(side);
	side->touched_count = 0; /* whoever pauses us pumps all peers */
	mrcd_client_side_flush(side);
	return is_any;
}

/* ---- the turn ---- */

void mrcd_client_activate(struct mrcd_client *client)
{
	if (client->is_active || client->is_dead)
		return;
	client->is_active = true;
	client->idle_since_ns = client->side->worker->now_ns;
	TAILQ_INSERT_TAIL(&client->side->active, client, active_entry);
	__atomic_store_n(&client->shm->daemon_sleeping, 0, __ATOMIC_RELAXED);
	mrcd_client_side_schedule(client->side);
}

/* While the worker looks for work it looks here too, unless this client has been idle for long. */
static bool client_is_watched(const struct mrcd_client *client, uint64_t now_ns)
{
	const struct mrcd_worker *worker = client->side->worker;

	return worker->look.is_looking &&
	       now_ns - client->idle_since_ns < SPINS_WATCHED * worker->conf->spin_ns;
}

/* One client's part of a turn. Answers whether there was anything; *stays_out: look again next turn. */
static bool client_turn(struct mrcd_client *client, uint64_t now_ns, bool *stays_out)
{
	uint32_t done;

	*stays_out = false;
	if (client->is_hung_up) {
		/* To the last published entry: a commit before exit counts. */
		mrcd_client_take_seen(client, UINT32_MAX);
		mrcd_client_take_submissions(client, UINT32_MAX);
		if (!client->is_dead)
			client_mark_dead(client);
		return true;
	}
	/* Completions first, so that VISIBLE is known before what follows from it. */
	done = mrcd_client_take_seen(client, MRCD_TURN_SEEN_MAX);
	done += mrcd_client_take_submissions(client, MRCD_TURN_ENTRIES_MAX);
	if (client->is_dead)
		return true;
	if (done > 0)
		client->idle_since_ns = now_ns;
	*stays_out = done > 0 || client_is_watched(client, now_ns) || !mrcd_client_sleep(client);
	return done > 0;
}

void mrcd_client_side_turn(struct mrcd_client_side *side)
{
	uint64_t now_ns = mrcd_worker_now(side->worker);
	struct mrcd_client *last = TAILQ_LAST(&side->active, mrcd_client_list);
	struct mrcd_client *client;
	bool had_work = !TAILQ_EMPTY(&side->dead) || side->touched_count > 0;
	uint32_t pump_count;

	if (side->is_paused)
		return; /* mrcd_client_side_settle() does what is to be done all the same */
	/* Each once; who stays goes to the end of the line. */
	while (last != NULL && (client = TAILQ_FIRST(&side->active)) != NULL) {
		bool stays;

		TAILQ_REMOVE(&side->active, client, active_entry);
		client->is_active = false;
		had_work |= client_turn(client, now_ns, &stays);
		if (stays) {
			client->is_active = true;
			TAILQ_INSERT_TAIL(&side->active, client, active_entry);
		}
		if (client == last)
			break;
	}
	dead_bury(side);

	/* Pumping one peer may touch another (a buffer freed by one is granted to the next): next turn. */
	pump_count = side->touched_count;
	memcpy(side->pumping, side->touched, pump_count * sizeof(struct mrcd_peer *));
	side->touched_count = 0;
	for (uint32_t i = 0; i < pump_count; i++)
		mrcd_peer_pump(side->pumping[i]);
	mrcd_client_side_flush(side);
	if (had_work)
		mrcd_worker_worked(side->worker);
	if (!TAILQ_EMPTY(&side->active))
		mrcd_client_side_schedule(side);
}

static void on_turn(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;

	side->is_turn_due = false;
	mrcd_client_side_turn(side);
}

static void on_bell(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client *client = context;

	/* Edge triggered and never read: a client that shares the descriptor could make a read block. */
	mrcd_worker_now(client->side->worker);
	mrcd_client_activate(client);
	/* Now, after the other events of this turn of the loop, not after another look at the kernel. */
	event_active(client->side->turn_event, EV_TIMEOUT, 0);
}

static void on_bell_lookout(struct mrcd_lookout_source *source)
{
	mrcd_client_activate((void *)((char *)source - offsetof(struct mrcd_client, bell_source)));
}

static void client_hang_up(struct mrcd_client *client)
{
	client->is_hung_up = true;
	event_del(client->socket_event);
	mrcd_client_activate(client);
}

static void on_socket(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client *client = context;
	struct mrc_abi_request request;

	mrcd_worker_now(client->side->worker);
	for (uint32_t i = 0; i < MRCD_TURN_REQUESTS_MAX && !client->is_dead; i++) {
		ssize_t len = recv(fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);

		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (len <= 0) {
			client_hang_up(client);
			break;
		}
		if (len != (ssize_t)sizeof(request))
			mrcd_client_break(client, "it made a request of %zd bytes", len);
		else
			mrcd_client_request(client, &request);
	}
	if (client->is_dead)
		event_del(client->socket_event);
	mrcd_client_side_flush(client->side);
}

/* After a SIGBUS somewhere: whose memory was it? */
static void on_sigbus_bell(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
	mrcd_worker_now(side->worker);
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		if (mrcd_sigbus_has_hit(client->rings.sigbus_slot) ||
		    mrcd_sigbus_has_hit(client->send_arena.sigbus_slot) ||
		    (client->landing.sigbus_slot != UINT32_MAX &&
		     mrcd_sigbus_has_hit(client->landing.sigbus_slot)))
			mrcd_client_break(client, "its memory went away under the daemon");
	}
}

/* ---- attaching ---- */

static void pending_free(struct mrcd_pending *pending)
{
	TAILQ_REMOVE(&pending->side->pendings, pending, entry);
	pending->side->pending_count--;
	if (pending->event != NULL)
		event_free(pending->event);
	if (pending->fd >= 0)
		close(pending->fd);
	free(pending);
}

static int welcome_send(int fd, const struct mrc_abi_welcome *welcome, const int *fds)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)welcome, .iov_len = sizeof(*welcome)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_cmsg control = {0};

	if (fds != NULL) {
		struct cmsghdr *cmsg = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * MRC_ABI_FD_COUNT);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * MRC_ABI_FD_COUNT);
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void attach_refuse(struct mrcd_client_side *side, int fd, int status, const char *text)
{
	struct mrc_abi_welcome welcome = {
		.magic = MRC_ABI_MAGIC,
		.version = MRC_ABI_VERSION,
		.status = status,
		.generation = side->worker->boot_id,
	};
	uint64_t held_back;
	char more[MRCD_LOG_HELD_BACK_BYTES];

	snprintf(welcome.host, sizeof(welcome.host), "%s", side->worker->conf->host);
	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	if (mrcd_log_allowed(&side->log_refused, side->worker->now_ns, &held_back))
		mrcd_notice("a program was refused: %s%s", text,
			    mrcd_log_held_back(held_back, more));
	welcome_send(fd, &welcome, NULL);
}

int mrcd_client_meet(struct mrcd_client *client)
{
	struct event_base *base = client->side->worker->base;
	int r = mrcd_creds_of(client->fd, &client->creds);

	if (r < 0)
		return r;
	client->socket_event = event_new(base, client->fd, EV_READ | EV_PERSIST, on_socket, client);
	client->bell_event =
		event_new(base, client->bell_fd, EV_READ | EV_PERSIST | EV_ET, on_bell, client);
	return client->socket_event == NULL || client->bell_event == NULL ? -ENOMEM : 0;
}

int mrcd_client_watch(struct mrcd_client *client)
{
	if (event_add(client->socket_event, NULL) < 0 || event_add(client->bell_event, NULL) < 0)
		return -ENOMEM;
	client->bell_source.on_readable = on_bell_lookout;
	mrcd_lookout_add(client->side->worker->lookout, client->bell_fd, &client->bell_source,
			 true);
	return 0;
}

void mrcd_client_list(struct mrcd_client *client, uint32_t index, uint32_t generation)
{
	struct mrcd_client_side *side = client->side;

	MRC_ASSERT(index < side->slot_count);
	MRC_ASSERT(side->clients[index] == NULL);
	client->index = index;
	client->generation = generation;
	side->clients[index] = client;
	side->client_count++;
	side->client_alive_count++;
}

/* A new client, in the first free slot. Takes over fd on success. */
static int client_begin(struct mrcd_client_side *side, struct mrcd_client *client, int fd)
{
	uint32_t index = 0;
	int r;

	while (side->clients[index] != NULL)
		index++;
	client->fd = fd;
	r = mrcd_client_meet(client);
	if (r == 0)
		r = mrcd_client_watch(client);
	if (r < 0) {
		client->fd = -1;
		return r;
	}
	mrcd_client_list(client, index, ++side->generations[index]);
	return 0;
}

static void on_pending(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_pending *pending = context;
	struct mrcd_client_side *side = pending->side;
	struct mrc_abi_attach attach = {0};
	struct mrc_abi_welcome welcome;
	char text[MRC_ABI_TEXT_BYTES] = "";
	struct mrcd_client *client = NULL;
	int fds[MRC_ABI_FD_COUNT] = {[0 ... MRC_ABI_FD_COUNT - 1] = -1};
	struct mrcd_conf_quota quota;
	struct mrcd_creds creds = {0};
	uint32_t version;
	ssize_t len;
	int r;

	mrcd_worker_now(side->worker);
	len = (what & EV_TIMEOUT) != 0
		      ? 0
		      : recv(fd, &attach, sizeof(attach), MSG_DONTWAIT | MSG_TRUNC);
	if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (len <= 0 || mrcd_creds_of(fd, &creds) < 0) {
		mrcd_creds_fini(&creds);
		pending_free(pending); /* said nothing in time, or has gone */
		return;
	}
	mrcd_conf_quota(side->worker->conf, &creds, &quota);
	r = mrcd_attach_check(side, &attach, len, creds.uid, &quota, &version, text, sizeof(text));
	mrcd_creds_fini(&creds);
	if (r == 0)
		r = mrcd_client_new(side, &attach, version, &quota, &client, fds, text,
				    sizeof(text));
	if (r < 0) {
		attach_refuse(side, fd, r, text);
		pending_free(pending);
		return;
	}
	MRC_ASSERT(client != NULL);
	/* First the event: only one may watch the descriptor. */
	event_free(pending->event);
	pending->event = NULL;
	mrcd_client_welcome(client, version, &welcome);
	r = client_begin(side, client, fd);
	if (r < 0) {
		attach_refuse(side, fd, r, "the daemon is out of memory");
		mrcd_client_close(client);
		mrcd_client_free(client);
	} else {
		pending->fd = -1;
		mrcd_info("client %s (pid %d, uid %d) attached", client->name,
			  (int)client->creds.pid, (int)client->creds.uid);
		r = welcome_send(fd, &welcome, fds);
		if (r < 0)
			client_hang_up(client); /* it has gone already */
		else
			mrcd_client_tell_drain(client);
	}
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		if (!mrcd_attach_is_lent((enum mrc_abi_fd)i))
			close(fds[i]);
	pending_free(pending);
}

/*
 * Who gives way when there are too many: the oldest, which has had the longest time to speak, while
 * who is honest speaks at once. But one user with more than half of them pushes out none but its own.
 */
static struct mrcd_pending *pending_in_the_way(const struct mrcd_client_side *side)
{
	struct mrcd_pending *pending, *oldest = NULL;
	uint32_t votes = 0, count = 0;
	uid_t most = 0;

	/* Whoever has more than half outlives all others in this. */
	TAILQ_FOREACH(pending, &side->pendings, entry)
	{
		if (votes == 0)
			most = pending->uid;
		votes = pending->uid == most ? votes + 1 : votes - 1;
	}
	TAILQ_FOREACH(pending, &side->pendings, entry)
	{
		if (pending->uid != most)
			continue;
		if (count++ == 0)
			oldest = pending;
	}
	return count > side->pending_count / 2 ? oldest : TAILQ_FIRST(&side->pendings);
}

void mrcd_pending_new(struct mrcd_client_side *side, int fd)
{
	struct timeval timeout = mrcd_timeval_of(side->worker->conf->handshake_timeout_ns);
	struct mrcd_pending *pending = calloc(1, sizeof(*pending));
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t cred_bytes = sizeof(cred);

	if (pending == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) < 0) {
		free(pending);
		close(fd);
		return;
	}
	if (side->pending_count >= side->pendings_max)
		pending_free(pending_in_the_way(side));
	pending->side = side;
	pending->uid = cred.uid;
	pending->fd = fd;
	TAILQ_INSERT_TAIL(&side->pendings, pending, entry);
	side->pending_count++;
	pending->event =
		event_new(side->worker->base, fd, EV_READ | EV_PERSIST, on_pending, pending);
	if (pending->event == NULL || event_add(pending->event, &timeout) < 0)
		pending_free(pending);
}

static void on_listen(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;
	struct timeval retry = mrcd_timeval_of(ACCEPT_RETRY_NS);

	for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
		int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client_fd >= 0) {
			mrcd_pending_new(side, client_fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			uint64_t held_back;

			if (mrcd_log_allowed(&side->log_refused, mrcd_worker_now(side->worker),
					     &held_back))
				mrcd_err("cannot take new clients: %s; trying again in 100 ms",
					 strerror(errno));
			event_del(side->listen_event);
			event_add(side->listen_retry_event, &retry);
		}
		return;
	}
}

static void on_listen_retry(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;

	event_add(side->listen_event, NULL);
}

/* ---- the whole ---- */

void mrcd_client_side_path(const struct mrcd_worker *worker, char path_out[MRCD_SOCKET_PATH_BYTES])
{
	snprintf(path_out, MRCD_SOCKET_PATH_BYTES, "%s/mrcd.sock", worker->conf->runtime_dir);
}

/* Bind path; a socket that a daemon before us left behind is replaced, one that answers is not. */
static int socket_listen(const char *path, int *fd_out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;
	int r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	if (r == -EADDRINUSE) {
		int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (probe >= 0 && connect(probe, (struct sockaddr *)&addr, sizeof(addr)) < 0 &&
		    errno == ECONNREFUSED && unlink(path) == 0)
			r = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
		if (probe >= 0)
			close(probe);
	}
	/* Who may do what is decided by SO_PEERCRED and the services' rules, not here. */
	if (r == 0 && (chmod(path, 0666) < 0 || listen(fd, 128) < 0))
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

int mrcd_client_side_new(struct mrcd_worker *worker, int listen_fd,
			 struct mrcd_client_side **clients_out)
{
	struct mrcd_client_side *side;
	int r;

	/* Bells are watched by edges; every backend but Linux' own lacks them. */
	if ((event_base_get_features(worker->base) & EV_FEATURE_ET) == 0)
		return -ENOTSUP;
	side = calloc(1, sizeof(*side));
	if (side == NULL)
		return -ENOMEM;
	side->worker = worker;
	side->limits = &worker->conf->clients;
	side->listen_fd = listen_fd;
	side->sigbus_fd = -1;
	side->deadline_ns = MRC_NEVER;
	side->sample_left = 1;
	side->slot_count = MRC_MIN(side->limits->clients_max, MRCD_CLIENTS_MAX);
	side->pendings_max = MRC_MAX(worker->conf->handshakes_max, 1U);
	side->fd_end = mrcd_fds_end(worker->conf);
	side->touched_max = worker->peer_count + 2;
	side->log_refused = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 10);
	side->log_broken = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 20);
	side->log_huge = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 4);
	mrcd_client_side_poison_read(side);
	TAILQ_INIT(&side->pendings);
	TAILQ_INIT(&side->active);
	TAILQ_INIT(&side->bells);
	TAILQ_INIT(&side->dead);
	MRC_ASSERT(side->limits->window_messages > 0);
	MRC_ASSERT((side->limits->window_messages & (side->limits->window_messages - 1)) == 0);

	r = -ENOMEM;
	side->clients = calloc(side->slot_count, sizeof(struct mrcd_client *));
	side->generations = calloc(side->slot_count, sizeof(*side->generations));
	side->touched = calloc(side->touched_max, sizeof(struct mrcd_peer *));
	side->pumping = calloc(side->touched_max, sizeof(struct mrcd_peer *));
	if (side->clients == NULL || side->generations == NULL || side->touched == NULL ||
	    side->pumping == NULL)
		goto err;
	r = mrcd_sigbus_install();
	if (r < 0)
		goto err;
	side->sigbus_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (side->sigbus_fd < 0) {
		r = -errno;
		goto err;
	}
	if (listen_fd < 0) {
		mrcd_client_side_path(worker, side->path);
		r = socket_listen(side->path, &side->listen_fd);
		if (r < 0) {
			mrcd_err("cannot listen for clients at %s: %s", side->path,
				 r == -EADDRINUSE ? "another daemon is using it" : strerror(-r));
			side->path[0] = 0;
			goto err;
		}
	} else if (evutil_make_socket_nonblocking(listen_fd) < 0 ||
		   evutil_make_socket_closeonexec(listen_fd) < 0) {
		r = -EIO;
		goto err;
	}
	side->listen_event =
		event_new(worker->base, side->listen_fd, EV_READ | EV_PERSIST, on_listen, side);
	side->listen_retry_event = evtimer_new(worker->base, on_listen_retry, side);
	side->turn_event = evtimer_new(worker->base, on_turn, side);
	side->deadline_event = evtimer_new(worker->base, on_deadline, side);
	side->sigbus_event = event_new(worker->base, side->sigbus_fd, EV_READ | EV_PERSIST,
				       on_sigbus_bell, side);
	r = -ENOMEM;
	if (side->listen_event == NULL || side->listen_retry_event == NULL ||
	    side->turn_event == NULL || side->deadline_event == NULL ||
	    side->sigbus_event == NULL || event_add(side->listen_event, NULL) < 0 ||
	    event_add(side->sigbus_event, NULL) < 0)
		goto err;
	*clients_out = side;
	return 0;
err:
	mrcd_client_side_free(side);
	return r;
}

void mrcd_client_side_own(struct mrcd_client_side *side)
{
	mrcd_client_side_path(side->worker, side->path);
}

static void event_free_any(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

void mrcd_client_side_free(struct mrcd_client_side *side)
{
	struct mrcd_pending *pending;

	if (side == NULL)
		return;
	while ((pending = TAILQ_FIRST(&side->pendings)) != NULL) {
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		pending_free(pending); /* NOLINT(clang-analyzer-unix.Malloc) */
	}
	for (uint32_t i = 0; side->clients != NULL && i < side->slot_count; i++) {
		mrcd_client_close(side->clients[i]);
		mrcd_client_free(side->clients[i]);
	}
	event_free_any(side->listen_event);
	event_free_any(side->listen_retry_event);
	event_free_any(side->turn_event);
	event_free_any(side->deadline_event);
	event_free_any(side->sigbus_event);
	event_free_any(side->poison_event);
	if (side->listen_fd >= 0)
		close(side->listen_fd);
	if (side->sigbus_fd >= 0)
		close(side->sigbus_fd);
	if (side->path[0] != 0)
		unlink(side->path);
	free(side->clients);
	free(side->generations);
	free(side->touched);
	free(side->pumping);
	free(side);
}

/* ---- for mrcctl ---- */

static uint64_t landing_used_bytes(const struct mrcd_client *client)
{
	return mrcd_arena_used_bytes(client->ring_arena) +
	       mrcd_arena_used_bytes(client->buffer_arena);
}

static json_t *quota_json(const struct mrcd_quota *quota)
{
	const struct mrcd_conf_quota *max = &quota->max;

	return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:I}", "channels_max",
			 (json_int_t)max->channels_max, "sends_max", (json_int_t)max->sends_max,
			 "send_arena_bytes_max", (json_int_t)max->send_arena_bytes,
			 "landing_arena_bytes_max", (json_int_t)max->landing_arena_bytes,
			 "in_flight_bytes_max", (json_int_t)max->in_flight_bytes_max,
			 "rate_bits_per_s", (json_int_t)max->rate_bits_per_s, "weight",
			 (json_int_t)max->weight, "waits", (json_int_t)quota->waits);
}

json_t *mrcd_client_side_json(const struct mrcd_client_side *side)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < side->slot_count; i++) {
		const struct mrcd_client *client = side->clients[i];
		json_t *object;

		if (client == NULL)
			continue;
		object = json_pack("{s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
				   "s:I, s:I}",
				   "name", client->name, "pid", (json_int_t)client->creds.pid,
				   "uid", (json_int_t)client->creds.uid, "ending", client->is_dead,
				   "channels", (json_int_t)client->channel_count, "listeners",
				   (json_int_t)client->listener_count, "sends_outstanding",
				   (json_int_t)client->send_count, "send_arena_bytes",
				   (json_int_t)client->send_arena.len_bytes, "landing_arena_bytes",
				   (json_int_t)client->landing.len_bytes, "send_page_bytes",
				   (json_int_t)client->send_arena.page_bytes, "landing_page_bytes",
				   (json_int_t)client->landing.page_bytes, "landing_used_bytes",
				   (json_int_t)landing_used_bytes(client), "completions",
				   (json_int_t)client->completions, "submissions",
				   (json_int_t)client->submissions);
		json_object_set_new(object, "abi_version",
				    json_integer((json_int_t)client->abi_version));
		json_object_set_new(object, "in_flight_bytes",
				    json_integer((json_int_t)client->quota.in_flight_bytes));
		json_object_set_new(object, "quota", quota_json(&client->quota));
		if (client->poison != NULL)
			json_object_set_new(object, "late_writes",
					    json_integer((json_int_t)client->late_writes));
		json_array_append_new(array, object);
	}
	return array;
}

void mrcd_client_side_each_waiting(const struct mrcd_client_side *side,
				   void (*each)(void *context, struct mrcd_peer *peer,
						uint64_t since_ns),
				   void *context)
{
	for (uint32_t i = 0; i < side->slot_count; i++) {
		const struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead || client->send_count == 0)
			continue;
		for (uint32_t c = 0; c < client->channels_max; c++) {
			const struct mrcd_channel *channel = &client->channels[c];

			if (channel->state != MRCD_CHANNEL_FREE && channel->stall.outstanding > 0)
				each(context, channel->peer, channel->stall.since_ns);
		}
	}
}

void mrcd_client_side_describe(const struct mrcd_client_side *side, uint64_t channel_cookie,
			       json_t *object)
{
	struct mrcd_client *client;
	const struct mrcd_channel *channel =
		mrcd_client_side_channel(side, channel_cookie, &client);

	if (channel == NULL)
		return;
	json_object_set_new(object, "client", json_string(client->name));
	json_object_set_new(object, "pid", json_integer(client->creds.pid));
	json_object_set_new(object, "service", json_string(channel->service));
	json_object_set_new(object, "trace_every", json_integer(channel->trace_every));
}

void mrcd_client_side_trace(struct mrcd_client_side *side, uint64_t channel_cookie, uint32_t every)
{
	struct mrcd_client *client;
	struct mrcd_channel *channel = mrcd_client_side_channel(side, channel_cookie, &client);

	if (channel != NULL)
		mrcd_channel_trace(client, channel, every);
}

uint32_t mrcd_client_side_count(const struct mrcd_client_side *side)
{
	return side->client_alive_count;
}
