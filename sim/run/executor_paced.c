#include "run/executor_paced.h"

#include "inflight/minmax.h"

static int64_t paced_now(void *self)
{
    const struct executor_paced *paced = self;
    return paced->source->ops->now(paced->source->self);
}

static int paced_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    const struct executor_paced *paced = self;
    return executor_sim_ops.submit(paced->sim, desc, error);
}

static int paced_submit_group(void *self, const struct ifl_step_desc *const *of, size_t n,
                              struct ifl_error *error)
{
    const struct executor_paced *paced = self;
    return executor_sim_ops.submit_group(paced->sim, of, n, error);
}

static int64_t paced_begins(void *self, uint32_t replica)
{
    const struct executor_paced *paced = self;
    return executor_sim_ops.begins(paced->sim, replica);
}

static int paced_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    struct executor_paced *paced = self;
    const struct source *source = paced->source;
    const int64_t end_ns = event_next_ns(&paced->sim->ends), at_ns = ifl_min(end_ns, until_ns);
    source->ops->wait(source->self, at_ns);
    if (source->ops->now(source->self) < at_ns)
        return EXECUTOR_SOURCE_SPEAKS;
    return executor_sim_ops.next(paced->sim, until_ns, done, error);
}

const struct ifl_executor_ops executor_paced_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "sim",
    .now = paced_now,
    .submit = paced_submit,
    .next = paced_next,
    .submit_group = paced_submit_group,
    .begins = paced_begins,
};
