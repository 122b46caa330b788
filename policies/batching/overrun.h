/* Padding of plans that are made ahead: a sequence that has ended, unknown to the plan, computes
 * one more token. */
#ifndef POLICIES_BATCHING_OVERRUN_H
#define POLICIES_BATCHING_OVERRUN_H

#include "inflight/policy.h"

struct overrun { /* zeroed: none */
    int32_t n_seqs;
    int32_t n_new_blocks; /* blocks that these tokens need */
    int64_t context;      /* tokens of K/V that these sequences read */
};

static inline void overrun_add(struct overrun *overrun, const struct ifl_view *view,
                               const struct ifl_request *r)
{
    const bool fills_block = ifl_n_slots(r) % view->limits->block_tokens == 0;
    overrun->n_seqs += r->n_seqs;
    overrun->n_new_blocks += fills_block ? r->n_seqs : 0;
    overrun->context += (int64_t)r->n_seqs * ifl_n_tokens(r);
}

static inline void overrun_pad(struct ifl_step *step, const struct overrun *overrun)
{
    ifl_pad(step, (struct ifl_padding){.n_decode_seqs = overrun->n_seqs,
                                       .decode_context = overrun->context});
}

#endif
