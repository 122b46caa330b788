#include "architecture.h"

#include <string.h>

#include "json_file.h"

enum {
    MAX_LAYERS = 1000,
    MAX_HEADS = 4096,
    MAX_D_HEAD = 4096,
    MAX_D_MODEL = 1 << 20,
    MAX_D_FFN = 1 << 22,
    MAX_VOCAB = 1 << 24,
    MAX_TOKENS = 1 << 28,
    MAX_CONFIG_BYTES = 1 << 20,
};

void architecture_default(const struct ifl_engine_model *model, struct architecture *architecture)
{
    *architecture =
        (struct architecture){.model = *model, .norm_epsilon = 1e-5, .rope_theta = 10000};
}

/* ---- shapes ---- */

static bool within(int32_t count, int32_t max)
{
    return count >= 1 && count <= max;
}

int architecture_check(const struct ifl_engine_model *m, struct ifl_error *error)
{
    if (!within(m->n_layers, MAX_LAYERS) || !within(m->d_model, MAX_D_MODEL) ||
        !within(m->n_q_heads, MAX_HEADS) || !within(m->n_kv_heads, MAX_HEADS) ||
        !within(m->d_head, MAX_D_HEAD) || !within(m->d_ffn, MAX_D_FFN) ||
        !within(m->n_vocab, MAX_VOCAB))
        return ifl_fail(error, IFL_E_INPUT,
                        "the model has %d layers, d_model %d, %d query heads, %d KV heads, d_head "
                        "%d, d_ffn %d, vocabulary %d, expected at least 1 and no more than any "
                        "engine could hold",
                        m->n_layers, m->d_model, m->n_q_heads, m->n_kv_heads, m->d_head, m->d_ffn,
                        m->n_vocab);
    if (m->n_q_heads % m->n_kv_heads != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "the model has %d KV heads, expected a divisor of its %d query heads",
                        m->n_kv_heads, m->n_q_heads);
    if (m->d_head % 2 != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "the model has d_head %d, expected an even number: rotary positions turn "
                        "pairs",
                        m->d_head);
    return 0;
}

/* ---- reading; errors stick: after the first, reads do nothing ---- */

struct reader {
    const json_t *root;
    char path[512];
    struct ifl_error *error;
    int code;
};

enum { REQUIRED = -1 };

/* NULL where the key is missing or null. */
static const json_t *value_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static void fail(struct reader *reader, const char *key, const json_t *value, const char *expected)
{
    char found[64] = {0};
    if (reader->code)
        return;
    json_dumpb(value, found, sizeof found - 1, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    reader->code = ifl_fail_at(reader->error, reader->path, 0, 0, "%s is %s, expected %s", key,
                               !value   ? "missing"
                               : *found ? found
                                        : "too long",
                               expected);
}

static int32_t count_of(struct reader *reader, const char *key, int32_t otherwise, int32_t max)
{
    const json_t *value = value_in(reader->root, key);
    char expected[64];
    if (reader->code || (!value && otherwise != REQUIRED))
        return otherwise;
    const json_int_t count = json_integer_value(value);
    if (json_is_integer(value) && count >= 1 && count <= max)
        return (int32_t)count;
    snprintf(expected, sizeof expected, "a whole number from 1 to %d", max);
    fail(reader, key, value, expected);
    return 0;
}

static bool flag_of(struct reader *reader, const char *key, bool otherwise)
{
    const json_t *value = value_in(reader->root, key);
    if (!value)
        return otherwise;
    if (!json_is_boolean(value))
        fail(reader, key, value, "true or false");
    return json_is_true(value);
}

/* otherwise 0: the key is required. */
static double real_in(struct reader *reader, const json_t *object, const char *key,
                      double otherwise)
{
    const json_t *value = value_in(object, key);
    if (!value && otherwise > 0)
        return otherwise;
    const double real = json_number_value(value);
    if (!(real > 0) || real > 1e12)
        fail(reader, key, value, "a number above 0");
    return real;
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(value_in(object, key));
    return text ? text : "";
}

/* ---- windows of attention ---- */

static const char FULL[] = "full_attention", SLIDING[] = "sliding_attention";

/* The number of layers that layer_types gives a window; `otherwise` if there is no layer_types. */
static int32_t count_windows(struct reader *reader, int32_t n_layers, int32_t otherwise)
{
    const json_t *types = value_in(reader->root, "layer_types");
    int32_t n = 0;
    if (!types)
        return otherwise;
    if (json_array_size(types) != (size_t)n_layers)
        fail(reader, "layer_types", types, "a list of num_hidden_layers types");
    for (size_t i = 0; i < json_array_size(types) && !reader->code; i++) {
        const json_t *type = json_array_get(types, i);
        const char *text = json_is_string(type) ? json_string_value(type) : "";
        n += strcmp(text, SLIDING) == 0;
        if (strcmp(text, SLIDING) != 0 && strcmp(text, FULL) != 0)
            fail(reader, "layer_types", type, "full_attention or sliding_attention");
    }
    return n;
}

/* Engines have one window for all layers. With window_tokens 0 the configuration sets no window,
 * and a layer that asks for one is an error. */
static void set_window(struct reader *reader, struct architecture *a, int32_t window_tokens,
                       int32_t n_windows)
{
    const json_t *types = value_in(reader->root, "layer_types");
    const char *key = types ? "layer_types" : "max_window_layers";
    a->window_tokens = n_windows > 0 ? window_tokens : 0;
    if (n_windows > 0 && window_tokens == 0)
        fail(reader, key, value_in(reader->root, key), "full_attention where no window is set");
    else if (n_windows > 0 && n_windows < a->model.n_layers)
        fail(reader, key, value_in(reader->root, key),
             "a window in all layers or in none: in some only it is not supported");
}

/* Missing: 4096, as in all configuration classes that have a window; null: none. */
static int32_t window_of(struct reader *reader)
{
    const bool is_null = json_is_null(json_object_get(reader->root, "sliding_window"));
    return is_null ? 0 : count_of(reader, "sliding_window", 4096, MAX_TOKENS);
}

/* ---- rotary positions ---- */

/* Older files name the key "type". */
static const char *rope_type_key(const json_t *rope)
{
    return value_in(rope, "rope_type") ? "rope_type" : "type";
}

static void read_scaling(struct reader *reader, const json_t *rope, struct rope_scaling *scaling)
{
    const char *key = rope_type_key(rope), *type = text_in(rope, key);
    if (!value_in(rope, key) || strcmp(type, "default") == 0)
        return;
    if (strcmp(type, "llama3") != 0) {
        fail(reader, key, value_in(rope, key), "\"default\" or \"llama3\"");
        return;
    }
    scaling->factor = real_in(reader, rope, "factor", 0);
    scaling->low_freq_factor = real_in(reader, rope, "low_freq_factor", 0);
    scaling->high_freq_factor = real_in(reader, rope, "high_freq_factor", 0);
    scaling->original_tokens = real_in(reader, rope, "original_max_position_embeddings", 0);
    if (scaling->high_freq_factor <= scaling->low_freq_factor)
        fail(reader, "high_freq_factor", value_in(rope, "high_freq_factor"),
             "more than low_freq_factor");
}

static const json_t *rope_object(struct reader *reader, const char *key)
{
    const json_t *rope = value_in(reader->root, key), *value;
    const char *name;
    if (rope && !json_is_object(rope))
        fail(reader, key, rope, "an object or null");
    json_object_foreach((json_t *)(uintptr_t)rope, name, value) if (json_is_object(value))
        fail(reader, key, rope, "one set of parameters for all layers");
    return json_object_size(rope) > 0 ? rope : NULL;
}

static void expect_whole_heads(struct reader *reader, const json_t *rope)
{
    const json_t *part = value_in(rope, "partial_rotary_factor");
    if (part && json_number_value(part) != 1)
        fail(reader, "partial_rotary_factor", part, "1: heads are turned as a whole");
}

/* In transformers 5 (PreTrainedConfig.convert_rope_params_to_dict) a rope_scaling that is not empty
 * takes the place of rope_parameters as a whole, and its own rope_theta goes before the root's.
 * Version 4 knows rope_scaling and the root's rope_theta alone. */
static void read_rope(struct reader *reader, struct architecture *a)
{
    const json_t *parameters = rope_object(reader, "rope_parameters");
    const json_t *scaling = rope_object(reader, "rope_scaling");
    const json_t *rope = scaling ? scaling : parameters;
    const json_t *theta_in = value_in(rope, "rope_theta") ? rope : reader->root;
    a->rope_theta = real_in(reader, theta_in, "rope_theta", 10000);
    expect_whole_heads(reader, reader->root);
    expect_whole_heads(reader, rope);
    if (rope)
        read_scaling(reader, rope, &a->scaling);
}

/* ---- one function an architecture ---- */

static void read_llama(struct reader *reader, struct architecture *a)
{
    a->model.qkv_bias = a->model.out_bias = flag_of(reader, "attention_bias", false);
    a->model.mlp_bias = flag_of(reader, "mlp_bias", false);
}

/* transformers' AutoConfig reads a Mistral with layer_types as a Ministral: each layer has a type.
 */
static void read_mistral(struct reader *reader, struct architecture *a)
{
    const int32_t window_tokens = window_of(reader), n_layers = a->model.n_layers;
    set_window(reader, a, window_tokens,
               count_windows(reader, n_layers, window_tokens > 0 ? n_layers : 0));
}

/* The number of layers with a window: those after the first max_window_layers. */
static int32_t layers_behind(struct reader *reader, int32_t n_layers)
{
    const json_t *value = value_in(reader->root, "max_window_layers");
    const json_int_t first = value ? json_integer_value(value) : 28;
    if (value && (!json_is_integer(value) || first < 0))
        fail(reader, "max_window_layers", value, "a whole number of layers");
    return first < n_layers ? n_layers - (int32_t)first : 0;
}

static void read_window(struct reader *reader, struct architecture *a)
{
    const bool uses = flag_of(reader, "use_sliding_window", false);
    const int32_t window_tokens = uses ? window_of(reader) : 0, n_layers = a->model.n_layers;
    set_window(
        reader, a, window_tokens,
        count_windows(reader, n_layers, window_tokens > 0 ? layers_behind(reader, n_layers) : 0));
}

static void read_qwen2(struct reader *reader, struct architecture *a)
{
    read_window(reader, a);
    a->model.qkv_bias = true;
}

static void read_qwen3(struct reader *reader, struct architecture *a)
{
    read_window(reader, a);
    a->model.qkv_bias = a->model.out_bias = flag_of(reader, "attention_bias", false);
    a->model.qk_norm = true;
}

typedef void read_fn(struct reader *, struct architecture *);

/* Keys that a file leaves out, as the configuration classes set them. */
static const struct known {
    const char *model_type;
    read_fn *read;
    int32_t n_kv_heads, d_head; /* 0: follow from the others */
} known[] = {{"llama", read_llama, 0, 0},
             {"mistral", read_mistral, 8, 0},
             {"qwen2", read_qwen2, 32, 0},
             {"qwen3", read_qwen3, 32, 128}};

static const struct known *known_of(struct reader *reader)
{
    const char *type = text_in(reader->root, "model_type");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].model_type, type) == 0)
            return &known[i];
    fail(reader, "model_type", value_in(reader->root, "model_type"),
         "one of llama, mistral, qwen2, qwen3");
    return NULL;
}

/* `missing` where the key is not there and is not 0, `derived` where it is null. */
static int32_t heads_of(struct reader *reader, const char *key, int32_t missing, int32_t derived,
                        int32_t max)
{
    const bool is_there = json_object_get(reader->root, key) != NULL;
    return count_of(reader, key, is_there || missing == 0 ? derived : missing, max);
}

static void read_activation(struct reader *reader)
{
    const json_t *act = json_object_get(reader->root, "hidden_act");
    const char *name = json_string_value(act);
    if (act && (!name || (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)))
        fail(reader, "hidden_act", act, "\"silu\" or \"swish\", which is the same");
}

static void read_shape(struct reader *reader, const struct known *is, struct ifl_engine_model *m)
{
    m->n_layers = count_of(reader, "num_hidden_layers", REQUIRED, MAX_LAYERS);
    m->d_model = count_of(reader, "hidden_size", REQUIRED, MAX_D_MODEL);
    m->n_q_heads = count_of(reader, "num_attention_heads", REQUIRED, MAX_HEADS);
    m->n_kv_heads =
        heads_of(reader, "num_key_value_heads", is->n_kv_heads, m->n_q_heads, MAX_HEADS);
    const int32_t d_head = m->n_q_heads > 0 ? m->d_model / m->n_q_heads : 0;
    m->d_head = heads_of(reader, "head_dim", is->d_head, d_head, MAX_D_HEAD);
    m->d_ffn = count_of(reader, "intermediate_size", REQUIRED, MAX_D_FFN);
    m->n_vocab = count_of(reader, "vocab_size", REQUIRED, MAX_VOCAB);
    m->tied_embeddings = flag_of(reader, "tie_word_embeddings", false);
    read_activation(reader);
}

static void read_all(struct reader *reader, struct architecture *a)
{
    if (!json_is_object(reader->root)) {
        fail(reader, "the document", reader->root, "an object");
        return;
    }
    const struct known *is = known_of(reader);
    if (!is)
        return;
    read_shape(reader, is, &a->model);
    a->norm_epsilon = real_in(reader, reader->root, "rms_norm_eps", 1e-6);
    read_rope(reader, a);
    is->read(reader, a);
    if (value_in(reader->root, "quantization_config"))
        fail(reader, "quantization_config", value_in(reader->root, "quantization_config"),
             "a checkpoint that is not quantised");
}

/* ---- two descriptions of one model ---- */

static int disagree(const char *path, const char *what, int32_t found, int32_t expected,
                    struct ifl_error *error)
{
    return ifl_fail_at(error, path, 0, 0, "%s is %d, expected %d as the configured model has it",
                       what, found, expected);
}

static int agree(const char *path, const struct ifl_engine_model *is,
                 const struct ifl_engine_model *want, struct ifl_error *error)
{
    const struct {
        const char *what;
        int32_t is, want;
    } pairs[] = {
        {"num_hidden_layers", is->n_layers, want->n_layers},
        {"hidden_size", is->d_model, want->d_model},
        {"num_attention_heads", is->n_q_heads, want->n_q_heads},
        {"num_key_value_heads", is->n_kv_heads, want->n_kv_heads},
        {"head_dim", is->d_head, want->d_head},
        {"intermediate_size", is->d_ffn, want->d_ffn},
        {"vocab_size", is->n_vocab, want->n_vocab},
        {"a bias on query, key and value", is->qkv_bias, want->qkv_bias},
        {"a norm on queries and keys", is->qk_norm, want->qk_norm},
        {"tie_word_embeddings", is->tied_embeddings, want->tied_embeddings},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].is != pairs[i].want)
            return disagree(path, pairs[i].what, pairs[i].is, pairs[i].want, error);
    return 0;
}

int architecture_read(const char *dir, const struct ifl_engine_model *model,
                      struct architecture *architecture, struct ifl_error *error)
{
    struct reader reader = {.error = error};
    *architecture = (struct architecture){0};
    snprintf(reader.path, sizeof reader.path, "%s/config.json", dir);
    json_t *root = json_file_read(reader.path, MAX_CONFIG_BYTES, error);
    if (!root)
        return error->code;
    reader.root = root;
    read_all(&reader, architecture);
    json_decref(root);
    if (reader.code)
        return reader.code;
    struct ifl_error reason;
    if (architecture_check(&architecture->model, &reason) < 0)
        return ifl_fail_at(error, reader.path, 0, 0, "%s", reason.text);
    return model ? agree(reader.path, &architecture->model, model, error) : 0;
}

int architecture_of(const struct ifl_engine_options *options, struct architecture *architecture,
                    struct ifl_error *error)
{
    if (options->weights_dir)
        return architecture_read(options->weights_dir, &options->model, architecture, error);
    architecture_default(&options->model, architecture);
    architecture->window_tokens = options->window_tokens;
    return 0;
}
