/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drain_show.h"

#include <stdlib.h>

#include "mrcctl_field.h"
#include "mrcctl_table.h"
#include "mrcctl_unit.h"

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

const char *mrcctl_drain_text(const json_t *drain, char text[MRCCTL_DRAIN_TEXT_BYTES])
{
	uint64_t channels = mrcctl_number(drain, "channels");
	uint64_t messages = mrcctl_number(drain, "messages");
	uint64_t programs = mrcctl_number(drain, "programs");
	char counts[3][MRCCTL_UNIT_BYTES + 8], bytes[MRCCTL_UNIT_BYTES];

	snprintf(text, MRCCTL_DRAIN_TEXT_BYTES,
		 "%s channel%s open, %s message%s (%s) in flight, %s program%s attached",
		 mrcctl_unit_count(channels, counts[0]), plural(channels),
		 mrcctl_unit_count(messages, counts[1]), plural(messages),
		 mrcctl_unit_bytes(mrcctl_number(drain, "bytes"), bytes),
		 mrcctl_unit_count(programs, counts[2]), plural(programs));
	return text;
}

void mrcctl_show_left(const json_t *channels, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PROGRAM", MRCCTL_LEFT}, {"PID", MRCCTL_RIGHT},  {"SERVICE", MRCCTL_LEFT},
		{"PEER", MRCCTL_LEFT},    {"STATE", MRCCTL_LEFT}, {"UNANSWERED", MRCCTL_RIGHT},
	};
	struct mrcctl_table *table =
		mrcctl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	const json_t *channel;
	size_t i;

	if (table == NULL)
		abort();
	json_array_foreach(channels, i, channel)
	{
		uint64_t sent = mrcctl_number(channel, "sent");
		uint64_t settled = mrcctl_number(channel, "settled");
		char count[MRCCTL_UNIT_BYTES + 8];
		/* One whose program has ended, and of which the peer has not heard. */
		bool has_program = json_object_get(channel, "pid") != NULL;

		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 has_program ? mrcctl_text(channel, "client") : "(ended)");
		if (has_program)
			mrcctl_table_add(table, MRCCTL_PLAIN, "%llu",
					 (unsigned long long)mrcctl_number(channel, "pid"));
		else
			mrcctl_table_add(table, MRCCTL_PLAIN, "-");
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrcctl_text(channel, "service"));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrcctl_text(channel, "peer"));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", mrcctl_text(channel, "state"));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 mrcctl_unit_count(sent > settled ? sent - settled : 0, count));
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}
