/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void doctor_facts_init(struct doctor_facts *facts)
{
	*facts = (struct doctor_facts){
		.pid = DOCTOR_UNKNOWN,
		.draining_ns = DOCTOR_UNKNOWN,
		.is_conf_former = DOCTOR_UNKNOWN,
		.memlock_bytes = DOCTOR_UNKNOWN,
		.memlock_need_bytes = DOCTOR_UNKNOWN,
		.may_lock = DOCTOR_UNKNOWN,
		.may_bind = DOCTOR_UNKNOWN,
		.huge_page_bytes = DOCTOR_UNKNOWN,
		.huge_pages_free = DOCTOR_UNKNOWN,
		.huge_pages_all = DOCTOR_UNKNOWN,
		.arena_bytes = DOCTOR_UNKNOWN,
	};
}

void doctor_facts_fini(struct doctor_facts *facts)
{
	free(facts->peers);
	free(facts->paths);
	facts->peers = NULL;
	facts->paths = NULL;
	facts->peer_count = facts->path_count = facts->rail_count = 0;
}

struct doctor_rail *doctor_facts_rail_add(struct doctor_facts *facts)
{
	struct doctor_rail *rail;

	if (facts->rail_count == DOCTOR_RAILS_MAX)
		return NULL;
	rail = &facts->rails[facts->rail_count++];
	*rail = (struct doctor_rail){
		.port = DOCTOR_UNKNOWN,
		.speed_configured_bits_per_s = DOCTOR_UNKNOWN,
		.receive_bytes = DOCTOR_UNKNOWN,
		.ifindex = DOCTOR_UNKNOWN,
		.is_up = DOCTOR_UNKNOWN,
		.mtu = DOCTOR_UNKNOWN,
		.speed_bits_per_s = DOCTOR_UNKNOWN,
		.numa_node = DOCTOR_UNKNOWN,
		.hardware = DOCTOR_UNKNOWN,
		.pci_width = DOCTOR_UNKNOWN,
		.pci_width_max = DOCTOR_UNKNOWN,
		.arp_ignore = DOCTOR_UNKNOWN,
		.rp_filter = DOCTOR_UNKNOWN,
		.address_is_here = DOCTOR_UNKNOWN,
		.prefix_bits = DOCTOR_UNKNOWN,
		.speed_max_bits_per_s = DOCTOR_UNKNOWN,
		.pfc_priorities = DOCTOR_UNKNOWN,
		.has_pause = DOCTOR_UNKNOWN,
		.has_ecn = DOCTOR_UNKNOWN,
		.rdma = {.lid = DOCTOR_UNKNOWN,
			 .sm_lid = DOCTOR_UNKNOWN,
			 .gid_index = DOCTOR_UNKNOWN,
			 .locked_bytes = DOCTOR_UNKNOWN,
			 .tos = DOCTOR_UNKNOWN},
	};
	return rail;
}

/* One more of `size` at the end of an array, which grows by doubling. */
static void *doctor_array_add(void **array, size_t *count, size_t size)
{
	if ((*count & (*count - 1)) == 0) { /* 0 or a power of two: full */
		void *more = reallocarray(*array, *count == 0 ? 1 : *count * 2, size);

		if (more == NULL)
			abort();
		*array = more;
	}
	return (char *)*array + (*count)++ * size;
}

struct doctor_peer *doctor_facts_peer_add(struct doctor_facts *facts)
{
	void *peers = facts->peers;
	struct doctor_peer *peer = doctor_array_add(&peers, &facts->peer_count, sizeof(*peer));

	facts->peers = peers;
	*peer = (struct doctor_peer){0};
	return peer;
}

struct doctor_path *doctor_facts_path_add(struct doctor_facts *facts)
{
	void *paths = facts->paths;
	struct doctor_path *path = doctor_array_add(&paths, &facts->path_count, sizeof(*path));

	facts->paths = paths;
	*path = (struct doctor_path){
		.about = {.mtu = DOCTOR_UNKNOWN, .speed_bits_per_s = DOCTOR_UNKNOWN},
		.probe_mtu = DOCTOR_UNKNOWN,
	};
	return path;
}

size_t doctor_facts_rail_find(const struct doctor_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		if (strcmp(facts->rails[i].name, name) == 0)
			return i;
	}
	return SIZE_MAX;
}

size_t doctor_facts_peer_find(const struct doctor_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->peer_count; i++) {
		if (strcmp(facts->peers[i].name, name) == 0)
			return i;
	}
	return SIZE_MAX;
}

bool doctor_is_roce(const struct doctor_rail *rail)
{
	return rail->rdma.device[0] != '\0' && strcmp(rail->rdma.link_layer, "Ethernet") == 0;
}

bool doctor_is_infiniband(const struct doctor_rail *rail)
{
	return rail->rdma.device[0] != '\0' && strcmp(rail->rdma.link_layer, "InfiniBand") == 0;
}

bool doctor_has_device(const struct doctor_rail *rail)
{
	return rail->rdma.device[0] != '\0' || rail->rdma.is_found;
}

void doctor_counter_note(struct doctor_counter *counters, size_t counters_max, size_t *count,
			 const char *name, uint64_t value, bool is_second)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp(counters[i].name, name) != 0)
			continue;
		if (is_second)
			counters[i].second = value;
		return;
	}
	if (is_second || *count == counters_max)
		return;
	counters[*count] = (struct doctor_counter){.first = value, .second = value};
	doctor_text_set(counters[*count].name, sizeof(counters[*count].name), name);
	(*count)++;
}

void doctor_text_set(char *text, size_t text_bytes, const char *from)
{
	snprintf(text, text_bytes, "%s", from);
}
