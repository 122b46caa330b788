#include "cost/kernels.h"

#include <math.h>

#include "cost/model.h"
#include <stdbool.h>

static const double us = 1e-6, gb_per_s = 1e9, tflops = 1e12;

static double flops_per_s(const struct hardware *hardware, double frac)
{
    return frac * hardware->gpu.peak_tflops * tflops;
}

static double bytes_per_s(const struct hardware *hardware, double frac)
{
    return frac * hardware->gpu.memory_gb_per_s * gb_per_s;
}

static double corrected(const struct hardware *hardware, enum correction_op op, double n, double k,
                        double size)
{
    const struct corrections *corrections = &hardware->corrections;
    return corrections->n_of > 0 ? correction_factor(corrections, op, n, k, size) : 1;
}

enum { TILE = 128, SMALL_TILE = 64, LARGE_FROM = 512 };

static double tile_rows(const struct gemm_profile *gemm)
{
    return gemm->tile_rows > TILE ? gemm->tile_rows : TILE;
}

/* Of results, in the products of all weights. */
static double tiles_of(double n_weights, double m, double n, double rows)
{
    return n_weights * ceil(m / n_weights / rows) * ceil(n / TILE);
}

/* The ratio of whole waves of tiles to the work, to the power of wave_frac. */
static double wave_factor(const struct hardware *hardware, const struct gemm_profile *gemm,
                          double m, double n, double n_weights)
{
    if (gemm->wave_frac <= 0)
        return 1;
    const double sms = hardware->gpu.n_sms, rows = tile_rows(gemm);
    const double tiles = tiles_of(n_weights, m, n, rows);
    const double waves = ceil(tiles / sms);
    return pow(waves * sms * rows * TILE / (m * n), gemm->wave_frac);
}

/* The ratio of the rows of whole tiles to the rows of one weight, to the power of tile_frac. */
static double tile_factor(const struct gemm_profile *gemm, double m)
{
    if (gemm->tile_frac <= 0)
        return 1;
    const double tile = m <= SMALL_TILE ? SMALL_TILE : m <= LARGE_FROM ? TILE : tile_rows(gemm);
    return pow(ceil(m / tile) * tile / m, gemm->tile_frac);
}

/* Scaled by the larger term, so that no power under- or overflows. */
static double p_norm(double a, double b, double p)
{
    const double larger = fmax(a, b), ratio = fmin(a, b) / larger;
    return larger * pow(1 + pow(ratio, p), 1 / p);
}

static const struct gemm_profile *gemm_profile(const struct hardware *hardware,
                                               enum product_format format)
{
    return format == PRODUCT_FP8     ? &hardware->gemm_fp8
           : format == PRODUCT_NVFP4 ? &hardware->gemm_nvfp4
                                     : &hardware->gemm;
}

bool products_are_known(const struct hardware *hardware, enum product_format format)
{
    return gemm_profile(hardware, format)->compute_frac > 0;
}

/* Corrections are of products in 16 bits and in fp8 (cost/correction.h). */
static double gemm_corrected(const struct hardware *hardware, const struct gemm_group *group)
{
    if (group->format == PRODUCT_NVFP4)
        return 1;
    return corrected(hardware, group->format == PRODUCT_FP8 ? CORRECT_GEMM_FP8 : CORRECT_GEMM,
                     group->n, group->k, group->m);
}

/* Peaks of the formats, in those of 16 bits. */
static const double product_peaks[] = {
    [PRODUCT_16_BIT] = 1, [PRODUCT_FP8] = 2, [PRODUCT_NVFP4] = 4};
static const double expert_peaks[] = {
    [EXPERTS_16_BIT] = 1, [EXPERTS_FP8] = 2, [EXPERTS_MXFP4] = 1, [EXPERTS_NVFP4] = 4};

/* The other SMs that a column's sums wait for, in the mean of all columns (kernels.h, D). */
static double reductions(const struct hardware *hardware, const struct gemm_group *group)
{
    const double along_k = ceil(group->k / TILE);
    const double tiles = tiles_of(group->n_weights, group->m, group->n, SMALL_TILE) * along_k;
    return (along_k - 1) / ceil(tiles / hardware->gpu.n_sms);
}

static double reduce_s(const struct hardware *hardware, const struct gemm_group *group)
{
    const double each_us = hardware->gemm_unpacked.reduce_us;
    const bool is_unpacked =
        group->format == PRODUCT_16_BIT && group->weight_bytes < group->element_bytes;
    return is_unpacked && each_us > 0 ? reductions(hardware, group) * each_us * us : 0;
}

double gemm_group_s(const struct hardware *hardware, const struct gemm_group *group)
{
    const struct gemm_profile *gemm = gemm_profile(hardware, group->format);
    const double m = group->m, n = group->n, k = group->k;
    if (m <= 0)
        return 0;
    const double peak = product_peaks[group->format] * flops_per_s(hardware, gemm->compute_frac);
    const double compute_s = 2 * m * n * k * wave_factor(hardware, gemm, m, n, group->n_weights) *
                             tile_factor(gemm, m / group->n_weights) / peak;
    const double input_bytes =
        group->format == PRODUCT_16_BIT ? group->element_bytes : group->weight_bytes;
    const double bytes = m * k * input_bytes + m * n * group->element_bytes +
                         group->n_weights * n * k * group->weight_bytes;
    const bool is_vector = m <= 1 && gemm->vector_frac > 0;
    const double memory_s =
        bytes / bytes_per_s(hardware, is_vector ? gemm->vector_frac : gemm->memory_frac);
    return gemm_corrected(hardware, group) * (gemm->launch_us * us + reduce_s(hardware, group) +
                                              p_norm(compute_s, memory_s, gemm->exponent));
}

double gemm_s(const struct hardware *hardware, double m, double n, double k, double element_bytes)
{
    const struct gemm_group one = {m, n, k, 1, element_bytes, element_bytes, PRODUCT_16_BIT};
    return gemm_group_s(hardware, &one);
}

double gemm_in_s(const struct hardware *hardware, enum product_format format, double m, double n,
                 double k)
{
    static const double weight_bytes[] = {
        [PRODUCT_16_BIT] = 2, [PRODUCT_FP8] = 1, [PRODUCT_NVFP4] = MODEL_NVFP4_BYTES};
    const struct gemm_group one = {m, n, k, 1, 2, weight_bytes[format], format};
    return gemm_group_s(hardware, &one);
}

static const struct experts_profile *experts_profile(const struct hardware *hardware,
                                                     enum expert_format format)
{
    return format == EXPERTS_FP8     ? &hardware->experts_fp8
           : format == EXPERTS_MXFP4 ? &hardware->experts_mxfp4
           : format == EXPERTS_NVFP4 ? &hardware->experts_nvfp4
                                     : &hardware->experts;
}

bool experts_are_known(const struct hardware *hardware, enum expert_format format)
{
    return experts_profile(hardware, format)->compute_frac > 0;
}

double experts_s(const struct hardware *hardware, const struct expert_group *group)
{
    const struct experts_profile *experts = experts_profile(hardware, group->format);
    const double weights = group->n_matrices * group->d_model * group->d_ffn;
    const double moved = 3 * group->d_model + 2 * group->n_matrices * group->d_ffn;
    if (group->n_picks <= 0)
        return 0;
    const double peak = expert_peaks[group->format] * flops_per_s(hardware, experts->compute_frac);
    const double compute_s = 2 * group->n_picks * weights / peak;
    const double memory_s = (group->n_experts * weights * group->weight_bytes +
                             group->n_picks * moved * group->element_bytes) /
                            bytes_per_s(hardware, experts->memory_frac);
    return (experts->launch_us + group->n_experts * experts->expert_us) * us +
           p_norm(compute_s, memory_s, experts->exponent);
}

/* Measured on a B200 (vLLM 0.24, FlashInfer), and what profiles without numbers of their own have.
 */
static const struct delta_profile delta_of_others = {
    .launch_us = 19.04, .chain_us = 0.03804, .decode_us = 3.914, .memory_frac = 0.855};

bool delta_is_known(const struct hardware *hardware)
{
    return hardware->delta.chain_us > 0;
}

double delta_s(const struct hardware *hardware, const struct delta_shape *shape)
{
    const struct delta_profile *delta =
        delta_is_known(hardware) ? &hardware->delta : &delta_of_others;
    double s = 0;
    if (shape->n_prompts > 0)
        s += us * ceil(shape->n_prompts * shape->v_heads / hardware->gpu.n_sms) *
             (delta->launch_us + delta->chain_us * shape->n_prompt_tokens / shape->n_prompts);
    if (shape->n_decodes > 0)
        s += us * delta->decode_us + 2 * shape->n_decodes * shape->v_heads * shape->state_bytes /
                                         bytes_per_s(hardware, delta->memory_frac);
    return s;
}

/* Measured on a H200 (vLLM 0.24, FlashMLA and DeepGEMM), for profiles without numbers of their own.
 */
static const struct sparse_profile sparse_of_others = {.layer_us = 117.7,
                                                       .decode_us = 0.4806,
                                                       .token_us = 0.2903,
                                                       .prompt_us = 1165,
                                                       .memory_frac = 0.7058,
                                                       .compute_frac = 0.6402,
                                                       .index_frac = 0.8609};

double sparse_s(const struct hardware *hardware, const struct sparse_shape *shape)
{
    const struct sparse_profile *sparse =
        hardware->sparse.compute_frac > 0 ? &hardware->sparse : &sparse_of_others;
    const double prompts_s = us * shape->n_prompt_tokens * sparse->token_us +
                             shape->prompt_flops / flops_per_s(hardware, sparse->compute_frac) +
                             shape->index_flops / (2 * flops_per_s(hardware, sparse->index_frac));
    const double s = us * (sparse->layer_us + shape->n_decodes * sparse->decode_us) +
                     shape->index_bytes / bytes_per_s(hardware, sparse->memory_frac);
    return shape->n_prompt_tokens > 0 ? s + fmax(us * sparse->prompt_us, prompts_s) : s;
}

double latent_s(const struct hardware *hardware, double n_prompt_tokens, double n_decodes)
{
    const struct latent_profile *latent = &hardware->latent;
    return (latent->layer_us + n_prompt_tokens * latent->token_us + n_decodes * latent->decode_us) *
           us;
}

IFL_HOT double prefill_attention_s(const struct hardware *hardware,
                                   const struct attention_heads *heads,
                                   const struct prefill_shape *shape)
{
    const struct prefill_profile *prefill = &hardware->prefill;
    if (shape->n_tokens <= 0)
        return 0;
    const double pairs = shape->q_context + prefill->causal_frac * shape->q_q +
                         prefill->overhead_tokens * shape->n_tokens;
    const double tail_pairs = prefill->tail_tiles * 128 * shape->longest_kv * hardware->gpu.n_sms;
    const double heads_s =
        prefill->head_us * us * shape->n_seqs * heads->kv_heads / hardware->gpu.n_sms;
    return corrected(hardware, CORRECT_PREFILL, 0, 0, shape->n_tokens) *
           (prefill->launch_us * us + heads_s +
            4 * heads->d_head * (heads->q_heads * pairs + tail_pairs) /
                flops_per_s(hardware, prefill->compute_frac));
}

IFL_APART struct decode_line decode_line(const struct hardware *hardware,
                                         const struct attention_heads *heads, double n_seqs)
{
    const struct decode_profile *decode = &hardware->decode;
    const double n_streams = n_seqs * heads->kv_heads;
    const double memory_bytes_per_s = bytes_per_s(hardware, decode->memory_frac);
    const double stream_bytes_per_s =
        heads->q_heads <= heads->kv_heads ? decode->stream_gb_per_s * gb_per_s : 0;
    const bool streams =
        stream_bytes_per_s > 0 && n_streams * stream_bytes_per_s < memory_bytes_per_s;
    const double token_bytes = 2 * heads->kv_heads * heads->d_head * heads->element_bytes;
    const double read_s =
        token_bytes / (streams ? n_streams * stream_bytes_per_s : memory_bytes_per_s);
    const double compute_s = heads->token_flops > 0
                                 ? heads->q_heads * heads->token_flops /
                                       flops_per_s(hardware, hardware->prefill.compute_frac)
                                 : 0;
    return (struct decode_line){
        .launch_s = decode->launch_us * us,
        .heads_s = decode->head_us * us * n_streams / hardware->gpu.n_sms,
        .token_s = fmax(read_s, compute_s),
        .split_s = decode->split_us * us,
        .split_tokens = KERNELS_SPLIT_TOKENS * n_seqs,
    };
}

double decode_correction(const struct hardware *hardware, double context_tokens)
{
    return corrected(hardware, CORRECT_DECODE, 0, 0, context_tokens);
}

double decode_attention_s(const struct hardware *hardware, const struct attention_heads *heads,
                          const struct decode_shape *shape)
{
    if (shape->n_seqs <= 0)
        return 0;
    const struct decode_line line = decode_line(hardware, heads, shape->n_seqs);
    return decode_line_s(&line, shape->context_tokens) *
           decode_correction(hardware, shape->context_tokens);
}

IFL_HOT double decode_attention_mixed_s(const struct hardware *hardware,
                                        const struct attention_heads *heads,
                                        const struct decode_shape *shape)
{
    const struct decode_mixed_profile *mixed = &hardware->decode_mixed;
    if (shape->n_seqs <= 0)
        return 0;
    const struct decode_line line = decode_line(hardware, heads, shape->n_seqs);
    const double launches_s = (1 - mixed->shared_launch_frac) *
                              (line.launch_s + decode_split_s(&line, shape->context_tokens));
    const double read_once_s = line.heads_s + shape->context_tokens * line.token_s;
    if (mixed->memory_frac <= 0)
        return decode_correction(hardware, shape->context_tokens) * (launches_s + read_once_s);
    const double unpacked_bytes =
        2 * shape->context_tokens * heads->q_heads * heads->d_head * heads->element_bytes;
    const double unpacked_s =
        mixed->head_us * us * shape->n_seqs * heads->q_heads / hardware->gpu.n_sms +
        unpacked_bytes / bytes_per_s(hardware, mixed->memory_frac);
    return launches_s + fmax(read_once_s, unpacked_s);
}

double elementwise_s(const struct hardware *hardware, double n_launches, double bytes)
{
    const struct elementwise_profile *elementwise = &hardware->elementwise;
    return corrected(hardware, CORRECT_ELEMENTWISE, 0, 0, bytes / n_launches) *
           (n_launches * elementwise->launch_us * us +
            bytes / bytes_per_s(hardware, elementwise->memory_frac));
}

double send_recv_s(const struct hardware *hardware, double bytes)
{
    const struct send_recv_profile *link = &hardware->send_recv;
    return link->latency_us * us + bytes / (link->gb_per_s * gb_per_s);
}

double lines_s(const struct lines_profile *lines, double bytes)
{
    const double line_s = lines->latency_us * us + bytes / (lines->gb_per_s * gb_per_s);
    if (lines->bulk_gb_per_s <= 0)
        return line_s;
    const double bulk_s = lines->bulk_latency_us * us + bytes / (lines->bulk_gb_per_s * gb_per_s);
    if (lines->bulk_from_bytes > 0)
        return bytes < lines->bulk_from_bytes ? line_s : bulk_s;
    return fmin(line_s, bulk_s);
}

double swap_s(const struct hardware *hardware, enum swap_direction direction, double n_blocks,
              double block_bytes)
{
    const struct lines_profile *lines =
        direction == SWAP_OUT ? &hardware->swap_out : &hardware->swap_in;
    const double piece = hardware->swap.piece_bytes;
    if (piece <= 0 || piece >= block_bytes)
        return n_blocks * lines_s(lines, block_bytes);
    const double n_whole = floor(block_bytes / piece), rest = block_bytes - n_whole * piece;
    return n_blocks * (n_whole * lines_s(lines, piece) + (rest > 0 ? lines_s(lines, rest) : 0));
}

IFL_APART double block_copy_s(const struct hardware *hardware, double n_blocks, double block_bytes)
{
    const struct block_copy_profile *copy = &hardware->block_copy;
    return copy->launch_us * us +
           2 * n_blocks * block_bytes / bytes_per_s(hardware, copy->memory_frac);
}
