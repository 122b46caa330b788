/* How many KV blocks a GPU holds beside the weights, and why.
 *
 *     blocks = floor((memory x utilisation - weights - activations - workspace) / block)
 *
 * all for one rank of the tensor-parallel group. Activations are what a step of
 * deployment->memory.activation_tokens tokens keeps alive at its widest place, the MLP: up
 * projections and their product (3 f gated, 2 f plain) beside four rows of d_model. With that and
 * 0.26 GiB of workspace the three counts published for vLLM 0.11 on an H100 come out within a
 * block or two; OPT-13B on an A100-40GB comes out 9% below the 12 GiB of the vLLM paper,
 * DistServe's six counts within 4%; see the tests. A caller that knows the engine's token budget
 * sets activation_tokens in its copy of the platform. */
#ifndef SIM_COST_MEMORY_H
#define SIM_COST_MEMORY_H

#include <stdio.h>

#include "cost/hardware.h"
#include "cost/model.h"

/* How the plan treats the image encoder of a vision-language model. */
enum memory_encoder {
    MEMORY_ENCODER_NONE,
    MEMORY_ENCODER_LEFT_OUT, /* the encoder takes memory that the plan does not count */
    MEMORY_ENCODER_COUNTED,
    MEMORY_ENCODER_OFF /* the server does not load it */
};

struct memory_plan {
    int32_t n_blocks, block_tokens, tensor_parallel;
    double utilization;
    bool of_free; /* utilization is a share of free memory, not of the GPU's whole memory */
    int64_t gpu_bytes, usable_bytes;
    int64_t weight_bytes, activation_bytes, workspace_bytes;
    int64_t kv_bytes;    /* memory left for K/V; may be negative if the plan failed */
    int64_t block_bytes; /* K and V of block_tokens tokens, all layers, or those of a group */
    int32_t group_layers, n_groups; /* more than one group: as many layers in each */
    /* Filled only by memory_plan_engine (memory_engine.h); otherwise 0 and NULL. workspace_bytes is
     * then what a process holds outside its tensors' allocator, without collective_bytes. */
    const char *rule;
    int64_t collective_bytes; /* communicators and the buffers of all-reduces */
    int64_t graph_bytes;      /* captured CUDA graphs */
    int64_t error_bytes;      /* standard deviation of kv_bytes */
    int32_t sampled_seqs;     /* sequences with logits that are the widest activations; 0: a
                                 layer's activations are wider */
    int32_t logits_tokens;    /* the same, if a step has logits of all tokens */
    /* Filled by memory_encoder.h. activation_bytes include what the encoder holds or runs;
     * weight_bytes do not include its weights. */
    enum memory_encoder encoder;
    int32_t encoder_items;
    int64_t encoder_bytes;      /* weights and tables */
    int64_t encoder_held_bytes; /* pixels and embeddings, alive in the step of text */
    int64_t encoder_run_bytes;
    bool encoder_is_widest; /* activations are those of the encoder */
};

struct memory_options {
    int32_t tensor_parallel, block_tokens;
    double utilization; /* share of the GPU's memory that may be used; by the rule of the free
                           share, of the memory that is free beside everything else */
    int32_t context;    /* ranks that share the context of a KV head, so that a block has as many
                           times block_tokens; 0: one */
    bool groups;        /* a block holds a group of layers (model_kv_groups), not all */
};

/* The ends of the central 90% interval of the number of blocks, with a normal error; n_blocks
 * itself if error_bytes is 0. */
enum memory_end { MEMORY_LOW, MEMORY_HIGH };
int32_t memory_end(const struct memory_plan *plan, enum memory_end end);

/* Returns IFL_E_INPUT, with the arithmetic in the message, if not even one block fits. */
int memory_plan(const struct model *model, const struct platform *platform,
                const struct memory_options *options, struct memory_plan *plan,
                struct ifl_error *error);

/* TensorRT-LLM's rule (cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, calculateMaxNumBlocks,
 * 2024): K/V gets a share of the memory that everything else leaves free, in whole tokens. The
 * number of blocks is rounded up,
 *
 *     blocks = ceil(floor((memory - weights - activations - workspace) x utilisation / KV of a
 *              token) / block_tokens) */
int memory_plan_free_share(const struct model *model, const struct platform *platform,
                           const struct memory_options *options, struct memory_plan *plan,
                           struct ifl_error *error);

/* Vidur's rule (vidur/scheduler/utils/memory_planner.py): as many requests of max_tokens as fit
 * beside the weights of the layers alone,
 *
 *     blocks = floor((memory x utilisation - layers' weights) / KV of max_tokens)
 *              x floor(max_tokens / block_tokens)
 *
 * with the memory in whole GiB, as on the box. */
int memory_plan_whole_requests(const struct model *model, const struct platform *platform,
                               const struct memory_options *options, int32_t max_tokens,
                               struct memory_plan *plan, struct ifl_error *error);

/* The arithmetic as a short paragraph. */
void memory_print(const struct memory_plan *plan, FILE *out);

#endif
