/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_bundle: descriptors lie in a socket's queue, all of them, once. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_bundle.h"

/* A memfd of so many bytes: that is how it is known again. */
static int fd_new(off_t bytes)
{
	int fd = memfd_create("parcel", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

static off_t fd_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void put_client(struct mrcd_bundle *bundle, uint32_t index, uint32_t fd_count)
{
	struct mrcd_parcel parcel = {
		.kind = MRCD_PARCEL_CLIENT,
		.index = index,
		.fd_count = fd_count,
	};

	for (uint32_t i = 0; i < fd_count; i++)
		parcel.fds[i] = fd_new(index + 100000 * i);
	assert_int_equal(mrcd_bundle_put(bundle, &parcel), 0);
	/* Still the caller's, who has no need of them any more. */
	for (uint32_t i = 0; i < fd_count; i++)
		close(parcel.fds[i]);
}

static void bundle_gives_back_what_was_put_once(void **state)
{
	struct mrcd_parcel *parcels, *parcel;
	struct mrcd_bundle bundle;
	uint32_t count, at = 0;

	(void)state;
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	put_client(&bundle, 7, 2);
	put_client(&bundle, 8, 2);
	assert_int_equal(bundle.count, 1);
	assert_int_equal(bundle.parcel_count, 2);
	/* Whoever filled it may be gone. */
	close(bundle.write_fd);
	bundle.write_fd = -1;
	assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, UINT64_MAX, &parcels, &count),
			 0);
	assert_int_equal(count, 2);
	assert_null(mrcd_parcel_next(parcels, count, MRCD_PARCEL_IMAGE, &at));
	at = 0;
	for (uint32_t i = 7; i < 9; i++) {
		parcel = mrcd_parcel_next(parcels, count, MRCD_PARCEL_CLIENT, &at);
		assert_non_null(parcel);
		assert_int_equal(parcel->index, i);
		assert_int_equal(parcel->fd_count, 2);
		assert_int_equal(fd_bytes(parcel->fds[0]), i);
		assert_int_equal(fd_bytes(parcel->fds[1]), i + 100000);
		assert_int_equal(fcntl(parcel->fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	assert_null(mrcd_parcel_next(parcels, count, MRCD_PARCEL_CLIENT, &at));
	mrcd_parcels_free(parcels, count);
	assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, UINT64_MAX, &parcels, &count),
			 0);
	assert_int_equal(count, 0);
	mrcd_parcels_free(parcels, count);
	mrcd_bundle_fini(&bundle);
}

/* More than one queue takes: several sockets, and nothing is missing. */
static void bundle_grows_by_sockets(void **state)
{
	const uint32_t clients = 6000;
	bool *seen = calloc(clients, sizeof(*seen));
	struct rlimit limit;
	struct mrcd_parcel *parcels;
	struct mrcd_bundle bundle;
	uint32_t count;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < clients + 100)
		skip();
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (uint32_t i = 0; i < clients; i++)
		put_client(&bundle, i, 1);
	assert_true(bundle.count > 1);
	/* A manager may pass them in another order. */
	for (uint32_t i = 0; i < bundle.count / 2; i++) {
		int fd = bundle.fds[i];

		bundle.fds[i] = bundle.fds[bundle.count - 1 - i];
		bundle.fds[bundle.count - 1 - i] = fd;
	}
	assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, UINT64_MAX, &parcels, &count),
			 0);
	assert_int_equal(count, clients);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(parcels[i].index < clients);
		assert_false(seen[parcels[i].index]);
		seen[parcels[i].index] = true;
		assert_int_equal(fd_bytes(parcels[i].fds[0]), parcels[i].index);
	}
	mrcd_parcels_free(parcels, count);
	mrcd_bundle_fini(&bundle);
	free(seen);
}

static void bundle_has_a_bound(void **state)
{
	struct mrcd_parcel parcel = {.kind = MRCD_PARCEL_PENDING, .fd_count = 1};
	struct mrcd_bundle bundle;
	int r = 0;

	(void)state;
	parcel.fds[0] = fd_new(1);
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	while (r == 0 && bundle.parcel_count < 1000000)
		r = mrcd_bundle_put(&bundle, &parcel);
	/* Whichever comes first: our bound, or the kernel's on descriptors under way (not root's). */
	assert_true(r == -ENOSPC || r == -ETOOMANYREFS);
	assert_true(bundle.count <= MRCD_BUNDLES_MAX);
	mrcd_bundle_fini(&bundle);
	close(parcel.fds[0]);
}

static void bundle_refuses_what_is_no_parcel(void **state)
{
	static const char words[12] = "not a parcel";
	struct mrcd_parcel *parcels;
	uint32_t count;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[1], words, sizeof(words), 0), sizeof(words));
	assert_int_equal(mrcd_bundle_take(pair, 1, UINT64_MAX, &parcels, &count), -EPROTO);
	close(pair[0]);
	close(pair[1]);
	/* Nor is something that is no socket. */
	pair[0] = fd_new(10);
	assert_int_equal(mrcd_bundle_take(pair, 1, UINT64_MAX, &parcels, &count), -ENOTSOCK);
	close(pair[0]);
}

/* More descriptors than a parcel has, as a daemon of another version might put; none is kept open. */
static void bundle_refuses_a_parcel_that_is_too_large(void **state)
{
	struct {
		uint32_t magic, kind, index;
	} label = {0x5043524dU, MRCD_PARCEL_CLIENT, 0};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * (MRCD_PARCEL_FDS_MAX + 1))];
	} control = {0};
	struct iovec iov = {.iov_base = &label, .iov_len = sizeof(label)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = &control.align;
	int fds[MRCD_PARCEL_FDS_MAX + 1], pair[2], lowest;
	struct mrcd_parcel *parcels;
	uint32_t count;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(fds); i++)
		fds[i] = pair[1];
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	lowest = fd_new(1);
	close(lowest);
	assert_int_equal(sendmsg(pair[1], &msg, 0), sizeof(label));
	assert_int_equal(mrcd_bundle_take(pair, 1, UINT64_MAX, &parcels, &count), -EPROTO);
	fds[0] = fd_new(1);
	assert_int_equal(fds[0], lowest);
	close(fds[0]);
	close(pair[0]);
	close(pair[1]);
}

/* Whoever has got its sockets meanwhile finds nothing, and what lay in there is closed. */
static void bundle_can_be_taken_back(void **state)
{
	struct mrcd_parcel parcel = {.kind = MRCD_PARCEL_CLIENT, .fd_count = 1};
	struct mrcd_parcel *parcels;
	struct mrcd_bundle bundle;
	int ends[2], elsewhere;
	uint32_t count;
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	parcel.fds[0] = ends[1];
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mrcd_bundle_put(&bundle, &parcel), 0);
	close(ends[1]);
	elsewhere = dup(bundle.fds[0]);
	mrcd_bundle_take_back(&bundle);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	mrcd_bundle_fini(&bundle);
	assert_int_equal(mrcd_bundle_take(&elsewhere, 1, UINT64_MAX, &parcels, &count), 0);
	assert_int_equal(count, 0);
	mrcd_parcels_free(parcels, count);
	close(elsewhere);
	close(ends[0]);
}

/* The kernel's bound is hit by the parcels, and not by what has to follow them. */
static void bundle_keeps_room_for_its_end(void **state)
{
	const uid_t nobody = 64323; /* whose account is his alone */
	struct mrcd_parcel parcel = {.kind = MRCD_PARCEL_CLIENT, .fd_count = MRCD_PARCEL_FDS_MAX};
	struct rlimit limit, less;
	struct mrcd_bundle bundle, store;
	int r = 0;

	(void)state;
	if (geteuid() != 0) {
		print_message("an account of its own takes root\n");
		skip();
	}
	for (uint32_t i = 0; i < parcel.fd_count; i++)
		parcel.fds[i] = fd_new(1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	less = (struct rlimit){.rlim_cur = 300, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	assert_int_equal(syscall(SYS_setresuid, nobody, nobody, 0), 0);
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	mrcd_bundle_begin(&store, MRCD_BUNDLES_MAX);
	assert_int_equal(mrcd_bundle_keep_spare(&bundle), 0);
	while (r == 0 && bundle.parcel_count < 1000)
		r = mrcd_bundle_put(&bundle, &parcel);
	assert_int_equal(r, -ETOOMANYREFS);
	assert_true(bundle.parcel_count > 10);
	mrcd_bundle_use_spare(&bundle);
	/* The state; what stands for the message to the manager, with as many as there can be; and one more. */
	parcel.fd_count = 1;
	assert_int_equal(mrcd_bundle_put(&bundle, &parcel), 0);
	for (uint32_t i = 0; i <= MRCD_BUNDLES_MAX; i++)
		assert_int_equal(mrcd_bundle_put(&store, &parcel), 0);
	mrcd_bundle_fini(&store);
	mrcd_bundle_fini(&bundle);
	assert_int_equal(syscall(SYS_setresuid, 0, 0, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (uint32_t i = 0; i < MRCD_PARCEL_FDS_MAX; i++)
		close(parcel.fds[i]);
}

/* However few sockets the manager keeps, the state itself has room in them. */
static void bundle_has_room_for_the_state_at_its_end(void **state)
{
	const struct mrcd_parcel image = {.kind = MRCD_PARCEL_IMAGE, .fd_count = 1, .fds = {0}};

	(void)state;
	for (uint32_t count_max = 1; count_max <= 2; count_max++) {
		struct mrcd_parcel *parcels, parcel = {.kind = MRCD_PARCEL_CLIENT, .fd_count = 1};
		struct mrcd_bundle bundle;
		uint32_t put = 0, count, at = 0;
		int r = 0;

		mrcd_bundle_begin(&bundle, count_max);
		while (r == 0 && put < 100000) {
			parcel.index = put;
			r = mrcd_bundle_put(&bundle, &parcel);
			put += r == 0;
		}
		assert_int_equal(r, -ENOSPC);
		assert_int_equal(bundle.count, count_max);
		assert_int_equal(mrcd_bundle_put(&bundle, &image), 0);
		assert_int_equal(bundle.count, count_max);
		assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, UINT64_MAX, &parcels,
						  &count),
				 0);
		assert_int_equal(count, put + 1);
		assert_non_null(mrcd_parcel_next(parcels, count, MRCD_PARCEL_IMAGE, &at));
		mrcd_parcels_free(parcels, count);
		mrcd_bundle_fini(&bundle);
	}
}

/* Where there are too few descriptors the last programs are lost, and nothing of the daemon's own. */
static void bundle_leaves_the_daemon_its_own(void **state)
{
	struct mrcd_parcel image = {.kind = MRCD_PARCEL_IMAGE, .fd_count = 1};
	struct mrcd_parcel *parcels, *parcel;
	struct mrcd_bundle bundle;
	uint32_t count, at = 0, taken = 0;
	int own[3 * 4 + 2], end, fd;

	(void)state;
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	for (uint32_t i = 0; i < 10; i++)
		put_client(&bundle, i, 3);
	image.fds[0] = fd_new(77);
	assert_int_equal(mrcd_bundle_put(&bundle, &image), 0);
	close(image.fds[0]);
	/* For four of them, and a third of one: numbers lower than that may be taken. */
	for (size_t i = 0; i < MRC_ARRAY_LEN(own); i++)
		own[i] = fd_new(1);
	end = own[MRC_ARRAY_LEN(own) - 1];
	for (size_t i = 0; i < MRC_ARRAY_LEN(own); i++)
		close(own[i]);
	assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, (uint64_t)end, &parcels,
					  &count),
			 0);
	assert_int_equal(count, 11);
	while ((parcel = mrcd_parcel_next(parcels, count, MRCD_PARCEL_CLIENT, &at)) != NULL) {
		assert_int_equal(parcel->is_lost, parcel->index >= 4);
		for (uint32_t i = 0; i < 3; i++) {
			off_t bytes = parcel->index + 100000 * i;

			if (parcel->is_lost) {
				assert_int_equal(parcel->fds[i], -1);
				assert_int_equal(parcel->fd_bytes[i], bytes);
			} else {
				assert_true(parcel->fds[i] < end);
				assert_int_equal(fd_bytes(parcel->fds[i]), bytes);
			}
		}
		taken += !parcel->is_lost;
	}
	assert_int_equal(taken, 4);
	at = 0;
	parcel = mrcd_parcel_next(parcels, count, MRCD_PARCEL_IMAGE, &at);
	assert_non_null(parcel);
	assert_int_equal(fd_bytes(parcel->fds[0]), 77);
	/* What was lost is closed: of the five only the image has its place. */
	fd = fd_new(1);
	assert_true(fd <= end);
	close(fd);
	mrcd_parcels_free(parcels, count);
	mrcd_bundle_fini(&bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bundle_gives_back_what_was_put_once),
		cmocka_unit_test(bundle_grows_by_sockets),
		cmocka_unit_test(bundle_has_a_bound),
		cmocka_unit_test(bundle_refuses_what_is_no_parcel),
		cmocka_unit_test(bundle_refuses_a_parcel_that_is_too_large),
		cmocka_unit_test(bundle_can_be_taken_back),
		cmocka_unit_test(bundle_keeps_room_for_its_end),
		cmocka_unit_test(bundle_has_room_for_the_state_at_its_end),
		cmocka_unit_test(bundle_leaves_the_daemon_its_own),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
