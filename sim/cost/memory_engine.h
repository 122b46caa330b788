/* How many KV blocks a GPU holds as an engine counts them when it starts, by release.
 *
 * vLLM (v1/worker/gpu_worker.py, determine_available_memory; gpu_model_runner.py, profile_run) runs
 * a step of max_num_batched_tokens tokens, samples for max_num_seqs sequences, and takes what both
 * left outside of K/V off its share of the GPU. For one rank, in bytes, with T tokens, S = min(max
 * sequences, T), element size b, and d, f, V, k as in model.h:
 *
 *     blocks      = floor((memory x utilisation - weights - activations - libraries - collectives
 *                   - graphs) / block) - 1             one block is the null block
 *     activations = max(layer, sampler) + experts + 0.07 GiB
 *                   = max(layer + experts, sampler) + 0.07 GiB up to 0.13
 *     layer       = T b (3 f + 3 d), plain MLPs 2 f, with experts no f
 *     sampler     = S V l + T d b                      l bytes a logit: its 16-bit copy, the 32-bit
 *                                                      one, and what top-k and top-p add
 *     experts     = T k b (max(f, d) + max(2 f, d))    workspaces of fused_moe.py, TritonExperts
 *     collectives = from 2 GPUs on 1.76 GiB + 0.03 for each with NVLink, 0.2 over PCIe
 *     graphs      = 0.19 GiB + 0.205 MiB for each layer and captured graph
 *
 * Weights of 4 bits have a scale and a zero for each group of them, 128 where the checkpoint does
 * not say how many: 4.16 bits; symmetric ones no zero: 4.13. What it leaves in 16 bits has none.
 *
 *     rule        l     libraries, GiB  counts the CUDA context (0.53)  counts graphs
 *     vllm-0.7    b     0.13            yes                             no     0.7.0 to 0.7.3
 *     vllm-0.8    37    0.13            yes                             no     0.8.0 to 0.9.0
 *     vllm-0.9.1  37    0.13            no                              no     to 0.11
 *     vllm-0.12   37    0.13            no                              no     to 0.13
 *     vllm-0.14   37    0.13            no                              no     to 0.16
 *     vllm-0.17   14.4  0.25            no                              no     to 0.19
 *     vllm-0.20   14.4  0.25            no                              yes    to 0.33
 *
 * vllm-0.7 has no sampler in its step but the logits of all tokens, T V b for S V l, and on several
 * GPUs 2 + 1 / ranks times that: a rank's part, those that it gathers, and those in their order
 * (logits_processor.py, parallel_state.py all_gather). It has no null block, and what experts need
 * is free by then; its numbers are those of vllm-0.8.
 *
 * l is 14 where the engine samples with FlashInfer's kernel, which does not sort: its log says so.
 * l fell with the Triton kernel for top-k and top-p. The context is counted where the rule goes by
 * the memory in use on the device, not by what this process added (the change came with 0.9.1).
 * The numbers are fitted to start-up logs; tests/cost/data/vllm_startup.csv has them, with those
 * that were held out. For 0.20 and later no log is in the fit: the rule is that of the source, the
 * graphs are those of 0.19. Of the error, one part (0.15 GiB) is that of the logs in the fit; a
 * tenth of the collectives is assumed; 0.3 GiB of the graphs is what vLLM's own estimates of them
 * differ by (reports/reproductions/memory).
 *
 * vLLM V0 (worker/worker.py, determine_num_available_blocks; model_runner.py, profile_run) has no
 * null block. It runs the same step, T = max(max_model_len, 2048) where nothing else is said; what
 * it counts of it changed with its releases:
 *
 *     rule        activations   libraries, GiB  counts the context  counts collectives
 *     vllm-0.1    peak          0               no                  no                  to 0.2.4
 *     vllm-0.2.5  held + kept   0.24            yes                 yes                 0.2.5 alone
 *     vllm-0.2.6  held          0.24            yes                 yes                 to 0.3.0
 *     vllm-0.3.1  held          0.24            no                  yes                 to 0.6.3
 *     vllm-0.6.4  peak          0.13            yes                 yes                 0.6.4 alone
 *     vllm-0.6.5  peak          0.13            no                  yes                 to 0.10
 *
 *     peak        = max(layer + experts, sampler) + 0.07 GiB, l = 37
 *     held        = layer' + experts + sort + rest + 0.07 GiB, at least the peak
 *     layer'      = T b (3 f + 3.5 d + 2.5 d / ranks); f is that of a rank
 *     sort        = 20 S V, 0 where it fits into the widest tensor of the MLP, 2 f T b
 *     rest        = 17 S V, as far as it does not fit into what else the layer leaves
 *     kept        = (2 layers + 1) T d b on several GPUs: inputs of all-reduces
 *
 * Held is what PyTorch's allocator has taken from the device when the step has ended: those
 * releases go by the free memory of the device, and do not empty the allocator's cache before they
 * look. 0.2.5 did not set TORCH_NCCL_AVOID_RECORD_STREAMS, so no input of an all-reduce was used
 * again. The numbers of held are fitted to start-up logs; tests/cost/data/vllm_v0_startup.csv has
 * them, with those that were held out.
 *
 * Latent attention, which vLLM computes as such from 0.7.1 on (rules before vllm-0.6.5 refuse it):
 *
 *     weights     of 8 and 4 bits: and W^UK and W^UV in 16, kv_lora_rank h (nope + v) a layer
 *     layer       one row of d more with shared experts, at least T b (3 f_dense + 3 d); in V0 also
 *                 at least that of attention, T b (2 d + h (4 (nope + rope) + nope + v))
 *     block       (kv_lora_rank + rope) elements for each token and layer; in V0 a multiple of 128
 *
 * The image encoder of a vision-language model counts by memory_encoder.h, from vllm-0.8 on.
 *
 * SGLang (python/sglang/srt/model_executor/model_runner.py, profile_max_num_token): weights and K/V
 * have a share of what is free once the communicators are there; graphs and activations have the
 * rest. utilization is its mem_fraction_static.
 *
 *     blocks = floor(((memory - context - libraries - collectives) x share - weights) / block) */
#ifndef SIM_COST_MEMORY_ENGINE_H
#define SIM_COST_MEMORY_ENGINE_H

#include "cost/memory_encoder.h"

enum memory_rule {
    MEMORY_VLLM_0_1,
    MEMORY_VLLM_0_2_5,
    MEMORY_VLLM_0_2_6,
    MEMORY_VLLM_0_3_1,
    MEMORY_VLLM_0_6_4,
    MEMORY_VLLM_0_6_5,
    MEMORY_VLLM_0_7,
    MEMORY_VLLM_0_8,
    MEMORY_VLLM_0_9_1,
    MEMORY_VLLM_0_12,
    MEMORY_VLLM_0_14,
    MEMORY_VLLM_0_17,
    MEMORY_VLLM_0_20,
    MEMORY_SGLANG,
};

/* The step with which an engine profiles its memory; no rule of SGLang reads it. */
struct memory_profile_run {
    int32_t max_batched_tokens, max_seqs;
    int32_t n_data_ranks;       /* the experts compute the tokens of so many ranks together; 0:
                                   one */
    bool flashinfer_sampler;    /* of no effect but where memory_rule_sorts_logits */
    struct encoder_run encoder; /* of no effect but where memory_rule_counts_encoder */
};

/* True if the rule needs a struct memory_profile_run. */
bool memory_rule_profiles(enum memory_rule rule);
/* True if it is one of vLLM V0. */
bool memory_rule_is_v0(enum memory_rule rule);
/* True if the profile run of this rule samples by a sort, unless FlashInfer's kernel does it. */
bool memory_rule_sorts_logits(enum memory_rule rule);
/* True if the rule counts the image encoder of a vision-language model: V1 from 0.8 on. */
bool memory_rule_counts_encoder(enum memory_rule rule);
/* True if one of the engine's blocks is the null block; the blocks of a plan do not include it. */
bool memory_rule_has_null_block(enum memory_rule rule);

/* Returns IFL_E_INPUT, with the arithmetic in the message, if not even one block fits. The plan is
 * shifted by deployment->memory.drawn_sds of its standard deviation, but keeps at least one block.
 */
int memory_plan_engine(const struct model *model, const struct platform *platform,
                       const struct memory_options *options, enum memory_rule rule,
                       const struct memory_profile_run *run, struct memory_plan *plan,
                       struct ifl_error *error);

#endif
