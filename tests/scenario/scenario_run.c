/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_run - play a scenario on the simulator
 *
 * The world warms up until all paths are GOOD; then time 0. After each step the
 * conditions of `when` and of the claims are looked at. At the end everything
 * is healed and closed, and all memory must come back and all paths with it.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "scenario_impl.h"

#define WARM_NS  (10 * MRC_S)
#define LIMIT_NS (20 * MRC_S) /* after the last `at`, when the file names no end */
#define WIND_NS  (60 * MRC_S) /* for all to be answered, closed and healed in the end */

static uint64_t time_of(const struct sc_run *run)
{
	return sim_now_ns(run->world) - run->start_ns;
}

static void fail(struct sc_run *run, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void fail(struct sc_run *run, uint32_t line, const char *format, ...)
{
	const char *text = line ? run->sc->lines[line - 1] : "";
	char what[400];
	va_list args;

	if (run->failure[0])
		return;
	text += strspn(text, " \t");
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(run->failure, sizeof(run->failure), "%s:%u: at %.3f us: %s%s%.*s%s", run->sc->path,
		 line, (double)time_of(run) / MRC_US, what, line ? ": `" : "",
		 (int)strcspn(text, "#"), text, line ? "`" : "");
}

/* ---- calls at a time ---- */

static void call_now(struct sim_world *world, void *context)
{
	struct sc_call *call = context;

	(void)world;
	call->call(call->run, call);
}

static struct sc_call *call_at(struct sc_run *run, uint64_t at_ns, uint32_t event,
			       void (*fn)(struct sc_run *run, struct sc_call *self))
{
	struct sc_call *call = calloc(1, sizeof(*call));

	if (!call)
		abort();
	*call = (struct sc_call){
		.run = run, .next = run->calls, .call = fn, .event = event, .active = SC_NONE};
	run->calls = call;
	sim_at(run->world, at_ns, call_now, call);
	return call;
}

/* ---- faults ---- */

static uint32_t fault_begin(struct sc_run *run, const struct sim_fault_spec *spec)
{
	struct sc_active *active =
		realloc(run->active, (run->active_count + 1) * sizeof(*run->active));

	if (!active)
		abort();
	run->active = active;
	active[run->active_count] =
		(struct sc_active){.handle = sim_fault_begin(run->world, spec), .spec = *spec};
	return run->active_count++;
}

static void fault_end(struct sc_run *run, uint32_t i)
{
	struct sc_active *active = &run->active[i];

	if (!active->is_over && active->handle)
		sim_fault_end(run->world, active->handle);
	active->is_over = true;
}

/* All of a host that `kind` says; SIM_FAULT_COUNT: all of this rail. */
static bool faults_end(struct sc_run *run, uint32_t host, enum sim_fault kind, uint32_t rail)
{
	bool is_any = false;

	for (uint32_t i = 0; i < run->active_count; i++) {
		const struct sc_active *active = &run->active[i];
		bool is_two_ended = active->spec.kind == SIM_CARRIER_BOTH;

		if (active->is_over || !active->handle ||
		    (active->spec.host != host && !(is_two_ended && active->spec.peer == host)))
			continue;
		if (kind == SIM_FAULT_COUNT
			    ? active->spec.rail == rail && active->spec.kind != SIM_PAUSE &&
				      active->spec.kind != SIM_RESTART &&
				      active->spec.kind != SIM_HANDOVER
			    : active->spec.kind == kind) {
			fault_end(run, i);
			is_any = true;
		}
	}
	return is_any;
}

static void done(struct sc_run *run, uint32_t event)
{
	run->is_done[event] = true;
}

static void span_over(struct sc_run *run, struct sc_call *self)
{
	const struct sc_action *a = &run->sc->events[self->event].action;

	if (self->active != SC_NONE)
		fault_end(run, self->active);
	else if (a->kind == SC_CLIENT_STALL)
		sim_client_stall(run->world, a->host, a->client, false);
	else if (a->kind == SC_DENY)
		sim_deny(run->world, a->host, a->rail, false);
	done(run, self->event);
}

static void flap_turn(struct sc_run *run, struct sc_call *self)
{
	const struct sc_action *a = &run->sc->events[self->event].action;
	uint64_t now_ns = sim_now_ns(run->world);
	struct sc_call *next;
	uint32_t active = SC_NONE;

	if (self->active != SC_NONE)
		fault_end(run, self->active);
	else if (now_ns < self->until_ns)
		active = fault_begin(run, &a->fault);
	if (active == SC_NONE && now_ns >= self->until_ns) {
		done(run, self->event);
		return;
	}
	next = call_at(run, now_ns + a->amount, self->event, flap_turn);
	next->active = active;
	next->until_ns = self->until_ns;
}

/* ---- actions ---- */

static void channel_open(struct sc_run *run, const struct sc_event *e)
{
	const struct sc_action *a = &e->action;

	if (sim_conn(run->world, a->host, a->peer))
		run->channels[a->channel] = sim_open(run->world, &a->spec);
	if (run->channels[a->channel] == SC_NONE)
		fail(run, e->line, "the channel cannot be opened now");
}

static void give_up(struct sc_run *run, struct sc_call *self)
{
	const struct sc_action *a = &run->sc->events[self->event].action;

	sim_cancel(run->world, run->channels[a->channel], a->host, self->msg);
}

static void send_one(struct sc_run *run, const struct sc_event *e, uint32_t msg)
{
	const struct sc_action *a = &e->action;
	uint32_t role = run->sc->channels[a->channel].from != a->host;

	if (run->channels[a->channel] == SC_NONE) {
		fail(run, e->line, "the channel is not open yet");
		return;
	}
	run->numbers[a->channel][role][msg] =
		(uint32_t)sim_send(run->world, run->channels[a->channel], a->host, a->len,
				   a->level);
	run->planned[a->channel][role]++;
	if (a->is_given_up)
		call_at(run, sim_now_ns(run->world) + a->give_up_ns,
			(uint32_t)(e - run->sc->events), give_up)
			->msg = run->numbers[a->channel][role][msg];
}

static void send_next(struct sc_run *run, struct sc_call *self)
{
	const struct sc_event *e = &run->sc->events[self->event];
	struct sc_call *next;

	send_one(run, e, self->msg);
	if (self->msg == e->action.msg_to) {
		done(run, self->event);
		return;
	}
	next = call_at(run, sim_now_ns(run->world) + e->action.every_ns, self->event, send_next);
	next->msg = self->msg + 1;
}

static void cancel(struct sc_run *run, const struct sc_event *e)
{
	const struct sc_action *a = &e->action;
	uint32_t role = run->sc->channels[a->channel].from != a->host;

	for (uint32_t m = a->msg_from; m <= a->msg_to; m++) {
		uint32_t number = run->numbers[a->channel][role][m];

		if (number == SC_NONE)
			fail(run, e->line, "m%u is not sent yet", m);
		else
			sim_cancel(run->world, run->channels[a->channel], a->host, number);
	}
}

static void act(struct sc_run *run, uint32_t index)
{
	const struct sc_event *e = &run->sc->events[index];
	const struct sc_action *a = &e->action;
	struct sim_world *w = run->world;
	uint64_t now_ns = sim_now_ns(w);
	uint32_t active = SC_NONE;
	struct sc_call *call;

	switch (a->kind) {
	case SC_OPEN:
		channel_open(run, e);
		break;
	case SC_SEND:
		if (a->every_ns) {
			call_at(run, now_ns, index, send_next)->msg = a->msg_from;
			return;
		}
		for (uint32_t m = a->msg_from; m <= a->msg_to && !run->failure[0]; m++)
			send_one(run, e, m);
		break;
	case SC_CANCEL:
		cancel(run, e);
		break;
	case SC_CLOSE:
		if (run->channels[a->channel] == SC_NONE)
			fail(run, e->line, "the channel is not open yet");
		else
			sim_close(w, run->channels[a->channel], a->host);
		break;
	case SC_CLIENT_STALL:
	case SC_CLIENT_RESUME:
		sim_client_stall(w, a->host, a->client, a->kind == SC_CLIENT_STALL);
		break;
	case SC_CLIENT_DIE:
		sim_client_kill(w, a->host, a->client);
		break;
	case SC_CLIENT_MANNER:
		sim_client_manner(w, a->host, a->client, a->manner);
		break;
	case SC_FAULT:
		active = fault_begin(run, &a->fault);
		break;
	case SC_FLAP:
		call = call_at(run, now_ns, index, flap_turn);
		call->until_ns = now_ns + a->span_ns;
		return;
	case SC_HEAL:
		if (!faults_end(run, a->host, SIM_FAULT_COUNT, a->rail))
			fail(run, e->line, "nothing is wrong with this rail");
		break;
	case SC_RESUME:
		if (!faults_end(run, a->host, SIM_PAUSE, 0))
			fail(run, e->line, "the host is not paused");
		break;
	case SC_START:
		if (!faults_end(run, a->host, SIM_RESTART, 0))
			fail(run, e->line, "the host is not stopped");
		break;
	case SC_DENY:
	case SC_ALLOW:
		sim_deny(w, a->host, a->rail, a->kind == SC_DENY);
		break;
	case SC_NOTHING:
		break;
	}
	if (a->span_ns)
		call_at(run, now_ns + a->span_ns, index, span_over)->active = active;
	else
		done(run, index);
}

static void happen(struct sc_run *run, uint32_t index)
{
	const struct sc_event *e = &run->sc->events[index];

	run->is_triggered[index] = true;
	if (e->label != SC_NONE) {
		run->label_ns[e->label] = sim_now_ns(run->world);
		sc_bases_set(run, e->label);
	}
	act(run, index);
}

static void happen_call(struct sc_run *run, struct sc_call *self)
{
	happen(run, self->event);
}

static void end_call(struct sc_run *run, struct sc_call *self)
{
	(void)self;
	run->is_ended = true;
}

/* ---- claims ---- */

static void claim_fail(struct sc_run *run, struct sc_claim *c, const char *what)
{
	char seen[200];

	sc_seen(run, &c->clause, seen, sizeof(seen));
	fail(run, c->line, "%s (%s)", what, seen);
}

static bool is_reached(const struct sc_run *run, uint32_t label)
{
	return label != SC_NONE && run->label_ns[label] != MRC_NEVER;
}

static void claim_look(struct sc_run *run, uint32_t index)
{
	struct sc_claim *c = &run->sc->claims[index];
	uint64_t from_ns = run->start_ns;
	bool is_so;

	if (c->kind == SC_AT_END || run->is_met[index])
		return;
	if (c->from != SC_NONE) {
		if (!is_reached(run, c->from))
			return;
		from_ns = run->label_ns[c->from];
	}
	if (c->kind == SC_WITHIN) {
		/* What became true by this step did so too late, if the step is. */
		if (sim_now_ns(run->world) > from_ns + c->within_ns)
			claim_fail(run, c, "not within its time");
		else if (sc_holds(run, &c->clause))
			run->is_met[index] = true;
		return;
	}
	if (is_reached(run, c->until))
		return;
	is_so = sc_holds(run, &c->clause);
	if (is_so != (c->kind == SC_ALWAYS))
		claim_fail(run, c, is_so ? "once, and never was claimed" : "not always");
}

/* `when` first: what it begins belongs to this moment. */
static void look(struct sc_run *run)
{
	struct scenario *sc = run->sc;

	sc_flows_watch(run);
	for (uint32_t i = 0; i < sc->event_count && !run->failure[0]; i++) {
		struct sc_event *e = &sc->events[i];

		if (!e->is_when || run->is_triggered[i] || !sc_holds(run, &e->when))
			continue;
		run->is_triggered[i] = true;
		if (e->at_ns)
			call_at(run, sim_now_ns(run->world) + e->at_ns, i, happen_call);
		else
			happen(run, i);
	}
	for (uint32_t i = 0; i < sc->claim_count && !run->failure[0]; i++)
		claim_look(run, i);
}

/* ---- the run ---- */

/* A message that will be answered and is not: its line of the trace, or false. */
static bool is_answer_due(struct sc_run *run, char *what, size_t what_len)
{
	for (uint32_t c = 0; c < run->sc->channel_count; c++) {
		const struct sc_channel *ch = &run->sc->channels[c];

		for (uint32_t role = 0; role < 2 && run->channels[c] != SC_NONE; role++) {
			uint32_t host = role ? ch->to : ch->from;
			struct sim_channel_status status;

			sim_channel_status(run->world, run->channels[c], host, &status);
			if (status.is_down || status.is_freed ||
			    status.answered >= run->planned[c][role])
				continue;
			snprintf(what, what_len, "%c on %s has %llu of %llu messages answered",
				 (int)('a' + host), ch->name, (unsigned long long)status.answered,
				 (unsigned long long)run->planned[c][role]);
			return true;
		}
	}
	return false;
}

/* Is there anything left that the file waits for? The line, and what. */
static bool is_waiting(struct sc_run *run, uint32_t *line, char *what, size_t what_len)
{
	struct scenario *sc = run->sc;

	*line = 0;
	for (uint32_t i = 0; i < sc->event_count; i++) {
		if (run->is_done[i])
			continue;
		*line = sc->events[i].line;
		snprintf(what, what_len, "this has not happened");
		return true;
	}
	for (uint32_t i = 0; i < sc->claim_count; i++) {
		if (sc->claims[i].kind != SC_WITHIN || run->is_met[i])
			continue;
		*line = sc->claims[i].line;
		snprintf(what, what_len, "this has not come true");
		return true;
	}
	return is_answer_due(run, what, what_len);
}

static bool warmed_up(struct sim_world *world, void *context)
{
	(void)context;
	return sim_is_all_good(world);
}

static void play(struct sc_run *run)
{
	uint64_t limit_ns;
	uint32_t line;
	char what[200];

	if (!run->sc->is_cold && !sim_run_until(run->world, warmed_up, NULL, WARM_NS)) {
		fail(run, 0, "not all paths came up in the first %llu s", WARM_NS / MRC_S);
		return;
	}
	run->start_ns = sim_now_ns(run->world);
	limit_ns = run->start_ns;
	for (uint32_t i = 0; i < run->sc->event_count; i++) {
		const struct sc_event *e = &run->sc->events[i];

		if (e->is_when)
			continue;
		call_at(run, run->start_ns + e->at_ns, i, happen_call);
		limit_ns = MRC_MAX(limit_ns, run->start_ns + e->at_ns + e->action.span_ns);
	}
	limit_ns += LIMIT_NS;
	if (run->sc->end_ns) {
		limit_ns = MRC_NEVER;
		call_at(run, run->start_ns + run->sc->end_ns, 0, end_call);
	}
	while (!run->failure[0] && !run->is_ended && sim_step(run->world)) {
		sc_health_watch(run);
		look(run);
		if (sim_now_ns(run->world) > limit_ns) {
			is_waiting(run, &line, what, sizeof(what));
			fail(run, line, "%s", what);
		}
		if (!run->sc->end_ns && !is_waiting(run, &line, what, sizeof(what)))
			break;
	}
	if (run->failure[0] || sim_failure(run->world))
		return;
	for (uint32_t i = 0; i < run->sc->event_count; i++) {
		if (!run->is_triggered[i])
			fail(run, run->sc->events[i].line, "this has not happened");
	}
	for (uint32_t i = 0; i < run->sc->claim_count; i++) {
		struct sc_claim *c = &run->sc->claims[i];

		if (c->kind == SC_WITHIN && !run->is_met[i])
			claim_fail(run, c, "this has not come true");
		if (c->kind == SC_AT_END && !sc_holds(run, &c->clause))
			claim_fail(run, c, "not so in the end");
		if (c->kind != SC_WITHIN && c->from != SC_NONE && !is_reached(run, c->from))
			fail(run, c->line, "its time never came");
	}
}

static bool all_answered(struct sim_world *world, void *context)
{
	char what[200];

	(void)world;
	return !is_answer_due(context, what, sizeof(what));
}

static bool all_clean(struct sim_world *world, void *context)
{
	(void)context;
	return sim_is_clean(world, NULL, 0) && sim_is_all_good(world);
}

/* Heal all, let all be answered, close all: then nothing may be left and no path be away. */
static void wind_up(struct sc_run *run)
{
	struct sim_world *w = run->world;
	const struct sim_options *o = &run->sc->options;
	char what[200];

	for (uint32_t i = 0; i < run->active_count; i++)
		fault_end(run, i);
	for (uint32_t h = 0; h < o->hosts; h++) {
		for (uint32_t r = 0; r < o->rails; r++)
			sim_deny(w, h, r, false);
		for (uint32_t c = 0; c < o->clients; c++) {
			sim_client_manner(w, h, c, SIM_AS_DRAWN);
			sim_client_stall(w, h, c, false);
		}
	}
	if (!sim_run_until(w, all_answered, run, sim_now_ns(w) + WIND_NS)) {
		is_answer_due(run, what, sizeof(what));
		fail(run, 0, "healed for %llu s, and %s", WIND_NS / MRC_S, what);
		return;
	}
	for (uint32_t c = 0; c < run->sc->channel_count; c++) {
		if (run->channels[c] != SC_NONE)
			sim_close(w, run->channels[c], run->sc->channels[c].from);
	}
	if (!sim_run_until(w, all_clean, run, sim_now_ns(w) + WIND_NS)) {
		sim_is_clean(w, what, sizeof(what));
		fail(run, 0, "closed and healed for %llu s, and %s", WIND_NS / MRC_S,
		     what[0] ? what : "not all paths are good");
	}
}

static void on_path(struct sim_world *world, const struct sim_path_change *change, void *context)
{
	struct sc_run *run = context;

	(void)world;
	if (change->to == MRC_PATH_ASSUMED_BAD)
		run->moved[change->host][change->peer][change->rail] += change->moved;
}

static void run_free(struct sc_run *run)
{
	while (run->calls) {
		struct sc_call *call = run->calls;

		run->calls = call->next;
		free(call);
	}
	free(run->active);
	sc_health_fini(run);
	free(run);
}

int scenario_run(struct scenario *sc, uint64_t seed, uint32_t trace_lines, bool is_traced,
		 FILE *out)
{
	struct sc_run *run = calloc(1, sizeof(*run));
	struct sim_options options = sc->options;
	int r;

	if (!run)
		abort();
	options.seed = seed;
	run->sc = sc;
	run->world = sim_new(&options);
	sc_health_init(run);
	memset(run->channels, 0xff, sizeof(run->channels));
	memset(run->numbers, 0xff, sizeof(run->numbers));
	for (uint32_t i = 0; i < SC_LABELS_MAX; i++)
		run->label_ns[i] = MRC_NEVER;
	for (uint32_t i = 0; i < sc->event_count + sc->claim_count; i++) {
		struct sc_clause *clause = i < sc->event_count
						   ? &sc->events[i].when
						   : &sc->claims[i - sc->event_count].clause;

		for (uint32_t k = 0; k < clause->count; k++) {
			memset(clause->conds[k].base, 0, sizeof(clause->conds[k].base));
			clause->conds[k].msg_so_far = clause->conds[k].msg_from;
		}
	}
	if (trace_lines)
		sim_trace_on(run->world, trace_lines);
	sim_path_watch(run->world, on_path, run);
	play(run);
	if (!run->failure[0] && !sim_failure(run->world))
		wind_up(run);
	/* A checker's word comes first: it is nearer to the cause. */
	if (sim_failure(run->world))
		snprintf(run->failure, sizeof(run->failure), "%s: checker %s", sc->path,
			 sim_failure(run->world));
	r = run->failure[0] != 0;
	if (out && trace_lines && (r || is_traced)) {
		fprintf(out, "time 0 of the scenario is %.3f us of the trace\n",
			(double)run->start_ns / MRC_US);
		sim_trace_print(run->world, out);
		sim_report(run->world, out);
	}
	if (out && r)
		fprintf(out, "%s (seed %llu)\n", run->failure, (unsigned long long)seed);
	sim_free(run->world);
	run_free(run);
	return r;
}
