/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_lookout.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SOURCES_PER_LOOK 16

struct mrcd_lookout {
	int epoll_fd; /* ours */
	uint32_t count;
};

int mrcd_lookout_new(struct mrcd_lookout **lookout_out)
{
	struct mrcd_lookout *lookout = calloc(1, sizeof(*lookout));
	int r;

	if (!lookout)
		return -ENOMEM;
	lookout->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (lookout->epoll_fd < 0) {
		r = -errno;
		free(lookout);
		return r;
	}
	*lookout_out = lookout;
	return 0;
}

void mrcd_lookout_free(struct mrcd_lookout *lookout)
{
	if (!lookout)
		return;
	close(lookout->epoll_fd);
	free(lookout);
}

void mrcd_lookout_add(struct mrcd_lookout *lookout, int fd, struct mrcd_lookout_source *source,
		      bool is_edge)
{
	struct epoll_event event = {
		.events = EPOLLIN | (is_edge ? EPOLLET : 0U),
		.data.ptr = source,
	};

	if (lookout && epoll_ctl(lookout->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		lookout->count++;
}

void mrcd_lookout_remove(struct mrcd_lookout *lookout, int fd)
{
	if (lookout && epoll_ctl(lookout->epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0)
		lookout->count--;
}

uint32_t mrcd_lookout_take(struct mrcd_lookout *lookout)
{
	struct epoll_event events[SOURCES_PER_LOOK];
	int count;

	if (lookout->count == 0)
		return 0;
	count = epoll_wait(lookout->epoll_fd, events, SOURCES_PER_LOOK, 0);
	for (int i = 0; i < count; i++) {
		struct mrcd_lookout_source *source = events[i].data.ptr;

		source->on_readable(source);
	}
	return count > 0 ? (uint32_t)count : 0;
}
