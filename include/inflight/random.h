/* Random draws keyed by (seed, purpose, request, index), not taken from a stream.
 *
 * A draw depends on its key alone, so turning one feature on, skipping a plan or running points in
 * another order shifts nothing. The mixer is SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA
 * 2014) folded over the key. Distributions come from GSL's inverse CDFs of one uniform. */
#ifndef INFLIGHT_RANDOM_H
#define INFLIGHT_RANDOM_H

#include <stdint.h>

enum ifl_purpose {
    IFL_DRAW_ARRIVAL = 1,
    IFL_DRAW_PROMPT = 2,
    IFL_DRAW_OUTPUT = 3,
    IFL_DRAW_SHUFFLE = 4,
    IFL_DRAW_POLICY = 5,
    IFL_DRAW_WEIGHT = 6,
    IFL_DRAW_TOKEN = 7,
    IFL_DRAW_PREFIX_TOKEN = 8,
    IFL_DRAW_ROUTE = 9,
    IFL_DRAW_HASHED_TOKEN = 10,
    IFL_DRAW_PREDICTION = 11,
    IFL_DRAW_SAMPLED_TOKEN = 12,
    IFL_DRAW_BEAM = 13,
    IFL_DRAW_ENSEMBLE = 30,
};

static inline uint64_t ifl_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t ifl_draw(uint64_t seed, enum ifl_purpose purpose, uint64_t request,
                                uint64_t index)
{
    return ifl_mix(ifl_mix(ifl_mix(ifl_mix(seed) ^ (uint64_t)purpose) ^ request) ^ index);
}

/* In the open interval (0, 1): safe for every inverse CDF. */
static inline double ifl_uniform(uint64_t draw)
{
    return ((double)(draw >> 12) + 0.5) * 0x1p-52;
}

#endif
