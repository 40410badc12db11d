/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl doctor on trees of files (doctor/README.md): machines that are well, and
 * then with one file changed, which is how hardware tells of its faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <limits.h>
#include <unistd.h>

#include "mrcctl_doctor_checks.h"
#include "mrcctl_doctor_sys.h"
#include "tree_lab.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- two rails, as the daemon would have told of them ---- */

static void rails_make(struct doctor_facts *facts, const char *layer)
{
	doctor_facts_init(facts);
	facts->seconds = 1;
	facts->may_lock = 1;
	for (int i = 0; i < 2; i++) {
		struct doctor_rail *rail = doctor_facts_rail_add(facts);

		snprintf(rail->name, sizeof(rail->name), "r%d", i);
		strcpy(rail->type, "verbs");
		if (layer[0] == 'E')
			snprintf(rail->interface, sizeof(rail->interface), "ens%df0np0", i + 1);
		else
			snprintf(rail->interface, sizeof(rail->interface), "ibs1f%d", i);
		snprintf(rail->address, sizeof(rail->address), "10.0.%d.1", i);
		rail->port = 7471;
		rail->has_carrier = true;
		snprintf(rail->rdma.device, sizeof(rail->rdma.device), "mlx5_%d", i);
		rail->rdma.port = 1;
		rail->rdma.gid_index = layer[0] == 'E' ? 3 : 0;
		strcpy(rail->rdma.link_layer, layer);
	}
}

static void roce_rails(struct doctor_facts *facts)
{
	rails_make(facts, "Ethernet");
}

static void infiniband_rails(struct doctor_facts *facts)
{
	rails_make(facts, "InfiniBand");
}

/* The checks for which files say all there is to know; the daemon and probes tell the others. */
static bool is_of_files(const char *id)
{
	static const char *const ids[] = {
		"rail-speed", "rail-mtu",  "rail-numa",     "shared-device", "shared-card",
		"rdma-gid",   "rdma-port", "rdma-width",    "pci-link",      "subnet-manager",
		"roce-dscp",  "ipoib",     "errors-rising", "rdma-missing",  "huge-pages",
		"port-open",  "rail-type", "memlock",       "roce-lossless",
	};

	for (size_t i = 0; i < COUNT(ids); i++) {
		if (strcmp(ids[i], id) == 0)
			return true;
	}
	return false;
}

/* ---- one file is changed ---- */

#define NET0 "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/"
#define IB0  "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0/"
#define PCI0 "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/"

static const struct {
	const char *tree;
	void (*rails)(struct doctor_facts *facts);
	const char *file, *value; /* set before the first reading */
	const char *id, *seen;
} cases[] = {
	{"roce.tree", roce_rails, NET0 "ens1f0np0/mtu", "1500", "rail-mtu", "r0 1500, r1 4200"},
	{"roce.tree", roce_rails, NET0 "ens1f0np0/speed", "100000", "rail-speed",
	 "r0 100 Gb/s, r1 200 Gb/s"},
	{"roce.tree", roce_rails, PCI0 "numa_node", "1", "rail-numa", "r0 1, r1 0"},
	{"roce.tree", roce_rails, IB0 "ports/1/gid_attrs/types/3", "IB/RoCE v1", "rdma-gid",
	 "IB/RoCE v1"},
	{"roce.tree", roce_rails, IB0 "ports/1/gid_attrs/ndevs/3", "ens2f0np0", "rdma-gid",
	 "belongs to ens2f0np0"},
	{"roce.tree", roce_rails, IB0 "ports/1/state", "1: DOWN", "rdma-port",
	 "1: DOWN, physically 5: LinkUp"},
	{"roce.tree", roce_rails, PCI0 "current_link_width", "8", "pci-link",
	 "0000:3b:00.0 runs at 16.0 GT/s PCIe x8 and could at 16.0 GT/s PCIe x16"},
	{"roce.tree", roce_rails, PCI0 "current_link_speed", "8.0 GT/s PCIe", "pci-link",
	 "8.0 GT/s PCIe x16"},
	{"roce.tree", roce_rails, "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "0",
	 "roce-dscp", "type of service 0"},
	{"infiniband.tree", infiniband_rails, NET0 "ibs1f0/mtu", "4092", "rail-mtu",
	 "r0 4092, r1 2044"},
	{"infiniband.tree", infiniband_rails, IB0 "ports/1/lid", "0x0", "subnet-manager", "LID 0"},
	{"infiniband.tree", infiniband_rails, IB0 "ports/1/sm_lid", "0x0", "subnet-manager",
	 "mlx5_0/1 knows no subnet manager"},
	{"infiniband.tree", infiniband_rails, IB0 "ports/1/state", "2: INIT", "rdma-port",
	 "2: INIT"},
	{"infiniband.tree", infiniband_rails, IB0 "ports/1/rate", "50 Gb/sec (1X HDR)",
	 "rdma-width", "one lane"},
	{"infiniband.tree", infiniband_rails, IB0 "ports/1/rate", "100 Gb/sec (4X EDR)",
	 "rdma-width", "best of its siblings at 200"},
};

static const struct doctor_finding *judged(const struct doctor_facts *facts,
					   struct doctor_report *report, const char *id)
{
	const struct doctor_finding *found = NULL;

	doctor_judge(facts, report);
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct doctor_finding *finding = &report->findings[i];

		if (id != NULL && strcmp(finding->check->id, id) == 0)
			found = finding;
		else if (is_of_files(finding->check->id) &&
			 strcmp(finding->check->id, "shared-card") != 0)
			fail_msg("%s: found %s: %s: %s", id != NULL ? id : "healthy",
				 finding->check->id, finding->subject, finding->seen);
	}
	return found;
}

static void each_file_that_tells_of_a_fault_is_understood(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct doctor_finding *finding;
		struct doctor_report report;
		struct doctor_facts facts;
		char root[64];

		tree_make(cases[i].tree, root);
		cases[i].rails(&facts);
		file_set(root, cases[i].file, cases[i].value);
		doctor_sys_read(&facts, root);
		finding = judged(&facts, &report, cases[i].id);
		if (finding == NULL)
			fail_msg("%s of %s: %s is not found", cases[i].value, cases[i].file,
				 cases[i].id);
		if (strstr(finding->seen, cases[i].seen) == NULL)
			fail_msg("%s: \"%s\" without \"%s\"", cases[i].id, finding->seen,
				 cases[i].seen);
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		tree_remove(root);
	}
}

static void a_machine_that_is_well_is_read_whole(void **state)
{
	static const struct {
		const char *tree;
		void (*rails)(struct doctor_facts *facts);
	} machines[] = {{"roce.tree", roce_rails}, {"infiniband.tree", infiniband_rails}};

	for (size_t i = 0; i < COUNT(machines); i++) {
		struct doctor_report report;
		struct doctor_facts facts;
		char root[64];

		tree_make(machines[i].tree, root);
		machines[i].rails(&facts);
		doctor_sys_read(&facts, root);
		doctor_sys_count(&facts, root, false);
		doctor_sys_count(&facts, root, true);
		assert_null(judged(&facts, &report, NULL));
		for (size_t n = 0; n < report.unchecked_count; n++) {
			const struct doctor_finding *unchecked = &report.unchecked[n];

			if (is_of_files(unchecked->check->id) &&
			    strcmp(unchecked->check->id, "port-open") != 0 &&
			    strcmp(unchecked->check->id, "huge-pages") != 0)
				fail_msg("unchecked: %s: %s: %s", unchecked->check->id,
					 unchecked->subject, unchecked->seen);
		}
		for (size_t n = 0; n < 2; n++) {
			assert_string_equal(facts.rails[n].firmware, "28.39.1002");
			assert_true(facts.rails[n].counter_count > 20);
			assert_int_equal(facts.rails[n].mac.is_known, i == 0);
		}
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		tree_remove(root);
	}
}

static void two_functions_of_a_card_are_noted(void **state)
{
	struct doctor_report report;
	struct doctor_facts facts;
	char root[64];
	size_t notes = 0;

	tree_make("infiniband.tree", root);
	infiniband_rails(&facts);
	doctor_sys_read(&facts, root);
	doctor_judge(&facts, &report);
	for (size_t i = 0; i < report.finding_count; i++)
		notes += strcmp(report.findings[i].check->id, "shared-card") == 0;
	assert_int_equal(notes, 1);
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
	tree_remove(root);
}

static void a_tcp_rail_on_ipoib_is_found(void **state)
{
	struct doctor_report report;
	struct doctor_facts facts;
	char root[64];

	tree_make("infiniband.tree", root);
	infiniband_rails(&facts);
	strcpy(facts.rails[0].type, "tcp");
	doctor_sys_read(&facts, root);
	assert_non_null(judged(&facts, &report, "ipoib"));
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
	tree_remove(root);
}

static void counters_that_rise_between_the_readings_are_found(void **state)
{
	static const char *const counters[] = {
		IB0 "ports/1/counters/symbol_error",
		IB0 "ports/1/hw_counters/local_ack_timeout_err",
		NET0 "ens1f0np0/statistics/rx_crc_errors",
	};

	for (size_t i = 0; i < COUNT(counters); i++) {
		const struct doctor_finding *finding;
		struct doctor_report report;
		struct doctor_facts facts;
		char root[64];

		tree_make("roce.tree", root);
		roce_rails(&facts);
		file_set(root, counters[i], "41");
		doctor_sys_read(&facts, root);
		doctor_sys_count(&facts, root, false);
		file_set(root, counters[i], "44");
		doctor_sys_count(&facts, root, true);
		finding = judged(&facts, &report, "errors-rising");
		assert_non_null(finding);
		assert_non_null(strstr(finding->seen, strrchr(counters[i], '/') + 1));
		assert_non_null(strstr(finding->seen, " by 3"));
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		tree_remove(root);
	}
}

static void file_remove(const char *root, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(unlink(path), 0);
}

static void number_set(const char *root, const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	file_set(root, name, text);
}

/* Of packets sent again a few are chance, and many are few among very many. */
static void packets_sent_again_are_found_by_their_number_and_share(void **state)
{
	static const struct {
		const char *counter;
		int rise;
		int packets; /* carried meanwhile, half of them each way */
		bool is_found;
	} readings[] = {
		{"duplicate_request", 1, 2000, false}, /* soft-RoCE does, with nothing wrong */
		{"duplicate_request", 4, 0, false},
		{"duplicate_request", 5, 0, true},
		{"duplicate_request", 5, 500000, true},
		{"out_of_sequence", 59, 6000000, false},
		{"out_of_sequence", 60, 6000000, true},
		{"packet_seq_err", 60, 6100000, false},
		{"local_ack_timeout_err", 1, 6000000, true}, /* each of them is felt */
	};
	static const struct {
		const char *sent, *received;
		bool is_there; /* in the tree already */
	} names[] = {
		{IB0 "ports/1/counters/port_xmit_packets", IB0 "ports/1/counters/port_rcv_packets",
		 true},
		{IB0 "ports/1/hw_counters/sent_pkts", IB0 "ports/1/hw_counters/rcvd_pkts", false},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		char root[64];

		tree_make("roce.tree", root);
		if (!names[i].is_there) {
			file_remove(root, names[0].sent);
			file_remove(root, names[0].received);
		}
		for (size_t n = 0; n < COUNT(readings); n++) {
			struct doctor_report report;
			struct doctor_facts facts;
			char name[PATH_MAX];

			roce_rails(&facts);
			doctor_sys_read(&facts, root);
			snprintf(name, sizeof(name), IB0 "ports/1/hw_counters/%s",
				 readings[n].counter);
			number_set(root, name, 40);
			number_set(root, names[i].sent, 2000000);
			number_set(root, names[i].received, 1000000);
			doctor_sys_count(&facts, root, false);
			number_set(root, name, 40 + readings[n].rise);
			number_set(root, names[i].sent, 2000000 + readings[n].packets / 2);
			number_set(root, names[i].received, 1000000 + readings[n].packets / 2);
			doctor_sys_count(&facts, root, true);
			if ((judged(&facts, &report, "errors-rising") != NULL) !=
			    readings[n].is_found)
				fail_msg("%s by %d among %d packets is%s found",
					 readings[n].counter, readings[n].rise, readings[n].packets,
					 readings[n].is_found ? " not" : "");
			doctor_report_fini(&report);
			doctor_facts_fini(&facts);
		}
		tree_remove(root);
	}
}

static void ecn_is_found_where_the_driver_tells(void **state)
{
	struct doctor_report report;
	struct doctor_facts facts;
	char root[64], name[128];

	tree_make("roce.tree", root);
	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), NET0 "ens1f0np0/ecn/%s/enable/%d",
			 i < 8 ? "roce_np" : "roce_rp", i % 8);
		file_set(root, name, "0");
	}
	roce_rails(&facts);
	doctor_sys_read(&facts, root);
	assert_int_equal(facts.rails[0].has_ecn, 0);
	assert_int_equal(facts.rails[1].has_ecn, 1);
	assert_non_null(judged(&facts, &report, "roce-lossless"));
	doctor_report_fini(&report);
	doctor_facts_fini(&facts);
	tree_remove(root);
}

static void the_larger_of_two_sysctls_is_in_force(void **state)
{
	struct doctor_facts facts;
	char root[64];

	tree_make("roce.tree", root);
	file_set(root, "proc/sys/net/ipv4/conf/all/rp_filter", "1");
	file_set(root, "proc/sys/net/ipv4/conf/ens2f0np0/rp_filter", "2");
	roce_rails(&facts);
	doctor_sys_read(&facts, root);
	assert_int_equal(facts.rails[0].rp_filter, 1);
	assert_int_equal(facts.rails[1].rp_filter, 2);
	assert_int_equal(facts.rails[0].arp_ignore, 1);
	doctor_facts_fini(&facts);
	tree_remove(root);
}

static void vlans_of_one_port_and_ports_of_one_bond_are_found(void **state)
{
	for (int is_bond = 0; is_bond < 2; is_bond++) {
		const struct doctor_finding *finding;
		struct doctor_report report;
		struct doctor_facts facts;
		char root[64], name[64];

		tree_make("host.tree", root);
		doctor_facts_init(&facts);
		facts.seconds = 1;
		for (int i = 0; i < 2; i++) {
			struct doctor_rail *rail = doctor_facts_rail_add(&facts);

			snprintf(rail->name, sizeof(rail->name), "r%d", i);
			snprintf(rail->interface, sizeof(rail->interface), "v%d", i);
			snprintf(name, sizeof(name), "sys/class/net/v%d/ifindex", i);
			file_set(root, name, i == 0 ? "8" : "9");
			snprintf(name, sizeof(name), "sys/class/net/v%d/%s", i,
				 is_bond ? "master" : "lower_eno1");
			link_set(root, name, is_bond ? "../bond0" : "../eno1");
		}
		file_set(root, "sys/class/net/eno1/ifindex", "2");
		doctor_sys_read(&facts, root);
		finding = judged(&facts, &report, "shared-device");
		assert_non_null(finding);
		assert_non_null(strstr(finding->seen, is_bond ? "bond0" : "eno1"));
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		tree_remove(root);
	}
}

/* A bond over two ports is no port of either: it may be a rail beside a third. */
static void an_interface_over_several_is_its_own(void **state)
{
	struct doctor_facts facts;
	struct doctor_rail *rail;
	char root[64];

	tree_make("host.tree", root);
	doctor_facts_init(&facts);
	rail = doctor_facts_rail_add(&facts);
	strcpy(rail->interface, "bond0");
	file_set(root, "sys/class/net/bond0/ifindex", "8");
	link_set(root, "sys/class/net/bond0/lower_eno1", "../eno1");
	link_set(root, "sys/class/net/bond0/lower_eno2", "../eno2");
	doctor_sys_read(&facts, root);
	assert_string_equal(rail->lower, "");
	doctor_facts_fini(&facts);
	tree_remove(root);
}

/* ---- the daemon's process ---- */

#define TCP_TABLE                                                                             \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  " \
	"timeout inode\n"
#define TCP_LINE(local, state, inode)                        \
	"   0: " local " 00000000:0000 " state               \
	" 00000000:00000000 00:00000000 00000000     0     " \
	"   0 " inode " 1 0000000000000000 100 0 0 10 0\n"

static void ports_of_the_daemon_that_are_no_rails_are_found(void **state)
{
	static const struct {
		const char *table, *lines;
		const char *seen; /* NULL: nothing */
	} sockets[] = {
		/* a rail's own; one that only this host reaches; one of another process; one connected */
		{"tcp", TCP_LINE("0100000A:1D2F", "0A", "9001"), NULL},
		{"tcp", TCP_LINE("0100007F:24FF", "0A", "9002"), NULL},
		{"tcp", TCP_LINE("00000000:24FF", "0A", "8000"), NULL},
		{"tcp", TCP_LINE("00000000:24FF", "01", "9002"), NULL},
		{"tcp", "nonsense\n: : :\n   0: 0:0 0 0A 0 0 0 0 0 9001\n", NULL},
		{"tcp", TCP_LINE("00000000:24FF", "0A", "9002"), "0.0.0.0 port 9471"},
		{"tcp", TCP_LINE("0100000A:24FF", "0A", "9003"), "10.0.0.1 port 9471"},
		{"tcp6",
		 "   0: 00000000000000000000000000000000:24FF "
		 "00000000000000000000000000000000:0000 "
		 "0A 00000000:00000000 00:00000000 00000000     0        0 9004 1\n",
		 ":: port 9471"},
		{"tcp6",
		 "   0: 00000000000000000000000001000000:24FF "
		 "00000000000000000000000000000000:0000 "
		 "0A 00000000:00000000 00:00000000 00000000     0        0 9004 1\n",
		 NULL},
	};

	for (size_t i = 0; i < COUNT(sockets); i++) {
		const struct doctor_finding *finding;
		struct doctor_report report;
		struct doctor_facts facts;
		struct doctor_rail *rail;
		char root[64], name[64], table[1024];

		tree_make("host.tree", root);
		doctor_facts_init(&facts);
		facts.seconds = 1;
		facts.pid = 4711;
		rail = doctor_facts_rail_add(&facts);
		strcpy(rail->address, "10.0.0.1");
		rail->port = 7471;
		snprintf(name, sizeof(name), "proc/4711/net/%s", sockets[i].table);
		snprintf(table, sizeof(table), TCP_TABLE "%s", sockets[i].lines);
		file_set(root, name, table);
		doctor_sys_read(&facts, root);
		finding = judged(&facts, &report, "port-open");
		if ((finding != NULL) != (sockets[i].seen != NULL))
			fail_msg("socket %zu: %s", i,
				 finding != NULL ? finding->seen : "not found");
		if (finding != NULL)
			assert_non_null(strstr(finding->seen, sockets[i].seen));
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		tree_remove(root);
	}
}

static void who_may_not_look_says_so(void **state)
{
	struct doctor_facts facts;
	char root[64];

	tree_make("host.tree", root);
	doctor_facts_init(&facts);
	facts.pid = 4712;
	doctor_sys_read(&facts, root);
	assert_false(facts.are_ports_read);
	assert_string_equal(facts.ports_why, "only root may look at the daemon's sockets");
	tree_remove(root);
}

static void huge_pages_are_counted(void **state)
{
	struct doctor_facts facts;
	char root[64];

	tree_make("host.tree", root);
	doctor_facts_init(&facts);
	facts.is_any_huge_page = true;
	doctor_sys_read(&facts, root);
	assert_int_equal(facts.huge_page_bytes, 2 << 20);
	assert_int_equal(facts.huge_pages_all, 512);
	facts.is_any_huge_page = false;
	facts.huge_page_bytes = 1 << 30;
	facts.huge_pages_free = DOCTOR_UNKNOWN;
	doctor_sys_read(&facts, root);
	assert_int_equal(facts.huge_pages_free, DOCTOR_UNKNOWN);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_that_is_well_is_read_whole),
		cmocka_unit_test(each_file_that_tells_of_a_fault_is_understood),
		cmocka_unit_test(two_functions_of_a_card_are_noted),
		cmocka_unit_test(a_tcp_rail_on_ipoib_is_found),
		cmocka_unit_test(counters_that_rise_between_the_readings_are_found),
		cmocka_unit_test(packets_sent_again_are_found_by_their_number_and_share),
		cmocka_unit_test(ecn_is_found_where_the_driver_tells),
		cmocka_unit_test(the_larger_of_two_sysctls_is_in_force),
		cmocka_unit_test(vlans_of_one_port_and_ports_of_one_bond_are_found),
		cmocka_unit_test(an_interface_over_several_is_its_own),
		cmocka_unit_test(ports_of_the_daemon_that_are_no_rails_are_found),
		cmocka_unit_test(who_may_not_look_says_so),
		cmocka_unit_test(huge_pages_are_counted),
	};

	return cmocka_run_group_tests_name("doctor_sys", tests, NULL, NULL);
}
