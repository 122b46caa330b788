#include "record/tally.h"

#include <stdlib.h>

int tally_open(struct tally *tally, size_t n, void *memory, struct ifl_error *error)
{
    n = n ? n : 1;
    *tally = (struct tally){.last_finish_ns = INT64_MIN, .ns = memory};
    int64_t *ns = realloc(memory, N_LATENCIES * n * sizeof *ns);
    if (!ns)
        return ifl_fail_nomem(error);
    tally->ns = ns;
    for (size_t which = 0; which < N_LATENCIES; which++)
        tally->of[which].ns = tally->ns + which * n;
    return IFL_OK;
}

void tally_close(struct tally *tally)
{
    free(tally->ns);
}

static void add_sample(struct samples *to, int64_t ns)
{
    const bool defined = ns != IFL_NEVER;
    to->ns[to->n] = ns;
    to->n += defined;
    to->total_ns.of += defined ? ns : 0;
}

void tally_life(struct tally *tally, const struct life *life)
{
    ifl_assert(tally->n < (size_t)(tally->of[1].ns - tally->of[0].ns));
    ifl_assert(tally->n == 0 || life->arrival_ns >= tally->first_arrival_ns);
    if (tally->n++ == 0)
        tally->first_arrival_ns = life->arrival_ns;
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
    if (life->finish_ns > tally->last_finish_ns)
        tally->last_finish_ns = life->finish_ns;
    add_sample(&tally->of[LATENCY_TTFT], life_ttft_ns(life));
    add_sample(&tally->of[LATENCY_TPOT], life_tpot_ns(life));
    add_sample(&tally->of[LATENCY_E2E], life_e2e_ns(life));
    add_sample(&tally->of[LATENCY_NORMALIZED], life_normalized_ns(life));
    add_sample(&tally->of[LATENCY_QUEUE], life_queue_ns(life));
}
