/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_span.h"

#include <stdio.h>

#include "mrc_base.h"

const char *mrcd_span_text(uint64_t ns, char text[MRCD_SPAN_BYTES])
{
	if (ns < 10 * MRC_US)
		snprintf(text, MRCD_SPAN_BYTES, "%.1f us", (double)ns / (double)MRC_US);
	else if (ns < MRC_MS)
		snprintf(text, MRCD_SPAN_BYTES, "%.0f us", (double)ns / (double)MRC_US);
	else if (ns < 10 * MRC_MS)
		snprintf(text, MRCD_SPAN_BYTES, "%.1f ms", (double)ns / (double)MRC_MS);
	else if (ns < MRC_S)
		snprintf(text, MRCD_SPAN_BYTES, "%.0f ms", (double)ns / (double)MRC_MS);
	else
		snprintf(text, MRCD_SPAN_BYTES, "%.1f s", (double)ns / (double)MRC_S);
	return text;
}
