/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One hand-over by eventfd, one way: from before the write to after the read in
 * the other process, which slept. What it costs depends on where that one is:
 *
 *	one_core        on the writer's processor, which becomes free by the writer's own sleep
 *	busy_core       on the other one, which does something less important meanwhile
 *	asleep_N        on the other one, which has had nothing to do for N us
 */
#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct handover {
	atomic_ullong written_ns; /* when the writer began, for the reader to subtract */
	atomic_ullong span_ns;    /* what the reader found */
	atomic_uint taken;        /* hand-overs so far */
	int bell_fd;
	int answer_fd;
};

struct row {
	const char *name;
	int reader_processor;
	bool is_other_busy;
	uint64_t idle_us; /* between the hand-overs */
	uint64_t count;
};

static void ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		floor_fail("eventfd: %s", strerror(errno));
}

static void listen_for(int fd)
{
	uint64_t rung;

	while (read(fd, &rung, sizeof(rung)) < 0)
		if (errno != EINTR)
			floor_fail("eventfd: %s", strerror(errno));
}

static void __attribute__((noreturn)) read_for_ever(struct handover *handover, bool is_answering)
{
	for (;;) {
		listen_for(handover->bell_fd);
		atomic_store(&handover->span_ns,
			     floor_now_ns() - atomic_load(&handover->written_ns));
		atomic_fetch_add(&handover->taken, 1);
		if (is_answering)
			ring(handover->answer_fd);
	}
}

/* Keeps a processor from sleeping, and gives it up to anybody at once. */
static void __attribute__((noreturn)) burn(int processor)
{
	struct sched_param none = {0};

	floor_pin(processor);
	if (sched_setscheduler(0, SCHED_IDLE, &none) < 0)
		floor_fail("SCHED_IDLE: %s", strerror(errno));
	for (;;)
		__asm__ volatile("" ::: "memory");
}

/* The writer keeps its own processor awake. */
static void spin_until(uint64_t at_ns)
{
	while (floor_now_ns() < at_ns)
		;
}

static void row_measure(const struct row *row, struct floor_samples *samples)
{
	struct handover *handover = floor_shared(sizeof(*handover));
	bool is_one_core = row->reader_processor == 0;
	uint64_t end_ns = floor_now_ns() + 10 * FLOOR_S;
	pid_t pids[2];
	uint32_t pid_count = 0;

	handover->bell_fd = eventfd(0, EFD_CLOEXEC);
	handover->answer_fd = eventfd(0, EFD_CLOEXEC);
	if (handover->bell_fd < 0 || handover->answer_fd < 0)
		floor_fail("eventfd: %s", strerror(errno));
	pids[pid_count++] = floor_fork();
	if (pids[0] == 0) {
		floor_pin(row->reader_processor);
		read_for_ever(handover, is_one_core);
	}
	if (row->is_other_busy) {
		pids[pid_count++] = floor_fork();
		if (pids[1] == 0)
			burn(row->reader_processor);
	}
	floor_pin(0);
	usleep(20000); /* until the reader sleeps */
	for (uint64_t i = 0; i < row->count && floor_now_ns() < end_ns; i++) {
		unsigned taken = atomic_load(&handover->taken);

		spin_until(floor_now_ns() + row->idle_us * FLOOR_US);
		atomic_store(&handover->written_ns, floor_now_ns());
		ring(handover->bell_fd);
		if (is_one_core)
			listen_for(handover->answer_fd);
		while (atomic_load(&handover->taken) == taken)
			;
		floor_samples_add(samples, atomic_load(&handover->span_ns));
	}
	floor_end(pids, pid_count);
	close(handover->bell_fd);
	close(handover->answer_fd);
}

static void usage(FILE *out)
{
	fputs("usage: floor handover [OPTION...]\n"
	      "One eventfd hand-over from a process to another that sleeps, one way, in ns.\n\n"
	      "  --count N   of each kind (2000); those to a processor that has slept for 5 ms\n"
	      "              are a tenth of it\n",
	      out);
}

int floor_handover(int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t count = 2000;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 'n') {
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
		count = floor_number("count", optarg, 10, 1000000);
	}
	if (optind < argc)
		floor_refuse("'%s' is no option", argv[optind]);

	const struct row rows[] = {
		{"one_core_ns", 0, false, 10, count},
		{"busy_core_ns", 1, true, 10, count},
		{"asleep_200us_ns", 1, false, 200, count},
		{"asleep_5ms_ns", 1, false, 5000, count / 10},
	};

	printf("{\"what\": \"handover\"");
	for (size_t i = 0; i < FLOOR_ARRAY_LEN(rows); i++) {
		struct floor_samples samples;

		if (rows[i].reader_processor >= floor_processors())
			continue;
		floor_samples_init(&samples, rows[i].count);
		row_measure(&rows[i], &samples);
		printf(", ");
		floor_samples_print(&samples, rows[i].name);
		free(samples.ns);
	}
	printf("}\n");
	return 0;
}
