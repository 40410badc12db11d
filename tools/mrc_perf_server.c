/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "mrc_perf_loop.h"
#include "mrc_perf_pattern.h"
#include "mrc_perf_report.h"
#include "mrc_perf_run.h"
#include "mrc_perf_verify.h"
#include "mrc_perf_wire.h"

#define EVENTS_MAX       64
#define HISTORY_MAX      4096U
#define ECHO_SLOTS_MAX   64U
#define ECHO_SLOTS_BYTES (4ULL << 20)
#define ECHO_HELD_MAX    64U /* messages that wait for an echo buffer */
#define DAMAGE_TOLD_MAX  10U /* lines about damage, per channel */
#define BACKOFF_MIN_NS   (50 * PERF_MS)
#define BACKOFF_MAX_NS   PERF_S

#define USER_ANSWER      UINT64_MAX

enum guest_state {
	GUEST_NEW, /* no setup message yet */
	GUEST_READY,
	GUEST_REFUSED, /* its setup was bad: everything it sends is rejected */
};

/* One channel. Owned by struct server, in its list. */
struct guest {
	struct guest *next;
	struct mrc_channel *channel;
	enum guest_state state;
	bool is_ended; /* to be freed after this turn */
	uint32_t refuse_code;
	uint32_t damage_told;
	struct perf_setup setup;
	struct perf_pattern pattern;
	struct perf_verify verify;
	uint64_t received;
	uint64_t bytes;
	uint64_t arrival_last_ns;
	uint64_t gap_ns_max;

	void *answer_buf; /* PERF_WIRE_ANSWER_BYTES of send memory, NULL until set up */
	bool is_answer_busy;
	bool is_answer_due;
	uint64_t answer_nonce;

	void *echo_bufs[ECHO_SLOTS_MAX];
	uint32_t echo_free[ECHO_SLOTS_MAX];
	uint32_t echo_free_count;
	uint32_t echo_count;
	struct mrc_msg *held[ECHO_HELD_MAX]; /* a ring: echoes to be sent, in order */
	uint32_t held_first;
	uint32_t held_count;
};

struct server {
	const struct perf_options *options;
	FILE *text; /* borrowed */
	struct perf_loop loop;
	struct mrc_client *client; /* NULL while the daemon is away */
	struct mrc_listener *listener;
	bool is_listening;
	bool is_ended;
	bool is_flush_due; /* some guest has an echo or an answer that could not be sent yet */
	int exit_code;
	struct guest *guests;
	uint32_t guest_count;
	uint64_t retry_ns;
	uint64_t backoff_ns;

	struct perf_answer *history; /* HISTORY_MAX, a ring */
	uint64_t history_count;

	uint64_t start_ns;
	uint64_t channels_total;
	uint64_t messages;
	uint64_t bytes;
	uint64_t gap_ns_max;
	struct perf_counts counts; /* of channels that have ended; lost: what was skipped */

	uint64_t tick_next_ns;
	uint64_t tick_last_ns;
	uint64_t tick_messages;
	uint64_t tick_bytes;
	uint64_t tick_gap_ns_max;
};

static struct perf_answer guest_answer(const struct guest *guest)
{
	bool is_verify = guest->setup.flags & PERF_FLAG_VERIFY;

	return (struct perf_answer){
		.nonce = guest->setup.nonce,
		.is_known = 1,
		.received = guest->received,
		.bytes = guest->bytes,
		.checked = is_verify ? guest->verify.checked : 0,
		.skipped = guest->verify.skipped,
		.unplaced = guest->verify.unplaced,
		/* Counted only, they are taken to have come in order. */
		.number_next = is_verify ? guest->verify.number_next : guest->received,
		.duplicated = guest->verify.duplicated,
		.reordered = guest->verify.reordered,
		.corrupted = guest->verify.corrupted,
		.gap_ns_max = guest->gap_ns_max,
	};
}

static void counts_add_guest(struct perf_counts *counts, const struct guest *guest)
{
	struct perf_answer answer = guest_answer(guest);
	struct perf_counts part = {
		.checked = answer.checked,
		.lost = perf_verify_lost(answer.number_next, answer.skipped, answer.unplaced, 0, 0),
		.duplicated = answer.duplicated,
		.reordered = answer.reordered,
		.corrupted = answer.corrupted,
	};

	perf_counts_add(counts, &part);
}

static struct perf_answer server_find(const struct server *server, uint64_t nonce)
{
	uint64_t kept = server->history_count < HISTORY_MAX ? server->history_count : HISTORY_MAX;

	for (const struct guest *guest = server->guests; guest; guest = guest->next)
		if (guest->state == GUEST_READY && guest->setup.nonce == nonce)
			return guest_answer(guest);
	for (uint64_t i = 0; i < kept; i++)
		if (server->history[i].nonce == nonce)
			return server->history[i];
	return (struct perf_answer){.nonce = nonce};
}

/* ---- guests ---- */

static void guest_tell_end(struct server *server, const struct guest *guest, int status)
{
	struct perf_answer answer = guest_answer(guest);
	char size[PERF_TEXT_BYTES], gap[PERF_TEXT_BYTES];

	if (guest->state != GUEST_READY || server->options->is_quiet)
		return;
	fprintf(server->text,
		"%s of %s: %" PRIu64 " messages, %" PRIu64
		" bytes, longest gap %s; missing %" PRIu64 ", duplicated %" PRIu64
		", reordered %" PRIu64 ", corrupted %" PRIu64 "%s (%s)\n",
		perf_mode_name((enum perf_mode)guest->setup.mode),
		perf_text_size(size, guest->setup.size_bytes), answer.received, answer.bytes,
		perf_text_span(gap, answer.gap_ns_max),
		perf_verify_lost(answer.number_next, answer.skipped, answer.unplaced, 0, 0),
		answer.duplicated, answer.reordered, answer.corrupted,
		guest->setup.flags & PERF_FLAG_VERIFY ? "" : ", not verified",
		status == MRC_STATUS_OK ? "closed" : mrc_status_name(status));
}

static int guest_new(struct server *server, struct mrc_channel *channel)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return -ENOMEM;
	guest->channel = channel;
	guest->next = server->guests;
	server->guests = guest;
	server->guest_count++;
	server->channels_total++;
	mrc_channel_set_context(channel, guest);
	return 0;
}

/* Its channel has ended; what it came to is kept. The memory goes after this turn. */
static void guest_end(struct server *server, struct guest *guest, int status)
{
	if (guest->is_ended)
		return;
	guest->is_ended = true;
	guest_tell_end(server, guest, status);
	if (guest->state != GUEST_READY)
		return;
	counts_add_guest(&server->counts, guest);
	server->history[server->history_count++ % HISTORY_MAX] = guest_answer(guest);
}

/* Free the guests that ended; has_client is false when their channels and buffers are gone already. */
static void server_sweep(struct server *server, bool has_client)
{
	struct guest **at = &server->guests;

	while (*at) {
		struct guest *guest = *at;

		if (!guest->is_ended) {
			at = &guest->next;
			continue;
		}
		if (has_client) {
			/* Releases what is held as well. */
			mrc_channel_free(guest->channel);
			for (uint32_t i = 0; i < guest->echo_count; i++)
				mrc_buf_free(server->client, guest->echo_bufs[i]);
			mrc_buf_free(server->client, guest->answer_buf);
		}
		*at = guest->next;
		server->guest_count--;
		free(guest);
	}
}

static uint32_t guest_echo_alloc(struct server *server, struct guest *guest)
{
	uint64_t size_bytes = guest->setup.size_bytes ? guest->setup.size_bytes : 1;
	uint64_t wanted = ECHO_SLOTS_BYTES / size_bytes;

	wanted = wanted < 2 ? 2 : wanted > ECHO_SLOTS_MAX ? ECHO_SLOTS_MAX : wanted;
	while (guest->echo_count < wanted &&
	       mrc_buf_alloc(server->client, size_bytes, &guest->echo_bufs[guest->echo_count]) ==
		       0) {
		guest->echo_free[guest->echo_free_count++] = guest->echo_count;
		guest->echo_count++;
	}
	return guest->echo_count ? 0 : PERF_CODE_NO_MEMORY;
}

/* Judge the first message: 0, or the code to reject it with. */
static uint32_t guest_setup(struct server *server, struct guest *guest, const void *data,
			    size_t len_bytes)
{
	int code = perf_setup_decode(data, len_bytes, &guest->setup);
	char size[PERF_TEXT_BYTES];

	if (code != 0)
		return (uint32_t)code;
	if (guest->setup.size_bytes > PERF_SIZE_BYTES_MAX)
		return PERF_CODE_SIZE;
	if (mrc_buf_alloc(server->client, PERF_WIRE_ANSWER_BYTES, &guest->answer_buf) < 0) {
		guest->answer_buf = NULL;
		return PERF_CODE_NO_MEMORY;
	}
	if (guest->setup.flags & PERF_FLAG_ECHO) {
		uint64_t bytes_max = mrc_channel_message_bytes_max(guest->channel);

		/* 0: our accepting has not been answered yet. */
		if (bytes_max != 0 && guest->setup.size_bytes > bytes_max)
			return PERF_CODE_SIZE;
		if (guest_echo_alloc(server, guest) != 0)
			return PERF_CODE_NO_MEMORY;
	}
	perf_pattern_init(&guest->pattern, guest->setup.seed, guest->setup.nonce);
	perf_verify_init(&guest->verify, guest->setup.flags & PERF_FLAG_UNORDERED);
	if (!server->options->is_quiet)
		fprintf(server->text, "%s of %s begins%s%s\n",
			perf_mode_name((enum perf_mode)guest->setup.mode),
			perf_text_size(size, guest->setup.size_bytes),
			guest->setup.flags & PERF_FLAG_VERIFY ? ", verified" : "",
			guest->setup.flags & PERF_FLAG_UNORDERED ? ", unordered" : "");
	return 0;
}

static void guest_tell_damage(struct server *server, struct guest *guest,
			      const struct perf_look *look, enum perf_verdict verdict,
			      size_t len_bytes, uint64_t number_expected)
{
	static const char *const verdicts[] = {
		[PERF_VERDICT_NEXT] = "as expected",
		[PERF_VERDICT_AHEAD] = "ahead of",
		[PERF_VERDICT_LATE] = "late for",
		[PERF_VERDICT_DUPLICATE] = "again, at",
	};

	if (guest->damage_told == DAMAGE_TOLD_MAX)
		return;
	guest->damage_told++;
	if (!look->is_intact && look->has_number)
		fprintf(server->text,
			"DAMAGE: message %" PRIu64
			": wrong from byte %zu on; %zu bytes, should be %" PRIu64 "\n",
			look->number, look->damage_at, len_bytes, guest->setup.size_bytes);
	else if (!look->is_intact)
		fprintf(server->text,
			"DAMAGE: a message of %zu bytes (should be %" PRIu64
			") with a broken head, when %" PRIu64 " was expected\n",
			len_bytes, guest->setup.size_bytes, number_expected);
	if (verdict != PERF_VERDICT_NEXT)
		fprintf(server->text, "DAMAGE: message %" PRIu64 " came %s %" PRIu64 "\n",
			look->number, verdicts[verdict], number_expected);
	if (guest->damage_told == DAMAGE_TOLD_MAX)
		fprintf(server->text, "DAMAGE: more of this channel will only be counted\n");
}

static void guest_check(struct server *server, struct guest *guest, const void *data,
			size_t len_bytes)
{
	uint64_t expected = guest->verify.number_next;
	enum perf_verdict verdict;
	struct perf_look look;

	perf_message_look(&guest->pattern, data, len_bytes, guest->setup.size_bytes, expected,
			  &look);
	if (look.has_number)
		verdict = perf_verify_number(&guest->verify, look.number, look.is_intact);
	else
		verdict = perf_verify_unnumbered(&guest->verify, guest->setup.size_bytes < 8,
						 look.is_intact);
	/* What overtakes on an unordered channel is only told when it comes twice. */
	if (guest->verify.is_unordered && verdict != PERF_VERDICT_DUPLICATE)
		verdict = PERF_VERDICT_NEXT;
	if (!look.is_intact || verdict != PERF_VERDICT_NEXT)
		guest_tell_damage(server, guest, &look, verdict, len_bytes, expected);
}

/* Send the echoes and the answer that are due, as far as buffers and the ring allow. */
static void guest_flush(struct server *server, struct guest *guest)
{
	while (guest->held_count > 0 && guest->echo_free_count > 0) {
		struct mrc_msg *msg = guest->held[guest->held_first];
		uint32_t slot = guest->echo_free[guest->echo_free_count - 1];
		size_t len_bytes = mrc_msg_len_bytes(msg);
		int r;

		/* Never more than the buffer: what was too long was counted as damage, and comes back short. */
		if (len_bytes > guest->setup.size_bytes)
			len_bytes = (size_t)guest->setup.size_bytes;
		memcpy(guest->echo_bufs[slot], mrc_msg_data(msg), len_bytes);
		r = mrc_send(guest->channel, guest->echo_bufs[slot], len_bytes, MRC_LEVEL_PLACED, 0,
			     slot);
		if (r == -EAGAIN || r == -ENOTCONN) {
			server->is_flush_due = true;
			return;
		}
		/* Another error is a channel that is ending: its CLOSED will come. */
		if (r == 0)
			guest->echo_free_count--;
		guest->held_first = (guest->held_first + 1) % ECHO_HELD_MAX;
		guest->held_count--;
		mrc_msg_release(msg);
	}
	if (guest->is_answer_due && !guest->is_answer_busy && guest->held_count == 0) {
		struct perf_answer answer = server_find(server, guest->answer_nonce);
		int r;

		perf_answer_encode(&answer, guest->answer_buf);
		r = mrc_send(guest->channel, guest->answer_buf, PERF_WIRE_ANSWER_BYTES,
			     MRC_LEVEL_PLACED, 0, USER_ANSWER);
		if (r == -EAGAIN || r == -ENOTCONN) {
			server->is_flush_due = true;
			return;
		}
		guest->is_answer_due = false;
		guest->is_answer_busy = r == 0;
	}
}

static void guest_data(struct server *server, struct guest *guest, struct mrc_msg *msg,
		       uint64_t now_ns)
{
	size_t len_bytes = mrc_msg_len_bytes(msg);
	uint64_t gap_ns = guest->received ? now_ns - guest->arrival_last_ns : 0;

	guest->received++;
	guest->bytes += len_bytes;
	guest->arrival_last_ns = now_ns;
	server->messages++;
	server->bytes += len_bytes;
	if (gap_ns > guest->gap_ns_max)
		guest->gap_ns_max = gap_ns;
	if (gap_ns > server->gap_ns_max)
		server->gap_ns_max = gap_ns;
	if (gap_ns > server->tick_gap_ns_max)
		server->tick_gap_ns_max = gap_ns;
	if (guest->setup.flags & PERF_FLAG_VERIFY)
		guest_check(server, guest, mrc_msg_data(msg), len_bytes);
	if (!(guest->setup.flags & PERF_FLAG_ECHO)) {
		mrc_msg_release(msg);
		return;
	}
	if (guest->held_count == ECHO_HELD_MAX) {
		mrc_msg_reject(msg, PERF_CODE_BUSY, NULL);
		mrc_msg_release(msg);
		return;
	}
	guest->held[(guest->held_first + guest->held_count++) % ECHO_HELD_MAX] = msg;
	guest_flush(server, guest);
}

static void msg_refuse(struct mrc_msg *msg, uint32_t code)
{
	mrc_msg_reject(msg, code, NULL);
	mrc_msg_release(msg);
}

static void guest_received(struct server *server, struct guest *guest, struct mrc_msg *msg,
			   uint64_t now_ns)
{
	const void *data = mrc_msg_data(msg);
	size_t len_bytes = mrc_msg_len_bytes(msg);
	struct perf_ask ask;
	int code;

	if (guest->state == GUEST_NEW) {
		guest->refuse_code = guest_setup(server, guest, data, len_bytes);
		guest->state = guest->refuse_code ? GUEST_REFUSED : GUEST_READY;
		if (guest->refuse_code == 0) {
			mrc_msg_release(msg);
			return;
		}
		fprintf(server->text, "a channel was turned away: %s\n",
			perf_code_text(guest->refuse_code));
	}
	if (guest->state == GUEST_REFUSED) {
		msg_refuse(msg, guest->refuse_code);
		return;
	}
	switch (perf_wire_kind(data, len_bytes)) {
	case PERF_WIRE_ASK:
		code = perf_ask_decode(data, len_bytes, &ask);
		if (code != 0) {
			msg_refuse(msg, (uint32_t)code);
			return;
		}
		mrc_msg_release(msg);
		guest->answer_nonce = ask.nonce;
		guest->is_answer_due = true;
		guest_flush(server, guest);
		break;
	case PERF_WIRE_SETUP:
	case PERF_WIRE_ANSWER:
		msg_refuse(msg, PERF_CODE_SETUP_TWICE);
		break;
	case PERF_WIRE_NONE:
		guest_data(server, guest, msg, now_ns);
		break;
	}
}

static void guest_sent(struct server *server, struct guest *guest, const struct mrc_event *event)
{
	if (event->user == USER_ANSWER)
		guest->is_answer_busy = false;
	else
		guest->echo_free[guest->echo_free_count++] = (uint32_t)event->user;
	guest_flush(server, guest);
}

/* ---- the server ---- */

static void server_handle(struct server *server, const struct mrc_event *event, uint64_t now_ns)
{
	struct guest *guest = event->channel ? mrc_channel_context(event->channel) : NULL;

	switch (event->type) {
	case MRC_EVENT_LISTENING:
		if (event->status == MRC_STATUS_OK) {
			server->is_listening = true;
			server->backoff_ns = BACKOFF_MIN_NS;
			fprintf(server->text, "serving %s/%s\n", mrc_client_host(server->client),
				server->options->service);
			break;
		}
		fprintf(server->text, "mrc-perf: cannot offer %s: %s\n", server->options->service,
			mrc_status_text(event->status));
		/* After a restart of the daemon the name may be taken for a moment, by what we were. */
		if (server->options->is_once || server->channels_total == 0) {
			server->exit_code = PERF_EXIT_NOBODY;
			server->is_ended = true;
			break;
		}
		mrc_listener_close(server->listener);
		server->listener = NULL;
		server->retry_ns = now_ns + server->backoff_ns;
		break;
	case MRC_EVENT_INCOMING:
		if (guest_new(server, event->channel) < 0)
			mrc_refuse_incoming(event->channel, PERF_CODE_NO_MEMORY);
		else
			mrc_accept_incoming(event->channel);
		break;
	case MRC_EVENT_RECEIVED:
		if (guest && !guest->is_ended)
			guest_received(server, guest, event->msg, now_ns);
		else
			mrc_msg_release(event->msg);
		break;
	case MRC_EVENT_SENT:
		if (guest && !guest->is_ended)
			guest_sent(server, guest, event);
		break;
	case MRC_EVENT_CLOSED:
		if (guest)
			guest_end(server, guest, event->status);
		break;
	case MRC_EVENT_CONNECTED: /* answers accepting, too */
		if (guest && event->status != MRC_STATUS_OK)
			guest_end(server, guest, event->status);
		break;
	case MRC_EVENT_DRAIN:
		if (event->channel == NULL)
			perf_report_drain(server->text, event);
		break;
	case MRC_EVENT_GAP:
	case MRC_EVENT_DETACHED:
		break;
	}
}

static void server_detached(struct server *server, uint64_t now_ns)
{
	for (struct guest *guest = server->guests; guest; guest = guest->next)
		guest_end(server, guest, MRC_STATUS_DETACHED);
	/* Before detaching: the reason is the client's to tell. */
	fprintf(server->text, "mrc-perf: detached: %s%s\n", mrc_last_error(server->client),
		server->options->is_once ? "" : "; attaching again");
	mrc_detach(server->client);
	server->client = NULL;
	server->listener = NULL;
	server->is_listening = false;
	server_sweep(server, false);
	server->backoff_ns = BACKOFF_MIN_NS;
	server->retry_ns = now_ns + BACKOFF_MIN_NS;
	if (server->options->is_once) {
		server->is_ended = true;
		server->exit_code = PERF_EXIT_NOBODY;
	}
}

static int server_attach(struct server *server)
{
	struct mrc_attach_options attach = {
		.socket_path = server->options->socket_path,
		.name = "mrc-perf-serve",
		.landing_arena_bytes = server->options->landing_bytes,
	};
	int r = mrc_attach(&attach, &server->client);

	if (r < 0)
		server->client = NULL;
	return r;
}

/* Attach and offer the service, whichever of them is missing and due. */
static uint64_t server_offer(struct server *server, uint64_t now_ns)
{
	int r;

	if (server->listener)
		return UINT64_MAX;
	if (now_ns < server->retry_ns)
		return server->retry_ns;
	r = server->client ? 0 : server_attach(server);
	if (r == 0)
		r = mrc_listen_start(server->client, server->options->service, 0,
				     &server->listener);
	if (r == 0)
		return UINT64_MAX;
	server->listener = NULL;
	if (r == -EINVAL) { /* it will not be right later either */
		fprintf(server->text, "mrc-perf: cannot offer %s: %s\n", server->options->service,
			mrc_error_text(r));
		server->exit_code = PERF_EXIT_USAGE;
		server->is_ended = true;
		return now_ns;
	}
	server->retry_ns = now_ns + server->backoff_ns;
	if (server->backoff_ns < BACKOFF_MAX_NS)
		server->backoff_ns *= 2;
	return server->retry_ns;
}

static void server_tick(struct server *server, uint64_t now_ns)
{
	double span_s = (double)(now_ns - server->tick_last_ns) / 1e9;
	char gap[PERF_TEXT_BYTES];

	if (!server->options->is_quiet)
		fprintf(server->text,
			"%7.2f s %9.3f Gb/s %10" PRIu64 " messages, longest gap %s, %u channel%s\n",
			(double)(now_ns - server->start_ns) / 1e9,
			(double)(server->bytes - server->tick_bytes) * 8 / 1e9 / span_s,
			server->messages - server->tick_messages,
			perf_text_span(gap, server->tick_gap_ns_max), server->guest_count,
			server->guest_count == 1 ? "" : "s");
	server->tick_last_ns = now_ns;
	server->tick_bytes = server->bytes;
	server->tick_messages = server->messages;
	server->tick_gap_ns_max = 0;
	while (server->tick_next_ns <= now_ns)
		server->tick_next_ns += server->options->interval_ns;
}

static void server_turn(struct server *server)
{
	struct mrc_event events[EVENTS_MAX];
	uint64_t now_ns = perf_now_ns(), due_ns;
	bool is_detached = false;
	int count;

	due_ns = server_offer(server, now_ns);
	if (server->options->interval_ns) {
		if (now_ns >= server->tick_next_ns)
			server_tick(server, now_ns);
		due_ns = server->tick_next_ns < due_ns ? server->tick_next_ns : due_ns;
	}
	/* Refused by a full ring: an event will most likely come first. */
	if (server->is_flush_due && now_ns + PERF_MS < due_ns)
		due_ns = now_ns + PERF_MS;
	count = perf_loop_turn(&server->loop, server->client, -1, -1, due_ns, events, EVENTS_MAX,
			       NULL);
	now_ns = perf_now_ns();
	for (int i = 0; i < count; i++) {
		if (events[i].type == MRC_EVENT_DETACHED)
			is_detached = true;
		else
			server_handle(server, &events[i], now_ns);
	}
	if (is_detached || count < 0) {
		server_detached(server, now_ns);
	} else {
		if (server->is_flush_due) {
			server->is_flush_due = false;
			for (struct guest *guest = server->guests; guest; guest = guest->next)
				if (!guest->is_ended)
					guest_flush(server, guest);
		}
		server_sweep(server, true);
	}
	if (server->loop.signal_count > 0)
		server->is_ended = true;
}

static int server_report(struct server *server)
{
	const struct perf_counts *counts = &server->counts;
	json_t *json;
	int r = PERF_EXIT_OK;

	fprintf(server->text,
		"served %" PRIu64 " channels: %" PRIu64 " messages, %" PRIu64 " bytes; %" PRIu64
		" checked: missing %" PRIu64 ", duplicated %" PRIu64 ", reordered %" PRIu64
		", corrupted %" PRIu64 "\n",
		server->channels_total, server->messages, server->bytes, counts->checked,
		counts->lost, counts->duplicated, counts->reordered, counts->corrupted);
	if (server->options->is_json) {
		json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I}}",
				 "mode", "serve", "service", server->options->service, "channels",
				 (json_int_t)server->channels_total, "messages",
				 (json_int_t)server->messages, "bytes", (json_int_t)server->bytes,
				 "arrival_gap_ns_max", (json_int_t)server->gap_ns_max, "verify",
				 "checked", (json_int_t)counts->checked, "lost",
				 (json_int_t)counts->lost, "duplicated",
				 (json_int_t)counts->duplicated, "reordered",
				 (json_int_t)counts->reordered, "corrupted",
				 (json_int_t)counts->corrupted);
		if (!json || json_dumpf(json, stdout, 0) != 0 || putchar('\n') == EOF ||
		    fflush(stdout) != 0)
			r = PERF_EXIT_DAMAGED;
		json_decref(json);
	}
	return perf_counts_are_clean(counts) ? r : PERF_EXIT_DAMAGED;
}

int perf_server(const struct perf_options *options, FILE *text)
{
	struct server *server = calloc(1, sizeof(*server));
	int r, exit_code = PERF_EXIT_NOBODY;

	if (!server)
		return exit_code;
	server->options = options;
	server->text = text;
	server->backoff_ns = BACKOFF_MIN_NS;
	server->history = calloc(HISTORY_MAX, sizeof(*server->history));
	r = server->history ? perf_loop_init(&server->loop, options->spin_ns) : -ENOMEM;
	if (r < 0) {
		fprintf(text, "mrc-perf: cannot start: %s\n", strerror(-r));
		goto out;
	}
	r = server_attach(server);
	if (r < 0) {
		fprintf(text, "mrc-perf: cannot attach to the daemon: %s\n", mrc_last_error(NULL));
		goto out_loop;
	}
	server->start_ns = server->tick_last_ns = perf_now_ns();
	server->tick_next_ns = server->start_ns + options->interval_ns;
	while (!server->is_ended)
		server_turn(server);
	for (struct guest *guest = server->guests; guest; guest = guest->next)
		guest_end(server, guest, MRC_STATUS_OK);
	server_sweep(server, server->client != NULL);
	r = server_report(server);
	exit_code = server->exit_code ? server->exit_code : r;
	mrc_detach(server->client);
out_loop:
	perf_loop_fini(&server->loop);
out:
	free(server->history);
	free(server);
	return exit_code;
}
