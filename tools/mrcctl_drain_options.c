/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drain_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 9U /* so many hours in nanoseconds do not wrap */

int mrcctl_drain_wait_take(const char *text, uint64_t *wait_ns_out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"ms", 1000000ULL},
		{"s", 1000000000ULL},
		{"min", 60000000000ULL},
		{"h", 3600000000000ULL},
	};
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > DIGITS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t count = strtoull(text, NULL, 10);

		if (strcmp(text + len, units[i].name) != 0)
			continue;
		if (count > MRCCTL_DRAIN_WAIT_NS_MAX / units[i].ns)
			return -EINVAL;
		*wait_ns_out = count * units[i].ns;
		return 0;
	}
	return -EINVAL;
}
