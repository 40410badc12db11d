/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The codec: headers, handshake bodies, the cursor, and every control body by way of one frame
 * given to an engine that has a path, a channel and a message under way each way.
 *
 * The first byte chooses; what follows is given to the decoder as it is.
 */
#include <errno.h>

#include "fuzz.h"
#include "mrc_conn_impl.h"

static void wire_store32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* Make magic, version and checksum right. */
static void wire_mend(uint8_t raw[MRC_WIRE_HDR_BYTES])
{
	wire_store32(raw, MRC_WIRE_MAGIC);
	raw[4] = MRC_WIRE_VERSION;
	wire_store32(raw + 76, fuzz_crc32c(0, raw, 76));
}

static void wire_header(const uint8_t *data, size_t len, bool is_mended)
{
	uint8_t in[MRC_WIRE_HDR_BYTES] = {0}, out[MRC_WIRE_HDR_BYTES];
	struct mrc_wire_hdr hdr;

	memcpy(in, data, MRC_MIN(len, sizeof(in)));
	if (is_mended)
		wire_mend(in);
	if (mrc_wire_decode(in, fuzz_crc32c, &hdr))
		return;
	mrc_wire_encode(&hdr, fuzz_crc32c, out);
	FUZZ_CHECK(!memcmp(in, out, sizeof(in)));
	FUZZ_CHECK(strcmp(mrc_wire_type_name(hdr.type), "?") != 0);
	FUZZ_CHECK(!mrc_wire_has_body(&hdr) || hdr.body_len > 0);
	FUZZ_CHECK(hdr.body_len <= MRC_FRAG_BYTES_MAX);
	if (hdr.type == MRC_WIRE_FRAG)
		FUZZ_CHECK(hdr.offset + hdr.body_len >= hdr.offset &&
			   hdr.offset + hdr.body_len <= hdr.msg_len);
}

static void wire_hello(const uint8_t *data, size_t len)
{
	static const struct mrc_hello own = {
		.host = "b",
		.to_host = "a",
		.boot_id = 7,
		.peer_boot_id = 9,
		.conn_epoch = 3,
		.conn_epoch_last = 4,
		.path_epoch_last = 5,
		.version_min = MRC_HELLO_VERSION_MIN,
		.version_max = MRC_HELLO_VERSION_MAX,
		.features = 0xf0f0f0f0,
	};
	uint8_t in[MRC_HELLO_BODY_BYTES] = {0}, out[MRC_HELLO_BODY_BYTES];
	struct mrc_hello hello;
	struct mrc_auth one, other;

	memcpy(in, data, MRC_MIN(len, sizeof(in)));
	if (mrc_hello_decode(in, &hello))
		return;
	mrc_hello_encode(&hello, out);
	FUZZ_CHECK(!memcmp(in, out, sizeof(in)));
	mrc_hello_conclude(&hello, &own, &one);
	mrc_hello_conclude(&own, &hello, &other);
	FUZZ_CHECK(one.conn_epoch == other.conn_epoch && one.path_epoch == other.path_epoch);
	FUZZ_CHECK(one.version == other.version && one.features == other.features);
	FUZZ_CHECK(one.version <= hello.version_max && one.version <= own.version_max);
	FUZZ_CHECK(!one.version || one.version >= hello.version_min);
	FUZZ_CHECK(one.conn_epoch >= MRC_MAX(hello.conn_epoch, own.conn_epoch));
	FUZZ_CHECK(one.path_epoch > MRC_MAX(hello.path_epoch_last, own.path_epoch_last));
	FUZZ_CHECK(!mrc_hello_is_initiator(hello.host, own.host) ||
		   !mrc_hello_is_initiator(own.host, hello.host));
}

static void wire_auth(const uint8_t *data, size_t len)
{
	uint8_t in[MRC_AUTH_BODY_BYTES] = {0}, out[MRC_AUTH_BODY_BYTES];
	struct mrc_auth auth;

	memcpy(in, data, MRC_MIN(len, sizeof(in)));
	if (mrc_auth_decode(in, &auth))
		return;
	mrc_auth_encode(&auth, out);
	FUZZ_CHECK(!memcmp(in, out, sizeof(in)));
}

/* A program of reads over what is left of the input; bytes read are bytes passed. */
static void wire_cursor(const uint8_t *data, size_t len)
{
	struct fuzz_input in = {.at = data, .end = data + MRC_MIN(len, 32)};
	size_t body_len = (size_t)(data + len - in.end);
	uint8_t *body = fuzz_copy(in.end, body_len);
	struct mrc_cursor c = {.at = body, .end = body + body_len, .ok = true};

	while (!fuzz_is_over(&in)) {
		static const uint8_t sizes[] = {1, 2, 4, 8, 0, 1, 2, 4, 8, 0};
		uint8_t bytes[64];
		bool was_ok = c.ok;
		uint8_t *at = c.at;
		uint32_t op = fuzz_below(&in, 10);
		size_t size = sizes[op] ? sizes[op] : fuzz_below(&in, sizeof(bytes) + 1);

		memset(bytes, 0x5a, sizeof(bytes));
		switch (op) {
		case 0:
			mrc_get_u8(&c);
			break;
		case 1:
			mrc_get_u16(&c);
			break;
		case 2:
			mrc_get_u32(&c);
			break;
		case 3:
			mrc_get_u64(&c);
			break;
		case 4:
			mrc_get_bytes(&c, bytes, size);
			break;
		case 5:
			mrc_put_u8(&c, 1);
			break;
		case 6:
			mrc_put_u16(&c, 2);
			break;
		case 7:
			mrc_put_u32(&c, 3);
			break;
		case 8:
			mrc_put_u64(&c, 4);
			break;
		default:
			mrc_put_bytes(&c, bytes, size);
			break;
		}
		FUZZ_CHECK(c.at == (c.ok ? at + size : at));
		FUZZ_CHECK(was_ok || !c.ok);
		FUZZ_CHECK(!was_ok || c.ok == (size <= (size_t)(c.end - at)));
	}
	free(body);
}

/* ---- one frame for an engine ---- */

static void *wire_alloc(void *context, size_t bytes)
{
	return calloc(1, bytes);
}

static void wire_free(void *context, void *memory)
{
	free(memory);
}

static void wire_pump(struct mrc_conn *conn, uint64_t now_ns)
{
	struct mrc_action act;
	uint32_t turns = 0;

	while (mrc_conn_next_action(conn, &act, now_ns))
		FUZZ_CHECK(++turns < 10000);
}

static struct mrc_conn *wire_conn(uint64_t now_ns, uint32_t *channel_out)
{
	struct mrc_conn_config config = {
		.host = "a",
		.peer = "b",
		.boot_id = 7,
		.seed = 1,
		.path_count = 2,
		.limits = {.channels_max = 4, .frames_in_flight_max = 64, .ranges_max = 16},
		.alloc = {.alloc = wire_alloc, .free = wire_free},
	};
	struct mrc_conn *conn;

	FUZZ_CHECK(mrc_conn_new(&config, &conn) == 0);
	for (uint8_t i = 0; i < 2; i++) {
		struct mrc_event_in up = {
			.kind = MRC_EV_PATH_UP,
			.path = {.index = i,
				 .path_id = i,
				 .conn_epoch = 1,
				 .path_epoch = 1,
				 .peer_boot_id = 9,
				 .version = 2,
				 .features = MRC_FEATURE_ABOUT},
		};

		FUZZ_CHECK(mrc_conn_handle(conn, &up, now_ns) == 0);
	}
	mrc_conn_handle(conn,
			&(struct mrc_event_in){.kind = MRC_EV_CH_OPEN,
					       .channel = {.flow = 1,
							   .cookie = 1,
							   .ring_bytes = 65536,
							   .msg_bytes_max = 1 << 20,
							   .window = 8,
							   .service = "svc",
							   .id_out = channel_out}},
			now_ns);
	FUZZ_CHECK(*channel_out != 0);
	wire_pump(conn, now_ns);
	return conn;
}

static int wire_arrive(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, const uint8_t *body,
		       uint64_t now_ns)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.is_body_good = true,
			    .is_placed = true,
			    .path_epoch = 1,
			    .hdr = hdr,
			    .body = body},
	};
	int r = mrc_conn_handle(conn, &ev, now_ns);

	wire_pump(conn, now_ns);
	return r;
}

/* What was taken is what was said, byte for byte. */
static void wire_about(const struct mrc_conn *conn, const uint8_t *body, size_t body_len)
{
	const struct mrc_about *about = mrc_conn_path_about(conn, 0);
	uint8_t again[MRC_ABOUT_BYTES_MAX];
	struct mrc_cursor c = {.at = again, .end = again + sizeof(again), .ok = true};

	FUZZ_CHECK(about != NULL);
	mrc_about_put(about, &c);
	FUZZ_CHECK(c.ok && (size_t)(c.at - again) == body_len);
	FUZZ_CHECK(memcmp(again, body, body_len) == 0);
}

/*
 * One byte of flags, a header without magic and checksum, its body. With bit 0 the channel was
 * accepted before; with bit 1 a message of ours is on its way.
 */
static void wire_frame(const uint8_t *data, size_t len)
{
	/* ring of 65536, messages of 1 MiB, window of 8, space 1, its ring at its beginning */
	static const uint8_t half[32] = {[2] = 1, [10] = 16, [16] = 8, [20] = 1};
	struct mrc_wire_hdr accept = {.type = MRC_WIRE_ACCEPT,
				      .conn_epoch = 1,
				      .path_epoch = 1,
				      .body_len = sizeof(half)};
	uint64_t now_ns = MRC_S;
	uint32_t channel = 0;
	struct mrc_conn *conn = wire_conn(now_ns, &channel);
	uint8_t raw[MRC_WIRE_HDR_BYTES] = {0}, *body;
	uint8_t flags = len ? data[0] : 0;
	struct mrc_wire_hdr hdr;
	size_t body_len;

	data += len ? 1 : 0;
	len -= len ? 1 : 0;
	memcpy(raw, data, MRC_MIN(len, sizeof(raw)));
	body_len = len > sizeof(raw) ? len - sizeof(raw) : 0;
	wire_store32(raw + 8, 1);  /* conn epoch */
	wire_store32(raw + 12, 1); /* path epoch */
	wire_store32(raw + 28, (uint32_t)body_len);
	wire_mend(raw);
	if (flags & 1)
		FUZZ_CHECK(wire_arrive(conn, &accept, half, now_ns) == 0);
	if (flags & 2) {
		struct mrc_event_in send = {
			.kind = MRC_EV_SEND,
			.msg = {.channel = channel, .level = MRC_LVL_COMMITTED, .len = 100},
		};

		mrc_conn_handle(conn, &send, now_ns);
		wire_pump(conn, now_ns);
	}
	if (mrc_wire_decode(raw, fuzz_crc32c, &hdr) == 0) {
		int r;

		body = fuzz_copy(data + sizeof(raw), body_len);
		r = wire_arrive(conn, &hdr, body, now_ns);
		FUZZ_CHECK(r == 0 || r == -EPROTO);
		if (r == 0 && hdr.type == MRC_WIRE_ABOUT)
			wire_about(conn, body, body_len);
		free(body);
		now_ns += 10 * MRC_S;
		mrc_conn_handle(conn, &(struct mrc_event_in){.kind = MRC_EV_TIMER}, now_ns);
		wire_pump(conn, now_ns);
	}
	mrc_conn_free(conn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t kind = len ? data[0] % 6 : 0;

	data += len ? 1 : 0;
	len -= len ? 1 : 0;
	switch (kind) {
	case 0:
		wire_header(data, len, false);
		break;
	case 1:
		wire_header(data, len, true);
		break;
	case 2:
		wire_hello(data, len);
		break;
	case 3:
		wire_auth(data, len);
		break;
	case 4:
		wire_cursor(data, len);
		break;
	default:
		wire_frame(data, len);
		break;
	}
	return 0;
}
