/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_cost.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_conn.h"

#define PATHS_MAX   MRC_PATHS_MAX
#define QUEUE_MAX   2048U /* frames under way on one path: more than any limit lets be */
#define FLOW        7U
#define TURN_NS     2000U /* what passes between two turns of the loop */
#define TURN_FRAMES 64U   /* frames of one path that one turn takes in, as the daemon does */
#define UP_TURNS    200000U
#define TURNS_MAX   50000000U

struct settings {
	uint64_t len, messages, warm;
	uint32_t paths, window, channels, frag;
};

struct queue { /* of one path and direction */
	struct mrc_act_post *posts;
	uint64_t head, tail;
};

struct engine {
	struct mrc_conn *conn;
	struct queue out[PATHS_MAX];
	uint64_t sent_told[PATHS_MAX];
	uint32_t channels_up;
	uint32_t ids[1024];
	uint64_t outstanding[1024];
	uint64_t done, delivered, frags;
};

struct lab {
	const struct settings *settings;
	struct engine engines[2]; /* a sends, b receives */
	uint64_t now_ns, submitted;
	uint32_t incoming;
	bool is_measured;
};

/* ---- the calls that are counted ---- */

/* Each is to stay a function of its own: the names keep them apart. */
#define CALLS(who)                                                                                \
	int cost_##who##_handle(struct mrc_conn *, const struct mrc_event_in *, uint64_t);        \
	bool cost_##who##_next(struct mrc_conn *, struct mrc_action *, uint64_t);                 \
	__attribute__((noinline)) int cost_##who##_handle(struct mrc_conn *conn,                  \
							  const struct mrc_event_in *ev,          \
							  uint64_t now_ns)                        \
	{                                                                                         \
		int r = mrc_conn_handle(conn, ev, now_ns);                                        \
                                                                                                  \
		__asm__ volatile("/* " #who " */" : "+r"(r));                                     \
		return r;                                                                         \
	}                                                                                         \
	__attribute__((noinline)) bool cost_##who##_next(struct mrc_conn *conn,                   \
							 struct mrc_action *act, uint64_t now_ns) \
	{                                                                                         \
		bool is_any = mrc_conn_next_action(conn, act, now_ns);                            \
                                                                                                  \
		__asm__ volatile("/* " #who " */" : "+r"(is_any));                                \
		return is_any;                                                                    \
	}

CALLS(sender)
CALLS(receiver)

static int tell(struct lab *lab, uint32_t side, const struct mrc_event_in *ev)
{
	struct mrc_conn *conn = lab->engines[side].conn;

	if (!lab->is_measured)
		return mrc_conn_handle(conn, ev, lab->now_ns);
	return side ? cost_receiver_handle(conn, ev, lab->now_ns)
		    : cost_sender_handle(conn, ev, lab->now_ns);
}

static bool next(struct lab *lab, uint32_t side, struct mrc_action *act)
{
	struct mrc_conn *conn = lab->engines[side].conn;

	if (!lab->is_measured)
		return mrc_conn_next_action(conn, act, lab->now_ns);
	return side ? cost_receiver_next(conn, act, lab->now_ns)
		    : cost_sender_next(conn, act, lab->now_ns);
}

/* ---- the embedder, as small as it gets ---- */

static void pump(struct lab *lab, uint32_t side);

static void *take(void *context, size_t bytes)
{
	(void)context;
	return calloc(1, bytes);
}

static void give(void *context, void *memory)
{
	(void)context;
	free(memory);
}

static void connect_path(struct lab *lab, uint8_t index)
{
	struct mrc_hello hellos[2];
	struct mrc_auth auth;

	for (uint32_t side = 0; side < 2; side++)
		mrc_conn_hello(lab->engines[side].conn, index, &hellos[side]);
	hellos[1].path_id = hellos[0].path_id;
	mrc_hello_conclude(&hellos[0], &hellos[1], &auth);
	for (uint32_t side = 0; side < 2; side++) {
		struct mrc_event_in ev = {.kind = MRC_EV_PATH_UP,
					  .path = {.index = index,
						   .is_direct_capable = true,
						   .path_epoch = auth.path_epoch,
						   .conn_epoch = auth.conn_epoch,
						   .path_id = hellos[0].path_id,
						   .peer_boot_id = hellos[1 - side].boot_id}};

		if (mrc_conn_join(lab->engines[side].conn, index, &auth,
				  hellos[1 - side].boot_id) ||
		    tell(lab, side, &ev))
			abort();
	}
	pump(lab, 1);
}

static void keys_give(struct lab *lab, uint32_t side)
{
	for (uint32_t p = 0; p < lab->settings->paths; p++) {
		struct mrc_event_in ev = {.kind = MRC_EV_KEY,
					  .key = {.flow = FLOW,
						  .index = (uint8_t)p,
						  .is_valid = true,
						  .rkey = p + 1,
						  .base = 1U << 30}};

		tell(lab, side, &ev);
	}
}

static void fill(struct lab *lab, uint32_t channel)
{
	struct engine *e = &lab->engines[0];
	struct mrc_event_in ev = {.kind = MRC_EV_SEND,
				  .msg = {.channel = e->ids[channel],
					  .level = MRC_LVL_COMMITTED,
					  .cookie = channel,
					  .len = lab->settings->len}};

	/* Never more than half the window: a client that asks for room is another matter. */
	while (lab->submitted < lab->settings->messages &&
	       e->outstanding[channel] * 2 < lab->settings->window) {
		if (tell(lab, 0, &ev))
			return;
		e->outstanding[channel]++;
		lab->submitted++;
	}
}

static void perform(struct lab *lab, uint32_t side, const struct mrc_action *act)
{
	struct engine *e = &lab->engines[side];
	struct mrc_event_in ev = {.msg = {.channel = act->msg.channel, .number = act->msg.number}};
	struct queue *queue;

	switch (act->kind) {
	case MRC_ACT_POST:
		queue = &e->out[act->post.index];
		if (queue->tail - queue->head == QUEUE_MAX)
			abort();
		e->frags += act->post.hdr.type == MRC_WIRE_FRAG;
		memcpy(&queue->posts[queue->tail++ % QUEUE_MAX], &act->post,
		       offsetof(struct mrc_act_post, body) + act->post.body_len);
		break;
	case MRC_ACT_CONNECT:
		connect_path(lab, act->path.index);
		break;
	case MRC_ACT_CARRIER_ASK:
		ev = (struct mrc_event_in){.kind = MRC_EV_CARRIER,
					   .path = {.index = act->path.index, .is_up = true}};
		tell(lab, side, &ev);
		break;
	case MRC_ACT_CH_INCOMING:
		ev = (struct mrc_event_in){.kind = MRC_EV_CH_ACCEPT,
					   .channel = {.id = act->channel.id,
						       .flow = FLOW,
						       .cookie = lab->incoming++,
						       .ring_bytes = 1 << 20,
						       .msg_bytes_max = 1 << 30,
						       .window = lab->settings->window}};
		if (tell(lab, side, &ev))
			abort();
		keys_give(lab, side);
		break;
	case MRC_ACT_CH_UP:
		e->channels_up++;
		break;
	case MRC_ACT_LANDING_WANT:
		ev.kind = MRC_EV_LANDING;
		tell(lab, side, &ev);
		break;
	case MRC_ACT_DELIVER:
		e->delivered++;
		ev.kind = MRC_EV_RELEASE;
		tell(lab, side, &ev);
		break;
	case MRC_ACT_DONE:
		e->done++;
		e->outstanding[act->msg.cookie]--;
		fill(lab, (uint32_t)act->msg.cookie);
		break;
	case MRC_ACT_FENCE:
	case MRC_ACT_COPY:
		fprintf(stderr, "mrc-sim --cost: an action that a calm world does not have\n");
		abort();
	default:
		break;
	}
}

static void pump(struct lab *lab, uint32_t side)
{
	struct mrc_action act;

	while (next(lab, side, &act))
		perform(lab, side, &act);
}

/* What the other end sent arrives, and both are told. */
static void turn(struct lab *lab)
{
	lab->now_ns += TURN_NS;
	for (uint32_t side = 0; side < 2; side++) {
		struct engine *from = &lab->engines[1 - side];
		struct mrc_event_in timer = {.kind = MRC_EV_TIMER};

		for (uint8_t p = 0; p < lab->settings->paths; p++) {
			struct queue *queue = &from->out[p];

			for (uint32_t i = 0; i < TURN_FRAMES && queue->head < queue->tail; i++) {
				const struct mrc_act_post *post =
					&queue->posts[queue->head++ % QUEUE_MAX];
				struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED,
							  .arrived = {.index = p,
								      .is_body_good = true,
								      .is_placed = true,
								      .path_epoch =
									      post->path_epoch,
								      .hdr = &post->hdr,
								      .body = post->body}};

				if (tell(lab, side, &ev))
					abort();
			}
			if (from->sent_told[p] < queue->head) {
				struct mrc_event_in ev = {.kind = MRC_EV_SENT,
							  .path = {.index = p,
								   .path_epoch = 1,
								   .count = queue->head}};

				from->sent_told[p] = queue->head;
				tell(lab, 1 - side, &ev);
			}
		}
		if (mrc_conn_deadline_ns(lab->engines[side].conn) <= lab->now_ns)
			tell(lab, side, &timer);
		pump(lab, side);
	}
}

static void lab_new(struct lab *lab)
{
	const struct settings *s = lab->settings;

	for (uint32_t side = 0; side < 2; side++) {
		struct mrc_conn_config config = {
			.host = side ? "b" : "a",
			.peer = side ? "a" : "b",
			.boot_id = side + 1,
			.seed = 1,
			.path_count = (uint8_t)s->paths,
			.limits = {.frag_bytes_max = s->frag, .suspect_floor_ns = MRC_S},
			.alloc = {take, give, NULL},
		};

		if (mrc_conn_new(&config, &lab->engines[side].conn))
			abort();
		for (uint32_t p = 0; p < s->paths; p++) {
			lab->engines[side].out[p].posts =
				calloc(QUEUE_MAX, sizeof(struct mrc_act_post));
			if (!lab->engines[side].out[p].posts)
				abort();
		}
	}
	if (!mrc_conn_is_initiator(lab->engines[0].conn))
		abort();
}

static void lab_free(struct lab *lab)
{
	for (uint32_t side = 0; side < 2; side++) {
		mrc_conn_free(lab->engines[side].conn);
		for (uint32_t p = 0; p < lab->settings->paths; p++)
			free(lab->engines[side].out[p].posts);
	}
}

static bool all_up(const struct lab *lab)
{
	struct mrc_conn_info info;

	for (uint32_t side = 0; side < 2; side++) {
		mrc_conn_info(lab->engines[side].conn, &info);
		if (info.paths_good < lab->settings->paths)
			return false;
	}
	return true;
}

static int measure(const struct settings *s)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	uint64_t frames[2] = {0};
	uint64_t frags = 0;
	int r;

	if (!lab)
		abort();
	lab->settings = s;
	lab_new(lab);
	pump(lab, 0);
	for (uint32_t i = 0; i < UP_TURNS && !all_up(lab); i++)
		turn(lab);
	for (uint32_t c = 0; c < s->channels; c++) {
		struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN,
					  .channel = {.flow = FLOW,
						      .cookie = c,
						      .ring_bytes = 1 << 20,
						      .msg_bytes_max = 1 << 30,
						      .window = s->window,
						      .service = "s",
						      .id_out = &lab->engines[0].ids[c]}};

		if (tell(lab, 0, &ev))
			abort();
	}
	keys_give(lab, 0);
	for (uint32_t i = 0; i < UP_TURNS && lab->engines[0].channels_up < s->channels; i++)
		turn(lab);
	for (uint32_t c = 0; c < s->channels; c++)
		fill(lab, c);
	for (uint64_t i = 0; i < TURNS_MAX && lab->engines[0].done < s->messages; i++) {
		if (!lab->is_measured && lab->engines[0].done >= s->warm) {
			lab->is_measured = true;
			frags = lab->engines[0].frags;
			for (uint32_t p = 0; p < s->paths; p++) {
				frames[0] += lab->engines[0].out[p].tail;
				frames[1] += lab->engines[1].out[p].tail;
			}
		}
		turn(lab);
	}
	r = lab->engines[0].done < s->messages;
	for (uint32_t side = 0; side < 2; side++) {
		uint64_t sum = 0;

		for (uint32_t p = 0; p < s->paths; p++)
			sum += lab->engines[side].out[p].tail;
		frames[side] = sum - frames[side];
	}
	printf("messages %llu fragments %llu frames %llu back %llu\n",
	       (unsigned long long)(s->messages - s->warm),
	       (unsigned long long)(lab->engines[0].frags - frags), (unsigned long long)frames[0],
	       (unsigned long long)frames[1]);
	lab_free(lab);
	free(lab);
	return r;
}

static void usage(FILE *out)
{
	fprintf(out, "usage: mrc-sim --cost [--len BYTES] [--messages N] [--paths N] [--window N]\n"
		     "                      [--channels N] [--frag BYTES]\n"
		     "\n"
		     "Two engines pass messages, the first tenth of them to warm up; prints how "
		     "many frames the\n"
		     "rest took. For tests/sim/cost, which counts the instructions.\n");
}

int sim_cost_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"len", required_argument, NULL, 'l'},
		{"messages", required_argument, NULL, 'm'},
		{"paths", required_argument, NULL, 'p'},
		{"window", required_argument, NULL, 'w'},
		{"channels", required_argument, NULL, 'c'},
		{"frag", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct settings s = {.len = 64,
			     .messages = 20000,
			     .paths = 4,
			     .window = 256,
			     .channels = 1,
			     .frag = 32 * 1024};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 'l':
			s.len = value;
			break;
		case 'm':
			s.messages = value;
			break;
		case 'p':
			s.paths = (uint32_t)value;
			break;
		case 'w':
			s.window = (uint32_t)value;
			break;
		case 'c':
			s.channels = (uint32_t)value;
			break;
		case 'f':
			s.frag = (uint32_t)value;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc || s.paths < 1 || s.paths > PATHS_MAX || s.channels < 1 ||
	    s.channels > 1024 || s.messages < 10 || s.window < 2) {
		usage(stderr);
		return 2;
	}
	s.warm = s.messages / 10;
	return measure(&s);
}
