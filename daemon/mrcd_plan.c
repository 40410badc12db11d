/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_conf_keys.h"

/* ---- items ---- */

static int item_add(struct mrcd_plan *plan, enum mrcd_plan_action action, const char *what,
		    const char *detail, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
static int item_add(struct mrcd_plan *plan, enum mrcd_plan_action action, const char *what,
		    const char *detail, const char *format, ...)
{
	struct mrcd_plan_item *item;
	va_list args;

	if (plan->item_count == plan->item_room) {
		uint32_t room = MRC_MAX(2 * plan->item_room, 16U);

		item = realloc(plan->items, room * sizeof(*item));
		if (item == NULL)
			return -ENOMEM;
		plan->items = item;
		plan->item_room = room;
	}
	item = &plan->items[plan->item_count++];
	*item = (struct mrcd_plan_item){.action = action, .what = what};
	snprintf(item->detail, sizeof(item->detail), "%s", detail);
	va_start(args, format);
	vsnprintf(item->name, sizeof(item->name), format, args);
	va_end(args);
	plan->counts[action]++;
	return 0;
}

int mrcd_plan_add(struct mrcd_plan *plan, enum mrcd_plan_action action, const char *what,
		  const char *detail, const char *name)
{
	return item_add(plan, action, what, detail, "%s", name);
}

static void list_add(char *list, size_t list_bytes, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, list_bytes - len, "%s%s", len > 0 ? ", " : "", name);
}

/* ---- keys ---- */

/* Are the two structs that hold this key's field alike in it? */
static bool key_is_same(const struct mrcd_conf_key *key, const void *a, const void *b)
{
	const char *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	switch (key->kind) {
	case MRCD_KIND_NAME:
	case MRCD_KIND_SERVICE:
	case MRCD_KIND_INTERFACE:
	case MRCD_KIND_DEVICE:
	case MRCD_KIND_NUMERIC:
	case MRCD_KIND_ADDRESS:
	case MRCD_KIND_DIRECTORY:
	case MRCD_KIND_USER:
		return strncmp(x, y, key->size_bytes) == 0;
	default:
		return key->size_bytes == 0 || memcmp(x, y, key->size_bytes) == 0;
	}
}

static uint64_t number_get(const struct mrcd_conf_key *key, const void *base)
{
	const char *at = (const char *)base + key->offset;
	uint8_t v8;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (key->size_bytes) {
	case sizeof(v8):
		memcpy(&v8, at, sizeof(v8));
		return v8;
	case sizeof(v16):
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case sizeof(v32):
		memcpy(&v32, at, sizeof(v32));
		return v32;
	default:
		MRC_ASSERT(key->size_bytes == sizeof(v64));
		memcpy(&v64, at, sizeof(v64));
		return v64;
	}
}

/* "20ms, was 10ms", of what people write as numbers or as they are; else "". */
static void values_text(const struct mrcd_conf_key *key, const void *running, const void *fresh,
			char *text, size_t text_bytes)
{
	char new_text[MRCD_UNIT_TEXT_BYTES], old_text[MRCD_UNIT_TEXT_BYTES];
	const char *x = (const char *)running + key->offset, *y = (const char *)fresh + key->offset;
	enum mrcd_unit unit;

	text[0] = '\0';
	if (mrcd_conf_kind_unit(key->kind, &unit))
		snprintf(text, text_bytes, "%s, was %s",
			 mrcd_unit_format(unit, number_get(key, fresh), new_text),
			 mrcd_unit_format(unit, number_get(key, running), old_text));
	else if (key->kind == MRCD_KIND_BOOL)
		snprintf(text, text_bytes,
			 *(const bool *)y ? "true, was false" : "false, was true");
	else if (key->kind == MRCD_KIND_NAME || key->kind == MRCD_KIND_NUMERIC ||
		 key->kind == MRCD_KIND_DIRECTORY || key->kind == MRCD_KIND_USER)
		snprintf(text, text_bytes, "\"%.70s\", was \"%.70s\"", y, x);
}

/* Sections that fill the configuration itself, of which there is one each. */
static bool section_is_single(enum mrcd_conf_section section)
{
	return section != MRCD_SECTION_RAIL && section != MRCD_SECTION_PEER &&
	       section != MRCD_SECTION_PATH && section != MRCD_SECTION_SERVICE &&
	       section != MRCD_SECTION_QUOTA;
}

static int single_keys_compare(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
			       struct mrcd_plan *plan)
{
	int r = 0;

	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT && r == 0; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		const char *section = mrcd_conf_section_written(key->section);
		char values[160];

		if (!section_is_single(key->section) || key_is_same(key, running, fresh))
			continue;
		values_text(key, running, fresh, values, sizeof(values));
		r = item_add(plan,
			     key->taken == MRCD_TAKEN_RESTART ? MRCD_PLAN_WAITS : MRCD_PLAN_CHANGED,
			     "key", values, "%s%s%s", section, section[0] != '\0' ? "." : "",
			     key->name);
		plan->is_log_changed |= key->section == MRCD_SECTION_LOG;
		plan->is_timers_changed |= key->section == MRCD_SECTION_TIMERS;
	}
	plan->is_listener_moved = running->metrics.is_enabled != fresh->metrics.is_enabled ||
				  (fresh->metrics.is_enabled &&
				   (running->metrics.port != fresh->metrics.port ||
				    strcmp(running->metrics.address, fresh->metrics.address) != 0));
	return r;
}

void mrcd_plan_hold_back(const struct mrcd_plan *plan, const struct mrcd_conf *running,
			 struct mrcd_conf *fresh)
{
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];

		if (section_is_single(key->section) && key->taken == MRCD_TAKEN_RESTART)
			memcpy((char *)fresh + key->offset, (const char *)running + key->offset,
			       key->size_bytes);
	}
	for (uint32_t i = 0; i < fresh->peer_count; i++) {
		if (plan->peers[i] != MRCD_PLAN_ADDED)
			fresh->peers[i].encryption = running->peers[plan->peers_were[i]].encryption;
	}
}

/* ---- rails ---- */

static const struct mrcd_conf_rail *rail_find(const struct mrcd_conf *conf, const char *name)
{
	for (uint32_t i = 0; i < conf->rail_count; i++) {
		if (strcmp(conf->rails[i].name, name) == 0)
			return &conf->rails[i];
	}
	return NULL;
}

static enum mrcd_plan_action rail_compare(const struct mrcd_conf_rail *a,
					  const struct mrcd_conf_rail *b, char *keys,
					  size_t keys_bytes)
{
	enum mrcd_plan_action action = MRCD_PLAN_SAME;

	keys[0] = '\0';
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		bool is_same;

		if (key->section != MRCD_SECTION_RAIL)
			continue;
		is_same = key_is_same(key, a, b);
		/* The number of its port is written behind its name. */
		if (key->kind == MRCD_KIND_DEVICE)
			is_same = is_same && a->device_port == b->device_port;
		if (is_same)
			continue;
		list_add(keys, keys_bytes, key->name);
		if (key->taken == MRCD_TAKEN_ANEW)
			action = MRCD_PLAN_ANEW;
		else if (action == MRCD_PLAN_SAME)
			action = MRCD_PLAN_CHANGED;
	}
	return action;
}

static int rails_compare(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
			 struct mrcd_plan *plan)
{
	char keys[160] = "";
	int r = 0;

	for (uint32_t i = 0; i < running->rail_count && r == 0; i++) {
		plan->is_rail_gone[i] = rail_find(fresh, running->rails[i].name) == NULL;
		if (plan->is_rail_gone[i])
			r = item_add(plan, MRCD_PLAN_REMOVED, "rail", "", "%s",
				     running->rails[i].name);
	}
	for (uint32_t i = 0; i < fresh->rail_count && r == 0; i++) {
		const struct mrcd_conf_rail *rail = &fresh->rails[i];
		const struct mrcd_conf_rail *old = rail_find(running, rail->name);

		keys[0] = '\0';
		plan->rails[i] =
			old == NULL ? MRCD_PLAN_ADDED : rail_compare(old, rail, keys, sizeof(keys));
		if (plan->rails[i] == MRCD_PLAN_SAME)
			plan->rails_same++;
		else
			r = item_add(plan, plan->rails[i], "rail", keys, "%s", rail->name);
	}
	return r;
}

/* ---- peers ---- */

bool mrcd_plan_path_is(const char *rail, const struct mrcd_conf_path *path,
		       const struct mrcd_conf *fresh, const struct mrcd_conf_path *fresh_path)
{
	return strcmp(rail, fresh->rails[fresh_path->rail_index].name) == 0 &&
	       strcmp(path->address, fresh_path->address) == 0 && path->port == fresh_path->port;
}

static int path_add(struct mrcd_plan *plan, enum mrcd_plan_action action,
		    const struct mrcd_conf *conf, const struct mrcd_conf_peer *peer,
		    const struct mrcd_conf_path *path)
{
	return item_add(plan, action, "path", "",
			strchr(path->address, ':') != NULL ? "%s over %s to [%s]:%u"
							   : "%s over %s to %s:%u",
			peer->name, conf->rails[path->rail_index].name, path->address, path->port);
}

/* Those of `a` that `b` has not. */
static int paths_missing(struct mrcd_plan *plan, enum mrcd_plan_action action,
			 const struct mrcd_conf *a_conf, const struct mrcd_conf_peer *a,
			 const struct mrcd_conf *b_conf, const struct mrcd_conf_peer *b)
{
	int r = 0;

	for (uint8_t i = 0; i < a->path_count && r == 0; i++) {
		const struct mrcd_conf_path *path = &a->paths[i];
		bool is_found = false;

		for (uint8_t n = 0; n < b->path_count && !is_found; n++)
			is_found = mrcd_plan_path_is(a_conf->rails[path->rail_index].name, path,
						     b_conf, &b->paths[n]);
		if (!is_found)
			r = path_add(plan, action, a_conf, a, path);
	}
	return r;
}

static bool keys_are_same(const struct mrcd_conf_peer *a, const struct mrcd_conf_peer *b)
{
	bool is_same = a->key_count == b->key_count;

	for (uint32_t i = 0; i < a->key_count && is_same; i++)
		is_same = a->keys[i].len_bytes == b->keys[i].len_bytes &&
			  memcmp(a->keys[i].bytes, b->keys[i].bytes, a->keys[i].len_bytes) == 0;
	return is_same;
}

static int peer_compare(const struct mrcd_conf *running, const struct mrcd_conf_peer *old,
			const struct mrcd_conf *fresh, const struct mrcd_conf_peer *peer,
			struct mrcd_plan *plan)
{
	int r = 0;

	if (!keys_are_same(old, peer)) {
		plan->keys_changed++;
		r = item_add(plan, MRCD_PLAN_CHANGED, "peer", "key-file", "%s", peer->name);
	}
	if (r == 0 && old->encryption != peer->encryption)
		r = item_add(plan, MRCD_PLAN_WAITS, "peer", "encryption", "%s", peer->name);
	if (r == 0)
		r = paths_missing(plan, MRCD_PLAN_REMOVED, running, old, fresh, peer);
	if (r == 0)
		r = paths_missing(plan, MRCD_PLAN_ADDED, fresh, peer, running, old);
	return r;
}

/* Names, sorted, with where they were: thousands of peers are found in thousands of others. */
struct named {
	const char *name;
	uint32_t index;
};

static int named_compare(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *names_of(const struct mrcd_conf *conf)
{
	struct named *names = calloc(conf->peer_count + 1, sizeof(*names));

	for (uint32_t i = 0; names != NULL && i < conf->peer_count; i++)
		names[i] = (struct named){conf->peers[i].name, i};
	if (names != NULL)
		qsort(names, conf->peer_count, sizeof(*names), named_compare);
	return names;
}

static const struct mrcd_conf_peer *peer_find(const struct mrcd_conf *conf,
					      const struct named *names, const char *name)
{
	const struct named wanted = {.name = name};
	const struct named *found =
		bsearch(&wanted, names, conf->peer_count, sizeof(*names), named_compare);

	return found != NULL ? &conf->peers[found->index] : NULL;
}

static int peers_compare(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
			 struct mrcd_plan *plan)
{
	struct named *old_names = names_of(running), *names = names_of(fresh);
	int r = old_names != NULL && names != NULL && plan->peers != NULL &&
				plan->peers_were != NULL && plan->is_peer_gone != NULL
			? 0
			: -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < running->peer_count; i++) {
		const struct mrcd_conf_peer *old = &running->peers[i];

		plan->is_peer_gone[i] = peer_find(fresh, names, old->name) == NULL;
		if (plan->is_peer_gone[i])
			r = item_add(plan, MRCD_PLAN_REMOVED, "peer", "", "%s", old->name);
	}
	for (uint32_t i = 0; r == 0 && i < fresh->peer_count; i++) {
		const struct mrcd_conf_peer *peer = &fresh->peers[i];
		const struct mrcd_conf_peer *old = peer_find(running, old_names, peer->name);
		uint32_t item_count = plan->item_count;

		if (old == NULL)
			r = item_add(plan, MRCD_PLAN_ADDED, "peer", "", "%s", peer->name);
		else
			r = peer_compare(running, old, fresh, peer, plan);
		plan->peers[i] = old == NULL                      ? MRCD_PLAN_ADDED
				 : plan->item_count != item_count ? MRCD_PLAN_CHANGED
								  : MRCD_PLAN_SAME;
		plan->peers_were[i] = old != NULL ? (uint32_t)(old - running->peers) : 0;
		plan->peers_same += plan->peers[i] == MRCD_PLAN_SAME;
	}
	free(old_names);
	free(names);
	return r;
}

/* ---- services and quotas ---- */

static bool who_is_same(const struct mrcd_conf_who *a, const struct mrcd_conf_who *b)
{
	return a->is_open == b->is_open && a->user_count == b->user_count &&
	       a->group_count == b->group_count &&
	       (a->user_count == 0 ||
		memcmp(a->users, b->users, a->user_count * sizeof(*a->users)) == 0) &&
	       (a->group_count == 0 ||
		memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)) == 0);
}

static const struct mrcd_conf_service *service_find(const struct mrcd_conf *conf, const char *name)
{
	for (uint32_t i = 0; i < conf->service_count; i++) {
		if (strcmp(conf->services[i].name, name) == 0)
			return &conf->services[i];
	}
	return NULL;
}

static int services_compare(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
			    struct mrcd_plan *plan)
{
	int r = 0;

	for (uint32_t i = 0; i < running->service_count && r == 0; i++) {
		if (service_find(fresh, running->services[i].name) == NULL)
			r = item_add(plan, MRCD_PLAN_REMOVED, "service", "", "%s",
				     running->services[i].name);
	}
	for (uint32_t i = 0; i < fresh->service_count && r == 0; i++) {
		const struct mrcd_conf_service *service = &fresh->services[i];
		const struct mrcd_conf_service *old = service_find(running, service->name);

		if (old == NULL)
			r = item_add(plan, MRCD_PLAN_ADDED, "service", "", "%s", service->name);
		else if (!who_is_same(&old->any, &service->any) ||
			 !who_is_same(&old->of[MRCD_USE_LISTEN], &service->of[MRCD_USE_LISTEN]) ||
			 !who_is_same(&old->of[MRCD_USE_CONNECT], &service->of[MRCD_USE_CONNECT]))
			r = item_add(plan, MRCD_PLAN_CHANGED, "service", "", "%s", service->name);
	}
	return r;
}

/* The first entry that has a user counts, so their order does, too. */
static int quotas_compare(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
			  struct mrcd_plan *plan)
{
	bool is_same = running->quota_count == fresh->quota_count;

	for (uint32_t q = 0; q < fresh->quota_count && is_same; q++) {
		const struct mrcd_conf_quota *a = &running->quotas[q], *b = &fresh->quotas[q];

		is_same = who_is_same(&a->who, &b->who);
		for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT && is_same; i++)
			is_same = mrcd_conf_keys[i].section != MRCD_SECTION_QUOTA ||
				  key_is_same(&mrcd_conf_keys[i], a, b);
	}
	return is_same ? 0 : item_add(plan, MRCD_PLAN_CHANGED, "quotas", "", "%s", "");
}

/* ---- all of it ---- */

int mrcd_plan_make(const struct mrcd_conf *running, const struct mrcd_conf *fresh,
		   struct mrcd_plan *plan_out)
{
	int r;

	*plan_out = (struct mrcd_plan){
		.peers = calloc(fresh->peer_count + 1, sizeof(enum mrcd_plan_action)),
		.peers_were = calloc(fresh->peer_count + 1, sizeof(uint32_t)),
		.is_peer_gone = calloc(running->peer_count + 1, sizeof(bool)),
	};
	r = rails_compare(running, fresh, plan_out);
	if (r == 0)
		r = peers_compare(running, fresh, plan_out);
	if (r == 0)
		r = services_compare(running, fresh, plan_out);
	if (r == 0)
		r = quotas_compare(running, fresh, plan_out);
	if (r == 0)
		r = single_keys_compare(running, fresh, plan_out);
	return r;
}

void mrcd_plan_fini(struct mrcd_plan *plan)
{
	free(plan->items);
	free(plan->peers);
	free(plan->peers_were);
	free(plan->is_peer_gone);
	*plan = (struct mrcd_plan){0};
}

/* ---- for people and programs ---- */

const char *mrcd_plan_action_name(enum mrcd_plan_action action)
{
	static const char *const names[MRCD_PLAN_ACTIONS] = {
		[MRCD_PLAN_SAME] = "unchanged",     [MRCD_PLAN_ADDED] = "added",
		[MRCD_PLAN_REMOVED] = "removed",    [MRCD_PLAN_CHANGED] = "changed",
		[MRCD_PLAN_ANEW] = "opened anew",   [MRCD_PLAN_WAITS] = "waits for a restart",
		[MRCD_PLAN_LOSES] = "loses rights",
	};

	return names[action];
}

json_t *mrcd_plan_json(const struct mrcd_plan *plan)
{
	json_t *items = json_array();

	for (uint32_t i = 0; i < plan->item_count; i++) {
		const struct mrcd_plan_item *item = &plan->items[i];

		json_array_append_new(items, json_pack("{s:s s:s s:s s:s}", "action",
						       mrcd_plan_action_name(item->action), "what",
						       item->what, "name", item->name, "detail",
						       item->detail));
	}
	return items;
}

const char *mrcd_plan_text(const struct mrcd_plan *plan, char *text, size_t text_bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (int action = MRCD_PLAN_ADDED; action < MRCD_PLAN_ACTIONS; action++) {
		bool is_first = true;

		for (uint32_t i = 0; i < plan->item_count && at < text_bytes; i++) {
			const struct mrcd_plan_item *item = &plan->items[i];

			if (item->action != (enum mrcd_plan_action)action)
				continue;
			at += (size_t)snprintf(text + at, text_bytes - at, "%s%s%s%s%s%s",
					       is_first && at > 0 ? "; " : "",
					       is_first ? mrcd_plan_action_name(item->action) : "",
					       is_first ? ": " : ", ", item->what,
					       item->name[0] != '\0' ? " " : "", item->name);
			is_first = false;
		}
	}
	return text;
}
