#include "record/tally.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

static int open_sums(struct latency_sums *sums, size_t n, struct ifl_error *error)
{
    const size_t n_recent = ifl_max(ifl_min(n, LATENCY_RECENT), (size_t)1);
    *sums = (struct latency_sums){.recent_ns = malloc(n_recent * sizeof *sums->recent_ns),
                                  .least_ns = INT64_MAX,
                                  .most_ns = INT64_MIN};
    if (!sums->recent_ns)
        return ifl_fail_nomem(error);
    return n < SELECTION_LEAST ? IFL_OK : selection_open_wide(&sums->selection, n, error);
}

int tally_open(struct tally *tally, size_t n, struct ifl_error *error)
{
    *tally = (struct tally){.last_finish_ns = INT64_MIN};
    for (size_t which = 0; which < N_LATENCIES; which++)
        if (open_sums(&tally->of[which], n, error))
            return error->code;
    return IFL_OK;
}

void tally_close(struct tally *tally)
{
    for (size_t which = 0; which < N_LATENCIES; which++) {
        free(tally->of[which].recent_ns);
        selection_close(&tally->of[which].selection);
    }
}

static void copy_sums(struct latency_sums *to, const struct latency_sums *from)
{
    int64_t *const recent_ns = to->recent_ns;
    const struct selection selection = to->selection;
    ifl_assert(selection.n == from->selection.n);
    memcpy(recent_ns, from->recent_ns, from->n_recent * sizeof *recent_ns);
    for (size_t i = 0; from->n > 0 && selection.held && i < selection.n; i++)
        if (from->selection.held[i] > 0) /* most are in no memory */
            selection.held[i] = from->selection.held[i];
    *to = *from;
    to->recent_ns = recent_ns;
    to->selection = selection;
}

void tally_copy(struct tally *to, const struct tally *from)
{
    struct latency_sums of[N_LATENCIES];
    ifl_assert(to->n == 0);
    memcpy(of, to->of, sizeof of);
    for (size_t which = 0; which < N_LATENCIES; which++)
        copy_sums(&of[which], &from->of[which]);
    *to = *from;
    memcpy(to->of, of, sizeof of);
}

/* The sums are kept in registers: the compiler cannot know that the samples, or the buckets, do not
 * lie where they do. */
static void sum_up_recent(struct latency_sums *sums)
{
    const int64_t *ns = sums->recent_ns;
    const size_t n = sums->n_recent;
    int64_t least_ns = sums->least_ns, most_ns = sums->most_ns;
    struct exact_sum total_ns = sums->total_ns;
    struct selection selection = sums->selection;
    for (size_t i = 0; i < n; i++) {
        least_ns = ifl_min(least_ns, ns[i]);
        most_ns = ifl_max(most_ns, ns[i]);
        total_ns.of += ns[i];
    }
    for (size_t i = 0; selection.held && i < n; i++)
        selection_count(&selection, latency_bin_ns(ns[i]), 1);
    sums->least_ns = least_ns;
    sums->most_ns = most_ns;
    sums->total_ns = total_ns;
    sums->n += n;
    sums->n_recent = 0;
}

static inline void add_sample(struct latency_sums *sums, int64_t ns)
{
    if (IFL_RARE(ns == IFL_NEVER))
        return;
    sums->recent_ns[sums->n_recent++] = ns;
    if (IFL_RARE(sums->n_recent == LATENCY_RECENT))
        sum_up_recent(sums);
}

void tally_end(struct tally *tally)
{
    for (size_t which = 0; which < N_LATENCIES; which++)
        sum_up_recent(&tally->of[which]);
}

IFL_APART static void tally_rare(struct tally *tally, const struct rare *rare, bool finished)
{
    tally->n_retries += rare->is_retry;
    tally->wasted_tokens += rare->wasted_tokens;
    tally->wasted_steps += rare->wasted_steps;
    tally->preemptions += (uint64_t)rare->preemptions;
    tally->swap_outs += (uint64_t)rare->swap_outs;
    tally->n_migrations += (uint64_t)rare->n_migrations;
    tally->n_migrated += rare->n_migrations > 0;
    tally->down_ns += rare->down_ns;
    tally->cached_tokens += finished ? rare->cached_tokens : 0;
    for (int t = 0; t < IFL_N_TIERS; t++)
        tally->tier_tokens[t] += finished ? rare->tier_tokens[t] : 0;
}

IFL_HOT void tally_life(struct tally *tally, const struct life *life)
{
    ifl_assert(tally->n == 0 || life->arrival_ns >= tally->last_arrival_ns);
    int64_t ns[N_LATENCIES];
    if (tally->n++ == 0)
        tally->first_arrival_ns = life->arrival_ns;
    tally->last_arrival_ns = life->arrival_ns;
    tally->n_of[life->status]++;
    if (life->rare != &life_has_none)
        tally_rare(tally, life->rare, life_finished(life));
    if (!life_finished(life))
        return;
    tally->n_meeting_slos += life_meets_slos(life);
    tally->prompt_tokens += life->prompt_tokens;
    tally->output_tokens += life->output_tokens;
    tally->last_finish_ns = ifl_max(tally->last_finish_ns, life->end_ns);
    latencies_of(life, ns);
    for (size_t which = 0; which < N_LATENCIES; which++)
        add_sample(&tally->of[which], ns[which]);
}
