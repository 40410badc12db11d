/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_mad.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mrcctl_doctor_probe.h"
#include "mrcctl_doctor_sys.h"

#define MAD_DEVICES_MAX     256
#define MAD_TIMEOUT_MS      200 /* the kernel's, of each try */
#define MAD_RETRIES         2
#define MAD_PATIENCE_MS     1000

#define MAD_CLASS_DIRECTED  0x81
#define MAD_METHOD_GET      0x01
#define MAD_METHOD_GET_RESP 0x81
#define MAD_LID_PERMISSIVE  0xffff
#define MAD_HEAD_BYTES      24     /* up to the modifier */
#define MAD_STATUS_MASK     0x7fff /* the other bit is the direction */

enum mad_attribute { MAD_NODE_INFO = 0x0011, MAD_PORT_INFO = 0x0015 };

/* A subnet management packet with a directed route (IBA volume 1, 14.2.1.2). All of it in network order. */
struct mad_smp {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint8_t hop_pointer;
	uint8_t hop_count;
	uint32_t transaction_high; /* the kernel's, which knows the agent by it */
	uint32_t transaction;
	uint16_t attribute;
	uint16_t reserved_1;
	uint32_t modifier;
	uint64_t m_key;
	uint16_t source_lid;
	uint16_t destination_lid;
	uint8_t reserved_2[28];
	uint8_t data[DOCTOR_MAD_DATA_BYTES];
	uint8_t path[64]; /* the port to leave by, of each hop, from 1 on */
	uint8_t path_back[64];
};
static_assert(sizeof(struct mad_smp) == DOCTOR_MAD_BYTES, "one MAD");

struct mad_packet {
	struct ib_user_mad_hdr head;
	struct mad_smp smp;
};
static_assert(sizeof(struct mad_packet) == sizeof(struct ib_user_mad_hdr) + DOCTOR_MAD_BYTES,
	      "nothing in between");

void doctor_mad_port_info(const uint8_t data[DOCTOR_MAD_DATA_BYTES],
			  struct doctor_link_end *end_out)
{
	uint8_t extended = data[63] & 0x1f; /* enabled; 30: none is */

	/* LinkSpeed is three of four bits; the extended ones are 0 where a port knows none. */
	*end_out = (struct doctor_link_end){
		.is_known = true,
		.widths_enabled = data[29],
		.widths_supported = data[30],
		.width_active = data[31],
		.speeds_supported = (uint8_t)((data[32] >> 4 & 7) | (data[62] & 0xf) << 4),
		.speed_active = (uint8_t)((data[35] >> 4 & 7) | (data[62] & 0xf0)),
		.speeds_enabled =
			(uint8_t)((data[35] & 7) | (extended == 30 ? 0 : (extended & 0xf) << 4)),
	};
}

/* Waits for the answer to `ask`. 0, or a negative errno. */
static int mad_receive(int fd, const struct mad_smp *ask, struct mad_packet *answer)
{
	uint64_t end_ns = doctor_clock_ns() + MAD_PATIENCE_MS * 1000000ULL, now_ns;

	while ((now_ns = doctor_clock_ns()) < end_ns) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t count;

		if (poll(&wait, 1, (int)((end_ns - now_ns) / 1000000U) + 1) <= 0)
			continue;
		count = read(fd, answer, sizeof(*answer));
		if (count < 0 && errno == EAGAIN)
			continue;
		if (count < 0)
			return -errno;
		/* A question that nobody answered comes back without its data. */
		if (count < (ssize_t)(sizeof(answer->head) + MAD_HEAD_BYTES))
			return -EBADMSG;
		/* What came too late for an earlier question is not for this one. */
		if (answer->smp.transaction != ask->transaction)
			continue;
		if (answer->head.status != 0)
			return answer->head.status == ETIMEDOUT ? -ETIMEDOUT : -EIO;
		if (count != (ssize_t)sizeof(*answer))
			return -EBADMSG;
		return answer->smp.method == MAD_METHOD_GET_RESP &&
				       answer->smp.attribute == ask->attribute &&
				       (ntohs(answer->smp.status) & MAD_STATUS_MASK) == 0
			       ? 0
			       : -EPROTO;
	}
	return -ETIMEDOUT;
}

/* One attribute, of our own node (`hops` 0) or of the one at the other end of the cable at `port` (1). */
static int mad_ask(int fd, uint32_t agent, uint8_t hops, uint8_t port, enum mad_attribute attribute,
		   uint32_t modifier, uint8_t data_out[DOCTOR_MAD_DATA_BYTES])
{
	static uint32_t transaction;
	struct mad_packet ask = {
		.head = {.id = agent,
			 .timeout_ms = MAD_TIMEOUT_MS,
			 .retries = MAD_RETRIES,
			 .length = sizeof(ask.smp),
			 .lid = htons(MAD_LID_PERMISSIVE)},
		.smp = {.base_version = 1,
			.mgmt_class = MAD_CLASS_DIRECTED,
			.class_version = 1,
			.method = MAD_METHOD_GET,
			.hop_count = hops,
			.transaction = htonl(++transaction),
			.attribute = htons((uint16_t)attribute),
			.modifier = htonl(modifier),
			.source_lid = htons(MAD_LID_PERMISSIVE),
			.destination_lid = htons(MAD_LID_PERMISSIVE)},
	};
	struct mad_packet answer;
	ssize_t count;
	int r;

	if (hops > 0)
		ask.smp.path[1] = port;
	count = write(fd, &ask, sizeof(ask));
	if (count != (ssize_t)sizeof(ask))
		return count < 0 ? -errno : -EIO;
	r = mad_receive(fd, &ask.smp, &answer);
	if (r == 0)
		memcpy(data_out, answer.smp.data, DOCTOR_MAD_DATA_BYTES);
	return r;
}

void doctor_mad_ask_link(int fd, uint32_t agent, struct doctor_rdma *rdma)
{
	uint8_t port = (uint8_t)rdma->port, data[DOCTOR_MAD_DATA_BYTES] = {0};
	int r = mad_ask(fd, agent, 0, port, MAD_PORT_INFO, port, data);

	if (r != 0) {
		snprintf(rdma->link_why, sizeof(rdma->link_why),
			 "the port does not tell what it supports: %s", strerror(-r));
		return;
	}
	doctor_mad_port_info(data, &rdma->own);
	/* The neighbour's NodeInfo tells by which of its ports the question came. A switch with a
	 * protecting M_Key answers nothing. */
	if (mad_ask(fd, agent, 1, port, MAD_NODE_INFO, 0, data) == 0 &&
	    mad_ask(fd, agent, 1, port, MAD_PORT_INFO, data[36], data) == 0)
		doctor_mad_port_info(data, &rdma->other);
}

/* The number N of /dev/infiniband/umadN for a port; -1: there is none. */
static int mad_device_find(const struct doctor_rdma *rdma)
{
	for (int i = 0; i < MAD_DEVICES_MAX; i++) {
		char device[DOCTOR_NAME_BYTES];

		if (doctor_sys_text("", device, sizeof(device),
				    "/sys/class/infiniband_mad/umad%d/ibdev", i) &&
		    strcmp(device, rdma->device) == 0 &&
		    doctor_sys_number("", "/sys/class/infiniband_mad/umad%d/port", i) == rdma->port)
			return i;
	}
	return -1;
}

static void mad_probe(struct doctor_rdma *rdma)
{
	/* No method of its own: it hears the answers to its questions and nothing else. */
	struct ib_user_mad_reg_req agent = {.mgmt_class = MAD_CLASS_DIRECTED,
					    .mgmt_class_version = 1};
	int number = mad_device_find(rdma), fd;
	char path[64];

	if (number < 0) {
		doctor_text_set(rdma->link_why, sizeof(rdma->link_why),
				"its port cannot be asked what it supports without the module "
				"ib_umad");
		return;
	}
	snprintf(path, sizeof(path), "/dev/infiniband/umad%d", number);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, IB_USER_MAD_ENABLE_PKEY) < 0 ||
	    ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &agent) < 0)
		snprintf(rdma->link_why, sizeof(rdma->link_why),
			 "its port cannot be asked what it supports: %s: %s", path,
			 strerror(errno));
	else
		doctor_mad_ask_link(fd, agent.id, rdma);
	if (fd >= 0)
		close(fd); /* and with it the agent */
}

void doctor_probe_links(struct doctor_facts *facts)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];

		if (!doctor_is_infiniband(rail))
			continue;
		if (doctor_is_driver_silent(rail))
			doctor_text_set(rail->rdma.link_why, sizeof(rail->rdma.link_why),
					"its driver does not answer");
		else
			mad_probe(&rail->rdma);
	}
}
