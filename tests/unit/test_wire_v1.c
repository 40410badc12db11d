/* SPDX-License-Identifier: BSD-2-Clause */
/* One wire version back: an old daemon's codec beside ours, and handshakes with it. */
#include "rail_fake.h"
#include "wire_v1.h"

#include "mrcd_crc.h"
#include "mrcd_handshake.h"

static int set_up(void **state)
{
	*state = fake_new(NULL, "", "");
	return 0;
}

static int tear_down(void **state)
{
	fake_free(*state);
	return 0;
}

/* ---- headers ---- */

static void fields_of(const struct mrc_wire_hdr *hdr, uint64_t fields_out[WIRE_V1_FIELDS])
{
	const uint64_t fields[WIRE_V1_FIELDS] = {
		hdr->type,         hdr->flags,   hdr->conn_epoch, hdr->path_epoch, hdr->writer_path,
		hdr->writer_epoch, hdr->channel, hdr->body_len,   hdr->msg,        hdr->offset,
		hdr->msg_len,      hdr->addr,    hdr->arg,        hdr->body_crc,
	};

	memcpy(fields_out, fields, sizeof(fields));
}

/* Small enough now and then to be in range. */
static uint64_t some(struct mrc_rng *rng)
{
	return mrc_rng_next(rng) >> mrc_rng_next(rng) % 64;
}

static void what_an_old_daemon_takes_and_says_is_the_same_today(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed61};
	uint32_t taken[MRC_WIRE_TYPE_END] = {0};

	for (uint32_t round = 0; round < 200000; round++) {
		uint64_t old[WIRE_V1_FIELDS], now[WIRE_V1_FIELDS];
		struct mrc_wire_hdr hdr = {
			.type = (uint8_t)(mrc_rng_next(&rng) % (MRC_WIRE_READY + 2)),
			.flags = (uint16_t)some(&rng),
			.conn_epoch = (uint32_t)some(&rng),
			.path_epoch = (uint32_t)some(&rng),
			.writer_path = (uint16_t)(some(&rng) % 18),
			.writer_epoch = (uint32_t)some(&rng),
			.channel = (uint32_t)some(&rng),
			.body_len = (uint32_t)some(&rng),
			.msg = some(&rng),
			.offset = some(&rng),
			.msg_len = some(&rng),
			.addr = some(&rng),
			.arg = some(&rng),
			.body_crc = (uint32_t)some(&rng),
		};
		uint8_t bytes[MRC_WIRE_HDR_BYTES], old_bytes[WIRE_V1_HDR_BYTES];
		int r, r_old;

		mrc_wire_encode(&hdr, mrcd_crc32c, bytes);
		fields_of(&hdr, old);
		wire_v1_header_encode(old, mrcd_crc32c, old_bytes);
		assert_memory_equal(bytes, old_bytes, sizeof(bytes));
		if (mrc_rng_next(&rng) % 8 == 0)
			bytes[mrc_rng_next(&rng) % sizeof(bytes)] ^= 1;
		r = mrc_wire_decode(bytes, mrcd_crc32c, &hdr);
		r_old = wire_v1_header_decode(bytes, mrcd_crc32c, old);
		/* What it refuses may mean something now: that is said only where it was agreed on. */
		if (r_old)
			continue;
		assert_int_equal(r, 0);
		fields_of(&hdr, now);
		assert_memory_equal(old, now, sizeof(old));
		taken[hdr.type]++;
	}
	for (uint32_t type = 1; type <= MRC_WIRE_READY; type++)
		assert_true(taken[type] > 0);
}

/* ---- handshakes ---- */

/* The old daemon's side of `peer`'s handshakes. */
static struct wire_v1_hello old_hello(const struct mrcd_peer *peer, uint16_t path_id)
{
	struct wire_v1_hello hello = {
		.boot_id = peer->hello.boot_id,
		.conn_epoch_last = 8,
		.path_epoch_last = 41,
		.path_id = path_id,
	};

	memcpy(hello.host, peer->hello.host, sizeof(hello.host));
	memcpy(hello.to_host, peer->hello.to_host, sizeof(hello.to_host));
	mrcd_auth_random(hello.nonce, sizeof(hello.nonce));
	return hello;
}

/* A handshake frame as version 1 made them; all that was given to `hs`. */
static int old_says(struct mrcd_handshake *hs, enum mrc_wire_type type, const uint8_t *body,
		    uint32_t body_len)
{
	uint8_t frame[MRCD_HANDSHAKE_BYTES_MAX];
	const uint64_t fields[WIRE_V1_FIELDS] = {
		[WIRE_V1_TYPE] = type,
		[WIRE_V1_BODY_LEN] = body_len,
		[WIRE_V1_BODY_CRC] = mrcd_crc32c(0, body, body_len),
	};
	uint32_t at = 0;
	int r = 0;

	wire_v1_header_encode(fields, mrcd_crc32c, frame);
	memcpy(frame + WIRE_V1_HDR_BYTES, body, body_len);
	while (r == 0 && at < WIRE_V1_HDR_BYTES + body_len) {
		uint32_t part = MRC_MIN(mrcd_handshake_want(hs), WIRE_V1_HDR_BYTES + body_len - at);

		r = mrcd_handshake_take(hs, frame + at, part);
		at += part;
	}
	return r;
}

/* The body of what `hs` has to say, if an old daemon takes its header. */
static const uint8_t *old_hears(struct mrcd_handshake *hs, enum mrc_wire_type type,
				uint32_t body_len)
{
	uint64_t fields[WIRE_V1_FIELDS];

	assert_int_equal(hs->out_len, WIRE_V1_HDR_BYTES + body_len);
	assert_int_equal(wire_v1_header_decode(hs->out, mrcd_crc32c, fields), 0);
	assert_int_equal(fields[WIRE_V1_TYPE], type);
	assert_int_equal(fields[WIRE_V1_BODY_LEN], body_len);
	for (int i = WIRE_V1_FLAGS; i <= WIRE_V1_ARG; i++)
		assert_true(i == WIRE_V1_BODY_LEN || fields[i] == 0);
	assert_int_equal(fields[WIRE_V1_BODY_CRC],
			 mrcd_crc32c(0, hs->out + WIRE_V1_HDR_BYTES, body_len));
	return hs->out + WIRE_V1_HDR_BYTES;
}

static void an_old_initiator_is_let_in(void **state)
{
	uint8_t hello_i[WIRE_V1_HELLO_BYTES], hello_r[WIRE_V1_HELLO_BYTES];
	uint8_t auth[WIRE_V1_AUTH_BYTES + MRC_HELLO_MAC_BYTES];
	struct fake *f = *state;
	struct wire_v1_hello ours = old_hello(f->a, 3), theirs;
	struct mrcd_handshake hs;
	const uint8_t *body;
	uint32_t key_index;

	f->b->hello.features = 0xff & ~MRC_FEATURE_ENCRYPTION_REQUIRED;
	mrcd_handshake_await(&hs, f->b->rail, "10.0.0.1", NULL);
	wire_v1_hello_encode(&ours, hello_i);
	assert_int_equal(old_says(&hs, MRC_WIRE_HELLO, hello_i, sizeof(hello_i)), 0);
	body = old_hears(&hs, MRC_WIRE_HELLO, WIRE_V1_HELLO_BYTES + MRC_HELLO_MAC_BYTES);
	memcpy(hello_r, body, sizeof(hello_r));
	assert_int_equal(wire_v1_hello_decode(hello_r, &theirs), 0);
	assert_int_equal(theirs.path_id, 3);
	assert_true(mrcd_auth_check(f->a->keys, 1, MRCD_AUTH_RESPONDER, hello_i, hello_r, NULL,
				    body + WIRE_V1_HELLO_BYTES, &key_index));
	wire_v1_conclude(&ours, &theirs, auth);
	assert_int_equal(mrcd_auth_prove(&f->a->keys[0], MRCD_AUTH_INITIATOR, hello_i, hello_r,
					 auth, auth + WIRE_V1_AUTH_BYTES),
			 0);
	assert_int_equal(old_says(&hs, MRC_WIRE_AUTH, auth, sizeof(auth)), 0);
	assert_true(mrcd_handshake_is_done(&hs));
	assert_int_equal(hs.auth.conn_epoch, 9);
	assert_int_equal(hs.auth.path_epoch, 42);
	assert_int_equal(hs.auth.version, 1);
	assert_int_equal(hs.auth.features, 0);
}

static void an_old_responder_lets_us_in(void **state)
{
	uint8_t hello_i[WIRE_V1_HELLO_BYTES], want[WIRE_V1_AUTH_BYTES];
	uint8_t hello_r[WIRE_V1_HELLO_BYTES + MRC_HELLO_MAC_BYTES];
	struct fake *f = *state;
	struct wire_v1_hello ours = old_hello(f->b, 3), theirs;
	struct mrcd_handshake hs;
	const uint8_t *body;
	uint32_t key_index;

	f->a->hello.features = 0xff & ~MRC_FEATURE_ENCRYPTION_REQUIRED;
	mrcd_handshake_begin(&hs, f->a->rail, f->a, 3, "10.0.0.2", NULL);
	body = old_hears(&hs, MRC_WIRE_HELLO, WIRE_V1_HELLO_BYTES);
	memcpy(hello_i, body, sizeof(hello_i));
	hs.out_len = 0;
	assert_int_equal(wire_v1_hello_decode(hello_i, &theirs), 0);
	assert_int_equal(theirs.path_id, 3);
	wire_v1_hello_encode(&ours, hello_r);
	assert_int_equal(mrcd_auth_prove(&f->b->keys[0], MRCD_AUTH_RESPONDER, hello_i, hello_r,
					 NULL, hello_r + WIRE_V1_HELLO_BYTES),
			 0);
	assert_int_equal(old_says(&hs, MRC_WIRE_HELLO, hello_r, sizeof(hello_r)), 0);
	assert_true(mrcd_handshake_is_done(&hs));
	body = old_hears(&hs, MRC_WIRE_AUTH, WIRE_V1_AUTH_BYTES + MRC_HELLO_MAC_BYTES);
	wire_v1_conclude(&theirs, &ours, want);
	assert_memory_equal(body, want, sizeof(want));
	assert_true(mrcd_auth_check(f->b->keys, 1, MRCD_AUTH_INITIATOR, hello_i, hello_r, body,
				    body + WIRE_V1_AUTH_BYTES, &key_index));
	assert_int_equal(hs.auth.version, 1);
	assert_int_equal(hs.auth.features, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_old_daemon_takes_and_says_is_the_same_today),
		cmocka_unit_test_setup_teardown(an_old_initiator_is_let_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_old_responder_lets_us_in, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("wire_v1", tests, NULL, NULL);
}
