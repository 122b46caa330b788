/* Quantised checkpoints that leave modules in 16 bits: which, what they weigh, and what they cost.
 */
#include <math.h>
#include <string.h>

#include "cost/kind.h"
#include "cost/memory_engine.h"
#include "cost/module_rules.h"
#include "loading.h"

static const double gib = 1024.0 * 1024 * 1024;

/* ---- rules ---- */

static bool is_named(const char *rule, const char *name)
{
    struct module_rules rules = {0};
    cr_assert_eq(module_rules_add(&rules, rule), 0, "%s", rule);
    const int named = module_rules_name(&rules, name);
    module_rules_free(&rules);
    cr_assert_geq(named, 0, "%s", rule);
    return named;
}

/* Regular expressions as Python's re.match has them, and patterns as its fnmatch. */
Test(plain_parts, rules_and_names)
{
    static const char q[] = "model.layers.3.self_attn.q_proj",
                      expert[] = "model.layers.12.mlp.experts.0.gate_proj";
    const struct {
        const char *rule, *name;
        bool is_named;
    } of[] = {
        {"re:.*self_attn.*", q, true},
        {"re:self_attn", q, false},  /* from the beginning */
        {"re:.*self_attn", q, true}, /* not to the end */
        {"re:.*self_attn$", q, false},
        {"re:.*mlp[.]gate$", expert, false},
        {"re:^model\\.layers\\.\\d+\\.self_attn\\..*", q, true},
        {"re:model\\.layers\\.(?:1|3)\\.", q, true},
        {"re:model\\.layers\\.(?:1|2)\\.", q, false},
        {"re:.*?\\.experts\\.\\d+\\.(gate|up)_proj", expert, true},
        {"re:^(?!.*experts).*$", q, true},
        {"re:^(?!.*experts).*$", expert, false},
        {"re:model[.]layers[.][\\d]+[.]self_attn", q, true},
        {"re:model[.]layers[.][^\\d]", q, false},
        {"re:.*(?<!self_)attn[.]", q, false}, /* behind another */
        {"re:.*[.]layers[.]\\d{2}[.]", q, false},
        {"re:.*[.]layers[.]\\d{2}[.]", expert, true},
        {"-:.*attn.*", q, true},
        {"model.layers.3.self_attn.q_proj", q, true},
        {"model.layers.3.self_attn", q, true},
        {"model.layers.3.", q, true},
        {"self_attn", q, true},
        {"attn", q, false},
        {"model.layers.1", expert, false},
        {"mlp.gate", "model.layers.0.mlp.gate_proj", false},
        {"vision_tower.layers.3.self_attn.q_proj", q, false},
        {"model.layers.*.self_attn", q, true},
        {"model.layers.3.self_attn*", q, true},
        {"*.mlp.experts*", expert, true},
        {"*.mlp.experts*", q, false},
        {"Linear", q, false},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        cr_expect_eq(is_named(of[i].rule, of[i].name), of[i].is_named, "%s, %s", of[i].rule,
                     of[i].name);
}

Test(plain_parts, expressions_that_are_not_read)
{
    struct module_rules rules = {0};
    cr_expect_eq(module_rules_add(&rules, "re:(?!open"), IFL_E_INPUT);
    cr_expect_eq(module_rules_add(&rules, "re:a(b"), IFL_E_INPUT);
    cr_expect_eq(module_rules_add(&rules, "re:((a{60000}){60000}){60000}"), IFL_E_INPUT);
    cr_expect_eq(rules.n, 0);
    module_rules_free(&rules);
}

Test(plain_parts, expressions_that_take_too_long)
{
    struct module_rules rules = {0};
    cr_assert_eq(module_rules_add(&rules, "re:(a*)*(a*)*(a*)*[bd]"), 0);
    cr_expect_eq(module_rules_name(&rules, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"),
                 IFL_E_INPUT);
    module_rules_free(&rules);
}

/* ---- checkpoints ---- */

#define QWEN3_NEXT                                                                                 \
    "{\"model_type\": \"qwen3_next\", \"hidden_size\": 2048, \"num_hidden_layers\": 48,"           \
    " \"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"head_dim\": 256,"                 \
    " \"vocab_size\": 151936, \"max_position_embeddings\": 262144, \"num_experts\": 512,"          \
    " \"num_experts_per_tok\": 10, \"moe_intermediate_size\": 512,"                                \
    " \"shared_expert_intermediate_size\": 512, \"quantization_config\": {"
#define INT4_OF_32(targets)                                                                        \
    "\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {"                 \
    "\"targets\": [" targets "], \"weights\": {\"num_bits\": 4, \"type\": \"int\","                \
    " \"group_size\": 32, \"symmetric\": true, \"strategy\": \"group\"}}}"
#define ALL_BUT_EXPERTS                                                                            \
    "\"ignore\": [\"lm_head\", \"re:.*mlp[.]gate$\", \"re:.*shared_expert.*\","                    \
    " \"re:.*self_attn.*\", \"re:.*linear_attn.*\", \"re:mtp.*\"]"

static struct model read_model(const char *text)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    return model;
}

static void expect_parts(const char *text, const double expected[MODEL_PARTS])
{
    const struct model model = read_model(text);
    for (int i = 0; i < MODEL_PARTS; i++)
        cr_expect_float_eq(model.plain_frac[i], expected[i], 1e-12, "%d: %g of %s", i,
                           model.plain_frac[i], text);
}

static double weights_gib(const struct model *model, int32_t ranks)
{
    const struct platform platform = load_platform("h200-sxm");
    const struct memory_options options = {ranks, 16, 0.95};
    const struct memory_profile_run run = {8192, 8};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(
        memory_plan_engine(model, &platform, &options, MEMORY_VLLM_0_9_1, &run, &plan, &error), 0,
        "%s", error.text);
    return (double)plan.weight_bytes / gib;
}

/* Qwen3-Next-80B of vLLM 0.13.0 on two L40S (a start-up log in a public repository): 22.5313 GiB of
 * weights a rank, quantised by compressed-tensors. The checkpoint of that name with experts alone
 * in 4 bits has symmetric groups of 32 (a public recipe that follows cyankiwi's). */
Test(plain_parts, qwen3_next_in_4_bits_as_logged)
{
    const struct model some =
        read_model(QWEN3_NEXT INT4_OF_32("\"Linear\"") ", " ALL_BUT_EXPERTS "}}");
    const struct model all = read_model(QWEN3_NEXT INT4_OF_32("\"Linear\"") "}}");
    printf("# %.2f, %.2f (22.53)\n", weights_gib(&some, 2), weights_gib(&all, 2));
    cr_expect_lt(fabs(weights_gib(&some, 2) - 22.5313), 0.05, "%.3f", weights_gib(&some, 2));
    cr_expect_lt(weights_gib(&all, 2), 21.4);
    cr_expect(strstr(some.about, "16 bits: 100% of attention, 100% of states, 100% of shared"));
    cr_expect(!strstr(all.about, "16 bits"));
}

/* Llama-3-8B without `head_dim`, as its file is: 32 layers with 2 x 4096 x (4096 + 1024) elements
 * of attention in 16 bits and 3 x 4096 x 14336 of MLPs in 8, 2 x 128256 x 4096 of embeddings and 65
 * norms in 16 bits. */
Test(plain_parts, widths_that_follow_from_others)
{
    const struct model model = read_model(
        "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_hidden_layers\": 32,"
        " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
        " \"vocab_size\": 128256, \"max_position_embeddings\": 8192, \"quantization_config\": {"
        "\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"self_attn\"]}}");
    const int64_t attention = 2 * 4096 * (4096 + 1024), mlp = 3 * 4096 * 14336;
    const int64_t others = 2 * 128256 * 4096 + 65 * 4096;
    cr_expect_eq(model_weight_bytes(&model, 1), 32 * (2 * attention + mlp) + 2 * others);
}

static void expect_refused(const char *list, const char *message)
{
    char text[1024];
    snprintf(text, sizeof text, QWEN3_NEXT "\"quant_method\": \"fp8\", \"ignored_layers\": %s}}",
             list);
    expect_config_json_refused(text, message);
}

Test(plain_parts, lists_that_are_none)
{
    expect_refused("\"re:.*self_attn\"",
                   "ignored_layers is \"re:.*self_attn\", expected a list of names");
    expect_refused("[\"lm_head\", 3]", "ignored_layers is 3, expected names in the list");
}

/* The same checkpoint in the words of other formats. */
Test(plain_parts, experts_alone_by_each_format)
{
    static const double experts_alone[MODEL_PARTS] = {1, 1, 0, 1, 0}, none[MODEL_PARTS] = {0};
    expect_parts(QWEN3_NEXT INT4_OF_32("\"Linear\"") ", " ALL_BUT_EXPERTS "}}", experts_alone);
    expect_parts(QWEN3_NEXT INT4_OF_32("\"re:.*mlp\\\\.experts\\\\.\\\\d+\\\\..*\"") "}}",
                 experts_alone);
    expect_parts(QWEN3_NEXT "\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32,"
                            " \"dynamic\": {\"-:^(?!.*mlp\\\\.experts\\\\.).*\": {}}}}",
                 experts_alone);
    expect_parts(QWEN3_NEXT "\"quant_method\": \"awq\", \"bits\": 4, \"modules_to_not_convert\":"
                            " [\"self_attn\", \"linear_attn\", \"shared_expert\"]}}",
                 experts_alone);
    expect_parts(QWEN3_NEXT "\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"ignore\":"
                            " [\"*self_attn*\", \"*linear_attn*\", \"*shared_expert.*\"]}}",
                 experts_alone);
    expect_parts(QWEN3_NEXT "\"quant_method\": \"fp8\", \"ignored_layers\": null,"
                            " \"modules_to_not_convert\": [\"lm_head\", \"model.embed_tokens\","
                            " \"model.layers.0.mlp.gate\"]}}",
                 none);
}

/* Of a state's 12,352 columns in, 64 are those of two scalars for each of 32 heads; the official
 * checkpoint in fp8 leaves these out, by the names of all layers with states. */
Test(plain_parts, matrices_of_some_layers)
{
    const double in = 12352, out = 4096;
    const double of_two[MODEL_PARTS] = {0, 2 * 64 / (36 * (in + out)), 0, 0, 0};
    const double attention = 2 * 4096 + 2 * 512, q = 2 * 4096;
    const double of_q[MODEL_PARTS] = {q / (attention + 4096) / 12, 0, 0, 0, 1.0 / 48};
    expect_parts(QWEN3_NEXT "\"quant_method\": \"fp8\", \"modules_to_not_convert\":"
                            " [\"model.layers.0.linear_attn.in_proj_ba\","
                            " \"model.layers.1.linear_attn.in_proj_ba\","
                            " \"model.layers.3.linear_attn.in_proj_ba\"]}}", /* which attends */
                 of_two);
    expect_parts(QWEN3_NEXT
                 "\"quant_method\": \"fp8\", \"ignored_layers\":"
                 " [\"model.layers.7.self_attn.q_proj\", \"model.layers.0.mlp.experts\"]}}",
                 of_q);
}

/* QwenPaw-Flash-9B in 4 bits (its card): the MLPs of layers 1 to 31, 4.68 billion parameters; all
 * else has 16 bits. */
Test(plain_parts, part_of_a_model_that_reads_images)
{
    const struct model model = read_model(
        "{\"model_type\": \"qwen3_5\", \"text_config\": {\"model_type\": \"qwen3_5_text\","
        " \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 16,"
        " \"num_key_value_heads\": 4, \"head_dim\": 256, \"intermediate_size\": 12288,"
        " \"vocab_size\": 248320, \"max_position_embeddings\": 262144},"
        " \"quantization_config\": {" INT4_OF_32(
            "\"Linear\"") ", \"ignore\": ["
                          "\"re:.*visual.*\", \"model.visual.blocks.3.mlp.linear_fc1\","
                          " \"re:model[.]language_model[.]layers[.]0[.].*\", "
                          "\"re:.*linear_attn.*\","
                          " \"re:.*self_attn.*\"]}}");
    const double mlps = 32 * 3.0 * 4096 * 12288 * (1 - model.plain_frac[MODEL_PART_MLP]);
    cr_expect_float_eq(mlps / 1e9, 4.68, 0.005, "%g", mlps);
    cr_expect_eq(model.plain_frac[MODEL_PART_ATTENTION], 1);
    cr_expect_eq(model.plain_frac[MODEL_PART_STATE], 1);
}

/* Qwen3.6-35B-A3B in NVFP4 of vLLM 0.20.0 (a start-up log in a public repository): 21.86 GiB, with
 * an encoder of 27 layers. llm-compressor's example for this family excludes the layers with
 * states.
 */
Test(plain_parts, qwen3_6_in_nvfp4_as_logged)
{
    const struct model_vision encoder = {.kind = VISION_QWEN3,
                                         .layers = 27,
                                         .d_model = 1152,
                                         .d_ffn = 4304,
                                         .d_out = 2048,
                                         .patch = 16,
                                         .frames = 2,
                                         .merge = 2,
                                         .positions = 2304};
#define QWEN3_6                                                                                    \
    "{\"model_type\": \"qwen3_5_moe_text\", \"hidden_size\": 2048, \"num_hidden_layers\": 40,"     \
    " \"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"head_dim\": 256,"                 \
    " \"vocab_size\": 248320, \"max_position_embeddings\": 262144, \"num_experts\": 256,"          \
    " \"num_experts_per_tok\": 8, \"moe_intermediate_size\": 512,"                                 \
    " \"shared_expert_intermediate_size\": 512, \"quantization_config\": {\"quant_method\":"       \
    " \"modelopt\", \"quant_algo\": \"NVFP4\""
    const struct model some = read_model(QWEN3_6 ", \"ignore\": [\"*linear_attn*\"]}}");
    const struct model all = read_model(QWEN3_6 "}}");
    const double encoder_gib = 2 * (double)vision_parameters(&encoder) / gib;
    const double off = weights_gib(&some, 1) + encoder_gib - 21.86;
    printf("# %+.2f GiB; all in 4 bits %+.2f\n", off, weights_gib(&all, 1) + encoder_gib - 21.86);
    cr_expect_lt(fabs(off), 0.2, "%+.3f", off);
    cr_expect_lt(weights_gib(&all, 1) + encoder_gib, 21.86 - 1);
}

/* Kimi-K2-Thinking, whose files have 594 GB (its card), has experts alone in 4 bits: all names that
 * its list ignores are of other matrices. Kimi-K2.5 has the same in its text part. A vLLM server on
 * eight GPUs logged 46.80 GiB for K/V of 715,072 tokens (vLLM's recipe of November 2025). */
#define KIMI                                                                                       \
    "\"hidden_size\": 7168, \"num_hidden_layers\": 61, \"num_attention_heads\": 64,"               \
    " \"num_key_value_heads\": 64, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512,"                  \
    " \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128,"                   \
    " \"intermediate_size\": 18432, \"moe_intermediate_size\": 2048, \"n_routed_experts\": 384,"   \
    " \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"first_k_dense_replace\": 1,"          \
    " \"vocab_size\": 163840, \"max_position_embeddings\": 262144, \"quantization_config\": {"
#define ALL_BUT_KIMIS_EXPERTS                                                                      \
    ", \"ignore\": [\"lm_head\", \"re:.*self_attn.*\", \"re:.*shared_experts.*\","                 \
    " \"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"]}"

Test(plain_parts, kimi_k2_with_experts_in_4_bits)
{
    static const double experts_alone[MODEL_PARTS] = {1, 0, 1, 1, 0};
    const char *const texts[] = {
        "{\"model_type\": \"kimi_k2\", " KIMI INT4_OF_32("\"Linear\"") ALL_BUT_KIMIS_EXPERTS "}",
        "{\"model_type\": \"kimi_k25\", \"text_config\": {" KIMI INT4_OF_32("\"Linear\"")
            ALL_BUT_KIMIS_EXPERTS "}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct model model = read_model(texts[i]);
        const double kv_bytes = 46.80 * gib / 715072;
        expect_parts(texts[i], experts_alone);
        cr_expect_float_eq((double)model_weight_bytes(&model, 1) / 594e9, 1, 0.01, "%.1f GB",
                           (double)model_weight_bytes(&model, 1) / 1e9);
        cr_expect_float_eq((double)model_active_parameters(&model) / 32e9, 1, 0.011);
        cr_expect_float_eq((double)model_kv_bytes_per_token(&model, 8) / kv_bytes, 1, 0.001);
    }
}

/* A layer of Nemotron-H has one part: the second one that attends here is layer 5. */
Test(plain_parts, layers_of_one_part)
{
    static const double expected[MODEL_PARTS] = {0.5, 0, 0, 0, 0};
    expect_parts("{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"M-*M-*-\","
                 " \"hidden_size\": 64, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
                 " \"num_hidden_layers\": 7, \"attention_head_dim\": 16, \"vocab_size\": 100,"
                 " \"intermediate_size\": 128, \"max_position_embeddings\": 128,"
                 " \"mamba_num_heads\": 4, \"mamba_head_dim\": 16, \"ssm_state_size\": 16,"
                 " \"quantization_config\": {\"quant_method\": \"modelopt\","
                 " \"quant_algo\": \"FP8\", \"ignore\": [\"backbone.layers.5.mixer*\"]}}",
                 expected);
}

/* ---- what follows ---- */

Test(plain_parts, weights_by_hand)
{
    struct model model = load_model("llama-3-8b");
    model.quantization = MODEL_INT8;
    const int64_t all = model_weight_bytes(&model, 1);
    const int64_t mlps = 32 * INT64_C(3) * 4096 * 14336;
    model.plain_frac[MODEL_PART_MLP] = 0.25;
    cr_expect_eq(model_weight_bytes(&model, 1), all + mlps / 4);
    cr_expect_eq(model_quantized_bytes(&model, 1), model_matrices_bytes(&model, 1) - mlps / 2);
    model_set_dtype(&model, MODEL_DTYPE_INT8);
    cr_expect_eq(model.plain_frac[MODEL_PART_MLP], 0.25);
    model_set_dtype(&model, MODEL_DTYPE_INT4);
    cr_expect_eq(model.plain_frac[MODEL_PART_MLP], 0);
}

static double step_s(const struct model *model)
{
    const struct platform platform = load_platform("h100-sxm");
    const struct parallel parallel = model_tensor_parallel(1);
    const struct ifl_step_totals totals = {
        .n_tokens = 8, .n_sampled = 8, .n_decode_seqs = 8, .decode_context = 8000};
    struct ifl_error error = {0};
    struct cost *cost = cost_create_roofline(model, &platform, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const double s = cost->step_s(cost, &totals);
    cost_destroy(cost);
    return s;
}

/* All left in 16 bits is a model that is not quantised; half of each part is the mean of both. */
static void expect_times(struct model model, enum model_quantization quantization)
{
    model.quantization = MODEL_PLAIN;
    const double plain = step_s(&model);
    model.quantization = quantization;
    const double quantised = step_s(&model);
    for (int i = 0; i < MODEL_PARTS; i++)
        model.plain_frac[i] = 0.5;
    cr_expect_float_eq(step_s(&model) / ((plain + quantised) / 2), 1, 1e-9);
    for (int i = 0; i < MODEL_PARTS; i++)
        model.plain_frac[i] = 1;
    cr_expect_float_eq(step_s(&model) / plain, 1, 1e-9);
    cr_expect_gt(fabs(plain / quantised - 1), 0.05, "%s", model.name);
}

Test(plain_parts, times)
{
    expect_times(load_model("llama-3-8b"), MODEL_INT4);
    expect_times(load_model("llama-3-8b"), MODEL_FP8);
    expect_times(load_model("qwen3-next-80b-a3b"), MODEL_FP8);
    expect_times(load_model("deepseek-v3"), MODEL_FP8);
}
