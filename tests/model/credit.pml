/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credit - one direction of a channel: places, credit, verdicts (DESIGN 7.2, 7.5, 7.8, 7.9, 7.10, 7.11)
 *
 * A sender, a receiver with its client, and two paths each way. A path holds one
 * frame, so frames of different paths overtake each other at will. A path that
 * dies loses its frame, or had delivered it without saying so; what it carried is
 * then said again, as it is true then. The receiver remembers WINDOW messages in
 * slots, as the engine does; landing is one step (fence.pml is about what it takes).
 *
 * What the engine answers with -EPROTO is a claim here: of two honest ends,
 * neither may ever be refused.
 *
 * Sizes: 0 to 3 bytes go unasked to the landing ring; LARGE + n takes n units of
 * the landing arena and asks first.
 * "rule" comments name a rule and the switch that turns it off; "claim" comments
 * are what the assertion beneath them says.
 */
#ifndef MSGS
#define MSGS 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef RING
#define RING 4
#endif
#ifndef ARENA
#define ARENA 2
#endif
#ifndef SIZE_A
#define SIZE_A 1
#endif
#ifndef SIZE_B
#define SIZE_B 2
#endif
#ifndef FAULTS
#define FAULTS 1 /* paths that die */
#endif
#ifndef VOIDS
#define VOIDS 0 /* messages the sender tries to give up */
#endif
#ifndef REJECTS
#define REJECTS 0 /* messages the receiving client rejects */
#endif

#define LARGE     10
#define UNKNOWN   99
#define SLOT(m)   ((m) % WINDOW)
#define IS_LARGE(size) ((size) > LARGE)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* Verdicts. */
#define NO_VERDICT 0
#define COMMITTED  1
#define REJECTED   2
#define VOIDED     3

mtype = { FRAG, RTS, VOID, SETTLED, STATE, CTS, LEVEL };

/*
 * FRAG, RTS, VOID: message, size, address, settled.      STATE: delivered, final, ring limit, message limit.
 * SETTLED: -, -, -, settled.                             CTS: message, address.   LEVEL: message, verdict.
 */
chan fwd = [2] of { mtype, byte, byte, byte, byte };
chan bwd = [2] of { mtype, byte, byte, byte, byte };

/*
 * Paths are alike, so what is under way is a set of two frames: kept sorted (!!), since in which
 * order they were posted says nothing, and either may be the next to come.
 * To take one needs kind, m, a, b, c.
 */
inline take_first(frames)
{
	frames?kind, m, a, b, c
}

inline take_second(frames)
{
	frames?kind, m, a, b, c;
	frames!kind, m, a, b, c;
	frames?kind, m, a, b, c
}

byte faults = FAULTS;

/* The sender. */
byte s_size[MSGS];
byte s_addr[MSGS];
bit s_is_granted[MSGS];
bit s_do_frag[MSGS];
bit s_do_rts[MSGS];
bit s_do_void[MSGS];
bit s_is_void_asked[MSGS];
bit s_is_placed[MSGS];
byte s_verdict[MSGS];
byte s_next;    /* admitted so far */
byte s_settled; /* knows the verdict of all before it */
byte s_ring_next;
byte k_ring_limit = RING;
byte k_msg_limit = WINDOW;
bit s_do_settled;
byte voids = VOIDS;

/* The receiver: slots. */
bit r_is_known[WINDOW];
byte r_size[WINDOW];
byte r_addr[WINDOW];
bit r_is_granted[WINDOW];
bit r_is_whole[WINDOW];
bit r_is_void[WINDOW];
bit r_is_delivered[WINDOW];
bit r_is_released[WINDOW];
byte r_verdict[WINDOW];
bit r_is_told[WINDOW]; /* a LEVEL with the verdict was acknowledged */
bit r_do_cts[WINDOW];
bit r_do_level[WINDOW];
bit r_heard_level[WINDOW]; /* the sender took that LEVEL; its acknowledgement is on the way */
byte r_base;               /* slots hold [base, base + WINDOW) */
byte r_stated;             /* the sender's settled */
byte r_deliver_next;
byte r_final_next;
byte r_release_next; /* all before it are released or void */
byte r_ring_release_next;
byte r_ring_head;
byte r_ask_next;
bit r_do_state;
bit r_is_acting; /* some actions were taken, deliveries not yet */
byte rejects = REJECTS;
#ifdef NO_RULE_ABSOLUTE_FACTS
byte told_ring_limit = RING;
#endif

/* The truth, which no end reads. */
byte ring_owner[RING];   /* message + 1 whose bytes the client may read or will be given */
byte arena_owner[ARENA]; /* message + 1 the landing memory was granted to */
bit was_delivered[MSGS];
byte true_verdict[MSGS];
#ifdef NO_RULE_RELEASE_ONCE
bit was_released_twice;
#endif
byte in_client_ring; /* delivered and not released: entries its completion ring must hold */

/* The message that a slot holds. */
#define NUMBER(slot) (r_base + (slot + WINDOW - r_base % WINDOW) % WINDOW)
#define R_NEEDS(m) (!r_is_whole[SLOT(m)] && !r_is_void[SLOT(m)] && !r_is_delivered[SLOT(m)])

/* ---- sender ---- */

#ifdef NO_RULE_HALF_RING
#define EAGER_MAX (RING - 1)
#else
#define EAGER_MAX (RING / 2)
#endif
/* rule 7.8 MSG_CREDIT: message numbers have a limit of their own, which releases move. */
#ifdef NO_RULE_MSG_CREDIT
#define HAS_MSG_CREDIT true
#else
#define HAS_MSG_CREDIT (s_next < k_msg_limit)
#endif

/* Where the next message would lie: never across the ring's end; the rest is skipped and counts. */
#define SKIP(size) ((size) > RING - s_ring_next % RING -> RING - s_ring_next % RING : 0)

inline verdict_is(m, verdict)
{
	if
	/* The first final verdict stands. */
	:: s_verdict[m] == NO_VERDICT ->
		s_verdict[m] = verdict;
		/* claim: the sender is told the verdict that the receiver gave */
		assert(verdict == true_verdict[m])
	:: else -> skip
	fi
}

inline post(kind, a, b, c, d)
{
	fwd!!kind, a, b, c, d;
	printf("S: says %e(%d, %d, %d, %d)\n", kind, a, b, c, d)
}

/* What frame `kind` about message m said is said again, as it is true then. */
inline say_again(kind, m)
{
	if
	:: kind == FRAG -> s_do_frag[m] = (s_verdict[m] == NO_VERDICT && !s_is_placed[m] && !s_is_void_asked[m])
	:: kind == RTS -> s_do_rts[m] = (s_verdict[m] == NO_VERDICT && !s_is_granted[m] && !s_is_void_asked[m])
	:: kind == VOID -> s_do_void[m] = 1
	:: else -> s_do_settled = 1
	fi
}

/* rule 7.2 ABSOLUTE_FACTS: a frame states a limit, not a step; the larger one counts. */
inline take_state(delivered, final, ring_limit, msg_limit)
{
	/* claim: no count tells of what was never sent */
	assert(delivered <= s_next && final <= s_next);
	for (n : s_settled .. MSGS - 1) {
		if
		:: n < delivered && s_verdict[n] != VOIDED ->
			s_is_placed[n] = 1;
			/* claim: what the sender hears is placed was delivered */
			assert(was_delivered[n])
		:: else -> skip
		fi;
		if
		:: n < final -> verdict_is(n, COMMITTED)
		:: else -> skip
		fi
	}
	n = 0;
#if defined NO_RULE_ABSOLUTE_FACTS
	k_ring_limit = k_ring_limit + ring_limit;
#else
	k_ring_limit = MAX(k_ring_limit, ring_limit);
#endif
	/* claim: nobody grants more than a whole ring and a whole window */
	assert(k_ring_limit <= s_ring_next + RING);
	k_msg_limit = MAX(k_msg_limit, msg_limit)
}

proctype Sender()
{
	byte n, m, a, b, c;
	mtype kind;

	do
	/*
	 * Admission, in order. Positions count on for ever (7.8), and what is skipped at the ring's end
	 * counts. rule 7.8 HALF_RING: an eager message is at most half a ring.
	 */
	:: d_step {
		s_next < MSGS && s_next - s_settled < WINDOW && HAS_MSG_CREDIT && s_size[s_next] <= EAGER_MAX &&
		s_ring_next + SKIP(s_size[s_next]) + s_size[s_next] <= k_ring_limit ->
			s_addr[s_next] = s_ring_next + SKIP(s_size[s_next]);
			s_ring_next = s_addr[s_next] + s_size[s_next];
			s_is_granted[s_next] = 1;
			s_do_frag[s_next] = 1;
			printf("S: admits message %d, %d bytes at ring position %d\n", s_next, s_size[s_next], s_addr[s_next]);
			s_next++
	}
	:: d_step {
		s_next < MSGS && s_next - s_settled < WINDOW && HAS_MSG_CREDIT && s_size[s_next] > EAGER_MAX ->
			s_do_rts[s_next] = 1;
			printf("S: admits message %d, which asks for %d units\n", s_next, s_size[s_next] - LARGE);
			s_next++
	}
	:: d_step {
		s_settled < s_next && s_verdict[s_settled] != NO_VERDICT ->
			s_do_frag[s_settled] = 0;
			s_do_rts[s_settled] = 0;
			s_settled++;
			s_do_settled = 1;
			printf("S: has settled %d\n", s_settled)
	}
	/* A message is given up: a wish. rule 7.10 RECEIVER_DECIDES: whether it is void, the receiver says. */
	:: d_step {
		voids > 0 && s_settled < s_next && s_verdict[s_next - 1] == NO_VERDICT && !s_is_void_asked[s_next - 1] ->
			voids--;
			m = s_next - 1;
			printf("S: asks VOID of message %d\n", m);
			s_is_void_asked[m] = 1;
			s_do_void[m] = 1;
			s_do_frag[m] = 0;
			s_do_rts[m] = 0;
#ifdef NO_RULE_RECEIVER_DECIDES
			true_verdict[m] = (true_verdict[m] == NO_VERDICT -> VOIDED : true_verdict[m]);
			verdict_is(m, VOIDED);
#endif
			m = 0
	}
	:: atomic {
		nempty(bwd) ->
			if
			:: take_first(bwd)
			:: len(bwd) == 2 -> take_second(bwd)
			fi;
			d_step {
				printf("S: takes %e(%d, %d, %d, %d)\n", kind, m, a, b, c);
				if
				:: kind == STATE -> take_state(m, a, b, c)
				:: kind != STATE && m < s_settled -> skip
				:: kind == CTS && m >= s_settled ->
					/* claim: a second CTS has the address of the first */
					assert(!s_is_granted[m] || s_addr[m] == a);
					if
					:: !s_is_granted[m] && s_verdict[m] == NO_VERDICT && !s_is_void_asked[m] ->
						s_is_granted[m] = 1;
						s_addr[m] = a;
						s_do_frag[m] = 1
					:: else -> skip
					fi
				:: kind == LEVEL && m >= s_settled -> verdict_is(m, a)
				fi;
				if
				:: kind == LEVEL && m >= r_base && r_verdict[SLOT(m)] == a -> r_heard_level[SLOT(m)] = 1
				:: else -> skip
				fi
			};
			/* The path may die before the acknowledgement is back: it is said again. */
			if
			:: true
#ifdef NO_RULE_ABSOLUTE_FACTS
			:: faults > 0 && kind == STATE ->
				faults--;
				told_ring_limit = told_ring_limit - b;
				r_do_state = 1;
				printf("the path of that frame dies, its acknowledgement is lost\n")
#else
			:: faults > 0 && kind == STATE ->
				faults--;
				r_do_state = 1;
				printf("the path of that frame dies, its acknowledgement is lost\n")
#endif
			:: faults > 0 && kind == CTS && m >= r_base && r_is_granted[SLOT(m)] && !r_is_whole[SLOT(m)] ->
				faults--;
				r_do_cts[SLOT(m)] = 1;
				printf("the path of that frame dies, its acknowledgement is lost\n")
			:: faults > 0 && kind == LEVEL && m >= r_base && !r_is_told[SLOT(m)] && r_verdict[SLOT(m)] == a ->
				faults--;
				r_do_level[SLOT(m)] = 1;
				r_heard_level[SLOT(m)] = 0;
				printf("the path of that frame dies, its acknowledgement is lost\n")
			fi;
			kind = 0; m = 0; a = 0; b = 0; c = 0
	}
	:: s_settled == MSGS -> break
	od
	/* No end label above: a run that stops before all is settled stops in an invalid end state. */
}

/* The sender's frames about one message, and its "settled". */
proctype Post(byte m)
{
end:
	do
	:: d_step {
		nfull(fwd) && s_is_granted[m] && s_do_frag[m] ->
			s_do_frag[m] = 0;
			post(FRAG, m, s_size[m], s_addr[m], s_settled)
	}
	:: d_step {
		nfull(fwd) && s_do_rts[m] ->
			s_do_rts[m] = 0;
			post(RTS, m, s_size[m], 0, s_settled)
	}
	/*
	 * rule 7.8, 7.10 VOID_POSITION: VOID says where in the ring the message would have lain.
	 * rule 7.8, 7.10 VOID_SETTLED: VOID carries "settled", as all that can be the first of its number.
	 */
	:: d_step {
		nfull(fwd) && s_do_void[m] ->
			s_do_void[m] = 0;
#if defined NO_RULE_VOID_POSITION
			post(VOID, m, UNKNOWN, 0, s_settled);
#elif defined NO_RULE_VOID_SETTLED
			post(VOID, m, s_size[m], s_addr[m], 0);
#else
			post(VOID, m, s_size[m], s_addr[m], s_settled);
#endif
	}
	:: d_step {
		nfull(fwd) && m == 0 && s_do_settled ->
			s_do_settled = 0;
			post(SETTLED, 0, 0, 0, s_settled)
	}
	od
}

/* ---- receiver ---- */

/*
 * The pump: several events may be handled before the actions are taken, but once one was, all are.
 * So when a frame went out, what can be delivered is delivered before another is taken in.
 */
#define IS_DELIVERABLE (r_deliver_next < r_base + WINDOW && \
	(r_is_whole[SLOT(r_deliver_next)] || r_is_void[SLOT(r_deliver_next)]))

inline post_cts(slot)
{
	r_is_acting = IS_DELIVERABLE;
	r_do_cts[slot] = 0;
	bwd!!CTS, NUMBER(slot), r_addr[slot], 0, 0;
	printf("R: says CTS(%d, %d)\n", NUMBER(slot), r_addr[slot]);
	slot = 0
}

inline post_level(slot)
{
	r_is_acting = IS_DELIVERABLE;
	r_do_level[slot] = 0;
	bwd!!LEVEL, NUMBER(slot), r_verdict[slot], 0, 0;
	printf("R: says LEVEL(%d, %d)\n", NUMBER(slot), r_verdict[slot]);
	slot = 0
}

inline release(m)
{
	client_gives_back(m);
	in_client_ring--;
	r_is_released[SLOT(m)] = 1;
	final_is(m, COMMITTED);
	settled_follow();
	r_do_state = 1;
	m = 0
}

/* The ring's free part grows over released messages, in the order of their numbers. */
inline ring_advance()
{
	do
	:: r_release_next < r_base + WINDOW && (r_is_void[SLOT(r_release_next)] || r_is_released[SLOT(r_release_next)]) ->
		r_release_next++
	:: else -> break
	od;
	do
	:: r_ring_release_next < r_base + WINDOW &&
	   (r_is_void[SLOT(r_ring_release_next)] || r_is_released[SLOT(r_ring_release_next)] ||
	    (r_is_known[SLOT(r_ring_release_next)] && IS_LARGE(r_size[SLOT(r_ring_release_next)]))) ->
		if
		:: r_is_known[SLOT(r_ring_release_next)] && !IS_LARGE(r_size[SLOT(r_ring_release_next)]) &&
		   r_size[SLOT(r_ring_release_next)] > 0 ->
			r_ring_head = r_addr[SLOT(r_ring_release_next)] + r_size[SLOT(r_ring_release_next)]
		:: else -> skip
		fi;
		r_ring_release_next++
	:: else -> break
	od
}

/*
 * rule 7.8 SETTLED: a slot is another message's when the sender has said that it knows the verdict.
 * Ours may also still wait for its client.
 */
#ifdef NO_RULE_SETTLED
#define IS_SETTLED(m) (r_verdict[SLOT(m)] != NO_VERDICT)
#else
#define IS_SETTLED(m) ((m) < r_stated)
#endif

inline settled_follow()
{
	ring_advance();
	do
	:: IS_SETTLED(r_base) && r_is_delivered[SLOT(r_base)] && (r_is_void[SLOT(r_base)] || r_is_released[SLOT(r_base)]) ->
		/* rule SETTLED_IS_HEARD: what is settled was heard, acknowledged or not, and counts may pass it. */
#ifndef NO_RULE_SETTLED_IS_HEARD
		r_do_state = r_do_state || (r_is_void[SLOT(r_base)] && !r_is_told[SLOT(r_base)]);
#endif
		r_is_known[SLOT(r_base)] = 0;
		r_size[SLOT(r_base)] = 0;
		r_addr[SLOT(r_base)] = 0;
		r_is_granted[SLOT(r_base)] = 0;
		r_is_whole[SLOT(r_base)] = 0;
		r_is_void[SLOT(r_base)] = 0;
		r_is_delivered[SLOT(r_base)] = 0;
		r_is_released[SLOT(r_base)] = 0;
		r_verdict[SLOT(r_base)] = NO_VERDICT;
		r_is_told[SLOT(r_base)] = 0;
		r_do_cts[SLOT(r_base)] = 0;
		r_do_level[SLOT(r_base)] = 0;
		r_heard_level[SLOT(r_base)] = 0;
		r_base++
	:: else -> break
	od;
	r_final_next = MAX(r_final_next, r_base)
}

/* rule LEVEL_BEFORE_COUNT (WIRE.md): the count passes what was not committed only when its LEVEL was acknowledged. */
#ifdef NO_RULE_LEVEL_BEFORE_COUNT
#define IS_HEARD(m) true
#else
#define IS_HEARD(m) (r_verdict[SLOT(m)] == COMMITTED || r_is_told[SLOT(m)])
#endif

inline counts_advance()
{
	do
	:: r_final_next < r_base + WINDOW && r_verdict[SLOT(r_final_next)] != NO_VERDICT && IS_HEARD(r_final_next) ->
		r_final_next++;
		r_do_state = 1
	:: else -> break
	od
}

inline final_is(m, verdict)
{
	if
	:: r_verdict[SLOT(m)] == NO_VERDICT ->
		r_verdict[SLOT(m)] = verdict;
		if
		:: true_verdict[m] == NO_VERDICT -> true_verdict[m] = verdict
		:: else -> skip
		fi;
		counts_advance();
		/* A verdict that the count cannot tell yet goes by itself. */
		r_do_level[SLOT(m)] = (m >= r_final_next)
	:: else -> skip
	fi
}

inline hear_settled(settled)
{
	/* claim: nobody settles what had no verdict */
	assert(settled <= r_base + WINDOW);
	do
	:: r_stated < settled ->
		assert(r_stated < r_base || r_verdict[SLOT(r_stated)] != NO_VERDICT);
		r_stated++
	:: else -> break
	od;
	settled_follow()
}

/* First sight of a message's size, and of its place when it goes to the ring. */
inline learn(m, size, addr)
{
	/* claim: a message number lies in the receiver's window */
	assert(m < r_base + WINDOW);
	/* claim: a message does not change */
	assert(!r_is_known[SLOT(m)] || r_size[SLOT(m)] == size);
	if
	:: !r_is_known[SLOT(m)] ->
		r_is_known[SLOT(m)] = 1;
		r_size[SLOT(m)] = size;
		r_addr[SLOT(m)] = (IS_LARGE(size) -> 0 : addr);
		r_is_granted[SLOT(m)] = !IS_LARGE(size);
		/* claim: an eager message lies in the part of the ring that is free */
		assert(IS_LARGE(size) || size == 0 ||
			(addr >= r_ring_head && addr + size <= r_ring_head + RING && size <= RING - addr % RING))
	:: else -> skip
	fi
}

inline take_frag(m, size, addr)
{
	learn(m, size, addr);
	/* claim: a fragment comes to the buffer that was granted */
	assert(r_is_granted[SLOT(m)] && r_addr[SLOT(m)] == addr);
	if
	:: R_NEEDS(m) ->
		r_is_whole[SLOT(m)] = 1;
		r_do_cts[SLOT(m)] = 0;
		if
		:: IS_LARGE(size) ->
			/* claim: a large message lands in memory granted to it */
			assert(arena_owner[addr] == m + 1 && arena_owner[addr + size - LARGE - 1] == m + 1)
		:: !IS_LARGE(size) && size > 0 ->
			for (n : 0 .. size - 1) {
				/* claim: no message lands on one the client may still read */
				assert(ring_owner[(addr + n) % RING] == 0);
				ring_owner[(addr + n) % RING] = m + 1
			}
			n = 0
		:: else -> skip
		fi
	:: else -> skip
	fi
}

inline client_gives_back(m)
{
	for (i : 0 .. RING - 1) {
		ring_owner[i] = (ring_owner[i] == m + 1 -> 0 : ring_owner[i])
	}
	for (i : 0 .. ARENA - 1) {
		arena_owner[i] = (arena_owner[i] == m + 1 -> 0 : arena_owner[i])
	}
	i = 0
}

/*
 * rule 7.9 CTS_ORDER: landing memory is granted in message order.
 */
#define IS_ASKING(m) ((m) >= r_base && (m) < r_base + WINDOW && r_is_known[SLOT(m)] && \
	IS_LARGE(r_size[SLOT(m)]) && !r_is_granted[SLOT(m)] && !r_is_void[SLOT(m)])
#ifdef NO_RULE_CTS_ORDER
#define IS_TURN(m) true
#else
#define IS_TURN(m) (r_ask_next == (m))
#endif
#define FIRST_FREE (arena_owner[0] == 0 -> 0 : 1)
#define FITS(units) ((units) == 1 -> arena_owner[0] == 0 || arena_owner[ARENA - 1] == 0 : \
	arena_owner[0] == 0 && arena_owner[ARENA - 1] == 0)

inline grant(m)
{
	r_is_granted[SLOT(m)] = 1;
	r_addr[SLOT(m)] = FIRST_FREE;
	for (n : 0 .. r_size[SLOT(m)] - LARGE - 1) {
		arena_owner[FIRST_FREE] = m + 1
	}
	n = 0;
	r_do_cts[SLOT(m)] = 1;
	printf("R: grants message %d its memory, at %d\n", m, r_addr[SLOT(m)]);
	m = 0
}

inline hear_level(slot)
{
	r_heard_level[slot] = 0;
	r_is_told[slot] = 1;
	r_do_state = 1;
	counts_advance();
	printf("R: its LEVEL was heard, slot %d\n", slot);
	slot = 0
}

#define MAY_SAY_AGAIN(kind, m) (kind == SETTLED || m >= s_settled)

/* rule 7.11 PLACED_PUBLISHED: PLACED is said when the arrival was published, hence after all before it. */
inline state_delivered()
{
	n = r_deliver_next;
#ifdef NO_RULE_PLACED_PUBLISHED
	do
	:: n < r_base + WINDOW && r_is_whole[SLOT(n)] -> n++
	:: else -> break
	od;
#endif
	/* Nor does it pass a void message whose LEVEL was not acknowledged. */
	m = MAX(r_final_next, r_base);
	do
	:: m < n && !(r_is_void[SLOT(m)] && !r_is_told[SLOT(m)]) -> m++
	:: else -> break
	od;
	n = m
}

proctype Receiver()
{
	byte i, n, m, a, b, c;
	mtype kind;
end:
	do
	:: atomic {
		nempty(fwd) && !r_is_acting ->
			if
			:: take_first(fwd)
			:: len(fwd) == 2 -> take_second(fwd)
			fi;
			d_step {
				printf("R: takes %e(%d, %d, %d, %d)\n", kind, m, a, b, c);
				hear_settled(c);
				if
				:: kind == SETTLED || m < r_base -> skip
				:: kind == FRAG && m >= r_base -> take_frag(m, a, b)
				:: kind == RTS && m >= r_base ->
					learn(m, a, 0);
					/* rule 7.9 SAME_CTS: a second RTS gets the same CTS. */
					if
					:: r_is_granted[SLOT(m)] && R_NEEDS(m) ->
#ifdef NO_RULE_SAME_CTS
						r_is_granted[SLOT(m)] = 0;
						r_ask_next = MAX(r_base, 0)
#else
						r_do_cts[SLOT(m)] = 1
#endif
					:: else -> skip
					fi
				:: kind == VOID && m >= r_base ->
					/* claim: a message number lies in the receiver's window */
					assert(m < r_base + WINDOW);
					if
					:: R_NEEDS(m) ->
						if
						:: !r_is_known[SLOT(m)] && a != UNKNOWN -> learn(m, a, b)
						:: else -> skip
						fi;
						r_is_void[SLOT(m)] = 1;
						r_do_cts[SLOT(m)] = 0;
						final_is(m, VOIDED);
						/* Its memory is free when nothing can land in it: fence.pml. */
						client_gives_back(m);
						settled_follow();
						r_do_state = 1;
						printf("R: message %d is void\n", m)
					:: else -> skip
					fi
				fi
			};
			/* The path may die before the acknowledgement is back: it is said again. */
			if
			:: true
			:: faults > 0 && MAY_SAY_AGAIN(kind, m) ->
				faults--;
				say_again(kind, m);
				printf("the path of that frame dies, its acknowledgement is lost\n")
			fi;
			kind = 0; m = 0; a = 0; b = 0; c = 0
	}
	/* The acknowledgement of a LEVEL. */
	:: d_step {
		r_heard_level[0] -> m = 0;
		hear_level(m)
	}
#if WINDOW > 1
	:: d_step {
		r_heard_level[1] -> m = 1;
		hear_level(m)
	}
#endif
	/* What was passed over needs no grant; ask_next is the next that may get one. */
	:: d_step {
		r_ask_next < r_base || (r_ask_next < r_base + WINDOW && (r_is_void[SLOT(r_ask_next)] ||
			(r_is_known[SLOT(r_ask_next)] && r_is_granted[SLOT(r_ask_next)]))) ->
			do
			:: r_ask_next < r_base || (r_ask_next < r_base + WINDOW && (r_is_void[SLOT(r_ask_next)] ||
				(r_is_known[SLOT(r_ask_next)] && r_is_granted[SLOT(r_ask_next)]))) -> r_ask_next++
			:: else -> break
			od;
			m = 0
	}
	:: d_step {
		IS_ASKING(r_base) && IS_TURN(r_base) && FITS(r_size[SLOT(r_base)] - LARGE) -> m = r_base;
		grant(m)
	}
#if WINDOW > 1
	:: d_step {
		IS_ASKING(r_base + 1) && IS_TURN(r_base + 1) && FITS(r_size[SLOT(r_base + 1)] - LARGE) -> m = r_base + 1;
		grant(m)
	}
#endif
	/* Delivery, in order. A void message is a gap. */
	:: d_step {
		IS_DELIVERABLE ->
			m = r_deliver_next;
			r_deliver_next++;
			r_do_state = 1;
			/* claim: the client's completion ring has room for each arrival */
			assert(r_is_void[SLOT(m)] || in_client_ring < WINDOW);
			/* claim: delivered once */
			assert(!was_delivered[m]);
			r_is_delivered[SLOT(m)] = 1;
			if
			:: r_is_void[SLOT(m)] -> settled_follow(); printf("R: tells the gap, message %d\n", m)
			:: else ->
				was_delivered[m] = 1;
				in_client_ring++;
				printf("R: delivers message %d\n", m)
			fi;
			r_is_acting = r_is_acting && IS_DELIVERABLE;
			m = 0
	}
	od
}

/*
 * The receiving client: releases what it holds in any order, and may reject first.
 * With WAITS_PLACED it keeps the last message until the sender has heard that this is placed.
 */
#define IS_HELD(m) ((m) < r_base + WINDOW && r_is_delivered[SLOT(m)] && !r_is_void[SLOT(m)] && !r_is_released[SLOT(m)])

#ifdef WAITS_PLACED
#define MAY_RELEASE(m) ((m) != MSGS - 1 || s_is_placed[MSGS - 1])
#else
#define MAY_RELEASE(m) true
#endif

proctype Client(byte at)
{
	byte n, i;
end:
	do
	:: d_step {
		IS_HELD(r_base + at) && MAY_RELEASE(r_base + at) ->
			n = r_base + at;
			printf("client: releases message %d\n", n);
			release(n)
	}
	:: d_step {
		rejects > 0 && IS_HELD(r_base + at) && r_verdict[SLOT(r_base + at)] == NO_VERDICT ->
			rejects--;
			printf("client: rejects message %d, and holds it\n", r_base + at);
			final_is(r_base + at, REJECTED)
	}
	/* rule 7.8 RELEASE_ONCE: a release names its message, and a second one changes nothing. */
#ifdef NO_RULE_RELEASE_ONCE
	:: d_step {
		at == 0 && !was_released_twice && r_base > 0 && IS_HELD(r_release_next) ->
			was_released_twice = 1;
			printf("client: releases message %d again\n", r_base - 1);
			r_is_released[SLOT(r_release_next)] = 1;
			final_is(r_release_next, COMMITTED);
			settled_follow();
			r_do_state = 1
	}
#endif
	od
}

/* The receiver's frames. */
proctype PostBack()
{
	byte n, m;
end:
	do
	:: d_step {
		nfull(bwd) && r_do_state ->
			r_do_state = 0;
			r_is_acting = IS_DELIVERABLE;
			state_delivered();
#if defined NO_RULE_ABSOLUTE_FACTS
			bwd!!STATE, n, r_final_next, r_ring_head + RING - told_ring_limit, r_release_next + WINDOW;
			told_ring_limit = r_ring_head + RING;
#else
			bwd!!STATE, n, r_final_next, r_ring_head + RING, r_release_next + WINDOW;
#endif
			printf("R: says STATE(%d, %d, %d, %d)\n", n, r_final_next, r_ring_head + RING,
				r_release_next + WINDOW);
			n = 0;
			m = 0;
	}
	:: d_step {
		nfull(bwd) && r_do_cts[0] -> m = 0;
		post_cts(m);
	}
	:: d_step {
		nfull(bwd) && r_do_level[0] -> m = 0;
		post_level(m);
	}
#if WINDOW > 1
	:: d_step {
		nfull(bwd) && r_do_cts[1] -> m = 1;
		post_cts(m);
	}
	:: d_step {
		nfull(bwd) && r_do_level[1] -> m = 1;
		post_level(m);
	}
#endif
	od
}

/* Frames that are lost with their path are said again as it is true then. */
proctype Network(byte at)
{
	byte m, a, b, c;
	mtype kind;
end:
	do
	:: d_step {
		faults > 0 && len(fwd) > at ->
			faults--;
			if
			:: at == 0 -> take_first(fwd)
			:: else -> take_second(fwd)
			fi;
			printf("its path dies, %e(%d, %d, %d, %d) is lost\n", kind, m, a, b, c);
			say_again(kind, m);
			kind = 0; m = 0; a = 0; b = 0; c = 0
	}
	:: d_step {
		faults > 0 && len(bwd) > at ->
			faults--;
			if
			:: at == 0 -> take_first(bwd)
			:: else -> take_second(bwd)
			fi;
			printf("its path dies, %e(%d, %d, %d, %d) is lost\n", kind, m, a, b, c);
			if
			:: kind == STATE ->
				r_do_state = 1;
#ifdef NO_RULE_ABSOLUTE_FACTS
				told_ring_limit = told_ring_limit - b
#endif
			:: kind == CTS && m >= r_base && r_is_granted[SLOT(m)] && !r_is_whole[SLOT(m)] && !r_is_void[SLOT(m)] ->
				r_do_cts[SLOT(m)] = 1
			:: kind == LEVEL && m >= r_base && (r_is_known[SLOT(m)] || r_is_void[SLOT(m)]) -> r_do_level[SLOT(m)] = 1
			:: else -> skip
			fi;
			kind = 0; m = 0; a = 0; b = 0; c = 0
	}
	od
}

init {
	byte i;

	atomic {
		for (i : 0 .. MSGS - 1) {
			if
			:: s_size[i] = SIZE_A
			:: SIZE_B != SIZE_A -> s_size[i] = SIZE_B
			fi;
			/* What is above the eager maximum asks. */
			if
			:: s_size[i] > EAGER_MAX && s_size[i] < LARGE -> s_size[i] = LARGE + 1
			:: else -> skip
			fi;
			printf("S: message %d is of size %d\n", i, s_size[i])
		}
		run Sender();
		run Receiver();
		for (i : 0 .. 1) {
			run Network(i)
		}
		for (i : 0 .. MSGS - 1) {
			run Post(i)
		}
		run PostBack();
		for (i : 0 .. WINDOW - 1) {
			run Client(i)
		}
		i = 0
	}
}
