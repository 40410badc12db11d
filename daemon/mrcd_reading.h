/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_reading - the configuration file read while data flows
 *
 * A file of thousands of peers takes tens of milliseconds to read and check, and names of users,
 * groups and files in it may lead to servers that do not answer; on the loop that would look to
 * every peer like a dead host; so would a kernel that waits for a driver before it lists addresses.
 * So it is read, and its rails are looked for, on a thread. What is asked for while a file is being
 * read is read after that, and after what the first reader made of it.
 *
 * Threads: the worker's loop, but for mrcd_reading_now().
 */
#ifndef MRCD_READING_H
#define MRCD_READING_H

#include "mrcd_conf.h"
#include "mrcd_nic_ask.h"

struct mrcd_worker;
struct mrcd_readings;

/* What was read. */
struct mrcd_reading {
	int r;                  /* 0, or as mrcd_conf_load() */
	struct mrcd_conf *conf; /* whoever gets it owns it; NULL: r says why */
	char error[512];        /* the first complaint; all are in the log */
	struct mrcd_nic_place places[MRCD_RAILS_MAX]; /* of its rails, as the kernel lists them */
	int places_error; /* 0, or why it lists nothing: a negative errno */
};

/* Steals reading->conf. */
typedef void (*mrcd_reading_fn)(void *context, struct mrcd_reading *reading);

/* Here and now, on any thread. */
void mrcd_reading_now(const char *file, struct mrcd_reading *reading_out);
/* `fn` is called once, later, from the loop. -ENOMEM, -EAGAIN (no thread): it is not. */
int mrcd_reading_ask(struct mrcd_worker *worker, const char *file, mrcd_reading_fn fn,
		     void *context);
/* Waits for what is being read, and calls for that and for what was still to be read. NULL is fine. */
void mrcd_readings_free(struct mrcd_readings *readings);

#endif
