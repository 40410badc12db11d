/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_ring.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
/* The thread sanitizer does not model fences; ours only decide about bells, never about data. */
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* The ABI header is for C++ as well and so has plain words; here is where they are shared. */
static uint32_t word_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static uint32_t word_load_acquire(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void word_store_release(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static bool count_is_good(uint32_t count)
{
	return count > 0 && count <= MRC_RING_ENTRIES_MAX && (count & (count - 1)) == 0;
}

/* Entries are one cache line, and so must be aligned as one. */
static bool span_is_good(uint64_t ring_bytes, uint32_t offset, uint32_t count)
{
	return offset >= MRC_RING_PAGE_BYTES && offset % 64 == 0 && offset <= ring_bytes &&
	       (uint64_t)count * 64 <= ring_bytes - offset;
}

int mrc_ring_init(struct mrc_ring *ring, void *memory, uint64_t ring_bytes, uint32_t sq_entry_count,
		  uint32_t cq_entry_count)
{
	struct mrc_ring_shm *shm = memory;
	const uint32_t counts[] = {sq_entry_count, cq_entry_count, sq_entry_count, cq_entry_count};
	uint32_t offsets[4];

	if (ring_bytes < MRC_RING_PAGE_BYTES || !count_is_good(sq_entry_count) ||
	    !count_is_good(cq_entry_count))
		return -EPROTO;
	offsets[0] = word_load(&shm->sq_offset);
	offsets[1] = word_load(&shm->cq_offset);
	offsets[2] = word_load(&shm->sq_text_offset);
	offsets[3] = word_load(&shm->cq_text_offset);
	if (word_load(&shm->magic) != MRC_ABI_MAGIC ||
	    word_load(&shm->sq_entry_count) != sq_entry_count ||
	    word_load(&shm->cq_entry_count) != cq_entry_count)
		return -EPROTO;
	for (int i = 0; i < 4; i++) {
		uint64_t end = offsets[i] + (uint64_t)counts[i] * 64;

		if (!span_is_good(ring_bytes, offsets[i], counts[i]))
			return -EPROTO;
		for (int other = 0; other < i; other++) {
			if (offsets[i] < offsets[other] + (uint64_t)counts[other] * 64 &&
			    offsets[other] < end)
				return -EPROTO;
		}
	}

	*ring = (struct mrc_ring){
		.shm = shm,
		.sqes = (struct mrc_sqe *)(void *)((char *)memory + offsets[0]),
		.cqes = (const struct mrc_cqe *)(void *)((char *)memory + offsets[1]),
		.sq_texts = (char *)memory + offsets[2],
		.cq_texts = (char *)memory + offsets[3],
		.sq_entry_count = sq_entry_count,
		.cq_entry_count = cq_entry_count,
		.sq_tail = word_load(&shm->sq_tail),
		.cq_head = word_load(&shm->cq_head),
	};
	ring->cq_head_published = ring->cq_head;
	return 0;
}

int mrc_ring_submit(struct mrc_ring *ring, const struct mrc_sqe *sqe, const char *text)
{
	uint32_t at = ring->sq_tail & (ring->sq_entry_count - 1);
	/* Pairs with the daemon's release store of sq_head: once we see the head it has copied
	 * the entries before it, and we may write over them. */
	uint32_t head = word_load_acquire(&ring->shm->sq_head);
	uint32_t used = ring->sq_tail - head;

	if (used > ring->sq_entry_count)
		return -EBADMSG;
	if (used == ring->sq_entry_count)
		return -EAGAIN;
	if (sqe->text_len)
		memcpy(ring->sq_texts + (size_t)at * MRC_REASON_BYTES_MAX, text, sqe->text_len);
	memcpy(&ring->sqes[at], sqe, sizeof(*sqe));
	ring->sq_tail++;
	/* Pairs with the daemon's acquire load of sq_tail: once it sees the tail it sees the entry. */
	word_store_release(&ring->shm->sq_tail, ring->sq_tail);
	return 0;
}

bool mrc_ring_has_room(const struct mrc_ring *ring)
{
	return ring->sq_tail - word_load(&ring->shm->sq_head) < ring->sq_entry_count;
}

int mrc_ring_take(struct mrc_ring *ring, struct mrc_cqe *cqe_out,
		  char text_out[MRC_REASON_BYTES_MAX])
{
	uint32_t at = ring->cq_head & (ring->cq_entry_count - 1);
	/* Pairs with the daemon's release store of cq_tail: once we see the tail we see the entry,
	 * and the message's bytes in the landing arena. */
	uint32_t tail = word_load_acquire(&ring->shm->cq_tail);

	if (tail == ring->cq_head)
		return 0;
	/* Counted from what the daemon knows of our head: it may not reuse what we have not published. */
	if (tail - ring->cq_head_published > ring->cq_entry_count ||
	    tail - ring->cq_head > ring->cq_entry_count)
		return -EBADMSG;
	/* A broken daemon may still write here: the copy is what gets checked and used. */
	memcpy(cqe_out, &ring->cqes[at], sizeof(*cqe_out));
	__asm__ volatile("" ::: "memory"); /* the copy is made now, and not again later */
	if (cqe_out->text_len > MRC_REASON_BYTES_MAX)
		return -EBADMSG;
	if (cqe_out->text_len)
		memcpy(text_out, ring->cq_texts + (size_t)at * MRC_REASON_BYTES_MAX,
		       cqe_out->text_len);
	ring->cq_head++;
	if (cqe_out->flags & MRC_CQE_FLAG_TELL_VISIBLE)
		ring->is_tell_wanted = true;
	return 1;
}

bool mrc_ring_is_filled(const struct mrc_ring *ring)
{
	return word_load(&ring->shm->cq_tail) != ring->cq_head;
}

bool mrc_ring_publish(struct mrc_ring *ring)
{
	bool is_tell_wanted = ring->is_tell_wanted;

	ring->is_tell_wanted = false;
	if (ring->cq_head == ring->cq_head_published)
		return is_tell_wanted;
	/* Pairs with the daemon's acquire load of cq_head: once it sees the head we have copied
	 * the entries before it, and it may write over them. */
	word_store_release(&ring->shm->cq_head, ring->cq_head);
	ring->cq_head_published = ring->cq_head;
	return is_tell_wanted;
}

bool mrc_ring_daemon_sleeps(const struct mrc_ring *ring)
{
	/* Pairs with the daemon's fence between storing daemon_sleeping and looking at sq_tail and
	 * cq_head: either it sees what we stored before, or we see that it sleeps. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return word_load(&ring->shm->daemon_sleeping) != 0;
}

bool mrc_ring_arm(struct mrc_ring *ring)
{
	__atomic_store_n(&ring->shm->client_sleeping, 1, __ATOMIC_RELAXED);
	/* Pairs with the daemon's fence between storing cq_tail and reading client_sleeping: either
	 * we see its entry, or it sees that we sleep and rings. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !mrc_ring_is_filled(ring);
}

bool mrc_ring_disarm(struct mrc_ring *ring)
{
	/* The daemon clears it before it rings. */
	return __atomic_exchange_n(&ring->shm->client_sleeping, 0, __ATOMIC_RELAXED) == 0;
}

uint32_t mrc_ring_state(const struct mrc_ring *ring)
{
	return word_load(&ring->shm->state);
}

void mrc_ring_bell(int fd)
{
	uint64_t one = 1;
	/* Fails only when the count is at its end, and then it is readable anyway. */
	ssize_t r = write(fd, &one, sizeof(one));

	(void)r;
}

bool mrc_ring_bell_read(int fd)
{
	uint64_t counts[512]; /* of a pipe: bells that nobody has read so far */
	bool has_rung = false;
	ssize_t len;

	do {
		len = read(fd, counts, sizeof(counts));
		has_rung = has_rung || len > 0;
	} while (len == (ssize_t)sizeof(counts));
	return has_rung;
}
