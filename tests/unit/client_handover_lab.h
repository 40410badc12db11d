/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client_handover_lab - a client side leaves, and another one takes over what it left
 *
 * On top of client_side_lab.h, and included by one source only as that is.
 */
#ifndef CLIENT_HANDOVER_LAB_H
#define CLIENT_HANDOVER_LAB_H

#include "client_side_lab.h"

#include "mrcd_client_impl.h"

#define LEFT_BYTES_MAX 65536U /* of an image without its header */

static struct mrcd_peer *const peers_now[] = {&loop_end, &peer_b, &peer_c};

/* What is on its way from one to the other. */
struct left {
	struct mrcd_parcel *parcels;
	uint32_t parcel_count;
	int image_fd;
};

static inline void lab_leave(struct lab *lab, struct left *left)
{
	struct mrcd_client_side *side = lab->worker.clients;
	struct mrcd_parcel image = {.kind = MRCD_PARCEL_IMAGE, .fd_count = 1};
	struct mrcd_bundle bundle;
	struct mrcd_image_out out;

	mrcd_worker_now(&lab->worker);
	mrcd_bundle_begin(&bundle, MRCD_BUNDLES_MAX);
	mrcd_client_side_pause(side);
	while (mrcd_client_side_settle(side))
		;
	assert_int_equal(mrcd_bundle_keep_spare(&bundle), 0);
	assert_int_equal(mrcd_client_side_pack(side, &bundle), 0);
	mrcd_bundle_use_spare(&bundle);
	while (mrcd_client_side_settle(side))
		;
	mrcd_image_begin(&out);
	mrcd_client_side_save(side, peers_now, MRC_ARRAY_LEN(peers_now), &out);
	assert_int_equal(mrcd_image_seal(&out, &left->image_fd), 0);
	mrcd_image_fini(&out);
	image.fds[0] = left->image_fd;
	assert_int_equal(mrcd_bundle_put(&bundle, &image), 0);
	mrcd_client_side_leave(side);
	mrcd_client_side_free(side);
	mrcd_region_free_all(&lab->worker);
	lab->worker.clients = NULL;
	assert_int_equal(mrcd_bundle_take(bundle.fds, bundle.count, UINT64_MAX, &left->parcels,
					  &left->parcel_count),
			 0);
	mrcd_bundle_fini(&bundle);
}

static inline void left_free(struct left *left)
{
	mrcd_parcels_free(left->parcels, left->parcel_count);
	close(left->image_fd);
}

/* The image without its header; how many bytes. */
static inline size_t left_read(const struct left *left, uint8_t bytes[LEFT_BYTES_MAX])
{
	ssize_t len = pread(left->image_fd, bytes, LEFT_BYTES_MAX, MRCD_IMAGE_HEADER_BYTES);

	assert_true(len > 0 && len < (ssize_t)LEFT_BYTES_MAX);
	return (size_t)len;
}

/* Another image in its place, with a header that fits. */
static inline void left_write(struct left *left, const uint8_t *bytes, size_t len)
{
	struct mrcd_image_out out;

	mrcd_image_begin(&out);
	mrcd_image_put_bytes(&out, bytes, len);
	close(left->image_fd);
	assert_int_equal(mrcd_image_seal(&out, &left->image_fd), 0);
	mrcd_image_fini(&out);
}

/* Attached, with something of everything: a service, a channel, sends here and there, arrivals. */
static inline struct pipe_end prog_busy(struct lab *lab, struct prog *prog)
{
	struct pipe_end end;

	peer_b.event_count = 0;
	prog_attach(lab, prog, "one");
	end = prog_open(lab, prog, "b");
	prog_request(prog, MRC_ABI_REQ_LISTEN, "tea", 0, 5);
	peer_b.credit = 1;
	prog_send(prog, &end, 1);
	prog_send(prog, &end, 2);
	lab_turn(lab);
	lab_deliver_large(lab, &end, 0, 5000);
	lab_deliver_eager(lab, &end, 1, 0, 10);
	return end;
}

/* The next daemon, up to where it would run. */
static inline int lab_try(struct lab *lab, struct left *left, struct mrcd_peer *const *peers,
			  char why[MRCD_IMAGE_WHY_BYTES])
{
	struct mrcd_parcel *parcel;
	struct mrcd_image_in in;
	uint32_t at = 0;
	int listen_fd = -1, r;

	parcel = mrcd_parcel_next(left->parcels, left->parcel_count, MRCD_PARCEL_LISTEN, &at);
	if (parcel != NULL) {
		listen_fd = parcel->fds[0];
		parcel->fds[0] = -1;
	}
	assert_int_equal(mrcd_client_side_new(&lab->worker, listen_fd, &lab->worker.clients), 0);
	mrcd_client_side_own(lab->worker.clients);
	r = mrcd_image_open(&in, left->image_fd, why);
	assert_int_equal(r, 0);
	r = mrcd_client_side_restore(lab->worker.clients, peers, MRC_ARRAY_LEN(peers_now), &in,
				     left->parcels, left->parcel_count, why);
	mrcd_image_close(&in);
	return r;
}

#endif
