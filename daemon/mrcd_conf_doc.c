/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_conf_doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "mrc_base.h"

/* The open lists and maps, from the outermost; `key` is a map's key whose value has not come yet. */
struct builder {
	struct mrcd_conf_doc *doc;
	struct {
		struct mrcd_conf_node *node;
		char *key;
		uint32_t key_line;
	} open[MRCD_CONF_DEPTH_MAX];
	uint32_t depth;
	uint32_t document_count;
};

static __attribute__((format(printf, 4, 5))) int doc_wrong(struct mrcd_conf_doc *doc, uint32_t line,
							   const char *allowed, const char *format,
							   ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(doc->error, sizeof(doc->error), format, args);
	va_end(args);
	doc->error_line = line;
	doc->error_allowed = allowed;
	return -EINVAL;
}

/* libyaml owns the event's text and its length counts zeros: take a copy that is a C string. */
static int text_copy(struct mrcd_conf_doc *doc, const yaml_event_t *event, uint32_t line,
		     char **text_out)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;

	if (memchr(value, 0, len)) {
		doc_wrong(doc, line, "text without the character 0", "has a character 0");
		return -EINVAL;
	}
	*text_out = strndup(value, len);
	return *text_out ? 0 : -ENOMEM;
}

static bool text_is_empty(const yaml_event_t *event, const char *text)
{
	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

/* A new node, put where it belongs. */
static int node_new(struct builder *b, enum mrcd_conf_node_kind kind, uint32_t line,
		    struct mrcd_conf_node **node_out)
{
	struct mrcd_conf_node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->kind = kind;
	node->line = line;
	node->made_before = b->doc->made_last;
	b->doc->made_last = node;
	if (b->depth == 0) {
		b->doc->root = node;
	} else {
		struct mrcd_conf_node *parent = b->open[b->depth - 1].node;

		if (parent->kind == MRCD_CONF_MAP) {
			node->key = b->open[b->depth - 1].key;
			node->line = b->open[b->depth - 1].key_line;
			b->open[b->depth - 1].key = NULL;
		}
		if (parent->last)
			parent->last->next = node;
		else
			parent->first = node;
		parent->last = node;
		parent->child_count++;
	}
	*node_out = node;
	return 0;
}

static bool wants_key(const struct builder *b)
{
	return b->depth > 0 && b->open[b->depth - 1].node->kind == MRCD_CONF_MAP &&
	       !b->open[b->depth - 1].key;
}

static int on_scalar(struct builder *b, const yaml_event_t *event, uint32_t line)
{
	struct mrcd_conf_node *node;
	char *text = NULL;
	int r = text_copy(b->doc, event, line, &text);

	if (r)
		return r;
	if (wants_key(b)) {
		b->open[b->depth - 1].key = text;
		b->open[b->depth - 1].key_line = line;
		return 0;
	}
	r = node_new(b, MRCD_CONF_SCALAR, line, &node);
	if (r) {
		free(text);
		return r;
	}
	node->text = text;
	node->is_empty = text_is_empty(event, text);
	return 0;
}

static int on_begin(struct builder *b, enum mrcd_conf_node_kind kind, uint32_t line)
{
	struct mrcd_conf_node *node;
	int r;

	if (wants_key(b))
		return doc_wrong(b->doc, line, "a word", "a key is a list or a map");
	if (b->depth == MRCD_CONF_DEPTH_MAX)
		return doc_wrong(b->doc, line, "12 levels", "lists and maps are nested too deep");
	r = node_new(b, kind, line, &node);
	if (r)
		return r;
	b->open[b->depth].node = node;
	b->open[b->depth].key = NULL;
	b->depth++;
	return 0;
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	uint32_t line = (uint32_t)event->start_mark.line + 1;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (event->type == YAML_ALIAS_EVENT)
		return doc_wrong(b->doc, line, "the value itself, written out", "has an alias (*)");
	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor)
		return doc_wrong(b->doc, line, "values without anchors", "has an anchor (&)");
	if (tag)
		return doc_wrong(b->doc, line, "values without tags", "has a tag (!)");

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->document_count++ > 0)
			return doc_wrong(b->doc, line, "one document",
					 "a second document begins (---)");
		return 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(b, event, line);
	case YAML_SEQUENCE_START_EVENT:
		return on_begin(b, MRCD_CONF_LIST, line);
	case YAML_MAPPING_START_EVENT:
		return on_begin(b, MRCD_CONF_MAP, line);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		MRC_ASSERT(b->depth > 0 && !b->open[b->depth - 1].key);
		b->depth--;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_ALIAS_EVENT:
		return 0;
	}
	return 0;
}

/* libyaml knows a line for what the scanner and parser found, and only an offset for bad bytes. */
static int parser_wrong(struct mrcd_conf_doc *doc, const yaml_parser_t *parser, const char *data,
			size_t len_bytes)
{
	const char *problem = parser->problem ? parser->problem : "cannot be understood";
	uint32_t line = 1;

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->error == YAML_READER_ERROR) {
		for (size_t i = 0; i < len_bytes && i < parser->problem_offset; i++)
			line += data[i] == '\n';
		return doc_wrong(doc, line, "UTF-8 text", "%s", problem);
	}
	line = (uint32_t)parser->problem_mark.line + 1;
	if (parser->context)
		return doc_wrong(doc, line, "YAML", "%s %s (begun in line %zu)", problem,
				 parser->context, parser->context_mark.line + 1);
	return doc_wrong(doc, line, "YAML", "%s", problem);
}

int mrcd_conf_doc_parse(const char *data, size_t len_bytes, struct mrcd_conf_doc *doc_out)
{
	struct builder b = {.doc = doc_out};
	yaml_parser_t parser;
	bool is_done = false;
	int r = 0;

	memset(doc_out, 0, sizeof(*doc_out));
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	/* Otherwise a byte order mark would switch to UTF-16, which nothing else here expects. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)data, len_bytes);
	while (!is_done && !r) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			r = parser_wrong(doc_out, &parser, data, len_bytes);
			break;
		}
		is_done = event.type == YAML_STREAM_END_EVENT;
		r = on_event(&b, &event);
		yaml_event_delete(&event);
	}
	for (uint32_t i = 0; i < b.depth; i++)
		free(b.open[i].key); /* a key whose value never came */
	yaml_parser_delete(&parser);
	return r;
}

void mrcd_conf_doc_free(struct mrcd_conf_doc *doc)
{
	struct mrcd_conf_node *node, *before;

	for (node = doc->made_last; node; node = before) {
		before = node->made_before;
		free(node->key);
		free(node->text);
		free(node);
	}
	doc->root = NULL;
	doc->made_last = NULL;
}

const char *mrcd_conf_quote(const char *text, char out[MRCD_CONF_QUOTE_BYTES])
{
	static const char cut[] = "...";
	size_t len = strlen(text);
	size_t keep = MRC_MIN(len, MRCD_CONF_QUOTE_BYTES - sizeof(cut));

	while (keep > 0 && keep < len && ((unsigned char)text[keep] & 0xc0) == 0x80)
		keep--;
	for (size_t i = 0; i < keep; i++)
		out[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
	memcpy(out + keep, keep < len ? cut : "", keep < len ? sizeof(cut) : 1);
	return out;
}
