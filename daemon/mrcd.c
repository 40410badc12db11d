/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd - the daemon: options, files, signals, the service manager; the rest is the worker's
 *
 * Always in the foreground; whoever starts it keeps it running. Exit status:
 * 0 ended as asked, 1 could not start, or --check found errors, 2 usage, 78 the
 * configuration has errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "mrcd_bundle.h"
#include "mrcd_conf.h"
#include "mrcd_event_log.h"
#include "mrcd_handover.h"
#include "mrcd_heritage.h"
#include "mrcd_lock.h"
#include "mrcd_log.h"
#include "mrcd_notify.h"
#include "mrcd_privilege.h"
#include "mrcd_reload.h"
#include "mrcd_renewal.h"
#include "mrcd_worker.h"

#define MRCD_CONF_FILE    "/etc/mrcd/mrcd.yaml"
#define MRCD_EXIT_USAGE   2
#define MRCD_STATUS_BYTES 160
#define MRCD_LARGE_BYTES  (128 * 1024) /* glibc's own threshold at the start */
#define MRCD_READY_NS     (10 * MRC_S) /* for the manager to hear that we are */
#define MRCD_REREADS_MAX  8U           /* at once; a file server that hangs holds up no more */

/* The whole. Owned by main(). */
struct mrcd {
	struct mrcd_conf *conf;                  /* ours; the one in force */
	struct mrcd_worker *worker;              /* ours */
	struct mrcd_handover *handover;          /* ours; NULL until we end and leave our state */
	int lock_fd;                             /* ours; held as long as we run */
	struct event *sigterm, *sigint, *sighup; /* ours */
	struct event *status_timer;              /* ours; NULL: nobody wants to be told */
	struct event *watchdog_timer;            /* ours; NULL: no watchdog */
	struct timeval watchdog_interval;
	char status[MRCD_STATUS_BYTES]; /* last told to the service manager */
	bool is_over;                   /* the worker is being freed */
	uint32_t rereads, reloads;      /* the file is being read again so often; not as a trial */
	bool is_reread_wanted;          /* by a signal, when that is over */
};

/* The configuration is being read again for somebody. Owns itself, until it is done. */
struct mrcd_reread {
	struct mrcd *mrcd;
	bool is_trial; /* mrcctl reload --check, which is nobody else's business */
	mrcd_reload_fn done;
	void *done_context;
};

static void mrcd_usage(FILE *out)
{
	fprintf(out,
		"Usage: mrcd [--config FILE] [--check]\n"
		"       mrcd --help-conf | --version | --help\n"
		"\n"
		"Joins this host to its peers over several rails. Stays in the foreground.\n"
		"\n"
		"  -c, --config FILE  read FILE; default " MRCD_CONF_FILE "\n"
		"      --check        read the configuration, say whether it is right, and end\n"
		"      --help-conf    print every key of the configuration, its default and "
		"bounds\n"
		"      --version      print the version\n"
		"  -h, --help         print this\n"
		"\n"
		"Signals: TERM ends it, and leaves its programs to the next one where systemd\n"
		"starts it again; INT ends it; HUP reads the configuration again.\n");
}

/* ---- configuration ---- */

static void mrcd_print_conf_error(void *context, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static void mrcd_log_conf_error(void *context, const char *line)
{
	mrcd_err("%s", line);
}

static int mrcd_check(const char *file)
{
	struct mrcd_conf *conf;
	uint32_t paths = 0;

	if (mrcd_conf_load(file, mrcd_print_conf_error, NULL, &conf) < 0)
		return EXIT_FAILURE;
	for (uint32_t i = 0; i < conf->peer_count; i++)
		paths += conf->peers[i].path_count;
	printf("%s: ok (host %s, %u rail%s, %u peer%s, %u path%s, %u service rule%s)\n", file,
	       conf->host, conf->rail_count, conf->rail_count == 1 ? "" : "s", conf->peer_count,
	       conf->peer_count == 1 ? "" : "s", paths, paths == 1 ? "" : "s", conf->service_count,
	       conf->service_count == 1 ? "" : "s");
	mrcd_conf_free(conf);
	return EXIT_SUCCESS;
}

static void mrcd_note(struct mrcd *mrcd, enum mrcd_event_kind kind, const char *note)
{
	struct mrcd_event event = {.kind = kind};

	snprintf(event.note, sizeof(event.note), "%s", note);
	mrcd_event_log_add(mrcd->worker->events, &event);
}

/* A daemon that ends changes nothing any more: the next one reads the file anyway. */
static bool mrcd_is_ending(const struct mrcd *mrcd)
{
	return mrcd->is_over || mrcd->handover != NULL;
}

static int mrcd_reload_now(struct mrcd *mrcd, struct mrcd_reading *reading,
			   struct mrcd_reload *reload_out)
{
	char text[160];
	int r = mrcd_reload(mrcd->worker, &mrcd->conf, reading, false, reload_out);

	mrcd_note(mrcd, MRCD_EVENT_RELOADED,
		  r < 0 ? "it has errors, nothing was changed"
			: mrcd_plan_text(&reload_out->plan, text, sizeof(text)));
	if (mrcd->reloads == 0)
		mrcd_notify(0, "READY=1");
	return r;
}

/* Nobody waits for what comes of it. */
static void mrcd_reload_soon(struct mrcd *mrcd);

static void mrcd_on_read(void *context, struct mrcd_reading *reading)
{
	struct mrcd_reread *reread = context;
	struct mrcd *mrcd = reread->mrcd;
	struct mrcd_reload reload = {0};
	int r = -EBUSY;

	mrcd->rereads--;
	mrcd->reloads -= !reread->is_trial;
	if (mrcd_is_ending(mrcd)) {
		mrcd_conf_free(reading->conf);
		snprintf(reload.error, sizeof(reload.error), "the daemon is ending");
	} else {
		mrcd_worker_now(mrcd->worker);
		r = reread->is_trial
			    ? mrcd_reload(mrcd->worker, &mrcd->conf, reading, true, &reload)
			    : mrcd_reload_now(mrcd, reading, &reload);
	}
	if (reread->done != NULL)
		reread->done(reread->done_context, r, &reload);
	mrcd_reload_fini(&reload);
	free(reread);
	if (mrcd->is_reread_wanted && !mrcd_is_ending(mrcd)) {
		mrcd->is_reread_wanted = false;
		mrcd_reload_soon(mrcd);
	}
}

/* SIGHUP, mrcctl reload. */
static int mrcd_read_again(void *context, bool is_trial, mrcd_reload_fn done, void *done_context)
{
	struct mrcd *mrcd = context;
	struct mrcd_reread *reread;
	char words[64];
	int r;

	if (mrcd_is_ending(mrcd))
		return -EBUSY;
	if (mrcd->rereads >= MRCD_REREADS_MAX)
		return -EAGAIN;
	reread = malloc(sizeof(*reread));
	if (reread == NULL)
		return -ENOMEM;
	*reread = (struct mrcd_reread){
		.mrcd = mrcd,
		.is_trial = is_trial,
		.done = done,
		.done_context = done_context,
	};
	r = mrcd_reading_ask(mrcd->worker, mrcd->conf->file, mrcd_on_read, reread);
	if (r < 0) {
		free(reread);
		return r;
	}
	mrcd->rereads++;
	if (is_trial)
		return 0;
	mrcd->reloads++;
	snprintf(words, sizeof(words), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(mrcd_worker_now(mrcd->worker) / MRC_US));
	mrcd_notify(0, words);
	return 0;
}

static void mrcd_reload_soon(struct mrcd *mrcd)
{
	int r = mrcd_read_again(mrcd, false, NULL, NULL);

	if (r == -EAGAIN)
		mrcd->is_reread_wanted = true;
	else if (r < 0)
		mrcd_err("the configuration cannot be read again: %s",
			 r == -EBUSY ? "the daemon is ending" : strerror(-r));
}

/* ---- signals and the service manager ---- */

static void mrcd_end(void *context)
{
	struct mrcd *mrcd = context;

	event_base_loopbreak(mrcd->worker->base);
}

/* INT, or TERM once more, does not wait for anything. */
static void mrcd_on_stop(evutil_socket_t signal_number, short what, void *context)
{
	struct mrcd *mrcd = context;

	mrcd_notice("ending: asked by signal %d", (int)signal_number);
	mrcd_notify(0, "STOPPING=1\nSTATUS=ending");
	/* What goes, goes by itself; nothing of it is to happen to what is being saved. */
	mrcd_renewal_free(mrcd->worker->renewal);
	mrcd->worker->renewal = NULL;
	if (signal_number != SIGTERM || mrcd->handover != NULL || !mrcd_handover_is_possible() ||
	    mrcd_handover_begin(mrcd->worker, mrcd_end, mrcd, &mrcd->handover) < 0)
		mrcd_end(mrcd);
}

static void mrcd_on_reload(evutil_socket_t signal_number, short what, void *context)
{
	mrcd_reload_soon(context);
}

static void mrcd_on_status_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd *mrcd = context;
	struct mrcd_worker_summary summary;
	char text[MRCD_STATUS_BYTES], words[MRCD_STATUS_BYTES + 16];

	mrcd_worker_summarize(mrcd->worker, &summary);
	mrcd_worker_summary_text(&summary, text, sizeof(text));
	if (strcmp(text, mrcd->status) == 0)
		return;
	snprintf(words, sizeof(words), "STATUS=%s", text);
	if (mrcd_notify(0, words) > 0)
		memcpy(mrcd->status, text, sizeof(text));
}

static void mrcd_on_watchdog_timer(evutil_socket_t fd, short what, void *context)
{
	mrcd_notify(0, "WATCHDOG=1");
}

static int mrcd_add_event(struct event *ev, const struct timeval *interval)
{
	return ev == NULL || event_add(ev, interval) < 0 ? -ENOMEM : 0;
}

static int mrcd_add_signals(struct mrcd *mrcd)
{
	struct event_base *base = mrcd->worker->base;

	mrcd->sigterm = evsignal_new(base, SIGTERM, mrcd_on_stop, mrcd);
	mrcd->sigint = evsignal_new(base, SIGINT, mrcd_on_stop, mrcd);
	mrcd->sighup = evsignal_new(base, SIGHUP, mrcd_on_reload, mrcd);
	if (mrcd_add_event(mrcd->sigterm, NULL) < 0 || mrcd_add_event(mrcd->sigint, NULL) < 0 ||
	    mrcd_add_event(mrcd->sighup, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* The watchdog is fed from the loop: a loop that hangs feeds nothing. */
static int mrcd_add_manager(struct mrcd *mrcd)
{
	static const struct timeval second = {.tv_sec = 1};
	struct event_base *base = mrcd->worker->base;
	uint64_t watchdog_us = 0;

	if (getenv("NOTIFY_SOCKET") == NULL)
		return 0;
	mrcd->status_timer = event_new(base, -1, EV_PERSIST, mrcd_on_status_timer, mrcd);
	if (mrcd_add_event(mrcd->status_timer, &second) < 0)
		return -ENOMEM;
	if (sd_watchdog_enabled(0, &watchdog_us) <= 0 || watchdog_us < 2)
		return 0;
	mrcd->watchdog_interval.tv_sec = (time_t)(watchdog_us / 2 / 1000000U);
	mrcd->watchdog_interval.tv_usec = (suseconds_t)(watchdog_us / 2 % 1000000U);
	mrcd->watchdog_timer = event_new(base, -1, EV_PERSIST, mrcd_on_watchdog_timer, mrcd);
	return mrcd_add_event(mrcd->watchdog_timer, &mrcd->watchdog_interval);
}

static void mrcd_free_event(struct event *ev)
{
	if (ev != NULL)
		event_free(ev);
}

/* What the service manager passed. Owned by mrcd_run(). */
struct mrcd_passed {
	int client_fd; /* the client socket; -1: none */
	int conf_fd;   /* what was in force before; -1: nothing was, or nobody is left from then */
	int state_fds[MRCD_BUNDLES_MAX];
	uint32_t state_count;
};

/*
 * The client socket is named "mrcd" (or by its unit, the manager's default), what the daemon
 * before us left as mrcd_handover.h says; anything else is closed.
 */
static int mrcd_take_passed(struct mrcd_passed *passed)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);

	if (count < 0) {
		mrcd_err("the sockets passed by the service manager cannot be taken: %s",
			 strerror(-count));
		return count;
	}
	for (int i = 0; i < count; i++) {
		int fd = SD_LISTEN_FDS_START + i;
		bool is_named =
			strcmp(names[i], "mrcd") == 0 || strcmp(names[i], "mrcd.socket") == 0;

		if (is_named && passed->client_fd < 0 &&
		    sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0) {
			passed->client_fd = fd;
		} else if (strcmp(names[i], MRCD_HANDOVER_NAME) == 0 &&
			   passed->state_count < MRCD_BUNDLES_MAX) {
			passed->state_fds[passed->state_count++] = fd;
		} else if (strcmp(names[i], MRCD_HANDOVER_CONF_NAME) == 0) {
			if (passed->conf_fd >= 0) /* an older one, which nobody took away */
				close(passed->conf_fd);
			passed->conf_fd = fd;
		} else {
			mrcd_warn("passed socket \"%s\" is not the client socket (name mrcd, "
				  "sequential packets, listening) and is closed",
				  names[i]);
			close(fd);
		}
		free(names[i]);
	}
	free(names);
	return 0;
}

/* ---- what the process needs of the system ---- */

/* Every link, client and arena is a descriptor. */
static void mrcd_raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		mrcd_warn("the number of open files stays at its soft limit: %s", strerror(errno));
}

/* Who root is to become. *user_out NULL: nobody. `user` holds it. */
static int mrcd_find_user(const struct mrcd_conf *conf, struct mrcd_privilege_user *user,
			  const struct mrcd_privilege_user **user_out)
{
	int r;

	*user_out = NULL;
	if (geteuid() != 0)
		return 0;
	r = mrcd_privilege_find(conf->user, user);
	if (r == -ENOENT && conf->user[0] == '\0') {
		mrcd_notice("runs as root: there is no user " MRCD_USER
			    " and the configuration names no other (user)");
		return 0;
	}
	if (r < 0)
		mrcd_err("user %s: cannot be looked up: %s",
			 conf->user[0] != '\0' ? conf->user : MRCD_USER, strerror(-r));
	else if (user->uid != 0)
		*user_out = user;
	return r;
}

static int mrcd_drop_root(const struct mrcd_conf *conf, const struct mrcd_privilege_user *user)
{
	int r = mrcd_privilege_drop(user);

	if (r < 0) {
		mrcd_err(
			"cannot become user %s: %s; \"user: root\" in the configuration keeps root",
			user->name, strerror(-r));
		return r;
	}
	if (access(conf->runtime_dir, W_OK) < 0) {
		mrcd_err("runtime-dir %s: user %s cannot make sockets there: %s; give it to that "
			 "user, or \"user: root\"",
			 conf->runtime_dir, user->name, strerror(errno));
		return -EACCES;
	}
	mrcd_notice("goes on as user %s", user->name);
	return 0;
}

/* ---- main ---- */

/* client_fd is ours to pass on or close. heritage: NULL, or what we go on from. */
static int mrcd_start_worker(struct mrcd *mrcd, int client_fd, struct mrcd_heritage *heritage)
{
	int r = mrcd_worker_new(mrcd->conf, &mrcd->worker);

	if (r == 0 && heritage != NULL)
		r = mrcd_heritage_apply(heritage, mrcd->worker);
	if (r < 0) {
		if (client_fd >= 0)
			close(client_fd);
		return r;
	}
	mrcd->worker->read_again = mrcd_read_again;
	mrcd->worker->read_again_context = mrcd;
	mrcd_note(mrcd, MRCD_EVENT_STARTED,
		  mrcd->conf->is_former ? "version " MRC_VERSION
					  ", by the configuration from before"
					: "version " MRC_VERSION);
	return mrcd_worker_start(mrcd->worker, client_fd, heritage);
}

/* All of what was left, or nothing of it; or it is left as it is, where we cannot start at all. */
static int mrcd_start_or_go_on(struct mrcd *mrcd, const struct mrcd_passed *passed)
{
	struct mrcd_heritage *heritage = NULL;
	bool is_given_back = false;
	int spare_fd = -1, r;

	if (passed->state_count > 0)
		heritage = mrcd_heritage_open(passed->state_fds, passed->state_count, mrcd->conf);
	for (uint32_t i = 0; i < passed->state_count; i++)
		close(passed->state_fds[i]);
	if (heritage == NULL && mrcd->conf->is_former) {
		mrcd_err("%s has errors, and there is nobody for whom to go on without it",
			 mrcd->conf->file);
		return -ENODATA;
	}
	if (heritage == NULL)
		return mrcd_start_worker(mrcd, passed->client_fd, NULL);
	if (passed->client_fd >= 0)
		spare_fd = fcntl(passed->client_fd, F_DUPFD_CLOEXEC, 3);
	r = mrcd_start_worker(mrcd, passed->client_fd, heritage);
	if (r < 0) {
		mrcd_worker_free(mrcd->worker);
		mrcd->worker = NULL;
		is_given_back = mrcd_heritage_give_back(heritage, mrcd->conf);
	}
	mrcd_heritage_free(heritage);
	if (is_given_back)
		mrcd_warn("what the daemon before left is kept for the next try to start");
	if (r == 0 || is_given_back) {
		if (spare_fd >= 0)
			close(spare_fd);
		return r;
	}
	mrcd_warn("starting with nothing; programs of the daemon before have to attach again");
	return mrcd_start_worker(mrcd, spare_fd, NULL);
}

/*
 * Signals that ask for something wait until there is a loop to be asked: to be ended by one while
 * we hold what the daemon before us left would be the end of that. Threads that rails start have
 * them blocked for good, and leave them to the loop.
 */
static void mrcd_hold_signals(bool is_held)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

/*
 * A file with errors shall not end programs that wait for us: go on with what was in force before,
 * so that it can be mended under them. Who starts with nothing is told by the exit status.
 */
static int mrcd_load(struct mrcd *mrcd, const char *file, const struct mrcd_passed *passed)
{
	int r = mrcd_conf_load(file, mrcd_log_conf_error, NULL, &mrcd->conf);

	if (r == 0 || passed->conf_fd < 0 || passed->state_count == 0)
		return r;
	r = mrcd_conf_load_copy(file, passed->conf_fd, mrcd_log_conf_error, NULL, &mrcd->conf);
	if (r == 0)
		mrcd_warn("%s has errors: going on with the configuration from before, since "
			  "programs are attached; mend it, then mrcctl reload",
			  file);
	else
		mrcd_err("nor will the configuration from before do, as %s was then", file);
	return r;
}

static int mrcd_start(struct mrcd *mrcd, const struct mrcd_passed *passed)
{
	const struct mrcd_privilege_user *user;
	struct mrcd_privilege_user found;
	int r;

	signal(SIGPIPE, SIG_IGN);
	mrcd_hold_signals(true);
	mrcd_raise_nofile();
	r = mrcd_find_user(mrcd->conf, &found, &user);
	if (r == 0)
		r = mrcd_lock_take(mrcd->conf->runtime_dir, user, &mrcd->lock_fd);
	/* Keys were read and limits raised; no thread has been started. */
	if (r == 0 && user != NULL)
		r = mrcd_drop_root(mrcd->conf, user);
	if (r < 0)
		return r;
	if (mrcd->conf->worker_count > 1)
		mrcd_warn("workers: %u: this version has one and uses one",
			  mrcd->conf->worker_count);
	r = mrcd_start_or_go_on(mrcd, passed);
	if (r < 0)
		return r;
	r = mrcd_add_signals(mrcd);
	if (r == 0)
		r = mrcd_add_manager(mrcd);
	mrcd_hold_signals(false);
	if (r < 0)
		mrcd_err("signals and timers cannot be set up: %s", strerror(-r));
	return r;
}

static int mrcd_run(const char *file)
{
	struct mrcd_passed passed = {.client_fd = -1, .conf_fd = -1};
	struct mrcd mrcd = {.lock_fd = -1};
	int r;

	mrcd_log_init(LOG_INFO);
	/*
	 * Left alone, glibc takes memory of 2 MiB, as each link's queue has, from its heaps
	 * once one such was freed; then calloc() writes all of it, and what a rail that comes
	 * back needs is no longer the few pages that it uses.
	 */
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, MRCD_LARGE_BYTES);
#endif
	if (mrcd_take_passed(&passed) < 0)
		return EXIT_FAILURE;
	/* Not worth another try: the unit does not start us again after this one. */
	if (mrcd_load(&mrcd, file, &passed) < 0)
		return EX_CONFIG;
	if (passed.conf_fd >= 0)
		close(passed.conf_fd);
	mrcd_log_set_level(mrcd.conf->log_level);
	r = mrcd_start(&mrcd, &passed);
	if (r == 0) {
		mrcd_notice("mrcd %s: host %s, %u rail%s, %u peer%s, sockets in %s", MRC_VERSION,
			    mrcd.conf->host, mrcd.conf->rail_count,
			    mrcd.conf->rail_count == 1 ? "" : "s", mrcd.conf->peer_count,
			    mrcd.conf->peer_count == 1 ? "" : "s", mrcd.conf->runtime_dir);
		mrcd_notify(MRCD_READY_NS, "READY=1\nSTATUS=ready");
		if (event_base_dispatch(mrcd.worker->base) < 0) {
			mrcd_err("the event loop failed");
			r = -EIO;
		}
	}
	mrcd_free_event(mrcd.watchdog_timer);
	mrcd_free_event(mrcd.status_timer);
	mrcd_free_event(mrcd.sighup);
	mrcd_free_event(mrcd.sigint);
	mrcd_free_event(mrcd.sigterm);
	mrcd_handover_free(mrcd.handover);
	mrcd.is_over = true;
	mrcd_worker_free(mrcd.worker);
	mrcd_conf_free(mrcd.conf);
	if (mrcd.lock_fd >= 0)
		close(mrcd.lock_fd);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	enum { OPT_CHECK = 256, OPT_HELP_CONF, OPT_VERSION };
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, OPT_CHECK},
		{"help-conf", no_argument, NULL, OPT_HELP_CONF},
		{"version", no_argument, NULL, OPT_VERSION},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *file = MRCD_CONF_FILE;
	bool is_check = false;
	int option;

	while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			file = optarg;
			break;
		case OPT_CHECK:
			is_check = true;
			break;
		case OPT_HELP_CONF:
			mrcd_conf_print_keys();
			return EXIT_SUCCESS;
		case OPT_VERSION:
			printf("mrcd %s\n", MRC_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			mrcd_usage(stdout);
			return EXIT_SUCCESS;
		default:
			mrcd_usage(stderr);
			return MRCD_EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "mrcd: unexpected argument \"%s\"\n", argv[optind]);
		mrcd_usage(stderr);
		return MRCD_EXIT_USAGE;
	}
	return is_check ? mrcd_check(file) : mrcd_run(file);
}
