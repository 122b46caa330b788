/* Random draws keyed by (seed, purpose, request, index), not taken from a stream.
 *
 * A draw depends on its key alone, so turning one feature on, skipping a plan or running points in
 * another order shifts nothing. The mixer is SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA
 * 2014) folded over the key. Distributions come from GSL's inverse CDFs of one uniform. */
#ifndef INFLIGHT_RANDOM_H
#define INFLIGHT_RANDOM_H

#include <stdint.h>

/* Purpose of a draw. Comments: what is drawn: what `request` is, what `index` is. The numbers are
 * part of every result, so none may change. */
enum ifl_purpose {
    IFL_DRAW_ARRIVAL = 1,         /* gap before an arrival: row */
    IFL_DRAW_PROMPT = 2,          /* its prompt's length: row */
    IFL_DRAW_OUTPUT = 3,          /* its output's length: row */
    IFL_DRAW_SHUFFLE = 4,         /* rows of a trace: place */
    IFL_DRAW_POLICY = 5,          /* what a module asks for: serial, the module's own */
    IFL_DRAW_WEIGHT = 6,          /* random weights of an engine: role, element */
    IFL_DRAW_TOKEN = 7,           /* token of a prompt: serial, position */
    IFL_DRAW_PREFIX_TOKEN = 8,    /* token of a prefix group's stream: group, position */
    IFL_DRAW_ROUTE = 9,           /* for a router: serial, the router's index */
    IFL_DRAW_HASHED_TOKEN = 10,   /* token under a hash id of the trace: id, place below it */
    IFL_DRAW_PREDICTION = 11,     /* error of a predicted length: request_id, which draw */
    IFL_DRAW_SAMPLED_TOKEN = 12,  /* first token of a further sample: serial, sequence */
    IFL_DRAW_BEAM = 13,           /* which beam goes on from which: serial, token and beam */
    IFL_DRAW_PATIENCE = 14,       /* how long a client waits: request_id */
    IFL_DRAW_BACKOFF = 15,        /* before a client tries again: request_id, attempt */
    IFL_DRAW_REPEATED_TOKEN = 16, /* token of a prompt that is sent again: its number, position */
    IFL_DRAW_ACCEPT = 20,     /* whether a guessed token holds: serial, its place in the answer */
    IFL_DRAW_MOVE = 21,       /* whether its K/V is lost as it moves: serial */
    IFL_DRAW_ADAPTER = 24,    /* low-rank adapter of a request: row */
    IFL_DRAW_TEXT_WORD = 27,  /* word of a text that is made: its place */
    IFL_DRAW_STEP_NOISE = 28, /* factor of a step's duration: step, replica */
    IFL_DRAW_TRIAL = 29,      /* shift of a stamp in a trial flight: row, flight */
    IFL_DRAW_ENSEMBLE = 30,   /* a fitted number, from its uncertainty: member, which */
};

/* A bijection of 64-bit numbers; each bit of the result depends on all bits of x. */
static inline uint64_t ifl_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 64 random bits. If the comment of the purpose names only one of `request` and `index`, index is
 * 0. */
static inline uint64_t ifl_draw(uint64_t seed, enum ifl_purpose purpose, uint64_t request,
                                uint64_t index)
{
    return ifl_mix(ifl_mix(ifl_mix(ifl_mix(seed) ^ (uint64_t)purpose) ^ request) ^ index);
}

/* Converts a draw of ifl_draw to a number in the open interval (0, 1): safe for every inverse CDF.
 */
static inline double ifl_uniform(uint64_t draw)
{
    return ((double)(draw >> 12) + 0.5) * 0x1p-52;
}

#endif
