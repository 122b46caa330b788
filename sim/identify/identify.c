#include "identify/apart.h"
#include "identify/fit_parts.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/tiers.h"
#include "inflight/minmax.h"
#include "inflight/random.h"

/* ---- where the search begins ---- */

struct quest {
    const struct identify_options *options;
    struct identified *found;
    struct residuals residuals;
    struct fit fit;
    struct machine *machine;                  /* as the configuration says */
    double layers, peak_blocks, whole_blocks; /* most in use: with all hits, without */
    double low_blocks, high_blocks;           /* 90% of what the engine may count */
    bool has_blocks;                          /* the configuration says how many */
    bool waits;                               /* requests wait for memory in some recording */
};

/* A share of prompts is found only where there is a cache. */
static int check_cache(const struct quest *quest, struct ifl_error *error)
{
    const struct config *config = quest->options->setting.config;
    const char *why = tiers_against(config);
    if (!why && tier_is_there(&config->serving.kv.tiers[TIER_STORE]))
        why = "serving.kv.tiers.store is set, expected none";
    return why && quest->options->release[CACHE_HIT]
               ? ifl_fail_at(error, config->path, 0, 0, "%s, where cache.hit_frac is looked for",
                             why)
               : 0;
}

/* A rule of an engine has an error (memory_engine.h). Another count has none that is known: then no
 * more than the least is. */
static int count_pool(struct quest *quest, struct ifl_error *error)
{
    const double ends = gsl_cdf_ugaussian_Pinv(0.95);
    const struct config *config = quest->options->setting.config;
    double *drawn_sds = &quest->machine->platform.deployment.memory.drawn_sds;
    char arithmetic[MACHINE_TEXT_BYTES];
    struct ifl_limits low, high;
    *drawn_sds = -ends;
    int rc = machine_size_pool(quest->machine, config, &low, arithmetic, error);
    *drawn_sds = ends;
    if (rc == 0)
        rc = machine_size_pool(quest->machine, config, &high, arithmetic, error);
    *drawn_sds = 0;
    quest->low_blocks = rc == 0 && low.n_blocks < high.n_blocks ? low.n_blocks : 1;
    quest->high_blocks = rc == 0 ? high.n_blocks : 1;
    return rc;
}

static int load_start(struct quest *quest, struct ifl_error *error)
{
    const struct config *config = quest->options->setting.config;
    struct machine *machine = quest->machine = malloc(sizeof *machine);
    struct ifl_limits limits;
    char arithmetic[MACHINE_TEXT_BYTES];
    int rc = machine ? machine_load(machine, config, quest->options->setting.profiles, error)
                     : ifl_fail_nomem(error);
    if (rc == 0)
        rc = machine_size_pool(machine, config, &limits, arithmetic, error);
    if (rc == 0)
        rc = check_cache(quest, error);
    if (rc == 0)
        rc = count_pool(quest, error);
    if (rc == 0) {
        limits.n_blocks += config->serving.kv.null_blocks; /* as a log counts */
        parameters_of(machine, config, limits.n_blocks, quest->found->start);
        quest->layers = machine->model.layers;
        quest->found->deployment = machine->platform.deployment;
        quest->has_blocks =
            config->serving.kv.num_blocks > 0 || machine->platform.deployment.num_blocks > 0;
    }
    return rc;
}

/* Requests that had their first token long after the simulation gives it to them with all the
 * memory that they could use. */
static size_t count_waiting(const struct recording *r, const struct trial *trial)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_fit; i++)
        n += r->of[TTFT][i] > 3 * trial->of[TTFT][i] + 10 * r->tpot_s;
    return n;
}

/* Where requests wait, the pool is as large as what was in use then, between no hits and all. A
 * deployment's share in a cache is left out: it lies in blocks of each request's own. */
static int look_for_waits(struct quest *quest, struct ifl_error *error)
{
    const struct identify_options *options = quest->options;
    const int32_t block_tokens = options->setting.config->serving.kv.block_tokens;
    double value[N_PARAMETERS], blocks, whole;
    for (size_t k = 0; k < options->n_recordings; k++) {
        const struct recording *r = &options->recordings[k];
        struct trial *trial = &quest->residuals.trials[k];
        memset(trial->cached_tokens, 0, r->n * sizeof *trial->cached_tokens);
        if (recording_peak_blocks(r, trial->cached_tokens, block_tokens, &whole, error) < 0)
            return error->code;
        memcpy(value, quest->found->start, sizeof value);
        value[CACHE_HIT] = 0;
        value[BLOCKS] = fmax(value[BLOCKS], 4 * whole);
        if (trial_fly(&options->setting, r, value, 0, trial, error) < 0 ||
            recording_peak_blocks(r, trial->cached_tokens, block_tokens, &blocks, error) < 0)
            return error->code;
        quest->waits |= count_waiting(r, trial) >= ifl_max((size_t)5, r->n_fit / 50);
        quest->peak_blocks = fmax(quest->peak_blocks, blocks);
        quest->whole_blocks = fmax(quest->whole_blocks, whole);
    }
    return 0;
}

/* ---- what is fitted, and what is not ---- */

IFL_PRINTF(4, 5)
static void leave(struct identified *found, enum parameter p, enum finding_state state,
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
        leave(quest->found, p, UNKNOWN, "acts as %s in every step of one model",
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
    leave(quest->found, FRONT_PROMPT_TOKEN, UNKNOWN, "acts as %s where all prompts have %d tokens",
          parameter_rows[FRONT_REQUEST].key, n_tokens);
}

static void choose(struct quest *quest)
{
    struct identified *found = quest->found;
    const struct config *config = quest->options->setting.config;
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        quest->fit.is_free[p] = !quest->options->hold[p];
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (quest->options->hold[p])
            leave(found, p, GIVEN, "held");
    quest->fit.is_free[HOST_LAYER] = quest->fit.is_free[ALLREDUCE_LATENCY] = false;
    leave_twin(quest, HOST_LAYER);
    leave_twin(quest, ALLREDUCE_LATENCY);
    leave_front_twin(quest);
    if (config->tensor_parallel < 2) {
        quest->fit.is_free[ALLREDUCE_RATE] = false;
        leave(found, ALLREDUCE_RATE, GIVEN, "one GPU: there is no all-reduce");
        leave(found, ALLREDUCE_LATENCY, GIVEN, "one GPU: there is no all-reduce");
    } else if (!quest->options->release[ALLREDUCE_RATE]) {
        quest->fit.is_free[ALLREDUCE_RATE] = false;
        leave(found, ALLREDUCE_RATE, GIVEN, "the hardware profile says it");
    }
    if (config->data_parallel < 2 || !quest->options->release[EXCHANGE_RATE]) {
        quest->fit.is_free[EXCHANGE_RATE] = false;
        leave(found, EXCHANGE_RATE, GIVEN,
              config->data_parallel < 2 ? "no data-parallel ranks: there is no exchange"
                                        : "the configuration or the profile says it");
    }
    if (!quest->options->release[CACHE_HIT]) {
        quest->fit.is_free[CACHE_HIT] = false;
        leave(found, CACHE_HIT, GIVEN,
              found->start[CACHE_HIT] > 0 ? "the configuration says it" : "not looked for");
    }
    if (!quest->options->release[PROMPT_FRAC] || quest->fit.is_free[CACHE_HIT]) {
        quest->fit.is_free[PROMPT_FRAC] = false;
        leave(found, PROMPT_FRAC, GIVEN,
              quest->options->hold[PROMPT_FRAC]    ? "held"
              : quest->fit.is_free[CACHE_HIT]      ? "a share in a cache is looked for"
              : quest->fit.is_free[ALLREDUCE_RATE] ? "the rate of all-reduces is looked for"
                                                   : "the run asks for no other");
    }
    if (quest->has_blocks && !quest->options->release[BLOCKS]) {
        quest->fit.is_free[BLOCKS] = false;
        leave(found, BLOCKS, GIVEN, "the configuration says it");
    } else if (!quest->waits) {
        quest->fit.is_free[BLOCKS] = false;
        found->of[BLOCKS].state = UNKNOWN; /* leave_unasked_pool */
    }
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
        leave(quest->found, like, FOUND, "stands for %s, too", row->key);
    }
    if (fit->high[p] < row->low)
        leave(quest->found, p, UNKNOWN, "less than %g fits: another model or GPU", row->low);
    else if (isfinite(fit->high[p]))
        leave(quest->found, p, UNKNOWN, "90%% from %.4g to %.4g %s is too wide%s",
              fmax(fit->low[p], row->low) * row->shown, fit->high[p] * row->shown, row->unit, text);
    else
        leave(quest->found, p, UNKNOWN, "the recordings leave it no interval%s", text);
    open_range(quest->found, p, fmax(fit->low[p], row->low), most_open(quest, p, fit->high[p]));
}

/* Leaves out the last parameter that the recordings do not determine. 1, 0 if there is none. */
static int leave_one(struct quest *quest, struct ifl_error *error)
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

/* The host may take less a layer than its profile says: less a step than nothing. */
static double least_value(const struct quest *quest, enum parameter p)
{
    return p == HOST_STEP ? -quest->layers * quest->found->start[HOST_LAYER]
                          : parameter_rows[p].low;
}

/* A parameter below its least value stays there. 1, 0 if there is none. */
static int bound_one(struct quest *quest, struct ifl_error *error)
{
    struct fit *fit = &quest->fit;
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        const double low = least_value(quest, p);
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
        finding->low = fmax(fit->low[p], least_value(quest, p));
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

/* Less a step than nothing is less a layer. */
static void split_host(struct quest *quest)
{
    struct finding *step = &quest->found->of[HOST_STEP], *layer = &quest->found->of[HOST_LAYER];
    if (step->value >= 0 || quest->layers <= 0)
        return;
    const double start = quest->found->start[HOST_LAYER], per = 1 / quest->layers;
    const double value = step->state == AT_BOUND ? 0 : fmax(0, start + step->value * per);
    *layer = (struct finding){step->state, value, fmax(0, start + step->low * per),
                              start + step->high * per, ""};
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

/* A pool that the recordings leave open by half is not determined. */
static void leave_pool(struct quest *quest)
{
    struct fit *fit = &quest->fit;
    if (!fit->is_free[BLOCKS] || fit->high[BLOCKS] < 1.5 * fit->low[BLOCKS])
        return;
    leave(quest->found, BLOCKS, UNKNOWN, "90%% from %.0f to %.0f blocks: too wide",
          fit->low[BLOCKS], fit->high[BLOCKS]);
    open_range(quest->found, BLOCKS, fit->low[BLOCKS], fit->high[BLOCKS]);
    fit->is_free[BLOCKS] = false;
}

/* Preempted requests give blocks back: the least pool may be below what seems in use. */
static int leave_unasked_pool(struct quest *quest, struct ifl_error *error)
{
    const double low = quest->peak_blocks, high = fmax(low, quest->whole_blocks);
    bool shows = false;
    double least = 0;
    if (quest->found->of[BLOCKS].state != UNKNOWN || quest->waits)
        return 0;
    int rc = profile_least(&quest->fit, BLOCKS, 0.8 * low, 1.15 * high, &least, &shows, error);
    leave(quest->found, BLOCKS, UNKNOWN, "%s for memory; at least %.0f",
          shows ? "too few requests wait" : "no request waits", least = fmin(least, low));
    least = shows ? least : fmax(least, quest->low_blocks); /* of the engine's rule */
    open_range(quest->found, BLOCKS, least, quest->high_blocks);
    return rc;
}

/* The front end shows in requests that find a free server. */
static int leave_front(struct quest *quest, struct ifl_error *error)
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
            leave(quest->found, p, UNKNOWN, "%zu requests find a free server, expected %d", n,
                  RECORDING_LEAST);
            open_range(quest->found, p, 0, longest_front(quest, p));
        }
    return rc;
}

/* The exchange shows where it takes a part of a step. */
static int probe_exchange(struct quest *quest, struct ifl_error *error)
{
    bool acts;
    if (!quest->fit.is_free[EXCHANGE_RATE])
        return 0;
    const int rc = fit_probe_exchange(&quest->fit, &acts, error);
    if (rc == 0 && !acts) {
        quest->fit.is_free[EXCHANGE_RATE] = false;
        leave(quest->found, EXCHANGE_RATE, UNKNOWN,
              "at an eighth of it no time per token would grow by 1%%");
        open_range(quest->found, EXCHANGE_RATE, quest->fit.value[EXCHANGE_RATE] / 8,
                   quest->fit.value[EXCHANGE_RATE]);
    }
    return rc;
}

/* All but whether prompts' kernels are others. */
static int settle(struct quest *quest, struct ifl_error *error)
{
    const double least = quest->peak_blocks * 0.65, most = quest->whole_blocks * 1.5;
    int rc = leave_front(quest, error);
    if (rc == 0)
        rc = fit_find(&quest->fit, least, most, error);
    if (rc == 0)
        rc = leave_front(quest, error);
    while (rc == 0 && ((rc = leave_one(quest, error)) > 0 || (rc = bound_one(quest, error)) > 0))
        rc = 0;
    if (rc == 0)
        rc = fit_refine(&quest->fit, error);
    while (rc == 0 && (rc = bound_one(quest, error)) > 0)
        rc = 0;
    return rc;
}

/* Prompts' kernels are the profile's unless the run says otherwise in a score test of 5%. The rate
 * of all-reduces acts on steps with prompts as they do: no run tells the two apart. */
static int ask_prompts(struct quest *quest, bool *asks, struct ifl_error *error)
{
    double sds = 0;
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
    if (rc == 0 && !explains)
        rc = profile_test(&quest->fit, PROMPT_FRAC, &sds, error);
    *asks = fabs(sds) > gsl_cdf_tdist_Pinv(0.975, (double)(quest->residuals.n_spans - 1));
    return rc;
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
    leave(quest->found, PROMPT_FRAC, FOUND, "%s", "");
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
        leave(quest->found, PROMPT_FRAC, GIVEN, "90%% from %.4g to %.4g hold it",
              fit->low[PROMPT_FRAC], fit->high[PROMPT_FRAC]);
    else if (is_found)
        leave(quest->found, PROMPT_FRAC, GIVEN, "no kernels take %.2g of the profile's time", frac);
    were[PROMPT_FRAC] = of[PROMPT_FRAC];
    memcpy(of, were, sizeof were);
    memcpy(before.along, fit->along, sizeof before.along);
    before.n_flights = fit->n_flights;
    *fit = before;
    return fit_predict(fit, fit->value, error);
}

static int solve(struct quest *quest, struct ifl_error *error)
{
    bool asks = false;
    int rc = probe_exchange(quest, error);
    if (rc == 0)
        rc = settle(quest, error);
    if (rc == 0)
        rc = ask_prompts(quest, &asks, error);
    if (rc == 0 && asks)
        rc = settle_prompts(quest, error);
    if (rc == 0)
        leave_pool(quest);
    return rc == 0 ? leave_unasked_pool(quest, error) : rc;
}

int identify(const struct identify_options *options, struct identified *found,
             struct ifl_error *error)
{
    struct quest quest = {.options = options,
                          .found = found,
                          .residuals = {.setting = &options->setting,
                                        .recordings = options->recordings,
                                        .n_recordings = options->n_recordings}};
    *found = (struct identified){0};
    int rc = residuals_open(&quest.residuals, error);
    if (rc == 0)
        rc = fit_open(&quest.fit, &quest.residuals, error);
    if (rc == 0)
        rc = load_start(&quest, error);
    if (rc == 0)
        rc = look_for_waits(&quest, error);
    if (rc == 0) {
        choose(&quest);
        memcpy(quest.fit.value, found->start, sizeof found->start);
        if (quest.fit.is_free[BLOCKS])
            quest.fit.value[BLOCKS] = sqrt(quest.peak_blocks * quest.whole_blocks);
        else if (found->of[BLOCKS].state == UNKNOWN)
            quest.fit.value[BLOCKS] = fmax(found->start[BLOCKS], ceil(quest.peak_blocks));
        rc = solve(&quest, error);
    }
    if (rc == 0)
        rc = apart_check(options, quest.fit.value, quest.residuals.trials, error);
    if (rc == 0) {
        keep_findings(&quest);
        split_host(&quest);
        keep_deployment(&quest);
        rc = identify_depend(options, found, error);
    }
    free(quest.machine);
    fit_close(&quest.fit);
    residuals_close(&quest.residuals);
    return rc;
}
