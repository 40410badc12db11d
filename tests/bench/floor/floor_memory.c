/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast bytes are copied, and how fast they are summed as the daemon sums them
 * (crc32_iscsi, daemon/mrcd_crc.c), for working sets that fit into one cache or
 * another or none, on one processor and on two at a time.
 *
 * The working set of a copy is source and destination together, so half of it
 * is copied each time; GB/s counts the bytes copied.
 */
#include "floor.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <isa-l/crc.h>

#define PROCESSORS_MAX 2

struct shared {
	atomic_uint ready;
	atomic_bool go;
	double bytes_per_s[PROCESSORS_MAX];
	uint32_t sum; /* so that no compiler finds the work idle */
};

/* One pass over the working set; answers the bytes it counts for. */
typedef uint64_t (*pass_fn)(struct shared *shared, unsigned char *memory, size_t bytes);

static uint64_t pass_memcpy(struct shared *shared, unsigned char *memory, size_t bytes)
{
	memcpy(memory, memory + bytes / 2, bytes / 2);
	__asm__ volatile("" ::"r"(memory) : "memory");
	return bytes / 2;
}

static uint64_t pass_crc(struct shared *shared, unsigned char *memory, size_t bytes)
{
	shared->sum ^= crc32_iscsi(memory, (int)bytes, ~0U);
	return bytes;
}

static double run_passes(struct shared *shared, pass_fn pass, size_t bytes, uint64_t duration_ns)
{
	unsigned char *memory = aligned_alloc(4096, bytes);
	uint64_t start_ns, now_ns, done = 0;

	if (!memory)
		floor_fail("no memory for %zu bytes", bytes);
	memset(memory, 0x5a, bytes);
	pass(shared, memory, bytes);
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->go))
		;
	start_ns = floor_now_ns();
	do {
		/* the clock is looked at once in a MiB or more */
		for (size_t i = 0; i < (1U << 20); i += bytes)
			done += pass(shared, memory, bytes);
		now_ns = floor_now_ns();
	} while (now_ns - start_ns < duration_ns);
	free(memory);
	return (double)done * 1e9 / (double)(now_ns - start_ns);
}

static double measure(pass_fn pass, size_t bytes, uint32_t processors, uint64_t duration_ns)
{
	struct shared *shared = floor_shared(sizeof(*shared));
	pid_t pids[PROCESSORS_MAX];
	double sum = 0;

	for (uint32_t i = 0; i < processors; i++) {
		pids[i] = floor_fork();
		if (pids[i] != 0)
			continue;
		floor_pin((int)i);
		shared->bytes_per_s[i] = run_passes(shared, pass, bytes, duration_ns);
		atomic_fetch_add(&shared->ready, 1);
		pause();
	}
	/* sleeping: these processors are measured */
	while (atomic_load(&shared->ready) < processors)
		usleep(1000);
	atomic_store(&shared->go, true);
	while (atomic_load(&shared->ready) < 2 * processors)
		usleep(1000);
	floor_end(pids, processors);
	for (uint32_t i = 0; i < processors; i++)
		sum += shared->bytes_per_s[i];
	return sum;
}

static void usage(FILE *out, const char *name)
{
	fprintf(out,
		"usage: floor %s [--duration MS]\n"
		"Bytes per second for working sets of 64 KiB, 1 MiB and 64 MiB, on one processor\n"
		"and on two at a time. --duration is of each figure (200).\n",
		name);
}

static int memory_run(int argc, char **argv, pass_fn pass)
{
	static const struct option options[] = {
		{"duration", required_argument, NULL, 'm'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static const struct {
		const char *name;
		size_t bytes;
	} sets[] = {{"64KiB", 64U << 10}, {"1MiB", 1U << 20}, {"64MiB", 64U << 20}};
	uint64_t duration_ns = 200 * FLOOR_MS;
	const char *separator = "";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 'm') {
			usage(option == 'h' ? stdout : stderr, argv[0]);
			return option == 'h' ? 0 : 2;
		}
		duration_ns = floor_number("duration", optarg, 1, 600000) * FLOOR_MS;
	}
	if (optind < argc)
		floor_refuse("'%s' is no option", argv[optind]);
	printf("{\"what\": \"%s\", \"figures\": [", argv[0]);
	for (uint32_t processors = 1; processors <= PROCESSORS_MAX; processors++) {
		if ((int)processors > floor_processors())
			break;
		for (size_t i = 0; i < FLOOR_ARRAY_LEN(sets); i++) {
			printf("%s{\"working_set\": \"%s\", \"processors\": %" PRIu32
			       ", \"bytes_per_s\": %.0f}",
			       separator, sets[i].name, processors,
			       measure(pass, sets[i].bytes, processors, duration_ns));
			separator = ", ";
		}
	}
	printf("]}\n");
	return 0;
}

int floor_memcpy(int argc, char **argv)
{
	return memory_run(argc, argv, pass_memcpy);
}

int floor_crc(int argc, char **argv)
{
	return memory_run(argc, argv, pass_crc);
}
