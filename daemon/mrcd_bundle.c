/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LABEL_MAGIC  0x5043524dU /* "MRCP", little-endian */
#define QUEUE_BYTES  (1 << 20)   /* asked for; the kernel gives less (net.core.wmem_max) */
#define IMAGE_BYTES  8192 /* of a queue's, kept for the state: without it the rest is nothing */
#define PARCELS_STEP 64U
#define SPARE_FDS    128U /* the image, a message to the manager with all sockets, and one more */

/* What goes with the descriptors of a parcel. Written and read on one machine. */
struct label {
	uint32_t magic;
	uint32_t kind;
	uint32_t index;
};

union fd_cmsg {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MRCD_PARCEL_FDS_MAX)];
};
_Static_assert(sizeof(union fd_cmsg) - sizeof(struct cmsghdr) <=
		       sizeof(int) * (MRCD_PARCEL_FDS_MAX + 1),
	       "of descriptors no more than parcel_receive() has room for");

/* ---- packing ---- */

static void close_any(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void mrcd_bundle_begin(struct mrcd_bundle *bundle, uint32_t count_max)
{
	*bundle = (struct mrcd_bundle){
		.count_max = MRC_MIN(count_max, MRCD_BUNDLES_MAX),
		.write_fd = -1,
		.spare_fds = {-1, -1},
	};
}

int mrcd_bundle_keep_spare(struct mrcd_bundle *bundle)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SPARE_FDS)];
	} control = {0};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = sizeof(byte)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = &control.align;
	int fds[SPARE_FDS], fd, r = 0;

	MRC_ASSERT(bundle->spare_fds[0] < 0);
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (uint32_t i = 0; i < SPARE_FDS; i++)
		fds[i] = fd;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bundle->spare_fds) < 0 ||
	    sendmsg(bundle->spare_fds[1], &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		r = -errno;
		mrcd_bundle_use_spare(bundle);
	}
	close(fd);
	return r;
}

void mrcd_bundle_use_spare(struct mrcd_bundle *bundle)
{
	close_any(&bundle->spare_fds[0]);
	close_any(&bundle->spare_fds[1]);
}

/* All that the kernel gives, without so many. */
static void queue_bound(int fd, int kept_bytes)
{
	int bytes = QUEUE_BYTES;
	socklen_t len = sizeof(bytes);

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (kept_bytes == 0 || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) < 0)
		return;
	bytes = bytes / 2 - kept_bytes; /* it doubles what it is asked for, and tells that */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int bundle_grow(struct mrcd_bundle *bundle)
{
	int pair[2];

	if (bundle->count == bundle->count_max)
		return -ENOSPC;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	queue_bound(pair[1], IMAGE_BYTES);
	close_any(&bundle->write_fd);
	bundle->fds[bundle->count++] = pair[0];
	bundle->write_fd = pair[1];
	return 0;
}

static int parcel_send(int fd, const struct mrcd_parcel *parcel)
{
	struct label label = {
		.magic = LABEL_MAGIC,
		.kind = parcel->kind,
		.index = parcel->index,
	};
	struct iovec iov = {.iov_base = &label, .iov_len = sizeof(label)};
	union fd_cmsg control = {0};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * parcel->fd_count),
	};
	struct cmsghdr *cmsg = &control.align;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int) * parcel->fd_count);
	memcpy(CMSG_DATA(cmsg), parcel->fds, sizeof(int) * parcel->fd_count);
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int mrcd_bundle_put(struct mrcd_bundle *bundle, const struct mrcd_parcel *parcel)
{
	int r = -EAGAIN;

	MRC_ASSERT(parcel->fd_count > 0);
	MRC_ASSERT(parcel->fd_count <= MRCD_PARCEL_FDS_MAX);
	if (bundle->write_fd >= 0 && parcel->kind == MRCD_PARCEL_IMAGE)
		queue_bound(bundle->write_fd, 0);
	if (bundle->write_fd >= 0)
		r = parcel_send(bundle->write_fd, parcel);
	if (r == -EAGAIN) { /* its queue is full, or there is none yet */
		r = bundle_grow(bundle);
		if (r == 0)
			r = parcel_send(bundle->write_fd, parcel);
	}
	if (r == 0)
		bundle->parcel_count++;
	return r;
}

/* True: there was one. Read without room for its descriptors it has them closed by the kernel. */
static bool parcel_drop(int fd)
{
	struct label label;
	ssize_t len;

	do {
		len = recv(fd, &label, sizeof(label), MSG_DONTWAIT);
	} while (len < 0 && errno == EINTR);
	return len > 0;
}

void mrcd_bundle_take_back(struct mrcd_bundle *bundle)
{
	for (uint32_t i = 0; i < bundle->count; i++) {
		while (parcel_drop(bundle->fds[i]))
			;
	}
	bundle->parcel_count = 0;
}

void mrcd_bundle_fini(struct mrcd_bundle *bundle)
{
	mrcd_bundle_use_spare(bundle);
	close_any(&bundle->write_fd);
	for (uint32_t i = 0; i < bundle->count; i++)
		close(bundle->fds[i]);
	mrcd_bundle_begin(bundle, 0);
}

/* ---- unpacking ---- */

/* 1: one more; 0: the queue is empty. What came with a message that is no parcel is closed. */
static int parcel_receive(int fd, struct mrcd_parcel *parcel_out)
{
	/* The kernel fills all of `control`, and its padding has room for one more. */
	int fds[MRCD_PARCEL_FDS_MAX + 1];
	struct label label = {0};
	uint32_t fd_count = 0;
	struct iovec iov = {.iov_base = &label, .iov_len = sizeof(label)};
	union fd_cmsg control = {0};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t len;

	do {
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? 0 : -errno;
	*parcel_out = (struct mrcd_parcel){.kind = label.kind, .index = label.index};
	for (uint32_t i = 0; i < MRCD_PARCEL_FDS_MAX; i++)
		parcel_out->fds[i] = -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
		fd_count = (uint32_t)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		MRC_ASSERT(fd_count <= MRC_ARRAY_LEN(fds));
		memcpy(fds, CMSG_DATA(cmsg), fd_count * sizeof(int));
	}
	if (len == 0 && fd_count == 0)
		return 0; /* whoever filled it has gone, and nothing is left */
	if (len != (ssize_t)sizeof(label) || label.magic != LABEL_MAGIC ||
	    label.kind >= MRCD_PARCEL_KIND_COUNT || fd_count == 0 ||
	    fd_count > MRCD_PARCEL_FDS_MAX || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		for (uint32_t i = 0; i < fd_count; i++)
			close(fds[i]);
		return -EPROTO;
	}
	parcel_out->fd_count = fd_count;
	memcpy(parcel_out->fds, fds, fd_count * sizeof(int));
	return 1;
}

static void parcel_lose(struct mrcd_parcel *parcel)
{
	struct stat st;

	parcel->is_lost = true;
	for (uint32_t i = 0; i < parcel->fd_count; i++) {
		if (fstat(parcel->fds[i], &st) == 0)
			parcel->fd_bytes[i] = (uint64_t)st.st_size;
		close_any(&parcel->fds[i]);
	}
}

/* What is the daemon's own always finds room, in what programs leave. */
static void parcel_judge(struct mrcd_parcel *parcel, uint64_t fd_end)
{
	if (parcel->kind != MRCD_PARCEL_CLIENT && parcel->kind != MRCD_PARCEL_PENDING)
		return;
	for (uint32_t i = 0; i < parcel->fd_count && !parcel->is_lost; i++) {
		if ((uint64_t)parcel->fds[i] >= fd_end)
			parcel_lose(parcel);
	}
}

int mrcd_bundle_take(const int *fds, uint32_t count, uint64_t fd_end,
		     struct mrcd_parcel **parcels_out, uint32_t *parcel_count_out)
{
	struct mrcd_parcel *parcels = NULL, *more;
	uint32_t parcel_count = 0;
	int r = 0;

	for (uint32_t i = 0; i < count; i++) {
		do {
			if (parcel_count % PARCELS_STEP == 0) {
				more = reallocarray(parcels, parcel_count + PARCELS_STEP,
						    sizeof(*parcels));
				if (more == NULL) {
					r = -ENOMEM;
					goto err_free;
				}
				parcels = more;
			}
			r = parcel_receive(fds[i], &parcels[parcel_count]);
			if (r < 0)
				goto err_free;
			if (r > 0)
				parcel_judge(&parcels[parcel_count++], fd_end);
		} while (r > 0);
	}
	*parcels_out = parcels;
	*parcel_count_out = parcel_count;
	return 0;

err_free:
	mrcd_parcels_free(parcels, parcel_count);
	return r;
}

struct mrcd_parcel *mrcd_parcel_next(struct mrcd_parcel *parcels, uint32_t parcel_count,
				     enum mrcd_parcel_kind kind, uint32_t *at)
{
	while (*at < parcel_count) {
		struct mrcd_parcel *parcel = &parcels[(*at)++];

		if (parcel->kind == kind)
			return parcel;
	}
	return NULL;
}

void mrcd_parcels_free(struct mrcd_parcel *parcels, uint32_t parcel_count)
{
	for (uint32_t i = 0; i < parcel_count; i++) {
		for (uint32_t f = 0; f < parcels[i].fd_count; f++) {
			if (parcels[i].fds[f] >= 0)
				close(parcels[i].fds[f]);
		}
	}
	free(parcels);
}
