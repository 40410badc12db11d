/* SPDX-License-Identifier: BSD-2-Clause */
/* The attach handshake: what the daemon sends is checked before anything is mapped or believed. */
#include "mrc_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_PATH_DEFAULT   "/run/mrcd/mrcd.sock"
#define HANDSHAKE_S           10            /* a daemon that says nothing for so long is stuck */
#define DETACH_NS             1000000000ULL /* for what waits for room in the submission ring */
#define SENDS_MAX             (1U << 20)
#define CHANNELS_MAX          (1U << 20)
#define OUTCOMES_KEPT_DEFAULT 64U

static const char *socket_path(const struct mrc_attach_options *options)
{
	const char *path = options ? options->socket_path : NULL;

	if (!path)
		path = secure_getenv("MRC_SOCKET");
	return path && *path ? path : SOCKET_PATH_DEFAULT;
}

static int socket_open(const char *path, int *fd_out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = HANDSHAKE_S};
	int fd;
	int r;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		mrc_error_set_attach("%s: the name is too long for a socket", path);
		return -ENAMETOOLONG;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		r = -errno;
		mrc_error_set_attach("no socket: %s", strerrordesc_np(-r));
		return r;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)) < 0) {
		r = errno == EAGAIN ? -ETIMEDOUT : -errno;
		mrc_error_set_attach("%s: %s", path,
				     r == -ENOENT || r == -ECONNREFUSED ? "no daemon runs there"
									: strerrordesc_np(-r));
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

static void fds_close(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* One packet and the descriptors that ride with it; *fd_count_out of fds[] are the caller's. */
static int welcome_receive(int socket_fd, struct mrc_abi_welcome *welcome, int *fds, int fds_max,
			   int *fd_count_out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 16)];
	} control;
	struct iovec iov = {.iov_base = welcome, .iov_len = sizeof(*welcome)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	int count = 0;
	bool is_too_many = false;
	ssize_t r;

	memset(welcome, 0, sizeof(*welcome));
	r = recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
	if (r < 0) {
		int error = errno == EAGAIN ? -ETIMEDOUT : -errno;

		mrc_error_set_attach("the daemon did not answer: %s", strerrordesc_np(-error));
		return error;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count < fds_max) {
				fds[count++] = fd;
			} else {
				close(fd);
				is_too_many = true;
			}
		}
	}
	if (r == 0) {
		mrc_error_set_attach("the daemon closed the connection without an answer");
		fds_close(fds, count);
		return -ECONNRESET;
	}
	if (r != sizeof(*welcome) || is_too_many || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    welcome->magic != MRC_ABI_MAGIC) {
		mrc_error_set_attach("what answered does not speak as a daemon does");
		fds_close(fds, count);
		return -EPROTO;
	}
	*fd_count_out = count;
	return 0;
}

/* For people to read, from elsewhere: nothing but printable characters. */
static void text_copy(char *to, size_t to_bytes, const char *from, size_t from_bytes)
{
	size_t len = strnlen(from, from_bytes < to_bytes ? from_bytes : to_bytes - 1);

	for (size_t i = 0; i < len; i++)
		to[i] = from[i] < ' ' || from[i] == 0x7f ? '?' : from[i];
	to[len] = '\0';
}

/* Does the daemon want us, and do we speak the same language? */
static int welcome_check(const struct mrc_abi_welcome *welcome, int fd_count)
{
	if (welcome->status != 0) {
		char text[MRC_ABI_TEXT_BYTES + 1];

		text_copy(text, sizeof(text), welcome->text, sizeof(welcome->text));
		mrc_error_set_attach("the daemon refused: %s",
				     *text ? text : mrc_error_text(welcome->status));
		return welcome->status < 0 && welcome->status > -4096 ? welcome->status : -EPROTO;
	}
	if (welcome->version < MRC_ABI_VERSION_OLDEST || welcome->version > MRC_ABI_VERSION) {
		mrc_error_set_attach("the daemon speaks ABI version %u, this library %u",
				     welcome->version, MRC_ABI_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (fd_count != MRC_ABI_FD_COUNT || welcome->sends_max == 0 ||
	    welcome->sends_max > SENDS_MAX || welcome->channels_max > CHANNELS_MAX) {
		mrc_error_set_attach("the daemon's welcome makes no sense (%d descriptors, %u "
				     "sends, %u channels)",
				     fd_count, welcome->sends_max, welcome->channels_max);
		return -EPROTO;
	}
	return 0;
}

/*
 * Map one memory. A file that is shorter than promised, or that can be made so
 * later, would be a SIGBUS in the middle of the program: refuse it now.
 */
static int memory_map(struct mrc_memory *memory, int fd, uint64_t len_bytes, bool is_writable,
		      const char *what)
{
	struct stat st;
	int seals;
	void *bytes;

	if (fstat(fd, &st) < 0 || st.st_size < 0 || len_bytes == 0 ||
	    (uint64_t)st.st_size < len_bytes || len_bytes > SIZE_MAX / 2) {
		mrc_error_set_attach("the daemon's %s is not as large as it says", what);
		return -EPROTO;
	}
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
		mrc_error_set_attach("the daemon's %s is not sealed against shrinking", what);
		return -EPROTO;
	}
	bytes = mmap(NULL, len_bytes, is_writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		     fd, 0);
	if (bytes == MAP_FAILED) {
		int r = -errno;

		mrc_error_set_attach("cannot map the daemon's %s: %s", what, strerrordesc_np(-r));
		return r;
	}
	memory->bytes = bytes;
	memory->len_bytes = len_bytes;
	return 0;
}

static void memory_unmap(struct mrc_memory *memory)
{
	if (memory->bytes)
		munmap(memory->bytes, memory->len_bytes);
	memory->bytes = NULL;
}

static int memories_map(struct mrc_client *client, const struct mrc_abi_welcome *welcome,
			const int *fds)
{
	int r;

	r = memory_map(&client->rings, fds[MRC_ABI_FD_RINGS], welcome->ring_bytes, true, "rings");
	if (r == 0)
		r = memory_map(&client->send_arena, fds[MRC_ABI_FD_SEND_ARENA],
			       welcome->send_arena_bytes, true, "send arena");
	if (r == 0)
		r = memory_map(&client->landing_arena, fds[MRC_ABI_FD_LANDING_ARENA],
			       welcome->landing_arena_bytes, false, "landing arena");
	if (r < 0)
		return r;
	r = mrc_ring_init(&client->ring, client->rings.bytes, client->rings.len_bytes,
			  welcome->sq_entry_count, welcome->cq_entry_count);
	if (r < 0)
		mrc_error_set_attach("the daemon's rings are not as its welcome says");
	return r;
}

/* Everything the data path needs; it allocates nothing later. */
static int tables_make(struct mrc_client *client, const struct mrc_abi_welcome *welcome)
{
	int r = mrc_bufs_new(client->send_arena.len_bytes, MRC_BUFS_MAX, &client->bufs);

	if (r < 0)
		return r == -EINVAL ? -EPROTO : r;
	client->sends_max = welcome->sends_max;
	client->msgs_max = welcome->cq_entry_count + MRC_GAPS_MAX;
	client->channels_max = welcome->channels_max;
	client->bucket_count = 16;
	while (client->bucket_count < client->channels_max)
		client->bucket_count *= 2;
	client->sends = calloc(client->sends_max, sizeof(*client->sends));
	client->msgs = calloc(client->msgs_max, sizeof(*client->msgs));
	client->buckets = calloc(client->bucket_count, sizeof(*client->buckets));
	if (!client->sends || !client->msgs || !client->buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < client->bucket_count; i++)
		mrc_list_init(&client->buckets[i]);
	return 0;
}

static struct mrc_client *client_new(void)
{
	struct mrc_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	mrc_list_init(&client->parked);
	mrc_list_init(&client->pending);
	mrc_list_init(&client->sends_unanswered);
	mrc_list_init(&client->sends_undecided);
	mrc_list_init(&client->channels);
	mrc_list_init(&client->listeners);
	mrc_list_init(&client->parked_detached.node);
	mrc_list_init(&client->parked_drain.node);
	client->socket_fd = -1;
	client->daemon_bell_fd = -1;
	client->send_free = UINT32_MAX;
	client->request_next = 1; /* 0 is the answer to an ACCEPT */
	return client;
}

/* Takes NULL and half-built ones. */
static void client_free(struct mrc_client *client)
{
	if (!client)
		return;
	client->is_gone = true; /* nothing is submitted from here on */
	while (!mrc_list_is_empty(&client->channels))
		mrc_channel_destroy(
			MRC_CONTAINER_OF(client->channels.next, struct mrc_channel, in_client));
	while (!mrc_list_is_empty(&client->listeners))
		mrc_listener_destroy(
			MRC_CONTAINER_OF(client->listeners.next, struct mrc_listener, in_client));
	mrc_wake_free(client->wake);
	if (client->daemon_bell_fd >= 0)
		close(client->daemon_bell_fd);
	if (client->socket_fd >= 0)
		close(client->socket_fd);
	mrc_bufs_free(client->bufs);
	free(client->sends);
	free(client->msgs);
	free(client->buckets);
	memory_unmap(&client->landing_arena);
	memory_unmap(&client->send_arena);
	memory_unmap(&client->rings);
	free(client);
}

static int hello_send(int socket_fd, const struct mrc_attach_options *options)
{
	struct mrc_abi_attach attach = {
		.magic = MRC_ABI_MAGIC,
		.version_min = MRC_ABI_VERSION_OLDEST,
		.version_max = MRC_ABI_VERSION,
	};
	const char *name = options ? options->name : NULL;
	int r;

	if (options) {
		attach.send_arena_bytes = options->send_arena_bytes;
		attach.landing_arena_bytes = options->landing_arena_bytes;
	}
	if (!name)
		name = program_invocation_short_name;
	memcpy(attach.name, name, strnlen(name, sizeof(attach.name) - 1));
	if (send(socket_fd, &attach, sizeof(attach), MSG_NOSIGNAL) == sizeof(attach))
		return 0;
	r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	mrc_error_set_attach("the daemon does not listen: %s", strerrordesc_np(-r));
	return r;
}

MRC_API int mrc_attach(const struct mrc_attach_options *options, struct mrc_client **client_out)
{
	struct mrc_abi_welcome welcome;
	struct mrc_client *client;
	int fds[MRC_ABI_FD_COUNT] = {-1, -1, -1, -1, -1};
	int fd_count = 0;
	int bell_fd;
	int r;

	if (options && options->outcomes_kept > MRC_OUTCOMES_KEPT_MAX) {
		mrc_error_set_attach("outcomes_kept is %u; allowed: 1 to %u, 0 for %u",
				     options->outcomes_kept, MRC_OUTCOMES_KEPT_MAX,
				     OUTCOMES_KEPT_DEFAULT);
		return -EINVAL;
	}
	client = client_new();
	if (!client) {
		mrc_error_set_attach("no memory");
		return -ENOMEM;
	}
	client->outcomes_kept =
		options && options->outcomes_kept ? options->outcomes_kept : OUTCOMES_KEPT_DEFAULT;
	r = socket_open(socket_path(options), &client->socket_fd);
	if (r < 0)
		goto err_free_client;
	r = hello_send(client->socket_fd, options);
	if (r < 0)
		goto err_free_client;
	r = welcome_receive(client->socket_fd, &welcome, fds, MRC_ABI_FD_COUNT, &fd_count);
	if (r < 0)
		goto err_free_client;
	r = welcome_check(&welcome, fd_count);
	if (r < 0)
		goto err_close_fds;
	r = memories_map(client, &welcome, fds);
	if (r < 0)
		goto err_close_fds;
	r = tables_make(client, &welcome);
	if (r < 0) {
		mrc_error_set_attach("no memory for the tables of this client");
		goto err_close_fds;
	}
	client->message_bytes_max = welcome.message_bytes_max;
	text_copy(client->host, sizeof(client->host), welcome.host, sizeof(welcome.host));

	client->daemon_bell_fd = fds[MRC_ABI_FD_DAEMON_BELL];
	bell_fd = fds[MRC_ABI_FD_CLIENT_BELL];
	fds[MRC_ABI_FD_DAEMON_BELL] = -1;
	fds[MRC_ABI_FD_CLIENT_BELL] = -1;
	/* Whatever the daemon passed: reading or writing a bell must never block the program. */
	if (fcntl(client->daemon_bell_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(bell_fd, F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		close(bell_fd);
		goto err_close_fds;
	}
	r = mrc_wake_new(bell_fd, client->socket_fd, &client->wake);
	if (r < 0) {
		mrc_error_set_attach("cannot make the descriptors of this client: %s",
				     strerrordesc_np(-r));
		goto err_close_fds;
	}
	fds_close(fds, fd_count); /* the mappings keep the memory */
	mrc_error_set_attach("%s", "");
	*client_out = client;
	return 0;

err_close_fds:
	fds_close(fds, fd_count);
err_free_client:
	client_free(client);
	return r;
}

MRC_API void mrc_detach(struct mrc_client *client)
{
	uint64_t deadline_ns;

	if (!client)
		return;
	/* A commit before the end counts: what still waits for room gets a while to find it. The
	 * daemon empties the ring at once, unless it is stuck. */
	deadline_ns = mrc_now_ns() + DETACH_NS;
	mrc_client_flush(client);
	while (!client->is_gone && !mrc_list_is_empty(&client->pending)) {
		int r = mrc_client_block(client, deadline_ns);

		/* Entries are taken in only so that waiting is possible; they go nowhere. */
		while (mrc_client_take_in(client) > 0)
			;
		if (r == 0)
			break;
	}
	client_free(client);
}
