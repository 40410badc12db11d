/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics and the status page over HTTP: every answer is whole, made in small
 * pieces, and nobody who asks can hold anything up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_event_log.h"
#include "mrcd_http.h"
#include "mrcd_log.h"
#include "mrcd_metrics.h"
#include "mrcd_peer.h"
#include "mrcd_stall.h"
#include "mrcd_status.h"
#include "mrcd_trace.h"
#include "mrcd_worker.h"

#define ANSWER_BYTES_MAX (8U << 20)
#define PEERS_MAX        300
#define CHUNK_BYTES_MAX  16384
#define PATIENCE_MS      20000

struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peers[PEERS_MAX];
	struct mrcd_worker *worker;
	struct mrcd_http *http;
	char *answer; /* of the last question, with its end */
	size_t answer_bytes;
	uint32_t chunk_count; /* of the last one that was chunked */
};

static struct stage *stage_new(uint32_t peers)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "a");
	strcpy(conf->runtime_dir, "/nonexistent");
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	strcpy(conf->rails[0].interface, "we\"ird\\");
	conf->rails[1].speed_bits_per_s = 1000000000;
	conf->peers = stage->peers;
	conf->peer_count = peers;
	for (uint32_t i = 0; i < peers; i++) {
		snprintf(stage->peers[i].name, sizeof(stage->peers[i].name), "b%u", i);
		stage->peers[i].path_count = 2;
		stage->peers[i].paths[1].rail_index = 1;
	}
	conf->metrics = (struct mrcd_conf_metrics){.is_enabled = true,
						   .address = "127.0.0.1",
						   .name = "node1.example"};
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	assert_int_equal(mrcd_http_new(stage->worker, &stage->http), 0);
	stage->worker->http = stage->http; /* freed with it */
	assert_int_not_equal(mrcd_http_port(stage->http), 0);
	stage->answer = malloc(ANSWER_BYTES_MAX + 1);
	assert_non_null(stage->answer);
	return stage;
}

static int setup(void **state)
{
	*state = stage_new(2);
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	mrcd_worker_free(stage->worker);
	free(stage->answer);
	free(stage);
	return 0;
}

static int dial(const struct stage *stage)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(mrcd_http_port(stage->http)),
				      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Turns the loop until the other side has closed, and keeps what came. */
static void hear(struct stage *stage, int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	stage->answer_bytes = 0;
	for (int looks = 0;; looks++) {
		ssize_t got;

		if (looks > PATIENCE_MS)
			fail_msg("no end came; so far: %.*s", (int)stage->answer_bytes,
				 stage->answer);
		event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
		/* What was said is here at once, or as soon as the kernel gets to it. */
		if (poll(&readable, 1, 1) == 0)
			continue;
		looks = 0;
		got = recv(fd, stage->answer + stage->answer_bytes,
			   ANSWER_BYTES_MAX - stage->answer_bytes, MSG_DONTWAIT);
		if (got == 0)
			break;
		assert_true(got > 0);
		stage->answer_bytes += (size_t)got;
		assert_true(stage->answer_bytes < ANSWER_BYTES_MAX);
	}
	stage->answer[stage->answer_bytes] = '\0';
	close(fd);
}

static const char *ask(struct stage *stage, const char *text)
{
	int fd = dial(stage);

	say(fd, text);
	hear(stage, fd);
	return stage->answer;
}

static void has(const char *answer, const char *want)
{
	if (strstr(answer, want) == NULL)
		fail_msg("%.2000s\n--- has no %s", answer, want);
}

/* The body of a chunked answer in place of the answer; fails when a byte is missing or too many. */
static char *unchunk(struct stage *stage)
{
	char *from = strstr(stage->answer, "\r\n\r\n") + 4, *to = stage->answer;

	has(stage->answer, "Transfer-Encoding: chunked\r\n");
	stage->chunk_count = 0;
	for (;;) {
		char *end;
		unsigned long len = strtoul(from, &end, 16);

		assert_memory_equal(end, "\r\n", 2);
		if (len == 0) {
			assert_string_equal(end, "\r\n\r\n");
			break;
		}
		assert_true(len < CHUNK_BYTES_MAX);
		stage->chunk_count++;
		memmove(to, end + 2, len);
		to += len;
		from = end + 2 + len;
		assert_memory_equal(from, "\r\n", 2);
		from += 2;
	}
	*to = '\0';
	return stage->answer;
}

/* ---- what is served ---- */

static void metrics_are_told_with_escapes_and_units(void **state)
{
	struct stage *stage = *state;
	const char *text;

	stage->worker->rails[0].bytes_sent = 12345;
	stage->worker->rails[0].flaps = 3;
	stage->worker->rails[0].card.known_bits =
		1U << MRCD_CARD_RX_CRC | 1U << MRCD_CARD_RX_PACKETS;
	stage->worker->rails[0].card.counts[MRCD_CARD_RX_CRC] = 77;
	mrcd_stall_record(mrcd_peer_stalls(stage->worker->peers[1]), 2500 * MRC_US, MRC_S);
	ask(stage, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	has(stage->answer, "HTTP/1.1 200 OK\r\n");
	has(stage->answer, "Content-Type: text/plain; version=0.0.4");
	text = unchunk(stage);
	has(text, "\nmrcd_rail_sent_bytes_total{rail=\"r0\"} 12345\n");
	has(text, "\nmrcd_rail_flaps_total{rail=\"r0\"} 3\n");
	/* What is an error, of a card that has such a counter. */
	has(text, "# TYPE mrcd_rail_card_errors_total counter\n"
		  "mrcd_rail_card_errors_total{rail=\"r0\",error=\"rx_crc_errors\"} 77\n"
		  "# HELP mrcd_rail_strangers_total");
	has(text, "interface=\"we\\\"ird\\\\\",");
	has(text, "\nmrcd_rail_speed_bytes_per_second{rail=\"r1\"} 125000000\n");
	assert_null(strstr(text, "mrcd_rail_speed_bytes_per_second{rail=\"r0\"}")); /* not known */
	has(text, "\nmrcd_peer_stall_seconds_bucket{peer=\"b1\",le=\"0.002\"} 0\n");
	has(text, "\nmrcd_peer_stall_seconds_bucket{peer=\"b1\",le=\"0.005\"} 1\n");
	has(text,
	    "\nmrcd_peer_stall_seconds_bucket{peer=\"b1\",le=\"0.01\"} 1\n"); /* and all above */
	has(text, "\nmrcd_peer_stall_seconds_bucket{peer=\"b1\",le=\"+Inf\"} 1\n");
	has(text, "\nmrcd_peer_stall_seconds_sum{peer=\"b1\"} 0.0025\n");
	has(text, "\nmrcd_peer_stall_seconds_count{peer=\"b0\"} 0\n");
	has(text, "\nmrcd_path_state{peer=\"b1\",rail=\"r1\",path=\"1\",state=\"CONNECTING\"} 1\n");
	has(text, "\nmrcd_path_state{peer=\"b1\",rail=\"r1\",path=\"1\",state=\"GOOD\"} 0\n");
	has(text, "\nmrcd_http_requests_total 1\n");
	has(text, "# HELP mrcd_build_info ");
	assert_int_equal(text[strlen(text) - 1], '\n');
}

/* Without what changes from one look to the next. */
static char *steady_part(const char *text)
{
	const char *from = strstr(text, "# HELP mrcd_rail_info");
	const char *to = strstr(text, "# HELP mrcd_path_state_age");

	assert_non_null(from);
	assert_non_null(to);
	return strndup(from, (size_t)(to - from));
}

static void metrics_are_as_whole_without_chunks(void **state)
{
	struct stage *stage = *state;
	char *chunked, *plain;

	ask(stage, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	chunked = steady_part(unchunk(stage));
	ask(stage, "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
	assert_null(strstr(stage->answer, "chunked"));
	plain = steady_part(stage->answer);
	assert_string_equal(plain, chunked);
	free(chunked);
	free(plain);
}

/* A host with many peers is not held up: each turn makes a piece, and all pieces are there. */
static void many_peers_are_told_piece_by_piece(void **state)
{
	struct stage *stage = stage_new(PEERS_MAX);
	const char *text;
	char want[128];

	ask(stage, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	text = unchunk(stage);
	assert_true(stage->chunk_count > 100);
	for (int i = 0; i < PEERS_MAX; i++) {
		snprintf(want, sizeof(want), "\nmrcd_peer_stall_seconds_count{peer=\"b%d\"} 0\n",
			 i);
		has(text, want);
		snprintf(want, sizeof(want), "\nmrcd_path_exits_total{peer=\"b%d\",rail=\"r1\",",
			 i);
		has(text, want);
	}
	/* The page is told of as many as it can show, and of how many more there are. */
	ask(stage, "GET /status.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	snprintf(want, sizeof(want), "\"peers_left_out\":%u,", PEERS_MAX - MRCD_STATUS_PEERS_MAX);
	has(stage->answer, want);
	assert_true(stage->answer_bytes < 100000);
	teardown((void *[]){stage});
}

/* Whoever stops reading gets no more made for him. */
static void answer_waits_for_who_reads_it(void **state)
{
	struct stage *stage = stage_new(PEERS_MAX);
	int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(mrcd_http_port(stage->http)),
				      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	say(fd, "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
	/* Nothing is due any more: sockets are full, and no piece is made. */
	for (int i = 0; i < 2000; i++)
		event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
	hear(stage, fd);
	has(stage->answer, "mrcd_path_exits_total{peer=\"b299\",rail=\"r1\",path=\"1\"} 0\n");
	teardown((void *[]){stage});
}

static void stages_of_traced_messages_are_counted(void **state)
{
	struct stage *stage = *state;
	struct mrc_act_trace act = {
		.moments_ns = {[MRC_MOMENT_FETCHED] = 1000,
			       [MRC_MOMENT_FIRST_SENT] = 4000,
			       [MRC_MOMENT_LAST_SENT] = 9000,
			       [MRC_MOMENT_PLACED] = 8000, /* by a clock that is off */
			       [MRC_MOMENT_VISIBLE] = 18000}};
	const char *text;

	mrcd_trace_add(stage->worker->traces, stage->worker->peers[0], &act);
	mrcd_trace_add(stage->worker->traces, stage->worker->loop_ends[0], &act); /* not counted */
	ask(stage, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	text = unchunk(stage);
	has(text, "\nmrcd_stage_seconds_count{stage=\"ring\"} 0\n");
	has(text, "\nmrcd_stage_seconds_count{stage=\"wait\"} 1\n");
	has(text, "\nmrcd_stage_seconds_sum{stage=\"wait\"} 0.000003\n");
	has(text, "\nmrcd_stage_seconds_sum{stage=\"transit\"} 0\n");
	has(text, "\nmrcd_stage_seconds_count{stage=\"transit\"} 1\n");
	has(text, "\nmrcd_stage_seconds_sum{stage=\"notice\"} 0.00001\n");
	has(text, "\nmrcd_stage_seconds_count{stage=\"verdict\"} 0\n");
}

static void page_stands_alone_and_is_guarded(void **state)
{
	struct stage *stage = *state;
	const char *answer = ask(stage, "GET / HTTP/1.1\r\nHost: localhost:9471\r\n\r\n");
	const char *body = strstr(answer, "\r\n\r\n") + 4;
	char length[64];

	has(answer, "HTTP/1.1 200 OK\r\n");
	has(answer, "Content-Security-Policy: default-src 'none'; script-src 'sha256-");
	has(answer, "X-Content-Type-Options: nosniff\r\n");
	assert_null(strstr(answer, "Access-Control-"));
	snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	has(answer, length);
	/* Nothing comes from elsewhere, and no name of somebody can become markup. */
	assert_null(strstr(body, "src="));
	assert_null(strstr(body, "innerHTML"));
	assert_null(strstr(body, "https://"));
}

static void status_has_events_after_the_one_named(void **state)
{
	struct stage *stage = *state;
	const char *answer, *body;
	json_t *status;

	mrcd_rail_note_drain(&stage->worker->rails[0], true);
	mrcd_rail_note_drain(&stage->worker->rails[0], false);
	answer = ask(stage, "GET /status.json?since=1 HTTP/1.1\r\nHost: a\r\n\r\n");
	has(answer, "Content-Type: application/json\r\n");
	body = strstr(answer, "\r\n\r\n") + 4;
	status = json_loads(body, 0, NULL);
	assert_non_null(status);
	assert_string_equal(json_string_value(json_object_get(status, "host")), "a");
	assert_int_equal(json_array_size(json_object_get(status, "rails")), 2);
	assert_int_equal(json_array_size(json_object_get(status, "paths")), 4);
	assert_int_equal(json_array_size(
				 json_object_get(json_object_get(status, "events"), "events")),
			 1);
	json_decref(status);
}

/* ---- who is turned away ---- */

static void what_is_not_served_is_refused_with_a_word(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n"},
		{"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"},
		{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
		{"hello\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 Misdirected"},
		{"GET /status.json HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n",
		 "HTTP/1.1 421 Misdirected"},
	};
	struct stage *stage = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		has(ask(stage, rows[i].text), rows[i].want);
		assert_null(strstr(stage->answer, "\"host\":"));
		assert_int_equal(mrcd_http_refusals(stage->http), i + 1);
	}
	has(ask(stage, "GET /status.json HTTP/1.1\r\nHost: Node1.Example\r\n\r\n"), "200 OK");
}

static void endless_head_is_refused_and_the_rest_not_kept(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage);
	static char more[MRCD_HTTP_CONNECTIONS_MAX * 1024];

	memset(more, 'x', sizeof(more) - 1);
	say(fd, "GET / HTTP/1.1\r\nX: ");
	say(fd, more);
	hear(stage, fd);
	has(stage->answer, "HTTP/1.1 431 ");
}

static void head_alone_is_answered_with_a_head_alone(void **state)
{
	struct stage *stage = *state;
	const char *answer = ask(stage, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");

	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	answer = ask(stage, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

/* Those who connect and say nothing do not keep out those who do. */
static void silent_ones_make_room(void **state)
{
	struct stage *stage = *state;
	int fds[3 * MRCD_HTTP_CONNECTIONS_MAX];
	uint32_t closed = 0;

	for (size_t i = 0; i < MRC_ARRAY_LEN(fds); i++) {
		fds[i] = dial(stage);
		event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
	}
	has(ask(stage, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK");
	for (size_t i = 0; i < MRC_ARRAY_LEN(fds); i++) {
		char byte;

		closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
		close(fds[i]);
	}
	assert_true(closed >= 2 * MRCD_HTTP_CONNECTIONS_MAX);
}

static void address_that_is_taken_does_not_keep_the_daemon_from_work(void **state)
{
	struct stage *stage = *state;
	struct mrcd_http *second;

	stage->conf.metrics.port = mrcd_http_port(stage->http);
	assert_int_equal(mrcd_http_new(stage->worker, &second), 0);
	assert_int_equal(mrcd_http_port(second), 0);
	mrcd_http_free(second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(metrics_are_told_with_escapes_and_units),
		TEST(metrics_are_as_whole_without_chunks),
		cmocka_unit_test(many_peers_are_told_piece_by_piece),
		cmocka_unit_test(answer_waits_for_who_reads_it),
		TEST(stages_of_traced_messages_are_counted),
		TEST(page_stands_alone_and_is_guarded),
		TEST(status_has_events_after_the_one_named),
		TEST(what_is_not_served_is_refused_with_a_word),
		TEST(endless_head_is_refused_and_the_rest_not_kept),
		TEST(head_alone_is_answered_with_a_head_alone),
		TEST(silent_ones_make_room),
		TEST(address_that_is_taken_does_not_keep_the_daemon_from_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
