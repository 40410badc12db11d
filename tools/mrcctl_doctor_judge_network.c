/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_judge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

/* ---- MTU ---- */

void doctor_judge_mtu_peer(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES];

		doctor_subject_path(facts, path, subject);
		if (!path->about.is_known)
			doctor_unchecked(report, subject, "the peer has not told about its end");
		else if (path->about.mtu <= 0 || rail->mtu == DOCTOR_UNKNOWN)
			doctor_unchecked(report, subject, "the MTU of the %s is not known",
					 path->about.mtu <= 0 ? "peer's end" : "rail");
		else if (path->about.mtu != rail->mtu)
			doctor_found(report, subject, "ip link set dev INTERFACE mtu BYTES",
				     "%" PRId64 " here, %" PRId64 " at the peer's rail %s",
				     rail->mtu, path->about.mtu, path->about.rail);
	}
}

void doctor_judge_mtu_path(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES], command[160];

		doctor_subject_path(facts, path, subject);
		if (!rail->has_carrier)
			continue; /* said already */
		if (path->answers_small == DOCTOR_NOT_ASKED) {
			doctor_unchecked(report, subject, "%s",
					 path->probe_why[0] != '\0' ? path->probe_why
								    : "not probed");
		} else if (path->answers_small == DOCTOR_NO) {
			doctor_unchecked(report, subject, "%s answers no ping on this rail",
					 path->address);
		} else if (path->answers_full == DOCTOR_NO) {
			snprintf(command, sizeof(command), "ping -M do -s %" PRId64 " -I %s %s",
				 path->probe_mtu - (path->family == AF_INET6 ? 48 : 28),
				 rail->interface, path->address);
			doctor_found(report, subject, command,
				     "%s answers short pings, and none of %" PRId64
				     " bytes with don't-fragment",
				     path->address, path->probe_mtu);
		}
	}
}

/* ---- cables ---- */

/* Does the address of `path` answer on rail `index`, and by whom? */
static bool doctor_answers_on(const struct doctor_path *path, size_t index)
{
	return path->arp[index] == DOCTOR_YES;
}

/* This peer's path over rail `rail`, or NULL. */
static const struct doctor_path *doctor_path_over(const struct doctor_facts *facts, size_t peer,
						  size_t rail)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		if (facts->paths[i].peer == peer && facts->paths[i].rail == rail)
			return &facts->paths[i];
	}
	return NULL;
}

static bool doctor_peer_has_rail(const struct doctor_facts *facts, size_t peer, const char *name)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		if (facts->paths[i].peer == peer && facts->paths[i].about.is_known &&
		    strcmp(facts->paths[i].about.rail, name) == 0)
			return true;
	}
	return false;
}

/*
 * By ARP: its own address is silent on this rail, and that of another path
 * answers there. By names: the peer calls the other end like another rail of
 * ours, and has one called like this.
 */
void doctor_judge_crosswise(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES];

		doctor_subject_path(facts, path, subject);
		if (path->arp[path->rail] == DOCTOR_NOT_ASKED && rail->has_carrier)
			doctor_unchecked(report, subject, "%s",
					 path->arp_why[0] != '\0' ? path->arp_why : "not probed");
		for (size_t n = 0; n < facts->path_count; n++) {
			const struct doctor_path *other = &facts->paths[n];

			if (other->peer != path->peer || other->rail == path->rail ||
			    path->arp[path->rail] != DOCTOR_NO ||
			    !doctor_answers_on(other, path->rail))
				continue;
			doctor_found(report, subject, NULL,
				     "%s does not answer on this rail, and %s, which is to be "
				     "reached by rail %s, does",
				     path->address, other->address, facts->rails[other->rail].name);
		}
		if (path->about.is_known && strcmp(path->about.rail, rail->name) != 0 &&
		    doctor_facts_rail_find(facts, path->about.rail) != SIZE_MAX &&
		    doctor_peer_has_rail(facts, path->peer, rail->name))
			doctor_found(report, subject, NULL,
				     "it reaches what the peer calls rail %s, and the peer's rail "
				     "%s is reached by another",
				     path->about.rail, rail->name);
	}
}

/* Who has `address` on rail i: the interface that has it on its own rail as well, and not the one of rail i. */
static bool doctor_is_one_network(const struct doctor_path *mine, const struct doctor_path *other)
{
	return doctor_answers_on(other, mine->rail) && doctor_answers_on(mine, mine->rail) &&
	       doctor_same_mac(&other->arp_mac[mine->rail], &other->arp_mac[other->rail]) &&
	       !doctor_same_mac(&other->arp_mac[mine->rail], &mine->arp_mac[mine->rail]);
}

static bool doctor_share_chassis(const struct doctor_rail *a, const struct doctor_rail *b,
				 const char **chassis_out)
{
	for (size_t i = 0; i < a->chassis_count; i++) {
		for (size_t n = 0; n < b->chassis_count; n++) {
			if (strcmp(a->chassis[i], b->chassis[n]) == 0) {
				*chassis_out = a->chassis[i];
				return true;
			}
		}
	}
	return false;
}

void doctor_judge_one_network(const struct doctor_facts *facts, struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES];

	for (size_t i = 0; i < facts->path_count; i++) {
		for (size_t n = 0; n < i; n++) {
			const struct doctor_path *a = &facts->paths[n], *b = &facts->paths[i];

			if (a->peer != b->peer || a->rail == b->rail ||
			    !(doctor_is_one_network(a, b) || doctor_is_one_network(b, a)))
				continue;
			doctor_found(report,
				     doctor_subject_rails(&facts->rails[a->rail],
							  &facts->rails[b->rail], subject),
				     NULL, "both reach the same interface of %s",
				     facts->peers[a->peer].name);
		}
	}
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];

		for (size_t n = 0; n < i; n++) {
			const char *chassis;

			if (doctor_share_chassis(&facts->rails[n], rail, &chassis))
				doctor_found(report,
					     doctor_subject_rails(&facts->rails[n], rail, subject),
					     NULL, "both are cabled to the switch %s (LLDP)",
					     chassis);
		}
		if (rail->chassis_count == 0 && rail->has_carrier && facts->rail_count > 1)
			doctor_unchecked(report, doctor_subject_rail(rail, subject),
					 "switch by LLDP: %s",
					 rail->lldp_why[0] != '\0' ? rail->lldp_why
								   : "none was heard");
	}
}

/* The interface below it, or itself. */
static const char *doctor_lowest(const struct doctor_rail *rail)
{
	return rail->lower[0] != '\0' ? rail->lower : rail->interface;
}

void doctor_judge_shared_device(const struct doctor_facts *facts, struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES];

	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *b = &facts->rails[i];

		if (!b->is_read)
			doctor_unchecked(report, doctor_subject_rail(b, subject),
					 "its interface cannot be read");
		for (size_t n = 0; n < i; n++) {
			const struct doctor_rail *a = &facts->rails[n];

			if (!a->is_read || !b->is_read)
				continue;
			doctor_subject_rails(a, b, subject);
			if (strcmp(doctor_lowest(a), doctor_lowest(b)) == 0)
				doctor_found(report, subject, "ip -d link",
					     "both go by the interface %s", doctor_lowest(a));
			else if (a->bond[0] != '\0' && strcmp(a->bond, b->bond) == 0)
				doctor_found(report, subject, "ip -d link",
					     "both are ports of %s on this host", a->bond);
		}
	}
}

/* Of "0000:3b:00.1" the card: all before the function. */
static size_t doctor_card_len(const char *pci)
{
	const char *dot = strrchr(pci, '.');

	return dot != NULL ? (size_t)(dot - pci) : 0;
}

void doctor_judge_shared_card(const struct doctor_facts *facts, struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES];

	for (size_t i = 0; i < facts->rail_count; i++) {
		for (size_t n = 0; n < i; n++) {
			const struct doctor_rail *a = &facts->rails[n], *b = &facts->rails[i];
			size_t len = doctor_card_len(a->pci);

			if (len == 0 || len != doctor_card_len(b->pci) ||
			    strncmp(a->pci, b->pci, len) != 0)
				continue;
			doctor_found(report, doctor_subject_rails(a, b, subject), NULL,
				     "both are functions of the card at %.*s", (int)len, a->pci);
		}
	}
}

/* ---- routes ---- */

void doctor_judge_route(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES], command[160];

		doctor_subject_path(facts, path, subject);
		if (!rail->has_carrier)
			continue;
		if (path->route_asked == DOCTOR_NOT_ASKED) {
			doctor_unchecked(report, subject, "%s",
					 path->family == 0 ? "its address is a name"
							   : "the kernel cannot be asked");
			continue;
		}
		snprintf(command, sizeof(command), "ip route get %s from %s", path->address,
			 rail->address);
		if (path->route_error != 0)
			doctor_found(report, subject, command, "there is no route to %s: %s",
				     path->address, strerror(path->route_error));
		else if (strcmp(path->route_interface, rail->interface) != 0)
			doctor_found(report, subject, command, "%s is reached by %s, not by %s%s",
				     path->address, path->route_interface, rail->interface,
				     facts->may_bind == 1
					     ? " (TCP is bound to the interface and is not misled)"
					     : "");
	}
}

void doctor_judge_rp_filter(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *path = &facts->paths[i];
		const struct doctor_rail *rail = &facts->rails[path->rail];
		char subject[DOCTOR_SUBJECT_BYTES], command[96];

		if (!rail->has_carrier || path->family == AF_INET6)
			continue; /* IPv6 has no rp_filter */
		doctor_subject_path(facts, path, subject);
		snprintf(command, sizeof(command), "sysctl -w net.ipv4.conf.%s.rp_filter=2",
			 rail->interface);
		if (path->is_let_in == DOCTOR_NOT_ASKED)
			doctor_unchecked(report, subject, "%s",
					 path->family == 0 ? "its address is a name"
							   : "the kernel cannot be asked");
		else if (path->is_let_in == DOCTOR_NO)
			doctor_found(report, subject, command,
				     "packets of %s that arrive on %s are dropped (rp_filter is "
				     "%" PRId64 "%s)",
				     path->address, rail->interface, rail->rp_filter,
				     rail->rp_filter == 0 ? ": it takes them for martians" : "");
	}
}

/* Do two IPv4 addresses lie in one subnet, of the shorter prefix? */
static bool doctor_same_subnet(const struct doctor_rail *a, const struct doctor_rail *b)
{
	int64_t bits = a->prefix_bits < b->prefix_bits ? a->prefix_bits : b->prefix_bits;
	struct in_addr left, right;

	if (bits <= 0 || bits > 32 || inet_pton(AF_INET, a->address, &left) != 1 ||
	    inet_pton(AF_INET, b->address, &right) != 1)
		return false;
	return (ntohl(left.s_addr) ^ ntohl(right.s_addr)) >> (32 - bits) == 0;
}

/* On one rail two of the peer's addresses answer from the same card. Told once, with how often it is so. */
static void doctor_judge_arp_of(const struct doctor_facts *facts, size_t peer,
				struct doctor_report *report)
{
	const struct doctor_path *first = NULL, *first_mine = NULL;
	char subject[DOCTOR_SUBJECT_BYTES], more[48] = "";
	size_t count = 0;

	for (size_t i = 0; i < facts->path_count; i++) {
		const struct doctor_path *other = &facts->paths[i];

		for (size_t rail = 0; rail < facts->rail_count && other->peer == peer; rail++) {
			const struct doctor_path *mine = doctor_path_over(facts, peer, rail);

			if (mine == NULL || other->rail == rail || !doctor_answers_on(mine, rail) ||
			    !doctor_answers_on(other, rail) ||
			    !doctor_same_mac(&mine->arp_mac[rail], &other->arp_mac[rail]))
				continue;
			if (count++ > 0)
				continue;
			first = other;
			first_mine = mine;
		}
	}
	if (first == NULL)
		return;
	if (count > 1)
		snprintf(more, sizeof(more), "; so it is in %zu more cases", count - 1);
	snprintf(subject, sizeof(subject), "peer %s", facts->peers[peer].name);
	doctor_found(report, subject,
		     "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
		     "on rail %s one interface there answers for %s and for %s, which is rail %s%s",
		     facts->rails[first_mine->rail].name, first_mine->address, first->address,
		     facts->rails[first->rail].name, more);
}

/* Ours: two rails in one subnet, and arp_ignore lets either answer for both. */
void doctor_judge_arp_flux(const struct doctor_facts *facts, struct doctor_report *report)
{
	char subject[DOCTOR_SUBJECT_BYTES], command[160];

	for (size_t i = 0; i < facts->rail_count; i++) {
		for (size_t n = 0; n < i; n++) {
			const struct doctor_rail *a = &facts->rails[n], *b = &facts->rails[i];

			if (a->arp_ignore != 0 && b->arp_ignore != 0)
				continue;
			if (!doctor_same_subnet(a, b))
				continue;
			snprintf(command, sizeof(command),
				 "sysctl -w net.ipv4.conf.all.arp_ignore=1 "
				 "net.ipv4.conf.all.arp_announce=2");
			doctor_found(report, doctor_subject_rails(a, b, subject), command,
				     "%s and %s are in one subnet, and arp_ignore is 0", a->address,
				     b->address);
		}
		if (facts->rails[i].arp_ignore == DOCTOR_UNKNOWN)
			doctor_unchecked(report, doctor_subject_rail(&facts->rails[i], subject),
					 "arp_ignore cannot be read");
	}
	for (size_t peer = 0; peer < facts->peer_count; peer++)
		doctor_judge_arp_of(facts, peer, report);
}

/* ---- addresses ---- */

void doctor_judge_address(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		char subject[DOCTOR_SUBJECT_BYTES], command[64];

		doctor_subject_rail(rail, subject);
		snprintf(command, sizeof(command), "ip address show dev %s", rail->interface);
		if (rail->address_is_here == DOCTOR_UNKNOWN)
			doctor_unchecked(report, subject, "its addresses cannot be read");
		else if (rail->address_is_here == 0 && rail->address[0] != '\0')
			doctor_found(report, subject, command, "%s is not one of its addresses",
				     rail->address);
		else if (rail->address_is_here == 0)
			doctor_found(report, subject, command, "it has no address");
	}
}

void doctor_judge_ipoib(const struct doctor_facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		const struct doctor_rail *rail = &facts->rails[i];
		bool is_tcp = strcmp(rail->type, "tcp") == 0;
		char subject[DOCTOR_SUBJECT_BYTES];

		for (size_t n = 0; n < facts->path_count; n++)
			is_tcp = is_tcp || (facts->paths[n].rail == i &&
					    strcmp(facts->paths[n].link, "tcp") == 0);
		if (rail->hardware != ARPHRD_INFINIBAND || !is_tcp)
			continue;
		doctor_found(report, doctor_subject_rail(rail, subject), "mrcctl rails",
			     "its interface is IPoIB and its links are tcp");
	}
}
