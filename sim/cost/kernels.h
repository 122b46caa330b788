/* Time of one operation on one GPU, in seconds: the functions that a profile's numbers enter.
 *
 * Symbols, here and in the equations below:
 *     P, W        peak FLOP/s and bytes/s of the data sheet; SM the number of multiprocessors
 *     q, c        of a prefill sequence: its new tokens, and its tokens computed before them
 *     h, g        query and KV heads of this rank; d_head their width
 * A profile's corrections (correction.h) multiply products, prefill attention, decode attention
 * without prefill and element-wise operations; the equations leave them out. Each function takes
 * the whole profile, uses the section named in its comment, and can be called on its own, so that a
 * fit can compare it with measured rows. */
#ifndef SIM_COST_KERNELS_H
#define SIM_COST_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "cost/hardware.h"

/* gemm: y[m][n] = x[m][k] w[n][k].
 *
 *     t0 + ((2 m n k / (e_c P))^p + (bytes / (e_m W))^p)^(1/p),  bytes = (m k + n k + m n) element
 *
 * If wave_frac is not 0, F^(1-a) F_w^a FLOPs take the place of F = 2 m n k. F_w counts whole waves
 * of tile_rows x 128 tiles, one tile on each SM; a partial wave takes as long as a full one.
 *
 * If tile_frac is not 0, (m_t / m)^b times as many FLOPs do, where m_t is m rounded up to whole
 * tiles: to 64 rows, to a multiple of 128 up to 512, to one of tile_rows above. Measured tables of
 * cuBLAS step there, by 15% from 64 to 72 rows and by 30% from 128 to 136 on an A100.
 *
 * A library may have a kernel of its own for one row, a matrix-vector product, which reads w at
 * e_v W. Then e_v takes the place of e_m for m = 1.
 *
 * gemm_unpacked, where weights have fewer bytes than inputs and are unpacked on the way, adds r D:
 *
 *     D = (K - 1) / ceil(n_weights M N K / SM)
 *     K = ceil(k / 128), N = ceil(n / 128), M = ceil(m / n_weights / 64)
 *
 * Marlin (Frantar et al. 2024, arXiv 2408.11743) deals out tiles of 128 x 128 weights
 * in stripes of equal length to all SMs, column after column; those that share a column add up
 * their sums one after another, behind a lock in device memory. A column has D such SMs beside its
 * first in the mean: K - 1 borders of tiles, each of which ends a stripe once in its length.
 * (Tiles: vLLM 0.6.3, csrc/quantization/gptq_marlin/gptq_marlin.cu, thread configurations of small
 * batches.)
 *
 * The p-norm rounds the roofline's corner: near it, compute and memory traffic do not overlap
 * perfectly. No rows take no time. */
double gemm_s(const struct hardware *hardware, double m, double n, double k, double element_bytes);
/* Products of several weights [n][k], each with rows of its own, as in a layer of experts.
 * Quantised weights move fewer bytes. gemm_fp8 and gemm_nvfp4: the same with inputs quantised as
 * the weights are, a 16-bit output, and twice and four times the peak. */
enum product_format { PRODUCT_16_BIT, PRODUCT_FP8, PRODUCT_NVFP4 };
struct gemm_group {
    double m, n, k;                     /* m over all weights together */
    double n_weights;                   /* different weights that are read */
    double element_bytes, weight_bytes; /* of an element of inputs and outputs, of the weights */
    enum product_format format;         /* in which they are multiplied */
};
double gemm_group_s(const struct hardware *hardware, const struct gemm_group *group);
/* Time of one such product with 16-bit inputs, in the given format. */
double gemm_in_s(const struct hardware *hardware, enum product_format format, double m, double n,
                 double k);
/* True if the profile has numbers for products in that format. */
bool products_are_known(const struct hardware *hardware, enum product_format format);

/* experts, experts_fp8, experts_mxfp4, experts_nvfp4: the experts of a rank as one operation: the
 * sort of the tokens by expert, the products up and down, the activation between them, and the sum
 * of each token's outputs.
 *
 *     tx + D x + ((F / (e_c P))^p + (bytes / (e_m W))^p)^(1/p)
 *     F = 2 c r d f,  bytes = D c d f weight + r (3 d + 2 c f) element
 *
 * with r picks of tokens, D different experts among them, c matrices [d][f] an expert. Each pick's
 * row is gathered, written and read again for the sum; up and activation are written and read. Few
 * rows an expert leave most of a tile empty, so that p is near 1 and e_c below that of gemm. */
enum expert_format { EXPERTS_16_BIT, EXPERTS_FP8, EXPERTS_MXFP4, EXPERTS_NVFP4 };
struct expert_group {
    double n_picks, n_experts;          /* r, D; of a rank */
    double n_matrices, d_model, d_ffn;  /* c, d, f; of a rank */
    double element_bytes, weight_bytes; /* of inputs and outputs, of the weights */
    enum expert_format format;
};
/* True if the profile has numbers for experts of that format. */
bool experts_are_known(const struct hardware *hardware, enum expert_format format);
/* Returns the time of the experts of a rank. The profile must have their numbers. Without picks the
 * time is 0. */
double experts_s(const struct hardware *hardware, const struct expert_group *group);

/* latent, of a layer: layer_us + n token_us + b decode_us, for n tokens of prompts and b decodes.
 */
double latent_s(const struct hardware *hardware, double n_prompt_tokens, double n_decodes);

/* sparse, of a layer with an indexer, beside its products and the attention of its decodes:
 *
 *     ts + b decode_us + bytes / (e_d W) + max(tp, n token_us + F_a / (e_c P) + F_i / (e_i 2 P))
 *
 * for n tokens of prompts and b decodes. The indexer of the decodes reads `bytes` of keys. The
 * attention of the prompts has F_a FLOPs, their indexer F_i, in fp8; without prompts the last term
 * is 0. */
struct sparse_shape {
    double n_prompt_tokens, n_decodes, prompt_flops, index_flops, index_bytes;
};
double sparse_s(const struct hardware *hardware, const struct sparse_shape *shape);

/* delta: the gated delta rule of a layer with states, all kernels but its products and convolution.
 *
 *     prompts  ceil(p v / SM) (tp + c n / p)
 *     decodes  td + 2 b v state / (e_d W)
 *
 * for n tokens of p prompts and b decodes, v value heads of a rank with a state of so many bytes. A
 * sequence's chunks follow one another in each head, on one SM, so that few sequences leave SMs
 * idle and more than there are SMs run in waves. */
struct delta_shape {
    double n_prompt_tokens, n_prompts, n_decodes, v_heads, state_bytes;
};
double delta_s(const struct hardware *hardware, const struct delta_shape *shape);
bool delta_is_known(const struct hardware *hardware);

/* The attention of a rank. Where keys and values differ in width, d_head is their mean; where one
 * latent is both, it is half of the latent's, since K and V are read once for both. */
struct attention_heads {
    double q_heads, kv_heads, d_head;
    double element_bytes; /* of K and V */
    double token_flops; /* of a decode, for a query head and a token of context, where they may take
                           longer than reading it: latent attention. 0: they never do */
};

/* Sums over the prefill sequences of a step; q and c as above. */
struct prefill_shape {
    double n_tokens;   /* sum q */
    double q_context;  /* sum q c */
    double q_q;        /* sum q^2 */
    double longest_kv; /* max (c + q) */
    double n_seqs;     /* n */
};

/* prefill: all chunks of a step in one launch.
 *
 *     ta + 4 h d_head (sum[q c + kappa q^2] + c_tok sum q) / (e_a P)
 *        + tail 4 128 d_head max(c + q) / (e_a P / SM) + w n g / SM
 *
 * 4 d_head FLOPs for each pair of query and key (two products of 2 d_head). kappa is 1/2 for a
 * kernel that skips the tiles above the diagonal. The tail is the wave that drains: a tile of
 * 128 queries walks the longest context on one SM while the others have nothing left. The last term
 * stores the new K and V. */
double prefill_attention_s(const struct hardware *hardware, const struct attention_heads *heads,
                           const struct prefill_shape *shape);

struct decode_shape {
    double n_seqs;
    double context_tokens; /* K/V they read, summed */
};

/* Contexts above this are split over SMs. */
enum { KERNELS_SPLIT_TOKENS = 128 };

/* decode, in a step without prefill: bounded by reading K and V once.
 *
 *     td + w n g / SM + max(KV / (e_d W), KV / (n g) / s) + ts where context / n > 128,
 *     KV = 2 context g d_head element
 *
 * Contexts above 128 tokens are split over SMs and combined by a second kernel. FlashAttention 2
 * does not split them where h = g: then an SM streams each alone at s, which bounds small batches
 * from below. Other kernels have s = 0, and no such bound.
 *
 * With latent attention all h heads of a rank attend to one latent: where they are many, the
 * products take longer than reading it, and KV / (e_d W) is at least context h token_flops / (e_a
 * P). */
double decode_attention_s(const struct hardware *hardware, const struct attention_heads *heads,
                          const struct decode_shape *shape);

/* The terms of decode_attention_s for a number of sequences: linear in their context except for the
 * split. */
struct decode_line {
    double launch_s, heads_s, token_s; /* token_s of each token of context */
    double split_s, split_tokens;      /* of the second kernel; context above which there is one */
};
struct decode_line decode_line(const struct hardware *hardware, const struct attention_heads *heads,
                               double n_seqs);
static inline double decode_split_s(const struct decode_line *line, double context_tokens)
{
    return context_tokens > line->split_tokens ? line->split_s : 0;
}
/* As decode_line_s, with another time of the second kernel. */
static inline double decode_line_with_s(const struct decode_line *line, double context_tokens,
                                        double split_s)
{
    return line->launch_s + (line->heads_s + context_tokens * line->token_s) + split_s;
}
/* decode_attention_s, uncorrected. */
static inline double decode_line_s(const struct decode_line *line, double context_tokens)
{
    return decode_line_with_s(line, context_tokens, decode_split_s(line, context_tokens));
}
/* The factor of the profile's corrections for decode attention; 1 without any. */
double decode_correction(const struct hardware *hardware, double context_tokens);

/* decode_mixed, in a step that also holds prefill: kernels for mixed batches do not pack the query
 * heads that share a KV head, so K and V are read once for each of them.
 *
 *     (1 - l) (td + ts) + max(w n g / SM + KV / (e_d W), w' n h / SM + KV (h/g) / (e_d' W))
 *
 * The first argument of max is the time of reading K and V once; it decides if h = g.
 * e_d' = 0 means that the kernel is that of steps without prefill; the second argument is then left
 * out. l is 1 if prompts and decodes are sequences of one launch, as in vLLM since its V1: such a
 * launch leaves no SM idle and splits nothing. l is 0 if the decodes have a launch of their own. */
double decode_attention_mixed_s(const struct hardware *hardware,
                                const struct attention_heads *heads,
                                const struct decode_shape *shape);

/* elementwise: n launches that move `bytes` in all: n te + bytes / (e_e W). */
double elementwise_s(const struct hardware *hardware, double n_launches, double bytes);

/* send_recv: latency + bytes / rate. */
double send_recv_s(const struct hardware *hardware, double bytes);

/* allreduce_2, _4, _8, and a piece of swap_out, swap_in: alpha_i + bytes / beta_i of the line for
 * that size, or of the lower one. */
double lines_s(const struct lines_profile *lines, double bytes);

enum swap_direction { SWAP_OUT, SWAP_IN };

/* swap: the pieces of each block one after the other, over this rank's link to the host; the last
 * piece of a block may be short. */
double swap_s(const struct hardware *hardware, enum swap_direction direction, double n_blocks,
              double block_bytes);

/* block_copy: launch + 2 bytes / (e W), all blocks in one launch. */
double block_copy_s(const struct hardware *hardware, double n_blocks, double block_bytes);

#endif
