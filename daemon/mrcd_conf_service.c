/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_conf_load.h"

#define LOOKUP_BYTES_MAX (1024U * 1024U) /* a group with very many members */

/*
 * The databases of users and groups want a buffer of unknown size: try `fn`
 * with larger ones while it answers ERANGE.
 */
static int lookup(int (*fn)(void *context, char *buf, size_t size), void *context)
{
	int r = ERANGE;

	for (size_t size = 1024; r == ERANGE && size <= LOOKUP_BYTES_MAX; size *= 4) {
		char *buf = malloc(size);

		if (!buf)
			return -ENOMEM;
		r = fn(context, buf, size);
		free(buf);
	}
	return r > 0 ? -r : r;
}

/* A user or group, by name or by number; `id` is the answer. */
struct named {
	const char *name;
	uint32_t id;
};

static int user_find(void *context, char *buf, size_t size)
{
	struct named *user = context;
	struct passwd pw, *found = NULL;
	int r = getpwnam_r(user->name, &pw, buf, size, &found);

	if (found)
		user->id = found->pw_uid;
	return found ? 0 : r ? r : ENOENT;
}

static int group_find(void *context, char *buf, size_t size)
{
	struct named *group = context;
	struct group gr, *found = NULL;
	int r = getgrnam_r(group->name, &gr, buf, size, &found);

	if (found)
		group->id = found->gr_gid;
	return found ? 0 : r ? r : ENOENT;
}

/* The ids of a list of users or groups, in a new array. */
static void ids_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
		     enum mrcd_conf_section section, const char *prefix, const char *name,
		     uint32_t **ids_out, uint32_t *count_out)
{
	bool is_users = mrcd_conf_key_find(section, name)->kind == MRCD_KIND_USERS;
	const char *kin = is_users ? "users" : "groups";
	const struct mrcd_conf_node *given = mrcd_conf_fields_given(fields, section, name);
	const struct mrcd_conf_node *entry;
	uint32_t count;

	/*
	 * An empty list is a list, but nothing at all is none: whoever comments
	 * out the last user does not mean to let everybody in.
	 */
	if (given && given->is_empty) {
		mrcd_conf_wrong(ld, given->line, prefix, name,
				"has no value; allowed: a list of %s, [] for %s", kin,
				section == MRCD_SECTION_SERVICE ? "root alone" : "none");
		return;
	}
	entry = mrcd_conf_fields_list(ld, fields, section, prefix, name, &count);
	if (count == 0)
		return;
	*ids_out = calloc(count, sizeof(**ids_out));
	if (!*ids_out) {
		ld->is_out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++, entry = entry->next) {
		struct named who = {.name = entry->text};
		char quoted[MRCD_CONF_QUOTE_BYTES];
		uint64_t number;
		int r;

		if (entry->kind != MRCD_CONF_SCALAR || entry->is_empty || !*entry->text) {
			mrcd_conf_wrong(ld, entry->line, prefix, name,
					"entry %u is not a name; allowed: names or numbers of %s",
					i, kin);
			continue;
		}
		r = lookup(is_users ? user_find : group_find, &who);
		if (r && mrcd_unit_parse(MRCD_UNIT_COUNT, entry->text, &number) == 0 &&
		    number < UINT32_MAX) {
			who.id = (uint32_t)number;
			r = 0;
		}
		if (r) {
			mrcd_conf_wrong(ld, entry->line, prefix, name,
					"there is no %s '%s'%s%s; allowed: names or numbers of %s "
					"of this host",
					is_users ? "user" : "group",
					mrcd_conf_quote(entry->text, quoted),
					r == -ENOENT ? "" : ": ", r == -ENOENT ? "" : strerror(-r),
					kin);
			continue;
		}
		(*ids_out)[(*count_out)++] = who.id;
	}
}

void mrcd_conf_who_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
			enum mrcd_conf_section section, const char *prefix, const char *users,
			const char *groups, struct mrcd_conf_who *who)
{
	ids_load(ld, fields, section, prefix, users, &who->users, &who->user_count);
	ids_load(ld, fields, section, prefix, groups, &who->groups, &who->group_count);
	who->is_open = !mrcd_conf_fields_given(fields, section, users) &&
		       !mrcd_conf_fields_given(fields, section, groups);
}

void mrcd_conf_who_fini(struct mrcd_conf_who *who)
{
	free(who->users);
	free(who->groups);
}

static void service_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
			 const char *prefix, struct mrcd_conf_service *service)
{
	struct mrcd_conf_fields fields;

	mrcd_conf_fields_load(ld, node, node->line, MRCD_SECTION_SERVICE, prefix, service, &fields);
	mrcd_conf_who_load(ld, &fields, MRCD_SECTION_SERVICE, prefix, "users", "groups",
			   &service->any);
	mrcd_conf_who_load(ld, &fields, MRCD_SECTION_SERVICE, prefix, "listen-users",
			   "listen-groups", &service->of[MRCD_USE_LISTEN]);
	mrcd_conf_who_load(ld, &fields, MRCD_SECTION_SERVICE, prefix, "connect-users",
			   "connect-groups", &service->of[MRCD_USE_CONNECT]);
	for (uint32_t i = 0; i < ld->conf->service_count; i++) {
		if (service->name[0] && strcmp(ld->conf->services[i].name, service->name) == 0) {
			mrcd_conf_wrong(ld, fields.line, prefix, "name",
					"'%s' is the name of services[%u], too; allowed: one entry "
					"for each service",
					service->name, i);
			break;
		}
	}
}

void mrcd_conf_services_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top)
{
	struct mrcd_conf *conf = ld->conf;
	const struct mrcd_conf_node *node;
	uint32_t count;

	node = mrcd_conf_fields_list(ld, top, MRCD_SECTION_TOP, "", "services", &count);
	conf->services = calloc(MRC_MAX(count, 1U), sizeof(*conf->services));
	if (!conf->services) {
		ld->is_out_of_memory = true;
		return;
	}
	if (!mrcd_conf_fields_given(top, MRCD_SECTION_TOP, "services")) {
		strcpy(conf->services[0].name, "*");
		conf->services[0].any.is_open = true;
		for (int use = 0; use < MRCD_USES; use++)
			conf->services[0].of[use].is_open = true;
		conf->service_count = 1;
		return;
	}
	for (uint32_t i = 0; i < count; i++, node = node->next) {
		char prefix[MRCD_CONF_PREFIX_BYTES];

		snprintf(prefix, sizeof(prefix), "services[%u]", i);
		service_load(ld, node, prefix, &conf->services[i]);
		conf->service_count = i + 1;
	}
}

/* ---- asking ---- */

const struct mrcd_conf_service *mrcd_conf_service(const struct mrcd_conf *conf, const char *name)
{
	const struct mrcd_conf_service *any = NULL;

	for (uint32_t i = 0; i < conf->service_count; i++) {
		const struct mrcd_conf_service *service = &conf->services[i];

		if (strcmp(service->name, "*") == 0)
			any = service;
		else if (strcmp(service->name, name) == 0)
			return service;
	}
	return any;
}

bool mrcd_conf_who_has(const struct mrcd_conf_who *who, const struct mrcd_creds *creds)
{
	if (who->is_open)
		return true;
	for (uint32_t i = 0; i < who->user_count; i++) {
		if (who->users[i] == creds->uid)
			return true;
	}
	for (uint32_t i = 0; i < who->group_count; i++) {
		if (mrcd_creds_has_group(creds, who->groups[i]))
			return true;
	}
	return false;
}

bool mrcd_conf_service_allows(const struct mrcd_conf_service *service, enum mrcd_use use,
			      const struct mrcd_creds *creds)
{
	if (creds->uid == 0)
		return true;
	if (!service)
		return false;
	/* What is said of one use alone takes the place of what is said of both. */
	return mrcd_conf_who_has(service->of[use].is_open ? &service->any : &service->of[use],
				 creds);
}
