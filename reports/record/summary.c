/* A row of summary.csv: latencies, counts, rates, and means over time. */
#include "record/summary.h"

#include <math.h>

#include "inflight/minmax.h"
#include "record/lives.h"
#include "record/saturation.h"

/* ---- latencies ---- */

static int describe(struct samples *samples, uint32_t *count, struct distribution *of,
                    struct ifl_error *error)
{
    const size_t n = samples->n;
    if (quantile_thin(samples->ns, NULL, n, count, &samples->n, error))
        return error->code;
    quantile_describe(samples->ns, count, samples->n, of);
    of->mean_ns = n ? exact_value(samples->total_ns) / (double)n : (double)NAN;
    return IFL_OK;
}

static int describe_latencies(const struct summary_input *input,
                              struct distribution latencies[N_LATENCIES], struct ifl_error *error)
{
    uint32_t *count = malloc((input->n ? input->n : 1) * sizeof *count);
    int code = count ? IFL_OK : ifl_fail_nomem(error);
    latencies[LATENCY_ITL] = *input->itl;
    for (enum latency which = 0; which < N_LATENCIES && !code; which++)
        if (which != LATENCY_ITL)
            code = describe(&input->tally->of[which], count, &latencies[which], error);
    free(count);
    return code;
}

/* ---- counts and rates ---- */

static double ratio(double of, double to)
{
    return to > 0 ? of / to : (double)NAN;
}

static double span_s(const struct summary_input *input)
{
    const int64_t last_step_ns = input->steps->last_end_ns,
                  first_ns = input->tally->first_arrival_ns;
    const int64_t last_finish_ns = input->tally->last_finish_ns;
    const int64_t last_ns = ifl_max(last_finish_ns, last_step_ns);
    return last_ns > first_ns ? ifl_s_from_ns(last_ns - first_ns) : 0;
}

static void count_requests(const struct summary_input *input, struct ifl_summary *summary)
{
    const struct tally *tally = input->tally;
    const double duration_s = span_s(input), output_tokens = (double)tally->output_tokens;
    summary->n_requests = tally->n;
    summary->n_finished = tally->n_of[IFL_FINISHED];
    summary->n_rejected = tally->n_of[IFL_REJECTED];
    summary->n_failed = tally->n_of[IFL_FAILED];
    summary->n_aborted = tally->n_of[IFL_ABORTED];
    summary->n_timed_out = tally->n_of[IFL_TIMED_OUT];
    summary->n_shed = tally->n_of[IFL_SHED];
    summary->wasted_tokens = (uint64_t)tally->wasted_tokens;
    summary->wasted_frac =
        ratio((double)tally->wasted_tokens, (double)(tally->wasted_tokens + tally->prompt_tokens +
                                                     tally->output_tokens - tally->cached_tokens));
    summary->n_retries = tally->n_retries;
    summary->retry_amplification = ratio((double)tally->n, (double)(tally->n - tally->n_retries));
    summary->preemptions = tally->preemptions;
    summary->swap_outs = tally->swap_outs;
    summary->n_migrations = tally->n_migrations;
    summary->n_migrated = tally->n_migrated;
    summary->down_s = ratio(ifl_s_from_ns(tally->down_ns), (double)tally->n_migrations);
    summary->duration_s = duration_s;
    summary->request_throughput_rps = ratio((double)summary->n_finished, duration_s);
    summary->output_throughput_tok_per_s = ratio(output_tokens, duration_s);
    summary->total_throughput_tok_per_s =
        ratio((double)tally->prompt_tokens + output_tokens, duration_s);
    summary->cached_prompt_frac = ratio((double)tally->cached_tokens, (double)tally->prompt_tokens);
    for (int t = 0; t < IFL_N_TIERS; t++)
        summary->tier_hit_frac[t] =
            ratio((double)tally->tier_tokens[t], (double)tally->prompt_tokens);
    summary->goodput_rps = ratio((double)tally->n_meeting_slos, duration_s);
    summary->attainment_frac = ratio((double)tally->n_meeting_slos, (double)tally->n);
}

static void average_steps(const struct step_sums *steps, struct ifl_summary *summary)
{
    const double pool = exact_value(steps->pool_slots_ns);
    summary->n_steps = steps->n_steps;
    summary->pressure = pressure_sum_up(&steps->pressure);
    summary->mean_adapters = ratio(exact_value(steps->adapters_ns), exact_value(steps->time_ns));
    summary->adapter_loads = steps->adapter_loads;
    summary->mean_batch = ratio(exact_value(steps->seqs_ns), exact_value(steps->time_ns));
    summary->kv_token_frac = ratio(exact_value(steps->token_slots_ns), pool);
    summary->kv_reserved_frac = ratio(exact_value(steps->reserved_slots_ns), pool);
    summary->kv_internal_frac = ratio(exact_value(steps->internal_slots_ns), pool);
    const struct exact_sum external = {steps->pool_slots_ns.of - steps->token_slots_ns.of -
                                       steps->reserved_slots_ns.of - steps->internal_slots_ns.of};
    summary->kv_external_frac = ratio(exact_value(external), pool);
    const struct exact_sum unshared = {steps->used_blocks_ns.of + steps->shared_blocks_ns.of};
    summary->kv_shared_frac = ratio(exact_value(steps->shared_blocks_ns), exact_value(unshared));
}

int summarize(const struct summary_input *input, struct distribution latencies[N_LATENCIES],
              struct ifl_summary *summary, struct ifl_error *error)
{
    ifl_assert(lives_ascend(input->lives, input->order, input->n));
    ifl_assert(input->tally->n == input->n);
    if (describe_latencies(input, latencies, error))
        return error->code;
    *summary = (struct ifl_summary){
        .ttft_s = quantile_summary_s(&latencies[LATENCY_TTFT]),
        .tpot_s = quantile_summary_s(&latencies[LATENCY_TPOT]),
        .itl_s = quantile_summary_s(&latencies[LATENCY_ITL]),
        .e2e_s = quantile_summary_s(&latencies[LATENCY_E2E]),
        .normalized_latency_s = quantile_summary_s(&latencies[LATENCY_NORMALIZED]),
        .queue_s = quantile_summary_s(&latencies[LATENCY_QUEUE]),
        .saturated = saturation_found(input->lives, input->order, input->n),
    };
    count_requests(input, summary);
    average_steps(input->steps, summary);
    return IFL_OK;
}
