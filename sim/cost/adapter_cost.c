#include "cost/adapter_cost.h"

#include <math.h>

/* Query, key, value and output, then the MLP's: in and out of each. */
struct adapter_shape adapter_shape_of(const struct model *model, enum adapter_matrices matrices)
{
    const int64_t d = model->d_model, f = model->d_ffn;
    const int64_t q = (int64_t)model->n_q_heads * model->d_head;
    const int64_t kv = (int64_t)model->n_kv_heads * model->d_head;
    struct adapter_shape shape = {2, d + q + d + kv, d * q + d * kv};
    if (matrices == ADAPTER_QV)
        return shape;
    shape.n_matrices += 2;
    shape.in_out += d + kv + q + d;
    shape.weights += d * kv + q * d;
    if (matrices == ADAPTER_QKVO)
        return shape;
    const int32_t n_mlp = model->mlp == MODEL_MLP_GATED ? 3 : 2;
    shape.n_matrices += n_mlp;
    shape.in_out += n_mlp * (d + f);
    shape.weights += n_mlp * d * f;
    return shape;
}

int64_t adapter_bytes(const struct model *model, enum adapter_matrices matrices, int32_t rank)
{
    return adapter_shape_of(model, matrices).in_out * rank * model->layers * model->weight_bytes;
}

/* The parts of a step that depend on a model and its hardware. A tensor-parallel rank has its share
 * of the rows' outputs or inputs. */
static void set_compute(struct adapter_cost *cost, const struct model *model,
                        const struct hardware *hardware, const struct adapter_cost_options *options)
{
    const struct adapter_shape shape = adapter_shape_of(model, options->matrices);
    const double in_out = (double)shape.in_out * model->layers / options->tensor_parallel;
    const double bytes_s = hardware->elementwise.memory_frac * hardware->gpu.memory_gb_per_s * 1e9;
    const double flops_s = hardware->gemm.compute_frac * hardware->gpu.peak_tflops * 1e12;
    const double launch_s =
        options->launch_s > 0 ? options->launch_s : hardware->elementwise.launch_us * 1e-6;
    const double n_matrices = (double)shape.n_matrices * model->layers;
    cost->computes = true;
    cost->launches_s = 2 * n_matrices * launch_s;
    cost->run_s = 4 * n_matrices * launch_s;
    cost->rank_token_s = 2 * in_out / flops_s;
    cost->rank_s = in_out * model->weight_bytes / bytes_s;
    cost->token_s = in_out * model->weight_bytes / bytes_s;
    cost->merge_s = 4 * (double)shape.weights * model->layers * model->weight_bytes /
                    options->tensor_parallel / bytes_s;
}

struct adapter_cost adapter_cost_of(const struct model *model, const struct hardware *hardware,
                                    const struct adapter_cost_options *options)
{
    struct adapter_cost cost = {.compute = options->compute,
                                .padded_rank = options->padded_rank,
                                .load_s = options->load_s};
    double host_gb_per_s = options->host_gb_per_s;
    if (host_gb_per_s == 0 && hardware)
        host_gb_per_s = hardware->swap_in.gb_per_s;
    if (host_gb_per_s > 0)
        cost.load_byte_s = options->load_copies / (host_gb_per_s * 1e9) / options->tensor_parallel;
    if (options->disk_gb_per_s > 0)
        cost.disk_byte_s = 1 / (options->disk_gb_per_s * 1e9);
    if (model && hardware)
        set_compute(&cost, model, hardware, options);
    return cost;
}

static double batched_s(const struct adapter_cost *cost, const struct ifl_adapter_totals *totals)
{
    const double rank_tokens = cost->padded_rank > 0 ? (double)cost->padded_rank * totals->n_tokens
                                                     : (double)totals->rank_tokens;
    const double ranks =
        cost->padded_rank > 0 ? (double)cost->padded_rank * totals->n : (double)totals->ranks;
    const double memory_s = ranks * cost->rank_s + totals->n_tokens * cost->token_s;
    return cost->launches_s + fmax(rank_tokens * cost->rank_token_s, memory_s);
}

/* The copy reads the adapters' own ranks and writes, as the products then read, the largest. */
static double padded_s(const struct adapter_cost *cost, const struct ifl_adapter_totals *totals)
{
    const double widest = (double)totals->most_rank;
    const double copied = (double)totals->ranks + 2 * widest * totals->n_runs;
    const double memory_s = copied * cost->rank_s + 3.0 * totals->n_tokens * cost->token_s;
    return cost->launches_s + totals->n_runs * cost->run_s +
           fmax(widest * totals->n_tokens * cost->rank_token_s, memory_s);
}

static double compute_s(const struct adapter_cost *cost, const struct ifl_adapter_totals *totals)
{
    if (!cost->computes || totals->n_tokens == 0 || cost->compute == ADAPTER_MERGED)
        return 0;
    return cost->compute == ADAPTER_PADDED ? padded_s(cost, totals) : batched_s(cost, totals);
}

double adapter_step_s(const struct adapter_cost *cost, const struct ifl_adapter_totals *totals)
{
    const double merge_s = cost->compute == ADAPTER_MERGED ? cost->merge_s : 0;
    return compute_s(cost, totals) + totals->n_loads * (cost->load_s + merge_s) +
           (double)totals->load_bytes * cost->load_byte_s +
           (double)totals->disk_bytes * cost->disk_byte_s;
}
