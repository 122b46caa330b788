#include "replica/module.h"

#include <stdlib.h>
#include <string.h>

/* Stands before the parameters. What modules own begins at multiples of MODULE_ALIGNMENT bytes. */
enum { MODULE_ALIGNMENT = 16 };

struct head {
    _Alignas(MODULE_ALIGNMENT) const struct ifl_policy *policy;
    size_t n_bytes;                                          /* behind self */
    _Alignas(MODULE_ALIGNMENT) struct ifl_instance instance; /* last: modules find it from self */
};

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + MODULE_ALIGNMENT - 1) / MODULE_ALIGNMENT * MODULE_ALIGNMENT;
}

/* No address so far from a valid one is valid: a module that uses a part of which it has asked for
 * no bytes faults in its own call, which the guard names. */
static const uint64_t nowhere = (uint64_t)1 << 62;

/* Parameters, then the state, then the parts of the clients, then of the replicas. *n_bytes: of all
 * of them. */
static struct ifl_instance lay_out(const struct ifl_policy *policy, uint32_t n_clients,
                                   uint32_t n_replicas, size_t *n_bytes)
{
    const uint64_t state = aligned(policy->params_bytes);
    const uint64_t clients = state + aligned(policy->state_bytes);
    const uint64_t replicas = clients + n_clients * aligned(policy->client_bytes);
    *n_bytes = replicas + n_replicas * aligned(policy->replica_bytes);
    return (struct ifl_instance){
        .state_offset = policy->state_bytes ? state : nowhere,
        .client_offset = policy->client_bytes ? clients : nowhere,
        .client_stride = aligned(policy->client_bytes),
        .replica_offset = policy->replica_bytes ? replicas : nowhere,
        .replica_stride = (uint32_t)aligned(policy->replica_bytes),
        .n_replicas = n_replicas,
    };
}

int module_create(struct module *module, const struct module_config *config,
                  const struct ifl_limits *limits, size_t *parts_bytes, struct ifl_error *error)
{
    return module_create_router(module, config, limits, 0, parts_bytes, error);
}

int module_create_router(struct module *module, const struct module_config *config,
                         const struct ifl_limits *limits, uint32_t n_replicas, size_t *parts_bytes,
                         struct ifl_error *error)
{
    const struct ifl_policy *policy = config->policy;
    size_t n_bytes;
    struct ifl_instance at = lay_out(policy, limits->n_clients, n_replicas, &n_bytes);
    struct head *head = calloc(1, sizeof *head + n_bytes + 1);
    module->policy = policy;
    if (!head)
        return ifl_fail_nomem(error);
    at.part_offset = policy->request_bytes ? *parts_bytes : nowhere;
    *head = (struct head){policy, n_bytes, at};
    *parts_bytes += aligned(policy->request_bytes);
    module->self = head + 1;
    if (policy->params_bytes)
        memcpy(module->self, config->params, policy->params_bytes);
    return policy->init ? policy->init(module->self, limits, error) : 0;
}

const char *module_kind_name(enum ifl_kind kind)
{
    static const char *const names[IFL_N_KINDS] = {"batching", "order", "admit", "preempt",
                                                   "evict",    "route", "scale", "draft"};
    return (unsigned)kind < IFL_N_KINDS ? names[kind] : "unknown";
}

size_t module_bytes_of(const void *self)
{
    return ((const struct head *)self - 1)->n_bytes;
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
