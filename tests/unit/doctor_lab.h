/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_lab - a host that is well, what can be wrong with it, one thing each, and what doctor is to say of it */
#ifndef DOCTOR_LAB_H
#define DOCTOR_LAB_H

#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mrcctl_doctor_facts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct doctor_mac macs[2][2] = {
	{{true, {2, 0, 0, 0, 0, 1}}, {true, {2, 0, 0, 0, 0, 2}}}, /* ours */
	{{true, {2, 0, 0, 0, 1, 1}}, {true, {2, 0, 0, 0, 1, 2}}}, /* the peer's */
};

/* ---- a healthy host: two RoCE rails to one peer ---- */

static void rail_make(struct doctor_facts *facts, int index)
{
	struct doctor_rail *rail = doctor_facts_rail_add(facts);

	snprintf(rail->name, sizeof(rail->name), "r%d", index);
	strcpy(rail->type, "auto");
	snprintf(rail->interface, sizeof(rail->interface), "eth%d", index);
	snprintf(rail->address, sizeof(rail->address), "10.0.%d.1", index);
	rail->port = 7471;
	rail->has_carrier = true;
	rail->speed_configured_bits_per_s = 0;
	rail->receive_bytes = 16 << 20;
	strcpy(rail->driver, "mlx5_core");
	strcpy(rail->firmware, "28.39.1002");
	rail->is_read = true;
	rail->ifindex = 10 + index;
	rail->mtu = 4200;
	rail->speed_bits_per_s = rail->speed_max_bits_per_s = 200000000000;
	rail->numa_node = 0;
	rail->hardware = ARPHRD_ETHER;
	rail->mac = macs[0][index];
	snprintf(rail->pci, sizeof(rail->pci), "0000:%02x:00.0", 0x3b + index);
	strcpy(rail->pci_speed, "16.0 GT/s PCIe");
	strcpy(rail->pci_speed_max, "16.0 GT/s PCIe");
	rail->pci_width = rail->pci_width_max = 16;
	rail->arp_ignore = 1;
	rail->rp_filter = 0;
	rail->address_is_here = 1;
	rail->prefix_bits = 24;
	rail->pfc_priorities = 8;
	snprintf(rail->rdma.device, sizeof(rail->rdma.device), "mlx5_%d", index);
	rail->rdma.port = 1;
	strcpy(rail->rdma.link_layer, "Ethernet");
	strcpy(rail->rdma.state, "4: ACTIVE");
	strcpy(rail->rdma.phys_state, "5: LinkUp");
	strcpy(rail->rdma.rate, "200 Gb/sec (4X HDR)");
	rail->rdma.lid = rail->rdma.sm_lid = 0;
	rail->rdma.gid_index = 3;
	strcpy(rail->rdma.gid_type, "RoCE v2");
	snprintf(rail->rdma.gid_interface, sizeof(rail->rdma.gid_interface), "eth%d", index);
	rail->rdma.tos = 106;
	snprintf(rail->chassis[0], sizeof(rail->chassis[0]), "sw%d", index);
	rail->chassis_count = 1;
	doctor_counter_note(rail->counters, DOCTOR_COUNTERS_MAX, &rail->counter_count, "rx_errors",
			    5, false);
}

static void path_make(struct doctor_facts *facts, int index)
{
	struct doctor_path *path = doctor_facts_path_add(facts);

	path->peer = 0;
	path->rail = (size_t)index;
	snprintf(path->address, sizeof(path->address), "10.0.%d.2", index);
	strcpy(path->state, "GOOD");
	strcpy(path->reason, "none");
	strcpy(path->link, "verbs");
	strcpy(path->health, "good");
	path->is_connected = true;
	path->about.is_known = true;
	snprintf(path->about.rail, sizeof(path->about.rail), "r%d", index);
	strcpy(path->about.kind, "RoCE");
	path->about.mtu = 4200;
	path->about.speed_bits_per_s = 200000000000;
	path->about.mac = macs[1][index];
	strcpy(path->about.version, "0.1.0");
	strcpy(path->about.kernel, "6.1.0-57-amd64");
	strcpy(path->about.rdma_core, "44.0");
	strcpy(path->about.driver, "mlx5_core");
	strcpy(path->about.firmware, "28.39.1002");
	path->family = AF_INET;
	snprintf(path->route_interface, sizeof(path->route_interface), "eth%d", index);
	path->route_asked = path->is_let_in = DOCTOR_YES;
	path->answers_small = path->answers_full = DOCTOR_YES;
	path->probe_mtu = 4200;
	path->arp[index] = DOCTOR_YES;
	path->arp_mac[index] = macs[1][index];
	path->arp[!index] = DOCTOR_NO;
	doctor_counter_note(path->counters, COUNT(path->counters), &path->counter_count,
			    "frames sent again", 17, false);
}

static void healthy(struct doctor_facts *facts)
{
	struct doctor_peer *peer;

	doctor_facts_init(facts);
	strcpy(facts->host, "a");
	strcpy(facts->version, "0.1.0");
	strcpy(facts->kernel, "6.1.0-57-amd64");
	strcpy(facts->rdma_core, "44.0");
	facts->pid = 1;
	facts->draining_ns = 0;
	facts->is_conf_former = 0;
	facts->memlock_bytes = INT64_MAX;
	facts->memlock_need_bytes = 544LL << 20;
	facts->may_lock = 0;
	facts->may_bind = 1;
	facts->huge_page_bytes = 0;
	facts->arena_bytes = 512 << 20;
	facts->are_ports_read = true;
	facts->seconds = 2;
	rail_make(facts, 0);
	rail_make(facts, 1);
	peer = doctor_facts_peer_add(facts);
	strcpy(peer->name, "b");
	strcpy(peer->state, "connected");
	peer->has_clock = peer->has_wall = DOCTOR_YES;
	peer->clock_error_ns[0] = peer->clock_error_ns[1] = 20000;
	peer->clock_apart_ns = 2000000000;
	path_make(facts, 0);
	path_make(facts, 1);
}

/* ---- one thing that is wrong ---- */

#define WRONG(name) static void name(struct doctor_facts *f)

WRONG(no_carrier)
{
	f->rails[1].has_carrier = false;
}
WRONG(taken_down)
{
	no_carrier(f);
	f->rails[1].is_up = 0;
}
WRONG(driver_hangs)
{
	f->rails[1].driver_silent_ns = 12000000000;
}
WRONG(path_connecting)
{
	strcpy(f->paths[1].state, "CONNECTING");
	strcpy(f->paths[1].reason, "connect");
}
WRONG(peer_away)
{
	for (int i = 0; i < 2; i++) {
		strcpy(f->paths[i].state, "CONNECTING");
		strcpy(f->paths[i].reason, "connect");
		f->paths[i].state_age_ns = (uint64_t)(2 - i) * 1000000000;
	}
}
WRONG(drained)
{
	f->rails[1].is_drained = true;
	strcpy(f->paths[1].state, "DENIED");
}
WRONG(drill_here)
{
	strcpy(f->rails[1].drill, "down");
	f->rails[1].has_carrier = false;
	strcpy(f->paths[1].state, "CONNECTING");
	f->paths[1].is_drilled = true;
}
WRONG(drill_of_the_peer)
{
	strcpy(f->rails[1].drill, "peer");
	strcpy(f->paths[1].state, "ASSUMED_BAD");
	f->paths[1].is_drilled = true;
}
WRONG(away_in_a_drill)
{
	strcpy(f->paths[0].state, "CONNECTING");
	strcpy(f->paths[1].state, "CONNECTING");
	f->paths[1].is_drilled = true;
}
WRONG(away_and_drained)
{
	strcpy(f->paths[0].state, "DENIED");
	strcpy(f->paths[1].state, "CONNECTING");
}
WRONG(configuration_wrong)
{
	f->is_conf_former = 1;
}
WRONG(host_drained)
{
	f->draining_ns = 7000000000;
}
WRONG(peer_drained)
{
	f->peers[0].is_draining = true;
}
WRONG(degraded)
{
	strcpy(f->paths[0].health, "failing");
}
WRONG(slower_rail)
{
	f->rails[1].speed_bits_per_s = f->rails[1].speed_max_bits_per_s = 100000000000;
}
WRONG(below_configuration)
{
	f->rails[0].speed_configured_bits_per_s = f->rails[1].speed_configured_bits_per_s =
		400000000000;
	f->rails[0].speed_bits_per_s = 400000000000;
	f->rails[1].speed_bits_per_s = 200000000000;
}
WRONG(below_card)
{
	f->rails[0].speed_bits_per_s = f->rails[1].speed_bits_per_s = 25000000000;
}
WRONG(smaller_mtu)
{
	f->rails[1].mtu = f->paths[1].about.mtu = 1500;
}
WRONG(other_node)
{
	f->rails[1].numa_node = 1;
}
WRONG(fell_back_to_tcp)
{
	strcpy(f->paths[0].link, "tcp");
}
WRONG(two_link_layers)
{
	strcpy(f->rails[1].rdma.link_layer, "InfiniBand");
	f->rails[1].rdma.lid = f->rails[1].rdma.sm_lid = 1;
}
WRONG(peer_has_other_mtu)
{
	f->paths[0].about.mtu = 1500;
}
WRONG(long_packets_vanish)
{
	f->paths[0].answers_full = DOCTOR_NO;
}
WRONG(cables_exchanged)
{
	f->paths[0].arp[0] = f->paths[1].arp[1] = DOCTOR_NO;
	f->paths[0].arp[1] = f->paths[1].arp[0] = DOCTOR_YES;
	f->paths[0].arp_mac[1] = macs[1][0];
	f->paths[1].arp_mac[0] = macs[1][1];
}
WRONG(names_exchanged)
{
	strcpy(f->paths[0].about.rail, "r1");
	strcpy(f->paths[1].about.rail, "r0");
}
WRONG(one_switch_by_arp)
{
	f->paths[0].arp[1] = f->paths[1].arp[0] = DOCTOR_YES;
	f->paths[0].arp_mac[1] = macs[1][0];
	f->paths[1].arp_mac[0] = macs[1][1];
}
WRONG(one_switch_by_lldp)
{
	strcpy(f->rails[1].chassis[0], "sw0");
}
WRONG(two_vlans_of_one_port)
{
	strcpy(f->rails[0].lower, "eno1");
	strcpy(f->rails[1].lower, "eno1");
}
WRONG(two_ports_of_one_bond)
{
	strcpy(f->rails[0].bond, "bond0");
	strcpy(f->rails[1].bond, "bond0");
}
WRONG(two_functions_of_one_card)
{
	strcpy(f->rails[0].pci, "0000:3b:00.0");
	strcpy(f->rails[1].pci, "0000:3b:00.1");
}
WRONG(route_by_another)
{
	strcpy(f->paths[1].route_interface, "eth0");
}
WRONG(no_route)
{
	f->paths[1].route_error = ENETUNREACH;
}
WRONG(dropped_by_rp_filter)
{
	f->paths[1].is_let_in = DOCTOR_NO;
	f->rails[1].rp_filter = 1;
}
WRONG(one_subnet)
{
	strcpy(f->rails[1].address, "10.0.0.5");
	f->rails[1].arp_ignore = 0;
}
WRONG(one_interface_answers_for_both)
{
	f->paths[1].arp[0] = DOCTOR_YES;
	f->paths[1].arp_mac[0] = macs[1][0];
}
WRONG(address_elsewhere)
{
	f->rails[0].address_is_here = 0;
}
WRONG(tcp_over_ipoib)
{
	f->rails[0].hardware = ARPHRD_INFINIBAND;
	strcpy(f->rails[0].type, "tcp");
}
WRONG(no_device)
{
	strcpy(f->rails[0].type, "verbs");
	f->rails[0].rdma.device[0] = '\0';
	strcpy(f->rails[0].rdma.missing, "there is no RDMA device of interface eth0");
}
WRONG(a_device_without_room)
{
	no_device(f);
	f->rails[0].rdma.is_found = true;
	strcpy(f->rails[0].rdma.missing, "no completion queue of 1280");
}
WRONG(roce_v1)
{
	strcpy(f->rails[0].rdma.gid_type, "IB/RoCE v1");
}
WRONG(gid_of_another)
{
	strcpy(f->rails[0].rdma.gid_interface, "eth9");
}
WRONG(port_down)
{
	strcpy(f->rails[0].rdma.state, "1: DOWN");
	strcpy(f->rails[0].rdma.phys_state, "3: Disabled");
}
static void infiniband(struct doctor_facts *f)
{
	for (int i = 0; i < 2; i++) {
		strcpy(f->rails[i].rdma.link_layer, "InfiniBand");
		f->rails[i].rdma.lid = 5 + i;
		f->rails[i].rdma.sm_lid = 1;
	}
}
WRONG(one_lane)
{
	infiniband(f);
	strcpy(f->rails[0].rdma.rate, "50 Gb/sec (1X HDR)");
}
WRONG(slower_lanes)
{
	infiniband(f);
	strcpy(f->rails[0].rdma.rate, "40 Gb/sec (4X QDR)");
}
WRONG(narrow_slot)
{
	f->rails[0].pci_width = 8;
}
WRONG(slow_slot)
{
	strcpy(f->rails[0].pci_speed, "2.5 GT/s PCIe");
}
WRONG(no_lid)
{
	infiniband(f);
	f->rails[0].rdma.lid = 0;
}
WRONG(no_manager)
{
	infiniband(f);
	f->rails[0].rdma.sm_lid = 0;
}
WRONG(neither_pfc_nor_ecn)
{
	f->rails[0].pfc_priorities = f->rails[0].has_pause = f->rails[0].has_ecn = 0;
}
WRONG(not_marked)
{
	f->rails[0].rdma.tos = 0;
}
WRONG(rail_counter_rises)
{
	f->rails[0].counters[0].second++;
}
WRONG(path_counter_rises)
{
	f->paths[0].counters[0].second += 3;
}
WRONG(little_memlock)
{
	f->memlock_bytes = 8 << 20;
}
WRONG(too_little_memlock_to_open)
{
	f->memlock_bytes = 8 << 20;
	for (int i = 0; i < 2; i++) {
		strcpy(f->rails[i].type, "verbs");
		strcpy(f->rails[i].rdma.missing, "memory of receive entries wants 16384 KiB");
		f->rails[i].rdma.device[0] = '\0';
		f->rails[i].rdma.is_found = true;
	}
}
WRONG(few_huge_pages)
{
	f->huge_page_bytes = 2 << 20;
	f->huge_pages_all = 300;
	f->huge_pages_free = 200;
}
WRONG(no_huge_pages)
{
	f->huge_page_bytes = 1 << 30;
}
WRONG(open_port)
{
	strcpy(f->ports[0].address, "0.0.0.0");
	f->ports[0].port = 9471;
	f->port_count = 1;
}
WRONG(other_time_of_day)
{
	f->peers[0].wall_apart_ns = -3000000000;
}
WRONG(drifting)
{
	f->peers[0].clock_offset_ns[0] = 1000000;
	f->peers[0].clock_offset_ns[1] = 3000000;
}
WRONG(other_mrcd)
{
	strcpy(f->paths[0].about.version, "0.0.9");
}
WRONG(other_firmware)
{
	strcpy(f->paths[1].about.firmware, "28.36.1010");
}
WRONG(other_kernel)
{
	strcpy(f->paths[0].about.kernel, "5.15.0");
}
WRONG(other_rdma_core)
{
	strcpy(f->paths[0].about.rdma_core, "39.0");
}

static const struct {
	void (*wrong)(struct doctor_facts *f);
	const char *id;
	const char *subject, *seen, *command; /* parts of them; NULL: whatever */
} cases[] = {
	{taken_down, "rail-carrier", "rail r1", "was taken down on this host",
	 "ip link set dev eth1 up"},
	{driver_hangs, "driver-silent", "rail r1 (eth1)", "owed the daemon an answer for 12 s",
	 "dmesg"},
	{no_carrier, "rail-carrier", "rail r1 (eth1)", "no carrier", "ip -s link show dev eth1"},
	{peer_away, "peer-down", "peer b",
	 "none of its 2 paths is in service, for 1 s; the last reason is connect", NULL},
	{path_connecting, "path-down", "rail r1 to b", "connect", NULL},
	{drained, "rail-drained", "rail r1", "drained", "mrcctl undrain r1"},
	{drill_here, "rail-drill", "rail r1", "in a drill: down", "mrcctl events"},
	{drill_of_the_peer, "rail-drill", "rail r1", "in a drill of a peer's", "mrcctl events"},
	{away_in_a_drill, "peer-down", "peer b", "none of its 2 paths is in service", "journalctl"},
	{away_and_drained, "peer-down", "peer b", "none of its 1 path is in service", "journalctl"},
	{configuration_wrong, "configuration", "mrcd", "from before its last restart",
	 "mrcctl reload --check"},
	{host_drained, "host-drained", "mrcd", "draining for 7 s", "mrcctl undrain --host"},
	{peer_drained, "peer-drained", "peer b", "it is being drained", NULL},
	{degraded, "path-degraded", "rail r0 to b", "failing", NULL},
	{slower_rail, "rail-speed", "all rails", "r0 200 Gb/s, r1 100 Gb/s", NULL},
	{below_configuration, "rail-slow", "rail r1",
	 "runs at 200 Gb/s; the configuration says 400", "ethtool eth1"},
	{below_card, "rail-slow", "rail r0", "the card can do 200 Gb/s", NULL},
	{smaller_mtu, "rail-mtu", "all rails", "r0 4200, r1 1500", NULL},
	{other_node, "rail-numa", "all rails", "r0 0, r1 1", NULL},
	{fell_back_to_tcp, "rail-type", "rail r0 to b", "that of rail r1", NULL},
	{two_link_layers, "rail-type", "rails r0 and r1", "RoCE and InfiniBand", NULL},
	{peer_has_other_mtu, "mtu-peer", "rail r0 to b", "4200 here, 1500 at the peer's rail r0",
	 NULL},
	{long_packets_vanish, "mtu-path", "rail r0 to b", "none of 4200 bytes",
	 "ping -M do -s 4172 -I eth0 10.0.0.2"},
	{cables_exchanged, "crosswise", "rail r0 to b",
	 "10.0.0.2 does not answer on this rail, and 10.0.1.2, which is to be reached by rail r1",
	 NULL},
	{names_exchanged, "crosswise", "rail r0 to b", "what the peer calls rail r1", NULL},
	{one_switch_by_arp, "one-network", "rails r0 and r1", "same interface of b", NULL},
	{one_switch_by_lldp, "one-network", "rails r0 and r1", "sw0", NULL},
	{two_vlans_of_one_port, "shared-device", "rails r0 and r1", "eno1", NULL},
	{two_ports_of_one_bond, "shared-device", "rails r0 and r1", "bond0", NULL},
	{two_functions_of_one_card, "shared-card", "rails r0 and r1", "0000:3b:00", NULL},
	{route_by_another, "route", "rail r1 to b", "by eth0, not by eth1",
	 "ip route get 10.0.1.2 from 10.0.1.1"},
	{no_route, "route", "rail r1 to b", "Network is unreachable", NULL},
	{dropped_by_rp_filter, "rp-filter", "rail r1 to b", "10.0.1.2 that arrive on eth1",
	 "net.ipv4.conf.eth1.rp_filter=2"},
	{one_subnet, "arp-flux", "rails r0 and r1", "one subnet", "arp_ignore=1"},
	{one_interface_answers_for_both, "arp-flux", "peer b",
	 "on rail r0 one interface there answers for 10.0.0.2 and for 10.0.1.2, which is rail r1",
	 NULL},
	{address_elsewhere, "address", "rail r0", "10.0.0.1 is not", "ip address show dev eth0"},
	{tcp_over_ipoib, "ipoib", "rail r0", "IPoIB", NULL},
	{no_device, "rdma-missing", "rail r0", "no RDMA device of interface eth0", NULL},
	{a_device_without_room, "rdma-missing", "rail r0", "no completion queue", NULL},
	{roce_v1, "rdma-gid", "rail r0", "index 3 is of type IB/RoCE v1", NULL},
	{gid_of_another, "rdma-gid", "rail r0", "belongs to eth9", NULL},
	{port_down, "rdma-port", "rail r0", "mlx5_0/1 is 1: DOWN, physically 3: Disabled", NULL},
	{one_lane, "rdma-width", "rail r0", "one lane", NULL},
	{slower_lanes, "rdma-width", "rail r0", "siblings at 200 Gb/sec", NULL},
	{narrow_slot, "pci-link", "rail r0", "x8 and could at 16.0 GT/s PCIe x16", "lspci"},
	{slow_slot, "pci-link", "rail r0", "2.5 GT/s", NULL},
	{no_lid, "subnet-manager", "rail r0", "LID 0", NULL},
	{no_manager, "subnet-manager", "rail r0", "no subnet manager", NULL},
	{neither_pfc_nor_ecn, "roce-lossless", "rail r0", "PFC off, pause off, ECN off",
	 "dcb pfc set dev eth0"},
	{not_marked, "roce-dscp", "rail r0", "type of service 0", "mlx5_0/ports/1"},
	{rail_counter_rises, "errors-rising", "rail r0 (eth0)", "in 2 s: rx_errors by 1",
	 "ethtool -S eth0"},
	{path_counter_rises, "errors-rising", "rail r0 to b", "frames sent again by 3", NULL},
	{little_memlock, "memlock", "mrcd", "8 MiB", "LimitMEMLOCK=infinity"},
	{too_little_memlock_to_open, "memlock", "mrcd", "8 MiB", "LimitMEMLOCK=infinity"},
	{few_huge_pages, "huge-pages", "mrcd", "200 of 300", "vm.nr_hugepages=356"},
	{no_huge_pages, "huge-pages", "mrcd", "no pages of 1 GiB", NULL},
	{open_port, "port-open", "mrcd", "0.0.0.0 port 9471", NULL},
	{other_time_of_day, "clock-apart", "peer b", "3 s behind ours", NULL},
	{drifting, "clock-drift", "peer b", "980 us in a second", NULL},
	{other_mrcd, "version-mrcd", "peer b", "0.0.9 there, 0.1.0 here", NULL},
	{other_firmware, "version-firmware", "rail r1 to b", "28.36.1010 there", NULL},
	{other_kernel, "version-kernel", "peer b", "5.15.0 there", NULL},
	{other_rdma_core, "version-rdma-core", "peer b", "39.0 there", NULL},
};

#endif
