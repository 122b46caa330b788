#include "identify/rival.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/fit_parts.h"

/* Less than this part of the prompts' tokens found in a cache moves no time to the first token by
 * more than a model is off. */
static const double least_cached = 0.02;
static double lost(const struct fit *fit, size_t i)
{
    double sum = 0;
    for (enum latency l = TTFT; l <= TPOT; l++)
        sum += fit_lost_by(fit, l, i);
    return sum;
}

int rival_compare(const struct fit *fit, const struct fit *rival, struct rival_gain *gain,
                  struct ifl_error *error)
{
    const struct residuals *residuals = fit->residuals;
    const double n = (double)residuals->n_spans;
    double *of_span = calloc(residuals->n_spans, sizeof *of_span), sum = 0, squares = 0;
    size_t n_ahead = 0;
    if (!of_span)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < residuals->n; i++)
        of_span[residuals->rows[i].span] += lost(fit, i) - lost(rival, i);
    for (size_t s = 0; s < residuals->n_spans; s++) {
        sum += of_span[s];
        n_ahead += of_span[s] > 0;
    }
    for (size_t s = 0; s < residuals->n_spans; s++)
        squares += pow(of_span[s] - sum / n, 2);
    *gain = (struct rival_gain){squares > 0 ? sum / sqrt(squares * n / (n - 1)) : 0,
                                sum / (double)residuals->n, n_ahead};
    free(of_span);
    return 0;
}

int rival_search(const struct quest *quest, const struct identify_options *options,
                 struct quest *rival, struct rival_gain *gain, struct ifl_error *error)
{
    struct identified *found = malloc(sizeof *found);
    *rival = (struct quest){0};
    *gain = (struct rival_gain){0};
    if (!found)
        return ifl_fail_nomem(error);
    const int rc = quest_search(rival, options, found, error);
    return rc == 0 ? rival_compare(&quest->fit, &rival->fit, gain, error) : rc;
}

void rival_close(struct quest *rival)
{
    struct identified *found = rival->found;
    quest_close(rival);
    free(found);
}

bool rival_is_better(const struct quest *quest, const struct rival_gain *gain, double level)
{
    return gain->request > rival_least_gain &&
           gain->sds > gsl_cdf_tdist_Qinv(level, (double)(quest->residuals.n_spans - 1));
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
    snprintf(quest->found->rival_is, sizeof quest->found->rival_is,
             "those of a server without a prefix cache");
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
    struct quest rival;
    struct rival_gain gain;
    config.serving.kv.prefix_cache = PREFIX_CACHE_NONE;
    options.setting.config = &config;
    const int rc = rival_search(quest, &options, &rival, &gain, error);
    if (rc == 0 && rival_is_better(quest, &gain, 0.01))
        name_no_cache(quest, &rival.fit);
    rival_close(&rival);
    return rc;
}
