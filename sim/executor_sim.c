#include "executor_sim.h"

static int64_t sim_now(void *self)
{
    return ((struct executor_sim *)self)->now_ns;
}

/* Steps run one after the other: this one starts when it is submitted or when the last one ends. */
static int sim_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct executor_sim *sim = self;
    if (sim->n == EXECUTOR_SIM_MAX_IN_FLIGHT)
        return ifl_fail(error, IFL_E_DEVICE, "more than %d steps in flight",
                        EXECUTOR_SIM_MAX_IN_FLIGHT);
    int64_t start_ns = desc->start_ns;
    if (sim->n > 0) {
        const unsigned last = (sim->first + sim->n - 1) % EXECUTOR_SIM_MAX_IN_FLIGHT;
        if (sim->pending[last].end_ns > start_ns)
            start_ns = sim->pending[last].end_ns;
    }
    const int64_t duration_ns = cost_step_ns(sim->cost, &desc->totals);
    if (duration_ns < 0)
        return cost_why_not(sim->cost, &desc->totals, error);
    if (duration_ns > IFL_LAST_NS - start_ns)
        return ifl_fail(
            error, IFL_E_INPUT,
            "step %llu takes %g s from %g s on, expected a run that ends before 9.2e9 s",
            (unsigned long long)desc->step, ifl_s_from_ns(duration_ns), ifl_s_from_ns(start_ns));
    sim->pending[(sim->first + sim->n++) % EXECUTOR_SIM_MAX_IN_FLIGHT] = (struct ifl_done){
        .step = desc->step,
        .start_ns = start_ns,
        .end_ns = start_ns + duration_ns,
        .device_ns = duration_ns,
    };
    return 0;
}

static int sim_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    struct executor_sim *sim = self;
    (void)error;
    if (sim->n == 0 || sim->pending[sim->first].end_ns > until_ns) {
        sim->now_ns = until_ns > sim->now_ns ? until_ns : sim->now_ns;
        return 0;
    }
    *done = sim->pending[sim->first];
    sim->first = (sim->first + 1) % EXECUTOR_SIM_MAX_IN_FLIGHT;
    sim->n--;
    sim->now_ns = done->end_ns;
    return 1;
}

const struct ifl_executor_ops executor_sim_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "sim",
    .now = sim_now,
    .submit = sim_submit,
    .next = sim_next,
};
