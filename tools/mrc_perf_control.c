/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#define ANSWER_BYTES_MAX (4U * 1024U * 1024U) /* some thousand channels */

int perf_control_init(struct perf_control *control, const char *path, const char *socket_path)
{
	const char *slash;

	memset(control, 0, sizeof(*control));
	control->fd = -1;
	control->buffer = malloc(ANSWER_BYTES_MAX);
	if (!control->buffer)
		return -ENOMEM;
	if (path && strcmp(path, "none") == 0)
		return 0;
	if (!path && !socket_path) {
		path = getenv("MRC_CONTROL");
		path = path && path[0] != '\0' ? path : NULL;
	}
	if (path) {
		/* As below: cut short it would be another one. */
		if (snprintf(control->path, sizeof(control->path), "%s", path) >=
		    (int)sizeof(control->path))
			control->path[0] = '\0';
		return 0;
	}
	if (!socket_path)
		socket_path = getenv("MRC_SOCKET");
	if (!socket_path)
		socket_path = "/run/mrcd/mrcd.sock";
	slash = strrchr(socket_path, '/');
	/* Too long for a socket address: then there is none to ask. */
	if (snprintf(control->path, sizeof(control->path), "%.*scontrol.sock",
		     slash ? (int)(slash - socket_path) + 1 : 0,
		     socket_path) >= (int)sizeof(control->path))
		control->path[0] = '\0';
	return 0;
}

static void control_hang_up(struct perf_control *control)
{
	if (control->fd >= 0)
		close(control->fd);
	control->fd = -1;
	control->is_waiting = false;
	control->len_bytes = 0;
}

void perf_control_fini(struct perf_control *control)
{
	control_hang_up(control);
	free(control->buffer);
	control->buffer = NULL;
}

static int control_connect(struct perf_control *control)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	memcpy(address.sun_path, control->path, sizeof(address.sun_path));
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return -errno;
	if (connect(control->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	r = -errno;
	control_hang_up(control);
	return r;
}

int perf_control_send(struct perf_control *control, const char *line, size_t len_bytes)
{
	int r;

	if (control->path[0] == '\0')
		return -ENOENT;
	if (control->is_waiting)
		return 0;
	if (control->fd < 0) {
		r = control_connect(control);
		if (r < 0)
			return r;
	}
	if (send(control->fd, line, len_bytes, MSG_NOSIGNAL) != (ssize_t)len_bytes) {
		control_hang_up(control);
		return -EPIPE;
	}
	control->is_waiting = true;
	return 0;
}

int perf_control_ask(struct perf_control *control)
{
	static const char question[] = "{\"command\": \"rails\"}\n";

	return perf_control_send(control, question, sizeof(question) - 1);
}

int perf_rails_parse(const char *text, size_t len_bytes, struct perf_rails *rails_out)
{
	json_t *root = json_loadb(text, len_bytes, JSON_DISABLE_EOF_CHECK, NULL), *result, *rail;
	size_t i;

	memset(rails_out, 0, sizeof(*rails_out));
	result = json_object_get(root, "result");
	if (!json_is_true(json_object_get(root, "ok")) || !json_is_array(result)) {
		json_decref(root);
		return -EPROTO;
	}
	json_array_foreach(result, i, rail)
	{
		const char *name = json_string_value(json_object_get(rail, "name"));
		json_t *bytes = json_object_get(rail, "bytes_sent");

		if (!name || !json_is_integer(bytes) || rails_out->count == PERF_RAILS_MAX)
			continue;
		snprintf(rails_out->rails[rails_out->count].name, PERF_RAIL_NAME_BYTES, "%s", name);
		rails_out->rails[rails_out->count++].bytes_sent =
			(uint64_t)json_integer_value(bytes);
	}
	json_decref(root);
	return 0;
}

int perf_control_line(struct perf_control *control, const char **line_out, size_t *len_bytes_out)
{
	char *end;
	ssize_t got;
	int r;

	if (control->fd < 0)
		return -ENOTCONN;
	got = recv(control->fd, control->buffer + control->len_bytes,
		   ANSWER_BYTES_MAX - control->len_bytes, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0) {
		r = got < 0 ? -errno : -ECONNRESET;
		control_hang_up(control);
		return r;
	}
	control->len_bytes += (size_t)got;
	end = memchr(control->buffer, '\n', control->len_bytes);
	if (!end && control->len_bytes < ANSWER_BYTES_MAX)
		return 0;
	if (!end) {
		control_hang_up(control);
		return -EPROTO;
	}
	/* One question at a time: what follows the first line answers nothing we asked. */
	control->len_bytes = 0;
	control->is_waiting = false;
	*line_out = control->buffer;
	*len_bytes_out = (size_t)(end - control->buffer);
	return 1;
}

int perf_control_read(struct perf_control *control, struct perf_rails *rails_out)
{
	const char *line = NULL;
	size_t len_bytes = 0;
	int r = perf_control_line(control, &line, &len_bytes);

	if (r <= 0)
		return r;
	r = perf_rails_parse(line, len_bytes, rails_out);
	if (r < 0)
		control_hang_up(control);
	return r < 0 ? r : 1;
}
