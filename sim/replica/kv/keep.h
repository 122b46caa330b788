/* How many tokens of its K/V a sequence keeps. Only an engine computes which ones
 * (run/engine_keep.h).
 *
 *   SnapKV         (Li et al., NeurIPS 2024; code e216ddc)  once, at the end of the prompt: keeps
 *                  the `window` last tokens, and of the other tokens those that the window attends
 *                  to most
 *   PyramidKV      (Cai et al., 2024; KVCache-Factory c97f9d7)  the same, with budgets that fall
 *                  from the first layer to the last
 *   H2O            (Zhang et al., NeurIPS 2023; code ac75c2a)  as each step ends: keeps the
 *                  `window` last tokens and those that have drawn most attention so far
 *   StreamingLLM   (Xiao et al., ICLR 2024; code 2e50426)  as each step ends: keeps the first and
 *                  the last tokens
 *
 * No method gives up K/V before the prompt is computed: the end of the prompt votes (its attention
 * decides) which tokens stay.
 *
 * A slot is room for one token in all layers and KV heads; heads may keep different tokens in the
 * same slot. The kept K/V is
 *
 *   gathered  moved to the first slots; the blocks behind them are given back
 *   in place  not moved. A block is given back only if no head keeps any of its tokens: never under
 *             votes; under StreamingLLM the blocks between the first tokens and the last */
#ifndef SIM_REPLICA_KV_KEEP_H
#define SIM_REPLICA_KV_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "replica/kv/block.h"

enum keep_method { KEEP_ALL, KEEP_SNAPKV, KEEP_PYRAMIDKV, KEEP_H2O, KEEP_STREAMING };
enum keep_place { KEEP_GATHERED, KEEP_IN_PLACE };
/* PyramidKV: one block table for all layers, as large as what the first layer keeps; or one table
 * per layer. */
enum keep_tables { KEEP_TABLE_OF_ALL, KEEP_TABLE_A_LAYER };
enum keep_pooling { KEEP_POOL_MEAN, KEEP_POOL_MAX };

struct keep {
    enum keep_method method;
    enum keep_place place;
    enum keep_tables tables;
    enum keep_pooling pooling;
    int32_t budget_tokens; /* tokens that a sequence keeps in all; 0: all tokens */
    int32_t window_tokens; /* of these, the last tokens */
    int32_t sink_tokens;   /* StreamingLLM: of these, the first tokens; the rest are the last
                              tokens */
    int32_t kernel_tokens; /* width of the window over which votes are pooled */
    int32_t beta;          /* PyramidKV: the last layer keeps (budget - window) / beta */
    int32_t n_layers;      /* 0: not known */
};

/* True if some sequence of at most max_tokens tokens gives up K/V. */
static inline bool keep_may_give_up(const struct keep *keep, int32_t max_tokens)
{
    return keep->method != KEEP_ALL && keep->budget_tokens > 0 && keep->budget_tokens < max_tokens;
}

/* True if each further token takes the slot of another token once the budget is full. */
static inline bool keep_each_step(const struct keep *keep)
{
    return keep->method == KEEP_H2O || keep->method == KEEP_STREAMING;
}

/* What becomes of the K/V of a prompt when its last step ends. */
struct kept {
    int32_t n_slots;    /* slots that hold K/V afterwards; the others are given up */
    int32_t n_unread;   /* of these, slots that attention does not read (a mean over layers) */
    int32_t n_blocks;   /* blocks held afterwards, at most as many as before */
    int32_t n_moved;    /* slots whose K/V is copied to another slot */
    int32_t n_voted;    /* tokens whose keys are compared with the window again */
    int32_t most_slots; /* most slots that the sequence has between steps from then on; INT32_MAX:
                           no bound */
};

/* Returns what is kept of a prompt of n_tokens tokens, all with K/V in the first slots. */
struct kept keep_of_prompt(const struct keep *keep, int32_t n_tokens, struct kv_block block);

#endif
