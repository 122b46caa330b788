#include "replica/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

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

/* What the module asks for, whatever its size. */
static double bytes_of(const struct ifl_policy *policy, uint32_t n_clients, uint32_t n_replicas)
{
    return (double)policy->params_bytes + (double)policy->state_bytes +
           (double)n_clients * (double)policy->client_bytes +
           (double)n_replicas * (double)policy->replica_bytes;
}

/* More than any machine has, and more than sums of sizes may hold. */
static bool wants_too_much(const struct ifl_policy *policy, uint32_t n_clients, uint32_t n_replicas)
{
    const double most = 1ull << 48, most_of_request = 1u << 31;
    return bytes_of(policy, n_clients, n_replicas) > most ||
           (double)policy->request_bytes > most_of_request;
}

/* What the module cannot begin with is at the key that names it. */
IFL_COLD static void blame_key(const struct module_config *config, struct ifl_error *error)
{
    if (error->file[0] || !config->file[0])
        return;
    snprintf(error->file, sizeof error->file, "%s", config->file);
    error->line = config->line;
    error->column = config->column;
}

IFL_COLD static int fail_nomem(const struct module_config *config, uint32_t n_clients,
                               uint32_t n_replicas, struct ifl_error *error)
{
    const struct ifl_policy *policy = config->policy;
    ifl_fail(error, IFL_E_NOMEM,
             "out of memory: %s policy %s asks for %.0f bytes (state, and its parts of clients "
             "and replicas), and for %.0f bytes of each request",
             module_kind_name(policy->kind), policy->name, bytes_of(policy, n_clients, n_replicas),
             (double)policy->request_bytes);
    blame_key(config, error);
    return error->code;
}

/* A module that ships with inflight says no more than that memory is out; what the init of a
 * plug-in says is told with its name (config/guarded_policy.c). */
IFL_COLD static void blame_module(const struct ifl_policy *policy, struct ifl_error *error)
{
    struct ifl_error bare;
    ifl_fail_nomem(&bare);
    if (strcmp(error->text, bare.text) == 0)
        ifl_fail(error, IFL_E_NOMEM, "%s: init of %s policy %s", bare.text,
                 module_kind_name(policy->kind), policy->name);
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
    module->policy = policy;
    if (wants_too_much(policy, limits->n_clients, n_replicas))
        return fail_nomem(config, limits->n_clients, n_replicas, error);
    struct ifl_instance at = lay_out(policy, limits->n_clients, n_replicas, &n_bytes);
    struct head *head = calloc(1, sizeof *head + n_bytes + 1);
    if (!head)
        return fail_nomem(config, limits->n_clients, n_replicas, error);
    at.part_offset = policy->request_bytes ? *parts_bytes : nowhere;
    *head = (struct head){policy, n_bytes, at};
    *parts_bytes += aligned(policy->request_bytes);
    module->self = head + 1;
    if (policy->params_bytes)
        memcpy(module->self, config->params, policy->params_bytes);
    const int rc = policy->init ? policy->init(module->self, limits, error) : 0;
    if (rc == IFL_E_NOMEM)
        blame_module(policy, error);
    if (rc < 0)
        blame_key(config, error);
    return rc;
}

const char *module_kind_name(enum ifl_kind kind)
{
    static const char *const names[IFL_N_KINDS] = {"batching", "order", "admit", "preempt",
                                                   "evict",    "route", "scale", "draft"};
    return (unsigned)kind < IFL_N_KINDS ? names[kind] : "unknown";
}

/* Plug-ins' calls are marked by the instance (config/guarded_policy.c), and here is none yet. */
int32_t module_most_drafts(const struct module_config *config)
{
    const struct ifl_policy *policy = config->policy;
    char name[128];
    if (!policy || !policy->ops.draft->ask)
        return 0;
    snprintf(name, sizeof name, "%s policy %.64s", module_kind_name(policy->kind), policy->name);
    const struct guard_call call = {name, "most"};
    const struct guard_call *before = guard_enter(&call);
    const int32_t most = policy->ops.draft->most(config->params);
    guard_leave(before);
    return most;
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
