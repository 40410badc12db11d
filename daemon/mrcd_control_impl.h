/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_control_impl - what the files of the control socket's commands share
 *
 *	mrcd_control.c          connections, the table of commands, most of them
 *	mrcd_control_keys.c     keys
 *	mrcd_control_reload.c   reading the configuration again
 *	mrcd_control_drain.c    drain and undrain of the whole host, draining
 *	mrcd_control_events.c   events, stalls
 *	mrcd_control_several.c  several questions in one
 *
 * A command is asked an object and answers one, a new reference.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CONTROL_IMPL_H
#define MRCD_CONTROL_IMPL_H

#include "mrcd_control.h"

/* {"ok": false, "error": text}; the text names what is allowed. */
json_t *mrcd_control_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* {"ok": true, "result": result}. Steals `result`. */
json_t *mrcd_control_ok(json_t *result);
/* Steals `more`. */
void mrcd_control_extend(json_t *array, json_t *more);

/*
 * An answer that is given later. Only to a command that came alone, on a connection: NULL
 * otherwise, or for want of memory. Until then the connection is asked nothing else. What
 * mrcd_control_later() gave is ended by mrcd_control_say_later(), which steals `answer`, or, when
 * the command is answered at once after all, by mrcd_control_now().
 */
struct mrcd_control_later;
struct mrcd_control_later *mrcd_control_later(struct mrcd_worker *worker);
void mrcd_control_say_later(struct mrcd_control_later *later, json_t *answer);
void mrcd_control_now(struct mrcd_control_later *later);

/* What a command, an object, is answered; as mrcd_control_answer(). */
json_t *mrcd_control_dispatch(struct mrcd_worker *worker, const json_t *command, bool may_change);

json_t *mrcd_control_several(struct mrcd_worker *worker, const json_t *command);
json_t *mrcd_control_keys(struct mrcd_worker *worker, const json_t *command);
json_t *mrcd_control_reload(struct mrcd_worker *worker, const json_t *command);

/* drain and undrain with "host": what mrcd_drain_json() says then. */
json_t *mrcd_control_host(struct mrcd_worker *worker, const json_t *command, bool is_draining);
/* How far the drain of this host is: mrcd_drain_json(). */
json_t *mrcd_control_draining(struct mrcd_worker *worker, const json_t *command);

/* What the rail should carry, by the configuration or the interface, in bits per second; 0: nobody knows. */
uint64_t mrcd_control_rail_speed(const struct mrcd_rail *rail);

/* {"since": SEQ}: see mrcd_event_log_json(), and "boot_id", which tells one life of the daemon from another. */
json_t *mrcd_control_events(struct mrcd_worker *worker, const json_t *command);
/* {"since_ns": T}: see mrcd_peer_stalls_json(), and "now_ns", to ask with the next time. */
json_t *mrcd_control_stalls(struct mrcd_worker *worker, const json_t *command);

#endif
