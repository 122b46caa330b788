/* The cost of guessing tokens, added to that of a step: the step guesses first, then verifies.
 *
 *     duration = step + passes (pass_s + L layers + head) + seq_s (requests with guesses)
 *                + step_s
 *
 * The passes of a draft model, or of a head on the target's states, follow one another. The first
 * also feeds the tokens of prompts, of which the proposer needs K/V, too. Each reads the K/V that
 * the proposer has of all contexts. */
#ifndef SIM_COST_DRAFT_H
#define SIM_COST_DRAFT_H

#include "cost/cost.h"

enum proposer_kind { PROPOSER_LOOKUP, PROPOSER_MODEL, PROPOSER_HEAD };

struct draft_cost {
    enum proposer_kind proposer;
    const struct model *model; /* the draft model; of a head the target's; NULL: PROPOSER_LOOKUP */
    const struct platform *platform;
    const struct parallel *parallel;
    int32_t layers;               /* of a head */
    double lm_head_frac;          /* of a head: the part of the vocabulary that it chooses among */
    int32_t passes;               /* in a step; 0: as many as the most guesses of a request */
    int32_t width;                /* tokens of each request in a pass */
    double pass_s, seq_s, step_s; /* on the host: of a pass, a request, a step */
    int32_t block_tokens;
};

/* A cost that adds those of guesses to `target`, which it owns from then on, also where it fails. A
 * head's layer is dense: of a model with experts it has as many columns as a token uses.
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
