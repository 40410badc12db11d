/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_look.h"

#define CREDIT_MAX   16U
#define CREDIT_START 8U
#define CREDIT_TRIAL 4U
#define TRIAL_FACTOR 3U       /* a trial looks so much longer */
#define DENSE_FACTOR 8U       /* work that comes after so many spans can be found by a look */
#define PAUSE_NS_MIN 1000000U /* between two trials */
#define SPANS_REST   200U  /* who slept for so many begins anew: half a percent, if it is in vain */
#define SPANS_PAUSE  2400U /* so is the longest pause, for the twelve spans of a trial */

void mrc_look_init(struct mrc_look *look, uint64_t span_ns, uint64_t now_ns)
{
	*look = (struct mrc_look){
		.span_ns = span_ns,
		.worked_ns = now_ns,
		.asleep_ns = now_ns,
		.pause_ns = PAUSE_NS_MIN,
		.credit = CREDIT_START,
	};
}

static void found(struct mrc_look *look)
{
	if (look->credit < CREDIT_MAX)
		look->credit++;
	else
		look->pause_ns = PAUSE_NS_MIN;
}

static void found_nothing(struct mrc_look *look, uint64_t now_ns)
{
	look->is_looking = false;
	look->asleep_ns = now_ns;
	if (look->credit == 0 || --look->credit > 0)
		return;
	look->try_ns = now_ns + look->pause_ns;
	if (look->pause_ns < SPANS_PAUSE * look->span_ns)
		look->pause_ns *= 2;
}

static void woken(struct mrc_look *look, uint64_t now_ns)
{
	uint64_t slept_ns = now_ns - look->asleep_ns;

	if (slept_ns >= SPANS_REST * look->span_ns && look->credit < CREDIT_START)
		look->credit = CREDIT_START;
	else if (look->credit == 0 && now_ns >= look->try_ns &&
		 slept_ns < DENSE_FACTOR * look->span_ns)
		look->credit = CREDIT_TRIAL;
	look->asleep_ns = now_ns; /* where it sleeps on at once */
}

bool mrc_look_work(struct mrc_look *look, uint64_t now_ns)
{
	if (look->is_looking && !look->has_worked)
		found(look);
	look->has_worked = true;
	look->worked_ns = now_ns;
	if (look->is_looking || look->span_ns == 0)
		return false;
	woken(look, now_ns);
	look->is_looking = look->credit > 0;
	return look->is_looking;
}

bool mrc_look_on(struct mrc_look *look, uint64_t now_ns, bool *do_yield)
{
	uint64_t span_ns =
		look->credit < CREDIT_START ? TRIAL_FACTOR * look->span_ns : look->span_ns;

	*do_yield = !look->has_worked;
	look->has_worked = false;
	if (now_ns - look->worked_ns < span_ns)
		return true;
	found_nothing(look, now_ns);
	*do_yield = false;
	return false;
}

void mrc_look_end(struct mrc_look *look, uint64_t now_ns)
{
	mrc_look_work(look, now_ns);
	look->is_looking = false;
	look->asleep_ns = now_ns;
}
