/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_log - one line per thing that happened, with its consequence
 *
 * To stderr; with priorities "<n>" in front when stderr is the journal
 * ($JOURNAL_STREAM), with time and level otherwise. Level numbers are syslog's.
 *
 * Threads: any.
 */
#ifndef MRCD_LOG_H
#define MRCD_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

void mrcd_log_init(int level_max);
void mrcd_log_set_level(int level_max);
void mrcd_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define mrcd_err(...)    mrcd_log(LOG_ERR, __VA_ARGS__)
#define mrcd_warn(...)   mrcd_log(LOG_WARNING, __VA_ARGS__)
#define mrcd_notice(...) mrcd_log(LOG_NOTICE, __VA_ARGS__)
#define mrcd_info(...)   mrcd_log(LOG_INFO, __VA_ARGS__)
#define mrcd_debug(...)  mrcd_log(LOG_DEBUG, __VA_ARGS__)

/*
 * For lines that a stranger can cause: at most `burst` per interval; then they
 * are counted, and the next one let through says how many were held back.
 */
struct mrcd_log_limit {
	uint64_t interval_ns;
	uint32_t burst;
	/* state */
	uint64_t window_start_ns;
	uint32_t said;
	uint64_t suppressed;
};
#define MRCD_LOG_LIMIT_INIT(interval, count)                \
	{                                                   \
		.interval_ns = (interval), .burst = (count) \
	}
/* True when the line may be written; *suppressed_out is how many were not since the last one. */
bool mrcd_log_allowed(struct mrcd_log_limit *limit, uint64_t now_ns, uint64_t *suppressed_out);
/* " (7 such lines held back)", for the end of one; "" for none. Answers `text`. */
#define MRCD_LOG_HELD_BACK_BYTES 48
const char *mrcd_log_held_back(uint64_t suppressed, char text[MRCD_LOG_HELD_BACK_BYTES]);

#endif
