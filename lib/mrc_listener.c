/* SPDX-License-Identifier: BSD-2-Clause */
/* Services this client offers, and taking what comes in for them. */
#include "mrc_client.h"

#include <errno.h>
#include <string.h>

bool mrc_name_is_good(const char *name, size_t len)
{
	if (len == 0 || len > MRC_NAME_LEN_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == '/' || name[i] == 0x7f)
			return false;
	return true;
}

void mrc_listener_destroy(struct mrc_listener *listener)
{
	while (!mrc_list_is_empty(&listener->incoming))
		mrc_list_remove(
			listener->incoming.next); /* only at detach: their client frees them */
	while (!mrc_list_is_empty(&listener->accepting))
		mrc_list_remove(listener->accepting.next);
	mrc_list_remove(&listener->parked.node);
	mrc_list_remove(&listener->pending.node);
	mrc_list_remove(&listener->in_client);
	free(listener);
}

/* The program has closed it, and now the daemon has answered. */
void mrc_listener_reap(struct mrc_listener *listener)
{
	if (!listener->is_freed || !listener->is_answered)
		return;
	if (listener->status == MRC_STATUS_OK && !listener->client->is_gone)
		mrc_client_submit_later(listener->client, &listener->pending, MRC_SQE_UNLISTEN);
	else
		mrc_listener_destroy(listener);
}

static void listener_give_up(struct mrc_listener *listener)
{
	/* Nobody will decide on these. */
	while (!mrc_list_is_empty(&listener->incoming))
		mrc_channel_free(
			MRC_CONTAINER_OF(listener->incoming.next, struct mrc_channel, in_listener));
	while (!mrc_list_is_empty(&listener->accepting))
		mrc_channel_free(MRC_CONTAINER_OF(listener->accepting.next, struct mrc_channel,
						  in_listener));
	mrc_list_remove(&listener->parked.node);
	listener->is_freed = true;
	if (listener->client->is_gone)
		mrc_listener_destroy(listener);
	else
		mrc_listener_reap(listener);
}

MRC_API int mrc_listen_start(struct mrc_client *client, const char *service, uint64_t user,
			     struct mrc_listener **listener_out)
{
	struct mrc_listener *listener;
	int r;

	if (!service || !mrc_name_is_good(service, strlen(service)))
		return -EINVAL;
	if (client->is_gone)
		return -ECONNRESET;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->client = client;
	listener->user = user;
	listener->request = client->request_next++;
	mrc_list_init(&listener->parked.node);
	mrc_list_init(&listener->pending.node);
	mrc_list_init(&listener->incoming);
	mrc_list_init(&listener->accepting);
	mrc_list_init(&listener->in_client);
	mrc_list_append(&client->listeners, &listener->in_client);
	r = mrc_client_request(client, MRC_ABI_REQ_LISTEN, 0, listener->request, service);
	if (r < 0) {
		mrc_listener_destroy(listener);
		return r;
	}
	*listener_out = listener;
	return 0;
}

MRC_API int mrc_listen(struct mrc_client *client, const char *service, int64_t timeout_ns,
		       struct mrc_listener **listener_out, int *status_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_listener *listener;
	int r = mrc_listen_start(client, service, 0, &listener);

	if (r < 0)
		return r;
	r = mrc_client_wait_parked(client, &listener->parked, deadline_ns);
	if (r < 0) {
		listener_give_up(listener);
		mrc_client_settle(client);
		return r;
	}
	mrc_list_remove(&listener->parked.node);
	if (status_out)
		*status_out = listener->status;
	if (listener->status != MRC_STATUS_OK) {
		r = status_out ? 0 : -ECONNREFUSED;
		mrc_listener_destroy(listener);
		listener = NULL;
	}
	*listener_out = listener;
	mrc_client_settle(client);
	return r;
}

MRC_API void mrc_listener_close(struct mrc_listener *listener)
{
	struct mrc_client *client;

	if (!listener)
		return;
	client = listener->client;
	listener_give_up(listener);
	mrc_client_settle(client);
}

/* One of mrc_accept()'s channels that is ready for the program. */
static struct mrc_channel *accepted_find(struct mrc_listener *listener)
{
	for (struct mrc_list *at = listener->accepting.next; at != &listener->accepting;
	     at = at->next) {
		struct mrc_channel *channel = MRC_CONTAINER_OF(at, struct mrc_channel, in_listener);

		if (channel->state != MRC_CHANNEL_ACCEPTING)
			return channel;
	}
	return NULL;
}

/* Accept all that wait; they come up while others are taken. */
static void accept_waiting(struct mrc_listener *listener)
{
	while (!mrc_list_is_empty(&listener->incoming)) {
		struct mrc_channel *channel =
			MRC_CONTAINER_OF(listener->incoming.next, struct mrc_channel, in_listener);

		mrc_list_remove(&channel->parked.node);
		if (channel->state != MRC_CHANNEL_INCOMING) {
			mrc_channel_free(channel); /* it has ended before we came to it */
			continue;
		}
		mrc_list_remove(&channel->in_listener);
		mrc_list_append(&listener->accepting, &channel->in_listener);
		channel->listener = NULL;
		channel->state = MRC_CHANNEL_ACCEPTING;
		mrc_client_submit_later(listener->client, &channel->pending, MRC_SQE_ACCEPT);
	}
}

MRC_API int mrc_accept(struct mrc_listener *listener, int64_t timeout_ns,
		       struct mrc_channel **channel_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_client *client = listener->client;
	struct mrc_channel *channel;
	int r = 0;

	for (;;) {
		if (listener->is_answered && listener->status != MRC_STATUS_OK) {
			r = client->is_gone ? -ECONNRESET : -ENOTCONN;
			break;
		}
		channel = accepted_find(listener);
		if (channel) {
			mrc_list_remove(&channel->in_listener);
			*channel_out = channel;
			r = 0;
			break;
		}
		accept_waiting(listener);
		r = mrc_client_await(client, deadline_ns);
		if (r < 0)
			break;
	}
	mrc_client_settle(client);
	return r;
}
