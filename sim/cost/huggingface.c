/* Reads a Hugging Face config.json as a model. Keys and their defaults are those of each
 * architecture's configuration class in the transformers library. */
#include <jansson.h>
#include <string.h>

#include "cost/model.h"
#include "inflight/regular_file.h"

/* The first error is kept; reads after it do nothing. */
struct reader {
    const json_t *root;
    const char *path;
    struct ifl_error *error;
    int code;
};

enum { REQUIRED = -1, MAX_CONFIG_BYTES = 1 << 20 };

/* The value of a key; NULL if it is missing or null. */
static const json_t *value_of(const struct reader *reader, const char *key)
{
    const json_t *value = json_object_get(reader->root, key);
    return json_is_null(value) ? NULL : value;
}

/* The value as JSON, on one line, cut to the buffer. */
static const char *shown(const json_t *value, char text[64])
{
    memset(text, 0, 64);
    json_dumpb(value, text, 63, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    return *text ? text : "too long";
}

static void fail_value(struct reader *reader, const char *key, const json_t *value,
                       const char *expected)
{
    char found[64];
    reader->code = ifl_fail_at(reader->error, reader->path, 0, 0, "%s is %s, expected %s", key,
                               value ? shown(value, found) : "missing", expected);
}

static int32_t count_of(struct reader *reader, const char *key, int32_t otherwise, int32_t max)
{
    const json_t *value = value_of(reader, key);
    char expected[64];
    if (reader->code || (!value && otherwise != REQUIRED))
        return otherwise;
    const json_int_t count = json_integer_value(value);
    if (json_is_integer(value) && count >= 1 && count <= max)
        return (int32_t)count;
    snprintf(expected, sizeof expected, "a whole number from 1 to %d", max);
    fail_value(reader, key, value, expected);
    return 0;
}

static bool flag_of(struct reader *reader, const char *key, bool otherwise)
{
    const json_t *value = value_of(reader, key);
    if (reader->code || !value)
        return otherwise;
    if (!json_is_boolean(value))
        fail_value(reader, key, value, "true or false");
    return json_is_true(value);
}

static const char *text_of(const struct reader *reader, const char *key)
{
    return json_string_value(value_of(reader, key));
}

static void refuse(struct reader *reader, const char *what, const char *expected)
{
    if (!reader->code)
        reader->code =
            ifl_fail_at(reader->error, reader->path, 0, 0, "%s, expected %s", what, expected);
}

/* ---- one function an architecture ---- */

/* Values of keys that a file leaves out, from its configuration class; 0: derived from the rest. */
struct missing {
    int32_t n_kv_heads, d_head;
};

/* A count of heads or their width. A missing key gives `missing`; null gives 0, which
 * model_complete derives: as many as query heads, or d_model / n_q_heads. */
static int32_t heads_of(struct reader *reader, const char *key, int32_t missing, int32_t max)
{
    return count_of(reader, key, json_object_get(reader->root, key) ? 0 : missing, max);
}

static void read_shape(struct reader *reader, struct model *model, struct missing missing)
{
    model->layers = count_of(reader, "num_hidden_layers", REQUIRED, MODEL_MAX_LAYERS);
    model->d_model = count_of(reader, "hidden_size", REQUIRED, MODEL_MAX_D_MODEL);
    model->n_q_heads = count_of(reader, "num_attention_heads", REQUIRED, MODEL_MAX_HEADS);
    model->n_kv_heads =
        heads_of(reader, "num_key_value_heads", missing.n_kv_heads, MODEL_MAX_HEADS);
    model->d_head = heads_of(reader, "head_dim", missing.d_head, MODEL_MAX_D_HEAD);
    model->d_ffn = count_of(reader, "intermediate_size", REQUIRED, MODEL_MAX_D_FFN);
    model->vocab = count_of(reader, "vocab_size", REQUIRED, MODEL_MAX_VOCAB);
    model->max_model_len = count_of(reader, "max_position_embeddings", REQUIRED, MODEL_MAX_LEN);
    model->tied_embeddings = flag_of(reader, "tie_word_embeddings", false);
}

static void read_llama(struct reader *reader, struct model *model)
{
    read_shape(reader, model, (struct missing){0, 0});
    if (flag_of(reader, "attention_bias", false))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
    model->mlp_bias = flag_of(reader, "mlp_bias", false);
}

/* The attention window of any layer: `missing` without a key; none if the key is null. */
static void read_window(struct reader *reader, struct model *model, int32_t missing)
{
    const json_t *types = value_of(reader, "layer_types"), *type;
    const bool is_there = json_object_get(reader->root, "sliding_window") != NULL;
    bool all_full = json_array_size(types) > 0;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)types, i, type)
    {
        const char *text = json_string_value(type);
        all_full = all_full && text && strcmp(text, "full_attention") == 0;
    }
    const int32_t window_tokens =
        count_of(reader, "sliding_window", is_there ? 0 : missing, MODEL_MAX_LEN);
    model->window_tokens = all_full ? 0 : window_tokens;
}

static void read_mistral(struct reader *reader, struct model *model)
{
    read_shape(reader, model, (struct missing){8, 0});
    read_window(reader, model, 4096);
}

static void read_phi3(struct reader *reader, struct model *model)
{
    read_shape(reader, model, (struct missing){0, 0});
    read_window(reader, model, 0);
}

/* Qwen applies the window in the layers behind the first max_window_layers. */
static void read_qwen_window(struct reader *reader, struct model *model)
{
    const json_t *first = value_of(reader, "max_window_layers");
    const bool has_list = value_of(reader, "layer_types") != NULL;
    if (!flag_of(reader, "use_sliding_window", false))
        return;
    if (has_list || (first ? json_integer_value(first) : 28) < model->layers)
        read_window(reader, model, 4096);
}

static void read_qwen2(struct reader *reader, struct model *model)
{
    read_shape(reader, model, (struct missing){32, 0});
    read_qwen_window(reader, model);
    model->attention_bias = MODEL_BIAS_QKV;
}

static void read_qwen3_with(struct reader *reader, struct model *model, struct missing missing)
{
    read_shape(reader, model, missing);
    if (flag_of(reader, "attention_bias", false))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
    model->qk_norm = true;
}

static void read_qwen3(struct reader *reader, struct model *model)
{
    read_qwen3_with(reader, model, (struct missing){32, 128});
    read_qwen_window(reader, model);
}

static void read_mixtral(struct reader *reader, struct model *model)
{
    read_shape(reader, model, (struct missing){8, 0});
    read_window(reader, model, 0);
    model->n_experts = count_of(reader, "num_local_experts", 8, MODEL_MAX_EXPERTS);
    model->experts_per_token = count_of(reader, "num_experts_per_tok", 2, MODEL_MAX_EXPERTS);
}

static void read_qwen3_moe(struct reader *reader, struct model *model)
{
    read_qwen3_with(reader, model, (struct missing){4, 0});
    if (flag_of(reader, "use_sliding_window", false))
        read_window(reader, model, 4096);
    model->n_experts = count_of(reader, "num_experts", 128, MODEL_MAX_EXPERTS);
    model->experts_per_token = count_of(reader, "num_experts_per_tok", 8, MODEL_MAX_EXPERTS);
    model->d_ffn = count_of(reader, "moe_intermediate_size", 768, MODEL_MAX_D_FFN);
    if (count_of(reader, "decoder_sparse_step", 1, MODEL_MAX_LAYERS) != 1)
        refuse(reader, "decoder_sparse_step is not 1", "experts in every layer");
    if (json_array_size(value_of(reader, "mlp_only_layers")) > 0)
        refuse(reader, "mlp_only_layers names layers", "experts in every layer");
}

static void set_classic(struct model *model)
{
    model->mlp = MODEL_MLP_PLAIN;
    model->norm = MODEL_LAYERNORM;
    model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
    model->mlp_bias = true;
}

/* OPT's table of positions has two rows more than there are positions, since padding shifts them.
 */
static void read_opt(struct reader *reader, struct model *model)
{
    set_classic(model);
    model->layers = count_of(reader, "num_hidden_layers", REQUIRED, MODEL_MAX_LAYERS);
    model->d_model = count_of(reader, "hidden_size", REQUIRED, MODEL_MAX_D_MODEL);
    model->n_q_heads = count_of(reader, "num_attention_heads", REQUIRED, MODEL_MAX_HEADS);
    model->d_ffn = count_of(reader, "ffn_dim", REQUIRED, MODEL_MAX_D_FFN);
    model->vocab = count_of(reader, "vocab_size", REQUIRED, MODEL_MAX_VOCAB);
    model->max_model_len = count_of(reader, "max_position_embeddings", REQUIRED, MODEL_MAX_LEN);
    model->learned_positions = model->max_model_len + 2;
    model->tied_embeddings = flag_of(reader, "tie_word_embeddings", true);
    if (count_of(reader, "word_embed_proj_dim", model->d_model, MODEL_MAX_D_MODEL) !=
        model->d_model)
        refuse(reader, "word_embed_proj_dim differs from hidden_size", "the same number");
    if (!flag_of(reader, "do_layer_norm_before", true))
        refuse(reader, "do_layer_norm_before is false", "true");
    if (!flag_of(reader, "enable_bias", true))
        refuse(reader, "enable_bias is false", "true");
}

/* Older checkpoints have n_embed and num_attention_heads in place of hidden_size and n_head. */
static void read_bloom(struct reader *reader, struct model *model)
{
    set_classic(model);
    model->layers = count_of(reader, value_of(reader, "n_layer") ? "n_layer" : "num_hidden_layers",
                             REQUIRED, MODEL_MAX_LAYERS);
    model->d_model = count_of(reader, value_of(reader, "n_embed") ? "n_embed" : "hidden_size",
                              REQUIRED, MODEL_MAX_D_MODEL);
    model->n_q_heads =
        count_of(reader, value_of(reader, "n_head") ? "n_head" : "num_attention_heads", REQUIRED,
                 MODEL_MAX_HEADS);
    model->d_ffn = 4 * model->d_model;
    model->vocab = count_of(reader, "vocab_size", REQUIRED, MODEL_MAX_VOCAB);
    model->max_model_len = count_of(reader, "seq_length", 2048, MODEL_MAX_LEN);
    model->embedding_norm = true;
    model->tied_embeddings = flag_of(reader, "tie_word_embeddings", true);
}

static void read_gpt2(struct reader *reader, struct model *model)
{
    set_classic(model);
    model->layers = count_of(reader, "n_layer", REQUIRED, MODEL_MAX_LAYERS);
    model->d_model = count_of(reader, "n_embd", REQUIRED, MODEL_MAX_D_MODEL);
    model->n_q_heads = count_of(reader, "n_head", REQUIRED, MODEL_MAX_HEADS);
    model->d_ffn = count_of(reader, "n_inner", 4 * model->d_model, MODEL_MAX_D_FFN);
    model->vocab = count_of(reader, "vocab_size", REQUIRED, MODEL_MAX_VOCAB);
    model->max_model_len = count_of(reader, "n_positions", REQUIRED, MODEL_MAX_LEN);
    model->learned_positions = model->max_model_len;
    model->tied_embeddings = flag_of(reader, "tie_word_embeddings", true);
}

static const struct architecture {
    const char *model_type;
    void (*read)(struct reader *, struct model *);
} architectures[] = {
    {"llama", read_llama},         {"mistral", read_mistral}, {"phi3", read_phi3},
    {"qwen2", read_qwen2},         {"qwen3", read_qwen3},     {"opt", read_opt},
    {"bloom", read_bloom},         {"gpt2", read_gpt2},       {"mixtral", read_mixtral},
    {"qwen3_moe", read_qwen3_moe},
};

static const struct architecture *architecture_of(struct reader *reader)
{
    const size_t n = sizeof architectures / sizeof *architectures;
    const char *type = text_of(reader, "model_type");
    for (size_t i = 0; type && i < n; i++)
        if (strcmp(architectures[i].model_type, type) == 0)
            return &architectures[i];

    char supported[128] = "one of ";
    for (size_t i = 0, at = strlen(supported); i < n; i++)
        at += (size_t)snprintf(supported + at, sizeof supported - at, "%s%s", i ? ", " : "",
                               architectures[i].model_type);
    fail_value(reader, "model_type", value_of(reader, "model_type"), supported);
    return NULL;
}

/* The key is torch_dtype in older files, dtype in newer ones. */
static int32_t element_bytes(struct reader *reader)
{
    const char *key = value_of(reader, "torch_dtype") ? "torch_dtype" : "dtype";
    const char *type = text_of(reader, key);
    if (!value_of(reader, key))
        return 2;
    if (type && strcmp(type, "float32") == 0)
        return 4;
    if ((!type || (strcmp(type, "float16") != 0 && strcmp(type, "bfloat16") != 0)) && !reader->code)
        fail_value(reader, key, value_of(reader, key), "float16, bfloat16 or float32");
    return 2;
}

static void read_object(struct reader *reader, struct model *model)
{
    if (!json_is_object(reader->root))
        refuse(reader, "the document is no JSON object", "a model's configuration");
    if (reader->code)
        return;
    const struct architecture *architecture = architecture_of(reader);
    if (!architecture)
        return;
    architecture->read(reader, model);
    model->weight_bytes = model->kv_bytes = element_bytes(reader);
    if (value_of(reader, "quantization_config"))
        refuse(reader, "quantization_config is set", "a checkpoint that is not quantised");
    snprintf(model->about, sizeof model->about, "Hugging Face config, model_type %s",
             architecture->model_type);
}

static json_t *read_document(const char *path, struct ifl_error *error)
{
    json_error_t found;
    const int fd = ifl_open_regular(path, MAX_CONFIG_BYTES, "a JSON object", NULL, error);
    if (fd < 0)
        return NULL;
    json_t *root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &found);
    close(fd);
    if (!root)
        ifl_fail_at(error, path, found.line > 0 ? found.line : 0, found.line > 0 ? found.column : 0,
                    "%.160s, expected a JSON object", found.text);
    return root;
}

int model_read_huggingface(const char *path, struct model *model, struct ifl_error *error)
{
    json_t *root = read_document(path, error);
    if (!root)
        return error->code;
    struct reader reader = {.root = root, .path = path, .error = error};
    read_object(&reader, model);
    json_decref(root);
    if (reader.code)
        return reader.code;
    struct ifl_error reason;
    if (model_complete(model, &reason))
        return ifl_fail_at(error, path, 0, 0, "%s", reason.text);
    return 0;
}
