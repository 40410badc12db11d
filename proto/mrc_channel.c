/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_channel.h"

uint32_t mrc_bits_first(const struct mrc_bits *bits, uint32_t from, uint32_t count)
{
	uint32_t words = (count + 63) / 64;
	uint32_t word = from / 64;
	uint64_t masked = bits->words[word] & ~0ULL << (from % 64);

	for (uint32_t i = 0; i <= words; i++) {
		if (masked)
			return word * 64 + (uint32_t)__builtin_ctzll(masked);
		word = (word + 1) % words;
		masked = bits->words[word];
	}
	return MRC_SLOT_NONE;
}

/* The one number of a window starting at `base` that falls on `slot`. */
static uint64_t number_of(uint64_t base, uint32_t slot, uint32_t window)
{
	return base + ((slot - (uint32_t)base) & (window - 1));
}

uint64_t mrc_channel_out_number(const struct mrc_channel *ch, uint32_t slot)
{
	return number_of(ch->settled, slot, ch->out_window);
}

uint64_t mrc_channel_in_number(const struct mrc_channel *ch, uint32_t slot)
{
	return number_of(ch->peer_settled, slot, ch->in_window);
}
