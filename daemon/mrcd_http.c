/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_http_request.h"
#include "mrcd_log.h"
#include "mrcd_metrics.h"
#include "mrcd_resolve.h"
#include "mrcd_status.h"

#define RETRY_S     5 /* until the address is tried again */
#define LEAVE_S     2 /* for the other side to close, when all is said */
#define PIECE_BYTES 8192
#define HASH_BYTES  64 /* of "sha256-..." in base64 */

enum connection_state {
	ASKING,    /* its request is not whole yet */
	ANSWERING, /* all that is to be said is in the buffer, or the walk makes more of it */
	LEAVING,   /* we have said all, and wait for the end of what it says */
};

/* Somebody who is connected. Owned by struct mrcd_http, in connections, oldest first. */
struct connection {
	TAILQ_ENTRY(connection) entry;
	struct mrcd_http *http;  /* the owner */
	struct bufferevent *bev; /* ours, with the socket */
	struct event *timer;     /* ours; its patience */
	enum connection_state state;
	bool is_walking; /* the answer is made piece by piece */
	bool is_chunked;
	struct mrcd_metrics_walk walk;
};

struct mrcd_http {
	struct mrcd_worker *worker;      /* the owner */
	struct evconnlistener *listener; /* ours; NULL: not bound */
	struct event *retry;             /* ours */
	TAILQ_HEAD(, connection) connections;
	uint32_t connection_count;
	uint64_t requests, refusals;
	bool is_failure_said;
	uint16_t port;
	char machine[256]; /* its own name for itself */
	char script_hash[HASH_BYTES], style_hash[HASH_BYTES];
};

/* ---- connections ---- */

static void connection_free(struct connection *connection)
{
	TAILQ_REMOVE(&connection->http->connections, connection, entry);
	connection->http->connection_count--;
	bufferevent_free(connection->bev);
	event_free(connection->timer);
	free(connection);
}

static void connection_wait(struct connection *connection, enum connection_state state,
			    time_t seconds)
{
	const struct timeval patience = {.tv_sec = seconds};

	connection->state = state;
	event_add(connection->timer, &patience);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	connection_free(context);
}

/*
 * All has been said. To close with something unread would reset the connection,
 * and the other side might lose the end of the answer: we wait until it has closed.
 */
static void connection_leave(struct connection *connection)
{
	shutdown(bufferevent_getfd(connection->bev), SHUT_WR);
	connection_wait(connection, LEAVING, LEAVE_S);
	bufferevent_disable(connection->bev, EV_WRITE);
	bufferevent_enable(connection->bev, EV_READ); /* also to hear that it has closed already */
}

/* ---- answers ---- */

/*
 * The page runs its own script and style and speaks to us alone; and nobody
 * else's page may have our answers in it.
 */
static void put_head(struct connection *connection, const char *status, const char *type,
		     const char *more)
{
	const struct mrcd_http *http = connection->http;

	evbuffer_add_printf(
		bufferevent_get_output(connection->bev),
		"HTTP/1.1 %s\r\n"
		"Content-Type: %s\r\n"
		"Connection: close\r\n"
		"Cache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\n"
		"X-Frame-Options: DENY\r\n"
		"Referrer-Policy: no-referrer\r\n"
		"Cross-Origin-Resource-Policy: same-origin\r\n"
		"Content-Security-Policy: default-src 'none'; script-src '%s'; style-src '%s'; "
		"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'\r\n"
		"%s",
		status, type, http->script_hash, http->style_hash, more);
}

static void put_whole(struct connection *connection, const struct mrcd_http_request *request,
		      const char *status, const char *type, const void *body, size_t body_bytes)
{
	char length[64];

	snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n", body_bytes);
	put_head(connection, status, type, length);
	if (request == NULL || !request->is_head)
		evbuffer_add(bufferevent_get_output(connection->bev), body, body_bytes);
}

static void put_error(struct connection *connection, const char *status, const char *more,
		      const char *text)
{
	char fields[128];

	connection->http->refusals++;
	snprintf(fields, sizeof(fields), "%sContent-Length: %zu\r\n\r\n", more, strlen(text));
	put_head(connection, status, "text/plain; charset=utf-8", fields);
	evbuffer_add(bufferevent_get_output(connection->bev), text, strlen(text));
}

static void put_refusal(struct connection *connection, int error)
{
	switch (error) {
	case -EOPNOTSUPP:
		put_error(connection, "405 Method Not Allowed", "Allow: GET, HEAD\r\n",
			  "GET and HEAD are served; nothing can be changed from here.\n");
		break;
	case -ENAMETOOLONG:
		put_error(connection, "414 URI Too Long", "", "There is no such long name here.\n");
		break;
	case -EMSGSIZE:
		put_error(connection, "431 Request Header Fields Too Large", "",
			  "The head of the request is too large.\n");
		break;
	default:
		put_error(connection, "400 Bad Request", "",
			  "This is no HTTP/1 request with one host.\n");
	}
}

static void put_piece(struct connection *connection)
{
	struct evbuffer *out = bufferevent_get_output(connection->bev);
	struct evbuffer *piece = evbuffer_new();

	if (piece == NULL) {
		connection->is_walking = false; /* cut short: a chunked answer shows it */
		return;
	}
	connection->is_walking = mrcd_metrics_walk_on(&connection->walk, piece, PIECE_BYTES);
	if (connection->is_chunked && evbuffer_get_length(piece) > 0)
		evbuffer_add_printf(out, "%zx\r\n", evbuffer_get_length(piece));
	if (evbuffer_get_length(piece) > 0) {
		evbuffer_add_buffer(out, piece);
		if (connection->is_chunked)
			evbuffer_add(out, "\r\n", 2);
	}
	if (!connection->is_walking && connection->is_chunked)
		evbuffer_add(out, "0\r\n\r\n", 5);
	evbuffer_free(piece);
}

static void put_metrics(struct connection *connection, const struct mrcd_http_request *request)
{
	connection->is_chunked = request->is_chunkable;
	put_head(connection, "200 OK", "text/plain; version=0.0.4; charset=utf-8",
		 request->is_chunkable ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
	if (request->is_head)
		return;
	mrcd_metrics_walk_begin(&connection->walk, connection->http->worker);
	put_piece(connection);
}

static void put_status(struct connection *connection, const struct mrcd_http_request *request)
{
	json_t *status = mrcd_status_json(connection->http->worker, request->since);
	char *text = json_dumps(status, JSON_COMPACT);

	json_decref(status);
	if (text == NULL) {
		put_error(connection, "503 Service Unavailable", "", "Out of memory.\n");
		return;
	}
	put_whole(connection, request, "200 OK", "application/json", text, strlen(text));
	free(text);
}

static void answer(struct connection *connection, const struct mrcd_http_request *request)
{
	struct mrcd_http *http = connection->http;
	const char *const names[] = {http->worker->conf->host, http->machine,
				     http->worker->conf->metrics.name};

	if (!mrcd_http_host_allowed(request->host, names, MRC_ARRAY_LEN(names))) {
		put_error(
			connection, "421 Misdirected Request", "",
			"This daemon is asked by a numeric address, localhost, its host's name, or "
			"the name in metrics.name of its configuration.\n");
		return;
	}
	http->requests++;
	if (strcmp(request->path, "/metrics") == 0)
		put_metrics(connection, request);
	else if (strcmp(request->path, "/status.json") == 0)
		put_status(connection, request);
	else if (strcmp(request->path, "/") == 0)
		put_whole(connection, request, "200 OK", "text/html; charset=utf-8",
			  mrcd_status_page, mrcd_status_page_bytes);
	else
		put_error(connection, "404 Not Found", "",
			  "There is /, /metrics and /status.json.\n");
}

/* ---- callbacks ---- */

static void on_readable(struct bufferevent *bev, void *context)
{
	struct connection *connection = context;
	struct evbuffer *in = bufferevent_get_input(bev);
	struct mrcd_http_request request;
	size_t len_bytes = evbuffer_get_length(in);
	int r;

	if (connection->state != ASKING) {
		evbuffer_drain(in, len_bytes);
		return;
	}
	r = mrcd_http_request_parse((const char *)evbuffer_pullup(in, -1), len_bytes, &request);
	if (r == 0)
		return;
	evbuffer_drain(in, len_bytes);
	mrcd_worker_now(connection->http->worker);
	connection_wait(connection, ANSWERING, MRCD_HTTP_ANSWER_S);
	if (r < 0)
		put_refusal(connection, r);
	else
		answer(connection, &request);
}

static void on_written(struct bufferevent *bev, void *context)
{
	struct connection *connection = context;

	if (connection->state != ANSWERING)
		return;
	if (connection->is_walking) {
		mrcd_worker_now(connection->http->worker);
		put_piece(connection);
	}
	if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		connection_leave(connection);
}

static void on_end(struct bufferevent *bev, short what, void *context)
{
	struct connection *connection = context;

	/* It may close its half and still wait for the answer. */
	if ((what & BEV_EVENT_ERROR) == 0 && connection->state == ANSWERING) {
		bufferevent_disable(bev, EV_READ);
		return;
	}
	connection_free(connection);
}

/* The oldest one that has not said what it wants goes. False: all have. */
static bool make_room(struct mrcd_http *http)
{
	struct connection *connection;

	TAILQ_FOREACH(connection, &http->connections, entry)
	{
		if (connection->state == ANSWERING)
			continue;
		connection_free(connection);
		return true;
	}
	return false;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int address_bytes, void *context)
{
	struct mrcd_http *http = context;
	struct connection *connection;

	if (http->connection_count >= MRCD_HTTP_CONNECTIONS_MAX) {
		http->refusals++;
		if (!make_room(http)) {
			close(fd);
			return;
		}
	}
	connection = calloc(1, sizeof(*connection));
	if (connection == NULL)
		goto err_close_fd;
	connection->http = http;
	connection->timer = evtimer_new(http->worker->base, on_timer, connection);
	connection->bev = bufferevent_socket_new(http->worker->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (connection->timer == NULL || connection->bev == NULL)
		goto err_free_connection;
	TAILQ_INSERT_TAIL(&http->connections, connection, entry);
	http->connection_count++;
	connection_wait(connection, ASKING, MRCD_HTTP_ASK_S);
	bufferevent_setcb(connection->bev, on_readable, on_written, on_end, connection);
	bufferevent_setwatermark(connection->bev, EV_READ, 0, MRCD_HTTP_HEAD_BYTES_MAX);
	bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
	return;

err_free_connection:
	if (connection->bev != NULL)
		bufferevent_free(connection->bev);
	else
		close(fd);
	if (connection->timer != NULL)
		event_free(connection->timer);
	free(connection);
	return;
err_close_fd:
	close(fd);
}

/* ---- listening ---- */

int mrcd_http_listen(const struct mrcd_conf_metrics *conf)
{
	struct sockaddr_storage address;
	socklen_t address_len;
	int fd, on = 1, r;

	r = mrcd_resolve_numeric(conf->address, conf->port, &address, &address_len);
	if (r < 0)
		return r;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, address_len) < 0 || listen(fd, 16) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static int listen_at(struct mrcd_http *http)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.v6 = {0}};
	socklen_t address_len = sizeof(address);
	int fd = mrcd_http_listen(&http->worker->conf->metrics), r;

	if (fd < 0)
		return fd;
	if (getsockname(fd, &address.any, &address_len) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	http->listener = evconnlistener_new(http->worker->base, on_accept, http,
					    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (http->listener == NULL) {
		close(fd);
		return -ENOMEM;
	}
	http->port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
							     : address.v4.sin_port);
	return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	static const struct timeval again = {.tv_sec = RETRY_S};
	struct mrcd_http *http = context;
	const struct mrcd_conf_metrics *conf = &http->worker->conf->metrics;
	bool is_v6 = strchr(conf->address, ':') != NULL;
	int r = listen_at(http);

	if (r == 0) {
		mrcd_info("metrics: status page at http://%s%s%s:%u/", is_v6 ? "[" : "",
			  conf->address, is_v6 ? "]" : "", http->port);
		return;
	}
	if (!http->is_failure_said)
		mrcd_warn(
			"metrics: cannot answer at %s port %u: %s; going on without, trying again",
			conf->address, conf->port, strerror(-r));
	http->is_failure_said = true;
	event_add(http->retry, &again);
}

/* ---- the page's hashes ---- */

/* What stands between the tags, as a Content-Security-Policy names it. */
static void page_hash(const char *begin, const char *end, char hash_out[HASH_BYTES])
{
	const char *page = (const char *)mrcd_status_page;
	const char *from = memmem(page, mrcd_status_page_bytes, begin, strlen(begin));
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int digest_bytes = 0;
	const char *to;

	MRC_ASSERT(from != NULL);
	from += strlen(begin);
	to = memmem(from, mrcd_status_page_bytes - (size_t)(from - page), end, strlen(end));
	MRC_ASSERT(to != NULL);
	MRC_ASSERT(EVP_Digest(from, (size_t)(to - from), digest, &digest_bytes, EVP_sha256(),
			      NULL) == 1);
	memcpy(hash_out, "sha256-", sizeof("sha256-"));
	EVP_EncodeBlock((unsigned char *)hash_out + strlen(hash_out), digest, (int)digest_bytes);
}

/* ---- life ---- */

int mrcd_http_make(struct mrcd_worker *worker, struct mrcd_http **http_out)
{
	struct mrcd_http *http = calloc(1, sizeof(*http));

	if (http == NULL)
		return -ENOMEM;
	http->worker = worker;
	TAILQ_INIT(&http->connections);
	gethostname(http->machine, sizeof(http->machine) - 1);
	page_hash("<script>", "</script>", http->script_hash);
	page_hash("<style>", "</style>", http->style_hash);
	http->retry = evtimer_new(worker->base, on_retry, http);
	if (http->retry == NULL) {
		free(http);
		return -ENOMEM;
	}
	*http_out = http;
	return 0;
}

void mrcd_http_start(struct mrcd_http *http)
{
	on_retry(-1, 0, http);
}

int mrcd_http_new(struct mrcd_worker *worker, struct mrcd_http **http_out)
{
	int r = mrcd_http_make(worker, http_out);

	if (r == 0)
		mrcd_http_start(*http_out);
	return r;
}

void mrcd_http_free(struct mrcd_http *http)
{
	struct connection *connection;

	if (http == NULL)
		return;
	while ((connection = TAILQ_FIRST(&http->connections)) != NULL) {
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		connection_free(connection); /* NOLINT(clang-analyzer-unix.Malloc) */
	}
	if (http->listener != NULL)
		evconnlistener_free(http->listener);
	event_free(http->retry);
	free(http);
}

uint64_t mrcd_http_requests(const struct mrcd_http *http)
{
	return http->requests;
}

uint64_t mrcd_http_refusals(const struct mrcd_http *http)
{
	return http->refusals;
}

uint16_t mrcd_http_port(const struct mrcd_http *http)
{
	return http->port;
}
