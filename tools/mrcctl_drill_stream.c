/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill_stream.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 24
#define PATH_BYTES    4096
/* Shorter gaps are nobody's concern; of all others the longest 4096 are kept. */
#define STALLS "100us"

/* The file `name` beside `path`. "": there is no room, or `path` has no folder. */
static void mrcctl_drill_beside(const char *path, const char *name, char text[PATH_BYTES])
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL ||
	    snprintf(text, PATH_BYTES, "%.*s/%s", (int)(slash - path), path, name) >= PATH_BYTES)
		text[0] = '\0';
}

static const char *mrcctl_drill_perf(char text[PATH_BYTES])
{
	char self[PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len > 0 ? len : 0] = '\0';
	mrcctl_drill_beside(self, "mrc-perf", text);
	return text[0] != '\0' && access(text, X_OK) == 0 ? text : "mrc-perf";
}

/* What mrc-perf is to be told of where the daemon is: the socket that lies beside the other. */
static int mrcctl_drill_arguments(const char **argv, int count, const char *control,
				  char socket[PATH_BYTES])
{
	mrcctl_drill_beside(control, "mrcd.sock", socket);
	if (socket[0] != '\0' && access(socket, F_OK) == 0) {
		argv[count++] = "--socket";
		argv[count++] = socket;
	}
	argv[count] = NULL;
	return count;
}

/* execvp() does not change them; its type is older than const. */
static void mrcctl_drill_exec(const char *file, const char **argv)
{
	execvp(file, (char *const *)(uintptr_t)argv);
}

int mrcctl_drill_serve(const char *control)
{
	const char *argv[ARGUMENTS_MAX] = {"mrc-perf", "serve"};
	char perf[PATH_BYTES], socket[PATH_BYTES];

	mrcctl_drill_arguments(argv, 2, control, socket);
	mrcctl_drill_exec(mrcctl_drill_perf(perf), argv);
	return -errno;
}

int mrcctl_drill_stream_start(struct mrcctl_drill_stream *stream, const char *control,
			      const char *peer, const char *pace)
{
	const char *argv[ARGUMENTS_MAX] = {
		"mrc-perf",          "stream", peer,         "--verify", "--json",    "--quiet",
		"--stalls",          STALLS,   "--duration", "0",        "--control", "none",
		"--connect-timeout", "2s"};
	char perf[PATH_BYTES], socket[PATH_BYTES];
	const char *file = mrcctl_drill_perf(perf);
	int count = 14;
	sigset_t none;

	memset(stream, 0, sizeof(*stream));
	snprintf(stream->peer, sizeof(stream->peer), "%s", peer);
	if (pace != NULL) {
		argv[count++] = "--pace";
		argv[count++] = pace;
	}
	mrcctl_drill_arguments(argv, count, control, socket);
	stream->out = tmpfile();
	stream->err = tmpfile();
	if (stream->out == NULL || stream->err == NULL)
		return -errno;
	stream->pid = fork();
	if (stream->pid < 0) {
		stream->pid = 0;
		return -errno;
	}
	if (stream->pid > 0)
		return 0;
	/* We hold SIGINT back for a signalfd; a terminal's goes to the child as well, which shall wait for ours. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	dup2(fileno(stream->out), STDOUT_FILENO);
	dup2(fileno(stream->err), STDERR_FILENO);
	mrcctl_drill_exec(file, argv);
	dprintf(STDERR_FILENO, "mrc-perf cannot be run: %s\n", strerror(errno));
	_exit(127);
}

static void mrcctl_drill_stream_said(struct mrcctl_drill_stream *stream, char *text,
				     size_t text_bytes)
{
	size_t len;

	rewind(stream->err);
	len = fread(text, 1, text_bytes - 1, stream->err);
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

bool mrcctl_drill_stream_has_ended(struct mrcctl_drill_stream *stream, char *text,
				   size_t text_bytes)
{
	if (stream->pid != 0 && waitpid(stream->pid, NULL, WNOHANG) == stream->pid) {
		stream->pid = 0;
		mrcctl_drill_stream_said(stream, text, text_bytes);
		return true;
	}
	return stream->pid == 0;
}

static uint64_t mrcctl_drill_stream_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

int mrcctl_drill_stream_stop(struct mrcctl_drill_stream *stream,
			     struct mrcctl_drill_verdict *verdict_out)
{
	const json_t *verify, *outcome;
	json_t *outcomes;
	const char *name;

	memset(verdict_out, 0, sizeof(*verdict_out));
	if (stream->pid > 0) {
		kill(stream->pid, SIGTERM);
		while (waitpid(stream->pid, NULL, 0) < 0 && errno == EINTR)
			;
		stream->pid = 0;
	}
	if (stream->out == NULL)
		return -EBADMSG;
	rewind(stream->out);
	stream->result = json_loadf(stream->out, 0, NULL);
	verify = json_object_get(stream->result, "verify");
	if (!json_is_object(verify))
		return -EBADMSG;
	verdict_out->messages = mrcctl_drill_stream_number(stream->result, "messages");
	verdict_out->lost = mrcctl_drill_stream_number(verify, "lost");
	verdict_out->duplicated = mrcctl_drill_stream_number(verify, "duplicated");
	verdict_out->reordered = mrcctl_drill_stream_number(verify, "reordered");
	verdict_out->corrupted = mrcctl_drill_stream_number(verify, "corrupted");
	verdict_out->unchecked = mrcctl_drill_stream_number(verify, "unchecked");
	outcomes = json_object_get(stream->result, "outcomes");
	json_object_foreach(outcomes, name, outcome)
	{
		if (strcmp(name, "OK") != 0)
			verdict_out->bad_outcomes += (uint64_t)json_integer_value(outcome);
	}
	return 0;
}

void mrcctl_drill_stream_abort(struct mrcctl_drill_stream *stream)
{
	if (stream->pid > 0)
		kill(stream->pid, SIGKILL);
}

static int64_t mrcctl_drill_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void mrcctl_drill_stall_put(struct mrcctl_drill_result *result, uint64_t start_ns,
				   uint64_t span_ns)
{
	struct mrcctl_drill_phase *phase = &result->after;

	if (start_ns + span_ns < result->first_ns || start_ns > result->last_ns)
		return;
	if (start_ns + span_ns <= result->began_ns)
		phase = &result->before;
	else if (start_ns < result->ended_ns)
		phase = &result->during;
	phase->stall_ns = span_ns > phase->stall_ns ? span_ns : phase->stall_ns;
}

int64_t mrcctl_drill_wall_offset_ns(void)
{
	return mrcctl_drill_clock(CLOCK_REALTIME) - mrcctl_drill_clock(CLOCK_MONOTONIC);
}

void mrcctl_drill_stream_stalls(const struct mrcctl_drill_stream *stream,
				struct mrcctl_drill_result *result)
{
	int64_t offset_ns = mrcctl_drill_wall_offset_ns();
	json_t *stall;
	size_t i;

	result->before.stall_ns = result->during.stall_ns = result->after.stall_ns = 0;
	json_array_foreach(json_object_get(stream->result, "stalls"), i, stall)
	{
		int64_t start_ns =
			json_integer_value(json_object_get(stall, "unix_us")) * 1000 - offset_ns;

		if (start_ns > 0)
			mrcctl_drill_stall_put(result, (uint64_t)start_ns,
					       mrcctl_drill_stream_number(stall, "span_ns"));
	}
}

void mrcctl_drill_stream_fini(struct mrcctl_drill_stream *stream)
{
	struct mrcctl_drill_verdict verdict;

	if (stream->pid > 0)
		mrcctl_drill_stream_stop(stream, &verdict);
	if (stream->out != NULL)
		fclose(stream->out);
	if (stream->err != NULL)
		fclose(stream->err);
	json_decref(stream->result);
	memset(stream, 0, sizeof(*stream));
}
