/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_doctor_sys.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- small files ---- */

static bool doctor_sys_path(char path[PATH_MAX], const char *root, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static bool doctor_sys_path(char path[PATH_MAX], const char *root, const char *format, va_list args)
{
	int len = snprintf(path, PATH_MAX, "%s", root);

	if (len < 0 || len >= PATH_MAX)
		return false;
	return vsnprintf(path + len, (size_t)(PATH_MAX - len), format, args) < PATH_MAX - len;
}

static bool doctor_sys_line(const char *path, char *text, size_t text_bytes)
{
	FILE *file = fopen(path, "re");
	bool is_read;

	text[0] = '\0';
	if (file == NULL)
		return false;
	is_read = fgets(text, (int)text_bytes, file) != NULL;
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return is_read && text[0] != '\0';
}

bool doctor_sys_text(const char *root, char *text, size_t text_bytes, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	bool is_fine;

	va_start(args, format);
	is_fine = doctor_sys_path(path, root, format, args);
	va_end(args);
	text[0] = '\0';
	return is_fine && doctor_sys_line(path, text, text_bytes);
}

static int64_t doctor_number_in(const char *text)
{
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 0);
	return end == text || errno != 0 ? DOCTOR_UNKNOWN : (int64_t)value;
}

int64_t doctor_sys_number(const char *root, const char *format, ...)
{
	char path[PATH_MAX], text[64];
	va_list args;
	bool is_fine;

	va_start(args, format);
	is_fine = doctor_sys_path(path, root, format, args);
	va_end(args);
	return is_fine && doctor_sys_line(path, text, sizeof(text)) ? doctor_number_in(text)
								    : DOCTOR_UNKNOWN;
}

bool doctor_sys_link(const char *root, char *text, size_t text_bytes, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	va_list args;
	bool is_fine;
	ssize_t len;

	text[0] = '\0';
	va_start(args, format);
	is_fine = doctor_sys_path(path, root, format, args);
	va_end(args);
	len = is_fine ? readlink(path, target, sizeof(target) - 1) : -1;
	if (len < 0)
		return false;
	target[len] = '\0';
	slash = strrchr(target, '/');
	doctor_text_set(text, text_bytes, slash != NULL ? slash + 1 : target);
	return true;
}

/* ---- one rail ---- */

/* The larger one is in force, of its own and that of all interfaces. */
static int64_t doctor_sysctl_max(const char *root, const char *interface, const char *name)
{
	int64_t own = doctor_sys_number(root, "/proc/sys/net/ipv4/conf/%s/%s", interface, name);
	int64_t all = doctor_sys_number(root, "/proc/sys/net/ipv4/conf/all/%s", name);

	return own > all ? own : all;
}

/* What carries it: the last one of the chain of "lower_" links. A bond's ports are several: no one carries it. */
static void doctor_sys_lower(struct doctor_rail *rail, const char *root)
{
	char at[sizeof(rail->lower)];

	doctor_text_set(at, sizeof(at), rail->interface);
	for (int depth = 0; depth < 8; depth++) {
		char path[PATH_MAX], lower[sizeof(rail->lower)] = "";
		const struct dirent *entry;
		int count = 0;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/sys/class/net/%s", root, at);
		dir = opendir(path);
		if (dir == NULL)
			return;
		while ((entry = readdir(dir)) != NULL) {
			if (strncmp(entry->d_name, "lower_", 6) != 0)
				continue;
			doctor_text_set(lower, sizeof(lower), entry->d_name + 6);
			count++;
		}
		closedir(dir);
		if (count != 1)
			return;
		doctor_text_set(rail->lower, sizeof(rail->lower), lower);
		doctor_text_set(at, sizeof(at), lower);
	}
}

static void doctor_sys_pci(struct doctor_rail *rail, const char *root, const char *card)
{
	char subsystem[16], slot_speed[32];
	int64_t slot_width;

	if (!doctor_sys_link(root, subsystem, sizeof(subsystem), "%s/subsystem", card) ||
	    strcmp(subsystem, "pci") != 0)
		return; /* a virtual one, USB, virtio */
	doctor_sys_link(root, rail->pci, sizeof(rail->pci), "%s", card);
	doctor_sys_text(root, rail->pci_speed, sizeof(rail->pci_speed), "%s/current_link_speed",
			card);
	doctor_sys_text(root, rail->pci_speed_max, sizeof(rail->pci_speed_max), "%s/max_link_speed",
			card);
	rail->pci_width = doctor_sys_number(root, "%s/current_link_width", card);
	rail->pci_width_max = doctor_sys_number(root, "%s/max_link_width", card);
	/* The slot may be the narrower of the two: then it is full, and that was somebody's choice. */
	if (doctor_sys_text(root, slot_speed, sizeof(slot_speed), "%s/../max_link_speed", card) &&
	    strtod(slot_speed, NULL) < strtod(rail->pci_speed_max, NULL))
		doctor_text_set(rail->pci_speed_max, sizeof(rail->pci_speed_max), slot_speed);
	slot_width = doctor_sys_number(root, "%s/../max_link_width", card);
	if (slot_width > 0 && slot_width < rail->pci_width_max)
		rail->pci_width_max = slot_width;
}

static void doctor_sys_mac(struct doctor_rail *rail, const char *root)
{
	char text[64];
	unsigned b[DOCTOR_MAC_BYTES];

	if (!doctor_sys_text(root, text, sizeof(text), "/sys/class/net/%s/address",
			     rail->interface) ||
	    strlen(text) != 3 * DOCTOR_MAC_BYTES - 1 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) !=
		    DOCTOR_MAC_BYTES)
		return;
	for (int i = 0; i < DOCTOR_MAC_BYTES; i++)
		rail->mac.bytes[i] = (uint8_t)b[i];
	rail->mac.is_known = true;
}

static void doctor_sys_ecn(struct doctor_rail *rail, const char *root)
{
	static const char *const roles[] = {"roce_np", "roce_rp"};

	for (int i = 0; i < 2; i++) {
		for (int priority = 0; priority < 8; priority++) {
			int64_t is_on =
				doctor_sys_number(root, "/sys/class/net/%s/ecn/%s/enable/%d",
						  rail->interface, roles[i], priority);

			if (is_on != DOCTOR_UNKNOWN && rail->has_ecn != 1)
				rail->has_ecn = is_on != 0;
		}
	}
}

static void doctor_sys_interface(struct doctor_rail *rail, const char *root)
{
	char card[PATH_MAX];
	int64_t mbits, flags;

	rail->ifindex = doctor_sys_number(root, "/sys/class/net/%s/ifindex", rail->interface);
	if (rail->ifindex == DOCTOR_UNKNOWN)
		return;
	rail->is_read = true;
	flags = doctor_sys_number(root, "/sys/class/net/%s/flags", rail->interface);
	if (flags != DOCTOR_UNKNOWN)
		rail->is_up = (flags & IFF_UP) != 0;
	rail->mtu = doctor_sys_number(root, "/sys/class/net/%s/mtu", rail->interface);
	mbits = doctor_sys_number(root, "/sys/class/net/%s/speed", rail->interface);
	if (mbits > 0)
		rail->speed_bits_per_s = mbits * 1000000;
	rail->hardware = doctor_sys_number(root, "/sys/class/net/%s/type", rail->interface);
	rail->numa_node =
		doctor_sys_number(root, "/sys/class/net/%s/device/numa_node", rail->interface);
	doctor_sys_link(root, rail->bond, sizeof(rail->bond), "/sys/class/net/%s/master",
			rail->interface);
	doctor_sys_mac(rail, root);
	doctor_sys_lower(rail, root);
	snprintf(card, sizeof(card), "/sys/class/net/%s/device",
		 rail->lower[0] != '\0' ? rail->lower : rail->interface);
	doctor_sys_pci(rail, root, card);
	doctor_sys_ecn(rail, root);
	rail->arp_ignore = doctor_sysctl_max(root, rail->interface, "arp_ignore");
	rail->rp_filter = doctor_sysctl_max(root, rail->interface, "rp_filter");
}

/* ---- the host ---- */

/* The size that vm.nr_hugepages counts, in KiB; 0: this kernel has no such pages. */
static long long doctor_sys_huge_page_kib(const char *root)
{
	char path[PATH_MAX], line[128];
	long long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "Hugepagesize:", 13) == 0)
			kib = strtoll(line + 13, NULL, 10);
	}
	if (file != NULL)
		fclose(file);
	return kib > 0 ? kib : 0;
}

static void doctor_sys_huge_pages(struct doctor_facts *facts, const char *root)
{
	long long kib = facts->is_any_huge_page ? doctor_sys_huge_page_kib(root)
						: (long long)facts->huge_page_bytes / 1024;

	if (kib <= 0)
		return;
	facts->huge_page_bytes = kib * 1024;
	facts->huge_pages_free =
		doctor_sys_number(root, "/sys/kernel/mm/hugepages/hugepages-%lldkB/free_hugepages",
				  kib);
	facts->huge_pages_all =
		doctor_sys_number(root, "/sys/kernel/mm/hugepages/hugepages-%lldkB/nr_hugepages",
				  kib);
}

#define DOCTOR_INODES_MAX 4096

/* The inodes of the daemon's sockets, ascending order not kept. How many; -1: they may not be looked at. */
static int doctor_sys_inodes(const struct doctor_facts *facts, const char *root,
			     unsigned long inodes[DOCTOR_INODES_MAX])
{
	char path[PATH_MAX], target[64];
	const struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%" PRId64 "/fd", root, facts->pid);
	dir = opendir(path);
	if (dir == NULL)
		return -1;
	while ((entry = readdir(dir)) != NULL && count < DOCTOR_INODES_MAX) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (len < 0)
			continue;
		target[len] = '\0';
		if (sscanf(target, "socket:[%lu]", &inodes[count]) == 1)
			count++;
	}
	closedir(dir);
	return count;
}

/* "0100007F:1D2F", or the same of IPv6: words of the machine's byte order, in hexadecimal. */
static bool doctor_proc_address(const char *text, struct doctor_port *port)
{
	unsigned words[4], number;

	if (strlen(text) == 13 && sscanf(text, "%8X:%4X", &words[0], &number) == 2) {
		port->is_loopback = (ntohl(words[0]) >> 24) == 127;
		inet_ntop(AF_INET, words, port->address, sizeof(port->address));
	} else if (strlen(text) == 37 && sscanf(text, "%8X%8X%8X%8X:%4X", &words[0], &words[1],
						&words[2], &words[3], &number) == 5) {
		port->is_loopback = memcmp(words, &in6addr_loopback, sizeof(words)) == 0;
		inet_ntop(AF_INET6, words, port->address, sizeof(port->address));
	} else {
		return false;
	}
	port->port = (int)number;
	return true;
}

static bool doctor_is_rail_port(const struct doctor_facts *facts, const struct doctor_port *port)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		if (facts->rails[i].port == port->port &&
		    strcmp(facts->rails[i].address, port->address) == 0)
			return true;
	}
	return false;
}

static void doctor_sys_ports_of(struct doctor_facts *facts, const char *root, const char *table,
				const unsigned long *inodes, int inode_count)
{
	char path[PATH_MAX], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/%" PRId64 "/net/%s", root, facts->pid, table);
	file = fopen(path, "re");
	if (file == NULL)
		return;
	facts->are_ports_read = true;
	while (fgets(line, sizeof(line), file) != NULL) {
		struct doctor_port port = {0};
		char local[48];
		unsigned long inode;
		unsigned state;

		if (sscanf(line, " %*d: %47s %*s %X %*s %*s %*s %*d %*d %lu", local, &state,
			   &inode) != 3 ||
		    state != 0x0a || !doctor_proc_address(local, &port) ||
		    doctor_is_rail_port(facts, &port) || facts->port_count == DOCTOR_PORTS_MAX)
			continue;
		for (int i = 0; i < inode_count; i++) {
			if (inodes[i] != inode)
				continue;
			facts->ports[facts->port_count++] = port;
			break;
		}
	}
	fclose(file);
}

static void doctor_sys_ports(struct doctor_facts *facts, const char *root)
{
	static unsigned long inodes[DOCTOR_INODES_MAX];
	int count;

	if (facts->pid <= 0) {
		doctor_text_set(facts->ports_why, sizeof(facts->ports_why),
				"the daemon does not say its process");
		return;
	}
	count = doctor_sys_inodes(facts, root, inodes);
	if (count < 0) {
		doctor_text_set(facts->ports_why, sizeof(facts->ports_why),
				"only root may look at the daemon's sockets");
		return;
	}
	doctor_sys_ports_of(facts, root, "tcp", inodes, count);
	doctor_sys_ports_of(facts, root, "tcp6", inodes, count);
}

void doctor_sys_read(struct doctor_facts *facts, const char *root)
{
	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];

		if (rail->interface[0] != '\0')
			doctor_sys_interface(rail, root);
		if (rail->rdma.device[0] != '\0')
			doctor_sys_rdma_read(rail, root);
	}
	doctor_sys_huge_pages(facts, root);
	doctor_sys_ports(facts, root);
}

void doctor_sys_count(struct doctor_facts *facts, const char *root, bool is_second)
{
	/* Packets that nobody wanted (rx_dropped) are no fault of the cable. */
	static const char *const names[] = {"rx_crc_errors",    "rx_frame_errors", "rx_errors",
					    "rx_fifo_errors",   "rx_over_errors",  "tx_errors",
					    "tx_carrier_errors"};

	for (size_t i = 0; i < facts->rail_count; i++) {
		struct doctor_rail *rail = &facts->rails[i];

		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]) && rail->is_read; n++) {
			int64_t value = doctor_sys_number(root, "/sys/class/net/%s/statistics/%s",
							  rail->interface, names[n]);

			if (value >= 0)
				doctor_counter_note(rail->counters, DOCTOR_COUNTERS_MAX,
						    &rail->counter_count, names[n], (uint64_t)value,
						    is_second);
		}
		if (rail->rdma.device[0] != '\0')
			doctor_sys_rdma_count(rail, root, is_second);
	}
}
