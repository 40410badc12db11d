/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_world - virtual time, the run, and looking in */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

#define PROOF_LEN    65536U
#define PROOF_GROWTH 4U /* of the loads that prove */
#define SETTLE_NS    MRC_S

/* ---- small things ---- */

void sim_grow(void *array, uint32_t *cap, uint32_t count, size_t size)
{
	uint32_t cap_new = *cap ? *cap : 8;
	void *at;

	if (count <= *cap)
		return;
	while (cap_new < count)
		cap_new *= 2;
	memcpy(&at, array, sizeof(at));
	at = realloc(at, cap_new * size);
	if (!at)
		abort();
	memset((char *)at + *cap * size, 0, (cap_new - *cap) * size);
	memcpy(array, &at, sizeof(at));
	*cap = cap_new;
}

void sim_trace(struct sim_world *w, const char *format, ...)
{
	char *line;
	va_list args;
	int len;

	if (!w->is_traced)
		return;
	line = w->trace[w->trace_count++ % w->trace_lines];
	len = snprintf(line, sizeof(*w->trace), "%12.3f us  ", (double)w->now_ns / 1000);
	va_start(args, format);
	vsnprintf(line + len, sizeof(*w->trace) - (size_t)len, format, args);
	va_end(args);
}

void sim_fail(struct sim_world *w, const char *check, const char *format, ...)
{
	va_list args;
	int len;

	if (w->failure[0])
		return;
	len = snprintf(w->failure, sizeof(w->failure), "%s: at %.3f us: ", check,
		       (double)w->now_ns / 1000);
	va_start(args, format);
	vsnprintf(w->failure + len, sizeof(w->failure) - (size_t)len, format, args);
	va_end(args);
	sim_trace(w, "FAILED %s", w->failure);
}

uint64_t sim_draw(struct sim_world *w, uint64_t below)
{
	return below ? mrc_rng_next(&w->rng) % below : 0;
}

bool sim_chance(struct sim_world *w, uint64_t permille)
{
	return permille && sim_draw(w, 1000) < permille;
}

/* Eight bytes a turn: the simulator spends much of its time here. */
uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[8][256];
	const uint8_t *p = data;

	if (!table[0][1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int k = 0; k < 8; k++)
				v = v & 1 ? v >> 1 ^ 0x82f63b78U : v >> 1;
			table[0][i] = v;
		}
		for (uint32_t i = 0; i < 256; i++) {
			for (uint32_t t = 1; t < 8; t++)
				table[t][i] =
					table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
		}
	}
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				      (uint32_t)p[3] << 24);

		crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^
		      table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^ table[3][p[4]] ^
		      table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	while (len--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

/* What message `number` of a channel and direction holds at `at`. */
uint8_t sim_byte_of(uint32_t chan, uint32_t side, uint64_t number, uint64_t at)
{
	uint64_t v = (number * 2654435761U) ^ ((uint64_t)chan << 20) ^ ((uint64_t)side << 28);

	return (uint8_t)((uint8_t)(v >> 8) ^ (uint8_t)(at * 31) ^ (uint8_t)(at >> 8));
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

	sim_grow(&w->heap, &w->heap_cap, w->heap_count, sizeof(*w->heap));
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

/* ---- steps ---- */

/* The host that this happens at, and that does nothing while it is paused. */
static uint32_t timer_host(const struct sim_world *w, const struct timer *t)
{
	switch (t->kind) {
	case T_ARRIVE: /* c is the sender's side */
		return w->pairs[t->a].hosts[1 - t->c];
	case T_FRAME_OUT:
		return SIM_NONE; /* the rail's doing */
	case T_SENT:
	case T_BROKEN:
	case T_ERROR:
	case T_TRIED:
	case T_FENCED:
		return w->pairs[t->a].hosts[t->c];
	case T_HELLO:
	case T_AUTH:
		return w->pairs[t->a].hosts[1];
	case T_ANSWER:
		return w->pairs[t->a].hosts[0];
	case T_ENGINE:
	case T_TURN:
		return w->pairs[t->a].hosts[t->b];
	case T_SEND:
	case T_THINK:
	case T_CANCEL:
	case T_KEY:
	case T_INCOMING:
		return w->pairs[w->chans[t->a]->pair].hosts[t->b];
	case T_CARRIER:
		return t->a;
	default:
		return SIM_NONE;
	}
}

/* All is healed: what each path carries now is to be its share. */
static void proof_begin(struct sim_world *w)
{
	struct mrc_path_info info;

	w->is_proving = true;
	w->proof_bytes = w->proof_bytes ? PROOF_GROWTH * w->proof_bytes : w->o.proof_bytes;
	for (uint32_t p = 0; p < w->pair_count; p++) {
		struct pair *pair = &w->pairs[p];

		for (uint32_t side = 0; side < 2; side++) {
			for (uint32_t r = 0; r < w->o.rails; r++) {
				mrc_conn_path_info(pair->ends[side].conn, (uint8_t)r, &info);
				pair->ends[side].good_bytes[r] = info.bytes_sent;
				pair->ends[side].good_suspicions[r] = info.suspicions;
			}
		}
		sim_pipe_new(w, pair->hosts[0], (uint32_t)w->o.clients, pair->hosts[1],
			     (uint32_t)w->o.clients, w->o.rails * w->proof_bytes / PROOF_LEN + 1,
			     true);
	}
}

static void timer_do(struct sim_world *w, const struct timer *t)
{
	switch (t->kind) {
	case T_FRAME_OUT:
		sim_frame_out(w, t->a, t->b, t->c, t->d);
		break;
	case T_ARRIVE:
		sim_arrive(w, t->a, t->b, t->c);
		break;
	case T_SENT:
		sim_sent(w, t->a, t->b, t->c, t->d);
		break;
	case T_BROKEN:
		sim_path_broken(w, t->a, t->b, t->c, t->d);
		break;
	case T_ERROR:
		sim_path_error(w, t->a, t->b, t->c, t->d);
		break;
	case T_TRIED:
		sim_tried(w, t->a, t->b, t->c, t->d);
		break;
	case T_ENGINE:
		sim_engine_timer(w, t->a, t->b, t->d);
		break;
	case T_TURN:
		w->pairs[t->a].ends[t->b].is_turn_due = false;
		sim_pump(w, t->a, t->b);
		break;
	case T_FENCED:
		sim_path_fenced(w, t->a, t->b, t->c, t->d);
		break;
	case T_HELLO:
		sim_hello(w, t->a, t->b, t->d);
		break;
	case T_ANSWER:
		sim_answer(w, t->a, t->b, t->d);
		break;
	case T_AUTH:
		sim_auth(w, t->a, t->b, t->d);
		break;
	case T_SEND:
		sim_channel_feed(w, w->chans[t->a], t->b);
		break;
	case T_THINK:
		sim_client_thinks(w, t->a, t->b, t->d);
		break;
	case T_CANCEL:
		sim_channel_cancel(w, t->a, t->b, t->d);
		break;
	case T_KEY:
		sim_key_given(w, t->a, t->b, t->c);
		break;
	case T_INCOMING:
		sim_channel_answer(w, t->a, t->b, t->c);
		break;
	case T_PIPE:
		sim_pipe_open(w, t->a);
		break;
	case T_FAULT:
		sim_fault_draw(w);
		break;
	case T_FAULT_END:
		sim_fault_end(w, t->a);
		break;
	case T_FLAP:
		sim_flap_turn(w, t->a, t->d);
		break;
	case T_CARRIER:
		sim_carrier_tell(w, t->a, t->b);
		break;
	case T_CALL:
		w->calls[t->a].call(w, w->calls[t->a].context);
		break;
	case T_PROOF:
		proof_begin(w);
		break;
	case T_KIND_COUNT:
		break;
	}
}

static void hash_add(struct sim_world *w, const struct timer *t)
{
	const uint64_t words[] = {w->now_ns, (uint64_t)t->kind, t->a, t->b, t->c, t->d};

	for (size_t i = 0; i < MRC_ARRAY_LEN(words); i++)
		w->hash = (w->hash ^ words[i]) * 0x100000001b3ULL;
}

bool sim_step(struct sim_world *w)
{
	struct timer t;
	uint32_t host;

	if (w->failure[0] || !w->heap_count)
		return false;
	t = timer_pop(w);
	w->now_ns = MRC_MAX(w->now_ns, t.at_ns);
	hash_add(w, &t);
	w->counts.events++;
	host = timer_host(w, &t);
	if (host != SIM_NONE && w->hosts[host].paused) {
		struct host *h = &w->hosts[host];

		sim_grow(&h->deferred, &h->deferred_cap, h->deferred_count + 1,
			 sizeof(*h->deferred));
		h->deferred[h->deferred_count++] = t;
		return true;
	}
	timer_do(w, &t);
	if (w->counts.events > EVENTS_MAX)
		sim_fail(w, "progress", "more than %u events", EVENTS_MAX);
	return !w->failure[0];
}

bool sim_run_until(struct sim_world *w, sim_cond_fn cond, void *context, uint64_t by_ns)
{
	while (!cond(w, context)) {
		if (w->failure[0] || !w->heap_count || w->heap[0].at_ns > by_ns) {
			if (!w->failure[0])
				w->now_ns = MRC_MAX(w->now_ns, by_ns);
			return false;
		}
		sim_step(w);
	}
	return !w->failure[0];
}

static bool never(struct sim_world *w, void *context)
{
	(void)w;
	(void)context;
	return false;
}

bool sim_run_to(struct sim_world *w, uint64_t at_ns)
{
	sim_run_until(w, never, NULL, at_ns);
	return !w->failure[0];
}

void sim_at(struct sim_world *w, uint64_t at_ns, sim_call_fn call, void *context)
{
	sim_grow(&w->calls, &w->call_cap, w->call_count + 1, sizeof(*w->calls));
	w->calls[w->call_count].call = call;
	w->calls[w->call_count].context = context;
	sim_timer_add(w, at_ns, T_CALL, w->call_count++, 0, 0, 0);
}

void sim_fail_script(struct sim_world *w, const char *what)
{
	sim_fail(w, "script", "%s", what);
}

/* ---- the run ---- */

static void name_host(const struct sim_world *w, uint32_t host, char out[8])
{
	if (w->o.hosts <= 26)
		snprintf(out, 8, "%c", 'a' + (int)host);
	else
		snprintf(out, 8, "h%03u", host % 1000);
}

struct sim_world *sim_new(const struct sim_options *options)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	uint32_t hosts = (uint32_t)options->hosts;
	uint32_t clients = (uint32_t)options->clients + (options->proof_bytes != 0);
	uint32_t p = 0;

	if (!w)
		abort();
	w->o = *options;
	w->rng.state = options->seed;
	w->hash = 0xcbf29ce484222325ULL;
	w->serial_next = 1;
	w->handle_next = 1;
	w->hosts = calloc(hosts, sizeof(*w->hosts));
	w->pair_count = hosts * (hosts - 1) / 2;
	w->pairs = calloc(w->pair_count, sizeof(*w->pairs));
	w->pair_of = calloc((size_t)hosts * hosts, sizeof(*w->pair_of));
	if (!w->hosts || !w->pairs || !w->pair_of)
		abort();
	for (uint32_t h = 0; h < hosts; h++) {
		struct host *host = &w->hosts[h];

		name_host(w, h, host->name);
		host->is_fast = options->fast_host == h + 1;
		host->offset_ns = h * MRC_S;
		host->ports = calloc(options->rails, sizeof(*host->ports));
		host->clients = calloc(clients, sizeof(struct client *));
		if (!host->ports || !host->clients)
			abort();
		for (uint32_t r = 0; r < options->rails; r++) {
			host->ports[r] = (struct port){.is_carrier = true,
						       .is_carrier_told = true,
						       .slow = 1,
						       .delay_factor = 1};
		}
		for (uint32_t c = 0; c < clients; c++)
			host->clients[c] =
				sim_client_new(w, h, c,
					       c < options->clients
						       ? options->arena_bytes
						       : 16 * options->rails * PROOF_LEN);
	}
	for (uint32_t a = 0; a < hosts; a++) {
		for (uint32_t b = a + 1; b < hosts; b++) {
			struct pair *pair = &w->pairs[p];

			pair->hosts[0] = a;
			pair->hosts[1] = b;
			pair->paths = calloc(options->rails, sizeof(*pair->paths));
			if (!pair->paths)
				abort();
			for (uint32_t r = 0; r < options->rails; r++)
				pair->paths[r].is_verbs = options->verbs >> r & 1;
			w->pair_of[a * hosts + b] = p;
			w->pair_of[b * hosts + a] = p++;
		}
	}
	for (uint32_t h = 0; h < hosts; h++)
		sim_host_start(w, h);
	return w;
}

void sim_free(struct sim_world *w)
{
	if (!w)
		return;
	for (uint32_t p = 0; p < w->pair_count; p++)
		sim_pair_free(w, &w->pairs[p]);
	for (uint32_t c = 0; c < w->chan_count; c++) {
		for (uint32_t side = 0; side < 2; side++) {
			struct chan_end *ce = &w->chans[c]->ends[side];

			for (uint64_t n = 0; n < ce->msg_cap; n++)
				free(ce->msgs[n].spans);
			free(ce->msgs);
			sim_end_free(ce);
		}
		free(w->chans[c]);
	}
	for (uint32_t h = 0; h < w->o.hosts; h++) {
		for (uint32_t c = 0; c < w->o.clients + (w->o.proof_bytes != 0); c++)
			sim_client_put(w->hosts[h].clients[c]);
		free(w->hosts[h].clients);
		free(w->hosts[h].ports);
		free(w->hosts[h].deferred);
	}
	for (uint32_t i = 0; i < w->pipe_count; i++)
		free(w->pipes[i]);
	free(w->hosts);
	free(w->pairs);
	free(w->pair_of);
	free(w->chans);
	free(w->pipes);
	free(w->active);
	free(w->calls);
	free(w->heap);
	free(w->trace);
	free(w);
}

bool sim_is_all_good(struct sim_world *w)
{
	struct mrc_conn_info info;

	for (uint32_t p = 0; p < w->pair_count; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (!w->pairs[p].ends[side].conn)
				return false;
			mrc_conn_info(w->pairs[p].ends[side].conn, &info);
			if (info.paths_good < w->o.rails)
				return false;
		}
	}
	return true;
}

static bool is_finished(struct sim_world *w)
{
	if (w->ends_open)
		return false;
	for (uint32_t i = 0; i < w->pipe_count; i++) {
		if (w->pipes[i]->left[0] || w->pipes[i]->left[1] || w->pipes[i]->chan != SIM_NONE)
			return false;
	}
	return sim_is_all_good(w) && sim_is_clean(w, NULL, 0);
}

static void pipes_draw(struct sim_world *w)
{
	for (uint64_t i = 0; i < w->o.pipes; i++) {
		uint32_t from = (uint32_t)sim_draw(w, w->o.hosts);
		uint32_t to = (uint32_t)((from + 1 + sim_draw(w, w->o.hosts - 1)) % w->o.hosts);
		uint32_t from_client = (uint32_t)sim_draw(w, w->o.clients);
		uint32_t to_client = (uint32_t)sim_draw(w, w->o.clients);

		sim_pipe_new(w, from, from_client, to, to_client, w->o.messages, false);
	}
}

static void progress_fail(struct sim_world *w)
{
	char why[160] = "";
	struct mrc_conn_info info;

	for (uint32_t p = 0; p < w->pair_count && !why[0]; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			mrc_conn_info(w->pairs[p].ends[side].conn, &info);
			if (info.paths_good < w->o.rails)
				snprintf(why, sizeof(why), "host %s has %u of %u paths to %s",
					 w->hosts[w->pairs[p].hosts[side]].name, info.paths_good,
					 (unsigned)w->o.rails,
					 w->hosts[w->pairs[p].hosts[1 - side]].name);
		}
	}
	if (!why[0])
		sim_is_clean(w, why, sizeof(why));
	sim_fail(w, "progress",
		 "%s: not finished %.1f s after the last fault, %u channel ends are not freed; %s",
		 w->is_proving ? "proof" : "run", (double)w->o.heal_ns / MRC_S, w->ends_open, why);
}

/*
 * A rail that was slow has to carry something before it is known to be fast again, and a load of
 * a few round trips may be over by then: it is given larger ones before it is judged. False: one
 * has begun.
 */
static bool share_is_proved(struct sim_world *w)
{
	char why[SIM_SHARE_WHY_BYTES];

	if (sim_is_share_fair(w, why))
		return true;
	if (w->proof_bytes >= PROOF_GROWTH * PROOF_GROWTH * w->o.proof_bytes) {
		sim_fail(w, "share", "%s", why);
		return true;
	}
	w->heal_by_ns = w->now_ns + w->o.heal_ns;
	proof_begin(w);
	return false;
}

int sim_run(struct sim_world *w)
{
	pipes_draw(w);
	w->faults_left = w->o.faults;
	sim_timer_add(w, 2 * MRC_MS, T_FAULT, 0, 0, 0, 0);
	while (sim_step(w)) {
		if (w->faults_left || w->active_count)
			continue;
		if (w->heal_by_ns == 0)
			w->heal_by_ns = w->now_ns + w->o.heal_ns;
		if ((w->counts.events & 63) == 0 && is_finished(w)) {
			sim_check_clean(w);
			if (w->o.proof_bytes && !w->is_settling) {
				/* What the paths know of their delay may still be of the faults. */
				w->is_settling = true;
				w->heal_by_ns = w->now_ns + SETTLE_NS + w->o.heal_ns;
				sim_timer_add(w, w->now_ns + SETTLE_NS, T_PROOF, 0, 0, 0, 0);
				continue;
			}
			if (w->is_settling && !w->is_proving)
				continue;
			if (w->is_proving && !share_is_proved(w))
				continue;
			return w->failure[0] != 0;
		}
		if (w->now_ns > w->heal_by_ns)
			progress_fail(w);
	}
	if (!w->failure[0])
		progress_fail(w);
	return 1;
}
