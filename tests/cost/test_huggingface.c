#include <string.h>
#include <sys/stat.h>

#include "loading.h"

/* The same checkpoint from the owner's config.json and from inflight's YAML. */
static void expect_same(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/cost/data/%s.json", name);
    const struct model theirs = load_model(path), ours = load_model(name);
    const int32_t them[] = {theirs.layers,     theirs.d_model,        theirs.n_q_heads,
                            theirs.n_kv_heads, theirs.d_head,         theirs.d_ffn,
                            theirs.vocab,      theirs.max_model_len,  theirs.mlp,
                            theirs.norm,       theirs.attention_bias, theirs.mlp_bias,
                            theirs.qk_norm,    theirs.embedding_norm, theirs.tied_embeddings,
                            theirs.kv_bytes,   theirs.weight_bytes,   theirs.learned_positions};
    const int32_t us[] = {ours.layers,     ours.d_model,        ours.n_q_heads,
                          ours.n_kv_heads, ours.d_head,         ours.d_ffn,
                          ours.vocab,      ours.max_model_len,  ours.mlp,
                          ours.norm,       ours.attention_bias, ours.mlp_bias,
                          ours.qk_norm,    ours.embedding_norm, ours.tied_embeddings,
                          ours.kv_bytes,   ours.weight_bytes,   ours.learned_positions};
    for (size_t i = 0; i < sizeof us / sizeof *us; i++)
        cr_expect_eq(them[i], us[i], "%s: field %zu is %d and %d", name, i, them[i], us[i]);
    cr_expect_eq(model_parameters(&theirs), model_parameters(&ours));
    cr_expect_eq(model_active_parameters(&theirs), model_active_parameters(&ours), "%s", name);
    cr_expect_eq(theirs.quantization, ours.quantization, "%s", name);
    cr_expect_eq(theirs.window_tokens, ours.window_tokens, "%s", name);
    cr_expect_eq(theirs.window_layers, ours.window_layers, "%s", name);
}

Test(huggingface, equals_our_yaml)
{
    static const char *const names[] = {"llama-3-70b",       "mistral-7b",
                                        "qwen3-8b",          "opt-13b",
                                        "bloom-176b",        "qwen2.5-1.5b",
                                        "qwen2.5-7b",        "qwen2.5-32b",
                                        "qwen2.5-72b",       "qwen3-0.6b",
                                        "mistral-7b-v0.3",   "mistral-nemo-12b",
                                        "mistral-small-24b", "phi-4",
                                        "llama-3.2-1b",      "llama-3.2-3b",
                                        "gemma-2-27b",       "qwen3-coder-480b-a35b",
                                        "glm-4.5",           "glm-4.5-air",
                                        "minimax-m2",        "deepseek-r1-distill-qwen-1.5b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_same(names[i]);
}

/* Phi-3-mini has 3,821,079,552 parameters (Abdin et al. 2024, microsoft/Phi-3-mini-4k-instruct). */
Test(huggingface, phi3_mini)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"phi3\", \"hidden_size\": 3072, \"num_hidden_layers\": 32,"
        " \"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"intermediate_size\": 8192,"
        " \"max_position_embeddings\": 4096, \"vocab_size\": 32064}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    cr_expect_eq(model_parameters(&model), 3821079552);
}

/* GPT-2 small has 124,439,808 parameters (Radford et al. 2019, openai-community/gpt2). */
Test(huggingface, gpt2_small)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12,"
        " \"n_positions\": 1024, \"vocab_size\": 50257, \"n_inner\": null}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    cr_expect_eq(model_parameters(&model), 124439808);
}

/* Qwen2-7B: 7,615,616,512 parameters in the safetensors header of Qwen/Qwen2-7B. */
Test(huggingface, qwen2_has_biases_on_qkv)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"qwen2\", \"hidden_size\": 3584, \"num_hidden_layers\": 28,"
        " \"num_attention_heads\": 28, \"num_key_value_heads\": 4,"
        " \"intermediate_size\": 18944, \"vocab_size\": 152064,"
        " \"max_position_embeddings\": 131072, \"tie_word_embeddings\": false}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    cr_expect_eq(model_parameters(&model), 7615616512);
}

Test(huggingface, a_checkpoint_folder_names_the_model)
{
    char folder[64], path[96];
    snprintf(folder, sizeof folder, "/tmp/inflight-tiny-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/config.json", folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("{\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 1, \"n_head\": 2,"
          " \"n_positions\": 16, \"vocab_size\": 10}",
          file);
    cr_assert_eq(fclose(file), 0);
    struct model model = load_model(path);
    cr_expect_str_eq(model.name, strrchr(folder, '/') + 1);
    model = load_model(folder);
    cr_expect_str_eq(model.name, strrchr(folder, '/') + 1, "the folder itself");
    cr_assert_eq(chdir(folder), 0);
    model = load_model("./config.json");
    cr_expect_str_eq(model.name, "config");
    model = load_model("config.json");
    cr_expect_str_eq(model.name, "config");
    remove(path);
    rmdir(folder);
}

#define LLAMA                                                                                      \
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"            \
    " \"intermediate_size\": 64, \"vocab_size\": 100, \"max_position_embeddings\": 64, "

Test(huggingface, hostile_json_is_one_clear_line)
{
    expect_config_json_refused("", "expected a JSON object");
    expect_config_json_refused("{\"model_type\": \"llama\"", "expected a JSON object");
    expect_config_json_refused("{\"model_type\": \"lla\nma\"}", "expected a JSON object");
    expect_config_json_refused("{\"a\": 1,\n\n\x01\x02 }", "expected a JSON object");
    expect_config_json_refused("{\"model_type\": \"a\\nb\"}",
                               "model_type is \"a\\nb\", expected one of");
    expect_config_json_refused("[1, 2]", "no JSON object");
    expect_config_json_refused(
        "{}", "model_type is missing, expected one of llama, mistral, phi3, qwen2, qwen3, opt");
    expect_config_json_refused("{\"model_type\": 7}", "model_type is 7");
    expect_config_json_refused("{\"model_type\": \"mamba\"}", "model_type is \"mamba\"");
    expect_config_json_refused("{\"model_type\": \"llama\", \"model_type\": \"opt\"}", "duplicate");
    expect_config_json_refused(LLAMA "\"hidden_size\": \"wide\"}",
                               "hidden_size is \"wide\", expected a whole number");
    expect_config_json_refused(LLAMA "\"hidden_size\": -64}", "hidden_size");
    expect_config_json_refused(LLAMA "\"hidden_size\": 1e3}", "hidden_size");
    expect_config_json_refused(LLAMA "\"hidden_size\": 9223372036854775807}", "hidden_size");
    expect_config_json_refused(LLAMA "\"hidden_size\": 99999999999999999999}",
                               "expected a JSON object");
    expect_config_json_refused(LLAMA "\"hidden_size\": null}", "hidden_size is missing");
    expect_config_json_refused(LLAMA "\"hidden_size\": 30}", "d_head");
    expect_config_json_refused(LLAMA "\"hidden_size\": 64, \"num_key_value_heads\": 3}",
                               "n_kv_heads");
    expect_config_json_refused(LLAMA "\"hidden_size\": 64, \"mlp_bias\": 1}", "mlp_bias");
    expect_config_json_refused(LLAMA "\"hidden_size\": 64, \"torch_dtype\": \"int4\"}",
                               "torch_dtype");
    expect_config_json_refused(LLAMA "\"hidden_size\": 64, \"quantization_config\": {}}",
                               "quantization_config");
}

/* ---- quantised checkpoints ---- */

#define QUANTIZED(object) LLAMA "\"hidden_size\": 64, \"quantization_config\": {" object "}}"
#define GROUP(weights, activations)                                                                \
    "{\"targets\": [\"Linear\"], \"weights\": " weights ", \"input_activations\": " activations "}"
#define FLOAT_8 "{\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"channel\"}"
#define FLOAT_4 "{\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16}"
#define INT_8 "{\"num_bits\": 8, \"type\": \"int\", \"dynamic\": true}"
#define INT_4 "{\"num_bits\": 4, \"type\": \"int\", \"group_size\": 128}"
#define COMPRESSED(groups)                                                                         \
    QUANTIZED("\"quant_method\": \"compressed-tensors\", \"config_groups\": {" groups "}")

static void expect_quantization(const char *text, enum model_quantization quantization,
                                const char *words)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s: %s", text, error.text);
    cr_expect_eq(model.quantization, (int32_t)quantization, "%s: %d", text, model.quantization);
    cr_expect(strstr(model.about, words), "%s: %s", text, model.about);
}

/* Keys and values as in checkpoints of each kind: neuralmagic's, NVIDIA's, Qwen's, Hugging Face's
 * (transformers' docs/source/en/quantization). */
Test(huggingface, quantised_checkpoints)
{
    expect_quantization(COMPRESSED("\"group_0\": " GROUP(FLOAT_8, FLOAT_8)), MODEL_FP8,
                        ", weights in fp8");
    expect_quantization(COMPRESSED("\"group_0\": " GROUP(FLOAT_8, "null")), MODEL_INT8, "unpacked");
    expect_quantization(COMPRESSED("\"group_0\": " GROUP(INT_8, INT_8)), MODEL_INT8, "int8");
    expect_quantization(COMPRESSED("\"a\": " GROUP(INT_4, "null") ", \"b\": " GROUP("null", INT_8)),
                        MODEL_INT4, "int4");
    expect_quantization(COMPRESSED("\"group_0\": " GROUP(FLOAT_4, FLOAT_4)), MODEL_NVFP4, "nvfp4");
    expect_quantization(COMPRESSED("\"group_0\": " GROUP(FLOAT_4, "null")), MODEL_INT4,
                        "FP4, counted");
    expect_quantization(QUANTIZED("\"quant_method\": \"fbgemm_fp8\""), MODEL_FP8, "fp8");
    expect_quantization(QUANTIZED("\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\""),
                        MODEL_FP8, "fp8");
    expect_quantization(QUANTIZED("\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\""),
                        MODEL_NVFP4, "nvfp4");
    expect_quantization(QUANTIZED("\"quant_method\": \"gptq\", \"bits\": 8"), MODEL_INT8, "int8");
    expect_quantization(QUANTIZED("\"quant_method\": \"awq\", \"w_bit\": 4"), MODEL_INT4, "int4");
    expect_quantization(QUANTIZED("\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true"),
                        MODEL_INT4, "int4");
    expect_quantization(LLAMA
                        "\"hidden_size\": 64, \"compression_config\": {\"quant_method\": \"fp8\"}}",
                        MODEL_FP8, "fp8");
}

static int32_t group_of(const char *text)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s: %s", text, error.text);
    return model.quantization_group;
}

/* How many weights share a scale: keys as in checkpoints of each kind. */
Test(huggingface, groups_of_quantised_weights)
{
    cr_expect_eq(group_of(COMPRESSED("\"group_0\": " GROUP(INT_4, "null"))), 128);
    cr_expect_eq(group_of(COMPRESSED("\"group_0\": " GROUP(
                     "{\"num_bits\": 4, \"type\": \"int\", \"group_size\": null,"
                     " \"strategy\": \"channel\"}",
                     "null"))),
                 -1);
    cr_expect_eq(group_of(QUANTIZED("\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32")),
                 32);
    cr_expect_eq(group_of(QUANTIZED("\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": -1")),
                 -1);
    cr_expect_eq(
        group_of(QUANTIZED("\"quant_method\": \"awq\", \"w_bit\": 4, \"q_group_size\": 64")), 64);
    cr_expect_eq(group_of(QUANTIZED("\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true")),
                 0);
}

/* The same model from the keys of its config.json and from our YAML. */
Test(huggingface, an_indexer)
{
    struct model model;
    struct ifl_error error;
#define V3_2                                                                                       \
    "{\"model_type\": \"deepseek_v32\", \"hidden_size\": 7168, \"num_hidden_layers\": 61,"         \
    " \"num_attention_heads\": 128, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512,"                 \
    " \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128,"                   \
    " \"vocab_size\": 129280, \"max_position_embeddings\": 163840, \"n_routed_experts\": 256,"     \
    " \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048,"       \
    " \"first_k_dense_replace\": 3, \"intermediate_size\": 18432, \"index_head_dim\": 128,"        \
    " \"quantization_config\": {\"quant_method\": \"fp8\"}, \"index_topk\": 2048"
    cr_assert_eq(load_config_json(V3_2 ", \"index_n_heads\": 64}", &model, &error), 0, "%s",
                 error.text);
    const struct model ours = load_model("deepseek-v3.2");
    cr_expect_eq(model.index_heads, ours.index_heads);
    cr_expect_eq(model.index_head_dim, ours.index_head_dim);
    cr_expect_eq(model.index_topk, ours.index_topk);
    cr_expect_eq(model_parameters(&model), model_parameters(&ours));
    cr_expect_eq(model.quantization, ours.quantization);
    expect_config_json_refused(V3_2 "}", "index_n_heads is missing");
    expect_config_json_refused(V3_2 ", \"index_n_heads\": 64, \"indexer_types\": [\"full\"]}",
                               "indexer_types is [\"full\"], expected full or shared");
    expect_config_json_refused(V3_2 ", \"index_n_heads\": 64, \"indexer_types\": 3}",
                               "indexer_types is 3, expected full or shared");
}

Test(huggingface, formats_that_are_not_modelled)
{
    expect_config_json_refused(
        COMPRESSED("\"a\": " GROUP(INT_4, "null") ", \"b\": " GROUP(FLOAT_8, FLOAT_8)),
        "config_groups has weights in several formats, expected one for all");
    expect_config_json_refused(
        COMPRESSED("\"a\": " GROUP("{\"num_bits\": 3, \"type\": \"int\"}", "null")),
        "another format, expected floats of 8 or 4 bits");
    expect_config_json_refused(COMPRESSED("\"a\": " GROUP("null", INT_8)), "unknown format");
    expect_config_json_refused(QUANTIZED("\"quant_method\": \"gptq\", \"bits\": 3"),
                               "expected bits: 8 or 4");
    expect_config_json_refused(
        QUANTIZED("\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\""),
        "quant_algo is \"MIXED_PRECISION\", expected one of FP8, ");
    expect_config_json_refused(QUANTIZED("\"quant_method\": \"quark\""),
                               "compressed-tensors, modelopt, gptq");
    expect_config_json_refused(
        QUANTIZED("\"quant_method\": \"compressed-tensors\", \"config_groups\": [1]"),
        "unknown format");
}

/* Python's json writes these. nvidia's Nemotron-H and Nemotron 3 Super have an Infinity in
 * time_step_limit. */
Test(huggingface, numbers_that_are_none)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"phi3\", \"hidden_size\": 3072, \"num_hidden_layers\": 32,"
        " \"num_attention_heads\": 32, \"intermediate_size\": 8192, \"a\": [0.0, Infinity],"
        " \"max_position_embeddings\": 4096, \"vocab_size\": 32064, \"b\": {\"c\": -Infinity},"
        " \"d\": NaN, \"torch_dtype\": \"float32\", \"say \\\"NaN\\\"\": \"Infinity\"}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    cr_expect_eq(model.weight_bytes, 4);
    expect_config_json_refused("{\"model_type\": \"NaN\"}", "model_type is \"NaN\"");
    expect_config_json_refused("{\"model_type\": Infinity}", "model_type is 0");
    expect_config_json_refused("{\"a\": Infinity", "expected a JSON object");
    expect_config_json_refused("{\"a\": \"\\", "expected a JSON object");
}

/* Qwen3-32B-FP8-Static-PerTensor names the Model Optimizer as the producer alone. */
Test(huggingface, a_producer_is_a_method)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json(QUANTIZED("\"quant_algo\": \"FP8\", \"kv_cache_scheme\": \"FP8\","
                                            " \"producer\": {\"name\": \"modelopt\"}"),
                                  &model, &error),
                 0, "%s", error.text);
    cr_expect_eq(model.quantization, MODEL_FP8);
    cr_expect_eq(model.kv_scales, MODEL_KV_MODELOPT);
    expect_config_json_refused(QUANTIZED("\"producer\": {\"name\": \"other\"}"), "unknown format");
}

Test(huggingface, syntax_errors_have_a_place)
{
    struct model model;
    struct ifl_error error;
    cr_expect_eq(load_config_json("{\n  \"model_type\": llama\n}", &model, &error), IFL_E_INPUT);
    cr_expect_eq(error.line, 2);
    cr_expect_gt(error.column, 0);
}

Test(huggingface, deep_nesting_ends)
{
    enum { DEPTH = 100000 };
    static char text[DEPTH + 1];
    memset(text, '[', DEPTH);
    expect_config_json_refused(text, "expected a JSON object");
}

/* ---- missing keys, as set by AutoConfig of transformers 4.57.1, 5.0.0 and 5.23.0 ---- */

static struct model read_wide(const char *type, const char *more)
{
    struct model model;
    struct ifl_error error;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"num_hidden_layers\": 2, \"hidden_size\": 640,"
             " \"num_attention_heads\": 64, \"intermediate_size\": 96, \"vocab_size\": 100,"
             " \"max_position_embeddings\": 9000%s}",
             type, more);
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s: %s", text, error.text);
    return model;
}

static void expect_heads(const char *type, const char *more, int32_t n_kv_heads, int32_t d_head)
{
    const struct model model = read_wide(type, more);
    cr_expect(model.n_kv_heads == n_kv_heads && model.d_head == d_head, "%s%s: %d, %d", type, more,
              model.n_kv_heads, model.d_head);
}

Test(huggingface, heads_that_are_left_out)
{
    expect_heads("llama", "", 64, 10);
    expect_heads("phi3", "", 64, 10);
    expect_heads("mistral", "", 8, 10);
    expect_heads("mixtral", "", 8, 10);
    expect_heads("mistral", ", \"num_key_value_heads\": null", 64, 10);
    expect_heads("qwen2", "", 32, 10);
    expect_heads("qwen3", "", 32, 128);
    expect_heads("qwen3_moe", "", 4, 10);
}

static void expect_window(const char *type, const char *more, int32_t window_tokens)
{
    const struct model model = read_wide(type, more);
    cr_expect_eq(model.window_tokens, window_tokens, "%s%s: %d", type, more, model.window_tokens);
}

#define TYPES(first, second)                                                                       \
    ", \"layer_types\": [\"" first "_attention\", \"" second "_attention\"]"

Test(huggingface, windows)
{
    const char *uses = ", \"use_sliding_window\": true, \"max_window_layers\": 1";
    expect_window("llama", ", \"sliding_window\": 8", 0);
    expect_window("mistral", "", 4096);
    expect_window("mistral", ", \"sliding_window\": null", 0);
    expect_window("mistral", ", \"sliding_window\": 8", 8);
    expect_window("mistral", ", \"sliding_window\": 8" TYPES("full", "full"), 0);
    expect_window("mistral", ", \"sliding_window\": 8" TYPES("full", "sliding"), 8);
    expect_window("mixtral", "", 0);
    expect_window("phi3", ", \"sliding_window\": 2047", 2047);
    expect_window("qwen2", ", \"sliding_window\": 8", 0);
    expect_window("qwen2", uses, 4096);
    expect_window("qwen3", ", \"use_sliding_window\": true", 0);
}

Test(huggingface, windows_that_no_layer_can_have)
{
    struct model model;
    struct ifl_error error;
    for (int i = 0; i < 2; i++) {
        cr_expect_lt(load_config_json(
                         i == 0 ? "{\"model_type\": \"gemma3_text\", \"sliding_window_pattern\": 0}"
                                : "{\"model_type\": \"gemma3_text\", \"layer_types\": []}",
                         &model, &error),
                     0);
        cr_expect(
            strstr(error.text, i == 0 ? "sliding_window_pattern is 0, expected a whole number"
                                      : "layer_types has 0 types, expected 26 (num_hidden_layers)"),
            "%s", error.text);
    }
#define MISTRAL                                                                                    \
    "{\"model_type\": \"mistral\", \"num_hidden_layers\": 2, \"hidden_size\": 640,"                \
    " \"num_attention_heads\": 64, \"intermediate_size\": 96, \"vocab_size\": 100,"                \
    " \"max_position_embeddings\": 9000"
    expect_config_json_refused(
        MISTRAL TYPES("linear", "full") "}",
        "layer_types[0] is \"linear_attention\", expected full_attention or sliding_");
    expect_config_json_refused(MISTRAL ", \"layer_types\": [\"full_attention\"]}",
                               "layer_types has 1 types, expected 2 (num_hidden_layers)");
    expect_config_json_refused(
        "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2" TYPES("sliding", "chunked") "}",
        "layer_types[1] is \"chunked_attention\"");
    expect_config_json_refused(
        "{\"model_type\": \"llama4_text\", \"num_hidden_layers\": 2" TYPES("chunked",
                                                                           "sliding") "}",
        "layer_types[1] is \"sliding_attention\", expected full_attention or chunked_");
}

/* Names of transformers 4 count as those of 5 (configuration_qwen3_5.py). */
Test(huggingface, types_of_layers_with_states)
{
#define QWEN3_5                                                                                    \
    "{\"model_type\": \"qwen3_5_text\", \"num_hidden_layers\": 2, \"hidden_size\": 64,"            \
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 96,"          \
    " \"vocab_size\": 100, \"max_position_embeddings\": 64, \"layer_types\": "
    static const char *const good[] = {"[\"linear_attention\", \"full_attention\"]",
                                       "[\"mamba\", \"attention\"]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct model model;
        struct ifl_error error;
        char text[512];
        snprintf(text, sizeof text, QWEN3_5 "%s}", good[i]);
        cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
        cr_expect_eq(model.state_layers, 1);
    }
    expect_config_json_refused(QWEN3_5 "[\"linear_attention\"]}",
                               "layer_types has 1 types, expected 2");
    expect_config_json_refused(
        QWEN3_5 "[\"full_attention\", \"sliding_attention\"]}",
        "layer_types[1] is \"sliding_attention\", expected full_attention or linear_");
    expect_config_json_refused(QWEN3_5 "[\"full_attention\", 7]}",
                               "layer_types[1] is 7, expected full_attention");
    expect_config_json_refused(QWEN3_5 "\"linear_attention\"}",
                               "layer_types is \"linear_attention\"");
}

Test(huggingface, a_pipe_is_not_waited_for, .timeout = 10)
{
    struct model model;
    struct ifl_error error;
    char path[64];
    snprintf(path, sizeof path, "/tmp/inflight-pipe-%ld.json", (long)getpid());
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(model_load(path, &model, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "not a regular file, expected a JSON object");
    unlink(path);
}

/* Shapes from the config.json of zai-org/GLM-4.5-Air, MiniMaxAI/MiniMax-M2,
 * ByteDance-Seed/Seed-OSS-36B-Instruct and baidu/ERNIE-4.5-21B-A3B-PT, sizes from their cards:
 * 106, 230, 36 and 21.8 billion parameters. Those with windows: openai/gpt-oss-20b (its card: 20.9
 * and 3.6), google/gemma-2-27b and gemma-3-4b-it (the reports' 27.2, and 3.88 without the image
 * encoder), meta-llama/Llama-4-Maverick-17B-128E (400 and 17, the input embedding's 1.0 among the
 * 17), allenai/Olmo-3-32B; ibm-granite/granite-3.3-8b-base and HuggingFaceTB/SmolLM3-3B. */
Test(huggingface, published_sizes)
{
    static const struct {
        const char *text;
        double params_b, active_b;
    } of[] = {
        {"{\"model_type\": \"glm4_moe\", \"attention_bias\": true, \"first_k_dense_replace\": 1,"
         " \"head_dim\": 128, \"hidden_size\": 4096, \"intermediate_size\": 10944,"
         " \"max_position_embeddings\": 131072, \"moe_intermediate_size\": 1408,"
         " \"n_routed_experts\": 128, \"n_shared_experts\": 1, \"num_attention_heads\": 96,"
         " \"num_experts_per_tok\": 8, \"num_hidden_layers\": 46, \"num_key_value_heads\": 8,"
         " \"use_qk_norm\": false, \"vocab_size\": 151552}",
         106, 0},
        {"{\"model_type\": \"minimax_m2\", \"hidden_size\": 3072, \"intermediate_size\": 1536,"
         " \"num_hidden_layers\": 62, \"num_attention_heads\": 48, \"num_key_value_heads\": 8,"
         " \"head_dim\": 128, \"num_local_experts\": 256, \"num_experts_per_tok\": 8,"
         " \"shared_intermediate_size\": 0, \"attn_type_list\": [1, 1], \"use_qk_norm\": true,"
         " \"max_position_embeddings\": 196608, \"vocab_size\": 200064}",
         230, 10},
        {"{\"model_type\": \"seed_oss\", \"attention_bias\": true, \"attention_out_bias\": false,"
         " \"hidden_size\": 5120, \"num_hidden_layers\": 64, \"intermediate_size\": 27648,"
         " \"num_attention_heads\": 80, \"num_key_value_heads\": 8, \"head_dim\": 128,"
         " \"vocab_size\": 155136, \"max_position_embeddings\": 524288}",
         36, 0},
        {"{\"model_type\": \"ernie4_5_moe\", \"hidden_size\": 2560, \"intermediate_size\": 12288,"
         " \"moe_intermediate_size\": 1536, \"num_hidden_layers\": 28,"
         " \"num_attention_heads\": 20, \"num_key_value_heads\": 4, \"moe_num_experts\": 64,"
         " \"moe_num_shared_experts\": 2, \"moe_k\": 6, \"moe_layer_start_index\": 1,"
         " \"moe_layer_end_index\": 27, \"moe_layer_interval\": 1, \"vocab_size\": 103424,"
         " \"max_position_embeddings\": 131072, \"tie_word_embeddings\": true}",
         21.8, 3},
        {"{\"model_type\": \"gpt_oss\", \"attention_bias\": true, \"experts_per_token\": 4,"
         " \"head_dim\": 64, \"hidden_size\": 2880, \"intermediate_size\": 2880,"
         " \"max_position_embeddings\": 131072, \"num_attention_heads\": 64,"
         " \"num_experts_per_tok\": 4, \"num_hidden_layers\": 24, \"num_key_value_heads\": 8,"
         " \"num_local_experts\": 32, \"quantization_config\": {\"quant_method\": \"mxfp4\"},"
         " \"sliding_window\": 128, \"vocab_size\": 201088}",
         20.91, 3.61},
        {"{\"model_type\": \"gemma2\", \"hidden_size\": 4608, \"intermediate_size\": 36864,"
         " \"num_hidden_layers\": 46, \"num_attention_heads\": 32, \"num_key_value_heads\": 16,"
         " \"head_dim\": 128, \"vocab_size\": 256000}",
         27.2, 0},
        {"{\"model_type\": \"gemma3\", \"text_config\": {\"hidden_size\": 2560,"
         " \"intermediate_size\": 10240, \"num_hidden_layers\": 34, \"sliding_window\": 1024}}",
         3.88, 0},
        {"{\"model_type\": \"llama4\", \"text_config\": {\"interleave_moe_layer_step\": 2,"
         " \"num_local_experts\": 128}}",
         400, 17},
        {"{\"model_type\": \"olmo3\", \"hidden_size\": 5120, \"intermediate_size\": 27648,"
         " \"num_hidden_layers\": 64, \"num_attention_heads\": 40, \"num_key_value_heads\": 8,"
         " \"max_position_embeddings\": 65536, \"vocab_size\": 100278}",
         32.2, 0},
        {"{\"model_type\": \"granite\", \"hidden_size\": 4096, \"intermediate_size\": 12800,"
         " \"num_hidden_layers\": 40, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
         " \"max_position_embeddings\": 131072, \"vocab_size\": 49159,"
         " \"tie_word_embeddings\": true}",
         8.17, 0},
        {"{\"model_type\": \"smollm3\", \"hidden_size\": 2048, \"intermediate_size\": 11008,"
         " \"num_hidden_layers\": 36, \"num_attention_heads\": 16, \"num_key_value_heads\": 4,"
         " \"max_position_embeddings\": 65536, \"vocab_size\": 128256}",
         3.08, 0},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct model model;
        struct ifl_error error;
        cr_assert_eq(load_config_json(of[i].text, &model, &error), 0, "%s", error.text);
        const double params_b = (double)model_parameters(&model) / 1e9;
        const double active_b = (double)model_active_parameters(&model) / 1e9;
        cr_expect(params_b > 0.97 * of[i].params_b && params_b < 1.03 * of[i].params_b, "%zu: %.2f",
                  i, params_b);
        cr_expect(of[i].active_b == 0 ||
                      (active_b > of[i].active_b - 0.9 && active_b < of[i].active_b + 0.5),
                  "%zu: %.2f active", i, active_b);
    }
}

/* The text part of Qwen3-VL-8B is Qwen3-8B, with the dtype of the outer file. */
Test(huggingface, text_part)
{
    static const char inner[] =
        " \"hidden_size\": 4096, \"num_hidden_layers\": 36, \"num_attention_heads\": 32,"
        " \"num_key_value_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 12288,"
        " \"max_position_embeddings\": 262144, \"vocab_size\": 151936}";
    struct model model;
    struct ifl_error error;
    char text[1024];
    snprintf(
        text, sizeof text,
        "{\"model_type\": \"qwen3_vl\", \"dtype\": \"float32\", \"tie_word_embeddings\": false,"
        " \"vision_config\": {}, \"text_config\": {\"model_type\": \"qwen3_vl_text\",%s}",
        inner);
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    const struct model plain = load_model("qwen3-8b");
    cr_expect_eq(model_parameters(&model), model_parameters(&plain));
    cr_expect_eq(model.weight_bytes, 4);
    cr_expect(strstr(model.about, "the image encoder is not modelled"));
}

/* The files that the sizes of configs/models are from give the same shapes. */
Test(huggingface, windows_of_some_layers)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json("{\"model_type\": \"gemma3_text\", \"head_dim\": 128,"
                                  " \"hidden_size\": 5376, \"intermediate_size\": 21504,"
                                  " \"num_attention_heads\": 32, \"num_hidden_layers\": 62,"
                                  " \"num_key_value_heads\": 16, \"sliding_window\": 1024,"
                                  " \"sliding_window_pattern\": 6}",
                                  &model, &error),
                 0, "%s", error.text);
    const struct model plain = load_model("gemma-3-27b");
    cr_expect_eq(model_parameters(&model), model_parameters(&plain));
    cr_expect(model.window_layers == 52 && model.window_tokens == 1024 &&
              plain.window_layers == 52);
    const struct model_groups groups = model_kv_groups(&model);
    cr_expect(groups.layers == 10 && groups.n_window == 6); /* vLLM: 10 full, 52 in six tens */
    cr_assert_eq(
        load_config_json(
            "{\"model_type\": \"qwen3_next\", \"full_attention_interval\": 4,"
            " \"head_dim\": 256, \"hidden_size\": 2048, \"intermediate_size\": 5120,"
            " \"linear_num_value_heads\": 32, \"max_position_embeddings\": 262144,"
            " \"moe_intermediate_size\": 512, \"num_attention_heads\": 16,"
            " \"num_experts\": 512, \"num_experts_per_tok\": 10, \"num_hidden_layers\": 48,"
            " \"num_key_value_heads\": 2, \"shared_expert_intermediate_size\": 512,"
            " \"vocab_size\": 151936}",
            &model, &error),
        0, "%s", error.text);
    const struct model next = load_model("qwen3-next-80b-a3b");
    cr_expect_eq(model_parameters(&model), model_parameters(&next));
    cr_expect_eq(model_state_bytes(&model, 1), model_state_bytes(&next, 1));
    const struct model oss = load_model("gpt-oss-120b");
    cr_expect(model_kv_groups(&oss).layers == 18 && model_kv_groups(&oss).n_window == 1);
    cr_expect_float_eq((double)model_weight_bytes(&oss, 1) / 0x1p30, 60.8, 0.1); /* its card */
    cr_expect_eq(model_kv_groups(&(struct model){.layers = 4}).n_window, 0);
}
