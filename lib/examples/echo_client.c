/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo_client - send a text to an echo service and print what comes back
 *
 *	mrc_echo_client HOST[/SERVICE] TEXT...        default service: echo
 *
 * With blocking calls: one thing after the other.
 */
#include <stdio.h>
#include <string.h>

#include <mrc/client.h>

#define SECOND_NS 1000000000LL

static int echo(struct mrc_client *client, struct mrc_channel *channel, const char *text)
{
	size_t len = strlen(text);
	struct mrc_event sent = {0};
	struct mrc_msg *msg;
	void *buf;
	int r;

	r = mrc_buf_alloc(client, len, &buf);
	if (r == 0) {
		memcpy(buf, text, len);
		r = mrc_send_wait(channel, buf, len, MRC_LEVEL_COMMITTED, 10 * SECOND_NS, &sent);
	}
	if (r < 0) {
		fprintf(stderr, "send: %s\n", mrc_error_text(r));
		return 1; /* after a time-out the buffer is still the daemon's: keep it */
	}
	mrc_buf_free(client, buf);
	if (sent.status != MRC_STATUS_OK) {
		fprintf(stderr, "send: %s (got as far as: %s)\n", mrc_status_text(sent.status),
			mrc_level_name(sent.level));
		return 1;
	}
	r = mrc_recv(channel, 10 * SECOND_NS, &msg);
	if (r < 0) {
		fprintf(stderr, "receive: %s\n", mrc_error_text(r));
		return 1;
	}
	printf("%.*s\n", (int)mrc_msg_len_bytes(msg), (const char *)mrc_msg_data(msg));
	mrc_msg_release(msg);
	return 0;
}

int main(int argc, char **argv)
{
	struct mrc_channel *channel;
	struct mrc_client *client;
	char target[140];
	int failures = 0;
	int status;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: %s HOST[/SERVICE] TEXT...\n", argv[0]);
		return 2;
	}
	snprintf(target, sizeof(target), "%s%s", argv[1], strchr(argv[1], '/') ? "" : "/echo");
	r = mrc_attach(NULL, &client);
	if (r < 0) {
		fprintf(stderr, "attach: %s\n", mrc_last_error(NULL));
		return 1;
	}
	r = mrc_connect(client, target, 0, 10 * SECOND_NS, &channel, &status);
	if (r < 0 || status != MRC_STATUS_OK) {
		fprintf(stderr, "connect to %s: %s\n", target,
			r < 0 ? mrc_error_text(r) : mrc_status_text(status));
		mrc_detach(client);
		return 1;
	}
	for (int i = 2; i < argc; i++)
		failures += echo(client, channel, argv[i]);
	if (mrc_close_wait(channel, 10 * SECOND_NS, NULL) < 0)
		mrc_channel_free(channel);
	mrc_detach(client);
	return failures ? 1 : 0;
}
