/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a conn that a daemon left: any bytes are refused with a reason, or are a conn
 * that lives with its peer, its clients and its own successor as any other does.
 *
 * The input is an image whose length and checksum are made right, and behind the number of
 * bytes that its end says a program of what happens to the conn then.
 */
#include "fuzz.h"
#include "mrc_conn_impl.h"
#include "mrc_conn_state.h"

#define PATHS       2U
#define BOOT        0xb1U /* as in the corpus, which unit.conn_state made */
#define MEMORY_MAX  (64U << 20)
#define ACTIONS_MAX 20000U
#define PROGRAM_MAX 64U
#define NOW_NS      (1000 * MRC_S)

struct heap {
	size_t bytes;
	uint64_t blocks;
};

static void *heap_take(void *context, size_t bytes)
{
	struct heap *heap = context;
	size_t *block;

	if (bytes > MEMORY_MAX - heap->bytes)
		return NULL;
	block = calloc(1, bytes + 2 * sizeof(size_t));
	FUZZ_CHECK(block);
	*block = bytes;
	heap->bytes += bytes;
	heap->blocks++;
	return block + 2;
}

static void heap_give(void *context, void *memory)
{
	struct heap *heap = context;
	size_t *block = (size_t *)memory - 2;

	heap->bytes -= *block;
	heap->blocks--;
	free(block);
}

static void pump(struct mrc_conn *conn, uint64_t now_ns)
{
	struct mrc_action act;
	uint32_t count = 0;

	while (mrc_conn_next_action(conn, &act, now_ns))
		FUZZ_CHECK(++count < ACTIONS_MAX);
}

static void path_up(struct mrc_conn *conn, uint8_t index, bool is_direct, uint64_t now_ns)
{
	const struct mrc_path *path = &conn->paths[index];
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_UP,
				  .path = {.index = index,
					   .path_id = index,
					   .is_direct_capable = is_direct,
					   .path_epoch = path->epoch_last + 1,
					   .conn_epoch = conn->epoch ? conn->epoch : 1,
					   .peer_boot_id = conn->peer_boot_id}};

	mrc_conn_handle(conn, &ev, now_ns);
}

static void path_down(struct mrc_conn *conn, uint8_t index, uint64_t now_ns)
{
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_DOWN,
				  .path = {.index = index,
					   .path_epoch = conn->paths[index].epoch,
					   .reason = MRC_REASON_CLOSED}};

	mrc_conn_handle(conn, &ev, now_ns);
}

/* A frame that is nearly right for the channel. The path ends when it was not. */
static void frame(struct mrc_conn *conn, struct fuzz_input *in, struct mrc_channel *ch,
		  uint64_t now_ns)
{
	uint8_t index = fuzz_u8(in) % PATHS;
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX] = {0};
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
	struct mrc_wire_hdr hdr = {
		.type = (uint8_t)(MRC_WIRE_ACCEPT + fuzz_u8(in) % 14),
		.conn_epoch = conn->epoch,
		.path_epoch = conn->paths[index].epoch,
		.channel = ch->wire_id,
		.msg = ch->peer_settled + fuzz_u8(in) % 8,
		.arg = ch->peer_settled_stated,
	};
	struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED,
				  .arrived = {.index = index,
					      .is_body_good = true,
					      .is_placed = true,
					      .path_epoch = hdr.path_epoch,
					      .hdr = &hdr,
					      .body = body}};
	struct mrc_place place;

	if (hdr.type <= MRC_WIRE_VOID)
		hdr.msg = conn->ctl_taken;
	if (hdr.type == MRC_WIRE_VOID)
		hdr.offset = ch->peer_settled + fuzz_u8(in) % 8;
	if (hdr.type == MRC_WIRE_CTS || hdr.type == MRC_WIRE_WANT || hdr.type == MRC_WIRE_LEVEL)
		hdr.msg = ch->settled + fuzz_u8(in) % 8;
	if (hdr.type == MRC_WIRE_LEVEL || hdr.type == MRC_WIRE_WANT)
		hdr.arg = 0;
	if (hdr.type == MRC_WIRE_FRAG) {
		const struct mrc_msg_in *msg = mrc_channel_in(ch, hdr.msg);

		hdr.flags = ch->is_unchecked ? MRC_WIRE_F_UNCHECKED : 0;
		hdr.msg_len = msg && msg->is_known ? msg->len : fuzz_u8(in);
		hdr.addr = msg && msg->is_known ? msg->addr : ch->ring_head;
		if (!msg || msg->is_eager || !msg->is_known)
			hdr.flags |= MRC_WIRE_F_EAGER;
		hdr.offset = hdr.msg_len / 256 * fuzz_u8(in);
		hdr.body_len = (uint32_t)MRC_MIN(hdr.msg_len - hdr.offset, 4096);
		mrc_conn_place(conn, &hdr, 0, &place);
	} else if (hdr.type == MRC_WIRE_RTS || hdr.type == MRC_WIRE_WANT) {
		hdr.msg_len = 1 + fuzz_u8(in);
	} else if (hdr.type == MRC_WIRE_STATE || hdr.type == MRC_WIRE_CLOSE ||
		   hdr.type == MRC_WIRE_RESET) {
		mrc_put_u64(&c, ch->delivered_known + fuzz_u8(in) % 2);
		mrc_put_u64(&c, ch->visible_known + fuzz_u8(in) % 2);
		mrc_put_u64(&c, ch->final_known + fuzz_u8(in) % 2);
		mrc_put_u64(&c, ch->peer_settled_stated + fuzz_u8(in) % 2);
		mrc_put_u64(&c, ch->ring_limit + fuzz_u8(in));
		mrc_put_u64(&c, ch->msg_limit + fuzz_u8(in) % 4);
		hdr.offset = ch->deliver_next;
		hdr.body_len = 49; /* and no path in what follows */
	} else if (hdr.type == MRC_WIRE_ACK) {
		mrc_put_u64(&c, conn->ctl_acked + fuzz_u8(in) % 3);
		mrc_put_u8(&c, 1);
		mrc_put_u16(&c, conn->paths[index].path_id);
		mrc_put_u32(&c, conn->paths[index].epoch);
		mrc_put_u64(&c, conn->paths[index].posted -
					MRC_MIN(conn->paths[index].posted, fuzz_u8(in) % 4U));
		hdr.body_len = 23;
	} else if (hdr.type == MRC_WIRE_DRAINED) {
		hdr.body_len = 1;
	}
	if (mrc_conn_handle(conn, &ev, now_ns))
		path_down(conn, index, now_ns);
}

static void client(struct mrc_conn *conn, struct fuzz_input *in, struct mrc_channel *ch,
		   uint64_t now_ns)
{
	static const enum mrc_event_kind kinds[] = {
		MRC_EV_SEND,   MRC_EV_CANCEL,  MRC_EV_LANDING,  MRC_EV_VISIBLE,  MRC_EV_COMMIT,
		MRC_EV_REJECT, MRC_EV_RELEASE, MRC_EV_CH_CLOSE, MRC_EV_CH_ABORT, MRC_EV_CH_REFUSE,
	};
	uint32_t which = fuzz_u8(in) % 10U;
	struct mrc_event_in ev = {.kind = kinds[which]};

	if (which >= 7) {
		ev.channel.id = ch->id;
		ev.channel.outcome = MRC_OUT_REFUSED;
	} else {
		ev.msg = (struct mrc_ev_msg){
			.channel = ch->id,
			.number = (which == 1 ? ch->settled : ch->peer_settled) + fuzz_u8(in) % 8,
			.level = MRC_LVL_COMMITTED,
			.outcome = MRC_OUT_TIMED_OUT,
			.len = fuzz_uint(in, 2),
		};
		/* What is given back after an abort is not told: the embedder's part. */
		if (ch->is_aborted && which >= 2)
			return;
	}
	mrc_conn_handle(conn, &ev, now_ns);
}

/* The channel of a slot that is in use. */
static struct mrc_channel *channel_pick(struct mrc_conn *conn, struct fuzz_input *in)
{
	uint32_t slot = fuzz_u8(in) % conn->slot_count;

	return conn->slots[slot];
}

static void live(struct mrc_conn *conn, struct fuzz_input *in)
{
	uint64_t now_ns = NOW_NS;

	pump(conn, now_ns);
	for (uint8_t i = 0; i < PATHS; i++) {
		path_up(conn, i, fuzz_flip(in), now_ns);
		mrc_conn_path_set(conn, &conn->paths[i], MRC_PATH_GOOD, MRC_REASON_NONE);
	}
	pump(conn, now_ns);
	while (!fuzz_is_over(in)) {
		struct mrc_event_in timer = {.kind = MRC_EV_TIMER};
		uint8_t what = fuzz_u8(in);
		struct mrc_channel *ch = channel_pick(conn, in);

		now_ns += (uint64_t)(what >> 3) * 50 * MRC_US;
		if (what % 8 == 0)
			path_down(conn, what >> 3 & 1, now_ns);
		else if (what % 8 == 1)
			path_up(conn, what >> 3 & 1, what >> 4 & 1, now_ns);
		else if (what % 8 == 2)
			mrc_conn_handle(conn, &timer, now_ns);
		else if (ch && what % 8 < 6)
			frame(conn, in, ch, now_ns);
		else if (ch)
			client(conn, in, ch, now_ns);
		pump(conn, now_ns);
	}
	for (uint8_t i = 0; i < PATHS; i++)
		path_down(conn, i, now_ns);
	pump(conn, now_ns);
}

/* It can be left again, and what is left is taken over. */
static void hand_on(const struct mrc_conn_config *config, struct mrc_conn *conn)
{
	const char *why = NULL;
	struct mrc_conn *next;
	uint8_t *image;
	size_t len;
	int r = mrc_conn_export(conn, fuzz_crc32c, NULL, 0, &len);

	FUZZ_CHECK(r == -ENOBUFS);
	image = malloc(len);
	FUZZ_CHECK(image);
	FUZZ_CHECK(mrc_conn_export(conn, fuzz_crc32c, image, len, &len) == 0);
	r = mrc_conn_import(config, fuzz_crc32c, image, len, 2 * NOW_NS, &next, &why);
	if (r == -EPROTO)
		fprintf(stderr, "refused: %s\n", why);
	FUZZ_CHECK(r == 0 || r == -ENOMEM);
	if (r == 0)
		mrc_conn_free(next);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct heap heap = {0};
	struct mrc_conn_config config = {
		.host = "b",
		.peer = "a",
		.boot_id = BOOT,
		.path_count = PATHS,
		.limits = {.channels_max = 8, .frames_in_flight_max = 256},
		.alloc = {heap_take, heap_give, &heap},
	};
	size_t program = len ? data[len - 1] % PROGRAM_MAX : 0;
	size_t image_len = len - MRC_MIN(program, len);
	uint8_t *image = fuzz_copy(data, image_len);
	struct fuzz_input in = {.at = data + image_len, .end = data + len};
	struct mrc_conn *conn = NULL;
	const char *why = NULL;
	int r;

	if (image_len >= MRC_STATE_HEADER_BYTES) {
		uint32_t crc = fuzz_crc32c(0, image + MRC_STATE_HEADER_BYTES,
					   image_len - MRC_STATE_HEADER_BYTES);
		uint64_t said = image_len;

		memcpy(image + 8, &said, sizeof(said));
		memcpy(image + 16, &crc, sizeof(crc));
	}
	r = mrc_conn_import(&config, fuzz_crc32c, image, image_len, NOW_NS, &conn, &why);
	FUZZ_CHECK(r == 0 || r == -EPROTO || r == -ENOMEM);
	FUZZ_CHECK((r == -EPROTO) == (why != NULL));
	if (r == 0) {
		live(conn, &in);
		hand_on(&config, conn);
		mrc_conn_free(conn);
	}
	FUZZ_CHECK(heap.blocks == 0);
	free(image);
	return 0;
}
