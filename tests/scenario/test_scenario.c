/* SPDX-License-Identifier: BSD-2-Clause */
/* test_scenario - what a bad file is told, and that a claim which is not true fails */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scenario.h"

#define HEAD "hosts a b rails 2 rate 10gbps delay 5us\n"
#define OPEN HEAD "at 0us a open c1 to b\nat 0us a send c1 m1 100B\n"

static const struct {
	const char *name;
	const char *text;
	const char *want; /* all that is told */
} bad_files[] = {
	{"nothing at all", "",
	 "x.scn:0: nothing is claimed; allowed: within, always, never, at end\n"},
	{"no claim", OPEN, "x.scn:3: nothing is claimed; allowed: within, always, never, at end\n"},
	{"no such statement", HEAD "on 0us a pauses\n",
	 "x.scn:2: 'on' is not a statement; allowed: hosts, rails, rate, delay, clients, seed, "
	 "set, "
	 "cold, end, at, when, within, always, never\n"},
	{"no hosts yet", "\nat 0us a pauses\n",
	 "x.scn:2: 'at' before `hosts`; the first statement must name them\n"},
	{"one host", "hosts a\n",
	 "x.scn:1: hosts are named a, b and so on, in this order; allowed: 2 to 8\n"},
	{"hosts out of order", "hosts a c\n",
	 "x.scn:1: hosts are named a, b and so on, in this order; allowed: 2 to 8\n"},
	{"too many rails", "hosts a b rails 17\n",
	 "x.scn:1: '17' is not a number of rails; allowed: 1 to 16\n"},
	{"too many rails in all", "hosts a b rails 9 tcp 9 verbs\n",
	 "x.scn:1: more than 16 rails\n"},
	{"a rate without its unit", "hosts a b rate 100\n",
	 "x.scn:1: '100' is not a rate; allowed: a whole number with mbps or gbps\n"},
	{"a rate that is 0", "hosts a b set rate 0\n",
	 "x.scn:1: rate 0: rate, clients, slots and ring_bytes must not be 0\n"},
	{"a time too long", HEAD "at 99999999999s a pauses\n",
	 "x.scn:2: '99999999999s' is not a time; allowed: a whole number with ns, us, ms or s\n"},
	{"a fraction", HEAD "at 1.5ms a pauses\n",
	 "x.scn:2: '1.5ms' is not a time; allowed: a whole number with ns, us, ms or s\n"},
	{"world after events", OPEN "rails 3\n",
	 "x.scn:4: what the world is like must be said before the first statement\n"},
	{"no such host", HEAD "at 0us c pauses\n", "x.scn:2: 'c' is not a host; allowed: a to b\n"},
	{"no such action", HEAD "at 0us a sleeps\n",
	 "x.scn:2: 'sleeps' is not what a host does; allowed: rail, client, open, send, cancel, "
	 "close, pauses, resumes, stops, starts, hands-over\n"},
	{"no such rail", HEAD "at 0us a rail 2 silent\n",
	 "x.scn:2: '2' is not a rail; allowed: 0 to 1\n"},
	{"no such fault", HEAD "at 0us a rail 1 broken\n",
	 "x.scn:2: 'broken' is not what befalls a rail; allowed: silent, deaf, mute, unplugged, "
	 "unlit, slow, late, stuck, unanswered, corrupts-body, corrupts-header, corrupts-control, "
	 "off, keyless, breaks, flaps, "
	 "heals, drained, undrained\n"},
	{"a fault without its amount", HEAD "at 0us a rail 1 slow\n",
	 "x.scn:2: 'end of line' is not a factor or a number in a thousand; allowed: 1 to "
	 "100000\n"},
	{"flaps without an end", HEAD "at 0us a rail 1 flaps 1ms\n",
	 "x.scn:2: flaps: for how long? Say `for TIME`\n"},
	{"no such client", HEAD "at 0us a client 1 dies\n",
	 "x.scn:2: '1' is not a client; allowed: 0 to 0\n"},
	{"no such manner", HEAD "at 0us a client 0 sleeps\n",
	 "x.scn:2: 'sleeps' is not what a client does; allowed: stalls, resumes, dies, rejects, "
	 "holds, behaves\n"},
	{"a channel's name", HEAD "at 0us a open x to b\n",
	 "x.scn:2: 'x' is not a channel; allowed: c1, c2 and so on\n"},
	{"a channel without `to`", HEAD "at 0us a open c1 b\n",
	 "x.scn:2: 'b' is not what follows a channel; allowed: to HOST\n"},
	{"a channel to itself", HEAD "at 0us a open c1 to a\n",
	 "x.scn:2: a host is not its own peer\n"},
	{"a channel twice", OPEN "at 1us a open c1 to b\n",
	 "x.scn:4: channel c1 is opened twice; a new one needs a new name\n"},
	{"a window that is no power of two", HEAD "at 0us a open c1 to b window 3\n",
	 "x.scn:2: window 3; allowed: a power of two\n"},
	{"a channel not opened", OPEN "at 0us a close c2\n",
	 "x.scn:4: 'c2' is not a channel opened above; allowed: c1\n"},
	{"a channel of others", "hosts a b c\nat 0us a open c1 to b\nat 0us c close c1\n",
	 "x.scn:3: host c is no end of c1; allowed: a, b\n"},
	{"which peer", "hosts a b c\nat 0us a rail 0 breaks\n",
	 "x.scn:2: which peer? With more than 2 hosts say `to HOST` here\n"},
	{"a message's name", OPEN "at 0us a send c1 x 1B\n",
	 "x.scn:4: 'x' is not a message; allowed: m1 to m2048, or a range as m1..m9\n"},
	{"a range that goes back", OPEN "at 0us a send c1 m9..m2 1B\n",
	 "x.scn:4: 'm9..m2' is not a message; allowed: m1 to m2048, or a range as m1..m9\n"},
	{"a message twice", OPEN "at 1us a send c1 m1 100B\n",
	 "x.scn:4: m1 is sent twice by a on c1\n"},
	{"a message too long", OPEN "at 1us a send c1 m2 2MiB\n",
	 "x.scn:4: a message on c1 is at most 1048576B long; say `len` where it is opened\n"},
	{"a message nobody sends", OPEN "within 1ms b delivered c1 m2\n",
	 "x.scn:4: m2 is not sent above by a on c1\n"},
	{"a message of the other end", OPEN "within 1ms a delivered c1 m1\n",
	 "x.scn:4: m1 is not sent above by b on c1\n"},
	{"no such claim about a host", OPEN "within 1ms b happy\n",
	 "x.scn:4: 'happy' is nothing to ask of a host; allowed: rail, a channel, sent, answered, "
	 "delivered, visible, committed, rejected, released, gap, resets, conn_epoch, paths_good, "
	 "peer_silent, channels, duplicates, messages_failed, protocol_errors, memory\n"},
	{"no such claim about a channel", OPEN "within 1ms b c1 happy\n",
	 "x.scn:4: 'happy' is nothing to ask of a channel; allowed: up, down, freed, sent, "
	 "answered, "
	 "answered_ok, delivered, released, stall, latency\n"},
	{"a value without its unit", OPEN "at end a rail 0 share > 5\n",
	 "x.scn:4: '5' is not a value for this; allowed: a whole number with %\n"},
	{"no such reason", OPEN "at end a rail 0 because tired\n",
	 "x.scn:4: 'tired' is not a reason; allowed: none, silent, carrier, peer-port, error, "
	 "closed, peer-fence, corrupting, protocol, connect, operator, probe, new-conn\n"},
	{"a label nobody gives", OPEN "within 1ms of cut b delivered c1 m1\n",
	 "x.scn:4: 'cut' is not a label of this file (given by `as NAME`); allowed: it gives "
	 "none\n"},
	{"a label twice", OPEN "at 1us nothing as x\nat 2us nothing as x\n",
	 "x.scn:5: label 'x' is given twice\n"},
	{"when without then", OPEN "when b delivered c1 m1 a pauses\n",
	 "x.scn:4: 'a' is not what follows a condition; allowed: and, after TIME, then\n"},
	{"more on a line", OPEN "within 1ms b delivered c1 m1 once in_order\n",
	 "x.scn:4: 'once': nothing more is expected on this line\n"},
	{"at end without a word", OPEN "at end\n",
	 "x.scn:4: 'end of line' is no condition; allowed: a host, clean, all good, events, "
	 "frames, "},
	{"no such option", "hosts a b set colour 3\n",
	 "x.scn:1: 'colour' is not an option of the simulator; allowed: hosts, rails, "},
	{"each bad line is told", HEAD "at 0us a sleeps\n# well\nwithin 1 clean\n",
	 "x.scn:2: 'sleeps' is not what a host does; allowed: rail, client, open, send, cancel, "
	 "close, pauses, resumes, stops, starts, hands-over\n"
	 "x.scn:4: '1' is not a time; allowed: a whole number with ns, us, ms or s\n"},
};

static char *told(const char *text, struct scenario **sc_out)
{
	char *out = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&out, &len);

	assert_non_null(errors);
	*sc_out = scenario_parse("x.scn", text, errors);
	fclose(errors);
	return out;
}

static void scenario_bad_file_is_told_line_and_allowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(bad_files); i++) {
		struct scenario *sc;
		char *out = told(bad_files[i].text, &sc);
		size_t len = strlen(bad_files[i].want);

		/* A message that ends in a comma goes on with a list that is another file's. */
		if (len && bad_files[i].want[len - 1] == '\n')
			len++;
		if (sc || strncmp(out, bad_files[i].want, len) != 0)
			fail_msg("%s:\n  told %s  want %s", bad_files[i].name, out,
				 bad_files[i].want);
		free(out);
	}
}

/* One claim of each kind that is not true, and what is said of it. */
static const struct {
	const char *name;
	const char *text;
	const char *want; /* a part of what is printed; NULL: all is true */
} runs[] = {
	{"true", OPEN "within 1ms b delivered c1 m1\n", NULL},
	{"too late", OPEN "within 1us b delivered c1 m1\n", "x.scn:4: "},
	{"within a time from a label",
	 OPEN "at 1ms nothing as x\nwithin 1us of x b delivered c1 m1\n", NULL},
	{"comes true by a step that is too late",
	 OPEN "at 5ms a send c1 m2 1B\nwithin 5ms b delivered c1 m2\n", "not within its time"},
	{"always", OPEN "always a rail 0 good\nat 1ms a rail 0 breaks\nat 2ms nothing\n",
	 "x.scn:4: "},
	{"never", OPEN "never not a rail 0 good\nat 1ms a rail 0 breaks\nat 2ms nothing\n",
	 "once, and never was claimed"},
	{"never, before its time",
	 HEAD "at 1ms a rail 0 unplugged for 500us\nat 10ms nothing as x\nat 2s nothing as y\n"
	      "never from y not a rail 0 good\n",
	 NULL},
	{"never, after its time",
	 HEAD "at 1ms nothing as x\nat 2ms a rail 0 unplugged for 1ms\n"
	      "never until x not a rail 0 good\nat 3ms nothing\n",
	 NULL},
	{"more than it is", OPEN "at end messages > 1\n", "(it is 1)"},
	{"less than it is", OPEN "at end messages < 1\n", "(it is 1)"},
	{"a range of which one is not so",
	 OPEN "at 1ms a send c1 m2 1B\nat 9ms a send c1 m3 1B\nwithin 5ms b delivered c1 m1..m3\n",
	 "(m3:"},
	{"at end", OPEN "at end messages 2\n", "x.scn:4: at"},
	{"at end, what is so is said", OPEN "at end messages 2\n", "(it is 1)"},
	{"the wrong outcome", OPEN "at end a answered c1 m1 rejected\n", "outcome 0)"},
	{"a share", OPEN "at end a rail 0 share > 100%\n", "x.scn:4: "},
	{"when that never comes", OPEN "when a rail 0 denied then a pauses\nat end clean\n",
	 "this has not happened"},
	{"at the end of a time", "end 1ms\n" OPEN "within 2ms not a rail 0 good\n",
	 "this has not come true"},
	{"always from a label that never comes",
	 HEAD "end 1ms\nat 2ms nothing as x\n"
	      "always from x clean\n",
	 "this has not happened"},
	{"an answer that never comes",
	 HEAD "at 0us b client 0 holds\nat 0us a open c1 to b\nat 0us a send c1 m1 1B\n"
	      "at end b delivered c1 m1\n",
	 "a on c1 has 0 of 1 messages answered"},
	{"nothing to heal", OPEN "at 1ms a rail 0 heals\nat end messages 1\n",
	 "nothing is wrong with this rail"},
	{"send before open", HEAD "at 1ms a open c1 to b\nat 0us a send c1 m1 1B\nat end clean\n",
	 "the channel is not open yet"},
};

static void scenario_false_claim_fails_and_says_where(void **state)
{
	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(runs); i++) {
		struct scenario *sc;
		char *errors = told(runs[i].text, &sc);
		char *out = NULL;
		size_t len = 0;
		FILE *file;
		int r;

		if (!sc)
			fail_msg("%s: %s", runs[i].name, errors);
		free(errors);
		file = open_memstream(&out, &len);
		assert_non_null(file);
		r = scenario_run(sc, 1, 0, false, file);
		fclose(file);
		if (r != (runs[i].want != NULL) || (r && !strstr(out, runs[i].want)))
			fail_msg("%s: answered %d: %s", runs[i].name, r, out);
		free(out);
		scenario_free(sc);
	}
}

static void scenario_same_seed_same_trace(void **state)
{
	static const char text[] = OPEN "at 1ms a rail 0 silent for 5ms\nat end messages 1\n";
	char *traces[2] = {NULL, NULL};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scenario *sc;
		char *errors = told(text, &sc);
		size_t len = 0;
		FILE *file = open_memstream(&traces[i], &len);

		assert_non_null(sc);
		assert_non_null(file);
		assert_int_equal(scenario_run(sc, 7, 1000, true, file), 0);
		fclose(file);
		scenario_free(sc);
		free(errors);
	}
	assert_true(strlen(traces[0]) > 1000);
	assert_string_equal(traces[0], traces[1]);
	free(traces[0]);
	free(traces[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(scenario_bad_file_is_told_line_and_allowed),
		cmocka_unit_test(scenario_false_claim_fails_and_says_where),
		cmocka_unit_test(scenario_same_seed_same_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
