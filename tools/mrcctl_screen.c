/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The alternate screen, blank, no cursor, and a line that is too long stays where it is. */
#define MRCCTL_SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l\033[0m\033[2J"
/* CAN first: it ends a sequence of which only a part was written. */
#define MRCCTL_SCREEN_LEAVE       "\030\033[0m\033[?7h\033[?25h\033[?1049l"

#define MRCCTL_SCREEN_PATIENCE_MS 500 /* for the terminal to take the last bytes */

/* Whose terminal a crash puts back: a signal handler is told nothing but its number. */
static struct mrcctl_screen *mrcctl_screen_open_one;

static const int mrcctl_caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static const int mrcctl_crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

#define MRCCTL_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* All of it, or as much as the terminal takes while we are patient. Safe in a signal handler. */
static void mrcctl_screen_say(const struct mrcctl_screen *screen, const char *bytes, size_t count)
{
	struct pollfd fd = {.fd = screen->fd, .events = POLLOUT};

	while (count > 0) {
		ssize_t written = write(screen->fd, bytes, count);

		if (written > 0) {
			bytes += written;
			count -= (size_t)written;
		} else if (written == 0 || (errno != EAGAIN && errno != EINTR) ||
			   poll(&fd, 1, MRCCTL_SCREEN_PATIENCE_MS) <= 0) {
			return;
		}
	}
}

static void mrcctl_screen_enter(struct mrcctl_screen *screen)
{
	struct termios ours = screen->found;

	/* Keys come at once and are not echoed; ^C and ^Z remain signals. */
	ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	ours.c_cc[VMIN] = 1;
	ours.c_cc[VTIME] = 0;
	tcsetattr(screen->fd, TCSANOW, &ours);
	screen->is_drawn_on = true;
	mrcctl_screen_say(screen, MRCCTL_SCREEN_ENTER, sizeof(MRCCTL_SCREEN_ENTER) - 1);
}

static void mrcctl_screen_leave(struct mrcctl_screen *screen)
{
	if (!screen->is_drawn_on)
		return;
	screen->is_drawn_on = false;
	mrcctl_screen_say(screen, MRCCTL_SCREEN_LEAVE, sizeof(MRCCTL_SCREEN_LEAVE) - 1);
	/* What was typed ahead of the end is not meant for the shell. */
	tcsetattr(screen->fd, TCSANOW, &screen->found);
	tcflush(screen->fd, TCIFLUSH);
}

/* Once: the second time it kills us. */
static void mrcctl_screen_on_crash(int number)
{
	int error = errno;

	mrcctl_screen_leave(mrcctl_screen_open_one);
	errno = error;
	raise(number);
}

static void mrcctl_signals_block(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < MRCCTL_COUNT(mrcctl_caught); i++)
		sigaddset(&set, mrcctl_caught[i]);
	sigprocmask(how, &set, NULL);
}

static void mrcctl_crashes_handle(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < MRCCTL_COUNT(mrcctl_crashes); i++)
		sigaction(mrcctl_crashes[i], &action, NULL);
}

int mrcctl_screen_open(struct mrcctl_screen *screen)
{
	sigset_t set;
	int r;

	memset(screen, 0, sizeof(*screen));
	screen->fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (screen->fd < 0)
		return -errno;
	if (tcgetattr(screen->fd, &screen->found) < 0) {
		r = -errno;
		goto err_close_fd;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < MRCCTL_COUNT(mrcctl_caught); i++)
		sigaddset(&set, mrcctl_caught[i]);
	mrcctl_signals_block(SIG_BLOCK);
	screen->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (screen->signal_fd < 0) {
		r = -errno;
		goto err_let_signals;
	}
	mrcctl_screen_open_one = screen;
	mrcctl_crashes_handle(mrcctl_screen_on_crash);
	mrcctl_screen_enter(screen);
	return 0;

err_let_signals:
	mrcctl_signals_block(SIG_UNBLOCK);
err_close_fd:
	close(screen->fd);
	return r;
}

void mrcctl_screen_close(struct mrcctl_screen *screen)
{
	struct signalfd_siginfo info;

	mrcctl_screen_leave(screen);
	mrcctl_crashes_handle(SIG_DFL);
	mrcctl_screen_open_one = NULL;
	while (read(screen->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		; /* one that came is dealt with */
	mrcctl_signals_block(SIG_UNBLOCK);
	close(screen->signal_fd);
	close(screen->fd);
	free(screen->left);
}

void mrcctl_screen_size(const struct mrcctl_screen *screen, size_t *rows_out, size_t *columns_out)
{
	struct winsize size = {0};

	(void)ioctl(screen->fd, TIOCGWINSZ, &size);
	*rows_out = size.ws_row > 0 ? size.ws_row : 24;
	*columns_out = size.ws_col > 0 ? size.ws_col : 80;
}

short mrcctl_screen_events(const struct mrcctl_screen *screen)
{
	return screen->left != NULL ? POLLIN | POLLOUT : POLLIN;
}

void mrcctl_screen_draw(struct mrcctl_screen *screen, char *frame, size_t frame_bytes)
{
	if (screen->left != NULL) {
		free(frame);
		return;
	}
	screen->left = frame;
	screen->left_bytes = frame_bytes;
	screen->left_at = 0;
	mrcctl_screen_flush(screen);
}

void mrcctl_screen_flush(struct mrcctl_screen *screen)
{
	while (screen->left != NULL && screen->left_at < screen->left_bytes) {
		ssize_t count = write(screen->fd, screen->left + screen->left_at,
				      screen->left_bytes - screen->left_at);

		if (count < 0 && errno == EAGAIN)
			return;
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break; /* it has gone: reading it will say so */
		screen->left_at += (size_t)count;
	}
	free(screen->left);
	screen->left = NULL;
}

/* Where the sequence ends that begins with the escape at `at`. */
static size_t mrcctl_sequence_end(const char *keys, size_t count, size_t at)
{
	bool is_csi = at + 1 < count && keys[at + 1] == '[';

	at += 2;
	if (is_csi) {
		while (at < count && !(keys[at] >= 0x40 && keys[at] <= 0x7e))
			at++;
		at++;
	}
	return at < count ? at : count;
}

int mrcctl_screen_key(struct mrcctl_screen *screen)
{
	ssize_t count;

	while (screen->key_at < screen->key_count) {
		char key = screen->keys[screen->key_at];

		if (key != '\033') {
			screen->key_at++;
			return (unsigned char)key;
		}
		screen->key_at =
			mrcctl_sequence_end(screen->keys, screen->key_count, screen->key_at);
	}
	count = read(screen->fd, screen->keys, sizeof(screen->keys));
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (count <= 0)
		return -EIO;
	screen->key_count = (size_t)count;
	screen->key_at = 0;
	return mrcctl_screen_key(screen);
}

static void mrcctl_screen_stop(struct mrcctl_screen *screen)
{
	sigset_t set;

	mrcctl_screen_leave(screen);
	raise(SIGTSTP);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* here we are stopped */
	sigprocmask(SIG_BLOCK, &set, NULL);
}

enum mrcctl_signal mrcctl_screen_signal(struct mrcctl_screen *screen)
{
	struct signalfd_siginfo info;

	if (read(screen->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return MRCCTL_SIGNAL_NONE;
	switch (info.ssi_signo) {
	case SIGWINCH:
		return MRCCTL_SIGNAL_REDRAW;
	case SIGTSTP:
		mrcctl_screen_stop(screen);
		mrcctl_screen_enter(screen);
		return MRCCTL_SIGNAL_REDRAW;
	case SIGCONT:
		/* After a SIGSTOP, which nobody can catch, the shell has set the terminal as it likes it. */
		mrcctl_screen_enter(screen);
		return MRCCTL_SIGNAL_REDRAW;
	default:
		return MRCCTL_SIGNAL_END;
	}
}
