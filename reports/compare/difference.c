#include "compare/difference.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "inflight/minmax.h"

/* Schmeiser (Operations Research 30(3), 1982): more than 30 batches hardly narrow the interval,
 * fewer than 10 widen it. A batch of few requests is not independent of the next. Batches differ by
 * one request where the number is no multiple of 20: their means are weighted by it, so that the
 * point estimate is the mean of the requests. */
enum { N_BATCHES = 20, MIN_BATCH_REQUESTS = 10 };

/* ---- samples ---- */

int samples_make(struct samples *samples, size_t cap, struct ifl_error *error)
{
    cap = ifl_max(cap, N_BATCHES);
    *samples = (struct samples){.base = calloc(cap, sizeof *samples->base),
                                .other = calloc(cap, sizeof *samples->other),
                                .difference = calloc(cap, sizeof *samples->difference),
                                .weight = calloc(cap, sizeof *samples->weight),
                                .cap = cap};
    if (samples->base && samples->other && samples->difference && samples->weight)
        return IFL_OK;
    samples_free(samples);
    return ifl_fail_nomem(error);
}

void samples_free(struct samples *samples)
{
    free(samples->base);
    free(samples->other);
    free(samples->difference);
    free(samples->weight);
    *samples = (struct samples){0};
}

static void add(struct samples *samples, double base, double other, double weight)
{
    ifl_require(samples->n < samples->cap);
    samples->weight[samples->n] = weight;
    samples->base[samples->n] = base;
    samples->other[samples->n] = other;
    samples->difference[samples->n++] = other - base;
}

static double mean_of(const struct samples *samples, const double *x)
{
    return samples->n ? gsl_stats_wmean(samples->weight, 1, x, 1, samples->n) : (double)NAN;
}

/* Of the weighted mean of the differences, where the variance of each is in inverse proportion to
 * its weight; with equal weights that of a mean. NaN: too few. */
static double standard_error(const struct samples *samples, double mean)
{
    const size_t n = samples->n;
    double weight = 0;
    if (n < 2)
        return (double)NAN;
    for (size_t i = 0; i < n; i++)
        weight += samples->weight[i];
    return sqrt(gsl_stats_wtss_m(samples->weight, 1, samples->difference, 1, n, mean) /
                (weight * ((double)n - 1)));
}

/* NaN if all differences are equal: the t test needs a variance. */
static double p_value(const struct samples *samples, double mean)
{
    const double error = standard_error(samples, mean);
    return error > 0 ? 2 * gsl_cdf_tdist_Q(fabs(mean) / error, (double)samples->n - 1)
                     : (double)NAN;
}

static struct ifl_interval interval_of(const struct samples *samples)
{
    const double mean = mean_of(samples, samples->difference);
    const double error = standard_error(samples, mean);
    return (struct ifl_interval){
        mean, isnan(error) ? error : gsl_cdf_tdist_Pinv(0.975, (double)samples->n - 1) * error};
}

static void conclude(const struct samples *samples, struct difference *difference)
{
    difference->n_samples = samples->n;
    difference->base = mean_of(samples, samples->base);
    difference->other = mean_of(samples, samples->other);
    difference->of = interval_of(samples);
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
        add(scratch, value[BASE], value[OTHER], 1);
    }
    conclude(scratch, difference);
    return IFL_OK;
}

/* ---- a latency of each request ---- */

static bool is_defined(const struct request_pair *pair, enum latency latency)
{
    return !isnan(pair->latency_s[BASE][latency]) && !isnan(pair->latency_s[OTHER][latency]);
}

/* Sums over requests of which both latencies are defined. */
struct sums {
    double of[N_RUNS];
    size_t n;
};

static void sum_up(struct sums *sums, const struct request_pair *pair, enum latency latency)
{
    for (int run = 0; run < N_RUNS; run++)
        sums->of[run] += pair->latency_s[run][latency];
    sums->n++;
}

static void add_mean(struct samples *samples, const struct sums *sums, double weight)
{
    if (sums->n > 0)
        add(samples, sums->of[BASE] / (double)sums->n, sums->of[OTHER] / (double)sums->n, weight);
}

/* One run: each batch of the n defined among [from, to) is a sample, and counts as its requests. */
static void add_batches(struct samples *samples, const struct request_pair *from,
                        const struct request_pair *to, size_t n, enum latency latency)
{
    const size_t n_batches = n < (size_t)N_BATCHES * MIN_BATCH_REQUESTS ? 1 : N_BATCHES;
    struct sums batch = {{0, 0}, 0};
    for (size_t seen = 0, i = 0; from < to; from++) {
        if (!is_defined(from, latency))
            continue;
        sum_up(&batch, from, latency);
        if (++seen < (i + 1) * n / n_batches)
            continue;
        add_mean(samples, &batch, (double)batch.n);
        batch = (struct sums){{0, 0}, 0};
        i++;
    }
}

/* Several runs: the mean of each is a sample, and counts as one, as in replications.csv. */
static void add_run(struct samples *samples, const struct request_pair *from,
                    const struct request_pair *to, enum latency latency)
{
    struct sums run = {{0, 0}, 0};
    for (; from < to; from++)
        if (is_defined(from, latency))
            sum_up(&run, from, latency);
    add_mean(samples, &run, 1);
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
        add_batches(scratch, of + requests->first[from], of + requests->first[to],
                    difference->n_pairs, latency);
    for (size_t p = from; p < to && to - from > 1; p++)
        add_run(scratch, of + requests->first[p], of + requests->first[p + 1], latency);
    conclude(scratch, difference);
}

bool difference_is_sure(const struct difference *difference)
{
    return fabs(difference->of.mean) > difference->of.half_width;
}
