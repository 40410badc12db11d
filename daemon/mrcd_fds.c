/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_fds.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mrcd_control.h"
#include "mrcd_http.h"

#define OWN_FDS  64U /* sockets, timers, devices' threads; what is opened while it ends or reads */
#define RAIL_FDS 16U
#define PATH_FDS 2U /* a connection, and the one that takes its place */

uint32_t mrcd_fds_own(const struct mrcd_conf *conf)
{
	/* Who looks, and who has connected and said nothing yet: programs, and hosts to each rail. */
	uint32_t count = OWN_FDS + MRCD_CONTROL_OWNERS_MAX + MRCD_CONTROL_OTHERS_MAX +
			 MRCD_HTTP_CONNECTIONS_MAX + conf->handshakes_max * (1 + conf->rail_count) +
			 RAIL_FDS * conf->rail_count;

	for (uint32_t i = 0; i < conf->peer_count; i++)
		count += PATH_FDS * conf->peers[i].path_count;
	return count;
}

uint64_t mrcd_fds_end(const struct mrcd_conf *conf)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur - MRC_MIN((uint64_t)mrcd_fds_own(conf), (uint64_t)limit.rlim_cur / 2);
}

bool mrcd_fds_have_room(uint64_t fd_end, uint32_t count)
{
	int lowest = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	if (lowest < 0)
		return false;
	close(lowest);
	return (uint64_t)lowest + count <= fd_end;
}
