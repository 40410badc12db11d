/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In a network namespace of its own, with veth pairs made by ip(8). What it
 * needs and does not get, it names, and exits 77.
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_carrier.h"

#define GUARD_S 20

struct scene {
	struct mrcd_conf_rail confs[3];
	struct mrcd_worker worker;
	struct mrcd_carrier *carrier;
	uint32_t ups[3], downs[3], refreshes[3], changes[3], words[3];
	bool is_late;
};

static struct scene *scene; /* of the running test: what the carrier calls has no other way to it */

uint64_t mrcd_worker_now(struct mrcd_worker *worker)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	worker->now_ns = (uint64_t)ts.tv_sec * MRC_S + (uint64_t)ts.tv_nsec;
	return worker->now_ns;
}

void mrcd_rail_on_interface(struct mrcd_rail *rail)
{
	scene->words[rail->index]++;
}

void mrcd_rail_on_carrier(struct mrcd_rail *rail, bool is_up)
{
	assert_int_not_equal(rail->is_carrier_up, is_up);
	rail->is_carrier_up = is_up;
	if (is_up)
		scene->ups[rail->index]++;
	else
		scene->downs[rail->index]++;
}

static void on_refresh(struct mrcd_rail *rail)
{
	scene->refreshes[rail->index]++;
}

static void on_link_changed(struct mrcd_rail *rail)
{
	scene->changes[rail->index]++;
}

static const struct mrcd_rail_ops ops = {
	.kind = "none",
	.refresh = on_refresh,
	.link_changed = on_link_changed,
};

static void ip(const char *arguments)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s", arguments);
	assert_int_equal(system(command), 0);
}

static void on_guard(evutil_socket_t fd, short what, void *context)
{
	scene->is_late = true;
}

/*
 * The kernel takes a moment: IFF_RUNNING follows the carrier by a work queue,
 * which a busy machine runs late. What a claim begins with is waited for.
 */
static void settle(const char *interface, bool is_running)
{
	uint64_t deadline_ns = mrcd_worker_now(&scene->worker) + GUARD_S * MRC_S;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	do {
		assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &ifr), 0);
		if (mrcd_worker_now(&scene->worker) > deadline_ns)
			fail_msg("%s: never %s", interface, is_running ? "running" : "down");
	} while (!!(ifr.ifr_flags & IFF_RUNNING) != is_running);
	close(fd);
}

#define until(condition)                                                               \
	do {                                                                           \
		const struct timeval guard_span = {.tv_sec = GUARD_S};                 \
		struct event *guard = evtimer_new(scene->worker.base, on_guard, NULL); \
                                                                                       \
		event_add(guard, &guard_span);                                         \
		while (!(condition)) {                                                 \
			event_base_loop(scene->worker.base, EVLOOP_ONCE);              \
			if (scene->is_late)                                            \
				fail_msg("never came: %s", #condition);                \
		}                                                                      \
		event_free(guard);                                                     \
	} while (0)

static void rail_add(const char *interface, const char *address)
{
	uint32_t index = scene->worker.rail_count++;
	struct mrcd_conf_rail *conf = &scene->confs[index];

	snprintf(conf->interface, sizeof(conf->interface), "%s", interface);
	snprintf(conf->address, sizeof(conf->address), "%s", address);
	scene->worker.rails[index] = (struct mrcd_rail){.ops = &ops,
							.conf = conf,
							.worker = &scene->worker,
							.index = index};
}

/* Two pairs; ours are r0 (with 10.1.0.1) and r1, the other ends are p0 and p1. */
static int set_up(void **state)
{
	scene = calloc(1, sizeof(*scene));
	if (!scene)
		return -1;
	scene->worker.base = event_base_new();
	ip("link add r0 type veth peer name p0");
	ip("link add r1 type veth peer name p1");
	ip("addr add 10.1.0.1/24 dev r0");
	ip("link set r0 up");
	ip("link set p0 up");
	ip("link set r1 up");
	ip("link set p1 up");
	settle("r0", true);
	settle("r1", true);
	rail_add("r0", "");
	rail_add("r1", "");
	return 0;
}

static void start(void)
{
	struct mrcd_worker *worker = &scene->worker;

	assert_int_equal(mrcd_nics_new(worker, &worker->nics), 0);
	assert_int_equal(mrcd_carrier_new(worker, &worker->carrier), 0);
}

static int tear_down(void **state)
{
	mrcd_carrier_free(scene->worker.carrier);
	mrcd_nics_free(scene->worker.nics);
	event_base_free(scene->worker.base);
	free(scene);
	scene = NULL;
	system("ip link del p0 2>/dev/null; ip link del p1 2>/dev/null");
	return 0;
}

static void state_at_start_is_known_at_once(void **state)
{
	ip("link set p1 down");
	settle("r1", false);
	rail_add("r2", "");
	start();
	assert_true(scene->worker.rails[0].is_carrier_up);
	assert_false(scene->worker.rails[1].is_carrier_up);
	assert_false(scene->worker.rails[2].is_carrier_up);
	assert_int_equal(scene->worker.rails[0].ifindex, if_nametoindex("r0"));
	assert_int_equal(scene->worker.rails[2].ifindex, 0);
}

static void a_new_mtu_is_told_to_its_rail_and_is_no_loss(void **state)
{
	start();
	until(scene->words[1] == 1); /* what its card is */
	ip("link set r1 mtu 1400");
	until(scene->changes[1] >= 1);
	until(scene->words[1] == 2); /* peers are told, too */
	assert_int_equal(scene->worker.rails[1].nic.card.mtu, 1400);
	assert_int_equal(scene->changes[0], 0);
	assert_int_equal(scene->downs[1], 0);
}

static void losing_and_getting_a_carrier_is_told(void **state)
{
	start();
	for (uint32_t i = 1; i <= 3; i++) {
		ip("link set p0 down");
		settle("r0", false);
		/* Asked, it is true before the event was read; and nobody is told by asking. */
		assert_false(mrcd_carrier_ask(&scene->worker.rails[0]));
		assert_int_equal(scene->downs[0], i - 1); /* nobody was told by asking */
		until(scene->downs[0] == i);
		ip("link set p0 up");
		until(scene->ups[0] == i);
		assert_true(mrcd_carrier_ask(&scene->worker.rails[0]));
	}
	assert_int_equal(scene->downs[1] + scene->ups[1], 0);
}

static void a_loss_that_is_over_when_read_is_told_all_the_same(void **state)
{
	start();
	ip("link set r0 down");
	ip("link set r0 up");
	until(scene->downs[0] >= 1 && scene->worker.rails[0].is_carrier_up);
}

static void an_interface_that_comes_back_is_found_by_its_name(void **state)
{
	unsigned ifindex_old, ifindex_new;

	start();
	ifindex_old = scene->worker.rails[0].ifindex;
	ip("link del r0");
	until(scene->downs[0] == 1);
	until(scene->worker.rails[0].ifindex == 0);
	ip("link add r0 type veth peer name p0");
	ip("link set r0 up");
	ip("link set p0 up");
	until(scene->ups[0] == 1);
	ifindex_new = scene->worker.rails[0].ifindex;
	assert_int_not_equal(ifindex_new, ifindex_old);
	assert_int_equal(ifindex_new, if_nametoindex("r0"));
	assert_true(scene->refreshes[0] >= 2);
}

static void an_interface_that_is_renamed_is_another_one(void **state)
{
	start();
	ip("link set r0 down");
	ip("link set r0 name elsewhere");
	ip("link set elsewhere up");
	until(scene->downs[0] == 1 && scene->worker.rails[0].ifindex == 0);
	ip("link set elsewhere down");
	ip("link set elsewhere name r0");
	ip("link set r0 up");
	until(scene->ups[0] == 1);
}

static void a_rail_by_address_is_where_its_address_is(void **state)
{
	rail_add("", "10.1.0.1");
	start();
	assert_int_equal(scene->worker.rails[2].ifindex, if_nametoindex("r0"));
	assert_true(scene->worker.rails[2].is_carrier_up);
	ip("link set p0 down");
	until(scene->downs[2] == 1);
	ip("addr del 10.1.0.1/24 dev r0");
	ip("addr add 10.1.0.1/24 dev r1");
	until(scene->ups[2] == 1);
	assert_int_equal(scene->worker.rails[2].ifindex, if_nametoindex("r1"));
	assert_true(scene->refreshes[2] >= 1);
}

static void messages_that_were_lost_are_made_up_for(void **state)
{
	const int small = 1;

	start();
	/* So little room that the kernel drops nearly all of it. The descriptor is the first one
	 * of its kind that this process has. */
	for (int fd = 3; fd < 32; fd++) {
		int domain = 0;
		socklen_t len = sizeof(domain);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
		    domain == AF_NETLINK)
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	}
	for (int i = 0; i < 20; i++) {
		ip("link set p1 down");
		ip("link set p1 up");
	}
	ip("link set p0 down");
	until(!scene->worker.rails[0].is_carrier_up);
	ip("link set p0 up");
	until(scene->worker.rails[0].is_carrier_up && scene->worker.rails[1].is_carrier_up);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(state_at_start_is_known_at_once),
		claim(a_new_mtu_is_told_to_its_rail_and_is_no_loss),
		claim(losing_and_getting_a_carrier_is_told),
		claim(a_loss_that_is_over_when_read_is_told_all_the_same),
		claim(an_interface_that_comes_back_is_found_by_its_name),
		claim(an_interface_that_is_renamed_is_another_one),
		claim(a_rail_by_address_is_where_its_address_is),
		claim(messages_that_were_lost_are_made_up_for),
	};

	if (unshare(CLONE_NEWNET) < 0) {
		printf("skipped: wants a network namespace: %s\n", strerror(errno));
		return 77;
	}
	if (system("ip link add t0 type veth peer name t1 && ip link del t0") != 0) {
		printf("skipped: wants ip(8) of iproute2 and veth interfaces\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
