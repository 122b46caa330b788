#include "compare/difference.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "inflight/minmax.h"

/* Schmeiser (Operations Research 30(3), 1982): more than 30 batches hardly narrow the interval,
 * fewer than 10 widen it. A batch of few requests is not independent of the next. */
enum { N_BATCHES = 20, MIN_BATCH_REQUESTS = 10 };

/* ---- samples ---- */

int samples_make(struct samples *samples, size_t cap, struct ifl_error *error)
{
    cap = ifl_max(cap, N_BATCHES);
    *samples = (struct samples){.base = calloc(cap, sizeof *samples->base),
                                .other = calloc(cap, sizeof *samples->other),
                                .difference = calloc(cap, sizeof *samples->difference),
                                .cap = cap};
    if (samples->base && samples->other && samples->difference)
        return IFL_OK;
    samples_free(samples);
    return ifl_fail_nomem(error);
}

void samples_free(struct samples *samples)
{
    free(samples->base);
    free(samples->other);
    free(samples->difference);
    *samples = (struct samples){0};
}

static void add(struct samples *samples, double base, double other)
{
    ifl_require(samples->n < samples->cap);
    samples->base[samples->n] = base;
    samples->other[samples->n] = other;
    samples->difference[samples->n++] = other - base;
}

/* NaN if all differences are equal: the t test needs a variance. */
static double p_value(const struct samples *samples, double mean)
{
    const size_t n = samples->n;
    if (n < 2)
        return (double)NAN;
    const double standard_error = gsl_stats_sd_m(samples->difference, 1, n, mean) / sqrt((double)n);
    return standard_error > 0 ? 2 * gsl_cdf_tdist_Q(fabs(mean) / standard_error, (double)n - 1)
                              : (double)NAN;
}

static void conclude(const struct samples *samples, struct difference *difference)
{
    const size_t n = samples->n;
    difference->n_samples = n;
    difference->base = n ? gsl_stats_mean(samples->base, 1, n) : (double)NAN;
    difference->other = n ? gsl_stats_mean(samples->other, 1, n) : (double)NAN;
    difference->of = ifl_interval_95(samples->difference, n);
    difference->p_value = p_value(samples, difference->of.mean);
    difference->lower_frac /= (double)difference->n_pairs;
    difference->higher_frac /= (double)difference->n_pairs;
}

static void count(struct difference *difference, double base, double other)
{
    difference->n_pairs++;
    difference->lower_frac += other < base;
    difference->higher_frac += other > base;
}

/* ---- a metric of each replication ---- */

int difference_of_replications(const struct matching *matching, size_t group,
                               const size_t column[N_RUNS], struct samples *scratch,
                               struct difference *difference, struct ifl_error *error)
{
    *difference = (struct difference){0};
    scratch->n = 0;
    for (size_t i = matching->first[group]; i < matching->first[group + 1]; i++) {
        double value[N_RUNS];
        for (int run = 0; run < N_RUNS; run++)
            if (sheet_number(&matching->summary[run], matching->pairs[i].row[run], column[run],
                             &value[run], error))
                return error->code;
        if (isnan(value[BASE]) || isnan(value[OTHER]))
            continue;
        count(difference, value[BASE], value[OTHER]);
        add(scratch, value[BASE], value[OTHER]);
    }
    conclude(scratch, difference);
    return IFL_OK;
}

/* ---- a latency of each request ---- */

static bool is_defined(const struct request_pair *pair, enum latency latency)
{
    return !isnan(pair->latency_s[BASE][latency]) && !isnan(pair->latency_s[OTHER][latency]);
}

/* The means of the defined ones among [from, to) are one sample, if there is any. */
static void add_mean(struct samples *samples, const struct request_pair *from,
                     const struct request_pair *to, enum latency latency)
{
    double sum[N_RUNS] = {0, 0}, n = 0;
    for (; from < to; from++) {
        if (!is_defined(from, latency))
            continue;
        sum[BASE] += from->latency_s[BASE][latency];
        sum[OTHER] += from->latency_s[OTHER][latency];
        n++;
    }
    if (n > 0)
        add(samples, sum[BASE] / n, sum[OTHER] / n);
}

static void add_batches(struct samples *samples, const struct request_pair *from, size_t n,
                        enum latency latency)
{
    const size_t n_batches = n < (size_t)N_BATCHES * MIN_BATCH_REQUESTS ? 1 : N_BATCHES;
    for (size_t batch = 0; batch < n_batches; batch++)
        add_mean(samples, from + batch * n / n_batches, from + (batch + 1) * n / n_batches,
                 latency);
}

void difference_of_requests(const struct matching *matching, const struct request_pairs *requests,
                            size_t group, enum latency latency, struct samples *scratch,
                            struct difference *difference)
{
    const size_t from = matching->first[group], to = matching->first[group + 1];
    const struct request_pair *of = requests->of;
    *difference = (struct difference){0};
    scratch->n = 0;
    for (size_t i = requests->first[from]; i < requests->first[to]; i++)
        if (is_defined(&of[i], latency))
            count(difference, of[i].latency_s[BASE][latency], of[i].latency_s[OTHER][latency]);
    if (to - from == 1)
        add_batches(scratch, of + requests->first[from],
                    requests->first[to] - requests->first[from], latency);
    for (size_t p = from; p < to && to - from > 1; p++)
        add_mean(scratch, of + requests->first[p], of + requests->first[p + 1], latency);
    conclude(scratch, difference);
}

bool difference_is_sure(const struct difference *difference)
{
    return fabs(difference->of.mean) > difference->of.half_width;
}
