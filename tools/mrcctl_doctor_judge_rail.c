/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcctl_unit.h"

const char *doctor_subject_rail(const struct doctor_rail *rail, char text[DOCTOR_SUBJECT_BYTES])
{
	if (rail->interface[0] != '\0')
		snprintf(text, DOCTOR_SUBJECT_BYTES, "rail %s (%s)", rail->name, rail->interface);
	else
		snprintf(text, DOCTOR_SUBJECT_BYTES, "rail %s", rail->name);
	return text;
}

const char *doctor_subject_path(const struct doctor_facts *facts, const struct doctor_path *path,
				char text[DOCTOR_SUBJECT_BYTES])
{
	snprintf(text, DOCTOR_SUBJECT_BYTES, "rail %s to %s", facts->rails[path->rail].name,
		 facts->peers[path->peer].name);
	return text;
}

const char *doctor_subject_rails(const struct doctor_rail *a, const struct doctor_rail *b,
				 char text[DOCTOR_SUBJECT_BYTES])
{
	snprintf(text, DOCTOR_SUBJECT_BYTES, "rails %s and %s", a->name, b->name);
	return text;
}

bool doctor_same_mac(const struct doctor_mac *a, const struct doctor_mac *b)
{
	return a->is_known && b->is_known && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* ---- in service or not ---- */

void doctor_judge_carrier(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[64];

		if (rail->has_carrier || rail->is_drained || rail->drill[0] != '\0')
			continue;
		snprintf(command, sizeof(command),
			 rail->is_up == 0 ? "ip link set dev %s up" : "ip -s link show dev %s",
			 rail->interface);
		doctor_found(report, doctor_subject_rail(rail, subject),
			     rail->interface[0] != '\0' ? command : NULL, "no carrier%s",
			     rail->is_up == 0 ? ": its interface was taken down on this host"
			     : rail->is_read || rail->interface[0] == '\0'
				     ? ""
				     : ": there is no interface of that name");
	}
}

void doctor_judge_driver(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], span[MRCCTL_UNIT_BYTES];

		if (!doctor_is_driver_silent(rail))
			continue;
		doctor_found(report, doctor_subject_rail(rail, subject), "dmesg | tail -n 50",
			     "it has owed the daemon an answer for %s",
			     mrcctl_unit_span((uint64_t)rail->driver_silent_ns, span));
	}
}

/* And nobody wants it to be. */
static bool doctor_is_down(const struct doctor_path *path)
{
	return strcmp(path->state, "GOOD") != 0 && strcmp(path->state, "DENIED") != 0 &&
	       !path->is_drilled;
}

/* "; the last reason is carrier" */
static const char *doctor_last_reason(const struct doctor_path *path, char text[64])
{
	bool has_any = path->reason[0] != '\0' && strcmp(path->reason, "none") != 0;

	snprintf(text, 64, "%s%s", has_any ? "; the last reason is " : "",
		 has_any ? path->reason : "");
	return text;
}

/* The paths of one peer that are not in service, but for those that are drained. */
struct peer_paths {
	size_t out;
	const struct doctor_path *latest; /* that has been so for the least time */
	bool has_good;
	bool has_down; /* one that nobody wants to be out */
};

/* Of each peer, by its index. The caller's to free. */
static struct peer_paths *peer_paths_new(const struct doctor_facts *facts)
{
	struct peer_paths *peers = calloc(facts->peer_count + 1, sizeof(*peers));

	if (peers == NULL)
		abort();
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		struct peer_paths *peer = &peers[path->peer];

		peer->has_good |= strcmp(path->state, "GOOD") == 0;
		peer->has_down |= doctor_is_down(path);
		if (strcmp(path->state, "GOOD") == 0 || strcmp(path->state, "DENIED") == 0)
			continue;
		peer->out++;
		if (peer->latest == NULL || path->state_age_ns < peer->latest->state_age_ns)
			peer->latest = path;
	}
	return peers;
}

static bool peer_is_down(const struct peer_paths *peer)
{
	return peer->has_down && !peer->has_good;
}

void doctor_judge_peer_down(const struct doctor_facts *facts, struct doctor_report *report)
{
	struct peer_paths *peers = peer_paths_new(facts);

	for (size_t i = 0; i < facts->peer_count; i++) {
		char subject[DOCTOR_SUBJECT_BYTES], span[MRCCTL_UNIT_BYTES], reason[64];

		if (!peer_is_down(&peers[i]))
			continue;
		snprintf(subject, sizeof(subject), "peer %s", facts->peers[i].name);
		doctor_found(report, subject, "journalctl -u mrcd | tail -n 50",
			     "none of its %zu path%s is in service, for %s%s", peers[i].out,
			     peers[i].out == 1 ? "" : "s",
			     mrcctl_unit_span(peers[i].latest->state_age_ns, span),
			     doctor_last_reason(peers[i].latest, reason));
	}
	free(peers);
}

/* Those that have a cause of their own: not a peer that is away, and not a rail without a carrier. */
void doctor_judge_path_down(const struct doctor_facts *facts, struct doctor_report *report)
{
	struct peer_paths *peers = peer_paths_new(facts);

	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		char subject[DOCTOR_SUBJECT_BYTES], span[MRCCTL_UNIT_BYTES], reason[64];

		if (!doctor_is_down(path) || !facts->rails[path->rail].has_carrier ||
		    peer_is_down(&peers[path->peer]))
			continue;
		doctor_found(report, doctor_subject_path(facts, path, subject),
			     "journalctl -u mrcd | tail -n 50", "%s for %s%s", path->state,
			     mrcctl_unit_span(path->state_age_ns, span),
			     doctor_last_reason(path, reason));
	}
	free(peers);
}

void doctor_judge_drained(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[128];

		if (!rail->is_drained)
			continue;
		snprintf(command, sizeof(command), "mrcctl undrain %s", rail->name);
		doctor_found(report, doctor_subject_rail(rail, subject), command, "drained");
	}
}

void doctor_judge_drill(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES];
		bool is_peer_s = strcmp(rail->drill, "peer") == 0;

		if (rail->drill[0] == '\0')
			continue;
		doctor_found(report, doctor_subject_rail(rail, subject), "mrcctl events",
			     "in a drill%s%s", is_peer_s ? " of a peer's" : ": ",
			     is_peer_s ? "" : rail->drill);
	}
}

void doctor_judge_host_drained(const struct doctor_facts *facts, struct doctor_report *report)
{
	char span[MRCCTL_UNIT_BYTES];

	if (facts->draining_ns == DOCTOR_UNKNOWN)
		doctor_unchecked(report, "mrcd", "the daemon does not say whether it is");
	else if (facts->draining_ns > 0)
		doctor_found(report, "mrcd", "mrcctl undrain --host", "draining for %s",
			     mrcctl_unit_span((uint64_t)facts->draining_ns, span));
}

void doctor_judge_peer_drained(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->peer_count; i++) {
		char subject[DOCTOR_SUBJECT_BYTES];

		if (!facts->peers[i].is_draining)
			continue;
		snprintf(subject, sizeof(subject), "peer %s", facts->peers[i].name);
		doctor_found(report, subject, NULL, "it says that it is being drained");
	}
}

void doctor_judge_degraded(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		char subject[DOCTOR_SUBJECT_BYTES];

		if (path->health[0] == '\0' || strcmp(path->health, "good") == 0)
			continue;
		doctor_found(report, doctor_subject_path(facts, path, subject), "mrcctl paths",
			     "the daemon calls it %s%s%s", path->health,
			     path->health_why[0] != '\0' ? ": " : "", path->health_why);
	}
}

/* ---- alike or not ---- */

/* One number of each rail, and how it is shown. */
typedef int64_t doctor_number_of(const struct doctor_rail *rail);

static void doctor_number_speed(int64_t value, char text[MRCCTL_UNIT_BYTES])
{
	mrcctl_unit_bits_per_s((uint64_t)value, text);
}

static void doctor_number_plain(int64_t value, char text[MRCCTL_UNIT_BYTES])
{
	snprintf(text, MRCCTL_UNIT_BYTES, "%" PRId64, value);
}

/* "r0 25 Gb/s, r1 10 Gb/s" when they are not all the same. */
static bool doctor_differ(const struct doctor_facts *facts, doctor_number_of *number_of,
			  void (*show)(int64_t, char[MRCCTL_UNIT_BYTES]), char *text,
			  size_t text_bytes)
{
	int64_t first = DOCTOR_UNKNOWN;
	bool is_differing = false;
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < facts->rail_count; i++) {
		int64_t value = number_of(&facts->rails[i]);
		char number[MRCCTL_UNIT_BYTES];

		if (value == DOCTOR_UNKNOWN)
			continue;
		if (first == DOCTOR_UNKNOWN)
			first = value;
		is_differing = is_differing || value != first;
		show(value, number);
		if (at < text_bytes)
			at += (size_t)snprintf(text + at, text_bytes - at, "%s%s %s",
					       at > 0 ? ", " : "", facts->rails[i].name, number);
	}
	return is_differing;
}

/* Those that nobody could tell, so that nothing passes in silence. */
static void doctor_unknown(const struct doctor_facts *facts, struct doctor_report *report,
			   doctor_number_of *number_of, const char *why)
{
	for (size_t i = 0; i < facts->rail_count && facts->rail_count > 1; i++) {
		char subject[DOCTOR_SUBJECT_BYTES];

		if (number_of(&facts->rails[i]) == DOCTOR_UNKNOWN)
			doctor_unchecked(report, doctor_subject_rail(&facts->rails[i], subject),
					 "%s", why);
	}
}

/* Without a carrier an interface has no speed; one whose speed is configured may differ. */
static int64_t doctor_speed_of(const struct doctor_rail *rail)
{
	return rail->has_carrier && rail->speed_configured_bits_per_s <= 0 ? rail->speed_bits_per_s
									   : DOCTOR_UNKNOWN;
}

void doctor_judge_speed(const struct doctor_facts *facts, struct doctor_report *report)
{
	char seen[300];

	if (doctor_differ(facts, doctor_speed_of, doctor_number_speed, seen, sizeof(seen)))
		doctor_found(report, "all rails", NULL, "%s", seen);
	for (size_t i = 0; i < facts->rail_count && facts->rail_count > 1; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES];

		if (rail->has_carrier && rail->speed_bits_per_s == DOCTOR_UNKNOWN &&
		    rail->speed_configured_bits_per_s <= 0)
			doctor_unchecked(report, doctor_subject_rail(rail, subject),
					 "the interface does not say its speed");
	}
}

void doctor_judge_slow(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[64], now[MRCCTL_UNIT_BYTES],
			could[MRCCTL_UNIT_BYTES];
		int64_t speed = rail->speed_bits_per_s;
		bool is_configured = rail->speed_configured_bits_per_s > 0;

		doctor_subject_rail(rail, subject);
		if (!rail->has_carrier)
			continue;
		if (speed == DOCTOR_UNKNOWN ||
		    (!is_configured && rail->speed_max_bits_per_s <= 0)) {
			doctor_unchecked(report, subject, "the interface does not say what it %s",
					 speed == DOCTOR_UNKNOWN ? "runs at" : "could run at");
			continue;
		}
		snprintf(command, sizeof(command), "ethtool %s", rail->interface);
		mrcctl_unit_bits_per_s((uint64_t)speed, now);
		if (is_configured && speed < rail->speed_configured_bits_per_s) {
			mrcctl_unit_bits_per_s((uint64_t)rail->speed_configured_bits_per_s, could);
			doctor_found(report, subject, command,
				     "runs at %s; the configuration says %s", now, could);
		} else if (!is_configured && speed < rail->speed_max_bits_per_s) {
			mrcctl_unit_bits_per_s((uint64_t)rail->speed_max_bits_per_s, could);
			doctor_found(report, subject, command, "runs at %s; the card can do %s",
				     now, could);
		}
	}
}

static int64_t doctor_mtu_of(const struct doctor_rail *rail)
{
	return rail->mtu;
}

void doctor_judge_rail_mtu(const struct doctor_facts *facts, struct doctor_report *report)
{
	char seen[300];

	if (doctor_differ(facts, doctor_mtu_of, doctor_number_plain, seen, sizeof(seen)))
		doctor_found(report, "all rails", "ip link set dev INTERFACE mtu BYTES", "%s",
			     seen);
	doctor_unknown(facts, report, doctor_mtu_of, "its interface cannot be read");
}

static int64_t doctor_numa_of(const struct doctor_rail *rail)
{
	return rail->numa_node;
}

void doctor_judge_numa(const struct doctor_facts *facts, struct doctor_report *report)
{
	char seen[300];

	if (doctor_differ(facts, doctor_numa_of, doctor_number_plain, seen, sizeof(seen)))
		doctor_found(report, "all rails", NULL, "nodes: %s", seen);
	doctor_unknown(facts, report, doctor_numa_of,
		       "the kernel knows no NUMA node of its interface");
}

/* As people call it: the kernel says "Ethernet" of RoCE. */
static const char *doctor_link_layer(const struct doctor_rail *rail)
{
	return doctor_is_roce(rail) ? "RoCE" : rail->rdma.link_layer;
}

/* Paths of one peer over rails of type auto whose links differ; and devices whose queue pairs do. */
void doctor_judge_type(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES];

		if (strcmp(rail->type, "auto") != 0 || strcmp(path->link, "tcp") != 0)
			continue;
		for (size_t n = 0; n < facts->path_count; n++) {
			const struct doctor_path *other = &facts->paths[n];

			if (other->peer != path->peer || strcmp(other->link, "verbs") != 0)
				continue;
			doctor_found(
				report, doctor_subject_path(facts, path, subject), "mrcctl rails",
				"its link is tcp, that of rail %s to the same peer is verbs%s%s",
				facts->rails[other->rail].name,
				rail->rdma.missing[0] != '\0' ? "; no device here: " : "",
				rail->rdma.missing);
			break;
		}
	}
	for (size_t i = 0; i < facts->rail_count; i++) {
		for (size_t n = 0; n < i; n++) {
			const struct doctor_rail *a = &facts->rails[n], *b = &facts->rails[i];
			char subject[DOCTOR_SUBJECT_BYTES];

			if (a->rdma.device[0] == '\0' || b->rdma.device[0] == '\0' ||
			    strcmp(a->rdma.link_layer, b->rdma.link_layer) == 0)
				continue;
			doctor_found(report, doctor_subject_rails(a, b, subject), "rdma link",
				     "%s and %s", doctor_link_layer(a), doctor_link_layer(b));
		}
	}
}

/* ---- counters ---- */

/*
 * Counters of packets that were sent again, or came twice, out of order or too
 * early. A few of them are no trouble: where a packet is lost, go-back-N sends
 * again what was on its way, some hundred packets at 100 Gb/s, so that one loss
 * in 100000 costs less than a hundredth of the rate; a wire as bad as it may be
 * (1e-12 of the bits) loses one packet of 4 KiB in 30 million; and a slow
 * acknowledgement, as soft-RoCE's on a busy processor, makes one as well. So they
 * want a number, on a quiet port, and a share of what was carried, on a busy one.
 * Timeouts and what ends a queue pair are not among them: each of those is felt.
 */
#define DOCTOR_RESENDS_FEW   5
#define DOCTOR_RESENDS_SHARE 100000U

static bool doctor_is_resend(const char *name)
{
	static const char *const names[] = {
		"out_of_sequence",   "out_of_seq_request",  "rcvd_seq_err",
		"packet_seq_err",    "implied_nak_seq_err", "rnr_nak_retry_err",
		"duplicate_request", "roce_adp_retrans",    "roce_slow_restart",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* By how much it rose, as far as that is worth a word among so many packets. */
static uint64_t doctor_rise(const struct doctor_counter *counter, uint64_t packets)
{
	uint64_t rise = counter->second > counter->first ? counter->second - counter->first : 0;

	if (doctor_is_resend(counter->name) &&
	    (rise < DOCTOR_RESENDS_FEW || rise < packets / DOCTOR_RESENDS_SHARE))
		return 0;
	return rise;
}

static void doctor_rising(const struct doctor_counter *counters, size_t count, uint64_t packets,
			  const char *subject, double seconds, const char *command,
			  struct doctor_report *report)
{
	char seen[300] = "";
	size_t at = 0;

	for (size_t i = 0; i < count && at < sizeof(seen); i++) {
		uint64_t rise = doctor_rise(&counters[i], packets);

		if (rise > 0)
			at += (size_t)snprintf(seen + at, sizeof(seen) - at, "%s%s by %" PRIu64,
					       at > 0 ? ", " : "", counters[i].name, rise);
	}
	if (at > 0)
		doctor_found(report, subject, command, "in %.0f s: %s", seconds, seen);
}

static uint64_t doctor_packets_between(const struct doctor_rdma *rdma)
{
	return rdma->packets[1] > rdma->packets[0] ? rdma->packets[1] - rdma->packets[0] : 0;
}

void doctor_judge_rising(const struct doctor_facts *facts, struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES], command[64];

	if (facts->seconds <= 0) {
		doctor_unchecked(report, "all counters", "they were read once only");
		return;
	}
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];

		snprintf(command, sizeof(command), "ethtool -S %s", rail->interface);
		doctor_rising(rail->counters, rail->counter_count,
			      doctor_packets_between(&rail->rdma),
			      doctor_subject_rail(rail, subject), facts->seconds, command, report);
		if (rail->counter_count == 0)
			doctor_unchecked(report, subject, "its interface has no counters to read");
	}
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];

		doctor_rising(path->counters, path->counter_count, 0,
			      doctor_subject_path(facts, path, subject), facts->seconds,
			      "mrcctl paths", report);
	}
}
