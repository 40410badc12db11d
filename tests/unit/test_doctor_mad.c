/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl doctor asks an InfiniBand port, and the one it is cabled to, what they
 * support: answers are those of subnet management agents as smpquery(8) shows them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcctl_doctor_checks.h"
#include "mrcctl_doctor_mad.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AGENT    7
#define HEAD     sizeof(struct ib_user_mad_hdr)

/* ---- what agents answer ---- */

/* Bytes 28 to 35 and 60 to 63 of PortInfo: all that tells of the link. */
struct port_info {
	uint8_t link[8], extended[4];
};

/* LocalPort, LinkWidthEnabled, Supported, Active; LinkSpeed: Supported and state, .., .., Active and Enabled;
 * CapabilityMask2, LinkSpeedExtActive and Supported, LinkSpeedExtEnabled */
#define PORT_INFO(port, we, ws, wa, ss, sa, se, xa, xs, xe)                      \
	{                                                                        \
		{port, we, ws, wa, (ss) << 4 | 4, 0x52, 0x00, (sa) << 4 | (se)}, \
		{                                                                \
			0x00, 0x00, (xa) << 4 | (xs), xe                         \
		}                                                                \
	}

/* A ConnectX-6 at 4X HDR: widths 1X 2X 4X, speeds SDR DDR QDR, extended FDR EDR HDR */
static const struct port_info hdr_4x = PORT_INFO(1, 0x13, 0x13, 0x02, 7, 4, 7, 4, 7, 7);
static const struct port_info hdr_1x = PORT_INFO(1, 0x13, 0x13, 0x01, 7, 4, 7, 4, 7, 7);
static const struct port_info qdr_4x = PORT_INFO(1, 0x13, 0x13, 0x02, 7, 4, 7, 0, 7, 7);
static const struct port_info edr_4x = PORT_INFO(1, 0x13, 0x13, 0x02, 7, 4, 7, 2, 7, 7);
static const struct port_info hdr_2x = PORT_INFO(1, 0x13, 0x13, 0x10, 7, 4, 7, 4, 7, 7);
static const struct port_info all_off = PORT_INFO(1, 0x13, 0x13, 0x02, 7, 4, 7, 0, 7, 30);
static const struct port_info edr_off = PORT_INFO(1, 0x13, 0x13, 0x02, 7, 4, 7, 1, 7, 1);
/* Ports of switches */
static const struct port_info switch_hdr = PORT_INFO(17, 0x13, 0x13, 0x02, 7, 4, 7, 4, 7, 7);
static const struct port_info switch_edr = PORT_INFO(17, 0x03, 0x03, 0x02, 7, 4, 7, 2, 3, 3);
static const struct port_info switch_split = PORT_INFO(17, 0x11, 0x11, 0x10, 7, 4, 7, 4, 7, 7);
static const struct port_info switch_4x_off = PORT_INFO(17, 0x01, 0x13, 0x01, 7, 4, 7, 4, 7, 7);

/* A device that answers for both ends of the cable at port 2, until its end is closed. */
struct fabric {
	int fd;
	const struct port_info *own, *other; /* NULL: answers nothing */
	pthread_t thread;
	bool is_asked_wrong;
	bool is_late; /* answers each question twice: the second is too late for the next */
	uint16_t status;
};

static void *fabric_answer(void *context)
{
	struct fabric *fabric = context;
	uint8_t packet[HEAD + DOCTOR_MAD_BYTES];
	uint8_t *mad = packet + HEAD;
	struct ib_user_mad_hdr head;

	while (read(fabric->fd, packet, sizeof(packet)) == (ssize_t)sizeof(packet)) {
		size_t bytes = sizeof(packet);
		const struct port_info *info = mad[7] == 0 ? fabric->own : fabric->other;
		bool is_node = mad[17] == 0x11;

		memcpy(&head, packet, sizeof(head));
		/* SubnGet() of class 0x81, version 1, a directed route from here to here, by port 2 */
		if (head.id != AGENT || ntohs(head.lid) != 0xffff || head.qpn != 0 ||
		    memcmp(mad, "\1\x81\1\1\0\0\0", 7) != 0 || mad[7] > 1 ||
		    memcmp(mad + 32, "\xff\xff\xff\xff", 4) != 0 ||
		    (mad[7] == 1 && mad[128 + 1] != 2) ||
		    (!is_node && mad[23] != (mad[7] == 0 ? 2 : 17)))
			fabric->is_asked_wrong = true;
		if (info == NULL) {
			head.status = ETIMEDOUT; /* and what was asked comes back, without data */
			memcpy(packet, &head, sizeof(head));
			bytes = HEAD + 24;
		} else if (is_node) {
			mad[64 + 36] = 17; /* NodeInfo: LocalPortNum */
		} else {
			memcpy(mad + 64 + 28, info->link, sizeof(info->link));
			memcpy(mad + 64 + 60, info->extended, sizeof(info->extended));
		}
		mad[3] = 0x81; /* SubnGetResp(), on its way back */
		mad[4] = 0x80 | (uint8_t)(fabric->status >> 8);
		mad[5] = (uint8_t)fabric->status;
		mad[8] = 0xab; /* the kernel's half of the transaction */
		/* Who has all that he asked for may have gone by the second time. */
		if (send(fabric->fd, packet, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
			fabric->is_asked_wrong = true;
		if (fabric->is_late)
			(void)send(fabric->fd, packet, bytes, MSG_NOSIGNAL);
	}
	return NULL;
}

static void fabric_asked(struct fabric *fabric, struct doctor_rdma *rdma)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fabric->fd = fds[1];
	assert_int_equal(pthread_create(&fabric->thread, NULL, fabric_answer, fabric), 0);
	*rdma = (struct doctor_rdma){.port = 2};
	doctor_mad_ask_link(fds[0], AGENT, rdma);
	close(fds[0]);
	pthread_join(fabric->thread, NULL);
	close(fabric->fd);
	assert_false(fabric->is_asked_wrong);
}

static void both_ends_of_a_link_tell_what_they_support(void **state)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct fabric fabric = {.own = &hdr_1x,
					.other = &switch_edr,
					.is_late = is_late == 1};
		struct doctor_rdma rdma;

		fabric_asked(&fabric, &rdma);
		assert_string_equal(rdma.link_why, "");
		assert_true(rdma.own.is_known);
		assert_int_equal(rdma.own.widths_supported, 0x13);
		assert_int_equal(rdma.own.widths_enabled, 0x13);
		assert_int_equal(rdma.own.width_active, 0x01);
		assert_int_equal(rdma.own.speeds_supported, 0x77);
		assert_int_equal(rdma.own.speeds_enabled, 0x77);
		assert_int_equal(rdma.own.speed_active, 0x44);
		assert_true(rdma.other.is_known);
		assert_int_equal(rdma.other.widths_supported, 0x03);
		assert_int_equal(rdma.other.speeds_supported, 0x37);
	}
}

static void who_does_not_answer_stays_unknown(void **state)
{
	struct fabric silent = {.own = NULL}, guarded = {.own = &hdr_4x},
		      refused = {.own = &hdr_4x, .status = 0x000c};
	struct doctor_rdma rdma;

	fabric_asked(&silent, &rdma);
	assert_false(rdma.own.is_known);
	assert_string_equal(rdma.link_why,
			    "the port does not tell what it supports: Connection timed out");
	fabric_asked(&refused, &rdma);
	assert_false(rdma.own.is_known);
	fabric_asked(&guarded, &rdma);
	assert_true(rdma.own.is_known);
	assert_false(rdma.other.is_known);
}

/* ---- and what is made of it ---- */

static void a_link_below_what_both_ends_support_is_found(void **state)
{
	static const struct {
		const struct port_info *own, *other;
		const char *seen; /* NULL: it is as it should be */
	} links[] = {
		{&hdr_4x, &switch_hdr, NULL},
		{&hdr_4x, NULL, NULL},
		{&edr_4x, &switch_edr, NULL},   /* a slower switch, and nothing is wrong */
		{&hdr_2x, &switch_split, NULL}, /* half a split cable */
		{&hdr_1x, &switch_hdr,
		 "mlx5_0/2 runs at 1X HDR; both ends of its cable could at 4X HDR"},
		{&qdr_4x, &switch_hdr,
		 "mlx5_0/2 runs at 4X QDR; both ends of its cable could at 4X HDR"},
		{&hdr_2x, &switch_hdr,
		 "mlx5_0/2 runs at 2X HDR; both ends of its cable could at 4X HDR"},
		{&edr_4x, NULL,
		 "mlx5_0/2 runs at 4X EDR; it could at 4X HDR (the other end does not tell what "
		 "it supports)"},
		{&edr_off, &switch_hdr,
		 "mlx5_0/2 runs at 4X FDR; both ends of its cable could at 4X HDR, which is "
		 "switched off here"},
		{&all_off, &switch_hdr,
		 "mlx5_0/2 runs at 4X QDR; both ends of its cable could at 4X HDR, which is "
		 "switched off here"},
		{&hdr_1x, &switch_4x_off,
		 "mlx5_0/2 runs at 1X HDR; both ends of its cable could at 4X HDR, which is "
		 "switched off at the other end"},
	};

	for (size_t i = 0; i < COUNT(links); i++) {
		struct fabric fabric = {.own = links[i].own, .other = links[i].other};
		const char *seen = NULL;
		struct doctor_report report;
		struct doctor_facts facts;
		struct doctor_rail *rail;

		doctor_facts_init(&facts);
		rail = doctor_facts_rail_add(&facts);
		fabric_asked(&fabric, &rail->rdma);
		strcpy(rail->rdma.device, "mlx5_0");
		strcpy(rail->rdma.link_layer, "InfiniBand");
		strcpy(rail->rdma.state, "4: ACTIVE");
		doctor_judge(&facts, &report);
		for (size_t n = 0; n < report.finding_count; n++) {
			if (strcmp(report.findings[n].check->id, "rdma-width") == 0)
				seen = report.findings[n].seen;
		}
		if ((seen == NULL) != (links[i].seen == NULL))
			fail_msg("case %zu: found: %s", i, seen != NULL ? seen : "nothing");
		if (seen != NULL)
			assert_string_equal(seen, links[i].seen);
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_of_a_link_tell_what_they_support),
		cmocka_unit_test(who_does_not_answer_stays_unknown),
		cmocka_unit_test(a_link_below_what_both_ends_support_is_found),
	};

	return cmocka_run_group_tests_name("doctor_mad", tests, NULL, NULL);
}
