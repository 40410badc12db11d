/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_daemon - what the daemon tells, as facts
 *
 * Its answers are judged no more than needed: what is missing or of another
 * type stays unknown, so that an older or newer daemon can be asked too.
 *
 * Ownership: answers stay the caller's; all is copied.
 * Threads:   one.  I/O: none.
 */
#ifndef MRCCTL_DOCTOR_DAEMON_H
#define MRCCTL_DOCTOR_DAEMON_H

#include <jansson.h>

#include "mrcctl_doctor_facts.h"

/* The daemon's answers to the commands of these names; NULL: it was not asked. */
struct doctor_answers {
	const json_t *about; /* this host, rails and peers as only the daemon knows them */
	const json_t *rails, *peers, *paths;
};

/* The first reading: makes rails, peers and paths. */
void doctor_daemon_read(struct doctor_facts *facts, const struct doctor_answers *answers);
/* The second: counters and clocks of those that are still there. */
void doctor_daemon_read_again(struct doctor_facts *facts, const struct doctor_answers *answers);

#endif
