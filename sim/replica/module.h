/* A module: a policy and one instance of it. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "inflight/policy.h"

#include "config/config.h"

struct module {
    const struct ifl_policy *policy;
    void *self; /* parameters, then state, then its part of each client and replica */
};

/* Owned by the caller; zeroed memory is valid for module_destroy. The module's part of a request
 * begins at offset *parts_bytes, which grows by its size. */
int module_create(struct module *module, const struct module_config *config,
                  const struct ifl_limits *limits, size_t *parts_bytes, struct ifl_error *error);
/* A router's has a part of each replica of the cluster, too. */
int module_create_router(struct module *module, const struct module_config *config,
                         const struct ifl_limits *limits, uint32_t n_replicas, size_t *parts_bytes,
                         struct ifl_error *error);
void module_destroy(struct module *module);

/* The policy of an instance that module_create has made. */
const struct ifl_policy *module_policy_of(const void *self);

#endif
