/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_conf_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <syslog.h>

const struct mrcd_conf_key mrcd_conf_keys[MRCD_CONF_KEY_COUNT] = {
#define KEY(section, name, kind, taken, at, default_text, min, max, help) \
	{MRCD_SECTION_##section,                                          \
	 name,                                                            \
	 MRCD_KIND_##kind,                                                \
	 MRCD_TAKEN_##taken,                                              \
	 at,                                                              \
	 default_text,                                                    \
	 min,                                                             \
	 max,                                                             \
	 help},
	MRCD_CONF_KEYS(KEY)
#undef KEY
};

static const struct {
	const char *written;
	const char *about;
} sections[] = {
#define SECTION(id, written, about) {written, about},
	MRCD_CONF_SECTIONS(SECTION)
#undef SECTION
};

static const struct {
	const char *word;
	int level;
} log_levels[] = {
	{"error", LOG_ERR}, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE},
	{"info", LOG_INFO}, {"debug", LOG_DEBUG},
};

/* ---- looking up ---- */

const struct mrcd_conf_key *mrcd_conf_key_find(enum mrcd_conf_section section, const char *name)
{
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++)
		if (mrcd_conf_keys[i].section == section &&
		    strcmp(mrcd_conf_keys[i].name, name) == 0)
			return &mrcd_conf_keys[i];
	return NULL;
}

#define WORD_MAX 32U

/* '_', case and plurals are what people get wrong first; they cost nothing or little. */
static char plain(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' || c == ' ' ? '-' : c;
}

/* Edits (insert, delete, replace) between two words; both at most WORD_MAX long. */
static uint32_t words_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	uint32_t row[WORD_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; i <= a_len; i++) {
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_len; j++) {
			uint32_t above = row[j];
			uint32_t swap = diagonal + (plain(a[i - 1]) != plain(b[j - 1]));

			row[j] = MRC_MIN(swap, MRC_MIN(above, row[j - 1]) + 1);
			diagonal = above;
		}
	}
	return row[b_len];
}

const struct mrcd_conf_key *mrcd_conf_key_nearest(enum mrcd_conf_section section, const char *name)
{
	const struct mrcd_conf_key *best = NULL;
	size_t name_len = strlen(name);
	uint32_t best_distance = UINT32_MAX;

	if (name_len > WORD_MAX)
		return NULL;
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		size_t len = strlen(key->name);
		uint32_t distance;

		MRC_ASSERT(len <= WORD_MAX);
		if (key->section != section)
			continue;
		distance = words_distance(name, name_len, key->name, len);
		if (distance < best_distance) {
			best_distance = distance;
			best = key;
		}
	}
	/* Beyond a third of the word it is a guess that misleads. */
	return best && best_distance <= MRC_MAX(1U, strlen(best->name) / 3) ? best : NULL;
}

const char *mrcd_conf_section_written(enum mrcd_conf_section section)
{
	return sections[section].written;
}

const char *mrcd_conf_section_about(enum mrcd_conf_section section)
{
	return sections[section].about;
}

int mrcd_conf_log_level(const char *text, int *level_out)
{
	for (size_t i = 0; i < MRC_ARRAY_LEN(log_levels); i++) {
		if (strcmp(log_levels[i].word, text) == 0) {
			*level_out = log_levels[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

bool mrcd_conf_kind_unit(enum mrcd_conf_kind kind, enum mrcd_unit *unit_out)
{
	switch (kind) {
	case MRCD_KIND_COUNT:
	case MRCD_KIND_POWER:
	case MRCD_KIND_RETRIES:
		*unit_out = MRCD_UNIT_COUNT;
		return true;
	case MRCD_KIND_DURATION:
		*unit_out = MRCD_UNIT_DURATION;
		return true;
	case MRCD_KIND_SIZE:
	case MRCD_KIND_PAGES:
		*unit_out = MRCD_UNIT_SIZE;
		return true;
	case MRCD_KIND_RATE:
		*unit_out = MRCD_UNIT_RATE;
		return true;
	case MRCD_KIND_NAME:
	case MRCD_KIND_SERVICE:
	case MRCD_KIND_INTERFACE:
	case MRCD_KIND_DEVICE:
	case MRCD_KIND_NUMERIC:
	case MRCD_KIND_ADDRESS:
	case MRCD_KIND_DIRECTORY:
	case MRCD_KIND_USER:
	case MRCD_KIND_HUGE_PAGES:
	case MRCD_KIND_BOOL:
	case MRCD_KIND_RAIL_TYPE:
	case MRCD_KIND_LOG_LEVEL:
	case MRCD_KIND_ENCRYPTION:
	case MRCD_KIND_RAIL_REF:
	case MRCD_KIND_KEY_FILES:
	case MRCD_KIND_USERS:
	case MRCD_KIND_GROUPS:
	case MRCD_KIND_LIST:
	case MRCD_KIND_MAP:
		return false;
	}
	return false;
}

/* ---- words for people ---- */

static const char *kind_words(enum mrcd_conf_kind kind)
{
	switch (kind) {
	case MRCD_KIND_NAME:
		return "1 to 63 of A-Z a-z 0-9 . _ -";
	case MRCD_KIND_SERVICE:
		return "1 to 63 of A-Z a-z 0-9 . _ -, or \"*\"";
	case MRCD_KIND_INTERFACE:
		return "the name of an interface, 1 to 15 characters without / : and spaces";
	case MRCD_KIND_DEVICE:
		return "the name of an RDMA device, or that and the number of its port, e.g. "
		       "mlx5_0 or "
		       "mlx5_0/1; at most 63 characters";
	case MRCD_KIND_NUMERIC:
		return "a numeric IPv4 or IPv6 address of this host";
	case MRCD_KIND_ADDRESS:
		return "a numeric IPv4 or IPv6 address, or a DNS name";
	case MRCD_KIND_DIRECTORY:
		return "an absolute path of at most 91 bytes";
	case MRCD_KIND_USER:
		return "the name of a user, 1 to 63 of A-Z a-z 0-9 . _ -";
	case MRCD_KIND_HUGE_PAGES:
		return "no, yes, or the size of a page: 2MiB, 1GiB, or another that this machine "
		       "has";
	case MRCD_KIND_BOOL:
		return "true, false";
	case MRCD_KIND_RAIL_TYPE:
		return MRC_VERBS ? "tcp, verbs, auto" : "tcp, auto";
	case MRCD_KIND_LOG_LEVEL:
		return "error, warning, notice, info, debug";
	case MRCD_KIND_ENCRYPTION:
		return "off, preferred, required";
	case MRCD_KIND_RAIL_REF:
		return "the name of a rail under rails";
	case MRCD_KIND_KEY_FILES:
		return "a file, or a list of at most 2 files";
	case MRCD_KIND_USERS:
		return "a list of at most 256 users";
	case MRCD_KIND_GROUPS:
		return "a list of at most 256 groups";
	case MRCD_KIND_MAP:
		return "keys with values";
	case MRCD_KIND_LIST: /* these are made with their bounds */
	case MRCD_KIND_COUNT:
	case MRCD_KIND_POWER:
	case MRCD_KIND_RETRIES:
	case MRCD_KIND_DURATION:
	case MRCD_KIND_SIZE:
	case MRCD_KIND_PAGES:
	case MRCD_KIND_RATE:
		break;
	}
	return "";
}

const char *mrcd_conf_key_allowed(const struct mrcd_conf_key *key,
				  char out[MRCD_CONF_ALLOWED_BYTES])
{
	char min[MRCD_UNIT_TEXT_BYTES], max[MRCD_UNIT_TEXT_BYTES];
	enum mrcd_unit unit;

	if (mrcd_conf_kind_unit(key->kind, &unit) && key->min == key->max)
		mrcd_unit_format(unit, key->min, out);
	else if (mrcd_conf_kind_unit(key->kind, &unit))
		snprintf(out, MRCD_CONF_ALLOWED_BYTES, "%s%s to %s%s",
			 key->kind == MRCD_KIND_POWER ? "a power of two from " : "",
			 mrcd_unit_format(unit, key->min, min),
			 mrcd_unit_format(unit, key->max, max),
			 key->kind == MRCD_KIND_PAGES ? ", a multiple of 4KiB" : "");
	else if (key->kind == MRCD_KIND_LIST)
		snprintf(out, MRCD_CONF_ALLOWED_BYTES,
			 "a list of %" PRIu64 " to %" PRIu64 " entries", key->min, key->max);
	else
		snprintf(out, MRCD_CONF_ALLOWED_BYTES, "%s", kind_words(key->kind));
	return out;
}

const char *mrcd_conf_keys_list(enum mrcd_conf_section section, char *out, size_t size)
{
	size_t len = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT && len < size; i++) {
		if (mrcd_conf_keys[i].section != section)
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
					mrcd_conf_keys[i].name);
	}
	return out;
}

const char *mrcd_conf_key_taken(const struct mrcd_conf_key *key)
{
	static const char *const texts[] = {
#define TAKEN(id, text) [MRCD_TAKEN_##id] = (text),
		MRCD_CONF_TAKEN(TAKEN)
#undef TAKEN
	};

	return texts[key->taken];
}

static const char *default_words(const struct mrcd_conf_key *key)
{
	if (!key->default_text)
		return "required";
	return *key->default_text ? key->default_text : "see the text";
}

void mrcd_conf_keys_write(FILE *out)
{
	enum mrcd_conf_section section_before = MRCD_SECTION_COUNT;

	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		const char *written = sections[key->section].written;
		char allowed[MRCD_CONF_ALLOWED_BYTES];

		if (key->section != section_before)
			fprintf(out, "%s%s%sKeys %s\n", i ? "\n" : "", written,
				*written ? ":  " : "", sections[key->section].about);
		section_before = key->section;
		fprintf(out, "  %s%s%s\n      default: %s\n      allowed: %s\n", written,
			*written ? "." : "", key->name, default_words(key),
			mrcd_conf_key_allowed(key, allowed));
		if (*mrcd_conf_key_taken(key))
			fprintf(out, "      reload:  %s\n", mrcd_conf_key_taken(key));
		fprintf(out, "      %s\n", key->help);
	}
}

/*
 * Text in mdoc, in lines of less than 80 bytes. A backslash escapes there, and
 * a dot or quote that begins a line would be a command.
 */
static void mdoc_write(FILE *out, const char *text)
{
	size_t column = 0;

	for (; *text; text++, column++) {
		if (*text == ' ' && column > 60) {
			fputc('\n', out);
			column = 0;
			continue;
		}
		if (column == 0 && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '"')
			fputs("\\(dq", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

/* One sentence a line, as roff wants it to set the space behind a full stop. */
static void mdoc_write_sentences(FILE *out, const char *text)
{
	const char *stop;

	while ((stop = strstr(text, ". ")) != NULL) {
		char sentence[256];

		snprintf(sentence, sizeof(sentence), "%.*s", (int)(stop + 1 - text), text);
		mdoc_write(out, sentence);
		fputc('\n', out);
		text = stop + 2;
	}
	mdoc_write(out, text);
	fputc('\n', out);
}

void mrcd_conf_keys_write_mdoc(FILE *out, enum mrcd_conf_section section)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (uint32_t i = 0; i < MRCD_CONF_KEY_COUNT; i++) {
		const struct mrcd_conf_key *key = &mrcd_conf_keys[i];
		char allowed[MRCD_CONF_ALLOWED_BYTES];

		if (key->section != section)
			continue;
		fprintf(out, ".It Cm %s\n", key->name);
		mdoc_write_sentences(out, key->help);
		if (!key->default_text) {
			fputs("Required.\n", out);
		} else if (*key->default_text) {
			fputs("Default: ", out);
			mdoc_write(out, key->default_text);
			fputs(".\n", out);
		}
		fputs("Allowed: ", out);
		mdoc_write(out, mrcd_conf_key_allowed(key, allowed));
		fputs(".\n", out);
		if (*mrcd_conf_key_taken(key)) {
			fputs("Reload: ", out);
			mdoc_write(out, mrcd_conf_key_taken(key));
			fputs(".\n", out);
		}
	}
	fputs(".El\n", out);
}

void mrcd_conf_print_keys(void)
{
	mrcd_conf_keys_write(stdout);
}
