/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_attach - what a client is made of: memfds, mappings, bells, pools
 *
 * Pools are taken whole at attach and zeroed by the kernel page by page as they
 * are first used, so that a client that does little costs little.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_client_impl.h"
#include "mrcd_fds.h"
#include "mrcd_memfd.h"
#include "mrcd_sigbus.h"

#define EAGER_BYTES_DEFAULT (32U * 1024U) /* struct mrc_limits */

static uint64_t power_of_two_above(uint64_t value)
{
	uint64_t power = 1;

	while (power < value)
		power <<= 1;
	return power;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/*
 * Entries that can lie unread while a client keeps to the rules: an answer for
 * each outstanding send, and a second one for those that were told undecided; a
 * window of arrivals for each channel, half as many
 * gaps (more are not told: the numbers of later arrivals show them), and its
 * INCOMING, CONNECTED, DRAIN and CLOSED; answers without a channel; and this host's DRAIN.
 */
static uint64_t cq_entries_needed(uint32_t sends_max, uint32_t channels_max, uint32_t window)
{
	return (uint64_t)sends_max + MRCD_UNDECIDED_MAX(sends_max) +
	       (uint64_t)channels_max * (window + window / 2 + 4) + MRCD_ANSWERS_MAX + 1;
}

int mrcd_attach_check(const struct mrcd_client_side *side, const struct mrc_abi_attach *attach,
		      ssize_t len_bytes, uid_t uid, const struct mrcd_conf_quota *quota,
		      uint32_t *version_out, char *text, size_t text_bytes)
{
	uint32_t of_user = 0;
	uint32_t version;

	if (len_bytes != (ssize_t)sizeof(*attach) || attach->magic != MRC_ABI_MAGIC) {
		snprintf(text, text_bytes, "the first packet was not an attach request");
		return -EPROTO;
	}
	/* The newest that both speak. */
	version = MRC_MIN(attach->version_max, MRC_ABI_VERSION);
	if (attach->version_min > version || version < MRC_ABI_VERSION_OLDEST) {
		snprintf(text, text_bytes,
			 "the program speaks ABI versions %u to %u, this daemon speaks %u to %u",
			 attach->version_min, attach->version_max, MRC_ABI_VERSION_OLDEST,
			 MRC_ABI_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (attach->send_arena_bytes > quota->send_arena_bytes) {
		snprintf(text, text_bytes,
			 "a send arena of %llu bytes was asked for, at most %llu (send-arena)",
			 (unsigned long long)attach->send_arena_bytes,
			 (unsigned long long)quota->send_arena_bytes);
		return -ENOMEM;
	}
	if (attach->landing_arena_bytes > quota->landing_arena_bytes) {
		snprintf(
			text, text_bytes,
			"a landing arena of %llu bytes was asked for, at most %llu (landing-arena)",
			(unsigned long long)attach->landing_arena_bytes,
			(unsigned long long)quota->landing_arena_bytes);
		return -ENOMEM;
	}
	if (side->client_count >= MRC_MIN(side->limits->clients_max, side->slot_count)) {
		snprintf(text, text_bytes,
			 "%u clients are attached, no more are allowed (clients-max)",
			 side->client_count);
		return -EMFILE;
	}
	/* Its socket is there already. A low number may be a hole that a path has left. */
	if (!mrcd_fds_have_room(side->fd_end, MRCD_CLIENT_FD_COUNT - 1) ||
	    (side->client_count + 1ULL) * MRCD_CLIENT_FD_COUNT > side->fd_end) {
		snprintf(text, text_bytes,
			 "%u clients are attached, no more are allowed: LimitNOFILE= of the daemon",
			 side->client_count);
		return -EMFILE;
	}
	for (uint32_t i = 0; i < side->slot_count; i++)
		of_user += side->clients[i] != NULL && side->clients[i]->creds.uid == uid;
	if (of_user >= quota->clients_max) {
		snprintf(text, text_bytes,
			 "%u clients of user %u are attached, no more are allowed (clients-max)",
			 of_user, (unsigned)uid);
		return -EMFILE;
	}
	*version_out = version;
	return 0;
}

/* A sealed memfd of this size, mapped. `why`, also_bytes: see mrcd_memfd_new(). */
static int map_new(struct mrcd_map *map, const char *name, uint64_t len_bytes,
		   uint64_t huge_page_bytes, uint64_t also_bytes, char why[MRCD_MEMFD_TEXT_BYTES])
{
	struct mrcd_memfd memfd;
	int r = mrcd_memfd_new(name, len_bytes, huge_page_bytes, also_bytes, &memfd, why);

	if (r < 0)
		return r;
	*map = (struct mrcd_map){
		.addr = memfd.addr,
		.fd = memfd.fd,
		.len_bytes = memfd.len_bytes,
		.page_bytes = memfd.page_bytes,
		.sigbus_slot = UINT32_MAX,
	};
	return 0;
}

/* For memory that can go: the client can punch holes in what it can write, and a control group
 * may grant no more huge pages when one is first touched. */
static int map_watch(struct mrcd_map *map, int bell_fd)
{
	return mrcd_sigbus_watch(map->addr, map->len_bytes, bell_fd, &map->sigbus_slot);
}

int mrcd_client_map_adopt(struct mrcd_client *client, struct mrcd_map *map, int fd,
			  uint64_t page_bytes, bool is_watched)
{
	struct stat st = {0};
	void *addr;
	int r;

	*map = (struct mrcd_map){.fd = -1, .page_bytes = page_bytes, .sigbus_slot = UINT32_MAX};
	if (fstat(fd, &st) < 0 || st.st_size <= 0) {
		close(fd);
		return -EPROTO;
	}
	map->len_bytes = (uint64_t)st.st_size;
	addr = mmap(NULL, map->len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	map->addr = addr;
	map->fd = fd;
	return is_watched ? map_watch(map, client->side->sigbus_fd) : 0;
}

/* The descriptor only: the memory may be needed for longer. */
static void map_close_fd(struct mrcd_map *map)
{
	if (map->addr != NULL && map->fd >= 0)
		close(map->fd);
	map->fd = -1;
}

static void map_close(struct mrcd_map *map)
{
	if (map->addr == NULL)
		return;
	map_close_fd(map);
	if (map->sigbus_slot != UINT32_MAX)
		mrcd_sigbus_unwatch(map->sigbus_slot);
	munmap(map->addr, map->len_bytes);
	map->addr = NULL;
}

/* Devices may still be registering it, or have it: then its region unmaps it when they are done. */
static void arena_close(struct mrcd_map *map, struct mrcd_region *region)
{
	if (region == NULL) {
		map_close(map);
		return;
	}
	map_close_fd(map);
	if (map->sigbus_slot != UINT32_MAX)
		mrcd_sigbus_unwatch(map->sigbus_slot);
	map->addr = NULL;
	mrcd_region_end_unmap(region);
}

static int reopen_read_only(int fd)
{
	char path[40];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

/*
 * The client's bell is a pipe, not an eventfd: O_NONBLOCK belongs to an open
 * file, and an eventfd has only one, which the client could make blocking and
 * fill, so that our next write hung the daemon. Of a pipe we keep our own open
 * files. The client's is opened for writing too, so that it sees no hang-up.
 */
static int bell_pipe_new(struct mrcd_client *client, int *client_fd_out)
{
	char path[40];
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	client->client_bell_read_fd = fds[0];
	client->client_bell_fd = fds[1];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	r = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (r < 0)
		return -errno;
	*client_fd_out = r;
	return 0;
}

/* What mrcctl shows must not be able to disturb a terminal or break JSON. */
static void name_copy(char out[MRC_NAME_MAX + 1], const char in[MRC_NAME_LEN_MAX + 1])
{
	size_t len = strnlen(in, MRC_NAME_MAX);

	for (size_t i = 0; i < len; i++)
		out[i] = (char)(in[i] > ' ' && in[i] < 0x7f && in[i] != '"' && in[i] != '\\' ? in[i]
											     : '?');
	out[len] = 0;
}

/* Where the parts of the rings begin, from their entry counts. */
struct ring_layout {
	uint64_t sq_bytes, cq_bytes;
	uint64_t sq_at, cq_at, sq_texts_at, cq_texts_at, end;
};

static struct ring_layout ring_layout_of(const struct mrcd_client *client)
{
	struct ring_layout at = {
		.sq_bytes = round_up(client->sq_entry_count * sizeof(struct mrc_sqe),
				     MRC_RING_PAGE_BYTES),
		.cq_bytes = round_up(client->cq_entry_count * sizeof(struct mrc_cqe),
				     MRC_RING_PAGE_BYTES),
		.sq_at = MRC_RING_PAGE_BYTES,
	};

	/* Texts take as much again; no page of them exists before it is written. */
	at.cq_at = at.sq_at + at.sq_bytes;
	at.sq_texts_at = at.cq_at + at.cq_bytes;
	at.cq_texts_at = at.sq_texts_at + at.sq_bytes;
	at.end = at.cq_texts_at + at.cq_bytes;
	return at;
}

uint64_t mrcd_client_rings_bytes(const struct mrcd_client *client)
{
	return ring_layout_of(client).end;
}

int mrcd_client_rings_lay(struct mrcd_client *client)
{
	const struct ring_layout at = ring_layout_of(client);
	uint8_t *base = client->rings.addr;

	MRC_ASSERT(client->rings.len_bytes >= at.end);
	client->shadows = calloc(client->cq_entry_count, sizeof(*client->shadows));
	if (client->shadows == NULL)
		return -ENOMEM;
	if (base == NULL)
		return 0;
	client->shm = (struct mrc_ring_shm *)(void *)base;
	client->sq = (struct mrc_sqe *)(void *)(base + at.sq_at);
	client->cq = (struct mrc_cqe *)(void *)(base + at.cq_at);
	client->sq_texts = base + at.sq_texts_at;
	client->cq_texts = base + at.cq_texts_at;
	return 0;
}

static int rings_new(struct mrcd_client *client)
{
	uint64_t sq_count = power_of_two_above(client->sends_max);
	uint64_t cq_needed =
		cq_entries_needed(client->sends_max, client->channels_max, client->window);
	char why[MRCD_MEMFD_TEXT_BYTES];
	struct ring_layout at;
	int r;

	client->sq_entry_count =
		(uint32_t)MRC_MAX(MRC_MIN(sq_count, MRCD_SQ_ENTRIES_MAX), MRCD_SQ_ENTRIES_MIN);
	/* libmrc takes no more than 1 << 20 entries, and the texts' offsets have 32 bits. */
	if (cq_needed > MRCD_CQ_ENTRIES_MAX)
		return -E2BIG;
	client->cq_entry_count = (uint32_t)power_of_two_above(cq_needed);
	MRC_ASSERT(client->cq_entry_count >= cq_needed);
	at = ring_layout_of(client);
	r = map_new(&client->rings, "mrcd-rings", at.end, 0, 0, why);
	if (r < 0)
		return r;
	r = map_watch(&client->rings, client->side->sigbus_fd);
	if (r < 0)
		return r;
	r = mrcd_client_rings_lay(client);
	if (r < 0)
		return r;
	*client->shm = (struct mrc_ring_shm){
		.magic = MRC_ABI_MAGIC,
		.version = client->abi_version,
		.generation = client->side->worker->boot_id,
		.sq_entry_count = client->sq_entry_count,
		.cq_entry_count = client->cq_entry_count,
		.sq_offset = (uint32_t)at.sq_at,
		.cq_offset = (uint32_t)at.cq_at,
		.sq_text_offset = (uint32_t)at.sq_texts_at,
		.cq_text_offset = (uint32_t)at.cq_texts_at,
		.state = MRC_RING_STATE_RUNNING,
		.daemon_sleeping = 1,
	};
	return 0;
}

int mrcd_client_pools_new(struct mrcd_client *client)
{
	uint64_t half = client->landing.len_bytes / 2;
	int r;

	client->msgs_max = client->channels_max * client->window;
	client->channels = calloc(client->channels_max, sizeof(*client->channels));
	client->listeners = calloc(MRC_MAX(client->listeners_max, 1U), sizeof(*client->listeners));
	client->sends = calloc(client->sends_max, sizeof(*client->sends));
	client->msgs = calloc(client->msgs_max, sizeof(*client->msgs));
	client->buckets = calloc(client->msgs_max, sizeof(struct mrcd_msg *));
	if (client->channels == NULL || client->listeners == NULL || client->sends == NULL ||
	    client->msgs == NULL || client->buckets == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < client->channels_max; i++) {
		client->channels[i].index = i;
		TAILQ_INIT(&client->channels[i].queue);
		TAILQ_INIT(&client->channels[i].poisoned);
		TAILQ_INSERT_TAIL(&client->channels_free, &client->channels[i], entry);
	}
	while (1U << client->channel_bits < client->channels_max)
		client->channel_bits++;
	while (1U << client->listener_bits < client->listeners_max)
		client->listener_bits++;
	r = mrcd_arena_new(0, half, &client->buffer_arena);
	if (r < 0)
		return r;
	r = mrcd_arena_new(half, half, &client->ring_arena);
	if (r < 0 || !client->side->poison_mode.is_on || client->landing.addr == NULL)
		return r;
	mrcd_arena_rotate(client->buffer_arena, MRCD_POISON_SPAN_BYTES);
	return mrcd_poison_new(client->landing.addr, client->landing.len_bytes, &client->poison);
}

static int arenas_new(struct mrcd_client *client, uint64_t send_bytes, uint64_t landing_bytes)
{
	struct mrcd_client_side *side = client->side;
	uint64_t huge = side->limits->huge_page_bytes;
	char why_send[MRCD_MEMFD_TEXT_BYTES], why_landing[MRCD_MEMFD_TEXT_BYTES];
	char more[MRCD_LOG_HELD_BACK_BYTES];
	const char *why = why_send;
	uint64_t held_back;
	int r;

	r = map_new(&client->send_arena, "mrcd-send", send_bytes, huge, landing_bytes, why_send);
	if (r < 0)
		return r;
	r = map_watch(&client->send_arena, side->sigbus_fd);
	if (r < 0)
		return r;
	r = map_new(&client->landing, "mrcd-landing", landing_bytes, huge,
		    why_send[0] != 0 ? send_bytes : 0, why_landing);
	if (r < 0)
		return r;
	if (mrcd_client_landing_can_go(client->landing.page_bytes))
		r = map_watch(&client->landing, side->sigbus_fd);
	/* Once for both: the first reason speaks of all pages that are missing. */
	if (why_send[0] == 0)
		why = why_landing;
	if (why[0] != 0 && mrcd_log_allowed(&side->log_huge, side->worker->now_ns, &held_back))
		mrcd_warn("client %s gets ordinary pages. %s%s", client->name, why,
			  mrcd_log_held_back(held_back, more));
	return r;
}

int mrcd_client_regions_new(struct mrcd_client *client)
{
	struct mrcd_worker *worker = client->side->worker;
	int r;

	r = mrcd_region_new(worker, client->send_arena.addr, client->send_arena.len_bytes, false,
			    client->flow, &client->send_region);
	if (r < 0)
		return r;
	return mrcd_region_new(worker, client->landing.addr, client->landing.len_bytes, true,
			       client->flow, &client->landing_region);
}

bool mrcd_attach_is_lent(enum mrc_abi_fd which)
{
	return which == MRC_ABI_FD_RINGS || which == MRC_ABI_FD_SEND_ARENA ||
	       which == MRC_ABI_FD_DAEMON_BELL;
}

struct mrcd_client *mrcd_client_blank(struct mrcd_client_side *side)
{
	struct mrcd_client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		return NULL;
	client->side = side;
	client->fd = client->bell_fd = -1;
	client->client_bell_fd = client->client_bell_read_fd = -1;
	client->deadline_ns = MRC_NEVER;
	TAILQ_INIT(&client->throttled);
	TAILQ_INIT(&client->channels_free);
	TAILQ_INIT(&client->sends_free);
	TAILQ_INIT(&client->wants);
	return client;
}

int mrcd_client_new(struct mrcd_client_side *side, const struct mrc_abi_attach *attach,
		    uint32_t version, const struct mrcd_conf_quota *quota,
		    struct mrcd_client **client_out, int fds_out[MRC_ABI_FD_COUNT], char *text,
		    size_t text_bytes)
{
	uint64_t send_bytes = attach->send_arena_bytes;
	uint64_t landing_bytes = attach->landing_arena_bytes;
	uint32_t eager = side->worker->conf->limits.eager_bytes_max;
	struct mrcd_client *client = mrcd_client_blank(side);
	int r = -ENOMEM;

	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		fds_out[i] = -1;
	if (client == NULL)
		goto err;
	client->quota.max = *quota;
	name_copy(client->name, attach->name);

	/* A ring takes at least two of the largest messages that travel by it (DESIGN 7.8). */
	client->ring_bytes_min =
		power_of_two_above(MRC_MAX(2ULL * (eager != 0 ? eager : EAGER_BYTES_DEFAULT),
					   (uint64_t)MRCD_ARENA_PAGE_BYTES));
	if (send_bytes == 0)
		send_bytes = quota->send_arena_bytes;
	if (landing_bytes == 0)
		landing_bytes = quota->landing_arena_bytes;
	send_bytes = round_up(MRC_MAX(send_bytes, 1U), MRCD_ARENA_PAGE_BYTES);
	landing_bytes = round_up(MRC_MAX(landing_bytes, 2 * client->ring_bytes_min),
				 2 * (uint64_t)MRCD_ARENA_PAGE_BYTES);
	client->channels_max = (uint32_t)MRC_MIN((uint64_t)quota->channels_max,
						 landing_bytes / 2 / client->ring_bytes_min);
	client->abi_version = version;
	client->window = side->limits->window_messages;
	client->listeners_max = side->limits->listeners_max;
	client->sends_max = quota->sends_max;
	client->flow = ++side->flow_last;

	r = rings_new(client);
	if (r < 0)
		goto err;
	r = arenas_new(client, send_bytes, landing_bytes);
	if (r < 0)
		goto err;
	fds_out[MRC_ABI_FD_RINGS] = client->rings.fd;
	fds_out[MRC_ABI_FD_SEND_ARENA] = client->send_arena.fd;
	r = reopen_read_only(client->landing.fd);
	if (r < 0)
		goto err;
	fds_out[MRC_ABI_FD_LANDING_ARENA] = r;
	r = mrcd_client_pools_new(client);
	if (r < 0)
		goto err;
	client->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (client->bell_fd < 0) {
		r = -errno;
		goto err;
	}
	fds_out[MRC_ABI_FD_DAEMON_BELL] = client->bell_fd;
	r = bell_pipe_new(client, &fds_out[MRC_ABI_FD_CLIENT_BELL]);
	if (r < 0)
		goto err;
	r = mrcd_client_regions_new(client);
	if (r < 0)
		goto err;
	*client_out = client;
	return 0;
err:
	snprintf(text, text_bytes, "the daemon could not make the memory for it: %s", strerror(-r));
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		if (fds_out[i] >= 0 && !mrcd_attach_is_lent((enum mrc_abi_fd)i))
			close(fds_out[i]);
	mrcd_client_close(client);
	mrcd_client_free(client);
	return r;
}

void mrcd_client_welcome(const struct mrcd_client *client, uint32_t version,
			 struct mrc_abi_welcome *welcome_out)
{
	*welcome_out = (struct mrc_abi_welcome){
		.magic = MRC_ABI_MAGIC,
		.version = client->abi_version,
		.generation = client->side->worker->boot_id,
		.send_arena_bytes = client->send_arena.len_bytes,
		.landing_arena_bytes = client->landing.len_bytes,
		.ring_bytes = client->rings.len_bytes,
		.message_bytes_max = client->send_arena.len_bytes,
		.sq_entry_count = client->sq_entry_count,
		.cq_entry_count = client->cq_entry_count,
		.channels_max = client->channels_max,
		.sends_max = client->sends_max,
	};
	snprintf(welcome_out->host, sizeof(welcome_out->host), "%s",
		 client->side->worker->conf->host);
}

void mrcd_client_close(struct mrcd_client *client)
{
	if (client == NULL)
		return;
	/* What was handed over is somebody else's to write. */
	if (client->shm != NULL && !client->side->is_left) {
		__atomic_store_n(&client->shm->state, MRC_RING_STATE_GONE, __ATOMIC_RELEASE);
		mrcd_client_ring_bell(client);
	}
	if (client->socket_event != NULL)
		event_free(client->socket_event);
	if (client->bell_event != NULL) {
		mrcd_lookout_remove(client->side->worker->lookout, client->bell_fd);
		event_free(client->bell_event);
	}
	client->socket_event = client->bell_event = NULL;
	if (client->fd >= 0)
		close(client->fd);
	if (client->bell_fd >= 0)
		close(client->bell_fd);
	if (client->client_bell_fd >= 0)
		close(client->client_bell_fd);
	if (client->client_bell_read_fd >= 0)
		close(client->client_bell_read_fd);
	client->fd = client->bell_fd = -1;
	client->client_bell_fd = client->client_bell_read_fd = -1;
	client->shm = NULL;
	client->sq = NULL;
	client->cq = NULL;
	map_close(&client->rings);
	arena_close(&client->send_arena, client->send_region);
	client->send_region = NULL;
}

void mrcd_client_free(struct mrcd_client *client)
{
	if (client == NULL)
		return;
	if (client->poison != NULL)
		mrcd_client_poison_check(client, 0, client->landing.len_bytes);
	mrcd_poison_free(client->poison);
	arena_close(&client->landing, client->landing_region);
	mrcd_arena_free(client->ring_arena);
	mrcd_arena_free(client->buffer_arena);
	free(client->shadows);
	free(client->channels);
	free(client->listeners);
	free(client->sends);
	free(client->msgs);
	free(client->buckets);
	mrcd_creds_fini(&client->creds);
	free(client);
}
