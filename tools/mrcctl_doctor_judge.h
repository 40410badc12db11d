/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_judge - what the files of judges share: how subjects are called
 *
 *	mrcctl_doctor_judge_rail.c     this host's rails beside each other, and their paths
 *	mrcctl_doctor_judge_network.c  cables, routes, who answers where
 *	mrcctl_doctor_judge_rdma.c     RDMA devices and the cards they are on
 *	mrcctl_doctor_judge_host.c     the daemon, clocks, versions
 *
 * Threads: one.  I/O: none.
 */
#ifndef MRCCTL_DOCTOR_JUDGE_H
#define MRCCTL_DOCTOR_JUDGE_H

#include "mrcctl_doctor_checks.h"

#define DOCTOR_SUBJECT_BYTES 160

/* "rail r1"; "rail r1 to b"; "rails r0 and r1". Answer `text`. */
const char *doctor_subject_rail(const struct doctor_rail *rail, char text[DOCTOR_SUBJECT_BYTES]);
const char *doctor_subject_path(const struct doctor_facts *facts, const struct doctor_path *path,
				char text[DOCTOR_SUBJECT_BYTES]);
const char *doctor_subject_rails(const struct doctor_rail *a, const struct doctor_rail *b,
				 char text[DOCTOR_SUBJECT_BYTES]);

/* The daemon is held to a limit of locked memory that is below what its rails and one program need. */
bool doctor_is_memlock_short(const struct doctor_facts *facts);

bool doctor_same_mac(const struct doctor_mac *a, const struct doctor_mac *b);

#endif
