/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_parse - a scenario file, whole, before anything runs
 *
 * One statement a line; each is read by the function of its first word. A line
 * in error is told and skipped, so that one look shows them all.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

struct parser {
	struct scenario *sc;
	FILE *errors;
	uint32_t line;
	uint32_t error_count;
	bool is_label_given[SC_LABELS_MAX]; /* by a statement parsed so far */
	bool is_line_bad;
	bool has_hosts;
	struct sc_words words;
};

static const char *const state_names[MRC_PATH_STATE_COUNT] = {
	"connecting", "probing", "good", "assumed-bad", "denied",
};
static const char *const reason_names[MRC_REASON_COUNT] = {
	"none",       "silent",   "carrier", "peer-port", "error", "closed",   "peer-fence",
	"corrupting", "protocol", "connect", "operator",  "probe", "new-conn",
};
static const char *const level_names[] = {NULL, "placed", "visible", "committed"};
static const char *const message_names[SC_MSG_STATE_COUNT] = {
	"sent", "answered", "delivered", "visible", "committed", "rejected", "released", "gap",
};
static const char *const outcome_names[] = {
	"ok",     "rejected", "unknown",    "peer-died", "timed-out",
	"closed", "too-big",  "no-service", "no-peer",   "refused",
};
static const char *const channel_state_names[] = {"up", "down", "freed"};
static const char *const op_names[] = {"==", "!=", "<", "<=", ">", ">="};

struct metric {
	const char *name;
	enum sc_value unit;
};
#define X(name, field, unit) {#name, SC_##unit},
static const struct metric rail_metrics[] = {SC_RAIL_METRICS(X){"moved", SC_COUNT},
					     {"degraded", SC_COUNT},
					     {"failing", SC_COUNT},
					     {"share", SC_SHARE}};
#undef X
#define X(name, field) {#name, SC_COUNT},
static const struct metric conn_metrics[] = {SC_CONN_METRICS(X){"memory", SC_BYTES}};
#undef X
#define X(name) {#name, SC_COUNT},
static const struct metric channel_metrics[] = {SC_CHANNEL_METRICS(X){"stall", SC_TIME},
						{"latency", SC_TIME}};
static const struct metric world_metrics[] = {SIM_COUNTS(X)};
#undef X
#define X(name, help) #name,
static const char *const option_names[] = {SIM_OPTIONS(X)};
#undef X

/* ---- errors ---- */

static void bad(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void bad(struct parser *p, const char *format, ...)
{
	va_list args;

	if (p->is_line_bad)
		return; /* what follows from the first error of a line helps nobody */
	p->is_line_bad = true;
	p->error_count++;
	fprintf(p->errors, "%s:%u: ", p->sc->path, p->line);
	va_start(args, format);
	vfprintf(p->errors, format, args);
	va_end(args);
	fputc('\n', p->errors);
}

static const char *shown(const char *word)
{
	return word[0] ? word : "end of line";
}

static void bad_word(struct parser *p, const char *word, const char *what, const char *allowed)
{
	bad(p, "'%s' is not %s; allowed: %s", shown(word), what, allowed);
}

static uint32_t name_of(struct parser *p, const char *const *names, uint32_t count,
			const char *what)
{
	const char *word = sc_take(&p->words);
	uint32_t i = sc_find(names, count, word);
	char list[512];

	if (i == SC_NONE) {
		sc_list(names, count, list, sizeof(list));
		bad_word(p, word, what, list);
	}
	return i;
}

static uint64_t number_of(struct parser *p, enum sc_value unit, const char *what)
{
	const char *word = sc_take(&p->words);
	uint64_t value = 0;

	if (!sc_number(word, unit, &value))
		bad_word(p, word, what, sc_unit_help(unit));
	return value;
}

static uint32_t bounded(struct parser *p, const char *what, uint64_t from, uint64_t below)
{
	const char *word = sc_take(&p->words);
	uint64_t value = 0;

	if (!sc_number(word, SC_COUNT, &value) || value < from || value >= below) {
		bad(p, "'%s' is not %s; allowed: %llu to %llu", shown(word), what,
		    (unsigned long long)from, (unsigned long long)below - 1);
		return (uint32_t)from;
	}
	return (uint32_t)value;
}

static void metrics_list(const struct metric *metrics, uint32_t count, char *out, size_t out_len)
{
	const char *names[64];

	for (uint32_t i = 0; i < count; i++)
		names[i] = metrics[i].name;
	sc_list(names, count, out, out_len);
}

static uint32_t metric_find(const struct metric *metrics, uint32_t count, const char *word)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!strcmp(metrics[i].name, word))
			return i;
	}
	return SC_NONE;
}

/* ---- hosts, channels, labels ---- */

static uint32_t host_find(const struct parser *p, const char *word)
{
	uint32_t host = (uint32_t)((unsigned char)word[0] - 'a');

	return word[0] && !word[1] && host < p->sc->options.hosts ? host : SC_NONE;
}

static uint32_t host_of(struct parser *p)
{
	const char *word = sc_take(&p->words);
	uint32_t host = host_find(p, word);

	if (host == SC_NONE) {
		bad(p, "'%s' is not a host; allowed: a to %c", shown(word),
		    (int)('a' + p->sc->options.hosts - 1));
		return 0;
	}
	return host;
}

/* `to H`; with two hosts it need not be said. */
static uint32_t peer_of(struct parser *p, uint32_t host)
{
	if (sc_took(&p->words, "to")) {
		uint32_t peer = host_of(p);

		if (peer == host)
			bad(p, "a host is not its own peer");
		return peer;
	}
	if (p->sc->options.hosts > 2)
		bad(p, "which peer? With more than 2 hosts say `to HOST` here");
	return host == 0;
}

static uint32_t channel_find(const struct parser *p, const char *word)
{
	for (uint32_t i = 0; i < p->sc->channel_count; i++) {
		if (!strcmp(p->sc->channels[i].name, word))
			return i;
	}
	return SC_NONE;
}

/* Of which `host` is one end. */
static uint32_t channel_of(struct parser *p, uint32_t host)
{
	const char *names[SC_CHANNELS_MAX];
	const char *word = sc_take(&p->words);
	uint32_t i = channel_find(p, word);
	char list[256];

	if (i == SC_NONE) {
		for (uint32_t c = 0; c < p->sc->channel_count; c++)
			names[c] = p->sc->channels[c].name;
		sc_list(names, p->sc->channel_count, list, sizeof(list));
		bad_word(p, word, "a channel opened above", list[0] ? list : "none is open yet");
		return 0;
	}
	if (p->sc->channels[i].from != host && p->sc->channels[i].to != host)
		bad(p, "host %c is no end of %s; allowed: %c, %c", (int)('a' + host), word,
		    (int)('a' + p->sc->channels[i].from), (int)('a' + p->sc->channels[i].to));
	return i;
}

static bool message_name(const char *word, uint32_t *number_out, const char **end_out)
{
	char *end;
	unsigned long n;

	if (word[0] != 'm' || word[1] < '1' || word[1] > '9')
		return false;
	n = strtoul(word + 1, &end, 10);
	if (n > SC_MESSAGES_MAX)
		return false;
	*number_out = (uint32_t)n;
	*end_out = end;
	return true;
}

/* m3, or m3..m9. */
static void messages_of(struct parser *p, uint32_t *from_out, uint32_t *to_out)
{
	const char *word = sc_take(&p->words);
	const char *end;

	if (message_name(word, from_out, &end)) {
		*to_out = *from_out;
		if (!*end)
			return;
		if (!strncmp(end, "..", 2) && message_name(end + 2, to_out, &end) && !*end &&
		    *to_out >= *from_out)
			return;
	}
	*from_out = 1;
	*to_out = 1;
	bad(p, "'%s' is not a message; allowed: m1 to m%u, or a range as m1..m9", shown(word),
	    SC_MESSAGES_MAX);
}

/* Those that `sender` has sent above. */
static void messages_sent(struct parser *p, uint32_t channel, uint32_t sender, uint32_t *from_out,
			  uint32_t *to_out)
{
	const struct sc_channel *c = &p->sc->channels[channel];

	messages_of(p, from_out, to_out);
	for (uint32_t m = *from_out; m <= *to_out; m++) {
		if (!c->is_sent[c->from != sender][m]) {
			bad(p, "m%u is not sent above by %c on %s", m, (int)('a' + sender),
			    c->name);
			return;
		}
	}
}

static uint32_t label_of(struct parser *p)
{
	const char *names[SC_LABELS_MAX];
	const char *word = sc_take(&p->words);
	char list[512];

	for (uint32_t i = 0; i < p->sc->label_count; i++) {
		if (!strcmp(p->sc->labels[i], word))
			return i;
		names[i] = p->sc->labels[i];
	}
	sc_list(names, p->sc->label_count, list, sizeof(list));
	bad_word(p, word, "a label of this file (given by `as NAME`)",
		 list[0] ? list : "it gives none");
	return SC_NONE;
}

static uint32_t label_new(struct parser *p)
{
	const char *word = sc_take(&p->words);

	for (uint32_t i = 0; i < p->sc->label_count; i++) {
		if (strcmp(p->sc->labels[i], word) != 0)
			continue;
		if (p->is_label_given[i])
			bad(p, "label '%s' is given twice", word);
		p->is_label_given[i] = true;
		return i;
	}
	bad(p, "'%s' is not a label; allowed: a word of up to 23 letters, %u of them in a file",
	    shown(word), SC_LABELS_MAX);
	return SC_NONE;
}

/* Labels may be named above the statement that gives them: look for those first. */
static void labels_find(struct parser *p)
{
	struct scenario *sc = p->sc;

	for (uint32_t i = 0; i < sc->line_count; i++) {
		const char *word;

		if (!sc_words_split(&p->words, sc->lines[i]) || p->words.count < 3 ||
		    strcmp(p->words.w[p->words.count - 2], "as") != 0)
			continue;
		word = p->words.w[p->words.count - 1];
		if (sc->label_count < SC_LABELS_MAX && strlen(word) < sizeof(sc->labels[0]))
			snprintf(sc->labels[sc->label_count++], sizeof(sc->labels[0]), "%s", word);
	}
}

/* ---- conditions ---- */

/* [since LABEL] [OP] VALUE */
static void compare(struct parser *p, struct sc_cond *c, enum sc_value unit)
{
	uint32_t op;

	c->unit = unit;
	if (sc_took(&p->words, "since"))
		c->since = label_of(p);
	op = sc_find(op_names, MRC_ARRAY_LEN(op_names), sc_peek(&p->words));
	if (op != SC_NONE)
		sc_take(&p->words);
	c->op = op == SC_NONE ? SC_EQ : (enum sc_op)op;
	c->value = number_of(p, unit, "a value for this");
}

static void rail_cond(struct parser *p, struct sc_cond *c)
{
	const char *word;
	uint32_t i;
	char list[512];

	c->rail = bounded(p, "a rail", 0, p->sc->options.rails);
	c->peer = peer_of(p, c->host);
	word = sc_take(&p->words);
	i = sc_find(state_names, MRC_ARRAY_LEN(state_names), word);
	if (i != SC_NONE) {
		c->kind = SC_RAIL_STATE;
		c->what = i;
		return;
	}
	if (!strcmp(word, "because")) {
		c->kind = SC_RAIL_REASON;
		c->what = name_of(p, reason_names, MRC_ARRAY_LEN(reason_names), "a reason");
		return;
	}
	i = metric_find(rail_metrics, MRC_ARRAY_LEN(rail_metrics), word);
	if (i == SC_NONE) {
		metrics_list(rail_metrics, MRC_ARRAY_LEN(rail_metrics), list, sizeof(list));
		bad(p,
		    "'%s' is nothing to ask of a rail; allowed: connecting, probing, good, "
		    "assumed-bad, denied, because, %s",
		    shown(word), list);
		return;
	}
	c->kind = SC_RAIL_METRIC;
	c->what = i;
	compare(p, c, rail_metrics[i].unit);
}

static void channel_cond(struct parser *p, struct sc_cond *c)
{
	const char *word;
	uint32_t i;
	char list[256];

	c->channel = channel_of(p, c->host);
	word = sc_take(&p->words);
	i = sc_find(channel_state_names, MRC_ARRAY_LEN(channel_state_names), word);
	if (i != SC_NONE) {
		c->kind = SC_CHANNEL_STATE;
		c->what = i;
	} else {
		i = metric_find(channel_metrics, MRC_ARRAY_LEN(channel_metrics), word);
		if (i == SC_NONE) {
			metrics_list(channel_metrics, MRC_ARRAY_LEN(channel_metrics), list,
				     sizeof(list));
			bad(p, "'%s' is nothing to ask of a channel; allowed: up, down, freed, %s",
			    shown(word), list);
			return;
		}
		c->kind = SC_CHANNEL_METRIC;
		c->what = i;
		compare(p, c, channel_metrics[i].unit);
		return;
	}
	i = sc_find(outcome_names, MRC_ARRAY_LEN(outcome_names), sc_peek(&p->words));
	if (c->what == SC_CH_DOWN && i != SC_NONE) {
		sc_take(&p->words);
		c->has_outcome = true;
		c->outcome = -(int)i;
	}
}

static void message_cond(struct parser *p, struct sc_cond *c, uint32_t what)
{
	const struct sc_channel *ch;
	uint32_t sender;

	c->kind = SC_MESSAGES;
	c->what = what;
	c->channel = channel_of(p, c->host);
	ch = &p->sc->channels[c->channel];
	sender = what <= SC_MSG_ANSWERED ? c->host : ch->from == c->host ? ch->to : ch->from;
	messages_sent(p, c->channel, sender, &c->msg_from, &c->msg_to);
	if (what == SC_MSG_ANSWERED) {
		uint32_t i =
			sc_find(outcome_names, MRC_ARRAY_LEN(outcome_names), sc_peek(&p->words));

		if (i != SC_NONE) {
			sc_take(&p->words);
			c->has_outcome = true;
			c->outcome = -(int)i;
		}
	}
}

static void host_cond(struct parser *p, struct sc_cond *c)
{
	const char *word;
	uint32_t i;
	char list[256];
	char messages[256];

	c->host = host_of(p);
	if (sc_took(&p->words, "rail")) {
		rail_cond(p, c);
		return;
	}
	word = sc_peek(&p->words);
	i = sc_find(message_names, SC_MSG_STATE_COUNT, word);
	if (i != SC_NONE) {
		sc_take(&p->words);
		message_cond(p, c, i);
		return;
	}
	if (channel_find(p, word) != SC_NONE) {
		channel_cond(p, c);
		return;
	}
	c->peer = p->sc->options.hosts == 2 || !strcmp(word, "to") ? peer_of(p, c->host) : SC_NONE;
	word = sc_take(&p->words);
	i = metric_find(conn_metrics, MRC_ARRAY_LEN(conn_metrics), word);
	if (i == SC_NONE) {
		metrics_list(conn_metrics, MRC_ARRAY_LEN(conn_metrics), list, sizeof(list));
		sc_list(message_names, SC_MSG_STATE_COUNT, messages, sizeof(messages));
		bad(p, "'%s' is nothing to ask of a host; allowed: rail, a channel, %s, %s",
		    shown(word), messages, list);
		return;
	}
	if (c->peer == SC_NONE)
		bad(p, "which peer? With more than 2 hosts say `to HOST` before '%s'", word);
	c->kind = SC_CONN_METRIC;
	c->what = i;
	compare(p, c, conn_metrics[i].unit);
}

static void cond(struct parser *p, struct sc_cond *c)
{
	const char *word;
	uint32_t i;
	char list[512];

	*c = (struct sc_cond){.since = SC_NONE, .msg_from = 1, .msg_to = 1};
	c->is_negated = sc_took(&p->words, "not");
	word = sc_peek(&p->words);
	if (host_find(p, word) != SC_NONE) {
		host_cond(p, c);
		return;
	}
	sc_take(&p->words);
	if (!strcmp(word, "clean")) {
		c->kind = SC_CLEAN;
		return;
	}
	if (!strcmp(word, "all")) {
		c->kind = SC_ALL_GOOD;
		if (!sc_took(&p->words, "good"))
			bad_word(p, sc_peek(&p->words), "what all paths can be", "good");
		return;
	}
	i = metric_find(world_metrics, MRC_ARRAY_LEN(world_metrics), word);
	if (i == SC_NONE) {
		metrics_list(world_metrics, MRC_ARRAY_LEN(world_metrics), list, sizeof(list));
		bad(p, "'%s' is no condition; allowed: a host, clean, all good, %s", shown(word),
		    list);
		return;
	}
	c->kind = SC_WORLD_METRIC;
	c->what = i;
	compare(p, c, SC_COUNT);
}

static void clause(struct parser *p, struct sc_clause *out)
{
	out->count = 0;
	do {
		if (out->count == SC_CONDS_MAX) {
			bad(p, "more than %u conditions in one statement", SC_CONDS_MAX);
			return;
		}
		cond(p, &out->conds[out->count++]);
	} while (!p->is_line_bad && sc_took(&p->words, "and"));
}

/* ---- what happens ---- */

static void open_action(struct parser *p, struct sc_action *a)
{
	struct sc_channel *c = &p->sc->channels[p->sc->channel_count];
	const char *word = sc_take(&p->words);

	a->kind = SC_OPEN;
	a->channel = p->sc->channel_count;
	if (word[0] != 'c' || word[1] < '0' || word[1] > '9' || strlen(word) >= sizeof(c->name)) {
		bad_word(p, word, "a channel", "c1, c2 and so on");
		return;
	}
	if (channel_find(p, word) != SC_NONE) {
		bad(p, "channel %s is opened twice; a new one needs a new name", word);
		return;
	}
	if (p->sc->channel_count == SC_CHANNELS_MAX) {
		bad(p, "more than %u channels", SC_CHANNELS_MAX);
		return;
	}
	if (strcmp(sc_peek(&p->words), "to") != 0) {
		bad_word(p, sc_peek(&p->words), "what follows a channel", "to HOST");
		return;
	}
	a->peer = peer_of(p, a->host);
	a->spec.from_host = a->host;
	a->spec.to_host = a->peer;
	for (;;) {
		if (sc_took(&p->words, "from-client"))
			a->spec.from_client = bounded(p, "a client", 0, p->sc->options.clients);
		else if (sc_took(&p->words, "to-client"))
			a->spec.to_client = bounded(p, "a client", 0, p->sc->options.clients);
		else if (sc_took(&p->words, "unordered"))
			a->spec.is_unordered = true;
		else if (sc_took(&p->words, "unchecked"))
			a->spec.is_unchecked = true;
		else if (sc_took(&p->words, "refused"))
			a->spec.is_refused = true;
		else if (sc_took(&p->words, "window"))
			a->spec.window = bounded(p, "a window", 1, 1025);
		else if (sc_took(&p->words, "ring"))
			a->spec.ring_bytes = number_of(p, SC_BYTES, "a ring's size");
		else if (sc_took(&p->words, "len"))
			a->spec.len_max = number_of(p, SC_BYTES, "a length");
		else if (sc_took(&p->words, "slots"))
			a->spec.slots = bounded(p, "a number of slots", 1, 4097);
		else
			break;
	}
	if (a->spec.window & (a->spec.window - 1))
		bad(p, "window %llu; allowed: a power of two", (unsigned long long)a->spec.window);
	if (p->is_line_bad)
		return;
	snprintf(c->name, sizeof(c->name), "%s", word);
	c->from = a->host;
	c->to = a->peer;
	c->len_max = a->spec.len_max ? a->spec.len_max : p->sc->options.len_max;
	p->sc->channel_count++;
}

static void send_action(struct parser *p, struct sc_action *a)
{
	struct sc_channel *c;
	uint32_t level;

	a->kind = SC_SEND;
	a->channel = channel_of(p, a->host);
	c = &p->sc->channels[a->channel];
	messages_of(p, &a->msg_from, &a->msg_to);
	a->len = number_of(p, SC_BYTES, "a length");
	a->level = MRC_LVL_COMMITTED;
	level = sc_find(level_names, MRC_ARRAY_LEN(level_names), sc_peek(&p->words));
	if (level != SC_NONE) {
		a->level = (enum mrc_lvl)level;
		sc_take(&p->words);
	}
	if (sc_took(&p->words, "every"))
		a->every_ns = number_of(p, SC_TIME, "a time");
	if (sc_took(&p->words, "giving-up")) {
		a->is_given_up = true;
		a->give_up_ns = number_of(p, SC_TIME, "a time");
	}
	if (p->is_line_bad)
		return;
	if (a->len > c->len_max)
		bad(p, "a message on %s is at most %lluB long; say `len` where it is opened",
		    c->name, (unsigned long long)c->len_max);
	for (uint32_t m = a->msg_from; m <= a->msg_to; m++) {
		if (c->is_sent[c->from != a->host][m])
			bad(p, "m%u is sent twice by %c on %s", m, (int)('a' + a->host), c->name);
		c->is_sent[c->from != a->host][m] = true;
	}
}

static void client_action(struct parser *p, struct sc_action *a)
{
	static const char *const names[] = {"stalls",  "resumes", "dies",
					    "rejects", "holds",   "behaves"};
	static const enum sc_action_kind kinds[] = {SC_CLIENT_STALL,  SC_CLIENT_RESUME,
						    SC_CLIENT_DIE,    SC_CLIENT_MANNER,
						    SC_CLIENT_MANNER, SC_CLIENT_MANNER};
	static const enum sim_manner manners[] = {0, 0, 0, SIM_REJECTS, SIM_HOLDS, SIM_AS_DRAWN};
	uint32_t i;

	a->client = bounded(p, "a client", 0, p->sc->options.clients);
	i = name_of(p, names, MRC_ARRAY_LEN(names), "what a client does");
	if (i == SC_NONE)
		return;
	a->kind = kinds[i];
	a->manner = manners[i];
}

struct rail_word {
	const char *name;
	enum sc_action_kind kind;
	enum sim_fault fault;
	bool has_peer;
	bool has_amount; /* a factor or permille follows */
};

static void rail_action(struct parser *p, struct sc_action *a)
{
	static const struct rail_word table[] = {
		{"silent", SC_FAULT, SIM_SILENCE, false, false},
		{"deaf", SC_FAULT, SIM_SILENCE_ONE_WAY, false, false},
		{"mute", SC_FAULT, SIM_SILENCE_ONE_WAY, false, false},
		{"unplugged", SC_FAULT, SIM_CARRIER_BOTH, true, false},
		{"unlit", SC_FAULT, SIM_CARRIER_ONE, false, false},
		{"slow", SC_FAULT, SIM_SLOW, false, true},
		{"late", SC_FAULT, SIM_RTT_JUMP, false, true},
		{"stuck", SC_FAULT, SIM_QUEUE_FULL, false, false},
		{"unanswered", SC_FAULT, SIM_AMBIGUOUS, false, false},
		{"corrupts-body", SC_FAULT, SIM_CORRUPT_BODY, false, true},
		{"corrupts-header", SC_FAULT, SIM_CORRUPT_HDR, false, true},
		{"corrupts-control", SC_FAULT, SIM_CORRUPT_CTL, false, true},
		{"off", SC_FAULT, SIM_CARRIER_ONE, false, false},
		{"keyless", SC_FAULT, SIM_KEY, false, false},
		{"breaks", SC_FAULT, SIM_RESET, true, false},
		{"flaps", SC_FLAP, SIM_CARRIER_BOTH, true, false},
		{"heals", SC_HEAL, 0, false, false},
		{"drained", SC_DENY, 0, false, false},
		{"undrained", SC_ALLOW, 0, false, false},
	};
	const struct rail_word *t = NULL;
	const char *word;
	char list[512] = "";
	size_t len = 0;

	a->rail = bounded(p, "a rail", 0, p->sc->options.rails);
	word = sc_take(&p->words);
	for (size_t i = 0; i < MRC_ARRAY_LEN(table); i++) {
		if (!strcmp(table[i].name, word))
			t = &table[i];
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "",
					table[i].name);
	}
	if (!t) {
		bad_word(p, word, "what befalls a rail", list);
		return;
	}
	a->kind = t->kind;
	a->fault = (struct sim_fault_spec){.kind = t->fault, .host = a->host, .rail = a->rail};
	a->fault.is_inward = !strcmp(word, "deaf");
	a->fault.is_off = !strcmp(word, "off");
	if (t->has_amount)
		a->fault.amount = bounded(p, "a factor or a number in a thousand", 1, 100001);
	if (t->kind == SC_FLAP)
		a->amount = number_of(p, SC_TIME, "a time, of each turn");
	if (t->fault == SIM_RESET && t->kind == SC_FAULT)
		a->fault.is_both = sc_took(&p->words, "both");
	if (t->has_peer)
		a->fault.peer = peer_of(p, a->host);
}

static void host_action(struct parser *p, struct sc_action *a)
{
	static const char *const names[] = {"rail",   "client", "open",      "send",
					    "cancel", "close",  "pauses",    "resumes",
					    "stops",  "starts", "hands-over"};
	uint32_t i = name_of(p, names, MRC_ARRAY_LEN(names), "what a host does");

	switch (i) {
	case 0:
		rail_action(p, a);
		break;
	case 1:
		client_action(p, a);
		break;
	case 2:
		open_action(p, a);
		break;
	case 3:
		send_action(p, a);
		break;
	case 4:
		a->kind = SC_CANCEL;
		a->channel = channel_of(p, a->host);
		messages_sent(p, a->channel, a->host, &a->msg_from, &a->msg_to);
		break;
	case 5:
		a->kind = SC_CLOSE;
		a->channel = channel_of(p, a->host);
		break;
	case 6:
	case 8:
		a->kind = SC_FAULT;
		a->fault = (struct sim_fault_spec){.kind = i == 6 ? SIM_PAUSE : SIM_RESTART,
						   .host = a->host};
		break;
	case 7:
		a->kind = SC_RESUME;
		break;
	case 9:
		a->kind = SC_START;
		break;
	case 10:
		a->kind = SC_FAULT;
		a->fault = (struct sim_fault_spec){.kind = SIM_HANDOVER, .host = a->host};
		break;
	default:
		break;
	}
}

static bool may_last(const struct sc_action *a)
{
	return (a->kind == SC_FAULT && a->fault.kind != SIM_RESET) || a->kind == SC_FLAP ||
	       a->kind == SC_CLIENT_STALL || a->kind == SC_DENY;
}

static void event(struct parser *p, bool is_when)
{
	struct sc_event *e = &p->sc->events[p->sc->event_count];

	if (p->sc->event_count == SC_EVENTS_MAX) {
		bad(p, "more than %u statements of `at` and `when`", SC_EVENTS_MAX);
		return;
	}
	*e = (struct sc_event){.line = p->line, .is_when = is_when, .label = SC_NONE};
	if (is_when) {
		clause(p, &e->when);
		if (sc_took(&p->words, "after"))
			e->at_ns = number_of(p, SC_TIME, "a time");
		if (!p->is_line_bad && !sc_took(&p->words, "then"))
			bad_word(p, sc_peek(&p->words), "what follows a condition",
				 "and, after TIME, then");
	} else {
		e->at_ns = number_of(p, SC_TIME, "a time");
	}
	if (p->is_line_bad)
		return;
	e->action.kind = SC_NOTHING;
	if (!sc_took(&p->words, "nothing")) {
		e->action.host = host_of(p);
		if (!p->is_line_bad)
			host_action(p, &e->action);
		if (may_last(&e->action) && sc_took(&p->words, "for"))
			e->action.span_ns = number_of(p, SC_TIME, "a time");
	}
	if (sc_took(&p->words, "as"))
		e->label = label_new(p);
	if (e->action.kind == SC_FLAP && !e->action.span_ns)
		bad(p, "flaps: for how long? Say `for TIME`");
	p->sc->event_count++;
}

/* ---- claims ---- */

static void claim(struct parser *p, enum sc_claim_kind kind)
{
	struct sc_claim *c = &p->sc->claims[p->sc->claim_count];

	if (p->sc->claim_count == SC_CLAIMS_MAX) {
		bad(p, "more than %u claims", SC_CLAIMS_MAX);
		return;
	}
	*c = (struct sc_claim){.line = p->line, .kind = kind, .from = SC_NONE, .until = SC_NONE};
	if (kind == SC_WITHIN) {
		c->within_ns = number_of(p, SC_TIME, "a time");
		if (sc_took(&p->words, "of"))
			c->from = label_of(p);
	} else if (kind == SC_AT_END) {
		if (!sc_took(&p->words, "end"))
			bad(p, "'%s' is not a time; allowed: %s, end", shown(sc_peek(&p->words)),
			    sc_unit_help(SC_TIME));
	} else {
		if (sc_took(&p->words, "from"))
			c->from = label_of(p);
		if (sc_took(&p->words, "until"))
			c->until = label_of(p);
	}
	if (!p->is_line_bad)
		clause(p, &c->clause);
	p->sc->claim_count++;
}

/* ---- the world ---- */

static void hosts_word(struct parser *p)
{
	uint64_t count = 0;

	while (sc_peek(&p->words)[0] == (char)('a' + count) && !sc_peek(&p->words)[1]) {
		sc_take(&p->words);
		count++;
	}
	if (count < 2 || count > SC_HOSTS_MAX)
		bad(p, "hosts are named a, b and so on, in this order; allowed: 2 to %u",
		    SC_HOSTS_MAX);
	p->sc->options.hosts = count;
	p->has_hosts = true;
}

/* rails 4, rails 2 verbs, rails 2 tcp 2 verbs */
static void rails_word(struct parser *p)
{
	struct sim_options *o = &p->sc->options;

	o->rails = 0;
	o->verbs = 0;
	do {
		uint64_t count = bounded(p, "a number of rails", 1, MRC_PATHS_MAX + 1);

		if (o->rails + count > MRC_PATHS_MAX) {
			bad(p, "more than %u rails", MRC_PATHS_MAX);
			return;
		}
		if (sc_took(&p->words, "verbs"))
			o->verbs |= ((1ULL << count) - 1) << o->rails;
		else
			sc_took(&p->words, "tcp");
		o->rails += count;
	} while (sc_peek(&p->words)[0] >= '0' && sc_peek(&p->words)[0] <= '9');
}

static void set_word(struct parser *p)
{
	const char *name = sc_take(&p->words);
	const char *word = sc_take(&p->words);
	uint32_t i = sc_find(option_names, MRC_ARRAY_LEN(option_names), name);
	uint64_t value = 0;
	char list[1024];
	char pair[128];
	char why[128];

	if (i == SC_NONE) {
		sc_list(option_names, MRC_ARRAY_LEN(option_names), list, sizeof(list));
		bad_word(p, name, "an option of the simulator", list);
		return;
	}
	if (!sc_number(word, SC_COUNT, &value) && !sc_number(word, SC_TIME, &value) &&
	    !sc_number(word, SC_BYTES, &value) && !sc_number(word, SC_RATE, &value)) {
		bad_word(p, word, "a value", "a whole number, with a unit or without");
		return;
	}
	snprintf(pair, sizeof(pair), "%s=%llu", name, (unsigned long long)value);
	if (sim_options_set(&p->sc->options, pair, why, sizeof(why)))
		bad(p, "%s %s: %s", name, word, why);
}

/* Several of these may stand on one line. False: it is none of them. */
static bool world_word(struct parser *p)
{
	struct sim_options *o = &p->sc->options;

	if (sc_took(&p->words, "hosts"))
		hosts_word(p);
	else if (sc_took(&p->words, "rails"))
		rails_word(p);
	else if (sc_took(&p->words, "rate"))
		o->rate = number_of(p, SC_RATE, "a rate");
	else if (sc_took(&p->words, "delay"))
		o->delay_ns = number_of(p, SC_TIME, "a time");
	else if (sc_took(&p->words, "clients"))
		o->clients = bounded(p, "a number of clients", 1, 17);
	else if (sc_took(&p->words, "seed"))
		o->seed = number_of(p, SC_COUNT, "a seed");
	else if (sc_took(&p->words, "set"))
		set_word(p);
	else if (sc_took(&p->words, "cold"))
		p->sc->is_cold = true;
	else if (sc_took(&p->words, "end"))
		p->sc->end_ns = number_of(p, SC_TIME, "a time");
	else
		return false;
	if (p->sc->event_count || p->sc->claim_count)
		bad(p, "what the world is like must be said before the first statement");
	return true;
}

static void statement(struct parser *p)
{
	const char *word = sc_peek(&p->words);

	if (world_word(p)) {
		while (!p->is_line_bad && p->words.at < p->words.count && world_word(p))
			;
	} else if (!p->has_hosts) {
		bad(p, "'%s' before `hosts`; the first statement must name them", word);
	} else if (sc_took(&p->words, "at")) {
		if (!strcmp(sc_peek(&p->words), "end"))
			claim(p, SC_AT_END);
		else
			event(p, false);
	} else if (sc_took(&p->words, "when")) {
		event(p, true);
	} else if (sc_took(&p->words, "within")) {
		claim(p, SC_WITHIN);
	} else if (sc_took(&p->words, "always")) {
		claim(p, SC_ALWAYS);
	} else if (sc_took(&p->words, "never")) {
		claim(p, SC_NEVER);
	} else {
		bad_word(p, word, "a statement",
			 "hosts, rails, rate, delay, clients, seed, set, cold, end, at, when, "
			 "within, always, never");
	}
	if (!p->is_line_bad && p->words.at < p->words.count)
		bad(p, "'%s': nothing more is expected on this line", sc_peek(&p->words));
}

static void lines_split(struct scenario *sc, const char *text)
{
	uint32_t cap = 1;

	for (const char *at = text; *at; at++)
		cap += *at == '\n';
	sc->lines = calloc(cap, sizeof(char *));
	if (!sc->lines)
		abort();
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		if (!line)
			abort();
		sc->lines[sc->line_count++] = line;
		text += len + (text[len] == '\n');
	}
}

struct scenario *scenario_parse(const char *path, const char *text, FILE *errors)
{
	struct scenario *sc = calloc(1, sizeof(*sc));
	struct parser p = {.sc = sc, .errors = errors};

	if (!sc)
		abort();
	snprintf(sc->path, sizeof(sc->path), "%s", path);
	sim_options_default(&sc->options);
	sc->options.seed = 1;
	lines_split(sc, text);
	labels_find(&p);
	for (uint32_t i = 0; i < sc->line_count; i++) {
		p.line = i + 1;
		p.is_line_bad = false;
		if (!sc_words_split(&p.words, sc->lines[i]))
			bad(&p, "a line has at most %u words and 511 letters", SC_WORDS_MAX);
		else if (p.words.count)
			statement(&p);
	}
	p.is_line_bad = false;
	if (!p.error_count && !sc->claim_count)
		bad(&p, "nothing is claimed; allowed: within, always, never, at end");
	if (!p.error_count)
		return sc;
	scenario_free(sc);
	return NULL;
}

void scenario_free(struct scenario *sc)
{
	if (!sc)
		return;
	for (uint32_t i = 0; i < sc->line_count; i++)
		free(sc->lines[i]);
	free(sc->lines);
	free(sc);
}
