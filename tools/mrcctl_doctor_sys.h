/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_sys - what sysfs and procfs tell of the rails, as facts
 *
 * All files are looked for below `root`, which is "" for this machine and a
 * recorded tree for a test. What is not there stays unknown.
 *
 * Threads: one.  I/O: reads small files.
 */
#ifndef MRCCTL_DOCTOR_SYS_H
#define MRCCTL_DOCTOR_SYS_H

#include "mrcctl_doctor_facts.h"

/* After the daemon was read: of each rail its interface, card, RDMA port; of the host the rest. */
void doctor_sys_read(struct doctor_facts *facts, const char *root);
/* Counters of the rails, for the first or the second time. */
void doctor_sys_count(struct doctor_facts *facts, const char *root, bool is_second);

/* The first line of a file, without its newline; false: not there, or empty. */
bool doctor_sys_text(const char *root, char *text, size_t text_bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A number at the beginning of it, also "0x1f"; DOCTOR_UNKNOWN: there is none. */
int64_t doctor_sys_number(const char *root, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The last part of where a link leads; false: not there. */
bool doctor_sys_link(const char *root, char *text, size_t text_bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- mrcctl_doctor_sys_rdma.c ---- */
void doctor_sys_rdma_read(struct doctor_rail *rail, const char *root);
void doctor_sys_rdma_count(struct doctor_rail *rail, const char *root, bool is_second);

#endif
