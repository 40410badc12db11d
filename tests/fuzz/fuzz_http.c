/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who asks for metrics. The first byte says how:
 *
 *	'P'  the head of a request, for the parser
 *	'S'  bytes for the daemon's socket: a byte 0xfe ends what is written at once and gives the
 *	     word to the next of three askers, 0xff ends what this one says
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "mrcd_http.h"
#include "mrcd_http_request.h"
#include "mrcd_log.h"
#include "mrcd_worker.h"

#define ASKERS_MAX 3
#define TURNS_MAX  4096
#define TEXT_MAX   (1U << 20)

/* ---- the parser ---- */

static bool is_refusal(int r)
{
	return r == -EBADMSG || r == -EOPNOTSUPP || r == -ENAMETOOLONG || r == -EMSGSIZE;
}

/* In memory of just that size, so that a byte too far is seen. */
static int parse(const uint8_t *data, size_t len, struct mrcd_http_request *out)
{
	uint8_t *copy = fuzz_copy(data, len);
	int r = mrcd_http_request_parse((const char *)copy, len, out);

	free(copy);
	FUZZ_CHECK(r == 0 || is_refusal(r) || (r > 0 && (size_t)r <= len));
	FUZZ_CHECK(r <= (int)MRCD_HTTP_HEAD_BYTES_MAX);
	return r;
}

static void request_check(const struct mrcd_http_request *request)
{
	size_t path_len = strnlen(request->path, sizeof(request->path));
	size_t host_len = strnlen(request->host, sizeof(request->host));

	FUZZ_CHECK(path_len < sizeof(request->path) && request->path[0] == '/');
	FUZZ_CHECK(host_len < sizeof(request->host) && host_len > 0);
	FUZZ_CHECK(!strchr(request->path, '?'));
	for (size_t i = 0; i < path_len; i++)
		FUZZ_CHECK(request->path[i] > ' ' && request->path[i] <= '~');
	for (size_t i = 0; i < host_len; i++)
		FUZZ_CHECK(request->host[i] > ' ' && request->host[i] <= '~' &&
			   !isupper((unsigned char)request->host[i]));
}

/* The same is concluded however much of it has come, and whatever comes behind it. */
static void head(const uint8_t *data, size_t len)
{
	struct mrcd_http_request request, again;
	int r = parse(data, len, &request);
	size_t step = 1 + len / 64;

	if (r > 0) {
		request_check(&request);
		FUZZ_CHECK(parse(data, (size_t)r, &again) == r);
		FUZZ_CHECK(again.is_head == request.is_head && again.since == request.since);
		FUZZ_CHECK(!strcmp(again.path, request.path) && !strcmp(again.host, request.host));
	}
	for (size_t cut = 0; cut < len; cut += step) {
		int before = parse(data, cut, &again);

		if (r > 0)
			FUZZ_CHECK(before == ((size_t)r <= cut ? r : 0));
		else if (r == 0)
			FUZZ_CHECK(before == 0);
		else
			FUZZ_CHECK(before == 0 || before == r);
	}
}

/* ---- the server ---- */

/* One for all inputs. */
struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peer;
	struct mrcd_worker *worker;
};

static struct stage stage;

struct asker {
	int fd; /* -1: it is done */
	bool has_ended;
	char *text; /* TEXT_MAX: what was answered */
	size_t len;
};

static struct asker askers[ASKERS_MAX];

static void stage_end(void)
{
	mrcd_worker_free(stage.worker);
	for (int i = 0; i < ASKERS_MAX; i++)
		free(askers[i].text);
}

static void stage_begin(void)
{
	struct mrcd_conf *conf = &stage.conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "z");
	strcpy(conf->runtime_dir, "/nonexistent");
	conf->rail_count = 1;
	strcpy(conf->rails[0].name, "r0");
	conf->peers = &stage.peer;
	conf->peer_count = 1;
	strcpy(stage.peer.name, "b");
	stage.peer.path_count = 1;
	conf->metrics = (struct mrcd_conf_metrics){.is_enabled = true, .address = "127.0.0.1"};
	FUZZ_CHECK(mrcd_worker_new(conf, &stage.worker) == 0);
	FUZZ_CHECK(mrcd_http_new(stage.worker, &stage.worker->http) == 0);
	FUZZ_CHECK(mrcd_http_port(stage.worker->http) != 0);
	for (int i = 0; i < ASKERS_MAX; i++) {
		askers[i].text = malloc(TEXT_MAX);
		FUZZ_CHECK(askers[i].text);
	}
	atexit(stage_end);
}

static void turn(void)
{
	event_base_loop(stage.worker->base, EVLOOP_NONBLOCK);
}

static void asker_begin(struct asker *asker)
{
	const struct linger none = {.l_onoff = 1}; /* ports are not used up */
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(mrcd_http_port(stage.worker->http)),
				      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};

	asker->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(asker->fd >= 0);
	setsockopt(asker->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	FUZZ_CHECK(connect(asker->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	asker->has_ended = false;
	asker->len = 0;
	turn();
}

/* False: no more will come. */
static bool asker_hear(struct asker *asker)
{
	ssize_t n;

	while ((n = recv(asker->fd, asker->text + asker->len, TEXT_MAX - asker->len,
			 MSG_DONTWAIT)) > 0)
		asker->len += (size_t)n;
	FUZZ_CHECK(asker->len < TEXT_MAX);
	return n < 0 && errno == EAGAIN;
}

static void asker_end(struct asker *asker)
{
	if (!asker->has_ended)
		shutdown(asker->fd, SHUT_WR);
	for (uint32_t turns = 0; asker_hear(asker); turns++) {
		FUZZ_CHECK(turns < TURNS_MAX);
		turn();
	}
	close(asker->fd);
	turn();
}

/* Chunks one after the other, of which the last is empty and nothing follows it. */
static void chunks_check(const char *at, const char *end)
{
	for (;;) {
		char *behind;
		unsigned long len = strtoul(at, &behind, 16);

		FUZZ_CHECK(behind > at && behind + 2 <= end && !memcmp(behind, "\r\n", 2));
		at = behind + 2;
		FUZZ_CHECK(len + 2 <= (unsigned long)(end - at));
		FUZZ_CHECK(!memcmp(at + len, "\r\n", 2));
		at += len + 2;
		if (len == 0)
			break;
	}
	FUZZ_CHECK(at == end);
}

/* Nothing, or one whole answer; and it is one that may be given to who asked so. */
static void answer_check(const struct asker *asker)
{
	char *text = asker->text;
	const char *body, *field;

	if (asker->len == 0)
		return;
	text[asker->len] = '\0'; /* bodies are text as well */
	FUZZ_CHECK(strlen(text) == asker->len);
	FUZZ_CHECK(!strncmp(text, "HTTP/1.1 ", 9));
	body = strstr(text, "\r\n\r\n");
	FUZZ_CHECK(body != NULL);
	body += 4;
	FUZZ_CHECK(strstr(text, "\r\nX-Frame-Options: DENY\r\n") < body);
	field = strstr(text, "\r\nContent-Length: ");
	if (*body == '\0')
		return; /* HEAD */
	if (field && field < body)
		FUZZ_CHECK(strtoul(field + 18, NULL, 10) == strlen(body));
	else if (strstr(text, "\r\nTransfer-Encoding: chunked\r\n"))
		chunks_check(body, text + asker->len);
}

static void server(const uint8_t *data, size_t len)
{
	size_t from = 0;
	uint32_t at = 0;

	for (int i = 0; i < ASKERS_MAX; i++)
		asker_begin(&askers[i]);
	for (size_t i = 0; i <= len; i++) {
		struct asker *asker = &askers[at];

		if (i < len && data[i] < 0xfe)
			continue;
		if (i > from && !asker->has_ended)
			(void)!send(asker->fd, data + from, i - from, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (i < len && data[i] == 0xff && !asker->has_ended) {
			shutdown(asker->fd, SHUT_WR);
			asker->has_ended = true;
		}
		turn();
		asker_hear(asker);
		from = i + 1;
		at = (at + 1) % ASKERS_MAX;
	}
	for (int i = 0; i < ASKERS_MAX; i++) {
		asker_end(&askers[i]);
		answer_check(&askers[i]);
	}
}

/* Whatever they did, the next one is served. */
static void next_one(void)
{
	static const char question[] = "GET /status.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	struct asker *asker = &askers[0];

	asker_begin(asker);
	FUZZ_CHECK(send(asker->fd, question, sizeof(question) - 1, MSG_NOSIGNAL) > 0);
	asker_end(asker);
	answer_check(asker);
	FUZZ_CHECK(!strncmp(asker->text, "HTTP/1.1 200 OK\r\n", 17));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0 || data[0] != 'S') {
		head(data + (len > 0), len - (len > 0));
		return 0;
	}
	if (stage.worker == NULL)
		stage_begin();
	server(data + 1, len - 1);
	next_one();
	return 0;
}
