/* A row of summary.csv: latencies, counts, rates, and means over time. */
#include "record/summary.h"

#include <math.h>

#include "inflight/minmax.h"
#include "record/latencies.h"
#include "record/saturation.h"

/* ---- what needs each life ---- */

static bool is_of(const struct summary_lives *lives, const struct life *life)
{
    return !lives->pool_of || (life->replica >= 0 && lives->pool_of[life->replica] == lives->pool);
}

static int read_lives(const struct summary_input *input, struct latencies *latencies,
                      struct saturation *saturation, struct ifl_error *error)
{
    struct life_reader reader;
    int rc = life_reader_open(&reader, input->lives.log, error) < 0 ? error->code : 1;
    for (size_t i = 0; rc > 0 && (rc = life_reader_next(&reader, error)) > 0; i++) {
        if (i < input->lives.from || !is_of(&input->lives, &reader.life))
            continue;
        latencies_take(latencies, &reader.life);
        saturation_add(saturation, &reader.life);
    }
    life_reader_close(&reader);
    return rc;
}

static int judge_lives(const struct summary_input *input, struct distribution of[N_LATENCIES],
                       bool *saturated, struct ifl_error *error)
{
    struct tally *tally = input->tally;
    struct latencies latencies;
    struct saturation saturation;
    saturation_begin(&saturation, tally->first_arrival_ns, tally->last_arrival_ns);
    int code = latencies_open(&latencies, tally, error);
    if (!code && tally->n > 0)
        code = read_lives(input, &latencies, &saturation, error);
    if (!code)
        code = latencies_describe(&latencies, tally, of, error);
    latencies_close(&latencies);
    of[LATENCY_ITL] = *input->itl;
    *saturated = saturation_found(&saturation);
    return code;
}

/* ---- counts and rates ---- */

static double ratio(double of, double to)
{
    return to > 0 ? of / to : (double)NAN;
}

static double span_s(const struct summary_input *input)
{
    const int64_t last_step_ns = input->steps->last_end_ns, first_ns = input->run->first_arrival_ns;
    const int64_t last_finish_ns = input->run->last_finish_ns;
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
    summary->wasted_steps = (uint64_t)tally->wasted_steps;
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

void summary_average_steps(const struct step_sums *steps, struct ifl_summary *summary)
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
    bool saturated;
    if (judge_lives(input, latencies, &saturated, error))
        return error->code;
    *summary = (struct ifl_summary){
        .ttft_s = quantile_summary_s(&latencies[LATENCY_TTFT]),
        .tpot_s = quantile_summary_s(&latencies[LATENCY_TPOT]),
        .itl_s = quantile_summary_s(&latencies[LATENCY_ITL]),
        .e2e_s = quantile_summary_s(&latencies[LATENCY_E2E]),
        .normalized_latency_s = quantile_summary_s(&latencies[LATENCY_NORMALIZED]),
        .queue_s = quantile_summary_s(&latencies[LATENCY_QUEUE]),
        .saturated = saturated,
    };
    count_requests(input, summary);
    summary_average_steps(input->steps, summary);
    return IFL_OK;
}
