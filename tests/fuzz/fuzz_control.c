/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control protocol, both ends of it. The first byte says which:
 *
 *	'R' 'r'  lines for the daemon, as root or as somebody who may only look
 *	'S'      bytes for the daemon's socket: a byte 0xfe ends what is written at once, 0xff the
 *	         connection, so that lines come in pieces and several askers at once
 *	'A' 'a'  an answer that mrcctl reads from its socket (a: closed without an end of line)
 *	'0'-'7'  a result that mrcctl shows as the table of one command
 */
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "mrcctl_show.h"
#include "mrcctl_socket.h"
#include "mrcd_control.h"
#include "mrcd_drill.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"

#define ASKERS_MAX 3
#define TURNS_MAX  4096

/* A daemon with two rails and a peer, and a second socket for mrcctl to be answered on. One for all inputs. */
struct stage {
	struct mrcd_rail_ops rail_ops; /* a drill breaks nothing: the rails are not open */
	struct mrcd_conf conf;
	struct mrcd_conf_peer peer;
	struct mrcd_worker *worker;
	char dir[64];
	char control_path[96], answer_path[96];
	int answer_fd;
};

static struct stage stage;

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	FUZZ_CHECK(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	FUZZ_CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	FUZZ_CHECK(listen(fd, 8) == 0);
	return fd;
}

static void stage_end(void)
{
	mrcd_worker_free(stage.worker);
	stage.worker = NULL;
	close(stage.answer_fd);
	unlink(stage.answer_path);
	rmdir(stage.dir);
}

/* For commands that name one; its number is the first there is, see the corpus. */
static void channel_open(void)
{
	uint32_t id;
	const struct mrc_event_in ev = {
		.kind = MRC_EV_CH_OPEN,
		.channel = {.flow = 1,
			    .cookie = 1,
			    .ring_bytes = 4096,
			    .msg_bytes_max = 4096,
			    .window = 16,
			    .service = "s",
			    .id_out = &id},
	};

	FUZZ_CHECK(mrc_conn_handle(mrcd_peer_conn(stage.worker->peers[0]), &ev, 1) == 0);
	FUZZ_CHECK(id == 1U << 14);
}

static int rail_drill(struct mrcd_rail *rail)
{
	return 0;
}

static void stage_begin(void)
{
	struct mrcd_conf *conf = &stage.conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(stage.dir, "/tmp/mrc-fuzz-control-XXXXXX");
	FUZZ_CHECK(mkdtemp(stage.dir) != NULL);
	snprintf(stage.control_path, sizeof(stage.control_path), "%s/control.sock", stage.dir);
	snprintf(stage.answer_path, sizeof(stage.answer_path), "%s/answer.sock", stage.dir);
	strcpy(conf->host, "z"); /* the peer's part to connect: the rails are not open */
	strcpy(conf->runtime_dir, stage.dir);
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	conf->rails[0].speed_bits_per_s = conf->rails[1].speed_bits_per_s = 1000000000;
	conf->peers = &stage.peer;
	conf->peer_count = 1;
	strcpy(stage.peer.name, "b");
	strcpy(stage.peer.paths[0].address, "10.0.0.2");
	stage.peer.path_count = 1;
	FUZZ_CHECK(mrcd_worker_new(conf, &stage.worker) == 0);
	stage.worker->boot_id = 1U << 16; /* the first drill is number 2, see the corpus */
	stage.rail_ops = *stage.worker->rails[0].ops;
	stage.rail_ops.drill = rail_drill;
	stage.worker->rails[0].ops = stage.worker->rails[1].ops = &stage.rail_ops;
	FUZZ_CHECK(mrcd_control_new(stage.worker, &stage.worker->control) == 0);
	channel_open();
	stage.answer_fd = listen_at(stage.answer_path);
	atexit(stage_end);
}

static void turn(void)
{
	event_base_loop(stage.worker->base, EVLOOP_NONBLOCK);
}

/* As it was, whatever the input has drained and drilled. */
static void stage_reset(void)
{
	static const char *const lines[] = {
		"{\"command\": \"undrain\", \"rail\": \"r0\"}",
		"{\"command\": \"undrain\", \"rail\": \"r1\"}",
		"{\"command\": \"undrain\", \"host\": true}",
	};

	mrcd_drill_free(stage.worker->drill);
	FUZZ_CHECK(mrcd_drill_new(stage.worker, &stage.worker->drill) == 0);
	for (size_t i = 0; i < MRC_ARRAY_LEN(lines); i++) {
		json_t *answer =
			mrcd_control_answer(stage.worker, lines[i], strlen(lines[i]), true);

		FUZZ_CHECK(json_is_true(json_object_get(answer, "ok")));
		json_decref(answer);
	}
}

/* What holds of every answer. */
static void answer_check(const json_t *answer)
{
	const json_t *ok = json_object_get(answer, "ok");
	char *text = json_dumps(answer, JSON_COMPACT);

	FUZZ_CHECK(text != NULL && strchr(text, '\n') == NULL);
	free(text);
	FUZZ_CHECK(json_is_boolean(ok));
	FUZZ_CHECK((json_object_get(answer, "result") != NULL) == json_is_true(ok));
	FUZZ_CHECK(json_is_string(json_object_get(answer, "error")) == json_is_false(ok));
}

static void daemon_line(const uint8_t *data, size_t len, bool may_change)
{
	char *line = (char *)fuzz_copy(data, len);
	bool was_drained = stage.worker->rails[0].is_draining || stage.worker->rails[1].is_draining;
	json_t *answer = mrcd_control_answer(stage.worker, line, len, may_change);

	FUZZ_CHECK(answer != NULL && !was_drained);
	answer_check(answer);
	for (uint32_t i = 0; i < 2 && !may_change; i++)
		FUZZ_CHECK(!stage.worker->rails[i].is_draining &&
			   !mrcd_drill_has(stage.worker->drill, &stage.worker->rails[i]));
	json_decref(answer);
	free(line);
}

/* ---- the daemon's socket ---- */

static int asker_new(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", stage.control_path);
	FUZZ_CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	turn();
	return fd;
}

/* Read what has come; each line is an answer. True: the daemon has closed. */
static bool asker_read(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t count;

	while ((count = recv(fd, text + len, sizeof(text) - len, 0)) > 0)
		len += (size_t)count;
	for (char *at = text, *end; (end = memchr(at, '\n', len - (size_t)(at - text)));
	     at = end + 1) {
		json_t *answer = json_loadb(at, (size_t)(end - at), 0, NULL);

		answer_check(answer);
		json_decref(answer);
	}
	return count == 0;
}

static void daemon_socket(const uint8_t *data, size_t len)
{
	int fds[ASKERS_MAX];
	size_t from = 0;
	uint32_t at = 0, turns = 0;

	for (int i = 0; i < ASKERS_MAX; i++)
		fds[i] = asker_new();
	for (size_t i = 0; i <= len; i++) {
		if (i < len && data[i] < 0xfe)
			continue;
		if (i > from && fds[at] >= 0)
			(void)!send(fds[at], data + from, i - from, MSG_NOSIGNAL);
		turn();
		if (i < len && data[i] == 0xff && fds[at] >= 0)
			shutdown(fds[at], SHUT_WR);
		turn();
		if (fds[at] >= 0 && asker_read(fds[at])) {
			close(fds[at]);
			fds[at] = -1;
		}
		from = i + 1;
		at = (at + 1) % ASKERS_MAX;
	}
	for (int i = 0; i < ASKERS_MAX; i++) {
		if (fds[i] < 0)
			continue;
		shutdown(fds[i], SHUT_WR);
		/* Everything is answered, and then the daemon closes too. */
		while (!asker_read(fds[i])) {
			turn();
			FUZZ_CHECK(++turns < TURNS_MAX);
		}
		close(fds[i]);
	}
	turn();
}

/* ---- mrcctl ---- */

struct answer {
	const uint8_t *bytes;
	size_t len;
	bool has_end;
};

/* The daemon, for one question. Its thread ends when all was said. */
static void *answer_thread(void *context)
{
	const struct answer *answer = context;
	int fd = accept4(stage.answer_fd, NULL, NULL, SOCK_CLOEXEC);
	char question[256];

	FUZZ_CHECK(fd >= 0);
	(void)!recv(fd, question, sizeof(question), 0);
	if (answer->len)
		(void)!send(fd, answer->bytes, answer->len, MSG_NOSIGNAL);
	if (answer->has_end)
		(void)!send(fd, "\n", 1, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static void tool_socket(const uint8_t *data, size_t len, bool has_end)
{
	struct answer said = {.bytes = data, .len = len, .has_end = has_end};
	json_t *question = json_pack("{s:s}", "command", "status"), *answer = NULL;
	pthread_t thread;
	int r;

	FUZZ_CHECK(pthread_create(&thread, NULL, answer_thread, &said) == 0);
	r = mrcctl_socket_ask(stage.answer_path, question, 60, &answer);
	FUZZ_CHECK(pthread_join(thread, NULL) == 0);
	json_decref(question);
	FUZZ_CHECK(r <= 0 && (answer != NULL) == (r == 0));
	if (r == 0)
		FUZZ_CHECK(json_is_boolean(json_object_get(answer, "ok")));
	json_decref(answer);
}

typedef void (*show_fn)(const json_t *result, FILE *out, bool has_colour);

/* What a daemon calls things must not reach the terminal as commands to it. */
static void tool_print(show_fn show, const json_t *result, bool has_colour)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	FUZZ_CHECK(out != NULL);
	show(result, out, has_colour);
	FUZZ_CHECK(fclose(out) == 0);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == 0x1b && has_colour)
			continue;
		FUZZ_CHECK(c == '\n' || (c >= 0x20 && c != 0x7f));
		FUZZ_CHECK(c != 0xc2 || i + 1 == len || (unsigned char)text[i + 1] >= 0xa0);
	}
	free(text);
}

static void tool_show(const uint8_t *data, size_t len, uint32_t which)
{
	static const show_fn shows[] = {
		mrcctl_show_status,   mrcctl_show_rails,   mrcctl_show_peers, mrcctl_show_paths,
		mrcctl_show_channels, mrcctl_show_clients, mrcctl_show_drain,
	};
	char *text = (char *)fuzz_copy(data, len);
	json_t *result = json_loadb(text, len, JSON_DECODE_ANY, NULL);

	/* NULL too: an answer may have no result. */
	tool_print(shows[which % MRC_ARRAY_LEN(shows)], result, false);
	tool_print(shows[which % MRC_ARRAY_LEN(shows)], result, true);
	json_decref(result);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t kind = len ? data[0] : 'r';

	if (stage.worker == NULL)
		stage_begin();
	data += len ? 1 : 0;
	len -= len ? 1 : 0;
	switch (kind) {
	case 'R':
	case 'r':
		daemon_line(data, len, kind == 'R');
		break;
	case 'S':
		daemon_socket(data, len);
		break;
	case 'A':
	case 'a':
		tool_socket(data, len, kind == 'A');
		break;
	default:
		tool_show(data, len, kind & 7);
		break;
	}
	stage_reset();
	return 0;
}
