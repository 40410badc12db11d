/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_gap_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrc_perf_options.h"
#include "mrcctl_table.h"
#include "mrcctl_trace_show.h"
#include "mrcctl_unit.h"

#define GAP_POINTS_MAX 2000U /* of one curve: more than a picture has columns */

static const struct {
	enum mrc_trace_moment moment;
	const char *colour;
} gap_rows[] = {
	{MRC_TRACE_PLACED, "#0072b2"},
	{MRC_TRACE_VISIBLE, "#e69f00"},
	{MRC_TRACE_VERDICT, "#009e73"},
};

#define GAP_ROW_COUNT (sizeof(gap_rows) / sizeof(gap_rows[0]))

static double gap_share(size_t count, size_t all)
{
	return all ? (double)count / (double)all : 0;
}

/* ---- text ---- */

static void gap_add_span(struct mrcctl_table *table, size_t count, int64_t ns)
{
	char text[MRCCTL_UNIT_BYTES];

	mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
			 count ? mrcctl_unit_span_signed(ns, text) : "-");
}

static void gap_add_share(struct mrcctl_table *table, size_t count, size_t all)
{
	if (all)
		mrcctl_table_add(table, MRCCTL_PLAIN, "%.2f %%", gap_share(count, all) * 100);
	else
		mrcctl_table_add(table, MRCCTL_PLAIN, "-");
}

void perf_gap_report(FILE *out, const struct mrc_trace *trace, bool has_colour)
{
	static const struct mrcctl_column columns[] = {
		{"REALLY", MRCCTL_LEFT},       {"COUNT", MRCCTL_RIGHT},
		{"MIN", MRCCTL_RIGHT},         {"P50", MRCCTL_RIGHT},
		{"P90", MRCCTL_RIGHT},         {"P99", MRCCTL_RIGHT},
		{"P99.9", MRCCTL_RIGHT},       {"MAX", MRCCTL_RIGHT},
		{"LOCAL FIRST", MRCCTL_RIGHT}, {"WITHIN ERROR", MRCCTL_RIGHT},
	};
	struct mrcctl_table *table =
		mrcctl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	char text[MRCCTL_UNIT_BYTES + 8];

	if (!table)
		return;
	fprintf(out,
		"the gap after the local completion, channel %" PRIu64 " to %s/%s, 1 message in "
		"%" PRIu64 ":\n"
		"at that moment RDMA would have said \"done\"; so much later the message really "
		"was\n",
		trace->channel, trace->peer, trace->service, trace->every);
	for (size_t i = 0; i < GAP_ROW_COUNT; i++) {
		struct mrc_trace_quantiles quantiles;

		mrc_trace_quantiles(trace, MRC_TRACE_LOCAL, gap_rows[i].moment, &quantiles);
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 mrc_trace_moment_text(gap_rows[i].moment));
		mrcctl_table_add(table, MRCCTL_PLAIN, "%s",
				 mrcctl_unit_count(quantiles.count, text));
		gap_add_span(table, quantiles.count, quantiles.min_ns);
		gap_add_span(table, quantiles.count, quantiles.p50_ns);
		gap_add_span(table, quantiles.count, quantiles.p90_ns);
		gap_add_span(table, quantiles.count, quantiles.p99_ns);
		gap_add_span(table, quantiles.count, quantiles.p999_ns);
		gap_add_span(table, quantiles.count, quantiles.max_ns);
		gap_add_share(table, quantiles.after_count, quantiles.count);
		gap_add_share(table, quantiles.unsure_count, quantiles.count);
	}
	mrcctl_table_print(table, out, has_colour);
	mrcctl_table_free(table);
	mrcctl_trace_show_notes(trace, false, out);
	if (trace->left_out > 0)
		fprintf(out, "left out: the last %s messages, there was no room for more\n",
			mrcctl_unit_count(trace->left_out, text));
	fflush(out);
}

/* ---- JSON ---- */

json_t *perf_gap_json(const struct mrc_trace *trace)
{
	json_t *json =
		json_pack("{s:s s:s s:I s:I s:o s:I s:I s:I}", "peer", trace->peer, "service",
			  trace->service, "channel", (json_int_t)trace->channel, "every",
			  (json_int_t)trace->every, "clock", mrc_trace_clock_json(&trace->clock),
			  "missed", (json_int_t)trace->missed, "untraced",
			  (json_int_t)trace->untraced, "left_out", (json_int_t)trace->left_out);

	for (size_t i = 0; i < GAP_ROW_COUNT; i++) {
		struct mrc_trace_quantiles q;

		mrc_trace_quantiles(trace, MRC_TRACE_LOCAL, gap_rows[i].moment, &q);
		json_object_set_new(json, mrc_trace_moment_name(gap_rows[i].moment),
				    json_pack("{s:I s:I s:I s:I s:I s:I s:I s:f s:f s:I}", "count",
					      (json_int_t)q.count, "min_ns", (json_int_t)q.min_ns,
					      "p50_ns", (json_int_t)q.p50_ns, "p90_ns",
					      (json_int_t)q.p90_ns, "p99_ns", (json_int_t)q.p99_ns,
					      "p999_ns", (json_int_t)q.p999_ns, "max_ns",
					      (json_int_t)q.max_ns, "local_first",
					      gap_share(q.after_count, q.count), "within_error",
					      gap_share(q.unsure_count, q.count), "error_ns",
					      (json_int_t)q.error_ns));
	}
	return json;
}

/* ---- the picture ---- */

/* One curve: us, and the share of all messages whose gap was at most that. Answers the points. */
static size_t gap_curve(const struct mrc_trace *trace, enum mrc_trace_moment moment,
			int64_t *least_ns, int64_t *most_ns, FILE *out)
{
	const int64_t *spans;
	size_t count = mrc_trace_spans(trace, MRC_TRACE_LOCAL, moment, &spans), points = 0;
	size_t step = count / GAP_POINTS_MAX + 1;

	for (size_t i = 0; i < count; i++) {
		/* A logarithm has no place for what is not above 0: the curve begins as high as there are of it. */
		if (spans[i] <= 0)
			continue;
		*least_ns = *least_ns == 0 || spans[i] < *least_ns ? spans[i] : *least_ns;
		*most_ns = spans[i] > *most_ns ? spans[i] : *most_ns;
		if (i % step != 0 && i + 1 < count)
			continue;
		fprintf(out, "%.3f %.6f\n", (double)spans[i] / 1e3, gap_share(i + 1, count));
		points++;
	}
	return points;
}

/* As gnuplot takes a string: a quote in it is written twice. */
static void gap_quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputc('\'', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

int perf_gap_script(const struct mrc_trace *trace, const char *file, FILE *out)
{
	size_t len = strlen(file), points[GAP_ROW_COUNT], all = 0;
	bool is_svg = len >= 4 && strcmp(file + len - 4, ".svg") == 0, is_first = true;
	int64_t least_ns = 0, most_ns = 0;

	for (size_t i = 0; i < GAP_ROW_COUNT; i++) {
		fprintf(out, "$curve%zu << EOD\n", i);
		points[i] = gap_curve(trace, gap_rows[i].moment, &least_ns, &most_ns, out);
		fprintf(out, "EOD\n");
		all += points[i];
	}
	if (all == 0)
		return -ENODATA;
	fprintf(out,
		"set terminal %s size 1000,560 enhanced font 'sans,12' background rgb 'white'\n"
		"set encoding utf8\nset output ",
		is_svg ? "svg" : "pngcairo");
	gap_quote(out, file);
	fprintf(out,
		"\nset border 3 lw 1 lc rgb '#666666'\n"
		"set tics nomirror out textcolor rgb '#333333'\n"
		"set grid lc rgb '#dddddd' lw 1\n"
		"set title 'RDMA said \"done\" at the local completion: how much later the message "
		"really was' noenhanced font ',14'\n"
		"set logscale x\n"
		"set xlabel 'microseconds after the local completion'\n"
		"set ylabel 'share of messages'\n"
		"set yrange [0:1]\nset ytics 0.1\n"
		"set key top left reverse Left\n"
		"set xrange [%.6f:%.6f]\n"
		"plot ",
		(double)least_ns / 1e3 / 1.2, (double)most_ns / 1e3 * 1.2);
	for (size_t i = 0; i < GAP_ROW_COUNT; i++) {
		if (points[i] == 0)
			continue;
		fprintf(out, "%s$curve%zu using 1:2 with steps lw 2 lc rgb '%s' title '%s'",
			is_first ? "" : ", ", i, gap_rows[i].colour,
			mrc_trace_moment_text(gap_rows[i].moment));
		is_first = false;
	}
	fprintf(out, "\n");
	return 0;
}

/* gnuplot with that standard input, and its own output nowhere but errors. Its exit status, or a negative errno. */
static int gap_gnuplot(int in_fd, const char *argument)
{
	char name[] = "gnuplot", copy[16];
	char *argv[] = {name, copy, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;
	int r, status;

	snprintf(copy, sizeof(copy), "%s", argument);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	/* We hold SIGINT and SIGTERM back for a signalfd; the child shall feel them. */
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawnp(&pid, name, &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (r != 0)
		return -r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int gap_no_gnuplot(int r, char *error_out)
{
	if (r == -ENOENT)
		snprintf(error_out, PERF_ERROR_BYTES,
			 "--picture wants gnuplot, which is not installed (Debian: gnuplot-nox)");
	else if (r < 0)
		snprintf(error_out, PERF_ERROR_BYTES, "gnuplot cannot be run: %s", strerror(-r));
	else
		snprintf(error_out, PERF_ERROR_BYTES, "gnuplot failed, with status %d", r);
	return r < 0 ? r : -EIO;
}

int perf_gap_draw_check(const char *file, char *error_out)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), null, r;

	if (fd >= 0)
		unlink(file); /* nothing empty is left behind if there will be no picture */
	else if (errno == EEXIST)
		fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		snprintf(error_out, PERF_ERROR_BYTES, "--picture %s: %s", file, strerror(-r));
		return r;
	}
	close(fd);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = null < 0 ? -errno : gap_gnuplot(null, "--version");
	if (null >= 0)
		close(null);
	return r == 0 ? 0 : gap_no_gnuplot(r, error_out);
}

int perf_gap_draw(const struct mrc_trace *trace, const char *file, char *error_out)
{
	/* A file and not a pipe: a gnuplot that ends early is then no signal to us. */
	FILE *script = tmpfile();
	int r = script ? perf_gap_script(trace, file, script) : -errno;

	if (r == -ENODATA) {
		snprintf(error_out, PERF_ERROR_BYTES,
			 "nothing to draw: no message is known to have been placed after its local "
			 "completion");
	} else if (r < 0 || fflush(script) != 0 || fseek(script, 0, SEEK_SET) != 0) {
		r = r < 0 ? r : -errno;
		snprintf(error_out, PERF_ERROR_BYTES, "no temporary file for gnuplot: %s",
			 strerror(-r));
	} else {
		r = gap_gnuplot(fileno(script), "-");
		r = r == 0 ? 0 : gap_no_gnuplot(r, error_out);
	}
	if (script)
		fclose(script);
	return r;
}
