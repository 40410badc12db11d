/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rail_fake.h"

#include "mrcd_tcp.h"

static uint16_t port_of(const struct mrcd_rail *rail)
{
	const struct mrcd_tcp *tcp = rail->kind_data;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.v6 = {0}};
	socklen_t len = sizeof(address);

	assert_int_equal(getsockname(tcp->listen_fd, &address.any, &len), 0);
	return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

static struct fake *open_at(const char *address_a, const char *address_b)
{
	struct fake *f = fake_new(&mrcd_rail_tcp_ops, address_a, address_b);

	for (int i = 0; i < 2; i++)
		assert_int_equal(mrcd_rail_tcp_ops.open(&f->worker.rails[i]), 0);
	snprintf(f->a->address, sizeof(f->a->address), "%s", address_b);
	f->a->port = port_of(f->b->rail);
	return f;
}

static int set_up(void **state)
{
	*state = open_at("127.0.0.1", "127.0.0.1");
	return 0;
}

static int tear_down(void **state)
{
	struct fake *f = *state;
	struct mrcd_peer *peers[] = {f->a, f->b};

	for (int i = 0; i < 2; i++) {
		if (peers[i]->link)
			peers[i]->link->ops->fence(peers[i]->link);
	}
	for (int i = 0; i < 2; i++)
		mrcd_rail_tcp_ops.close(&f->worker.rails[i]);
	fake_free(f);
	return 0;
}

static void connect_both(struct fake *f)
{
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->link && f->b->link);
}

static void post(struct mrcd_peer *peer, const struct mrc_act_post *p)
{
	peer->link->ops->post(peer->link, p);
}

static void flush(struct mrcd_peer *peer)
{
	peer->link->ops->flush(peer->link);
}

/* So little room that nearly every write is a short one. */
static void shrink_sending(struct mrcd_peer *from)
{
	const int small = 4096;

	setsockopt(mrcd_tcp_link_of(from->link)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

/* And a receiver that soon takes no more. (A stream through it would crawl: its window is less than
 * a segment of the loopback's.) */
static void shrink_receiving(struct mrcd_peer *to)
{
	const int small = 4096;

	setsockopt(mrcd_tcp_link_of(to->link)->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
}

/* ---- handshake over sockets ---- */

static void two_hosts_with_one_key_get_a_link(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	assert_int_equal(f->a->auth.conn_epoch, 1);
	assert_int_equal(f->b->auth.conn_epoch, 1);
	assert_int_equal(f->a->auth.path_epoch, f->b->auth.path_epoch);
	assert_int_equal(f->a->peer_boot_id, 0xbbbb);
	assert_int_equal(f->b->peer_boot_id, 0xaaaa);
	assert_int_equal(f->worker.strangers, 0);
}

static void a_second_attempt_beside_the_first_is_ignored(void **state)
{
	struct fake *f = *state;

	for (int i = 0; i < 3; i++)
		mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->link && f->b->link);
	fake_settle(f);
	assert_int_equal(f->a->ups, 1);
	assert_int_equal(f->b->ups, 1);
}

static void a_peer_with_another_key_is_refused_and_counted_on_both_hosts(void **state)
{
	struct fake *f = *state;

	f->a->keys[0].bytes[3] ^= 1;
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->failures == 1 && f->b->rail->strangers == 1);
	assert_int_equal(f->a->rail->strangers, 1);
	assert_int_equal(f->a->ups + f->b->ups, 0);
	assert_string_equal(f->a->why, "has another key than ours");
}

static void a_refused_connection_is_a_failed_attempt_and_no_stranger(void **state)
{
	struct fake *f = *state;

	mrcd_rail_tcp_ops.close(f->b->rail);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	assert_int_equal(f->a->failures, 0); /* not from inside the call */
	fake_until(f, f->a->failures == 1);
	assert_int_equal(f->worker.strangers, 0);
	assert_int_equal(mrcd_rail_tcp_ops.open(f->b->rail), 0);
}

static void an_address_of_another_family_is_a_failed_attempt(void **state)
{
	struct fake *f = *state;

	strcpy(f->a->address, "::1");
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	assert_int_equal(f->a->failures, 0);
	fake_until(f, f->a->failures == 1);
}

static void epochs_that_moved_on_close_the_link_and_can_be_tried_again(void **state)
{
	struct fake *f = *state;

	f->b->is_up_refused = true;
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->downs == 1);
	f->b->is_up_refused = false;
	connect_both(f);
	f->a->is_up_refused = true;
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->failures == 1);
	assert_int_equal(f->worker.strangers, 0);
}

static void a_new_link_takes_the_place_of_the_old_one(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->ups == 2 && f->b->ups == 2);
	fake_settle(f);
	assert_int_equal(f->a->fences, 1);
	assert_int_equal(f->b->fences, 1);
	assert_int_equal(f->a->downs + f->b->downs, 0);
	assert_int_equal(f->a->auth.path_epoch, 2);
}

static void a_name_in_the_hosts_file_is_found(void **state)
{
	struct fake *f = *state;

	strcpy(f->a->address, "localhost");
	connect_both(f);
}

static void a_name_nobody_knows_is_a_failed_attempt(void **state)
{
	struct fake *f = *state;

	f->conf.handshake_timeout_ns = MRC_S / 2;
	strcpy(f->a->address, "nobody.invalid");
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	assert_int_equal(f->a->failures, 0);
	fake_until(f, f->a->failures == 1);
}

static void ipv6_works_as_well(void **state)
{
	struct sockaddr_in6 lo = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool is_there = fd >= 0 && bind(fd, (struct sockaddr *)&lo, sizeof(lo)) == 0;
	struct fake *f;

	if (fd >= 0)
		close(fd);
	if (!is_there)
		skip();
	tear_down(state);
	f = open_at("::1", "::1");
	*state = f;
	connect_both(f);
}

static void a_rail_whose_address_is_missing_opens_all_the_same(void **state)
{
	struct mrcd_rail *rail = &fake->worker.rails[1];
	struct mrcd_conf_rail *conf = &fake->conf.rails[1];

	mrcd_rail_tcp_ops.close(rail);
	strcpy(conf->address, "192.0.2.1");
	assert_int_equal(mrcd_rail_tcp_ops.open(rail), 0);
	assert_true(((struct mrcd_tcp *)rail->kind_data)->listen_fd >= 0);
	mrcd_rail_tcp_ops.close(rail);

	strcpy(conf->interface, "no-such-if");
	assert_int_equal(mrcd_rail_tcp_ops.open(rail), 0);
	assert_true(((struct mrcd_tcp *)rail->kind_data)->listen_fd < 0);
	/* It comes: the rail is told and listens. */
	strcpy(conf->interface, "lo");
	mrcd_rail_tcp_ops.refresh(rail);
	assert_true(((struct mrcd_tcp *)rail->kind_data)->listen_fd >= 0);
	mrcd_rail_tcp_ops.close(rail);

	strcpy(conf->address, "not an address");
	assert_int_equal(mrcd_rail_tcp_ops.open(rail), -EINVAL);
	strcpy(conf->address, "127.0.0.1");
	conf->interface[0] = '\0';
	assert_int_equal(mrcd_rail_tcp_ops.open(rail), 0);
}

static void a_rail_without_an_address_takes_its_interfaces_first(void **state)
{
	struct fake *f = *state;

	for (int i = 0; i < 2; i++) {
		mrcd_rail_tcp_ops.close(&f->worker.rails[i]);
		f->conf.rails[i].address[0] = '\0';
		strcpy(f->conf.rails[i].interface, "lo");
		assert_int_equal(mrcd_rail_tcp_ops.open(&f->worker.rails[i]), 0);
	}
	f->a->port = port_of(f->b->rail);
	connect_both(f);
}

static void a_forgotten_peer_hears_nothing_of_its_attempts(void **state)
{
	struct fake *f = *state;

	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	mrcd_rail_tcp_ops.forget(f->a->rail, f->a);
	fake_until(f, f->b->rail->strangers == 1); /* who closed */
	assert_int_equal(f->a->failures + f->a->ups, 0);
}

/* ---- strangers ---- */

static int stranger_new(struct fake *f)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(f->a->port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static bool is_closed(int fd)
{
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

static void a_web_browser_is_turned_away_at_once(void **state)
{
	struct fake *f = *state;
	int fd = stranger_new(f);

	assert_int_equal(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
	fake_until(f, is_closed(fd));
	assert_int_equal(f->b->rail->strangers, 1);
	assert_int_equal(f->worker.strangers, 1);
	close(fd);
}

static void a_half_open_connection_ends_by_itself(void **state)
{
	struct fake *f = *state;
	int silent, half;

	f->conf.handshake_timeout_ns = 20 * MRC_MS;
	silent = stranger_new(f);
	half = stranger_new(f);
	assert_int_equal(write(half, "MRCF\1", 5), 5);
	fake_until(f, is_closed(silent) && is_closed(half));
	assert_int_equal(f->b->rail->strangers, 2);
	close(silent);
	close(half);
	/* And nobody is kept out by it. */
	f->conf.handshake_timeout_ns = 10 * MRC_S;
	connect_both(f);
}

static void of_too_many_strangers_the_oldest_goes(void **state)
{
	struct fake *f = *state;
	int fds[4];

	f->conf.handshakes_max = 3;
	for (int i = 0; i < 4; i++)
		fds[i] = stranger_new(f);
	fake_until(f, is_closed(fds[0]));
	fake_settle(f);
	assert_int_equal(f->b->rail->strangers, 1);
	for (int i = 1; i < 4; i++)
		assert_false(is_closed(fds[i]));
	/* A real peer still comes through. */
	connect_both(f);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

static void a_rail_closes_with_strangers_in_its_door(void **state)
{
	struct fake *f = *state;
	int fd = stranger_new(f);

	fake_settle(f);
	mrcd_rail_tcp_ops.close(f->b->rail);
	assert_true(is_closed(fd));
	close(fd);
	assert_int_equal(mrcd_rail_tcp_ops.open(f->b->rail), 0);
}

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
		}
	}
	assert_memory_equal(f->send, f->landing, addr);
	assert_int_equal(f->b->rail->bytes_received, addr);
	assert_int_equal(f->a->rail->bytes_sent, addr);
	assert_int_equal(f->b->rail->frames_received, count);
	assert_true(f->b->pumps > 0);
}

static void frames_of_all_sizes_arrive_in_order(void **state)
{
	send_all_sizes(*state, false, UINT32_MAX);
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

/* Until so much is posted that the socket takes no more: the rest stays with us. */
static uint32_t fill(struct fake *f, uint32_t frag_len)
{
	uint32_t count = 0;

	shrink_sending(f->a);
	shrink_receiving(f->b);
	for (int i = 0; i < 40; i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, count, i * 1000U, frag_len);

		post(f->a, &frag);
		count++;
	}
	flush(f->a);
	return count;
}

static void strip_leaves_no_payload_to_be_read(void **state)
{
	struct fake *f = *state;
	struct mrc_act_post control;
	uint32_t count, whole = 0, zeros = 0, nops = 0;
	uint64_t asked;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 2);
	connect_both(f);
	count = fill(f, 60000);
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

		if (frame->hdr.type == MRC_WIRE_FRAG && frame->is_body_good)
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

static void the_memory_of_a_client_that_died_is_not_missed(void **state)
{
	struct fake *f = *state;
	uint32_t count, bad = 0;

	fake_pattern(f->send, FAKE_MEMORY_BYTES, 2);
	connect_both(f);
	count = fill(f, 60000);
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
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(f->b->frames[i].hdr.type == MRC_WIRE_ACK, i % 2 == 0);
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
	frag = fake_frag(f->a->link, 0, 0, 5000);
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
	p = fake_frag(f->a->link, 4, 300, 0);
	len += frame_make(&p, f->send, stream + len);
	p = fake_control(f->a->link, MRC_WIRE_ACK, 5, 0);
	len += frame_make(&p, NULL, stream + len);

	for (uint32_t cut = 0; cut <= len; cut++) {
		memset(f->landing, 0, 300);
		assert_int_equal(write(fd, stream, cut), cut);
		fake_settle(f);
		assert_int_equal(write(fd, stream + cut, len - cut), len - cut);
		frames += 5;
		fake_until(f, f->b->frame_count == frames);
		assert_memory_equal(f->landing, f->send, 300);
		for (uint32_t i = 0; i < 5; i++) {
			const struct fake_frame *frame =
				&f->b->frames[(frames - 5 + i) % FAKE_FRAMES_MAX];

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
	assert_int_equal(write(fd, bytes, len), len);
	fake_until(f, f->b->frame_count == 2);
	assert_true(f->b->frames[1].is_body_good);
	assert_int_equal(f->b->downs, 0);
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

/* ---- handing over to a device ---- */

static const struct mrcd_tcp *tcp_of(const struct mrcd_rail *rail)
{
	return rail->kind_data;
}

/* A device, as the tcp part sees one; index 0 is a's. */
struct device {
	struct mrcd_tcp_upgrade upgrade;
	bool is_capable;
	uint16_t port;
	uint32_t asked;
	/* What it was handed. */
	uint32_t starts;
	int fd;
	struct mrcd_handshake hs;
	char address[MRCD_ADDRESS_TEXT_BYTES];
	bool is_next_free; /* the path's next attempt could have begun in the call */
};

static bool device_is_capable(void *context)
{
	struct device *device = context;

	device->asked++;
	return device->is_capable;
}

static uint16_t device_port(void *context)
{
	return ((struct device *)context)->port;
}

static void device_start(void *context, int fd, const struct mrcd_handshake *hs,
			 const struct sockaddr_storage *address, socklen_t address_len)
{
	struct device *device = context;

	device->starts++;
	device->fd = fd;
	device->hs = *hs;
	mrcd_tcp_address_text(address, address_len, device->address);
	/* It may fail at once, and the engine then asks for the next. */
	device->is_next_free =
		hs->is_initiator && !mrcd_tcp_attempt_exists(hs->rail->kind_data, hs->peer, 0);
}

static void devices_open(struct fake *f, struct device devices[2])
{
	struct mrcd_tcp *tcp;

	for (int i = 0; i < 2; i++) {
		struct mrcd_rail *rail = &f->worker.rails[i];

		devices[i].upgrade = (struct mrcd_tcp_upgrade){
			.is_capable = device_is_capable,
			.is_required = devices[i].upgrade.is_required,
			.port = device_port,
			.start = device_start,
			.context = &devices[i],
		};
		mrcd_rail_tcp_ops.close(rail);
		assert_int_equal(mrcd_tcp_new(rail, &devices[i].upgrade, &tcp), 0);
		rail->kind_data = tcp;
	}
	f->a->port = port_of(f->b->rail);
}

static void two_devices_get_the_connection_and_a_token(void **state)
{
	struct fake *f = *state;
	struct device devices[2] = {{.is_capable = true}, {.is_capable = true, .port = 4791}};
	struct pollfd pfd = {.events = POLLIN};
	char byte = 'x';

	devices[0].port = 1; /* the initiator's is not said */
	devices_open(f, devices);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, devices[0].starts && devices[1].starts);
	fake_settle(f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(devices[i].starts, 1);
		assert_true(mrcd_handshake_is_done(&devices[i].hs));
		assert_true(devices[i].hs.is_direct_capable);
		assert_int_equal(devices[i].hs.is_initiator, i == 0);
		assert_ptr_equal(devices[i].hs.peer, i ? f->b : f->a);
		assert_int_equal(devices[i].hs.device_port, 4791);
		assert_int_equal(devices[i].hs.auth.path_epoch, 1);
		assert_string_equal(devices[i].address, "127.0.0.1");
		assert_int_equal(tcp_of(&f->worker.rails[i])->inbound_count, 0);
		assert_true(TAILQ_EMPTY(&tcp_of(&f->worker.rails[i])->outbound));
	}
	assert_true(devices[0].is_next_free);
	assert_memory_equal(devices[0].hs.device_token, devices[1].hs.device_token,
			    MRCD_DEVICE_TOKEN_BYTES);
	/* No link, no word, and the connection lives. */
	assert_int_equal(f->a->ups + f->b->ups + f->a->failures + f->b->failures, 0);
	assert_int_equal(write(devices[0].fd, &byte, 1), 1);
	pfd.fd = devices[1].fd;
	assert_int_equal(poll(&pfd, 1, FAKE_GUARD_S * 1000), 1);
	assert_int_equal(read(pfd.fd, &byte, 1), 1);
	close(devices[0].fd);
	close(devices[1].fd);
}

static void without_a_device_at_both_ends_it_is_a_tcp_link(void **state)
{
	for (int mask = 0; mask < 3; mask++) {
		struct fake *f = *state;
		struct device devices[2] = {{.is_capable = mask & 1, .port = 1},
					    {.is_capable = mask & 2, .port = 2}};

		devices_open(f, devices);
		connect_both(f);
		assert_int_equal(devices[0].starts + devices[1].starts, 0);
		assert_int_equal(f->a->failures + f->b->failures, 0);
		assert_string_equal(f->a->link->ops->kind, "tcp");
		tear_down(state);
		set_up(state);
	}
}

static void it_is_asked_anew_for_each_connection(void **state)
{
	struct fake *f = *state;
	struct device devices[2] = {{.is_capable = true}, {.is_capable = true}};

	/* Its port comes late: not usable before. */
	devices_open(f, devices);
	connect_both(f);
	devices[1].port = 7;
	f->a->link->ops->fence(f->a->link);
	fake_until(f, f->b->downs == 1);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, devices[0].starts && devices[1].starts);
	close(devices[0].fd);
	close(devices[1].fd);
}

static void a_rail_of_devices_refuses_what_has_none(void **state)
{
	static const struct {
		bool is_capable[2], is_required[2];
		const char *why; /* as the initiator hears it */
		uint32_t strangers[2];
	} rows[] = {
		{{true, false}, {true, false}, MRCD_WHY_NO_DEVICE_THERE, {1, 1}},
		{{false, true}, {true, false}, MRCD_WHY_NO_DEVICE_HERE, {0, 0}},
		{{false, true}, {false, true}, "closed the connection in the handshake", {0, 1}},
		{{true, false}, {false, true}, "closed the connection in the handshake", {0, 1}},
	};

	for (size_t r = 0; r < MRC_ARRAY_LEN(rows); r++) {
		struct fake *f = *state;
		struct device devices[2] = {{.port = 1}, {.port = 2}};

		for (int i = 0; i < 2; i++) {
			devices[i].is_capable = rows[r].is_capable[i];
			devices[i].upgrade.is_required = rows[r].is_required[i];
		}
		devices_open(f, devices);
		mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
		assert_int_equal(f->a->failures, 0); /* not inside the call */
		fake_until(f, f->a->failures == 1);
		assert_string_equal(f->a->why, rows[r].why);
		fake_until(f, tcp_of(f->b->rail)->inbound_count == 0 &&
				      f->b->rail->strangers == rows[r].strangers[1]);
		assert_int_equal(f->a->rail->strangers, rows[r].strangers[0]);
		assert_int_equal(f->a->ups + f->b->ups, 0);
		assert_int_equal(devices[0].starts + devices[1].starts, 0);
		tear_down(state);
		set_up(state);
	}
}

/* ---- ends ---- */

static void a_fence_is_answered_at_once_and_the_other_end_hears_of_it(void **state)
{
	struct fake *f = *state;
	uint32_t frames;

	connect_both(f);
	fill(f, 200000);
	frames = f->b->frame_count;
	f->b->link->ops->fence(f->b->link);
	assert_int_equal(f->b->fences, 1);
	fake_until(f, f->a->downs == 1);
	assert_int_equal(f->b->frame_count, frames);
	assert_int_equal(f->b->downs, 0);
	connect_both(f);
}

static void a_link_can_be_fenced_with_events_of_it_due(void **state)
{
	struct fake *f = *state;
	struct mrc_act_post control;

	connect_both(f);
	control = fake_control(f->a->link, MRC_WIRE_STATE, 1, 20);
	post(f->a, &control);
	flush(f->a);
	event_active(&mrcd_tcp_link_of(f->b->link)->read_event, EV_READ, 0);
	event_active(&mrcd_tcp_link_of(f->b->link)->write_event, EV_WRITE, 0);
	f->b->link->ops->fence(f->b->link);
	fake_settle(f);
	assert_int_equal(f->b->frame_count, 0);
	assert_int_equal(f->b->downs, 0);
}

static void a_failed_write_is_told_from_outside_the_flush(void **state)
{
	struct fake *f = *state;
	struct mrc_act_post control;

	connect_both(f);
	/* As when the reset has come and nobody read it yet. */
	assert_int_equal(shutdown(mrcd_tcp_link_of(f->a->link)->fd, SHUT_WR), 0);
	control = fake_control(f->a->link, MRC_WIRE_STATE, 1, 20);
	post(f->a, &control);
	flush(f->a);
	assert_int_equal(f->a->downs, 0);
	post(f->a, &control);
	flush(f->a);
	fake_until(f, f->a->downs == 1);
	assert_true(f->a->reason == MRC_REASON_ERROR || f->a->reason == MRC_REASON_CLOSED);
}

static void links_may_outlive_their_rail_for_a_moment(void **state)
{
	struct fake *f = *state;

	connect_both(f);
	for (int i = 0; i < 2; i++)
		mrcd_rail_tcp_ops.close(&f->worker.rails[i]);
	f->a->link->ops->fence(f->a->link);
	f->b->link->ops->fence(f->b->link);
	assert_int_equal(f->a->fences + f->b->fences, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mrcd_rail_tcp_ops.open(&f->worker.rails[i]), 0);
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(two_hosts_with_one_key_get_a_link),
		claim(a_second_attempt_beside_the_first_is_ignored),
		claim(a_peer_with_another_key_is_refused_and_counted_on_both_hosts),
		claim(a_refused_connection_is_a_failed_attempt_and_no_stranger),
		claim(an_address_of_another_family_is_a_failed_attempt),
		claim(epochs_that_moved_on_close_the_link_and_can_be_tried_again),
		claim(a_new_link_takes_the_place_of_the_old_one),
		claim(a_name_in_the_hosts_file_is_found),
		claim(a_name_nobody_knows_is_a_failed_attempt),
		claim(ipv6_works_as_well),
		claim(a_rail_whose_address_is_missing_opens_all_the_same),
		claim(a_rail_without_an_address_takes_its_interfaces_first),
		claim(a_forgotten_peer_hears_nothing_of_its_attempts),
		claim(a_web_browser_is_turned_away_at_once),
		claim(a_half_open_connection_ends_by_itself),
		claim(of_too_many_strangers_the_oldest_goes),
		claim(a_rail_closes_with_strangers_in_its_door),
		claim(frames_of_all_sizes_arrive_in_order),
		claim(short_writes_lose_nothing),
		claim(payload_goes_to_many_places),
		claim(more_frames_than_a_call_takes_all_arrive),
		claim(strip_leaves_no_payload_to_be_read),
		claim(the_memory_of_a_client_that_died_is_not_missed),
		claim(memory_that_cannot_be_read_hurts_its_own_fragment_only),
		claim(what_goes_to_scratch_is_not_placed),
		claim(what_was_given_up_before_its_end_is_not_judged),
		claim(frames_cut_anywhere_are_put_together),
		claim(damaged_payload_is_reported_and_the_path_lives),
		claim(who_breaks_the_rules_loses_the_link),
		claim(a_frame_the_engine_condemns_ends_the_link),
		claim(two_devices_get_the_connection_and_a_token),
		claim(without_a_device_at_both_ends_it_is_a_tcp_link),
		claim(it_is_asked_anew_for_each_connection),
		claim(a_rail_of_devices_refuses_what_has_none),
		claim(a_fence_is_answered_at_once_and_the_other_end_hears_of_it),
		claim(a_link_can_be_fenced_with_events_of_it_due),
		claim(a_failed_write_is_told_from_outside_the_flush),
		claim(links_may_outlive_their_rail_for_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
