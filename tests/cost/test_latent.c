/* Models with latent attention, shared experts and dense first layers: shapes and their files. */
#include <math.h>
#include <string.h>

#include "cost/engine_model.h"

#include "loading.h"

/* ---- parameters ---- */

static void expect_parameters(const char *name, int64_t all, int64_t active, double published_all,
                              double published_active)
{
    const struct model model = load_model(name);
    cr_expect_eq(model_parameters(&model), all, "%s: %lld", name,
                 (long long)model_parameters(&model));
    cr_expect_eq(model_active_parameters(&model), active, "%s: %lld", name,
                 (long long)model_active_parameters(&model));
    cr_expect_lt(fabs((double)all / published_all - 1), 0.002, "%s", name);
    cr_expect_lt(fabs((double)active / published_active - 1), 0.02, "%s", name);
}

/* 61 layers: 1536 and 512 + 64 of 7168, 128 x 192 of 1536, 128 x 256 of 512, 7168 of 128 x 128;
 * norms of both latents and two of 7168. 3 layers with an MLP of 18432, 58 with a router, one
 * shared expert and 256 others of 2048, of which a token goes through 8. arXiv 2412.19437: 671B,
 * 37B active; README_WEIGHTS.md of the checkpoint has 36.7B. */
Test(latent, deepseek_v3_has_671_billion_parameters)
{
    const int64_t d = 7168, expert = 3 * d * 2048;
    const int64_t attention = d * (1536 + 512 + 64) + INT64_C(1536) * 128 * 192 +
                              INT64_C(512) * 128 * 256 + d * 128 * 128;
    const int64_t all = 2 * 129280 * d + d + 61 * (attention + 1536 + 512 + 2 * d) +
                        3 * 3 * d * 18432 + 58 * (256 * d + 257 * expert);
    expect_parameters("deepseek-v3", all, all - 58 * 248 * expert - 129280 * d, 671.0e9, 36.7e9);
}

/* arXiv 2405.04434: 236B, 21B active. */
Test(latent, deepseek_v2_has_236_billion_parameters)
{
    const int64_t d = 5120, expert = 3 * d * 1536;
    const int64_t attention = d * (1536 + 512 + 64) + INT64_C(1536) * 128 * 192 +
                              INT64_C(512) * 128 * 256 + d * 128 * 128;
    const int64_t all = 2 * 102400 * d + d + 60 * (attention + 1536 + 512 + 2 * d) + 3 * d * 12288 +
                        59 * (160 * d + 162 * expert);
    expect_parameters("deepseek-v2", all, all - 59 * 154 * expert - 102400 * d, 236e9, 21e9);
}

/* Appendix B there: queries of 16 x 192 straight from 2048; 15.7B, 2.4B active. */
Test(latent, deepseek_v2_lite_has_15_7_billion_parameters)
{
    const int64_t d = 2048, expert = 3 * d * 1408, embedding = 102400 * d;
    const int64_t attention = d * (16 * 192 + 512 + 64) + INT64_C(512) * 16 * 256 + d * 16 * 128;
    const int64_t all = 2 * embedding + d + 27 * (attention + 512 + 2 * d) + 3 * d * 10944 +
                        26 * (64 * d + 66 * expert);
    expect_parameters("deepseek-v2-lite", all, all - 26 * 58 * expert - embedding, 15.7e9, 2.45e9);
}

/* The shapes of DeepSeek-V3 with 64 heads, 384 experts and one dense layer; the owner's card: 1T,
 * 32B active. */
Test(latent, kimi_k2_has_a_trillion_parameters)
{
    const int64_t d = 7168, expert = 3 * d * 2048, embedding = 163840 * d;
    const int64_t attention =
        d * (1536 + 512 + 64) + INT64_C(1536) * 64 * 192 + INT64_C(512) * 64 * 256 + d * 64 * 128;
    const int64_t all = 2 * embedding + d + 61 * (attention + 1536 + 512 + 2 * d) + 3 * d * 18432 +
                        60 * (384 * d + 385 * expert);
    expect_parameters("kimi-k2", all, all - 60 * 376 * expert - embedding, 1.026e12, 32e9);
}

/* Mixtral 8x7B: 12.9e9 as its paper has it, with the input embedding. Of Llama-2-7B all but the
 * input embedding are active. In OPT-13B the embedding is also the head, so that positions (2050
 * rows) alone are looked up. */
Test(latent, active_parameters_of_other_models)
{
    const struct model mixtral = load_model("mixtral-8x7b"), llama = load_model("llama-2-7b"),
                       opt = load_model("opt-13b");
    const double active = (double)model_active_parameters(&mixtral);
    cr_expect_lt(fabs((active + 32000.0 * 4096) / 12.9e9 - 1), 0.002);
    cr_expect_eq(model_active_parameters(&llama), model_parameters(&llama) - 32000 * 4096);
    cr_expect_eq(model_active_parameters(&opt), model_parameters(&opt) - 2050 * 5120);
}

/* ---- K/V ---- */

/* 61 x (512 + 64) and 27 x 576 elements of 16 bits; arXiv 2405.04434, table 1: (d_c + d^R_h) l. */
Test(latent, a_token_has_one_latent_on_each_rank)
{
    const struct model v3 = load_model("deepseek-v3"), lite = load_model("deepseek-v2-lite");
    for (int32_t t = 1; t <= 16; t *= 4) {
        cr_expect_eq(model_kv_bytes_per_token(&v3, t), 70272, "%d ranks", t);
        cr_expect_eq(model_kv_bytes_per_token(&lite, t), 31104, "%d ranks", t);
    }
    struct model fp8 = v3;
    fp8.kv_bytes = 1;
    cr_expect_eq(model_kv_bytes_per_token(&fp8, 8), 35136);
    cr_expect(v3.n_kv_heads == 1 && v3.d_head == 576);
}

/* ---- ranks ---- */

/* On 8 ranks: 16 heads of 192 and of 256, outputs of 16 x 128; down to both latents whole. The
 * first layers' MLP has 18432 / 8 columns, the shared expert 2048 / 8. */
Test(latent, products_of_a_rank)
{
    const struct model model = load_model("deepseek-v3");
    struct model_linear of[MODEL_LINEARS], ups[MODEL_UPS];
    model_layer_linears(&model, 8, of);
    model_latent_ups(&model, 8, ups);
    cr_expect(of[0].n == 1536 + 576 && of[0].k == 7168, "%lld", (long long)of[0].n);
    cr_expect(of[1].n == 7168 && of[1].k == 16 * 128, "%lld", (long long)of[1].k);
    cr_expect(of[2].n == 2 * 256 && of[3].k == 256);
    cr_expect(ups[MODEL_Q_UP].n == 16 * 192 && ups[MODEL_Q_UP].k == 1536);
    cr_expect(ups[MODEL_KV_UP].n == 16 * 256 && ups[MODEL_KV_UP].k == 512);
    cr_expect_eq(model_dense_columns(&model, 8), 2304);
    cr_expect_eq(model_shared_columns(&model, 8), 256);
}

/* 2 x 1408 columns of shared experts run as one MLP; without a latent of queries qkv has them. */
Test(latent, products_of_the_small_one)
{
    const struct model model = load_model("deepseek-v2-lite");
    struct model_linear of[MODEL_LINEARS], ups[MODEL_UPS];
    model_layer_linears(&model, 2, of);
    model_latent_ups(&model, 2, ups);
    cr_expect_eq(of[0].n, 8 * 192 + 576);
    cr_expect_eq(ups[MODEL_Q_UP].n, 0);
    cr_expect_eq(model_shared_columns(&model, 2), 1408);
    const struct model other = load_model("llama-3-8b");
    model_latent_ups(&other, 1, ups);
    cr_expect(ups[MODEL_Q_UP].n == 0 && ups[MODEL_KV_UP].n == 0);
}

/* What ranks repeat: 61 x (1536 + 576) x 7168 in 8 bits, and norms, routers in 16. */
Test(latent, ranks_repeat_what_goes_down_to_latents)
{
    const struct model model = load_model("deepseek-v3");
    const int64_t down = INT64_C(61) * (1536 + 576) * 7168;
    const int64_t norms = 61 * (1536 + 512 + 2 * 7168) + 7168, routers = INT64_C(58) * 256 * 7168;
    cr_expect_eq(8 * model_weight_bytes(&model, 8),
                 model_weight_bytes(&model, 1) + 7 * (down + 2 * (norms + routers)));
}

/* Experts dealt out over 8 ranks: shared experts and the first layers stay with each. */
Test(latent, experts_are_dealt_out_and_the_rest_is_not)
{
    const struct model model = load_model("deepseek-v3");
    const struct parallel parallel = {1, 1, 8, 8, 1, false};
    struct model spread;
    struct ifl_error error = {0};
    cr_assert_eq(model_spread(&model, &parallel, &spread, &error), 0, "%s", error.text);
    const int64_t dealt = INT64_C(58) * 224 * 3 * 7168 * 2048;
    cr_expect_eq(model_weight_bytes(&model, 1) - model_weight_bytes(&spread, 1), dealt);
}

Test(latent, uneven_shares_are_refused)
{
    struct model model = load_model("deepseek-v3");
    struct ifl_error error = {0};
    cr_expect_eq(model_check_parallel(&model, 128, &error), 0, "%s", error.text);
    model.d_ffn_dense = 18434;
    cr_expect_eq(model_check_parallel(&model, 4, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "18434 FFN columns of the dense layers"), "%s",
                       error.text);
}

/* A stage behind the first has experts in all its layers. */
Test(latent, stages)
{
    const struct model model = load_model("deepseek-v3");
    struct model stage;
    model_stage(&model, 30, &stage);
    cr_expect_eq(stage.first_dense_layers, 0);
    model_stage(&model, 61, &stage);
    cr_expect_eq(stage.first_dense_layers, 3);
}

Test(latent, engines_refuse_it)
{
    const struct model model = load_model("deepseek-v2-lite");
    struct ifl_engine_model described;
    struct ifl_error error = {0};
    cr_expect_eq(engine_describe_model(&model, &described, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "deepseek-v2-lite has latent attention"), "%s",
                       error.text);
}

/* ---- files ---- */

#define LATENT "kv_lora_rank: 32\nqk_nope_head_dim: 16\nqk_rope_head_dim: 8\nv_head_dim: 16\n"
#define EXPERTS "n_experts: 8\nexperts_per_token: 2\n"

static int load_text(const char *tail, struct model *model, struct ifl_error *error)
{
    char text[640], path[64];
    snprintf(text, sizeof text,
             "layers: 2\nd_model: 64\nn_q_heads: 4\nd_ffn: 128\nvocab: 100\nmax_model_len: 64\n%s",
             tail);
    write_temporary("inflight-latent", "yaml", text, path);
    *error = (struct ifl_error){0};
    const int code = model_load(path, model, error);
    remove(path);
    return code;
}

static void expect_error(const char *tail, int line, const char *words)
{
    struct model model;
    struct ifl_error error;
    cr_expect_eq(load_text(tail, &model, &error), IFL_E_INPUT, "%s", tail);
    cr_expect_eq(error.line, line, "%s: line %d, %s", tail, error.line, error.text);
    cr_expect_not_null(strstr(error.text, words), "%s: %s", tail, error.text);
    cr_expect_null(strchr(error.text, '\n'));
}

Test(latent, good_files)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_text(LATENT "n_kv_heads: 1\nd_head: 40\n", &model, &error), 0, "%s",
                 error.text);
    cr_assert_eq(load_text(LATENT EXPERTS "first_dense_layers: 1\nd_ffn_dense: 256\n"
                                          "shared_experts: 2\nd_ffn_shared: 64\n",
                           &model, &error),
                 0, "%s", error.text);
    cr_expect_eq(model_shared_columns(&model, 1), 128);
    /* shared experts need no latent attention */
    cr_assert_eq(load_text(EXPERTS "shared_experts: 1\n", &model, &error), 0, "%s", error.text);
    cr_expect_eq(model.d_ffn_shared, 128);
}

Test(latent, contradictions_are_named_by_line)
{
    expect_error(LATENT "n_kv_heads: 4\n", 11, "n_kv_heads is 4, expected 1 or none");
    expect_error(LATENT "d_head: 16\n", 11, "d_head is 16, expected 40");
    expect_error(LATENT "qk_norm: true\n", 11, "qk_norm is set, expected none");
    expect_error(LATENT "attention_bias: qkv\n", 11, "attention_bias is set");
    expect_error(LATENT "window_tokens: 16\n", 11, "window_tokens is set");
    expect_error("kv_lora_rank: 32\nqk_nope_head_dim: 16\nqk_rope_head_dim: 8\n", 1,
                 "v_head_dim is not given, expected it beside kv_lora_rank");
    expect_error("q_lora_rank: 32\nattention_bias: qkv\n", 8,
                 "attention_bias is set, expected none beside q_lora_rank");
    expect_error("v_head_dim: 32\n", 7, "v_head_dim is 32, expected none without kv_lora_rank");
    expect_error("kv_lora_rank: -1\n", 7, "kv_lora_rank");
    expect_error("kv_lora_rank: 5000\n", 7, "kv_lora_rank");
    expect_error("kv_lora_rnak: 32\n", 7, "kv_lora_rank");
    expect_error("shared_expert: 1\n", 7, "shared_experts");
}

Test(latent, contradictions_of_experts)
{
    expect_error("shared_experts: 1\n", 7, "shared_experts is 1, expected none without n_experts");
    expect_error("first_dense_layers: 1\n", 7, "expected none without n_experts");
    expect_error(EXPERTS "first_dense_layers: 2\nd_ffn_dense: 8\n", 9,
                 "first_dense_layers is 2, expected fewer than the 2 layers");
    expect_error(EXPERTS "first_dense_layers: 1\n", 9, "expected both or neither");
    expect_error(EXPERTS "d_ffn_dense: 8\n", 9, "expected both or neither");
    expect_error(EXPERTS "d_ffn_shared: 8\n", 9, "expected none without shared_experts");
}

/* ---- config.json ---- */

Test(latent, a_config_json_equals_our_yaml)
{
    const struct model theirs = load_model("tests/cost/data/deepseek-v3.json");
    struct model ours = load_model("deepseek-v3");
    memcpy(ours.name, theirs.name, sizeof ours.name);
    memcpy(ours.about, theirs.about, sizeof ours.about);
    cr_expect_eq(memcmp(&ours, &theirs, sizeof ours), 0);
    cr_expect_eq(theirs.quantization, MODEL_FP8);
}

static void expect_json_error(const char *tail, const char *words)
{
    char text[1024], path[64];
    struct model model;
    struct ifl_error error = {0};
    snprintf(text, sizeof text,
             "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 2, \"hidden_size\": 64,"
             " \"num_attention_heads\": 4, \"kv_lora_rank\": 32, \"q_lora_rank\": null,"
             " \"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8, \"v_head_dim\": 16,"
             " \"vocab_size\": 100, \"max_position_embeddings\": 64, \"intermediate_size\": 128%s}",
             tail);
    write_temporary("inflight-latent", "json", text, path);
    const int code = model_load(path, &model, &error);
    remove(path);
    cr_expect_eq(code, words ? IFL_E_INPUT : 0, "%s: %s", tail, error.text);
    cr_expect(!words || strstr(error.text, words), "%s: %s", tail, error.text);
}

Test(latent, config_json_keys)
{
    static const char experts[] = ", \"n_routed_experts\": 8, \"num_experts_per_tok\": 2,"
                                  " \"moe_intermediate_size\": 32, \"first_k_dense_replace\": 0";
    char more[512];
    expect_json_error("", NULL); /* dense */
    expect_json_error(experts, NULL);
    snprintf(more, sizeof more, "%s, \"moe_layer_freq\": 2", experts);
    expect_json_error(more, "moe_layer_freq is not 1");
    expect_json_error(", \"num_key_value_heads\": 2", "num_key_value_heads differs");
    expect_json_error(", \"attention_bias\": true", "attention_bias is true");
    expect_json_error(", \"quantization_config\": {\"quant_method\": \"awq\"}",
                      "expected bits: 8 or 4");
}
