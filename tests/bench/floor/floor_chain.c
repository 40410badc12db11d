/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a message with nothing but the way: client A, daemon B, TCP, daemon
 * C, client D, and back, as four processes. A and B (C and D) share a word each
 * way, and an eventfd for when the other sleeps; 8 bytes travel between B and C.
 *
 * They wait as mrcd and libmrc do. A client yields the processor for
 * --client-spin and then sleeps (mrc-perf --spin, lib/mrc_wake.c). A daemon looks
 * at its client's word and at its socket in turn, yielding between, until its
 * client has been idle for --daemon-spin (timers: spin, daemon/mrcd_client.c):
 * what comes by the socket does not keep it awake. Its bell is edge triggered
 * and never read, as there.
 */
#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_BYTES 8
#define SAMPLES_MAX   (1U << 22)
#define WARM_UP       200U /* round trips that are not counted */

/* One way between two processes. The words are in cache lines of their own. */
struct lane {
	_Alignas(64) atomic_ulong sent;   /* messages so far */
	_Alignas(64) atomic_int sleeping; /* the taker waits for the bell */
	_Alignas(64) int bell_fd;
};

enum { A_TO_B, B_TO_A, C_TO_D, D_TO_C, LANES };

enum pinning { PINNING_NONE, PINNING_PAIR, PINNING_CROSS, PINNINGS };

static const struct {
	const char *name;
	int processors[4]; /* of A, B, C and D */
} pinnings[PINNINGS] = {
	{"none", {-1, -1, -1, -1}}, /* as the kernel likes */
	{"pair", {0, 0, 1, 1}},     /* a client and its daemon on one */
	{"cross", {0, 1, 0, 1}},    /* each hop goes to the other one */
};

struct chain {
	const char *from;
	const char *to;
	const char *address;
	uint16_t port;
	enum pinning pinning;
	uint64_t client_spin_ns;
	uint64_t daemon_spin_ns;
	uint64_t duration_ns;
	uint64_t count_max;
	struct lane *lanes; /* shared */
};

/* Pairs with lane_sleep(): either we see `sleeping`, or the taker sees the message. */
static void lane_put(struct lane *lane)
{
	uint64_t one = 1;

	atomic_fetch_add(&lane->sent, 1);
	if (atomic_load(&lane->sleeping) &&
	    write(lane->bell_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		floor_fail("eventfd: %s", strerror(errno));
}

static bool lane_take(struct lane *lane, unsigned long *taken)
{
	if (atomic_load_explicit(&lane->sent, memory_order_acquire) == *taken)
		return false;
	++*taken;
	return true;
}

/* Announce that we will sleep; false: something has come already, do not. */
static bool lane_arm(struct lane *lane, unsigned long taken)
{
	atomic_store(&lane->sleeping, 1);
	return atomic_load(&lane->sent) == taken;
}

static void lane_disarm(struct lane *lane)
{
	atomic_store_explicit(&lane->sleeping, 0, memory_order_relaxed);
}

/* A client's wait for its daemon. */
static void client_wait(struct lane *lane, unsigned long *taken, uint64_t spin_ns)
{
	uint64_t end_ns, rung;

	if (lane_take(lane, taken))
		return;
	if (spin_ns > 0) {
		end_ns = floor_now_ns() + spin_ns;
		do {
			sched_yield();
			if (lane_take(lane, taken))
				return;
		} while (floor_now_ns() < end_ns);
	}
	while (!lane_take(lane, taken)) {
		struct pollfd bell = {.fd = lane->bell_fd, .events = POLLIN};

		if (lane_arm(lane, *taken) && ppoll(&bell, 1, NULL, NULL) < 0 && errno != EINTR)
			floor_fail("poll: %s", strerror(errno));
		lane_disarm(lane);
		/* what rang although we saw it already would end the next sleep early */
		if (bell.revents && read(lane->bell_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
			floor_fail("eventfd: %s", strerror(errno));
	}
}

static bool socket_take(int fd)
{
	char message[MESSAGE_BYTES];
	ssize_t len = recv(fd, message, sizeof(message), MSG_DONTWAIT);

	if (len == MESSAGE_BYTES)
		return true;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	_exit(0); /* the other daemon ended: so do we */
}

static void socket_put(int fd)
{
	static const char message[MESSAGE_BYTES] = "message";

	if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != MESSAGE_BYTES)
		_exit(0);
}

static int daemon_epoll(int bell_fd, int socket_fd)
{
	struct epoll_event bell = {.events = EPOLLIN | EPOLLET}, readable = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, bell_fd, &bell) < 0 ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, socket_fd, &readable) < 0)
		floor_fail("epoll: %s", strerror(errno));
	return fd;
}

/* What one comes from the client goes to the socket, and the other way. For ever. */
static void __attribute__((noreturn))
daemon_run(const struct chain *chain, struct lane *in, struct lane *out, int socket_fd)
{
	int epoll_fd = daemon_epoll(in->bell_fd, socket_fd);
	uint64_t idle_since_ns = floor_now_ns();
	unsigned long taken = 0;

	for (;;) {
		struct epoll_event event;
		bool had_work = false;

		if (lane_take(in, &taken)) {
			socket_put(socket_fd);
			idle_since_ns = floor_now_ns();
			had_work = true;
		}
		if (socket_take(socket_fd)) {
			lane_put(out);
			idle_since_ns = floor_now_ns();
			had_work = true;
		}
		if (had_work)
			continue;
		if (floor_now_ns() - idle_since_ns < chain->daemon_spin_ns) {
			sched_yield();
			continue;
		}
		if (lane_arm(in, taken) && epoll_wait(epoll_fd, &event, 1, -1) < 0 &&
		    errno != EINTR)
			floor_fail("epoll: %s", strerror(errno));
		/* Who rang has been idle until now, as with mrcd: a client that wakes its daemon
		 * keeps it awake for a while. */
		if (atomic_load(&in->sent) != taken)
			idle_since_ns = floor_now_ns();
		lane_disarm(in);
	}
}

static void chain_measure(const struct chain *chain, struct floor_samples *samples)
{
	struct lane *out = &chain->lanes[A_TO_B], *in = &chain->lanes[B_TO_A];
	uint64_t end_ns = 0, now_ns = floor_now_ns();
	unsigned long taken = 0;

	for (uint64_t i = 0; i < WARM_UP + chain->count_max; i++) {
		uint64_t start_ns = now_ns;

		lane_put(out);
		client_wait(in, &taken, chain->client_spin_ns);
		now_ns = floor_now_ns();
		if (i < WARM_UP) {
			end_ns = now_ns + chain->duration_ns;
			continue;
		}
		floor_samples_add(samples, now_ns - start_ns);
		if (chain->duration_ns > 0 && now_ns >= end_ns)
			return;
	}
}

static void chain_run(struct chain *chain, struct floor_samples *samples)
{
	const int *processors = pinnings[chain->pinning].processors;
	pid_t pids[3];
	int listener;

	chain->lanes = floor_shared(LANES * sizeof(*chain->lanes));
	for (int i = 0; i < LANES; i++) {
		chain->lanes[i].bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (chain->lanes[i].bell_fd < 0)
			floor_fail("eventfd: %s", strerror(errno));
	}
	pids[0] = floor_fork();
	if (pids[0] == 0) {
		floor_pin(processors[2]);
		floor_netns_enter(chain->to);
		listener = floor_listen(chain->address, chain->port, 0);
		daemon_run(chain, &chain->lanes[D_TO_C], &chain->lanes[C_TO_D],
			   accept(listener, NULL, NULL));
	}
	pids[1] = floor_fork();
	if (pids[1] == 0) {
		floor_pin(processors[1]);
		floor_netns_enter(chain->from);
		daemon_run(chain, &chain->lanes[A_TO_B], &chain->lanes[B_TO_A],
			   floor_connect(chain->address, chain->port, 0));
	}
	pids[2] = floor_fork();
	if (pids[2] == 0) {
		unsigned long taken = 0;

		floor_pin(processors[3]);
		for (;;) {
			client_wait(&chain->lanes[C_TO_D], &taken, chain->client_spin_ns);
			lane_put(&chain->lanes[D_TO_C]);
		}
	}
	floor_pin(processors[0]);
	chain_measure(chain, samples);
	floor_end(pids, 3);
}

static void usage(FILE *out)
{
	fputs("usage: floor chain [OPTION...]\n"
	      "Round trips of 8 bytes: client, daemon, TCP, daemon, client and back, in ns.\n\n"
	      "  --from NETNS       namespace of the client that asks and its daemon (this one)\n"
	      "  --to NETNS         of those that answer (this one)\n"
	      "  --address A        of the daemon there (127.0.0.1)\n"
	      "  --port N           (7480)\n"
	      "  --client-spin US   clients yield so long before they sleep (0: they block)\n"
	      "  --daemon-spin US   daemons, since their client's last message (50)\n"
	      "  --pinning P        none; pair: client and daemon on one processor; cross: each\n"
	      "                     hop goes to the other processor (none)\n"
	      "  --duration MS      (1000; 0: by count alone)\n"
	      "  --count N          at most so many round trips (4194304)\n",
	      out);
}

static enum pinning pinning_of(const char *name)
{
	for (unsigned i = 0; i < PINNINGS; i++)
		if (strcmp(pinnings[i].name, name) == 0)
			return (enum pinning)i;
	floor_refuse("--pinning is none, pair or cross, not '%s'", name);
}

int floor_chain(int argc, char **argv)
{
	static const struct option options[] = {
		{"from", required_argument, NULL, 'f'},
		{"to", required_argument, NULL, 't'},
		{"address", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'},
		{"client-spin", required_argument, NULL, 'c'},
		{"daemon-spin", required_argument, NULL, 'd'},
		{"pinning", required_argument, NULL, 'i'},
		{"duration", required_argument, NULL, 'm'},
		{"count", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct chain chain = {
		.address = "127.0.0.1",
		.port = 7480,
		.daemon_spin_ns = 50 * FLOOR_US,
		.duration_ns = FLOOR_S,
		.count_max = SAMPLES_MAX,
	};
	struct floor_samples samples;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f':
			chain.from = optarg;
			break;
		case 't':
			chain.to = optarg;
			break;
		case 'a':
			chain.address = optarg;
			break;
		case 'p':
			chain.port = (uint16_t)floor_number("port", optarg, 1, 65535);
			break;
		case 'c':
			chain.client_spin_ns =
				floor_number("client-spin", optarg, 0, 1000000) * FLOOR_US;
			break;
		case 'd':
			chain.daemon_spin_ns =
				floor_number("daemon-spin", optarg, 0, 1000000) * FLOOR_US;
			break;
		case 'i':
			chain.pinning = pinning_of(optarg);
			break;
		case 'm':
			chain.duration_ns = floor_number("duration", optarg, 0, 3600000) * FLOOR_MS;
			break;
		case 'n':
			chain.count_max = floor_number("count", optarg, 1, SAMPLES_MAX);
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	if (optind < argc)
		floor_refuse("'%s' is no option", argv[optind]);
	if (chain.pinning != PINNING_NONE && floor_processors() < 2)
		floor_fail("--pinning %s takes two processors", pinnings[chain.pinning].name);
	floor_samples_init(&samples, chain.count_max);
	chain_run(&chain, &samples);
	printf("{\"what\": \"chain\", \"pinning\": \"%s\", ", pinnings[chain.pinning].name);
	printf("\"client_spin_ns\": %llu, \"daemon_spin_ns\": %llu, ",
	       (unsigned long long)chain.client_spin_ns, (unsigned long long)chain.daemon_spin_ns);
	floor_samples_print(&samples, "latency_ns");
	printf("}\n");
	free(samples.ns);
	return 0;
}
