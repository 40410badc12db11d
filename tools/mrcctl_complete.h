/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_complete - what a word of a command line of mrcctl may become, for shells
 *
 *	mrcctl --complete INDEX mrcctl WORD...
 *
 * INDEX is of the word that is being typed, counted from the program's name; it may be
 * behind the last. The words are as the shell has them: bash makes three of --socket=PATH.
 *
 * The answer is one candidate a line; behind a tab, what it means. ":file" and
 * ":directory" ask the shell for what it knows better. All comes from the tables of
 * mrcctl_command.h, and names of rails, peers and channels from the daemon that the words
 * name; a daemon that does not answer within a second has none.
 *
 * Threads: one.  I/O: the control socket, `out`.
 */
#ifndef MRCCTL_COMPLETE_H
#define MRCCTL_COMPLETE_H

#include <stdio.h>

/* `socket` unless the words name another. argv: INDEX and the words. The exit status. */
int mrcctl_complete(const char *socket, int argc, char **argv, FILE *out);

#endif
