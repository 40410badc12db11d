/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* "mlx5_0/1" of the rail's device. */
static const char *doctor_rdma_port(const struct doctor_rail *rail, char text[96])
{
	snprintf(text, 96, "%s/%d", rail->rdma.device, rail->rdma.port);
	return text;
}

/* A file of its device that could not be read: the check was not done. */
static void doctor_rdma_unread(const struct doctor_rail *rail, const char *what,
			       struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES];

	doctor_unchecked(report, doctor_subject_rail(rail, subject), "%s of %s cannot be read",
			 what, rail->rdma.device);
}

void doctor_judge_rdma_missing(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES];

		if (strcmp(rail->type, "verbs") != 0 || rail->rdma.device[0] != '\0')
			continue;
		if (rail->rdma.is_found && doctor_is_memlock_short(facts))
			continue; /* memlock says it */
		doctor_found(report, doctor_subject_rail(rail, subject), "rdma link", "%s",
			     rail->rdma.missing[0] != '\0' ? rail->rdma.missing
							   : "the daemon has no device for it");
	}
}

void doctor_judge_gid(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		const struct doctor_rdma *rdma = &rail->rdma;
		char subject[DOCTOR_SUBJECT_BYTES];

		if (!doctor_is_roce(rail))
			continue;
		doctor_subject_rail(rail, subject);
		if (rdma->gid_index == DOCTOR_UNKNOWN) {
			doctor_unchecked(report, subject, "the daemon has chosen no GID yet");
			continue;
		}
		if (rdma->gid_type[0] == '\0')
			doctor_rdma_unread(rail, "the GID's type", report);
		else if (strcmp(rdma->gid_type, "RoCE v2") != 0)
			doctor_found(report, subject, "rdma link; ibv_devinfo -v",
				     "GID %s at index %" PRId64 " is of type %s", rdma->gid,
				     rdma->gid_index, rdma->gid_type);
		if (rdma->gid_interface[0] != '\0' && rail->interface[0] != '\0' &&
		    strcmp(rdma->gid_interface, rail->interface) != 0)
			doctor_found(report, subject, "rdma link",
				     "GID %s at index %" PRId64 " belongs to %s", rdma->gid,
				     rdma->gid_index, rdma->gid_interface);
	}
}

void doctor_judge_rdma_port(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		const struct doctor_rdma *rdma = &rail->rdma;
		char subject[DOCTOR_SUBJECT_BYTES], port[96];

		if (rdma->device[0] == '\0')
			continue;
		if (rdma->state[0] == '\0')
			doctor_rdma_unread(rail, "the port's state", report);
		else if (strstr(rdma->state, "ACTIVE") == NULL)
			doctor_found(report, doctor_subject_rail(rail, subject), "rdma link",
				     "%s is %s%s%s", doctor_rdma_port(rail, port), rdma->state,
				     rdma->phys_state[0] != '\0' ? ", physically " : "",
				     rdma->phys_state);
	}
}

/* ---- how wide and fast an InfiniBand link is ---- */

/* The lanes of one width, by its bit in PortInfo. */
static const int doctor_widths[] = {1, 4, 8, 12, 2};
static const char *const doctor_speeds[] = {"SDR", "DDR", "QDR", NULL, "FDR", "EDR", "HDR", "NDR"};

static int doctor_lanes_most(uint8_t widths)
{
	int most = 0;

	for (size_t i = 0; i < sizeof(doctor_widths) / sizeof(doctor_widths[0]); i++) {
		if (widths >> i & 1 && doctor_widths[i] > most)
			most = doctor_widths[i];
	}
	return most;
}

/* -1: none that is known. */
static int doctor_speed_most(uint8_t speeds)
{
	int most = -1;

	for (int i = 0; i < (int)(sizeof(doctor_speeds) / sizeof(doctor_speeds[0])); i++) {
		if (speeds >> i & 1 && doctor_speeds[i] != NULL)
			most = i;
	}
	return most;
}

static bool doctor_is_off(const struct doctor_link_end *end, int lanes, int speed)
{
	return end->is_known && (doctor_lanes_most(end->widths_enabled) < lanes ||
				 doctor_speed_most(end->speeds_enabled) < speed);
}

/* What both ends support is what the link is to run at; where the other end does not tell, what ours does. */
static void doctor_judge_link(const struct doctor_rail *rail, struct doctor_report *report)
{
	const struct doctor_link_end *own = &rail->rdma.own, *other = &rail->rdma.other;
	uint8_t widths = own->widths_supported, speeds = own->speeds_supported;
	int lanes = doctor_lanes_most(own->width_active);
	int speed = doctor_speed_most(own->speed_active);
	int lanes_most, speed_most;
	char subject[DOCTOR_SUBJECT_BYTES], port[96], command[128];

	if (other->is_known) {
		widths &= other->widths_supported;
		speeds &= other->speeds_supported;
	}
	/* A newer speed than those of the table has no bit in it. */
	lanes_most = MAX(doctor_lanes_most(widths), lanes);
	speed_most = MAX(doctor_speed_most(speeds), speed);
	doctor_subject_rail(rail, subject);
	if (lanes == 0 || speed < 0) {
		doctor_unchecked(report, subject, "the port tells no width or speed that is known");
		return;
	}
	if (lanes == lanes_most && speed == speed_most)
		return;
	snprintf(command, sizeof(command), "ibportstate -C %s -P %d -D 0 %d", rail->rdma.device,
		 rail->rdma.port, rail->rdma.port);
	doctor_found(report, subject, command, "%s runs at %dX %s; %s could at %dX %s%s%s",
		     doctor_rdma_port(rail, port), lanes, doctor_speeds[speed],
		     other->is_known ? "both ends of its cable" : "it", lanes_most,
		     doctor_speeds[speed_most],
		     doctor_is_off(own, lanes_most, speed_most) ? ", which is switched off here"
								: "",
		     doctor_is_off(other, lanes_most, speed_most)
			     ? ", which is switched off at the other end"
		     : other->is_known ? ""
				       : " (the other end does not tell what it supports)");
}

/*
 * "100 Gb/sec (4X EDR)": the lanes. For ports that cannot be asked what they
 * support: most cables have four lanes (a split HDR or NDR cable two), so one is a
 * link that came up badly; and one that is slower than its siblings fell back.
 */
static int doctor_rate_lanes(const char *rate)
{
	const char *at = strchr(rate, '(');
	char *end;
	long lanes;

	if (at == NULL)
		return 0;
	lanes = strtol(at + 1, &end, 10);
	return end > at + 1 && *end == 'X' && lanes > 0 && lanes <= 12 ? (int)lanes : 0;
}

static double doctor_rate_gbit(const char *rate)
{
	return strtod(rate, NULL);
}

static void doctor_judge_rate(const struct doctor_rail *rail, double best,
			      struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES], port[96];
	int lanes = doctor_rate_lanes(rail->rdma.rate);

	doctor_subject_rail(rail, subject);
	doctor_rdma_port(rail, port);
	if (lanes == 0)
		doctor_rdma_unread(rail, "the rate", report);
	else if (lanes == 1)
		doctor_found(report, subject, "ibstatus", "%s runs at %s: one lane", port,
			     rail->rdma.rate);
	else if (doctor_rate_gbit(rail->rdma.rate) < best)
		doctor_found(report, subject, "ibstatus",
			     "%s runs at %s, the best of its siblings at %.0f Gb/sec", port,
			     rail->rdma.rate, best);
	else if (rail->rdma.link_why[0] != '\0')
		doctor_unchecked(report, subject, "%s", rail->rdma.link_why);
}

void doctor_judge_width(const struct doctor_facts *facts, struct doctor_report *report)
{
	double best = 0;

	for (size_t i = 0; i < facts->rail_count; i++) {
		if (doctor_is_infiniband(&facts->rails[i]) &&
		    doctor_rate_gbit(facts->rails[i].rdma.rate) > best)
			best = doctor_rate_gbit(facts->rails[i].rdma.rate);
	}
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];

		if (!doctor_is_infiniband(rail) || strstr(rail->rdma.state, "ACTIVE") == NULL)
			continue;
		if (rail->rdma.own.is_known)
			doctor_judge_link(rail, report);
		else
			doctor_judge_rate(rail, best, report);
	}
}

void doctor_judge_pci(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[64];

		if (rail->pci[0] == '\0')
			continue; /* not on PCI */
		doctor_subject_rail(rail, subject);
		snprintf(command, sizeof(command), "lspci -s %s -vv | grep LnkSta", rail->pci);
		if (rail->pci_width <= 0 || rail->pci_width_max <= 0 || rail->pci_speed[0] == '\0')
			doctor_unchecked(report, subject, "the PCIe link of %s cannot be read",
					 rail->pci);
		else if (rail->pci_width < rail->pci_width_max ||
			 strtod(rail->pci_speed, NULL) < strtod(rail->pci_speed_max, NULL))
			doctor_found(report, subject, command,
				     "%s runs at %s x%" PRId64 " and could at %s x%" PRId64,
				     rail->pci, rail->pci_speed, rail->pci_width,
				     rail->pci_speed_max, rail->pci_width_max);
	}
}

void doctor_judge_subnet(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], port[96];

		if (!doctor_is_infiniband(rail))
			continue;
		doctor_subject_rail(rail, subject);
		doctor_rdma_port(rail, port);
		if (rail->rdma.lid == DOCTOR_UNKNOWN || rail->rdma.sm_lid == DOCTOR_UNKNOWN)
			doctor_rdma_unread(rail, "the LID", report);
		else if (rail->rdma.lid == 0)
			doctor_found(report, subject, "ibstatus; sminfo",
				     "%s has LID 0: no subnet manager has seen it", port);
		else if (rail->rdma.sm_lid == 0)
			doctor_found(report, subject, "sminfo", "%s knows no subnet manager", port);
	}
}

void doctor_judge_lossless(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		bool has_any =
			rail->pfc_priorities > 0 || rail->has_pause == 1 || rail->has_ecn == 1;
		char subject[DOCTOR_SUBJECT_BYTES], command[96];

		if (!doctor_is_roce(rail) || has_any)
			continue;
		doctor_subject_rail(rail, subject);
		if (rail->pfc_priorities == DOCTOR_UNKNOWN && rail->has_pause == DOCTOR_UNKNOWN &&
		    rail->has_ecn == DOCTOR_UNKNOWN) {
			doctor_unchecked(report, subject,
					 "its driver tells nothing of PFC, pause or ECN");
			continue;
		}
		snprintf(command, sizeof(command), "dcb pfc set dev %s prio-pfc 3:on",
			 rail->interface);
		doctor_found(report, subject, command, "PFC %s, pause %s, ECN %s",
			     rail->pfc_priorities == 0 ? "off" : "not told",
			     rail->has_pause == 0 ? "off" : "not told",
			     rail->has_ecn == 0 ? "off" : "not told");
	}
}

void doctor_judge_dscp(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[160];

		if (!doctor_is_roce(rail) || strcmp(rail->type, "tcp") == 0)
			continue;
		doctor_subject_rail(rail, subject);
		snprintf(command, sizeof(command),
			 "echo 106 > /sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_tos",
			 rail->rdma.device, rail->rdma.port);
		if (rail->rdma.tos == DOCTOR_UNKNOWN)
			doctor_unchecked(
				report, subject,
				"/sys/kernel/config/rdma_cm/%s is not there: mkdir makes it",
				rail->rdma.device);
		else if (rail->rdma.tos >> 2 == 0)
			doctor_found(report, subject, command,
				     "rdma_cm gives its connections type of service %" PRId64,
				     rail->rdma.tos);
	}
}
