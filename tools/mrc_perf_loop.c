/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SPINS_OF_WAIT 4U

int perf_loop_init(struct perf_loop *loop, uint64_t spin_ns)
{
	char spin_us[24];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	loop->signal_count = 0;
	loop->spin_ns = spin_ns;
	if (spin_ns) {
		snprintf(spin_us, sizeof(spin_us), "%llu",
			 (unsigned long long)((spin_ns + 999) / 1000));
		setenv("MRC_SPIN_US", spin_us, 1); /* of the client that attaches next */
	}
	loop->busy_turns = 0;
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return -errno;
	loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return loop->signal_fd < 0 ? -errno : 0;
}

void perf_loop_fini(struct perf_loop *loop)
{
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
	loop->signal_fd = -1;
}

uint64_t perf_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PERF_S + (uint64_t)ts.tv_nsec;
}

uint64_t perf_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * PERF_S + (uint64_t)ts.tv_nsec;
}

static void loop_take_signals(struct perf_loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		loop->signal_count++;
}

int perf_loop_turn(struct perf_loop *loop, struct mrc_client *client, int control_fd, int trace_fd,
		   uint64_t deadline_ns, struct mrc_event *events, int events_max,
		   bool *control_ready_out)
{
	struct pollfd fds[4];
	struct timespec timeout;
	uint64_t now_ns;
	int count = 0, ready;

	if (control_ready_out)
		*control_ready_out = false;
	if (client)
		count = mrc_poll(client, events, events_max);
	/* As the library waits for a program that has nothing else to look after, and long enough
	 * for it to see whether looking pays. */
	if (count == 0 && client && loop->spin_ns &&
	    perf_now_ns() + SPINS_OF_WAIT * loop->spin_ns < deadline_ns &&
	    mrc_wait(client, (int64_t)(SPINS_OF_WAIT * loop->spin_ns)) > 0)
		count = mrc_poll(client, events, events_max);
	now_ns = perf_now_ns();
	fds[0] = (struct pollfd){.fd = loop->signal_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = control_fd, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = client ? mrc_client_fd(client) : -1, .events = POLLIN};
	fds[3] = (struct pollfd){.fd = trace_fd, .events = POLLIN};
	if (count != 0 || deadline_ns <= now_ns) {
		/* A busy client must not make us deaf to signals, nor cost a call each turn. */
		if (count != 0 && ++loop->busy_turns % 64 != 0)
			return count;
		timeout = (struct timespec){0};
	} else {
		uint64_t left_ns = deadline_ns - now_ns;

		if (left_ns > 3600 * PERF_S)
			left_ns = 3600 * PERF_S;
		timeout.tv_sec = (time_t)(left_ns / PERF_S);
		timeout.tv_nsec = (long)(left_ns % PERF_S);
	}
	ready = ppoll(fds, 4, &timeout, NULL);
	if (ready > 0 && fds[0].revents)
		loop_take_signals(loop);
	if (ready > 0 && fds[1].revents && control_ready_out)
		*control_ready_out = true;
	if (count == 0 && client)
		count = mrc_poll(client, events, events_max);
	return count;
}
