/* Finds the text part in the Hugging Face config.json of a model that reads images or sound, and
 * types that are refused. */
#include <jansson.h>
#include <string.h>

#include "cost/huggingface_kinds.h"

/* The model_type of the text part: this one, unless the part itself has another one that is known,
 * or, where `said`, any other. */
static const struct part {
    const char *outer, *text;
    bool said;
} parts[] = {
    {"mistral3", "mistral", true},
    {"qwen2_vl", "qwen2", false},
    {"qwen2_5_vl", "qwen2", false},
    {"qwen3_vl", "qwen3", false},
    {"qwen3_vl_moe", "qwen3_moe", false},
    {"gemma3", "gemma3_text", false},
    {"llama4", "llama4_text", false},
    {"qwen3_5", "qwen3_5_text", false},
    {"qwen3_5_moe", "qwen3_5_moe_text", false},
    {"kimi_k25", "deepseek_v3", false},
    {"kimi_vl", "deepseek_v3", false},
    {"glm4v", "glm4v_text", false},
    {"glm4v_moe", "glm4v_moe_text", false},
    {"glm46v", "glm4v_text", true},
    {"internvl", "qwen2", true},
    {"internvl_chat", "internlm2", true},
    {"llava", "llama", true},
    {"llava_next", "llama", true},
    {"llava_onevision", "qwen2", true},
    {"aya_vision", "cohere2", true},
    {"cohere2_vision", "cohere2", true},
    {"phi4mm", "phi3", false},
    {"step3_vl", "step3_text", false},
    {"lfm2_vl", "lfm2", true},
};

const char *hf_outer_type(size_t i)
{
    return i < sizeof parts / sizeof *parts ? parts[i].outer : NULL;
}

/* Text parts leave out what their configuration class has by default (configuration_llama.py,
 * configuration_mistral.py): LLaVA's, most of all. */
static const struct {
    const char *type, *key;
    int32_t value;
} defaults[] = {
    {"llama", "hidden_size", 4096},        {"mistral", "hidden_size", 4096},
    {"llama", "intermediate_size", 11008}, {"mistral", "intermediate_size", 14336},
    {"llama", "num_hidden_layers", 32},    {"mistral", "num_hidden_layers", 32},
    {"llama", "num_attention_heads", 32},  {"mistral", "num_attention_heads", 32},
};

static int set_defaults(json_t *root, const char *type)
{
    int code = 0;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (strcmp(type, defaults[i].type) == 0 && !json_object_get(root, defaults[i].key))
            code |= json_object_set_new(root, defaults[i].key, json_integer(defaults[i].value));
    return code;
}

/* What the whole file says for all of its parts. */
static int inherit(json_t *root, const json_t *outer)
{
    static const char *const keys[] = {"torch_dtype", "dtype", "quantization_config",
                                       "compression_config", "tie_word_embeddings"};
    int code = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_object_get(root, keys[i]) && json_object_get(outer, keys[i]))
            code |= json_object_set(root, keys[i], json_object_get(outer, keys[i]));
    return code;
}

/* Older files have the text part's keys beside the others; InternVL names it otherwise. */
static json_t *copy_text(const json_t *outer)
{
    json_t *text = json_object_get(outer, "text_config");
    if (!json_is_object(text))
        text = json_object_get(outer, "llm_config");
    return json_copy(json_is_object(text) ? text : (json_t *)outer);
}

static void enter(struct ifl_hf_config *config, const struct part *part)
{
    json_t *root = copy_text(config->root);
    const char *own = root ? ifl_hf_text(root, "model_type") : "";
    const bool is_own = *own && strcmp(own, part->outer) != 0 && (part->said || hf_knows_type(own));
    json_t *type = json_string(is_own ? own : part->text);
    if (!root || inherit(root, config->root) < 0 ||
        (part->said && set_defaults(root, json_string_value(type)) < 0) ||
        json_object_set(root, "model_type", type) < 0)
        config->code = ifl_fail_nomem(config->error);
    json_decref(type);
    if (!root)
        return;
    json_decref(config->root);
    config->root = root;
}

const char *hf_take_text_part(struct ifl_hf_config *config)
{
    const char *type = ifl_hf_text(config->root, "model_type");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(type, parts[i].outer) == 0) {
            enter(config, &parts[i]);
            return parts[i].outer;
        }
    return NULL;
}

/* Types that are known and refused, and what is expected in their place. */
static const struct {
    const char *model_type, *expected;
} refused[] = {
    {"mllama",
     "layers that attend to the text: attention to images in some layers is not modelled"},
    {"gemma3n", "one embedding and one hidden state of a token: an embedding for each layer, and "
                "the further states of AltUp, are not modelled"},
    {"gemma4", "KV heads of one number and width: numbers and widths that depend on the layer are "
               "not modelled"},
    {"deepseek_v4",
     "K/V of every token: K/V that is compressed by other ratios from layer to layer, "
     "and hidden states of several rows, are not modelled"},
    {"deepseek_ref", "K/V of every token: this is DeepSeek-V4, of which K/V that is compressed by "
                     "other ratios from layer to layer is not modelled"},
    {"minimax_m3",
     "attention to all tokens or to a window: blocks of K/V that an indexer picks are "
     "not modelled"},
    {"bailing_hybrid",
     "one kind of attention: latent attention in some layers and linear attention "
     "in the others, as in Ling 2.5 and 3, is not modelled"},
    {"bailing_moe_linear",
     "one kind of attention: linear attention with groups of keys, as in Ring "
     "2.0 linear, is not modelled"},
    {"kimi_k3", "a residual of one layer: attention over the residuals of blocks of layers, and "
                "gated experts of a latent, are not modelled"},
    {"step3p5", "attention of one shape: query heads of numbers that depend on the layer are not "
                "modelled"},
    {"step3p7", "attention of one shape: query heads of numbers that depend on the layer are not "
                "modelled"},
    {"nemotron-nas",
     "layers of one shape: attention and MLPs of sizes that depend on the layer are "
     "not modelled"},
    {"mimo_v2", "KV heads of one number and width: numbers that depend on the layer, and "
                "values narrower than keys, are not modelled"},
};

const char *hf_refused(const char *type)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strncmp(type, refused[i].model_type, strlen(refused[i].model_type)) == 0)
            return refused[i].expected;
    return NULL;
}
