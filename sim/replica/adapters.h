/* The low-rank adapters of a replica (LoRA; Hu et al. 2021): those that requests on the device use,
 * where their weights are, and those that the next step loads onto the device.
 *
 *   slots  the device has room for device_slots adapters beside the K/V, the host for host_slots
 *          (vLLM, max_loras and max_cpu_loras: lora/worker_manager.py, LRUCacheWorkerLoRAManager).
 *          A step loads the adapters of its sequences that are not on the device. If all slots are
 *          taken the least recently used adapters give way, but none that the step uses. An adapter
 *          that is in neither place comes from the disk.
 *   pool   an adapter takes blocks of the K/V pool as long as a request on the device uses it
 *          (S-LoRA, MLSys 2024, 5.1: unified paging). All are in host memory.
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
    int32_t n_blocks; /* of the K/V pool, in `pool` */
    int64_t n_bytes;
};

struct adapters_options {
    uint32_t n;               /* 0: there are none */
    const struct adapter *of; /* [n + 1], by number; outlives the replica */
    bool in_pool;
    int32_t device_slots, host_slots; /* 0: one for each */
};

struct adapter_state {
    int32_t n_users; /* requests on the device */
    bool on_device, on_host;
    bool pending;     /* in `loads` */
    uint64_t used_in; /* the number of the last step with it */
    uint32_t *blocks; /* [n_blocks] of the pool, where blocks have numbers */
};

struct adapters {
    int32_t n_used, n_used_blocks;
    struct adapters_options fixed;
    struct adapter_state *of; /* [n + 1] */
    uint32_t *numbers;        /* of the blocks of all, one after another */
    int32_t n_on_device, n_on_host;
    uint64_t n_steps;
    uint32_t *step;  /* [n_step] different ones of the step that is described, in its order */
    uint32_t *loads; /* [n_loads] that the next step brings to the device */
    size_t n_step, n_loads;
    size_t most_step; /* of a step so far */
    uint32_t last;    /* of the step that is described */
};

/* 0, or IFL_E_NOMEM. Zeroed memory is valid for adapters_destroy, and has no adapters. */
int adapters_create(struct adapters *adapters, const struct adapters_options *options);
void adapters_destroy(struct adapters *adapters);

/* ---- requests on the device ---- */

/* Blocks that a start with the adapter takes for it; 0: none, it is there, or is no adapter. */
static inline int32_t adapters_lack(const struct adapters *adapters, uint32_t adapter)
{
    return adapter > 0 && adapters->fixed.in_pool && adapters->of[adapter].n_users == 0
               ? adapters->fixed.of[adapter].n_blocks
               : 0;
}
/* Blocks that it takes, whichever request uses it. */
static inline int32_t adapters_most(const struct adapters *adapters, uint32_t adapter)
{
    return adapter > 0 && adapters->fixed.in_pool ? adapters->fixed.of[adapter].n_blocks : 0;
}
/* A request that is computed with it comes to the device, or leaves it. */
void adapters_start(struct adapters *adapters, uint32_t adapter);
void adapters_stop(struct adapters *adapters, uint32_t adapter);

/* ---- the step that is described ---- */

/* The step's sequences, in its order: open, then add for each request with its new tokens, all its
 * sequences together, then close, which fills the totals and forgets what is brought. */
void adapters_open_step(struct adapters *adapters, struct ifl_adapter_totals *totals);
void adapters_add(struct adapters *adapters, uint32_t adapter, int32_t n_tokens,
                  struct ifl_adapter_totals *totals);
void adapters_close_step(struct adapters *adapters, struct ifl_adapter_totals *totals);

#endif
