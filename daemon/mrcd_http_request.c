/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_http_request.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "mrcd_conf_address.h"

/* Part of the text. */
struct piece {
	const char *at;
	size_t len;
};

/* The next line without its end; false: it has none yet. A bare LF ends one as well (RFC 9112, 2.2). */
static bool take_line(struct piece *text, struct piece *line_out)
{
	const char *end = memchr(text->at, '\n', text->len);

	if (end == NULL)
		return false;
	line_out->at = text->at;
	line_out->len = (size_t)(end - text->at);
	text->len -= line_out->len + 1;
	text->at = end + 1;
	if (line_out->len > 0 && line_out->at[line_out->len - 1] == '\r')
		line_out->len--;
	return true;
}

/* Up to the next space, which is taken off as well. */
static struct piece take_word(struct piece *line)
{
	const char *space = memchr(line->at, ' ', line->len);
	struct piece word = {line->at, space != NULL ? (size_t)(space - line->at) : line->len};
	size_t step = word.len + (space != NULL);

	line->at += step;
	line->len -= step;
	return word;
}

static bool is_word(struct piece piece, const char *word)
{
	return piece.len == strlen(word) && memcmp(piece.at, word, piece.len) == 0;
}

static bool is_printable(struct piece piece)
{
	for (size_t i = 0; i < piece.len; i++) {
		if (piece.at[i] <= ' ' || piece.at[i] > '~')
			return false;
	}
	return true;
}

/* "...?since=77": nothing else is understood, and nothing else is an error. */
static uint64_t since_of(struct piece query)
{
	static const char key[] = "since=";
	uint64_t number = 0;

	if (query.len <= sizeof(key) - 1 || query.len > sizeof(key) - 1 + 18 ||
	    memcmp(query.at, key, sizeof(key) - 1) != 0)
		return 0;
	for (size_t i = sizeof(key) - 1; i < query.len; i++) {
		if (!isdigit((unsigned char)query.at[i]))
			return 0;
		number = number * 10 + (uint64_t)(query.at[i] - '0');
	}
	return number;
}

static int take_target(struct piece target, struct mrcd_http_request *out)
{
	const char *question;

	if (target.len == 0 || target.at[0] != '/' || !is_printable(target))
		return -EBADMSG;
	question = memchr(target.at, '?', target.len);
	if (question != NULL) {
		size_t path_len = (size_t)(question - target.at);

		out->since = since_of((struct piece){question + 1, target.len - path_len - 1});
		target.len = path_len;
	}
	if (target.len >= sizeof(out->path))
		return -ENAMETOOLONG;
	memcpy(out->path, target.at, target.len);
	out->path[target.len] = '\0';
	return 0;
}

static int take_request_line(struct piece line, struct mrcd_http_request *out)
{
	struct piece method = take_word(&line), target = take_word(&line), version = line;

	if (is_word(version, "HTTP/1.1"))
		out->is_chunkable = true;
	else if (!is_word(version, "HTTP/1.0"))
		return -EBADMSG;
	if (is_word(method, "HEAD"))
		out->is_head = true;
	else if (!is_word(method, "GET"))
		return method.len > 0 && is_printable(method) ? -EOPNOTSUPP : -EBADMSG;
	return take_target(target, out);
}

/* The name or address in "name:port", "1.2.3.4" or "[::1]:9471". */
static int take_host(struct piece value, struct mrcd_http_request *out)
{
	const char *end;

	if (value.len == 0 || !is_printable(value))
		return -EBADMSG;
	if (value.at[0] == '[') {
		end = memchr(value.at, ']', value.len);
		if (end == NULL)
			return -EBADMSG;
		value.at++;
	} else {
		end = memchr(value.at, ':', value.len);
		if (end == NULL)
			end = value.at + value.len;
	}
	value.len = (size_t)(end - value.at);
	if (value.len > 1 && value.at[value.len - 1] == '.')
		value.len--; /* a name may be written to its root */
	if (value.len == 0)
		return -EBADMSG;
	if (value.len >= sizeof(out->host))
		return -ENAMETOOLONG;
	for (size_t i = 0; i < value.len; i++)
		out->host[i] = (char)tolower((unsigned char)value.at[i]);
	out->host[value.len] = '\0';
	return 0;
}

static int take_field(struct piece line, struct mrcd_http_request *out)
{
	static const char name[] = "host";
	const char *colon = memchr(line.at, ':', line.len);
	struct piece value;

	if (colon == NULL || colon == line.at)
		return -EBADMSG;
	if ((size_t)(colon - line.at) != sizeof(name) - 1 ||
	    strncasecmp(line.at, name, sizeof(name) - 1) != 0)
		return 0;
	if (out->host[0] != '\0')
		return -EBADMSG;
	value.at = colon + 1;
	value.len = line.len - (size_t)(value.at - line.at);
	while (value.len > 0 && (value.at[0] == ' ' || value.at[0] == '\t')) {
		value.at++;
		value.len--;
	}
	while (value.len > 0 && (value.at[value.len - 1] == ' ' || value.at[value.len - 1] == '\t'))
		value.len--;
	return take_host(value, out);
}

int mrcd_http_request_parse(const char *text, size_t len_bytes, struct mrcd_http_request *out)
{
	bool is_cut = len_bytes >= MRCD_HTTP_HEAD_BYTES_MAX;
	struct piece rest = {text, is_cut ? MRCD_HTTP_HEAD_BYTES_MAX : len_bytes}, line;
	bool is_first = true;

	*out = (struct mrcd_http_request){0};
	while (take_line(&rest, &line)) {
		int r;

		if (!is_first && line.len == 0)
			return out->host[0] != '\0' ? (int)(rest.at - text) : -EBADMSG;
		r = is_first ? take_request_line(line, out) : take_field(line, out);
		if (r < 0)
			return r;
		is_first = false;
	}
	return is_cut ? -EMSGSIZE : 0;
}

bool mrcd_http_host_allowed(const char *host, const char *const *names, size_t name_count)
{
	if (mrcd_address_family(host) != AF_UNSPEC || strcmp(host, "localhost") == 0)
		return true;
	for (size_t i = 0; i < name_count; i++) {
		if (names[i] != NULL && names[i][0] != '\0' && strcasecmp(host, names[i]) == 0)
			return true;
	}
	return false;
}
