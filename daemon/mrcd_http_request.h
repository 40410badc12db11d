/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_http_request - the head of an HTTP request, as a stranger may have written it
 *
 * Total: every text is either not whole yet, refused, or a request of which
 * only what is in the struct matters. GET and HEAD alone; what is behind the
 * head is not read.
 *
 * Threads: any.  I/O, time: none.
 */
#ifndef MRCD_HTTP_REQUEST_H
#define MRCD_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRCD_HTTP_HEAD_BYTES_MAX 8192U /* of a request: line, fields, and the empty line */
#define MRCD_HTTP_PATH_BYTES     64U
#define MRCD_HTTP_HOST_BYTES     256U

struct mrcd_http_request {
	bool is_head;                    /* HEAD: the answer's head only */
	bool is_chunkable;               /* HTTP/1.1 */
	char path[MRCD_HTTP_PATH_BYTES]; /* up to the ?; nothing in it is decoded */
	uint64_t since;                  /* of the query; 0: none, or no number */
	char host[MRCD_HTTP_HOST_BYTES]; /* without a port or brackets, in lower case */
};

/*
 * How many bytes the head has, when all of it is there; 0: more is wanted.
 * -EBADMSG          it is no HTTP/1 request, or has no host, or several
 * -EOPNOTSUPP       neither GET nor HEAD
 * -ENAMETOOLONG     longer than any path or host there is
 * -EMSGSIZE         the head is longer than MRCD_HTTP_HEAD_BYTES_MAX
 */
int mrcd_http_request_parse(const char *text, size_t len_bytes, struct mrcd_http_request *out);

/*
 * May somebody who asks for this host be answered? A page of another site whose
 * name was made to lead here (DNS rebinding) asks for that name, so: numeric
 * addresses, localhost, and the names given, each of which may be NULL or "".
 */
bool mrcd_http_host_allowed(const char *host, const char *const *names, size_t name_count);

#endif
