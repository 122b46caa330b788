/* Limits on what a module may ask of a step. Exceeding one is a breach of the contract, so that no
 * array or sum of a plan has to grow. */
#ifndef SIM_REPLICA_STEP_LIMITS_H
#define SIM_REPLICA_STEP_LIMITS_H

#include "replica/replica_parts.h"

#include "inflight/minmax.h"

/* A module may start any request, preempt it and start it again: a plan has room for each request
 * twice (replica.c, reserve). */
static inline bool step_has_room(const struct replica *replica)
{
    const size_t cap = 2 * replica->here.cap;
    return replica->plan.started.n < cap && replica->plan.n_planned < cap;
}

static const char step_no_room[] = "it starts and preempts the same requests over and over";
static const char step_no_question[] = "it answers a question of the plan with a question";

/* Limits the blocks that a question leaves aside to between 0 and all blocks. */
static inline int32_t step_spare(const struct replica *replica, int32_t spare_blocks)
{
    const int32_t most = replica->fixed.limits.n_blocks;
    return spare_blocks < 0 ? 0 : ifl_min(spare_blocks, most);
}

enum { MAX_PADDING_TOKENS = 1 << 28 };

static inline bool step_may_pad(const struct ifl_padding *padding)
{
    const int64_t most = MAX_PADDING_TOKENS, most_pairs = most * most;
    return padding->n_prefill_tokens >= 0 && padding->n_prefill_tokens <= most &&
           padding->n_decode_seqs >= 0 && padding->n_decode_seqs <= most &&
           padding->n_draft_tokens >= 0 && padding->n_draft_tokens <= most &&
           padding->prefill_q_q >= 0 && padding->prefill_q_q <= most_pairs &&
           padding->decode_context >= 0 && padding->decode_context <= most_pairs;
}

#endif
