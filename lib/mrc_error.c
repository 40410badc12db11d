/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and texts: of statuses, levels, errors. */
#include "mrc_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define MRC_STATUSES(X)                                                                            \
	X(OK, "done")                                                                              \
	X(REJECTED, "the receiving program rejected the message")                                  \
	X(UNKNOWN, "the peer's daemon restarted: the message may have arrived or not")             \
	X(PEER_DIED, "the receiving program ended first")                                          \
	X(TIMED_OUT, "the deadline passed first")                                                  \
	X(CLOSED, "the channel was closed first")                                                  \
	X(TOO_BIG, "larger than the peer's landing memory takes; nothing was sent")                \
	X(NO_SERVICE, "nobody listens to that service there")                                      \
	X(NO_PEER, "no such host in the configuration of this host's daemon")                      \
	X(REFUSED, "the service turned the channel away")                                          \
	X(NOT_ALLOWED, "this user may not use that service")                                       \
	X(NO_RESOURCES, "a limit of the daemon or of this client is reached")                      \
	X(DETACHED, "the daemon of this host ended: the outcome is not known")                     \
	X(INVALID, "the daemon found the request malformed")                                       \
	X(BUFFER_CHANGED, "the buffer was changed while it was sent")                              \
	X(IN_USE, "another client offers that service already")                                    \
	X(DRAINING, "the host is being drained: it takes no new channels and services")

#define MRC_ERRORS(X)                                                                              \
	X(EAGAIN, "no room now: take events and try again")                                        \
	X(EALREADY, "the message was committed or rejected before")                                \
	X(ECONNREFUSED, "no daemon answers there, or the request was refused")                     \
	X(ECONNRESET, "the daemon has gone; detach, and attach again")                             \
	X(EINTR, "a signal came first")                                                            \
	X(EINVAL, "an argument does not make sense")                                               \
	X(EMSGSIZE, "larger than can be sent here")                                                \
	X(ENOENT, "no daemon's socket there")                                                      \
	X(ENOMEM, "no memory, or no contiguous space in the send arena now")                       \
	X(ENOTCONN, "the channel is not connected")                                                \
	X(EPIPE, "the channel is closed or closing")                                               \
	X(EPROTO, "the daemon does not keep to the protocol")                                      \
	X(EPROTONOSUPPORT, "daemon and library share no ABI version")                              \
	X(ETIMEDOUT, "the time has passed")
/* clang-format on */

MRC_API const char *mrc_status_name(int status)
{
	switch (status) {
#define X(name, text)           \
	case MRC_STATUS_##name: \
		return #name;
		MRC_STATUSES(X)
#undef X
	default:
		return "?";
	}
}

MRC_API const char *mrc_status_text(int status)
{
	switch (status) {
#define X(name, text)           \
	case MRC_STATUS_##name: \
		return text;
		MRC_STATUSES(X)
#undef X
	default:
		return "a status this library does not know";
	}
}

MRC_API const char *mrc_error_text(int error)
{
	const char *text;

	switch (-error) {
#define X(name, text_) \
	case name:     \
		return text_;
		MRC_ERRORS(X)
#undef X
	default:
		text = error <= 0 ? strerrordesc_np(-error) : NULL;
		return text ? text : "an error this library does not know";
	}
}

MRC_API const char *mrc_level_name(enum mrc_level level)
{
	switch (level) {
	case MRC_LEVEL_NONE:
		return "none";
	case MRC_LEVEL_PLACED:
		return "placed";
	case MRC_LEVEL_VISIBLE:
		return "visible";
	case MRC_LEVEL_COMMITTED:
		return "committed";
	}
	return "?";
}

/* There is no client yet to keep it in; two threads may attach at once. */
static _Thread_local char attach_text[MRC_ERROR_TEXT_BYTES];

void mrc_error_set_attach(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(attach_text, sizeof(attach_text), format, args);
	va_end(args);
}

const char *mrc_error_attach_text(void)
{
	return attach_text;
}

void mrc_client_set_error(struct mrc_client *client, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(client->error_text, sizeof(client->error_text), format, args);
	va_end(args);
}

MRC_API const char *mrc_last_error(const struct mrc_client *client)
{
	return client ? client->error_text : attach_text;
}
