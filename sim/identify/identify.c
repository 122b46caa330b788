#include "identify/apart.h"
#include "identify/fit_parts.h"
#include "identify/quest.h"
#include "identify/rival.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

static void keep_findings(struct quest *quest)
{
    struct identified *found = quest->found;
    const struct fit *fit = &quest->fit;
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        struct finding *finding = &found->of[p];
        found->unit[p] = fit_unit(fit, p);
        finding->value = fit->value[p];
        if (!fit->is_free[p])
            continue;
        finding->state = FOUND;
        finding->low = fmax(fit->low[p], quest_least(quest, p));
        finding->high = fit->high[p];
        found->n_fitted++;
        for (enum parameter q = 0; q < N_PARAMETERS; q++)
            found->covariance[p][q] = fit->is_free[q] ? fit->covariance[p][q] : 0;
    }
    memcpy(found->value, fit->value, sizeof found->value);
    memcpy(found->scale, fit->scale, sizeof found->scale);
    memcpy(found->along, fit->along, sizeof found->along);
    found->n_flights = fit->n_flights;
    found->n_spans = quest->residuals.n_spans;
}

/* Less a step than nothing is less a layer. Of an interval around more the part below is left out.
 */
static void split_host(struct quest *quest)
{
    struct finding *step = &quest->found->of[HOST_STEP], *layer = &quest->found->of[HOST_LAYER];
    if (step->value >= 0)
        step->low = fmax(0, step->low);
    if (step->value >= 0 || quest->layers <= 0)
        return;
    const double start = quest->found->start[HOST_LAYER], per = 1 / quest->layers;
    const double value = step->state == AT_BOUND ? 0 : fmax(0, start + step->value * per);
    const double low = fmax(0, start + step->low * per);
    *layer = (struct finding){step->state, value, fmin(value, low), start + step->high * per, ""};
    quest->found->value[HOST_LAYER] = layer->value;
    quest->found->value[HOST_STEP] = 0;
    *step = (struct finding){.state = GIVEN, .why = "0: host.layer_s stands for both"};
}

static void keep_deployment(struct quest *quest)
{
    struct identified *found = quest->found;
    parameters_change(found->value, quest->options->setting.config, quest->machine);
    found->deployment = quest->machine->platform.deployment;
    if (found->of[BLOCKS].state != UNKNOWN)
        found->deployment.num_blocks = (int32_t)lround(found->value[BLOCKS]);
}

/* Of prompts that share nothing a share in a cache is but one reading. */
static void doubt_share(struct quest *quest)
{
    if (quest->fit.is_free[CACHE_HIT] && quest->cached_frac == 0)
        quest_leave(quest->found, CACHE_HIT, FOUND,
                    "the requests share nothing; faster prompts or another preset act alike");
}

/* 1: a number was left out or bound, so that the others may be found anew; 0: none. */
static int leave_or_bound_one(struct quest *quest, struct ifl_error *error)
{
    const int rc = quest_leave_one(quest, error);
    return rc != 0 ? rc : quest_bound_one(quest, error);
}

/* All but whether prompts' kernels are others. */
static int settle(struct quest *quest, struct ifl_error *error)
{
    const double least = quest->peak_blocks * 0.65, most = quest->whole_blocks * 1.5;
    int rc = quest_leave_front(quest, error);
    if (rc == 0)
        rc = fit_find(&quest->fit, least, most, error);
    if (rc == 0)
        rc = quest_leave_front(quest, error);
    while (rc == 0 && (rc = leave_or_bound_one(quest, error)) > 0)
        rc = 0;
    if (rc == 0)
        rc = fit_refine(&quest->fit, error);
    while (rc == 0 && (rc = quest_bound_one(quest, error)) > 0)
        rc = 0;
    return rc;
}

/* Prompts' kernels are the profile's unless the run says otherwise in a score test of 5%. The rate
 * of all-reduces acts on steps with prompts as they do: no run tells the two apart. */
static int ask_prompts(struct quest *quest, struct profile_test *test, bool *asks,
                       struct ifl_error *error)
{
    *test = (struct profile_test){0};
    *asks = false;
    if (fit_followed(&quest->fit) < N_PARAMETERS || quest->options->hold[PROMPT_FRAC] ||
        quest->fit.is_free[ALLREDUCE_RATE])
        return 0;
    const struct judge_runs runs = {&quest->options->setting, quest->options->recordings,
                                    quest->options->n_recordings, quest->residuals.trials};
    const double *const values[] = {quest->fit.value, quest->found->start};
    bool explains = false;
    int rc = 0;
    for (int i = 0; rc == 0 && !explains && i < 2; i++)
        rc = judge_explained(&runs, values[i], &explains, error);
    if (rc == 0 && (!explains || quest->fit.is_free[EXCHANGE_RATE]))
        rc = profile_test(&quest->fit, PROMPT_FRAC, test, error);
    *asks = !explains &&
            fabs(test->sds) > gsl_cdf_tdist_Pinv(0.975, (double)(quest->residuals.n_spans - 1));
    return rc;
}

/* The standard deviation of the logarithm of prompts' kernels: tables of two years differ by 11%
 * (reports/reproductions/validation/intervals), two standard deviations. */
static const double kernels_sd = 0.055;

/* The exchange acts on steps with prompts as their kernels do, so that a rate that was found with
 * the profile's kernels is at most as sure as they are. */
static void widen_exchange(struct quest *quest, const struct profile_test *prompts)
{
    struct fit *fit = &quest->fit;
    if (!fit->is_free[EXCHANGE_RATE] || fit->is_free[PROMPT_FRAC])
        return;
    double *const ends[] = {&fit->low[EXCHANGE_RATE], &fit->high[EXCHANGE_RATE]};
    const double value = fit->value[EXCHANGE_RATE];
    const double per_log = prompts->along[EXCHANGE_RATE] / fit_unit(fit, PROMPT_FRAC);
    const double doubt = gsl_cdf_ugaussian_Pinv(0.95) * kernels_sd * per_log;
    for (int i = 0; i < 2; i++) {
        const double by = parameter_distance(EXCHANGE_RATE, value, *ends[i]);
        *ends[i] = parameter_moved(EXCHANGE_RATE, value, copysign(hypot(by, doubt), by));
    }
}

/* Versions of kernels on one GPU differ by less: products by 11%, between the tables of two years
 * (reports/reproductions/validation/intervals). What differs more is a cache, or another GPU. */
static const double least_kernels = 0.8, most_kernels = 1.25;

/* What lay at its bound is looked for again, since slow prompts hold a front end down. A factor
 * that is not determined then leaves all others as they were without it. */
static int settle_prompts(struct quest *quest, struct ifl_error *error)
{
    struct fit *fit = &quest->fit, before = *fit;
    struct finding *of = quest->found->of, were[N_PARAMETERS];
    memcpy(were, of, sizeof were);
    quest_leave(quest->found, PROMPT_FRAC, FOUND, "%s", "");
    fit->is_free[PROMPT_FRAC] = true;
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        fit->is_free[p] = fit->is_free[p] || of[p].state == AT_BOUND;
    const int rc = settle(quest, error);
    const double frac = fit->value[PROMPT_FRAC];
    const bool is_found = fit->is_free[PROMPT_FRAC];
    const double start = quest->found->start[PROMPT_FRAC];
    const bool differs = fit->low[PROMPT_FRAC] > start || fit->high[PROMPT_FRAC] < start;
    if (rc < 0 || (is_found && differs && frac > least_kernels && frac < most_kernels))
        return rc;
    if (is_found && !differs)
        quest_leave(quest->found, PROMPT_FRAC, GIVEN, "90%% from %.4g to %.4g hold it",
                    fit->low[PROMPT_FRAC], fit->high[PROMPT_FRAC]);
    else if (is_found)
        quest_leave(quest->found, PROMPT_FRAC, GIVEN, "no kernels take %.2g of the profile's time",
                    frac);
    were[PROMPT_FRAC] = of[PROMPT_FRAC];
    memcpy(of, were, sizeof were);
    memcpy(before.along, fit->along, sizeof before.along);
    before.n_flights = fit->n_flights;
    *fit = before;
    return fit_predict(fit, fit->value, error);
}

/* A pool that few requests wait for. */
static int settle_pool(struct quest *quest, struct ifl_error *error)
{
    bool asks;
    int rc = quest_ask_pool(quest, &asks, error);
    if (rc < 0 || !asks)
        return rc;
    quest->found->of[BLOCKS] = (struct finding){.state = FOUND};
    quest->fit.is_free[BLOCKS] = true;
    rc = settle(quest, error);
    if (rc == 0)
        quest_leave_pool(quest);
    return rc;
}

static int solve(struct quest *quest, struct ifl_error *error)
{
    struct profile_test prompts = {0};
    bool asks = false;
    int rc = quest_probe_exchange(quest, error);
    if (rc == 0)
        rc = settle(quest, error);
    if (rc == 0)
        rc = ask_prompts(quest, &prompts, &asks, error);
    if (rc == 0 && asks)
        rc = settle_prompts(quest, error);
    if (rc == 0)
        quest_leave_pool(quest);
    if (rc == 0)
        rc = settle_pool(quest, error);
    widen_exchange(quest, &prompts);
    return rc;
}

int quest_search(struct quest *quest, const struct identify_options *options,
                 struct identified *found, struct ifl_error *error)
{
    *quest = (struct quest){.options = options,
                            .found = found,
                            .residuals = {.setting = &options->setting,
                                          .recordings = options->recordings,
                                          .n_recordings = options->n_recordings}};
    *found = (struct identified){0};
    int rc = residuals_open(&quest->residuals, error);
    if (rc == 0)
        rc = fit_open(&quest->fit, &quest->residuals, error);
    if (rc == 0)
        rc = quest_start(quest, error);
    if (rc == 0)
        rc = quest_look_for_waits(quest, error);
    if (rc == 0) {
        quest_choose(quest);
        memcpy(quest->fit.value, found->start, sizeof found->start);
        if (quest->fit.is_free[BLOCKS])
            quest->fit.value[BLOCKS] = sqrt(quest->peak_blocks * quest->whole_blocks);
        else if (found->of[BLOCKS].state == UNKNOWN)
            quest->fit.value[BLOCKS] = fmax(found->start[BLOCKS], ceil(quest->peak_blocks));
        rc = solve(quest, error);
    }
    return rc;
}

void quest_close(struct quest *quest)
{
    free(quest->machine);
    fit_close(&quest->fit);
    residuals_close(&quest->residuals);
}

int identify(const struct identify_options *options, struct identified *found,
             struct ifl_error *error)
{
    struct quest quest;
    int rc = quest_search(&quest, options, found, error);
    if (rc == 0)
        rc = rival_without_cache(&quest, error);
    if (rc == 0 && !*found->rival)
        rc = rival_preset(&quest, error);
    if (rc == 0 && !*found->rival)
        rc = apart_check(options, &quest.fit, error);
    if (rc == 0) {
        doubt_share(&quest);
        keep_findings(&quest);
        split_host(&quest);
        keep_deployment(&quest);
        rc = identify_depend(options, found, error);
    }
    quest_close(&quest);
    return rc;
}
