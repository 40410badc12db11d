/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_connect - paths that come up, by the handshake of the daemon, and go down
 *
 * Its three frames take their time, may be held up, and may find that things
 * have moved on: then the attempt fails at one end or at both.
 */
#include <string.h>

#include "sim_impl.h"

#define ATTEMPT_NS (20 * MRC_MS) /* a handshake that takes longer is given up by either end */
#define RETRY_NS   (200 * MRC_US)

static uint64_t travel_ns(struct sim_world *w)
{
	return w->o.delay_ns + sim_draw(w, w->o.delay_ns / 4 + 1);
}

static bool is_current(const struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial)
{
	const struct pair *pr = &w->pairs[pair];
	const struct attempt *at = &pr->paths[path].attempt;

	return at->is_running && at->serial == serial;
}

/* ---- what daemons speak ---- */

uint8_t sim_host_version(const struct sim_world *w, uint32_t host, uint32_t process)
{
	return w->o.old_host == host + 1 && process == 1 ? 1 : MRC_HELLO_VERSION_MAX;
}

uint32_t sim_host_features(const struct sim_world *w, uint32_t host, uint32_t process)
{
	struct mrc_rng rng = {.state = w->o.seed ^ (uint64_t)host << 32 ^ process};

	return (uint32_t)mrc_rng_next(&rng);
}

/* As it goes over the wire; an old daemon says what version 1 has. */
static void hello_make(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct pair *pr = &w->pairs[pair];
	struct attempt *at = &pr->paths[path].attempt;
	struct mrc_hello *hello = &at->hellos[side];
	uint8_t bytes[MRC_HELLO_BODY_BYTES];

	mrc_conn_hello(pr->ends[side].conn, (uint8_t)path, hello);
	if (side == 1)
		hello->path_id = at->hellos[0].path_id; /* paths are numbered by their initiator */
	hello->version_max = sim_host_version(w, pr->hosts[side], at->processes[side]);
	mrc_hello_encode(hello, bytes);
	if (mrc_hello_decode(bytes, hello))
		sim_fail(w, "version", "host %s: its HELLO is refused",
			 w->hosts[pr->hosts[side]].name);
}

/* Both know what both know, and no more. */
static void check_agreed(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct pair *pr = &w->pairs[pair];
	const struct attempt *at = &pr->paths[path].attempt;
	uint8_t version = MRC_HELLO_VERSION_MAX;
	uint32_t features = UINT32_MAX;
	struct mrc_path_info info;

	for (uint32_t i = 0; i < 2; i++) {
		version = MRC_MIN(version, sim_host_version(w, pr->hosts[i], at->processes[i]));
		features &= sim_host_features(w, pr->hosts[i], at->processes[i]);
	}
	features = version >= 2 ? features : 0;
	mrc_conn_path_info(pr->ends[side].conn, (uint8_t)path, &info);
	if (info.version != version || info.features != features)
		sim_fail(w, "version", "host %s: version %u features %x, it should be %u and %x",
			 w->hosts[pr->hosts[side]].name, info.version, info.features, version,
			 features);
}

/* ---- coming up ---- */

static void attempt_fails(struct sim_world *w, uint32_t pair, uint32_t path)
{
	struct attempt *at = &w->pairs[pair].paths[path].attempt;
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_FAILED, .path = {.index = (uint8_t)path}};

	at->is_running = false;
	w->counts.handshakes_failed++;
	if (w->hosts[w->pairs[pair].hosts[0]].process != at->processes[0])
		return;
	sim_tell(w, pair, 0, &ev);
	sim_pump(w, pair, 0);
}

/* The attempt goes on after a while, or fails. */
static void attempt_waits(struct sim_world *w, uint32_t pair, uint32_t path, enum timer_kind kind)
{
	struct attempt *at = &w->pairs[pair].paths[path].attempt;

	if (w->now_ns >= at->until_ns)
		attempt_fails(w, pair, path);
	else
		sim_timer_add(w, w->now_ns + RETRY_NS, kind, pair, path, 0, at->serial);
}

void sim_connect(struct sim_world *w, uint32_t pair, uint32_t path)
{
	struct attempt *at = &w->pairs[pair].paths[path].attempt;
	const uint32_t *hosts = w->pairs[pair].hosts;

	*at = (struct attempt){
		.is_running = true,
		.serial = w->serial_next++,
		.until_ns = w->now_ns + ATTEMPT_NS + sim_draw(w, ATTEMPT_NS),
		.processes = {w->hosts[hosts[0]].process, 0},
	};
	for (uint32_t side = 0; side < 2 && w->pairs[pair].paths[path].is_verbs; side++) {
		at->shares[side] = (uint32_t)(w->o.share + sim_draw(w, w->o.share));
		at->entry_bytes[side] = MRC_WIRE_CTL_BYTES_MAX << sim_draw(w, 6);
	}
	hello_make(w, pair, path, 0);
	sim_timer_add(w, w->now_ns + travel_ns(w), T_HELLO, pair, path, 0, at->serial);
}

void sim_hello(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial)
{
	struct pair *pr = &w->pairs[pair];
	struct attempt *at = &pr->paths[path].attempt;

	if (!is_current(w, pair, path, serial))
		return;
	if (sim_is_blocked(w, pair, path, 0) || !pr->ends[1].conn) {
		attempt_waits(w, pair, path, T_HELLO);
		return;
	}
	at->processes[1] = w->hosts[pr->hosts[1]].process;
	hello_make(w, pair, path, 1);
	sim_timer_add(w, w->now_ns + travel_ns(w), T_ANSWER, pair, path, 0, serial);
}

uint32_t sim_about_mtu(uint32_t pair, uint32_t path, uint32_t side)
{
	return 1 + (pair << 8 | path << 1 | side);
}

/* What an end tells about itself: its host's name, and a number that comes only there. */
static void about_tell(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct mrc_about about;
	struct mrc_event_in ev = {.kind = MRC_EV_ABOUT,
				  .about = {.index = (uint8_t)path, .about = &about}};

	memset(&about, 0, sizeof(about));
	about.mtu = sim_about_mtu(pair, path, side);
	snprintf(about.rail, sizeof(about.rail), "%s", w->hosts[w->pairs[pair].hosts[side]].name);
	if (sim_tell(w, pair, side, &ev))
		sim_fail(w, "about", "ABOUT is refused");
}

static void join(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct pair *pr = &w->pairs[pair];
	struct path *p = &pr->paths[path];
	struct end *end = &p->ends[side];
	struct attempt *at = &p->attempt;
	struct wire old;
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_UP,
		.path =
			{
				.index = (uint8_t)path,
				.is_direct_capable = p->is_verbs,
				.receive_share = at->shares[side],
				.receive_bytes = at->entry_bytes[side],
				.path_epoch = at->auth.path_epoch,
				.conn_epoch = at->auth.conn_epoch,
				.path_id = at->hellos[0].path_id,
				.peer_boot_id = at->hellos[1 - side].boot_id,
				.version = at->auth.version,
				.features = at->auth.features,
			},
	};

	/* The older transport is fenced here before this one begins; the engine may hear of both at once. */
	if (end->is_up && sim_draw(w, 2))
		sim_path_down(w, pair, path, side, MRC_REASON_CLOSED);
	sim_path_cut(w, pair, path, side);
	old = end->out;
	*end = (struct end){
		.is_up = true,
		.epoch = at->auth.path_epoch,
		.serial = at->serial,
		.share = at->shares[1 - side],
		.entry_bytes = at->entry_bytes[1 - side],
		.keys = end->keys,
		.key_cap = end->key_cap,
		/* What an old queue pair sent may still land until the other end has fenced it. */
		.out = {.air_head = old.air_head,
			.air_tail = old.air_tail,
			.frame_count = old.frame_count,
			.was_blocked = old.was_blocked},
	};
	sim_trace(w, "host %s path %u to %s is up: conn epoch %u, path epoch %u",
		  w->hosts[pr->hosts[side]].name, path, w->hosts[pr->hosts[1 - side]].name,
		  at->auth.conn_epoch, at->auth.path_epoch);
	if (sim_tell(w, pair, side, &ev))
		sim_fail(w, "path", "host %s: PATH_UP refused", w->hosts[pr->hosts[side]].name);
	check_agreed(w, pair, path, side);
	about_tell(w, pair, path, side);
}

void sim_answer(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial)
{
	struct pair *pr = &w->pairs[pair];
	struct attempt *at = &pr->paths[path].attempt;

	if (!is_current(w, pair, path, serial))
		return;
	if (sim_is_blocked(w, pair, path, 1)) {
		attempt_waits(w, pair, path, T_ANSWER);
		return;
	}
	if (!pr->ends[0].conn || w->hosts[pr->hosts[0]].process != at->processes[0]) {
		at->is_running = false;
		return;
	}
	mrc_hello_conclude(&at->hellos[0], &at->hellos[1], &at->auth);
	if (mrc_conn_join(pr->ends[0].conn, (uint8_t)path, &at->auth, at->hellos[1].boot_id)) {
		attempt_fails(w, pair, path);
		return;
	}
	join(w, pair, path, 0);
	sim_timer_add(w, w->now_ns + travel_ns(w), T_AUTH, pair, path, 0, serial);
	sim_pump(w, pair, 0);
}

void sim_auth(struct sim_world *w, uint32_t pair, uint32_t path, uint64_t serial)
{
	struct pair *pr = &w->pairs[pair];
	struct path *p = &pr->paths[path];
	struct attempt *at = &p->attempt;

	if (!is_current(w, pair, path, serial))
		return;
	if (p->ends[0].serial != serial || !p->ends[0].is_up || p->ends[0].out.is_dead) {
		at->is_running = false; /* its initiator has given it up since */
		return;
	}
	if (w->now_ns < at->until_ns && sim_is_blocked(w, pair, path, 0)) {
		sim_timer_add(w, w->now_ns + RETRY_NS, T_AUTH, pair, path, 0, serial);
		return;
	}
	at->is_running = false;
	if (w->now_ns >= at->until_ns || !pr->ends[1].conn ||
	    w->hosts[pr->hosts[1]].process != at->processes[1] ||
	    mrc_conn_join(pr->ends[1].conn, (uint8_t)path, &at->auth, at->hellos[0].boot_id)) {
		w->counts.handshakes_failed++;
		sim_timer_add(w, w->now_ns + w->o.delay_ns, T_BROKEN, pair, path, 0, serial);
		return;
	}
	w->counts.handshakes++;
	pr->is_met = true;
	join(w, pair, path, 1);
	sim_pump(w, pair, 1);
}

/* ---- going down ---- */

void sim_path_cut(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct path *p = &w->pairs[pair].paths[path];
	struct end *end = &p->ends[side];
	struct wire *in = &p->ends[1 - side].out;

	sim_wire_kill(w, pair, path, side);
	if (!p->is_verbs)
		sim_queue_drop(w, &end->out, true);
	if (!end->is_up)
		return;
	end->is_up = false;
	/*
	 * Nothing can land here any more: what the other end has in the air is
	 * refused.
	 */
	if (p->is_verbs && p->ends[1 - side].serial == end->serial)
		sim_path_gone_later(w, pair, path, 1 - side, end->serial);
	sim_wire_refuse(w, in, end->serial);
}

void sim_path_down(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		   enum mrc_path_reason reason)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_DOWN,
				  .path = {.index = (uint8_t)path,
					   .path_epoch = end->epoch,
					   .reason = reason}};

	if (!end->is_up)
		return;
	sim_path_cut(w, pair, path, side);
	sim_tell(w, pair, side, &ev);
	sim_pump(w, pair, side);
}

/* The fence that MRC_ACT_FENCE asked for is confirmed. */
void sim_path_fenced(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		     uint64_t serial)
{
	struct path *p = &w->pairs[pair].paths[path];
	struct end *end = &p->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_FENCED, .path = {.index = (uint8_t)path}};

	if (end->serial != serial)
		return;
	if (end->is_up)
		sim_path_cut(w, pair, path, side);
	ev.path.path_epoch = end->epoch;
	sim_tell(w, pair, side, &ev);
	sim_pump(w, pair, side);
	/* A stream's other end reads its close, if anything gets through. */
	if (!p->is_verbs && !sim_is_blocked(w, pair, path, side) &&
	    p->ends[1 - side].serial == serial)
		sim_path_down(w, pair, path, 1 - side, MRC_REASON_CLOSED);
}

/*
 * A stream says so when the rail works, and so does the connection beside a
 * queue pair. The queue pair itself only finds out when it has tried in vain.
 */
void sim_path_gone_later(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t told,
			 uint64_t serial)
{
	const struct path *p = &w->pairs[pair].paths[path];

	if (!p->is_verbs || w->o.beside)
		sim_timer_add(w, w->now_ns + 2 * w->o.delay_ns, T_BROKEN, pair, path, told, serial);
	else if (p->ends[told].out.air_head)
		sim_wire_stuck(w, pair, path, told);
}

void sim_path_error(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		    uint64_t serial)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];

	if (end->serial != serial || !end->is_up)
		return;
	w->counts.qp_errors++;
	sim_port(w, w->pairs[pair].hosts[side], path)->trouble_until_ns = w->now_ns + 3 * MRC_S;
	sim_path_down(w, pair, path, side, MRC_REASON_ERROR);
}

/* This end learns that the other is not there any more. */
void sim_path_broken(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		     uint64_t serial)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];

	if (end->serial != serial || !end->is_up)
		return;
	if (sim_is_blocked(w, pair, path, 1 - side)) {
		sim_timer_add(w, w->now_ns + 5 * MRC_MS, T_BROKEN, pair, path, side, serial);
		return;
	}
	sim_path_down(w, pair, path, side, MRC_REASON_CLOSED);
}
