#include "cost/kernels.h"

#include <math.h>

static const double us = 1e-6, gb_per_s = 1e9, tflops = 1e12;

static double flops_per_s(const struct hardware *hardware, double frac)
{
    return frac * hardware->gpu.peak_tflops * tflops;
}

static double bytes_per_s(const struct hardware *hardware, double frac)
{
    return frac * hardware->gpu.memory_gb_per_s * gb_per_s;
}

double gemm_s(const struct hardware *hardware, double m, double n, double k, double element_bytes)
{
    const struct gemm_profile *gemm = &hardware->gemm;
    if (m <= 0)
        return 0;
    const double compute_s = 2 * m * n * k / flops_per_s(hardware, gemm->compute_frac);
    const double bytes = (m * k + n * k + m * n) * element_bytes;
    const double memory_s = bytes / bytes_per_s(hardware, gemm->memory_frac);
    /* Scaled by the larger term, so that no power under- or overflows. */
    const double larger_s = fmax(compute_s, memory_s), ratio = fmin(compute_s, memory_s) / larger_s;
    const double norm_s = larger_s * pow(1 + pow(ratio, gemm->exponent), 1 / gemm->exponent);
    return gemm->launch_us * us + norm_s;
}

double prefill_attention_s(const struct hardware *hardware, double q_heads, double d_head,
                           const struct prefill_shape *shape)
{
    const struct prefill_profile *prefill = &hardware->prefill;
    if (shape->n_tokens <= 0)
        return 0;
    const double pairs = shape->q_context + prefill->causal_frac * shape->q_q +
                         prefill->overhead_tokens * shape->n_tokens;
    const double tail_pairs = prefill->tail_tiles * 128 * shape->longest_kv * hardware->gpu.n_sms;
    return prefill->launch_us * us + 4 * d_head * (q_heads * pairs + tail_pairs) /
                                         flops_per_s(hardware, prefill->compute_frac);
}

static double pure_decode_s(const struct hardware *hardware, double kv_heads, double kv_bytes,
                            double n_seqs)
{
    const struct decode_profile *decode = &hardware->decode;
    return decode->head_us * us * n_seqs * kv_heads / hardware->gpu.n_sms +
           kv_bytes / bytes_per_s(hardware, decode->memory_frac);
}

double decode_attention_s(const struct hardware *hardware, double kv_heads, double d_head,
                          double element_bytes, const struct decode_shape *shape)
{
    if (shape->n_seqs <= 0)
        return 0;
    const double kv_bytes = 2 * shape->context_tokens * kv_heads * d_head * element_bytes;
    return hardware->decode.launch_us * us +
           pure_decode_s(hardware, kv_heads, kv_bytes, shape->n_seqs);
}

double decode_attention_mixed_s(const struct hardware *hardware, double q_heads, double kv_heads,
                                double d_head, double element_bytes,
                                const struct decode_shape *shape)
{
    const struct decode_mixed_profile *mixed = &hardware->decode_mixed;
    if (shape->n_seqs <= 0)
        return 0;
    const double kv_bytes = 2 * shape->context_tokens * kv_heads * d_head * element_bytes;
    const double unpacked_bytes = kv_bytes / kv_heads * q_heads;
    const double unpacked_s = mixed->head_us * us * shape->n_seqs * q_heads / hardware->gpu.n_sms +
                              unpacked_bytes / bytes_per_s(hardware, mixed->memory_frac);
    return hardware->decode.launch_us * us +
           fmax(pure_decode_s(hardware, kv_heads, kv_bytes, shape->n_seqs), unpacked_s);
}

double elementwise_s(const struct hardware *hardware, double n_launches, double bytes)
{
    const struct elementwise_profile *elementwise = &hardware->elementwise;
    return n_launches * elementwise->launch_us * us +
           bytes / bytes_per_s(hardware, elementwise->memory_frac);
}

double allreduce_s(const struct allreduce_profile *allreduce, double bytes)
{
    const double line_s = allreduce->latency_us * us + bytes / (allreduce->gb_per_s * gb_per_s);
    if (allreduce->bulk_gb_per_s <= 0)
        return line_s;
    return fmin(line_s,
                allreduce->bulk_latency_us * us + bytes / (allreduce->bulk_gb_per_s * gb_per_s));
}

double swap_s(const struct hardware *hardware, enum swap_direction direction, double n_blocks,
              double block_bytes)
{
    const struct swap_profile *swap = &hardware->swap;
    const double piece_us = direction == SWAP_OUT ? swap->out_piece_us : swap->in_piece_us;
    const double rate = direction == SWAP_OUT ? swap->out_gb_per_s : swap->in_gb_per_s;
    const double pieces = swap->piece_bytes > 0 ? ceil(block_bytes / swap->piece_bytes) : 1;
    return n_blocks * (pieces * piece_us * us + block_bytes / (rate * gb_per_s));
}
