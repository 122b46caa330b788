/* Sequence groups: several answers to one prompt, generated in lockstep.
 *
 * The sequences share the full blocks of the prompt. Each has its own blocks behind these:
 *
 *     [shared 0 .. S-1] [column 0: sequences 0 .. n-1] [column 1: sequences 0 .. n-1] ...
 *
 * Until the prompt is computed there is only sequence 0. The last block of the prompt may be
 * partial. The sequences part with the first token behind the prompt: each sequence but the first
 * takes a copy of that block. (In vLLM's copy on write the last to write keeps the original.) */
#ifndef SIM_REPLICA_KV_GROUP_H
#define SIM_REPLICA_KV_GROUP_H

#include "inflight/error.h"
#include "inflight/request.h"

#include "replica/kv/block.h"

/* Full blocks of the prompt. */
static inline int32_t group_shared_blocks(const struct ifl_request *r, struct kv_block block)
{
    return (int32_t)kv_full_blocks((uint32_t)r->n_prompt, block);
}

/* Tokens of the prompt's last block if it is partial; 0 if it is full. */
static inline int32_t group_tail_tokens(const struct ifl_request *r, struct kv_block block)
{
    return (int32_t)kv_tail_tokens((uint32_t)r->n_prompt, block);
}

/* Blocks that n_tokens of each sequence take. */
static inline int32_t group_blocks(const struct ifl_request *r, int32_t n_tokens,
                                   struct kv_block block)
{
    const int32_t n = kv_blocks_for(n_tokens, block);
    if (!IFL_RARE(r->n_seqs > 1) || n_tokens <= r->n_prompt)
        return n;
    const int32_t n_shared = group_shared_blocks(r, block);
    const int64_t n_all = n_shared + (int64_t)r->n_seqs * (n - n_shared);
    return n_all < INT32_MAX ? (int32_t)n_all : INT32_MAX;
}

/* The capacity of a beam search: more than any number of tokens. Beams may need blocks at every
 * token (beams.h), so the step at which their blocks are full means nothing. */
#define GROUP_NO_CAPACITY ((int64_t)1 << 40)

/* Number of tokens of each sequence for which the group's blocks have room. */
static inline int64_t group_capacity(const struct ifl_request *r, struct kv_block block)
{
    const int64_t n_slots = (int64_t)r->stale.n_blocks * block.tokens;
    if (IFL_RARE(r->forks))
        return GROUP_NO_CAPACITY;
    if (!IFL_RARE(r->n_seqs > 1))
        return n_slots;
    const int32_t n_shared = group_shared_blocks(r, block);
    if (r->stale.n_blocks < n_shared + r->n_seqs)
        return n_slots < r->n_prompt ? n_slots : r->n_prompt;
    return (int64_t)(n_shared + (r->stale.n_blocks - n_shared) / r->n_seqs) * block.tokens;
}

/* Slots that hold n_tokens of each sequence. parted: each sequence has a tail of its own. */
static inline int64_t group_slots(const struct ifl_request *r, int32_t n_tokens, bool parted,
                                  struct kv_block block)
{
    if (!parted || !IFL_RARE(r->n_seqs > 1))
        return n_tokens;
    const int64_t n_shared_tokens = (int64_t)group_shared_blocks(r, block) * block.tokens;
    if (n_tokens <= n_shared_tokens)
        return n_tokens;
    return n_shared_tokens + r->n_seqs * (n_tokens - n_shared_tokens);
}

/* Blocks saved by sharing the prompt: those that copies of it for the other sequences would take.
 */
static inline int32_t group_saved_blocks(const struct ifl_request *r, struct kv_block block)
{
    return (r->n_seqs - 1) * group_shared_blocks(r, block);
}

/* The place in the group's blocks of block i of a sequence. */
static inline int32_t group_block_at(const struct ifl_request *r, int32_t seq, int32_t i,
                                     struct kv_block block)
{
    const int32_t n_shared = group_shared_blocks(r, block);
    return i < n_shared ? i : n_shared + (i - n_shared) * r->n_seqs + seq;
}

#endif
