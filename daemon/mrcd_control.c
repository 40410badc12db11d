/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_control_impl.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcd_about.h"
#include "mrcd_client.h"
#include "mrcd_drill.h"
#include "mrcd_health.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_trace.h"

/* Somebody who is connected. Owned by struct mrcd_control, in connections. */
struct mrcd_control_connection {
	LIST_ENTRY(mrcd_control_connection) entry;
	struct mrcd_control *control; /* the owner */
	struct bufferevent *bev;      /* ours, with the socket */
	uid_t uid;
	uint64_t asked_ns;                /* when it last said something; or came */
	bool is_ending;                   /* reads no more; closed when its last answer is out */
	struct mrcd_control_later *later; /* its answer is to come; NULL: it owes none */
};

/* Owned by whoever will answer. */
struct mrcd_control_later {
	struct mrcd_control_connection *connection; /* NULL: it has gone */
};

struct mrcd_control {
	struct mrcd_worker *worker;      /* the owner */
	struct evconnlistener *listener; /* ours */
	char path[108];
	LIST_HEAD(, mrcd_control_connection) connections; /* ours */
	struct mrcd_control_connection
		*asking; /* whose command is being answered; NULL: nobody's */
	struct mrcd_log_limit limit;
};

/* ---- commands ---- */

json_t *mrcd_control_error(const char *format, ...)
{
	va_list args;
	json_t *text;

	va_start(args, format);
	text = json_vsprintf(format, args);
	va_end(args);
	/* json_vsprintf answers NULL for what is not UTF-8, such as a rail name somebody typed. */
	if (text == NULL)
		text = json_string("a name in the command is not valid UTF-8");
	return json_pack("{s:b s:o}", "ok", 0, "error", text);
}

json_t *mrcd_control_ok(json_t *result)
{
	return json_pack("{s:b s:o}", "ok", 1, "result", result);
}

uint64_t mrcd_control_rail_speed(const struct mrcd_rail *rail)
{
	return mrcd_nic_speed(rail);
}

static json_t *mrcd_control_status(struct mrcd_worker *worker, const json_t *command)
{
	struct mrcd_worker_summary summary;
	char boot_id[24], text[160];

	mrcd_worker_summarize(worker, &summary);
	snprintf(boot_id, sizeof(boot_id), "%016llx", (unsigned long long)worker->boot_id);
	mrcd_worker_summary_text(&summary, text, sizeof(text));
	return mrcd_control_ok(
		json_pack("{s:s s:s s:s s:i s:I s:b s:b s:i s:i s:i s:i s:i s:i s:i s:i s:I s:s}",
			  "host", worker->conf->host, "version", MRC_VERSION, "boot_id", boot_id,
			  "pid", (int)getpid(), "uptime_ns",
			  (json_int_t)(worker->now_ns - worker->start_ns), "draining",
			  (int)summary.is_draining, "configuration_former",
			  (int)summary.is_conf_former, "rails", (int)summary.rails, "rails_up",
			  (int)summary.rails_up, "rails_degraded", (int)summary.rails_degraded,
			  "rails_failing", (int)summary.rails_failing, "peers", (int)summary.peers,
			  "peers_connected", (int)summary.peers_connected, "clients",
			  (int)summary.clients, "channels", (int)summary.channels, "strangers",
			  (json_int_t)worker->strangers, "summary", text));
}

static json_t *mrcd_control_about(struct mrcd_worker *worker, const json_t *command)
{
	return mrcd_control_ok(mrcd_about_json(worker));
}

static json_t *mrcd_control_rail_json(struct mrcd_worker *worker, const struct mrcd_rail *rail)
{
	const struct mrcd_conf_rail *conf = rail->conf;
	uint32_t paths = 0, paths_good = 0, good;
	uint64_t speed = mrcd_control_rail_speed(rail);
	json_t *object;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		paths += mrcd_peer_rail_paths(worker->peers[i], rail->index, &good);
		paths_good += good;
	}
	object = json_pack("{s:s s:i s:s s:s s:s s:i s:b s:b s:I s:I s:I s:I s:I s:I s:I s:i s:i}",
			   "name", conf->name, "index", (int)rail->index, "type", rail->ops->kind,
			   "interface", conf->interface, "address", conf->address, "port",
			   (int)conf->port, "carrier", (int)rail->is_carrier_up, "drained",
			   (int)rail->is_draining, "speed_bits_per_s", (json_int_t)speed,
			   "frames_sent", (json_int_t)rail->frames_sent, "frames_received",
			   (json_int_t)rail->frames_received, "bytes_sent",
			   (json_int_t)rail->bytes_sent, "bytes_received",
			   (json_int_t)rail->bytes_received, "carrier_losses",
			   (json_int_t)rail->carrier_losses, "strangers",
			   (json_int_t)rail->strangers, "paths", (int)paths, "paths_good",
			   (int)paths_good);
	if (object != NULL && mrcd_rail_drill_name(rail) != NULL)
		json_object_set_new(object, "drill", json_string(mrcd_rail_drill_name(rail)));
	if (object != NULL)
		json_object_set_new(object, "flaps", json_integer((json_int_t)rail->flaps));
	if (object != NULL && rail->flaps > 0)
		json_object_set_new(object, "flap_age_ns",
				    json_integer((json_int_t)(worker->now_ns - rail->flapped_ns)));
	if (object != NULL)
		json_object_set_new(object, "driver_silent_ns",
				    json_integer((json_int_t)mrcd_nic_unanswered_ns(rail)));
	if (object != NULL && rail->nic.answered_ns > 0)
		json_object_set_new(object, "driver_age_ns",
				    json_integer(
					    (json_int_t)(worker->now_ns - rail->nic.answered_ns)));
	if (object != NULL) {
		mrcd_health_describe_rail(rail, object);
		mrcd_card_describe(&rail->card, object);
	}
	if (object != NULL && rail->ops->describe != NULL)
		rail->ops->describe(rail, object);
	return object;
}

static json_t *mrcd_control_rails(struct mrcd_worker *worker, const json_t *command)
{
	json_t *rails = json_array();

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			json_array_append_new(rails,
					      mrcd_control_rail_json(worker, &worker->rails[i]));
	}
	return mrcd_control_ok(rails);
}

static json_t *mrcd_control_peers(struct mrcd_worker *worker, const json_t *command)
{
	json_t *peers = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		json_array_append_new(peers, mrcd_peer_json(worker->peers[i]));
	return mrcd_control_ok(peers);
}

void mrcd_control_extend(json_t *array, json_t *more)
{
	json_array_extend(array, more);
	json_decref(more);
}

static json_t *mrcd_control_paths(struct mrcd_worker *worker, const json_t *command)
{
	json_t *paths = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_control_extend(paths, mrcd_peer_paths_json(worker->peers[i]));
	return mrcd_control_ok(paths);
}

static json_t *mrcd_control_channels(struct mrcd_worker *worker, const json_t *command)
{
	json_t *channels = json_array();

	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_control_extend(channels, mrcd_peer_channels_json(worker->peers[i]));
	for (int i = 0; i < 2; i++)
		mrcd_control_extend(channels, mrcd_peer_channels_json(worker->loop_ends[i]));
	return mrcd_control_ok(channels);
}

static json_t *mrcd_control_clients(struct mrcd_worker *worker, const json_t *command)
{
	return mrcd_control_ok(worker->clients != NULL ? mrcd_client_side_json(worker->clients)
						       : json_array());
}

/* "r0, r1, r2" */
static const char *mrcd_control_rail_names(const struct mrcd_worker *worker, char *text,
					   size_t text_bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < worker->rail_count && at < text_bytes; i++) {
		if (mrcd_rail_is_there(&worker->rails[i]))
			at += (size_t)snprintf(text + at, text_bytes - at, "%s%s",
					       at > 0 ? ", " : "", worker->rails[i].conf->name);
	}
	return text;
}

static json_t *mrcd_control_deny(struct mrcd_worker *worker, const json_t *command, bool is_denied)
{
	const char *name = json_string_value(json_object_get(command, "rail"));
	bool is_forced = json_is_true(json_object_get(command, "force"));
	char names[MRCD_RAILS_MAX * (MRC_NAME_MAX + 3)];
	struct mrcd_rail *rail;
	uint32_t paths = 0, good;

	if (json_object_get(command, "host") != NULL)
		return mrcd_control_host(worker, command, is_denied);
	mrcd_control_rail_names(worker, names, sizeof(names));
	if (name == NULL)
		return mrcd_control_error("\"rail\" is missing: which one? allowed: %s", names);
	rail = mrcd_worker_rail(worker, name);
	if (rail == NULL)
		return mrcd_control_error("there is no rail \"%s\"; allowed: %s", name, names);
	for (uint32_t i = 0; i < worker->peer_count && is_denied && !is_forced; i++) {
		if (mrcd_peer_needs_rail(worker->peers[i], rail->index))
			return mrcd_control_error("rail %s has the last good path to %s, which "
						  "would be cut off; say force to do it anyway",
						  name, mrcd_peer_name(worker->peers[i]));
	}
	if (rail->is_draining != is_denied)
		mrcd_rail_note_drain(rail, is_denied);
	rail->is_draining = is_denied;
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		paths += mrcd_peer_rail_paths(worker->peers[i], rail->index, &good);
		mrcd_peer_deny_rail(worker->peers[i], rail->index, is_denied);
	}
	return mrcd_control_ok(json_pack("{s:s s:b s:i}", "rail", name, "drained", (int)is_denied,
					 "paths", (int)paths));
}

static json_t *mrcd_control_drain(struct mrcd_worker *worker, const json_t *command)
{
	return mrcd_control_deny(worker, command, true);
}

static json_t *mrcd_control_undrain(struct mrcd_worker *worker, const json_t *command)
{
	return mrcd_control_deny(worker, command, false);
}

static json_t *mrcd_control_fault(struct mrcd_worker *worker, const json_t *command)
{
	const char *name = json_string_value(json_object_get(command, "rail"));
	const char *what = json_string_value(json_object_get(command, "what"));
	struct mrcd_rail *rail = name != NULL ? mrcd_worker_rail(worker, name) : NULL;
	char names[MRCD_RAILS_MAX * (MRC_NAME_MAX + 3)];
	int count;

	if (!MRC_DEBUG && getenv("MRCD_FAULT") == NULL)
		return mrcd_control_error("faults are for tests: a debug build does them, or a "
					  "daemon with MRCD_FAULT in its environment");
	mrcd_control_rail_names(worker, names, sizeof(names));
	if (rail == NULL)
		return mrcd_control_error("a fault wants a \"rail\"; allowed: %s", names);
	if (!rail->is_open)
		return mrcd_control_error("rail %s is closed: it could not be opened anew yet",
					  name);
	count = what != NULL && rail->ops->fault != NULL ? rail->ops->fault(rail, what) : -EINVAL;
	if (count < 0)
		return mrcd_control_error("rail %s has no fault \"%s\"; rails of queue pairs have "
					  "qp-error, damage-payload, damage-headers, damage-none",
					  name, what != NULL ? what : "");
	mrcd_warn("rail %s: fault %s broke %d", name, what, count);
	return mrcd_control_ok(
		json_pack("{s:s s:s s:i}", "rail", name, "fault", what, "broken", count));
}

static json_t *mrcd_control_drill(struct mrcd_worker *worker, const json_t *command)
{
	json_t *error = NULL;
	json_t *result = mrcd_drill_ask(worker->drill, command, &error);

	if (result == NULL)
		return json_pack("{s:b s:o}", "ok", 0, "error", error);
	return mrcd_control_ok(result);
}

static json_t *mrcd_control_trace(struct mrcd_worker *worker, const json_t *command)
{
	json_t *error = NULL;
	json_t *result = mrcd_trace_ask(worker->traces, command, &error);

	if (result == NULL)
		return json_pack("{s:b s:o}", "ok", 0, "error", error);
	return mrcd_control_ok(result);
}

static const struct mrcd_control_command {
	const char *name;
	bool is_changing;
	json_t *(*answer)(struct mrcd_worker *worker, const json_t *command);
} mrcd_control_commands[] = {
	{"status", false, mrcd_control_status},     {"rails", false, mrcd_control_rails},
	{"peers", false, mrcd_control_peers},       {"paths", false, mrcd_control_paths},
	{"channels", false, mrcd_control_channels}, {"clients", false, mrcd_control_clients},
	{"drain", true, mrcd_control_drain},        {"undrain", true, mrcd_control_undrain},
	{"fault", true, mrcd_control_fault},        {"trace", true, mrcd_control_trace},
	{"keys", false, mrcd_control_keys},         {"reload", true, mrcd_control_reload},
	{"events", false, mrcd_control_events},     {"stalls", false, mrcd_control_stalls},
	{"about", false, mrcd_control_about},       {"several", false, mrcd_control_several},
	{"drill", true, mrcd_control_drill},        {"draining", false, mrcd_control_draining},
};

json_t *mrcd_control_dispatch(struct mrcd_worker *worker, const json_t *command, bool may_change)
{
	const char *name = json_string_value(json_object_get(command, "command"));
	char names[512];
	size_t at = 0;

	for (size_t i = 0; name != NULL && i < MRC_ARRAY_LEN(mrcd_control_commands); i++) {
		const struct mrcd_control_command *c = &mrcd_control_commands[i];

		if (strcmp(c->name, name) != 0)
			continue;
		if (c->is_changing && !may_change)
			return mrcd_control_error("%s changes how the daemon works: only root and "
						  "the daemon's own user may",
						  name);
		return c->answer(worker, command);
	}
	for (size_t i = 0; i < MRC_ARRAY_LEN(mrcd_control_commands) && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i > 0 ? ", " : "",
				       mrcd_control_commands[i].name);
	if (name == NULL)
		return mrcd_control_error("\"command\" is missing or not a text; allowed: %s",
					  names);
	return mrcd_control_error("there is no command \"%s\"; allowed: %s", name, names);
}

json_t *mrcd_control_answer(struct mrcd_worker *worker, const char *line, size_t line_bytes,
			    bool may_change)
{
	json_error_t error;
	json_t *command = json_loadb(line, line_bytes, JSON_REJECT_DUPLICATES, &error);
	json_t *answer;

	if (command == NULL)
		return mrcd_control_error("not JSON: %s (column %d)", error.text, error.column);
	if (json_is_object(command))
		answer = mrcd_control_dispatch(worker, command, may_change);
	else
		answer = mrcd_control_error("a JSON object is wanted, such as "
					    "{\"command\": \"status\"}");
	json_decref(command);
	return answer;
}

/* ---- connections ---- */

static void mrcd_control_connection_free(struct mrcd_control_connection *connection)
{
	LIST_REMOVE(connection, entry);
	if (connection->later != NULL)
		connection->later->connection = NULL;
	bufferevent_free(connection->bev);
	free(connection);
}

/* Steals `answer`. */
static void mrcd_control_say(struct mrcd_control_connection *connection, json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT);

	json_decref(answer);
	if (text != NULL) {
		bufferevent_write(connection->bev, text, strlen(text));
		bufferevent_write(connection->bev, "\n", 1);
		free(text);
		return;
	}
	bufferevent_write(connection->bev, "{\"ok\":false,\"error\":\"out of memory\"}\n", 38);
}

/* May change how the daemon works. */
static bool mrcd_control_is_owner(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static void mrcd_control_ask(struct mrcd_control_connection *connection, const char *line,
			     size_t line_bytes)
{
	struct mrcd_control *control = connection->control;
	bool may_change = mrcd_control_is_owner(connection->uid);
	json_t *answer;

	connection->asked_ns = mrcd_worker_now(control->worker);
	control->asking = connection;
	answer = mrcd_control_answer(control->worker, line, line_bytes, may_change);
	control->asking = NULL;
	if (connection->later == NULL)
		mrcd_control_say(connection, answer);
}

/*
 * One command at a time: the next is looked at when the answer to the last one
 * has left, so nobody can make us hold more than one answer. Ends the
 * connection when there is nothing left to do for it.
 */
static void mrcd_control_next(struct mrcd_control_connection *connection)
{
	struct evbuffer *in = bufferevent_get_input(connection->bev);
	struct evbuffer *out = bufferevent_get_output(connection->bev);

	while (evbuffer_get_length(out) == 0 && connection->later == NULL) {
		size_t line_bytes;
		char *line = evbuffer_readln(in, &line_bytes, EVBUFFER_EOL_LF);

		if (line != NULL) {
			mrcd_control_ask(connection, line, line_bytes);
			free(line);
		} else if (evbuffer_get_length(in) >= MRCD_CONTROL_LINE_BYTES_MAX) {
			mrcd_control_say(connection,
					 mrcd_control_error("a line has more than %u bytes",
							    MRCD_CONTROL_LINE_BYTES_MAX));
			evbuffer_drain(in, evbuffer_get_length(in));
			connection->is_ending = true;
		} else if (connection->is_ending) {
			mrcd_control_connection_free(connection);
			return;
		} else {
			break;
		}
	}
	if (evbuffer_get_length(out) > 0 || connection->is_ending || connection->later != NULL)
		bufferevent_disable(connection->bev, EV_READ);
	else
		bufferevent_enable(connection->bev, EV_READ);
}

struct mrcd_control_later *mrcd_control_later(struct mrcd_worker *worker)
{
	struct mrcd_control_connection *asking =
		worker->control != NULL ? worker->control->asking : NULL;
	struct mrcd_control_later *later;

	if (asking == NULL)
		return NULL;
	later = malloc(sizeof(*later));
	if (later == NULL)
		return NULL;
	later->connection = asking;
	asking->later = later;
	return later;
}

void mrcd_control_now(struct mrcd_control_later *later)
{
	if (later->connection != NULL)
		later->connection->later = NULL;
	free(later);
}

void mrcd_control_say_later(struct mrcd_control_later *later, json_t *answer)
{
	struct mrcd_control_connection *connection = later->connection;

	mrcd_control_now(later);
	if (connection == NULL) {
		json_decref(answer);
		return;
	}
	mrcd_control_say(connection, answer); /* which goes on with the next when it has left */
}

static void mrcd_control_on_readable(struct bufferevent *bev, void *context)
{
	mrcd_control_next(context);
}

static void mrcd_control_on_written(struct bufferevent *bev, void *context)
{
	mrcd_control_next(context);
}

static void mrcd_control_on_end(struct bufferevent *bev, short what, void *context)
{
	struct mrcd_control_connection *connection = context;
	struct mrcd_control *control = connection->control;
	uint64_t suppressed;

	/* The asker may close its writing half and still wait: we do not read while an answer
	 * is on its way, so an end that we see comes after all answers. */
	if ((what & BEV_EVENT_TIMEOUT) != 0 && (what & BEV_EVENT_WRITING) != 0 &&
	    mrcd_log_allowed(&control->limit, mrcd_worker_now(control->worker), &suppressed))
		mrcd_info("control socket: somebody (uid %u) does not read the answer, dropped",
			  (unsigned)connection->uid);
	mrcd_control_connection_free(connection);
}

/* ---- who is served ---- */

static uint32_t mrcd_control_count(const struct mrcd_control *control, uid_t uid)
{
	const struct mrcd_control_connection *connection;
	uint32_t count = 0;

	LIST_FOREACH(connection, &control->connections, entry)
	count += connection->uid == uid;
	return count;
}

/* Of root and the daemon's user, or of all others. */
static uint32_t mrcd_control_count_all(const struct mrcd_control *control, bool is_owner)
{
	const struct mrcd_control_connection *connection;
	uint32_t count = 0;

	LIST_FOREACH(connection, &control->connections, entry)
	count += mrcd_control_is_owner(connection->uid) == is_owner;
	return count;
}

/*
 * Others have all that there is for them: the one of them goes that has been silent longest, of who
 * has most, if that is more than `uid` would have. False: nobody has.
 */
static bool mrcd_control_make_room(struct mrcd_control *control, uid_t uid)
{
	struct mrcd_control_connection *connection, *silent = NULL;
	uint32_t most = mrcd_control_count(control, uid) + 1;

	LIST_FOREACH(connection, &control->connections, entry)
	{
		uint32_t count = mrcd_control_count(control, connection->uid);

		if (mrcd_control_is_owner(connection->uid) || count < most ||
		    (count == most && (silent == NULL || connection->asked_ns > silent->asked_ns)))
			continue;
		most = count;
		silent = connection;
	}
	if (silent == NULL)
		return false;
	mrcd_control_connection_free(silent);
	return true;
}

/* What one more of this user is told who is not served; NULL: it is. */
static json_t *mrcd_control_refusal(struct mrcd_control *control, uid_t uid)
{
	bool is_owner = mrcd_control_is_owner(uid);

	if (!is_owner && mrcd_control_count(control, uid) >= MRCD_CONTROL_SHARE_MAX)
		return mrcd_control_error("user %u has %u connections to the daemon's control "
					  "socket; allowed: %u of one user",
					  (unsigned)uid, MRCD_CONTROL_SHARE_MAX,
					  MRCD_CONTROL_SHARE_MAX);
	if (is_owner && mrcd_control_count_all(control, true) >= MRCD_CONTROL_OWNERS_MAX)
		return mrcd_control_error("root and the daemon's user have %u connections to its "
					  "control socket; allowed: %u",
					  MRCD_CONTROL_OWNERS_MAX, MRCD_CONTROL_OWNERS_MAX);
	if (!is_owner && mrcd_control_count_all(control, false) >= MRCD_CONTROL_OTHERS_MAX &&
	    !mrcd_control_make_room(control, uid))
		return mrcd_control_error("users have %u connections to the daemon's control "
					  "socket; allowed: %u of all but root",
					  MRCD_CONTROL_OTHERS_MAX, MRCD_CONTROL_OTHERS_MAX);
	return NULL;
}

/* Best effort: the socket is fresh and takes it, or its owner has gone. Steals `refusal`. */
static void mrcd_control_turn_away(int fd, json_t *refusal)
{
	char *text = json_dumps(refusal, JSON_COMPACT);
	const struct iovec iov[] = {
		{.iov_base = text, .iov_len = text != NULL ? strlen(text) : 0},
		{.iov_base = (char[]){"\n"}, .iov_len = 1},
	};
	const struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = 2};

	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(text);
	json_decref(refusal);
	close(fd);
}

static void mrcd_control_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
				   struct sockaddr *address, int address_bytes, void *context)
{
	static const struct timeval idle = {.tv_sec = MRCD_CONTROL_IDLE_S};
	static const struct timeval write_wait = {.tv_sec = MRCD_CONTROL_WRITE_S};
	struct mrcd_control *control = context;
	struct mrcd_control_connection *connection;
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t cred_bytes = sizeof(cred);
	json_t *refusal;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) < 0) {
		close(fd);
		return;
	}
	refusal = mrcd_control_refusal(control, cred.uid);
	if (refusal != NULL) {
		mrcd_control_turn_away(fd, refusal);
		return;
	}
	connection = calloc(1, sizeof(*connection));
	if (connection == NULL)
		goto err_free_connection;
	connection->bev = bufferevent_socket_new(control->worker->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (connection->bev == NULL)
		goto err_free_connection;
	connection->control = control;
	connection->uid = cred.uid;
	connection->asked_ns = mrcd_worker_now(control->worker);
	LIST_INSERT_HEAD(&control->connections, connection, entry);
	bufferevent_setcb(connection->bev, mrcd_control_on_readable, mrcd_control_on_written,
			  mrcd_control_on_end, connection);
	bufferevent_setwatermark(connection->bev, EV_READ, 0, MRCD_CONTROL_LINE_BYTES_MAX);
	bufferevent_set_timeouts(connection->bev, &idle, &write_wait);
	bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
	return;

err_free_connection:
	free(connection);
	close(fd);
}

/* A socket that listens at `path`; negative errno. */
static int mrcd_control_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* The lock file says that no daemon lives here, so what lies there is a dead one's. */
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0666) < 0 ||
	    listen(fd, 16) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

int mrcd_control_new_at(struct mrcd_worker *worker, int fd, struct mrcd_control **control_out)
{
	struct mrcd_control *control = calloc(1, sizeof(*control));
	int r;

	if (control == NULL)
		return -ENOMEM;
	control->worker = worker;
	control->limit = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(60 * MRC_S, 5);
	LIST_INIT(&control->connections);
	snprintf(control->path, sizeof(control->path), "%s/control.sock",
		 worker->conf->runtime_dir);
	r = fd >= 0 ? fd : mrcd_control_listen(control->path);
	if (r < 0)
		goto err_free_control;
	control->listener = evconnlistener_new(worker->base, mrcd_control_on_accept, control,
					       LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, r);
	if (control->listener == NULL) {
		if (fd < 0)
			close(r);
		r = -ENOMEM;
		goto err_free_control;
	}
	*control_out = control;
	return 0;

err_free_control:
	free(control);
	return r;
}

int mrcd_control_new(struct mrcd_worker *worker, struct mrcd_control **control_out)
{
	return mrcd_control_new_at(worker, -1, control_out);
}

int mrcd_control_fd(const struct mrcd_control *control)
{
	return evconnlistener_get_fd(control->listener);
}

void mrcd_control_pause(struct mrcd_control *control)
{
	evconnlistener_disable(control->listener);
}

void mrcd_control_leave(struct mrcd_control *control)
{
	control->path[0] = '\0';
}

void mrcd_control_free(struct mrcd_control *control)
{
	struct mrcd_control_connection *connection;

	if (control == NULL)
		return;
	while ((connection = LIST_FIRST(&control->connections)) != NULL) {
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		mrcd_control_connection_free(connection); /* NOLINT(clang-analyzer-unix.Malloc) */
	}
	evconnlistener_free(control->listener);
	if (control->path[0] != '\0')
		unlink(control->path);
	free(control);
}
