/* Reads how the matrices of a checkpoint are stored from the quantization_config of its
 * config.json. The keys of the formats are those that vLLM reads
 * (vllm/model_executor/layers/quantization). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cost/huggingface_kinds.h"

#define METHODS                                                                                    \
    "quant_method fp8, fbgemm_fp8, mxfp4, compressed-tensors, modelopt, gptq, awq, auto-round "    \
    "or bitsandbytes"

struct format {
    int32_t quantization; /* enum model_quantization */
    const char *words;    /* for the model's `about`; NULL: it is none that is modelled */
    int32_t group;        /* model.h, quantization_group */
    bool symmetric;       /* the same, quantization_symmetric */
};

enum { MOST_GROUP = 65536 };

static const struct format FP8 = {MODEL_FP8, "weights in fp8"},
                           UNPACKED_FP8 = {MODEL_INT8, "weights in fp8, unpacked: as int8"},
                           INT8 = {MODEL_INT8, "weights in int8"},
                           INT4 = {MODEL_INT4, "weights in int4"},
                           NVFP4 = {MODEL_NVFP4, "weights in nvfp4"},
                           FP4 = {MODEL_INT4, "weights in FP4, counted as int4"}, UNKNOWN;

/* Those of NVIDIA's Model Optimizer. */
static const struct {
    const char *name;
    const struct format *format;
} algorithms[] = {
    {"FP8", &FP8},
    {"FP8_PER_CHANNEL_PER_TOKEN", &FP8},
    {"FP8_PB_WO", &FP8},
    {"W8A16", &INT8},
    {"W8A8_SQ_PER_CHANNEL", &INT8},
    {"W4A16_AWQ", &INT4},
    {"NVFP4", &NVFP4},
    {"NVFP4_AWQ", &NVFP4},
};

static struct format format_of_algorithm(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcmp(name, algorithms[i].name) == 0)
            return *algorithms[i].format;
    return UNKNOWN;
}

bool hf_knows_algorithm(const char *name)
{
    return name && format_of_algorithm(name).words;
}

void hf_list_algorithms(char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms && n < n_bytes; i++)
        n += (size_t)snprintf(text + n, n_bytes - n, "%s%s", i ? ", " : "", algorithms[i].name);
}

static json_int_t bits_of(const json_t *object, const char *key)
{
    return json_integer_value(ifl_hf_value(object, key));
}

/* How many integers share a scale, by the keys of all methods and of AWQ's older files; -1: those
 * of a column. 0: the file does not say. More than MOST_GROUP: it says no such number. */
static int32_t group_of(const json_t *object)
{
    const char *key = ifl_hf_value(object, "q_group_size") ? "q_group_size" : "group_size";
    const json_t *value = ifl_hf_value(object, key);
    const json_int_t n = json_integer_value(value);
    if ((value && !json_is_integer(value) && !json_is_null(value)) || n > MOST_GROUP)
        return MOST_GROUP + 1;
    const bool is_column =
        n < 0 || (n == 0 && strcmp(ifl_hf_text(object, "strategy"), "channel") == 0);
    return is_column ? -1 : (int32_t)n;
}

static struct format format_of_bits(const json_t *object, const char *key)
{
    const json_int_t bits = bits_of(object, key);
    struct format format = bits == 8 ? INT8 : bits == 4 ? INT4 : UNKNOWN;
    format.group = group_of(object);
    return format;
}

/* A group of compressed-tensors: fp8 is multiplied as it is where activations have 8 bits, too, and
 * so is NVFP4, with a scale for each 16, where they have 4. */
static struct format format_of_group(const json_t *weights, const json_t *activations)
{
    const json_int_t bits = bits_of(weights, "num_bits");
    if (strcmp(ifl_hf_text(weights, "type"), "float") != 0) {
        struct format format = format_of_bits(weights, "num_bits");
        format.symmetric = json_is_true(ifl_hf_value(weights, "symmetric"));
        return format;
    }
    if (bits == 4)
        return bits_of(weights, "group_size") == 16 && bits_of(activations, "num_bits") == 4 ? NVFP4
                                                                                             : FP4;
    if (bits != 8)
        return UNKNOWN;
    return bits_of(activations, "num_bits") == 8 ? FP8 : UNPACKED_FP8;
}

/* That of all groups with weights: others are of activations or K/V alone. */
static struct format format_of_groups(struct ifl_hf_config *config, const json_t *groups)
{
    struct format all = UNKNOWN;
    const char *name;
    json_t *group;
    json_object_foreach((json_t *)groups, name, group)
    {
        const json_t *weights = ifl_hf_value(group, "weights");
        if (!weights)
            continue;
        const struct format one =
            format_of_group(weights, ifl_hf_value(group, "input_activations"));
        if (!one.words)
            hf_refuse(config, "config_groups has weights in another format",
                      "floats of 8 or 4 bits, or integers of these");
        else if (all.words && all.quantization != one.quantization)
            hf_refuse(config, "config_groups has weights in several formats",
                      "one for all: layers of several are not modelled");
        all = one;
    }
    return all;
}

/* bitsandbytes says it in flags, the others in bits; AWQ's older files call them w_bit. */
static struct format format_of_integers(struct ifl_hf_config *config, const json_t *object)
{
    const char *key = ifl_hf_value(object, "w_bit") ? "w_bit" : "bits";
    struct format format = format_of_bits(object, key);
    if (json_is_true(ifl_hf_value(object, "load_in_4bit")))
        format = INT4;
    else if (json_is_true(ifl_hf_value(object, "load_in_8bit")))
        format = INT8;
    if (!format.words)
        hf_refuse(config, "quantization_config has another number of bits", "bits: 8 or 4");
    return format;
}

static bool is_one_of(const char *text, const char *const *list)
{
    while (*list && strcmp(text, *list) != 0)
        list++;
    return *list != NULL;
}

/* Some files of the Model Optimizer name it as the producer alone. */
static const char *method_of(const json_t *object)
{
    const char *producer = ifl_hf_text(ifl_hf_value(object, "producer"), "name");
    const char *method = ifl_hf_text(object, "quant_method");
    return *method || strcmp(producer, "modelopt") != 0 ? method : producer;
}

/* Its algorithm, or one that is none of those that are known. */
static struct format format_of_modelopt(struct ifl_hf_config *config, const json_t *object)
{
    const struct format format = format_of_algorithm(ifl_hf_text(object, "quant_algo"));
    char known[256], expected[300];
    hf_list_algorithms(known, sizeof known);
    snprintf(expected, sizeof expected, "one of %s", known);
    if (!format.words)
        ifl_hf_fail(config, "quant_algo", ifl_hf_value(object, "quant_algo"), expected);
    return format;
}

static struct format format_of(struct ifl_hf_config *config, const json_t *object)
{
    static const char *const integers[] = {"gptq",       "gptqmodel",    "awq", "auto-round",
                                           "auto_round", "bitsandbytes", NULL};
    const char *method = method_of(object);
    struct format format = UNKNOWN;
    if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0)
        return FP8;
    if (strcmp(method, "mxfp4") == 0)
        return (struct format){MODEL_MXFP4, "experts in mxfp4"};
    if (is_one_of(method, integers))
        return format_of_integers(config, object);
    if (strcmp(method, "compressed-tensors") == 0)
        format = format_of_groups(config, ifl_hf_value(object, "config_groups"));
    else if (strcmp(method, "modelopt") == 0)
        return format_of_modelopt(config, object);
    if (!format.words)
        hf_refuse(config, "quantization_config is of an unknown format",
                  "a checkpoint that is not quantised, or " METHODS);
    return format;
}

/* As vLLM reads them (vllm/utils/torch_utils.py, get_kv_cache_quant_algo_string; and the layer
 * Attention). */
static int32_t kv_scales_of(const json_t *object)
{
    const char *method = method_of(object);
    const json_t *scheme = ifl_hf_value(object, "kv_cache_scheme");
    const bool is_fp8 =
        bits_of(scheme, "num_bits") == 8 && strcmp(ifl_hf_text(scheme, "type"), "float") == 0;
    if (strcmp(method, "compressed-tensors") == 0)
        return is_fp8 ? MODEL_KV_COMPRESSED_TENSORS : MODEL_KV_NO_SCALES;
    const bool is_named = strcasecmp(ifl_hf_text(object, "kv_cache_quant_algo"), "fp8") == 0 ||
                          strcasecmp(ifl_hf_text(object, "kv_cache_scheme"), "fp8") == 0;
    return strcmp(method, "modelopt") == 0 && (is_fp8 || is_named) ? MODEL_KV_MODELOPT
                                                                   : MODEL_KV_NO_SCALES;
}

const char *hf_read_quantization(struct ifl_hf_config *config, bool is_part, struct model *model)
{
    const json_t *object = ifl_hf_value(config->root, "quantization_config");
    if (!object) /* its name in the first files of compressed-tensors */
        object = ifl_hf_value(config->root, "compression_config");
    if (!object)
        return NULL;
    const struct format format = format_of(config, object);
    model->quantization = format.quantization;
    if (format.group > MOST_GROUP)
        hf_refuse(config, "quantization_config has another group_size",
                  "a number from 1 to 65536, or -1 for a column");
    model->quantization_group = format.group;
    model->quantization_symmetric = format.symmetric;
    model->kv_scales = kv_scales_of(object);
    if (format.quantization != MODEL_MXFP4) /* in which experts alone are */
        hf_read_plain_parts(config, object, is_part, model);
    return format.words;
}
