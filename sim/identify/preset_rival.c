/* Searches for a preset that explains the runs better than the configuration does; of several, the
 * best. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/contest.h"

/* How many candidates are fitted by a descent, and how often all are begun anew. */
enum { DESCENDED = 3, ROUNDS = 3 };

/* By how much a preset must explain a request better, in the mean, nats: as if both latencies were
 * 40% less off. In recorded runs presets that did not run explain one better by up to 0.8: they
 * stand for what the profile is off. */
static const double least_gain = 1;
/* A descent gains more than a few steps of Newton do, and a search more than a descent, but where a
 * candidate gains less it does not come that far. */
static const double least_descended = 0, least_searched = 0.3;
/* Where a candidate gains more, what was found before is far from what others are found with, and
 * they begin anew from the candidate's. */
static const double far_off = 1;
/* Candidates that are so near to the best one, nats a request, may as well be right. */
static const double as_good = 0.1;

/* ---- fits ---- */

/* In Vuong's test, and in that of Clarke (Political Analysis 15, 2007), which counts the spans in
 * which a model is likelier: few requests that another model explains by far are not the runs. Nor
 * is a model that explains one latency at the cost of the other. */
static bool is_shown(const struct contest *contest, const struct fit *fit,
                     const struct rival_gain *gain)
{
    const double vuong = 0.01, clarke = 0.05, no_worse = 1.05;
    const struct fit *own = &contest->quest->fit;
    const unsigned n_spans = (unsigned)own->residuals->n_spans;
    return gain->request > least_gain && rival_is_better(contest->quest, gain, vuong) &&
           gsl_cdf_binomial_Q((unsigned)gain->n_ahead - 1, 0.5, n_spans) < clarke &&
           fit->scale[TTFT] < no_worse * own->scale[TTFT] &&
           fit->scale[TPOT] < no_worse * own->scale[TPOT];
}

/* A later fit may begin at a worse place. */
static void keep_best(const struct contest *contest, struct candidate *candidate,
                      const struct fit *fit, const struct rival_gain *gain)
{
    candidate->is_shown = candidate->is_shown || is_shown(contest, fit, gain);
    if (candidate->is_fitted && gain->request <= candidate->gain.request)
        return;
    candidate->is_fitted = true;
    candidate->gain = *gain;
    memcpy(candidate->value, fit->value, sizeof fit->value);
    memcpy(candidate->scale, fit->scale, sizeof fit->scale);
}

/* A model that cannot be fitted, such as one with trials that never end, is none. */
static int forgive(struct candidate *candidate, int rc)
{
    if (rc == 0 || contest_ends(rc))
        return rc;
    if (!candidate->is_fitted)
        candidate->gain = (struct rival_gain){0, -INFINITY, 0};
    candidate->is_fitted = true;
    return 0;
}

/* A time below nothing would explain what no model of the configuration may. True: some were. */
static bool bound_all(const struct quest *quest, struct fit *fit)
{
    bool any = false;
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (fit->is_free[p] && fit->value[p] < quest_least(quest, p)) {
            fit->value[p] = quest_least(quest, p);
            fit->is_free[p] = false;
            any = true;
        }
    return any;
}

/* Host and front end anew, from the candidate's values on. */
static int refit_opened(struct contest *contest, struct candidate *candidate, bool descend,
                        struct fit *fit, struct ifl_error *error)
{
    struct quest *quest = contest->quest;
    struct rival_gain gain;
    memcpy(fit->value, candidate->value, sizeof fit->value);
    memcpy(fit->is_free, contest->is_free, sizeof fit->is_free);
    fit->exchange_unit = quest->fit.exchange_unit;
    int rc = descend ? fit_again(fit, error) : fit_refit(fit, error);
    while (rc == 0 && bound_all(quest, fit))
        rc = fit_refit(fit, error);
    if (rc == 0)
        rc = rival_compare(&quest->fit, fit, &gain, error);
    if (rc == 0)
        keep_best(contest, candidate, fit, &gain);
    return forgive(candidate, rc);
}

static int refit(struct contest *contest, struct candidate *candidate, bool descend,
                 struct ifl_error *error)
{
    const struct residuals *own = &contest->quest->residuals;
    struct trial_setting setting = contest->quest->options->setting;
    struct residuals residuals = {
        .setting = &setting, .recordings = own->recordings, .n_recordings = own->n_recordings};
    struct fit fit;
    setting.config = &candidate->config;
    int rc = residuals_open(&residuals, error);
    if (rc == 0)
        rc = fit_open(&fit, &residuals, error);
    if (rc == 0) {
        rc = refit_opened(contest, candidate, descend, &fit, error);
        fit_close(&fit);
    }
    residuals_close(&residuals);
    return rc;
}

/* All of its parameters, as the configuration's were, but for a factor of prompts' kernels, which
 * takes most of the flights. Which of them the runs determine depends on the model, too. */
static int search(struct contest *contest, struct candidate *candidate, struct ifl_error *error)
{
    struct identify_options options = *contest->quest->options;
    struct quest rival;
    struct rival_gain gain;
    options.setting.config = &candidate->config;
    options.hold[PROMPT_FRAC] = true;
    options.release[PROMPT_FRAC] = false;
    const int rc = rival_search(contest->quest, &options, &rival, &gain, error);
    if (rc == 0) {
        keep_best(contest, candidate, &rival.fit, &gain);
        contest_free(contest, &rival);
    }
    rival_close(&rival);
    return forgive(candidate, rc);
}

/* ---- the choice ---- */

/* Best first; of equals those that were so before. */
static void sort(struct contest *contest)
{
    for (size_t i = 1; i < contest->n_kept; i++)
        for (size_t j = i;
             j > 0 && contest->kept[j]->gain.request > contest->kept[j - 1]->gain.request; j--) {
            struct candidate *better = contest->kept[j];
            contest->kept[j] = contest->kept[j - 1];
            contest->kept[j - 1] = better;
        }
}

/* The configuration's own stands as it was found, unless its rule makes another pool. */
static bool is_as_found(const struct contest *contest, const struct candidate *candidate)
{
    return candidate->is_own && candidate->value[BLOCKS] == contest->quest->fit.value[BLOCKS];
}

static bool is_promising(const struct contest *contest)
{
    for (size_t i = 0; i < contest->n_kept; i++)
        if (!is_as_found(contest, contest->kept[i]) &&
            contest->kept[i]->gain.request > least_descended)
            return true;
    return false;
}

/* Ever fewer of them are fitted ever better, as far as they promise. */
static int fit_all(struct contest *contest, struct ifl_error *error)
{
    int rc = 0;
    if (contest->n_kept == 1 && is_as_found(contest, contest->kept[0]))
        return 0;
    for (size_t i = 0; rc == 0 && i < contest->n_kept; i++)
        if (!contest->kept[i]->is_fitted)
            rc = refit(contest, contest->kept[i], false, error);
    sort(contest);
    for (size_t i = 0; rc == 0 && is_promising(contest) && i < contest->n_kept && i < DESCENDED;
         i++)
        if (contest->kept[i]->gain.request > least_descended)
            rc = refit(contest, contest->kept[i], true, error);
    sort(contest);
    return rc;
}

/* Of the candidates that another has beaten so far that they were far off, too, nothing is known.
 */
static int fit_in_rounds(struct contest *contest, struct ifl_error *error)
{
    double before = 0;
    int rc = 0;
    for (int round = 0; rc == 0 && contest->n_kept > 0 && round < ROUNDS; round++) {
        rc = fit_all(contest, error);
        const double gain = contest->kept[0]->gain.request;
        if (contest->kept[0]->is_own || gain < before + far_off || round + 1 == ROUNDS)
            break;
        if (rc == 0)
            rc = search(contest, contest->kept[0], error);
        before = contest->kept[0]->gain.request;
        if (rc == 0)
            rc = contest_again(contest, error);
    }
    return rc;
}

/* Than what was found, and than the configuration with its own pool. */
static bool is_better(const struct contest *contest, const struct candidate *candidate)
{
    for (size_t i = 0; i < contest->n_kept; i++)
        if (contest->kept[i]->is_own &&
            candidate->gain.request < contest->kept[i]->gain.request + least_gain)
            return false;
    return candidate->is_shown;
}

/* ---- the name ---- */

static void append(char *text, size_t n_bytes, const char *before, const char *name)
{
    const size_t at = strlen(text);
    snprintf(text + at, n_bytes - at, "%s%s", before, name);
}

/* The others that fly as it does, or that explain the runs nearly as well. */
static void list_others(const struct contest *contest, const struct candidate *best, char text[256])
{
    enum { MOST = 4 };
    size_t n = 0;
    *text = '\0';
    if (*best->alike)
        append(text, 256, " (in these runs as ", best->alike);
    for (size_t i = 0; i < contest->n_kept && n < MOST; i++) {
        const struct candidate *other = contest->kept[i];
        if (!other->is_own && strcmp(other->name, best->name) != 0 &&
            other->gain.request > best->gain.request - as_good)
            append(text, 256,
                   n++ > 0 ? ", "
                   : *text ? "; nearly so "
                           : " (nearly so ",
                   other->name);
    }
    if (*text)
        append(text, 256, ")", "");
}

static void name_rival(struct contest *contest, const struct candidate *best)
{
    const double *own = contest->quest->fit.scale, *other = best->scale;
    struct identified *found = contest->quest->found;
    char others[256];
    list_others(contest, best, others);
    snprintf(found->rival_is, sizeof found->rival_is, "rather of preset %s", best->name);
    snprintf(
        found->rival, sizeof found->rival,
        "with preset %s%s requests are %.1f%% off in the time to the first token and %.1f%% "
        "in that per token, with the configuration's %.1f%% and %.1f%% (standard deviations of "
        "the fitted ones): the deployment has another preset than %.48s, and what is found "
        "stands for the difference",
        best->name, others, 100 * other[TTFT], 100 * other[TPOT], 100 * own[TTFT], 100 * own[TPOT],
        contest->quest->options->setting.config->serving.preset);
}

/* The search has ended in a pool of which the runs are less likely than of the preset's own. */
static void doubt_pool(struct contest *contest)
{
    const struct candidate *own = contest->kept[0];
    const struct fit *fit = &contest->quest->fit;
    struct identified *found = contest->quest->found;
    if (own->is_shown)
        snprintf(
            found->doubt, sizeof found->doubt,
            "with the %.0f blocks that the preset's rule counts requests are %.1f%% off in the "
            "time to the first token and %.1f%% in that per token, with the %.0f that were "
            "found %.1f%% and %.1f%%: the search has ended too early (--hold num_blocks)",
            own->value[BLOCKS], 100 * own->scale[TTFT], 100 * own->scale[TPOT], fit->value[BLOCKS],
            100 * fit->scale[TTFT], 100 * fit->scale[TPOT]);
}

static const struct candidate *find_better(const struct contest *contest)
{
    for (size_t i = 0; i < contest->n_kept; i++)
        if (!contest->kept[i]->is_own && is_better(contest, contest->kept[i]))
            return contest->kept[i];
    return NULL;
}

/* The best one is fitted whole if host and front end alone do not show any to be better. */
static int choose(struct contest *contest, struct ifl_error *error)
{
    int rc = fit_in_rounds(contest, error);
    struct candidate *best = contest->n_kept > 0 ? contest->kept[0] : NULL;
    if (rc < 0 || !best)
        return rc;
    if (best->is_own && !is_as_found(contest, best))
        doubt_pool(contest);
    if (best->is_own)
        return 0;
    if (!find_better(contest) && best->gain.request > least_searched)
        rc = search(contest, best, error);
    const struct candidate *better = rc == 0 ? find_better(contest) : NULL;
    if (better)
        name_rival(contest, better);
    return rc;
}

int rival_preset(struct quest *quest, struct ifl_error *error)
{
    struct contest contest;
    if (!quest->options->study)
        return 0;
    int rc = contest_open(&contest, quest, error);
    if (rc == 0)
        rc = choose(&contest, error);
    contest_close(&contest);
    return rc;
}
