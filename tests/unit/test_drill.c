/* SPDX-License-Identifier: BSD-2-Clause */
/* Drills of the daemon: the lease, the end of a fault however it comes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_interface.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_stall.h"
#include "mrcd_worker.h"

#define GUARD_S 20

struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peer;
	struct mrcd_worker *worker;
	struct mrcd_rail *rail;
	json_t *state;
	json_t *error;
	uint64_t session;
	bool is_late;
};

static enum mrcd_drill_fault suffered; /* what the kind was told last */
static int kind_says;

static int rail_drill(struct mrcd_rail *rail)
{
	if (kind_says == 0)
		suffered = rail->drill;
	return kind_says;
}

static struct mrcd_rail_ops ops;

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "a");
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	conf->rails[1].speed_bits_per_s = 80000000;
	conf->peers = &stage->peer;
	conf->peer_count = 1;
	strcpy(stage->peer.name, "b");
	strcpy(stage->peer.paths[0].address, "10.0.0.2");
	stage->peer.path_count = 1;
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	ops = *stage->worker->rails[1].ops;
	ops.drill = rail_drill;
	stage->rail = &stage->worker->rails[1];
	stage->rail->ops = &ops;
	for (uint32_t i = 0; i < stage->worker->rail_count; i++)
		stage->worker->rails[i].is_open = true;
	stage->rail->is_carrier_up = true;
	suffered = MRCD_DRILL_NONE;
	kind_says = 0;
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	json_decref(stage->state);
	json_decref(stage->error);
	for (uint32_t i = 0; i < stage->worker->rail_count; i++)
		stage->worker->rails[i].is_open = false; /* they were not opened here */
	mrcd_worker_free(stage->worker);
	free(stage);
	return 0;
}

/* The state; NULL when it is refused, with the reason in stage->error. Steals `command`. */
static const json_t *ask(struct stage *stage, json_t *command)
{
	json_decref(stage->state);
	json_decref(stage->error);
	stage->error = NULL;
	mrcd_worker_now(stage->worker);
	stage->state = mrcd_drill_ask(stage->worker->drill, command, &stage->error);
	json_decref(command);
	assert_true((stage->state == NULL) == (stage->error != NULL));
	return stage->state;
}

static const json_t *act(struct stage *stage, const char *what)
{
	return ask(stage,
		   json_pack("{s:s s:I}", "do", what, "session", (json_int_t)stage->session));
}

static void open_with_lease(struct stage *stage, uint64_t lease_ns)
{
	assert_non_null(
		ask(stage, json_pack("{s:s s:I}", "do", "open", "lease_ns", (json_int_t)lease_ns)));
	stage->session = (uint64_t)json_integer_value(json_object_get(stage->state, "session"));
	assert_true(stage->session > 0);
}

static const json_t *break_it(struct stage *stage, const char *fault, uint64_t duration_ns)
{
	return ask(stage, json_pack("{s:s s:I s:s s:s s:I s:b}", "do", "break", "session",
				    (json_int_t)stage->session, "rail", "r1", "fault", fault,
				    "duration_ns", (json_int_t)duration_ns, "force", 1));
}

static const char *text(const struct stage *stage, const char *key)
{
	return json_string_value(json_object_get(stage->state, key));
}

static void on_guard(evutil_socket_t fd, short what, void *context)
{
	((struct stage *)context)->is_late = true;
}

#define until(stage, condition)                                                              \
	do {                                                                                 \
		const struct timeval guard_span = {.tv_sec = GUARD_S};                       \
		struct event *guard = evtimer_new((stage)->worker->base, on_guard, (stage)); \
                                                                                             \
		event_add(guard, &guard_span);                                               \
		while (!(condition)) {                                                       \
			event_base_loop((stage)->worker->base, EVLOOP_ONCE);                 \
			if ((stage)->is_late)                                                \
				fail_msg("never came: %s", #condition);                      \
		}                                                                            \
		event_free(guard);                                                           \
	} while (0)

/* ---- a link, played ---- */

/* On the drill's thread, and read here when it has answered. */
static struct {
	_Atomic int check, down, up; /* what it answers */
	_Atomic bool is_down, is_owed, is_renamed;
	_Atomic uint32_t ups;
} played;

static void play(void)
{
	played.check = played.down = played.up = 0;
	played.is_down = played.is_owed = played.is_renamed = false;
	played.ups = 0;
}

int __wrap_mrcd_interface_check(const char *interface, char *why_out);
int __wrap_mrcd_interface_check(const char *interface, char *why_out)
{
	if (played.check < 0)
		strcpy(why_out, "there is something in the way");
	return played.check;
}

int __wrap_mrcd_interface_down(const char *dir, struct mrcd_interface *link, char *why_out);
int __wrap_mrcd_interface_down(const char *dir, struct mrcd_interface *link, char *why_out)
{
	link->ifindex = 7;
	played.is_down = played.down == 0 || played.is_owed;
	played.is_owed = played.is_down;
	return played.down;
}

int __wrap_mrcd_interface_up(const char *dir, struct mrcd_interface *link);
int __wrap_mrcd_interface_up(const char *dir, struct mrcd_interface *link)
{
	assert_int_equal(link->ifindex, 7);
	if (played.is_renamed)
		strcpy(link->name, "if9");
	played.ups++;
	if (played.up == 0)
		played.is_down = played.is_owed = false;
	return played.up;
}

int __wrap_mrcd_interface_owed(const char *dir, struct mrcd_interface *link_out);
int __wrap_mrcd_interface_owed(const char *dir, struct mrcd_interface *link_out)
{
	*link_out = (struct mrcd_interface){"if1", 7};
	return played.is_owed;
}

static const json_t *break_link(struct stage *stage, bool is_forced)
{
	strcpy(stage->rail->given.interface, "if1");
	return ask(stage, json_pack("{s:s s:I s:s s:s s:I s:b s:b}", "do", "break", "session",
				    (json_int_t)stage->session, "rail", "r1", "fault", "down",
				    "duration_ns", (json_int_t)(600 * MRC_S), "link", 1, "force",
				    (int)is_forced));
}

static bool state_is(struct stage *stage, const char *want)
{
	assert_non_null(act(stage, "renew"));
	return strcmp(text(stage, "state"), want) == 0;
}

static void a_link_that_does_not_come_up_is_tried_again_by_whoever_is_left(void **state)
{
	struct stage *stage = *state;

	play();
	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_link(stage, true));
	until(stage, state_is(stage, "on"));
	assert_true(played.is_down);
	assert_string_equal(text(stage, "interface"), "if1");
	played.up = -EIO;
	assert_non_null(act(stage, "mend"));
	until(stage, state_is(stage, "ending") && text(stage, "error")[0] != '\0');
	assert_string_equal(text(stage, "error"), strerror(EIO));
	assert_non_null(act(stage, "close"));
	/* Its asker has gone, and the next one is told what is the matter. */
	assert_null(ask(stage, json_pack("{s:s}", "do", "open")));
	assert_non_null(strstr(json_string_value(stage->error), "ip link set if1 up"));
	until(stage, played.ups >= 2);
	played.up = 0;
	until(stage, !played.is_down);
	until(stage, ask(stage, json_pack("{s:s}", "do", "open")) != NULL);
}

/* While it is down it may be renamed, or go: whoever is to help has to know its name. */
static void a_link_is_followed_by_its_new_name(void **state)
{
	struct stage *stage = *state;

	play();
	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_link(stage, true));
	until(stage, state_is(stage, "on"));
	played.is_renamed = true;
	played.up = -EIO;
	assert_non_null(act(stage, "mend"));
	until(stage, state_is(stage, "ending") && text(stage, "error")[0] != '\0');
	assert_string_equal(text(stage, "interface"), "if9");
	assert_non_null(act(stage, "close"));
	assert_null(ask(stage, json_pack("{s:s}", "do", "open")));
	assert_non_null(strstr(json_string_value(stage->error), "ip link set if9 up"));
	played.up = -ENODEV;
	until(stage, ask(stage, json_pack("{s:s}", "do", "open")) != NULL);
}

static void a_link_that_cannot_be_taken_down_is_told(void **state)
{
	struct stage *stage = *state;

	play();
	open_with_lease(stage, 60 * MRC_S);
	played.check = -EPERM;
	assert_non_null(break_link(stage, true));
	until(stage, state_is(stage, "idle"));
	assert_string_equal(text(stage, "error"), "there is something in the way");
	/* Force is for what would be lost, and for that alone. */
	played.check = -EBUSY;
	played.down = -EIO;
	assert_non_null(break_link(stage, true));
	until(stage, state_is(stage, "idle"));
	assert_string_equal(text(stage, "error"), strerror(EIO));
	/* It failed and is down all the same: it is taken up. */
	played.is_owed = true;
	assert_non_null(break_link(stage, true));
	until(stage, state_is(stage, "idle") && !played.is_down);
	assert_int_equal(played.ups, 1);
}

static void what_the_last_run_left_down_is_taken_up(void **state)
{
	struct stage *stage = *state;

	play();
	mrcd_drill_recover(stage->worker->drill); /* nothing is owed */
	open_with_lease(stage, MRC_S);
	assert_non_null(act(stage, "close"));
	played.is_owed = played.is_down = true;
	played.up = -EPERM;
	mrcd_drill_recover(stage->worker->drill);
	until(stage, played.ups >= 2); /* every second */
	assert_true(played.is_down);
	played.up = 0;
	until(stage, !played.is_down);
	until(stage, ask(stage, json_pack("{s:s}", "do", "open")) != NULL);
}

/* ---- the end ---- */

static void a_rail_is_given_back_when_nobody_asks_any_more(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, MRCD_DRILL_LEASE_NS_MIN);
	assert_non_null(break_it(stage, "down", 600 * MRC_S));
	assert_string_equal(text(stage, "state"), "on");
	assert_int_equal(suffered, MRCD_DRILL_DOWN);
	assert_false(stage->rail->is_carrier_up);
	until(stage, suffered == MRCD_DRILL_NONE);
	assert_true(stage->rail->is_carrier_up);
	assert_null(act(stage, "renew"));
	assert_non_null(strstr(json_string_value(stage->error), "its lease has ended"));
	open_with_lease(stage, MRC_S); /* and the next one may */
}

static void a_fault_ends_at_its_time_while_its_asker_goes_on(void **state)
{
	struct stage *stage = *state;
	json_int_t span_ns;

	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_it(stage, "silence", MRCD_DRILL_DURATION_NS_MIN));
	assert_true(stage->rail->is_carrier_up); /* nobody is told */
	until(stage, suffered == MRCD_DRILL_NONE);
	assert_non_null(act(stage, "renew"));
	assert_string_equal(text(stage, "state"), "idle");
	assert_string_equal(text(stage, "over"), "its time is over");
	span_ns = json_integer_value(json_object_get(stage->state, "ended_ns")) -
		  json_integer_value(json_object_get(stage->state, "began_ns"));
	assert_true(span_ns >= (json_int_t)MRCD_DRILL_DURATION_NS_MIN);
	/* And another one in the same session. */
	assert_non_null(break_it(stage, "down", MRC_S));
	assert_non_null(act(stage, "mend"));
	assert_string_equal(text(stage, "over"), "its asker said so");
	assert_int_equal(suffered, MRCD_DRILL_NONE);
}

/* Renews for longer than the lease. False: this process stood still for longer than that, which shows nothing. */
static bool renews_in_time(struct stage *stage, uint64_t lease_ns)
{
	uint64_t end_ns, asked_ns;

	open_with_lease(stage, lease_ns);
	assert_non_null(break_it(stage, "slow", 600 * MRC_S));
	asked_ns = mrcd_worker_now(stage->worker);
	end_ns = asked_ns + 2 * lease_ns + 100 * MRC_MS;
	while (stage->worker->now_ns < end_ns) {
		event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
		if (!act(stage, "renew")) {
			assert_true(mrcd_worker_now(stage->worker) - asked_ns >= lease_ns);
			return false;
		}
		asked_ns = stage->worker->now_ns;
		assert_int_equal(suffered, MRCD_DRILL_SLOW);
	}
	return true;
}

static void asking_again_keeps_the_lease(void **state)
{
	struct stage *stage = *state;

	for (uint64_t lease_ns = 300 * MRC_MS; !renews_in_time(stage, lease_ns); lease_ns *= 2)
		assert_true(lease_ns < GUARD_S * MRC_S);
}

static void a_session_that_is_closed_leaves_nothing_broken(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, MRC_S);
	assert_non_null(break_it(stage, "down", 600 * MRC_S));
	assert_non_null(act(stage, "close"));
	assert_int_equal(suffered, MRCD_DRILL_NONE);
	assert_true(stage->rail->is_carrier_up);
	assert_null(act(stage, "renew"));
}

static void a_daemon_that_ends_leaves_nothing_broken(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_it(stage, "silence", 600 * MRC_S));
	assert_int_equal(suffered, MRCD_DRILL_SILENCE);
	mrcd_drill_free(stage->worker->drill);
	stage->worker->drill = NULL;
	assert_int_equal(suffered, MRCD_DRILL_NONE);
}

/* ---- what is refused ---- */

static void one_drills_at_a_time(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, 60 * MRC_S);
	assert_null(ask(stage, json_pack("{s:s}", "do", "open")));
	assert_non_null(strstr(json_string_value(stage->error), "another drill runs"));
	assert_non_null(break_it(stage, "down", MRC_S));
	assert_null(break_it(stage, "down", MRC_S));
	assert_non_null(strstr(json_string_value(stage->error), "rail r1 is broken already"));
	stage->session++;
	assert_null(act(stage, "mend")); /* somebody else's */
	assert_int_equal(suffered, MRCD_DRILL_DOWN);
}

/* What a peer has answered, and what it does itself: nothing is connected here. */
static bool has_heard = true, is_drilling;
bool __wrap_mrcd_peer_has_heard(const struct mrcd_peer *peer);
bool __wrap_mrcd_peer_has_heard(const struct mrcd_peer *peer)
{
	return has_heard;
}
bool __wrap_mrcd_peer_is_drilling(const struct mrcd_peer *peer, uint8_t index);
bool __wrap_mrcd_peer_is_drilling(const struct mrcd_peer *peer, uint8_t index)
{
	return is_drilling;
}

static void nothing_fails_before_the_peers_have_heard_of_it(void **state)
{
	struct stage *stage = *state;

	has_heard = false;
	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_it(stage, "silence", 60 * MRC_S));
	assert_string_equal(text(stage, "state"), "starting");
	assert_int_equal(suffered, MRCD_DRILL_NONE);
	assert_true(stage->rail->is_drilled);
	has_heard = true;
	until(stage, suffered == MRCD_DRILL_SILENCE);
	assert_non_null(act(stage, "renew"));
	assert_string_equal(text(stage, "state"), "on");
	assert_non_null(act(stage, "mend"));
	assert_false(stage->rail->is_drilled);
	/* Who never answers holds up nothing for good. */
	has_heard = false;
	assert_non_null(break_it(stage, "down", 60 * MRC_S));
	until(stage, suffered == MRCD_DRILL_DOWN);
	has_heard = true;
}

static void what_ends_before_the_peers_have_heard_of_it_never_began(void **state)
{
	struct stage *stage = *state;

	has_heard = false;
	open_with_lease(stage, 60 * MRC_S);
	assert_non_null(break_it(stage, "silence", 60 * MRC_S));
	assert_non_null(act(stage, "mend"));
	assert_string_equal(text(stage, "state"), "idle");
	assert_string_equal(text(stage, "over"), "its asker said so");
	assert_false(stage->rail->is_drilled);
	has_heard = true;
	for (int i = 0; i < 100; i++)
		event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
	assert_int_equal(suffered, MRCD_DRILL_NONE);
	/* Also by the end of the daemon, with a link to take down: teardown looks. */
	has_heard = false;
	assert_non_null(break_it(stage, "down", 60 * MRC_S));
	mrcd_drill_free(stage->worker->drill);
	stage->worker->drill = NULL;
	assert_false(stage->rail->is_drilled);
	assert_int_equal(suffered, MRCD_DRILL_NONE);
	has_heard = true;
}

/* Two hosts that begin at once would leave nothing between them. */
static void while_a_peer_drills_we_do_not(void **state)
{
	struct stage *stage = *state;

	is_drilling = true;
	open_with_lease(stage, 60 * MRC_S);
	assert_null(ask(stage,
			json_pack("{s:s s:I s:s s:s}", "do", "break", "session",
				  (json_int_t)stage->session, "rail", "r1", "fault", "silence")));
	assert_string_equal(json_string_value(stage->error),
			    "rail r0 to b is in a drill of b's; say force to begin another one");
	assert_non_null(break_it(stage, "silence", 60 * MRC_S));
	is_drilling = false;
}

static void a_host_that_is_not_well_is_left_alone(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, 60 * MRC_S);
	assert_null(
		ask(stage, json_pack("{s:s s:I s:s s:s}", "do", "break", "session",
				     (json_int_t)stage->session, "rail", "r1", "fault", "down")));
	assert_non_null(strstr(json_string_value(stage->error), "rail r0 to b is CONNECTING"));
	assert_int_equal(suffered, MRCD_DRILL_NONE);
}

static void what_cannot_be_done_is_refused_and_changes_nothing(void **state)
{
	static const struct {
		const char *rail, *fault, *key;
		json_int_t value;
		const char *want;
	} cases[] = {
		{"r9", "down", "duration_ns", 1000000000, "no rail \"r9\""},
		{"r1", "none", "duration_ns", 1000000000, "no fault \"none\"; allowed: down"},
		{"r1", "up", "duration_ns", 1000000000, "no fault \"up\""},
		{"r1", "down", "duration_ns", 1000, "50 ms to 600 s"},
		{"r1", "down", "duration_ns", -1, "50 ms to 600 s"},
		{"r1", "down", "duration_ns", 601000000000, "50 ms to 600 s"},
		{"r1", "slow", "times", 1, "2 to 1000"},
		{"r0", "slow", "times", 10, "too little for its rate to be known"},
	};
	struct stage *stage = *state;

	open_with_lease(stage, 60 * MRC_S);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		assert_null(ask(stage, json_pack("{s:s s:I s:s s:s s:I s:b}", "do", "break",
						 "session", (json_int_t)stage->session, "rail",
						 cases[i].rail, "fault", cases[i].fault,
						 cases[i].key, cases[i].value, "force", 1)));
		if (strstr(json_string_value(stage->error), cases[i].want) == NULL)
			fail_msg("\"%s\" is without \"%s\"", json_string_value(stage->error),
				 cases[i].want);
	}
	kind_says = -ENOTSUP;
	assert_null(break_it(stage, "slow", MRC_S));
	assert_non_null(strstr(json_string_value(stage->error), "cannot do that"));
	assert_int_equal(stage->rail->drill, MRCD_DRILL_NONE);
	assert_null(ask(stage, json_pack("{s:s s:I s:s s:s s:b s:b}", "do", "break", "session",
					 (json_int_t)stage->session, "rail", "r1", "fault", "down",
					 "link", 1, "force", 1)));
	assert_non_null(strstr(json_string_value(stage->error), "that has an interface"));
	/* While it waits to be opened anew there is nothing to break. */
	kind_says = 0;
	stage->rail->is_open = false;
	assert_null(break_it(stage, "silence", MRC_S));
	assert_non_null(strstr(json_string_value(stage->error), "rail r1 is closed"));
	assert_null(act(stage, "dance"));
	assert_null(ask(stage, json_pack("{s:s s:I}", "do", "renew", "session", (json_int_t)0)));
}

/* ---- what is kept ---- */

static void a_slow_rail_has_a_part_of_its_speed(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, MRC_S);
	assert_non_null(ask(stage, json_pack("{s:s s:I s:s s:s s:I s:b}", "do", "break", "session",
					     (json_int_t)stage->session, "rail", "r1", "fault",
					     "slow", "times", (json_int_t)20, "force", 1)));
	assert_int_equal(stage->rail->drill_bytes_per_s, 500000);
}

/* Of a rail that has hardly carried anything a thousandth would be nothing at all: silence. */
static void the_slowest_rail_still_carries_something(void **state)
{
	struct stage *stage = *state;

	open_with_lease(stage, MRC_S);
	assert_non_null(ask(stage, json_pack("{s:s s:I s:s s:s s:I s:b}", "do", "break", "session",
					     (json_int_t)stage->session, "rail", "r1", "fault",
					     "slow", "times", (json_int_t)1000, "force", 1)));
	assert_int_equal(stage->rail->drill_bytes_per_s, 65536);
}

static void each_answer_tells_what_befell_since_the_last(void **state)
{
	const struct mrcd_event gone = {.kind = MRCD_EVENT_PATH, .rail = "r1", .peer = "b"};
	struct stage *stage = *state;
	struct mrcd_stall_meter *stalls = mrcd_peer_stalls(stage->worker->peers[0]);
	const json_t *events;

	mrcd_event_log_add(stage->worker->events, &gone);
	mrcd_stall_record(stalls, 900 * MRC_MS, mrcd_worker_now(stage->worker));
	usleep(1000); /* so that it is before */
	open_with_lease(stage, MRC_S);
	events = json_object_get(json_object_get(stage->state, "log"), "events");
	assert_int_equal(json_array_size(events), 0);
	assert_int_equal(json_integer_value(json_object_get(stage->state, "stall_ns")), 0);

	mrcd_event_log_add(stage->worker->events, &gone);
	mrcd_stall_record(stalls, 30 * MRC_MS, mrcd_worker_now(stage->worker));
	assert_non_null(act(stage, "renew"));
	events = json_object_get(json_object_get(stage->state, "log"), "events");
	assert_int_equal(json_array_size(events), 1);
	assert_int_equal(json_integer_value(json_object_get(stage->state, "stall_ns")),
			 30 * MRC_MS);
	usleep(1000);
	assert_non_null(act(stage, "renew"));
	events = json_object_get(json_object_get(stage->state, "log"), "events");
	assert_int_equal(json_array_size(events), 0);
	assert_int_equal(json_integer_value(json_object_get(stage->state, "stall_ns")), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rail_is_given_back_when_nobody_asks_any_more),
		TEST(a_fault_ends_at_its_time_while_its_asker_goes_on),
		TEST(asking_again_keeps_the_lease),
		TEST(a_session_that_is_closed_leaves_nothing_broken),
		TEST(a_daemon_that_ends_leaves_nothing_broken),
		TEST(a_link_that_does_not_come_up_is_tried_again_by_whoever_is_left),
		TEST(a_link_is_followed_by_its_new_name),
		TEST(a_link_that_cannot_be_taken_down_is_told),
		TEST(what_the_last_run_left_down_is_taken_up),
		TEST(one_drills_at_a_time),
		TEST(nothing_fails_before_the_peers_have_heard_of_it),
		TEST(what_ends_before_the_peers_have_heard_of_it_never_began),
		TEST(while_a_peer_drills_we_do_not),
		TEST(a_host_that_is_not_well_is_left_alone),
		TEST(what_cannot_be_done_is_refused_and_changes_nothing),
		TEST(a_slow_rail_has_a_part_of_its_speed),
		TEST(the_slowest_rail_still_carries_something),
		TEST(each_answer_tells_what_befell_since_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
