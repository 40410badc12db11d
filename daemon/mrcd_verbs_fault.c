/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_verbs_fault - breaking a rail of queue pairs on purpose, for tests of the daemon */
#include <errno.h>
#include <string.h>

#include "mrcd_verbs.h"

#define FLIP_EVERY 8U /* of the frames that have what is to be damaged */

/* As if the device had done it. It takes a millisecond of the loop's: this is for tests. */
static int queue_pairs_break(struct mrcd_verbs *verbs)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct mrcd_verbs_link *link;
	int count = 0;

	LIST_FOREACH(link, &verbs->links, entry)
	{
		if (link->state == MRCD_VERBS_LINK_UP &&
		    ibv_modify_qp(link->qp, &attr, IBV_QP_STATE) == 0)
			count++;
	}
	return count;
}

int mrcd_verbs_fault(struct mrcd_rail *rail, const char *what)
{
	static const char *const damages[] = {
		[MRCD_VERBS_DAMAGE_NONE] = "damage-none",
		[MRCD_VERBS_DAMAGE_PAYLOAD] = "damage-payload",
		[MRCD_VERBS_DAMAGE_HEADERS] = "damage-headers",
	};
	struct mrcd_verbs *verbs = rail->kind_data;

	if (strcmp(what, "qp-error") == 0)
		return queue_pairs_break(verbs);
	for (unsigned damage = 0; damage < MRC_ARRAY_LEN(damages); damage++) {
		if (strcmp(what, damages[damage]) != 0)
			continue;
		verbs->damage = (enum mrcd_verbs_damage)damage;
		return (int)MRC_MIN(verbs->flips, (uint64_t)INT32_MAX);
	}
	return -EINVAL;
}

void mrcd_verbs_fault_flip(struct mrcd_verbs *verbs, uint8_t *bytes, uint32_t len_bytes)
{
	uint64_t bit;

	if (len_bytes == 0 || verbs->flip_turn++ % FLIP_EVERY != 0)
		return;
	bit = verbs->flips++ * 0x9e3779b97f4a7c15ULL % ((uint64_t)len_bytes * 8);
	bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
}
