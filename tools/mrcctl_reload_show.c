/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_reload.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

static const char *plural(long long count)
{
	return count == 1 ? "" : "s";
}

void mrcctl_reload_show(const json_t *result, FILE *out)
{
	const json_t *changes = json_object_get(result, "changes"), *item;
	const json_t *same = json_object_get(result, "unchanged");
	long long rails = number_of(same, "rails"), peers = number_of(same, "peers");
	bool is_check = json_is_true(json_object_get(result, "check"));
	size_t i;

	fprintf(out, "%s: %s%s\n", text_of(result, "file"),
		is_check ? "right; nothing was changed" : "read again",
		json_array_size(changes) == 0
			? is_check ? ", and nothing would be" : "; nothing is different"
		: is_check ? ", a reload would do this:"
			   : "");
	json_array_foreach(changes, i, item)
	{
		const char *name = text_of(item, "name"), *detail = text_of(item, "detail");

		fprintf(out, "  %-19s %s%s%s%s%s%s\n", text_of(item, "action"),
			text_of(item, "what"), name[0] != '\0' ? " " : "", name,
			detail[0] != '\0' ? " (" : "", detail, detail[0] != '\0' ? ")" : "");
	}
	fprintf(out, "  %-19s %lld rail%s, %lld peer%s\n", "unchanged", rails, plural(rails), peers,
		plural(peers));
	json_array_foreach(json_object_get(result, "pending"), i, item)
		fprintf(out, "  %-19s %s\n", is_check ? "not done before" : "not done yet",
			json_string_value(item));
}
