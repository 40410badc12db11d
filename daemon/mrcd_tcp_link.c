/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "mrcd_crc.h"
#include "mrcd_sigbus.h"
#include "mrcd_tcp.h"

#define IOVECS_MAX      64
#define WRITE_BYTES_MAX (512U * 1024U) /* of one call */
#define WRITES_PER_TURN 2
/* A frame of no more is copied together with its neighbours: to gather its parts costs the kernel more. */
#define SMALL_BYTES  512U
#define OUTBOX_BYTES (16U * 1024U) /* of them in one call */

/* What is sent in place of payload that is no longer ours to read. Never written. */
static const uint8_t zeros[MRC_FRAG_BYTES_MAX];
static const uint8_t tail_cut = MRCD_TCP_TAIL_CUT, tail_whole = MRCD_TCP_TAIL_WHOLE;

/* ---- life ---- */

static void link_read(struct mrcd_tcp_link *link)
{
	struct mrcd_peer *peer = link->link.peer;
	struct mrcd_tcp_failure failure;

	mrcd_worker_now(link->tcp->rail->worker);
	if (mrcd_tcp_recv(link, &failure))
		mrcd_peer_pump(peer);
	else
		mrcd_tcp_link_down(link, failure.reason, failure.why);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	link_read(context);
}

static void on_lookout(struct mrcd_lookout_source *source)
{
	struct mrcd_tcp_link *link =
		(void *)((char *)source - offsetof(struct mrcd_tcp_link, lookout_source));

	/* Another source of the same look may have closed it. */
	if (link->fd >= 0)
		link_read(link);
}

static void on_down(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp_link *link = context;

	mrcd_worker_now(link->tcp->rail->worker);
	mrcd_tcp_link_down(link, MRC_REASON_ERROR, strerror(link->write_error));
}

static void link_write(struct mrcd_tcp_link *link);

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_tcp_link *link = context;
	struct mrcd_peer *peer = link->link.peer;

	mrcd_worker_now(link->tcp->rail->worker);
	link_write(link);
	mrcd_peer_pump(peer);
}

bool mrcd_tcp_link_resends(const struct mrcd_link *link, uint64_t *sent_out, uint64_t *resent_out)
{
	return mrcd_tcp_resends(((const struct mrcd_tcp_link *)link)->fd, sent_out, resent_out);
}

const struct mrcd_link_ops mrcd_tcp_link_ops = {
	.kind = "tcp",
	.post = mrcd_tcp_post,
	.flush = mrcd_tcp_flush,
	.strip = mrcd_tcp_strip,
	.fence = mrcd_tcp_fence,
	.resends = mrcd_tcp_link_resends,
};

int mrcd_tcp_link_new(struct mrcd_tcp *tcp, int fd, struct mrcd_peer *peer, uint8_t path_index,
		      const struct mrc_auth *auth, struct mrcd_tcp_link **link_out)
{
	struct event_base *base = tcp->rail->worker->base;
	struct mrcd_tcp_link *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	if (mrcd_outq_init(&link->outq, mrcd_outq_frames_max(&tcp->rail->worker->conf->limits)) <
	    0) {
		free(link);
		return -ENOMEM;
	}
	link->link = (struct mrcd_link){
		.ops = tcp->link_ops,
		.rail = tcp->rail,
		.peer = peer,
		.path_index = path_index,
		.conn_epoch = auth->conn_epoch,
		.path_epoch = auth->path_epoch,
	};
	link->tcp = tcp;
	link->fd = fd;
	link->lookout_source.on_readable = on_lookout;
	event_assign(&link->read_event, base, fd, EV_READ | EV_PERSIST, on_readable, link);
	event_assign(&link->write_event, base, fd, EV_WRITE, on_writable, link);
	event_assign(&link->down_event, base, -1, 0, on_down, link);
	LIST_INSERT_HEAD(&tcp->links, link, entry);
	*link_out = link;
	return 0;
}

void mrcd_tcp_link_listen(struct mrcd_tcp_link *link, bool does_listen)
{
	struct mrcd_lookout *lookout = link->tcp->rail->worker->lookout;

	if (does_listen) {
		event_add(&link->read_event, NULL);
		mrcd_lookout_add(lookout, link->fd, &link->lookout_source, false);
	} else {
		event_del(&link->read_event);
		mrcd_lookout_remove(lookout, link->fd);
	}
}

void mrcd_tcp_link_start(struct mrcd_tcp_link *link)
{
	/* It may have been fenced in the call that took it up. */
	if (link->fd >= 0)
		mrcd_tcp_link_listen(link, true);
}

static void link_free(struct mrcd_tcp_link *link)
{
	LIST_REMOVE(link, entry);
	mrcd_tcp_seal_free(link->seal);
	mrcd_outq_fini(&link->outq);
	free(link);
}

void mrcd_tcp_link_close(struct mrcd_tcp_link *link)
{
	struct mrcd_tcp *tcp = link->tcp;

	if (link->fd < 0)
		return;
	mrcd_tcp_link_listen(link, false);
	event_del(&link->write_event);
	event_del(&link->down_event);
	if (link->link.is_mute || !tcp->rail->is_carrier_up || tcp->is_cut)
		mrcd_tcp_hush(link->fd);
	mrcd_tcp_abort(link->fd);
	link->fd = -1;
	LIST_REMOVE(link, entry);
	LIST_INSERT_HEAD(&tcp->dead, link, entry);
	/* Not at once: a caller further up may hold it. Of a closed rail nobody is inside. */
	if (!tcp->is_closed)
		event_active(&tcp->reap_event, EV_TIMEOUT, 0);
}

void mrcd_tcp_reap(struct mrcd_tcp *tcp)
{
	while (!LIST_EMPTY(&tcp->dead))
		/* It takes itself off the list; the analyzer does not see that the head moves. */
		link_free(LIST_FIRST(&tcp->dead)); /* NOLINT(clang-analyzer-unix.Malloc) */
	if (!tcp->is_closed || !LIST_EMPTY(&tcp->links))
		return;
	free(tcp->staging);
	free(tcp->scratch);
	free(tcp->records);
	free(tcp);
}

void mrcd_tcp_link_down(struct mrcd_tcp_link *link, enum mrc_path_reason reason, const char *why)
{
	struct mrcd_tcp *tcp = link->tcp;

	if (link->fd < 0)
		return;
	mrcd_tcp_link_close(link);
	mrcd_link_on_down(&link->link, reason, why);
	if (tcp->is_closed)
		mrcd_tcp_reap(tcp);
}

void mrcd_tcp_fence(struct mrcd_link *base)
{
	struct mrcd_tcp_link *link = mrcd_tcp_link_of(base);
	struct mrcd_tcp *tcp = link->tcp;

	if (link->fd < 0)
		return;
	/* Reads go through this process: once the socket is closed nothing can land. */
	mrcd_tcp_link_close(link);
	mrcd_link_on_fenced(base);
	if (tcp->is_closed)
		mrcd_tcp_reap(tcp);
}

/* ---- sending ---- */

void mrcd_tcp_post(struct mrcd_link *base, const struct mrc_act_post *post)
{
	struct mrcd_frame *frame = mrcd_outq_push(&mrcd_tcp_link_of(base)->outq, post);

	if (mrcd_tcp_has_tail(&frame->hdr))
		frame->tail_len = 1;
}

void mrcd_tcp_strip(struct mrcd_link *base)
{
	mrcd_outq_strip(&mrcd_tcp_link_of(base)->outq);
}

static const uint8_t *payload_of(struct mrcd_tcp_link *link, const struct mrcd_frame *frame)
{
	if (frame->is_void)
		return NULL;
	return mrcd_send_memory(link->tcp->rail->worker, frame->channel_cookie, frame->payload_addr,
				frame->payload_len);
}

/* As late as can be: the bytes are then in the cache when the socket copies them. */
static void frame_encode(struct mrcd_frame *frame, const uint8_t *payload)
{
	uint32_t crc = 0;

	if (frame->payload_len) {
		if (!(frame->hdr.flags & MRC_WIRE_F_UNCHECKED))
			crc = mrcd_crc32c(0, payload, frame->payload_len);
	} else {
		crc = mrcd_crc32c(0, frame->body, frame->body_len);
		crc = mrcd_crc32c(crc, mrcd_padding(), frame->pad_len);
	}
	frame->hdr.body_crc = crc;
	mrc_wire_encode(&frame->hdr, mrcd_crc32c, frame->wire);
	frame->is_encoded = true;
}

/* Make a frame ready; answers its payload, if it has any left to send. */
static const uint8_t *frame_ready(struct mrcd_tcp_link *link, struct mrcd_frame *frame)
{
	const uint8_t *payload = NULL;

	if (frame->payload_len) {
		payload = payload_of(link, frame);
		if (!payload)
			mrcd_frame_strip(frame); /* its client is gone */
	}
	if (!frame->is_encoded)
		frame_encode(frame, payload);
	return payload ? payload : zeros;
}

/* Adds `part`, of which *skip bytes or more are done; *skip counts down. */
static int part_add(struct iovec *iov, int count, const uint8_t *part, uint32_t len, uint32_t *skip)
{
	uint32_t skipped = MRC_MIN(*skip, len);

	*skip -= skipped;
	if (skipped == len)
		return count;
	iov[count].iov_base = (void *)(uintptr_t)(part + skipped); /* sendmsg only reads */
	iov[count].iov_len = len - skipped;
	return count + 1;
}

int mrcd_tcp_frame_parts(struct mrcd_tcp_link *link, struct mrcd_frame *frame,
			 struct iovec parts[MRCD_TCP_PARTS])
{
	const uint8_t *payload = frame_ready(link, frame);
	uint32_t skip = frame->done;
	int count = 0;

	count = part_add(parts, count, frame->wire, MRC_WIRE_HDR_BYTES, &skip);
	if (frame->payload_len) {
		count = part_add(parts, count, payload, frame->payload_len, &skip);
		return part_add(parts, count, frame->is_void ? &tail_cut : &tail_whole,
				frame->tail_len, &skip);
	}
	count = part_add(parts, count, frame->body, frame->body_len, &skip);
	return part_add(parts, count, mrcd_padding(), frame->pad_len, &skip);
}

/* Small frames of one call, one behind the other. */
struct outbox {
	uint32_t used;
	uint8_t bytes[OUTBOX_BYTES];
};

/* All parts of a small frame, as one, or as the end of the one before. Answers how many there are now. */
static int outbox_add(struct outbox *outbox, const struct iovec *parts, int part_count,
		      struct iovec *iov, int count)
{
	uint8_t *begin = outbox->bytes + outbox->used;
	size_t len = 0;

	for (int i = 0; i < part_count; i++) {
		memcpy(begin + len, parts[i].iov_base, parts[i].iov_len);
		len += parts[i].iov_len;
	}
	outbox->used += (uint32_t)len;
	if (count && (uint8_t *)iov[count - 1].iov_base + iov[count - 1].iov_len == begin) {
		iov[count - 1].iov_len += len;
		return count;
	}
	iov[count] = (struct iovec){begin, len};
	return count + 1;
}

/* What is sent next, as one call. */
static int batch_make(struct mrcd_tcp_link *link, struct outbox *outbox,
		      struct iovec iov[IOVECS_MAX], size_t *len_out)
{
	size_t len = 0;
	int count = 0;

	outbox->used = 0;
	for (struct mrcd_frame *frame = link->outq.first; frame; frame = frame->next) {
		struct iovec parts[MRCD_TCP_PARTS];

		if (count + MRCD_TCP_PARTS > IOVECS_MAX || len >= WRITE_BYTES_MAX)
			break;
		if (mrcd_frame_len(frame) > SMALL_BYTES) {
			count += mrcd_tcp_frame_parts(link, frame, iov + count);
		} else {
			if (outbox->used + SMALL_BYTES > OUTBOX_BYTES)
				break;
			count = outbox_add(outbox, parts, mrcd_tcp_frame_parts(link, frame, parts),
					   iov, count);
		}
		len += mrcd_frame_len(frame) - frame->done;
	}
	*len_out = len;
	return count;
}

void mrcd_tcp_taken(struct mrcd_tcp_link *link, size_t len)
{
	struct mrcd_rail *rail = link->tcp->rail;

	while (len > 0) {
		struct mrcd_frame *frame = link->outq.first;
		uint32_t left = mrcd_frame_len(frame) - frame->done;

		if (len < left) {
			frame->done += (uint32_t)len;
			return;
		}
		len -= left;
		rail->frames_sent++;
		rail->bytes_sent += frame->payload_len;
		link->sent_count++;
		mrcd_outq_pop(&link->outq);
	}
}

/* So many bytes of it, at least one; answers the parts that are left. */
static size_t iovec_cut(struct iovec *iov, size_t count, size_t len_max)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		if (len + iov[i].iov_len >= len_max) {
			iov[i].iov_len = len_max - len;
			return i + 1;
		}
		len += iov[i].iov_len;
	}
	return count;
}

/* Frames are done with as soon as they are sealed. */
static size_t sealed_send(struct mrcd_tcp_link *link, size_t len_max)
{
	bool is_full = false;
	size_t total = 0;

	for (int i = 0;
	     i < WRITES_PER_TURN && !is_full && total < len_max && mrcd_tcp_link_is_waiting(link);
	     i++) {
		ssize_t n = mrcd_tcp_seal_send(link, len_max - total, &is_full);

		if (n < 0) {
			link->write_error = (int)-n;
			event_active(&link->down_event, EV_TIMEOUT, 0);
			return total;
		}
		total += (size_t)n;
	}
	return total;
}

/* Up to len_max bytes; SIZE_MAX, which the compiler sees, asks nothing more. Answers how many. */
static inline __attribute__((always_inline)) size_t open_send(struct mrcd_tcp_link *link,
							      size_t len_max)
{
	bool is_careful = false;
	size_t total = 0;

	for (int i = 0; i < WRITES_PER_TURN && link->outq.count && total < len_max; i++) {
		struct iovec iov[IOVECS_MAX];
		struct msghdr msg = {.msg_iov = iov};
		struct outbox outbox; /* not cleared: 16 KiB */
		size_t len;
		ssize_t n;

		msg.msg_iovlen = (size_t)batch_make(link, &outbox, iov, &len);
		MRC_ASSERT(msg.msg_iovlen > 0);
		if (len > len_max - total) {
			len = len_max - total;
			msg.msg_iovlen = iovec_cut(iov, msg.msg_iovlen, len);
		}
		if (is_careful) {
			msg.msg_iovlen = 1;
			len = iov[0].iov_len;
		}
		n = sendmsg(link->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EFAULT) {
			/* A client took pages out of its send arena. That is its message's loss;
			 * the link is everybody's. One part at a time shows whose it is. */
			if (msg.msg_iovlen == 1) {
				mrcd_sigbus_report(iov[0].iov_base);
				mrcd_frame_strip(link->outq.first);
			}
			is_careful = true;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			link->write_error = errno;
			event_active(&link->down_event, EV_TIMEOUT, 0);
			return total;
		}
		if (n > 0)
			mrcd_tcp_taken(link, (size_t)n);
		total += n > 0 ? (size_t)n : 0;
		if (n < (ssize_t)len)
			break;
	}
	return total;
}

static inline __attribute__((always_inline)) size_t link_send(struct mrcd_tcp_link *link,
							      size_t len_max)
{
	uint64_t sent_before = link->sent_count;
	size_t total = link->seal ? sealed_send(link, len_max) : open_send(link, len_max);

	if (link->sent_count != sent_before)
		mrcd_link_on_sent(&link->link, link->sent_count);
	return total;
}

static void link_write(struct mrcd_tcp_link *link)
{
	link_send(link, SIZE_MAX);
	if (mrcd_tcp_link_is_waiting(link) && !link->write_error)
		event_add(&link->write_event, NULL);
}

size_t mrcd_tcp_link_write_part(struct mrcd_tcp_link *link, size_t len_max)
{
	return link->fd < 0 || link->write_error ? 0 : link_send(link, len_max);
}

void mrcd_tcp_flush(struct mrcd_link *base)
{
	struct mrcd_tcp_link *link = mrcd_tcp_link_of(base);

	/* While the socket is full, its event writes. */
	if (link->fd < 0 || link->write_error || event_pending(&link->write_event, EV_WRITE, NULL))
		return;
	link_write(link);
}
