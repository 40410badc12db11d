/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_load - what the parts of the configuration's loader share
 *
 * Nobody outside mrcd_conf*.c includes this, but for tests.
 *
 * Threads: one per load.
 */
#ifndef MRCD_CONF_LOAD_H
#define MRCD_CONF_LOAD_H

#include "mrcd_conf.h"
#include "mrcd_conf_doc.h"
#include "mrcd_conf_keys.h"

#define MRCD_CONF_FILE_BYTES_MAX (8U * 1024U * 1024U) /* 4,096 peers with 16 paths: 5 MiB */
#define MRCD_CONF_ERRORS_MAX     20U
#define MRCD_CONF_PREFIX_BYTES   64U /* "peers[4095].paths[15]" and the like */

/* One load from begin to end. On the stack of mrcd_conf_load_text(). */
struct mrcd_conf_loading {
	struct mrcd_conf *conf; /* being filled */
	const char *file;       /* for messages, and for what is relative to it */
	mrcd_conf_error_fn on_error;
	void *context;
	uint32_t error_count;
	bool is_out_of_memory;
	struct mrcd_key keys[MRCD_KEYS_MAX]; /* of the global key-file */
	uint32_t key_count;
};

/* What one map of the text gave, key by key, to look at its lines later. */
struct mrcd_conf_fields {
	uint32_t line; /* of the map */
	const struct mrcd_conf_node *given[MRCD_CONF_KEY_COUNT];
};

/*
 * Report "FILE:LINE: PREFIX.NAME: text". Line 0 leaves the line out, an empty
 * prefix or NULL name that part. After MRCD_CONF_ERRORS_MAX only the count goes on.
 */
void mrcd_conf_wrong(struct mrcd_conf_loading *ld, uint32_t line, const char *prefix,
		     const char *name, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * Fill the struct at `base` from a map: defaults first, then what is given.
 * What is wrong is reported and keeps its default. `map` may be NULL or empty
 * (then only required keys are missed); `line` is used when it is. Keys that
 * are no scalars are only noted in *fields_out.
 */
void mrcd_conf_fields_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *map,
			   uint32_t line, enum mrcd_conf_section section, const char *prefix,
			   void *base, struct mrcd_conf_fields *fields_out);
/* The node of a key that was given, or NULL; and the line to blame in either case. */
const struct mrcd_conf_node *mrcd_conf_fields_given(const struct mrcd_conf_fields *fields,
						    enum mrcd_conf_section section,
						    const char *name);
uint32_t mrcd_conf_fields_line(const struct mrcd_conf_fields *fields,
			       enum mrcd_conf_section section, const char *name);

/* What hosts, rails and services may be called. */
bool mrcd_conf_is_name(const char *text);

/*
 * The list given for a key: its first entry, and how many there are in
 * *count_out, after a report no more than the key's bound. An absent or empty
 * value is a list of none.
 */
const struct mrcd_conf_node *mrcd_conf_fields_list(struct mrcd_conf_loading *ld,
						   const struct mrcd_conf_fields *fields,
						   enum mrcd_conf_section section,
						   const char *prefix, const char *name,
						   uint32_t *count_out);

/* The keys of a key-file value (a file or a list of them); `node` NULL: the default file. */
void mrcd_conf_key_files_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_node *node,
			      uint32_t line, const char *prefix,
			      struct mrcd_key keys_out[MRCD_KEYS_MAX], uint32_t *count_out);

/*
 * Users and groups of a map, from its keys `users` and `groups` (names of keys
 * of the section). With neither given it is open.
 */
void mrcd_conf_who_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *fields,
			enum mrcd_conf_section section, const char *prefix, const char *users,
			const char *groups, struct mrcd_conf_who *who);
void mrcd_conf_who_fini(struct mrcd_conf_who *who);

/* conf->services, from the node of `services`; conf->quotas, from that of `quotas`. */
void mrcd_conf_services_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top);
void mrcd_conf_quotas_load(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *top);

/* What several keys must agree on, after all are loaded. */
void mrcd_conf_check_limits(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *clients,
			    const struct mrcd_conf_fields *limits,
			    const struct mrcd_conf_fields *timers);

/* Nobody shows his rails to the world by a slip. */
void mrcd_conf_check_metrics(struct mrcd_conf_loading *ld, const struct mrcd_conf_fields *metrics);

/* mrcd_conf_load() behind the reading of the file. */
int mrcd_conf_load_text(const char *file, const char *text, size_t len_bytes,
			mrcd_conf_error_fn on_error, void *context, struct mrcd_conf **conf_out);

#endif
