/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager. */
#include "verbs_fake_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STATUS_CONSUMER 28 /* rejected by the other end's program */
#define STATUS_NOBODY   8  /* nobody listens */

static LIST_HEAD(, fake_id) ids = LIST_HEAD_INITIALIZER(ids);
static uint16_t port_next = 20000;
static enum verbs_fake_answer answer_now;
static bool is_established_held;
static int stranger_answer;

void fake_cm_begin(void)
{
	answer_now = VERBS_FAKE_ANSWERED;
	is_established_held = false;
	stranger_answer = 0;
}

void verbs_fake_answer(enum verbs_fake_answer answer)
{
	pthread_mutex_lock(&fake_lock);
	answer_now = answer;
	pthread_mutex_unlock(&fake_lock);
}

/* ---- events ---- */

static struct fake_cm_event *event_add(struct fake_id *id, enum rdma_cm_event_type type, int status)
{
	struct fake_channel *channel = (struct fake_channel *)id->id.channel;
	struct fake_cm_event *event;

	if (!channel) /* a stranger's */
		return NULL;
	event = calloc(1, sizeof(*event));
	event->event = (struct rdma_cm_event){.id = &id->id, .event = type, .status = status};
	TAILQ_INSERT_TAIL(&channel->events, event, entry);
	fake_signal(channel->channel.fd);
	return event;
}

static void events_drop(struct fake_id *id)
{
	struct fake_channel *channel = (struct fake_channel *)id->id.channel;
	struct fake_cm_event *event, *next;

	for (event = TAILQ_FIRST(&channel->events); event; event = next) {
		next = TAILQ_NEXT(event, entry);
		if (event->event.id != &id->id)
			continue;
		TAILQ_REMOVE(&channel->events, event, entry);
		fake_take(channel->channel.fd);
		free(event);
	}
}

static struct fake_id *id_new(struct fake_channel *channel, void *context)
{
	struct fake_id *id = calloc(1, sizeof(*id));

	id->id.channel = &channel->channel;
	id->id.context = context;
	channel->ids++;
	LIST_INSERT_HEAD(&ids, id, entry);
	return id;
}

static void id_unlink(struct fake_id *id)
{
	if (id->other)
		id->other->other = NULL;
	((struct fake_channel *)id->id.channel)->ids--;
	LIST_REMOVE(id, entry);
}

/* Both ends go to RTS; who was asked hears of it last. */
static void established(struct fake_id *active)
{
	struct fake_id *passive = active->other;

	if (active->id.qp)
		active->id.qp->state = IBV_QPS_RTS;
	if (!passive)
		return;
	passive->is_established_held = is_established_held;
	if (!is_established_held)
		event_add(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_qp_kick_all();
}

void verbs_fake_hold_established(bool is_held)
{
	struct fake_id *id;

	pthread_mutex_lock(&fake_lock);
	is_established_held = is_held;
	LIST_FOREACH(id, &ids, entry)
	{
		if (!is_held && id->is_established_held) {
			id->is_established_held = false;
			event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0);
		}
	}
	pthread_mutex_unlock(&fake_lock);
}

void fake_qp_disconnected(struct fake_qp *qp)
{
	if (qp->id)
		event_add(qp->id, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (qp->peer && qp->peer->id)
		event_add(qp->peer->id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event_out)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	struct fake_cm_event *event;
	int r = 0;

	pthread_mutex_lock(&fake_lock);
	while (!(event = TAILQ_FIRST(&channel->events)) && r == 0)
		r = fake_wait(base->fd) ? 0 : -1;
	if (event) {
		struct fake_id *id = (struct fake_id *)event->event.id;

		TAILQ_REMOVE(&channel->events, event, entry);
		fake_take(base->fd);
		id->events_read++;
		if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			id->is_announced = true;
			fake_counts.ids++;
		}
		/* The answer: librdmacm makes the queue pair ready and tells the other end. */
		if (event->event.event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
			event->event.event = RDMA_CM_EVENT_ESTABLISHED;
			established(id);
		}
		*event_out = &event->event;
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	pthread_mutex_lock(&fake_lock);
	((struct fake_id *)event->id)->events_acked++;
	pthread_cond_broadcast(&fake_change);
	pthread_mutex_unlock(&fake_lock);
	free((struct fake_cm_event *)(void *)((char *)event -
					      offsetof(struct fake_cm_event, event)));
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_REJECTED ? "rejected" : "another event";
}

/* ---- channels ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_channel *channel = NULL;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_CHANNEL);
	if (!error) {
		channel = calloc(1, sizeof(*channel));
		channel->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		TAILQ_INIT(&channel->events);
		fake_counts.channels++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return channel ? &channel->channel : NULL;
}

/* Requests that nobody has read go with it. */
static void unread_drop(struct fake_channel *channel)
{
	struct fake_id *id, *next;

	for (id = LIST_FIRST(&ids); id; id = next) {
		next = LIST_NEXT(id, entry);
		if (id->id.channel != &channel->channel || id->is_announced)
			continue;
		events_drop(id);
		id_unlink(id);
		free(id);
	}
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
	struct fake_channel *channel = (struct fake_channel *)base;

	pthread_mutex_lock(&fake_lock);
	unread_drop(channel);
	if (channel->ids)
		fake_violation("an event channel goes before its identifiers");
	fake_counts.channels--;
	pthread_mutex_unlock(&fake_lock);
	close(base->fd);
	free(channel);
}

/* ---- identifiers ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
		   enum rdma_port_space space)
{
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_ID);
	if (!error) {
		struct fake_id *id = id_new((struct fake_channel *)channel, context);

		id->is_announced = true;
		fake_counts.ids++;
		*id_out = &id->id;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;

	pthread_mutex_lock(&fake_lock);
	if (base->qp)
		fake_violation("an identifier goes before its queue pair");
	events_drop(id);
	while (id->events_acked != id->events_read)
		pthread_cond_wait(&fake_change, &fake_lock);
	id_unlink(id);
	fake_counts.ids--;
	pthread_mutex_unlock(&fake_lock);
	free(id);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct fake_id *id = (struct fake_id *)base;
	struct fake_channel *from = (struct fake_channel *)base->channel;
	struct fake_channel *to = (struct fake_channel *)channel;
	struct fake_cm_event *event, *next;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_MIGRATE);
	for (event = TAILQ_FIRST(&from->events); event && !error; event = next) {
		next = TAILQ_NEXT(event, entry);
		if (event->event.id != base)
			continue;
		TAILQ_REMOVE(&from->events, event, entry);
		fake_take(from->channel.fd);
		TAILQ_INSERT_TAIL(&to->events, event, entry);
		fake_signal(to->channel.fd);
	}
	if (!error) {
		while (id->events_acked != id->events_read)
			pthread_cond_wait(&fake_change, &fake_lock);
		from->ids--;
		to->ids++;
		base->channel = channel;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	return 0;
}

/* With a device at this address. */
static int id_place(struct fake_id *id, const struct sockaddr *address)
{
	uint8_t port;
	struct fake_device *device = fake_port_find(address, &port);

	if (!device)
		return ENODEV;
	id->id.verbs = &device->context.context;
	id->id.port_num = port;
	id->id.route.addr.addr.ibaddr.sgid = device->ports[port].gid;
	memcpy(&id->id.route.addr.src_storage, &device->ports[port].address,
	       sizeof(id->id.route.addr.src_storage));
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_BIND);
	if (!error)
		error = id_place((struct fake_id *)base, address);
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	struct fake_id *id = (struct fake_id *)base;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_LISTEN);
	if (!error) {
		id->is_listening = true;
		id->port = port_next++;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(((struct fake_id *)id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *from, struct sockaddr *to, int ms)
{
	struct fake_id *id = (struct fake_id *)base;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_RESOLVE_ADDR);
	if (!error)
		error = id_place(id, from);
	if (!error) {
		memcpy(&base->route.addr.dst_storage, to, sizeof(struct sockaddr_in));
		event_add(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_resolve_route(struct rdma_cm_id *base, int ms)
{
	struct fake_id *id = (struct fake_id *)base;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_RESOLVE_ROUTE);
	if (!error)
		event_add(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CREATE_QP);
	if (error) {
		errno = error;
	} else {
		qp = fake_qp_new(pd, attr);
		if (qp) {
			qp->id = (struct fake_id *)base;
			base->qp = &qp->qp;
		} else {
			error = errno;
		}
	}
	pthread_mutex_unlock(&fake_lock);
	return error ? -1 : 0;
}

struct ibv_context **rdma_get_devices(int *count)
{
	pthread_mutex_lock(&fake_lock);
	fake_call(VERBS_FAKE_GET_DEVICES);
	pthread_mutex_unlock(&fake_lock);
	return calloc(1, sizeof(struct ibv_context *));
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* ---- connecting ---- */

static struct fake_id *listener_find(const struct sockaddr *address, uint16_t port)
{
	struct fake_id *id;

	LIST_FOREACH(id, &ids, entry)
	{
		if (id->is_listening && (!port || id->port == port) &&
		    fake_is_same_host(address, (struct sockaddr *)&id->id.route.addr.src_storage))
			return id;
	}
	return NULL;
}

/* A new identifier of the listener's, and what it was sent. */
static struct fake_id *request_add(struct fake_id *listener, const void *data, uint8_t len)
{
	bool is_iwarp = listener->id.verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	struct fake_id *child = id_new((struct fake_channel *)listener->id.channel, NULL);
	struct fake_cm_event *event;

	child->id.verbs = listener->id.verbs;
	child->id.port_num = listener->id.port_num;
	event = event_add(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	event->event.listen_id = &listener->id;
	if (len)
		memcpy(event->data, data, len);
	event->event.param.conn.private_data = event->data;
	event->event.param.conn.private_data_len = is_iwarp ? len : PRIVATE_MAX;
	return child;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base, *listener;
	const struct sockaddr_in *to = &base->route.addr.dst_sin;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_CONNECT);
	if (!error && answer_now == VERBS_FAKE_BLOCKING) {
		pthread_mutex_unlock(&fake_lock);
		poll(NULL, 0, -1); /* until a signal */
		errno = EINTR;
		return -1;
	}
	listener = listener_find(&base->route.addr.dst_addr, ntohs(to->sin_port));
	if (error || answer_now == VERBS_FAKE_SILENT) {
		/* nothing comes of it */
	} else if (answer_now == VERBS_FAKE_REJECTED || !listener) {
		event_add(id, RDMA_CM_EVENT_REJECTED, listener ? STATUS_CONSUMER : STATUS_NOBODY);
	} else {
		id->other = request_add(listener, param->private_data, param->private_data_len);
		id->other->other = id;
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	struct fake_id *active;
	int error;

	pthread_mutex_lock(&fake_lock);
	error = fake_call(VERBS_FAKE_ACCEPT);
	active = id->other;
	if (!error && id->is_stranger)
		stranger_answer = 1;
	if (!error && base->qp)
		base->qp->state = IBV_QPS_RTS;
	if (!error && active && active->id.qp && base->qp) {
		fake_qp_connect((struct fake_qp *)active->id.qp, (struct fake_qp *)base->qp);
		event_add(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	errno = error;
	return error ? -1 : 0;
}

int rdma_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
	struct fake_id *id = (struct fake_id *)base;

	pthread_mutex_lock(&fake_lock);
	if (event == IBV_EVENT_COMM_EST && id->is_established_held) {
		id->is_established_held = false;
		event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t len)
{
	struct fake_id *id = (struct fake_id *)base;

	pthread_mutex_lock(&fake_lock);
	if (id->is_stranger)
		stranger_answer = -1;
	if (id->other)
		event_add(id->other, RDMA_CM_EVENT_REJECTED, STATUS_CONSUMER);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* ---- for tests ---- */

static struct fake_id *listener_at(const char *address)
{
	struct sockaddr_in parsed = {.sin_family = AF_INET};

	inet_pton(AF_INET, address, &parsed.sin_addr);
	return listener_find((struct sockaddr *)&parsed, 0);
}

void verbs_fake_stranger(const char *address, const void *data, uint8_t len)
{
	struct fake_id *listener;

	pthread_mutex_lock(&fake_lock);
	stranger_answer = 0;
	listener = listener_at(address);
	if (listener)
		request_add(listener, data, len)->is_stranger = true;
	pthread_mutex_unlock(&fake_lock);
}

int verbs_fake_stranger_answer(void)
{
	int answer;

	pthread_mutex_lock(&fake_lock);
	answer = stranger_answer;
	pthread_mutex_unlock(&fake_lock);
	return answer;
}

void verbs_fake_removal(const char *address)
{
	struct fake_id *listener;

	pthread_mutex_lock(&fake_lock);
	listener = listener_at(address);
	if (listener)
		event_add(listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	pthread_mutex_unlock(&fake_lock);
}
