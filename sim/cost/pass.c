#include "cost/pass.h"

/* `rows` over all of `n_weights` different weights. */
static struct pass_part product(const struct model *model, const struct model_linear *linear,
                                double rows, double n_weights, double weight_bytes)
{
    const double n = (double)linear->n, k = (double)linear->k;
    return (struct pass_part){linear->name, 2 * rows * n * k,
                              (rows * k + rows * n) * model->weight_bytes +
                                  n_weights * n * k * weight_bytes};
}

static struct pass_part attention(const struct model *model, int32_t tensor_parallel,
                                  const struct pass *pass)
{
    const double h = model_q_heads_per_rank(model, tensor_parallel);
    const double g = model_kv_heads_per_rank(model, tensor_parallel);
    const double kv_tokens = pass->context_tokens + pass->new_tokens;
    const double pairs = pass->n_seqs * pass->new_tokens * kv_tokens;
    const double kv_bytes = 2 * pass->n_seqs * kv_tokens * g * model->d_head * model->kv_bytes;
    const double query_bytes =
        2 * pass->n_seqs * pass->new_tokens * h * model->d_head * model->weight_bytes;
    return (struct pass_part){"attention", 4 * h * model->d_head * pairs, kv_bytes + query_bytes};
}

static struct pass_part of_layers(const struct model *model, const char *name, struct pass_part one)
{
    return (struct pass_part){name, model->layers * one.flops, model->layers * one.bytes};
}

static struct pass_part both(struct pass_part a, struct pass_part b)
{
    return (struct pass_part){a.name, a.flops + b.flops, a.bytes + b.bytes};
}

void pass_count(const struct model *model, int32_t tensor_parallel, const struct pass *pass,
                struct pass_part parts[PASS_PARTS])
{
    struct model_linear linears[MODEL_LINEARS];
    const struct model_linear head = model_lm_head(model, tensor_parallel);
    const double m = pass->n_seqs * pass->new_tokens;
    model_layer_linears(model, tensor_parallel, linears);
    const double matrix_bytes = model_matrix_bytes(model);
    const double picks = m * model_experts_per_token(model);
    const double experts = model_distinct_experts(model, m);
    parts[PASS_QKV] = of_layers(model, "qkv", product(model, &linears[0], m, 1, matrix_bytes));
    parts[PASS_ATTENTION] = of_layers(model, "attention", attention(model, tensor_parallel, pass));
    parts[PASS_OUT] = of_layers(model, "out", product(model, &linears[1], m, 1, matrix_bytes));
    parts[PASS_MLP] =
        of_layers(model, "mlp",
                  both(product(model, &linears[MODEL_MLP_UP], picks, experts, matrix_bytes),
                       product(model, &linears[MODEL_MLP_DOWN], picks, experts, matrix_bytes)));
    parts[PASS_HEAD] =
        product(model, &head, pass->all_logits ? m : pass->n_seqs, 1, model->weight_bytes);
}

struct pass_part pass_sum(const struct pass_part parts[PASS_PARTS])
{
    struct pass_part sum = {"sum", 0, 0};
    for (int i = 0; i < PASS_PARTS; i++)
        sum = both(sum, parts[i]);
    return sum;
}
