/* One forward pass of a batch of equal sequences: what a rank computes and moves, by part.
 *
 * A product of m rows with weights [n][k] takes 2 m n k FLOPs and moves its two inputs and its
 * output once. Attention takes 4 h d_head FLOPs for each pair of a query and a key. All pairs of a
 * sequence's new tokens count, including the half that the causal mask leaves out, as textbooks
 * count them. Latent attention counts in the form in which engines compute it: absorbed if there is
 * one new token after a context, otherwise with keys and values computed from the latents of all
 * tokens. The products after the latents count as qkv. Embedding, norms and activations are left
 * out: less than 1% of FLOPs and bytes. */
#ifndef SIM_COST_PASS_H
#define SIM_COST_PASS_H

#include "cost/model.h"

struct pass {
    double n_seqs;
    double new_tokens, context_tokens; /* of each sequence: tokens to compute, and tokens computed
                                          before */
    bool all_logits; /* logits for every new token, as in training; else only for the last */
};

struct pass_part {
    const char *name;
    double flops, bytes;
};

enum { PASS_QKV, PASS_ATTENTION, PASS_OUT, PASS_MLP, PASS_HEAD, PASS_PARTS };

void pass_count(const struct model *model, int32_t tensor_parallel, const struct pass *pass,
                struct pass_part parts[PASS_PARTS]);
struct pass_part pass_sum(const struct pass_part parts[PASS_PARTS]);

/* The backward pass takes two products for each one of the forward pass. */
enum { PASS_TRAINING_FACTOR = 3 };

#endif
