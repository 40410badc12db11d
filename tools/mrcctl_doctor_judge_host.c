/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mrcctl_unit.h"

#define DOCTOR_WALL_APART_NS (100 * 1000000LL) /* logs of two hosts are read side by side */
#define DOCTOR_DRIFT_PPM     200.0             /* quartz has 50; the kernel's NTP gives up at 500 */

/* ---- the daemon ---- */

bool doctor_is_memlock_short(const struct doctor_facts *facts)
{
	return facts->may_lock == 0 && facts->memlock_bytes != DOCTOR_UNKNOWN &&
	       facts->memlock_bytes < facts->memlock_need_bytes;
}

void doctor_judge_configuration(const struct doctor_facts *facts, struct doctor_report *report)
{
	if (facts->is_conf_former == DOCTOR_UNKNOWN)
		doctor_unchecked(report, "mrcd", "the daemon does not say whether it has");
	else if (facts->is_conf_former == 1)
		doctor_found(report, "mrcd", "mrcctl reload --check",
			     "what is in force is from before its last restart");
}

void doctor_judge_memlock(const struct doctor_facts *facts, struct doctor_report *report)
{
	char limit[MRCCTL_UNIT_BYTES], need[MRCCTL_UNIT_BYTES];
	bool has_device = false;

	for (size_t i = 0; i < facts->rail_count; i++)
		has_device = has_device || (strcmp(facts->rails[i].type, "tcp") != 0 &&
					    doctor_has_device(&facts->rails[i]));
	if (!has_device || facts->may_lock == 1)
		return;
	if (facts->memlock_bytes == DOCTOR_UNKNOWN || facts->may_lock == DOCTOR_UNKNOWN) {
		doctor_unchecked(report, "mrcd", "the daemon does not say its limit");
		return;
	}
	if (!doctor_is_memlock_short(facts))
		return;
	doctor_found(
		report, "mrcd", "systemctl edit mrcd   # [Service] LimitMEMLOCK=infinity",
		"its limit is %s, its rails' buffers and one program's arenas on each rail want %s",
		mrcctl_unit_bytes((uint64_t)facts->memlock_bytes, limit),
		mrcctl_unit_bytes((uint64_t)facts->memlock_need_bytes, need));
}

void doctor_judge_huge_pages(const struct doctor_facts *facts, struct doctor_report *report)
{
	char size[MRCCTL_UNIT_BYTES], command[96];
	int64_t need;

	if (facts->huge_page_bytes == DOCTOR_UNKNOWN) {
		doctor_unchecked(report, "mrcd", "the daemon does not say whether it wants any");
		return;
	}
	if (facts->huge_page_bytes <= 0)
		return;
	mrcctl_unit_bytes((uint64_t)facts->huge_page_bytes, size);
	if (facts->huge_pages_free == DOCTOR_UNKNOWN) {
		doctor_found(report, "mrcd", NULL, "the kernel has no pages of %s", size);
		return;
	}
	need = (facts->arena_bytes + facts->huge_page_bytes - 1) / facts->huge_page_bytes;
	if (facts->huge_pages_free >= need)
		return;
	snprintf(command, sizeof(command), "sysctl -w vm.nr_hugepages=%" PRId64,
		 facts->huge_pages_all + need - facts->huge_pages_free);
	doctor_found(report, "mrcd", command,
		     "%" PRId64 " of %" PRId64 " pages of %s are free, the arenas of one more "
		     "program want %" PRId64,
		     facts->huge_pages_free, facts->huge_pages_all, size, need);
}

void doctor_judge_ports(const struct doctor_facts *facts, struct doctor_report *report)
{
	if (!facts->are_ports_read) {
		doctor_unchecked(report, "mrcd", "%s",
				 facts->ports_why[0] != '\0' ? facts->ports_why
							     : "its sockets cannot be read");
		return;
	}
	for (size_t i = 0; i < facts->port_count; i++) {
		const struct doctor_port *port = &facts->ports[i];

		if (!port->is_loopback)
			doctor_found(report, "mrcd", "ss -tlnp",
				     "it listens on %s port %d, which is no rail's", port->address,
				     port->port);
	}
}

/* ---- clocks ---- */

void doctor_judge_wall(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->peer_count; i++) {
		const struct doctor_peer *peer = &facts->peers[i];
		char subject[DOCTOR_SUBJECT_BYTES], span[MRCCTL_UNIT_BYTES];

		snprintf(subject, sizeof(subject), "peer %s", peer->name);
		if (peer->has_wall != DOCTOR_YES)
			doctor_unchecked(report, subject, "the peer has not told its time of day");
		else if (peer->wall_apart_ns > DOCTOR_WALL_APART_NS ||
			 peer->wall_apart_ns < -DOCTOR_WALL_APART_NS)
			doctor_found(report, subject, "chronyc tracking",
				     "its time of day is %s %s ours",
				     mrcctl_unit_span((uint64_t)(peer->wall_apart_ns > 0
									 ? peer->wall_apart_ns
									 : -peer->wall_apart_ns),
						      span),
				     peer->wall_apart_ns > 0 ? "ahead of" : "behind");
	}
}

void doctor_judge_drift(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->peer_count; i++) {
		const struct doctor_peer *peer = &facts->peers[i];
		char subject[DOCTOR_SUBJECT_BYTES];
		double moved, error, ppm;

		snprintf(subject, sizeof(subject), "peer %s", peer->name);
		if (peer->has_clock != DOCTOR_YES || peer->clock_apart_ns == 0) {
			doctor_unchecked(report, subject, "its clock was not compared twice");
			continue;
		}
		moved = fabs((double)(peer->clock_offset_ns[1] - peer->clock_offset_ns[0]));
		error = (double)peer->clock_error_ns[0] + (double)peer->clock_error_ns[1];
		ppm = (moved - error) / (double)peer->clock_apart_ns * 1e6;
		if (ppm > DOCTOR_DRIFT_PPM)
			doctor_found(report, subject, "chronyc tracking",
				     "the two clocks move apart by at least %.0f us in a second",
				     ppm);
	}
}

/* ---- versions ---- */

/* One text of each path's other end, and ours beside it. Once for each peer, not for each path. */
static void doctor_versions(const struct doctor_facts *facts, struct doctor_report *report,
			    const char *ours, size_t offset, bool is_asked_of_all)
{
	for (size_t i = 0; i < facts->peer_count; i++) {
		const char *theirs = "";
		char subject[DOCTOR_SUBJECT_BYTES];

		for (size_t n = 0; n < facts->path_count && theirs[0] == '\0'; n++) {
			if (facts->paths[n].peer == i && facts->paths[n].about.is_known)
				theirs = (const char *)&facts->paths[n].about + offset;
		}
		snprintf(subject, sizeof(subject), "peer %s", facts->peers[i].name);
		if (theirs[0] == '\0' || ours[0] == '\0') {
			if (is_asked_of_all)
				doctor_unchecked(report, subject, "%s",
						 ours[0] == '\0' ? "ours is not known"
								 : "the peer has not told it");
		} else if (strcmp(theirs, ours) != 0) {
			doctor_found(report, subject, NULL, "%s there, %s here", theirs, ours);
		}
	}
}

void doctor_judge_version_mrcd(const struct doctor_facts *facts, struct doctor_report *report)
{
	doctor_versions(facts, report, facts->version, offsetof(struct doctor_about, version),
			true);
}

void doctor_judge_version_kernel(const struct doctor_facts *facts, struct doctor_report *report)
{
	doctor_versions(facts, report, facts->kernel, offsetof(struct doctor_about, kernel), true);
}

void doctor_judge_version_rdma_core(const struct doctor_facts *facts, struct doctor_report *report)
{
	doctor_versions(facts, report, facts->rdma_core, offsetof(struct doctor_about, rdma_core),
			false);
}

/* Of cards with one driver only: what others call their firmware cannot be compared. */
void doctor_judge_version_firmware(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES];

		doctor_subject_path(facts, path, subject);
		if (!path->about.is_known)
			doctor_unchecked(report, subject, "the peer has not told about its end");
		else if (strcmp(rail->driver, path->about.driver) == 0 &&
			 strcmp(rail->firmware, path->about.firmware) != 0)
			doctor_found(report, subject, NULL,
				     "%s here, %s there, of cards with the driver %s",
				     rail->firmware[0] != '\0' ? rail->firmware : "none",
				     path->about.firmware[0] != '\0' ? path->about.firmware
								     : "none",
				     rail->driver);
	}
}
