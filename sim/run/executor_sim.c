#include "run/executor_sim.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "inflight/random.h"

#include "base/array.h"

int executor_sim_create(struct executor_sim *sim, struct cost *cost, uint32_t n_replicas,
                        struct ifl_error *error)
{
    *sim = (struct executor_sim){0};
    sim->lanes = calloc(n_replicas, sizeof *sim->lanes);
    if (!sim->lanes || event_reserve(&sim->ends, (size_t)n_replicas * EXECUTOR_SIM_MAX_IN_FLIGHT))
        return ifl_fail_nomem(error);
    executor_sim_cost(sim, cost, 0, n_replicas);
    return 0;
}

void executor_sim_cost(struct executor_sim *sim, struct cost *cost, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++)
        sim->lanes[i].cost = cost;
}

static struct pipeline *add_pipeline(struct executor_sim *sim, const struct stages *stages,
                                     int32_t depth)
{
    const uint32_t number = sim->n_pipelines;
    struct pipeline *pipeline = malloc(sizeof *pipeline);
    if (!pipeline ||
        array_grow(&sim->pipelines, number, number + 1, sizeof(struct pipeline *)) < 0) {
        free(pipeline);
        return NULL;
    }
    sim->pipelines[sim->n_pipelines++] = pipeline;
    return pipeline_create(pipeline, number, stages, (size_t)depth) < 0 ? NULL : pipeline;
}

int executor_sim_pipeline(struct executor_sim *sim, const struct stages *stages, uint32_t first,
                          uint32_t n, uint32_t n_engines, int32_t depth, struct ifl_error *error)
{
    ifl_require(stages->n > 1 && n_engines > 0 && n % n_engines == 0);
    for (uint32_t i = 0; i < n; i++) {
        struct lane *lane = &sim->lanes[first + i];
        lane->pipeline = i % n_engines > 0 ? lane[-1].pipeline : add_pipeline(sim, stages, depth);
        if (!lane->pipeline)
            return ifl_fail_nomem(error);
    }
    return event_reserve(&sim->ends, (size_t)sim->n_pipelines * (size_t)depth) < 0
               ? ifl_fail_nomem(error)
               : 0;
}

void executor_sim_destroy(struct executor_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_pipelines; i++) {
        pipeline_destroy(sim->pipelines[i]);
        free(sim->pipelines[i]);
    }
    free(sim->pipelines);
    free(sim->lanes);
    event_heap_destroy(&sim->ends);
    *sim = (struct executor_sim){0};
}

static int64_t sim_now(void *self)
{
    return ((struct executor_sim *)self)->now_ns;
}

static const struct ifl_done *last_of(const struct lane *lane)
{
    return &lane->of[(lane->first + lane->n - 1) % EXECUTOR_SIM_MAX_IN_FLIGHT];
}

/* Steps of a replica run one after the other: this one starts when it is submitted or when the last
 * one ends. */
static int64_t earliest_start(const struct lane *lane, int64_t submitted_ns)
{
    return lane->n == 0 ? submitted_ns : ifl_max(last_of(lane)->end_ns, submitted_ns);
}

static int64_t with_noise(const struct executor_sim *sim, uint32_t replica, uint64_t step,
                          int64_t duration_ns)
{
    const double sigma = sim->noise.sigma;
    if (sigma <= 0 || duration_ns < 0)
        return duration_ns;
    const uint64_t draw = ifl_draw(sim->noise.seed, IFL_DRAW_STEP_NOISE, step, replica);
    const double z = gsl_cdf_ugaussian_Pinv(ifl_uniform(draw));
    const double noisy_ns = (double)duration_ns * exp(sigma * z - sigma * sigma / 2);
    return noisy_ns > 1 ? llround(noisy_ns) : 1;
}

static int time_step(const struct executor_sim *sim, const struct ifl_step_desc *desc,
                     int64_t earliest_ns, int64_t *start_ns, int64_t *duration_ns,
                     struct ifl_error *error)
{
    if (sim->recorded)
        return recorded_step(sim->recorded, desc, earliest_ns, start_ns, duration_ns, error);
    *start_ns = earliest_ns;
    struct cost *cost = sim->lanes[desc->replica].cost;
    *duration_ns = with_noise(sim, desc->replica, desc->step, cost_step_ns(cost, &desc->totals));
    return *duration_ns < 0 ? cost_why_not(cost, &desc->totals, error) : 0;
}

static int take(struct executor_sim *sim, const struct ifl_step_desc *desc, int64_t start_ns,
                int64_t duration_ns, struct ifl_error *error)
{
    struct lane *lane = &sim->lanes[desc->replica];
    if (lane->n == EXECUTOR_SIM_MAX_IN_FLIGHT)
        return ifl_fail(error, IFL_E_DEVICE, "more than %d steps in flight",
                        EXECUTOR_SIM_MAX_IN_FLIGHT);
    if (duration_ns > IFL_LAST_NS - start_ns)
        return ifl_fail(
            error, IFL_E_INPUT,
            "step %llu takes %g s from %g s on, expected a run that ends before 9.2e9 s",
            (unsigned long long)desc->step, ifl_s_from_ns(duration_ns), ifl_s_from_ns(start_ns));
    lane->of[(lane->first + lane->n++) % EXECUTOR_SIM_MAX_IN_FLIGHT] = (struct ifl_done){
        .step = desc->step,
        .replica = desc->replica,
        .start_ns = start_ns,
        .end_ns = start_ns + duration_ns,
        .device_ns = duration_ns,
    };
    return event_push(&sim->ends, start_ns + duration_ns, desc->replica, desc->replica) < 0
               ? ifl_fail_nomem(error)
               : 0;
}

IFL_APART static int submit_to_pipeline(struct executor_sim *sim, const struct ifl_step_desc *desc,
                                        struct ifl_error *error)
{
    const struct lane *lane = &sim->lanes[desc->replica];
    const struct stages *stages = &lane->pipeline->stages;
    int64_t stage_ns[STAGES_MOST], hop_ns;
    if (cost_stages_ns(lane->cost, &desc->totals, stages, stage_ns, &hop_ns) < 0)
        return cost_why_not(lane->cost, &desc->totals, error);
    for (int32_t s = 0; s < stages->n; s++)
        stage_ns[s] = with_noise(sim, desc->replica, desc->step, stage_ns[s]);
    const int64_t end_ns = pipeline_take(lane->pipeline, desc, stage_ns, hop_ns, error);
    if (end_ns < 0)
        return error->code;
    return event_push(&sim->ends, end_ns, desc->replica, desc->replica) < 0 ? ifl_fail_nomem(error)
                                                                            : 0;
}

static int sim_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct executor_sim *sim = self;
    if (sim->lanes[desc->replica].pipeline)
        return submit_to_pipeline(sim, desc, error);
    const int64_t earliest_ns = earliest_start(&sim->lanes[desc->replica], desc->start_ns);
    int64_t start_ns, duration_ns;
    if (time_step(sim, desc, earliest_ns, &start_ns, &duration_ns, error) < 0)
        return error->code;
    return take(sim, desc, start_ns, duration_ns, error);
}

static int64_t sim_begins(void *self, uint32_t replica)
{
    const struct executor_sim *sim = self;
    const struct lane *lane = &sim->lanes[replica];
    return lane->pipeline ? pipeline_last(lane->pipeline)->start_ns : last_of(lane)->start_ns;
}

static int sim_submit_group(void *self, const struct ifl_step_desc *const *of, size_t n,
                            struct ifl_error *error)
{
    struct executor_sim *sim = self;
    const struct ifl_step_totals *totals[COST_MAX_RANKS] = {NULL};
    int rc = 0;
    ifl_require(n > 0 && n <= COST_MAX_RANKS);
    for (size_t i = 0; i < n; i++)
        totals[i] = &of[i]->totals;
    const int64_t duration_ns = cost_group_step_ns(sim->lanes[of[0]->replica].cost, totals, n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = take(sim, of[i], of[0]->start_ns, duration_ns, error);
    return rc;
}

static int sim_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    struct executor_sim *sim = self;
    (void)error;
    if (sim->ends.n == 0 || event_next_ns(&sim->ends) > until_ns) {
        sim->now_ns = ifl_max(sim->now_ns, until_ns);
        return 0;
    }
    struct lane *lane = &sim->lanes[event_pop(&sim->ends).payload];
    if (lane->pipeline) {
        *done = pipeline_give(lane->pipeline);
    } else {
        *done = lane->of[lane->first];
        lane->first = (lane->first + 1) % EXECUTOR_SIM_MAX_IN_FLIGHT;
        lane->n--;
    }
    sim->now_ns = done->end_ns;
    return 1;
}

IFL_APART static size_t noisy_durations(const struct executor_sim *sim,
                                        const struct ifl_step_desc *first, size_t n,
                                        int64_t *duration_ns)
{
    const size_t n_known =
        cost_run_ns(sim->lanes[first->replica].cost, &first->totals, n, duration_ns);
    for (size_t i = 0; i < n_known; i++)
        duration_ns[i] = with_noise(sim, first->replica, first->step + i, duration_ns[i]);
    return n_known;
}

IFL_HOT static size_t sim_durations(void *self, const struct ifl_step_desc *first, size_t n,
                                    int64_t *duration_ns)
{
    const struct executor_sim *sim = self;
    n = ifl_min(n, COST_MAX_RUN);
    if (IFL_RARE(sim->recorded))
        return 0;
    if (IFL_RARE(sim->noise.sigma > 0))
        return noisy_durations(sim, first, n, duration_ns);
    return cost_run_ns(sim->lanes[first->replica].cost, &first->totals, n, duration_ns);
}

const struct ifl_executor_ops executor_sim_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "sim",
    .now = sim_now,
    .submit = sim_submit,
    .next = sim_next,
    .durations = sim_durations,
    .submit_group = sim_submit_group,
    .begins = sim_begins,
};
