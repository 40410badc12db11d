/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_keys.h"

#include <stdlib.h>
#include <string.h>

#include "mrcctl_table.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

void mrcctl_show_keys(const json_t *result, FILE *out, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"PEER", MRCCTL_LEFT},   {"KEY", MRCCTL_LEFT},  {"USE", MRCCTL_LEFT},
		{"PATHS", MRCCTL_RIGHT}, {"FILE", MRCCTL_LEFT},
	};
	struct mrcctl_table *table =
		mrcctl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	const json_t *key;
	size_t i;

	if (table == NULL)
		abort();
	json_array_foreach(result, i, key)
	{
		/* Paths that still live by it, when it is no longer in the configuration. */
		bool is_removed = strcmp(text_of(key, "use"), "removed") == 0;
		enum mrcctl_mood mood = is_removed ? MRCCTL_WORRY : MRCCTL_PLAIN;

		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", text_of(key, "peer"));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", text_of(key, "key"));
		mrcctl_table_add(table, mood, "%s", text_of(key, "use"));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%lld/%lld",
				 (long long)json_integer_value(json_object_get(key, "paths")),
				 (long long)json_integer_value(json_object_get(key, "paths_of")));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s", text_of(key, "file"));
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
}
