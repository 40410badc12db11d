/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of sends whose deadline passed: kept for each channel, the latest of them. */
#include "mrc_client.h"

#include <errno.h>

static struct mrc_outcome *outcome_find(const struct mrc_channel *channel, uint64_t number)
{
	uint32_t kept = channel->client->outcomes_kept;
	uint64_t count = channel->outcomes_count < kept ? channel->outcomes_count : kept;

	for (uint64_t i = 1; i <= count; i++) {
		struct mrc_outcome *outcome =
			&channel->outcomes[(channel->outcomes_count - i) % kept];

		if (outcome->number == number)
			return outcome;
	}
	return NULL;
}

void mrc_outcome_add(struct mrc_channel *channel, const struct mrc_send_op *op)
{
	uint32_t kept = channel->client->outcomes_kept;

	channel->outcomes[channel->outcomes_count++ % kept] = (struct mrc_outcome){
		.number = op->number,
		.level = op->level,
		.status = op->status,
		.code = op->code,
		.is_decided = !op->is_undecided,
	};
}

void mrc_outcome_decide(struct mrc_channel *channel, uint64_t number, int status,
			enum mrc_level level, uint32_t code, const char *text)
{
	struct mrc_outcome *outcome = outcome_find(channel, number);

	if (!outcome)
		return; /* newer ones took its place */
	outcome->status = status;
	outcome->level = level;
	outcome->code = code;
	outcome->is_decided = true;
	if (text)
		mrc_text_copy(outcome->text, text);
}

MRC_API int mrc_send_query(struct mrc_channel *channel, uint64_t number, int64_t timeout_ns,
			   struct mrc_event *event_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_client *client = channel->client;
	const struct mrc_outcome *outcome;
	int r = 0;

	while ((outcome = outcome_find(channel, number)) != NULL && !outcome->is_decided && r == 0)
		r = mrc_client_await(client, deadline_ns);
	if (!outcome)
		r = -ENOENT;
	else if (outcome->is_decided)
		r = 0;
	if (outcome && event_out) {
		*event_out = (struct mrc_event){
			.type = MRC_EVENT_SENT,
			.status = outcome->status,
			.level = outcome->level,
			.code = outcome->code,
			.number = number,
			.channel = channel,
		};
		mrc_text_copy(event_out->text, outcome->text);
	}
	mrc_client_settle(client);
	return r;
}
