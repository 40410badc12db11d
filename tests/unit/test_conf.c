/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_conf: what is right is loaded, what is wrong is explained, and nothing does harm. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mrcd_conf_load.h"
#include "mrcd_memfd.h"

#if MRC_VERBS
#define RAIL_TYPES "tcp, verbs, auto"
#else
#define RAIL_TYPES "tcp, auto"
#endif

/* A directory with keys in it; configurations are said to lie there, so `key-file: key` finds one. */
static char dir[64];
static char conf_file[80];

static void file_make(const char *name, const char *bytes, size_t len, mode_t mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int dir_make(void **state)
{
	char bytes[257];

	strcpy(dir, "/tmp/mrcd-test-conf.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(conf_file, sizeof(conf_file), "%s/mrcd.yaml", dir);
	memset(bytes, 'k', sizeof(bytes));
	file_make("key-short", bytes, 15, 0600);
	file_make("key-long", bytes, 257, 0600);
	file_make("key-open", bytes, 32, 0644);
	file_make("key-group", bytes, 32, 0660);
	file_make("key-256", bytes, 256, 0400);
	bytes[32] = '\n';
	file_make("key", bytes, 33, 0600);
	file_make("key-b", bytes, 32, 0600);
	memset(bytes, 'q', 16);
	file_make("key-2", bytes, 16, 0640);
	file_make("key-b.old", bytes, 16, 0600);
	return 0;
}

static int dir_remove(void **state)
{
	static const char *const names[] = {"key-short", "key-long", "key-open",  "key-group",
					    "key-256",   "key",      "key-b",     "key-2",
					    "key-b.old", "pipe",     "mrcd.yaml", "large.yaml"};
	char path[256];

	for (size_t i = 0; i < MRC_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

/* The errors of one load, joined by newlines, without the file's name in front. */
struct said {
	char text[16384];
	uint32_t count;
	bool is_malformed; /* a line not of the form FILE:... */
};

static void on_error(void *context, const char *line)
{
	struct said *said = context;
	size_t len = strlen(said->text), file_len = strlen(conf_file);

	if (strncmp(line, conf_file, file_len) != 0 || line[file_len] != ':' || strchr(line, '\n'))
		said->is_malformed = true;
	else
		line += file_len + 1;
	snprintf(said->text + len, sizeof(said->text) - len, "%s%s", said->count ? "\n" : "", line);
	said->count++;
}

static struct mrcd_conf *load_good(const char *text)
{
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};

	if (mrcd_conf_load_text(conf_file, text, strlen(text), on_error, &said, &conf))
		fail_msg("refused: %s\n%s", said.text, text);
	assert_int_equal(said.count, 0);
	return conf;
}

/* ---- what is wrong ---- */

static void conf_says_what_is_wrong_and_what_is_allowed(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} rows[] = {
#include "conf_bad.inc"
	};
	int bad = 0;

	assert_true(MRC_ARRAY_LEN(rows) >= 60);
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrcd_conf *conf = NULL;
		struct said said = {.count = 0};
		int r = mrcd_conf_load_text(conf_file, rows[i].text, strlen(rows[i].text), on_error,
					    &said, &conf);

		if (r == -EINVAL && !conf && !said.is_malformed &&
		    strcmp(said.text, rows[i].want) == 0)
			continue;
		print_error("%s: answer %d\n said: %s\n want: %s\n", rows[i].name, r, said.text,
			    rows[i].want);
		mrcd_conf_free(conf);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static void conf_refuses_utf_16(void **state)
{
	static const char text[] = "\xff\xfeh\0o\0s\0t\0:\0 \0a\0\n\0";
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};

	assert_int_equal(mrcd_conf_load_text(conf_file, text, sizeof(text) - 1, on_error, &said,
					     &conf),
			 -EINVAL);
	assert_string_equal(said.text, "1: invalid leading UTF-8 octet; allowed: UTF-8 text");
}

static void conf_reports_twenty_errors_and_that_there_are_more(void **state)
{
	char text[4096] = "host: a\n";
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};
	size_t len = strlen(text);

	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "wrong-%d: 1\n", i);
	assert_int_equal(mrcd_conf_load_text(conf_file, text, len, on_error, &said, &conf),
			 -EINVAL);
	assert_int_equal(said.count, 21);
	assert_non_null(strstr(said.text, "21: wrong-19: "));
	assert_null(strstr(said.text, "wrong-20"));
	assert_non_null(strstr(said.text, "\n there are more errors; these are the first 20"));
}

static void conf_masks_what_could_steer_a_terminal(void **state)
{
	static const char text[] = "host: \"a\\e[31m\\n\"\n\"k\\ney\": 1\n";
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};

	assert_int_equal(mrcd_conf_load_text(conf_file, text, sizeof(text) - 1, on_error, &said,
					     &conf),
			 -EINVAL);
	assert_false(said.is_malformed);
	assert_non_null(strstr(said.text, "1: host: 'a?[31m?' is not a name"));
	assert_non_null(strstr(said.text, "2: k?ey: unknown key"));
}

static void conf_copy_says_what_the_file_said_when_it_was_read(void **state)
{
	static const char text[] = "host: a\nrails: []\n# the end";
	struct mrcd_conf *conf = NULL, *again = NULL;
	struct said said = {.count = 0};
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/copied.yaml", dir);
	file_make("copied.yaml", text, strlen(text), 0600);
	assert_int_equal(mrcd_conf_load(path, on_error, &said, &conf), 0);
	assert_false(conf->is_former);
	fd = mrcd_conf_copy(conf);
	assert_true(fd >= 0);
	mrcd_conf_free(conf);
	file_make("copied.yaml", "host: a b\n", strlen("host: a b\n"), 0600);
	assert_int_equal(mrcd_conf_load(path, on_error, &said, &conf), -EINVAL);

	/* As often as is wanted: whoever has it may be restarted with it once more. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mrcd_conf_load_copy(path, fd, on_error, &said, &again), 0);
		assert_true(again->is_former);
		assert_string_equal(again->host, "a");
		assert_string_equal(again->file, path);
		close(fd);
		fd = mrcd_conf_copy(again);
		assert_true(fd >= 0);
		assert_int_equal(again->text_bytes, strlen(text));
		mrcd_conf_free(again);
	}
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
	assert_int_equal(mrcd_conf_copy(&(struct mrcd_conf){.text = NULL}), -ENODATA);
}

static void conf_file_that_cannot_be_read_is_an_errno(void **state)
{
	char path[256];
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};
	char *large = malloc(MRCD_CONF_FILE_BYTES_MAX + 1);

	assert_int_equal(mrcd_conf_load(conf_file, on_error, &said, &conf), -ENOENT);
	assert_string_equal(said.text, " cannot be opened: No such file or directory; allowed: a "
				       "file that this user can read");

	said = (struct said){.count = 0};
	assert_int_equal(mrcd_conf_load(dir, on_error, &said, &conf), -EINVAL);
	assert_non_null(strstr(said.text, ": is not a regular file"));

	/* A pipe that nobody writes to must not hold the daemon up. */
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	said = (struct said){.count = 0};
	assert_int_equal(mrcd_conf_load(path, on_error, &said, &conf), -EINVAL);
	assert_non_null(strstr(said.text, ": is not a regular file"));

	assert_non_null(large);
	memset(large, '#', MRCD_CONF_FILE_BYTES_MAX + 1);
	memcpy(large, "host: a\n", strlen("host: a\n")); /* NOLINT: no end of text wanted */
	file_make("large.yaml", large, MRCD_CONF_FILE_BYTES_MAX + 1, 0600);
	snprintf(path, sizeof(path), "%s/large.yaml", dir);
	said = (struct said){.count = 0};
	assert_int_equal(mrcd_conf_load(path, on_error, &said, &conf), -EINVAL);
	assert_non_null(strstr(said.text, ": the file is too large; allowed: up to 8MiB"));

	file_make("large.yaml", large, MRCD_CONF_FILE_BYTES_MAX, 0600);
	assert_int_equal(mrcd_conf_load(path, on_error, &said, &conf), 0);
	assert_string_equal(conf->file, path);
	mrcd_conf_free(conf);
	free(large);
}

static void conf_file_of_another_user_s_key_is_refused(void **state)
{
	char path[256];
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};
	static const char text[] = "host: a\nkey-file: key-2\n";
	bool is_root = geteuid() == 0;

	if (!is_root)
		skip(); /* only root can give a file away */
	snprintf(path, sizeof(path), "%s/key-2", dir);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_int_equal(mrcd_conf_load_text(conf_file, text, sizeof(text) - 1, on_error, &said,
					     &conf),
			 -EINVAL);
	assert_non_null(strstr(said.text, "belongs to another user"));
	assert_int_equal(chown(path, 0, 12345), 0);
	said = (struct said){.count = 0};
	assert_int_equal(mrcd_conf_load_text(conf_file, text, sizeof(text) - 1, on_error, &said,
					     &conf),
			 -EINVAL);
	assert_non_null(strstr(said.text, "its group, which is not the daemon's"));
	assert_int_equal(chown(path, 0, 0), 0);
}

/* ---- what is right ---- */

static const char full[] = "host: a\n"
			   "runtime-dir: /run/x\n"
			   "key-file: [key, key-2]\n"
			   "listen-port: 7000\n"
			   "rails:\n"
			   "  - {name: r0, type: tcp, interface: eth0, address: 10.0.0.1, port: "
			   "7001, speed: 2.5Gb/s}\n"
			   "  - {name: r1, type: auto, interface: eth1, drained: true, device: "
			   "mlx5_0/1, ack-timeout: 12, retry-count: 3}\n"
			   "  - name: r2\n"
			   "    address: \"FD00:0::1\"\n"
			   "    speed: 400 Gb/s\n"
			   "peers:\n"
			   "  - name: b.example\n"
			   "    key-file: key-256\n"
			   "    paths:\n"
			   "      - {rail: r0, address: 10.0.0.2, port: 7002}\n"
			   "      - {rail: r1, address: b1.example.}\n"
			   "      - {rail: r2, address: \"fe80::2%eth2\"}\n"
			   "  - name: c\n"
			   "    paths: [{rail: r0, address: 10.0.0.3}]\n"
			   "services:\n"
			   "  - {name: perf, users: [root, 4711], groups: [root]}\n"
			   "  - {name: open}\n"
			   "  - {name: shut, users: []}\n"
			   "clients: {window-messages: 64, landing-ring: 64KiB}\n"
			   "limits:\n"
			   "  eager-max: 16KiB\n"
			   "  handshakes-max: 7\n"
			   "timers: {suspect-floor: 1.5ms, spin: 0, peer-silent: 1min}\n"
			   "log: {level: debug}\n";

static void conf_takes_every_kind_of_value(void **state)
{
	struct mrcd_conf *conf = load_good(full);

	assert_string_equal(conf->host, "a");
	assert_string_equal(conf->runtime_dir, "/run/x");
	assert_string_equal(conf->file, conf_file);
	assert_int_equal(conf->log_level, 7);
	assert_int_equal(conf->rail_count, 3);
	assert_string_equal(conf->rails[0].name, "r0");
	assert_string_equal(conf->rails[0].interface, "eth0");
	assert_string_equal(conf->rails[0].address, "10.0.0.1");
	assert_int_equal(conf->rails[0].port, 7001);
	assert_true(conf->rails[0].speed_bits_per_s == 2500000000ULL);
	assert_false(conf->rails[0].is_drained);
	assert_int_equal(conf->rails[0].type, MRCD_RAIL_TCP);
	assert_int_equal(conf->rails[1].type, MRC_VERBS ? MRCD_RAIL_AUTO : MRCD_RAIL_TCP);
	assert_int_equal(conf->rails[1].port, 7000);
	assert_string_equal(conf->rails[1].address, "");
	assert_true(conf->rails[1].is_drained);
	assert_string_equal(conf->rails[2].address, "fd00::1");
	assert_true(conf->rails[2].speed_bits_per_s == 400000000000ULL);

	assert_int_equal(conf->peer_count, 2);
	assert_string_equal(conf->peers[0].name, "b.example");
	assert_int_equal(conf->peers[0].path_count, 3);
	assert_int_equal(conf->peers[0].paths[0].port, 7002);
	assert_int_equal(conf->peers[0].paths[1].rail_index, 1);
	assert_int_equal(conf->peers[0].paths[1].port, 7000);
	assert_string_equal(conf->peers[0].paths[1].address, "b1.example.");
	assert_string_equal(conf->peers[0].paths[2].address, "fe80::2%eth2");
	assert_int_equal(conf->peers[0].key_count, 1);
	assert_int_equal(conf->peers[0].keys[0].len_bytes, 256);
	/* The other peer has the global keys, in the order given, without the newline. */
	assert_int_equal(conf->peers[1].key_count, 2);
	assert_int_equal(conf->peers[1].keys[0].len_bytes, 32);
	assert_int_equal(conf->peers[1].keys[0].bytes[31], 'k');
	assert_int_equal(conf->peers[1].keys[1].len_bytes, 16);
	assert_int_equal(conf->peers[1].keys[1].bytes[0], 'q');

	assert_int_equal(conf->clients.window_messages, 64);
	assert_true(conf->clients.landing_ring_bytes == 65536);
	assert_int_equal(conf->limits.eager_bytes_max, 16384);
	assert_int_equal(conf->handshakes_max, 7);
	assert_true(conf->limits.suspect_floor_ns == 1500000);
	assert_true(conf->spin_ns == 0);
	assert_true(conf->limits.peer_silent_ns == 60 * MRC_S);
	mrcd_conf_free(conf);
}

static void conf_takes_huge_pages_by_word_and_by_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{"no", 0},
		{"false", 0},
		{"yes", MRCD_HUGE_PAGES_ANY},
		{"true", MRCD_HUGE_PAGES_ANY},
		{"2MiB", 2U << 20},
		{"1GiB", 1U << 30},
		{"64KiB", 64U << 10},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrcd_conf *conf;
		char text[80];

		snprintf(text, sizeof(text), "host: a\nkey-file: key\nclients: {huge-pages: %s}\n",
			 cases[i].text);
		conf = load_good(text);
		assert_true(conf->clients.huge_page_bytes == cases[i].want);
		mrcd_conf_free(conf);
	}
}

#if MRC_VERBS
static void conf_takes_what_rails_with_devices_have(void **state)
{
	struct mrcd_conf *conf =
		load_good("host: a\n"
			  "rails:\n"
			  "  - {name: r0, type: verbs, device: mlx5_0/1, ack-timeout: 8, "
			  "retry-count: 0, receive-entries: 32768, receive-entry-bytes: 128KiB}\n"
			  "  - {name: r1, type: verbs, device: mlx5_0/254, ack-timeout: 22, "
			  "receive-entries: 64, receive-entry-bytes: 4KiB}\n"
			  "  - {name: r2, device: mlx5_0}\n"
			  "  - {name: r3, type: verbs, interface: ib0}\n"
			  "  - {name: r4, type: verbs, address: 10.0.4.1}\n"
			  /* one port of a device in two networks, and the same with another port */
			  "  - {name: r5, device: rxe.a-b, address: 10.0.5.1}\n"
			  "  - {name: r6, device: rxe.a-b, address: 10.0.6.1}\n"
			  "  - {name: r7, device: rxe.a-b, port: 7472}\n");
	const struct mrcd_conf_rail *rail = conf->rails;

	assert_int_equal(rail[0].type, MRCD_RAIL_VERBS);
	assert_string_equal(rail[0].device, "mlx5_0");
	assert_int_equal(rail[0].device_port, 1);
	assert_int_equal(rail[0].port, 7471);
	assert_int_equal(rail[0].ack_timeout, 8);
	assert_int_equal(rail[0].retry_count, 0);
	assert_int_equal(rail[0].receive_entries, 32768);
	assert_true(rail[0].receive_entry_bytes == 128 << 10);
	assert_int_equal(rail[1].device_port, 254);
	assert_int_equal(rail[1].ack_timeout, 22);
	assert_int_equal(rail[1].receive_entries, 64);
	assert_true(rail[1].receive_entry_bytes == 4 << 10);
	assert_int_equal(rail[2].type, MRCD_RAIL_AUTO);
	assert_string_equal(rail[2].device, "mlx5_0");
	assert_int_equal(rail[2].device_port, 0);
	assert_int_equal(rail[2].ack_timeout, 14);
	assert_int_equal(rail[2].retry_count, 6);
	assert_int_equal(rail[2].receive_entries, 1024);
	assert_true(rail[2].receive_entry_bytes == 16 << 10);
	assert_string_equal(rail[3].device, "");
	assert_string_equal(rail[5].device, "rxe.a-b");
	assert_int_equal(conf->rail_count, 8);
	mrcd_conf_free(conf);
}
#endif

static void conf_has_the_defaults_that_the_headers_name(void **state)
{
	struct mrcd_conf *conf = load_good("host: a\n");

	assert_string_equal(conf->runtime_dir, "/run/mrcd");
	assert_int_equal(conf->listen_port, 7471);
	assert_int_equal(conf->worker_count, 1);
	assert_int_equal(conf->log_level, 6);
	assert_int_equal(conf->handshakes_max, 64);
	assert_true(conf->handshake_timeout_ns == 2 * MRC_S);
	assert_true(conf->spin_ns == 100 * MRC_US);
	assert_int_equal(conf->rail_count, 0);
	assert_int_equal(conf->peer_count, 0);
	assert_int_equal(conf->clients.clients_max, 256);
	assert_int_equal(conf->clients.channels_max, 256);
	assert_int_equal(conf->clients.listeners_max, 64);
	assert_int_equal(conf->clients.sends_max, 8192);
	assert_int_equal(conf->clients.window_messages, 128);
	assert_true(conf->clients.landing_ring_bytes == 1 << 20);
	assert_true(conf->clients.send_arena_bytes == 256 << 20);
	assert_true(conf->clients.landing_arena_bytes == 256 << 20);
	assert_true(conf->clients.huge_page_bytes == 0);
	assert_int_equal(conf->limits.channels_max, 1024);
	assert_int_equal(conf->limits.frames_in_flight_max, 1024);
	assert_int_equal(conf->limits.holds_max, 64);
	assert_int_equal(conf->limits.ranges_max, 4096);
	assert_int_equal(conf->limits.eager_bytes_max, 32 << 10);
	assert_int_equal(conf->limits.frag_bytes_max, 128 << 10);
	assert_true(conf->limits.path_window_bytes_min == 256 << 10);
	assert_true(conf->limits.path_window_bytes_max == 4 << 20);
	assert_true(conf->limits.suspect_floor_ns == MRC_MS);
	assert_true(conf->limits.suspect_ceiling_ns == 200 * MRC_MS);
	assert_true(conf->limits.probe_interval_ns == 20 * MRC_MS);
	assert_true(conf->limits.probe_count == 3);
	assert_true(conf->limits.peer_silent_ns == 10 * MRC_S);
	assert_true(conf->limits.backoff_min_ns == 5 * MRC_MS);
	assert_true(conf->limits.backoff_max_ns == MRC_S);
	assert_true(conf->limits.revive_ns == 500 * MRC_MS);
	assert_true(conf->limits.hold_good_ns == MRC_S);
	mrcd_conf_free(conf);
}

static void conf_without_a_host_takes_the_machine_s_name(void **state)
{
	char name[256] = "";
	struct mrcd_conf *conf;

	gethostname(name, sizeof(name) - 1);
	if (!mrcd_conf_is_name(name))
		skip();
	conf = load_good("rails: []\n");
	assert_string_equal(conf->host, name);
	mrcd_conf_free(conf);
}

static void conf_takes_sections_and_lists_with_nothing_in_them(void **state)
{
	struct mrcd_conf *conf = load_good("host: a\nrails:\npeers: ~\nclients:\nlimits:\ntimers: "
					   "{}\nmetrics:\nlog:\n");

	assert_int_equal(conf->rail_count, 0);
	mrcd_conf_free(conf);
}

static void conf_takes_as_many_rails_and_paths_as_there_may_be(void **state)
{
	char text[8192] = "host: a\nkey-file: key\nrails:\n";
	struct mrcd_conf *conf;
	size_t len = strlen(text);

	for (int i = 0; i < 16; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"- {name: r%d, address: 10.0.%d.1}\n", i, i);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "peers:\n- name: b\n  paths:\n");
	for (int i = 0; i < 16; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"  - {rail: r%d, address: 10.0.%d.2}\n", i, i);
	conf = load_good(text);
	assert_int_equal(conf->rail_count, 16);
	assert_int_equal(conf->peers[0].path_count, 16);
	assert_int_equal(conf->peers[0].paths[15].rail_index, 15);
	mrcd_conf_free(conf);
}

static void conf_joins_one_rail_with_several_of_a_peer(void **state)
{
	struct mrcd_conf *conf = load_good(
		"host: a\nkey-file: key\nrails: [{name: r0, address: 127.0.0.1, port: 1}, {name: "
		"r1, address: 127.0.0.1, port: 2}]\npeers: [{name: b, paths: [{rail: r0, address: "
		"127.0.0.1, port: 3}, {rail: r0, address: 127.0.0.1, port: 4}, {rail: r1, address: "
		"127.0.0.1, port: 3}]}]\n");

	assert_int_equal(conf->peers[0].path_count, 3);
	mrcd_conf_free(conf);
}

static void conf_shows_metrics_where_it_is_meant(void **state)
{
	static const struct {
		const char *text, *address;
		bool is_enabled;
	} rows[] = {
		{"", "127.0.0.1", true},
		{"metrics: {enabled: false}\n", "127.0.0.1", false},
		{"metrics: {address: \"::1\"}\n", "::1", true},
		{"metrics: {address: 127.1.2.3}\n", "127.1.2.3", true},
		{"metrics: {address: 10.0.0.1, public: true}\n", "10.0.0.1", true},
		/* Nothing is shown, so nothing is shown to the world. */
		{"metrics: {address: 10.0.0.1, enabled: false}\n", "10.0.0.1", false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		char text[128];
		struct mrcd_conf *conf;

		snprintf(text, sizeof(text), "host: a\n%s", rows[i].text);
		conf = load_good(text);
		assert_string_equal(conf->metrics.address, rows[i].address);
		assert_int_equal(conf->metrics.is_enabled, rows[i].is_enabled);
		assert_int_equal(conf->metrics.port, 9471);
		mrcd_conf_free(conf);
	}
}

/* ---- services ---- */

static void conf_service_is_its_own_entry_or_the_star_or_nobody(void **state)
{
	struct mrcd_conf *conf = load_good("host: a\nservices: [{name: \"*\"}, {name: x}]\n");

	assert_string_equal(mrcd_conf_service(conf, "x")->name, "x");
	assert_string_equal(mrcd_conf_service(conf, "y")->name, "*");
	mrcd_conf_free(conf);
	conf = load_good("host: a\nservices: [{name: x}]\n");
	assert_null(mrcd_conf_service(conf, "y"));
	mrcd_conf_free(conf);
	conf = load_good("host: a\nservices: []\n");
	assert_null(mrcd_conf_service(conf, "y"));
	mrcd_conf_free(conf);
	conf = load_good("host: a\n");
	assert_true(mrcd_conf_service(conf, "y")->any.is_open);
	mrcd_conf_free(conf);
}

static void conf_service_allows_whom_it_names(void **state)
{
	struct mrcd_conf *conf = load_good(full);
	static const struct {
		const char *service;
		uid_t uid;
		gid_t gid;
		bool want;
	} rows[] = {
		{"perf", 0, 0, true},        {"perf", 4711, 9999, true},  /* by number */
		{"perf", 4712, 9999, false}, {"perf", 4712, 0, true},     /* by its group */
		{"open", 4712, 9999, true},  {"shut", 4712, 9999, false}, /* nobody is listed */
		{"shut", 0, 0, true},        {"absent", 4711, 0, false},  /* no entry, no star */
		{"absent", 0, 0, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrcd_conf_service *service = mrcd_conf_service(conf, rows[i].service);

		const struct mrcd_creds creds = {.uid = rows[i].uid, .gid = rows[i].gid};

		for (int use = 0; use < MRCD_USES; use++)
			if (mrcd_conf_service_allows(service, (enum mrcd_use)use, &creds) !=
			    rows[i].want)
				fail_msg("%s for uid %u gid %u", rows[i].service, rows[i].uid,
					 rows[i].gid);
	}
	mrcd_conf_free(conf);
}

/* Those the process has: what a database of users says of it is not asked. */
static void conf_service_knows_supplementary_groups(void **state)
{
	gid_t groups[] = {5, 4713, 7};
	struct mrcd_creds creds = {.uid = 4711, .gid = 1, .groups = groups, .group_count = 3};
	struct mrcd_conf *conf = load_good("host: a\nservices: [{name: x, groups: [4713]}]\n");
	const struct mrcd_conf_service *service = mrcd_conf_service(conf, "x");

	assert_true(mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds));
	groups[1] = 4714;
	assert_false(mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds));
	groups[2] = 4713;
	assert_true(mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds));
	creds.group_count = 2;
	assert_false(mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds));
	creds.gid = 4713;
	assert_true(mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds));
	mrcd_conf_free(conf);
}

static void conf_service_tells_listening_from_connecting(void **state)
{
	struct mrcd_conf *conf =
		load_good("host: a\nservices:\n"
			  "  - {name: offered, listen-users: [4711]}\n"
			  "  - {name: reached, users: [4711], connect-users: [4712], "
			  "connect-groups: [4713]}\n"
			  "  - {name: closed, listen-users: [], connect-groups: [4713]}\n");
	static const struct {
		const char *service;
		uid_t uid;
		gid_t gid;
		bool listens, connects;
	} rows[] = {
		{"offered", 4711, 1, true, true},     {"offered", 4712, 1, false, true},
		{"reached", 4711, 1, true, false},    {"reached", 4712, 1, false, true},
		{"reached", 4799, 4713, false, true}, {"closed", 4711, 1, false, false},
		{"closed", 4711, 4713, false, true},  {"closed", 0, 0, true, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrcd_conf_service *service = mrcd_conf_service(conf, rows[i].service);

		const struct mrcd_creds creds = {.uid = rows[i].uid, .gid = rows[i].gid};

		if (mrcd_conf_service_allows(service, MRCD_USE_LISTEN, &creds) != rows[i].listens ||
		    mrcd_conf_service_allows(service, MRCD_USE_CONNECT, &creds) != rows[i].connects)
			fail_msg("%s for uid %u gid %u", rows[i].service, rows[i].uid, rows[i].gid);
	}
	mrcd_conf_free(conf);
}

/* ---- quotas ---- */

static void conf_quota_is_the_first_that_fits_completed_by_clients(void **state)
{
	struct mrcd_conf *conf = load_good(
		"host: a\nclients: {sends-max: 7, channels-max: 8}\nquotas:\n"
		"  - {users: [4711], sends-max: 9, weight: 200, rate: 1Gb/s}\n"
		"  - {groups: [4713], clients-max: 2, send-arena: 4GiB, landing-arena: 1MiB}\n"
		"  - {in-flight-max: 1MiB}\n");
	struct mrcd_conf_quota quota;

	mrcd_conf_quota(conf, &(struct mrcd_creds){.uid = 4711, .gid = 4713}, &quota);
	assert_int_equal(quota.sends_max, 9);
	assert_int_equal(quota.channels_max, 8);
	assert_int_equal(quota.clients_max, 256);
	assert_int_equal(quota.weight, 200);
	assert_true(quota.rate_bits_per_s == 1000000000 && quota.in_flight_bytes_max == 0);
	mrcd_conf_quota(conf, &(struct mrcd_creds){.uid = 4712, .gid = 4713}, &quota);
	assert_int_equal(quota.clients_max, 2);
	assert_int_equal(quota.sends_max, 7);
	assert_int_equal(quota.weight, MRC_WEIGHT_DEFAULT);
	assert_true(quota.send_arena_bytes == 4ULL << 30);
	assert_true(quota.landing_arena_bytes == 1 << 20);
	/* Root is nobody special here. */
	mrcd_conf_quota(conf, &(struct mrcd_creds){.uid = 0, .gid = 0}, &quota);
	assert_true(quota.in_flight_bytes_max == 1 << 20);
	assert_true(quota.send_arena_bytes == 256ULL << 20);
	mrcd_conf_free(conf);
	conf = load_good("host: a\n");
	mrcd_conf_quota(conf, &(struct mrcd_creds){.uid = 4711, .gid = 1}, &quota);
	assert_int_equal(quota.sends_max, 8192);
	assert_int_equal(quota.weight, MRC_WEIGHT_DEFAULT);
	mrcd_conf_free(conf);
}

/* ---- what we install ---- */

static char *file_text(const char *name)
{
	char path[512], *text;
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", MRC_SOURCE_DIR, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be opened", path);
	assert_int_equal(fstat(fileno(f), &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	return text;
}

static void conf_installed_by_us_loads_as_it_is(void **state)
{
	char *text = file_text("conf/mrcd.yaml");
	struct mrcd_conf *conf = load_good(text);

	assert_int_equal(conf->peer_count, 0);
	mrcd_conf_free(conf);
	free(text);
}

/* "#key: value" is a setting, "# text" is prose. */
static void settings_uncomment(char *text)
{
	char *to = text;

	for (char *line = text; *line;) {
		size_t len = strcspn(line, "\n") + 1;
		bool is_setting = line[0] == '#' && line[1] != '\n' &&
				  (line[1] != ' ' || (line[2] == ' ' && line[3] != ' '));

		if (is_setting) {
			memmove(to, line + 1, len - 1);
			to += len - 1;
		} else {
			memmove(to, line, len);
			to += len;
		}
		line += len;
	}
	*to = 0;
}

static void conf_installed_by_us_names_every_default(void **state)
{
	char *text = file_text("conf/mrcd.yaml");
	struct mrcd_conf *want = load_good("rails: []\n");
	char key_path[128], *key_line, *changed;
	struct mrcd_conf *conf;

	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		char line[128];

		if (!key->default_text || !*key->default_text || key->kind == MRCD_KIND_MAP)
			continue;
		if (key->section == MRCD_SECTION_RAIL)
			continue; /* shown in the prose */
		snprintf(line, sizeof(line), "%s: %s\n", key->name, key->default_text);
		if (!strstr(text, line))
			fail_msg("conf/mrcd.yaml has no line '%s'", line);
	}
	settings_uncomment(text);
	/* All settings, but for the key, which is not on this machine, and the example of a name. */
	changed = calloc(1, strlen(text) + 128);
	assert_non_null(changed);
	key_line = strstr(text, "key-file: /etc/mrcd/key\n");
	assert_non_null(key_line);
	snprintf(key_path, sizeof(key_path), "key-file: %s/key\n", dir);
	sprintf(changed, "%.*s%s%s", (int)(key_line - text), text, key_path,
		strchr(key_line, '\n') + 1);
	conf = load_good(changed);
	assert_string_equal(conf->host, "a");
	assert_int_equal(conf->listen_port, want->listen_port);
	assert_string_equal(conf->runtime_dir, want->runtime_dir);
	assert_memory_equal(&conf->clients, &want->clients, sizeof(want->clients));
	assert_memory_equal(&conf->limits, &want->limits, sizeof(want->limits));
	assert_true(conf->handshake_timeout_ns == want->handshake_timeout_ns);
	assert_true(conf->handshakes_max == want->handshakes_max);
	assert_true(conf->spin_ns == want->spin_ns);
	assert_int_equal(conf->log_level, want->log_level);
	assert_int_equal(conf->service_count, 1);
	assert_true(conf->services[0].any.is_open);
	mrcd_conf_free(conf);
	mrcd_conf_free(want);
	free(changed);
	free(text);
}

static void conf_examples_load_with_a_key(void **state)
{
	static const struct {
		const char *file;
		uint32_t rail_count, peer_count, key_count, verbs_count, device_count;
	} rows[] = {
		{"two-hosts-two-rails.yaml", 2, 1, 1, 0, 0},
		{"four-tcp-rails.yaml", 4, 2, 1, 0, 0},
		{"mixed-speeds.yaml", 2, 1, 2, 0, 0},
		{"rdma-two-cables.yaml", 2, 1, 1, 2, 2},
		{"roce-four-rails.yaml", 4, 2, 1, 4, 4},
		{"infiniband.yaml", 2, 1, 1, 2, 2},
		{"iwarp.yaml", 2, 1, 1, 2, 0},
		{"mixed-verbs-tcp.yaml", 3, 2, 1, 0, 2},
	};
	static const char real[] = "/etc/mrcd/";
	uint32_t file_count = 0;
	DIR *examples = opendir(MRC_SOURCE_DIR "/conf/examples");

	assert_non_null(examples);
	for (struct dirent *entry; (entry = readdir(examples)) != NULL;)
		file_count += strstr(entry->d_name, ".yaml") != NULL;
	closedir(examples);
	assert_int_equal(file_count, MRC_ARRAY_LEN(rows)); /* none is left out */

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint32_t verbs_count = 0, device_count = 0;
		char path[64], *text, *at;
		struct mrcd_conf *conf;

		if (rows[i].verbs_count > 0 && !MRC_VERBS)
			continue;
		snprintf(path, sizeof(path), "conf/examples/%s", rows[i].file);
		text = file_text(path);

		/* Relative names lead to the keys beside the configuration. */
		while ((at = strstr(text, real)) != NULL)
			memmove(at, at + strlen(real), strlen(at + strlen(real)) + 1);
		conf = load_good(text);
		assert_int_equal(conf->rail_count, rows[i].rail_count);
		assert_int_equal(conf->peer_count, rows[i].peer_count);
		assert_int_equal(conf->peers[0].key_count, rows[i].key_count);
		for (uint32_t rail = 0; rail < conf->rail_count; rail++) {
			verbs_count += conf->rails[rail].type == MRCD_RAIL_VERBS;
			device_count += conf->rails[rail].device[0] != '\0';
		}
		assert_int_equal(verbs_count, rows[i].verbs_count);
		assert_int_equal(device_count, rows[i].device_count);
		mrcd_conf_free(conf);
		free(text);
	}
}

static void conf_help_names_every_key_and_default(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	mrcd_conf_keys_write(f);
	fclose(f);
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		const char *written = mrcd_conf_section_written(key->section);
		const char *value = key->default_text;
		char want[256];

		snprintf(want, sizeof(want), "  %s%s%s\n      default: %s\n", written,
			 *written ? "." : "", key->name,
			 !value   ? "required"
			 : *value ? value
				  : "see the text");
		if (!strstr(text, want))
			fail_msg("the help has no '%s'", want);
	}
	free(text);
}

/* ---- harm ---- */

static void load_anything(const char *text, size_t len)
{
	struct mrcd_conf *conf = NULL;
	struct said said = {.count = 0};
	/* Exactly as long as the text, so that a sanitizer sees a read beyond its end. */
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, len);
	r = mrcd_conf_load_text(conf_file, copy, len, on_error, &said, &conf);
	free(copy);
	if (r == 0) {
		assert_int_equal(said.count, 0);
		mrcd_conf_free(conf);
		return;
	}
	assert_int_equal(r, -EINVAL);
	assert_null(conf);
	assert_true(said.count >= 1 && said.count <= MRCD_CONF_ERRORS_MAX + 1);
	assert_false(said.is_malformed);
}

static void conf_survives_every_prefix_of_a_good_file(void **state)
{
	for (size_t len = 0; len < sizeof(full); len++)
		load_anything(full, len);
}

static void conf_survives_flipped_bytes(void **state)
{
	struct mrc_rng rng = {.state = 0x5eedc0f};
	char text[sizeof(full)];

	for (int round = 0; round < 4000; round++) {
		uint64_t flips = 1 + mrc_rng_next(&rng) % 4;

		memcpy(text, full, sizeof(full));
		while (flips-- > 0)
			text[mrc_rng_next(&rng) % (sizeof(full) - 1)] ^=
				(char)(1 << mrc_rng_next(&rng) % 8);
		load_anything(text, sizeof(full) - 1);
	}
}

static void conf_survives_swapped_and_repeated_pieces(void **state)
{
	struct mrc_rng rng = {.state = 0x5eedc10};
	char text[2 * sizeof(full)];

	for (int round = 0; round < 1000; round++) {
		size_t a = mrc_rng_next(&rng) % (sizeof(full) - 1);
		size_t b = mrc_rng_next(&rng) % (sizeof(full) - 1);

		memcpy(text, full, a);
		memcpy(text + a, full + b, sizeof(full) - 1 - b);
		load_anything(text, a + sizeof(full) - 1 - b);
	}
}

static void conf_survives_much_of_one_thing(void **state)
{
	static const char *const pieces[] = {
		"[",  "{",    "- ",   "? ",   "a: ",          ": ",    "\n", "\"",
		"'",  "&a ",  "*a ",  "!x ",  "- a\n",        "---\n", "%",  "|\n",
		"#x", "{a: ", "[[],", "\xc3", "\xef\xbb\xbf", "x: 1\n"};
	size_t len_max = 32768;
	char *text = malloc(len_max);

	assert_non_null(text);
	for (size_t i = 0; i < MRC_ARRAY_LEN(pieces); i++) {
		size_t piece_len = strlen(pieces[i]), len = 0;

		while (len + piece_len <= len_max) {
			memcpy(text + len, pieces[i], piece_len);
			len += piece_len;
		}
		load_anything(text, len);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_says_what_is_wrong_and_what_is_allowed),
		cmocka_unit_test(conf_refuses_utf_16),
		cmocka_unit_test(conf_reports_twenty_errors_and_that_there_are_more),
		cmocka_unit_test(conf_masks_what_could_steer_a_terminal),
		cmocka_unit_test(conf_copy_says_what_the_file_said_when_it_was_read),
		cmocka_unit_test(conf_file_that_cannot_be_read_is_an_errno),
		cmocka_unit_test(conf_file_of_another_user_s_key_is_refused),
		cmocka_unit_test(conf_takes_every_kind_of_value),
		cmocka_unit_test(conf_takes_huge_pages_by_word_and_by_size),
#if MRC_VERBS
		cmocka_unit_test(conf_takes_what_rails_with_devices_have),
#endif
		cmocka_unit_test(conf_has_the_defaults_that_the_headers_name),
		cmocka_unit_test(conf_without_a_host_takes_the_machine_s_name),
		cmocka_unit_test(conf_takes_sections_and_lists_with_nothing_in_them),
		cmocka_unit_test(conf_shows_metrics_where_it_is_meant),
		cmocka_unit_test(conf_takes_as_many_rails_and_paths_as_there_may_be),
		cmocka_unit_test(conf_joins_one_rail_with_several_of_a_peer),
		cmocka_unit_test(conf_service_is_its_own_entry_or_the_star_or_nobody),
		cmocka_unit_test(conf_service_allows_whom_it_names),
		cmocka_unit_test(conf_service_knows_supplementary_groups),
		cmocka_unit_test(conf_service_tells_listening_from_connecting),
		cmocka_unit_test(conf_quota_is_the_first_that_fits_completed_by_clients),
		cmocka_unit_test(conf_installed_by_us_loads_as_it_is),
		cmocka_unit_test(conf_installed_by_us_names_every_default),
		cmocka_unit_test(conf_examples_load_with_a_key),
		cmocka_unit_test(conf_help_names_every_key_and_default),
		cmocka_unit_test(conf_survives_every_prefix_of_a_good_file),
		cmocka_unit_test(conf_survives_flipped_bytes),
		cmocka_unit_test(conf_survives_swapped_and_repeated_pieces),
		cmocka_unit_test(conf_survives_much_of_one_thing),
	};

	return cmocka_run_group_tests(tests, dir_make, dir_remove);
}
