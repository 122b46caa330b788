/* The cost of a step apart from scheduling: requests that ran alone on both sides, while their
 * prompt was computed (lone prefill) or from arrival to the last token (lone decode). */
#include <stdlib.h>

#include "inflight/minmax.h"
#include "record/quantile.h"
#include "tables/sort.h"
#include "validate/findings.h"

struct lone {
    bool *prefill, *whole; /* [n_all] by pair */
};

/* Clears the flags of pairs that did not run alone on this side. */
static int mark_side(const struct pairs *pairs, enum side side, struct lone *lone, int64_t *arrival,
                     uint32_t *order, struct ifl_error *error)
{
    int64_t busy_until_ns = -1;
    for (size_t i = 0; i < pairs->n_all; i++) {
        arrival[i] = pairs_arrival_ns(pairs, side, i);
        order[i] = (uint32_t)i;
    }
    if (sort_by_key(arrival, order, pairs->n_all, error))
        return error->code;
    for (size_t k = 0; k < pairs->n_all; k++) {
        const size_t i = order[k];
        const int64_t ttft_ns = pairs_metric_ns(pairs, side, TTFT, i);
        const int64_t finish_ns = pairs_finish_ns(pairs, side, i);
        const int64_t next_ns = k + 1 < pairs->n_all ? arrival[k + 1] : IFL_NEVER;
        const bool idle = busy_until_ns <= arrival[k];
        lone->prefill[i] &= idle && ttft_ns != IFL_NEVER && arrival[k] + ttft_ns <= next_ns;
        lone->whole[i] &= idle && finish_ns <= next_ns;
        busy_until_ns = ifl_max(busy_until_ns, finish_ns);
    }
    return IFL_OK;
}

static int mark(const struct pairs *pairs, struct lone *lone, struct ifl_error *error)
{
    int64_t *arrival = malloc(pairs->n_all * sizeof *arrival);
    uint32_t *order = malloc(pairs->n_all * sizeof *order);
    int rc = arrival && order ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < pairs->n_all; i++)
        lone->prefill[i] = lone->whole[i] = true;
    for (int s = 0; rc == IFL_OK && s < N_SIDES; s++)
        rc = mark_side(pairs, (enum side)s, lone, arrival, order, error);
    free(arrival);
    free(order);
    return rc;
}

/* Adds the mean, and the median because warm-up may distort the mean. */
static int add_lone(const struct pairs *pairs, const bool *of, enum metric metric, const char *name,
                    int64_t *value[N_SIDES], struct findings *findings, struct ifl_error *error)
{
    static const double half = 0.5;
    double mean[N_SIDES], median[N_SIDES];
    const size_t n = pairs_gather(pairs, metric, of, value);
    for (int s = 0; s < N_SIDES; s++) {
        if (sort_by_key(value[s], NULL, n, error))
            return error->code;
        quantile_find(value[s], NULL, n, &half, 1, &median[s]);
        mean[s] = quantile_mean(value[s], NULL, n);
    }
    if (n == 0)
        return IFL_OK;
    const int rc = findings_add(findings, name, "mean", n, mean[SIMULATED] * 1e-9,
                                mean[MEASURED] * 1e-9, error);
    return rc ? rc
              : findings_add(findings, name, "p50", n, median[SIMULATED] * 1e-9,
                             median[MEASURED] * 1e-9, error);
}

int find_cost(const struct pairs *pairs, struct findings *findings, struct ifl_error *error)
{
    struct lone lone = {calloc(pairs->n_all, sizeof(bool)), calloc(pairs->n_all, sizeof(bool))};
    int64_t *value[N_SIDES] = {malloc(pairs->n * sizeof(int64_t)),
                               malloc(pairs->n * sizeof(int64_t))};
    int rc = lone.prefill && lone.whole && value[SIMULATED] && value[MEASURED]
                 ? IFL_OK
                 : ifl_fail_nomem(error);
    if (rc == IFL_OK)
        rc = mark(pairs, &lone, error);
    if (rc == IFL_OK)
        rc = add_lone(pairs, lone.prefill, TTFT, "cost.lone_prefill_s", value, findings, error);
    if (rc == IFL_OK)
        rc = add_lone(pairs, lone.whole, TPOT, "cost.lone_decode_s", value, findings, error);
    free(lone.prefill);
    free(lone.whole);
    free(value[SIMULATED]);
    free(value[MEASURED]);
    return rc;
}
