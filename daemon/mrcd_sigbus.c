/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_sigbus - see mrcd_sigbus.h */
#include "mrcd_sigbus.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANGE_FREE, RANGE_FILLING, RANGE_WATCHED };

struct range {
	uint32_t state;
	uint32_t has_hit;
	uintptr_t addr;
	size_t len_bytes;
	int bell_fd;
};

static struct range ranges[MRCD_SIGBUS_RANGES_MAX];
static uint32_t ranges_end; /* no slot from here on was ever used */

/* Only system calls and atomics in here: it may interrupt anything. */
static bool range_take(uintptr_t at)
{
	uint32_t end = __atomic_load_n(&ranges_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++) {
		struct range *range = &ranges[i];
		uint64_t one = 1;

		/* Pairs with the release store in mrcd_sigbus_watch(). */
		if (__atomic_load_n(&range->state, __ATOMIC_ACQUIRE) != RANGE_WATCHED ||
		    at < range->addr || at - range->addr >= range->len_bytes)
			continue;
		/* The whole range: part of a huge page cannot be replaced. */
		if (mmap((void *)range->addr, range->len_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			 0) == MAP_FAILED)
			return false;
		__atomic_store_n(&range->has_hit, 1, __ATOMIC_RELEASE);
		if (range->bell_fd >= 0 && write(range->bell_fd, &one, sizeof(one)) < 0)
			(void)errno; /* full: it is ringing already */
		return true;
	}
	return false;
}

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
	int errno_saved = errno;

	if (!range_take((uintptr_t)info->si_addr))
		signal(signal_number, SIG_DFL); /* not ours to mend: fault again, without us */
	errno = errno_saved;
}

bool mrcd_sigbus_report(const void *addr)
{
	int errno_saved = errno;
	bool is_watched = range_take((uintptr_t)addr);

	errno = errno_saved;
	return is_watched;
}

int mrcd_sigbus_install(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int mrcd_sigbus_watch(void *addr, size_t len_bytes, int bell_fd, uint32_t *slot_out)
{
	for (uint32_t i = 0; i < MRCD_SIGBUS_RANGES_MAX; i++) {
		struct range *range = &ranges[i];
		uint32_t state = RANGE_FREE;
		uint32_t end = __atomic_load_n(&ranges_end, __ATOMIC_RELAXED);

		if (!__atomic_compare_exchange_n(&range->state, &state, RANGE_FILLING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		range->addr = (uintptr_t)addr;
		range->len_bytes = len_bytes;
		range->bell_fd = bell_fd;
		__atomic_store_n(&range->has_hit, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&range->state, RANGE_WATCHED, __ATOMIC_RELEASE);
		while (end < i + 1 &&
		       !__atomic_compare_exchange_n(&ranges_end, &end, i + 1, false,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		*slot_out = i;
		return 0;
	}
	return -ENOSPC;
}

void mrcd_sigbus_unwatch(uint32_t slot)
{
	MRC_ASSERT(slot < MRCD_SIGBUS_RANGES_MAX);
	MRC_ASSERT(__atomic_load_n(&ranges[slot].state, __ATOMIC_RELAXED) == RANGE_WATCHED);
	__atomic_store_n(&ranges[slot].state, RANGE_FREE, __ATOMIC_RELEASE);
}

bool mrcd_sigbus_has_hit(uint32_t slot)
{
	MRC_ASSERT(slot < MRCD_SIGBUS_RANGES_MAX);
	return __atomic_load_n(&ranges[slot].has_hit, __ATOMIC_ACQUIRE) != 0;
}
