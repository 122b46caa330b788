#include "cost/roofline_state.h"

#include "cost/roofline_layers.h"

/* Of a rank. */
static double key_columns(const struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    return (double)model_state_k_heads_per_rank(model, rank->parallel.tensor) * model->state_k_dim;
}

static double value_columns(const struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    return (double)model->state_v_heads * model->state_v_dim / rank->parallel.tensor;
}

/* Three kernels of their own before and behind: the convolution, the scalars of each head, the norm
 * with the gate. */
enum { STATE_LAUNCHES = 3 };

static double around_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct model *model = rank->model;
    const double keys = key_columns(rank), values = value_columns(rank);
    const double decodes = totals->n_tokens - totals->n_prefill_tokens;
    const double last = 2.0 * (model->conv_tokens - 1) * decodes;
    const double elements =
        (2 * keys + values) * (2.0 * totals->n_tokens + last) + 3 * values * totals->n_tokens;
    return elementwise_s(rank->hardware, STATE_LAUNCHES, elements * model->weight_bytes);
}

/* ---- Mamba-2 ---- */

/* The kernels of a prompt (vLLM, model_executor/layers/mamba/ops/ssd_combined.py): sums of the
 * decays, the state of each chunk, the states passed from chunk to chunk, B with C, the outputs.
 * All wait for memory: 3 MFLOP a token and layer of Nemotron 3 Nano stand beside 100 KB. */
enum { SSD_LAUNCHES = 5, SSD_CHUNK_TOKENS = 256, SSD_ELEMENT_BYTES = 4 };

/* Of a token, between these kernels: inputs twice and outputs once, B and C twice, the products of
 * a chunk's B and C written and read, and the states of a chunk, written, passed on, which reads
 * and writes, and read. */
static double ssd_bytes(const struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    const double groups = model_state_k_heads_per_rank(model, rank->parallel.tensor);
    const double values = value_columns(rank);
    const double states = values * model->state_k_dim / SSD_CHUNK_TOKENS;
    return (3 * values + 4 * key_columns(rank)) * model->weight_bytes +
           (2 * groups * SSD_CHUNK_TOKENS + 4 * states) * SSD_ELEMENT_BYTES;
}

static double ssd_prompts_s(const struct roofline_rank *rank, double n_tokens)
{
    return n_tokens > 0 ? elementwise_s(rank->hardware, SSD_LAUNCHES, n_tokens * ssd_bytes(rank))
                        : 0;
}

double roofline_state_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct model *model = rank->model;
    const struct delta_shape shape = {
        .n_prompt_tokens = totals->n_prefill_tokens,
        .n_prompts = totals->n_prefill_seqs,
        .n_decodes = totals->n_tokens - totals->n_prefill_tokens,
        .v_heads = (double)model->state_v_heads / rank->parallel.tensor,
        .state_bytes = (double)model->state_k_dim * model->state_v_dim * model->state_bytes,
    };
    if (model->state_rule == MODEL_STATE_DELTA)
        return delta_s(rank->hardware, &shape) + around_s(rank, totals);
    const struct delta_shape decodes = {
        .n_decodes = shape.n_decodes, .v_heads = shape.v_heads, .state_bytes = shape.state_bytes};
    return ssd_prompts_s(rank, shape.n_prompt_tokens) + delta_s(rank->hardware, &decodes) +
           around_s(rank, totals);
}

double roofline_state_projections_s(const struct roofline_rank *rank, double n_tokens)
{
    double s = 0;
    for (int i = 0; i < MODEL_STATE_LINEARS; i++)
        s += roofline_product_s(rank, MODEL_PART_STATE, n_tokens, (double)rank->states[i].n,
                                (double)rank->states[i].k);
    return s;
}
