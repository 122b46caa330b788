/* Sets the values from which the search begins. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "config/tiers.h"
#include "identify/quest.h"
#include "inflight/minmax.h"

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

int quest_load_machine(const struct config *config, struct profile_shelf *profiles,
                       struct machine *machine, struct ifl_limits *limits, struct ifl_error *error)
{
    char arithmetic[MACHINE_TEXT_BYTES];
    int rc = machine_load(machine, config, profiles, error);
    if (rc == 0)
        rc = machine_size_pool(machine, config, limits, arithmetic, error);
    if (rc == 0)
        limits->n_blocks += config->serving.kv.null_blocks;
    return rc;
}

/* A request that the configuration refuses has no latency to compare: it is of another one. */
static int check_lengths(const struct identify_options *options, int32_t most_tokens,
                         struct ifl_error *error)
{
    const size_t n = options->n_recordings + options->n_predicted;
    for (size_t k = 0; k < n; k++) {
        const struct recording *r = &options->recordings[k];
        size_t n_long = 0, first = 0;
        int64_t first_tokens = 0;
        for (size_t i = 0; i < r->n; i++) {
            const int64_t tokens = (int64_t)recording_prompt(r, i) + r->trace.n_output[i];
            if (tokens <= most_tokens || n_long++ > 0)
                continue;
            first = i;
            first_tokens = tokens;
        }
        if (n_long > 0)
            return ifl_fail_at(error, r->path, 0, 0,
                               "%zu of %zu requests are longer than the %d tokens that the "
                               "configuration serves, the first is request %zu with %lld: expected "
                               "the model, or the serving.max_model_len, of the recorded run",
                               n_long, r->n, most_tokens, first + 1, (long long)first_tokens);
    }
    return 0;
}

int quest_start(struct quest *quest, struct ifl_error *error)
{
    const struct config *config = quest->options->setting.config;
    struct machine *machine = quest->machine = malloc(sizeof *machine);
    struct ifl_limits limits;
    int rc = machine ? quest_load_machine(config, quest->options->setting.profiles, machine,
                                          &limits, error)
                     : ifl_fail_nomem(error);
    if (rc == 0)
        rc = check_lengths(quest->options, limits.max_model_tokens, error);
    if (rc == 0)
        rc = check_cache(quest, error);
    if (rc == 0)
        rc = count_pool(quest, error);
    if (rc == 0) {
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

/* Of a server that finishes no request at all with all the memory that they could use, there is
 * nothing to find. */
static int check_served(const struct recording *r, const struct trial *trial,
                        struct ifl_error *error)
{
    for (size_t i = 0; i < r->n; i++)
        if (!isnan(trial->of[TTFT][i]))
            return 0;
    return ifl_fail_at(error, r->path, 0, 0,
                       "the configuration serves none of the %zu requests, however much memory "
                       "there is, expected the configuration of the recorded run",
                       r->n);
}

/* Where requests wait, the pool is as large as what was in use then, between no hits and all. A
 * deployment's share in a cache is left out: it lies in blocks of each request's own. */
int quest_look_for_waits(struct quest *quest, struct ifl_error *error)
{
    double cached_tokens = 0, prompt_tokens = 0;
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
            check_served(r, trial, error) < 0 ||
            recording_peak_blocks(r, trial->cached_tokens, block_tokens, &blocks, error) < 0)
            return error->code;
        for (size_t i = 0; i < r->n_fit; i++) {
            cached_tokens += trial->cached_tokens[i];
            prompt_tokens += recording_prompt(r, i);
        }
        quest->waits |= count_waiting(r, trial) >= ifl_max((size_t)5, r->n_fit / 50);
        quest->peak_blocks = fmax(quest->peak_blocks, blocks);
        quest->whole_blocks = fmax(quest->whole_blocks, whole);
    }
    quest->cached_frac = cached_tokens / prompt_tokens;
    return 0;
}
