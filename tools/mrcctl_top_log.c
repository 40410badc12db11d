/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_top_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mrcctl_field.h"

void mrcctl_top_log_add(struct mrcctl_top_log *log, time_t at, enum mrcctl_mood mood,
			const char *format, ...)
{
	struct mrcctl_top_log_line *line = &log->lines[log->count++ & (MRCCTL_TOP_LOG_LINES - 1)];
	va_list args;

	line->at = at;
	line->mood = mood;
	va_start(args, format);
	vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
}

size_t mrcctl_top_log_kept(const struct mrcctl_top_log *log)
{
	return log->count < MRCCTL_TOP_LOG_LINES ? log->count : MRCCTL_TOP_LOG_LINES;
}

const struct mrcctl_top_log_line *mrcctl_top_log_line(const struct mrcctl_top_log *log, size_t age)
{
	return &log->lines[(log->count - 1 - age) & (MRCCTL_TOP_LOG_LINES - 1)];
}

static bool mrcctl_turned(const json_t *before, const json_t *after, const char *key)
{
	return mrcctl_flag(before, key) != mrcctl_flag(after, key);
}

static void mrcctl_compare_rails(struct mrcctl_top_log *log, const json_t *before,
				 const json_t *after, time_t at)
{
	size_t i, hint = 0;
	const json_t *rail;

	json_array_foreach(after, i, rail)
	{
		const json_t *was = mrcctl_rail_same(before, rail, &hint);
		const char *name = mrcctl_text(rail, "name");
		bool has_carrier = mrcctl_flag(rail, "carrier");
		bool is_drained = mrcctl_flag(rail, "drained");

		if (was == NULL)
			continue;
		if (mrcctl_turned(was, rail, "carrier"))
			mrcctl_top_log_add(log, at, has_carrier ? MRCCTL_WELL : MRCCTL_BAD,
					   "rail %s: carrier %s", name,
					   has_carrier ? "is back" : "lost");
		else if (mrcctl_grown(was, rail, "carrier_losses") > 0)
			mrcctl_top_log_add(log, at, MRCCTL_WORRY,
					   "rail %s: carrier lost in between", name);
		if (mrcctl_turned(was, rail, "drained"))
			mrcctl_top_log_add(log, at, MRCCTL_WORRY, "rail %s: %s by the operator",
					   name, is_drained ? "drained" : "given back");
	}
}

static void mrcctl_compare_peers(struct mrcctl_top_log *log, const json_t *before,
				 const json_t *after, time_t at)
{
	size_t i, hint = 0;
	const json_t *peer;

	json_array_foreach(after, i, peer)
	{
		const json_t *was = mrcctl_peer_same(before, peer, &hint);
		const char *name = mrcctl_text(peer, "name"), *state = mrcctl_text(peer, "state");

		if (was == NULL)
			continue;
		if (mrcctl_grown(was, peer, "resets") > 0)
			mrcctl_top_log_add(log, at, MRCCTL_BAD,
					   "peer %s: its daemon came back without the connection",
					   name);
		if (strcmp(state, mrcctl_text(was, "state")) != 0)
			mrcctl_top_log_add(log, at,
					   strcmp(state, "connected") == 0 ? MRCCTL_WELL
									   : MRCCTL_BAD,
					   "peer %s: %s, was %s", name, state,
					   mrcctl_text(was, "state"));
	}
}

static void mrcctl_compare_path(struct mrcctl_top_log *log, const json_t *was, const json_t *path,
				time_t at)
{
	const char *rail = mrcctl_text(path, "rail"), *peer = mrcctl_text(path, "peer");
	const char *state = mrcctl_text(path, "state"), *state_was = mrcctl_text(was, "state");
	uint64_t failures = mrcctl_grown(was, path, "bad_count");
	bool is_good = strcasecmp(state, "good") == 0;

	if (strcmp(state, state_was) != 0)
		mrcctl_top_log_add(log, at, is_good ? MRCCTL_WELL : MRCCTL_BAD,
				   "%s to %s: %s, was %s%s%s%s", rail, peer, state, state_was,
				   failures > 0 ? " (" : "",
				   failures > 0 ? mrcctl_text(path, "reason") : "",
				   failures > 0 ? ")" : "");
	else if (failures > 0)
		mrcctl_top_log_add(log, at, MRCCTL_WORRY, "%s to %s: left service in between (%s)",
				   rail, peer, mrcctl_text(path, "reason"));
	if (mrcctl_turned(was, path, "degraded"))
		mrcctl_top_log_add(log, at,
				   mrcctl_flag(path, "degraded") ? MRCCTL_WORRY : MRCCTL_WELL,
				   "%s to %s: %s", rail, peer,
				   mrcctl_flag(path, "degraded") ? "degraded"
								 : "no longer degraded");
}

static void mrcctl_compare_paths(struct mrcctl_top_log *log, const json_t *before,
				 const json_t *after, time_t at)
{
	size_t i, hint = 0;
	const json_t *path;

	json_array_foreach(after, i, path)
	{
		const json_t *was = mrcctl_path_same(before, path, &hint);

		if (was != NULL)
			mrcctl_compare_path(log, was, path, at);
	}
}

void mrcctl_top_log_compare(struct mrcctl_top_log *log, const struct mrcctl_snapshot *before,
			    const struct mrcctl_snapshot *after, time_t at)
{
	if (before->status == NULL)
		return;
	if (!mrcctl_snapshot_follows(before, after)) {
		mrcctl_top_log_add(log, at, MRCCTL_BAD,
				   "the daemon was started again, process %" PRIu64,
				   mrcctl_number(after->status, "pid"));
		return;
	}
	mrcctl_compare_rails(log, before->rails, after->rails, at);
	mrcctl_compare_peers(log, before->peers, after->peers, at);
	mrcctl_compare_paths(log, before->paths, after->paths, at);
}
