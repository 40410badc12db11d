/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_conf - another configuration is in force: what that means to clients that are there */
#include <errno.h>
#include <stdlib.h>

#include "mrcd_client_impl.h"
#include "mrcd_fds.h"

int mrcd_client_side_peers_reserve(struct mrcd_client_side *side, uint32_t peer_count)
{
	uint32_t max = peer_count + 2; /* the loop's ends as well */
	struct mrcd_peer **touched, **pumping;

	if (max <= side->touched_max)
		return 0;
	touched = realloc(side->touched, max * sizeof(struct mrcd_peer *));
	if (touched == NULL)
		return -ENOMEM;
	side->touched = touched;
	pumping = realloc(side->pumping, max * sizeof(struct mrcd_peer *));
	if (pumping == NULL)
		return -ENOMEM;
	side->pumping = pumping;
	side->touched_max = max;
	return 0;
}

void mrcd_client_side_configure(struct mrcd_client_side *side)
{
	const struct mrcd_conf *conf = side->worker->conf;

	side->limits = &conf->clients;
	side->pendings_max = MRC_MAX(conf->handshakes_max, 1U);
	side->fd_end = mrcd_fds_end(conf);
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		mrcd_conf_quota(conf, &client->creds, &client->quota.max);
		mrcd_client_feed_throttled(client);
	}
	mrcd_client_side_hold_to_rules(side);
	mrcd_client_side_schedule(side);
}

const char *mrcd_client_side_holder(const struct mrcd_client_side *side,
				    const struct mrcd_peer *peer, pid_t *pid_out)
{
	for (uint32_t c = 0; c < side->slot_count; c++) {
		const struct mrcd_client *client = side->clients[c];

		for (uint32_t i = 0; client != NULL && i < client->channels_max; i++) {
			if (client->channels[i].state == MRCD_CHANNEL_FREE ||
			    client->channels[i].peer != peer)
				continue;
			*pid_out = client->creds.pid;
			return client->name;
		}
	}
	return NULL;
}

bool mrcd_client_side_release(struct mrcd_client_side *side, const struct mrcd_peer *peer)
{
	uint32_t kept = 0;
	pid_t pid;

	if (mrcd_client_side_holder(side, peer, &pid) != NULL)
		return false;
	for (uint32_t i = 0; i < side->touched_count; i++) {
		if (side->touched[i] != peer)
			side->touched[kept++] = side->touched[i];
	}
	side->touched_count = kept;
	return true;
}
