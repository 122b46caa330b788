/* The cost of guessing tokens, added to that of a step: the step guesses first, then verifies.
 *
 *     duration = step + passes (pass_s + L layers + head) + seq_s (requests with guesses)
 *                + step_s
 *
 * The passes of a draft model, or of a head on the target's states, follow one another. The first
 * pass also computes the tokens of prompts, for which the proposer needs K/V, too. Each pass reads
 * the proposer's K/V of all contexts. */
#ifndef SIM_COST_DRAFT_H
#define SIM_COST_DRAFT_H

#include "cost/cost.h"

enum proposer_kind { PROPOSER_LOOKUP, PROPOSER_MODEL, PROPOSER_HEAD };

struct draft_cost {
    enum proposer_kind proposer;
    const struct model *model; /* the draft model; for a head, the target model; NULL:
                                  PROPOSER_LOOKUP */
    const struct platform *platform;
    const struct parallel *parallel;
    int32_t layers;               /* of a head */
    double lm_head_frac;          /* for a head: the part of the vocabulary from which it chooses */
    int32_t passes;               /* in a step; 0: as many as the most guesses of a request */
    int32_t width;                /* tokens of each request in a pass */
    double pass_s, seq_s, step_s; /* host time: per pass, per request, per step */
    int32_t block_tokens;
};

/* Returns a cost that adds the time of guesses to `target`. It takes ownership of `target`, also if
 * it fails. A head's layer is dense: of a model with experts it has as many columns as a token
 * uses.
 *
 * A draft model or head without experts is tensor-parallel over the t ranks of a data-parallel
 * group, and each group has a copy of it, whatever the target's experts are dealt out over. So does
 * vLLM: the draft's ParallelConfig has the target's tensor_parallel_size (SpeculativeConfig.
 * create_draft_parallel_config), and groups of data-parallel ranks share experts alone. So does
 * SGLang under --enable-dp-attention: the draft of EAGLE-3 runs in the group of
 * get_attention_tp_group() (draft_tp_context in eagle_worker.py). */
struct cost *cost_create_drafting(struct cost *target, const struct draft_cost *draft,
                                  struct ifl_error *error);

#endif
