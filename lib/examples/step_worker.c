/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * step_worker - send shards to a step server and say what became of them
 *
 *	mrc_step_worker HOST[/SERVICE]        default service: step
 *
 * Each line of the standard input is a shard: numbers, with blanks between. A
 * shard counts when it is COMMITTED, which it is together with all others of
 * its step or not at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mrc/client.h>

#define VALUES_MAX 4096

static size_t shard_read(char *line, double *values)
{
	size_t count = 0;

	for (char *word = strtok(line, " \t\n"); word && count < VALUES_MAX;
	     word = strtok(NULL, " \t\n"))
		values[count++] = strtod(word, NULL);
	return count;
}

/* The text is another program's: what could steer a terminal is left out. */
static void rejection_print(const struct mrc_event *sent)
{
	printf("rejected: code %u: ", sent->code);
	for (const char *at = sent->text; *at; at++)
		putchar(*at >= ' ' && *at < 0x7f ? *at : '?');
	putchar('\n');
}

static void answer_print(const struct mrc_event *sent)
{
	if (sent->status == MRC_STATUS_OK)
		printf("committed\n");
	else if (sent->status != MRC_STATUS_REJECTED)
		printf("%s\n", mrc_status_text(sent->status));
	else if (sent->code == MRC_CODE_BATCH)
		printf("rejected: the step could not be taken whole\n");
	else
		rejection_print(sent);
	fflush(stdout);
}

static int shards_send(struct mrc_client *client, struct mrc_channel *channel)
{
	char line[65536];
	double *values;
	int r = mrc_buf_alloc(client, VALUES_MAX * sizeof(*values), (void **)&values);

	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		size_t count = shard_read(line, values);
		struct mrc_event sent;

		r = mrc_send_wait(channel, values, count * sizeof(*values), MRC_LEVEL_COMMITTED,
				  MRC_WAIT_FOREVER, &sent);
		if (r == 0)
			answer_print(&sent);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct mrc_channel *channel;
	struct mrc_client *client;
	char target[140];
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: %s HOST[/SERVICE] <SHARDS\n", argv[0]);
		return 2;
	}
	snprintf(target, sizeof(target), "%s%s", argv[1], strchr(argv[1], '/') ? "" : "/step");
	r = mrc_attach(NULL, &client);
	if (r < 0) {
		fprintf(stderr, "attach: %s\n", mrc_last_error(NULL));
		return 1;
	}
	r = mrc_connect(client, target, 0, MRC_WAIT_FOREVER, &channel, NULL);
	if (r == 0)
		r = shards_send(client, channel);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", target, mrc_error_text(r));
	mrc_detach(client);
	return r < 0;
}
