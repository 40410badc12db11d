/* SPDX-License-Identifier: BSD-2-Clause */
/* A rail's device: found, missing, lost, found again. */
#include <sys/resource.h>

#include "verbs_lab.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Rails are not open: a test says first what they find. */
static int set_up(void **state)
{
	lab_new();
	return 0;
}

static int tear_down(void **state)
{
	lab_free();
	return 0;
}

static void open_all(void)
{
	lab_open();
	lab_until(lab_has_devices());
}

static void send_one(uint8_t path)
{
	struct mrcd_link *a = lab->a->paths[path].link;
	uint32_t count = lab->b->paths[path].frame_count;

	lab_post(a, lab_control(a, MRC_WIRE_STATE, 1, 10));
	lab_flush(a);
	lab_until(lab->b->paths[path].frame_count == count + 1);
}

static void async(const char *address, enum ibv_event_type type, int port)
{
	const struct ibv_async_event event = {.event_type = type, .element = {.port_num = port}};

	verbs_fake_async(address, &event);
}

/* ---- finding ---- */

static void without_a_device_verbs_refuses_and_auto_is_tcp(void **state)
{
	verbs_fake_port_remove(lab_addresses[1]);
	verbs_fake_port_remove(lab_addresses[3]);
	lab->conf.rails[2].type = lab->conf.rails[3].type = MRCD_RAIL_AUTO;
	lab_open();
	lab_until(lab_verbs(0)->device && lab_verbs(2)->device && lab_verbs(1)->why[0] &&
		  lab_verbs(3)->why[0]);
	assert_non_null(strstr(lab_verbs(1)->why, "no RDMA device has this address"));
	lab_connect(0);
	lab_until(lab->a->paths[0].failures == 1);
	assert_int_equal(lab->a->paths[0].ups, 0);
	lab_up(1);
	assert_false(lab->a->paths[1].is_direct || lab->b->paths[1].is_direct);
	assert_string_equal(lab->a->paths[1].link->ops->kind, "tcp");
	send_one(1);
	/* It comes: found without anybody's help, and used by the next link. */
	verbs_fake_port("fake1", 1, lab_addresses[1], IBV_TRANSPORT_IB);
	verbs_fake_port("fake2", 1, lab_addresses[3], IBV_TRANSPORT_IB);
	lab_until(lab_has_devices());
	lab_up(0);
	lab_up(1);
	assert_true(lab->a->paths[1].is_direct && lab->b->paths[1].is_direct);
	assert_string_equal(lab->a->paths[1].link->ops->kind, "verbs");
	send_one(1);
}

static void a_rail_without_its_device_does_not_try_to_connect(void **state)
{
	verbs_fake_port_remove(lab_addresses[0]);
	verbs_fake_port_remove(lab_addresses[2]);
	lab->conf.rails[2].type = lab->conf.rails[3].type = MRCD_RAIL_AUTO;
	lab_open();
	/* The other end of auto knows that it has one: else it would have the caller wait. */
	lab_until(lab_verbs(0)->why[0] && lab_verbs(2)->why[0] && lab_verbs(3)->device);
	lab_connect(0);
	assert_int_equal(lab->a->paths[0].failures, 1);
	assert_non_null(strstr(lab->a->paths[0].why, "no RDMA device"));
	/* But for type auto, to which tcp will do. */
	lab_up(1);
	assert_string_equal(lab->b->paths[1].link->ops->kind, "tcp");
}

/* Hosts that start together: tcp would do, but a path stays what it came up as. */
static void auto_does_not_settle_for_tcp_while_a_device_is_being_opened(void **state)
{
	struct lab_path *path = &lab->a->paths[1];

	for (int r = 0; r < 4; r++)
		lab->conf.rails[r].type = MRCD_RAIL_AUTO;
	/* One end is ready before the other. */
	for (int r = 0; r < 4; r += 2)
		assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[r]), 0);
	lab_until(lab_verbs(0)->device && lab_verbs(2)->device);
	verbs_fake_gate(VERBS_FAKE_LISTEN, true);
	for (int r = 1; r < 4; r += 2)
		assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[r]), 0);
	lab_port_learn(1);
	lab_connect(1);
	lab_until(path->failures == 1);
	assert_int_equal(path->ups, 0);
	verbs_fake_gate(VERBS_FAKE_LISTEN, false);
	lab_until(lab_has_devices());
	lab_up(1);
	assert_string_equal(path->link->ops->kind, "verbs");
	/* Neither is, since the devices were lost. */
	verbs_fake_gate(VERBS_FAKE_LISTEN, true);
	for (int r = 2; r < 4; r++)
		async(lab_addresses[r], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(!lab_verbs(2)->device && !lab_verbs(3)->device && path->downs == 1);
	lab_connect(1);
	lab_until(path->failures == 2);
	/* But if that does not end, tcp will do. */
	lab_until(!lab_verbs(2)->upgrade.is_required && !lab_verbs(3)->upgrade.is_required);
	lab_up(1);
	assert_string_equal(path->link->ops->kind, "tcp");
	verbs_fake_gate(VERBS_FAKE_LISTEN, false);
}

static void a_device_is_that_of_the_configuration(void **state)
{
	strcpy(lab->conf.rails[0].device, "fake1");
	strcpy(lab->conf.rails[1].device, "fake1");
	lab->conf.rails[1].device_port = 1;
	strcpy(lab->conf.rails[2].device, "fake0");
	lab->conf.rails[2].device_port = 1;
	lab_open();
	lab_until(lab_verbs(0)->why[0] && lab_verbs(1)->device && lab_verbs(2)->why[0]);
	assert_string_equal(lab_verbs(0)->why, "this address is on device fake0, not on fake1");
	assert_string_equal(lab_verbs(2)->why, "this address is on port 2 of fake0, not on port 1");
}

static void every_step_of_opening_may_fail_and_leaves_nothing(void **state)
{
	static const enum verbs_fake_call calls[] = {
		VERBS_FAKE_CREATE_CHANNEL, VERBS_FAKE_CREATE_ID, VERBS_FAKE_BIND,
		VERBS_FAKE_QUERY_DEVICE,   VERBS_FAKE_ALLOC_PD,  VERBS_FAKE_REG_MR,
		VERBS_FAKE_CREATE_COMP,    VERBS_FAKE_CREATE_CQ, VERBS_FAKE_CREATE_SRQ,
		VERBS_FAKE_POST_SRQ,       VERBS_FAKE_LISTEN,
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(calls); i++) {
		verbs_fake_fail(calls[i], 0, -1, EFAULT);
		assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[0]), 0);
		lab_until(lab_verbs(0)->why[0]);
		lab_until(!mrcd_offload_pending(lab->worker.offload));
		if (calls[i] != VERBS_FAKE_QUERY_DEVICE)
			assert_non_null(strstr(lab_verbs(0)->why, strerror(EFAULT)));
		assert_int_equal(verbs_fake_left(), 0);
		mrcd_rail_verbs_ops.close(&lab->worker.rails[0]);
		verbs_fake_fail(calls[i], 0, 0, 0);
	}
	open_all();
}

static void memory_that_cannot_be_locked_is_explained(void **state)
{
	struct rlimit before, low;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low = before;
	low.rlim_cur = 64 * 1024;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	verbs_fake_fail(VERBS_FAKE_REG_MR, 0, -1, ENOMEM);
	assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[0]), 0);
	lab_until(lab_verbs(0)->why[0]);
	assert_non_null(strstr(lab_verbs(0)->why, "memory of receive entries wants 7"));
	assert_non_null(strstr(lab_verbs(0)->why, " KiB locked, "));
	assert_non_null(strstr(lab_verbs(0)->why,
			       "the limit is 64 KiB: LimitMEMLOCK=infinity in the unit"));
	verbs_fake_fail(VERBS_FAKE_REG_MR, 0, 0, 0);
	lab_until(lab_verbs(0)->device);
	verbs_fake_fail(VERBS_FAKE_REG_MR, 0, -1, ENOMEM);
	lab->worker.rail_count = 1;
	lab_regions_offer();
	lab_until(lab_verbs(0)->last_error[0] && !mrcd_offload_pending(lab->worker.offload));
	assert_non_null(strstr(lab_verbs(0)->last_error, "8192 KiB"));
	assert_non_null(strstr(lab_verbs(0)->last_error, "LimitMEMLOCK=infinity"));
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	lab->worker.rail_count = 4;
}

/* Whether there is none, or one that does not open: it is looked for, less and less often. */
static void a_device_that_does_not_open_is_tried_less_and_less_often(void **state)
{
	verbs_fake_port_remove(lab_addresses[1]);
	verbs_fake_fail(VERBS_FAKE_CREATE_SRQ, 0, -1, ENOMEM);
	for (int r = 0; r < 2; r++)
		assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[r]), 0);
	assert_int_equal(lab_verbs(0)->retry_ns, MRC_S);
	lab_until(lab_verbs(0)->retry_ns == 4 * MRC_S && lab_verbs(1)->retry_ns == 4 * MRC_S);
	lab_until(lab_verbs(0)->retry_ns == 8 * MRC_S);
	lab_until(verbs_fake_calls(VERBS_FAKE_BIND) == 6 &&
		  !mrcd_offload_pending(lab->worker.offload));
	assert_int_equal(lab_verbs(1)->retry_ns, 4 * MRC_S); /* that costs little */
	/* What the kernel says of its address is a reason to look at once. */
	verbs_fake_fail(VERBS_FAKE_CREATE_SRQ, 0, 0, 0);
	lab->worker.rails[0].ops->refresh(&lab->worker.rails[0]);
	assert_non_null(lab_verbs(0)->opening);
	lab_until(lab_verbs(0)->device);
	assert_int_equal(lab_verbs(0)->retry_ns, MRC_S);
}

static void more_entries_than_the_device_has_are_refused(void **state)
{
	lab->conf.rails[0].receive_entries = 100000;
	assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[0]), 0);
	lab_until(lab_verbs(0)->why[0]);
	assert_string_equal(lab_verbs(0)->why,
			    "100256 receive entries are wanted, the device has room for 32768");
	assert_true(lab_verbs(0)->is_found);
}

static void a_rail_closes_while_it_looks_for_its_device(void **state)
{
	for (int i = 0; i < 10; i++) {
		lab_open();
		for (int turn = 0; turn < i; turn++)
			event_base_loop(lab->worker.base, EVLOOP_NONBLOCK);
		for (int r = 0; r < 4; r++)
			mrcd_rail_verbs_ops.close(&lab->worker.rails[r]);
		assert_int_equal(verbs_fake_left(), 0);
	}
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(object, "verbs"), key));
}

static int64_t count_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(object, "verbs"), key));
}

static void people_see_the_device_and_its_queue_pairs(void **state)
{
	json_t *rail = json_object(), *path = json_object(), *missing = json_object();

	verbs_fake_port_remove(lab_addresses[3]);
	lab_open();
	lab_until(lab_verbs(0)->device && lab_verbs(1)->device && lab_verbs(3)->why[0]);
	lab_up(0);
	send_one(0);
	mrcd_rail_verbs_ops.describe(&lab->worker.rails[0], rail);
	assert_string_equal(text_of(rail, "device"), "fake0");
	assert_int_equal(count_of(rail, "device_port"), 1);
	assert_string_equal(text_of(rail, "gid"), "::ffff:127.0.1.1");
	assert_int_equal(count_of(rail, "gid_index"), 1);
	assert_string_equal(text_of(rail, "link_layer"), "RoCE");
	assert_int_equal(count_of(rail, "active_mtu"), 4096);
	assert_int_equal(count_of(rail, "speed_bits_per_s"), 200000000000);
	assert_true(count_of(rail, "locked_bytes") >= count_of(rail, "receive_entries") * 16384);
	assert_int_equal(count_of(rail, "queue_pairs"), 1);
	assert_int_equal(count_of(rail, "sends"), 1);
	lab->a->paths[0].link->ops->describe(lab->a->paths[0].link, path);
	assert_int_equal(count_of(path, "qp_number"), lab_link(lab->a, 0)->number);
	assert_int_equal(count_of(path, "peer_qp_number"), lab_link(lab->b, 0)->number);
	assert_string_equal(text_of(path, "qp_state"), "RTS");
	mrcd_rail_verbs_ops.describe(&lab->worker.rails[3], missing);
	assert_null(text_of(missing, "device"));
	assert_string_equal(text_of(missing, "missing"), lab_verbs(3)->why);
	assert_true(json_is_false(json_object_get(json_object_get(missing, "verbs"), "found")));
	json_decref(rail);
	json_decref(path);
	json_decref(missing);
}

/* ---- events ---- */

static void two_ports_of_one_device_are_told_apart(void **state)
{
	open_all();
	assert_ptr_equal(lab_verbs(0)->device->context, lab_verbs(2)->device->context);
	lab_up(0);
	lab_up(1);
	/* A port is also read when a link comes up. */
	lab_until(!mrcd_offload_pending(lab->worker.offload));
	verbs_fake_gid_move(lab_addresses[0], 3);
	verbs_fake_gid_move(lab_addresses[2], 4);
	async(lab_addresses[0], IBV_EVENT_GID_CHANGE, 1);
	lab_until(lab_verbs(0)->device->port_now.gid_index == 3);
	lab_settle();
	assert_int_equal(lab_verbs(2)->device->port_now.gid_index, 1);
	async(lab_addresses[0], IBV_EVENT_PORT_ACTIVE, 2);
	lab_until(lab_verbs(2)->device->port_now.gid_index == 4);
	send_one(0);
	send_one(1);
}

static enum ibv_mtu mtu_of(uint32_t rail)
{
	return lab_verbs(rail)->device->port_now.attr.active_mtu;
}

/* No event tells of an MTU. */
static void a_port_is_read_again_when_a_link_comes_up(void **state)
{
	open_all();
	lab_up(0);
	lab_until(!mrcd_offload_pending(lab->worker.offload));
	verbs_fake_mtu(lab_addresses[0], IBV_MTU_1024);
	verbs_fake_mtu(lab_addresses[1], IBV_MTU_512);
	verbs_fake_gid_move(lab_addresses[1], 5);
	lab_settle();
	assert_int_equal(mtu_of(0), IBV_MTU_4096);
	lab_up(0);
	lab_until(mtu_of(0) == IBV_MTU_1024 && mtu_of(1) == IBV_MTU_512);
	assert_int_equal(lab_verbs(1)->device->port_now.gid_index, 5);
	assert_int_equal(mtu_of(2), IBV_MTU_4096);
}

static void a_port_is_read_again_when_the_kernel_speaks_of_its_interface(void **state)
{
	struct mrcd_rail *rail = &lab->worker.rails[0];
	int calls;

	mrcd_rail_verbs_ops.link_changed(rail); /* it is not open */
	open_all();
	verbs_fake_mtu(lab_addresses[0], IBV_MTU_1024);
	mrcd_rail_verbs_ops.link_changed(rail);
	lab_until(mtu_of(0) == IBV_MTU_1024);
	/* However much it speaks, one reading, of two questions, is under way and one waits. */
	calls = verbs_fake_calls(VERBS_FAKE_QUERY_PORT);
	verbs_fake_gate(VERBS_FAKE_QUERY_PORT, true);
	for (int i = 0; i < 100; i++)
		mrcd_rail_verbs_ops.link_changed(rail);
	lab_until(verbs_fake_calls(VERBS_FAKE_QUERY_PORT) == calls + 1);
	mrcd_rail_verbs_ops.link_changed(rail);
	verbs_fake_mtu(lab_addresses[0], IBV_MTU_2048);
	verbs_fake_gate(VERBS_FAKE_QUERY_PORT, false);
	lab_until(!mrcd_offload_pending(lab->worker.offload));
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_QUERY_PORT), calls + 4);
	assert_int_equal(mtu_of(0), IBV_MTU_2048);
}

static void a_port_that_does_not_answer_is_as_it_was(void **state)
{
	int calls;

	open_all();
	calls = verbs_fake_calls(VERBS_FAKE_QUERY_PORT);
	verbs_fake_fail(VERBS_FAKE_QUERY_PORT, 0, -1, ETIMEDOUT);
	mrcd_rail_verbs_ops.link_changed(&lab->worker.rails[0]);
	lab_until(verbs_fake_calls(VERBS_FAKE_QUERY_PORT) == calls + 1 &&
		  !mrcd_offload_pending(lab->worker.offload));
	assert_int_equal(mtu_of(0), IBV_MTU_4096);
	assert_int_equal(lab_verbs(0)->device->port_now.gid_index, 1);
}

static void port_events_are_hints(void **state)
{
	open_all();
	lab_up(0);
	for (int i = 0; i < 2; i++) {
		async(lab_addresses[0], IBV_EVENT_PORT_ERR, 1);
		async(lab_addresses[0], IBV_EVENT_PORT_ERR, 1);
		async(lab_addresses[0], IBV_EVENT_PORT_ACTIVE, 1);
		async(lab_addresses[0], IBV_EVENT_PORT_ACTIVE, 1);
		lab_settle();
	}
	assert_int_equal(lab->a->paths[0].downs, 0);
	send_one(0);
}

static void a_port_whose_address_went_has_no_gid(void **state)
{
	open_all();
	verbs_fake_port_remove(lab_addresses[0]);
	async(lab_addresses[2], IBV_EVENT_GID_CHANGE, 1);
	lab_until(lab_verbs(0)->device->port_now.gid_index == -1);
}

static void an_error_of_one_queue_is_one_link_s(void **state)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};

	open_all();
	lab_up(0);
	lab_up(1);
	event.element.cq = lab_link(lab->a, 0)->send_cq;
	verbs_fake_async(lab_addresses[0], &event);
	lab_until(lab->a->paths[0].downs == 1);
	lab_up(0);
	event.event_type = IBV_EVENT_QP_FATAL;
	event.element.qp = lab_link(lab->a, 0)->qp;
	verbs_fake_async(lab_addresses[0], &event);
	lab_until(lab->a->paths[0].downs == 2);
	assert_int_equal(lab->a->paths[1].downs, 0);
	assert_true(lab_has_devices());
	send_one(1);
}

static void a_fatal_error_is_the_device_s_and_all_its_rails(void **state)
{
	open_all();
	lab_up(0);
	lab_up(1);
	async(lab_addresses[0], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(lab->a->paths[0].downs == 1 && lab->a->paths[1].downs == 1);
	assert_string_equal(lab->a->paths[0].why, "the device has gone");
	lab_until(lab_has_devices());
	lab_up(0);
	lab_up(1);
	send_one(0);
	send_one(1);
}

static void an_error_of_a_shared_queue_is_one_rail_s(void **state)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_ERR};

	open_all();
	lab_up(0);
	lab_up(1);
	event.element.srq = lab_verbs(0)->device->srq;
	verbs_fake_async(lab_addresses[0], &event);
	lab_until(lab->a->paths[0].downs == 1);
	lab_until(lab_has_devices());
	lab_up(0);
	event.event_type = IBV_EVENT_CQ_ERR;
	event.element.cq = lab_verbs(0)->device->recv_cq;
	verbs_fake_async(lab_addresses[0], &event);
	lab_until(lab->a->paths[0].downs == 2);
	lab_until(lab_has_devices());
	assert_int_equal(lab->a->paths[1].downs, 0);
	send_one(1);
}

static void a_device_that_is_removed_is_looked_for_again(void **state)
{
	open_all();
	lab_up(0);
	verbs_fake_removal(lab_addresses[1]);
	lab_until(lab->b->paths[0].downs == 1);
	assert_string_equal(lab_verbs(1)->why, "the device is being removed");
	/* The library lets go of it when it looks at its list, which it is made to. */
	lab_until(verbs_fake_calls(VERBS_FAKE_GET_DEVICES) == 1);
	lab_until(lab_has_devices());
	lab_up(0);
}

/* The engine would wait for an answer for ever. */
static void an_attempt_on_a_device_that_goes_is_told(void **state)
{
	open_all();
	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab_connect(0);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 1);
	async(lab_addresses[0], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(lab->a->paths[0].failures == 1);
	assert_string_equal(lab->a->paths[0].why, "the device has gone");
}

static void another_address_is_another_device(void **state)
{
	struct mrcd_conf_rail *conf;

	open_all();
	lab_up(0);
	lab->worker.rails[0].ops->refresh(&lab->worker.rails[0]);
	lab_settle();
	assert_int_equal(lab->a->paths[0].downs, 0);
	verbs_fake_port("fake0", 3, "127.0.3.1", IBV_TRANSPORT_IB);
	conf = &lab_verbs(0)->conf;
	snprintf(conf->address, sizeof(conf->address), "127.0.3.1");
	lab->worker.rails[0].ops->refresh(&lab->worker.rails[0]);
	lab_until(lab->a->paths[0].downs == 1);
	lab_until(lab_verbs(0)->device);
	assert_int_equal(lab_verbs(0)->device->port, 3);
	lab_up(0);
}

/* ---- regions and the device ---- */

static void regions_are_registered_anew_with_a_device_that_came_back(void **state)
{
	uint32_t rkey;

	open_all();
	lab_regions();
	rkey = lab->keys[1].rkey;
	async(lab_addresses[1], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(!lab->keys[1].is_valid);
	lab_until(lab->keys[1].is_valid);
	assert_int_not_equal(lab->keys[1].rkey, rkey);
	assert_true(lab->keys[3].is_valid);
}

static void a_region_that_was_being_registered_when_the_device_went_is_offered_again(void **state)
{
	open_all();
	verbs_fake_gate(VERBS_FAKE_REG_MR, true);
	lab_regions_offer();
	lab_until(verbs_fake_calls(VERBS_FAKE_REG_MR) >= 4 * 2 + 4);
	async(lab_addresses[1], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(!lab_verbs(1)->device);
	verbs_fake_gate(VERBS_FAKE_REG_MR, false);
	lab_until(lab_region_is(lab->landing_region, MRCD_REGION_READY));
	assert_true(lab->keys[1].is_valid);
}

static void a_region_that_is_still_leaving_the_old_device_goes_to_the_new_one_then(void **state)
{
	open_all();
	lab_regions();
	verbs_fake_gate(VERBS_FAKE_DEREG_MR, true);
	async(lab_addresses[1], IBV_EVENT_DEVICE_FATAL, 0);
	lab_until(!lab_verbs(1)->device);
	lab_until(lab_verbs(1)->device);
	lab_settle();
	assert_false(lab->keys[1].is_valid);
	verbs_fake_gate(VERBS_FAKE_DEREG_MR, false);
	lab_until(lab->keys[1].is_valid);
}

/* A reload has closed it and cannot open it yet; programs attach meanwhile. */
static void a_rail_that_is_closed_gets_its_regions_when_it_opens(void **state)
{
	struct mrcd_rail *rail = &lab->worker.rails[1];

	open_all();
	mrcd_rail_verbs_ops.close(rail);
	lab_regions_offer();
	lab_until(lab->keys[3].is_valid);
	assert_false(lab->keys[1].is_valid);
	assert_int_equal(mrcd_rail_verbs_ops.open(rail), 0);
	lab_until(lab->keys[1].is_valid);
}

/* What the next file lists does not change what was divided. */
static void a_rail_has_as_many_shares_as_paths_when_it_was_opened(void **state)
{
	struct mrcd_rail *rail = &lab->worker.rails[1];

	rail->path_count = 3;
	open_all();
	rail->path_count = 5;
	assert_int_equal(mrcd_rail_verbs_ops.shares(rail), 3);
	mrcd_rail_verbs_ops.close(rail);
	assert_int_equal(mrcd_rail_verbs_ops.shares(rail), 0);
	assert_int_equal(mrcd_rail_verbs_ops.open(rail), 0);
	lab_until(lab_verbs(1)->device);
	assert_int_equal(mrcd_rail_verbs_ops.shares(rail), 5);
}

/* What all of them together may have under way at once lies ready. */
static void guests_have_what_is_kept_for_them(void **state)
{
	const struct mrcd_verbs_device *device;

	lab->worker.rails[1].path_count = 3;
	open_all();
	device = lab_verbs(1)->device;
	assert_true(device->entry_count >= 3 * device->share +
						   MRCD_RAIL_GUESTS_MAX * MRCD_VERBS_SHARE_MIN +
						   MRCD_VERBS_HOLDS_MAX);
	assert_int_equal(lab->worker.rails[1].guests_max, MRCD_RAIL_GUESTS_MAX);
	assert_true(lab_guests_out > 0); /* it has a share for each that is listed */
	lab->b->paths[0].is_guest = true;
	lab_up(0);
	assert_int_equal(lab->b->paths[0].link->receive_share, MRCD_VERBS_SHARE_MIN);
	assert_int_equal(lab->a->paths[0].link->receive_share, lab_verbs(0)->device->share);
}

static void a_region_may_end_while_it_is_registered(void **state)
{
	open_all();
	verbs_fake_gate(VERBS_FAKE_REG_MR, true);
	lab_regions_offer();
	mrcd_region_end(lab->send_region);
	mrcd_region_end(lab->landing_region);
	verbs_fake_gate(VERBS_FAKE_REG_MR, false);
	lab_until(LIST_EMPTY(&lab->worker.regions));
	assert_false(lab->keys[1].is_valid);
}

/* ---- all at once ---- */

static void closing_with_everything_in_flight_frees_all(void **state)
{
	struct mrcd_link *a;

	open_all();
	lab_regions();
	lab_up(0);
	lab_up(0); /* the old one sits out its quarantine */
	lab->is_all_scratch = true;
	a = lab->a->paths[0].link;
	for (uint32_t i = 0; i < 50; i++) {
		struct mrc_act_post post = lab_frag(a, i, i * 100, 300);

		post.hdr.flags |= MRC_WIRE_F_COPY;
		lab_post(a, post);
	}
	lab_flush(a);
	lab_until(lab->b->paths[0].frame_count == 50);
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 500; i++)
		lab_post(a, lab_direct(a, i, i * 1000, 1000));
	lab_flush(a);
	verbs_fake_answer(VERBS_FAKE_SILENT);
	lab_connect(1);
	lab_until(verbs_fake_calls(VERBS_FAKE_CONNECT) == 3);
	verbs_fake_stranger(lab_addresses[1], "x", 1);
	mrcd_region_end(lab->send_region);
	async(lab_addresses[1], IBV_EVENT_PORT_ERR, 1);
}

/* Of all calls the n-th fails, for each n until a run ends untouched: nothing may be left. */
static void whatever_call_fails_nothing_is_left(void **state)
{
	for (int n = 1;; n++) {
		struct lab_path *pa = &lab->a->paths[0], *pb = &lab->b->paths[0];
		int count;

		verbs_fake_fail_nth(n);
		for (int r = 0; r < 2; r++)
			assert_int_equal(mrcd_rail_verbs_ops.open(&lab->worker.rails[r]), 0);
		lab_port_learn(0);
		lab_until((lab_verbs(0)->device || lab_verbs(0)->why[0]) &&
			  (lab_verbs(1)->device || lab_verbs(1)->why[0]));
		lab->worker.rail_count = 2;
		lab_regions_offer();
		lab->worker.rail_count = 4;
		lab_connect(0);
		lab_until(pa->failures || pa->ups);
		if (pa->link) {
			lab_post(pa->link, lab_control(pa->link, MRC_WIRE_STATE, 1, 10));
			lab_flush(pa->link);
			lab_until(pb->frame_count || !pa->link);
		}
		count = verbs_fake_fail_nth(0);
		if (n <= count)
			assert_true(pa->failures || pa->downs || pb->downs ||
				    lab_verbs(0)->last_error[0] || lab_verbs(1)->last_error[0] ||
				    pa->ups);
		else
			assert_true(pa->ups && pb->ups && pb->frame_count);
		tear_down(state);
		set_up(state);
		if (n > count)
			return;
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_device_verbs_refuses_and_auto_is_tcp),
		TEST(a_rail_without_its_device_does_not_try_to_connect),
		TEST(auto_does_not_settle_for_tcp_while_a_device_is_being_opened),
		TEST(a_device_is_that_of_the_configuration),
		TEST(every_step_of_opening_may_fail_and_leaves_nothing),
		TEST(memory_that_cannot_be_locked_is_explained),
		TEST(a_device_that_does_not_open_is_tried_less_and_less_often),
		TEST(more_entries_than_the_device_has_are_refused),
		TEST(a_rail_closes_while_it_looks_for_its_device),
		TEST(people_see_the_device_and_its_queue_pairs),
		TEST(two_ports_of_one_device_are_told_apart),
		TEST(a_port_is_read_again_when_a_link_comes_up),
		TEST(a_port_is_read_again_when_the_kernel_speaks_of_its_interface),
		TEST(a_port_that_does_not_answer_is_as_it_was),
		TEST(port_events_are_hints),
		TEST(a_port_whose_address_went_has_no_gid),
		TEST(an_error_of_one_queue_is_one_link_s),
		TEST(a_fatal_error_is_the_device_s_and_all_its_rails),
		TEST(an_error_of_a_shared_queue_is_one_rail_s),
		TEST(a_device_that_is_removed_is_looked_for_again),
		TEST(an_attempt_on_a_device_that_goes_is_told),
		TEST(another_address_is_another_device),
		TEST(regions_are_registered_anew_with_a_device_that_came_back),
		TEST(a_region_that_was_being_registered_when_the_device_went_is_offered_again),
		TEST(a_region_that_is_still_leaving_the_old_device_goes_to_the_new_one_then),
		TEST(a_rail_that_is_closed_gets_its_regions_when_it_opens),
		TEST(a_rail_has_as_many_shares_as_paths_when_it_was_opened),
		TEST(guests_have_what_is_kept_for_them),
		TEST(a_region_may_end_while_it_is_registered),
		TEST(closing_with_everything_in_flight_frees_all),
		TEST(whatever_call_fails_nothing_is_left),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
