/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "mrcctl_ask.h"
#include "mrcctl_doctor_daemon.h"
#include "mrcctl_doctor_probe.h"
#include "mrcctl_doctor_show.h"
#include "mrcctl_doctor_sys.h"
#include "mrcctl_table.h"

bool mrcctl_doctor_seconds_take(const char *text, unsigned *seconds_out)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    value > MRCCTL_DOCTOR_SECONDS_MAX)
		return false;
	*seconds_out = (unsigned)value;
	return true;
}

/* The four answers of one reading. Ours to release. */
enum { DOCTOR_ABOUT, DOCTOR_RAILS, DOCTOR_PEERS, DOCTOR_PATHS, DOCTOR_ANSWER_COUNT };

static void doctor_release(json_t *answers[DOCTOR_ANSWER_COUNT])
{
	for (int i = 0; i < DOCTOR_ANSWER_COUNT; i++) {
		json_decref(answers[i]);
		answers[i] = NULL;
	}
}

/* 0, or the exit status; then nothing is to be released. */
static int doctor_ask(const char *socket, json_t *answers[DOCTOR_ANSWER_COUNT],
		      struct doctor_answers *out)
{
	static const char *const commands[DOCTOR_ANSWER_COUNT] = {"about", "rails", "peers",
								  "paths"};

	for (int i = 0; i < DOCTOR_ANSWER_COUNT; i++)
		answers[i] = NULL;
	for (int i = 0; i < DOCTOR_ANSWER_COUNT; i++) {
		json_t *question = json_pack("{s:s}", "command", commands[i]);
		int r = mrcctl_ask(socket, question, &answers[i]);

		json_decref(question);
		if (r != 0) {
			answers[i] = NULL;
			doctor_release(answers);
			return r;
		}
	}
	*out = (struct doctor_answers){
		.about = answers[DOCTOR_ABOUT],
		.rails = answers[DOCTOR_RAILS],
		.peers = answers[DOCTOR_PEERS],
		.paths = answers[DOCTOR_PATHS],
	};
	return 0;
}

/* Interfaces, routes and probes of another network namespace would say nothing of the daemon's rails. */
static bool doctor_is_elsewhere(const struct doctor_facts *facts)
{
	struct stat own, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/ns/net", facts->pid);
	return facts->pid > 0 && stat("/proc/self/ns/net", &own) == 0 && stat(path, &theirs) == 0 &&
	       (own.st_ino != theirs.st_ino || own.st_dev != theirs.st_dev);
}

static void doctor_wait_until(uint64_t at_ns)
{
	const struct timespec at = {
		.tv_sec = (time_t)(at_ns / 1000000000U),
		.tv_nsec = (long)(at_ns % 1000000000U),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Between the readings there is time to probe and to listen for switches. */
static int doctor_gather(const char *socket, unsigned seconds, struct doctor_facts *facts)
{
	json_t *answers[DOCTOR_ANSWER_COUNT];
	struct doctor_answers reading;
	struct doctor_lldp lldp;
	uint64_t begin_ns;
	int r = doctor_ask(socket, answers, &reading);

	if (r != 0)
		return r;
	doctor_daemon_read(facts, &reading);
	doctor_release(answers);
	if (doctor_is_elsewhere(facts)) {
		fprintf(stderr, "mrcctl: this is another network namespace than mrcd's: run it "
				"there (nsenter, ip netns exec)\n");
		return MRCCTL_EXIT_REFUSED;
	}
	doctor_sys_read(facts, "");
	doctor_sys_count(facts, "", false);
	begin_ns = doctor_clock_ns();
	doctor_lldp_open(&lldp, facts);
	doctor_probe(facts);
	if (seconds > 0) {
		doctor_wait_until(begin_ns + seconds * 1000000000ULL);
		facts->seconds = (double)(doctor_clock_ns() - begin_ns) / 1e9;
		doctor_sys_count(facts, "", true);
		r = doctor_ask(socket, answers, &reading);
		if (r == 0) {
			doctor_daemon_read_again(facts, &reading);
			doctor_release(answers);
		}
	}
	doctor_lldp_close(&lldp, facts);
	return r;
}

static int doctor_print(const struct doctor_facts *facts, const struct doctor_report *report,
			const struct mrcctl_doctor_options *options)
{
	if (options->is_json) {
		json_t *json = doctor_json(facts, report);

		json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(json);
	} else {
		doctor_show(facts, report, options->is_verbose, mrcctl_table_wants_colour(stdout),
			    stdout);
	}
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
		return MRCCTL_EXIT_REFUSED;
	}
	return doctor_is_healthy(report) ? EXIT_SUCCESS : MRCCTL_EXIT_REFUSED;
}

int mrcctl_doctor(const char *socket, const struct mrcctl_doctor_options *options)
{
	struct doctor_facts *facts = malloc(sizeof(*facts));
	struct doctor_report report;
	int r;

	if (facts == NULL)
		abort();
	doctor_facts_init(facts);
	r = doctor_gather(socket, options->seconds, facts);
	if (r == 0) {
		doctor_judge(facts, &report);
		r = doctor_print(facts, &report, options);
		doctor_report_fini(&report);
	}
	doctor_facts_fini(facts);
	free(facts);
	return r;
}
