/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In a network namespace of its own, with a veth pair made by ip(8). What it
 * needs and does not get, it names, and exits 77.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_nic_ask.h"

static void ip(const char *arguments)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s", arguments);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	ip("link add r0 address 02:00:00:00:00:0a type veth peer name r1");
	return 0;
}

static int tear_down(void **state)
{
	ip("link del r0");
	return 0;
}

static const char *own(const struct mrcd_nic_place *place)
{
	static char text[INET6_ADDRSTRLEN];
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&place->own;
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&place->own;

	if (place->own_len == 0)
		return "";
	inet_ntop(place->own.ss_family,
		  place->own.ss_family == AF_INET ? (const void *)&in4->sin_addr
						  : (const void *)&in6->sin6_addr,
		  text, sizeof(text));
	return text;
}

static void rails_are_where_they_are_said_to_be(void **state)
{
	struct mrcd_nic_place places[] = {
		{.interface = "r0"},
		{.address = "10.1.0.1"},
		{.interface = "r1", .address = "10.1.0.1"},
		{.interface = "none"},
		{.address = "10.1.0.2"},
		{.address = "nonsense"},
		{.device = "none0"},
		{.address = "fd00::1"},
	};
	static const char *const names[] = {"r0", "r0", "r1", "", "", "", "", "r1"};
	static const char *const owns[] = {"10.1.0.1", "10.1.0.1", "fd00::1", "",
					   "",         "",         "",        "fd00::1"};

	ip("addr add 10.1.0.1/24 dev r0");
	ip("addr add fd00::1/64 dev r1 nodad");
	assert_int_equal(mrcd_nic_ask_places(places, MRC_ARRAY_LEN(places)), 0);
	for (size_t i = 0; i < MRC_ARRAY_LEN(places); i++) {
		assert_string_equal(places[i].name, names[i]);
		assert_string_equal(own(&places[i]), owns[i]);
		assert_int_equal(places[i].ifindex, names[i][0] ? if_nametoindex(names[i]) : 0);
	}
	/* And what was there before is gone with the interface. */
	ip("link set r0 name r2");
	assert_int_equal(mrcd_nic_ask_places(places, 1), 0);
	assert_string_equal(places[0].name, "");
	assert_int_equal(places[0].ifindex, 0);
	assert_int_equal(places[0].own_len, 0);
	ip("link set r2 name r0");
}

static void an_ipv4_address_goes_before_ipv6_and_link_local_is_the_last(void **state)
{
	struct mrcd_nic_place place = {.interface = "r0"};

	assert_int_equal(mrcd_nic_ask_places(&place, 1), 0);
	assert_int_equal(place.own_len, 0);
	ip("addr add fe80::7/64 dev r0 nodad");
	assert_int_equal(mrcd_nic_ask_places(&place, 1), 0);
	assert_string_equal(own(&place), "fe80::7");
	assert_int_equal(((struct sockaddr_in6 *)&place.own)->sin6_scope_id, place.ifindex);
	ip("addr add fd00::7/64 dev r0 nodad");
	assert_int_equal(mrcd_nic_ask_places(&place, 1), 0);
	assert_string_equal(own(&place), "fd00::7");
	ip("addr add 10.1.0.7/24 dev r0");
	ip("addr add 10.1.0.8/24 dev r0");
	assert_int_equal(mrcd_nic_ask_places(&place, 1), 0);
	assert_string_equal(own(&place), "10.1.0.7");
}

static void a_card_says_what_it_is(void **state)
{
	struct mrcd_nic_card card, again;

	ip("link set r0 mtu 1400");
	memset(&card, 0xff, sizeof(card));
	mrcd_nic_ask_card("r0", &card);
	assert_int_equal(card.mtu, 1400);
	assert_string_equal(card.driver, "veth");
	assert_memory_equal(card.mac, "\x02\0\0\0\0\x0a", sizeof(card.mac));
	assert_true(card.speed_bits_per_s >= 1000000000);
	mrcd_nic_ask_card("r0", &again);
	assert_memory_equal(&card, &again, sizeof(card));
	mrcd_nic_ask_card("none", &card);
	memset(&again, 0, sizeof(again));
	assert_memory_equal(&card, &again, sizeof(card));
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(rails_are_where_they_are_said_to_be),
		claim(an_ipv4_address_goes_before_ipv6_and_link_local_is_the_last),
		claim(a_card_says_what_it_is),
	};

	if (unshare(CLONE_NEWNET) < 0) {
		printf("skipped: wants a network namespace: %s\n", strerror(errno));
		return 77;
	}
	if (system("ip link add t0 type veth peer name t1 && ip link del t0") != 0) {
		printf("skipped: wants ip(8) of iproute2 and veth interfaces\n");
		return 77;
	}
	return cmocka_run_group_tests_name("nic_ask", tests, NULL, NULL);
}
