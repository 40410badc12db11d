/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_drill.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_carrier.h"
#include "mrcd_event_log.h"
#include "mrcd_interface.h"
#include "mrcd_log.h"
#include "mrcd_offload.h"
#include "mrcd_peer.h"
#include "mrcd_timeval.h"

#define LEASE_NS_DEFAULT (2 * MRC_S)
#define UP_AGAIN_NS      MRC_S
#define TELL_LOOK_NS     MRC_MS /* while peers are being told */
#define THREADS          2U
#define THREADS_RESERVED 1U

enum mrcd_drill_state {
	MRCD_DRILL_IDLE,
	MRCD_DRILL_TELLING,  /* peers, that it is going to begin */
	MRCD_DRILL_STARTING, /* the job that takes the link down */
	MRCD_DRILL_ON,
	MRCD_DRILL_ENDING, /* the job that takes it up */
};

/* What a thread is handed to take a link down or up. */
struct mrcd_drill_job {
	struct mrcd_job job;
	char dir[108];
	struct mrcd_interface link; /* the run's own while it runs */
	bool is_up, is_forced;
	int error;
	bool is_owed; /* the link is noted as down because of us */
	char why[MRCD_INTERFACE_WHY_BYTES];
	uint64_t at_ns; /* when it began to */
};

struct mrcd_drill {
	struct mrcd_worker *worker; /* the owner */

	uint64_t session; /* 0: none */
	uint64_t session_last;
	uint64_t lease_ns;
	struct event lease_event, end_event;

	/* The fault there is, or was last in this session. */
	enum mrcd_drill_state state;
	enum mrcd_drill_fault fault;
	struct mrcd_rail *rail; /* the worker's; NULL: there was none yet */
	bool is_link;
	char interface[16]; /* of a link that is taken down: what it is called */
	const char *over;   /* why it is over or shall be; NULL: it shall not */
	uint64_t duration_ns, began_ns, ended_ns;
	struct event tell_event;
	uint64_t tell_ns; /* since then */
	char error
		[MRCD_INTERFACE_WHY_BYTES]; /* why the link did not go down, or does not come up */

	struct mrcd_offload *offload; /* ours; NULL until a link is taken down */
	struct mrcd_lane lane;
	struct mrcd_drill_job job;

	/* What its asker was told. */
	uint64_t events_told; /* up to this one */
	uint64_t told_ns;     /* when that was */
};

static const char *const mrcd_drill_fault_names[] = {
	[MRCD_DRILL_NONE] = "none",
	[MRCD_DRILL_DOWN] = "down",
	[MRCD_DRILL_SILENCE] = "silence",
	[MRCD_DRILL_SLOW] = "slow",
};

static const char *const mrcd_drill_state_names[] = {
	[MRCD_DRILL_IDLE] = "idle",         [MRCD_DRILL_TELLING] = "starting",
	[MRCD_DRILL_STARTING] = "starting", [MRCD_DRILL_ON] = "on",
	[MRCD_DRILL_ENDING] = "ending",
};

/* ---- the fault ---- */

static void mrcd_drill_carrier_look(struct mrcd_drill *drill)
{
	if (drill->worker->carrier != NULL)
		mrcd_carrier_look(drill->worker->carrier);
	else
		mrcd_rail_on_carrier(drill->rail, drill->rail->drill != MRCD_DRILL_DOWN);
}

/* Have the rail suffer it, or nothing. */
static int mrcd_drill_set(struct mrcd_drill *drill, enum mrcd_drill_fault fault)
{
	struct mrcd_rail *rail = drill->rail;
	enum mrcd_drill_fault before = rail->drill;
	int r;

	if (rail->ops->drill == NULL)
		return -ENOTSUP;
	rail->drill = fault;
	r = rail->ops->drill(rail);
	if (r < 0) {
		rail->drill = before;
		return r;
	}
	if (fault == MRCD_DRILL_DOWN || before == MRCD_DRILL_DOWN)
		mrcd_drill_carrier_look(drill);
	return 0;
}

static void mrcd_drill_event(const struct mrcd_drill *drill, enum mrcd_event_kind kind,
			     const char *note)
{
	struct mrcd_event event = {.kind = kind};

	snprintf(event.rail, sizeof(event.rail), "%s", drill->rail->conf->name);
	snprintf(event.note, sizeof(event.note), "%s", note);
	mrcd_event_log_add(drill->worker->events, &event);
}

/* Everybody whom it is about knows that it is wanted, or is no more. */
static void mrcd_drill_mark(struct mrcd_drill *drill, bool is_drilled)
{
	struct mrcd_worker *worker = drill->worker;

	if (drill->rail->is_drilled == is_drilled)
		return;
	drill->rail->is_drilled = is_drilled;
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_tell_drill(worker->peers[i], drill->rail, is_drilled);
}

static void mrcd_drill_begun(struct mrcd_drill *drill, uint64_t at_ns)
{
	const struct timeval span = mrcd_timeval_of(drill->duration_ns);
	char note[64];

	drill->state = MRCD_DRILL_ON;
	drill->began_ns = at_ns;
	event_add(&drill->end_event, &span);
	snprintf(note, sizeof(note), "%s%s for %llu ms", mrcd_drill_fault_names[drill->fault],
		 drill->is_link ? ", the link," : "",
		 (unsigned long long)(drill->duration_ns / MRC_MS));
	mrcd_drill_event(drill, MRCD_EVENT_DRILL_BEGIN, note);
	mrcd_notice("rail %s: drill begins: %s%s", drill->rail->conf->name,
		    mrcd_drill_fault_names[drill->fault], drill->is_link ? ", the link" : "");
}

static void mrcd_drill_ended(struct mrcd_drill *drill, uint64_t at_ns)
{
	drill->state = MRCD_DRILL_IDLE;
	drill->ended_ns = at_ns;
	mrcd_drill_mark(drill, false);
	mrcd_drill_event(drill, MRCD_EVENT_DRILL_END, drill->over);
	mrcd_notice("rail %s: drill ends after %llu ms: %s", drill->rail->conf->name,
		    (unsigned long long)((at_ns - drill->began_ns) / MRC_MS), drill->over);
}

/* ---- a real link ---- */

static void mrcd_drill_job_run(struct mrcd_job *base)
{
	struct mrcd_drill_job *job = (struct mrcd_drill_job *)base;
	struct mrcd_interface owed = {.ifindex = 0};

	job->error = 0;
	if (!job->is_up) {
		job->error = mrcd_interface_check(job->link.name, job->why);
		if (job->error == -EBUSY && job->is_forced) {
			job->error = 0;
			job->why[0] = '\0';
		}
	}
	job->at_ns = mrcd_worker_clock_ns();
	if (job->error == 0 && job->is_up)
		job->error = mrcd_interface_up(job->dir, &job->link);
	else if (job->error == 0)
		job->error = mrcd_interface_down(job->dir, &job->link, job->why);
	job->is_owed = mrcd_interface_owed(job->dir, &owed) == 1 &&
		       mrcd_interface_is_same(&owed, &job->link);
	if (job->error < 0 && job->why[0] == '\0')
		snprintf(job->why, sizeof(job->why), "%s", strerror(-job->error));
}

static void mrcd_drill_end(struct mrcd_drill *drill, const char *over);

static struct mrcd_drill *mrcd_drill_of_job(struct mrcd_job *base)
{
	return (struct mrcd_drill *)(void *)((char *)base - offsetof(struct mrcd_drill, job));
}

static int mrcd_drill_link_prepare(struct mrcd_drill *drill, const struct mrcd_interface *link)
{
	snprintf(drill->job.dir, sizeof(drill->job.dir), "%s", drill->worker->conf->runtime_dir);
	drill->job.link = *link;
	memcpy(drill->interface, link->name, sizeof(drill->interface));
	return drill->offload != NULL ? 0
				      : mrcd_offload_new(drill->worker->base, THREADS,
							 THREADS_RESERVED, &drill->offload);
}

static void mrcd_drill_link_submit(struct mrcd_drill *drill, bool is_up,
				   void (*done)(struct mrcd_job *job))
{
	drill->job.job = (struct mrcd_job){.run = mrcd_drill_job_run, .done = done};
	drill->job.is_up = is_up;
	drill->job.why[0] = '\0';
	mrcd_offload_submit(drill->offload, &drill->lane, &drill->job.job);
}

/* It may have been renamed while it was down. */
static void mrcd_drill_link_follow(struct mrcd_drill *drill)
{
	if (strcmp(drill->interface, drill->job.link.name) == 0)
		return;
	mrcd_warn("%s, which a drill took down, is called %s now; no rail that names the old "
		  "one finds it",
		  drill->interface, drill->job.link.name);
	memcpy(drill->interface, drill->job.link.name, sizeof(drill->interface));
}

/* Every second, until it is up: by us, or by whoever reads this. */
static void mrcd_drill_up_failed(struct mrcd_drill *drill)
{
	const struct timeval again = mrcd_timeval_of(UP_AGAIN_NS);

	if (strcmp(drill->error, drill->job.why) != 0)
		mrcd_err("%s, which a drill took down, cannot be taken up again: %s; trying again "
			 "every second; by hand: ip link set %s up",
			 drill->interface, drill->job.why, drill->interface);
	memcpy(drill->error, drill->job.why, sizeof(drill->error));
	event_add(&drill->end_event, &again);
}

static void mrcd_drill_up_done(struct mrcd_job *base)
{
	struct mrcd_drill *drill = mrcd_drill_of_job(base);

	mrcd_drill_link_follow(drill);
	if (drill->job.error < 0 && drill->job.error != -ENODEV) {
		mrcd_drill_up_failed(drill);
		return;
	}
	if (drill->job.error < 0)
		mrcd_warn("%s, which a drill took down, has gone; if it went to another network "
			  "namespace, take it up there: ip link set %s up",
			  drill->interface, drill->interface);
	drill->error[0] = '\0';
	mrcd_drill_ended(drill, drill->job.at_ns);
}

static void mrcd_drill_recovered(struct mrcd_job *base)
{
	struct mrcd_drill *drill = mrcd_drill_of_job(base);

	mrcd_drill_link_follow(drill);
	if (drill->job.error < 0 && drill->job.error != -ENODEV) {
		mrcd_drill_up_failed(drill);
		return;
	}
	drill->error[0] = '\0';
	drill->state = MRCD_DRILL_IDLE;
	mrcd_warn("%s was down for a drill when the last mrcd ended: %s", drill->interface,
		  drill->job.error == 0 ? "up again" : "it has gone");
}

static void mrcd_drill_down_done(struct mrcd_job *base)
{
	struct mrcd_drill *drill = mrcd_drill_of_job(base);

	if (drill->job.error < 0 && drill->job.is_owed) {
		drill->state = MRCD_DRILL_ENDING;
		drill->began_ns = drill->job.at_ns;
		drill->over = "it did not begin as it should";
		mrcd_drill_up_failed(drill);
		return;
	}
	if (drill->job.error < 0) {
		drill->state = MRCD_DRILL_IDLE;
		mrcd_drill_mark(drill, false);
		memcpy(drill->error, drill->job.why, sizeof(drill->error));
		return;
	}
	mrcd_drill_begun(drill, drill->job.at_ns);
	if (drill->over != NULL) /* nobody waited for it */
		mrcd_drill_end(drill, drill->over);
}

/* ---- its end ---- */

static void mrcd_drill_end(struct mrcd_drill *drill, const char *over)
{
	if (drill->over == NULL)
		drill->over = over;
	if (drill->state == MRCD_DRILL_TELLING) {
		event_del(&drill->tell_event);
		drill->state = MRCD_DRILL_IDLE;
		drill->began_ns = drill->ended_ns = drill->worker->now_ns;
		mrcd_drill_mark(drill, false);
		return;
	}
	if (drill->state != MRCD_DRILL_ON)
		return; /* there is none, or it ends, or will as soon as it has begun */
	event_del(&drill->end_event);
	if (drill->is_link) {
		drill->state = MRCD_DRILL_ENDING;
		mrcd_drill_link_submit(drill, true, mrcd_drill_up_done);
		return;
	}
	mrcd_drill_set(drill, MRCD_DRILL_NONE);
	mrcd_drill_ended(drill, drill->worker->now_ns);
}

static void mrcd_drill_on_end(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_drill *drill = context;

	mrcd_worker_now(drill->worker);
	if (drill->state == MRCD_DRILL_ENDING)
		mrcd_drill_link_submit(drill, true,
				       drill->rail != NULL ? mrcd_drill_up_done
							   : mrcd_drill_recovered);
	else
		mrcd_drill_end(drill, "its time is over");
}

static void mrcd_drill_close(struct mrcd_drill *drill, const char *why)
{
	mrcd_drill_end(drill, why);
	drill->session = 0;
	event_del(&drill->lease_event);
}

static void mrcd_drill_on_lease(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_drill *drill = context;

	mrcd_worker_now(drill->worker);
	if (drill->state == MRCD_DRILL_ON)
		mrcd_warn("rail %s: whoever drills it has gone without a word",
			  drill->rail->conf->name);
	mrcd_drill_close(drill, "nobody asked for it any more");
}

/* ---- what is told ---- */

static json_t *mrcd_drill_take_events(struct mrcd_drill *drill)
{
	json_t *told = mrcd_event_log_json(drill->worker->events, drill->events_told);

	drill->events_told = (uint64_t)json_integer_value(json_object_get(told, "next"));
	return told;
}

/* The longest time without an answer that ended since the last time, or goes on. */
static uint64_t mrcd_drill_take_stall(struct mrcd_drill *drill)
{
	json_t *peers = mrcd_peer_stalls_json(drill->worker, drill->told_ns, UINT32_MAX), *peer;
	uint64_t stall_ns = 0;
	size_t i;

	json_array_foreach(peers, i, peer)
	{
		json_int_t longest = json_integer_value(json_object_get(peer, "longest_ns"));
		json_int_t waiting = json_integer_value(json_object_get(peer, "waiting_ns"));

		stall_ns = MRC_MAX(stall_ns, (uint64_t)MRC_MAX(longest, waiting));
	}
	json_decref(peers);
	drill->told_ns = drill->worker->now_ns;
	return stall_ns;
}

static json_t *mrcd_drill_rails_json(const struct mrcd_worker *worker)
{
	json_t *rails = json_array();

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];
		uint32_t paths = 0, paths_good = 0, good;

		if (!mrcd_rail_is_there(rail))
			continue;
		for (uint32_t p = 0; p < worker->peer_count; p++) {
			paths += mrcd_peer_rail_paths(worker->peers[p], i, &good);
			paths_good += good;
		}
		json_array_append_new(rails,
				      json_pack("{s:s s:b s:i s:i s:I s:I}", "name",
						rail->conf->name, "carrier",
						(int)rail->is_carrier_up, "paths", (int)paths,
						"paths_good", (int)paths_good, "bytes_sent",
						(json_int_t)rail->bytes_sent, "bytes_received",
						(json_int_t)rail->bytes_received));
	}
	return rails;
}

/* Peers to which no path is good. */
static json_t *mrcd_drill_cut_json(const struct mrcd_worker *worker)
{
	json_t *cut = json_array();
	struct mrc_conn_info info;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->peers[i]), &info);
		if (info.paths_good == 0)
			json_array_append_new(cut, json_string(mrcd_peer_name(worker->peers[i])));
	}
	return cut;
}

static json_t *mrcd_drill_state_json(struct mrcd_drill *drill)
{
	const struct mrcd_worker *worker = drill->worker;
	uint64_t resent = 0, failed = 0;
	struct mrc_path_info path;
	struct mrc_conn_info info;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		const struct mrc_conn *conn = mrcd_peer_conn(worker->peers[i]);

		mrc_conn_info(conn, &info);
		failed += info.messages_failed;
		for (uint8_t p = 0; p < info.path_count; p++) {
			mrc_conn_path_info(conn, p, &path);
			resent += path.frames_resent;
		}
	}
	return json_pack(
		"{s:I s:I s:I s:s s:s s:s s:b s:s s:I s:I s:I s:s s:s s:I s:I s:I s:o s:o s:o}",
		"session", (json_int_t)drill->session, "now_ns", (json_int_t)worker->now_ns,
		"lease_ns", (json_int_t)drill->lease_ns, "state",
		mrcd_drill_state_names[drill->state], "fault", mrcd_drill_fault_names[drill->fault],
		"rail", drill->rail != NULL ? drill->rail->conf->name : "", "link",
		(int)drill->is_link, "interface", drill->is_link ? drill->interface : "",
		"limit_bytes_per_s",
		(json_int_t)(drill->rail != NULL ? drill->rail->drill_bytes_per_s : 0), "began_ns",
		(json_int_t)drill->began_ns, "ended_ns", (json_int_t)drill->ended_ns, "over",
		drill->over != NULL ? drill->over : "", "error", drill->error, "resent",
		(json_int_t)resent, "failed", (json_int_t)failed, "stall_ns",
		(json_int_t)mrcd_drill_take_stall(drill), "rails", mrcd_drill_rails_json(worker),
		"log", mrcd_drill_take_events(drill), "cut", mrcd_drill_cut_json(worker));
}

/* ---- what is asked ---- */

static json_t *mrcd_drill_refuse(json_t **error_out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static json_t *mrcd_drill_refuse(json_t **error_out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*error_out = json_vsprintf(format, args);
	va_end(args);
	/* json_vsprintf answers NULL for what is not UTF-8. */
	if (*error_out == NULL)
		*error_out = json_string("a name in the command is not valid UTF-8");
	return NULL;
}

/* A number of the command within its bounds; `otherwise` where there is none. 0: out of them. */
static uint64_t mrcd_drill_number(const json_t *command, const char *key, uint64_t otherwise,
				  uint64_t min, uint64_t max)
{
	const json_t *json = json_object_get(command, key);
	json_int_t value = json_integer_value(json);

	if (json == NULL)
		return otherwise;
	return value > 0 && (uint64_t)value >= min && (uint64_t)value <= max ? (uint64_t)value : 0;
}

static void mrcd_drill_renew(struct mrcd_drill *drill)
{
	const struct timeval lease = mrcd_timeval_of(drill->lease_ns);

	event_add(&drill->lease_event, &lease);
}

static json_t *mrcd_drill_open(struct mrcd_drill *drill, const json_t *command, json_t **error_out)
{
	uint64_t lease_ns = mrcd_drill_number(command, "lease_ns", LEASE_NS_DEFAULT,
					      MRCD_DRILL_LEASE_NS_MIN, MRCD_DRILL_LEASE_NS_MAX);

	if (drill->session == 0 && drill->error[0] != '\0' && drill->state == MRCD_DRILL_ENDING)
		return mrcd_drill_refuse(error_out,
					 "%s, which an earlier drill took down, is not up again "
					 "yet: %s (ip link set %s up)",
					 drill->interface, drill->error, drill->interface);
	if (drill->session != 0 || drill->state != MRCD_DRILL_IDLE)
		return mrcd_drill_refuse(error_out,
					 "another drill runs; it is over when its mrcctl ends");
	if (lease_ns == 0)
		return mrcd_drill_refuse(error_out, "\"lease_ns\": allowed is 100 ms to 60 s");
	drill->session = ++drill->session_last;
	drill->lease_ns = lease_ns;
	drill->fault = MRCD_DRILL_NONE;
	drill->rail = NULL;
	drill->is_link = false;
	drill->over = NULL;
	drill->error[0] = '\0';
	drill->began_ns = drill->ended_ns = 0;
	drill->events_told = mrcd_event_log_count(drill->worker->events);
	drill->told_ns = drill->worker->now_ns;
	mrcd_drill_renew(drill);
	return mrcd_drill_state_json(drill);
}

/* The reason why this rail should be left alone now. False: there is none. */
static bool mrcd_drill_is_unwise(struct mrcd_drill *drill, const struct mrcd_rail *rail,
				 enum mrcd_drill_fault fault, json_t **error_out)
{
	const struct mrcd_worker *worker = drill->worker;
	struct mrc_path_info path;
	struct mrc_conn_info info;

	for (uint32_t i = 0; i < worker->peer_count && fault != MRCD_DRILL_SLOW; i++) {
		if (!mrcd_peer_needs_rail(worker->peers[i], rail->index))
			continue;
		mrcd_drill_refuse(error_out,
				  "rail %s has the last good path to %s, which would be cut off "
				  "for the time of the drill; say force to do it anyway",
				  rail->conf->name, mrcd_peer_name(worker->peers[i]));
		return true;
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->peers[i]), &info);
		for (uint8_t p = 0; p < info.path_count; p++) {
			mrc_conn_path_info(mrcd_peer_conn(worker->peers[i]), p, &path);
			if (path.is_absent)
				continue;
			if (mrcd_peer_is_drilling(worker->peers[i], p)) {
				mrcd_drill_refuse(
					error_out,
					"rail %s to %s is in a drill of %s's; say force "
					"to begin another one",
					mrcd_peer_path_rail(worker->peers[i], p)->conf->name,
					mrcd_peer_name(worker->peers[i]),
					mrcd_peer_name(worker->peers[i]));
				return true;
			}
			if (path.state == MRC_PATH_GOOD)
				continue;
			mrcd_drill_refuse(
				error_out,
				"rail %s to %s is %s, and a drill is for a host on which all is "
				"well; say force to do it anyway",
				mrcd_peer_path_rail(worker->peers[i], p)->conf->name,
				mrcd_peer_name(worker->peers[i]), mrc_path_state_name(path.state));
			return true;
		}
	}
	return false;
}

/* Slower than this, and the bytes of a few milliseconds are none at all. */
#define MRCD_DRILL_BYTES_PER_S_MIN (64U * 1024U)

/* What its links deliver, as far as the engines have seen, else what it is said to; 0: nobody knows. */
static uint64_t mrcd_drill_rail_rate(const struct mrcd_worker *worker, const struct mrcd_rail *rail)
{
	uint64_t bytes_per_s = 0;
	struct mrc_path_info path;
	struct mrc_conn_info info;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrc_conn_info(mrcd_peer_conn(worker->peers[i]), &info);
		for (uint8_t p = 0; p < info.path_count; p++) {
			if (mrcd_peer_path_rail(worker->peers[i], p) != rail)
				continue;
			mrc_conn_path_info(mrcd_peer_conn(worker->peers[i]), p, &path);
			bytes_per_s += path.rate_bytes_per_s;
		}
	}
	if (bytes_per_s == 0 ||
	    (rail->given.speed_bits_per_s != 0 && bytes_per_s > rail->given.speed_bits_per_s / 8))
		bytes_per_s = rail->given.speed_bits_per_s / 8;
	return bytes_per_s;
}

static void mrcd_drill_give_up(struct mrcd_drill *drill, const char *error)
{
	drill->state = MRCD_DRILL_IDLE;
	drill->fault = MRCD_DRILL_NONE;
	snprintf(drill->error, sizeof(drill->error), "%s", error);
	mrcd_drill_mark(drill, false);
}

/* Peers know of it: now it begins, if that is as wise as it was. */
static void mrcd_drill_go(struct mrcd_drill *drill)
{
	json_t *error = NULL;

	if (!drill->job.is_forced &&
	    mrcd_drill_is_unwise(drill, drill->rail, drill->fault, &error)) {
		mrcd_drill_give_up(drill, json_string_value(error));
		json_decref(error);
	} else if (drill->is_link) {
		drill->state = MRCD_DRILL_STARTING;
		mrcd_drill_link_submit(drill, false, mrcd_drill_down_done);
	} else if (mrcd_drill_set(drill, drill->fault) < 0) {
		mrcd_drill_give_up(drill, "its kind of rail cannot do that");
	} else {
		mrcd_drill_begun(drill, drill->worker->now_ns);
	}
}

static bool mrcd_drill_is_told(const struct mrcd_worker *worker)
{
	bool is_told = true;

	for (uint32_t i = 0; i < worker->peer_count; i++)
		is_told = is_told && mrcd_peer_has_heard(worker->peers[i]);
	return is_told;
}

static void mrcd_drill_tell(struct mrcd_drill *drill)
{
	const struct timeval again = mrcd_timeval_of(TELL_LOOK_NS);

	if (mrcd_drill_is_told(drill->worker) ||
	    drill->worker->now_ns - drill->tell_ns >= MRCD_DRILL_TELL_NS)
		mrcd_drill_go(drill);
	else
		event_add(&drill->tell_event, &again);
}

static void mrcd_drill_on_tell(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_drill *drill = context;

	mrcd_worker_now(drill->worker);
	mrcd_drill_tell(drill);
}

static json_t *mrcd_drill_begin(struct mrcd_drill *drill, json_t **error_out)
{
	const struct mrcd_rail *rail = drill->rail;
	struct mrcd_interface link = {.ifindex = 0};

	snprintf(link.name, sizeof(link.name), "%s", rail->conf->interface);
	if (drill->is_link && mrcd_drill_link_prepare(drill, &link) < 0)
		return mrcd_drill_refuse(error_out, "%s", strerror(ENOMEM));
	drill->state = MRCD_DRILL_TELLING;
	drill->tell_ns = drill->worker->now_ns;
	mrcd_drill_mark(drill, true);
	mrcd_drill_tell(drill);
	if (drill->fault == MRCD_DRILL_NONE)
		return mrcd_drill_refuse(error_out, "rail %s is of type %s: %s", rail->conf->name,
					 rail->ops->kind, drill->error);
	return mrcd_drill_state_json(drill);
}

static json_t *mrcd_drill_break(struct mrcd_drill *drill, const json_t *command, json_t **error_out)
{
	const char *name = json_string_value(json_object_get(command, "rail"));
	const char *fault_name = json_string_value(json_object_get(command, "fault"));
	struct mrcd_rail *rail = name != NULL ? mrcd_worker_rail(drill->worker, name) : NULL;
	bool is_link = json_is_true(json_object_get(command, "link"));
	bool is_forced = json_is_true(json_object_get(command, "force"));
	uint64_t duration_ns =
		mrcd_drill_number(command, "duration_ns", 2 * MRC_S, MRCD_DRILL_DURATION_NS_MIN,
				  MRCD_DRILL_DURATION_NS_MAX);
	uint64_t times =
		mrcd_drill_number(command, "times", 10, MRCD_DRILL_TIMES_MIN, MRCD_DRILL_TIMES_MAX);
	unsigned fault = MRCD_DRILL_DOWN;
	uint64_t bytes_per_s;

	if (rail == NULL)
		return mrcd_drill_refuse(error_out, "there is no rail \"%s\"",
					 name != NULL ? name : "");
	if (!rail->is_open)
		return mrcd_drill_refuse(error_out,
					 "rail %s is closed: it could not be opened anew yet",
					 name);
	while (fault < MRC_ARRAY_LEN(mrcd_drill_fault_names) &&
	       (fault_name == NULL || strcmp(mrcd_drill_fault_names[fault], fault_name) != 0))
		fault++;
	if (fault == MRC_ARRAY_LEN(mrcd_drill_fault_names))
		return mrcd_drill_refuse(error_out,
					 "there is no fault \"%s\"; allowed: down, silence, slow",
					 fault_name != NULL ? fault_name : "");
	if (duration_ns == 0 || times == 0)
		return mrcd_drill_refuse(error_out,
					 "a drill lasts 50 ms to 600 s and slows down 2 to 1000 "
					 "times");
	if (is_link && (fault != MRCD_DRILL_DOWN || rail->conf->interface[0] == '\0'))
		return mrcd_drill_refuse(
			error_out,
			"rail %s: link goes with down, and with a rail that has an "
			"interface",
			name);
	if (drill->state != MRCD_DRILL_IDLE)
		return mrcd_drill_refuse(error_out, "rail %s is broken already",
					 drill->rail->conf->name);
	if (!is_forced &&
	    mrcd_drill_is_unwise(drill, rail, (enum mrcd_drill_fault)fault, error_out))
		return NULL;
	bytes_per_s = mrcd_drill_rail_rate(drill->worker, rail);
	if (bytes_per_s != 0)
		bytes_per_s = MRC_MAX(bytes_per_s / times, MRCD_DRILL_BYTES_PER_S_MIN);
	if (fault == MRCD_DRILL_SLOW && bytes_per_s == 0)
		return mrcd_drill_refuse(error_out,
					 "rail %s has carried too little for its rate to be known, "
					 "and no speed is configured",
					 name);
	drill->rail = rail;
	drill->fault = (enum mrcd_drill_fault)fault;
	rail->drill_bytes_per_s = fault == MRCD_DRILL_SLOW ? bytes_per_s : 0;
	drill->is_link = is_link;
	drill->job.is_forced = is_forced;
	drill->duration_ns = duration_ns;
	drill->over = NULL;
	drill->error[0] = '\0';
	drill->began_ns = drill->ended_ns = 0;
	return mrcd_drill_begin(drill, error_out);
}

json_t *mrcd_drill_ask(struct mrcd_drill *drill, const json_t *command, json_t **error_out)
{
	const char *what = json_string_value(json_object_get(command, "do"));
	json_int_t session = json_integer_value(json_object_get(command, "session"));
	json_t *state;

	if (what != NULL && strcmp(what, "open") == 0)
		return mrcd_drill_open(drill, command, error_out);
	if (session <= 0 || (uint64_t)session != drill->session)
		return mrcd_drill_refuse(error_out,
					 "this drill is over: its lease has ended, or the daemon "
					 "was started again");
	mrcd_drill_renew(drill);
	if (what != NULL && strcmp(what, "break") == 0)
		return mrcd_drill_break(drill, command, error_out);
	if (what != NULL && strcmp(what, "mend") == 0) {
		mrcd_drill_end(drill, "its asker said so");
	} else if (what != NULL && strcmp(what, "close") == 0) {
		mrcd_drill_end(drill, "its asker said so");
		state = mrcd_drill_state_json(drill);
		mrcd_drill_close(drill, "its asker said so");
		return state;
	} else if (what == NULL || strcmp(what, "renew") != 0) {
		return mrcd_drill_refuse(error_out,
					 "\"do\": allowed: open, break, renew, mend, close");
	}
	return mrcd_drill_state_json(drill);
}

/* ---- life ---- */

void mrcd_drill_recover(struct mrcd_drill *drill)
{
	struct mrcd_interface link;
	int r = mrcd_interface_owed(drill->worker->conf->runtime_dir, &link);

	if (r < 0)
		mrcd_err("whether a drill has left a link down is not known: %s", strerror(-r));
	if (r <= 0)
		return;
	if (mrcd_drill_link_prepare(drill, &link) < 0) {
		mrcd_err("%s, which a drill took down, stays down: %s", link.name,
			 strerror(ENOMEM));
		return;
	}
	drill->state = MRCD_DRILL_ENDING;
	mrcd_drill_link_submit(drill, true, mrcd_drill_recovered);
}

int mrcd_drill_new(struct mrcd_worker *worker, struct mrcd_drill **drill_out)
{
	struct mrcd_drill *drill = calloc(1, sizeof(*drill));

	if (drill == NULL)
		return -ENOMEM;
	drill->worker = worker;
	/* So that a session of another run is not taken for one of ours. */
	drill->session_last = worker->boot_id >> 16;
	mrcd_lane_init(&drill->lane);
	event_assign(&drill->lease_event, worker->base, -1, 0, mrcd_drill_on_lease, drill);
	event_assign(&drill->tell_event, worker->base, -1, 0, mrcd_drill_on_tell, drill);
	event_assign(&drill->end_event, worker->base, -1, 0, mrcd_drill_on_end, drill);
	*drill_out = drill;
	return 0;
}

const char *mrcd_drill_fault_name(const struct mrcd_drill *drill, const struct mrcd_rail *rail)
{
	return drill->rail == rail ? mrcd_drill_fault_names[drill->fault] : "none";
}

bool mrcd_drill_has(const struct mrcd_drill *drill, const struct mrcd_rail *rail)
{
	return drill->rail == rail && (drill->session != 0 || drill->state != MRCD_DRILL_IDLE);
}

void mrcd_drill_free(struct mrcd_drill *drill)
{
	if (drill == NULL)
		return;
	mrcd_worker_now(drill->worker);
	mrcd_drill_close(drill, "the daemon ends");
	/* Waits for a link that goes down or up; one that went down meanwhile is taken up here. */
	mrcd_offload_free(drill->offload);
	if (drill->state != MRCD_DRILL_IDLE &&
	    mrcd_interface_up(drill->job.dir, &drill->job.link) < 0)
		mrcd_err("%s, which a drill took down, stays down; the next mrcd tries again",
			 drill->job.link.name);
	event_del(&drill->tell_event);
	event_del(&drill->end_event);
	free(drill);
}
