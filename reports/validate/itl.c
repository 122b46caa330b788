#include "validate/itl.h"

#include <math.h>
#include <stdlib.h>

#include "record/quantile.h"
#include "record/quantiles_csv.h"
#include "tables/sort.h"

enum { N_PERCENTILES = 3 };
static const double percentiles[N_PERCENTILES] = {0.5, 0.9, 0.99};
static const char *const percentile_name[N_PERCENTILES] = {"p50", "p90", "p99"};

/* The gaps of one side, in seconds; NaN if unknown. */
struct itl {
    size_t n;
    double mean, at[N_PERCENTILES];
};

/* All gaps of a request add up to its last token minus its first. */
static void from_lives(const struct pairs *pairs, enum side side, struct itl *itl)
{
    struct exact_sum sum = {0};
    for (size_t i = 0; i < pairs->n; i++) {
        const int64_t decode_ns = pairs_metric_ns(pairs, side, DECODE, i);
        const int32_t n_output = pairs->trace[side]->n_output[pairs->of[i].row[side]];
        if (decode_ns == IFL_NEVER || n_output < 2)
            continue;
        exact_add(&sum, decode_ns, 1);
        itl->n += (size_t)n_output - 1;
    }
    itl->mean = itl->n ? exact_value(sum) / (double)itl->n * 1e-9 : (double)NAN;
}

/* ---- every gap ---- */

static int from_gaps(const struct pairs *pairs, enum side side, struct itl *itl,
                     struct ifl_error *error)
{
    const struct ifl_trace *trace = pairs->trace[side];
    size_t n = 0;
    int64_t *gap_ns = malloc((trace->gap_at[trace->n] + 1) * sizeof *gap_ns);
    if (!gap_ns)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < pairs->n; i++) {
        const size_t row = pairs->of[i].row[side];
        for (size_t k = trace->gap_at[row]; k < trace->gap_at[row + 1]; k++)
            gap_ns[n++] = trace->gap_ns[k];
    }
    const int rc = sort_by_key(gap_ns, NULL, n, error);
    if (rc == IFL_OK)
        quantile_find(gap_ns, NULL, n, percentiles, N_PERCENTILES, itl->at);
    for (int i = 0; i < N_PERCENTILES; i++)
        itl->at[i] *= 1e-9;
    itl->mean = quantile_mean(gap_ns, NULL, n) * 1e-9;
    itl->n = n;
    free(gap_ns);
    return rc;
}

/* ---- both sides ---- */

static int find_side(const struct pairs *pairs, enum side side, const char *dir, struct itl *itl,
                     struct ifl_error *error)
{
    *itl = (struct itl){0};
    for (int i = 0; i < N_PERCENTILES; i++)
        itl->at[i] = NAN;
    if (pairs->trace[side]->gap_at)
        return from_gaps(pairs, side, itl, error);
    from_lives(pairs, side, itl);
    /* quantiles.csv covers all requests of the run. */
    return dir ? quantiles_csv_read(dir, "itl_s", percentiles, N_PERCENTILES, itl->at, error)
               : IFL_OK;
}

int find_itl(const struct pairs *pairs, const struct ifl_validation *validation,
             struct findings *findings, struct ifl_error *error)
{
    struct itl s, m;
    int rc = find_side(pairs, SIMULATED, validation->simulated.dir, &s, error);
    if (rc == IFL_OK)
        rc = find_side(pairs, MEASURED, validation->measured.dir, &m, error);
    if (rc != IFL_OK || s.n == 0 || m.n == 0)
        return rc;
    rc = findings_add(findings, "itl_s", "mean", m.n, s.mean, m.mean, error);
    for (int i = 0; rc == IFL_OK && i < N_PERCENTILES; i++)
        if (!isnan(s.at[i]) && !isnan(m.at[i]))
            rc = findings_add(findings, "itl_s", percentile_name[i], m.n, s.at[i], m.at[i], error);
    return rc;
}
