/* The stages of one pipeline in virtual time. Step b is in stage s
 *
 *     from  max(end(b, s - 1) + hop, end(b - 1, s))
 *
 * on, that is, as soon as it arrives there and step b - 1 has left (a flow shop; Narayanan et al.,
 * SC 2021, 2.2). */
#ifndef SIM_RUN_PIPELINE_H
#define SIM_RUN_PIPELINE_H

#include "inflight/executor.h"

#include "cost/stages.h"

struct pipeline {
    uint32_t number;
    struct stages stages;
    int64_t *free_ns;               /* [stages.n] when the last step left the stage */
    struct ifl_done *of;            /* [cap] steps in flight: a ring of n from `first` on */
    struct ifl_stage_time *times;   /* [cap][stages.n] */
    struct ifl_stage_times *passed; /* [cap] */
    size_t first, n, cap;
};

/* Creates a pipeline with at most `cap` steps in flight. Returns 0 or IFL_E_NOMEM; pipeline_destroy
 * must be called after an error, too. */
int pipeline_create(struct pipeline *pipeline, uint32_t number, const struct stages *stages,
                    size_t cap);
void pipeline_destroy(struct pipeline *pipeline);
/* Sends a step through the stages: stage_ns is its time in each stage. Returns the end of the step,
 * or a negative code if there is no room for it or it ends too late. */
int64_t pipeline_take(struct pipeline *pipeline, const struct ifl_step_desc *desc,
                      const int64_t *stage_ns, int64_t hop_ns, struct ifl_error *error);
/* Returns the step that entered last; there must be one. */
const struct ifl_done *pipeline_last(const struct pipeline *pipeline);
/* Removes the oldest step, of which there must be one, and returns it. Its times are valid until
 * the next call. */
struct ifl_done pipeline_give(struct pipeline *pipeline);

#endif
