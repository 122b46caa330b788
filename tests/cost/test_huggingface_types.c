/* The types of config.json that are read: sizes of published checkpoints. */
#include <string.h>

#include "loading.h"

/* Shapes from the config.json of Qwen, microsoft, CohereLabs, zai-org, internlm, bigcode,
 * EleutherAI, tiiuae, stabilityai, LGAI-EXAONE, tencent, baidu, allenai, ibm-granite, databricks,
 * nvidia, XiaomiMiMo, meituan-longcat, moonshotai, OpenGVLab, llava-hf, mistralai, LiquidAI,
 * MiniMaxAI, ai21labs, tiiuae and stepfun-ai.
 *
 * Parameters as transformers 5.24 counts them:
 *
 *     with torch.device("meta"):
 *         model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
 *     sum(p.numel() for p in model.parameters())
 *
 * of the text part alone, and, for types that transformers has not, of the type with the same
 * layers: chatglm as glm, internlm2 as llama, mimo as qwen2, phi4mm as phi3, kimi_k2 as
 * deepseek_v3, minimax_text_01 and minimax_m1 as minimax. Of LongCat-Flash it allocates gate and up
 * projections for 256 experts that have none, 28 x 256 x 2 x 2048 x 6144, which are taken off.
 *
 * K/V of a token: K and V x layers x heads x width x 2 bytes, or layers x latent x 2 bytes. */
static const struct {
    const char *name;
    int64_t parameters, kv_bytes;
} published[] = {
    {"qwen1.5-moe-a2.7b", 14315784192, 2 * 24 * 16 * 128 * 2},
    {"qwen2-57b-a14b", 57408658944, 2 * 28 * 4 * 128 * 2},
    {"phi-3.5-moe", 41873153344, 2 * 32 * 8 * 128 * 2},
    {"command-r", 34980831232, 2 * 40 * 64 * 128 * 2},
    {"command-r-plus", 103810674688, 2 * 64 * 8 * 128 * 2},
    {"command-r7b", 8028033024, 2 * 32 * 8 * 128 * 2},
    {"command-a", 111057580032, 2 * 64 * 8 * 128 * 2},
    {"glm-4-9b-chat-hf", 9399951360, 2 * 40 * 2 * 128 * 2},
    {"glm-4-9b-chat", 9399951360, 2 * 40 * 2 * 128 * 2},
    {"glm-4-32b-0414", 32566081536, 2 * 61 * 2 * 128 * 2},
    {"glm-4-9b-0414", 9400279040, 2 * 40 * 2 * 128 * 2},
    {"internlm2.5-7b", 7737708544, 2 * 32 * 8 * 128 * 2},
    {"internlm3-8b", 8804241408, 2 * 48 * 2 * 128 * 2},
    {"starcoder2-3b", 3030371328, 2 * 30 * 2 * 128 * 2},
    {"starcoder", 15517456384, 2 * 40 * 1 * 128 * 2},
    {"gpt-neox-20b", 20554567680, 2 * 44 * 64 * 96 * 2},
    {"falcon-7b", 6921720704, 2 * 32 * 1 * 64 * 2},
    {"falcon-40b", 41303293952, 2 * 60 * 8 * 64 * 2},
    {"falcon-180b", 178557088768, 2 * 80 * 8 * 64 * 2},
    {"falcon-rw-1b", 1311625216, 2 * 24 * 32 * 64 * 2},
    {"stablelm-2-1.6b", 1644515328, 2 * 24 * 32 * 64 * 2},
    {"stablelm-2-12b", 12143185920, 2 * 40 * 8 * 160 * 2},
    {"exaone-3.5-7.8b", 7818448896, 2 * 32 * 8 * 128 * 2},
    {"exaone-4.0-32b", 32003216384, 2 * 64 * 8 * 128 * 2},
    {"exaone-4.0-1.2b", 1279391488, 2 * 30 * 8 * 64 * 2},
    {"hunyuan-7b", 7504568320, 2 * 32 * 8 * 128 * 2},
    {"hunyuan-a13b", 80393183232, 2 * 32 * 8 * 128 * 2},
    {"ernie-4.5-0.3b", 360748032, 2 * 18 * 2 * 128 * 2},
    {"olmoe-1b-7b", 6919161856, 2 * 16 * 16 * 128 * 2},
    {"granite-3.1-3b-a800m", 3298793472, 2 * 32 * 8 * 64 * 2},
    {"dbrx", 131596523520, 2 * 40 * 8 * 128 * 2},
    {"minitron-4b", 4190509056, 2 * 32 * 8 * 128 * 2},
    {"nemotron-4-340b", 341029195776, 2 * 96 * 8 * 192 * 2},
    {"mimo-7b", 7622619136, 2 * 36 * 8 * 128 * 2},
    {"phi-2", 2779683840, 2 * 32 * 32 * 80 * 2},
    {"glm-4.7-flash", 29943390976, 47 * (512 + 64) * 2},
    {"longcat-flash", 560664958976, 56 * (512 + 64) * 2},
    {"kimi-vl-a3b", 15960108544, 27 * (512 + 64) * 2},
    {"kimi-k2.5", 1026408209408, 61 * (512 + 64) * 2},
    {"glm-4.1v-9b", 9400279040, 2 * 40 * 2 * 128 * 2},
    {"glm-4.5v", 106852245504, 2 * 46 * 8 * 128 * 2},
    {"internvl2.5-8b", 7737782272, 2 * 32 * 8 * 128 * 2},
    {"internvl3-8b-hf", 7612820992, 2 * 28 * 4 * 128 * 2},
    {"llava-1.5-7b", 6738939904, 2 * 32 * 32 * 128 * 2},
    {"llava-v1.6-mistral-7b", 7242256384, 2 * 32 * 8 * 128 * 2},
    {"phi-4-multimodal", 3836021760, 2 * 32 * 8 * 128 * 2},
    {"ministral-3-8b", 8489553920, 2 * 34 * 8 * 128 * 2},
    {"lfm2-1.2b", 1170340608, 2 * 6 * 8 * 64 * 2},
    {"lfm2-8b-a1b", 8339929856, 2 * 6 * 8 * 64 * 2},
    {"lfm2-vl-1.6b", 1170340608, 2 * 6 * 8 * 64 * 2},
    {"minimax-text-01", 456089655296, 2 * 10 * 8 * 128 * 2},
    {"minimax-text-01-hf", 456089655296, 2 * 10 * 8 * 128 * 2},
    {"minimax-m1", 456089655296, 2 * 10 * 8 * 128 * 2},
    {"jamba-v0.1", 51570323328, 2 * 4 * 8 * 128 * 2},
    {"jamba-1.5-large", 398555145696, 2 * 9 * 8 * 128 * 2},
    {"jamba-reasoning-3b", 3029337472, 2 * 2 * 1 * 128 * 2},
    {"falcon-h1-0.5b", 521411104, 2 * 36 * 2 * 64 * 2},
    {"falcon-h1-34b", 33642221312, 2 * 72 * 4 * 128 * 2},
    {"kimi-linear-48b-a3b", 49122675072, 7 * (512 + 64) * 2},
};

static struct model load_type(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/cost/data/huggingface/%s.json", name);
    return load_model(path);
}

Test(huggingface_types, sizes)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct model model = load_type(published[i].name);
        cr_expect_eq(model_parameters(&model), published[i].parameters, "%s: %lld, %lld more",
                     published[i].name, (long long)model_parameters(&model),
                     (long long)(model_parameters(&model) - published[i].parameters));
        cr_expect_eq(model_kv_bytes_per_token(&model, 1), published[i].kv_bytes, "%s: %lld",
                     published[i].name, (long long)model_kv_bytes_per_token(&model, 1));
    }
}

/* By hand, since transformers has no such type: 61 layers with 64 queries of 256 made of a latent
 * of 2048, which has a norm, and one key and value; 56 with 48 experts of 5120 and a shared one,
 * five with an MLP of 18432. StepFun: 316 billion parameters without the image encoder. */
Test(huggingface_types, step3_to_the_parameter)
{
    const struct model model = load_type("step3");
    const int64_t d = 7168, heads = 64 * 256;
    const int64_t attention = d * (2048 + 2 * 256) + 2048 * heads + heads * d + 2048;
    const int64_t experts = 49 * 3 * d * 5120 + 48 * d, dense = 3 * d * 18432;
    const int64_t all = 2 * 128815 * d + d + 61 * (attention + 2 * d) + 56 * experts + 5 * dense;
    cr_expect_eq(model_parameters(&model), all, "%lld", (long long)model_parameters(&model));
    cr_expect_eq((all + 500000000) / 1000000000, 316);
    cr_expect_eq(model_kv_bytes_per_token(&model, 1), 2 * 61 * 256 * 2);
    /* ranks share the heads, and copy the projections to the latent, the key and the value */
    cr_expect_eq(model_matrices_bytes(&model, 4),
                 2 * (61 * (d * (2048 + 2 * 256) + (2048 + d) * heads / 4) +
                      (56 * 49 * 3 * d * 5120 + 5 * dense) / 4));
}

/* inclusionAI/Ling-mini-2.0, of 16 billion parameters: 20 layers of 16 and 4 heads of 128 with
 * norms of queries and keys, the first with an MLP of 5120, the others with 256 experts of 512 and
 * a shared one. */
Test(huggingface_types, ling_to_the_parameter)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"bailing_moe\", \"architectures\": [\"BailingMoeV2ForCausalLM\"],"
        " \"num_hidden_layers\": 20, \"hidden_size\": 2048, \"intermediate_size\": 5120,"
        " \"first_k_dense_replace\": 1, \"moe_intermediate_size\": 512,"
        " \"moe_shared_expert_intermediate_size\": 512, \"num_shared_experts\": 1,"
        " \"num_experts\": 256, \"num_experts_per_tok\": 8, \"num_attention_heads\": 16,"
        " \"num_key_value_heads\": 4, \"head_dim\": 128, \"use_qk_norm\": true,"
        " \"max_position_embeddings\": 32768, \"tie_word_embeddings\": false,"
        " \"vocab_size\": 157184}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    const int64_t d = 2048, attention = d * (16 + 2 * 4) * 128 + 16 * 128 * d + 2 * 128;
    const int64_t all = 2 * 157184 * d + d + 20 * (attention + 2 * d) + 3 * d * 5120 +
                        19 * (3 * d * 512 * 257 + 256 * d);
    cr_expect_eq(model_parameters(&model), all, "%lld", (long long)model_parameters(&model));
    cr_expect_eq((all + 500000000) / 1000000000, 16);
    cr_expect_eq(model_kv_bytes_per_token(&model, 1), 2 * 20 * 4 * 128 * 2);
    expect_config_json_refused("{\"model_type\": \"bailing_hybrid\"}",
                               "linear attention in the others");
    expect_config_json_refused("{\"model_type\": \"bailing_moe_linear\"}", "groups of keys");
}

/* zai-org/GLM-5.2: of 78 layers the first three and each fourth behind them pick tokens, the others
 * take those. A token has a latent of 512 and 64 of two bytes in each layer, and in those 21 a key
 * of 128 bytes and a scale of 4. GLM-5.1, with the same shapes, has an indexer in each. */
Test(huggingface_types, shared_indexers)
{
#define GLM_5                                                                                      \
    "{\"model_type\": \"glm_moe_dsa\", \"hidden_size\": 6144, \"num_hidden_layers\": 78,"          \
    " \"num_attention_heads\": 64, \"q_lora_rank\": 2048, \"kv_lora_rank\": 512,"                  \
    " \"qk_nope_head_dim\": 192, \"qk_rope_head_dim\": 64, \"v_head_dim\": 256,"                   \
    " \"vocab_size\": 154880, \"max_position_embeddings\": 1048576, \"n_routed_experts\": 256,"    \
    " \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048,"       \
    " \"first_k_dense_replace\": 3, \"intermediate_size\": 12288, \"index_head_dim\": 128,"        \
    " \"index_n_heads\": 32, \"index_topk\": 2048"
    struct model each, some, listed;
    struct ifl_error error;
    char text[4096] = GLM_5 ", \"indexer_types\": [";
    cr_assert_eq(load_config_json(GLM_5 "}", &each, &error), 0, "%s", error.text);
    cr_assert_eq(load_config_json(GLM_5 ", \"index_topk_freq\": 4, \"index_skip_topk_offset\": 3}",
                                  &some, &error),
                 0, "%s", error.text);
    for (int i = 0; i < 78; i++)
        strcat(text, i < 3 || i % 4 == 2 ? "\"full\"," : "\"shared\",");
    text[strlen(text) - 1] = ']';
    strcat(text, "}");
    cr_assert_eq(load_config_json(text, &listed, &error), 0, "%s", error.text);
    cr_expect(some.index_layers == 21 && listed.index_layers == 21 && each.index_layers == 0);
    cr_expect_eq(model_kv_bytes_per_token(&each, 1), 78 * (576 * 2 + 132));
    cr_expect_eq(model_kv_bytes_per_token(&some, 8), 78 * 576 * 2 + 21 * 132);
    const int64_t indexer = 32 * 128 * 2048 + (32 + 128) * 6144;
    cr_expect_eq(model_parameters(&each) - model_parameters(&some), 57 * indexer);
    cr_expect_eq(model_parameters(&some), model_parameters(&listed));
}

/* The text part of a file with images has a type of its own: mistralai/Mistral-Small-4-119B-2603
 * has latent attention and experts in all 36 layers, where Mistral Small 3.1 is dense. */
Test(huggingface_types, mistral_small_4_to_the_parameter)
{
    struct model model;
    struct ifl_error error;
    const char *text =
        "{\"model_type\": \"mistral3\", \"vision_config\": {}, \"text_config\": {"
        " \"model_type\": \"mistral4\", \"hidden_size\": 4096, \"num_hidden_layers\": 36,"
        " \"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"kv_lora_rank\": 256,"
        " \"q_lora_rank\": 1024, \"qk_nope_head_dim\": 64, \"qk_rope_head_dim\": 64,"
        " \"v_head_dim\": 128, \"n_routed_experts\": 128, \"num_experts_per_tok\": 4,"
        " \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048, \"intermediate_size\": 12288,"
        " \"first_k_dense_replace\": 0, \"vocab_size\": 131072,"
        " \"max_position_embeddings\": 1048576}}";
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    const int64_t d = 4096, queries = d * 1024 + 1024 + 1024 * 32 * 128;
    const int64_t latent = d * (256 + 64) + 256 + 256 * 32 * (64 + 128);
    const int64_t experts = 129 * 3 * d * 2048 + 128 * d;
    const int64_t all =
        2 * 131072 * d + d + 36 * (queries + latent + 32 * 128 * d + 2 * d + experts);
    cr_expect_eq(model_parameters(&model), all, "%lld", (long long)model_parameters(&model));
    cr_expect_eq((all + 500000000) / 1000000000, 119);
    cr_expect_eq(model_kv_bytes_per_token(&model, 1), 36 * (256 + 64) * 2);
    expect_config_json_refused(
        "{\"model_type\": \"mistral3\", \"text_config\": {\"model_type\": \"mistral9\"}}",
        "model_type is \"mistral9\"");
    expect_config_json_refused(
        "{\"model_type\": \"qwen3_vl\", \"text_config\": {\"model_type\": \"gemma3n\"}}",
        "AltUp, are not modelled");
}

/* Parameters that a token uses, as their cards say, in 10^9: those of Qwen2-57B-A14B, Phi-3.5-MoE,
 * Hunyuan-A13B, OLMoE-1B-7B, granite-3.1-3b-a800m, dbrx, Kimi-VL-A3B, Kimi-K2.5, LongCat-Flash,
 * LFM2-8B-A1B, MiniMax-Text-01, Jamba-v0.1, AI21-Jamba-Large-1.5, Kimi-Linear-48B-A3B and step3.
 * Some cards count the input embedding. */
Test(huggingface_types, active_sizes)
{
    static const struct {
        const char *name;
        double active_b;
    } of[] = {{"qwen2-57b-a14b", 14},
              {"phi-3.5-moe", 6.6},
              {"hunyuan-a13b", 13},
              {"olmoe-1b-7b", 1.3},
              {"granite-3.1-3b-a800m", 0.8},
              {"dbrx", 36},
              {"kimi-vl-a3b", 2.8},
              {"kimi-k2.5", 32},
              {"longcat-flash", 27},
              {"lfm2-8b-a1b", 1.5},
              {"minimax-text-01", 45.9},
              {"jamba-v0.1", 12},
              {"jamba-1.5-large", 94},
              {"kimi-linear-48b-a3b", 3},
              {"step3", 38}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct model model = load_type(of[i].name);
        const double active_b = (double)model_active_parameters(&model) / 1e9;
        cr_expect(active_b > 0.85 * of[i].active_b && active_b < 1.15 * of[i].active_b, "%s: %.2f",
                  of[i].name, active_b);
    }
}

static void expect_windows(const char *name, int32_t layers, int32_t tokens)
{
    const struct model model = load_type(name);
    cr_expect(model.window_layers == layers && model.window_tokens == tokens, "%s: %d, %d", name,
              model.window_layers, model.window_tokens);
}

/* Three of four layers, all, or none: a window as long as the context, or none in the file. */
Test(huggingface_types, windows)
{
    expect_windows("command-r7b", 24, 4096);
    expect_windows("command-a", 48, 4096);
    expect_windows("exaone-4.0-32b", 48, 4096);
    expect_windows("exaone-4.0-1.2b", 0, 0);
    expect_windows("starcoder2-3b", 30, 4096);
    expect_windows("phi-3.5-moe", 0, 0);
    expect_windows("qwen2-57b-a14b", 0, 0);
}

/* Dense layers, experts and shared experts, in each model's own terms. */
Test(huggingface_types, experts)
{
    const struct model glm = load_type("glm-4.7-flash"), cat = load_type("longcat-flash");
    const struct model hunyuan = load_type("hunyuan-a13b");
    cr_expect(glm.first_dense_layers == 1 && glm.d_ffn_dense == 10240 && glm.shared_experts == 1);
    cr_expect(cat.layers == 56 && cat.first_dense_layers == 28 && cat.d_ffn_shared == 12288);
    cr_expect_eq(cat.experts_per_token, 8); /* 12 x 512 / 768, the others pass a token on */
    cr_expect(hunyuan.experts_per_token == 8 && hunyuan.d_ffn_shared == 3072);
    const struct model falcon = load_type("falcon-7b");
    cr_expect(falcon.n_kv_heads == 1 && falcon.mlp == MODEL_MLP_PLAIN && !falcon.mlp_bias);
}

/* A stage of a pipeline has its share of the vectors that no field names. */
Test(huggingface_types, stages)
{
    const struct model model = load_type("command-r");
    struct model stage;
    model_stage(&model, 10, &stage);
    cr_expect_eq(stage.other_parameters, -10 * 8192);
}

Test(huggingface_types, misspelt)
{
    expect_config_json_refused("{\"model_type\": \"qwen2_mo\"}", "; did you mean qwen2_moe?");
    expect_config_json_refused("{\"model_type\": \"glm4v-moe\"}", "; did you mean glm4v_moe?");
    expect_config_json_refused(
        "{\"model_type\": \"a_type_that_is_longer_than_any_other_and_longer_than_"
        "an_error_shows_of_it_and_goes_on\"}",
        "more (docs/formats.md)");
    expect_config_json_refused(
        "{\"model_type\": \"internvl_chat\", \"llm_config\": {\"model_type\": \"qwen\"}}",
        "model_type is \"qwen\", expected one of");
}

/* Each for a reason of its own, also where the text part stands by itself. */
Test(huggingface_types, kinds_of_layers_that_are_not_modelled)
{
    expect_config_json_refused("{\"model_type\": \"mllama\"}",
                               "model_type is \"mllama\", expected layers that attend to the text: "
                               "attention to images in some layers is not modelled");
    expect_config_json_refused("{\"model_type\": \"mllama_text_model\"}", "attention to images");
    expect_config_json_refused("{\"model_type\": \"gemma3n\"}", "AltUp, are not modelled");
    expect_config_json_refused("{\"model_type\": \"gemma3n_text\"}", "an embedding for each layer");
    expect_config_json_refused("{\"model_type\": \"mimo_v2_flash\"}", "values narrower than keys");
    expect_config_json_refused("{\"model_type\": \"gemma4_text\"}",
                               "widths that depend on the layer");
    expect_config_json_refused("{\"model_type\": \"deepseek_v4\"}", "compressed by other ratios");
    expect_config_json_refused("{\"model_type\": \"minimax_m3_vl\"}", "an indexer picks are not");
    expect_config_json_refused("{\"model_type\": \"kimi_k3\"}", "residuals of blocks of layers");
    expect_config_json_refused("{\"model_type\": \"step3p7\"}", "numbers that depend on the layer");
    expect_config_json_refused("{\"model_type\": \"nemotron-nas\"}",
                               "sizes that depend on the layer");
}

static void expect_suggestion(const char *type, const char *near)
{
    char text[64];
    struct model model;
    struct ifl_error error = {0};
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", type);
    cr_assert_lt(load_config_json(text, &model, &error), 0);
    const char *found = strstr(error.text, "did you mean ");
    cr_expect_eq(found != NULL, near != NULL, "%s: %s", type, error.text);
    if (found && near)
        cr_expect(strstr(found, near), "%s: %s", type, found);
}

/* A later generation of a model is another model. */
Test(huggingface_types, suggestions_are_of_misspelt_names)
{
    expect_suggestion("kimi_k3", NULL);
    expect_suggestion("deepseek_v4", NULL);
    expect_suggestion("minimax_m3", NULL);
    expect_suggestion("qwen3moe", "qwen3_moe");
    expect_suggestion("mistrall", "mistral");
}

Test(huggingface_types, refused)
{
#define SHAPE                                                                                      \
    ", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"                 \
    " \"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 100,"                 \
    " \"max_position_embeddings\": 64"
    expect_config_json_refused("{\"model_type\": \"hunyuan_v1_moe\"" SHAPE
                               ", \"num_experts\": 4, \"moe_topk\": [2, 1]}",
                               "other numbers of experts");
    expect_config_json_refused("{\"model_type\": \"hunyuan_v1_moe\"" SHAPE
                               ", \"num_experts\": 4, \"moe_topk\": []}",
                               "moe_topk is ");
    expect_config_json_refused(
        "{\"model_type\": \"exaone4\"" SHAPE
        ", \"sliding_window\": 8, \"sliding_window_pattern\": \"LGLG\"}",
        "sliding_window_pattern is \"LGLG\", expected a number, or letters L");
    expect_config_json_refused(
        "{\"model_type\": \"dbrx\", \"n_layers\": 2, \"d_model\": 64, \"n_heads\": 4}",
        "attn_config is missing, expected an object");
    expect_config_json_refused("{\"model_type\": \"internlm3\"" SHAPE ", \"bias\": true}",
                               "bias is true without qkv_bias");
    expect_config_json_refused("{\"model_type\": \"mimo\"" SHAPE ", \"use_sliding_window\": true}",
                               "use_sliding_window is true, expected false");
}

/* Sizes of which products or sums overflow, and layers that there are not. */
Test(huggingface_types, absurd)
{
    char many[1002] = "";
    memset(many, 'M', 1001);
    char text[1400];
    snprintf(text, sizeof text,
             "{\"model_type\": \"nemotron_h\"" SHAPE ", \"hybrid_override_pattern\": \"%s\"}",
             many);
    expect_config_json_refused(text, "the pattern has more than 1000 layers");
    expect_config_json_refused(
        "{\"model_type\": \"mixtral\", \"hidden_size\": 1048576, \"num_hidden_layers\": 1000,"
        " \"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 128,"
        " \"intermediate_size\": 1048576, \"vocab_size\": 1000, \"num_local_experts\": 2048,"
        " \"num_experts_per_tok\": 1, \"max_position_embeddings\": 64}",
        "the model has 6.76e+18 parameters, expected at most 1e+15");
    expect_config_json_refused(
        "{\"model_type\": \"bamba\"" SHAPE ", \"attn_layer_indices\": [0, 0]}",
        "attn_layer_indices is 0, expected places of layers from 0 on, in order");
    expect_config_json_refused("{\"model_type\": \"bamba\"" SHAPE
                               ", \"attn_layer_indices\": [\"a\"]}",
                               "attn_layer_indices is \"a\"");
    expect_config_json_refused("{\"model_type\": \"llama\"" SHAPE
                               ", \"quantization_config\": {\"quant_method\": "
                               "\"gptq\", \"bits\": 4, \"group_size\": 65537}}",
                               "another group_size, expected a number from 1 to 65536");
    expect_config_json_refused(
        "{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\"" SHAPE
        ", \"head_dim\": 16}, \"vision_config\": {\"patch_size\": 1, \"image_size\": 46341,"
        " \"num_hidden_layers\": 1, \"hidden_size\": 64, \"intermediate_size\": 64}}",
        "image_size is 46341, expected a whole number from 1 to 16384");
}

/* A file without a width that others are divided by, and with modules in 16 bits, whose share is
 * computed from the widths. */
Test(huggingface_types, a_quantised_file_without_heads)
{
    expect_config_json_refused(
        "{\"model_type\": \"granite\", \"hidden_size\": 64, \"num_attention_heads\": 0,"
        " \"num_hidden_layers\": 2, \"quantization_config\": {\"quant_method\": \"fp8\","
        " \"ignored_layers\": [\"self_attn\"]}}",
        "num_attention_heads is 0, expected a whole number from 1");
}

/* Biases of the other kinds, counted by hand. */
Test(huggingface_types, biases)
{
    struct model plain, biased;
    struct ifl_error error;
    cr_assert_eq(load_config_json("{\"model_type\": \"internlm3\", \"head_dim\": 16" SHAPE "}",
                                  &plain, &error),
                 0, "%s", error.text);
    cr_assert_eq(load_config_json("{\"model_type\": \"internlm3\", \"head_dim\": 16,"
                                  " \"qkv_bias\": true, \"bias\": true" SHAPE "}",
                                  &biased, &error),
                 0, "%s", error.text);
    /* a layer: queries 64, keys and values 32 each, out 64, gate and up 96 each, down 64 */
    cr_expect_eq(model_parameters(&biased) - model_parameters(&plain),
                 2 * (64 + 2 * 32 + 64 + 2 * 96 + 64));
}

/* Modules that a quantised checkpoint leaves in 16 bits are found by the names of its type. */
Test(huggingface_types, plain_parts)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json("{\"model_type\": \"hunyuan_v1_moe\"" SHAPE
                                  ", \"num_experts\": 4, \"moe_topk\": 2,"
                                  " \"quantization_config\": {\"quant_method\": \"fp8\","
                                  " \"ignored_layers\": [\"mlp.shared_mlp\"]}}",
                                  &model, &error),
                 0, "%s", error.text);
    cr_expect_eq(model.plain_frac[MODEL_PART_SHARED], 1);
    cr_expect_eq(model.plain_frac[MODEL_PART_EXPERTS], 0);
    cr_assert_eq(load_config_json("{\"model_type\": \"phimoe\"" SHAPE
                                  ", \"num_local_experts\": 4, \"quantization_config\":"
                                  " {\"quant_method\": \"fp8\","
                                  " \"ignored_layers\": [\"block_sparse_moe\"]}}",
                                  &model, &error),
                 0, "%s", error.text);
    cr_expect_eq(model.plain_frac[MODEL_PART_EXPERTS], 1);
    cr_expect_eq(model.plain_frac[MODEL_PART_ATTENTION], 0);
}
