/* The image encoder in a Hugging Face config.json: vision_config, with the defaults of the
 * configuration classes of transformers. The values of a preprocessor_config.json are not in that
 * file: the largest image is that of the published preprocessor configurations. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cost/huggingface_kinds.h"

enum {
    MAX_SIDE = 1 << 14, /* pixels */
    MAX_PATCH = 1 << 10,
    MAX_FRAMES = 64,          /* of a patch */
    QWEN_IMAGE_TOKENS = 16384 /* max_pixels 12,845,056 / 28^2; longest_edge 16,777,216 / 32^2 */
};

static int32_t width(struct ifl_hf_config *config, const char *key, int32_t otherwise)
{
    return ifl_hf_count(config, key, otherwise, IFL_MODEL_MAX_D_FFN);
}

/* The keys that most families share. 0 where one is missing: there are no formulas without it. */
static void read_shape(struct ifl_hf_config *config, const char *layers, struct model_vision *v)
{
    v->layers = ifl_hf_count(config, layers, 0, IFL_MODEL_MAX_LAYERS);
    v->d_model = width(config, "hidden_size", 0);
    v->d_ffn = width(config, "intermediate_size", 0);
}

static void read_qwen_patches(struct ifl_hf_config *config, int32_t patch, struct model_vision *v)
{
    v->patch = ifl_hf_count(config, "patch_size", patch, MAX_PATCH);
    v->frames = ifl_hf_count(config, "temporal_patch_size", 2, MAX_FRAMES);
    v->merge = ifl_hf_count(config, "spatial_merge_size", 2, MAX_PATCH);
    v->image_tokens = QWEN_IMAGE_TOKENS;
    v->rotary_rows = 4;
}

/* Here hidden_size is the decoder's, and embed_dim the encoder's. */
static void read_qwen2(struct ifl_hf_config *config, const struct model *model,
                       struct model_vision *v)
{
    (void)model;
    v->layers = ifl_hf_count(config, "depth", 32, IFL_MODEL_MAX_LAYERS);
    v->d_model = width(config, "embed_dim", 1280);
    v->d_ffn = v->d_model * ifl_hf_count(config, "mlp_ratio", 4, 64);
    v->d_out = width(config, "hidden_size", 0);
    read_qwen_patches(config, 14, v);
}

static void read_qwen2_5(struct ifl_hf_config *config, const struct model *model,
                         struct model_vision *v)
{
    read_shape(config, "depth", v);
    v->d_out = width(config, "out_hidden_size", model->d_model);
    read_qwen_patches(config, 14, v);
}

static void read_qwen3(struct ifl_hf_config *config, const struct model *model,
                       struct model_vision *v)
{
    const json_t *indexes = ifl_hf_value(config->root, "deepstack_visual_indexes");
    read_shape(config, "depth", v);
    v->d_out = width(config, "out_hidden_size", model->d_model);
    v->positions = ifl_hf_count(config, "num_position_embeddings", 2304, MAX_SIDE);
    v->deepstack = indexes ? (int32_t)json_array_size(indexes) : 3;
    read_qwen_patches(config, 16, v);
}

/* Of encoders of still images. Returns the patches of a side of the largest one; 0 after an error.
 */
static int32_t read_stills(struct ifl_hf_config *config, const struct model *model, int32_t patch,
                           int32_t image, struct model_vision *v)
{
    read_shape(config, "num_hidden_layers", v);
    v->d_out = model->d_model;
    v->patch = ifl_hf_count(config, "patch_size", patch, MAX_PATCH);
    v->frames = 1;
    const int32_t side = ifl_hf_count(config, "image_size", image, MAX_SIDE);
    return v->patch > 0 ? side / v->patch : 0;
}

/* A table of positions for the one size of image that there is. */
static void read_siglip(struct ifl_hf_config *config, const struct model *model,
                        struct model_vision *v)
{
    const int32_t side = read_stills(config, model, 14, 896, v);
    v->positions = side * side;
    v->merge = side / 16; /* mm_tokens_per_image 256: those of 16 x 16 averages */
    v->image_tokens = 256;
}

static void read_pixtral(struct ifl_hf_config *config, const struct model *model,
                         struct model_vision *v)
{
    const int32_t patches = read_stills(config, model, 16, 1024, v);
    v->merge = 2; /* spatial_merge_size of the outer object, in all published ones */
    v->image_tokens = patches / v->merge * (patches / v->merge);
}

static const struct family {
    const char *model_type;
    enum vision_kind kind;
    void (*read)(struct ifl_hf_config *, const struct model *, struct model_vision *);
} families[] = {
    {"qwen2_vl", VISION_QWEN2, read_qwen2}, {"qwen2_5_vl", VISION_QWEN2_5, read_qwen2_5},
    {"qwen3_vl", VISION_QWEN3, read_qwen3}, {"qwen3_vl_moe", VISION_QWEN3, read_qwen3},
    {"gemma3", VISION_SIGLIP, read_siglip}, {"mistral3", VISION_PIXTRAL, read_pixtral},
};

/* Shapes that make no patches leave the encoder unknown. */
static bool is_sound(const struct model_vision *v)
{
    return v->layers > 0 && v->d_model > 0 && v->d_ffn > 0 && v->d_out > 0 && v->merge > 0 &&
           v->image_tokens > 0;
}

static int32_t word_of(const struct json_t *object, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 && n <= IFL_MODEL_MAX_D_FFN ? (int32_t)n : 0;
}

static void read_words(const char *model_type, const struct json_t *object,
                       struct vision_words *words)
{
    snprintf(words->model_type, sizeof words->model_type, "%s", model_type);
    words->has_config = json_is_object(object);
    words->layers = word_of(object, "num_hidden_layers");
    words->width = word_of(object, "hidden_size");
}

void hf_read_vision(struct ifl_hf_config *config, const char *model_type, struct json_t *object,
                    struct model *model)
{
    struct ifl_hf_config part = *config;
    struct model_vision vision = {.kind = VISION_UNKNOWN};
    read_words(model_type, object, &vision.words);
    model->vision = vision;
    part.root = object;
    for (size_t i = 0; i < sizeof families / sizeof *families && json_is_object(object); i++)
        if (strcmp(families[i].model_type, model_type) == 0 && !config->code) {
            vision.kind = (int32_t)families[i].kind;
            families[i].read(&part, model, &vision);
        }
    config->code = part.code;
    if (!part.code && is_sound(&vision))
        model->vision = vision;
}
