/* What of a recording the found deployment does not explain, and what that points to. */
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>

#include "identify/identify.h"
#include "inflight/minmax.h"

IFL_PRINTF(2, 3)
static void notice(struct identified *found, const char *format, ...)
{
    va_list args;
    if (found->n_notices == IDENTIFY_NOTICES)
        return;
    va_start(args, format);
    vsnprintf(found->notices[found->n_notices++], sizeof found->notices[0], format, args);
    va_end(args);
}

/* Requests whose first token came in less than half the time that their prompt takes, and are not
 * explained by tokens that the simulation found in its cache. */
static void suspect_cache(const struct recording *r, const struct trial *after,
                          struct identified *found)
{
    size_t early = 0, late = 0, hits = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bool hit = after->cached_tokens[i] > r->flown.n_prompt[i] / 4;
        hits += hit;
        early += !hit && r->of[TTFT][i] < after->of[TTFT][i] / 2;
        late += hit && r->of[TTFT][i] > after->of[TTFT][i] * 2 + r->tpot_s;
    }
    if (early > r->n / 20 && early < r->n * 3 / 5) /* more: the costs are wrong */
        notice(found,
               "%s: %.0f%% of the requests had their first token in less than half the time that "
               "their prompt takes: found in a cache, of which the flown requests know nothing",
               r->path, 100.0 * (double)early / (double)r->n);
    if (late > hits / 2 && hits > r->n / 20)
        notice(found,
               "%s: %zu of %zu requests that find their prompt in the simulated cache waited for "
               "it as if it was computed: the deployment has no such cache",
               r->path, late, hits);
}

/* Requests between first and last token when request i ran, by Little's count. */
static double load_at(const struct recording *r, size_t i)
{
    const double from = ifl_s_from_ns(r->trace.arrival_ns[i]), to = from + r->of[E2E][i];
    double overlap = 0;
    for (size_t j = 0; j < r->n; j++) {
        const double start = ifl_s_from_ns(r->trace.arrival_ns[j]), end = start + r->of[E2E][j];
        overlap += fmax(0, fmin(to, end) - fmax(from, start));
    }
    return overlap / (to - from);
}

/* A time per token that departs from the simulated one the more, the more requests run, is of
 * another model, GPU or scheduler. */
static void suspect_load(const struct recording *r, const struct trial *after,
                         struct identified *found)
{
    double *x = malloc((r->n + 1) * sizeof *x), *y = malloc((r->n + 1) * sizeof *y);
    size_t n = 0;
    for (size_t i = 0; x && y && i < r->n; i++) {
        const double e = log(r->of[TPOT][i] / after->of[TPOT][i]);
        if (!isfinite(e) || r->trace.n_output[i] < 16)
            continue;
        x[n] = load_at(r, i);
        y[n++] = e;
    }
    if (n >= 20) {
        const double how = gsl_stats_correlation(x, 1, y, 1, n), sd = gsl_stats_sd(y, 1, n);
        if (fabs(how) > 0.5 && fabs(how) * sd > 0.05)
            notice(found,
                   "%s: what is left of the times per token goes with the load (correlation %.2f, "
                   "%.0f%% a standard deviation): another model, GPU or preset",
                   r->path, how, 100 * fabs(how) * sd);
    }
    free(x);
    free(y);
}

/* What a fit to one part leaves in the other, against what it leaves in its own. */
static void suspect_halves(const struct recording *r, const struct trial *after,
                           struct identified *found)
{
    struct judged fitted, rest;
    struct ifl_error error;
    if (judge(r, after, 0, r->n_fit, &fitted, &error) < 0)
        return;
    if (r->n_fit < r->n && judge(r, after, r->n_fit, r->n, &rest, &error) == 0 &&
        fabs(rest.mean[TPOT]) > 0.05 && fabs(rest.mean[TPOT]) > 3 * fabs(fitted.mean[TPOT]))
        notice(found,
               "%s: the mean time per token is %+.1f%% off in the requests that were not fitted "
               "and %+.1f%% in those that were: the configuration does not explain the run",
               r->path, 100 * rest.mean[TPOT], 100 * fitted.mean[TPOT]);
    if (fitted.request[TPOT] > 0.08)
        notice(found,
               "%s: the time per token of a request is %.0f%% off in the median even where it was "
               "fitted: another model, GPU or preset",
               r->path, 100 * fitted.request[TPOT]);
    if (fabs(fitted.mean[TTFT]) > 0.5 || fitted.request[TTFT] > 0.5)
        notice(found,
               "%s: the time to the first token is %+.0f%% off in the mean and %.0f%% in the "
               "median request even where it was fitted: another preset, or limits of the batch",
               r->path, 100 * fitted.mean[TTFT], 100 * fitted.request[TTFT]);
}

void identify_suspect(const struct identify_options *options, const struct trial *after,
                      struct identified *found)
{
    if (found->of[HOST_LAYER].state == AT_BOUND)
        notice(found,
               "steps take less than the profile's kernels with hardly a host time: another GPU, "
               "backend or model, or kernels that the profile has too slow");
    for (size_t k = 0; k < options->n_recordings; k++) {
        const struct recording *r = &options->recordings[k];
        suspect_cache(r, &after[k], found);
        suspect_load(r, &after[k], found);
        suspect_halves(r, &after[k], found);
    }
}
