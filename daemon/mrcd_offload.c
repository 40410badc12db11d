/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_offload.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

TAILQ_HEAD(mrcd_job_list, mrcd_job);

struct mrcd_offload {
	struct event event; /* of event_fd */
	int event_fd;       /* something is in `ended` */
	uint32_t pending;   /* given and not yet done; the loop's */
	pthread_t *threads;
	uint32_t thread_count;
	uint32_t slow_max; /* threads that may be in slow jobs at once */

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;
	/* The first jobs of their lanes: no lane is in both, or twice. */
	struct mrcd_job_list ready, ready_slow;
	struct mrcd_job_list ended; /* ran; done() is to come */
	uint32_t slow_running;
	bool is_ending;
};

void mrcd_lane_init(struct mrcd_lane *lane)
{
	TAILQ_INIT(&lane->jobs);
	lane->is_busy = false;
}

bool mrcd_lane_is_idle(const struct mrcd_lane *lane)
{
	MRC_ASSERT(lane->is_busy || TAILQ_EMPTY(&lane->jobs));
	return !lane->is_busy;
}

/* ---- the threads' half ---- */

/* The next job a thread may take; NULL: none now. */
static struct mrcd_job *job_take(struct mrcd_offload *offload)
{
	struct mrcd_job *job = TAILQ_FIRST(&offload->ready);

	if (job) {
		TAILQ_REMOVE(&offload->ready, job, entry);
		return job;
	}
	if (offload->slow_running == offload->slow_max)
		return NULL;
	job = TAILQ_FIRST(&offload->ready_slow);
	if (job) {
		TAILQ_REMOVE(&offload->ready_slow, job, entry);
		offload->slow_running++;
	}
	return job;
}

static void *thread_main(void *context)
{
	struct mrcd_offload *offload = context;
	const uint64_t one = 1;
	struct mrcd_job *job;

	pthread_mutex_lock(&offload->lock);
	while (!offload->is_ending) {
		ssize_t n;

		job = job_take(offload);
		if (!job) {
			pthread_cond_wait(&offload->work, &offload->lock);
			continue;
		}
		pthread_mutex_unlock(&offload->lock);
		job->run(job);
		pthread_mutex_lock(&offload->lock);
		if (job->is_slow) {
			MRC_ASSERT(offload->slow_running > 0);
			offload->slow_running--;
			/* Nobody is woken for the slow job that may go now: this thread takes it. */
		}
		TAILQ_INSERT_TAIL(&offload->ended, job, entry);
		/* From here on the job is the loop's. A full counter would say the same. */
		n = write(offload->event_fd, &one, sizeof(one));
		MRC_ASSERT(n == sizeof(one) || errno == EAGAIN);
	}
	pthread_mutex_unlock(&offload->lock);
	return NULL;
}

/* ---- the loop's half ---- */

/* The first job of its lane, for any thread. */
static void job_offer(struct mrcd_offload *offload, struct mrcd_job *job)
{
	pthread_mutex_lock(&offload->lock);
	TAILQ_INSERT_TAIL(job->is_slow ? &offload->ready_slow : &offload->ready, job, entry);
	pthread_cond_signal(&offload->work);
	pthread_mutex_unlock(&offload->lock);
}

void mrcd_offload_submit(struct mrcd_offload *offload, struct mrcd_lane *lane, struct mrcd_job *job)
{
	job->lane = lane;
	offload->pending++;
	if (lane->is_busy) {
		TAILQ_INSERT_TAIL(&lane->jobs, job, entry);
		return;
	}
	lane->is_busy = true;
	job_offer(offload, job);
}

static struct mrcd_job *ended_take(struct mrcd_offload *offload)
{
	struct mrcd_job *job;

	pthread_mutex_lock(&offload->lock);
	job = TAILQ_FIRST(&offload->ended);
	if (job)
		TAILQ_REMOVE(&offload->ended, job, entry);
	pthread_mutex_unlock(&offload->lock);
	return job;
}

/* Run done() of what has ended by now. */
static void ended_answer(struct mrcd_offload *offload)
{
	uint32_t count_max = offload->pending;
	uint64_t count;

	/* Before the list is looked at: what ends after that says so anew. */
	if (read(offload->event_fd, &count, sizeof(count)) < 0)
		MRC_ASSERT(errno == EAGAIN);
	for (uint32_t i = 0; i < count_max; i++) {
		struct mrcd_job *job = ended_take(offload), *next;

		if (!job)
			return;
		next = TAILQ_FIRST(&job->lane->jobs);
		if (next)
			TAILQ_REMOVE(&job->lane->jobs, next, entry);
		else
			job->lane->is_busy = false;
		MRC_ASSERT(offload->pending > 0);
		offload->pending--;
		/* Both may be gone when it returns: the lane, too, when nothing waits in it. */
		job->done(job);
		if (next)
			job_offer(offload, next);
	}
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
	ended_answer(context);
}

uint32_t mrcd_offload_pending(const struct mrcd_offload *offload)
{
	return offload->pending;
}

void mrcd_offload_drain(struct mrcd_offload *offload)
{
	struct pollfd pfd = {.fd = offload->event_fd, .events = POLLIN};

	while (offload->pending) {
		int r = poll(&pfd, 1, -1);

		MRC_ASSERT(r >= 0 || errno == EINTR);
		ended_answer(offload);
	}
}

/* ---- life ---- */

static void threads_end(struct mrcd_offload *offload)
{
	pthread_mutex_lock(&offload->lock);
	offload->is_ending = true;
	pthread_cond_broadcast(&offload->work);
	pthread_mutex_unlock(&offload->lock);
	for (uint32_t i = 0; i < offload->thread_count; i++)
		pthread_join(offload->threads[i], NULL);
}

/* Signals are the loop's: none is to be handled, or to end a call, on a thread of the pool. */
static int threads_begin(struct mrcd_offload *offload, uint32_t count)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	/* But for those a thread brings on itself. */
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (offload->thread_count < count && r == 0) {
		r = pthread_create(&offload->threads[offload->thread_count], NULL, thread_main,
				   offload);
		if (r == 0)
			offload->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int mrcd_offload_new(struct event_base *base, uint32_t threads, uint32_t reserved,
		     struct mrcd_offload **offload_out)
{
	struct mrcd_offload *offload;
	int r;

	MRC_ASSERT(threads >= 2 && reserved < threads);
	offload = calloc(1, sizeof(*offload));
	if (!offload)
		return -ENOMEM;
	offload->slow_max = threads - reserved;
	TAILQ_INIT(&offload->ready);
	TAILQ_INIT(&offload->ready_slow);
	TAILQ_INIT(&offload->ended);
	pthread_mutex_init(&offload->lock, NULL);
	pthread_cond_init(&offload->work, NULL);
	offload->threads = calloc(threads, sizeof(*offload->threads));
	if (!offload->threads) {
		r = -ENOMEM;
		goto err_free;
	}
	offload->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (offload->event_fd < 0) {
		r = -errno;
		goto err_free;
	}
	r = threads_begin(offload, threads);
	if (r < 0)
		goto err_end;
	event_assign(&offload->event, base, offload->event_fd, EV_READ | EV_PERSIST, on_event,
		     offload);
	event_add(&offload->event, NULL);
	*offload_out = offload;
	return 0;

err_end:
	threads_end(offload);
	close(offload->event_fd);
err_free:
	free(offload->threads);
	pthread_cond_destroy(&offload->work);
	pthread_mutex_destroy(&offload->lock);
	free(offload);
	return r;
}

void mrcd_offload_free(struct mrcd_offload *offload)
{
	if (!offload)
		return;
	mrcd_offload_drain(offload);
	threads_end(offload);
	event_del(&offload->event);
	close(offload->event_fd);
	free(offload->threads);
	pthread_cond_destroy(&offload->work);
	pthread_mutex_destroy(&offload->lock);
	free(offload);
}
