#include "module.h"

#include <stdlib.h>
#include <string.h>

/* Stands before the parameters. */
struct head {
    _Alignas(16) const struct ifl_policy *policy;
};

int module_create(struct module *module, const struct module_config *config,
                  const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct ifl_policy *policy = config->policy;
    const size_t offset = ifl_state_offset(policy->params_bytes);
    struct head *head = calloc(1, sizeof *head + offset + policy->state_bytes + 1);
    module->policy = policy;
    if (!head)
        return ifl_fail_nomem(error);
    head->policy = policy;
    module->self = head + 1;
    if (policy->params_bytes)
        memcpy(module->self, config->params, policy->params_bytes);
    return policy->init ? policy->init(module->self, limits, error) : 0;
}

const struct ifl_policy *module_policy_of(const void *self)
{
    return ((const struct head *)self - 1)->policy;
}

void module_destroy(struct module *module)
{
    if (!module->self)
        return;
    if (module->policy->finish)
        module->policy->finish(module->self);
    free((struct head *)module->self - 1);
    module->self = NULL;
}
