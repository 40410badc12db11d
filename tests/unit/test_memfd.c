/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_memfd: sealed memory, of huge pages where they can be had and of ordinary ones where not. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_memfd.h"

#define MIB         (1ULL << 20)
#define SIZE_OF(f)  (1ULL << ((f) >> 26 & 63))
#define HUGE_NEVER  0U
#define HUGE_ALWAYS 1U
#define HUGE_FULL   2U /* there are such pages, all of them taken */

/* A kernel of our own making: its huge pages are ordinary ones that it calls huge. */
static unsigned int huge_kind;
static unsigned int flags_last;
static int fd_huge;
static bool is_real; /* ask the kernel of this machine instead */

int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	if (is_real || (flags & MFD_HUGETLB) == 0)
		return __real_memfd_create(name, flags);
	if (huge_kind == HUGE_NEVER) {
		errno = ENODEV;
		return -1;
	}
	flags_last = flags;
	if (SIZE_OF(flags) == 1) /* it is only asked which size it prefers */
		return __real_memfd_create(name, flags & 15U & ~MFD_HUGETLB);
	fd_huge = __real_memfd_create(name, flags & 15U & ~MFD_HUGETLB);
	return fd_huge;
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (!is_real && fd >= 0 && fd == fd_huge && huge_kind == HUGE_FULL) {
		fd_huge = -1;
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, offset);
}

static int setup(void **state)
{
	(void)state;
	huge_kind = HUGE_ALWAYS;
	flags_last = 0;
	fd_huge = -1;
	is_real = false;
	return 0;
}

static char why[MRCD_MEMFD_TEXT_BYTES];

static struct mrcd_memfd memfd_make_of_two(uint64_t len_bytes, uint64_t huge_page_bytes,
					   uint64_t also_bytes)
{
	struct mrcd_memfd memfd = {0};

	memset(why, 'x', sizeof(why));
	assert_int_equal(mrcd_memfd_new("test", len_bytes, huge_page_bytes, also_bytes, &memfd,
					why),
			 0);
	return memfd;
}

static struct mrcd_memfd memfd_make(uint64_t len_bytes, uint64_t huge_page_bytes)
{
	return memfd_make_of_two(len_bytes, huge_page_bytes, 0);
}

/* Whatever it is made of: it has the size that was said, keeps it, and is one memory. */
static void memfd_is_sound_and_goes(struct mrcd_memfd *memfd)
{
	struct stat st;
	uint8_t *other;

	assert_int_equal(fstat(memfd->fd, &st), 0);
	assert_int_equal(st.st_size, memfd->len_bytes);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fcntl(memfd->fd, F_GET_SEALS) &
				 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(memfd->fd, 0), -1);
	other = __real_mmap(NULL, memfd->len_bytes, PROT_READ, MAP_SHARED, memfd->fd, 0);
	assert_true(other != MAP_FAILED);
	memfd->addr[memfd->len_bytes - 1] = 77;
	assert_int_equal(other[memfd->len_bytes - 1], 77);
	assert_int_equal(munmap(other, memfd->len_bytes), 0);
	assert_int_equal(munmap(memfd->addr, memfd->len_bytes), 0);
	close(memfd->fd);
}

static void memory_is_of_ordinary_pages_unless_wished_otherwise(void **state)
{
	struct mrcd_memfd memfd = memfd_make(3 * 4096 + 1, 0);

	(void)state;
	assert_int_equal(flags_last, 0);
	assert_int_equal(memfd.page_bytes, 4096);
	assert_int_equal(memfd.len_bytes, 4 * 4096);
	assert_string_equal(why, "");
	memfd_is_sound_and_goes(&memfd);
}

static void memory_is_of_huge_pages_of_the_size_wished_and_rounded_up(void **state)
{
	static const uint64_t sizes[] = {2 * MIB, 16 * MIB};
	struct mrcd_memfd memfd;

	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(sizes); i++) {
		memfd = memfd_make(2 * MIB + 1, sizes[i]);
		assert_true(flags_last & MFD_HUGETLB);
		assert_int_equal(SIZE_OF(flags_last), sizes[i]);
		assert_int_equal(memfd.page_bytes, sizes[i]);
		assert_int_equal(memfd.len_bytes, i == 0 ? 4 * MIB : 16 * MIB);
		assert_string_equal(why, "");
		memfd_is_sound_and_goes(&memfd);
	}
}

static void kernel_without_such_pages_gives_ordinary_ones_and_the_reason(void **state)
{
	struct mrcd_memfd memfd;

	(void)state;
	huge_kind = HUGE_NEVER;
	memfd = memfd_make(MIB, 16 * MIB);
	assert_int_equal(memfd.page_bytes, 4096);
	assert_int_equal(memfd.len_bytes, MIB);
	assert_string_equal(why, "this kernel has no huge pages of 16384 KiB: see "
				 "/sys/kernel/mm/hugepages");
	memfd_is_sound_and_goes(&memfd);
	memfd = memfd_make(MIB, MRCD_HUGE_PAGES_ANY);
	assert_int_equal(memfd.page_bytes, 4096);
	assert_string_equal(why, "this kernel has no huge pages");
	memfd_is_sound_and_goes(&memfd);
}

/* The fake kernel prefers pages of 4 KiB, so for a size of which nobody keeps a count the file is named. */
static void pages_all_taken_give_ordinary_ones_and_how_many_are_needed(void **state)
{
	struct mrcd_memfd memfd;

	(void)state;
	huge_kind = HUGE_FULL;
	memfd = memfd_make(33 * MIB, 8 * MIB);
	assert_int_equal(memfd.page_bytes, 4096);
	assert_int_equal(memfd.len_bytes, 33 * MIB);
	assert_string_equal(why,
			    "5 huge pages of 8192 KiB are needed and 0 are free: set "
			    "/sys/kernel/mm/hugepages/hugepages-8192kB/nr_hugepages to at least 5");
	memfd_is_sound_and_goes(&memfd);
	memfd = memfd_make_of_two(33 * MIB, 8 * MIB, 8 * MIB + 1);
	assert_string_equal(why,
			    "7 huge pages of 8192 KiB are needed and 0 are free: set "
			    "/sys/kernel/mm/hugepages/hugepages-8192kB/nr_hugepages to at least 7");
	memfd_is_sound_and_goes(&memfd);
}

static unsigned long long pool(const char *counter)
{
	unsigned long long value = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-2048kB/%s", counter);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	assert_int_equal(fscanf(file, "%llu", &value), 1);
	fclose(file);
	return value;
}

/* With what this machine has. No page is taken: either more are asked for than there are, or they are given back. */
static void kernel_of_this_machine_agrees(void **state)
{
	unsigned long long free = pool("free_hugepages") - pool("resv_hugepages");
	struct mrcd_memfd memfd;
	char wanted[64];
	int fd;

	(void)state;
	is_real = true;
	fd = memfd_create("test", MFD_HUGETLB | 21U << 26);
	if (fd < 0 || pool("nr_overcommit_hugepages") > 0)
		skip();
	close(fd);
	memfd = memfd_make((free + 3) * 2 * MIB, 2 * MIB);
	assert_int_equal(memfd.page_bytes, 4096);
	snprintf(wanted, sizeof(wanted), "%llu huge pages of 2048 KiB are needed and ", free + 3);
	assert_non_null(strstr(why, wanted));
	snprintf(wanted, sizeof(wanted), " to at least %llu", pool("nr_hugepages") + 3);
	assert_string_equal(why + strlen(why) - strlen(wanted), wanted);
	memfd_is_sound_and_goes(&memfd);
	if (free == 0)
		return;
	memfd = memfd_make(1, 2 * MIB);
	assert_int_equal(memfd.page_bytes, 2 * MIB);
	assert_string_equal(why, "");
	memfd_is_sound_and_goes(&memfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_is_of_ordinary_pages_unless_wished_otherwise, setup),
		cmocka_unit_test_setup(memory_is_of_huge_pages_of_the_size_wished_and_rounded_up,
				       setup),
		cmocka_unit_test_setup(kernel_without_such_pages_gives_ordinary_ones_and_the_reason,
				       setup),
		cmocka_unit_test_setup(pages_all_taken_give_ordinary_ones_and_how_many_are_needed,
				       setup),
		cmocka_unit_test_setup(kernel_of_this_machine_agrees, setup),
	};

	return cmocka_run_group_tests_name("memfd", tests, NULL, NULL);
}
