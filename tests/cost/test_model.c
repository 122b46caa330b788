#include <math.h>
#include <string.h>

#include "cost/stages.h"

#include "loading.h"

/* Counts as the checkpoints' owners and the hub's safetensors headers state them; OPT and GPT-3 by
 * hand: L (12 d^2 + 13 d) + (vocab + positions) d + 2 d. */
static const struct published {
    const char *name;
    int64_t parameters, kv_bytes_per_token;
} published[] = {
    {"llama-2-7b", 6738415616, 524288},        {"llama-2-13b", 13015864320, 819200},
    {"llama-2-70b", 68976648192, 327680},      {"llama-3-8b", 8030261248, 131072},
    {"llama-3-70b", 70553706496, 327680},      {"codellama-34b", 33743970304, 196608},
    {"mistral-7b", 7241732096, 131072},        {"qwen3-8b", 8190735360, 147456},
    {"qwen3-32b", 32762123264, 262144},        {"falcon-180b", 179522565120, 163840},
    {"yi-34b", 34388917248, 245760},           {"bloom-176b", 176247271424, 4014080},
    {"opt-13b", 12853473280, 819200},          {"opt-66b", 65719701504, 2359296},
    {"opt-175b", 174604468224, 4718592},       {"gpt3-175b", 174604259328, 4718592},
    {"qwen2.5-1.5b", 1543714304, 28672},       {"qwen2.5-7b", 7615616512, 57344},
    {"qwen2.5-14b", 14770033664, 196608},      {"qwen2.5-32b", 32763876352, 262144},
    {"qwen2.5-72b", 72706203648, 327680},      {"deepseek-r1-distill-qwen-1.5b", 1777088000, 28672},
    {"qwen3-0.6b", 596049920, 114688},         {"qwen3-4b", 4022468096, 147456},
    {"mistral-7b-v0.3", 7248023552, 131072},   {"mistral-small-24b", 23572403200, 163840},
    {"mistral-nemo-12b", 12247782400, 163840}, {"phi-4", 14659507200, 204800},
    {"llama-3.2-1b", 1235814400, 32768},       {"llama-3.2-3b", 3212749824, 114688},
    {"gemma-2-27b", 27227128320, 376832},      {"qwen3-coder-480b-a35b", 480154875392, 253952},
};

Test(model, parameters_and_kv_are_the_published_ones)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct model model = load_model(published[i].name);
        cr_expect_eq(model_parameters(&model), published[i].parameters, "%s: %lld", model.name,
                     (long long)model_parameters(&model));
        cr_expect_eq(model_kv_bytes_per_token(&model, 1), published[i].kv_bytes_per_token, "%s",
                     model.name);
        cr_expect_str_eq(model.name, published[i].name);
        cr_expect_gt(strlen(model.about), 20);
    }
}

/* The hub's counts have a bias for each expert, too; those of GLM-4.5 and 4.5-Air a layer for
 * multi-token prediction, with embeddings of its own and, beside what a layer has, a matrix of
 * 2 d x d and three norms; those of MiniMax-M2 norms of all 48 + 8 heads of 128, of which one
 * head's two count here. */
Test(model, counts_of_the_hub_have_parts_that_are_not_modelled)
{
    static const struct {
        const char *name;
        int64_t hub, biases, layer, norms, kv_bytes_per_token;
    } of[] = {{"glm-4.5", 358337791296, 90 * 160,
               2 * 5120LL * (151552 + 5120) + 3 * 5120 + 5120LL * (2 * 96 + 2 * 8) * 128 +
                   (96 + 2 * 8 + 2) * 128 + 2 * 5120 + 161 * 3LL * 5120 * 1536 + 160 * 5120,
               0, 376832},
              {"glm-4.5-air", 110468824832, 46 * 128,
               2 * 4096LL * (151552 + 4096) + 3 * 4096 + 4096LL * (2 * 96 + 2 * 8) * 128 +
                   (96 + 2 * 8) * 128 + 2 * 4096 + 129 * 3LL * 4096 * 1408 + 128 * 4096,
               0, 188416},
              {"minimax-m2", 228689764864, 62 * 256, 0, 62 * (48 + 8 - 2) * 128, 253952}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct model model = load_model(of[i].name);
        cr_expect_eq(model_parameters(&model), of[i].hub - of[i].biases - of[i].layer - of[i].norms,
                     "%s: %lld", model.name, (long long)model_parameters(&model));
        cr_expect_eq(model_kv_bytes_per_token(&model, 1), of[i].kv_bytes_per_token, "%s",
                     model.name);
    }
}

/* 64 query and 8 KV heads of 128 on 8 ranks: 8 and 1 a rank; FFN 28672 / 8 = 3584. */
Test(model, linears_of_a_rank)
{
    const struct model model = load_model("llama-3-70b");
    struct model_linear of[MODEL_LINEARS];
    model_layer_linears(&model, 8, of);
    const int64_t expected[MODEL_LINEARS][2] = {
        {(8 + 2) * 128, 8192}, {8192, 8 * 128}, {2 * 3584, 8192}, {8192, 3584}};
    for (int i = 0; i < MODEL_LINEARS; i++) {
        cr_expect_eq(of[i].n, expected[i][0], "%s", of[i].name);
        cr_expect_eq(of[i].k, expected[i][1], "%s", of[i].name);
    }
    cr_expect_eq(model_lm_head(&model, 8).n, 16032);
}

Test(model, kv_heads_are_copied_beyond_their_number)
{
    const struct model model = load_model("llama-3-70b");
    cr_expect_eq(model_kv_bytes_per_token(&model, 8), 40960);
    cr_expect_eq(model_kv_bytes_per_token(&model, 16), 40960);
    cr_expect_eq(model_kv_heads_per_rank(&model, 16), 1);
}

/* Ranks repeat norms alone: 80 x 2 + 1 of 8192 elements in bf16. */
Test(model, ranks_share_the_matrices_and_repeat_the_norms)
{
    const struct model model = load_model("llama-3-70b");
    const int64_t norms = (80 * 2 + 1) * 8192 * 2;
    cr_expect_eq(model_weight_bytes(&model, 1), 2 * 70553706496);
    cr_expect_eq(4 * model_weight_bytes(&model, 4), model_weight_bytes(&model, 1) + 3 * norms);
}

/* Llama-2-7B has 2 x 32 layers x 32 heads x 128 = 262144 elements of K/V a token. A scale and a
 * zero point of 16 bits each take 4 bytes: for a head of 128 elements (LMDeploy), for 64 (FlexGen),
 * for 32 (KIVI, in which keys share them across tokens); TensorRT-LLM has a scale for the whole
 * tensor. */
Test(model, integers_of_kv_share_scales)
{
    static const struct {
        int32_t bits, group, scale_bytes;
        int64_t token_bytes;
    } of[] = {{0, 0, 0, 2 * 262144},          {8, 128, 0, 262144},
              {8, 128, 4, 262144 + 2048 * 4}, {4, 128, 4, 131072 + 2048 * 4},
              {4, 64, 4, 131072 + 4096 * 4},  {4, 32, 4, 131072 + 8192 * 4}};
    struct model model = load_model("llama-2-7b");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        model.kv_bits = of[i].bits;
        model.kv_group_elements = of[i].group;
        model.kv_scale_bytes = of[i].scale_bytes;
        cr_expect_eq(model_kv_bytes_per_token(&model, 1), of[i].token_bytes, "%zu", i);
        cr_expect_eq(model_kv_bytes_per_token(&model, 4), of[i].token_bytes / 4, "%zu", i);
        cr_expect_float_eq(model_kv_element_bytes(&model), (double)of[i].token_bytes / 262144,
                           1e-12);
    }
}

Test(model, uneven_shares_are_refused)
{
    const struct model model = load_model("yi-34b"); /* 56 query heads */
    struct ifl_error error = {0};
    cr_expect_eq(model_check_parallel(&model, 8, &error), 0);
    cr_expect_eq(model_check_parallel(&model, 16, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "parallel.tensor is 16"));
    cr_expect_eq(model_check_parallel(&model, 0, &error), IFL_E_INPUT);
    cr_expect_eq(model_check_parallel(&model, 3, &error), IFL_E_INPUT);
}

static const char *const head = "layers: 2\nd_model: 64\nn_q_heads: 4\nd_ffn: 128\n";

static void expect_error(const char *tail, int line, const char *words)
{
    char text[512], path[64];
    struct model model;
    struct ifl_error error = {0};
    snprintf(text, sizeof text, "%s%s", head, tail);
    write_temporary("inflight-model", "yaml", text, path);
    cr_expect_eq(model_load(path, &model, &error), IFL_E_INPUT, "%s", tail);
    cr_expect_eq(error.line, line, "%s: line %d", tail, error.line);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
    cr_expect_str_eq(error.file, path);
    remove(path);
}

Test(model, wrong_files_are_named_by_line)
{
    expect_error("vocab: many\nmax_model_len: 64\n", 5, "vocab");
    expect_error("vocab: 0\nmax_model_len: 64\n", 5, "vocab");
    expect_error("vocab: 100\nmax_model_len: 64\nn_kv_heads: 3\n", 7, "divisor of the 4 query");
    expect_error("vocab: 100\nmax_model_len: 64\nn_kv_head: 2\n", 7, "n_kv_heads");
    expect_error("vocab: 100\nmax_model_len: 64\nmlp: gate\n", 7, "gated");
    expect_error("vocab: 100\n", 1, "max_model_len is missing");
}

/* 80 layers of 855,638,016 elements and 16,384 of norms, two embeddings of 128,256 x 8192 and a
 * last norm: in nvfp4 9 bytes for 16 of the former, two each of the rest. */
Test(model, weights_in_nvfp4)
{
    struct model model = load_model("llama-3.1-70b");
    const int64_t plain = 80 * 16384 + 2 * 128256 * 8192LL + 8192;
    model_set_dtype(&model, MODEL_DTYPE_NVFP4);
    cr_expect_eq(model_weight_bytes(&model, 1), 80 * 855638016LL / 16 * 9 + 2 * plain);
}

/* DeepSeek-V3's attention stays in 16 bits: 187,105,280 elements a layer. */
Test(model, latent_attention_is_not_in_nvfp4)
{
    struct model model = load_model("deepseek-v3");
    const int64_t attention = 61 * 187105280LL;
    model_set_dtype(&model, MODEL_DTYPE_FP8);
    const int64_t others = model_matrices_bytes(&model, 1) - attention;
    model_set_dtype(&model, MODEL_DTYPE_NVFP4);
    cr_expect_eq(model_matrices_bytes(&model, 1), others / 16 * 9 + 2 * attention);
}

Test(model, unknown_name_is_an_input_error)
{
    struct model model;
    struct ifl_error error = {0};
    cr_expect_eq(model_load("llama-2-8b", &model, &error), IFL_E_INPUT);
    cr_expect_eq(model_load("/nonexistent/model.yaml", &model, &error) < 0, 1);
    cr_expect_eq(model_load("/nonexistent/config.json", &model, &error), IFL_E_INPUT);
}

/* 8 experts of 3 x 4096 x 14336, 41.9e6 of attention, a router and two norms a layer: 46.7e9, as
 * its paper has it; 12.9e9 of them are active. */
Test(model, experts_are_counted)
{
    const struct model model = load_model("mixtral-8x7b");
    const int64_t attention = 4096LL * 128 * (32 + 2 * 8) + 4096LL * 4096;
    const int64_t layer = 8 * 3LL * 4096 * 14336 + attention + 8 * 4096 + 2 * 4096;
    cr_expect_eq(model_parameters(&model), 2LL * 32000 * 4096 + 32 * layer + 4096);
    cr_expect_lt(fabs((double)model_parameters(&model) / 46.7e9 - 1), 0.001);
    const struct model qwen = load_model("qwen3-30b-a3b");
    cr_expect_lt(fabs((double)model_parameters(&qwen) / 30.5e9 - 1), 0.002);
}

/* Means of 3,000 draws at random of the experts that each of the ranks reads, the most of them. The
 * normal law leaves out that few picks are skewed. */
Test(model, most_experts_of_a_rank)
{
    static const struct {
        int32_t n_experts, k, n_ranks;
        double tokens, drawn;
    } rows[] = {{128, 8, 8, 1, 2.53},  {128, 8, 8, 8, 9.27}, {128, 8, 2, 8, 28.02},
                {128, 8, 8, 64, 16.0}, {16, 1, 4, 8, 2.63},  {16, 1, 8, 8, 1.82},
                {256, 8, 8, 8, 10.60}, {128, 1, 8, 8, 2.48}, {256, 8, 16, 64, 15.83}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model = {.n_experts = rows[i].n_experts, .experts_per_token = rows[i].k};
        cr_expect_eq(model_most_experts(&model, rows[i].tokens),
                     model_distinct_experts(&model, rows[i].tokens));
        model.n_rank_experts = rows[i].n_experts / rows[i].n_ranks;
        const double off = model_most_experts(&model, rows[i].tokens) / rows[i].drawn - 1;
        cr_expect(off > -0.13 && off < 0.02, "row %zu: %+.3f", i, off);
    }
}

/* One token reads its picks; two read k (2 - k/E); very many read all. */
Test(model, distinct_experts)
{
    const struct model model = load_model("mixtral-8x7b"), dense = load_model("llama-2-7b");
    cr_expect_float_eq(model_distinct_experts(&model, 1), 2, 1e-12);
    cr_expect_float_eq(model_distinct_experts(&model, 2), 3.5, 1e-12);
    cr_expect_float_eq(model_distinct_experts(&model, 1e4), 8, 1e-12);
    cr_expect_eq(model_distinct_experts(&dense, 7), 1);
}

/* The layers' matrices shrink, the embeddings do not. 128 integers of 4 bits have 20 of a scale and
 * a zero. */
Test(model, quantised_weights)
{
    struct model model = load_model("llama-2-7b");
    const int64_t plain = model_weight_bytes(&model, 1);
    const int64_t matrices = 32 * (4LL * 4096 * 4096 + 3LL * 4096 * 11008);
    model.quantization = MODEL_FP8;
    cr_expect_eq(model_weight_bytes(&model, 1), plain - matrices);
    model.quantization = MODEL_INT8;
    cr_expect_eq(model_weight_bytes(&model, 1), plain - matrices);
    model.quantization = MODEL_INT4;
    cr_expect_eq(model_weight_bytes(&model, 1), plain - matrices * 3 / 2 + matrices / 128 * 20 / 8);
}

/* 32 layers in four stages of 8; of the two embeddings a stage has one. */
Test(model, a_stage_has_its_share)
{
    const struct model model = load_model("llama-2-7b");
    struct model stage;
    struct ifl_error error = {0};
    struct stages stages;
    cr_assert_eq(stages_cut(&stages, 4, model.layers, "", &error), 0, "%s", error.text);
    model_stage(&model, stages_most_layers(&stages), &stage);
    cr_expect_eq(4 * model_kv_bytes_per_token(&stage, 1), model_kv_bytes_per_token(&model, 1));
    const int64_t embedding = INT64_C(2) * 32000 * 4096, norm = 2 * 4096;
    cr_expect_eq(4 * (model_weight_bytes(&stage, 1) - embedding - norm),
                 model_weight_bytes(&model, 1) - 2 * embedding - norm);
}

static void expect_layers(int32_t n, int32_t layers, const char *list, const int32_t *expected)
{
    struct stages stages;
    struct ifl_error error = {0};
    cr_assert_eq(stages_cut(&stages, n, layers, list, &error), 0, "%s", error.text);
    for (int32_t s = 0; s < n; s++)
        cr_expect_eq(stages.layers[s], expected[s], "%d layers in %d stages: stage %d has %d",
                     layers, n, s, stages.layers[s]);
}

/* What vllm/distributed/utils.py, get_pp_indices, gives for the same numbers. */
Test(model, a_rest_of_layers_goes_in_front_of_the_last_stage)
{
    expect_layers(4, 32, "", (const int32_t[]){8, 8, 8, 8});
    expect_layers(5, 32, "", (const int32_t[]){6, 6, 7, 7, 6});
    expect_layers(3, 80, "", (const int32_t[]){27, 27, 26});
    expect_layers(2, 61, "", (const int32_t[]){31, 30});
    expect_layers(3, 32, "10,11,11", (const int32_t[]){10, 11, 11});
}

Test(model, stages_that_do_not_fit_are_refused)
{
    static const char *const lists[] = {"16",  "16,15", "16,16,0", "10,11,11",
                                        "a,b", "16;16", "16,16,"};
    struct stages stages;
    struct ifl_error error = {0};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        cr_expect_eq(stages_cut(&stages, 2, 32, lists[i], &error), IFL_E_INPUT, "%s", lists[i]);
        cr_expect_not_null(strstr(error.text, "expected 2 numbers"), "%s", error.text);
    }
    cr_expect_eq(stages_cut(&stages, 33, 32, "", &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "at most the number of layers, 32"), "%s", error.text);
}

/* Llama 3 8B: 32 layers of 218,103,808 numbers in matrices, the rest of its 8,030,261,248 (the
 * model card's 8.03B) in embeddings and norms. */
Test(model, dtypes)
{
    static const struct {
        enum model_dtype dtype;
        double matrix_bytes;
        int64_t other_bytes, kv_bytes;
    } of[] = {{MODEL_DTYPE_AUTO, 2, 2, 2},
              {MODEL_DTYPE_FP32, 4, 4, 4},
              {MODEL_DTYPE_FP16, 2, 2, 2},
              {MODEL_DTYPE_BF16, 2, 2, 2},
              {MODEL_DTYPE_FP8, 1, 2, 2},
              {MODEL_DTYPE_INT8, 1, 2, 2},
              {MODEL_DTYPE_INT4, 0.5 + 20.0 / 8 / 128, 2, 2}};
    const int64_t in_matrices = 32 * INT64_C(218103808), all = INT64_C(8030261248);
    struct ifl_error error = {0};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct model model;
        cr_assert_eq(model_load("llama-3-8b", &model, &error), 0, "%s", error.text);
        model_set_dtype(&model, of[i].dtype);
        cr_expect_eq(model_weight_bytes(&model, 1),
                     (int64_t)((double)in_matrices * of[i].matrix_bytes) +
                         (all - in_matrices) * of[i].other_bytes);
        cr_expect_eq(model.kv_bytes, of[i].kv_bytes);
        model_set_dtype(&model, MODEL_DTYPE_BF16);
        cr_expect_eq(model_weight_bytes(&model, 1), 2 * all, "and back");
    }
}
