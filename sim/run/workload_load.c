#include "run/workload_load.h"

#include <string.h>

/* Sequences that a request may have. */
enum { MAX_SAMPLES = 1024 };

/* Where the format says that a trace has counts of tokens there is nothing for a tokenizer to do:
 * the recording of a server keeps the name of the one that counted. */
static bool may_have_texts(const struct workload_config *w)
{
    return strcmp(w->format, "inflight") != 0;
}

static int take_rows(const struct workload_source *source, struct ifl_trace *trace,
                     struct ifl_error *error)
{
    const struct workload_config *w = source->workload;
    const bool asks = *w->tokenizer && may_have_texts(w);
    const struct ifl_trace_file file = {w->trace, w->format, w->max_record_mib,
                                        asks ? w->tokenizer : NULL,
                                        asks && *w->prompt_template ? w->prompt_template : NULL};
    if (!source->instead)
        return trace_shelf_cut(source->traces, &file, &w->window, &source->notes, trace, error);
    return ifl_trace_cut(source->instead, &(struct ifl_trace_window){0}, w->trace, &source->notes,
                         trace, error);
}

int workload_load(const struct workload_source *source, struct ifl_trace *trace,
                  struct ifl_error *error)
{
    const struct workload_config *w = source->workload;
    int rc = take_rows(source, trace, error);
    if (rc == 0 && w->shared_prefix_tokens > 0)
        rc = ifl_trace_share_prefix(trace, w->shared_prefix_tokens, error);
    if (rc == 0)
        rc = ifl_trace_arrive(trace, &w->arrivals, w->trace, &source->notes, error);
    for (size_t i = 0; rc == 0 && trace->samples && i < trace->n; i++)
        if (trace->samples[i] > MAX_SAMPLES)
            rc = ifl_fail_at(error, w->trace, 0, 0,
                             "row %zu asks for %d samples, expected at most %d", i + 1,
                             trace->samples[i], MAX_SAMPLES);
    return rc;
}

int32_t workload_concurrency(const struct workload_config *workload)
{
    const struct ifl_arrivals *arrivals = &workload->arrivals;
    return arrivals->process == IFL_ARRIVE_CLOSED ? arrivals->concurrency : 0;
}

void workload_configure(struct workload *workload, const struct config *config)
{
    workload->predictor = config->workload.predictor;
    workload->patience = config->workload.patience;
    workload_slo(workload, config->ttft_slo_s, config->tpot_slo_s);
    workload_deadline(workload, config->workload.deadline_s);
    if (config->workload.retries.most > 0)
        workload_retry(workload, &config->workload.retries);
}
