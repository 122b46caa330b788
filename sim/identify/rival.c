#include "identify/rival.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/fit_parts.h"

/* Less than this part of the prompts' tokens found in a cache moves no time to the first token by
 * more than a model is off. */
static const double least_cached = 0.02;
/* By how much a rival must explain a request better, in the mean, nats: the profile's own errors
 * make models of one engine differ by less. */
static const double least_gain = 0.5;

/* Of the difference of two log-likelihoods. */
struct gain {
    double sds;     /* over its standard deviation, that of sums of spans */
    double request; /* its mean over requests, nats */
};

static double lost(const struct fit *fit, size_t i)
{
    double sum = 0;
    for (enum latency l = TTFT; l <= TPOT; l++)
        sum += fit_lost_by(fit, l, i);
    return sum;
}

/* Vuong's test of models that are not nested (Econometrica 57, 1989). */
static int compare(const struct fit *fit, const struct fit *rival, struct gain *gain,
                   struct ifl_error *error)
{
    const struct residuals *residuals = fit->residuals;
    const double n = (double)residuals->n_spans;
    double *of_span = calloc(residuals->n_spans, sizeof *of_span), sum = 0, squares = 0;
    if (!of_span)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < residuals->n; i++)
        of_span[residuals->rows[i].span] += lost(fit, i) - lost(rival, i);
    for (size_t s = 0; s < residuals->n_spans; s++)
        sum += of_span[s];
    for (size_t s = 0; s < residuals->n_spans; s++)
        squares += pow(of_span[s] - sum / n, 2);
    *gain = (struct gain){squares > 0 ? sum / sqrt(squares * n / (n - 1)) : 0,
                          sum / (double)residuals->n};
    free(of_span);
    return 0;
}

static bool is_better(const struct quest *quest, const struct gain *gain)
{
    return gain->request > least_gain &&
           gain->sds > gsl_cdf_tdist_Pinv(0.99, (double)(quest->residuals.n_spans - 1));
}

/* A share of all prompts, or tiers, are no cache that could be left out. */
static bool may_have_none(const struct quest *quest)
{
    const struct config *config = quest->options->setting.config;
    return config->serving.kv.prefix_cache != PREFIX_CACHE_NONE && !config_has_tiers(config) &&
           quest->cached_frac > least_cached && quest->found->start[CACHE_HIT] == 0 &&
           !quest->options->release[CACHE_HIT];
}

static void name_no_cache(const struct quest *quest, const struct fit *rival)
{
    const double *with = quest->fit.scale, *without = rival->scale;
    snprintf(quest->found->rival, sizeof quest->found->rival,
             "without a prefix cache requests are %.1f%% off in the time to the first token and "
             "%.1f%% in that per token, with the configuration's %.1f%% and %.1f%% (standard "
             "deviations of the fitted ones): the deployment has no such cache "
             "(serving.kv.prefix_cache: none), and what is found with one stands for its lack",
             100 * without[TTFT], 100 * without[TPOT], 100 * with[TTFT], 100 * with[TPOT]);
}

int rival_without_cache(struct quest *quest, struct ifl_error *error)
{
    if (!may_have_none(quest))
        return 0;
    struct identify_options options = *quest->options;
    struct config config = *options.setting.config;
    struct identified *found = malloc(sizeof *found);
    struct quest rival;
    struct gain gain = {0};
    if (!found)
        return ifl_fail_nomem(error);
    config.serving.kv.prefix_cache = PREFIX_CACHE_NONE;
    options.setting.config = &config;
    int rc = quest_search(&rival, &options, found, error);
    if (rc == 0)
        rc = compare(&quest->fit, &rival.fit, &gain, error);
    if (rc == 0 && is_better(quest, &gain))
        name_no_cache(quest, &rival.fit);
    quest_close(&rival);
    free(found);
    return rc;
}
