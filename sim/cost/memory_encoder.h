/* What the image encoder of a vision-language checkpoint takes of a GPU that serves text, as vLLM's
 * V1 counts it when it starts, from 0.8 on (v1/worker/gpu_model_runner.py, profile_run, of 0.8.5,
 * 0.9.1, 0.10.2, 0.11.0, 0.11.2, 0.12.0, 0.13.0 and 0.14.0).
 *
 * Before the step of text, the encoder runs for a batch of the largest items of one modality; its
 * outputs, and the pixels, are alive until that step has ended. For one rank, in bytes, with n
 * items of e embeddings, of which the cache has k rows each, element size b, and T tokens a step:
 *
 *     weights  = vision.h + T deepstack d_out b + rotary_rows positions rotary b
 *     encoder  = n e b (pixels + columns of a layer)
 *     held     = n e b pixels + n k (1 + deepstack) d_out b
 *     activations = max(those of text + held, encoder)
 *
 * k is e, but in 0.11 all of the cache's budget, and in 0.12 the tokens of an item's placeholder.
 * Nothing here is fitted. */
#ifndef SIM_COST_MEMORY_ENCODER_H
#define SIM_COST_MEMORY_ENCODER_H

#include "cost/memory.h"

enum encoder_use {
    ENCODER_PROFILED,
    ENCODER_LOADED, /* --skip-mm-profiling: only its weights count */
    ENCODER_OFF     /* its weights are not loaded */
};

/* Counts of 0 mean, in order: as many of the largest images as a step has tokens for, at least one;
 * those of an image; as many as these. */
struct encoder_run {
    int32_t use; /* enum encoder_use */
    int32_t items, item_tokens, kept_tokens;
    int32_t rotation; /* enum vision_rotation */
    bool
        replicated; /* --mm-encoder-tp-mode data: each rank has all of it, and its share of items */
};

/* Fills what an encoder takes; nothing of a model without one. */
void memory_weigh_encoder(const struct model *model, const struct encoder_run *run,
                          int32_t max_batched_tokens, struct memory_plan *plan);
/* Returns the largest use of memory in bytes, if the step of text alone uses text_bytes. */
double memory_beside_encoder(double text_bytes, struct memory_plan *plan);

#endif
