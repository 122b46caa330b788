#include "cost/roofline_state.h"

#include "cost/roofline_layers.h"

static double columns(const struct roofline_rank *rank, int32_t heads, int32_t width)
{
    return (double)heads * width / rank->parallel.tensor;
}

/* Three kernels of their own before and behind: the convolution, the scalars of each head, the norm
 * with the gate. */
enum { STATE_LAUNCHES = 3 };

static double around_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct model *model = rank->model;
    const double keys = columns(rank, model->state_k_heads, model->state_k_dim);
    const double values = columns(rank, model->state_v_heads, model->state_v_dim);
    const double decodes = totals->n_tokens - totals->n_prefill_tokens;
    const double last = 2.0 * (model->conv_tokens - 1) * decodes;
    const double elements =
        (2 * keys + values) * (2.0 * totals->n_tokens + last) + 3 * values * totals->n_tokens;
    return elementwise_s(rank->hardware, STATE_LAUNCHES, elements * model->weight_bytes);
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
    return delta_s(rank->hardware, &shape) + around_s(rank, totals);
}

double roofline_state_projections_s(const struct roofline_rank *rank, double n_tokens)
{
    double s = 0;
    for (int i = 0; i < MODEL_STATE_LINEARS; i++)
        s += roofline_product_s(rank, n_tokens, (double)rank->states[i].n,
                                (double)rank->states[i].k);
    return s;
}
