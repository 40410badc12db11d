/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stranger - everything that may come in on a rail's port and should not
 *
 *	stranger SOURCE ADDRESS PORT hello KEYFILE   handshakes with every field out of range; each must be refused
 *	stranger SOURCE ADDRESS PORT frames KEYFILE  proves the key, then sends frames with every field out of range
 *
 * It speaks as host "0evil" to host "a", from the address SOURCE. "hello" does
 * not use the key: its proofs are junk. Exit: 0 all as it should be, 1 not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcd_auth.h"
#include "mrcd_crc.h"

#define HOST         "0evil"
#define TO_HOST      "a"
#define PATIENCE_MS  20000 /* for an answer; a daemon under valgrind or a sanitizer is slow */
#define VERDICT_MS   2
#define FRAME_MAX    (MRC_WIRE_HDR_BYTES + 4096U)
#define HELLO_BYTES  (MRC_WIRE_HDR_BYTES + MRC_HELLO_BODY_BYTES)
#define ANSWER_BYTES (HELLO_BYTES + MRC_HELLO_MAC_BYTES)
#define AUTH_BYTES   (MRC_WIRE_HDR_BYTES + MRC_AUTH_BODY_BYTES + MRC_HELLO_MAC_BYTES)

static struct sockaddr_in source, target;
static struct mrcd_key key;
static uint64_t boot_id;
static unsigned case_count, dial_count;

static void fail(const char *what)
{
	fprintf(stderr, "stranger: case %u: %s: %s\n", case_count, what, strerror(errno));
	exit(1);
}

static int dial(void)
{
	const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
		fail("bind");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&target, sizeof(target)) < 0)
		fail("connect");
	dial_count++;
	return fd;
}

/* False: the other end has closed. */
static bool say(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Bytes read until `len`, the end or the patience is reached. */
static size_t hear(int fd, void *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(fd, (uint8_t *)data + have, len - have, 0);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	return have;
}

/* True when the other end closes the connection in time, whatever it says before. */
static bool is_dropped(int fd)
{
	uint8_t junk[4096];
	ssize_t n;

	while ((n = recv(fd, junk, sizeof(junk), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

/* ---- handshakes ---- */

static void hello_make(struct mrc_hello *hello)
{
	*hello = (struct mrc_hello){.host = HOST,
				    .to_host = TO_HOST,
				    .boot_id = boot_id,
				    .version_min = MRC_HELLO_VERSION_MIN,
				    .version_max = MRC_HELLO_VERSION_MAX};
	mrcd_auth_random(hello->nonce, sizeof(hello->nonce));
}

static void frame_make(struct mrc_wire_hdr *hdr, const uint8_t *body, uint8_t *frame_out)
{
	hdr->body_crc = mrcd_crc32c(0, body, hdr->body_len);
	mrc_wire_encode(hdr, mrcd_crc32c, frame_out);
	memmove(frame_out + MRC_WIRE_HDR_BYTES, body, hdr->body_len);
}

/* Writes a header's checksum anew after its bytes were changed. */
static void header_reseal(uint8_t *frame)
{
	uint32_t crc = mrcd_crc32c(0, frame, MRC_WIRE_HDR_BYTES - 4);
	struct mrc_cursor c = {.at = frame + MRC_WIRE_HDR_BYTES - 4,
			       .end = frame + MRC_WIRE_HDR_BYTES,
			       .ok = true};

	mrc_put_u32(&c, crc);
}

/* Sends the bytes of a HELLO; whoever answers it gets a junk proof. Either way the end must come. */
static void hello_try(const uint8_t *frame, size_t len)
{
	uint8_t answer[ANSWER_BYTES], auth[AUTH_BYTES], junk[AUTH_BYTES] = {0};
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_AUTH,
				   .body_len = AUTH_BYTES - MRC_WIRE_HDR_BYTES};
	int fd = dial();

	case_count++;
	if (say(fd, frame, len)) {
		if (len < HELLO_BYTES)
			shutdown(fd, SHUT_WR);
		if (hear(fd, answer, sizeof(answer)) == sizeof(answer)) {
			getrandom(junk, sizeof(junk), 0);
			frame_make(&hdr, junk, auth);
			say(fd, auth, sizeof(auth));
		}
	}
	if (!is_dropped(fd)) {
		errno = 0;
		fail("a handshake that is wrong was not refused");
	}
	close(fd);
}

static void hellos_try(void)
{
	uint8_t frame[HELLO_BYTES + 4096], good[HELLO_BYTES], body[MRC_HELLO_BODY_BYTES];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_HELLO, .body_len = MRC_HELLO_BODY_BYTES};
	struct mrc_hello hello;
	size_t i;

	hello_make(&hello);
	mrc_hello_encode(&hello, body);
	frame_make(&hdr, body, good);

	/* The right words and no proof; then the same, cut off in the middle. */
	hello_try(good, sizeof(good));
	hello_try(good, MRC_WIRE_HDR_BYTES);
	hello_try(good, 5);
	/* Each byte of the header, sealed anew and not; each field holds its least and its greatest so. */
	for (i = 0; i < MRC_WIRE_HDR_BYTES; i++) {
		static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

		for (size_t v = 0; v < sizeof(values); v++) {
			memcpy(frame, good, sizeof(good));
			if (frame[i] == values[v])
				continue;
			frame[i] = values[v];
			if (v % 2 == 0)
				header_reseal(frame);
			hello_try(frame, sizeof(good));
		}
	}
	/* Each byte of the body, with the checksums right. */
	for (i = 0; i < sizeof(body); i++) {
		uint8_t changed[sizeof(body)];

		memcpy(changed, body, sizeof(body));
		changed[i] ^= i % 2 ? 0xff : 0x2f;
		frame_make(&hdr, changed, frame);
		hello_try(frame, sizeof(good));
	}
	memset(body, 'x', sizeof(body)); /* names that never end */
	frame_make(&hdr, body, frame);
	hello_try(frame, sizeof(good));
	getrandom(frame, sizeof(frame), 0); /* no words at all */
	hello_try(frame, sizeof(frame));
}

/* ---- frames of a peer that proved the key ---- */

/* A proved connection; the epochs are in *auth_out, and PATH_OPEN has been answered with its own. */
static int join(struct mrc_auth *auth_out)
{
	uint8_t hello_i[MRC_HELLO_BODY_BYTES], frame[FRAME_MAX], answer[ANSWER_BYTES];
	uint8_t body[MRC_AUTH_BODY_BYTES + MRC_HELLO_MAC_BYTES];
	const uint8_t *hello_r = answer + MRC_WIRE_HDR_BYTES;
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_HELLO, .body_len = sizeof(hello_i)};
	struct mrc_hello ours, theirs;
	int fd = dial();

	hello_make(&ours);
	mrc_hello_encode(&ours, hello_i);
	frame_make(&hdr, hello_i, frame);
	if (!say(fd, frame, HELLO_BYTES) || hear(fd, answer, sizeof(answer)) != sizeof(answer))
		fail("no answer to a good HELLO");
	if (mrc_hello_decode(hello_r, &theirs) < 0)
		fail("HELLO cannot be read");
	mrc_hello_conclude(&ours, &theirs, auth_out);
	mrc_auth_encode(auth_out, body);
	if (mrcd_auth_prove(&key, MRCD_AUTH_INITIATOR, hello_i, hello_r, body,
			    body + MRC_AUTH_BODY_BYTES) < 0)
		fail("proof");
	hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_AUTH, .body_len = sizeof(body)};
	frame_make(&hdr, body, frame);
	if (!say(fd, frame, AUTH_BYTES))
		fail("AUTH");
	/* What it opens its end with is as good an opening of ours. */
	if (hear(fd, frame, MRC_WIRE_HDR_BYTES) != MRC_WIRE_HDR_BYTES ||
	    mrc_wire_decode(frame, mrcd_crc32c, &hdr) < 0 ||
	    hear(fd, frame + MRC_WIRE_HDR_BYTES, hdr.body_len) != hdr.body_len)
		fail("no first frame after a good handshake");
	if (hdr.type == MRC_WIRE_PATH_OPEN)
		say(fd, frame, MRC_WIRE_HDR_BYTES + hdr.body_len);
	return fd;
}

/* Gives the other end a moment to judge the last frame, then says whether it has closed. What arrived is dropped. */
static bool is_open(int fd)
{
	struct pollfd hangup = {.fd = fd, .events = POLLRDHUP};
	uint8_t junk[4096];
	ssize_t n;

	if (poll(&hangup, 1, VERDICT_MS) != 0)
		return false;
	while ((n = recv(fd, junk, sizeof(junk), MSG_DONTWAIT)) > 0)
		;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int frame_try(int fd, struct mrc_auth *auth, struct mrc_wire_hdr hdr, bool is_epoch_ours)
{
	static uint8_t body[MRC_FRAG_BYTES_MAX + 1], frame[MRC_WIRE_HDR_BYTES + sizeof(body)];
	size_t len = hdr.body_len < sizeof(body) ? hdr.body_len : 64;

	case_count++;
	if (!is_open(fd)) {
		close(fd);
		fd = join(auth);
	}
	if (!is_epoch_ours) {
		hdr.conn_epoch = auth->conn_epoch;
		hdr.path_epoch = auth->path_epoch;
	}
	memset(body, (int)case_count, len > 64 ? 64 : len);
	hdr.body_crc = mrcd_crc32c(0, body, len);
	mrc_wire_encode(&hdr, mrcd_crc32c, frame);
	memcpy(frame + MRC_WIRE_HDR_BYTES, body, len);
	say(fd, frame, MRC_WIRE_HDR_BYTES + len);
	return fd;
}

static void frames_try(void)
{
	static const uint64_t values[] = {
		0,          1,         2,          0x7f,           0xff,
		0x7fff,     0xffff,    0x40000,    0x7fffffff,     0x80000000,
		0xffffffff, INT64_MAX, 1ULL << 63, UINT64_MAX - 1, UINT64_MAX};
	struct mrc_auth auth;
	int fd = join(&auth);

	for (unsigned type = 0; type <= MRC_WIRE_TYPE_END; type++) {
		for (size_t v = 0; v < MRC_ARRAY_LEN(values); v++) {
			const uint64_t x = values[v];
			struct mrc_wire_hdr hdr = {.type = (uint8_t)type,
						   .body_len = 16,
						   .msg_len = 16};

#define TRY_FIELD(field, is_epoch)                        \
	do {                                              \
		struct mrc_wire_hdr one = hdr;            \
		one.field = (__typeof__(one.field))x;     \
		fd = frame_try(fd, &auth, one, is_epoch); \
	} while (0)
			TRY_FIELD(flags, false);
			TRY_FIELD(conn_epoch, true);
			TRY_FIELD(path_epoch, true);
			TRY_FIELD(writer_path, false);
			TRY_FIELD(writer_epoch, false);
			TRY_FIELD(channel, false);
			TRY_FIELD(body_len, false);
			TRY_FIELD(msg, false);
			TRY_FIELD(offset, false);
			TRY_FIELD(msg_len, false);
			TRY_FIELD(addr, false);
			TRY_FIELD(arg, false);
#undef TRY_FIELD
			/* All of them at once. */
			hdr = (struct mrc_wire_hdr){.type = (uint8_t)type,
						    .channel = (uint32_t)x,
						    .body_len = 0,
						    .msg = x,
						    .offset = x,
						    .msg_len = x,
						    .addr = x,
						    .arg = x};
			fd = frame_try(fd, &auth, hdr, false);
		}
	}
	/* And no frames at all where frames should be. */
	for (unsigned i = 0; i < 50; i++) {
		uint8_t junk[777];

		case_count++;
		if (!is_open(fd)) {
			close(fd);
			fd = join(&auth);
		}
		getrandom(junk, sizeof(junk), 0);
		say(fd, junk, sizeof(junk));
	}
	close(fd);
	/* It still takes a peer that behaves. */
	fd = join(&auth);
	close(fd);
}

static void key_load(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		fail(path);
	key.len_bytes = (uint32_t)fread(key.bytes, 1, sizeof(key.bytes), file);
	fclose(file);
	while (key.len_bytes && key.bytes[key.len_bytes - 1] == '\n')
		key.len_bytes--;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: stranger SOURCE ADDRESS PORT hello|frames KEYFILE\n");
		return 2;
	}
	source = (struct sockaddr_in){.sin_family = AF_INET};
	target = (struct sockaddr_in){.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[3]))};
	if (inet_pton(AF_INET, argv[1], &source.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &target.sin_addr) != 1)
		return 2;
	key_load(argv[5]);
	mrcd_auth_random(&boot_id, sizeof(boot_id));
	if (strcmp(argv[4], "hello") == 0)
		hellos_try();
	else
		frames_try();
	printf("%u cases in %u connections\n", case_count, dial_count);
	return 0;
}
