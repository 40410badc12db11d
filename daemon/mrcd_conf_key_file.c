/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_auth.h"
#include "mrcd_conf_load.h"
#include "mrcd_privilege.h"

/* Root may run `mrcd --check` on the key of who the daemon will be. */
static bool uid_is_trusted(const struct mrcd_conf *conf, uid_t uid)
{
	struct mrcd_privilege_user daemon;

	if (uid == 0 || uid == geteuid())
		return true;
	return mrcd_privilege_find(conf->user, &daemon) == 0 && daemon.uid == uid;
}

static bool gid_is_trusted(const struct mrcd_conf *conf, gid_t gid)
{
	struct mrcd_privilege_user daemon;

	if (gid == 0 || gid == getegid())
		return true;
	return mrcd_privilege_find(conf->user, &daemon) == 0 && daemon.gid == gid;
}

/* Who else could have read or changed the key? "" when nobody. */
static const char *access_wrong(const struct mrcd_conf *conf, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_mode & 007)
		return "can be opened by others";
	if (st->st_mode & 020)
		return "can be written by its group";
	if ((st->st_mode & 050) && !gid_is_trusted(conf, st->st_gid))
		return "can be read by its group, which is not the daemon's";
	if (!uid_is_trusted(conf, st->st_uid))
		return "belongs to another user";
	return "";
}

/* All of a small file; answers its length or a negative errno. */
static ssize_t file_read(int fd, uint8_t *bytes, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t got = read(fd, bytes + len, size - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

/* A relative name counts from where the configuration is, as people mean it when they move both. */
static int path_of(const struct mrcd_conf_loading *ld, const char *name, char *path, size_t size)
{
	const char *slash = name[0] == '/' ? NULL : strrchr(ld->file, '/');
	int dir_len = slash ? (int)(slash - ld->file) + 1 : 0;

	return (size_t)snprintf(path, size, "%.*s%s", dir_len, ld->file, name) < size
		       ? 0
		       : -ENAMETOOLONG;
}

static int key_file_load(struct mrcd_conf_loading *ld, const char *name, uint32_t line,
			 const char *prefix, struct mrcd_key *key_out)
{
	static const char allowed[] = "a file of 16 to 256 bytes, mode 0600, or 0640 with the "
				      "daemon's group; head -c 32 /dev/urandom | base64 makes one";
	uint8_t bytes[MRCD_KEY_BYTES_MAX +
		      2]; /* one for the newline, one to see that it is longer */
	char path[4096], quoted[MRCD_CONF_QUOTE_BYTES];
	const char *wrong;
	struct stat st;
	size_t name_len;
	ssize_t len;
	int fd, r;

	mrcd_conf_quote(name, quoted);
	r = path_of(ld, name, path, sizeof(path));
	/* NONBLOCK, because opening a pipe would wait for a writer. */
	fd = r ? r : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		mrcd_conf_wrong(ld, line, prefix, "key-file",
				"'%s' cannot be opened: %s; allowed: %s", quoted,
				strerror(r ? -r : errno), allowed);
		return -EINVAL;
	}
	r = -EINVAL;
	wrong = fstat(fd, &st) ? "cannot be examined" : access_wrong(ld->conf, &st);
	if (*wrong) {
		mrcd_conf_wrong(ld, line, prefix, "key-file", "'%s' %s (mode 0%o); allowed: %s",
				quoted, wrong, (unsigned)st.st_mode & 07777, allowed);
		goto close_fd;
	}
	len = file_read(fd, bytes, sizeof(bytes));
	if (len < 0) {
		mrcd_conf_wrong(ld, line, prefix, "key-file",
				"'%s' cannot be read: %s; allowed: %s", quoted, strerror((int)-len),
				allowed);
		goto wipe;
	}
	if (len > 0 && bytes[len - 1] == '\n')
		len--;
	if (len < (ssize_t)MRCD_KEY_BYTES_MIN || len > (ssize_t)MRCD_KEY_BYTES_MAX) {
		mrcd_conf_wrong(ld, line, prefix, "key-file", "'%s' holds a key %s; allowed: %s",
				quoted,
				len < (ssize_t)MRCD_KEY_BYTES_MIN ? "shorter than 16 bytes"
								  : "longer than 256 bytes",
				allowed);
		goto wipe;
	}
	memset(key_out, 0, sizeof(*key_out));
	memcpy(key_out->bytes, bytes, (size_t)len);
	key_out->len_bytes = (uint32_t)len;
	mrcd_auth_key_id(key_out);
	name_len = strlen(name);
	snprintf(key_out->file, sizeof(key_out->file), "%s",
		 name + (name_len < sizeof(key_out->file) ? 0
							  : name_len + 1 - sizeof(key_out->file)));
	r = 0;
wipe:
	OPENSSL_cleanse(bytes, sizeof(bytes));
close_fd:
	close(fd);
	return r;
}

void mrcd_conf_key_files_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
			      uint32_t line, const char *prefix,
			      struct mrcd_key keys_out[MRCD_KEYS_MAX], uint32_t *count_out)
{
	const struct mrcd_conf_node *entry = node;

	*count_out = 0;
	if (!node) {
		if (!key_file_load(ld, MRCD_KEY_FILE_DEFAULT, line, prefix, &keys_out[0]))
			*count_out = 1;
		return;
	}
	if (node->kind == MRCD_CONF_LIST) {
		entry = node->first;
		if (node->child_count < 1 || node->child_count > MRCD_KEYS_MAX) {
			mrcd_conf_wrong(ld, node->line, prefix, "key-file",
					"has %u files; allowed: one, or a list of at most 2",
					node->child_count);
			return;
		}
	}
	for (; entry; entry = node->kind == MRCD_CONF_LIST ? entry->next : NULL) {
		if (entry->kind != MRCD_CONF_SCALAR || entry->is_empty || !*entry->text) {
			mrcd_conf_wrong(ld, entry->line, prefix, "key-file",
					"is not the name of a file; allowed: a file, or a list of "
					"at most 2 files");
			continue;
		}
		if (!key_file_load(ld, entry->text, entry->line, prefix, &keys_out[*count_out]))
			(*count_out)++;
	}
}
