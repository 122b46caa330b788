/* The roofline of one rank without cached results, for callers that change the profile between
 * calls, as a fit does. */
#ifndef SIM_COST_ROOFLINE_H
#define SIM_COST_ROOFLINE_H

#include "inflight/executor.h"

#include "cost/collective.h"
#include "cost/hardware.h"
#include "cost/kernels.h"
#include "cost/model.h"

struct roofline_rank {
    const struct model *model; /* all four borrowed */
    const struct hardware *hardware;
    const struct host_times *host;
    const struct deployment_exchange *exchange;
    struct model_linear linears[MODEL_LINEARS], head;
    struct parallel parallel;
    struct lines_profile allreduce; /* all-reduce of the tensor-parallel ranks; 0 GB/s: there is
                                       none */
    struct lines_profile merge;     /* messages between the ranks that share the context of a KV
                                       head */
    struct lines_profile gather;    /* messages between data-parallel ranks, if `exchange` has no
                                       rate */
    struct attention_heads heads;   /* of a rank */
    struct attention_heads decode_heads; /* the same with the queries of ranks that share context */
    double ffn_columns;                  /* FFN columns of a rank, in one expert */
    double dense_columns, shared_columns; /* MLP columns of a rank that are no experts'; 0: there
                                             are none */
    struct model_linear ups[MODEL_UPS];   /* behind latents; n 0: there is none */
    double latent_elements;               /* elements of a token's latents, which have their own
                                             norms */
    int32_t n_latents;
    double latent_layers;                    /* layers with a latent of keys and values; 0: none */
    double rotary_elements, merged_elements; /* of a token; of a query head, sent and received */
    double token_bytes, block_bytes;         /* of K/V, of a rank, all its layers */
    double other_layers;  /* layers with a window, or with a state in place of K/V; 0: none */
    double window_tokens; /* tokens that layers with a window see */
    double state_layers;  /* of the others; 0: none */
    struct model_linear states[MODEL_STATE_LINEARS]; /* their products */
    double prompt_frac; /* factor of the profile's times for what a step with prompts computes */
    bool fused_experts; /* the profile has them as one operation, of the format below */
    enum expert_format expert_format;
    enum product_format product_format, attention_format; /* of its products; of attention's */
};

/* Of context tokens, those of one rank. Nearly always there is one: a division takes longer than
 * the question. */
static inline double roofline_context(const struct roofline_rank *rank, int64_t tokens)
{
    const int32_t ranks = rank->parallel.context;
    return IFL_RARE(ranks > 1) ? (double)tokens / ranks : (double)tokens;
}

/* Requires that the ranks can share the model (model_check_parallel), which is spread over them
 * (model_spread). */
void roofline_rank_set(struct roofline_rank *rank, const struct model *model,
                       const struct platform *platform, const struct parallel *parallel,
                       int32_t block_tokens);
/* Fails if the profile has no times of the messages between these ranks. */
int roofline_check_links(const struct platform *platform, const struct parallel *parallel,
                         struct ifl_error *error);
/* The attention of one layer with latents: its products, norms, rotary embedding and attention. */
double roofline_latent_module_s(const struct roofline_rank *rank,
                                const struct ifl_step_totals *totals);
/* Seconds of a step on one rank, without other data-parallel ranks. Requires an all-reduce if there
 * are tensor-parallel ranks. */
double roofline_step_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);

#endif
