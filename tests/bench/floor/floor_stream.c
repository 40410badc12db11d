/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One stream over TCP or MPTCP, and for how long nothing of it arrived: the
 * receiver notes each gap between two reads, to the microsecond, which iperf3 -i
 * cannot. What it prints has the shape of mrc-perf's JSON: stalls, series.
 */
#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define CHUNK_BYTES (256U << 10)
#define GAPS_MAX    65536U

struct stream {
	const char *from;
	const char *to;
	const char *address;
	uint16_t port;
	int protocol; /* 0: TCP */
	uint64_t duration_ns;
	uint64_t interval_ns;
	uint64_t gap_min_ns;
};

struct gap {
	uint64_t start_ns;
	uint64_t span_ns;
	bool is_open; /* nothing had come yet when the stream ended */
};

struct point {
	uint64_t t_ns;
	uint64_t bytes;
};

struct arrivals {
	uint64_t start_ns;
	uint64_t start_unix_us;
	uint64_t last_ns; /* when something came */
	uint64_t bytes;
	uint64_t interval_bytes;
	struct gap *gaps;
	uint32_t gap_count;
	uint64_t gaps_dropped;
	struct point *points;
	uint64_t point_count;
	uint64_t point_count_max;
};

static void arrivals_note(struct arrivals *arrivals, const struct stream *stream, uint64_t now_ns,
			  bool is_open)
{
	if (now_ns - arrivals->last_ns < stream->gap_min_ns)
		return;
	if (arrivals->gap_count == GAPS_MAX) {
		arrivals->gaps_dropped++;
		return;
	}
	arrivals->gaps[arrivals->gap_count++] = (struct gap){
		.start_ns = arrivals->last_ns,
		.span_ns = now_ns - arrivals->last_ns,
		.is_open = is_open,
	};
}

static void arrivals_point(struct arrivals *arrivals, uint64_t now_ns)
{
	if (arrivals->point_count < arrivals->point_count_max)
		arrivals->points[arrivals->point_count++] =
			(struct point){.t_ns = now_ns - arrivals->start_ns,
				       .bytes = arrivals->interval_bytes};
	arrivals->interval_bytes = 0;
}

static void arrivals_print(const struct arrivals *arrivals, const struct stream *stream)
{
	uint64_t last_t_ns = 0;

	printf("{\"what\": \"stream\", \"protocol\": \"%s\", \"start_unix_us\": %" PRIu64
	       ", \"duration_ns\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"stalls\": [",
	       stream->protocol ? "MPTCP" : "TCP", arrivals->start_unix_us, stream->duration_ns,
	       arrivals->bytes);
	for (uint32_t i = 0; i < arrivals->gap_count; i++) {
		uint64_t t_ns = arrivals->gaps[i].start_ns - arrivals->start_ns;

		printf("%s{\"unix_us\": %" PRIu64 ", \"t_ns\": %" PRIu64 ", \"span_ns\": %" PRIu64
		       ", \"open\": %s}",
		       i ? ", " : "", arrivals->start_unix_us + t_ns / 1000, t_ns,
		       arrivals->gaps[i].span_ns, arrivals->gaps[i].is_open ? "true" : "false");
	}
	printf("], \"stalls_dropped\": %" PRIu64 ", \"series\": [", arrivals->gaps_dropped);
	for (uint64_t i = 0; i < arrivals->point_count; i++) {
		printf("%s{\"t_ns\": %" PRIu64 ", \"span_ns\": %" PRIu64 ", \"bytes\": %" PRIu64
		       "}",
		       i ? ", " : "", arrivals->points[i].t_ns,
		       arrivals->points[i].t_ns - last_t_ns, arrivals->points[i].bytes);
		last_t_ns = arrivals->points[i].t_ns;
	}
	printf("]}\n");
}

/* Wait for bytes until a moment; answers whether there may be some. */
static bool wait_until(int fd, uint64_t at_ns)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	uint64_t now_ns = floor_now_ns();
	struct timespec left = {0};

	if (at_ns > now_ns) {
		left.tv_sec = (time_t)((at_ns - now_ns) / FLOOR_S);
		left.tv_nsec = (long)((at_ns - now_ns) % FLOOR_S);
	}
	return ppoll(&readable, 1, &left, NULL) > 0;
}

static void receive(const struct stream *stream, int fd, char *chunk, struct arrivals *arrivals)
{
	uint64_t now_ns = floor_now_ns(), end_ns = now_ns + stream->duration_ns;
	uint64_t tick_ns = now_ns + stream->interval_ns;

	arrivals->start_ns = arrivals->last_ns = now_ns;
	arrivals->start_unix_us = floor_wall_us();
	while (now_ns < end_ns) {
		ssize_t len = recv(fd, chunk, CHUNK_BYTES, MSG_DONTWAIT);

		now_ns = floor_now_ns();
		while (now_ns >= tick_ns) {
			arrivals_point(arrivals, tick_ns);
			tick_ns += stream->interval_ns;
		}
		if (len > 0) {
			arrivals_note(arrivals, stream, now_ns, false);
			arrivals->last_ns = now_ns;
			arrivals->bytes += (uint64_t)len;
			arrivals->interval_bytes += (uint64_t)len;
			continue;
		}
		if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
			fprintf(stderr, "stream: it ended: %s\n",
				len == 0 ? "closed by the sender" : strerror(errno));
			break;
		}
		wait_until(fd, tick_ns < end_ns ? tick_ns : end_ns);
		now_ns = floor_now_ns();
	}
	/* a stream that broke gives nothing for the rest of the time either */
	arrivals_note(arrivals, stream, now_ns < end_ns ? end_ns : now_ns, true);
}

static void __attribute__((noreturn)) send_for_ever(const struct stream *stream, char *chunk)
{
	int fd;

	floor_netns_enter(stream->from);
	fd = floor_connect(stream->address, stream->port, stream->protocol);
	while (send(fd, chunk, CHUNK_BYTES, MSG_NOSIGNAL) > 0 || errno == EINTR)
		;
	fprintf(stderr, "stream: the sender ended: %s\n", strerror(errno));
	/* the receiver says for how long nothing came */
	for (;;)
		pause();
}

static void usage(FILE *out)
{
	fputs("usage: floor stream [OPTION...]\n"
	      "One stream, and every gap between two reads of it. \"flows\" on stderr says that it "
	      "does.\n\n"
	      "  --from NETNS      namespace of the sender (this one)\n"
	      "  --to NETNS        of the receiver (this one)\n"
	      "  --address A       of the receiver (127.0.0.1)\n"
	      "  --port N          (7481)\n"
	      "  --mptcp           by MPTCP, with what paths `ip mptcp` allows\n"
	      "  --duration MS     from the first byte on (1000)\n"
	      "  --interval MS     of the series (20)\n"
	      "  --gaps US         note those that are at least so long (500)\n",
	      out);
}

static void options_take(struct stream *stream, int argc, char **argv)
{
	static const struct option options[] = {
		{"from", required_argument, NULL, 'f'},
		{"to", required_argument, NULL, 't'},
		{"address", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'},
		{"mptcp", no_argument, NULL, 'M'},
		{"duration", required_argument, NULL, 'd'},
		{"interval", required_argument, NULL, 'i'},
		{"gaps", required_argument, NULL, 'g'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f':
			stream->from = optarg;
			break;
		case 't':
			stream->to = optarg;
			break;
		case 'a':
			stream->address = optarg;
			break;
		case 'p':
			stream->port = (uint16_t)floor_number("port", optarg, 1, 65535);
			break;
		case 'M':
			stream->protocol = IPPROTO_MPTCP;
			break;
		case 'd':
			stream->duration_ns =
				floor_number("duration", optarg, 1, 3600000) * FLOOR_MS;
			break;
		case 'i':
			stream->interval_ns = floor_number("interval", optarg, 1, 60000) * FLOOR_MS;
			break;
		case 'g':
			stream->gap_min_ns = floor_number("gaps", optarg, 1, 60000000) * FLOOR_US;
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		}
	}
	if (optind < argc)
		floor_refuse("'%s' is no option", argv[optind]);
}

int floor_stream(int argc, char **argv)
{
	struct stream stream = {
		.address = "127.0.0.1",
		.port = 7481,
		.duration_ns = FLOOR_S,
		.interval_ns = 20 * FLOOR_MS,
		.gap_min_ns = 500 * FLOOR_US,
	};
	struct arrivals arrivals = {0};
	char *chunk;
	pid_t sender;
	int fd;

	options_take(&stream, argc, argv);
	chunk = calloc(1, CHUNK_BYTES);
	arrivals.point_count_max = stream.duration_ns / stream.interval_ns + 1;
	arrivals.points = calloc(arrivals.point_count_max, sizeof(*arrivals.points));
	arrivals.gaps = calloc(GAPS_MAX, sizeof(*arrivals.gaps));
	if (!chunk || !arrivals.points || !arrivals.gaps)
		floor_fail("no memory");
	sender = floor_fork();
	if (sender == 0)
		send_for_ever(&stream, chunk);
	floor_netns_enter(stream.to);
	/* at any address: further paths of MPTCP come to the others */
	fd = accept(floor_listen("0.0.0.0", stream.port, stream.protocol), NULL, NULL);
	if (fd < 0)
		floor_fail("accept: %s", strerror(errno));
	if (recv(fd, chunk, 1, MSG_PEEK) != 1)
		floor_fail("nothing came: %s", strerror(errno));
	fprintf(stderr, "flows\n");
	receive(&stream, fd, chunk, &arrivals);
	floor_end(&sender, 1);
	arrivals_print(&arrivals, &stream);
	free(chunk);
	free(arrivals.points);
	free(arrivals.gaps);
	return 0;
}
