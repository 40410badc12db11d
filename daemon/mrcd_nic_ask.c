/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_nic_ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mrcd_resolve.h"

/* ---- where ---- */

/* The interface of a device's port; leaves `name` alone where there is none. */
static void device_interface(const char *device, uint8_t port, char name[IF_NAMESIZE])
{
	char path[256], line[64];
	unsigned long least = ULONG_MAX;
	struct dirent *item;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%.63s/ports/%u/gid_attrs/ndevs", device,
		 port ? port : 1U);
	dir = opendir(path);
	if (!dir)
		return;
	/* Names are numbers. VLANs and the like have entries too, behind those of the port itself. */
	while ((item = readdir(dir))) {
		unsigned long index = strtoul(item->d_name, NULL, 10);
		int fd = item->d_name[0] == '.' || index >= least
				 ? -1
				 : openat(dirfd(dir), item->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

		if (fd >= 0)
			close(fd);
		if (n <= 1) /* an entry without an address cannot be read */
			continue;
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (strlen(line) < IF_NAMESIZE) {
			memcpy(name, line, strlen(line) + 1);
			least = index;
		}
	}
	closedir(dir);
}

static bool is_same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(const void *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && !memcmp(&a6->sin6_addr, &b6->sin6_addr, 16);
}

/* The interface that has this address; leaves `name` alone where there is none. */
static void address_interface(const struct ifaddrs *list, const char *text, char name[IF_NAMESIZE])
{
	struct sockaddr_storage address;
	socklen_t address_len;

	if (mrcd_resolve_numeric(text, 0, &address, &address_len) < 0)
		return;
	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!is_same_address(ifa->ifa_addr, &address))
			continue;
		snprintf(name, IF_NAMESIZE, "%s", ifa->ifa_name);
		return;
	}
}

/* The smaller the better; 0: none at all. */
static int address_rank(const struct ifaddrs *ifa, const char *interface)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)ifa->ifa_addr;

	if (!ifa->ifa_addr || strcmp(ifa->ifa_name, interface) != 0)
		return 0;
	if (ifa->ifa_addr->sa_family == AF_INET)
		return 1;
	if (ifa->ifa_addr->sa_family != AF_INET6)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 3 : 2;
}

static void address_first(const struct ifaddrs *list, struct mrcd_nic_place *place)
{
	int best = 0;

	memset(&place->own, 0, sizeof(place->own));
	place->own_len = 0;
	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		int rank = address_rank(ifa, place->name);

		if (!rank || (best && rank >= best))
			continue;
		best = rank;
		place->own_len = ifa->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								     : sizeof(struct sockaddr_in6);
		memcpy(&place->own, ifa->ifa_addr, place->own_len);
	}
}

int mrcd_nic_ask_places(struct mrcd_nic_place *places, uint32_t count)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (uint32_t i = 0; i < count; i++) {
		struct mrcd_nic_place *place = &places[i];

		place->name[0] = '\0';
		if (place->interface[0])
			memcpy(place->name, place->interface, sizeof(place->name));
		else if (place->address[0])
			address_interface(list, place->address, place->name);
		else if (place->device[0])
			device_interface(place->device, place->device_port, place->name);
		place->ifindex = place->name[0] ? if_nametoindex(place->name) : 0;
		if (!place->ifindex)
			place->name[0] = '\0';
		address_first(list, place);
	}
	freeifaddrs(list);
	return 0;
}

/* ---- what ---- */

static bool driver_ask(int fd, const char *interface, void *question)
{
	struct ifreq ifr = {.ifr_data = question};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	return ioctl(fd, SIOCETHTOOL, &ifr) == 0;
}

void mrcd_nic_ask_card(const char *interface, struct mrcd_nic_card *card_out)
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
	static const uint8_t ethernet = ARPHRD_ETHER;
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(card_out, 0, sizeof(*card_out));
	if (fd < 0)
		return;
	if (driver_ask(fd, interface, &settings) &&
	    ethtool_cmd_speed(&settings) != (uint32_t)SPEED_UNKNOWN)
		card_out->speed_bits_per_s = ethtool_cmd_speed(&settings) * 1000000ULL;
	if (driver_ask(fd, interface, &driver)) {
		snprintf(card_out->driver, sizeof(card_out->driver), "%.31s", driver.driver);
		snprintf(card_out->firmware, sizeof(card_out->firmware), "%.31s",
			 driver.fw_version);
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu > 0)
		card_out->mtu = (uint32_t)ifr.ifr_mtu;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && ifr.ifr_hwaddr.sa_family == ethernet)
		memcpy(card_out->mac, ifr.ifr_hwaddr.sa_data, sizeof(card_out->mac));
	close(fd);
}
