#include "run/pipeline.h"

#include <stdlib.h>

#include "inflight/minmax.h"

int pipeline_create(struct pipeline *pipeline, uint32_t number, const struct stages *stages,
                    size_t cap)
{
    const size_t n_stages = (size_t)stages->n;
    *pipeline = (struct pipeline){.number = number, .stages = *stages, .cap = cap};
    pipeline->free_ns = calloc(n_stages, sizeof *pipeline->free_ns);
    pipeline->of = calloc(cap, sizeof *pipeline->of);
    pipeline->times = calloc(cap * n_stages, sizeof *pipeline->times);
    pipeline->passed = calloc(cap, sizeof *pipeline->passed);
    return pipeline->free_ns && pipeline->of && pipeline->times && pipeline->passed ? 0
                                                                                    : IFL_E_NOMEM;
}

void pipeline_destroy(struct pipeline *pipeline)
{
    free(pipeline->free_ns);
    free(pipeline->of);
    free(pipeline->times);
    free(pipeline->passed);
    *pipeline = (struct pipeline){0};
}

static int64_t fail_late(const struct ifl_step_desc *desc, int64_t start_ns, int64_t duration_ns,
                         struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_INPUT,
                    "step %llu takes %g s from %g s on, expected a run that ends before 9.2e9 s",
                    (unsigned long long)desc->step, ifl_s_from_ns(duration_ns),
                    ifl_s_from_ns(start_ns));
}

int64_t pipeline_take(struct pipeline *pipeline, const struct ifl_step_desc *desc,
                      const int64_t *stage_ns, int64_t hop_ns, struct ifl_error *error)
{
    const size_t n_stages = (size_t)pipeline->stages.n;
    if (pipeline->n == pipeline->cap)
        return ifl_fail(error, IFL_E_DEVICE, "more than %zu steps in flight", pipeline->cap);
    const size_t place = (pipeline->first + pipeline->n) % pipeline->cap;
    struct ifl_stage_time *times = &pipeline->times[place * n_stages];
    int64_t at_ns = desc->start_ns, sum_ns = 0;
    for (size_t s = 0; s < n_stages; s++) {
        at_ns = ifl_max(at_ns, pipeline->free_ns[s]);
        if (stage_ns[s] > IFL_LAST_NS - at_ns)
            return fail_late(desc, at_ns, stage_ns[s], error);
        times[s] = (struct ifl_stage_time){at_ns, at_ns + stage_ns[s]};
        pipeline->free_ns[s] = times[s].end_ns;
        sum_ns += stage_ns[s];
        at_ns = ifl_later_ns(times[s].end_ns, hop_ns);
    }
    pipeline->passed[place] = (struct ifl_stage_times){pipeline->number, (int32_t)n_stages, times};
    pipeline->of[place] = (struct ifl_done){.step = desc->step,
                                            .replica = desc->replica,
                                            .start_ns = times[0].start_ns,
                                            .end_ns = times[n_stages - 1].end_ns,
                                            .device_ns = sum_ns,
                                            .stages = &pipeline->passed[place]};
    pipeline->n++;
    return times[n_stages - 1].end_ns;
}

const struct ifl_done *pipeline_last(const struct pipeline *pipeline)
{
    ifl_assert(pipeline->n > 0);
    return &pipeline->of[(pipeline->first + pipeline->n - 1) % pipeline->cap];
}

struct ifl_done pipeline_give(struct pipeline *pipeline)
{
    ifl_assert(pipeline->n > 0);
    const struct ifl_done done = pipeline->of[pipeline->first];
    pipeline->first = (pipeline->first + 1) % pipeline->cap;
    pipeline->n--;
    return done;
}
