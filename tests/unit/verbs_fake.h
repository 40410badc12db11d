/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices in memory, for tests of rails over them
 *
 * Defines the functions of libibverbs and librdmacm that the daemon calls; a
 * test links it in their stead. Bytes really move: a SEND into the other end's
 * receive entry, an RDMA WRITE to where its key allows.
 *
 * It is as strict as hardware, and stricter than soft devices: a slot of a send
 * queue is free when a completion behind it was polled, a completion queue
 * overflows, a queue that was not armed makes no event, and RESET takes back
 * what it can: the completions of its queue pair and the receive entries in
 * them. What a caller may not do is kept as a violation, for the test to find.
 *
 * One set of devices for a process, begun anew by verbs_fake_begin().
 *
 * Threads: any; one lock inside.
 */
#ifndef VERBS_FAKE_H
#define VERBS_FAKE_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

/* Calls that can be scripted. */
enum verbs_fake_call {
	VERBS_FAKE_CREATE_CHANNEL,
	VERBS_FAKE_CREATE_ID,
	VERBS_FAKE_BIND,
	VERBS_FAKE_LISTEN,
	VERBS_FAKE_MIGRATE,
	VERBS_FAKE_RESOLVE_ADDR,
	VERBS_FAKE_RESOLVE_ROUTE,
	VERBS_FAKE_CONNECT,
	VERBS_FAKE_ACCEPT,
	VERBS_FAKE_QUERY_DEVICE,
	VERBS_FAKE_QUERY_PORT,
	VERBS_FAKE_ALLOC_PD,
	VERBS_FAKE_REG_MR,
	VERBS_FAKE_CREATE_COMP,
	VERBS_FAKE_CREATE_CQ,
	VERBS_FAKE_CREATE_SRQ,
	VERBS_FAKE_CREATE_QP,
	VERBS_FAKE_POST_SRQ,
	VERBS_FAKE_POST_SEND,
	VERBS_FAKE_POLL,
	VERBS_FAKE_SET_TIMER,
	VERBS_FAKE_TO_ERR,
	VERBS_FAKE_TO_RESET,
	VERBS_FAKE_DESTROY_QP,
	VERBS_FAKE_DEREG_MR,
	VERBS_FAKE_GET_DEVICES,
	VERBS_FAKE_CALLS
};

/* What a connect request meets. */
enum verbs_fake_answer {
	VERBS_FAKE_ANSWERED,
	VERBS_FAKE_SILENT,   /* the request is lost: no event, ever */
	VERBS_FAKE_BLOCKING, /* rdma_connect() itself does not return, until a signal */
	VERBS_FAKE_REJECTED,
};

struct verbs_fake_counts {
	int channels, ids, pds, mrs, comps, cqs, srqs, qps;
};

void verbs_fake_begin(void);
/* All is given back: devices too. Answers the first violation; NULL: none. Static text. */
const char *verbs_fake_end(void);
/* As at the end of a process: queue pairs that could not be destroyed go, and what they held. */
void verbs_fake_exit(void);
struct verbs_fake_counts verbs_fake_counts(void);
/* The sum of them. */
int verbs_fake_left(void);

/* `address` (numeric) is on this port of that device, which is made when there is none. */
void verbs_fake_port(const char *device, uint8_t port, const char *address,
		     enum ibv_transport_type transport);
void verbs_fake_port_remove(const char *address);
/* Where the port's address is in its table of GIDs. */
void verbs_fake_gid_move(const char *address, int index);
/* What the port says of itself from now on; no event tells of it. */
void verbs_fake_mtu(const char *address, enum ibv_mtu mtu);
void verbs_fake_inline_max(const char *device, uint32_t bytes);

/* The next `count` of these calls fail (negative: all), after `skip` that do not. */
void verbs_fake_fail(enum verbs_fake_call call, int skip, int count, int error);
/* Of all the calls that may fail, the n-th does; 0: none. Answers how many there were so far. */
int verbs_fake_fail_nth(int n);
/* Calls wait inside until the gate is opened. */
void verbs_fake_gate(enum verbs_fake_call call, bool is_shut);
/* How many of these calls have been entered. */
int verbs_fake_calls(enum verbs_fake_call call);
void verbs_fake_answer(enum verbs_fake_answer answer);
/* Passive ends do not hear that they are established until it is false again. */
void verbs_fake_hold_established(bool is_held);

/* Work requests stay in their queues, as when the cable is out. */
void verbs_fake_hold_work(bool is_held);
/* Run `count` of those that are held, of all queue pairs, in the order of posting. */
int verbs_fake_work(int count);
/* What is held runs in the moment before a completion queue is armed, and so makes no event there. */
void verbs_fake_work_at_arming(bool is_wanted);
/* Work is done by a thread of its own, at random times. */
void verbs_fake_work_apart(bool is_apart);
/* This queue pair's first request ends with that error, the others are flushed. */
void verbs_fake_qp_fail(uint32_t qp_num, enum ibv_wc_status status);
/* IBV_QPS_UNKNOWN: there is no queue pair of this number. */
enum ibv_qp_state verbs_fake_qp_state(uint32_t qp_num);
/* Most slots that any send queue had in use at once. */
uint32_t verbs_fake_depth_max(void);
/* A completion from nowhere: takes a receive entry, writes data into it. */
void verbs_fake_receive(struct ibv_srq *srq, struct ibv_cq *cq, uint32_t qp_num, const void *data,
			uint32_t len, enum ibv_wc_status status);
/* Entries of a shared receive queue that the device has. */
int verbs_fake_srq_posted(struct ibv_srq *srq);
/* Whether a queue pair in ERR tells when it has let go of its receive entries; soft devices do not. */
void verbs_fake_last_event(bool is_given);
/* How often a SEND found no receive entry. */
int verbs_fake_rnrs(void);

void verbs_fake_async(const char *address, const struct ibv_async_event *event);
/* Both ends of this queue pair hear of a disconnection. */
void verbs_fake_disconnect(uint32_t qp_num);
/* The listener of this address and the ids on it hear that the device goes. */
void verbs_fake_removal(const char *address);

/* A stranger's connect request; its answer: 0 none yet, 1 accepted, -1 rejected. */
void verbs_fake_stranger(const char *address, const void *data, uint8_t len);
int verbs_fake_stranger_answer(void);

#endif
