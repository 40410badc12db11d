/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, scripts, memory and queues; queue pairs are in verbs_fake_qp.c, the rest in verbs_fake_cm.c. */
#include "verbs_fake_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_change = PTHREAD_COND_INITIALIZER;
struct verbs_fake_counts fake_counts;
struct fake_devices fake_devices = LIST_HEAD_INITIALIZER(fake_devices);

static LIST_HEAD(, fake_mr) mrs = LIST_HEAD_INITIALIZER(mrs);
static LIST_HEAD(, fake_cq) cqs = LIST_HEAD_INITIALIZER(cqs);
static LIST_HEAD(, fake_srq) srqs = LIST_HEAD_INITIALIZER(srqs);
static uint32_t key_next;
static char violation[256];

struct script {
	int skip, count, error;
	bool is_shut;
	int calls;
};
static struct script scripts[VERBS_FAKE_CALLS];
static int fallible_count, fallible_nth;

/* ---- scripts ---- */

void fake_violation(const char *format, ...)
{
	va_list args;

	if (violation[0])
		return;
	va_start(args, format);
	vsnprintf(violation, sizeof(violation), format, args);
	va_end(args);
}

static bool is_fallible(enum verbs_fake_call call)
{
	return call != VERBS_FAKE_TO_ERR && call != VERBS_FAKE_DESTROY_QP &&
	       call != VERBS_FAKE_POLL && call != VERBS_FAKE_DEREG_MR &&
	       call != VERBS_FAKE_GET_DEVICES;
}

int fake_call(enum verbs_fake_call call)
{
	struct script *script = &scripts[call];

	script->calls++;
	pthread_cond_broadcast(&fake_change);
	while (script->is_shut)
		pthread_cond_wait(&fake_change, &fake_lock);
	if (is_fallible(call) && ++fallible_count == fallible_nth)
		return EIO;
	if (!script->count)
		return 0;
	if (script->skip > 0) {
		script->skip--;
		return 0;
	}
	if (script->count > 0)
		script->count--;
	return script->error;
}

void verbs_fake_fail(enum verbs_fake_call call, int skip, int count, int error)
{
	pthread_mutex_lock(&fake_lock);
	scripts[call].skip = skip;
	scripts[call].count = count;
	scripts[call].error = error;
	pthread_mutex_unlock(&fake_lock);
}

int verbs_fake_fail_nth(int n)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	fallible_nth = n;
	count = fallible_count;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void verbs_fake_gate(enum verbs_fake_call call, bool is_shut)
{
	pthread_mutex_lock(&fake_lock);
	scripts[call].is_shut = is_shut;
	pthread_cond_broadcast(&fake_change);
	pthread_mutex_unlock(&fake_lock);
}

int verbs_fake_calls(enum verbs_fake_call call)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	count = scripts[call].calls;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

/* ---- descriptors that count ---- */

void fake_signal(int fd)
{
	eventfd_write(fd, 1);
}

void fake_take(int fd)
{
	eventfd_t value;

	eventfd_read(fd, &value);
}

bool fake_wait(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	if (fcntl(fd, F_GETFL) & O_NONBLOCK) {
		errno = EAGAIN;
		return false;
	}
	pthread_mutex_unlock(&fake_lock);
	poll(&pfd, 1, -1);
	pthread_mutex_lock(&fake_lock);
	return true;
}

/* ---- devices ---- */

static int poll_cq(struct ibv_cq *base, int count, struct ibv_wc *wc);
static int req_notify_cq(struct ibv_cq *base, int is_solicited);
static int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t len);

void verbs_fake_begin(void)
{
	pthread_mutex_lock(&fake_lock);
	memset(scripts, 0, sizeof(scripts));
	memset(&fake_counts, 0, sizeof(fake_counts));
	fallible_count = fallible_nth = 0;
	violation[0] = '\0';
	key_next = 0x100;
	fake_qp_begin();
	fake_cm_begin();
	pthread_mutex_unlock(&fake_lock);
}

const char *verbs_fake_end(void)
{
	struct fake_device *device;

	verbs_fake_work_apart(false);
	pthread_mutex_lock(&fake_lock);
	while ((device = LIST_FIRST(&fake_devices))) {
		struct fake_async *async;

		while ((async = TAILQ_FIRST(&device->asyncs))) {
			TAILQ_REMOVE(&device->asyncs, async, entry);
			free(async);
		}
		LIST_REMOVE(device, entry);
		close(device->context.context.async_fd);
		free(device);
	}
	pthread_mutex_unlock(&fake_lock);
	return violation[0] ? violation : NULL;
}

struct verbs_fake_counts verbs_fake_counts(void)
{
	struct verbs_fake_counts counts;

	pthread_mutex_lock(&fake_lock);
	counts = fake_counts;
	pthread_mutex_unlock(&fake_lock);
	return counts;
}

int verbs_fake_left(void)
{
	struct verbs_fake_counts c = verbs_fake_counts();

	return c.channels + c.ids + c.pds + c.mrs + c.comps + c.cqs + c.srqs + c.qps;
}

static void address_parse(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	v4->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &v4->sin_addr) != 1)
		fake_violation("the test names the address %s", text);
}

bool fake_is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	return a->sa_family == AF_INET && b->sa_family == AF_INET &&
	       ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
}

struct fake_device *fake_port_find(const struct sockaddr *address, uint8_t *port_out)
{
	struct fake_device *device;

	LIST_FOREACH(device, &fake_devices, entry)
	{
		for (uint8_t i = 1; i <= PORTS_MAX; i++) {
			if (!device->ports[i].is_there ||
			    !fake_is_same_host(address,
					       (struct sockaddr *)&device->ports[i].address))
				continue;
			*port_out = i;
			return device;
		}
	}
	return NULL;
}

static struct fake_port *port_at(const char *address, struct fake_device **device_out)
{
	struct sockaddr_storage parsed;
	uint8_t port;

	address_parse(address, &parsed);
	*device_out = fake_port_find((struct sockaddr *)&parsed, &port);
	return *device_out ? &(*device_out)->ports[port] : NULL;
}

static struct fake_device *device_named(const char *name)
{
	struct fake_device *device;

	LIST_FOREACH(device, &fake_devices, entry)
	{
		if (!strcmp(device->device.name, name))
			return device;
	}
	return NULL;
}

static struct fake_device *device_new(const char *name, enum ibv_transport_type transport)
{
	struct fake_device *device = calloc(1, sizeof(*device));

	device->context.sz = sizeof(device->context);
	device->context.query_port = query_port;
	device->context.context = (struct ibv_context){
		.device = &device->device,
		.ops = {.poll_cq = poll_cq,
			.req_notify_cq = req_notify_cq,
			.post_srq_recv = post_srq_recv,
			.post_send = fake_post_send},
		.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC),
		.abi_compat = __VERBS_ABI_IS_EXTENDED,
	};
	device->device.transport_type = transport;
	device->inline_max = 256;
	snprintf(device->device.name, sizeof(device->device.name), "%s", name);
	TAILQ_INIT(&device->asyncs);
	LIST_INSERT_HEAD(&fake_devices, device, entry);
	return device;
}

void verbs_fake_port(const char *name, uint8_t number, const char *address,
		     enum ibv_transport_type transport)
{
	struct fake_device *device;
	struct fake_port *port;

	pthread_mutex_lock(&fake_lock);
	device = device_named(name);
	if (!device)
		device = device_new(name, transport);
	port = &device->ports[number];
	port->is_there = true;
	address_parse(address, &port->address);
	port->gid_index = 1;
	port->mtu = port->mtu_told = IBV_MTU_4096;
	port->gid.raw[10] = port->gid.raw[11] = 0xff;
	memcpy(&port->gid.raw[12], &((struct sockaddr_in *)&port->address)->sin_addr, 4);
	pthread_mutex_unlock(&fake_lock);
}

void verbs_fake_port_remove(const char *address)
{
	struct fake_device *device;
	struct fake_port *port;

	pthread_mutex_lock(&fake_lock);
	port = port_at(address, &device);
	if (port)
		port->is_there = false;
	pthread_mutex_unlock(&fake_lock);
}

void verbs_fake_gid_move(const char *address, int index)
{
	struct fake_device *device;
	struct fake_port *port;

	pthread_mutex_lock(&fake_lock);
	port = port_at(address, &device);
	if (port)
		port->gid_index = index;
	pthread_mutex_unlock(&fake_lock);
}

void verbs_fake_mtu(const char *address, enum ibv_mtu mtu)
{
	struct fake_device *device;
	struct fake_port *port;

	pthread_mutex_lock(&fake_lock);
	port = port_at(address, &device);
	if (port)
		port->mtu = mtu;
	pthread_mutex_unlock(&fake_lock);
}

void verbs_fake_inline_max(const char *name, uint32_t bytes)
{
	pthread_mutex_lock(&fake_lock);
	device_named(name)->inline_max = bytes;
	pthread_mutex_unlock(&fake_lock);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_QUERY_DEVICE);
	pthread_mutex_unlock(&fake_lock);
	*attr = (struct ibv_device_attr){.max_qp_wr = 16384,
					 .max_sge = SGES_MAX,
					 .max_cqe = 65535,
					 .max_srq_wr = 32768};
	return error;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t len)
{
	struct fake_port *asked = &CONTEXT_OF(context)->ports[port];
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_QUERY_PORT);
	if (error) {
		pthread_mutex_unlock(&fake_lock);
		return error;
	}
	memset(attr, 0, len);
	attr->state = IBV_PORT_ACTIVE;
	/* As soft-RoCE when it is asked at once: the first answer after a change is that of before. */
	attr->active_mtu = asked->mtu_told;
	asked->mtu_told = asked->mtu;
	attr->gid_tbl_len = GIDS;
	attr->active_width = 2;
	attr->active_speed = 64;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* The headers name it, and never call it on contexts of our kind. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return ENOSYS;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t len)
{
	struct fake_device *device = CONTEXT_OF(context);
	int r = ENODATA;

	pthread_mutex_lock(&fake_lock);
	if (port <= PORTS_MAX && device->ports[port].is_there &&
	    (int)index == device->ports[port].gid_index) {
		*entry = (struct ibv_gid_entry){.gid = device->ports[port].gid,
						.gid_index = index,
						.port_num = port,
						.gid_type = IBV_GID_TYPE_ROCE_V2};
		r = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

/* ---- asynchronous events ---- */

void fake_async_add(struct fake_device *device, const struct ibv_async_event *event)
{
	struct fake_async *async = calloc(1, sizeof(*async));

	async->event = *event;
	TAILQ_INSERT_TAIL(&device->asyncs, async, entry);
	fake_signal(device->context.context.async_fd);
}

/* What nobody has read of a queue pair goes with it. */
void fake_async_drop(struct fake_device *device, const struct ibv_qp *qp)
{
	struct fake_async *async, *next;

	for (async = TAILQ_FIRST(&device->asyncs); async; async = next) {
		next = TAILQ_NEXT(async, entry);
		if (async->event.element.qp != qp)
			continue;
		TAILQ_REMOVE(&device->asyncs, async, entry);
		fake_take(device->context.context.async_fd);
		free(async);
	}
}

void verbs_fake_async(const char *address, const struct ibv_async_event *event)
{
	struct fake_device *device;

	pthread_mutex_lock(&fake_lock);
	port_at(address, &device);
	if (device)
		fake_async_add(device, event);
	pthread_mutex_unlock(&fake_lock);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_device *device = CONTEXT_OF(context);
	struct fake_async *async;
	int r = 0;

	pthread_mutex_lock(&fake_lock);
	while (!(async = TAILQ_FIRST(&device->asyncs)) && r == 0)
		r = fake_wait(context->async_fd) ? 0 : -1;
	if (async) {
		TAILQ_REMOVE(&device->asyncs, async, entry);
		fake_take(context->async_fd);
		*event = async->event;
		free(async);
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

/* ---- protection domains and memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_ALLOC_PD);
	if (!error) {
		pd = calloc(1, sizeof(*pd));
		pd->context = context;
		fake_counts.pds++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct fake_mr *mr;

	pthread_mutex_lock(&fake_lock);
	LIST_FOREACH(mr, &mrs, entry)
	{
		if (mr->mr.pd == pd)
			fake_violation("a protection domain goes before its memory");
	}
	fake_counts.pds--;
	pthread_mutex_unlock(&fake_lock);
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct fake_mr *mr = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_REG_MR);
	if (!error) {
		mr = calloc(1, sizeof(*mr));
		mr->mr = (struct ibv_mr){.context = pd->context,
					 .pd = pd,
					 .addr = addr,
					 .length = length,
					 .lkey = key_next,
					 .rkey = key_next};
		mr->access = access;
		key_next += 0x100;
		LIST_INSERT_HEAD(&mrs, mr, entry);
		fake_counts.mrs++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return mr ? &mr->mr : NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct fake_mr *mr = (struct fake_mr *)base;

	pthread_mutex_lock(&fake_lock);
	fake_call(VERBS_FAKE_DEREG_MR);
	if (fake_qp_reads(base->lkey))
		fake_violation("memory is deregistered that a work request still names");
	LIST_REMOVE(mr, entry);
	fake_counts.mrs--;
	pthread_mutex_unlock(&fake_lock);
	free(mr);
	return 0;
}

uint8_t *fake_mr_bytes(const struct ibv_pd *pd, uint32_t key, bool is_remote, uint64_t addr,
		       uint64_t len)
{
	struct fake_mr *mr;

	LIST_FOREACH(mr, &mrs, entry)
	{
		uint64_t begin = (uint64_t)(uintptr_t)mr->mr.addr;

		if (mr->mr.lkey != key)
			continue;
		if (mr->mr.pd != pd || addr < begin || len > mr->mr.length ||
		    addr - begin > mr->mr.length - len ||
		    (is_remote && !(mr->access & IBV_ACCESS_REMOTE_WRITE)))
			return NULL;
		return (uint8_t *)mr->mr.addr + (addr - begin);
	}
	return NULL;
}

/* ---- completion channels and queues ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_comp *comp = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_COMP);
	if (!error) {
		comp = calloc(1, sizeof(*comp));
		comp->comp.context = context;
		comp->comp.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		TAILQ_INIT(&comp->events);
		fake_counts.comps++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return comp ? &comp->comp : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct fake_comp *comp = (struct fake_comp *)base;

	pthread_mutex_lock(&fake_lock);
	if (comp->users) {
		fake_violation("a completion channel goes before its queues");
		pthread_mutex_unlock(&fake_lock);
		return EBUSY;
	}
	fake_counts.comps--;
	pthread_mutex_unlock(&fake_lock);
	close(base->fd);
	free(comp);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **context)
{
	struct fake_comp *comp = (struct fake_comp *)base;
	struct fake_comp_event *event;
	int r = 0;

	pthread_mutex_lock(&fake_lock);
	while (!(event = TAILQ_FIRST(&comp->events)) && r == 0)
		r = fake_wait(base->fd) ? 0 : -1;
	if (event) {
		TAILQ_REMOVE(&comp->events, event, entry);
		fake_take(base->fd);
		event->cq->events_read++;
		*cq = &event->cq->cq;
		*context = event->cq->cq.cq_context;
		free(event);
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

void ibv_ack_cq_events(struct ibv_cq *base, unsigned int count)
{
	pthread_mutex_lock(&fake_lock);
	((struct fake_cq *)base)->events_acked += count;
	pthread_cond_broadcast(&fake_change);
	pthread_mutex_unlock(&fake_lock);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_CQ);
	if (!error) {
		cq = calloc(1, sizeof(*cq));
		cq->cq = (struct ibv_cq){.context = context,
					 .channel = channel,
					 .cq_context = cq_context,
					 .cqe = cqe};
		cq->cqes = calloc((size_t)cqe, sizeof(*cq->cqes));
		((struct fake_comp *)channel)->users++;
		LIST_INSERT_HEAD(&cqs, cq, entry);
		fake_counts.cqs++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return cq ? &cq->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct fake_comp *comp = (struct fake_comp *)base->channel;
	struct fake_comp_event *event, *next;

	pthread_mutex_lock(&fake_lock);
	if (cq->users) {
		fake_violation("a completion queue goes before its queue pairs");
		pthread_mutex_unlock(&fake_lock);
		return EBUSY;
	}
	for (event = TAILQ_FIRST(&comp->events); event; event = next) {
		next = TAILQ_NEXT(event, entry);
		if (event->cq != cq)
			continue;
		TAILQ_REMOVE(&comp->events, event, entry);
		fake_take(comp->comp.fd);
		free(event);
	}
	while (cq->events_acked != cq->events_read)
		pthread_cond_wait(&fake_change, &fake_lock);
	comp->users--;
	LIST_REMOVE(cq, entry);
	fake_counts.cqs--;
	pthread_mutex_unlock(&fake_lock);
	free(cq->cqes);
	free(cq);
	return 0;
}

void fake_cq_push(struct ibv_cq *base, const struct fake_cqe *cqe)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct fake_comp *comp = (struct fake_comp *)cq->cq.channel;
	struct fake_comp_event *event;

	if (cq->count == cq->cq.cqe) {
		fake_violation("a completion queue of %d overflows", cq->cq.cqe);
		return;
	}
	cq->cqes[(cq->first + cq->count++) % cq->cq.cqe] = *cqe;
	if (!cq->is_armed)
		return;
	cq->is_armed = false;
	event = calloc(1, sizeof(*event));
	event->cq = cq;
	TAILQ_INSERT_TAIL(&comp->events, event, entry);
	fake_signal(comp->comp.fd);
}

void fake_cq_clean(struct ibv_cq *base, const struct fake_qp *qp)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int kept = 0;

	for (int i = 0; i < cq->count; i++) {
		struct fake_cqe *cqe = &cq->cqes[(cq->first + i) % cq->cq.cqe];

		if (cqe->wc.qp_num == qp->qp.qp_num) {
			if (cqe->srq)
				cqe->srq->taken--;
			continue;
		}
		cq->cqes[(cq->first + kept++) % cq->cq.cqe] = *cqe;
	}
	cq->count = kept;
}

static int req_notify_cq(struct ibv_cq *base, int is_solicited)
{
	pthread_mutex_lock(&fake_lock);
	fake_qp_arming();
	((struct fake_cq *)base)->is_armed = true;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int poll_cq(struct ibv_cq *base, int count_max, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int count = 0;

	pthread_mutex_lock(&fake_lock);
	if (fake_call(VERBS_FAKE_POLL)) {
		pthread_mutex_unlock(&fake_lock);
		return -1;
	}
	while (cq->count && count < count_max) {
		struct fake_cqe *cqe = &cq->cqes[cq->first];

		if (cqe->qp)
			cqe->qp->freed = cqe->position + 1;
		if (cqe->srq)
			cqe->srq->taken--;
		wc[count++] = cqe->wc;
		cq->first = (cq->first + 1) % cq->cq.cqe;
		cq->count--;
	}
	pthread_mutex_unlock(&fake_lock);
	return count;
}

/* ---- shared receive queues ---- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_SRQ);
	if (!error) {
		srq = calloc(1, sizeof(*srq));
		srq->srq.context = pd->context;
		srq->srq.pd = pd;
		srq->max = attr->attr.max_wr;
		srq->recvs = calloc(srq->max, sizeof(*srq->recvs));
		LIST_INSERT_HEAD(&srqs, srq, entry);
		fake_counts.srqs++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return srq ? &srq->srq : NULL;
}

int ibv_destroy_srq(struct ibv_srq *base)
{
	struct fake_srq *srq = (struct fake_srq *)base;

	pthread_mutex_lock(&fake_lock);
	if (srq->users) {
		fake_violation("a receive queue goes before its queue pairs");
		pthread_mutex_unlock(&fake_lock);
		return EBUSY;
	}
	LIST_REMOVE(srq, entry);
	fake_counts.srqs--;
	pthread_mutex_unlock(&fake_lock);
	free(srq->recvs);
	free(srq);
	return 0;
}

void verbs_fake_exit(void)
{
	struct fake_srq *srq, *srq_next;
	struct fake_cq *cq, *cq_next;

	pthread_mutex_lock(&fake_lock);
	fake_qp_free_all();
	violation[0] = '\0';
	pthread_mutex_unlock(&fake_lock);
	for (cq = LIST_FIRST(&cqs); cq; cq = cq_next) {
		struct fake_comp *comp = (struct fake_comp *)cq->cq.channel;

		cq_next = LIST_NEXT(cq, entry);
		ibv_destroy_cq(&cq->cq);
		if (!comp->users)
			ibv_destroy_comp_channel(&comp->comp);
	}
	for (srq = LIST_FIRST(&srqs); srq; srq = srq_next) {
		srq_next = LIST_NEXT(srq, entry);
		ibv_destroy_srq(&srq->srq);
	}
}

static int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)base;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_POST_SRQ);
	for (; wr && !error; wr = wr->next) {
		if (srq->count + srq->taken == srq->max) {
			fake_violation("a receive queue of %u overflows", srq->max);
			error = ENOMEM;
			break;
		}
		if (!fake_mr_bytes(base->pd, wr->sg_list->lkey, false, wr->sg_list->addr,
				   wr->sg_list->length))
			fake_violation("a receive entry is in memory that is not registered");
		srq->recvs[(srq->first + srq->count++) % srq->max] =
			(struct fake_recv){.wr_id = wr->wr_id, .sge = *wr->sg_list};
	}
	*bad = wr;
	fake_qp_kick_all();
	pthread_mutex_unlock(&fake_lock);
	return error;
}

int verbs_fake_srq_posted(struct ibv_srq *base)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	count = (int)((struct fake_srq *)base)->count;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void verbs_fake_receive(struct ibv_srq *base, struct ibv_cq *cq, uint32_t qp_num, const void *data,
			uint32_t len, enum ibv_wc_status status)
{
	struct fake_srq *srq = (struct fake_srq *)base;
	struct fake_cqe cqe = {
		.wc = {.status = status, .opcode = IBV_WC_RECV, .byte_len = len, .qp_num = qp_num},
		.srq = srq,
	};

	pthread_mutex_lock(&fake_lock);
	if (srq->count && len <= srq->recvs[srq->first].sge.length) {
		cqe.wc.wr_id = srq->recvs[srq->first].wr_id;
		if (len)
			memcpy((void *)(uintptr_t)srq->recvs[srq->first].sge.addr, data,
			       len); /* NOLINT */
		srq->first = (srq->first + 1) % srq->max;
		srq->count--;
		srq->taken++;
		fake_cq_push(cq, &cqe);
	} else {
		fake_violation("the test has no receive entry");
	}
	pthread_mutex_unlock(&fake_lock);
}

/* ---- words ---- */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR     ? "flushed"
	       : status == IBV_WC_RETRY_EXC_ERR  ? "retries exceeded"
	       : status == IBV_WC_REM_ACCESS_ERR ? "remote access"
						 : "completion error";
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return "asynchronous event";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return "port state";
}
