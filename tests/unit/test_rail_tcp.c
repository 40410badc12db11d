/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <unistd.h>

#include "rail_tcp_lab.h"

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
	struct sockaddr_in *own;

	for (int i = 0; i < 2; i++) {
		mrcd_rail_tcp_ops.close(&f->worker.rails[i]);
		f->conf.rails[i].address[0] = '\0';
		strcpy(f->conf.rails[i].interface, "lo");
		/* Until it is known it does not listen. */
		assert_int_equal(mrcd_rail_tcp_ops.open(&f->worker.rails[i]), 0);
		assert_true(((struct mrcd_tcp *)f->worker.rails[i].kind_data)->listen_fd < 0);
		mrcd_rail_tcp_ops.close(&f->worker.rails[i]);
		own = (struct sockaddr_in *)&f->worker.rails[i].nic.own;
		own->sin_family = AF_INET;
		own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		f->worker.rails[i].nic.own_len = sizeof(*own);
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

static uint32_t failures_of(const struct mrcd_peer *peers, uint32_t count)
{
	uint32_t failures = 0;

	for (uint32_t i = 0; i < count; i++)
		failures += peers[i].failures;
	return failures;
}

/* Each path has one, to forget a peer's is to forget no other's, and they do not lie in one heap. */
static void attempts_for_thousands_of_peers_are_kept_apart(void **state)
{
	const uint32_t peer_count = 3 * MRCD_TCP_BUCKETS, third = MRCD_TCP_BUCKETS;
	struct fake *f = *state;
	struct mrcd_rail *rail = f->a->rail;
	struct mrcd_tcp *tcp = rail->kind_data;
	struct mrcd_peer *peers = calloc(peer_count, sizeof(*peers));

	assert_non_null(peers);
	tcp->is_cut = true; /* they are under way, without a descriptor */
	for (uint32_t i = 0; i < peer_count; i++) {
		snprintf(peers[i].address, sizeof(peers[i].address), "127.0.0.1");
		peers[i].port = 1;
		for (uint8_t path = 0; path < 2; path++) {
			assert_false(mrcd_tcp_attempt_exists(tcp, &peers[i], path));
			mrcd_rail_tcp_ops.connect(rail, &peers[i], path);
			mrcd_rail_tcp_ops.connect(rail, &peers[i], path); /* ignored */
		}
	}
	assert_true(buckets_used(tcp) > MRCD_TCP_BUCKETS / 2);
	for (uint32_t i = 0; i < peer_count; i += 3)
		mrcd_rail_tcp_ops.forget(rail, &peers[i]);
	for (uint32_t i = 0; i < peer_count; i++) {
		for (uint8_t path = 0; path < 2; path++)
			assert_int_equal(mrcd_tcp_attempt_exists(tcp, &peers[i], path), i % 3 != 0);
	}
	mrcd_tcp_attempts_fail(tcp, "the test says so");
	fake_until(f, failures_of(peers, peer_count) == 2 * 2 * third);
	for (uint32_t i = 0; i < peer_count; i++) {
		assert_int_equal(peers[i].failures, i % 3 != 0 ? 2 : 0);
		assert_string_equal(peers[i].why, i % 3 != 0 ? "the test says so" : "");
	}
	assert_int_equal(buckets_used(tcp), 0);
	tcp->is_cut = false;
	free(peers);
}

/* ---- strangers ---- */

/* At 127.0.0.`host`. */
static int stranger_from(struct fake *f, uint8_t host)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffU) | host),
	};
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(f->a->port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static int stranger_new(struct fake *f)
{
	return stranger_from(f, 1);
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

/* Who floods from one address does not push out who came before from another. */
static void of_too_many_strangers_those_of_one_address_go_first(void **state)
{
	struct fake *f = *state;
	int far, fds[6];

	f->conf.handshakes_max = 3;
	far = stranger_from(f, 2);
	fake_settle(f);
	for (int i = 0; i < 6; i++) {
		fds[i] = stranger_new(f);
		fake_settle(f);
	}
	assert_false(is_closed(far));
	for (int i = 0; i < 6; i++)
		assert_int_equal(is_closed(fds[i]), i < 4);
	assert_int_equal(f->b->rail->strangers, 4);
	close(far);
	for (int i = 0; i < 6; i++)
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

/* ---- ends ---- */

static void a_fence_is_answered_at_once_and_the_other_end_hears_of_it(void **state)
{
	struct fake *f = *state;
	uint32_t frames;

	connect_both(f);
	fill(f, 200000, 0);
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
		claim(attempts_for_thousands_of_peers_are_kept_apart),
		claim(a_web_browser_is_turned_away_at_once),
		claim(a_half_open_connection_ends_by_itself),
		claim(of_too_many_strangers_the_oldest_goes),
		claim(of_too_many_strangers_those_of_one_address_go_first),
		claim(a_rail_closes_with_strangers_in_its_door),
		claim(a_fence_is_answered_at_once_and_the_other_end_hears_of_it),
		claim(a_link_can_be_fenced_with_events_of_it_due),
		claim(a_failed_write_is_told_from_outside_the_flush),
		claim(links_may_outlive_their_rail_for_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
