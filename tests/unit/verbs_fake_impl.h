/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of verbs_fake share; all of it under fake_lock. */
#ifndef VERBS_FAKE_IMPL_H
#define VERBS_FAKE_IMPL_H

#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>

#include "verbs_fake.h"

#define PORTS_MAX       4
#define GIDS            8
#define PRIVATE_MAX     56 /* of a request on RoCE, zero padded; iWARP keeps the length */
#define INLINE_MAX      1024
#define SGES_MAX        4
#define CONTEXT_OF(ctx) ((struct fake_device *)(void *)verbs_get_ctx(ctx))

struct fake_port {
	bool is_there;
	struct sockaddr_storage address;
	int gid_index;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	enum ibv_mtu mtu_told; /* what the next query answers */
};

struct fake_async {
	TAILQ_ENTRY(fake_async) entry;
	struct ibv_async_event event;
};

struct fake_device {
	struct verbs_context context; /* first; its last member is what callers see */
	struct ibv_device device;
	LIST_ENTRY(fake_device) entry;
	struct fake_port ports[PORTS_MAX + 1]; /* by number */
	uint32_t inline_max;
	TAILQ_HEAD(, fake_async) asyncs;
};

struct fake_mr {
	struct ibv_mr mr; /* first */
	LIST_ENTRY(fake_mr) entry;
	int access;
};

struct fake_cq;
struct fake_comp_event {
	TAILQ_ENTRY(fake_comp_event) entry;
	struct fake_cq *cq;
};

struct fake_comp {
	struct ibv_comp_channel comp; /* first */
	TAILQ_HEAD(, fake_comp_event) events;
	int users;
};

struct fake_qp;
struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp;   /* sends: whose slots it frees; else NULL */
	uint64_t position;    /* sends: in its queue */
	struct fake_srq *srq; /* receives: whose entry it is; else NULL */
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	LIST_ENTRY(fake_cq) entry;
	struct fake_cqe *cqes;
	int first, count;
	bool is_armed;
	uint32_t events_read, events_acked;
	int users;
};

struct fake_recv {
	uint64_t wr_id;
	struct ibv_sge sge;
};

struct fake_srq {
	struct ibv_srq srq; /* first */
	LIST_ENTRY(fake_srq) entry;
	struct fake_recv *recvs;
	uint32_t max, first, count;
	uint32_t taken; /* received into, and their completions not polled */
	int users;
};

struct fake_send {
	TAILQ_ENTRY(fake_send) entry;
	struct ibv_send_wr wr;
	struct ibv_sge sges[SGES_MAX];
	uint64_t position; /* in the queue */
	uint64_t order;    /* of posting, among all queue pairs */
	uint32_t inline_len;
	uint8_t data[]; /* inline */
};

struct fake_id;
struct fake_qp {
	struct ibv_qp qp; /* first */
	LIST_ENTRY(fake_qp) entry;
	struct ibv_qp_cap cap;
	struct fake_qp *peer; /* NULL: not connected, or gone */
	uint32_t peer_number;
	struct fake_id *id;
	TAILQ_HEAD(, fake_send) sends;
	uint64_t posted, freed; /* of the slots of the send queue */
	bool is_rnr;            /* its first request waits for a receive entry */
};

struct fake_cm_event {
	TAILQ_ENTRY(fake_cm_event) entry;
	struct rdma_cm_event event;
	struct fake_channel *channel;
	uint8_t data[PRIVATE_MAX * 4];
};

struct fake_channel {
	struct rdma_event_channel channel; /* first */
	LIST_ENTRY(fake_channel) entry;
	TAILQ_HEAD(, fake_cm_event) events;
	int ids;
};

struct fake_id {
	struct rdma_cm_id id; /* first */
	LIST_ENTRY(fake_id) entry;
	bool is_listening;
	uint16_t port;         /* listening */
	struct fake_id *other; /* connected to, or asking; NULL: none or gone */
	uint32_t events_read, events_acked;
	bool is_established_held;
	bool is_announced; /* the caller knows it */
	bool is_stranger;
};

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_change;
extern struct verbs_fake_counts fake_counts;
extern LIST_HEAD(fake_devices, fake_device) fake_devices;

void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Gate and script of a call; the error it fails with, or 0. */
int fake_call(enum verbs_fake_call call);
void fake_signal(int fd);
void fake_take(int fd);
/* With fake_lock held and nothing to take from fd: wait for more, or answer false. */
bool fake_wait(int fd);
struct fake_device *fake_port_find(const struct sockaddr *address, uint8_t *port_out);
bool fake_is_same_host(const struct sockaddr *a, const struct sockaddr *b);

/* verbs_fake.c */
void fake_async_add(struct fake_device *device, const struct ibv_async_event *event);
void fake_async_drop(struct fake_device *device, const struct ibv_qp *qp);
void fake_cq_push(struct ibv_cq *cq, const struct fake_cqe *cqe);
/* RESET and destroy: completions of this queue pair go, with the receive entries in them. */
void fake_cq_clean(struct ibv_cq *cq, const struct fake_qp *qp);
/* The bytes, when this key allows it; else NULL. */
uint8_t *fake_mr_bytes(const struct ibv_pd *pd, uint32_t key, bool is_remote, uint64_t addr,
		       uint64_t len);

/* verbs_fake_qp.c */
struct fake_qp *fake_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void fake_qp_free(struct fake_qp *qp);
void fake_qp_free_all(void);
void fake_qp_connect(struct fake_qp *a, struct fake_qp *b);
void fake_qp_kick_all(void);
/* A completion queue is about to be armed. */
void fake_qp_arming(void);
void fake_qp_begin(void);
bool fake_qp_reads(uint32_t lkey);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* verbs_fake_cm.c */
void fake_cm_begin(void);
void fake_qp_disconnected(struct fake_qp *qp);

#endif
