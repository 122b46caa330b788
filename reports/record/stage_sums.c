#include "record/stage_sums.h"

#include <stdio.h>
#include <stdlib.h>

#include "inflight/minmax.h"

static int add_pipelines(struct stage_sums *sums, int32_t n)
{
    struct stage_span *spans = realloc(sums->spans, (size_t)n * sizeof *spans);
    if (!spans)
        return IFL_E_NOMEM;
    for (int32_t i = sums->n_pipelines; i < n; i++)
        spans[i] = (struct stage_span){.first_ns = IFL_NEVER, .last_ns = -1};
    sums->spans = spans;
    sums->n_pipelines = n;
    return 0;
}

/* Pools may have pipelines of different lengths. */
static int add_stages(struct stage_sums *sums, int32_t n)
{
    struct exact_sum *work_ns = realloc(sums->work_ns, (size_t)n * sizeof *work_ns);
    if (!work_ns)
        return IFL_E_NOMEM;
    for (int32_t i = sums->n_stages; i < n; i++)
        work_ns[i] = (struct exact_sum){0};
    sums->work_ns = work_ns;
    sums->n_stages = n;
    return 0;
}

int stage_sums_add(struct stage_sums *sums, const struct ifl_stage_record *record)
{
    ifl_assert(record->stage < record->n_stages && record->end_ns >= record->start_ns);
    if ((record->n_stages > sums->n_stages && add_stages(sums, record->n_stages) < 0) ||
        (record->pipeline >= sums->n_pipelines && add_pipelines(sums, record->pipeline + 1) < 0))
        return IFL_E_NOMEM;
    struct stage_span *span = &sums->spans[record->pipeline];
    span->n_stages = record->n_stages;
    exact_add(&sums->work_ns[record->stage], record->end_ns - record->start_ns, 1);
    span->first_ns = ifl_min(span->first_ns, record->start_ns);
    span->last_ns = ifl_max(span->last_ns, record->end_ns);
    return 0;
}

void stage_sums_free(struct stage_sums *sums)
{
    free(sums->work_ns);
    free(sums->spans);
    *sums = (struct stage_sums){0};
}

/* The time of all pipelines with so many stages, or more. */
static double span_of(const struct stage_sums *sums, int32_t least, int32_t most)
{
    struct exact_sum span = {0};
    for (int32_t i = 0; i < sums->n_pipelines; i++)
        if (sums->spans[i].last_ns > sums->spans[i].first_ns && sums->spans[i].n_stages >= least &&
            sums->spans[i].n_stages <= most)
            exact_add(&span, sums->spans[i].last_ns - sums->spans[i].first_ns, 1);
    return exact_value(span);
}

void stage_sums_describe(const struct stage_sums *sums, struct ifl_summary *summary)
{
    struct exact_sum work = {0};
    double all_stages_ns = 0;
    size_t n_bytes = 0;
    if (sums->n_stages == 0)
        return;
    for (int32_t s = 0; s < sums->n_stages; s++) {
        const double use_frac =
            exact_value(sums->work_ns[s]) / span_of(sums, s + 1, sums->n_stages);
        work.of += sums->work_ns[s].of;
        all_stages_ns += span_of(sums, s + 1, s + 1) * (s + 1);
        if (n_bytes < sizeof summary->stage_use_frac)
            n_bytes += (size_t)snprintf(summary->stage_use_frac + n_bytes,
                                        sizeof summary->stage_use_frac - n_bytes, "%s%.9g",
                                        s ? " " : "", use_frac);
    }
    summary->n_stages = (uint64_t)sums->n_stages;
    summary->bubble_frac = 1 - exact_value(work) / all_stages_ns;
}
