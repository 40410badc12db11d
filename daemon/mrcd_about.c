/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_about.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <event2/event_struct.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_drain.h"
#include "mrcd_memfd.h"
#include "mrcd_peer.h"
#include "mrcd_tcp_sock.h"
#include "mrcd_worker.h"

#define MRCD_ABOUT_VERSION_BYTES (MRC_ABOUT_TEXT_MAX + 1)

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
 * library's name: libibverbs.so.1.14.44.0 is of 44.0. "": there is none. Looks
 * at the disk.
 */
static void mrcd_about_rdma_core_find(char text[MRCD_ABOUT_VERSION_BYTES])
{
	void *symbol = dlsym(RTLD_DEFAULT, "ibv_get_device_list");
	char *name, *at;
	Dl_info info;

	text[0] = '\0';
	if (symbol == NULL || dladdr(symbol, &info) == 0)
		return;
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
}

/* Owned by the worker. */
struct mrcd_about {
	struct mrcd_worker *worker; /* the owner */
	int fd; /* ours; a timer that ends in no time to come, but when somebody sets the clock */
	struct event event;
	char rdma_core[MRCD_ABOUT_VERSION_BYTES]; /* what this process runs with */
};

static const char *mrcd_about_rdma_core(const struct mrcd_worker *worker)
{
	return worker->about != NULL ? worker->about->rdma_core : "";
}

/* ---- rails ---- */

/* The interface it is on now, also when the configuration names an address or a device. */
static const char *mrcd_about_interface(const struct mrcd_rail *rail)
{
	return rail->conf->interface[0] != '\0' ? rail->conf->interface : rail->nic.name;
}

/* The address it listens on; "": it has none now. */
static const char *mrcd_about_address(const struct mrcd_rail *rail,
				      char text[MRCD_ADDRESS_TEXT_BYTES])
{
	struct sockaddr_storage address;
	socklen_t len;

	if (mrcd_nic_own_address(rail, &address, &len) < 0)
		return rail->conf->address;
	mrcd_tcp_address_text(&address, len, text);
	return text;
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
	const struct mrcd_nic_card *card = &rail->nic.card;
	char address[MRCD_ADDRESS_TEXT_BYTES];

	mrcd_nic_ask_if_old(rail);
	return json_pack("{s:s s:s s:s s:s s:s s:s s:I s:I}", "name", conf->name, "type",
			 mrcd_about_type(conf), "interface", mrcd_about_interface(rail), "address",
			 mrcd_about_address(rail, address), "driver", card->driver, "firmware",
			 card->firmware, "speed_configured_bits_per_s",
			 (json_int_t)rail->given.speed_bits_per_s, "receive_bytes",
			 (json_int_t)conf->receive_entries * (json_int_t)conf->receive_entry_bytes);
}

/* ---- what peers are told ---- */

/* The time of day less the monotonic clock. Whole milliseconds: the same clock is to give the same number. */
static int64_t mrcd_about_wall_ns(void)
{
	struct timespec day, clock;

	clock_gettime(CLOCK_REALTIME, &day);
	clock_gettime(CLOCK_MONOTONIC, &clock);
	return ((int64_t)(day.tv_sec - clock.tv_sec) * 1000 +
		(day.tv_nsec - clock.tv_nsec + 500000) / 1000000) *
	       1000000;
}

static uint8_t mrcd_about_kind(const struct mrcd_rail *rail)
{
	json_t *object = json_object();
	const char *layer;
	uint8_t kind = MRC_ABOUT_TCP;

	if (rail->ops->describe != NULL)
		rail->ops->describe(rail, object);
	layer = json_string_value(json_object_get(json_object_get(object, "verbs"), "link_layer"));
	for (int i = 0; layer != NULL && i < MRC_ABOUT_KIND_COUNT; i++) {
		if (strcmp(layer, mrc_about_kind_name((uint8_t)i)) == 0)
			kind = (uint8_t)i;
	}
	json_decref(object);
	return kind;
}

static void mrcd_about_take(const struct mrcd_rail *rail, struct mrc_about *about)
{
	const struct mrcd_nic_card *card = &rail->nic.card;
	struct utsname host = {0};

	/* Compared as bytes: what lies between the fields is to be the same each time. */
	memset(about, 0, sizeof(*about));
	uname(&host);
	about->kind = mrcd_about_kind(rail);
	about->wall_ns = mrcd_about_wall_ns();
	about->speed_bits_per_s = card->speed_bits_per_s;
	about->mtu = card->mtu;
	static_assert(sizeof(about->mac) == sizeof(card->mac), "addresses of one size");
	memcpy(about->mac, card->mac, sizeof(about->mac));
	snprintf(about->rail, sizeof(about->rail), "%s", rail->conf->name);
	snprintf(about->version, sizeof(about->version), "%s", MRC_VERSION);
	snprintf(about->kernel, sizeof(about->kernel), "%.63s", host.release);
	snprintf(about->rdma_core, sizeof(about->rdma_core), "%s",
		 mrcd_about_rdma_core(rail->worker));
	snprintf(about->driver, sizeof(about->driver), "%s", card->driver);
	snprintf(about->firmware, sizeof(about->firmware), "%s", card->firmware);
}

static void mrcd_about_give(struct mrcd_peer *peer, uint8_t path_index,
			    const struct mrc_about *about)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_ABOUT,
		.about = {.index = path_index, .about = about},
	};

	mrcd_peer_handle(peer, &ev);
}

void mrcd_about_tell(struct mrcd_peer *peer, uint8_t path_index, const struct mrcd_rail *rail)
{
	struct mrc_about about;

	mrcd_about_take(rail, &about);
	mrcd_about_give(peer, path_index, &about);
}

void mrcd_about_tell_all(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;
	struct mrc_about about;

	mrcd_about_take(rail, &about);
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		struct mrcd_peer *peer = worker->peers[i];
		struct mrc_conn_info info;

		mrc_conn_info(mrcd_peer_conn(peer), &info);
		for (uint8_t n = 0; n < info.path_count; n++) {
			if (mrcd_peer_path_rail(peer, n) == rail)
				mrcd_about_give(peer, n, &about);
		}
		mrcd_peer_pump(peer);
	}
}

json_t *mrcd_about_peer_json(const struct mrc_about *about)
{
	char mac[24] = "";

	for (size_t i = 0; i < sizeof(about->mac); i++) {
		if (about->mac[i] != 0)
			snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", about->mac[0],
				 about->mac[1], about->mac[2], about->mac[3], about->mac[4],
				 about->mac[5]);
	}
	return json_pack("{s:s s:s s:I s:I s:s s:s s:s s:s s:s s:s}", "rail", about->rail, "kind",
			 mrc_about_kind_name(about->kind), "mtu", (json_int_t)about->mtu,
			 "speed_bits_per_s", (json_int_t)about->speed_bits_per_s, "mac", mac,
			 "version", about->version, "kernel", about->kernel, "rdma_core",
			 about->rdma_core, "driver", about->driver, "firmware", about->firmware);
}

/* ---- the clock ---- */

static int mrcd_about_arm(int fd)
{
	const struct itimerspec never = {.it_value = {.tv_sec = INT32_MAX}};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0
		       ? -errno
		       : 0;
}

static void mrcd_about_on_clock(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_about *about = context;
	uint64_t count;

	mrcd_worker_now(about->worker);
	(void)!read(fd, &count, sizeof(count)); /* ECANCELED: it was set */
	mrcd_about_arm(fd);
	for (uint32_t i = 0; i < about->worker->rail_count; i++) {
		if (mrcd_rail_is_there(&about->worker->rails[i]))
			mrcd_about_tell_all(&about->worker->rails[i]);
	}
}

int mrcd_about_new(struct mrcd_worker *worker, struct mrcd_about **about_out)
{
	struct mrcd_about *about = calloc(1, sizeof(*about));
	int r;

	if (about == NULL)
		return -ENOMEM;
	about->worker = worker;
	mrcd_about_rdma_core_find(about->rdma_core);
	about->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	r = about->fd < 0 ? -errno : mrcd_about_arm(about->fd);
	if (r < 0) {
		if (about->fd >= 0)
			close(about->fd);
		free(about);
		return r;
	}
	event_assign(&about->event, worker->base, about->fd, EV_READ | EV_PERSIST,
		     mrcd_about_on_clock, about);
	event_add(&about->event, NULL);
	*about_out = about;
	return 0;
}

void mrcd_about_free(struct mrcd_about *about)
{
	if (about == NULL)
		return;
	event_del(&about->event);
	close(about->fd);
	free(about);
}

/* ---- peers ---- */

/* Any path of it that is known by now: all come from the same host. */
static const struct mrc_about *mrcd_about_heard(struct mrcd_peer *peer)
{
	const struct mrc_about *about = NULL;
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(peer), &info);
	for (uint8_t i = 0; i < info.path_count && about == NULL; i++)
		about = mrc_conn_path_about(mrcd_peer_conn(peer), i);
	return about;
}

static json_t *mrcd_about_clock_json(const struct mrcd_worker *worker, struct mrcd_peer *peer)
{
	json_t *object = json_pack("{s:s}", "name", mrcd_peer_name(peer));
	const struct mrc_about *about = mrcd_about_heard(peer);
	struct mrc_conn_info info;

	mrc_conn_info(mrcd_peer_conn(peer), &info);
	if (!info.is_clock_known)
		return object;
	json_object_set_new(object, "clock",
			    json_pack("{s:I s:I s:I}", "offset_ns",
				      (json_int_t)info.clock_offset_ns, "error_ns",
				      (json_int_t)info.clock_error_ns, "at_ns",
				      (json_int_t)(worker->now_ns - info.clock_age_ns)));
	/* Its day is its monotonic clock and this much; that clock is ours and the offset. */
	if (about != NULL && about->wall_ns != 0)
		json_object_set_new(object, "wall_apart_ns",
				    json_integer((json_int_t)((uint64_t)about->wall_ns +
							      (uint64_t)info.clock_offset_ns -
							      (uint64_t)mrcd_about_wall_ns())));
	return object;
}

json_t *mrcd_about_json(struct mrcd_worker *worker)
{
	const struct mrcd_conf *conf = worker->conf;
	bool is_any_page = conf->clients.huge_page_bytes == MRCD_HUGE_PAGES_ANY;
	json_t *rails = json_array(), *peers = json_array();
	struct utsname host = {0};

	uname(&host);
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			json_array_append_new(rails, mrcd_about_rail_json(&worker->rails[i]));
	}
	for (uint32_t i = 0; i < worker->peer_count; i++)
		json_array_append_new(peers, mrcd_about_clock_json(worker, worker->peers[i]));
	return json_pack("{s:s s:I s:b s:s s:s s:s s:i s:I s:b s:b s:I s:b s:I s:o s:o}", "host",
			 conf->host, "draining_ns", (json_int_t)mrcd_drain_age_ns(worker),
			 "configuration_former", (int)conf->is_former, "version", MRC_VERSION,
			 "kernel", host.release, "rdma_core", mrcd_about_rdma_core(worker), "pid",
			 (int)getpid(), "memlock_bytes", mrcd_about_memlock(), "may_lock",
			 (int)mrcd_about_may(CAP_IPC_LOCK), "may_bind",
			 (int)mrcd_about_may(CAP_NET_RAW), "huge_page_bytes",
			 is_any_page ? 0 : (json_int_t)conf->clients.huge_page_bytes,
			 "huge_pages_any", (int)is_any_page, "arena_bytes",
			 (json_int_t)conf->clients.send_arena_bytes +
				 (json_int_t)conf->clients.landing_arena_bytes,
			 "rails", rails, "peers", peers);
}
