/* K/V slots, rows of logits and votes of a step that step_check has accepted, with or without its
 * optional arrays. */
#ifndef GPU_STEP_SLOTS_H
#define GPU_STEP_SLOTS_H

#include <string.h>

#include "inflight/assert.h"
#include "inflight/engine.h"

static inline int32_t step_slot(const struct ifl_engine_step *step, int32_t token)
{
    ifl_assert(token >= 0 && token < step->n_tokens);
    return step->slots ? step->slots[token] : step->positions[token];
}

/* Slots that the sequence's last token attends to. */
static inline int32_t step_n_slots(const struct ifl_engine_step *step, int32_t seq)
{
    ifl_assert(seq >= 0 && seq < step->n_seqs);
    return step->slots ? step->n_slots[seq] : step->positions[step->first_token[seq + 1] - 1] + 1;
}

/* Number of slots that a token of the sequence attends to: one fewer than for the next token. */
static inline int32_t step_n_seen(const struct ifl_engine_step *step, int32_t seq, int32_t token)
{
    ifl_assert(step->first_token[seq] <= token && token < step->first_token[seq + 1]);
    ifl_assert(seq >= 0 && seq < step->n_seqs);
    return step_n_slots(step, seq) - (step->first_token[seq + 1] - 1 - token);
}

/* The first of the sequence's tokens with a row of logits, and the first that votes. Without any it
 * is the end of the sequence's tokens. */
static inline int32_t step_first_row(const struct ifl_engine_step *step, int32_t seq)
{
    ifl_assert(seq >= 0 && seq < step->n_seqs);
    return step->first_token[seq + 1] - (step->n_rows ? step->n_rows[seq] : 0);
}

static inline int32_t step_first_voter(const struct ifl_engine_step *step, int32_t seq)
{
    ifl_assert(seq >= 0 && seq < step->n_seqs);
    return step->first_token[seq + 1] - (step->n_voters ? step->n_voters[seq] : 0);
}

/* Numbers in `votes` before the sequence's own. */
static inline size_t step_votes_before(const struct ifl_engine_step *step,
                                       const struct ifl_engine_model *model, int32_t seq)
{
    ifl_assert(seq >= 0 && seq <= step->n_seqs);
    size_t n_slots = 0;
    for (int32_t i = 0; step->n_voters && i < seq; i++)
        n_slots += step->n_voters[i] > 0 ? (size_t)step_n_slots(step, i) : 0;
    return n_slots * (size_t)model->n_layers * (size_t)model->n_kv_heads;
}

/* Votes are sums: a step begins with zeros. */
static inline void step_clear_votes(const struct ifl_engine_step *step,
                                    const struct ifl_engine_model *model)
{
    const size_t n = step_votes_before(step, model, step->n_seqs);
    if (n > 0)
        memset(step->votes, 0, n * sizeof *step->votes);
}

#endif
