/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes with a link and does not come back, and links that are owed. In a
 * network namespace of its own, with a veth pair made by ip(8). What it needs
 * and does not get, it names, and exits 77.
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc_base.h"
#include "mrcd_interface.h"
#include "mrcd_rtnl.h"

static char dir[64], why[MRCD_INTERFACE_WHY_BYTES];
static int link_answers; /* to the next RTM_SETLINK that is to be played; 0: the kernel does */
static bool is_link_set; /* and it was done nevertheless */

int __real_mrcd_rtnl_ask(struct mrcd_rtnl_request *request, mrcd_rtnl_fn look, void *context);
int __wrap_mrcd_rtnl_ask(struct mrcd_rtnl_request *request, mrcd_rtnl_fn look, void *context);
int __wrap_mrcd_rtnl_ask(struct mrcd_rtnl_request *request, mrcd_rtnl_fn look, void *context)
{
	bool is_change = request->nlh.nlmsg_type == RTM_SETLINK && request->body.link.ifi_change;

	if (!is_change || link_answers == 0)
		return __real_mrcd_rtnl_ask(request, look, context);
	if (is_link_set)
		__real_mrcd_rtnl_ask(request, look, context);
	is_link_set = false; /* once */
	return link_answers;
}

static int run(const char *command)
{
	return system(command);
}

static void ip(const char *arguments)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s", arguments);
	if (run(command) != 0)
		fail_msg("%s", command);
}

/* As one that is known by its name alone; good until the next call. */
static struct mrcd_interface *link_of(const char *name)
{
	static struct mrcd_interface link;

	link.ifindex = 0;
	snprintf(link.name, sizeof(link.name), "%s", name);
	return &link;
}

static bool is_up_now(const char *name)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &ifr), 0);
	close(fd);
	return ifr.ifr_flags & IFF_UP;
}

static bool is_up(void)
{
	return is_up_now("r0");
}

static int set_up(void **state)
{
	link_answers = 0;
	strcpy(dir, "/tmp/mrcd-interface-XXXXXX");
	assert_non_null(mkdtemp(dir));
	ip("link add r0 address 02:00:00:00:00:0a type veth peer name p0");
	ip("link add r1 type veth peer name p1");
	ip("link set p0 up");
	ip("link set p1 up");
	ip("link set r0 up");
	ip("link set r1 up");
	ip("addr add 10.1.0.1/24 dev r0");
	ip("addr add 10.2.0.1/24 dev r1");
	why[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	run(command);
	run("ip link del r0; ip link del r1");
	return 0;
}

/* ---- what would be lost ---- */

/* Made; named by what is in the way; and asked for: the kernel has it before, and after the link was down. */
static const struct {
	const char *make;
	const char *want; /* NULL: nothing is in the way */
	const char *show;
	bool do_keep_addresses;
} things[] = {
	{"ip route add 10.9.0.0/24 via 10.1.0.9", "the route to 10.9.0.0/24 by r0",
	 "ip route show 10.9.0.0/24", false},
	{"ip route add default via 10.1.0.9", "the route to default by r0", "ip route show default",
	 false},
	{"ip route add 10.9.0.0/24 dev r0 table 101", "the route to 10.9.0.0/24 in table 101 by r0",
	 "ip route show table 101", false},
	{"ip route add 10.9.0.0/24 nexthop via 10.1.0.8 nexthop via 10.1.0.9",
	 "the route to 10.9.0.0/24 by r0", "ip route show 10.9.0.0/24", false},
	{"ip -6 route add fd09::/64 dev r0", "the route to fd09::/64 by r0",
	 "ip -6 route show fd09::/64", false},
	{"ip nexthop add id 7 via 10.1.0.9 dev r0", "the nexthop object 7 by r0",
	 "ip nexthop show id 7 2>/dev/null", false},
	{"ip addr add fd01::1/64 dev r0 nodad", "the address fd01::1 of r0 (sysctl",
	 "ip -6 addr show dev r0 to fd01::1", false},
	{"ip addr add fd01::1/64 dev r0 nodad valid_lft 900 preferred_lft 900",
	 "the address fd01::1 of r0", "ip -6 addr show dev r0 to fd01::1", true},
	{"ip addr add fe80::77/64 dev r0 nodad", "the address fe80::77 of r0",
	 "ip -6 addr show dev r0 to fe80::77", true},
	{"ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:99 dev r0 nud permanent",
	 "the permanent neighbour 10.1.0.9 of r0", "ip neigh show 10.1.0.9 dev r0", false},
	{"ip neigh add proxy 10.1.0.9 dev r0", "the proxy neighbour 10.1.0.9 of r0",
	 "ip neigh show proxy dev r0", false},
	{"true", NULL, "ip route show 10.1.0.0/24", false},
	{"true", NULL, "ip addr show dev r0 to 10.1.0.1", false},
	{"ip addr add 10.1.0.7/32 dev r0 valid_lft 900 preferred_lft 900", NULL,
	 "ip addr show dev r0 to 10.1.0.7", false},
	{"ip addr add fd01::1/64 dev r0 nodad", NULL, "ip -6 addr show dev r0 to fd01::1", true},
	{"ip route add 10.9.0.0/24 via 10.2.0.9", NULL, "ip route show 10.9.0.0/24", false},
	{"ip neigh add 10.2.0.9 lladdr 02:00:00:00:00:99 dev r1 nud permanent", NULL,
	 "ip neigh show 10.2.0.9", false},
};

static bool has(const char *show)
{
	char command[256];

	snprintf(command, sizeof(command), "test -n \"$(%s)\"", show);
	return run(command) == 0;
}

static void what_the_kernel_forgets_is_in_the_way_and_nothing_else(void **state)
{
	for (size_t i = 0; i < MRC_ARRAY_LEN(things); i++) {
		int r;

		set_up(state);
		run(things[i].do_keep_addresses
			    ? "echo 1 > /proc/sys/net/ipv6/conf/r0/keep_addr_on_down"
			    : "echo 0 > /proc/sys/net/ipv6/conf/r0/keep_addr_on_down");
		if (run(things[i].make) != 0 || !has(things[i].show))
			fail_msg("%s: it is not there", things[i].make);
		r = mrcd_interface_check("r0", why);
		if (r != (things[i].want ? -EBUSY : 0) ||
		    (things[i].want && !strstr(why, things[i].want)))
			fail_msg("%s: %d, \"%s\"", things[i].make, r, why);
		ip("link set r0 down");
		ip("link set r0 up");
		if (has(things[i].show) == !!things[i].want)
			fail_msg("%s: the kernel has %s it", things[i].make,
				 things[i].want ? "kept" : "forgotten");
		tear_down(state);
	}
	set_up(state);
}

/* It goes before what the interface has, both ways. */
static void addresses_are_kept_as_for_all_interfaces(void **state)
{
	ip("addr add fd01::1/64 dev r0 nodad");
	run("echo 1 > /proc/sys/net/ipv6/conf/r0/keep_addr_on_down");
	run("echo -1 > /proc/sys/net/ipv6/conf/all/keep_addr_on_down");
	assert_int_equal(mrcd_interface_check("r0", why), -EBUSY);
	run("echo 0 > /proc/sys/net/ipv6/conf/r0/keep_addr_on_down");
	run("echo 1 > /proc/sys/net/ipv6/conf/all/keep_addr_on_down");
	assert_int_equal(mrcd_interface_check("r0", why), 0);
	run("echo 0 > /proc/sys/net/ipv6/conf/all/keep_addr_on_down");
	assert_int_equal(mrcd_interface_check("r0", why), -EBUSY);
}

static void a_vlan_above_is_in_the_way(void **state)
{
	if (run("ip link add link r0 name r0.5 type vlan id 5 2>/dev/null") != 0) {
		printf("no VLANs in this kernel\n");
		skip();
	}
	assert_int_equal(mrcd_interface_check("r0", why), 0); /* it is down */
	ip("link set r0.5 up");
	assert_int_equal(mrcd_interface_check("r0", why), -EBUSY);
	assert_non_null(strstr(why, "the VLAN r0.5 is on r0"));
	assert_int_equal(mrcd_interface_check("r1", why), 0);
}

static void what_is_down_already_is_left_so(void **state)
{
	ip("link set r0 down");
	assert_int_equal(mrcd_interface_check("r0", why), -ENETDOWN);
	assert_string_equal(why, "r0 is down already");
	assert_int_equal(mrcd_interface_check("none", why), -ENODEV);
}

/* ---- links that are owed ---- */

static void a_link_is_owed_until_it_is_up(void **state)
{
	struct mrcd_interface owed;

	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), 0);
	assert_false(is_up());
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	assert_string_equal(owed.name, "r0");
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), 0);
	assert_true(is_up());
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
}

static void an_up_that_fails_keeps_the_note_and_can_be_tried_again(void **state)
{
	struct mrcd_interface owed;

	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), 0);
	link_answers = -EIO;
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), -EIO);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	/* One note is all there is room for. */
	assert_int_equal(mrcd_interface_down(dir, link_of("r1"), why), -EBUSY);
	assert_non_null(strstr(why, "r0, which an earlier drill took down"));
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	assert_string_equal(owed.name, "r0");
	link_answers = 0;
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), 0);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
}

static void a_hand_is_as_good_and_needs_no_right_of_ours(void **state)
{
	struct mrcd_interface owed;

	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), 0);
	link_answers = -EPERM;
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), -EPERM);
	ip("link set r0 up");
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), 0);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
}

static void a_down_that_is_refused_leaves_no_note(void **state)
{
	struct mrcd_interface owed;

	link_answers = -EPERM;
	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), -EPERM);
	assert_true(is_up());
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
	link_answers = 0;
	assert_int_equal(mrcd_interface_down("/nowhere", link_of("r0"), why), -ENOENT);
	assert_true(is_up());
	assert_int_equal(mrcd_interface_down(dir, link_of("none"), why), -ENODEV);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
}

/* Its answer is lost, and so is that of taking it up again: it is owed. */
static void a_down_that_was_done_though_it_failed_is_owed(void **state)
{
	struct mrcd_interface owed;

	link_answers = -ENOBUFS;
	is_link_set = true;
	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), -ENOBUFS);
	assert_false(is_up());
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	link_answers = 0;
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), 0);
	assert_true(is_up());
}

static void a_link_that_has_gone_is_owed_no_more(void **state)
{
	struct mrcd_interface owed;

	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), 0);
	ip("link del r0");
	assert_int_equal(mrcd_interface_up(dir, link_of("r0")), -ENODEV);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
	ip("link add r0 type veth peer name p0");
}

/* And another one has its name now, which is down by somebody's wish. */
static void a_link_that_is_renamed_while_it_is_down_is_found(void **state)
{
	struct mrcd_interface link = *link_of("r0"), owed;

	assert_int_equal(mrcd_interface_down(dir, &link, why), 0);
	ip("link set r0 name r9");
	ip("link set r1 down");
	ip("link set r1 name r0");
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	assert_string_equal(owed.name, "r9");
	assert_true(mrcd_interface_is_same(&owed, &link));
	assert_int_equal(mrcd_interface_down(dir, link_of("r0"), why), -EBUSY);
	assert_non_null(strstr(why, "ip link set r9 up"));
	link_answers = -EIO;
	assert_int_equal(mrcd_interface_up(dir, &link), -EIO);
	assert_string_equal(link.name, "r9");
	link_answers = 0;
	/* As the next run does, which has the note and nothing else. */
	assert_int_equal(mrcd_interface_up(dir, &owed), 0);
	assert_true(is_up_now("r9"));
	assert_false(is_up_now("r0"));
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
	ip("link set r0 name r1");
	ip("link set r9 down");
	ip("link set r9 name r0");
}

/* It is not taken for the one that had its name before. */
static void a_new_link_of_the_same_name_is_another_one(void **state)
{
	struct mrcd_interface link = *link_of("r0"), owed;

	assert_int_equal(mrcd_interface_down(dir, &link, why), 0);
	ip("link del r0");
	ip("link add r0 type veth peer name p0");
	assert_int_equal(mrcd_interface_up(dir, &link), -ENODEV);
	assert_false(is_up());
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
}

static void a_note_of_an_earlier_version_has_a_name_only(void **state)
{
	struct mrcd_interface owed;
	char path[96];
	FILE *file;

	ip("link set r0 down");
	snprintf(path, sizeof(path), "%s/drill.link", dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("r0\n", file);
	fclose(file);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 1);
	assert_string_equal(owed.name, "r0");
	assert_int_equal(mrcd_interface_up(dir, &owed), 0);
	assert_true(is_up());
}

static void a_note_without_a_name_is_none(void **state)
{
	struct mrcd_interface owed;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/drill.link", dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(mrcd_interface_owed(dir, &owed), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_int_equal(mrcd_interface_owed(dir, &owed), -ELOOP);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_the_kernel_forgets_is_in_the_way_and_nothing_else,
					  tear_down),
		claim(addresses_are_kept_as_for_all_interfaces),
		claim(a_vlan_above_is_in_the_way),
		claim(what_is_down_already_is_left_so),
		claim(a_link_is_owed_until_it_is_up),
		claim(an_up_that_fails_keeps_the_note_and_can_be_tried_again),
		claim(a_hand_is_as_good_and_needs_no_right_of_ours),
		claim(a_down_that_is_refused_leaves_no_note),
		claim(a_down_that_was_done_though_it_failed_is_owed),
		claim(a_link_that_has_gone_is_owed_no_more),
		claim(a_link_that_is_renamed_while_it_is_down_is_found),
		claim(a_new_link_of_the_same_name_is_another_one),
		claim(a_note_of_an_earlier_version_has_a_name_only),
		claim(a_note_without_a_name_is_none),
	};

	if (unshare(CLONE_NEWNET) < 0) {
		printf("skipped: wants a network namespace: %s\n", strerror(errno));
		return 77;
	}
	if (system("ip link add t0 type veth peer name t1 && ip link del t0") != 0) {
		printf("skipped: wants ip(8) of iproute2 and veth interfaces\n");
		return 77;
	}
	if (access("/proc/sys/net/ipv6/conf/all/keep_addr_on_down", W_OK) < 0) {
		printf("skipped: wants IPv6, and its sysctls writable\n");
		return 77;
	}
	return cmocka_run_group_tests_name("interface", tests, NULL, NULL);
}
