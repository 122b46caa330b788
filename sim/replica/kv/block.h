/* Tokens, and the blocks that they fill.
 *
 * Every admission and every step counts the blocks of requests. The block size is known only at run
 * time, and a division by it costs as much as ten multiplications. So the division is a
 * multiplication by the inverse (Granlund and Montgomery, Division by Invariant Integers using
 * Multiplication, PLDI 1994):
 *
 *     inverse = ceil(2^63 / tokens),   n / tokens = floor(n * inverse / 2^63)
 *
 * This is exact for n below 2^32: rounding the inverse up adds less than n * tokens / 2^63 of a
 * token, which is less than one token. */
#ifndef SIM_REPLICA_KV_BLOCK_H
#define SIM_REPLICA_KV_BLOCK_H

#include <stdint.h>

#include "inflight/assert.h"

struct kv_block {
    int32_t tokens; /* tokens that a block holds, at least 1 */
    uint64_t inverse;
};

static inline struct kv_block kv_block_of(int32_t tokens)
{
    ifl_assert(tokens >= 1);
    const uint64_t two_to_63 = UINT64_C(1) << 63;
    return (struct kv_block){tokens,
                             two_to_63 / (uint64_t)tokens + (two_to_63 % (uint64_t)tokens != 0)};
}

static inline uint32_t kv_full_blocks(uint32_t n_tokens, struct kv_block block)
{
    return (uint32_t)((__extension__(unsigned __int128) n_tokens * block.inverse) >> 63);
}

/* Tokens in the last block if it is partial; 0 if it is full. */
static inline uint32_t kv_tail_tokens(uint32_t n_tokens, struct kv_block block)
{
    return n_tokens - kv_full_blocks(n_tokens, block) * (uint32_t)block.tokens;
}

static inline int32_t kv_blocks_for(int32_t n_tokens, struct kv_block block)
{
    ifl_assert(n_tokens >= 0);
    return (int32_t)kv_full_blocks((uint32_t)n_tokens + (uint32_t)block.tokens - 1, block);
}

#endif
