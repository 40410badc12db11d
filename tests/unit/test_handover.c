/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_handover, mrcd_heritage: what one daemon leaves the next one has, or nobody has it. */
#include "handover_lab.h"

#include "mrc/client.h"
#include "mrcd_control.h"
#include "mrcd_crc.h"
#include "mrcd_fds.h"
#include "mrcd_image.h"
#include "mrcd_peer.h"

static ino_t inode_of(const struct manager *m, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void the_next_daemon_is_the_same_to_others(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	struct mrcd_heritage *heritage;
	uint64_t boot_id = worker->boot_id;
	ino_t clients = inode_of(m, "mrcd.sock"), control = inode_of(m, "control.sock");

	/* So that the two ends of the loop have met. */
	for (int i = 0; i < 20; i++)
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
	worker->rails[0].frames_sent = 123;
	worker->rails[0].carrier_losses = 7;
	worker->rails[0].flaps = 9;
	worker->rails[0].is_draining = true; /* mrcctl drain */
	worker->strangers = 5;
	worker_leave(worker);
	assert_true(manager_heard(m, "FDSTORE=1\nFDNAME=mrcd-state\nFDPOLL=0"));
	assert_int_equal(manager_kept(m), 1);
	assert_false(manager_heard(m, "FDSTOREREMOVE"));

	heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
	assert_non_null(heritage);
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_not_equal(worker->boot_id, boot_id);
	assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
	assert_int_equal(mrcd_worker_start(worker, -1, heritage), 0);
	mrcd_heritage_free(heritage);
	assert_int_equal(worker->boot_id, boot_id);
	assert_int_equal(worker->rails[0].frames_sent, 123);
	assert_int_equal(worker->rails[0].carrier_losses, 7);
	assert_int_equal(worker->rails[0].flaps, 9);
	assert_true(worker->rails[0].is_draining);
	assert_int_equal(worker->strangers, 5);
	assert_int_equal(inode_of(m, "mrcd.sock"), clients);
	assert_int_equal(inode_of(m, "control.sock"), control);
	/* Nobody can use it a second time, whatever the manager still has. */
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
	manager_hears(m, "FDSTOREREMOVE=1\nFDNAME=mrcd-state");
	mrcd_worker_free(worker);
}

static void a_file_that_says_otherwise_now_has_the_last_word(void **state)
{
	struct manager *m = *state;
	struct mrcd_heritage *heritage;
	struct mrcd_worker *worker;

	m->conf.rails[0].is_drained = true;
	worker = worker_start(m);
	assert_true(worker->rails[0].is_draining);
	worker_leave(worker);
	m->conf.rails[0].is_drained = false;
	heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
	assert_non_null(heritage);
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
	assert_false(worker->rails[0].is_draining);
	mrcd_heritage_free(heritage);
	mrcd_worker_free(worker);
}

static void another_host_takes_nothing(void **state)
{
	struct manager *m = *state;

	worker_leave(worker_start(m));
	snprintf(m->conf.host, sizeof(m->conf.host), "other");
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
}

static void a_part_of_it_is_nothing(void **state)
{
	struct manager *m = *state;
	struct mrcd_parcel *parcels;
	struct mrcd_bundle bundle;
	uint32_t count;

	worker_leave(worker_start(m));
	/* One parcel is lost on the way. */
	assert_int_equal(mrcd_bundle_take(m->fds, manager_kept(m), UINT64_MAX, &parcels, &count),
			 0);
	assert_true(count > 1);
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (parcels[i].kind != MRCD_PARCEL_LISTEN)
			assert_int_equal(mrcd_bundle_put(&bundle, &parcels[i]), 0);
	}
	assert_null(mrcd_heritage_open(bundle.fds, bundle.count, &m->conf));
	mrcd_bundle_fini(&bundle);
	/* Or the state itself. */
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (parcels[i].kind != MRCD_PARCEL_IMAGE)
			assert_int_equal(mrcd_bundle_put(&bundle, &parcels[i]), 0);
	}
	assert_null(mrcd_heritage_open(bundle.fds, bundle.count, &m->conf));
	mrcd_bundle_fini(&bundle);
	mrcd_parcels_free(parcels, count);
	/* Nor is it something else by that name. */
	assert_null(mrcd_heritage_open(&m->fd, 1, &m->conf));
}

static void without_a_manager_nothing_is_left(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	char path[128];

	unsetenv("NOTIFY_SOCKET");
	assert_false(mrcd_handover_is_possible());
	mrcd_worker_free(worker);
	snprintf(path, sizeof(path), "%s/mrcd.sock", m->dir);
	assert_int_equal(access(path, F_OK), -1);
	/* One that cannot be reached is none, and the sockets go as they did. */
	worker = worker_start(m);
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	worker_leave(worker);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(manager_kept(m), 0);
}

/* ---- what the manager does ---- */

/* It has taken all of it and does not say so: what it finds in there, whenever it looks, is nothing. */
static void a_manager_that_does_not_answer_has_nothing(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	struct prog prog;

	m->is_deaf = true;
	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	assert_int_equal(manager_kept(m), 1);
	assert_int_equal(prog_state(&prog), MRC_RING_STATE_GONE);
	assert_true(prog_is_ended(&prog));
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
	prog_leave(&prog);
}

/* What lies unread when the daemon has gone is nobody's, for a manager that reads it later too. */
static void a_manager_that_reads_nothing_is_not_waited_for(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	assert_int_equal(manager_kept(m), 0);
	assert_int_equal(prog_state(&prog), MRC_RING_STATE_GONE);
	assert_true(prog_is_ended(&prog));
	while (manager_hear(m, MSG_DONTWAIT))
		;
	assert_int_equal(manager_kept(m), 1);
	assert_null(mrcd_heritage_open(m->fds, manager_kept(m), &m->conf));
	prog_leave(&prog);
}

/* ---- a program that stays ---- */

/* The next daemon; NULL: it starts with nothing, or could not start. */
static struct mrcd_worker *worker_go_on(struct manager *m, bool *is_given_back)
{
	struct mrcd_heritage *heritage;
	struct mrcd_worker *worker;
	int r;

	*is_given_back = false;
	heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
	manager_forget(m);
	if (heritage == NULL)
		return NULL;
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	r = mrcd_heritage_apply(heritage, worker);
	if (r == 0)
		r = mrcd_worker_start(worker, -1, heritage);
	if (r < 0) {
		mrcd_worker_free(worker);
		worker = NULL;
		*is_given_back = mrcd_heritage_give_back(heritage, &m->conf);
	}
	mrcd_heritage_free(heritage);
	return worker;
}

static void a_program_stays_with_whoever_comes(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	bool is_given_back;
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	/* And once more at once, before it has done anything. */
	for (int i = 0; i < 2; i++) {
		worker_leave(worker);
		assert_int_equal(prog_state(&prog), MRC_RING_STATE_PAUSED);
		worker = worker_go_on(m, &is_given_back);
		assert_non_null(worker);
	}
	assert_int_equal(prog_state(&prog), MRC_RING_STATE_RUNNING);
	assert_true(prog_is_served(&prog, worker));
	mrcd_worker_free(worker);
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

/* How many descriptors are left, and whether a copy of the configuration is one of them. */
static uint32_t left_of(struct manager *m, bool has_program, bool *has_copy)
{
	struct mrcd_worker *worker = worker_start(m);
	struct prog prog;
	uint32_t count;

	if (has_program)
		prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	count = manager_kept(m);
	*has_copy = manager_heard(m, "FDSTORE=1\nFDNAME=mrcd-conf\nFDPOLL=0");
	manager_forget(m);
	if (has_program)
		prog_leave(&prog);
	return count;
}

static void what_was_in_force_is_left_for_programs(void **state)
{
	struct manager *m = *state;
	bool has_copy;

	assert_int_equal(left_of(m, true, &has_copy), 1); /* it was read from no file */
	assert_false(has_copy);
	m->conf.text = strdup("host: a\n");
	m->conf.text_bytes = strlen(m->conf.text);
	assert_int_equal(left_of(m, true, &has_copy), 2);
	assert_true(has_copy);
	assert_int_equal(left_of(m, false, &has_copy), 1); /* nobody would miss it */
	assert_false(has_copy);
	setenv("FDSTORE", "1", 1); /* programs come first */
	assert_int_equal(left_of(m, true, &has_copy), 1);
	assert_false(has_copy);
	unsetenv("FDSTORE");
	free(m->conf.text);
	m->conf.text = NULL;
}

/* Programs may have so many from here on, and the daemon its own besides. */
static void allow_descriptors(const struct manager *m, uint32_t count)
{
	const uint32_t own = mrcd_fds_own(&m->conf);
	struct rlimit limit;
	int fds[64], end;

	assert_true(count < MRC_ARRAY_LEN(fds));
	for (uint32_t i = 0; i <= count; i++) {
		fds[i] = dup(STDIN_FILENO);
		assert_true(fds[i] >= 0);
	}
	end = fds[count];
	for (uint32_t i = 0; i <= count; i++)
		close(fds[i]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)end + MRC_MIN((uint32_t)end, own); /* half, if that is less */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(mrcd_fds_end(&m->conf), end);
}

/* A unit with another LimitNOFILE=: the last of them has to attach again, and the others do not. */
static void fewer_descriptors_end_those_that_do_not_fit(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	bool is_given_back;
	struct rlimit was;
	struct prog progs[3];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (int i = 0; i < 3; i++)
		prog_attach(m, worker, &progs[i], "one");
	worker_leave(worker);
	/* Its two sockets are the first to be taken. */
	allow_descriptors(m, 2 + 2 * MRCD_PARCEL_FDS_MAX + 3);
	worker = worker_go_on(m, &is_given_back);
	assert_non_null(worker);
	assert_int_equal(mrcd_client_side_count(worker->clients), 2);
	event_base_loop(worker->base, EVLOOP_NONBLOCK);
	for (int i = 0; i < 2; i++)
		assert_true(prog_is_served(&progs[i], worker));
	assert_true(prog_is_ended(&progs[2]));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	mrcd_worker_free(worker);
	for (int i = 0; i < 3; i++)
		prog_leave(&progs[i]);
}

static void a_manager_says_how_many_it_keeps(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} cases[] = {
		{"1", 1},
		{"7", 7},
		{"64", MRCD_BUNDLES_MAX},
		{"512", MRCD_BUNDLES_MAX},
		{"some", MRCD_BUNDLES_MAX},
		{"", MRCD_BUNDLES_MAX},
	};

	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		setenv("FDSTORE", cases[i].text, 1);
		if (mrcd_handover_room() != cases[i].want)
			fail_msg("'%s': %u", cases[i].text, mrcd_handover_room());
	}
	unsetenv("FDSTORE");
	assert_int_equal(mrcd_handover_room(), MRCD_BUNDLES_MAX);
}

/* Somebody has tidied up in the runtime directory. */
static void a_socket_that_nobody_could_find_is_made_anew(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	bool is_given_back;
	char path[128];
	struct prog prog, late;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	snprintf(path, sizeof(path), "%s/mrcd.sock", m->dir);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/control.sock", m->dir);
	assert_int_equal(unlink(path), 0);
	worker = worker_go_on(m, &is_given_back);
	assert_non_null(worker);
	assert_int_equal(access(path, F_OK), 0);
	prog_attach(m, worker, &late, "two");
	assert_true(prog_is_served(&prog, worker));
	mrcd_worker_free(worker);
	prog_leave(&late);
	prog_leave(&prog);
}

#define CROWD          64U
#define CROWD_CHANNELS 4U

/* A program that speaks with itself: it has both ends of each of its channels. */
struct member {
	struct prog prog;
	uint32_t ends[CROWD_CHANNELS]; /* of those that it has opened */
	uint32_t end_count, accepted, arrived, answered;
};

static void member_hear(struct member *member)
{
	struct mrc_sqe sqe = {0};
	struct mrc_cqe cqe;

	while (prog_take(&member->prog, &cqe)) {
		assert_int_equal(cqe.status, MRC_STATUS_OK);
		sqe.channel = cqe.channel;
		sqe.number = cqe.number;
		switch (cqe.type) {
		case MRC_CQE_INCOMING:
			sqe.op = MRC_SQE_ACCEPT;
			prog_submit(&member->prog, sqe);
			break;
		case MRC_CQE_CONNECTED:
			if (cqe.user_data != 0)
				member->ends[member->end_count++] = cqe.channel;
			else
				member->accepted++;
			break;
		case MRC_CQE_ARRIVED:
			member->arrived++;
			sqe.op = MRC_SQE_RELEASE;
			prog_submit(&member->prog, sqe);
			break;
		case MRC_CQE_SENT:
			assert_int_equal(cqe.level, MRC_LEVEL_COMMITTED);
			member->answered++;
			break;
		default:
			assert_int_equal(cqe.type, MRC_CQE_LISTENING);
		}
	}
}

static void member_send(const struct member *member)
{
	for (uint32_t i = 0; i < CROWD_CHANNELS; i++)
		prog_submit(&member->prog, (struct mrc_sqe){
						   .op = MRC_SQE_SEND,
						   .level = MRC_LEVEL_COMMITTED,
						   .channel = member->ends[i],
						   .len_bytes = 100 + i,
					   });
}

static void member_begin(struct manager *m, struct mrcd_worker *worker, struct member *member,
			 uint32_t index)
{
	struct mrc_abi_request request = {.op = MRC_ABI_REQ_LISTEN};

	prog_attach(m, worker, &member->prog, "one of many");
	snprintf(request.target, sizeof(request.target), "s%u", index);
	assert_int_equal(send(member->prog.fd, &request, sizeof(request), 0), sizeof(request));
	request.op = MRC_ABI_REQ_CONNECT;
	snprintf(request.target, sizeof(request.target), "a/s%u", index);
	for (uint32_t i = 0; i < CROWD_CHANNELS; i++) {
		request.user_data = i + 1;
		assert_int_equal(send(member->prog.fd, &request, sizeof(request), 0),
				 sizeof(request));
	}
	while (member->end_count < CROWD_CHANNELS || member->accepted < CROWD_CHANNELS) {
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
		member_hear(member);
	}
}

/* Half of what is sent is on its way when the daemon ends, and the rest is said while none is there. */
static void hundreds_of_channels_go_on(void **state)
{
	struct mrcd_conf_service any = {.name = "*", .any = {.is_open = true}};
	struct member *members = calloc(CROWD, sizeof(*members));
	struct manager *m = *state;
	struct mrcd_worker *worker;
	bool is_given_back;
	uint32_t done = 0;

	for (int use = 0; use < MRCD_USES; use++)
		any.of[use].is_open = true;
	m->conf.services = &any;
	m->conf.service_count = 1;
	m->conf.clients.clients_max = CROWD;
	m->conf.clients.channels_max = 2 * CROWD_CHANNELS;
	m->conf.clients.sends_max = 2 * CROWD_CHANNELS;
	worker = worker_start(m);
	for (uint32_t i = 0; i < CROWD; i++)
		member_begin(m, worker, &members[i], i);
	for (uint32_t i = 0; i < CROWD; i++)
		member_send(&members[i]);
	event_base_loop(worker->base, EVLOOP_NONBLOCK);
	worker_leave(worker);
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_int_equal(prog_state(&members[i].prog), MRC_RING_STATE_PAUSED);
		member_send(&members[i]);
	}
	worker = worker_go_on(m, &is_given_back);
	assert_non_null(worker);
	assert_int_equal(mrcd_client_side_count(worker->clients), CROWD);
	while (done < CROWD) {
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
		done = 0;
		for (uint32_t i = 0; i < CROWD; i++) {
			member_hear(&members[i]);
			done += members[i].answered == 2 * CROWD_CHANNELS;
		}
	}
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_int_equal(members[i].arrived, 2 * CROWD_CHANNELS);
		assert_false(prog_is_ended(&members[i].prog));
		prog_leave(&members[i].prog);
	}
	mrcd_worker_free(worker);
	free(members);
}

/* ---- what is the matter is something else ---- */

static void a_daemon_that_cannot_start_leaves_it_as_it_was(void **state)
{
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	bool is_given_back;
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	snprintf(m->conf.rails[0].address, sizeof(m->conf.rails[0].address), "nowhere");
	for (int i = 0; i < 2; i++) {
		assert_null(worker_go_on(m, &is_given_back));
		assert_true(is_given_back);
		assert_int_equal(manager_kept(m), 1);
		assert_false(prog_is_ended(&prog));
		assert_int_equal(prog_state(&prog), MRC_RING_STATE_PAUSED);
	}
	snprintf(m->conf.rails[0].address, sizeof(m->conf.rails[0].address), "127.0.0.1");
	worker = worker_go_on(m, &is_given_back);
	assert_non_null(worker);
	assert_true(prog_is_served(&prog, worker));
	mrcd_worker_free(worker);
	prog_leave(&prog);
}

/* The state with some of its bytes set otherwise, in the place of the one that is kept. */
static void image_forge(struct manager *m, size_t at, const void *bytes, size_t len_bytes)
{
	struct mrcd_parcel *parcels;
	struct mrcd_bundle bundle;
	uint8_t image[16384];
	uint32_t count;
	uint64_t body_bytes;
	uint32_t crc;
	ssize_t len;
	int fd;

	assert_int_equal(mrcd_bundle_take(m->fds, manager_kept(m), UINT64_MAX, &parcels, &count),
			 0);
	manager_forget(m);
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (parcels[i].kind == MRCD_PARCEL_IMAGE) {
			len = pread(parcels[i].fds[0], image, sizeof(image), 0);
			assert_true(len > (ssize_t)(at + len_bytes) &&
				    len < (ssize_t)sizeof(image));
			memcpy(image + at, bytes, len_bytes);
			body_bytes = (uint64_t)len - MRCD_IMAGE_HEADER_BYTES;
			crc = mrcd_crc32c(0, image + MRCD_IMAGE_HEADER_BYTES, body_bytes);
			memcpy(image + 16, &crc, sizeof(crc));
			crc = mrcd_crc32c(0, image, 20);
			memcpy(image + 20, &crc, sizeof(crc));
			fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			assert_true(fd >= 0);
			assert_int_equal(write(fd, image, (size_t)len), len);
			assert_int_equal(fcntl(fd, F_ADD_SEALS,
					       F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW),
					 0);
			close(parcels[i].fds[0]);
			parcels[i].fds[0] = fd;
		}
		assert_int_equal(mrcd_bundle_put(&bundle, &parcels[i]), 0);
	}
	mrcd_parcels_free(parcels, count);
	m->fds[0] = fcntl(bundle.fds[0], F_DUPFD_CLOEXEC, 3);
	m->count = 1;
	mrcd_bundle_fini(&bundle);
}

static void programs_do_not_wait_for_ever_for_one_that_starts(void **state)
{
	const size_t begin_at = MRCD_IMAGE_HEADER_BYTES + MRC_NAME_MAX + 1 + 8;
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	uint64_t begin_ns;
	bool is_given_back;
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	begin_ns = mrcd_worker_clock_ns() - MRCD_HERITAGE_PATIENCE_NS - MRC_MS;
	image_forge(m, begin_at, &begin_ns, sizeof(begin_ns));
	snprintf(m->conf.rails[0].address, sizeof(m->conf.rails[0].address), "nowhere");
	assert_null(worker_go_on(m, &is_given_back));
	assert_false(is_given_back);
	assert_int_equal(manager_kept(m), 0);
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

/* It would fit no better the next time. */
static void what_does_not_fit_is_not_left_for_another_try(void **state)
{
	const size_t boot_id_at = MRCD_IMAGE_HEADER_BYTES + MRC_NAME_MAX + 1;
	const uint64_t boot_id = 1; /* and the engines' is another */
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	bool is_given_back;
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	image_forge(m, boot_id_at, &boot_id, sizeof(boot_id));
	assert_null(worker_go_on(m, &is_given_back));
	assert_false(is_given_back);
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

/* An older daemon after a newer one, as when an upgrade is taken back. */
static void who_has_written_another_version_has_left_nothing(void **state)
{
	const uint32_t version = MRCD_IMAGE_VERSION + 1;
	struct manager *m = *state;
	struct mrcd_worker *worker = worker_start(m);
	uint64_t boot_id = worker->boot_id;
	bool is_given_back;
	struct prog prog;

	prog_attach(m, worker, &prog, "one");
	worker_leave(worker);
	image_forge(m, 4, &version, sizeof(version));
	assert_null(worker_go_on(m, &is_given_back));
	/* Told at once, not when the next daemon is there; and it may come again. */
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
	worker = worker_start(m);
	assert_int_not_equal(worker->boot_id, boot_id);
	prog_attach(m, worker, &prog, "one");
	assert_true(prog_is_served(&prog, worker));
	mrcd_worker_free(worker);
	prog_leave(&prog);
}

/* ---- another configuration ---- */

static void swap_paths(struct mrcd_conf_peer *peer)
{
	struct mrcd_conf_path first = peer->paths[0];

	peer->paths[0] = peer->paths[1];
	peer->paths[1] = first;
}

static void other_address(struct mrcd_conf_peer *peer)
{
	snprintf(peer->paths[1].address, sizeof(peer->paths[1].address), "127.0.0.9");
}

static void other_port(struct mrcd_conf_peer *peer)
{
	peer->paths[0].port = 9;
}

static void other_rail(struct mrcd_conf_peer *peer)
{
	peer->paths[0].rail_index = 1;
}

static void one_less(struct mrcd_conf_peer *peer)
{
	peer->path_count = 1;
}

static void one_more(struct mrcd_conf_peer *peer)
{
	peer->paths[2] = peer->paths[1];
	peer->paths[2].port = 3;
	peer->path_count = 3;
}

static void the_same(struct mrcd_conf_peer *peer)
{
}

/* The engine knows paths by their places: a path that is listed still has the place it had. */
static void paths_have_the_places_they_had(void **state)
{
	static const struct {
		const char *name;
		void (*change)(struct mrcd_conf_peer *peer);
		bool is_kept[2];
	} cases[] = {
		{"the same", the_same, {true, true}},
		{"one more, at the end", one_more, {true, true}},
		{"in another order", swap_paths, {true, true}},
		{"to another address", other_address, {true, false}},
		{"to another port", other_port, {false, true}},
		{"by another rail", other_rail, {false, true}},
		{"one is gone", one_less, {true, false}},
	};
	struct manager *m = *state;
	struct mrcd_conf_peer peer = {
		.name = "b",
		.path_count = 2,
		.paths = {{.rail_index = 0, .address = "127.0.0.2", .port = 1},
			  {.rail_index = 1, .address = "127.0.0.3", .port = 2}},
	};
	struct mrcd_conf_peer now;

	m->conf.rails[1] = m->conf.rails[0];
	snprintf(m->conf.rails[1].name, sizeof(m->conf.rails[1].name), "r1");
	m->conf.rail_count = 2;
	m->conf.peers = &now;
	m->conf.peer_count = 1;
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrcd_heritage *heritage;
		struct mrcd_worker *worker;
		uint32_t marks[2];

		now = peer;
		worker = worker_start(m);
		for (uint8_t p = 0; p < 2; p++)
			marks[p] = mrcd_peer_path_mark(worker->peers[0], p);
		worker_leave(worker);
		heritage = mrcd_heritage_open(m->fds, manager_kept(m), &m->conf);
		manager_forget(m);
		assert_non_null(heritage);
		cases[i].change(&now);
		assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
		assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
		for (uint8_t p = 0; p < 2; p++) {
			bool is_kept = mrcd_peer_path_mark(worker->peers[0], p) == marks[p];

			if (is_kept != cases[i].is_kept[p])
				fail_msg("%s: path %d has %s place", cases[i].name, p,
					 is_kept ? "its" : "another");
		}
		mrcd_worker_free(worker);
		mrcd_heritage_free(heritage);
	}
}

#define handover_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		handover_test(the_next_daemon_is_the_same_to_others),
		handover_test(a_file_that_says_otherwise_now_has_the_last_word),
		handover_test(another_host_takes_nothing),
		handover_test(a_part_of_it_is_nothing),
		handover_test(without_a_manager_nothing_is_left),
		handover_test(a_manager_that_does_not_answer_has_nothing),
		cmocka_unit_test_setup_teardown(a_manager_that_reads_nothing_is_not_waited_for,
						setup_alone, teardown),
		handover_test(a_program_stays_with_whoever_comes),
		handover_test(fewer_descriptors_end_those_that_do_not_fit),
		handover_test(what_was_in_force_is_left_for_programs),
		handover_test(a_manager_says_how_many_it_keeps),
		handover_test(hundreds_of_channels_go_on),
		handover_test(a_socket_that_nobody_could_find_is_made_anew),
		handover_test(a_daemon_that_cannot_start_leaves_it_as_it_was),
		handover_test(programs_do_not_wait_for_ever_for_one_that_starts),
		handover_test(who_has_written_another_version_has_left_nothing),
		handover_test(what_does_not_fit_is_not_left_for_another_try),
		handover_test(paths_have_the_places_they_had),
	};

	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
