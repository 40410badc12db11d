/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_info - what a run says of itself: its failure, trace, counts, and what is left over */
#include <stdlib.h>

#include "sim_impl.h"

const char *sim_failure(const struct sim_world *w)
{
	return w->failure[0] ? w->failure : NULL;
}

void sim_trace_on(struct sim_world *w, uint32_t lines)
{
	if (w->is_traced)
		return;
	w->trace_lines = lines;
	w->trace = calloc(lines, sizeof(*w->trace));
	if (!w->trace)
		abort();
	w->is_traced = true;
}

void sim_trace_print(const struct sim_world *w, FILE *out)
{
	uint64_t from = w->trace_count > w->trace_lines ? w->trace_count - w->trace_lines : 0;

	for (uint64_t i = from; i < w->trace_count; i++)
		fprintf(out, "%s\n", w->trace[i % w->trace_lines]);
}

uint64_t sim_hash(const struct sim_world *w)
{
	return w->hash;
}

uint64_t sim_now_ns(const struct sim_world *w)
{
	return w->now_ns;
}

void sim_counts(const struct sim_world *w, struct sim_counts *counts_out)
{
	*counts_out = w->counts;
	for (uint32_t p = 0; p < w->pair_count; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct mrc_conn *conn = w->pairs[p].ends[side].conn;
			struct mrc_conn_info info;
			struct mrc_path_info path;

			if (!conn)
				continue;
			mrc_conn_info(conn, &info);
			counts_out->duplicates += info.duplicates;
			for (uint8_t r = 0; r < w->o.rails; r++) {
				mrc_conn_path_info(conn, r, &path);
				counts_out->resent += path.frames_resent;
				counts_out->suspicions += path.suspicions;
				counts_out->suspicions_false += path.suspicions_false;
			}
		}
	}
}

void sim_report(const struct sim_world *w, FILE *out)
{
	struct sim_counts counts;

	sim_counts(w, &counts);
	fprintf(out, "%.3f ms of virtual time, trace hash %016llx\n ", (double)w->now_ns / MRC_MS,
		(unsigned long long)w->hash);
#define X(name)          \
	if (counts.name) \
		fprintf(out, " " #name " %llu", (unsigned long long)counts.name);
	SIM_COUNTS(X)
#undef X
	fprintf(out, "\n");
	for (uint32_t p = 0; p < w->pair_count; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct pair *pair = &w->pairs[p];

			for (uint8_t r = 0; r < w->o.rails && pair->ends[side].conn; r++) {
				struct mrc_path_info pi;

				mrc_conn_path_info(pair->ends[side].conn, r, &pi);
				fprintf(out,
					"  host %s to %s path %u: %-11s epoch %u, sent %llu KiB, "
					"suspected %llu (%llu false), resent %llu, "
					"rate %llu Mb/s, round trip %llu us (least %llu), window "
					"%llu KiB\n",
					w->hosts[pair->hosts[side]].name,
					w->hosts[pair->hosts[1 - side]].name, r,
					mrc_path_state_name(pi.state), pi.epoch,
					(unsigned long long)pi.bytes_sent >> 10,
					(unsigned long long)pi.suspicions,
					(unsigned long long)pi.suspicions_false,
					(unsigned long long)pi.frames_resent,
					(unsigned long long)pi.rate_bytes_per_s * 8 / 1000000,
					(unsigned long long)(pi.rtt_ns / MRC_US),
					(unsigned long long)(pi.rtt_ns_min / MRC_US),
					(unsigned long long)pi.window_bytes >> 10);
			}
		}
	}
	for (uint32_t c = 0; c < w->chan_count; c++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct chan_end *ce = &w->chans[c]->ends[side];

			if (!ce->id || ce->is_freed || ce->is_gone)
				continue;
			fprintf(out,
				"  channel %u at %s: sent %llu answered %llu delivered %llu "
				"released %llu%s%s%s\n",
				c, w->hosts[w->pairs[w->chans[c]->pair].hosts[side]].name,
				(unsigned long long)ce->send_next, (unsigned long long)ce->answered,
				(unsigned long long)ce->delivered, (unsigned long long)ce->released,
				ce->is_up ? " up" : "", ce->is_down ? " down" : "",
				ce->is_aborted ? " aborted" : "");
		}
	}
}

struct mrc_conn *sim_conn(struct sim_world *w, uint32_t host, uint32_t peer)
{
	struct pair *pair = &w->pairs[w->pair_of[host * w->o.hosts + peer]];

	return pair->ends[pair->hosts[1] == host].conn;
}

uint64_t sim_conn_bytes(const struct sim_world *w, uint32_t host, uint32_t peer)
{
	const struct pair *pair = &w->pairs[w->pair_of[host * w->o.hosts + peer]];

	return pair->ends[pair->hosts[1] == host].alloc_bytes;
}

void sim_path_watch(struct sim_world *w, sim_path_fn watch, void *context)
{
	w->path_watch = watch;
	w->path_watch_context = context;
}

bool sim_is_clean(struct sim_world *w, char *why, size_t why_len)
{
	char text[160] = "";

	if (w->ends_open)
		snprintf(text, sizeof(text), "%u channel ends are not freed", w->ends_open);
	for (uint32_t p = 0; p < w->pair_count && !text[0]; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct pair_end *pe = &w->pairs[p].ends[side];
			const char *name = w->hosts[w->pairs[p].hosts[side]].name;

			if (!pe->conn)
				continue;
			if (pe->holds_used)
				snprintf(text, sizeof(text), "host %s: %u holds are not freed",
					 name, pe->holds_used);
			else if (pe->alloc_count - pe->space_count != pe->alloc_count_base)
				snprintf(text, sizeof(text),
					 "host %s: the engine keeps %llu allocations more than at "
					 "start",
					 name,
					 (unsigned long long)(pe->alloc_count - pe->space_count -
							      pe->alloc_count_base));
		}
	}
	for (uint32_t h = 0; h < w->o.hosts && !text[0]; h++) {
		for (uint32_t c = 0; c < w->o.clients; c++) {
			if (w->hosts[h].clients[c]->grant_count)
				snprintf(text, sizeof(text),
					 "host %s: %u landing buffers are not freed",
					 w->hosts[h].name, w->hosts[h].clients[c]->grant_count);
		}
	}
	if (why)
		snprintf(why, why_len, "%s", text);
	return !text[0];
}
