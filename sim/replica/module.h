/* A module: a policy and one instance of it. */
#ifndef SIM_REPLICA_MODULE_H
#define SIM_REPLICA_MODULE_H

#include "inflight/policy.h"

/* Modules of a replica: one for each kind, then the admit modules that are asked after the first.
 */
enum { MAX_MORE_ADMITS = 7, N_MODULES = IFL_N_KINDS + MAX_MORE_ADMITS };

/* One policy module with its parameters, ready to be copied into an instance. */
struct module_config {
    const struct ifl_policy *policy;
    void *params; /* [policy->params_bytes], owned */
    /* of the key that names it, for errors; empty, 0 and 0: none does */
    char file[256];
    int line, column;
};

/* One instance for the cluster; of the other kinds each replica has one. */
static inline bool module_is_of_cluster(enum ifl_kind kind)
{
    return kind == IFL_ROUTE || kind == IFL_SCALE;
}

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

/* The most tokens that a draft module guesses for a request in a step, as its `most` says; 0: it is
 * none, or never guesses any. Needs no instance. */
int32_t module_most_drafts(const struct module_config *config);

/* "batching", "order" and so on. */
const char *module_kind_name(enum ifl_kind kind);
/* The policy of an instance that module_create has made. */
const struct ifl_policy *module_policy_of(const void *self);
/* Bytes from `self` on: parameters, state, and the parts of clients and replicas. */
size_t module_bytes_of(const void *self);

#endif
