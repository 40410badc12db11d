/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcd_timeval.h"

union fds_cmsg {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MRCD_NOTIFY_FDS_MAX)];
};

/* 1: *fd_out is connected to the manager's socket, and the caller's to close. 0: there is no manager. */
static int notify_open(uint64_t patience_ns, int *fd_out)
{
	const struct timeval patience = mrcd_timeval_of(patience_ns);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	socklen_t addr_bytes;
	int fd, r;

	if (path == NULL || path[0] == '\0')
		return 0;
	if ((path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(addr.sun_path))
		return -EAFNOSUPPORT;
	memcpy(addr.sun_path, path, strlen(path));
	addr_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* a name that is in no directory */
	else
		addr_bytes++;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, addr_bytes) < 0 ||
	    (patience_ns > 0 &&
	     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)) {
		r = -errno;
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 1;
}

int mrcd_notify_fds(uint64_t patience_ns, const char *words, const int *fds, uint32_t count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)words, .iov_len = strlen(words)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fds_cmsg control = {0};
	int fd = -1, r;

	MRC_ASSERT(count <= MRCD_NOTIFY_FDS_MAX);
	r = notify_open(patience_ns, &fd);
	if (r <= 0)
		return r;
	if (count > 0) {
		struct cmsghdr *cmsg = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
	}
	do {
		r = sendmsg(fd, &msg, MSG_NOSIGNAL | (patience_ns == 0 ? MSG_DONTWAIT : 0)) < 0
			    ? -errno
			    : 1;
	} while (r == -EINTR);
	close(fd);
	return r;
}

int mrcd_notify(uint64_t patience_ns, const char *words)
{
	return mrcd_notify_fds(patience_ns, words, NULL, 0);
}

/* Whoever has read BARRIER=1 closes the descriptor that came with it. */
int mrcd_notify_barrier(uint64_t patience_ns)
{
	struct pollfd end = {.events = 0}; /* its hang-up alone */
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	r = mrcd_notify_fds(patience_ns, "BARRIER=1", &fds[1], 1);
	close(fds[1]);
	if (r > 0) {
		end.fd = fds[0];
		do {
			r = poll(&end, 1, (int)(patience_ns / MRC_MS));
		} while (r < 0 && errno == EINTR);
		r = r > 0 ? 0 : r == 0 ? -ETIMEDOUT : -errno;
	} else if (r == -EAGAIN) {
		r = -ETIMEDOUT;
	}
	close(fds[0]);
	return r;
}
