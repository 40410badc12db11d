/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay - a rail whose cable is this process: delay, jitter, loss in bursts, duplication
 *
 *	relay --end NETNS:NAME:INDEX --end NETNS:NAME:INDEX --control FIFO [--mtu N] [--speed N] [--seed N]
 *
 * Makes a TUN device in each of two network namespaces and carries packets
 * between them. When one end is set down, the other loses its carrier, as with
 * a cable. Segmentation and checksum offload are on: a packet here may be a TCP
 * burst of up to 64 KiB, and loss, delay and queue count packets.
 *
 * The fifo takes one command a line, and each is answered by one line of JSON on
 * stdout (the first line, "ready", says that both devices are there):
 *
 *	delay 1ms jitter 200us loss 1% burst 8 duplicate 0.1% reorder on queue 1024
 *	way ab delay 5ms	only what goes from the first end to the second (ab, ba, both)
 *	clear			as at the start: carries everything at once
 *	counters		what happened so far
 *
 * What a line does not name stays. Loss is in bursts (Gilbert): `loss` is the
 * share of packets lost in the long run, `burst` the mean number lost in a row.
 * Packets keep their order unless `reorder on`, which lets jitter overtake.
 * SIGTERM or SIGINT ends it, with the counters on stdout.
 *
 * Units:     ns inside; loss and duplication in parts per million.
 * Ownership: packets that wait are on the heap, at most `queue` of them each way.
 * Threads:   one.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PACKET_BYTES_MAX  (66U << 10) /* 64 KiB of GSO and its headers */
#define QUEUE_MAX         4096U
#define TURN_PACKETS_MAX  64 /* of one way, so that neither starves the other */
#define LINE_BYTES        512U
#define PPM               1000000U
#define VNET_HEADER_BYTES 10

#define COUNTERS(X)                                           \
	X(passed)     /* packets handed to the far end */     \
	X(bytes)      /* of them */                           \
	X(lost)       /* packets, by `loss` */                \
	X(bursts)     /* of loss */                           \
	X(duplicated) /* packets */                           \
	X(overflowed) /* packets that found the queue full */ \
	X(refused)    /* packets the far end would not take: it is down */

struct setting {
	uint64_t delay_ns;
	uint64_t jitter_ns;
	uint32_t loss_ppm;
	uint32_t burst;
	uint32_t duplicate_ppm;
	uint32_t queue;
	bool is_reordering;
};

struct packet {
	uint64_t due_ns;
	uint32_t len;
	uint8_t bytes[];
};

/* What goes from one end to the other. */
struct way {
	struct setting setting;
	bool is_in_burst;
	struct packet *waiting[QUEUE_MAX]; /* by due time; a ring from `first` on */
	uint32_t first;
	uint32_t count;
	uint64_t due_last_ns;
#define X(name) uint64_t name;
	COUNTERS(X)
#undef X
};

struct end {
	const char *netns;
	char name[IFNAMSIZ];
	int index;
	int fd;
	int link_fd; /* tells when this end is set up or down */
	bool is_up;
};

struct relay {
	struct end ends[2];
	struct way ways[2]; /* [0]: from ends[0] to ends[1] */
	unsigned mtu;
	unsigned
		speed_mbits; /* that both devices are to say they have; 0: as the kernel makes them */
	const char *control_path;
	int control_fd;
	int signal_fd;
	int epoll_fd;
	uint64_t random;
	char line[LINE_BYTES]; /* what came of a command so far */
	uint32_t line_len;
	uint8_t packet[PACKET_BYTES_MAX];
};

enum source { SOURCE_END, SOURCE_LINK = 2, SOURCE_CONTROL = 4, SOURCE_SIGNAL };

static const struct setting setting_clear = {.burst = 1, .queue = 1024};

static void __attribute__((noreturn, format(printf, 2, 3)))
quit(int status, const char *format, ...)
{
	va_list arguments;

	fputs("relay: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(status);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* xorshift64*: the same faults for the same seed and the same packets */
static uint64_t random_next(struct relay *relay)
{
	relay->random ^= relay->random >> 12;
	relay->random ^= relay->random << 25;
	relay->random ^= relay->random >> 27;
	return relay->random * 2685821657736338717ULL >> 11;
}

static bool random_is(struct relay *relay, double share)
{
	return share > 0 && (double)random_next(relay) < share * (double)(1ULL << 53);
}

/* ---- the two ends ---- */

static int netns_open(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		quit(1, "%s: %s", path, strerror(errno));
	return fd;
}

static void end_carrier(const struct end *end, bool is_on)
{
	int on = is_on;

	if (ioctl(end->fd, TUNSETCARRIER, &on) < 0)
		quit(1, "%s: carrier: %s", end->name, strerror(errno));
}

static void end_mtu(const struct end *end, unsigned mtu)
{
	struct ifreq request = {.ifr_mtu = (int)mtu};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(request.ifr_name, end->name, sizeof(request.ifr_name));
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &request) < 0)
		quit(1, "%s: MTU %u: %s", end->name, mtu, strerror(errno));
	close(fd);
}

/* What a TUN device says of its speed holds nothing up. */
static void end_speed(const struct end *end, unsigned mbits)
{
	struct ethtool_cmd settings = {.cmd = ETHTOOL_SSET, .duplex = DUPLEX_FULL};
	struct ifreq request = {.ifr_data = (void *)&settings};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ethtool_cmd_speed_set(&settings, mbits);
	memcpy(request.ifr_name, end->name, sizeof(request.ifr_name));
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &request) < 0)
		quit(1, "%s: speed of %u Mb/s: %s", end->name, mbits, strerror(errno));
	close(fd);
}

static void end_open(struct end *end, unsigned mtu, unsigned speed_mbits)
{
	struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	int header_bytes = VNET_HEADER_BYTES, buffer_bytes = 1 << 24;
	int netns = netns_open(end->netns);

	memcpy(request.ifr_name, end->name, sizeof(request.ifr_name));
	if (setns(netns, CLONE_NEWNET) < 0)
		quit(1, "namespace %s: %s", end->netns, strerror(errno));
	close(netns);
	end->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (end->fd < 0)
		quit(1, "/dev/net/tun: %s", strerror(errno));
	if ((end->index > 0 && ioctl(end->fd, TUNSETIFINDEX, &end->index) < 0) ||
	    ioctl(end->fd, TUNSETIFF, &request) < 0 ||
	    ioctl(end->fd, TUNSETVNETHDRSZ, &header_bytes) < 0 ||
	    ioctl(end->fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0 ||
	    ioctl(end->fd, TUNSETSNDBUF, &buffer_bytes) < 0)
		quit(1, "%s in %s: %s", end->name, end->netns, strerror(errno));
	end->index = (int)if_nametoindex(end->name);
	end_mtu(end, mtu);
	if (speed_mbits > 0)
		end_speed(end, speed_mbits);
	end->link_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (end->link_fd < 0 ||
	    bind(end->link_fd, (const struct sockaddr *)&links, sizeof(links)) < 0)
		quit(1, "link events of %s: %s", end->netns, strerror(errno));
	/* until the far end is up */
	end_carrier(end, false);
}

/* One end was set up or down: the other end has carrier, or has not. */
static void end_take_links(struct relay *relay, int which)
{
	struct end *end = &relay->ends[which];
	uint8_t buffer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t len;

	while ((len = recv(end->link_fd, buffer, sizeof(buffer), 0)) > 0) {
		unsigned left = (unsigned)len;

		for (struct nlmsghdr *message = (void *)buffer; NLMSG_OK(message, left);
		     message = NLMSG_NEXT(message, left)) {
			struct ifinfomsg *info = NLMSG_DATA(message);
			bool is_up;

			if (message->nlmsg_type != RTM_NEWLINK || info->ifi_index != end->index)
				continue;
			is_up = (info->ifi_flags & IFF_UP) != 0;
			if (is_up != end->is_up)
				end_carrier(&relay->ends[!which], is_up);
			end->is_up = is_up;
		}
	}
}

/* ---- packets ---- */

static void way_hand_over(struct relay *relay, int which, const void *bytes, uint32_t len)
{
	struct way *way = &relay->ways[which];

	if (write(relay->ends[!which].fd, bytes, len) == (ssize_t)len) {
		way->passed++;
		way->bytes += len - VNET_HEADER_BYTES;
	} else {
		way->refused++;
	}
}

static struct packet **way_slot(struct way *way, uint32_t at)
{
	return &way->waiting[(way->first + at) % QUEUE_MAX];
}

static void way_wait(struct relay *relay, int which, uint64_t at_ns, uint32_t len)
{
	struct way *way = &relay->ways[which];
	const struct setting *setting = &way->setting;
	struct packet *packet;
	uint32_t at;

	if (way->count >= setting->queue) {
		way->overflowed++;
		return;
	}
	packet = malloc(sizeof(*packet) + len);
	if (!packet) {
		way->overflowed++;
		return;
	}
	packet->len = len;
	packet->due_ns = at_ns + setting->delay_ns +
			 (setting->jitter_ns ? random_next(relay) % setting->jitter_ns : 0);
	memcpy(packet->bytes, relay->packet, len);
	if (!setting->is_reordering && packet->due_ns < way->due_last_ns)
		packet->due_ns = way->due_last_ns;
	if (packet->due_ns > way->due_last_ns)
		way->due_last_ns = packet->due_ns;
	/* behind all that are due no later; without jitter that is the end */
	for (at = way->count++; at > 0 && (*way_slot(way, at - 1))->due_ns > packet->due_ns; at--)
		*way_slot(way, at) = *way_slot(way, at - 1);
	*way_slot(way, at) = packet;
}

/* Whether this packet is lost: in the middle of a burst, or at the begin of one. */
static bool way_loses(struct relay *relay, struct way *way)
{
	double loss = (double)way->setting.loss_ppm / PPM, burst = way->setting.burst;

	if (way->setting.loss_ppm == 0) {
		way->is_in_burst = false;
		return false;
	}
	if (!way->is_in_burst) {
		/* so that the mean of lost and passed packets comes to `loss` */
		if (!random_is(relay, 1 / (1 + burst * (1 - loss) / loss)))
			return false;
		way->is_in_burst = true;
		way->bursts++;
	}
	way->is_in_burst = !random_is(relay, 1 / burst);
	way->lost++;
	return true;
}

static void way_take(struct relay *relay, int which)
{
	struct way *way = &relay->ways[which];

	for (int i = 0; i < TURN_PACKETS_MAX; i++) {
		ssize_t len = read(relay->ends[which].fd, relay->packet, sizeof(relay->packet));
		int copies = 1;

		if (len <= VNET_HEADER_BYTES)
			return;
		if (way_loses(relay, way))
			continue;
		if (random_is(relay, (double)way->setting.duplicate_ppm / PPM)) {
			way->duplicated++;
			copies = 2;
		}
		for (; copies > 0; copies--) {
			if (way->setting.delay_ns + way->setting.jitter_ns == 0 && way->count == 0)
				way_hand_over(relay, which, relay->packet, (uint32_t)len);
			else
				way_wait(relay, which, now_ns(), (uint32_t)len);
		}
	}
}

/* Hand over what is due; answers when the next one is. */
static uint64_t way_release(struct relay *relay, int which, uint64_t at_ns)
{
	struct way *way = &relay->ways[which];

	while (way->count > 0) {
		struct packet *packet = *way_slot(way, 0);

		if (packet->due_ns > at_ns)
			return packet->due_ns;
		way_hand_over(relay, which, packet->bytes, packet->len);
		free(packet);
		way->first = (way->first + 1) % QUEUE_MAX;
		way->count--;
	}
	return UINT64_MAX;
}

/* ---- commands ---- */

/* NUMBER[.NUMBER]UNIT times the unit; false if it is not one, or above max. */
static bool quantity(const char *text, const char *const *units, const double *factors, double max,
		     double *value_out)
{
	char *end;
	double value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	for (; *units; units++, factors++)
		if (strcmp(end, *units) == 0 && value * *factors <= max) {
			*value_out = value * *factors;
			return true;
		}
	return false;
}

static bool take_time(const char *text, uint64_t *ns_out)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};
	static const double factors[] = {1, 1e3, 1e6, 1e9};
	double value;

	if (strcmp(text, "0") == 0)
		text = "0s";
	if (!quantity(text, units, factors, 60e9, &value))
		return false;
	*ns_out = (uint64_t)value;
	return true;
}

static bool take_share(const char *text, uint32_t *ppm_out)
{
	static const char *const units[] = {"%", NULL};
	static const double factors[] = {PPM / 100.0};
	double value;

	if (strcmp(text, "0") == 0)
		text = "0%";
	if (!quantity(text, units, factors, PPM, &value))
		return false;
	*ppm_out = (uint32_t)(value + 0.5);
	return true;
}

static bool take_count(const char *text, uint32_t max, uint32_t *count_out)
{
	static const char *const units[] = {"", NULL};
	static const double factors[] = {1};
	double value;

	if (!quantity(text, units, factors, max, &value) || value < 1 || value != (uint32_t)value)
		return false;
	*count_out = (uint32_t)value;
	return true;
}

static bool take_switch(const char *text, bool *is_on_out)
{
	*is_on_out = strcmp(text, "on") == 0;
	return *is_on_out || strcmp(text, "off") == 0;
}

static bool setting_take(struct setting *setting, const char *key, const char *value)
{
	if (strcmp(key, "delay") == 0)
		return take_time(value, &setting->delay_ns);
	if (strcmp(key, "jitter") == 0)
		return take_time(value, &setting->jitter_ns);
	if (strcmp(key, "loss") == 0)
		return take_share(value, &setting->loss_ppm);
	if (strcmp(key, "burst") == 0)
		return take_count(value, 1000000, &setting->burst);
	if (strcmp(key, "duplicate") == 0)
		return take_share(value, &setting->duplicate_ppm);
	if (strcmp(key, "reorder") == 0)
		return take_switch(value, &setting->is_reordering);
	if (strcmp(key, "queue") == 0)
		return take_count(value, QUEUE_MAX, &setting->queue);
	return false;
}

static void counters_print(const struct relay *relay)
{
	static const char *const names[] = {"ab", "ba"};

	for (int i = 0; i < 2; i++) {
		const struct way *way = &relay->ways[i];

		printf("%s\"%s\": {", i ? ", " : "{", names[i]);
#define X(name) printf("\"" #name "\": %" PRIu64 ", ", way->name);
		COUNTERS(X)
#undef X
		printf("\"waiting\": %" PRIu32 "}", way->count);
	}
	printf("}\n");
	fflush(stdout);
}

/* All of a line is taken, or nothing of it. */
static void command_take(struct relay *relay, char *line)
{
	struct setting settings[2] = {relay->ways[0].setting, relay->ways[1].setting};
	int from = 0, to = 1;
	char *rest = NULL, *key, *value;

	for (key = strtok_r(line, " \t", &rest); key; key = strtok_r(NULL, " \t", &rest)) {
		if (strcmp(key, "counters") == 0) {
			counters_print(relay);
			return;
		}
		if (strcmp(key, "clear") == 0) {
			for (int i = from; i <= to; i++)
				settings[i] = setting_clear;
			continue;
		}
		value = strtok_r(NULL, " \t", &rest);
		if (value && strcmp(key, "way") == 0 &&
		    (strcmp(value, "ab") == 0 || strcmp(value, "ba") == 0 ||
		     strcmp(value, "both") == 0)) {
			from = strcmp(value, "ba") == 0;
			to = strcmp(value, "ab") != 0;
			continue;
		}
		for (int i = from; i <= to; i++)
			if (!value || !setting_take(&settings[i], key, value)) {
				printf("{\"error\": \"'%s%s%s': allowed are delay and jitter (1ms, "
				       "to "
				       "60s), loss and duplicate (1%%), burst (8), reorder on or "
				       "off, queue (1 to %u), way ab, ba or both, clear, "
				       "counters\"}\n",
				       key, value ? " " : "", value ? value : "", QUEUE_MAX);
				fflush(stdout);
				return;
			}
	}
	for (int i = 0; i < 2; i++)
		relay->ways[i].setting = settings[i];
	printf("{\"ok\": true}\n");
	fflush(stdout);
}

static void control_read(struct relay *relay)
{
	char byte;

	while (read(relay->control_fd, &byte, 1) == 1) {
		/* no quoting in answers: what could need it is not taken */
		if (byte == '"' || byte == '\\' || (byte < ' ' && byte != '\n'))
			byte = '?';
		if (byte != '\n') {
			if (relay->line_len < LINE_BYTES - 1)
				relay->line[relay->line_len++] = byte;
			continue;
		}
		relay->line[relay->line_len] = 0;
		relay->line_len = 0;
		command_take(relay, relay->line);
	}
}

/* ---- start and turn ---- */

static void usage(FILE *out)
{
	fputs("usage: relay --end NETNS:NAME:INDEX --end NETNS:NAME:INDEX --control FIFO "
	      "[OPTION...]\n"
	      "A rail between two network namespaces with delay, loss and the like; see the top "
	      "of\n"
	      "tests/lab/relay.c for what FIFO takes.\n\n"
	      "  --end NETNS:NAME:INDEX  a TUN device to make there; twice\n"
	      "  --control FIFO          where commands come from; made if it is not there\n"
	      "  --mtu N                 of both devices (1500)\n"
	      "  --speed N               in Mb/s, that both devices say they have\n"
	      "  --seed N                of chance (1)\n"
	      "  --help                  this text\n",
	      out);
}

static unsigned option_number(const char *name, const char *text, unsigned long min,
			      unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < min || value > max)
		quit(2, "%s takes a number from %lu to %lu, not '%s'", name, min, max, text);
	return (unsigned)value;
}

static void option_end(struct end *end, char *text)
{
	char *rest = NULL, *name, *index;

	end->netns = strtok_r(text, ":", &rest);
	name = strtok_r(NULL, ":", &rest);
	index = strtok_r(NULL, ":", &rest);
	if (!end->netns || !name || !index || strlen(name) >= IFNAMSIZ)
		quit(2, "--end takes NETNS:NAME:INDEX, with a name of at most 15 letters");
	snprintf(end->name, sizeof(end->name), "%s", name);
	end->index = (int)option_number("INDEX of --end", index, 0, 1U << 30);
}

static void options_take(struct relay *relay, int argc, char **argv)
{
	static const struct option options[] = {
		{"end", required_argument, NULL, 'e'},
		{"mtu", required_argument, NULL, 'm'},
		{"control", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"speed", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, end_count = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'e':
			if (end_count == 2)
				quit(2, "--end is given twice, not more often");
			option_end(&relay->ends[end_count++], optarg);
			break;
		case 'm':
			relay->mtu = option_number("--mtu", optarg, 68, 65535);
			break;
		case 'p':
			relay->speed_mbits = option_number("--speed", optarg, 1, 1000000);
			break;
		case 'c':
			relay->control_path = optarg;
			break;
		case 's':
			relay->random = option_number("--seed", optarg, 1, 1U << 31);
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc || end_count < 2 || !relay->control_path) {
		usage(stderr);
		exit(2);
	}
}

static void watch(const struct relay *relay, int fd, unsigned source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	if (epoll_ctl(relay->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		quit(1, "epoll: %s", strerror(errno));
}

static void relay_init(struct relay *relay)
{
	sigset_t set;

	/* sub-millisecond delays are what this is for */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	relay->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	relay->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mkfifo(relay->control_path, 0600) < 0 && errno != EEXIST)
		quit(1, "%s: %s", relay->control_path, strerror(errno));
	/* for writing as well: it then never ends, whoever comes and goes */
	relay->control_fd = open(relay->control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (relay->signal_fd < 0 || relay->epoll_fd < 0 || relay->control_fd < 0)
		quit(1, "%s: %s", relay->control_path, strerror(errno));
	for (unsigned i = 0; i < 2; i++) {
		relay->ways[i].setting = setting_clear;
		end_open(&relay->ends[i], relay->mtu, relay->speed_mbits);
		watch(relay, relay->ends[i].fd, SOURCE_END + i);
		watch(relay, relay->ends[i].link_fd, SOURCE_LINK + i);
	}
	watch(relay, relay->control_fd, SOURCE_CONTROL);
	watch(relay, relay->signal_fd, SOURCE_SIGNAL);
	printf("ready\n");
	fflush(stdout);
}

static void relay_run(struct relay *relay)
{
	struct epoll_event events[6];

	for (;;) {
		uint64_t at_ns = now_ns();
		uint64_t due_ns[2] = {way_release(relay, 0, at_ns), way_release(relay, 1, at_ns)};
		uint64_t next_ns = due_ns[0] < due_ns[1] ? due_ns[0] : due_ns[1];
		uint64_t left_ns = next_ns - at_ns;
		struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000U),
					.tv_nsec = (long)(left_ns % 1000000000U)};
		int count = epoll_pwait2(relay->epoll_fd, events, 6,
					 next_ns == UINT64_MAX ? NULL : &left, NULL);

		for (int i = 0; i < count; i++) {
			unsigned source = events[i].data.u32;

			if (source == SOURCE_SIGNAL)
				return;
			if (source == SOURCE_CONTROL)
				control_read(relay);
			else if (source >= SOURCE_LINK)
				end_take_links(relay, (int)source - SOURCE_LINK);
			else
				way_take(relay, (int)source);
		}
	}
}

int main(int argc, char **argv)
{
	static struct relay relay = {.mtu = 1500, .random = 1};

	options_take(&relay, argc, argv);
	relay_init(&relay);
	relay_run(&relay);
	counters_print(&relay);
	return 0;
}
