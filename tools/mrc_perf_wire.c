/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_wire.h"

#include <endian.h>
#include <string.h>

#include "mrc_perf_options.h"
#include "mrc_perf_pattern.h"

#define WIRE_MAGIC 0xa5465245504352ccULL

/* Word 0 is the magic, word 1 version and kind, the last the check; between them the fields. */
static void words_write(const uint64_t *words, size_t count, enum perf_wire_kind kind, void *out,
			size_t out_bytes)
{
	unsigned char *bytes = out;
	uint64_t word = htole64(WIRE_MAGIC);

	memset(bytes, 0, out_bytes);
	memcpy(bytes, &word, 8);
	word = htole64(PERF_WIRE_VERSION | ((uint64_t)kind << 32));
	memcpy(bytes + 8, &word, 8);
	for (size_t i = 0; i < count; i++) {
		word = htole64(words[i]);
		memcpy(bytes + 16 + i * 8, &word, 8);
	}
	word = htole64(perf_hash(bytes, out_bytes - 8));
	memcpy(bytes + out_bytes - 8, &word, 8);
}

static int words_read(const void *data, size_t len_bytes, size_t want_bytes,
		      enum perf_wire_kind kind, uint64_t *words_out, size_t count)
{
	const unsigned char *bytes = data;
	uint64_t word;

	if (len_bytes != want_bytes)
		return PERF_CODE_NOT_SETUP;
	memcpy(&word, bytes, 8);
	if (le64toh(word) != WIRE_MAGIC)
		return PERF_CODE_NOT_SETUP;
	memcpy(&word, bytes + len_bytes - 8, 8);
	if (le64toh(word) != perf_hash(bytes, len_bytes - 8))
		return PERF_CODE_DAMAGED;
	memcpy(&word, bytes + 8, 8);
	if ((uint32_t)le64toh(word) != PERF_WIRE_VERSION)
		return PERF_CODE_VERSION;
	if (le64toh(word) >> 32 != kind)
		return PERF_CODE_NOT_SETUP;
	for (size_t i = 0; i < count; i++) {
		memcpy(&word, bytes + 16 + i * 8, 8);
		words_out[i] = le64toh(word);
	}
	return 0;
}

enum perf_wire_kind perf_wire_kind(const void *data, size_t len_bytes)
{
	const unsigned char *bytes = data;
	uint64_t word;

	if (len_bytes != PERF_WIRE_BYTES && len_bytes != PERF_WIRE_ANSWER_BYTES)
		return PERF_WIRE_NONE;
	memcpy(&word, bytes, 8);
	if (le64toh(word) != WIRE_MAGIC)
		return PERF_WIRE_NONE;
	memcpy(&word, bytes + 8, 8);
	switch (le64toh(word) >> 32) {
	case PERF_WIRE_SETUP:
		return PERF_WIRE_SETUP;
	case PERF_WIRE_ASK:
		return PERF_WIRE_ASK;
	case PERF_WIRE_ANSWER:
		return PERF_WIRE_ANSWER;
	default:
		return PERF_WIRE_NONE;
	}
}

void perf_setup_encode(const struct perf_setup *setup, void *out)
{
	uint64_t words[] = {setup->nonce, setup->seed, setup->size_bytes,
			    setup->mode | ((uint64_t)setup->flags << 32)};

	words_write(words, 4, PERF_WIRE_SETUP, out, PERF_WIRE_BYTES);
}

int perf_setup_decode(const void *data, size_t len_bytes, struct perf_setup *setup_out)
{
	uint64_t words[4];
	int code = words_read(data, len_bytes, PERF_WIRE_BYTES, PERF_WIRE_SETUP, words, 4);
	uint32_t mode, flags;

	if (code != 0)
		return code;
	mode = (uint32_t)words[3];
	flags = (uint32_t)(words[3] >> 32);
	if (mode != PERF_MODE_BW && mode != PERF_MODE_RATE && mode != PERF_MODE_LAT &&
	    mode != PERF_MODE_STREAM)
		return PERF_CODE_MODE;
	if (flags & ~PERF_FLAGS_KNOWN)
		return PERF_CODE_FLAGS;
	setup_out->nonce = words[0];
	setup_out->seed = words[1];
	setup_out->size_bytes = words[2];
	setup_out->mode = mode;
	setup_out->flags = flags;
	return 0;
}

void perf_ask_encode(const struct perf_ask *ask, void *out)
{
	words_write(&ask->nonce, 1, PERF_WIRE_ASK, out, PERF_WIRE_BYTES);
}

int perf_ask_decode(const void *data, size_t len_bytes, struct perf_ask *ask_out)
{
	uint64_t word;
	int code = words_read(data, len_bytes, PERF_WIRE_BYTES, PERF_WIRE_ASK, &word, 1);

	if (code == 0)
		ask_out->nonce = word;
	return code;
}

void perf_answer_encode(const struct perf_answer *answer, void *out)
{
	uint64_t words[] = {answer->nonce,     answer->is_known,    answer->received,
			    answer->bytes,     answer->checked,     answer->skipped,
			    answer->unplaced,  answer->number_next, answer->duplicated,
			    answer->reordered, answer->corrupted,   answer->gap_ns_max};

	words_write(words, 12, PERF_WIRE_ANSWER, out, PERF_WIRE_ANSWER_BYTES);
}

int perf_answer_decode(const void *data, size_t len_bytes, struct perf_answer *answer_out)
{
	uint64_t w[12];
	int code = words_read(data, len_bytes, PERF_WIRE_ANSWER_BYTES, PERF_WIRE_ANSWER, w, 12);

	if (code != 0)
		return code;
	*answer_out = (struct perf_answer){
		.nonce = w[0],
		.is_known = w[1],
		.received = w[2],
		.bytes = w[3],
		.checked = w[4],
		.skipped = w[5],
		.unplaced = w[6],
		.number_next = w[7],
		.duplicated = w[8],
		.reordered = w[9],
		.corrupted = w[10],
		.gap_ns_max = w[11],
	};
	return 0;
}

const char *perf_code_text(uint32_t code)
{
	switch (code) {
	case PERF_CODE_NOT_SETUP:
		return "the channel was not set up";
	case PERF_CODE_VERSION:
		return "the other mrc-perf is of another version";
	case PERF_CODE_DAMAGED:
		return "the setup message arrived damaged";
	case PERF_CODE_MODE:
		return "the server does not know this mode";
	case PERF_CODE_FLAGS:
		return "the server does not know one of the flags";
	case PERF_CODE_SIZE:
		return "the size is more than the channel takes";
	case PERF_CODE_NO_MEMORY:
		return "the server has no send memory for the echo";
	case PERF_CODE_BUSY:
		return "more messages at once than the server's echo keeps";
	case PERF_CODE_SETUP_TWICE:
		return "the channel was set up already";
	default:
		return "a code that this mrc-perf does not know";
	}
}
