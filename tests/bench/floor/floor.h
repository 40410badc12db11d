/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor - what this machine does at best, without a daemon: what the parts of floor share
 *
 * Each part measures one thing and prints one JSON object on stdout. All of them
 * are processes without threads; children die with their parent.
 *
 * Units:     ns, bytes.
 * Ownership: samples belong to who called floor_samples_init().
 * I/O:       floor_fail() and floor_refuse() write to stderr and end the process.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define FLOOR_US           1000ULL
#define FLOOR_MS           1000000ULL
#define FLOOR_S            1000000000ULL

#define FLOOR_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct floor_samples {
	uint64_t *ns;
	uint64_t count;
	uint64_t count_max;
};

/* The subcommands; argv[0] is their name. They answer the exit status. */
int floor_chain(int argc, char **argv);
int floor_handover(int argc, char **argv);
int floor_memcpy(int argc, char **argv);
int floor_crc(int argc, char **argv);
int floor_stream(int argc, char **argv);

/* What was asked for is wrong: status 2. What the system would not do: status 1. */
void __attribute__((noreturn, format(printf, 1, 2))) floor_refuse(const char *format, ...);
void __attribute__((noreturn, format(printf, 1, 2))) floor_fail(const char *format, ...);

uint64_t floor_number(const char *option, const char *text, uint64_t min, uint64_t max);

uint64_t floor_now_ns(void);
uint64_t floor_wall_us(void);

/* A child that ends when we do, whatever ends us; if it ends first, so do we. As fork(), but never -1. */
pid_t floor_fork(void);
/* End children by their pid and wait for them. */
void floor_end(const pid_t *pids, uint32_t count);

void floor_netns_enter(const char *name); /* NULL: stay */
void floor_pin(int processor);            /* -1: do not */
int floor_processors(void);

/* Memory that children share, zeroed. */
void *floor_shared(size_t bytes);

int floor_listen(const char *address, uint16_t port, int protocol);
/* Tries for up to 5 s. */
int floor_connect(const char *address, uint16_t port, int protocol);

void floor_samples_init(struct floor_samples *samples, uint64_t count_max);
/* Too many are left out. */
void floor_samples_add(struct floor_samples *samples, uint64_t ns);
/* Sorts, and prints "NAME": {"count": ..., "p50": ...} without a newline. */
void floor_samples_print(struct floor_samples *samples, const char *name);

#endif
