#include "cost/roofline_state.h"

#include "cost/roofline_layers.h"

static double key_columns(const struct roofline_rank *rank)
{
    return (double)model_state_keys(rank->model, rank->parallel.tensor);
}

static double value_columns(const struct roofline_rank *rank)
{
    return (double)model_state_values(rank->model, rank->parallel.tensor);
}

/* ---- around a state ---- */

/* Kernels of their own before and behind, and what they move beside the convolution, by values and
 * keys:
 *     delta, mamba2  convolution, scalars of each head, norm with the gate
 *     mamba1         convolution, three norms; the scan takes the gate
 *     kda            convolutions of queries, keys and values, decays of each channel in 32 bits,
 *                    norm with the gate
 *     lightning      activation of queries, keys and values, norm, gate
 *     conv           gate, convolution, gate */
static const struct around {
    int32_t launches, values, keys;
} arounds[] = {
    [MODEL_STATE_DELTA] = {3, 3, 0},     [MODEL_STATE_MAMBA2] = {3, 3, 0},
    [MODEL_STATE_MAMBA1] = {4, 0, 0},    [MODEL_STATE_KDA] = {5, 6, 0},
    [MODEL_STATE_LIGHTNING] = {3, 7, 4}, [MODEL_STATE_CONV] = {3, 6, 0},
};

static double around_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct model *model = rank->model;
    const struct around *around = &arounds[model->state_rule];
    const double channels = (double)model_state_channels(model, rank->parallel.tensor);
    const double decodes = totals->n_tokens - totals->n_prefill_tokens;
    const double last = 2.0 * (model->conv_tokens - 1) * decodes;
    const double others = around->values * value_columns(rank) + around->keys * key_columns(rank);
    const double elements = channels * (2.0 * totals->n_tokens + last) + others * totals->n_tokens;
    return elementwise_s(rank->hardware, around->launches, elements * model->weight_bytes);
}

/* ---- prompts of rules without a profile ---- */

/* The kernels of a prompt, all of which wait for memory, and what they move of a token:
 *     mamba2     (vLLM, model_executor/layers/mamba/ops/ssd_combined.py) sums of the decays, the
 *                state of each chunk, the states passed from chunk to chunk, B with C, the outputs:
 *                inputs twice and outputs once, B and C twice, the products of a chunk's B and C
 *                written and read, and the states of a chunk, written, passed on, which reads and
 *                writes, and read. 3 MFLOP a token and layer of Nemotron 3 Nano stand beside 100 KB
 *     mamba1     one scan: inputs, steps, gates and outputs, B and C
 *     lightning  (lightning_attn.py there) products within a chunk, its state, sums of states,
 *                products with them: queries, keys and values twice, outputs written, read and
 *                written, states as those of mamba2 */
enum { CHUNK_TOKENS = 256, CHUNK_ELEMENT_BYTES = 4 };
static const struct scan {
    int32_t launches, values, keys;
    bool has_chunks, has_pairs;
} scans[] = {
    [MODEL_STATE_MAMBA2] = {5, 3, 4, true, true},
    [MODEL_STATE_MAMBA1] = {1, 4, 2, false, false},
    [MODEL_STATE_LIGHTNING] = {4, 5, 4, true, false},
};

static double scan_bytes(const struct roofline_rank *rank, const struct scan *scan)
{
    const struct model *model = rank->model;
    const double groups = model_state_k_heads_per_rank(model, rank->parallel.tensor);
    const double values = value_columns(rank), keys = key_columns(rank);
    const double states = scan->has_chunks ? values * model->state_k_dim / CHUNK_TOKENS : 0;
    const double pairs = scan->has_pairs ? groups * CHUNK_TOKENS : 0;
    return (scan->values * values + scan->keys * keys) * model->weight_bytes +
           (2 * pairs + 4 * states) * CHUNK_ELEMENT_BYTES;
}

static double scan_prompts_s(const struct roofline_rank *rank, double n_tokens)
{
    const struct scan *scan = &scans[rank->model->state_rule];
    return n_tokens > 0
               ? elementwise_s(rank->hardware, scan->launches, n_tokens * scan_bytes(rank, scan))
               : 0;
}

/* ---- a layer ---- */

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
    if (model_state_asks(model))
        return delta_s(rank->hardware, &shape) + around_s(rank, totals);
    if (model->state_rule == MODEL_STATE_CONV)
        return around_s(rank, totals);
    const struct delta_shape decodes = {
        .n_decodes = shape.n_decodes, .v_heads = shape.v_heads, .state_bytes = shape.state_bytes};
    return scan_prompts_s(rank, shape.n_prompt_tokens) + delta_s(rank->hardware, &decodes) +
           around_s(rank, totals);
}

double roofline_state_projections_s(const struct roofline_rank *rank, double n_tokens)
{
    double s = 0;
    for (int i = 0; i < MODEL_STATE_LINEARS; i++)
        if (rank->states[i].n > 0)
            s += roofline_product_s(rank, MODEL_PART_STATE, n_tokens, (double)rank->states[i].n,
                                    (double)rank->states[i].k);
    return s;
}
