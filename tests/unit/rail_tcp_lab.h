/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rail_tcp_lab - two hosts with a tcp rail each, for the tests of such rails and their links
 *
 * On top of rail_fake.h, and included by one source only as that is.
 */
#ifndef RAIL_TCP_LAB_H
#define RAIL_TCP_LAB_H

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "rail_fake.h"

#include "mrcd_tcp.h"

static inline uint16_t port_of(const struct mrcd_rail *rail)
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

/* In how many of its buckets attempts lie that go out. */
static inline uint32_t buckets_used(const struct mrcd_tcp *tcp)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < MRCD_TCP_BUCKETS; i++)
		used += !TAILQ_EMPTY(&tcp->outbound[i]);
	return used;
}

static inline struct fake *open_at(const char *address_a, const char *address_b)
{
	struct fake *f = fake_new(&mrcd_rail_tcp_ops, address_a, address_b);

	for (int i = 0; i < 2; i++)
		assert_int_equal(mrcd_rail_tcp_ops.open(&f->worker.rails[i]), 0);
	snprintf(f->a->address, sizeof(f->a->address), "%s", address_b);
	f->a->port = port_of(f->b->rail);
	return f;
}

static inline int set_up(void **state)
{
	*state = open_at("127.0.0.1", "127.0.0.1");
	return 0;
}

static inline int tear_down(void **state)
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

static inline void connect_both(struct fake *f)
{
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, f->a->link && f->b->link);
}

static inline void post(struct mrcd_peer *peer, const struct mrc_act_post *p)
{
	peer->link->ops->post(peer->link, p);
}

static inline void flush(struct mrcd_peer *peer)
{
	peer->link->ops->flush(peer->link);
}

/* So little room that nearly every write is a short one. */
static inline void shrink_sending(struct mrcd_peer *from)
{
	const int small = 4096;

	setsockopt(mrcd_tcp_link_of(from->link)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

/* And a receiver that soon takes no more. (A stream through it would crawl: its window is less than
 * a segment of the loopback's.) */
static inline void shrink_receiving(struct mrcd_peer *to)
{
	const int small = 4096;

	setsockopt(mrcd_tcp_link_of(to->link)->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
}

/* Until so much is posted that the socket takes no more: the rest stays with us. */
static inline uint32_t fill(struct fake *f, uint32_t frag_len, uint16_t flags)
{
	uint32_t count = 0;

	shrink_sending(f->a);
	shrink_receiving(f->b);
	for (int i = 0; i < 40; i++) {
		struct mrc_act_post frag = fake_frag(f->a->link, count, i * 1000U, frag_len);

		frag.hdr.flags |= flags;
		post(f->a, &frag);
		count++;
	}
	flush(f->a);
	return count;
}

#define claim(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
