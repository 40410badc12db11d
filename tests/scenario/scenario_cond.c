/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_cond - is it so? Conditions, held against the world as it is now */
#include <string.h>

#include "scenario_impl.h"

static uint32_t role_of(const struct sc_run *run, uint32_t channel, uint32_t host)
{
	return run->sc->channels[channel].from != host;
}

static bool compare(enum sc_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case SC_EQ:
		return a == b;
	case SC_NE:
		return a != b;
	case SC_LT:
		return a < b;
	case SC_LE:
		return a <= b;
	case SC_GT:
		return a > b;
	default:
		return a >= b;
	}
}

/* ---- values ---- */

/* False: the daemon is down, or the path not there. */
static bool path_info(struct sc_run *run, const struct sc_cond *c, uint32_t rail,
		      struct mrc_path_info *info_out)
{
	struct mrc_conn *conn = sim_conn(run->world, c->host, c->peer);

	*info_out = (struct mrc_path_info){0};
	if (!conn)
		return false;
	mrc_conn_path_info(conn, (uint8_t)rail, info_out);
	return true;
}

static uint64_t share_of(struct sc_run *run, const struct sc_cond *c)
{
	uint64_t total = 0;
	uint64_t own = 0;

	for (uint32_t r = 0; r < run->sc->options.rails; r++) {
		struct mrc_path_info info;
		uint64_t bytes;

		path_info(run, c, r, &info);
		bytes = info.bytes_sent - MRC_MIN(info.bytes_sent, c->base[r]);
		total += bytes;
		if (r == c->rail)
			own = bytes;
	}
	return total ? own * 1000 / total : 0;
}

static uint64_t rail_metric(struct sc_run *run, const struct sc_cond *c)
{
	struct mrc_path_info info;
	uint64_t values[] = {
#define X(name, field, unit) 0,
		SC_RAIL_METRICS(X)
#undef X
	};
	size_t i = 0;

	path_info(run, c, c->rail, &info);
#define X(name, field, unit) values[i++] = (uint64_t)info.field;
	SC_RAIL_METRICS(X)
#undef X
	if (c->what < MRC_ARRAY_LEN(values))
		return values[c->what];
	if (c->what == MRC_ARRAY_LEN(values))
		return run->moved[c->host][c->peer][c->rail];
	if (c->what == MRC_ARRAY_LEN(values) + 1)
		return sc_health(run, c->host, c->peer, c->rail) >= MRC_HEALTH_DEGRADED;
	if (c->what == MRC_ARRAY_LEN(values) + 2)
		return sc_health(run, c->host, c->peer, c->rail) == MRC_HEALTH_FAILING;
	return share_of(run, c);
}

static uint64_t conn_metric(struct sc_run *run, const struct sc_cond *c)
{
	struct mrc_conn *conn = sim_conn(run->world, c->host, c->peer);
	struct mrc_conn_info info = {0};
	uint64_t values[] = {
#define X(name, field) 0,
		SC_CONN_METRICS(X)
#undef X
	};
	size_t i = 0;

	if (conn)
		mrc_conn_info(conn, &info);
#define X(name, field) values[i++] = (uint64_t)info.field;
	SC_CONN_METRICS(X)
#undef X
	return c->what < MRC_ARRAY_LEN(values) ? values[c->what]
					       : sim_conn_bytes(run->world, c->host, c->peer);
}

static void status_of(struct sc_run *run, uint32_t channel, uint32_t host,
		      struct sim_channel_status *status_out)
{
	*status_out = (struct sim_channel_status){0};
	if (run->channels[channel] != SC_NONE)
		sim_channel_status(run->world, run->channels[channel], host, status_out);
}

/* The longest time from sent to delivered, of what this host received. */
static uint64_t latency_max(struct sc_run *run, const struct sc_cond *c)
{
	const struct sc_channel *ch = &run->sc->channels[c->channel];
	uint32_t sender = ch->from == c->host ? ch->to : ch->from;
	uint64_t most = 0;

	for (uint64_t n = 0; n < run->planned[c->channel][ch->from != sender]; n++) {
		struct sim_message_status m;

		sim_message_status(run->world, run->channels[c->channel], sender, n, &m);
		if (m.is_delivered)
			most = MRC_MAX(most, m.delivered_ns - m.sent_ns);
	}
	return most;
}

static uint64_t channel_metric(struct sc_run *run, const struct sc_cond *c)
{
	struct sim_channel_status status;

	status_of(run, c->channel, c->host, &status);
	const uint64_t values[] = {
#define X(name) status.name,
		SC_CHANNEL_METRICS(X)
#undef X
	};

	if (c->what < MRC_ARRAY_LEN(values))
		return values[c->what];
	if (c->what == MRC_ARRAY_LEN(values))
		return run->flows[c->channel][role_of(run, c->channel, c->host)].stall_ns_max;
	return latency_max(run, c);
}

static uint64_t world_metric(struct sc_run *run, const struct sc_cond *c)
{
	struct sim_counts counts;

	sim_counts(run->world, &counts);
	const uint64_t values[] = {
#define X(name) counts.name,
		SIM_COUNTS(X)
#undef X
	};

	return values[c->what];
}

static uint64_t metric(struct sc_run *run, const struct sc_cond *c)
{
	switch (c->kind) {
	case SC_RAIL_METRIC:
		return rail_metric(run, c);
	case SC_CONN_METRIC:
		return conn_metric(run, c);
	case SC_CHANNEL_METRIC:
		return channel_metric(run, c);
	default:
		return world_metric(run, c);
	}
}

static bool is_share(const struct sc_cond *c)
{
	return c->kind == SC_RAIL_METRIC && c->unit == SC_SHARE;
}

/* Less what it was at the label it counts from. */
static uint64_t metric_since(struct sc_run *run, const struct sc_cond *c)
{
	uint64_t value = metric(run, c);

	return is_share(c) ? value : value - MRC_MIN(value, c->base[0]);
}

void sc_bases_set(struct sc_run *run, uint32_t label)
{
	struct scenario *sc = run->sc;

	for (uint32_t i = 0; i < sc->event_count + sc->claim_count; i++) {
		struct sc_clause *clause = i < sc->event_count
						   ? &sc->events[i].when
						   : &sc->claims[i - sc->event_count].clause;

		for (uint32_t k = 0; k < clause->count; k++) {
			struct sc_cond *c = &clause->conds[k];

			if (c->since != label)
				continue;
			if (!is_share(c)) {
				c->base[0] = metric(run, c);
				continue;
			}
			for (uint32_t r = 0; r < sc->options.rails; r++) {
				struct mrc_path_info info;

				path_info(run, c, r, &info);
				c->base[r] = info.bytes_sent;
			}
		}
	}
}

/* ---- messages ---- */

static bool message_is(const struct sim_message_status *m, const struct sc_cond *c)
{
	switch ((enum sc_message_state)c->what) {
	case SC_MSG_SENT:
		return m->is_sent;
	case SC_MSG_ANSWERED:
		return m->is_answered && (!c->has_outcome || m->outcome == c->outcome);
	case SC_MSG_DELIVERED:
		return m->is_delivered;
	case SC_MSG_VISIBLE:
		return m->is_visible;
	case SC_MSG_COMMITTED:
		return m->is_committed;
	case SC_MSG_REJECTED:
		return m->is_rejected;
	case SC_MSG_RELEASED:
		return m->is_released;
	default:
		return m->is_gap;
	}
}

/* The first of them that is not so, or SC_NONE. */
static uint32_t message_unlike(struct sc_run *run, struct sc_cond *c,
			       struct sim_message_status *status_out)
{
	const struct sc_channel *ch = &run->sc->channels[c->channel];
	bool is_subject = c->what <= SC_MSG_ANSWERED;
	uint32_t sender = is_subject ? c->host : ch->from == c->host ? ch->to : ch->from;
	const uint32_t *numbers = run->numbers[c->channel][role_of(run, c->channel, sender)];

	for (uint32_t m = c->msg_so_far; m <= c->msg_to; m++) {
		c->msg_so_far = m;
		*status_out = (struct sim_message_status){0};
		if (numbers[m] != SC_NONE)
			sim_message_status(run->world, run->channels[c->channel], sender,
					   numbers[m], status_out);
		if (!message_is(status_out, c))
			return m;
	}
	return SC_NONE;
}

/* ---- conditions ---- */

static bool channel_is(struct sc_run *run, const struct sc_cond *c)
{
	struct sim_channel_status status;

	status_of(run, c->channel, c->host, &status);
	switch ((enum sc_channel_state)c->what) {
	case SC_CH_UP:
		return status.is_open;
	case SC_CH_DOWN:
		return status.is_down && (!c->has_outcome || status.outcome == c->outcome);
	default:
		return status.is_freed;
	}
}

static bool cond_holds(struct sc_run *run, struct sc_cond *c)
{
	struct sim_message_status message;
	struct mrc_path_info info;

	if (c->since != SC_NONE && run->label_ns[c->since] == MRC_NEVER)
		return false;
	switch (c->kind) {
	case SC_RAIL_STATE:
		return path_info(run, c, c->rail, &info) && info.state == c->what;
	case SC_RAIL_REASON:
		return path_info(run, c, c->rail, &info) && info.reason == c->what;
	case SC_CHANNEL_STATE:
		return channel_is(run, c);
	case SC_MESSAGES:
		return message_unlike(run, c, &message) == SC_NONE;
	case SC_CLEAN:
		return sim_is_clean(run->world, NULL, 0);
	case SC_ALL_GOOD:
		return sim_is_all_good(run->world);
	default:
		return compare(c->op, metric_since(run, c), c->value);
	}
}

bool sc_holds(struct sc_run *run, struct sc_clause *clause)
{
	for (uint32_t i = 0; i < clause->count; i++) {
		if (cond_holds(run, &clause->conds[i]) == clause->conds[i].is_negated)
			return false;
	}
	return true;
}

static void cond_seen(struct sc_run *run, struct sc_cond *c, char *out, size_t out_len)
{
	struct sim_message_status message;
	struct sim_channel_status status;
	struct mrc_path_info info;
	uint32_t m;
	char value[64];

	switch (c->kind) {
	case SC_RAIL_STATE:
	case SC_RAIL_REASON:
		if (!path_info(run, c, c->rail, &info))
			snprintf(out, out_len, "its daemon is down");
		else
			snprintf(out, out_len, "it is %s because %s",
				 mrc_path_state_name(info.state),
				 mrc_path_reason_name(info.reason));
		return;
	case SC_CHANNEL_STATE:
		status_of(run, c->channel, c->host, &status);
		snprintf(out, out_len, "it is%s%s%s, outcome %d", status.is_open ? " up" : "",
			 status.is_down ? " down" : "", status.is_freed ? " freed" : "",
			 status.outcome);
		return;
	case SC_MESSAGES:
		m = message_unlike(run, c, &message);
		if (m == SC_NONE)
			snprintf(out, out_len, "all of them are");
		else
			snprintf(out, out_len, "m%u:%s%s%s%s%s outcome %d", m,
				 message.is_sent ? " sent" : " not sent",
				 message.is_delivered ? " delivered" : "",
				 message.is_gap ? " gap" : "",
				 message.is_released ? " released" : "",
				 message.is_answered ? " answered" : "", message.outcome);
		return;
	case SC_CLEAN:
		if (sim_is_clean(run->world, out, out_len))
			snprintf(out, out_len, "all is clean");
		return;
	case SC_ALL_GOOD:
		snprintf(out, out_len, "%s paths are",
			 sim_is_all_good(run->world) ? "all" : "not all");
		return;
	default:
		sc_number_print(c->unit, metric_since(run, c), value, sizeof(value));
		snprintf(out, out_len, "it is %s", value);
		return;
	}
}

void sc_seen(struct sc_run *run, struct sc_clause *clause, char *out, size_t out_len)
{
	for (uint32_t i = 0; i < clause->count; i++) {
		struct sc_cond *c = &clause->conds[i];

		if (cond_holds(run, c) == c->is_negated || i + 1 == clause->count) {
			cond_seen(run, c, out, out_len);
			return;
		}
	}
}

/* ---- stalls ---- */

void sc_flows_watch(struct sc_run *run)
{
	uint64_t now_ns = sim_now_ns(run->world);

	for (uint32_t c = 0; c < run->sc->channel_count; c++) {
		const struct sc_channel *ch = &run->sc->channels[c];
		const uint32_t hosts[2] = {ch->from, ch->to};
		struct sim_channel_status ends[2];

		if (run->channels[c] == SC_NONE)
			continue;
		for (uint32_t role = 0; role < 2; role++)
			status_of(run, c, hosts[role], &ends[role]);
		for (uint32_t role = 0; role < 2; role++) {
			struct sc_flow *flow = &run->flows[c][role];
			const struct sim_channel_status *to = &ends[role];
			const struct sim_channel_status *from = &ends[1 - role];
			uint64_t progress = to->delivered + from->answered;

			if (from->sent == to->delivered || from->sent == from->answered) {
				if (flow->since_ns)
					flow->stall_ns_max = MRC_MAX(flow->stall_ns_max,
								     now_ns - flow->since_ns);
				flow->since_ns = 0;
			} else if (!flow->since_ns) {
				flow->since_ns = now_ns;
			} else {
				flow->stall_ns_max =
					MRC_MAX(flow->stall_ns_max, now_ns - flow->since_ns);
				if (progress != flow->progress)
					flow->since_ns = now_ns;
			}
			flow->progress = progress;
		}
	}
}
