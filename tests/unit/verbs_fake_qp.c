/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs and what they carry. */
#include "verbs_fake_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static LIST_HEAD(, fake_qp) qps = LIST_HEAD_INITIALIZER(qps);
static uint32_t number_next;
static uint64_t order_next;
static bool is_held;    /* work requests wait for verbs_fake_work() */
static int held_budget; /* so many of them may run */
static bool is_at_arming;
static bool is_apart;
static pthread_t apart_thread;
static bool has_last_event;
static int rnrs;
static uint32_t depth_max;

void fake_qp_begin(void)
{
	number_next = 0x11;
	order_next = 0;
	is_held = is_at_arming = false;
	held_budget = 0;
	has_last_event = true;
	rnrs = 0;
	depth_max = 0;
}

static struct fake_qp *qp_numbered(uint32_t number)
{
	struct fake_qp *qp;

	LIST_FOREACH(qp, &qps, entry)
	{
		if (qp->qp.qp_num == number)
			return qp;
	}
	return NULL;
}

static bool is_iwarp(const struct fake_qp *qp)
{
	return qp->qp.context->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* ---- life ---- */

struct fake_qp *fake_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_device *device = CONTEXT_OF(pd->context);
	struct fake_qp *qp;

	if (attr->cap.max_inline_data > device->inline_max) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->qp = (struct ibv_qp){.context = pd->context,
				 .qp_context = attr->qp_context,
				 .pd = pd,
				 .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq,
				 .srq = attr->srq,
				 .qp_num = number_next++,
				 .state = IBV_QPS_INIT,
				 .qp_type = attr->qp_type};
	qp->cap = attr->cap;
	((struct fake_cq *)attr->send_cq)->users++;
	((struct fake_cq *)attr->recv_cq)->users++;
	((struct fake_srq *)attr->srq)->users++;
	TAILQ_INIT(&qp->sends);
	LIST_INSERT_HEAD(&qps, qp, entry);
	fake_counts.qps++;
	return qp;
}

static void sends_drop(struct fake_qp *qp)
{
	struct fake_send *send;

	while ((send = TAILQ_FIRST(&qp->sends))) {
		TAILQ_REMOVE(&qp->sends, send, entry);
		free(send);
	}
	qp->posted = qp->freed = 0;
}

static void qp_clean(struct fake_qp *qp)
{
	sends_drop(qp);
	fake_cq_clean(qp->qp.send_cq, qp);
	fake_cq_clean(qp->qp.recv_cq, qp);
}

void fake_qp_free(struct fake_qp *qp)
{
	if (qp->peer)
		qp->peer->peer = NULL;
	qp_clean(qp);
	fake_async_drop(CONTEXT_OF(qp->qp.context), &qp->qp);
	((struct fake_cq *)qp->qp.send_cq)->users--;
	((struct fake_cq *)qp->qp.recv_cq)->users--;
	((struct fake_srq *)qp->qp.srq)->users--;
	LIST_REMOVE(qp, entry);
	fake_counts.qps--;
	free(qp);
}

void fake_qp_connect(struct fake_qp *a, struct fake_qp *b)
{
	a->peer = b;
	b->peer = a;
	a->peer_number = b->qp.qp_num;
	b->peer_number = a->qp.qp_num;
}

void fake_qp_free_all(void)
{
	while (!LIST_EMPTY(&qps))
		fake_qp_free(LIST_FIRST(&qps));
}

bool fake_qp_reads(uint32_t lkey)
{
	struct fake_qp *qp;
	struct fake_send *send;

	LIST_FOREACH(qp, &qps, entry)
	{
		TAILQ_FOREACH(send, &qp->sends, entry)
		{
			for (int i = 0; i < send->wr.num_sge; i++) {
				if (send->sges[i].length && send->sges[i].lkey == lkey &&
				    !(send->wr.send_flags & IBV_SEND_INLINE))
					return true;
			}
		}
	}
	return false;
}

/* ---- ends ---- */

/* The first request is over. */
static void send_end(struct fake_qp *qp, enum ibv_wc_status status)
{
	struct fake_send *send = TAILQ_FIRST(&qp->sends);
	struct fake_cqe cqe = {
		.wc = {.wr_id = send->wr.wr_id,
		       .status = status,
		       .opcode = send->wr.opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE,
		       .qp_num = qp->qp.qp_num},
		.qp = qp,
		.position = send->position,
	};

	TAILQ_REMOVE(&qp->sends, send, entry);
	if (status != IBV_WC_SUCCESS || send->wr.send_flags & IBV_SEND_SIGNALED)
		fake_cq_push(qp->qp.send_cq, &cqe);
	free(send);
}

static void to_error(struct fake_qp *qp)
{
	const struct ibv_async_event last = {.event_type = IBV_EVENT_QP_LAST_WQE_REACHED,
					     .element = {.qp = &qp->qp}};

	if (qp->qp.state == IBV_QPS_ERR || qp->qp.state == IBV_QPS_RESET)
		return;
	qp->qp.state = IBV_QPS_ERR;
	while (!TAILQ_EMPTY(&qp->sends))
		send_end(qp, IBV_WC_WR_FLUSH_ERR);
	if (is_iwarp(qp))
		fake_qp_disconnected(qp);
	else if (has_last_event)
		fake_async_add(CONTEXT_OF(qp->qp.context), &last);
}

static void qp_fail(struct fake_qp *qp, enum ibv_wc_status status)
{
	if (!TAILQ_EMPTY(&qp->sends))
		send_end(qp, status);
	to_error(qp);
}

/* ---- work ---- */

/* The bytes of a request, in one piece; the caller frees it. NULL: it may not read them. */
static uint8_t *gather(const struct fake_qp *qp, const struct fake_send *send, uint32_t *len_out)
{
	uint32_t len = 0;
	uint8_t *bytes;

	for (int i = 0; i < send->wr.num_sge; i++)
		len += send->sges[i].length;
	bytes = malloc(len ? len : 1);
	*len_out = len;
	if (send->wr.send_flags & IBV_SEND_INLINE) {
		memcpy(bytes, send->data, len);
		return bytes;
	}
	len = 0;
	for (int i = 0; i < send->wr.num_sge; i++) {
		const struct ibv_sge *sge = &send->sges[i];
		const uint8_t *from =
			fake_mr_bytes(qp->qp.pd, sge->lkey, false, sge->addr, sge->length);

		if (!from && sge->length) {
			free(bytes);
			return NULL;
		}
		if (sge->length)
			memcpy(bytes + len, from, sge->length);
		len += sge->length;
	}
	return bytes;
}

static void write_do(struct fake_qp *qp, const struct fake_send *send, const uint8_t *bytes,
		     uint32_t len)
{
	uint8_t *to = fake_mr_bytes(qp->peer->qp.pd, send->wr.wr.rdma.rkey, true,
				    send->wr.wr.rdma.remote_addr, len);
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_ACCESS_ERR,
					.element = {.qp = &qp->peer->qp}};

	if (to) {
		memcpy(to, bytes, len);
		send_end(qp, IBV_WC_SUCCESS);
		return;
	}
	fake_async_add(CONTEXT_OF(qp->peer->qp.context), &event);
	to_error(qp->peer);
	qp_fail(qp, IBV_WC_REM_ACCESS_ERR);
}

/* False: there is no receive entry. */
static bool send_do(struct fake_qp *qp, const uint8_t *bytes, uint32_t len)
{
	struct fake_srq *srq = (struct fake_srq *)qp->peer->qp.srq;
	struct fake_cqe cqe = {
		.wc = {.opcode = IBV_WC_RECV, .byte_len = len, .qp_num = qp->peer->qp.qp_num},
		.srq = srq,
	};
	struct fake_recv recv;

	if (!srq->count) {
		rnrs += !qp->is_rnr;
		qp->is_rnr = true;
		return false;
	}
	qp->is_rnr = false;
	recv = srq->recvs[srq->first];
	srq->first = (srq->first + 1) % srq->max;
	srq->count--;
	srq->taken++;
	cqe.wc.wr_id = recv.wr_id;
	if (len > recv.sge.length) {
		cqe.wc.status = IBV_WC_LOC_LEN_ERR;
		fake_cq_push(qp->peer->qp.recv_cq, &cqe);
		to_error(qp->peer);
		qp_fail(qp, IBV_WC_REM_INV_REQ_ERR);
		return true;
	}
	memcpy((void *)(uintptr_t)recv.sge.addr, bytes, len); /* NOLINT: that is RDMA */
	fake_cq_push(qp->peer->qp.recv_cq, &cqe);
	send_end(qp, IBV_WC_SUCCESS);
	return true;
}

/* The first request of a queue pair. False: it stays where it is. */
static bool qp_step(struct fake_qp *qp)
{
	struct fake_send *send = TAILQ_FIRST(&qp->sends);
	bool is_done = true;
	uint8_t *bytes;
	uint32_t len;

	if (!send || qp->qp.state != IBV_QPS_RTS || !qp->peer ||
	    (qp->peer->qp.state != IBV_QPS_RTS && qp->peer->qp.state != IBV_QPS_RTR))
		return false;
	bytes = gather(qp, send, &len);
	if (!bytes) {
		fake_violation("a work request reads memory that its key does not cover");
		qp_fail(qp, IBV_WC_LOC_PROT_ERR);
		return true;
	}
	if (send->wr.opcode == IBV_WR_RDMA_WRITE)
		write_do(qp, send, bytes, len);
	else
		is_done = send_do(qp, bytes, len);
	free(bytes);
	return is_done;
}

/* The oldest request that can go; false: there is none. */
static bool work_step(void)
{
	struct fake_qp *qp, *tried = NULL;
	uint64_t after = 0;

	for (;;) {
		uint64_t least = UINT64_MAX;

		tried = NULL;
		LIST_FOREACH(qp, &qps, entry)
		{
			struct fake_send *send = TAILQ_FIRST(&qp->sends);

			if (send && send->order >= after && send->order < least) {
				least = send->order;
				tried = qp;
			}
		}
		if (!tried)
			return false;
		if (qp_step(tried))
			return true;
		after = least + 1;
	}
}

void fake_qp_kick_all(void)
{
	while ((!is_held || held_budget > 0) && !is_apart && work_step()) {
		if (is_held)
			held_budget--;
	}
}

void verbs_fake_hold_work(bool is_held_now)
{
	pthread_mutex_lock(&fake_lock);
	is_held = is_held_now;
	held_budget = 0;
	fake_qp_kick_all();
	pthread_mutex_unlock(&fake_lock);
}

int verbs_fake_work(int count)
{
	int done = 0;

	pthread_mutex_lock(&fake_lock);
	while (done < count && work_step())
		done++;
	pthread_mutex_unlock(&fake_lock);
	return done;
}

void verbs_fake_work_at_arming(bool is_wanted)
{
	pthread_mutex_lock(&fake_lock);
	is_at_arming = is_wanted;
	pthread_mutex_unlock(&fake_lock);
}

void fake_qp_arming(void)
{
	while (is_at_arming && work_step())
		;
}

/* Some, then a pause of a random length, so that completions come at any moment of the reader's. */
static void *apart_main(void *context)
{
	uint64_t random = 88172645463325252ULL;

	pthread_mutex_lock(&fake_lock);
	while (is_apart) {
		struct timespec pause = {0};

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		for (uint64_t i = random % 3; i > 0; i--)
			work_step();
		pause.tv_nsec = (long)(random >> 32) % 100000;
		pthread_mutex_unlock(&fake_lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&fake_lock);
	}
	pthread_mutex_unlock(&fake_lock);
	return NULL;
}

void verbs_fake_work_apart(bool is_wanted)
{
	bool was;

	pthread_mutex_lock(&fake_lock);
	was = is_apart;
	is_apart = is_wanted;
	pthread_mutex_unlock(&fake_lock);
	if (is_wanted && !was)
		pthread_create(&apart_thread, NULL, apart_main, NULL);
	else if (!is_wanted && was)
		pthread_join(apart_thread, NULL);
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_POST_SEND);
	if (!error && base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR)
		error = EINVAL;
	for (; wr && !error; wr = wr->next) {
		bool is_inline = wr->send_flags & IBV_SEND_INLINE;
		struct fake_send *send;
		uint32_t len = 0;

		for (int i = 0; i < wr->num_sge; i++)
			len += wr->sg_list[i].length;
		if (qp->posted - qp->freed == qp->cap.max_send_wr) {
			fake_violation("a send queue of %u overflows", qp->cap.max_send_wr);
			error = ENOMEM;
			break;
		}
		if (wr->num_sge > (int)qp->cap.max_send_sge ||
		    (is_inline && len > qp->cap.max_inline_data)) {
			fake_violation("a work request larger than its queue pair takes");
			error = EINVAL;
			break;
		}
		send = calloc(1, sizeof(*send) + (is_inline ? len : 0));
		send->wr = *wr;
		memcpy(send->sges, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
		send->position = qp->posted++;
		send->order = order_next++;
		len = 0;
		for (int i = 0; is_inline && i < wr->num_sge; i++) {
			memcpy(send->data + len,
			       (void *)(uintptr_t)wr->sg_list[i].addr, /* NOLINT: that is RDMA */
			       wr->sg_list[i].length);
			len += wr->sg_list[i].length;
		}
		TAILQ_INSERT_TAIL(&qp->sends, send, entry);
		if (qp->posted - qp->freed > depth_max)
			depth_max = (uint32_t)(qp->posted - qp->freed);
	}
	*bad = wr;
	if (base->state == IBV_QPS_ERR) {
		while (!TAILQ_EMPTY(&qp->sends))
			send_end(qp, IBV_WC_WR_FLUSH_ERR);
	}
	fake_qp_kick_all();
	pthread_mutex_unlock(&fake_lock);
	return error;
}

/* ---- for tests ---- */

void verbs_fake_qp_fail(uint32_t number, enum ibv_wc_status status)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = qp_numbered(number);
	if (qp)
		qp_fail(qp, status);
	pthread_mutex_unlock(&fake_lock);
}

enum ibv_qp_state verbs_fake_qp_state(uint32_t number)
{
	enum ibv_qp_state state = IBV_QPS_UNKNOWN;
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = qp_numbered(number);
	if (qp)
		state = qp->qp.state;
	pthread_mutex_unlock(&fake_lock);
	return state;
}

void verbs_fake_disconnect(uint32_t number)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = qp_numbered(number);
	if (qp)
		fake_qp_disconnected(qp);
	pthread_mutex_unlock(&fake_lock);
}

void verbs_fake_last_event(bool is_given)
{
	pthread_mutex_lock(&fake_lock);
	has_last_event = is_given;
	pthread_mutex_unlock(&fake_lock);
}

int verbs_fake_rnrs(void)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	count = rnrs;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

uint32_t verbs_fake_depth_max(void)
{
	uint32_t depth;

	pthread_mutex_lock(&fake_lock);
	depth = depth_max;
	pthread_mutex_unlock(&fake_lock);
	return depth;
}

/* ---- states ---- */

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	int error = EINVAL;

	pthread_mutex_lock(&fake_lock);
	if (mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR) {
		error = fake_call(VERBS_FAKE_TO_ERR);
		if (!error)
			to_error(qp);
	} else if (mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		error = fake_call(VERBS_FAKE_TO_RESET);
		if (!error) {
			base->state = IBV_QPS_RESET;
			qp_clean(qp);
		}
	} else if (mask == IBV_QP_MIN_RNR_TIMER && !is_iwarp(qp)) {
		error = fake_call(VERBS_FAKE_SET_TIMER);
		if (!error && base->state != IBV_QPS_RTS)
			error = EINVAL;
	} else if (!is_iwarp(qp)) {
		fake_violation("a state change that this device does not know");
	}
	pthread_mutex_unlock(&fake_lock);
	return error;
}

/* Of a device that is gone, EIO and ENODEV, the kernel has destroyed it. */
int ibv_destroy_qp(struct ibv_qp *base)
{
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_DESTROY_QP);
	if (!error || error == EIO || error == ENODEV)
		fake_qp_free((struct fake_qp *)base);
	pthread_mutex_unlock(&fake_lock);
	return error;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	pthread_mutex_lock(&fake_lock);
	*attr = (struct ibv_qp_attr){.qp_state = base->state, .dest_qp_num = qp->peer_number};
	*init = (struct ibv_qp_init_attr){.cap = qp->cap};
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
