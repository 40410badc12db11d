/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sim_trace(struct sim_world *w, const char *format, ...)
{
	char *line = w->trace[w->trace_count % SIM_TRACE_LINES];
	int n = snprintf(line, sizeof(w->trace[0]), "%12.3f us  ", (double)w->now_ns / 1000);
	va_list args;

	va_start(args, format);
	vsnprintf(line + n, sizeof(w->trace[0]) - (size_t)n, format, args);
	va_end(args);
	w->trace_count++;
	if (w->o.is_traced)
		fprintf(stderr, "%s\n", line);
}

void sim_fail(struct sim_world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
	sim_trace(w, "FAILED: %s", w->failure);
}

uint64_t sim_draw(struct sim_world *w, uint64_t below)
{
	return below ? mrc_rng_next(&w->rng) % below : 0;
}

uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int k = 0; k < 8; k++)
				v = v & 1 ? v >> 1 ^ 0x82f63b78U : v >> 1;
			table[i] = v;
		}
	}
	crc = ~crc;
	while (len--)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

/* ---- heap ---- */

static bool timer_before(const struct timer *a, const struct timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_timer_add(struct sim_world *w, uint64_t at_ns, enum timer_kind kind, uint32_t a,
		   uint32_t b, uint32_t c, uint64_t d)
{
	uint32_t i = w->heap_count++;
	struct timer t = {.at_ns = MRC_MAX(at_ns, w->now_ns),
			  .order = w->order_next++,
			  .kind = kind,
			  .a = a,
			  .b = b,
			  .c = c,
			  .d = d};

	if (w->heap_count > w->heap_cap) {
		w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 1024;
		w->heap = realloc(w->heap, w->heap_cap * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	while (i && timer_before(&t, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = t;
}

static struct timer timer_pop(struct sim_world *w)
{
	struct timer top = w->heap[0];
	struct timer last = w->heap[--w->heap_count];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= w->heap_count)
			break;
		if (child + 1 < w->heap_count && timer_before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!timer_before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

/* ---- bytes ---- */

/* What message `number` of a channel and direction holds at `at`. */
uint8_t sim_byte_of(uint32_t chan, uint32_t host, uint64_t number, uint64_t at)
{
	uint64_t v = (number * 2654435761U) ^ ((uint64_t)chan << 20) ^ ((uint64_t)host << 28);

	return (uint8_t)(v >> 8) ^ (uint8_t)(at * 31) ^ (uint8_t)(at >> 8);
}

int sim_handle(struct sim_world *w, uint32_t host, const struct mrc_event_in *ev)
{
	return mrc_conn_handle(w->hosts[host].conn, ev, w->now_ns);
}

struct chan_end *sim_chan_by_cookie(struct sim_world *w, uint32_t host, uint64_t cookie)
{
	return &w->chans[cookie - 1].ends[host];
}

/* ---- faults ---- */

static const char *const fault_names[SIM_FAULT_COUNT] = {
	[SIM_CARRIER_BOTH] = "carrier-both",
	[SIM_CARRIER_ONE] = "carrier-one",
	[SIM_SILENCE] = "silence",
	[SIM_SILENCE_ONE_WAY] = "silence-one-way",
	[SIM_SLOW] = "slow",
	[SIM_RESET] = "reset",
	[SIM_FLAP] = "flap",
	[SIM_PAUSE] = "pause",
	[SIM_CORRUPT_BODY] = "corrupt-body",
	[SIM_CORRUPT_HDR] = "corrupt-header",
};

const char *sim_fault_name(enum sim_fault fault)
{
	return fault_names[fault];
}

static void carrier_tell(struct sim_world *w, uint32_t path, uint32_t host)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER,
				  .path = {.index = (uint8_t)path,
					   .is_up = w->paths[path].rail.is_carrier[host]}};

	sim_handle(w, host, &ev);
	sim_pump(w, host);
}

static void carrier_set(struct sim_world *w, uint32_t path, uint32_t host, bool is_up)
{
	w->paths[path].rail.is_carrier[host] = is_up;
	if (sim_draw(w, 8)) /* now and then the event is lost: nobody may depend on it */
		sim_timer_add(w, w->now_ns + sim_draw(w, 300 * MRC_US), T_CARRIER, path, host, 0,
			      0);
}

static void fault_begin(struct sim_world *w)
{
	enum sim_fault fault;
	uint32_t path = (uint32_t)sim_draw(w, w->o.rails);
	uint32_t host = (uint32_t)sim_draw(w, SIM_HOSTS);
	struct rail_state *rail = &w->paths[path].rail;
	uint64_t span_ns =
		sim_draw(w, 10) < 7 ? sim_draw(w, 30 * MRC_MS) : sim_draw(w, 800 * MRC_MS);

	do
		fault = (enum sim_fault)sim_draw(w, SIM_FAULT_COUNT);
	while (!(w->o.fault_kinds >> fault & 1));
	sim_trace(w, "fault %s on path %u host %u for %.1f ms", fault_names[fault], path, host,
		  (double)span_ns / MRC_MS);
	switch (fault) {
	case SIM_CARRIER_BOTH:
	case SIM_FLAP:
		carrier_set(w, path, 0, false);
		carrier_set(w, path, 1, false);
		if (fault == SIM_FLAP)
			span_ns /= 10;
		break;
	case SIM_CARRIER_ONE:
		carrier_set(w, path, host, false);
		break;
	case SIM_SILENCE:
		rail->is_silent[0] = true;
		rail->is_silent[1] = true;
		break;
	case SIM_SILENCE_ONE_WAY:
		rail->is_silent[host] = true;
		break;
	case SIM_SLOW:
		rail->slow = 2 + (uint32_t)sim_draw(w, 30);
		break;
	case SIM_RESET:
		sim_link_down(w, path, host, MRC_REASON_ERROR);
		if (!w->o.is_verbs && sim_draw(w, 2))
			sim_link_down(w, path, 1 - host, MRC_REASON_CLOSED);
		break;
	case SIM_PAUSE:
		span_ns = sim_draw(w, 200 * MRC_MS);
		w->hosts[host].paused_until_ns =
			MRC_MAX(w->hosts[host].paused_until_ns, w->now_ns + span_ns);
		break;
	case SIM_CORRUPT_BODY:
		rail->corrupt_body_permille = 1 + (uint32_t)sim_draw(w, 300);
		break;
	default:
		rail->corrupt_hdr_permille = 1 + (uint32_t)sim_draw(w, 20);
		break;
	}
	w->paths[path].faults_active++;
	w->faults_open++;
	sim_timer_add(w, w->now_ns + span_ns, T_FAULT_END, path, fault, host, 0);
}

static void fault_end(struct sim_world *w, uint32_t path, enum sim_fault fault, uint32_t host)
{
	struct rail_state *rail = &w->paths[path].rail;

	w->faults_open--;
	if (fault == SIM_PAUSE)
		sim_pump(w, host);
	if (--w->paths[path].faults_active)
		return; /* another one holds: the last puts all right */
	sim_trace(w, "path %u healed", path);
	rail->is_silent[0] = false;
	rail->is_silent[1] = false;
	rail->slow = 1;
	rail->corrupt_body_permille = 0;
	rail->corrupt_hdr_permille = 0;
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (!rail->is_carrier[h])
			carrier_set(w, path, h, true);
	}
}

/* ---- the run ---- */

static void *sim_alloc(void *context, size_t bytes)
{
	(void)context;
	return calloc(1, bytes);
}

static void sim_release(void *context, void *memory)
{
	(void)context;
	free(memory);
}

struct sim_world *sim_new(const struct sim_options *options)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	static const char *const names[SIM_HOSTS] = {"a", "b"};

	if (!w)
		abort();
	w->o = *options;
	w->rng.state = options->seed;
	w->paths = calloc(options->rails, sizeof(*w->paths));
	if (!w->paths)
		abort();
	for (uint32_t p = 0; p < options->rails; p++) {
		w->paths[p].rail = (struct rail_state){.is_carrier = {true, true}, .slow = 1};
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct mrc_conn_config config = {
			.host = names[h],
			.peer = names[1 - h],
			.boot_id = 100 + h,
			.seed = options->seed + h,
			.path_count = (uint8_t)options->rails,
			.limits = {.frag_bytes_max = 4096,
				   .eager_bytes_max = 1024,
				   .frames_in_flight_max = 256,
				   .channels_max = 16,
				   .holds_max = 64,
				   .path_window_bytes_min = 16384,
				   .path_window_bytes_max = 256 * 1024},
			.alloc = {.alloc = sim_alloc, .free = sim_release},
		};

		if (mrc_conn_new(&config, &w->hosts[h].conn))
			abort();
		w->hosts[h].timer_ns = 0;
	}
	return w;
}

void sim_free(struct sim_world *w)
{
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_free(w->hosts[h].conn);
		for (uint32_t i = 0; i < 64; i++)
			free(w->hosts[h].holds[i].data);
		for (uint32_t p = 0; p < w->o.rails; p++) {
			struct wire *wire = &w->paths[p].ends[h].out;

			sim_queue_drop(&wire->queue_head, &wire->queue_tail);
			sim_queue_drop(&wire->air_head, &wire->air_tail);
		}
		for (uint32_t c = 0; c < SIM_CHANNELS_MAX; c++) {
			free(w->chans[c].ends[h].send);
			free(w->chans[c].ends[h].landing);
			free(w->chans[c].ends[h].msgs);
		}
	}
	free(w->paths);
	free(w->heap);
	free(w);
}

static bool is_finished(const struct sim_world *w)
{
	struct mrc_conn_info info;

	for (uint32_t c = 0; c < w->o.channels; c++) {
		for (uint32_t h = 0; h < SIM_HOSTS; h++) {
			if (!w->chans[c].ends[h].is_freed)
				return false;
		}
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_info(w->hosts[h].conn, &info);
		if (info.channel_count || info.paths_good < w->o.rails)
			return false;
	}
	return true;
}

static void step(struct sim_world *w, const struct timer *t)
{
	struct mrc_event_in ev = {.kind = MRC_EV_TIMER};
	struct mrc_event_in fenced = {.kind = MRC_EV_FENCED};
	struct end *end;

	switch (t->kind) {
	case T_FRAME_OUT:
		sim_frame_out(w, t->a, t->b, t->c);
		break;
	case T_ARRIVE:
		if (w->now_ns < w->hosts[1 - t->b].paused_until_ns)
			sim_timer_add(w, w->hosts[1 - t->b].paused_until_ns, T_ARRIVE, t->a, t->b,
				      t->c, 0);
		else
			sim_arrive(w, t->a, t->b, t->c);
		break;
	case T_ENGINE:
		if (w->hosts[t->a].timer_ns != t->d)
			break;
		if (w->now_ns < w->hosts[t->a].paused_until_ns) {
			/* A late turn: frames that wait are handled before any timer is judged. */
			w->hosts[t->a].timer_ns = w->hosts[t->a].paused_until_ns + 1;
			sim_timer_add(w, w->hosts[t->a].timer_ns, T_ENGINE, t->a, 0, 0,
				      w->hosts[t->a].timer_ns);
			break;
		}
		w->hosts[t->a].timer_ns = 0;
		sim_handle(w, t->a, &ev);
		sim_pump(w, t->a);
		break;
	case T_FENCED:
		end = &w->paths[t->a].ends[t->b];
		if (end->is_up && end->epoch == t->c) {
			end->is_up = false;
			if (!w->o.is_verbs)
				sim_queue_drop(&end->out.air_head, &end->out.air_tail);
			sim_queue_drop(&w->paths[t->a].ends[1 - t->b].out.air_head,
				       &w->paths[t->a].ends[1 - t->b].out.air_tail);
		}
		fenced.path.index = (uint8_t)t->a;
		fenced.path.path_epoch = t->c;
		sim_handle(w, t->b, &fenced);
		sim_pump(w, t->b);
		/* TCP: the other end reads the close, if anything gets through. */
		if (!w->o.is_verbs && !sim_is_blocked(w, t->a, t->b) &&
		    w->paths[t->a].ends[1 - t->b].epoch == t->c)
			sim_link_down(w, t->a, 1 - t->b, MRC_REASON_CLOSED);
		break;
	case T_CONNECT:
		sim_connect_path(w, t->a);
		break;
	case T_CLIENT_SEND:
		sim_client_send(w, t->a, t->b);
		sim_pump(w, t->a);
		break;
	case T_THINK:
		sim_client_thinks(w, t->a, t->b, t->d);
		break;
	case T_FAULT:
		if (w->faults_left) {
			w->faults_left--;
			fault_begin(w);
			sim_timer_add(w, w->now_ns + sim_draw(w, 20 * MRC_MS), T_FAULT, 0, 0, 0, 0);
		}
		break;
	case T_FAULT_END:
		fault_end(w, t->a, (enum sim_fault)t->b, t->c);
		break;
	case T_CARRIER:
		carrier_tell(w, t->a, t->b);
		break;
	}
}

int sim_run(struct sim_world *w)
{
	for (uint32_t c = 0; c < w->o.channels; c++) {
		struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN, .channel = sim_half(w, c)};
		char service[16];

		snprintf(service, sizeof(service), "s%u", c);
		sim_client_equip(w, &w->chans[c].ends[0]);
		ev.channel.service = service;
		ev.channel.is_unordered = w->o.is_unordered;
		ev.channel.id_out = &w->chans[c].ends[0].id;
		if (sim_handle(w, 0, &ev))
			sim_fail(w, "CH_OPEN refused");
	}
	w->faults_left = w->o.faults;
	sim_timer_add(w, 2 * MRC_MS, T_FAULT, 0, 0, 0, 0);
	sim_pump(w, 0);
	sim_pump(w, 1);
	/* Timers for the first turn: the initiator connects at once. */
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

		sim_handle(w, h, &ev);
		sim_pump(w, h);
	}
	while (w->heap_count && !w->failure[0]) {
		struct timer t = timer_pop(w);

		w->now_ns = MRC_MAX(w->now_ns, t.at_ns);
		step(w, &t);
		w->events++;
		if (w->events > EVENTS_MAX) {
			sim_fail(w, "too many events");
			break;
		}
		if (w->faults_left == 0 && w->faults_open == 0) {
			if (w->heal_by_ns == 0)
				w->heal_by_ns = w->now_ns + HEAL_NS;
			if ((w->events & 63) == 0 && is_finished(w))
				return 0;
			if (w->now_ns > w->heal_by_ns) {
				sim_fail(w, "no progress: not finished %llu s after the last fault",
					 (unsigned long long)(HEAL_NS / MRC_S));
			}
		}
	}
	if (!w->failure[0] && !is_finished(w))
		sim_fail(w, "nothing left to do, and not finished");
	return w->failure[0] != 0;
}

const char *sim_failure(const struct sim_world *w)
{
	return w->failure;
}

void sim_trace_print(const struct sim_world *w, FILE *out)
{
	uint64_t from = w->trace_count > SIM_TRACE_LINES ? w->trace_count - SIM_TRACE_LINES : 0;

	for (uint64_t i = from; i < w->trace_count; i++)
		fprintf(out, "%s\n", w->trace[i % SIM_TRACE_LINES]);
}

void sim_report(const struct sim_world *w, FILE *out)
{
	struct mrc_conn_info info;

	mrc_conn_info(w->hosts[0].conn, &info);
	fprintf(out,
		"%.3f ms virtual, %llu events, %llu frames, %llu ghosts, %llu copies, %llu "
		"duplicates\n",
		(double)w->now_ns / MRC_MS, (unsigned long long)w->events,
		(unsigned long long)w->frames, (unsigned long long)w->ghosts,
		(unsigned long long)w->copies, (unsigned long long)info.duplicates);
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		for (uint8_t p = 0; p < w->o.rails; p++) {
			struct mrc_path_info pi;

			mrc_conn_path_info(w->hosts[h].conn, p, &pi);
			fprintf(out,
				"  host %u path %u: %-11s epoch %u, suspected %llu (%llu false), "
				"resent %llu\n",
				h, p, mrc_path_state_name(pi.state), pi.epoch,
				(unsigned long long)pi.suspicions,
				(unsigned long long)pi.suspicions_false,
				(unsigned long long)pi.frames_resent);
		}
		for (uint32_t c = 0; c < w->o.channels; c++) {
			const struct chan_end *ce = &w->chans[c].ends[h];

			fprintf(out,
				"  host %u channel %u: sent %llu answered %llu delivered "
				"%llu%s%s%s\n",
				h, c, (unsigned long long)ce->send_next,
				(unsigned long long)ce->answered, (unsigned long long)ce->delivered,
				ce->is_connected ? " connected" : "", ce->is_down ? " down" : "",
				ce->is_freed ? " freed" : "");
		}
	}
}
