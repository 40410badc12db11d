/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_poison - see mrcd_poison.h */
#include "mrcd_poison.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES  4096U
#define WORD_BYTES  8U
#define WHOLE_PAGES 256U /* runs of up to so many pages are filled whole; of others: */
#define HEAD_PAGES  128U
#define TAIL_PAGES  16U
#define STEP_PAGES  16U

struct mrcd_poison {
	uint8_t *addr; /* lent */
	uint64_t page_count;
	uint8_t *is_filled; /* ours; a byte a page */
};

int mrcd_poison_mode_read(const char *text, struct mrcd_poison_mode *mode_out)
{
	struct mrcd_poison_mode mode = {0};

	if (text == NULL) {
		*mode_out = (struct mrcd_poison_mode){.is_on = MRC_DEBUG, .is_fatal = MRC_DEBUG};
		return 0;
	}
	while (*text != 0) {
		size_t len = strcspn(text, ",");

		if (len == 3 && strncmp(text, "off", len) == 0)
			mode = (struct mrcd_poison_mode){0};
		else if (len == 5 && strncmp(text, "count", len) == 0)
			mode.is_on = true;
		else if (len == 5 && strncmp(text, "abort", len) == 0)
			mode.is_on = mode.is_fatal = true;
		else if (len == 4 && strncmp(text, "hold", len) == 0)
			mode.is_on = mode.is_held = true;
		else
			return -EINVAL;
		text += len;
		if (*text == ',')
			text++;
	}
	*mode_out = mode;
	return 0;
}

int mrcd_poison_new(uint8_t *addr, uint64_t len_bytes, struct mrcd_poison **poison_out)
{
	struct mrcd_poison *poison = calloc(1, sizeof(*poison));

	if (poison == NULL)
		return -ENOMEM;
	MRC_ASSERT((uintptr_t)addr % WORD_BYTES == 0);
	MRC_ASSERT(len_bytes % PAGE_BYTES == 0);
	poison->addr = addr;
	poison->page_count = len_bytes / PAGE_BYTES;
	poison->is_filled = calloc(poison->page_count, 1);
	if (poison->is_filled == NULL) {
		free(poison);
		return -ENOMEM;
	}
	*poison_out = poison;
	return 0;
}

void mrcd_poison_free(struct mrcd_poison *poison)
{
	if (poison == NULL)
		return;
	free(poison->is_filled);
	free(poison);
}

/* No two places alike, so that poison copied from elsewhere is no poison; no byte likely to be zero. */
static uint64_t word_of(uint64_t offset)
{
	uint64_t word = (offset / WORD_BYTES + 0x6d7263) * 0x9e3779b97f4a7c15;

	return word ^ word >> 29;
}

uint8_t mrcd_poison_byte(uint64_t offset)
{
	uint64_t word = word_of(offset);
	uint8_t bytes[WORD_BYTES];

	memcpy(bytes, &word, sizeof(bytes));
	return bytes[offset % WORD_BYTES];
}

static bool run_is_inside(const struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes)
{
	uint64_t size = poison->page_count * PAGE_BYTES;

	return offset <= size && len_bytes <= size - offset;
}

void mrcd_poison_fill_bytes(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes)
{
	uint64_t end = offset + len_bytes;

	MRC_ASSERT(run_is_inside(poison, offset, len_bytes));
	for (; offset < end && offset % WORD_BYTES != 0; offset++)
		poison->addr[offset] = mrcd_poison_byte(offset);
	for (; end - offset >= WORD_BYTES; offset += WORD_BYTES) {
		uint64_t word = word_of(offset);

		memcpy(poison->addr + offset, &word, sizeof(word));
	}
	for (; offset < end; offset++)
		poison->addr[offset] = mrcd_poison_byte(offset);
}

bool mrcd_poison_holds_bytes(const struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes,
			     uint64_t *at_out)
{
	uint64_t end = offset + len_bytes;

	MRC_ASSERT(run_is_inside(poison, offset, len_bytes));
	while (offset < end) {
		uint64_t word;

		if (offset % WORD_BYTES == 0 && end - offset >= WORD_BYTES) {
			memcpy(&word, poison->addr + offset, sizeof(word));
			if (word == word_of(offset)) {
				offset += WORD_BYTES;
				continue;
			}
		}
		if (poison->addr[offset] != mrcd_poison_byte(offset)) {
			*at_out = offset;
			return false;
		}
		offset++;
	}
	return true;
}

static bool page_is_chosen(uint64_t index, uint64_t count)
{
	return count <= WHOLE_PAGES || index < HEAD_PAGES || index >= count - TAIL_PAGES ||
	       index % STEP_PAGES == 0;
}

static uint64_t pages_of(uint64_t len_bytes)
{
	return len_bytes == 0 ? 1 : (len_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

void mrcd_poison_fill(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes)
{
	uint64_t count = pages_of(len_bytes);

	MRC_ASSERT(offset % PAGE_BYTES == 0);
	for (uint64_t i = 0; i < count; i++) {
		if (!page_is_chosen(i, count))
			continue;
		mrcd_poison_fill_bytes(poison, offset + i * PAGE_BYTES, PAGE_BYTES);
		poison->is_filled[offset / PAGE_BYTES + i] = true;
	}
}

bool mrcd_poison_take(struct mrcd_poison *poison, uint64_t offset, uint64_t len_bytes,
		      uint64_t *at_out)
{
	uint64_t count = pages_of(len_bytes);
	bool is_intact = true;

	MRC_ASSERT(offset % PAGE_BYTES == 0);
	MRC_ASSERT(run_is_inside(poison, offset, count * PAGE_BYTES));
	for (uint64_t page = offset / PAGE_BYTES; count > 0; page++, count--) {
		uint64_t at;

		if (!poison->is_filled[page])
			continue;
		poison->is_filled[page] = false;
		if (is_intact &&
		    !mrcd_poison_holds_bytes(poison, page * PAGE_BYTES, PAGE_BYTES, &at)) {
			is_intact = false;
			*at_out = at;
		}
	}
	return is_intact;
}
