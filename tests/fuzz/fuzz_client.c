/* SPDX-License-Identifier: BSD-2-Clause */
/* Hostile clients of the daemon: attach requests, named requests, submissions, the ring page (fuzz_client.h). */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz_client.h"

#define STEPS_MAX 300U

static const char *const targets[] = {"svc",    "svc2", "a/svc", "a/svc2", "b/svc", "a/honest",
				      "honest", "",     "/",     "a/",     "a//x"};

static void attach_step(struct fuzz_input *in, struct world *w, struct prog *p)
{
	struct mrc_abi_attach attach = {.magic = MRC_ABI_MAGIC,
					.version_min = 1,
					.version_max = MRC_ABI_VERSION,
					.name = "rogue"};
	uint8_t bytes[sizeof(attach) + 8] = {0};
	size_t len = sizeof(attach);

	if (p->fd >= 0)
		return;
	switch (fuzz_below(in, 12)) {
	case 0:
		attach.magic ^= fuzz_u8(in);
		break;
	case 1:
		attach.version_min = fuzz_u8(in);
		break;
	case 2:
		attach.version_max = fuzz_u8(in);
		break;
	case 3:
		attach.reserved = fuzz_u8(in);
		break;
	case 4:
		attach.send_arena_bytes = FUZZ_NEAR(in, 65536, 4096, 1, UINT64_MAX);
		break;
	case 5:
		attach.landing_arena_bytes = FUZZ_NEAR(in, 262144, 4096, 1, 16384, UINT64_MAX);
		break;
	case 6:
		memset(attach.name, fuzz_u8(in), sizeof(attach.name));
		break;
	case 7:
		len = fuzz_below(in, sizeof(bytes) + 1);
		break;
	default:
		break;
	}
	memcpy(bytes, &attach, sizeof(attach));
	prog_attach(w, p, (const struct mrc_abi_attach *)(const void *)bytes, len);
}

static void request_step(struct fuzz_input *in, struct prog *p)
{
	uint8_t bytes[sizeof(struct mrc_abi_request) + 8] = {0};
	struct mrc_abi_request request = {.op = 1 + fuzz_below(in, 2), .user_data = 9};

	snprintf(request.target, sizeof(request.target), "%s",
		 targets[fuzz_below(in, MRC_ARRAY_LEN(targets))]);
	switch (fuzz_below(in, 10)) {
	case 0:
		request.op = fuzz_u8(in);
		break;
	case 1:
		request.flags = fuzz_u8(in);
		break;
	case 2:
		memset(request.target, 'x', sizeof(request.target));
		break;
	case 3:
		for (uint32_t i = 0; i < 12; i++)
			request.target[i] = (char)fuzz_u8(in);
		break;
	case 4:
		memcpy(bytes, &request, sizeof(request));
		prog_packet(p, bytes, fuzz_u8(in) % (sizeof(bytes) + 1));
		return;
	default:
		request.flags = request.op == MRC_ABI_REQ_CONNECT ? fuzz_below(in, 2) : 0;
		break;
	}
	prog_packet(p, &request, sizeof(request));
}

static void submit_step(struct fuzz_input *in, struct prog *p)
{
	static const uint64_t lens[] = {0, 1, 100, 1024, 1025, 5000, 20000, 65536, 64};
	static const uint8_t ops[] = {MRC_SQE_SEND,    MRC_SQE_SEND,     MRC_SQE_SEND,
				      MRC_SQE_SEND,    MRC_SQE_RELEASE,  MRC_SQE_RELEASE,
				      MRC_SQE_RELEASE, MRC_SQE_COMMIT,   MRC_SQE_REJECT,
				      MRC_SQE_ACCEPT,  MRC_SQE_ACCEPT,   MRC_SQE_REFUSE,
				      MRC_SQE_CLOSE,   MRC_SQE_UNLISTEN, MRC_SQE_NOP};
	uint32_t at = fuzz_below(in, CHANNELS_SEEN);
	struct mrc_sqe sqe = {
		.op = ops[fuzz_below(in, MRC_ARRAY_LEN(ops))],
		.user_data = 3,
		.code = 4,
	};

	if (p->channel_count)
		at %= MRC_MIN(p->channel_count, CHANNELS_SEEN);
	sqe.channel = sqe.op == MRC_SQE_UNLISTEN ? p->listener : p->channels[at];
	sqe.number = p->number[at];
	if (sqe.op == MRC_SQE_SEND) {
		sqe.number = 0;
		sqe.level = (uint8_t)(1 + fuzz_below(in, 3));
		sqe.len_bytes = lens[fuzz_below(in, MRC_ARRAY_LEN(lens))];
		if (fuzz_below(in, 8) == 0)
			sqe.deadline_ns = MRC_S + fuzz_u8(in) * MRC_MS;
	}
	switch (fuzz_below(in, 24)) {
	case 0:
		sqe.op = fuzz_u8(in);
		break;
	case 1:
		sqe.level = fuzz_u8(in);
		break;
	case 2:
		sqe.flags = (uint16_t)fuzz_uint(in, 2);
		if (sqe.flags < 0x8000) { /* a member of a batch, mostly */
			sqe.op = MRC_SQE_COMMIT;
			sqe.flags &= MRC_SQE_FLAG_BATCH | MRC_SQE_FLAG_BATCH_END;
		}
		break;
	case 3:
		sqe.channel = (uint32_t)FUZZ_NEAR(in, sqe.channel, 0, p->listener, UINT32_MAX);
		break;
	case 4:
		sqe.number = FUZZ_NEAR(in, sqe.number, 0, UINT64_MAX);
		break;
	case 5:
		sqe.offset = FUZZ_NEAR(in, p->welcome.send_arena_bytes,
				       p->welcome.send_arena_bytes - sqe.len_bytes, 0, UINT64_MAX,
				       UINT64_MAX - sqe.len_bytes);
		break;
	case 6:
		sqe.len_bytes = FUZZ_NEAR(in, p->welcome.send_arena_bytes,
					  p->welcome.message_bytes_max, UINT64_MAX);
		break;
	case 7:
		sqe.deadline_ns = fuzz_uint(in, 8);
		break;
	case 8:
		sqe.op = fuzz_flip(in) ? MRC_SQE_REJECT : sqe.op;
		sqe.text_len = (uint32_t)FUZZ_NEAR(in, MRC_REASON_BYTES_MAX, 0, UINT32_MAX);
		break;
	case 9:
		sqe.stamp_ns = fuzz_uint(in, 8);
		break;
	case 10:
		world_trace(fuzz_below(in, 3));
		break;
	default:
		break;
	}
	prog_submit(p, &sqe);
}

/* Write where only the daemon should, or what only a fool would. */
static void page_step(struct fuzz_input *in, struct prog *p)
{
	uint32_t *words = (uint32_t *)(void *)p->rings;
	uint32_t cq_count = p->welcome.cq_entry_count, word;

	switch (fuzz_below(in, 6)) {
	case 0:
		word = (uint32_t)FUZZ_NEAR(in, p->sq_tail, p->shm->sq_head,
					   p->shm->sq_head + p->welcome.sq_entry_count, 0);
		__atomic_store_n(&p->shm->sq_tail, word, __ATOMIC_SEQ_CST);
		if (fuzz_flip(in))
			p->sq_tail = word;
		break;
	case 1:
		word = (uint32_t)FUZZ_NEAR(in, p->cq_head, p->shm->cq_tail,
					   p->shm->cq_tail - cq_count, 0);
		__atomic_store_n(&p->shm->cq_head, word, __ATOMIC_SEQ_CST);
		break;
	case 2:
		words[fuzz_below(in, 128)] = (uint32_t)fuzz_uint(in, 4);
		break;
	case 3: /* in an entry of either ring */
		word = (uint32_t)(fuzz_uint(in, 2) % (p->welcome.ring_bytes / 4));
		words[word] = (uint32_t)fuzz_uint(in, 4);
		break;
	case 4:
		p->send[fuzz_uint(in, 2) % p->welcome.send_arena_bytes] = fuzz_u8(in);
		break;
	default:
		(void)!fallocate(p->fds[MRC_ABI_FD_SEND_ARENA],
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)fuzz_below(in, 16) * 4096, 4096);
		break;
	}
	prog_bell(p);
}

static void step(struct fuzz_input *in, struct world *w, struct prog *progs)
{
	struct prog *p = &progs[fuzz_below(in, PROGS_MAX)];
	uint32_t what = fuzz_below(in, 24);
	struct mrc_cqe cqe;

	if (what == 0) {
		world_pass(w, fuzz_flip(in) ? MRC_S : fuzz_u8(in) * MRC_MS);
		return;
	}
	if (!prog_is_attached(p)) {
		if (p->fd < 0)
			attach_step(in, w, p);
		else if (fuzz_flip(in))
			prog_packet(p, "?", 1); /* it was turned away, and goes on talking */
		else
			prog_leave(p);
		return;
	}
	switch (what) {
	case 1:
		if (fuzz_below(in, 3) == 0)
			prog_leave(p);
		break;
	case 2:
	case 3:
	case 4:
		request_step(in, p);
		break;
	case 5:
		page_step(in, p);
		break;
	case 6:
		prog_bell(p);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
	case 11:
		for (uint32_t n = 1 + fuzz_below(in, 16); n && prog_take(p, &cqe); n--)
			;
		break;
	case 12:
	case 13:
	case 14:
		world_turn(w);
		return;
	default:
		submit_step(in, p);
		break;
	}
	if (fuzz_flip(in))
		world_turn(w);
}

/* Two that are up to no good have a channel between them when it begins. */
static void rogues_begin(struct world *w, struct prog *progs)
{
	const struct mrc_abi_attach attach = {.magic = MRC_ABI_MAGIC,
					      .version_min = 1,
					      .version_max = MRC_ABI_VERSION,
					      .name = "rogue"};
	struct mrc_sqe accept = {.op = MRC_SQE_ACCEPT};
	struct mrc_cqe cqe;

	for (int i = 0; i < 2; i++)
		prog_attach(w, &progs[i], &attach, sizeof(attach));
	FUZZ_CHECK(prog_is_attached(&progs[0]) && prog_is_attached(&progs[1]));
	prog_request(&progs[0], MRC_ABI_REQ_LISTEN, "svc", 0);
	world_turn(w);
	prog_request(&progs[1], MRC_ABI_REQ_CONNECT, "a/svc", 0);
	world_turn(w);
	while (prog_take(&progs[0], &cqe)) {
		if (cqe.type == MRC_CQE_INCOMING)
			accept.channel = cqe.channel;
	}
	prog_submit(&progs[0], &accept);
	world_turn(w);
	for (int i = 0; i < 2; i++) {
		while (prog_take(&progs[i], &cqe))
			;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct world world;
	struct fuzz_input in = {.at = data, .end = data + len};
	struct prog progs[PROGS_MAX], honest;

	for (uint32_t i = 0; i < PROGS_MAX; i++) {
		memset(&progs[i], 0, sizeof(progs[i]));
		progs[i].fd = -1;
	}
	world_begin(&world);
	honest_begin(&world, &honest);
	if (!fuzz_flip(&in))
		rogues_begin(&world, progs);
	for (uint32_t i = 0; i < STEPS_MAX && !fuzz_is_over(&in); i++)
		step(&in, &world, progs);
	world_turn(&world);
	honest_exchange(&world, &honest);
	for (uint32_t i = 0; i < PROGS_MAX; i++)
		prog_leave(&progs[i]);
	world_turn(&world);
	honest_exchange(&world, &honest);
	prog_leave(&honest);
	world_end(&world);
	return 0;
}
