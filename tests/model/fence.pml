/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence - who may write where, when paths die (DESIGN 7.3, 7.4, 7.6, 7.10, 7.13)
 *
 * One sending host, one receiving host, one channel of MSGS messages of one
 * fragment each that land in turn in SLOTS buffers. A path is a queue of what
 * was posted, in order. A path given up by the sender may still land any prefix
 * of its queue, until the receiver has fenced its end: those are the ghosts.
 *
 * Told of the peer's state (ACK, STATE, PATH_FENCE, PATH_FENCED, WANT, VOID) are
 * absolute facts said until heard, so here they are read from the other end's
 * variables, now or later; that this is sound for facts that only grow is
 * credit.pml's part.
 *
 * A queue pair is one epoch of one path: number path * EPOCHS + epoch.
 * "rule" comments name a rule and the switch that turns it off; "claim" comments
 * are what the assertion beneath them says.
 */
#ifndef PATHS
#define PATHS 2
#endif
#ifndef EPOCHS
#define EPOCHS 2 /* 1: a path that dies stays dead */
#endif
#ifndef MSGS
#define MSGS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef FAULTS
#define FAULTS 2 /* paths given up, by either end; fewer than can be survived */
#endif
#ifndef DAMAGE
#define DAMAGE 1 /* bodies that fail their checksum */
#endif
#ifndef VOIDS
#define VOIDS 1 /* messages the sender tries to give up: 0 or 1 */
#endif
#ifndef ENDS
#define ENDS 0 /* 1: the receiving client may die */
#endif

#define QPS         (PATHS * EPOCHS)
#define NONE        99
#define PATH_OF(q)  ((q) / EPOCHS)
#define EPOCH_OF(q) ((q) % EPOCHS)
#define QP_NOW(p)   ((p) * EPOCHS + s_epoch[p])
#define NEEDED(m)   (!r_ended && (m) >= r_done && !r_have[m] && !r_void[m])

mtype = { WRITE, HEAD, SEND };

/* Fencing at the receiver: slow, so asked for and confirmed (DESIGN 7.5). */
#define OPEN   0
#define ASKED  1
#define FENCED 2

/* The network: kind, message, writer named; and what the receiver's NIC completed, with "is damaged". */
chan wire[QPS] = [4] of { mtype, byte, byte };
chan cq[QPS] = [2] of { mtype, byte, byte, bit };
byte faults = FAULTS;
byte damage = DAMAGE;

/* The sender. */
byte s_epoch[PATHS];
bit s_is_down[PATHS];
byte s_next;          /* messages numbered so far */
byte s_carrier[MSGS]; /* queue pair of the newest copy */
byte s_writer[MSGS];  /* queue pair that wrote it directly */
byte s_position[MSGS]; /* of the newest copy on its queue pair */
byte s_posted[QPS];   /* headers and SENDs */
byte s_void = NONE;   /* VOID of this message was said */
byte s_drain[QPS];    /* what VOID says was posted */
bit s_stopped;        /* DRAINED was said */
byte k_done, k_free;  /* heard from the receiver */

/* The receiver. */
byte fence[QPS];
byte r_epoch[PATHS];
byte r_taken[QPS];
byte mem[SLOTS]; /* 0, or 2 * message + is damaged + 1 */
bit r_have[MSGS];
bit r_void[MSGS];
bit r_want[MSGS];
byte r_held[MSGS]; /* a copy in daemon memory waits for its writer's fence; 2: a damaged one */
byte r_held_writer[MSGS];
bit r_void_taken;
bit r_ended; /* its client has died */
bit r_freed; /* all its landing memory */
byte r_done; /* delivered or skipped */
byte r_free; /* released by the client, or given up */

#define IS_CURRENT(q) (s_epoch[PATH_OF(q)] == EPOCH_OF(q) && !s_is_down[PATH_OF(q)])
#define GIVEN_UP(q)   (!IS_CURRENT(q))

/* Is nothing of this writer's still to come? Opening an epoch of a path fenced all before it. */
#ifdef NO_RULE_FENCE_CONFIRMED
#define IS_OVER(q) (fence[q] != OPEN || EPOCH_OF(q) < r_epoch[PATH_OF(q)])
#else
#define IS_OVER(q) (fence[q] == FENCED || EPOCH_OF(q) < r_epoch[PATH_OF(q)])
#endif

/* A body that fails its checksum, or one that does not. */
inline land(m, is_bad)
{
	/* claim: no write lands in a message that was delivered, nor in the buffer of a void one that was freed */
	assert(m >= r_free && (m >= r_done || r_void[m]));
	/* claim: no write lands in memory of a client that ended, once that was freed */
	assert(!r_freed);
	/* claim: no write lands in bytes that were verified */
	assert(!r_have[m]);
	/* claim: no write lands in a buffer whose last message the client still holds */
	assert(m < r_free + SLOTS);
	mem[m % SLOTS] = 2 * m + is_bad + 1
}

/* The receiver copies a SEND from daemon memory. */
inline copy(m)
{
	/* claim: no copy is made into a buffer whose last message the client still holds */
	assert(m < r_free + SLOTS);
	mem[m % SLOTS] = 2 * m + 1;
	r_have[m] = 1;
	r_want[m] = 0
}

/* rule 7.3 DROP_LEFTOVERS: what was completed and not polled when the fence is asked for is not taken in. */
inline ask_fence(q)
{
	fence[q] = ASKED;
#ifndef NO_RULE_DROP_LEFTOVERS
	do
	:: len(cq[q]) > 0 -> cq[q]?_, _, _, _
	:: len(cq[q]) == 0 -> break
	od;
#endif
	printf("R: asks to fence path %d epoch %d\n", PATH_OF(q), EPOCH_OF(q))
}

inline post_write(q, m)
{
	wire[q]!WRITE, m, q;
	wire[q]!HEAD, m, q;
	s_position[m] = s_posted[q];
	s_posted[q]++;
	s_carrier[m] = q;
	s_writer[m] = q
}

inline post_send(q, m, writer)
{
	wire[q]!SEND, m, writer;
	s_position[m] = s_posted[q];
	s_posted[q]++;
	s_carrier[m] = q
}

/*
 * rule 7.3 ONE_WRITER: a byte range is written directly once; every other copy is a SEND.
 * rule 7.3 NAME_WRITER: that SEND names the writer.
 * rule 7.3 NEXT_WRITER (memory the daemon cannot write): no copies; the next path writes when
 *      PATH_FENCED came back for the last one.
 * rule 7.4 FENCED_COUNT: and when its count says that the header was not taken in.
 */
#ifdef DEVICE_MEMORY
#define MAY_MOVE_AS_SEND  false
#if defined NO_RULE_NEXT_WRITER
#define MAY_MOVE_AS_WRITE true
#elif defined NO_RULE_FENCED_COUNT
#define MAY_MOVE_AS_WRITE (fence[s_carrier[m]] == FENCED)
#else
#define MAY_MOVE_AS_WRITE (fence[s_carrier[m]] == FENCED && s_position[m] >= r_taken[s_carrier[m]])
#endif
#else
#define MAY_MOVE_AS_SEND true
#ifdef NO_RULE_ONE_WRITER
#define MAY_MOVE_AS_WRITE (s_writer[m] != NONE && fence[s_writer[m]] == FENCED)
#else
#define MAY_MOVE_AS_WRITE false
#endif
#endif
#ifdef NO_RULE_NAME_WRITER
#define NAMED(m) NONE
#else
#define NAMED(m) s_writer[m]
#endif

#ifdef NO_RULE_OPEN_FENCES
#define MAY_OPEN(q) true
#else
#define MAY_OPEN(q) (fence[q] == FENCED)
#endif
#ifdef NO_RULE_DROP_LEFTOVERS
#define IS_LEFTOVER(q) false
#else
#define IS_LEFTOVER(q) (fence[q] != OPEN)
#endif
#if defined NO_RULE_FENCE_THEN_COPY
#define MUST_WAIT(is_bad) (is_bad)
#elif defined NO_RULE_WANT_AFTER_LANDING
#define MUST_WAIT(is_bad) (!is_bad)
#else
#define MUST_WAIT(is_bad) true
#endif

/* rule 7.8 RELEASE: a buffer is another message's when the client gave it back. */
#ifdef NO_RULE_RELEASE
#define HAS_CREDIT (s_next < MSGS && s_next < k_done + SLOTS)
#else
#define HAS_CREDIT (s_next < MSGS && s_next < k_free + SLOTS)
#endif
#define IS_OPEN(m) (m < s_next && k_done <= m && s_void != m && !s_stopped)

/* Paths are alike: the first message goes by the first path that is up, and many states need no visit. */
#define IS_FIRST(p) (s_next > 0 || (p) == 0 || (s_is_down[0] && ((p) == 1 || s_is_down[1])))

/* The sender on one path. */
proctype Path(byte p)
{
	byte q, m;
end:
	do
	/* First copy of the next message, when there is credit for its buffer. */
	:: d_step {
		!s_is_down[p] && HAS_CREDIT && !s_stopped && IS_FIRST(p) &&
		len(wire[QP_NOW(p)]) <= 2 ->
			q = QP_NOW(p);
			m = s_next;
			s_next++;
			post_write(q, m);
			printf("S: message %d by WRITE and header on path %d epoch %d\n", m, p, EPOCH_OF(q));
			q = 0;
			m = 0
	}
#ifndef DEVICE_MEMORY
	/* A small one is a SEND from its first copy on. */
	:: d_step {
		!s_is_down[p] && HAS_CREDIT && !s_stopped && IS_FIRST(p) &&
		nfull(wire[QP_NOW(p)]) ->
			q = QP_NOW(p);
			m = s_next;
			s_next++;
			post_send(q, m, NONE);
			printf("S: message %d as a SEND on path %d epoch %d\n", m, p, EPOCH_OF(q));
			q = 0;
			m = 0
	}
#endif
	/* The sender gives the path up: its own queue pair is in error, nothing more is posted. */
	:: d_step {
		!s_is_down[p] && faults > 0 && (EPOCHS == 1 || s_epoch[p] + 1 < EPOCHS) ->
			faults--;
			s_is_down[p] = 1;
			printf("S: gives up path %d epoch %d\n", p, s_epoch[p])
	}
	/* It hears PATH_FENCE from the receiver. */
	:: d_step {
		!s_is_down[p] && fence[QP_NOW(p)] != OPEN ->
			s_is_down[p] = 1;
			printf("S: hears that path %d epoch %d is given up\n", p, s_epoch[p])
	}
	/*
	 * A new epoch of the path.
	 * rule 7.4, 7.13 OPEN_FENCES: opening fences every older one at both ends first.
	 */
	:: d_step {
		s_is_down[p] && s_epoch[p] + 1 < EPOCHS && MAY_OPEN(QP_NOW(p)) ->
			s_epoch[p]++;
			r_epoch[p] = s_epoch[p];
			s_is_down[p] = 0;
			printf("S, R: path %d opened as epoch %d\n", p, s_epoch[p])
	}
	od
}

/* The sender about one message: copies other than the first, on path p. */
proctype Copies(byte p; byte m)
{
	byte q;
end:
	do
	/* Its newest copy went by a path that was given up. */
	:: d_step {
		!s_is_down[p] && IS_OPEN(m) && s_carrier[m] != NONE &&
		GIVEN_UP(s_carrier[m]) && MAY_MOVE_AS_SEND && nfull(wire[QP_NOW(p)]) ->
			q = QP_NOW(p);
			post_send(q, m, NAMED(m));
			printf("S: message %d again as a SEND on path %d epoch %d, naming queue pair %d\n", m, p,
				EPOCH_OF(q), NAMED(m));
			q = 0
	}
	:: d_step {
		!s_is_down[p] && IS_OPEN(m) && s_carrier[m] != NONE &&
		GIVEN_UP(s_carrier[m]) && MAY_MOVE_AS_WRITE && len(wire[QP_NOW(p)]) <= 2 ->
			q = QP_NOW(p);
			post_write(q, m);
			printf("S: message %d again by WRITE and header on path %d epoch %d\n", m, p, EPOCH_OF(q));
			q = 0
	}
	/* The receiver wants it again after it landed: there is no writer left to name. */
	:: d_step {
		!s_is_down[p] && r_want[m] && IS_OPEN(m) && len(wire[QP_NOW(p)]) <= 2 ->
			q = QP_NOW(p);
			r_want[m] = 0;
#ifdef DEVICE_MEMORY
			post_write(q, m);
#else
			s_writer[m] = NONE;
			post_send(q, m, NONE);
#endif
			printf("S: hears WANT, message %d again on path %d epoch %d\n", m, p, EPOCH_OF(q));
			q = 0
	}
	od
}

/* The sender: what it hears of its messages, and a message it gives up. */
proctype Sender()
{
	byte q;

	do
	:: d_step {
		k_done < r_done || k_free < r_free ->
			k_done = r_done;
			k_free = r_free;
			printf("S: hears that %d are done, %d buffers free\n", k_done, k_free)
	}
	/*
	 * rule 7.10, 7.6 VOID: the receiver decides; VOID carries what each path was given.
	 * rule 7.10 VOID_STOPS: nothing of the message is posted from then on.
	 */
	:: d_step {
		VOIDS && s_void == NONE && HAS_CREDIT ->
			s_void = s_next;
			for (q : 0 .. QPS - 1) {
				s_drain[q] = s_posted[q]
			}
			q = 0;
#ifndef NO_RULE_VOID_STOPS
			s_next++;
#endif
			printf("S: asks VOID of message %d, not posted yet\n", s_void)
	}
	:: d_step {
		VOIDS && s_void == NONE && s_next > 0 && k_done < s_next ->
			s_void = s_next - 1;
			for (q : 0 .. QPS - 1) {
				s_drain[q] = s_posted[q]
			}
			q = 0;
			printf("S: asks VOID of message %d\n", s_void)
	}
	/* rule 7.6 CHANNEL_DRAIN: the peer stops, and says what each path was given. */
	:: d_step {
		r_ended && !s_stopped ->
			s_stopped = 1;
			for (q : 0 .. QPS - 1) {
				s_drain[q] = s_posted[q]
			}
			q = 0;
			printf("S: hears that the channel ended, stops\n")
	}
	:: (k_done == MSGS && k_free == MSGS && !ENDS) || r_freed -> break
	od
	/* No end label above: a run that stops before all is settled stops in an invalid end state. */
}

/* One queue pair: the network, the receiver's NIC and the receiver's loop. */
proctype Qp(byte q)
{
	byte m, writer;
	bit is_bad;
	mtype kind;
end:
	do
	/* A WRITE lands, whole or damaged. */
	:: d_step {
		fence[q] != FENCED && wire[q]?[WRITE, m, writer] ->
			wire[q]?kind, m, writer;
			printf("network: WRITE of message %d lands by path %d epoch %d\n", m, PATH_OF(q), EPOCH_OF(q));
			land(m, 0);
			m = 0; writer = 0; kind = 0
	}
	:: d_step {
		damage > 0 && fence[q] != FENCED && wire[q]?[WRITE, m, writer] ->
			wire[q]?kind, m, writer;
			damage--;
			printf("network: WRITE of message %d lands damaged by path %d epoch %d\n", m, PATH_OF(q), EPOCH_OF(q));
			land(m, 1);
			m = 0; writer = 0; kind = 0
	}
	/* A header or a SEND fills a receive entry. */
	:: d_step {
		fence[q] != FENCED && nfull(cq[q]) && nempty(wire[q]) && !wire[q]?[WRITE, m, writer] ->
			wire[q]?kind, m, writer;
			if
			:: !IS_LEFTOVER(q) -> cq[q]!kind, m, writer, 0
			:: IS_LEFTOVER(q) -> skip
			fi;
			printf("network: %e of message %d arrives by path %d epoch %d\n", kind, m, PATH_OF(q), EPOCH_OF(q));
			m = 0; writer = 0; kind = 0
	}
	:: d_step {
		damage > 0 && fence[q] == OPEN && nfull(cq[q]) && wire[q]?[SEND, m, writer] ->
			wire[q]?kind, m, writer;
			damage--;
			cq[q]!kind, m, writer, 1;
			printf("network: SEND of message %d arrives damaged by path %d epoch %d\n", m, PATH_OF(q), EPOCH_OF(q));
			m = 0; writer = 0; kind = 0
	}
	/*
	 * Of a path that was given up, the rest of what was posted may be lost. With a fence to come this
	 * adds nothing: what does not land before the fence is lost.
	 */
#ifdef NO_RULE_PATH_FENCE
	:: d_step {
		GIVEN_UP(q) && fence[q] == OPEN && nempty(wire[q]) ->
			do
			:: len(wire[q]) > 0 -> wire[q]?kind, m, writer
			:: len(wire[q]) == 0 -> break
			od;
			printf("network: the rest of path %d epoch %d is lost\n", PATH_OF(q), EPOCH_OF(q));
			m = 0; writer = 0; kind = 0
	}
#endif
	/* R polls a completion. */
	:: d_step {
		nempty(cq[q]) ->
			cq[q]?kind, m, writer, is_bad;
			printf("R: takes %e of message %d from path %d epoch %d\n", kind, m, PATH_OF(q), EPOCH_OF(q));
			r_taken[q]++;
			if
			:: !NEEDED(m) -> skip
			:: NEEDED(m) && kind == HEAD ->
				if
				:: mem[m % SLOTS] == 2 * m + 1 -> r_have[m] = 1; r_want[m] = 0
				:: else -> r_want[m] = 1
				fi
			/*
			 * rule 7.3 FENCE_THEN_COPY: fence our end of the writer; copy when that is confirmed.
			 * rule 7.3 WANT_AFTER_LANDING: what a copy that is damaged was to bring is asked for
			 *      only when its writer's bytes have landed or cannot any more.
			 */
			:: NEEDED(m) && kind == SEND && writer != NONE && !IS_OVER(writer) && MUST_WAIT(is_bad) ->
				if
				:: r_held[m] != 1 -> r_held[m] = 1 + is_bad; r_held_writer[m] = writer
				:: else -> skip
				fi;
				if
				:: fence[writer] == OPEN ->
					ask_fence(writer)
				:: else -> skip
				fi
			:: else ->
				if
				:: is_bad -> r_want[m] = 1
				:: else -> copy(m)
				fi
			fi;
			m = 0; writer = 0; kind = 0; is_bad = 0
	}
	/*
	 * rule 7.4 PATH_FENCE: said until PATH_FENCED answers. Or R gives the path up by itself.
	 */
#ifndef NO_RULE_PATH_FENCE
	:: d_step {
		fence[q] == OPEN && GIVEN_UP(q) && EPOCH_OF(q) <= s_epoch[PATH_OF(q)] ->
			printf("R: hears PATH_FENCE of path %d epoch %d\n", PATH_OF(q), EPOCH_OF(q));
			ask_fence(q)
	}
#endif
	:: d_step {
		faults > 0 && fence[q] == OPEN && IS_CURRENT(q) && (EPOCHS == 1 || EPOCH_OF(q) + 1 < EPOCHS) ->
			faults--;
			printf("R: gives up path %d epoch %d\n", PATH_OF(q), EPOCH_OF(q));
			ask_fence(q)
	}
	/* rule 7.4 FENCE_CONFIRMED: only the return of the fence says that nothing lands any more. */
	:: d_step {
		fence[q] == ASKED ->
			fence[q] = FENCED;
			do
			:: len(wire[q]) > 0 -> wire[q]?kind, m, writer
			:: len(wire[q]) == 0 -> break
			od;
			printf("R: path %d epoch %d is fenced\n", PATH_OF(q), EPOCH_OF(q));
			m = 0; writer = 0; kind = 0
	}
	od
}

/*
 * rule 7.6, 7.10 VOID_DRAIN: a void message's buffer is free when each path has passed
 *      its count or is fenced.
 */
#define IS_PASSED(q) (fence[q] == FENCED || r_taken[q] >= s_drain[q])
#ifdef NO_RULE_VOID_DRAIN
#define IS_DRAINED true
#else
#if QPS == 4
#define IS_DRAINED (IS_PASSED(0) && IS_PASSED(1) && IS_PASSED(2) && IS_PASSED(3))
#elif QPS == 3
#define IS_DRAINED (IS_PASSED(0) && IS_PASSED(1) && IS_PASSED(2))
#else
#define IS_DRAINED (IS_PASSED(0) && IS_PASSED(1))
#endif
#endif

#ifdef NO_RULE_CHANNEL_DRAIN
#define MAY_FREE true
#else
#define MAY_FREE (s_stopped && IS_DRAINED)
#endif

/* The receiver's messages and its client. */
proctype Receiver()
{
	byte m;
end:
	do
	/* A held copy whose writer is over. */
	:: d_step {
		r_held[0] != 0 && IS_OVER(r_held_writer[0]) -> m = 0;
		if
		:: !NEEDED(m) -> skip
		:: NEEDED(m) && r_held[m] == 1 -> copy(m); printf("R: copies message %d\n", m)
		:: else -> r_want[m] = 1; printf("R: wants message %d again\n", m)
		fi;
		r_held[m] = 0;
		r_held_writer[m] = 0;
		m = 0
	}
#if MSGS > 1
	:: d_step {
		r_held[1] != 0 && IS_OVER(r_held_writer[1]) -> m = 1;
		if
		:: !NEEDED(m) -> skip
		:: NEEDED(m) && r_held[m] == 1 -> copy(m); printf("R: copies message %d\n", m)
		:: else -> r_want[m] = 1; printf("R: wants message %d again\n", m)
		fi;
		r_held[m] = 0;
		r_held_writer[m] = 0;
		m = 0
	}
#endif
	:: d_step {
		s_void != NONE && !r_void_taken ->
			r_void_taken = 1;
			if
			:: NEEDED(s_void) ->
				r_void[s_void] = 1;
				r_want[s_void] = 0;
				printf("R: takes VOID, message %d is void\n", s_void)
			:: else ->
				printf("R: takes VOID, message %d is whole and stays so\n", s_void)
			fi
	}
	:: d_step {
		!r_ended && r_done < MSGS && r_have[r_done] ->
			/* claim: what is delivered is what was verified */
			assert(mem[r_done % SLOTS] == 2 * r_done + 1);
			printf("R: delivers message %d\n", r_done);
			r_done++
	}
	:: d_step {
		!r_ended && r_done < MSGS && r_void[r_done] ->
			printf("R: tells the gap, message %d\n", r_done);
			r_done++
	}
	:: d_step {
		r_free < r_done && !r_void[r_free] ->
			printf("client: releases message %d\n", r_free);
			r_free++
	}
	:: d_step {
		r_free < r_done && r_void[r_free] && IS_DRAINED ->
			printf("R: frees the buffer of void message %d\n", r_free);
			r_free++
	}
	:: d_step {
		ENDS && !r_ended ->
			r_ended = 1;
			printf("client of R: dies\n")
	}
	:: d_step {
		r_ended && !r_freed && MAY_FREE ->
			r_freed = 1;
			printf("R: frees all landing memory of the channel\n")
	}
	od
}

init {
	byte i, j;

	atomic {
		for (i : 0 .. MSGS - 1) {
			s_carrier[i] = NONE;
			s_writer[i] = NONE
		}
		run Sender();
		run Receiver();
		for (i : 0 .. QPS - 1) {
			run Qp(i)
		}
		for (i : 0 .. PATHS - 1) {
			run Path(i);
			for (j : 0 .. MSGS - 1) {
				run Copies(i, j)
			}
		}
		i = 0;
		j = 0
	}
}
