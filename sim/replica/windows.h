/* Blocks of layers that have a window of attention, or a state, if these layers have blocks of
 * their own: vLLM's groups of layers (vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups; from
 * 0.9.1 on). A block then belongs to one group of layers: the group without a window, or one of the
 * groups with a window.
 *
 * The blocks that requests count belong to the group without a window. When a request starts, it
 * takes blocks for the other groups, too: for all tokens that it will have, at most for a window of
 * tokens. (The engine takes these blocks step by step.) The request gives them back when it leaves
 * the device, and shares them with no other request. */
#ifndef SIM_REPLICA_WINDOWS_H
#define SIM_REPLICA_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/minmax.h"
#include "replica/kv/block.h"
#include "replica/kv/pool.h"
#include "replica/live_request.h"

/* HOLD: layers with a window of attention hold all tokens, as the other layers do. GROUPS: they
 * hold only the window, in blocks of their own. */
enum kv_windows { KV_WINDOWS_HOLD, KV_WINDOWS_GROUPS };

struct windows_rule {
    int32_t n_groups;    /* groups with a window; 0: all layers share their blocks */
    int32_t most_blocks; /* most blocks of a sequence in a group */
    bool is_state;       /* the groups hold a state, which takes most_blocks from the first token
                            on */
};

struct windows {
    int32_t n_blocks;  /* blocks of such groups that requests hold */
    uint32_t *numbers; /* [n_blocks], if blocks have numbers; with room for all blocks of the
                          pool */
};

/* Blocks of windows that a request with n_seqs sequences of n_tokens tokens in the end takes. */
static inline int32_t windows_blocks(const struct windows_rule *rule, struct kv_block block,
                                     int32_t n_tokens, int32_t n_seqs)
{
    const int32_t filled = rule->is_state ? rule->most_blocks : kv_blocks_for(n_tokens, block);
    const int64_t n = (int64_t)n_seqs * rule->n_groups * ifl_min(filled, rule->most_blocks);
    return (int32_t)ifl_min(n, INT32_MAX / 2);
}

/* Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for windows_destroy. */
int windows_create(struct windows *windows, const struct windows_rule *rule,
                   const struct kv_pool *pool);
void windows_destroy(struct windows *windows);

/* Takes n blocks, which must be free, for r. */
void windows_take(struct windows *windows, struct kv_pool *pool, struct live_request *r, int32_t n);
void windows_drop(struct windows *windows, struct kv_pool *pool, struct live_request *r);

#endif
