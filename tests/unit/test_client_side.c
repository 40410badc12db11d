/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client: attaching, the rings, services, and clients that break the rules. */
#include "client_side_lab.h"

#include "mrcd_client_impl.h"
#include "mrcd_sigbus.h"

#include <dirent.h>
#include <grp.h>
#include <sys/resource.h>

static void attach_gives_sealed_memory(void **state)
{
	struct lab *lab = *state;
	struct prog prog;
	struct stat st;

	prog_attach(lab, &prog, "one");
	for (int i = MRC_ABI_FD_RINGS; i <= MRC_ABI_FD_LANDING_ARENA; i++) {
		int seals = fcntl(prog.fds[i], F_GET_SEALS);

		/* Others, such as F_SEAL_EXEC, may be there; one against writing may not. */
		assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
				 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		assert_int_equal(seals & F_SEAL_WRITE, 0);
		assert_int_equal(fstat(prog.fds[i], &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(fcntl(prog.fds[i], F_GETFL) & O_ACCMODE,
				 i == MRC_ABI_FD_LANDING_ARENA ? O_RDONLY : O_RDWR);
	}
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			 prog.fds[MRC_ABI_FD_LANDING_ARENA], 0) == MAP_FAILED);
	assert_int_equal(errno, EACCES);
	prog_leave(&prog);
}

static void attach_tells_the_numbers(void **state)
{
	struct lab *lab = *state;
	const struct mrc_abi_welcome *w;
	struct prog prog;

	prog_attach(lab, &prog, "one");
	w = &prog.welcome;
	assert_int_equal(w->version, MRC_ABI_VERSION);
	assert_int_equal(w->generation, 0xb007);
	assert_int_equal(w->send_arena_bytes, 4U << 20);
	assert_int_equal(w->landing_arena_bytes, 8U << 20);
	assert_int_equal(w->message_bytes_max, 4U << 20);
	assert_int_equal(w->sends_max, 64);
	assert_int_equal(w->channels_max, 16);
	assert_string_equal(w->host, "a");
	/* Every send answered, half of them twice, every channel's window, gaps and own entries, every answer. */
	assert_true(w->cq_entry_count >= 64 + 32 + 16 * (8 + 4 + 3) + 256);
	assert_int_equal(w->cq_entry_count & (w->cq_entry_count - 1), 0);
	assert_int_equal(w->sq_entry_count & (w->sq_entry_count - 1), 0);
	assert_int_equal(prog.shm->magic, MRC_ABI_MAGIC);
	assert_int_equal(prog.shm->version, MRC_ABI_VERSION);
	assert_int_equal(prog.shm->sq_entry_count, w->sq_entry_count);
	assert_int_equal(prog.shm->cq_entry_count, w->cq_entry_count);
	assert_int_equal(prog.shm->state, MRC_RING_STATE_RUNNING);
	assert_int_equal(lab_number(lab, "one", "pid"), getpid());
	prog_leave(&prog);
}

static void attach_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *name;
		struct mrc_abi_attach attach;
		size_t len_bytes;
		int want;
		const char *text;
	} cases[] = {
		{"magic",
		 {.magic = 1, .version_max = 1},
		 sizeof(struct mrc_abi_attach),
		 -EPROTO,
		 "attach"},
		{"short", {.magic = MRC_ABI_MAGIC, .version_max = 1}, 20, -EPROTO, "attach"},
		{"too new",
		 {.magic = MRC_ABI_MAGIC, .version_min = 7, .version_max = 9},
		 sizeof(struct mrc_abi_attach),
		 -EPROTONOSUPPORT,
		 "7 to 9"},
		{"too old",
		 {.magic = MRC_ABI_MAGIC},
		 sizeof(struct mrc_abi_attach),
		 -EPROTONOSUPPORT,
		 "0 to 0"},
		{"upside down",
		 {.magic = MRC_ABI_MAGIC, .version_min = 3, .version_max = 1},
		 sizeof(struct mrc_abi_attach),
		 -EPROTONOSUPPORT,
		 "3 to 1"},
		{"send arena",
		 {.magic = MRC_ABI_MAGIC, .version_max = 1, .send_arena_bytes = (4U << 20) + 1},
		 sizeof(struct mrc_abi_attach),
		 -ENOMEM,
		 "send arena"},
		{"landing arena",
		 {.magic = MRC_ABI_MAGIC, .version_max = 1, .landing_arena_bytes = UINT64_MAX},
		 sizeof(struct mrc_abi_attach),
		 -ENOMEM,
		 "landing arena"},
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct prog prog = {.fd = prog_connect(lab)};

		assert_true(send(prog.fd, &cases[i].attach, cases[i].len_bytes, 0) > 0);
		lab_turn(lab);
		assert_true(prog_welcomed(&prog));
		if (prog.welcome.status != cases[i].want ||
		    strstr(prog.welcome.text, cases[i].text) == NULL)
			fail_msg("%s: %d, '%s'", cases[i].name, prog.welcome.status,
				 prog.welcome.text);
		assert_false(prog_welcomed(&prog)); /* and hung up */
		close(prog.fd);
	}
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 0);
}

static void attach_takes_the_newest_version_that_both_speak(void **state)
{
	static const struct {
		uint32_t version_min, version_max, want;
	} cases[] = {
		{MRC_ABI_VERSION_OLDEST, MRC_ABI_VERSION, MRC_ABI_VERSION},
		{0, MRC_ABI_VERSION, MRC_ABI_VERSION},
		{MRC_ABI_VERSION, MRC_ABI_VERSION + 1, MRC_ABI_VERSION}, /* a newer program */
		{0, UINT32_MAX, MRC_ABI_VERSION},
		{0, MRC_ABI_VERSION_OLDEST, MRC_ABI_VERSION_OLDEST}, /* an older one */
	};
	struct lab *lab = *state;

	/* The version before is spoken as well, once there is one. */
	assert_true(MRC_ABI_VERSION - MRC_ABI_VERSION_OLDEST <= 1);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_abi_attach attach = prog_attach_request("x");
		struct prog prog = {.fd = prog_connect(lab)};

		attach.version_min = cases[i].version_min;
		attach.version_max = cases[i].version_max;
		assert_true(send(prog.fd, &attach, sizeof(attach), 0) > 0);
		lab_turn(lab);
		assert_true(prog_welcomed(&prog));
		assert_int_equal(prog.welcome.status, 0);
		assert_int_equal(prog.welcome.version, cases[i].want);
		for (int f = 0; f < MRC_ABI_FD_COUNT; f++)
			close(prog.fds[f]);
		close(prog.fd);
	}
}

static void attach_gives_what_is_asked_down_to_a_minimum(void **state)
{
	static const struct {
		uint64_t send, landing, send_want, landing_want;
		uint32_t channels_want;
	} cases[] = {
		{1, 1, 4096, 128U << 10, 1},
		{5000, 1U << 20, 8192, 1U << 20, 8},
		{4U << 20, 8U << 20, 4U << 20, 8U << 20, 16},
		{0, 0, 4U << 20, 8U << 20, 16},
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_abi_attach attach = prog_attach_request("x");
		struct prog prog = {.fd = prog_connect(lab)};

		attach.send_arena_bytes = cases[i].send;
		attach.landing_arena_bytes = cases[i].landing;
		assert_true(send(prog.fd, &attach, sizeof(attach), 0) > 0);
		lab_turn(lab);
		assert_true(prog_welcomed(&prog));
		assert_int_equal(prog.welcome.status, 0);
		assert_int_equal(prog.welcome.send_arena_bytes, cases[i].send_want);
		assert_int_equal(prog.welcome.landing_arena_bytes, cases[i].landing_want);
		assert_int_equal(prog.welcome.channels_max, cases[i].channels_want);
		for (int f = 0; f < MRC_ABI_FD_COUNT; f++)
			close(prog.fds[f]);
		close(prog.fd);
	}
}

static void attach_has_a_limit_of_clients(void **state)
{
	struct lab *lab = *state;
	struct prog progs[8], more;

	for (int i = 0; i < 8; i++)
		prog_attach(lab, &progs[i], "x");
	assert_string_equal(prog_refused(lab, &more),
			    "8 clients are attached, no more are allowed (clients-max)");
	prog_leave(&progs[3]);
	lab_turn(lab);
	prog_attach(lab, &progs[3], "x");
	for (int i = 0; i < 8; i++)
		prog_leave(&progs[i]);
}

static void attach_drops_who_says_nothing(void **state)
{
	struct lab *lab = *state;
	int fd;
	char byte;

	lab->conf.handshake_timeout_ns = MRC_MS;
	fd = prog_connect(lab);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0)
		event_base_loop(lab->worker.base,
				EVLOOP_ONCE); /* until the timer, or the connection */
	close(fd);
}

/* Paths that are lost have to be opened anew: not all that the process may have is for programs. */
static void attach_leaves_the_daemon_its_descriptors(void **state)
{
	struct lab *lab = *state;
	struct rlimit was, less;
	struct prog prog, more;
	int lowest;

	prog_attach(lab, &prog, "x");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	lowest = dup(STDIN_FILENO);
	assert_true(lowest >= 0);
	close(lowest);
	/* Two for its ends of the socket, and six would be missing one. */
	less = was;
	less.rlim_cur = 2 * ((rlim_t)lowest + 2 + 5); /* so few that half is for programs */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	mrcd_client_side_configure(lab->worker.clients);
	assert_string_equal(
		prog_refused(lab, &more),
		"1 clients are attached, no more are allowed: LimitNOFILE= of the daemon");
	less.rlim_cur += 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	mrcd_client_side_configure(lab->worker.clients);
	prog_attach(lab, &more, "y");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	prog_leave(&more);
	prog_leave(&prog);
}

static void attach_drops_the_oldest_of_too_many_silent_ones(void **state)
{
	struct lab *lab = *state;
	struct prog prog;
	int fds[5];
	char byte;

	for (int i = 0; i < 5; i++) {
		fds[i] = prog_connect(lab);
		lab_turn(lab);
	}
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1);
	prog_attach(lab, &prog, "honest");
	prog_leave(&prog);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}

/* One user in a loop does not push out another who was first and is slow to speak. */
static void attach_drops_silent_ones_of_the_user_with_most(void **state)
{
	struct lab *lab = *state;
	struct mrc_abi_attach attach = prog_attach_request("slow");
	uid_t own = geteuid();
	struct prog prog = {0};
	int fds[6];
	char byte;

	if (own != 0) {
		print_message("programs of other users take root\n");
		skip();
	}
	prog.fd = prog_connect(lab);
	lab_turn(lab);
	assert_int_equal(seteuid(4711), 0);
	for (int i = 0; i < 6; i++) {
		fds[i] = prog_connect(lab);
		lab_turn(lab);
	}
	assert_int_equal(seteuid(own), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), i < 3 ? 0 : -1);
	assert_int_equal(send(prog.fd, &attach, sizeof(attach), 0), sizeof(attach));
	lab_turn(lab);
	assert_true(prog_welcomed(&prog));
	assert_int_equal(prog.welcome.status, 0);
	close(prog.fd);
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		close(prog.fds[i]);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
}

static void socket_of_a_dead_daemon_is_taken_over_and_of_a_live_one_not(void **state)
{
	struct lab *lab = *state;
	struct mrcd_client_side *second = NULL;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct prog prog;

	mrcd_log_init(-1); /* it says so as an error, rightly */
	assert_int_equal(mrcd_client_side_new(&lab->worker, -1, &second), -EADDRINUSE);
	mrcd_client_side_free(lab->worker.clients);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/mrcd.sock", lab->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	lab_start(lab);
	prog_attach(lab, &prog, "x");
	prog_leave(&prog);
}

static void name_is_made_harmless(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "a \x1b[2J\"\\\xff");
	assert_int_equal(lab_number(lab, "a??[2J???", "channels"), 0);
	prog_leave(&prog);
}

/* ---- services and connecting ---- */

static void request_is_answered_with_its_outcome(void **state)
{
	static const struct {
		const char *name, *target;
		uint32_t op, flags;
		int want;
	} cases[] = {
		{"listen", "x", MRC_ABI_REQ_LISTEN, 0, MRC_STATUS_OK},
		{"again", "x", MRC_ABI_REQ_LISTEN, 0, MRC_STATUS_IN_USE},
		{"slash", "x/y", MRC_ABI_REQ_LISTEN, 0, MRC_STATUS_INVALID},
		{"empty", "", MRC_ABI_REQ_LISTEN, 0, MRC_STATUS_INVALID},
		{"flags", "y", MRC_ABI_REQ_LISTEN, 1, MRC_STATUS_INVALID},
		{"no host", "x", MRC_ABI_REQ_CONNECT, 0, MRC_STATUS_INVALID},
		{"no service", "b/", MRC_ABI_REQ_CONNECT, 0, MRC_STATUS_INVALID},
		{"bad flags", "b/x", MRC_ABI_REQ_CONNECT, 4, MRC_STATUS_INVALID},
		{"nobody", "z/x", MRC_ABI_REQ_CONNECT, 0, MRC_STATUS_NO_PEER},
	};
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_cqe cqe;

		prog_request(&prog, cases[i].op, cases[i].target, cases[i].flags, 70 + i);
		lab_turn(lab);
		cqe = prog_expect(&prog, cases[i].op == MRC_ABI_REQ_LISTEN ? MRC_CQE_LISTENING
									   : MRC_CQE_CONNECTED);
		if (cqe.status != cases[i].want || cqe.user_data != 70 + i)
			fail_msg("%s: status %d", cases[i].name, cqe.status);
		assert_int_equal(cqe.channel != 0, cases[i].want == MRC_STATUS_OK);
	}
	prog_leave(&prog);
}

static void listeners_have_a_limit_and_unlisten_frees_one(void **state)
{
	struct lab *lab = *state;
	uint32_t ids[4];
	struct prog prog;
	char name[8];

	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 5; i++) {
		struct mrc_cqe cqe;

		snprintf(name, sizeof(name), "s%d", i);
		prog_request(&prog, MRC_ABI_REQ_LISTEN, name, 0, 0);
		lab_turn(lab);
		cqe = prog_expect(&prog, MRC_CQE_LISTENING);
		assert_int_equal(cqe.status, i < 4 ? MRC_STATUS_OK : MRC_STATUS_NO_RESOURCES);
		if (i < 4)
			ids[i] = cqe.channel;
	}
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_UNLISTEN, .channel = ids[2]});
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_UNLISTEN, .channel = ids[2]});
	lab_turn(lab);
	prog_request(&prog, MRC_ABI_REQ_LISTEN, "s2", 0, 0);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_LISTENING).status, MRC_STATUS_OK);
	assert_int_equal(lab_number(lab, "x", "listeners"), 4);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
	lab_turn(lab);
	prog_attach(lab, &prog, "y"); /* names are free again at once */
	prog_request(&prog, MRC_ABI_REQ_LISTEN, "s1", 0, 0);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_LISTENING).status, MRC_STATUS_OK);
	prog_leave(&prog);
}

/* A credential is the one of the moment of connect(). */
static void services_are_for_whom_the_rules_allow(void **state)
{
	static const struct {
		uid_t uid;
		gid_t group; /* the one it has besides its own */
		uint32_t op;
		const char *target;
		int want;
	} cases[] = {
		{65534, 4714, MRC_ABI_REQ_LISTEN, "secret", MRC_STATUS_NOT_ALLOWED},
		{65534, 4714, MRC_ABI_REQ_CONNECT, "b/secret", MRC_STATUS_NOT_ALLOWED},
		{65534, 4714, MRC_ABI_REQ_LISTEN, "open", MRC_STATUS_OK},
		{65534, 4713, MRC_ABI_REQ_LISTEN, "secret", MRC_STATUS_OK},
		{4711, 4714, MRC_ABI_REQ_LISTEN, "secret", MRC_STATUS_OK},
		{0, 4714, MRC_ABI_REQ_LISTEN, "secret", MRC_STATUS_OK},
	};
	gid_t before[256];
	int before_count;
	struct lab *lab = *state;

	if (geteuid() != 0)
		skip(); /* changes its uid */
	before_count = getgroups(MRC_ARRAY_LEN(before), before);
	assert_true(before_count >= 0);
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct prog prog;

		assert_int_equal(setgroups(1, &cases[i].group), 0);
		assert_int_equal(seteuid(cases[i].uid), 0);
		prog.fd = prog_connect(lab);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setgroups((size_t)before_count, before), 0);
		{
			struct mrc_abi_attach attach = prog_attach_request("x");

			assert_true(send(prog.fd, &attach, sizeof(attach), 0) > 0);
		}
		prog_request(&prog, cases[i].op, cases[i].target, 0, 0);
		lab_turn(lab);
		assert_true(prog_welcomed(&prog));
		prog.rings = prog_map(prog.fds[0], prog.welcome.ring_bytes, PROT_READ | PROT_WRITE);
		prog.shm = (struct mrc_ring_shm *)(void *)prog.rings;
		prog.cq_head = 0;
		assert_int_equal(prog_expect(&prog, cases[i].op == MRC_ABI_REQ_LISTEN
							    ? MRC_CQE_LISTENING
							    : MRC_CQE_CONNECTED)
					 .status,
				 cases[i].want);
		munmap(prog.rings, prog.welcome.ring_bytes);
		for (int f = 0; f < MRC_ABI_FD_COUNT; f++)
			close(prog.fds[f]);
		close(prog.fd);
		lab_turn(lab);
	}
}

/* ---- clients that break the rules ---- */

static void garbage_in_a_ring_ends_only_its_client(void **state)
{
	struct lab *lab = *state;
	struct prog good;
	struct mrc_sqe send_ok = {.op = MRC_SQE_SEND, .level = MRC_LEVEL_PLACED, .len_bytes = 1};
	struct garbage {
		const char *name;
		struct mrc_sqe sqe;
		bool is_on_channel; /* its channel field is a good channel's */
	} cases[] = {
		{"op", {.op = MRC_SQE_UNLISTEN + 1}, false},
		{"op 255", {.op = 255}, false},
		{"flags", {.op = MRC_SQE_NOP, .flags = 1}, false},
		{"channel 0", send_ok, false},
		{"channel never", {.op = MRC_SQE_RELEASE, .channel = UINT32_MAX}, false},
		{"channel of later", {.op = MRC_SQE_CLOSE, .channel = 17U << 4}, false},
		{"listener never", {.op = MRC_SQE_UNLISTEN, .channel = 9}, false},
		{"listener 0", {.op = MRC_SQE_UNLISTEN}, false},
		{"level 0", send_ok, true},
		{"level 4", send_ok, true},
		{"offset", send_ok, true},
		{"length", send_ok, true},
		{"offset and length wrap", send_ok, true},
		{"one past the end", send_ok, true},
		{"commit never given", {.op = MRC_SQE_COMMIT, .number = 0}, true},
		{"reject never given", {.op = MRC_SQE_REJECT, .number = 1ULL << 40}, true},
		{"release never given", {.op = MRC_SQE_RELEASE, .number = UINT64_MAX}, true},
		{"accept one that is up", {.op = MRC_SQE_ACCEPT}, true},
		{"refuse one that is up", {.op = MRC_SQE_REFUSE}, true},
	};

	cases[8].sqe.level = 0;
	cases[9].sqe.level = 4;
	cases[10].sqe.offset = (4U << 20) + 1;
	cases[11].sqe.len_bytes = (4U << 20) + 1;
	cases[12].sqe.offset = 64;
	cases[12].sqe.len_bytes = UINT64_MAX - 63;
	cases[13].sqe.offset = (4U << 20) - 1;
	cases[13].sqe.len_bytes = 2;
	prog_attach(lab, &good, "good");
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_sqe sqe = cases[i].sqe;
		struct pipe_end end;
		struct prog bad;

		prog_attach(lab, &bad, "bad");
		end = prog_open(lab, &bad, "b");
		if (cases[i].is_on_channel)
			sqe.channel = end.id;
		prog_submit(&bad, sqe);
		/* What comes behind it is not looked at. */
		prog_submit(&bad, (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = end.id});
		lab_turn(lab);
		if (!prog_is_ended(&bad))
			fail_msg("'%s' was let pass", cases[i].name);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), i + 1);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 0);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 0);
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
		lab_turn(lab);
		assert_int_equal(mrcd_client_side_count(lab->worker.clients), 1);
		prog_leave(&bad);
		prog_is_served(lab, &good);
	}
	prog_leave(&good);
}

static void send_at_the_very_end_of_the_arena_is_taken(void **state)
{
	static const struct {
		uint64_t offset, len_bytes;
	} cases[] = {{(4U << 20) - 1, 1}, {4U << 20, 0}, {0, 4U << 20}};
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++)
		prog_submit(&prog, (struct mrc_sqe){
					   .op = MRC_SQE_SEND,
					   .level = MRC_LEVEL_VISIBLE,
					   .channel = end.id,
					   .offset = cases[i].offset,
					   .len_bytes = cases[i].len_bytes,
				   });
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 3);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void garbage_in_ring_positions_ends_only_its_client(void **state)
{
	static const struct {
		const char *name;
		uint32_t sq_tail, cq_head;
	} cases[] = {
		{"tail jumps", 65, 0},
		{"tail goes back", UINT32_MAX, 0},
		{"head past the tail", 0, 1},
		{"head goes back", 0, UINT32_MAX},
	};
	struct lab *lab = *state;
	struct prog good, bad;

	prog_attach(lab, &good, "good");
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		prog_attach(lab, &bad, "bad");
		assert_int_equal(bad.shm->sq_entry_count, 64);
		bad.shm->sq_tail = cases[i].sq_tail;
		bad.shm->cq_head = cases[i].cq_head;
		prog_bell(&bad);
		lab_turn(lab);
		if (!prog_is_ended(&bad))
			fail_msg("'%s' was let pass", cases[i].name);
		prog_leave(&bad);
		prog_is_served(lab, &good);
	}
	/* What the daemon wrote there is for clients only; it believes its own. */
	good.shm->sq_head = 7777;
	good.shm->cq_tail = 8888;
	good.shm->sq_entry_count = 0;
	good.shm->cq_offset = UINT32_MAX;
	prog_bell(&good);
	lab_turn(lab);
	assert_false(prog_is_ended(&good));
	prog_leave(&good);
}

static void garbage_on_the_socket_ends_only_its_client(void **state)
{
	struct lab *lab = *state;
	struct mrc_abi_request request = {.op = 3};
	struct prog good, bad;

	prog_attach(lab, &good, "good");
	for (int i = 0; i < 3; i++) {
		prog_attach(lab, &bad, "bad");
		request.op = i == 0 ? 3 : MRC_ABI_REQ_LISTEN;
		assert_true(send(bad.fd, &request, sizeof(request) - (i == 1), 0) > 0);
		if (i == 2) { /* a name without end is malformed, and answered so */
			memset(request.target, 'a', sizeof(request.target));
			assert_true(send(bad.fd, &request, sizeof(request), 0) > 0);
		}
		lab_turn(lab);
		assert_int_equal(prog_is_ended(&bad), i < 2);
		if (i == 2) {
			assert_int_equal(prog_expect(&bad, MRC_CQE_LISTENING).status,
					 MRC_STATUS_INVALID);
			assert_int_equal(prog_expect(&bad, MRC_CQE_LISTENING).status,
					 MRC_STATUS_INVALID);
		}
		prog_leave(&bad);
		prog_is_served(lab, &good);
	}
	prog_leave(&good);
}

static void who_asks_on_without_reading_answers_is_ended(void **state)
{
	struct lab *lab = *state;
	struct mrc_cqe cqe = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 600; i++) { /* reading: for ever */
		prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
		lab_turn(lab);
		assert_true(prog_take(&prog, &cqe));
	}
	for (int i = 0; i < 256; i++) {
		prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
		lab_turn(lab);
	}
	assert_false(prog_is_ended(&prog));
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
	lab_turn(lab);
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void who_submits_on_without_reading_completions_is_ended(void **state)
{
	struct lab *lab = *state;
	struct prog good, bad;
	struct pipe_end end;
	uint32_t sent = 0;

	prog_attach(lab, &good, "good");
	prog_attach(lab, &bad, "bad");
	end = prog_open(lab, &bad, "b");
	peer_b.answer_of[MRC_EV_SEND] = -EMSGSIZE; /* each is answered at once */
	while (!prog_is_ended(&bad)) {
		for (int i = 0; i < 32; i++)
			prog_send(&bad, &end, 0);
		lab_turn(lab);
		sent += 32;
		assert_true(sent <= bad.welcome.cq_entry_count + 32);
	}
	assert_true(sent >= bad.welcome.cq_entry_count);
	prog_leave(&bad);
	prog_is_served(lab, &good);
	prog_leave(&good);
}

static void memory_that_goes_away_ends_only_its_client(void **state)
{
	struct lab *lab = *state;
	struct prog good, bad;
	struct pipe_end end;
	const volatile uint8_t *memory;
	const void *page;
	int fd = memfd_create("shrunk", MFD_CLOEXEC);

	prog_attach(lab, &good, "good");
	prog_attach(lab, &bad, "bad");
	end = prog_open(lab, &bad, "b");
	page = mrcd_send_memory(&lab->worker, end.cookie, 4096, 4096);
	assert_non_null(page);
	/* As a hole in huge pages would be: the mapping is there, its page cannot be had. */
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_true(mmap((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == page);
	assert_int_equal(ftruncate(fd, 0), 0);
	memory = page;
	assert_int_equal(mrcd_sigbus_install(), 0); /* cmocka has put its own handler since */
	assert_int_equal(memory[17], 0);            /* zeros are what a peer would be sent */
	lab_turn(lab);
	assert_true(prog_is_ended(&bad));
	assert_null(mrcd_send_memory(&lab->worker, end.cookie, 4096, 4096));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 1);
	close(fd);
	prog_leave(&bad);
	prog_is_served(lab, &good);
	prog_leave(&good);
}

static void bell_made_blocking_does_not_stop_the_daemon(void **state)
{
	struct lab *lab = *state;
	char full[4096] = {0};
	struct prog good, bad;

	prog_attach(lab, &good, "good");
	prog_attach(lab, &bad, "bad");
	while (write(bad.fds[MRC_ABI_FD_CLIENT_BELL], full, sizeof(full)) > 0)
		;
	for (int i = 0; i < MRC_ABI_FD_COUNT; i++)
		assert_int_equal(fcntl(bad.fds[i], F_SETFL, 0), 0);
	bad.shm->client_sleeping = 1;
	for (int i = 0; i < 3; i++) {
		prog_request(&bad, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
		prog_submit(&bad, (struct mrc_sqe){.op = MRC_SQE_NOP});
		lab_turn(lab); /* would hang here */
		prog_is_served(lab, &good);
	}
	prog_leave(&bad);
	prog_leave(&good);
}

/* ---- sleeping ---- */

static void daemon_sleeps_when_idle_and_is_woken_by_the_bell_alone(void **state)
{
	struct lab *lab = *state;
	struct mrc_sqe *sq;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	assert_int_equal(prog.shm->daemon_sleeping, 1);
	sq = (struct mrc_sqe *)(void *)(prog.rings + prog.shm->sq_offset);
	sq[0] = (struct mrc_sqe){.op = MRC_SQE_NOP};
	prog.shm->sq_tail = prog.sq_tail = 1;
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 0); /* asleep: nobody looks */
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 1);
	assert_int_equal(prog.shm->daemon_sleeping, 1);
	/* And again: the bell is never read, its edges count. */
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 2);
	/* A head that moves wakes it as well. */
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
	lab_turn(lab);
	prog_expect(&prog, MRC_CQE_CONNECTED);
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(prog.shm->daemon_sleeping, 1);
	prog_leave(&prog);
}

static void daemon_polls_for_a_while_before_it_sleeps(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	lab->conf.spin_ns = 3600 * MRC_S;
	lab->worker.look.is_looking = true;
	prog_attach(lab, &prog, "x");
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	lab_turn(lab);
	assert_int_equal(prog.shm->daemon_sleeping, 0);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_NOP}); /* without the bell */
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 2);
	lab->worker.look.is_looking = false;
	lab_turn(lab);
	assert_int_equal(prog.shm->daemon_sleeping, 1);
	prog_leave(&prog);
}

static void daemon_that_looks_for_others_lets_an_idle_client_be(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	lab->conf.spin_ns = 0;
	lab->worker.look.is_looking = true;
	prog_attach(lab, &prog, "x");
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 1);
	lab_turn(lab);
	assert_int_equal(prog.shm->daemon_sleeping, 1);
	prog_leave(&prog);
}

/* What comes between its last turn and its word that it sleeps would otherwise wait for ever. */
static void daemon_looks_once_more_before_it_sleeps(void **state)
{
	static const struct {
		const char *name;
		uint32_t sq_tail, cq_head;
		bool want;
	} cases[] = {
		{"nothing", 0, 0, true},
		{"a submission", 1, 0, false},
		{"a completion taken", 0, 1, false},
	};
	struct lab *lab = *state;
	struct mrcd_client *client;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
	lab_turn(lab);
	client = lab->worker.clients->clients[0];
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		prog.shm->sq_tail = cases[i].sq_tail;
		prog.shm->cq_head = cases[i].cq_head;
		if (mrcd_client_sleep(client) != cases[i].want)
			fail_msg("%s was judged wrongly", cases[i].name);
		assert_int_equal(prog.shm->daemon_sleeping, cases[i].want);
	}
	prog_leave(&prog);
}

static void idle_daemon_has_nothing_to_do(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_NOP});
	lab_turn(lab);
	/* No timer is armed, nothing is active: only four descriptors are watched. */
	assert_int_equal(event_base_get_num_events(lab->worker.base, EVENT_BASE_COUNT_ACTIVE), 0);
	assert_int_equal(event_base_get_num_events(lab->worker.base, EVENT_BASE_COUNT_ADDED), 4);
	prog_leave(&prog);
}

static void client_is_rung_once_and_only_when_it_sleeps(void **state)
{
	struct lab *lab = *state;
	struct prog prog;
	uint64_t rung[4];

	prog_attach(lab, &prog, "x");
	for (int sleeping = 0; sleeping <= 1; sleeping++) {
		prog.shm->client_sleeping = (uint32_t)sleeping;
		for (int i = 0; i < 5; i++) {
			prog_request(&prog, MRC_ABI_REQ_CONNECT, "nowhere/x", 0, 0);
			lab_turn(lab);
		}
		assert_int_equal(read(prog.fds[MRC_ABI_FD_CLIENT_BELL], rung, sizeof(rung)),
				 sleeping ? 8 : -1);
	}
	prog_leave(&prog);
}

static void many_entries_of_one_client_do_not_keep_another_waiting(void **state)
{
	struct lab *lab;
	struct mrc_sqe nop = {.op = MRC_SQE_NOP};
	struct prog busy, other;
	struct mrc_sqe *sq;

	/* A larger ring than one turn takes. */
	lab_teardown(state);
	lab = calloc(1, sizeof(*lab));
	*state = lab;
	lab_begin(lab);
	lab->conf.clients.sends_max = 4096;
	lab_start(lab);
	prog_attach(lab, &busy, "busy");
	prog_attach(lab, &other, "other");
	sq = (struct mrc_sqe *)(void *)(busy.rings + busy.shm->sq_offset);
	for (uint32_t i = 0; i < 4096; i++)
		sq[i] = nop;
	busy.shm->sq_tail = busy.sq_tail = 4096;
	prog_bell(&busy);
	prog_submit(&other, nop);
	while (other.shm->sq_head == 0)
		event_base_loop(lab->worker.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_true(busy.shm->sq_head <= 512);
	for (int i = 0; i < 3; i++)
		lab_turn(lab);
	assert_int_equal(busy.shm->sq_head, 4096);
	prog_leave(&busy);
	prog_leave(&other);
}

/* ---- coming and going ---- */

static uint32_t lines_of(const char *path)
{
	FILE *file = fopen(path, "re");
	uint32_t count = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

static uint32_t fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

static void hundreds_of_attachments_leave_nothing(void **state)
{
	struct lab *lab = *state;
	uint32_t fds = 0, maps = 0;

	for (int i = 0; i < 300; i++) {
		struct pipe_end end;
		struct prog prog;

		prog_attach(lab, &prog, "x");
		end = prog_open(lab, &prog, "b");
		prog_send(&prog, &end, 0);
		lab_turn(lab);
		prog_leave(&prog);
		lab_turn(lab);
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
		lab_turn(lab);
		peer_b.event_count = 0;
		if (i == 20) { /* libraries have warmed up */
			fds = fds_open();
			maps = lines_of("/proc/self/maps");
		}
	}
	assert_int_equal(fds_open(), fds);
	/* The heap may have grown by a mapping; a leak would be hundreds. */
	assert_in_range(lines_of("/proc/self/maps"), maps > 4 ? maps - 4 : 0, maps + 4);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 0);
}

static void daemon_that_ends_tells_its_clients(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog.shm->client_sleeping = 1;
	mrcd_client_side_free(lab->worker.clients);
	lab->worker.clients = NULL;
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(attach_gives_sealed_memory),
		lab_test(attach_tells_the_numbers),
		lab_test(attach_is_refused_with_a_reason),
		lab_test(attach_takes_the_newest_version_that_both_speak),
		lab_test(attach_gives_what_is_asked_down_to_a_minimum),
		lab_test(attach_has_a_limit_of_clients),
		lab_test(attach_leaves_the_daemon_its_descriptors),
		lab_test(attach_drops_who_says_nothing),
		lab_test(attach_drops_the_oldest_of_too_many_silent_ones),
		lab_test(attach_drops_silent_ones_of_the_user_with_most),
		lab_test(socket_of_a_dead_daemon_is_taken_over_and_of_a_live_one_not),
		lab_test(name_is_made_harmless),
		lab_test(request_is_answered_with_its_outcome),
		lab_test(listeners_have_a_limit_and_unlisten_frees_one),
		lab_test(services_are_for_whom_the_rules_allow),
		lab_test(garbage_in_a_ring_ends_only_its_client),
		lab_test(send_at_the_very_end_of_the_arena_is_taken),
		lab_test(garbage_in_ring_positions_ends_only_its_client),
		lab_test(garbage_on_the_socket_ends_only_its_client),
		lab_test(who_asks_on_without_reading_answers_is_ended),
		lab_test(who_submits_on_without_reading_completions_is_ended),
		lab_test(memory_that_goes_away_ends_only_its_client),
		lab_test(bell_made_blocking_does_not_stop_the_daemon),
		lab_test(daemon_sleeps_when_idle_and_is_woken_by_the_bell_alone),
		lab_test(daemon_polls_for_a_while_before_it_sleeps),
		lab_test(daemon_that_looks_for_others_lets_an_idle_client_be),
		lab_test(daemon_looks_once_more_before_it_sleeps),
		lab_test(idle_daemon_has_nothing_to_do),
		lab_test(client_is_rung_once_and_only_when_it_sleeps),
		lab_test(many_entries_of_one_client_do_not_keep_another_waiting),
		lab_test(hundreds_of_attachments_leave_nothing),
		lab_test(daemon_that_ends_tells_its_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
