/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * step_server - gather a step's shards from all workers and take all of them, or none
 *
 *	mrc_step_server WORKERS [SERVICE]        default service: step
 *
 * A shard is an array of doubles, the same many from each worker; a step is one
 * shard of each. It is taken when every value is a number: then the shards are
 * committed together and their sum is printed. No worker is told COMMITTED for
 * a step that another one's shard spoilt. Ends when a worker has.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mrc/client.h>

#define WORKERS_MAX  64
#define CODE_SPOILT  1 /* a shard of this step has a value that is no number, or another length */
#define CODE_MISSING 2 /* a worker has gone without its shard */

static int accept_workers(struct mrc_client *client, const char *service,
			  struct mrc_channel *workers[], int count)
{
	struct mrc_listener *listener;
	int r = mrc_listen(client, service, MRC_WAIT_FOREVER, &listener, NULL);

	for (int i = 0; r == 0 && i < count; i++)
		r = mrc_accept(listener, MRC_WAIT_FOREVER, &workers[i]);
	return r;
}

static void reject_all(struct mrc_msg *shards[], int count, uint32_t code)
{
	for (int i = 0; i < count; i++)
		if (shards[i])
			mrc_msg_reject(shards[i], code, "a shard of this step is no good");
}

/* The sum of all values; not finite when one is no number or a shard has another length. */
static double step_sum(struct mrc_msg *const shards[], int count)
{
	double sum = 0;

	for (int i = 0; i < count; i++) {
		const double *values = mrc_msg_data(shards[i]);
		size_t len = mrc_msg_len_bytes(shards[i]);

		if (len != mrc_msg_len_bytes(shards[0]))
			return NAN;
		for (size_t v = 0; v < len / sizeof(*values); v++)
			sum += values[v];
	}
	return sum;
}

/* 0: taken or turned down; -EPIPE: a worker has gone. */
static int step_take(struct mrc_channel *workers[], int count, int step)
{
	struct mrc_msg *shards[WORKERS_MAX] = {NULL};
	double sum;
	int r = 0;

	for (int i = 0; i < count; i++) {
		int got = mrc_recv(workers[i], MRC_WAIT_FOREVER, &shards[i]);

		if (got < 0)
			r = got; /* the others' shards shall be answered */
	}
	sum = r == 0 ? step_sum(shards, count) : NAN;
	if (r < 0) {
		reject_all(shards, count, CODE_MISSING);
		printf("step %d: turned down, a shard is missing\n", step);
	} else if (!isfinite(sum)) {
		reject_all(shards, count, CODE_SPOILT);
		printf("step %d: turned down, a shard is spoilt\n", step);
	} else {
		r = mrc_msg_commit_batch(shards, (size_t)count);
		if (r == 0)
			printf("step %d: taken, sum %g\n", step, sum);
		else
			printf("step %d: turned down, %s\n", step,
			       r == -ECANCELED ? "a worker has gone" : mrc_error_text(r));
		r = r == -ECANCELED ? -EPIPE : r;
	}
	fflush(stdout);
	for (int i = 0; i < count; i++)
		mrc_msg_release(shards[i]);
	return r;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	struct mrc_channel *workers[WORKERS_MAX] = {NULL};
	struct mrc_client *client;
	int r;

	if (argc > 3 || count < 1 || count > WORKERS_MAX) {
		fprintf(stderr, "usage: %s WORKERS [SERVICE]; 1 to %d workers\n", argv[0],
			WORKERS_MAX);
		return 2;
	}
	r = mrc_attach(NULL, &client);
	if (r < 0) {
		fprintf(stderr, "attach: %s\n", mrc_last_error(NULL));
		return 1;
	}
	r = accept_workers(client, argc > 2 ? argv[2] : "step", workers, count);
	if (r < 0)
		fprintf(stderr, "listen: %s\n", mrc_error_text(r));
	for (int step = 0; r == 0; step++)
		r = step_take(workers, count, step);
	/* Answers that are on their way shall arrive. */
	for (int i = 0; r == -EPIPE && i < count; i++)
		mrc_close_wait(workers[i], 10000000000LL, NULL);
	mrc_detach(client);
	return r == -EPIPE ? 0 : 1;
}
