/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keeper - a small stand-in for a service manager that keeps descriptors (systemd's FDSTORE)
 *
 *	keeper BASE COMMAND...
 *
 * Starts COMMAND with NOTIFY_SOCKET=BASE.notify and keeps what it gives away
 * with FDSTORE=1 until FDSTOREREMOVE=1 or its own end. BASE.pid has the
 * command's process id. What it can be told, by signals:
 *
 *	HUP   restart: TERM to the command, and when it has ended, start it again
 *	USR1  the same with KILL, as when the watchdog bites
 *	TERM  stop: TERM to the command; what is kept is closed, and the keeper ends as it did
 *
 * A command that ends by itself is started again when a signal ended it, or its
 * status was neither 0 nor 78 (Restart=on-failure, RestartPreventExitStatus=78).
 * What systemd does too: descriptors survive every restart and no stop, are
 * passed with their names, and messages count only while their process lives.
 *
 * On standard output, a line for what happens, with the time in us (CLOCK_MONOTONIC):
 *	TIME start PID | TIME ready PID | TIME told PID SIGNAL | TIME stored NAME COUNT |
 *	TIME removed NAME COUNT | TIME ended PID STATUS
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT_MAX    512
#define NAME_BYTES  256
#define MESSAGE_FDS 253 /* the kernel's bound */
#define FIRST_FD    3   /* SD_LISTEN_FDS_START */

struct kept {
	int fd;
	char name[NAME_BYTES];
};

struct keeper {
	const char *base;
	char **command;
	char notify_path[108];
	int notify_fd, signal_fd;
	sigset_t inherited; /* what signals were blocked before us */
	pid_t pid;          /* 0: none runs */
	bool is_restarting; /* it is to end, and to be started again */
	bool is_stopping;
	struct kept kept[KEPT_MAX];
	int kept_count;
};

static void die(const char *what)
{
	fprintf(stderr, "keeper: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld ", (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

/* ---- starting ---- */

static void pid_write(const struct keeper *keeper)
{
	char path[256], temporary[272];
	FILE *file;

	snprintf(path, sizeof(path), "%s.pid", keeper->base);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "we");
	if (!file)
		die(temporary);
	fprintf(file, "%d\n", (int)keeper->pid);
	fclose(file);
	if (rename(temporary, path) < 0)
		die(path);
}

/* In the child: what is kept becomes 3, 4, ..., in the order that systemd has, the last one first. */
static void child_pass(const struct keeper *keeper)
{
	static char names[KEPT_MAX * NAME_BYTES];
	char count[16], pid[16];
	size_t at = 0;

	for (int i = 0; i < keeper->kept_count; i++) {
		const struct kept *kept = &keeper->kept[keeper->kept_count - 1 - i];

		/* All of them lie above, so none is overwritten before it was copied. */
		if (dup2(kept->fd, FIRST_FD + i) < 0)
			die("dup2");
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i > 0 ? ":" : "",
				       kept->name);
	}
	if (keeper->kept_count == 0)
		return;
	snprintf(count, sizeof(count), "%d", keeper->kept_count);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_FDS", count, 1);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

static void start(struct keeper *keeper)
{
	keeper->pid = fork();
	if (keeper->pid < 0)
		die("fork");
	if (keeper->pid == 0) {
		sigprocmask(SIG_SETMASK, &keeper->inherited, NULL);
		setenv("NOTIFY_SOCKET", keeper->notify_path, 1);
		child_pass(keeper);
		execv(keeper->command[0], keeper->command);
		die(keeper->command[0]);
	}
	say_time();
	printf("start %d\n", (int)keeper->pid);
	pid_write(keeper);
}

/* ---- what it tells us ---- */

static bool has_line(const char *message, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = message; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, line, len) && (at[len] == '\n' || at[len] == '\0'))
			return true;
	}
	return false;
}

static void value_of(const char *message, const char *key, char value[NAME_BYTES])
{
	size_t len = strlen(key);

	snprintf(value, NAME_BYTES, "stored");
	for (const char *at = message; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, key, len)) {
			snprintf(value, NAME_BYTES, "%.*s", (int)strcspn(at + len, "\n"), at + len);
			return;
		}
	}
}

static void forget(struct keeper *keeper, const char *name)
{
	int left = 0;

	for (int i = 0; i < keeper->kept_count; i++) {
		if (name && strcmp(keeper->kept[i].name, name) != 0)
			keeper->kept[left++] = keeper->kept[i];
		else
			close(keeper->kept[i].fd);
	}
	say_time();
	printf("removed %s %d\n", name ? name : "all", keeper->kept_count - left);
	keeper->kept_count = left;
}

static void keep(struct keeper *keeper, const char *name, const int *fds, int count)
{
	int stored = 0;

	for (int i = 0; i < count; i++) {
		struct kept *kept = &keeper->kept[keeper->kept_count];

		if (keeper->kept_count == KEPT_MAX) {
			close(fds[i]);
			continue;
		}
		/* Above all that a child can be passed. */
		kept->fd = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + KEPT_MAX);
		if (kept->fd < 0)
			die("F_DUPFD_CLOEXEC");
		close(fds[i]);
		snprintf(kept->name, sizeof(kept->name), "%s", name);
		keeper->kept_count++;
		stored++;
	}
	say_time();
	printf("stored %s %d\n", name, stored);
}

/* True: there was a message. */
static bool hear(struct keeper *keeper)
{
	static union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS) +
			   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char message[4096], name[NAME_BYTES];
	struct iovec iov = {.iov_base = message, .iov_len = sizeof(message) - 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(keeper->notify_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[MESSAGE_FDS], fd_count = 0;
	bool is_ours = false;

	if (len < 0)
		return false;
	message[len] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			fd_count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(fds, CMSG_DATA(c), (size_t)fd_count * sizeof(int));
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			is_ours = cred.pid == keeper->pid; /* NotifyAccess=main */
		}
	}
	value_of(message, "FDNAME=", name);
	if (is_ours && has_line(message, "FDSTORE=1")) {
		keep(keeper, name, fds, fd_count);
		return true;
	}
	for (int i = 0; i < fd_count; i++)
		close(fds[i]); /* which is the answer to BARRIER=1 */
	if (is_ours && has_line(message, "FDSTOREREMOVE=1"))
		forget(keeper, name);
	if (is_ours && has_line(message, "READY=1")) {
		say_time();
		printf("ready %d\n", (int)keeper->pid);
	}
	return true;
}

/* ---- signals ---- */

static void child_ended(struct keeper *keeper)
{
	bool is_failure;
	int status;

	if (waitpid(keeper->pid, &status, WNOHANG) != keeper->pid)
		return;
	is_failure = WIFSIGNALED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 78);
	say_time();
	printf("ended %d %d\n", (int)keeper->pid,
	       WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	keeper->pid = 0;
	if (!keeper->is_stopping && (keeper->is_restarting || is_failure)) {
		keeper->is_restarting = false;
		start(keeper);
		return;
	}
	forget(keeper, NULL);
	unlink(keeper->notify_path);
	exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void tell(const struct keeper *keeper, int signal_number)
{
	say_time();
	printf("told %d %d\n", (int)keeper->pid, signal_number);
	kill(keeper->pid, signal_number);
}

static void on_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	if (read(keeper->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGCHLD:
		if (keeper->pid != 0)
			child_ended(keeper);
		return;
	case SIGHUP:
	case SIGUSR1:
		keeper->is_restarting = true;
		tell(keeper, info.ssi_signo == SIGHUP ? SIGTERM : SIGKILL);
		return;
	default:
		keeper->is_stopping = true;
		tell(keeper, SIGTERM);
		return;
	}
}

int main(int argc, char **argv)
{
	static struct keeper keeper;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int on = 1;
	sigset_t signals;

	if (argc < 3) {
		fprintf(stderr, "usage: keeper BASE COMMAND...\n");
		return 2;
	}
	keeper.base = argv[1];
	keeper.command = argv + 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (snprintf(keeper.notify_path, sizeof(keeper.notify_path), "%s.notify", keeper.base) >=
	    (int)sizeof(keeper.notify_path)) {
		fprintf(stderr, "keeper: %s: too long for a socket\n", keeper.base);
		return 2;
	}
	memcpy(addr.sun_path, keeper.notify_path, sizeof(addr.sun_path));
	unlink(addr.sun_path);
	keeper.notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (keeper.notify_fd < 0 ||
	    bind(keeper.notify_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    setsockopt(keeper.notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		die(keeper.notify_path);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, &keeper.inherited);
	keeper.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper.signal_fd < 0)
		die("signalfd");
	start(&keeper);
	for (;;) {
		struct pollfd fds[2] = {
			{.fd = keeper.notify_fd, .events = POLLIN},
			{.fd = keeper.signal_fd, .events = POLLIN},
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die("poll");
		/* First, as systemd does: what a process said before it ended counts. */
		while (hear(&keeper))
			;
		if (fds[1].revents)
			on_signal(&keeper);
	}
}
