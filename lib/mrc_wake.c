/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_wake.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SPIN_NS_DEFAULT 50000ULL
#define SPIN_US_MAX     1000000UL

static uint64_t spin_ns_from_env(void)
{
	const char *text = getenv("MRC_SPIN_US");
	char *end;
	unsigned long us;

	if (!text || *text < '0' || *text > '9')
		return SPIN_NS_DEFAULT;
	us = strtoul(text, &end, 10);
	return *end || us > SPIN_US_MAX ? SPIN_NS_DEFAULT : us * 1000ULL;
}

static int add(struct mrc_wake *wake, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	return epoll_ctl(wake->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int mrc_wake_new(int bell_fd, int socket_fd, struct mrc_wake **wake_out)
{
	struct mrc_wake *wake = calloc(1, sizeof(*wake));
	int r;

	if (!wake) {
		close(bell_fd);
		return -ENOMEM;
	}
	wake->bell_fd = bell_fd;
	wake->socket_fd = socket_fd;
	mrc_look_init(&wake->look, spin_ns_from_env(), mrc_now_ns());
	wake->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wake->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = wake->kick_fd < 0 || wake->epoll_fd < 0 ? -errno : 0;
	if (r == 0)
		r = add(wake, bell_fd, EPOLLIN);
	if (r == 0)
		r = add(wake, wake->kick_fd, EPOLLIN);
	if (r == 0)
		r = add(wake, socket_fd, EPOLLIN | EPOLLRDHUP);
	if (r < 0) {
		mrc_wake_free(wake);
		return r;
	}
	*wake_out = wake;
	return 0;
}

void mrc_wake_free(struct mrc_wake *wake)
{
	if (!wake)
		return;
	if (wake->epoll_fd >= 0)
		close(wake->epoll_fd);
	if (wake->kick_fd >= 0)
		close(wake->kick_fd);
	close(wake->bell_fd);
	free(wake);
}

/* We look ourselves now: no bells. One that has rung is still to be read. */
static void disarm(struct mrc_wake *wake, struct mrc_ring *ring)
{
	if (wake->is_armed && mrc_ring_disarm(ring))
		wake->is_bell_due = true;
	wake->is_armed = false;
}

/* One that was on its way only is read the next time. */
static void bell_read(struct mrc_wake *wake)
{
	if (mrc_ring_bell_read(wake->bell_fd))
		wake->is_bell_due = false;
}

bool mrc_wake_spin(struct mrc_wake *wake, struct mrc_ring *ring, uint64_t deadline_ns)
{
	uint64_t now_ns;
	bool do_yield;

	/* While we look nobody need ring for us. */
	disarm(wake, ring);
	if (mrc_ring_is_filled(ring))
		return true;
	now_ns = mrc_now_ns();
	/* Whoever waits has just done something. */
	mrc_look_work(&wake->look, now_ns);
	while (wake->look.is_looking && now_ns < deadline_ns &&
	       mrc_look_on(&wake->look, now_ns, &do_yield)) {
		if (do_yield)
			sched_yield();
		now_ns = mrc_now_ns();
		if (mrc_ring_is_filled(ring)) {
			mrc_look_end(&wake->look, now_ns);
			return true;
		}
	}
	wake->look.is_looking = false;
	return false;
}

enum mrc_wake_reason mrc_wake_sleep(struct mrc_wake *wake, struct mrc_ring *ring,
				    uint64_t deadline_ns)
{
	struct pollfd fds[2] = {
		{.fd = wake->bell_fd, .events = POLLIN},
		{.fd = wake->socket_fd, .events = POLLIN | POLLRDHUP},
	};
	uint64_t now_ns = mrc_now_ns();
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(left_ns / 1000000000ULL),
		.tv_nsec = (long)(left_ns % 1000000000ULL),
	};
	enum mrc_wake_reason reason = MRC_WAKE_BELL;
	int count;

	/* A bell that rings although we saw its entry already stays in the pipe; it ends the
	 * next sleep early, once. */
	wake->is_armed = true;
	if (mrc_ring_arm(ring)) {
		count = ppoll(fds, MRC_ARRAY_LEN(fds), deadline_ns == UINT64_MAX ? NULL : &ts,
			      NULL);
		if (count < 0)
			reason = MRC_WAKE_SIGNAL; /* EINTR; nothing else can befall two valid fds */
		else if (fds[1].revents)
			reason = MRC_WAKE_SOCKET;
		else if (count == 0)
			reason = MRC_WAKE_TIMEOUT;
		disarm(wake, ring);
		if (count > 0 && fds[0].revents)
			bell_read(wake);
	}
	disarm(wake, ring);
	return reason;
}

void mrc_wake_enter(struct mrc_wake *wake, struct mrc_ring *ring)
{
	if (!wake->is_fd_used)
		return;
	disarm(wake, ring);
	if (wake->is_bell_due)
		bell_read(wake);
}

bool mrc_wake_ask(struct mrc_wake *wake)
{
	struct epoll_event events[3];
	bool is_socket = false;
	int count;

	if (!wake->is_fd_used)
		return false;
	count = epoll_wait(wake->epoll_fd, events, MRC_ARRAY_LEN(events), 0);
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == wake->bell_fd)
			bell_read(wake);
		else if (events[i].data.fd == wake->socket_fd)
			is_socket = true;
	}
	return is_socket;
}

void mrc_wake_leave(struct mrc_wake *wake, struct mrc_ring *ring, bool has_work)
{
	if (!wake->is_fd_used)
		return;
	if (!has_work && !wake->is_armed) {
		wake->is_armed = mrc_ring_arm(ring);
		/* What was there before we armed rings no bell: keep the kick for it. */
		has_work = !wake->is_armed;
		if (has_work && mrc_ring_disarm(ring))
			wake->is_bell_due = true;
	}
	if (has_work && !wake->is_kicked)
		mrc_ring_bell(wake->kick_fd);
	else if (!has_work && wake->is_kicked)
		mrc_ring_bell_read(wake->kick_fd);
	wake->is_kicked = has_work;
}

int mrc_wake_fd(struct mrc_wake *wake)
{
	if (!wake->is_fd_used) {
		/* Nothing is armed for a program that only now begins to watch; the kick brings it
		 * to mrc_poll() once, and mrc_wake_leave() does the rest. */
		wake->is_fd_used = true;
		wake->is_kicked = true;
		mrc_ring_bell(wake->kick_fd);
	}
	return wake->epoll_fd;
}

void mrc_wake_drop_socket(struct mrc_wake *wake)
{
	epoll_ctl(wake->epoll_fd, EPOLL_CTL_DEL, wake->socket_fd, NULL);
}
