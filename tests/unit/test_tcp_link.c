/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/mman.h>
#include <unistd.h>

#include "rail_tcp_lab.h"

/* ---- frames ---- */

static const uint32_t sizes[] = {0,     1,      79,     80,     81,     1000,  1024,
				 4095,  4096,   4097,   16383,  16384,  65535, 65536,
				 65537, 100000, 131072, 200000, 262143, 262144};

/* Frames of all kinds and sizes from a to b, many times over, through tiny buffers or large ones. */
static void send_all_sizes(struct fake *f, bool is_tiny, uint32_t place_step)
{
	uint64_t addr = 0, count = 0;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 1);
	connect_both(f);
	f->place_step = place_step;
	if (is_tiny)
		shrink_sending(f->a);
	for (size_t i = 0; i < MRC_ARRAY_LEN(sizes); i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, count, addr, sizes[i]);
		struct mrc_act_post control;

		if (i % 2) /* those have a tail */
			frag.hdr.flags |= MRC_WIRE_F_UNCHECKED;
		post(f->a, &frag);
		count++;
		control = fake_control(f->a->link, MRC_WIRE_STATE, count,
				       (uint16_t)MRC_MIN(sizes[i], MRC_WIRE_CTL_BYTES_MAX));
		post(f->a, &control);
		count++;
		control = fake_control(f->a->link, MRC_WIRE_PROBE, count, 0);
		control.pad_len = sizes[i];
		post(f->a, &control);
		count++;
		addr += sizes[i];
		if (i % 3 == 0)
			flush(f->a);
	}
	flush(f->a);
	fake_until(f, f->b->frame_count == count && f->a->sent == count);

	for (uint64_t i = 0; i < count; i++) {
		const struct fake_frame *frame = &f->b->frames[i];
		uint32_t size = sizes[i / 3];

		assert_int_equal(frame->hdr.msg, i);
		assert_true(frame->is_body_good);
		if (i % 3 == 0) {
			assert_int_equal(frame->hdr.type, MRC_WIRE_FRAG);
			assert_int_equal(frame->hdr.body_len, size);
			assert_true(frame->is_placed);
		} else if (i % 3 == 1) {
			assert_int_equal(frame->hdr.body_len,
					 MRC_MIN(size, MRC_WIRE_CTL_BYTES_MAX));
			if (size)
				assert_int_equal(frame->body[0], i & 0xff);
		} else {
			assert_int_equal(frame->hdr.body_len, size);
			assert_int_equal(frame->hdr.body_crc, mrcd_crc32c(0, mrcd_padding(), size));
		}
	}
	assert_memory_equal(f->send, f->landing, addr);
	assert_int_equal(f->b->rail->bytes_received, addr);
	assert_int_equal(f->a->rail->bytes_sent, addr);
	assert_int_equal(f->b->rail->frames_received, count);
	assert_true(f->b->pumps > 0);
}

/* A rail whose bits stick, or that brings a part of it twice, damages it. */
static void padding_has_ones_and_zeros_in_every_place(void **state)
{
	const uint8_t *padding = mrcd_padding();
	uint32_t ones[64] = {0};

	(void)state;
	for (uint32_t i = 0; i < 4096; i++) {
		for (uint32_t bit = 0; bit < 64; bit++)
			ones[bit] += padding[i * 8 + bit / 8] >> bit % 8 & 1;
		if (i > 0)
			assert_memory_not_equal(padding, padding + (size_t)i * 8, 8);
	}
	for (uint32_t bit = 0; bit < 64; bit++)
		assert_in_range(ones[bit], 1600, 2500);
}

static void frames_of_all_sizes_arrive_in_order(void **state)
{
	send_all_sizes(*state, false, UINT32_MAX);
}

/* In records, which begin and end where they like. */
static void sealed_frames_of_all_sizes_arrive_in_order(void **state)
{
	struct fake *f = *state;

	f->a->hello.features = f->b->hello.features = MRC_FEATURE_ENCRYPTION;
	send_all_sizes(f, false, UINT32_MAX);
	assert_true(f->a->link->is_sealed && f->b->link->is_sealed);
}

static void short_writes_of_records_lose_nothing(void **state)
{
	struct fake *f = *state;

	f->a->hello.features = f->b->hello.features = MRC_FEATURE_ENCRYPTION;
	send_all_sizes(f, true, 10007);
	assert_true(f->a->link->is_sealed && f->b->link->is_sealed);
}

static void short_writes_lose_nothing(void **state)
{
	send_all_sizes(*state, true, UINT32_MAX);
}

static void payload_goes_to_many_places(void **state)
{
	send_all_sizes(*state, true, 1000);
}

static void more_frames_than_a_call_takes_all_arrive(void **state)
{
	struct fake *f = *state;
	const uint32_t count = 2000;

	connect_both(f);
	for (uint32_t i = 0; i < count; i++) {
		struct mrc_act_post control = fake_control(f->a->link, MRC_WIRE_ACK, i, 48);

		post(f->a, &control);
	}
	flush(f->a);
	fake_until(f, f->b->frame_count == count && f->a->sent == count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(f->b->frames[i].hdr.msg, i);
}

static void strip_leaves_nothing(struct fake *f, uint16_t flags)
{
	struct mrc_act_post control;
	uint32_t count, whole = 0, zeros = 0, nops = 0;
	uint64_t asked;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 2);
	connect_both(f);
	count = fill(f, 60000, flags);
	control = fake_control(f->a->link, MRC_WIRE_LEVEL, count++, 32);
	post(f->a, &control);
	assert_true(mrcd_tcp_link_of(f->a->link)->outq.first->done > 0); /* half written */
	f->a->link->ops->strip(f->a->link);
	asked = f->send_asked;
	control = fake_control(f->a->link, MRC_WIRE_LEVEL, count++, 32);
	post(f->a, &control);
	flush(f->a);
	fake_until(f, f->b->frame_count == count && f->a->sent == count);

	assert_int_equal(f->send_asked, asked);
	for (uint32_t i = 0; i < count; i++) {
		const struct fake_frame *frame = &f->b->frames[i];

		bool is_cut =
			flags & MRC_WIRE_F_UNCHECKED ? !frame->is_placed : !frame->is_body_good;

		if (frame->hdr.type == MRC_WIRE_FRAG && !is_cut)
			whole++;
		else if (frame->hdr.type == MRC_WIRE_FRAG)
			zeros++;
		else if (frame->hdr.type == MRC_WIRE_NOP)
			nops++;
	}
	assert_int_equal(zeros, 1);
	assert_int_equal(whole + zeros + nops, count - 2);
	/* What the control frames say stays true: they arrive as they are. */
	assert_int_equal(f->b->frames[count - 2].hdr.type, MRC_WIRE_LEVEL);
	assert_int_equal(f->b->frames[count - 1].hdr.type, MRC_WIRE_LEVEL);
}

static void strip_leaves_no_payload_to_be_read(void **state)
{
	strip_leaves_nothing(*state, 0);
}

/* No checksum tells that it ends in zeros: its tail does. */
static void a_fragment_without_a_checksum_tells_that_it_was_cut(void **state)
{
	strip_leaves_nothing(*state, MRC_WIRE_F_UNCHECKED);
}

static void the_memory_of_a_client_that_died_is_not_missed(void **state)
{
	struct fake *f = *state;
	uint32_t count, bad = 0;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 2);
	connect_both(f);
	count = fill(f, 60000, 0);
	f->is_client_gone = true;
	memset(f->send, 0xee, FAKE_MEMORY_BYTES);
	fake_until(f, f->b->frame_count == count);
	for (uint32_t i = 0; i < count; i++)
		bad += !f->b->frames[i].is_body_good;
	assert_int_equal(bad, 1); /* the one half written, finished with zeros */
	assert_int_equal(f->b->frames[count - 1].hdr.type, MRC_WIRE_NOP);
}

static void memory_that_cannot_be_read_hurts_its_own_fragment_only(void **state)
{
	struct fake *f = *state;
	uint32_t count = 0;

	connect_both(f);
	free(f->send);
	f->send = mmap(NULL, FAKE_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	assert_ptr_not_equal(f->send, MAP_FAILED);
	assert_int_equal(mprotect(f->send + 65536, 65536, PROT_NONE), 0);
	for (int i = 0; i < 5; i++) {
		struct mrc_act_post control = fake_control(f->a->link, MRC_WIRE_ACK, count++, 8);
		struct mrc_act_post frag;

		post(f->a, &control);
		frag = fake_frag(f->a->link, count++, (uint64_t)i * 32768, 32768);
		/* Unchecked, so that the socket is the first to look. */
		frag.hdr.flags |= MRC_WIRE_F_UNCHECKED;
		post(f->a, &frag);
	}
	flush(f->a);
	fake_until(f, f->b->frame_count == count && f->a->sent == count);
	for (uint32_t i = 0; i < count; i++) {
		const struct fake_frame *frame = &f->b->frames[i];

		assert_int_equal(frame->hdr.type == MRC_WIRE_ACK, i % 2 == 0);
		/* What lies at 65536 and 98304 cannot be read: cut, or never begun. */
		if (frame->hdr.type == MRC_WIRE_FRAG)
			assert_int_equal(frame->is_placed, frame->hdr.addr / 65536 != 1);
	}
	assert_int_equal(f->a->downs + f->b->downs, 0);
	munmap(f->send, FAKE_MEMORY_BYTES);
	f->send = NULL;
}

static void what_goes_to_scratch_is_not_placed(void **state)
{
	/* A short one comes staged with its header, of a long one the rest is read to its place. */
	static const struct {
		uint32_t len, from;
	} cases[] = {{200, 0},    {200, 199},      {200, 200},      {100000, 0},
		     {100000, 1}, {100000, 50000}, {100000, 99999}, {100000, 100000}};
	struct fake *f = *state;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 3);
	connect_both(f);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, i, 0, cases[i].len);
		bool is_whole = cases[i].from == cases[i].len;

		memset(f->landing, 0xcc, 100001);
		f->scratch_from = cases[i].from;
		post(f->a, &frag);
		flush(f->a);
		fake_until(f, f->b->frame_count == i + 1);
		assert_int_equal(f->b->frames[i].is_placed, is_whole);
		assert_true(f->b->frames[i].is_body_good);
		assert_memory_equal(f->landing, f->send, cases[i].from);
		assert_int_equal(f->landing[cases[i].from], 0xcc);
	}
	f->scratch_from = UINT32_MAX;
}

static void what_was_given_up_before_its_end_is_not_judged(void **state)
{
	struct fake *f = *state;
	struct mrc_act_post frag;

	connect_both(f);
	f->is_whole_gone = true;
	/* Longer than one read: nobody can give up what comes in one piece before its end. */
	frag = fake_frag(f->a->link, 0, 0, 100000);
	post(f->a, &frag);
	flush(f->a);
	fake_until(f, f->b->frame_count == 1);
	assert_false(f->b->frames[0].is_placed);
	assert_true(f->b->frames[0].is_body_good);
}

/* ---- a peer that breaks the rules ---- */

/* Take a's link away from it: its socket, for the test to write what it likes. */
static int hijack(struct fake *f)
{
	struct mrcd_tcp_link *link;
	int fd;

	connect_both(f);
	link = mrcd_tcp_link_of(f->a->link);
	fd = dup(link->fd);
	assert_true(fd >= 0);
	event_del(&link->read_event);
	return fd;
}

static uint32_t frame_make(const struct mrc_act_post *p, const uint8_t *payload, uint8_t *out)
{
	struct mrc_wire_hdr hdr = p->hdr;

	if (hdr.type != MRC_WIRE_FRAG) {
		hdr.body_len = p->body_len + p->pad_len;
		memcpy(out + MRC_WIRE_HDR_BYTES, p->body, p->body_len);
		memset(out + MRC_WIRE_HDR_BYTES + p->body_len, 0, p->pad_len);
	} else {
		memcpy(out + MRC_WIRE_HDR_BYTES, payload, hdr.body_len);
	}
	hdr.body_crc = mrcd_crc32c(0, out + MRC_WIRE_HDR_BYTES, hdr.body_len);
	mrc_wire_encode(&hdr, mrcd_crc32c, out);
	return MRC_WIRE_HDR_BYTES + hdr.body_len;
}

static void frames_cut_anywhere_are_put_together(void **state)
{
	static uint8_t stream[8192];
	struct fake *f = *state;
	int fd = hijack(f);
	struct mrc_act_post p;
	uint32_t len = 0, frames = 0;

	fake_pattern(f->send, 4096, 4);
	p = fake_control(f->a->link, MRC_WIRE_STATE, 1, 100);
	len += frame_make(&p, NULL, stream + len);
	p = fake_frag(f->a->link, 2, 0, 300);
	len += frame_make(&p, f->send, stream + len);
	p = fake_control(f->a->link, MRC_WIRE_PROBE, 3, 0);
	p.pad_len = 1100;
	len += frame_make(&p, NULL, stream + len);
	p = fake_frag(f->a->link, 4, 300, 40);
	p.hdr.flags |= MRC_WIRE_F_UNCHECKED;
	len += frame_make(&p, f->send + 300, stream + len);
	stream[len++] = MRCD_TCP_TAIL_WHOLE;
	p = fake_frag(f->a->link, 5, 400, 0);
	p.hdr.flags |= MRC_WIRE_F_UNCHECKED; /* without a body it has no tail either */
	len += frame_make(&p, f->send, stream + len);
	p = fake_control(f->a->link, MRC_WIRE_ACK, 6, 0);
	len += frame_make(&p, NULL, stream + len);

	for (uint32_t cut = 0; cut <= len; cut++) {
		memset(f->landing, 0, 340);
		assert_int_equal(write(fd, stream, cut), cut);
		fake_settle(f);
		assert_int_equal(write(fd, stream + cut, len - cut), len - cut);
		frames += 6;
		fake_until(f, f->b->frame_count == frames);
		assert_memory_equal(f->landing, f->send, 340);
		for (uint32_t i = 0; i < 6; i++) {
			const struct fake_frame *frame =
				&f->b->frames[(frames - 6 + i) % FAKE_FRAMES_MAX];

			assert_int_equal(frame->hdr.msg, i + 1);
			assert_true(frame->is_body_good);
		}
	}
	close(fd);
}

static void damaged_payload_is_reported_and_the_path_lives(void **state)
{
	static uint8_t bytes[1024];
	struct fake *f = *state;
	int fd = hijack(f);
	const struct mrcd_tcp_link *link = mrcd_tcp_link_of(f->b->link);
	struct mrc_act_post p = fake_frag(f->a->link, 1, 0, 500);
	uint32_t len = frame_make(&p, f->send, bytes);

	bytes[len - 1] ^= 0x10;
	assert_int_equal(write(fd, bytes, len), len);
	fake_until(f, f->b->frame_count == 1);
	assert_false(f->b->frames[0].is_body_good);
	assert_true(f->b->frames[0].is_placed);

	/* Without a checksum nothing is said against it. */
	p.hdr.flags |= MRC_WIRE_F_UNCHECKED;
	len = frame_make(&p, f->send, bytes);
	bytes[len - 1] ^= 0x10;
	bytes[len++] = MRCD_TCP_TAIL_WHOLE;
	assert_int_equal(write(fd, bytes, len), len);
	fake_until(f, f->b->frame_count == 2);
	assert_true(f->b->frames[1].is_body_good);
	assert_true(f->b->frames[1].is_placed);

	/* But it says itself that it was cut, be it with the payload or later. */
	bytes[len - 1] = MRCD_TCP_TAIL_CUT;
	assert_int_equal(write(fd, bytes, len), len);
	fake_until(f, f->b->frame_count == 3);
	assert_true(f->b->frames[2].is_body_good);
	assert_false(f->b->frames[2].is_placed);
	assert_int_equal(write(fd, bytes, len - 1), len - 1);
	fake_until(f, link->is_in_body && link->body_done == 500);
	assert_int_equal(f->b->frame_count, 3);
	assert_int_equal(write(fd, bytes + len - 1, 1), 1);
	fake_until(f, f->b->frame_count == 4);
	assert_false(f->b->frames[3].is_placed);
	assert_int_equal(f->b->downs, 0);

	bytes[len - 1] = MRCD_TCP_TAIL_CUT | 0x20;
	assert_int_equal(write(fd, bytes, len), len);
	fake_until(f, f->b->downs == 1);
	assert_int_equal(f->b->frame_count, 4);
	assert_int_equal(f->b->reason, MRC_REASON_CORRUPT);
	close(fd);
}

/* Two links bring the same bytes at once: each answers for its own, and memory for what it is. */
static void who_brought_damage_is_told_from_whom_it_was_written_over(void **state)
{
	const struct {
		const char *name;
		uint64_t rival_msg, rival_offset;
		bool is_rival_writing; /* what came first is written over before the rest comes */
		bool is_own_damage;
		bool want_good, want_placed;
		enum {
			CHECKED,
			BEFORE,
			LATER,
			LATER_AND_OVER
		} unchecked; /* when the rival began */
	} rows[] = {
		{"both bring the same", 1, 0, false, false, true, true, CHECKED},
		{"the rival's is damaged", 1, 0, true, false, true, false, CHECKED},
		{"its own is damaged", 1, 0, false, true, false, true, CHECKED},
		{"both are", 1, 0, true, true, false, true, CHECKED},
		{"the rival brings what is next to it", 1, 500, false, false, true, true, CHECKED},
		{"and of another message", 2, 0, false, false, true, true, CHECKED},
		/* Without checksums: what begins last writes, what began first does so no more. */
		{"unchecked, before it the same", 1, 0, false, false, true, true, BEFORE},
		{"unchecked, the same after it", 1, 0, false, false, true, false, LATER},
		{"and that has ended", 1, 0, false, false, true, false, LATER_AND_OVER},
	};
	static uint8_t bytes[1024];
	struct fake *f = *state;
	int fd = hijack(f);
	struct mrcd_tcp_link rival = {.link = *f->b->link};

	f->b->second = &rival.link;
	fake_pattern(f->send, 500, 9);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_act_post p = fake_frag(f->a->link, 1, 0, 500);
		uint32_t len = frame_make(&p, f->send, bytes), half = len - 200;
		const struct fake_frame *frame = &f->b->frames[i % FAKE_FRAMES_MAX];
		const struct mrcd_tcp_link *link = mrcd_tcp_link_of(f->b->link);
		bool is_rival = rows[i].rival_msg == 1 && rows[i].rival_offset == 0;

		if (rows[i].unchecked != CHECKED) {
			p.hdr.flags |= MRC_WIRE_F_UNCHECKED;
			len = frame_make(&p, f->send, bytes);
			bytes[len++] = MRCD_TCP_TAIL_WHOLE;
			half = len - 201;
		}

		rival.is_in_body = true;
		rival.is_contested = false;
		rival.hdr = p.hdr;
		rival.hdr.body_len = 500;
		rival.hdr.msg = rows[i].rival_msg;
		rival.hdr.offset = rows[i].rival_offset;
		bytes[MRC_WIRE_HDR_BYTES + 7] ^= rows[i].is_own_damage;
		assert_int_equal(write(fd, bytes, half), half);
		fake_until(f, link->is_in_body && link->body_done == half - MRC_WIRE_HDR_BYTES);
		assert_int_equal(rival.is_contested, is_rival);
		assert_int_equal(link->is_contested, is_rival && rows[i].unchecked == CHECKED);
		if (rows[i].unchecked >= LATER) { /* as when its header came now */
			mrcd_tcp_link_of(f->b->link)->is_contested = true;
			rival.is_in_body = rows[i].unchecked == LATER;
			f->landing[p.hdr.addr + 300] = 0x77;
		}
		f->landing[p.hdr.addr + 3] ^= rows[i].is_rival_writing;
		assert_int_equal(write(fd, bytes + half, len - half), len - half);
		fake_until(f, f->b->frame_count == i + 1);
		if (frame->is_body_good != rows[i].want_good ||
		    frame->is_placed != rows[i].want_placed)
			fail_msg("%s: good %d, placed %d", rows[i].name, frame->is_body_good,
				 frame->is_placed);
		if (rows[i].unchecked >= LATER) /* it wrote no further */
			assert_int_equal(f->landing[p.hdr.addr + 300], 0x77);
	}
	f->b->second = NULL;
	close(fd);
}

struct rule {
	const char *name;
	void (*make)(struct mrc_act_post *p);
	int flip_byte; /* -1: none */
	enum mrc_path_reason want;
};

static void make_nothing(struct mrc_act_post *p)
{
}

static void make_other_conn_epoch(struct mrc_act_post *p)
{
	p->hdr.conn_epoch++;
}

static void make_other_path_epoch(struct mrc_act_post *p)
{
	p->hdr.path_epoch--;
}

static void make_hello(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_HELLO;
}

static void make_auth(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_AUTH;
}

static void make_ready(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_READY;
}

static void make_unknown(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_TYPE_END;
}

static void make_unknown_flag(struct mrc_act_post *p)
{
	p->hdr.flags = 0x8000;
}

static void make_direct(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_FRAG;
	p->hdr.flags = MRC_WIRE_F_DIRECT;
	p->hdr.msg_len = p->hdr.body_len = 0;
}

static void make_long(struct mrc_act_post *p)
{
	p->body_len = 0;
	p->pad_len = MRC_WIRE_CTL_BYTES_MAX + 1;
}

static void make_outside_its_message(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_FRAG;
	p->hdr.body_len = 10;
	p->hdr.msg_len = 9;
}

static void make_probe(struct mrc_act_post *p)
{
	p->hdr.type = MRC_WIRE_PROBE;
	p->body_len = 0;
	p->pad_len = 3000;
}

static void who_breaks_the_rules_loses_the_link(void **state)
{
	static const struct rule rules[] = {
		{"magic damaged", make_nothing, 0, MRC_REASON_CORRUPT},
		{"version damaged", make_nothing, 4, MRC_REASON_CORRUPT},
		{"header damaged", make_nothing, 32, MRC_REASON_CORRUPT},
		{"header checksum damaged", make_nothing, 79, MRC_REASON_CORRUPT},
		{"control body damaged", make_nothing, 80, MRC_REASON_CORRUPT},
		{"probe damaged", make_probe, 80 + 2999, MRC_REASON_CORRUPT},
		{"short probe damaged", make_nothing, 80 + 19, MRC_REASON_CORRUPT},
		{"other conn epoch", make_other_conn_epoch, -1, MRC_REASON_PROTOCOL},
		{"other path epoch", make_other_path_epoch, -1, MRC_REASON_PROTOCOL},
		{"HELLO", make_hello, -1, MRC_REASON_PROTOCOL},
		{"AUTH", make_auth, -1, MRC_REASON_PROTOCOL},
		{"READY", make_ready, -1, MRC_REASON_PROTOCOL},
		{"unknown type", make_unknown, -1, MRC_REASON_PROTOCOL},
		{"unknown flag", make_unknown_flag, -1, MRC_REASON_PROTOCOL},
		{"direct placement", make_direct, -1, MRC_REASON_PROTOCOL},
		{"control body too long", make_long, -1, MRC_REASON_PROTOCOL},
		{"fragment outside its message", make_outside_its_message, -1, MRC_REASON_PROTOCOL},
	};
	static uint8_t bytes[8192];

	for (size_t r = 0; r < MRC_ARRAY_LEN(rules); r++) {
		struct fake *f = *state;
		int fd = hijack(f);
		struct mrc_act_post p = fake_control(f->a->link, MRC_WIRE_STATE, 1, 20);
		uint32_t len;

		print_message("%s\n", rules[r].name);
		rules[r].make(&p);
		len = frame_make(&p, f->send, bytes);
		if (rules[r].flip_byte >= 0)
			bytes[rules[r].flip_byte] ^= 1;
		assert_int_equal(write(fd, bytes, len), len);
		fake_until(f, f->b->downs == 1);
		assert_int_equal(f->b->reason, rules[r].want);
		assert_int_equal(f->b->frame_count, 0);
		close(fd);
		tear_down(state);
		set_up(state);
	}
}

static void a_frame_the_engine_condemns_ends_the_link(void **state)
{
	struct fake *f = *state;
	struct mrc_act_post control;

	connect_both(f);
	f->b->is_protocol_error = true;
	for (int i = 0; i < 2; i++) {
		control = fake_control(f->a->link, MRC_WIRE_STATE, 1, 20);
		post(f->a, &control);
	}
	flush(f->a);
	fake_until(f, f->b->downs == 1 && f->a->downs == 1);
	assert_int_equal(f->b->frame_count, 1); /* nothing after it is taken */
	assert_int_equal(f->b->reason, MRC_REASON_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padding_has_ones_and_zeros_in_every_place),
		claim(frames_of_all_sizes_arrive_in_order),
		claim(sealed_frames_of_all_sizes_arrive_in_order),
		claim(short_writes_of_records_lose_nothing),
		claim(short_writes_lose_nothing),
		claim(payload_goes_to_many_places),
		claim(more_frames_than_a_call_takes_all_arrive),
		claim(strip_leaves_no_payload_to_be_read),
		claim(a_fragment_without_a_checksum_tells_that_it_was_cut),
		claim(the_memory_of_a_client_that_died_is_not_missed),
		claim(memory_that_cannot_be_read_hurts_its_own_fragment_only),
		claim(what_goes_to_scratch_is_not_placed),
		claim(what_was_given_up_before_its_end_is_not_judged),
		claim(frames_cut_anywhere_are_put_together),
		claim(damaged_payload_is_reported_and_the_path_lives),
		claim(who_brought_damage_is_told_from_whom_it_was_written_over),
		claim(who_breaks_the_rules_loses_the_link),
		claim(a_frame_the_engine_condemns_ends_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
