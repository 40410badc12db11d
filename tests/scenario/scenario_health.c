/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_health - the paths of a scenario, judged as the daemon judges them */
#include <stdlib.h>

#include "scenario_impl.h"

void sc_health_init(struct sc_run *run)
{
	uint8_t rails = (uint8_t)run->sc->options.rails;

	for (uint32_t a = 0; a < run->sc->options.hosts; a++) {
		for (uint32_t b = 0; b < run->sc->options.hosts; b++) {
			struct mrc_health_path *paths = calloc(rails, sizeof(*paths));

			if (!paths)
				abort();
			mrc_health_init(&run->healths[a][b], paths, rails);
		}
	}
}

void sc_health_fini(struct sc_run *run)
{
	for (uint32_t a = 0; a < SC_HOSTS_MAX; a++) {
		for (uint32_t b = 0; b < SC_HOSTS_MAX; b++)
			free(run->healths[a][b].paths);
	}
}

static void judge(struct sc_run *run, uint32_t host, uint32_t peer)
{
	struct mrc_conn *conn = host == peer ? NULL : sim_conn(run->world, host, peer);
	struct mrc_health_sample samples[MRC_PATHS_MAX] = {0};

	if (!conn)
		return; /* its daemon is down: the next judgement comes late */
	for (uint32_t r = 0; r < run->sc->options.rails; r++)
		mrc_conn_path_info(conn, (uint8_t)r, &samples[r].info);
	mrc_health_judge(&run->healths[host][peer], samples, sim_now_ns(run->world));
}

void sc_health_watch(struct sc_run *run)
{
	if (sim_now_ns(run->world) < run->judge_ns)
		return;
	run->judge_ns = sim_now_ns(run->world) + MRC_HEALTH_PERIOD_NS;
	for (uint32_t a = 0; a < run->sc->options.hosts; a++) {
		for (uint32_t b = 0; b < run->sc->options.hosts; b++)
			judge(run, a, b);
	}
}

enum mrc_health_state sc_health(const struct sc_run *run, uint32_t host, uint32_t peer,
				uint32_t rail)
{
	return run->healths[host][peer].paths[rail].view.state;
}
