/* Looks for parts of a recording that the found deployment does not explain, and for their causes.
 */
#include <gsl/gsl_fit.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/identify.h"
#include "identify/load.h"
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

/* ---- caches ---- */

static bool is_hit(const struct recording *r, const struct trial *after, size_t i)
{
    return after->cached_tokens[i] > recording_prompt(r, i) / 4;
}

/* The requests that have no queue in the simulation and meet no other prompt, which would share
 * their steps by the preset's rules. They are in the order of arrival: of those before a request
 * the last first token counts, of those behind it the next arrival. */
static void find_alone(const struct recording *r, const struct trial *after, bool *alone)
{
    double last_s = -INFINITY, next_s = INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        const double from_s = ifl_s_from_ns(r->trace.arrival_ns[i]);
        alone[i] =
            isfinite(after->of[TTFT][i]) && after->wait_s[i] <= 2 * r->tpot_s && last_s <= from_s;
        last_s = fmax(last_s, from_s + after->of[TTFT][i]);
    }
    for (size_t i = r->n; i-- > 0;) {
        const double from_s = ifl_s_from_ns(r->trace.arrival_ns[i]);
        alone[i] = alone[i] && next_s >= from_s + after->of[TTFT][i];
        next_s = isfinite(after->of[TTFT][i]) ? from_s : next_s;
    }
}

/* In less than half the time, and by more than a step: a step by itself is the preset's. */
static bool is_early(const struct recording *r, const struct trial *after, size_t i)
{
    const double gained_s = after->of[TTFT][i] - r->of[TTFT][i];
    return gained_s > after->of[TTFT][i] / 2 && gained_s > 1.5 * r->tpot_s;
}

static size_t count_hits(const struct recording *r, const struct trial *after)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += is_hit(r, after, i);
    return n;
}

/* How the time to the first token grows with the prompt over requests that are alone, measured over
 * simulated; `sd`: of that. 1 where there are too few, or where short prompts are early, too: they
 * have little to find, so the steps are others. */
static double slope_of_first_tokens(const struct recording *r, const struct trial *after,
                                    const bool *alone, double *sd)
{
    double *x = malloc((r->n + 1) * sizeof *x), *y = malloc((r->n + 1) * sizeof *y);
    double *simulated = malloc((r->n + 1) * sizeof *simulated);
    double *ratio = malloc((r->n + 1) * sizeof *ratio);
    double c0, slope, of_simulated, v00, v01, v11 = 0, variance, sum, found = 1;
    size_t n = 0;
    *sd = 0;
    for (size_t i = 0; x && y && simulated && ratio && i < r->n; i++)
        if (alone[i]) {
            x[n] = recording_prompt(r, i);
            y[n] = r->of[TTFT][i];
            simulated[n] = after->of[TTFT][i];
            ratio[n] = log(y[n] / simulated[n]);
            n++;
        }
    if (n >= RECORDING_LEAST && gsl_stats_correlation(x, 1, ratio, 1, n) < 0) {
        gsl_fit_linear(x, 1, y, 1, n, &c0, &slope, &v00, &v01, &variance, &sum);
        gsl_fit_linear(x, 1, simulated, 1, n, &c0, &of_simulated, &v00, &v01, &v11, &sum);
        found = slope / of_simulated;
        *sd = sqrt(variance) / of_simulated;
    }
    free(x);
    free(y);
    free(simulated);
    free(ratio);
    return found;
}

/* What would explain hits that the simulation does not have. */
static const char *lacking(const struct config *config, size_t hits)
{
    if (config->serving.kv.prefix_cache == PREFIX_CACHE_NONE)
        return "which the configuration lacks (serving.kv.prefix_cache is none)";
    return hits > 0 ? "more than the flown requests share (--free cache.hit_frac looks for a share)"
                    : "of which the flown requests know nothing (--requests names a trace that "
                      "does, --free cache.hit_frac looks for a share)";
}

/* Prompts that were found in a cache: single first tokens that came in less than half the time that
 * their prompt takes, or times to the first token that grow too little with the prompt. */
static bool suspect_lacking_cache(const struct identify_options *options, const struct recording *r,
                                  const struct trial *after, const bool *alone,
                                  struct identified *found)
{
    const size_t hits = count_hits(r, after);
    const char *why = lacking(options->setting.config, hits);
    size_t early = 0, n = 0;
    double sd;
    for (size_t i = 0; i < r->n; i++)
        if (alone[i]) {
            early += !is_hit(r, after, i) && is_early(r, after, i);
            n++;
        }
    const double slope = slope_of_first_tokens(r, after, alone, &sd);
    if (n >= RECORDING_LEAST && early > n / 20 && early < n * 3 / 5)
        notice(found,
               "%s: %.0f%% of the requests that met no other prompt had their first token in less "
               "than half the time that their own takes: found in a cache, %s",
               r->path, 100.0 * (double)early / (double)n, why);
    else if (slope + 2 * sd < 0.8) /* NaN: the prompts are alike */
        notice(found,
               "%s: times to the first token grow with the prompt at %.0f%% of the simulated rate: "
               "the rest was found in a cache, %s, or prompts take less time than the profile says",
               r->path, 100 * slope, why);
    else
        return false;
    return true;
}

/* ---- load, and halves ---- */

/* Requests between their arrivals and last tokens when each ran, by Little's count. */
static int measure_loads(const struct recording *r, double load[], struct ifl_error *error)
{
    double *from_s = malloc((2 * r->n + 1) * sizeof *from_s);
    if (!from_s)
        return ifl_fail_nomem(error);
    double *to_s = from_s + r->n;
    for (size_t i = 0; i < r->n; i++) {
        from_s[i] = ifl_s_from_ns(r->trace.arrival_ns[i]);
        to_s[i] = from_s[i] + r->of[E2E][i];
    }
    const int rc = load_over(from_s, to_s, r->n, load, error);
    free(from_s);
    return rc;
}

/* A time per token that departs from the simulated one the more, the more requests run, is of
 * another model, GPU or scheduler. */
static int suspect_load(const struct recording *r, const struct trial *after,
                        struct identified *found, struct ifl_error *error)
{
    double *load = malloc((2 * r->n + 1) * sizeof *load);
    size_t n = 0;
    const int rc = load ? measure_loads(r, load, error) : ifl_fail_nomem(error);
    double *y = load + r->n;
    for (size_t i = 0; rc == 0 && i < r->n; i++) {
        const double e = log(r->of[TPOT][i] / after->of[TPOT][i]);
        if (!isfinite(e) || r->trace.n_output[i] < 16)
            continue;
        load[n] = load[i];
        y[n++] = e;
    }
    if (n >= 20) {
        const double how = gsl_stats_correlation(load, 1, y, 1, n), sd = gsl_stats_sd(y, 1, n);
        if (fabs(how) > 0.5 && fabs(how) * sd > 0.05)
            notice(found,
                   "%s: what is left of the times per token goes with the load (correlation %.2f, "
                   "%.0f%% a standard deviation): another model, GPU or preset",
                   r->path, how, 100 * fabs(how) * sd);
    }
    free(load);
    return rc;
}

/* What a fit to one part leaves in the other, against what it leaves in its own. */
static void suspect_halves(const struct recording *r, const struct trial *after, bool is_cache,
                           struct identified *found)
{
    struct judged fitted, rest;
    struct ifl_error error;
    if (judge(r, after, 0, r->n_fit, &fitted, &error) < 0)
        return;
    if (r->n_fit < r->n && judge(r, after, r->n_fit, r->n, &rest, &error) < 0)
        return;
    if (r->n_fit < r->n && fabs(rest.mean[TPOT]) > 0.05 &&
        fabs(rest.mean[TPOT]) > 3 * fabs(fitted.mean[TPOT]))
        notice(found,
               "%s: the mean time per token is %+.1f%% off in the requests that were not fitted "
               "and %+.1f%% in those that were: the configuration does not explain the run",
               r->path, 100 * rest.mean[TPOT], 100 * fitted.mean[TPOT]);
    if (fitted.request[TPOT] > 0.08)
        notice(found,
               "%s: the time per token of a request is %.0f%% off in the median even where it was "
               "fitted: another model, GPU or preset",
               r->path, 100 * fitted.request[TPOT]);
    const bool is_off = fabs(fitted.mean[TTFT]) > 0.5 || fitted.request[TTFT] > 0.25;
    if (!is_cache && (is_off || (r->n_fit < r->n && rest.request[TTFT] > 0.25)))
        notice(found,
               "%s: the time to the first token is %+.0f%% off in the mean and %.0f%% in the "
               "median request%s: another preset, or limits of the batch",
               r->path, 100 * (is_off ? fitted : rest).mean[TTFT],
               100 * (is_off ? fitted : rest).request[TTFT],
               is_off ? " even where it was fitted" : " that was not fitted");
}

/* What reserves more than a request uses looks like a smaller pool. */
static void suspect_pool(struct identified *found)
{
    if (found->of[BLOCKS].state == FOUND && found->value[BLOCKS] < found->start[BLOCKS] / 2)
        notice(found,
               "%.0f blocks where the configuration has room for %.0f: another preset, one that "
               "reserves what answers may need, or memory that something else holds",
               found->value[BLOCKS], found->start[BLOCKS]);
}

int identify_suspect(const struct identify_options *options, const struct trial *after,
                     struct identified *found, struct ifl_error *error)
{
    int rc = 0;
    if (*found->rival) { /* all else follows from it */
        notice(found, "%s", found->rival);
        return 0;
    }
    if (*found->doubt)
        notice(found, "%s", found->doubt);
    else
        suspect_pool(found);
    if (found->of[HOST_LAYER].state == AT_BOUND)
        notice(found,
               "steps take less than the profile's kernels with hardly a host time: another GPU, "
               "backend or model, or kernels that the profile has too slow");
    for (size_t k = 0; rc == 0 && k < options->n_recordings; k++) {
        const struct recording *r = &options->recordings[k];
        bool *alone = malloc(r->n + 1);
        if (!alone)
            return ifl_fail_nomem(error);
        find_alone(r, &after[k], alone);
        const bool is_cache = suspect_lacking_cache(options, r, &after[k], alone, found);
        free(alone);
        rc = suspect_load(r, &after[k], found, error);
        suspect_halves(r, &after[k], is_cache, found);
    }
    return rc;
}
