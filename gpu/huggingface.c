/* config.json and the index of shards; the contract is in inflight/huggingface.h. */
#include "inflight/huggingface.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inflight/regular_file.h"

enum { MAX_CONFIG_BYTES = 8 << 20 }; /* lists of quantised modules may take 3 MiB */

/* Python's json writes Infinity and NaN, which no JSON has
 * (https://docs.python.org/3/library/json.html#infinite-and-nan-number-values), such as in Mamba's
 * time_step_limit, which says nothing here. Outside of strings they become 0, in as many
 * characters. */
static void put_zeros(char *text, size_t n)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        for (size_t k = 0; !quoted && k < sizeof words / sizeof *words; k++) {
            const size_t n_word = strlen(words[k]);
            if (n - i >= n_word && memcmp(text + i, words[k], n_word) == 0) {
                memset(text + i, ' ', n_word);
                text[i] = '0';
            }
        }
    }
}

/* The text of the file, which the caller frees, and its length; NULL if it cannot be read. */
static char *read_text(int fd, int64_t max_bytes, size_t *n)
{
    char *text = malloc((size_t)max_bytes + 1);
    ssize_t n_read = 1;
    *n = 0;
    while (text && n_read > 0 && *n < (size_t)max_bytes + 1) {
        n_read = read(fd, text + *n, (size_t)max_bytes + 1 - *n);
        *n += n_read > 0 ? (size_t)n_read : 0;
    }
    if (n_read >= 0)
        return text;
    free(text);
    return NULL;
}

json_t *ifl_hf_document(const char *path, int64_t max_bytes, struct ifl_error *error)
{
    json_error_t found;
    size_t n;
    const int fd = ifl_open_regular(path, max_bytes, "a JSON object", NULL, error);
    if (fd < 0)
        return NULL;
    char *text = read_text(fd, max_bytes, &n);
    close(fd);
    if (!text) {
        ifl_fail_at(error, path, 0, 0, "cannot be read, expected a JSON object");
        return NULL;
    }
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &found);
    if (!root) {
        put_zeros(text, n);
        root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    }
    free(text);
    if (!root && json_error_code(&found) == json_error_out_of_memory)
        ifl_fail_nomem(error);
    else if (!root)
        ifl_fail_at(error, path, found.line > 0 ? found.line : 0, found.line > 0 ? found.column : 0,
                    "%.160s, expected a JSON object", found.text);
    return root;
}

int ifl_hf_open(const char *path, struct ifl_hf_config *config, struct ifl_error *error)
{
    *config = (struct ifl_hf_config){.path = path, .error = error};
    config->root = ifl_hf_document(path, MAX_CONFIG_BYTES, error);
    if (!config->root)
        config->code = error->code;
    else if (!json_is_object(config->root))
        config->code = ifl_fail_at(error, path, 0, 0,
                                   "the document is no JSON object, expected a model's "
                                   "configuration");
    return config->code;
}

void ifl_hf_close(struct ifl_hf_config *config)
{
    json_decref(config->root);
    config->root = NULL;
}

/* ---- keys ---- */

const json_t *ifl_hf_value(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* The value as JSON, on one line, cut to the buffer. */
static const char *shown(const json_t *value, char text[64])
{
    memset(text, 0, 64);
    json_dumpb(value, text, 63, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    return *text ? text : "too long";
}

void ifl_hf_fail(struct ifl_hf_config *config, const char *key, const json_t *value,
                 const char *expected)
{
    char found[64];
    if (!config->code)
        config->code = ifl_fail_at(config->error, config->path, 0, 0, "%s is %s, expected %s", key,
                                   value ? shown(value, found) : "missing", expected);
}

int32_t ifl_hf_count(struct ifl_hf_config *config, const char *key, int32_t otherwise, int32_t max)
{
    const json_t *value = ifl_hf_value(config->root, key);
    char expected[64];
    if (config->code || (!value && otherwise != IFL_HF_REQUIRED))
        return otherwise;
    const json_int_t count = json_integer_value(value);
    if (json_is_integer(value) && count >= 1 && count <= max)
        return (int32_t)count;
    snprintf(expected, sizeof expected, "a whole number from 1 to %d", max);
    ifl_hf_fail(config, key, value, expected);
    return 0;
}

bool ifl_hf_flag(struct ifl_hf_config *config, const char *key, bool otherwise)
{
    const json_t *value = ifl_hf_value(config->root, key);
    if (config->code || !value)
        return otherwise;
    if (!json_is_boolean(value))
        ifl_hf_fail(config, key, value, "true or false");
    return json_is_true(value);
}

const char *ifl_hf_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(ifl_hf_value(object, key));
    return text ? text : "";
}

/* ---- types of layers ---- */

static const char FULL[] = "full_attention", LINEAR[] = "linear_attention";

/* Empty for an entry that is no text. */
static const char *type_of(const json_t *entry)
{
    const char *text = json_is_string(entry) ? json_string_value(entry) : "";
    if (strcmp(text, "attention") == 0)
        return FULL;
    return strcmp(text, "mamba") == 0 ? LINEAR : text;
}

static int check_types(struct ifl_hf_config *config, const json_t *types, int32_t n_layers)
{
    if (!json_is_array(types))
        ifl_hf_fail(config, "layer_types", types, "a list of num_hidden_layers types");
    else if (json_array_size(types) != (size_t)n_layers)
        config->code = ifl_fail_at(config->error, config->path, 0, 0,
                                   "layer_types has %zu types, expected %d (num_hidden_layers)",
                                   json_array_size(types), n_layers);
    return config->code;
}

int32_t ifl_hf_layers(struct ifl_hf_config *config, const char *other, int32_t n_layers,
                      int32_t otherwise)
{
    const json_t *types = ifl_hf_value(config->root, "layer_types");
    char key[32], expected[64];
    int32_t n = 0;
    if (config->code || !types)
        return otherwise;
    if (check_types(config, types, n_layers) < 0)
        return 0;
    for (int32_t i = 0; i < n_layers; i++) {
        const json_t *entry = json_array_get(types, (size_t)i);
        const bool is_other = strcmp(type_of(entry), other) == 0;
        n += is_other;
        if (is_other || strcmp(type_of(entry), FULL) == 0)
            continue;
        snprintf(key, sizeof key, "layer_types[%d]", i);
        snprintf(expected, sizeof expected, "%s or %s", FULL, other);
        ifl_hf_fail(config, key, entry, expected);
        return 0;
    }
    return n;
}

/* ---- decoders ---- */

enum biases { BIAS_NONE, BIAS_QKV, BIAS_AS_SAID }; /* as said: by attention_bias */

enum windows {
    WINDOW_NONE,
    WINDOW_SET,    /* by sliding_window, in all layers */
    WINDOW_USED,   /* where use_sliding_window says so, in all layers */
    WINDOW_BEHIND, /* likewise, in the layers behind the first max_window_layers */
};

/* With what the configuration class gives to keys that a file leaves out. */
static const struct kind {
    const char *model_type;
    int32_t n_kv_heads, d_head; /* 0: follow from the others */
    enum biases biases;
    bool mlp_bias; /* as said, by the key of that name */
    bool qk_norm;
    enum windows windows;
    int32_t window_tokens; /* 0: none */
} kinds[] = {
    {"llama", 0, 0, BIAS_AS_SAID, true, false, WINDOW_NONE, 0},
    {"mistral", 8, 0, BIAS_NONE, false, false, WINDOW_SET, 4096},
    {"mixtral", 8, 0, BIAS_NONE, false, false, WINDOW_SET, 0},
    {"phi3", 0, 0, BIAS_NONE, false, false, WINDOW_SET, 0},
    {"qwen2", 32, 0, BIAS_QKV, false, false, WINDOW_BEHIND, 4096},
    {"qwen3", 32, 128, BIAS_AS_SAID, false, true, WINDOW_BEHIND, 4096},
    {"qwen3_moe", 4, 0, BIAS_AS_SAID, false, true, WINDOW_USED, 4096},
};

static const struct kind *kind_of(const struct ifl_hf_config *config)
{
    const char *type = ifl_hf_text(config->root, "model_type");
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].model_type, type) != 0)
        i++;
    ifl_require(i < sizeof kinds / sizeof *kinds);
    return &kinds[i];
}

static bool has_key(const struct ifl_hf_config *config, const char *key)
{
    return json_object_get(config->root, key) != NULL;
}

/* A count of heads or their width: 0 where the key is null. */
static int32_t heads_of(struct ifl_hf_config *config, const char *key, int32_t missing, int32_t max)
{
    return ifl_hf_count(config, key, has_key(config, key) ? 0 : missing, max);
}

static void read_shape(struct ifl_hf_config *config, const struct kind *kind,
                       struct ifl_engine_model *m)
{
    m->n_layers = ifl_hf_count(config, "num_hidden_layers", IFL_HF_REQUIRED, IFL_MODEL_MAX_LAYERS);
    m->d_model = ifl_hf_count(config, "hidden_size", IFL_HF_REQUIRED, IFL_MODEL_MAX_D_MODEL);
    m->n_q_heads =
        ifl_hf_count(config, "num_attention_heads", IFL_HF_REQUIRED, IFL_MODEL_MAX_HEADS);
    m->n_kv_heads = heads_of(config, "num_key_value_heads", kind->n_kv_heads, IFL_MODEL_MAX_HEADS);
    m->d_head = heads_of(config, "head_dim", kind->d_head, IFL_MODEL_MAX_D_HEAD);
    m->d_ffn = ifl_hf_count(config, "intermediate_size", IFL_HF_REQUIRED, IFL_MODEL_MAX_D_FFN);
    m->n_vocab = ifl_hf_count(config, "vocab_size", IFL_HF_REQUIRED, IFL_MODEL_MAX_VOCAB);
    m->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
}

static void read_biases(struct ifl_hf_config *config, const struct kind *kind,
                        struct ifl_engine_model *m)
{
    m->out_bias = kind->biases == BIAS_AS_SAID && ifl_hf_flag(config, "attention_bias", false);
    m->qkv_bias = m->out_bias || kind->biases == BIAS_QKV;
    m->mlp_bias = kind->mlp_bias && ifl_hf_flag(config, "mlp_bias", false);
    m->qk_norm = kind->qk_norm;
}

/* ---- windows of attention ---- */

/* The number of layers behind the first max_window_layers. */
static int32_t layers_behind(struct ifl_hf_config *config, int32_t n_layers)
{
    const json_t *value = ifl_hf_value(config->root, "max_window_layers");
    const json_int_t first = value ? json_integer_value(value) : 28;
    if (value && (!json_is_integer(value) || first < 0))
        ifl_hf_fail(config, "max_window_layers", value, "a whole number of layers");
    return first < n_layers ? n_layers - (int32_t)first : 0;
}

/* transformers' AutoConfig reads a Mistral with layer_types as a Ministral: each layer has a type.
 */
static void read_window(struct ifl_hf_config *config, const struct kind *kind,
                        struct ifl_hf_decoder *decoder)
{
    const int32_t n_layers = decoder->model.n_layers;
    const bool is_used =
        kind->windows == WINDOW_SET || ifl_hf_flag(config, "use_sliding_window", false);
    int32_t n_window_layers = n_layers;
    if (is_used)
        decoder->window_tokens = ifl_hf_count(
            config, "sliding_window", has_key(config, "sliding_window") ? 0 : kind->window_tokens,
            IFL_MODEL_MAX_TOKENS);
    if (decoder->window_tokens == 0)
        n_window_layers = 0;
    else if (kind->windows == WINDOW_BEHIND && !ifl_hf_value(config->root, "layer_types"))
        n_window_layers = layers_behind(config, n_layers);
    decoder->n_window_layers =
        ifl_hf_layers(config, "sliding_attention", n_layers, n_window_layers);
}

void ifl_hf_read_decoder(struct ifl_hf_config *config, struct ifl_hf_decoder *decoder)
{
    const struct kind *kind = kind_of(config);
    *decoder = (struct ifl_hf_decoder){0};
    read_shape(config, kind, &decoder->model);
    read_biases(config, kind, &decoder->model);
    if (kind->windows != WINDOW_NONE)
        read_window(config, kind, decoder);
}
