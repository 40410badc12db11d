/* SPDX-License-Identifier: BSD-2-Clause */
/* What mrcctl doctor judges by: facts from the daemon's answers, and from the frames of switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "mrcctl_doctor_daemon.h"
#include "mrcctl_doctor_judge.h"
#include "mrcctl_doctor_probe.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- from the daemon ---- */

#define ABOUT(at, offset)                                                                          \
	"{\"host\":\"a\",\"version\":\"0.1.0\",\"kernel\":\"6.1\",\"rdma_core\":\"44.0\",\"pid\":" \
	"7,\"draining_ns\":5,"                                                                     \
	"\"memlock_bytes\":8388608,\"may_lock\":false,\"may_bind\":true,\"huge_page_bytes\":0,"    \
	"\"arena_bytes\":1000,\"rails\":[{\"name\":\"r0\",\"type\":\"auto\",\"interface\":"        \
	"\"eth0\","                                                                                \
	"\"address\":\"10.0.0.1\",\"driver\":\"mlx5_core\",\"firmware\":\"28.1\","                 \
	"\"speed_configured_bits_per_s\":0,\"receive_bytes\":16}],\"peers\":[{\"name\":\"b\","     \
	"\"wall_apart_ns\":-5,\"clock\":{\"offset_ns\":" offset ",\"error_ns\":3,\"at_ns\":" at    \
	"}}]}"
#define RAILS(losses)                                                                             \
	"[{\"name\":\"r0\",\"type\":\"verbs\",\"interface\":\"\",\"address\":\"\",\"port\":7471," \
	"\"carrier\":true,\"drained\":false,\"carrier_losses\":" losses                           \
	",\"verbs\":{\"device\":\"mlx5_0\",\"device_port\":1,\"gid\":\"::1\",\"gid_index\":3,"    \
	"\"locked_bytes\":24,\"link_layer\":\"RoCE\"}}]"
#define PATHS(resent)                                                                             \
	"[{\"peer\":\"b\",\"rail\":\"r0\",\"address\":\"[fd00::2]:7471\",\"state\":\"GOOD\","     \
	"\"reason\":\"none\",\"link\":\"verbs\",\"degraded\":false,\"connected\":true,"           \
	"\"state_age_ns\":5,\"frames_resent\":" resent                                            \
	",\"about\":{\"rail\":\"r5\",\"mtu\":9000,\"mac\":\"02:00:00:00:00:0a\",\"version\":\"0." \
	"2\"}},"                                                                                  \
	"{\"peer\":\"nobody\",\"rail\":\"r0\",\"state\":\"GOOD\"},7]"

static void answers_load(struct doctor_answers *answers, json_t *kept[4], const char *about,
			 const char *rails, const char *paths)
{
	kept[0] = json_loads(about, 0, NULL);
	kept[1] = json_loads(rails, 0, NULL);
	kept[2] = json_loads("[{\"name\":\"b\",\"state\":\"connected\",\"draining\":true,"
			     "\"epoch\":1}]",
			     0, NULL);
	kept[3] = json_loads(paths, 0, NULL);
	for (int i = 0; i < 4; i++)
		assert_non_null(kept[i]);
	*answers = (struct doctor_answers){kept[0], kept[1], kept[2], kept[3]};
}

static void the_daemons_answers_become_facts(void **state)
{
	struct doctor_answers answers;
	struct doctor_facts facts;
	json_t *kept[4];

	doctor_facts_init(&facts);
	answers_load(&answers, kept, ABOUT("1000", "10"), RAILS("2"), PATHS("4"));
	doctor_daemon_read(&facts, &answers);
	for (int i = 0; i < 4; i++)
		json_decref(kept[i]);
	answers_load(&answers, kept, ABOUT("3000", "40"), RAILS("3"), PATHS("9"));
	doctor_daemon_read_again(&facts, &answers);
	for (int i = 0; i < 4; i++)
		json_decref(kept[i]);

	assert_int_equal(facts.rail_count, 1);
	assert_int_equal(facts.path_count,
			 1); /* one of a peer that is not there, one that is none */
	assert_int_equal(facts.pid, 7);
	assert_int_equal(facts.draining_ns, 5);
	assert_true(facts.peers[0].is_draining);
	assert_int_equal(facts.memlock_bytes, 8388608);
	assert_int_equal(facts.memlock_need_bytes, 1024);
	assert_int_equal(facts.may_lock, 0);
	assert_string_equal(facts.rails[0].interface, "eth0");
	assert_string_equal(facts.rails[0].address, "10.0.0.1");
	assert_string_equal(facts.rails[0].type, "auto");
	assert_string_equal(facts.rails[0].rdma.device, "mlx5_0");
	assert_string_equal(facts.rails[0].rdma.link_layer, "Ethernet");
	assert_int_equal(facts.rails[0].rdma.gid_index, 3);
	assert_int_equal(facts.rails[0].counters[0].first, 2);
	assert_int_equal(facts.rails[0].counters[0].second, 3);
	assert_string_equal(facts.paths[0].address, "fd00::2");
	assert_string_equal(facts.paths[0].health, "");
	assert_true(facts.paths[0].about.is_known);
	assert_string_equal(facts.paths[0].about.rail, "r5");
	assert_int_equal(facts.paths[0].about.mtu, 9000);
	assert_true(facts.paths[0].about.mac.is_known);
	assert_int_equal(facts.paths[0].about.mac.bytes[5], 10);
	assert_int_equal(facts.paths[0].counters[0].second - facts.paths[0].counters[0].first, 5);
	assert_int_equal(facts.peers[0].has_clock, DOCTOR_YES);
	assert_int_equal(facts.peers[0].clock_apart_ns, 2000);
	assert_int_equal(facts.peers[0].clock_offset_ns[1] - facts.peers[0].clock_offset_ns[0], 30);
	assert_int_equal(facts.peers[0].wall_apart_ns, -5);
	doctor_facts_fini(&facts);
}

static void answers_of_any_shape_are_borne(void **state)
{
	static const char *const shapes[] = {
		"{}",
		"[]",
		"{\"rails\":7,\"peers\":[[],3,{\"name\":5}]}",
		"[{},[],null,{\"name\":null,\"verbs\":[]}]",
		"[{\"name\":\"x\",\"verbs\":{\"device\":1}}]",
		"[{\"peer\":\"b\",\"rail\":\"x\",\"address\":\"\",\"about\":{}}]",
	};

	for (size_t i = 0; i < COUNT(shapes); i++) {
		json_t *json = json_loads(shapes[i], 0, NULL);
		struct doctor_answers answers = {json, json, json, json};
		struct doctor_report report;
		struct doctor_facts facts;

		assert_non_null(json);
		doctor_facts_init(&facts);
		doctor_daemon_read(&facts, &answers);
		doctor_daemon_read_again(&facts, &answers);
		doctor_judge(&facts, &report);
		doctor_report_fini(&report);
		doctor_facts_fini(&facts);
		json_decref(json);
	}
}

/* ---- addresses ---- */

static void an_address_of_ipv6_may_name_its_interface(void **state)
{
	union doctor_address address;
	socklen_t len;

	assert_true(doctor_address_parse("fe80::1%lo", &address, &len));
	assert_int_equal(len, sizeof(address.v6));
	assert_int_equal(address.v6.sin6_scope_id, if_nametoindex("lo"));
	assert_true(doctor_address_parse("fd00::1", &address, &len));
	assert_int_equal(address.v6.sin6_scope_id, 0);
	assert_false(doctor_address_parse("host.example%lo", &address, &len));
	assert_false(doctor_address_parse("", &address, &len));
}

/* ---- LLDP ---- */

static void an_lldp_frame_names_its_switch(void **state)
{
	static const uint8_t frame[] = {
		0x01, 0x80, 0xc2, 0,    0,      0x0e, 2, 0,    0,
		0,    0,    9,    0x88, 0xcc,                        /* Ethernet */
		0x02, 0x07, 4,    0x02, 0,      0,    0, 0x12, 0x34, /* chassis: a MAC */
		0x04, 0x03, 7,    'e',  '1',                         /* port */
		0x06, 0x02, 0,    120,                               /* time to live */
		0x0a, 0x04, 's',  'w',  '\033', '1',                 /* name */
		0,    0,
	};
	char text[DOCTOR_TEXT_BYTES];

	assert_true(doctor_lldp_chassis(frame, sizeof(frame), text));
	assert_string_equal(text, "02:00:00:00:12:34 sw?1");
	/* However short it is cut: no more is read than there is. */
	for (size_t len = 0; len < sizeof(frame); len++) {
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, frame, len);
		if (len >= 23)
			assert_true(doctor_lldp_chassis(copy, len, text));
		else
			assert_false(doctor_lldp_chassis(copy, len, text));
		free(copy);
	}
}

/* ---- PFC ---- */

/* As `dcb` hears it of an interface with PFC on priority 3: the name, and of what IEEE 802.1Q has, ETS and PFC. */
struct dcb_answer {
	struct nlmsghdr head;
	struct dcbmsg dcb;
	struct nlattr name;
	char name_text[8];
	struct nlattr ieee;
	struct nlattr ets;
	struct ieee_ets ets_value;
	uint8_t ets_pad[(4 - sizeof(struct ieee_ets) % 4) % 4];
	struct nlattr pfc;
	struct ieee_pfc pfc_value;
};

static void pfc_is_read_from_the_kernels_answer(void **state)
{
	struct dcb_answer answer = {
		.head = {.nlmsg_len = sizeof(answer), .nlmsg_type = RTM_GETDCB},
		.dcb = {.cmd = DCB_CMD_IEEE_GET},
		.name = {sizeof(answer.name) + 5, DCB_ATTR_IFNAME},
		.name_text = "eth0",
		.ieee = {sizeof(answer) - offsetof(struct dcb_answer, ieee),
			 DCB_ATTR_IEEE | NLA_F_NESTED},
		.ets = {sizeof(answer.ets) + sizeof(answer.ets_value), DCB_ATTR_IEEE_ETS},
		.ets_value = {.ets_cap = 8},
		.pfc = {sizeof(answer.pfc) + sizeof(answer.pfc_value), DCB_ATTR_IEEE_PFC},
		.pfc_value = {.pfc_cap = 8, .pfc_en = 1 << 3},
	};

	assert_int_equal(doctor_pfc_priorities(&answer, sizeof(answer)), 1 << 3);
	answer.pfc_value.pfc_en = 0;
	assert_int_equal(doctor_pfc_priorities(&answer, sizeof(answer)), 0);
	/* However short it is cut, and where an interface has no PFC: unknown, and not off. */
	for (size_t len = 0; len < sizeof(answer); len += 4) {
		struct dcb_answer *copy = malloc(len + 1);

		memcpy(copy, &answer, len);
		if (len >= sizeof(copy->head))
			copy->head.nlmsg_len = (uint32_t)len;
		assert_int_equal(doctor_pfc_priorities(copy, len), DOCTOR_UNKNOWN);
		free(copy);
	}
	answer.pfc.nla_type = DCB_ATTR_IEEE_PEER_PFC;
	assert_int_equal(doctor_pfc_priorities(&answer, sizeof(answer)), DOCTOR_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_daemons_answers_become_facts),
		cmocka_unit_test(answers_of_any_shape_are_borne),
		cmocka_unit_test(an_address_of_ipv6_may_name_its_interface),
		cmocka_unit_test(an_lldp_frame_names_its_switch),
		cmocka_unit_test(pfc_is_read_from_the_kernels_answer),
	};

	return cmocka_run_group_tests_name("doctor_facts", tests, NULL, NULL);
}
