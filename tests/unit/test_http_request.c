/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads of requests: whatever arrives is a request, not whole yet, or refused; and who asks for another's name is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "mrc_base.h"
#include "mrcd_http_request.h"

static int parse(const char *text, struct mrcd_http_request *out)
{
	/* In memory of just that size: a byte too far is seen by a sanitizer. */
	size_t len = strlen(text);
	char *copy = malloc(len + (len == 0));
	int r;

	assert_non_null(copy);
	for (size_t i = 0; i < len; i++)
		copy[i] = text[i]; /* without the 0 at its end */
	r = mrcd_http_request_parse(copy, len, out);
	free(copy);
	return r;
}

static void request_is_what_matters_of_its_head(void **state)
{
	static const struct {
		const char *text, *path, *host;
		uint64_t since;
		bool is_head, is_chunkable;
	} rows[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "/", "a", 0, false, true},
		{"HEAD /metrics HTTP/1.0\r\nhost:\tA.Example.:9471 \r\n\r\n", "/metrics",
		 "a.example", 0, true, false},
		{"GET /status.json?since=77 HTTP/1.1\r\nX: y\r\nHOST: 127.0.0.1:9471\r\n\r\n",
		 "/status.json", "127.0.0.1", 77, false, true},
		{"GET / HTTP/1.1\nHost: [::1]:9471\n\n", "/", "::1", 0, false, true},
		{"GET /?since=x HTTP/1.1\r\nHost: a\r\n\r\n", "/", "a", 0, false, true},
		{"GET /?since=7x HTTP/1.1\r\nHost: a\r\n\r\n", "/", "a", 0, false, true},
		{"GET /?since=99999999999999999999 HTTP/1.1\r\nHost: a\r\n\r\n", "/", "a", 0, false,
		 true},
		{"GET /?sinc HTTP/1.1\r\nHost: a\r\n\r\n", "/", "a", 0, false, true},
		{"GET /%2e%2e/ HTTP/1.1\r\nHost: a\r\n\r\n", "/%2e%2e/", "a", 0, false, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrcd_http_request request;
		int r = parse(rows[i].text, &request);

		if (r != (int)strlen(rows[i].text))
			fail_msg("%s: %d", rows[i].text, r);
		assert_string_equal(request.path, rows[i].path);
		assert_string_equal(request.host, rows[i].host);
		assert_int_equal(request.since, rows[i].since);
		assert_int_equal(request.is_head, rows[i].is_head);
		assert_int_equal(request.is_chunkable, rows[i].is_chunkable);
	}
}

static void head_that_is_cut_anywhere_is_waited_for(void **state)
{
	static const char whole[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nA: b\r\n\r\n";
	struct mrcd_http_request request;

	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		char text[sizeof(whole)] = "";

		memcpy(text, whole, len);
		if (parse(text, &request) != 0)
			fail_msg("cut at %zu: not waited for", len);
	}
}

static void what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{"\r\n", -EBADMSG},
		{"GET\r\n", -EBADMSG},
		{"GET / HTTP/2\r\n", -EBADMSG},
		{"GET / HTTP/1.1 \r\n", -EBADMSG},
		{"GET  / HTTP/1.1\r\n", -EBADMSG},
		{"get / HTTP/1.1\r\n", -EOPNOTSUPP},
		{"POST / HTTP/1.1\r\n", -EOPNOTSUPP},
		{"\x16\x03\x01 / HTTP/1.1\r\n", -EBADMSG},
		{"GET http://127.0.0.1/ HTTP/1.1\r\n", -EBADMSG},
		{"GET /a\x01 HTTP/1.1\r\n", -EBADMSG},
		{"GET /0123456789012345678901234567890123456789012345678901234567890123 "
		 "HTTP/1.1\r\n",
		 -ENAMETOOLONG},
		{"GET / HTTP/1.1\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nHost:\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\nno colon\r\n\r\n", -EBADMSG},
		{"GET / HTTP/1.1\r\n: x\r\n\r\n", -EBADMSG},
	};
	static char text[2 * MRCD_HTTP_HEAD_BYTES_MAX];
	struct mrcd_http_request request;

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		int r = parse(rows[i].text, &request);

		if (r != rows[i].want)
			fail_msg("%s: %d, not %d", rows[i].text, r, rows[i].want);
	}
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "GET / HTTP/1.1\r\nHost: ", 22);
	text[300] = '\r';
	text[301] = '\n';
	assert_int_equal(parse(text, &request), -ENAMETOOLONG);
	memcpy(text, "GET / HTTP/1.1\r\nFoo:  ", 22);
	assert_int_equal(parse(text, &request), -EMSGSIZE);
	text[MRCD_HTTP_HEAD_BYTES_MAX - 1] = '\0';
	assert_int_equal(parse(text, &request), 0);
}

static void host_is_ours_or_a_number(void **state)
{
	static const char *const names[] = {"a", NULL, "", "node1.example"};
	static const struct {
		const char *host;
		bool want;
	} rows[] = {
		{"127.0.0.1", true},       {"10.1.2.3", true}, {"::1", true},
		{"localhost", true},       {"a", true},        {"node1.example", true},
		{"evil.example", false},   {"a.evil", false},  {"127.0.0.1.evil", false},
		{"localhost.evil", false}, {"0x7f.1", false},  {"", false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		if (mrcd_http_host_allowed(rows[i].host, names, MRC_ARRAY_LEN(names)) !=
		    rows[i].want)
			fail_msg("\"%s\"", rows[i].host);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_is_what_matters_of_its_head),
		cmocka_unit_test(head_that_is_cut_anywhere_is_waited_for),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(host_is_ours_or_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
