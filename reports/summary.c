/* When is a point saturated?
 *
 * Above capacity the queueing delay grows for as long as requests arrive, so its mean describes the
 * length of the trace. We look at the requests that arrive in the second half of the arrival span
 * and were scheduled, in order of arrival, and cut them into 20 batches of equal number. Delays of
 * neighbours are alike; batch means are nearly independent, which is what makes a standard error
 * mean something (the method of batch means, Law and Kelton). The point is saturated when
 *
 *   - the least-squares line through (mean arrival, mean queueing delay) of the batches climbs more
 *     than 0.02 seconds a second: with first come, first served, load above about 1.02;
 *   - its slope exceeds three of its standard errors;
 *   - the mean delay grows from each quarter of the batches to the next.
 *
 * Fewer than 40 such requests, or all arrivals at once, are not judged: not saturated. */
#include "summary.h"

#include <gsl/gsl_fit.h>
#include <math.h>

#define N_BATCHES 20
#define MIN_PER_BATCH ((size_t)2)
#define MIN_SLOPE 0.02
#define MIN_STANDARD_ERRORS 3

/* ---- saturation ---- */

struct delays {
    double arrival_s[N_BATCHES], queue_s[N_BATCHES];
};

/* The first in order of arrival that came after that. */
static size_t first_behind(const struct life *lives, const uint32_t *order, size_t n, int64_t ns)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (lives[order[middle]].arrival_ns > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool queued(const struct life *life)
{
    return life->first_scheduled_ns != IFL_NEVER;
}

static size_t count_queued(const struct life *lives, const uint32_t *order, size_t n)
{
    size_t n_queued = 0;
    for (size_t i = 0; i < n; i++)
        n_queued += queued(life_at(lives, order, n, i));
    return n_queued;
}

static void batch_delays(const struct life *lives, const uint32_t *order, size_t n, int64_t from_ns,
                         size_t n_queued, struct delays *of)
{
    size_t in_batch[N_BATCHES] = {0};
    *of = (struct delays){0};
    for (size_t i = 0, k = 0; i < n; i++) {
        const struct life *life = life_at(lives, order, n, i);
        if (!queued(life))
            continue;
        const size_t batch = k++ * N_BATCHES / n_queued;
        of->arrival_s[batch] += ifl_s_from_ns(life->arrival_ns - from_ns);
        of->queue_s[batch] += ifl_s_from_ns(life_queue_ns(life));
        in_batch[batch]++;
    }
    for (size_t batch = 0; batch < N_BATCHES; batch++) {
        of->arrival_s[batch] /= (double)in_batch[batch];
        of->queue_s[batch] /= (double)in_batch[batch];
    }
}

static bool climbs(const struct delays *of)
{
    double start, slope, cov00, cov01, cov11, sum_of_squares;
    gsl_fit_linear(of->arrival_s, 1, of->queue_s, 1, N_BATCHES, &start, &slope, &cov00, &cov01,
                   &cov11, &sum_of_squares);
    return slope > MIN_SLOPE && slope > MIN_STANDARD_ERRORS * sqrt(cov11);
}

static bool grows_each_quarter(const struct delays *of)
{
    double quarter[4] = {0};
    for (size_t batch = 0; batch < N_BATCHES; batch++)
        quarter[batch * 4 / N_BATCHES] += of->queue_s[batch];
    return quarter[0] < quarter[1] && quarter[1] < quarter[2] && quarter[2] < quarter[3];
}

bool summary_saturated(const struct life *lives, const uint32_t *order, size_t n)
{
    if (n == 0)
        return false;
    const int64_t first_ns = lives[order[0]].arrival_ns;
    const int64_t last_ns = lives[order[n - 1]].arrival_ns;
    const int64_t half_ns = first_ns + (last_ns - first_ns) / 2;
    const size_t half = first_behind(lives, order, n, half_ns);
    const size_t n_queued = count_queued(lives, order + half, n - half);
    if (n_queued < MIN_PER_BATCH * N_BATCHES)
        return false;
    struct delays delays;
    batch_delays(lives, order + half, n - half, half_ns, n_queued, &delays);
    return climbs(&delays) && grows_each_quarter(&delays);
}

/* ---- latencies ---- */

static int describe(struct samples *samples, uint32_t *count, struct distribution *of,
                    struct ifl_error *error)
{
    const size_t n = samples->n;
    for (size_t i = 0; i < n; i++)
        count[i] = 1;
    if (quantile_thin(samples->ns, count, n, &samples->n, error))
        return error->code;
    quantile_describe(samples->ns, count, samples->n, of);
    of->mean_ns = n ? exact_value(samples->total_ns) / (double)n : (double)NAN;
    return IFL_OK;
}

static int describe_latencies(const struct summary_input *input,
                              struct distribution latencies[N_LATENCIES], struct ifl_error *error)
{
    uint32_t *count = malloc((input->n ? input->n : 1) * sizeof *count);
    int code =
        count ? gaps_describe(input->gaps, &latencies[LATENCY_ITL], error) : ifl_fail_nomem(error);
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
    const int64_t last_ns = last_finish_ns > last_step_ns ? last_finish_ns : last_step_ns;
    return last_ns > first_ns ? ifl_s_from_ns(last_ns - first_ns) : 0;
}

static void count_requests(const struct summary_input *input, struct ifl_summary *summary)
{
    const struct tally *tally = input->tally;
    const double duration_s = span_s(input), output_tokens = (double)tally->output_tokens;
    summary->n_requests = tally->n;
    summary->n_finished = tally->n_finished;
    summary->n_rejected = tally->n_rejected;
    summary->n_failed = tally->n_failed;
    summary->preemptions = tally->preemptions;
    summary->swap_outs = tally->swap_outs;
    summary->duration_s = duration_s;
    summary->request_throughput_rps = ratio((double)tally->n_finished, duration_s);
    summary->output_throughput_tok_per_s = ratio(output_tokens, duration_s);
    summary->total_throughput_tok_per_s =
        ratio((double)tally->prompt_tokens + output_tokens, duration_s);
    summary->cached_prompt_frac = ratio((double)tally->cached_tokens, (double)tally->prompt_tokens);
    summary->goodput_rps = ratio((double)tally->n_meeting_slos, duration_s);
    summary->attainment_frac = ratio((double)tally->n_meeting_slos, (double)tally->n);
}

static void average_steps(const struct step_sums *steps, struct ifl_summary *summary)
{
    const double pool = exact_value(steps->pool_slots_ns);
    summary->n_steps = steps->n_steps;
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
    if (describe_latencies(input, latencies, error))
        return error->code;
    *summary = (struct ifl_summary){
        .ttft_s = quantile_summary_s(&latencies[LATENCY_TTFT]),
        .tpot_s = quantile_summary_s(&latencies[LATENCY_TPOT]),
        .itl_s = quantile_summary_s(&latencies[LATENCY_ITL]),
        .e2e_s = quantile_summary_s(&latencies[LATENCY_E2E]),
        .normalized_latency_s = quantile_summary_s(&latencies[LATENCY_NORMALIZED]),
        .queue_s = quantile_summary_s(&latencies[LATENCY_QUEUE]),
        .saturated = summary_saturated(input->lives, input->order, input->n),
    };
    count_requests(input, summary);
    average_steps(input->steps, summary);
    return IFL_OK;
}
