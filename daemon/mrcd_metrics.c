/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mrcd_control_impl.h"
#include "mrcd_event_log.h"
#include "mrcd_http.h"
#include "mrcd_metrics_table.h"
#include "mrcd_peer.h"
#include "mrcd_stall.h"
#include "mrcd_trace.h"

#define NOT_KNOWN   INT64_MIN
#define LABEL_BYTES 512

enum metric_type { GAUGE, COUNTER, HISTOGRAM };
enum metric_scope { DAEMON, BUILD, STAGE, RAIL, RAIL_INFO, RAIL_CARD, PEER, PATH, PATH_STATE };
enum metric_unit { COUNT, NS };

/* What a value is taken from; of its scope only. */
struct metric_at {
	struct mrcd_worker *worker;
	const struct mrcd_worker_summary *summary;
	int64_t start_wall_ns;
	struct mrcd_rail *rail;
	struct mrcd_peer *peer;
	struct mrc_conn_info conn;
	struct mrc_path_info path;
	const struct mrc_health_view *health;
	uint8_t path_index;
	int state;
	enum mrcd_card_counter counter;
	enum mrcd_stage stage;
	struct mrc_histogram sum; /* where rail_rtts() adds up */
	char labels[LABEL_BYTES];
};

/* ---- values that take more than a look ---- */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * (int64_t)MRC_S + now.tv_nsec;
}

static int64_t cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int64_t resident_bytes(void)
{
	unsigned long long all, resident;
	FILE *file = fopen("/proc/self/statm", "re");
	int count;

	if (file == NULL)
		return NOT_KNOWN;
	count = fscanf(file, "%llu %llu", &all, &resident); /* NOLINT(cert-err34-c): the kernel's */
	fclose(file);
	return count == 2 ? (int64_t)resident * sysconf(_SC_PAGESIZE) : NOT_KNOWN;
}

static int64_t rail_speed(const struct mrcd_rail *rail)
{
	uint64_t bits = mrcd_control_rail_speed(rail);

	return bits > 0 ? (int64_t)(bits / 8) : NOT_KNOWN;
}

static int64_t rail_paths(const struct metric_at *at, bool is_good_only)
{
	uint32_t all = 0, all_good = 0, good;

	for (uint32_t i = 0; i < at->worker->peer_count; i++) {
		all += mrcd_peer_rail_paths(at->worker->peers[i], at->rail->index, &good);
		all_good += good;
	}
	return is_good_only ? all_good : all;
}

static int64_t card_count(const struct metric_at *at)
{
	const struct mrcd_card *card = &at->rail->card;

	return mrcd_card_knows(card, at->counter) ? (int64_t)card->counts[at->counter] : NOT_KNOWN;
}

static const struct mrc_histogram *rail_rtts(struct metric_at *at)
{
	at->sum = (struct mrc_histogram){0};
	for (uint32_t i = 0; i < at->worker->peer_count; i++)
		mrcd_peer_add_rtts(at->worker->peers[i], at->rail, &at->sum);
	return &at->sum;
}

/* ---- the table ---- */

struct metric {
	const char *name;
	const char *help;
	enum metric_type type;
	enum metric_scope scope;
	enum metric_unit unit;
};

enum metric_id {
#define ID(id, ...) METRIC_##id,
	MRCD_METRICS(ID)
#undef ID
		METRIC_COUNT
};

static const struct metric metrics[METRIC_COUNT] = {
#define METRIC(id, type, scope, unit, name, value, help) {name, help, type, scope, unit},
	MRCD_METRICS(METRIC)
#undef METRIC
};

/* Of a histogram there is no one value, and of the others no histogram. */
#define CASE(id, value)   \
	case METRIC_##id: \
		return (value);
#define VALUE_GAUGE(id, value)   CASE(id, (int64_t)(value))
#define VALUE_COUNTER(id, value) CASE(id, (int64_t)(value))
#define VALUE_HISTOGRAM(id, value)
#define HISTOGRAM_GAUGE(id, value)
#define HISTOGRAM_COUNTER(id, value)
#define HISTOGRAM_HISTOGRAM(id, value) CASE(id, value)

static int64_t value_of(enum metric_id metric, const struct metric_at *at)
{
	switch (metric) {
#define METRIC(id, type, scope, unit, name, value, help) VALUE_##type(id, value)
		MRCD_METRICS(METRIC)
#undef METRIC
	default:
		return NOT_KNOWN;
	}
}

static const struct mrc_histogram *histogram_of(enum metric_id metric, struct metric_at *at)
{
	switch (metric) {
#define METRIC(id, type, scope, unit, name, value, help) HISTOGRAM_##type(id, value)
		MRCD_METRICS(METRIC)
#undef METRIC
	default:
		return NULL;
	}
}

/* ---- the text ---- */

/* In a label's value \, " and the end of a line are written with a \; an interface may be called so. */
static size_t put_label(char *labels, size_t at, const char *name, const char *value)
{
	if (at > 0)
		at += (size_t)snprintf(labels + at, LABEL_BYTES - at, ",");
	at += (size_t)snprintf(labels + at, LABEL_BYTES - at, "%s=\"", name);
	for (; *value != '\0' && at + 4 < LABEL_BYTES; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			labels[at++] = '\\';
		labels[at++] = *value == '\n' ? 'n' : *value;
	}
	MRC_ASSERT(at + 2 < LABEL_BYTES); /* names have bounds, and three of them fit */
	labels[at++] = '"';
	labels[at] = '\0';
	return at;
}

static void put_labels(enum metric_scope scope, struct metric_at *at)
{
	const char *peer = at->peer != NULL ? mrcd_peer_name(at->peer) : "";
	const char *rail = at->rail != NULL ? at->rail->conf->name : "";
	char number[8];
	size_t len = 0;

	at->labels[0] = '\0';
	switch (scope) {
	case DAEMON:
		break;
	case BUILD:
		len = put_label(at->labels, len, "version", MRC_VERSION);
		put_label(at->labels, len, "rails", MRC_VERBS ? "tcp,verbs" : "tcp");
		break;
	case STAGE:
		put_label(at->labels, len, "stage", mrcd_stage_name(at->stage));
		break;
	case RAIL:
		put_label(at->labels, len, "rail", rail);
		break;
	case RAIL_INFO:
		len = put_label(at->labels, len, "rail", rail);
		len = put_label(at->labels, len, "type", at->rail->ops->kind);
		len = put_label(at->labels, len, "interface", at->rail->conf->interface);
		put_label(at->labels, len, "address", at->rail->conf->address);
		break;
	case RAIL_CARD:
		len = put_label(at->labels, len, "rail", rail);
		put_label(at->labels, len, "error", mrcd_card_counter_name(at->counter));
		break;
	case PEER:
		put_label(at->labels, len, "peer", peer);
		break;
	case PATH:
	case PATH_STATE:
		snprintf(number, sizeof(number), "%u", at->path_index);
		len = put_label(at->labels, len, "peer", peer);
		len = put_label(at->labels, len, "rail", rail);
		len = put_label(at->labels, len, "path", number);
		if (scope == PATH_STATE)
			put_label(at->labels, len, "state",
				  mrc_path_state_name((enum mrc_path_state)at->state));
		break;
	}
}

/* Seconds with as many digits as there are: 1.5e9 ns is 1.5. */
static const char *seconds_text(int64_t ns, char text[32])
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	int len = snprintf(text, 32, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "",
			   (uint64_t)(size / MRC_S), (uint64_t)(size % MRC_S));

	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	text[len] = '\0';
	return text;
}

static void put_value(const struct metric *metric, const struct metric_at *at, int64_t value,
		      struct evbuffer *out)
{
	bool has_labels = at->labels[0] != '\0';
	char text[32];

	if (value == NOT_KNOWN)
		return;
	if (metric->unit == NS)
		seconds_text(value, text);
	else
		snprintf(text, sizeof(text), "%" PRId64, value);
	evbuffer_add_printf(out, "%s%s%s%s %s\n", metric->name, has_labels ? "{" : "", at->labels,
			    has_labels ? "}" : "", text);
}

/* Every second bound is told: 1, 2 and 5 of each decade. What is below one is in those above it as well. */
static void put_histogram(const struct metric *metric, const struct metric_at *at,
			  const struct mrc_histogram *histogram, struct evbuffer *out)
{
	uint64_t below = 0;
	char text[32];

	for (uint32_t i = 0; i < MRC_HISTOGRAM_BOUNDS; i++) {
		below += histogram->buckets[i];
		if (i % 2 == 0)
			evbuffer_add_printf(out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n",
					    metric->name, at->labels,
					    seconds_text((int64_t)mrc_histogram_bound_ns(i), text),
					    below);
	}
	evbuffer_add_printf(out,
			    "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n%s_sum{%s} %s\n"
			    "%s_count{%s} %" PRIu64 "\n",
			    metric->name, at->labels, histogram->count, metric->name, at->labels,
			    seconds_text((int64_t)histogram->sum_ns, text), metric->name,
			    at->labels, histogram->count);
}

static void put_title(const struct metric *metric, struct evbuffer *out)
{
	static const char *const types[] = {
		[GAUGE] = "gauge", [COUNTER] = "counter", [HISTOGRAM] = "histogram"};

	evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
			    metric->name, types[metric->type]);
}

/* ---- the walk ---- */

void mrcd_metrics_walk_begin(struct mrcd_metrics_walk *walk, struct mrcd_worker *worker)
{
	*walk = (struct mrcd_metrics_walk){.worker = worker};
	mrcd_worker_summarize(worker, &walk->summary);
}

static uint32_t outer_count(const struct mrcd_metrics_walk *walk, enum metric_scope scope)
{
	switch (scope) {
	case DAEMON:
	case BUILD:
		return 1;
	case STAGE:
		return MRCD_STAGE_COUNT;
	case RAIL:
	case RAIL_INFO:
	case RAIL_CARD:
		return walk->worker->rail_count;
	case PEER:
	case PATH:
	case PATH_STATE:
		return walk->worker->peer_count;
	}
	return 0;
}

/* Fills `at` for where the walk is. False: there is no such rail or path; the next rail or peer is due. */
static bool find(struct mrcd_metrics_walk *walk, enum metric_scope scope, struct metric_at *at)
{
	if (scope == RAIL || scope == RAIL_INFO || scope == RAIL_CARD)
		at->rail = &walk->worker->rails[walk->outer];
	if ((scope == RAIL || scope == RAIL_INFO || scope == RAIL_CARD) &&
	    !mrcd_rail_is_there(at->rail))
		return false;
	if (scope == STAGE)
		at->stage = (enum mrcd_stage)walk->outer;
	if (scope != PEER && scope != PATH && scope != PATH_STATE)
		return true;
	at->peer = walk->worker->peers[walk->outer];
	mrc_conn_info(mrcd_peer_conn(at->peer), &at->conn);
	if (scope == PEER)
		return true;
	while (walk->inner < at->conn.path_count &&
	       mrcd_peer_path_rail(at->peer, (uint8_t)walk->inner) == NULL)
		walk->inner++;
	if (walk->inner >= at->conn.path_count)
		return false;
	at->path_index = (uint8_t)walk->inner;
	at->rail = mrcd_peer_path_rail(at->peer, at->path_index);
	at->health = mrcd_peer_path_health(at->peer, at->path_index);
	mrc_conn_path_info(mrcd_peer_conn(at->peer), at->path_index, &at->path);
	return true;
}

/* Series that differ by a word. */
static int words_of(enum metric_scope scope)
{
	return scope == PATH_STATE  ? MRC_PATH_STATE_COUNT
	       : scope == RAIL_CARD ? MRCD_CARD_COUNTERS - MRCD_CARD_ERRORS_FIRST
				    : 1;
}

static void put_here(const struct mrcd_metrics_walk *walk, struct metric_at *at,
		     struct evbuffer *out)
{
	const struct metric *metric = &metrics[walk->metric];

	for (int word = 0; word < words_of(metric->scope); word++) {
		at->state = word;
		at->counter = (enum mrcd_card_counter)(MRCD_CARD_ERRORS_FIRST + word);
		put_labels(metric->scope, at);
		if (metric->type == HISTOGRAM)
			put_histogram(metric, at, histogram_of(walk->metric, at), out);
		else
			put_value(metric, at, value_of(walk->metric, at), out);
	}
}

bool mrcd_metrics_walk_on(struct mrcd_metrics_walk *walk, struct evbuffer *out, size_t bytes)
{
	struct metric_at at = {
		.worker = walk->worker,
		.summary = &walk->summary,
		.start_wall_ns = clock_ns(CLOCK_REALTIME) -
				 (int64_t)(walk->worker->now_ns - walk->worker->start_ns),
	};

	while (walk->metric < METRIC_COUNT) {
		const struct metric *metric = &metrics[walk->metric];

		if (walk->outer >= outer_count(walk, metric->scope)) {
			walk->metric++;
			walk->outer = walk->inner = 0;
			walk->is_titled = false;
			continue;
		}
		if (evbuffer_get_length(out) >= bytes)
			return true;
		if (!walk->is_titled)
			put_title(metric, out);
		walk->is_titled = true;
		if (!find(walk, metric->scope, &at)) {
			walk->outer++;
			walk->inner = 0;
			continue;
		}
		put_here(walk, &at, out);
		if (metric->scope == PATH || metric->scope == PATH_STATE)
			walk->inner++;
		else
			walk->outer++;
	}
	return false;
}
