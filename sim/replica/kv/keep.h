/* How many tokens of its K/V a sequence keeps. Only an engine computes which ones
 * (run/engine_keep.h).
 *
 *   SnapKV         (Li et al., NeurIPS 2024; code e216ddc)  once, at the end of the prompt: the
 *                  `window` last tokens, and of the others those that the window attends to most
 *   PyramidKV      (Cai et al., 2024; KVCache-Factory c97f9d7)  the same, with budgets that fall
 *                  from the first layer to the last
 *   H2O            (Zhang et al., NeurIPS 2023; code ac75c2a)  as each step ends: the `window` last
 *                  tokens and those that have drawn most attention so far
 *   StreamingLLM   (Xiao et al., ICLR 2024; code 2e50426)  as each step ends: the first and the
 *                  last tokens
 *
 * No method gives up K/V before the prompt is computed: the votes come from its end.
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
/* PyramidKV: one block table for all layers, which holds as much as the first layer keeps; or a
 * table a layer. */
enum keep_tables { KEEP_TABLE_OF_ALL, KEEP_TABLE_A_LAYER };
enum keep_pooling { KEEP_POOL_MEAN, KEEP_POOL_MAX };

struct keep {
    enum keep_method method;
    enum keep_place place;
    enum keep_tables tables;
    enum keep_pooling pooling;
    int32_t budget_tokens; /* that a sequence keeps in all; 0: all */
    int32_t window_tokens; /* the last ones, of these */
    int32_t sink_tokens;   /* StreamingLLM: the first ones, of these; the rest are the last */
    int32_t kernel_tokens; /* over which votes are pooled */
    int32_t beta;          /* PyramidKV: the last layer keeps (budget - window) / beta */
    int32_t n_layers;      /* 0: not known */
};

/* True if some sequence of at most max_tokens tokens gives up K/V. */
static inline bool keep_may_give_up(const struct keep *keep, int32_t max_tokens)
{
    return keep->method != KEEP_ALL && keep->budget_tokens > 0 && keep->budget_tokens < max_tokens;
}

/* True if each further token takes the slot of another one, once the budget is full. */
static inline bool keep_each_step(const struct keep *keep)
{
    return keep->method == KEEP_H2O || keep->method == KEEP_STREAMING;
}

/* What becomes of the K/V of a prompt as its last step ends. */
struct kept {
    int32_t n_slots;    /* that hold K/V afterwards; the others are given up */
    int32_t n_unread;   /* of them, that attention does not read (a mean over layers) */
    int32_t n_blocks;   /* that are held afterwards; at most those before */
    int32_t n_moved;    /* slots with K/V that is copied to another one */
    int32_t n_voted;    /* tokens with keys that the window is compared with again */
    int32_t most_slots; /* that it ever has between steps; INT32_MAX: no bound */
};

/* n_tokens: of the prompt, all with K/V in the first slots. */
struct kept keep_of_prompt(const struct keep *keep, int32_t n_tokens, struct kv_block block);

#endif
