/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_sys.h"

#include <string.h>

#define DOCTOR_DEVICE "/sys/class/infiniband/%s"
#define DOCTOR_PORT   DOCTOR_DEVICE "/ports/%d"

/* Which counters of a port mean trouble: link first, then what is sent again (names of mlx5 and
 * soft-RoCE; others have some of them). */
static const char *const doctor_rdma_counters[] = {
	"counters/symbol_error",
	"counters/link_error_recovery",
	"counters/link_downed",
	"counters/port_rcv_errors",
	"counters/port_rcv_remote_physical_errors",
	"counters/port_xmit_discards",
	"counters/local_link_integrity_errors",
	"counters/excessive_buffer_overrun_errors",
	"counters/VL15_dropped",
	"hw_counters/out_of_sequence",
	"hw_counters/out_of_seq_request",
	"hw_counters/packet_seq_err",
	"hw_counters/rcvd_seq_err",
	"hw_counters/local_ack_timeout_err",
	"hw_counters/implied_nak_seq_err",
	"hw_counters/rnr_nak_retry_err",
	"hw_counters/duplicate_request",
	"hw_counters/rx_icrc_encapsulated",
	"hw_counters/roce_adp_retrans",
	"hw_counters/roce_slow_restart",
	"hw_counters/req_cqe_error",
	"hw_counters/resp_cqe_error",
	"hw_counters/retry_exceeded_err",
};

void doctor_sys_rdma_read(struct doctor_rail *rail, const char *root)
{
	struct doctor_rdma *rdma = &rail->rdma;
	int gid = (int)rdma->gid_index;

	doctor_sys_text(root, rdma->state, sizeof(rdma->state), DOCTOR_PORT "/state", rdma->device,
			rdma->port);
	doctor_sys_text(root, rdma->phys_state, sizeof(rdma->phys_state), DOCTOR_PORT "/phys_state",
			rdma->device, rdma->port);
	doctor_sys_text(root, rdma->rate, sizeof(rdma->rate), DOCTOR_PORT "/rate", rdma->device,
			rdma->port);
	rdma->lid = doctor_sys_number(root, DOCTOR_PORT "/lid", rdma->device, rdma->port);
	rdma->sm_lid = doctor_sys_number(root, DOCTOR_PORT "/sm_lid", rdma->device, rdma->port);
	if (rail->firmware[0] == '\0')
		doctor_sys_text(root, rail->firmware, sizeof(rail->firmware),
				DOCTOR_DEVICE "/fw_ver", rdma->device);
	if (rdma->gid_index >= 0) {
		doctor_sys_text(root, rdma->gid_type, sizeof(rdma->gid_type),
				DOCTOR_PORT "/gid_attrs/types/%d", rdma->device, rdma->port, gid);
		doctor_sys_text(root, rdma->gid_interface, sizeof(rdma->gid_interface),
				DOCTOR_PORT "/gid_attrs/ndevs/%d", rdma->device, rdma->port, gid);
	}
	rdma->tos =
		doctor_sys_number(root, "/sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_tos",
				  rdma->device, rdma->port);
	if (rail->numa_node == DOCTOR_UNKNOWN)
		rail->numa_node =
			doctor_sys_number(root, DOCTOR_DEVICE "/device/numa_node", rdma->device);
}

/* What the port has carried. Soft devices count it among their own counters. */
static uint64_t doctor_sys_rdma_packets(const struct doctor_rdma *rdma, const char *root)
{
	static const char *const names[][2] = {
		{"counters/port_xmit_packets", "counters/port_rcv_packets"},
		{"hw_counters/sent_pkts", "hw_counters/rcvd_pkts"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t sent = doctor_sys_number(root, DOCTOR_PORT "/%s", rdma->device, rdma->port,
						 names[i][0]);
		int64_t received = doctor_sys_number(root, DOCTOR_PORT "/%s", rdma->device,
						     rdma->port, names[i][1]);

		if (sent >= 0 && received >= 0)
			return (uint64_t)sent + (uint64_t)received;
	}
	return 0;
}

void doctor_sys_rdma_count(struct doctor_rail *rail, const char *root, bool is_second)
{
	rail->rdma.packets[is_second] = doctor_sys_rdma_packets(&rail->rdma, root);
	for (size_t i = 0; i < sizeof(doctor_rdma_counters) / sizeof(doctor_rdma_counters[0]);
	     i++) {
		const char *name = doctor_rdma_counters[i];
		int64_t value = doctor_sys_number(root, DOCTOR_PORT "/%s", rail->rdma.device,
						  rail->rdma.port, name);

		if (value >= 0)
			doctor_counter_note(rail->counters, DOCTOR_COUNTERS_MAX,
					    &rail->counter_count, strchr(name, '/') + 1,
					    (uint64_t)value, is_second);
	}
}
