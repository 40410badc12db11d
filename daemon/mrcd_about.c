/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_about.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mrcd_memfd.h"
#include "mrcd_peer.h"
#include "mrcd_tcp_sock.h"
#include "mrcd_worker.h"

#define MRCD_ABOUT_VERSION_BYTES 32

/* ---- this process ---- */

/* Does it have this capability now? */
static bool mrcd_about_may(unsigned capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* INT64_MAX stands for no limit: JSON has no larger whole number. */
static json_int_t mrcd_about_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur > INT64_MAX)
		return INT64_MAX;
	return (json_int_t)limit.rlim_cur;
}

/*
 * rdma-core has no call that tells its version, but puts it at the end of its
 * library's name: libibverbs.so.1.14.44.0 is of 44.0. "": there is none.
 */
static const char *mrcd_about_rdma_core(char text[MRCD_ABOUT_VERSION_BYTES])
{
	void *symbol = dlsym(RTLD_DEFAULT, "ibv_get_device_list");
	char *name, *at;
	Dl_info info;

	text[0] = '\0';
	if (symbol == NULL || dladdr(symbol, &info) == 0)
		return text;
	name = realpath(info.dli_fname, NULL);
	/* The last but one dot from the end. */
	at = name != NULL ? strstr(name, ".so.") : NULL;
	if (at != NULL) {
		const char *dots[2] = {NULL, NULL};

		for (at += 3; *at != '\0'; at++) {
			if (*at != '.')
				continue;
			dots[0] = dots[1];
			dots[1] = at;
		}
		if (dots[0] != NULL)
			snprintf(text, MRCD_ABOUT_VERSION_BYTES, "%.31s", dots[0] + 1);
	}
	free(name);
	return text;
}

/* ---- rails ---- */

/* The interface it is on now, also when the configuration names an address or a device. */
static const char *mrcd_about_interface(const struct mrcd_rail *rail, char name[IF_NAMESIZE])
{
	if (rail->conf->interface[0] != '\0')
		return rail->conf->interface;
	name[0] = '\0';
	if (rail->ifindex != 0 && if_indextoname(rail->ifindex, name) == NULL)
		name[0] = '\0';
	return name;
}

/* The address it listens on; "": it has none now. */
static const char *mrcd_about_address(const struct mrcd_rail *rail,
				      char text[MRCD_ADDRESS_TEXT_BYTES])
{
	struct sockaddr_storage address;
	socklen_t len;

	if (mrcd_tcp_own_address(rail->conf, &address, &len) < 0)
		return rail->conf->address;
	mrcd_tcp_address_text(&address, len, text);
	return text;
}

static void mrcd_about_driver(const char *interface, struct ethtool_drvinfo *info)
{
	struct ifreq ifr = {.ifr_data = (void *)info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*info = (struct ethtool_drvinfo){.cmd = ETHTOOL_GDRVINFO};
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		*info = (struct ethtool_drvinfo){0};
	info->driver[sizeof(info->driver) - 1] = '\0';
	info->fw_version[sizeof(info->fw_version) - 1] = '\0';
	if (fd >= 0)
		close(fd);
}

static const char *mrcd_about_type(const struct mrcd_conf_rail *conf)
{
	switch (conf->type) {
	case MRCD_RAIL_TCP:
		return "tcp";
	case MRCD_RAIL_VERBS:
		return "verbs";
	case MRCD_RAIL_AUTO:
		break;
	}
	return "auto";
}

static json_t *mrcd_about_rail_json(const struct mrcd_rail *rail)
{
	const struct mrcd_conf_rail *conf = rail->conf;
	char name[IF_NAMESIZE], address[MRCD_ADDRESS_TEXT_BYTES];
	const char *interface = mrcd_about_interface(rail, name);
	struct ethtool_drvinfo driver;

	mrcd_about_driver(interface, &driver);
	return json_pack("{s:s s:s s:s s:s s:s s:s s:I s:I}", "name", conf->name, "type",
			 mrcd_about_type(conf), "interface", interface, "address",
			 mrcd_about_address(rail, address), "driver", driver.driver, "firmware",
			 driver.fw_version, "speed_configured_bits_per_s",
			 (json_int_t)conf->speed_bits_per_s, "receive_bytes",
			 (json_int_t)conf->receive_entries * (json_int_t)conf->receive_entry_bytes);
}

/* ---- peers ---- */

static json_t *mrcd_about_peer_json(const struct mrcd_worker *worker, struct mrcd_peer *peer)
{
	json_t *object = json_pack("{s:s}", "name", mrcd_peer_name(peer));
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(peer), &info);
	if (info.is_clock_known)
		json_object_set_new(object, "clock",
				    json_pack("{s:I s:I s:I}", "offset_ns",
					      (json_int_t)info.clock_offset_ns, "error_ns",
					      (json_int_t)info.clock_error_ns, "at_ns",
					      (json_int_t)(worker->now_ns - info.clock_age_ns)));
	return object;
}

json_t *mrcd_about_json(struct mrcd_worker *worker)
{
	const struct mrcd_conf *conf = worker->conf;
	bool is_any_page = conf->clients.huge_page_bytes == MRCD_HUGE_PAGES_ANY;
	json_t *rails = json_array(), *peers = json_array();
	struct utsname host = {0};
	char rdma_core[MRCD_ABOUT_VERSION_BYTES];

	uname(&host);
	for (uint32_t i = 0; i < worker->rail_count; i++)
		json_array_append_new(rails, mrcd_about_rail_json(&worker->rails[i]));
	for (uint32_t i = 0; i < worker->peer_count; i++)
		json_array_append_new(peers, mrcd_about_peer_json(worker, worker->peers[i]));
	return json_pack("{s:s s:s s:s s:s s:i s:I s:b s:b s:I s:b s:I s:o s:o}", "host",
			 conf->host, "version", MRC_VERSION, "kernel", host.release, "rdma_core",
			 mrcd_about_rdma_core(rdma_core), "pid", (int)getpid(), "memlock_bytes",
			 mrcd_about_memlock(), "may_lock", (int)mrcd_about_may(CAP_IPC_LOCK),
			 "may_bind", (int)mrcd_about_may(CAP_NET_RAW), "huge_page_bytes",
			 is_any_page ? 0 : (json_int_t)conf->clients.huge_page_bytes,
			 "huge_pages_any", (int)is_any_page, "arena_bytes",
			 (json_int_t)conf->clients.send_arena_bytes +
				 (json_int_t)conf->clients.landing_arena_bytes,
			 "rails", rails, "peers", peers);
}
