/* The model: its profile, its length and the width of its weights. */
#include <string.h>
#include <strings.h>

#include "import/names.h"
#include "import/settle.h"

static const char *name_of(const struct settled *s)
{
    return facts_text(s->facts, facts_model_name(s->facts));
}

void settle_model(struct settled *s)
{
    const char *model = name_of(s);
    const char *chosen = facts_text(s->facts, "chosen_model");
    const char *profile = chosen ? chosen : model ? model_profile(model) : NULL;
    if (profile)
        settle_put(s, "model", "%s", profile);
    else
        settle_find(s, FOUND_UNKNOWN, s->facts->server_at, model ? model : "no model is named",
                    NULL,
                    "no model of configs/models has this name: set model, `inflight model` reads "
                    "a config.json");
}

long long settle_checkpoint_len(const struct settled *s)
{
    const char *model = name_of(s);
    return model ? model_checkpoint_len(model) : 0;
}

void settle_length(struct settled *s)
{
    char text[32];
    const long long len = settle_checkpoint_len(s);
    if (len == 0 || s->code < 0 || tree_at(s->root, "serving.max_model_len"))
        return;
    snprintf(text, sizeof text, "%lld", len);
    settle_assume(s, "serving.max_model_len", text,
                  "the checkpoint's length, which is not that of the profile");
}

/* FlashMLA, the default for latent K/V on GPUs that it has kernels for, has blocks of 64 tokens
 * (platforms/cuda.py, check_and_update_config). A log says so. */
void settle_latent_blocks(struct settled *s)
{
    static const char *const hopper[] = {"H100", "H200", "H20"};
    const char *profile = tree_text(tree_at(s->root, "model"));
    const char *name = facts_text(s->facts, "gpu");
    const struct gpu_name *gpu = name ? gpu_name_find(name) : NULL;
    if (!profile || !gpu || !model_is_latent_profile(profile) || facts_get(s->facts, "block_size"))
        return;
    for (size_t i = 0; i < sizeof hopper / sizeof *hopper; i++)
        if (strstr(gpu->name, hopper[i])) {
            settle_assume(s, "serving.kv.block_tokens", "64",
                          "FlashMLA's blocks, its default for latent K/V on this GPU");
            return;
        }
}

/* ---- weights ---- */

#define OTHER_WEIGHTS "quantised weights: a step takes as long as with those of the model's profile"

/* What a server calls a format; of those that are left out, the checkpoint's name says the width.
 */
static const char *width_of_format(const char *format)
{
    static const char *const formats[][2] = {
        {"fp8", "fp8"},        {"fbgemm_fp8", "fp8"},   {"ptpc_fp8", "fp8"},
        {"w8a8_fp8", "fp8"},   {"modelopt_fp8", "fp8"}, {"FP8_BLOCK_SCALES", "fp8"},
        {"w8a8_int8", "int8"}, {"W8A16", "int8"},       {"W4A16", "int4"},
        {"W4A16_AWQ", "int4"}, {"W4A16_GPTQ", "int4"},
    };
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(format, formats[i][0]) == 0)
            return formats[i][1];
    return NULL;
}

/* Checkpoints in these formats nearly always have four bits. */
static bool is_of_4_bits(const char *format)
{
    return format && (strncasecmp(format, "awq", 3) == 0 || strncasecmp(format, "gptq", 4) == 0);
}

void settle_weights(struct settled *s)
{
    const char *model = name_of(s), *format = facts_text(s->facts, "quantization");
    const struct fact *fact = facts_get(s->facts, facts_model_name(s->facts));
    const char *width = width_of_format(format);
    if (!width && model)
        width = model_width(model);
    if (!width && is_of_4_bits(format))
        width = "int4";
    if (!width && !format)
        return;
    const bool is_known = width && *width;
    const char *says = is_known ? NULL : OTHER_WEIGHTS;
    if (is_known)
        settle_put(s, "dtype", "%s", width);
    if (format)
        facts_decide(s->facts, "quantization", is_known ? FOUND_MAPS : FOUND_UNMODELLED,
                     is_known ? "dtype" : NULL, says);
    else
        settle_find(s, is_known ? FOUND_MAPS : FOUND_UNMODELLED, fact->at, model,
                    is_known ? "dtype" : NULL, says);
}
