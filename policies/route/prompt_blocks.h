/* A prompt as a router cuts it: blocks of tokens, each with a key that depends on all tokens up to
 * its end.
 *
 * Gateways cut texts. A trace has no texts: it only says which tokens are the same, by prefix
 * groups and hash ids. So the characters of a gateway are counted as tokens here, and what two
 * prompts share is counted in whole blocks. Smaller blocks count the shared part more exactly, with
 * more look-ups. keeps_rest is for gateways that keep a shorter block at the end of a prompt. */
#ifndef POLICIES_ROUTE_PROMPT_BLOCKS_H
#define POLICIES_ROUTE_PROMPT_BLOCKS_H

#include "inflight/minmax.h"
#include "inflight/policy.h"
#include "inflight/random.h"

struct prompt_blocks {
    const struct ifl_request *r;
    int32_t block_tokens;
    int32_t n; /* blocks */
    int32_t i; /* index of the block that `key` names; -1 before the first */
    uint64_t key;
};

/* Begins with the blocks of a prompt, at most `most`; 0: all. block_tokens must be above 0. */
static inline struct prompt_blocks prompt_blocks(const struct ifl_request *r, int32_t block_tokens,
                                                 int32_t most, bool keeps_rest)
{
    const int32_t whole = r->n_prompt / block_tokens;
    const int32_t n = whole + (keeps_rest && r->n_prompt % block_tokens > 0);
    return (struct prompt_blocks){r, block_tokens, most > 0 ? ifl_min(n, most) : n, -1, 0};
}

static inline uint64_t prompt_blocks_mix(uint64_t before, uint64_t source, uint64_t of, uint64_t at)
{
    return ifl_mix(ifl_mix(before ^ source << 62) ^ ifl_mix(of) ^ (at << 1 | 1));
}

/* Moves to the next block; returns false if there is none. The shorter block at the end has a key
 * of its own: its length is part of the key. */
static inline bool prompt_blocks_next(struct prompt_blocks *b)
{
    const struct ifl_request *r = b->r;
    if (++b->i >= b->n)
        return false;
    const int64_t from = (int64_t)b->i * b->block_tokens;
    const int64_t end = from + b->block_tokens, to = end < r->n_prompt ? end : r->n_prompt;
    const uint64_t place = (uint64_t)from << 24 | (uint64_t)(to - from);
    if (to <= r->prefix_tokens)
        b->key = prompt_blocks_mix(b->key, 1, r->prefix_group, place);
    else if (to <= (int64_t)r->n_hash_ids * r->hash_id_tokens)
        for (int64_t id = from / r->hash_id_tokens; id * r->hash_id_tokens < to; id++)
            b->key = prompt_blocks_mix(b->key, 2, r->hash_ids[id], place);
    else
        b->key = r->repeats > 0 ? prompt_blocks_mix(b->key, 0, r->repeats, place)
                                : prompt_blocks_mix(b->key, 3, r->serial, place);
    return true;
}

#endif
