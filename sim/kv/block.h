/* Tokens, and the blocks that they fill.
 *
 * Whoever comes, starts, decodes and grows is asked how many blocks that takes, and a division by a
 * number that only the run knows costs as much as ten multiplications. So it is one (Granlund and
 * Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994): with
 *
 *     inverse = ceil(2^63 / tokens),   n / tokens = floor(n * inverse / 2^63)
 *
 * is exact for n below 2^32, for what rounding up adds is less than n * tokens / 2^63 of a block.
 */
#ifndef SIM_KV_BLOCK_H
#define SIM_KV_BLOCK_H

#include <stdint.h>

struct kv_block {
    int32_t tokens; /* that one holds, at least 1 */
    uint64_t inverse;
};

static inline struct kv_block kv_block_of(int32_t tokens)
{
    const uint64_t two_to_63 = UINT64_C(1) << 63;
    return (struct kv_block){tokens,
                             two_to_63 / (uint64_t)tokens + (two_to_63 % (uint64_t)tokens != 0)};
}

static inline uint32_t kv_full_blocks(uint32_t n_tokens, struct kv_block block)
{
    return (uint32_t)((__extension__(unsigned __int128) n_tokens * block.inverse) >> 63);
}

/* Tokens in the last block, 0 where it is full. */
static inline uint32_t kv_tail_tokens(uint32_t n_tokens, struct kv_block block)
{
    return n_tokens - kv_full_blocks(n_tokens, block) * (uint32_t)block.tokens;
}

static inline int32_t kv_blocks_for(int32_t n_tokens, struct kv_block block)
{
    return (int32_t)kv_full_blocks((uint32_t)n_tokens + (uint32_t)block.tokens - 1, block);
}

#endif
