/* The cost of a step without a scheduler's part in it: requests that had the machine to themselves
 * on both sides, while their prompt was computed (lone prefill) or from arrival to the last token
 * (lone decode). */
#include <math.h>
#include <stdlib.h>

#include "sort.h"
#include "validate/findings.h"

struct lone {
    bool *prefill, *whole; /* [n] by pair */
};

/* The pairs of a side by arrival there, and what went before. */
static int mark_side(const struct pairs *pairs, enum side side, struct lone *lone, int64_t *arrival,
                     uint32_t *order, struct ifl_error *error)
{
    int64_t busy_until_ns = -1;
    for (size_t i = 0; i < pairs->n; i++) {
        arrival[i] = pairs_arrival_ns(pairs, side, i);
        order[i] = (uint32_t)i;
    }
    if (sort_by_key(arrival, order, pairs->n, error))
        return error->code;
    for (size_t k = 0; k < pairs->n; k++) {
        const size_t i = order[k];
        const int64_t ttft_ns = pairs_metric_ns(pairs, side, TTFT, i);
        const int64_t finish_ns = pairs_finish_ns(pairs, side, i);
        const int64_t next_ns = k + 1 < pairs->n ? arrival[k + 1] : IFL_NEVER;
        const bool idle = busy_until_ns <= arrival[k];
        lone->prefill[i] &= idle && ttft_ns != IFL_NEVER && arrival[k] + ttft_ns <= next_ns;
        lone->whole[i] &= idle && finish_ns <= next_ns;
        busy_until_ns = finish_ns > busy_until_ns ? finish_ns : busy_until_ns;
    }
    return IFL_OK;
}

static int mark(const struct pairs *pairs, struct lone *lone, struct ifl_error *error)
{
    int64_t *arrival = malloc(pairs->n * sizeof *arrival);
    uint32_t *order = malloc(pairs->n * sizeof *order);
    int rc = arrival && order ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < pairs->n; i++)
        lone->prefill[i] = lone->whole[i] = true;
    for (int s = 0; rc == IFL_OK && s < N_SIDES; s++)
        rc = mark_side(pairs, (enum side)s, lone, arrival, order, error);
    free(arrival);
    free(order);
    return rc;
}

static int add_mean(const struct pairs *pairs, const bool *of, enum metric metric, const char *name,
                    struct findings *findings, struct ifl_error *error)
{
    double sum_s[N_SIDES] = {0};
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const int64_t simulated = pairs_metric_ns(pairs, SIMULATED, metric, i);
        const int64_t measured = pairs_metric_ns(pairs, MEASURED, metric, i);
        if (!of[i] || simulated == IFL_NEVER || measured == IFL_NEVER)
            continue;
        sum_s[SIMULATED] += ifl_s_from_ns(simulated);
        sum_s[MEASURED] += ifl_s_from_ns(measured);
        n++;
    }
    if (n == 0)
        return IFL_OK;
    return findings_add(findings, name, "mean", n, sum_s[SIMULATED] / (double)n,
                        sum_s[MEASURED] / (double)n, error);
}

int find_cost(const struct pairs *pairs, struct findings *findings, struct ifl_error *error)
{
    struct lone lone = {malloc(pairs->n), malloc(pairs->n)};
    int rc = lone.prefill && lone.whole ? IFL_OK : ifl_fail_nomem(error);
    if (rc == IFL_OK)
        rc = mark(pairs, &lone, error);
    if (rc == IFL_OK)
        rc = add_mean(pairs, lone.prefill, TTFT, "cost.lone_prefill_s", findings, error);
    if (rc == IFL_OK)
        rc = add_mean(pairs, lone.whole, TPOT, "cost.lone_decode_s", findings, error);
    free(lone.prefill);
    free(lone.whole);
    return rc;
}
