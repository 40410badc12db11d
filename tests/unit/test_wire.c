/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_wire: every field survives, every damage shows, nothing out of range passes. */
#include "engine_lab.h"

/* Every field has a value of its own, and each of its bytes too. */
static struct mrc_wire_hdr header_full(void)
{
	return (struct mrc_wire_hdr){
		.type = MRC_WIRE_FRAG,
		.flags = MRC_WIRE_F_COPY | MRC_WIRE_F_EAGER | MRC_WIRE_F_VISIBLE,
		.conn_epoch = 0x01020304,
		.path_epoch = 0x11121314,
		.writer_path = 7,
		.writer_epoch = 0x21222324,
		.channel = 0x31323334,
		.body_len = 0x00012345,
		.msg = 0x4142434445464748,
		.offset = 0x5152535455565758,
		.msg_len = 0x6162636465666768,
		.addr = 0x7172737475767778,
		.arg = 0x8182838485868788,
		.body_crc = 0x91929394,
	};
}

static void headers_are_equal(const struct mrc_wire_hdr *a, const struct mrc_wire_hdr *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->conn_epoch, b->conn_epoch);
	assert_int_equal(a->path_epoch, b->path_epoch);
	assert_int_equal(a->writer_path, b->writer_path);
	assert_int_equal(a->writer_epoch, b->writer_epoch);
	assert_int_equal(a->channel, b->channel);
	assert_int_equal(a->body_len, b->body_len);
	assert_true(a->msg == b->msg);
	assert_true(a->offset == b->offset);
	assert_true(a->msg_len == b->msg_len);
	assert_true(a->addr == b->addr);
	assert_true(a->arg == b->arg);
	assert_int_equal(a->body_crc, b->body_crc);
}

static void every_field_survives(void **state)
{
	struct mrc_wire_hdr in = header_full(), out;
	uint8_t bytes[MRC_WIRE_HDR_BYTES];

	mrc_wire_encode(&in, lab_crc32c, bytes);
	assert_int_equal(mrc_wire_decode(bytes, lab_crc32c, &out), 0);
	headers_are_equal(&in, &out);
}

static void every_damaged_bit_is_noticed(void **state)
{
	struct mrc_wire_hdr in = header_full(), out;
	uint8_t bytes[MRC_WIRE_HDR_BYTES];

	mrc_wire_encode(&in, lab_crc32c, bytes);
	for (uint32_t bit = 0; bit < 8 * MRC_WIRE_HDR_BYTES; bit++) {
		int r;

		bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
		r = mrc_wire_decode(bytes, lab_crc32c, &out);
		/* Magic and version come first: what is not ours has no checksum to judge. */
		if (r != (bit < 40 ? -EBADMSG : -EILSEQ))
			fail_msg("bit %u damaged: answer %d", bit, r);
		bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
	}
}

/* With the checksum right, so that only the field itself is to blame. */
static int decode_patched(const struct mrc_wire_hdr *hdr, uint32_t at, uint8_t value)
{
	uint8_t bytes[MRC_WIRE_HDR_BYTES];
	struct mrc_wire_hdr out;
	uint32_t crc;

	mrc_wire_encode(hdr, lab_crc32c, bytes);
	if (at < MRC_WIRE_HDR_BYTES) {
		bytes[at] = value;
		crc = lab_crc32c(0, bytes, MRC_WIRE_HDR_BYTES - 4);
		for (int i = 0; i < 4; i++)
			bytes[MRC_WIRE_HDR_BYTES - 4 + i] = (uint8_t)(crc >> (8 * i));
	}
	return mrc_wire_decode(bytes, lab_crc32c, &out);
}

static void fields_out_of_range_are_refused(void **state)
{
	enum { UNPATCHED = MRC_WIRE_HDR_BYTES };
	const uint32_t max = MRC_FRAG_BYTES_MAX, ctl = MRC_WIRE_CTL_BYTES_MAX;
	const struct {
		const char *name;
		struct mrc_wire_hdr hdr;
		int want;
		uint32_t at; /* header byte set to `value` afterwards */
		uint8_t value;
	} rows[] = {
		{"plain NOP", {.type = MRC_WIRE_NOP}, 0, UNPATCHED, 0},
		{"type 0", {.type = 0}, -EPROTO, UNPATCHED, 0},
		{"type past the last", {.type = MRC_WIRE_TYPE_END}, -EPROTO, UNPATCHED, 0},
		{"type 255", {.type = 255}, -EPROTO, UNPATCHED, 0},
		{"magic", {.type = MRC_WIRE_NOP}, -EBADMSG, 0, 'G'},
		{"version 0", {.type = MRC_WIRE_NOP}, -EBADMSG, 4, 0},
		{"version 2", {.type = MRC_WIRE_NOP}, -EBADMSG, 4, 2},
		{"reserved, low byte", {.type = MRC_WIRE_NOP}, -EPROTO, 18, 1},
		{"reserved, high byte", {.type = MRC_WIRE_NOP}, -EPROTO, 19, 0x80},
		{"lowest unknown flag",
		 {.type = MRC_WIRE_FRAG, .flags = 0x400},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"highest unknown flag",
		 {.type = MRC_WIRE_FRAG, .flags = 0x8000},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"EAGER on RTS",
		 {.type = MRC_WIRE_RTS, .flags = MRC_WIRE_F_EAGER},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"DIRECT on PROBE",
		 {.type = MRC_WIRE_PROBE, .flags = MRC_WIRE_F_DIRECT},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"UNORDERED on OPEN",
		 {.type = MRC_WIRE_OPEN, .flags = MRC_WIRE_F_UNORDERED},
		 0,
		 UNPATCHED,
		 0},
		{"UNCHECKED on OPEN",
		 {.type = MRC_WIRE_OPEN, .flags = MRC_WIRE_F_UNCHECKED},
		 0,
		 UNPATCHED,
		 0},
		{"UNCHECKED on RTS",
		 {.type = MRC_WIRE_RTS, .flags = MRC_WIRE_F_UNCHECKED},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"UNORDERED on ACCEPT",
		 {.type = MRC_WIRE_ACCEPT, .flags = MRC_WIRE_F_UNORDERED},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"UNORDERED on FRAG",
		 {.type = MRC_WIRE_FRAG, .flags = MRC_WIRE_F_UNORDERED},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"TRACED, on LEVEL",
		 {.type = MRC_WIRE_LEVEL, .flags = MRC_WIRE_F_TRACED},
		 0,
		 UNPATCHED,
		 0},
		{"TRACED, not on FRAG or LEVEL",
		 {.type = MRC_WIRE_STATE, .flags = MRC_WIRE_F_TRACED},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"EAGER, on LEVEL",
		 {.type = MRC_WIRE_LEVEL, .flags = MRC_WIRE_F_EAGER},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"PROVE on PROBE",
		 {.type = MRC_WIRE_PROBE, .flags = MRC_WIRE_F_PROVE},
		 0,
		 UNPATCHED,
		 0},
		{"PROOF on PROBE",
		 {.type = MRC_WIRE_PROBE, .flags = MRC_WIRE_F_PROOF},
		 0,
		 UNPATCHED,
		 0},
		{"PROVE on PROBE_ACK",
		 {.type = MRC_WIRE_PROBE_ACK, .flags = MRC_WIRE_F_PROVE},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"PROOF on FRAG",
		 {.type = MRC_WIRE_FRAG, .flags = MRC_WIRE_F_PROOF},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"last path",
		 {.type = MRC_WIRE_FRAG, .writer_path = MRC_PATHS_MAX - 1},
		 0,
		 UNPATCHED,
		 0},
		{"path past the last",
		 {.type = MRC_WIRE_FRAG, .writer_path = MRC_PATHS_MAX},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"longest control body",
		 {.type = MRC_WIRE_STATE, .body_len = ctl},
		 0,
		 UNPATCHED,
		 0},
		{"control body too long",
		 {.type = MRC_WIRE_STATE, .body_len = ctl + 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"longest probe", {.type = MRC_WIRE_PROBE, .body_len = max}, 0, UNPATCHED, 0},
		{"probe too long",
		 {.type = MRC_WIRE_PROBE, .body_len = max + 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"longest fragment",
		 {.type = MRC_WIRE_FRAG, .body_len = max, .msg_len = max},
		 0,
		 UNPATCHED,
		 0},
		{"fragment too long",
		 {.type = MRC_WIRE_FRAG, .body_len = max + 1, .msg_len = max + 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"empty message", {.type = MRC_WIRE_FRAG}, 0, UNPATCHED, 0},
		{"empty fragment of a message",
		 {.type = MRC_WIRE_FRAG, .msg_len = 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"offset at the end",
		 {.type = MRC_WIRE_FRAG, .offset = 9, .msg_len = 10, .body_len = 1},
		 0,
		 UNPATCHED,
		 0},
		{"one byte past the end",
		 {.type = MRC_WIRE_FRAG, .offset = 9, .msg_len = 10, .body_len = 2},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"offset past the end",
		 {.type = MRC_WIRE_FRAG, .offset = 11, .msg_len = 10, .body_len = 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"offset that wraps",
		 {.type = MRC_WIRE_FRAG, .offset = UINT64_MAX, .msg_len = 10, .body_len = 2},
		 -EPROTO,
		 UNPATCHED,
		 0},
		{"a direct copy",
		 {.type = MRC_WIRE_FRAG,
		  .flags = MRC_WIRE_F_DIRECT | MRC_WIRE_F_COPY,
		  .msg_len = 1,
		  .body_len = 1},
		 -EPROTO,
		 UNPATCHED,
		 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		int r = decode_patched(&rows[i].hdr, rows[i].at, rows[i].value);

		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
	}
}

/* Any bytes give a header or an error; what gives a header is in range. */
static void garbage_gives_an_error_or_a_header_in_range(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed};
	uint32_t accepted = 0;

	for (uint32_t round = 0; round < 1000000; round++) {
		uint8_t bytes[MRC_WIRE_HDR_BYTES];
		struct mrc_wire_hdr hdr;
		int r;

		for (size_t i = 0; i < sizeof(bytes); i += 8) {
			uint64_t v = mrc_rng_next(&rng);

			memcpy(bytes + i, &v, 8);
		}
		/* Nine rounds of ten get past magic, version and checksum, to the fields. */
		if (round % 10) {
			static const uint8_t ours[5] = {'M', 'R', 'C', 'F', MRC_WIRE_VERSION};
			uint32_t crc;

			memcpy(bytes, ours, sizeof(ours));
			bytes[5] %= 32;
			bytes[7] = 0;
			if (round % 3) {
				/* Small numbers are where the borders are. */
				bytes[6] &= 0x1f;
				bytes[16] &= 15;
				memset(bytes + 17, 0, 3);
				memset(bytes + 30, 0, 2);
			}
			crc = lab_crc32c(0, bytes, MRC_WIRE_HDR_BYTES - 4);
			for (int i = 0; i < 4; i++)
				bytes[MRC_WIRE_HDR_BYTES - 4 + i] = (uint8_t)(crc >> (8 * i));
		}
		r = mrc_wire_decode(bytes, lab_crc32c, &hdr);
		if (r == 0) {
			accepted++;
			assert_in_range(hdr.type, 1, MRC_WIRE_TYPE_END - 1);
			assert_in_range(hdr.body_len, 0, MRC_FRAG_BYTES_MAX);
			assert_in_range(hdr.writer_path, 0, MRC_PATHS_MAX - 1);
			if (hdr.type == MRC_WIRE_FRAG)
				assert_true(hdr.offset <= hdr.msg_len &&
					    hdr.body_len <= hdr.msg_len - hdr.offset);
		} else {
			assert_true(r == -EBADMSG || r == -EILSEQ || r == -EPROTO);
		}
	}
	assert_true(accepted > 1000);
}

static void a_body_follows_unless_it_was_written_directly(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG, .body_len = 5, .msg_len = 5};

	assert_true(mrc_wire_has_body(&hdr));
	hdr.flags = MRC_WIRE_F_DIRECT;
	assert_false(mrc_wire_has_body(&hdr));
	hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_NOP};
	assert_false(mrc_wire_has_body(&hdr));
}

static void every_type_has_a_name_of_its_own(void **state)
{
	for (unsigned a = 1; a < MRC_WIRE_TYPE_END; a++) {
		assert_string_not_equal(mrc_wire_type_name((uint8_t)a), "?");
		for (unsigned b = 1; b < a; b++)
			assert_string_not_equal(mrc_wire_type_name((uint8_t)a),
						mrc_wire_type_name((uint8_t)b));
	}
	assert_string_equal(mrc_wire_type_name(0), "?");
	assert_string_equal(mrc_wire_type_name(MRC_WIRE_TYPE_END), "?");
	assert_string_equal(mrc_wire_type_name(255), "?");
}

static void a_cursor_reads_what_was_put(void **state)
{
	uint8_t bytes[18], out[3];
	struct mrc_cursor c = {.at = bytes, .end = bytes + sizeof(bytes), .ok = true};

	mrc_put_u8(&c, 0xfe);
	mrc_put_u16(&c, 0x0201);
	mrc_put_u32(&c, 0x06050403);
	mrc_put_u64(&c, 0x0e0d0c0b0a090807);
	mrc_put_bytes(&c, "xyz", 3);
	assert_true(c.ok && c.at == c.end);
	for (uint8_t i = 1; i <= 14; i++)
		assert_int_equal(bytes[i], i); /* little-endian */
	c.at = bytes;
	assert_int_equal(mrc_get_u8(&c), 0xfe);
	assert_int_equal(mrc_get_u16(&c), 0x0201);
	assert_int_equal(mrc_get_u32(&c), 0x06050403);
	assert_true(mrc_get_u64(&c) == 0x0e0d0c0b0a090807);
	mrc_get_bytes(&c, out, 3);
	assert_memory_equal(out, "xyz", 3);
	assert_true(c.ok);
}

static void a_cursor_that_overran_stays_spoilt_and_gives_zeros(void **state)
{
	uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8}, guard[8], out[4] = {9, 9, 9, 9};
	struct mrc_cursor c = {.at = bytes, .end = bytes + 3, .ok = true};

	memcpy(guard, bytes, sizeof(bytes));
	assert_int_equal(mrc_get_u32(&c), 0);
	assert_false(c.ok);
	assert_int_equal(mrc_get_u8(&c), 0); /* there would be room for this one */
	mrc_get_bytes(&c, out, 4);
	assert_memory_equal(out, "\0\0\0\0", 4);

	c = (struct mrc_cursor){.at = bytes, .end = bytes + 7, .ok = true};
	mrc_put_u64(&c, 0);
	mrc_put_u8(&c, 0);
	mrc_put_bytes(&c, "z", 1);
	assert_false(c.ok);
	assert_memory_equal(bytes, guard, sizeof(bytes));
}

/* ---- WIRE.md says the same ---- */

static void field_fill(struct mrc_wire_hdr *hdr, const char *name, bool *is_known)
{
	*is_known = true;
	if (!strcmp(name, "type"))
		hdr->type = 0xff;
	else if (!strcmp(name, "flags"))
		hdr->flags = 0xffff;
	else if (!strcmp(name, "conn_epoch"))
		hdr->conn_epoch = UINT32_MAX;
	else if (!strcmp(name, "path_epoch"))
		hdr->path_epoch = UINT32_MAX;
	else if (!strcmp(name, "writer_path"))
		hdr->writer_path = UINT16_MAX;
	else if (!strcmp(name, "writer_epoch"))
		hdr->writer_epoch = UINT32_MAX;
	else if (!strcmp(name, "channel"))
		hdr->channel = UINT32_MAX;
	else if (!strcmp(name, "body_len"))
		hdr->body_len = UINT32_MAX;
	else if (!strcmp(name, "msg"))
		hdr->msg = UINT64_MAX;
	else if (!strcmp(name, "offset"))
		hdr->offset = UINT64_MAX;
	else if (!strcmp(name, "msg_len"))
		hdr->msg_len = UINT64_MAX;
	else if (!strcmp(name, "addr"))
		hdr->addr = UINT64_MAX;
	else if (!strcmp(name, "arg"))
		hdr->arg = UINT64_MAX;
	else if (!strcmp(name, "body_crc"))
		hdr->body_crc = UINT32_MAX;
	else
		*is_known = false;
}

/* Every row "| offset | bytes | field | ..." of the first table, checked against the encoder. */
static void the_documented_offsets_are_the_codecs(void **state)
{
	FILE *doc = fopen(MRC_SOURCE_DIR "/proto/WIRE.md", "r");
	struct mrc_wire_hdr zero = {0};
	uint8_t base[MRC_WIRE_HDR_BYTES];
	uint32_t next = 0, fields = 0;
	char line[512];

	assert_non_null(doc);
	mrc_wire_encode(&zero, lab_crc32c, base);
	while (next < MRC_WIRE_HDR_BYTES && fgets(line, sizeof(line), doc)) {
		struct mrc_wire_hdr hdr = {0};
		uint8_t bytes[MRC_WIRE_HDR_BYTES];
		unsigned int at, len;
		bool is_known;
		char name[32];

		if (sscanf(line, "| %u | %u | `%31[a-z_]`", &at, &len, name) != 3)
			continue;
		if (at != next)
			fail_msg("WIRE.md: %s at %u, but the field before ends at %u", name, at,
				 next);
		next = at + len;
		field_fill(&hdr, name, &is_known);
		if (!is_known)
			continue;
		fields++;
		mrc_wire_encode(&hdr, lab_crc32c, bytes);
		for (uint32_t i = 0; i < MRC_WIRE_HDR_BYTES - 4; i++) {
			bool is_own = i >= at && i < at + len;

			if (is_own != (bytes[i] != base[i]))
				fail_msg("WIRE.md: %s at %u, %u bytes: byte %u disagrees", name, at,
					 len, i);
		}
	}
	fclose(doc);
	assert_int_equal(next, MRC_WIRE_HDR_BYTES);
	assert_int_equal(fields, 14);
}

/* Every row "| number | `NAME` | ..." of the table of types. */
static void the_documented_types_are_the_codecs(void **state)
{
	FILE *doc = fopen(MRC_SOURCE_DIR "/proto/WIRE.md", "r");
	uint32_t next = 1;
	char line[512];

	assert_non_null(doc);
	while (fgets(line, sizeof(line), doc)) {
		unsigned int number;
		char name[32];

		if (sscanf(line, "| %u | `%31[A-Z_]` |", &number, name) != 2)
			continue;
		assert_int_equal(number, next);
		assert_string_equal(name, mrc_wire_type_name((uint8_t)number));
		next++;
	}
	fclose(doc);
	assert_int_equal(next, MRC_WIRE_TYPE_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_survives),
		cmocka_unit_test(every_damaged_bit_is_noticed),
		cmocka_unit_test(fields_out_of_range_are_refused),
		cmocka_unit_test(garbage_gives_an_error_or_a_header_in_range),
		cmocka_unit_test(a_body_follows_unless_it_was_written_directly),
		cmocka_unit_test(every_type_has_a_name_of_its_own),
		cmocka_unit_test(a_cursor_reads_what_was_put),
		cmocka_unit_test(a_cursor_that_overran_stays_spoilt_and_gives_zeros),
		cmocka_unit_test(the_documented_offsets_are_the_codecs),
		cmocka_unit_test(the_documented_types_are_the_codecs),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
