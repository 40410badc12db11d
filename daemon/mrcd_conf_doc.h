/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_doc - the text of a configuration as a tree of nodes that know their lines
 *
 * A small, strict part of YAML (read by libyaml): one document, scalars, lists
 * and maps with scalar keys, UTF-8. Anchors, aliases and tags are refused, so a
 * tree is never larger than its text; depth is bounded.
 *
 * Ownership: the document owns its nodes and their texts.
 * Threads:   any, one per document.  I/O, time: none.
 */
#ifndef MRCD_CONF_DOC_H
#define MRCD_CONF_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRCD_CONF_DEPTH_MAX 12U

enum mrcd_conf_node_kind { MRCD_CONF_SCALAR, MRCD_CONF_LIST, MRCD_CONF_MAP };

struct mrcd_conf_node {
	enum mrcd_conf_node_kind kind;
	uint32_t line; /* from 1; of the key in a map, else of the value */
	char *key;     /* in a map, else NULL; 0-terminated */
	char *text;    /* of a scalar; 0-terminated, no other 0 in it */
	bool is_empty; /* a scalar of which nothing was written: `key:` or `~` or `null` */
	struct mrcd_conf_node *first; /* of a list or map */
	struct mrcd_conf_node *last;
	struct mrcd_conf_node *next; /* in its list or map */
	uint32_t child_count;
	struct mrcd_conf_node *made_before; /* all nodes of the document, for freeing */
};

struct mrcd_conf_doc {
	struct mrcd_conf_node *root; /* NULL: nothing but comments */
	struct mrcd_conf_node *made_last;
	/* After -EINVAL: where, what was wrong, what is allowed. */
	uint32_t error_line;
	char error[160];
	const char *error_allowed; /* static */
};

/*
 * Make the tree. The caller frees the document after any answer.
 * -EINVAL: error_line, error and error_allowed are set.  -ENOMEM.
 */
int mrcd_conf_doc_parse(const char *data, size_t len_bytes, struct mrcd_conf_doc *doc_out);
void mrcd_conf_doc_free(struct mrcd_conf_doc *doc);

/*
 * `text` fit for a message: control bytes masked, a long one cut. A cut never
 * splits a UTF-8 character.
 */
#define MRCD_CONF_QUOTE_BYTES 72
const char *mrcd_conf_quote(const char *text, char out[MRCD_CONF_QUOTE_BYTES]);

#endif
