/* SPDX-License-Identifier: BSD-2-Clause */
/* What this machine does at best, without a daemon: `floor --help`. */
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *floor_name = "floor";

static void __attribute__((format(printf, 1, 0))) say(const char *format, va_list arguments)
{
	fprintf(stderr, "%s: ", floor_name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void floor_refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(2);
}

void floor_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(1);
}

uint64_t floor_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
		floor_refuse("--%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'",
			     option, min, max, text);
	return value;
}

uint64_t floor_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FLOOR_S + (uint64_t)ts.tv_nsec;
}

uint64_t floor_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* A child that ends before it is told to has said why; we would wait for it for ever. */
static void on_child(int signal_number)
{
	_exit(1);
}

pid_t floor_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	signal(SIGCHLD, on_child);
	pid = fork();
	if (pid < 0)
		floor_fail("fork: %s", strerror(errno));
	if (pid == 0) {
		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it was faster */
			_exit(1);
	}
	return pid;
}

void floor_end(const pid_t *pids, uint32_t count)
{
	signal(SIGCHLD, SIG_DFL);
	for (uint32_t i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (uint32_t i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

void floor_netns_enter(const char *name)
{
	char path[256];
	int fd;

	if (!name)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		floor_fail("network namespace %s: %s", name, strerror(errno));
	close(fd);
}

void floor_pin(int processor)
{
	cpu_set_t set;

	if (processor < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		floor_fail("processor %d: %s", processor, strerror(errno));
}

int floor_processors(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void *floor_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		floor_fail("%zu bytes of memory: %s", bytes, strerror(errno));
	return memory;
}

static struct sockaddr_in address_of(const char *address, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
		floor_refuse("'%s' is not an IPv4 address", address);
	return in;
}

static int socket_new(int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		floor_fail("socket of protocol %d: %s", protocol, strerror(errno));
	return fd;
}

int floor_listen(const char *address, uint16_t port, int protocol)
{
	struct sockaddr_in in = address_of(address, port);
	int fd = socket_new(protocol), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&in, sizeof(in)) < 0 || listen(fd, 1) < 0)
		floor_fail("%s port %u: %s", address, port, strerror(errno));
	return fd;
}

int floor_connect(const char *address, uint16_t port, int protocol)
{
	struct sockaddr_in in = address_of(address, port);
	uint64_t end_ns = floor_now_ns() + 5 * FLOOR_S;
	int fd, one = 1;

	for (;;) {
		fd = socket_new(protocol);
		if (connect(fd, (const struct sockaddr *)&in, sizeof(in)) == 0)
			break;
		/* the listener may still be starting */
		if (errno != ECONNREFUSED || floor_now_ns() > end_ns)
			floor_fail("%s port %u: %s", address, port, strerror(errno));
		close(fd);
		usleep(5000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

void floor_samples_init(struct floor_samples *samples, uint64_t count_max)
{
	samples->count = 0;
	samples->count_max = count_max;
	samples->ns = calloc(count_max, sizeof(*samples->ns));
	if (!samples->ns)
		floor_fail("no memory for %" PRIu64 " samples", count_max);
}

void floor_samples_add(struct floor_samples *samples, uint64_t ns)
{
	if (samples->count < samples->count_max)
		samples->ns[samples->count++] = ns;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t quantile(const struct floor_samples *samples, uint64_t ppm)
{
	return samples->count ? samples->ns[(samples->count - 1) * ppm / 1000000] : 0;
}

void floor_samples_print(struct floor_samples *samples, const char *name)
{
	uint64_t sum = 0;

	qsort(samples->ns, samples->count, sizeof(*samples->ns), by_size);
	for (uint64_t i = 0; i < samples->count; i++)
		sum += samples->ns[i];
	printf("\"%s\": {\"count\": %" PRIu64 ", \"min\": %" PRIu64 ", \"mean\": %" PRIu64
	       ", \"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64
	       ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "}",
	       name, samples->count, quantile(samples, 0),
	       samples->count ? sum / samples->count : 0, quantile(samples, 500000),
	       quantile(samples, 900000), quantile(samples, 990000), quantile(samples, 999000),
	       quantile(samples, 1000000));
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{"chain", floor_chain, "four processes, two hand-overs and TCP: there and back"},
	{"handover", floor_handover, "one eventfd hand-over, one way"},
	{"memcpy", floor_memcpy, "GB/s copied"},
	{"crc", floor_crc, "GB/s of CRC32C, by ISA-L"},
	{"stream", floor_stream, "one TCP or MPTCP stream, and when nothing of it arrived"},
};

static void usage(FILE *out)
{
	fputs("usage: floor COMMAND [OPTION...]\n"
	      "What this machine does at best, without a daemon; one JSON object each.\n\n",
	      out);
	for (size_t i = 0; i < FLOOR_ARRAY_LEN(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\nfloor COMMAND --help names its options.\n", out);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < FLOOR_ARRAY_LEN(commands); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		floor_name = argv[1];
		return commands[i].run(argc - 1, argv + 1);
	}
	if (strcmp(name, "--help") == 0) {
		usage(stdout);
		return 0;
	}
	if (*name)
		fprintf(stderr, "floor: there is no command '%s'\n", name);
	usage(stderr);
	return 2;
}
