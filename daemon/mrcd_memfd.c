/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_memfd - see mrcd_memfd.h */
#include "mrcd_memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif

#define PAGE_BYTES 4096U

static uint64_t pages_of(uint64_t len_bytes, uint64_t page_bytes)
{
	return (len_bytes + page_bytes - 1) / page_bytes;
}

static int memfd_open(const char *name, unsigned int flags)
{
	int fd;

	flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* a kernel older than MFD_NOEXEC_SEAL (6.3) */
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

/* Size, seal and map what memfd_open() answered; closes it on failure. */
static int memfd_map(int fd, uint64_t len_bytes, uint64_t page_bytes, struct mrcd_memfd *memfd_out)
{
	void *addr;
	int r;

	len_bytes = pages_of(len_bytes, page_bytes) * page_bytes;
	/* With the default mode a client could reopen a read-only descriptor for writing. */
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)len_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto err;
	addr = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED)
		goto err;
	*memfd_out = (struct mrcd_memfd){
		.fd = fd,
		.addr = addr,
		.len_bytes = len_bytes,
		.page_bytes = page_bytes,
	};
	return 0;
err:
	r = -errno;
	close(fd);
	return r;
}

/* What the kernel counts of its huge pages of this size; 0 when it does not say. */
static uint64_t pool_read(uint64_t page_bytes, const char *counter)
{
	char path[128];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/%s",
		 page_bytes / 1024, counter);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* The size that vm.nr_hugepages counts; 0: there is none. */
static uint64_t page_bytes_preferred(void)
{
	int fd = memfd_open("mrcd-size", MFD_HUGETLB);
	struct stat st;
	int r;

	if (fd < 0)
		return 0;
	r = fstat(fd, &st);
	close(fd);
	return r < 0 ? 0 : (uint64_t)st.st_blksize;
}

/* Huge pages could not be had: say how many there would have to be, and where that is set. */
static void why_not(uint64_t wanted, uint64_t page_bytes, int error,
		    char why[MRCD_MEMFD_TEXT_BYTES])
{
	uint64_t total = pool_read(page_bytes, "nr_hugepages");
	uint64_t free = pool_read(page_bytes, "free_hugepages");
	uint64_t promised = pool_read(page_bytes, "resv_hugepages");
	uint64_t usable = free > promised ? free - promised : 0;
	char where[96] = "vm.nr_hugepages";

	if (error != -ENOMEM) {
		snprintf(why, MRCD_MEMFD_TEXT_BYTES, "huge pages of %" PRIu64 " KiB: %s",
			 page_bytes / 1024, strerror(-error));
		return;
	}
	if (page_bytes != page_bytes_preferred())
		snprintf(where, sizeof(where),
			 "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/nr_hugepages",
			 page_bytes / 1024);
	/* With enough in the pool it is a control group that holds back. */
	if (usable >= wanted)
		snprintf(why, MRCD_MEMFD_TEXT_BYTES,
			 "%" PRIu64 " huge pages of %" PRIu64 " KiB are free but may not be used: "
			 "see the hugetlb limit of the daemon's control group",
			 usable, page_bytes / 1024);
	else
		snprintf(why, MRCD_MEMFD_TEXT_BYTES,
			 "%" PRIu64 " huge pages of %" PRIu64 " KiB are needed and %" PRIu64
			 " are free: set %s to at least %" PRIu64,
			 wanted, page_bytes / 1024, usable, where, total + wanted - usable);
}

/* 0, or a negative errno with `why`. */
static int huge_new(const char *name, uint64_t len_bytes, uint64_t page_bytes, uint64_t also_bytes,
		    struct mrcd_memfd *memfd_out, char why[MRCD_MEMFD_TEXT_BYTES])
{
	unsigned int log2;
	int r;

	if (page_bytes == MRCD_HUGE_PAGES_ANY) {
		page_bytes = page_bytes_preferred();
		if (page_bytes == 0) {
			snprintf(why, MRCD_MEMFD_TEXT_BYTES, "this kernel has no huge pages");
			return -ENODEV;
		}
	}
	log2 = (unsigned int)__builtin_ctzll(page_bytes);
	r = memfd_open(name, MFD_HUGETLB | log2 << MFD_HUGE_SHIFT);
	if (r == -ENODEV || r == -EINVAL) {
		snprintf(why, MRCD_MEMFD_TEXT_BYTES,
			 "this kernel has no huge pages of %" PRIu64
			 " KiB: see /sys/kernel/mm/hugepages",
			 page_bytes / 1024);
		return r;
	}
	if (r >= 0)
		r = memfd_map(r, len_bytes, page_bytes, memfd_out);
	if (r < 0)
		why_not(pages_of(len_bytes, page_bytes) + pages_of(also_bytes, page_bytes),
			page_bytes, r, why);
	return r;
}

int mrcd_memfd_new(const char *name, uint64_t len_bytes, uint64_t huge_page_bytes,
		   uint64_t also_bytes, struct mrcd_memfd *memfd_out,
		   char why[MRCD_MEMFD_TEXT_BYTES])
{
	int fd;

	why[0] = 0;
	if (huge_page_bytes != 0 &&
	    huge_new(name, len_bytes, huge_page_bytes, also_bytes, memfd_out, why) == 0)
		return 0;
	fd = memfd_open(name, 0);
	return fd < 0 ? fd : memfd_map(fd, len_bytes, PAGE_BYTES, memfd_out);
}
