/* Checks what a replica needs if it swaps K/V while steps run. */
#include "config/tiers.h"

#include <string.h>

/* Other modules decide anew in each plan which requests are on the device, and do not see what
 * those on their way hold: requests could change places for ever. */
static bool sees_swaps(const struct config *config)
{
    const struct module_config *modules = config->serving.modules;
    const struct ifl_policy *batching = modules[IFL_BATCHING].policy,
                            *preempt = modules[IFL_PREEMPT].policy;
    return batching && preempt && strcmp(batching->name, "prefill-first") == 0 &&
           strcmp(preempt->name, "tail") == 0;
}

static const char *against(const struct config *config)
{
    if (!sees_swaps(config))
        return "serving.batching is not prefill-first, or serving.preempt not tail, expected these";
    if (config->executor != EXECUTOR_SIM)
        return "executor is an engine, expected sim: an engine swaps within its steps";
    if (config_has_tiers(config))
        return "serving.kv.tiers is set, expected none";
    return config_against_moves(config);
}

int swap_check(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct node *at = tree_at(root, "serving.swap");
    if (!config_swaps_apart(config) || !against(config))
        return 0;
    return tree_fail(at ? at : root, error, "%s, where swaps overlap (serving.swap)",
                     against(config));
}
