/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_screen - the terminal, for a program that draws on all of it
 *
 * From open to close the terminal shows its alternate screen, echoes no keys and
 * hands them over one by one. It is put back as it was found whatever ends the
 * program, but for SIGKILL: SIGINT, SIGTERM, SIGHUP and SIGQUIT are told as an end,
 * SIGTSTP puts it back and stops the program as it would any other, and a crash puts
 * it back before it kills us.
 *
 * Nothing waits in here: what the terminal does not take at once (it may be stopped
 * with ^S, or behind a slow line) is kept, and frames that come in the meantime are
 * not drawn. So the caller stays able to hear a signal.
 *
 * Ownership: one screen a process, since signals are a process's.
 * Threads:   one.  I/O: /dev/tty, a signalfd.
 */
#ifndef MRCCTL_SCREEN_H
#define MRCCTL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct mrcctl_screen {
	int fd;        /* of the terminal, opened anew: not blocking is ours alone */
	int signal_fd; /* what is caught */
	struct termios found;
	bool is_drawn_on; /* between enter and leave */
	char *left;       /* ours; of a frame, not yet taken */
	size_t left_bytes, left_at;
	char keys[64]; /* read and not yet handed over */
	size_t key_count, key_at;
};

/* What a signal means for us. */
enum mrcctl_signal {
	MRCCTL_SIGNAL_NONE,
	MRCCTL_SIGNAL_END,
	MRCCTL_SIGNAL_REDRAW, /* another size, or back from being stopped */
};

/* -ENXIO and such: there is no terminal. Nothing is changed then. */
int mrcctl_screen_open(struct mrcctl_screen *screen);
void mrcctl_screen_close(struct mrcctl_screen *screen);

/* Its size now; 24 by 80 when it does not know. */
void mrcctl_screen_size(const struct mrcctl_screen *screen, size_t *rows_out, size_t *columns_out);

/* For poll(): what to wait for on fd. On signal_fd it is POLLIN. */
short mrcctl_screen_events(const struct mrcctl_screen *screen);

/* Takes over the frame, malloc'd, and writes it at once; or drops it while one is being written. */
void mrcctl_screen_draw(struct mrcctl_screen *screen, char *frame, size_t frame_bytes);

/* Go on writing. */
void mrcctl_screen_flush(struct mrcctl_screen *screen);

/*
 * The next key, or 0 when there is none now; -EIO when the terminal has gone. Keys
 * that send a sequence, as arrows do, are left out.
 */
int mrcctl_screen_key(struct mrcctl_screen *screen);

/* The next signal that was caught. Being stopped happens in here. */
enum mrcctl_signal mrcctl_screen_signal(struct mrcctl_screen *screen);

#endif
