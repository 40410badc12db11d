/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon left, and the next one reads: the image of a client side whose program has
 * something of everything, made anew for each input and then changed as the input says.
 *
 * First comes how many changes, and each of them: fields, bytes, the end of it, and which
 * descriptors are whose. Its checksums are made right. Then the program goes on.
 *
 * It is refused with a reason, or a client side that lives with its program, whatever either does
 * next; and all is given back in either case.
 */
#include "../unit/client_handover_lab.h"

#include <endian.h>
#include <signal.h>

#include "fuzz.h"

#define CHANGES_MAX 8U

static struct lab lab;

static void stage_end(void)
{
	lab_end(&lab);
}

static void stage_begin(void)
{
	lab_begin(&lab);
	mrcd_log_set_level(LOG_CRIT);
	signal(SIGPIPE, SIG_IGN); /* as in the daemon: descriptors may be anything here */
	lab_start(&lab);
	atexit(stage_end);
}

static uint64_t field_get(const uint8_t *bytes, size_t field)
{
	uint64_t value;

	memcpy(&value, bytes + 8 * field, sizeof(value));
	return le64toh(value);
}

static void field_set(uint8_t *bytes, size_t field, uint64_t value)
{
	value = htole64(value);
	memcpy(bytes + 8 * field, &value, sizeof(value));
}

/* One parcel of the program's with descriptors of another, or under another name. */
static void parcel_change(struct fuzz_input *in, struct left *left)
{
	struct mrcd_parcel *one = &left->parcels[fuzz_u8(in) % left->parcel_count];
	uint8_t how = fuzz_u8(in);
	uint32_t a, b;
	int fd;

	if (one->kind != MRCD_PARCEL_CLIENT)
		return;
	a = (uint32_t)(how >> 2 & 7) % one->fd_count;
	b = (uint32_t)(how >> 5) % one->fd_count;
	switch (how & 3) {
	case 0:
		one->index = how >> 2;
		break;
	case 1:
		one->kind = how & 4 ? MRCD_PARCEL_PENDING : MRCD_PARCEL_CONTROL;
		break;
	case 2:
		fd = one->fds[a];
		one->fds[a] = one->fds[b];
		one->fds[b] = fd;
		break;
	default:
		if (one->fds[a] >= 0)
			close(one->fds[a]);
		one->fds[a] = -1;
		break;
	}
}

static void change(struct fuzz_input *in, struct left *left)
{
	static uint8_t bytes[LEFT_BYTES_MAX];
	size_t len = left_read(left, bytes);
	uint32_t changes = fuzz_u8(in) % CHANGES_MAX;

	for (uint32_t i = 0; i < changes && len >= 8; i++) {
		uint8_t how = fuzz_u8(in);
		size_t field = (size_t)fuzz_uint(in, 2) % (len / 8);
		uint64_t was = field_get(bytes, field);
		size_t other;

		switch (how % 6) {
		case 0:
		case 1:
			field_set(bytes, field, FUZZ_NEAR(in, was, 0, 1, UINT32_MAX, 1U << 20));
			break;
		case 2:
			bytes[8 * field + (how >> 5)] = fuzz_u8(in);
			break;
		case 3:
			len = 8 * field + (how >> 5);
			break;
		case 4:
			other = (size_t)fuzz_uint(in, 2) % (len / 8);
			field_set(bytes, field, field_get(bytes, other));
			break;
		default:
			parcel_change(in, left);
			break;
		}
	}
	left_write(left, bytes, len);
}

/* What a program does that was told nothing of all this. */
static void go_on(struct fuzz_input *in, struct prog *prog, const struct pipe_end *end)
{
	static const enum mrc_sqe_op ops[] = {MRC_SQE_COMMIT, MRC_SQE_RELEASE, MRC_SQE_REJECT,
					      MRC_SQE_CLOSE};
	struct mrc_cqe cqe;

	for (uint32_t turns = 0; turns < 32 && !fuzz_is_over(in); turns++) {
		uint8_t what = fuzz_u8(in);

		switch (what & 7) {
		case 0:
			prog_send(prog, end, what);
			break;
		case 1:
		case 2:
			prog_verdict(prog, end, ops[what >> 3 & 3], what >> 5);
			break;
		case 3:
			(void)!send(prog->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			break;
		case 4:
			prog_take(prog, &cqe);
			break;
		case 5:
			peer_b.credit = what >> 3;
			lab_perform(&lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, end));
			break;
		default:
			lab_turn(&lab);
			break;
		}
	}
	lab_turn(&lab);
}

/* The lowest descriptor that is free. */
static int fd_free(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	FUZZ_CHECK(fd >= 0);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_input in = {.at = data, .end = data + len};
	char why[MRCD_IMAGE_WHY_BYTES] = "";
	struct pipe_end end;
	struct prog prog;
	struct left left;
	int fd, r;

	if (lab.worker.clients == NULL)
		stage_begin();
	fd = fd_free();
	peer_b.id_next = 0;
	peer_b.number_next = 0;
	end = prog_busy(&lab, &prog);
	lab_leave(&lab, &left);
	change(&in, &left);
	r = lab_try(&lab, &left, peers_now, why);
	if (r == 0) {
		mrcd_client_side_resume(lab.worker.clients);
		go_on(&in, &prog, &end);
	}
	/* -ENOMEM and the kernel's answers say themselves why. */
	FUZZ_CHECK(r == 0 || why[0] != '\0');
	left_free(&left);
	prog_leave(&prog);
	lab_turn(&lab);
	mrcd_client_side_free(lab.worker.clients);
	mrcd_region_free_all(&lab.worker);
	peer_b.credit = UINT32_MAX;
	lab_start(&lab);
	FUZZ_CHECK(fd_free() == fd);
	return 0;
}
