/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a link that block. Each link has a channel of the connection
 * manager to itself, so a late event of an old epoch finds nobody, and waiting
 * for one link's events holds up no other's.
 */
#include "mrcd_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RESOLVE_MS     1000
#define RNR_TIMER      12 /* 0.64 ms (InfiniBand specification, table 45) */
#define ALARM_AGAIN_NS (50 * (long)MRC_MS)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc before 2.41 has no name for it */
#endif
/* What is asked for; a device that has less gives less. */
static const uint32_t inline_wishes[] = {512, 256, 128, MRC_WIRE_HDR_BYTES, 0};

static struct mrcd_verbs_link *link_of_job(struct mrcd_job *job)
{
	return (struct mrcd_verbs_link *)(void *)((char *)job -
						  offsetof(struct mrcd_verbs_link, job));
}

__attribute__((format(printf, 3, 4))) static int fail(struct mrcd_verbs_link *link, int error,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(link->why, sizeof(link->why), format, args);
	va_end(args);
	link->error = error < 0 ? error : -EIO;
	return link->error;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MRC_S + (uint64_t)now.tv_nsec;
}

/*
 * The next event of this link; anything but `want` is a failure. Ends at the
 * link's deadline, and when the loop has cancelled it: a connect to a dead peer
 * gives no event at all.
 */
static int event_await(struct mrcd_verbs_link *link, enum rdma_cm_event_type want, const char *what)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(link->channel, &event) < 0) {
		struct pollfd fds[2] = {
			{.fd = link->channel->fd, .events = POLLIN},
			{.fd = link->cancel_fd, .events = POLLIN},
		};
		uint64_t now_ns = clock_ns();
		int left_ms = now_ns < link->deadline_ns
				      ? (int)((link->deadline_ns - now_ns) / MRC_MS) + 1
				      : 0;

		if (errno != EAGAIN && errno != EINTR)
			return fail(link, -errno, "%s: %s", what, strerror(errno));
		if (left_ms == 0)
			return fail(link, -ETIMEDOUT, "%s: no answer", what);
		poll(fds, 2, left_ms);
		if (fds[1].revents)
			return fail(link, -ECANCELED, "%s: no longer wanted", what);
	}
	if (event->event != want) {
		if (event->event == RDMA_CM_EVENT_REJECTED)
			fail(link, -ECONNREFUSED, "%s: refused by the other end", what);
		else
			fail(link, event->status, "%s: %s, status %d", what,
			     rdma_event_str(event->event), event->status);
		rdma_ack_cm_event(event);
		return link->error;
	}
	rdma_ack_cm_event(event);
	return 0;
}

static int channel_make(struct mrcd_verbs_link *link)
{
	link->channel = rdma_create_event_channel();
	if (!link->channel || fcntl(link->channel->fd, F_SETFL, O_NONBLOCK) < 0)
		return fail(link, -errno, "no event channel: %s", strerror(errno));
	return 0;
}

/* Where the peer's device is seen from the rail's own address. */
static int address_resolve(struct mrcd_verbs_link *link)
{
	struct sockaddr_storage own = link->device->own;

	if (own.ss_family == AF_INET)
		((struct sockaddr_in *)&own)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&own)->sin6_port = 0;
	if (rdma_create_id(link->channel, &link->id, link, RDMA_PS_TCP) < 0)
		return fail(link, -errno, "no identifier: %s", strerror(errno));
	if (rdma_resolve_addr(link->id, (struct sockaddr *)&own, (struct sockaddr *)&link->address,
			      RESOLVE_MS) < 0)
		return fail(link, -errno, "address not resolved: %s", strerror(errno));
	if (event_await(link, RDMA_CM_EVENT_ADDR_RESOLVED, "resolving the address") < 0)
		return link->error;
	if (link->id->verbs != link->device->context)
		return fail(link, -EXDEV, "the way to this address is not by the rail's device");
	if (rdma_resolve_route(link->id, RESOLVE_MS) < 0)
		return fail(link, -errno, "route not resolved: %s", strerror(errno));
	return event_await(link, RDMA_CM_EVENT_ROUTE_RESOLVED, "resolving the route");
}

static int queue_pair_make(struct mrcd_verbs_link *link)
{
	struct mrcd_verbs_device *device = link->device;
	struct ibv_qp_init_attr attr;
	int r = -1;

	link->slot_mr = ibv_reg_mr(device->pd, link->slot_memory,
				   (size_t)MRCD_VERBS_SLOTS * MRCD_VERBS_SLOT_BYTES, 0);
	if (!link->slot_mr)
		return fail(link, -errno, "memory of the send queue not registered: %s",
			    strerror(errno));
	/* Every work request completes at most once, flushed ones as well: it cannot overflow. */
	link->send_cq =
		ibv_create_cq(device->context, MRCD_VERBS_WRS, device->verbs, device->comp, 0);
	if (!link->send_cq)
		return fail(link, -errno, "no completion queue: %s", strerror(errno));
	for (uint32_t i = 0; r < 0 && i < sizeof(inline_wishes) / sizeof(inline_wishes[0]); i++) {
		attr = (struct ibv_qp_init_attr){
			.qp_context = link,
			.send_cq = link->send_cq,
			.recv_cq = device->recv_cq,
			.srq = device->srq,
			.cap = {.max_send_wr = MRCD_VERBS_WRS,
				.max_send_sge = 2,
				.max_inline_data = inline_wishes[i]},
			.qp_type = IBV_QPT_RC,
		};
		r = rdma_create_qp(link->id, device->pd, &attr);
	}
	if (r < 0)
		return fail(link, -errno, "no queue pair: %s", strerror(errno));
	link->qp = link->id->qp;
	link->number = link->qp->qp_num;
	link->inline_bytes = attr.cap.max_inline_data;
	return 0;
}

void mrcd_verbs_prepare_run(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	uint8_t ack_timeout = link->verbs->conf.ack_timeout;

	if (channel_make(link) < 0)
		return;
	if (link->is_initiator) {
		if (address_resolve(link) < 0)
			return;
	} else if (rdma_migrate_id(link->id, link->channel) < 0) {
		fail(link, -errno, "the request cannot be taken: %s", strerror(errno));
		return;
	}
	/* rdma_cm would wait 2 s for each answer. iWARP has no such timer and refuses. */
	rdma_set_option(link->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			sizeof(ack_timeout));
	queue_pair_make(link);
}

static void on_alarm(int signal_number)
{
}

void mrcd_verbs_alarm_init(void)
{
	const struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */

	sigaction(SIGALRM, &action, NULL);
}

/*
 * On iWARP rdma_connect() is a TCP connect of the kernel's, which a silent peer
 * holds for minutes. A signal to this thread ends it; it is repeated, since the
 * first one may come before the call.
 */
static int connect_bounded(struct mrcd_verbs_link *link, struct rdma_conn_param *param)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	struct itimerspec when = {
		.it_interval = {.tv_nsec = ALARM_AGAIN_NS},
		.it_value = {.tv_sec = (time_t)(link->deadline_ns / MRC_S),
			     .tv_nsec = (long)(link->deadline_ns % MRC_S)},
	};
	sigset_t alarm_set;
	timer_t timer;
	int r, error;

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return -1;
	sigemptyset(&alarm_set);
	sigaddset(&alarm_set, SIGALRM);
	timer_settime(timer, TIMER_ABSTIME, &when, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarm_set, NULL);
	r = rdma_connect(link->id, param);
	error = errno;
	pthread_sigmask(SIG_BLOCK, &alarm_set, NULL);
	timer_delete(timer);
	errno = error;
	return r;
}

void mrcd_verbs_connect_run(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	struct rdma_conn_param param = {
		.private_data = link->is_initiator ? link->token : NULL,
		.private_data_len = link->is_initiator ? sizeof(link->token) : 0,
		/* We read nothing; iWARP wants one all the same. */
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = link->verbs->conf.retry_count,
		/* Shares see to it that there is a receive entry; a peer that breaks them waits a little. */
		.rnr_retry_count = 6,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (link->is_initiator && connect_bounded(link, &param) < 0)
		fail(link, -errno, "connecting: %s", strerror(errno));
	else if (!link->is_initiator && rdma_accept(link->id, &param) < 0)
		fail(link, -errno, "accepting: %s", strerror(errno));
	else if (event_await(link, RDMA_CM_EVENT_ESTABLISHED,
			     link->is_initiator ? "connecting" : "accepting") == 0 &&
		 ibv_query_qp(link->qp, &attr, IBV_QP_DEST_QPN, &init) == 0)
		link->peer_number = attr.dest_qp_num;
	if (link->error)
		return;
	link->was_established = true;
	/* The CM leaves 655 ms for a missing receive entry, which no path survives. iWARP has no such timer. */
	attr = (struct ibv_qp_attr){.min_rnr_timer = RNR_TIMER};
	ibv_modify_qp(link->qp, &attr, IBV_QP_MIN_RNR_TIMER);
}

/* Of a call into libibverbs: its errno, which it answers, or leaves behind beside -1. */
static int answer_of(int r)
{
	return r < 0 ? errno : r;
}

static void stuck_wait(const struct mrcd_verbs_link *link)
{
	const struct timespec span = {
		.tv_sec = (time_t)(link->stuck_ns / MRC_S),
		.tv_nsec = (long)(link->stuck_ns % MRC_S),
	};

	if (link->stuck_ns)
		nanosleep(&span, NULL);
}

void mrcd_verbs_stop_run(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (link->qp)
		link->stop_error = -answer_of(ibv_modify_qp(link->qp, &attr, IBV_QP_STATE));
}

/*
 * rdma_destroy_qp() does the same and keeps to itself whether it worked. Where
 * the kernel says that the device is gone it has destroyed the queue pair.
 */
static int queue_pair_destroy(struct mrcd_verbs_link *link)
{
	int error = answer_of(ibv_destroy_qp(link->qp));

	link->stuck_error = error == EIO || error == ENODEV ? 0 : -error;
	if (link->stuck_error)
		return link->stuck_error;
	link->id->qp = NULL;
	link->qp = NULL;
	return 0;
}

void mrcd_verbs_reset_run(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	bool is_iwarp = link->device->context->device->transport_type == IBV_TRANSPORT_IWARP;

	stuck_wait(link);
	link->stuck_error = 0;
	if (!link->qp || (!is_iwarp && ibv_modify_qp(link->qp, &attr, IBV_QP_STATE) == 0))
		return;
	/* iWARP has no way back to RESET: the queue pair itself has to go. */
	queue_pair_destroy(link);
}

void mrcd_verbs_destroy_run(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);

	stuck_wait(link);
	if (link->qp && queue_pair_destroy(link) < 0)
		return;
	if (link->id)
		rdma_destroy_id(link->id);
	if (link->channel)
		rdma_destroy_event_channel(link->channel);
	if (link->send_cq)
		ibv_destroy_cq(link->send_cq);
	if (link->slot_mr)
		ibv_dereg_mr(link->slot_mr);
	link->qp = NULL;
	link->id = NULL;
	link->channel = NULL;
	link->send_cq = NULL;
	link->slot_mr = NULL;
}

/* ---- strangers ---- */

struct reject_job {
	struct mrcd_job job; /* first */
	struct mrcd_lane lane;
	struct mrcd_verbs_device *device; /* in use by us */
	struct rdma_cm_id *id;
};

static void reject_run(struct mrcd_job *job)
{
	struct reject_job *reject = (struct reject_job *)job;

	rdma_reject(reject->id, NULL, 0);
	rdma_destroy_id(reject->id);
}

static void rejected(struct mrcd_job *job)
{
	struct reject_job *reject = (struct reject_job *)job;
	struct mrcd_verbs_device *device = reject->device;

	device->reject_count--;
	if (device->is_watched)
		event_add(&device->channel_event, NULL);
	free(reject);
	mrcd_verbs_device_put(device);
}

void mrcd_verbs_reject(struct mrcd_verbs *verbs, struct rdma_cm_id *id)
{
	struct reject_job *reject = calloc(1, sizeof(*reject));

	if (!reject || !verbs->device) {
		free(reject);
		rdma_destroy_id(id);
		return;
	}
	reject->id = id;
	reject->device = verbs->device;
	reject->device->use_count++;
	reject->device->reject_count++;
	/* A stranger waits behind every fence, and takes no thread that one may need. */
	reject->job = (struct mrcd_job){.run = reject_run, .done = rejected, .is_slow = true};
	mrcd_lane_init(&reject->lane);
	mrcd_offload_submit(verbs->rail->worker->offload, &reject->lane, &reject->job);
}
