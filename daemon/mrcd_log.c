/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX \
	1024U /* one write(2); below PIPE_BUF, so that lines of two threads never mix */

/*
 * The one thing of the process that is global: stderr is, and what is wrong
 * with one struct mrcd must be sayable where there is none yet.
 */
static atomic_int log_level_max = LOG_INFO;
static atomic_bool log_is_journal;

static const char *const level_names[] = {"emergency", "alert",  "critical", "error",
					  "warning",   "notice", "info",     "debug"};

/* systemd says which stream is the journal's; a redirection in between makes it untrue. */
static bool stderr_is_journal(void)
{
	const char *said = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!said || sscanf(said, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void mrcd_log_init(int level_max)
{
	atomic_store_explicit(&log_is_journal, stderr_is_journal(), memory_order_relaxed);
	mrcd_log_set_level(level_max);
}

void mrcd_log_set_level(int level_max)
{
	atomic_store_explicit(&log_level_max, level_max, memory_order_relaxed);
}

static size_t prefix_write(char *line, size_t size, int level)
{
	struct timespec now;
	struct tm tm;
	int len;

	if (atomic_load_explicit(&log_is_journal, memory_order_relaxed)) {
		len = snprintf(line, size, "<%d>", level);
	} else {
		/* UTC: two hosts' lines can be laid side by side. */
		clock_gettime(CLOCK_REALTIME, &now);
		gmtime_r(&now.tv_sec, &tm);
		len = snprintf(line, size,
			       "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ mrcd %s: ", tm.tm_year + 1900,
			       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
			       now.tv_nsec / 1000000, level_names[level]);
	}
	return len < 0 ? 0 : (size_t)len;
}

void mrcd_log(int level, const char *format, ...)
{
	static const char cut[] = "...";
	int errno_before = errno;
	char line[LINE_BYTES_MAX];
	size_t begin, len;
	va_list args;
	ssize_t written;
	int wanted;

	if (level > atomic_load_explicit(&log_level_max, memory_order_relaxed))
		return;
	if (level < LOG_EMERG)
		level = LOG_EMERG;
	if (level > LOG_DEBUG)
		level = LOG_DEBUG;

	begin = prefix_write(line, sizeof(line), level);
	errno = errno_before; /* for %m */
	va_start(args, format);
	wanted = vsnprintf(line + begin, sizeof(line) - begin, format, args);
	va_end(args);
	if (wanted < 0)
		wanted = 0;
	len = begin + (size_t)wanted;
	if (len > sizeof(line) - 1) {
		len = sizeof(line) - 1;
		memcpy(line + len - strlen(cut), cut, strlen(cut) + 1);
	}

	/* A name from outside must not be able to begin a line of its own or to steer a terminal. */
	for (size_t i = begin; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n'; /* over the 0: write(2) needs none */

	do {
		written = write(STDERR_FILENO, line, len);
	} while (written < 0 && errno == EINTR);
	/* Nobody left to tell when even that fails. */
	errno = errno_before;
}

bool mrcd_log_allowed(struct mrcd_log_limit *limit, uint64_t now_ns, uint64_t *suppressed_out)
{
	if (now_ns - limit->window_start_ns >= limit->interval_ns) {
		limit->window_start_ns = now_ns;
		limit->said = 0;
	}
	if (limit->said >= limit->burst) {
		limit->suppressed++;
		return false;
	}
	limit->said++;
	*suppressed_out = limit->suppressed;
	limit->suppressed = 0;
	return true;
}

const char *mrcd_log_held_back(uint64_t suppressed, char text[MRCD_LOG_HELD_BACK_BYTES])
{
	text[0] = '\0';
	if (suppressed > 0)
		snprintf(text, MRCD_LOG_HELD_BACK_BYTES, " (%llu such line%s held back)",
			 (unsigned long long)suppressed, suppressed == 1 ? "" : "s");
	return text;
}
