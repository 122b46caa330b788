/* A decoder-only transformer as the cost model sees it: shapes, and what follows from them.
 *
 * A model is read from a YAML file (configs/models/) or from a Hugging Face config.json of a known
 * architecture. FLOPs, bytes and parameter counts are derived from the shapes here and nowhere
 * else. Symbols, for one rank of a tensor-parallel group of t:
 *
 *     h = n_q_heads / t     query heads of a rank
 *     g = max(n_kv_heads / t, 1)     KV heads of a rank; copied where t exceeds them
 *     f = d_ffn / t, V' = ceil(vocab / t)
 *
 * Multi-head latent attention (MLA; DeepSeek-V2, arXiv 2405.04434, section 2.1) is there where
 * kv_lora_rank is not 0. By the symbols of the paper: d_c = kv_lora_rank, d'_c = q_lora_rank, d^R_h
 * = qk_rope_head_dim, and d_h = qk_nope_head_dim for queries and keys, v_head_dim for values. Of a
 * token only c^KV and k^R are kept, d_c + d^R_h elements that all heads and all ranks share (eq. 9,
 * 15). So n_kv_heads is 1 and d_head their number, as with multi-query attention.
 */
#ifndef SIM_COST_MODEL_H
#define SIM_COST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/engine.h"
#include "inflight/error.h"

#include "cost/vision.h"

enum model_mlp { MODEL_MLP_GATED, MODEL_MLP_PLAIN };
enum model_norm { MODEL_RMSNORM, MODEL_LAYERNORM };
/* The format of the layers' matrices; embeddings, LM head and norms are not quantised. int8, int4
 * and mxfp4 are unpacked to 16 bits before they are multiplied, fp8 is multiplied as it is, and so
 * is nvfp4 where a profile has gemm_nvfp4. mxfp4 is that of experts alone, 4 bits and a scale of 8
 * for each 32 (OCP Microscaling Formats 1.0, table 1); the other matrices have 16 bits. nvfp4 has a
 * scale of 8 bits for each 16 (NVIDIA's Model Optimizer); latent attention is left in 16 bits, as
 * in NVIDIA's checkpoints of DeepSeek and Kimi. */
enum model_quantization {
    MODEL_PLAIN,
    MODEL_FP8,
    MODEL_INT8,
    MODEL_INT4,
    MODEL_MXFP4,
    MODEL_NVFP4
};
/* A quantised checkpoint's scales for K/V in fp8, by the tool that wrote them. Servers store K/V
 * so, unless another format is asked for; each began to with another release. */
enum model_kv_scales { MODEL_KV_NO_SCALES, MODEL_KV_MODELOPT, MODEL_KV_COMPRESSED_TENSORS };
#define MODEL_NVFP4_BYTES (4.5 / 8) /* of an element, with its part of the scale */
/* Layers with a state:
 *     delta      the gated delta rule (Gated DeltaNet; Yang et al. 2024, arXiv 2412.06464)
 *     mamba2     state-space duality (Dao & Gu 2024, arXiv 2405.21060): keys are B and queries C, a
 *                pair a group of heads (k_heads), and values the heads' inputs
 *     mamba1     a selective scan (Gu & Dao 2023, arXiv 2312.00752): the same, with one B and C for
 *                all channels (k_heads 1), made of what the convolution leaves; steps are made of
 *                state_rank
 *     kda        Kimi Delta Attention (arXiv 2510.26692): the delta rule with a decay a channel;
 *                decays and gates are made of state_rank
 *     lightning  linear attention with a fixed decay (MiniMax-01, arXiv 2501.08313), without a
 *                convolution
 *     conv       a convolution between two gates, whose last tokens are the state (LFM2): values
 *                alone, no keys */
enum model_state_rule {
    MODEL_STATE_DELTA,
    MODEL_STATE_MAMBA2,
    MODEL_STATE_MAMBA1,
    MODEL_STATE_KDA,
    MODEL_STATE_LIGHTNING,
    MODEL_STATE_CONV
};
/* The layers' matrices by what they are part of. The MLPs are those of a dense model, or of the
 * layers of first_dense_layers; the experts those that a router picks from. */
enum model_part {
    MODEL_PART_ATTENTION,
    MODEL_PART_STATE,
    MODEL_PART_MLP,
    MODEL_PART_SHARED,
    MODEL_PART_EXPERTS,
    MODEL_PARTS
};
enum model_attention_bias { MODEL_BIAS_NONE, MODEL_BIAS_QKV, MODEL_BIAS_QKV_AND_OUT };

/* Other shapes are bounded by IFL_MODEL_MAX_... of inflight/engine.h. */
enum { MODEL_MAX_EXPERTS = 4096 };

struct model {
    char name[128];  /* of the file, without folder and extension; a config.json's folder */
    char about[256]; /* what it is, where the shapes were published */
    int32_t layers, d_model, n_q_heads, n_kv_heads, d_head, d_ffn, vocab;
    int32_t max_model_len;  /* longest prompt + output it was trained for, in tokens */
    int32_t mlp;            /* enum model_mlp */
    int32_t norm;           /* enum model_norm */
    int32_t attention_bias; /* enum model_attention_bias */
    bool mlp_bias;
    bool qk_norm;              /* a norm of d_head on queries and one on keys, in every layer */
    bool branch_norms;         /* norms behind attention and MLP, beside those before them */
    bool embedding_norm;       /* a norm between the embedding and the first layer */
    bool tied_embeddings;      /* the LM head is the embedding, transposed */
    int32_t learned_positions; /* rows of the position table, 0 for rotary and ALiBi */
    int32_t weight_bytes;      /* of an element of weights and activations */
    int32_t kv_bytes;          /* of an element of the KV cache */
    /* K/V in integers of 8 or 4 bits, where kv_bytes is not read: kv_group_elements of them share a
     * scale and what belongs to it, of kv_scale_bytes together. 0: not so. */
    int32_t kv_bits, kv_group_elements, kv_scale_bytes;
    int32_t quantization; /* enum model_quantization */
    /* Integers of 4 bits that share a scale and a zero; 0: not said, -1: a whole column does. */
    int32_t quantization_group;
    bool quantization_symmetric; /* they share a scale alone */
    int32_t kv_scales; /* enum model_kv_scales: what a checkpoint has, not what is simulated */
    /* Share of a part's elements that a quantised checkpoint leaves in weight_bytes each. */
    double plain_frac[MODEL_PARTS];
    int32_t n_experts; /* MLPs of d_ffn in a layer, of which a router picks; 0: one, dense */
    int32_t d_expert;  /* width of what they read and write, where it is a latent of the hidden
                        * state (Nemotron 3 Super); 0: d_model */
    int32_t experts_per_token;
    int32_t n_rank_experts; /* those that a rank holds, or a part of each; 0: all (model_spread) */
    int32_t window_tokens;  /* attention of window_layers sees no further back; 0: no limit */
    int32_t window_layers;  /* the others see everything */
    bool chunked;           /* they see the tokens of their chunk of window_tokens */
    /* Layers with a state in place of attention and K/V; 0: there are none. Each value head has a
     * state of state_k_dim x state_v_dim, after a convolution over conv_tokens; state_bytes per
     * element. */
    int32_t state_rule; /* enum model_state_rule */
    int32_t state_layers, state_k_heads, state_v_heads, state_k_dim, state_v_dim, conv_tokens,
        state_bytes;
    int32_t state_rank;  /* rank in mamba1 and kda */
    bool attention_gate; /* queries have a gate of their width: the outputs of attention take it */
    /* Latent attention; kv_lora_rank 0: there is none. q_lora_rank 0: queries are not compressed;
     * queries of other attention may be compressed, too (Step-3). */
    int32_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    /* Latent attention to the tokens that an indexer picks (DeepSeek-V3.2); 0: to all tokens. */
    int32_t index_heads, index_head_dim, index_topk;
    int32_t index_layers; /* those with an indexer, of which the others take the tokens (GLM-5.2);
                           * 0: all */
    int32_t first_dense_layers,
        d_ffn_dense;                      /* layers with one MLP in place of experts, its width */
    int32_t bare_layers;                  /* layers without an MLP behind their attention or
                                             state */
    int32_t shared_experts, d_ffn_shared; /* shared experts that each token passes, and the width
                                             of one */
    /* Vectors that no other field has, of all layers together, such as the gate of a shared expert,
     * or norms of all heads of queries and keys. Below 0 where layers have fewer norms. */
    int64_t other_parameters;
    struct model_vision vision; /* of memory_engine.h alone: all else is that of the text part */
};

/* `name` is the name of a file in configs/models or a path; a path that ends in .json is read as a
 * Hugging Face config. */
int model_load(const char *name, struct model *model, struct ifl_error *error);

/* The formats that a caller may choose for a model's weights. */
#define MODEL_DTYPES "auto|fp32|fp16|bf16|fp8|int8|int4|nvfp4"
enum model_dtype {
    MODEL_DTYPE_AUTO, /* as the model's file says */
    MODEL_DTYPE_FP32,
    MODEL_DTYPE_FP16,
    MODEL_DTYPE_BF16,
    MODEL_DTYPE_FP8, /* from here on the layers' matrices alone; the rest has 16 bits */
    MODEL_DTYPE_INT8,
    MODEL_DTYPE_INT4,
    MODEL_DTYPE_NVFP4
};
/* Sets the format of the weights. K/V as wide as the activations changes with them. With another
 * quantization than the file's, all matrices have it. */
void model_set_dtype(struct model *model, enum model_dtype dtype);

/* Errors where the ranks cannot share the model evenly: query heads, FFN columns, and KV heads
 * (either a multiple of t or a divisor of it). */
int model_check_parallel(const struct model *model, int32_t tensor_parallel,
                         struct ifl_error *error);

/* The model of a stage of a pipeline with so many of the layers, and one of the two embeddings,
 * since the first stage holds the input embedding and the last the LM head. Its layers have experts
 * where those behind the first have: the first stage, with dense ones, is lighter. */
void model_stage(const struct model *model, int32_t layers, struct model *stage);

/* How a replica is spread over GPUs. All are at least 1. */
struct parallel {
    int32_t tensor;   /* t: ranks that share every layer */
    int32_t pipeline; /* stages that the layers are cut into */
    int32_t data;     /* D: groups of t ranks that share the experts alone, each with its batch */
    int32_t expert;   /* ranks of the t D over which experts are dealt out whole */
    int32_t context;  /* C: of the t ranks, those that share the context of a KV head */
    bool sequence;    /* norms and residuals are divided by t, as Megatron does */
};
/* One GPU, and t of them. */
struct parallel model_tensor_parallel(int32_t tensor);

/* The model of a rank's experts: of `expert` ranks each holds E / expert of them, cut by columns
 * over the t D / expert ranks that hold the same. Errors where ranks cannot share experts or
 * context evenly, and for a dense model with data or expert above 1. `spread` may be the model. */
int model_spread(const struct model *model, const struct parallel *parallel, struct model *spread,
                 struct ifl_error *error);
/* Returns n_rank_experts / E of model_spread; 1 if the model is not spread. */
double model_rank_experts_frac(const struct model *model);

int32_t model_q_heads_per_rank(const struct model *model, int32_t tensor_parallel);
int32_t model_kv_heads_per_rank(const struct model *model, int32_t tensor_parallel);
/* Heads of the keys of states: at least one, copied where ranks exceed them. */
int32_t model_state_k_heads_per_rank(const struct model *model, int32_t tensor_parallel);

static inline bool model_is_latent(const struct model *model)
{
    return model->kv_lora_rank > 0;
}
/* Width of what an expert, or the MLP of a dense model, reads and writes. */
static inline int32_t model_expert_width(const struct model *model)
{
    return model->d_expert > 0 ? model->d_expert : model->d_model;
}
/* Number of parameters of a norm of so many elements. */
static inline int64_t model_norm_parameters(const struct model *model, int64_t width)
{
    return model->norm == MODEL_LAYERNORM ? 2 * width : width;
}
/* The widths of a query or key, and of what a head attends with in the two forms of latent
 * attention: as written (eq. 12 to 18), for prompts, and with W^UK and W^UV absorbed into queries
 * and outputs, for decodes. */
struct model_widths {
    int32_t key, value;
};
struct model_widths model_latent_prompt(const struct model *model);
struct model_widths model_latent_decode(const struct model *model);

/* All learned numbers, exactly, but for the correction that a router adds to its scores:
 *     embeddings  V d (twice unless tied) + learned_positions d + one norm with embedding_norm
 *     a layer     d (n_q_heads + 2 n_kv_heads) d_head + n_q_heads d_head d   attention
 *                 3 d d_ffn gated, 2 d d_ffn plain                          MLP, each expert
 *                 + d n_experts                                             router
 *                 + biases + two norms (d, or 2 d with layernorm), four with branch_norms
 *                 + 2 d_head with qk_norm
 *     at the end  one norm
 *     anywhere    other_parameters
 *
 * Latent attention in place of that of other models, h_q = n_q_heads, each latent with a norm:
 *
 *     d q_lora_rank + q_lora_rank h_q (nope + rope)      queries; d h_q (nope + rope) uncompressed
 *     d (kv_lora_rank + rope) + kv_lora_rank h_q (nope + v)                keys and values
 *     h_q v d                                                              output */
int64_t model_parameters(const struct model *model);
/* Parameters with which a token is multiplied: without the experts that it is not sent to, and
 * without the tables of which it reads a row, the input embedding (unless tied) and learned
 * positions. */
int64_t model_active_parameters(const struct model *model);

/* Weights that a rank holds. Matrices are divided among the ranks, KV projections by KV heads.
 * Every rank has the projections down to a latent, since all its heads need all of it.
 * Every rank holds the norms, the positions and the biases behind a reduction (attention out, MLP
 * down). */
int64_t model_weight_bytes(const struct model *model, int32_t tensor_parallel);

/* The part of model_weight_bytes that is the layers' matrices, without scales of groups. */
int64_t model_matrices_bytes(const struct model *model, int32_t tensor_parallel);
/* The quantised part of these matrices, if a part of them is left in weight_bytes. */
int64_t model_quantized_bytes(const struct model *model, int32_t tensor_parallel);
/* Bytes of the experts from which a router picks. */
int64_t model_experts_bytes(const struct model *model, int32_t tensor_parallel);

/* Bytes of an element of K and V, its share of a scale included. */
double model_kv_element_bytes(const struct model *model);
/* K and V of one token on a rank, all layers: 2 layers g d_head elements; layers (kv_lora_rank +
 * qk_rope_head_dim) with latent attention, on each rank. */
int64_t model_kv_bytes_per_token(const struct model *model, int32_t tensor_parallel);

/* Layers in groups of equal size, where some have a window or a state and others do not (vLLM 0.24,
 * vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups): those with all K/V are one group, the
 * others as many as need be; the last may have fewer. */
struct model_groups {
    int32_t layers;   /* of a group; all where there is one */
    int32_t n_window; /* groups with a window or a state; 0: all layers are one group */
};
/* One group, too, where the window is a chunk, or fewer layers have one than have none. */
struct model_groups model_kv_groups(const struct model *model);
/* The most blocks of a sequence in a group with a window, or those of its state in a group with
 * one. The tokens of a window before the last one need not begin with a block. */
int32_t model_group_blocks(const struct model *model, int32_t tensor_parallel,
                           int32_t block_tokens);

/* Layers with an indexer of their own. */
static inline int32_t model_index_layers(const struct model *model)
{
    const int32_t n = model->index_layers > 0 ? model->index_layers : model->layers;
    return model->index_topk > 0 ? n : 0;
}

/* Bytes that an indexer keeps of a token in a layer: a key of 8 bits an element, and its scale. */
static inline double model_index_bytes(const struct model *model)
{
    return model->index_topk > 0 ? model->index_head_dim + 4 : 0;
}

/* Bytes of a quantised element of a part, with its share of a scale in formats of 4 bits that have
 * one; and of an element in the mean, where some are not quantised. */
double model_quantized_element_bytes(const struct model *model, enum model_part part);
double model_element_bytes(const struct model *model, enum model_part part);
/* The part that mlp up and mlp down of model_layer_linears belong to. */
static inline enum model_part model_picked_part(const struct model *model)
{
    return model->n_experts > 0 ? MODEL_PART_EXPERTS : MODEL_PART_MLP;
}

/* The expected number of experts that a layer reads for n_tokens tokens, if each token picks k of E
 * at random: E (1 - (1 - k/E)^tokens). 1 for a dense model. */
double model_distinct_experts(const struct model *model, double n_tokens);
/* Of the ranks of model_spread, all of which wait for the slowest, the expected number for the one
 * that reads most. With L = n_rank_experts, q = (1 - k/E)^tokens the chance that an expert is not
 * picked, and q2 = ((E-k) (E-k-1) / (E (E-1)))^tokens that neither of two is, a rank's number has
 * the variance L q + L (L-1) q2 - L^2 q^2, and the largest is taken as that of normal numbers: 1 to
 * 13% below draws at random. model_distinct_experts where ranks hold all. */
double model_most_experts(const struct model *model, double n_tokens);
/* Number of MLPs that a token passes. */
double model_experts_per_token(const struct model *model);

/* y[m][n] = x[m][k] w[n][k] on one rank. */
struct model_linear {
    const char *name;
    int64_t n, k;
};

/* The four products of a layer, with their n and k:
 *     qkv       (h + 2 g) d_head,  d       (2 h + 2 g) d_head with attention_gate; q_lora_rank in
 *                                          place of h d_head for queries made of a latent
 *     out       d,                 h d_head
 *     mlp up    2 f gated, f plain, d
 *     mlp down  d,                 f
 * The last two are those of one expert, with d_expert in place of d if it is set. With latent
 * attention qkv is the projection of the hidden state to both latents and to k^R, (q_lora_rank +
 * kv_lora_rank + rope, or h (nope + rope) for the first), and out has k = h v. */
#define MODEL_LINEARS 4
enum { MODEL_MLP_UP = 2, MODEL_MLP_DOWN = 3 };
void model_layer_linears(const struct model *model, int32_t tensor_parallel,
                         struct model_linear linears[MODEL_LINEARS]);

/* The two products behind the latents, W^UQ with W^QR, and W^UK with W^UV; of other models, and of
 * queries that are not compressed, n is 0:
 *     q up      h (nope + rope), or h d_head without a latent of keys,  q_lora_rank
 *     kv up     h (nope + v),     kv_lora_rank */
#define MODEL_UPS 2
enum { MODEL_Q_UP, MODEL_KV_UP };
void model_latent_ups(const struct model *model, int32_t tensor_parallel,
                      struct model_linear ups[MODEL_UPS]);

/* The columns, on one rank, of the MLP of a layer without experts, and of a layer's shared experts
 * together, which run as one MLP. 0: there is none. */
int64_t model_dense_columns(const struct model *model, int32_t tensor_parallel);
int64_t model_shared_columns(const struct model *model, int32_t tensor_parallel);

/* The products of a layer with a state, with K = max(k_heads / t, 1) k_dim, V = v_heads v_dim / t,
 * H = v_heads / t and R = state_rank:
 *
 *                 n, by rule                                     k
 *     state in    delta 2 K + 2 V + 2 H, mamba2 2 K + 2 V + H,   d
 *                 mamba1 2 V, kda 2 K + V + H + 2 R,
 *                 lightning 2 K + 2 V, conv 3 V
 *     state out   d                                              V
 *     state down  mamba1 R + 2 K, others 0                       V
 *     state up    mamba1 V, kda 2 V, others 0                    R */
enum { MODEL_STATE_IN, MODEL_STATE_OUT, MODEL_STATE_DOWN, MODEL_STATE_UP, MODEL_STATE_LINEARS };
void model_state_linears(const struct model *model, int32_t tensor_parallel,
                         struct model_linear linears[MODEL_STATE_LINEARS]);
/* V and K of these, and the channels of the convolution. */
int64_t model_state_values(const struct model *model, int32_t tensor_parallel);
int64_t model_state_keys(const struct model *model, int32_t tensor_parallel);
int64_t model_state_channels(const struct model *model, int32_t tensor_parallel);
/* Parameters of such a layer that are in no matrix: of the convolution, decays, norms. */
int64_t model_state_vectors(const struct model *model, int32_t tensor_parallel);
/* The name of the rule; whether the rule has state_rank, and a convolution; whether it is a delta
 * rule, which reads the state with a key before it writes. */
const char *model_state_name(const struct model *model);
bool model_state_needs_rank(const struct model *model);
bool model_state_asks(const struct model *model);
bool model_state_convolves(const struct model *model);
/* The state of a sequence in one such layer, on a rank, with the last tokens of its convolution. */
int64_t model_state_bytes(const struct model *model, int32_t tensor_parallel);
/* The number of tokens that have K/V of this size in one of the other layers. */
double model_state_tokens(const struct model *model, int32_t tensor_parallel);

/* The product of the LM head: n = V', k = d. */
struct model_linear model_lm_head(const struct model *model, int32_t tensor_parallel);

/* ---- for the readers of files ---- */

/* Fills `model` from a Hugging Face config. Supported `model_type`s are in the error for others. */
int model_read_huggingface(const char *path, struct model *model, struct ifl_error *error);

/* Derives fields that were left 0 (n_kv_heads, d_head, d_ffn_shared, window_layers, conv_tokens,
 * state_bytes). Returns the name of a field that contradicts the others, with the reason in
 * `error`, or NULL. */
const char *model_complete(struct model *model, struct ifl_error *error);

#endif
