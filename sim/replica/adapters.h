/* The low-rank adapters of a replica (LoRA; Hu et al. 2021): those that requests on the device use,
 * where their weights are, and those that the next step loads onto the device.
 *
 *   slots  the device has room for device_slots adapters beside the K/V, the host for host_slots
 *          (vLLM, max_loras and max_cpu_loras: lora/worker_manager.py, LRUCacheWorkerLoRAManager).
 *          A step loads the adapters of its sequences that are not on the device. If all slots are
 *          taken, the least recently used adapters are removed, but none that the step uses. An
 *          adapter that is neither on the device nor in host memory is read from disk.
 *   pool   an adapter takes blocks of the K/V pool as long as a request on the device uses it
 *          (S-LoRA, MLSys 2024, 5.1: unified paging). All adapters are in host memory.
 *
 * Blocks are taken and given back in replica_blocks.c. A replica without adapters has n = 0, and
 * calls no function of this file. */
#ifndef SIM_REPLICA_ADAPTERS_H
#define SIM_REPLICA_ADAPTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/assert.h"
#include "inflight/executor.h"

struct adapter { /* as the configuration describes it */
    int32_t rank;
    int32_t n_blocks; /* blocks of the K/V pool that the adapter takes; read if in_pool */
    int64_t n_bytes;
};

struct adapters_options {
    uint32_t n;               /* number of adapters; 0: the replica has none */
    const struct adapter *of; /* [n + 1], by number; outlives the replica */
    bool in_pool;
    int32_t device_slots, host_slots; /* 0: a slot for every adapter */
};

struct adapter_state {
    int32_t n_users; /* requests on the device */
    bool on_device, on_host;
    bool pending;     /* in `loads` */
    uint64_t used_in; /* number of the last described step with this adapter */
    uint32_t *blocks; /* [n_blocks] the blocks taken, if blocks of the pool have numbers */
};

struct adapters {
    int32_t n_used, n_used_blocks;
    struct adapters_options fixed;
    struct adapter_state *of; /* [n + 1] */
    uint32_t *numbers;        /* storage behind of[].blocks, one adapter after another */
    int32_t n_on_device, n_on_host;
    uint64_t n_steps;
    uint32_t *step;  /* [n_step] distinct adapters of the step being described, in order of its
                        sequences */
    uint32_t *loads; /* [n_loads] adapters that the next step loads onto the device */
    size_t n_step, n_loads;
    size_t most_step; /* largest n_step so far */
    uint32_t last;    /* adapter of the request added last to the step being described; 0: none */
};

/* Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for adapters_destroy, and means that there are
 * no adapters. */
int adapters_create(struct adapters *adapters, const struct adapters_options *options);
void adapters_destroy(struct adapters *adapters);

/* ---- requests on the device ---- */

/* Blocks that the start of a request with this adapter takes for the adapter. 0 if adapter is 0
 * (none), if the adapter has its blocks already, or if adapters take no blocks of the pool. */
static inline int32_t adapters_lack(const struct adapters *adapters, uint32_t adapter)
{
    return adapter > 0 && adapters->fixed.in_pool && adapters->of[adapter].n_users == 0
               ? adapters->fixed.of[adapter].n_blocks
               : 0;
}
/* Blocks that the adapter takes while any request uses it; 0 if adapters take no blocks of the
 * pool. */
static inline int32_t adapters_most(const struct adapters *adapters, uint32_t adapter)
{
    return adapter > 0 && adapters->fixed.in_pool ? adapters->fixed.of[adapter].n_blocks : 0;
}
/* A request with this adapter comes to the device (start) or leaves the device (stop). */
void adapters_start(struct adapters *adapters, uint32_t adapter);
void adapters_stop(struct adapters *adapters, uint32_t adapter);

/* ---- the step that is described ---- */

/* Describes the adapters of a step: call adapters_open_step once, then adapters_add for each
 * request in the order of the step, with the new tokens of all its sequences together, then
 * adapters_close_step. The latter adds the loads to the totals and empties `loads`. */
void adapters_open_step(struct adapters *adapters, struct ifl_adapter_totals *totals);
void adapters_add(struct adapters *adapters, uint32_t adapter, int32_t n_tokens,
                  struct ifl_adapter_totals *totals);
void adapters_close_step(struct adapters *adapters, struct ifl_adapter_totals *totals);

#endif
