/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_about.h"

#include <string.h>

static bool is_printable(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f;
}

static void text_put(const char *text, struct mrc_cursor *c)
{
	uint8_t len = 0;

	while (len < MRC_ABOUT_TEXT_MAX && text[len])
		len++;
	mrc_put_u8(c, len);
	for (uint8_t i = 0; i < len; i++)
		mrc_put_u8(c, is_printable((uint8_t)text[i]) ? (uint8_t)text[i] : '?');
}

/* Ended by a 0. False: longer than there is room for, cut short, or with bytes that a terminal would obey. */
static bool text_take(struct mrc_cursor *c, char text[MRC_ABOUT_TEXT_MAX + 1])
{
	uint8_t len = mrc_get_u8(c);

	if (len > MRC_ABOUT_TEXT_MAX)
		return false;
	mrc_get_bytes(c, text, len);
	text[len] = 0;
	for (uint8_t i = 0; i < len; i++) {
		if (!is_printable((uint8_t)text[i]))
			return false;
	}
	return c->ok;
}

void mrc_about_put(const struct mrc_about *about, struct mrc_cursor *c)
{
	mrc_put_u32(c, about->mtu);
	mrc_put_u64(c, about->speed_bits_per_s);
	mrc_put_u64(c, (uint64_t)about->wall_ns);
	mrc_put_bytes(c, about->mac, sizeof(about->mac));
	mrc_put_u8(c, about->kind);
	mrc_put_u8(c, 0);
	text_put(about->rail, c);
	text_put(about->version, c);
	text_put(about->kernel, c);
	text_put(about->rdma_core, c);
	text_put(about->driver, c);
	text_put(about->firmware, c);
}

int mrc_about_take(struct mrc_cursor *c, struct mrc_about *about_out)
{
	uint8_t reserved;

	memset(about_out, 0, sizeof(*about_out));
	about_out->mtu = mrc_get_u32(c);
	about_out->speed_bits_per_s = mrc_get_u64(c);
	about_out->wall_ns = (int64_t)mrc_get_u64(c);
	mrc_get_bytes(c, about_out->mac, sizeof(about_out->mac));
	about_out->kind = mrc_get_u8(c);
	reserved = mrc_get_u8(c);
	if (!c->ok || reserved || about_out->kind >= MRC_ABOUT_KIND_COUNT ||
	    !text_take(c, about_out->rail) || !text_take(c, about_out->version) ||
	    !text_take(c, about_out->kernel) || !text_take(c, about_out->rdma_core) ||
	    !text_take(c, about_out->driver) || !text_take(c, about_out->firmware) ||
	    c->at != c->end)
		return -EPROTO;
	return 0;
}

const char *mrc_about_kind_name(uint8_t kind)
{
	static const char *const names[MRC_ABOUT_KIND_COUNT] = {
		[MRC_ABOUT_TCP] = "tcp",
		[MRC_ABOUT_ROCE] = "RoCE",
		[MRC_ABOUT_INFINIBAND] = "InfiniBand",
		[MRC_ABOUT_IWARP] = "iWARP",
	};

	return kind < MRC_ABOUT_KIND_COUNT ? names[kind] : "?";
}
