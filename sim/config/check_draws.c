#include "config/check_draws.h"

#include <string.h>

#include "base/tree.h"
#include "config/registry.h"

/* The built-in modules that call ifl_policy_draw or ifl_fleet_draw. */
static const char *const drawing[] = {"random",     "power-of-two", "scores",
                                      "block-cost", "prefix-trie",  "ngram"};
enum { N_DRAWING = sizeof drawing / sizeof *drawing };

static bool module_draws(const struct ifl_policy *policy)
{
    size_t i = 0;
    if (!policy || !registry_is_builtin(policy))
        return policy;
    while (i < N_DRAWING && strcmp(drawing[i], policy->name) != 0)
        i++;
    return i < N_DRAWING;
}

/* Of a pool; a router that has one replica is not asked. */
static bool modules_draw(const struct serving_config *serving, bool routes)
{
    bool draws = false;
    for (size_t i = 0; i < N_MODULES && !draws; i++)
        draws = (i != IFL_ROUTE || routes) && module_draws(serving->modules[i].policy);
    return draws;
}

static bool clients_draw(const struct workload_config *workload)
{
    const struct retries *retries = &workload->retries;
    return workload->arrivals.process == IFL_ARRIVE_POISSON ||
           workload->arrivals.process == IFL_ARRIVE_GAMMA || workload->window.shuffle ||
           workload->patience.process == PATIENCE_EXPONENTIAL ||
           workload->patience.process == PATIENCE_LOGNORMAL ||
           (retries->most > 0 && retries->jitter_frac > 0);
}

/* Guesses that hold. */
static bool drafts_draw(const struct serving_config *serving)
{
    const struct ifl_policy *draft = serving->modules[IFL_DRAFT].policy;
    return draft && strcmp(draft->name, "none") != 0;
}

/* Also K/V that is lost as it moves. */
static bool replicas_draw(const struct config *config)
{
    const bool routes = config->n_pools > 0 || config->replicas > 1 || config->data_parallel > 1;
    bool draws = config_hands_over(config) && config->handover.fail_frac > 0;
    for (size_t i = 0; i < config_n_pools(config) && !draws; i++) {
        const struct serving_config *serving = &config_of_pool(config, i)->serving;
        draws = modules_draw(serving, routes) || drafts_draw(serving);
    }
    return draws;
}

int replications_check(const struct node *root, const struct config *config,
                       struct ifl_error *error)
{
    const struct node *node = tree_at(root, "replications");
    if (config->executor != EXECUTOR_SIM || config->replications < 2 ||
        clients_draw(&config->workload) || replicas_draw(config))
        return 0;
    return tree_fail(node ? node : root, error,
                     "replications are all the same where nothing is drawn, expected arrivals "
                     "poisson or gamma, workload.shuffle, a patience or back-offs that are drawn, "
                     "or a router or another module that draws");
}
