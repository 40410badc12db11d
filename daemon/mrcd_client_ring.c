/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_ring - the daemon's end of a client's two rings (ring_abi.h) */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mrcd_client_impl.h"

#define ENTRY_WORDS (sizeof(struct mrc_sqe) / sizeof(uint64_t))

_Static_assert(sizeof(struct mrc_sqe) == sizeof(struct mrc_cqe), "one copy routine for both");

/* Store-load order between a tail or head and a `sleeping` word; each side has one. */
static void ring_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	/* The sanitizer does not know fences; an exchange orders the same and it knows it. */
	static uint32_t word;

	__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * One look at each word of memory that another process may be writing: the
 * compiler can neither look twice nor believe that it did not change.
 */
static void entry_copy(void *to, const void *from)
{
	uint64_t *out = to;
	const uint64_t *in = from;

	for (size_t i = 0; i < ENTRY_WORDS; i++)
		__atomic_store_n(&out[i], __atomic_load_n(&in[i], __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

static void text_copy(void *to, const void *from)
{
	_Static_assert(MRC_REASON_BYTES_MAX == ENTRY_WORDS * sizeof(uint64_t), "one copy routine");
	entry_copy(to, from);
}

static bool cq_is_full(const struct mrcd_client *client)
{
	return client->cq_tail - client->cq_head == client->cq_entry_count;
}

void mrcd_client_publish(struct mrcd_client *client, const struct mrc_cqe *cqe, enum mrcd_told told)
{
	mrcd_client_publish_text(client, cqe, told, NULL);
}

void mrcd_client_publish_text(struct mrcd_client *client, const struct mrc_cqe *cqe,
			      enum mrcd_told told, const char *text)
{
	uint32_t at = client->cq_tail & (client->cq_entry_count - 1);
	struct mrc_cqe older;

	if (client->is_dead)
		return;
	if (cq_is_full(client))
		mrcd_client_take_seen(client, UINT32_MAX);
	if (cq_is_full(client)) {
		mrcd_client_break(client,
				  "its completion ring is full: it goes on without reading");
		return;
	}
	client->shadows[at] = (struct mrcd_shadow){
		.number = cqe->number,
		.channel_id = cqe->channel,
		.told = told,
	};
	if (told == MRCD_TOLD_ANSWER)
		client->answers_unread++;
	if (cqe->text_len > 0) {
		uint64_t place[ENTRY_WORDS] = {0};

		MRC_ASSERT(text != NULL);
		memcpy(place, text, cqe->text_len);
		text_copy(client->cq_texts + (size_t)at * MRC_REASON_BYTES_MAX, place);
	}
	/* Who has no name for a drain is told what a peer of before is (WIRE.md). */
	if (cqe->status == MRC_STATUS_DRAINING && client->abi_version < MRCD_ABI_WITH_DRAIN) {
		older = *cqe;
		older.status = MRC_STATUS_NO_RESOURCES;
		cqe = &older;
	}
	entry_copy(&client->cq[at], cqe);
	client->cq_tail++;
	client->completions++;
	/* Pairs with the acquire load of cq_tail in libmrc: who sees the tail sees the entry. */
	__atomic_store_n(&client->shm->cq_tail, client->cq_tail, __ATOMIC_RELEASE);
	if (!client->is_bell_due) {
		client->is_bell_due = true;
		TAILQ_INSERT_TAIL(&client->side->bells, client, bell_entry);
	}
}

static const struct mrcd_shadow *shadow_at(const struct mrcd_client *client, uint32_t position)
{
	return &client->shadows[position & (client->cq_entry_count - 1)];
}

/* Of the next `count` entries, how many are arrivals on its channel whose numbers follow this one's. */
static uint32_t arrivals_behind(const struct mrcd_client *client, const struct mrcd_shadow *first,
				uint32_t count)
{
	uint32_t more = 0;

	while (more < count) {
		const struct mrcd_shadow *next = shadow_at(client, client->cq_head + 1 + more);

		if (next->told != MRCD_TOLD_ARRIVED || next->channel_id != first->channel_id ||
		    next->number != first->number + 1 + more)
			break;
		more++;
	}
	return more;
}

uint32_t mrcd_client_take_seen(struct mrcd_client *client, uint32_t budget)
{
	uint32_t head;
	uint32_t count;

	if (client->is_dead)
		return 0;
	/* Pairs with the release store of cq_head in libmrc: it has copied what is behind it. */
	head = __atomic_load_n(&client->shm->cq_head, __ATOMIC_ACQUIRE);
	count = head - client->cq_head;
	if (count > client->cq_tail - client->cq_head) {
		mrcd_client_break(client, "it moved the head of its completion ring past the tail");
		return 0;
	}
	count = MRC_MIN(count, budget);
	for (uint32_t i = 0; i < count;) {
		struct mrcd_shadow shadow = *shadow_at(client, client->cq_head);
		uint32_t more = 0;

		if (shadow.told == MRCD_TOLD_ARRIVED)
			more = arrivals_behind(client, &shadow, count - i - 1);
		i += 1 + more;
		/* First: what follows may publish into the entry that this frees. */
		client->cq_head += 1 + more;
		if (shadow.told == MRCD_TOLD_ARRIVED)
			mrcd_channel_on_arrivals_seen(client, &shadow, more);
		else if (shadow.told == MRCD_TOLD_ANSWER)
			client->answers_unread--;
		else if (shadow.told == MRCD_TOLD_LATE)
			client->undecided_count--;
		else if (shadow.told == MRCD_TOLD_DRAIN)
			mrcd_client_on_drain_seen(client, shadow.channel_id);
		else if (shadow.told != MRCD_TOLD_PLAIN)
			mrcd_channel_on_seen(client, &shadow);
	}
	return count;
}

bool mrcd_client_may_answer(struct mrcd_client *client)
{
	if (client->answers_unread >= MRCD_ANSWERS_MAX)
		mrcd_client_take_seen(client, UINT32_MAX);
	if (client->answers_unread < MRCD_ANSWERS_MAX)
		return true;
	mrcd_client_break(client, "it asks on without reading %u answers", client->answers_unread);
	return false;
}

uint32_t mrcd_client_take_submissions(struct mrcd_client *client, uint32_t budget)
{
	uint32_t tail;
	uint32_t count;

	if (client->is_dead)
		return 0;
	/* Pairs with the release store of sq_tail in libmrc. */
	tail = __atomic_load_n(&client->shm->sq_tail, __ATOMIC_ACQUIRE);
	count = tail - client->sq_head;
	if (count > client->sq_entry_count) {
		mrcd_client_break(client, "it moved the tail of its submission ring by %u of %u",
				  count, client->sq_entry_count);
		return 0;
	}
	count = MRC_MIN(count, budget);
	for (uint32_t i = 0; i < count && !client->is_dead; i++) {
		uint32_t at = client->sq_head & (client->sq_entry_count - 1);
		uint64_t text[ENTRY_WORDS];
		struct mrc_sqe sqe;

		entry_copy(&sqe, &client->sq[at]);
		if (sqe.text_len > 0)
			text_copy(text, client->sq_texts + (size_t)at * MRC_REASON_BYTES_MAX);
		client->sq_head++;
		client->submissions++;
		mrcd_client_submit(client, &sqe, (const char *)text);
	}
	mrcd_client_tell_releases(client);
	/* Pairs with the acquire load of sq_head in libmrc: entries behind it may be written again. */
	__atomic_store_n(&client->shm->sq_head, client->sq_head, __ATOMIC_RELEASE);
	return count;
}

bool mrcd_client_sleep(struct mrcd_client *client)
{
	__atomic_store_n(&client->shm->daemon_sleeping, 1, __ATOMIC_RELAXED);
	/* Pairs with the fence between libmrc's store of sq_tail or cq_head and its look at
	 * daemon_sleeping: either it sees us asleep and rings, or we see what it stored. */
	ring_fence();
	if (__atomic_load_n(&client->shm->sq_tail, __ATOMIC_ACQUIRE) == client->sq_head &&
	    __atomic_load_n(&client->shm->cq_head, __ATOMIC_ACQUIRE) == client->cq_head)
		return true;
	__atomic_store_n(&client->shm->daemon_sleeping, 0, __ATOMIC_RELAXED);
	return false;
}

void mrcd_client_ring_bell(struct mrcd_client *client)
{
	uint64_t one = 1;

	if (client->client_bell_fd < 0)
		return;
	/* Pairs with the fence in libmrc between setting client_sleeping and its last look at cq_tail. */
	ring_fence();
	if (__atomic_load_n(&client->shm->client_sleeping, __ATOMIC_RELAXED) == 0 &&
	    __atomic_load_n(&client->shm->state, __ATOMIC_RELAXED) != MRC_RING_STATE_GONE)
		return;
	/* Once each time it goes to sleep: however much comes until it is awake, one read silences it. */
	__atomic_store_n(&client->shm->client_sleeping, 0, __ATOMIC_RELAXED);
	if (write(client->client_bell_fd, &one, sizeof(one)) < 0)
		(void)errno; /* full: it is ringing */
}
