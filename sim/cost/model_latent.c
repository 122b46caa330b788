/* Shapes of latent attention, and of MLPs beside experts. */
#include "cost/model.h"

struct model_widths model_latent_prompt(const struct model *model)
{
    return (struct model_widths){model->qk_nope_head_dim + model->qk_rope_head_dim,
                                 model->v_head_dim};
}

struct model_widths model_latent_decode(const struct model *model)
{
    return (struct model_widths){model->kv_lora_rank + model->qk_rope_head_dim,
                                 model->kv_lora_rank};
}

void model_latent_ups(const struct model *model, int32_t tensor_parallel,
                      struct model_linear ups[MODEL_UPS])
{
    const int64_t h = model_q_heads_per_rank(model, tensor_parallel);
    const int64_t q_columns =
        h * (model_is_latent(model) ? model_latent_prompt(model).key : model->d_head);
    const int64_t kv_columns = h * (model->qk_nope_head_dim + model->v_head_dim);
    ups[MODEL_Q_UP] =
        (struct model_linear){"q up", model->q_lora_rank > 0 ? q_columns : 0, model->q_lora_rank};
    ups[MODEL_KV_UP] = (struct model_linear){"kv up", model_is_latent(model) ? kv_columns : 0,
                                             model->kv_lora_rank};
}

int64_t model_dense_columns(const struct model *model, int32_t tensor_parallel)
{
    return model->d_ffn_dense / tensor_parallel;
}

int64_t model_shared_columns(const struct model *model, int32_t tensor_parallel)
{
    return (int64_t)model->shared_experts * model->d_ffn_shared / tensor_parallel;
}
