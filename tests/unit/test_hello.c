/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_hello: what is said, what is refused, and what both ends conclude. */
#include "engine_lab.h"

static struct mrc_hello hello_full(void)
{
	struct mrc_hello hello = {
		.host = "host-a.example_1",
		.to_host = "B",
		.boot_id = 0x0102030405060708,
		.peer_boot_id = 0x1112131415161718,
		.conn_epoch = 0x212223,
		.conn_epoch_last = 0x313233,
		.path_epoch_last = 0x414243,
		.path_id = 9,
		.is_direct_capable = 1,
	};

	for (size_t i = 0; i < sizeof(hello.nonce); i++)
		hello.nonce[i] = (uint8_t)(i + 1);
	return hello;
}

static void every_field_survives(void **state)
{
	struct mrc_hello in = hello_full(), out;
	uint8_t bytes[MRC_HELLO_BODY_BYTES];

	memset(&out, 0xff, sizeof(out));
	mrc_hello_encode(&in, bytes);
	assert_int_equal(mrc_hello_decode(bytes, &out), 0);
	assert_string_equal(out.host, in.host);
	assert_string_equal(out.to_host, in.to_host);
	assert_true(out.boot_id == in.boot_id);
	assert_true(out.peer_boot_id == in.peer_boot_id);
	assert_int_equal(out.conn_epoch, in.conn_epoch);
	assert_int_equal(out.conn_epoch_last, in.conn_epoch_last);
	assert_int_equal(out.path_epoch_last, in.path_epoch_last);
	assert_int_equal(out.path_id, in.path_id);
	assert_int_equal(out.is_direct_capable, 1);
	assert_memory_equal(out.nonce, in.nonce, sizeof(in.nonce));
}

static void names_are_judged(void **state)
{
	const struct {
		const char *name;
		char bytes[MRC_NAME_MAX + 1];
		int want;
	} rows[] = {
		{"letters, digits, dot, dash, underscore", "aZ09._-", 0},
		{"empty", "", -EPROTO},
		{"space", "a b", -EPROTO},
		{"slash", "a/b", -EPROTO},
		{"newline", "a\n", -EPROTO},
		{"high bit", "a\x80", -EPROTO},
		{"escape", "\033[2J", -EPROTO},
		{"bytes after the end", "a\0b", -EPROTO},
	};
	struct mrc_hello out;
	uint8_t bytes[MRC_HELLO_BODY_BYTES];

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		for (int which = 0; which < 2; which++) {
			struct mrc_hello in = hello_full();
			int r;

			memcpy(which ? in.to_host : in.host, rows[i].bytes, sizeof(in.host));
			mrc_hello_encode(&in, bytes);
			r = mrc_hello_decode(bytes, &out);
			if (r != rows[i].want)
				fail_msg("%s in %s: answer %d", rows[i].name,
					 which ? "to_host" : "host", r);
		}
	}
}

static void a_name_fills_its_field_but_for_the_last_byte(void **state)
{
	struct mrc_hello in = hello_full(), out;
	uint8_t bytes[MRC_HELLO_BODY_BYTES];

	memset(in.host, 'x', MRC_NAME_MAX);
	mrc_hello_encode(&in, bytes);
	assert_int_equal(mrc_hello_decode(bytes, &out), 0);
	in.host[MRC_NAME_MAX] = 'x'; /* no end */
	mrc_hello_encode(&in, bytes);
	assert_int_equal(mrc_hello_decode(bytes, &out), -EPROTO);
}

static void numbers_out_of_range_are_refused(void **state)
{
	const uint32_t half = UINT32_MAX / 2 - 1; /* the next one is still an epoch */
	const struct {
		const char *name;
		uint64_t boot_id;
		uint32_t conn_epoch, conn_epoch_last, path_epoch_last;
		uint16_t path_id, is_direct_capable;
		int want;
	} rows[] = {
		{"never met", 1, 0, 0, 0, 0, 0, 0},
		{"no boot id", 0, 0, 0, 0, 0, 0, -EPROTO},
		{"last path", 1, 0, 0, 0, MRC_PATHS_MAX - 1, 0, 0},
		{"path past the last", 1, 0, 0, 0, MRC_PATHS_MAX, 0, -EPROTO},
		{"direct 2", 1, 0, 0, 0, 0, 2, -EPROTO},
		{"holds the last epoch", 1, 4, 4, 0, 0, 0, 0},
		{"holds an epoch after the last", 1, 5, 4, 0, 0, 0, -EPROTO},
		{"largest conn epoch", 1, half, half, 0, 0, 0, 0},
		{"conn epoch near the end", 1, 0, half + 1, 0, 0, 0, -EPROTO},
		{"largest path epoch", 1, 0, 0, half, 0, 0, 0},
		{"path epoch near the end", 1, 0, 0, half + 1, 0, 0, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_hello in = hello_full(), out;
		uint8_t bytes[MRC_HELLO_BODY_BYTES];
		int r;

		in.boot_id = rows[i].boot_id;
		in.conn_epoch = rows[i].conn_epoch;
		in.conn_epoch_last = rows[i].conn_epoch_last;
		in.path_epoch_last = rows[i].path_epoch_last;
		in.path_id = rows[i].path_id;
		in.is_direct_capable = rows[i].is_direct_capable;
		mrc_hello_encode(&in, bytes);
		r = mrc_hello_decode(bytes, &out);
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
	}
}

static void reserved_bytes_must_be_zero(void **state)
{
	struct mrc_hello in = hello_full(), out;
	struct mrc_auth auth = {.conn_epoch = 1, .path_epoch = 1};
	uint8_t bytes[MRC_HELLO_BODY_BYTES], auth_bytes[MRC_AUTH_BODY_BYTES];
	uint32_t reserved = 0;

	/* Where the encoder never writes, not even with every field set. */
	mrc_hello_encode(&in, bytes);
	for (uint32_t i = 192; i < MRC_HELLO_BODY_BYTES; i++) {
		bytes[i] ^= 1;
		if (mrc_hello_decode(bytes, &out) == -EPROTO)
			reserved++;
		bytes[i] ^= 1;
	}
	assert_int_equal(reserved, MRC_HELLO_BODY_BYTES - 192);
	mrc_auth_encode(&auth, auth_bytes);
	for (uint32_t i = 8; i < MRC_AUTH_BODY_BYTES; i++) {
		auth_bytes[i] = 1;
		assert_int_equal(mrc_auth_decode(auth_bytes, &auth), -EPROTO);
		auth_bytes[i] = 0;
	}
	assert_int_equal(mrc_auth_decode(auth_bytes, &auth), 0);
}

static void auth_needs_both_epochs(void **state)
{
	const struct {
		struct mrc_auth auth;
		int want;
	} rows[] = {
		{{.conn_epoch = 0x01020304, .path_epoch = 0x05060708}, 0},
		{{.conn_epoch = 0, .path_epoch = 1}, -EPROTO},
		{{.conn_epoch = 1, .path_epoch = 0}, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint8_t bytes[MRC_AUTH_BODY_BYTES];
		struct mrc_auth out;

		mrc_auth_encode(&rows[i].auth, bytes);
		assert_int_equal(mrc_auth_decode(bytes, &out), rows[i].want);
		if (rows[i].want == 0) {
			assert_int_equal(out.conn_epoch, rows[i].auth.conn_epoch);
			assert_int_equal(out.path_epoch, rows[i].auth.path_epoch);
		}
	}
}

static void garbage_never_breaks_the_decoder(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed2};
	struct mrc_hello in = hello_full();
	uint8_t good[MRC_HELLO_BODY_BYTES];

	mrc_hello_encode(&in, good);
	for (uint32_t round = 0; round < 100000; round++) {
		uint8_t bytes[MRC_HELLO_BODY_BYTES];
		struct mrc_hello out;
		int r;

		memcpy(bytes, good, sizeof(bytes));
		for (uint64_t i = mrc_rng_next(&rng) % 4; i < 4; i++)
			bytes[mrc_rng_next(&rng) % sizeof(bytes)] = (uint8_t)mrc_rng_next(&rng);
		r = mrc_hello_decode(bytes, &out);
		assert_true(r == 0 || r == -EPROTO);
		if (r == 0) {
			assert_in_range(strnlen(out.host, sizeof(out.host)), 1, MRC_NAME_MAX);
			assert_in_range(out.path_id, 0, MRC_PATHS_MAX - 1);
		}
	}
}

/* ---- conclusions ---- */

static void epochs_follow_from_what_both_hold(void **state)
{
	const struct {
		const char *name;
		struct mrc_hello a, b; /* boot ids: a 1, b 2 */
		uint32_t conn_want, path_want;
	} rows[] = {
		{"never met", {.boot_id = 1}, {.boot_id = 2}, 1, 1},
		{"both hold it",
		 {.boot_id = 1,
		  .peer_boot_id = 2,
		  .conn_epoch = 4,
		  .conn_epoch_last = 4,
		  .path_epoch_last = 7},
		 {.boot_id = 2,
		  .peer_boot_id = 1,
		  .conn_epoch = 4,
		  .conn_epoch_last = 4,
		  .path_epoch_last = 7},
		 4,
		 8},
		{"a restarted",
		 {.boot_id = 1},
		 {.boot_id = 2,
		  .peer_boot_id = 9,
		  .conn_epoch = 4,
		  .conn_epoch_last = 4,
		  .path_epoch_last = 7},
		 5,
		 8},
		{"b restarted",
		 {.boot_id = 1,
		  .peer_boot_id = 9,
		  .conn_epoch = 4,
		  .conn_epoch_last = 4,
		  .path_epoch_last = 3},
		 {.boot_id = 2},
		 5,
		 4},
		{"a lost the conn and kept its boot id",
		 {.boot_id = 1, .peer_boot_id = 2, .conn_epoch = 0, .conn_epoch_last = 4},
		 {.boot_id = 2, .peer_boot_id = 1, .conn_epoch = 4, .conn_epoch_last = 4},
		 5,
		 1},
		{"they hold different epochs",
		 {.boot_id = 1, .peer_boot_id = 2, .conn_epoch = 4, .conn_epoch_last = 4},
		 {.boot_id = 2, .peer_boot_id = 1, .conn_epoch = 3, .conn_epoch_last = 6},
		 7,
		 1},
		{"same epoch, but of another run of b",
		 {.boot_id = 1, .peer_boot_id = 9, .conn_epoch = 4, .conn_epoch_last = 4},
		 {.boot_id = 2, .peer_boot_id = 1, .conn_epoch = 4, .conn_epoch_last = 4},
		 5,
		 1},
		{"same epoch, but of another run of a",
		 {.boot_id = 1, .peer_boot_id = 2, .conn_epoch = 4, .conn_epoch_last = 4},
		 {.boot_id = 2, .peer_boot_id = 9, .conn_epoch = 4, .conn_epoch_last = 4},
		 5,
		 1},
		{"one knows a later path epoch",
		 {.boot_id = 1, .path_epoch_last = 3},
		 {.boot_id = 2, .path_epoch_last = 12},
		 1,
		 13},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_auth ab, ba;

		mrc_hello_conclude(&rows[i].a, &rows[i].b, &ab);
		mrc_hello_conclude(&rows[i].b, &rows[i].a, &ba);
		if (ab.conn_epoch != rows[i].conn_want || ab.path_epoch != rows[i].path_want)
			fail_msg("%s: conn %u path %u, want %u %u", rows[i].name, ab.conn_epoch,
				 ab.path_epoch, rows[i].conn_want, rows[i].path_want);
		if (ab.conn_epoch != ba.conn_epoch || ab.path_epoch != ba.path_epoch)
			fail_msg("%s: the two ends conclude differently", rows[i].name);
		/* Each can tell later whether it was concluded from what it holds then. */
		assert_int_equal(ab.held_by_initiator, rows[i].a.conn_epoch);
		assert_int_equal(ab.held_by_responder, rows[i].b.conn_epoch);
	}
}

/* ---- versions ---- */

static struct mrc_hello hello_of(uint8_t version_min, uint8_t version_max, uint32_t features)
{
	struct mrc_hello hello = hello_full();

	hello.version_min = version_min;
	hello.version_max = version_max;
	hello.features = features;
	return hello;
}

static void versions_and_features_travel_in_the_nonce(void **state)
{
	struct mrc_hello in = hello_of(3, 200, 0x81020304), out;
	uint8_t bytes[MRC_HELLO_BODY_BYTES];

	mrc_hello_encode(&in, bytes);
	assert_int_equal(mrc_hello_decode(bytes, &out), 0);
	assert_int_equal(out.version_min, 3);
	assert_int_equal(out.version_max, 200);
	assert_int_equal(out.features, 0x81020304);
	assert_memory_equal(out.nonce, in.nonce, MRC_HELLO_FRESH_BYTES);
	assert_memory_equal(bytes + 160, in.nonce, MRC_HELLO_FRESH_BYTES);
	assert_memory_equal(bytes + 176, "MRCversion\x03\xc8\x04\x03\x02\x81", 16);
	/* Nothing before or behind it is different from what version 1 says. */
	for (size_t i = 192; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
}

static void who_does_not_say_speaks_version_1(void **state)
{
	static const uint8_t maxima[] = {0, 1};

	for (size_t i = 0; i < MRC_ARRAY_LEN(maxima); i++) {
		struct mrc_hello in = hello_of(maxima[i], maxima[i], 0xff), out;
		uint8_t bytes[MRC_HELLO_BODY_BYTES];

		mrc_hello_encode(&in, bytes);
		assert_memory_equal(bytes + 160, in.nonce, sizeof(in.nonce));
		assert_int_equal(mrc_hello_decode(bytes, &out), 0);
		assert_int_equal(out.version_min, 1);
		assert_int_equal(out.version_max, 1);
		assert_int_equal(out.features, 0);
	}
}

static void versions_that_cannot_be_are_refused(void **state)
{
	const struct {
		uint8_t min, max;
		int want;
	} rows[] = {{1, 2, 0}, {2, 2, 0}, {2, 255, 0}, {0, 2, -EPROTO}, {3, 2, -EPROTO}};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_hello in = hello_of(rows[i].min, rows[i].max, 0), out;
		uint8_t bytes[MRC_HELLO_BODY_BYTES];

		mrc_hello_encode(&in, bytes);
		assert_int_equal(mrc_hello_decode(bytes, &out), rows[i].want);
	}
}

static void the_latest_version_that_both_know_is_spoken(void **state)
{
	const struct {
		const char *name;
		struct mrc_hello a, b;
		uint8_t version;
		uint32_t features;
	} rows[] = {
		{"alike", hello_of(1, 2, 6), hello_of(1, 2, 3), 2, 2},
		{"one is old", hello_of(1, 2, 6), hello_of(1, 1, 0), 1, 0},
		{"an old one cannot have features", hello_of(1, 2, 6), hello_of(1, 1, 6), 1, 0},
		{"both are old", hello_of(1, 1, 0), hello_of(1, 1, 0), 1, 0},
		{"one is newer", hello_of(1, 2, 7), hello_of(2, 3, 5), 2, 5},
		{"too new", hello_of(1, 2, 7), hello_of(3, 4, 7), 0, 0},
		{"too old", hello_of(2, 3, 7), hello_of(1, 1, 0), 0, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_auth ab, ba;

		mrc_hello_conclude(&rows[i].a, &rows[i].b, &ab);
		mrc_hello_conclude(&rows[i].b, &rows[i].a, &ba);
		if (ab.version != rows[i].version || ab.features != rows[i].features)
			fail_msg("%s: version %u, features %x", rows[i].name, ab.version,
				 ab.features);
		if (ab.version != ba.version || ab.features != ba.features)
			fail_msg("%s: the two ends conclude differently", rows[i].name);
	}
}

static void encryption_takes_two(void **state)
{
	enum { OFF, PREFERRED = MRC_FEATURE_ENCRYPTION, REQUIRED = 3, ODD = 2 };
	static const struct {
		uint32_t a, b;
		bool is_direct;
		int want; /* 1: sealed */
	} rows[] = {
		{OFF, OFF, false, 0},
		{OFF, PREFERRED, false, 0},
		{OFF, REQUIRED, false, -EACCES},
		{PREFERRED, PREFERRED, false, 1},
		{PREFERRED, REQUIRED, false, 1},
		{REQUIRED, REQUIRED, false, 1},
		{PREFERRED, PREFERRED, true, 0},
		{PREFERRED, REQUIRED, true, 1},
		{OFF, REQUIRED, true, -EACCES},
		/* Requires what it does not want: nobody of ours says so. */
		{ODD, PREFERRED, false, -EACCES},
		{ODD, OFF, false, -EACCES},
	};

	for (size_t i = 0; i < 2 * MRC_ARRAY_LEN(rows); i++) {
		struct mrc_hello a = {.features = rows[i / 2].a}, b = {.features = rows[i / 2].b};
		bool is_sealed = false;
		int r = i % 2 ? mrc_hello_encryption(&a, &b, rows[i / 2].is_direct, &is_sealed)
			      : mrc_hello_encryption(&b, &a, rows[i / 2].is_direct, &is_sealed);

		if ((r < 0 ? r : is_sealed) != rows[i / 2].want)
			fail_msg("row %zu: %d, %d", i / 2, r, is_sealed);
	}
}

static void one_of_two_hosts_opens(void **state)
{
	const struct {
		const char *a, *b;
		bool want;
	} rows[] = {
		{"a", "b", true},        {"b", "a", false}, {"a", "aa", true},
		{"aa", "a", false},      {"B", "a", true},  {"host-10", "host-9", true},
		{"same", "same", false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++)
		assert_int_equal(mrc_hello_is_initiator(rows[i].a, rows[i].b), rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_survives),
		cmocka_unit_test(names_are_judged),
		cmocka_unit_test(a_name_fills_its_field_but_for_the_last_byte),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(reserved_bytes_must_be_zero),
		cmocka_unit_test(auth_needs_both_epochs),
		cmocka_unit_test(garbage_never_breaks_the_decoder),
		cmocka_unit_test(epochs_follow_from_what_both_hold),
		cmocka_unit_test(versions_and_features_travel_in_the_nonce),
		cmocka_unit_test(who_does_not_say_speaks_version_1),
		cmocka_unit_test(versions_that_cannot_be_are_refused),
		cmocka_unit_test(the_latest_version_that_both_know_is_spoken),
		cmocka_unit_test(encryption_takes_two),
		cmocka_unit_test(one_of_two_hosts_opens),
	};

	return cmocka_run_group_tests_name("hello", tests, NULL, NULL);
}
