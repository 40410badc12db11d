/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of the daemon as mrcctl shows them: rails and paths with and without RDMA devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcctl_keys.h"
#include "mrcctl_reload.h"
#include "mrcctl_show.h"

#define RAIL_TCP                                                                              \
	"{\"name\":\"r1\",\"type\":\"tcp\",\"interface\":\"eth1\",\"address\":\"10.0.1.1\","  \
	"\"port\":7471,\"carrier\":true,\"drained\":false,\"speed_bits_per_s\":100000000000," \
	"\"bytes_sent\":1024,\"bytes_received\":0,\"carrier_losses\":0,\"strangers\":0,"      \
	"\"paths\":1,\"paths_good\":1}"
/* `verbs`: the members of that object. */
#define RAIL_VERBS(verbs)                                                                       \
	"{\"name\":\"r0\",\"type\":\"verbs\",\"interface\":\"eth0\",\"address\":\"10.0.0.1\","  \
	"\"port\":7471,\"carrier\":true,\"drained\":false,\"speed_bits_per_s\":200000000000,"   \
	"\"bytes_sent\":0,\"bytes_received\":0,\"carrier_losses\":0,\"strangers\":0,\"paths\":" \
	"1,\"paths_good\":1,\"verbs\":{" verbs "}}"
#define PATH(rail, more)                                                                           \
	"{\"peer\":\"b\",\"rail\":\"" rail "\",\"address\":\"10.0.0.2:7471\",\"state\":\"good\","  \
	"\"reason\":\"none\",\"state_age_ns\":2000000000,\"rtt_ns\":31400,\"rate_bytes_per_s\":0," \
	"\"bytes_in_flight\":0,\"window_bytes\":4096,\"bytes_sent\":0,\"bytes_received\":0,"       \
	"\"frames_resent\":0,\"bad_count\":0" more "}"

static void shows(void (*show)(const json_t *, FILE *, bool), const char *json, bool has_colour,
		  const char *want)
{
	json_error_t error;
	json_t *result = json_loads(json, 0, &error);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (result == NULL)
		fail_msg("not JSON: %s", error.text);
	assert_non_null(out);
	show(result, out, has_colour);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
	json_decref(result);
}

static void rails_without_devices_are_one_table(void **state)
{
	shows(mrcctl_show_rails, "[" RAIL_TCP "]", false,
	      "RAIL  TYPE  INTERFACE  ADDRESS        STATE  GOOD PATHS     SPEED   SENT  RECEIVED  "
	      "CARRIER LOST  STRANGERS\n"
	      "r1    tcp   eth1       10.0.1.1:7471  up            1/1  100 Gb/s  1 KiB       0 B  "
	      "           0          0\n");
}

static void rails_with_devices_have_a_second_table(void **state)
{
	shows(mrcctl_show_rails,
	      "[" RAIL_VERBS("\"device\":\"mlx5_0\",\"device_port\":1,"
			     "\"gid\":\"::ffff:10.0.0.1\",\"gid_index\":3,"
			     "\"link_layer\":\"RoCE\",\"active_mtu\":4096,"
			     "\"speed_bits_per_s\":200000000000,\"width\":4,"
			     "\"port_state\":\"PORT_ACTIVE\",\"receive_entries\":1024,"
			     "\"receive_posted\":1008,\"work_requests\":5,\"completions\":5,"
			     "\"flushes\":16,\"errors\":1,"
			     "\"last_error\":\"transport retry counter exceeded\"") "," RAIL_TCP
										    "]",
	      false,
	      "RAIL  TYPE   INTERFACE  ADDRESS        STATE  GOOD PATHS     SPEED   SENT  RECEIVED "
	      " CARRIER LOST  STRANGERS\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s    0 B       0 B "
	      "            0          0\n"
	      "r1    tcp    eth1       10.0.1.1:7471  up            1/1  100 Gb/s  1 KiB       0 B "
	      "            0          0\n"
	      "\n"
	      "RAIL  DEVICE    LINK LAYER  PORT     MTU     SPEED  WIDTH  GID [INDEX]           "
	      "RECEIVES  FLUSHES  ERRORS  LAST ERROR\n"
	      "r0    mlx5_0/1  RoCE        ACTIVE  4096  200 Gb/s     4x  ::ffff:10.0.0.1 [3]  "
	      "1008/1024       16       1  transport retry counter exceeded\n");
}

/* The device has gone, or has no address: what is not known is no number that somebody believes. */
static void rails_show_what_a_device_does_not_tell(void **state)
{
	shows(mrcctl_show_rails,
	      "[" RAIL_VERBS("\"device\":\"rxe0\",\"device_port\":1,\"port_state\":\"down\"") "]",
	      false,
	      "RAIL  TYPE   INTERFACE  ADDRESS        STATE  GOOD PATHS     SPEED  SENT  RECEIVED  "
	      "CARRIER LOST  STRANGERS\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s   0 B       0 B  "
	      "           0          0\n"
	      "\n"
	      "RAIL  DEVICE  PORT  MTU  SPEED  WIDTH  GID [INDEX]  RECEIVES  FLUSHES  ERRORS\n"
	      "r0    rxe0/1  down    -      -      -  none              0/0        0       0\n");
}

static void rails_say_why_they_have_no_device(void **state)
{
	shows(mrcctl_show_rails,
	      "[" RAIL_VERBS("\"missing\":\"no device of interface eth0\",\"flushes\":0,"
			     "\"errors\":2,\"last_error\":\"port is down\"") "]",
	      false,
	      "RAIL  TYPE   INTERFACE  ADDRESS        STATE  GOOD PATHS     SPEED  SENT  RECEIVED  "
	      "CARRIER LOST  STRANGERS\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s   0 B       0 B  "
	      "           0          0\n"
	      "\n"
	      "RAIL  DEVICE  FLUSHES  ERRORS  LAST ERROR\n"
	      "r0    none          0       2  no device of interface eth0\n");
}

static void rails_show_a_gid_with_its_index_if_it_has_one(void **state)
{
	shows(mrcctl_show_rails,
	      "[" RAIL_VERBS(
		      "\"device\":\"siw0\",\"device_port\":1,\"gid\":\"fe80::1\","
		      "\"port_state\":\"PORT_ACTIVE\"") "," RAIL_VERBS("\"device\":\"rxe0\","
								       "\"device_port\":1,"
								       "\"gid\":\"fe80::1\","
								       "\"gid_index\":0,"
								       "\"port_state\":"
								       "\"PORT_ACTIVE\"") "," RAIL_VERBS("\"device\":\"rxe1\",\"device_port\":1,\"gid\":\"::\","
													 "\"port_state\":\"PORT_ACTIVE\"") "]",
	      false,
	      "RAIL  TYPE   INTERFACE  ADDRESS        STATE  GOOD PATHS     SPEED  SENT  RECEIVED  "
	      "CARRIER LOST  STRANGERS\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s   0 B       0 B  "
	      "           0          0\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s   0 B       0 B  "
	      "           0          0\n"
	      "r0    verbs  eth0       10.0.0.1:7471  up            1/1  200 Gb/s   0 B       0 B  "
	      "           0          0\n"
	      "\n"
	      "RAIL  DEVICE  PORT    MTU  SPEED  WIDTH  GID [INDEX]  RECEIVES  FLUSHES  ERRORS\n"
	      "r0    siw0/1  ACTIVE    -      -      -  fe80::1           0/0        0       0\n"
	      "r0    rxe0/1  ACTIVE    -      -      -  fe80::1 [0]       0/0        0       0\n"
	      "r0    rxe1/1  ACTIVE    -      -      -  none              0/0        0       0\n");
}

static void a_port_or_queue_pair_in_another_state_draws_the_eye(void **state)
{
#define PORT(state)                                                                 \
	"[" RAIL_VERBS("\"device\":\"rxe0\",\"device_port\":1,\"gid\":\"fe80::1\"," \
		       "\"port_state\":\"" state "\"") "]"
#define QP(state) "[" PATH("r0", ",\"verbs\":{\"qp_number\":17,\"qp_state\":\"" state "\"}") "]"
	static const struct {
		void (*show)(const json_t *, FILE *, bool);
		const char *json;
		bool is_well;
	} rows[] = {
		{mrcctl_show_rails, PORT("PORT_ACTIVE"), true},
		{mrcctl_show_rails, PORT("ACTIVE"), true},
		{mrcctl_show_rails, PORT("PORT_DOWN"), false},
		{mrcctl_show_paths, QP("RTS"), true},
		{mrcctl_show_paths, QP("err"), false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *result = json_loads(rows[i].json, 0, NULL);
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		assert_non_null(result);
		rows[i].show(result, out, true);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(strstr(text, "\033[31m") == NULL, rows[i].is_well);
		free(text);
		json_decref(result);
	}
}

static void paths_without_a_link_have_no_column_for_it(void **state)
{
	shows(mrcctl_show_paths, "[" PATH("r0", "") "]", false,
	      "PEER  RAIL  ADDRESS        STATE  FOR      RTT  RATE  IN FLIGHT  WINDOW  SENT  "
	      "RECEIVED  MOVED  FAILURES\n"
	      "b     r0    10.0.0.2:7471  good   2 s  31.4 us     -        0 B   4 KiB   0 B       "
	      "0 B      0         0\n");
}

static void paths_show_their_kind_of_link_and_queue_pair(void **state)
{
	shows(mrcctl_show_paths,
	      "[" PATH(
		      "r0",
		      ",\"link\":\"verbs\",\"verbs\":{\"qp_number\":17,"
		      "\"peer_qp_number\":4711,\"qp_state\":\"RTS\",\"send_depth\":2048,"
		      "\"inline_bytes\":220,\"flushes\":1,\"errors\":2,"
		      "\"last_error\":\"remote access error\"}") "," PATH("r1",
									  ",\"link\":"
									  "\"tcp\"") "," PATH("r2",
											      "") "]",
	      false,
	      "PEER  RAIL  ADDRESS        LINK   STATE  FOR      RTT  RATE  IN FLIGHT  WINDOW  "
	      "SENT  RECEIVED  MOVED  FAILURES\n"
	      "b     r0    10.0.0.2:7471  verbs  good   2 s  31.4 us     -        0 B   4 KiB   0 "
	      "B       0 B      0         0\n"
	      "b     r1    10.0.0.2:7471  tcp    good   2 s  31.4 us     -        0 B   4 KiB   0 "
	      "B       0 B      0         0\n"
	      "b     r2    10.0.0.2:7471         good   2 s  31.4 us     -        0 B   4 KiB   0 "
	      "B       0 B      0         0\n"
	      "\n"
	      "PEER  RAIL  ADDRESS        QP  PEER'S QP  QP STATE  DEPTH  INLINE  FLUSHES  ERRORS  "
	      "LAST ERROR\n"
	      "b     r0    10.0.0.2:7471  17       4711  RTS        2048   220 B        1       2  "
	      "remote access error\n");
}

#define CLIENT(more)                                                                             \
	"{\"name\":\"x\",\"pid\":7,\"uid\":8,\"channels\":1,\"listeners\":0,"                    \
	"\"sends_outstanding\":2,\"send_arena_bytes\":1048576,\"landing_arena_bytes\":1048576,"  \
	"\"landing_used_bytes\":0,\"submissions\":5,\"completions\":4,\"in_flight_bytes\":3072," \
	"\"quota\":{" more "}}"

static void clients_show_what_their_quota_bounds(void **state)
{
	shows(mrcctl_show_clients, "[" CLIENT("\"weight\":100") "]", false,
	      "CLIENT  PID  UID  CHANNELS  SERVICES  SENDING  SEND ARENA  LANDING ARENA  "
	      "LANDING USED  IN FLIGHT  SUBMITTED  COMPLETED\n"
	      "x         7    8         1         0        2       1 MiB          1 MiB  "
	      "         0 B      3 KiB          5          4\n");
	shows(mrcctl_show_clients,
	      "[" CLIENT("\"weight\":300,\"in_flight_bytes_max\":4096,"
			 "\"rate_bits_per_s\":1000000000,\"waits\":9") "]",
	      false,
	      "CLIENT  PID  UID  CHANNELS  SERVICES  SENDING  SEND ARENA  LANDING ARENA  "
	      "LANDING USED       IN FLIGHT    RATE  WEIGHT  HELD BACK  SUBMITTED  COMPLETED\n"
	      "x         7    8         1         0        2       1 MiB          1 MiB  "
	      "         0 B  3 KiB of 4 KiB  1 Gb/s     300          9          5          4\n");
}

static void paths_say_whether_they_are_encrypted(void **state)
{
	shows(mrcctl_show_paths, "[" PATH("r1", ",\"link\":\"tcp\",\"encrypted\":true") "]", false,
	      "PEER  RAIL  ADDRESS        LINK            STATE  FOR      RTT  RATE  IN FLIGHT  "
	      "WINDOW  SENT  RECEIVED  MOVED  FAILURES\n"
	      "b     r1    10.0.0.2:7471  tcp, encrypted  good   2 s  31.4 us     -        0 B   "
	      "4 KiB   0 B       0 B      0         0\n");
}

static void keys_show_who_lives_by_them(void **state)
{
	shows(mrcctl_show_keys,
	      "[{\"peer\":\"b\",\"key\":\"0123456789ab\",\"use\":\"proved first\",\"paths\":3,"
	      "\"paths_of\":4,\"file\":\"/etc/mrcd/new\"},"
	      "{\"peer\":\"b\",\"key\":\"ba9876543210\",\"use\":\"removed\",\"paths\":1,"
	      "\"paths_of\":4,\"file\":\"\"}]",
	      false,
	      "PEER  KEY           USE           PATHS  FILE\n"
	      "b     0123456789ab  proved first    3/4  /etc/mrcd/new\n"
	      "b     ba9876543210  removed         1/4\n");
}

static void shows_reload(const char *json, const char *want)
{
	json_t *result = json_loads(json, 0, NULL);
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(result);
	assert_non_null(out);
	mrcctl_reload_show(result, out);
	fclose(out);
	json_decref(result);
	assert_string_equal(text, want);
}

static void a_reload_says_what_it_did(void **state)
{
	shows_reload("{\"file\":\"/etc/f\",\"check\":false,\"unchanged\":{\"rails\":2,\"peers\":1},"
		     "\"pending\":[\"rail r1: is being closed\"],\"changes\":["
		     "{\"action\":\"removed\",\"what\":\"rail\",\"name\":\"r1\",\"detail\":\"\"},"
		     "{\"action\":\"changed\",\"what\":\"quotas\",\"name\":\"\",\"detail\":\"\"},"
		     "{\"action\":\"waits for a restart\",\"what\":\"key\",\"name\":\"host\","
		     "\"detail\":\"z, was a\"}]}",
		     "/etc/f: read again\n"
		     "  removed             rail r1\n"
		     "  changed             quotas\n"
		     "  waits for a restart key host (z, was a)\n"
		     "  unchanged           2 rails, 1 peer\n"
		     "  not done yet        rail r1: is being closed\n");
	shows_reload("{\"file\":\"/etc/f\",\"check\":true,\"unchanged\":{\"rails\":1,\"peers\":2},"
		     "\"pending\":[],\"changes\":["
		     "{\"action\":\"added\",\"what\":\"rail\",\"name\":\"r1\",\"detail\":\"\"}]}",
		     "/etc/f: right; nothing was changed, a reload would do this:\n"
		     "  added               rail r1\n"
		     "  unchanged           1 rail, 2 peers\n");
	shows_reload("{\"file\":\"/etc/f\",\"check\":true,\"unchanged\":{\"rails\":1,\"peers\":2},"
		     "\"pending\":[],\"changes\":[]}",
		     "/etc/f: right; nothing was changed, and nothing would be\n"
		     "  unchanged           1 rail, 2 peers\n");
	shows_reload("{\"file\":\"/etc/f\",\"check\":false,\"unchanged\":{\"rails\":0,\"peers\":0},"
		     "\"pending\":[],\"changes\":[]}",
		     "/etc/f: read again; nothing is different\n"
		     "  unchanged           0 rails, 0 peers\n");
}

#define HEALTH(score, state, why)                             \
	",\"health\":{\"score\":" score ",\"state\":\"" state \
	"\",\"age_ns\":90000000000,\"why\":\"" why "\"}"

static void paths_show_their_health_and_what_is_against_it(void **state)
{
	shows(mrcctl_show_paths,
	      "[" PATH("r0", HEALTH("100", "good", "")) "," PATH("r1", HEALTH("30", "degraded",
									      "1.2% frames come "
									      "damaged")) "]",
	      false,
	      "PEER  RAIL  ADDRESS        STATE  FOR  HEALTH      RTT  RATE  IN FLIGHT  WINDOW  "
	      "SENT  "
	      "RECEIVED  MOVED  FAILURES  TROUBLE\n"
	      "b     r0    10.0.0.2:7471  good   2 s     100  31.4 us     -        0 B   4 KiB   0 "
	      "B  "
	      "     0 B      0         0\n"
	      "b     r1    10.0.0.2:7471  good   2 s      30  31.4 us     -        0 B   4 KiB   0 "
	      "B  "
	      "     0 B      0         0  degraded for 1m 30s: 1.2% frames come damaged\n");
}

static void rails_show_their_health(void **state)
{
	shows(mrcctl_show_rails,
	      "[{\"name\":\"r1\",\"carrier\":true,\"paths\":1,\"paths_good\":1" HEALTH(
		      "12", "failing", "left service 3 times within two hours") "}]",
	      false,
	      "RAIL  ADDRESS  STATE  HEALTH  GOOD PATHS  SPEED  SENT  RECEIVED  CARRIER LOST  "
	      "STRANGERS  TROUBLE\n"
	      "r1    :0       up         12         1/1      -   0 B       0 B             0       "
	      "  "
	      " 0  failing for 1m 30s: left service 3 times within two hours\n");
}

/* A card without counters has no word there; one with some draws the eye when they are not 0. */
static void rails_show_what_their_cards_found_damaged(void **state)
{
	shows(mrcctl_show_rails,
	      "[{\"name\":\"r0\",\"carrier\":true,\"card\":{\"rx_crc_errors\":12},"
	      "\"card_damaged\":12},{\"name\":\"r1\",\"carrier\":true}]",
	      false,
	      "RAIL  ADDRESS  STATE  GOOD PATHS  SPEED  SENT  RECEIVED  CARRIER LOST  CARD ERRORS  "
	      "STRANGERS\n"
	      "r0    :0       up            0/0      -   0 B       0 B             0           12  "
	      "        0\n"
	      "r1    :0       up            0/0      -   0 B       0 B             0               "
	      "        0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rails_without_devices_are_one_table),
		cmocka_unit_test(rails_with_devices_have_a_second_table),
		cmocka_unit_test(rails_show_what_a_device_does_not_tell),
		cmocka_unit_test(rails_say_why_they_have_no_device),
		cmocka_unit_test(rails_show_a_gid_with_its_index_if_it_has_one),
		cmocka_unit_test(a_port_or_queue_pair_in_another_state_draws_the_eye),
		cmocka_unit_test(paths_without_a_link_have_no_column_for_it),
		cmocka_unit_test(paths_show_their_kind_of_link_and_queue_pair),
		cmocka_unit_test(clients_show_what_their_quota_bounds),
		cmocka_unit_test(paths_say_whether_they_are_encrypted),
		cmocka_unit_test(keys_show_who_lives_by_them),
		cmocka_unit_test(a_reload_says_what_it_did),
		cmocka_unit_test(paths_show_their_health_and_what_is_against_it),
		cmocka_unit_test(rails_show_their_health),
		cmocka_unit_test(rails_show_what_their_cards_found_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
