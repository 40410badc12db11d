/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_quota.h"

bool mrcd_quota_admits(const struct mrcd_quota *quota, uint64_t len_bytes, uint64_t now_ns,
		       uint64_t *when_out)
{
	const struct mrcd_conf_quota *max = &quota->max;

	*when_out = MRC_NEVER;
	if (max->in_flight_bytes_max && quota->in_flight_bytes &&
	    (quota->in_flight_bytes >= max->in_flight_bytes_max ||
	     len_bytes > max->in_flight_bytes_max - quota->in_flight_bytes))
		return false;
	if (max->rate_bits_per_s && quota->paid_ns > now_ns + MRCD_QUOTA_BURST_NS) {
		*when_out = quota->paid_ns - MRCD_QUOTA_BURST_NS;
		return false;
	}
	return true;
}

/* How long so many bytes take at this rate. A message of 1 TiB at 1 Mb/s: no 64 bits hold the product. */
static uint64_t span_of(uint64_t bytes, uint64_t bits_per_s)
{
	return (uint64_t)((unsigned __int128)bytes * 8 * MRC_S / bits_per_s);
}

void mrcd_quota_take(struct mrcd_quota *quota, uint64_t len_bytes, uint64_t now_ns)
{
	quota->in_flight_bytes += len_bytes;
	if (quota->max.rate_bits_per_s)
		quota->paid_ns =
			MRC_MAX(quota->paid_ns, now_ns) +
			span_of(len_bytes + MRCD_QUOTA_OVERHEAD_BYTES, quota->max.rate_bits_per_s);
}

void mrcd_quota_give(struct mrcd_quota *quota, uint64_t len_bytes)
{
	MRC_ASSERT(quota->in_flight_bytes >= len_bytes);
	quota->in_flight_bytes -= len_bytes;
}
