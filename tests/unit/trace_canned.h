/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the daemon to the control command "trace", as the tests of the tools need them. */
#ifndef TRACE_CANNED_H
#define TRACE_CANNED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_trace.h"

#define CANNED_CLOCK "{\"offset_ns\":-1234,\"error_ns\":8000,\"age_ns\":50000000}"
/* `clock`, then `messages`: JSON. */
#define CANNED_ANSWER(clock, messages)                                                            \
	"{\"peer\":\"b\",\"service\":\"bulk\",\"channel\":7,\"every\":100,\"next\":123,"          \
	"\"ended\":false,\"missed\":0,\"untraced\":0,\"clock\":" clock ",\"messages\":[" messages \
	"]}"
/* `moments`: the members that differ. */
#define CANNED_MESSAGE(seq, outcome, moments)                                      \
	"{\"seq\":" seq ",\"number\":81" seq ",\"bytes\":1048576,\"fragments\":8," \
	"\"outcome\":\"" outcome "\",\"level\":\"committed\",\"code\":0," moments  \
	",\"error_ns\":8000}"

/* A message as it should be: 1 ms, its ends told after 650 us at home. */
#define CANNED_GOOD                                                                  \
	"\"submitted_ns\":1000000,\"fetched_ns\":1100000,\"first_sent_ns\":1200000," \
	"\"last_sent_ns\":1600000,\"local_ns\":1650000,\"placed_ns\":1800000,"       \
	"\"visible_ns\":1900000,\"verdict_ns\":2000000"
/* Placed 2 us before it was sent, by the clocks' error; half as long. */
#define CANNED_CROSSED                                                               \
	"\"submitted_ns\":1500000,\"fetched_ns\":1600000,\"first_sent_ns\":1700000," \
	"\"last_sent_ns\":1800000,\"local_ns\":1801000,\"placed_ns\":1798000,"       \
	"\"visible_ns\":1900000,\"verdict_ns\":2000000"
/* Nothing is known from the far side. */
#define CANNED_FAILED                                                                \
	"\"submitted_ns\":3000000,\"fetched_ns\":3100000,\"first_sent_ns\":3200000," \
	"\"last_sent_ns\":3600000,\"local_ns\":3650000"

static inline int canned_take(struct mrc_trace *trace, const char *text)
{
	json_error_t error;
	json_t *result = json_loads(text, 0, &error);
	int r;

	if (result == NULL)
		fail_msg("not JSON: %s", error.text);
	r = mrc_trace_take(trace, result);
	json_decref(result);
	return r;
}

#endif
