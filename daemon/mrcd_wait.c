/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_wait.h"

#define STEPS      16U            /* from the longest look to none */
#define CROWDED_NS (100 * MRC_MS) /* so long a processor that others need is not asked for again */

void mrcd_wait_init(struct mrcd_wait *wait, uint64_t look_ns_max, uint64_t now_ns)
{
	*wait = (struct mrcd_wait){
		.look_ns_max = look_ns_max,
		.look_ns = look_ns_max,
		.worked_ns = now_ns,
		.asleep_ns = now_ns,
	};
}

static void grow(struct mrcd_wait *wait)
{
	uint64_t longer_ns = MRC_MAX(wait->look_ns * 2, wait->look_ns_max / STEPS);

	if (wait->worked_ns >= wait->crowded_until_ns)
		wait->look_ns = MRC_MIN(longer_ns, wait->look_ns_max);
}

static void shrink(struct mrcd_wait *wait)
{
	wait->look_ns /= 2;
	if (wait->look_ns < wait->look_ns_max / STEPS)
		wait->look_ns = 0;
}

bool mrcd_wait_work(struct mrcd_wait *wait, uint64_t now_ns)
{
	bool was_found = wait->is_looking && !wait->has_worked;

	wait->worked_ns = now_ns;
	wait->has_worked = true;
	if (was_found || (!wait->is_looking && now_ns - wait->asleep_ns < wait->look_ns_max))
		grow(wait);
	else if (!wait->is_looking)
		shrink(wait);
	if (wait->is_looking || wait->look_ns == 0) {
		if (!wait->is_looking)
			wait->asleep_ns = now_ns;
		return false;
	}
	wait->is_looking = true;
	return true;
}

bool mrcd_wait_look(struct mrcd_wait *wait, uint64_t now_ns, bool *do_yield)
{
	*do_yield = !wait->has_worked;
	wait->has_worked = false;
	if (now_ns - wait->worked_ns < wait->look_ns)
		return true;
	wait->is_looking = false;
	wait->asleep_ns = now_ns;
	*do_yield = false;
	return false;
}

bool mrcd_wait_yielded(struct mrcd_wait *wait, uint64_t before_ns, uint64_t now_ns)
{
	if (now_ns - before_ns < wait->look_ns_max)
		return true;
	wait->look_ns = 0;
	wait->crowded_until_ns = now_ns + CROWDED_NS;
	wait->is_looking = false;
	wait->asleep_ns = now_ns;
	return false;
}
