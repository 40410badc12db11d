/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration: the whole input is loaded as YAML, and a short one is also read as a
 * number with a unit, as an address and as a name of DNS.
 *
 * Whatever is accepted is complete and within its bounds, whatever is refused has a reason, and
 * a number is written back as it is read. No file is opened: the wrapped open() knows one key.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "mrcd_conf_address.h"
#include "mrcd_conf_load.h"
#include "mrcd_conf_unit.h"

#define CONF_FILE "/fuzz/mrcd.yaml"
#define KEY_FILE  "/fuzz/key"

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

/* A key for who asks for that name; the rest of the machine is not the input's business. */
static int open_key(const char *path)
{
	static const char key[] = "0123456789abcdef0123456789abcdef";
	int fd;

	if (strcmp(path, KEY_FILE) != 0) {
		errno = ENOENT;
		return -1;
	}
	fd = memfd_create("key", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(fchmod(fd, 0600) == 0);
	FUZZ_CHECK(pwrite(fd, key, sizeof(key) - 1, 0) == (ssize_t)sizeof(key) - 1);
	return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
	return open_key(path);
}

int __wrap_open64(const char *path, int flags, ...)
{
	return open_key(path);
}

static void on_error(void *context, const char *line)
{
	uint32_t *count = context;

	(*count)++;
	/* One line for people, of this file. */
	FUZZ_CHECK(strncmp(line, CONF_FILE, sizeof(CONF_FILE) - 1) == 0);
	FUZZ_CHECK(strchr(line, '\n') == NULL);
}

static bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static void conf_check(const struct mrcd_conf *conf)
{
	struct mrc_limits limits = conf->limits;

	FUZZ_CHECK(mrcd_conf_is_name(conf->host));
	FUZZ_CHECK(conf->runtime_dir[0] == '/');
	FUZZ_CHECK(conf->rail_count <= MRCD_RAILS_MAX && conf->peer_count <= MRCD_PEERS_MAX);
	FUZZ_CHECK(conf->service_count <= MRCD_SERVICES_MAX);
	FUZZ_CHECK(is_power_of_two(conf->clients.window_messages));
	FUZZ_CHECK(conf->clients.landing_ring_bytes >= 2 * (uint64_t)limits.eager_bytes_max);
	for (uint32_t i = 0; i < conf->rail_count; i++) {
		const struct mrcd_conf_rail *rail = &conf->rails[i];

		FUZZ_CHECK(mrcd_conf_is_name(rail->name) && rail->port != 0);
		FUZZ_CHECK(rail->interface[0] || rail->address[0] || rail->device[0]);
		for (uint32_t k = 0; k < i; k++)
			FUZZ_CHECK(strcmp(rail->name, conf->rails[k].name) != 0);
	}
	for (uint32_t i = 0; i < conf->peer_count; i++) {
		const struct mrcd_conf_peer *peer = &conf->peers[i];

		FUZZ_CHECK(mrcd_conf_is_name(peer->name) && strcmp(peer->name, conf->host) != 0);
		FUZZ_CHECK(peer->path_count >= 1 && peer->path_count <= MRC_PATHS_MAX);
		FUZZ_CHECK(peer->key_count >= 1 && peer->key_count <= MRCD_KEYS_MAX);
		for (uint32_t k = 0; k < peer->key_count; k++)
			FUZZ_CHECK(peer->keys[k].len_bytes >= MRCD_KEY_BYTES_MIN);
		for (uint8_t p = 0; p < peer->path_count; p++) {
			FUZZ_CHECK(peer->paths[p].rail_index < conf->rail_count);
			FUZZ_CHECK(peer->paths[p].address[0] && peer->paths[p].port);
		}
	}
	/* The engine takes its part as it is. */
	mrc_limits_complete(&limits);
	FUZZ_CHECK(limits.eager_bytes_max == conf->limits.eager_bytes_max);
	const struct mrcd_creds root = {.uid = 0};

	for (uint32_t i = 0; i < conf->service_count; i++) {
		const struct mrcd_conf_service *s = &conf->services[i];

		FUZZ_CHECK(!s->any.is_open || (s->any.user_count == 0 && s->any.group_count == 0));
		for (int use = 0; use < MRCD_USES; use++)
			FUZZ_CHECK(mrcd_conf_service_allows(s, (enum mrcd_use)use, &root));
		FUZZ_CHECK(mrcd_conf_service(conf, s->name) == s);
	}
	FUZZ_CHECK(conf->quota_count <= MRCD_QUOTAS_MAX);
	for (uint32_t i = 0; i < conf->quota_count; i++) {
		const struct mrcd_creds creds = {.uid = 12345 + i, .gid = 12345};
		struct mrcd_conf_quota quota;

		FUZZ_CHECK(!conf->quotas[i].who.is_open || i == conf->quota_count - 1);
		mrcd_conf_quota(conf, &creds, &quota);
		FUZZ_CHECK(quota.clients_max && quota.channels_max && quota.sends_max);
		FUZZ_CHECK(quota.send_arena_bytes && quota.weight);
		FUZZ_CHECK(quota.landing_arena_bytes >= conf->clients.landing_ring_bytes);
	}
}

static void conf_load(const uint8_t *data, size_t len)
{
	struct mrcd_conf *conf = NULL;
	uint32_t errors = 0;
	char *text = (char *)fuzz_copy(data, len);
	int r = mrcd_conf_load_text(CONF_FILE, text, len, on_error, &errors, &conf);

	free(text); /* what was loaded does not lean on it */
	if (r == 0) {
		FUZZ_CHECK(errors == 0 && conf != NULL);
		conf_check(conf);
		mrcd_conf_free(conf);
	} else {
		FUZZ_CHECK(r == -EINVAL);
		FUZZ_CHECK(errors > 0 && errors <= MRCD_CONF_ERRORS_MAX + 1);
		FUZZ_CHECK(conf == NULL);
	}
}

static void unit_parse(const char *text)
{
	for (int unit = MRCD_UNIT_COUNT; unit <= MRCD_UNIT_RATE; unit++) {
		char out[MRCD_UNIT_TEXT_BYTES];
		uint64_t value = 0, again = 0;
		int r = mrcd_unit_parse((enum mrcd_unit)unit, text, &value);

		FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ERANGE || r == -EDOM);
		if (r)
			continue;
		FUZZ_CHECK(mrcd_unit_format((enum mrcd_unit)unit, value, out) == out);
		FUZZ_CHECK(strlen(out) < sizeof(out));
		FUZZ_CHECK(mrcd_unit_parse((enum mrcd_unit)unit, out, &again) == 0);
		FUZZ_CHECK(again == value);
	}
}

static void address_parse(const char *text)
{
	char one[64], two[64];

	if (mrcd_address_canonical(text, one, sizeof(one)) == 0) {
		FUZZ_CHECK(mrcd_address_family(text) != 0);
		FUZZ_CHECK(mrcd_address_canonical(one, two, sizeof(two)) == 0);
		FUZZ_CHECK(strcmp(one, two) == 0);
		FUZZ_CHECK(mrcd_address_is_host(one) == mrcd_address_is_host(text));
	}
	if (mrcd_address_is_dns_name(text))
		FUZZ_CHECK(strlen(text) <= 254 && mrcd_address_family(text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	conf_load(data, len);
	if (len < 300 && memchr(data, 0, len) == NULL) {
		char *text = malloc(len + 1);

		FUZZ_CHECK(text != NULL);
		memcpy(text, data, len);
		text[len] = 0;
		unit_parse(text);
		address_parse(text);
		free(text);
	}
	return 0;
}
