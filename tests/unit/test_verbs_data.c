/* SPDX-License-Identifier: BSD-2-Clause */
/* What travels on a queue pair, and the memory it is in. */
#include "verbs_lab.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static struct mrcd_link *a, *b; /* path 0's */

static void learn(void)
{
	a = lab->a->paths[0].link;
	b = lab->b->paths[0].link;
}

static int set_up(void **state)
{
	lab_new();
	lab_open();
	lab_until(lab_has_devices());
	lab_up(0);
	learn();
	return 0;
}

static int tear_down(void **state)
{
	lab_free();
	return 0;
}

static struct lab_path *at_b(void)
{
	return &lab->b->paths[0];
}

static bool is_all_posted(void)
{
	const struct mrcd_verbs_device *device = lab_verbs(1)->device;

	return device->posted_count == device->entry_count &&
	       verbs_fake_srq_posted(device->srq) == (int)device->entry_count;
}

/* ---- payload ---- */

static const uint32_t sizes[] = {0,    1,    79,   80,   175,  176,   177,   432,   433,
				 1000, 1023, 1024, 1025, 4096, 16383, 16384, 65536, 262144};

static void frames_of_all_sizes_arrive_in_order(void **state)
{
	uint64_t addr = 0, count = 0, direct = 0, copied = 0;

	lab_regions();
	for (size_t i = 0; i < MRC_ARRAY_LEN(sizes); i++) {
		uint32_t size = sizes[i], body = MRC_MIN(size, 16384U);

		if (size) {
			lab_post(a, lab_direct(a, count++, addr, size));
			direct++;
		} else {
			lab_post(a, lab_frag(a, count++, addr, 0));
		}
		addr += size;
		lab_post(a, lab_frag(a, count++, addr, body));
		copied += body;
		addr += body;
		lab_post(a, lab_control(a, MRC_WIRE_STATE, count++,
					(uint16_t)MRC_MIN(size, MRC_WIRE_CTL_BYTES_MAX)));
		lab_post(a, lab_control(a, MRC_WIRE_PROBE, count, 0));
		mrcd_verbs_link_of(a)->outq.last->pad_len = body;
		mrcd_verbs_link_of(a)->outq.last->hdr.body_len = body;
		count++;
		if (i % 3 == 0)
			lab_flush(a);
	}
	lab_flush(a);
	lab_until(at_b()->frame_count == count && lab->a->paths[0].sent == count);

	for (uint64_t i = 0; i < count; i++) {
		const struct lab_frame *frame = &at_b()->frames[i];
		uint32_t size = sizes[i / 4], body = MRC_MIN(size, 16384U);

		assert_int_equal(frame->hdr.msg, i);
		assert_true(frame->is_body_good);
		if (i % 4 < 2) {
			assert_true(frame->is_placed);
			assert_int_equal(frame->hdr.body_len, i % 4 ? body : size);
		} else if (i % 4 == 2) {
			assert_int_equal(frame->hdr.body_len,
					 MRC_MIN(size, MRC_WIRE_CTL_BYTES_MAX));
			if (size)
				assert_int_equal(frame->body[0], i & 0xff);
		} else {
			assert_int_equal(frame->hdr.body_len, body);
			assert_int_equal(frame->hdr.body_crc, mrcd_crc32c(0, mrcd_padding(), body));
		}
	}
	assert_memory_equal(lab->send, lab->landing, addr);
	assert_int_equal(lab_verbs(0)->counters.writes, direct);
	assert_int_equal(lab_verbs(0)->counters.sends, count);
	/* Written payload is touched by no processor of ours, but for its checksum. */
	assert_int_equal(lab_verbs(0)->counters.payload_copied, 0);
	assert_int_equal(lab_verbs(1)->counters.payload_copied, copied);
	assert_int_equal(lab_verbs(0)->counters.bounces, 0);
	assert_true(lab_verbs(0)->counters.inline_sends > 0);
	/* One completion for a chain, and fewer doorbells than frames. */
	assert_int_equal(lab_verbs(0)->counters.completions, lab_verbs(0)->counters.doorbells);
	assert_true(lab_verbs(0)->counters.doorbells < count / 3);
	assert_int_equal(verbs_fake_rnrs(), 0);
	assert_true(is_all_posted());
}

static void payload_is_written_before_its_header_is_seen(void **state)
{
	lab_regions();
	verbs_fake_hold_work(true);
	lab_post(a, lab_direct(a, 0, 100, 5000));
	lab_flush(a);
	assert_int_equal(verbs_fake_work(1), 1);
	lab_settle();
	assert_memory_equal(lab->send + 100, lab->landing + 100, 5000);
	assert_int_equal(at_b()->frame_count, 0);
	assert_int_equal(verbs_fake_work(10), 1);
	lab_until(at_b()->frame_count == 1);
	assert_true(at_b()->frames[0].is_placed && at_b()->frames[0].is_body_good);
}

static void payload_that_changed_on_the_way_is_judged_where_it_landed(void **state)
{
	lab_regions();
	verbs_fake_hold_work(true);
	lab_post(a, lab_direct(a, 0, 100, 5000));
	lab_flush(a);
	verbs_fake_work(1);
	lab->landing[2000] ^= 1;
	verbs_fake_work(1);
	lab_until(at_b()->frame_count == 1);
	assert_false(at_b()->frames[0].is_body_good);
}

static int fault(const char *what)
{
	struct mrcd_rail *rail = at_b()->rail;

	return rail->ops->fault(rail, what);
}

/* Where the device's own checks have passed: in the landing memory, in a receive entry, in a header. */
static void damage_by_fault_is_found_and_counted(void **state)
{
	uint32_t bad = 0;

	lab_regions();
	assert_int_equal(fault("damage-payload"), 0);
	for (uint32_t i = 0; i < 40; i++)
		lab_post(a,
			 i % 2 ? lab_direct(a, i, i * 5000, 5000) : lab_frag(a, i, i * 5000, 100));
	lab_flush(a);
	lab_until(at_b()->frame_count == 40);
	for (uint32_t i = 0; i < 40; i++)
		bad += !at_b()->frames[i].is_body_good;
	assert_int_equal(bad, 5);
	assert_int_equal(fault("damage-none"), 5);
	lab_post(a, lab_direct(a, 40, 300000, 5000));
	lab_flush(a);
	lab_until(at_b()->frame_count == 41);
	assert_true(at_b()->frames[40].is_body_good);
	assert_int_equal(fault("damage-headers"), 5);
	for (uint32_t i = 0; i < 8; i++)
		lab_post(a, lab_frag(a, i, 0, 100));
	lab_flush(a);
	lab_until(at_b()->downs == 1);
	assert_int_equal(at_b()->reason, MRC_REASON_CORRUPT);
	assert_int_equal(fault("damage-none"), 6);
	assert_int_equal(fault("damage-all"), -EINVAL);
}

static void a_write_beside_its_key_lands_nowhere_and_ends_the_link(void **state)
{
	struct mrc_act_post post;

	lab_regions();
	post = lab_direct(a, 0, 0, 5000);
	post.remote_addr = lab->keys[1].base + LAB_MEMORY_BYTES - 4999;
	lab_post(a, post);
	lab_flush(a);
	lab_until(lab->a->paths[0].downs == 1 && at_b()->downs == 1);
	assert_string_equal(lab->a->paths[0].why, "remote access");
	assert_int_equal(at_b()->frame_count, 0);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(lab->landing[LAB_MEMORY_BYTES - 1 - i], 0);
}

/* ---- the send queue ---- */

static void more_frames_than_slots_wait_for_completions(void **state)
{
	const uint32_t count = 1000;

	lab_regions();
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < count; i++)
		lab_post(a, lab_direct(a, i, i * 64, 64));
	lab_flush(a);
	lab_settle();
	assert_int_equal(mrcd_verbs_link_of(a)->frames_posted, MRCD_VERBS_SLOTS);
	assert_int_equal(verbs_fake_depth_max(), MRCD_VERBS_WRS);
	/* Done by the device, but no completion was asked for: the slots are not free. */
	verbs_fake_work(3);
	lab_settle();
	assert_int_equal(mrcd_verbs_link_of(a)->frames_posted, MRCD_VERBS_SLOTS);
	verbs_fake_hold_work(false);
	lab_until(at_b()->frame_count == count && lab->a->paths[0].sent == count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(at_b()->frames[i].hdr.msg, i);
	assert_memory_equal(lab->send, lab->landing, count * 64);
	assert_int_equal(verbs_fake_depth_max(), MRCD_VERBS_WRS);
}

static void a_turn_posts_a_bounded_number_of_bytes(void **state)
{
	lab_regions();
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 30; i++)
		lab_post(a, lab_direct(a, i, i * 262144, 262144));
	lab_flush(a);
	assert_in_range(mrcd_verbs_link_of(a)->frames_posted, 2, 3);
	verbs_fake_hold_work(false);
	lab_until(at_b()->frame_count == 30);
	assert_memory_equal(lab->send, lab->landing, 30 * 262144);
}

static void sent_is_said_of_completions_and_not_before(void **state)
{
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 20; i++) /* a chain of 16, and one of 4 */
		lab_post(a, lab_control(a, MRC_WIRE_STATE, i, 100));
	lab_flush(a);
	lab_settle();
	assert_int_equal(lab->a->paths[0].sent, 0);
	verbs_fake_work(15);
	lab_until(at_b()->frame_count == 15);
	assert_int_equal(lab->a->paths[0].sent, 0);
	verbs_fake_work(1);
	lab_until(lab->a->paths[0].sent == 16);
	verbs_fake_hold_work(false);
	lab_until(lab->a->paths[0].sent == 20);
}

static void strip_leaves_nothing_of_a_client_to_be_read(void **state)
{
	uint32_t nops = 0;

	lab_regions();
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 200; i++)
		lab_post(a, lab_frag(a, i, i * 2000, 2000));
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 200, 10));
	lab_flush(a);
	a->ops->strip(a);
	verbs_fake_hold_work(false);
	lab_until(at_b()->frame_count == 201);
	for (uint32_t i = 0; i < 200; i++)
		nops += at_b()->frames[i].hdr.type == MRC_WIRE_NOP;
	assert_int_equal(nops, 200 - MRCD_VERBS_SLOTS);
	assert_int_equal(at_b()->frames[200].hdr.type, MRC_WIRE_STATE);
}

static void the_memory_of_a_client_that_died_is_not_missed(void **state)
{
	lab_regions();
	lab->is_client_gone = true;
	lab_post(a, lab_frag(a, 1, 0, 2000));
	lab_post(a, lab_direct(a, 2, 0, 2000));
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 3, 10));
	lab_flush(a);
	lab_until(at_b()->frame_count == 3);
	assert_int_equal(at_b()->frames[0].hdr.type, MRC_WIRE_NOP);
	assert_int_equal(at_b()->frames[1].hdr.type, MRC_WIRE_NOP);
	assert_int_equal(at_b()->frames[2].hdr.type, MRC_WIRE_STATE);
	assert_int_equal(lab_verbs(0)->counters.writes, 0);
}

/* ---- regions ---- */

static void payload_of_a_region_not_registered_yet_is_copied(void **state)
{
	const uint32_t count = 3 * MRCD_VERBS_BOUNCES;

	verbs_fake_gate(VERBS_FAKE_REG_MR, true);
	lab_regions_offer();
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < count; i++)
		lab_post(a, lab_frag(a, i, i * 16384, 16384));
	lab_post(a, lab_frag(a, count, count * 16384, 1000));
	lab_post(a, lab_frag(a, count + 1, count * 16384 + 1000, 20));
	lab_flush(a);
	lab_settle();
	assert_int_equal(mrcd_verbs_link_of(a)->frames_posted, MRCD_VERBS_BOUNCES);
	verbs_fake_hold_work(false);
	lab_until(at_b()->frame_count == count + 2);
	assert_memory_equal(lab->send, lab->landing, count * 16384 + 1020);
	assert_int_equal(lab_verbs(0)->counters.bounces, count);
	assert_int_equal(lab_verbs(0)->counters.payload_copied, count * 16384 + 1000);
	assert_false(lab->keys[1].is_valid);
	verbs_fake_gate(VERBS_FAKE_REG_MR, false);
	lab_until(lab_region_is(lab->landing_region, MRCD_REGION_READY));
	assert_true(lab->keys[1].is_valid);
}

static void who_waits_for_a_buffer_goes_on_when_one_is_given_back(void **state)
{
	struct mrcd_verbs_device *device = lab_verbs(0)->device;
	uint32_t all = device->bounces_free;

	device->bounces_free = 0; /* all are in other links' hands */
	lab_post(a, lab_frag(a, 0, 0, 16384));
	lab_flush(a);
	lab_settle();
	assert_int_equal(mrcd_verbs_link_of(a)->frames_posted, 0);
	device->bounces_free = all;
	mrcd_verbs_poll_soon(lab_verbs(0));
	lab_until(at_b()->frame_count == 1);
}

static void a_device_that_does_not_take_a_region_is_used_all_the_same(void **state)
{
	verbs_fake_fail(VERBS_FAKE_REG_MR, 0, -1, EFAULT);
	lab_regions_offer();
	lab_until(lab_region_is(lab->send_region, MRCD_REGION_FAILED) &&
		  lab_region_is(lab->landing_region, MRCD_REGION_FAILED));
	assert_non_null(strstr(lab_verbs(0)->last_error, strerror(EFAULT)));
	lab_post(a, lab_frag(a, 0, 0, 16384));
	lab_flush(a);
	lab_until(at_b()->frame_count == 1);
	assert_memory_equal(lab->send, lab->landing, 16384);
}

static void a_region_is_deregistered_when_no_work_request_names_it(void **state)
{
	int deregs;

	lab_regions();
	verbs_fake_hold_work(true);
	for (uint32_t i = 0; i < 40; i++)
		lab_post(a, lab_direct(a, i, i * 64, 64));
	lab_flush(a);
	deregs = verbs_fake_calls(VERBS_FAKE_DEREG_MR);
	mrcd_region_end(lab->send_region);
	lab->is_client_gone = true;
	/* The other three rails let go of it at once. */
	lab_until(verbs_fake_calls(VERBS_FAKE_DEREG_MR) == deregs + 3);
	lab_settle();
	assert_int_equal(lab->send_region->rails[0].state, MRCD_REGION_REMOVING);
	verbs_fake_work(79);
	lab_settle();
	assert_int_equal(verbs_fake_calls(VERBS_FAKE_DEREG_MR), deregs + 3);
	verbs_fake_work(1);
	lab_until(verbs_fake_calls(VERBS_FAKE_DEREG_MR) == deregs + 4);
	lab_until(!LIST_NEXT(LIST_FIRST(&lab->worker.regions), entry));
}

static void keys_are_told_to_be_invalid_before_the_region_goes(void **state)
{
	lab_regions();
	assert_true(lab->keys[1].is_valid);
	verbs_fake_gate(VERBS_FAKE_DEREG_MR, true);
	mrcd_region_end(lab->landing_region);
	assert_false(lab->keys[1].is_valid);
	verbs_fake_gate(VERBS_FAKE_DEREG_MR, false);
	lab_until(!LIST_NEXT(LIST_FIRST(&lab->worker.regions), entry));
}

/* ---- holds ---- */

static void send_copies(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct mrc_act_post post = lab_frag(a, i, i * 100, 300);

		post.hdr.flags |= MRC_WIRE_F_COPY;
		lab_post(a, post);
	}
	lab_flush(a);
	lab_until(at_b()->frame_count == count);
}

static void a_copy_is_held_until_it_is_freed(void **state)
{
	lab->is_all_scratch = true;
	send_copies(5);
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t len;
		const uint8_t *data;

		assert_true(at_b()->frames[i].hold);
		assert_false(at_b()->frames[i].is_placed);
		assert_int_equal(at_b()->frames[i].hold & 0xff, 1);
		data = mrcd_rail_verbs_ops.hold_data(&lab->worker.rails[1], at_b()->frames[i].hold,
						     &len);
		assert_int_equal(len, 300);
		assert_memory_equal(data, lab->send + i * 100, 300);
	}
	assert_int_equal(lab_verbs(1)->device->held_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		mrcd_rail_verbs_ops.hold_free(&lab->worker.rails[1], at_b()->frames[i].hold);
	assert_int_equal(lab_verbs(1)->device->held_count, 0);
	assert_true(is_all_posted());
}

static void no_more_is_held_than_the_rail_can_spare(void **state)
{
	uint32_t held = 0;

	lab->is_all_scratch = true;
	send_copies(MRCD_VERBS_HOLDS_MAX + 100);
	for (uint32_t i = 0; i < at_b()->frame_count; i++)
		held += at_b()->frames[i].hold != 0;
	assert_int_equal(held, MRCD_VERBS_HOLDS_MAX);
	/* Closing finds them held: that is for tear_down to see. */
}

static void holds_outlive_their_device(void **state)
{
	const struct ibv_async_event event = {.event_type = IBV_EVENT_DEVICE_FATAL};
	struct mrcd_verbs_device *device = lab_verbs(1)->device;
	int srqs = verbs_fake_counts().srqs;
	uint32_t len;

	lab->is_all_scratch = true;
	send_copies(2);
	verbs_fake_async(lab_addresses[1], &event);
	lab_until(!lab_verbs(1)->device && at_b()->downs == 1);
	lab_until(lab_verbs(1)->device); /* found again */
	assert_ptr_not_equal(lab_verbs(1)->device, device);
	for (uint32_t i = 0; i < 2; i++) {
		const uint8_t *data = mrcd_rail_verbs_ops.hold_data(&lab->worker.rails[1],
								    at_b()->frames[i].hold, &len);

		assert_memory_equal(data, lab->send + i * 100, 300);
	}
	assert_int_equal(verbs_fake_counts().srqs, srqs + 1);
	mrcd_rail_verbs_ops.hold_free(&lab->worker.rails[1], at_b()->frames[0].hold);
	lab_settle();
	assert_int_equal(verbs_fake_counts().srqs, srqs + 1);
	mrcd_rail_verbs_ops.hold_free(&lab->worker.rails[1], at_b()->frames[1].hold);
	lab_until(verbs_fake_counts().srqs == srqs);
}

/* ---- frames that are not what they should be ---- */

static void encode(uint8_t *frame, const struct mrc_wire_hdr *hdr)
{
	mrc_wire_encode(hdr, mrcd_crc32c, frame);
}

static void bad_frames_end_the_link_with_the_reason(void **state)
{
	static const struct {
		const char *why;
		enum mrc_path_reason reason;
		uint32_t len;
		int flip; /* this byte; -1: none */
		uint32_t epoch_add, body_len;
		uint8_t type;
	} cases[] = {
		{"a frame without a header", MRC_REASON_PROTOCOL, 79, -1, 0, 0, MRC_WIRE_STATE},
		{"a frame without a header", MRC_REASON_PROTOCOL, 0, -1, 0, 0, MRC_WIRE_STATE},
		{"header damaged", MRC_REASON_CORRUPT, 80, 0, 0, 0, MRC_WIRE_STATE},
		{"header damaged", MRC_REASON_CORRUPT, 80, 40, 0, 0, MRC_WIRE_STATE},
		{"frame of another epoch", MRC_REASON_PROTOCOL, 80, -1, 1, 0, MRC_WIRE_STATE},
		{"handshake frame after the handshake", MRC_REASON_PROTOCOL, 80, -1, 0, 0,
		 MRC_WIRE_READY},
		{"frame longer or shorter than said", MRC_REASON_PROTOCOL, 81, -1, 0, 0,
		 MRC_WIRE_STATE},
		{"frame longer or shorter than said", MRC_REASON_PROTOCOL, 80, -1, 0, 1,
		 MRC_WIRE_STATE},
		{"checksum of a control frame wrong", MRC_REASON_CORRUPT, 100, 90, 0, 20,
		 MRC_WIRE_STATE},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrcd_verbs_device *device = lab_verbs(1)->device;
		struct mrc_wire_hdr hdr = {.type = cases[i].type,
					   .conn_epoch = b->conn_epoch,
					   .path_epoch = b->path_epoch + cases[i].epoch_add,
					   .body_len = cases[i].body_len};
		uint32_t number = mrcd_verbs_link_of(b)->number;
		uint32_t downs = at_b()->downs, frames = at_b()->frame_count;
		uint8_t frame[128] = {0}, good[MRC_WIRE_HDR_BYTES];

		hdr.body_crc = mrcd_crc32c(0, frame + MRC_WIRE_HDR_BYTES, hdr.body_len);
		encode(frame, &hdr);
		if (cases[i].flip >= 0)
			frame[cases[i].flip] ^= 0x10;
		hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_STATE,
					    .conn_epoch = b->conn_epoch,
					    .path_epoch = b->path_epoch};
		encode(good, &hdr);
		verbs_fake_receive(device->srq, device->recv_cq, number, good, sizeof(good),
				   IBV_WC_SUCCESS);
		verbs_fake_receive(device->srq, device->recv_cq, number, frame, cases[i].len,
				   IBV_WC_SUCCESS);
		/* Behind it the positions are not known. */
		verbs_fake_receive(device->srq, device->recv_cq, number, good, sizeof(good),
				   IBV_WC_SUCCESS);
		lab_until(at_b()->downs == downs + 1);
		assert_string_equal(at_b()->why, cases[i].why);
		assert_int_equal(at_b()->reason, cases[i].reason);
		assert_int_equal(at_b()->frame_count, frames + 1);
		assert_true(is_all_posted());
		lab_until(!lab->a->paths[0].link);
		lab_up(0);
		learn();
	}
}

static void a_breach_of_the_protocol_ends_the_link(void **state)
{
	lab->b->is_protocol_error = true;
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 0, 10));
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 1, 10));
	lab_flush(a);
	lab_until(at_b()->downs == 1);
	assert_int_equal(at_b()->reason, MRC_REASON_PROTOCOL);
	assert_int_equal(at_b()->frame_count, 1);
}

static void a_frame_longer_than_an_entry_ends_the_link_at_both_ends(void **state)
{
	lab_regions();
	lab_post(a, lab_frag(a, 0, 0, 16385));
	lab_flush(a);
	lab_until(lab->a->paths[0].downs == 1 && at_b()->downs == 1);
	assert_int_equal(at_b()->frame_count, 0);
	assert_true(is_all_posted());
}

/* ---- completions: when to look ---- */

/* Host a has begun, so it has posted one more than it received. */
static void answer(struct mrcd_peer *peer)
{
	struct lab_path *path = &peer->paths[0];
	uint64_t posted = mrcd_verbs_link_of(path->link)->frames_posted;

	if (posted >= path->frame_count + (peer == lab->a))
		return;
	lab_post(path->link, lab_control(path->link, MRC_WIRE_STATE, posted, 8));
	lab_flush(path->link);
}

/* One frame goes to and fro, so a wake-up that is lost is the end of it. */
static void no_wake_up_is_lost_between_arming_and_sleeping(void **state)
{
	static const uint64_t spins[] = {0, 20 * MRC_US, 100 * MRC_US};

	lab->a->on_pump = lab->b->on_pump = answer;
	verbs_fake_work_apart(true);
	for (size_t i = 0; i < MRC_ARRAY_LEN(spins); i++) {
		uint32_t until = at_b()->frame_count + 1500;

		lab->conf.spin_ns = spins[i];
		if (i == 0) {
			lab_post(a, lab_control(a, MRC_WIRE_STATE, 0, 8));
			lab_flush(a);
		}
		lab_until(at_b()->frame_count >= until);
	}
	lab->a->on_pump = lab->b->on_pump = NULL;
	verbs_fake_work_apart(false);
}

static void what_completes_just_before_arming_is_seen(void **state)
{
	lab->a->on_pump = lab->b->on_pump = answer;
	lab->conf.spin_ns = 0;
	verbs_fake_hold_work(true);
	verbs_fake_work_at_arming(true);
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 0, 8));
	lab_flush(a);
	lab_until(at_b()->frame_count >= 200);
	lab->a->on_pump = lab->b->on_pump = NULL;
	lab_until(lab->a->paths[0].sent == mrcd_verbs_link_of(a)->frames_posted &&
		  at_b()->sent == mrcd_verbs_link_of(b)->frames_posted);
}

static void post_again(struct mrcd_peer *peer)
{
	assert_true(lab->a->paths[0].sent < 200 || at_b()->frame_count > 0);
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 0, 8));
	lab_flush(a);
}

/* Without time to spin, and with something found each time that it has armed. */
static void a_rail_that_always_finds_something_lets_the_loop_turn(void **state)
{
	lab->a->on_pump = post_again;
	lab->conf.spin_ns = 0;
	verbs_fake_hold_work(true);
	verbs_fake_work_at_arming(true);
	post_again(lab->a);
	/* The other rail hears of it by a descriptor, in the same loop. */
	lab_until(lab->a->paths[0].sent >= 300);
	lab->a->on_pump = NULL;
}

static void a_turn_is_bounded(void **state)
{
	struct mrcd_verbs_device *device = lab_verbs(1)->device;
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_STATE,
				   .conn_epoch = b->conn_epoch,
				   .path_epoch = b->path_epoch};
	uint8_t frame[MRC_WIRE_HDR_BYTES];

	lab_settle();
	encode(frame, &hdr);
	for (uint32_t i = 0; i < 300; i++)
		verbs_fake_receive(device->srq, device->recv_cq, mrcd_verbs_link_of(b)->number,
				   frame, sizeof(frame), IBV_WC_SUCCESS);
	for (uint32_t done = 0; done < 300;) {
		mrcd_verbs_on_poll(-1, 0, lab_verbs(1));
		assert_true(at_b()->frame_count - done <= 128);
		assert_true(at_b()->frame_count > done);
		done = at_b()->frame_count;
	}
}

/* Payload is looked at whole, so its bytes are what a turn takes time for. */
static void a_turn_looks_at_a_bounded_number_of_bytes(void **state)
{
	struct mrcd_verbs_device *device = lab_verbs(1)->device;
	struct mrc_wire_hdr hdr = lab_frag(b, 1, 0, MRC_FRAG_BYTES_MAX).hdr;
	uint8_t frame[MRC_WIRE_HDR_BYTES];

	lab_settle();
	hdr.flags |= MRC_WIRE_F_DIRECT;
	hdr.body_crc = mrcd_crc32c(0, lab->landing, hdr.body_len);
	encode(frame, &hdr);
	for (uint32_t i = 0; i < 120; i++)
		verbs_fake_receive(device->srq, device->recv_cq, mrcd_verbs_link_of(b)->number,
				   frame, sizeof(frame), IBV_WC_SUCCESS);
	mrcd_verbs_on_poll(-1, 0, lab_verbs(1));
	assert_in_range(at_b()->frame_count, 1, 2U * MRCD_VERBS_BATCH);
	lab_until(at_b()->frame_count == 120);
}

static void a_receive_queue_that_does_not_answer_is_a_lost_device(void **state)
{
	verbs_fake_fail(VERBS_FAKE_POLL, 0, -1, EIO);
	lab_post(a, lab_control(a, MRC_WIRE_STATE, 0, 8));
	lab_flush(a);
	lab_until(lab->a->paths[0].downs == 1 && at_b()->downs == 1);
	assert_string_equal(lab_verbs(1)->why, "a queue of it has failed");
	verbs_fake_fail(VERBS_FAKE_POLL, 0, 0, 0);
	lab_until(lab_has_devices());
	lab_up(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_of_all_sizes_arrive_in_order),
		TEST(payload_is_written_before_its_header_is_seen),
		TEST(payload_that_changed_on_the_way_is_judged_where_it_landed),
		TEST(damage_by_fault_is_found_and_counted),
		TEST(a_write_beside_its_key_lands_nowhere_and_ends_the_link),
		TEST(more_frames_than_slots_wait_for_completions),
		TEST(a_turn_posts_a_bounded_number_of_bytes),
		TEST(sent_is_said_of_completions_and_not_before),
		TEST(strip_leaves_nothing_of_a_client_to_be_read),
		TEST(the_memory_of_a_client_that_died_is_not_missed),
		TEST(payload_of_a_region_not_registered_yet_is_copied),
		TEST(who_waits_for_a_buffer_goes_on_when_one_is_given_back),
		TEST(a_device_that_does_not_take_a_region_is_used_all_the_same),
		TEST(a_region_is_deregistered_when_no_work_request_names_it),
		TEST(keys_are_told_to_be_invalid_before_the_region_goes),
		TEST(a_copy_is_held_until_it_is_freed),
		TEST(no_more_is_held_than_the_rail_can_spare),
		TEST(holds_outlive_their_device),
		TEST(bad_frames_end_the_link_with_the_reason),
		TEST(a_breach_of_the_protocol_ends_the_link),
		TEST(a_frame_longer_than_an_entry_ends_the_link_at_both_ends),
		TEST(no_wake_up_is_lost_between_arming_and_sleeping),
		TEST(what_completes_just_before_arming_is_seen),
		TEST(a_rail_that_always_finds_something_lets_the_loop_turn),
		TEST(a_turn_is_bounded),
		TEST(a_turn_looks_at_a_bounded_number_of_bytes),
		TEST(a_receive_queue_that_does_not_answer_is_a_lost_device),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
