/* The seats of a pipeline, divided among its steps in flight. */
#ifndef POLICIES_BATCHING_SPLIT_H
#define POLICIES_BATCHING_SPLIT_H

#include "inflight/minmax.h"
#include "inflight/policy.h"

/* Largest number of requests in one step. Vidur, vllm_replica_scheduler.py and
 * sarathi_replica_scheduler.py, _max_micro_batch_size: the cap on requests divided by the stages,
 * rounded down. */
static inline int32_t most_in_step(const struct ifl_view *view, bool split, int32_t max_seqs)
{
    const int32_t n_in_flight = view->limits->max_in_flight;
    return IFL_RARE(split) && n_in_flight > 0 ? ifl_max(max_seqs / n_in_flight, 1) : INT32_MAX;
}

#endif
