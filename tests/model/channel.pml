/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel - beginnings and ends of channels, and whose memory a grant takes (DESIGN 7.6, 7.7, 7.8)
 *
 * Two small questions beside credit.pml. With MEMORY 0: one channel of two
 * messages, closed, and a second one opened, over two paths that say each frame
 * up to twice. With MEMORY 1: two hosts send to each other at once.
 */
#ifndef MEMORY
#define MEMORY 0
#endif
#if MEMORY == 0
mtype = { OPEN, MSG, CLOSE };

/* rule 7.7 NUMBER_ONCE: a channel number is never used twice in a conn epoch. */
#ifdef NO_RULE_NUMBER_ONCE
#define SECOND 0
#else
#define SECOND 1
#endif

/* Kind, channel number, message or last number; and which channel was meant, which no end reads. */
chan path[2] = [4] of { mtype, byte, byte, bit };
bit is_open[2], was_ended[2], truth[2];
byte next[2], have[2], close_at[2];
byte got[2]; /* messages delivered, by the channel that was meant */
bit is_over;

/* A sender's frames go by path 0; those of the first channel are said again on path 1 when it was suspected. */
proctype Sender()
{
	atomic {
		path[0]!OPEN, 0, 0, 0
	};
	/* Messages go when ACCEPT has come. */
	atomic {
		is_open[0] ->
		path[0]!MSG, 0, 0, 0;
		path[0]!MSG, 0, 1, 0;
		path[0]!CLOSE, 0, 2, 0;
		/* Not the CLOSE: control frames are taken once, in order. */
		path[1]!MSG, 0, 0, 0;
		path[1]!MSG, 0, 1, 0
	};
	/* The second channel, when the first has ended here. */
	atomic {
		was_ended[0] && nfull(path[0]) ->
			path[0]!OPEN, SECOND, 0, 1
	};
	atomic {
		is_open[SECOND] && nfull(path[0]) ->
			path[0]!MSG, SECOND, 0, 1
	};
	/* Part of the first copies is lost with path 0: those on path 1 are what there is. */
	got[0] == 2 && got[1] == 1
}

inline deliver(c)
{
	do
	:: have[c] & (1 << next[c]) ->
		/* claim: what is delivered on a channel was sent on it */
		assert(truth[c] == (have[c] >> (4 + next[c]) & 1));
		got[truth[c]]++;
		/* claim: delivered once */
		assert(got[0] <= 2 && got[1] <= 1);
		next[c]++
	:: else -> break
	od;
	if
	/* rule 7.7 CLOSE_LAST: CLOSE names the last number, and takes effect when all up to it are delivered. */
#ifdef NO_RULE_CLOSE_LAST
	:: close_at[c] > 0 ->
#else
	:: close_at[c] > 0 && next[c] == close_at[c] ->
#endif
		is_open[c] = 0;
		was_ended[c] = 1;
		next[c] = 0;
		have[c] = 0;
		close_at[c] = 0;
		printf("R: channel %d has ended\n", c)
	:: else -> skip
	fi
}

proctype Receiver(byte from)
{
	mtype kind;
	byte c, n;
	bit meant;
end:
	do
	:: d_step {
		path[from]?kind, c, n, meant ->
			printf("R: takes %e of channel %d, %d\n", kind, c, n);
			if
			:: kind == OPEN -> is_open[c] = 1; truth[c] = meant
			:: kind == MSG && is_open[c] && n >= next[c] && !(have[c] & (1 << n)) ->
				have[c] = have[c] | (1 << n) | (meant << (4 + n));
				deliver(c)
			:: kind == CLOSE && is_open[c] ->
				close_at[c] = n;
				deliver(c)
			:: else -> skip
			fi;
			kind = 0; c = 0; n = 0; meant = 0
	}
	/* A suspected path loses a message that was not acknowledged; the other one has it. */
	:: d_step {
		from == 0 && path[0]?[MSG, 0, n, 0] && !is_over ->
			is_over = 1;
			path[0]?kind, c, n, meant;
			printf("network: path 0 loses message %d of channel 0\n", n);
			kind = 0; c = 0; n = 0; meant = 0
	}
	od
}

init {
	atomic {
		run Sender();
		run Receiver(0);
		run Receiver(1)
	}
}
#else
/*
 * rule 7.8, section 6 TWO_MEMORIES: the grant of landing space never waits for send memory.
 */
#define UNITS 2
byte send_used[2];
byte landing_used[2];
byte left[2] = UNITS;
#ifdef NO_RULE_TWO_MEMORIES
#define SEND_FITS(h)    (send_used[h] + landing_used[h] < UNITS)
#define LANDING_FITS(h) (send_used[h] + landing_used[h] < UNITS)
#else
#define SEND_FITS(h)    (send_used[h] < UNITS / 2)
#define LANDING_FITS(h) (landing_used[h] < UNITS / 2)
#endif

proctype Host(byte h)
{
	do
	:: d_step {
		left[h] > 0 && SEND_FITS(h) ->
			left[h]--;
			send_used[h]++;
			printf("host %d: its client takes send memory\n", h)
	}
	:: d_step {
		send_used[h] > landing_used[1 - h] && LANDING_FITS(1 - h) ->
			landing_used[1 - h]++;
			printf("host %d: grants landing memory\n", 1 - h)
	}
	:: d_step {
		landing_used[1 - h] > 0 && send_used[h] > 0 ->
			send_used[h]--;
			landing_used[1 - h]--;
			printf("host %d: a message of its client is written, committed and freed at both ends\n", h)
	}
	:: left[h] == 0 && send_used[h] == 0 -> break
	od
}

init {
	atomic {
		run Host(0);
		run Host(1)
	}
}
#endif
