#include "cost/vision.h"

#include <math.h>

static const struct vision_form {
    bool gated, has_bias, has_layernorm, embeds_with_bias;
} forms[] = {
    [VISION_QWEN2] = {.has_bias = true, .has_layernorm = true},
    [VISION_QWEN2_5] = {.gated = true, .has_bias = true},
    [VISION_QWEN3] = {.has_bias = true, .has_layernorm = true, .embeds_with_bias = true},
    [VISION_SIGLIP] = {.has_bias = true, .has_layernorm = true, .embeds_with_bias = true},
    [VISION_PIXTRAL] = {.gated = true},
};

/* Learned numbers that ranks divide, and those that each has. */
struct parts {
    int64_t divided, whole;
};

static int64_t norm(const struct model_vision *vision, int64_t columns)
{
    return forms[vision->kind].has_layernorm ? 2 * columns : columns;
}

static void add_layers(const struct model_vision *vision, struct parts *parts)
{
    const struct vision_form *form = &forms[vision->kind];
    const int64_t d = vision->d_model, f = vision->d_ffn, n_up = form->gated ? 2 : 1;
    const int64_t in_biases = form->has_bias ? 3 * d + n_up * f : 0;
    const int64_t out_biases = form->has_bias ? 2 * d : 0;
    parts->divided += vision->layers * (4 * d * d + (n_up + 1) * d * f + in_biases);
    parts->whole += vision->layers * (2 * norm(vision, d) + out_biases);
}

static void add_embedding(const struct model_vision *vision, struct parts *parts)
{
    const int64_t d = vision->d_model, positions = vision->positions * d;
    parts->whole += 3 * d * vision->frames * vision->patch * vision->patch;
    parts->whole += forms[vision->kind].embeds_with_bias ? d : 0;
    *(vision->kind == VISION_SIGLIP ? &parts->divided : &parts->whole) += positions;
}

static void add_qwen_projectors(const struct model_vision *vision, struct parts *parts)
{
    const int64_t d = vision->d_model, o = vision->d_out, c = d * vision->merge * vision->merge;
    parts->divided += (1 + vision->deepstack) * (c * c + c + c * o);
    parts->whole += (1 + vision->deepstack) * o;
    parts->whole += norm(vision, d) + vision->deepstack * norm(vision, c);
}

static void add_projector(const struct model_vision *vision, struct parts *parts)
{
    const int64_t d = vision->d_model, o = vision->d_out, c = d * vision->merge * vision->merge;
    if (vision->kind == VISION_SIGLIP) {
        parts->whole += d * o + d + norm(vision, d); /* RMSNorm, and one behind the layers */
    } else if (vision->kind == VISION_PIXTRAL) {
        parts->divided += d * o + o * o;
        parts->whole += c * d + 2 * d; /* norms behind the embedding and before the merge */
    } else {
        add_qwen_projectors(vision, parts);
    }
}

static struct parts count(const struct model_vision *vision)
{
    struct parts parts = {0, 0};
    if (!vision_is_known(vision))
        return parts;
    add_layers(vision, &parts);
    add_embedding(vision, &parts);
    add_projector(vision, &parts);
    return parts;
}

int64_t vision_parameters(const struct model_vision *vision)
{
    const struct parts parts = count(vision);
    return parts.divided + parts.whole;
}

int64_t vision_weight_bytes(const struct model_vision *vision, int32_t element_bytes,
                            int32_t tensor_parallel)
{
    const struct parts parts = count(vision);
    return (parts.divided / tensor_parallel + parts.whole) * element_bytes;
}

int64_t vision_embedding_columns(const struct model_vision *vision)
{
    return (int64_t)vision->d_out * (1 + vision->deepstack);
}

int64_t vision_input_columns(const struct model_vision *vision)
{
    const int64_t side = (int64_t)vision->patch * vision->merge;
    return 3 * side * side * vision->frames;
}

/* Other families rotate in 16 bits or not at all: their MLP is wider. */
static double attention_widths(const struct model_vision *vision, enum vision_rotation rotation,
                               int32_t tensor_parallel)
{
    static const double of_rank[] = {[VISION_ROTATES_SHORT] = 11,
                                     [VISION_ROTATES_PACKED] = 15,
                                     [VISION_ROTATES_TOGETHER] = 18,
                                     [VISION_ROTATES_APART] = 11};
    const bool gathers = tensor_parallel > 1 && rotation >= VISION_ROTATES_TOGETHER;
    if (vision->rotary_rows == 0)
        return 0;
    return fmax(2 + of_rank[rotation] / tensor_parallel, gathers ? 8 + 3.0 / tensor_parallel : 0);
}

double vision_layer_columns(const struct model_vision *vision, enum vision_rotation rotation,
                            int32_t tensor_parallel)
{
    const double n_patches = (double)vision->merge * vision->merge, d = vision->d_model;
    const double n_wide = forms[vision->kind].gated ? 3 : 2;
    const double mlp = 2 * d + n_wide * vision->d_ffn / tensor_parallel;
    return n_patches * fmax(mlp, d * attention_widths(vision, rotation, tensor_parallel));
}
