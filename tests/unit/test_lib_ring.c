/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrc_ring.h"
#include "mrc_wake.h"

#define COUNT     8U
#define CQ_OFFSET (4096U + COUNT * 64U)
#define SQ_TEXTS  (CQ_OFFSET + COUNT * 64U)
#define CQ_TEXTS  (SQ_TEXTS + COUNT * 64U)
#define BYTES     (CQ_TEXTS + COUNT * 64U)

static struct mrc_ring_shm *memory_new(void)
{
	struct mrc_ring_shm *shm = aligned_alloc(4096, 8192);

	assert_non_null(shm);
	memset(shm, 0, 8192);
	shm->magic = MRC_ABI_MAGIC;
	shm->version = MRC_ABI_VERSION;
	shm->sq_entry_count = COUNT;
	shm->cq_entry_count = COUNT;
	shm->sq_offset = 4096;
	shm->cq_offset = CQ_OFFSET;
	shm->sq_text_offset = SQ_TEXTS;
	shm->cq_text_offset = CQ_TEXTS;
	return shm;
}

static struct mrc_cqe *cqe_at(struct mrc_ring_shm *shm, uint32_t position)
{
	return (struct mrc_cqe *)(void *)((char *)shm + CQ_OFFSET) + (position & (COUNT - 1));
}

static void ring_header_that_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *name;
		uint32_t magic, sq, cq, sq_offset, cq_offset;
		uint64_t bytes;
		uint32_t sq_told, cq_told;
		int want;
		uint32_t sq_texts, cq_texts; /* 0: as is right */
	} cases[] = {
		{"good", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, 0, 0, 0},
		{"rings the other way round", MRC_ABI_MAGIC, 8, 8, CQ_OFFSET, 4096, BYTES, 8, 8, 0,
		 0, 0},
		{"magic", 1, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, -EPROTO, 0, 0},
		{"other count than told", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 4, 8,
		 -EPROTO, 0, 0},
		{"no power of two", MRC_ABI_MAGIC, 6, 8, 4096, CQ_OFFSET, BYTES, 6, 8, -EPROTO, 0,
		 0},
		{"no entries", MRC_ABI_MAGIC, 8, 0, 4096, CQ_OFFSET, BYTES, 8, 0, -EPROTO, 0, 0},
		{"too many entries", MRC_ABI_MAGIC, 1U << 31, 8, 4096, CQ_OFFSET, BYTES, 1U << 31,
		 8, -EPROTO, 0, 0},
		{"in the header page", MRC_ABI_MAGIC, 8, 8, 448, CQ_OFFSET, BYTES, 8, 8, -EPROTO, 0,
		 0},
		{"not aligned", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET + 32, BYTES + 32, 8, 8,
		 -EPROTO, 0, 0},
		{"overlapping", MRC_ABI_MAGIC, 8, 8, 4096, 4096 + 64, BYTES, 8, 8, -EPROTO, 0, 0},
		{"one byte short", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES - 1, 8, 8, -EPROTO,
		 0, 0},
		{"offset far out", MRC_ABI_MAGIC, 8, 8, 4096, 0xffffffc0U, BYTES, 8, 8, -EPROTO, 0,
		 0},
		{"no page", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, 100, 8, 8, -EPROTO, 0, 0},
		{"texts the other way round", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, 0,
		 CQ_TEXTS, SQ_TEXTS},
		{"texts in the header page", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8,
		 -EPROTO, 448, CQ_TEXTS},
		{"texts over entries", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, -EPROTO,
		 SQ_TEXTS, CQ_OFFSET + 64},
		{"texts over texts", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, -EPROTO,
		 SQ_TEXTS, CQ_TEXTS - 64},
		{"texts not aligned", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES + 32, 8, 8,
		 -EPROTO, SQ_TEXTS, CQ_TEXTS + 32},
		{"texts far out", MRC_ABI_MAGIC, 8, 8, 4096, CQ_OFFSET, BYTES, 8, 8, -EPROTO,
		 SQ_TEXTS, 0xffffffc0U},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_ring_shm *shm = memory_new();
		struct mrc_ring ring;
		int r;

		shm->magic = cases[i].magic;
		shm->sq_entry_count = cases[i].sq;
		shm->cq_entry_count = cases[i].cq;
		shm->sq_offset = cases[i].sq_offset;
		shm->cq_offset = cases[i].cq_offset;
		if (cases[i].sq_texts != 0) {
			shm->sq_text_offset = cases[i].sq_texts;
			shm->cq_text_offset = cases[i].cq_texts;
		}
		r = mrc_ring_init(&ring, shm, cases[i].bytes, cases[i].sq_told, cases[i].cq_told);
		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].name, r);
		free(shm);
	}
}

static void ring_refuses_a_submission_when_full_and_takes_it_after(void **state)
{
	struct mrc_ring_shm *shm = memory_new();
	struct mrc_sqe *sqes = (struct mrc_sqe *)(void *)((char *)shm + 4096);
	struct mrc_sqe sqe = {.op = MRC_SQE_SEND};
	struct mrc_ring ring;

	/* Positions wrap in the middle of this. */
	shm->sq_tail = UINT32_MAX - 2;
	shm->sq_head = UINT32_MAX - 2;
	assert_int_equal(mrc_ring_init(&ring, shm, BYTES, COUNT, COUNT), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		sqe.number = i;
		assert_true(mrc_ring_has_room(&ring));
		assert_int_equal(mrc_ring_submit(&ring, &sqe, NULL), 0);
		assert_int_equal(shm->sq_tail, (uint32_t)(UINT32_MAX - 2 + i + 1));
		assert_int_equal(sqes[(UINT32_MAX - 2 + i) & (COUNT - 1)].number, i);
	}
	assert_false(mrc_ring_has_room(&ring));
	assert_int_equal(mrc_ring_submit(&ring, &sqe, NULL), -EAGAIN);
	shm->sq_head++;
	assert_int_equal(mrc_ring_submit(&ring, &sqe, NULL), 0);
	assert_int_equal(mrc_ring_submit(&ring, &sqe, NULL), -EAGAIN);
	free(shm);
}

static void ring_tells_impossible_positions(void **state)
{
	struct mrc_ring_shm *shm = memory_new();
	struct mrc_sqe sqe = {0};
	struct mrc_cqe cqe;
	struct mrc_ring ring;

	assert_int_equal(mrc_ring_init(&ring, shm, BYTES, COUNT, COUNT), 0);
	shm->sq_head = 1; /* beyond the tail */
	assert_int_equal(mrc_ring_submit(&ring, &sqe, NULL), -EBADMSG);
	shm->cq_tail = COUNT + 1; /* more than the ring has */
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), -EBADMSG);
	shm->cq_tail = UINT32_MAX; /* backwards */
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), -EBADMSG);
	shm->cq_tail = COUNT;
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 1);
	shm->cq_tail = COUNT + 1; /* reuses what was taken but not published */
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), -EBADMSG);
	mrc_ring_publish(&ring);
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 1);
	free(shm);
}

static void ring_head_moves_when_published_and_tells_visible_once(void **state)
{
	struct mrc_ring_shm *shm = memory_new();
	struct mrc_cqe cqe;
	struct mrc_ring ring;

	assert_int_equal(mrc_ring_init(&ring, shm, BYTES, COUNT, COUNT), 0);
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 0);
	cqe_at(shm, 0)->type = MRC_CQE_ARRIVED;
	cqe_at(shm, 0)->number = 40;
	cqe_at(shm, 1)->type = MRC_CQE_ARRIVED;
	cqe_at(shm, 1)->number = 41;
	cqe_at(shm, 1)->flags = MRC_CQE_FLAG_TELL_VISIBLE;
	shm->cq_tail = 2;
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 1);
	assert_int_equal(cqe.number, 40);
	assert_int_equal(shm->cq_head, 0);
	assert_false(mrc_ring_publish(&ring));
	assert_int_equal(shm->cq_head, 1);
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 1);
	assert_int_equal(cqe.number, 41);
	assert_true(mrc_ring_publish(&ring));
	assert_int_equal(shm->cq_head, 2);
	cqe_at(shm, 2)->type = MRC_CQE_CLOSED; /* a channel's last: its memory waits for this */
	cqe_at(shm, 2)->flags = MRC_CQE_FLAG_TELL_VISIBLE;
	shm->cq_tail = 3;
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 1);
	assert_true(mrc_ring_publish(&ring));
	assert_false(mrc_ring_publish(&ring));
	assert_int_equal(mrc_ring_take(&ring, &cqe, NULL), 0);
	free(shm);
}

static void ring_does_not_arm_when_something_is_there(void **state)
{
	struct mrc_ring_shm *shm = memory_new();
	struct mrc_ring ring;

	assert_int_equal(mrc_ring_init(&ring, shm, BYTES, COUNT, COUNT), 0);
	assert_true(mrc_ring_arm(&ring));
	assert_int_equal(shm->client_sleeping, 1);
	shm->cq_tail = 1;
	assert_false(mrc_ring_arm(&ring));
	assert_false(mrc_ring_disarm(&ring));
	assert_int_equal(shm->client_sleeping, 0);
	/* The daemon clears it when it rings. */
	mrc_ring_arm(&ring);
	shm->client_sleeping = 0;
	assert_true(mrc_ring_disarm(&ring));
	free(shm);
}

#define ENTRIES 20000U

struct producer {
	struct mrc_ring_shm *shm;
	int bell_fd;
};

static void *produce(void *context)
{
	struct producer *p = context;

	for (uint32_t i = 0; i < ENTRIES; i++) {
		while (i - __atomic_load_n(&p->shm->cq_head, __ATOMIC_ACQUIRE) == COUNT)
			usleep(1);
		cqe_at(p->shm, i)->number = i;
		__atomic_exchange_n(&p->shm->cq_tail, i + 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&p->shm->client_sleeping, __ATOMIC_SEQ_CST))
			eventfd_write(p->bell_fd, 1);
		if (i % 64 == 0)
			usleep(1); /* let the consumer fall asleep now and then */
	}
	return NULL;
}

static void ring_sleeper_misses_no_entry(void **state)
{
	struct mrc_ring_shm *shm = memory_new();
	struct producer producer = {.shm = shm};
	struct mrc_wake *wake;
	struct mrc_ring ring;
	struct mrc_cqe cqe;
	pthread_t thread;
	int sockets[2];

	assert_int_equal(mrc_ring_init(&ring, shm, BYTES, COUNT, COUNT), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	producer.bell_fd = eventfd(0, EFD_NONBLOCK);
	setenv("MRC_SPIN_US", "0", 1);
	assert_int_equal(mrc_wake_new(producer.bell_fd, sockets[0], &wake), 0);
	unsetenv("MRC_SPIN_US");
	assert_int_equal(pthread_create(&thread, NULL, produce, &producer), 0);
	for (uint32_t i = 0; i < ENTRIES;) {
		int r = mrc_ring_take(&ring, &cqe, NULL);

		assert_true(r >= 0);
		if (r == 1) {
			assert_int_equal(cqe.number, i);
			i++;
			mrc_ring_publish(&ring);
			continue;
		}
		/* A missed bell would leave us here until the deadline. */
		assert_int_equal(mrc_wake_sleep(wake, &ring, mrc_now_ns() + 20000000000ULL),
				 MRC_WAKE_BELL);
	}
	pthread_join(thread, NULL);
	mrc_wake_free(wake);
	close(sockets[0]);
	close(sockets[1]);
	free(shm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_header_that_does_not_fit_is_refused),
		cmocka_unit_test(ring_refuses_a_submission_when_full_and_takes_it_after),
		cmocka_unit_test(ring_tells_impossible_positions),
		cmocka_unit_test(ring_head_moves_when_published_and_tells_visible_once),
		cmocka_unit_test(ring_does_not_arm_when_something_is_there),
		cmocka_unit_test(ring_sleeper_misses_no_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
