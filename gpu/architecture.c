#include "architecture.h"

#include <jansson.h>
#include <string.h>

enum {
    MAX_LAYERS = 1000,
    MAX_HEADS = 4096,
    MAX_D_HEAD = 4096,
    MAX_D_MODEL = 1 << 20,
    MAX_D_FFN = 1 << 22,
    MAX_VOCAB = 1 << 24,
    MAX_TOKENS = 1 << 28,
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

/* ---- rotary positions ---- */

/* Older files call it so. */
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

static void read_rope(struct reader *reader, struct architecture *a)
{
    const json_t *parameters = value_in(reader->root, "rope_parameters");
    const json_t *scaling = value_in(reader->root, "rope_scaling");
    if (parameters && !json_is_object(parameters))
        fail(reader, "rope_parameters", parameters, "an object");
    if (scaling && !json_is_object(scaling))
        fail(reader, "rope_scaling", scaling, "an object or null");
    const json_t *theta_in =
        parameters && value_in(parameters, "rope_theta") ? parameters : reader->root;
    a->rope_theta = real_in(reader, theta_in, "rope_theta", 10000);
    read_scaling(reader, parameters ? parameters : scaling, &a->scaling);
}

/* ---- one function an architecture ---- */

static void read_llama(struct reader *reader, struct architecture *a)
{
    a->model.qkv_bias = a->model.out_bias = flag_of(reader, "attention_bias", false);
    a->model.mlp_bias = flag_of(reader, "mlp_bias", false);
}

static void read_mistral(struct reader *reader, struct architecture *a)
{
    a->window_tokens = count_of(reader, "sliding_window", 0, MAX_TOKENS);
}

static void read_window(struct reader *reader, struct architecture *a)
{
    if (flag_of(reader, "use_sliding_window", false))
        fail(reader, "use_sliding_window", value_in(reader->root, "use_sliding_window"),
             "false: windows in some layers only are not supported");
    a->window_tokens = 0;
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

static read_fn *reader_of(struct reader *reader)
{
    static const struct {
        const char *model_type;
        read_fn *read;
    } known[] = {{"llama", read_llama},
                 {"mistral", read_mistral},
                 {"qwen2", read_qwen2},
                 {"qwen3", read_qwen3}};
    const char *type = text_in(reader->root, "model_type");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].model_type, type) == 0)
            return known[i].read;
    fail(reader, "model_type", value_in(reader->root, "model_type"),
         "one of llama, mistral, qwen2, qwen3");
    return NULL;
}

static void read_shape(struct reader *reader, struct ifl_engine_model *m)
{
    const char *act = text_in(reader->root, "hidden_act");
    m->n_layers = count_of(reader, "num_hidden_layers", REQUIRED, MAX_LAYERS);
    m->d_model = count_of(reader, "hidden_size", REQUIRED, MAX_D_MODEL);
    m->n_q_heads = count_of(reader, "num_attention_heads", REQUIRED, MAX_HEADS);
    m->n_kv_heads = count_of(reader, "num_key_value_heads", m->n_q_heads, MAX_HEADS);
    m->d_head =
        count_of(reader, "head_dim", m->n_q_heads ? m->d_model / m->n_q_heads : 0, MAX_D_HEAD);
    m->d_ffn = count_of(reader, "intermediate_size", REQUIRED, MAX_D_FFN);
    m->n_vocab = count_of(reader, "vocab_size", REQUIRED, MAX_VOCAB);
    m->tied_embeddings = flag_of(reader, "tie_word_embeddings", false);
    if (*act && strcmp(act, "silu") != 0)
        fail(reader, "hidden_act", value_in(reader->root, "hidden_act"), "\"silu\"");
}

static void read_all(struct reader *reader, struct architecture *a)
{
    if (!json_is_object(reader->root)) {
        fail(reader, "the document", reader->root, "an object");
        return;
    }
    read_fn *read = reader_of(reader);
    if (!read)
        return;
    read_shape(reader, &a->model);
    a->norm_epsilon = real_in(reader, reader->root, "rms_norm_eps", 1e-6);
    read_rope(reader, a);
    read(reader, a);
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
    json_error_t found;
    *architecture = (struct architecture){0};
    snprintf(reader.path, sizeof reader.path, "%s/config.json", dir);
    json_t *root = json_load_file(reader.path, JSON_REJECT_DUPLICATES, &found);
    if (!root)
        return ifl_fail_at(error, reader.path, found.line > 0 ? found.line : 0,
                           found.line > 0 ? found.column : 0, "%.160s, expected a JSON object",
                           found.text);
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
