/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mrcd_conf_address.h"
#include "mrcd_conf_load.h"
#include "mrcd_memfd.h"

#define WHY_BYTES 384

/* ---- one value ---- */

/* The usual form of a complaint: what was written, what is wrong with it, what the key takes. */
static __attribute__((format(printf, 4, 5))) int value_wrong(char why[WHY_BYTES],
							     const struct mrcd_conf_key *key,
							     const char *text, const char *format,
							     ...)
{
	char quoted[MRCD_CONF_QUOTE_BYTES], allowed[MRCD_CONF_ALLOWED_BYTES], what[128];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(why, WHY_BYTES, "'%s' %s; allowed: %s", mrcd_conf_quote(text, quoted), what,
		 mrcd_conf_key_allowed(key, allowed));
	return -EINVAL;
}

bool mrcd_conf_is_name(const char *text)
{
	size_t len = strlen(text);

	return len >= 1 && len <= MRC_NAME_MAX &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       len;
}

static bool is_interface(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > 15 || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == '/' || text[i] == ':' ||
		    text[i] == 0x7f)
			return false;
	return true;
}

/* "mlx5_0" or "mlx5_0/1"; as the kernel names devices, and numbers their ports. */
static bool is_device(const char *text)
{
	size_t name_len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789._-");
	const char *port = text + name_len;
	size_t digits;

	if (name_len < 1 || strlen(text) > 63 || text[0] == '.')
		return false;
	if (*port == '\0')
		return true;
	if (*port++ != '/' || *port == '0')
		return false;
	digits = strspn(port, "0123456789");
	return digits >= 1 && digits <= 3 && port[digits] == '\0' && atoi(port) <= 254;
}

static void text_put(const struct mrcd_conf_key *key, void *field, const char *text)
{
	MRC_ASSERT(strlen(text) < key->size_bytes);
	memset(field, 0, key->size_bytes);
	memcpy(field, text, strlen(text));
}

static void number_put(const struct mrcd_conf_key *key, void *field, uint64_t value)
{
	uint8_t v8 = (uint8_t)value;
	uint16_t v16 = (uint16_t)value;
	uint32_t v32 = (uint32_t)value;

	switch (key->size_bytes) {
	case sizeof(v8):
		memcpy(field, &v8, sizeof(v8));
		break;
	case sizeof(v16):
		memcpy(field, &v16, sizeof(v16));
		break;
	case sizeof(v32):
		memcpy(field, &v32, sizeof(v32));
		break;
	default:
		MRC_ASSERT(key->size_bytes == sizeof(value));
		memcpy(field, &value, sizeof(value));
	}
}

static int number_store(const struct mrcd_conf_key *key, enum mrcd_unit unit, const char *text,
			void *field, char why[WHY_BYTES])
{
	char quoted[MRCD_CONF_QUOTE_BYTES], bound[MRCD_UNIT_TEXT_BYTES];
	uint64_t value;
	int r = mrcd_unit_parse(unit, text, &value);

	if (r == -ERANGE)
		return value_wrong(why, key, text, "is too large");
	if (r == -EDOM)
		return value_wrong(why, key, text, "has too many digits behind the point");
	if (r && unit == MRCD_UNIT_COUNT)
		return value_wrong(why, key, text, "is not a whole number");
	if (r) {
		snprintf(why, WHY_BYTES, "'%s' is not a %s; allowed: %s",
			 mrcd_conf_quote(text, quoted), mrcd_unit_name(unit),
			 mrcd_unit_allowed(unit));
		return r;
	}
	if (key->kind == MRCD_KIND_RETRIES && value == 7)
		return value_wrong(why, key, text,
				   "means for ever on soft-RoCE, which hides a dead path");
	if (value < key->min)
		return value_wrong(why, key, text, "is below %s",
				   mrcd_unit_format(unit, key->min, bound));
	if (value > key->max)
		return value_wrong(why, key, text, "is above %s",
				   mrcd_unit_format(unit, key->max, bound));
	if (key->kind == MRCD_KIND_POWER && (value & (value - 1)) != 0)
		return value_wrong(why, key, text, "is not a power of two");
	if (key->kind == MRCD_KIND_PAGES && value % MRCD_CONF_PAGE_BYTES != 0)
		return value_wrong(why, key, text, "is not a multiple of 4KiB");
	number_put(key, field, value);
	return 0;
}

/* Which sizes there are depends on the machine, and on the kernel that runs when a client comes. */
static int huge_pages_store(const struct mrcd_conf_key *key, const char *text, void *field,
			    char why[WHY_BYTES])
{
	uint64_t value;

	if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0)
		value = 0;
	else if (strcmp(text, "yes") == 0 || strcmp(text, "true") == 0)
		value = MRCD_HUGE_PAGES_ANY;
	else if (mrcd_unit_parse(MRCD_UNIT_SIZE, text, &value) || value < key->min ||
		 value > key->max || (value & (value - 1)) != 0)
		return value_wrong(why, key, text, "is not a size of huge pages");
	number_put(key, field, value);
	return 0;
}

static int address_store(const struct mrcd_conf_key *key, const char *text, void *field,
			 char why[WHY_BYTES])
{
	if (mrcd_address_family(text) != AF_UNSPEC) {
		if (!mrcd_address_is_host(text))
			return value_wrong(why, key, text, "is not the address of one host");
		if (mrcd_address_canonical(text, field, key->size_bytes))
			return value_wrong(why, key, text, "is too long");
		return 0;
	}
	if (key->kind == MRCD_KIND_NUMERIC)
		return value_wrong(why, key, text, "is not a numeric address");
	if (!mrcd_address_is_dns_name(text))
		return value_wrong(why, key, text, "is neither an address nor a DNS name");
	text_put(key, field, text);
	return 0;
}

static int rail_type_store(const struct mrcd_conf_key *key, const char *text, void *field,
			   char why[WHY_BYTES])
{
	enum mrcd_rail_type type;

	if (strcmp(text, "tcp") == 0) {
		type = MRCD_RAIL_TCP;
	} else if (strcmp(text, "auto") == 0) {
		/* With one kind of rail there is nothing to choose: nobody behind the loader sees AUTO. */
		type = MRC_VERBS ? MRCD_RAIL_AUTO : MRCD_RAIL_TCP;
	} else if (strcmp(text, "verbs") != 0) {
		return value_wrong(why, key, text, "is not a type of rail");
	} else if (MRC_VERBS) {
		type = MRCD_RAIL_VERBS;
	} else {
		snprintf(why, WHY_BYTES,
			 "this mrcd was built without verbs (MRC_VERBS=OFF); allowed: tcp, auto");
		return -EINVAL;
	}
	memcpy(field, &type, sizeof(type));
	return 0;
}

static int encryption_store(const struct mrcd_conf_key *key, const char *text, void *field,
			    char why[WHY_BYTES])
{
	static const char *const words[] = {
		[MRCD_ENCRYPTION_OFF] = "off",
		[MRCD_ENCRYPTION_PREFERRED] = "preferred",
		[MRCD_ENCRYPTION_REQUIRED] = "required",
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(words); i++) {
		enum mrcd_encryption encryption = (enum mrcd_encryption)i;

		if (strcmp(words[i], text) != 0)
			continue;
		memcpy(field, &encryption, sizeof(encryption));
		return 0;
	}
	return value_wrong(why, key, text, "is none of them");
}

static int rail_ref_store(const struct mrcd_conf *conf, const struct mrcd_conf_key *key,
			  const char *text, void *field, char why[WHY_BYTES])
{
	char quoted[MRCD_CONF_QUOTE_BYTES];
	size_t len;

	for (uint32_t i = 0; i < conf->rail_count; i++) {
		if (strcmp(conf->rails[i].name, text) == 0) {
			number_put(key, field, i);
			return 0;
		}
	}
	len = (size_t)snprintf(why, WHY_BYTES,
			       "there is no rail '%s'; allowed:", mrcd_conf_quote(text, quoted));
	if (conf->rail_count == 0)
		snprintf(why + len, WHY_BYTES - len, " none, as rails is empty");
	for (uint32_t i = 0; i < conf->rail_count && len < WHY_BYTES; i++)
		len += (size_t)snprintf(why + len, WHY_BYTES - len, "%s %s", i ? "," : "",
					conf->rails[i].name);
	return -EINVAL;
}

/* On success the value is in the field; else nothing has changed and `why` has the complaint. */
static int value_store(const struct mrcd_conf *conf, const struct mrcd_conf_key *key,
		       const char *text, void *field, char why[WHY_BYTES])
{
	enum mrcd_unit unit;
	bool is_true;

	if (mrcd_conf_kind_unit(key->kind, &unit))
		return number_store(key, unit, text, field, why);
	switch (key->kind) {
	case MRCD_KIND_NAME:
	case MRCD_KIND_USER:
	case MRCD_KIND_SERVICE:
		if (!mrcd_conf_is_name(text) &&
		    (key->kind != MRCD_KIND_SERVICE || strcmp(text, "*") != 0))
			return value_wrong(why, key, text, "is not a name");
		text_put(key, field, text);
		return 0;
	case MRCD_KIND_INTERFACE:
		if (!is_interface(text))
			return value_wrong(why, key, text, "cannot be an interface");
		text_put(key, field, text);
		return 0;
	case MRCD_KIND_DEVICE:
		if (!is_device(text))
			return value_wrong(why, key, text, "cannot be an RDMA device");
		text_put(key, field, text);
		return 0;
	case MRCD_KIND_NUMERIC:
	case MRCD_KIND_ADDRESS:
		return address_store(key, text, field, why);
	case MRCD_KIND_DIRECTORY:
		if (text[0] != '/')
			return value_wrong(why, key, text, "is not an absolute path");
		if (strlen(text) >= key->size_bytes)
			return value_wrong(why, key, text, "is too long");
		text_put(key, field, text);
		return 0;
	case MRCD_KIND_HUGE_PAGES:
		return huge_pages_store(key, text, field, why);
	case MRCD_KIND_BOOL:
		is_true = strcmp(text, "true") == 0;
		if (!is_true && strcmp(text, "false") != 0)
			return value_wrong(why, key, text, "is neither true nor false");
		memcpy(field, &is_true, sizeof(is_true));
		return 0;
	case MRCD_KIND_RAIL_TYPE:
		return rail_type_store(key, text, field, why);
	case MRCD_KIND_LOG_LEVEL:
		if (mrcd_conf_log_level(text, field))
			return value_wrong(why, key, text, "is not a level");
		return 0;
	case MRCD_KIND_ENCRYPTION:
		return encryption_store(key, text, field, why);
	case MRCD_KIND_RAIL_REF:
		return rail_ref_store(conf, key, text, field, why);
	case MRCD_KIND_COUNT:
	case MRCD_KIND_POWER:
	case MRCD_KIND_RETRIES:
	case MRCD_KIND_DURATION:
	case MRCD_KIND_SIZE:
	case MRCD_KIND_RATE:
	case MRCD_KIND_PAGES:
	case MRCD_KIND_KEY_FILES:
	case MRCD_KIND_USERS:
	case MRCD_KIND_GROUPS:
	case MRCD_KIND_LIST:
	case MRCD_KIND_MAP:
		break;
	}
	MRC_ASSERT(false); /* numbers were done above, the rest is not stored here */
	return -EINVAL;
}

/* ---- one map ---- */

static bool kind_is_scalar(enum mrcd_conf_kind kind)
{
	return kind < MRCD_KIND_KEY_FILES;
}

static void defaults_store(const struct mrcd_conf *conf, enum mrcd_conf_section section, void *base)
{
	char why[WHY_BYTES];

	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];

		if (key->section != section || !kind_is_scalar(key->kind) || !key->default_text ||
		    !*key->default_text)
			continue;
		/* A default that is not allowed would be our own mistake. */
		MRC_ASSERT(value_store(conf, key, key->default_text, (char *)base + key->offset,
				       why) == 0);
	}
}

static void unknown_wrong(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
			  enum mrcd_conf_section section, const char *prefix)
{
	const struct mrcd_conf_key *meant = mrcd_conf_key_nearest(section, node->key);
	char quoted[MRCD_CONF_QUOTE_BYTES], list[256];

	mrcd_conf_wrong(ld, node->line, prefix, mrcd_conf_quote(node->key, quoted),
			"unknown key%s%s%s; allowed: %s", meant ? " (did you mean '" : "",
			meant ? meant->name : "", meant ? "'?)" : "",
			mrcd_conf_keys_list(section, list, sizeof(list)));
}

static void scalar_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
			const struct mrcd_conf_key *key, const char *prefix, void *base)
{
	char why[WHY_BYTES], allowed[MRCD_CONF_ALLOWED_BYTES];

	if (node->kind != MRCD_CONF_SCALAR)
		mrcd_conf_wrong(ld, node->line, prefix, key->name, "is a %s; allowed: %s",
				node->kind == MRCD_CONF_LIST ? "list" : "map",
				mrcd_conf_key_allowed(key, allowed));
	else if (node->is_empty)
		mrcd_conf_wrong(ld, node->line, prefix, key->name, "has no value; allowed: %s",
				mrcd_conf_key_allowed(key, allowed));
	else if (value_store(ld->conf, key, node->text, (char *)base + key->offset, why))
		mrcd_conf_wrong(ld, node->line, prefix, key->name, "%s", why);
}

void mrcd_conf_fields_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *map,
			   uint32_t line, enum mrcd_conf_section section, const char *prefix,
			   void *base, struct mrcd_conf_fields *fields_out)
{
	char allowed[256];

	memset(fields_out, 0, sizeof(*fields_out));
	fields_out->line = map ? map->line : line;
	defaults_store(ld->conf, section, base);
	if (map && map->kind != MRCD_CONF_MAP && !map->is_empty) {
		mrcd_conf_wrong(ld, map->line, prefix, NULL, "is a %s; allowed: a map of %s",
				map->kind == MRCD_CONF_LIST ? "list" : "single value",
				mrcd_conf_keys_list(section, allowed, sizeof(allowed)));
		return;
	}
	for (const struct mrcd_conf_node *node = map ? map->first : NULL; node; node = node->next) {
		const struct mrcd_conf_key *key = mrcd_conf_key_find(section, node->key);
		const struct mrcd_conf_node **given;

		if (!key) {
			unknown_wrong(ld, node, section, prefix);
			continue;
		}
		given = &fields_out->given[key - mrcd_conf_keys];
		if (*given) {
			mrcd_conf_wrong(ld, node->line, prefix, key->name,
					"is given twice, first in line %u; allowed: once",
					(*given)->line);
			continue;
		}
		*given = node;
		if (kind_is_scalar(key->kind))
			scalar_load(ld, node, key, prefix, base);
	}
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];

		if (key->section == section && !key->default_text && !fields_out->given[i])
			mrcd_conf_wrong(ld, fields_out->line, prefix, key->name,
					"is missing; allowed: %s",
					mrcd_conf_key_allowed(key, allowed));
	}
}

static uint32_t key_index(enum mrcd_conf_section section, const char *name)
{
	const struct mrcd_conf_key *key = mrcd_conf_key_find(section, name);

	MRC_ASSERT(key);
	return (uint32_t)(key - mrcd_conf_keys);
}

const struct mrcd_conf_node *mrcd_conf_fields_given(const struct mrcd_conf_fields *fields,
						    enum mrcd_conf_section section,
						    const char *name)
{
	return fields->given[key_index(section, name)];
}

uint32_t mrcd_conf_fields_line(const struct mrcd_conf_fields *fields,
			       enum mrcd_conf_section section, const char *name)
{
	const struct mrcd_conf_node *node = mrcd_conf_fields_given(fields, section, name);

	return node ? node->line : fields->line;
}

const struct mrcd_conf_node *mrcd_conf_fields_list(struct mrcd_conf_loading *ld,
						   const struct mrcd_conf_fields *fields,
						   enum mrcd_conf_section section,
						   const char *prefix, const char *name,
						   uint32_t *count_out)
{
	const struct mrcd_conf_key *key = &mrcd_conf_keys[key_index(section, name)];
	const struct mrcd_conf_node *node = fields->given[key - mrcd_conf_keys];
	char allowed[MRCD_CONF_ALLOWED_BYTES];

	*count_out = 0;
	if (!node)
		return NULL;
	if (node->kind != MRCD_CONF_LIST && !node->is_empty) {
		mrcd_conf_wrong(ld, node->line, prefix, name, "is not a list; allowed: %s",
				mrcd_conf_key_allowed(key, allowed));
		return NULL;
	}
	if (node->child_count < key->min || node->child_count > key->max)
		mrcd_conf_wrong(ld, node->line, prefix, name, "has %u entries; allowed: %s",
				node->child_count, mrcd_conf_key_allowed(key, allowed));
	*count_out = (uint32_t)MRC_MIN(node->child_count, key->max);
	return node->first;
}
