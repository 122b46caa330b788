/* The roofline of a step on one rank of a tensor-parallel group:
 *
 *     duration = swap out + swap in + block copies + max(forward, floor) + host + kept K/V
 *     forward  = L (sum of 4 gemm(m, n, k) + E + 2 C + A_prefill + A_decode) + gemm(rows, V', d)
 *                + (stages - 1) send(m d)
 *     host     = step + L layer + sequences seq
 *
 * Of the L layers, those with a window have a different A (roofline_window.h). Layers with a state
 * have another operation in place of A, and other products around it (roofline_state.h).
 *
 * L is the number of layers, m the number of all new tokens of the step, and rows the number of
 * sampled ones; kernels.h has the operations. All ranks do the same work and synchronise in the
 * all-reduces, so one rank stands for all. In a step with prompts, the products and E of the
 * layers, and A_prefill, take only the share kernels.prompt_frac of these times. The stages of a
 * pipeline run one after the other and swap side by side. A step without tokens has no forward
 * pass, and the host does not launch its layers. In a pipeline, the time of a step in a stage is
 * that of the stage's layers and swaps. The first stage also has the host's time for the step and
 * the sequences, the last stage the product of the head.
 *
 * Data-parallel ranks share the experts, and wait for each other in every layer's exchange: the
 * experts compute the tokens of all ranks (M in place of m), each layer has an exchange
 * (collective.h) in addition, and the step of all ranks lasts as long as the longest one. Each rank
 * has its part of the experts' rows, M k / expert, times the imbalance. A rank without work
 * computes one token. */
#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"

#include "cost/kind.h"
#include "cost/roofline.h"
#include "cost/roofline_layers.h"
#include "cost/roofline_sparse.h"
#include "cost/roofline_state.h"
#include "cost/roofline_window.h"

/* Times that depend on m alone, or on rows alone, are computed once for each value. */
enum { MEMO_TOKENS = 16384, MEMO_ROWS = 4096, MEMO_SEQS = 512 };

struct roofline {
    struct cost base;
    struct model model;
    struct platform platform;
    struct roofline_rank rank;        /* points at both */
    double tokens_s[MEMO_TOKENS + 1]; /* 0: not computed yet */
    double rows_s[MEMO_ROWS + 1];
    struct decode_line lines[MEMO_SEQS + 1]; /* split_tokens 0: not computed yet */
    double *prompts_s; /* as tokens_s, of steps with prompts; tokens_s itself if they are alike */
    double scaled_s[MEMO_TOKENS + 1];
};

/* Of the profile's times: those of this step's kernels. */
static inline double kernels_frac(const struct roofline_rank *rank,
                                  const struct ifl_step_totals *totals)
{
    return totals->n_prefill_tokens > 0 ? rank->prompt_frac : 1;
}

static double head_s(const struct roofline_rank *rank, double rows)
{
    return gemm_s(rank->hardware, rows, (double)rank->head.n, (double)rank->head.k,
                  rank->model->weight_bytes);
}

static double tokens_s(struct roofline *roofline, const struct ifl_step_totals *totals)
{
    const int32_t n_tokens = totals->n_tokens;
    const struct roofline_tokens m = {n_tokens, n_tokens};
    if (IFL_RARE(n_tokens > MEMO_TOKENS))
        return roofline_layers_s(&roofline->rank, m, kernels_frac(&roofline->rank, totals));
    double *memo = totals->n_prefill_tokens > 0 ? roofline->prompts_s : roofline->tokens_s;
    if (IFL_RARE(memo[n_tokens] == 0))
        memo[n_tokens] =
            roofline_layers_s(&roofline->rank, m, kernels_frac(&roofline->rank, totals));
    return memo[n_tokens];
}

IFL_HOT static double rows_s(struct roofline *roofline, int32_t rows)
{
    if (IFL_RARE(rows > MEMO_ROWS))
        return head_s(&roofline->rank, rows);
    double *known = &roofline->rows_s[rows];
    if (IFL_RARE(*known == 0))
        *known = head_s(&roofline->rank, rows);
    return *known;
}

static struct decode_line line_of(struct roofline *roofline, int32_t n_seqs)
{
    const struct roofline_rank *rank = &roofline->rank;
    if (IFL_RARE(n_seqs > MEMO_SEQS))
        return decode_line(rank->hardware, &rank->decode_heads, n_seqs);
    struct decode_line *known = &roofline->lines[n_seqs];
    if (IFL_RARE(known->split_tokens <= 0))
        *known = decode_line(rank->hardware, &rank->decode_heads, n_seqs);
    return *known;
}

static double prefill_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    if (totals->n_prefill_tokens <= 0)
        return 0;
    const struct prefill_shape shape = {
        .n_tokens = totals->n_prefill_tokens,
        .q_context = (double)totals->prefill_q_kv,
        .q_q = (double)totals->prefill_q_q,
        .longest_kv = totals->max_prefill_kv,
        .n_seqs = totals->n_prefill_seqs,
    };
    return rank->prompt_frac * prefill_attention_s(rank->hardware, &rank->heads, &shape);
}

static double decode_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct decode_shape shape = {totals->n_decode_seqs,
                                       roofline_context(rank, totals->decode_context)};
    if (totals->n_prefill_tokens > 0 && rank->latent_layers == 0)
        return decode_attention_mixed_s(rank->hardware, &rank->decode_heads, &shape);
    return decode_attention_s(rank->hardware, &rank->decode_heads, &shape);
}

static inline double plain_attention_s(const struct roofline_rank *rank,
                                       const struct ifl_step_totals *totals)
{
    return prefill_s(rank, totals) + decode_s(rank, totals);
}

/* A layer's attention in the mean, where some see less than all, or have a state. */
IFL_APART static double mixed_attention_s(const struct roofline_rank *rank,
                                          const struct ifl_step_totals *totals)
{
    if (rank->state_layers > 0)
        return others_mean(rank, plain_attention_s(rank, totals), roofline_state_s(rank, totals));
    const struct ifl_step_totals seen = window_totals(rank, totals);
    if (is_sparse(rank))
        return decode_s(rank, &seen) + rank->prompt_frac * roofline_sparse_s(rank, totals, &seen);
    return others_mean(rank, plain_attention_s(rank, totals), plain_attention_s(rank, &seen));
}

static inline double attention_s(const struct roofline_rank *rank,
                                 const struct ifl_step_totals *totals)
{
    return IFL_RARE(rank->other_layers > 0) ? mixed_attention_s(rank, totals)
                                            : plain_attention_s(rank, totals);
}

/* Of layers that attend: what products behind latents add to those by tokens alone. */
static inline double plus_latent_s(const struct roofline_rank *rank,
                                   const struct ifl_step_totals *totals, double s)
{
    if (IFL_RARE(rank->latent_layers > 0))
        s += rank->latent_layers * (kernels_frac(rank, totals) * roofline_latent_s(rank, totals));
    return s;
}

static double host_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct host_times *host = rank->host;
    const int32_t layers = totals->n_tokens > 0 ? rank->model->layers : 0;
    const int32_t n_seqs = totals->n_prefill_seqs + totals->n_decode_seqs;
    const double prompt_s = totals->n_prefill_tokens > 0 ? host->prompt_layer_s * layers : 0;
    return host->step_s + host->layer_s * layers + host->seq_s * n_seqs + prompt_s;
}

/* s and the time of the blocks that are swapped and copied. */
static inline double plus_copies_s(const struct roofline_rank *rank,
                                   const struct ifl_step_totals *totals, double s)
{
    const struct hardware *hardware = rank->hardware;
    if (IFL_RARE(totals->n_blocks_out > 0))
        s += swap_s(hardware, SWAP_OUT, totals->n_blocks_out, rank->block_bytes);
    if (IFL_RARE(totals->n_blocks_in > 0))
        s += swap_s(hardware, SWAP_IN, totals->n_blocks_in, rank->block_bytes);
    if (IFL_RARE(totals->n_blocks_copied > 0))
        s += block_copy_s(hardware, totals->n_blocks_copied, rank->block_bytes);
    if (IFL_RARE(totals->n_slots_kept + totals->n_keys_voted > 0))
        s += roofline_keep_s(rank, totals);
    return s;
}

/* The least time of a forward pass through `layers` layers. */
static inline double least_forward_s(const struct host_times *host,
                                     const struct ifl_step_totals *totals, double floor_s,
                                     int32_t layers)
{
    if (!IFL_RARE(host->prompt_floor_layer_s > 0) || totals->n_prefill_tokens == 0)
        return floor_s;
    return fmax(floor_s, host->prompt_floor_layer_s * layers);
}

/* matrices_s: the time of all products and element-wise operations. */
IFL_HOT static double step_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals,
                             double matrices_s)
{
    const struct host_times *host = rank->host;
    const int32_t layers = rank->model->layers;
    double s = host_s(rank, totals);
    if (totals->n_tokens > 0) {
        const double least_s = least_forward_s(host, totals, host->floor_s, layers),
                     forward_s = matrices_s + layers * attention_s(rank, totals);
        s += forward_s > least_s ? forward_s : least_s;
    }
    return plus_copies_s(rank, totals, s);
}

double roofline_latent_module_s(const struct roofline_rank *rank,
                                const struct ifl_step_totals *totals)
{
    return roofline_projections_s(rank, totals->n_tokens) + roofline_latent_s(rank, totals) +
           attention_s(rank, totals);
}

double roofline_step_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct roofline_tokens m = {totals->n_tokens, totals->n_tokens};
    const double frac = kernels_frac(rank, totals);
    ifl_assert(rank->allreduce.gb_per_s > 0 || rank->heads.q_heads == rank->model->n_q_heads);
    return step_s(
        rank, totals,
        plus_latent_s(rank, totals,
                      roofline_layers_s(rank, m, frac) + head_s(rank, totals->n_sampled)));
}

static inline double matrices_s(struct roofline *roofline, const struct ifl_step_totals *totals)
{
    return plus_latent_s(&roofline->rank, totals,
                         tokens_s(roofline, totals) + rows_s(roofline, totals->n_sampled));
}

IFL_HOT static double remembered_step_s(struct cost *cost, const struct ifl_step_totals *totals)
{
    struct roofline *roofline = (struct roofline *)cost;
    return step_s(&roofline->rank, totals, matrices_s(roofline, totals));
}

/* ---- the stages of a pipeline ---- */

/* Of one layer: on the host, and of the forward pass. */
struct layer_times {
    double host_s, forward_s;
};

static struct layer_times layer_times(struct roofline *roofline,
                                      const struct ifl_step_totals *totals)
{
    const struct roofline_rank *rank = &roofline->rank;
    const struct host_times *host = rank->host;
    if (totals->n_tokens == 0)
        return (struct layer_times){0};
    const double dense_s = plus_latent_s(
        rank, totals, tokens_s(roofline, totals) - roofline_hops_s(rank, totals->n_tokens));
    return (struct layer_times){
        .host_s = host->layer_s + (totals->n_prefill_tokens > 0 ? host->prompt_layer_s : 0),
        .forward_s =
            IFL_RARE(rank->other_layers > 0)
                ? dense_s / rank->model->layers + mixed_attention_s(rank, totals)
                : dense_s / rank->model->layers + prefill_s(rank, totals) + decode_s(rank, totals),
    };
}

static void remembered_stages_s(struct cost *cost, const struct ifl_step_totals *totals,
                                const struct stages *stages, double *s, double *of_hop_s)
{
    struct roofline *roofline = (struct roofline *)cost;
    const struct roofline_rank *rank = &roofline->rank;
    const struct host_times *host = rank->host;
    const int32_t n_seqs = totals->n_prefill_seqs + totals->n_decode_seqs;
    const struct layer_times layer = layer_times(roofline, totals);
    const bool computes = totals->n_tokens > 0;
    for (int32_t i = 0; i < stages->n; i++) {
        const double share = (double)stages->layers[i] / rank->model->layers;
        const bool last = i == stages->n - 1;
        const double forward_s = stages->layers[i] * layer.forward_s +
                                 (last && computes ? rows_s(roofline, totals->n_sampled) : 0);
        const double least_s =
            computes ? least_forward_s(host, totals, host->floor_s * share, stages->layers[i]) : 0;
        const double first_s = i == 0 ? host->step_s + host->seq_s * n_seqs : 0;
        s[i] = plus_copies_s(rank, totals,
                             first_s + stages->layers[i] * layer.host_s + fmax(forward_s, least_s));
    }
    *of_hop_s = stages->n > 1 && computes ? roofline_hop_s(rank, totals->n_tokens) : 0;
}

/* ---- data-parallel ranks ---- */

/* What all ranks compute together. Ranks without work have a token each. */
static double group_tokens(const struct roofline_rank *rank,
                           const struct ifl_step_totals *const *of, size_t n)
{
    const int32_t n_ranks = rank->parallel.data;
    int32_t most = 1;
    double sum = n_ranks - (double)n;
    for (size_t i = 0; i < n; i++) {
        most = ifl_max(most, of[i]->n_tokens);
        sum += ifl_max(of[i]->n_tokens, 1);
    }
    return most <= rank->exchange->padded_tokens ? (double)n_ranks * most : sum;
}

static double group_s(struct cost *cost, const struct ifl_step_totals *const *of, size_t n)
{
    const struct roofline_rank *rank = &((struct roofline *)cost)->rank;
    const double all = group_tokens(rank, of, n);
    double longest_s = 0;
    for (size_t i = 0; i < n; i++) {
        const struct roofline_tokens m = {ifl_max(of[i]->n_tokens, 1), all};
        const double products_s =
            roofline_layers_s(rank, m, kernels_frac(rank, of[i])) + head_s(rank, of[i]->n_sampled);
        const double s = step_s(rank, of[i], plus_latent_s(rank, of[i], products_s));
        longest_s = fmax(longest_s, s);
    }
    return longest_s;
}

/* ---- steps that follow one another ---- */

/* A run of consecutive decode steps: the times that they share, and how their context grows. */
struct run {
    double matrices_s, host_s, floor_s, layers;
    double context_tokens, growth_tokens; /* in the first step; added by each step */
};

static inline double run_context(const struct run *run, int32_t i)
{
    return run->context_tokens + i * run->growth_tokens;
}

/* Equal to step_s to the last bit. */
static inline double run_step_s(const struct run *run, double attention_s)
{
    const double forward_s = run->matrices_s + run->layers * attention_s;
    return run->host_s + (forward_s > run->floor_s ? forward_s : run->floor_s);
}

IFL_APART static void splitting_run_s(const struct decode_line *line, const struct run *run,
                                      size_t n, double *s)
{
    for (int32_t i = 0; i < (int32_t)n; i++)
        s[i] = run_step_s(run, decode_line_s(line, run_context(run, i)));
}

/* No branch or call depends on the step, so that compilers can vectorise the loop: the context only
 * grows, so that all steps of nearly all runs split, or none does. */
static void plain_run_s(const struct decode_line *line, const struct run *run, size_t n, double *s)
{
    const double split_s = decode_split_s(line, run->context_tokens);
    if (IFL_RARE(split_s < decode_split_s(line, run_context(run, (int32_t)n - 1)))) {
        splitting_run_s(line, run, n, s);
        return;
    }
    for (int32_t i = 0; i < (int32_t)n; i++)
        s[i] = run_step_s(run, decode_line_with_s(line, run_context(run, i), split_s));
}

/* Where some layers have a window or a state. */
IFL_APART static void mixed_run_s(const struct roofline_rank *rank, const struct decode_line *line,
                                  const struct ifl_step_totals *first, const struct run *run,
                                  size_t n, double *s)
{
    const double ranks = rank->parallel.context, n_seqs = first->n_decode_seqs;
    const double state_s = rank->state_layers > 0 ? roofline_state_s(rank, first) : 0;
    for (int32_t i = 0; i < (int32_t)n; i++) {
        const double context = run_context(run, i),
                     seen = window_context(rank, n_seqs, context * ranks) / ranks;
        const double full_s =
            decode_line_s(line, context) * decode_correction(rank->hardware, context);
        const double other_s = rank->state_layers > 0 ? state_s
                                                      : decode_line_s(line, seen) *
                                                            decode_correction(rank->hardware, seen);
        s[i] = run_step_s(run, others_mean(rank, full_s, other_s));
    }
}

IFL_APART static void sparse_run_s(const struct roofline_rank *rank,
                                   const struct ifl_step_totals *first, int32_t growth_tokens,
                                   const struct run *run, size_t n, double *s)
{
    struct ifl_step_totals totals = *first;
    for (size_t i = 0; i < n; i++, totals.decode_context += growth_tokens)
        s[i] = run_step_s(run, attention_s(rank, &totals));
}

IFL_APART static void corrected_run_s(const struct hardware *hardware,
                                      const struct decode_line *line, const struct run *run,
                                      size_t n, double *s)
{
    for (int32_t i = 0; i < (int32_t)n; i++) {
        const double context_tokens = run_context(run, i);
        s[i] = run_step_s(run, decode_line_s(line, context_tokens) *
                                   decode_correction(hardware, context_tokens));
    }
}

IFL_HOT static void remembered_run_s(struct cost *cost, const struct ifl_step_totals *first,
                                     int32_t growth_tokens, size_t n, double *s)
{
    struct roofline *roofline = (struct roofline *)cost;
    const struct roofline_rank *rank = &roofline->rank;
    const struct hardware *hardware = rank->hardware;
    const struct decode_line line = line_of(roofline, first->n_decode_seqs);
    const struct run run = {
        .matrices_s = matrices_s(roofline, first),
        .host_s = host_s(rank, first),
        .floor_s = rank->host->floor_s,
        .layers = rank->model->layers,
        .context_tokens = roofline_context(rank, first->decode_context),
        .growth_tokens = roofline_context(rank, growth_tokens),
    };
    if (IFL_RARE(is_sparse(rank)))
        sparse_run_s(rank, first, growth_tokens, &run, n, s);
    else if (IFL_RARE(rank->other_layers > 0))
        mixed_run_s(rank, &line, first, &run, n, s);
    else if (IFL_RARE(hardware->corrections.n_of > 0))
        corrected_run_s(hardware, &line, &run, n, s);
    else
        plain_run_s(&line, &run, n, s);
}

IFL_FOR_ASSERTS static inline bool can_share(const struct model *model, int32_t tensor_parallel)
{
    struct ifl_error why;
    return model_check_parallel(model, tensor_parallel, &why) == 0;
}

static void set_lines(struct roofline_rank *rank, const struct platform *platform)
{
    const struct parallel *parallel = &rank->parallel;
    if (parallel->tensor > 1)
        allreduce_lines(platform, parallel->tensor, &rank->allreduce);
    if (parallel->context > 1)
        allreduce_lines(platform, parallel->context, &rank->merge);
    if (parallel->data > 1)
        allreduce_lines(platform, parallel->data, &rank->gather);
}

/* Heads of latent attention: prompts attend as with as many KV heads, decodes to the one latent. */
static void set_latent_heads(struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    const struct model_widths prompt = model_latent_prompt(model),
                              decode = model_latent_decode(model);
    rank->latent_layers = model->layers - model->state_layers;
    rank->rotary_elements = 2 * (rank->heads.q_heads + 1) * model->qk_rope_head_dim;
    rank->merged_elements = decode.key + decode.value;
    rank->heads.kv_heads = rank->heads.q_heads;
    rank->heads.d_head = (prompt.key + prompt.value) / 2.0;
    rank->decode_heads.d_head = decode.key / 2.0;
    rank->decode_heads.token_flops = 2.0 * (decode.key + decode.value);
}

static void set_heads(struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    const int32_t tensor_parallel = rank->parallel.tensor;
    rank->heads = (struct attention_heads){
        .q_heads = model_q_heads_per_rank(model, tensor_parallel),
        .kv_heads = model_kv_heads_per_rank(model, tensor_parallel),
        .d_head = model->d_head,
        .element_bytes = model_kv_element_bytes(model),
    };
    rank->decode_heads = rank->heads;
    rank->decode_heads.q_heads *= rank->parallel.context;
    rank->rotary_elements = 2 * (rank->heads.q_heads + rank->heads.kv_heads) * model->d_head;
    rank->merged_elements = 2.0 * rank->heads.d_head;
    rank->n_latents = (model->q_lora_rank > 0) + (model->kv_lora_rank > 0);
    rank->latent_elements = model->q_lora_rank + model->kv_lora_rank;
    if (model_is_latent(model))
        set_latent_heads(rank);
}

/* Experts of 4 bits without numbers of their own are those of 16 bits with fewer bytes. */
static void set_experts(struct roofline_rank *rank)
{
    static const enum expert_format formats[] = {
        [MODEL_FP8] = EXPERTS_FP8, [MODEL_MXFP4] = EXPERTS_MXFP4, [MODEL_NVFP4] = EXPERTS_NVFP4};
    const enum expert_format format = formats[rank->model->quantization];
    const bool is_known = format == EXPERTS_FP8 || experts_are_known(rank->hardware, format);
    rank->expert_format = is_known ? format : EXPERTS_16_BIT;
    rank->fused_experts =
        rank->model->n_experts > 0 && experts_are_known(rank->hardware, rank->expert_format);
}

/* So are products in nvfp4. */
static void set_products(struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    const bool is_nvfp4 =
        model->quantization == MODEL_NVFP4 && products_are_known(rank->hardware, PRODUCT_NVFP4);
    rank->product_format = model->quantization == MODEL_FP8 ? PRODUCT_FP8
                           : is_nvfp4                       ? PRODUCT_NVFP4
                                                            : PRODUCT_16_BIT;
    rank->attention_format =
        is_nvfp4 && model_is_latent(model) ? PRODUCT_16_BIT : rank->product_format;
}

void roofline_rank_set(struct roofline_rank *rank, const struct model *model,
                       const struct platform *platform, const struct parallel *parallel,
                       int32_t block_tokens)
{
    const int32_t tensor_parallel = parallel->tensor;
    ifl_assert(can_share(model, tensor_parallel));
    *rank = (struct roofline_rank){.model = model,
                                   .hardware = &platform->hardware,
                                   .host = &platform->deployment.host,
                                   .exchange = &platform->deployment.exchange,
                                   .parallel = *parallel};
    const double prompt_frac = platform->deployment.kernels.prompt_frac;
    rank->prompt_frac = prompt_frac > 0 ? prompt_frac : 1;
    set_lines(rank, platform);
    model_layer_linears(model, tensor_parallel, rank->linears);
    rank->head = model_lm_head(model, tensor_parallel);
    model_latent_ups(model, tensor_parallel, rank->ups);
    set_heads(rank);
    set_experts(rank);
    set_products(rank);
    rank->other_layers =
        is_sparse(rank) ? model->layers : model->window_layers + model->state_layers;
    rank->window_tokens = is_sparse(rank) ? model->index_topk : model->window_tokens;
    rank->state_layers = model->state_layers;
    model_state_linears(model, tensor_parallel, rank->states);
    rank->dense_columns = (double)model_dense_columns(model, tensor_parallel);
    rank->shared_columns = (double)model_shared_columns(model, tensor_parallel);
    rank->ffn_columns = (double)model->d_ffn / tensor_parallel;
    rank->token_bytes =
        (double)model_kv_bytes_per_token(model, tensor_parallel) / parallel->pipeline;
    rank->block_bytes = (double)model_kv_bytes_per_token(model, tensor_parallel) * block_tokens /
                        parallel->pipeline;
}

int roofline_check_links(const struct platform *platform, const struct parallel *parallel,
                         struct ifl_error *error)
{
    const struct hardware *hardware = &platform->hardware;
    struct lines_profile lines;
    const bool reduces = allreduce_lines(platform, 2, &lines);
    const bool exchanges = reduces || platform->deployment.exchange.gb_per_s > 0;
    if ((parallel->tensor > 1 && !reduces) || (parallel->data > 1 && !exchanges))
        return ifl_fail(
            error, IFL_E_INPUT,
            "parallel.%s is %d, expected 1 or a profile with an all-reduce "
            "(allreduce_2, allreduce_4, allreduce_8), which %s lacks, or a deployment with %s",
            parallel->tensor > 1 ? "tensor" : "data",
            parallel->tensor > 1 ? parallel->tensor : parallel->data, hardware->name,
            parallel->tensor > 1 ? "all_reduce" : "exchange.gb_per_s");
    if (parallel->pipeline > 1 && hardware->send_recv.gb_per_s <= 0)
        return ifl_fail(
            error, IFL_E_INPUT,
            "parallel.pipeline is %d, expected 1 or a profile with send_recv, which %s lacks",
            parallel->pipeline, hardware->name);
    return 0;
}

struct cost *cost_create_roofline(const struct model *model, const struct platform *platform,
                                  const struct parallel *parallel, int32_t block_tokens,
                                  struct ifl_error *error)
{
    const struct hardware *hardware = &platform->hardware;
    struct model spread;
    if (model_check_parallel(model, parallel->tensor, error) ||
        model_spread(model, parallel, &spread, error) ||
        roofline_check_links(platform, parallel, error))
        return NULL;
    if (model->quantization == MODEL_FP8 && !products_are_known(hardware, PRODUCT_FP8)) {
        ifl_fail(error, IFL_E_INPUT,
                 "%s has fp8 weights, expected a profile with gemm_fp8, which %s lacks",
                 model->name, hardware->name);
        return NULL;
    }
    struct roofline *roofline = calloc(1, sizeof *roofline);
    if (!roofline) {
        ifl_fail_nomem(error);
        return NULL;
    }
    roofline->base.step_s = remembered_step_s;
    roofline->base.run_s = remembered_run_s;
    roofline->base.group_s = group_s;
    roofline->base.stages_s = remembered_stages_s;
    roofline->model = spread;
    roofline->platform = *platform;
    roofline_rank_set(&roofline->rank, &roofline->model, &roofline->platform, parallel,
                      block_tokens);
    roofline->prompts_s = roofline->rank.prompt_frac == 1 ? roofline->tokens_s : roofline->scaled_s;
    return &roofline->base;
}

const char *cost_roofline_warning(const struct model *model, const struct hardware *hardware)
{
    const bool is_unpacked =
        model->quantization == MODEL_INT8 || model->quantization == MODEL_INT4 ||
        (model->quantization == MODEL_NVFP4 && !products_are_known(hardware, PRODUCT_NVFP4));
    if (model->quantization == MODEL_FP8)
        return "products in fp8 are predicted badly, by 12% in the median and 50% at p95: "
               "quantising the inputs is an operation of its own";
    if (model->quantization == MODEL_NVFP4 && !is_unpacked)
        return "products in nvfp4 are off by 12% in the median and 38% at p95";
    if (is_unpacked)
        return "products with weights in 8 or 4 bits are those of 16 bits with fewer bytes: "
               "kernels that multiply in int8 or FP4 are up to twice as fast at large batches";
    return NULL;
}
