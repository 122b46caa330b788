/* A start that takes its blocks from running requests which the plan has not visited yet. */
#ifndef POLICIES_BATCHING_MAKE_ROOM_H
#define POLICIES_BATCHING_MAKE_ROOM_H

#include "inflight/policy.h"

/* n_running_ahead: requests that ran before the plan and that it visits later, or has preempted. */
static inline enum ifl_verdict start_making_room(struct ifl_step *step, const struct ifl_request *r,
                                                 int32_t n_new, int32_t n_running_ahead)
{
    enum ifl_verdict verdict = ifl_start(step, r, n_new);
    while (verdict == IFL_NO_BLOCKS && n_running_ahead > step->n_preempted &&
           ifl_make_room(step, r))
        verdict = ifl_start(step, r, n_new);
    return verdict;
}

#endif
