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
    /* place of the key that names the module, for errors; empty, 0 and 0 if no key does */
    char file[256];
    int line, column;
};

/* True if the cluster has one instance of this kind of module; of the other kinds each replica has
 * an instance. */
static inline bool module_is_of_cluster(enum ifl_kind kind)
{
    return kind == IFL_ROUTE || kind == IFL_SCALE;
}

struct module {
    const struct ifl_policy *policy;
    void *self; /* parameters, then state, then the module's part of each client and replica */
};

/* The caller owns the module; zeroed memory is valid for module_destroy. The module's part of a
 * request begins at offset *parts_bytes; *parts_bytes grows by the size of the part. Returns 0 or
 * the code of `error`. */
int module_create(struct module *module, const struct module_config *config,
                  const struct ifl_limits *limits, size_t *parts_bytes, struct ifl_error *error);
/* As module_create; a router also has a part of each replica of the cluster. */
int module_create_router(struct module *module, const struct module_config *config,
                         const struct ifl_limits *limits, uint32_t n_replicas, size_t *parts_bytes,
                         struct ifl_error *error);
void module_destroy(struct module *module);

/* Returns the largest number of tokens that a draft module guesses for a request in a step, as its
 * `most` says; 0 if the module is no draft module or never guesses. No instance is needed. */
int32_t module_most_drafts(const struct module_config *config);

/* "batching", "order" and so on. */
const char *module_kind_name(enum ifl_kind kind);
/* The policy of an instance that module_create has made. */
const struct ifl_policy *module_policy_of(const void *self);
/* Bytes from `self` on: parameters, state, and the parts of clients and replicas. */
size_t module_bytes_of(const void *self);

#endif
