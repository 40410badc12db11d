/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int mrcctl_socket_connect(const char *path, int timeout_s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval timeout = {.tv_sec = timeout_s};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (timeout_s == 0 ? SOCK_NONBLOCK : 0), 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int mrcctl_socket_send(int fd, const json_t *command)
{
	char *line = json_dumps(command, JSON_COMPACT);
	size_t len, at = 0;
	int r = 0;

	if (line == NULL)
		return -ENOMEM;
	len = strlen(line);
	line[len++] = '\n'; /* in place of the 0 */
	while (at < len && r == 0) {
		ssize_t count = send(fd, line + at, len - at, MSG_NOSIGNAL);

		if (count >= 0)
			at += (size_t)count;
		else if (errno == EPIPE)
			break; /* turned away: the reason is there to be read */
		else if (errno != EINTR)
			r = -errno;
	}
	free(line);
	return r;
}

/* Reads to the end of the line. *text_out is the caller's, without newline or 0. */
static int mrcctl_socket_receive(int fd, char **text_out, size_t *len_out)
{
	size_t room = 65536, len = 0;
	char *text = malloc(room);
	int r = -ENOMEM;

	while (text != NULL) {
		ssize_t count = recv(fd, text + len, room - len, 0);
		char *end;

		if (count < 0 && errno == EINTR)
			continue;
		r = count < 0 ? -errno : -ECONNRESET;
		if (count <= 0)
			break;
		end = memchr(text + len, '\n', (size_t)count);
		len += (size_t)count;
		if (end != NULL) {
			*text_out = text;
			*len_out = (size_t)(end - text);
			return 0;
		}
		if (len == room) {
			char *more = NULL;

			r = room < MRCCTL_ANSWER_BYTES_MAX ? -ENOMEM : -EBADMSG;
			if (room < MRCCTL_ANSWER_BYTES_MAX)
				more = realloc(text, room * 2);
			if (more == NULL)
				break;
			text = more;
			room *= 2;
		}
	}
	free(text);
	return r;
}

int mrcctl_socket_ask(const char *path, const json_t *command, int timeout_s, json_t **answer_out)
{
	int fd = mrcctl_socket_connect(path, timeout_s);
	char *text = NULL;
	size_t len = 0;
	json_t *answer;
	int r;

	if (fd < 0)
		return fd;
	r = mrcctl_socket_send(fd, command);
	if (r == 0)
		r = mrcctl_socket_receive(fd, &text, &len);
	close(fd);
	if (r < 0)
		return r;
	answer = json_loadb(text, len, 0, NULL);
	free(text);
	if (!json_is_boolean(json_object_get(answer, "ok"))) {
		json_decref(answer);
		return -EBADMSG;
	}
	*answer_out = answer;
	return 0;
}
