#include "cost/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/kind.h"
#include "inflight/time.h"

void cost_destroy(struct cost *cost)
{
    if (cost && cost->finish)
        cost->finish(cost);
    free(cost);
}

void cost_adapt(struct cost *cost, const struct adapter_cost *adapters)
{
    cost->adapts = true;
    cost->adapters = *adapters;
}

/* What the adapters of a step add to it; 0 without any. */
static inline double adapters_s(const struct cost *cost, const struct ifl_step_totals *totals)
{
    return IFL_RARE(cost->adapts) ? adapter_step_s(&cost->adapters, &totals->adapters) : 0;
}

static bool has_padding(const struct ifl_step_totals *totals)
{
    return totals->padding.n_prefill_tokens > 0 || totals->padding.n_decode_seqs > 0 ||
           totals->padding.n_draft_tokens > 0;
}

IFL_APART static void pad(const struct ifl_step_totals *totals, struct ifl_step_totals *all)
{
    const struct ifl_padding *padding = &totals->padding;
    *all = *totals;
    all->n_tokens += padding->n_prefill_tokens + padding->n_decode_seqs;
    all->n_prefill_tokens += padding->n_prefill_tokens;
    all->prefill_q_q += padding->prefill_q_q;
    all->n_decode_seqs += padding->n_decode_seqs;
    all->n_sampled += padding->n_decode_seqs;
    all->decode_context += padding->decode_context;
    all->n_tokens += padding->n_draft_tokens;
    all->n_sampled += padding->n_draft_tokens;
    all->n_draft_tokens += padding->n_draft_tokens;
    all->decode_context += padding->n_draft_tokens;
}

/* The totals with padding, which is computed like other tokens. Most steps have none. */
static const struct ifl_step_totals *with_padding(const struct ifl_step_totals *totals,
                                                  struct ifl_step_totals *all)
{
    if (!IFL_RARE(has_padding(totals)))
        return totals;
    pad(totals, all);
    return all;
}

static int64_t rounded_ns(double s)
{
    if (IFL_RARE(isnan(s)))
        return IFL_E_INPUT;
    const int64_t ns = ifl_ns_from_s(s);
    return ns > 0 ? ns : 1;
}

IFL_HOT int64_t cost_step_ns(struct cost *cost, const struct ifl_step_totals *totals)
{
    struct ifl_step_totals all;
    const double s = cost->step_s(cost, with_padding(totals, &all));
    return rounded_ns(IFL_RARE(cost->adapts) ? s + adapters_s(cost, totals) : s);
}

int64_t cost_group_step_ns(struct cost *cost, const struct ifl_step_totals *const *of, size_t n)
{
    struct ifl_step_totals padded[COST_MAX_RANKS];
    const struct ifl_step_totals *all[COST_MAX_RANKS];
    double longest_s = 0, adapting_s = 0;
    ifl_require(n <= COST_MAX_RANKS);
    for (size_t i = 0; i < n; i++) {
        all[i] = with_padding(of[i], &padded[i]);
        adapting_s = fmax(adapting_s, adapters_s(cost, of[i]));
    }
    if (cost->group_s)
        return rounded_ns(cost->group_s(cost, all, n) + adapting_s);
    for (size_t i = 0; i < n; i++)
        longest_s = fmax(longest_s, cost->step_s(cost, all[i]));
    return rounded_ns(longest_s + adapting_s);
}

/* Cut at the layers' shares of it, so that no nanosecond is lost. */
static void divide(int64_t step_ns, const struct stages *stages, int64_t *ns)
{
    const int64_t layers = stages_layers(stages), whole = step_ns / layers, rest = step_ns % layers;
    int64_t before = 0, from_ns = 0;
    for (int32_t s = 0; s < stages->n; s++) {
        before += stages->layers[s];
        const int64_t to_ns = whole * before + rest * before / layers;
        ns[s] = to_ns > from_ns ? to_ns - from_ns : 1;
        from_ns = to_ns;
    }
}

int64_t cost_stages_ns(struct cost *cost, const struct ifl_step_totals *totals,
                       const struct stages *stages, int64_t *ns, int64_t *hop_ns)
{
    struct ifl_step_totals all;
    double s[STAGES_MOST], hop_s;
    *hop_ns = 0;
    if (!cost->stages_s) {
        const int64_t step_ns = cost_step_ns(cost, totals);
        if (step_ns >= 0)
            divide(step_ns, stages, ns);
        return step_ns < 0 ? step_ns : 0;
    }
    cost->stages_s(cost, with_padding(totals, &all), stages, s, &hop_s);
    const double adapting_s = adapters_s(cost, totals) / (double)stages_layers(stages);
    for (int32_t i = 0; i < stages->n; i++) {
        ns[i] = rounded_ns(s[i] + stages->layers[i] * adapting_s);
        if (ns[i] < 0)
            return ns[i];
    }
    *hop_ns = hop_s > 0 ? rounded_ns(hop_s) : 0;
    return 0;
}

static bool only_decodes(const struct ifl_step_totals *totals)
{
    return totals->n_decode_seqs > 0 && totals->n_prefill_tokens == 0 &&
           totals->n_blocks_out + totals->n_blocks_in + totals->n_blocks_copied == 0 &&
           totals->adapters.n_loads == 0;
}

/* Durations below 2^31 ns: their sum over any run fits into 64 bits. */
static bool is_short(int64_t ns)
{
    return ns <= INT32_MAX;
}

IFL_APART static size_t run_one_by_one(struct cost *cost, const struct ifl_step_totals *first,
                                       size_t n, int64_t *ns)
{
    struct ifl_step_totals totals = *first;
    for (size_t i = 0; i < n; i++) {
        ns[i] = cost_step_ns(cost, &totals);
        if (ns[i] < 0 || (i > 0 && !is_short(ns[i])))
            return i;
        totals.decode_context += totals.n_decode_seqs - totals.n_full_seqs;
    }
    return n;
}

/* True if all durations are below two seconds, so that they can be rounded together. A double
 * (IEEE 754) that is 2 or more, negative or NaN has one of its two top bits set. */
static bool all_short(const double *s, size_t n)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t of;
        memcpy(&of, &s[i], sizeof of);
        bits |= of;
    }
    return bits >> 62 == 0;
}

static void round_short_ns(const double *s, size_t n, int64_t *ns)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t rounded = ifl_short_ns_from_s(s[i]);
        ns[i] = (uint32_t)(rounded > 0 ? rounded : 1); /* unsigned: cheaper in vectors */
    }
}

IFL_HOT size_t cost_run_ns(struct cost *cost, const struct ifl_step_totals *first, size_t n,
                           int64_t *ns)
{
    double s[COST_MAX_RUN];
    struct ifl_step_totals all;
    ifl_require(n <= COST_MAX_RUN);
    if (n == 1) {
        ns[0] = cost_step_ns(cost, first);
        return ns[0] >= 0;
    }
    if (!cost->run_s)
        return run_one_by_one(cost, first, n, ns);
    const struct ifl_step_totals *totals = with_padding(first, &all);
    if (!only_decodes(totals))
        return run_one_by_one(cost, first, n, ns);
    cost->run_s(cost, totals, first->n_decode_seqs - first->n_full_seqs, n, s);
    const double adapting_s = adapters_s(cost, first);
    for (size_t i = 0; IFL_RARE(cost->adapts) && i < n; i++)
        s[i] += adapting_s;
    if (IFL_RARE(!all_short(s, n)))
        return run_one_by_one(cost, first, n, ns);
    round_short_ns(s, n, ns);
    return n;
}

int cost_why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                 struct ifl_error *error)
{
    ifl_require(cost->why_not);
    return cost->why_not(cost, totals, error);
}
