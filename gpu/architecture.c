#include "architecture.h"

#include <jansson.h>
#include <string.h>

#include "inflight/huggingface.h"

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
    if (!within(m->n_layers, IFL_MODEL_MAX_LAYERS) || !within(m->d_model, IFL_MODEL_MAX_D_MODEL) ||
        !within(m->n_q_heads, IFL_MODEL_MAX_HEADS) || !within(m->n_kv_heads, IFL_MODEL_MAX_HEADS) ||
        !within(m->d_head, IFL_MODEL_MAX_D_HEAD) || !within(m->d_ffn, IFL_MODEL_MAX_D_FFN) ||
        !within(m->n_vocab, IFL_MODEL_MAX_VOCAB))
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

/* ---- reading ---- */

/* otherwise 0: the key is required. */
static double real_in(struct ifl_hf_config *config, const json_t *object, const char *key,
                      double otherwise)
{
    const json_t *value = ifl_hf_value(object, key);
    if (!value && otherwise > 0)
        return otherwise;
    const double real = json_number_value(value);
    if (!(real > 0) || real > 1e12)
        ifl_hf_fail(config, key, value, "a number above 0");
    return real;
}

/* ---- windows of attention ---- */

/* Engines have one window for all layers. */
static void set_window(struct ifl_hf_config *config, const struct ifl_hf_decoder *decoder,
                       struct architecture *a)
{
    const int32_t n = decoder->n_window_layers;
    const json_t *types = ifl_hf_value(config->root, "layer_types");
    const char *key = types ? "layer_types" : "max_window_layers";
    a->window_tokens = n > 0 ? decoder->window_tokens : 0;
    if (n > 0 && decoder->window_tokens == 0)
        ifl_hf_fail(config, key, ifl_hf_value(config->root, key),
                    "full_attention where no window is set");
    else if (n > 0 && n < a->model.n_layers)
        ifl_hf_fail(config, key, ifl_hf_value(config->root, key),
                    "a window in all layers or in none: in some only it is not supported");
}

/* ---- rotary positions ---- */

/* Older files name the key "type". */
static const char *rope_type_key(const json_t *rope)
{
    return ifl_hf_value(rope, "rope_type") ? "rope_type" : "type";
}

static void read_scaling(struct ifl_hf_config *config, const json_t *rope,
                         struct rope_scaling *scaling)
{
    const char *key = rope_type_key(rope), *type = ifl_hf_text(rope, key);
    if (!ifl_hf_value(rope, key) || strcmp(type, "default") == 0)
        return;
    if (strcmp(type, "llama3") != 0) {
        ifl_hf_fail(config, key, ifl_hf_value(rope, key), "\"default\" or \"llama3\"");
        return;
    }
    scaling->factor = real_in(config, rope, "factor", 0);
    scaling->low_freq_factor = real_in(config, rope, "low_freq_factor", 0);
    scaling->high_freq_factor = real_in(config, rope, "high_freq_factor", 0);
    scaling->original_tokens = real_in(config, rope, "original_max_position_embeddings", 0);
    if (scaling->high_freq_factor <= scaling->low_freq_factor)
        ifl_hf_fail(config, "high_freq_factor", ifl_hf_value(rope, "high_freq_factor"),
                    "more than low_freq_factor");
}

static const json_t *rope_object(struct ifl_hf_config *config, const char *key)
{
    const json_t *rope = ifl_hf_value(config->root, key), *value;
    const char *name;
    if (rope && !json_is_object(rope))
        ifl_hf_fail(config, key, rope, "an object or null");
    json_object_foreach((json_t *)(uintptr_t)rope, name, value) if (json_is_object(value))
        ifl_hf_fail(config, key, rope, "one set of parameters for all layers");
    return json_object_size(rope) > 0 ? rope : NULL;
}

static void expect_whole_heads(struct ifl_hf_config *config, const json_t *rope)
{
    const json_t *part = ifl_hf_value(rope, "partial_rotary_factor");
    if (part && json_number_value(part) != 1)
        ifl_hf_fail(config, "partial_rotary_factor", part, "1: heads are turned as a whole");
}

/* In transformers 5 (PreTrainedConfig.convert_rope_params_to_dict) a rope_scaling that is not empty
 * takes the place of rope_parameters as a whole, and its own rope_theta goes before the root's.
 * Version 4 has rope_scaling and the root's rope_theta alone. */
static void read_rope(struct ifl_hf_config *config, struct architecture *a)
{
    const json_t *parameters = rope_object(config, "rope_parameters");
    const json_t *scaling = rope_object(config, "rope_scaling");
    const json_t *rope = scaling ? scaling : parameters;
    const json_t *theta_in = ifl_hf_value(rope, "rope_theta") ? rope : config->root;
    a->rope_theta = real_in(config, theta_in, "rope_theta", 10000);
    expect_whole_heads(config, config->root);
    expect_whole_heads(config, rope);
    if (rope)
        read_scaling(config, rope, &a->scaling);
}

/* ---- all of it ---- */

static bool is_known(struct ifl_hf_config *config)
{
    static const char *const known[] = {"llama", "mistral", "qwen2", "qwen3"};
    const char *type = ifl_hf_text(config->root, "model_type");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], type) == 0)
            return true;
    ifl_hf_fail(config, "model_type", ifl_hf_value(config->root, "model_type"),
                "one of llama, mistral, qwen2, qwen3");
    return false;
}

static void read_activation(struct ifl_hf_config *config)
{
    const json_t *act = json_object_get(config->root, "hidden_act");
    const char *name = json_string_value(act);
    if (act && (!name || (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)))
        ifl_hf_fail(config, "hidden_act", act, "\"silu\" or \"swish\", which is the same");
}

/* Heads that follow from the other shapes. */
static void derive_heads(struct ifl_engine_model *m)
{
    if (m->n_kv_heads == 0)
        m->n_kv_heads = m->n_q_heads;
    if (m->d_head == 0 && m->n_q_heads > 0)
        m->d_head = m->d_model / m->n_q_heads;
}

static void read_all(struct ifl_hf_config *config, struct architecture *a)
{
    struct ifl_hf_decoder decoder;
    if (!is_known(config))
        return;
    ifl_hf_read_decoder(config, &decoder);
    a->model = decoder.model;
    derive_heads(&a->model);
    read_activation(config);
    a->norm_epsilon = real_in(config, config->root, "rms_norm_eps", 1e-6);
    read_rope(config, a);
    set_window(config, &decoder, a);
    if (ifl_hf_value(config->root, "quantization_config"))
        ifl_hf_fail(config, "quantization_config",
                    ifl_hf_value(config->root, "quantization_config"),
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
    char path[512];
    struct ifl_hf_config config;
    *architecture = (struct architecture){0};
    snprintf(path, sizeof path, "%s/config.json", dir);
    if (ifl_hf_open(path, &config, error) == 0)
        read_all(&config, architecture);
    ifl_hf_close(&config);
    if (config.code)
        return config.code;
    struct ifl_error reason;
    if (architecture_check(&architecture->model, &reason) < 0)
        return ifl_fail_at(error, path, 0, 0, "%s", reason.text);
    return model ? agree(path, &architecture->model, model, error) : 0;
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
