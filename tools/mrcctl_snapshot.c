/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_snapshot.h"

#include <errno.h>
#include <string.h>

#include "mrcctl_field.h"

#define MRCCTL_S_NS 1000000000U

/* The parts in the order in which they are asked for. */
static const struct mrcctl_snapshot_part {
	const char *command;
	size_t offset;
	json_type type;
} mrcctl_snapshot_parts[] = {
	{"status", offsetof(struct mrcctl_snapshot, status), JSON_OBJECT},
	{"rails", offsetof(struct mrcctl_snapshot, rails), JSON_ARRAY},
	{"peers", offsetof(struct mrcctl_snapshot, peers), JSON_ARRAY},
	{"paths", offsetof(struct mrcctl_snapshot, paths), JSON_ARRAY},
	{"channels", offsetof(struct mrcctl_snapshot, channels), JSON_ARRAY},
};
#define MRCCTL_PART_COUNT (sizeof(mrcctl_snapshot_parts) / sizeof(mrcctl_snapshot_parts[0]))

static json_t **mrcctl_snapshot_slot(struct mrcctl_snapshot *snapshot, size_t part)
{
	return (json_t **)((char *)snapshot + mrcctl_snapshot_parts[part].offset);
}

json_t *mrcctl_snapshot_question(void)
{
	json_t *commands = json_array();

	for (size_t i = 0; i < MRCCTL_PART_COUNT; i++) {
		if (json_array_append_new(commands, json_string(mrcctl_snapshot_parts[i].command)) <
		    0) {
			json_decref(commands);
			return NULL;
		}
	}
	return json_pack("{s:s s:o}", "command", "several", "commands", commands);
}

int mrcctl_snapshot_take(const json_t *result, struct mrcctl_snapshot *snapshot_out)
{
	struct mrcctl_snapshot snapshot = {0};

	for (size_t i = 0; i < MRCCTL_PART_COUNT; i++) {
		const json_t *answer = json_array_get(result, i);
		json_t *part = json_object_get(answer, "result");

		if (part == NULL || json_typeof(part) != mrcctl_snapshot_parts[i].type) {
			mrcctl_snapshot_fini(&snapshot);
			return -EBADMSG;
		}
		*mrcctl_snapshot_slot(&snapshot, i) = json_incref(part);
	}
	*snapshot_out = snapshot;
	return 0;
}

void mrcctl_snapshot_fini(struct mrcctl_snapshot *snapshot)
{
	for (size_t i = 0; i < MRCCTL_PART_COUNT; i++)
		json_decref(*mrcctl_snapshot_slot(snapshot, i));
	memset(snapshot, 0, sizeof(*snapshot));
}

json_t *mrcctl_snapshot_json(const struct mrcctl_snapshot *snapshot)
{
	return json_pack("{s:O s:O s:O s:O s:O}", "status", snapshot->status, "rails",
			 snapshot->rails, "peers", snapshot->peers, "paths", snapshot->paths,
			 "channels", snapshot->channels);
}

bool mrcctl_snapshot_follows(const struct mrcctl_snapshot *before,
			     const struct mrcctl_snapshot *after)
{
	return before->status != NULL &&
	       strcmp(mrcctl_text(before->status, "boot_id"),
		      mrcctl_text(after->status, "boot_id")) == 0 &&
	       mrcctl_number(before->status, "pid") == mrcctl_number(after->status, "pid") &&
	       mrcctl_number(before->status, "uptime_ns") <=
		       mrcctl_number(after->status, "uptime_ns");
}

uint64_t mrcctl_snapshot_elapsed_ns(const struct mrcctl_snapshot *before,
				    const struct mrcctl_snapshot *after)
{
	if (!mrcctl_snapshot_follows(before, after))
		return 0;
	return mrcctl_number(after->status, "uptime_ns") -
	       mrcctl_number(before->status, "uptime_ns");
}

static bool mrcctl_is_same_text(const json_t *a, const json_t *b, const char *key)
{
	return strcmp(mrcctl_text(a, key), mrcctl_text(b, key)) == 0;
}

static bool mrcctl_is_same_name(const json_t *a, const json_t *b)
{
	return mrcctl_is_same_text(a, b, "name");
}

static bool mrcctl_is_same_path(const json_t *a, const json_t *b)
{
	return mrcctl_number(a, "index") == mrcctl_number(b, "index") &&
	       mrcctl_is_same_text(a, b, "peer");
}

/* A number is never used twice while a connection lives; each end has its own. */
static bool mrcctl_is_same_channel(const json_t *a, const json_t *b)
{
	return mrcctl_number(a, "id") == mrcctl_number(b, "id") &&
	       mrcctl_flag(a, "opener") == mrcctl_flag(b, "opener") &&
	       mrcctl_is_same_text(a, b, "peer") && mrcctl_is_same_text(a, b, "service");
}

static const json_t *mrcctl_row_same(const json_t *rows, const json_t *row, size_t *hint,
				     bool (*is_same)(const json_t *, const json_t *))
{
	size_t count = json_array_size(rows);

	for (size_t i = 0; i < count; i++) {
		size_t at = (*hint + i) % count;
		const json_t *candidate = json_array_get(rows, at);

		if (is_same(candidate, row)) {
			*hint = at + 1;
			return candidate;
		}
	}
	return NULL;
}

const json_t *mrcctl_rail_same(const json_t *rows, const json_t *row, size_t *hint)
{
	return mrcctl_row_same(rows, row, hint, mrcctl_is_same_name);
}

const json_t *mrcctl_peer_same(const json_t *rows, const json_t *row, size_t *hint)
{
	return mrcctl_row_same(rows, row, hint, mrcctl_is_same_name);
}

const json_t *mrcctl_path_same(const json_t *rows, const json_t *row, size_t *hint)
{
	return mrcctl_row_same(rows, row, hint, mrcctl_is_same_path);
}

const json_t *mrcctl_channel_same(const json_t *rows, const json_t *row, size_t *hint)
{
	return mrcctl_row_same(rows, row, hint, mrcctl_is_same_channel);
}

uint64_t mrcctl_grown(const json_t *before, const json_t *after, const char *key)
{
	uint64_t was = mrcctl_number(before, key), is = mrcctl_number(after, key);

	return before != NULL && is > was ? is - was : 0;
}

uint64_t mrcctl_per_second(uint64_t grown, uint64_t elapsed_ns)
{
	if (elapsed_ns == 0)
		return 0;
	return (uint64_t)((unsigned __int128)grown * MRCCTL_S_NS / elapsed_ns);
}
