/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_image: what is written is read; what is damaged, cut or of another version is not. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_crc.h"
#include "mrcd_image.h"

#define BLOB "an engine's state"

static int image_make(void)
{
	struct mrcd_image_out out;
	uint8_t *room;
	int fd = -1;

	mrcd_image_begin(&out);
	mrcd_image_put(&out, UINT64_MAX);
	mrcd_image_put(&out, 1);
	mrcd_image_put_name(&out, "host-a");
	room = mrcd_image_blob_room(&out, 100);
	assert_non_null(room);
	memcpy(room, BLOB, sizeof(BLOB));
	mrcd_image_put_blob(&out, sizeof(BLOB));
	mrcd_image_put(&out, 42);
	assert_int_equal(mrcd_image_seal(&out, &fd), 0);
	mrcd_image_fini(&out);
	return fd;
}

/* The same bytes with a change, sealed as an image is. */
static int image_forge(const uint8_t *bytes, size_t len_bytes, int seals)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len_bytes), len_bytes);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static size_t image_bytes(uint8_t *bytes, size_t room_bytes)
{
	int fd = image_make();
	ssize_t len = pread(fd, bytes, room_bytes, 0);

	assert_true(len > 0 && (size_t)len < room_bytes);
	close(fd);
	return (size_t)len;
}

/* As the header wants it, so that what is wrong is the one thing that a test changed. */
static void image_mend(uint8_t *bytes, size_t len_bytes)
{
	uint64_t body_bytes = len_bytes - MRCD_IMAGE_HEADER_BYTES;
	uint32_t crc = mrcd_crc32c(0, bytes + MRCD_IMAGE_HEADER_BYTES, body_bytes);

	memcpy(bytes + 8, &body_bytes, 8);
	memcpy(bytes + 16, &crc, 4);
	crc = mrcd_crc32c(0, bytes, 20);
	memcpy(bytes + 20, &crc, 4);
}

static int open_forged(const uint8_t *bytes, size_t len_bytes, char why[MRCD_IMAGE_WHY_BYTES])
{
	int fd = image_forge(bytes, len_bytes, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	struct mrcd_image_in in;
	int r = mrcd_image_open(&in, fd, why);

	if (r == 0)
		mrcd_image_close(&in);
	close(fd);
	return r;
}

static void image_reads_what_was_written(void **state)
{
	char name[MRC_NAME_MAX + 1], why[MRCD_IMAGE_WHY_BYTES];
	struct mrcd_image_in in;
	const uint8_t *blob;
	size_t blob_bytes;
	int fd = image_make();

	(void)state;
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW),
			 F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(mrcd_image_open(&in, fd, why), 0);
	assert_int_equal(in.version, MRCD_IMAGE_VERSION);
	assert_true(mrcd_image_take(&in) == UINT64_MAX);
	assert_true(mrcd_image_take_bool(&in));
	mrcd_image_take_name(&in, name);
	assert_string_equal(name, "host-a");
	blob = mrcd_image_take_blob(&in, &blob_bytes);
	assert_int_equal(blob_bytes, sizeof(BLOB));
	assert_memory_equal(blob, BLOB, sizeof(BLOB));
	assert_false(mrcd_image_is_done(&in));
	assert_int_equal(mrcd_image_take_max(&in, 42), 42);
	assert_true(mrcd_image_is_done(&in));
	mrcd_image_close(&in);
	close(fd);
}

static void image_reads_nothing_beyond_its_end(void **state)
{
	char name[MRC_NAME_MAX + 1], why[MRCD_IMAGE_WHY_BYTES];
	uint8_t bytes[1024] = {0};
	size_t len_bytes = image_bytes(bytes, sizeof(bytes)), blob_bytes;

	(void)state;
	/* Cut at every length, with a header that says so. */
	for (size_t len = MRCD_IMAGE_HEADER_BYTES; len < len_bytes; len++) {
		uint8_t cut[1024];
		struct mrcd_image_in in;
		int fd;

		memcpy(cut, bytes, len);
		image_mend(cut, len);
		fd = image_forge(cut, len, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
		assert_int_equal(mrcd_image_open(&in, fd, why), 0);
		mrcd_image_take(&in);
		mrcd_image_take_bool(&in);
		mrcd_image_take_name(&in, name);
		mrcd_image_take_blob(&in, &blob_bytes);
		mrcd_image_take(&in);
		assert_true(in.is_failed);
		assert_false(mrcd_image_is_done(&in));
		assert_int_equal(mrcd_image_take(&in), 0);
		mrcd_image_close(&in);
		close(fd);
	}
}

static void image_refuses_a_value_above_its_bound(void **state)
{
	char why[MRCD_IMAGE_WHY_BYTES];
	struct mrcd_image_in in;
	int fd = image_make();

	(void)state;
	assert_int_equal(mrcd_image_open(&in, fd, why), 0);
	assert_int_equal(mrcd_image_take_max(&in, UINT64_MAX - 1), 0);
	assert_true(in.is_failed);
	mrcd_image_close(&in);
	assert_int_equal(mrcd_image_open(&in, fd, why), 0);
	assert_false(mrcd_image_take_bool(&in)); /* UINT64_MAX is no bool */
	assert_true(in.is_failed);
	mrcd_image_close(&in);
	close(fd);
}

static void image_refuses_every_changed_byte(void **state)
{
	char why[MRCD_IMAGE_WHY_BYTES];
	uint8_t bytes[1024] = {0};
	size_t len_bytes = image_bytes(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(open_forged(bytes, len_bytes, why), 0);
	for (size_t i = 0; i < len_bytes; i++) {
		bytes[i] ^= 0x10;
		assert_int_equal(open_forged(bytes, len_bytes, why), -EPROTO);
		assert_true(why[0] != '\0');
		bytes[i] ^= 0x10;
	}
	assert_int_equal(open_forged(bytes, len_bytes - 1, why), -EPROTO);
	assert_int_equal(open_forged(bytes, len_bytes + 1, why), -EPROTO);
	assert_int_equal(open_forged(bytes, 3, why), -EPROTO);
}

static void image_refuses_other_versions_by_number(void **state)
{
	static const struct {
		uint32_t version;
		int want;
	} cases[] = {
		{MRCD_IMAGE_VERSION, 0},
		{MRCD_IMAGE_VERSION_OLDEST, 0},
		{MRCD_IMAGE_VERSION + 1, -EPROTO},
		{MRCD_IMAGE_VERSION_OLDEST - 1, -EPROTO},
		{UINT32_MAX, -EPROTO},
	};
	char why[MRCD_IMAGE_WHY_BYTES], number[32];
	uint8_t bytes[1024] = {0};
	size_t len_bytes = image_bytes(bytes, sizeof(bytes));

	(void)state;
	/* One back, once there is one: no daemon is further from another than a release. */
	assert_true(MRCD_IMAGE_VERSION - MRCD_IMAGE_VERSION_OLDEST <= 1);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		memcpy(bytes + 4, &cases[i].version, 4);
		image_mend(bytes, len_bytes);
		assert_int_equal(open_forged(bytes, len_bytes, why), cases[i].want);
		snprintf(number, sizeof(number), "version %u,", cases[i].version);
		if (cases[i].want < 0)
			assert_non_null(strstr(why, number));
	}
}

static void image_refuses_memory_that_can_still_change(void **state)
{
	char why[MRCD_IMAGE_WHY_BYTES];
	uint8_t bytes[1024] = {0};
	size_t len_bytes = image_bytes(bytes, sizeof(bytes));
	struct mrcd_image_in in;
	int fds[2], fd = image_forge(bytes, len_bytes, F_SEAL_SHRINK | F_SEAL_GROW);

	(void)state;
	assert_int_equal(mrcd_image_open(&in, fd, why), -EPROTO);
	close(fd);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(mrcd_image_open(&in, fds[0], why), -EPROTO);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_reads_what_was_written),
		cmocka_unit_test(image_reads_nothing_beyond_its_end),
		cmocka_unit_test(image_refuses_a_value_above_its_bound),
		cmocka_unit_test(image_refuses_every_changed_byte),
		cmocka_unit_test(image_refuses_other_versions_by_number),
		cmocka_unit_test(image_refuses_memory_that_can_still_change),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
