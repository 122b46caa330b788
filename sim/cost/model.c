#include "cost/model.h"

#include <math.h>
#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

int32_t model_q_heads_per_rank(const struct model *model, int32_t tensor_parallel)
{
    return model->n_q_heads / tensor_parallel;
}

/* Ranks beyond the heads hold copies. */
static int32_t heads_per_rank(int32_t n_heads, int32_t tensor_parallel)
{
    const int32_t share = n_heads / tensor_parallel;
    return share > 0 ? share : 1;
}

int32_t model_kv_heads_per_rank(const struct model *model, int32_t tensor_parallel)
{
    return heads_per_rank(model->n_kv_heads, tensor_parallel);
}

int32_t model_state_k_heads_per_rank(const struct model *model, int32_t tensor_parallel)
{
    return heads_per_rank(model->state_k_heads, tensor_parallel);
}

/* Of what is made of the hidden state for the queries. */
static int64_t query_columns(const struct model *model, int64_t n_heads)
{
    const int32_t width = model_is_latent(model) ? model_latent_prompt(model).key : model->d_head;
    return model->q_lora_rank > 0 ? model->q_lora_rank : n_heads * width;
}

void model_layer_linears(const struct model *model, int32_t tensor_parallel,
                         struct model_linear linears[MODEL_LINEARS])
{
    const int64_t h = model_q_heads_per_rank(model, tensor_parallel);
    const int64_t g = model_kv_heads_per_rank(model, tensor_parallel);
    const int64_t d = model->d_model, d_head = model->d_head;
    const int64_t f = model->d_ffn / tensor_parallel;
    const int64_t up = model->mlp == MODEL_MLP_GATED ? 2 * f : f;

    const int64_t gates = model->attention_gate ? h : 0;
    const int64_t kept = model_is_latent(model) ? d_head : 2 * g * d_head;
    const int64_t value = model_is_latent(model) ? model->v_head_dim : d_head;
    const int64_t queries = query_columns(model, h) + gates * d_head;
    linears[0] = (struct model_linear){"qkv", queries + kept, d};
    linears[1] = (struct model_linear){"out", d, h * value};
    linears[2] = (struct model_linear){"mlp up", up, model_expert_width(model)};
    linears[3] = (struct model_linear){"mlp down", model_expert_width(model), f};
}

struct model_linear model_lm_head(const struct model *model, int32_t tensor_parallel)
{
    return (struct model_linear){"lm head", ceil_div(model->vocab, tensor_parallel),
                                 model->d_model};
}

/* Layers with experts; of a dense model, those with an MLP. */
static int64_t routed_layers(const struct model *model)
{
    return model->layers - model->first_dense_layers - model->bare_layers;
}

/* MLPs of a layer that a rank holds, beside the shared ones. */
static int64_t held_experts(const struct model *model)
{
    const int32_t n = model->n_rank_experts > 0 ? model->n_rank_experts : model->n_experts;
    return n > 0 ? n : 1;
}

static int64_t layer_biases(const struct model *model, const struct model_linear *linears)
{
    int64_t n = 0;
    if (model->attention_bias != MODEL_BIAS_NONE)
        n += linears[0].n;
    if (model->attention_bias == MODEL_BIAS_QKV_AND_OUT)
        n += linears[1].n;
    if (model->mlp_bias)
        n += (linears[2].n + linears[3].n) * held_experts(model);
    return n;
}

/* Of an MLP of so many columns, which reads and writes `width` elements. */
static int64_t mlp_matrices(const struct model *model, int64_t columns, int32_t width)
{
    return (model->mlp == MODEL_MLP_GATED ? 3 : 2) * columns * width;
}

static int64_t attention_matrices(const struct model *model, int32_t tensor_parallel)
{
    struct model_linear linears[MODEL_LINEARS], ups[MODEL_UPS];
    int64_t n = 0;
    model_layer_linears(model, tensor_parallel, linears);
    model_latent_ups(model, tensor_parallel, ups);
    for (int i = 0; i < MODEL_MLP_UP; i++)
        n += linears[i].n * linears[i].k;
    for (int i = 0; i < MODEL_UPS; i++)
        n += ups[i].n * ups[i].k;
    return n;
}

static int64_t index_matrices(const struct model *model)
{
    const int64_t heads = model->index_heads, width = model->index_head_dim;
    return heads * width * model->q_lora_rank + (heads + width) * model->d_model;
}

static int64_t state_matrices(const struct model *model, int32_t tensor_parallel)
{
    struct model_linear of[MODEL_STATE_LINEARS];
    int64_t n = 0;
    model_state_linears(model, tensor_parallel, of);
    for (int i = 0; i < MODEL_STATE_LINEARS; i++)
        n += of[i].n * of[i].k;
    return n;
}

/* With n_mlps that a router picks from in a layer of experts. */
static int64_t matrices_of(const struct model *model, int32_t tensor_parallel, enum model_part part,
                           int64_t n_mlps)
{
    const int64_t columns = n_mlps * (model->d_ffn / tensor_parallel);
    const bool has_experts = model->n_experts > 0;
    switch (part) {
    case MODEL_PART_ATTENTION:
        return (model->layers - model->state_layers) * attention_matrices(model, tensor_parallel) +
               model_index_layers(model) * index_matrices(model);
    case MODEL_PART_STATE:
        return model->state_layers * state_matrices(model, tensor_parallel);
    case MODEL_PART_MLP:
        if (has_experts)
            return model->first_dense_layers *
                   mlp_matrices(model, model_dense_columns(model, tensor_parallel), model->d_model);
        return routed_layers(model) * mlp_matrices(model, columns, model->d_model);
    case MODEL_PART_SHARED:
        return routed_layers(model) *
               mlp_matrices(model, model_shared_columns(model, tensor_parallel), model->d_model);
    case MODEL_PART_EXPERTS:
        return has_experts
                   ? routed_layers(model) * mlp_matrices(model, columns, model_expert_width(model))
                   : 0;
    case MODEL_PARTS:
        break;
    }
    return 0;
}

static int64_t matrices_with(const struct model *model, int32_t tensor_parallel, int64_t n_mlps)
{
    int64_t n = 0;
    for (int part = 0; part < MODEL_PARTS; part++)
        n += matrices_of(model, tensor_parallel, (enum model_part)part, n_mlps);
    return n;
}

static int64_t layers_matrices(const struct model *model, int32_t tensor_parallel)
{
    return matrices_with(model, tensor_parallel, held_experts(model));
}

static int64_t part_matrices(const struct model *model, int32_t tensor_parallel,
                             enum model_part part)
{
    return matrices_of(model, tensor_parallel, part, held_experts(model));
}

/* Norms of queries and keys, and of latents. */
static int64_t attention_norms(const struct model *model)
{
    const int64_t of_heads = model->qk_norm ? 2 * model_norm_parameters(model, model->d_head) : 0;
    return of_heads + model_norm_parameters(model, model->q_lora_rank) +
           model_norm_parameters(model, model->kv_lora_rank);
}

static int64_t layer_vectors(const struct model *model, int32_t tensor_parallel)
{
    struct model_linear linears[MODEL_LINEARS];
    model_layer_linears(model, tensor_parallel, linears);
    const int n_norms = model->branch_norms ? 4 : 2;
    return layer_biases(model, linears) + n_norms * model_norm_parameters(model, model->d_model) +
           attention_norms(model);
}

/* Of layers with a state, more than of those without. */
static int64_t state_vectors(const struct model *model, int32_t tensor_parallel)
{
    const int64_t more = model_state_vectors(model, tensor_parallel) - attention_norms(model);
    return model->state_layers > 0 ? model->state_layers * more : 0;
}

static int64_t router_parameters(const struct model *model)
{
    const int64_t width = model->d_model + (model->mlp_bias ? 1 : 0);
    return routed_layers(model) * model->n_experts * width;
}

static int64_t embedding_parameters(const struct model *model, int32_t tensor_parallel)
{
    const struct model_linear head = model_lm_head(model, tensor_parallel);
    int64_t n = head.n * head.k * (model->tied_embeddings ? 1 : 2);
    n += (int64_t)model->learned_positions * model->d_model;
    if (model->embedding_norm)
        n += model_norm_parameters(model, model->d_model);
    return n;
}

/* The parameters that are not in the layers' matrices. */
static int64_t plain_parameters(const struct model *model, int32_t tensor_parallel)
{
    return embedding_parameters(model, tensor_parallel) +
           model->layers * layer_vectors(model, tensor_parallel) -
           model->bare_layers * model_norm_parameters(model, model->d_model) +
           state_vectors(model, tensor_parallel) + router_parameters(model) +
           model_norm_parameters(model, model->d_model) + model->other_parameters;
}

int64_t model_parameters(const struct model *model)
{
    return plain_parameters(model, 1) + layers_matrices(model, 1);
}

static int64_t unpicked_biases(const struct model *model, int64_t n_mlps)
{
    struct model_linear linears[MODEL_LINEARS];
    model_layer_linears(model, 1, linears);
    const int64_t of_mlp = linears[MODEL_MLP_UP].n + linears[MODEL_MLP_DOWN].n;
    return model->mlp_bias ? model->layers * (held_experts(model) - n_mlps) * of_mlp : 0;
}

int64_t model_active_parameters(const struct model *model)
{
    const int64_t n_mlps = model->n_experts > 0 ? model->experts_per_token : 1;
    const int64_t n_rows = (model->tied_embeddings ? 0 : model->vocab) + model->learned_positions;
    const int64_t biases = unpicked_biases(model, n_mlps);
    return plain_parameters(model, 1) - biases - n_rows * model->d_model +
           matrices_with(model, 1, n_mlps);
}

void model_set_dtype(struct model *model, enum model_dtype dtype)
{
    static const enum model_quantization quantization[] = {[MODEL_DTYPE_FP8] = MODEL_FP8,
                                                           [MODEL_DTYPE_INT8] = MODEL_INT8,
                                                           [MODEL_DTYPE_INT4] = MODEL_INT4,
                                                           [MODEL_DTYPE_NVFP4] = MODEL_NVFP4};
    const int32_t bytes = dtype == MODEL_DTYPE_FP32 ? 4 : 2;
    if (dtype == MODEL_DTYPE_AUTO)
        return;
    if (model->kv_bytes == model->weight_bytes)
        model->kv_bytes = bytes;
    model->weight_bytes = bytes;
    if (model->quantization != (int32_t)quantization[dtype])
        memset(model->plain_frac, 0, sizeof model->plain_frac);
    model->quantization = quantization[dtype];
}

static double matrix_bytes(const struct model *model)
{
    switch ((enum model_quantization)model->quantization) {
    case MODEL_FP8:
    case MODEL_INT8:
        return 1;
    case MODEL_INT4:
        return 0.5;
    case MODEL_NVFP4:
        return MODEL_NVFP4_BYTES;
    case MODEL_PLAIN:
    case MODEL_MXFP4:
        break;
    }
    return model->weight_bytes;
}

double model_quantized_element_bytes(const struct model *model, enum model_part part)
{
    if (part == MODEL_PART_EXPERTS && model->quantization == MODEL_MXFP4)
        return 4.25 / 8;
    const bool is_plain = part == MODEL_PART_ATTENTION && model->quantization == MODEL_NVFP4 &&
                          model_is_latent(model);
    return is_plain ? model->weight_bytes : matrix_bytes(model);
}

double model_element_bytes(const struct model *model, enum model_part part)
{
    const double plain = model->plain_frac[part];
    return plain * model->weight_bytes + (1 - plain) * model_quantized_element_bytes(model, part);
}

static double part_bytes(const struct model *model, int32_t tensor_parallel, enum model_part part)
{
    return (double)part_matrices(model, tensor_parallel, part) * model_element_bytes(model, part);
}

int64_t model_experts_bytes(const struct model *model, int32_t tensor_parallel)
{
    return (int64_t)part_bytes(model, tensor_parallel, MODEL_PART_EXPERTS);
}

int64_t model_matrices_bytes(const struct model *model, int32_t tensor_parallel)
{
    double n = 0;
    for (int part = 0; part < MODEL_PART_EXPERTS; part++)
        n += part_bytes(model, tensor_parallel, (enum model_part)part);
    return (int64_t)n + model_experts_bytes(model, tensor_parallel);
}

int64_t model_quantized_bytes(const struct model *model, int32_t tensor_parallel)
{
    double n = 0;
    for (int part = 0; part < MODEL_PARTS; part++)
        n += (double)part_matrices(model, tensor_parallel, (enum model_part)part) *
             (1 - model->plain_frac[part]) *
             model_quantized_element_bytes(model, (enum model_part)part);
    return (int64_t)n;
}

/* Of 4 bits, each group has a scale of 16 and a zero of 4 bits (vLLM's quantization/awq.py and
 * gptq_marlin.py, create_weights; 128 is what most checkpoints have), or the scale alone
 * (compressed_tensors_wNa16.py). Those of a whole column are next to nothing. */
static int64_t scale_bytes(const struct model *model, int32_t tensor_parallel)
{
    const int32_t group = model->quantization_group == 0 ? 128 : model->quantization_group;
    const int32_t bits = model->quantization_symmetric ? 16 : 20;
    if (model->quantization != MODEL_INT4)
        return 0;
    return group < 0 ? 0 : model_quantized_bytes(model, tensor_parallel) * bits / 4 / group;
}

int64_t model_weight_bytes(const struct model *model, int32_t tensor_parallel)
{
    return model->weight_bytes * plain_parameters(model, tensor_parallel) +
           model_matrices_bytes(model, tensor_parallel) + scale_bytes(model, tensor_parallel);
}

/* The chance that a given expert is picked for none of the tokens. */
static double idle_frac(const struct model *model, double n_tokens)
{
    return pow(1 - model->experts_per_token / (double)model->n_experts, n_tokens);
}

double model_distinct_experts(const struct model *model, double n_tokens)
{
    if (model->n_experts == 0)
        return 1;
    return model->n_experts * (1 - idle_frac(model, n_tokens));
}

double model_experts_per_token(const struct model *model)
{
    return model->n_experts > 0 ? model->experts_per_token : 1;
}

double model_kv_element_bytes(const struct model *model)
{
    if (model->kv_bits == 0)
        return model->kv_bytes;
    return model->kv_bits / 8.0 + (double)model->kv_scale_bytes / model->kv_group_elements;
}

/* What a token of a layer of sparse attention has beside its latent where K/V has 8 bits: four
 * scales of 32 bits and a second byte for each element of the rotary part (fp8_ds_mla of
 * vllm/v1/attention/backends/mla/flashmla_sparse.py). The index key is that of an indexer. */
static int64_t sparse_bytes(const struct model *model)
{
    const bool is_fp8 = model->index_topk > 0 && model->kv_bits == 0 && model->kv_bytes == 1;
    return is_fp8 ? 16 + model->qk_rope_head_dim : 0;
}

int64_t model_kv_bytes_per_token(const struct model *model, int32_t tensor_parallel)
{
    const int64_t of_a_head = model_is_latent(model) ? 1 : 2; /* a latent, or K and V */
    const int64_t layers = model->layers - model->state_layers;
    const int64_t elements =
        of_a_head * layers * model_kv_heads_per_rank(model, tensor_parallel) * model->d_head;
    const int64_t of_index = layers * sparse_bytes(model) +
                             model_index_layers(model) * (int64_t)model_index_bytes(model);
    return of_index + (model->kv_bits == 0
                           ? elements * model->kv_bytes
                           : (int64_t)ceil((double)elements * model_kv_element_bytes(model)));
}

struct model_groups model_kv_groups(const struct model *model)
{
    const int32_t n_window = model->window_layers + model->state_layers;
    const int32_t n_full = model->layers - n_window;
    if (model->chunked || n_window < n_full || n_full == 0)
        return (struct model_groups){model->layers, 0};
    return (struct model_groups){n_full, (int32_t)ceil_div(n_window, n_full)};
}

double model_state_tokens(const struct model *model, int32_t tensor_parallel)
{
    const double layers = model->layers - model->state_layers;
    const double token_bytes = (double)model_kv_bytes_per_token(model, tensor_parallel) / layers;
    return (double)model_state_bytes(model, tensor_parallel) / token_bytes;
}

int32_t model_group_blocks(const struct model *model, int32_t tensor_parallel, int32_t block_tokens)
{
    if (model->state_layers > 0)
        return (int32_t)fmax(ceil(model_state_tokens(model, tensor_parallel) / block_tokens), 1);
    return (int32_t)ceil_div(model->window_tokens - 1, block_tokens) + 1;
}

void model_stage(const struct model *model, int32_t layers, struct model *stage)
{
    ifl_assert(layers > 0 && layers <= model->layers);
    *stage = *model;
    stage->layers = layers;
    stage->window_layers = (int32_t)((int64_t)model->window_layers * layers / model->layers);
    stage->index_layers = (int32_t)ceil_div((int64_t)model->index_layers * layers, model->layers);
    stage->state_layers = (int32_t)((int64_t)model->state_layers * layers / model->layers);
    stage->bare_layers = (int32_t)((int64_t)model->bare_layers * layers / model->layers);
    stage->other_parameters = model->other_parameters / model->layers * layers;
    if (layers < model->layers) {
        stage->tied_embeddings = true;
        stage->first_dense_layers = 0;
    }
}

struct parallel model_tensor_parallel(int32_t tensor)
{
    return (struct parallel){tensor, 1, 1, 1, 1, false};
}

static int check_context(const struct model *model, const struct parallel *parallel,
                         struct ifl_error *error)
{
    const int32_t copies = parallel->tensor / model->n_kv_heads;
    if (parallel->context == 1 || (copies > 0 && copies % parallel->context == 0))
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "parallel.context is %d, expected a divisor of the %d ranks that hold the same "
                    "of the %d KV heads of %s at parallel.tensor %d",
                    parallel->context, copies > 0 ? copies : 1, model->n_kv_heads, model->name,
                    parallel->tensor);
}

int model_spread(const struct model *model, const struct parallel *parallel, struct model *spread,
                 struct ifl_error *error)
{
    const int32_t n_ranks = parallel->tensor * parallel->data, e = parallel->expert;
    const bool spreads = e > 1 || parallel->data > 1;
    if (check_context(model, parallel, error))
        return error->code;
    *spread = *model;
    if (!spreads)
        return 0;
    if (model->n_experts == 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.%s is %d, expected 1 for %s, which has no experts: its replicas "
                        "share nothing (cluster.replicas)",
                        e > 1 ? "expert" : "data", e > 1 ? e : parallel->data, model->name);
    if (n_ranks % e != 0 || model->n_experts % e != 0 || model->d_ffn % (n_ranks / e) != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.expert is %d, expected a divisor of the %d ranks of "
                        "parallel.tensor x parallel.data and of the %d experts of %s, whose %d "
                        "columns the ranks that are left share evenly",
                        e, n_ranks, model->n_experts, model->name, model->d_ffn);
    spread->n_rank_experts = model->n_experts / e;
    spread->d_ffn = model->d_ffn / (n_ranks / e) * parallel->tensor;
    return 0;
}

double model_rank_experts_frac(const struct model *model)
{
    return model->n_rank_experts > 0 ? (double)model->n_rank_experts / model->n_experts : 1;
}

/* The expected largest of n standard normal numbers (Tippett 1925, for n from 2 on by powers of
 * two; between them a line in log n). */
static double largest_of(double n)
{
    static const double largest[] = {0,      0.5642, 1.0294, 1.4236, 1.7660,
                                     2.0697, 2.3437, 2.5946, 2.8269, 3.0439};
    enum { LAST = sizeof largest / sizeof *largest - 1 };
    const double at = fmin(log2(n), LAST), from = fmin(floor(at), LAST - 1);
    const double *of = &largest[(int)from];
    return of[0] + (at - from) * (of[1] - of[0]);
}

double model_most_experts(const struct model *model, double n_tokens)
{
    const double frac = model_rank_experts_frac(model);
    const double e = model->n_experts, k = model->experts_per_token, l = e * frac;
    if (frac >= 1 || l < 1)
        return model_distinct_experts(model, n_tokens) * frac;
    const double idle = idle_frac(model, n_tokens), mean = e * (1 - idle) * frac;
    const double both_idle = pow((e - k) * (e - k - 1) / (e * (e - 1)), n_tokens);
    const double variance = l * idle + l * (l - 1) * both_idle - l * l * idle * idle;
    return fmin(mean + largest_of(1 / frac) * sqrt(fmax(variance, 0)), l);
}

int model_check_parallel(const struct model *model, int32_t tensor_parallel,
                         struct ifl_error *error)
{
    const int32_t t = tensor_parallel, kv = model->n_kv_heads;
    if (t < 1)
        return ifl_fail(error, IFL_E_INPUT, "parallel.tensor is %d, expected at least 1", t);
    if (model->n_q_heads % t != 0 || model->d_ffn % t != 0 || (kv % t != 0 && t % kv != 0))
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.tensor is %d, expected a number that shares the %d query heads, "
                        "%d KV heads and %d FFN columns of %s evenly",
                        t, model->n_q_heads, kv, model->d_ffn, model->name);
    const bool copies_keys =
        model->state_k_heads == 1 &&
        (model->state_rule == MODEL_STATE_MAMBA2 || model->state_rule == MODEL_STATE_MAMBA1);
    if ((model->state_k_heads % t != 0 && !copies_keys) || model->state_v_heads % t != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.tensor is %d, expected a number that shares the %d and %d heads "
                        "of the states of %s evenly",
                        t, model->state_k_heads, model->state_v_heads, model->name);
    if (model->d_ffn_dense % t != 0 ||
        model->shared_experts * (int64_t)model->d_ffn_shared % t != 0)
        return ifl_fail(
            error, IFL_E_INPUT,
            "parallel.tensor is %d, expected a number that shares the %d FFN columns of "
            "the dense layers and the %d x %d of the shared experts of %s evenly",
            t, model->d_ffn_dense, model->shared_experts, model->d_ffn_shared, model->name);
    return 0;
}
