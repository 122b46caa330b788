#include "cost/memory_encoder.h"

#include <math.h>

#include "inflight/minmax.h"

/* The run with numbers for what it leaves open. */
static struct encoder_run completed(const struct model_vision *vision,
                                    const struct encoder_run *run, int32_t max_batched_tokens)
{
    struct encoder_run all = *run;
    if (all.item_tokens == 0)
        all.item_tokens = vision->image_tokens;
    if (all.items == 0)
        all.items = ifl_max(max_batched_tokens / all.item_tokens, 1);
    if (all.kept_tokens == 0)
        all.kept_tokens = all.item_tokens;
    return all;
}

/* Embeddings of the layers that have a projector are copied beside the steps (qwen3_vl.py,
 * deepstack_input_embeds); the table of cosines and sines has rows for images, too. */
static int64_t table_bytes(const struct model *model, int32_t max_batched_tokens)
{
    const struct model_vision *vision = &model->vision;
    const int64_t deepstack = (int64_t)vision->deepstack * vision->d_out * max_batched_tokens;
    const int64_t rows = (int64_t)vision->rotary_rows * model->max_model_len;
    return (deepstack + rows * model->d_head) * model->weight_bytes;
}

static void weigh_run(const struct model *model, const struct encoder_run *run,
                      struct memory_plan *plan)
{
    const struct model_vision *vision = &model->vision;
    const int32_t ranks = run->replicated ? 1 : plan->tensor_parallel;
    const double share =
        run->replicated ? ceil((double)run->items / plan->tensor_parallel) : (double)run->items;
    const double pixels = (double)vision_input_columns(vision);
    const double kept = (double)run->items * run->kept_tokens;
    const double held = (double)run->items * run->item_tokens * pixels;
    const double layer = share * run->item_tokens *
                         vision_layer_columns(vision, (enum vision_rotation)run->rotation, ranks);
    const double bytes = model->weight_bytes;
    plan->encoder_items = run->items;
    plan->encoder_held_bytes =
        (int64_t)(bytes * (held + kept * (double)vision_embedding_columns(vision)));
    plan->encoder_run_bytes = (int64_t)(bytes * (held + layer));
}

void memory_weigh_encoder(const struct model *model, const struct encoder_run *run,
                          int32_t max_batched_tokens, struct memory_plan *plan)
{
    const struct model_vision *vision = &model->vision;
    if (run->use == ENCODER_OFF)
        plan->encoder = MEMORY_ENCODER_OFF;
    if (!vision_is_known(vision))
        return;
    plan->encoder_bytes = table_bytes(model, max_batched_tokens);
    if (run->use == ENCODER_OFF)
        return;
    plan->encoder = MEMORY_ENCODER_COUNTED;
    plan->encoder_bytes += vision_weight_bytes(vision, model->weight_bytes,
                                               run->replicated ? 1 : plan->tensor_parallel);
    if (run->use == ENCODER_PROFILED) {
        const struct encoder_run all = completed(vision, run, max_batched_tokens);
        weigh_run(model, &all, plan);
    }
}

double memory_beside_encoder(double text_bytes, struct memory_plan *plan)
{
    const double beside = text_bytes + (double)plan->encoder_held_bytes;
    plan->encoder_is_widest = (double)plan->encoder_run_bytes > beside;
    return fmax(beside, (double)plan->encoder_run_bytes);
}
