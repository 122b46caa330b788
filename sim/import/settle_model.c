/* Sets the model: its profile, its length and the width of its weights. */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cost/model.h"

#include "import/names.h"
#include "import/settle.h"

static const char *name_of(const struct settled *s)
{
    const struct fact *fact = facts_checkpoint(s->facts);
    return fact ? fact->value : NULL;
}

/* A model that --model names, in place of the server's or where that names none. */
static void report_chosen(struct settled *s, const char *chosen)
{
    const struct fact *fact = facts_get(s->facts, facts_model_name(s->facts));
    const struct fact *checkpoint = facts_get(s->facts, "chosen_checkpoint");
    const char *profile = fact ? model_profile(fact->value) : NULL;
    char what[320];
    if (checkpoint)
        settle_find(s, FOUND_MAPS, checkpoint->at, checkpoint->value, "model", NULL);
    if (!fact || (profile && strcmp(profile, chosen) == 0))
        return;
    snprintf(what, sizeof what, "%.100s for %.200s", chosen, fact->value);
    settle_find(s, FOUND_ASSUMED, fact->at, what, NULL, "--model");
}

/* A folder of this machine, as a server is given one, that the key `model` takes, too. */
static bool is_checkpoint(const char *model)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/config.json", model);
    return strchr(model, '/') && access(path, R_OK) == 0;
}

/* Profiles are text parts: a folder with an image encoder says more than the profile of its name.
 */
static bool has_encoder(const char *folder)
{
    struct ifl_error wrong;
    struct model model;
    return is_checkpoint(folder) && model_load(folder, &model, &wrong) == 0 &&
           model.vision.words.has_config;
}

/* The name that may be that of a profile. */
static const char *listed_name(const struct settled *s)
{
    const char *model = name_of(s);
    return model && has_encoder(model) ? NULL : model;
}

/* A model that is set after the import comes too late: blocks are counted by its layers. */
#define GIVE_MODEL                                                                                 \
    "import again with --model (a name or a config.json), because the number of blocks and other " \
    "keys depend on the model"

static void report_unknown(struct settled *s, const char *model)
{
    const char *says =
        model && model_has_other_size(model)
            ? "the model of configs/models with a name that begins so has another size: " GIVE_MODEL
            : "no model of configs/models has this name: " GIVE_MODEL;
    if (!model || !facts_decide(s->facts, facts_model_name(s->facts), FOUND_UNKNOWN, NULL, says))
        settle_find(s, FOUND_UNKNOWN, s->facts->server_at, model ? model : "no model is named",
                    NULL, says);
}

void settle_model(struct settled *s)
{
    const char *model = name_of(s), *listed = listed_name(s);
    const char *chosen = facts_text(s->facts, "chosen_model");
    const char *profile = chosen ? chosen : listed ? model_profile(listed) : NULL;
    if (chosen)
        report_chosen(s, chosen);
    if (profile)
        settle_put(s, "model", "%s", profile);
    else if (model && is_checkpoint(model))
        settle_assume(s, "model", model, "the folder has a config.json");
    else
        report_unknown(s, model);
}

/* The length of the profile that the name finds; 0: it finds none. */
static long long profile_len(const char *name)
{
    const char *profile = model_profile(name);
    struct ifl_error wrong;
    struct model model;
    return profile && model_load(profile, &model, &wrong) == 0 ? model.max_model_len : 0;
}

/* The length of the checkpoint that its name tells; *is_vague: it tells one beyond that of the
 * table or the profile, but not how many tokens that is. */
static long long checkpoint_len(const char *name, bool *is_vague)
{
    const long long listed = model_checkpoint_len(name);
    const long long known = listed > 0 ? listed : profile_len(name);
    double thousands;
    long long n_tokens;
    *is_vague = false;
    if (known == 0 || !model_named_len(name, &thousands, &n_tokens))
        return listed;
    *is_vague = n_tokens == 0 && 1000 * thousands > (double)known;
    return n_tokens > known ? n_tokens : listed;
}

long long settle_checkpoint_len(const struct settled *s)
{
    const char *model = listed_name(s);
    bool is_vague;
    return model ? checkpoint_len(model, &is_vague) : 0;
}

/* `name` is longer than the checkpoint, as far as that is known. */
static void check_length(struct settled *s, const char *name, long long len)
{
    const struct fact *said = facts_get(s->facts, name);
    const long long n_tokens = settle_number(s, name, 0);
    char text[64];
    if (!said || len == 0 || n_tokens <= len)
        return;
    snprintf(text, sizeof text, "serving.max_model_len=%lld", n_tokens);
    settle_find(s, FOUND_UNKNOWN, said->at, text, NULL,
                "beyond the length of the model's profile or name: a server takes it only if its "
                "config.json says a longer one, or if it is told to take any");
}

void settle_length(struct settled *s, const char *name)
{
    const char *model = listed_name(s);
    char text[32];
    bool is_vague = false;
    settle_count(s, name, "serving.max_model_len");
    if (!model || s->code < 0)
        return;
    const long long len = checkpoint_len(model, &is_vague);
    snprintf(text, sizeof text, "%lld", len);
    if (tree_at(s->root, "serving.max_model_len"))
        check_length(s, name, is_vague ? 0 : len > 0 ? len : profile_len(model));
    else if (is_vague)
        settle_find(s, FOUND_UNKNOWN, facts_checkpoint(s->facts)->at, model, NULL,
                    "the name may tell a length beyond the profile's, which counts here: set "
                    "serving.max_model_len to that of its config.json");
    else if (len > 0)
        settle_assume(s, "serving.max_model_len", text,
                      "the checkpoint's length, which is not that of the profile");
}

/* `models`: parts of names, up to NULL. */
static bool is_one_of(const struct gpu_name *gpu, const char *const *models)
{
    while (gpu && *models && !gpu_name_has(gpu, *models))
        models++;
    return gpu && *models;
}

/* FlashMLA, the default for latent K/V on GPUs that it has kernels for, has blocks of 64 tokens
 * (platforms/cuda.py, check_and_update_config). A log says so. */
void settle_latent_blocks(struct settled *s)
{
    static const char *const hopper[] = {"H100", "H200", "H20", NULL};
    const char *profile = tree_text(tree_at(s->root, "model"));
    if (!profile || !model_is_latent_profile(profile) || facts_get(s->facts, "block_size"))
        return;
    if (is_one_of(settle_gpu(s), hopper))
        settle_assume(s, "serving.kv.block_tokens", "64",
                      "FlashMLA's blocks, its default for latent K/V on this GPU");
}

/* No format of K/V is asked for; the model's profile or config.json is at hand. */
static bool keeps_own_kv(const struct settled *s, struct model *model)
{
    const char *dtype = facts_text(s->facts, "kv_cache_dtype");
    return (!dtype || strcmp(dtype, "auto") == 0) && settle_known_model(s, model);
}

/* Where a model has an indexer, `auto` is a format of 8 bits
 * (vllm/model_executor/models/config.py, DeepseekV32ForCausalLM). */
void settle_sparse_kv(struct settled *s)
{
    struct model model;
    if (keeps_own_kv(s, &model) && model.index_topk > 0)
        settle_assume(s, "engine.kv_dtype", "fp8",
                      "vLLM's default where an indexer picks the tokens, unless bfloat16 is given");
}

void settle_kv_scales(struct settled *s, bool modelopt, bool compressed_tensors)
{
    struct model model;
    if (keeps_own_kv(s, &model) &&
        ((modelopt && model.kv_scales == MODEL_KV_MODELOPT) ||
         (compressed_tensors && model.kv_scales == MODEL_KV_COMPRESSED_TENSORS)))
        settle_assume(s, "engine.kv_dtype", "fp8",
                      "the checkpoint has scales for K/V in fp8, which this release follows unless "
                      "another format is given");
}

/* ---- weights ---- */

#define OTHER_WEIGHTS "quantised weights: a step takes as long as with those of the model's profile"

/* What a server calls a format; of those that are left out, the checkpoint's name says the width.
 */
static const char *width_of_format(const char *format)
{
    static const char *const formats[][2] = {
        {"fp8", "fp8"},        {"fbgemm_fp8", "fp8"},    {"ptpc_fp8", "fp8"},
        {"w8a8_fp8", "fp8"},   {"modelopt_fp8", "fp8"},  {"FP8_BLOCK_SCALES", "fp8"},
        {"w8a8_int8", "int8"}, {"W8A16", "int8"},        {"W4A16", "int4"},
        {"W4A16_AWQ", "int4"}, {"W4A16_GPTQ", "int4"},   {"modelopt_fp4", "nvfp4"},
        {"nvfp4", "nvfp4"},    {"petit_nvfp4", "nvfp4"}, {"mxfp4", "mxfp4"},
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

/* Formats of 4-bit floats count as int4: what that leaves out. Scales: one of 8 bits for 16
 * weights, or for 32 (OCP Microscaling Formats 1.0, 6.3); int4 has 16 + 4 bits for 128
 * (memory_engine.c). */
static const char *fp4_says(const char *width)
{
    static const char *const words[][2] = {
        {"mxfp4", "counted as int4: weights have 4.25 bits with their scales, 4.16 here, so that "
                  "they take 2% more memory than here; a step takes as long as with int4, which is "
                  "multiplied in 16 bits, not in FP4"},
        {"fp4", "counted as int4: weights have 4.25 bits with their scales (MXFP4) or 4.5 (NVFP4), "
                "4.16 here; a step takes as long as with int4, which is multiplied in 16 bits, not "
                "in FP4"},
    };
    for (size_t i = 0; width && i < sizeof words / sizeof *words; i++)
        if (strcmp(width, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* GPUs before Ada have no products in fp8: engines unpack such weights (Marlin, W8A16), so that a
 * step takes as long as with int8. */
static bool unpacks_fp8(const struct settled *s)
{
    static const char *const before[] = {"A100", "A10", "A6000", "3090", "V100", "T4", NULL};
    return is_one_of(settle_gpu(s), before);
}

static void put_width(struct settled *s, const char *width)
{
    if (strcmp(width, "fp8") == 0 && unpacks_fp8(s))
        settle_assume(s, "dtype", "int8",
                      "this GPU multiplies no fp8: its weights are unpacked, as those of int8");
    else
        settle_put(s, "dtype", "%s", width);
}

bool settle_known_model(const struct settled *s, struct model *model)
{
    const char *profile = tree_text(tree_at(s->root, "model"));
    struct ifl_error wrong;
    return profile && model_load(profile, model, &wrong) == 0;
}

/* The model's own weights are in that format, as its profile says. */
static bool has_width(const struct settled *s, const char *width)
{
    struct model model;
    return width && strcmp(width, "mxfp4") == 0 && settle_known_model(s, &model) &&
           model.quantization == MODEL_MXFP4;
}

/* For a checkpoint that is fp8 by its config.json, and neither by its name nor by a flag. */
static void unpack_own_fp8(struct settled *s)
{
    struct model model;
    if (unpacks_fp8(s) && settle_known_model(s, &model) && model.quantization == MODEL_FP8)
        put_width(s, "fp8");
}

/* The name that says the width: --model's, or, where that says none, the server's. */
static const struct fact *name_with_width(const struct settled *s)
{
    const struct fact *chosen = facts_checkpoint(s->facts);
    const struct fact *said = facts_get(s->facts, facts_model_name(s->facts));
    return said && !model_width(chosen->value) ? said : chosen;
}

void settle_weights(struct settled *s)
{
    const struct fact *fact = name_with_width(s);
    const char *model = fact ? fact->value : NULL, *format = facts_text(s->facts, "quantization");
    const char *width = width_of_format(format);
    if (!width && model)
        width = model_width(model);
    if (!width && is_of_4_bits(format))
        width = "int4";
    if (!width && !format) {
        unpack_own_fp8(s);
        return;
    }
    if (has_width(s, width)) {
        if (format)
            facts_decide(s->facts, "quantization", FOUND_MAPS, "model", NULL);
        return;
    }
    const char *fp4 = fp4_says(width);
    const bool is_known = width && *width;
    width = fp4 ? "int4" : width;
    const char *says = is_known ? NULL : OTHER_WEIGHTS;
    if (is_known)
        put_width(s, width);
    if (format)
        facts_decide(s->facts, "quantization", is_known ? FOUND_MAPS : FOUND_UNMODELLED,
                     is_known ? "dtype" : NULL, says);
    else if (fact)
        settle_find(s, is_known ? FOUND_MAPS : FOUND_UNMODELLED, fact->at, model,
                    is_known ? "dtype" : NULL, says);
    const struct fact *of = format ? facts_get(s->facts, "quantization") : fact;
    if (fp4 && of)
        settle_find(s, FOUND_UNMODELLED, of->at, format ? format : model, NULL, fp4);
}

/* Engines cast checkpoints of 32 bits to 16 unless they are told to keep them (vLLM's
 * config/model.py, _get_and_verify_dtype; SGLang's model_config.py), and those of 16 to 32 where
 * they are told so. */
void settle_width(struct settled *s)
{
    const char *dtype = facts_text(s->facts, "dtype");
    const bool is_wide = dtype && (strcmp(dtype, "float32") == 0 || strcmp(dtype, "float") == 0);
    struct model model;
    if (s->code < 0 || tree_at(s->root, "dtype") || !settle_known_model(s, &model) ||
        model.quantization != MODEL_PLAIN)
        return;
    if (is_wide && model.weight_bytes == 2)
        settle_put(s, "dtype", "fp32");
    else if (!is_wide && model.weight_bytes == 4)
        settle_assume(s, "dtype", "bf16", "a checkpoint of 32 bits is cast to 16");
}
