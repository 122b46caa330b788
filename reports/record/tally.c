#include "record/tally.h"

#include "inflight/minmax.h"

int tally_open(struct tally *tally, size_t n, struct ifl_error *error)
{
    *tally = (struct tally){.last_finish_ns = INT64_MIN};
    for (size_t which = 0; which < N_LATENCIES; which++) {
        tally->of[which] = (struct latency_sums){.least_ns = INT64_MAX, .most_ns = INT64_MIN};
        if (n >= SELECTION_LEAST && selection_open_wide(&tally->of[which].selection, n, error))
            return error->code;
    }
    return IFL_OK;
}

void tally_close(struct tally *tally)
{
    for (size_t which = 0; which < N_LATENCIES; which++)
        selection_close(&tally->of[which].selection);
}

static void add_sample(struct latency_sums *to, int64_t ns)
{
    if (ns == IFL_NEVER)
        return;
    to->n++;
    to->least_ns = ifl_min(to->least_ns, ns);
    to->most_ns = ifl_max(to->most_ns, ns);
    to->total_ns.of += ns;
    if (to->selection.held)
        selection_count(&to->selection, latency_bin_ns(ns), 1);
}

void tally_life(struct tally *tally, const struct life *life)
{
    ifl_assert(tally->n == 0 || life->arrival_ns >= tally->last_arrival_ns);
    int64_t ns[N_LATENCIES];
    if (tally->n++ == 0)
        tally->first_arrival_ns = life->arrival_ns;
    tally->last_arrival_ns = life->arrival_ns;
    tally->n_of[life->status]++;
    tally->n_retries += life->rare->is_retry;
    tally->wasted_tokens += life->rare->wasted_tokens;
    tally->preemptions += (uint64_t)life->rare->preemptions;
    tally->swap_outs += (uint64_t)life->rare->swap_outs;
    tally->n_migrations += (uint64_t)life->rare->n_migrations;
    tally->n_migrated += life->rare->n_migrations > 0;
    tally->down_ns += life->rare->down_ns;
    if (!life_finished(life))
        return;
    tally->n_meeting_slos += life_meets_slos(life);
    tally->prompt_tokens += life->prompt_tokens;
    tally->cached_tokens += life->rare->cached_tokens;
    for (int t = 0; t < IFL_N_TIERS; t++)
        tally->tier_tokens[t] += life->rare->tier_tokens[t];
    tally->output_tokens += life->output_tokens;
    tally->last_finish_ns = ifl_max(tally->last_finish_ns, life->finish_ns);
    latencies_of(life, ns);
    for (size_t which = 0; which < N_LATENCIES; which++)
        add_sample(&tally->of[which], ns[which]);
}
