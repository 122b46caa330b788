/* Chooses which parameters are fitted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/fit_parts.h"
#include "identify/quest.h"

void quest_leave(struct identified *found, enum parameter p, enum finding_state state,
                 const char *format, ...)
{
    va_list args;
    found->of[p].state = state;
    va_start(args, format);
    vsnprintf(found->of[p].why, sizeof found->of[p].why, format, args);
    va_end(args);
}

/* What it may be, for all that is known. */
static void open_range(struct identified *found, enum parameter p, double low, double high)
{
    found->of[p].low = low;
    found->of[p].high = fmax(low, high);
}

/* It cannot be told from another parameter. */
static void leave_twin(struct quest *quest, enum parameter p)
{
    if (!quest->options->hold[p])
        quest_leave(quest->found, p, UNKNOWN, "acts as %s in every step of one model",
                    parameter_acts_as(p));
}

/* The tokens of all prompts; 0 where they differ. */
static int32_t only_prompt_tokens(const struct quest *quest)
{
    const struct identify_options *options = quest->options;
    const int32_t first = recording_prompt(&options->recordings[0], 0);
    for (size_t k = 0; k < options->n_recordings; k++)
        for (size_t i = 0; i < options->recordings[k].n_fit; i++)
            if (recording_prompt(&options->recordings[k], i) != first)
                return 0;
    return first;
}

/* Of prompts of one length a time a request and a time a token are the same. */
static void leave_front_twin(struct quest *quest)
{
    const int32_t n_tokens = only_prompt_tokens(quest);
    bool *is_free = quest->fit.is_free;
    if (n_tokens == 0 || !is_free[FRONT_REQUEST] || !is_free[FRONT_PROMPT_TOKEN])
        return;
    is_free[FRONT_PROMPT_TOKEN] = false;
    quest_leave(quest->found, FRONT_PROMPT_TOKEN, UNKNOWN,
                "acts as %s where all prompts have %d tokens", parameter_rows[FRONT_REQUEST].key,
                n_tokens);
}

/* It is not fitted: something else says what it is. */
static void give(struct quest *quest, enum parameter p, const char *why)
{
    quest->fit.is_free[p] = false;
    quest_leave(quest->found, p, GIVEN, "%s", why);
}

static void choose_hold(struct quest *quest)
{
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        quest->fit.is_free[p] = true;
        if (quest->options->hold[p])
            give(quest, p, "held");
    }
}

static void choose_all_reduce(struct quest *quest)
{
    static const char one_gpu[] = "one GPU: there is no all-reduce";
    if (quest->options->setting.config->tensor_parallel < 2) {
        give(quest, ALLREDUCE_RATE, one_gpu);
        give(quest, ALLREDUCE_LATENCY, one_gpu);
    } else if (!quest->options->release[ALLREDUCE_RATE]) {
        give(quest, ALLREDUCE_RATE, "the hardware profile says it");
    }
}

static void choose_exchange(struct quest *quest)
{
    if (quest->options->setting.config->data_parallel < 2)
        give(quest, EXCHANGE_RATE, "no data-parallel ranks: there is no exchange");
    else if (!quest->options->release[EXCHANGE_RATE])
        give(quest, EXCHANGE_RATE, "the configuration or the profile says it");
}

/* A share in a cache and slower kernels both say how long prompts take: one of them at most. */
static void choose_prompts(struct quest *quest)
{
    const struct identify_options *options = quest->options;
    const bool *is_free = quest->fit.is_free;
    if (!options->release[CACHE_HIT])
        give(quest, CACHE_HIT,
             quest->found->start[CACHE_HIT] > 0 ? "the configuration says it" : "not looked for");
    if (!options->release[PROMPT_FRAC] || is_free[CACHE_HIT])
        give(quest, PROMPT_FRAC,
             options->hold[PROMPT_FRAC] ? "held"
             : is_free[CACHE_HIT]       ? "a share in a cache is looked for"
             : is_free[ALLREDUCE_RATE]  ? "the rate of all-reduces is looked for"
                                        : "the run asks for no other");
}

static void choose_pool(struct quest *quest)
{
    if (quest->has_blocks && !quest->options->release[BLOCKS]) {
        give(quest, BLOCKS, "the configuration says it");
    } else if (!quest->waits) {
        quest->fit.is_free[BLOCKS] = false;
        quest->found->of[BLOCKS].state = UNKNOWN; /* quest_ask_pool gives the reason */
    }
}

void quest_choose(struct quest *quest)
{
    choose_hold(quest);
    quest->fit.is_free[HOST_LAYER] = quest->fit.is_free[ALLREDUCE_LATENCY] = false;
    leave_twin(quest, HOST_LAYER);
    leave_twin(quest, ALLREDUCE_LATENCY);
    leave_front_twin(quest);
    choose_all_reduce(quest);
    choose_exchange(quest);
    choose_prompts(quest);
    choose_pool(quest);
}

/* A unit changes the median latency by a tenth, or the number by a tenth. */
static double widest_units(enum parameter p)
{
    return parameter_rows[p].moved == LOGARITHM && p != PROMPT_FRAC ? 8 : 3;
}

static double width_units(const struct fit *fit, enum parameter p)
{
    return fabs(parameter_distance(p, fit->low[p], fit->high[p])) / fit_unit(fit, p);
}

static double correlation(const struct fit *fit, enum parameter a, enum parameter b)
{
    return fit->covariance[a][b] / sqrt(fit->covariance[a][a] * fit->covariance[b][b]);
}

/* The parameter that acts most like p, among those before it. */
static enum parameter likest(const struct fit *fit, enum parameter p, double *how)
{
    enum parameter found = p;
    *how = 0;
    for (enum parameter q = 0; q < p; q++)
        if (fit->is_free[q] && fit_latency(p) == fit_latency(q) && q != BLOCKS &&
            fit->covariance[q][q] > 0 && fabs(correlation(fit, p, q)) > fabs(*how)) {
            *how = correlation(fit, p, q);
            found = q;
        }
    return found;
}

static bool is_wide(const struct fit *fit, enum parameter p)
{
    return !(width_units(fit, p) <= widest_units(p)); /* NaN, too */
}

static int drop(struct quest *quest, enum parameter p, struct ifl_error *error)
{
    struct fit *fit = &quest->fit;
    fit->is_free[p] = false;
    fit->value[p] = quest->found->start[p];
    return fit_again(fit, error);
}

/* No front end takes longer than the first token that came soonest. */
static double longest_front(const struct quest *quest, enum parameter p)
{
    double least = INFINITY;
    for (size_t k = 0; k < quest->options->n_recordings; k++) {
        const struct recording *r = &quest->options->recordings[k];
        for (size_t i = 0; i < r->n_fit; i++)
            least = fmin(least, p == FRONT_REQUEST ? r->of[TTFT][i]
                                                   : r->of[TTFT][i] / recording_prompt(r, i));
    }
    return least;
}

/* No step takes the host longer than the longest time per token of a request. */
static double longest_host(const struct quest *quest)
{
    double most = 0;
    for (size_t k = 0; k < quest->options->n_recordings; k++)
        for (size_t i = 0; i < quest->options->recordings[k].n_fit; i++)
            most = fmax(most, quest->options->recordings[k].of[TPOT][i]);
    return most;
}

/* An end of an interval that may be none, or beyond all that was measured. */
static double most_open(const struct quest *quest, enum parameter p, double high)
{
    if (p == FRONT_REQUEST || p == FRONT_PROMPT_TOKEN)
        return fmin(high, longest_front(quest, p)); /* of a NaN and a number the number */
    if (p == HOST_STEP || p == HOST_SEQ)
        return fmin(high, longest_host(quest));
    return isfinite(high) ? high : quest->fit.value[p];
}

static void say_wide(struct quest *quest, enum parameter p, enum parameter like, double how)
{
    const struct fit *fit = &quest->fit;
    const struct parameter_row *row = &parameter_rows[p];
    char text[80] = "";
    if (fabs(how) > 0.9) {
        snprintf(text, sizeof text, ", correlation %.2f with %s", how, parameter_rows[like].key);
        quest_leave(quest->found, like, FOUND, "stands for %s, too", row->key);
    }
    if (fit->high[p] < row->low)
        quest_leave(quest->found, p, UNKNOWN, "less than %g fits: another model or GPU", row->low);
    else if (isfinite(fit->high[p]))
        quest_leave(quest->found, p, UNKNOWN, "90%% from %.4g to %.4g %s is too wide%s",
                    fmax(fit->low[p], row->low) * row->shown, fit->high[p] * row->shown, row->unit,
                    text);
    else
        quest_leave(quest->found, p, UNKNOWN, "the recordings leave it no interval%s", text);
    open_range(quest->found, p, fmax(fit->low[p], row->low), most_open(quest, p, fit->high[p]));
}

int quest_leave_one(struct quest *quest, struct ifl_error *error)
{
    struct fit *fit = &quest->fit;
    int rc = 0;
    for (enum parameter p = N_PARAMETERS; p-- > 0;) {
        double how;
        if (!fit->is_free[p] || p == BLOCKS)
            continue;
        if (!is_wide(fit, p))
            continue;
        const enum parameter like = likest(fit, p, &how);
        say_wide(quest, p, like, how);
        rc = drop(quest, p, error);
        return rc < 0 ? rc : 1;
    }
    return 0;
}

double quest_least(const struct quest *quest, enum parameter p)
{
    return p == HOST_STEP ? -quest->layers * quest->found->start[HOST_LAYER]
                          : parameter_rows[p].low;
}

int quest_bound_one(struct quest *quest, struct ifl_error *error)
{
    struct fit *fit = &quest->fit;
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        const double low = quest_least(quest, p);
        if (!fit->is_free[p] || p == BLOCKS || fit->value[p] >= low)
            continue;
        const double high = low + fit->high[p] - fit->value[p];
        quest->found->of[p] = (struct finding){AT_BOUND, low, low, high, ""};
        fit->is_free[p] = false;
        fit->value[p] = low;
        const int rc = fit_again(fit, error);
        return rc < 0 ? rc : 1;
    }
    return 0;
}

void quest_leave_pool(struct quest *quest)
{
    struct fit *fit = &quest->fit;
    if (!fit->is_free[BLOCKS] || fit->high[BLOCKS] < 1.5 * fit->low[BLOCKS])
        return;
    quest_leave(quest->found, BLOCKS, UNKNOWN, "90%% from %.0f to %.0f blocks: too wide",
                fit->low[BLOCKS], fit->high[BLOCKS]);
    open_range(quest->found, BLOCKS, fit->low[BLOCKS], fit->high[BLOCKS]);
    fit->is_free[BLOCKS] = false;
}

/* Preempted requests give blocks back: the least pool may be below what seems in use. Only waits in
 * several spans say what a pool is: one may be another's. */
int quest_ask_pool(struct quest *quest, bool *asks, struct ifl_error *error)
{
    const double low = quest->peak_blocks, high = fmax(low, quest->whole_blocks);
    struct finding *of = &quest->found->of[BLOCKS];
    struct profile_end end = {0};
    *asks = false;
    if (of->state != UNKNOWN || quest->waits)
        return 0;
    int rc = profile_least(&quest->fit, BLOCKS, 0.8 * low, 1.15 * high, &end, error);
    if (rc < 0)
        return rc;
    const double least = fmin(end.low, low);
    const bool shows = end.shows > 0;
    quest_leave(quest->found, BLOCKS, UNKNOWN, "%s for memory; at least %.0f",
                shows ? "too few requests wait" : "no request waits", least);
    open_range(quest->found, BLOCKS, shows ? least : fmax(least, quest->low_blocks),
               quest->high_blocks); /* of the engine's rule */
    *asks = end.shows > 0.95;
    if (*asks)
        quest->fit.value[BLOCKS] = end.best;
    return 0;
}

int quest_leave_front(struct quest *quest, struct ifl_error *error)
{
    struct fit *fit = &quest->fit;
    if (!fit->is_free[FRONT_REQUEST] && !fit->is_free[FRONT_PROMPT_TOKEN])
        return 0;
    const int rc = fit_predict(fit, fit->value, error);
    const size_t n = rc == 0 ? fit_n_front(fit) : 0;
    for (enum parameter p = FRONT_REQUEST; rc == 0 && p <= FRONT_PROMPT_TOKEN; p++)
        if (fit->is_free[p] && n < RECORDING_LEAST) {
            fit->is_free[p] = false;
            fit->value[p] = quest->found->start[p];
            quest_leave(quest->found, p, UNKNOWN, "%zu requests find a free server, expected %d", n,
                        RECORDING_LEAST);
            open_range(quest->found, p, 0, longest_front(quest, p));
        }
    return rc;
}

int quest_probe_exchange(struct quest *quest, struct ifl_error *error)
{
    bool acts;
    if (!quest->fit.is_free[EXCHANGE_RATE])
        return 0;
    const int rc = fit_probe_exchange(&quest->fit, &acts, error);
    if (rc == 0 && !acts) {
        quest->fit.is_free[EXCHANGE_RATE] = false;
        quest_leave(quest->found, EXCHANGE_RATE, UNKNOWN,
                    "at an eighth of it no time per token would grow by 1%%");
        open_range(quest->found, EXCHANGE_RATE, quest->fit.value[EXCHANGE_RATE] / 8,
                   quest->fit.value[EXCHANGE_RATE]);
    }
    return rc;
}
