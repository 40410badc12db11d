/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_conf_address.h"
#include "mrcd_conf_load.h"
#include "mrcd_privilege.h"

void mrcd_conf_wrong(struct mrcd_conf_loading *ld, uint32_t line, const char *prefix,
		     const char *name, const char *format, ...)
{
	char text[1024], where[32] = "";
	size_t len;
	va_list args;

	if (++ld->error_count > MRCD_CONF_ERRORS_MAX + 1)
		return;
	if (ld->error_count == MRCD_CONF_ERRORS_MAX + 1) {
		snprintf(text, sizeof(text), "%s: there are more errors; these are the first %u",
			 ld->file, MRCD_CONF_ERRORS_MAX);
		ld->on_error(ld->context, text);
		return;
	}
	if (line > 0)
		snprintf(where, sizeof(where), "%u:", line);
	len = (size_t)snprintf(text, sizeof(text), "%.256s:%s %s%s%s%s", ld->file, where, prefix,
			       *prefix && name ? "." : "", name ? name : "",
			       *prefix || name ? ": " : "");
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
	ld->on_error(ld->context, text);
}

/* ---- rails ---- */

/*
 * Two rails that would listen at the same place, as far as the text shows: a
 * rail with a device alone has the interface of that device.
 */
static bool rails_collide(const struct mrcd_conf_rail *a, const struct mrcd_conf_rail *b)
{
	if (a->port != b->port)
		return false;
	if (a->address[0] && b->address[0])
		return strcmp(a->address, b->address) == 0 &&
		       strcmp(a->interface, b->interface) == 0;
	if (a->interface[0] && b->interface[0])
		return strcmp(a->interface, b->interface) == 0;
	return a->device[0] && strcmp(a->device, b->device) == 0 &&
	       a->device_port == b->device_port;
}

/* "mlx5_0/1" was checked when it was stored: the name stays, the port goes where ports belong. */
static void rail_device_split(struct mrcd_conf_rail *rail)
{
	char *slash = strchr(rail->device, '/');

	if (!slash)
		return;
	*slash = '\0';
	rail->device_port = (uint8_t)atoi(slash + 1);
}

/* What only rails with an RDMA device have; `is_tcp`: by what was written. */
static void rail_verbs_check(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
			     const char *prefix, bool is_tcp)
{
	static const char *const names[] = {"device", "ack-timeout", "retry-count",
					    "receive-entries", "receive-entry-bytes"};

	for (size_t i = 0; is_tcp && i < MRC_ARRAY_LEN(names); i++)
		if (mrcd_conf_fields_given(fields, MRCD_SECTION_RAIL, names[i]))
			mrcd_conf_wrong(ld,
					mrcd_conf_fields_line(fields, MRCD_SECTION_RAIL, names[i]),
					prefix, names[i],
					"is a key of types verbs and auto, and this rail is of "
					"type tcp; allowed: another type, or no %s",
					names[i]);
}

/* A rail must be somewhere. */
static void rail_place_check(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
			     const char *prefix, const struct mrcd_conf_rail *rail, bool is_tcp)
{
	if (rail->interface[0] || rail->address[0])
		return;
	if (is_tcp)
		mrcd_conf_wrong(ld, fields->line, prefix, NULL,
				"has neither interface nor address; allowed: one of them, or both");
	else if (!rail->device[0])
		mrcd_conf_wrong(ld, fields->line, prefix, NULL,
				"has neither interface, address nor device; allowed: at least one "
				"of them");
	else if (!MRC_VERBS)
		mrcd_conf_wrong(ld, fields->line, prefix, "device",
				"is not enough for an mrcd that was built without verbs "
				"(MRC_VERBS=OFF); allowed: interface or address, or both, with it");
}

static void rail_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
		      const char *prefix, struct mrcd_conf_rail *rail)
{
	struct mrcd_conf_fields fields;
	const struct mrcd_conf_node *type;
	uint32_t error_count = ld->error_count;
	bool is_tcp;

	mrcd_conf_fields_load(ld, node, node->line, MRCD_SECTION_RAIL, prefix, rail, &fields);
	rail_device_split(rail);
	if (rail->port == 0)
		rail->port = ld->conf->listen_port;
	if (ld->error_count != error_count)
		return; /* what is half known is not compared with others */
	type = mrcd_conf_fields_given(&fields, MRCD_SECTION_RAIL, "type");
	is_tcp = type && strcmp(type->text, "tcp") == 0;
	rail_verbs_check(ld, &fields, prefix, is_tcp);
	rail_place_check(ld, &fields, prefix, rail, is_tcp);
	for (uint32_t i = 0; i < ld->conf->rail_count; i++) {
		const struct mrcd_conf_rail *other = &ld->conf->rails[i];

		if (strcmp(other->name, rail->name) == 0)
			mrcd_conf_wrong(
				ld, mrcd_conf_fields_line(&fields, MRCD_SECTION_RAIL, "name"),
				prefix, "name",
				"'%s' is the name of rails[%u], too; allowed: a name of its own",
				rail->name, i);
		else if (rails_collide(other, rail))
			mrcd_conf_wrong(ld, fields.line, prefix, NULL,
					"listens where rails[%u] does; allowed: another interface, "
					"address or port",
					i);
	}
}

static void rails_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top)
{
	const struct mrcd_conf_node *node;
	uint32_t count;

	node = mrcd_conf_fields_list(ld, top, MRCD_SECTION_TOP, "", "rails", &count);
	for (uint32_t i = 0; i < count; i++, node = node->next) {
		char prefix[MRCD_CONF_PREFIX_BYTES];

		snprintf(prefix, sizeof(prefix), "rails[%u]", i);
		rail_load(ld, node, prefix, &ld->conf->rails[i]);
		ld->conf->rail_count = i + 1;
	}
}

/* ---- peers ---- */

static void path_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
		      const char *prefix, struct mrcd_conf_path *path)
{
	const struct mrcd_conf *conf = ld->conf;
	const struct mrcd_conf_rail *rail;
	struct mrcd_conf_fields fields;
	uint32_t error_count = ld->error_count;
	uint32_t line;
	int family;

	mrcd_conf_fields_load(ld, node, node->line, MRCD_SECTION_PATH, prefix, path, &fields);
	if (path->port == 0)
		path->port = conf->listen_port;
	if (ld->error_count != error_count)
		return;
	line = mrcd_conf_fields_line(&fields, MRCD_SECTION_PATH, "address");
	family = mrcd_address_family(path->address);
	rail = &conf->rails[path->rail_index];
	if (family != AF_UNSPEC && rail->address[0] && mrcd_address_family(rail->address) != family)
		mrcd_conf_wrong(
			ld, line, prefix, "address",
			"'%s' cannot be reached from rail '%s' at '%s'; allowed: both IPv4, "
			"or both IPv6",
			path->address, rail->name, rail->address);
	for (uint32_t i = 0; family != AF_UNSPEC && i < conf->rail_count; i++)
		if (strcmp(conf->rails[i].address, path->address) == 0 &&
		    conf->rails[i].port == path->port)
			mrcd_conf_wrong(ld, line, prefix, "address",
					"'%s' port %u is rail '%s' of this host; allowed: an "
					"address of the peer",
					path->address, path->port, conf->rails[i].name);
}

static void peer_name_check(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
			    const char *prefix, const struct mrcd_conf_peer *peer)
{
	const struct mrcd_conf *conf = ld->conf;
	uint32_t line = mrcd_conf_fields_line(fields, MRCD_SECTION_PEER, "name");

	if (!peer->name[0])
		return; /* reported already */
	if (strcmp(peer->name, conf->host) == 0)
		mrcd_conf_wrong(ld, line, prefix, "name",
				"'%s' is this host; allowed: the names of other hosts", peer->name);
	else if (strcmp(peer->name, "localhost") == 0)
		mrcd_conf_wrong(ld, line, prefix, "name",
				"'localhost' always means this host; allowed: the names of other "
				"hosts");
	for (uint32_t i = 0; i < conf->peer_count; i++) {
		if (strcmp(conf->peers[i].name, peer->name) == 0) {
			mrcd_conf_wrong(
				ld, line, prefix, "name",
				"'%s' is the name of peers[%u], too; allowed: a name of its own",
				peer->name, i);
			return;
		}
	}
}

/*
 * The global key is read when it was given, or when the first peer needs it:
 * a daemon without peers needs no key.
 */
static void peer_keys_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top,
			   const struct mrcd_conf_fields *fields, const char *prefix,
			   struct mrcd_conf_peer *peer, bool *is_global_loaded)
{
	const struct mrcd_conf_node *own =
		mrcd_conf_fields_given(fields, MRCD_SECTION_PEER, "key-file");

	if (own) {
		mrcd_conf_key_files_load(ld, own, own->line, prefix, peer->keys, &peer->key_count);
		return;
	}
	if (!*is_global_loaded) {
		*is_global_loaded = true;
		mrcd_conf_key_files_load(ld, NULL,
					 mrcd_conf_fields_line(top, MRCD_SECTION_TOP, "peers"), "",
					 ld->keys, &ld->key_count);
	}
	memcpy(peer->keys, ld->keys, sizeof(peer->keys));
	peer->key_count = ld->key_count;
}

/* Where a path leads, for finding two that lead to the same place. */
struct target {
	const struct mrcd_conf_path *path;
	uint32_t peer_index, path_index, line;
};

static int target_compare(const void *a_arg, const void *b_arg)
{
	const struct target *a = a_arg, *b = b_arg;
	int r = strcasecmp(a->path->address, b->path->address);

	if (r == 0)
		r = (a->path->port > b->path->port) - (a->path->port < b->path->port);
	if (r == 0)
		r = (a->path->rail_index > b->path->rail_index) -
		    (a->path->rail_index < b->path->rail_index);
	if (r == 0) /* the one written first comes first, and is not the one to blame */
		r = (a->peer_index > b->peer_index) - (a->peer_index < b->peer_index);
	if (r == 0)
		r = (a->path_index > b->path_index) - (a->path_index < b->path_index);
	return r;
}

/* Copying a line and forgetting to change it is how configurations grow. */
static void targets_check(struct mrcd_conf_loading *ld, struct target *targets, uint32_t count)
{
	qsort(targets, count, sizeof(*targets), target_compare);
	for (uint32_t i = 1; i < count; i++) {
		const struct target *a = &targets[i - 1], *b = &targets[i];
		char prefix[MRCD_CONF_PREFIX_BYTES];

		if (strcasecmp(a->path->address, b->path->address) != 0 ||
		    a->path->port != b->path->port || a->path->rail_index != b->path->rail_index)
			continue;
		snprintf(prefix, sizeof(prefix), "peers[%u].paths[%u]", b->peer_index,
			 b->path_index);
		mrcd_conf_wrong(ld, b->line, prefix, NULL,
				"joins the same rail and address as peers[%u].paths[%u]; allowed: "
				"every pair once",
				a->peer_index, a->path_index);
	}
}

static void peer_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top,
		      const struct mrcd_conf_node *node, uint32_t peer_index,
		      bool *is_global_loaded, struct target *targets, uint32_t *target_count)
{
	struct mrcd_conf_peer *peer = &ld->conf->peers[peer_index];
	char prefix[MRCD_CONF_PREFIX_BYTES / 2], path_prefix[MRCD_CONF_PREFIX_BYTES];
	const struct mrcd_conf_node *path_node;
	struct mrcd_conf_fields fields;
	uint32_t count;

	snprintf(prefix, sizeof(prefix), "peers[%u]", peer_index);
	mrcd_conf_fields_load(ld, node, node->line, MRCD_SECTION_PEER, prefix, peer, &fields);
	peer_name_check(ld, &fields, prefix, peer);
	if (!mrcd_conf_fields_given(&fields, MRCD_SECTION_PEER, "encryption"))
		peer->encryption = ld->conf->encryption;
	peer_keys_load(ld, top, &fields, prefix, peer, is_global_loaded);
	path_node = mrcd_conf_fields_list(ld, &fields, MRCD_SECTION_PEER, prefix, "paths", &count);
	for (uint32_t i = 0; i < count; i++, path_node = path_node->next) {
		uint32_t error_count = ld->error_count;

		snprintf(path_prefix, sizeof(path_prefix), "%s.paths[%u]", prefix, i);
		path_load(ld, path_node, path_prefix, &peer->paths[i]);
		peer->path_count = (uint8_t)(i + 1);
		if (ld->error_count != error_count)
			continue;
		if (peer->encryption == MRCD_ENCRYPTION_REQUIRED &&
		    ld->conf->rails[peer->paths[i].rail_index].type == MRCD_RAIL_VERBS)
			mrcd_conf_wrong(ld, path_node->line, path_prefix, "rail",
					"'%s' is of type verbs, which encrypts nothing, and "
					"encryption is required for this peer; allowed: rails of "
					"type tcp and auto, or encryption: preferred",
					ld->conf->rails[peer->paths[i].rail_index].name);
		else
			targets[(*target_count)++] =
				(struct target){&peer->paths[i], peer_index, i, path_node->line};
	}
}

static void peers_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top)
{
	const struct mrcd_conf_node *key_file =
		mrcd_conf_fields_given(top, MRCD_SECTION_TOP, "key-file");
	struct mrcd_conf *conf = ld->conf;
	const struct mrcd_conf_node *node;
	bool is_global_loaded = false;
	struct target *targets;
	uint32_t count, target_count = 0;

	if (key_file) {
		mrcd_conf_key_files_load(ld, key_file, key_file->line, "", ld->keys,
					 &ld->key_count);
		is_global_loaded = true;
	}
	node = mrcd_conf_fields_list(ld, top, MRCD_SECTION_TOP, "", "peers", &count);
	if (count == 0)
		return;
	conf->peers = calloc(count, sizeof(*conf->peers));
	targets = calloc((size_t)count * MRC_PATHS_MAX, sizeof(*targets));
	if (!conf->peers || !targets) {
		ld->is_out_of_memory = true;
		goto free_targets;
	}
	for (uint32_t i = 0; i < count; i++, node = node->next) {
		peer_load(ld, top, node, i, &is_global_loaded, targets, &target_count);
		conf->peer_count = i + 1;
	}
	targets_check(ld, targets, target_count);
free_targets:
	free(targets);
}

/* ---- the whole ---- */

static void user_check(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top)
{
	struct mrcd_privilege_user user;

	if (ld->conf->user[0] && mrcd_privilege_find(ld->conf->user, &user) == -ENOENT)
		mrcd_conf_wrong(ld, mrcd_conf_fields_line(top, MRCD_SECTION_TOP, "user"), "",
				"user", "there is no user '%s'; allowed: a user of this host",
				ld->conf->user);
}

static void host_default(struct mrcd_conf_loading *ld, uint32_t line)
{
	const struct mrcd_conf_key *key = mrcd_conf_key_find(MRCD_SECTION_TOP, "host");
	char name[256] = "", quoted[MRCD_CONF_QUOTE_BYTES], allowed[MRCD_CONF_ALLOWED_BYTES];

	gethostname(name, sizeof(name) - 1);
	if (mrcd_conf_is_name(name))
		memcpy(ld->conf->host, name, strlen(name) + 1);
	else
		mrcd_conf_wrong(ld, line, "", "host",
				"is not given and the machine's name '%s' will not do; allowed: %s",
				mrcd_conf_quote(name, quoted), mrcd_conf_key_allowed(key, allowed));
}

static void root_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *root)
{
	struct mrcd_conf_fields top, clients, limits, timers, metrics, log;
	struct mrcd_conf *conf = ld->conf;
	const struct {
		enum mrcd_conf_section section;
		struct mrcd_conf_fields *fields;
	} maps[] = {{MRCD_SECTION_CLIENTS, &clients},
		    {MRCD_SECTION_LIMITS, &limits},
		    {MRCD_SECTION_TIMERS, &timers},
		    {MRCD_SECTION_METRICS, &metrics},
		    {MRCD_SECTION_LOG, &log}};

	mrcd_conf_fields_load(ld, root, root->line, MRCD_SECTION_TOP, "", conf, &top);
	if (!mrcd_conf_fields_given(&top, MRCD_SECTION_TOP, "host"))
		host_default(ld, root->line);
	user_check(ld, &top);
	for (size_t i = 0; i < MRC_ARRAY_LEN(maps); i++) {
		const char *name = mrcd_conf_section_written(maps[i].section);

		mrcd_conf_fields_load(ld, mrcd_conf_fields_given(&top, MRCD_SECTION_TOP, name),
				      root->line, maps[i].section, name, conf, maps[i].fields);
	}
	rails_load(ld, &top);
	peers_load(ld, &top);
	mrcd_conf_services_load(ld, &top);
	mrcd_conf_quotas_load(ld, &top);
	mrcd_conf_check_limits(ld, &clients, &limits, &timers);
	mrcd_conf_check_metrics(ld, &metrics);
}

int mrcd_conf_load_text(const char *file, const char *text, size_t len_bytes,
			mrcd_conf_error_fn on_error, void *context, struct mrcd_conf **conf_out)
{
	struct mrcd_conf_loading ld = {.file = file, .on_error = on_error, .context = context};
	struct mrcd_conf_doc doc;
	int r;

	ld.conf = calloc(1, sizeof(*ld.conf));
	if (!ld.conf)
		return -ENOMEM;
	r = mrcd_conf_doc_parse(text, len_bytes, &doc);
	if (r == -EINVAL)
		mrcd_conf_wrong(&ld, doc.error_line, "", NULL, "%s; allowed: %s", doc.error,
				doc.error_allowed);
	else if (r == -ENOMEM)
		ld.is_out_of_memory = true;
	else if (strlen(file) >= sizeof(ld.conf->file))
		mrcd_conf_wrong(&ld, 0, "", NULL, "the file's name is too long; allowed: %zu bytes",
				sizeof(ld.conf->file) - 1);
	else if (!doc.root || doc.root->is_empty)
		mrcd_conf_wrong(&ld, 1, "", NULL,
				"the file is empty; allowed: at least one key, such as rails: []");
	else
		root_load(&ld, doc.root);
	mrcd_conf_doc_free(&doc);
	OPENSSL_cleanse(ld.keys, sizeof(ld.keys));
	if (ld.is_out_of_memory) {
		mrcd_conf_wrong(&ld, 0, "", NULL, "there is not enough memory to load it");
		mrcd_conf_free(ld.conf);
		return -ENOMEM;
	}
	if (ld.error_count > 0) {
		mrcd_conf_free(ld.conf);
		return -EINVAL;
	}
	memcpy(ld.conf->file, file, strlen(file) + 1);
	*conf_out = ld.conf;
	return 0;
}

/* The whole file in new memory. What went wrong is reported. */
static int file_read(struct mrcd_conf_loading *ld, int fd, char **text_out, size_t *len_out)
{
	struct stat st;
	char *text;
	size_t len = 0;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		mrcd_conf_wrong(ld, 0, "", NULL, "is not a regular file; allowed: a file");
		return -EINVAL;
	}
	text = malloc(MRCD_CONF_FILE_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	while (len <= MRCD_CONF_FILE_BYTES_MAX) {
		ssize_t got = pread(fd, text + len, MRCD_CONF_FILE_BYTES_MAX + 1 - len, (off_t)len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			mrcd_conf_wrong(ld, 0, "", NULL, "cannot be read: %s; allowed: a file",
					strerror(errno));
			free(text);
			return -EIO;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	if (len > MRCD_CONF_FILE_BYTES_MAX) {
		mrcd_conf_wrong(ld, 0, "", NULL, "the file is too large; allowed: up to 8MiB");
		free(text);
		return -EINVAL;
	}
	*text_out = text;
	*len_out = len;
	return 0;
}

/* Only as much memory as there is text: most files are small. */
static void text_keep(struct mrcd_conf *conf, char *text, size_t len)
{
	char *fitting = realloc(text, MRC_MAX(len, 1U));

	conf->text = fitting ? fitting : text;
	conf->text_bytes = len;
}

static int load_from(const char *file, int fd, mrcd_conf_error_fn on_error, void *context,
		     struct mrcd_conf **conf_out)
{
	struct mrcd_conf_loading ld = {.file = file, .on_error = on_error, .context = context};
	char *text;
	size_t len;
	int r = file_read(&ld, fd, &text, &len);

	if (r)
		return r;
	r = mrcd_conf_load_text(file, text, len, on_error, context, conf_out);
	if (r)
		free(text);
	else
		text_keep(*conf_out, text, len);
	return r;
}

int mrcd_conf_load(const char *file, mrcd_conf_error_fn on_error, void *context,
		   struct mrcd_conf **conf_out)
{
	struct mrcd_conf_loading ld = {.file = file, .on_error = on_error, .context = context};
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0) {
		r = -errno;
		mrcd_conf_wrong(&ld, 0, "", NULL,
				"cannot be opened: %s; allowed: a file that this user can read",
				strerror(-r));
		return r == -ENOENT || r == -EACCES ? r : -EIO;
	}
	r = load_from(file, fd, on_error, context, conf_out);
	close(fd);
	return r;
}

int mrcd_conf_load_copy(const char *file, int fd, mrcd_conf_error_fn on_error, void *context,
			struct mrcd_conf **conf_out)
{
	int r = load_from(file, fd, on_error, context, conf_out);

	if (r == 0)
		(*conf_out)->is_former = true;
	return r;
}

int mrcd_conf_copy(const struct mrcd_conf *conf)
{
	int fd, r;

	if (!conf->text)
		return -ENODATA;
	fd = memfd_create("mrcd-conf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < conf->text_bytes;) {
		ssize_t put = write(fd, conf->text + at, conf->text_bytes - at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			goto err_close;
		at += (size_t)put;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
err_close:
	r = -errno;
	close(fd);
	return r;
}

uint32_t mrcd_conf_rail_paths(const struct mrcd_conf *conf, const char *name)
{
	uint32_t count = 0;

	for (uint32_t p = 0; p < conf->peer_count; p++) {
		const struct mrcd_conf_peer *peer = &conf->peers[p];

		for (uint8_t i = 0; i < peer->path_count; i++)
			count += strcmp(conf->rails[peer->paths[i].rail_index].name, name) == 0;
	}
	return count;
}

void mrcd_conf_free(struct mrcd_conf *conf)
{
	if (!conf)
		return;
	for (uint32_t i = 0; i < conf->service_count; i++) {
		mrcd_conf_who_fini(&conf->services[i].any);
		for (int use = 0; use < MRCD_USES; use++)
			mrcd_conf_who_fini(&conf->services[i].of[use]);
	}
	free(conf->services);
	for (uint32_t i = 0; i < conf->quota_count; i++)
		mrcd_conf_who_fini(&conf->quotas[i].who);
	free(conf->quotas);
	for (uint32_t i = 0; i < conf->peer_count; i++)
		OPENSSL_cleanse(conf->peers[i].keys, sizeof(conf->peers[i].keys));
	free(conf->peers);
	free(conf->text);
	free(conf);
}
