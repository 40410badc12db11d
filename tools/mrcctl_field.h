/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_field - one field of an object in the daemon's answer
 *
 * What an older or newer daemon does not send is empty, 0 or false.
 *
 * Ownership: the text is the object's.  Threads: any.  I/O, time: none.
 */
#ifndef MRCCTL_FIELD_H
#define MRCCTL_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

static inline const char *mrcctl_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static inline uint64_t mrcctl_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static inline bool mrcctl_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

#endif
