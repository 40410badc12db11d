/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LISTEN_BACKLOG    1024
#define REQUESTS_PER_TURN 16U
#define GIDS_MAX          1024
#define BOUNCE_BYTES      ((size_t)(MRCD_VERBS_BOUNCES + 1) * MRC_FRAG_BYTES_MAX)

/*
 * A device that several rails use (two ports of one card) has one channel of
 * asynchronous events, librdmacm's: whoever reads it has to tell the others.
 */
struct mrcd_verbs_context {
	LIST_ENTRY(mrcd_verbs_context) entry;
	struct ibv_context *context;
	struct event async_event;
	LIST_HEAD(, mrcd_verbs_device) devices;
};
static LIST_HEAD(, mrcd_verbs_context) contexts = LIST_HEAD_INITIALIZER(contexts);

/* ---- opening ---- */

__attribute__((format(printf, 3, 4))) static int fail(struct mrcd_verbs_device *device, int error,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(device->why, sizeof(device->why), format, args);
	va_end(args);
	device->error = error ? error : -EIO;
	return device->error;
}

/* errno of a call into the verbs libraries, which do not always set it. */
static int error_of(void)
{
	return errno ? -errno : -EIO;
}

static void port_read(struct mrcd_verbs_device *device, struct mrcd_verbs_port *port)
{
	const union ibv_gid *gid = &device->listener->route.addr.addr.ibaddr.sgid;

	struct ibv_port_attr attr;

	/*
	 * One that does not answer is as it was. Asked twice: rtnetlink tells of a new MTU before the driver
	 * has heard of it, and soft-RoCE copies what it has and then waits for the lock under which both are
	 * told. When it has answered once, they are.
	 */
	for (int i = 0; i < 2; i++) {
		if (ibv_query_port(device->context, device->port, &attr))
			return;
	}
	port->attr = attr;
	port->gid = *gid;
	port->gid_index = -1;
	for (int i = 0; i < port->attr.gid_tbl_len && i < GIDS_MAX; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(device->context, device->port, (uint32_t)i, &entry, 0) ||
		    memcmp(&entry.gid, gid, sizeof(*gid)) != 0)
			continue;
		/* Of a RoCE port's entries with this address the CM takes the one of version 2. */
		port->gid_index = i;
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	}
}

static int device_find(struct mrcd_verbs_device *device)
{
	const struct mrcd_conf_rail *conf = &device->verbs->conf;
	struct sockaddr_storage own = device->own;

	device->channel = rdma_create_event_channel();
	if (!device->channel)
		return fail(device, error_of(), "no RDMA connection manager (module rdma_ucm): %s",
			    strerror(errno));
	if (fcntl(device->channel->fd, F_SETFL, O_NONBLOCK) < 0 ||
	    rdma_create_id(device->channel, &device->listener, device, RDMA_PS_TCP) < 0)
		return fail(device, error_of(), "no identifier: %s", strerror(errno));
	/* Any port: that of the connections is TCP's, which on iWARP is the same space. */
	if (own.ss_family == AF_INET)
		((struct sockaddr_in *)&own)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&own)->sin6_port = 0;
	errno = 0;
	if (rdma_bind_addr(device->listener, (struct sockaddr *)&own) < 0)
		return fail(device, error_of(), "no RDMA device has this address: %s",
			    strerror(errno));
	device->context = device->listener->verbs;
	device->port = device->listener->port_num;
	if (!device->context)
		return fail(device, -ENODEV, "no RDMA device has this address");
	if (conf->device[0] &&
	    strcmp(conf->device, ibv_get_device_name(device->context->device)) != 0)
		return fail(device, -ENODEV, "this address is on device %s, not on %s",
			    ibv_get_device_name(device->context->device), conf->device);
	if (conf->device_port && conf->device_port != device->port)
		return fail(device, -ENODEV, "this address is on port %u of %s, not on port %u",
			    device->port, conf->device, conf->device_port);
	if (ibv_query_device(device->context, &device->attr))
		return fail(device, error_of(), "the device does not answer: %s", strerror(errno));
	device->port_now.gid_index = -1;
	port_read(device, &device->port_now);
	return 0;
}

static struct mrcd_verbs_device *device_of_refresh(struct mrcd_job *job)
{
	return (struct mrcd_verbs_device *)(void *)((char *)job - offsetof(struct mrcd_verbs_device,
									   refresh_job));
}

static void refresh_run(struct mrcd_job *job)
{
	struct mrcd_verbs_device *device = device_of_refresh(job);

	device->port_fresh =
		device->port_now; /* the loop's, which does not write it before refreshed() */
	port_read(device, &device->port_fresh);
}

static void refreshed(struct mrcd_job *job)
{
	struct mrcd_verbs_device *device = device_of_refresh(job);
	bool is_again = device->is_refresh_wanted;

	device->port_now = device->port_fresh;
	device->is_refreshing = device->is_refresh_wanted = false;
	if (is_again)
		mrcd_verbs_device_refresh(device);
	mrcd_verbs_device_put(device);
}

void mrcd_verbs_device_refresh(struct mrcd_verbs_device *device)
{
	if (device->is_lost)
		return;
	device->is_refresh_wanted = device->is_refreshing;
	if (device->is_refreshing)
		return;
	device->is_refreshing = true;
	device->use_count++;
	device->refresh_job =
		(struct mrcd_job){.run = refresh_run, .done = refreshed, .is_slow = true};
	mrcd_offload_submit(device->verbs->rail->worker->offload, &device->verbs->device_lane,
			    &device->refresh_job);
}

/* What the process has pinned; /proc/self/status, in KiB. */
static unsigned long long pinned_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "VmPin:", 6))
			kib = strtoull(line + 6, NULL, 10);
	}
	if (file)
		fclose(file);
	return kib;
}

void mrcd_verbs_register_explain(char *text, size_t text_bytes, int error, const char *what,
				 uint64_t len_bytes)
{
	unsigned long long kib = (unsigned long long)len_bytes / 1024;
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		snprintf(
			text, text_bytes,
			"%s wants %llu KiB locked, %llu KiB are already and the limit is %llu KiB: "
			"LimitMEMLOCK=infinity in the unit",
			what, kib, pinned_kib(), (unsigned long long)limit.rlim_cur / 1024);
	else
		snprintf(text, text_bytes, "%s of %llu KiB cannot be registered: %s", what, kib,
			 strerror(error));
}

static struct ibv_mr *memory_register(struct mrcd_verbs_device *device, void *memory,
				      uint64_t len_bytes, int access, const char *what)
{
	char text[MRCD_VERBS_REASON_BYTES];
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(device->pd, memory, len_bytes, access);
	if (mr)
		return mr;
	device->error = error_of();
	mrcd_verbs_register_explain(text, sizeof(text), -device->error, what, len_bytes);
	fail(device, device->error, "%s", text);
	return NULL;
}

/*
 * Receive entries: every path has a share (DESIGN 7.14), paths that come later
 * have the least until the rail is opened anew, the engine may keep some, and
 * what one path's old epoch had is back before its next one begins.
 */
static int entries_make(struct mrcd_verbs_device *device)
{
	const struct mrcd_conf_rail *conf = &device->verbs->conf;
	uint32_t paths = MRC_MAX(device->path_count, 1U);
	uint64_t shared =
		MRC_MAX((uint64_t)conf->receive_entries, (uint64_t)paths * MRCD_VERBS_SHARE_MIN);
	uint64_t count = shared + MRCD_VERBS_HOLDS_MAX;
	uint64_t most = MRC_MIN(device->attr.max_srq_wr, device->attr.max_cqe);

	if (count > most)
		return fail(device, -E2BIG,
			    "%llu receive entries are wanted, the device has room for %llu",
			    (unsigned long long)count, (unsigned long long)most);
	device->guests_max =
		(uint32_t)MRC_MIN((most - count) / MRCD_VERBS_SHARE_MIN, MRCD_RAIL_GUESTS_MAX);
	count += (uint64_t)device->guests_max * MRCD_VERBS_SHARE_MIN;
	device->entry_body_bytes = (uint32_t)conf->receive_entry_bytes;
	device->entry_stride = (MRC_WIRE_HDR_BYTES + device->entry_body_bytes + 63U) & ~63U;
	device->entry_count = (uint32_t)count;
	device->share = (uint32_t)MRC_MIN(shared / paths, 65536U);
	device->entry_memory_bytes = count * device->entry_stride;
	device->entries = calloc(count, sizeof(*device->entries));
	device->entry_memory = mmap(NULL, device->entry_memory_bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!device->entries || device->entry_memory == MAP_FAILED) {
		device->entry_memory = NULL;
		return fail(device, -ENOMEM, "no memory for receive entries");
	}
	device->entry_mr = memory_register(device, device->entry_memory, device->entry_memory_bytes,
					   IBV_ACCESS_LOCAL_WRITE, "memory of receive entries");
	return device->entry_mr ? 0 : device->error;
}

static int queues_make(struct mrcd_verbs_device *device)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = device->entry_count, .max_sge = 1}};

	errno = 0;
	device->comp = ibv_create_comp_channel(device->context);
	if (!device->comp || fcntl(device->comp->fd, F_SETFL, O_NONBLOCK) < 0)
		return fail(device, error_of(), "no completion channel: %s", strerror(errno));
	/* Each entry completes once between two posts: it cannot overflow. */
	device->recv_cq =
		ibv_create_cq(device->context, (int)device->entry_count, NULL, device->comp, 0);
	if (!device->recv_cq)
		return fail(device, error_of(), "no completion queue of %u: %s",
			    device->entry_count, strerror(errno));
	device->srq = ibv_create_srq(device->pd, &srq);
	if (!device->srq)
		return fail(device, error_of(), "no shared receive queue of %u: %s",
			    device->entry_count, strerror(errno));
	for (uint32_t i = 0; i < device->entry_count; i++)
		device->entries[i].state = MRCD_VERBS_ENTRY_OURS;
	for (uint32_t at = 0; at < device->entry_count && !device->error;) {
		uint32_t batch[MRCD_VERBS_BATCH], count = 0;

		while (count < MRCD_VERBS_BATCH && at < device->entry_count)
			batch[count++] = at++;
		mrcd_verbs_entries_post(device, batch, count);
	}
	return device->error;
}

static int bounces_make(struct mrcd_verbs_device *device)
{
	size_t bytes = BOUNCE_BYTES;

	device->bounce_memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (device->bounce_memory == MAP_FAILED) {
		device->bounce_memory = NULL;
		return fail(device, -ENOMEM, "no memory for buffers");
	}
	memcpy(device->bounce_memory + bytes - MRC_FRAG_BYTES_MAX, mrcd_padding(),
	       MRC_FRAG_BYTES_MAX);
	device->bounce_mr = memory_register(device, device->bounce_memory, bytes,
					    IBV_ACCESS_LOCAL_WRITE, "memory of send buffers");
	device->bounces_free = (1U << MRCD_VERBS_BOUNCES) - 1;
	return device->bounce_mr ? 0 : device->error;
}

uint64_t mrcd_verbs_device_locked_bytes(const struct mrcd_verbs_device *device)
{
	return device->entry_memory_bytes + BOUNCE_BYTES;
}

/* Off the loop. What is not there is skipped, so a half opened one is fine. */
static void device_unmake(struct mrcd_verbs_device *device)
{
	if (device->srq)
		ibv_destroy_srq(device->srq);
	if (device->recv_cq)
		ibv_destroy_cq(device->recv_cq);
	if (device->comp)
		ibv_destroy_comp_channel(device->comp);
	if (device->entry_mr)
		ibv_dereg_mr(device->entry_mr);
	if (device->bounce_mr)
		ibv_dereg_mr(device->bounce_mr);
	if (device->pd)
		ibv_dealloc_pd(device->pd);
	/* Last: it keeps the context, which is librdmacm's and goes with a dead device's last identifier. */
	if (device->listener)
		rdma_destroy_id(device->listener);
	if (device->channel)
		rdma_destroy_event_channel(device->channel);
	if (device->entry_memory)
		munmap(device->entry_memory, device->entry_memory_bytes);
	if (device->bounce_memory)
		munmap(device->bounce_memory, BOUNCE_BYTES);
	free(device->entries);
	device->srq = NULL;
	device->recv_cq = NULL;
	device->comp = NULL;
	device->entry_mr = device->bounce_mr = NULL;
	device->pd = NULL;
	device->listener = NULL;
	device->channel = NULL;
	device->entry_memory = device->bounce_memory = NULL;
	device->entries = NULL;
}

static int device_make(struct mrcd_verbs_device *device)
{
	int r = device_find(device);

	if (r < 0)
		return r;
	device->is_found = true;
	errno = 0;
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		return fail(device, error_of(), "no protection domain: %s", strerror(errno));
	r = entries_make(device);
	if (r == 0)
		r = bounces_make(device);
	if (r == 0)
		r = queues_make(device);
	if (r < 0)
		return r;
	if (rdma_listen(device->listener, LISTEN_BACKLOG) < 0)
		return fail(device, error_of(), "the device does not listen: %s", strerror(errno));
	device->listen_port = ntohs(rdma_get_src_port(device->listener));
	return 0;
}

void mrcd_verbs_device_open(struct mrcd_verbs_device *device)
{
	if (device_make(device) < 0)
		device_unmake(device);
}

/*
 * librdmacm closes a device that was removed when it next looks at the list of
 * devices, and until then its removal may wait for us. This makes it look.
 */
static void devices_look_through(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	if (list)
		rdma_free_devices(list);
}

void mrcd_verbs_device_close(struct mrcd_verbs_device *device)
{
	device_unmake(device);
	if (device->is_lost && !device->verbs->is_closing)
		devices_look_through();
	free(device);
}

void mrcd_verbs_device_broken(struct mrcd_verbs_device *device)
{
	device->is_lost = true;
	if (device->is_watched)
		mrcd_verbs_poll_soon(device->verbs);
}

void mrcd_verbs_entries_post(struct mrcd_verbs_device *device, const uint32_t *indexes,
			     uint32_t count)
{
	struct ibv_recv_wr wrs[MRCD_VERBS_BATCH], *bad;
	struct ibv_sge sges[MRCD_VERBS_BATCH];
	int r;

	MRC_ASSERT(count <= MRCD_VERBS_BATCH);
	for (uint32_t i = 0; i < count; i++) {
		struct mrcd_verbs_entry *entry = &device->entries[indexes[i]];

		MRC_ASSERT(entry->state != MRCD_VERBS_ENTRY_POSTED);
		entry->state = MRCD_VERBS_ENTRY_POSTED;
		sges[i] = (struct ibv_sge){
			.addr = (uint64_t)(uintptr_t)mrcd_verbs_entry_data(device, indexes[i]),
			.length = MRC_WIRE_HDR_BYTES + device->entry_body_bytes,
			.lkey = device->entry_mr->lkey,
		};
		wrs[i] = (struct ibv_recv_wr){
			.wr_id = indexes[i],
			.next = i + 1 < count ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
		};
	}
	if (count == 0)
		return;
	device->posted_count += count;
	r = ibv_post_srq_recv(device->srq, wrs, &bad);
	if (r) {
		/* There is room for all entries, so it is the device that is broken. */
		fail(device, -r, "receive entries are not taken: %s", strerror(r));
		mrcd_verbs_device_broken(device);
	}
}

/* ---- events ---- */

/* Connect requests; the listener's only. */
static void on_channel(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs_device *device = context;
	struct rdma_cm_event *event;

	mrcd_worker_now(device->verbs->rail->worker);
	for (uint32_t i = 0;
	     i < REQUESTS_PER_TURN && device->reject_count < MRCD_VERBS_REJECTS_MAX &&
	     rdma_get_cm_event(device->channel, &event) == 0;
	     i++) {
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;
		uint8_t token[MRCD_VERBS_TOKEN_BYTES] = {0};
		size_t token_len = MRC_MIN(event->param.conn.private_data_len,
					   (uint8_t)MRCD_VERBS_TOKEN_BYTES);

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data)
			memcpy(token, event->param.conn.private_data, token_len);
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			mrcd_verbs_on_request(device->verbs, id, token, token_len);
		else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			device->is_lost = true;
	}
	if (device->reject_count >= MRCD_VERBS_REJECTS_MAX)
		event_del(&device->channel_event); /* until one of them is gone */
	if (device->is_lost)
		mrcd_verbs_device_lost(device->verbs, "the device is being removed");
}

static struct mrcd_verbs_link *link_of_qp(struct mrcd_verbs_device *device, const struct ibv_qp *qp)
{
	struct mrcd_verbs_link *link;

	LIST_FOREACH(link, &device->verbs->links, entry)
	{
		/* In the other states a job may be writing there. */
		if (link->state >= MRCD_VERBS_LINK_CONNECTING &&
		    link->state < MRCD_VERBS_LINK_RESETTING && link->qp == qp)
			return link;
	}
	return NULL;
}

/* Port events are hints, come twice, and ACTIVE comes without a carrier: the port is asked. */
static void on_port_event(struct mrcd_verbs_device *device, const char *what)
{
	struct mrcd_rail *rail = device->verbs->rail;

	mrcd_debug("rail %s: %s port %u: %s", rail->conf->name,
		   ibv_get_device_name(device->context->device), device->port, what);
	mrcd_verbs_device_refresh(device);
	if (rail->ops->has_carrier(rail) != rail->is_carrier_up)
		mrcd_rail_on_carrier(rail, !rail->is_carrier_up);
}

static void event_handle(struct mrcd_verbs_context *context, const struct ibv_async_event *event)
{
	const char *what = ibv_event_type_str(event->event_type);
	struct mrcd_verbs_device *device, *next;
	struct mrcd_verbs_link *link;

	for (device = LIST_FIRST(&context->devices); device; device = next) {
		next = LIST_NEXT(device, entry);
		switch (event->event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			link = link_of_qp(device, event->element.qp);
			if (link)
				mrcd_verbs_link_down(link, MRC_REASON_ERROR, what);
			break;
		case IBV_EVENT_PORT_ACTIVE:
		case IBV_EVENT_PORT_ERR:
		case IBV_EVENT_GID_CHANGE:
		case IBV_EVENT_LID_CHANGE:
		case IBV_EVENT_PKEY_CHANGE:
		case IBV_EVENT_SM_CHANGE:
		case IBV_EVENT_CLIENT_REREGISTER:
			if (event->element.port_num == device->port)
				on_port_event(device, what);
			break;
		case IBV_EVENT_DEVICE_FATAL:
			device->is_lost = true;
			break;
		case IBV_EVENT_CQ_ERR:
			device->is_lost |= event->element.cq == device->recv_cq;
			LIST_FOREACH(link, &device->verbs->links, entry)
			{
				if (link->state < MRCD_VERBS_LINK_CONNECTING ||
				    link->state >= MRCD_VERBS_LINK_RESETTING ||
				    link->send_cq != event->element.cq)
					continue;
				mrcd_verbs_link_down(link, MRC_REASON_ERROR, what);
				break;
			}
			break;
		case IBV_EVENT_SRQ_ERR:
			device->is_lost |= event->element.srq == device->srq;
			break;
		case IBV_EVENT_QP_LAST_WQE_REACHED:
			link = link_of_qp(device, event->element.qp);
			if (link)
				mrcd_verbs_link_last(link);
			break;
		case IBV_EVENT_COMM_EST:
			/* Data is here and the CM's last word is lost: it shall not wait for a second one. */
			link = link_of_qp(device, event->element.qp);
			if (link && link->state == MRCD_VERBS_LINK_CONNECTING)
				rdma_notify(link->id, IBV_EVENT_COMM_EST);
			break;
		default: /* nothing we wait for */
			break;
		}
	}
}

static void on_async(evutil_socket_t fd, short what, void *arg)
{
	struct mrcd_verbs_context *context = arg;
	struct mrcd_verbs_device *device, *next;
	struct ibv_async_event event;

	if (LIST_EMPTY(&context->devices))
		return;
	mrcd_worker_now(LIST_FIRST(&context->devices)->verbs->rail->worker);
	while (ibv_get_async_event(context->context, &event) == 0) {
		event_handle(context, &event);
		ibv_ack_async_event(&event);
	}
	for (device = LIST_FIRST(&context->devices); device; device = next) {
		next = LIST_NEXT(device, entry);
		if (device->is_lost) /* takes it off the list, and the last one the context too */
			mrcd_verbs_device_lost(device->verbs, "the device reported a fatal error");
		if (!next)
			break;
	}
}

int mrcd_verbs_device_watch(struct mrcd_verbs_device *device)
{
	struct event_base *base = device->verbs->rail->worker->base;
	struct mrcd_verbs_context *context;

	LIST_FOREACH(context, &contexts, entry)
	{
		if (context->context == device->context)
			break;
	}
	if (!context) {
		int fd = device->context->async_fd;
		int flags = fcntl(fd, F_GETFL);

		context = calloc(1, sizeof(*context));
		if (!context || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
			free(context);
			return -ENOMEM;
		}
		context->context = device->context;
		LIST_INIT(&context->devices);
		event_assign(&context->async_event, base, fd, EV_READ | EV_PERSIST, on_async,
			     context);
		event_add(&context->async_event, NULL);
		LIST_INSERT_HEAD(&contexts, context, entry);
	}
	LIST_INSERT_HEAD(&context->devices, device, entry);
	event_assign(&device->channel_event, base, device->channel->fd, EV_READ | EV_PERSIST,
		     on_channel, device);
	event_add(&device->channel_event, NULL);
	event_assign(&device->comp_event, base, device->comp->fd, EV_READ | EV_PERSIST,
		     mrcd_verbs_on_comp, device->verbs);
	event_add(&device->comp_event, NULL);
	device->is_watched = true;
	return 0;
}

void mrcd_verbs_device_unwatch(struct mrcd_verbs_device *device)
{
	struct mrcd_verbs_context *context;

	if (!device->is_watched)
		return;
	device->is_watched = false;
	event_del(&device->channel_event);
	event_del(&device->comp_event);
	LIST_REMOVE(device, entry);
	LIST_FOREACH(context, &contexts, entry)
	{
		if (context->context != device->context || !LIST_EMPTY(&context->devices))
			continue;
		event_del(&context->async_event);
		LIST_REMOVE(context, entry);
		free(context);
		return;
	}
}
