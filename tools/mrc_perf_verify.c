/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_verify.h"

#include <string.h>

void perf_verify_init(struct perf_verify *verify, bool is_unordered)
{
	memset(verify, 0, sizeof(*verify));
	verify->is_unordered = is_unordered;
}

static uint64_t *verify_word(struct perf_verify *verify, uint64_t number)
{
	return &verify->seen[(number % PERF_VERIFY_WINDOW) / 64];
}

/* Move the window so that it ends with `number`; the numbers passed over have not been seen. */
static void verify_advance(struct perf_verify *verify, uint64_t number)
{
	if (number - verify->number_next >= PERF_VERIFY_WINDOW) {
		memset(verify->seen, 0, sizeof(verify->seen));
		return;
	}
	for (uint64_t n = verify->number_next; n < number; n++)
		*verify_word(verify, n) &= ~(1ULL << (n % 64));
}

enum perf_verdict perf_verify_number(struct perf_verify *verify, uint64_t number, bool is_intact)
{
	uint64_t bit = 1ULL << (number % 64);
	enum perf_verdict verdict;

	verify->checked++;
	if (!is_intact)
		verify->corrupted++;
	if (number >= verify->number_next) {
		verdict = number == verify->number_next ? PERF_VERDICT_NEXT : PERF_VERDICT_AHEAD;
		verify->skipped += number - verify->number_next;
		verify_advance(verify, number);
		*verify_word(verify, number) |= bit;
		verify->number_next = number + 1;
		return verdict;
	}
	if (verify->number_next - number > PERF_VERIFY_WINDOW ||
	    (*verify_word(verify, number) & bit)) {
		verify->duplicated++;
		return PERF_VERDICT_DUPLICATE;
	}
	*verify_word(verify, number) |= bit;
	verify->skipped--;
	if (!verify->is_unordered)
		verify->reordered++;
	return PERF_VERDICT_LATE;
}

enum perf_verdict perf_verify_unnumbered(struct perf_verify *verify, bool is_by_size,
					 bool is_intact)
{
	if (is_by_size)
		return perf_verify_number(verify, verify->number_next, is_intact);
	verify->checked++;
	verify->corrupted++;
	verify->unplaced++;
	return PERF_VERDICT_NEXT;
}

uint64_t perf_verify_lost(uint64_t number_next, uint64_t skipped, uint64_t unplaced,
			  uint64_t expected, uint64_t unsure)
{
	uint64_t missing = skipped + (expected > number_next ? expected - number_next : 0);
	uint64_t excused = unplaced + unsure;

	return missing > excused ? missing - excused : 0;
}

void perf_counts_add(struct perf_counts *sum, const struct perf_counts *part)
{
	sum->checked += part->checked;
	sum->unchecked += part->unchecked;
	sum->lost += part->lost;
	sum->duplicated += part->duplicated;
	sum->reordered += part->reordered;
	sum->corrupted += part->corrupted;
}

bool perf_counts_are_clean(const struct perf_counts *counts)
{
	return counts->lost == 0 && counts->duplicated == 0 && counts->reordered == 0 &&
	       counts->corrupted == 0;
}
